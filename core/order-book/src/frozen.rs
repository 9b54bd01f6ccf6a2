//! A copy of a book's open orders, for use while the book changes.
//!
//! Iterating over a large book means a cache miss per order. Copying all places sequentially is several times faster, and another
//! thread can iterate over the copy.

use std::collections::BTreeMap;

use crate::api::OpenOrder;
use crate::arena::{Order, Plain};
use crate::extras::Extras;
use crate::slot::Slot;

/// The open orders of a book at one moment: see [`crate::OrderBook::freeze`].
#[derive(Debug)]
pub struct FrozenOrders(Kept);

#[derive(Debug)]
enum Kept {
    /// Copied one by one, because most places were free.
    Listed(Vec<OpenOrder>),
    Copied(Copied),
}

#[derive(Debug)]
struct Copied {
    places: Vec<Order>,
    /// First orders of the queues.
    queues: Vec<Slot>,
    stops: Vec<Slot>,
    extras: BTreeMap<Slot, Extras>,
    count: usize,
}

impl FrozenOrders {
    pub(crate) fn listed(orders: Vec<OpenOrder>) -> Self {
        Self(Kept::Listed(orders))
    }

    pub(crate) fn copied(
        places: Vec<Order>,
        queues: Vec<Slot>,
        stops: Vec<Slot>,
        extras: BTreeMap<Slot, Extras>,
        count: usize,
    ) -> Self {
        Self(Kept::Copied(Copied { places, queues, stops, extras, count }))
    }

    /// Number of orders.
    #[must_use]
    pub fn count(&self) -> usize {
        match &self.0 {
            Kept::Listed(orders) => orders.len(),
            Kept::Copied(copied) => copied.count,
        }
    }

    /// All orders, as [`crate::OrderBook::for_each_order`] would have listed them.
    pub fn for_each_order(&self, mut see: impl FnMut(&OpenOrder)) {
        match &self.0 {
            Kept::Listed(orders) => orders.iter().for_each(see),
            Kept::Copied(copied) => {
                for &head in &copied.queues {
                    let mut next = Some(head);
                    while let Some(slot) = next {
                        see(&copied.order_at(slot));
                        next = copied.places[slot.index()].next;
                    }
                }
                copied.stops.iter().for_each(|&slot| see(&copied.order_at(slot)));
            }
        }
    }
}

impl Copied {
    fn order_at(&self, slot: Slot) -> OpenOrder {
        let order = &self.places[slot.index()];
        order.view(match order.plain {
            Plain::Yes => Extras::of_plain(order.lifetime),
            Plain::No => self.extras[&slot],
        })
    }
}
