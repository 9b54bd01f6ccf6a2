//! Token buckets in integers.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// Parts of a token that a bucket counts in: at one token a second, one per nanosecond.
const PARTS: u64 = 1_000_000_000;

/// How many requests: `burst` at once, `per_second` in the long run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Tokens that come back each second.
    pub per_second: NonZeroU32,
    /// Tokens that a full bucket holds.
    pub burst: NonZeroU32,
}

impl Rate {
    /// A rate; `None` when either is zero.
    #[must_use]
    pub const fn new(per_second: u32, burst: u32) -> Option<Self> {
        match (NonZeroU32::new(per_second), NonZeroU32::new(burst)) {
            (Some(per_second), Some(burst)) => Some(Self { per_second, burst }),
            (None, _) | (_, None) => None,
        }
    }

    const fn capacity_parts(self) -> u64 {
        self.burst.get() as u64 * PARTS
    }
}

/// Too many requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied {
    /// How long until the request would pass, if no other comes first; `None` if it asks for more than a full bucket holds.
    pub retry_after_ns: Option<u64>,
}

/// A bucket that fills with time and empties with requests. Exact: no part of a token is ever rounded away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    parts: u64,
    updated_ns: u64,
}

impl TokenBucket {
    /// A full one.
    #[must_use]
    pub const fn full(rate: Rate, now_ns: u64) -> Self {
        Self { parts: rate.capacity_parts(), updated_ns: now_ns }
    }

    /// Takes tokens, all or none. An earlier `now_ns` than the last adds nothing and takes nothing back.
    pub fn take(&mut self, rate: Rate, now_ns: u64, tokens: u32) -> Result<(), Denied> {
        self.refill(rate, now_ns);
        let needed = u64::from(tokens) * PARTS;
        if needed > rate.capacity_parts() {
            return Err(Denied { retry_after_ns: None });
        }
        match self.parts.checked_sub(needed) {
            Some(parts) => {
                self.parts = parts;
                Ok(())
            }
            None => {
                let missing = needed - self.parts;
                Err(Denied { retry_after_ns: Some(missing.div_ceil(u64::from(rate.per_second.get()))) })
            }
        }
    }

    fn refill(&mut self, rate: Rate, now_ns: u64) {
        // One nanosecond brings `per_second` parts. 2^64 * 2^32 fits 128 bits; a bucket, 2^32 * 10^9, fits 64.
        let elapsed_ns = now_ns.saturating_sub(self.updated_ns);
        let gained = u128::from(elapsed_ns) * u128::from(rate.per_second.get());
        let parts = (u128::from(self.parts) + gained).min(u128::from(rate.capacity_parts()));
        self.parts = u64::try_from(parts).expect("a bucket's capacity fits 64 bits");
        self.updated_ns = self.updated_ns.max(now_ns);
    }

    fn is_full(&mut self, rate: Rate, now_ns: u64) -> bool {
        self.refill(rate, now_ns);
        self.parts == rate.capacity_parts()
    }
}

/// How many callers are looked at when a new one comes.
const SWEEP_COUNT: usize = 16;
/// In so many seconds as many callers may take the places of others as there are places.
const KEPT_S: usize = 4;
/// One in so many places may be taken by others at once.
const SHARED_ONE_IN: usize = 16;
/// A caller that asked more than once keeps its place until it was idle for so long, as far as others give theirs.
const IDLE_NS: u64 = 60_000_000_000;

/// What is known of a caller.
#[derive(Clone, Copy, Debug)]
struct Caller {
    bucket: TokenBucket,
    /// When it asked last.
    asked_ns: u64,
    /// Whether it asked more than once.
    has_returned: bool,
}

impl Caller {
    fn stays(&self, now_ns: u64) -> bool {
        self.has_returned && now_ns < self.asked_ns.saturating_add(IDLE_NS)
    }
}

/// A bucket for each of a bounded number of callers. A bucket that is full again holds no information, so a new caller may replace it.
///
/// Where none is full, a new caller takes the place of another one all the same: of those that came once, or not for a minute, before
/// others, and of those that were idle for long before those that were not. For that there is an allowance which all new callers share,
/// and each of them begins with one token. So no crowd of callers keeps others out for long, and it displaces no caller that comes again
/// and again.
#[derive(Clone, Debug)]
pub struct Throttle<K> {
    rate: Rate,
    max: usize,
    callers: BTreeMap<K, Caller>,
    /// Who was looked at last.
    swept: Option<K>,
    /// What new callers share that take the places of others.
    shared_rate: Rate,
    shared: TokenBucket,
    /// The last time that was given, and how much has passed: none while the clock is set back.
    last_ns: u64,
    passed_ns: u64,
}

