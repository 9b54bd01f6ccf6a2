//! Orders as rows of bytes, and what came of them as rows of bytes: what numpy's structured arrays are.
//!
//! The rows travel as Python's own bytes, so the extension needs no library of arrays and one wheel serves every version of numpy.
//! All rows are read before the first one takes effect: a row that is no order ends the call, and nothing happened.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use walras_types::{
    AccountId, Amendment, ClientOrderId, ContentDigest, InstrumentId, OrderTerms, OrderType, PostOnly, PriceTicks, RejectReason,
    Side, SizeLots, TimeNs, Trail,
};
use walras_wire::{
    AmendOrder, CancelOrder, Command, Event, InstrumentEvent, InvalidCommand, MassCancel, NewOrder, OrderCommand, OrderEvent,
    Traded, VenueCommand,
};

use super::PyVenue;
use super::events::Tally;
use super::terms;

/// Outcomes, and where asked for trades, events and best prices: each a bytearray of rows.
pub(crate) type Columns<'py> =
    (Bound<'py, PyByteArray>, Option<Bound<'py, PyByteArray>>, Option<Bound<'py, PyByteArray>>, Option<Bound<'py, PyByteArray>>);

const ORDER_BYTES: usize = 80;
const OUTCOME_BYTES: usize = 32;
const TRADE_BYTES: usize = 120;
const EVENT_BYTES: usize = 88;
const BEST_BYTES: usize = 32;

/// Bytes of each kind of row, by which `walras/_arrays.py` checks its own.
#[pyfunction]
pub(crate) fn layout() -> [usize; 5] {
    [ORDER_BYTES, OUTCOME_BYTES, TRADE_BYTES, EVENT_BYTES, BEST_BYTES]
}

/// Rows between two looks whether Ctrl-C was pressed.
const ROWS_PER_LOOK: usize = 1 << 18;

struct Row<'a>(&'a [u8; ORDER_BYTES]);

