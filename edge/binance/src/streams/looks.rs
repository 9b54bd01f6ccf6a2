//! What is sent each second: candles, windows of trades and average prices. It is made of looks at the state.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use walras_market_data::InstrumentFeed;
use walras_ports::{InstrumentScale, View};
use walras_types::InstrumentId;

use super::names::{Kind, Stream};
use crate::app::App;
use crate::klines::{self, Kline, KlineInterval};
use crate::report;
use crate::windows::{self, Figures, Recent, Seen, Streamed, Window};

/// A window that has streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Span {
    /// The last 24 hours.
    LastDay,
    Rolling(Streamed),
}

impl Span {
    fn window(self, now_ms: u64) -> Window {
        match self {
            Self::LastDay => Window::last_day(now_ms),
            Self::Rolling(streamed) => Window::rolling(streamed.size(), now_ms),
        }
    }
}

/// Whether a candle changes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IsClosed {
    Yes,
    No,
}

/// A candle that is to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub(super) interval: KlineInterval,
    pub(super) kline: Kline,
    is_closed: IsClosed,
    /// Its last trade.
    last_id: i64,
}

/// A look at an instrument.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) instrument: InstrumentId,
    pub(super) klines: Vec<Due>,
    pub(super) windows: Vec<(Span, Seen)>,
    pub(super) average: Option<Recent>,
}

/// What is looked at of an instrument.
#[derive(Clone, Debug, Default)]
struct WantedOf {
    /// Candles, each with the start of the one that was sent last.
    klines: Vec<(KlineInterval, Option<u64>)>,
    windows: BTreeSet<Span>,
    average: bool,
}

/// What is looked at.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    of: BTreeMap<InstrumentId, WantedOf>,
    /// Of all instruments.
    windows: BTreeSet<Span>,
}

impl Wanted {
    /// What some streams need. `sent` says where the candle began that was sent last.
    pub(super) fn by<'s>(
        streams: impl Iterator<Item = &'s Stream>,
        sent: impl Fn(InstrumentId, KlineInterval) -> Option<u64>,
    ) -> Self {
        let mut wanted = Self::default();
        for stream in streams {
            match *stream {
                Stream::One(instrument, kind) => wanted.add(instrument, kind, &sent),
                Stream::AllMiniTickers | Stream::AllTickers => drop(wanted.windows.insert(Span::LastDay)),
                Stream::AllWindows(streamed) => drop(wanted.windows.insert(Span::Rolling(streamed))),
            }
        }
        // What is seen of all is not looked at again.
        for of in wanted.of.values_mut() {
            of.windows.retain(|span| !wanted.windows.contains(span));
        }
        wanted
    }

    fn add(&mut self, instrument: InstrumentId, kind: Kind, sent: impl Fn(InstrumentId, KlineInterval) -> Option<u64>) {
        match kind {
            Kind::Kline(interval) => self.of_mut(instrument).klines.push((interval, sent(instrument, interval))),
            Kind::MiniTicker | Kind::Ticker => drop(self.of_mut(instrument).windows.insert(Span::LastDay)),
            Kind::Window(streamed) => drop(self.of_mut(instrument).windows.insert(Span::Rolling(streamed))),
            Kind::AvgPrice => self.of_mut(instrument).average = true,
            Kind::Trade | Kind::AggTrade | Kind::BookTicker | Kind::Diff(_) | Kind::Partial(..) => {}
        }
    }

    fn of_mut(&mut self, instrument: InstrumentId) -> &mut WantedOf {
        self.of.entry(instrument).or_default()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty() && self.windows.is_empty()
    }

    /// Looks, and waits until what was seen may be known.
    pub(super) async fn look(self, app: App, now_ms: u64) -> Option<Vec<Look>> {
        let mut looks = Vec::new();
        for (instrument, of) in self.of {
            let seen = app.venue.read(move |v| of.look(v, instrument, now_ms)).await;
            looks.extend(seen.ok()?);
        }
        for span in self.windows {
            let window = span.window(now_ms);
            let seen = app.venue.of_instruments(move |v: &View<'_>, id| Some((id, windows::seen(v, id, window)?))).await;
            let of = |(instrument, seen)| Look { instrument, klines: Vec::new(), windows: vec![(span, seen)], average: None };
            looks.extend(seen.ok()?.into_iter().map(of));
        }
        // pause: nobody may know it sooner
        tokio::time::sleep(app.venue.public_in()).await;
        Some(looks)
    }
}

impl WantedOf {
    fn look(self, v: &View<'_>, instrument: InstrumentId, now_ms: u64) -> Option<Look> {
        let feed = v.market.instrument(instrument)?;
        let klines = self.klines.iter().flat_map(|(interval, sent)| due(feed, *interval, *sent, now_ms / 1_000)).collect();
        let window = |span: Span| Some((span, windows::seen(v, instrument, span.window(now_ms))?));
        let windows = self.windows.into_iter().filter_map(window).collect();
        let average = if self.average { windows::recent(v, instrument, now_ms) } else { None };
        Some(Look { instrument, klines, windows, average })
    }
}

