//! Converts events into steps: incoming orders are reconstructed from their executions.
//!
//! *Aggressors.* Feeds report the executions of resting orders, not the incoming order. NASDAQ reports an incoming order as one
//! execution message for each resting order it meets, back to back and with one nanosecond stamp; so executions that follow each
//! other, with one stamp, on one side, at prices that never improve, are one aggressor (hidden executions may stand between).
//! Shanghai names both orders: a run of trades with one aggressor is one aggressor. Its limit is the worst price of the run, and it
//! is immediate-or-cancel, unless its rest is added next (Shanghai: under the aggressor's number; NASDAQ: at once, on its side, at
//! a price that reaches the run's worst): then it is good-till-cancel at that price, and the book must find out how much rests.
//!
//! *Orders never added.* LOBSTER files begin at the opening with an empty book, and show orders only within so many levels of the
//! best. An order that is named without having been added is made up as soon as the file adds an order of a higher number (numbers
//! grow in the order in which orders enter), at the latest when it is first named, with all the size that the file takes off it.
//! NASDAQ's own format names neither side nor price then, so there such messages are left out and counted.
//!
//! *Orders never deleted*: [`crate::record`].
//!
//! *Shanghai's day* has a timetable, not messages: orders collect from the start and again from 14:57:00, the first message of an
//! auction's trades uncrosses.

use std::collections::{BTreeMap, VecDeque};

use walras_market_history::{Format, HistoryEvent, HistoryKind, Lasting, OrderRef, PriceUnits, SizeUnits, Stated};
use walras_types::{PriceTicks, Side, SizeLots};

use crate::error::ReplayError;
use crate::load::{Loaded, Scale};
use crate::plan::{
    Action, Aggressor, AuctionReference, MessageCounts, Origin, PlanCounts, Presumption, RecordedFill, RecordedPair, Step,
};
use crate::record::{Proof, Record};
use crate::source::Events;
use crate::survey::{Unborn, is_bitstamp};

/// When Shanghai's closing call begins, since midnight there.
pub const SSE_CLOSING_CALL_NS: u64 = (14 * 60 + 57) * 60 * 1_000_000_000;

impl AuctionReference {
    /// The rule for a history: the requested price, otherwise Shanghai's rule.
    pub(crate) fn of(loaded: &Loaded) -> Self {
        match loaded.reference_price.and_then(|price| loaded.scale.ticks_and_lots.ticks(price).ok()) {
            Some(price) => AuctionReference::Price(price),
            None => AuctionReference::Middle,
        }
    }
}

/// The steps of a history, read as they are taken.
pub struct Steps {
    events: Events,
    builder: Builder,
    ended: bool,
}

impl Steps {
    /// From its beginning.
    pub fn new(loaded: &Loaded) -> Result<Self, ReplayError> {
        let format = loaded.format;
        let record = match format {
            Format::Lobster | Format::Itch => {
                let levels = loaded.levels.and_then(|levels| usize::try_from(levels).ok());
                Record::followed(loaded.lives.clone(), levels.filter(|_| format == Format::Lobster))
            }
            Format::Sse | Format::BitstampLog | Format::BitstampOrders | Format::Workload => Record::named(loaded.lives.clone()),
        };
        let snapshots = loaded.snapshot_count;
        let messages = MessageCounts { events: loaded.event_count + snapshots, snapshots, ..MessageCounts::default() };
        let mut builder = Builder {
            format,
            scale: loaded.scale,
            record,
            unborn: loaded.lives.unborn.clone(),
            running: None,
            uncrossing: None,
            phase: CallPhase::Opening,
            counts: PlanCounts { messages, ..PlanCounts::default() },
            ready: VecDeque::new(),
        };
        if format == Format::Sse {
            builder.ready.push_back(Step { time_ns: 0, index: 0, until: 0, action: Action::CollectForOpen });
        }
        Ok(Self { events: loaded.events()?, builder, ended: false })
    }

    /// Totals of the steps so far.
    #[must_use]
    pub fn counts(&self) -> &PlanCounts {
        &self.builder.counts
    }
}

impl Iterator for Steps {
    type Item = Result<Step, ReplayError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(step) = self.builder.ready.pop_front() {
                return Some(Ok(step));
            }
            if self.ended {
                return None;
            }
            match self.events.next() {
                Some(Ok(event)) => self.builder.take(&event),
                Some(Err(error)) => {
                    self.ended = true;
                    return Some(Err(error));
                }
                None => {
                    self.ended = true;
                    self.builder.end_runs();
                }
            }
        }
    }
}

