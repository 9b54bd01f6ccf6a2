//! Bad weather between two replicas, made on purpose: messages that are lost or late, so that tests can partition real processes.

use std::collections::VecDeque;

/// What happens to messages between this replica and a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weather {
    /// To the peer.
    pub out: Passage,
    /// From the peer.
    pub back: Passage,
}

/// What happens to messages in one direction. The bytes of a snapshot are delayed or, where all is lost, held back, but not lost one by
/// one: a connection would have sent them again. Order is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passage {
    /// Share of messages that are lost.
    pub lost_per_million: u32,
    /// How late the others are.
    pub delay_ns: u64,
}

impl Passage {
    /// Nothing comes through.
    pub const BLOCKED: Self = Self { lost_per_million: 1_000_000, delay_ns: 0 };
}

impl Weather {
    /// Nothing comes through in either direction.
    pub const BLOCKED: Self = Self { out: Passage::BLOCKED, back: Passage::BLOCKED };
}

/// One direction, and what is late.
#[derive(Debug)]
pub(crate) struct Sky<T> {
    passage: Passage,
    held: VecDeque<(u64, usize, T)>,
    held_bytes: usize,
}

/// What becomes of something.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate<T> {
    Now(T),
    Later,
    Lost,
}

impl<T> Sky<T> {
    pub(crate) fn new() -> Self {
        Self { passage: Passage::default(), held: VecDeque::new(), held_bytes: 0 }
    }

    /// What was held back goes on under the new weather.
    pub(crate) fn turn(&mut self, now_ns: u64, passage: Passage) {
        self.passage = passage;
        if !self.is_blocked() {
            for (due_ns, _, _) in &mut self.held {
                *due_ns = (*due_ns).min(now_ns.saturating_add(passage.delay_ns));
            }
        }
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.passage.lost_per_million >= 1_000_000
    }

    /// A message, which may be lost; also when more is late than `bytes_max`.
    pub(crate) fn message(&mut self, now_ns: u64, dice: &mut Dice, bytes: usize, bytes_max: usize, message: T) -> Fate<T> {
        if dice.below(1_000_000) < u64::from(self.passage.lost_per_million) || self.held_bytes + bytes > bytes_max {
            return Fate::Lost;
        }
        self.late(now_ns.saturating_add(self.passage.delay_ns), bytes, message)
    }

    /// A piece of something that would be broken without it.
    pub(crate) fn piece(&mut self, now_ns: u64, bytes: usize, piece: T) -> Fate<T> {
        let due_ns = if self.is_blocked() { u64::MAX } else { now_ns.saturating_add(self.passage.delay_ns) };
        self.late(due_ns, bytes, piece)
    }

    fn late(&mut self, due_ns: u64, bytes: usize, what: T) -> Fate<T> {
        if self.passage == Passage::default() && self.held.is_empty() {
            return Fate::Now(what);
        }
        self.held.push_back((due_ns, bytes, what));
        self.held_bytes += bytes;
        Fate::Later
    }

    pub(crate) fn due(&mut self, now_ns: u64) -> Option<T> {
        if self.held.front()?.0 > now_ns {
            return None;
        }
        let (_, bytes, what) = self.held.pop_front()?;
        self.held_bytes -= bytes;
        Some(what)
    }

    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.held.front().map(|(due_ns, _, _)| *due_ns).filter(|due_ns| *due_ns != u64::MAX)
    }

    /// The connection is gone, and with it what was late.
    pub(crate) fn clear(&mut self) {
        self.held.clear();
        self.held_bytes = 0;
    }
}

/// Numbers from a seed (splitmix64; Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_things_keep_their_order_and_blocked_pieces_wait() {
        let (mut sky, mut dice) = (Sky::new(), Dice(1));
        assert_eq!(sky.message(0, &mut dice, 1, 10, 'a'), Fate::Now('a'));
        sky.turn(0, Passage { lost_per_million: 0, delay_ns: 5 });
        assert_eq!(sky.message(0, &mut dice, 1, 10, 'b'), Fate::Later);
        assert_eq!((sky.due(4), sky.next_due_ns()), (None, Some(5)));
        sky.turn(1, Passage::BLOCKED);
        assert_eq!(sky.message(1, &mut dice, 1, 10, 'c'), Fate::Lost);
        assert_eq!(sky.piece(1, 1, 'd'), Fate::Later);
        assert_eq!((sky.due(9), sky.due(9), sky.next_due_ns()), (Some('b'), None, None));
        sky.turn(9, Passage::default());
        assert_eq!(sky.message(9, &mut dice, 1, 10, 'e'), Fate::Later, "behind what is late");
        assert_eq!((sky.due(9), sky.due(9), sky.due(9)), (Some('d'), Some('e'), None));
        sky.turn(9, Passage { lost_per_million: 0, delay_ns: 5 });
        assert_eq!(sky.message(9, &mut dice, 11, 10, 'f'), Fate::Lost, "more than may be held");
    }

    #[test]
    fn the_share_that_is_lost_is_the_one_asked_for() {
        let (mut sky, mut dice) = (Sky::new(), Dice(7));
        sky.turn(0, Passage { lost_per_million: 250_000, delay_ns: 0 });
        let lost = (0..10_000).filter(|_| sky.message(0, &mut dice, 0, 1, ()) == Fate::Lost).count();
        assert!((2_300..2_700).contains(&lost), "{lost}");
    }
}
