//! Which entries of the log publish what changed, and from when on that may be known.
//!
//! Every replica goes by the log alone, so all of them publish at the same entries and mean the same instants, also one that begins
//! from a state in the middle of the log:
//! - The first entry of each interval of the log's time publishes. Which one that is follows from the entry before it, so a state's
//!   time is enough to go on from.
//! - What an entry shows may be known from its time + d_h on, and not before what any entry before it shows. When d_h shrinks, that
//!   depends on entries that a replica which starts from a snapshot does not know: it waits as if all of them had the greatest
//!   possible delay.
//!
//! The log's time is that of its leader's clock, which may be milliseconds off. Where the venue keeps a time of its own
//! ([`crate::clock`]), leaders tell how far theirs are ahead of it, and [`ReleaseClock`] waits by the venue's: then replicas
//! release together whatever their own clocks show.

/// An instant by the log's time, and by what that is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReleaseTime {
    /// By the clock of the leader that stamped the entry.
    pub log_ns: u64,
    /// How far that clock was ahead of the venue's time; `None` where that is not known: then it is taken for this replica's own
    /// clock.
    pub ahead_ns: Option<i64>,
}

impl ReleaseTime {
    /// The same in the venue's time.
    #[must_use]
    pub fn venue_ns(self) -> Option<u64> {
        self.ahead_ns.map(|ahead_ns| self.log_ns.saturating_add_signed(ahead_ns.saturating_neg()))
    }

    /// How long ago it was, by the venue's time where both that and the leader's clock are known, else by this replica's clock.
    /// Below 0 for what is to come.
    #[must_use]
    pub fn ago_ns(self, system_ns: u64, venue_ns: Option<u64>) -> i64 {
        match (venue_ns, self.venue_ns()) {
            (Some(now_ns), Some(at_ns)) => signed_difference(now_ns, at_ns),
            _ => signed_difference(system_ns, self.log_ns),
        }
    }

    /// How much later it is than another one; below 0 for earlier.
    fn after_ns(self, other: Self) -> i64 {
        match (self.venue_ns(), other.venue_ns()) {
            (Some(this_ns), Some(other_ns)) => signed_difference(this_ns, other_ns),
            _ => signed_difference(self.log_ns, other.log_ns),
        }
    }
}

/// What a replica publishes, and when.
#[derive(Debug)]
pub struct Publications {
    every_ns: u64,
    delay_ns_max: u64,
    /// The first entry from here on publishes.
    next_ns: u64,
    known_from: ReleaseTime,
}

impl Publications {
    /// From the beginning of a log. `every_ns` is the log's time between two publications, `delay_ns_max` the longest d_h that can
    /// be in force; both the same on all replicas.
    #[must_use]
    pub fn new(every_ns: u64, delay_ns_max: u64) -> Self {
        Self { every_ns: every_ns.max(1), delay_ns_max, next_ns: 0, known_from: ReleaseTime::default() }
    }

    /// Goes on from a state of this time, with this delay in force. What led there, in this process or before it, may still be held
    /// elsewhere.
    pub fn begin_from(&mut self, time_ns: u64, delay_ns: u64) {
        self.next_ns = self.interval_after(time_ns);
        let log_ns = time_ns.saturating_add(self.delay_ns_max.max(delay_ns));
        self.hold_until(ReleaseTime { log_ns, ahead_ns: None });
    }

    /// An entry of this time was applied, after which this delay is in force; `ahead_ns` of the clock that stamped it. How long
    /// what it publishes is held, from its time on; `None` when it publishes nothing.
    pub fn on_entry(&mut self, time_ns: u64, delay_ns: u64, ahead_ns: Option<i64>) -> Option<u64> {
        self.hold_until(ReleaseTime { log_ns: time_ns.saturating_add(delay_ns), ahead_ns });
        if time_ns < self.next_ns {
            return None;
        }
        self.next_ns = self.interval_after(time_ns);
        let held_ns = self.known_from.after_ns(ReleaseTime { log_ns: time_ns, ahead_ns });
        Some(u64::try_from(held_ns).unwrap_or(0).max(delay_ns))
    }

    /// From when on anybody may know the state after the last entry.
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

/// The clock by which a replica waits for release times: its own, and from when on it knows the venue's time that one, going on
/// from what its own showed. So what waits meanwhile waits as long as it would have.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReleaseClock {
    /// What it shows less the venue's time; `None` before that was ever known.
    base_ns: Option<i64>,
    /// This replica's own clock less the venue's time, when both were known last.
    system_ahead_ns: i64,
}

impl ReleaseClock {
    /// What it shows when this replica's own clock shows `system_ns`, and the venue's time is this or not known.
    pub fn now_ns(&mut self, system_ns: u64, venue_ns: Option<u64>) -> u64 {
        let Some(venue_ns) = venue_ns else {
            return self
                .base_ns
                .map_or(system_ns, |base_ns| system_ns.saturating_add_signed(base_ns.saturating_sub(self.system_ahead_ns)));
        };
        self.system_ahead_ns = signed_difference(system_ns, venue_ns);
        venue_ns.saturating_add_signed(*self.base_ns.get_or_insert(self.system_ahead_ns))
    }

    /// What it will show at an instant.
    #[must_use]
    pub fn at_ns(&self, time: ReleaseTime) -> u64 {
        let Some(base_ns) = self.base_ns else { return time.log_ns };
        let ahead_ns = time.ahead_ns.unwrap_or(self.system_ahead_ns);
        time.log_ns.saturating_add_signed(base_ns.saturating_sub(ahead_ns))
    }
}

/// `later_ns - earlier_ns`, as far as 64 bits hold it.
fn signed_difference(later_ns: u64, earlier_ns: u64) -> i64 {
    let difference = i128::from(later_ns) - i128::from(earlier_ns);
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}
