//! The trades of an instrument as far as they were seen, and the figures of the day that follow from them.

use std::collections::VecDeque;

use walras_market_data::PublicTrade;
use walras_types::{PriceTicks, SizeLots, TradeId};

use crate::limits::TRADES_KEPT;

const DAY_NS: u64 = 86_400_000_000_000;

/// Figures of a day, of all its trades.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Figures {
    pub(super) open: Option<PriceTicks>,
    pub(super) high: Option<PriceTicks>,
    pub(super) low: Option<PriceTicks>,
    /// Price of the last trade before the day, if none was missed since.
    pub(super) previous_close: Option<PriceTicks>,
    pub(super) volume: SizeLots,
}

/// Trades are numbered from 1 without gaps, so a number says whether some before it were missed.
#[derive(Debug, Default)]
pub(super) struct Tape {
    /// Oldest first.
    kept: VecDeque<PublicTrade>,
    /// Taken since they were given out, oldest first.
    fresh: Vec<PublicTrade>,
    last: Option<TradeId>,
    /// Days since the Unix epoch, of the last trade.
    day: u64,
    figures: Figures,
    /// The first day of which no trade was missed.
    known_from: u64,
    /// The copy began (again) on this day, and no trade since has said whether some were missed before it.
    unsure: Option<u64>,
}

impl Tape {
    /// The copy begins, again perhaps, with the state at this time.
    pub(super) fn begin(&mut self, time_ns: u64) {
        self.unsure = Some(time_ns / DAY_NS);
    }

    pub(super) fn take(&mut self, trade: PublicTrade) {
        let day = trade.time.0 / DAY_NS;
        let has_all = trade.trade_id.0.checked_sub(1) == Some(self.last.map_or(0, |last| last.0));
        let began = self.unsure.take();
        if !has_all {
            self.known_from = began.unwrap_or(day) + 1;
        }
        if !has_all || day > self.day {
            let previous_close = self.kept.back().filter(|_| has_all).map(|last| last.price);
            self.figures = Figures { previous_close, ..Figures::default() };
        }
        if day >= self.day {
            self.day = day;
            let Figures { open, high, low, volume, .. } = &mut self.figures;
            open.get_or_insert(trade.price);
            *high = (*high).max(Some(trade.price));
            *low = Some(low.map_or(trade.price, |low| low.min(trade.price)));
            *volume = SizeLots::new(volume.get().saturating_add(trade.size.get()));
        }
        self.last = Some(trade.trade_id);
        self.kept.push_back(trade);
        if self.kept.len() > TRADES_KEPT {
            self.kept.pop_front();
        }
        self.fresh.push(trade);
    }

    /// Trades that were taken and not given out, oldest first.
    pub(super) fn take_fresh(&mut self) -> Vec<PublicTrade> {
        std::mem::take(&mut self.fresh)
    }

    /// The last trades, newest first.
    pub(super) fn newest_first(&self) -> Vec<PublicTrade> {
        self.kept.iter().rev().copied().collect()
    }

    /// The price of the last trade, if no later one was missed.
    pub(super) fn price(&self) -> Option<PriceTicks> {
        self.kept.back().filter(|_| self.unsure.is_none()).map(|trade| trade.price)
    }

    /// Figures of the day of this time; `None` where trades of it may be missing.
    pub(super) fn figures(&self, time_ns: u64) -> Option<Figures> {
        let day = time_ns / DAY_NS;
        let is_known = day >= self.known_from && self.unsure.is_none_or(|began| day > began);
        let without_trades = Figures { previous_close: self.price(), ..Figures::default() };
        is_known.then_some(if day == self.day { self.figures } else { without_trades })
    }
}

#[cfg(test)]
mod tests {
    use walras_types::{Side, TimeNs};

    use super::*;

    fn trade(id: u64, time_ns: u64, price: i64) -> PublicTrade {
        PublicTrade {
            trade_id: TradeId(id),
            time: TimeNs(time_ns),
            price: PriceTicks::new(price).unwrap(),
            size: SizeLots::new(id),
            taker_side: Some(Side::Buy),
        }
    }

