//! What an account may see of itself.

use axum::extract::State;
use serde_json::{Value, json};
use walras_gateway::Decimal;
use walras_market_data::{Fill, FillRole};
use walras_ports::InstrumentScale;
use walras_types::{AccountId, Side};
use walras_wire::AccountStatus;

use super::answer::{Answer, ok};
use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use crate::limits::TRADES_MAX;
use crate::names::Names;
use crate::orders::instrument;
use crate::params::Params;
use crate::report::{quote, tick_lots};
use crate::values::ms;

fn rate(ppm: i32) -> String {
    Decimal::signed(i128::from(ppm), 6).to_string()
}

pub(super) async fn account(State(app): State<App>, call: Call) -> Answer {
    let signer = call.reader()?;
    Ok(ok(&account_of(&app, &call.params, signer.account).await?))
}

pub(crate) async fn account_of(app: &App, params: &Params, account: AccountId) -> Result<Value, Error> {
    let without_zeros = params.flag("omitZeroBalances")?;
    params.finish()?;
    let read = app.venue.read(move |v| {
        let status = v.engine.account_status(account)?;
        let balances = v.engine.assets().iter().map(|asset| (asset.asset, v.engine.balance(account, asset.asset)));
        Some((status, balances.collect::<Vec<_>>(), v.engine.time()))
    });
    let (status, balances, time) = read.await?.ok_or_else(Error::key)?;
    let catalog = app.venue.catalog();
    // Fees are an instrument's here: of several the largest.
    let fees = catalog.instruments().iter().map(|scale| scale.spec.fees);
    let (maker, taker) = fees.fold((0, 0), |most, fees| (most.0.max(fees.maker_ppm), most.1.max(fees.taker_ppm)));
    let is_active = status == AccountStatus::Active;
    let one = |(asset, balance): &(_, walras_engine::Balance)| {
        let scale = catalog.asset(*asset)?;
        let is_zero = balance.available.is_zero() && balance.reserved.is_zero();
        let written = json!({
            "asset": scale.spec.symbol.as_str(),
            "free": scale.amount(balance.available),
            "locked": scale.amount(balance.reserved),
        });
        (!(is_zero && without_zeros)).then_some(written)
    };
    Ok(json!({
        "makerCommission": maker / 100,
        "takerCommission": taker / 100,
        "buyerCommission": 0,
        "sellerCommission": 0,
        "commissionRates": {"maker": rate(maker), "taker": rate(taker), "buyer": rate(0), "seller": rate(0)},
        "canTrade": is_active,
        "canWithdraw": false,
        "canDeposit": false,
        "brokered": false,
        "requireSelfTradePrevention": false,
        "preventSor": false,
        "updateTime": ms(time),
        "accountType": "SPOT",
        "balances": balances.iter().filter_map(one).collect::<Vec<_>>(),
        "permissions": ["SPOT"],
        "uid": account.0,
    }))
}

/// The fees of an instrument.
pub(super) fn commission_of(names: &Names, params: &Params) -> Result<Value, Error> {
    let (symbol, scale) = instrument(names, params)?;
    let fees = scale.spec.fees;
    let none = || json!({"maker": rate(0), "taker": rate(0), "buyer": rate(0), "seller": rate(0)});
    Ok(json!({
        "symbol": symbol,
        "standardCommission": {"maker": rate(fees.maker_ppm), "taker": rate(fees.taker_ppm), "buyer": rate(0), "seller": rate(0)},
        "specialCommission": none(),
        "taxCommission": none(),
        "discount": {"enabledForAccount": false, "enabledForSymbol": false, "discountAsset": null, "discount": rate(0)},
    }))
}

pub(super) async fn commission(State(app): State<App>, call: Call) -> Answer {
    call.reader()?;
    let answer = commission_of(&app.names(), &call.params)?;
    call.params.finish()?;
    Ok(ok(&answer))
}

pub(super) async fn order_counts(State(app): State<App>, call: Call) -> Answer {
    let signer = call.reader()?;
    call.params.finish()?;
    let (limits, (in_ten_seconds, in_day)) = (app.weights().advertised(), app.weights().orders(app.now_ms(), signer.account, 0));
    Ok(ok(&json!([
        {
            "rateLimitType": "ORDERS", "interval": "SECOND", "intervalNum": 10,
            "limit": limits.orders_per_ten_seconds, "count": in_ten_seconds,
        },
        {"rateLimitType": "ORDERS", "interval": "DAY", "intervalNum": 1, "limit": limits.orders_per_day, "count": in_day},
    ])))
}

fn own_trade(symbol: &str, scale: &InstrumentScale, fill: &Fill) -> Value {
    json!({
        "symbol": symbol,
        "id": fill.trade_id.0,
        "orderId": fill.order_id.0,
        "orderListId": -1,
        "price": scale.price(fill.price),
        "qty": scale.size(fill.size),
        "quoteQty": quote(scale, tick_lots(fill.price, fill.size)),
        "commission": scale.quote.signed(fill.fee),
        "commissionAsset": scale.quote.spec.symbol.as_str(),
        "time": ms(fill.time),
        "isBuyer": fill.side == Side::Buy,
        "isMaker": fill.role != FillRole::Taker,
        "isBestMatch": true,
    })
}

pub(super) async fn trades(State(app): State<App>, call: Call) -> Answer {
    let signer = call.reader()?;
    let (names, params) = (app.names(), &call.params);
    let (symbol, scale) = instrument(&names, params)?;
    let limit = params.limit(500, TRADES_MAX)?;
    let (from, order, start_ms, end_ms) =
        (params.number("fromId")?, params.number("orderId")?, params.number("startTime")?, params.number("endTime")?);
    params.finish()?;
    if from.is_some() && (start_ms.is_some() || end_ms.is_some()) {
        return Err(Error::new(-1128, "Combination of optional parameters invalid."));
    }
    let (account, id) = (signer.account, scale.spec.instrument);
    let read = app.venue.read(move |v| {
        let is_in = |fill: &&Fill| {
            let at_ms = ms(fill.time);
            fill.instrument == id
                && from.is_none_or(|from| fill.trade_id.0 >= from)
                && order.is_none_or(|order| fill.order_id.0 == order)
                && start_ms.is_none_or(|start| at_ms >= start)
                && end_ms.is_none_or(|end| at_ms <= end)
        };
        v.fills.newest_first(account).map(|(_, fill)| fill).filter(is_in).copied().collect::<Vec<_>>()
    });
    let mut fills: Vec<Fill> = read.await?;
    fills.reverse();
    // From an id or a time on the first ones, else the last.
    let skip = if from.is_some() || start_ms.is_some() { 0 } else { fills.len().saturating_sub(limit) };
    let one = |fill: &Fill| own_trade(&symbol, scale, fill);
    Ok(ok(&fills.iter().skip(skip).take(limit).map(one).collect::<Vec<_>>().into()))
}
