//! From events to steps: incoming orders reconstructed from what they caused.
//!
//! *Aggressors.* Feeds report what resting orders suffered, not who came. NASDAQ reports an incoming order as one execution message
//! for each resting order it meets, back to back and with one nanosecond stamp; so executions that follow each other, with one stamp,
//! on one side, at prices that never improve, are one aggressor (hidden executions may stand between). Shanghai names both orders: a
//! run of trades with one aggressor is one aggressor. Its limit is the worst price of the run, and it is immediate-or-cancel, unless
//! its rest is added next (Shanghai: under the aggressor's number; NASDAQ: at once, on its side, at a price that reaches the run's
//! worst): then it is good-till-cancel at that price, and the book must find out how much rests.
//!
//! *Orders never added.* LOBSTER files begin at the opening with an empty book, and show orders only within so many levels of the
//! best. An order that is named without having been added is made up as soon as the file adds an order of a higher number (numbers
//! grow in the order in which orders enter), at the latest when it is first named, with all the size that the file takes off it.
//! NASDAQ's own format names neither side nor price then, so there such messages are left out and counted.
//!
//! *Shanghai's day* has a timetable, not messages: orders collect from the start and again from 14:57:00, the first message of an
//! auction's trades uncrosses.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use walras_market_history::{Format, HistoryEvent, HistoryKind, Lasting, OrderRef, PriceUnits, SizeUnits, Stated};
use walras_types::{PriceTicks, Side, SizeLots};

use crate::load::Loaded;
use crate::plan::{Action, Aggressor, AuctionReference, LeftOut, MessageCounts, Origin, Plan, RecordedFill, RecordedPair, Step};

/// When Shanghai's closing call begins, since midnight there.
pub const SSE_CLOSING_CALL_NS: u64 = (14 * 60 + 57) * 60 * 1_000_000_000;

impl Plan {
    /// The steps of a loaded file.
    #[must_use]
    pub fn new(loaded: &Loaded, reference_price: Option<PriceUnits>) -> Self {
        let reference = match reference_price.and_then(|price| loaded.scale.ticks_and_lots.ticks(price).ok()) {
            Some(price) => AuctionReference::Price(price),
            None => AuctionReference::Middle,
        };
        let mut builder = Builder {
            loaded,
            names: HashMap::new(),
            unborn: unborn_orders(loaded),
            running: None,
            uncrossing: None,
            phase: CallPhase::Opening,
            plan: Plan {
                format: loaded.format,
                steps: Vec::with_capacity(loaded.events.len()),
                fills: Vec::new(),
                pairs: Vec::new(),
                reference,
                messages: MessageCounts { snapshots: loaded.snapshots.len() as u64, ..MessageCounts::default() },
                left_out: LeftOut::default(),
                made_up: 0,
            },
        };
        if loaded.format == Format::Sse {
            builder.plan.steps.push(Step { time_ns: 0, index: 0, action: Action::CollectForOpen });
        }
        for event in &loaded.events {
            builder.take(event);
        }
        builder.end_runs();
        builder.plan.messages.events = (loaded.events.len() + loaded.snapshots.len()) as u64;
        builder.plan
    }
}

/// Side and price of an order.
#[derive(Clone, Copy)]
struct Name {
    side: Side,
    price: PriceTicks,
    origin: Origin,
}

/// An order that is named and never added.
struct Unborn {
    stated: Stated,
    size: u64,
}

/// Whether an order may be as large as both together.
fn is_one_order(size: SizeLots, more: SizeLots) -> bool {
    SizeLots::order_size(size.get() + more.get()).is_some()
}

pub(crate) fn is_bitstamp(format: Format) -> bool {
    matches!(format, Format::BitstampLog | Format::BitstampOrders)
}

