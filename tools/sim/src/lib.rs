//! A whole venue in one thread, from one seed: clients and an operator that sign and retry, a network that loses, delays and replays,
//! one node with gateway, sequencer, log, snapshots, engine and market data, its disk and its clock.
//!
//! The state machines and the keeper of the log are the product's, unchanged; the disk is [`walras_log_store::sim_disk::SimDisk`];
//! what stands in for threads and sockets (`node`) is as thin as it can be. First a *safety phase*: power failures and kills at any
//! operation of the disk, also during recovery, failed writes and syncs, full disks and disks that are gone, clocks that jump, a network
//! at its worst. Then a *healing phase*: no more faults, and everything that was asked must be answered within a bounded time.
//!
//! Whatever happens, the checkers in [`checks`] hold after every step. That they can fail is shown by [`Mutation`]s: faults planted in
//! the node, each of which has to be found.
//!
//! *Deliberately absent*: HTTP and JSON (they are `edge/node`'s), several replicas and exactly-once over retries (they come with the
//! consensus: machines, addresses and the network are plural already). A client that retries may therefore have its command applied
//! once for each time that it sent it, and never more often.
//!
//! *Invariants*
//! - The same seed and settings give the same run, to the byte: no clock, no thread, no hash order.
//! - A checker learns from outside the node (what clients sent and were told, what the log holds), never from the node's own books.
//!
//! *Start reading* at [`simulate`], then `world.rs`, then `node/process.rs`.

pub mod cluster;
mod common;
pub mod single;

pub use common::checks::Violation;
pub use common::trace::Trace;
