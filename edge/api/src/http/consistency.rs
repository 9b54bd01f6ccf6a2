//! Reads that see everything acknowledged before them, for those who ask for it.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use walras_access::Refusal;
use walras_types::RejectReason;

use super::{ApiError, App};

/// `linearizable`, or `local` for what is done without it.
const HEADER: &str = "walras-consistency";
/// Elections are over by then, and no longer is anybody kept waiting whom a majority does not hear.
const PATIENCE: Duration = Duration::from_secs(3);

/// Answers such a read from a state that has all that any replica acknowledged before it came.
pub(super) async fn of_reads(State(app): State<App>, request: Request, next: Next) -> Response {
    let wanted = request.headers().get(HEADER).map(|value| value.to_str().unwrap_or_default().to_owned());
    match wanted.as_deref() {
        None | Some("local") => next.run(request).await,
        Some("linearizable") if request.method() == Method::GET => {
            match tokio::time::timeout(PATIENCE, app.venue.barrier()).await {
                Ok(Ok(())) => next.run(request).await,
                Err(_) => refuse(
                    RejectReason::VenueNotReady,
                    "nobody confirms at the moment that this replica has heard everything: try again, or read without Walras-Consistency what it knows",
                ),
                Ok(Err(reason)) => ApiError::from(Refusal::from(reason)).into_response(),
            }
        }
        Some(_) => refuse(RejectReason::Malformed, "Walras-Consistency: linearizable (with GET) or local"),
    }
}

fn refuse(reason: RejectReason, detail: &str) -> Response {
    ApiError::from(Refusal::new(reason, detail)).into_response()
}
