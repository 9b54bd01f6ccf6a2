//! History as commands for any book: the file format of `walras_market_history::workload_file`, so that a book that is not ours can
//! be driven through the same hour, and both answers compared.
//!
//! A file of commands says what comes, never what came of it; so where a book's own choices differ from the record, the record is
//! not followed afterwards, and what it says of orders that are gone by then is left out and counted. History does not say whose an
//! order is: each order is an owner of its own here, so that nobody trades with himself.

use std::collections::HashMap;

use walras_market_history::Lasting;
use walras_market_history::workload_file::{WorkloadCommand, WorkloadOp, WorkloadResult, level_hash};
use walras_order_book::OpenOrder;
use walras_types::{ClientOrderId, PriceTicks, Side, SizeLots};

use crate::apply::{Market, OWNER, Tally};
use crate::drive::ending;
use crate::error::ReplayError;
use crate::load::Loaded;
use crate::plan::{Action, AuctionReference, Step};
use crate::reconstruct::Steps;

/// Numbers of aggressors whose number nobody says begin here: no exchange numbers its orders that high, and a file takes no higher
/// ones.
const NAMELESS: u64 = 1 << 62;

/// A history as commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookCommands {
    /// All of them can be carried out: each names an order that stands, or brings a new one.
    pub commands: Vec<WorkloadCommand>,
    /// What our book makes of them.
    pub result: WorkloadResult,
    /// Messages that name an order which by then is gone from the book, or that is there already.
    pub left_out: u64,
}

/// The commands of a history; `None` where it has auctions, which such a file cannot say.
pub fn book_commands(loaded: &Loaded) -> Result<Option<BookCommands>, ReplayError> {
    let mut writer = Writer {
        market: Market::new(AuctionReference::Middle),
        tally: Tally::default(),
        users: HashMap::new(),
        user_last: 0,
        prices: None,
        made: BookCommands { commands: Vec::new(), result: WorkloadResult::default(), left_out: 0 },
    };
    for step in Steps::new(loaded)? {
        let step = step?;
        if matches!(step.action, Action::CollectForOpen | Action::CollectForClose | Action::Uncross { .. }) {
            return Ok(None);
        }
        writer.take(&step);
    }
    Ok(Some(writer.finish()))
}

struct Writer {
    market: Market,
    tally: Tally,
    users: HashMap<u64, u32>,
    user_last: u32,
    /// Lowest and highest price at which an order could rest.
    prices: Option<(i64, i64)>,
    made: BookCommands,
}

impl Writer {
    fn take(&mut self, step: &Step) {
        match step.action {
            Action::Rest { order_ref, side, price, size, .. } => {
                self.enter(step, order_ref, side, price, size, Lasting::GoodTillCancel);
            }
            Action::Submit { order_ref, side, price, size, lasting } => self.enter(step, order_ref, side, price, size, lasting),
            Action::Sweep(ref aggressor) => {
                let order_ref = aggressor.order_ref.unwrap_or(NAMELESS | step.index);
                let lasting = if aggressor.rest.is_zero() { Lasting::ImmediateOrCancel } else { Lasting::GoodTillCancel };
                self.enter(step, order_ref, aggressor.side, aggressor.limit, aggressor.size, lasting);
            }
            Action::Reduce { order_ref, by } => self.shrink(step, order_ref, |order| order.open.saturating_sub(by)),
            Action::SetOpen { order_ref, open } => self.shrink(step, order_ref, |_| open),
            Action::Delete { order_ref, .. } => self.shrink(step, order_ref, |_| SizeLots::ZERO),
            // What is presumed gone is cancelled, if the book has it still.
            Action::Presume { order_ref, .. } => {
                if self.find(order_ref).is_some() {
                    self.shrink(step, order_ref, |_| SizeLots::ZERO);
                }
            }
            Action::Move { order_ref, price } => {
                if self.find(order_ref).is_some() {
                    self.could_rest(price);
                    self.emit(step, order_ref, WorkloadOp::Move { price_ticks: price.get() }, Action::Move { order_ref, price });
                } else {
                    self.made.left_out += 1;
                }
            }
            Action::Replace { old_ref, new_ref, price, size } => match self.find(old_ref) {
                Some(old) => {
                    self.shrink(step, old_ref, |_| SizeLots::ZERO);
                    self.enter(step, new_ref, old.side, price, size, Lasting::GoodTillCancel);
                }
                None => self.made.left_out += 1,
            },
            Action::Tape { .. } => {}
            Action::CollectForOpen | Action::CollectForClose | Action::Uncross { .. } => {
                unreachable!("a history with auctions is no file of commands")
            }
        }
    }

    fn find(&self, order_ref: u64) -> Option<OpenOrder> {
        self.market.book.find(OWNER, ClientOrderId(order_ref)).map(|handle| self.market.book.view(handle))
    }

    fn could_rest(&mut self, price: PriceTicks) {
        let price = price.get();
        let (low, high) = self.prices.unwrap_or((price, price));
        self.prices = Some((low.min(price), high.max(price)));
    }

    fn enter(&mut self, step: &Step, order_ref: u64, side: Side, price: PriceTicks, size: SizeLots, lasting: Lasting) {
        let fits = (1..=i64::MAX as u64).contains(&order_ref) && i64::try_from(size.get()).is_ok();
        if !fits || self.find(order_ref).is_some() {
            self.made.left_out += 1;
            return;
        }
        self.user_last += 1;
        self.users.insert(order_ref, self.user_last);
        let (price_ticks, size_lots) = (price.get(), size.get() as i64);
        let op = match lasting {
            Lasting::GoodTillCancel => {
                self.could_rest(price);
                WorkloadOp::Limit { side, price_ticks, size_lots }
            }
            Lasting::ImmediateOrCancel => WorkloadOp::Immediate { side, price_ticks, size_lots },
        };
        self.emit(step, order_ref, op, Action::Submit { order_ref, side, price, size, lasting });
    }

