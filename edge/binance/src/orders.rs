//! What a participant does with orders: parameters into commands, and what came of these.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use walras_archive::RecordKind;
use walras_engine::DepthLevel;
use walras_gateway::ClientOrder;
use walras_market_data::AccountRecord;
use walras_ports::{InstrumentScale, OrderCursor, OrderKey, Outcome, RecordFilter, View};
use walras_sequencer::SignedBy;
use walras_types::limits::TRAIL_PPM_MAX;
use walras_types::{
    AccountId, Amount, Display, InstrumentId, LogIndex, OrderId, OrderTerms, OrderType, PostOnly, RejectReason, SelfTrade, Side,
    SizeLots, TimeInForce, Trail,
};
use walras_wire::{
    CancelOrder, Command, Event, Link, LinkedOrder, MassCancel, NamedOrder, NewOrder, OrderCancelled, OrderCommand, OrderEvent,
};

use crate::app::App;
use crate::client_ids;
use crate::error::{Asked, Error, without_outcome};
use crate::kinds;
use crate::limits::{PPM_PER_DELTA, QUOTE_LEVELS_MAX};
use crate::names::Names;
use crate::params::{Params, quantity};
use crate::past::{self, Look};
use crate::past_pages::{self, Asked as AskedPast, End};
use crate::report::{self, Order, Status, cancel_status};
use crate::values::{merge, ms};

/// How much an answer to an order says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    Ack,
    Result,
    Full,
}

/// An order that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) symbol: String,
    pub(crate) scale: InstrumentScale,
    pub(crate) terms: OrderTerms,
    /// A market order for so much quote: its terms are made when the book is known.
    quote: Option<Amount>,
    pub(crate) called: ClientOrder,
    detail: Detail,
    /// The order with which it is to be linked.
    other: Option<(Link, ClientOrder)>,
}

/// The instrument of the parameter `symbol`.
pub(crate) fn instrument<'n>(names: &'n Names, params: &Params) -> Result<(String, &'n InstrumentScale), Error> {
    let symbol = params.symbol()?.ok_or_else(|| Error::missing("symbol"))?;
    let scale = names.instrument(symbol).ok_or_else(Error::symbol)?;
    Ok((symbol.to_owned(), scale))
}

fn unsupported(params: &Params) -> Result<(), Error> {
    if params.has("pegPriceType") || params.has("pegOffsetValue") || params.has("pegOffsetType") {
        return Err(Error::new(-2010, "Pegged orders are not supported for this symbol."));
    }
    Ok(())
}

/// The distance of a trailing stop: `trailingDelta` is in hundredths of a percent. One that begins to follow at a price is not there.
fn trail(params: &Params) -> Result<Option<Trail>, Error> {
    let Some(delta) = params.number("trailingDelta")? else { return Ok(None) };
    if params.has("stopPrice") {
        return Err(Error::new(-2010, "Trailing stop orders with a stopPrice are not supported for this symbol."));
    }
    let ppm =
        delta.checked_mul(PPM_PER_DELTA).and_then(|ppm| u32::try_from(ppm).ok()).filter(|ppm| (1..=TRAIL_PPM_MAX).contains(ppm));
    ppm.map(|ppm| Some(Trail::Ppm(ppm))).ok_or_else(|| Error::filter("TRAILING_DELTA"))
}

/// A parameter that another one excludes.
fn not_required(params: &Params, name: &str) -> Result<(), Error> {
    if !params.has(name) {
        return Ok(());
    }
    Err(match name {
        "timeInForce" => Error::new(-1114, "TimeInForce parameter sent when not required."),
        _ => Error::new(-1106, format!("Parameter '{name}' sent when not required.")),
    })
}

