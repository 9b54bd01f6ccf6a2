//! What came of a command, as Python sees it.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyType};
use walras_gateway::InstrumentScale;
use walras_types::{PriceTicks, RejectReason, SizeLots};
use walras_wire::order_entry::Filled;
use walras_wire::{CancelReason, Event, InstrumentEvent, OrderEvent, PhaseCause, Priority, Traded};

use super::terms::{PHASES, SIDES};

/// How the quantities of one instrument are written; the events of an order share it.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    pub(crate) scale: InstrumentScale,
    pub(crate) quote_decimals: u8,
}

/// A `decimal.Decimal` of this text.
pub(crate) fn decimal<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "decimal", "Decimal")?.call1((text,))
}

impl Units {
    pub(crate) fn price<'py>(&self, py: Python<'py>, ticks: PriceTicks) -> PyResult<Bound<'py, PyAny>> {
        decimal(py, &self.scale.price(ticks).to_string())
    }

    pub(crate) fn size<'py>(&self, py: Python<'py>, lots: SizeLots) -> PyResult<Bound<'py, PyAny>> {
        decimal(py, &self.scale.size(lots).to_string())
    }

    fn fee<'py>(&self, py: Python<'py>, units: i64) -> PyResult<Bound<'py, PyAny>> {
        decimal(py, &walras_gateway::Decimal::signed(units.into(), self.quote_decimals.into()).to_string())
    }
}

/// The units of every instrument, by its id.
pub(crate) type AllUnits = Arc<Vec<Units>>;

/// Two orders traded. In an auction the maker is the buy order.
#[pyclass(frozen, module = "walras._native")]
pub(crate) struct Trade {
    trade: Traded,
    time_ns: u64,
    units: AllUnits,
}

impl Trade {
    fn units(&self) -> &Units {
        &self.units[self.trade.instrument.0 as usize]
    }
}

#[pymethods]
impl Trade {
    #[getter]
    fn time_ns(&self) -> u64 {
        self.time_ns
    }
    #[getter]
    fn instrument(&self) -> u32 {
        self.trade.instrument.0
    }
    #[getter]
    fn trade_id(&self) -> u64 {
        self.trade.trade_id.0
    }
    #[getter]
    fn price_ticks(&self) -> i64 {
        self.trade.price.get()
    }
    #[getter]
    fn size_lots(&self) -> u64 {
        self.trade.size.get()
    }
    #[getter]
    fn price<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.units().price(py, self.trade.price)
    }
    #[getter]
    fn size<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.units().size(py, self.trade.size)
    }
    #[getter]
    fn taker_side(&self) -> &'static str {
        SIDES[self.trade.taker_side as usize]
    }
    #[getter]
    fn maker_account(&self) -> u32 {
        self.trade.maker.account.0
    }
    #[getter]
    fn taker_account(&self) -> u32 {
        self.trade.taker.account.0
    }
    #[getter]
    fn maker_order_id(&self) -> u64 {
        self.trade.maker.order_id.0
    }
    #[getter]
    fn taker_order_id(&self) -> u64 {
        self.trade.taker.order_id.0
    }
    #[getter]
    fn maker_client_order_id(&self) -> u64 {
        self.trade.maker.client_order_id.0
    }
    #[getter]
    fn taker_client_order_id(&self) -> u64 {
        self.trade.taker.client_order_id.0
    }
    #[getter]
    fn maker_open_lots(&self) -> u64 {
        self.trade.maker.open.get()
    }
    #[getter]
    fn taker_open_lots(&self) -> u64 {
        self.trade.taker.open.get()
    }
    #[getter]
    fn maker_fee_units(&self) -> i64 {
        self.trade.maker.fee
    }
    #[getter]
    fn taker_fee_units(&self) -> i64 {
        self.trade.taker.fee
    }
    #[getter]
    fn maker_fee<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.units().fee(py, self.trade.maker.fee)
    }
    #[getter]
    fn taker_fee<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.units().fee(py, self.trade.taker.fee)
    }
    fn __repr__(&self) -> String {
        let (trade, scale) = (&self.trade, &self.units().scale);
        let (price, size) = (scale.price(trade.price), scale.size(trade.size));
        let (maker, taker) = (trade.maker.account, trade.taker.account);
        format!("Trade({} {size} at {price}, maker {maker}, taker {taker})", SIDES[trade.taker_side as usize])
    }
}

/// What happened to an order, to an instrument, or, as text, to anything else.
#[pyclass(frozen, module = "walras._native", name = "Event")]
pub(crate) struct PyEvent {
    fields: Fields,
    time_ns: u64,
    units: AllUnits,
}

