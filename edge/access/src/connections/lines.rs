//! Rate limit for log lines that unauthenticated clients can cause: some lines of each kind, then a count of the others.

use std::collections::BTreeMap;
use std::fmt;

use walras_gateway::{Rate, TokenBucket};

/// Limit on lines of one kind.
const RATE: Rate = Rate::new(5, 20).expect("neither is zero");
/// A count of suppressed lines is written this long after the first of them.
const SUMMARY_AFTER_NS: u64 = 5_000_000_000;

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A connection without an account ended.
    StrangerEnded,
    /// A connection of an account ended.
    AccountEnded,
    /// A connection ended for another one.
    MadeRoom,
    /// A connection was closed because it was too slow.
    TooSlow,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::StrangerEnded => "connections that had not logged on ended",
            Self::AccountEnded => "connections of accounts ended",
            Self::MadeRoom => "connections were closed to make room for new ones",
            Self::TooSlow => "connections were closed because they did nothing in time",
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct OfKind {
    bucket: TokenBucket,
    left_out: u64,
    left_out_since_ns: u64,
}

/// The recently written lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines(BTreeMap<Kind, OfKind>);

impl Lines {
    /// Whether to write a line of this kind now; otherwise it is counted.
    pub(crate) fn may_say(&mut self, now_ns: u64, kind: Kind) -> bool {
        let fresh = || OfKind { bucket: TokenBucket::full(RATE, now_ns), left_out: 0, left_out_since_ns: 0 };
        let of_kind = self.0.entry(kind).or_insert_with(fresh);
        if of_kind.bucket.take(RATE, now_ns, 1).is_ok() {
            return true;
        }
        if of_kind.left_out == 0 {
            of_kind.left_out_since_ns = now_ns;
        }
        of_kind.left_out += 1;
        false
    }

    /// Counts of suppressed lines that are due.
    pub(crate) fn summaries(&mut self, now_ns: u64) -> impl Iterator<Item = Summary> {
        self.0.iter_mut().filter_map(move |(kind, of_kind)| {
            let is_due = of_kind.left_out > 0 && now_ns >= of_kind.left_out_since_ns.saturating_add(SUMMARY_AFTER_NS);
            is_due.then(|| Summary { kind: *kind, count: std::mem::take(&mut of_kind.left_out) })
        })
    }
}

/// A count of suppressed lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    kind: Kind,
    count: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "and {} more {}", grouped(self.count), self.kind.name())
    }
}

/// With a comma between thousands.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_flood_of_one_kind_is_counted_and_hides_no_other() {
        let mut lines = Lines::default();
        let said = (0..5_432).filter(|at| lines.may_say(*at, Kind::StrangerEnded)).count();
        assert_eq!(said, 20);
        assert!(lines.may_say(5_432, Kind::AccountEnded));
        assert_eq!(lines.summaries(5_432).count(), 0, "they are still coming");
        let summaries: Vec<_> = lines.summaries(6_000_000_000).map(|summary| summary.to_string()).collect();
        assert_eq!(summaries, ["and 5,412 more connections that had not logged on ended"]);
        assert_eq!(lines.summaries(60_000_000_000).count(), 0);
        assert!(lines.may_say(60_000_000_000, Kind::StrangerEnded));
        assert_eq!((grouped(0), grouped(999), grouped(1_234_567)), ("0".to_owned(), "999".to_owned(), "1,234,567".to_owned()));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_line_is_written_or_counted_and_few_are_written(waits in prop::collection::vec(0..2_000_000_000_u64, 1..300)) {
            let mut lines = Lines::default();
            let (mut now_ns, mut written, mut counted) = (0, 0, 0);
            for wait_ns in &waits {
                now_ns += wait_ns;
                written += u64::from(lines.may_say(now_ns, Kind::MadeRoom));
                counted += lines.summaries(now_ns).map(|summary| summary.count).sum::<u64>();
            }
            counted += lines.summaries(u64::MAX).map(|summary| summary.count).sum::<u64>();
            prop_assert_eq!(written + counted, waits.len() as u64);
            prop_assert!(written <= 20 + 5 * now_ns.div_ceil(1_000_000_000));
        }
    }
}
