//! What a book reports, recorded.

use walras_order_book::{BookEvents, Fill, OpenOrder, Party, RemovalCause};
use walras_types::{OrderId, PriceTicks, SizeLots};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Traded(Fill),
    Uncrossed { price: PriceTicks, size: SizeLots, buy: Party, sell: Party },
    Removed { order: OpenOrder, cause: RemovalCause },
    Reduced { order: OpenOrder, by: SizeLots },
    TakerReduced { by: SizeLots, open: SizeLots },
    Replenished { order_id: OrderId, shown: SizeLots },
}

/// Events in the order in which they were reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tape(pub(crate) Vec<Event>);

impl BookEvents for Tape {
    fn traded(&mut self, fill: &Fill) {
        self.0.push(Event::Traded(*fill));
    }
    fn uncrossed(&mut self, price: PriceTicks, size: SizeLots, buy: &Party, sell: &Party) {
        self.0.push(Event::Uncrossed { price, size, buy: *buy, sell: *sell });
    }
    fn removed(&mut self, order: &OpenOrder, cause: RemovalCause) {
        self.0.push(Event::Removed { order: *order, cause });
    }
    fn reduced(&mut self, order: &OpenOrder, by: SizeLots) {
        self.0.push(Event::Reduced { order: *order, by });
    }
    fn taker_reduced(&mut self, by: SizeLots, open: SizeLots) {
        self.0.push(Event::TakerReduced { by, open });
    }
    fn replenished(&mut self, order_id: OrderId, shown: SizeLots) {
        self.0.push(Event::Replenished { order_id, shown });
    }
}
