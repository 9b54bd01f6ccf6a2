//! The dissertation's baseline book (section 3.3.1): a priority queue per side, ordered by price, then by time of arrival.
//!
//! An order is added first and matched after, by a check that merges the two queues until the best bid is below the best offer.
//! Cancelling is left out: the experiments cancel nothing.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use walras_types::{Side, SizeLots};

use crate::books::{LimitOrder, Trade};

/// An order with its time of arrival.
#[derive(Clone, Copy, Debug)]
struct Queued {
    order: LimitOrder,
    arrival: u64,
}

impl Queued {
    /// Greatest is next to trade: the best price, then the earliest.
    fn key(&self) -> (i64, Reverse<u64>) {
        let rank = match self.order.side {
            Side::Buy => self.order.price.get(),
            Side::Sell => -self.order.price.get(),
        };
        (rank, Reverse(self.arrival))
    }
}

impl Ord for Queued {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Queued {}

/// The book.
pub struct Baseline {
    bids: BinaryHeap<Queued>,
    asks: BinaryHeap<Queued>,
    arrivals: u64,
}

impl Baseline {
    /// An empty book with room for so many orders on each side.
    #[must_use]
    pub fn with_capacity(orders: usize) -> Self {
        Self { bids: BinaryHeap::with_capacity(orders), asks: BinaryHeap::with_capacity(orders), arrivals: 0 }
    }

    /// Adds an order, and matches nothing. O(log n).
    pub fn apply(&mut self, order: &LimitOrder) {
        let queued = Queued { order: *order, arrival: self.arrivals };
        self.arrivals += 1;
        match order.side {
            Side::Buy => self.bids.push(queued),
            Side::Sell => self.asks.push(queued),
        }
    }

    /// Trades the best bid with the best offer, at the price of the earlier of the two, while they cross. O(T log n) for T trades.
    pub fn check_for_trades(&mut self, trades: &mut Vec<Trade>) {
        while let (Some(mut bid), Some(mut ask)) = (self.bids.peek_mut(), self.asks.peek_mut()) {
            if bid.order.price < ask.order.price {
                return;
            }
            let size = bid.order.size.min(ask.order.size);
            let price = if bid.arrival < ask.arrival { bid.order.price } else { ask.order.price };
            trades.push(Trade { buy_id: bid.order.id, sell_id: ask.order.id, price, size });
            shrink(&mut bid, size);
            shrink(&mut ask, size);
            for best in [bid, ask] {
                if best.order.size.is_zero() {
                    PeekMut::pop(best);
                }
            }
        }
    }

    /// Every order, bids first, each side from the next to trade to the last.
    pub fn listing(&self) -> Vec<LimitOrder> {
        let in_priority = |side: &BinaryHeap<Queued>| side.clone().into_sorted_vec().into_iter().rev().map(|queued| queued.order);
        in_priority(&self.bids).chain(in_priority(&self.asks)).collect()
    }
}

/// Takes `by` off an order. Its place in the queue does not depend on its size.
fn shrink(best: &mut PeekMut<'_, Queued>, by: SizeLots) {
    best.order.size -= by;
}
