//! By whose clock entries are stamped, and how far that is ahead of the venue's time: what leaders tell of theirs.
//!
//! A leader tells it again and again, since the two drift apart. So that all replicas go by the same figure for the same entry, one that is told
//! while entries are under way holds only for those stamped a while later, when everybody has heard it; the first of a term for all of it.

use std::collections::VecDeque;

use walras_consensus::Term;
use walras_types::TimeNs;

/// From one telling to the next.
pub(super) const TELL_EVERY_NS: u64 = 200_000_000;
/// How much later entries are stamped for which a telling holds: longer than a message takes.
const HOLDS_AFTER_NS: u64 = 100_000_000;
/// Tellings that are remembered: ten seconds of them, for who is that far behind.
const TOLD_MAX: usize = 64;

/// A leader's clock, against the venue's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderTime {
    /// What the clock that stamps entries shows.
    pub now: TimeNs,
    /// How far that is ahead of the venue's time.
    pub ahead_ns: i64,
    /// How far that may be off, either way.
    pub bound_ns: u64,
}

/// What a leader has told of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) term: Term,
    /// For entries of the term from this time on.
    pub(super) from: TimeNs,
    pub(super) ahead_ns: i64,
    pub(super) bound_ns: u64,
}

/// What all leaders have told of theirs.
#[derive(Debug, Default)]
pub(super) struct LeaderClocks {
    /// By term and time.
    told: VecDeque<Told>,
}

impl LeaderClocks {
    /// What this leader is to tell now.
    pub(super) fn tell(&mut self, term: Term, time: LeaderTime) -> Told {
        let LeaderTime { now, ahead_ns, bound_ns } = time;
        let is_first = self.told.back().is_none_or(|last| last.term < term);
        let from = if is_first { TimeNs(0) } else { TimeNs(now.0.saturating_add(HOLDS_AFTER_NS)) };
        let told = Told { term, from, ahead_ns, bound_ns };
        self.hear(told);
        told
    }

    /// A leader told. What is older than what is known counts for nothing.
    pub(super) fn hear(&mut self, told: Told) {
        if self.told.back().is_some_and(|last| (told.term, told.from) <= (last.term, last.from)) {
            return;
        }
        if self.told.len() == TOLD_MAX {
            self.told.pop_front();
        }
        self.told.push_back(told);
    }

    /// How far the clock that stamped an entry was ahead; of a term whose beginning was not heard, as it was told first. `None` where nothing was told.
    pub(super) fn ahead_ns(&self, term: Term, time: TimeNs) -> Option<i64> {
        let mut first = None;
        for told in self.told.iter().rev().skip_while(|told| told.term > term).take_while(|told| told.term == term) {
            if told.from <= time {
                return Some(told.ahead_ns);
            }
            first = Some(told.ahead_ns);
        }
        first
    }

    /// How far off the figures of this term may be.
    pub(super) fn bound_ns(&self, term: Term) -> Option<u64> {
        self.told.back().filter(|told| told.term == term).map(|told| told.bound_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(now_ns: u64, ahead_ns: i64) -> LeaderTime {
        LeaderTime { now: TimeNs(now_ns), ahead_ns, bound_ns: 300 }
    }

    #[test]
    fn what_is_told_holds_for_the_same_entries_everywhere() {
        let (mut leader, mut follower, mut late) = (LeaderClocks::default(), LeaderClocks::default(), LeaderClocks::default());
        let (term, now_ns) = (Term(3), 1_000_000_000);
        assert_eq!(leader.ahead_ns(term, TimeNs(now_ns)), None);
        follower.hear(leader.tell(term, time(now_ns, 50)));
        let second = leader.tell(term, time(now_ns + TELL_EVERY_NS, 52));
        let holds_from_ns = now_ns + TELL_EVERY_NS + HOLDS_AFTER_NS;
        // Whether the second has been heard or not, entries of its moment go by the first.
        for entry_ns in [now_ns, now_ns + TELL_EVERY_NS, holds_from_ns - 1] {
            assert_eq!((leader.ahead_ns(term, TimeNs(entry_ns)), follower.ahead_ns(term, TimeNs(entry_ns))), (Some(50), Some(50)));
        }
        follower.hear(second);
        late.hear(second);
        for clocks in [&leader, &follower, &late] {
            assert_eq!(clocks.ahead_ns(term, TimeNs(holds_from_ns)), Some(52));
            assert_eq!((clocks.bound_ns(term), clocks.bound_ns(Term(2))), (Some(300), None));
        }
        assert_eq!(late.ahead_ns(term, TimeNs(now_ns)), Some(52), "as near as it knows");
        assert_eq!(follower.ahead_ns(Term(4), TimeNs(holds_from_ns)), None, "another leader's clock is another one");
        // It comes again, and an old one.
        follower.hear(second);
        follower.hear(Told { ahead_ns: 9, from: TimeNs(5), ..second });
        assert_eq!(follower.told.len(), 2);
    }

    #[test]
    fn another_leaders_clock_holds_from_its_first_entry_on() {
        let mut clocks = LeaderClocks::default();
        clocks.tell(Term(3), time(1_000_000_000, 5_000_000));
        clocks.tell(Term(5), time(996_000_000, 0));
        // The log's time does not go back; which clock stamped an entry is known by its term.
        assert_eq!(clocks.ahead_ns(Term(3), TimeNs(1_000_000_000)), Some(5_000_000));
        assert_eq!(clocks.ahead_ns(Term(5), TimeNs(1_000_000_000)), Some(0));
        for round in 0..2 * TOLD_MAX as u64 {
            clocks.tell(Term(5), time(1_000_000_000 + round * TELL_EVERY_NS, 1));
        }
        assert_eq!((clocks.told.len(), clocks.ahead_ns(Term(3), TimeNs(1_000_000_000))), (TOLD_MAX, None));
    }
}
