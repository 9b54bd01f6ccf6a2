//! A venue of several shards: each a whole simulated cluster with its own log, disks, clients and faults, and between them couriers that bring
//! transfers over a network that loses, delays, doubles and overtakes, and is cut.
//!
//! The couriers are the product's (`walras-courier`), one at each replica for each other shard, as in the node: a courier dies with its replica's
//! process, or by itself, and forgets. What the node does with threads, HTTP and JSON is done here by events: asking for a directory behind a read
//! barrier, submitting what is brought at the replica that leads, answering from its state.
//!
//! In some runs a whole shard is then set back to an old backup, trades on in doubt, loses its leader, and has to be found by all, before anything
//! moves; with its own state restored all has to go on.
//!
//! *Start reading* at `venue.rs`, then `couriers.rs` and `checks.rs`.

mod checks;
mod couriers;
mod desk;
mod faults;
mod mutation;
mod report;
mod set_back;
mod venue;

pub use mutation::Mutation;
pub use report::{Report, Settings};
pub use venue::simulate;
