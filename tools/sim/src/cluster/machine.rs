//! A machine: what stays when its process ends.

use walras_consensus::ReplicaId;

use super::replica::{Moment, Process};
use crate::common::clock::Clock;
use crate::common::disk::VenueDisk;

/// Whether or not its process runs.
pub(super) struct Machine {
    pub(super) disk: VenueDisk,
    pub(super) clock: Clock,
    /// The time of day was far off since the process started. Its gateway never goes back in time, so it has to start anew.
    pub(super) clock_was_far: bool,
    pub(super) process: Option<Process>,
    /// Of the process; a later one has its own timers.
    pub(super) generation: u64,
    /// A start is planned.
    pub(super) is_starting: bool,
    pub(super) slow: u64,
    /// Nothing happens in the process before.
    pub(super) paused_until_ns: u64,
    /// The next deadline planned for it.
    pub(super) wake_ns: Option<u64>,
}

impl Machine {
    pub(super) fn new(disk: VenueDisk) -> Self {
        Self {
            disk,
            clock: Clock::default(),
            clock_was_far: false,
            process: None,
            generation: 0,
            is_starting: false,
            slow: 1,
            paused_until_ns: 0,
            wake_ns: None,
        }
    }

    pub(super) fn at(&self, now_ns: u64) -> Moment {
        Moment { now_ns: self.clock.count(now_ns), clock_ns: self.clock.read(now_ns), slow: self.slow }
    }
}

/// Replicas count from 1.
pub(super) fn replica_id(at: usize) -> ReplicaId {
    ReplicaId::new(at as u64 + 1).expect("it is not 0")
}

/// And back.
pub(super) fn place_of(replica: ReplicaId) -> usize {
    usize::try_from(replica.get() - 1).expect("replicas are few")
}