/// Whether an order may be as large as both together.
fn is_one_order(size: SizeLots, more: SizeLots) -> bool {
    SizeLots::order_size(size.get() + more.get()).is_some()
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
    until: u64,
    order_ref: Option<u64>,
    side: Side,
    worst: PriceTicks,
    size: SizeLots,
    fills: Vec<RecordedFill>,
    gone: Vec<(usize, u64)>,
}

struct Uncrossing {
    time_ns: u64,
    index: u64,
    until: u64,
    price: PriceTicks,
    size: SizeLots,
    pairs: Vec<RecordedPair>,
}

struct Builder {
    format: Format,
    scale: Scale,
    record: Record,
    unborn: BTreeMap<u64, Unborn>,
    running: Option<Running>,
    uncrossing: Option<Uncrossing>,
    phase: CallPhase,
    counts: PlanCounts,
    ready: VecDeque<Step>,
}

impl Builder {
    fn take(&mut self, event: &HistoryEvent) {
        if !self.continues_run(event) {
            self.end_runs();
        }
        self.follow_timetable(event);
        match event.kind {
            HistoryKind::Add { order_ref, side, price, size } => {
                self.counts.messages.adds += 1;
                self.bear_older(order_ref.0, event);
                let Some((price, size)) = self.price_and_size(price, size) else { return };
                self.add(event, order_ref.0, side, price, size);
            }
            HistoryKind::Submit { order_ref, side, price, size, lasting } => {
                self.counts.messages.adds += 1;
                let Some((price, size)) = self.price_and_size(price, size) else { return };
                self.push(event, Action::Submit { order_ref: order_ref.0, side, price, size, lasting });
            }
            HistoryKind::Reduce { order_ref, size, stated } => {
                self.counts.messages.reduces += 1;
                if self.is_named(order_ref, event, stated) {
                    self.reduce(event, order_ref, size);
                }
            }
            HistoryKind::SetOpenSize { order_ref, size, .. } => {
                self.counts.messages.reduces += 1;
                if self.is_named(order_ref, event, None) {
                    let open = self.size_or_zero(size);
                    self.push(event, Action::SetOpen { order_ref: order_ref.0, open });
                }
            }
            HistoryKind::Delete { order_ref, open_size, .. } => {
                self.counts.messages.deletes += 1;
                if self.record.is_aside(order_ref.0) {
                    self.record.end(order_ref.0);
                } else if self.is_named(order_ref, event, None) {
                    self.shown(event, order_ref.0);
                    self.record.end(order_ref.0);
                    let open = open_size.map(|size| self.size_or_zero(size));
                    // A feed that reports no executions reports a filled order as deleted with nothing left.
                    let action = match open {
                        Some(open) if open.is_zero() && self.is_bitstamp() => Action::SetOpen { order_ref: order_ref.0, open },
                        _ => Action::Delete { order_ref: order_ref.0, open },
                    };
                    self.push(event, action);
                }
            }
            HistoryKind::Execute { order_ref, size, stated } => {
                self.counts.messages.executions += 1;
                if self.is_named(order_ref, event, stated) {
                    self.execute(event, order_ref.0, size, None, None);
                } else {
                    self.counts.left_out.unknown_executions += 1;
                }
            }
            HistoryKind::ExecuteAtPrice { order_ref, size, .. } => {
                // Not at its own price, so not by the visible book's rules: a cross, or a price improvement.
                self.counts.messages.others += 1;
                if self.is_named(order_ref, event, None) {
                    self.reduce(event, order_ref, size);
                }
            }
            HistoryKind::Trade { price, size, aggressor: Some(side), buy_ref: Some(buy), sell_ref: Some(sell) } => {
                self.counts.messages.executions += 1;
                let (taker, maker) = match side {
                    Side::Buy => (buy, sell),
                    Side::Sell => (sell, buy),
                };
                if self.is_named(maker, event, None) {
                    self.execute(event, maker.0, size, Some(price), Some(taker.0));
                } else {
                    self.counts.left_out.unknown_executions += 1;
                }
            }
            HistoryKind::Trade { price, size, .. } => self.nameless_trade(event, price, size),
            HistoryKind::AuctionTrade { price, size, buy_ref: Some(buy), sell_ref: Some(sell) } => {
                self.counts.messages.auction_trades += 1;
                self.auction_trade(event, price, size, RecordedPair { buy: buy.0, sell: sell.0, size: SizeLots::ZERO });
            }
            HistoryKind::AuctionTrade { .. } => {
                self.counts.messages.auction_trades += 1;
                self.counts.left_out.no_order += 1;
            }
            HistoryKind::Replace { old_ref, new_ref, price, size } => {
                self.counts.messages.replaces += 1;
                let side = self.record.find(old_ref.0).map(|order| order.side);
                if !self.is_named(old_ref, event, None) {
                    return;
                }
                let (Some(side), Some((price, size))) = (side, self.price_and_size(price, size)) else { return };
                self.record.end(old_ref.0);
                let proof = self.record.rest(new_ref.0, (side, price, size), Origin::Added, event.index);
                self.presume(event, new_ref.0, &proof);
                self.push(
                    event,
                    match proof.untrue {
                        None => Action::Replace { old_ref: old_ref.0, new_ref: new_ref.0, price, size },
                        Some(_) => Action::Delete { order_ref: old_ref.0, open: None },
                    },
                );
            }
            HistoryKind::Move { order_ref, price } => {
                self.counts.messages.replaces += 1;
                match self.scale.ticks_and_lots.ticks(price) {
                    Ok(price) => self.push(event, Action::Move { order_ref: order_ref.0, price }),
                    Err(_) => self.counts.left_out.off_scale += 1,
                }
            }
            HistoryKind::Snapshot { .. } | HistoryKind::Phase(_) | HistoryKind::Directory { .. } => {
                self.counts.messages.others += 1;
                self.counts.left_out.no_order += 1;
            }
        }
    }