/// All orders that the file names with side and price and never adds, by number.
fn unborn_orders(loaded: &Loaded) -> BTreeMap<u64, Unborn> {
    let mut unborn: BTreeMap<u64, Unborn> = BTreeMap::new();
    if matches!(loaded.format, Format::Sse | Format::Workload) {
        return unborn;
    }
    let mut born = std::collections::HashSet::new();
    for event in &loaded.events {
        let (order_ref, size, stated) = match event.kind {
            HistoryKind::Add { order_ref, .. } => {
                born.insert(order_ref);
                continue;
            }
            HistoryKind::Reduce { order_ref, size, stated } | HistoryKind::Execute { order_ref, size, stated } => {
                (order_ref, size, stated)
            }
            HistoryKind::Delete { order_ref, open_size, stated } => (order_ref, open_size.unwrap_or_default(), stated),
            HistoryKind::SetOpenSize { order_ref, size, stated } => (order_ref, size, stated),
            _ => continue,
        };
        if let Some(stated) = stated
            && size.0 > 0
            && !born.contains(&order_ref)
        {
            let unborn = unborn.entry(order_ref.0).or_insert(Unborn { stated, size: 0 });
            // Bitstamp says what is left, the first time the most; the others how much less.
            unborn.size = if is_bitstamp(loaded.format) { unborn.size.max(size.0) } else { unborn.size + size.0 };
        }
    }
    unborn
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CallPhase {
    Opening,
    Continuous,
    Closing,
    Done,
}

/// Executions that may still belong to one aggressor.
struct Running {
    time_ns: u64,
    index: u64,
    order_ref: Option<u64>,
    side: Side,
    worst: PriceTicks,
    size: SizeLots,
    fills: Range<usize>,
}

struct Uncrossing {
    time_ns: u64,
    index: u64,
    price: PriceTicks,
    size: SizeLots,
    pairs: Range<usize>,
}

struct Builder<'a> {
    loaded: &'a Loaded,
    names: HashMap<u64, Name>,
    unborn: BTreeMap<u64, Unborn>,
    running: Option<Running>,
    uncrossing: Option<Uncrossing>,
    phase: CallPhase,
    plan: Plan,
}

