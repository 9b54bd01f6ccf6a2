//! Access control: API keys and their file, the checks of requests, and the limits on connections.
//!
//! *Deliberately absent*: the market's operations (`edge/ports`); signing by clients (`edge/client`); API keys in the log, because
//! each node stores its own.
//!
//! *Invariants*
//! - A revoked key never comes back, from any source, and one that has expired never becomes good again.
//! - A change of a key is written to the audit file before it takes effect.
//! - A new connection never waits; one that has shown a key is never closed for one that has not.
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
pub use keys::{Access, Caller, Grant, KeyEnd, OperatorKey, Rates, STAMP_AGE_NS_MAX, STAMP_AHEAD_NS_MAX, Start, operator_key_file};
pub use refusal::Refusal;
pub use secrets::{generate, random_bytes, random_u64, write_secret};
