//! Names of streams: `btcusd@depth@100ms`.

use walras_types::InstrumentId;

use crate::klines::KlineInterval;
use crate::names::Names;
use crate::windows::Streamed;
use crate::zones::Zone;

/// The one time zone besides UTC whose candles have streams.
const ZONE: &str = "+08:00";

/// How often a stream of a book is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Pace {
    /// Each 100 ms.
    Fast,
    /// Each second.
    Slow,
}

/// What a stream of an instrument says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Trade,
    AggTrade,
    Kline(KlineInterval),
    MiniTicker,
    Ticker,
    /// Of a rolling window.
    Window(Streamed),
    BookTicker,
    AvgPrice,
    Diff(Pace),
    Partial(u8, Pace),
}

/// A stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Stream {
    /// Of an instrument.
    One(InstrumentId, Kind),
    /// Tickers of all that traded: `!miniTicker@arr`.
    AllMiniTickers,
    /// The same in full: `!ticker@arr`.
    AllTickers,
    /// Of a rolling window: `!ticker_1h@arr`.
    AllWindows(Streamed),
}

/// The stream of a name.
pub(crate) fn stream(name: &str, names: &Names) -> Option<Stream> {
    match name {
        // python-binance says how often.
        "!miniTicker@arr" | "!miniTicker@arr@1000ms" => return Some(Stream::AllMiniTickers),
        "!ticker@arr" => return Some(Stream::AllTickers),
        _ => {}
    }
    if let Some(window) = name.strip_prefix("!ticker_") {
        return Streamed::from_name(window.strip_suffix("@arr")?).map(Stream::AllWindows);
    }
    let (symbol, kind) = name.split_once('@')?;
    let is_lower = symbol.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let instrument = names.instrument(&symbol.to_ascii_uppercase()).filter(|_| is_lower)?.spec.instrument;
    let paced = |pace: Option<&str>| match pace {
        None | Some("1000ms") => Some(Pace::Slow),
        Some("100ms") => Some(Pace::Fast),
        Some(_) => None,
    };
    let (kind, pace) = kind.split_once('@').map_or((kind, None), |(kind, pace)| (kind, Some(pace)));
    let of = match (kind, pace) {
        ("trade", None) => Kind::Trade,
        ("aggTrade", None) => Kind::AggTrade,
        ("miniTicker", None) => Kind::MiniTicker,
        ("ticker", None) => Kind::Ticker,
        ("bookTicker", None) => Kind::BookTicker,
        ("avgPrice", None) => Kind::AvgPrice,
        ("depth", pace) => Kind::Diff(paced(pace)?),
        ("depth5", pace) => Kind::Partial(5, paced(pace)?),
        ("depth10", pace) => Kind::Partial(10, paced(pace)?),
        ("depth20", pace) => Kind::Partial(20, paced(pace)?),
        (kind, pace) => match (kind.strip_prefix("ticker_"), kind.strip_prefix("kline_"), pace) {
            (Some(window), _, None) => Kind::Window(Streamed::from_name(window)?),
            (_, Some(interval), None) => Kind::Kline(KlineInterval::from_name(interval)?),
            (_, Some(interval), Some(ZONE)) => Kind::Kline(KlineInterval::from_name(interval)?.in_zone(Zone::parse(ZONE)?)),
            _ => return None,
        },
    };
    Some(Stream::One(instrument, of))
}