impl Builder<'_> {
    fn take(&mut self, event: &HistoryEvent) {
        if !self.continues_run(event) {
            self.end_runs();
        }
        self.follow_timetable(event);
        match event.kind {
            HistoryKind::Add { order_ref, side, price, size } => {
                self.plan.messages.adds += 1;
                self.bear_older(order_ref.0, event);
                let Some((price, size)) = self.price_and_size(price, size) else { return };
                self.names.insert(order_ref.0, Name { side, price, origin: Origin::Added });
                self.add(event, order_ref.0, side, price, size);
            }
            HistoryKind::Submit { order_ref, side, price, size, lasting } => {
                self.plan.messages.adds += 1;
                let Some((price, size)) = self.price_and_size(price, size) else { return };
                self.push(event, Action::Submit { order_ref: order_ref.0, side, price, size, lasting });
            }
            HistoryKind::Reduce { order_ref, size, .. } => {
                self.plan.messages.reduces += 1;
                if self.is_named(order_ref, event)
                    && let Some(by) = self.size(size)
                {
                    self.push(event, Action::Reduce { order_ref: order_ref.0, by });
                }
            }
            HistoryKind::SetOpenSize { order_ref, size, .. } => {
                self.plan.messages.reduces += 1;
                if self.is_named(order_ref, event) {
                    let open = self.size_or_zero(size);
                    self.push(event, Action::SetOpen { order_ref: order_ref.0, open });
                }
            }
            HistoryKind::Delete { order_ref, open_size, .. } => {
                self.plan.messages.deletes += 1;
                if self.is_named(order_ref, event) {
                    let open = open_size.map(|size| self.size_or_zero(size));
                    // A feed that reports no executions reports a filled order as deleted with nothing left.
                    let action = match open {
                        Some(open) if open.is_zero() && self.is_bitstamp() => Action::SetOpen { order_ref: order_ref.0, open },
                        _ => Action::Delete { order_ref: order_ref.0, open },
                    };
                    self.push(event, action);
                }
            }
            HistoryKind::Execute { order_ref, size, .. } => {
                self.plan.messages.executions += 1;
                if self.is_named(order_ref, event) {
                    self.execute(event, order_ref.0, size, None, None);
                } else {
                    self.plan.left_out.unknown_executions += 1;
                }
            }
            HistoryKind::ExecuteAtPrice { order_ref, size, .. } => {
                // Not at its own price, so not by the visible book's rules: a cross, or a price improvement.
                self.plan.messages.others += 1;
                if self.is_named(order_ref, event)
                    && let Some(by) = self.size(size)
                {
                    self.push(event, Action::Reduce { order_ref: order_ref.0, by });
                }
            }
            HistoryKind::Trade { price, size, aggressor: Some(side), buy_ref: Some(buy), sell_ref: Some(sell) } => {
                self.plan.messages.executions += 1;
                let (taker, maker) = match side {
                    Side::Buy => (buy, sell),
                    Side::Sell => (sell, buy),
                };
                if self.is_named(maker, event) {
                    self.execute(event, maker.0, size, Some(price), Some(taker.0));
                } else {
                    self.plan.left_out.unknown_executions += 1;
                }
            }
            HistoryKind::Trade { price, size, .. } => self.nameless_trade(event, price, size),
            HistoryKind::AuctionTrade { price, size, buy_ref: Some(buy), sell_ref: Some(sell) } => {
                self.plan.messages.auction_trades += 1;
                self.auction_trade(event, price, size, RecordedPair { buy: buy.0, sell: sell.0, size: SizeLots::ZERO });
            }
            HistoryKind::AuctionTrade { .. } => {
                self.plan.messages.auction_trades += 1;
                self.plan.left_out.no_order += 1;
            }
            HistoryKind::Replace { old_ref, new_ref, price, size } => {
                self.plan.messages.replaces += 1;
                let side = self.names.get(&old_ref.0).map(|name| name.side);
                if !self.is_named(old_ref, event) {
                    return;
                }
                let (Some(side), Some((price, size))) = (side, self.price_and_size(price, size)) else { return };
                self.names.insert(new_ref.0, Name { side, price, origin: Origin::Added });
                self.push(event, Action::Replace { old_ref: old_ref.0, new_ref: new_ref.0, price, size });
            }
            HistoryKind::Move { order_ref, price } => {
                self.plan.messages.replaces += 1;
                match self.loaded.scale.ticks_and_lots.ticks(price) {
                    Ok(price) => self.push(event, Action::Move { order_ref: order_ref.0, price }),
                    Err(_) => self.plan.left_out.off_scale += 1,
                }
            }
            HistoryKind::Snapshot { .. } | HistoryKind::Phase(_) | HistoryKind::Directory { .. } => {
                self.plan.messages.others += 1;
                self.plan.left_out.no_order += 1;
            }
        }
    }

    fn push(&mut self, event: &HistoryEvent, action: Action) {
        self.plan.steps.push(Step { time_ns: event.time_ns, index: event.index, action });
    }

    fn is_bitstamp(&self) -> bool {
        is_bitstamp(self.loaded.format)
    }

    fn size(&mut self, size: SizeUnits) -> Option<SizeLots> {
        let lots = self.loaded.scale.ticks_and_lots.lots(size).ok();
        self.plan.left_out.off_scale += u64::from(lots.is_none());
        lots
    }

    fn size_or_zero(&mut self, size: SizeUnits) -> SizeLots {
        if size.0 == 0 { SizeLots::ZERO } else { self.size(size).unwrap_or_default() }
    }

    fn price_and_size(&mut self, price: PriceUnits, size: SizeUnits) -> Option<(PriceTicks, SizeLots)> {
        let scale = self.loaded.scale.ticks_and_lots;
        let both = scale.ticks(price).ok().zip(scale.lots(size).ok());
        self.plan.left_out.off_scale += u64::from(both.is_none());
        both
    }

    /// Whether the order is in the book by now; one that can be made up is.
    fn is_named(&mut self, order_ref: OrderRef, event: &HistoryEvent) -> bool {
        if matches!(self.loaded.format, Format::Workload) || self.names.contains_key(&order_ref.0) {
            return true;
        }
        match self.unborn.remove(&order_ref.0) {
            Some(unborn) => self.bear(order_ref.0, &unborn, event),
            None => {
                self.plan.left_out.unknown_order += 1;
                false
            }
        }
    }

    /// Makes up all orders numbered below `order_ref`.
    fn bear_older(&mut self, order_ref: u64, event: &HistoryEvent) {
        while let Some(entry) = self.unborn.first_entry()
            && *entry.key() < order_ref
        {
            let (number, unborn) = entry.remove_entry();
            self.bear(number, &unborn, event);
        }
    }

    fn bear(&mut self, order_ref: u64, unborn: &Unborn, event: &HistoryEvent) -> bool {
        let Some((price, size)) = self.price_and_size(unborn.stated.price, SizeUnits(unborn.size)) else { return false };
        let (side, origin) = (unborn.stated.side, Origin::MadeUp);
        // It stood before whatever happens now.
        self.end_runs();
        self.names.insert(order_ref, Name { side, price, origin });
        self.plan.made_up += 1;
        self.push(event, Action::Rest { order_ref, side, price, size, origin });
        true
    }

    /// An order that the file adds: the rest of the aggressor before it, or one of its own.
    fn add(&mut self, event: &HistoryEvent, order_ref: u64, side: Side, price: PriceTicks, size: SizeLots) {
        if self.is_bitstamp() {
            self.push(event, Action::Submit { order_ref, side, price, size, lasting: Lasting::GoodTillCancel });
            return;
        }
        let is_rest = self.running.as_ref().is_some_and(|run| {
            let by_number = run.order_ref == Some(order_ref);
            let by_time = run.order_ref.is_none() && run.time_ns == event.time_ns;
            let reaches = run.side == side && side.accepts(price, run.worst);
            (by_number || by_time) && reaches && is_one_order(run.size, size)
        });
        if is_rest && let Some(run) = self.running.take() {
            self.sweep(run, Some((order_ref, price, size)));
            return;
        }
        self.end_runs();
        self.push(event, Action::Rest { order_ref, side, price, size, origin: Origin::Added });
    }

    /// Whether the event may belong to the run before it.
    fn continues_run(&self, event: &HistoryEvent) -> bool {
        match event.kind {
            HistoryKind::Execute { .. } | HistoryKind::Trade { .. } | HistoryKind::AuctionTrade { .. } => true,
            // Decided when the order is known, in `add`.
            HistoryKind::Add { .. } => self.uncrossing.is_none(),
            _ => false,
        }
    }

    fn execute(&mut self, event: &HistoryEvent, maker: u64, size: SizeUnits, price: Option<PriceUnits>, taker: Option<u64>) {
        let Some(size) = self.size(size) else { return };
        let name = self.names[&maker];
        let side = name.side.opposite();
        let price = match price.map(|price| self.loaded.scale.ticks_and_lots.ticks(price)) {
            None => name.price,
            Some(Ok(price)) => price,
            Some(Err(_)) => {
                self.plan.left_out.off_scale += 1;
                return;
            }
        };
        let belongs = self.running.as_ref().is_some_and(|run| {
            let improves = side.opposite().is_better(price, run.worst);
            let same = taker.is_some() || (run.time_ns == event.time_ns && !improves);
            run.side == side && run.order_ref == taker && same && is_one_order(run.size, size)
        });
        if !belongs {
            self.end_runs();
        }
        let at = self.plan.fills.len();
        let run = self.running.get_or_insert(Running {
            time_ns: event.time_ns,
            index: event.index,
            order_ref: taker,
            side,
            worst: price,
            size: SizeLots::ZERO,
            fills: at..at,
        });
        if side.opposite().is_better(run.worst, price) {
            run.worst = price;
        }
        run.size += size;
        run.fills.end += 1;
        self.plan.fills.push(RecordedFill { maker, price, size, origin: name.origin });
    }

    fn nameless_trade(&mut self, event: &HistoryEvent, price: PriceUnits, size: SizeUnits) {
        if self.is_bitstamp() {
            self.plan.messages.tape_trades += 1;
            self.end_runs();
            let price = self.loaded.scale.ticks_and_lots.ticks(price).ok();
            if let Some(size) = self.size(size) {
                self.push(event, Action::Tape { price, size });
            }
            return;
        }
        self.plan.messages.hidden_executions += 1;
        if self.running.as_ref().is_some_and(|run| run.time_ns != event.time_ns) {
            self.end_runs();
        }
    }

    fn auction_trade(&mut self, event: &HistoryEvent, price: PriceUnits, size: SizeUnits, pair: RecordedPair) {
        let Some((price, size)) = self.price_and_size(price, size) else { return };
        if self.running.is_some() || self.uncrossing.as_ref().is_some_and(|uncrossing| uncrossing.price != price) {
            self.end_runs();
        }
        let at = self.plan.pairs.len();
        let uncrossing = self.uncrossing.get_or_insert(Uncrossing {
            time_ns: event.time_ns,
            index: event.index,
            price,
            size: SizeLots::ZERO,
            pairs: at..at,
        });
        uncrossing.size += size;
        uncrossing.pairs.end += 1;
        self.plan.pairs.push(RecordedPair { size, ..pair });
    }

    fn end_runs(&mut self) {
        if let Some(run) = self.running.take() {
            self.sweep(run, None);
        }
        if let Some(Uncrossing { time_ns, index, price, size, pairs }) = self.uncrossing.take() {
            self.plan.steps.push(Step { time_ns, index, action: Action::Uncross { price, size, pairs } });
            self.phase = if self.phase == CallPhase::Opening { CallPhase::Continuous } else { CallPhase::Done };
        }
    }

    fn sweep(&mut self, run: Running, rest: Option<(u64, PriceTicks, SizeLots)>) {
        let (order_ref, limit, rest) = match rest {
            Some((order_ref, price, size)) => (Some(order_ref), price, size),
            None => (run.order_ref, run.worst, SizeLots::ZERO),
        };
        let aggressor = Aggressor { order_ref, side: run.side, limit, size: run.size + rest, rest, fills: run.fills };
        self.plan.steps.push(Step { time_ns: run.time_ns, index: run.index, action: Action::Sweep(aggressor) });
    }

    fn follow_timetable(&mut self, event: &HistoryEvent) {
        let closing = self.loaded.format == Format::Sse && event.time_ns >= SSE_CLOSING_CALL_NS;
        if closing && matches!(self.phase, CallPhase::Opening | CallPhase::Continuous) {
            self.end_runs();
            self.phase = CallPhase::Closing;
            self.plan.steps.push(Step { time_ns: SSE_CLOSING_CALL_NS, index: event.index, action: Action::CollectForClose });
        }
    }
}
