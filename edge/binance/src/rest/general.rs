//! The venue's clock and its instruments.

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use walras_engine::InstrumentView;
use walras_gateway::Decimal;
use walras_ports::{InstrumentScale, View};
use walras_types::limits::{ICEBERG_SLICES_MAX, SIZE_LOTS_MAX, TRAIL_PPM_MAX};
use walras_types::{PriceTicks, RiskLimits, SizeLots, TradingPhase};

use super::answer::{Answer, ok};
use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use crate::kinds;
use crate::limits::PPM_PER_DELTA;

pub(super) async fn ping() -> Response {
    ok(&json!({}))
}

pub(super) async fn time(State(app): State<App>) -> Response {
    ok(&json!({"serverTime": app.now_ms()}))
}

fn ppm(millionths: i64) -> String {
    Decimal::signed(i128::from(millionths), 6).minimal().to_string()
}

/// What an order must fit under some limits, as the dialect's filters.
pub(super) fn filters(scale: &InstrumentScale, limits: &RiskLimits) -> Value {
    let spec = &scale.spec;
    let lots_max = SizeLots::new(limits.order_lots_max.get().min(SIZE_LOTS_MAX));
    let (lot, size_max) = (scale.size(SizeLots::new(1)), crate::report::size(scale, lots_max));
    let lot_size = |kind: &str| json!({"filterType": kind, "minQty": lot, "maxQty": size_max, "stepSize": lot});
    json!([
        {
            "filterType": "PRICE_FILTER",
            "minPrice": scale.price(PriceTicks::MIN),
            "maxPrice": scale.price(PriceTicks::MAX),
            "tickSize": scale.tick().to_string(),
        },
        lot_size("LOT_SIZE"),
        {"filterType": "ICEBERG_PARTS", "limit": ICEBERG_SLICES_MAX},
        lot_size("MARKET_LOT_SIZE"),
        {
            "filterType": "PERCENT_PRICE",
            "multiplierUp": ppm(1_000_000 + i64::from(spec.collar_ppm)),
            "multiplierDown": ppm(1_000_000 - i64::from(spec.collar_ppm)),
            "avgPriceMins": 0,
        },
        {
            "filterType": "TRAILING_DELTA",
            "minTrailingAboveDelta": 1,
            "maxTrailingAboveDelta": u64::from(TRAIL_PPM_MAX) / PPM_PER_DELTA,
            "minTrailingBelowDelta": 1,
            "maxTrailingBelowDelta": u64::from(TRAIL_PPM_MAX) / PPM_PER_DELTA,
        },
        {
            "filterType": "NOTIONAL",
            "minNotional": crate::report::quote(scale, 1),
            "applyMinToMarket": false,
            "maxNotional": scale.quote.amount(limits.order_value_max),
            "applyMaxToMarket": false,
            "avgPriceMins": 0,
        },
        {"filterType": "MAX_NUM_ORDERS", "maxNumOrders": limits.open_orders_max},
        {"filterType": "MAX_NUM_ALGO_ORDERS", "maxNumAlgoOrders": limits.open_orders_max},
    ])
}

pub(crate) const ORDER_TYPES: [&str; 7] =
    ["LIMIT", "LIMIT_MAKER", "MARKET", "STOP_LOSS", "STOP_LOSS_LIMIT", "TAKE_PROFIT", "TAKE_PROFIT_LIMIT"];

fn symbol(name: &str, scale: &InstrumentScale, phase: TradingPhase) -> Value {
    let (base, quote) = (&scale.base.spec, &scale.quote.spec);
    json!({
        "symbol": name,
        "status": kinds::symbol_status(phase),
        "baseAsset": base.symbol.as_str(),
        "baseAssetPrecision": base.decimals,
        "quoteAsset": quote.symbol.as_str(),
        "quotePrecision": quote.decimals,
        "quoteAssetPrecision": quote.decimals,
        "baseCommissionPrecision": base.decimals,
        "quoteCommissionPrecision": quote.decimals,
        "orderTypes": ORDER_TYPES,
        "icebergAllowed": true,
        "ocoAllowed": true,
        "otoAllowed": true,
        "opoAllowed": false,
        "quoteOrderQtyMarketAllowed": true,
        "allowTrailingStop": true,
        "cancelReplaceAllowed": true,
        "amendAllowed": true,
        "pegInstructionsAllowed": false,
        "isSpotTradingAllowed": true,
        "isMarginTradingAllowed": false,
        "filters": filters(scale, &scale.spec.default_limits),
        "permissions": [],
        "permissionSets": [["SPOT"]],
        "defaultSelfTradePreventionMode": "EXPIRE_TAKER",
        "allowedSelfTradePreventionModes": ["NONE", "EXPIRE_TAKER", "EXPIRE_MAKER", "EXPIRE_BOTH", "DECREMENT"],
    })
}

/// Limits on requests, as `exchangeInfo` has them.
pub(crate) fn rate_limits(app: &App) -> Value {
    let limits = app.weights().advertised();
    json!([
        {"rateLimitType": "REQUEST_WEIGHT", "interval": "MINUTE", "intervalNum": 1, "limit": limits.weight_per_minute},
        {"rateLimitType": "ORDERS", "interval": "SECOND", "intervalNum": 10, "limit": limits.orders_per_ten_seconds},
        {"rateLimitType": "ORDERS", "interval": "DAY", "intervalNum": 1, "limit": limits.orders_per_day},
    ])
}

pub(super) async fn exchange_info(State(app): State<App>, call: Call) -> Answer {
    Ok(ok(&exchange_info_of(&app, &call.params).await?))
}

/// The venue's instruments: all, or those that were asked for.
pub(crate) async fn exchange_info_of(app: &App, params: &crate::params::Params) -> Result<Value, Error> {
    let names = app.names();
    let wanted = wanted(params)?;
    for permission in ["permissions", "showPermissionSets"] {
        params.text(permission)?;
    }
    let status = params.text("symbolStatus")?;
    params.finish()?;
    if let Some(wanted) = &wanted
        && !wanted.iter().all(|symbol| names.instrument(symbol).is_some())
    {
        return Err(Error::symbol());
    }
    let phases: Vec<InstrumentView> = app.venue.of_instruments(|v: &View<'_>, instrument| v.engine.instrument(instrument)).await?;
    let phase = |scale: &InstrumentScale| {
        let view = phases.get(scale.spec.instrument.0 as usize);
        view.map_or(TradingPhase::Closed, |view| view.phase)
    };
    let is_wanted = |name: &str| wanted.as_ref().is_none_or(|wanted| wanted.iter().any(|symbol| symbol == name));
    let shown = names.all().filter(|(name, _)| is_wanted(name));
    let shown = shown.filter(|(_, scale)| status.is_none_or(|status| kinds::symbol_status(phase(scale)) == status));
    let symbols: Vec<Value> = shown.map(|(name, scale)| symbol(name, scale, phase(scale))).collect();
    Ok(json!({
        "timezone": "UTC",
        "serverTime": app.now_ms(),
        "rateLimits": rate_limits(app),
        "exchangeFilters": [],
        "symbols": symbols,
    }))
}

/// The symbols of `symbol` or `symbols`; `None` for all.
pub(crate) fn wanted(params: &crate::params::Params) -> Result<Option<Vec<String>>, Error> {
    match (params.symbol()?, params.symbols()?) {
        (Some(_), Some(_)) => Err(Error::combination()),
        (Some(symbol), None) => Ok(Some(vec![symbol.to_owned()])),
        (None, symbols) => Ok(symbols),
    }
}