    fn shown(tape: &Tape, time_ns: u64) -> Option<(i64, i64, i64, u64)> {
        let price = |price: Option<PriceTicks>| price.map_or(0, PriceTicks::get);
        tape.figures(time_ns).map(|f| (price(f.open), price(f.high), price(f.low), f.volume.get()))
    }

    fn close(tape: &Tape, time_ns: u64) -> Option<i64> {
        tape.figures(time_ns).and_then(|figures| figures.previous_close).map(PriceTicks::get)
    }

    #[test]
    fn the_price_of_the_day_before_is_known_where_no_trade_was_missed_since() {
        let mut tape = Tape::default();
        tape.begin(5);
        tape.take(trade(1, 7, 50));
        tape.take(trade(2, 8, 40));
        assert_eq!((close(&tape, 9), close(&tape, DAY_NS)), (None, Some(40)), "there was none before the first trade");
        tape.take(trade(3, DAY_NS + 1, 45));
        tape.take(trade(4, DAY_NS + 2, 46));
        assert_eq!((close(&tape, DAY_NS + 3), close(&tape, 3 * DAY_NS)), (Some(40), Some(46)));
        // A gap: there may have been a later trade on that day. The number of the next one says that there was none.
        tape.begin(DAY_NS + 4);
        assert_eq!((close(&tape, 2 * DAY_NS), shown(&tape, 2 * DAY_NS)), (None, Some((0, 0, 0, 0))));
        let mut missed = Tape::default();
        missed.take(trade(4, DAY_NS + 2, 46));
        missed.begin(DAY_NS + 4);
        tape.take(trade(5, 2 * DAY_NS, 47));
        missed.take(trade(6, 2 * DAY_NS, 48));
        assert_eq!((close(&tape, 2 * DAY_NS), close(&missed, 2 * DAY_NS)), (Some(46), None));
        assert_eq!(shown(&missed, 2 * DAY_NS), Some((48, 48, 48, 6)), "the day itself is known");
    }

    #[test]
    fn a_tape_that_has_the_first_trade_has_all() {
        let mut tape = Tape::default();
        tape.begin(5);
        assert_eq!((shown(&tape, 6), tape.price()), (None, None), "there may have been trades");
        tape.take(trade(1, 7, 50));
        tape.take(trade(2, 8, 40));
        assert_eq!(shown(&tape, 9), Some((50, 50, 40, 3)));
        assert_eq!(shown(&tape, DAY_NS), Some((0, 0, 0, 0)), "another day");
        tape.take(trade(3, DAY_NS, 45));
        assert_eq!(shown(&tape, DAY_NS), Some((45, 45, 45, 3)));
        assert_eq!(tape.take_fresh().len(), 3);
        assert!(tape.take_fresh().is_empty() && tape.newest_first()[0].trade_id == TradeId(3));
    }

    #[test]
    fn one_that_began_late_has_the_figures_of_the_next_day() {
        let mut tape = Tape::default();
        tape.begin(5);
        tape.take(trade(57, 7, 50));
        assert_eq!((shown(&tape, 9), tape.price().map(PriceTicks::get)), (None, Some(50)));
        assert_eq!(shown(&tape, DAY_NS), Some((0, 0, 0, 0)));
        tape.take(trade(58, DAY_NS + 1, 60));
        assert_eq!(shown(&tape, DAY_NS + 1), Some((60, 60, 60, 58)));
    }

    #[test]
    fn a_gap_hides_figures_until_a_number_says_that_nothing_was_missed() {
        let mut tape = Tape::default();
        tape.take(trade(1, 7, 50));
        tape.begin(100);
        assert_eq!((shown(&tape, 101), tape.price()), (None, None));
        tape.take(trade(2, 102, 55));
        assert_eq!(shown(&tape, 103), Some((50, 55, 50, 3)), "none was missed");
        tape.begin(200);
        tape.take(trade(9, 201, 70));
        assert_eq!(shown(&tape, 202), None, "some were");
        tape.take(trade(10, 203, 71));
        assert_eq!((shown(&tape, 204), tape.price().map(PriceTicks::get)), (None, Some(71)));
        // A gap without a trade since, over midnight: that day has been seen from its beginning.
        tape.begin(300);
        assert_eq!(shown(&tape, DAY_NS + 5), Some((0, 0, 0, 0)));
    }
}