impl Row<'_> {
    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    fn u8(&self, at: usize) -> u8 {
        self.0[at]
    }

    fn time_ns(&self) -> u64 {
        self.u64(0)
    }

    fn instrument(&self) -> u32 {
        self.u32(68)
    }

    fn name(&self) -> ClientOrderId {
        ClientOrderId(self.u64(8))
    }

    /// A command that the engine refuses: what is out of its range is for the engine to say, row by row, as over the wire.
    fn refused(&self, reason: RejectReason) -> Command {
        Command::Invalid(InvalidCommand {
            account: Some(AccountId(self.u32(64))),
            instrument: Some(InstrumentId(self.instrument())),
            client_order_id: Some(self.name()),
            reason,
            content: ContentDigest::of_bytes(&[]),
            name: None,
        })
    }

    fn price(&self, at: usize) -> Result<PriceTicks, RejectReason> {
        PriceTicks::new(self.u64(at) as i64).ok_or(RejectReason::PriceOutOfRange)
    }

    /// A trailing stop, whose distance is in the column of the trigger.
    fn trailing(&self, kind: u8, price: Result<PriceTicks, RejectReason>) -> Result<OrderType, RejectReason> {
        let distance = u32::try_from(self.u64(32)).map_err(|_| RejectReason::TrailInvalid)?;
        let trail = if kind < 12 { Trail::Ticks(distance) } else { Trail::Ppm(distance) };
        match kind % 2 {
            0 => Ok(OrderType::TrailingStop { trail }),
            _ => Ok(OrderType::TrailingStopLimit { trail, price: price? }),
        }
    }

    /// Zero is "as it is".
    fn optional<T>(&self, at: usize, read: impl Fn(u64) -> Option<T>, reason: RejectReason) -> Result<Option<T>, RejectReason> {
        match self.u64(at) {
            0 => Ok(None),
            value => read(value).map(Some).ok_or(reason),
        }
    }

    /// The row as a command; an error names the column that has no meaning.
    fn command(&self) -> Result<Command, &'static str> {
        let (account, instrument) = (AccountId(self.u32(64)), InstrumentId(self.instrument()));
        let side = terms::side_of(self.u8(73));
        Ok(match self.u8(72) {
            kind @ (0 | 1 | 4 | 5 | 8..=13) => {
                let side = side.ok_or("side: give 0 (buy) or 1 (sell)")?;
                let tif = self.u8(74);
                let tif = if kind == 1 && tif == 0 { 3 } else { tif };
                let time_in_force = terms::time_in_force_of(tif, self.u64(40)).ok_or("tif: give 0 to 4 (walras.TIMES)")?;
                let post_only = terms::post_only_of(self.u8(75)).ok_or("post_only: give 0 to 2 (walras.POST_ONLY)")?;
                let self_trade = terms::self_trade_of(self.u8(76)).ok_or("self_trade: give 0 to 4 (walras.SELF_TRADE)")?;
                let peak = Some(self.u64(48)).filter(|&peak| peak > 0).map(SizeLots::new);
                let display = terms::display(peak, self.u8(77) > 0).ok_or("hidden: an order has a peak or is hidden, not both")?;
                let min_size = Some(self.u64(56)).filter(|&size| size > 0).map(SizeLots::new);
                let (size, price, trigger) = (SizeLots::order_size(self.u64(24)), self.price(16), self.price(32));
                let order_type = match kind {
                    0 => price.map(|price| OrderType::Limit { price, post_only }),
                    1 => Ok(OrderType::Market),
                    4 => trigger.map(|trigger| OrderType::Stop { trigger }),
                    5 => trigger.and_then(|trigger| Ok(OrderType::StopLimit { trigger, price: price? })),
                    8 => trigger.map(|trigger| OrderType::TakeProfit { trigger }),
                    10..=13 => self.trailing(kind, price),
                    _ => trigger.and_then(|trigger| Ok(OrderType::TakeProfitLimit { trigger, price: price? })),
                };
                if post_only != PostOnly::Off && kind != 0 {
                    return Err("post_only: it goes with limit orders; give 0");
                }
                match (order_type, size) {
                    (Ok(order_type), Some(size)) => {
                        let terms = OrderTerms { side, size, order_type, time_in_force, display, min_size, self_trade };
                        Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id: self.name(), terms }))
                    }
                    (Err(reason), _) => self.refused(reason),
                    (Ok(_), None) => self.refused(RejectReason::SizeOutOfRange),
                }
            }
            2 => Command::Order(OrderCommand::Cancel(CancelOrder { account, instrument, client_order_id: self.name() })),
            3 => match self.amendment() {
                Ok(amendment) => Command::Order(OrderCommand::Amend(AmendOrder { account, instrument, amendment })),
                Err(reason) => self.refused(reason),
            },
            6 => {
                let instrument = Some(instrument).filter(|instrument| instrument.0 != u32::MAX);
                if side.is_none() && self.u8(73) != u8::MAX {
                    return Err("side: give 0 (buy), 1 (sell) or 255 (both)");
                }
                Command::Order(OrderCommand::MassCancel(MassCancel { account, instrument, side }))
            }
            7 => Command::Venue(VenueCommand::Tick),
            _ => return Err("kind: give 0 to 13 (walras.KINDS)"),
        })
    }

    fn amendment(&self) -> Result<Amendment, RejectReason> {
        let price = |value: u64| PriceTicks::new(value as i64);
        Ok(Amendment {
            client_order_id: self.name(),
            price: self.optional(16, price, RejectReason::PriceOutOfRange)?,
            trigger: self.optional(32, price, RejectReason::PriceOutOfRange)?,
            size: self.optional(24, SizeLots::order_size, RejectReason::SizeOutOfRange)?,
        })
    }
}

/// Rows as they are written; numbers are little endian.
#[derive(Default)]
struct Rows(Vec<u8>);

impl Rows {
    fn u64s(&mut self, values: &[u64]) {
        values.iter().for_each(|value| self.0.extend_from_slice(&value.to_le_bytes()));
    }

    fn u32s(&mut self, values: &[u32]) {
        values.iter().for_each(|value| self.0.extend_from_slice(&value.to_le_bytes()));
    }

    fn bytes(&mut self, values: &[u8]) {
        self.0.extend_from_slice(values);
    }

    fn outcome(&mut self, order_id: u64, tally: &Tally) {
        self.u64s(&[order_id, tally.filled, tally.open]);
        self.u32s(&[tally.trade_count, u32::from(tally.rejected.map_or(0, RejectReason::number))]);
    }

