//! `/api/v3`: routes, and what every request goes through.

pub(crate) mod account;
mod answer;
pub(crate) mod general;
pub(crate) mod listen_keys;
pub(crate) mod market;
pub(crate) mod trade;

use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use tokio::time::Instant;
use walras_gateway::Allowance;
use walras_http_port::place_of;
use walras_types::RejectReason;

use crate::app::App;
use crate::error::{Error, put_number};
use crate::limits::STAMP_UNIT;
use crate::params::decoded;
use crate::{streams, weights, ws_api};

/// The whole facade.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/api/v3/ping", get(general::ping))
        .route("/api/v3/time", get(general::time))
        .route("/api/v3/exchangeInfo", get(general::exchange_info))
        .route("/api/v3/depth", get(market::depth))
        .route("/api/v3/trades", get(market::trades))
        .route("/api/v3/historicalTrades", get(market::historical_trades))
        .route("/api/v3/aggTrades", get(market::aggregate_trades))
        .route("/api/v3/klines", get(market::klines))
        .route("/api/v3/uiKlines", get(market::klines))
        .route("/api/v3/avgPrice", get(market::average_price))
        .route("/api/v3/ticker", get(market::ticker_window))
        .route("/api/v3/ticker/24hr", get(market::ticker_day))
        .route("/api/v3/ticker/tradingDay", get(market::ticker_trading_day))
        .route("/api/v3/ticker/price", get(market::ticker_price))
        .route("/api/v3/ticker/bookTicker", get(market::ticker_book))
        .route("/api/v3/order", get(trade::query).post(trade::place).delete(trade::cancel))
        .route("/api/v3/order/test", post(trade::test))
        .route("/api/v3/order/cancelReplace", post(trade::cancel_replace))
        .route("/api/v3/order/amend/keepPriority", put(trade::amend))
        .route("/api/v3/openOrders", get(trade::open_orders).delete(trade::cancel_all))
        .route("/api/v3/allOrders", get(trade::all_orders))
        .route("/api/v3/order/oco", post(trade::place_old_oco))
        .route("/api/v3/orderList/oco", post(trade::place_oco))
        .route("/api/v3/orderList/oto", post(trade::place_oto))
        .route("/api/v3/orderList/otoco", post(trade::place_otoco))
        .route("/api/v3/orderList", get(trade::query_list).delete(trade::cancel_list))
        .route("/api/v3/openOrderList", get(trade::open_lists))
        .route("/api/v3/allOrderList", get(trade::all_lists))
        .route("/api/v3/myTrades", get(account::trades))
        .route("/api/v3/account", get(account::account))
        .route("/api/v3/account/commission", get(account::commission))
        .route("/api/v3/myFilters", get(account::own_filters))
        .route("/sapi/v1/asset/tradeFee", get(account::trade_fees))
        .route("/api/v3/rateLimit/order", get(account::order_counts))
        .route("/api/v3/userDataStream", post(listen_keys::open).put(listen_keys::keep).delete(listen_keys::close))
        .route("/ws", get(streams::raw))
        .route("/ws/{*names}", get(streams::raw))
        .route("/stream", get(streams::combined))
        .route("/ws-api/v3", get(ws_api::open))
        .fallback(async || Error::from(RejectReason::NotFound))
        .method_not_allowed_fallback(async || Error::from(RejectReason::NotFound).with_status(StatusCode::METHOD_NOT_ALLOWED))
        .layer(axum::middleware::from_fn_with_state(app.clone(), go_through))
        .with_state(app)
}

/// Weight of a request, as the dialect has it. Parameters count as they are read, whatever was percent-encoded.
fn weight(method: &Method, path: &str, query: &str) -> u32 {
    let text = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let value = pairs.find(|(known, _)| decoded(known).is_ok_and(|known| known == name)).map(|(_, value)| value)?;
        decoded(value).ok()
    };
    let has = |name: &str| text(name).is_some();
    let symbols = || weights::symbols(has("symbol"), text("symbols").as_deref());
    match (method, path.strip_prefix("/api/v3/").unwrap_or_default()) {
        (_, "exchangeInfo" | "account" | "allOrders" | "account/commission" | "allOrderList") => 20,
        (_, "depth") => weights::of_depth(text("limit").as_deref()),
        (_, "trades" | "historicalTrades") => 25,
        (_, "aggTrades" | "order/amend/keepPriority") => 4,
        (_, "klines" | "uiKlines" | "avgPrice" | "userDataStream") => 2,
        (_, "ticker/24hr") => weights::of_day(symbols()),
        (_, "ticker" | "ticker/tradingDay") => weights::of_window(symbols()),
        (_, "ticker/price" | "ticker/bookTicker") => weights::of_prices(has("symbol")),
        // What answers one answers the other.
        (&Method::GET | &Method::HEAD, "order" | "orderList") => 4,
        (&Method::GET | &Method::HEAD, "openOrders") if has("symbol") => 6,
        (&Method::GET | &Method::HEAD, "openOrders") => 80,
        (_, "myTrades") => weights::of_own_trades(has("orderId")),
        (_, "rateLimit/order" | "myFilters") => 40,
        (_, "openOrderList") => 6,
        _ => 1,
    }
}