#[derive(Clone, Debug, Default)]
struct Fields {
    kind: &'static str,
    instrument: Option<u32>,
    account: Option<u32>,
    order_id: Option<u64>,
    client_order_id: Option<u64>,
    side: Option<&'static str>,
    price: Option<PriceTicks>,
    size: Option<SizeLots>,
    open: Option<SizeLots>,
    shown: Option<SizeLots>,
    trade_id: Option<u64>,
    fee_units: Option<i64>,
    role: Option<&'static str>,
    code: u16,
    reason: Option<&'static str>,
    text: String,
}

const CANCELS: [&str; 11] = [
    "requested",
    "mass_cancelled",
    "unfilled",
    "expired",
    "day_ended",
    "self_trade",
    "account_suspended",
    "trigger_refused",
    "price_band",
    "linked",
    "unfunded",
];

/// The name of why an order is gone.
pub(crate) fn cancel_name(reason: CancelReason) -> &'static str {
    CANCELS[reason as usize]
}

fn order_fields(event: &OrderEvent) -> Fields {
    match event {
        OrderEvent::Accepted(e) => Fields {
            kind: "accepted",
            instrument: Some(e.instrument.0),
            account: Some(e.account.0),
            order_id: Some(e.order_id.0),
            client_order_id: Some(e.client_order_id.0),
            side: Some(SIDES[e.side as usize]),
            price: e.price,
            size: Some(e.size),
            open: Some(e.resting.open),
            shown: Some(e.resting.shown),
            ..Fields::default()
        },
        OrderEvent::Amended(e) => Fields {
            kind: "amended",
            instrument: Some(e.instrument.0),
            account: Some(e.account.0),
            order_id: Some(e.order_id.0),
            client_order_id: Some(e.client_order_id.0),
            side: Some(SIDES[e.side as usize]),
            price: e.price,
            open: Some(e.resting.open),
            shown: Some(e.resting.shown),
            reason: Some(match e.priority {
                Priority::Kept => "priority_kept",
                Priority::Lost => "priority_lost",
            }),
            ..Fields::default()
        },
        OrderEvent::Traded(e) => Fields {
            kind: "traded",
            instrument: Some(e.instrument.0),
            account: Some(e.maker.account.0),
            order_id: Some(e.maker.order_id.0),
            client_order_id: Some(e.maker.client_order_id.0),
            side: Some(SIDES[e.taker_side.opposite() as usize]),
            price: Some(e.price),
            size: Some(e.size),
            open: Some(e.maker.open),
            ..Fields::default()
        },
        OrderEvent::Cancelled(e) => Fields {
            kind: "cancelled",
            instrument: Some(e.instrument.0),
            account: Some(e.account.0),
            order_id: Some(e.order_id.0),
            client_order_id: Some(e.client_order_id.0),
            size: Some(e.open),
            open: Some(SizeLots::ZERO),
            reason: Some(cancel_name(e.reason)),
            ..Fields::default()
        },
        OrderEvent::Reduced(e) => Fields {
            kind: "reduced",
            instrument: Some(e.instrument.0),
            account: Some(e.account.0),
            order_id: Some(e.order_id.0),
            client_order_id: Some(e.client_order_id.0),
            size: Some(e.by),
            open: Some(e.resting.open),
            shown: Some(e.resting.shown),
            ..Fields::default()
        },
        OrderEvent::Replenished(e) => Fields {
            kind: "replenished",
            instrument: Some(e.instrument.0),
            order_id: Some(e.order_id.0),
            shown: Some(e.shown),
            ..Fields::default()
        },
        OrderEvent::Triggered(e) => Fields {
            kind: "triggered",
            instrument: Some(e.instrument.0),
            account: Some(e.account.0),
            order_id: Some(e.order_id.0),
            client_order_id: Some(e.client_order_id.0),
            side: Some(SIDES[e.side as usize]),
            price: Some(e.price),
            open: Some(e.resting.open),
            shown: Some(e.resting.shown),
            ..Fields::default()
        },
    }
}

