//! What is answered: the venue's values as JSON.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};
use walras_engine::{Balance, DepthLevel, Position, Uncross};
use walras_gateway::{ClientOrder, Decimal};
use walras_market_data::{BookLevel, Candle, EndedOrder, Fill, FillRole, OfferChange, OrderEnd, OrderStatus, PublicTrade};
use walras_ports::{
    AccountPart, AccountPush, AssetScale, Catalog, InstrumentScale, ListedInstrument, ListedOrder, OrderUpdate, OrderWait, Status,
    TickerPush,
};
use walras_types::{
    Allocation, Amount, AssetId, Display, InstrumentId, LogIndex, OrderTerms, OrderType, PostOnly, PriceTicks, RejectReason,
    RiskLimits, SizeLots, TimeInForce, TimeNs, Trail,
};
use walras_wire::Uncrossed;

use super::{batches, names};

/// The error body of every refusal.
#[must_use]
pub fn error(reason: RejectReason, detail: Option<&str>) -> Value {
    let mut body = json!({"code": reason.number(), "name": reason.name(), "message": reason.advice()});
    if let Some(detail) = detail {
        body["detail"] = detail.into();
    }
    body
}

/// `GET /v1/status`; `accepts_timestamps_from` is the gate's, the rest the venue's.
#[must_use]
pub fn status(status: &Status, catalog: &Catalog, accepts_timestamps_from: TimeNs) -> Value {
    let progress = status.progress();
    let demo = status.demo().map(|d| json!({"speed": d.speed, "source": d.source, "progress_permille": d.progress_permille}));
    json!({
        "venue": status.name(),
        "version": env!("CARGO_PKG_VERSION"),
        "commit": crate::COMMIT,
        "started_at_ns": status.started().0.to_string(),
        "accepts_timestamps_from_ns": accepts_timestamps_from.0.to_string(),
        "log_index": progress.log_index.0.to_string(),
        "time_ns": progress.time.0.to_string(),
        "ready": status.ready(),
        "storage": status.storage().name(),
        "fair_access": status.fair_access(),
        "instruments": catalog.instruments().len(),
        "accounts": status.accounts(),
        "commands_total": status.commands_total(),
        "trades_total": progress.trades_total,
        "demo": demo,
    })
}

/// One of `GET /v1/assets`.
#[must_use]
pub fn asset(asset: &AssetScale, supply: Amount) -> Value {
    let spec = &asset.spec;
    json!({
        "asset_id": spec.asset.0, "symbol": spec.symbol.as_str(), "decimals": spec.decimals, "supply": asset.amount(supply),
    })
}

/// One of `GET /v1/instruments`.
#[must_use]
pub fn instrument(scale: &InstrumentScale, listed: &ListedInstrument) -> Value {
    let mut body = listed_instrument(scale, listed);
    body["last_price"] = price(scale, listed.view.last_price).into();
    body
}

/// One of the channel `instruments`: all of it but what changes with each trade.
#[must_use]
pub fn listed_instrument(scale: &InstrumentScale, listed: &ListedInstrument) -> Value {
    let (spec, view) = (&scale.spec, &listed.view);
    let kind = names::allocation(&spec.allocation);
    let allocation = match spec.allocation {
        Allocation::PriceTime => json!({"kind": kind}),
        Allocation::ProRata { min_lots } => json!({"kind": kind, "min_size": scale.size(min_lots)}),
        Allocation::TopProRata { top_lots_max, min_lots } => {
            json!({"kind": kind, "top_size_max": scale.size(top_lots_max), "min_size": scale.size(min_lots)})
        }
        Allocation::Split { fifo_percent, min_lots } => {
            json!({"kind": kind, "fifo_percent": fifo_percent, "min_size": scale.size(min_lots)})
        }
    };
    json!({
        "instrument_id": spec.instrument.0,
        "symbol": spec.symbol.as_str(),
        "base": scale.base.spec.symbol.as_str(),
        "quote": scale.quote.spec.symbol.as_str(),
        "tick_size": scale.tick().to_string(),
        "lot_size": scale.lot().to_string(),
        "price_decimals": scale.tick().decimals(),
        "size_decimals": scale.lot().decimals(),
        "allocation": allocation,
        "maker_fee_ppm": spec.fees.maker_ppm,
        "taker_fee_ppm": spec.fees.taker_ppm,
        "collar_ppm": spec.collar_ppm,
        "band_ppm": spec.band_ppm,
        "phase": names::phase(view.phase),
        "phase_cause": listed.phase_cause.map(names::phase_cause),
        "reference_price": scale.price(view.reference_price),
        "last_uncross": listed.last_uncross.map(|last| last_uncross(scale, last)),
    })
}

