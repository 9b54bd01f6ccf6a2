//! A whole venue without log, clock and network: the engine that every replica runs, driven by commands from Python.
//!
//! Each command takes the next place of a log that nobody keeps, at the time that its caller says. What the engine leaves to later
//! entries (`core/engine/src/steps.rs`) is carried on at once, by ticks, as a replica that leads would: so after every call nothing waits.

mod batches;
mod bulk;
mod events;
mod queues;
mod terms;

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use walras_engine::{Engine, versions};
use walras_gateway::{AssetScale, InstrumentScale};
use walras_types::{
    AccountId, Allocation, Amendment, Amount, AssetId, BatchMarketId, ClientOrderId, ClientOrderName, FeeSchedule, InstrumentId,
    InstrumentSpec, LogIndex, OrderTerms, PriceTicks, RiskLimits, Side, SizeLots, Symbol, TimeNs, TradingPhase, TransferId,
};
use walras_wire::batch::BlockProposal;
use walras_wire::{
    AccountCommand, AccountStatus, AmendOrder, AssetSpec, CancelOrder, CollectFees, Command, Event, InstrumentCommand, LinkedOrder,
    MassCancel, NamedOrder, NewOrder, OrderCommand, SetAccountStatus, SetRiskLimits, SetTradingPhase, Transfer, VenueCommand,
};

pub(crate) use bulk::layout;
use events::{AllUnits, Tally, Units};
pub(crate) use events::{Outcome, PyEvent, Trade};
use queues::Queues;
use terms::{PHASES, POST_ONLY, Rest, SELF_TRADE, SIDES, TIMES, Waits, exact, number, trail_of};

/// The engine with the names of what it trades; see `walras.Venue`, which derives from this.
#[pyclass(subclass, module = "walras._native", name = "Venue")]
pub(crate) struct PyVenue {
    engine: Engine,
    instruments: HashMap<String, u32>,
    assets: HashMap<String, u32>,
    /// In small letters.
    batches: HashMap<String, u16>,
    units: AllUnits,
    events: Vec<Event>,
    queues: Option<Queues>,
}

fn out_of_range(what: &str, range: &str) -> PyErr {
    PyValueError::new_err(format!("{what} is out of range: give {range}"))
}

fn ticks(price: i64) -> PyResult<PriceTicks> {
    PriceTicks::new(price).ok_or_else(|| out_of_range("the price", "from 1 to 1099511627775 ticks"))
}

fn lots(size: u64) -> PyResult<SizeLots> {
    SizeLots::order_size(size).ok_or_else(|| out_of_range("the size", "from 1 to 68719476735 lots"))
}

fn amount(units: u64) -> PyResult<Amount> {
    Amount::new(units).ok_or_else(|| out_of_range("the amount", "at most 9223372036854775807 units"))
}

fn symbol(text: &str) -> PyResult<Symbol> {
    let advice = "is no symbol: give 1 to 15 characters of A-Z 0-9 / - . _";
    Symbol::new(text).ok_or_else(|| PyValueError::new_err(format!("{text:?} {advice}")))
}

impl PyVenue {
    fn of(engine: Engine) -> PyResult<Self> {
        let mut venue = Self {
            engine,
            instruments: HashMap::new(),
            assets: HashMap::new(),
            batches: HashMap::new(),
            units: AllUnits::default(),
            events: Vec::new(),
            queues: None,
        };
        // Nobody publishes its books level by level, and noting the levels costs time.
        venue.engine.stop_telling_levels();
        venue.name()?;
        Ok(venue)
    }

    /// Notes the names and units of what the engine has.
    fn name(&mut self) -> PyResult<()> {
        self.assets = self.engine.assets().iter().map(|asset| (asset.symbol.to_string(), asset.asset.0)).collect();
        self.instruments = self.engine.instruments().map(|view| (view.spec.symbol.to_string(), view.spec.instrument.0)).collect();
        let batch_name = |symbol: &Symbol| symbol.as_str().to_ascii_lowercase();
        self.batches = self.engine.batch_markets().map(|view| (batch_name(&view.spec.symbol), view.spec.market.0)).collect();
        let units = |spec: &InstrumentSpec| {
            let decimals = |asset: AssetId| self.engine.assets()[asset.0 as usize].decimals;
            let (base, quote_decimals) = (decimals(spec.base), decimals(spec.quote));
            let scale =
                InstrumentScale::of(spec, base, quote_decimals).map_err(|error| PyValueError::new_err(error.to_string()))?;
            Ok(Units { scale, quote_decimals })
        };
        self.units = Arc::new(self.engine.instruments().map(|view| units(&view.spec)).collect::<PyResult<_>>()?);
        Ok(())
    }

