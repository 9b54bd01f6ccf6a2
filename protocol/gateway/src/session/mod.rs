//! Order-entry sessions: numbered commands over a byte stream, each applied once and answered in order, whatever breaks in between.
//!
//! A *session* is opened by a command in the log and outlives connections and replicas; the log's state decides which command of it
//! comes next and remembers the last answers. What is here serves one connection at a time and remembers nothing that may not be
//! lost: [`SessionServer`] is the venue's end of a connection, [`SessionClient`] a program's end of its session over many
//! connections, one at a time, [`CopiedClient`] the same over several at once ([`AnyClient`] either of them), and [`Reports`]
//! numbers the events that concern each account, on every replica alike.
//!
//! *Deliberately absent*: sockets, encryption, threads; the sessions themselves (the engine's), the order of commands (the
//! sequencer's).
//!
//! *Invariants*
//! - On a connection answers come in the order of `session_seq` and reports in that of `report_seq`, each without gaps.
//! - At most a window of commands is unanswered on a connection; input is one frame, output is bounded: a client that does not read
//!   gets Bye.
//! - A client numbers a command once. It forgets it with its answer, and reports that answer to its user once.
//! - The same events give the same reports with the same numbers, and the same snapshot bytes.
//!
//! *Start reading* at [`SessionServer::on_bytes`]; the protocol is in `docs/order-entry.md`.

use walras_types::limits::SESSION_WINDOW;

mod any_client;
mod chunks;
mod client;
mod client_settings;
mod copied_client;
mod reports;
mod reports_snapshot;
mod server;
mod stream;

pub use any_client::AnyClient;
pub use client::SessionClient;
pub use client_settings::{ClientError, ClientEvent, ClientSettings, SubmitError, Wish};
pub use copied_client::CopiedClient;
pub use reports::{ReportSettings, Reports, Resend};
pub use reports_snapshot::ReportsError;
pub use server::{Ended, Host, LogonRequest, ReportGap, ServerSettings, SessionServer, SessionStart};

/// Most commands that may be unanswered at a time: as many answers as the log's state remembers of a session.
pub const UNANSWERED_MAX: u32 = SESSION_WINDOW as u32;
