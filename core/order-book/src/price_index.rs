//! The seam between matching and the structure that finds price levels.

use std::hint::select_unpredictable;

use walras_types::{PriceTicks, Side};

use crate::slot::Slot;

/// A price as its side sees it: the higher the better. Bids rank by price, asks by its negative, so that matching has one code path
/// and no branch on the side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Rank(pub(crate) i64);

impl Default for Rank {
    fn default() -> Self {
        Self::BOTTOM
    }
}

impl Rank {
    /// Worse than every price: the best of an empty side.
    pub const BOTTOM: Self = Self(i64::MIN);

    /// Better than every price: a bound that no order reaches.
    pub(crate) const UNREACHED: Self = Self(i64::MAX);

    /// The rank of a price on a side.
    #[must_use]
    #[inline]
    pub fn of(side: Side, price: PriceTicks) -> Self {
        // 1 for buy, -1 for sell.
        Self(price.get() * (1 - 2 * (side as i64)))
    }

    /// The rank that `ticks` would have on a side if they were a price; to prefetch by, nothing else.
    #[inline]
    pub(crate) fn guessed(side: Side, ticks: i64) -> Self {
        Self(ticks.wrapping_mul(1 - 2 * (side as i64)))
    }

    /// The price that has this rank on a side. Not for [`Rank::BOTTOM`].
    #[must_use]
    #[inline]
    pub fn price(self, side: Side) -> PriceTicks {
        // In range, because a rank was made of a price: no check to fail, so that who does not read it does not pay for it.
        let ticks = self.0.wrapping_mul(1 - 2 * (side as i64));
        debug_assert!(PriceTicks::new(ticks).is_some(), "a rank was made of a price");
        PriceTicks::saturating(ticks)
    }

    /// The side on which a price has this rank. Not for [`Rank::BOTTOM`].
    #[must_use]
    #[inline]
    pub fn side(self) -> Side {
        if self.0 > 0 { Side::Buy } else { Side::Sell }
    }

    /// The rank of the same price on the opposite side.
    #[must_use]
    #[inline]
    pub fn mirrored(self) -> Self {
        Self(-self.0)
    }
}

/// The orders of one price: a doubly linked queue through the arena. Two to a cache line, none across.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct Level {
    pub(crate) head: Option<Slot>,
    pub(crate) tail: Option<Slot>,
    /// Sum of the slices in the queue.
    pub(crate) lots: u64,
    pub(crate) order_count: u32,
}

impl Level {
    /// Adds an order of `lots` at the back, and says who stood there.
    #[inline]
    pub(crate) fn push_back(&mut self, slot: Slot, lots: u64) -> Option<Slot> {
        self.lots += lots;
        self.order_count += 1;
        let tail = self.tail.replace(slot);
        self.head = select_unpredictable(tail.is_none(), Some(slot), self.head);
        tail
    }

    /// Takes out an order of `lots` that stands between `prev` and `next`.
    #[inline]
    pub(crate) fn take_out(&mut self, lots: u64, prev: Option<Slot>, next: Option<Slot>) {
        self.lots -= lots;
        self.order_count -= 1;
        self.head = select_unpredictable(prev.is_none(), next, self.head);
        self.tail = select_unpredictable(next.is_none(), prev, self.tail);
    }
}

/// The price levels of one side, by rank. A level that is present holds at least one order, except inside one operation of the book.
#[allow(private_interfaces)]
pub trait PriceIndex: Default {
    /// The best rank, [`Rank::BOTTOM`] when there is none.
    fn best(&self) -> Rank;
    /// The best rank below `than`, [`Rank::BOTTOM`] when there is none. `than` need not be present.
    fn next_worse(&self, than: Rank) -> Rank;
    /// The level of a rank.
    fn get(&self, rank: Rank) -> Option<&Level>;
    /// The level of a rank that is present.
    fn level_mut(&mut self, rank: Rank) -> &mut Level;
    /// The level of a rank, made empty if it was not there.
    fn get_or_insert(&mut self, rank: Rank) -> &mut Level;
    /// Takes a level out. It is present.
    fn remove(&mut self, rank: Rank);
    /// Takes out levels from the best on, at most `count`, none worse than `bound`, as long as they hold at most `lots` together, and
    /// hands each over.
    #[inline]
    fn take_best(&mut self, bound: Rank, mut lots: u64, count: usize, mut taken: impl FnMut(Rank, Level)) {
        for _ in 0..count {
            let rank = self.best();
            if rank < bound {
                return;
            }
            let Some(&level) = self.get(rank) else { return };
            if level.lots > lots {
                return;
            }
            lots -= level.lots;
            self.remove(rank);
            taken(rank, level);
        }
    }
    /// Takes an order of `lots`, which stands between `prev` and `next`, out of a level that is present, and the level if it was the last.
    #[inline]
    fn take_out(&mut self, rank: Rank, lots: u64, prev: Option<Slot>, next: Option<Slot>) {
        let level = self.level_mut(rank);
        level.take_out(lots, prev, next);
        if level.order_count == 0 {
            self.remove(rank);
        }
    }
    /// Asks the processor for a level that will be needed soon, if that is an array access away.
    #[inline]
    fn prefetch(&self, rank: Rank) {
        let _ = rank;
    }
    /// How many levels there are.
    fn level_count(&self) -> usize;
    /// Panics if the structure contradicts itself.
    fn check_invariants(&self);
}

#[cfg(test)]
mod tests;
