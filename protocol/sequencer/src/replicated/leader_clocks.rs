//! How far the clock that stamps entries is ahead of the venue's time, as each leader reports of its own.
//!
//! A leader reports it every so often, since the two drift apart. All replicas must use the same figure for the same entry. So a
//! report that is sent while entries are under way applies only to those stamped a while later, when all replicas have it. The
//! first report of a term applies to the whole term.

use std::collections::VecDeque;

use walras_consensus::Term;
use walras_types::TimeNs;

/// From one report to the next.
pub(super) const REPORT_EVERY_NS: u64 = 200_000_000;
/// A report applies to entries stamped so much later: longer than a message takes.
const HOLDS_AFTER_NS: u64 = 100_000_000;
/// Reports that are remembered: ten seconds of them, for who is that far behind.
const REPORTS_MAX: usize = 64;

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

/// What a leader has reported of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockReport {
    pub(super) term: Term,
    /// For entries of the term from this time on.
    pub(super) from: TimeNs,
    pub(super) ahead_ns: i64,
    pub(super) bound_ns: u64,
}

/// The reports of all leaders.
#[derive(Debug, Default)]
pub(super) struct LeaderClocks {
    /// By term and time.
    reports: VecDeque<ClockReport>,
}

impl LeaderClocks {
    /// The report that this leader sends now.
    pub(super) fn report(&mut self, term: Term, time: LeaderTime) -> ClockReport {
        let LeaderTime { now, ahead_ns, bound_ns } = time;
        let is_first = self.reports.back().is_none_or(|last| last.term < term);
        let from = if is_first { TimeNs(0) } else { TimeNs(now.0.saturating_add(HOLDS_AFTER_NS)) };
        let report = ClockReport { term, from, ahead_ns, bound_ns };
        self.hear(report);
        report
    }

    /// Takes a leader's report. One that is older than the last is ignored.
    pub(super) fn hear(&mut self, report: ClockReport) {
        if self.reports.back().is_some_and(|last| (report.term, report.from) <= (last.term, last.from)) {
            return;
        }
        if self.reports.len() == REPORTS_MAX {
            self.reports.pop_front();
        }
        self.reports.push_back(report);
    }

    /// How far the clock that stamped an entry was ahead. If the first reports of the term were lost, the earliest that is known
    /// applies. `None` where there is none.
    pub(super) fn ahead_ns(&self, term: Term, time: TimeNs) -> Option<i64> {
        let mut first = None;
        for report in self.reports.iter().rev().skip_while(|report| report.term > term).take_while(|report| report.term == term) {
            if report.from <= time {
                return Some(report.ahead_ns);
            }
            first = Some(report.ahead_ns);
        }
        first
    }

    /// How far off the figures of this term may be.
    pub(super) fn bound_ns(&self, term: Term) -> Option<u64> {
        self.reports.back().filter(|report| report.term == term).map(|report| report.bound_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(now_ns: u64, ahead_ns: i64) -> LeaderTime {
        LeaderTime { now: TimeNs(now_ns), ahead_ns, bound_ns: 300 }
    }

    #[test]
    fn a_report_applies_to_the_same_entries_everywhere() {
        let (mut leader, mut follower, mut late) = (LeaderClocks::default(), LeaderClocks::default(), LeaderClocks::default());
        let (term, now_ns) = (Term(3), 1_000_000_000);
        assert_eq!(leader.ahead_ns(term, TimeNs(now_ns)), None);
        follower.hear(leader.report(term, time(now_ns, 50)));
        let second = leader.report(term, time(now_ns + REPORT_EVERY_NS, 52));
        let holds_from_ns = now_ns + REPORT_EVERY_NS + HOLDS_AFTER_NS;
        // Whether the second has been heard or not, entries of its moment go by the first.
        for entry_ns in [now_ns, now_ns + REPORT_EVERY_NS, holds_from_ns - 1] {
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
        follower.hear(ClockReport { ahead_ns: 9, from: TimeNs(5), ..second });
        assert_eq!(follower.reports.len(), 2);
    }

    #[test]
    fn another_leaders_clock_holds_from_its_first_entry_on() {
        let mut clocks = LeaderClocks::default();
        clocks.report(Term(3), time(1_000_000_000, 5_000_000));
        clocks.report(Term(5), time(996_000_000, 0));
        // The log's time does not go back; which clock stamped an entry is known by its term.
        assert_eq!(clocks.ahead_ns(Term(3), TimeNs(1_000_000_000)), Some(5_000_000));
        assert_eq!(clocks.ahead_ns(Term(5), TimeNs(1_000_000_000)), Some(0));
        for round in 0..2 * REPORTS_MAX as u64 {
            clocks.report(Term(5), time(1_000_000_000 + round * REPORT_EVERY_NS, 1));
        }
        assert_eq!((clocks.reports.len(), clocks.ahead_ns(Term(3), TimeNs(1_000_000_000))), (REPORTS_MAX, None));
    }
}
