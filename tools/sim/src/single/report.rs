//! What is simulated, and what a run saw.

use super::mutation::Mutation;

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Events of the safety phase.
    pub steps: u64,
    /// A fault planted in the node.
    pub mutation: Option<Mutation>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { steps: 4_000, mutation: None }
    }
}

/// What a run without a violation saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Simulated time.
    pub simulated_ns: u64,
    /// Events in both phases, but for clients that think.
    pub events: u64,
    /// Requests, retries included.
    pub attempts: u64,
    /// Requests that were answered by what they did.
    pub acknowledged: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Of those, because the log could not be written.
    pub refused_by_storage: u64,
    /// Requests of which the node could not say whether they would be found in the log.
    pub in_doubt: u64,
    /// Requests that somebody recorded and sent again.
    pub replayed: u64,
    /// Entries in the log.
    pub entries: u64,
    /// Blocks of batch markets cleared.
    pub blocks: u64,
    /// Power failures and kills.
    pub crashes: u64,
    /// Starts that did not succeed.
    pub failed_starts: u64,
    /// Recoveries from a snapshot.
    pub from_snapshot: u64,
    /// Recoveries that cut a torn tail.
    pub torn_tails: u64,
    /// Snapshots written.
    pub snapshots: u64,
    /// Files of segments that were let go of and became new ones.
    pub reused_segments: u64,
}

impl std::ops::AddAssign for Report {
    fn add_assign(&mut self, other: Self) {
        self.simulated_ns += other.simulated_ns;
        self.events += other.events;
        self.attempts += other.attempts;
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.refused_by_storage += other.refused_by_storage;
        self.in_doubt += other.in_doubt;
        self.replayed += other.replayed;
        self.entries += other.entries;
        self.blocks += other.blocks;
        self.crashes += other.crashes;
        self.failed_starts += other.failed_starts;
        self.from_snapshot += other.from_snapshot;
        self.torn_tails += other.torn_tails;
        self.snapshots += other.snapshots;
        self.reused_segments += other.reused_segments;
    }
}
