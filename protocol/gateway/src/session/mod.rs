//! Order-entry sessions: numbered commands over a byte stream, each applied once and answered in order, across failures of
//! connections and replicas.
//!
//! A *session* is opened by a command in the log and outlives connections and replicas. The replicated state decides which number
//! comes next and remembers the last answers. This module holds only state that may be lost. [`SessionServer`] is the venue's side
//! of a connection. [`SessionClient`] is the client side of a session, over one connection at a time; [`CopiedClient`] uses several
//! at once, and [`AnyClient`] is either of them. [`Reports`] numbers the execution reports of each account, the same on every
//! replica.
//!
//! *Deliberately absent*: sockets, encryption, threads, randomness (keys are made of entropy that the host gives); the sessions' replicated state (in the engine), the order of commands (in
//! the sequencer).
//!
//! *Invariants*
//! - On a connection answers come in the order of `session_seq` and reports in that of `report_seq`, each without gaps.
//! - A logon is good for the connection whose challenge it signs. With seals, nothing of a run of frames takes effect before its seal
//!   was checked.
//! - Each frame of transactions is answered once; they have no numbers of the session, their own make a retry harmless.
//! - At most a window of commands is unanswered on a connection. Input buffers hold one frame, or one run where frames are sealed. Output is bounded: a client that
//!   does not read gets Bye.
//! - A client numbers a command once, keeps it until its answer, and reports that answer to its user once.
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
mod seal;
mod sent_transactions;
mod server;
mod stream;
mod transactions;

pub use any_client::AnyClient;
pub use client::SessionClient;
pub use client_settings::{ClientError, ClientEvent, ClientSettings, SubmitError, Wish};
pub use copied_client::CopiedClient;
pub use reports::{NamedReport, OrderNames, ReportSettings, Reports, Resend};
pub use reports_snapshot::ReportsError;
pub use seal::{ClientAgreement, Greeting, LogonHash, Seals, VenueKeys, signed_logon};
pub use server::{Ended, Host, LogonRequest, ReportGap, ServerSettings, SessionServer, SessionStart};
pub use transactions::{FrameOutcome, TransactionFrame};

/// Maximum number of unanswered commands: as many as the replicated state remembers answers of a session.
pub const UNANSWERED_MAX: u32 = SESSION_WINDOW as u32;
