//! Trading phases: what happens when an instrument moves from one to the next.
//!
//! - Leaving an auction where it is meant to lead (opening to continuous, closing to closed) uncrosses, and says so even when nothing
//!   crossed. Leaving it for any other phase does not: the operator breaks it off, and the orders stay.
//! - Whatever the phase before, continuous trading never begins with a crossed book: orders collected in a phase that was broken off
//!   uncross first. So a halt in which nothing was collected resumes without an uncross.
//! - The uncross sets the reference price, and with it the band; the band does not bind the uncross itself.
//! - After an uncross and the change of phase, the stops that the last trade touched enter, if the phase is continuous.
//! - Closing expires day orders.
//! - From version 13 on, an uncross and the end of a day go on with later entries where they are long (`changing.rs`). The phase is the
//!   one before until the uncross has traded all.

use walras_ledger::Ledger;
use walras_order_book::{PriceIndex, Uncross};
use walras_types::{RejectReason, SizeLots, TradingPhase};
use walras_wire::{Event, InstrumentEvent, PhaseCause, PhaseChanged, SetTradingPhase, Uncrossed};

use crate::changing::{ends_auction, uncrosses};
use crate::engine::{Engine, NOW};
use crate::market::Market;
use crate::settle::Settler;

impl<I: PriceIndex> Engine<I> {
    #[cold]
    #[inline(never)]
    pub(crate) fn set_trading_phase(&mut self, set: &SetTradingPhase, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let index = self.enter_market(set.instrument)?;
        let market = &mut self.markets[index];
        let to = set.phase;
        if !market.state.phase.may_become(to) {
            return Err(RejectReason::PhaseChangeInvalid);
        }
        if market.state.has_phase_steps {
            market.begin_change(to, events);
            market.carry_on(&mut self.ledger, self.time, self.meetings_max, events);
        } else {
            market.change_at_once(&mut self.ledger, self.meetings_max, to, events);
        }
        if market.state.is_busy {
            self.next_work = NOW;
        }
        Ok(())
    }
}

impl<I: PriceIndex> Market<I> {
    /// Stops matching. Stops that were touched keep waiting until trading resumes.
    pub(crate) fn halt(&mut self, cause: PhaseCause, events: &mut Vec<Event>) {
        self.change_phase(TradingPhase::Halt, cause, events);
    }

    pub(crate) fn change_phase(&mut self, phase: TradingPhase, cause: PhaseCause, events: &mut Vec<Event>) {
        self.state.phase = phase;
        events.push(Event::Instrument(InstrumentEvent::PhaseChanged(PhaseChanged {
            instrument: self.state.spec.instrument,
            phase,
            cause,
        })));
    }

    /// Changes the phase as versions before 13 did: an uncross and the end of a day are whole.
    fn change_at_once(&mut self, ledger: &mut Ledger, meetings_max: u32, to: TradingPhase, events: &mut Vec<Event>) {
        if uncrosses(self.state.phase, to) {
            match self.book.auction(self.state.reference_price) {
                Some(uncross) => {
                    self.book.uncross(&uncross, &mut Settler::new(ledger, &mut self.state, events));
                    self.uncrossed(&uncross, events);
                }
                None => self.tell_of_no_uncross(to, events),
            }
        }
        self.change_phase(to, PhaseCause::Operator, events);
        match to {
            TradingPhase::Closed => self.book.end_day(&mut Settler::new(ledger, &mut self.state, events)),
            TradingPhase::Continuous => {
                self.trigger_stops(ledger, meetings_max, events);
            }
            TradingPhase::PreOpen | TradingPhase::OpeningAuction | TradingPhase::Halt | TradingPhase::ClosingAuction => {}
        }
    }

    /// What was collected has traded: says so, and centres the band around the price.
    pub(crate) fn uncrossed(&mut self, uncross: &Uncross, events: &mut Vec<Event>) {
        self.state.set_reference_price(uncross.price);
        let (price, volume, imbalance_lots) = (Some(uncross.price), uncross.volume, uncross.imbalance_lots);
        self.tell_of_uncross(Uncrossed { instrument: self.state.spec.instrument, price, volume, imbalance_lots }, events);
    }

    /// Nothing crossed: an auction that was to lead to the next phase says so.
    pub(crate) fn tell_of_no_uncross(&self, to: TradingPhase, events: &mut Vec<Event>) {
        if ends_auction(self.state.phase, to) {
            let instrument = self.state.spec.instrument;
            self.tell_of_uncross(Uncrossed { instrument, price: None, volume: SizeLots::ZERO, imbalance_lots: 0 }, events);
        }
    }

    fn tell_of_uncross(&self, uncrossed: Uncrossed, events: &mut Vec<Event>) {
        events.push(Event::Instrument(InstrumentEvent::Uncrossed(uncrossed)));
    }
}
