//! Decides which log entries publish market data, and when it may be released.
//!
//! Both depend on the log alone, so all replicas publish at the same entries and release at the same instants, even a replica that
//! starts from a snapshot in the middle of the log:
//! - The first entry of each interval of log time publishes. Whether an entry is the first follows from the time of the entry
//!   before it, so a snapshot's time is enough to continue from.
//! - The data of an entry is released at its time + d_h, and not before earlier data. When d_h shrinks, this depends on entries
//!   that a replica started from a snapshot does not have; it waits as if they had the maximum delay.
//!
//! Log time is the leader's clock, which may be off by milliseconds. If the venue measures its own time ([`crate::clock`]), leaders
//! report their clock's lead over it, and [`ReleaseClock`] waits by venue time. Replicas then release together, whatever their own
//! clocks show.

/// An instant in log time, with the lead of the clock that stamped it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReleaseTime {
    /// Log time, by the clock of the leader that stamped the entry.
    pub log_ns: u64,
    /// That clock's lead over venue time. If unknown (`None`), log time is compared with this replica's own clock.
    pub ahead_ns: Option<i64>,
}

impl ReleaseTime {
    /// The instant in venue time.
    #[must_use]
    pub fn venue_ns(self) -> Option<u64> {
        self.ahead_ns.map(|ahead_ns| self.log_ns.saturating_add_signed(ahead_ns.saturating_neg()))
    }

    /// The time since this instant; negative if it lies in the future. By venue time if both that and the leader's lead are known,
    /// otherwise by this replica's clock.
    #[must_use]
    pub fn ago_ns(self, system_ns: u64, venue_ns: Option<u64>) -> i64 {
        match (venue_ns, self.venue_ns()) {
            (Some(now_ns), Some(at_ns)) => signed_difference(now_ns, at_ns),
            _ => signed_difference(system_ns, self.log_ns),
        }
    }

    /// How much later it is than `other`; negative if earlier.
    fn after_ns(self, other: Self) -> i64 {
        match (self.venue_ns(), other.venue_ns()) {
            (Some(this_ns), Some(other_ns)) => signed_difference(this_ns, other_ns),
            _ => signed_difference(self.log_ns, other.log_ns),
        }
    }
}

/// Decides what a replica publishes and when.
#[derive(Debug)]
pub struct Publications {
    every_ns: u64,
    delay_ns_max: u64,
    /// The first entry at or after this log time publishes.
    next_ns: u64,
    known_from: ReleaseTime,
}

impl Publications {
    /// Starts at the beginning of a log. `every_ns` is the log time between two publications; `delay_ns_max` is the longest
    /// possible d_h. Both must be the same on all replicas.
    #[must_use]
    pub fn new(every_ns: u64, delay_ns_max: u64) -> Self {
        Self { every_ns: every_ns.max(1), delay_ns_max, next_ns: 0, known_from: ReleaseTime::default() }
    }

    /// Continues from a state at `time_ns`, with d_h = `delay_ns`. Other replicas may still hold the data of entries before that
    /// state.
    pub fn begin_from(&mut self, time_ns: u64, delay_ns: u64) {
        self.next_ns = self.interval_after(time_ns);
        let log_ns = time_ns.saturating_add(self.delay_ns_max.max(delay_ns));
        self.hold_until(ReleaseTime { log_ns, ahead_ns: None });
    }

    /// Called after each applied entry, with its log time, the d_h in force after it, and the lead of the clock that stamped it. If
    /// the entry publishes, returns how long the data is held, counted from the entry's time.
    pub fn on_entry(&mut self, time_ns: u64, delay_ns: u64, ahead_ns: Option<i64>) -> Option<u64> {
        self.hold_until(ReleaseTime { log_ns: time_ns.saturating_add(delay_ns), ahead_ns });
        if time_ns < self.next_ns {
            return None;
        }
        self.next_ns = self.interval_after(time_ns);
        let held_ns = self.known_from.after_ns(ReleaseTime { log_ns: time_ns, ahead_ns });
        Some(u64::try_from(held_ns).unwrap_or(0).max(delay_ns))
    }

    /// When the state after the last entry may be released.
    #[must_use]
    pub fn known_from(&self) -> ReleaseTime {
        self.known_from
    }

    fn hold_until(&mut self, time: ReleaseTime) {
        if time.after_ns(self.known_from) >= 0 {
            self.known_from = time;
        }
    }

    fn interval_after(&self, time_ns: u64) -> u64 {
        (time_ns / self.every_ns).saturating_add(1).saturating_mul(self.every_ns)
    }
}

/// The clock by which a replica waits for release times: its own clock until venue time is known, then venue time, continued from
/// the last reading without a jump. So data that is already held waits for its original duration.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReleaseClock {
    /// Reading minus venue time; `None` until venue time is known.
    base_ns: Option<i64>,
    /// This replica's clock minus venue time, when both were last known.
    system_ahead_ns: i64,
}

impl ReleaseClock {
    /// The reading when this replica's own clock shows `system_ns`. `venue_ns` is the venue time, if known.
    pub fn now_ns(&mut self, system_ns: u64, venue_ns: Option<u64>) -> u64 {
        let Some(venue_ns) = venue_ns else {
            return self
                .base_ns
                .map_or(system_ns, |base_ns| system_ns.saturating_add_signed(base_ns.saturating_sub(self.system_ahead_ns)));
        };
        self.system_ahead_ns = signed_difference(system_ns, venue_ns);
        venue_ns.saturating_add_signed(*self.base_ns.get_or_insert(self.system_ahead_ns))
    }

    /// The reading at an instant.
    #[must_use]
    pub fn at_ns(&self, time: ReleaseTime) -> u64 {
        let Some(base_ns) = self.base_ns else { return time.log_ns };
        let ahead_ns = time.ahead_ns.unwrap_or(self.system_ahead_ns);
        time.log_ns.saturating_add_signed(base_ns.saturating_sub(ahead_ns))
    }
}

/// `later_ns - earlier_ns`, saturated to 64 bits.
fn signed_difference(later_ns: u64, earlier_ns: u64) -> i64 {
    let difference = i128::from(later_ns) - i128::from(earlier_ns);
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}