/// `GET auction`: an instrument's phase and why it is in it, what an uncross would trade now, and how the latest one ended.
#[must_use]
pub fn auction(scale: &InstrumentScale, log_index: LogIndex, listed: &ListedInstrument, now: Option<Uncross>) -> Value {
    let view = &listed.view;
    json!({
        "instrument": scale.spec.symbol.as_str(),
        "log_index": log_index.0.to_string(),
        "phase": names::phase(view.phase),
        "phase_cause": listed.phase_cause.map(names::phase_cause),
        "reference_price": scale.price(view.reference_price),
        "indicative": indicative(scale, now),
        "last_uncross": listed.last_uncross.map(|last| last_uncross(scale, last)),
    })
}

/// What an uncross would trade now; `null` in continuous trading, or when nothing crosses.
#[must_use]
pub fn indicative(scale: &InstrumentScale, indicative: Option<Uncross>) -> Value {
    indicative.map_or(Value::Null, |now| uncross(scale, Some(now.price), now.volume, now.imbalance_lots))
}

fn last_uncross(scale: &InstrumentScale, last: Uncrossed) -> Value {
    uncross(scale, last.price, last.volume, last.imbalance_lots)
}

fn uncross(scale: &InstrumentScale, at: Option<PriceTicks>, volume: SizeLots, imbalance_lots: i64) -> Value {
    json!({"price": price(scale, at), "volume": scale.size(volume), "imbalance": scale.position(imbalance_lots)})
}

fn price(scale: &InstrumentScale, price: Option<PriceTicks>) -> Option<String> {
    price.map(|p| scale.price(p))
}

/// `GET book`. It is asked more often than all else, so it is written into its text without a [`Value`] between: that took three
/// allocations a number, and most of the processor's time of the answer.
#[derive(Clone, Copy, Debug)]
pub struct Depth<'a> {
    /// Of what.
    pub scale: &'a InstrumentScale,
    /// The last entry of the log that it shows.
    pub log_index: LogIndex,
    /// From the best on.
    pub bids: &'a [DepthLevel],
    /// From the best on.
    pub asks: &'a [DepthLevel],
    /// What an uncross would trade now; `None` in continuous trading, or when nothing crosses.
    pub indicative: Option<Uncross>,
}

impl Serialize for Depth<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { scale, log_index, bids, asks, indicative: now } = *self;
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("asks", &DepthLevels { scale, levels: asks })?;
        map.serialize_entry("bids", &DepthLevels { scale, levels: bids })?;
        map.serialize_entry("indicative", &indicative(scale, now))?;
        map.serialize_entry("instrument", scale.spec.symbol.as_str())?;
        map.serialize_entry("log_index", &Text(log_index.0))?;
        map.end()
    }
}

/// `[price, size, order_count]`, of a REST answer.
#[must_use]
pub fn depth(scale: &InstrumentScale, levels: &[DepthLevel]) -> Value {
    json!(DepthLevels { scale, levels })
}

struct DepthLevels<'a> {
    scale: &'a InstrumentScale,
    levels: &'a [DepthLevel],
}

impl Serialize for DepthLevels<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.levels.iter().map(|level| {
            let size = (!level.shown.is_zero()).then(|| self.scale.size_decimal(level.shown));
            (
                Text(self.scale.price_decimal(level.price)),
                size.map_or(Text(Size::Zero), |size| Text(Size::Some(size))),
                level.order_count,
            )
        }))
    }
}

/// A size; zero is written `0`.
enum Size {
    Zero,
    Some(Decimal),
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Zero => f.write_str("0"),
            Self::Some(size) => write!(f, "{size}"),
        }
    }
}

/// What is written as a text.
struct Text<T>(T);

impl<T: std::fmt::Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// `[price, size, order_count]`, of a feed.
#[must_use]
pub fn levels(scale: &InstrumentScale, levels: &[BookLevel]) -> Value {
    levels.iter().map(|l| json!([scale.price(l.price), scale.size(l.shown), l.order_count])).collect()
}

/// A trade on the tape.
#[must_use]
pub fn trade(scale: &InstrumentScale, trade: &PublicTrade) -> Value {
    json!({
        "trade_id": trade.trade_id.0.to_string(),
        "time_ns": trade.time.0.to_string(),
        "price": scale.price(trade.price),
        "size": scale.size(trade.size),
        "taker_side": trade.taker_side.map(names::side),
    })
}