fn fields(event: &Event) -> Fields {
    match event {
        Event::Order(event) => order_fields(event),
        Event::Rejected(e) => Fields {
            kind: "rejected",
            instrument: e.instrument.map(|instrument| instrument.0),
            account: e.account.map(|account| account.0),
            client_order_id: e.client_order_id.map(|name| name.0),
            code: e.reason.number(),
            reason: Some(e.reason.name()),
            text: e.reason.advice().to_owned(),
            ..Fields::default()
        },
        Event::Instrument(InstrumentEvent::PhaseChanged(e)) => Fields {
            kind: "phase_changed",
            instrument: Some(e.instrument.0),
            reason: Some(match e.cause {
                PhaseCause::Operator => "operator",
                PhaseCause::PriceBand => "price_band",
            }),
            text: PHASES[e.phase as usize].to_owned(),
            ..Fields::default()
        },
        Event::Instrument(InstrumentEvent::Uncrossed(e)) => Fields {
            kind: "uncrossed",
            instrument: Some(e.instrument.0),
            price: e.price,
            size: Some(e.volume),
            ..Fields::default()
        },
        other => Fields { kind: "other", text: format!("{other:?}"), ..Fields::default() },
    }
}

impl PyEvent {
    /// An event of a running venue, whose units only its instruments say.
    pub(crate) fn of(event: &Event, time_ns: u64) -> Self {
        Self { fields: fields(event), time_ns, units: AllUnits::default() }
    }

    /// A trade as a party sees it.
    pub(crate) fn filled(filled: &Filled, role: &'static str, time_ns: u64) -> Self {
        let fields = Fields {
            kind: "filled",
            instrument: Some(filled.instrument.0),
            order_id: Some(filled.order_id.0),
            client_order_id: Some(filled.client_order_id.0),
            side: Some(SIDES[filled.side as usize]),
            price: Some(filled.price),
            size: Some(filled.size),
            open: Some(filled.open),
            trade_id: Some(filled.trade_id.0),
            fee_units: Some(filled.fee),
            role: Some(role),
            ..Fields::default()
        };
        Self { fields, time_ns, units: AllUnits::default() }
    }

    fn units(&self) -> Option<&Units> {
        self.units.get(self.fields.instrument? as usize)
    }

    fn size_of<'py>(&self, py: Python<'py>, lots: Option<SizeLots>) -> PyResult<Option<Bound<'py, PyAny>>> {
        lots.zip(self.units()).map(|(lots, units)| units.size(py, lots)).transpose()
    }
}

#[pymethods]
impl PyEvent {
    #[getter]
    fn kind(&self) -> &'static str {
        self.fields.kind
    }
    #[getter]
    fn time_ns(&self) -> u64 {
        self.time_ns
    }
    #[getter]
    fn instrument(&self) -> Option<u32> {
        self.fields.instrument
    }
    #[getter]
    fn account(&self) -> Option<u32> {
        self.fields.account
    }
    #[getter]
    fn order_id(&self) -> Option<u64> {
        self.fields.order_id
    }
    #[getter]
    fn client_order_id(&self) -> Option<u64> {
        self.fields.client_order_id
    }
    #[getter]
    fn side(&self) -> Option<&'static str> {
        self.fields.side
    }
    #[getter]
    fn price_ticks(&self) -> Option<i64> {
        self.fields.price.map(PriceTicks::get)
    }
    #[getter]
    fn size_lots(&self) -> Option<u64> {
        self.fields.size.map(SizeLots::get)
    }
    #[getter]
    fn open_lots(&self) -> Option<u64> {
        self.fields.open.map(SizeLots::get)
    }
    #[getter]
    fn shown_lots(&self) -> Option<u64> {
        self.fields.shown.map(SizeLots::get)
    }
    #[getter]
    fn price<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.fields.price.zip(self.units()).map(|(price, units)| units.price(py, price)).transpose()
    }
    #[getter]
    fn size<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.size_of(py, self.fields.size)
    }
    #[getter]
    fn open<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.size_of(py, self.fields.open)
    }
    #[getter]
    fn trade_id(&self) -> Option<u64> {
        self.fields.trade_id
    }
    #[getter]
    fn fee_units(&self) -> Option<i64> {
        self.fields.fee_units
    }
    #[getter]
    fn role(&self) -> Option<&'static str> {
        self.fields.role
    }
    #[getter]
    fn code(&self) -> u16 {
        self.fields.code
    }
    #[getter]
    fn reason(&self) -> Option<&'static str> {
        self.fields.reason
    }
    #[getter]
    fn text(&self) -> &str {
        &self.fields.text
    }
    fn __repr__(&self) -> String {
        let f = &self.fields;
        let mut text = format!("Event({}", f.kind);
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                text.push_str(&format!(", {name} {value}"));
            }
        };
        add("account", f.account.map(|account| account.to_string()));
        add("order", f.order_id.map(|order| order.to_string()));
        let units = self.units();
        add("price", f.price.zip(units).map(|(price, units)| units.scale.price(price).to_string()));
        add("size", f.size.zip(units).map(|(size, units)| units.scale.size(size).to_string()));
        add("reason", f.reason.map(str::to_owned));
        text + ")"
    }
}

