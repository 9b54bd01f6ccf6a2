//! Which requests are fresh: sent a moment ago, and not seen before.
//!
//! A request brings many times its own bytes to the address that it seems to come from. Nobody without the key can make one, but
//! somebody may send one again that he has seen, from an address that is another's. So a node answers in full what is fresh, and little
//! else.

use std::collections::BTreeSet;

use crate::packet::SEAL_BYTES;

/// A request is fresh for so long after it was sent, and as long before that, since clocks differ.
pub const FRESH_NS: u64 = 10_000_000_000;
/// Requests that are remembered. Of more in twice [`FRESH_NS`] the earliest are forgotten, and all that were sent as early are not fresh.
const SEEN_MAX: usize = 1 << 16;

/// The requests that were seen lately, in bounded memory.
#[derive(Debug)]
pub struct FreshRequests {
    /// When each was sent, and its seal.
    seen: BTreeSet<(u64, [u8; SEAL_BYTES])>,
    seen_max: usize,
    /// Those that were sent no later than this may have been seen.
    forgotten_ns: u64,
}

impl Default for FreshRequests {
    fn default() -> Self {
        Self::with_room(SEEN_MAX)
    }
}

impl FreshRequests {
    const fn with_room(seen_max: usize) -> Self {
        Self { seen: BTreeSet::new(), seen_max, forgotten_ns: 0 }
    }

    /// A sealed request came that was sent at `sent_ns`: whether it is fresh, which it is once. Both times are in ns since the Unix epoch.
    pub fn take(&mut self, now_ns: u64, sent_ns: u64, seal: [u8; SEAL_BYTES]) -> bool {
        let (earliest, latest) = (now_ns.saturating_sub(FRESH_NS), now_ns.saturating_add(FRESH_NS));
        // What is outside of the window by this clock is not fresh anyway. Where it was set back, that concerns the latest ones too.
        while self.seen.first().is_some_and(|(sent_ns, _)| *sent_ns < earliest) {
            self.seen.pop_first();
        }
        while self.seen.last().is_some_and(|(sent_ns, _)| *sent_ns > latest) {
            self.seen.pop_last();
        }
        if self.forgotten_ns > latest {
            self.forgotten_ns = 0;
        }
        let is_recent = (earliest..=latest).contains(&sent_ns) && sent_ns > self.forgotten_ns;
        if !is_recent || !self.seen.insert((sent_ns, seal)) {
            return false;
        }
        if self.seen.len() > self.seen_max
            && let Some((forgotten_ns, _)) = self.seen.pop_first()
        {
            self.forgotten_ns = forgotten_ns;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: u64 = 1_700_000_000_000_000_000;

    fn seal(number: u8) -> [u8; SEAL_BYTES] {
        [number; SEAL_BYTES]
    }

    #[test]
    fn a_request_is_fresh_once_and_for_a_while() {
        let mut fresh = FreshRequests::default();
        assert!(fresh.take(NOW, NOW, seal(1)) && !fresh.take(NOW, NOW, seal(1)));
        assert!(fresh.take(NOW, NOW, seal(2)) && fresh.take(NOW, NOW + 1, seal(1)), "others");
        assert!(!fresh.take(NOW + FRESH_NS, NOW, seal(1)) && fresh.take(NOW + FRESH_NS, NOW, seal(3)));
        assert!(!fresh.take(NOW + FRESH_NS + 1, NOW, seal(4)), "it is too old");
        assert!(
            fresh.take(NOW, NOW + FRESH_NS, seal(5)) && !fresh.take(NOW, NOW + FRESH_NS + 1, seal(6)),
            "clocks differ a little"
        );
        assert!(!fresh.take(NOW, 0, seal(7)), "it says no time");
    }

    #[test]
    fn in_bounded_memory_the_earliest_are_not_fresh_any_more() {
        let mut fresh = FreshRequests::with_room(2);
        assert!((1..=3).all(|at| fresh.take(NOW, NOW + at, seal(1))));
        assert!(!fresh.take(NOW, NOW + 1, seal(1)) && !fresh.take(NOW, NOW + 1, seal(2)), "the first one is forgotten");
        assert!(!fresh.take(NOW, NOW + 3, seal(1)) && fresh.take(NOW, NOW + 4, seal(1)));
        // Old ones give their places away by themselves.
        assert!(fresh.take(NOW + 2 * FRESH_NS, NOW + 2 * FRESH_NS, seal(1)) && fresh.seen.len() == 1);
        // A clock that was wrong and is set back keeps nobody out.
        assert!((1..=3).all(|at| fresh.take(2 * NOW, 2 * NOW + at, seal(1))));
        assert!(fresh.take(NOW + 3 * FRESH_NS, NOW + 3 * FRESH_NS, seal(1)) && fresh.seen.len() == 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Next to all requests that were ever fresh: by a clock that goes on none is so twice, whatever is forgotten.
        #[test]
        fn none_is_fresh_twice(
            room in 1_usize..8, requests in prop::collection::vec((0..FRESH_NS / 2, 0..4 * FRESH_NS, 0_u8..3), 1..100),
        ) {
            let (mut fresh, mut now_ns, mut all) = (FreshRequests::with_room(room), NOW, BTreeSet::new());
            for (later_ns, before_ns, number) in requests {
                now_ns += later_ns;
                let sent_ns = (now_ns + FRESH_NS - before_ns) / FRESH_NS * FRESH_NS;
                let is_fresh = fresh.take(now_ns, sent_ns, seal(number));
                prop_assert!(!is_fresh || all.insert((sent_ns, number)), "twice");
                prop_assert!(!is_fresh || sent_ns.abs_diff(now_ns) <= FRESH_NS);
                prop_assert!(fresh.seen.len() <= room);
            }
        }
    }
}
