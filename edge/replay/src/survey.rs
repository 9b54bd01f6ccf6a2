//! The first reading of a file: whether it is sound, which instruments it holds, and how the orders of one of them end.
//!
//! The second reading needs two facts in advance. *Which orders the file names without having added them*: they rested before the
//! file begins, so they are made up. *Whether the file names a resting order again*: such an order is not gone, whatever other
//! lines say; see [`crate::record`].

use std::collections::{BTreeMap, HashMap};

use walras_market_history::sse::{SseMessage, SseReader};
use walras_market_history::{Format, HistoryEvent, HistoryKind, OrderRef, PriceUnits, SizeUnits, Stated};

use crate::error::ReplayError;
use crate::options::{Progress, Stage};
use crate::source::{Order, Source, concerns};

/// How often progress is reported, in messages.
const PROGRESS_STEP: u64 = 1 << 16;
/// Price units of a dollar and of a cent in NASDAQ's files, whose price may be finer only below a dollar.
const DOLLAR_UNITS: i64 = 10_000;
const CENT_UNITS: i64 = 100;

/// An order that is named and was not added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unborn {
    pub(crate) stated: Stated,
    pub(crate) size: u64,
}

/// An order that the file added and does not close: what is left of it by the file, and the message that names it last.
#[derive(Clone, Copy, Debug)]
struct Life {
    open: u64,
    named_last: u64,
}

/// How the orders of an instrument begin and end in the file.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    pub(crate) unborn: BTreeMap<u64, Unborn>,
    open_ended: HashMap<u64, Life>,
}

impl Lives {
    /// Whether the file names a standing order after this message. One that it closes stands until then.
    pub(crate) fn is_named_after(&self, order_ref: u64, index: u64) -> bool {
        self.open_ended.get(&order_ref).is_none_or(|life| life.named_last > index)
    }

    #[cfg(test)]
    pub(crate) fn never_named_again(orders: std::ops::Range<u64>) -> Self {
        let open_ended = orders.map(|order_ref| (order_ref, Life { open: 1, named_last: 0 })).collect();
        Self { unborn: BTreeMap::new(), open_ended }
    }

    fn follow(&mut self, format: Format, event: &HistoryEvent) {
        let lives = &mut self.open_ended;
        let named_last = event.index;
        match event.kind {
            HistoryKind::Add { order_ref, size, .. } => {
                lives.insert(order_ref.0, Life { open: size.0, named_last });
            }
            HistoryKind::Replace { old_ref, new_ref, size, .. } => {
                lives.remove(&old_ref.0);
                lives.insert(new_ref.0, Life { open: size.0, named_last });
            }
            HistoryKind::Reduce { order_ref, size, stated } | HistoryKind::Execute { order_ref, size, stated } => {
                self.shrink(format, order_ref, size, stated, named_last);
            }
            HistoryKind::ExecuteAtPrice { order_ref, size, .. } => self.shrink(format, order_ref, size, None, named_last),
            HistoryKind::SetOpenSize { order_ref, size, stated } => self.shrink(format, order_ref, size, stated, named_last),
            HistoryKind::Delete { order_ref, open_size, stated } => {
                self.shrink(format, order_ref, open_size.unwrap_or_default(), stated, named_last);
                if !is_bitstamp(format) {
                    self.open_ended.remove(&order_ref.0);
                }
            }
            HistoryKind::Trade { .. }
            | HistoryKind::AuctionTrade { .. }
            | HistoryKind::Snapshot { .. }
            | HistoryKind::Phase(_)
            | HistoryKind::Directory { .. }
            | HistoryKind::Submit { .. }
            | HistoryKind::Move { .. } => {}
        }
    }

    fn shrink(&mut self, format: Format, order_ref: OrderRef, size: SizeUnits, stated: Option<Stated>, named_last: u64) {
        if let Some(life) = self.open_ended.get_mut(&order_ref.0) {
            // Bitstamp says what is left, so its orders end with their deletion; they are kept to know that they were added.
            if is_bitstamp(format) {
                return;
            }
            *life = Life { open: life.open.saturating_sub(size.0), named_last };
            if life.open == 0 {
                self.open_ended.remove(&order_ref.0);
            }
            return;
        }
        if let Some(stated) = stated
            && size.0 > 0
        {
            let unborn = self.unborn.entry(order_ref.0).or_insert(Unborn { stated, size: 0 });
            // Bitstamp says what is left, the first time the most; the others how much less.
            unborn.size = if is_bitstamp(format) { unborn.size.max(size.0) } else { unborn.size.saturating_add(size.0) };
        }
    }
}

pub(crate) fn is_bitstamp(format: Format) -> bool {
    matches!(format, Format::BitstampLog | Format::BitstampOrders)
}

/// Whether a format names orders that a survey must follow.
fn has_lives(format: Format) -> bool {
    matches!(format, Format::Lobster | Format::Itch) || is_bitstamp(format)
}

/// An instrument of a file.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct InstrumentReport {
    /// Its number in the file.
    pub instrument: u32,
    /// Its name, where the file says it.
    pub symbol: Option<String>,
    /// Messages that concern its book.
    pub messages: u64,
}

