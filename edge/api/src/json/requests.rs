//! What is asked: JSON bodies into commands. Parsed once, here; what comes out can be applied or rejected, nothing else.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use walras_access::Refusal;
use walras_gateway::{ClientOrder, QuantityError};
use walras_ports::{AssetScale, Catalog, InstrumentScale};
use walras_types::limits::ASSET_DECIMALS_MAX;
use walras_types::{
    AccountId, Allocation, Amendment, AssetId, ClientOrderId, Display, FeeSchedule, InstrumentId, InstrumentSpec, OrderTerms,
    OrderType, PostOnly, RejectReason, RiskLimits, SelfTrade, Side, SizeLots, Symbol, TimeInForce, TimeNs, Trail, TransferId,
};
use walras_wire::{
    AccountCommand, AmendOrder, AssetSpec, CancelOrder, CollectFees, Command, InstrumentCommand, LinkedOrder, MassCancel,
    NamedOrder, NewOrder, OrderCommand, SetAccountStatus, SetRiskLimits, SetTradingPhase, Transfer, VenueCommand,
};

use super::brackets::ExitRequest;
use super::outcome::Subject;
use super::{names, strict};

/// Reads a body.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    parse_object(strict::object(bytes)?)
}

/// Reads a body that was already read as JSON, by [`strict::object`].
pub fn parse_object<T: DeserializeOwned>(object: Map<String, Value>) -> Result<T, Refusal> {
    serde_json::from_value(object.into()).map_err(|e| Refusal::malformed(e.to_string()))
}

/// The number of a string of digits.
pub fn number(field: &str, text: &str) -> Result<u64, Refusal> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let parsed = if digits { text.parse().ok() } else { None };
    parsed.ok_or_else(|| Refusal::malformed(format!("{field}: {text:?} is not a string of digits below 2^64")))
}

fn named<T>(field: &str, text: &str, parse: impl Fn(&str) -> Option<T>, known: &str) -> Result<T, Refusal> {
    parse(text).ok_or_else(|| Refusal::malformed(format!("{field}: {text:?} is none of {known}")))
}

pub(super) fn field<T>(field: &str, parsed: Result<T, QuantityError>) -> Result<T, Refusal> {
    parsed.map_err(|e| Refusal::new(e.reason(), format!("{field}: {e}")))
}

fn required<'a>(field: &str, text: &'a Option<String>, why: &str) -> Result<&'a str, Refusal> {
    text.as_deref().ok_or_else(|| Refusal::malformed(format!("{field} is missing: {why}")))
}

fn absent<T>(field: &str, value: &Option<T>, why: &str) -> Result<(), Refusal> {
    if value.is_some() { Err(Refusal::malformed(format!("{field} does not go here: {why}"))) } else { Ok(()) }
}

/// What a participant calls an order.
pub fn client_order(text: &str) -> Result<ClientOrder, Refusal> {
    ClientOrder::parse(text).map_err(|e| Refusal::malformed(format!("client_order_id: {text:?}: {e}")))
}

/// Finds an instrument by its symbol.
pub fn instrument<'a>(catalog: &'a Catalog, symbol: &str) -> Result<&'a InstrumentScale, Refusal> {
    catalog.instrument_by_symbol(symbol).ok_or_else(|| catalog.unknown_instrument("instrument", symbol))
}

/// `POST /v1/orders`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderRequest {
    pub(super) instrument: String,
    pub(super) client_order_id: Option<String>,
    side: String,
    size: String,
    #[serde(rename = "type")]
    order_type: String,
    price: Option<String>,
    trigger: Option<String>,
    trail: Option<String>,
    trail_ppm: Option<u32>,
    time_in_force: Option<String>,
    expire_time_ns: Option<String>,
    post_only: Option<String>,
    display: Option<String>,
    peak: Option<String>,
    min_size: Option<String>,
    self_trade: Option<String>,
    oco_with: Option<String>,
    exit_of: Option<String>,
    pub(super) take_profit: Option<ExitRequest>,
    pub(super) stop_loss: Option<ExitRequest>,
}

