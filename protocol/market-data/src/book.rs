//! One instrument's public book as a reader rebuilds it from events: orders by id, price levels by side.

use std::collections::BTreeMap;

use walras_types::{AccountId, OrderId, PriceTicks, Side, SizeLots};
use walras_wire::{Priority, Resting};

use crate::id_map::IdMap;
use crate::levels::BookLevel;

/// An order as the public sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicOrder {
    /// The venue's name for it.
    pub order_id: OrderId,
    /// Bid or ask.
    pub side: Side,
    /// Its limit.
    pub price: PriceTicks,
    /// Lots it shows, at least 1.
    pub shown: SizeLots,
}

/// A standing order. Hidden ones are tracked too, since they trade and may not be mistaken for unknown ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) account: AccountId,
    pub(crate) side: Side,
    pub(crate) price: PriceTicks,
    pub(crate) open: SizeLots,
    pub(crate) shown: SizeLots,
    /// Orders of one price stand in the order of this number.
    pub(crate) place: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Level {
    shown: SizeLots,
    order_count: u32,
}

/// How an event contradicts the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contradiction {
    /// It names an order that does not stand here.
    UnknownOrder,
    /// It states a remainder that what stood before does not leave.
    WrongRemainder {
        /// What would be left.
        expected: SizeLots,
    },
}

/// One instrument's public book, for a reader with the events and without the engine.
#[derive(Clone, Debug, Default)]
pub struct PublicBook {
    orders: IdMap<Standing>,
    bids: BTreeMap<PriceTicks, Level>,
    asks: BTreeMap<PriceTicks, Level>,
    next_place: u64,
}