impl Wanted {
    /// Reads the parameters of a new order.
    pub(crate) fn read(names: &Names, params: &Params) -> Result<Self, Error> {
        let (symbol, scale) = instrument(names, params)?;
        let side = match params.required("side")? {
            "BUY" => Side::Buy,
            "SELL" => Side::Sell,
            _ => return Err(Error::new(-1117, "Invalid side.")),
        };
        let kind = params.required("type")?.to_owned();
        unsupported(params)?;
        let price = |name: &str| -> Result<_, Error> {
            let text = params.decimal(name)?.ok_or_else(|| Error::missing(name))?;
            scale.parse_price(text).map_err(|e| quantity(name, e))
        };
        let trail = trail(params)?;
        let needs_tif = || params.required("timeInForce").map(|_| ());
        let (order_type, default_detail) = match (kind.as_str(), trail) {
            ("LIMIT", None) => {
                needs_tif()?;
                (OrderType::Limit { price: price("price")?, post_only: PostOnly::Off }, Detail::Full)
            }
            ("LIMIT_MAKER", None) => (OrderType::Limit { price: price("price")?, post_only: PostOnly::Reject }, Detail::Ack),
            ("MARKET", None) => (OrderType::Market, Detail::Full),
            ("STOP_LOSS", Some(trail)) => (OrderType::TrailingStop { trail }, Detail::Ack),
            ("STOP_LOSS_LIMIT", Some(trail)) => {
                needs_tif()?;
                (OrderType::TrailingStopLimit { trail, price: price("price")? }, Detail::Ack)
            }
            ("STOP_LOSS", None) => (OrderType::Stop { trigger: price("stopPrice")? }, Detail::Ack),
            ("STOP_LOSS_LIMIT", None) => {
                needs_tif()?;
                (OrderType::StopLimit { trigger: price("stopPrice")?, price: price("price")? }, Detail::Ack)
            }
            ("TAKE_PROFIT", None) => (OrderType::TakeProfit { trigger: price("stopPrice")? }, Detail::Ack),
            ("TAKE_PROFIT_LIMIT", None) => {
                needs_tif()?;
                (OrderType::TakeProfitLimit { trigger: price("stopPrice")?, price: price("price")? }, Detail::Ack)
            }
            ("LIMIT" | "LIMIT_MAKER" | "MARKET", Some(_)) => {
                return Err(Error::new(-1106, "Parameter 'trailingDelta' sent when not required."));
            }
            ("TAKE_PROFIT" | "TAKE_PROFIT_LIMIT", Some(_)) => {
                return Err(Error::new(-2010, "Trailing take-profit orders are not supported for this symbol."));
            }
            _ => return Err(Error::new(-1116, "Invalid orderType.")),
        };
        let has_price = order_type.limit().is_some();
        if !has_price {
            not_required(params, "price")?;
        }
        if order_type.trigger().is_none() {
            not_required(params, "stopPrice")?;
        }
        let takes_tif = has_price && !matches!(order_type, OrderType::Limit { post_only: PostOnly::Reject, .. });
        let time_in_force = if takes_tif {
            match params.required("timeInForce")? {
                "GTC" => TimeInForce::GoodTillCancel,
                "IOC" => TimeInForce::ImmediateOrCancel,
                "FOK" => TimeInForce::FillOrKill,
                _ => return Err(Error::new(-1115, "Invalid timeInForce.")),
            }
        } else {
            not_required(params, "timeInForce")?;
            if matches!(order_type, OrderType::Market) { TimeInForce::ImmediateOrCancel } else { TimeInForce::GoodTillCancel }
        };
        let display = match params.decimal("icebergQty")? {
            None => Display::Full,
            Some(text) if text.bytes().all(|b| b == b'0' || b == b'.') => Display::Full,
            Some(text) => Display::Iceberg { peak: scale.parse_size(text).map_err(|e| quantity("icebergQty", e))? },
        };
        if display != Display::Full && (!has_price || time_in_force != TimeInForce::GoodTillCancel) {
            return Err(Error::new(-1014, "Unsupported order combination."));
        }
        let (size, quote) = match (params.decimal("quantity")?, params.decimal("quoteOrderQty")?) {
            (Some(_), Some(_)) => return Err(Error::new(-1106, "Parameter 'quoteOrderQty' sent when not required.")),
            (Some(text), None) => (scale.parse_size(text).map_err(|e| quantity("quantity", e))?, None),
            (None, Some(text)) if matches!(order_type, OrderType::Market) => {
                let amount = scale.quote.parse(text).map_err(|e| quantity("quoteOrderQty", e))?;
                if amount.is_zero() {
                    return Err(Error::filter("NOTIONAL"));
                }
                (SizeLots::ZERO, Some(amount))
            }
            (None, Some(_)) => return Err(Error::new(-1106, "Parameter 'quoteOrderQty' sent when not required.")),
            (None, None) => return Err(Error::missing("quantity")),
        };
        let self_trade = match params.text("selfTradePreventionMode")? {
            None => SelfTrade::CancelNewest,
            Some(text) => kinds::parse_self_trade(text).ok_or_else(|| Error::invalid("selfTradePreventionMode"))?,
        };
        let detail = match params.text("newOrderRespType")? {
            None => default_detail,
            Some("ACK") => Detail::Ack,
            Some("RESULT") => Detail::Result,
            Some("FULL") => Detail::Full,
            Some(_) => return Err(Error::invalid("newOrderRespType")),
        };
        let called = params.client_order_id("newClientOrderId")?.unwrap_or_else(client_ids::fresh);
        let terms = OrderTerms { side, size, order_type, time_in_force, display, min_size: None, self_trade };
        Ok(Self { symbol, scale: *scale, terms, quote, called, detail, other: None })
    }