/// A candle.
#[must_use]
pub fn candle(scale: &InstrumentScale, candle: &Candle) -> Value {
    json!({
        "time_s": candle.start_s,
        "open": scale.price(candle.open),
        "high": scale.price(candle.high),
        "low": scale.price(candle.low),
        "close": scale.price(candle.close),
        "volume": scale.size(candle.volume),
    })
}

/// An instrument at a glance.
#[must_use]
pub fn ticker(scale: &InstrumentScale, ticker: &TickerPush) -> Value {
    let best = |level: Option<BookLevel>| (price(scale, level.map(|l| l.price)), level.map(|l| scale.size(l.shown)));
    let (best_bid, best_bid_size) = best(ticker.best_bid);
    let (best_ask, best_ask_size) = best(ticker.best_ask);
    json!({
        "instrument": scale.spec.symbol.as_str(),
        "last_price": price(scale, ticker.last),
        "change_ppm": ticker.change_ppm,
        "open": price(scale, ticker.open),
        "previous_close": price(scale, ticker.previous_close),
        "high": price(scale, ticker.high),
        "low": price(scale, ticker.low),
        "best_bid": best_bid,
        "best_bid_size": best_bid_size,
        "best_ask": best_ask,
        "best_ask_size": best_ask_size,
        "volume": scale.size(ticker.volume),
        "turnover": scale.value(ticker.tick_lots).minimal().to_string(),
        "phase": names::phase(ticker.phase),
        "phase_cause": ticker.phase_cause.map(names::phase_cause),
    })
}

/// Balances of an account.
#[must_use]
pub fn balances(catalog: &Catalog, balances: &[(AssetId, Balance)]) -> Value {
    let one = |(id, balance): &(AssetId, Balance)| {
        let asset = catalog.asset(*id)?;
        Some(json!({
            "asset": asset.spec.symbol.as_str(),
            "available": asset.amount(balance.available),
            "reserved": asset.amount(balance.reserved),
        }))
    };
    balances.iter().filter_map(one).collect()
}

/// Positions of an account.
#[must_use]
pub fn positions(catalog: &Catalog, positions: &[(InstrumentId, Position)]) -> Value {
    let one = |(id, position): &(InstrumentId, Position)| {
        let scale = catalog.instrument(*id)?;
        Some(json!({
            "instrument": scale.spec.symbol.as_str(),
            "position": scale.position(position.net_lots),
            "open_orders": position.open_orders,
        }))
    };
    positions.iter().filter_map(one).collect()
}

/// An open order.
#[must_use]
pub fn order(scale: &InstrumentScale, listed: &ListedOrder) -> Value {
    let ListedOrder { instrument: _, order, history } = listed;
    let has_traded = history.is_some_and(|history| !history.filled.is_zero());
    let average = history.and_then(|history| scale.average_price(history.filled_tick_lots, history.filled));
    let mut body = terms(scale, &order.terms);
    body["order_id"] = order.order_id.0.to_string().into();
    let name = history.and_then(|history| history.about?.name);
    body["client_order_id"] = ClientOrder::of(order.client_order_id, name).to_string().into();
    if let Some(limit) = order.price {
        body["price"] = scale.price(limit).into();
    }
    if let Some(trigger) = order.trigger {
        body["trigger"] = scale.price(trigger).into();
    }
    body["open"] = scale.size(order.open).into();
    body["shown"] = scale.size(order.shown).into();
    body["linked_order_id"] = order.linked.map(|other| other.0.to_string()).into();
    if let Some(entry) = order.exit_of {
        body["exit_of"] = entry.0.to_string().into();
        body["is_held"] = order.is_held.into();
    }
    body["original_size"] = history.map(|history| scale.size(history.size)).into();
    body["filled"] = history.map(|history| scale.size(history.filled)).into();
    body["average_price"] = average.map(|price| price.to_string()).into();
    body["entered_at_ns"] = history.map(|history| history.entered.0.to_string()).into();
    let status = match order.price {
        None => OrderStatus::WaitingTrigger,
        Some(_) if has_traded => OrderStatus::PartiallyFilled,
        Some(_) => OrderStatus::Resting,
    };
    body["status"] = status_of(status).0.into();
    body
}

/// An open order, with all that is known of it.
#[must_use]
pub fn order_state(scale: &InstrumentScale, listed: &ListedOrder) -> Value {
    let about = listed.history.and_then(|history| history.about);
    let mut body = order(scale, listed);
    body["fee"] = about.map(|about| scale.quote.signed(about.fee)).into();
    body["fee_asset"] = scale.quote.spec.symbol.as_str().into();
    body["changed_at_ns"] = about.map(|about| about.changed.0.to_string()).into();
    body["ended_at_ns"] = Value::Null;
    body["cancelled"] = "0".into();
    body["reason"] = Value::Null;
    body
}

