//! Candles of the dialect's intervals, made of the venue's five.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use walras_market_data::{Candle, Candles, Interval};
use walras_ports::InstrumentScale;
use walras_types::SizeLots;

use crate::report;
use crate::zones::Zone;

const DAY_S: i64 = 86_400;
/// 1970-01-05 was a Monday.
const FIRST_MONDAY_S: i64 = 4 * DAY_S;

/// An interval of the dialect, in a time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct KlineInterval {
    /// Its place among [`INTERVALS`].
    place: usize,
    zone: Zone,
}

#[derive(Clone, Copy, Debug)]
enum Length {
    Seconds(i64),
    Week,
    Month,
}

const INTERVALS: [(&str, Length, Interval); 16] = [
    ("1s", Length::Seconds(1), Interval::Second),
    ("1m", Length::Seconds(60), Interval::Minute),
    ("3m", Length::Seconds(180), Interval::Minute),
    ("5m", Length::Seconds(300), Interval::FiveMinutes),
    ("15m", Length::Seconds(900), Interval::FiveMinutes),
    ("30m", Length::Seconds(1_800), Interval::FiveMinutes),
    ("1h", Length::Seconds(3_600), Interval::Hour),
    ("2h", Length::Seconds(7_200), Interval::Hour),
    ("4h", Length::Seconds(14_400), Interval::Hour),
    ("6h", Length::Seconds(21_600), Interval::Hour),
    ("8h", Length::Seconds(28_800), Interval::Hour),
    ("12h", Length::Seconds(43_200), Interval::Hour),
    ("1d", Length::Seconds(DAY_S), Interval::Hour),
    ("3d", Length::Seconds(3 * DAY_S), Interval::Hour),
    ("1w", Length::Week, Interval::Hour),
    ("1M", Length::Month, Interval::Hour),
];

impl KlineInterval {
    /// A day of UTC.
    pub(crate) const DAY: Self = Self { place: 12, zone: Zone::UTC };

    /// The interval of a name, in UTC.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let place = INTERVALS.iter().position(|(known, ..)| *known == name)?;
        Some(Self { place, zone: Zone::UTC })
    }

    /// The same in a time zone: hours, days, weeks and months begin there.
    pub(crate) fn in_zone(self, zone: Zone) -> Self {
        Self { zone, ..self }
    }

    pub(crate) fn name(self) -> &'static str {
        INTERVALS[self.place].0
    }

    fn length(self) -> Length {
        INTERVALS[self.place].1
    }

    /// The venue's candles of which one is made: the longest of which one begins where each of these does.
    pub(crate) fn base(self) -> Interval {
        let (longest, offset_s) = (INTERVALS[self.place].2, self.zone.seconds().unsigned_abs());
        let fits = |base: &Interval| *base <= longest && offset_s.is_multiple_of(base.seconds());
        Interval::ALL.into_iter().rev().find(fits).unwrap_or(Interval::Second)
    }

    /// Where the one of a moment begins.
    pub(crate) fn start(self, time_s: u64) -> u64 {
        self.of_local(self.local_start(self.to_local(time_s)))
    }

    /// Where the one after a start begins.
    pub(crate) fn next(self, start_s: u64) -> u64 {
        // The first one may have begun before 1970, where times begin.
        let start_s = self.local_start(self.to_local(start_s));
        self.of_local(match self.length() {
            Length::Seconds(length) => start_s.saturating_add(length),
            Length::Week => start_s.saturating_add(7 * DAY_S),
            // No month is longer than 31 days.
            Length::Month => self.local_start(start_s.saturating_add(31 * DAY_S)),
        })
    }

    /// What clocks of the zone say, in seconds.
    fn to_local(self, time_s: u64) -> i64 {
        i64::try_from(time_s).unwrap_or(i64::MAX).saturating_add(self.zone.seconds())
    }

    fn of_local(self, local_s: i64) -> u64 {
        u64::try_from(local_s.saturating_sub(self.zone.seconds())).unwrap_or(0)
    }

    fn local_start(self, local_s: i64) -> i64 {
        match self.length() {
            Length::Seconds(length) => local_s - local_s.rem_euclid(length),
            Length::Week => local_s - (local_s - FIRST_MONDAY_S).rem_euclid(7 * DAY_S),
            Length::Month => match u64::try_from(local_s.div_euclid(DAY_S)) {
                Ok(day) => {
                    let (year, month) = month_of(day);
                    i64::try_from(days_before(year, month)).unwrap_or(i64::MAX).saturating_mul(DAY_S)
                }
                // Still December 1969 there.
                Err(_) => -31 * DAY_S,
            },
        }
    }
}

