//! Matching an incoming order against the opposite side: best price first, displayed before hidden, then by the book's allocation.

use walras_types::limits::{FILL_CHECK_LEVELS_MAX, FILL_CHECK_ORDERS_MAX, SHARED_LEVEL_ORDERS_MAX};
use walras_types::{Allocation, ClientOrderId, Display, OrderId, PriceTicks, SelfTrade, Side, SizeLots, prefetch};

use crate::api::{BookEvents, Fill, OwnerId, Party, RemovalCause, Seniority};
use crate::arena::{Order, Place, Plain};
use crate::book::OrderBook;
use crate::price_index::{Level, PriceIndex, Rank};
use crate::slot::{Slot, place_of};

/// An incoming order that is being matched.
pub(crate) struct Taker {
    pub(crate) order_id: OrderId,
    pub(crate) client_order_id: ClientOrderId,
    pub(crate) owner: OwnerId,
    pub(crate) side: Side,
    pub(crate) self_trade: SelfTrade,
    pub(crate) limit: PriceTicks,
    /// The remaining size.
    pub(crate) open: SizeLots,
    /// How many more orders it may meet in this step.
    pub(crate) turns: u32,
}

impl Taker {
    /// Whether trading with an order of `owner` would be a self-trade to prevent.
    #[inline]
    pub(crate) fn shuns(&self, owner: OwnerId) -> bool {
        self.owner == owner && self.self_trade != SelfTrade::Allow
    }

    #[inline]
    pub(crate) fn party(&self) -> Party {
        Party {
            order_id: self.order_id,
            client_order_id: self.client_order_id,
            owner: self.owner,
            limit: self.limit,
            open: self.open,
        }
    }
}

/// Why matching stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// The taker is filled.
    Filled,
    /// There is no opposite order within the bound.
    NoMatch,
    /// Self-trade prevention ended the taker.
    SelfTrade,
    /// It has met the maximum number of orders in this step.
    Paused,
}

/// The result of a fill check: whether a taker could trade its required size at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fillable {
    Yes,
    No,
    /// [`FILL_CHECK_ORDERS_MAX`] orders did not decide it.
    TooDeep,
}

/// The state of a fill check: what the orders met so far would leave.
struct Search {
    /// Lots that are still needed.
    missing: SizeLots,
    /// Lots of the taker that would be left.
    open: SizeLots,
    /// How many more orders may be met.
    orders_left: u32,
}

impl Search {
    /// Counts an order that is met for the first time. `Some` ends the check.
    fn count(&mut self) -> Option<Fillable> {
        let left = self.orders_left.checked_sub(1);
        self.orders_left = left.unwrap_or(0);
        left.is_none().then_some(Fillable::TooDeep)
    }

    /// Meets lots that the taker may trade with. `Some` ends the check.
    fn meet(&mut self, lots: SizeLots) -> Option<Fillable> {
        let size = lots.min(self.open);
        self.open -= size;
        self.missing = self.missing.saturating_sub(size);
        if self.missing.is_zero() { Some(Fillable::Yes) } else { self.open.is_zero().then_some(Fillable::No) }
    }

    /// Meets an order of the taker's owner. `Some` ends the check.
    fn meet_own(&mut self, order: &Order, self_trade: SelfTrade) -> Option<Fillable> {
        match self_trade {
            SelfTrade::CancelNewest | SelfTrade::CancelBoth => Some(Fillable::No),
            SelfTrade::CancelOldest => None,
            SelfTrade::Decrement => {
                self.open = self.open.saturating_sub(order.open);
                (self.open < self.missing).then_some(Fillable::No)
            }
            SelfTrade::Allow => unreachable!("an allowed self-trade is a trade"),
        }
    }
}

/// Number of levels that a sweep removes at once. It must put back levels that it did not need.
const SWEEP_LEVELS: usize = 16;

