//! The public trades of one instrument, newest last.

use std::collections::VecDeque;
use std::sync::Arc;

use walras_types::{PriceTicks, Side, SizeLots, TimeNs, TradeId};

use crate::limits::TRADES_MAX;

/// A trade as the public sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicTrade {
    /// Which trade, increasing per instrument.
    pub trade_id: TradeId,
    /// When: its log entry's time.
    pub time: TimeNs,
    /// The price.
    pub price: PriceTicks,
    /// Size in lots.
    pub size: SizeLots,
    /// The side that came in; `None` in an uncross, where nobody did.
    pub taker_side: Option<Side>,
}

/// The last [`TRADES_MAX`] trades. A clone shares them until the next one.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    trades: Arc<VecDeque<PublicTrade>>,
}

impl Tape {
    /// How many are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.trades.len()
    }

    /// Whether there was no trade yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.trades.is_empty()
    }

    /// The latest trade.
    #[must_use]
    pub fn last(&self) -> Option<&PublicTrade> {
        self.trades.back()
    }

    /// All remembered trades, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &PublicTrade> + ExactSizeIterator {
        self.trades.iter()
    }

    /// Remembered trades with an id below `before` (all for `None`), newest first.
    pub fn newest_first(&self, before: Option<TradeId>) -> impl Iterator<Item = &PublicTrade> {
        let end = before.map_or(self.trades.len(), |id| self.trades.partition_point(|trade| trade.trade_id < id));
        self.trades.range(..end).rev()
    }

    /// Remembered trades with an id above `after`, oldest first. A reader who asks with the last id that it sent misses none as
    /// long as the first id it gets is the next one: a larger one says that more than [`TRADES_MAX`] trades came in between.
    pub fn since(&self, after: TradeId) -> impl Iterator<Item = &PublicTrade> {
        let start = self.trades.partition_point(|trade| trade.trade_id <= after);
        self.trades.range(start..)
    }

    pub(crate) fn push(&mut self, trade: PublicTrade) {
        let trades = Arc::make_mut(&mut self.trades);
        if trades.len() == TRADES_MAX {
            trades.pop_front();
        }
        trades.push_back(trade);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tape_of(count: u64) -> Tape {
        let mut tape = Tape::default();
        for id in 1..=count {
            tape.push(PublicTrade {
                trade_id: TradeId(id),
                time: TimeNs(id),
                price: PriceTicks::MIN,
                size: SizeLots::new(1),
                taker_side: Some(Side::Buy),
            });
        }
        tape
    }

    #[test]
    fn the_tape_forgets_the_oldest() {
        let tape = tape_of(TRADES_MAX as u64 + 5);
        assert_eq!(tape.len(), TRADES_MAX);
        assert_eq!(tape.iter().next().map(|t| t.trade_id), Some(TradeId(6)));
        assert!(tape.trades.capacity() <= 2 * TRADES_MAX);
    }

    #[test]
    fn a_clone_stays_what_it_was() {
        let mut tape = tape_of(3);
        let (clone, next) = (tape.clone(), PublicTrade { trade_id: TradeId(4), ..*tape.last().unwrap() });
        tape.push(next);
        assert_eq!((clone.len(), clone.last().map(|trade| trade.trade_id)), (3, Some(TradeId(3))));
        assert_eq!(tape.iter().map(|trade| trade.trade_id.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
    }

    #[test]
    fn pages_go_back_and_readers_go_on() {
        let tape = tape_of(10);
        let ids = |trades: Vec<&PublicTrade>| trades.iter().map(|t| t.trade_id.0).collect::<Vec<_>>();
        assert_eq!(ids(tape.newest_first(None).take(3).collect()), [10, 9, 8]);
        assert_eq!(ids(tape.newest_first(Some(TradeId(8))).take(3).collect()), [7, 6, 5]);
        assert_eq!(ids(tape.newest_first(Some(TradeId(1))).collect()), [0u64; 0]);
        assert_eq!(ids(tape.newest_first(Some(TradeId(99))).take(1).collect()), [10]);
        assert_eq!(ids(tape.since(TradeId(8)).collect()), [9, 10]);
        assert_eq!(ids(tape.since(TradeId(10)).collect()), [0u64; 0]);
    }
}