impl<K: Copy + Ord> Throttle<K> {
    /// For `max` callers at a time, at least 1.
    #[must_use]
    pub fn new(rate: Rate, max: usize) -> Self {
        let max = max.max(1);
        let at_least_one = |count: usize| NonZeroU32::new(u32::try_from(count).unwrap_or(u32::MAX)).unwrap_or(NonZeroU32::MIN);
        let shared_rate = Rate { per_second: at_least_one(max / KEPT_S), burst: at_least_one(max.div_ceil(SHARED_ONE_IN)) };
        let shared = TokenBucket::full(shared_rate, 0);
        Self { rate, max, callers: BTreeMap::new(), swept: None, shared_rate, shared, last_ns: 0, passed_ns: 0 }
    }

    /// Takes a caller's tokens, all or none. Where the clock was set back, time goes on from there.
    ///
    /// # Errors
    /// It has fewer, or it is new and too many others came lately.
    pub fn take(&mut self, caller: K, now_ns: u64, tokens: u32) -> Result<(), Denied> {
        self.passed_ns = self.passed_ns.saturating_add(now_ns.saturating_sub(self.last_ns));
        self.last_ns = now_ns;
        let now_ns = self.passed_ns;
        if let Some(known) = self.callers.get_mut(&caller) {
            (known.asked_ns, known.has_returned) = (now_ns, true);
            return known.bucket.take(self.rate, now_ns, tokens);
        }
        let gives_way = self.sweep(now_ns);
        let mut bucket = TokenBucket::full(self.rate, now_ns);
        if self.callers.len() >= self.max {
            self.shared.take(self.shared_rate, now_ns, 1)?;
            if let Some(gone) = gives_way {
                self.callers.remove(&gone);
            }
            bucket.parts = PARTS;
        }
        let taken = bucket.take(self.rate, now_ns, tokens);
        self.callers.insert(caller, Caller { bucket, asked_ns: now_ns, has_returned: false });
        taken
    }

    pub(crate) fn forget(&mut self, caller: &K) {
        self.callers.remove(caller);
    }

    pub(crate) fn len(&self) -> usize {
        self.callers.len()
    }

