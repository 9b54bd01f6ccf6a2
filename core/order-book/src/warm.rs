//! Fetching what later commands will touch while earlier ones are applied.
//!
//! A command that names one of a million orders waits for memory several times in a row: the name's place, the order, its neighbours
//! and level. Commands come in batches, so a driver that looks ahead can have each of these fetched by the time it is needed, one step
//! of the chain at a time. All of it is hints: a wrong guess costs a fetch and changes nothing. Below [`WARM_FROM`] orders a book fits
//! the processor's own cache and the hints cost more than they save, so they do nothing.

use walras_types::{ClientOrderId, PriceTicks, Side};

use crate::api::OwnerId;
use crate::book::OrderBook;
use crate::price_index::{PriceIndex, Rank};

/// Orders from which fetching ahead pays.
const WARM_FROM: usize = 8_192;

/// How far a command's memory has been fetched: made by the first step, advanced by the next.
#[derive(Clone, Copy, Debug, Default)]
pub enum Warmth {
    /// Nothing to fetch.
    #[default]
    None,
    /// The place of a name was asked for.
    Name(u32),
    /// The level of a price was asked for.
    Level(Side, PriceTicks),
}

impl<I: PriceIndex> OrderBook<I> {
    /// Whether looking ahead pays in this book.
    #[inline]
    #[must_use]
    pub fn wants_warming(&self) -> bool {
        self.arena.live_count() >= WARM_FROM
    }

    /// First step for a command that names an order; some twelve commands ahead.
    #[inline]
    #[must_use]
    pub fn warm_name(&self, owner: OwnerId, client_order_id: ClientOrderId) -> Warmth {
        Warmth::Name(self.ids.prefetch(owner, client_order_id))
    }

    /// First step for a command that enters an order.
    #[inline]
    #[must_use]
    pub fn warm_entry(&self, owner: OwnerId, client_order_id: ClientOrderId, side: Side, price: PriceTicks) -> Warmth {
        self.ids.prefetch(owner, client_order_id);
        self.sides[side as usize].displayed.prefetch(Rank::of(side, price));
        Warmth::Level(side, price)
    }

    /// Second step, once the first has had time to arrive; some eight commands ahead.
    #[inline]
    pub fn warm_order(&self, warmth: Warmth) {
        match warmth {
            Warmth::Name(hash) => self.arena.prefetch(self.ids.guess(hash)),
            Warmth::Level(side, price) => {
                let level = self.sides[side as usize].displayed.get(Rank::of(side, price));
                self.arena.prefetch(level.and_then(|level| level.tail));
            }
            Warmth::None => {}
        }
    }

    /// Third step; some four commands ahead.
    #[inline]
    pub fn warm_neighbours(&self, warmth: Warmth) {
        if let Warmth::Name(hash) = warmth
            && let Some(slot) = self.ids.guess(hash)
        {
            let order = &self.arena[slot];
            self.arena.prefetch(order.prev);
            self.arena.prefetch(order.next);
            self.sides[order.side as usize].displayed.prefetch(order.rank);
        }
    }
}
