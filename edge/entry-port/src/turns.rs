//! Whose turn it is to be read: nobody is read again before all others who wait, and a round reads no more than keeps others waiting for a moment.

use std::collections::VecDeque;

/// Bytes read from one connection before the others have their turn.
pub(crate) const TURN_BYTES: usize = 16 << 10;
/// Bytes read in a round, before what they ask for is passed on: others work on it while the rest is read.
pub(crate) const ROUND_BYTES: usize = 64 << 10;
/// Reads in a round from strangers, who have not logged on: a step of a handshake, or a logon, takes the processor for as long as about a
/// hundred orders.
const STRANGERS_READS: u32 = 2;

/// Connections, by their places, that have something to read of which the poll does not tell again.
#[derive(Debug, Default)]
pub(crate) struct ReadTurns {
    /// Those whose turn is next.
    queue: VecDeque<usize>,
    /// Those who had a turn in this round: behind all that the poll told of meanwhile.
    had_theirs: Vec<usize>,
    /// Who is in either, by place.
    is_waiting: Vec<bool>,
    round_left: usize,
    /// Reads from strangers that the round has left.
    strangers_left: u32,
    /// A moment at which others waited, and how many of them have had no turn since.
    owed: Option<(u64, usize)>,
}

impl ReadTurns {
    /// Whether anybody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.had_theirs.is_empty()
    }

    /// Begins a round.
    pub(crate) fn begin_round(&mut self) {
        self.queue.extend(self.had_theirs.drain(..));
        (self.round_left, self.strangers_left) = (ROUND_BYTES, STRANGERS_READS);
    }

    /// The next of those who wait, while it may read.
    pub(crate) fn call(&mut self) -> Option<usize> {
        let place = if self.round_left > 0 { self.queue.pop_front()? } else { return None };
        self.is_waiting[place] = false;
        if let Some((_, left)) = &mut self.owed {
            *left = left.saturating_sub(1);
        }
        Some(place)
    }

    /// Ends a round whose poll reported all that had come until `polled_ns`. Returns up to when all that came was read, if that is later
    /// than before: every connection has had a turn since then. Bytes that do not fit a connection's turn count as having come later.
    pub(crate) fn end_round(&mut self, polled_ns: u64) -> Option<u64> {
        let done = self.owed.take_if(|(_, left)| *left == 0).map(|(since_ns, _)| since_ns);
        if self.queue.is_empty() {
            self.owed = None;
            return Some(polled_ns);
        }
        // The connection that waits longest is called first, so all of these have a turn before later ones.
        self.owed.get_or_insert((polled_ns, self.queue.len()));
        done
    }

    /// Whether a connection waits, and is not to be read before it is called.
    pub(crate) fn waits(&self, place: usize) -> bool {
        self.is_waiting.get(place).is_some_and(|waits| *waits)
    }

    /// How many bytes a connection may be read that was read so many in this turn.
    pub(crate) fn room(&self, read: usize) -> usize {
        TURN_BYTES.saturating_sub(read).min(self.round_left)
    }

    /// Whether a stranger may be read.
    pub(crate) fn has_room_for_a_stranger(&self) -> bool {
        self.strangers_left > 0
    }

    /// A stranger was read.
    pub(crate) fn has_read_a_stranger(&mut self) {
        self.strangers_left = self.strangers_left.saturating_sub(1);
    }

    /// A stranger is to be read in a later round, behind all who wait. What it has sent counts as having come later.
    pub(crate) fn put_off(&mut self, place: usize) {
        self.wait(place, 1);
    }

    /// So many bytes were read.
    pub(crate) fn has_read(&mut self, len: usize) {
        self.round_left = self.round_left.saturating_sub(len);
    }

    /// A connection of which so many bytes were read in this turn is to be read on.
    pub(crate) fn wait(&mut self, place: usize, read: usize) {
        if self.is_waiting.len() <= place {
            self.is_waiting.resize(place + 1, false);
        }
        if std::mem::replace(&mut self.is_waiting[place], true) {
            return;
        }
        if read == 0 {
            self.queue.push_back(place);
        } else {
            self.had_theirs.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads rounds of connections that hold so many bytes, of all of which the poll told in the first: the order in which they were read.
    fn read_all(mut bytes: Vec<usize>) -> Vec<(usize, usize)> {
        let mut turns = ReadTurns::default();
        let mut read = Vec::new();
        let mut told: Vec<usize> = (0..bytes.len()).collect();
        while !told.is_empty() || !turns.is_empty() {
            turns.begin_round();
            let mut left = ROUND_BYTES;
            let mut turn = |turns: &mut ReadTurns, place: usize| {
                let mut taken = 0;
                while bytes[place] > 0 {
                    let len = bytes[place].min(turns.room(taken));
                    if len == 0 {
                        turns.wait(place, taken);
                        break;
                    }
                    bytes[place] -= len;
                    taken += len;
                    left = left.checked_sub(len).expect("a round reads its share at most");
                    turns.has_read(len);
                }
                if taken > 0 {
                    read.push((place, taken));
                }
            };
            while let Some(place) = turns.call() {
                turn(&mut turns, place);
            }
            for place in std::mem::take(&mut told) {
                if !turns.waits(place) {
                    turn(&mut turns, place);
                }
            }
        }
        read
    }

    #[test]
    fn whoever_sends_much_waits_for_those_who_send_little() {
        let k = 1 << 10;
        let read = read_all(vec![100 * k, 100 * k, 100 * k, 100 * k, k, k]);
        let places: Vec<usize> = read.iter().map(|(place, _)| *place).collect();
        assert_eq!(places[..8], [0, 1, 2, 3, 4, 5, 0, 1], "the first four fill a round; then it is the others' turn");
    }

    #[test]
    fn a_crowd_of_strangers_is_read_a_few_in_a_round_and_holds_nothing_up() {
        let mut turns = ReadTurns::default();
        let read = |turns: &mut ReadTurns, place: usize| {
            let may = turns.has_room_for_a_stranger();
            if may {
                turns.has_read(100);
                turns.has_read_a_stranger();
            } else {
                turns.put_off(place);
            }
            may
        };
        turns.begin_round();
        let first: Vec<usize> = (0..10).filter(|place| read(&mut turns, *place)).collect();
        assert_eq!((first, turns.end_round(10)), (vec![0, 1], Some(10)));
        let mut rounds = Vec::new();
        for polled_ns in 11..15 {
            assert!(!turns.is_empty());
            turns.begin_round();
            // All are called, so that each keeps its place among those who wait.
            let called: Vec<usize> = std::iter::from_fn(|| turns.call()).collect();
            rounds.push(called.into_iter().filter(|place| read(&mut turns, *place)).collect::<Vec<_>>());
            assert_eq!(turns.end_round(polled_ns), Some(polled_ns), "those who have logged on do not wait for them");
        }
        assert_eq!(rounds, [[2, 3], [4, 5], [6, 7], [8, 9]]);
        assert!(turns.is_empty());
    }

    #[test]
    fn what_came_is_read_once_everybody_had_a_turn_since() {
        let mut turns = ReadTurns::default();
        turns.begin_round();
        assert_eq!(turns.end_round(10), Some(10), "nobody waits");
        // One sends without end: what is left of it counts as having come later.
        turns.begin_round();
        turns.has_read(TURN_BYTES);
        turns.wait(0, TURN_BYTES);
        assert_eq!(turns.end_round(20), Some(20));
        // The round is full before two others had a turn.
        turns.begin_round();
        assert_eq!(turns.call(), Some(0));
        turns.has_read(ROUND_BYTES);
        turns.wait(0, ROUND_BYTES);
        turns.wait(1, 0);
        turns.wait(2, 0);
        assert_eq!(turns.end_round(30), None);
        turns.begin_round();
        assert_eq!(turns.call(), Some(1));
        turns.has_read(ROUND_BYTES);
        turns.wait(3, 0);
        assert_eq!(turns.end_round(40), None, "the second of them has had none");
        turns.begin_round();
        assert_eq!(turns.call(), Some(2));
        turns.has_read(ROUND_BYTES);
        assert_eq!(turns.end_round(50), Some(30), "who came later may wait");
        turns.begin_round();
        while turns.call().is_some() {}
        assert_eq!(turns.end_round(60), Some(60));
    }

    proptest! {
        /// Against a list of since when each connection has something unread: it is later than what counts as read, unless a turn was
        /// too short for it.
        #[test]
        fn nothing_counts_as_read_that_is_not(
            rounds in prop::collection::vec(prop::collection::vec((0_usize..6, 1_usize..40_000), 0..5), 1..30),
        ) {
            let mut turns = ReadTurns::default();
            let (mut bytes, mut since) = ([0_usize; 6], [None::<u64>; 6]);
            for (polled_ns, ready) in (1_u64..).zip(rounds) {
                turns.begin_round();
                for (place, more) in &ready {
                    bytes[*place] += more;
                    since[*place].get_or_insert(polled_ns);
                }
                let mut turn = |turns: &mut ReadTurns, place: usize| {
                    let mut taken = 0;
                    while bytes[place] > 0 {
                        let len = bytes[place].min(turns.room(taken));
                        if len == 0 {
                            return turns.wait(place, taken);
                        }
                        bytes[place] -= len;
                        taken += len;
                        turns.has_read(len);
                        // It has had its turn: the rest counts from here on.
                        since[place] = Some(polled_ns + 1);
                    }
                    since[place] = None;
                };
                while let Some(place) = turns.call() {
                    turn(&mut turns, place);
                }
                for (place, _) in ready {
                    if !turns.waits(place) {
                        turn(&mut turns, place);
                    }
                }
                if let Some(until_ns) = turns.end_round(polled_ns) {
                    prop_assert!(until_ns <= polled_ns);
                    prop_assert!(since.iter().flatten().all(|since_ns| *since_ns > until_ns), "{since:?} {until_ns}");
                }
            }
        }

        #[test]
        fn all_is_read_and_nobody_twice_before_others_who_wait(bytes in prop::collection::vec(0_usize..200_000, 1..20)) {
            let read = read_all(bytes.clone());
            let mut left = bytes;
            for (at, (place, len)) in read.iter().enumerate() {
                prop_assert!(*len <= TURN_BYTES);
                left[*place] -= len;
                // Between two turns of one, each that has something left has one (in part, where a round ended with it).
                if let Some(again) = read[at + 1..].iter().position(|(other, _)| other == place) {
                    let between: Vec<usize> = read[at + 1..at + 1 + again].iter().map(|(other, _)| *other).collect();
                    for (other, bytes) in left.iter().enumerate() {
                        prop_assert!(other == *place || *bytes == 0 || between.contains(&other), "{other} is passed over: {read:?}");
                    }
                }
            }
            prop_assert!(left.iter().all(|bytes| *bytes == 0));
        }
    }
}
