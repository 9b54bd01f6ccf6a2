//! Orders of several children in the order of their stamps: the watermark merge.
//!
//! Each child sends in the order of its stamps, and says from time to time up to which stamp it has sent all. An order leaves when
//! every other child has shown a later stamp, so no live child's order comes after one that was stamped later. A child that
//! shows nothing for too long is not waited for; what it sends then may be late, and is counted.
//!
//! *Source*: the rule of Jasper's authors for their order queues ("the engine takes an order only if every other queue shows a
//! later one"), here with promises, so that a quiet child delays nobody.

use std::collections::VecDeque;

/// An order on its way: what says when it was stamped, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamped<T> {
    /// Where it was stamped, in ns.
    pub stamp_ns: u64,
    /// The child that it came by.
    pub child: usize,
    /// Whether one with a later stamp left before it.
    pub is_late: bool,
    /// What it is.
    pub order: T,
}

/// Why a child's message is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// No such child.
    #[error("child {0} is not one of this relay's: give it the tree that counts now")]
    UnknownChild(usize),
    /// Its queue is full.
    #[error("child {0} has as many orders waiting as one may have: it has to wait")]
    Full(usize),
}

#[derive(Debug)]
struct Child<T> {
    waiting: VecDeque<(u64, T)>,
    /// It sends nothing with a stamp below this one any more.
    promised_ns: u64,
    heard_ns: u64,
}

/// The merge.
#[derive(Debug)]
pub struct Merge<T> {
    children: Vec<Child<T>>,
    /// After so long without a word a child is not waited for.
    patience_ns: u64,
    waiting_max: usize,
    last_ns: u64,
    late: u64,
}

impl<T> Merge<T> {
    /// A merge of so many children, each with at most `waiting_max` orders that wait.
    #[must_use]
    pub fn new(now_ns: u64, children: usize, patience_ns: u64, waiting_max: usize) -> Self {
        let child = |_| Child { waiting: VecDeque::new(), promised_ns: 0, heard_ns: now_ns };
        Self { children: (0..children).map(child).collect(), patience_ns, waiting_max, last_ns: 0, late: 0 }
    }

    /// Orders that left after one with a later stamp.
    #[must_use]
    pub const fn late(&self) -> u64 {
        self.late
    }

    /// Orders that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.children.iter().map(|child| child.waiting.len()).sum()
    }

    /// A child sends an order. A stamp below what it promised counts as what it promised: it must not get ahead by lying.
    pub fn order(&mut self, now_ns: u64, child: usize, stamp_ns: u64, order: T) -> Result<(), MergeError> {
        let waiting_max = self.waiting_max;
        let from = self.children.get_mut(child).ok_or(MergeError::UnknownChild(child))?;
        from.heard_ns = now_ns;
        if from.waiting.len() >= waiting_max {
            return Err(MergeError::Full(child));
        }
        from.promised_ns = from.promised_ns.max(stamp_ns);
        from.waiting.push_back((from.promised_ns, order));
        Ok(())
    }

    /// A child says that it has sent all up to before this stamp.
    pub fn promise(&mut self, now_ns: u64, child: usize, stamp_ns: u64) -> Result<(), MergeError> {
        let from = self.children.get_mut(child).ok_or(MergeError::UnknownChild(child))?;
        from.heard_ns = now_ns;
        from.promised_ns = from.promised_ns.max(stamp_ns);
        Ok(())
    }

    /// The next order that may leave now.
    pub fn next(&mut self, now_ns: u64) -> Option<Stamped<T>> {
        let (stamp_ns, child) = self.first()?;
        if self.awaited(now_ns, stamp_ns, child).next().is_some() {
            return None;
        }
        let (_, order) = self.children[child].waiting.pop_front()?;
        let is_late = stamp_ns < self.last_ns;
        self.late += u64::from(is_late);
        self.last_ns = self.last_ns.max(stamp_ns);
        Some(Stamped { stamp_ns, child, is_late, order })
    }

    /// When [`Merge::next`] gives up waiting for a child, if that is what it waits for.
    #[must_use]
    pub fn wake_ns(&self, now_ns: u64) -> Option<u64> {
        let (stamp_ns, child) = self.first()?;
        let silent_ns = |child: &Child<T>| child.heard_ns.saturating_add(self.patience_ns).saturating_add(1);
        self.awaited(now_ns, stamp_ns, child).map(silent_ns).max()
    }

    /// The earliest that waits, with its child; of equal stamps that of the first child.
    fn first(&self) -> Option<(u64, usize)> {
        let heads = self.children.iter().enumerate().filter_map(|(at, child)| Some((child.waiting.front()?.0, at)));
        heads.min()
    }

    /// The children that may still send something earlier.
    fn awaited(&self, now_ns: u64, stamp_ns: u64, first: usize) -> impl Iterator<Item = &Child<T>> {
        let others = self.children.iter().enumerate().filter(move |(at, _)| *at != first);
        others.filter_map(move |(at, child)| {
            let is_past = if at < first { child.promised_ns > stamp_ns } else { child.promised_ns >= stamp_ns };
            let is_silent = now_ns.saturating_sub(child.heard_ns) > self.patience_ns;
            (child.waiting.is_empty() && !is_past && !is_silent).then_some(child)
        })
    }
}

