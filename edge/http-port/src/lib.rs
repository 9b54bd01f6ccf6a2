//! The sockets of HTTP and WebSocket: listeners whose connections share their places with all other ports of a node.
//!
//! The API (`edge/api`) and the facades of other dialects (`edge/binance`) serve their routes with it.
//!
//! *Deliberately absent*: routes; who may do what (`edge/access`); TLS, which a proxy in front of it does.
//!
//! *Invariants*
//! - A connection has a [`Place`] from its first byte to its last, also one that becomes a WebSocket.
//! - A client that sends no request, or takes no answer, in time is closed.
//!
//! *Start reading* at [`Server`].

mod patience;
mod server;

pub use server::{OPERATOR_PLACES, Place, Server, ServerError, place_of, stopped};
