//! A replica's settings.

use crate::ids::ReplicaId;

/// When a slot counts as held by a replica, and so when a majority of holders commits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When it is on the replica's disk. What is committed survives the loss of power of all replicas at once, and the loss of any
    /// minority of their disks.
    Disk,
    /// When it is in the replica's memory. What is committed survives while no replica that held it in memory alone loses that
    /// memory. One that lost it and comes back may not vote before it has been brought up to date, or an acknowledged entry may be
    /// lost with no more than one failure: the host must have it rejoin as a learner under a new id. Terms and votes wait for the
    /// disk all the same.
    Memory,
}

/// Settings of a replica. All replicas of a cluster should have the same, but for `id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Messages of another cluster are refused.
    pub cluster_id: u64,
    /// This replica.
    pub id: ReplicaId,
    /// Resolution of all times below; deadlines are rounded up to it.
    pub tick_ns: u64,
    /// Interval of a leader's heartbeats.
    pub heartbeat_ns: u64,
    /// A follower that hears from no leader for a time between this ...
    pub election_timeout_min_ns: u64,
    /// ... and this, both included, stands for election. The time is drawn at random for each attempt.
    pub election_timeout_max_ns: u64,
    /// Whether a replica asks if it would be elected before it opens a new term.
    pub pre_vote: bool,
    /// A leader that does not hear from a majority for `election_timeout_min_ns` resigns, and followers that hear from a leader do
    /// not vote for others.
    pub check_quorum: bool,
    /// A follower whose link to its leader is lost ([`crate::Replica::on_link_lost`]), or that heard nothing from it for
    /// `election_timeout_min_ns`, asks a moment later whether it would be elected, instead of waiting for a random timeout. Without
    /// [`Self::pre_vote`] and [`Self::check_quorum`], by which the others refuse while they hear the leader, it waits all the same.
    pub fast_fail_over: bool,
    /// How long a process is on probation after its first link with a peer ([`crate::Replica::on_linked`]): they exchange no
    /// messages. By then the others should have met both processes of one id, if there are two. 0 if there cannot be two.
    pub probation_ns: u64,
    /// Maximum number of messages with entries in flight to one follower.
    pub inflight_max: usize,
    /// Bytes of slots in one message, though it always holds at least one slot.
    pub message_bytes_max: u64,
    /// Bytes of one [`crate::Pack`].
    pub pack_bytes_max: usize,
    /// Maximum bytes of uncommitted packs at a leader.
    pub uncommitted_bytes_max: u64,
    /// Slots behind the newest snapshot that are kept in memory, so that a follower that is a little behind needs no snapshot.
    pub retained_slots: u64,
    /// When a slot counts as held.
    pub durability: Durability,
}

/// Why settings are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("consensus settings: {0}")]
pub struct BadSettings(pub &'static str);

/// Times in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticks {
    pub(crate) heartbeat: usize,
    pub(crate) election_min: usize,
    /// Included.
    pub(crate) election_max: usize,
}

impl Settings {
    /// For replicas on one local network: elections after 150 to 300 ms, durable on disk.
    #[must_use]
    pub fn new(cluster_id: u64, id: ReplicaId) -> Self {
        Self {
            cluster_id,
            id,
            tick_ns: 1_000_000,
            heartbeat_ns: 30_000_000,
            election_timeout_min_ns: 150_000_000,
            election_timeout_max_ns: 300_000_000,
            pre_vote: true,
            check_quorum: true,
            fast_fail_over: true,
            probation_ns: 250_000_000,
            inflight_max: 256,
            message_bytes_max: 1 << 20,
            pack_bytes_max: 1 << 20,
            uncommitted_bytes_max: 64 << 20,
            retained_slots: 10_000,
            durability: Durability::Disk,
        }
    }

    pub(crate) fn ticks(&self) -> Result<Ticks, BadSettings> {
        if self.tick_ns == 0 {
            return Err(BadSettings("tick_ns is 0; 1000000 is a good value"));
        }
        let ticks = |ns: u64| usize::try_from(ns.div_ceil(self.tick_ns)).map_err(|_| BadSettings("a time is out of range"));
        let (heartbeat, min, max) =
            (ticks(self.heartbeat_ns)?, ticks(self.election_timeout_min_ns)?, ticks(self.election_timeout_max_ns)?);
        if heartbeat == 0 || min <= heartbeat {
            return Err(BadSettings(
                "election_timeout_min_ns must be longer than heartbeat_ns, better three times, and both above 0",
            ));
        }
        if max < min || max == usize::MAX {
            return Err(BadSettings("election_timeout_max_ns must be at least election_timeout_min_ns"));
        }
        if self.inflight_max == 0 {
            return Err(BadSettings("inflight_max is 0; 256 is a good value"));
        }
        if self.pack_bytes_max == 0 || u32::try_from(self.pack_bytes_max).is_err() {
            return Err(BadSettings("pack_bytes_max must be between 1 and 4294967295"));
        }
        if self.uncommitted_bytes_max < self.message_bytes_max.max(self.pack_bytes_max as u64) {
            return Err(BadSettings("uncommitted_bytes_max must be at least message_bytes_max and pack_bytes_max"));
        }
        Ok(Ticks { heartbeat, election_min: min, election_max: max })
    }
}
