//! The web page, as it was when this program was built.

use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use walras_access::Refusal;
use walras_types::RejectReason;

use super::ApiError;

/// Names and contents of `web/dist`; empty when the page was not built.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

const NOT_BUILT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Walras</title>\
    <h1>The venue is running</h1>\
    <p>This program was built without its page. Run <code>make web</code>, build it again and reload.</p>\
    <p>The API is there: <a href=\"/v1/status\">status</a>, <a href=\"/openapi.yaml\">description</a>.</p></html>";

pub(super) async fn serve(method: Method, uri: Uri) -> Response {
    let path = uri.path().trim_start_matches('/');
    let name = if path.is_empty() { "index.html" } else { path };
    if method != Method::GET && method != Method::HEAD {
        return not_found(uri.path());
    }
    match FILES.iter().find(|(file, _)| *file == name) {
        Some((file, bytes)) => {
            // Vite puts a hash of the content into the names under assets/.
            let cache = if file.starts_with("assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
            ([(header::CONTENT_TYPE, media_type(file)), (header::CACHE_CONTROL, cache)], *bytes).into_response()
        }
        None if path.is_empty() => ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], NOT_BUILT).into_response(),
        None => not_found(uri.path()),
    }
}

fn not_found(path: &str) -> Response {
    let refusal = Refusal::new(RejectReason::NotFound, format!("{path:?}: see /openapi.yaml"));
    ApiError::with_status(refusal, StatusCode::NOT_FOUND).into_response()
}

fn media_type(file: &str) -> &'static str {
    match file.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("json" | "map" | "webmanifest") => "application/json",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