impl OrderRequest {
    /// The command, and what its answer is about. `fresh` names an order that the client did not.
    pub fn command(
        &self,
        account: AccountId,
        catalog: &Catalog,
        fresh: impl FnOnce() -> ClientOrderId,
    ) -> Result<(Command, Subject), Refusal> {
        let numbered = "it goes without a session's number; with one, send it before its entry, as an order with exit_of";
        absent("take_profit", &self.take_profit, numbered)?;
        absent("stop_loss", &self.stop_loss, numbered)?;
        self.command_alone(account, catalog, fresh)
    }

    /// As [`Self::command`], of the order without its exits.
    pub(super) fn command_alone(
        &self,
        account: AccountId,
        catalog: &Catalog,
        fresh: impl FnOnce() -> ClientOrderId,
    ) -> Result<(Command, Subject), Refusal> {
        let scale = instrument(catalog, &self.instrument)?;
        let called = match &self.client_order_id {
            Some(text) => client_order(text)?,
            None => fresh().into(),
        };
        let instrument = scale.spec.instrument;
        let order = NewOrder { account, instrument, client_order_id: called.id, terms: self.terms(scale)? };
        let [other, entry] = [&self.oco_with, &self.exit_of].map(|name| name.as_deref().map(client_order).transpose());
        let command = match (other?, entry?, called.name) {
            (Some(_), Some(_), _) => return Err(Refusal::malformed("exit_of does not go here: there is oco_with")),
            (Some(other), None, name) => OrderCommand::NewLinked(LinkedOrder::new(&order, other.id, name)),
            (None, Some(entry), name) => OrderCommand::NewLinked(LinkedOrder::exit(&order, entry.id, name)),
            (None, None, Some(name)) => OrderCommand::NewNamed(NamedOrder::new(&order, name)),
            (None, None, None) => OrderCommand::New(order),
        };
        Ok((Command::Order(command), Subject { account, instrument, called }))
    }

