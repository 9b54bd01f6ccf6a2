//! Queries, saving and restoring, and invariant checks.

use std::collections::BTreeMap;

use walras_types::{Allocation, Display, PriceTicks, Side, SizeLots, TimeInForce};

use crate::api::{Becomes, DepthLevel, DisplayedOrder, OpenOrder, Seniority};
use crate::arena::Place;
use crate::book::{OrderBook, entry_of};
use crate::frozen::FrozenOrders;
use crate::price_index::{Level, PriceIndex, Rank};
use crate::slot::Slot;

/// Maximum number of places to copy per open order; with more free places, orders are copied one by one.
const COPIED_PER_ORDER_MAX: usize = 8;

/// Why saved orders do not make a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoreError {
    /// Index of the order, from 0.
    pub order_index: usize,
    /// The fault.
    pub problem: &'static str,
}

impl std::fmt::Display for RestoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "order {} of the saved book: {}; the snapshot is damaged or of another version", self.order_index, self.problem)
    }
}

impl std::error::Error for RestoreError {}

impl<I: PriceIndex> OrderBook<I> {
    /// The best price at which anything stands, shown or hidden.
    #[inline]
    #[must_use]
    pub fn best(&self, side: Side) -> Option<PriceTicks> {
        let rank = self.sides[side as usize].best();
        (rank != Rank::BOTTOM).then(|| rank.price(side))
    }

    /// The price of the last trade.
    #[inline]
    #[must_use]
    pub fn last_price(&self) -> Option<PriceTicks> {
        self.last_price
    }

    /// How levels are shared.
    #[must_use]
    pub fn allocation(&self) -> Allocation {
        self.allocation
    }

    /// Open orders, waiting stops included.
    #[must_use]
    pub fn order_count(&self) -> usize {
        self.ids.len() - self.arena.swept_count()
    }

    /// The displayed part of a price level; `None` if nothing is displayed. Costs one look-up of the level.
    #[must_use]
    pub fn level(&self, side: Side, price: PriceTicks) -> Option<DepthLevel> {
        self.displayed(side, Rank::of(side, price))
    }

    /// The best displayed price level.
    #[must_use]
    pub fn best_level(&self, side: Side) -> Option<DepthLevel> {
        self.displayed(side, self.sides[side as usize].displayed.best())
    }

    fn displayed(&self, side: Side, rank: Rank) -> Option<DepthLevel> {
        let level = self.sides[side as usize].displayed.get(rank)?;
        Some(DepthLevel { price: rank.price(side), shown: SizeLots::new(level.lots), order_count: level.order_count })
    }

    /// Appends up to `levels` displayed price levels of a side, best first.
    pub fn depth(&self, side: Side, levels: usize, depth: &mut Vec<DepthLevel>) {
        let index = &self.sides[side as usize].displayed;
        let mut rank = index.best();
        for _ in 0..levels {
            let Some(level) = self.displayed(side, rank) else { return };
            depth.push(level);
            rank = index.next_worse(rank);
        }
    }

    /// Appends up to `count` displayed orders of a side, best price first and at each price the first in the queue first. Returns whether
    /// there are more. Costs O(`count`): each order is a step along its queue.
    pub fn displayed_orders(&self, side: Side, count: usize, orders: &mut Vec<DisplayedOrder>) -> bool {
        let index = &self.sides[side as usize].displayed;
        let (mut rank, mut left) = (index.best(), count);
        while let Some(level) = index.get(rank) {
            let mut next = level.head;
            while let Some(slot) = next {
                if left == 0 {
                    return true;
                }
                let order = &self.arena[slot];
                orders.push(DisplayedOrder { order_id: order.order_id, price: rank.price(side), shown: order.shown() });
                (left, next) = (left - 1, order.next);
            }
            rank = index.next_worse(rank);
        }
        false
    }

