//! What is simulated, and what a run saw.

use super::mutation::Mutation;
use crate::cluster;
use crate::common::counts::report;

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Shards, 2 to 4; `None` for a number that the seed decides, mostly 2.
    pub count: Option<usize>,
    /// Replicas that begin each shard, 1 to 5; `None` for what the seed decides.
    pub replicas: Option<usize>,
    /// Simulated time with faults.
    pub safety_ns: u64,
    /// Whether a shard is set back to an old backup once all has healed, and gets its own state again; `None` for what the seed
    /// decides, as one of two does. Not where too little moved since the backup to notice it.
    pub sets_back: Option<bool>,
    /// A planted fault.
    pub mutation: Option<Mutation>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { count: None, replicas: None, safety_ns: 8_000_000_000, sets_back: None, mutation: None }
    }
}

report! {
    /// Simulated time, of the whole venue.
    simulated_ns,
    /// From the end of faults until everybody was answered and nothing was in transit.
    healing_ns,
    /// Events at shards and between them.
    events,
    /// Things that went wrong, at shards and between them.
    faults,
    /// Shards.
    shards,
    /// Entries in all logs.
    entries,
    /// Commands answered, each once.
    answers,
    /// Power failures and kills.
    crashes,
    /// Terms with a leader.
    elections,
    /// Transfers that left their accounts.
    sent,
    /// Transfers that were taken.
    taken,
    /// Transfers that were refused and came back.
    returned,
    /// Transfers that came to a shard again after it had answered them.
    delivered_again,
    /// Messages between shards that were lost or doubled.
    lost_or_doubled,
    /// Transfer relays that started: with a process, or because one was lost.
    relays,
    /// Rounds of transfer relays that failed.
    failed_rounds,
    /// Comparisons in logs.
    comparisons,
    /// Shards that were set back to an old backup, and were found.
    set_back,
    /// Transfers sent by a shard that was set back before it could be found.
    sent_in_doubt,
    /// Transfers that were refused because one of the two shards was set back.
    stopped,
}

impl Report {
    /// What a shard saw by itself.
    pub(super) fn add_shard(&mut self, shard: &cluster::Report) {
        self.shards += 1;
        self.events += shard.events;
        self.faults += shard.faults;
        self.entries += shard.entries;
        self.answers += shard.answers;
        self.crashes += shard.crashes;
        self.elections += shard.elections;
    }
}
