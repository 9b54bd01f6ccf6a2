//! Call auctions: collected orders trade at one price.
//!
//! The price is the one with, in this order: the most volume; the least imbalance; if the surplus is on the same side at all
//! remaining prices, the furthest in the direction of its pressure (up for bids, down for offers); the nearest to the reference
//! price; the lower. Prices between orders' limits count too.

use walras_types::{PriceTicks, Side, SizeLots};

use crate::api::{BookEvents, Uncross};
use crate::arena::Place;
use crate::book::OrderBook;
use crate::price_index::{PriceIndex, Rank};
use crate::slot::Slot;

/// A search for the uncrossing price that can pause between two price levels. The book must not change meanwhile.
///
/// The best bids and the best offers are set against each other, level by level, until they cross no more: what they come to is the
/// most that can trade. It can trade at every price between the last two levels that it took. Among those the imbalance is least
/// next to where the levels end that the volume does not reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceSearch {
    /// Levels gone through.
    looked: u64,
    volume: u64,
    /// The last levels of which any lots are in the volume, by side.
    last: [Rank; 2],
    /// What comes next, by side.
    next: [Reached; 2],
}

/// A level that the search has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reached {
    /// [`Rank::BOTTOM`] behind the last.
    rank: Rank,
    /// Lots of it that are not in the volume.
    left: u64,
}

impl PriceSearch {
    /// How many looks it took so far: a search of the same book that takes as many is where this one is.
    #[must_use]
    pub fn looked(&self) -> u64 {
        self.looked
    }

    fn crosses(&self) -> bool {
        let [bid, ask] = self.next;
        bid.rank != Rank::BOTTOM && ask.rank != Rank::BOTTOM && bid.rank >= ask.rank.mirrored()
    }
}

impl<I: PriceIndex> OrderBook<I> {
    /// What the collected orders would trade now, or `None` when no bid reaches an offer. Costs O(price levels that trade), however
    /// many orders stand at a price.
    #[must_use]
    pub fn auction(&self, reference: PriceTicks) -> Option<Uncross> {
        let mut search = self.begin_price_search();
        self.go_on_searching(&mut search, u64::MAX);
        self.found(&search, reference)
    }

    /// A search for the price at which the collected orders trade.
    #[must_use]
    pub fn begin_price_search(&self) -> PriceSearch {
        let next = Side::BOTH.map(|side| self.reached(side, self.sides[side as usize].best()));
        PriceSearch { looked: 0, volume: 0, last: [Rank::BOTTOM; 2], next }
    }

    /// Goes through at most so many more levels. How many it needed; when that is fewer than it might, [`Self::found`] has the result.
    pub fn go_on_searching(&self, search: &mut PriceSearch, looks: u64) -> u64 {
        let mut looked = 0;
        while looked < looks && search.crosses() {
            let [bid, ask] = search.next;
            let lots = bid.left.min(ask.left);
            search.volume += lots;
            search.last = [bid.rank, ask.rank];
            for side in Side::BOTH {
                let reached = &mut search.next[side as usize];
                reached.left -= lots;
                if reached.left == 0 {
                    *reached = self.reached(side, self.next_worse(side, reached.rank));
                }
            }
            looked += 1;
        }
        search.looked += looked;
        looked
    }

