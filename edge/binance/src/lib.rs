//! A venue in the dialect of Binance's Spot API as its documents had it on 2025-12-01 ([`DIALECT`]): REST, streams and the WebSocket
//! API, so that programs written for it trade here with another base URL. `docs/binance.md` says what is compatible and what differs.
//!
//! It knows a venue by `edge/ports` and its callers by `edge/access`, as `edge/api` does, and serves a listener of its own.
//!
//! *Deliberately absent*: margin, pegged orders, SBE. What they ask is refused with the dialect's code.
//!
//! *Invariants*
//! - A signed text is accepted once, at whichever replica it arrives; where it carries a command the log keeps it.
//! - Every request ends in an answer or in a numbered error of the dialect.
//! - A diff of a book begins where the one before it ended, and a snapshot ends between two entries of the log.
//! - Every table and queue is bounded ([`limits`]).
//!
//! *Start reading* at [`router`], then `rest` and `streams`. [`reading`] is for tools that try texts without a venue.

mod amendments;
mod app;
mod brackets;
mod call;
mod client_ids;
mod error;
mod kinds;
mod klines;
pub mod limits;
mod listen_keys;
mod names;
mod order_lists;
mod orders;
mod params;
mod past;
mod past_pages;
pub mod reading;
mod report;
mod rest;
mod streams;
mod trades;
mod values;
mod weights;
mod windows;
mod ws_api;
mod zones;

use std::sync::Arc;

use walras_access::connections::Doors;
use walras_config::Config;
use walras_gateway::Places;
use walras_http_port::{Server, ServerError};
use walras_ports::Status;

pub use app::{App, AppParts};
pub use rest::router;

/// The day of the dialect's documents.
pub const DIALECT: &str = "2025-12-01";

/// Listens where the configuration says; nothing where it names no address.
pub fn bind(config: &Config) -> Result<Option<Server>, ServerError> {
    match config.binance.listen.as_str() {
        "" => Ok(None),
        listen => Server::bind_to(listen, "Binance dialect", config).map(Some),
    }
}

/// Serves until `app.stopping` says so. `doors` has `places`, and is shared with other ports.
pub async fn serve(server: Option<Server>, app: App, status: Status, places: (Doors, Places)) {
    if let Some(server) = server {
        let (config, stopping) = (Arc::clone(&app.config), app.stopping.clone());
        server.serve(router(app), config, status, places, stopping).await;
    }
}
