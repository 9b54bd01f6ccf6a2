//! Sharing an incoming order among the orders of one price level in proportion to their size.
//!
//! An aggressor that clears what a level shows fills everybody, first in, first out, and comes back to what icebergs replenished.
//! Otherwise each order gets what [`Allocation`] says, in one trade each, in queue order. Proportions are of the displayed slices.
//!
//! Sharing looks at every order of a level, however small the aggressor is. So a level of more than [`SHARED_LEVEL_ORDERS_MAX`] orders is
//! not shared: it trades first in, first out until it is shorter.

use walras_types::limits::SHARED_LEVEL_ORDERS_MAX;
use walras_types::{Allocation, SelfTrade, SizeLots};

use crate::api::{BookEvents, Fill, Seniority};
use crate::arena::Place;
use crate::book::OrderBook;
use crate::matching::{Stopped, Taker};
use crate::price_index::{PriceIndex, Rank};

/// `size * quantity / total` rounded down, for many sizes: one division for all, then a multiplication and a check for each.
struct Proportion {
    quantity: u64,
    total: u64,
    /// 2^64 * quantity / total, rounded down; quantity < total.
    factor: u64,
}

impl Proportion {
    fn new(quantity: u64, total: u64) -> Self {
        assert!(quantity < total, "a level that is cleared is not shared");
        // Sizes are below 2^63, so the shifted quantity fits 128 bits and the quotient 64.
        let factor = ((u128::from(quantity) << 64) / u128::from(total)) as u64;
        Self { quantity, total, factor }
    }

    #[inline]
    fn of(&self, size: u64) -> u64 {
        // factor falls short of the true ratio by less than 2^-64, so the estimate falls short of the true share by less than 1.
        let estimate = ((u128::from(size) * u128::from(self.factor)) >> 64) as u64;
        let next = u128::from(estimate + 1) * u128::from(self.total);
        estimate + u64::from(next <= u128::from(size) * u128::from(self.quantity))
    }
}

impl<I: PriceIndex> OrderBook<I> {
    /// Matches against the displayed queue of `rank` by the book's allocation. `Some` when the taker ends here.
    pub(crate) fn match_shared(&mut self, taker: &mut Taker, rank: Rank, events: &mut impl BookEvents) -> Option<Stopped> {
        let opposite = taker.side.opposite() as usize;
        let level = *self.queue_mut(opposite, Place::Displayed, rank);
        if level.order_count > SHARED_LEVEL_ORDERS_MAX {
            let turns = taker.turns.min(level.order_count - SHARED_LEVEL_ORDERS_MAX);
            return self.match_queue(taker, Place::Displayed, rank, turns, events);
        }
        if taker.self_trade != SelfTrade::Allow {
            // Where all of a level trades with everyone, its own orders could all trade: prevent before sharing.
            let mut next = level.head;
            while let Some(slot) = next {
                if taker.shuns(self.arena[slot].owner) {
                    taker.turns = taker.turns.saturating_sub(1);
                    return self.prevent_self_trade(taker, slot, events);
                }
                next = self.arena[slot].next;
            }
        }
        if taker.open.get() >= level.lots {
            // One turn each: what replenishes meanwhile waits for the next look at the level.
            return self.match_queue(taker, Place::Displayed, rank, level.order_count, events);
        }
        let quantity = taker.open.get();
        self.share_out(quantity, rank, opposite);
        self.trade_shares(taker, rank, events);
        Some(Stopped::Filled)
    }

