//! Work in steps: what one entry of the log leaves to the next ones, so that none holds its thread for long.
//!
//! An entry lets incoming orders meet about [`MEETINGS_PER_ENTRY_MAX`] others. What is left (the rest of an order, the stops that
//! were touched, good-till-time orders that are due) is in the book, or like the rest of an uncross and of a day's end beside it
//! (`changing.rs`), hence in the state, and goes on with the next entry, whatever that is: before its command, in the order in which it
//! would have happened at once. Until nothing is left the book is *busy* and
//! refuses commands with [`RejectReason::BookBusy`](walras_types::RejectReason::BookBusy), so nobody comes in between. While a book
//! is busy, the leader logs ticks ([`Engine::has_work`]). ADR 14 says why it is so.
//!
//! A mass cancel is a place in an account's open orders, from which later entries go on (`cancel_steps.rs`). It makes no book busy.
//! A dead man's switch that is due begins one (`cancel_after.rs`).
//!
//! [`MEETINGS_PER_ENTRY_MAX`]: walras_types::limits::MEETINGS_PER_ENTRY_MAX

use walras_ledger::Ledger;
use walras_order_book::PriceIndex;
use walras_types::TimeNs;
use walras_wire::Event;

use crate::engine::{Engine, NEVER, NOW};
use crate::market::Market;
use crate::settle::Settler;

impl<I: PriceIndex> Engine<I> {
    /// Whether something waits to go on with the next entry: the leader should log a tick then.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.next_work == NOW
    }

    /// Lets an entry meet so many orders, instead of [`MEETINGS_PER_ENTRY_MAX`](walras_types::limits::MEETINGS_PER_ENTRY_MAX): for
    /// tests. All who apply a log must agree on it, from its first entry on.
    pub fn set_meetings_max(&mut self, meetings_max: u32) {
        self.meetings_max = meetings_max.max(1);
        for market in &mut self.markets {
            market.state.meetings_max = self.meetings_max;
            market.bound_steps();
        }
    }

    /// Goes on with what earlier entries left, then cancels the good-till-time orders whose time has come, by instrument. As long
    /// as a book is busy, each entry begins with another instrument, so that none keeps the others waiting. Mass cancels go on after
    /// that, with those of the dead man's switches that are due.
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
        self.fire_switches();
        while left > 0
            && let Some(mut cancelling) = self.cancelling.pop_front()
        {
            left = self.go_on_cancelling(&mut cancelling, left, events);
            if !cancelling.is_done() {
                // It waits for the budget of another entry, or for a book: others may go on meanwhile.
                self.cancelling.push_back(cancelling);
                break;
            }
        }
        if !self.cancelling.is_empty() {
            self.next_work = NOW;
        }
        self.look_for_switches();
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
            left -= match self.state.links.is_empty() {
                true => self.book.expire(now, left, &mut Settler::new(ledger, &mut self.state, events)),
                false => self.expire_linked(ledger, now, left, events),
            };
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
