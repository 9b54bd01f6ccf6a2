//! The comparing run: each step done by the book, then held against the record.

use std::collections::HashMap;

use walras_market_history::Format;
use walras_order_book::OrderBook;
use walras_types::{OrderId, PriceTicks, Side, SizeLots};

use crate::apply::{Applied, Market, Mode, Recorder, Tally, rested};
use crate::error::ReplayError;
use crate::load::Loaded;
use crate::options::{Options, Progress, Stage};
use crate::oracle::{Oracle, OrderbookReport};
use crate::plan::{Action, Aggressor, AuctionReference, Origin, PlanCounts, Presumption, RecordedFill, RecordedPair, Step};
use crate::quality::Quality;
use crate::reconstruct::Steps;
use crate::report::{AuctionReport, BookReport, Cause, ExecutionReport, Mismatch, TapeReport, TimingReport};
use crate::snapshots::{Checker, Day, SnapshotReport};
use crate::tape::Tape;
use crate::timing::Timed;
use crate::truth::{self, LevelName, Levels, Standing, level_name};

const PROGRESS_STEP: u64 = 1 << 15;

/// What the comparing run found.
pub(crate) struct Compared {
    pub(crate) book: BookReport,
    pub(crate) executions: ExecutionReport,
    pub(crate) auctions: Vec<AuctionReport>,
    pub(crate) snapshots: SnapshotReport,
    pub(crate) tape: TapeReport,
    pub(crate) quality: Quality,
    pub(crate) mismatches: Vec<Mismatch>,
    pub(crate) steps_with_trade: u64,
    pub(crate) counts: PlanCounts,
    pub(crate) orderbook: Option<OrderbookReport>,
    pub(crate) timing: Option<TimingReport>,
    /// The book at the end.
    pub(crate) end: OrderBook,
}

