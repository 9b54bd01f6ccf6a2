//! Call auctions: collected orders trade at one price.
//!
//! The price is the one with, in this order: the most volume; the least imbalance; if the surplus is on the same side at all
//! remaining prices, the furthest in the direction of its pressure (up for bids, down for offers); the nearest to the reference
//! price; the lower. Prices between orders' limits count too.

use std::collections::BTreeMap;

use walras_types::{PriceTicks, Side, SizeLots};

use crate::api::{BookEvents, Party, Uncross};
use crate::arena::{Place, Slot};
use crate::book::OrderBook;
use crate::price_index::{PriceIndex, Rank};

/// Lots that want to trade at or better than a price, accumulated from the best price on.
struct Step {
    price: i64,
    lots: u64,
}

impl<I: PriceIndex> OrderBook<I> {
    /// What the collected orders would trade now, or `None` when no bid reaches an offer. Costs O(price levels that cross) and O(i
    /// log i) in the orders that are not plain, however many orders stand at a price.
    #[must_use]
    pub fn auction(&self, reference: PriceTicks) -> Option<Uncross> {
        let best_bid = self.sides[Side::Buy as usize].best();
        let best_ask = self.sides[Side::Sell as usize].best();
        if best_bid == Rank::BOTTOM || best_ask == Rank::BOTTOM || best_bid < best_ask.mirrored() {
            return None;
        }
        let reserves = self.reserves();
        let bids = self.steps(Side::Buy, best_ask.mirrored(), &reserves);
        let asks = self.steps(Side::Sell, best_bid.mirrored(), &reserves);
        // Volume and imbalance change only at orders' prices, so a stretch between two neighbours is as good throughout.
        let mut best: Option<(u64, u64)> = None;
        let mut stretches: Vec<(i64, i64, i64)> = Vec::new();
        let mut consider = |low: i64, high: i64, demand: u64, supply: u64| {
            let (volume, imbalance) = (demand.min(supply), demand as i64 - supply as i64);
            let merit = (volume, u64::MAX - imbalance.unsigned_abs());
            if best.is_none_or(|best| merit > best) {
                best = Some(merit);
                stretches.clear();
            }
            if best == Some(merit) {
                stretches.push((low, high, imbalance));
            }
        };
        // From the lowest price up, starting at the last bid and the first ask.
        let (mut bids, mut asks) = (bids.iter().rev().peekable(), asks.iter().peekable());
        let (mut supply, mut below) = (0, None);
        loop {
            // A bid's step includes those above it: it is the demand at its price.
            let demand = bids.peek().map_or(0, |bid| bid.lots);
            let price = match (bids.peek(), asks.peek()) {
                (Some(bid), Some(ask)) => bid.price.min(ask.price),
                (Some(one), None) | (None, Some(one)) => one.price,
                (None, None) => break,
            };
            if let Some(below) = below
                && price - below > 1
            {
                consider(below + 1, price - 1, demand, supply);
            }
            if let Some(ask) = asks.next_if(|ask| ask.price == price) {
                supply = ask.lots;
            }
            consider(price, price, demand, supply);
            bids.next_if(|bid| bid.price == price);
            below = Some(price);
        }
        let (volume, _) = best?;
        let price = choose(&stretches, reference.get());
        let imbalance_lots =
            stretches.iter().find(|(low, high, _)| (*low..=*high).contains(&price)).map_or(0, |(_, _, imbalance)| *imbalance);
        Some(Uncross { price: PriceTicks::new(price)?, volume: SizeLots::new(volume), imbalance_lots })
    }

    /// Accumulated open lots of a side from its best price to `worst`, displayed and hidden.
    fn steps(&self, side: Side, worst: Rank, reserves: &BTreeMap<(Side, Rank), u64>) -> Vec<Step> {
        let queues = &self.sides[side as usize];
        let (mut displayed, mut hidden) = (queues.displayed.best(), queues.hidden_best);
        let mut steps = Vec::new();
        let mut lots = 0;
        loop {
            let rank = displayed.max(hidden);
            if rank < worst || rank == Rank::BOTTOM {
                return steps;
            }
            if displayed == rank {
                lots += queues.displayed.get(rank).map_or(0, |level| level.lots);
                lots += reserves.get(&(side, rank)).copied().unwrap_or(0);
                displayed = queues.displayed.next_worse(rank);
            }
            if hidden == rank {
                lots += queues.hidden.get(&rank).map_or(0, |level| level.lots);
                hidden = queues.hidden.range(..rank).next_back().map_or(Rank::BOTTOM, |(rank, _)| *rank);
            }
            steps.push(Step { price: rank.price(side).get(), lots });
        }
    }

