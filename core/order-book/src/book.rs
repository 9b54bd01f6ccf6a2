//! The book: entering, amending and leaving. Matching itself is in `matching`, auctions in `auction`.

use std::collections::BTreeMap;

use walras_types::{Allocation, ClientOrderId, Display, OrderId, PostOnly, PriceTicks, Side, SizeLots, TimeInForce, TimeNs};

use crate::api::{
    Amended, Band, Becomes, BookEvents, Condition, Entry, Fate, Handle, OpenOrder, OwnerId, Placed, PlainOrder, Refusal,
    RemovalCause, Seniority, Trailing, Trigger, Triggered,
};
use crate::arena::{Arena, Lifetime, Order, Place, Plain};
use crate::extras::{Extras, ExtrasTable};
use crate::id_index::{Found, IdIndex, Named, Vacancy};
use crate::ladder::Ladder;
use crate::matching::{Fillable, Stopped, Taker};
use crate::price_index::{Level, PriceIndex, Rank};
use crate::slot::{Slot, place_of};
use crate::stops::Stops;
use crate::warm::NameHash;

/// One side's queues.
#[derive(Default)]
#[repr(align(128))] // a power of two: the side of an order is found by a shift
pub(crate) struct BookSide<I> {
    /// The displayed queues.
    pub(crate) displayed: I,
    /// The hidden queues.
    pub(crate) hidden: BTreeMap<Rank, Level>,
    /// Best rank among the hidden.
    pub(crate) hidden_best: Rank,
}

impl<I: PriceIndex> BookSide<I> {
    /// The hidden queue of a rank, made empty if it was not there.
    #[cold]
    #[inline(never)]
    fn hidden_level(&mut self, rank: Rank) -> &mut Level {
        self.hidden_best = self.hidden_best.max(rank);
        self.hidden.entry(rank).or_default()
    }

    /// The best rank of any order, displayed or hidden.
    #[inline]
    pub(crate) fn best(&self) -> Rank {
        self.displayed.best().max(self.hidden_best)
    }
}

/// One instrument's continuous book. See the crate's documentation.
pub struct OrderBook<I: PriceIndex = Ladder> {
    pub(crate) sides: [BookSide<I>; 2],
    pub(crate) arena: Arena,
    pub(crate) ids: IdIndex,
    pub(crate) extras: ExtrasTable,
    pub(crate) stops: Stops,
    pub(crate) allocation: Allocation,
    pub(crate) last_price: Option<PriceTicks>,
    /// Shares of a pro-rata level, kept to spare an allocation per match.
    pub(crate) shares: Vec<u64>,
    /// Levels that a sweep removed, kept for the same reason.
    pub(crate) swept: Vec<(Rank, Level)>,
    /// Maximum number of orders that an incoming one meets in one step.
    step_max: u32,
}

impl<I: PriceIndex> OrderBook<I> {
    /// An empty book.
    #[must_use]
    pub fn new(allocation: Allocation) -> Self {
        Self::with_hash_seed(allocation, 0)
    }

    /// An empty book whose id index is keyed by `hash_seed`, which participants must not know, so that they cannot choose colliding
    /// ids. Nothing that the book reports depends on it.
    #[must_use]
    pub fn with_hash_seed(allocation: Allocation, hash_seed: u64) -> Self {
        Self {
            sides: [BookSide::default(), BookSide::default()],
            arena: Arena::new(),
            ids: IdIndex::new(hash_seed),
            extras: ExtrasTable::default(),
            stops: Stops::default(),
            allocation,
            last_price: None,
            shares: Vec::new(),
            swept: Vec::new(),
            step_max: u32::MAX,
        }
    }

    /// The same book, in which an incoming order pauses after it has met `step_max` others, see [`Fate::Paused`], plus the rest of
    /// a level that is shared. Without this, orders never pause.
    #[must_use]
    pub fn with_step_max(self, step_max: u32) -> Self {
        Self { step_max, ..self }
    }

    /// [`OrderBook::with_step_max`] from now on.
    pub fn set_step_max(&mut self, step_max: u32) {
        self.step_max = step_max;
    }

    /// Reserves memory for `orders` open orders.
    pub fn reserve(&mut self, orders: usize) {
        self.arena.reserve(orders);
        self.ids.reserve(orders);
    }

    /// Enters an order while the market matches continuously. A refusal reports nothing and changes nothing.
    #[inline]
    pub fn submit(&mut self, entry: &Entry, band: Band, events: &mut impl BookEvents) -> Result<Placed, Refusal> {
        let name = NameHash(self.ids.tag_of(entry.owner, entry.client_order_id));
        self.submit_named(name, entry, band, events)
    }

