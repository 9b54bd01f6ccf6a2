//! The displayed orders of all books, kept from what entries say of orders, and what the public learns of each of them: what the view by
//! order of the market-data feed says (`protocol/feed`), without its numbers and with the orders' sides and prices.
//!
//! It runs on the archive's thread. What is hidden is not in it: a hidden order trades, and the trade alone is public.

use std::collections::{BTreeMap, HashMap};

use walras_types::{InstrumentId, LogIndex, OrderId, PriceTicks, Side, SizeLots, TimeNs};
use walras_wire::{OrderEvent, Priority, Resting, TradeParty, Traded};

use crate::ArchiveError;
use crate::journal::Journal;
use crate::orders::read;
use crate::record::{OrderNote, OrderRecord, OrderSaid, OrderStep, Shown};

/// A displayed order, or an iceberg whose next slice is about to come.
#[derive(Clone, Copy, Debug)]
struct Standing {
    instrument: InstrumentId,
    side: Side,
    price: PriceTicks,
    shown: SizeLots,
    /// Orders of one price stand in the order of this number.
    place: u64,
}

impl Standing {
    fn now(&self, order_id: OrderId) -> Shown {
        Shown { order_id, side: self.side, price: self.price, shown: self.shown }
    }
}

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByOrder {
    standing: HashMap<OrderId, Standing>,
    next_place: u64,
    log_index: LogIndex,
    time: TimeNs,
    /// The order that the entry let in last.
    incoming: Option<OrderId>,
    /// By instrument, an order that came in and is announced behind its own trades.
    entering: BTreeMap<InstrumentId, (OrderId, OrderStep)>,
    /// Icebergs whose slice was used up in this entry.
    used_up: Vec<OrderId>,
}

impl ByOrder {
    /// These orders stand, of each price the first in the queue first.
    pub(crate) fn of_standing(orders: &[(InstrumentId, Shown)]) -> Self {
        let mut books = Self::default();
        orders.iter().for_each(|(instrument, shown)| books.stand(*instrument, shown));
        books
    }

    /// As a journal leaves it; `None` where it does not know.
    pub(crate) fn of_journal(journal: &Journal) -> Result<Option<Self>, ArchiveError> {
        let mut known: Option<Self> = None;
        read(journal, |_, record| {
            if record.step == OrderStep::Cleared {
                known = Some(Self::default());
            } else if record.step == OrderStep::Lost {
                known = None;
            } else if let Some(books) = &mut known {
                books.replay(&record);
            }
            Ok(true)
        })?;
        Ok(known)
    }

    /// What a record of a journal did to it.
    fn replay(&mut self, record: &OrderRecord) {
        match &record.step {
            OrderStep::Cleared | OrderStep::Lost | OrderStep::Traded { .. } => {}
            OrderStep::Standing(shown) | OrderStep::Added(shown) => self.stand(record.instrument, shown),
            OrderStep::Replaced { order, .. } => self.stand(record.instrument, order),
            OrderStep::Executed { order, .. } | OrderStep::Resized { order, .. } | OrderStep::Cancelled { order, .. } => {
                if order.shown.is_zero() {
                    self.standing.remove(&order.order_id);
                } else if let Some(standing) = self.standing.get_mut(&order.order_id) {
                    standing.shown = order.shown;
                }
            }
        }
    }

    /// An order stands behind all others of its price.
    fn stand(&mut self, instrument: InstrumentId, order: &Shown) {
        let place = self.take_place();
        let Shown { order_id, side, price, shown } = *order;
        self.standing.insert(order_id, Standing { instrument, side, price, shown, place });
    }

    fn take_place(&mut self) -> u64 {
        self.next_place += 1;
        self.next_place - 1
    }

    /// All displayed orders: by instrument, bids before asks, best price first, first in the queue first.
    pub(crate) fn all(&self) -> Vec<(InstrumentId, Shown)> {
        let mut all: Vec<(&OrderId, &Standing)> = self.standing.iter().filter(|(_, order)| !order.shown.is_zero()).collect();
        all.sort_unstable_by_key(|(_, order)| {
            let ticks = order.price.get();
            (order.instrument, order.side, if order.side == Side::Buy { -ticks } else { ticks }, order.place)
        });
        all.into_iter().map(|(order_id, order)| (order.instrument, order.now(*order_id))).collect()
    }

