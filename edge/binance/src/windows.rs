//! Windows of an instrument's trades, made of candles: the last 24 hours, rolling windows, days of a time zone; and the average price of
//! the last minutes. A window begins where a candle does, and says where.

use serde_json::{Value, json};
use walras_engine::DepthLevel;
use walras_gateway::Decimal;
use walras_market_data::limits::CANDLES_MAX;
use walras_market_data::{Candle, Interval, PublicTrade};
use walras_ports::{InstrumentScale, View};
use walras_types::{InstrumentId, PriceTicks, Side, SizeLots};

use crate::klines::{KlineInterval, joined};
use crate::report::{no_price, quote, size};
use crate::values::{merge, ms};
use crate::zones::Zone;

const DAY_S: u64 = 86_400;
/// Minutes of the average price.
pub(crate) const AVERAGE_MINUTES: u64 = 5;

/// How long a rolling window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowSize {
    seconds: u64,
}

impl WindowSize {
    pub(crate) const DAY: Self = Self { seconds: DAY_S };

    /// Reads `1m` to `59m`, `1h` to `23h` or `1d` to `7d`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let unit = text.chars().next_back()?;
        let (most, unit_s) = match unit {
            'm' => (59, 60),
            'h' => (23, 3_600),
            'd' => (7, DAY_S),
            _ => return None,
        };
        let digits = text.strip_suffix(unit)?;
        let is_number = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
        let count = digits.parse::<u64>().ok().filter(|count| is_number && *count <= most)?;
        Some(Self { seconds: count * unit_s })
    }

    /// The shortest of the venue's intervals, from a minute on, of which enough candles are remembered. One more counts at each end.
    fn base(self) -> Interval {
        let reaches = |base: &Interval| self.seconds / base.seconds() + 2 <= CANDLES_MAX as u64;
        [Interval::Minute, Interval::FiveMinutes].into_iter().find(reaches).unwrap_or(Interval::Hour)
    }
}

/// A rolling window that has streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Streamed {
    Hour,
    FourHours,
    Day,
}

impl Streamed {
    const ALL: [Self; 3] = [Self::Hour, Self::FourHours, Self::Day];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::FourHours => "4h",
            Self::Day => "1d",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|streamed| streamed.name() == name)
    }

    pub(crate) const fn size(self) -> WindowSize {
        let seconds = match self {
            Self::Hour => 3_600,
            Self::FourHours => 4 * 3_600,
            Self::Day => DAY_S,
        };
        WindowSize { seconds }
    }
}

/// Where a window begins and ends, and of which candles it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    base: Interval,
    pub(crate) open_s: u64,
    pub(crate) close_ms: u64,
}

impl Window {
    /// The last 24 hours, from a whole five minutes on.
    pub(crate) fn last_day(now_ms: u64) -> Self {
        let base = Interval::FiveMinutes;
        let open_s = (now_ms / 1_000).saturating_sub(DAY_S).next_multiple_of(base.seconds());
        Self { base, open_s, close_ms: now_ms }
    }

    /// A rolling one. It is longer than its size by less than a candle.
    pub(crate) fn rolling(size: WindowSize, now_ms: u64) -> Self {
        let base = size.base();
        let open_s = (now_ms / 1_000).saturating_sub(size.seconds);
        Self { base, open_s: open_s - open_s % base.seconds(), close_ms: now_ms }
    }

    /// The day that it is in a time zone, to its end. `None` where fewer candles are remembered than the day has: a zone whose days begin
    /// within five minutes.
    pub(crate) fn trading_day(zone: Zone, now_ms: u64) -> Option<Self> {
        let day = KlineInterval::DAY.in_zone(zone);
        let base = day.base();
        let open_s = day.start(now_ms / 1_000);
        let window = Self { base, open_s, close_ms: day.next(open_s) * 1_000 - 1 };
        (DAY_S / base.seconds() <= CANDLES_MAX as u64).then_some(window)
    }
}

