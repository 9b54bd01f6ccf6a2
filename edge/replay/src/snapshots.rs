//! The book held against the exchange's own snapshots.
//!
//! A snapshot says the second at which it was sent, not after which message. So it counts as reproduced if the book equalled it at some
//! instant of a *window*, and those instants follow each other as the snapshots do: no snapshot may be found in a state that the book
//! was in before the state in which the one before it was found. A state lasts from its message's time to that of the next, and all
//! states between messages of one time stamp count; within a reconstructed aggressor there are none.
//!
//! The window of a snapshot stamped `s` is `[s, s + 1 s)`, its own second. Where the book does not equal it then, states up to 100 ms
//! before `s` are tried (another clock stamps it); and, in a call phase, up to 3 s before, the interval at which Shanghai sends:
//! some snapshots of call phases are sent an interval late, with the next one under the same second. The report counts each kind.
//! Of 600519's 5,146 on 2023-02-07, 5,135 are found in their own second, 4 up to 80 ms before it, 7 (all of call phases) up to 2.51 s.
//!
//! Equal means: price and size of every level shown, on both sides, and no level more up to ten; number of trades, traded size and
//! last price of the day; the sizes of all bids and all asks. In a call phase: price, size and both surpluses of the indicative
//! uncross, or nothing at all where no bid reaches an offer; the sizes of all bids and asks are then those with which the phase began.

use std::collections::VecDeque;
use std::iter::Peekable;

use walras_market_history::{BookSnapshot, Format, Level, SizeUnits};
use walras_order_book::{DepthLevel, OrderBook, Uncross};
use walras_types::{PriceTicks, Side};

use crate::apply::{Market, Mode, indicative, side_lots};
use crate::error::ReplayError;
use crate::load::{Loaded, Scale};
use crate::source::{Snapshots, TimedSnapshot};
use crate::survey::is_bitstamp;

const SECOND_NS: u64 = 1_000_000_000;
/// How far another clock may be ahead.
const SKEW_NS: u64 = SECOND_NS / 10;
/// Shanghai sends a snapshot every three seconds.
const INTERVAL_NS: u64 = 3 * SECOND_NS;
/// Levels that a snapshot of the format shows.
fn levels_shown(format: Format) -> usize {
    if is_bitstamp(format) { 20 } else { 10 }
}

/// The day so far, by the book's own trades.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Day {
    pub(crate) trade_count: u64,
    pub(crate) traded_lots: u64,
    pub(crate) last_price: Option<PriceTicks>,
}

/// How many snapshots the book reproduced.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct SnapshotReport {
    /// Snapshots in the file.
    pub total: u64,
    /// Equal to the book at an instant of their window, in order.
    pub reproduced: u64,
    /// Of those, with levels.
    pub with_levels: u64,
    /// Of those, with an indicative uncross.
    pub with_indicative: u64,
    /// Of those, empty: before the first order, and in a call phase in which no bid reaches an offer.
    pub empty: u64,
    /// Found in their own second.
    pub in_own_second: u64,
    /// Found up to 100 ms before it.
    pub in_skew: u64,
    /// Found up to 3 s before it, in a call phase.
    pub an_interval_late: u64,
    /// The earliest, in milliseconds before its second.
    pub earliest_ms: u64,
    /// Not reproduced, by line of the file; at most 100.
    pub missed: Vec<MissedSnapshot>,
}

/// A snapshot that the book did not equal.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MissedSnapshot {
    /// Its line.
    pub index: u64,
    /// Its time.
    pub time_ns: u64,
}

const MISSED_NAMED_MAX: usize = 100;

struct Pending {
    timed: TimedSnapshot,
    from_ns: u64,
    until_ns: u64,
    /// States that equal it: number, and how long before its second they ended.
    equal: Vec<(u64, u64)>,
}

pub(crate) struct Checker {
    scale: Scale,
    levels_shown: usize,
    waiting: Peekable<Snapshots>,
    pending: VecDeque<Pending>,
    state_number: u64,
    last_found: u64,
    /// Sizes of all bids and asks at the beginning of the call phase.
    frozen_lots: [u64; 2],
    levels: Vec<DepthLevel>,
    report: SnapshotReport,
}

impl Checker {
    pub(crate) fn new(loaded: &Loaded) -> Result<Self, ReplayError> {
        let report = SnapshotReport { total: loaded.snapshot_count, ..SnapshotReport::default() };
        Ok(Self {
            scale: loaded.scale,
            levels_shown: levels_shown(loaded.format),
            waiting: loaded.snapshots()?.peekable(),
            pending: VecDeque::new(),
            state_number: 0,
            last_found: 0,
            frozen_lots: [0; 2],
            levels: Vec::new(),
            report,
        })
    }

    /// A call phase begins: what the exchange says of all bids and asks stays as it is now.
    pub(crate) fn freeze(&mut self, book: &OrderBook) {
        self.frozen_lots = Side::BOTH.map(|side| side_lots(book, side, &mut self.levels));
    }

