//! Candles: open, high, low, close and volume of an instrument's trades, for five intervals.

use std::collections::VecDeque;
use std::sync::Arc;

use walras_types::{PriceTicks, Side, SizeLots, TimeNs};

use crate::limits::CANDLES_MAX;

/// How long a candle lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Interval {
    /// One second.
    Second = 0,
    /// Ten seconds.
    TenSeconds = 1,
    /// One minute.
    Minute = 2,
    /// Five minutes.
    FiveMinutes = 3,
    /// One hour.
    Hour = 4,
}

impl Interval {
    /// All, shortest first.
    pub const ALL: [Interval; 5] = [Self::Second, Self::TenSeconds, Self::Minute, Self::FiveMinutes, Self::Hour];

    /// Its length in seconds.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Second => 1,
            Self::TenSeconds => 10,
            Self::Minute => 60,
            Self::FiveMinutes => 300,
            Self::Hour => 3600,
        }
    }

    /// Its name in the APIs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Second => "1s",
            Self::TenSeconds => "10s",
            Self::Minute => "1m",
            Self::FiveMinutes => "5m",
            Self::Hour => "1h",
        }
    }

    /// The interval of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|interval| interval.name() == name)
    }
}

/// The trades of one interval. An interval without trades has no candle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candle {
    /// Its start, in seconds since the Unix epoch: a multiple of the interval.
    pub start_s: u64,
    /// Price of its first trade.
    pub open: PriceTicks,
    /// Highest price.
    pub high: PriceTicks,
    /// Lowest price.
    pub low: PriceTicks,
    /// Price of its last trade.
    pub close: PriceTicks,
    /// Lots traded; stays at the largest number rather than overflow.
    pub volume: SizeLots,
    /// How many trades.
    pub trade_count: u64,
    /// The sum of price in ticks times size in lots. (Of a candle that a version before kept: its volume at its last price.)
    pub tick_lots: u128,
    /// Lots of it that an incoming order bought. (Nothing of a candle that a version before kept.)
    pub bought: SizeLots,
    /// Their part of the sum.
    pub bought_tick_lots: u128,
}

/// The last [`CANDLES_MAX`] candles of each interval. A clone shares those of an interval until one changes.
#[derive(Clone, Debug, Default)]
pub struct Candles {
    rings: [Arc<VecDeque<Candle>>; 5],
}

impl Candles {
    /// Remembered candles of an interval, oldest first; the last one may still grow.
    pub fn iter(&self, interval: Interval) -> impl DoubleEndedIterator<Item = &Candle> + ExactSizeIterator {
        self.rings[interval as usize].iter()
    }

    /// The latest candle of an interval.
    #[must_use]
    pub fn last(&self, interval: Interval) -> Option<&Candle> {
        self.rings[interval as usize].back()
    }

    /// Remembered candles of an interval that start at or after `start_s`, oldest first: what a reader lacks whose last one started then.
    pub fn since(&self, interval: Interval, start_s: u64) -> impl Iterator<Item = &Candle> {
        let ring = &self.rings[interval as usize];
        ring.range(ring.partition_point(|candle| candle.start_s < start_s)..)
    }

    /// The last remembered candle of an interval that starts before `start_s`.
    #[must_use]
    pub fn before(&self, interval: Interval, start_s: u64) -> Option<&Candle> {
        let ring = &self.rings[interval as usize];
        ring.get(ring.partition_point(|candle| candle.start_s < start_s).checked_sub(1)?)
    }

    pub(crate) fn trade(&mut self, time: TimeNs, price: PriceTicks, size: SizeLots, taker_side: Option<Side>) {
        let time_s = time.0 / 1_000_000_000;
        for interval in Interval::ALL {
            let start_s = time_s - time_s % interval.seconds();
            let ring = Arc::make_mut(&mut self.rings[interval as usize]);
            match ring.back_mut() {
                // Log time never goes back; were it to, the trade would count in the latest candle rather than break the order.
                Some(candle) if candle.start_s >= start_s => candle.add(price, size, taker_side),
                Some(_) | None => push(ring, Candle::first(start_s, price, size, taker_side)),
            }
        }
    }

    pub(crate) fn restore(&mut self, interval: Interval, candle: Candle) {
        push(Arc::make_mut(&mut self.rings[interval as usize]), candle);
    }
}