    /// The hidden lots of icebergs, which a level's size does not include.
    fn reserves(&self) -> BTreeMap<(Side, Rank), u64> {
        let mut reserves = BTreeMap::new();
        for slot in self.extras.by_slot().keys() {
            let order = &self.arena[*slot];
            if order.place == Place::Displayed && order.open > order.slice {
                *reserves.entry((order.side, order.rank)).or_default() += (order.open - order.slice).get();
            }
        }
        reserves
    }

    /// Trades `uncross.volume` at `uncross.price`: best prices first, displayed before hidden, then first in, first out, whatever
    /// the book's allocation. Self-trades are not prevented: nobody chose to take.
    pub fn uncross(&mut self, uncross: &Uncross, events: &mut impl BookEvents) {
        let mut left = uncross.volume;
        while !left.is_zero() {
            let (buy, sell) = (self.head(Side::Buy), self.head(Side::Sell));
            let size = self.arena[buy].slice.min(self.arena[sell].slice).min(left);
            left -= size;
            let parties = [buy, sell].map(|slot| {
                let order = &self.arena[slot];
                Party {
                    order_id: order.order_id,
                    client_order_id: order.client_order_id,
                    owner: order.owner,
                    limit: order.rank.price(order.side),
                    open: order.open - size,
                }
            });
            events.uncrossed(uncross.price, size, &parties[0], &parties[1]);
            for slot in [buy, sell] {
                self.consume_head(slot, size, events);
            }
        }
        self.last_price = Some(uncross.price);
    }

    fn head(&self, side: Side) -> Slot {
        let queues = &self.sides[side as usize];
        let displayed = queues.displayed.best();
        let level =
            if displayed >= queues.hidden_best { queues.displayed.get(displayed) } else { queues.hidden.get(&queues.hidden_best) };
        level.and_then(|level| level.head).expect("the volume stands on both sides")
    }

    /// Takes `size` off the slice of the order at the head of its queue.
    fn consume_head(&mut self, slot: Slot, size: SizeLots, events: &mut impl BookEvents) {
        let order = &mut self.arena[slot];
        order.open -= size;
        order.slice -= size;
        let (side, place, rank, open, slice) = (order.side, order.place, order.rank, order.open, order.slice);
        if place == Place::Displayed {
            events.level_changed(side, rank.price(side));
        }
        let side = side as usize;
        self.queue_mut(side, place, rank).lots -= size.get();
        if open.is_zero() {
            self.take_out(slot);
        } else if slice.is_zero() {
            let mut level = *self.queue_mut(side, Place::Displayed, rank);
            level.head = self.arena[slot].next;
            level.order_count -= 1;
            self.replenish(slot, &mut level, events);
            if let Some(head) = level.head {
                self.arena[head].prev = None;
            }
            *self.queue_mut(side, Place::Displayed, rank) = level;
        }
    }
}

/// Among stretches of equal volume and imbalance: market pressure, then the reference, then the lower price.
fn choose(stretches: &[(i64, i64, i64)], reference: i64) -> i64 {
    let lowest = stretches.iter().map(|(low, _, _)| *low).min().expect("there is a best price");
    let highest = stretches.iter().map(|(_, high, _)| *high).max().expect("there is a best price");
    if stretches.iter().all(|(_, _, imbalance)| *imbalance > 0) {
        return highest;
    }
    if stretches.iter().all(|(_, _, imbalance)| *imbalance < 0) {
        return lowest;
    }
    let nearest = stretches.iter().map(|(low, high, _)| reference.clamp(*low, *high));
    nearest.min_by_key(|price| (price.abs_diff(reference), *price)).expect("there is a best price")
}