    /// As [`OrderBook::submit`], where `name` is the hash of the order's name.
    #[inline(always)] // of what is inlined, what the caller does not use costs nothing
    pub fn submit_named(
        &mut self,
        name: NameHash,
        entry: &Entry,
        band: Band,
        events: &mut impl BookEvents,
    ) -> Result<Placed, Refusal> {
        let tag = name.0;
        let vacancy = self.check_name_and_room(tag, entry)?;
        if let Some(trigger) = entry.trigger {
            return self.submit_stop(*entry, tag, trigger, band, events);
        }
        let rank = Rank::of(entry.side, entry.price);
        if self.sides[entry.side.opposite() as usize].best() >= rank.mirrored() {
            return self.submit_crossing(*entry, tag, rank, band, events);
        }
        // There is nothing to trade with: it rests or ends.
        match entry.time_in_force {
            TimeInForce::FillOrKill => Err(Refusal::FillOrKillUnfillable),
            _ if entry.min_size.is_some() => Err(Refusal::MinSizeUnfillable),
            TimeInForce::ImmediateOrCancel => Ok(Placed { price: entry.price, fate: Fate::Unfilled { open: entry.size } }),
            TimeInForce::GoodTillCancel | TimeInForce::Day | TimeInForce::GoodTill(_) => {
                Ok(Placed { price: entry.price, fate: self.rest(entry, tag, vacancy, rank, entry.size) })
            }
        }
    }

    /// Enters a stop: it waits, or, if the last trade touches it, enters as the order that it becomes.
    #[cold]
    #[inline(never)]
    fn submit_stop(
        &mut self,
        entry: Entry,
        tag: u32,
        trigger: Trigger,
        band: Band,
        events: &mut impl BookEvents,
    ) -> Result<Placed, Refusal> {
        let trigger = self.starting(entry.side, trigger);
        if self.last_price.is_some_and(|last| trigger.condition.is_touched(entry.side, trigger.price, last)) {
            return self.submit_named(NameHash(tag), &entry.once_triggered(), band, events);
        }
        Ok(self.park(&entry, tag, self.ids.vacancy(tag), trigger))
    }

    /// The trigger of an order that comes now: a trailing stop's begins at the last trade.
    fn starting(&self, side: Side, trigger: Trigger) -> Trigger {
        match (trigger.trailing, self.last_price) {
            (Some(Trailing { by, .. }), Some(last)) => Trigger::trailing(side, by, last, trigger.becomes),
            (Some(Trailing { by, best }), None) => Trigger::trailing(side, by, best, trigger.becomes),
            (None, _) => trigger,
        }
    }

    /// Enters an order that could trade at once.
    #[inline(never)]
    fn submit_crossing(
        &mut self,
        entry: Entry,
        tag: u32,
        rank: Rank,
        band: Band,
        events: &mut impl BookEvents,
    ) -> Result<Placed, Refusal> {
        match entry.post_only {
            PostOnly::Off => {}
            PostOnly::Reject => return Err(Refusal::PostOnlyWouldTrade),
            PostOnly::Reprice => {
                let rank = self.rank_behind_opposite(entry.side)?;
                return Ok(Placed { price: rank.price(entry.side), fate: self.rest_crossing(&entry, tag, rank, entry.size) });
            }
        }
        let bound = self.bound_of(entry.side, rank, band);
        let mut taker = Taker {
            order_id: entry.order_id,
            client_order_id: entry.client_order_id,
            owner: entry.owner,
            side: entry.side,
            self_trade: entry.self_trade,
            limit: entry.price,
            open: entry.size,
            turns: self.step_max,
        };
        if entry.time_in_force == TimeInForce::FillOrKill {
            self.check_fillable(&taker, bound, entry.size, Refusal::FillOrKillUnfillable)?;
        }
        if let Some(min_size) = entry.min_size {
            self.check_fillable(&taker, bound, min_size, Refusal::MinSizeUnfillable)?;
        }
        let stopped = self.match_taker(&mut taker, bound, events);
        self.follow_unless_paused(stopped);
        let fate = match self.fate_of(&taker, rank, stopped) {
            Some(Fate::Paused { open }) => self.pause(entry, tag, open),
            Some(fate) => fate,
            None => match entry.time_in_force {
                TimeInForce::ImmediateOrCancel | TimeInForce::FillOrKill => Fate::Unfilled { open: taker.open },
                TimeInForce::GoodTillCancel | TimeInForce::Day | TimeInForce::GoodTill(_) => {
                    self.rest_crossing(&entry, tag, rank, taker.open)
                }
            },
        };
        Ok(Placed { price: entry.price, fate })
    }

    /// Moves the triggers of trailing stops once an order has ended its matching. So they are where they would be if it had traded
    /// all at once.
    #[inline]
    fn follow_unless_paused(&mut self, stopped: Stopped) {
        if stopped != Stopped::Paused {
            self.stops.follow(self.last_price);
        }
    }

    /// Refuses a taker that would not trade `wanted` lots at once, as `unfillable`.
    fn check_fillable(&self, taker: &Taker, bound: Rank, wanted: SizeLots, unfillable: Refusal) -> Result<(), Refusal> {
        match self.fillable(taker, bound, wanted) {
            Fillable::Yes => Ok(()),
            Fillable::No => Err(unfillable),
            Fillable::TooDeep => Err(Refusal::FillCheckTooDeep),
        }
    }