fn push(ring: &mut VecDeque<Candle>, candle: Candle) {
    if ring.len() == CANDLES_MAX {
        ring.pop_front();
    }
    ring.push_back(candle);
}

impl Candle {
    fn first(start_s: u64, price: PriceTicks, size: SizeLots, taker_side: Option<Side>) -> Self {
        let nothing = SizeLots::ZERO;
        let mut candle = Self {
            start_s,
            open: price,
            high: price,
            low: price,
            close: price,
            volume: nothing,
            trade_count: 0,
            tick_lots: 0,
            bought: nothing,
            bought_tick_lots: 0,
        };
        candle.add(price, size, taker_side);
        candle
    }

    fn add(&mut self, price: PriceTicks, size: SizeLots, taker_side: Option<Side>) {
        self.high = self.high.max(price);
        self.low = self.low.min(price);
        self.close = price;
        self.volume = SizeLots::new(self.volume.get().saturating_add(size.get()));
        self.trade_count += 1;
        let tick_lots = u128::from(price.get().unsigned_abs()) * u128::from(size.get());
        self.tick_lots = self.tick_lots.saturating_add(tick_lots);
        if taker_side == Some(Side::Buy) {
            self.bought = SizeLots::new(self.bought.get().saturating_add(size.get()));
            self.bought_tick_lots = self.bought_tick_lots.saturating_add(tick_lots);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trade(candles: &mut Candles, time_s: u64, price: i64, size: u64) {
        let (time, price) = (TimeNs(time_s * 1_000_000_000 + 999_999_999), PriceTicks::new(price).unwrap());
        // Even sizes are bought.
        let side = if size.is_multiple_of(2) { Side::Buy } else { Side::Sell };
        candles.trade(time, price, SizeLots::new(size), Some(side));
    }

    #[test]
    fn trades_fall_into_aligned_intervals_and_gaps_stay_empty() {
        let mut candles = Candles::default();
        for (time_s, price, size) in [(59, 10, 1), (59, 14, 2), (60, 7, 4), (3600, 9, 8)] {
            trade(&mut candles, time_s, price, size);
        }
        let seconds: Vec<u64> = candles.iter(Interval::Second).map(|c| c.start_s).collect();
        assert_eq!(seconds, [59, 60, 3600]);
        let p = |n| PriceTicks::new(n).unwrap();
        assert_eq!(
            candles.iter(Interval::FiveMinutes).copied().collect::<Vec<_>>(),
            [
                Candle {
                    start_s: 0,
                    open: p(10),
                    high: p(14),
                    low: p(7),
                    close: p(7),
                    volume: SizeLots::new(7),
                    trade_count: 3,
                    tick_lots: 10 + 28 + 28,
                    bought: SizeLots::new(6),
                    bought_tick_lots: 28 + 28,
                },
                Candle {
                    start_s: 3600,
                    open: p(9),
                    high: p(9),
                    low: p(9),
                    close: p(9),
                    volume: SizeLots::new(8),
                    trade_count: 1,
                    tick_lots: 72,
                    bought: SizeLots::new(8),
                    bought_tick_lots: 72,
                },
            ]
        );
        assert_eq!(candles.since(Interval::Minute, 60).map(|c| c.start_s).collect::<Vec<_>>(), [60, 3600]);
        let before = |start_s| candles.before(Interval::Minute, start_s).map(|c| (c.start_s, c.close));
        assert_eq!([before(0), before(60), before(3600)], [None, Some((0, p(14))), Some((60, p(7)))]);
    }

    #[test]
    fn volume_saturates_and_the_ring_forgets() {
        let mut candles = Candles::default();
        trade(&mut candles, 0, 1, u64::MAX);
        trade(&mut candles, 0, 1, 1);
        assert_eq!(candles.last(Interval::Hour).map(|c| c.volume.get()), Some(u64::MAX));
        for n in 1..=CANDLES_MAX as u64 {
            trade(&mut candles, n, 1, 1);
        }
        assert_eq!(candles.iter(Interval::Second).len(), CANDLES_MAX);
        assert_eq!(candles.iter(Interval::Second).next().map(|c| c.start_s), Some(1));
    }

    #[test]
    fn names_round_trip() {
        for interval in Interval::ALL {
            assert_eq!(Interval::from_name(interval.name()), Some(interval));
        }
        assert_eq!(Interval::from_name("2s"), None);
    }
}