    /// The same, linked with an open order.
    pub(crate) fn linked_with(self, other: ClientOrder) -> Self {
        Self { other: Some((Link::Oco, other)), ..self }
    }

    /// The same, as an exit of an order that is to come.
    pub(crate) fn exit_of(self, entry: ClientOrder) -> Self {
        Self { other: Some((Link::Exit, entry)), ..self }
    }

    /// What a market order for an amount of quote says, by the book as it is: all that the amount buys or brings at a price which
    /// fills it. It trades at that price or better, at once, and never for more.
    async fn with_size(mut self, app: &App) -> Result<Self, Error> {
        let Some(quote) = self.quote else { return Ok(self) };
        let (instrument, side) = (self.scale.spec.instrument, self.terms.side.opposite());
        let levels = app.venue.read(move |v| {
            let mut levels = Vec::new();
            v.engine.depth(instrument, side, QUOTE_LEVELS_MAX, &mut levels);
            levels
        });
        let (price, size) = sized(&self.scale, quote, self.terms.side, &levels.await?)?;
        self.terms.order_type = OrderType::Limit { price, post_only: PostOnly::Off };
        self.terms.size = size;
        Ok(self)
    }

    /// Places it, and answers with what came of it.
    pub(crate) async fn place(self, app: &App, account: AccountId, signed: SignedBy) -> Result<Value, Error> {
        app.venue.catalog_for_commands()?;
        let wanted = self.with_size(app).await?;
        let new =
            NewOrder { account, instrument: wanted.scale.spec.instrument, client_order_id: wanted.called.id, terms: wanted.terms };
        let command = match (wanted.other, wanted.called.name) {
            (Some((Link::Oco, other)), name) => OrderCommand::NewLinked(LinkedOrder::new(&new, other.id, name)),
            (Some((Link::Exit, entry)), name) => OrderCommand::NewLinked(LinkedOrder::exit(&new, entry.id, name)),
            (None, Some(name)) => OrderCommand::NewNamed(NamedOrder::new(&new, name)),
            (None, None) => OrderCommand::New(new),
        };
        let outcome = app.venue.command_by(signed, Command::Order(command)).await;
        let outcome = outcome.map_err(|why| without_outcome(Asked::Order, why))?;
        wanted.answer(account, &outcome)
    }

    fn answer(&self, account: AccountId, outcome: &Outcome) -> Result<Value, Error> {
        let placed = match outcome.rejected() {
            None => Placed::of(account, self, outcome),
            // In the dialect such an order was taken and expired.
            Some(RejectReason::FillOrKillUnfillable) => Placed {
                order_id: OrderId(outcome.log_index.0),
                status: Status::Expired,
                filled: SizeLots::ZERO,
                filled_tick_lots: 0,
                fills: Vec::new(),
            },
            Some(reason) => return Err(self.refusal(reason)),
        };
        let mut answer = json!({
            "symbol": self.symbol,
            "orderId": placed.order_id.0,
            "orderListId": -1,
            "clientOrderId": self.called.to_string(),
            "transactTime": ms(outcome.time),
        });
        if self.detail == Detail::Ack {
            return Ok(answer);
        }
        let (scale, terms) = (&self.scale, &self.terms);
        let is_market = self.quote.is_some() || matches!(terms.order_type, OrderType::Market);
        let fields = json!({
            "price": if is_market { report::no_price(scale) } else { report::limit_price(scale, terms) },
            "origQty": report::size(scale, terms.size),
            "executedQty": report::size(scale, placed.filled),
            "origQuoteOrderQty": self.quote.map_or_else(|| report::quote(scale, 0), |quote| scale.quote.amount(quote)),
            "cummulativeQuoteQty": report::quote(scale, placed.filled_tick_lots),
            "status": placed.status.name(),
            "timeInForce": if is_market { "GTC" } else { kinds::time_in_force(terms) },
            "type": if is_market { "MARKET" } else { kinds::order_type(terms) },
            "side": kinds::side(terms.side),
            "workingTime": ms(outcome.time),
            "selfTradePreventionMode": kinds::self_trade(terms.self_trade),
        });
        merge(&mut answer, fields);
        if terms.order_type.trigger().is_some() {
            answer["stopPrice"] = report::stop_price(scale, terms).into();
        }
        if let Some(delta) = report::trailing_delta(terms) {
            answer["trailingDelta"] = delta.into();
        }
        if terms.order_type.waits() {
            answer["workingTime"] = json!(-1);
        }
        if let Display::Iceberg { .. } = terms.display {
            answer["icebergQty"] = report::iceberg_size(scale, terms).into();
        }
        if self.detail == Detail::Full {
            answer["fills"] = placed.fills.into();
        }
        Ok(answer)
    }