    /// Takes a note, and appends what it says to the public.
    pub(crate) fn take(&mut self, note: &OrderNote, out: &mut Vec<OrderRecord>) {
        if note.log_index != self.log_index {
            self.end_entry(out);
            (self.log_index, self.time, self.incoming) = (note.log_index, note.time, None);
        }
        match &note.said {
            // The one who has this knows more.
            OrderSaid::Standing(_) => {}
            OrderSaid::Phase(instrument) => self.announce(*instrument, out),
            OrderSaid::Event(event) => self.on_event(event, out),
        }
    }

    /// The entry has ended: what came in by it is announced.
    pub(crate) fn end_entry(&mut self, out: &mut Vec<OrderRecord>) {
        while let Some((instrument, (_, step))) = self.entering.pop_first() {
            self.say(instrument, step, out);
        }
        for order_id in self.used_up.drain(..) {
            if self.standing.get(&order_id).is_some_and(|order| order.shown.is_zero()) {
                self.standing.remove(&order_id);
            }
        }
    }

    fn on_event(&mut self, event: &OrderEvent, out: &mut Vec<OrderRecord>) {
        self.incoming = event.comes_in().or(self.incoming);
        match event {
            // A stop that waits for its trigger has no price yet, and stands in no queue.
            OrderEvent::Accepted(e) => {
                if let Some(price) = e.price {
                    self.enter(e.instrument, (e.order_id, e.side, price), Priority::Lost, e.resting, out);
                }
            }
            OrderEvent::Amended(e) => {
                if let Some(price) = e.price {
                    self.enter(e.instrument, (e.order_id, e.side, price), e.priority, e.resting, out);
                }
            }
            OrderEvent::Triggered(e) => {
                self.enter(e.instrument, (e.order_id, e.side, e.price), Priority::Lost, e.resting, out);
            }
            OrderEvent::Traded(e) => self.trade(e, out),
            OrderEvent::Cancelled(e) => self.show(e.instrument, e.order_id, SizeLots::ZERO, out),
            // What the incoming order lost is already in what stands of it.
            OrderEvent::Reduced(e) if self.incoming == Some(e.order_id) => {}
            OrderEvent::Reduced(e) => {
                let shown = if e.resting.open.is_zero() { SizeLots::ZERO } else { e.resting.shown };
                self.show(e.instrument, e.order_id, shown, out);
            }
            OrderEvent::Replenished(e) => self.replenish(e.instrument, e.order_id, e.shown, out),
        }
    }

    /// An order came in, or changed its terms: it stands as `resting` says after the trades that follow.
    fn enter(
        &mut self,
        instrument: InstrumentId,
        (order_id, side, price): (OrderId, Side, PriceTicks),
        priority: Priority,
        resting: Resting,
        out: &mut Vec<OrderRecord>,
    ) {
        self.announce(instrument, out);
        let before = self.standing.remove(&order_id);
        let from = before.map_or(SizeLots::ZERO, |standing| standing.shown);
        let shown = if resting.open.is_zero() { SizeLots::ZERO } else { resting.shown };
        let same_price = before.is_some_and(|standing| standing.price == price);
        let kept = before.filter(|_| same_price && priority == Priority::Kept);
        let order = Shown { order_id, side, price, shown };
        match kept {
            _ if shown.is_zero() => {}
            Some(standing) => {
                self.standing.insert(order_id, Standing { shown, ..standing });
            }
            None => self.stand(instrument, &order),
        }
        match (from.is_zero(), shown.is_zero()) {
            (true, true) => {}
            (false, true) => {
                // It leaves the price at which it stood.
                let price = before.map_or(price, |standing| standing.price);
                self.say(instrument, OrderStep::Cancelled { order: Shown { price, ..order }, from }, out);
            }
            (false, false) if kept.is_some() => {
                if from != shown {
                    self.say(instrument, OrderStep::Resized { order, from }, out);
                }
            }
            (false, false) => {
                self.entering.insert(instrument, (order_id, OrderStep::Replaced { order, from, same_price }));
            }
            (true, false) => {
                self.entering.insert(instrument, (order_id, OrderStep::Added(order)));
            }
        }
    }