    /// Enters an order while nothing matches. It rests even if it crosses opposite orders, and even if it is post-only. A stop
    /// waits even if the last trade touches it; [`OrderBook::take_triggered`] then returns it next. An order that is held may be collected
    /// at any time.
    pub fn collect(&mut self, entry: &Entry) -> Result<Placed, Refusal> {
        match entry.trigger {
            Some(trigger @ Trigger { trailing: Some(_), .. }) => {
                self.collect_as_it_is(&Entry { trigger: Some(self.starting(entry.side, trigger)), ..*entry })
            }
            Some(_) | None => self.collect_as_it_is(entry),
        }
    }

    /// As [`OrderBook::collect`], of an order whose trailing trigger may be that of a saved one.
    pub(crate) fn collect_as_it_is(&mut self, entry: &Entry) -> Result<Placed, Refusal> {
        let tag = self.ids.tag_of(entry.owner, entry.client_order_id);
        let vacancy = self.check_name_and_room(tag, entry)?;
        match entry.time_in_force {
            TimeInForce::GoodTillCancel | TimeInForce::Day | TimeInForce::GoodTill(_) => {}
            TimeInForce::ImmediateOrCancel | TimeInForce::FillOrKill => {
                assert!(entry.trigger.is_some(), "an order that cannot rest is not collected");
            }
        }
        if let Some(trigger) = entry.trigger {
            return Ok(self.park(entry, tag, vacancy, trigger));
        }
        let rank = Rank::of(entry.side, entry.price);
        Ok(Placed { price: entry.price, fate: self.rest(entry, tag, vacancy, rank, entry.size) })
    }

    /// Checks that an order's name, whose hash is `tag`, is free and that there is room for it. Returns the place for the name.
    #[inline]
    fn check_name_and_room(&self, tag: u32, entry: &Entry) -> Result<Vacancy, Refusal> {
        debug_assert_eq!(tag, self.ids.tag_of(entry.owner, entry.client_order_id), "the hash is of another name");
        match self.ids.search(&self.arena, tag, entry.owner, entry.client_order_id) {
            Found::Order(_) => Err(Refusal::DuplicateClientOrderId),
            Found::Nothing(_) if self.arena.is_full() => Err(Refusal::BookFull),
            Found::Nothing(vacancy) => Ok(vacancy),
        }
    }

    /// The outcome for a taker, unless it may rest.
    #[inline]
    fn fate_of(&self, taker: &Taker, rank: Rank, stopped: Stopped) -> Option<Fate> {
        let open = taker.open;
        match stopped {
            Stopped::SelfTrade => Some(Fate::SelfTraded { open }),
            Stopped::Filled => Some(Fate::Filled),
            Stopped::Paused => Some(Fate::Paused { open }),
            Stopped::NoMatch if self.sides[taker.side.opposite() as usize].best() >= rank.mirrored() => Some(Fate::Banded { open }),
            Stopped::NoMatch => None,
        }
    }

    /// The worst opposite rank at which an order of `side` with limit `rank` may trade. `None` if the first trade would already be
    /// beyond the band's other end.
    #[inline]
    fn bound_of(&self, side: Side, rank: Rank, band: Band) -> Rank {
        let opposite = side.opposite();
        let (near, far) = match side {
            Side::Buy => (band.low, band.high),
            Side::Sell => (band.high, band.low),
        };
        if self.sides[opposite as usize].best() > Rank::of(opposite, near) {
            return Rank::UNREACHED;
        }
        rank.mirrored().max(Rank::of(opposite, far))
    }

    /// The best rank at which a post-only order of `side` does not trade.
    fn rank_behind_opposite(&self, side: Side) -> Result<Rank, Refusal> {
        let opposite = self.sides[side.opposite() as usize].best().price(side.opposite()).get();
        let behind = match side {
            Side::Buy => opposite - 1,
            Side::Sell => opposite + 1,
        };
        PriceTicks::new(behind).map(|price| Rank::of(side, price)).ok_or(Refusal::PostOnlyWouldTrade)
    }

    /// Puts an order or its rest at the back of its queue.
    #[inline(always)]
    pub(crate) fn rest(&mut self, entry: &Entry, tag: u32, vacancy: Vacancy, rank: Rank, open: SizeLots) -> Fate {
        let is_plain =
            matches!((entry.display, entry.time_in_force), (Display::Full, TimeInForce::GoodTillCancel | TimeInForce::Day));
        if is_plain {
            return self.rest_plain(entry, tag, vacancy, rank, open);
        }
        self.rest_special(*entry, tag, vacancy, rank, open)
    }

    /// As [`OrderBook::rest`], for an order that could have traded: its trades may have changed the place for its name.
    #[inline(never)]
    fn rest_crossing(&mut self, entry: &Entry, tag: u32, rank: Rank, open: SizeLots) -> Fate {
        self.rest(entry, tag, self.ids.vacancy(tag), rank, open)
    }

    /// As [`OrderBook::rest`], for a plain order. Like `requeue_usual`, it touches each cache line once.
    #[inline(always)]
    fn rest_plain(&mut self, entry: &Entry, tag: u32, vacancy: Vacancy, rank: Rank, open: SizeLots) -> Fate {
        let slot = self.take_place(tag, vacancy);
        let index = &mut self.sides[entry.side as usize].displayed;
        let seniority = seniority_of(rank, index.best());
        let tail = index.get_or_insert(rank).push_back(slot, open.get());
        let orders = self.arena.with_scratch();
        orders[place_of(tail)].next = Some(slot);
        orders[slot.index()] = Order { prev: tail, seniority, ..Order::entering(entry, tag, rank, open) };
        Fate::Rested { open, shown: open }
    }

