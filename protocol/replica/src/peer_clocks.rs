//! Whether this replica's clock agrees with the others'. A leader stamps commands, and the log's time never goes back: one whose
//! clock is an hour ahead would make it an hour late for all that come after. So replicas ask each other for the time, and a leader
//! whose clock is far off most of the others' hands over.
//!
//! A question carries the asker's own count of time, so an answer that took long, because one of the two stood still, counts for
//! nothing.

use std::collections::BTreeMap;

use bytes::Bytes;
use walras_consensus::ReplicaId;
use walras_types::TimeNs;

/// Stands last in such a message.
const CLOCK: u8 = 0xF1;
const ASK: u8 = 0;
const ANSWER: u8 = 1;
const ASK_EVERY_NS: u64 = 1_000_000_000;
/// An answer counts for so long.
const FRESH_NS: u64 = 5 * ASK_EVERY_NS;
/// Between two attempts to hand over.
const HAND_OVER_EVERY_NS: u64 = 2_000_000_000;

#[derive(Clone, Copy, Debug)]
struct Reading {
    /// How far that one's clock is ahead of ours.
    ahead_ns: i128,
    at_ns: u64,
}

/// What the others' clocks show.
#[derive(Debug)]
pub(crate) struct PeerClocks {
    /// Of a clock that is far off; 0 for never.
    error_ns_max: u64,
    readings: BTreeMap<ReplicaId, Reading>,
    next_ask_ns: u64,
    next_hand_over_ns: u64,
    /// Of answers that were not asked for yet.
    round_trip: Option<(ReplicaId, u64)>,
}

impl PeerClocks {
    pub(crate) fn new(error_ns_max: u64) -> Self {
        Self { error_ns_max, readings: BTreeMap::new(), next_ask_ns: 0, next_hand_over_ns: 0, round_trip: None }
    }

    /// The question for all peers, when it is due.
    pub(crate) fn ask(&mut self, now_ns: u64) -> Option<Vec<u8>> {
        if self.error_ns_max == 0 || now_ns < self.next_ask_ns {
            return None;
        }
        self.next_ask_ns = now_ns + ASK_EVERY_NS;
        Some([&now_ns.to_le_bytes()[..], &[ASK, CLOCK]].concat())
    }

    /// When [`ask`](Self::ask) has a question.
    pub(crate) fn deadline_ns(&self) -> u64 {
        if self.error_ns_max == 0 { u64::MAX } else { self.next_ask_ns }
    }

    /// Whether a message is about clocks.
    pub(crate) fn is_about_clocks(bytes: &Bytes) -> bool {
        bytes.last() == Some(&CLOCK)
    }

    /// Takes such a message; the answer, if it is a question. `clock` is the time of day here, `now_ns` what this process counts.
    pub(crate) fn take(&mut self, from: ReplicaId, bytes: &Bytes, now_ns: u64, clock: TimeNs) -> Option<Vec<u8>> {
        let (asked, rest) = bytes.split_first_chunk::<8>()?;
        match rest {
            [ASK, CLOCK] => Some([&asked[..], &clock.0.to_le_bytes(), &[ANSWER, CLOCK]].concat()),
            [time @ .., ANSWER, CLOCK] => {
                let theirs = u64::from_le_bytes(time.try_into().ok()?);
                let took_ns = now_ns.checked_sub(u64::from_le_bytes(*asked))?;
                self.round_trip = Some((from, took_ns));
                if took_ns <= self.error_ns_max / 2 {
                    let ahead_ns = i128::from(theirs) - i128::from(clock.0) + i128::from(took_ns / 2);
                    self.readings.insert(from, Reading { ahead_ns, at_ns: now_ns });
                }
                None
            }
            _ => None,
        }
    }

    /// How long the last answer took to come, once.
    pub(crate) fn take_round_trip(&mut self) -> Option<(ReplicaId, u64)> {
        self.round_trip.take()
    }

