//! The naive model: a book as simple as its documentation. All resting orders are in one vector, in order of their time priority,
//! and all pending stops in another. Every query looks at every order. An order that loses its queue position moves to the end of
//! the vector. A trial runs on a copy.
//!
//! Why a vector and not priority queues: a heap orders only by price and arrival. Amendments, icebergs, hidden orders and the other
//! allocations also need the orders at a price, their order, and changes of it. Where a heap is enough, for limit orders in
//! price-time priority, `experiments/raft-2021/tests/raft/heap_book.rs` compares the book with one.

mod allocate;
mod auction;

use walras_order_book::{
    Amended, Band, Becomes, BookEvents, Condition, DepthLevel, Entry, Fate, Fill, OpenOrder, OwnerId, Party, Placed, Refusal,
    RemovalCause, Seniority, Trailing, Trigger, Triggered,
};
use walras_types::limits::{FILL_CHECK_LEVELS_MAX, FILL_CHECK_ORDERS_MAX, SHARED_LEVEL_ORDERS_MAX};
use walras_types::{
    Allocation, ClientOrderId, Display, OrderId, PostOnly, PriceTicks, SelfTrade, Side, SizeLots, TimeInForce, TimeNs, Trail,
};

use crate::tape::{Event, Tape};

#[derive(Clone)]
pub(crate) struct NaiveBook {
    allocation: Allocation,
    last_price: Option<PriceTicks>,
    /// Orders that stand, the longest in its place first.
    queue: Vec<OpenOrder>,
    /// Stops that wait, the first to come first.
    stops: Vec<OpenOrder>,
}

/// Why an order that came in stopped trading.
enum End {
    Filled,
    NoMatch,
    SelfTrade,
    Band,
}

impl NaiveBook {
    pub(crate) fn new(allocation: Allocation) -> Self {
        Self { allocation, last_price: None, queue: Vec::new(), stops: Vec::new() }
    }

    // Entering.

    pub(crate) fn submit(&mut self, entry: &Entry, band: Band, tape: &mut Tape) -> Result<Placed, Refusal> {
        self.check_name(entry)?;
        let mut order = as_order(entry);
        if let Some(trigger) = entry.trigger {
            let trigger = self.starting(entry.side, trigger);
            order.trigger = Some(trigger);
            let is_touched = self.last_price.is_some_and(|last| touches(entry.side, trigger, last));
            if !is_touched {
                self.stops.push(order);
                return Ok(Placed { price: entry.price, fate: Fate::Parked });
            }
            order.time_in_force = lasting(trigger, order.time_in_force);
        }
        order.trigger = None;
        self.enter(order, band, tape)
    }

    pub(crate) fn collect(&mut self, entry: &Entry) -> Result<Placed, Refusal> {
        self.check_name(entry)?;
        let mut order = as_order(entry);
        if let Some(trigger) = order.trigger {
            order.trigger = Some(self.starting(order.side, trigger));
            self.stops.push(order);
            return Ok(Placed { price: entry.price, fate: Fate::Parked });
        }
        Ok(Placed { price: entry.price, fate: self.stand(order) })
    }

    /// A trailing stop begins at the last trade.
    fn starting(&self, side: Side, trigger: Trigger) -> Trigger {
        match (trigger.trailing, self.last_price) {
            (Some(trailing), Some(last)) => trails(side, trigger, Trailing { best: last, ..trailing }),
            _ => trigger,
        }
    }

    /// Every trailing stop looks whether the last trade is better than what it saw before.
    fn follow(&mut self) {
        let Some(last) = self.last_price else { return };
        for order in &mut self.stops {
            let Some(trigger @ Trigger { trailing: Some(trailing), .. }) = order.trigger else { continue };
            let best = if order.side == Side::Buy { trailing.best.min(last) } else { trailing.best.max(last) };
            order.trigger = Some(trails(order.side, trigger, Trailing { best, ..trailing }));
        }
    }