    fn refusal(&self, reason: RejectReason) -> Error {
        match (reason, self.terms.order_type) {
            (RejectReason::SizeOutOfRange | RejectReason::OrderTooLarge, OrderType::Market) => Error::filter("MARKET_LOT_SIZE"),
            _ => Error::of(Asked::Order, reason),
        }
    }
}

/// The price down to which, or up to which, an amount of quote reaches into the book, and what it buys or brings there.
fn sized(
    scale: &InstrumentScale,
    quote: Amount,
    side: Side,
    levels: &[DepthLevel],
) -> Result<(walras_types::PriceTicks, SizeLots), Error> {
    let per_tick_lot = u128::from(scale.spec.tick_value_units);
    let tick_lots = u128::from(quote.get()) / per_tick_lot;
    let (mut lots, mut value, mut reached) = (0_u128, 0_u128, None);
    for level in levels {
        let price = u128::from(level.price.get().unsigned_abs());
        let here = u128::from(level.shown.get()).min(tick_lots.saturating_sub(value) / price);
        if here > 0 {
            (lots, value, reached) = (lots + here, value + here * price, Some(level.price));
        }
        if here < u128::from(level.shown.get()) {
            break;
        }
    }
    let few = "Order book liquidity is less than `LOT_SIZE` filter minimum quantity.";
    let reached = reached.ok_or_else(|| Error::new(-2010, few))?;
    // A buy may find less at the better prices than there was: at the last one it still pays no more than the amount.
    let most = if side == Side::Buy { tick_lots / u128::from(reached.get().unsigned_abs()) } else { lots };
    let lots = u64::try_from(lots.min(most)).ok().and_then(SizeLots::order_size).ok_or_else(|| Error::filter("LOT_SIZE"))?;
    Ok((reached, lots))
}

/// What came of an order within its own entry of the log.
struct Placed {
    order_id: OrderId,
    status: Status,
    filled: SizeLots,
    filled_tick_lots: u128,
    fills: Vec<Value>,
}

impl Placed {
    fn of(account: AccountId, wanted: &Wanted, outcome: &Outcome) -> Self {
        let order_id = OrderId(outcome.log_index.0);
        let scale = &wanted.scale;
        let (mut filled, mut filled_tick_lots, mut fills, mut ended) = (0_u64, 0_u128, Vec::new(), None);
        for event in &outcome.events {
            match event {
                Event::Order(OrderEvent::Traded(e)) if e.taker.order_id == order_id && e.taker.account == account => {
                    filled = filled.saturating_add(e.size.get());
                    filled_tick_lots = filled_tick_lots.saturating_add(report::tick_lots(e.price, e.size));
                    fills.push(json!({
                        "price": scale.price(e.price),
                        "qty": scale.size(e.size),
                        "commission": scale.quote.signed(e.taker.fee),
                        "commissionAsset": scale.quote.spec.symbol.as_str(),
                        "tradeId": e.trade_id.0,
                    }));
                }
                Event::Order(OrderEvent::Cancelled(e)) if e.order_id == order_id => ended = Some(cancel_status(e.reason)),
                _ => {}
            }
        }
        let filled = SizeLots::new(filled);
        let is_filled = filled >= wanted.terms.size;
        let status = ended.unwrap_or(if is_filled { Status::Filled } else { Status::open(filled) });
        Self { order_id, status, filled, filled_tick_lots, fills }
    }
}

/// Which order is meant, by one of two parameters. Both may be sent: then the order of that id must have that name.
pub(crate) type Which = (OrderKey, Option<ClientOrder>);

