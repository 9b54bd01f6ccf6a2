//! The running venue: one thread that orders and applies, one that writes the log, one that writes snapshots.
//!
//! ```text
//!  handlers --commands--> [engine thread: sequencer, engine, market data, private views] --batches--> [log thread: append, sync]
//!           --reads----->            ^                                      |                                  |
//!           <--replies, feed updates-+--------------------------------------+<-------------- durable ----------+
//! ```
//!
//! The log has a thread of its own because a sync takes as long as thousands of commands: while it waits for the disk the engine
//! applies the batch before and the next one collects. Queues are bounded; a full one refuses (`Overloaded`), it never grows.

mod archive;
mod batches;
mod engine_thread;
mod fair_clock;
mod listeners;
mod log_history;
mod log_thread;
mod recovery;
mod replica;

pub use log_history::LogHistory;
pub(crate) use recovery::engine_of_snapshot;
pub use recovery::{Recovered, RecoveryError, StartOptions, Venue, log_options, snapshot_again};
pub use replica::{AcceptedLoss, ReplicaVenue, accept_loss};

/// Waits for what another thread does by itself.
#[cfg(test)]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed().as_secs() < 30, "not within half a minute: {what}");
        std::thread::yield_now();
    }
}
