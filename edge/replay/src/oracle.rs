//! LOBSTER's orderbook file as an oracle: after each message of the record the book must show the levels that the file shows.
//!
//! A file of `N` levels does not show deeper ones. So a level that was not visible on the previous row is *learned*: the book takes
//! it from the file, with an artificial order for size that no message explains. The first row is learned completely: it is the
//! book at the start of the record. A level that was visible must agree. Otherwise the row differs, and the level is set to the
//! file's, so that one difference is counted once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use walras_market_history::lobster::{BookRow, OrderbookReader};
use walras_market_history::{ByteSource, open_bytes};
use walras_order_book::{DepthLevel, OrderBook};
use walras_types::{OrderId, PriceTicks, Side, SizeLots};

use crate::error::ReplayError;
use crate::load::{Loaded, Scale};
use crate::survey::Lives;
use crate::truth::{LevelName, Levels, Standing, level_name};

/// First number of artificial orders, above those of any exchange.
const NOBODY: u64 = 3 << 61;

/// The book against LOBSTER's orderbook file.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct OrderbookReport {
    /// The file.
    pub file: PathBuf,
    /// Levels a side that it shows.
    pub levels: usize,
    /// Rows compared: all but those between two executions of one incoming order, whose steps a book does at once.
    pub rows: u64,
    /// Rows in which every level that was in view before agrees, on both sides.
    pub rows_equal: u64,
    /// Rows whose best price and size agree, on both sides, if they were in view before.
    pub best_equal: u64,
    /// Levels that came into view and were learned.
    pub levels_learned: u64,
    /// Rows of the file that belong to no message, or messages that have no row.
    pub rows_astray: u64,
    /// The first level that differs.
    pub first_difference: Option<OrderbookDifference>,
}

/// A level on which file and book disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct OrderbookDifference {
    /// Line of both files.
    pub line: u64,
    /// `buy` or `sell`.
    pub side: &'static str,
    /// The level's price, in ticks.
    pub price_ticks: i64,
    /// Lots that the file has there.
    pub file_lots: u64,
    /// Lots that the book has there.
    pub book_lots: u64,
}

/// How far the row before showed a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Nothing,
    To(PriceTicks),
    All,
}

impl Seen {
    fn shows(self, side: Side, price: PriceTicks) -> bool {
        match self {
            Seen::Nothing => false,
            Seen::To(worst) => !side.is_better(worst, price),
            Seen::All => true,
        }
    }
}

/// What an oracle has seen, and what it has still to read.
pub(crate) struct Oracle {
    reader: OrderbookReader<ByteSource>,
    scale: Scale,
    lives: Arc<Lives>,
    /// The line read last.
    line: u64,
    /// Rows before this line stand between two executions of one order.
    skip_before: u64,
    seen: [Seen; 2],
    nobody: u64,
    depth: Vec<DepthLevel>,
    report: OrderbookReport,
}

impl Oracle {
    /// For a history that has an orderbook file.
    pub(crate) fn open(loaded: &Loaded) -> Result<Option<Self>, ReplayError> {
        let Some(file) = &loaded.orderbook else { return Ok(None) };
        Ok(Some(Self {
            reader: OrderbookReader::new(open_bytes(file)?),
            scale: loaded.scale,
            lives: loaded.lives.clone(),
            line: 0,
            skip_before: 0,
            seen: [Seen::Nothing; 2],
            nobody: NOBODY,
            depth: Vec::new(),
            report: OrderbookReport { file: file.clone(), ..OrderbookReport::default() },
        }))
    }

    /// Rows before line `until` stand between two executions of the order that comes now.
    pub(crate) fn step(&mut self, until: u64) {
        self.skip_before = self.skip_before.max(until);
    }

    /// Compares the book, which is in the state after the message before line `index`. Returns the levels to which it must be set.
    pub(crate) fn compare(&mut self, book: &OrderBook, index: u64) -> Result<Option<Levels>, ReplayError> {
        let mut set = None;
        while self.line + 1 < index {
            let Some(row) = self.reader.next_row() else {
                self.report.rows_astray += index - 1 - self.line;
                self.line = index - 1;
                break;
            };
            let (line, row) = row?;
            self.line = line;
            if line < self.skip_before {
                continue;
            }
            let row = row.clone();
            // Rows of messages that change nothing repeat the one before.
            let changes = self.row(&row, book);
            if !changes.is_empty() {
                let levels = self.settle(book, changes);
                set = Some(levels);
                break;
            }
        }
        Ok(set)
    }