    fn push(&mut self, event: &HistoryEvent, action: Action) {
        self.ready.push_back(Step { time_ns: event.time_ns, index: event.index, until: event.index, action });
    }

    /// A step that comes before the message that calls for it.
    fn push_before(&mut self, event: &HistoryEvent, action: Action) {
        let until = event.index.saturating_sub(1);
        self.ready.push_back(Step { time_ns: event.time_ns, index: event.index, until, action });
    }

    fn is_bitstamp(&self) -> bool {
        is_bitstamp(self.format)
    }

    fn size(&mut self, size: SizeUnits) -> Option<SizeLots> {
        let lots = self.scale.ticks_and_lots.lots(size).ok();
        self.counts.left_out.off_scale += u64::from(lots.is_none());
        lots
    }

    fn size_or_zero(&mut self, size: SizeUnits) -> SizeLots {
        if size.0 == 0 { SizeLots::ZERO } else { self.size(size).unwrap_or_default() }
    }

    fn price_and_size(&mut self, price: PriceUnits, size: SizeUnits) -> Option<(PriceTicks, SizeLots)> {
        let scale = self.scale.ticks_and_lots;
        let both = scale.ticks(price).ok().zip(scale.lots(size).ok());
        self.counts.left_out.off_scale += u64::from(both.is_none());
        both
    }

    /// Whether the order is in the book by now. One that can be made up is; one that was set aside, or stands at another price than
    /// the file says now, rests once more.
    fn is_named(&mut self, order_ref: OrderRef, event: &HistoryEvent, stated: Option<Stated>) -> bool {
        if self.format == Format::Workload {
            return true;
        }
        let stated = stated.and_then(|stated| Some((stated.side, self.scale.ticks_and_lots.ticks(stated.price).ok()?)));
        if let Some(order) = self.record.take_back(order_ref.0) {
            let (side, price) = stated.unwrap_or((order.side, order.price));
            self.rest_before(event, order_ref.0, (side, price, order.open), order.origin);
            return true;
        }
        if let Some(&order) = self.record.find(order_ref.0) {
            if let Some((side, price)) = stated.filter(|stated| self.record.follows() && *stated != (order.side, order.price))
                && self.record.take_out(order_ref.0).is_some()
            {
                self.end_runs();
                self.counts.set_aside += 1;
                let why = Presumption::SetAside { by: order_ref.0 };
                self.push_before(event, Action::Presume { order_ref: order_ref.0, why });
                self.rest_before(event, order_ref.0, (side, price, order.open), order.origin);
            }
            return true;
        }
        match self.unborn.remove(&order_ref.0) {
            Some(unborn) => self.bear(order_ref.0, &unborn, event),
            None => {
                self.counts.left_out.unknown_order += 1;
                false
            }
        }
    }