    /// The time of the next entry: the last one's, unless a later one is given.
    fn time(&self, time_ns: Option<u64>) -> PyResult<TimeNs> {
        let last = self.engine.time();
        let time = time_ns.map_or(last, TimeNs);
        let says = || format!("time_ns {time} is before {last}, the time of the venue: it does not go back");
        if time < last { Err(PyValueError::new_err(says())) } else { Ok(time) }
    }

    /// Applies a command, and what it leaves to later entries; its events are in `self.events` then. The place of the command.
    fn apply(&mut self, time: TimeNs, command: &Command) -> LogIndex {
        let place = self.engine.last_applied().next();
        let before = self.events.len();
        self.engine.apply(place, time, command, &mut self.events);
        self.follow(time, before);
        place
    }

    /// Applies a proposed clearing, as [`Self::apply`] does a command.
    fn apply_clearing(&mut self, time: TimeNs, block: &BlockProposal) {
        let place = self.engine.last_applied().next();
        let before = self.events.len();
        self.engine.apply_clearing(place, time, block, &mut self.events);
        self.follow(time, before);
    }

    /// Carries on what an entry left, and keeps the queues by the events since then.
    #[inline]
    fn follow(&mut self, time: TimeNs, before: usize) {
        self.carry_on(time);
        if let Some(queues) = &mut self.queues {
            self.events[before..].iter().for_each(|event| queues.see(event));
        }
    }

    /// The time of the last entry.
    pub(crate) fn now(&self) -> TimeNs {
        self.engine.time()
    }

    /// Applies a command of another source, and gives back its events.
    pub(crate) fn play(&mut self, time: TimeNs, command: &Command) -> &[Event] {
        self.events.clear();
        self.apply(time, command);
        &self.events
    }

    /// Rows of orders as commands.
    pub(crate) fn parsed(&self, rows: &[u8]) -> PyResult<Vec<(TimeNs, Command)>> {
        Ok(bulk::parse(self, rows)?.into_iter().map(|(time, _, command)| (time, command)).collect())
    }

    /// Notes names and units after definitions were played.
    pub(crate) fn named(&mut self) -> PyResult<()> {
        self.name()
    }

    fn carry_on(&mut self, time: TimeNs) {
        while self.engine.has_work() {
            let place = self.engine.last_applied().next();
            self.engine.apply(place, time, &Command::Venue(VenueCommand::Tick), &mut self.events);
        }
    }

    fn outcome(&mut self, time_ns: Option<u64>, client_order_id: u64, instrument: u32, command: &Command) -> PyResult<Outcome> {
        let time = self.time(time_ns)?;
        self.events.clear();
        let order_id = self.apply(time, command).0;
        let mut tally = Tally::default();
        self.events.iter().for_each(|event| tally.see(order_id, event));
        let (events, units) = (self.events.as_slice().into(), Arc::clone(&self.units));
        Ok(Outcome { order_id, client_order_id, instrument, time_ns: time.0, tally, events, units })
    }

    fn enter(&mut self, time_ns: Option<u64>, order: NewOrder, with: With) -> PyResult<Outcome> {
        let command = Command::Order(entering(order, None, with)?);
        self.outcome(time_ns, order.client_order_id.0, order.instrument.0, &command)
    }

    fn next_name(&self, name: Option<u64>) -> ClientOrderId {
        ClientOrderId(name.unwrap_or(self.engine.last_applied().0 + 1))
    }

    fn units_of(&self, instrument: u32) -> PyResult<&Units> {
        self.units.get(instrument as usize).ok_or_else(|| {
            PyKeyError::new_err(format!("{instrument}: no such instrument: create it, or give one of `venue.instruments()`"))
        })
    }

