//! What everybody may see.

use axum::extract::State;
use serde_json::{Value, json};
use walras_engine::DepthLevel;
use walras_market_data::PublicTrade;
use walras_ports::{InstrumentScale, View};
use walras_types::{InstrumentId, Side, TradeId};

use super::answer::{Answer, ok};
use super::general::wanted;
use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use crate::klines::{self, KlineInterval};
use crate::limits::{DEPTH_MAX, KLINES_MAX, TRADES_MAX, WINDOW_SYMBOLS_MAX};
use crate::orders::instrument;
use crate::params::Params;
use crate::report;
use crate::trades::{aggregate, aggregated, public_trade};
use crate::windows::{self, AVERAGE_MINUTES, Seen, Window};

fn levels(scale: &InstrumentScale, levels: &[DepthLevel]) -> Vec<[String; 2]> {
    levels.iter().map(|level| [scale.price(level.price), scale.size(level.shown)]).collect()
}

pub(super) async fn depth(State(app): State<App>, call: Call) -> Answer {
    Ok(ok(&depth_of(&app, &call.params).await?))
}

/// A snapshot of a book. It ends with the last entry of the log that concerned the instrument, as its diffs do.
pub(crate) async fn depth_of(app: &App, params: &Params) -> Result<Value, Error> {
    let names = app.names();
    let (_, scale) = instrument(&names, params)?;
    let limit = params.limit(100, DEPTH_MAX)?;
    params.text("symbolStatus")?;
    params.finish()?;
    let id = scale.spec.instrument;
    let read = app.venue.read(move |v| {
        let (mut bids, mut asks) = (Vec::new(), Vec::new());
        v.engine.depth(id, Side::Buy, limit, &mut bids);
        v.engine.depth(id, Side::Sell, limit, &mut asks);
        let revision = v.market.instrument(id).map_or(0, |feed| feed.revision().0);
        (revision, bids, asks)
    });
    let (revision, bids, asks) = read.await?;
    Ok(json!({"lastUpdateId": revision, "bids": levels(scale, &bids), "asks": levels(scale, &asks)}))
}

pub(super) async fn trades(State(app): State<App>, call: Call) -> Answer {
    Ok(ok(&trades_of(&app, &call.params).await?))
}

/// The last trades of an instrument.
pub(crate) async fn trades_of(app: &App, params: &Params) -> Result<Value, Error> {
    let names = app.names();
    let (_, scale) = instrument(&names, params)?;
    let limit = params.limit(500, TRADES_MAX)?;
    params.finish()?;
    let trades = newest(app, scale.spec.instrument, None, limit).await?;
    Ok(trades.iter().map(|trade| public_trade(scale, trade)).collect::<Vec<_>>().into())
}

pub(super) async fn historical_trades(State(app): State<App>, call: Call) -> Answer {
    Ok(ok(&historical_trades_of(&app, &call.params).await?))
}

/// The same from an id on, if one is given.
pub(crate) async fn historical_trades_of(app: &App, params: &Params) -> Result<Value, Error> {
    let names = app.names();
    let (_, scale) = instrument(&names, params)?;
    let limit = params.limit(500, TRADES_MAX)?;
    let from = params.number("fromId")?;
    params.finish()?;
    let trades = newest(app, scale.spec.instrument, from, limit).await?;
    Ok(trades.iter().map(|trade| public_trade(scale, trade)).collect::<Vec<_>>().into())
}

/// Trades from an id on, or the newest, oldest first.
async fn newest(app: &App, instrument: InstrumentId, from: Option<u64>, limit: usize) -> Result<Vec<PublicTrade>, Error> {
    let read = app.venue.read(move |v| {
        let Some(tape) = v.market.instrument(instrument).map(walras_market_data::InstrumentFeed::tape) else { return Vec::new() };
        match from {
            Some(from) => tape.since(TradeId(from.saturating_sub(1))).take(limit).copied().collect(),
            None => {
                let mut newest: Vec<_> = tape.newest_first(None).take(limit).copied().collect();
                newest.reverse();
                newest
            }
        }
    });
    Ok(read.await?)
}

pub(super) async fn aggregate_trades(State(app): State<App>, call: Call) -> Answer {
    Ok(ok(&aggregate_trades_of(&app, &call.params).await?))
}