    fn trade(&mut self, row: u64, time_ns: u64, trade: &Traded) {
        let Traded { maker, taker, .. } = trade;
        self.u64s(&[
            row,
            time_ns,
            trade.trade_id.0,
            trade.price.get() as u64,
            trade.size.get(),
            maker.order_id.0,
            taker.order_id.0,
        ]);
        self.u64s(&[maker.client_order_id.0, taker.client_order_id.0, maker.open.get(), taker.open.get()]);
        self.u64s(&[maker.fee as u64, taker.fee as u64]);
        self.u32s(&[trade.instrument.0, maker.account.0, taker.account.0]);
        self.bytes(&[trade.taker_side as u8, 0, 0, 0]);
    }

    fn event(&mut self, row: u64, time_ns: u64, fields: EventFields) {
        let EventFields { kind, instrument, account, side, reason, order, price, sizes } = fields;
        self.u64s(&[row, time_ns, order.0, order.1, price as u64, sizes[0], sizes[1], sizes[2]]);
        self.u32s(&[instrument, account, u32::from(reason)]);
        self.bytes(&[kind, side]);
        self.bytes(&[0; 10]);
    }
}

/// What a row of an event has; zero, and of ids the largest number, is nothing.
#[derive(Default)]
struct EventFields {
    kind: u8,
    instrument: u32,
    account: u32,
    side: u8,
    reason: u16,
    /// Order id, client order id.
    order: (u64, u64),
    price: i64,
    /// Size, open, shown.
    sizes: [u64; 3],
}

fn event_fields(event: &Event) -> EventFields {
    const NOBODY: u32 = u32::MAX;
    let price = |price: Option<PriceTicks>| price.map_or(0, PriceTicks::get);
    let none = EventFields { instrument: NOBODY, account: NOBODY, side: u8::MAX, ..EventFields::default() };
    match event {
        Event::Rejected(e) => EventFields {
            kind: 0,
            instrument: e.instrument.map_or(NOBODY, |instrument| instrument.0),
            account: e.account.map_or(NOBODY, |account| account.0),
            reason: e.reason.number(),
            order: (0, e.client_order_id.map_or(0, |name| name.0)),
            ..none
        },
        Event::Order(OrderEvent::Accepted(e)) => EventFields {
            kind: 1,
            instrument: e.instrument.0,
            account: e.account.0,
            side: e.side as u8,
            reason: 0,
            order: (e.order_id.0, e.client_order_id.0),
            price: price(e.price),
            sizes: [e.size.get(), e.resting.open.get(), e.resting.shown.get()],
        },
        Event::Order(OrderEvent::Amended(e)) => EventFields {
            kind: 2,
            instrument: e.instrument.0,
            account: e.account.0,
            side: e.side as u8,
            reason: e.priority as u16,
            order: (e.order_id.0, e.client_order_id.0),
            price: price(e.price),
            sizes: [0, e.resting.open.get(), e.resting.shown.get()],
        },
        Event::Order(OrderEvent::Traded(e)) => EventFields {
            kind: 3,
            instrument: e.instrument.0,
            account: e.maker.account.0,
            side: e.taker_side.opposite() as u8,
            reason: 0,
            order: (e.maker.order_id.0, e.maker.client_order_id.0),
            price: e.price.get(),
            sizes: [e.size.get(), e.maker.open.get(), 0],
        },
        Event::Order(OrderEvent::Cancelled(e)) => EventFields {
            kind: 4,
            instrument: e.instrument.0,
            account: e.account.0,
            reason: e.reason as u16,
            order: (e.order_id.0, e.client_order_id.0),
            sizes: [e.open.get(), 0, 0],
            ..none
        },
        Event::Order(OrderEvent::Reduced(e)) => EventFields {
            kind: 5,
            instrument: e.instrument.0,
            account: e.account.0,
            order: (e.order_id.0, e.client_order_id.0),
            sizes: [e.by.get(), e.resting.open.get(), e.resting.shown.get()],
            ..none
        },
        Event::Order(OrderEvent::Replenished(e)) => {
            EventFields { kind: 6, instrument: e.instrument.0, order: (e.order_id.0, 0), sizes: [0, 0, e.shown.get()], ..none }
        }
        Event::Order(OrderEvent::Triggered(e)) => EventFields {
            kind: 7,
            instrument: e.instrument.0,
            account: e.account.0,
            side: e.side as u8,
            reason: 0,
            order: (e.order_id.0, e.client_order_id.0),
            price: e.price.get(),
            sizes: [0, e.resting.open.get(), e.resting.shown.get()],
        },
        Event::Instrument(InstrumentEvent::PhaseChanged(e)) => {
            EventFields { kind: 8, instrument: e.instrument.0, reason: e.phase as u16, ..none }
        }
        Event::Instrument(InstrumentEvent::Uncrossed(e)) => {
            EventFields { kind: 9, instrument: e.instrument.0, price: price(e.price), sizes: [e.volume.get(), 0, 0], ..none }
        }
        // No order causes another one.
        _ => EventFields { kind: 255, ..none },
    }
}

