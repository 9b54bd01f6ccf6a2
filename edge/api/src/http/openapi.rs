//! The API's own descriptions, and pages to read them.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};

/// `openapi.yaml`, as served.
pub const DOCUMENT: &str = include_str!("../../openapi.yaml");

/// `asyncapi.yaml`, as served: the WebSocket, by the schemas of the other.
pub const ASYNC_DOCUMENT: &str = include_str!("../../asyncapi.yaml");

static JSON: LazyLock<String> = LazyLock::new(|| as_json(DOCUMENT));

static ASYNC_JSON: LazyLock<String> = LazyLock::new(|| as_json(ASYNC_DOCUMENT));

const IS_SHOWN: &str = " aria-current=\"page\"";

static REST_PAGE: LazyLock<String> = LazyLock::new(|| {
    filled(&[
        ("title", "the API"),
        ("heading", "The API of this venue"),
        ("script", "/docs/reader.js"),
        ("is_rest", IS_SHOWN),
        ("is_socket", ""),
        ("words", "orders, cancel, session"),
    ])
});

static SOCKET_PAGE: LazyLock<String> = LazyLock::new(|| {
    filled(&[
        ("title", "the WebSocket"),
        ("heading", "The WebSocket of this venue"),
        ("script", "/docs/websocket.js"),
        ("is_rest", ""),
        ("is_socket", IS_SHOWN),
        ("words", "order, book, reports"),
    ])
});

/// The page of a description: for each name in braces its text.
fn filled(texts: &[(&str, &str)]) -> String {
    let page = include_str!("../docs/page.html").to_owned();
    texts.iter().fold(page, |page, (name, text)| page.replace(&format!("{{{name}}}"), text))
}

fn as_json(document: &str) -> String {
    let document: serde_json::Value = serde_saphyr::from_str(document).expect("a test reads the same bytes");
    document.to_string()
}

pub(super) async fn yaml() -> Response {
    ([(header::CONTENT_TYPE, "application/yaml")], DOCUMENT).into_response()
}

pub(super) async fn json() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], JSON.as_str()).into_response()
}

pub(super) async fn asyncapi() -> Response {
    ([(header::CONTENT_TYPE, "application/yaml")], ASYNC_DOCUMENT).into_response()
}

pub(super) async fn async_json() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], ASYNC_JSON.as_str()).into_response()
}

pub(super) async fn page() -> Response {
    html(REST_PAGE.as_str())
}

pub(super) async fn socket_page() -> Response {
    html(SOCKET_PAGE.as_str())
}

pub(super) async fn reader() -> Response {
    script(include_str!("../docs/reader.js"))
}

pub(super) async fn socket_reader() -> Response {
    script(include_str!("../docs/websocket.js"))
}

pub(super) async fn shapes() -> Response {
    script(include_str!("../docs/shapes.js"))
}

fn html(page: &'static str) -> Response {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response()
}

fn script(program: &'static str) -> Response {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], program).into_response()
}

pub(super) async fn style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("../docs/style.css")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_is_filled_and_marks_itself() {
        let pages = [
            (REST_PAGE.as_str(), "<a href=\"/docs\" aria-current=\"page\">", "src=\"/docs/reader.js\""),
            (SOCKET_PAGE.as_str(), "<a href=\"/docs/websocket\" aria-current=\"page\">", "src=\"/docs/websocket.js\""),
        ];
        for (page, link, script) in pages {
            assert!(!page.contains(['{', '}']), "{page}");
            assert_eq!(page.matches("aria-current").count(), 1);
            assert!(page.contains(link) && page.contains(script), "{page}");
        }
    }
}
