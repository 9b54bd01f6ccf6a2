//! Who stands before whom: the queues of every price level, rebuilt from events, for those who ask for their place.
//!
//! The engine answers no such question: a venue's participants may not ask it. In a study of one's own there is nobody to keep it from.

use std::collections::{BTreeMap, HashMap};

use walras_types::{InstrumentId, PriceTicks, Side};
use walras_wire::{Event, OrderEvent, Priority};

/// An instrument, a side and a price.
type Level = (InstrumentId, Side, PriceTicks);

#[derive(Default)]
pub(crate) struct Queues {
    /// Shown lots by place in the queue.
    levels: HashMap<Level, BTreeMap<u64, u64>, Fast>,
    /// Where an order stands.
    orders: HashMap<u64, (Level, u64), Fast>,
    next_place: u64,
    /// The order whose shown lots traded away last: an iceberg shows its next slice right after.
    emptied: Option<(u64, Level)>,
}

/// Ids of orders are the venue's own: nobody chooses them to collide.
type Fast = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

impl Queues {
    fn stand(&mut self, order_id: u64, level: Level, lots: u64) {
        if lots > 0 {
            self.next_place += 1;
            self.levels.entry(level).or_default().insert(self.next_place, lots);
            self.orders.insert(order_id, (level, self.next_place));
        }
    }

    fn leave(&mut self, order_id: u64) -> Option<Level> {
        let (level, place) = self.orders.remove(&order_id)?;
        if let Some(queue) = self.levels.get_mut(&level) {
            queue.remove(&place);
            if queue.is_empty() {
                self.levels.remove(&level);
            }
        }
        Some(level)
    }

    fn resize(&mut self, order_id: u64, change: impl FnOnce(u64) -> u64) {
        let Some(&(level, place)) = self.orders.get(&order_id) else { return };
        let Some(lots) = self.levels.get_mut(&level).and_then(|queue| queue.get_mut(&place)) else { return };
        *lots = change(*lots);
        if *lots == 0 {
            self.leave(order_id);
            self.emptied = Some((order_id, level));
        }
    }

    pub(crate) fn see(&mut self, event: &Event) {
        let Event::Order(event) = event else { return };
        match event {
            OrderEvent::Accepted(e) => {
                if let Some(price) = e.price {
                    self.stand(e.order_id.0, (e.instrument, e.side, price), e.resting.shown.get());
                }
            }
            OrderEvent::Amended(e) => match (e.priority, e.price) {
                (Priority::Kept, _) => self.resize(e.order_id.0, |_| e.resting.shown.get()),
                (Priority::Lost, Some(price)) => {
                    self.leave(e.order_id.0);
                    self.stand(e.order_id.0, (e.instrument, e.side, price), e.resting.shown.get());
                }
                (Priority::Lost, None) => {}
            },
            OrderEvent::Traded(e) => {
                self.resize(e.maker.order_id.0, |shown| shown.saturating_sub(e.size.get()).min(e.maker.open.get()));
                // In an uncross the taker stood too; an order that came in stands with what is left of it already.
                if e.taker.open.is_zero() {
                    self.leave(e.taker.order_id.0);
                } else {
                    self.resize(e.taker.order_id.0, |shown| shown.min(e.taker.open.get()));
                }
            }
            OrderEvent::Cancelled(e) => {
                self.leave(e.order_id.0);
            }
            OrderEvent::Reduced(e) => self.resize(e.order_id.0, |_| e.resting.shown.get()),
            OrderEvent::Replenished(e) => {
                // Its slice traded away, and with it its place.
                if let Some(level) =
                    self.leave(e.order_id.0).or_else(|| self.emptied.take().filter(|of| of.0 == e.order_id.0).map(|of| of.1))
                {
                    self.stand(e.order_id.0, level, e.shown.get());
                }
            }
            OrderEvent::Triggered(e) => self.stand(e.order_id.0, (e.instrument, e.side, e.price), e.resting.shown.get()),
        }
    }

    /// Shown lots and orders before an order; `None` where it shows nothing.
    pub(crate) fn ahead(&self, order_id: u64) -> Option<(u64, u64)> {
        let (level, place) = self.orders.get(&order_id)?;
        let before = self.levels.get(level)?.range(..place);
        Some(before.fold((0, 0), |(lots, orders), (_, more)| (lots + more, orders + 1)))
    }
}
