//! What an order goes through: checks, reserve, match, settle; and how it is changed and cancelled.

use walras_ledger::{Ledger, LedgerError};
use walras_order_book::{
    Amended, Becomes, Entry, Fate, Handle, OpenOrder, OwnerId, Placed, PlainOrder, PriceIndex, Refusal, Trigger, Triggered,
};
use walras_types::limits::STOP_MEETINGS;
use walras_types::{
    AccountId, Amendment, Amount, ClientOrderId, OrderId, PostOnly, PriceTicks, RejectReason, SelfTrade, Side, SizeLots,
    TimeInForce,
};
use walras_wire::{
    AmendOrder, CancelOrder, CancelReason, Event, Link, LinkedOrder, MassCancel, NewOrder, OrderAmended, OrderCancelled,
    OrderEvent, PhaseCause, Priority, Resting, StopTriggered,
};

use crate::engine::{Engine, NOW};
use crate::market::{Exposure, Incoming, Market, MarketState, Stake, far_end};
use crate::settle::Settler;
use crate::terms;
use crate::versions::Rules;

impl<I: PriceIndex> Engine<I> {
    /// Checks in this order: account, instrument, that it fits the exits that wait for it, terms, phase, that a stop waits, collar,
    /// value, limits, funds; then the book's own (name, post-only, fill-or-kill, minimum size, room).
    #[inline]
    pub(crate) fn new_order(&mut self, order: &NewOrder, order_id: OrderId, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        self.check_active(order.account)?;
        let index = self.enter_market(order.instrument)?;
        let market = &mut self.markets[index];
        if !market.state.links.brackets.is_empty() {
            market.state.check_entry(order)?;
        }
        let last_price = market.book.last_price();
        let entry = terms::entry(order, order_id, self.time, &mut market.state, last_price)?;
        market.check_repriced(entry.side, Stake { limit: entry.price, open: entry.size }, entry.post_only)?;
        let reserve = check_limits(&mut market.state, &entry)?;
        market.enter(&mut self.ledger, &entry, reserve, events)?;
        if let TimeInForce::GoodTill(until) = entry.time_in_force {
            self.next_work = self.next_work.min(until);
        }
        if market.state.is_busy {
            self.next_work = NOW;
        }
        Ok(())
    }

    /// Enters an order and links it with an open one. Checks in this order: version, account, instrument, that the other one is open and
    /// the two can be linked; then what [`Self::new_order`] checks, as if the other one were not there. Of an exit: that its entry is to
    /// come and the order may be an exit of it; then what [`Self::new_order`] checks but for the last price, the position and funds.
    #[cold]
    #[inline(never)]
    pub(crate) fn new_linked_order(
        &mut self,
        linked: &LinkedOrder,
        order_id: OrderId,
        events: &mut Vec<Event>,
    ) -> Result<(), RejectReason> {
        if !self.version.has_links() {
            return Err(RejectReason::NeedsLaterVersion);
        }
        let order = linked.order();
        self.check_active(order.account)?;
        let index = self.enter_market(order.instrument)?;
        if linked.link() == Link::Exit {
            return self.new_exit(index, &order, linked.other(), order_id, events);
        }
        let other = self.markets[index].linkable(&order, linked.other())?;

        let state = &mut self.markets[index].state;
        let (asset, had) = (state.reserve_asset(other.side), state.reserved(other.side, other.price, other.open));
        let was_reserved = "an open order reserved what its stake says";
        self.ledger.adjust_reserve(order.account, asset, had, Amount::ZERO).expect(was_reserved);
        state.exposure_of(other.owner).resized(other.side, other.open, SizeLots::ZERO);
        if let Err(reason) = self.new_order(&order, order_id, events) {
            self.ledger.adjust_reserve(order.account, asset, Amount::ZERO, had).expect("it was released above");
            self.markets[index].state.exposure_of(other.owner).resized(other.side, SizeLots::ZERO, other.open);
            return Err(reason);
        }
        self.markets[index].link(&mut self.ledger, &other, order.client_order_id);
        Ok(())
    }

