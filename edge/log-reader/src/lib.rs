//! Reads the log and the snapshots in a venue's data folder, next to the replica that writes them or after it stopped.
//!
//! - [`each_entry`] calls a function with every decided entry; [`decided_entries`] does so with the bytes.
//! - [`audit`] replays the log and compares the states with those that leaders and snapshots recorded, and checks the signatures of
//!   batch transactions ([`signatures`]).
//! - [`refill`] reads what an archive missed.
//!
//! *Deliberately absent*: writing (`edge/replica-log`, `edge/log-store`), and printing (`edge/node`).
//!
//! *Invariant*: nothing in the folder is changed, and a replica that writes there meanwhile is not disturbed.

pub mod audit;
pub mod refill;
pub mod signatures;

mod error;
mod folder;

pub use error::LogReadError;
pub use folder::{REPLICA, decided_entries, each_entry, engine_of_snapshot, is_replica};