impl<I: PriceIndex> OrderBook<I> {
    /// Matches until the taker is filled, nothing stands at `bound` or better, or self-trade prevention ends it.
    pub(crate) fn match_taker(&mut self, taker: &mut Taker, bound: Rank, events: &mut impl BookEvents) -> Stopped {
        let opposite = taker.side.opposite() as usize;
        loop {
            if taker.open.is_zero() {
                return Stopped::Filled;
            }
            let side = &self.sides[opposite];
            let displayed = side.displayed.best();
            let rank = displayed.max(side.hidden_best);
            if rank < bound || rank == Rank::BOTTOM {
                return Stopped::NoMatch;
            }
            if taker.turns == 0 {
                return Stopped::Paused;
            }
            let place = if displayed == rank { Place::Displayed } else { Place::Hidden };
            if self.allocation == Allocation::PriceTime && place == Place::Displayed && self.sweep(taker, bound, events) {
                continue;
            }
            let stopped = match (self.allocation, place) {
                (Allocation::PriceTime, _) | (_, Place::Hidden) => self.match_queue(taker, place, rank, taker.turns, events),
                _ => self.match_shared(taker, rank, events),
            };
            if let Some(stopped) = stopped {
                return stopped;
            }
        }
    }

    /// Trades with whole levels, from the best on, as long as the taker fills them completely and there is no hidden order in
    /// between. Most fills of a large order are of this kind. No order is left, so none is written back; their places are freed in
    /// one chain; and one loop runs over all levels, instead of one per level, whose end the processor could not predict. Orders
    /// that are not plain and the taker's own are left to [`OrderBook::match_queue`]. Returns whether it traded.
    #[inline(never)]
    fn sweep(&mut self, taker: &mut Taker, bound: Rank, events: &mut impl BookEvents) -> bool {
        let opposite = taker.side.opposite();
        let bound = bound.max(self.sides[opposite as usize].hidden_best);
        self.swept.clear();
        let (mut count, mut chain) = (0, [None; 2]);
        let (orders, swept) = (self.arena.with_scratch(), &mut self.swept);
        self.sides[opposite as usize].displayed.take_best(bound, taker.open.get(), SWEEP_LEVELS, |rank, level| {
            count += level.order_count;
            let [first, last] = chain;
            orders[place_of(last)].next = level.head;
            prefetch(&orders[place_of(level.head)]);
            chain = [first.or(level.head), level.tail];
            swept.push((rank, level));
        });
        let Some(first) = chain[0] else { return false };
        let mut party = taker.party();
        let may_meet_all = taker.self_trade == SelfTrade::Allow;
        let (mut slot, mut last, mut price) = (first, first, party.limit);
        let turns = count.min(taker.turns);
        for traded in 0..turns {
            let maker = &mut self.arena[slot];
            if maker.plain == Plain::No || (maker.owner == party.owner && !may_meet_all) {
                taker.open = party.open;
                taker.turns -= traded;
                return self.end_sweep_at(opposite, [first, last], slot, traded, events);
            }
            let size = maker.open;
            party.open -= size;
            price = maker.rank.price(opposite);
            maker.place = Place::Swept;
            let next = maker.next;
            events.traded(&Fill { price, size, taker_side: taker.side, maker: maker.party(price, SizeLots::ZERO), taker: party });
            last = slot;
            slot = next.unwrap_or(slot);
        }
        taker.open = party.open;
        taker.turns -= turns;
        if turns < count {
            return self.end_sweep_at(opposite, [first, last], slot, turns, events);
        }
        self.arena.remove_chain(first, last, count as usize);
        self.last_price = Some(price);
        self.swept.iter().for_each(|(rank, _)| events.level_changed(opposite, rank.price(opposite)));
        true
    }

    #[inline]
    pub(crate) fn queue_mut(&mut self, side: usize, place: Place, rank: Rank) -> &mut Level {
        match place {
            Place::Displayed => self.sides[side].displayed.level_mut(rank),
            Place::Hidden => self.sides[side].hidden.get_mut(&rank).expect("the level is present"),
            Place::Parked | Place::Nowhere | Place::Swept => unreachable!("only queues have levels"),
        }
    }