impl PublicBook {
    /// Levels of a side, best price first.
    pub fn levels(&self, side: Side) -> impl Iterator<Item = BookLevel> + '_ {
        let (bids, asks) = match side {
            Side::Buy => (Some(self.bids.iter().rev()), None),
            Side::Sell => (None, Some(self.asks.iter())),
        };
        bids.into_iter().flatten().chain(asks.into_iter().flatten()).map(|(&price, level)| level.at(price))
    }

    /// The best level of a side.
    #[must_use]
    pub fn best(&self, side: Side) -> Option<BookLevel> {
        let best = match side {
            Side::Buy => self.bids.last_key_value(),
            Side::Sell => self.asks.first_key_value(),
        };
        best.map(|(&price, level)| level.at(price))
    }

    /// The level at a price, `None` when nothing is shown there.
    #[must_use]
    pub fn level(&self, side: Side, price: PriceTicks) -> Option<BookLevel> {
        self.side(side).get(&price).map(|level| level.at(price))
    }

    /// Levels of a side.
    #[must_use]
    pub fn level_count(&self, side: Side) -> usize {
        self.side(side).len()
    }

    /// An order, if it shows anything.
    #[must_use]
    pub fn order(&self, order_id: OrderId) -> Option<PublicOrder> {
        self.orders.get(order_id).and_then(|standing| standing.public(order_id))
    }

    /// Orders that stand, shown or not.
    #[must_use]
    pub fn standing_count(&self) -> usize {
        self.orders.len()
    }

    /// All orders that show something: bids before asks, best price first, first in queue first. Costs a sort of the whole book.
    #[must_use]
    pub fn orders(&self) -> Vec<PublicOrder> {
        let mut found: Vec<(u64, PublicOrder)> =
            self.orders.sorted().into_iter().filter_map(|(id, s)| Some((s.place, s.public(id)?))).collect();
        found.sort_unstable_by_key(|&(place, order)| {
            let ticks = order.price.get();
            (order.side, if order.side == Side::Buy { -ticks } else { ticks }, place)
        });
        found.into_iter().map(|(_, order)| order).collect()
    }

    /// The owner of a standing order, which an `OrderReplenished` does not name.
    #[must_use]
    pub fn owner(&self, order_id: OrderId) -> Option<AccountId> {
        self.orders.get(order_id).map(|standing| standing.account)
    }

    pub(crate) fn standing(&self) -> Vec<(OrderId, &Standing)> {
        self.orders.sorted()
    }

    pub(crate) fn next_place(&self) -> u64 {
        self.next_place
    }

    /// Puts back an order of a snapshot. The caller sees to it that each id comes once.
    pub(crate) fn restore(&mut self, order_id: OrderId, standing: Standing) {
        self.next_place = self.next_place.max(standing.place + 1);
        self.show(standing.side, standing.price, SizeLots::ZERO, standing.shown);
        self.orders.insert(order_id, standing);
    }

    /// All orders of a snapshot are back.
    pub(crate) fn restored(&mut self, next_place: u64) {
        self.next_place = next_place;
    }

    /// An order entered, or changed its terms: it stands as `resting` says.
    pub(crate) fn put(
        &mut self,
        order_id: OrderId,
        account: AccountId,
        side: Side,
        price: PriceTicks,
        priority: Priority,
        resting: Resting,
    ) {
        let before = self.remove(order_id);
        if resting.open.is_zero() {
            return;
        }
        let place = match (priority, before) {
            (Priority::Kept, Some(standing)) => standing.place,
            (Priority::Kept, None) | (Priority::Lost, _) => self.take_place(),
        };
        self.show(side, price, SizeLots::ZERO, resting.shown);
        self.orders.insert(order_id, Standing { account, side, price, open: resting.open, shown: resting.shown, place });
    }

    /// A standing order traded, and `open` is left of it.
    pub(crate) fn trade(&mut self, order_id: OrderId, size: SizeLots, open: SizeLots) -> Result<(), Contradiction> {
        let Some(standing) = self.orders.get(order_id).copied() else {
            return Err(Contradiction::UnknownOrder);
        };
        let shown = standing.shown.saturating_sub(size).min(open);
        self.change(order_id, standing, Resting { open, shown });
        // Computed without overflow whatever the event says: a wrong one is reported, not a panic.
        match standing.open.get().checked_sub(size.get()) {
            Some(expected) if expected == open.get() => Ok(()),
            expected => Err(Contradiction::WrongRemainder { expected: SizeLots::new(expected.unwrap_or(0)) }),
        }
    }

    /// A standing order shrank to `resting`.
    pub(crate) fn reduce(&mut self, order_id: OrderId, resting: Resting) -> Result<(), Contradiction> {
        let Some(standing) = self.orders.get(order_id).copied() else {
            return Err(Contradiction::UnknownOrder);
        };
        self.change(order_id, standing, resting);
        Ok(())
    }

    /// An iceberg shows its next slice, at the back of its level.
    pub(crate) fn replenish(&mut self, order_id: OrderId, shown: SizeLots) -> Result<(), Contradiction> {
        let Some(standing) = self.orders.get(order_id).copied() else {
            return Err(Contradiction::UnknownOrder);
        };
        self.change(order_id, standing, Resting { open: standing.open, shown });
        let place = self.take_place();
        if let Some(standing) = self.orders.get_mut(order_id) {
            standing.place = place;
        }
        Ok(())
    }

    /// An order is gone, if it stood at all.
    pub(crate) fn remove(&mut self, order_id: OrderId) -> Option<Standing> {
        let standing = self.orders.remove(order_id)?;
        self.show(standing.side, standing.price, standing.shown, SizeLots::ZERO);
        Some(standing)
    }

    fn take_place(&mut self) -> u64 {
        self.next_place += 1;
        self.next_place - 1
    }

    fn side(&self, side: Side) -> &BTreeMap<PriceTicks, Level> {
        match side {
            Side::Buy => &self.bids,
            Side::Sell => &self.asks,
        }
    }

    fn change(&mut self, order_id: OrderId, before: Standing, after: Resting) {
        if after.open.is_zero() {
            self.remove(order_id);
            return;
        }
        self.show(before.side, before.price, before.shown, after.shown);
        let standing = self.orders.get_mut(order_id).expect("the caller found the order");
        standing.open = after.open;
        standing.shown = after.shown;
    }

    /// One order at a level shows `after` instead of `before`.
    fn show(&mut self, side: Side, price: PriceTicks, before: SizeLots, after: SizeLots) {
        if before == after {
            return;
        }
        let levels = match side {
            Side::Buy => &mut self.bids,
            Side::Sell => &mut self.asks,
        };
        let level = levels.entry(price).or_default();
        level.shown = level.shown - before + after;
        level.order_count = level.order_count - u32::from(!before.is_zero()) + u32::from(!after.is_zero());
        if level.order_count == 0 {
            assert!(level.shown.is_zero(), "a level of no orders shows {} lots", level.shown);
            levels.remove(&price);
        }
    }

    /// Panics unless levels are the sums of their orders. For tests and simulation.
    pub fn check_invariants(&self) {
        let mut sums: BTreeMap<(Side, PriceTicks), Level> = BTreeMap::new();
        for (id, standing) in self.orders.sorted() {
            assert!(!standing.open.is_zero() && standing.shown <= standing.open, "order {id}: {standing:?}");
            assert!(standing.place < self.next_place, "order {id}: a place that was not given yet");
            if !standing.shown.is_zero() {
                let sum = sums.entry((standing.side, standing.price)).or_default();
                sum.shown += standing.shown;
                sum.order_count += 1;
            }
        }
        let held: BTreeMap<(Side, PriceTicks), Level> = Side::BOTH
            .into_iter()
            .flat_map(|side| self.side(side).iter().map(move |(&price, &level)| ((side, price), level)))
            .collect();
        assert_eq!(sums, held, "levels are not the sums of their orders");
    }
}

