//! Work in steps: what one entry of the log leaves to the next ones, so that none holds its thread for long.
//!
//! An entry lets incoming orders meet about [`MEETINGS_PER_ENTRY_MAX`] others. What is left (the rest of an order, the stops that
//! were touched, good-till-time orders that are due) is in the book, or like the rest of an uncross and of a day's end beside it
//! (`changing.rs`), hence in the state, and goes on with the next entry, whatever that is: before its command, in the order in which it
//! would have happened at once. Until nothing is left the book is *busy* and
//! refuses commands with [`RejectReason::BookBusy`](walras_types::RejectReason::BookBusy), so nobody comes in between. While a book
//! is busy, the leader logs ticks ([`Engine::has_work`]). ADR 14 says why it is so.
//!
//! A mass cancel is a list of orders in the state, which later entries work off. It makes no book busy.
//!
//! [`MEETINGS_PER_ENTRY_MAX`]: walras_types::limits::MEETINGS_PER_ENTRY_MAX

use std::collections::VecDeque;
use std::ops::Range;

use walras_ledger::Ledger;
use walras_order_book::{OpenOrder, OwnerId, PriceIndex};
use walras_types::{AccountId, Side, TimeNs};
use walras_wire::codec::{Reader, Wire, Writer};
use walras_wire::{CancelReason, Event};

use crate::cancelling::{Cancelling, Listed};
use crate::engine::{Engine, NEVER, NOW};
use crate::market::Market;
use crate::settle::Settler;
use crate::snapshot::{RestoreError, count};

impl<I: PriceIndex> Engine<I> {
    /// Lists an account's orders of these markets, and takes them out as far as this entry goes.
    pub(crate) fn cancel_listed(
        &mut self,
        markets: Range<usize>,
        account: AccountId,
        side: Option<Side>,
        reason: CancelReason,
        events: &mut Vec<Event>,
    ) {
        let mut orders = VecDeque::new();
        for market in &self.markets[markets] {
            let instrument = market.state.spec.instrument;
            let listed = |order: OpenOrder| Listed { instrument, order_id: order.order_id, client_order_id: order.client_order_id };
            orders.extend(market.orders_of(account, side).into_iter().map(listed));
        }
        let mut list = Cancelling { account, reason, orders };
        self.go_on_cancelling(&mut list, self.meetings_max, events);
        if !list.orders.is_empty() {
            self.cancelling.push_back(list);
            self.next_work = NOW;
        }
    }

    /// Takes out the first orders of a list, at most `left`, up to one in a book where something goes on. How many more there may
    /// be then.
    fn go_on_cancelling(&mut self, list: &mut Cancelling, mut left: u32, events: &mut Vec<Event>) -> u32 {
        let is_suspended = list.reason == CancelReason::AccountSuspended;
        while left > 0
            && let Some(&Listed { instrument, order_id, client_order_id }) = list.orders.front()
        {
            let market = &mut self.markets[instrument.0 as usize];
            // Who may trade no more leaves at once, and the rest of its order with it. But what a change of phase began is done first: the
            // volume of an uncross is of orders that stand.
            if market.state.changing.is_some() || (market.state.is_busy && !is_suspended) {
                return left;
            }
            list.orders.pop_front();
            left -= 1;
            let found = market.book.find(OwnerId(list.account.0), client_order_id);
            if let Some(handle) = found.filter(|handle| market.book.view(*handle).order_id == order_id) {
                let order = market.book.cancel(handle);
                Settler::new(&mut self.ledger, &mut market.state, events).gone(&order, list.reason);
                market.look_for_work(self.time);
            }
        }
        left
    }

