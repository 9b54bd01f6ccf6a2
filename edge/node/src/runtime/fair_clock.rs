//! The time by which orders are stamped and held, and how far off it may be.

use walras_clock_sync::Source;
use walras_fair_access::clock::{Clock as StampClock, ClockSource, ClockStatus, HostClock, HostReport, StampLimits};

use super::clock::Clock;

/// What stamps orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FairClockOptions {
    /// The computer's clock.
    System {
        /// When it is good enough.
        limits: StampLimits,
        /// How far it is off at most, as the operator knows it.
        bound_ns: Option<u64>,
    },
    /// The one that the section `[clock]` configures, by the bounds that it tells.
    Configured,
}

/// A look at the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairTime {
    /// What it shows. It never goes back. Where the status is [`ClockStatus::Unknown`] that is the computer's time, which nobody vouches for.
    pub time_ns: u64,
    /// How far off it may be.
    pub bound_ns: Option<u64>,
    /// Whether it may stamp.
    pub status: ClockStatus,
}

/// The clock of one replica. What it shows never goes back.
#[derive(Debug)]
pub(super) struct FairClock {
    stamps: Stamps,
    host: Clock,
    latest_ns: u64,
}

#[derive(Debug)]
enum Stamps {
    System(StampClock),
    Configured(Source),
}

impl FairClock {
    /// `configured` is the clock of the section `[clock]`; without one nothing is stamped where the options ask for it.
    pub(super) fn new(options: FairClockOptions, configured: Option<Source>, host: Clock) -> Self {
        let nobody = || StampLimits::new(2, 1, 0).expect("these limits are in order");
        let (limits, bound_ns) = match (options, configured) {
            (FairClockOptions::Configured, Some(source)) => return Self { stamps: Stamps::Configured(source), host, latest_ns: 0 },
            (FairClockOptions::Configured, None) => (nobody(), None),
            (FairClockOptions::System { limits, bound_ns }, _) => (limits, bound_ns),
        };
        let mut source = HostClock::new();
        if let Some(bound_ns) = bound_ns {
            let report = HostReport { local_ns: host.now().0, bound_ns, bound_growth_ppt: 0 };
            source.on_report(report).expect("the first report, with a bound above 0");
        }
        Self { stamps: Stamps::System(StampClock::new(ClockSource::Host(source), limits)), host, latest_ns: 0 }
    }

    pub(super) fn now(&mut self) -> FairTime {
        let local_ns = self.host.now().0;
        let (reading, status) = match &mut self.stamps {
            Stamps::System(stamps) => stamps.read(local_ns),
            Stamps::Configured(source) => source.reading(),
        };
        self.latest_ns = self.latest_ns.max(reading.map_or(local_ns, |reading| reading.time_ns));
        FairTime { time_ns: self.latest_ns, bound_ns: reading.map(|reading| reading.bound_ns), status }
    }
}

#[cfg(test)]
mod tests {
    use walras_types::TimeNs;

    use super::*;

    #[test]
    fn it_is_good_as_long_as_somebody_vouches_for_a_bound_that_is_narrow_enough() {
        let host = Clock::new(|| TimeNs(5_000));
        let clock = |bound_ns| {
            let limits = StampLimits::new(1_000, 999, 0).unwrap();
            FairClock::new(FairClockOptions::System { limits, bound_ns }, None, host.clone())
        };
        assert_eq!(clock(Some(999)).now(), FairTime { time_ns: 5_000, bound_ns: Some(999), status: ClockStatus::Good });
        assert_eq!(clock(Some(1_001)).now().status, ClockStatus::Wide);
        assert_eq!(clock(None).now(), FairTime { time_ns: 5_000, bound_ns: None, status: ClockStatus::Unknown });
        let nobody = FairClock::new(FairClockOptions::Configured, None, host.clone()).now();
        assert_eq!(nobody, FairTime { time_ns: 5_000, bound_ns: None, status: ClockStatus::Unknown });
    }
}