    /// Takes a place for an order whose name goes to `vacancy`.
    #[inline(always)]
    fn take_place(&mut self, tag: u32, vacancy: Vacancy) -> Slot {
        let slot = self.arena.take_place();
        if self.arena[slot].place == Place::Swept {
            self.replace_name(tag, slot);
        } else {
            self.ids.insert(vacancy, tag, slot);
        }
        slot
    }

    /// Names an order that takes the place of a swept one, and removes that one's name.
    #[inline(always)]
    fn replace_name(&mut self, tag: u32, slot: Slot) {
        self.ids.remove(self.ids.entry_of(self.arena[slot].tag, slot));
        self.arena.forget_swept();
        self.ids.insert(self.ids.vacancy(tag), tag, slot);
    }

    /// As [`OrderBook::rest`], for an order that is hidden, an iceberg, or expires.
    #[inline(never)]
    fn rest_special(&mut self, entry: Entry, tag: u32, vacancy: Vacancy, rank: Rank, open: SizeLots) -> Fate {
        let place = if entry.display == Display::Hidden { Place::Hidden } else { Place::Displayed };
        let slice = if let Display::Iceberg { peak } = entry.display { open.min(peak) } else { open };
        let slot = self.take_place(tag, vacancy);
        self.arena[slot] = Order { slice, place, plain: Plain::No, ..Order::entering(&entry, tag, rank, open) };
        let extras = Extras { display: entry.display, time_in_force: entry.time_in_force, min_size: None, stop: None };
        self.extras.insert(slot, entry.order_id, extras);
        self.link(slot);
        Fate::Rested { open, shown: self.shown(slot) }
    }

    /// Sets an order aside until a trade touches its trigger.
    fn park(&mut self, entry: &Entry, tag: u32, vacancy: Vacancy, trigger: Trigger) -> Placed {
        let slot = self.take_place(tag, vacancy);
        let entering = Order::entering(entry, tag, Rank::of(entry.side, entry.price), entry.size);
        self.arena[slot] = Order { slice: SizeLots::ZERO, place: Place::Parked, plain: Plain::No, ..entering };
        let stop = self.stops.park(entry.side, trigger, slot);
        let extras =
            Extras { display: entry.display, time_in_force: entry.time_in_force, min_size: entry.min_size, stop: Some(stop) };
        self.extras.insert(slot, entry.order_id, extras);
        Placed { price: entry.price, fate: Fate::Parked }
    }

    /// Parks the rest of a paused order. It was checked on entry, and nothing enters before it continues.
    #[cold]
    #[inline(never)]
    fn pause(&mut self, entry: Entry, tag: u32, open: SizeLots) -> Fate {
        let time_in_force = match entry.time_in_force {
            TimeInForce::FillOrKill => TimeInForce::ImmediateOrCancel,
            other => other,
        };
        let rest = Entry { size: open, time_in_force, min_size: None, ..entry };
        let turn = Trigger::fixed(entry.price, Condition::Stop, Becomes::Rest);
        self.park(&rest, tag, self.ids.vacancy(tag), turn);
        Fate::Paused { open }
    }

    /// The same for an order that was in the book before it was amended and is in no queue now.
    #[cold]
    #[inline(never)]
    fn pause_amended(&mut self, slot: Slot, limit: PriceTicks, open: SizeLots) -> Fate {
        let (entry, tag) = (entry_of(&self.order_at(slot), limit), self.arena[slot].tag);
        self.forget(self.named(slot));
        self.pause(entry, tag, open)
    }

    /// Whether [`OrderBook::take_triggered`] would return something: the rest of a paused order, or a stop that the last trade
    /// touches.
    #[inline]
    #[must_use]
    pub fn has_triggered(&self) -> bool {
        self.stops.first_touched(self.last_price).is_some()
    }

    /// Whether the rest of a paused order must continue before anything else enters.
    #[inline]
    #[must_use]
    pub fn has_paused(&self) -> bool {
        self.stops.has_paused()
    }

    /// Removes the rest of a paused order, or one stop that the last trade touches, and returns it as the entry that it becomes.
    /// The caller enters it and calls again until there is none, because its trades may touch more of them. Stops come before
    /// take-profits before trailing stops, and buys before sells; among those, the one whose trigger a moving price meets first; within a
    /// trigger, the one that has waited longest, of trailing stops the one of the smallest distance, in ticks before in millionths.
    #[inline]
    pub fn take_triggered(&mut self) -> Option<Triggered> {
        let slot = self.stops.first_touched(self.last_price)?;
        let order = self.order_at(slot);
        self.unlink(slot);
        self.forget(self.named(slot));
        if order.trigger.is_some_and(|trigger| trigger.becomes == Becomes::Rest) && !self.would_trade(order.side, order.price) {
            // What it was to trade with has left, so that its matching is at its end.
            self.stops.follow(self.last_price);
        }
        let trailed_to = order.trigger.filter(|trigger| trigger.trailing.is_some()).map(|trigger| trigger.price);
        Some(Triggered { entry: entry_of(&order, order.price).once_triggered(), trailed_to })
    }

