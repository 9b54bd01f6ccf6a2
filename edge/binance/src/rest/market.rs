//! What everybody may see.

use axum::extract::State;
use serde_json::{Value, json};
use walras_engine::DepthLevel;
use walras_market_data::{Interval, PublicTrade};
use walras_ports::{InstrumentScale, View};
use walras_types::{InstrumentId, Side, TradeId};

use super::answer::{Answer, ok};
use super::general::wanted;
use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use crate::klines::{self, KlineInterval};
use crate::limits::{DEPTH_MAX, KLINES_MAX, TRADES_MAX};
use crate::orders::instrument;
use crate::params::Params;
use crate::report;
use crate::trades::{aggregate, aggregated, public_trade};
use crate::windows::{DaySide, day_ticker, window};

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
    let names = app.names();
    let (_, scale) = instrument(&names, &call.params)?;
    let limit = call.params.limit(500, TRADES_MAX)?;
    call.params.finish()?;
    let trades = newest(&app, scale.spec.instrument, None, limit).await?;
    Ok(ok(&trades.iter().map(|trade| public_trade(scale, trade)).collect::<Vec<_>>().into()))
}

pub(super) async fn historical_trades(State(app): State<App>, call: Call) -> Answer {
    let names = app.names();
    let (_, scale) = instrument(&names, &call.params)?;
    let limit = call.params.limit(500, TRADES_MAX)?;
    let from = call.params.number("fromId")?;
    call.params.finish()?;
    let trades = newest(&app, scale.spec.instrument, from, limit).await?;
    Ok(ok(&trades.iter().map(|trade| public_trade(scale, trade)).collect::<Vec<_>>().into()))
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
    let (names, params) = (app.names(), &call.params);
    let (_, scale) = instrument(&names, params)?;
    let limit = params.limit(500, TRADES_MAX)?;
    let (from, start_ms, end_ms) = (params.number("fromId")?, params.number("startTime")?, params.number("endTime")?);
    params.finish()?;
    if from.is_some() && (start_ms.is_some() || end_ms.is_some()) {
        return Err(Error::new(-1128, "Combination of optional parameters invalid."));
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
    Ok(ok(&read.await?.iter().map(|trade| aggregated(scale, trade)).collect::<Vec<_>>().into()))
}

pub(super) async fn klines(State(app): State<App>, call: Call) -> Answer {
    Ok(ok(&klines_of(&app, &call.params).await?))
}

pub(crate) async fn klines_of(app: &App, params: &Params) -> Result<Value, Error> {
    let names = app.names();
    let (_, scale) = instrument(&names, params)?;
    let interval = KlineInterval::from_name(params.required("interval")?).ok_or_else(|| Error::new(-1120, "Invalid interval."))?;
    let limit = params.limit(500, KLINES_MAX)?;
    let (start_ms, end_ms) = (params.number("startTime")?, params.number("endTime")?);
    if !matches!(params.text("timeZone")?, None | Some("0" | "00:00" | "+00:00" | "+0:00")) {
        return Err(Error::invalid("timeZone"));
    }
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
    const MINUTES: u64 = 5;
    let names = app.names();
    let (_, scale) = instrument(&names, &call.params)?;
    call.params.finish()?;
    let id = scale.spec.instrument;
    let from_s = app.now_ms() / 1_000 - MINUTES * 60;
    let read = app.venue.read(move |v| {
        let feed = v.market.instrument(id)?;
        let recent = klines::joined(feed.candles().since(Interval::Minute, from_s));
        Some((recent, feed.tape().last().copied()))
    });
    let (recent, last) = read.await?.unwrap_or_default();
    let average = recent.and_then(|recent| scale.average_price(recent.tick_lots, recent.volume));
    let price = match (average, last) {
        (Some(average), _) => average.to_string(),
        (None, Some(last)) => scale.price(last.price),
        (None, None) => scale.price(scale.spec.reference_price),
    };
    Ok(ok(&json!({"mins": MINUTES, "price": price, "closeTime": last.map_or(0, |last| crate::values::ms(last.time))})))
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

pub(super) async fn ticker_day(State(app): State<App>, call: Call) -> Answer {
    let is_mini = match call.params.text("type")? {
        None | Some("FULL") => false,
        Some("MINI") => true,
        Some(_) => return Err(Error::new(-1139, "Invalid ticker type.")),
    };
    let now_ms = app.now_ms();
    let look = move |v: &View<'_>, id| window(v, id, now_ms);
    let show = |name: &str, scale: &InstrumentScale, seen: &DaySide| day_ticker(name, scale, seen, is_mini);
    Ok(ok(&for_symbols(&app, &call.params, look, show).await?))
}

pub(super) async fn ticker_price(State(app): State<App>, call: Call) -> Answer {
    let look = |v: &View<'_>, id| Some(v.market.instrument(id)?.tape().last().map(|last| last.price));
    let show = |name: &str, scale: &InstrumentScale, last: &Option<_>| {
        let price = last.map_or_else(|| report::no_price(scale), |last| scale.price(last));
        json!({"symbol": name, "price": price})
    };
    Ok(ok(&for_symbols(&app, &call.params, look, show).await?))
}

pub(super) async fn book_ticker(State(app): State<App>, call: Call) -> Answer {
    let look = |v: &View<'_>, id| Some([Side::Buy, Side::Sell].map(|side| v.engine.best_level(id, side)));
    let show = |name: &str, scale: &InstrumentScale, best: &[Option<DepthLevel>; 2]| {
        let [bid, ask] = best.map(|level| crate::windows::best(scale, level.as_ref()));
        json!({"symbol": name, "bidPrice": bid.0, "bidQty": bid.1, "askPrice": ask.0, "askQty": ask.1})
    };
    Ok(ok(&for_symbols(&app, &call.params, look, show).await?))
}
