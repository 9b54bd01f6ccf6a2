//! The running venue: a replica of a cluster, which may be a cluster of one ([`ReplicaVenue`]); what is derived beside it, the archive,
//! and the log's history.
//!
//! Queues are bounded; a full one refuses (`Overloaded`), it never grows.

mod archive;
mod batches;
mod entry_ports;
mod fair_clock;
mod fix_market_data;
mod gateway;
mod gather;
mod listeners;
mod log_history;
mod outlet;
mod recovery;
mod replica;

pub use gateway::LeafGateway;
pub use log_history::LogHistory;
pub use recovery::{Recovered, RecoveryError, log_options, snapshot_again};
pub use replica::{AcceptedLoss, ReloadError, ReplicaVenue, accept_loss};
