//! One copy of each market that somebody reads, and what its readers have not got of it.

use std::collections::{BTreeMap, VecDeque};

use walras_feed::message::BatchCleared;
use walras_market_data::{BookLevel, PublicTrade};
use walras_types::{PriceTicks, Side, TradeId};

use crate::limits::TRADES_KEPT;
use crate::orders::Orders;
use crate::piece::{Auction, BatchPiece, BatchPrice, BatchTerms, BookPiece, Day};

/// What happened to a line of a message: MDUpdateAction(279).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    New,
    Change,
    Delete,
}

/// The action by which one value follows another; `None` where both are the same.
pub(crate) fn action_of<T: PartialEq>(before: Option<&T>, now: Option<&T>) -> Option<Action> {
    match (before, now) {
        (None, Some(_)) => Some(Action::New),
        (Some(_), None) => Some(Action::Delete),
        (Some(before), Some(now)) if before != now => Some(Action::Change),
        (Some(_), Some(_)) | (None, None) => None,
    }
}

/// A level that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LevelEntry {
    pub(crate) action: Action,
    pub(crate) side: Side,
    /// One that is gone shows nothing.
    pub(crate) level: BookLevel,
    /// From the best one on, which is 1; of one that is gone, where it was.
    pub(crate) position: usize,
}

/// The best levels of a book, as its readers of this depth have them.
#[derive(Debug, Default)]
struct View {
    readers: usize,
    /// Bids, asks, best first.
    sides: [Vec<BookLevel>; 2],
    /// By the last update.
    changes: Vec<LevelEntry>,
}

type Levels = BTreeMap<PriceTicks, BookLevel>;

/// A book.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// The last update.
    pub(crate) update: u64,
    pub(crate) auction: Option<Auction>,
    pub(crate) auction_before: Option<Auction>,
    bids: Levels,
    asks: Levels,
    /// Whether there was a snapshot.
    is_known: bool,
    /// By depth.
    views: BTreeMap<usize, View>,
}

/// What a piece was to readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Nothing.
    Nothing,
    /// They need all of it.
    Whole,
    /// They need what changed.
    Changes,
}

impl Book {
    pub(crate) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Takes a piece. An update of what is not known says nothing.
    pub(crate) fn take(&mut self, piece: &BookPiece<'_>) -> News {
        if !piece.is_snapshot && !self.is_known {
            return News::Nothing;
        }
        if piece.is_snapshot {
            (self.bids, self.asks) = (Levels::new(), Levels::new());
        }
        for (side, levels) in [(&mut self.bids, piece.bids), (&mut self.asks, piece.asks)] {
            for level in levels {
                if level.shown.is_zero() {
                    side.remove(&level.price);
                } else {
                    side.insert(level.price, *level);
                }
            }
        }
        self.update = piece.log_index;
        self.auction_before = std::mem::replace(&mut self.auction, piece.auction);
        let was_known = std::mem::replace(&mut self.is_known, true);
        let Self { bids, asks, views, .. } = self;
        for (depth, view) in views {
            view.take([top(bids, Side::Buy, *depth), top(asks, Side::Sell, *depth)]);
        }
        if piece.is_snapshot && !was_known { News::Whole } else { News::Changes }
    }

    /// What is known is of another state: a snapshot follows.
    pub(crate) fn forget(&mut self) {
        self.is_known = false;
    }

    /// One more reads the book in this depth.
    pub(crate) fn begin(&mut self, depth: usize) {
        let Self { bids, asks, views, .. } = self;
        let view = views.entry(depth).or_insert_with(|| View {
            readers: 0,
            sides: [top(bids, Side::Buy, depth), top(asks, Side::Sell, depth)],
            changes: Vec::new(),
        });
        view.readers += 1;
    }

    /// One less does.
    pub(crate) fn end(&mut self, depth: usize) {
        if let Some(view) = self.views.get_mut(&depth) {
            view.readers -= 1;
            if view.readers == 0 {
                self.views.remove(&depth);
            }
        }
    }

    /// The best levels of a side, best first.
    pub(crate) fn levels(&self, depth: usize, side: Side) -> &[BookLevel] {
        self.views.get(&depth).map_or(&[], |view| &view.sides[usize::from(side == Side::Sell)])
    }

    /// What the last update changed of them: a reader that has the ones before has the new ones then.
    pub(crate) fn changes(&self, depth: usize) -> &[LevelEntry] {
        self.views.get(&depth).map_or(&[], |view| &view.changes)
    }
}

/// The best levels of a side, best first.
fn top(levels: &Levels, side: Side, depth: usize) -> Vec<BookLevel> {
    match side {
        Side::Buy => levels.values().rev().take(depth).copied().collect(),
        Side::Sell => levels.values().take(depth).copied().collect(),
    }
}