    fn check_name(&self, entry: &Entry) -> Result<(), Refusal> {
        match self.find(entry.owner, entry.client_order_id) {
            Some(_) => Err(Refusal::DuplicateClientOrderId),
            None => Ok(()),
        }
    }

    /// An order arrives where orders match: new, triggered, or amended.
    fn enter(&mut self, mut order: OpenOrder, band: Band, tape: &mut Tape) -> Result<Placed, Refusal> {
        let opposite = self.best(order.side.opposite());
        if let Some(opposite) = opposite.filter(|price| order.side.accepts(order.price, *price)) {
            match order.post_only {
                PostOnly::Off => {}
                PostOnly::Reject => return Err(Refusal::PostOnlyWouldTrade),
                PostOnly::Reprice => {
                    let behind = match order.side {
                        Side::Buy => opposite.get() - 1,
                        Side::Sell => opposite.get() + 1,
                    };
                    order.price = PriceTicks::new(behind).ok_or(Refusal::PostOnlyWouldTrade)?;
                }
            }
        }
        if order.time_in_force == TimeInForce::FillOrKill {
            self.check_fillable(&order, order.open, band, Refusal::FillOrKillUnfillable)?;
        }
        if let Some(min) = order.min_size {
            self.check_fillable(&order, min, band, Refusal::MinSizeUnfillable)?;
        }
        let price = order.price;
        let end = self.match_with_all(&mut order, band, tape);
        self.follow();
        let fate = match end {
            End::Filled => Fate::Filled,
            End::SelfTrade => Fate::SelfTraded { open: order.open },
            End::Band => Fate::Banded { open: order.open },
            End::NoMatch => match order.time_in_force {
                TimeInForce::ImmediateOrCancel | TimeInForce::FillOrKill => Fate::Unfilled { open: order.open },
                TimeInForce::GoodTillCancel | TimeInForce::Day | TimeInForce::GoodTill(_) => self.stand(order),
            },
        };
        Ok(Placed { price, fate })
    }

    /// Tries an order that wants `wanted` lots on a copy that holds only the orders a fill check may meet.
    fn check_fillable(&self, order: &OpenOrder, wanted: SizeLots, band: Band, unfillable: Refusal) -> Result<(), Refusal> {
        if order.self_trade == SelfTrade::Allow && !self.levels_decide(order, wanted, band) {
            return Err(Refusal::FillCheckTooDeep);
        }
        let mut copy = self.clone();
        let is_cut = order.self_trade != SelfTrade::Allow && copy.cut_to_fill_check(order, band);
        let (mut taker, mut tape) = (*order, Tape::default());
        let end = copy.match_with_all(&mut taker, band, &mut tape);
        let traded = tape.0.iter().map(|event| if let Event::Traded(fill) = event { fill.size } else { SizeLots::ZERO });
        let traded: SizeLots = traded.sum();
        match end {
            _ if traded >= wanted => Ok(()),
            // What was cut off could still fill it.
            End::NoMatch | End::Band if is_cut && traded + taker.open >= wanted => Err(Refusal::FillCheckTooDeep),
            End::Filled | End::NoMatch | End::Band | End::SelfTrade => Err(unfillable),
        }
    }

    /// Whether the prices that may be looked at, and the orders that are not plain, decide if an order that trades with everybody
    /// is filled.
    fn levels_decide(&self, taker: &OpenOrder, wanted: SizeLots, band: Band) -> bool {
        let reached = self.by_priority(taker.side.opposite()).into_iter();
        let reached = reached
            .take_while(|order| taker.side.accepts(taker.price, order.price) && (band.low..=band.high).contains(&order.price));
        let (mut prices, mut slices) = (Vec::new(), SizeLots::ZERO);
        for order in reached {
            if prices.last() != Some(&order.price) {
                prices.push(order.price);
            }
            if prices.len() <= FILL_CHECK_LEVELS_MAX as usize {
                slices += tradable(&order);
            }
        }
        let is_plain = |order: &OpenOrder| {
            order.trigger.is_none()
                && order.display == Display::Full
                && matches!(order.time_in_force, TimeInForce::GoodTillCancel | TimeInForce::Day)
        };
        let special = self.orders().iter().filter(|order| !is_plain(order)).count();
        let few = prices.len() < FILL_CHECK_LEVELS_MAX as usize && special <= FILL_CHECK_ORDERS_MAX as usize;
        slices >= wanted || few
    }

