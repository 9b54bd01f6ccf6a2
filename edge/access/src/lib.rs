//! Who may come in: API keys in their file, the gate that checks requests against them, and how many connections there may be.
//!
//! *Deliberately absent*: what a caller may then do with the market (`edge/ports`); how a client signs (`edge/client`); API keys in
//! the log, since each node keeps its own.
//!
//! *Invariants*
//! - A key that was revoked never comes back, from wherever it is heard.
//! - What happens to a key is noted in the audit file before it takes effect.
//! - A new connection never waits; one that has shown a key does not leave for one that has not.
//!
//! *Start reading* at [`Access`], then [`connections::Doors`].

mod clock;
pub mod connections;
mod error;
mod key_audit;
mod keys;
mod refusal;
mod secrets;

pub use clock::{Clock, now};
pub use error::{AccessError, OperatorKeyError};
pub use keys::{Access, Caller, Grant, OperatorKey, Rates, STAMP_AGE_NS_MAX, STAMP_AHEAD_NS_MAX, Start, operator_key_file};
pub use refusal::Refusal;
pub use secrets::{generate, random_u64, write_secret};