    pub(super) fn terms(&self, scale: &InstrumentScale) -> Result<OrderTerms, Refusal> {
        let side = named("side", &self.side, names::parse_side, "buy, sell")?;
        let size = field("size", scale.parse_size(&self.size))?;
        let post_only = match &self.post_only {
            Some(text) => named("post_only", text, names::parse_post_only, "off, reject, reprice")?,
            None => PostOnly::Off,
        };
        let price = |why| field("price", scale.parse_price(required("price", &self.price, why)?));
        let trigger = |why| field("trigger", scale.parse_price(required("trigger", &self.trigger, why)?));
        let order_type = match self.order_type.as_str() {
            "limit" => {
                absent("trigger", &self.trigger, "use type stop_limit or take_profit_limit")?;
                OrderType::Limit { price: price("a limit order needs one")?, post_only }
            }
            "market" => {
                absent("price", &self.price, "use type limit")?;
                absent("trigger", &self.trigger, "use type stop or take_profit")?;
                OrderType::Market
            }
            "stop" => {
                absent("price", &self.price, "use type stop_limit")?;
                OrderType::Stop { trigger: trigger("a stop order needs one")? }
            }
            "stop_limit" => OrderType::StopLimit {
                trigger: trigger("a stop-limit order needs one")?,
                price: price("a stop-limit order needs one")?,
            },
            "take_profit" => {
                absent("price", &self.price, "use type take_profit_limit")?;
                OrderType::TakeProfit { trigger: trigger("a take-profit order needs one")? }
            }
            "take_profit_limit" => OrderType::TakeProfitLimit {
                trigger: trigger("a take-profit-limit order needs one")?,
                price: price("a take-profit-limit order needs one")?,
            },
            "trailing_stop" => {
                absent("price", &self.price, "use type trailing_stop_limit")?;
                OrderType::TrailingStop { trail: self.trail(scale)? }
            }
            "trailing_stop_limit" => {
                OrderType::TrailingStopLimit { trail: self.trail(scale)?, price: price("a trailing-stop-limit order needs one")? }
            }
            other => {
                let types = "limit, market, stop, stop_limit, take_profit, take_profit_limit, trailing_stop, trailing_stop_limit";
                return Err(Refusal::malformed(format!("type: {other:?} is none of {types}")));
            }
        };
        if order_type.trail().is_some() {
            absent("trigger", &self.trigger, "it follows the market; give trail or trail_ppm")?;
        } else {
            absent("trail", &self.trail, "use type trailing_stop or trailing_stop_limit")?;
            absent("trail_ppm", &self.trail_ppm, "use type trailing_stop or trailing_stop_limit")?;
        }
        if post_only != PostOnly::Off && !matches!(order_type, OrderType::Limit { .. }) {
            return Err(Refusal::new(RejectReason::PostOnlyInvalid, "post_only"));
        }
        let default_tif = if matches!(order_type, OrderType::Market) { "ioc" } else { "gtc" };
        let time_in_force = match self.time_in_force.as_deref().unwrap_or(default_tif) {
            "gtt" => {
                let text = required("expire_time_ns", &self.expire_time_ns, "a gtt order needs one")?;
                TimeInForce::GoodTill(TimeNs(number("expire_time_ns", text)?))
            }
            other => {
                absent("expire_time_ns", &self.expire_time_ns, "use time_in_force gtt")?;
                match other {
                    "gtc" => TimeInForce::GoodTillCancel,
                    "day" => TimeInForce::Day,
                    "ioc" => TimeInForce::ImmediateOrCancel,
                    "fok" => TimeInForce::FillOrKill,
                    _ => return Err(Refusal::malformed(format!("time_in_force: {other:?} is none of gtc, day, gtt, ioc, fok"))),
                }
            }
        };
        let display = match self.display.as_deref().unwrap_or("full") {
            "iceberg" => {
                let peak = required("peak", &self.peak, "an iceberg order needs one")?;
                Display::Iceberg { peak: field("peak", scale.parse_size(peak))? }
            }
            other => {
                absent("peak", &self.peak, "use display iceberg")?;
                match other {
                    "full" => Display::Full,
                    "hidden" => Display::Hidden,
                    _ => return Err(Refusal::malformed(format!("display: {other:?} is none of full, iceberg, hidden"))),
                }
            }
        };
        let min_size = self.min_size.as_deref().map(|text| field("min_size", scale.parse_size(text))).transpose()?;
        let self_trade = match &self.self_trade {
            Some(text) => {
                let known = "cancel_newest, cancel_oldest, cancel_both, decrement, allow";
                named("self_trade", text, names::parse_self_trade, known)?
            }
            None => SelfTrade::CancelNewest,
        };
        Ok(OrderTerms { side, size, order_type, time_in_force, display, min_size, self_trade })
    }
}

impl OrderRequest {
    /// The distance of a trailing stop.
    fn trail(&self, scale: &InstrumentScale) -> Result<Trail, Refusal> {
        match (&self.trail, self.trail_ppm) {
            (Some(text), None) => {
                let ticks = u32::try_from(field("trail", scale.parse_price(text))?.get());
                ticks.map(Trail::Ticks).map_err(|_| Refusal::new(RejectReason::TrailInvalid, "trail"))
            }
            (None, Some(ppm)) => Ok(Trail::Ppm(ppm)),
            (None, None) => Err(Refusal::malformed("trail is missing: a trailing stop needs trail (in quote) or trail_ppm")),
            (Some(_), Some(_)) => Err(Refusal::malformed("trail_ppm does not go here: there is a trail")),
        }
    }
}

/// An order, named by its path or by a WebSocket message.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelRequest {
    /// Symbol.
    pub instrument: String,
    /// Digits, or a name.
    pub client_order_id: String,
}

impl CancelRequest {
    /// What it is about.
    pub fn subject(&self, account: AccountId, catalog: &Catalog) -> Result<Subject, Refusal> {
        let instrument = instrument(catalog, &self.instrument)?.spec.instrument;
        Ok(Subject { account, instrument, called: client_order(&self.client_order_id)? })
    }

    /// The command.
    pub fn command(&self, account: AccountId, catalog: &Catalog) -> Result<(Command, Subject), Refusal> {
        let subject = self.subject(account, catalog)?;
        let Subject { instrument, called: ClientOrder { id: client_order_id, .. }, .. } = subject;
        Ok((Command::Order(OrderCommand::Cancel(CancelOrder { account, instrument, client_order_id })), subject))
    }
}