    /// Removes from the side opposite `taker` what its fill check does not come to. Whether that was anything.
    fn cut_to_fill_check(&mut self, taker: &OpenOrder, band: Band) -> bool {
        let reached = |order: &&OpenOrder| order.side != taker.side && taker.side.accepts(taker.price, order.price);
        let is_hidden = |order: &OpenOrder| order.display == Display::Hidden;
        let mut met: Vec<OpenOrder> = self.queue.iter().filter(reached).copied().collect();
        // Best price first, displayed before hidden, then as they stand: the sort is stable.
        let from_best = |order: &OpenOrder| if order.side == Side::Buy { -order.price.get() } else { order.price.get() };
        met.sort_by_key(|order| (from_best(order), is_hidden(order)));
        let in_band = met.iter().take_while(|order| (band.low..=band.high).contains(&order.price)).count();
        met.truncate(in_band);
        let is_too_long = |order: &OpenOrder| {
            self.allocation != Allocation::PriceTime && order.display != Display::Hidden && !self.is_shared(order)
        };
        if let Some(at) = met.iter().take(FILL_CHECK_ORDERS_MAX as usize).position(is_too_long) {
            met.truncate(at);
            self.queue = met;
            return true;
        }
        let Some(first_cut) = met.get(FILL_CHECK_ORDERS_MAX as usize).copied() else { return false };
        let is_level_cut = |order: &OpenOrder| order.price == first_cut.price && is_hidden(order) == is_hidden(&first_cut);
        let is_shared = self.allocation != Allocation::PriceTime && !is_hidden(&first_cut);
        met.truncate(FILL_CHECK_ORDERS_MAX as usize);
        // Of a level that is not met whole, only slices count, and nothing if it is shared: sharing needs all of it.
        let is_own = |order: &OpenOrder| order.owner == taker.owner && taker.self_trade != SelfTrade::Allow;
        met.retain(|order| !(is_shared && is_level_cut(order)) || is_own(order));
        self.queue = met;
        for order in self.queue.iter_mut().filter(|order| is_level_cut(order) && !is_own(order)) {
            order.open = tradable(order);
        }
        true
    }

    /// Puts an order at the end of its queue.
    fn stand(&mut self, mut order: OpenOrder) -> Fate {
        order.min_size = None;
        order.shown = slice_of(&order);
        order.seniority = Seniority::Joined;
        if order.display != Display::Hidden {
            let mut displayed = self.queue.iter().filter(|other| other.side == order.side && other.display != Display::Hidden);
            if displayed.all(|other| order.side.is_better(order.price, other.price)) {
                order.seniority = Seniority::SetThePrice;
            }
        }
        self.queue.push(order);
        Fate::Rested { open: order.open, shown: order.shown }
    }

    // Matching.

    fn match_with_all(&mut self, taker: &mut OpenOrder, band: Band, tape: &mut Tape) -> End {
        loop {
            if taker.open.is_zero() {
                return End::Filled;
            }
            let Some(first) = self.first(taker.side.opposite()) else { return End::NoMatch };
            if !taker.side.accepts(taker.price, first.price) {
                return End::NoMatch;
            }
            if first.price < band.low || first.price > band.high {
                return End::Band;
            }
            let is_shared = self.is_shared(&first);
            let level = if is_shared { self.displayed_at(first.side, first.price) } else { vec![first] };
            // In a shared level prevention comes before sharing.
            let own = level.iter().find(|order| order.owner == taker.owner && taker.self_trade != SelfTrade::Allow);
            if let Some(own) = own {
                if self.prevent_self_trade(taker, *own, tape) {
                    return End::SelfTrade;
                }
                continue;
            }
            let shown: SizeLots = level.iter().map(tradable).sum();
            let shares: Vec<SizeLots> = if !is_shared {
                vec![shown.min(taker.open)]
            } else if taker.open >= shown {
                level.iter().map(tradable).collect()
            } else {
                allocate::shares(self.allocation, &level, taker.open)
            };
            for (maker, share) in level.iter().zip(shares) {
                if !share.is_zero() {
                    self.trade(taker, maker.order_id, share, tape);
                }
            }
        }
    }

