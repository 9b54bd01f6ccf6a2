//! Puts commands in order, has them logged, applies what is durable.
//!
//! A command gets its log index and time when it is submitted, waits until the log holds it durably, and only then reaches the engine:
//! so nothing that anybody sees, an answer, an event or a query, can be lost by a crash. While the log makes one batch durable the
//! next one collects, and while the engine applies one the log writes the next: group commit without a timer.
//!
//! *Deliberately absent*: clocks, threads and disks. `now` is an argument, the log is whoever takes [`Batch`]es and calls
//! [`Sequencer::on_durable`] or [`Sequencer::on_log_failed`]. Exactly-once over several connections and replication over several
//! machines come with the sessions and the consensus that they need.
//!
//! *Invariants*
//! - Log indexes are dense and times never decrease, over restarts too.
//! - The engine has applied exactly the durable prefix; entries are applied once and in order.
//! - A command that the log did not take is handed back to its sender and leaves no trace.
//!
//! *Start reading* at [`Sequencer`], then [`entry`] for what stands in the log.
#![deny(clippy::float_arithmetic)]

pub mod entry;
mod sequencer;

pub use entry::{Entry, EntryError, decode_entry, encode_entry};
pub use sequencer::{Applied, Batch, LogGap, Refused, Sequencer};
