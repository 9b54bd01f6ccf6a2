//! A stop waits until a trade touches its trigger, which its owner may have amended, and then enters before anything else happens:
//! from commands and events alone, by a list of all stops that is looked through after each entry.
//!
//! Of several that are touched, stops enter before take-profits and buys before sells, the trigger that a moving price meets first comes
//! first, and of one trigger who waited longest. No entry here has so much to do that it leaves some of them to the next.

use std::collections::BTreeMap;

use walras_types::{InstrumentId, OrderId, OrderType, PriceTicks, Side, TradingPhase};
use walras_wire::{Command, Event, InstrumentEvent, OrderEvent};

use crate::common::checks::replay::Replayed;
use crate::common::checks::{Checked, Violation};

#[derive(Clone, Copy, Debug)]
struct Stop {
    instrument: InstrumentId,
    side: Side,
    /// Whether it waits for a price in its favour.
    takes_profit: bool,
    trigger: PriceTicks,
    /// Who waits at the same trigger since earlier has a lesser one.
    turn: u64,
}

#[derive(Debug, Default)]
struct Market {
    last: Option<PriceTicks>,
    is_continuous: bool,
}

/// All stops that wait.
#[derive(Debug, Default)]
pub(super) struct Stops {
    markets: BTreeMap<InstrumentId, Market>,
    waiting: BTreeMap<OrderId, Stop>,
    next_turn: u64,
    amended: u64,
}

const CHECK: &str = "stops";

impl Stops {
    /// Triggers that were amended.
    pub(super) fn amended_count(&self) -> u64 {
        self.amended
    }

    /// `command` is that of the entry.
    pub(super) fn on_entry(&mut self, replayed: &Replayed, command: Option<&Command>) -> Checked {
        let taken = replayed.events.iter().try_for_each(|event| self.take(command, event));
        let checked = taken.and_then(|()| self.check_none_is_left());
        checked.map_err(|what| Violation::new(CHECK, format!("entry {}: {what}", replayed.entry.log_index)))
    }

    fn take(&mut self, command: Option<&Command>, event: &Event) -> Result<(), String> {
        match event {
            Event::Instrument(InstrumentEvent::PhaseChanged(e)) => {
                self.markets.entry(e.instrument).or_default().is_continuous = e.phase == TradingPhase::Continuous;
            }
            Event::Order(OrderEvent::Accepted(e)) => {
                if let Some(Command::Order(command)) = command
                    && let Some(order) = command.entered()
                    && let Some(trigger) = order.terms.order_type.trigger()
                {
                    let turn = self.take_turn();
                    let takes_profit =
                        matches!(order.terms.order_type, OrderType::TakeProfit { .. } | OrderType::TakeProfitLimit { .. });
                    let stop = Stop { instrument: e.instrument, side: e.side, takes_profit, trigger, turn };
                    self.waiting.insert(e.order_id, stop);
                }
            }
            Event::Order(OrderEvent::Amended(e)) => {
                if let Some(Command::Order(command)) = command
                    && let Some(amend) = command.amended()
                    && let Some(trigger) = amend.amendment.trigger
                {
                    let turn = self.take_turn();
                    let stop = self.waiting.get_mut(&e.order_id).ok_or_else(|| format!("{e:?} does not wait for {trigger}"))?;
                    if stop.trigger != trigger {
                        (stop.trigger, stop.turn) = (trigger, turn);
                        self.amended += 1;
                    }
                }
            }
            Event::Order(OrderEvent::Traded(e)) => self.markets.entry(e.instrument).or_default().last = Some(e.price),
            Event::Order(OrderEvent::Triggered(e)) => {
                let stop = *self.waiting.get(&e.order_id).ok_or_else(|| format!("{e:?} does not wait"))?;
                match self.next_touched(e.instrument) {
                    Some((next, _)) if next == e.order_id => {}
                    next => return Err(format!("{stop:?} enters, and it is the turn of {next:?}")),
                }
                self.waiting.remove(&e.order_id);
            }
            Event::Order(OrderEvent::Cancelled(e)) => {
                self.waiting.remove(&e.order_id);
            }
            _ => {}
        }
        Ok(())
    }

    fn take_turn(&mut self) -> u64 {
        self.next_turn += 1;
        self.next_turn
    }