/// Reads it.
pub(crate) fn which(params: &Params, (id, name): (&str, &str)) -> Result<Which, Error> {
    let (of_id, of_name) = (params.number(id)?.map(OrderId), params.client_order_id(name)?);
    match (of_id, of_name) {
        (Some(id), name) => Ok((OrderKey::Venue(id), name)),
        (None, Some(name)) => Ok((OrderKey::Client(name.id), None)),
        (None, None) => Err(Error::new(-1102, format!("Param '{name}' or '{id}' must be sent, but both were empty/null!"))),
    }
}

fn with_name(order: Order, name: Option<ClientOrder>) -> Result<Order, Error> {
    match name {
        Some(name) if name.id != order.called.id => Err(Error::new(-2039, "Client order ID is not correct for this order ID.")),
        _ => Ok(order),
    }
}

/// An open order.
pub(crate) async fn find_open(
    app: &App,
    account: AccountId,
    instrument: InstrumentId,
    which: Which,
) -> Result<Option<Order>, Error> {
    app.venue.read(move |v| open(v, account, instrument, which)).await?
}

fn open(view: &View<'_>, account: AccountId, instrument: InstrumentId, (key, name): Which) -> Result<Option<Order>, Error> {
    let found = walras_ports::open_order(view, account, instrument, key);
    found.map(|listed| with_name(Order::listed(&listed), name)).transpose()
}

/// An order: an open one, or else the last one of that name that has ended.
pub(crate) async fn find(
    app: &App,
    account: AccountId,
    instrument: InstrumentId,
    (key, name): Which,
) -> Result<Option<Order>, Error> {
    let known = app.venue.read(move |v| walras_ports::known_order(v, account, instrument, key)).await?;
    if let Some(known) = known {
        return with_name(Order::known(&known), name).map(Some);
    }
    let found = match key {
        OrderKey::Venue(id) => {
            let (keys, begun) = ((id.0, id.0), past::times(None, None));
            // An order does not end before the entry by which it came, whose number is its id.
            let (kind, since) = (RecordKind::Ended, LogIndex(id.0));
            let asked = AskedPast { account, kind, instrument, keys, begun, since, limit: 1, end: End::Newest };
            past_pages::read(app, asked, |_| true).await?.first().and_then(ended)
        }
        OrderKey::Client(id) => {
            let filter = RecordFilter { instrument: Some(instrument), client_order_id: Some(id), ..RecordFilter::default() };
            let mut found = None;
            past::newest_first(app, past::asked(account, RecordKind::Ended), filter, |recorded| {
                found = ended(&recorded.record);
                Look::Enough
            })
            .await?;
            found
        }
    };
    found.map(|order| with_name(order, name)).transpose()
}

fn ended(record: &AccountRecord) -> Option<Order> {
    match record {
        AccountRecord::Ended(order) => Some(Order::ended(order)),
        AccountRecord::Fill(_) => None,
    }
}

/// A cancel that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Cancel {
    pub(crate) symbol: String,
    pub(crate) scale: InstrumentScale,
    which: Which,
    /// The cancel's own name.
    name: String,
    restriction: Option<Restriction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Restriction {
    OnlyNew,
    OnlyPartiallyFilled,
}

impl Cancel {
    /// Reads the parameters of a cancel; `id` and `name` are those that say which order.
    pub(crate) fn read(names: &Names, params: &Params, of: (&str, &str), own_name: &str) -> Result<Self, Error> {
        let (symbol, scale) = instrument(names, params)?;
        let which = which(params, of)?;
        let name = params.client_order_id(own_name)?.unwrap_or_else(client_ids::fresh).to_string();
        let restriction = match params.text("cancelRestrictions")? {
            None => None,
            Some("ONLY_NEW") => Some(Restriction::OnlyNew),
            Some("ONLY_PARTIALLY_FILLED") => Some(Restriction::OnlyPartiallyFilled),
            Some(_) => {
                let text = "`cancelRestrictions` has to be either `ONLY_NEW` or `ONLY_PARTIALLY_FILLED`.";
                return Err(Error::new(-1145, text));
            }
        };
        Ok(Self { symbol, scale: *scale, which, name, restriction })
    }