/// Where an order waited on its way in.
#[must_use]
pub fn waits(waits: &OrderWait) -> Value {
    json!({
        "leaf_ns": waits.leaf_ns,
        "gateway_ns": waits.gateway_ns,
        "sequencer_ns": waits.sequencer_ns,
        "log_ns": waits.log_ns(),
        "decided_ns": waits.decided_ns,
        "report_ns": waits.report_ns,
        "total_ns": waits.total_ns(),
        "late_ns": waits.late_ns,
    })
}

/// An order that has ended.
#[must_use]
pub fn ended_order(scale: &InstrumentScale, order: &EndedOrder) -> Value {
    let mut body = match &order.terms {
        Some(says) => terms(scale, says),
        None => {
            let plain = OrderTerms::limit(order.side, PriceTicks::MIN, order.size);
            let mut body = terms(scale, &plain);
            for unknown in ["type", "time_in_force", "post_only", "display", "self_trade"] {
                body[unknown] = Value::Null;
            }
            body
        }
    };
    let size = |lots: SizeLots| if lots.is_zero() { "0".to_owned() } else { scale.size(lots) };
    let average = scale.average_price(order.filled_tick_lots, order.filled);
    let (status, reason) = match order.end {
        OrderEnd::Filled => ("filled", None),
        OrderEnd::Cancelled(reason) => ("cancelled", Some(names::cancel_reason(reason))),
    };
    if order.terms.is_none() || order.price.is_some() {
        body["price"] = price(scale, order.price).into();
    }
    body["order_id"] = order.order_id.0.to_string().into();
    body["client_order_id"] = ClientOrder::of(order.client_order_id, order.name).to_string().into();
    body["open"] = "0".into();
    body["shown"] = "0".into();
    body["linked_order_id"] = Value::Null;
    body["original_size"] = scale.size(order.size).into();
    body["filled"] = size(order.filled).into();
    body["average_price"] = average.map(|price| price.to_string()).into();
    body["fee"] = scale.quote.signed(order.fee).into();
    body["fee_asset"] = scale.quote.spec.symbol.as_str().into();
    body["entered_at_ns"] = order.entered.0.to_string().into();
    body["changed_at_ns"] = order.ended.0.to_string().into();
    body["ended_at_ns"] = order.ended.0.to_string().into();
    body["status"] = status.into();
    body["cancelled"] = size(order.open).into();
    body["reason"] = reason.into();
    body
}

/// What an order says.
fn terms(scale: &InstrumentScale, terms: &OrderTerms) -> Value {
    let (limit, trigger) = (terms.order_type.limit(), terms.order_type.trigger());
    let post_only = if let OrderType::Limit { post_only, .. } = terms.order_type { post_only } else { PostOnly::Off };
    let expires = if let TimeInForce::GoodTill(time) = terms.time_in_force { Some(time.0.to_string()) } else { None };
    let peak = if let Display::Iceberg { peak } = terms.display { Some(scale.size(peak)) } else { None };
    let (trail, trail_ppm) = match terms.order_type.trail() {
        Some(Trail::Ticks(ticks)) => (PriceTicks::new(ticks.into()), None),
        Some(Trail::Ppm(ppm)) => (None, Some(ppm)),
        None => (None, None),
    };
    json!({
        "instrument": scale.spec.symbol.as_str(),
        "side": names::side(terms.side),
        "type": names::order_type(&terms.order_type),
        "price": price(scale, limit),
        "trigger": price(scale, trigger),
        "trail": price(scale, trail),
        "trail_ppm": trail_ppm,
        "time_in_force": names::time_in_force(&terms.time_in_force),
        "expire_time_ns": expires,
        "post_only": names::post_only(post_only),
        "display": names::display(&terms.display),
        "peak": peak,
        "self_trade": names::self_trade(terms.self_trade),
    })
}

/// An account's side of a trade.
#[must_use]
pub fn fill(scale: &InstrumentScale, fill: &Fill) -> Value {
    let role = match fill.role {
        FillRole::Maker => "maker",
        FillRole::Taker => "taker",
        FillRole::Auction => "auction",
    };
    json!({
        "instrument": scale.spec.symbol.as_str(),
        "trade_id": fill.trade_id.0.to_string(),
        "order_id": fill.order_id.0.to_string(),
        "client_order_id": ClientOrder::of(fill.client_order_id, fill.name).to_string(),
        "time_ns": fill.time.0.to_string(),
        "side": names::side(fill.side),
        "price": scale.price(fill.price),
        "size": scale.size(fill.size),
        "fee": scale.quote.signed(fill.fee),
        "fee_asset": scale.quote.spec.symbol.as_str(),
        "role": role,
    })
}

