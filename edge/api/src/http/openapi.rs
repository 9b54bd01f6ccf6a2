//! The API's own description, and a page to read it.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};

/// `openapi.yaml`, as served.
pub const DOCUMENT: &str = include_str!("../../openapi.yaml");

/// `asyncapi.yaml`, as served: the WebSocket, by the schemas of the other.
pub const ASYNC_DOCUMENT: &str = include_str!("../../asyncapi.yaml");

static JSON: LazyLock<String> = LazyLock::new(|| {
    let document: serde_json::Value = serde_saphyr::from_str(DOCUMENT).expect("a test reads the same bytes");
    document.to_string()
});

pub(super) async fn yaml() -> Response {
    ([(header::CONTENT_TYPE, "application/yaml")], DOCUMENT).into_response()
}

pub(super) async fn json() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], JSON.as_str()).into_response()
}

pub(super) async fn asyncapi() -> Response {
    ([(header::CONTENT_TYPE, "application/yaml")], ASYNC_DOCUMENT).into_response()
}

pub(super) async fn page() -> Response {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], include_str!("../docs/index.html")).into_response()
}

pub(super) async fn reader() -> Response {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("../docs/reader.js")).into_response()
}

pub(super) async fn style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("../docs/style.css")).into_response()
}
