//! The host's own clock, on which every source is based.

use std::fmt;
use std::sync::Arc;

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// A clock of this host. Clones are cheap and read the same clock.
#[derive(Clone)]
pub struct LocalClock(Kind);

#[derive(Clone)]
enum Kind {
    /// The clock that a daemon disciplines.
    System,
    /// The undisciplined clock plus a constant.
    Raw { ahead_ns: u64 },
    /// A function of the undisciplined clock.
    Made(Arc<dyn Fn(u64) -> u64 + Send + Sync>),
}

/// Maximum distance of two readings of one clock for which a reading of another clock in between counts as taken in the middle.
const BETWEEN_NS_MAX: u64 = 2_000;
/// Number of attempts.
const ATTEMPTS: u32 = 4;
/// Maximum age of a packet's time stamp.
const STAMP_AGE_NS_MAX: u64 = 1_000_000_000;

impl LocalClock {
    /// The system's clock: nanoseconds since the Unix epoch, steered and set by the program that disciplines it.
    #[must_use]
    pub fn system() -> Self {
        Self(Kind::System)
    }

    /// The undisciplined oscillator, set once to the current system time.
    #[must_use]
    pub fn raw() -> Self {
        Self(Kind::Raw { ahead_ns: system_ns().saturating_sub(raw_ns()) })
    }

    /// Any clock: a function of the oscillator's count in nanoseconds, or of nothing. For tests.
    #[must_use]
    pub fn made(read: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Self {
        Self(Kind::Made(Arc::new(read)))
    }

    /// The current reading.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        match &self.0 {
            Kind::System => system_ns(),
            Kind::Raw { ahead_ns } => raw_ns().saturating_add(*ahead_ns),
            Kind::Made(read) => read(raw_ns()),
        }
    }

    /// The reading when the system's clock read `stamp_ns`, a moment ago, because the kernel stamps packets by the system's clock.
    /// `None` if that is unknown: the system's clock was set in between, or this thread was interrupted at each attempt.
    #[must_use]
    pub fn at_system_ns(&self, stamp_ns: u64) -> Option<u64> {
        let of_raw: &dyn Fn(u64) -> u64 = match &self.0 {
            Kind::System => return Some(stamp_ns),
            Kind::Raw { ahead_ns } => &|raw_ns| raw_ns.saturating_add(*ahead_ns),
            Kind::Made(read) => &**read,
        };
        for _ in 0..ATTEMPTS {
            let (before_ns, now_ns, after_ns) = (raw_ns(), system_ns(), raw_ns());
            let between_ns = after_ns.saturating_sub(before_ns);
            if between_ns <= BETWEEN_NS_MAX {
                let age_ns = now_ns.checked_sub(stamp_ns).filter(|age_ns| *age_ns <= STAMP_AGE_NS_MAX)?;
                return Some(of_raw((before_ns + between_ns / 2).saturating_sub(age_ns)));
            }
        }
        None
    }
}

impl fmt::Debug for LocalClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::System => "LocalClock::system",
            Kind::Raw { .. } => "LocalClock::raw",
            Kind::Made(_) => "LocalClock::made",
        })
    }
}

/// The system's clock.
pub(crate) fn system_ns() -> u64 {
    read_ns(ClockId::CLOCK_REALTIME)
}

/// The oscillator's count since the start of the machine.
pub(crate) fn raw_ns() -> u64 {
    read_ns(ClockId::CLOCK_MONOTONIC_RAW)
}

fn read_ns(clock: ClockId) -> u64 {
    as_ns(clock_gettime(clock).expect("every Linux has these two clocks"))
}

/// Nanoseconds; 0 for times before the epoch.
pub(crate) fn as_ns(time: TimeSpec) -> u64 {
    let (seconds, nanos) = (u64::try_from(time.tv_sec()).unwrap_or(0), u64::try_from(time.tv_nsec()).unwrap_or(0));
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_of_the_system_is_placed_on_the_raw_clock() {
        let clock = LocalClock::raw();
        let before_ns = clock.now_ns();
        let stamp_ns = system_ns();
        let after_ns = clock.now_ns();
        // A thread that is interrupted at each look has no answer; that is rare enough to ask again.
        let placed_ns = (0..100).find_map(|_| clock.at_system_ns(stamp_ns)).unwrap();
        // The two looks are each off by the half of what lay between them at most; the system's clock is steered by less than a
        // thousandth.
        let slack_ns = BETWEEN_NS_MAX + (clock.now_ns() - before_ns) / 1_000;
        assert!(placed_ns + slack_ns >= before_ns && placed_ns <= after_ns + slack_ns, "{before_ns} {placed_ns} {after_ns}");
    }

    #[test]
    fn a_stamp_from_the_future_or_from_long_ago_is_not_placed() {
        let clock = LocalClock::raw();
        assert_eq!(clock.at_system_ns(system_ns() + 3_600_000_000_000), None);
        assert_eq!(clock.at_system_ns(system_ns() - 3_600_000_000_000), None);
        assert_eq!(LocalClock::system().at_system_ns(7), Some(7));
    }
}