    /// Adds an order that rested before the current event.
    fn rest_before(
        &mut self,
        event: &HistoryEvent,
        order_ref: u64,
        (side, price, size): (Side, PriceTicks, SizeLots),
        origin: Origin,
    ) {
        self.end_runs();
        let proof = self.record.rest(order_ref, (side, price, size), origin, event.index);
        self.presume(event, order_ref, &proof);
        if proof.untrue.is_none() {
            self.push_before(event, Action::Rest { order_ref, side, price, size, origin });
        }
    }

    /// Adds the steps for the conclusions from a resting order.
    fn presume(&mut self, event: &HistoryEvent, by: u64, proof: &Proof) {
        self.counts.presumed_deleted += proof.gone.len() as u64;
        for &order_ref in &proof.gone {
            self.push_before(event, Action::Presume { order_ref, why: Presumption::Deleted });
        }
        let aside = proof.aside.map(|order_ref| (order_ref, by));
        let untrue = proof.untrue.map(|other| (by, other));
        if let Some((order_ref, by)) = aside.or(untrue) {
            self.counts.set_aside += 1;
            self.push_before(event, Action::Presume { order_ref, why: Presumption::SetAside { by } });
        }
    }

    /// Adds the steps for the conclusions from the existence of a line of this order.
    fn shown(&mut self, event: &HistoryEvent, order_ref: u64) {
        if let Some(&order) = self.record.find(order_ref).filter(|_| self.record.stands(order_ref)) {
            let gone = self.record.shown(order.side, order.price, event.index);
            self.presume(event, order_ref, &Proof { gone, ..Proof::default() });
        }
    }