    /// Whether rows before line `index` are left to compare.
    pub(crate) fn is_behind(&self, index: u64) -> bool {
        self.line + 1 < index
    }

    /// Compares a row; what the file has at the levels that differ.
    fn row(&mut self, row: &BookRow, book: &OrderBook) -> BTreeMap<LevelName, u64> {
        self.report.levels = row.levels;
        self.report.rows += 1;
        let mut changes = BTreeMap::new();
        let (mut equal, mut best_equal) = (true, true);
        for side in Side::BOTH {
            let file: BTreeMap<PriceTicks, u64> = row
                .side(side)
                .iter()
                .filter_map(|level| {
                    Some((self.scale.ticks_and_lots.ticks(level.price).ok()?, level.size.0 / self.scale.units_per_lot))
                })
                .collect();
            let worst = match side {
                Side::Buy => file.first_key_value(),
                Side::Sell => file.last_key_value(),
            };
            let shown = match worst {
                Some((&worst, _)) if row.side(side).len() >= row.levels => Seen::To(worst),
                _ => Seen::All,
            };
            let best = row.side(side).first().and_then(|level| self.scale.ticks_and_lots.ticks(level.price).ok());
            self.depth.clear();
            book.depth(side, usize::MAX, &mut self.depth);
            let ours: BTreeMap<PriceTicks, u64> = self
                .depth
                .iter()
                .map(|level| (level.price, level.shown.get()))
                .filter(|(price, _)| shown.shows(side, *price))
                .collect();
            for &price in file.keys().chain(ours.keys().filter(|price| !file.contains_key(price))) {
                let [file_lots, book_lots] = [&file, &ours].map(|levels| levels.get(&price).copied().unwrap_or(0));
                if file_lots == book_lots {
                    continue;
                }
                changes.insert(level_name(side, price), file_lots);
                if !self.seen[side as usize].shows(side, price) {
                    self.report.levels_learned += 1;
                    continue;
                }
                // A learned level with an order that became known since: no order gives way to it.
                let name = level_name(side, price);
                let nobodys = Levels::of(book, [name])
                    .queue(name)
                    .iter()
                    .filter(|order| order.order_ref >= NOBODY)
                    .map(|order| order.open.get())
                    .sum::<u64>();
                if book_lots > file_lots && book_lots - file_lots <= nobodys {
                    continue;
                }
                equal = false;
                best_equal &= best.is_some_and(|best| side.is_better(best, price));
                self.report.first_difference.get_or_insert(OrderbookDifference {
                    line: self.line,
                    side: match side {
                        Side::Buy => "buy",
                        Side::Sell => "sell",
                    },
                    price_ticks: price.get(),
                    file_lots,
                    book_lots,
                });
            }
            self.seen[side as usize] = shown;
        }
        self.report.rows_equal += u64::from(equal);
        self.report.best_equal += u64::from(best_equal);
        changes
    }

    /// The levels with as many lots as the file has: with an order of nobody at the back, or without the orders at the back that
    /// the file does not name any more, and after them others.
    fn settle(&mut self, book: &OrderBook, changes: BTreeMap<LevelName, u64>) -> Levels {
        let mut levels = Levels::of(book, changes.keys().copied());
        for (name, lots) in changes {
            let queue = levels.queue(name);
            let mut excess = queue.iter().map(|order| order.open.get()).sum::<u64>();
            if let Some(more) = lots.checked_sub(excess).and_then(SizeLots::order_size) {
                self.nobody += 1;
                queue.push(Standing { order_id: OrderId(self.nobody), order_ref: self.nobody, open: more });
            }
            excess = excess.saturating_sub(lots);
            for named in [false, true] {
                for order in queue.iter_mut().rev() {
                    let is_named = order.order_ref < NOBODY && self.lives.is_named_after(order.order_ref, self.line);
                    if is_named == named {
                        let cut = order.open.get().min(excess);
                        order.open = order.open.saturating_sub(SizeLots::new(cut));
                        excess -= cut;
                    }
                }
            }
            queue.retain(|order| !order.open.is_zero());
        }
        levels
    }

    /// What was found, after the last message.
    pub(crate) fn finish(mut self) -> Result<OrderbookReport, ReplayError> {
        while let Some(row) = self.reader.next_row() {
            row?;
            self.report.rows_astray += 1;
        }
        Ok(self.report)
    }
}