    /// The market stands as it does from `since_ns` to `until_ns`.
    pub(crate) fn observe(&mut self, market: &Market, day: &Day, since_ns: u64, until_ns: u64) {
        self.state_number += 1;
        let opens = |next: &Result<TimedSnapshot, ReplayError>| next.as_ref().is_ok_and(|next| window(next).0 <= until_ns);
        while let Some(Ok(timed)) = self.waiting.next_if(opens) {
            let (from_ns, until_ns) = window(&timed);
            self.pending.push_back(Pending { timed, from_ns, until_ns, equal: Vec::new() });
        }
        while self.pending.front().is_some_and(|pending| pending.until_ns <= since_ns) {
            self.decide();
        }
        if self.pending.is_empty() {
            return;
        }
        let mut view = None;
        for at in 0..self.pending.len() {
            let pending = &self.pending[at];
            if pending.from_ns > until_ns || pending.until_ns <= since_ns {
                continue;
            }
            let view = view.get_or_insert_with(|| View::of(market, self.levels_shown, &mut self.levels));
            if view.equals(&pending.timed.snapshot, self.scale, day, || match market.mode {
                Mode::Collecting => self.frozen_lots,
                Mode::Continuous => Side::BOTH.map(|side| side_lots(&market.book, side, &mut self.levels)),
            }) {
                let early_ns = pending.timed.time_ns.saturating_sub(until_ns);
                self.pending[at].equal.push((self.state_number, early_ns));
            }
        }
    }

    /// The window of the first pending snapshot is over: takes the state nearest to its second, and the first of those, that is not
    /// before the last one taken.
    fn decide(&mut self) {
        let Some(pending) = self.pending.pop_front() else { return };
        let in_order = pending.equal.iter().filter(|(state, _)| *state >= self.last_found);
        let Some(&(state, early_ns)) = in_order.min_by_key(|(state, early_ns)| (*early_ns, *state)) else {
            if self.report.missed.len() < MISSED_NAMED_MAX {
                self.report.missed.push(MissedSnapshot { index: pending.timed.index, time_ns: pending.timed.time_ns });
            }
            return;
        };
        self.last_found = state;
        let report = &mut self.report;
        report.reproduced += 1;
        match early_ns {
            0 => report.in_own_second += 1,
            1..=SKEW_NS => report.in_skew += 1,
            _ => report.an_interval_late += 1,
        }
        report.earliest_ms = report.earliest_ms.max(early_ns / 1_000_000);
        let snapshot = &pending.timed.snapshot;
        if snapshot.indicative.is_some() {
            report.with_indicative += 1;
        } else if has_levels(snapshot) {
            report.with_levels += 1;
        } else {
            report.empty += 1;
        }
    }

    pub(crate) fn finish(mut self) -> Result<SnapshotReport, ReplayError> {
        while !self.pending.is_empty() {
            self.decide();
        }
        for timed in self.waiting {
            let TimedSnapshot { index, time_ns, .. } = timed?;
            if self.report.missed.len() < MISSED_NAMED_MAX {
                self.report.missed.push(MissedSnapshot { index, time_ns });
            }
        }
        Ok(self.report)
    }
}

fn has_levels(snapshot: &BookSnapshot) -> bool {
    snapshot.bids.count() > 0 || snapshot.asks.count() > 0
}

/// From when to when the book may equal it.
fn window(timed: &TimedSnapshot) -> (u64, u64) {
    let ahead_ns = if has_levels(&timed.snapshot) { SKEW_NS } else { INTERVAL_NS };
    (timed.time_ns.saturating_sub(ahead_ns), timed.time_ns.saturating_add(SECOND_NS))
}

/// What anyone sees of the market.
enum View {
    Levels([Vec<DepthLevel>; 2]),
    Call(Option<Uncross>),
}

impl View {
    fn of(market: &Market, levels_shown: usize, levels: &mut Vec<DepthLevel>) -> Self {
        match market.mode {
            Mode::Collecting => View::Call(indicative(&market.book, market.reference)),
            Mode::Continuous => View::Levels(Side::BOTH.map(|side| {
                levels.clear();
                market.book.depth(side, levels_shown, levels);
                levels.clone()
            })),
        }
    }

    fn equals(&self, snapshot: &BookSnapshot, scale: Scale, day: &Day, side_lots: impl FnOnce() -> [u64; 2]) -> bool {
        let shown = match self {
            View::Levels(sides) => {
                let stated = [&snapshot.bids, &snapshot.asks];
                snapshot.indicative.is_none() && sides.iter().zip(stated).all(|(ours, theirs)| same(ours, theirs.as_slice(), scale))
            }
            View::Call(None) => snapshot.indicative.is_none() && !has_levels(snapshot),
            View::Call(Some(uncross)) => snapshot.indicative.is_some_and(|theirs| {
                let surplus = |sign: i64| (sign * uncross.imbalance_lots).max(0).unsigned_abs();
                scale.ticks_and_lots.ticks(theirs.price) == Ok(uncross.price)
                    && is_size(uncross.volume.get(), theirs.size, scale)
                    && is_size(surplus(1), theirs.buy_surplus, scale)
                    && is_size(surplus(-1), theirs.sell_surplus, scale)
            }),
        };
        shown
            && snapshot.day.is_none_or(|stated| {
                let last_price = stated.last_price.map(|price| scale.ticks_and_lots.ticks(price).ok());
                stated.trade_count == day.trade_count
                    && is_size(day.traded_lots, stated.traded_size, scale)
                    && last_price == day.last_price.map(Some)
                    && side_lots()
                        .into_iter()
                        .zip([stated.bid_size, stated.ask_size])
                        .all(|(ours, theirs)| is_size(ours, theirs, scale))
            })
    }
}

fn is_size(lots: u64, stated: SizeUnits, scale: Scale) -> bool {
    u128::from(lots) * u128::from(scale.units_per_lot) == u128::from(stated.0)
}

fn same(ours: &[DepthLevel], theirs: &[Level], scale: Scale) -> bool {
    ours.len() == theirs.len()
        && ours.iter().zip(theirs).all(|(ours, theirs)| {
            ours.price.get().checked_mul(scale.units_per_tick) == Some(theirs.price.0)
                && is_size(ours.shown.get(), theirs.size, scale)
        })
}
