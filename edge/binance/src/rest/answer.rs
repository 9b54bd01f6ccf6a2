//! Answers in JSON.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::error::Error;

/// An answer in JSON.
pub(crate) type Answer = Result<Response, Error>;

pub(super) fn ok(body: &Value) -> Response {
    (StatusCode::OK, [(header::CONTENT_TYPE, "application/json;charset=UTF-8")], body.to_string()).into_response()
}