    fn asset_decimals(&self, asset: u32) -> PyResult<AssetScale> {
        let spec = self.engine.assets().get(asset as usize);
        let spec =
            spec.ok_or_else(|| PyKeyError::new_err(format!("{asset}: no such asset: create it, or give one of `venue.assets()`")))?;
        AssetScale::new(spec.decimals).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    fn id_of(what: &str, names: &HashMap<String, u32>, value: &Bound<'_, PyAny>) -> PyResult<u32> {
        let Ok(text) = value.cast::<PyString>() else { return value.extract::<u32>() };
        let text = text.to_cow()?;
        // As in the paths of the venue's HTTP, `-` may stand for `/`.
        let found = names.get(text.as_ref()).or_else(|| names.get(&text.replace('-', "/")));
        found.copied().ok_or_else(|| PyKeyError::new_err(format!("{text:?}: no such {what}: create it first, or check its symbol")))
    }
}

fn price_of(units: &Units, value: Option<&Bound<'_, PyAny>>, what: &str) -> PyResult<Option<PriceTicks>> {
    let Some(value) = value else { return Ok(None) };
    let price = units.scale.parse_price(&exact(what, value)?);
    price.map(Some).map_err(|error| PyValueError::new_err(format!("{what}: {error}")))
}

fn size_of(units: &Units, value: Option<&Bound<'_, PyAny>>, what: &str) -> PyResult<Option<SizeLots>> {
    let Some(value) = value else { return Ok(None) };
    let size = units.scale.parse_size(&exact(what, value)?);
    size.map(Some).map_err(|error| PyValueError::new_err(format!("{what}: {error}")))
}

fn rest(
    tif: Option<&Bound<'_, PyAny>>,
    expires_ns: u64,
    post_only: Option<&Bound<'_, PyAny>>,
    self_trade: Option<&Bound<'_, PyAny>>,
    display: (Option<SizeLots>, bool),
    min_size: Option<SizeLots>,
) -> PyResult<Rest> {
    let of = |what, names, value: Option<&Bound<'_, PyAny>>| value.map_or(Ok(0), |value| number(what, names, value));
    let time = tif.map(|tif| number("tif", TIMES, tif)).transpose()?;
    let time = if expires_ns > 0 && time.is_none() { Some(2) } else { time };
    if time == Some(2) && expires_ns == 0 {
        return Err(PyValueError::new_err("tif 'gtd' needs expires_ns: give the time at which the order ends"));
    }
    let known = "a number that is in the table of names is one";
    Ok(Rest {
        time_in_force: time.map(|time| terms::time_in_force_of(time, expires_ns).expect(known)),
        post_only: terms::post_only_of(of("post_only", POST_ONLY, post_only)?).expect(known),
        self_trade: terms::self_trade_of(of("self_trade", SELF_TRADE, self_trade)?).expect(known),
        display: terms::display(display.0, display.1)
            .ok_or_else(|| PyValueError::new_err("an order has a peak or is hidden, not both: leave one out"))?,
        min_size,
    })
}

/// The order with which one is linked: an open one, or one to come of which it is an exit.
#[derive(Clone, Copy)]
pub(crate) struct With {
    pub(crate) oco_with: Option<u64>,
    pub(crate) exit_of: Option<u64>,
}

/// An order as a command, with the text that its owner calls it by: linked with another, or by itself.
pub(crate) fn entering(order: NewOrder, name: Option<ClientOrderName>, with: With) -> PyResult<OrderCommand> {
    Ok(match (with.oco_with, with.exit_of, name) {
        (Some(_), Some(_), _) => {
            return Err(PyValueError::new_err("an order is linked with one other: give oco_with or exit_of, not both"));
        }
        (Some(other), None, name) => OrderCommand::NewLinked(LinkedOrder::new(&order, ClientOrderId(other), name)),
        (None, Some(entry), name) => OrderCommand::NewLinked(LinkedOrder::exit(&order, ClientOrderId(entry), name)),
        (None, None, Some(name)) => OrderCommand::NewNamed(NamedOrder::new(&order, name)),
        (None, None, None) => OrderCommand::New(order),
    })
}

/// Terms in ticks and lots: size, peak and least size; price, trigger, trigger of a take-profit and distance of a trailing stop,
/// and that in millionths; time in force, post-only, self-trade; hidden and the end.
pub(crate) fn terms_of(
    side: &Bound<'_, PyAny>,
    (size, peak, min_size): (u64, Option<u64>, Option<u64>),
    (prices, trail_ppm): ([Option<i64>; 4], Option<u32>),
    [tif, post_only, self_trade]: [Option<&Bound<'_, PyAny>>; 3],
    (is_hidden, expires_ns): (bool, u64),
) -> PyResult<OrderTerms> {
    let shown = (peak.map(lots).transpose()?, is_hidden);
    let rest = rest(tif, expires_ns, post_only, self_trade, shown, min_size.map(lots).transpose()?)?;
    let [.., trail_ticks] = prices;
    let [price, trigger, take_profit, _] = prices.map(|price| price.map(ticks).transpose());
    let waits = Waits { trigger: trigger?, take_profit: take_profit?, trail: trail_of(trail_ticks, trail_ppm)? };
    rest.terms(self::side(side)?, lots(size)?, price?, waits)
}

fn side(value: &Bound<'_, PyAny>) -> PyResult<Side> {
    Ok(terms::side_of(number("side", SIDES, value)?).expect("a number that is in the table of names is one"))
}

#[pymethods]
impl PyVenue {
    #[new]
    #[pyo3(signature = (time_ns = 0))]
    fn new(time_ns: u64) -> PyResult<Self> {
        let mut venue = Self::of(Engine::new())?;
        venue.apply(TimeNs(time_ns), &Command::Venue(VenueCommand::SetEngineVersion(versions::NEWEST)));
        Ok(venue)
    }

    #[getter]
    fn time_ns(&self) -> u64 {
        self.engine.time().0
    }

    #[getter]
    fn log_index(&self) -> u64 {
        self.engine.last_applied().0
    }

    #[getter]
    fn account_count(&self) -> u32 {
        self.engine.account_count()
    }

    #[pyo3(signature = (time_ns = None))]
    fn tick(&mut self, time_ns: Option<u64>) -> PyResult<Outcome> {
        self.outcome(time_ns, 0, u32::MAX, &Command::Venue(VenueCommand::Tick))
    }

    fn _create_asset(&mut self, name: &str, decimals: u8, time_ns: Option<u64>) -> PyResult<(u32, Outcome)> {
        let asset = AssetId(self.engine.assets().len() as u32);
        let command = VenueCommand::CreateAsset(AssetSpec { asset, symbol: symbol(name)?, decimals });
        let outcome = self.outcome(time_ns, 0, u32::MAX, &Command::Venue(command))?;
        self.name()?;
        Ok((asset.0, outcome))
    }

    /// `allocation`: its number, the most lots of the top order or the percent first in, first out, and the smallest share.
    #[allow(clippy::too_many_arguments)]
    fn _create_instrument(
        &mut self,
        name: &str,
        assets: (u32, u32),
        lot_and_tick_units: (u64, u64),
        reference_ticks: i64,
        fees_ppm: (i32, i32),
        bands_ppm: (u32, u32),
        allocation: (u8, u64, u64),
        time_ns: Option<u64>,
    ) -> PyResult<(u32, Outcome)> {
        let instrument = InstrumentId(self.engine.instruments().len() as u32);
        let (which, of_top, min_lots) = (allocation.0, allocation.1, SizeLots::new(allocation.2));
        let allocation = match which {
            0 => Allocation::PriceTime,
            1 => Allocation::ProRata { min_lots },
            2 => Allocation::TopProRata { top_lots_max: SizeLots::new(of_top), min_lots },
            _ => Allocation::Split { fifo_percent: u8::try_from(of_top).unwrap_or(u8::MAX), min_lots },
        };
        let spec = InstrumentSpec {
            instrument,
            symbol: symbol(name)?,
            base: AssetId(assets.0),
            quote: AssetId(assets.1),
            lot_units: lot_and_tick_units.0,
            tick_value_units: lot_and_tick_units.1,
            allocation,
            fees: FeeSchedule { maker_ppm: fees_ppm.0, taker_ppm: fees_ppm.1 },
            collar_ppm: bands_ppm.0,
            band_ppm: bands_ppm.1,
            reference_price: ticks(reference_ticks)?,
            default_limits: RiskLimits::NONE,
        };
        let decimals = |asset: AssetId| self.engine.assets().get(asset.0 as usize).map_or(0, |asset| asset.decimals);
        let scale = InstrumentScale::of(&spec, decimals(spec.base), decimals(spec.quote));
        scale.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let outcome = self.outcome(time_ns, 0, u32::MAX, &Command::Instrument(InstrumentCommand::Create(spec)))?;
        self.name()?;
        Ok((instrument.0, outcome))
    }

    fn _create_account(&mut self, time_ns: Option<u64>) -> PyResult<(u32, Outcome)> {
        let account = AccountId(self.engine.account_count());
        Ok((account.0, self.outcome(time_ns, 0, u32::MAX, &Command::Account(AccountCommand::Create(account)))?))
    }

    /// Credits an account, or debits it.
    fn _transfer(&mut self, is_deposit: bool, account: u32, asset: u32, units: u64, time_ns: Option<u64>) -> PyResult<Outcome> {
        let account = AccountId(account);
        let transfer_id = TransferId(self.engine.last_transfer(account).map_or(1, |last| last.0 + 1));
        let transfer = Transfer { account, asset: AssetId(asset), amount: amount(units)?, transfer_id };
        let command = if is_deposit { AccountCommand::Deposit(transfer) } else { AccountCommand::Withdraw(transfer) };
        self.outcome(time_ns, 0, u32::MAX, &Command::Account(command))
    }

    fn _collect_fees(&mut self, asset: u32, account: u32, time_ns: Option<u64>) -> PyResult<Outcome> {
        let command = AccountCommand::CollectFees(CollectFees { asset: AssetId(asset), account: AccountId(account) });
        self.outcome(time_ns, 0, u32::MAX, &Command::Account(command))
    }

    fn _set_status(&mut self, account: u32, is_suspended: bool, time_ns: Option<u64>) -> PyResult<Outcome> {
        let status = if is_suspended { AccountStatus::Suspended } else { AccountStatus::Active };
        let command = AccountCommand::SetStatus(SetAccountStatus { account: AccountId(account), status });
        self.outcome(time_ns, 0, u32::MAX, &Command::Account(command))
    }

    /// `None` is no limit.
    fn _set_limits(
        &mut self,
        account: u32,
        instrument: u32,
        limits: (Option<u64>, Option<u64>, Option<u32>, Option<u64>),
        time_ns: Option<u64>,
    ) -> PyResult<Outcome> {
        let (order_lots, order_units, open_orders, position_lots) = limits;
        let none = RiskLimits::NONE;
        let limits = RiskLimits {
            order_lots_max: order_lots.map_or(none.order_lots_max, SizeLots::new),
            order_value_max: order_units.map_or(Ok(none.order_value_max), amount)?,
            open_orders_max: open_orders.unwrap_or(none.open_orders_max),
            position_lots_max: position_lots.map_or(none.position_lots_max, SizeLots::new),
        };
        let (account, instrument) = (AccountId(account), InstrumentId(instrument));
        let command = AccountCommand::SetRiskLimits(SetRiskLimits { account, instrument, limits });
        self.outcome(time_ns, 0, instrument.0, &Command::Account(command))
    }

    fn _set_phase(&mut self, instrument: u32, phase: &Bound<'_, PyAny>, time_ns: Option<u64>) -> PyResult<Outcome> {
        use TradingPhase::{Closed, ClosingAuction, Continuous, Halt, OpeningAuction, PreOpen};
        let phases = [Closed, PreOpen, OpeningAuction, Continuous, Halt, ClosingAuction];
        let phase = phases[usize::from(number("phase", PHASES, phase)?)];
        let command = InstrumentCommand::SetPhase(SetTradingPhase { instrument: InstrumentId(instrument), phase });
        self.outcome(time_ns, 0, instrument, &Command::Instrument(command))
    }

    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (
        account, instrument, side, size_lots, price_ticks = None, client_order_id = None, *, tif = None, trigger_ticks = None,
        take_profit_ticks = None, trail_ticks = None, trail_ppm = None, post_only = None, peak_lots = None, hidden = false,
        min_size_lots = None, self_trade = None,
        oco_with = None, exit_of = None, expires_ns = 0, time_ns = None
    ))]
    fn submit_lots(
        &mut self,
        account: u32,
        instrument: u32,
        side: &Bound<'_, PyAny>,
        size_lots: u64,
        price_ticks: Option<i64>,
        client_order_id: Option<u64>,
        tif: Option<&Bound<'_, PyAny>>,
        trigger_ticks: Option<i64>,
        take_profit_ticks: Option<i64>,
        trail_ticks: Option<i64>,
        trail_ppm: Option<u32>,
        post_only: Option<&Bound<'_, PyAny>>,
        peak_lots: Option<u64>,
        hidden: bool,
        min_size_lots: Option<u64>,
        self_trade: Option<&Bound<'_, PyAny>>,
        oco_with: Option<u64>,
        exit_of: Option<u64>,
        expires_ns: u64,
        time_ns: Option<u64>,
    ) -> PyResult<Outcome> {
        let size = (size_lots, peak_lots, min_size_lots);
        let prices = [price_ticks, trigger_ticks, take_profit_ticks, trail_ticks];
        let terms = terms_of(side, size, (prices, trail_ppm), [tif, post_only, self_trade], (hidden, expires_ns))?;
        let client_order_id = self.next_name(client_order_id);
        let order = NewOrder { account: AccountId(account), instrument: InstrumentId(instrument), client_order_id, terms };
        self.enter(time_ns, order, With { oco_with, exit_of })
    }

