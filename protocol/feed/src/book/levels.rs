//! The price levels of a book: what each shows.

use std::collections::BTreeMap;

use walras_types::{PriceTicks, Side, SizeLots};

/// What a price level shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The price.
    pub price: PriceTicks,
    /// What all its orders show together.
    pub shown: SizeLots,
    /// How many orders show something there.
    pub order_count: u32,
}

/// What all orders of a price show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) shown: SizeLots,
    pub(crate) order_count: u32,
}

impl Sum {
    fn at(self, price: PriceTicks) -> Level {
        Level { price, shown: self.shown, order_count: self.order_count }
    }
}

/// A sum that no book has: beyond the numbers, or below nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfBounds;

/// The levels of both sides. None of them shows nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    bids: BTreeMap<PriceTicks, Sum>,
    asks: BTreeMap<PriceTicks, Sum>,
}

impl Levels {
    /// Levels of a side, best price first.
    pub fn levels(&self, side: Side) -> impl Iterator<Item = Level> + '_ {
        let (bids, asks) = match side {
            Side::Buy => (Some(self.bids.iter().rev()), None),
            Side::Sell => (None, Some(self.asks.iter())),
        };
        bids.into_iter().flatten().chain(asks.into_iter().flatten()).map(|(&price, sum)| sum.at(price))
    }

    /// The best level of a side.
    #[must_use]
    pub fn best(&self, side: Side) -> Option<Level> {
        let best = match side {
            Side::Buy => self.bids.last_key_value(),
            Side::Sell => self.asks.first_key_value(),
        };
        best.map(|(&price, sum)| sum.at(price))
    }

    /// The level at a price, `None` where nothing is shown.
    #[must_use]
    pub fn level(&self, side: Side, price: PriceTicks) -> Option<Level> {
        self.side(side).get(&price).map(|sum| sum.at(price))
    }

    /// Levels of both sides.
    #[must_use]
    pub fn count(&self) -> usize {
        self.bids.len() + self.asks.len()
    }

    fn side(&self, side: Side) -> &BTreeMap<PriceTicks, Sum> {
        match side {
            Side::Buy => &self.bids,
            Side::Sell => &self.asks,
        }
    }

    fn side_mut(&mut self, side: Side) -> &mut BTreeMap<PriceTicks, Sum> {
        match side {
            Side::Buy => &mut self.bids,
            Side::Sell => &mut self.asks,
        }
    }

    pub(crate) fn sum(&self, side: Side, price: PriceTicks) -> Sum {
        self.side(side).get(&price).copied().unwrap_or_default()
    }

    /// One order at a price shows `after` instead of `before`. What the level showed before.
    pub(crate) fn change(&mut self, side: Side, price: PriceTicks, before: SizeLots, after: SizeLots) -> Result<Sum, OutOfBounds> {
        let levels = self.side_mut(side);
        let was = levels.get(&price).copied().unwrap_or_default();
        let lots = was.shown.get().checked_sub(before.get()).and_then(|rest| rest.checked_add(after.get())).ok_or(OutOfBounds)?;
        let others = was.order_count.checked_sub(u32::from(!before.is_zero())).ok_or(OutOfBounds)?;
        let now = Sum { shown: SizeLots::new(lots), order_count: others + u32::from(!after.is_zero()) };
        if now.order_count == 0 && lots > 0 {
            return Err(OutOfBounds);
        }
        self.set(side, price, now);
        Ok(was)
    }

    /// A level shows this.
    pub(crate) fn set(&mut self, side: Side, price: PriceTicks, now: Sum) {
        let levels = self.side_mut(side);
        if now.order_count == 0 {
            levels.remove(&price);
        } else {
            levels.insert(price, now);
        }
    }
}
