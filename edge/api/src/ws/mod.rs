//! WebSocket sessions: feeds out, commands in.

mod frames;
mod messages;
mod session;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use walras_access::Refusal;
use walras_ports::{Catalog, ConnectionId};
use walras_types::RejectReason;

use crate::http::{ApiError, App};

/// Close code of a reader that could not keep up.
pub const CLOSE_SLOW: u16 = 4008;

/// Close code of a client that answered no ping.
pub const CLOSE_SILENT: u16 = 4009;

/// Close code of a connection that neither subscribed nor authenticated for too long.
pub const CLOSE_IDLE: u16 = 4010;

/// Close code of a connection whose key was revoked or has expired.
pub const CLOSE_REVOKED: u16 = 4011;

/// Close code of every connection when the venue stops.
pub(crate) const CLOSE_GOING_AWAY: u16 = 1001;

/// Close code of a client whose message is larger than the gateway reads.
pub(crate) const CLOSE_TOO_BIG: u16 = 1009;

/// Close code of a connection whose place another one needs, or that comes while the venue cannot serve it.
pub const CLOSE_TRY_LATER: u16 = 1013;

/// Reads a client's message as a session does, and does nothing of it: its id, and whether it asks what can be asked.
pub fn understand(text: &str, catalog: &Catalog) -> (Option<String>, Result<(), Refusal>) {
    let (id, asked) = messages::read(text, catalog);
    (id, asked.map(|_| ()))
}

/// What a session's read buffer begins with. It grows with what a client sends: clients send little, and many only listen.
const READ_BUFFER_BYTES: usize = 4 << 10;

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
            let connection = ConnectionId::fresh();
            // Who has not logged on reads at most, and is served where no order and no request waits for it.
            let begin = async move |socket| drop(app.readers.clone().spawn(session::run(app, connection, place, socket)));
            upgrade.max_message_size(max).max_frame_size(max).read_buffer_size(READ_BUFFER_BYTES).on_upgrade(begin)
        }
        Err(e) => ApiError::from(Refusal::new(RejectReason::Malformed, e.body_text())).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_a_row_for_every_close_code() {
        let document = include_str!("../../../../docs/websocket.md");
        let rows: Vec<&str> = document.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next()).collect();
        for code in [CLOSE_GOING_AWAY, CLOSE_TOO_BIG, CLOSE_TRY_LATER, CLOSE_SLOW, CLOSE_SILENT, CLOSE_IDLE, CLOSE_REVOKED] {
            assert!(rows.contains(&code.to_string().as_str()), "docs/websocket.md does not say what close code {code} means");
        }
    }
}
