//! For load balancers and supervisors: whether this process serves, and whether it should be sent work.

use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use walras_ports::Storage;

use super::App;

/// The probe of a process that lives.
pub(super) const LIVE: &str = "/healthz";

/// Longest that a look at readiness takes: a supervisor waits about a second for an answer.
const LOOK: Duration = Duration::from_millis(800);

/// Answers as long as the process serves HTTP.
pub(super) async fn live() -> Response {
    (StatusCode::OK, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], "ok\n").into_response()
}

/// Answers 200 where work may be sent, and 503 with the reasons where it may not.
pub(super) async fn ready(State(app): State<App>) -> Response {
    let reasons = reasons(&app).await;
    let status = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json!({"ready": reasons.is_empty(), "reasons": reasons}).to_string();
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// Why no work should be sent here.
async fn reasons(app: &App) -> Vec<String> {
    let status = app.venue.status();
    let mut reasons = Vec::new();
    if !status.ready() {
        reasons.push("the venue is starting or stopping".to_owned());
    }
    if status.storage() == Storage::Full {
        reasons.push("the log cannot be written: free disk space".to_owned());
    }
    let cluster = app.venue.cluster();
    if let Some(why) = cluster.view().halted {
        reasons.push(format!("this replica has stopped: {why}"));
    }
    if cluster.leader().is_none() {
        reasons.push("no leader is known: most of the replicas must be linked".to_owned());
    }
    // The other reasons say why it would not come.
    if reasons.is_empty() && !matches!(tokio::time::timeout(LOOK, app.venue.barrier()).await, Ok(Ok(()))) {
        reasons.push("this replica has not caught up with what was acknowledged, or is too busy to say so".to_owned());
    }
    reasons
}
