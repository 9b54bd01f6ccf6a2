//! A machine: what stays when its process ends.

use walras_engine::versions::NEWEST;
use walras_types::EngineVersion;

use super::replica::{Moment, Process};
use crate::common::clock::{Clock, EPOCH_NS};
use crate::common::disk::VenueDisk;

/// What may become of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fortune {
    /// Nobody runs a replica on it yet: its turn comes when another one is lost.
    Unused,
    /// If its process ends, it starts again.
    Sound,
    /// Something was done that may end its process other than in good order, where that is the end of the replica.
    Doomed,
    /// Its process has ended so. When it starts it finds that out.
    Lost,
    /// Its disk was lost, and somebody starts it again under its id with an empty one: the others must stop it.
    Emptied,
    /// The replica is no more.
    Gone,
}

/// Whether or not its process runs.
pub(super) struct Machine {
    pub(super) fortune: Fortune,
    /// A process on it has taken part in the cluster, on whatever disk.
    pub(super) has_taken_part: bool,
    pub(super) disk: VenueDisk,
    pub(super) clock: Clock,
    /// When its clock was last set, by the true time of day.
    pub(super) clock_moved_ns: u64,
    /// With a mesh: how far off the venue's time is that it knows.
    pub(super) venue_error_ns: Option<i64>,
    /// Its kernel stamps what arrives by whole multiples of this.
    pub(super) grain_ns: u64,
    /// The time of day was far off since the process started. Its gateway never goes back in time, so it has to start again.
    pub(super) clock_was_far: bool,
    /// The newest version of the engine that its program knows.
    pub(super) engine_newest: EngineVersion,
    pub(super) process: Option<Process>,
    /// Of the process; a later one has its own timers.
    pub(super) generation: u64,
    /// A start is planned.
    pub(super) is_starting: bool,
    pub(super) slow: u64,
    /// Faults have stopped.
    pub(super) is_quiet: bool,
    /// A bit of its files has turned since it ended.
    pub(super) is_damaged: bool,
    /// Little fits on its disk.
    pub(super) is_full: bool,
    /// Nothing happens in the process before.
    pub(super) paused_until_ns: u64,
    /// The next deadline planned for it.
    pub(super) wake_ns: Option<u64>,
    pub(super) leads_since_ns: Option<u64>,
}

impl Machine {
    pub(super) fn new(disk: VenueDisk, fortune: Fortune) -> Self {
        Self {
            fortune,
            has_taken_part: false,
            disk,
            clock: Clock::default(),
            clock_moved_ns: 0,
            venue_error_ns: None,
            grain_ns: 1,
            clock_was_far: false,
            engine_newest: NEWEST,
            process: None,
            generation: 0,
            is_starting: false,
            slow: 1,
            is_quiet: false,
            is_full: false,
            is_damaged: false,
            paused_until_ns: 0,
            wake_ns: None,
            leads_since_ns: None,
        }
    }

    /// A replica is or was on it that may count for nothing.
    pub(super) fn is_at_risk(&self) -> bool {
        matches!(self.fortune, Fortune::Doomed | Fortune::Lost | Fortune::Emptied | Fortune::Gone)
    }

    /// Whether there is a replica on it.
    pub(super) fn is_in_use(&self) -> bool {
        matches!(self.fortune, Fortune::Sound | Fortune::Doomed | Fortune::Lost | Fortune::Emptied)
    }

    /// Its process has ended, or did not begin.
    pub(super) fn falls(&mut self, fortune: Fortune) {
        if self.fortune != Fortune::Emptied {
            self.fortune = fortune;
        }
    }

    pub(super) fn at(&self, now_ns: u64) -> Moment {
        let true_ns = EPOCH_NS + now_ns;
        Moment {
            now_ns: self.clock.count(now_ns),
            clock_ns: self.clock.read(now_ns),
            grain_ns: self.grain_ns,
            venue_ns: self.venue_error_ns.map(|error_ns| true_ns.saturating_add_signed(error_ns)),
            true_ns,
            clock_moved_ns: self.clock_moved_ns,
            slow: self.slow,
            is_quiet: self.is_quiet,
        }
    }
}