    fn reduce(&mut self, event: &HistoryEvent, order_ref: OrderRef, size: SizeUnits) {
        self.shown(event, order_ref.0);
        if let Some(by) = self.size(size) {
            self.record.shrink(order_ref.0, by);
            self.push(event, Action::Reduce { order_ref: order_ref.0, by });
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
        self.counts.made_up += 1;
        self.rest_before(event, order_ref, (unborn.stated.side, price, size), Origin::MadeUp);
        true
    }

    /// An order that the file adds: the rest of the aggressor before it, or one of its own.
    fn add(&mut self, event: &HistoryEvent, order_ref: u64, side: Side, price: PriceTicks, size: SizeLots) {
        let rest = (side, price, size);
        if self.is_bitstamp() {
            self.record.rest(order_ref, rest, Origin::Added, event.index);
            self.push(event, Action::Submit { order_ref, side, price, size, lasting: Lasting::GoodTillCancel });
            return;
        }
        if self.unborn.remove(&order_ref).is_some() {
            self.record.will_be_named_again(order_ref);
        }
        if self.record.follows() && self.record.stands(order_ref) {
            // The book refuses it, and the first one stays.
            self.end_runs();
            self.push(event, Action::Rest { order_ref, side, price, size, origin: Origin::Added });
            return;
        }
        let is_rest = self.running.as_ref().is_some_and(|run| {
            let by_number = run.order_ref == Some(order_ref);
            let by_time = run.order_ref.is_none() && run.time_ns == event.time_ns;
            let reaches = run.side == side && side.accepts(price, run.worst);
            (by_number || by_time) && reaches && is_one_order(run.size, size)
        });
        if is_rest && let Some(run) = self.running.take() {
            self.rest_of(run, event, order_ref, rest);
            return;
        }
        self.end_runs();
        let proof = self.record.rest(order_ref, rest, Origin::Added, event.index);
        self.presume(event, order_ref, &proof);
        if proof.untrue.is_none() {
            self.shown(event, order_ref);
            self.push(event, Action::Rest { order_ref, side, price, size, origin: Origin::Added });
        }
    }

    /// Adds the rest of an aggressor. It proves that the orders which it reaches are gone; those that it traded with only after it.
    fn rest_of(&mut self, mut run: Running, event: &HistoryEvent, order_ref: u64, rest: (Side, PriceTicks, SizeLots)) {
        let mut proof = self.record.rest(order_ref, rest, Origin::Added, event.index);
        let last = run.fills.len().saturating_sub(1);
        let is_maker = |order: &u64| run.fills.iter().any(|fill| fill.maker == *order);
        let (met, gone): (Vec<u64>, Vec<u64>) = std::mem::take(&mut proof.gone).into_iter().partition(is_maker);
        self.counts.presumed_deleted += met.len() as u64;
        if let Some(order) = proof.aside.take_if(|order| is_maker(order)) {
            self.counts.set_aside += 1;
            run.gone.push((last, order));
        }
        run.gone.extend(met.into_iter().map(|order| (last, order)));
        self.presume(event, order_ref, &Proof { gone, ..proof });
        run.until = event.index;
        let (_, price, size) = rest;
        self.sweep(run, proof.untrue.is_none().then_some((order_ref, price, size)));
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
        let Some(&order) = self.record.find(maker) else { return };
        let side = order.side.opposite();
        let price = match price.map(|price| self.scale.ticks_and_lots.ticks(price)) {
            None => order.price,
            Some(Ok(price)) => price,
            Some(Err(_)) => {
                self.counts.left_out.off_scale += 1;
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
        let proof = self.record.executed(maker, event.index);
        self.record.shrink(maker, size);
        self.counts.presumed_deleted += proof.gone.len() as u64;
        self.counts.set_aside += u64::from(proof.aside.is_some());
        let run = self.running.get_or_insert(Running {
            time_ns: event.time_ns,
            index: event.index,
            until: event.index,
            order_ref: taker,
            side,
            worst: price,
            size: SizeLots::ZERO,
            fills: Vec::new(),
            gone: Vec::new(),
        });
        if side.opposite().is_better(run.worst, price) {
            run.worst = price;
        }
        run.until = event.index;
        run.size += size;
        let number = run.fills.len();
        run.gone.extend(proof.gone.into_iter().chain(proof.aside).map(|gone| (number, gone)));
        run.fills.push(RecordedFill { maker, price, size, origin: order.origin });
    }

    fn nameless_trade(&mut self, event: &HistoryEvent, price: PriceUnits, size: SizeUnits) {
        if self.is_bitstamp() {
            self.counts.messages.tape_trades += 1;
            self.end_runs();
            let price = self.scale.ticks_and_lots.ticks(price).ok();
            if let Some(size) = self.size(size) {
                self.push(event, Action::Tape { price, size });
            }
            return;
        }
        self.counts.messages.hidden_executions += 1;
        match &mut self.running {
            Some(run) if run.time_ns == event.time_ns => run.until = event.index,
            Some(_) => self.end_runs(),
            None => {}
        }
    }

    fn auction_trade(&mut self, event: &HistoryEvent, price: PriceUnits, size: SizeUnits, pair: RecordedPair) {
        let Some((price, size)) = self.price_and_size(price, size) else { return };
        if self.running.is_some() || self.uncrossing.as_ref().is_some_and(|uncrossing| uncrossing.price != price) {
            self.end_runs();
        }
        let uncrossing = self.uncrossing.get_or_insert(Uncrossing {
            time_ns: event.time_ns,
            index: event.index,
            until: event.index,
            price,
            size: SizeLots::ZERO,
            pairs: Vec::new(),
        });
        uncrossing.until = event.index;
        uncrossing.size += size;
        uncrossing.pairs.push(RecordedPair { size, ..pair });
    }

    fn end_runs(&mut self) {
        if let Some(run) = self.running.take() {
            self.sweep(run, None);
        }
        if let Some(Uncrossing { time_ns, index, until, price, size, pairs }) = self.uncrossing.take() {
            self.ready.push_back(Step { time_ns, index, until, action: Action::Uncross { price, size, pairs } });
            self.phase = if self.phase == CallPhase::Opening { CallPhase::Continuous } else { CallPhase::Done };
        }
    }

    fn sweep(&mut self, run: Running, rest: Option<(u64, PriceTicks, SizeLots)>) {
        let (order_ref, limit, rest) = match rest {
            Some((order_ref, price, size)) => (Some(order_ref), price, size),
            None => (run.order_ref, run.worst, SizeLots::ZERO),
        };
        let Running { time_ns, index, until, side, size, fills, gone, .. } = run;
        let step = |action| Step { time_ns, index, until, action };
        let presumed: Vec<Step> =
            gone.iter().map(|&(_, order_ref)| step(Action::Presume { order_ref, why: Presumption::Deleted })).collect();
        let aggressor = Aggressor { order_ref, side, limit, size: size + rest, rest, fills, gone };
        self.ready.push_back(step(Action::Sweep(aggressor)));
        self.ready.extend(presumed);
    }

    fn follow_timetable(&mut self, event: &HistoryEvent) {
        let closing = self.format == Format::Sse && event.time_ns >= SSE_CLOSING_CALL_NS;
        if closing && matches!(self.phase, CallPhase::Opening | CallPhase::Continuous) {
            self.end_runs();
            self.phase = CallPhase::Closing;
            let until = event.index.saturating_sub(1);
            self.ready.push_back(Step { time_ns: SSE_CLOSING_CALL_NS, index: event.index, until, action: Action::CollectForClose });
        }
    }
}