/// What came of one command. Its events become Python objects when they are asked for.
#[pyclass(frozen, module = "walras._native")]
pub(crate) struct Outcome {
    pub(crate) order_id: u64,
    pub(crate) client_order_id: u64,
    pub(crate) instrument: u32,
    pub(crate) time_ns: u64,
    pub(crate) tally: Tally,
    pub(crate) events: Box<[Event]>,
    pub(crate) units: AllUnits,
}

/// What became of the order that came in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) rejected: Option<RejectReason>,
    pub(crate) filled: u64,
    pub(crate) open: u64,
    pub(crate) trade_count: u32,
    /// Whether its own event was there. What is amended after that are exits of some order.
    has_come: bool,
}

impl Tally {
    /// Counts what an event says of the command, and of the order of that number.
    #[inline]
    pub(crate) fn see(&mut self, order_id: u64, event: &Event) {
        match event {
            Event::Order(OrderEvent::Accepted(e)) if e.order_id.0 == order_id => {
                (self.open, self.has_come) = (e.resting.open.get(), true);
            }
            Event::Order(OrderEvent::Amended(e)) if !self.has_come && self.trade_count == 0 => {
                (self.open, self.has_come) = (e.resting.open.get(), true);
            }
            Event::Order(OrderEvent::Traded(e)) => {
                self.trade_count += 1;
                if e.taker.order_id.0 == order_id {
                    self.filled += e.size.get();
                    // Work in steps: trades of later entries follow what was accepted.
                    self.open = self.open.min(e.taker.open.get());
                }
            }
            Event::Order(OrderEvent::Cancelled(e)) if e.order_id.0 == order_id => self.open = 0,
            Event::Order(OrderEvent::Reduced(e)) if e.order_id.0 == order_id => self.open = e.resting.open.get(),
            Event::Rejected(e) => self.rejected = Some(e.reason),
            _ => {}
        }
    }
}

#[pymethods]
impl Outcome {
    #[getter]
    fn order_id(&self) -> u64 {
        self.order_id
    }
    #[getter]
    fn client_order_id(&self) -> u64 {
        self.client_order_id
    }
    #[getter]
    fn time_ns(&self) -> u64 {
        self.time_ns
    }
    #[getter]
    fn accepted(&self) -> bool {
        self.tally.rejected.is_none()
    }
    #[getter]
    fn code(&self) -> u16 {
        self.tally.rejected.map_or(0, RejectReason::number)
    }
    #[getter]
    fn reason(&self) -> Option<&'static str> {
        self.tally.rejected.map(RejectReason::name)
    }
    #[getter]
    fn advice(&self) -> Option<&'static str> {
        self.tally.rejected.map(RejectReason::advice)
    }
    #[getter]
    fn filled_lots(&self) -> u64 {
        self.tally.filled
    }
    #[getter]
    fn open_lots(&self) -> u64 {
        self.tally.open
    }
    #[getter]
    fn filled<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.size(py, self.tally.filled)
    }
    #[getter]
    fn open<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.size(py, self.tally.open)
    }
    #[getter]
    fn trade_count(&self) -> u32 {
        self.tally.trade_count
    }
    #[getter]
    fn trades<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let trades = self.events.iter().filter_map(|event| match event {
            Event::Order(OrderEvent::Traded(trade)) => {
                Some(Trade { trade: *trade, time_ns: self.time_ns, units: Arc::clone(&self.units) })
            }
            _ => None,
        });
        let trades: Vec<Bound<'py, Trade>> = trades.map(|trade| Bound::new(py, trade)).collect::<PyResult<_>>()?;
        PyList::new(py, trades)
    }
    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let event = |event: &Event| PyEvent { fields: fields(event), time_ns: self.time_ns, units: Arc::clone(&self.units) };
        let events: Vec<Bound<'py, PyEvent>> = self.events.iter().map(|e| Bound::new(py, event(e))).collect::<PyResult<_>>()?;
        PyList::new(py, events)
    }
    fn __repr__(&self) -> String {
        match self.tally.rejected {
            Some(reason) => format!("Outcome(rejected: {reason})"),
            None => format!("Outcome(order {}, filled {} lots, open {} lots)", self.order_id, self.tally.filled, self.tally.open),
        }
    }
}

impl Outcome {
    fn size<'py>(&self, py: Python<'py>, lots: u64) -> PyResult<Option<Bound<'py, PyAny>>> {
        let units = self.units.get(self.instrument as usize);
        units.map(|units| units.size(py, SizeLots::new(lots))).transpose()
    }
}
