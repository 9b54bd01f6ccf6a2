//! Fault injection on the link of two replicas: messages that are lost or late, so that tests can partition real processes.

use std::collections::VecDeque;

use walras_random::Random;

/// Faults of the link between this replica and a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkFaults {
    /// To the peer.
    pub out: PathFaults,
    /// From the peer.
    pub back: PathFaults,
}

/// Faults of a link in one direction. Order is kept. The bytes of a snapshot are never lost one by one, since a connection would
/// send them again: they are delayed, or held back while every message is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathFaults {
    /// How many of a million messages are lost.
    pub lost_per_million: u32,
    /// Delay of the other messages.
    pub delay_ns: u64,
}

impl PathFaults {
    /// Loses everything.
    pub const BLOCKED: Self = Self { lost_per_million: 1_000_000, delay_ns: 0 };
}

impl LinkFaults {
    /// Loses everything in both directions.
    pub const BLOCKED: Self = Self { out: PathFaults::BLOCKED, back: PathFaults::BLOCKED };
}

/// One direction of a link with its faults, and the messages that it delays.
#[derive(Debug)]
pub(crate) struct FaultyPath<T> {
    faults: PathFaults,
    held: VecDeque<(u64, usize, T)>,
    held_bytes: usize,
}

/// What happens to a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Disposition<T> {
    Now(T),
    Later,
    Lost,
}

impl<T> FaultyPath<T> {
    pub(crate) fn new() -> Self {
        Self { faults: PathFaults::default(), held: VecDeque::new(), held_bytes: 0 }
    }

    /// Sets other faults. Held messages leave as soon as these allow it.
    pub(crate) fn set(&mut self, now_ns: u64, faults: PathFaults) {
        self.faults = faults;
        if !self.is_blocked() {
            for (due_ns, _, _) in &mut self.held {
                *due_ns = (*due_ns).min(now_ns.saturating_add(faults.delay_ns));
            }
        }
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.faults.lost_per_million >= 1_000_000
    }

    /// A message, which may be lost, and is lost if more than `bytes_max` would be held.
    pub(crate) fn message(
        &mut self,
        now_ns: u64,
        random: &mut Random,
        bytes: usize,
        bytes_max: usize,
        message: T,
    ) -> Disposition<T> {
        if random.below(1_000_000) < u64::from(self.faults.lost_per_million) || self.held_bytes + bytes > bytes_max {
            return Disposition::Lost;
        }
        self.late(now_ns.saturating_add(self.faults.delay_ns), bytes, message)
    }

    /// A part of a snapshot, which is not lost by itself.
    pub(crate) fn piece(&mut self, now_ns: u64, bytes: usize, piece: T) -> Disposition<T> {
        let due_ns = if self.is_blocked() { u64::MAX } else { now_ns.saturating_add(self.faults.delay_ns) };
        self.late(due_ns, bytes, piece)
    }

    fn late(&mut self, due_ns: u64, bytes: usize, what: T) -> Disposition<T> {
        if self.faults == PathFaults::default() && self.held.is_empty() {
            return Disposition::Now(what);
        }
        self.held.push_back((due_ns, bytes, what));
        self.held_bytes += bytes;
        Disposition::Later
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

    /// The connection is gone, and with it the held messages.
    pub(crate) fn clear(&mut self) {
        self.held.clear();
        self.held_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_things_keep_their_order_and_blocked_pieces_wait() {
        let (mut path, mut random) = (FaultyPath::new(), Random::new(1));
        assert_eq!(path.message(0, &mut random, 1, 10, 'a'), Disposition::Now('a'));
        path.set(0, PathFaults { lost_per_million: 0, delay_ns: 5 });
        assert_eq!(path.message(0, &mut random, 1, 10, 'b'), Disposition::Later);
        assert_eq!((path.due(4), path.next_due_ns()), (None, Some(5)));
        path.set(1, PathFaults::BLOCKED);
        assert_eq!(path.message(1, &mut random, 1, 10, 'c'), Disposition::Lost);
        assert_eq!(path.piece(1, 1, 'd'), Disposition::Later);
        assert_eq!((path.due(9), path.due(9), path.next_due_ns()), (Some('b'), None, None));
        path.set(9, PathFaults::default());
        assert_eq!(path.message(9, &mut random, 1, 10, 'e'), Disposition::Later, "behind what is late");
        assert_eq!((path.due(9), path.due(9), path.due(9)), (Some('d'), Some('e'), None));
        path.set(9, PathFaults { lost_per_million: 0, delay_ns: 5 });
        assert_eq!(path.message(9, &mut random, 11, 10, 'f'), Disposition::Lost, "more than may be held");
    }

    #[test]
    fn the_share_that_is_lost_is_the_one_asked_for() {
        let (mut path, mut random) = (FaultyPath::new(), Random::new(7));
        path.set(0, PathFaults { lost_per_million: 250_000, delay_ns: 0 });
        let lost = (0..10_000).filter(|_| path.message(0, &mut random, 0, 1, ()) == Disposition::Lost).count();
        assert!((2_300..2_700).contains(&lost), "{lost}");
    }
}
