//! An uncross is told of once, with the price and the volume of its trades, however many entries it takes. Until then nothing else
//! happens in its instrument, and its phase stays. While a day ends nothing happens in its instrument but that its orders leave. From
//! the events alone.

use std::collections::BTreeMap;

use walras_types::{InstrumentId, OrderId, PriceTicks, SizeLots, TradingPhase};
use walras_wire::{CancelReason, Event, InstrumentEvent, OrderEvent, Priority, Traded};

use crate::common::checks::replay::Replayed;
use crate::common::checks::{Checked, Violation};

/// An uncross that was not told of yet.
#[derive(Debug)]
struct Uncross {
    price: PriceTicks,
    volume: SizeLots,
    entries: u64,
}

#[derive(Debug, Default)]
struct Market {
    phase: Option<TradingPhase>,
    uncross: Option<Uncross>,
    /// The order that came in last.
    incoming: Option<OrderId>,
    /// In which entry the day ended, until anything else happens.
    closed_in: Option<u64>,
    has_stepped: bool,
}

/// All instruments.
#[derive(Debug, Default)]
pub(super) struct Auctions {
    markets: BTreeMap<InstrumentId, Market>,
    entry: u64,
    stepped: [u64; 2],
}

const CHECK: &str = "auctions";

impl Auctions {
    /// Uncrosses, and ends of a day, that took several entries.
    pub(super) fn stepped_counts(&self) -> [u64; 2] {
        self.stepped
    }

    pub(super) fn on_entry(&mut self, replayed: &Replayed) -> Checked {
        self.take(&replayed.events).map_err(|what| Violation::new(CHECK, format!("entry {}: {what}", replayed.entry.log_index)))
    }

    fn take(&mut self, events: &[Event]) -> Result<(), String> {
        self.entry += 1;
        self.markets.values_mut().for_each(|market| {
            market.incoming = None;
            market.uncross.iter_mut().for_each(|uncross| uncross.entries += 1);
        });
        events.iter().try_for_each(|event| match event {
            Event::Order(OrderEvent::Accepted(e)) => self.comes_in(e.instrument, e.order_id),
            // An exit grows with its entry, which an uncross may fill.
            Event::Order(OrderEvent::Amended(e)) if e.priority == Priority::Kept && e.price.is_none() => Ok(()),
            Event::Order(OrderEvent::Amended(e)) => self.comes_in(e.instrument, e.order_id),
            Event::Order(OrderEvent::Triggered(e)) => self.comes_in(e.instrument, e.order_id),
            Event::Order(OrderEvent::Traded(e)) => self.trades(e),
            Event::Order(OrderEvent::Cancelled(e)) => self.leaves(e.instrument, e.reason),
            Event::Instrument(InstrumentEvent::Uncrossed(e)) => self.uncrossed(e.instrument, e.price, e.volume),
            Event::Instrument(InstrumentEvent::PhaseChanged(e)) => {
                let entry = self.entry;
                let market = self.quiet(e.instrument, "its phase changes")?;
                market.phase = Some(e.phase);
                (market.closed_in, market.has_stepped) = ((e.phase == TradingPhase::Closed).then_some(entry), false);
                Ok(())
            }
            _ => Ok(()),
        })
    }

    fn market(&mut self, instrument: InstrumentId) -> &mut Market {
        self.markets.entry(instrument).or_default()
    }

    /// A market in which no uncross goes on.
    fn quiet(&mut self, instrument: InstrumentId, what: &str) -> Result<&mut Market, String> {
        let market = self.market(instrument);
        match &market.uncross {
            Some(uncross) => Err(format!("{what} while there is {uncross:?} in instrument {instrument}")),
            None => Ok(market),
        }
    }

    fn comes_in(&mut self, instrument: InstrumentId, order: OrderId) -> Result<(), String> {
        let market = self.quiet(instrument, "an order comes in")?;
        (market.incoming, market.closed_in) = (Some(order), None);
        Ok(())
    }

    fn trades(&mut self, e: &Traded) -> Result<(), String> {
        let market = self.market(e.instrument);
        if market.incoming == Some(e.taker.order_id) {
            return Ok(());
        }
        if market.phase == Some(TradingPhase::Continuous) {
            return Err(format!("an auction trades while the instrument is continuous: {e:?}"));
        }
        let uncross = market.uncross.get_or_insert(Uncross { price: e.price, volume: SizeLots::ZERO, entries: 1 });
        uncross.volume = SizeLots::new(uncross.volume.get() + e.size.get());
        if uncross.price == e.price { Ok(()) } else { Err(format!("{uncross:?} has {e:?}")) }
    }

    fn leaves(&mut self, instrument: InstrumentId, reason: CancelReason) -> Result<(), String> {
        // It was linked with one that has traded or left.
        if reason == CancelReason::Linked {
            return Ok(());
        }
        let entry = self.entry;
        let market = self.quiet(instrument, "an order leaves")?;
        match (market.closed_in, reason) {
            (Some(closed), CancelReason::DayEnded) if closed < entry && !market.has_stepped => {
                market.has_stepped = true;
                self.stepped[1] += 1;
            }
            (Some(_), CancelReason::DayEnded) => {}
            (None, CancelReason::DayEnded) => return Err("a day's order leaves when no day ends".to_owned()),
            _ => market.closed_in = None,
        }
        Ok(())
    }

    fn uncrossed(&mut self, instrument: InstrumentId, price: Option<PriceTicks>, volume: SizeLots) -> Result<(), String> {
        let traded = self.market(instrument).uncross.take();
        let told = price.map(|price| (price, volume));
        if traded.as_ref().map(|uncross| (uncross.price, uncross.volume)) != told {
            return Err(format!("{told:?} is told of {traded:?} in instrument {instrument}"));
        }
        self.stepped[0] += u64::from(traded.is_some_and(|uncross| uncross.entries > 1));
        Ok(())
    }
}
