//! A venue of several shards: each a whole simulated cluster with its own log, disks, clients and faults, and between them transfer
//! relays that deliver transfers over a network that loses, delays, doubles and overtakes, and is cut.
//!
//! The transfer relays are the product's (`walras-transfer-relay`), one at each replica for each other shard, as in the node: a
//! relay dies with its replica's process, or by itself, and forgets. What the node does with threads, HTTP and JSON is done here by
//! events: asking for a directory behind a read barrier, submitting what is delivered at the replica that leads, answering from its
//! state.
//!
//! In some runs a whole shard is then set back to an old backup, trades on in doubt, loses its leader, and has to be found by all,
//! before anything moves; with its own state restored all has to go on.
//!
//! *Start reading* at `venue.rs`, then `relays.rs` and `checks.rs`.

mod checks;
mod faults;
mod handlers;
mod mutation;
mod planted;
mod relays;
mod report;
mod set_back;
mod venue;

pub use mutation::Mutation;
pub use planted::{Planted, planted};
pub use report::{Report, Settings};
pub use venue::simulate;