/// What a ticker of a window is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) window: Window,
    /// Its trades, if there were any.
    pub(crate) candle: Option<Candle>,
    /// The last price before it.
    pub(crate) before: Option<PriceTicks>,
    pub(crate) last: Option<PublicTrade>,
    pub(crate) best: [Option<DepthLevel>; 2],
}

/// A look at a window.
pub(crate) fn seen(v: &View<'_>, instrument: InstrumentId, window: Window) -> Option<Seen> {
    let feed = v.market.instrument(instrument)?;
    let Window { base, open_s, .. } = window;
    Some(Seen {
        window,
        candle: joined(feed.candles().since(base, open_s)),
        before: feed.candles().before(base, open_s).map(|candle| candle.close),
        last: feed.tape().last().copied(),
        best: [Side::Buy, Side::Sell].map(|side| v.engine.best_level(instrument, side)),
    })
}

/// What the average price is made of: the trades of the last minutes, if there were any, and the last trade of all.
pub(crate) type Recent = (Option<Candle>, Option<PublicTrade>);

/// A look at it.
pub(crate) fn recent(v: &View<'_>, instrument: InstrumentId, now_ms: u64) -> Option<Recent> {
    let feed = v.market.instrument(instrument)?;
    let from_s = (now_ms / 1_000).saturating_sub(AVERAGE_MINUTES * 60);
    Some((joined(feed.candles().since(Interval::Minute, from_s)), feed.tape().last().copied()))
}

/// The average price, and when the last trade was, in milliseconds; 0 for never.
pub(crate) fn average_price(scale: &InstrumentScale, (recent, last): &Recent) -> (String, u64) {
    let average = recent.and_then(|recent| scale.average_price(recent.tick_lots, recent.volume));
    let price = match (average, last) {
        (Some(average), _) => average.to_string(),
        (None, Some(last)) => scale.price(last.price),
        (None, None) => scale.price(scale.spec.reference_price),
    };
    (price, last.map_or(0, |last| ms(last.time)))
}

/// The price and the size of the best level; zeros where there is none.
pub(crate) fn best(scale: &InstrumentScale, level: Option<&DepthLevel>) -> (String, String) {
    match level {
        Some(level) => (scale.price(level.price), scale.size(level.shown)),
        None => (no_price(scale), size(scale, SizeLots::ZERO)),
    }
}

/// The figures of a window, as texts.
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
    pub(crate) fn of(scale: &InstrumentScale, seen: &Seen) -> Self {
        let none = || no_price(scale);
        let price = |price: Option<PriceTicks>| price.map_or_else(none, |price| scale.price(price));
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
            last_size: size(scale, seen.last.map_or(SizeLots::ZERO, |last| last.size)),
            open: price(open),
            high: price(seen.candle.map(|candle| candle.high)),
            low: price(seen.candle.map(|candle| candle.low)),
            volume: size(scale, seen.candle.map_or(SizeLots::ZERO, |candle| candle.volume)),
            quote_volume: quote(scale, seen.candle.map_or(0, |candle| candle.tick_lots)),
            // Trades of an instrument are numbered without gaps.
            first_id: last_id.map_or(-1, |last| last.saturating_sub(i64::try_from(count).unwrap_or(i64::MAX)) + 1),
            last_id: last_id.unwrap_or(-1),
            count,
        }
    }
}

/// A ticker of a window; `is_mini` without what is made of the other figures.
pub(crate) fn ticker(symbol: &str, scale: &InstrumentScale, seen: &Seen, is_mini: bool) -> Value {
    let figures = Figures::of(scale, seen);
    let mut ticker = json!({
        "symbol": symbol,
        "openPrice": figures.open,
        "highPrice": figures.high,
        "lowPrice": figures.low,
        "lastPrice": figures.last,
        "volume": figures.volume,
        "quoteVolume": figures.quote_volume,
        "openTime": seen.window.open_s * 1_000,
        "closeTime": seen.window.close_ms,
        "firstId": figures.first_id,
        "lastId": figures.last_id,
        "count": figures.count,
    });
    if !is_mini {
        let rest = json!({
            "priceChange": figures.change,
            "priceChangePercent": figures.change_percent,
            "weightedAvgPrice": figures.average,
        });
        merge(&mut ticker, rest);
    }
    ticker
}

