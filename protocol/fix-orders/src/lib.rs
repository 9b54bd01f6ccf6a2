//! Orders and execution reports by FIX (`docs/fix.md`): the venue's side of one connection, between its bytes and the numbered
//! commands and reports of a session of order entry.
//!
//! A FIX session is a session of order entry (`walras_gateway::session`). MsgSeqNum(34) of what the client sends is the number of its
//! command in that session, so a message that comes again takes effect once, at whichever replica. MsgSeqNum(34) of what the venue
//! sends says which report of the account comes next ([`walras_fix::Lasting`]), so every replica can go on
//! (`docs/adr/0021-fix-numbers.md`).
//!
//! *Deliberately absent*: sockets and clocks; the FIX session itself (`walras_fix`); the log.
//!
//! *Invariants*
//! - No message of a client makes a connection panic, and what waits on one is bounded.
//! - A command has the number of the message that asked for it. Numbers of other messages are filled, with commands that do nothing.
//! - A connection hears of each report of its account once and in order, from the first one that the client has not received.
//! - A client is told that its order was refused only once the log has that number.
//! - An order has the number and the name that it would have by REST ([`client_order`]). What a replacement calls it is FIX's alone.
//! - What a session keeps of an order is bounded, however often that is replaced.
//!
//! *Start reading* at [`FixServer`].
#![deny(clippy::float_arithmetic)]

mod catalog;
mod ids;
mod logon;
mod orders;
mod reasons;
mod request;
mod say;
mod server;
mod tags;
mod texts;
mod unanswered;

pub use catalog::{Catalog, Listed, unlisted};
pub use ids::{CL_ORD_ID_BYTES_MAX, client_order, id_before, id_of, text_of};
pub use logon::{Proof, Secrecy, proof_of, signed_logon};
pub use orders::REMEMBERED_BYTES_MAX;
pub use reasons::{cxl_rej_reason, mass_cancel_rej_reason, ord_rej_reason};
pub use say::business_reject;
pub use server::{FixServer, FixSettings, Memory, REPORT_MODULUS};