    /// Whether the orders that stand with this one are shared.
    fn is_shared(&self, order: &OpenOrder) -> bool {
        let may_be = self.allocation != Allocation::PriceTime && order.display != Display::Hidden;
        may_be && self.displayed_at(order.side, order.price).len() <= SHARED_LEVEL_ORDERS_MAX as usize
    }

    fn trade(&mut self, taker: &mut OpenOrder, maker: OrderId, size: SizeLots, tape: &mut Tape) {
        taker.open -= size;
        let before = self.queue[self.place(maker)];
        let (maker_party, taker_party) = (party(&before, before.open - size), party(taker, taker.open));
        let fill = Fill { price: before.price, size, taker_side: taker.side, maker: maker_party, taker: taker_party };
        tape.traded(&fill);
        self.last_price = Some(before.price);
        self.consume(maker, size, tape);
    }

    /// Takes traded lots off an order that stands.
    fn consume(&mut self, order_id: OrderId, size: SizeLots, tape: &mut Tape) {
        let place = self.place(order_id);
        let order = &mut self.queue[place];
        order.open -= size;
        if order.display != Display::Hidden {
            order.shown -= size;
        }
        if order.open.is_zero() {
            self.queue.remove(place);
        } else if tradable(order).is_zero() {
            let mut order = self.queue.remove(place);
            order.shown = slice_of(&order);
            order.seniority = Seniority::Joined;
            tape.replenished(order_id, order.shown);
            self.queue.push(order);
        }
    }

    /// True when the incoming order ends here.
    fn prevent_self_trade(&mut self, taker: &mut OpenOrder, own: OpenOrder, tape: &mut Tape) -> bool {
        let place = self.place(own.order_id);
        match taker.self_trade {
            SelfTrade::CancelNewest => true,
            SelfTrade::CancelOldest | SelfTrade::CancelBoth => {
                self.queue.remove(place);
                tape.removed(&own, RemovalCause::SelfTrade);
                taker.self_trade == SelfTrade::CancelBoth
            }
            SelfTrade::Decrement => {
                let by = own.open.min(taker.open);
                taker.open -= by;
                if by == own.open {
                    self.queue.remove(place);
                    tape.removed(&own, RemovalCause::SelfTrade);
                } else {
                    let order = &mut self.queue[place];
                    order.open -= by;
                    order.shown = order.shown.min(order.open);
                    tape.reduced(order, by);
                }
                tape.taker_reduced(by, taker.open);
                taker.open.is_zero()
            }
            SelfTrade::Allow => unreachable!("allowed"),
        }
    }

    // Changing and leaving.

    pub(crate) fn cancel(&mut self, owner: OwnerId, client_order_id: ClientOrderId) -> Option<OpenOrder> {
        let order = self.find(owner, client_order_id)?;
        self.queue.retain(|other| other.order_id != order.order_id);
        self.stops.retain(|other| other.order_id != order.order_id);
        Some(order)
    }

    pub(crate) fn amend(
        &mut self,
        name: (OwnerId, ClientOrderId),
        price: Option<PriceTicks>,
        size: Option<SizeLots>,
        band: Band,
        tape: &mut Tape,
    ) -> Option<Result<Amended, Refusal>> {
        self.amend_by(name, price, size, |book, order| book.enter(order, band, tape))
    }