    /// Whether something waits to go on with the next entry: the leader should log a tick then.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.next_work == NOW
    }

    /// Lets an entry meet so many orders, instead of [`MEETINGS_PER_ENTRY_MAX`](walras_types::limits::MEETINGS_PER_ENTRY_MAX): for
    /// tests. All who apply a log must agree on it, from its first entry on.
    pub fn set_meetings_max(&mut self, meetings_max: u32) {
        self.meetings_max = meetings_max.max(1);
        for Market { book, state, .. } in &mut self.markets {
            book.set_step_max(self.meetings_max);
            state.meetings_max = self.meetings_max;
        }
    }

    /// Goes on with what earlier entries left, then cancels the good-till-time orders whose time has come, by instrument. As long
    /// as a book is busy, each entry begins with another instrument, so that none keeps the others waiting.
    #[cold]
    #[inline(never)]
    pub(crate) fn carry_on(&mut self, events: &mut Vec<Event>) {
        let (now, mut left) = (self.time, self.meetings_max);
        let is_busy = std::mem::replace(&mut self.next_work, NEVER) == NOW;
        let count = self.enter_all_markets().len();
        let turn = if is_busy { self.last_applied.0 % count.max(1) as u64 } else { 0 };
        let first = usize::try_from(turn).expect("it is below a count of markets");
        for index in (first..count).chain(0..first) {
            let market = &mut self.markets[index];
            left = market.carry_on(&mut self.ledger, now, left, events);
            self.next_work = self.next_work.min(market.next_work());
        }
        while left > 0
            && let Some(mut list) = self.cancelling.pop_front()
        {
            left = self.go_on_cancelling(&mut list, left, events);
            if !list.orders.is_empty() {
                // It waits for the budget of another entry, or for a book: others may go on meanwhile.
                self.cancelling.push_back(list);
                break;
            }
        }
        if !self.cancelling.is_empty() {
            self.next_work = NOW;
        }
    }

    /// Appends the lists of mass cancels.
    pub(crate) fn encode_cancelling(&self, buffer: &mut Vec<u8>, flush: &mut impl FnMut(&mut Vec<u8>)) {
        count(&mut Writer(buffer), self.cancelling.len());
        for Cancelling { account, reason, orders } in &self.cancelling {
            let w = &mut Writer(buffer);
            account.put(w);
            reason.put(w);
            count(w, orders.len());
            for Listed { instrument, order_id, client_order_id } in orders {
                let w = &mut Writer(buffer);
                instrument.put(w);
                order_id.put(w);
                client_order_id.put(w);
                flush(buffer);
            }
        }
    }

    /// Reads what [`Self::encode_cancelling`] wrote.
    pub(crate) fn decode_cancelling(&mut self, r: &mut Reader<'_>) -> Result<(), RestoreError> {
        for _ in 0..r.u32()? {
            let (account, reason) = (AccountId::get(r)?, CancelReason::get(r)?);
            let mut orders = VecDeque::new();
            for _ in 0..r.u32()? {
                let listed = Listed { instrument: Wire::get(r)?, order_id: Wire::get(r)?, client_order_id: Wire::get(r)? };
                if listed.instrument.0 as usize >= self.markets.len() {
                    return Err(RestoreError::Contradiction("the instrument of an order to be cancelled"));
                }
                orders.push_back(listed);
            }
            if orders.is_empty() || self.cancelling.iter().any(|list| list.account == account) {
                return Err(RestoreError::Contradiction("an account's mass cancel"));
            }
            self.cancelling.push_back(Cancelling { account, reason, orders });
            self.next_work = NOW;
        }
        Ok(())
    }
}

impl<I: PriceIndex> Market<I> {
    pub(crate) fn carry_on(&mut self, ledger: &mut Ledger, now: TimeNs, mut left: u32, events: &mut Vec<Event>) -> u32 {
        if self.state.changing.is_some() {
            // An engine whose entries meet all, in tests, does all at once under any version.
            let is_bounded = self.state.meetings_max < u32::MAX;
            let most = if is_bounded { left.min(self.state.change_meetings_max) } else { left };
            let spared = self.go_on_changing(ledger, most, events);
            left = if self.state.changing.is_some() { 0 } else { left - most + spared };
        }
        if self.goes_on() {
            left = self.trigger_stops(ledger, left, events);
        }
        if left > 0 && !self.goes_on() && self.is_due(now) {
            left -= self.book.expire(now, left, &mut Settler::new(ledger, &mut self.state, events));
        }
        self.look_for_work(now);
        left
    }

    /// Whether an order, or stops that were touched, go on with the next entry.
    pub(crate) fn goes_on(&self) -> bool {
        self.is_continuous() && self.book.has_triggered()
    }

    /// Whether good-till-time orders are due.
    pub(crate) fn is_due(&self, now: TimeNs) -> bool {
        self.book.next_expiry().is_some_and(|due| due <= now)
    }

    /// Whether the next entry goes on with anything.
    pub(crate) fn has_work(&self, now: TimeNs) -> bool {
        self.state.changing.is_some() || self.goes_on() || self.is_due(now)
    }

    /// Finds out whether the book is busy.
    pub(crate) fn look_for_work(&mut self, now: TimeNs) {
        self.state.is_busy = self.has_work(now);
    }

    /// No entry before this has anything to do here.
    pub(crate) fn next_work(&self) -> TimeNs {
        if self.state.is_busy { NOW } else { self.book.next_expiry().unwrap_or(NEVER) }
    }
}