    /// Matches against one queue from its head, meeting at most `turns` orders. `Some` when the taker ends here.
    #[inline]
    pub(crate) fn match_queue(
        &mut self,
        taker: &mut Taker,
        place: Place,
        rank: Rank,
        turns: u32,
        events: &mut impl BookEvents,
    ) -> Option<Stopped> {
        let opposite = taker.side.opposite();
        let price = rank.price(opposite);
        let mut level = *self.queue_mut(opposite as usize, place, rank);
        let (mut traded, mut turns_left) = (0, turns);
        let stopped = loop {
            let Some(slot) = level.head else { break None };
            if turns_left == 0 {
                break None;
            }
            turns_left -= 1;
            self.fetch_next(slot);
            let maker = &mut self.arena[slot];
            if taker.shuns(maker.owner) {
                taker.turns = taker.turns.saturating_sub(turns - turns_left);
                self.write_back(opposite, place, rank, level, traded, events);
                return self.prevent_self_trade(taker, slot, events);
            }
            let size = maker.slice.min(taker.open);
            maker.open -= size;
            maker.slice -= size;
            taker.open -= size;
            level.lots -= size.get();
            traded += size.get();
            events.traded(&Fill {
                price,
                size,
                taker_side: taker.side,
                maker: maker.party(price, maker.open),
                taker: taker.party(),
            });
            if maker.slice.is_zero() {
                level.head = maker.next;
                level.order_count -= 1;
                if maker.open.is_zero() {
                    self.forget(self.named(slot));
                } else {
                    self.replenish(slot, &mut level, events);
                }
            }
            if taker.open.is_zero() {
                break Some(Stopped::Filled);
            }
        };
        taker.turns = taker.turns.saturating_sub(turns - turns_left);
        self.write_back(opposite, place, rank, level, traded, events);
        stopped
    }

    /// Ends a sweep before the order at `slot`, after `traded` orders of a chain: puts back the levels that it did not reach, and
    /// the rest of the one in which it stopped. Returns whether it traded.
    #[cold]
    #[inline(never)]
    fn end_sweep_at(&mut self, side: Side, chain: [Slot; 2], slot: Slot, traded: u32, events: &mut impl BookEvents) -> bool {
        let mut left = traded;
        let mut swept = std::mem::take(&mut self.swept);
        for (rank, mut level) in swept.drain(..) {
            if left > 0 {
                events.level_changed(side, rank.price(side));
            }
            if left >= level.order_count {
                left -= level.order_count;
                self.last_price = Some(rank.price(side));
                continue;
            }
            if traded > 0 && left > 0 {
                self.last_price = Some(rank.price(side));
            }
            let mut gone = level.head;
            for _ in 0..std::mem::take(&mut left) {
                let order = &self.arena[gone.expect("a level has as many orders as it counts")];
                level.lots -= order.open.get();
                level.order_count -= 1;
                gone = order.next;
            }
            level.head = gone;
            self.arena.with_scratch()[place_of(level.head)].prev = None;
            self.arena.with_scratch()[place_of(level.tail)].next = None;
            *self.sides[side as usize].displayed.get_or_insert(rank) = level;
        }
        self.swept = swept;
        let [first, last] = chain;
        if traded > 0 {
            self.arena.remove_chain(first, last, traded as usize);
        }
        debug_assert!(self.arena[slot].prev.is_none(), "the sweep ended at the head of what is left");
        traded > 0
    }

    /// Prefetches what the next iteration and the end of this one need: in a large book each is a cache miss, and a sweep is a
    /// chain of them.
    #[inline]
    fn fetch_next(&self, slot: Slot) {
        let maker = &self.arena[slot];
        self.arena.prefetch(maker.next);
        self.ids.prefetch_tag(maker.tag);
    }

    /// Stores a level that was worked on outside its index, and the price if anything traded.
    #[inline]
    fn write_back(&mut self, side: Side, place: Place, rank: Rank, level: Level, traded: u64, events: &mut impl BookEvents) {
        if traded > 0 {
            let price = rank.price(side);
            self.last_price = Some(price);
            if place == Place::Displayed {
                events.level_changed(side, price);
            }
        }
        match level.head {
            None => self.remove_level(side as usize, place, rank),
            Some(head) => {
                *self.queue_mut(side as usize, place, rank) = level;
                self.arena[head].prev = None;
            }
        }
    }