    /// Fills `self.shares` with what each order of the level gets, in queue order.
    fn share_out(&mut self, quantity: u64, rank: Rank, side: usize) {
        let level = *self.queue_mut(side, Place::Displayed, rank);
        let mut shares = std::mem::take(&mut self.shares);
        shares.clear();
        let mut left = quantity;
        let mut total = level.lots;
        // What some orders get ahead of the proportional round.
        let min_lots = match self.allocation {
            Allocation::PriceTime => unreachable!("price-time does not share"),
            Allocation::ProRata { min_lots } => min_lots,
            Allocation::TopProRata { top_lots_max, min_lots } => {
                let head = &self.arena[level.head.expect("a level has orders")];
                if head.seniority == Seniority::SetThePrice {
                    let top = head.slice.get().min(top_lots_max.get()).min(left);
                    shares.push(top);
                    left -= top;
                    total -= top;
                }
                min_lots
            }
            Allocation::Split { fifo_percent, min_lots } => {
                let mut first = (u128::from(quantity) * u128::from(fifo_percent) / 100) as u64;
                left -= first;
                total -= first;
                let mut next = level.head;
                while first > 0 {
                    let order = &self.arena[next.expect("a level shows more than the quantity")];
                    let share = order.slice.get().min(first);
                    shares.push(share);
                    first -= share;
                    next = order.next;
                }
                min_lots
            }
        };
        shares.resize(level.order_count as usize, 0);
        if left > 0 {
            let proportion = Proportion::new(left, total);
            let to_share = left;
            let mut next = level.head;
            for share in &mut shares {
                let order = &self.arena[next.expect("as many orders as the level counts")];
                let proportional = proportion.of(order.slice.get() - *share);
                if proportional >= min_lots.get() {
                    *share += proportional;
                    left -= proportional;
                }
                next = order.next;
            }
            debug_assert!(left <= to_share);
            // The remainder: first in, first out.
            let mut next = level.head;
            for share in &mut shares {
                if left == 0 {
                    break;
                }
                let order = &self.arena[next.expect("as many orders as the level counts")];
                let more = (order.slice.get() - *share).min(left);
                *share += more;
                left -= more;
                next = order.next;
            }
        }
        self.shares = shares;
    }

    /// Trades `self.shares`. Their sum is what is left of the taker, and less than the level shows.
    fn trade_shares(&mut self, taker: &mut Taker, rank: Rank, events: &mut impl BookEvents) {
        let side = taker.side.opposite();
        let price = rank.price(side);
        let shares = std::mem::take(&mut self.shares);
        let mut next = self.queue_mut(side as usize, Place::Displayed, rank).head;
        for &share in &shares {
            let slot = next.expect("as many orders as shares");
            let maker = &mut self.arena[slot];
            next = maker.next;
            if share == 0 {
                continue;
            }
            let size = SizeLots::new(share);
            maker.open -= size;
            maker.slice -= size;
            taker.open -= size;
            let fill = Fill { price, size, taker_side: taker.side, maker: maker.party(price, maker.open), taker: taker.party() };
            let (open, slice) = (maker.open, maker.slice);
            events.traded(&fill);
            let level = self.queue_mut(side as usize, Place::Displayed, rank);
            level.lots -= share;
            if open.is_zero() {
                self.take_out(slot);
            } else if slice.is_zero() {
                self.unlink(slot);
                self.relink_slice(slot, events);
            }
        }
        self.shares = shares;
        self.last_price = Some(price);
        events.level_changed(side, price);
    }

    /// Gives an unlinked iceberg its next slice at the back of its queue.
    fn relink_slice(&mut self, slot: crate::slot::Slot, events: &mut impl BookEvents) {
        let order = self.arena[slot];
        // Without a slice it hides all of itself until it is replenished.
        self.extras.add_reserve(order.side, order.rank, order.reserve());
        let mut level = *self.queue_mut(order.side as usize, Place::Displayed, order.rank);
        self.replenish(slot, &mut level, events);
        *self.queue_mut(order.side as usize, Place::Displayed, order.rank) = level;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn proportions_are_exact(total in 2u64..1 << 62, quantity in 0u64..u64::MAX, size in 0u64..1 << 36) {
            let quantity = quantity % total;
            let exact = (u128::from(size) * u128::from(quantity) / u128::from(total)) as u64;
            prop_assert_eq!(Proportion::new(quantity, total).of(size), exact);
        }
    }
}
