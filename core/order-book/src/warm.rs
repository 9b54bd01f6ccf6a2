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

/// What a later command will touch, as far as it is known. Made by [`OrderBook::warm`] for the next steps.
///
/// Whether a command names an order or enters one is a coin toss, so no step branches on it: a command that does the one fetches,
/// harmlessly, for the other too.
#[derive(Clone, Copy, Debug)]
pub struct Warmth {
    tag: u32,
    side: Side,
    rank: Rank,
}

impl Default for Warmth {
    fn default() -> Self {
        Self { tag: 0, side: Side::Buy, rank: Rank::of(Side::Buy, PriceTicks::MIN) }
    }
}

impl<I: PriceIndex> OrderBook<I> {
    /// Whether looking ahead pays in this book.
    #[inline]
    #[must_use]
    pub fn wants_warming(&self) -> bool {
        self.arena.live_count() >= WARM_FROM
    }

    /// First step, some twelve commands ahead. `price` is where the order will stand; [`PriceTicks::MIN`] when the command does not say.
    #[inline]
    #[must_use]
    pub fn warm(&self, owner: OwnerId, client_order_id: ClientOrderId, side: Side, price: PriceTicks) -> Warmth {
        let rank = Rank::of(side, price);
        self.sides[side as usize].displayed.prefetch(rank);
        Warmth { tag: self.ids.prefetch(owner, client_order_id), side, rank }
    }

    /// Second step, once the first has had time to arrive; some eight commands ahead.
    #[inline]
    pub fn warm_order(&self, warmth: Warmth) {
        self.arena.prefetch(self.ids.guess(warmth.tag));
        self.arena.prefetch(self.sides[warmth.side as usize].displayed.guess_level(warmth.rank).and_then(|level| level.tail));
    }

    /// Third step; some four commands ahead.
    #[inline]
    pub fn warm_neighbours(&self, warmth: Warmth) {
        let (side, rank, prev, next) = self.arena.guess_links(self.ids.guess(warmth.tag));
        self.arena.prefetch(prev);
        self.arena.prefetch(next);
        self.sides[side as usize].displayed.prefetch(rank);
    }
}
