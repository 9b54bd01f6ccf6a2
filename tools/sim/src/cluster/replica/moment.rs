//! When something happens to a process, by the clocks of its machine.

use walras_fair_access::clock::ClockStatus;
use walras_sequencer::{GatewayTime, LeaderTime};
use walras_types::TimeNs;

use crate::cluster::mutation::Mutation;

/// With a mesh a machine knows the venue's time this well.
pub(crate) const VENUE_BOUND_NS: u64 = 50_000;

/// When something happens to a process, by its own machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// What its clock has counted.
    pub(crate) now_ns: u64,
    /// The time of day as it has it.
    pub(crate) clock_ns: u64,
    /// The venue's time as the probe mesh gives it to this machine; `None` without a mesh.
    pub(crate) venue_ns: Option<u64>,
    /// What arrives is stamped by whole multiples of this.
    pub(crate) grain_ns: u64,
    /// What no machine knows, for checkers: the true time of day ...
    pub(crate) true_ns: u64,
    /// ... and when the machine's clock was last moved, by that.
    pub(crate) clock_moved_ns: u64,
    /// How many times longer its disk takes.
    pub(crate) slow: u64,
    /// Faults have stopped, and nobody sends transactions of batch markets any more.
    pub(crate) is_quiet: bool,
}

impl Moment {
    /// The same for the replica. Every clock says that it is right, those too that are not.
    pub(super) fn time(self) -> GatewayTime {
        let Self { now_ns, clock_ns, venue_ns, .. } = self;
        GatewayTime { now_ns, now: TimeNs(clock_ns), time_ns: venue_ns.unwrap_or(clock_ns), status: ClockStatus::Good }
    }

    /// How far the machine's clock is ahead of the venue's time, as far as it knows.
    pub(super) fn leader_time(self, mutation: Option<Mutation>) -> Option<LeaderTime> {
        let ahead_ns = self.clock_ns.cast_signed() - self.venue_ns?.cast_signed();
        let ahead_ns = if mutation == Some(Mutation::LeaderClockUnreported) { 0 } else { ahead_ns };
        Some(LeaderTime { now: TimeNs(self.clock_ns), ahead_ns, bound_ns: VENUE_BOUND_NS })
    }
}
