//! The few numbers that say where an instrument stands.

use walras_types::{PriceTicks, SizeLots, TimeNs, TradingPhase};
use walras_wire::{PhaseCause, Uncrossed};

pub(crate) const DAY_NS: u64 = 86_400_000_000_000;

/// The trades since 00:00 UTC. A venue that never closes has no other day, and one that does trades within one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayStats {
    /// Days since the Unix epoch.
    pub day: u64,
    /// Price of the day's first trade.
    pub open: PriceTicks,
    /// Highest price.
    pub high: PriceTicks,
    /// Lowest price.
    pub low: PriceTicks,
    /// Lots traded; stays at the largest number rather than overflow.
    pub volume: SizeLots,
    /// How many trades.
    pub trade_count: u64,
}

/// Phase, last price and the day's figures of an instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticker {
    /// The trading phase.
    pub phase: TradingPhase,
    /// Why it is in this phase. `None` in a halt that a snapshot of an older version says: those did not hold the cause.
    pub phase_cause: Option<PhaseCause>,
    /// Price of the latest trade, of whatever day.
    pub last: Option<PriceTicks>,
    /// Figures of the day of the latest trade: ask [`Ticker::day`] for today's.
    pub(crate) latest_day: Option<DayStats>,
    /// The latest uncross.
    pub last_uncross: Option<Uncrossed>,
}

impl Ticker {
    pub(crate) fn new() -> Self {
        // As in the binary feed: the operator defined it.
        let phase_cause = Some(PhaseCause::Operator);
        Self { phase: TradingPhase::Closed, phase_cause, last: None, latest_day: None, last_uncross: None }
    }

    /// Figures of the UTC day that `now` is in; `None` before its first trade.
    #[must_use]
    pub fn day(&self, now: TimeNs) -> Option<DayStats> {
        self.latest_day.filter(|stats| stats.day == now.0 / DAY_NS)
    }

    /// How far the last price is from the open of `now`'s day, in ppm of the open, rounded toward zero; zero before the day's first trade.
    #[must_use]
    pub fn change_ppm(&self, now: TimeNs) -> i64 {
        match (self.day(now), self.last) {
            // Prices are below 2^40 and a million is below 2^20, so the product fits.
            (Some(stats), Some(last)) => (last.get() - stats.open.get()) * 1_000_000 / stats.open.get(),
            (None, _) | (_, None) => 0,
        }
    }

    pub(crate) fn trade(&mut self, time: TimeNs, price: PriceTicks, size: SizeLots) {
        self.last = Some(price);
        let day = time.0 / DAY_NS;
        match &mut self.latest_day {
            Some(stats) if stats.day >= day => {
                stats.high = stats.high.max(price);
                stats.low = stats.low.min(price);
                stats.volume = SizeLots::new(stats.volume.get().saturating_add(size.get()));
                stats.trade_count += 1;
            }
            Some(_) | None => {
                self.latest_day = Some(DayStats { day, open: price, high: price, low: price, volume: size, trade_count: 1 });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_day_starts_afresh_and_keeps_the_last_price() {
        let mut ticker = Ticker::new();
        let p = |n| PriceTicks::new(n).unwrap();
        assert_eq!((ticker.day(TimeNs(0)), ticker.change_ppm(TimeNs(0))), (None, 0));
        for (time, price, size) in [(0, 300, 1), (5, 400, 2), (DAY_NS - 1, 299, 4)] {
            ticker.trade(TimeNs(time), p(price), SizeLots::new(size));
        }
        let stats = ticker.day(TimeNs(DAY_NS - 1)).unwrap();
        assert_eq!((stats.open, stats.high, stats.low, stats.volume.get()), (p(300), p(400), p(299), 7));
        assert_eq!(ticker.change_ppm(TimeNs(7)), -3333);
        assert_eq!((ticker.day(TimeNs(DAY_NS)), ticker.change_ppm(TimeNs(DAY_NS)), ticker.last), (None, 0, Some(p(299))));
        ticker.trade(TimeNs(DAY_NS), p(500), SizeLots::new(1));
        assert_eq!(ticker.day(TimeNs(DAY_NS)).map(|s| (s.day, s.open)), Some((1, p(500))));
    }

    #[test]
    fn the_change_does_not_overflow_at_the_extremes() {
        let mut ticker = Ticker::new();
        ticker.trade(TimeNs(0), PriceTicks::MIN, SizeLots::new(1));
        ticker.trade(TimeNs(0), PriceTicks::MAX, SizeLots::new(u64::MAX));
        assert_eq!(ticker.change_ppm(TimeNs(0)), (PriceTicks::MAX.get() - 1) * 1_000_000);
    }
}