    /// Leaves an order what `left` says, if it has more.
    fn shrink(&mut self, step: &Step, order_ref: u64, left: impl Fn(&OpenOrder) -> SizeLots) {
        let Some(order) = self.find(order_ref) else {
            self.made.left_out += 1;
            return;
        };
        let open = left(&order);
        if open.is_zero() {
            self.emit(step, order_ref, WorkloadOp::Cancel, Action::Delete { order_ref, open: None });
        } else if open < order.open {
            let by = order.open - open;
            let op = WorkloadOp::Reduce { size_lots: by.get() as i64 };
            self.emit(step, order_ref, op, Action::Reduce { order_ref, by });
        }
    }

    /// Writes a command and carries it out, to know what stands when the next one comes.
    fn emit(&mut self, step: &Step, order_ref: u64, op: WorkloadOp, action: Action) {
        self.made.result.mix.count(&op);
        self.made.commands.push(WorkloadCommand { user: self.users[&order_ref], order_id: order_ref, op });
        let before = self.tally.trades;
        self.market.apply(&Step { action, ..step.clone() }, &mut self.tally);
        self.made.result.commands_with_trade += u64::from(self.tally.trades > before);
    }

    fn finish(mut self) -> BookCommands {
        let end = ending(&self.market.book);
        let [asks, bids] = &end.levels;
        let result = &mut self.made.result;
        (result.trades, result.volume_lots) = (self.tally.trades, self.tally.volume_lots);
        (result.ask_levels, result.bid_levels) = (asks.len() as u64, bids.len() as u64);
        [result.ask_orders, result.bid_orders] = end.orders;
        result.level_hash = level_hash(asks.iter().copied(), bids.iter().copied());
        (result.best_ask, result.best_bid) = (asks.first().copied(), bids.first().copied());
        (result.price_min_ticks, result.price_max_ticks) = self.prices.unwrap_or_default();
        self.made
    }
}

#[cfg(test)]
mod tests {
    use walras_market_history::Format;
    use walras_market_history::workload_file::write_commands;

    use super::*;
    use crate::options::Options;
    use crate::run::run_loaded;

    fn loaded(bytes: &[u8], format: Format) -> Loaded {
        Loaded::read(bytes, format, &Options::default(), &mut |_| {}).expect("a sound file")
    }

    /// Bids 11 and 12, offer 21; 12 shrinks; a sell takes all of 11 and part of 12; a buy of 25 leaves 5 of 30; 21 leaves.
    const HOUR: &str = "\
1.000000001,1,11,100,100000,1
1.000000002,1,12,50,100000,1
1.000000003,1,21,30,100200,-1
1.500000000,2,12,10,100000,1
2.000000000,4,11,100,100000,1
2.000000000,4,12,20,100000,1
3.000000000,4,21,25,100200,-1
4.000000000,3,21,5,100200,-1
";

    #[test]
    fn an_hour_as_commands_gives_the_same_book() {
        let history = loaded(HOUR.as_bytes(), Format::Lobster);
        let made = book_commands(&history).unwrap().expect("no auctions");
        let mix = made.result.mix;
        assert_eq!((mix.limit, mix.immediate, mix.cancel, mix.moves, mix.reduce), (3, 2, 1, 0, 1));
        assert_eq!((made.left_out, made.result.trades, made.result.volume_lots, made.result.commands_with_trade), (0, 3, 145, 2));
        assert_eq!((made.result.best_bid, made.result.best_ask), (Some((1_000, 20)), None));
        assert_eq!((made.result.price_min_ticks, made.result.price_max_ticks), (1_000, 1_002));
        // Read back as the file it is, it comes to the same.
        let mut file = Vec::new();
        write_commands(made.commands.iter().copied(), &mut file).expect("memory takes all");
        let untimed = Options { timing_rounds: 0, ..Options::default() };
        let again = run_loaded(&loaded(&file, Format::Workload), &untimed, &mut |_| {}).unwrap();
        let recorded = run_loaded(&history, &untimed, &mut |_| {}).unwrap();
        let workload = again.workload.expect("a file of commands");
        assert_eq!((workload.trades, workload.volume_lots, workload.level_hash), (3, 145, made.result.level_hash));
        assert_eq!(recorded.book.level_hash, made.result.level_hash, "and to what the record says");
        // No two orders have one owner.
        let owners: std::collections::HashSet<u32> = made.commands.iter().map(|command| command.user).collect();
        assert_eq!(owners.len() as u64, mix.limit + mix.immediate);
    }

    #[test]
    fn what_the_book_did_otherwise_is_not_followed() {
        // The record takes 12, which stands behind 11; the book takes 11. So 11 is gone when the record deletes it.
        let passed_over = "\
1.000000001,1,11,50,100000,1
1.000000002,1,12,50,100000,1
2.000000000,4,12,50,100000,1
3.000000000,3,11,50,100000,1
";
        let made = book_commands(&loaded(passed_over.as_bytes(), Format::Lobster)).unwrap().expect("no auctions");
        assert_eq!((made.commands.len(), made.left_out), (3, 1));
        assert_eq!(made.result.best_bid, Some((1_000, 50)));
    }
}