/// One of `GET /api/v3/ticker/24hr`, which in full has more than those of other windows.
pub(crate) fn day_ticker(symbol: &str, scale: &InstrumentScale, seen: &Seen, is_mini: bool) -> Value {
    let mut day = ticker(symbol, scale, seen, is_mini);
    if !is_mini {
        let figures = Figures::of(scale, seen);
        let [bid, ask] = [0, 1].map(|side| best(scale, seen.best[side].as_ref()));
        let rest = json!({
            "prevClosePrice": figures.before,
            "lastQty": figures.last_size,
            "bidPrice": bid.0,
            "bidQty": bid.1,
            "askPrice": ask.0,
            "askQty": ask.1,
        });
        merge(&mut day, rest);
    }
    day
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_one_unit() {
        let seconds = |text: &str| WindowSize::parse(text).map(|size| size.seconds);
        let read = [("1m", 60), ("59m", 3_540), ("1h", 3_600), ("23h", 82_800), ("1d", DAY_S), ("7d", 7 * DAY_S)];
        for (text, size_s) in read {
            assert_eq!(seconds(text), Some(size_s), "{text}");
        }
        for text in ["", "m", "0m", "60m", "24h", "8d", "01h", "1w", "1s", "1M", "+1h", "1h2m", "1.5h", "-1h", "h1", "1ü"] {
            assert_eq!(seconds(text), None, "{text}");
        }
        for streamed in Streamed::ALL {
            assert_eq!(Streamed::from_name(streamed.name()), Some(streamed));
            assert_eq!(WindowSize::parse(streamed.name()), Some(streamed.size()));
        }
        assert_eq!((Streamed::from_name("2h"), WindowSize::DAY), (None, Streamed::Day.size()));
    }

    #[test]
    fn a_window_begins_where_remembered_candles_do() {
        // 2022-01-04 09:17:47.099: the example of the dialect's documents.
        let now_ms = 1_641_287_867_099;
        let rolling = |text: &str| Window::rolling(WindowSize::parse(text).unwrap(), now_ms);
        assert_eq!((rolling("1m").open_s, rolling("1m").close_ms), (1_641_287_760, now_ms));
        assert_eq!((rolling("16h").base, rolling("16h").open_s), (Interval::Minute, 1_641_230_220));
        assert_eq!((rolling("1d").base, rolling("1d").open_s), (Interval::FiveMinutes, 1_641_201_300));
        assert_eq!(
            (rolling("3d").base, rolling("7d").base, rolling("7d").open_s),
            (Interval::FiveMinutes, Interval::Hour, 1_640_682_000)
        );
        assert_eq!(Window::last_day(now_ms).open_s, 1_641_201_600);
        let of_zone = |zone: &str| Window::trading_day(Zone::parse(zone).unwrap(), now_ms);
        assert_eq!([of_zone("00:01"), of_zone("-05:59")], [None; 2], "a day has more minutes than are remembered");
        let day = |zone: &str| of_zone(zone).unwrap();
        assert_eq!((day("0").open_s, day("0").close_ms), (1_641_254_400, 1_641_340_799_999));
        assert_eq!((day("-10").open_s, day("-10").close_ms), (1_641_204_000, 1_641_290_399_999));
        assert_eq!((day("0").base, day("05:45").base), (Interval::Hour, Interval::FiveMinutes));
        for minutes in (1..60).chain((1..24).map(|h| h * 60)).chain((1..=7).map(|d| d * 1_440)) {
            let size = WindowSize { seconds: minutes * 60 };
            let window = Window::rolling(size, now_ms);
            let wide_s = now_ms / 1_000 - window.open_s;
            assert!(window.open_s.is_multiple_of(window.base.seconds()), "{minutes}");
            assert!((size.seconds..size.seconds + window.base.seconds()).contains(&wide_s), "{minutes}");
            assert!(wide_s / window.base.seconds() < CANDLES_MAX as u64, "{minutes}");
        }
    }
}
