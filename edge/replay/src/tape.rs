//! Feeds without executions: anonymous trades, and statements of what orders have left.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use walras_types::{PriceTicks, SizeLots};

use crate::report::{TapeReport, TradeCauses};

type Trade = (PriceTicks, SizeLots);

/// The book's trades and the anonymous ones reported, paired by price and size, whichever comes first.
#[derive(Default)]
pub(crate) struct Tape {
    unreported: HashMap<Trade, u64>,
    unmade: HashMap<Trade, u64>,
    /// What statements took off orders that the book had not traded so far, at the orders' prices.
    corrections: HashMap<Trade, u64>,
    report: TapeReport,
}

fn take(from: &mut HashMap<Trade, u64>, trade: Trade) -> bool {
    let Entry::Occupied(mut count) = from.entry(trade) else { return false };
    *count.get_mut() -= 1;
    // What is paired is forgotten, so that a long day does not fill the memory.
    if *count.get() == 0 {
        count.remove();
    }
    true
}

impl Tape {
    /// The book made a trade.
    pub(crate) fn made(&mut self, price: PriceTicks, size: SizeLots) {
        if take(&mut self.unmade, (price, size)) {
            self.report.trades_matched += 1;
        } else {
            *self.unreported.entry((price, size)).or_default() += 1;
        }
    }

    /// The feed reports one; a price off tick is `None`.
    pub(crate) fn reported(&mut self, price: Option<PriceTicks>, size: SizeLots) {
        self.report.trades += 1;
        let Some(price) = price else {
            self.report.trade_causes.off_tick += 1;
            return;
        };
        if take(&mut self.unreported, (price, size)) {
            self.report.trades_matched += 1;
        } else {
            *self.unmade.entry((price, size)).or_default() += 1;
        }
    }

    /// A statement that says what the book has.
    pub(crate) fn found(&mut self) {
        self.report.statements += 1;
        self.report.statements_matched += 1;
    }

    /// A statement of an order that the book has traded further.
    pub(crate) fn outrun(&mut self) {
        self.report.statements += 1;
        self.report.statements_outrun += 1;
    }

    /// A statement that the book was set to; what it took off an order, and at which price.
    pub(crate) fn corrected(&mut self, taken: Option<Trade>) {
        self.report.statements += 1;
        self.report.statements_corrected += 1;
        if let Some(taken) = taken {
            *self.corrections.entry(taken).or_default() += 1;
        }
    }

    /// Counts what is left over, and why it was.
    pub(crate) fn finish(mut self) -> TapeReport {
        let mut unreported_at: HashMap<PriceTicks, u64> = HashMap::new();
        for (&(price, _), count) in &self.unreported {
            self.report.trades_unreported += count;
            *unreported_at.entry(price).or_default() += count;
        }
        let causes: &mut TradeCauses = &mut self.report.trade_causes;
        let mut unexplained_at: HashMap<PriceTicks, u64> = HashMap::new();
        for (trade, &count) in &self.unmade {
            let by_statement = self.corrections.get(trade).copied().unwrap_or(0).min(count);
            causes.taker_not_shown += by_statement;
            *unexplained_at.entry(trade.0).or_default() += count - by_statement;
        }
        self.report.statements_corrected_by_trade = causes.taker_not_shown;
        for (price, count) in unexplained_at {
            let other_size = unreported_at.get(&price).copied().unwrap_or(0).min(count);
            causes.other_size += other_size;
            causes.no_order_shown += count - other_size;
        }
        self.report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trade(price: i64, size: u64) -> Trade {
        (PriceTicks::new(price).unwrap(), SizeLots::new(size))
    }

    #[test]
    fn every_trade_that_is_not_matched_has_one_cause() {
        let mut tape = Tape::default();
        for (price, size) in [trade(10, 5), trade(11, 4)] {
            tape.made(price, size);
        }
        // Matched; of another size; taken from an order by nobody, twice and once more than statements say; nowhere; off tick.
        for (price, size) in [trade(10, 5), trade(11, 3), trade(12, 7), trade(12, 7), trade(12, 7), trade(13, 1)] {
            tape.reported(Some(price), size);
        }
        tape.reported(None, SizeLots::new(1));
        for _ in 0..2 {
            tape.corrected(Some(trade(12, 7)));
        }
        tape.corrected(Some(trade(14, 2)));
        tape.corrected(None);
        tape.found();
        tape.outrun();
        let report = tape.finish();
        let causes = report.trade_causes;
        assert_eq!((report.trades, report.trades_matched, report.trades_unreported), (7, 1, 1));
        assert_eq!((causes.taker_not_shown, causes.other_size, causes.no_order_shown, causes.off_tick), (2, 1, 2, 1));
        assert_eq!((report.statements, report.statements_matched, report.statements_outrun), (6, 1, 1));
        assert_eq!((report.statements_corrected, report.statements_corrected_by_trade), (4, 2));
    }
}