    /// Looks at the next few callers, in rotation, and forgets those whose buckets are full and who do not stay. Of the others, who gives
    /// way first.
    fn sweep(&mut self, now_ns: u64) -> Option<K> {
        use std::ops::Bound::{Excluded, Unbounded};
        let after = self.callers.range((self.swept.map_or(Unbounded, Excluded), Unbounded));
        let before = self.swept.map(|swept| self.callers.range(..=swept)).into_iter().flatten();
        let mut seen = [None; SWEEP_COUNT];
        for (slot, (&caller, known)) in seen.iter_mut().zip(after.chain(before)) {
            *slot = Some((caller, *known));
        }
        let mut gives_way = None;
        for (caller, mut known) in seen.into_iter().flatten() {
            self.swept = Some(caller);
            let stays = known.stays(now_ns);
            if !stays && known.bucket.is_full(self.rate, now_ns) {
                self.callers.remove(&caller);
            } else {
                let rank = (stays, known.asked_ns, caller);
                gives_way = Some(gives_way.map_or(rank, |first: (bool, u64, K)| first.min(rank)));
            }
        }
        gives_way.map(|(_, _, caller)| caller)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rate(per_second: u32, burst: u32) -> Rate {
        Rate::new(per_second, burst).unwrap()
    }

    fn denied(retry_after_ns: u64) -> Result<(), Denied> {
        Err(Denied { retry_after_ns: Some(retry_after_ns) })
    }

    #[test]
    fn a_bucket_gives_its_burst_then_its_rate() {
        let rate = rate(3, 2);
        let mut bucket = TokenBucket::full(rate, 100);
        assert_eq!(bucket.take(rate, 100, 2), Ok(()));
        assert_eq!(bucket.take(rate, 100, 1), denied(333_333_334));
        assert_eq!(bucket.take(rate, 100 + 333_333_333, 1), denied(1));
        assert_eq!(bucket.take(rate, 100 + 333_333_334, 1), Ok(()));
        // Time that goes back is no time; more than a bucketful never comes.
        assert_eq!(bucket.take(rate, 0, 1), denied(333_333_333));
        assert_eq!(bucket.take(rate, 100 + 333_333_334, 1), denied(333_333_333));
        assert_eq!(bucket.take(rate, u64::MAX, 3), Err(Denied { retry_after_ns: None }));
        assert_eq!(bucket.take(rate, u64::MAX, 2), Ok(()));
        assert_eq!(bucket.take(rate, u64::MAX, 0), Ok(()));
        assert_eq!(Rate::new(0, 1), None);
        assert_eq!(Rate::new(1, 0), None);
    }

    #[test]
    fn extremes_do_not_overflow() {
        let widest = rate(u32::MAX, u32::MAX);
        let mut bucket = TokenBucket::full(widest, 0);
        assert_eq!(bucket.take(widest, 0, u32::MAX), Ok(()));
        assert_eq!(bucket.take(widest, 0, u32::MAX), denied(1_000_000_000));
        assert_eq!(bucket.take(widest, u64::MAX, u32::MAX), Ok(()));
        let slowest = rate(1, u32::MAX);
        let mut bucket = TokenBucket::full(slowest, 0);
        assert_eq!(bucket.take(slowest, 0, u32::MAX), Ok(()));
        assert_eq!(bucket.take(slowest, 0, u32::MAX), denied(u64::from(u32::MAX) * PARTS));
    }

    #[test]
    fn idle_callers_give_way_and_busy_ones_do_not() {
        let rate = rate(1, 2);
        let mut throttle = Throttle::new(rate, 40);
        for caller in 0..40u32 {
            throttle.take(caller, 0, 1).unwrap();
        }
        // A caller whom it knows is served all the same.
        assert_eq!(throttle.take(7, 0, 1), Ok(()));
        assert_eq!(throttle.take(7, 0, 1), denied(1_000_000_000));
        // No other one has a full bucket. New ones take places, a few at once, and have one token.
        let taken: Vec<_> = (40..45).map(|caller| throttle.take(caller, 0, 1)).collect();
        assert_eq!(taken, [Ok(()), Ok(()), Ok(()), denied(100_000_000), denied(100_000_000)]);
        assert_eq!((throttle.take(40, 0, 1), throttle.len()), (denied(1_000_000_000), 40));
        // After a second all but number 7 and those are idle: newcomers sweep them away, and 7's debt is kept.
        for newcomer in 50..69 {
            throttle.take(newcomer, 1_000_000_000, 2).unwrap();
        }
        assert!(throttle.len() <= 40);
        assert_eq!(throttle.take(7, 1_000_000_000, 2), denied(1_000_000_000));
        throttle.forget(&7);
        assert_eq!(throttle.take(7, 1_000_000_000, 2), Ok(()));
    }

    #[test]
    fn a_clock_that_is_set_back_takes_nothing_away() {
        const SECOND: u64 = 1_000_000_000;
        let mut throttle = Throttle::new(rate(10, 1), 2);
        assert_eq!(throttle.take(1, 7_200 * SECOND, 1), Ok(()));
        assert_eq!(throttle.take(1, SECOND, 1), denied(100_000_000));
        assert_eq!(throttle.take(1, SECOND + 100_000_000, 1), Ok(()));
    }

    /// A thousand new callers a second come, each of them once, to 64 places with one token a second. One that was there before is served
    /// as often as ever, and one that comes then after some tries.
    #[test]
    fn callers_that_come_once_keep_nobody_out() {
        let mut throttle = Throttle::new(rate(1, 3), 64);
        let (mut flooded, mut tries, mut served_ms) = (0, 0, None);
        for ms in 0..10_000_u64 {
            let now_ns = ms * 1_000_000;
            if ms % 1_000 == 0 {
                assert_eq!(throttle.take(0, now_ns, 1), Ok(()), "{ms} ms");
            }
            match served_ms {
                None if ms > 5_000 && ms % 7 == 0 => {
                    tries += 1;
                    served_ms = throttle.take(1, now_ns, 1).is_ok().then_some(ms);
                }
                // It comes back soon, and then each second.
                Some(served_ms) if (ms - served_ms) % 1_000 == 50 => {
                    assert_eq!(throttle.take(1, now_ns, 1), Ok(()), "{ms} ms");
                }
                None | Some(_) => {}
            }
            if ms > 2_000 {
                flooded += u64::from(throttle.take(10 + ms, now_ns, 1).is_ok());
            }
            assert!(throttle.len() <= 64);
        }
        assert!(served_ms.is_some(), "not after {tries} tries");
        // All places, what comes back to each in eight seconds, and what new ones share.
        assert!((128..=64 + 64 * 8 + 16 * 8 + 4).contains(&flooded), "{flooded} of 8,000");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn never_more_than_burst_and_rate_allow_and_retry_after_is_exact(
            per_second in 1u32..50, burst in 1u32..20, takes in prop::collection::vec((0u64..200_000_000, 0u32..25), 1..100),
        ) {
            let rate = rate(per_second, burst);
            let mut bucket = TokenBucket::full(rate, 0);
            let (mut now_ns, mut taken) = (0u64, 0u128);
            for (step_ns, tokens) in takes {
                now_ns += step_ns;
                let before = bucket;
                match bucket.take(rate, now_ns, tokens) {
                    Ok(()) => taken += u128::from(tokens),
                    Err(Denied { retry_after_ns: None }) => prop_assert!(tokens > burst),
                    Err(Denied { retry_after_ns: Some(wait_ns) }) => {
                        let (mut early, mut just) = (before, before);
                        prop_assert!(early.take(rate, now_ns + wait_ns - 1, tokens).is_err());
                        prop_assert!(just.take(rate, now_ns + wait_ns, tokens).is_ok());
                    }
                }
                let allowed = u128::from(burst) * u128::from(PARTS) + u128::from(now_ns) * u128::from(per_second);
                prop_assert!(taken * u128::from(PARTS) <= allowed);
            }
        }
    }
}
