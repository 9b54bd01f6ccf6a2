//! A book by order, as a reader rebuilds it.

use walras_types::limits::ORDERS_PER_BOOK_MAX;
use walras_types::{OrderId, PriceTicks, Side, SizeLots};

use crate::book::BookError;
use crate::book::levels::{Levels, OutOfBounds};
use crate::id_map::IdMap;
use crate::message::{OrderAdded, OrderExecuted, OrderReduced, OrderReplaced};

/// A displayed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisplayedOrder {
    /// The venue's number of it.
    pub order_id: OrderId,
    /// Bid or ask.
    pub side: Side,
    /// Its limit.
    pub price: PriceTicks,
    /// What it shows, at least 1.
    pub shown: SizeLots,
}

#[derive(Clone, Copy, Debug)]
struct Displayed {
    side: Side,
    price: PriceTicks,
    shown: SizeLots,
    /// Orders of one price stand in the order of this number.
    place: u64,
}

/// The displayed orders of an instrument, and its levels.
#[derive(Clone, Debug, Default)]
pub struct OrderBook {
    orders: IdMap<Displayed>,
    levels: Levels,
    next_place: u64,
}

impl OrderBook {
    /// Its levels.
    #[must_use]
    pub fn levels(&self) -> &Levels {
        &self.levels
    }

    /// Displayed orders.
    #[must_use]
    pub fn order_count(&self) -> usize {
        self.orders.len()
    }

    /// One displayed order.
    #[must_use]
    pub fn order(&self, order_id: OrderId) -> Option<DisplayedOrder> {
        let Displayed { side, price, shown, .. } = *self.orders.get(&order_id)?;
        Some(DisplayedOrder { order_id, side, price, shown })
    }

    /// All displayed orders: bids before asks, best price first, first in queue first. Costs a sort of the whole book.
    #[must_use]
    pub fn orders(&self) -> Vec<DisplayedOrder> {
        let mut orders: Vec<(&OrderId, &Displayed)> = self.orders.iter().collect();
        orders.sort_unstable_by_key(|(_, order)| {
            let ticks = order.price.get();
            (order.side, if order.side == Side::Buy { -ticks } else { ticks }, order.place)
        });
        let named = |(&order_id, &Displayed { side, price, shown, .. })| DisplayedOrder { order_id, side, price, shown };
        orders.into_iter().map(named).collect()
    }

    pub(super) fn added(&mut self, added: &OrderAdded) -> Result<(), BookError> {
        let OrderAdded { order_id, side, price, shown } = *added;
        if shown.is_zero() {
            return Err(BookError::ShowsNothing(order_id));
        }
        if self.orders.contains_key(&order_id) {
            return Err(BookError::KnownOrder(order_id));
        }
        if self.orders.len() >= ORDERS_PER_BOOK_MAX {
            return Err(BookError::TooManyOrders);
        }
        self.show(order_id, (side, price), SizeLots::ZERO, shown)?;
        let place = self.take_place();
        self.orders.insert(order_id, Displayed { side, price, shown, place });
        Ok(())
    }

    pub(super) fn executed(&mut self, executed: &OrderExecuted) -> Result<(), BookError> {
        self.shrink(executed.order_id, executed.shown)
    }

    pub(super) fn reduced(&mut self, reduced: &OrderReduced) -> Result<(), BookError> {
        if reduced.shown.is_zero() {
            Err(BookError::ShowsNothing(reduced.order_id))
        } else {
            self.shrink(reduced.order_id, reduced.shown)
        }
    }

    pub(super) fn cancelled(&mut self, order_id: OrderId) -> Result<(), BookError> {
        self.shrink(order_id, SizeLots::ZERO)
    }

    pub(super) fn replaced(&mut self, replaced: &OrderReplaced) -> Result<(), BookError> {
        let OrderReplaced { order_id, price, shown } = *replaced;
        if shown.is_zero() {
            return Err(BookError::ShowsNothing(order_id));
        }
        let before = *self.orders.get(&order_id).ok_or(BookError::UnknownOrder(order_id))?;
        self.show(order_id, (before.side, before.price), before.shown, SizeLots::ZERO)?;
        self.show(order_id, (before.side, price), SizeLots::ZERO, shown)?;
        let place = self.take_place();
        self.orders.insert(order_id, Displayed { side: before.side, price, shown, place });
        Ok(())
    }

    /// A displayed order shows this, at its place.
    fn shrink(&mut self, order_id: OrderId, shown: SizeLots) -> Result<(), BookError> {
        let order = self.orders.get_mut(&order_id).ok_or(BookError::UnknownOrder(order_id))?;
        let before = *order;
        order.shown = shown;
        if shown.is_zero() {
            self.orders.remove(&order_id);
        }
        self.show(order_id, (before.side, before.price), before.shown, shown)
    }

    fn show(
        &mut self,
        order_id: OrderId,
        (side, price): (Side, PriceTicks),
        before: SizeLots,
        after: SizeLots,
    ) -> Result<(), BookError> {
        self.levels.change(side, price, before, after).map(|_| ()).map_err(|OutOfBounds| BookError::OutOfBounds(order_id))
    }

    fn take_place(&mut self) -> u64 {
        self.next_place += 1;
        self.next_place - 1
    }
}