    /// The median offset of the voters' clocks from this one, if more than half of `voters` differ by more than the limit, all in
    /// the same direction.
    pub(crate) fn error_ns<'a>(&self, voters: impl Iterator<Item = &'a ReplicaId>, now_ns: u64) -> Option<i128> {
        if self.error_ns_max == 0 {
            return None;
        }
        let max = i128::from(self.error_ns_max);
        let (mut count, mut ahead, mut behind) = (0, Vec::new(), Vec::new());
        for id in voters {
            count += 1;
            match self.readings.get(id).filter(|reading| now_ns < reading.at_ns + FRESH_NS).map(|reading| reading.ahead_ns) {
                Some(ns) if ns > max => ahead.push(ns),
                Some(ns) if ns < -max => behind.push(ns),
                _ => {}
            }
        }
        let mut most = if ahead.len() >= behind.len() { ahead } else { behind };
        most.sort_unstable();
        (most.len() * 2 > count).then(|| most[most.len() / 2])
    }

    /// The voter to which a leader whose clock is so far off hands over now: one whose clock is near that median.
    pub(crate) fn heir<'a>(
        &mut self,
        voters: impl Iterator<Item = &'a ReplicaId>,
        error_ns: i128,
        now_ns: u64,
    ) -> Option<ReplicaId> {
        if now_ns < self.next_hand_over_ns {
            return None;
        }
        self.next_hand_over_ns = now_ns + HAND_OVER_EVERY_NS;
        let is_near = |id: &&ReplicaId| {
            let reading = self.readings.get(id).filter(|reading| now_ns < reading.at_ns + FRESH_NS);
            reading.is_some_and(|reading| (reading.ahead_ns - error_ns).unsigned_abs() <= u128::from(self.error_ns_max))
        };
        voters.copied().find(|id| is_near(&id))
    }
}

/// What is wrong with a clock that the others are so far ahead of, for the operator.
pub fn clock_trouble(error_ns: i128) -> String {
    let (by_ms, side) = (error_ns.unsigned_abs() / 1_000_000, if error_ns > 0 { "behind" } else { "ahead of" });
    format!(
        "this machine's clock is {by_ms} ms {side} those of most replicas: set it; until then this replica hands leadership over"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn id(id: u64) -> ReplicaId {
        ReplicaId::new(id).unwrap()
    }

    /// One asks another whose clock is so far ahead, and the answer takes so long.
    fn ask(clocks: &mut PeerClocks, from: u64, ahead_ns: i64, took_ns: u64, now_ns: u64) {
        let clock = 1_000_000 * SECOND + now_ns;
        let mut other = PeerClocks::new(SECOND);
        let question = Bytes::from([&now_ns.to_le_bytes()[..], &[ASK, CLOCK]].concat());
        assert!(PeerClocks::is_about_clocks(&question));
        let theirs = TimeNs((clock + took_ns / 2).checked_add_signed(ahead_ns).unwrap());
        let answer = other.take(id(1), &question, 5, theirs).unwrap();
        assert_eq!(clocks.take(id(from), &answer.into(), now_ns + took_ns, TimeNs(clock + took_ns)), None);
    }

    #[test]
    fn a_clock_is_far_off_when_most_say_so() {
        let voters: Vec<ReplicaId> = (1..=3).map(id).collect();
        let mut clocks = PeerClocks::new(SECOND);
        let error = |clocks: &PeerClocks, now_ns| clocks.error_ns(voters.iter(), now_ns);
        assert_eq!(error(&clocks, 0), None, "no clock was read");
        ask(&mut clocks, 2, -3_600_000_000_000, 2_000, SECOND);
        assert_eq!(error(&clocks, SECOND), None, "one of three may be the odd one");
        ask(&mut clocks, 3, 500, 2_000, SECOND);
        assert_eq!(error(&clocks, SECOND), None);
        ask(&mut clocks, 3, -3_600_100_000_000, 2_000, SECOND);
        let off = error(&clocks, SECOND).unwrap();
        assert!((-3_600_100_002_000..=-3_599_999_990_000).contains(&off), "{off}");
        assert!(clock_trouble(off).contains("ms ahead of those of most"), "{}", clock_trouble(off));
        assert_eq!(clocks.heir(voters.iter(), off, SECOND), Some(id(2)));
        assert_eq!(clocks.heir(voters.iter(), off, SECOND + 1), None, "not all the time");
        assert_eq!(error(&clocks, 10 * SECOND), None, "that was long ago");
    }

    #[test]
    fn two_that_err_each_their_own_way_prove_nothing() {
        let voters: Vec<ReplicaId> = (1..=3).map(id).collect();
        let mut clocks = PeerClocks::new(SECOND);
        ask(&mut clocks, 2, 10_000_000_000, 2_000, SECOND);
        ask(&mut clocks, 3, -10_000_000_000, 2_000, SECOND);
        assert_eq!(clocks.error_ns(voters.iter(), SECOND), None);
    }

    #[test]
    fn what_took_long_counts_for_nothing() {
        let voters: Vec<ReplicaId> = (1..=3).map(id).collect();
        let mut clocks = PeerClocks::new(SECOND);
        for from in [2, 3] {
            ask(&mut clocks, from, -10_000_000_000, SECOND, SECOND);
        }
        assert_eq!(clocks.error_ns(voters.iter(), 2 * SECOND), None);
        for garbage in [&b""[..], &[CLOCK], &[0; 9], &[0, 0, 0, 0, 0, 0, 0, 0, 7, ANSWER, CLOCK]] {
            assert_eq!(clocks.take(id(2), &Bytes::copy_from_slice(garbage), 1, TimeNs(1)), None);
        }
    }
}
