//! Settings of a replica.

use std::collections::BTreeSet;

use walras_consensus::ReplicaId;
use walras_types::EngineVersion;

use super::introductions::Introductions;
use super::release::ReleaseRules;

/// How a replica paces itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicatedSettings {
    /// The consensus's.
    pub consensus: walras_consensus::Settings,
    /// Commands that may wait, collecting or on their way. Beyond it they are refused.
    pub waiting_max: usize,
    /// Packs that may be on their way; further commands collect meanwhile.
    pub packs_max: usize,
    /// While one is on its way, the next one leaves no sooner after it than this: each costs every replica a message, a write and a
    /// sync, so that under load many small ones are slower than few large ones. With none on its way a command leaves at once.
    pub propose_every_ns: u64,
    /// Entries between two states whose hashes are compared, and which are kept as snapshots. The same on all replicas; 0 for
    /// never.
    pub checkpoint_every: u64,
    /// The newest version of the engine that this program knows: entries that go to a later one are not for it.
    pub engine_newest: EngineVersion,
    /// The version of the engine under which a new venue begins, by an entry before all others; `None`: it begins without one.
    pub engine_at_start: Option<EngineVersion>,
    /// How long market data is held; `None`: it is not. The same on all replicas.
    pub release: Option<ReleaseRules>,
    /// Whose disk this is, and whose are known; `None` to take part without being asked, where disks are never lost.
    pub introductions: Option<Introductions>,
    /// The other replicas, members or not, to whom it introduces itself.
    pub peers: BTreeSet<ReplicaId>,
}