    /// The open order with that name.
    #[inline]
    #[must_use]
    pub fn find(&self, owner: OwnerId, client_order_id: ClientOrderId) -> Option<Handle> {
        self.find_named(NameHash(self.ids.tag_of(owner, client_order_id)), owner, client_order_id)
    }

    /// As [`OrderBook::find`], where `name` is the hash of the name.
    #[inline]
    #[must_use]
    pub fn find_named(&self, name: NameHash, owner: OwnerId, client_order_id: ClientOrderId) -> Option<Handle> {
        match self.ids.search(&self.arena, name.0, owner, client_order_id) {
            Found::Order(named) => Some(Handle(named)),
            Found::Nothing(_) => None,
        }
    }

    /// An open order.
    #[inline(always)] // of what is inlined only what the caller reads is worked out
    #[must_use]
    pub fn view(&self, handle: Handle) -> OpenOrder {
        self.order_at(handle.0.slot)
    }

    /// The venue's name for an open order: all that some need of [`OrderBook::view`].
    #[inline]
    #[must_use]
    pub fn order_id(&self, handle: Handle) -> OrderId {
        self.arena[handle.0.slot].order_id
    }

    /// As [`OrderBook::view`], of the order at `slot`.
    #[inline(always)]
    pub(crate) fn order_at(&self, slot: Slot) -> OpenOrder {
        let order = &self.arena[slot];
        order.view(match order.plain {
            Plain::Yes => Extras::of_plain(order.lifetime),
            Plain::No => self.special_extras(slot, order.side),
        })
    }

    /// The extras of an order that is not plain, with its trigger as it is now.
    #[cold]
    #[inline(never)]
    fn special_extras(&self, slot: Slot, side: Side) -> Extras {
        let mut extras = self.extras.get(slot);
        if let Some(stop) = &mut extras.stop {
            stop.trigger = self.stops.current(side, *stop);
        }
        extras
    }

    #[inline]
    pub(crate) fn shown(&self, slot: Slot) -> SizeLots {
        self.arena[slot].shown()
    }

    /// Removes an order; returns its last state.
    #[inline(always)]
    pub fn cancel(&mut self, handle: Handle) -> OpenOrder {
        let order = self.order_at(handle.0.slot);
        self.take_out_named(handle.0);
        order
    }

    /// Amends an order while the market matches continuously. It keeps its queue position only if it just shrinks. A pending stop
    /// always keeps its position. An iceberg's hidden part shrinks first. A refusal changes nothing.
    #[inline(always)]
    pub fn amend(
        &mut self,
        handle: Handle,
        price: Option<PriceTicks>,
        size: Option<SizeLots>,
        band: Band,
        events: &mut impl BookEvents,
    ) -> Result<Amended, Refusal> {
        let slot = handle.0.slot;
        let order = &self.arena[slot];
        let side = order.side;
        let rank = price.map_or(order.rank, |price| Rank::of(side, price));
        let open = size.unwrap_or(order.open);
        let keeps_place = rank == order.rank && open <= order.open;
        let is_usual = order.place == Place::Displayed && order.plain == Plain::Yes;
        if is_usual && !keeps_place && self.sides[side.opposite() as usize].best() < rank.mirrored() {
            self.requeue_usual(slot, rank, open);
            let price = price.unwrap_or_else(|| rank.price(side));
            return Ok(Amended::Requeued { placed: Placed { price, fate: Fate::Rested { open, shown: open } } });
        }
        self.amend_unusual(slot, rank, open, band, events)
    }

    /// The part of an open order that is needed to move it, if the order is plain: fully displayed, not pending and not expiring.
    #[inline]
    #[must_use]
    pub fn plain(&self, handle: Handle) -> Option<PlainOrder> {
        let order = &self.arena[handle.0.slot];
        let is_plain = order.place == Place::Displayed && order.plain == Plain::Yes;
        is_plain.then(|| PlainOrder {
            order_id: order.order_id,
            side: order.side,
            price: order.rank.price(order.side),
            open: order.open,
        })
    }

    /// Whether an order of `side` with limit `price` would trade if it entered now.
    #[inline]
    #[must_use]
    pub fn would_trade(&self, side: Side, price: PriceTicks) -> bool {
        self.sides[side.opposite() as usize].best() >= Rank::of(side, price).mirrored()
    }

    /// Puts a plain order at the back of the queue of `price`, with `open` lots. It would not trade there.
    #[inline(always)]
    pub fn requeue_plain(&mut self, handle: Handle, side: Side, price: PriceTicks, open: SizeLots) {
        debug_assert!(self.plain(handle).is_some() && !self.would_trade(side, price), "the caller has looked");
        self.requeue_usual(handle.0.slot, Rank::of(side, price), open);
    }

