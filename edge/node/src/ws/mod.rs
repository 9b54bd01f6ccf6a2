//! WebSocket sessions: feeds out, commands in.

mod messages;
mod session;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use walras_types::RejectReason;

use crate::http::{ApiError, App};
use crate::json::Refusal;
use crate::runtime::ConnectionId;

/// Close code of a reader that could not keep up.
pub const CLOSE_SLOW: u16 = 4008;

static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// `GET /v1/ws`.
pub(crate) async fn upgrade(
    State(app): State<App>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    request: Request,
) -> Response {
    let place = crate::http::place_of(&request);
    match upgrade {
        Ok(upgrade) => {
            let max = app.config.websocket.message_bytes_max;
            let connection = ConnectionId(CONNECTIONS.fetch_add(1, Relaxed));
            upgrade.max_message_size(max).max_frame_size(max).on_upgrade(move |socket| session::run(app, connection, place, socket))
        }
        Err(e) => ApiError::from(Refusal::new(RejectReason::Malformed, e.body_text())).into_response(),
    }
}