    /// The same in decimals, and by symbol. See `walras.Venue.submit`.
    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (
        account, instrument, side, size, price = None, client_order_id = None, *, tif = None, trigger = None, take_profit = None,
        trail = None, trail_ppm = None, post_only = None, peak = None, hidden = false, min_size = None, self_trade = None,
        oco_with = None, exit_of = None, expires_ns = 0, time_ns = None
    ))]
    fn _submit(
        &mut self,
        account: u32,
        instrument: &Bound<'_, PyAny>,
        side: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
        price: Option<&Bound<'_, PyAny>>,
        client_order_id: Option<u64>,
        tif: Option<&Bound<'_, PyAny>>,
        trigger: Option<&Bound<'_, PyAny>>,
        take_profit: Option<&Bound<'_, PyAny>>,
        trail: Option<&Bound<'_, PyAny>>,
        trail_ppm: Option<u32>,
        post_only: Option<&Bound<'_, PyAny>>,
        peak: Option<&Bound<'_, PyAny>>,
        hidden: bool,
        min_size: Option<&Bound<'_, PyAny>>,
        self_trade: Option<&Bound<'_, PyAny>>,
        oco_with: Option<u64>,
        exit_of: Option<u64>,
        expires_ns: u64,
        time_ns: Option<u64>,
    ) -> PyResult<Outcome> {
        let instrument = self.instrument_id(instrument)?;
        let units = self.units_of(instrument)?;
        let shown = (size_of(units, peak, "peak")?, hidden);
        let rest = rest(tif, expires_ns, post_only, self_trade, shown, size_of(units, min_size, "min_size")?)?;
        let (price, trigger) = (price_of(units, price, "price")?, price_of(units, trigger, "trigger")?);
        let take_profit = price_of(units, take_profit, "take_profit")?;
        let trail = trail_of(price_of(units, trail, "trail")?.map(PriceTicks::get), trail_ppm)?;
        let size =
            units.scale.parse_size(&exact("size", size)?).map_err(|error| PyValueError::new_err(format!("size: {error}")))?;
        let terms = rest.terms(self::side(side)?, size, price, Waits { trigger, take_profit, trail })?;
        let client_order_id = self.next_name(client_order_id);
        let order = NewOrder { account: AccountId(account), instrument: InstrumentId(instrument), client_order_id, terms };
        self.enter(time_ns, order, With { oco_with, exit_of })
    }

    #[pyo3(signature = (account, instrument, client_order_id, *, time_ns = None))]
    fn cancel_id(&mut self, account: u32, instrument: u32, client_order_id: u64, time_ns: Option<u64>) -> PyResult<Outcome> {
        let (name, of) = (ClientOrderId(client_order_id), InstrumentId(instrument));
        let cancel = CancelOrder { account: AccountId(account), instrument: of, client_order_id: name };
        self.outcome(time_ns, client_order_id, instrument, &Command::Order(OrderCommand::Cancel(cancel)))
    }

    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (account, instrument, client_order_id, *, price_ticks = None, trigger_ticks = None, size_lots = None, time_ns = None))]
    fn amend_lots(
        &mut self,
        account: u32,
        instrument: u32,
        client_order_id: u64,
        price_ticks: Option<i64>,
        trigger_ticks: Option<i64>,
        size_lots: Option<u64>,
        time_ns: Option<u64>,
    ) -> PyResult<Outcome> {
        let (price, trigger) = (price_ticks.map(ticks).transpose()?, trigger_ticks.map(ticks).transpose()?);
        let size = size_lots.map(lots).transpose()?;
        let amendment = Amendment { client_order_id: ClientOrderId(client_order_id), price, trigger, size };
        let amend = AmendOrder { account: AccountId(account), instrument: InstrumentId(instrument), amendment };
        self.outcome(time_ns, client_order_id, instrument, &Command::Order(OrderCommand::Amend(amend)))
    }

    /// `side` 0, 1, or `None` for both.
    fn _mass_cancel(&mut self, account: u32, instrument: Option<u32>, side: Option<u8>, time_ns: Option<u64>) -> PyResult<Outcome> {
        let cancel = MassCancel {
            account: AccountId(account),
            instrument: instrument.map(InstrumentId),
            side: side.and_then(terms::side_of),
        };
        let of = instrument.unwrap_or(u32::MAX);
        self.outcome(time_ns, 0, of, &Command::Order(OrderCommand::MassCancel(cancel)))
    }

    /// See `batches.rs`.
    fn _create_batch(
        &mut self,
        name: &str,
        assets: Vec<u32>,
        currency_count: u16,
        rules: batches::Rules,
        time_ns: Option<u64>,
    ) -> PyResult<(u16, Outcome)> {
        batches::create(self, name, &assets, currency_count, rules, time_ns)
    }

    fn _batch_id(&self, name: &str) -> PyResult<u16> {
        let unknown = || PyKeyError::new_err(format!("{name:?}: no such batch market: create it first, or check its name"));
        self.batches.get(&name.to_ascii_lowercase()).copied().ok_or_else(unknown)
    }

    fn _batch(&self, market: u16) -> PyResult<batches::Standing> {
        batches::standing(self, BatchMarketId(market))
    }

    fn _batch_offers(&self, market: u16, account: u32) -> PyResult<Vec<batches::OfferRow>> {
        batches::offers(self, BatchMarketId(market), AccountId(account))
    }

    /// The number after all that an account has used or that are collected.
    fn _next_transaction(&self, account: u32) -> u64 {
        self.engine.next_transaction(AccountId(account)).0
    }

    fn _submit_transaction(&mut self, market: u16, transaction: &[u8], time_ns: Option<u64>) -> PyResult<(u64, Outcome)> {
        batches::submit(self, BatchMarketId(market), transaction, time_ns)
    }

    /// What came of it, the block's hash, and its rows.
    fn _clear_batch<'py>(
        &mut self,
        py: Python<'py>,
        market: u16,
        queries: u64,
        time_ns: Option<u64>,
    ) -> PyResult<(Outcome, Bound<'py, PyBytes>, batches::BlockRows)> {
        let (outcome, hash, rows) = py.detach(|| batches::clear(self, BatchMarketId(market), queries, time_ns))?;
        Ok((outcome, PyBytes::new(py, &hash), rows))
    }

    /// Applies rows of orders (`walras.ORDER_DTYPE`), and gives back rows of outcomes and, where asked for, of trades, events and best prices.
    fn _run<'py>(&mut self, py: Python<'py>, orders: &[u8], wanted: (bool, bool, bool)) -> PyResult<bulk::Columns<'py>> {
        bulk::run(self, py, orders, wanted)
    }

    fn instrument_id(&self, instrument: &Bound<'_, PyAny>) -> PyResult<u32> {
        let id = Self::id_of("instrument", &self.instruments, instrument)?;
        self.units_of(id).map(|_| id)
    }

    fn asset_id(&self, asset: &Bound<'_, PyAny>) -> PyResult<u32> {
        let id = Self::id_of("asset", &self.assets, asset)?;
        self.asset_decimals(id).map(|_| id)
    }

    /// Symbol and decimals of each asset.
    fn _assets(&self) -> Vec<(String, u8)> {
        self.engine.assets().iter().map(|asset| (asset.symbol.to_string(), asset.decimals)).collect()
    }

    /// Symbol, base, quote, tick size, lot size, phase, reference price, last price.
    #[allow(clippy::type_complexity)]
    fn _instrument(&self, instrument: u32) -> PyResult<(String, u32, u32, String, String, &'static str, i64, Option<i64>)> {
        let units = self.units_of(instrument)?;
        let view = self.engine.instrument(InstrumentId(instrument)).expect("what has units is an instrument");
        let (spec, last) = (view.spec, view.last_price.map(PriceTicks::get));
        let (tick, lot) = (units.scale.tick_size().to_string(), units.scale.lot_size().to_string());
        let phase = PHASES[view.phase as usize];
        Ok((spec.symbol.to_string(), spec.base.0, spec.quote.0, tick, lot, phase, view.reference_price.get(), last))
    }

    #[getter]
    fn instrument_count(&self) -> usize {
        self.units.len()
    }

    /// Exact text of an amount, as units of an asset.
    fn _amount_units(&self, asset: u32, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        let amount = self.asset_decimals(asset)?.parse(&exact("amount", value)?);
        amount.map(Amount::get).map_err(|error| PyValueError::new_err(format!("amount: {error}")))
    }

    /// Exact text of a price, as ticks of an instrument.
    fn price_ticks(&self, instrument: &Bound<'_, PyAny>, price: &Bound<'_, PyAny>) -> PyResult<i64> {
        let units = self.units_of(self.instrument_id(instrument)?)?;
        Ok(price_of(units, Some(price), "price")?.map_or(0, PriceTicks::get))
    }

    /// Exact text of a size, as lots of an instrument.
    fn size_lots(&self, instrument: &Bound<'_, PyAny>, size: &Bound<'_, PyAny>) -> PyResult<u64> {
        let units = self.units_of(self.instrument_id(instrument)?)?;
        Ok(size_of(units, Some(size), "size")?.map_or(0, SizeLots::get))
    }

    /// Available and reserved units.
    fn balance_units(&self, account: u32, asset: u32) -> (u64, u64) {
        let balance = self.engine.balance(AccountId(account), AssetId(asset));
        (balance.available.get(), balance.reserved.get())
    }

    /// Supply and collected fees, in units.
    fn supply_units(&self, asset: u32) -> (u64, u64) {
        (self.engine.supply(AssetId(asset)).get(), self.engine.fees(AssetId(asset)).get())
    }

    /// Units that pools of batch markets hold: of the supply, what neither accounts nor fees have.
    fn pooled_units(&self, asset: u32) -> u64 {
        self.engine.pooled(AssetId(asset)).get()
    }

    /// Net lots, open orders, open lots to buy and to sell.
    fn position_lots(&self, account: u32, instrument: u32) -> (i64, u32, u64, u64) {
        let position = self.engine.position(AccountId(account), InstrumentId(instrument));
        (position.net_lots, position.open_orders, position.open_buy_lots.get(), position.open_sell_lots.get())
    }

    /// Price in ticks, shown lots and count of orders of each level, best first.
    fn depth_lots(&self, instrument: u32, side: &Bound<'_, PyAny>, levels: usize) -> PyResult<Vec<(i64, u64, u32)>> {
        let mut depth = Vec::new();
        self.engine.depth(InstrumentId(instrument), self::side(side)?, levels, &mut depth);
        Ok(depth.iter().map(|level| (level.price.get(), level.shown.get(), level.order_count)).collect())
    }

    /// Best bid and its lots, best ask and its lots; 0 where there is none.
    pub(crate) fn best_lots(&self, instrument: u32) -> (i64, u64, i64, u64) {
        let best = |side| {
            let level = self.engine.best_level(InstrumentId(instrument), side);
            level.map_or((0, 0), |level| (level.price.get(), level.shown.get()))
        };
        let ((bid, bid_lots), (ask, ask_lots)) = (best(Side::Buy), best(Side::Sell));
        (bid, bid_lots, ask, ask_lots)
    }

    /// Order id, client order id, side, price, open and shown lots of each open order of an account.
    #[allow(clippy::type_complexity)]
    fn open_orders_lots(&self, account: u32, instrument: u32) -> Vec<(u64, u64, &'static str, Option<i64>, u64, u64)> {
        let mut orders = Vec::new();
        self.engine.open_orders(AccountId(account), InstrumentId(instrument), &mut orders);
        let row = |order: &walras_engine::OpenOrder| {
            let price = order.price.map(PriceTicks::get);
            let side = SIDES[order.terms.side as usize];
            (order.order_id.0, order.client_order_id.0, side, price, order.open.get(), order.shown.get())
        };
        orders.iter().map(row).collect()
    }

    /// Price in ticks, volume in lots and imbalance in lots of an uncross now; `None` while trading is continuous or nothing crosses.
    fn indicative_lots(&self, instrument: u32) -> Option<(i64, u64, i64)> {
        let uncross = self.engine.indicative(InstrumentId(instrument))?;
        Some((uncross.price.get(), uncross.volume.get(), uncross.imbalance_lots))
    }

    /// Keeps the queues of all price levels from now on, for `queue_ahead`.
    fn watch_queues(&mut self) -> PyResult<()> {
        if self.queues.is_none() && self.engine.instruments().any(|view| self.engine.open_order_count(view.spec.instrument) > 0) {
            return Err(PyValueError::new_err("queues are kept from the first order on: call watch_queues() before it"));
        }
        self.queues.get_or_insert_with(Queues::default);
        Ok(())
    }

    /// Shown lots and orders that stand before an open order at its price; `None` where it is gone, waits for its trigger, or shows nothing.
    fn queue_ahead(&self, account: u32, instrument: u32, client_order_id: u64) -> PyResult<Option<(u64, u64)>> {
        let Some(queues) = &self.queues else {
            return Err(PyValueError::new_err("queues are not kept: call watch_queues() before the first order"));
        };
        let order = self.engine.open_order(AccountId(account), InstrumentId(instrument), ClientOrderId(client_order_id));
        Ok(order.and_then(|order| queues.ahead(order.order_id.0)))
    }

    /// The hash of the state: two venues with the same hash hold the same.
    fn state_hash<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.engine.state_hash())
    }

    /// The state as bytes.
    fn snapshot<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut bytes = Vec::new();
        self.engine.snapshot(&mut bytes);
        PyBytes::new(py, &bytes)
    }

    /// Goes to the state of a snapshot.
    fn restore(&mut self, snapshot: &[u8]) -> PyResult<()> {
        *self = Self::of(Engine::restore(snapshot).map_err(|error| PyValueError::new_err(error.to_string()))?)?;
        Ok(())
    }

    /// Checks every invariant of the state: for tests. A broken one is a `PanicException`.
    fn check_invariants(&self) {
        self.engine.check_invariants();
    }
}