/// The body of `PATCH /v1/orders/{instrument}/{client_order_id}`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AmendRequest {
    price: Option<String>,
    trigger: Option<String>,
    size: Option<String>,
}

impl AmendRequest {
    /// The command.
    pub fn command(&self, of: &CancelRequest, account: AccountId, catalog: &Catalog) -> Result<(Command, Subject), Refusal> {
        let subject = of.subject(account, catalog)?;
        let scale = instrument(catalog, &of.instrument)?;
        let price = self.price.as_deref().map(|text| field("price", scale.parse_price(text))).transpose()?;
        let size = self.size.as_deref().map(|text| field("size", scale.parse_size(text))).transpose()?;
        let trigger = self.trigger.as_deref().map(|text| field("trigger", scale.parse_price(text))).transpose()?;
        if price.is_none() && trigger.is_none() && size.is_none() {
            return Err(Refusal::malformed("give price, trigger, size or several of them"));
        }
        let Subject { instrument, called: ClientOrder { id: client_order_id, .. }, .. } = subject;
        Ok((
            Command::Order(OrderCommand::Amend(AmendOrder {
                account,
                instrument,
                amendment: Amendment { client_order_id, price, trigger, size },
            })),
            subject,
        ))
    }
}

/// What `DELETE /v1/orders` cancels.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MassCancelRequest {
    pub(super) instrument: Option<String>,
    pub(super) side: Option<String>,
}

impl MassCancelRequest {
    /// The command.
    pub fn command(&self, account: AccountId, catalog: &Catalog) -> Result<Command, Refusal> {
        let instrument = self.instrument.as_deref().map(|text| instrument(catalog, text).map(|s| s.spec.instrument)).transpose()?;
        let side: Option<Side> =
            self.side.as_deref().map(|text| named("side", text, names::parse_side, "buy, sell")).transpose()?;
        Ok(Command::Order(OrderCommand::MassCancel(MassCancel { account, instrument, side })))
    }
}

fn symbol(text: &str) -> Result<Symbol, Refusal> {
    Symbol::new(text).ok_or_else(|| Refusal::malformed(format!("symbol: {text:?} is not 1 to 15 characters of A-Z 0-9 / - . _")))
}

/// `POST /v1/admin/assets`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssetRequest {
    symbol: String,
    decimals: u8,
}

impl AssetRequest {
    /// The command.
    pub fn command(&self, next: AssetId) -> Result<Command, Refusal> {
        Ok(Command::Venue(VenueCommand::CreateAsset(AssetSpec {
            asset: next,
            symbol: symbol(&self.symbol)?,
            decimals: self.decimals,
        })))
    }
}

/// Sharing within a price level, as in `POST /v1/admin/instruments`.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum AllocationRequest {
    PriceTime {},
    ProRata { min_size: Option<String> },
    TopProRata { top_size_max: String, min_size: Option<String> },
    Split { fifo_percent: u8, min_size: Option<String> },
}

/// Limits in an instrument; what is not given is as in [`RiskLimits::STANDARD`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsBody {
    order_size_max: Option<String>,
    order_value_max: Option<String>,
    open_orders_max: Option<u32>,
    position_max: Option<String>,
}

impl LimitsBody {
    fn limits(&self, scale: &InstrumentScale) -> Result<RiskLimits, Refusal> {
        let standard = RiskLimits::STANDARD;
        let size = |name, text: &Option<String>, standard| match text {
            Some(text) if text == "0" => Ok(SizeLots::ZERO),
            Some(text) => field(name, scale.parse_size(text)),
            None => Ok(standard),
        };
        Ok(RiskLimits {
            order_lots_max: size("order_size_max", &self.order_size_max, standard.order_lots_max)?,
            order_value_max: match &self.order_value_max {
                Some(text) => field("order_value_max", scale.quote.parse(text))?,
                None => standard.order_value_max,
            },
            open_orders_max: self.open_orders_max.unwrap_or(standard.open_orders_max),
            position_lots_max: size("position_max", &self.position_max, standard.position_lots_max)?,
        })
    }
}

