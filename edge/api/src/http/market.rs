//! What everybody may see.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use walras_access::Refusal;
use walras_market_data::limits::BOOK_ORDERS_MAX;
use walras_market_data::{Candle, InstrumentFeed, Interval, PublicTrade};
use walras_ports::{Catalog, InstrumentScale, ListedInstrument, Storage, View, shown_orders, ticker as ticker_of};
use walras_types::{RejectReason, Side, TradeId};

use super::exposition::{Exposition, Kind, MEDIA_TYPE};
use super::{Answer, ApiError, App, ok, visits};
use crate::json::{book_orders as orders_of, views};

/// Levels of a side in one answer.
const DEPTH_MAX: usize = 1_000;
const TRADES_MAX: usize = 1_000;
const CANDLES_MAX: usize = 1_000;

pub(super) async fn status(State(app): State<App>) -> Response {
    ok(&views::status(app.venue.status(), &app.venue.catalog(), app.access.accepts_timestamps_from()))
}

pub(super) async fn time(State(app): State<App>) -> Response {
    ok(&json!({"time_ns": app.venue.clock().now().0.to_string()}))
}

pub(super) async fn assets(State(app): State<App>) -> Answer {
    let catalog = app.venue.catalog();
    let supplies = app.venue.read(|v| v.engine.assets().iter().map(|a| v.engine.supply(a.asset)).collect::<Vec<_>>()).await?;
    let assets: Vec<_> = catalog.assets().iter().zip(supplies).map(|(asset, supply)| views::asset(asset, supply)).collect();
    Ok(ok(&json!({"assets": assets})))
}

pub(super) async fn instruments(State(app): State<App>) -> Answer {
    let catalog = app.venue.catalog();
    let look = |v: &View<'_>, instrument| ListedInstrument::of(v.engine, v.market, instrument);
    let listed = visits::of_instruments(&app, look).await?;
    let shown = catalog.instruments().iter().zip(&listed);
    let instruments: Vec<_> = shown.map(|(scale, listed)| views::instrument(scale, listed)).collect();
    Ok(ok(&json!({"instruments": instruments})))
}

/// A query string as a handler gets it.
pub(super) type Asked<T> = Result<Query<T>, QueryRejection>;

/// A query string that was read, or says what was wrong with it.
pub(super) fn query<T>(query: Asked<T>) -> Result<T, ApiError> {
    match query {
        Ok(Query(query)) => Ok(query),
        Err(e) => Err(Refusal::new(RejectReason::Malformed, e.body_text()).into()),
    }
}

/// An instrument of a path, or of a query: unknown ones are not found.
pub(super) fn of_path<'a>(catalog: &'a Catalog, symbol: &str) -> Result<&'a InstrumentScale, ApiError> {
    let refusal = || catalog.unknown_instrument("instrument", symbol);
    catalog.instrument_by_symbol(symbol).ok_or_else(|| ApiError::with_status(refusal(), StatusCode::NOT_FOUND))
}

/// The requested count. More than the maximum is refused: a client that gets fewer would take them for all.
pub(super) fn at_most(field: &str, asked: Option<usize>, default: usize, max: usize) -> Result<usize, ApiError> {
    match asked.unwrap_or(default) {
        asked if asked <= max => Ok(asked),
        asked => {
            Err(Refusal::new(RejectReason::Malformed, format!("{field}: {asked} is more than the {max} that one answer holds"))
                .into())
        }
    }
}

/// How many of the newest, or of the best.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limit {
    pub(super) limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Depth {
    depth: Option<usize>,
}

pub(super) async fn book(State(app): State<App>, Path(symbol): Path<String>, asked: Asked<Depth>) -> Answer {
    let catalog = app.venue.catalog();
    let scale = of_path(&catalog, &symbol)?;
    let depth = at_most("depth", query(asked)?.depth, 50, DEPTH_MAX)?;
    let instrument = scale.spec.instrument;
    let (log_index, bids, asks, indicative) = app
        .venue
        .read(move |v| {
            let (mut bids, mut asks) = (Vec::new(), Vec::new());
            v.engine.depth(instrument, Side::Buy, depth, &mut bids);
            v.engine.depth(instrument, Side::Sell, depth, &mut asks);
            (v.engine.last_applied(), bids, asks, v.indicatives.now(v.engine, instrument))
        })
        .await?;
    Ok(ok(&views::Depth { scale, log_index, bids: &bids, asks: &asks, indicative }))
}

pub(super) async fn book_orders(State(app): State<App>, Path(symbol): Path<String>, asked: Asked<Limit>) -> Answer {
    let catalog = app.venue.catalog();
    let scale = of_path(&catalog, &symbol)?;
    let limit = at_most("limit", query(asked)?.limit, 100, BOOK_ORDERS_MAX)?;
    let instrument = scale.spec.instrument;
    let shown = app.venue.read(move |v| shown_orders(v.engine, instrument, v.engine.last_applied(), limit)).await?;
    Ok(ok(&orders_of::answer(scale, &shown)))
}

/// What takes no parameters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

pub(super) async fn auction(State(app): State<App>, Path(symbol): Path<String>, asked: Asked<Nothing>) -> Answer {
    let catalog = app.venue.catalog();
    let scale = of_path(&catalog, &symbol)?;
    let Nothing {} = query(asked)?;
    let instrument = scale.spec.instrument;
    let look = move |v: &View<'_>| {
        let listed = ListedInstrument::of(v.engine, v.market, instrument);
        (v.engine.last_applied(), listed, v.indicatives.now(v.engine, instrument))
    };
    let (log_index, listed, indicative) = app.venue.read(look).await?;
    let listed = listed.ok_or(RejectReason::VenueNotReady)?;
    Ok(ok(&views::auction(scale, log_index, &listed, indicative)))
}

