//! What an account may see of itself.

use axum::extract::State;
use serde_json::{Value, json};
use walras_archive::{AccountQuery, RecordKind};
use walras_gateway::Decimal;
use walras_market_data::{AccountRecord, Fill, FillRole};
use walras_ports::{InstrumentScale, OrderKey, RecordFilter};
use walras_types::{AccountId, LogIndex, OrderId, Side, TimeNs};
use walras_wire::AccountStatus;

use super::answer::{Answer, ok};
use super::general::filters;
use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use crate::limits::TRADES_MAX;
use crate::names::Names;
use crate::orders::{self, instrument};
use crate::params::Params;
use crate::past::{self, Look};
use crate::past_pages::{self, Asked, End};
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
pub(super) fn commission_by(names: &Names, params: &Params) -> Result<Value, Error> {
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
    Ok(ok(&commission_of(&app, &call.params)?))
}

/// The same as the answer to a request of its own.
pub(crate) fn commission_of(app: &App, params: &Params) -> Result<Value, Error> {
    let answer = commission_by(&app.names(), params)?;
    params.finish()?;
    Ok(answer)
}

pub(super) async fn own_filters(State(app): State<App>, call: Call) -> Answer {
    let signer = call.reader()?;
    Ok(ok(&own_filters_of(&app, &call.params, signer.account).await?))
}

/// What an account's orders in an instrument must fit: its own limits count, where it has some.
pub(crate) async fn own_filters_of(app: &App, params: &Params, account: AccountId) -> Result<Value, Error> {
    let names = app.names();
    let (_, scale) = instrument(&names, params)?;
    params.finish()?;
    let id = scale.spec.instrument;
    let limits = app.venue.read(move |v| v.engine.risk_limits(account, id)).await?.ok_or_else(Error::symbol)?;
    Ok(json!({"exchangeFilters": [], "symbolFilters": filters(scale, &limits), "assetFilters": []}))
}

/// The fees of one instrument or of all, as the wallet's part of the dialect lists them.
pub(super) async fn trade_fees(State(app): State<App>, call: Call) -> Answer {
    call.reader()?;
    let names = app.names();
    let listed = |(symbol, scale): (&str, &InstrumentScale)| {
        let fees = scale.spec.fees;
        json!({"symbol": symbol, "makerCommission": rate(fees.maker_ppm), "takerCommission": rate(fees.taker_ppm)})
    };
    let all: Vec<_> = if call.params.has("symbol") {
        let (symbol, scale) = instrument(&names, &call.params)?;
        vec![listed((symbol.as_str(), scale))]
    } else {
        names.all().map(listed).collect()
    };
    call.params.finish()?;
    Ok(ok(&json!(all)))
}

pub(super) async fn order_counts(State(app): State<App>, call: Call) -> Answer {
    let signer = call.reader()?;
    Ok(ok(&order_counts_of(&app, &call.params, signer.account)?))
}

/// How many orders an account has placed, and how many it may.
pub(crate) fn order_counts_of(app: &App, params: &Params, account: AccountId) -> Result<Value, Error> {
    params.finish()?;
    let (limits, (in_ten_seconds, in_day)) = (app.weights().advertised(), app.weights().orders(app.now_ms(), account, 0));
    Ok(json!([
        {
            "rateLimitType": "ORDERS", "interval": "SECOND", "intervalNum": 10,
            "limit": limits.orders_per_ten_seconds, "count": in_ten_seconds,
        },
        {"rateLimitType": "ORDERS", "interval": "DAY", "intervalNum": 1, "limit": limits.orders_per_day, "count": in_day},
    ]))
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
        return Err(Error::combination());
    }
    let instrument = scale.spec.instrument;
    let has_begin = from.is_some() || start_ms.is_some();
    let (start, mut end) = past::times(start_ms, end_ms);
    let mut fills = Vec::new();
    if has_begin || order.is_some() {
        if let Some(id) = order
            && let Some(known) = orders::find(app, account, instrument, (OrderKey::Venue(OrderId(id)), None)).await?
            && known.is_ended()
        {
            // It has no later ones.
            end = end.min(known.updated.unwrap_or(end));
        }
        let asked = Asked {
            account,
            kind: RecordKind::Fill,
            instrument,
            keys: (from.unwrap_or(0), u64::MAX),
            begun: (start, end),
            since: LogIndex(order.unwrap_or(0)),
            limit,
            end: if has_begin { End::Oldest } else { End::Newest },
        };
        let found = past_pages::read(
            app,
            asked,
            |record| matches!(record, AccountRecord::Fill(fill) if order.is_none_or(|order| fill.order_id.0 == order)),
        );
        fills.extend(found.await?.iter().filter_map(fill_of));
    } else {
        let asked = AccountQuery { until: TimeNs(end.0.saturating_add(1)), ..past::asked(account, RecordKind::Fill) };
        let filter = RecordFilter { instrument: Some(instrument), ..RecordFilter::default() };
        past::newest_first(app, asked, filter, |recorded| {
            fills.extend(fill_of(&recorded.record));
            if fills.len() < limit { Look::Further } else { Look::Enough }
        })
        .await?;
        fills.reverse();
    }
    Ok(fills.iter().map(|fill| own_trade(&symbol, scale, fill)).collect::<Vec<_>>().into())
}

fn fill_of(record: &AccountRecord) -> Option<Fill> {
    match record {
        AccountRecord::Fill(fill) => Some(*fill),
        AccountRecord::Ended(_) => None,
    }
}