    /// Gives an iceberg, just taken off the head of its queue, its next slice at the back.
    #[cold]
    pub(crate) fn replenish(&mut self, slot: Slot, level: &mut Level, events: &mut impl BookEvents) {
        let peak = match self.extras.get(slot).display {
            Display::Iceberg { peak } => peak,
            Display::Full | Display::Hidden => unreachable!("only an iceberg has more than its slice"),
        };
        let order = &mut self.arena[slot];
        order.slice = order.open.min(peak);
        self.extras.take_reserve(order.side, order.rank, order.slice);
        order.next = None;
        order.prev = level.tail;
        order.seniority = Seniority::Joined;
        level.lots += order.slice.get();
        level.order_count += 1;
        events.replenished(order.order_id, order.slice);
        match level.head {
            // It was alone: `tail` still names it.
            None => {
                order.prev = None;
                level.head = Some(slot);
            }
            Some(_) => {
                let tail = level.tail.expect("a queue with a head has a tail");
                self.arena[tail].next = Some(slot);
            }
        }
        level.tail = Some(slot);
    }

    /// Applies self-trade prevention between the taker and `slot`, an order of the same owner at the head of the best queue. `Some`
    /// if the taker ends.
    #[cold]
    #[inline(never)]
    pub(crate) fn prevent_self_trade(&mut self, taker: &mut Taker, slot: Slot, events: &mut impl BookEvents) -> Option<Stopped> {
        match taker.self_trade {
            SelfTrade::CancelNewest => Some(Stopped::SelfTrade),
            SelfTrade::CancelOldest => {
                self.remove_told(slot, RemovalCause::SelfTrade, events);
                None
            }
            SelfTrade::CancelBoth => {
                self.remove_told(slot, RemovalCause::SelfTrade, events);
                Some(Stopped::SelfTrade)
            }
            SelfTrade::Decrement => {
                let order = self.arena[slot];
                let by = order.open.min(taker.open);
                taker.open -= by;
                if by == order.open {
                    self.remove_told(slot, RemovalCause::SelfTrade, events);
                } else {
                    self.shrink(slot, by, events);
                    events.reduced(&self.order_at(slot), by);
                }
                events.taker_reduced(by, taker.open);
                taker.open.is_zero().then_some(Stopped::SelfTrade)
            }
            SelfTrade::Allow => unreachable!("an allowed self-trade is a trade"),
        }
    }

    /// Reduces an order by `by` in place, its hidden part first.
    fn shrink(&mut self, slot: Slot, by: SizeLots, events: &mut impl BookEvents) {
        let order = &mut self.arena[slot];
        let hid = order.reserve();
        order.open -= by;
        let cut = order.slice.saturating_sub(order.open);
        order.slice -= cut;
        let (side, place, rank) = (order.side, order.place, order.rank);
        let hides = order.reserve();
        self.queue_mut(side as usize, place, rank).lots -= cut.get();
        if hides != hid {
            self.extras.take_reserve(side, rank, hid - hides);
        }
        if place == Place::Displayed && !cut.is_zero() {
            events.level_changed(side, rank.price(side));
        }
    }

    /// Whether `taker` would trade `wanted` lots at once, taking self-trade prevention into account. The check is free for the
    /// sender, so its cost must not grow with the book: it gives up at a limit.
    pub(crate) fn fillable(&self, taker: &Taker, bound: Rank, wanted: SizeLots) -> Fillable {
        match taker.self_trade {
            SelfTrade::Allow => self.fillable_by_levels(taker.side.opposite(), bound, wanted),
            SelfTrade::CancelNewest | SelfTrade::CancelOldest | SelfTrade::CancelBoth | SelfTrade::Decrement => {
                self.fillable_by_orders(taker, bound, wanted)
            }
        }
    }

