//! Fetching what later commands will touch while earlier ones are applied.
//!
//! A command that names an order waits for memory several times in a row: the name's place, the order, its neighbours and level. Even
//! where all of it lies in the second-level cache that is half of what a command costs, because a wrongly foreseen branch keeps the
//! processor from starting early. Commands come in batches, so a driver that looks ahead can have each of these fetched by the time it
//! is needed, one step of the chain at a time, and the name's hash is worked out only once. All of it is hints: a wrong guess costs a
//! fetch and changes nothing.
//!
//! Whether a command names an order or enters one is a coin toss, so no step branches on it: a command that does the one fetches,
//! harmlessly, for the other too.

use walras_types::{ClientOrderId, Side};

use crate::api::OwnerId;
use crate::book::OrderBook;
use crate::price_index::{PriceIndex, Rank};
use crate::slot::Slot;

/// Orders that a book has held at once from which it is too large for the second-level cache, so that levels and neighbours are worth fetching too.
const LARGE_FROM: usize = 8_192;

/// The hash of an order's name in one book. It stays what it is as long as the book lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NameHash(pub(crate) u32);

/// Where an order seemed to lie, which may have moved since or never been there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen(Option<Slot>);

impl<I: PriceIndex> OrderBook<I> {
    /// The hash of a name, which this book will be asked for soon. First step: fetches the name's place.
    #[inline]
    #[must_use]
    pub fn expect_name(&self, owner: OwnerId, client_order_id: ClientOrderId) -> NameHash {
        NameHash(self.ids.prefetch(owner, client_order_id))
    }

    /// Second step, a command later: fetches the order of that name, and says where it seems to lie.
    #[inline]
    pub fn expect_order(&self, name: NameHash) -> Seen {
        let slot = self.ids.guess(name.0);
        self.arena.prefetch(slot);
        Seen(slot)
    }

    /// Whether the book is so large that the steps below pay; in a small one they cost more than they save.
    #[inline]
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.arena.place_count() >= LARGE_FROM
    }

    /// With the first step, some ten commands ahead: fetches the level where an order will stand; any number of ticks will do if
    /// none is known.
    #[inline]
    pub fn expect_level(&self, side: Side, ticks: i64) {
        self.sides[side as usize].displayed.prefetch(Rank::guessed(side, ticks));
    }

    /// Third step, some three ahead: fetches the order's neighbours and level.
    #[inline]
    pub fn expect_neighbours(&self, order: Seen) {
        let (side, rank, prev, next) = self.arena.guess_links(order.0);
        self.arena.prefetch(prev);
        self.arena.prefetch(next);
        self.sides[side as usize].displayed.prefetch(rank);
    }
}
