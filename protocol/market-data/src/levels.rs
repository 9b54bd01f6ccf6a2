//! Tracks which levels of a book changed since the last take, without a copy of the book.

use walras_types::{PriceTicks, Side, SizeLots};

use crate::limits::CHANGED_LEVELS_MAX;

/// What a price level shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookLevel {
    /// The price.
    pub price: PriceTicks,
    /// Lots that are shown there; zero only in a change that removes the level.
    pub shown: SizeLots,
    /// Orders that show something there.
    pub order_count: u32,
}

impl BookLevel {
    /// A level that is gone.
    #[must_use]
    pub fn gone(price: PriceTicks) -> Self {
        Self { price, shown: SizeLots::ZERO, order_count: 0 }
    }
}

/// A level's new content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelChange {
    /// Bid or ask.
    pub side: Side,
    /// What it shows now; nothing (`shown` zero) when it is gone.
    pub level: BookLevel,
}

/// What [`ChangedLevels::take`] gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookChanges {
    /// The changed levels, perhaps none.
    Levels,
    /// More than [`CHANGED_LEVELS_MAX`] levels changed, or it is not known which: send readers a snapshot instead.
    TooMany,
}

/// Places of the filter: prices near the touch change again and again, and so many ticks of both sides do not collide.
const FILTER_PLACES: usize = 1024;

/// Length of the list of changes at which duplicates that the filter let pass are first dropped.
const COMPACT_AT_MIN: usize = 4096;

/// A level as one number: bids before asks, each by ascending price. Never zero, since a price is at least 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u64);

impl Key {
    const ASK: u64 = 1 << 63;

    #[inline]
    fn of(side: Side, price: PriceTicks) -> Self {
        Self(price.get().unsigned_abs() | if side == Side::Buy { 0 } else { Self::ASK })
    }

    fn level(self) -> (Side, PriceTicks) {
        let side = if self.0 & Self::ASK == 0 { Side::Buy } else { Side::Sell };
        let ticks = i64::try_from(self.0 & !Self::ASK).ok().and_then(PriceTicks::new);
        (side, ticks.expect("a key was made of a price"))
    }

    /// Its place in the filter: neighbouring prices lie apart, and the two sides of a price.
    #[inline]
    fn place(self) -> usize {
        (self.0.rotate_left(1) as usize) % FILTER_PLACES
    }
}

/// The levels that changed since they were last taken. Noting one costs a look at one place of a table; only what that lets pass
/// (the first change of a level, and few others) is listed and sorted once, when it is taken.
#[derive(Clone, Debug, Default)]
pub struct ChangedLevels {
    /// The level last listed of those that share a place; empty before the first.
    filter: Vec<Key>,
    listed: Vec<Key>,
    /// Length of `listed` at which duplicates are next dropped.
    compact_at: usize,
    too_many: bool,
}

impl ChangedLevels {
    /// The changes are not known: the next taker must send a snapshot.
    pub(crate) fn unknown() -> Self {
        Self { too_many: true, ..Self::default() }
    }

    /// A level changed.
    #[inline]
    pub fn note(&mut self, side: Side, price: PriceTicks) {
        let key = Key::of(side, price);
        match self.filter.get_mut(key.place()) {
            Some(known) if *known == key => {}
            Some(known) => {
                *known = key;
                self.list(key);
            }
            None => {
                self.filter = vec![Key::default(); FILTER_PLACES];
                self.note(side, price);
            }
        }
    }

    #[inline]
    fn list(&mut self, key: Key) {
        if self.too_many {
            return;
        }
        self.listed.push(key);
        if self.listed.len() >= self.compact_at.max(COMPACT_AT_MIN) {
            self.compact();
        }
    }

    /// Drops duplicates: each time the list has doubled, so that what that costs, spread over the changes, stays constant.
    #[cold]
    fn compact(&mut self) {
        self.listed.sort_unstable();
        self.listed.dedup();
        self.compact_at = 2 * self.listed.len();
        if self.listed.len() > CHANGED_LEVELS_MAX {
            *self = Self::unknown();
        }
    }

    /// Whether [`ChangedLevels::take`] would give anything.
    #[must_use]
    pub fn has_any(&self) -> bool {
        self.too_many || !self.listed.is_empty()
    }