/// Days from 1970-01-01 to the first of a month; months from 0.
fn days_before(year: u64, month: u64) -> u64 {
    // Days of the civil calendar, counted in eras of 400 years that begin in March.
    let (year, month) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
    let (era, of_era) = (year / 400, year % 400);
    let day_of_year = (153 * month + 2) / 5;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468
}

/// The year and the month, from 0, of a day.
fn month_of(day: u64) -> (u64, u64) {
    let (mut year, mut month) = (1970 + day / 366, 0);
    while days_before(year + 1, 0) <= day {
        year += 1;
    }
    while month < 11 && days_before(year, month + 1) <= day {
        month += 1;
    }
    (year, month)
}

/// The trades of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kline {
    pub(crate) start_s: u64,
    pub(crate) candle: Candle,
}

fn join(into: &mut Candle, candle: &Candle) {
    let sum = |a: SizeLots, b: SizeLots| SizeLots::new(a.get().saturating_add(b.get()));
    into.high = into.high.max(candle.high);
    into.low = into.low.min(candle.low);
    into.close = candle.close;
    into.volume = sum(into.volume, candle.volume);
    into.trade_count = into.trade_count.saturating_add(candle.trade_count);
    into.tick_lots = into.tick_lots.saturating_add(candle.tick_lots);
    into.bought = sum(into.bought, candle.bought);
    into.bought_tick_lots = into.bought_tick_lots.saturating_add(candle.bought_tick_lots);
}

/// One candle of many; `None` of none.
pub(crate) fn joined<'c>(candles: impl Iterator<Item = &'c Candle>) -> Option<Candle> {
    candles.fold(None, |all, candle| match all {
        None => Some(*candle),
        Some(mut all) => {
            join(&mut all, candle);
            Some(all)
        }
    })
}

/// Nothing traded since that.
fn flat(start_s: u64, before: &Candle) -> Candle {
    Candle {
        start_s,
        open: before.close,
        high: before.close,
        low: before.close,
        close: before.close,
        volume: SizeLots::ZERO,
        trade_count: 0,
        tick_lots: 0,
        bought: SizeLots::ZERO,
        bought_tick_lots: 0,
    }
}

/// Candles from `from_s` on, or the last ones up to `to_s`; at most `limit`. Where nothing traded the price stays. The first is that of
/// the first trade that is remembered.
pub(crate) fn klines(interval: KlineInterval, candles: &[Candle], (from_s, to_s): (Option<u64>, u64), limit: usize) -> Vec<Kline> {
    let mut made: BTreeMap<u64, Candle> = BTreeMap::new();
    for candle in candles {
        let start_s = interval.start(candle.start_s);
        made.entry(start_s).and_modify(|all| join(all, candle)).or_insert(Candle { start_s, ..*candle });
    }
    let Some((&first_s, _)) = made.first_key_value() else { return Vec::new() };
    if from_s.is_some_and(|from_s| from_s > to_s) {
        return Vec::new();
    }
    let begin_s = match from_s {
        Some(from_s) => {
            let start_s = interval.start(from_s);
            if start_s < from_s { interval.next(start_s) } else { start_s }
        }
        None => {
            let mut begin_s = interval.start(to_s);
            for _ in 1..limit {
                if begin_s <= first_s {
                    break;
                }
                begin_s = interval.start(begin_s - 1);
            }
            begin_s
        }
    };
    let mut start_s = begin_s.max(first_s);
    let mut before = made.range(..start_s).next_back().map(|(_, candle)| *candle);
    let mut listed = Vec::new();
    while start_s <= to_s && listed.len() < limit {
        let candle = made.get(&start_s).copied().or_else(|| before.as_ref().map(|before| flat(start_s, before)));
        if let Some(candle) = candle {
            before = Some(candle);
            listed.push(Kline { start_s, candle });
        }
        start_s = interval.next(start_s);
    }
    listed
}

/// The latest one; flat where nothing traded in it.
pub(crate) fn latest(interval: KlineInterval, candles: &Candles, now_s: u64) -> Option<Kline> {
    let start_s = interval.start(now_s);
    let all: Vec<Candle> = candles.since(interval.base(), start_s).copied().collect();
    let candle = match joined(all.iter()) {
        Some(candle) => Candle { start_s, ..candle },
        None => flat(start_s, candles.last(interval.base())?),
    };
    Some(Kline { start_s, candle })
}

/// A row of `GET /api/v3/klines`.
pub(crate) fn row(interval: KlineInterval, kline: &Kline, scale: &InstrumentScale) -> Value {
    let Candle { open, high, low, close, volume, trade_count, tick_lots, bought, bought_tick_lots, .. } = kline.candle;
    json!([
        kline.start_s * 1_000,
        scale.price(open),
        scale.price(high),
        scale.price(low),
        scale.price(close),
        report::size(scale, volume),
        interval.next(kline.start_s) * 1_000 - 1,
        report::quote(scale, tick_lots),
        trade_count,
        report::size(scale, bought),
        report::quote(scale, bought_tick_lots),
        "0",
    ])
}