/// The candle of now, and before it the last one that was sent, if that is closed since.
fn due(feed: &InstrumentFeed, interval: KlineInterval, sent: Option<u64>, now_s: u64) -> Vec<Due> {
    let (Some(now), Some(last)) = (klines::latest(interval, feed.candles(), now_s), feed.tape().last()) else { return Vec::new() };
    let last_id = i64::try_from(last.trade_id.0).unwrap_or(i64::MAX);
    let mut due = Vec::new();
    if let Some(before) = sent.filter(|sent| *sent < now.start_s) {
        let candles: Vec<_> = feed.candles().iter(interval.base()).copied().collect();
        let ended = klines::klines(interval, &candles, (Some(before), now.start_s - 1), 1);
        let last_id = last_id.saturating_sub(i64::try_from(now.candle.trade_count).unwrap_or(i64::MAX));
        due.extend(ended.into_iter().map(|kline| Due { interval, kline, is_closed: IsClosed::Yes, last_id }));
    }
    due.push(Due { interval, kline: now, is_closed: IsClosed::No, last_id });
    due
}

pub(super) fn kline(symbol: &str, scale: &InstrumentScale, now_ms: u64, due: &Due) -> Value {
    let Due { interval, kline, is_closed, last_id } = due;
    let candle = &kline.candle;
    let count = i64::try_from(candle.trade_count).unwrap_or(i64::MAX);
    let (first, last) = if count == 0 { (-1, -1) } else { (last_id - count + 1, *last_id) };
    json!({
        "e": "kline", "E": now_ms, "s": symbol,
        "k": {
            "t": kline.start_s * 1_000,
            "T": interval.next(kline.start_s) * 1_000 - 1,
            "s": symbol,
            "i": interval.name(),
            "f": first,
            "L": last,
            "o": scale.price(candle.open),
            "c": scale.price(candle.close),
            "h": scale.price(candle.high),
            "l": scale.price(candle.low),
            "v": report::size(scale, candle.volume),
            "n": candle.trade_count,
            "x": *is_closed == IsClosed::Yes,
            "q": report::quote(scale, candle.tick_lots),
            "V": report::size(scale, candle.bought),
            "Q": report::quote(scale, candle.bought_tick_lots),
            "B": "0",
        },
    })
}

pub(super) fn mini_ticker(symbol: &str, figures: &Figures, now_ms: u64) -> Value {
    json!({
        "e": "24hrMiniTicker", "E": now_ms, "s": symbol, "c": figures.last, "o": figures.open, "h": figures.high, "l": figures.low,
        "v": figures.volume, "q": figures.quote_volume,
    })
}

/// A ticker of the last 24 hours or of a rolling window; the first has more.
pub(super) fn ticker(symbol: &str, scale: &InstrumentScale, (span, seen): (Span, &Seen), figures: &Figures, now_ms: u64) -> Value {
    let kind = match span {
        Span::LastDay => "24hrTicker".to_owned(),
        Span::Rolling(streamed) => format!("{}Ticker", streamed.name()),
    };
    let mut ticker = json!({
        "e": kind, "E": now_ms, "s": symbol, "p": figures.change, "P": figures.change_percent, "w": figures.average,
        "c": figures.last, "o": figures.open, "h": figures.high, "l": figures.low, "v": figures.volume, "q": figures.quote_volume,
        "O": seen.window.open_s * 1_000, "C": seen.window.close_ms,
        "F": figures.first_id, "L": figures.last_id, "n": figures.count,
    });
    if span == Span::LastDay {
        let [bid, ask] = [0, 1].map(|side| windows::best(scale, seen.best[side].as_ref()));
        let rest = json!({
            "x": figures.before, "Q": figures.last_size, "b": bid.0, "B": bid.1, "a": ask.0, "A": ask.1,
        });
        crate::values::merge(&mut ticker, rest);
    }
    ticker
}

pub(super) fn average_price(symbol: &str, scale: &InstrumentScale, recent: &Recent, now_ms: u64) -> Value {
    let (price, last_ms) = windows::average_price(scale, recent);
    json!({
        "e": "avgPrice", "E": now_ms, "s": symbol, "i": format!("{}m", windows::AVERAGE_MINUTES), "w": price, "T": last_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_of_all_is_not_looked_at_again() {
        let (one, other) = (InstrumentId(1), InstrumentId(2));
        let interval = KlineInterval::DAY;
        let streams = [
            Stream::One(one, Kind::Ticker),
            Stream::One(one, Kind::Window(Streamed::Hour)),
            Stream::One(one, Kind::Kline(interval)),
            Stream::One(other, Kind::MiniTicker),
            Stream::One(other, Kind::AvgPrice),
            Stream::One(other, Kind::Trade),
            Stream::AllTickers,
        ];
        let sent = |instrument: InstrumentId, _: KlineInterval| (instrument == one).then_some(86_400);
        let wanted = Wanted::by(streams.iter(), sent);
        assert_eq!(wanted.windows, BTreeSet::from([Span::LastDay]));
        assert_eq!(wanted.of[&one].windows, BTreeSet::from([Span::Rolling(Streamed::Hour)]));
        assert_eq!(wanted.of[&one].klines, [(interval, Some(86_400))]);
        assert!(wanted.of[&other].windows.is_empty() && wanted.of[&other].average);
        assert!(Wanted::by([Stream::One(one, Kind::Trade)].iter(), sent).is_empty());
    }
}
