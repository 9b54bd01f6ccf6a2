//! What an order goes through: checks, reserve, match, settle; and how it is changed and cancelled.

use walras_ledger::{Ledger, LedgerError};
use walras_order_book::{Amended, Entry, Fate, OpenOrder, OwnerId, Placed, PriceIndex, Refusal};
use walras_types::{AccountId, Amount, Display, OrderId, PriceTicks, RejectReason, Side, SizeLots, TimeInForce};
use walras_wire::{
    AmendOrder, CancelOrder, CancelReason, Event, MassCancel, NewOrder, OrderAccepted, OrderAmended, OrderCancelled, PhaseCause,
    Priority, Resting, StopTriggered,
};

use crate::engine::Engine;
use crate::market::{Exposure, Market, MarketState, Stake};
use crate::settle::Settler;
use crate::terms;

impl<I: PriceIndex> Engine<I> {
    /// Checks in this order: account, instrument, terms, phase, collar, value, limits, funds; then the book's own (name, post-only,
    /// fill-or-kill, minimum size, room).
    #[inline]
    pub(crate) fn new_order(&mut self, order: &NewOrder, order_id: OrderId, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        self.check_active(order.account)?;
        let index = self.market_index(order.instrument)?;
        let market = &mut self.markets[index];
        let last_price = market.book.last_price();
        let entry = terms::entry(order, order_id, self.time, &mut market.state, last_price)?;
        let reserve = check_limits(&mut market.state, &entry)?;
        market.enter(&mut self.ledger, &entry, reserve, events)?;
        if let TimeInForce::GoodTill(until) = entry.time_in_force {
            self.next_expiry = self.next_expiry.min(until);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn cancel_order(&mut self, cancel: &CancelOrder, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        self.status(cancel.account)?;
        let index = self.market_index(cancel.instrument)?;
        let Market { book, state } = &mut self.markets[index];
        let handle = book.find(OwnerId(cancel.account.0), cancel.client_order_id).ok_or(RejectReason::UnknownOrder)?;
        let order = book.cancel(handle);
        Settler::new(&mut self.ledger, state, events).gone(&order, CancelReason::Requested);
        Ok(())
    }

    /// Cancels by instrument, then as the book does. That there was nothing to cancel is no error: then nothing happens.
    pub(crate) fn mass_cancel(&mut self, cancel: &MassCancel, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        self.status(cancel.account)?;
        let markets = match cancel.instrument {
            Some(instrument) => {
                let index = self.market_index(instrument)?;
                index..index + 1
            }
            None => 0..self.markets.len(),
        };
        for market in &mut self.markets[markets] {
            market.cancel_all(&mut self.ledger, cancel.account, cancel.side, CancelReason::MassCancelled, events);
        }
        Ok(())
    }

    /// Checks in this order: account, instrument, phase, that the order is open, that the amendment says something, size, collar,
    /// value, limits (only what grows), funds; then the book's own.
    pub(crate) fn amend_order(&mut self, amend: &AmendOrder, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        self.check_active(amend.account)?;
        let index = self.market_index(amend.instrument)?;
        self.markets[index].amend(&mut self.ledger, amend, events)
    }
}

/// Checks an entry against its account's limits, and says what it must reserve.
#[inline]
fn check_limits(market: &mut MarketState, entry: &Entry) -> Result<Amount, RejectReason> {
    let value = market.spec.value(entry.price, entry.size).ok_or(RejectReason::ValueOverflow)?;
    let reserve = match entry.side {
        Side::Buy => market.with_fees(value),
        Side::Sell => market.spec.base_amount(entry.size),
    };
    let reserve = reserve.ok_or(RejectReason::ValueOverflow)?;
    let exposure = *market.exposure_mut(AccountId(entry.owner.0));
    check_order_size(market, &exposure, entry.size)?;
    check_order_value(market, &exposure, value)?;
    // An order that can not stay, now or ever, takes no place among the open ones.
    let may_stay = entry.trigger.is_some() || terms::can_rest(entry.time_in_force);
    if may_stay && exposure.open_orders >= market.limits(&exposure).open_orders_max {
        return Err(RejectReason::TooManyOpenOrders);
    }
    market.check_position(&exposure, entry.side, entry.size)?;
    Ok(reserve)
}

#[inline]
fn check_order_size(market: &MarketState, exposure: &Exposure, size: SizeLots) -> Result<(), RejectReason> {
    if size > market.limits(exposure).order_lots_max { Err(RejectReason::OrderTooLarge) } else { Ok(()) }
}

#[inline]
fn check_order_value(market: &MarketState, exposure: &Exposure, value: Amount) -> Result<(), RejectReason> {
    if value > market.limits(exposure).order_value_max { Err(RejectReason::OrderValueTooLarge) } else { Ok(()) }
}

impl<I: PriceIndex> Market<I> {
    /// Reserves for an order and gives it to the book.
    #[inline]
    fn enter(&mut self, ledger: &mut Ledger, entry: &Entry, reserve: Amount, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let account = AccountId(entry.owner.0);
        let asset = self.state.reserve_asset(entry.side);
        ledger.reserve(account, asset, reserve).map_err(insufficient)?;
        self.state.exposure_mut(account).opened(entry.side, entry.size);
        let accepted_at = events.len();
        events.push(Event::OrderAccepted(OrderAccepted {
            instrument: self.state.spec.instrument,
            account,
            client_order_id: entry.client_order_id,
            order_id: entry.order_id,
            side: entry.side,
            size: entry.size,
            price: None,
            resting: Resting::default(),
        }));
        let trades_before = self.state.trade_count;
        match self.give(ledger, entry, events) {
            Ok(placed) => {
                let resting = self.placed(ledger, entry, &placed, events);
                if let Event::OrderAccepted(accepted) = &mut events[accepted_at] {
                    accepted.price = price_in_force(&placed);
                    accepted.resting = resting;
                }
                self.after_matching(ledger, trades_before, &placed, events);
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
    fn give(&mut self, ledger: &mut Ledger, entry: &Entry, events: &mut Vec<Event>) -> Result<Placed, Refusal> {
        if !self.is_continuous() {
            return self.book.collect(entry);
        }
        let band = self.state.band;
        self.book.submit(entry, band, &mut Settler::new(ledger, &mut self.state, events).with_taker(entry))
    }

    /// Accounts for what became of an entry beside its trades, tells of the rest that is cancelled, and says what stands.
    #[inline]
    fn placed(&mut self, ledger: &mut Ledger, entry: &Entry, placed: &Placed, events: &mut Vec<Event>) -> Resting {
        match placed.fate {
            Fate::Filled => Resting::default(),
            // A stop that waits is open, and shows nothing.
            Fate::Parked => Resting { open: entry.size, shown: SizeLots::ZERO },
            Fate::Rested { open, shown } => {
                // Repriced: post-only orders rest with less at stake than they came with.
                if placed.price != entry.price {
                    let to = Stake { limit: placed.price, open };
                    self.state.shrink(ledger, entry.owner, entry.side, Stake { limit: entry.price, open }, to);
                }
                Resting { open, shown }
            }
            Fate::Unfilled { open } => self.cancel_rest(ledger, entry, open, CancelReason::Unfilled, events),
            Fate::SelfTraded { open } => self.cancel_rest(ledger, entry, open, CancelReason::SelfTrade, events),
            Fate::Banded { open } => self.cancel_rest(ledger, entry, open, CancelReason::PriceBand, events),
        }
    }

    /// Accounts for and tells of an incoming order of which `open` is left, none of it in the book. `open` is zero for an order that
    /// self-trade prevention shrank to nothing, and which is gone from its account's open orders already.
    fn cancel_rest(
        &mut self,
        ledger: &mut Ledger,
        entry: &Entry,
        open: SizeLots,
        reason: CancelReason,
        events: &mut Vec<Event>,
    ) -> Resting {
        if !open.is_zero() {
            let left = Stake { limit: entry.price, open };
            self.state.shrink(ledger, entry.owner, entry.side, left, Stake { open: SizeLots::ZERO, ..left });
        }
        events.push(Event::OrderCancelled(OrderCancelled {
            instrument: self.state.spec.instrument,
            account: AccountId(entry.owner.0),
            client_order_id: entry.client_order_id,
            order_id: entry.order_id,
            open,
            reason,
        }));
        Resting::default()
    }

    /// Halts when an order would have left the band; else lets the stops in that the trades touched.
    #[inline]
    fn after_matching(&mut self, ledger: &mut Ledger, trades_before: u64, placed: &Placed, events: &mut Vec<Event>) {
        if matches!(placed.fate, Fate::Banded { .. }) {
            self.halt(PhaseCause::PriceBand, events);
        } else if self.state.trade_count != trades_before {
            self.trigger_stops(ledger, events);
        }
    }

    /// Enters the stops that the last trade touches, and those that their trades touch, until there is none or the market halts.
    pub(crate) fn trigger_stops(&mut self, ledger: &mut Ledger, events: &mut Vec<Event>) {
        while self.is_continuous() {
            let Some(entry) = self.book.take_triggered() else { return };
            let triggered_at = events.len();
            events.push(Event::StopTriggered(StopTriggered {
                instrument: self.state.spec.instrument,
                account: AccountId(entry.owner.0),
                client_order_id: entry.client_order_id,
                order_id: entry.order_id,
                side: entry.side,
                price: entry.price,
                resting: Resting::default(),
            }));
            match self.give(ledger, &entry, events) {
                Ok(placed) => {
                    let standing = self.placed(ledger, &entry, &placed, events);
                    if let Event::StopTriggered(triggered) = &mut events[triggered_at] {
                        triggered.price = placed.price;
                        triggered.resting = standing;
                    }
                    if matches!(placed.fate, Fate::Banded { .. }) {
                        self.halt(PhaseCause::PriceBand, events);
                    }
                }
                Err(_) => self.refuse_triggered(ledger, &entry, events),
            }
        }
    }

    /// A triggered stop that the book does not take (fill-or-kill, minimum size) is cancelled whole.
    #[cold]
    fn refuse_triggered(&mut self, ledger: &mut Ledger, entry: &Entry, events: &mut Vec<Event>) {
        self.cancel_rest(ledger, entry, entry.size, CancelReason::TriggerRefused, events);
    }

    /// Cancels an account's orders here.
    pub(crate) fn cancel_all(
        &mut self,
        ledger: &mut Ledger,
        account: AccountId,
        side: Option<Side>,
        reason: CancelReason,
        events: &mut Vec<Event>,
    ) {
        if self.state.exposure(account).open_orders > 0 {
            let mut settler = Settler::new(ledger, &mut self.state, events).cancelling(reason);
            self.book.cancel_all(OwnerId(account.0), side, &mut settler);
        }
    }

    fn amend(&mut self, ledger: &mut Ledger, amend: &AmendOrder, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        if !self.state.phase.takes_orders() {
            return Err(RejectReason::PhaseTakesNoOrders);
        }
        let account = amend.account;
        let named = self.book.find(OwnerId(account.0), amend.amendment.client_order_id);
        let handle = named.ok_or(RejectReason::UnknownOrder)?;
        let old = self.book.view(handle);
        let new = amended(&old, amend.amendment.price, amend.amendment.size)?;
        self.check_amended(&old, &new)?;

        let had = self.state.reserved(old.side, old.price, old.open);
        let needs = self.state.reserve(new.side, new.price, new.size).ok_or(RejectReason::ValueOverflow)?;
        let asset = self.state.reserve_asset(old.side);
        ledger.adjust_reserve(account, asset, had, needs).map_err(insufficient)?;
        let lots = &mut self.state.exposure_mut(account).open_lots[old.side as usize];
        *lots = *lots - old.open.get() + new.size.get();

        let amended_at = events.len();
        events.push(Event::OrderAmended(OrderAmended {
            instrument: self.state.spec.instrument,
            account,
            client_order_id: old.client_order_id,
            order_id: old.order_id,
            side: old.side,
            price: None,
            priority: Priority::Kept,
            resting: Resting::default(),
        }));
        let trades_before = self.state.trade_count;
        let (price, size) = (Some(new.price), Some(new.size));
        let outcome = if self.is_continuous() {
            let band = self.state.band;
            self.book.amend(handle, price, size, band, &mut Settler::new(ledger, &mut self.state, events).with_taker(&new))
        } else {
            self.book.amend_collected(handle, price, size)
        };
        let (price, priority, resting, placed) = match outcome {
            Ok(Amended::Kept { order }) => {
                let price = order.trigger.is_none().then_some(order.price);
                (price, Priority::Kept, resting(&order), None)
            }
            Ok(Amended::Requeued { placed }) => {
                let resting = self.placed(ledger, &new, &placed, events);
                (price_in_force(&placed), Priority::Lost, resting, Some(placed))
            }
            Err(refusal) => {
                events.truncate(amended_at);
                ledger.adjust_reserve(account, asset, needs, had).expect("what was moved above moves back");
                let lots = &mut self.state.exposure_mut(account).open_lots[old.side as usize];
                *lots = *lots - new.size.get() + old.open.get();
                return Err(reason(refusal));
            }
        };
        if let Event::OrderAmended(amended) = &mut events[amended_at] {
            (amended.price, amended.priority, amended.resting) = (price, priority, resting);
        }
        if let Some(placed) = placed {
            self.after_matching(ledger, trades_before, &placed, events);
        }
        Ok(())
    }

    /// Checks what an amendment would make of an order: the collar if its price changes, limits for what grows.
    fn check_amended(&mut self, old: &OpenOrder, new: &Entry) -> Result<(), RejectReason> {
        if matches!(new.display, Display::Iceberg { peak } if terms::is_too_thin(peak, new.size)) {
            return Err(RejectReason::DisplayInvalid);
        }
        if new.price != old.price {
            let collar = match old.trigger {
                Some(trigger) => self.state.trigger_collar(trigger),
                None => self.state.collar(self.book.last_price()),
            };
            terms::within(collar, new.price)?;
        }
        let market = &self.state;
        let value = market.spec.value(new.price, new.size).ok_or(RejectReason::ValueOverflow)?;
        let had = market.spec.value(old.price, old.open).expect("an open order's value was checked when it entered");
        let exposure = market.exposure(AccountId(old.owner.0));
        if new.size > old.open {
            check_order_size(market, &exposure, new.size)?;
        }
        if value > had {
            check_order_value(market, &exposure, value)?;
        }
        if new.size > old.open {
            market.check_position(&exposure, new.side, new.size - old.open)?;
        }
        Ok(())
    }
}

/// The order that an amendment asks for.
fn amended(old: &OpenOrder, price: Option<PriceTicks>, size: Option<SizeLots>) -> Result<Entry, RejectReason> {
    // A stop of which nothing can rest becomes a market order at its collar's end, or a stop-limit alike: that price stays.
    let price_is_fixed = old.trigger.is_some() && !terms::can_rest(old.time_in_force);
    if price.is_some() && price_is_fixed {
        return Err(RejectReason::AmendInvalid);
    }
    let (new_price, new_size) = (price.unwrap_or(old.price), size.unwrap_or(old.open));
    if (new_price, new_size) == (old.price, old.open) {
        return Err(RejectReason::AmendInvalid);
    }
    if SizeLots::order_size(new_size.get()).is_none() {
        return Err(RejectReason::SizeOutOfRange);
    }
    if old.min_size.is_some_and(|min_size| min_size > new_size) {
        return Err(RejectReason::MinSizeInvalid);
    }
    Ok(Entry {
        order_id: old.order_id,
        client_order_id: old.client_order_id,
        owner: old.owner,
        side: old.side,
        price: new_price,
        size: new_size,
        time_in_force: old.time_in_force,
        post_only: old.post_only,
        display: old.display,
        min_size: old.min_size,
        self_trade: old.self_trade,
        trigger: old.trigger,
    })
}

/// The limit that an order stands or traded with; a stop that waits has none yet.
#[inline]
fn price_in_force(placed: &Placed) -> Option<PriceTicks> {
    match placed.fate {
        Fate::Parked => None,
        _ => Some(placed.price),
    }
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
        Refusal::BookFull => RejectReason::BookFull,
    }
}
