//! A venue over HTTP, WebSocket and JSON, as `openapi.yaml` describes it; and the web page.
//!
//! It knows a venue by `edge/ports` and its callers by `edge/access`, and nothing of how the venue runs.
//!
//! *Deliberately absent*: TLS for participants (a proxy in front of it does that); anything that decides what a command means (that
//! is `core/engine`'s) or in which order commands come (`protocol/sequencer`'s).
//!
//! *Invariants*
//! - Every request ends in an answer with a number and an advice.
//! - What is served is what `openapi.yaml` says, both ways: a test asks every route.
//! - Quantities are exact decimal text here, and integers everywhere below.
//!
//! *Start reading* at [`router()`], then [`http`], [`ws`] and [`json`].

pub mod http;
pub mod json;
pub mod ws;

use axum::Router;
use axum::routing::get;

pub use http::ROUTES;

/// The whole service.
pub fn router(app: http::App) -> Router {
    http::router(app, get(ws::upgrade))
}

/// The commit that this program was built from; `unknown` outside a clone.
pub const COMMIT: &str = env!("WALRAS_COMMIT");