#[cfg(test)]
mod tests {
    use walras_types::PriceTicks;

    use super::*;

    fn candle(start_s: u64, price: i64, lots: u64) -> Candle {
        let price = PriceTicks::saturating(price);
        let volume = SizeLots::new(lots);
        Candle { open: price, high: price, low: price, close: price, volume, trade_count: 1, ..flat(start_s, &any()) }
    }

    fn any() -> Candle {
        let price = PriceTicks::MIN;
        Candle {
            start_s: 0,
            open: price,
            high: price,
            low: price,
            close: price,
            volume: SizeLots::ZERO,
            trade_count: 0,
            tick_lots: 0,
            bought: SizeLots::ZERO,
            bought_tick_lots: 0,
        }
    }

    #[test]
    fn weeks_begin_on_mondays_and_months_on_the_first() {
        let [week, month] = ["1w", "1M"].map(|name| KlineInterval::from_name(name).unwrap());
        // 2024-02-29, a Thursday; the Monday before is the 26th.
        let leap_day_s = 1_709_208_000;
        assert_eq!((week.start(leap_day_s), week.next(week.start(leap_day_s))), (1_708_905_600, 1_709_510_400));
        assert_eq!((month.start(leap_day_s), month.next(month.start(leap_day_s))), (1_706_745_600, 1_709_251_200));
        let mut start_s = 0;
        for n in 1..=12 * 80 {
            let next_s = month.next(start_s);
            assert!((28..=31).contains(&((next_s - start_s) / 86_400)) && month.start(next_s - 1) == start_s, "month {n}");
            start_s = next_s;
        }
        // 2050-01-01.
        assert_eq!(start_s, 2_524_608_000);
    }

    #[test]
    fn a_time_zone_moves_where_candles_begin() {
        let of = |name: &str, zone: &str| KlineInterval::from_name(name).unwrap().in_zone(Zone::parse(zone).unwrap());
        assert_eq!((KlineInterval::DAY.name(), KlineInterval::DAY), ("1d", of("1d", "0")));
        // 2024-02-29 18:40 in UTC is 02:40 of the first of March in China.
        let moment_s = 1_709_232_000;
        assert_eq!((of("1d", "8").start(moment_s), of("1d", "0").start(moment_s)), (1_709_222_400, 1_709_164_800));
        assert_eq!((of("1M", "8").start(moment_s), of("1M", "8").next(1_709_222_400)), (1_709_222_400, 1_711_900_800));
        assert_eq!((of("1w", "8").start(moment_s), of("1h", "05:45").start(moment_s)), (1_708_876_800, 1_709_230_500));
        assert_eq!((of("1h", "8").base(), of("1d", "05:45").base()), (Interval::Hour, Interval::FiveMinutes));
        assert_eq!((of("15m", "00:01").base(), of("1s", "8").base()), (Interval::Minute, Interval::Second));
        for (name, ..) in INTERVALS {
            for zone in ["-12", "-00:01", "0", "05:45", "14"] {
                let interval = of(name, zone);
                let mut start_s = interval.start(0);
                assert_eq!(start_s, 0, "{name} {zone}");
                for _ in 0..40 {
                    let next_s = interval.next(start_s);
                    assert!(
                        next_s > start_s && interval.start(next_s - 1) == start_s && interval.start(next_s) == next_s,
                        "{name} {zone}"
                    );
                    start_s = next_s;
                }
            }
        }
    }

    #[test]
    fn candles_are_joined_and_gaps_are_flat() {
        let interval = KlineInterval::from_name("3m").unwrap();
        let candles = [candle(60, 10, 1), candle(120, 14, 2), candle(180, 7, 4), candle(720, 9, 8)];
        let listed = |from_s, to_s, limit| {
            let all = klines(interval, &candles, (from_s, to_s), limit);
            all.iter().map(|k| (k.start_s, k.candle.open.get(), k.candle.close.get(), k.candle.volume.get())).collect::<Vec<_>>()
        };
        let all = [(0, 10, 14, 3), (180, 7, 7, 4), (360, 7, 7, 0), (540, 7, 7, 0), (720, 9, 9, 8), (900, 9, 9, 0)];
        assert_eq!(listed(None, 1_000, 100), all);
        assert_eq!(listed(None, 1_000, 2), all[4..]);
        assert_eq!(listed(Some(1), 719, 2), all[1..3]);
        assert_eq!(listed(Some(5_000), 1_000, 2), []);
        assert!(klines(interval, &[], (None, 1_000), 5).is_empty());
    }
}