/// `POST /v1/admin/instruments`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstrumentRequest {
    symbol: String,
    base: String,
    quote: String,
    tick_size: String,
    lot_size: String,
    reference_price: String,
    #[serde(default)]
    maker_fee_ppm: i32,
    #[serde(default)]
    taker_fee_ppm: i32,
    collar_ppm: Option<u32>,
    band_ppm: Option<u32>,
    allocation: Option<AllocationRequest>,
    #[serde(default)]
    default_limits: LimitsBody,
}

impl InstrumentRequest {
    /// The command. Units follow from the tick and the lot: both must be whole numbers of the assets' smallest units.
    pub fn command(&self, next: InstrumentId, catalog: &Catalog) -> Result<Command, Refusal> {
        let asset = |name: &str, text: &str| {
            let unknown = || catalog.unknown_asset(name, text);
            catalog.asset_by_symbol(text).copied().ok_or_else(unknown)
        };
        let (base, quote) = (asset("base", &self.base)?, asset("quote", &self.quote)?);
        let lot_units = field("lot_size", base.parse(&self.lot_size))?.get();
        let tick_value_units = tick_value_units(&self.tick_size, lot_units, &base, &quote)?;
        let mut spec = InstrumentSpec {
            instrument: next,
            symbol: symbol(&self.symbol)?,
            base: base.spec.asset,
            quote: quote.spec.asset,
            lot_units,
            tick_value_units,
            allocation: Allocation::PriceTime,
            fees: FeeSchedule { maker_ppm: self.maker_fee_ppm, taker_ppm: self.taker_fee_ppm },
            collar_ppm: self.collar_ppm.unwrap_or(200_000),
            band_ppm: self.band_ppm.unwrap_or(200_000),
            reference_price: walras_types::PriceTicks::MIN,
            default_limits: RiskLimits::STANDARD,
        };
        let scale = InstrumentScale::new(spec, base, quote).map_err(|e| Refusal::new(RejectReason::SpecInvalid, e.to_string()))?;
        spec.reference_price = field("reference_price", scale.parse_price(&self.reference_price))?;
        spec.default_limits = self.default_limits.limits(&scale)?;
        let min = |text: &Option<String>| match text {
            Some(text) => field("allocation.min_size", scale.parse_size(text)),
            None => Ok(SizeLots::new(1)),
        };
        spec.allocation = match self.allocation.as_ref().unwrap_or(&AllocationRequest::PriceTime {}) {
            AllocationRequest::PriceTime {} => Allocation::PriceTime,
            AllocationRequest::ProRata { min_size } => Allocation::ProRata { min_lots: min(min_size)? },
            AllocationRequest::TopProRata { top_size_max, min_size } => Allocation::TopProRata {
                top_lots_max: field("allocation.top_size_max", scale.parse_size(top_size_max))?,
                min_lots: min(min_size)?,
            },
            AllocationRequest::Split { fifo_percent, min_size } => {
                Allocation::Split { fifo_percent: *fifo_percent, min_lots: min(min_size)? }
            }
        };
        Ok(Command::Instrument(InstrumentCommand::Create(spec)))
    }
}