    /// Carries it out. Takes the signature unless there is nothing to cancel, so that nothing goes into the log.
    pub(crate) async fn carry_out(&self, app: &App, account: AccountId, signed: &mut Option<SignedBy>) -> Result<Value, Error> {
        app.venue.catalog_for_commands()?;
        let (instrument, which, restriction) = (self.scale.spec.instrument, self.which, self.restriction);
        let look = move |view: &View<'_>| cancellation(view, account, instrument, which, restriction);
        let cancelled = app.venue.command_after(signed.clone().unwrap_or(SignedBy::NOBODY), look).await;
        if !matches!(cancelled, Ok(Err(_))) {
            *signed = None;
        }
        let (mut order, outcome) = cancelled.map_err(|why| without_outcome(Asked::Cancel, why))??;
        if let Some(reason) = outcome.rejected() {
            return Err(Error::of(Asked::Cancel, reason));
        }
        close(&mut order, &outcome);
        Ok(report::cancelled(outcome.time, &order, &self.symbol, &self.scale, &self.name))
    }
}

/// An order that may be cancelled, and the command that does it.
fn cancellation(
    view: &View<'_>,
    account: AccountId,
    instrument: InstrumentId,
    which: Which,
    restriction: Option<Restriction>,
) -> Result<(Order, Command), Error> {
    let unknown = || Error::of(Asked::Cancel, RejectReason::UnknownOrder);
    let order = open(view, account, instrument, which)?.ok_or_else(unknown)?;
    if restriction.is_some_and(|only| (only == Restriction::OnlyNew) != order.filled.is_zero()) {
        return Err(Error::new(-2011, "Order was not canceled due to cancel restrictions."));
    }
    let cancel = CancelOrder { account, instrument, client_order_id: order.called.id };
    Ok((order, Command::Order(OrderCommand::Cancel(cancel))))
}

/// Notes on an order that was read before how a command ended it.
pub(crate) fn close(order: &mut Order, outcome: &Outcome) {
    if let Some(end) = ends(outcome).find(|end| end.order_id == order.order_id) {
        close_by(order, end);
    }
}

/// The orders that a command ended.
fn ends(outcome: &Outcome) -> impl Iterator<Item = &OrderCancelled> {
    outcome.events.iter().filter_map(|event| match event {
        Event::Order(OrderEvent::Cancelled(end)) => Some(end),
        _ => None,
    })
}

fn close_by(order: &mut Order, end: &OrderCancelled) {
    // What traded since it was read is gone from what was open.
    order.filled = order.size.saturating_sub(end.open);
    order.status = cancel_status(end.reason);
}

/// Cancels all open orders of an instrument.
pub(crate) async fn cancel_all(
    app: &App,
    account: AccountId,
    (symbol, scale): (&str, &InstrumentScale),
    signed: SignedBy,
) -> Result<Value, Error> {
    app.venue.catalog_for_commands()?;
    let instrument = scale.spec.instrument;
    let open = open_orders(app, account, Some(instrument)).await?;
    if open.is_empty() {
        return Err(Error::of(Asked::Cancel, RejectReason::UnknownOrder));
    }
    let command = MassCancel { account, instrument: Some(instrument), side: None };
    let outcome = app.venue.command_by(signed, Command::Order(OrderCommand::MassCancel(command))).await;
    let outcome = outcome.map_err(|why| without_outcome(Asked::Cancel, why))?;
    if let Some(reason) = outcome.rejected() {
        return Err(Error::of(Asked::Cancel, reason));
    }
    // By id: there may be ten thousand of each.
    let ended: BTreeMap<OrderId, &OrderCancelled> = ends(&outcome).map(|end| (end.order_id, end)).collect();
    let one = |(_, mut order): (InstrumentId, Order)| {
        let end = ended.get(&order.order_id)?;
        close_by(&mut order, end);
        Some(report::cancelled(outcome.time, &order, symbol, scale, &order.called.to_string()))
    };
    Ok(open.into_iter().filter_map(one).collect::<Vec<_>>().into())
}

/// All open orders of an account, or those of an instrument, as far as one answer goes.
pub(crate) async fn open_orders(
    app: &App,
    account: AccountId,
    only: Option<InstrumentId>,
) -> Result<Vec<(InstrumentId, Order)>, Error> {
    let (mut all, mut next) = (Vec::new(), Some(OrderCursor::begin(only.unwrap_or(InstrumentId(0)))));
    while let Some(from) = next.filter(|_| all.len() < OPEN_MAX) {
        let (listed, following) = app.venue.open_orders(account, only, from, PAGE).await?;
        all.extend(listed.iter().map(|listed| (listed.instrument, Order::listed(listed))));
        next = following;
    }
    Ok(all)
}

/// Open orders of a page, and in all.
const PAGE: usize = 1_000;
const OPEN_MAX: usize = 10_000;