    /// As [`OrderBook::amend`], for an order that keeps its place, could trade, or is not plain.
    #[inline(never)]
    fn amend_unusual(
        &mut self,
        slot: Slot,
        rank: Rank,
        open: SizeLots,
        band: Band,
        events: &mut impl BookEvents,
    ) -> Result<Amended, Refusal> {
        let order = &self.arena[slot];
        if order.place == Place::Parked || (rank == order.rank && open <= order.open) {
            return Ok(self.amend_in_place(slot, rank, open));
        }
        if self.sides[order.side.opposite() as usize].best() >= rank.mirrored() {
            return self.requeue_crossing(slot, rank, open, band, events);
        }
        Ok(self.requeue(slot, rank, open))
    }

    /// Moves a plain displayed order to the back of another queue. Most commands of a busy market do this, so it touches each cache
    /// line once.
    #[inline(always)]
    fn requeue_usual(&mut self, slot: Slot, rank: Rank, open: SizeLots) {
        let orders = self.arena.with_scratch();
        let order = &orders[slot.index()];
        let (old_rank, old_lots, prev, next) = (order.rank, order.slice.get(), order.prev, order.next);
        let index = &mut self.sides[order.side as usize].displayed;
        index.take_out(old_rank, old_lots, prev, next);
        orders[place_of(prev)].next = next;
        orders[place_of(next)].prev = prev;
        let seniority = seniority_of(rank, index.best());
        let tail = index.get_or_insert(rank).push_back(slot, open.get());
        orders[place_of(tail)].next = Some(slot);
        let order = &mut orders[slot.index()];
        order.rank = rank;
        order.open = open;
        order.slice = open;
        order.prev = tail;
        order.next = None;
        order.seniority = seniority;
    }

    /// Amends an order while nothing matches.
    pub fn amend_collected(
        &mut self,
        handle: Handle,
        price: Option<PriceTicks>,
        size: Option<SizeLots>,
    ) -> Result<Amended, Refusal> {
        let slot = handle.0.slot;
        let order = &self.arena[slot];
        let rank = price.map_or(order.rank, |price| Rank::of(order.side, price));
        let open = size.unwrap_or(order.open);
        if order.place == Place::Parked || (rank == order.rank && open <= order.open) {
            return Ok(self.amend_in_place(slot, rank, open));
        }
        Ok(self.requeue(slot, rank, open))
    }

    /// Gives a pending stop another trigger price, at the back of that trigger's queue, with a new limit and size. If the last
    /// trade touches it, [`OrderBook::take_triggered`] returns it next.
    ///
    /// # Panics
    /// If the order is not a pending stop, or is a trailing one.
    pub fn retrigger(&mut self, handle: Handle, trigger: PriceTicks, price: PriceTicks, size: SizeLots) -> OpenOrder {
        let slot = handle.0.slot;
        let side = self.arena[slot].side;
        assert_eq!(self.arena[slot].place, Place::Parked, "only an order that waits has a trigger to change");
        let stop = self.extras.get(slot).stop.expect("a parked order has a trigger");
        assert!(stop.trigger.trailing.is_none(), "a trailing stop's trigger is moved by the market alone");
        self.stops.remove(side, stop);
        let stop = self.stops.park(side, Trigger { price: trigger, ..stop.trigger }, slot);
        self.extras.set_stop(slot, stop);
        self.amend_in_place(slot, Rank::of(side, price), size);
        self.view(handle)
    }

    /// Lets a held order wait for its trigger, with `size` lots, at the back of the trigger's queue. If the last trade touches it,
    /// [`OrderBook::take_triggered`] returns it next.
    ///
    /// # Panics
    /// If the order is not held.
    pub fn release(&mut self, handle: Handle, size: SizeLots) -> OpenOrder {
        let slot = handle.0.slot;
        let stop = self.extras.get(slot).stop.expect("a held order has a trigger");
        assert!(stop.trigger.is_held, "only an order that is held is released");
        let (side, rank) = (self.arena[slot].side, self.arena[slot].rank);
        self.stops.remove(side, stop);
        let stop = self.stops.park(side, Trigger { is_held: false, ..stop.trigger }, slot);
        self.extras.set_stop(slot, stop);
        self.amend_in_place(slot, rank, size);
        self.view(handle)
    }

    /// Gives an order that waits another size, where it stands.
    ///
    /// # Panics
    /// If the order does not wait.
    pub fn resize_waiting(&mut self, handle: Handle, size: SizeLots) -> OpenOrder {
        let slot = handle.0.slot;
        assert_eq!(self.arena[slot].place, Place::Parked, "only an order that waits is resized where it stands");
        self.amend_in_place(slot, self.arena[slot].rank, size);
        self.view(handle)
    }

    fn amend_in_place(&mut self, slot: Slot, rank: Rank, open: SizeLots) -> Amended {
        let order = &mut self.arena[slot];
        let hid = order.reserve();
        order.rank = rank;
        order.open = open;
        let slice = order.slice.min(open);
        let cut = order.slice - slice;
        order.slice = slice;
        let (side, place, hides) = (order.side, order.place, order.reserve());
        match place {
            Place::Displayed => {
                self.sides[side as usize].displayed.level_mut(rank).lots -= cut.get();
                self.extras.take_reserve(side, rank, hid - hides);
            }
            Place::Hidden => {
                let level = self.sides[side as usize].hidden.get_mut(&rank).expect("a hidden order has a level");
                level.lots -= cut.get();
            }
            Place::Parked => self.extras.lower_min_size(slot, open),
            Place::Nowhere | Place::Swept => {}
        }
        Amended::Kept { order: self.order_at(slot) }
    }

