//! Trading phases: what happens when an instrument moves from one to the next.
//!
//! - Leaving an auction where it is meant to lead (opening to continuous, closing to closed) uncrosses, and says so even when nothing
//!   crossed. Leaving it for any other phase does not: the operator breaks it off, and the orders stay.
//! - Whatever the phase before, continuous trading never begins with a crossed book: orders collected in a phase that was broken off
//!   uncross first. So a halt in which nothing was collected resumes without an uncross.
//! - The uncross sets the reference price, and with it the band; the band does not bind the uncross itself.
//! - After an uncross and the change of phase, the stops that the last trade touched enter, if the phase is continuous.
//! - Closing expires day orders.

use walras_ledger::Ledger;
use walras_order_book::{PriceIndex, Uncross};
use walras_types::{RejectReason, SizeLots, TradingPhase};
use walras_wire::{Event, InstrumentEvent, PhaseCause, PhaseChanged, SetTradingPhase, Uncrossed};

use crate::engine::{Engine, NOW};
use crate::market::Market;
use crate::settle::Settler;

impl<I: PriceIndex> Engine<I> {
    #[cold]
    #[inline(never)]
    pub(crate) fn set_trading_phase(&mut self, set: &SetTradingPhase, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let index = self.enter_market(set.instrument)?;
        let market = &mut self.markets[index];
        let (from, to) = (market.state.phase, set.phase);
        if !from.may_become(to) {
            return Err(RejectReason::PhaseChangeInvalid);
        }
        let auction_ends = matches!(
            (from, to),
            (TradingPhase::OpeningAuction, TradingPhase::Continuous) | (TradingPhase::ClosingAuction, TradingPhase::Closed)
        );
        if auction_ends || to == TradingPhase::Continuous {
            market.uncross(&mut self.ledger, auction_ends, events);
        }
        market.change_phase(to, PhaseCause::Operator, events);
        match to {
            TradingPhase::Closed => market.book.end_day(&mut Settler::new(&mut self.ledger, &mut market.state, events)),
            TradingPhase::Continuous => {
                market.trigger_stops(&mut self.ledger, self.meetings_max, events);
                if market.state.is_busy {
                    self.next_work = NOW;
                }
            }
            TradingPhase::PreOpen | TradingPhase::OpeningAuction | TradingPhase::Halt | TradingPhase::ClosingAuction => {}
        }
        Ok(())
    }
}

impl<I: PriceIndex> Market<I> {
    /// Stops matching. Stops that were touched keep waiting until trading resumes.
    pub(crate) fn halt(&mut self, cause: PhaseCause, events: &mut Vec<Event>) {
        self.change_phase(TradingPhase::Halt, cause, events);
    }

    fn change_phase(&mut self, phase: TradingPhase, cause: PhaseCause, events: &mut Vec<Event>) {
        self.state.phase = phase;
        events.push(Event::Instrument(InstrumentEvent::PhaseChanged(PhaseChanged {
            instrument: self.state.spec.instrument,
            phase,
            cause,
        })));
    }

    /// What an uncross would trade now.
    pub(crate) fn auction(&self) -> Option<Uncross> {
        self.book.auction(self.state.reference_price)
    }

    /// Trades what crosses at one price, and reports the uncross if anything did or `even_if_nothing` crossed.
    fn uncross(&mut self, ledger: &mut Ledger, even_if_nothing: bool, events: &mut Vec<Event>) {
        let instrument = self.state.spec.instrument;
        match self.auction() {
            Some(uncross) => {
                self.book.uncross(&uncross, &mut Settler::new(ledger, &mut self.state, events));
                self.state.set_reference_price(uncross.price);
                let (price, volume, imbalance_lots) = (Some(uncross.price), uncross.volume, uncross.imbalance_lots);
                events.push(Event::Instrument(InstrumentEvent::Uncrossed(Uncrossed { instrument, price, volume, imbalance_lots })));
            }
            None if even_if_nothing => {
                events.push(Event::Instrument(InstrumentEvent::Uncrossed(Uncrossed {
                    instrument,
                    price: None,
                    volume: SizeLots::ZERO,
                    imbalance_lots: 0,
                })));
            }
            None => {}
        }
    }
}
