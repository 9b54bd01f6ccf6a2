//! The end of a day in steps: its orders leave in the book's order, and a step goes on where the one before stopped.

use walras_types::limits::LOOKS_PER_MEETING;
use walras_types::{ClientOrderId, Side};

use crate::api::{BookEvents, Handle, OwnerId, RemovalCause};
use crate::arena::{Lifetime, Place};
use crate::book::OrderBook;
use crate::price_index::{PriceIndex, Rank};
use crate::slot::Slot;

impl<I: PriceIndex> OrderBook<I> {
    /// Cancels the day's orders, from one on or from the first, in the order of [`Self::for_each_order`]. An order that stays costs one
    /// of the `looks`, one that leaves [`LOOKS_PER_MEETING`], and what it came to is taken off. The name of the order at which it stopped:
    /// the next step goes on there. `None` when it came to the end. The book must not change in between.
    pub fn end_day_from(
        &mut self,
        from: Option<Handle>,
        looks: &mut u64,
        events: &mut impl BookEvents,
    ) -> Option<(OwnerId, ClientOrderId)> {
        let mut next = from.map_or_else(|| self.first_of(Side::Buy), |handle| Some(handle.0.slot));
        while let Some(slot) = next {
            let order = &self.arena[slot];
            if *looks == 0 {
                return Some((order.owner, order.client_order_id));
            }
            let leaves = order.lifetime == Lifetime::Day;
            next = self.after(slot);
            if let Some(next) = next {
                self.arena.prefetch(self.arena[next].next);
            }
            if leaves {
                self.remove_told(slot, RemovalCause::DayEnded, events);
            }
            *looks = looks.saturating_sub(if leaves { LOOKS_PER_MEETING.into() } else { 1 });
        }
        None
    }

    /// The name of the order that follows one in [`Self::for_each_order`].
    #[must_use]
    pub fn next_order(&self, handle: Handle) -> Option<(OwnerId, ClientOrderId)> {
        let order = &self.arena[self.after(handle.0.slot)?];
        Some((order.owner, order.client_order_id))
    }

    /// The first order of a side, or what follows it.
    fn first_of(&self, side: Side) -> Option<Slot> {
        let best = self.sides[side as usize].displayed.best();
        self.head_of(side, best).or_else(|| self.first_hidden(side, Rank::UNREACHED))
    }

    /// The order after this one in [`Self::for_each_order`].
    fn after(&self, slot: Slot) -> Option<Slot> {
        let order = &self.arena[slot];
        let side = order.side;
        match order.place {
            Place::Displayed => order.next.or_else(|| {
                let worse = self.sides[side as usize].displayed.next_worse(order.rank);
                self.head_of(side, worse).or_else(|| self.first_hidden(side, Rank::UNREACHED))
            }),
            Place::Hidden => order.next.or_else(|| self.first_hidden(side, order.rank)),
            Place::Parked => {
                let stop = self.extras.get(slot).stop.expect("a parked order has a trigger");
                self.stops.after(side, stop)
            }
            Place::Nowhere | Place::Swept => unreachable!("only open orders are gone through"),
        }
    }

    /// The first hidden order of a side that is worse than a rank, or what follows the side.
    fn first_hidden(&self, side: Side, than: Rank) -> Option<Slot> {
        let hidden = self.sides[side as usize].hidden.range(..than).next_back();
        hidden.and_then(|(_, level)| level.head).or_else(|| match side {
            Side::Buy => self.first_of(Side::Sell),
            Side::Sell => self.stops.iter().next().map(|(_, slot)| slot),
        })
    }

    fn head_of(&self, side: Side, rank: Rank) -> Option<Slot> {
        self.sides[side as usize].displayed.get(rank).and_then(|level| level.head)
    }
}