    #[inline]
    fn requeue(&mut self, slot: Slot, rank: Rank, open: SizeLots) -> Amended {
        self.unlink(slot);
        let fate = self.relink(slot, rank, open);
        Amended::Requeued { placed: Placed { price: rank.price(self.arena[slot].side), fate } }
    }

    /// Puts an unlinked order back with a new price and size.
    #[inline(always)]
    fn relink(&mut self, slot: Slot, rank: Rank, open: SizeLots) -> Fate {
        let order = &mut self.arena[slot];
        order.rank = rank;
        order.open = open;
        order.slice = open;
        if order.plain == Plain::No
            && let Display::Iceberg { peak } = self.extras.get(slot).display
        {
            self.arena[slot].slice = open.min(peak);
        }
        self.link(slot);
        Fate::Rested { open, shown: self.shown(slot) }
    }

    fn requeue_crossing(
        &mut self,
        slot: Slot,
        rank: Rank,
        open: SizeLots,
        band: Band,
        events: &mut impl BookEvents,
    ) -> Result<Amended, Refusal> {
        let order = &self.arena[slot];
        let side = order.side;
        match order.post_only {
            PostOnly::Off => {}
            PostOnly::Reject => return Err(Refusal::PostOnlyWouldTrade),
            PostOnly::Reprice => {
                let rank = self.rank_behind_opposite(side)?;
                return Ok(self.requeue(slot, rank, open));
            }
        }
        let mut taker = Taker {
            order_id: order.order_id,
            client_order_id: order.client_order_id,
            owner: order.owner,
            side,
            self_trade: order.self_trade,
            limit: rank.price(side),
            open,
            turns: self.step_max,
        };
        // While it matches it is in no queue, but it keeps its place in the arena and its name.
        self.unlink(slot);
        let bound = self.bound_of(side, rank, band);
        let stopped = self.match_taker(&mut taker, bound, events);
        self.follow_unless_paused(stopped);
        let fate = match self.fate_of(&taker, rank, stopped) {
            Some(Fate::Paused { open }) => self.pause_amended(slot, taker.limit, open),
            Some(fate) => {
                self.forget(self.named(slot));
                fate
            }
            None => self.relink(slot, rank, taker.open),
        };
        Ok(Amended::Requeued { placed: Placed { price: taker.limit, fate } })
    }

    /// Cancels all of an owner's orders, or those of one side, in the order in which they were entered.
    pub fn cancel_all(&mut self, owner: OwnerId, side: Option<Side>, events: &mut impl BookEvents) {
        let concerned = |order: &Order| order.owner == owner && side.is_none_or(|side| side == order.side);
        self.remove_where(concerned, RemovalCause::MassCancelled, events);
    }

    /// Cancels the day's orders, in the order in which they were entered.
    pub fn end_day(&mut self, events: &mut impl BookEvents) {
        self.remove_where(|order| order.lifetime == Lifetime::Day, RemovalCause::DayEnded, events);
    }

    fn remove_where(&mut self, concerned: impl Fn(&Order) -> bool, cause: RemovalCause, events: &mut impl BookEvents) {
        let found = self.arena.iter().filter(|(_, order)| concerned(order));
        let mut found: Vec<_> = found.map(|(slot, order)| (order.order_id, slot)).collect();
        found.sort_unstable_by_key(|(order_id, _)| *order_id);
        for (_, slot) in found {
            self.remove_told(slot, cause, events);
        }
    }

    pub(crate) fn remove_told(&mut self, slot: Slot, cause: RemovalCause, events: &mut impl BookEvents) {
        let order = self.order_at(slot);
        self.take_out(slot);
        events.removed(&order, cause);
    }

    /// When the next good-till-time order expires.
    #[inline]
    #[must_use]
    pub fn next_expiry(&self) -> Option<TimeNs> {
        self.extras.next_expiry()
    }

    /// Cancels good-till-time orders whose time is `now` or earlier, the earliest first, at most `max`. Returns their number.
    pub fn expire(&mut self, now: TimeNs, max: u32, events: &mut impl BookEvents) -> u32 {
        let mut count = 0;
        while count < max
            && let Some(slot) = self.extras.first_due(now)
        {
            self.remove_told(slot, RemovalCause::Expired, events);
            count += 1;
        }
        count
    }

    /// Takes an order out of its queue and forgets it.
    #[inline]
    pub(crate) fn take_out(&mut self, slot: Slot) {
        self.take_out_named(self.named(slot));
    }