pub(super) async fn ticker(State(app): State<App>, Path(symbol): Path<String>, asked: Asked<Nothing>) -> Answer {
    let catalog = app.venue.catalog();
    let scale = of_path(&catalog, &symbol)?;
    let Nothing {} = query(asked)?;
    let instrument = scale.spec.instrument;
    let look = move |v: &View<'_>| {
        let of = |feed: &InstrumentFeed| ticker_of(feed, v.engine, v.market.time());
        (v.engine.last_applied(), v.market.instrument(instrument).map(of))
    };
    let (log_index, ticker) = app.venue.read(look).await?;
    let mut body = views::ticker(scale, &ticker.ok_or(RejectReason::VenueNotReady)?);
    body["log_index"] = log_index.0.to_string().into();
    Ok(ok(&body))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Trades {
    limit: Option<usize>,
    before: Option<u64>,
}

pub(super) async fn trades(State(app): State<App>, Path(symbol): Path<String>, asked: Asked<Trades>) -> Answer {
    let catalog = app.venue.catalog();
    let scale = of_path(&catalog, &symbol)?;
    let asked = query(asked)?;
    let (limit, before) = (at_most("limit", asked.limit, 100, TRADES_MAX)?, asked.before.map(TradeId));
    let instrument = scale.spec.instrument;
    let trades: Vec<PublicTrade> = app
        .venue
        .read(move |v| {
            let tape = v.market.instrument(instrument).map(walras_market_data::InstrumentFeed::tape);
            tape.map(|tape| tape.newest_first(before).take(limit).copied().collect()).unwrap_or_default()
        })
        .await?;
    let trades: Vec<_> = trades.iter().map(|t| views::trade(scale, t)).collect();
    Ok(ok(&json!({"trades": trades})))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Candles {
    interval: Option<String>,
    limit: Option<usize>,
}

pub(super) async fn candles(State(app): State<App>, Path(symbol): Path<String>, asked: Asked<Candles>) -> Answer {
    let catalog = app.venue.catalog();
    let scale = of_path(&catalog, &symbol)?;
    let asked = query(asked)?;
    let limit = at_most("limit", asked.limit, 500, CANDLES_MAX)?;
    let name = asked.interval.as_deref().unwrap_or("1m");
    let unknown = || Refusal::new(RejectReason::Malformed, format!("interval: {name:?} is none of 1s, 10s, 1m, 5m, 1h"));
    let interval = Interval::from_name(name).ok_or_else(unknown)?;
    let instrument = scale.spec.instrument;
    let candles: Vec<Candle> = app
        .venue
        .read(move |v| {
            let Some(feed) = v.market.instrument(instrument) else { return Vec::new() };
            let all = feed.candles().iter(interval);
            let skip = all.len().saturating_sub(limit);
            all.skip(skip).copied().collect()
        })
        .await?;
    let candles: Vec<_> = candles.iter().map(|c| views::candle(scale, c)).collect();
    Ok(ok(&json!({"candles": candles})))
}

pub(super) async fn metrics(State(app): State<App>) -> Response {
    let status = app.venue.status();
    let progress = status.progress();
    let figures = [
        ("walras_up", Kind::Gauge, "1 when commands are taken", u64::from(status.ready())),
        ("walras_storage_full", Kind::Gauge, "1 when the log cannot be written", u64::from(status.storage() != Storage::Ok)),
        ("walras_log_index", Kind::Gauge, "last log entry applied", progress.log_index.0),
        (
            "walras_log_history_bytes",
            Kind::Gauge,
            "bytes of segments that the log has let go of and that are kept",
            status.history_bytes(),
        ),
        ("walras_log_history_segments", Kind::Gauge, "how many they are", status.history_segments()),
        ("walras_log_time_ns", Kind::Gauge, "its time, nanoseconds since the Unix epoch", progress.time.0),
        ("walras_accounts", Kind::Gauge, "accounts", status.accounts()),
        ("walras_connections", Kind::Gauge, "open connections", status.connections()),
        ("walras_commands_waiting", Kind::Gauge, "commands that wait for their turn", app.venue.commands_waiting() as u64),
        ("walras_commands_total", Kind::Counter, "commands applied since the start", status.commands_total()),
        ("walras_rejects_total", Kind::Counter, "commands rejected since the start", status.rejects_total()),
        ("walras_trades_total", Kind::Counter, "trades since the log began", progress.trades_total),
        ("walras_snapshots_total", Kind::Counter, "snapshots written since the start", status.snapshots_total()),
        ("walras_dropped_readers_total", Kind::Counter, "slow readers dropped since the start", status.dropped_readers_total()),
        (
            "walras_feed_messages_total",
            Kind::Counter,
            "messages of feeds sent to readers since the start",
            status.feed_messages_total(),
        ),
        (
            "walras_feed_encoded_total",
            Kind::Counter,
            "messages of feeds encoded since the start, each for all its readers",
            status.feed_encoded_total(),
        ),
    ];
    let mut text = Exposition::default();
    text.all(figures);
    if let Some(free) = status.disk_free_bytes() {
        text.one(("walras_disk_free_bytes", Kind::Gauge, "bytes free on the log's disk"), free);
    }
    super::fair_access::metrics(&app, &mut text);
    super::latency::metrics(&app, &mut text);
    super::shards::metrics(&app, &mut text).await;
    super::batches::metrics(&app, &mut text).await;
    super::history::metrics(&app, &mut text);
    if let Some(clock) = &app.clock {
        super::clock::metrics(&clock.view(), &mut text);
    }
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], text.into_text()).into_response()
}