    pub(crate) fn amend_collected(
        &mut self,
        name: (OwnerId, ClientOrderId),
        price: Option<PriceTicks>,
        size: Option<SizeLots>,
    ) -> Option<Result<Amended, Refusal>> {
        self.amend_by(name, price, size, |book, order| Ok(Placed { price: order.price, fate: book.stand(order) }))
    }

    fn amend_by(
        &mut self,
        (owner, client_order_id): (OwnerId, ClientOrderId),
        price: Option<PriceTicks>,
        size: Option<SizeLots>,
        enter_again: impl FnOnce(&mut Self, OpenOrder) -> Result<Placed, Refusal>,
    ) -> Option<Result<Amended, Refusal>> {
        let order = self.find(owner, client_order_id)?;
        let amended = OpenOrder { price: price.unwrap_or(order.price), open: size.unwrap_or(order.open), ..order };
        let is_waiting = order.trigger.is_some();
        if is_waiting || (amended.price == order.price && amended.open <= order.open) {
            let mut all = self.queue.iter_mut().chain(&mut self.stops);
            let place = all.find(|other| other.order_id == order.order_id).expect("it was found");
            *place = amended;
            place.shown = place.shown.min(place.open);
            place.min_size = place.min_size.map(|min| min.min(place.open));
            return Some(Ok(Amended::Kept { order: *place }));
        }
        let mut copy = self.clone();
        copy.cancel(owner, client_order_id);
        let placed = enter_again(&mut copy, amended);
        Some(placed.map(|placed| {
            *self = copy;
            Amended::Requeued { placed }
        }))
    }

    pub(crate) fn retrigger(
        &mut self,
        (owner, client_order_id): (OwnerId, ClientOrderId),
        trigger: PriceTicks,
        price: PriceTicks,
        size: SizeLots,
    ) -> OpenOrder {
        let old = self.cancel(owner, client_order_id).expect("it waits");
        let waits = old.trigger.expect("it waits");
        let min_size = old.min_size.map(|min| min.min(size));
        let order = OpenOrder { trigger: Some(Trigger { price: trigger, ..waits }), price, open: size, min_size, ..old };
        self.stops.push(order);
        order
    }

    pub(crate) fn cancel_all(&mut self, owner: OwnerId, side: Option<Side>, tape: &mut Tape) {
        self.remove_all(RemovalCause::MassCancelled, tape, |order| {
            order.owner == owner && side.is_none_or(|side| side == order.side)
        });
    }

    pub(crate) fn end_day(&mut self, tape: &mut Tape) {
        self.remove_all(RemovalCause::DayEnded, tape, |order| order.time_in_force == TimeInForce::Day);
    }

    pub(crate) fn end_day_in_book_order(&mut self, tape: &mut Tape) {
        for order in self.orders().into_iter().filter(|order| order.time_in_force == TimeInForce::Day) {
            self.cancel(order.owner, order.client_order_id);
            tape.removed(&order, RemovalCause::DayEnded);
        }
    }

    pub(crate) fn expire(&mut self, now: TimeNs, tape: &mut Tape) {
        while let Some(due) = self.next_expiry().filter(|due| *due <= now) {
            self.remove_all(RemovalCause::Expired, tape, |order| order.time_in_force == TimeInForce::GoodTill(due));
        }
    }

    fn remove_all(&mut self, cause: RemovalCause, tape: &mut Tape, concerned: impl Fn(&OpenOrder) -> bool) {
        let mut found: Vec<_> = self.orders().into_iter().filter(concerned).collect();
        found.sort_by_key(|order| order.order_id);
        for order in found {
            self.cancel(order.owner, order.client_order_id);
            tape.removed(&order, cause);
        }
    }