    /// As [`OrderBook::take_out`], with its entry known. For a plain order, touches each cache line once.
    #[inline(always)]
    fn take_out_named(&mut self, named: Named) {
        let slot = named.slot;
        let orders = self.arena.with_scratch();
        let order = &orders[slot.index()];
        if order.place != Place::Displayed || order.plain == Plain::No {
            return self.take_out_special(named);
        }
        let (prev, next) = (order.prev, order.next);
        self.sides[order.side as usize].displayed.take_out(order.rank, order.slice.get(), prev, next);
        orders[place_of(prev)].next = next;
        orders[place_of(next)].prev = prev;
        self.ids.remove(named);
        self.arena.remove(slot);
    }

    #[cold]
    #[inline(never)]
    fn take_out_special(&mut self, named: Named) {
        let had_paused = self.stops.has_paused();
        self.unlink(named.slot);
        if had_paused && !self.stops.has_paused() {
            // The order that paused trades no more.
            self.stops.follow(self.last_price);
        }
        self.forget(named);
    }

    /// The order at `slot` with its entry in the index.
    #[inline]
    pub(crate) fn named(&self, slot: Slot) -> Named {
        self.ids.entry_of(self.arena[slot].tag, slot)
    }

    /// Forgets an order that is in no queue.
    #[inline(always)]
    pub(crate) fn forget(&mut self, named: Named) {
        self.ids.remove(named);
        let order = &self.arena[named.slot];
        if order.plain == Plain::No {
            self.extras.remove(named.slot, order.order_id);
        }
        self.arena.remove(named.slot);
    }

    /// Puts an order at the back of the queue of its kind and rank.
    #[inline(always)]
    pub(crate) fn link(&mut self, slot: Slot) {
        let order = &mut self.arena[slot];
        let (rank, lots) = (order.rank, order.slice.get());
        let side = &mut self.sides[order.side as usize];
        let level = if order.place == Place::Displayed {
            order.seniority = seniority_of(rank, side.displayed.best());
            side.displayed.get_or_insert(rank)
        } else {
            side.hidden_level(rank)
        };
        let tail = level.push_back(slot, lots);
        order.next = None;
        order.prev = tail;
        if order.plain == Plain::No {
            self.extras.add_reserve(order.side, rank, order.reserve());
        }
        self.arena.with_scratch()[place_of(tail)].next = Some(slot);
    }

    /// Removes an order from its queue or from the pending stops.
    #[inline(always)]
    pub(crate) fn unlink(&mut self, slot: Slot) {
        let order = &self.arena[slot];
        if order.place != Place::Displayed {
            return self.unlink_unseen(slot);
        }
        let (prev, next, lots) = (order.prev, order.next, order.slice.get());
        self.sides[order.side as usize].displayed.take_out(order.rank, lots, prev, next);
        if order.plain == Plain::No {
            self.extras.take_reserve(order.side, order.rank, order.reserve());
        }
        let orders = self.arena.with_scratch();
        orders[place_of(prev)].next = next;
        orders[place_of(next)].prev = prev;
    }

    /// As [`OrderBook::unlink`], for a hidden order.
    #[cold]
    #[inline(never)]
    fn unlink_unseen(&mut self, slot: Slot) {
        let order = self.arena[slot];
        match order.place {
            Place::Hidden => {}
            Place::Parked => {
                let stop = self.extras.get(slot).stop.expect("a parked order has a trigger");
                return self.stops.remove(order.side, stop);
            }
            Place::Displayed | Place::Nowhere | Place::Swept => return,
        }
        let side = order.side as usize;
        let level = self.sides[side].hidden.get_mut(&order.rank).expect("a hidden order has a level");
        level.lots -= order.slice.get();
        level.order_count -= 1;
        let is_empty = level.order_count == 0;
        match order.prev {
            Some(prev) => self.arena[prev].next = order.next,
            None => level.head = order.next,
        }
        match order.next {
            Some(next) => self.arena[next].prev = order.prev,
            None => level.tail = order.prev,
        }
        if is_empty {
            self.remove_level(side, Place::Hidden, order.rank);
        }
    }

    #[inline]
    pub(crate) fn remove_level(&mut self, side: usize, place: Place, rank: Rank) {
        let side = &mut self.sides[side];
        match place {
            Place::Displayed => side.displayed.remove(rank),
            Place::Hidden => {
                side.hidden.remove(&rank);
                side.hidden_best = side.hidden.last_key_value().map_or(Rank::BOTTOM, |(rank, _)| *rank);
            }
            Place::Parked | Place::Nowhere | Place::Swept => unreachable!("only queues have levels"),
        }
    }
}

/// The entry of a resting order that enters again at `price`.
pub(crate) fn entry_of(order: &OpenOrder, price: PriceTicks) -> Entry {
    Entry {
        order_id: order.order_id,
        client_order_id: order.client_order_id,
        owner: order.owner,
        side: order.side,
        price,
        size: order.open,
        time_in_force: order.time_in_force,
        post_only: order.post_only,
        display: order.display,
        min_size: order.min_size,
        self_trade: order.self_trade,
        trigger: order.trigger,
    }
}

/// Whether an order that joins `rank` sets the price of its side.
#[inline]
fn seniority_of(rank: Rank, best: Rank) -> Seniority {
    if rank > best { Seniority::SetThePrice } else { Seniority::Joined }
}