    /// Two orders traded. In an uncross nobody came in, and both stand.
    fn trade(&mut self, trade: &Traded, out: &mut Vec<OrderRecord>) {
        let Traded { instrument, trade_id, price, size, .. } = *trade;
        let taker_side = (self.incoming == Some(trade.taker.order_id)).then_some(trade.taker_side);
        let parties = [Some(&trade.maker), taker_side.is_none().then_some(&trade.taker)];
        for party in parties.into_iter().flatten() {
            self.announce_order(instrument, party.order_id, out);
        }
        self.say(instrument, OrderStep::Traded { trade_id, price, size, taker_side }, out);
        for party in parties.into_iter().flatten() {
            self.fill(instrument, party, size, out);
        }
    }

    /// A standing order traded. One that is not displayed was hidden.
    fn fill(&mut self, instrument: InstrumentId, party: &TradeParty, size: SizeLots, out: &mut Vec<OrderRecord>) {
        let order_id = party.order_id;
        let Some(standing) = self.standing.get_mut(&order_id) else { return };
        let before = standing.shown;
        standing.shown = before.saturating_sub(size).min(party.open);
        let (order, by) = (standing.now(order_id), before.saturating_sub(standing.shown));
        if order.shown.is_zero() {
            if party.open.is_zero() {
                self.standing.remove(&order_id);
            } else {
                self.used_up.push(order_id);
            }
        }
        if !by.is_zero() {
            self.say(instrument, OrderStep::Executed { order, by }, out);
        }
    }

    /// A standing order shows something else without a trade, at its place; nothing where it is gone.
    fn show(&mut self, instrument: InstrumentId, order_id: OrderId, shown: SizeLots, out: &mut Vec<OrderRecord>) {
        self.announce_order(instrument, order_id, out);
        let Some(standing) = self.standing.get_mut(&order_id) else { return };
        let from = standing.shown;
        standing.shown = shown;
        let order = standing.now(order_id);
        if shown.is_zero() {
            self.standing.remove(&order_id);
        }
        let step = match (from.is_zero(), shown.is_zero()) {
            _ if from == shown => return,
            (_, true) => OrderStep::Cancelled { order, from },
            (false, false) => OrderStep::Resized { order, from },
            (true, false) => OrderStep::Added(order),
        };
        self.say(instrument, step, out);
    }

    /// An iceberg shows its next slice, at the back of its price.
    fn replenish(&mut self, instrument: InstrumentId, order_id: OrderId, shown: SizeLots, out: &mut Vec<OrderRecord>) {
        self.announce_order(instrument, order_id, out);
        let place = self.take_place();
        let Some(standing) = self.standing.get_mut(&order_id) else { return };
        let from = standing.shown;
        (standing.place, standing.shown) = (place, shown);
        let order = standing.now(order_id);
        let step = if from.is_zero() { OrderStep::Added(order) } else { OrderStep::Replaced { order, from, same_price: true } };
        self.say(instrument, step, out);
    }

    /// Announces the order that came in to an instrument.
    fn announce(&mut self, instrument: InstrumentId, out: &mut Vec<OrderRecord>) {
        if let Some((_, step)) = self.entering.remove(&instrument) {
            self.say(instrument, step, out);
        }
    }

    /// Announces it if it is this one.
    fn announce_order(&mut self, instrument: InstrumentId, order_id: OrderId, out: &mut Vec<OrderRecord>) {
        if self.entering.get(&instrument).is_some_and(|(entering, _)| *entering == order_id) {
            self.announce(instrument, out);
        }
    }

    fn say(&self, instrument: InstrumentId, step: OrderStep, out: &mut Vec<OrderRecord>) {
        out.push(OrderRecord { log_index: self.log_index, time: self.time, instrument, step });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(order_id: u64, side: Side, ticks: i64, lots: u64) -> Shown {
        let price = PriceTicks::new(ticks).unwrap();
        Shown { order_id: OrderId(order_id), side, price, shown: SizeLots::new(lots) }
    }

    #[test]
    fn orders_are_listed_from_the_best_price_on_and_in_their_queues() {
        let (first, second) = (InstrumentId(0), InstrumentId(1));
        let listed = [
            (first, shown(4, Side::Buy, 101, 1)),
            (first, shown(9, Side::Buy, 100, 1)),
            (first, shown(2, Side::Buy, 100, 1)),
            (first, shown(7, Side::Sell, 102, 1)),
            (first, shown(1, Side::Sell, 103, 1)),
            (second, shown(3, Side::Buy, 7, 1)),
        ];
        let mixed: Vec<_> = [5, 1, 3, 0, 2, 4].map(|at| listed[at]).to_vec();
        assert_eq!(ByOrder::of_standing(&mixed).all(), listed);
    }
}