    fn new_exit(
        &mut self,
        index: usize,
        order: &NewOrder,
        of: ClientOrderId,
        order_id: OrderId,
        events: &mut Vec<Event>,
    ) -> Result<(), RejectReason> {
        let market = &mut self.markets[index];
        market.check_exit(order, of)?;
        let entry = terms::entry(order, order_id, self.time, &mut market.state, None)?;
        check_own_limits(&mut market.state, &entry)?;
        market.hold_exit(&entry, of, events).map_err(reason)?;
        if let TimeInForce::GoodTill(until) = entry.time_in_force {
            self.next_work = self.next_work.min(until);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn cancel_order(&mut self, cancel: &CancelOrder, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        self.status(cancel.account)?;
        let index = self.enter_market(cancel.instrument)?;
        let market = &mut self.markets[index];
        let Market { book, state, .. } = market;
        let handle = book.find(OwnerId(cancel.account.0), cancel.client_order_id).ok_or(RejectReason::UnknownOrder)?;
        let order = book.cancel(handle);
        Settler::new(&mut self.ledger, state, events).gone(&order, CancelReason::Requested);
        market.settle_last(&mut self.ledger, events);
        Ok(())
    }

    /// Cancels by instrument, then in the order in which the orders were entered; what is more than an entry may do goes on with the next
    /// ones. That there was nothing to cancel is no error: then nothing happens.
    #[cold]
    #[inline(never)]
    pub(crate) fn mass_cancel(&mut self, cancel: &MassCancel, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        self.status(cancel.account)?;
        let markets = match cancel.instrument {
            Some(instrument) => {
                let index = self.enter_market(instrument)?;
                index..index + 1
            }
            None if self.markets.iter().any(|market| market.state.is_busy) => return Err(RejectReason::BookBusy),
            None => self.enter_all_markets(),
        };
        if self.cancelling.iter().any(|list| list.account == cancel.account) {
            return Err(RejectReason::BookBusy);
        }
        self.begin_cancelling(markets, cancel.account, cancel.side, CancelReason::MassCancelled, events);
        Ok(())
    }

    /// Checks in this order: account, instrument, phase, that the order is open, that it is not linked, that the amendment says
    /// something, size, that a stop with another trigger waits, collar, value, limits (only what grows), funds; then the book's
    /// own.
    pub(crate) fn amend_order(&mut self, amend: &AmendOrder, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        self.check_active(amend.account)?;
        let index = self.enter_market(amend.instrument)?;
        let market = &mut self.markets[index];
        market.amend(&mut self.ledger, amend, events)?;
        if market.state.is_busy {
            self.next_work = NOW;
        }
        Ok(())
    }
}

/// Checks an entry against its account's limits, and says what it must reserve.
#[inline]
fn check_limits(market: &mut MarketState, entry: &Entry) -> Result<Amount, RejectReason> {
    let (reserve, exposure) = check_own_limits(market, entry)?;
    market.check_position(&exposure, entry.side, entry.size)?;
    Ok(reserve)
}

/// As [`check_limits`], but for the position that the account may have.
#[inline(always)]
fn check_own_limits(market: &mut MarketState, entry: &Entry) -> Result<(Amount, Exposure), RejectReason> {
    let value = market.value(entry.price, entry.size).ok_or(RejectReason::ValueOverflow)?;
    let reserve = market.reserve_at(entry.side, value, entry.size).ok_or(RejectReason::ValueOverflow)?;
    let exposure = *market.exposure_mut(AccountId(entry.owner.0));
    let limits = market.limits(&exposure);
    if entry.size > limits.order_lots_max {
        return Err(RejectReason::OrderTooLarge);
    }
    if value > limits.order_value_max {
        return Err(RejectReason::OrderValueTooLarge);
    }
    // An order that can not stay, now or ever, takes no place among the open ones.
    let may_stay = entry.trigger.is_some() || terms::can_rest(entry.time_in_force);
    if may_stay && exposure.open_orders >= limits.open_orders_max {
        return Err(RejectReason::TooManyOpenOrders);
    }
    Ok((reserve, exposure))
}

impl<I: PriceIndex> Market<I> {
    /// Refuses an order that the book would reprice to where its value is no amount. Only an offer is worth more there than at its limit.
    #[inline]
    fn check_repriced(&self, side: Side, stake: Stake, post_only: PostOnly) -> Result<(), RejectReason> {
        if post_only == PostOnly::Reprice && side == Side::Sell && self.is_continuous() {
            self.check_offer_behind_bids(stake)
        } else {
            Ok(())
        }
    }

    #[cold]
    #[inline(never)]
    fn check_offer_behind_bids(&self, stake: Stake) -> Result<(), RejectReason> {
        let bid = self.book.best(Side::Buy).filter(|bid| *bid >= stake.limit);
        // Where there is no price behind the bid, the book refuses the order.
        let Some(behind) = bid.and_then(|bid| PriceTicks::new(bid.get() + 1)) else { return Ok(()) };
        self.state.value(behind, stake.open).map(|_| ()).ok_or(RejectReason::ValueOverflow)
    }

    /// Reserves for an order and gives it to the book.
    #[inline]
    fn enter(&mut self, ledger: &mut Ledger, entry: &Entry, reserve: Amount, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let account = AccountId(entry.owner.0);
        let asset = self.state.reserve_asset(entry.side);
        ledger.reserve(account, asset, reserve).map_err(insufficient)?;
        self.state.exposure_mut(account).opened(entry.side, entry.size);
        let accepted_at = events.len();
        events.push(self.state.accepted(entry, Resting::default()));
        let trades_before = self.state.trade_count;
        let order = Incoming::of(entry);
        match self.give(ledger, entry, &order, events) {
            Ok(placed) => {
                let resting = self.placed(ledger, &order, &placed, events);
                if let Event::Order(OrderEvent::Accepted(accepted)) = &mut events[accepted_at] {
                    accepted.price = price_in_force(&placed);
                    accepted.resting = resting;
                }
                if !resting.open.is_zero() {
                    self.state.names.add(account, entry.order_id, entry.client_order_id);
                }
                self.after_matching(ledger, accepted_at, trades_before, &placed, events);
                Ok(())
            }
            Err(refusal) => {
                events.truncate(accepted_at);
                ledger.release(account, asset, reserve).expect("it was reserved above");
                self.state.exposure_mut(account).shrunk(entry.side, entry.size, SizeLots::ZERO);
                Err(reason(refusal))
            }
        }
    }

    /// Gives an entry that is reserved for to the book, to match or to collect.
    #[inline]
    fn give(&mut self, ledger: &mut Ledger, entry: &Entry, order: &Incoming, events: &mut Vec<Event>) -> Result<Placed, Refusal> {
        if !self.is_continuous() {
            return self.book.collect(entry);
        }
        if entry.time_in_force == TimeInForce::FillOrKill || entry.min_size.is_some() {
            return self.give_checked(ledger, entry, order, events);
        }
        let band = self.state.band;
        self.book.submit(entry, band, &mut Settler::taking(order, ledger, &mut self.state, events))
    }

    /// As [`Self::give`], of an order that the book first checks for how much it can trade. One that can not rest and whose account has
    /// nothing on the other side meets nobody to prevent trades with: said so, the book need not look at each order.
    #[cold]
    #[inline(never)]
    fn give_checked(
        &mut self,
        ledger: &mut Ledger,
        entry: &Entry,
        order: &Incoming,
        events: &mut Vec<Event>,
    ) -> Result<Placed, Refusal> {
        let exposure = self.state.exposure(AccountId(entry.owner.0));
        let enters_now = entry.trigger.is_none() && !terms::can_rest(entry.time_in_force);
        let meets_nobody = enters_now && exposure.open_lots[entry.side.opposite() as usize] == 0;
        let entry = if meets_nobody { Entry { self_trade: SelfTrade::Allow, ..*entry } } else { *entry };
        let band = self.state.band;
        self.book.submit(&entry, band, &mut Settler::taking(order, ledger, &mut self.state, events))
    }

    /// Accounts for what became of an order beside its trades, tells of the rest that is cancelled, and says what is left of it.
    #[inline(always)]
    fn placed(&mut self, ledger: &mut Ledger, order: &Incoming, placed: &Placed, events: &mut Vec<Event>) -> Resting {
        match placed.fate {
            Fate::Filled => Resting::default(),
            // A stop that waits is open, and shows nothing. So is the rest of an order that goes on.
            Fate::Parked => Resting { open: order.size, shown: SizeLots::ZERO },
            Fate::Paused { open } => Resting { open, shown: SizeLots::ZERO },
            Fate::Rested { open, shown } => {
                self.state.shows(order.side, placed.price, shown);
                if placed.price != order.limit {
                    self.repriced(ledger, order, placed.price, open);
                }
                Resting { open, shown }
            }
            Fate::Unfilled { open } => self.cancel_rest(ledger, order, open, CancelReason::Unfilled, events),
            Fate::SelfTraded { open } => self.cancel_rest(ledger, order, open, CancelReason::SelfTrade, events),
            Fate::Banded { open } => self.cancel_rest(ledger, order, open, CancelReason::PriceBand, events),
        }
    }

    /// Accounts for a post-only order that rests at a better price, hence with less at stake, than it came with.
    #[cold]
    #[inline(never)]
    fn repriced(&mut self, ledger: &mut Ledger, order: &Incoming, price: PriceTicks, open: SizeLots) {
        let from = Stake { limit: order.limit, open };
        self.state.shrink(ledger, order.order_id, order.owner, order.side, from, Stake { limit: price, open });
    }

    /// Accounts for and tells of an incoming order of which `open` is left, none of it in the book. `open` is zero for an order that
    /// self-trade prevention shrank to nothing, and which is gone from its account's open orders already.
    #[inline(never)]
    fn cancel_rest(
        &mut self,
        ledger: &mut Ledger,
        order: &Incoming,
        open: SizeLots,
        reason: CancelReason,
        events: &mut Vec<Event>,
    ) -> Resting {
        if !open.is_zero() {
            let left = Stake { limit: order.limit, open };
            self.state.shrink(ledger, order.order_id, order.owner, order.side, left, Stake { open: SizeLots::ZERO, ..left });
        }
        events.push(Event::Order(OrderEvent::Cancelled(OrderCancelled {
            instrument: self.state.spec.instrument,
            account: AccountId(order.owner.0),
            client_order_id: order.client_order_id,
            order_id: order.order_id,
            open,
            reason,
        })));
        Resting::default()
    }

    /// Cancels what is linked with orders that were met, by the events from `from` on. Halts when an order would have left the
    /// band; else lets in what the trades touched, as far as this entry goes.
    #[inline]
    fn after_matching(&mut self, ledger: &mut Ledger, from: usize, trades_before: u64, placed: &Placed, events: &mut Vec<Event>) {
        let cost = self.state.trade_cost();
        if !self.state.links.is_empty() {
            self.settle_links(ledger, from, events);
        }
        match placed.fate {
            Fate::Banded { .. } => self.halt(PhaseCause::PriceBand, events),
            // As many as may were met: it goes on with the next entry.
            Fate::Paused { .. } => self.state.is_busy = true,
            Fate::Rested { .. } | Fate::Parked | Fate::Filled | Fate::Unfilled { .. } | Fate::SelfTraded { .. } => {
                let trades = self.state.trade_count - trades_before;
                if trades != 0 {
                    self.trigger_stops(ledger, left_after(self.state.meetings_max, trades, cost), events);
                }
            }
        }
    }

    /// Enters the rest of an order that goes on, and the stops that the last trade touches, and those that their trades touch, until there
    /// is none, the market halts, or about `left` orders were met. How many may be met then.
    pub(crate) fn trigger_stops(&mut self, ledger: &mut Ledger, mut left: u32, events: &mut Vec<Event>) -> u32 {
        while self.is_continuous() && left > 0 {
            let Some(Triggered { mut entry, trailed_to }) = self.book.take_triggered() else { break };
            let cost = self.state.trade_cost();
            if !self.state.links.is_empty() {
                self.unlink_triggered(ledger, &entry, events);
            }
            if let Some(trigger) = trailed_to {
                entry.price = self.limit_there(ledger, &entry, trigger);
            }
            let (triggered_at, trades_before) = (events.len(), self.state.trade_count);
            events.push(Event::Order(OrderEvent::Triggered(StopTriggered {
                instrument: self.state.spec.instrument,
                account: AccountId(entry.owner.0),
                client_order_id: entry.client_order_id,
                order_id: entry.order_id,
                side: entry.side,
                price: entry.price,
                resting: Resting::default(),
            })));
            let order = Incoming::of(&entry);
            match self.give(ledger, &entry, &order, events) {
                Ok(placed) => {
                    let standing = self.placed(ledger, &order, &placed, events);
                    if let Event::Order(OrderEvent::Triggered(triggered)) = &mut events[triggered_at] {
                        triggered.price = placed.price;
                        triggered.resting = standing;
                    }
                    if !self.state.links.is_empty() {
                        self.settle_links(ledger, triggered_at, events);
                    }
                    match placed.fate {
                        Fate::Banded { .. } => self.halt(PhaseCause::PriceBand, events),
                        Fate::Paused { .. } => left = 0,
                        Fate::Rested { .. } | Fate::Parked | Fate::Filled | Fate::Unfilled { .. } | Fate::SelfTraded { .. } => {}
                    }
                }
                Err(_) => {
                    self.refuse_triggered(ledger, &entry, events);
                    if !self.state.links.is_empty() {
                        self.settle_links(ledger, triggered_at, events);
                    }
                }
            }
            left = left_after(left.saturating_sub(STOP_MEETINGS + cost - 1), self.state.trade_count - trades_before, cost);
        }
        self.state.is_busy = self.goes_on();
        left
    }

    /// The limit with which a trailing stop enters, whose trigger has moved to `trigger`: its own, or the end of the collar around
    /// the trigger where that is better. Until now it has reserved for its own.
    #[cold]
    #[inline(never)]
    fn limit_there(&mut self, ledger: &mut Ledger, entry: &Entry, trigger: PriceTicks) -> PriceTicks {
        let end = far_end(self.state.trigger_collar(trigger), entry.side);
        // An offer is worth more there, which may be no amount any more: then it enters with its own limit.
        let is_possible = self.state.reserve(entry.side, end, entry.size).is_some();
        if !is_possible || entry.side.accepts(end, entry.price) {
            return entry.price;
        }
        let stood = Stake { limit: entry.price, open: entry.size };
        self.state.shrink(ledger, entry.order_id, entry.owner, entry.side, stood, Stake { limit: end, ..stood });
        end
    }

    /// A triggered stop that the book does not take (fill-or-kill, minimum size) is cancelled whole.
    #[cold]
    fn refuse_triggered(&mut self, ledger: &mut Ledger, entry: &Entry, events: &mut Vec<Event>) {
        self.cancel_rest(ledger, &Incoming::of(entry), entry.size, CancelReason::TriggerRefused, events);
    }

    /// The orders that an account has here, in the order in which they were entered.
    pub(crate) fn orders_of(&self, account: AccountId, side: Option<Side>) -> Vec<OpenOrder> {
        if self.state.exposure(account).open_orders == 0 {
            return Vec::new();
        }
        let (mut orders, mut looks) = (Vec::new(), usize::MAX);
        let is_wanted = |order: &OpenOrder| side.is_none_or(|side| side == order.side);
        let names = &self.state.names;
        names.open_orders(&self.book, account, OrderId(0), &mut looks, |order| orders.extend(is_wanted(order).then_some(*order)));
        orders
    }

    #[inline]
    fn amend(&mut self, ledger: &mut Ledger, amend: &AmendOrder, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        if !self.state.phase.takes_orders() {
            return Err(RejectReason::PhaseTakesNoOrders);
        }
        let named = self.book.find(OwnerId(amend.account.0), amend.amendment.client_order_id);
        let handle = named.ok_or(RejectReason::UnknownOrder)?;
        if !self.state.links.is_empty() {
            let (links, order_id) = (&self.state.links, self.book.order_id(handle));
            if links.of(order_id).is_some() || links.brackets.forbids(order_id, &amend.amendment) {
                return Err(RejectReason::LinkedOrderFixed);
            }
        }
        if self.is_continuous()
            && amend.amendment.trigger.is_none()
            && let Some(old) = self.book.plain(handle)
        {
            let new = asked(Stake { limit: old.price, open: old.open }, &amend.amendment);
            let leaves = new.limit != old.price || new.open > old.open;
            if leaves && !self.book.would_trade(old.side, new.limit) {
                return self.requeue(ledger, handle, &old, new, amend, events);
            }
        }
        self.amend_any(ledger, handle, amend, events)
    }

    /// The amendment that most are: a plain order leaves its queue for the back of another, and nothing trades. Does what
    /// [`Self::amend_any`] would, and touches each thing once.
    #[inline]
    fn requeue(
        &mut self,
        ledger: &mut Ledger,
        handle: Handle,
        old: &PlainOrder,
        new: Stake,
        amend: &AmendOrder,
        events: &mut Vec<Event>,
    ) -> Result<(), RejectReason> {
        check_size(new.open)?;
        let owner = OwnerId(amend.account.0);
        let stood = Stake { limit: old.price, open: old.open };
        if new.limit != stood.limit {
            terms::within(self.state.collar(self.book.last_price()), new.limit)?;
        }
        let (had, needs) = self.check_amended(owner, old.side, stood, new)?;
        let asset = self.state.reserve_asset(old.side);
        ledger.adjust_reserve(amend.account, asset, had, needs).map_err(insufficient)?;
        self.state.exposure_of(owner).resized(old.side, old.open, new.open);
        self.book.requeue_plain(handle, old.side, new.limit, new.open);
        self.state.level_changed(old.side, old.price);
        self.state.level_changed(old.side, new.limit);
        events.push(Event::Order(OrderEvent::Amended(OrderAmended {
            instrument: amend.instrument,
            account: amend.account,
            client_order_id: amend.amendment.client_order_id,
            order_id: old.order_id,
            side: old.side,
            price: Some(new.limit),
            priority: Priority::Lost,
            resting: Resting { open: new.open, shown: new.open },
        })));
        Ok(())
    }

    #[inline(never)]
    fn amend_any(
        &mut self,
        ledger: &mut Ledger,
        handle: Handle,
        amend: &AmendOrder,
        events: &mut Vec<Event>,
    ) -> Result<(), RejectReason> {
        let account = amend.account;
        let old = self.book.view(handle);
        let Change { stake: new, trigger } = amended(&self.state, &old, &amend.amendment)?;
        let stood = Stake { limit: old.price, open: old.open };
        if let Some((trigger, waits)) = trigger.zip(old.trigger) {
            terms::check_waits(old.side, waits.condition, trigger, self.book.last_price())?;
        }
        // The collar of a stop lies around its trigger, so that it moves with it.
        let collar = match trigger.or(old.trigger.map(|waits| waits.price)) {
            Some(trigger) => self.state.trigger_collar(trigger),
            None => self.state.collar(self.book.last_price()),
        };
        if new.limit != stood.limit || trigger.is_some() {
            terms::within(collar, new.limit)?;
        }
        self.check_repriced(old.side, new, old.post_only)?;
        let (had, needs) = self.check_amended(old.owner, old.side, stood, new)?;

        let asset = self.state.reserve_asset(old.side);
        ledger.adjust_reserve(account, asset, had, needs).map_err(insufficient)?;
        self.state.exposure_of(old.owner).resized(old.side, old.open, new.open);

        if let Some(trigger) = trigger {
            self.retrigger(handle, amend, trigger, new, events);
            return Ok(());
        }
        let amended_at = events.len();
        events.push(Event::Order(OrderEvent::Amended(OrderAmended {
            instrument: self.state.spec.instrument,
            account,
            client_order_id: old.client_order_id,
            order_id: old.order_id,
            side: old.side,
            price: None,
            priority: Priority::Kept,
            resting: Resting::default(),
        })));
        let trades_before = self.state.trade_count;
        let (price, size) = (Some(new.limit), Some(new.open));
        let OpenOrder { order_id, client_order_id, owner, side, .. } = old;
        let order = Incoming { order_id, client_order_id, owner, side, limit: new.limit, size: new.open };
        let outcome = if self.is_continuous() {
            let band = self.state.band;
            self.book.amend(handle, price, size, band, &mut Settler::taking(&order, ledger, &mut self.state, events))
        } else {
            self.book.amend_collected(handle, price, size)
        };
        let (price, priority, resting, placed) = match outcome {
            Ok(Amended::Kept { order }) => {
                let price = order.trigger.is_none().then_some(order.price);
                self.state.shows(old.side, old.price, old.shown - order.shown);
                (price, Priority::Kept, resting(&order), None)
            }
            Ok(Amended::Requeued { placed }) => {
                self.state.shows(old.side, old.price, old.shown);
                let resting = self.placed(ledger, &order, &placed, events);
                (price_in_force(&placed), Priority::Lost, resting, Some(placed))
            }
            Err(refusal) => {
                events.truncate(amended_at);
                ledger.adjust_reserve(account, asset, needs, had).expect("what was moved above moves back");
                self.state.exposure_of(old.owner).resized(old.side, new.open, old.open);
                return Err(reason(refusal));
            }
        };
        if let Event::Order(OrderEvent::Amended(amended)) = &mut events[amended_at] {
            (amended.price, amended.priority, amended.resting) = (price, priority, resting);
        }
        if let Some(placed) = placed {
            self.after_matching(ledger, amended_at, trades_before, &placed, events);
        }
        Ok(())
    }

    /// Gives a stop that waits another trigger, which the last trade does not touch. It is accounted for already.
    #[cold]
    fn retrigger(&mut self, handle: Handle, amend: &AmendOrder, trigger: PriceTicks, new: Stake, events: &mut Vec<Event>) {
        let order = self.book.retrigger(handle, trigger, new.limit, new.open);
        events.push(Event::Order(OrderEvent::Amended(OrderAmended {
            instrument: amend.instrument,
            account: amend.account,
            client_order_id: order.client_order_id,
            order_id: order.order_id,
            side: order.side,
            price: None,
            priority: Priority::Lost,
            resting: resting(&order),
        })));
    }

    /// Checks what an amendment would make of an order against the limits, as far as it grows, and says what it has reserved and would
    /// have to.
    #[inline]
    fn check_amended(&mut self, owner: OwnerId, side: Side, old: Stake, new: Stake) -> Result<(Amount, Amount), RejectReason> {
        let market = &self.state;
        let value = market.value(new.limit, new.open).ok_or(RejectReason::ValueOverflow)?;
        let had = market.value(old.limit, old.open).expect("an open order's value was checked when it entered");
        let exposure = market.exposure(AccountId(owner.0));
        let limits = market.limits(&exposure);
        if new.open > limits.order_lots_max.max(old.open) {
            return Err(RejectReason::OrderTooLarge);
        }
        if value > limits.order_value_max.max(had) {
            return Err(RejectReason::OrderValueTooLarge);
        }
        if new.open > old.open {
            market.check_position(&exposure, side, new.open - old.open)?;
        }
        let needs = market.reserve_at(side, value, new.open).ok_or(RejectReason::ValueOverflow)?;
        let had = market.reserve_at(side, had, old.open).expect("an open order's reserve was checked when it entered");
        Ok((had, needs))
    }
}

/// What an amendment of an order that has `old` at stake asks for.
#[inline]
fn asked(old: Stake, amendment: &Amendment) -> Stake {
    Stake { limit: amendment.price.unwrap_or(old.limit), open: amendment.size.unwrap_or(old.open) }
}

#[inline]
fn check_size(size: SizeLots) -> Result<(), RejectReason> {
    SizeLots::order_size(size.get()).map(|_| ()).ok_or(RejectReason::SizeOutOfRange)
}

/// What an amendment makes of an open order.
struct Change {
    stake: Stake,
    /// Another trigger than it had.
    trigger: Option<PriceTicks>,
}

/// What an amendment of any open order asks for, if it may.
#[inline]
fn amended(market: &MarketState, old: &OpenOrder, amendment: &Amendment) -> Result<Change, RejectReason> {
    let stood = Stake { limit: old.price, open: old.open };
    let mut new = asked(stood, amendment);
    let trigger = match old.trigger {
        None if amendment.trigger.is_some() => return Err(RejectReason::AmendInvalid),
        None => None,
        Some(Trigger { becomes: Becomes::Market, .. }) if amendment.price.is_some() => return Err(RejectReason::AmendInvalid),
        Some(Trigger { trailing: Some(_), .. }) if amendment.trigger.is_some() => return Err(RejectReason::AmendInvalid),
        Some(waits) => amendment.trigger.filter(|trigger| *trigger != waits.price),
    };
    if let (Some(trigger), Some(Trigger { becomes: Becomes::Market, .. })) = (trigger, old.trigger) {
        // What becomes a market order has its collar's end as its limit.
        new.limit = far_end(market.trigger_collar(trigger), old.side);
    }
    if new == stood && trigger.is_none() {
        return Err(RejectReason::AmendInvalid);
    }
    check_size(new.open)?;
    if old.min_size.is_some_and(|min_size| min_size > new.open) {
        return Err(RejectReason::MinSizeInvalid);
    }
    if new.open > old.open && terms::has_too_many_slices(old.display, new.open) {
        return Err(RejectReason::DisplayInvalid);
    }
    Ok(Change { stake: new, trigger })
}

/// The limit that an order stands or traded with; a stop that waits has none yet.
#[inline]
fn price_in_force(placed: &Placed) -> Option<PriceTicks> {
    match placed.fate {
        Fate::Parked => None,
        _ => Some(placed.price),
    }
}

/// How many more orders may be met after so many trades.
#[inline]
fn left_after(left: u32, trades: u64, cost: u32) -> u32 {
    left.saturating_sub(u32::try_from(trades).unwrap_or(u32::MAX).saturating_mul(cost))
}

/// What is left of an open order, and what others see of it: nothing of a stop that waits.
fn resting(order: &OpenOrder) -> Resting {
    Resting { open: order.open, shown: order.shown }
}

fn insufficient(error: LedgerError) -> RejectReason {
    assert_eq!(error, LedgerError::InsufficientAvailable, "the account and its market's assets exist");
    RejectReason::InsufficientFunds
}

fn reason(refusal: Refusal) -> RejectReason {
    match refusal {
        Refusal::DuplicateClientOrderId => RejectReason::DuplicateClientOrderId,
        Refusal::PostOnlyWouldTrade => RejectReason::PostOnlyWouldTrade,
        Refusal::FillOrKillUnfillable => RejectReason::FillOrKillUnfillable,
        Refusal::MinSizeUnfillable => RejectReason::MinSizeUnfillable,
        Refusal::FillCheckTooDeep => RejectReason::FillCheckTooDeep,
        Refusal::BookFull => RejectReason::BookFull,
    }
}