    /// Which stop of an instrument enters next.
    fn next_touched(&self, instrument: InstrumentId) -> Option<(OrderId, Stop)> {
        let last = self.markets.get(&instrument)?.last?;
        let of_it = self.waiting.iter().filter(|(_, stop)| stop.instrument == instrument && stop.is_touched(last));
        let first = of_it.min_by_key(|(_, stop)| (stop.takes_profit, stop.side != Side::Buy, stop.distance(), stop.turn));
        first.map(|(order_id, stop)| (*order_id, *stop))
    }

    fn check_none_is_left(&self) -> Result<(), String> {
        let trading = self.markets.iter().filter(|(_, market)| market.is_continuous);
        for (instrument, market) in trading {
            if let Some(left) = self.next_touched(*instrument) {
                return Err(format!("{left:?} waits, and the last trade was at {:?}", market.last));
            }
        }
        Ok(())
    }
}

impl Stop {
    /// The first that a moving price meets is the least.
    fn distance(&self) -> i64 {
        if self.waits_for_a_rise() { self.trigger.get() } else { -self.trigger.get() }
    }

    fn is_touched(&self, last: PriceTicks) -> bool {
        if self.waits_for_a_rise() { last >= self.trigger } else { last <= self.trigger }
    }

    fn waits_for_a_rise(&self) -> bool {
        (self.side == Side::Buy) != self.takes_profit
    }
}

#[cfg(test)]
mod tests {
    use walras_types::{AccountId, ClientOrderId};
    use walras_wire::{Resting, StopTriggered};

    use super::*;

    fn ticks(price: i64) -> PriceTicks {
        PriceTicks::saturating(price)
    }

    /// A buy stop at 103, one at 102, and a sell stop at 98.
    fn stops() -> Stops {
        let instrument = InstrumentId(0);
        let stop = |side, trigger, turn| Stop { instrument, side, takes_profit: false, trigger: ticks(trigger), turn };
        let waiting = [(1, stop(Side::Buy, 103, 1)), (2, stop(Side::Buy, 102, 2)), (3, stop(Side::Sell, 98, 3))];
        let market = Market { last: Some(ticks(100)), is_continuous: true };
        Stops {
            markets: BTreeMap::from([(instrument, market)]),
            waiting: waiting.into_iter().map(|(id, stop)| (OrderId(id), stop)).collect(),
            ..Stops::default()
        }
    }

    fn triggered(order: u64) -> Event {
        Event::Order(OrderEvent::Triggered(StopTriggered {
            instrument: InstrumentId(0),
            account: AccountId(0),
            client_order_id: ClientOrderId(order),
            order_id: OrderId(order),
            side: Side::Buy,
            price: ticks(110),
            resting: Resting::default(),
        }))
    }

    #[test]
    fn a_stop_that_enters_too_early_too_late_or_out_of_turn_is_found() {
        let last = |stops: &mut Stops, price| stops.markets.get_mut(&InstrumentId(0)).unwrap().last = Some(ticks(price));
        let mut stops = stops();
        stops.check_none_is_left().unwrap();
        assert!(stops.take(None, &triggered(2)).is_err(), "nothing touched it");
        last(&mut stops, 103);
        assert!(stops.check_none_is_left().is_err(), "two are touched");
        assert!(stops.take(None, &triggered(1)).is_err(), "the price met the other one first");
        stops.take(None, &triggered(2)).unwrap();
        stops.take(None, &triggered(1)).unwrap();
        assert!(stops.take(None, &triggered(1)).is_err(), "twice");
        stops.check_none_is_left().unwrap();
        last(&mut stops, 97);
        assert!(stops.check_none_is_left().is_err(), "the sell stop waits");
        stops.markets.get_mut(&InstrumentId(0)).unwrap().is_continuous = false;
        stops.check_none_is_left().unwrap();
    }

    #[test]
    fn a_take_profit_waits_for_the_other_side() {
        let mut stops = stops();
        let (instrument, takes_profit) = (InstrumentId(0), true);
        for (id, side, trigger) in [(4, Side::Buy, 97), (5, Side::Sell, 101)] {
            stops.waiting.insert(OrderId(id), Stop { instrument, side, takes_profit, trigger: ticks(trigger), turn: id });
        }
        stops.check_none_is_left().unwrap();
        stops.markets.get_mut(&instrument).unwrap().last = Some(ticks(102));
        assert!(stops.take(None, &triggered(5)).is_err(), "stops come first");
        stops.take(None, &triggered(2)).unwrap();
        stops.take(None, &triggered(5)).unwrap();
        stops.check_none_is_left().unwrap();
    }
}