    /// The same for a taker without own orders opposite: a level's size is known without looking at its orders. Gives up after
    /// [`FILL_CHECK_LEVELS_MAX`] prices, or if icebergs must be found among more than [`FILL_CHECK_ORDERS_MAX`] orders that are not
    /// plain.
    fn fillable_by_levels(&self, side: Side, bound: Rank, wanted: SizeLots) -> Fillable {
        let queues = &self.sides[side as usize];
        let (mut displayed, mut hidden) = (queues.displayed.best(), queues.hidden_best);
        let mut lots = 0;
        for _ in 0..FILL_CHECK_LEVELS_MAX {
            let rank = displayed.max(hidden);
            if rank < bound || rank == Rank::BOTTOM {
                return self.fillable_by_reserves(side, bound, wanted.get() - lots);
            }
            if displayed == rank {
                lots += queues.displayed.get(rank).map_or(0, |level| level.lots);
                displayed = queues.displayed.next_worse(rank);
            }
            if hidden == rank {
                lots += queues.hidden.get(&rank).map_or(0, |level| level.lots);
                hidden = queues.hidden.range(..rank).next_back().map_or(Rank::BOTTOM, |(rank, _)| *rank);
            }
            if lots >= wanted.get() {
                return Fillable::Yes;
            }
        }
        Fillable::TooDeep
    }

    /// Whether icebergs hide `missing` lots behind their slices. A level's size counts only the slices.
    fn fillable_by_reserves(&self, side: Side, bound: Rank, missing: u64) -> Fillable {
        if self.extras.len() > FILL_CHECK_ORDERS_MAX as usize {
            return Fillable::TooDeep;
        }
        let orders = self.extras.by_slot().keys().map(|slot| &self.arena[*slot]);
        let reached = orders.filter(|order| order.place == Place::Displayed && order.side == side && order.rank >= bound);
        let reserves: SizeLots = reached.map(|order| order.open - order.slice).sum();
        if reserves.get() >= missing { Fillable::Yes } else { Fillable::No }
    }

    /// The same for one that may meet orders of its own owner: walks the orders that it would meet, best first, and gives up after
    /// [`FILL_CHECK_ORDERS_MAX`] of them.
    fn fillable_by_orders(&self, taker: &Taker, bound: Rank, wanted: SizeLots) -> Fillable {
        let side = &self.sides[taker.side.opposite() as usize];
        let mut search = Search { missing: wanted, open: taker.open, orders_left: FILL_CHECK_ORDERS_MAX };
        let (mut displayed, mut hidden) = (side.displayed.best(), side.hidden_best);
        loop {
            let rank = displayed.max(hidden);
            if rank < bound || rank == Rank::BOTTOM {
                return Fillable::No;
            }
            let level = if displayed == rank { side.displayed.get(rank) } else { side.hidden.get(&rank) };
            let head = level.and_then(|level| level.head);
            // Where a level is shared, self-trade prevention looks at all of it before anything trades; else slices trade in turn.
            let is_shared = self.allocation != Allocation::PriceTime && displayed == rank;
            if is_shared && level.is_some_and(|level| level.order_count > SHARED_LEVEL_ORDERS_MAX) {
                // It would trade in turn, and be shared when it is shorter.
                return Fillable::TooDeep;
            }
            let slice_of = |order: &Order| if is_shared { SizeLots::ZERO } else { order.slice };
            let found = self.search_queue(head, |order| {
                search.count().or_else(|| match taker.shuns(order.owner) {
                    true => search.meet_own(order, taker.self_trade),
                    false => search.meet(slice_of(order)),
                })
            });
            // What icebergs replenish comes after all slices, when no order of the taker's owner is left.
            let found = found.or_else(|| {
                self.search_queue(head, |order| match taker.shuns(order.owner) {
                    true => None,
                    false => search.meet(order.open - slice_of(order)),
                })
            });
            if let Some(found) = found {
                return found;
            }
            if displayed == rank {
                displayed = side.displayed.next_worse(rank);
            } else {
                hidden = side.hidden.range(..rank).next_back().map_or(Rank::BOTTOM, |(rank, _)| *rank);
            }
        }
    }

    /// The first answer that `meet` gives for an order of a queue.
    fn search_queue(&self, mut next: Option<Slot>, mut meet: impl FnMut(&Order) -> Option<Fillable>) -> Option<Fillable> {
        while let Some(slot) = next {
            let order = &self.arena[slot];
            let found = meet(order);
            if found.is_some() {
                return found;
            }
            next = order.next;
        }
        None
    }

    /// Whether an order hides more than its slice.
    #[inline]
    pub(crate) fn is_iceberg(&self, slot: Slot) -> bool {
        self.arena[slot].plain == Plain::No && matches!(self.extras.get(slot).display, Display::Iceberg { .. })
    }
}