/// Quote units of one tick on one lot: `tick_size * lot_units / 10^(base_decimals - quote_decimals)`, which must be a whole number.
fn tick_value_units(tick_size: &str, lot_units: u64, base: &AssetScale, quote: &AssetScale) -> Result<u64, Refusal> {
    let whole = || {
        let detail =
            "tick_size: times lot_size it must be a whole number of the quote asset's smallest units, and below 2^64 of them";
        Refusal::new(RejectReason::SpecInvalid, detail)
    };
    // A price of one tick on 10^base_decimals units of base, in the quote's finest decimal and then some.
    let fine = AssetSpec { decimals: ASSET_DECIMALS_MAX, ..quote.spec };
    let fine = AssetScale::new(fine).map_err(|e| Refusal::new(RejectReason::SpecInvalid, e.to_string()))?;
    let tick = u128::from(field("tick_size", fine.parse(tick_size))?.get());
    let numerator = tick.checked_mul(u128::from(lot_units)).ok_or_else(whole)?;
    let denominator_decimals = u32::from(ASSET_DECIMALS_MAX) + u32::from(base.spec.decimals) - u32::from(quote.spec.decimals);
    let denominator = 10_u128.pow(denominator_decimals);
    if numerator == 0 {
        return Err(whole());
    }
    if !numerator.is_multiple_of(denominator) {
        // What is missing is a power of ten, since both are decimals.
        let missing =
            (1..=denominator_decimals).find(|more| numerator.is_multiple_of(denominator / 10_u128.pow(*more))).unwrap_or(0);
        let (symbol, decimals) = (quote.spec.symbol, quote.spec.decimals);
        let detail = format!(
            "tick_size: a tick on a lot is less than the smallest unit of {symbol}, which has {decimals} decimals. Make the tick or the lot {} \
             times as large, or trade against an asset of {} decimals (those of {symbol} cannot be changed)",
            10_u128.pow(missing),
            u32::from(decimals) + missing,
        );
        return Err(Refusal::new(RejectReason::SpecInvalid, detail));
    }
    u64::try_from(numerator / denominator).map_err(|_| whole())
}

/// `POST /v1/admin/accounts`: nothing to say.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountRequest {}

/// `POST /v1/admin/deposits` and `/withdrawals`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferRequest {
    account_id: u32,
    asset: String,
    amount: String,
    transfer_id: String,
}

impl TransferRequest {
    /// What is moved.
    pub fn transfer(&self, catalog: &Catalog) -> Result<Transfer, Refusal> {
        let unknown = || catalog.unknown_asset("asset", &self.asset);
        let asset = catalog.asset_by_symbol(&self.asset).ok_or_else(unknown)?;
        Ok(Transfer {
            account: AccountId(self.account_id),
            asset: asset.spec.asset,
            amount: field("amount", asset.parse(&self.amount))?,
            transfer_id: TransferId(number("transfer_id", &self.transfer_id)?),
        })
    }
}

/// `POST /v1/admin/fees`: moves collected fees to an account.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeesRequest {
    account_id: u32,
    asset: String,
}

impl FeesRequest {
    /// The command.
    pub fn command(&self, catalog: &Catalog) -> Result<Command, Refusal> {
        let unknown = || catalog.unknown_asset("asset", &self.asset);
        let asset = catalog.asset_by_symbol(&self.asset).ok_or_else(unknown)?.spec.asset;
        Ok(Command::Account(AccountCommand::CollectFees(CollectFees { asset, account: AccountId(self.account_id) })))
    }
}

/// `POST /v1/admin/limits`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsRequest {
    account_id: u32,
    instrument: String,
    limits: LimitsBody,
}

impl LimitsRequest {
    /// The command.
    pub fn command(&self, catalog: &Catalog) -> Result<Command, Refusal> {
        let scale = instrument(catalog, &self.instrument)?;
        Ok(Command::Account(AccountCommand::SetRiskLimits(SetRiskLimits {
            account: AccountId(self.account_id),
            instrument: scale.spec.instrument,
            limits: self.limits.limits(scale)?,
        })))
    }
}

/// `POST /v1/admin/phases`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseRequest {
    instrument: String,
    phase: String,
}

impl PhaseRequest {
    /// The command.
    pub fn command(&self, catalog: &Catalog) -> Result<Command, Refusal> {
        let known = "closed, pre_open, opening_auction, continuous, halt, closing_auction";
        Ok(Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase {
            instrument: instrument(catalog, &self.instrument)?.spec.instrument,
            phase: named("phase", &self.phase, names::parse_phase, known)?,
        })))
    }
}

/// `POST /v1/admin/account-status`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountStatusRequest {
    account_id: u32,
    status: String,
}

impl AccountStatusRequest {
    /// The command.
    pub fn command(&self) -> Result<Command, Refusal> {
        Ok(Command::Account(AccountCommand::SetStatus(SetAccountStatus {
            account: AccountId(self.account_id),
            status: named("status", &self.status, names::parse_account_status, "active, suspended")?,
        })))
    }
}

mod shards;

pub use shards::{InstrumentShardRequest, TransferOutRequest, TransfersInRequest};

#[cfg(test)]
mod tests;