/// Trades of an instrument, those of one entry at one price together.
pub(crate) async fn aggregate_trades_of(app: &App, params: &Params) -> Result<Value, Error> {
    let names = app.names();
    let (_, scale) = instrument(&names, params)?;
    let limit = params.limit(500, TRADES_MAX)?;
    let (from, start_ms, end_ms) = (params.number("fromId")?, params.number("startTime")?, params.number("endTime")?);
    params.finish()?;
    if from.is_some() && (start_ms.is_some() || end_ms.is_some()) {
        return Err(Error::combination());
    }
    let id = scale.spec.instrument;
    let read = app.venue.read(move |v| {
        let Some(tape) = v.market.instrument(id).map(walras_market_data::InstrumentFeed::tape) else { return Vec::new() };
        let is_in = |trade: &&PublicTrade| {
            let at_ms = crate::values::ms(trade.time);
            start_ms.is_none_or(|start| at_ms >= start) && end_ms.is_none_or(|end| at_ms <= end)
        };
        match (from, start_ms) {
            (Some(from), _) => aggregate(tape.since(TradeId(from.saturating_sub(1))), limit),
            (None, Some(_)) => aggregate(tape.iter().filter(is_in), limit),
            (None, None) => {
                let mut newest = aggregate(tape.newest_first(None).filter(is_in), limit);
                newest.reverse();
                newest
            }
        }
    });
    Ok(read.await?.iter().map(|trade| aggregated(scale, trade)).collect::<Vec<_>>().into())
}

pub(super) async fn klines(State(app): State<App>, call: Call) -> Answer {
    Ok(ok(&klines_of(&app, &call.params).await?))
}

/// Candles of an instrument.
pub(crate) async fn klines_of(app: &App, params: &Params) -> Result<Value, Error> {
    let names = app.names();
    let (_, scale) = instrument(&names, params)?;
    let interval = KlineInterval::from_name(params.required("interval")?).ok_or_else(|| Error::new(-1120, "Invalid interval."))?;
    let limit = params.limit(500, KLINES_MAX)?;
    let (start_ms, end_ms) = (params.number("startTime")?, params.number("endTime")?);
    let interval = interval.in_zone(params.zone()?);
    params.finish()?;
    let id = scale.spec.instrument;
    let candles = app.venue.read(move |v| {
        let feed = v.market.instrument(id);
        feed.map(|feed| feed.candles().iter(interval.base()).copied().collect::<Vec<_>>()).unwrap_or_default()
    });
    let candles = candles.await?;
    let to_s = end_ms.unwrap_or(u64::MAX).min(app.now_ms()) / 1_000;
    let from_s = start_ms.map(|start_ms| start_ms.div_ceil(1_000));
    let listed = klines::klines(interval, &candles, (from_s, to_s), limit);
    Ok(listed.iter().map(|kline| klines::row(interval, kline, scale)).collect::<Vec<_>>().into())
}

pub(super) async fn average_price(State(app): State<App>, call: Call) -> Answer {
    Ok(ok(&average_price_of(&app, &call.params).await?))
}

/// The average price of the last minutes.
pub(crate) async fn average_price_of(app: &App, params: &Params) -> Result<Value, Error> {
    let names = app.names();
    let (_, scale) = instrument(&names, params)?;
    params.finish()?;
    let (id, now_ms) = (scale.spec.instrument, app.now_ms());
    let recent = app.venue.read(move |v| windows::recent(v, id, now_ms)).await?.unwrap_or_default();
    let (price, last_ms) = windows::average_price(scale, &recent);
    Ok(json!({"mins": AVERAGE_MINUTES, "price": price, "closeTime": last_ms}))
}

/// Answers for each symbol: an object where one was asked for, else a list.
async fn for_symbols<R: Send + 'static>(
    app: &App,
    params: &Params,
    look: impl Fn(&View<'_>, InstrumentId) -> Option<R> + Clone + Send + 'static,
    show: impl Fn(&str, &InstrumentScale, &R) -> Value,
) -> Result<Value, Error> {
    let is_one = params.has("symbol");
    let wanted = wanted(params)?;
    params.text("symbolStatus")?;
    params.finish()?;
    let names = app.names();
    let looks: Vec<(InstrumentId, R)> = match &wanted {
        None => app.venue.of_instruments(move |v, id| Some((id, look(v, id)?))).await?,
        Some(wanted) => {
            let mut looks = Vec::new();
            for symbol in wanted {
                let id = names.instrument(symbol).ok_or_else(Error::symbol)?.spec.instrument;
                let look = look.clone();
                let seen = app.venue.read(move |v| look(v, id)).await?;
                looks.push((id, seen.ok_or_else(Error::symbol)?));
            }
            looks
        }
    };
    let shown = looks.iter().filter_map(|(id, seen)| {
        let (name, scale) = (names.name(*id)?, names.catalog().instrument(*id)?);
        Some(show(name, scale, seen))
    });
    let mut shown: Vec<Value> = shown.collect();
    Ok(if is_one { shown.pop().ok_or_else(Error::symbol)? } else { shown.into() })
}