impl View {
    fn take(&mut self, sides: [Vec<BookLevel>; 2]) {
        self.changes.clear();
        for (side, before, now) in [(Side::Buy, &self.sides[0], &sides[0]), (Side::Sell, &self.sides[1], &sides[1])] {
            differences(side, before, now, &mut self.changes);
        }
        // What is gone first: a client whose book is bounded has room for what is new.
        self.changes.sort_by_key(|entry| entry.action != Action::Delete);
        self.sides = sides;
    }
}

/// What makes one list of levels of another one, both best first.
fn differences(side: Side, before: &[BookLevel], now: &[BookLevel], out: &mut Vec<LevelEntry>) {
    let is_better = |one: PriceTicks, other: PriceTicks| match side {
        Side::Buy => one > other,
        Side::Sell => one < other,
    };
    let (mut old, mut new) = (0, 0);
    loop {
        let entry = match (before.get(old), now.get(new)) {
            (None, None) => return,
            (Some(was), Some(is)) if was.price == is.price => {
                (old, new) = (old + 1, new + 1);
                (was != is).then_some((Action::Change, *is, new))
            }
            (Some(was), is) if is.is_none_or(|is| is_better(was.price, is.price)) => {
                old += 1;
                Some((Action::Delete, BookLevel::gone(was.price), old))
            }
            (_, Some(is)) => {
                new += 1;
                Some((Action::New, *is, new))
            }
            (Some(_), None) => unreachable!("a level that is there and has none after it is gone"),
        };
        out.extend(entry.map(|(action, level, position)| LevelEntry { action, side, level, position }));
    }
}

/// The last trades.
#[derive(Debug, Default)]
pub(crate) struct Trades {
    /// Oldest first.
    kept: VecDeque<PublicTrade>,
    is_known: bool,
    /// The last trade before the last piece.
    pub(crate) before: Option<TradeId>,
}

impl Trades {
    pub(crate) fn is_known(&self) -> bool {
        self.is_known
    }

    pub(crate) fn take(&mut self, is_snapshot: bool, trades: &[PublicTrade]) -> News {
        if !is_snapshot && !self.is_known {
            return News::Nothing;
        }
        self.before = self.last();
        let after = self.last();
        let is_new = |trade: &&PublicTrade| after.is_none_or(|after| trade.trade_id > after);
        if is_snapshot {
            self.kept.extend(trades.iter().rev().filter(is_new));
        } else {
            self.kept.extend(trades.iter().filter(is_new));
        }
        while self.kept.len() > TRADES_KEPT {
            self.kept.pop_front();
        }
        let was_known = std::mem::replace(&mut self.is_known, true);
        match (was_known, self.last() == self.before) {
            (false, _) => News::Whole,
            (true, true) => News::Nothing,
            (true, false) => News::Changes,
        }
    }

    pub(crate) fn forget(&mut self) {
        self.is_known = false;
    }

    pub(crate) fn last(&self) -> Option<TradeId> {
        self.kept.back().map(|trade| trade.trade_id)
    }

    /// Those after one, oldest first; the last one alone where none is given.
    pub(crate) fn after(&self, after: Option<TradeId>) -> impl Iterator<Item = &PublicTrade> {
        let from = match after {
            Some(after) => self.kept.partition_point(|trade| trade.trade_id <= after),
            None => self.kept.len().saturating_sub(1),
        };
        self.kept.range(from..)
    }
}

/// Phase and figures of a day, and those before the last piece.
#[derive(Debug, Default)]
pub(crate) struct Days {
    pub(crate) now: Option<Day>,
    pub(crate) before: Option<Day>,
    is_known: bool,
}

impl Days {
    pub(crate) fn is_known(&self) -> bool {
        self.is_known
    }

    pub(crate) fn take(&mut self, day: Day) -> News {
        self.before = self.now.replace(day);
        let was_known = std::mem::replace(&mut self.is_known, true);
        match (was_known, self.before == self.now) {
            (false, _) => News::Whole,
            (true, true) => News::Nothing,
            (true, false) => News::Changes,
        }
    }

    /// Whether the last piece changed the phase or its cause.
    pub(crate) fn has_new_phase(&self) -> bool {
        let of = |day: &Day| (day.phase, day.phase_cause);
        self.before.as_ref().map(of) != self.now.as_ref().map(of)
    }

    pub(crate) fn forget(&mut self) {
        self.is_known = false;
    }
}

