//! The last 24 hours of an instrument, from candles of five minutes: the window begins at a whole one.

use serde_json::{Value, json};
use walras_engine::DepthLevel;
use walras_gateway::Decimal;
use walras_market_data::{Candle, Interval, PublicTrade};
use walras_ports::{InstrumentScale, View};
use walras_types::{InstrumentId, Side};

use crate::klines::joined;
use crate::report::{no_price, quote, size};

const DAY_S: u64 = 86_400;

/// What a day's ticker is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DaySide {
    /// Its trades, if there were any.
    pub(crate) candle: Option<Candle>,
    /// The last price before it.
    pub(crate) before: Option<walras_types::PriceTicks>,
    pub(crate) last: Option<PublicTrade>,
    pub(crate) best: [Option<DepthLevel>; 2],
    pub(crate) open_s: u64,
    pub(crate) close_ms: u64,
}

/// A look at it.
pub(crate) fn window(v: &View<'_>, instrument: InstrumentId, now_ms: u64) -> Option<DaySide> {
    let feed = v.market.instrument(instrument)?;
    let length_s = Interval::FiveMinutes.seconds();
    let from_s = (now_ms / 1_000).saturating_sub(DAY_S).next_multiple_of(length_s);
    let before = feed.candles().iter(Interval::FiveMinutes).rev().find(|candle| candle.start_s < from_s).map(|candle| candle.close);
    Some(DaySide {
        candle: joined(feed.candles().since(Interval::FiveMinutes, from_s)),
        before,
        last: feed.tape().last().copied(),
        best: [Side::Buy, Side::Sell].map(|side| v.engine.best_level(instrument, side)),
        open_s: from_s,
        close_ms: now_ms,
    })
}

/// The price and the size of the best level; zeros where there is none.
pub(crate) fn best(scale: &InstrumentScale, level: Option<&DepthLevel>) -> (String, String) {
    match level {
        Some(level) => (scale.price(level.price), scale.size(level.shown)),
        None => (no_price(scale), size(scale, walras_types::SizeLots::ZERO)),
    }
}

/// The figures of the window, as texts.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) change: String,
    pub(crate) change_percent: String,
    pub(crate) average: String,
    pub(crate) before: String,
    pub(crate) last: String,
    pub(crate) last_size: String,
    pub(crate) open: String,
    pub(crate) high: String,
    pub(crate) low: String,
    pub(crate) volume: String,
    pub(crate) quote_volume: String,
    pub(crate) first_id: i64,
    pub(crate) last_id: i64,
    pub(crate) count: u64,
}

impl Figures {
    pub(crate) fn of(scale: &InstrumentScale, seen: &DaySide) -> Self {
        let none = || no_price(scale);
        let price = |price: Option<walras_types::PriceTicks>| price.map_or_else(none, |price| scale.price(price));
        let (open, last) = (seen.candle.map(|candle| candle.open), seen.last.map(|last| last.price));
        let count = seen.candle.map_or(0, |candle| candle.trade_count);
        let last_id = seen.last.filter(|_| count > 0).and_then(|last| i64::try_from(last.trade_id.0).ok());
        let tick = scale.tick();
        let (change, percent) = match (open, last) {
            (Some(open), Some(last)) => {
                let ticks = i128::from(last.get() - open.get());
                let unit = i128::try_from(tick.mantissa()).unwrap_or(1);
                // In hundredths of a percent and two more decimals, toward zero.
                (Decimal::signed(ticks * unit, tick.decimals()), Decimal::signed(ticks * 100_000 / i128::from(open.get()), 3))
            }
            _ => (Decimal::new(0, tick.decimals()), Decimal::new(0, 3)),
        };
        Self {
            change: change.to_string(),
            change_percent: percent.to_string(),
            average: seen
                .candle
                .and_then(|candle| scale.average_price(candle.tick_lots, candle.volume))
                .map_or_else(none, |average| average.to_string()),
            before: price(seen.before),
            last: price(last),
            last_size: size(scale, seen.last.map_or(walras_types::SizeLots::ZERO, |last| last.size)),
            open: price(open),
            high: price(seen.candle.map(|candle| candle.high)),
            low: price(seen.candle.map(|candle| candle.low)),
            volume: size(scale, seen.candle.map_or(walras_types::SizeLots::ZERO, |candle| candle.volume)),
            quote_volume: quote(scale, seen.candle.map_or(0, |candle| candle.tick_lots)),
            // Trades of an instrument are numbered without gaps.
            first_id: last_id.map_or(-1, |last| last.saturating_sub(i64::try_from(count).unwrap_or(i64::MAX)) + 1),
            last_id: last_id.unwrap_or(-1),
            count,
        }
    }
}

/// One of `GET /api/v3/ticker/24hr`.
pub(crate) fn day_ticker(symbol: &str, scale: &InstrumentScale, seen: &DaySide, is_mini: bool) -> Value {
    let figures = Figures::of(scale, seen);
    let mut ticker = json!({
        "symbol": symbol,
        "openPrice": figures.open,
        "highPrice": figures.high,
        "lowPrice": figures.low,
        "lastPrice": figures.last,
        "volume": figures.volume,
        "quoteVolume": figures.quote_volume,
        "openTime": seen.open_s * 1_000,
        "closeTime": seen.close_ms,
        "firstId": figures.first_id,
        "lastId": figures.last_id,
        "count": figures.count,
    });
    if !is_mini {
        let [bid, ask] = [0, 1].map(|side| best(scale, seen.best[side].as_ref()));
        let rest = json!({
            "priceChange": figures.change,
            "priceChangePercent": figures.change_percent,
            "weightedAvgPrice": figures.average,
            "prevClosePrice": figures.before,
            "lastQty": figures.last_size,
            "bidPrice": bid.0,
            "bidQty": bid.1,
            "askPrice": ask.0,
            "askQty": ask.1,
        });
        crate::values::merge(&mut ticker, rest);
    }
    ticker
}