/// From which allowance of its address a request is paid.
fn allowance(method: &Method, path: &str) -> Allowance {
    let is_cancel = *method == Method::DELETE && matches!(path, "/api/v3/order" | "/api/v3/openOrders" | "/api/v3/orderList");
    if is_cancel { Allowance::Cancels } else { Allowance::Requests }
}

/// What shows market data: where that is held, an answer waits as long.
const PUBLIC: [&str; 8] = ["depth", "trades", "historicalTrades", "aggTrades", "klines", "uiKlines", "avgPrice", "ticker"];

fn is_public(path: &str) -> bool {
    path.strip_prefix("/api/v3/").is_some_and(|name| PUBLIC.iter().any(|public| name.starts_with(public)))
}

/// The dialect's other unit of time is not spoken.
fn check_time_unit(headers: &HeaderMap) -> Result<(), Error> {
    match headers.get("x-mbx-time-unit").map(|unit| unit.as_bytes().to_ascii_uppercase()) {
        None => Ok(()),
        Some(unit) if unit == b"MILLISECOND" => Ok(()),
        Some(_) => Err(Error::new(-1194, "Invalid value for time unit; this venue answers in MILLISECOND only.")),
    }
}

/// Counts a request against its address, ends it when it takes too long, and says what was used.
async fn go_through(State(app): State<App>, request: Request, next: Next) -> Response {
    let place = place_of(&request);
    place.touch();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let (from, weight) = (allowance(&method, &path), weight(&method, &path, request.uri().query().unwrap_or_default()));
    let now_ms = app.now_ms();
    let mut used = None;
    if let Some(source) = place.counted_source() {
        // Who may not ask may still cancel.
        if from == Allowance::Requests
            && let Err(banned) = app.weights().check(now_ms, source)
        {
            return banned.into_response();
        }
        if app.access.admit_source_times(source, from, app.weights().payable(weight)).is_err() {
            return app.weights().refused(now_ms, source).into_response();
        }
        used = Some(app.weights().used(now_ms, source, weight));
    }
    if let Err(error) = check_time_unit(request.headers()) {
        return error.into_response();
    }
    // Signed in the query are reads and cancels. Orders have names of their own, and their signature mostly in the body.
    let is_alike = request.uri().query().is_some_and(|query| query.contains("signature=")) && method != Method::POST;
    let later = Instant::now() + STAMP_UNIT;
    let patience = Duration::from_millis(app.config.http.request_timeout_ms);
    let mut response = match tokio::time::timeout(patience, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Error::in_doubt().into_response(),
    };
    // A timer whose time has passed would still wait for the next millisecond, and wake the thread that waits for sockets.
    if is_alike && Instant::now() < later {
        // pause: the next request has another timestamp, and so another text
        tokio::time::sleep_until(later).await;
    }
    let wait = app.venue.public_in();
    if is_public(&path) && !wait.is_zero() {
        // pause: nobody may know it sooner
        tokio::time::sleep(wait).await;
    }
    if let Some(used) = used {
        put_number(&mut response, "x-mbx-used-weight", used);
        put_number(&mut response, "x-mbx-used-weight-1m", used);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_the_dialect() {
        let of = |path: &str, query: &str| weight(&Method::GET, &format!("/api/v3/{path}"), query);
        assert_eq!((of("depth", "symbol=A"), of("depth", "limit=500"), of("depth", "limit=5000")), (5, 25, 250));
        assert_eq!((of("ticker/24hr", "symbol=A"), of("ticker/24hr", ""), of("openOrders", "symbol=A")), (2, 80, 6));
        let many = |count: usize| format!("symbols=%5B{}%5D", vec!["%22A%22"; count].join("%2C"));
        assert_eq!((of("ticker/24hr", &many(20)), of("ticker/24hr", &many(21)), of("ticker/24hr", &many(101))), (2, 40, 80));
        assert_eq!((of("ticker", "symbol=A&windowSize=7d"), of("ticker", &many(3)), of("ticker", &many(51))), (4, 12, 200));
        assert_eq!((of("ticker/tradingDay", "symbols=[%22A%22,%22B%22]"), of("ticker/price", "")), (8, 4));
        assert_eq!(
            (of("depth", "limit=%31000"), of("depth", "%6cimit=1000"), of("ticker", "symbols=[%22A%22%2c%22B%22]")),
            (50, 50, 8)
        );
        assert_eq!((weight(&Method::HEAD, "/api/v3/openOrders", ""), weight(&Method::DELETE, "/api/v3/openOrders", "")), (80, 1));
        assert_eq!((of("orderList", "orderListId=1"), weight(&Method::DELETE, "/api/v3/orderList", "")), (4, 1));
        for path in ["order", "openOrders", "orderList"] {
            assert_eq!(allowance(&Method::DELETE, &format!("/api/v3/{path}")), Allowance::Cancels, "{path}");
        }
        assert!(is_public("/api/v3/ticker/24hr") && is_public("/api/v3/ticker") && !is_public("/api/v3/account"));
    }
}