/// The last block of a batch market.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// `None` before the first one.
    pub(crate) cleared: Option<BatchCleared>,
    pub(crate) time_ns: u64,
    pub(crate) prices: Vec<BatchPrice>,
    is_known: bool,
    /// How the market trades, and how it did before the last piece that said so.
    pub(crate) terms: Option<BatchTerms>,
    pub(crate) terms_before: Option<BatchTerms>,
}

impl Block {
    pub(crate) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Its number, from 1; 0 before the first one.
    pub(crate) fn number(&self) -> u64 {
        number_of(self.cleared)
    }

    pub(crate) fn take(&mut self, piece: &BatchPiece<'_>) -> News {
        let was_known = std::mem::replace(&mut self.is_known, true);
        if was_known && number_of(piece.cleared) <= self.number() {
            return News::Nothing;
        }
        self.cleared = piece.cleared;
        self.time_ns = piece.time.0;
        self.prices = piece.prices.to_vec();
        if was_known { News::Changes } else { News::Whole }
    }

    pub(crate) fn take_terms(&mut self, terms: BatchTerms) -> News {
        self.terms_before = self.terms.replace(terms);
        match self.terms_before {
            None => News::Whole,
            Some(before) if before == terms => News::Nothing,
            Some(_) => News::Changes,
        }
    }

    pub(crate) fn forget(&mut self) {
        (self.is_known, self.terms) = (false, None);
    }
}

fn number_of(cleared: Option<BatchCleared>) -> u64 {
    cleared.map_or(0, |cleared| cleared.block)
}

/// A market, as far as somebody reads it.
#[derive(Debug, Default)]
pub(crate) struct Market {
    pub(crate) book: Book,
    pub(crate) orders: Orders,
    pub(crate) trades: Trades,
    pub(crate) day: Days,
    pub(crate) block: Block,
}

#[cfg(test)]
mod tests {
    use walras_random::Random;
    use walras_types::SizeLots;

    use super::*;

    /// Applies entries as a client does that knows levels by their place.
    fn apply(sides: &mut [Vec<BookLevel>; 2], changes: &[LevelEntry]) {
        let by_price = |entry: &LevelEntry, levels: &[BookLevel]| levels.iter().position(|level| level.price == entry.level.price);
        for entry in changes {
            let levels = &mut sides[usize::from(entry.side == Side::Sell)];
            let at = by_price(entry, levels);
            match entry.action {
                Action::Delete => {
                    levels.remove(at.unwrap());
                }
                Action::Change => levels[at.unwrap()] = entry.level,
                Action::New => {
                    assert_eq!(at, None);
                    levels.push(entry.level);
                }
            }
        }
        sides[0].sort_by_key(|level| std::cmp::Reverse(level.price));
        sides[1].sort_by_key(|level| level.price);
        for entry in changes.iter().filter(|entry| entry.action != Action::Delete) {
            let levels = &sides[usize::from(entry.side == Side::Sell)];
            assert_eq!(levels[entry.position - 1], entry.level, "its position is that after the update");
        }
    }

    #[test]
    fn changes_make_the_new_levels_of_the_old_ones_in_every_depth() {
        let mut random = Random::new(7);
        for _ in 0..50 {
            let depths = [1, 3, 100];
            let mut book = Book::default();
            depths.iter().for_each(|depth| book.begin(*depth));
            let mut clients: Vec<[Vec<BookLevel>; 2]> = vec![Default::default(); depths.len()];
            for update in 0..60 {
                let mut draw = |from: i64| -> Vec<BookLevel> {
                    let level = |random: &mut Random| {
                        let (price, shown) = (from + i64::try_from(random.below(12)).unwrap(), random.below(3));
                        let order_count = u32::try_from(shown).unwrap();
                        BookLevel { price: PriceTicks::saturating(price), shown: SizeLots::new(shown), order_count }
                    };
                    let mut levels: Vec<BookLevel> = (0..random.below(5)).map(|_| level(&mut random)).collect();
                    levels.sort_by_key(|level| level.price);
                    levels.dedup_by_key(|level| level.price);
                    levels
                };
                let (bids, asks) = (draw(10), draw(30));
                let is_snapshot = update == 0 || update == 40;
                let piece = BookPiece {
                    instrument: walras_types::InstrumentId(0),
                    is_snapshot,
                    log_index: update,
                    bids: &bids,
                    asks: &asks,
                    auction: None,
                };
                let expected = if update == 0 { News::Whole } else { News::Changes };
                assert_eq!(book.take(&piece), expected);
                for (client, depth) in clients.iter_mut().zip(depths) {
                    apply(client, book.changes(depth));
                    for (side, levels) in [Side::Buy, Side::Sell].into_iter().zip(client) {
                        assert_eq!(levels, book.levels(depth, side), "depth {depth}");
                    }
                }
            }
        }
    }
}
