//! The time by which orders are stamped and held, and how far off it may be.

use walras_access::Clock;
use walras_clock_sync::Source;
use walras_config::FairClockOptions;
use walras_fair_access::clock::{Clock as StampClock, ClockSource, HostClock, HostReport, StampLimits};
use walras_ports::FairTime;

/// The clock of one replica.
#[derive(Debug)]
pub(super) struct FairClock {
    stamps: Stamps,
    host: Clock,
    shown: Shown,
}

/// What it showed last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Shown {
    time_ns: u64,
    /// That was the computer's time, since there was none that anybody vouches for.
    is_unvouched: bool,
}

impl Shown {
    /// What it shows now. A mesh's time may be seconds behind the computer's: a clock that came to know it does not stand still until that has caught up.
    fn next(self, vouched_ns: Option<u64>, local_ns: u64) -> Self {
        let (time_ns, is_unvouched) = (vouched_ns.unwrap_or(local_ns), vouched_ns.is_none());
        let time_ns = if is_unvouched == self.is_unvouched { time_ns.max(self.time_ns) } else { time_ns };
        Self { time_ns, is_unvouched }
    }
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
            (FairClockOptions::Configured, Some(source)) => {
                return Self { stamps: Stamps::Configured(source), host, shown: Shown::default() };
            }
            (FairClockOptions::Configured, None) => (nobody(), None),
            (FairClockOptions::System { limits, bound_ns }, _) => (limits, bound_ns),
        };
        let mut source = HostClock::new();
        if let Some(bound_ns) = bound_ns {
            let report = HostReport { local_ns: host.now().0, bound_ns, bound_growth_ppt: 0 };
            source.on_report(report).expect("the first report, with a bound above 0");
        }
        Self { stamps: Stamps::System(StampClock::new(ClockSource::Host(source), limits)), host, shown: Shown::default() }
    }

    pub(super) fn now(&mut self) -> FairTime {
        let local_ns = self.host.now().0;
        let (reading, status) = match &mut self.stamps {
            Stamps::System(stamps) => stamps.read(local_ns),
            Stamps::Configured(source) => source.reading(),
        };
        self.shown = self.shown.next(reading.map(|reading| reading.time_ns), local_ns);
        FairTime { time_ns: self.shown.time_ns, bound_ns: reading.map(|reading| reading.bound_ns), status }
    }
}

#[cfg(test)]
mod tests {
    use walras_fair_access::clock::ClockStatus;
    use walras_types::TimeNs;

    use super::*;

    #[test]
    fn it_does_not_stand_still_when_another_time_takes_the_place_of_the_computers() {
        let mut shown = Shown::default();
        let mut show = |vouched_ns, local_ns| {
            shown = shown.next(vouched_ns, local_ns);
            shown.time_ns
        };
        assert_eq!([show(None, 9_000), show(None, 8_000)], [9_000, 9_000], "the computer's clock was set back");
        assert_eq!([show(Some(5_000), 9_100), show(Some(5_100), 9_200)], [5_000, 5_100], "a mesh that is behind it");
        assert_eq!([show(Some(5_050), 9_300), show(None, 9_400)], [5_100, 9_400]);
    }

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