    /// Every open order: bids from the best price on, at each price the displayed queue, then, after all displayed ones, the
    /// hidden; asks likewise; then buy stops, sell stops, buy take-profits and sell take-profits, the first to trigger first; then
    /// trailing buy stops and trailing sell stops, the first to come first; then what is held, likewise. [`OrderBook::restore`] takes
    /// them like this.
    pub fn for_each_order(&self, mut see: impl FnMut(&OpenOrder)) {
        self.for_each_queue(|level| {
            let mut next = level.head;
            while let Some(slot) = next {
                see(&self.order_at(slot));
                next = self.arena[slot].next;
            }
        });
        self.for_each_stop(|slot| see(&self.order_at(slot)));
    }

    /// The queues in the order of [`Self::for_each_order`].
    fn for_each_queue(&self, mut see: impl FnMut(&Level)) {
        for side in Side::BOTH {
            let queues = &self.sides[side as usize];
            let mut rank = queues.displayed.best();
            while let Some(level) = queues.displayed.get(rank) {
                see(level);
                rank = queues.displayed.next_worse(rank);
            }
            queues.hidden.values().rev().for_each(&mut see);
        }
    }

    /// The stops likewise.
    fn for_each_stop(&self, mut see: impl FnMut(Slot)) {
        self.stops.iter().for_each(|(_, slot)| see(slot));
    }

    /// Keeps all open orders as they are, to look through elsewhere while the book goes on.
    #[must_use]
    pub fn freeze(&self) -> FrozenOrders {
        let (places, count) = (self.arena.places(), self.order_count());
        if places.len() > COPIED_PER_ORDER_MAX * count {
            let mut listed = Vec::with_capacity(count);
            self.for_each_order(|order| listed.push(*order));
            return FrozenOrders::listed(listed);
        }
        let (mut queues, mut stops) = (Vec::new(), Vec::new());
        self.for_each_queue(|level| queues.extend(level.head));
        self.for_each_stop(|slot| stops.push(slot));
        let trailing = self.stops.iter_trailing().map(|(_, slot)| slot);
        let extras = self.extras.with_triggers(trailing, |slot, stop| self.stops.current(self.arena[slot].side, stop));
        FrozenOrders::copied(places.to_vec(), queues, stops, extras, count)
    }

    /// Restores a book from the orders that [`OrderBook::for_each_order`] listed.
    pub fn restore(
        allocation: Allocation,
        hash_seed: u64,
        last_price: Option<PriceTicks>,
        orders: impl Iterator<Item = OpenOrder>,
    ) -> Result<Self, RestoreError> {
        let mut book = Self::with_hash_seed(allocation, hash_seed);
        book.last_price = last_price;
        for (order_index, order) in orders.enumerate() {
            book.restore_order(&order).map_err(|problem| RestoreError { order_index, problem })?;
        }
        Ok(book)
    }