    /// Appends the levels that changed since the last take, each once with what it shows now by `now` (`None` for nothing), bids
    /// before asks by ascending price. For one taker, who hands them to all readers: since they are absolute, a reader may see a
    /// change that its snapshot already held.
    pub fn take(&mut self, mut now: impl FnMut(Side, PriceTicks) -> Option<BookLevel>, out: &mut Vec<LevelChange>) -> BookChanges {
        if self.too_many {
            *self = Self::default();
            return BookChanges::TooMany;
        }
        for key in &self.listed {
            self.filter[key.place()] = Key::default();
        }
        self.listed.sort_unstable();
        self.listed.dedup();
        out.extend(self.listed.drain(..).map(|key| {
            let (side, price) = key.level();
            LevelChange { side, level: now(side, price).unwrap_or(BookLevel::gone(price)) }
        }));
        self.compact_at = 0;
        BookChanges::Levels
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn ticks(n: i64) -> PriceTicks {
        PriceTicks::new(n).unwrap()
    }

    fn taken(changed: &mut ChangedLevels) -> Vec<(Side, i64)> {
        let mut out = Vec::new();
        assert_eq!(changed.take(|_, _| None, &mut out), BookChanges::Levels);
        assert!(!changed.has_any());
        out.iter().map(|change| (change.side, change.level.price.get())).collect()
    }

    proptest! {
        #[test]
        fn what_is_taken_is_what_was_noted_since_the_last_take(
            rounds in prop::collection::vec(
                prop::collection::vec((prop::bool::ANY, prop_oneof![1i64..20, 1i64..5_000, Just(PriceTicks::MAX.get())]), 0..200),
                1..6,
            ),
        ) {
            let mut changed = ChangedLevels::default();
            for round in rounds {
                let mut expected = BTreeSet::new();
                for (is_bid, price) in round {
                    let side = if is_bid { Side::Buy } else { Side::Sell };
                    changed.note(side, ticks(price));
                    expected.insert((side, price));
                }
                prop_assert_eq!(changed.has_any(), !expected.is_empty());
                prop_assert_eq!(taken(&mut changed), expected.into_iter().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn changes_are_absolute_and_too_many_ask_for_a_snapshot() {
        let mut changed = ChangedLevels::default();
        changed.note(Side::Sell, ticks(12));
        changed.note(Side::Buy, ticks(10));
        let now = |side, price| (side == Side::Buy).then_some(BookLevel { price, shown: SizeLots::new(6), order_count: 2 });
        let mut out = Vec::new();
        assert_eq!(changed.take(now, &mut out), BookChanges::Levels);
        let bid = BookLevel { price: ticks(10), shown: SizeLots::new(6), order_count: 2 };
        let changes = [(Side::Buy, bid), (Side::Sell, BookLevel::gone(ticks(12)))].map(|(side, level)| LevelChange { side, level });
        assert_eq!(out, changes);
        out.clear();
        for n in 0..=2 * CHANGED_LEVELS_MAX as i64 {
            changed.note(Side::Buy, ticks(1 + n));
        }
        assert!(changed.has_any());
        assert_eq!(changed.take(now, &mut out), BookChanges::TooMany);
        assert!(out.is_empty() && !changed.has_any());
        changed.note(Side::Buy, ticks(7));
        assert_eq!(taken(&mut changed), [(Side::Buy, 7)]);
    }

    #[test]
    fn the_list_stays_short_when_the_touch_flickers() {
        let mut changed = ChangedLevels::default();
        for n in 0..100_000 {
            changed.note(Side::Buy, ticks(10 + n % 7));
            changed.note(Side::Sell, ticks(10 + n % 7));
        }
        assert_eq!(changed.listed.len(), 14);
        // Prices that share a place of the filter.
        for n in 0..100_000 {
            changed.note(Side::Buy, ticks(10 + n % 3 * FILTER_PLACES as i64));
        }
        assert!(changed.listed.capacity() <= 2 * COMPACT_AT_MIN, "{}", changed.listed.capacity());
        assert_eq!(taken(&mut changed).len(), 16);
    }
}
