//! The API's own description.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};

/// `openapi.yaml`, as served.
pub const DOCUMENT: &str = include_str!("../../openapi.yaml");

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