impl std::fmt::Display for InstrumentReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.symbol {
            Some(symbol) => f.write_str(symbol),
            None => write!(f, "{}", self.instrument),
        }
    }
}

/// Which instrument of a file.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    /// The only one.
    Only,
    Number(u32),
    Symbol(String),
}

/// What the first reading found.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub(crate) instrument: Option<u32>,
    pub(crate) lives: Lives,
    pub(crate) messages: u64,
    pub(crate) events: u64,
    pub(crate) snapshots: u64,
    pub(crate) out_of_order: u64,
    pub(crate) previous_close: Option<PriceUnits>,
    /// Orders below a dollar whose price is no whole number of cents, and all orders.
    orders_finer_than_cents: u64,
    orders: u64,
    symbols: HashMap<u32, String>,
    counts: BTreeMap<u32, u64>,
}

impl Survey {
    pub(crate) fn read(
        source: &Source,
        format: Format,
        wanted: &Wanted,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, ReplayError> {
        let mut survey = Self { previous_close: previous_close(source, format)?, ..Self::default() };
        if let Wanted::Number(number) = wanted {
            survey.instrument = Some(*number);
        }
        let mut messages = source.messages(format)?;
        let mut order = Order::default();
        let mut last = (None, 0);
        for event in messages.by_ref() {
            let event = event?;
            survey.messages += 1;
            if survey.messages.is_multiple_of(PROGRESS_STEP) {
                progress(Progress { stage: Stage::Reading, done: survey.messages, total: None });
            }
            survey.meet(&event, wanted);
            let is_ours = survey.instrument.map_or(event.instrument == 0, |instrument| concerns(&event, instrument));
            if !is_ours {
                continue;
            }
            if matches!(event.kind, HistoryKind::Snapshot { .. }) {
                survey.snapshots += 1;
                continue;
            }
            survey.events += 1;
            survey.out_of_order += u64::from((event.sequence, event.time_ns) < last);
            last = (event.sequence, event.time_ns);
            if let Some(event) = order.take(event)? {
                survey.follow(format, &event);
            }
        }
        while let Some(event) = order.rest() {
            survey.follow(format, &event);
        }
        survey.messages += messages.skipped();
        progress(Progress { stage: Stage::Reading, done: survey.messages, total: Some(survey.messages) });
        Ok(survey)
    }

    /// Counts an event for its instrument, which may be the one that is wanted.
    fn meet(&mut self, event: &HistoryEvent, wanted: &Wanted) {
        if let HistoryKind::Directory { symbol } = event.kind {
            let symbol = String::from_utf8_lossy(&symbol).trim_end().to_owned();
            if matches!(wanted, Wanted::Symbol(name) if *name == symbol) {
                self.instrument = Some(event.instrument);
            }
            self.symbols.insert(event.instrument, symbol);
            return;
        }
        if matches!(event.kind, HistoryKind::Phase(_)) {
            return;
        }
        *self.counts.entry(event.instrument).or_default() += 1;
        if matches!(wanted, Wanted::Only) {
            self.instrument.get_or_insert(event.instrument);
        }
    }

    fn follow(&mut self, format: Format, event: &HistoryEvent) {
        if let HistoryKind::Add { price, .. } | HistoryKind::Replace { price, .. } = event.kind {
            self.orders += 1;
            self.orders_finer_than_cents += u64::from(price.0 < DOLLAR_UNITS && price.0 % CENT_UNITS != 0);
        }
        if has_lives(format) {
            self.lives.follow(format, event);
        }
    }

    /// Whether one in a thousand of the orders has a price that only stocks below a dollar have.
    pub(crate) fn is_below_a_dollar(&self) -> bool {
        self.orders_finer_than_cents > self.orders / 1_000
    }

    pub(crate) fn symbol(&self, instrument: u32) -> Option<&str> {
        self.symbols.get(&instrument).map(String::as_str).filter(|symbol| !symbol.is_empty())
    }

    /// All instruments, the busiest first.
    pub(crate) fn instruments(&self) -> Vec<InstrumentReport> {
        let report = |(&instrument, &messages): (&u32, &u64)| {
            let symbol = self.symbol(instrument).map(str::to_owned);
            InstrumentReport { instrument, symbol, messages }
        };
        let mut instruments: Vec<_> = self.counts.iter().map(report).collect();
        instruments.sort_by_key(|instrument| (std::cmp::Reverse(instrument.messages), instrument.instrument));
        instruments
    }
}

/// The previous day's close, which is in the Shanghai log's snapshots and in no event.
fn previous_close(source: &Source, format: Format) -> Result<Option<PriceUnits>, ReplayError> {
    let (Format::Sse, Some(bytes)) = (format, source.bytes()?) else { return Ok(None) };
    let mut reader = SseReader::new(bytes);
    while let Some(message) = reader.next_message() {
        let (_, timed) = message?;
        if let SseMessage::Snapshot { previous_close, .. } = timed.message
            && previous_close.0 > 0
        {
            return Ok(Some(previous_close));
        }
    }
    Ok(None)
}