/// Time, the instrument that the row names, and the command.
pub(super) type Parsed = (TimeNs, InstrumentId, Command);

pub(super) fn parse(venue: &PyVenue, orders: &[u8]) -> PyResult<Vec<Parsed>> {
    let (rows, rest) = orders.as_chunks::<ORDER_BYTES>();
    if !rest.is_empty() {
        return Err(PyValueError::new_err(format!(
            "rows of {ORDER_BYTES} bytes are expected: give an array of walras.ORDER_DTYPE"
        )));
    }
    let mut last = venue.engine.time();
    let mut commands = Vec::with_capacity(rows.len());
    for (number, row) in rows.iter().enumerate() {
        let row = Row(row);
        let wrong = |what: &str| PyValueError::new_err(format!("row {number}, column {what}"));
        // Zero is the time of the row before.
        let time = if row.time_ns() == 0 { last } else { TimeNs(row.time_ns()) };
        if time < last {
            return Err(wrong(&format!("time_ns: {time} is before {last}: sort the rows by time")));
        }
        last = time;
        commands.push((time, InstrumentId(row.instrument()), row.command().map_err(wrong)?));
    }
    Ok(commands)
}

struct Wanted {
    trades: Option<Rows>,
    events: Option<Rows>,
    best: Option<Rows>,
}

/// See `walras.Venue.run`.
pub(crate) fn run<'py>(
    venue: &mut PyVenue,
    py: Python<'py>,
    orders: &[u8],
    (trades, events, best): (bool, bool, bool),
) -> PyResult<Columns<'py>> {
    let commands = parse(venue, orders)?;
    let some = |is_wanted: bool| is_wanted.then(Rows::default);
    let mut wanted = Wanted { trades: some(trades), events: some(events), best: some(best) };
    let mut outcomes = Rows(Vec::with_capacity(commands.len() * OUTCOME_BYTES));
    for (part, rows) in commands.chunks(ROWS_PER_LOOK).enumerate() {
        py.detach(|| apply(venue, (part * ROWS_PER_LOOK) as u64, rows, &mut outcomes, &mut wanted));
        py.check_signals()?;
    }
    let array = |rows: &Rows| PyByteArray::new(py, &rows.0);
    let Wanted { trades, events, best } = &wanted;
    Ok((array(&outcomes), trades.as_ref().map(array), events.as_ref().map(array), best.as_ref().map(array)))
}

fn apply(venue: &mut PyVenue, first: u64, commands: &[Parsed], outcomes: &mut Rows, wanted: &mut Wanted) {
    for (row, (time, instrument, command)) in (first..).zip(commands) {
        venue.events.clear();
        let order_id = venue.apply(*time, command).0;
        let mut tally = Tally::default();
        for event in &venue.events {
            tally.see(order_id, event);
            if let (Some(trades), Event::Order(OrderEvent::Traded(trade))) = (&mut wanted.trades, event) {
                trades.trade(row, time.0, trade);
            }
            if let Some(events) = &mut wanted.events {
                events.event(row, time.0, event_fields(event));
            }
        }
        outcomes.outcome(order_id, &tally);
        if let Some(best) = &mut wanted.best {
            let level = |side| {
                venue.engine.best_level(*instrument, side).map_or([0, 0], |level| [level.price.get() as u64, level.shown.get()])
            };
            best.u64s(&level(Side::Buy));
            best.u64s(&level(Side::Sell));
        }
    }
}