/// Whether a ticker is asked for without what is made of its other figures.
fn is_mini(params: &Params) -> Result<bool, Error> {
    match params.text("type")? {
        None | Some("FULL") => Ok(false),
        Some("MINI") => Ok(true),
        Some(_) => Err(Error::new(-1139, "Invalid ticker type.")),
    }
}

pub(super) async fn ticker_day(State(app): State<App>, call: Call) -> Answer {
    Ok(ok(&ticker_day_of(&app, &call.params).await?))
}

/// The last 24 hours of instruments.
pub(crate) async fn ticker_day_of(app: &App, params: &Params) -> Result<Value, Error> {
    let (is_mini, window) = (is_mini(params)?, Window::last_day(app.now_ms()));
    let look = move |v: &View<'_>, id| windows::seen(v, id, window);
    let show = |name: &str, scale: &InstrumentScale, seen: &Seen| windows::day_ticker(name, scale, seen, is_mini);
    for_symbols(app, params, look, show).await
}

pub(super) async fn ticker_window(State(app): State<App>, call: Call) -> Answer {
    Ok(ok(&ticker_window_of(&app, &call.params).await?))
}

/// A rolling window of instruments.
pub(crate) async fn ticker_window_of(app: &App, params: &Params) -> Result<Value, Error> {
    of_window(app, params, Window::rolling(params.window_size()?, app.now_ms())).await
}

pub(super) async fn ticker_trading_day(State(app): State<App>, call: Call) -> Answer {
    Ok(ok(&ticker_trading_day_of(&app, &call.params).await?))
}

/// The present day of instruments, in a time zone.
pub(crate) async fn ticker_trading_day_of(app: &App, params: &Params) -> Result<Value, Error> {
    let window = Window::trading_day(params.zone()?, app.now_ms()).ok_or_else(|| Error::invalid("timeZone"))?;
    of_window(app, params, window).await
}

/// A window of some instruments, which must be named.
async fn of_window(app: &App, params: &Params, window: Window) -> Result<Value, Error> {
    match (params.has("symbol"), params.symbols()?) {
        (false, None) => {
            return Err(Error::new(-1102, "Param 'symbol' or 'symbols' must be sent, but both were empty/null!"));
        }
        (_, Some(symbols)) if symbols.len() > WINDOW_SYMBOLS_MAX => {
            let text = format!("Too many parameters; expected '{WINDOW_SYMBOLS_MAX}' and received '{}'.", symbols.len());
            return Err(Error::new(-1101, text));
        }
        _ => {}
    }
    let is_mini = is_mini(params)?;
    let look = move |v: &View<'_>, id| windows::seen(v, id, window);
    let show = |name: &str, scale: &InstrumentScale, seen: &Seen| windows::ticker(name, scale, seen, is_mini);
    for_symbols(app, params, look, show).await
}

pub(super) async fn ticker_price(State(app): State<App>, call: Call) -> Answer {
    Ok(ok(&ticker_price_of(&app, &call.params).await?))
}

/// The last prices of instruments.
pub(crate) async fn ticker_price_of(app: &App, params: &Params) -> Result<Value, Error> {
    let look = |v: &View<'_>, id| Some(v.market.instrument(id)?.tape().last().map(|last| last.price));
    let show = |name: &str, scale: &InstrumentScale, last: &Option<_>| {
        let price = last.map_or_else(|| report::no_price(scale), |last| scale.price(last));
        json!({"symbol": name, "price": price})
    };
    for_symbols(app, params, look, show).await
}

pub(super) async fn ticker_book(State(app): State<App>, call: Call) -> Answer {
    Ok(ok(&ticker_book_of(&app, &call.params).await?))
}

/// The best levels of instruments.
pub(crate) async fn ticker_book_of(app: &App, params: &Params) -> Result<Value, Error> {
    let look = |v: &View<'_>, id| Some([Side::Buy, Side::Sell].map(|side| v.engine.best_level(id, side)));
    let show = |name: &str, scale: &InstrumentScale, best: &[Option<DepthLevel>; 2]| {
        let [bid, ask] = best.map(|level| windows::best(scale, level.as_ref()));
        json!({"symbol": name, "bidPrice": bid.0, "bidQty": bid.1, "askPrice": ask.0, "askQty": ask.1})
    };
    for_symbols(app, params, look, show).await
}
