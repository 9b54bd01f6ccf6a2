//! Clocks. Simulated time is what passes; a machine's clock shows something near it, or not.

/// Simulated time begins here, in nanoseconds since the Unix epoch.
pub(crate) const EPOCH_NS: u64 = 1_700_000_000_000_000_000;

/// How far a clock may be set back where orders are signed by themselves. Their requests carry nonces, of which a restart remembers
/// nothing: less than the gateway lets stamps lie ahead, or a restart could take one again (see `GatewayConfig::stamps_from_ns`).
/// Clients with sessions, which the log remembers, allow as much as forward.
const BEHIND_NS_MAX: i64 = 800_000_000;

/// How far a clock may be set, forward or back.
pub(crate) const FAR_NS_MAX: i64 = 3_600_000_000_000;

/// A machine's clock: it counts, perhaps too fast or too slow, and shows the time of day, perhaps a wrong one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    offset_ns: i64,
    /// Since then it counts at this rate.
    since_ns: u64,
    count_at_since_ns: u64,
    fast_ppm: i64,
}

const MILLION: i128 = 1_000_000;

impl Clock {
    /// The time of day.
    pub(crate) fn read(self, now_ns: u64) -> u64 {
        (EPOCH_NS + self.count(now_ns)).saturating_add_signed(self.offset_ns)
    }

    /// What it has counted: never goes back, whatever becomes of the time of day.
    pub(crate) fn count(self, now_ns: u64) -> u64 {
        let elapsed_ns = now_ns - self.since_ns;
        if self.fast_ppm == 0 {
            return self.count_at_since_ns + elapsed_ns;
        }
        let elapsed = i128::from(elapsed_ns) * (MILLION + i128::from(self.fast_ppm)) / MILLION;
        self.count_at_since_ns + u64::try_from(elapsed).expect("it counts forward, for less than centuries")
    }

    /// When it will have counted so far.
    pub(crate) fn when(self, count_ns: u64) -> u64 {
        let left_ns = count_ns.saturating_sub(self.count_at_since_ns);
        if self.fast_ppm == 0 {
            return self.since_ns.saturating_add(left_ns);
        }
        let rate = MILLION + i128::from(self.fast_ppm);
        let left = i128::from(left_ns);
        let elapsed = (left * MILLION + rate - 1) / rate;
        self.since_ns.saturating_add(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }

    /// Counts faster, or slower, by so many millionths from now on.
    pub(crate) fn set_rate(&mut self, now_ns: u64, fast_ppm: i64) {
        (self.count_at_since_ns, self.since_ns, self.fast_ppm) = (self.count(now_ns), now_ns, fast_ppm);
    }

    /// Jumps, forward or as far back as orders that are signed by themselves allow.
    pub(crate) fn jump(&mut self, by_ns: i64) {
        self.offset_ns = (self.offset_ns + by_ns).clamp(-BEHIND_NS_MAX, FAR_NS_MAX);
    }

    /// Jumps, as far forward as back.
    pub(crate) fn jump_far(&mut self, by_ns: i64) {
        self.offset_ns = (self.offset_ns + by_ns).clamp(-FAR_NS_MAX, FAR_NS_MAX);
    }

    /// Shows the time again.
    pub(crate) fn set_right(&mut self, now_ns: u64) {
        self.offset_ns = i64::try_from(i128::from(now_ns) - i128::from(self.count(now_ns))).expect("it is near");
    }

    /// How far the time of day is off.
    pub(crate) fn error_ns(self, now_ns: u64) -> u64 {
        self.read(now_ns).abs_diff(EPOCH_NS + now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_drifts_counts_on_and_can_be_set_right() {
        let mut clock = Clock::default();
        for (now_ns, fast_ppm) in [(1_000, 50_000), (2_000_000, -50_000), (5_000_000, 0)] {
            let before = clock.count(now_ns);
            clock.set_rate(now_ns, fast_ppm);
            assert_eq!(clock.count(now_ns), before);
            for count_ns in before..before + 50 {
                let at_ns = clock.when(count_ns);
                assert!(clock.count(at_ns) >= count_ns && (at_ns == now_ns || clock.count(at_ns - 1) < count_ns));
            }
        }
        assert_ne!(clock.error_ns(6_000_000), 0);
        clock.set_right(6_000_000);
        assert_eq!(clock.error_ns(7_000_000), 0);
    }
}