    pub(crate) fn take_triggered(&mut self) -> Option<Triggered> {
        let last = self.last_price?;
        let touched = |order: &OpenOrder| order.trigger.is_some_and(|trigger| touches(order.side, trigger, last));
        let mut order = self.waiting().into_iter().find(touched)?;
        if order.trigger.is_some_and(|trigger| trigger.trailing.is_some()) {
            // Those of a side come in the order in which a price that moves against them meets them.
            let alike = self.waiting().into_iter().filter(|other| other.side == order.side);
            let met = |order: &OpenOrder| {
                let trigger = order.trigger.expect("it waits");
                let distance = trigger.trailing.map(|trailing| match trailing.by {
                    Trail::Ticks(ticks) => (0, ticks),
                    Trail::Ppm(ppm) => (1, ppm),
                });
                distance
                    .map(|distance| (if order.side == Side::Buy { trigger.price.get() } else { -trigger.price.get() }, distance))
            };
            order = alike.filter(|other| met(other).is_some()).min_by_key(met).expect("one was touched");
        }
        self.cancel(order.owner, order.client_order_id);
        let trailed_to = order.trigger.and_then(|trigger| trigger.trailing.map(|_| trigger.price));
        let entry = Entry {
            order_id: order.order_id,
            client_order_id: order.client_order_id,
            owner: order.owner,
            side: order.side,
            price: order.price,
            size: order.open,
            time_in_force: order.trigger.map_or(order.time_in_force, |trigger| lasting(trigger, order.time_in_force)),
            post_only: order.post_only,
            display: order.display,
            min_size: order.min_size,
            self_trade: order.self_trade,
            trigger: None,
        };
        Some(Triggered { entry, trailed_to })
    }

    // Looking.

    pub(crate) fn find(&self, owner: OwnerId, client_order_id: ClientOrderId) -> Option<OpenOrder> {
        let mut all = self.queue.iter().chain(&self.stops);
        all.find(|order| order.owner == owner && order.client_order_id == client_order_id).copied()
    }

    fn place(&self, order_id: OrderId) -> usize {
        self.queue.iter().position(|order| order.order_id == order_id).expect("it stands")
    }

    /// A side's orders: the best price first, displayed before hidden, then the longest in its place.
    fn by_priority(&self, side: Side) -> Vec<OpenOrder> {
        let mut orders: Vec<_> = self.queue.iter().filter(|order| order.side == side).copied().collect();
        orders.sort_by_key(|order| (badness(side, order.price), order.display == Display::Hidden));
        orders
    }

    fn first(&self, side: Side) -> Option<OpenOrder> {
        let orders = self.queue.iter().filter(|order| order.side == side);
        orders.min_by_key(|order| (badness(side, order.price), order.display == Display::Hidden)).copied()
    }

    fn displayed_at(&self, side: Side, price: PriceTicks) -> Vec<OpenOrder> {
        let here = |order: &&OpenOrder| order.side == side && order.price == price && order.display != Display::Hidden;
        self.queue.iter().filter(here).copied().collect()
    }

    /// All that wait: stops before take-profits, buys before sells, then the first to trigger first. Then those that trail, buys before
    /// sells, as they came.
    fn waiting(&self) -> Vec<OpenOrder> {
        let (mut trailing, mut waiting): (Vec<_>, Vec<_>) =
            self.stops.iter().copied().partition(|order| order.trigger.is_some_and(|trigger| trigger.trailing.is_some()));
        trailing.sort_by_key(|order| order.side);
        waiting.sort_by_key(|order| {
            let Trigger { price, condition, .. } = order.trigger.expect("it waits");
            // A rising price touches the lowest trigger of those that wait for one first, a falling one the highest.
            let rises = (condition == Condition::Stop) == (order.side == Side::Buy);
            (condition == Condition::TakeProfit, order.side, if rises { price.get() } else { -price.get() })
        });
        waiting.extend(trailing);
        waiting
    }

    pub(crate) fn best(&self, side: Side) -> Option<PriceTicks> {
        self.first(side).map(|order| order.price)
    }

    pub(crate) fn last_price(&self) -> Option<PriceTicks> {
        self.last_price
    }