/// Fills, in the order given.
#[must_use]
pub fn fills<'a>(catalog: &Catalog, fills: impl IntoIterator<Item = &'a Fill>) -> Value {
    fills.into_iter().filter_map(|f| Some(fill(catalog.instrument(f.instrument)?, f))).collect()
}

/// Open orders, in the order given.
#[must_use]
pub fn orders(catalog: &Catalog, orders: &[ListedOrder]) -> Value {
    orders.iter().filter_map(|listed| Some(order(catalog.instrument(listed.instrument)?, listed))).collect()
}

/// A private channel's message.
#[must_use]
pub fn account_push(catalog: &Catalog, push: &AccountPush) -> Value {
    let kind = match push.part {
        AccountPart::Snapshot => "snapshot",
        AccountPart::More => "more",
        AccountPart::Update => "update",
    };
    let mut message = json!({"type": "account", "kind": kind});
    if push.part != AccountPart::More {
        message["balances"] = balances(catalog, &push.balances);
        message["positions"] = positions(catalog, &push.positions);
        message["fills"] = fills(catalog, &push.fills);
    }
    if push.part == AccountPart::Update {
        let changes = push.offer_changes.iter();
        message["offer_updates"] = changes.clone().filter_map(|change| batches::offer_update(catalog, change)).collect();
        let fill = |change: &OfferChange| if let OfferChange::Traded { fill, .. } = change { Some(*fill) } else { None };
        message["offer_fills"] = changes.filter_map(fill).filter_map(|fill| batches::offer_fill(catalog, &fill)).collect();
        message["order_updates"] = push.order_updates.iter().filter_map(|u| order_update(catalog, u)).collect();
        return message;
    }
    message["has_more"] = push.has_more.into();
    message["orders"] = orders(catalog, &push.orders);
    message["offers"] = push.offers.iter().filter_map(|offer| batches::offer(catalog, offer)).collect();
    if push.part == AccountPart::Snapshot {
        message["offer_fills"] = push.offer_fills.iter().filter_map(|fill| batches::offer_fill(catalog, fill)).collect();
    }
    message
}

/// A status' name, and whether the order is gone.
fn status_of(status: OrderStatus) -> (&'static str, bool) {
    match status {
        OrderStatus::WaitingTrigger => ("waiting_trigger", false),
        OrderStatus::Resting => ("resting", false),
        OrderStatus::PartiallyFilled => ("partially_filled", false),
        OrderStatus::Filled => ("filled", true),
        // An order that came in and is neither traded nor cancelled in the same entry is gone all the same.
        OrderStatus::Cancelled | OrderStatus::Entered => ("cancelled", true),
    }
}

fn order_update(catalog: &Catalog, update: &OrderUpdate) -> Option<Value> {
    let OrderUpdate { order, terms: says, name, linked, cancelled } = update;
    let scale = catalog.instrument(order.instrument)?;
    let (status, gone) = status_of(order.status);
    let mut body = match says {
        Some(says) => terms(scale, says),
        None => json!({"instrument": scale.spec.symbol.as_str(), "side": names::side(order.side)}),
    };
    body["order_id"] = order.order_id.0.to_string().into();
    body["client_order_id"] = ClientOrder::of(order.client_order_id, *name).to_string().into();
    if let Some(limit) = order.price {
        body["price"] = scale.price(limit).into();
    }
    body["open"] = if gone { "0".to_owned() } else { scale.size(order.open) }.into();
    body["shown"] = if gone { "0".to_owned() } else { scale.size(order.shown) }.into();
    body["status"] = status.into();
    if says.is_some() {
        body["linked_order_id"] = linked.map(|other| other.0.to_string()).into();
    }
    if let Some(reason) = cancelled {
        body["reason"] = names::cancel_reason(*reason).into();
    }
    Some(body)
}

/// Limits of an account in an instrument; `null` where there is none.
#[must_use]
pub fn limits(scale: &InstrumentScale, limits: &RiskLimits) -> Value {
    let none = RiskLimits::NONE;
    let size = |lots: SizeLots, max: SizeLots| (lots < max).then(|| scale.size(lots));
    json!({
        "order_size_max": size(limits.order_lots_max, none.order_lots_max),
        "order_value_max": (limits.order_value_max < none.order_value_max).then(|| scale.quote.amount(limits.order_value_max)),
        "open_orders_max": (limits.open_orders_max < none.open_orders_max).then_some(limits.open_orders_max),
        "position_max": size(limits.position_lots_max, none.position_lots_max),
    })
}