impl Level {
    fn at(self, price: PriceTicks) -> BookLevel {
        BookLevel { price, shown: self.shown, order_count: self.order_count }
    }
}

impl Standing {
    fn public(&self, order_id: OrderId) -> Option<PublicOrder> {
        (!self.shown.is_zero()).then_some(PublicOrder { order_id, side: self.side, price: self.price, shown: self.shown })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lots(n: u64) -> SizeLots {
        SizeLots::new(n)
    }

    fn ticks(n: i64) -> PriceTicks {
        PriceTicks::new(n).unwrap()
    }

    fn put(book: &mut PublicBook, id: u64, side: Side, price: i64, open: u64, shown: u64) {
        let resting = Resting { open: lots(open), shown: lots(shown) };
        book.put(OrderId(id), AccountId(0), side, ticks(price), Priority::Lost, resting);
    }

    fn level(price: i64, shown: u64, order_count: u32) -> BookLevel {
        BookLevel { price: ticks(price), shown: lots(shown), order_count }
    }

    #[test]
    fn an_iceberg_shows_a_slice_then_nothing_then_its_next_slice_at_the_back() {
        let mut book = PublicBook::default();
        put(&mut book, 1, Side::Sell, 10, 25, 10);
        put(&mut book, 2, Side::Sell, 10, 5, 5);
        assert_eq!(book.best(Side::Sell), Some(level(10, 15, 2)));
        book.trade(OrderId(1), lots(10), lots(15)).unwrap();
        assert_eq!(book.best(Side::Sell), Some(level(10, 5, 1)));
        assert_eq!(book.order(OrderId(1)), None);
        book.replenish(OrderId(1), lots(10)).unwrap();
        assert_eq!(book.best(Side::Sell), Some(level(10, 15, 2)));
        assert_eq!(book.orders().iter().map(|o| o.order_id.0).collect::<Vec<_>>(), [2, 1]);
        // An uncross may reach past the slice.
        book.trade(OrderId(1), lots(12), lots(3)).unwrap();
        assert_eq!(book.best(Side::Sell), Some(level(10, 5, 1)));
        book.check_invariants();
    }

    #[test]
    fn hidden_orders_never_show_and_still_trade() {
        let mut book = PublicBook::default();
        put(&mut book, 1, Side::Buy, 10, 25, 0);
        assert_eq!((book.best(Side::Buy), book.order(OrderId(1)), book.standing_count()), (None, None, 1));
        book.trade(OrderId(1), lots(25), lots(0)).unwrap();
        assert_eq!(book.standing_count(), 0);
    }

    #[test]
    fn contradictions_are_said_not_hidden() {
        let mut book = PublicBook::default();
        put(&mut book, 1, Side::Buy, 10, 5, 5);
        assert_eq!(book.trade(OrderId(2), lots(1), lots(0)), Err(Contradiction::UnknownOrder));
        assert_eq!(book.trade(OrderId(1), lots(2), lots(4)), Err(Contradiction::WrongRemainder { expected: lots(3) }));
        assert_eq!(book.trade(OrderId(1), lots(1), lots(2)), Err(Contradiction::WrongRemainder { expected: lots(3) }));
        book.check_invariants();
        assert_eq!(book.trade(OrderId(1), lots(9), lots(1)), Err(Contradiction::WrongRemainder { expected: lots(0) }));
        book.check_invariants();
    }
}
