//! Orders trade in the order of the queue: the best price first, what is displayed before what is hidden, then who came first. From
//! the events alone, by a naive book that looks through all of its orders for each trade.
//!
//! Where an instrument's rule shares a level out, only its prices have an order; in an auction all have, whatever the rule.

use std::collections::{BTreeMap, BTreeSet};

use walras_types::{Allocation, InstrumentId, OrderId, PriceTicks, Side, SizeLots};
use walras_wire::{Event, InstrumentEvent, OrderEvent, Priority as Place, Resting, Traded};

use crate::common::checks::replay::Replayed;
use crate::common::checks::{Checked, Violation};

#[derive(Clone, Copy, Debug)]
struct Standing {
    side: Side,
    price: PriceTicks,
    open: SizeLots,
    shown: SizeLots,
    is_hidden: bool,
    place: u64,
}

#[derive(Debug)]
struct Book {
    is_first_come: bool,
    orders: BTreeMap<OrderId, Standing>,
    next_place: u64,
}

/// All books.
#[derive(Debug, Default)]
pub(super) struct Priority {
    books: BTreeMap<InstrumentId, Book>,
}

const CHECK: &str = "priority";

impl Priority {
    pub(super) fn on_entry(&mut self, replayed: &Replayed) -> Checked {
        self.take(&replayed.events).map_err(|what| Violation::new(CHECK, format!("entry {}: {what}", replayed.entry.log_index)))
    }

    fn take(&mut self, events: &[Event]) -> Result<(), String> {
        // Those that came in with this entry: any other taker trades in an auction.
        let mut incoming = BTreeSet::new();
        for event in events {
            match event {
                Event::Instrument(InstrumentEvent::Created(spec)) => {
                    let is_first_come = spec.allocation == Allocation::PriceTime;
                    self.books.insert(spec.instrument, Book { is_first_come, orders: BTreeMap::new(), next_place: 0 });
                }
                Event::Order(OrderEvent::Accepted(e)) => {
                    incoming.insert(e.order_id);
                    self.book(e.instrument)?.put(e.order_id, e.side, e.price, Place::Lost, e.resting);
                }
                Event::Order(OrderEvent::Amended(e)) => {
                    incoming.insert(e.order_id);
                    self.book(e.instrument)?.put(e.order_id, e.side, e.price, e.priority, e.resting);
                }
                Event::Order(OrderEvent::Triggered(e)) => {
                    incoming.insert(e.order_id);
                    self.book(e.instrument)?.put(e.order_id, e.side, Some(e.price), Place::Lost, e.resting);
                }
                Event::Order(OrderEvent::Traded(e)) => self.book(e.instrument)?.trade(e, !incoming.contains(&e.taker.order_id))?,
                Event::Order(OrderEvent::Cancelled(e)) => {
                    self.book(e.instrument)?.orders.remove(&e.order_id);
                }
                Event::Order(OrderEvent::Reduced(e)) => {
                    if let Some(order) = self.book(e.instrument)?.orders.get_mut(&e.order_id) {
                        (order.open, order.shown) = (e.resting.open, e.resting.shown);
                    }
                }
                Event::Order(OrderEvent::Replenished(e)) => self.book(e.instrument)?.replenish(e.order_id, e.shown)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn book(&mut self, instrument: InstrumentId) -> Result<&mut Book, String> {
        self.books.get_mut(&instrument).ok_or_else(|| format!("there is no instrument {instrument}"))
    }
}

impl Book {
    fn put(&mut self, order_id: OrderId, side: Side, price: Option<PriceTicks>, place: Place, resting: Resting) {
        let before = self.orders.remove(&order_id);
        // A stop that waits stands in no queue.
        let Some(price) = price.filter(|_| !resting.open.is_zero()) else { return };
        let place = match before {
            Some(before) if place == Place::Kept => before.place,
            _ => self.take_place(),
        };
        let Resting { open, shown } = resting;
        self.orders.insert(order_id, Standing { side, price, open, shown, is_hidden: shown.is_zero(), place });
    }

    fn take_place(&mut self) -> u64 {
        self.next_place += 1;
        self.next_place
    }

    fn trade(&mut self, e: &Traded, is_auction: bool) -> Result<(), String> {
        if is_auction {
            self.check_turn(e, e.maker.order_id, Side::Buy, true)?;
            self.check_turn(e, e.taker.order_id, Side::Sell, true)?;
            self.fill(e.taker.order_id, e.size, e.taker.open);
        } else {
            let maker = self.check_turn(e, e.maker.order_id, e.taker_side.opposite(), self.is_first_come)?;
            if maker.price != e.price {
                return Err(format!("{maker:?} has {e:?}"));
            }
        }
        self.fill(e.maker.order_id, e.size, e.maker.open);
        Ok(())
    }

    /// Whether it is this order's turn; `is_first_come` where orders that are displayed at a price have an order.
    fn check_turn(&self, e: &Traded, order_id: OrderId, side: Side, is_first_come: bool) -> Result<Standing, String> {
        let order = *self.orders.get(&order_id).ok_or_else(|| format!("order {order_id} does not stand, and has {e:?}"))?;
        let queue = |order: &Standing| {
            let ticks = order.price.get();
            let place = if is_first_come || order.is_hidden { order.place } else { 0 };
            (if side == Side::Buy { -ticks } else { ticks }, order.is_hidden, place)
        };
        let first = self.orders.iter().filter(|(_, order)| order.side == side).min_by_key(|(_, order)| queue(order));
        match first {
            Some((_, first)) if order.side == side && queue(first) == queue(&order) => Ok(order),
            first => Err(format!("it is the turn of {first:?}, and order {order_id}, {order:?}, has {e:?}")),
        }
    }

    fn fill(&mut self, order_id: OrderId, size: SizeLots, open: SizeLots) {
        let Some(order) = self.orders.get_mut(&order_id) else { return };
        (order.open, order.shown) = (open, order.shown.saturating_sub(size));
        if open.is_zero() {
            self.orders.remove(&order_id);
        }
    }

    fn replenish(&mut self, order_id: OrderId, shown: SizeLots) -> Result<(), String> {
        let place = self.take_place();
        let order = self.orders.get_mut(&order_id).ok_or_else(|| format!("order {order_id} shows {shown} and does not stand"))?;
        if !order.shown.is_zero() {
            return Err(format!("{order:?} shows {shown} more before what it showed has traded"));
        }
        (order.shown, order.place) = (shown, place);
        Ok(())
    }
}