    /// What a search has found that went through all levels that cross: `None` when there were none.
    #[must_use]
    pub fn found(&self, search: &PriceSearch, reference: PriceTicks) -> Option<Uncross> {
        debug_assert!(!search.crosses(), "the search is not at its end");
        if search.volume == 0 {
            return None;
        }
        let [bid, ask] = search.next;
        // Every price from the last offer to the last bid trades the volume.
        let (low, high) = (search.last[1].price(Side::Sell).get(), search.last[0].price(Side::Buy).get());
        let at = |price: i64, imbalance_lots: i64| {
            Some(Uncross { price: PriceTicks::new(price)?, volume: SizeLots::new(search.volume), imbalance_lots })
        };
        // Lots of a level that is in the volume in part want more at all of these prices: the pressure moves the price to its own.
        if bid.rank == search.last[0] {
            return at(high, bid.left as i64);
        }
        if ask.rank == search.last[1] {
            return at(low, -(ask.left as i64));
        }
        // Behind the volume, the next levels within these prices. The bid is below the offer, for they do not cross.
        let below = if bid.rank == Rank::BOTTOM { low - 1 } else { bid.rank.price(Side::Buy).get().max(low - 1) };
        let above = if ask.rank == Rank::BOTTOM { high + 1 } else { ask.rank.price(Side::Sell).get().min(high + 1) };
        if below + 1 < above {
            return at(reference.get().clamp(below + 1, above - 1), 0);
        }
        // They are neighbours, so one of both sides has a surplus at every price.
        match bid.left.cmp(&ask.left) {
            std::cmp::Ordering::Less => at(below, bid.left as i64),
            std::cmp::Ordering::Greater => at(above, -(ask.left as i64)),
            std::cmp::Ordering::Equal => {
                let last_bid = self.next_worse(Side::Buy, bid.rank);
                let last_ask = self.next_worse(Side::Sell, ask.rank);
                let lowest = if last_bid == Rank::BOTTOM { low } else { (last_bid.price(Side::Buy).get() + 1).max(low) };
                let highest = if last_ask == Rank::BOTTOM { high } else { (last_ask.price(Side::Sell).get() - 1).min(high) };
                let price = reference.get().clamp(lowest, highest);
                at(price, if price <= below { bid.left as i64 } else { -(ask.left as i64) })
            }
        }
    }

    /// Whether so many lots, and no more, would trade at that price: so it is before an uncross, and as long as anything is left of it.
    #[must_use]
    pub fn uncrosses(&self, price: PriceTicks, lots: SizeLots) -> bool {
        let mut search = self.begin_price_search();
        self.go_on_searching(&mut search, u64::MAX);
        let [bid, ask] = search.last;
        let is_within = || bid >= Rank::of(Side::Buy, price) && ask >= Rank::of(Side::Sell, price);
        search.volume == lots.get() && (lots.is_zero() || is_within())
    }

    /// A level with all that stands there, displayed and hidden.
    fn reached(&self, side: Side, rank: Rank) -> Reached {
        let queues = &self.sides[side as usize];
        let displayed = queues.displayed.get(rank).map_or(0, |level| level.lots + self.extras.reserve(side, rank));
        let hidden = if queues.hidden.is_empty() { 0 } else { queues.hidden.get(&rank).map_or(0, |level| level.lots) };
        Reached { rank, left: displayed + hidden }
    }

    /// The best rank of a side that is worse than this one.
    fn next_worse(&self, side: Side, than: Rank) -> Rank {
        let queues = &self.sides[side as usize];
        let hidden = if queues.hidden.is_empty() { None } else { queues.hidden.range(..than).next_back() };
        queues.displayed.next_worse(than).max(hidden.map_or(Rank::BOTTOM, |(rank, _)| *rank))
    }

    /// Trades `uncross.volume` at `uncross.price`: best prices first, displayed before hidden, then first in, first out, whatever
    /// the book's allocation. Self-trades are not prevented: nobody chose to take.
    pub fn uncross(&mut self, uncross: &Uncross, events: &mut impl BookEvents) {
        let mut left = uncross.volume;
        while !left.is_zero() {
            left = self.uncross_some(uncross.price, left, &mut { u32::MAX }, events);
        }
    }

    /// As [`Self::uncross`], in at most `turns` trades, and takes off how many they were. What is left of the volume.
    pub fn uncross_some(
        &mut self,
        price: PriceTicks,
        mut left: SizeLots,
        turns: &mut u32,
        events: &mut impl BookEvents,
    ) -> SizeLots {
        while !left.is_zero() {
            if *turns == 0 {
                return left;
            }
            *turns -= 1;
            self.last_price = Some(price);
            self.stops.follow(self.last_price);
            let (buy, sell) = (self.head(Side::Buy), self.head(Side::Sell));
            let size = self.arena[buy].slice.min(self.arena[sell].slice).min(left);
            left -= size;
            let parties = [buy, sell].map(|slot| {
                let order = &self.arena[slot];
                order.party(order.rank.price(order.side), order.open - size)
            });
            events.uncrossed(price, size, &parties[0], &parties[1]);
            for slot in [buy, sell] {
                self.consume_head(slot, size, events);
            }
        }
        left
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