#[cfg(test)]
mod tests {
    use walras_random::Random;

    use super::*;

    fn all(merge: &mut Merge<u64>, now_ns: u64) -> Vec<(u64, usize, bool)> {
        std::iter::from_fn(|| merge.next(now_ns)).map(|next| (next.stamp_ns, next.child, next.is_late)).collect()
    }

    #[test]
    fn an_order_waits_for_children_that_may_have_an_earlier_one() {
        let mut merge = Merge::new(0, 3, 1_000, 4);
        merge.order(10, 0, 5, 1).unwrap();
        assert_eq!((all(&mut merge, 10), merge.wake_ns(10)), (vec![], Some(1_001)));
        merge.promise(11, 2, 5).unwrap();
        assert_eq!(all(&mut merge, 11), []);
        // The second has one that is earlier: it goes first.
        merge.order(12, 1, 4, 2).unwrap();
        assert_eq!(all(&mut merge, 12), [(4, 1, false)]);
        merge.promise(13, 1, 5).unwrap();
        assert_eq!(all(&mut merge, 13), [(5, 0, false)], "of equal stamps the first child's goes first");
        assert_eq!((merge.waiting(), merge.wake_ns(13)), (0, None));
        // The third may still have one with the same stamp as the second's next, and goes after it.
        merge.order(14, 1, 9, 3).unwrap();
        merge.promise(14, 2, 9).unwrap();
        merge.promise(14, 0, 9).unwrap();
        assert_eq!(all(&mut merge, 14), [], "the first child's would go before it");
        merge.promise(15, 0, 10).unwrap();
        assert_eq!(all(&mut merge, 15), [(9, 1, false)]);
    }

    #[test]
    fn a_silent_child_is_not_waited_for_and_one_that_lies_gains_nothing() {
        let mut merge = Merge::new(0, 2, 1_000, 2);
        merge.order(500, 0, 100, 1).unwrap();
        assert_eq!(all(&mut merge, 1_000), []);
        let wake_ns = merge.wake_ns(1_000).unwrap();
        assert_eq!((wake_ns, all(&mut merge, wake_ns)), (1_001, vec![(100, 0, false)]));
        merge.order(2_000, 1, 50, 2).unwrap();
        merge.promise(2_000, 0, 200).unwrap();
        assert_eq!((all(&mut merge, 2_000), merge.late()), (vec![(50, 1, true)], 1));
        // It promised 300 and sends 150.
        merge.promise(2_001, 1, 300).unwrap();
        merge.order(2_001, 1, 150, 3).unwrap();
        merge.order(2_001, 0, 250, 4).unwrap();
        assert_eq!(all(&mut merge, 2_001), [(250, 0, false)]);
        merge.promise(2_002, 0, 301).unwrap();
        assert_eq!(all(&mut merge, 2_002), [(300, 1, false)]);
        assert_eq!(merge.order(2_002, 2, 1, 5), Err(MergeError::UnknownChild(2)));
        assert_eq!(merge.promise(2_002, 9, 1), Err(MergeError::UnknownChild(9)));
        merge.order(2_003, 0, 400, 6).unwrap();
        merge.order(2_003, 0, 401, 7).unwrap();
        assert_eq!(merge.order(2_003, 0, 402, 8), Err(MergeError::Full(0)));
    }

    /// Children whose links take any time, but keep their order: nothing is late, nothing is lost, and all leave in one order.
    #[test]
    fn among_live_children_nothing_is_late() {
        for seed in 0..50 {
            let draw = &mut Random::new(seed);
            let children = 1 + draw.below(5) as usize;
            let mut merge = Merge::new(0, children, u64::MAX, usize::MAX);
            // Of each child: its messages by arrival.
            let mut arrivals: Vec<(u64, usize, u64, bool)> = Vec::new();
            let mut sent = 0;
            for child in 0..children {
                let (mut stamp_ns, mut arrives_ns) = (0, 0);
                for at in 0..200 {
                    stamp_ns += draw.below(50);
                    arrives_ns = u64::max(arrives_ns, stamp_ns + draw.below(500));
                    let is_order = at < 199 && draw.below(3) > 0;
                    sent += u64::from(is_order);
                    arrivals.push((arrives_ns, child, if at == 199 { 1 << 40 } else { stamp_ns }, is_order));
                }
            }
            arrivals.sort_by_key(|(at_ns, ..)| *at_ns);
            let mut left = Vec::new();
            for (at_ns, child, stamp_ns, is_order) in arrivals {
                if is_order {
                    merge.order(at_ns, child, stamp_ns, at_ns).unwrap();
                } else {
                    merge.promise(at_ns, child, stamp_ns).unwrap();
                }
                left.extend(all(&mut merge, at_ns));
            }
            assert_eq!((left.len() as u64, merge.waiting(), merge.late()), (sent, 0, 0), "seed {seed}");
            assert!(left.is_sorted(), "seed {seed}");
        }
    }
}