    fn restore_order(&mut self, order: &OpenOrder) -> Result<(), &'static str> {
        if order.open.is_zero() || SizeLots::order_size(order.open.get()).is_none() {
            return Err("its size is out of range");
        }
        if order.trigger.is_none() && matches!(order.time_in_force, TimeInForce::ImmediateOrCancel | TimeInForce::FillOrKill) {
            return Err("it cannot rest");
        }
        if matches!(order.display, Display::Iceberg { peak } if peak.is_zero()) {
            return Err("its peak is zero");
        }
        if order.trigger.is_some_and(|trigger| trigger.becomes == Becomes::Rest && self.stops.has_paused()) {
            return Err("two orders go on before all others");
        }
        if order.min_size.is_some_and(|min_size| order.trigger.is_none() || min_size > order.open) {
            return Err("its minimum was met already, or exceeds its size");
        }
        let entry = entry_of(order, order.price);
        self.collect_as_it_is(&entry).map_err(|_| "its name is in use, or the book is full")?;
        let slot = self.find(order.owner, order.client_order_id).map(|handle| handle.0.slot).expect("the order was just added");
        if !self.stops.has_paused() && self.stops.lags(self.last_price) {
            return Err("its trigger is behind the market that it follows");
        }
        let placed = &mut self.arena[slot];
        placed.seniority = order.seniority;
        let is_first = placed.place == Place::Displayed && placed.prev.is_none();
        if order.seniority == Seniority::SetThePrice && !is_first {
            return Err("it cannot have set its price");
        }
        if placed.place != Place::Displayed && !order.shown.is_zero() {
            return Err("it shows what none may see");
        }
        if placed.place == Place::Displayed {
            // An iceberg's slice may be partly consumed.
            if order.shown.is_zero() || order.shown > placed.slice {
                return Err("it shows more than it may, or nothing");
            }
            let cut = placed.slice - order.shown;
            if !cut.is_zero() && !matches!(order.display, Display::Iceberg { .. }) {
                return Err("it shows less than it has and is no iceberg");
            }
            self.arena[slot].slice = order.shown;
            let rank = self.arena[slot].rank;
            self.extras.add_reserve(order.side, rank, cut);
            self.sides[order.side as usize].displayed.level_mut(rank).lots -= cut.get();
        }
        Ok(())
    }

    /// Panics if the book contradicts itself.
    pub fn check_invariants(&self) {
        let mut seen = BTreeMap::new();
        for side in Side::BOTH {
            let queues = &self.sides[side as usize];
            queues.displayed.check_invariants();
            let mut level_count = 0;
            let mut rank = queues.displayed.best();
            while let Some(level) = queues.displayed.get(rank) {
                self.check_level(side, Place::Displayed, rank, level, &mut seen);
                level_count += 1;
                rank = queues.displayed.next_worse(rank);
            }
            assert_eq!(level_count, queues.displayed.level_count(), "levels reached and their count differ");
            for (rank, level) in &queues.hidden {
                self.check_level(side, Place::Hidden, *rank, level, &mut seen);
            }
            let hidden_best = queues.hidden.last_key_value().map_or(Rank::BOTTOM, |(rank, _)| *rank);
            assert_eq!(queues.hidden_best, hidden_best, "the best hidden rank is wrong");
        }
        for (side, slot) in self.stops.iter() {
            assert_eq!(self.arena[slot].place, Place::Parked);
            assert_eq!(self.arena[slot].side, side);
            assert!(seen.insert(slot, ()).is_none(), "a stop is listed twice");
        }
        self.stops.check_invariants(self.last_price);
        assert_eq!(seen.len(), self.order_count(), "orders in queues and names of live orders differ");
        self.arena.check_invariants();
        self.ids.check_invariants();
        let mut special = 0;
        let mut expiring = 0;
        let mut reserves = BTreeMap::new();
        for (slot, order) in self.arena.iter() {
            assert_eq!(
                self.find(order.owner, order.client_order_id).map(|handle| handle.0.slot),
                Some(slot),
                "a name leads elsewhere"
            );
            if order.plain == crate::arena::Plain::No {
                special += 1;
                expiring += usize::from(self.extras.get(slot).expires().is_some());
                if order.place == Place::Displayed && !order.reserve().is_zero() {
                    *reserves.entry((order.side, order.rank)).or_default() += order.reserve().get();
                }
            }
        }
        assert_eq!(special, self.extras.len(), "extras without an order");
        assert_eq!(expiring, self.extras.expiry_count(), "expiries without an order");
        assert_eq!(reserves, *self.extras.reserves(), "what icebergs hide and what is known of it");
    }

    fn check_level(&self, side: Side, place: Place, rank: Rank, level: &Level, seen: &mut BTreeMap<Slot, ()>) {
        let (mut lots, mut count, mut prev, mut next) = (0, 0, None, level.head);
        while let Some(slot) = next {
            let order = &self.arena[slot];
            assert!(seen.insert(slot, ()).is_none(), "an order is in two queues");
            assert_eq!((order.side, order.place, order.rank, order.prev), (side, place, rank, prev), "order {slot:?}");
            assert!(!order.slice.is_zero() && order.slice <= order.open, "order {slot:?} has no valid slice");
            assert!(order.slice == order.open || self.is_iceberg(slot), "order {slot:?} hides and is no iceberg");
            assert!(order.seniority == Seniority::Joined || prev.is_none(), "an order that set the price is not first");
            lots += order.slice.get();
            count += 1;
            prev = Some(slot);
            next = order.next;
        }
        assert!(count > 0, "an empty level is listed");
        assert_eq!((lots, count, prev), (level.lots, level.order_count, level.tail), "level {rank:?}");
    }
}
