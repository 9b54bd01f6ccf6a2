//! What an account may see of itself.

use axum::extract::State;
use serde_json::{Value, json};
use walras_archive::RecordKind;
use walras_gateway::Decimal;
use walras_market_data::{AccountRecord, Fill, FillRole};
use walras_ports::{InstrumentScale, RecordFilter};
use walras_types::{AccountId, OrderId, Side};
use walras_wire::AccountStatus;

use super::answer::{Answer, ok};
use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use crate::limits::TRADES_MAX;
use crate::names::Names;
use crate::orders::instrument;
use crate::params::Params;
use crate::past::{self, Look};
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
    Ok(ok(&trades_of(&app, &call.params, signer.account).await?))
}

/// An account's trades of an instrument, by id.
pub(crate) async fn trades_of(app: &App, params: &Params, account: AccountId) -> Result<Value, Error> {
    let names = app.names();
    let (symbol, scale) = instrument(&names, params)?;
    let limit = params.limit(500, TRADES_MAX)?;
    let (from, order) = (params.number("fromId")?, params.number("orderId")?);
    let (start_ms, end_ms) = past::span(params)?;
    params.finish()?;
    if from.is_some() && (start_ms.is_some() || end_ms.is_some()) {
        return Err(Error::new(-1128, "Combination of optional parameters invalid."));
    }
    let (instrument, order_id) = (Some(scale.spec.instrument), order.map(OrderId));
    let filter = RecordFilter { instrument, order_id, client_order_id: None };
    let has_begin = from.is_some() || start_ms.is_some();
    let mut fills = Vec::new();
    past::newest_first(app, past::asked(account, RecordKind::Fill, start_ms), filter, |recorded| {
        let AccountRecord::Fill(fill) = &recorded.record else { return Look::Further };
        // Later trades of an instrument have larger ids.
        if from.is_some_and(|from| fill.trade_id.0 < from) {
            return Look::Enough;
        }
        if end_ms.is_none_or(|end| ms(fill.time) <= end) {
            fills.push(*fill);
        }
        if has_begin || fills.len() < limit { Look::Further } else { Look::Enough }
    })
    .await?;
    fills.reverse();
    Ok(past::cut(fills, limit, has_begin).iter().map(|fill| own_trade(&symbol, scale, fill)).collect::<Vec<_>>().into())
}
