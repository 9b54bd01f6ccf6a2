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

/// How many buckets are checked for idleness when a new caller needs one.
const SWEEP_COUNT: usize = 16;

/// A bucket for each of a bounded number of callers. A bucket that is full again holds no information, so a new caller may replace
/// it.
#[derive(Clone, Debug)]
pub struct Throttle<K> {
    rate: Rate,
    max: usize,
    buckets: BTreeMap<K, TokenBucket>,
    /// Where the next sweep starts.
    swept: Option<K>,
}

impl<K: Copy + Ord> Throttle<K> {
    /// For `max` callers at a time.
    #[must_use]
    pub fn new(rate: Rate, max: usize) -> Self {
        Self { rate, max, buckets: BTreeMap::new(), swept: None }
    }

    /// Takes a caller's tokens, all or none.
    ///
    /// # Errors
    /// It has fewer, or too many other callers are active.
    pub fn take(&mut self, caller: K, now_ns: u64, tokens: u32) -> Result<(), Denied> {
        if let Some(bucket) = self.buckets.get_mut(&caller) {
            return bucket.take(self.rate, now_ns, tokens);
        }
        self.sweep(now_ns);
        if self.buckets.len() >= self.max {
            // All remembered callers are active. A bucket can become idle after one token's time at the earliest.
            let retry_after_ns = Some(PARTS.div_ceil(u64::from(self.rate.per_second.get())));
            return Err(Denied { retry_after_ns });
        }
        let mut bucket = TokenBucket::full(self.rate, now_ns);
        let taken = bucket.take(self.rate, now_ns, tokens);
        self.buckets.insert(caller, bucket);
        taken
    }

    pub(crate) fn forget(&mut self, caller: &K) {
        self.buckets.remove(caller);
    }

    pub(crate) fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Checks the next few buckets, in rotation, and forgets the full ones.
    fn sweep(&mut self, now_ns: u64) {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = self.swept.map_or(Unbounded, Excluded);
        let mut seen = [None; SWEEP_COUNT];
        let mut count = 0;
        for (slot, (&caller, bucket)) in seen.iter_mut().zip(self.buckets.range_mut((from, Unbounded))) {
            *slot = Some((caller, bucket.is_full(self.rate, now_ns)));
            count += 1;
        }
        self.swept = if count < SWEEP_COUNT { None } else { seen[SWEEP_COUNT - 1].map(|(caller, _)| caller) };
        for (caller, is_full) in seen.into_iter().flatten() {
            if is_full {
                self.buckets.remove(&caller);
            }
        }
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
        assert_eq!(throttle.take(40, 0, 1), denied(1_000_000_000));
        // A caller whom it knows is served all the same.
        assert_eq!(throttle.take(7, 0, 1), Ok(()));
        assert_eq!(throttle.take(7, 0, 1), denied(1_000_000_000));
        // After a second all but number 7 are idle: newcomers sweep them away, and 7's debt is kept.
        for newcomer in 41..60 {
            throttle.take(newcomer, 1_000_000_000, 2).unwrap();
        }
        assert!(throttle.len() <= 40);
        assert_eq!(throttle.take(7, 1_000_000_000, 2), denied(1_000_000_000));
        throttle.forget(&7);
        assert_eq!(throttle.take(7, 1_000_000_000, 2), Ok(()));
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