    pub(crate) fn depth(&self, side: Side, levels: usize) -> Vec<DepthLevel> {
        let mut depth: Vec<DepthLevel> = Vec::new();
        for order in self.by_priority(side).iter().filter(|order| order.display != Display::Hidden) {
            match depth.last_mut().filter(|level| level.price == order.price) {
                Some(level) => {
                    level.shown += order.shown;
                    level.order_count += 1;
                }
                None => depth.push(DepthLevel { price: order.price, shown: order.shown, order_count: 1 }),
            }
        }
        depth.truncate(levels);
        depth
    }

    pub(crate) fn next_expiry(&self) -> Option<TimeNs> {
        let times = self.queue.iter().chain(&self.stops).filter_map(|order| match order.time_in_force {
            TimeInForce::GoodTill(time) => Some(time),
            _ => None,
        });
        times.min()
    }

    /// Every open order: bids, displayed ones first; asks likewise; those that wait.
    pub(crate) fn orders(&self) -> Vec<OpenOrder> {
        let mut listed = Vec::new();
        for side in Side::BOTH {
            let (hidden, displayed): (Vec<_>, Vec<_>) =
                self.by_priority(side).into_iter().partition(|order| order.display == Display::Hidden);
            listed.extend(displayed);
            listed.extend(hidden);
        }
        listed.extend(self.waiting());
        listed
    }
}

fn as_order(entry: &Entry) -> OpenOrder {
    OpenOrder {
        order_id: entry.order_id,
        client_order_id: entry.client_order_id,
        owner: entry.owner,
        side: entry.side,
        price: entry.price,
        open: entry.size,
        shown: SizeLots::ZERO,
        time_in_force: entry.time_in_force,
        display: entry.display,
        trigger: entry.trigger,
        post_only: entry.post_only,
        min_size: entry.min_size,
        self_trade: entry.self_trade,
        seniority: Seniority::Joined,
    }
}

fn party(order: &OpenOrder, open: SizeLots) -> Party {
    Party { order_id: order.order_id, client_order_id: order.client_order_id, owner: order.owner, limit: order.price, open }
}

/// What an order shows when it comes to its place.
fn slice_of(order: &OpenOrder) -> SizeLots {
    match order.display {
        Display::Full => order.open,
        Display::Iceberg { peak } => order.open.min(peak),
        Display::Hidden => SizeLots::ZERO,
    }
}

/// What of an order can trade before it has to go to the back.
fn tradable(order: &OpenOrder) -> SizeLots {
    if order.display == Display::Hidden { order.open } else { order.shown }
}

fn badness(side: Side, price: PriceTicks) -> i64 {
    if side == Side::Buy { -price.get() } else { price.get() }
}

/// A stop that becomes a market order waits as long as it says, and never rests.
fn lasting(trigger: Trigger, time_in_force: TimeInForce) -> TimeInForce {
    match (trigger.becomes, time_in_force) {
        (Becomes::Limit | Becomes::Rest, said) => said,
        (Becomes::Market, TimeInForce::FillOrKill) => TimeInForce::FillOrKill,
        (Becomes::Market, _) => TimeInForce::ImmediateOrCancel,
    }
}

/// A trigger so far from the best price, within the range of prices.
fn trails(side: Side, trigger: Trigger, trailing: Trailing) -> Trigger {
    let best = i128::from(trailing.best.get());
    let distance = match trailing.by {
        Trail::Ticks(ticks) => i128::from(ticks),
        Trail::Ppm(ppm) => (best * i128::from(ppm) + 999_999) / 1_000_000,
    };
    let price = PriceTicks::saturating((if side == Side::Buy { best + distance } else { best - distance }) as i64);
    Trigger { price, trailing: Some(trailing), ..trigger }
}

fn touches(side: Side, trigger: Trigger, last: PriceTicks) -> bool {
    let gains = match side {
        Side::Buy => last.get() - trigger.price.get() <= 0,
        Side::Sell => last.get() - trigger.price.get() >= 0,
    };
    match trigger.condition {
        Condition::TakeProfit => gains,
        Condition::Stop => !gains || last == trigger.price,
    }
}
