//! The clocks by which market data is released: this machine's, and the venue's where the section `[clock]` keeps one.

use walras_access::Clock;
use walras_clock_sync::Source;
use walras_fair_access::clock::ClockReading;
use walras_fair_access::publications::ReleaseTime;
use walras_sequencer::LeaderTime;
use walras_types::TimeNs;

/// Times that both clocks are read together; the closest pair counts, since a thread may be interrupted between the two.
const LOOKS: usize = 4;

/// Both clocks. Clone it freely.
#[derive(Clone, Debug)]
pub struct ReleaseSource {
    system: Clock,
    venue: Option<Source>,
}

impl ReleaseSource {
    /// This machine's clock, and the venue's where it is kept.
    #[must_use]
    pub fn new(system: Clock, venue: Option<Source>) -> Self {
        Self { system, venue }
    }

    /// What this machine's clock shows, and the venue's time where it is known.
    pub fn read(&self) -> (u64, Option<u64>) {
        (self.system.now().0, self.venue_ns())
    }

    /// A clock that is not good enough to stamp by is not one to release by.
    fn venue(&self) -> Option<ClockReading> {
        self.venue.as_ref()?.stamp()
    }

    fn venue_ns(&self) -> Option<u64> {
        self.venue().map(|reading| reading.time_ns)
    }

    /// How far off the venue's time may be here; `None` where it is not known well enough.
    pub fn bound_ns(&self) -> Option<u64> {
        self.venue().map(|reading| reading.bound_ns)
    }

    /// How far this machine's clock, which stamps entries where it leads, is ahead of the venue's time.
    pub fn leader_time(&self) -> Option<LeaderTime> {
        let look = || {
            let (before_ns, now) = (self.venue_ns()?, self.system.now());
            let after = self.venue()?;
            let between_ns = after.time_ns.saturating_sub(before_ns);
            let ahead_ns = i128::from(now.0) - i128::from(before_ns + between_ns / 2);
            let bound_ns = after.bound_ns.saturating_add(between_ns.div_ceil(2));
            Some(LeaderTime { now, ahead_ns: i64::try_from(ahead_ns).ok()?, bound_ns })
        };
        (0..LOOKS).filter_map(|_| look()).min_by_key(|time| time.bound_ns)
    }

    /// How long ago it was by the log's time; `ahead_ns` of the clock that this is of.
    pub fn ago_ns(&self, time: TimeNs, ahead_ns: Option<i64>) -> i64 {
        let (system_ns, venue_ns) = self.read();
        ReleaseTime { log_ns: time.0, ahead_ns }.ago_ns(system_ns, venue_ns)
    }
}

#[cfg(test)]
mod tests {
    use walras_clock_sync::{ClockOptions, ClockService, LocalClock, SourceOptions};

    use super::*;

    /// A machine whose clock is 5 ms ahead of what another source says.
    #[test]
    fn a_leader_knows_how_far_its_clock_is_ahead() {
        const AHEAD_NS: i64 = 5_000_000;
        let options = ClockOptions { bound_max_ns: 1_000_000, good_for_ns: 0, source: SourceOptions::System { bound_ns: 200 } };
        let service = ClockService::start_on(LocalClock::system(), options).unwrap();
        let ahead = Clock::new(|| TimeNs(walras_access::now().0.checked_add_signed(AHEAD_NS).unwrap()));
        let source = ReleaseSource::new(ahead.clone(), Some(service.source()));
        // It is known once its thread has looked.
        let time = walras_wait::until_some("the source has a time", || source.leader_time());
        assert!(time.ahead_ns.abs_diff(AHEAD_NS) <= time.bound_ns && time.bound_ns >= 200, "{time:?}");
        // Stamped by a leader whose clock is 2 ms further ahead: by this machine's clock it is still to come.
        let made = TimeNs(walras_access::now().0 + 7_000_000);
        let ago_ns = source.ago_ns(made, Some(7_000_000));
        assert!(ago_ns >= -200, "{ago_ns}");
        assert_eq!(ReleaseSource::new(ahead, None).leader_time(), None);
    }
}