pub(crate) fn compare(loaded: &Loaded, options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Compared, ReplayError> {
    let reference = AuctionReference::of(loaded);
    let mut drive = Drive {
        close: loaded.previous_close.and_then(|price| loaded.scale.ticks_and_lots.ticks(price).ok()),
        market: Market::new(reference),
        timed: Timed::new(options.timing_rounds, reference),
        recorder: Recorder::default(),
        day: Day::default(),
        tape: Tape::default(),
        mismatches_max: options.mismatches_named_max,
        book: BookReport::default(),
        executions: ExecutionReport::default(),
        auctions: Vec::new(),
        mismatches: Vec::new(),
        steps_with_trade: 0,
    };
    let mut checker = Checker::new(loaded)?;
    let mut oracle = Oracle::open(loaded)?;
    let mut quality = Quality::default();
    let mut since_ns = 0;
    let mut steps = Steps::new(loaded)?;
    for step in steps.by_ref() {
        let step = step?;
        if drive.book.steps.is_multiple_of(PROGRESS_STEP) {
            progress(Progress { stage: Stage::Comparing, done: step.index, total: Some(loaded.file_messages) });
        }
        drive.book.steps += 1;
        if let Some(oracle) = &mut oracle {
            drive.follow(oracle, step.index)?;
            oracle.step(step.until);
        }
        checker.observe(&drive.market, &drive.day, since_ns, step.time_ns);
        if drive.market.mode == Mode::Continuous {
            quality.observe(&drive.market.book, weight(loaded, since_ns, step.time_ns));
        }
        since_ns = step.time_ns;
        if matches!(step.action, Action::CollectForOpen | Action::CollectForClose) {
            checker.freeze(&drive.market.book);
        }
        drive.step(step);
    }
    checker.observe(&drive.market, &drive.day, since_ns, u64::MAX);
    if let Some(oracle) = &mut oracle {
        drive.follow(oracle, loaded.file_messages + 1)?;
    }
    let messages = loaded.file_messages;
    progress(Progress { stage: Stage::Comparing, done: messages, total: Some(messages) });
    let orderbook = oracle.map(Oracle::finish).transpose()?;
    Ok(drive.finish(*steps.counts(), checker.finish()?, quality, orderbook))
}

/// Times of continuous trading in Shanghai, since midnight there.
const SSE_SESSIONS_NS: [(u64, u64); 2] = [
    ((9 * 60 + 30) * 60_000_000_000, (11 * 60 + 30) * 60_000_000_000),
    (13 * 60 * 60_000_000_000, (14 * 60 + 57) * 60_000_000_000),
];

/// How much a state from one time to another counts in a mean.
fn weight(loaded: &Loaded, since_ns: u64, until_ns: u64) -> u64 {
    match loaded.format {
        Format::Workload => 1,
        Format::Sse => {
            let within = |&(from, to): &(u64, u64)| until_ns.min(to).saturating_sub(since_ns.max(from));
            SSE_SESSIONS_NS.iter().map(within).sum()
        }
        Format::Lobster | Format::Itch | Format::BitstampLog | Format::BitstampOrders => until_ns.saturating_sub(since_ns),
    }
}

struct Drive {
    close: Option<PriceTicks>,
    market: Market,
    timed: Timed,
    recorder: Recorder,
    day: Day,
    tape: Tape,
    mismatches_max: usize,
    book: BookReport,
    executions: ExecutionReport,
    auctions: Vec<AuctionReport>,
    mismatches: Vec<Mismatch>,
    steps_with_trade: u64,
}

impl Drive {
    /// Holds the book against the rows before line `index`, and sets it to what they say.
    fn follow(&mut self, oracle: &mut Oracle, index: u64) -> Result<(), ReplayError> {
        while oracle.is_behind(index) {
            if let Some(levels) = oracle.compare(&self.market.book, index)? {
                levels.set(&mut self.market.book);
                self.timed.corrected(levels);
            }
        }
        Ok(())
    }

    fn step(&mut self, step: Step) {
        self.recorder.clear();
        let set = match &step.action {
            Action::Sweep(aggressor) => self.sweep(&step, aggressor),
            Action::Uncross { price, size, pairs } => self.uncross(&step, *price, *size, pairs),
            Action::Tape { price, size } => {
                self.tape.reported(*price, *size);
                None
            }
            Action::SetOpen { open, .. } => {
                self.set_open(&step, *open);
                None
            }
            Action::Presume { order_ref, why } => {
                self.presume(&step, *order_ref, *why);
                None
            }
            Action::Rest { .. }
            | Action::Submit { .. }
            | Action::Reduce { .. }
            | Action::Delete { .. }
            | Action::Move { .. }
            | Action::Replace { .. }
            | Action::CollectForOpen
            | Action::CollectForClose => self.plain(&step),
        };
        self.steps_with_trade += u64::from(!self.recorder.fills.is_empty());
        self.timed.step(step);
        if let Some(names) = set {
            self.book.corrections += 1;
            self.timed.corrected(Levels::of(&self.market.book, names));
        }
        self.book.resting_orders_max = self.book.resting_orders_max.max(self.market.book.order_count() as u64);
    }

    fn finish(
        mut self,
        counts: PlanCounts,
        snapshots: SnapshotReport,
        quality: Quality,
        orderbook: Option<OrderbookReport>,
    ) -> Compared {
        self.book.resting_orders_end = self.market.book.order_count() as u64;
        self.book.orders_made_up = counts.made_up;
        self.book.orders_presumed_deleted = counts.presumed_deleted;
        self.book.orders_set_aside = counts.set_aside;
        self.executions.recorded = counts.messages.executions;
        self.executions.of_unknown_orders = counts.left_out.unknown_executions;
        let timing = self.timed.finish(Tally { trades: self.book.trades, volume_lots: self.book.volume_lots });
        Compared {
            counts,
            orderbook,
            timing,
            book: self.book,
            executions: self.executions,
            auctions: self.auctions,
            snapshots,
            tape: self.tape.finish(),
            quality,
            mismatches: self.mismatches,
            steps_with_trade: self.steps_with_trade,
            end: self.market.book,
        }
    }

    fn mismatch(&mut self, step: &Step, order_ref: u64, instead: Option<u64>, cause: Cause) {
        let causes = &mut self.executions.causes;
        match cause {
            Cause::EnteredBeforeShownAfter => causes.entered_before_shown_after += 1,
            Cause::PassedOver => causes.passed_over += 1,
            Cause::NotAtBest => causes.not_at_best += 1,
            Cause::OrderGone => causes.order_gone += 1,
            Cause::AddTraded => self.book.adds_that_traded += 1,
            Cause::Contradiction | Cause::Auction => {}
        }
        if self.mismatches.len() < self.mismatches_max {
            self.mismatches.push(Mismatch { index: step.index, time_ns: step.time_ns, order_ref, instead, cause });
        }
    }

    /// An order leaves without a line that says so.
    fn presume(&mut self, step: &Step, order_ref: u64, why: Presumption) {
        self.market.apply(step, &mut self.recorder);
        if let Presumption::SetAside { by } = why {
            self.mismatch(step, order_ref, Some(by).filter(|by| *by != order_ref), Cause::Contradiction);
        }
    }

    /// Counts what the book itself traded.
    fn count_fills(&mut self) {
        for fill in &self.recorder.fills {
            self.book.trades += 1;
            self.book.volume_lots += fill.size.get();
        }
    }

    fn day_follows_book(&mut self) {
        for fill in &self.recorder.fills {
            self.day.trade_count += 1;
            self.day.traded_lots += fill.size.get();
            self.day.last_price = Some(fill.price);
        }
    }

    /// Returns the levels that were set, if any.
    fn plain(&mut self, step: &Step) -> Option<Vec<LevelName>> {
        let applied = self.market.apply(step, &mut self.recorder);
        self.book.orders_rested += u64::from(!rested(&applied).is_zero());
        self.count_fills();
        match applied {
            Applied::Missing => self.book.orders_missing += 1,
            Applied::Refused(_) => self.book.refused += 1,
            Applied::Was(order) => {
                if let Action::Delete { open: Some(open), .. } = step.action {
                    self.book.open_sizes_differing += u64::from(open != order.open);
                }
            }
            Applied::Placed(_) | Applied::Grew(_) | Applied::Uncrossed(_) | Applied::Nothing => {}
        }
        if let (&Action::Rest { order_ref, side, price, .. }, Some(first)) = (&step.action, self.recorder.fills.first()) {
            // The book takes back what it did. The order stays out: a book does not stand crossed.
            let picked = first.maker.client_order_id.0;
            let mut touched = truth::undo(&mut self.market.book, Some(order_ref), &self.recorder.fills);
            touched.push(level_name(side, price));
            self.mismatch(step, order_ref, Some(picked), Cause::AddTraded);
            return Some(touched);
        }
        self.day_follows_book();
        for fill in &self.recorder.fills {
            self.tape.made(fill.price, fill.size);
        }
        None
    }

    /// The record says what an order has left. The book made all fills of an aggressor when it came, where such feeds tell of them one
    /// by one; so it is right to have traded more by then, and stays so: to put back what it traded would put it behind others.
    fn set_open(&mut self, step: &Step, open: SizeLots) {
        let tape = &mut self.tape;
        match self.market.apply(step, &mut self.recorder) {
            Applied::Was(order) if order.open == open => tape.found(),
            Applied::Missing if open.is_zero() => tape.found(),
            Applied::Missing | Applied::Grew(_) => tape.outrun(),
            Applied::Was(order) => tape.corrected(Some((order.price, order.open.saturating_sub(open)))),
            Applied::Placed(_) | Applied::Refused(_) | Applied::Uncrossed(_) | Applied::Nothing => tape.corrected(None),
        }
    }

    /// Returns the levels that were set, if the book did otherwise than the record.
    fn sweep(&mut self, step: &Step, aggressor: &Aggressor) -> Option<Vec<LevelName>> {
        let recorded = &aggressor.fills;
        let applied = self.market.apply(step, &mut self.recorder);
        self.count_fills();
        let fills_match = self.recorder.fills.len() == recorded.len()
            && self.recorder.fills.iter().zip(recorded.iter()).all(|(ours, theirs)| {
                (ours.maker.client_order_id.0, ours.price, ours.size) == (theirs.maker, theirs.price, theirs.size)
            });
        self.book.refused += u64::from(matches!(applied, Applied::Refused(_)));
        let rest_matches = rested(&applied) == aggressor.rest;
        let matches = fills_match && rest_matches;
        let several = recorded.len() > 1;
        let rests = !aggressor.rest.is_zero();
        let report = &mut self.executions;
        report.aggressors += 1;
        report.aggressors_matched += u64::from(matches);
        report.sweeps += u64::from(several);
        report.sweeps_matched += u64::from(several && matches);
        report.rests += u64::from(rests);
        report.rests_matched += u64::from(rests && rest_matches);
        self.book.orders_rested += u64::from(rests);
        if matches {
            report.in_matched_aggressors += recorded.len() as u64;
            for fill in recorded {
                self.count_execution(fill, true, true);
            }
            self.day_follows_book();
            return None;
        }
        let taker = match (&applied, self.recorder.fills.first()) {
            (Applied::Refused(_), _) => None,
            (_, Some(fill)) => Some(fill.taker.client_order_id.0),
            (_, None) => aggressor.order_ref,
        };
        let mut touched = truth::undo(&mut self.market.book, taker, &self.recorder.fills);
        touched.push(level_name(aggressor.side, aggressor.limit));
        self.one_by_one(step, aggressor, &mut touched);
        Some(touched)
    }

    fn count_execution(&mut self, fill: &RecordedFill, at_best: bool, at_head: bool) {
        let report = &mut self.executions;
        match fill.origin {
            Origin::Added => {
                report.of_known_orders += 1;
                report.at_best += u64::from(at_best);
                report.at_head += u64::from(at_head);
            }
            Origin::MadeUp => {
                report.of_made_up_orders += 1;
                report.made_up_at_best += u64::from(at_best);
                report.made_up_at_head += u64::from(at_head);
            }
        }
    }

    /// Asks for each execution on its own, and does what the record says before the next.
    fn one_by_one(&mut self, step: &Step, aggressor: &Aggressor, touched: &mut Vec<LevelName>) {
        let side = aggressor.side.opposite();
        for (number, fill) in aggressor.fills.iter().enumerate() {
            let at_best = self.market.book.best(side) == Some(fill.price);
            self.recorder.clear();
            let alone = Aggressor {
                order_ref: None,
                limit: fill.price,
                size: fill.size,
                rest: SizeLots::ZERO,
                fills: Vec::new(),
                gone: Vec::new(),
                ..*aggressor
            };
            self.market.apply(&Step { action: Action::Sweep(alone), ..*step }, &mut self.recorder);
            let picked = self.recorder.fills.first().map(|first| (first.maker.client_order_id.0, first.size));
            let at_head = at_best && picked == Some((fill.maker, fill.size));
            self.count_execution(fill, at_best, at_head);
            touched.extend(truth::undo(&mut self.market.book, None, &self.recorder.fills));
            if !at_head {
                let cause = self.cause(fill, at_best);
                self.mismatch(step, fill.maker, picked.map(|(maker, _)| maker), cause);
            }
            touched.extend(truth::shrink(&mut self.market.book, fill.maker, fill.size));
            for &(_, gone) in aggressor.gone.iter().filter(|(proof, _)| *proof == number) {
                touched.extend(truth::take_out(&mut self.market.book, gone));
            }
            self.day.trade_count += 1;
            self.day.traded_lots += fill.size.get();
            self.day.last_price = Some(fill.price);
        }
        if let Some(order_ref) = aggressor.order_ref
            && !aggressor.rest.is_zero()
            && truth::find(&self.market.book, order_ref).is_none()
        {
            let rest = Standing { order_id: OrderId(step.index), order_ref, open: aggressor.rest };
            truth::enter(&mut self.market.book, &rest, aggressor.side, aggressor.limit);
        }
    }

    /// Why the book does not pick an execution's order.
    fn cause(&self, fill: &RecordedFill, at_best: bool) -> Cause {
        let book = &self.market.book;
        let Some(order) = truth::find(book, fill.maker).map(|handle| book.view(handle)) else { return Cause::OrderGone };
        if order.open < fill.size {
            return Cause::OrderGone;
        }
        if !at_best {
            return Cause::NotAtBest;
        }
        let name = level_name(order.side, order.price);
        let mut level = Levels::of(book, [name]);
        let ahead = level.queue(name).iter().take_while(|other| other.order_ref != fill.maker);
        if ahead.into_iter().all(|ahead| ahead.order_ref > fill.maker) { Cause::EnteredBeforeShownAfter } else { Cause::PassedOver }
    }

    /// Returns the levels that were set, if the auction was another one.
    fn uncross(&mut self, step: &Step, price: PriceTicks, size: SizeLots, recorded: &[RecordedPair]) -> Option<Vec<LevelName>> {
        let mut levels = Levels::all(&self.market.book);
        let near_close = self.close.and_then(|close| self.market.book.auction(close)).map(|uncross| uncross.price.get());
        let Applied::Uncrossed(uncross) = self.market.apply(step, &mut self.recorder) else { return None };
        let ours = &self.recorder.pairs;
        let same_pair = |(ours, theirs): &(&(u64, u64, SizeLots), &RecordedPair)| **ours == (theirs.buy, theirs.sell, theirs.size);
        let theirs_by_order = by_order(recorded.iter().map(|pair| (pair.buy, pair.sell, pair.size)));
        let ours_by_order = by_order(ours.iter().copied());
        let report = AuctionReport {
            time_ns: step.time_ns,
            recorded_price_ticks: price.get(),
            recorded_lots: size.get(),
            price_ticks: uncross.map(|uncross| uncross.price.get()),
            price_near_close_ticks: near_close,
            lots: ours.iter().map(|(_, _, size)| size.get()).sum(),
            imbalance_lots: uncross.map_or(0, |uncross| uncross.imbalance_lots),
            pairs: recorded.len() as u64,
            pairs_matched: ours.iter().zip(recorded).filter(same_pair).count() as u64,
            orders: theirs_by_order.len() as u64,
            orders_matched: theirs_by_order.iter().filter(|(order, lots)| ours_by_order.get(order) == Some(lots)).count() as u64,
        };
        self.book.trades += ours.len() as u64;
        self.book.volume_lots += report.lots;
        let matches = report.matches() && theirs_by_order == ours_by_order;
        self.day.trade_count += if matches { ours.len() as u64 } else { recorded.len() as u64 };
        self.day.traded_lots += if matches { report.lots } else { report.recorded_lots };
        self.day.last_price = Some(price);
        self.auctions.push(report);
        if matches {
            return None;
        }
        for pair in recorded {
            for order_ref in [pair.buy, pair.sell] {
                if !levels.shrink(order_ref, pair.size) {
                    self.book.orders_missing += 1;
                }
            }
        }
        let first = recorded.first().map_or(0, |pair| pair.buy);
        self.mismatch(step, first, None, Cause::Auction);
        levels.set(&mut self.market.book);
        Some(levels.names().collect())
    }
}

/// Lots that each order traded; an order number is of one side only.
fn by_order(pairs: impl Iterator<Item = (u64, u64, SizeLots)>) -> HashMap<u64, u64> {
    let mut lots = HashMap::new();
    for (buy, sell, size) in pairs {
        *lots.entry(buy).or_default() += size.get();
        *lots.entry(sell).or_default() += size.get();
    }
    lots
}

/// Levels, orders and hash of a book's sides, asks first.
pub(crate) struct Ending {
    pub(crate) levels: [Vec<(i64, u64)>; 2],
    pub(crate) orders: [u64; 2],
}

pub(crate) fn ending(book: &OrderBook) -> Ending {
    let mut orders = [0; 2];
    let levels = [Side::Sell, Side::Buy].map(|side| {
        let mut depth = Vec::new();
        book.depth(side, usize::MAX, &mut depth);
        orders[usize::from(side == Side::Buy)] = depth.iter().map(|level| u64::from(level.order_count)).sum();
        depth.iter().map(|level| (level.price.get(), level.shown.get())).collect()
    });
    Ending { levels, orders }
}
