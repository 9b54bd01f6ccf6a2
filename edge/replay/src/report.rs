//! The report of a replay.

use std::path::PathBuf;

use crate::oracle::OrderbookReport;
use crate::plan::{LeftOut, MessageCounts};
use crate::quality::QualityReport;
use crate::snapshots::SnapshotReport;

/// The report of a replay. All counts are exact; nothing is estimated.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Report {
    /// The file.
    pub file: Option<PathBuf>,
    /// Its format.
    pub format: &'static str,
    /// Which of its instruments.
    pub instrument: u32,
    /// Its name, where the file or its name says it.
    pub symbol: Option<String>,
    /// Levels a side that a LOBSTER file's name says it shows.
    pub levels: Option<u32>,
    /// Messages in the file, of all instruments and kinds.
    pub file_messages: u64,
    /// Messages that stood in the file behind one that happened later; they were put in order where the exchange numbers them.
    pub out_of_order: u64,
    /// Messages of the instrument by kind.
    pub messages: MessageCounts,
    /// Messages that the book never saw, and why.
    pub left_out: LeftOut,
    /// Price units of the file in a tick, and of one unit of currency.
    pub units_per_tick: i64,
    /// Price units of the file in one unit of currency.
    pub price_scale: u64,
    /// The book's activity.
    pub book: BookReport,
    /// Recorded executions against the book's own choices; absent where the file names no order in its executions.
    pub executions: Option<ExecutionReport>,
    /// Auctions.
    pub auctions: Vec<AuctionReport>,
    /// Snapshots; absent where the file has none.
    pub snapshots: Option<SnapshotReport>,
    /// LOBSTER's orderbook file; absent where there is none.
    pub orderbook: Option<OrderbookReport>,
    /// Anonymous trades and stated open sizes; only of feeds without executions.
    pub tape: Option<TapeReport>,
    /// The answer to a file of commands.
    pub workload: Option<WorkloadReport>,
    /// Spread and depth while orders match as they come.
    pub quality: Option<QualityReport>,
    /// The book alone, timed.
    pub timing: Option<TimingReport>,
    /// Disagreements, the first of them; [`crate::Options::mismatches_named_max`].
    pub mismatches: Vec<Mismatch>,
}

/// The book's activity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct BookReport {
    /// Steps done: messages, an aggressor's as one.
    pub steps: u64,
    /// Orders entered that rest, or rest in part.
    pub orders_rested: u64,
    /// Orders made up, because the file names them without having added them.
    pub orders_made_up: u64,
    /// Orders presumed deleted beyond the levels that the file shows; [`crate::record`] says by what proof.
    pub orders_presumed_deleted: u64,
    /// Orders set aside until the file names them next, because two of its lines contradict each other.
    pub orders_set_aside: u64,
    /// Trades that the book made.
    pub trades: u64,
    /// Lots that the book traded.
    pub volume_lots: u64,
    /// Most orders in the book at a time.
    pub resting_orders_max: u64,
    /// Orders in the book at the end.
    pub resting_orders_end: u64,
    /// Hash of the levels at the end: [`walras_market_history::workload_file::level_hash`].
    pub level_hash: u64,
    /// Adds that by the record rested and in the book traded.
    pub adds_that_traded: u64,
    /// Reductions and deletions of orders that the book had traded away or never had.
    pub orders_missing: u64,
    /// Deletions that say another open size than the book's.
    pub open_sizes_differing: u64,
    /// Orders that the book refused.
    pub refused: u64,
    /// Number of times that a price level was set to the record.
    pub corrections: u64,
}

/// Recorded executions of visible orders against the book's choices.
///
/// Each aggressor is reconstructed and submitted as one order, and the book matches it. If the fills differ from the recorded ones
/// in order or size, each execution is compared separately, with the record applied before the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ExecutionReport {
    /// Recorded.
    pub recorded: u64,
    /// Of orders that the file never added and that cannot be made up.
    pub of_unknown_orders: u64,
    /// Of orders made up.
    pub of_made_up_orders: u64,
    /// Of orders that the file added: what the next two are of.
    pub of_known_orders: u64,
    /// Of known orders: at the best price of their side.
    pub at_best: u64,
    /// Of known orders: of just the order, and just the size, that the book picks.
    pub at_head: u64,
    /// Of orders made up: at the best price.
    pub made_up_at_best: u64,
    /// Of orders made up: as the book picks.
    pub made_up_at_head: u64,
    /// In aggressors whose fills all match.
    pub in_matched_aggressors: u64,
    /// Incoming orders reconstructed.
    pub aggressors: u64,
    /// Those that made just the recorded fills, in order, and left just the recorded rest.
    pub aggressors_matched: u64,
    /// Those with more than one fill.
    pub sweeps: u64,
    /// Those with more than one fill that matched.
    pub sweeps_matched: u64,
    /// Those with something that rested.
    pub rests: u64,
    /// Those that rested in the book with the same size.
    pub rests_matched: u64,
    /// Why executions were not as the book picks.
    pub causes: Causes,
}

impl ExecutionReport {
    /// Share of executions of known orders at the best price.
    #[must_use]
    pub fn at_best_percent(&self) -> f64 {
        percent(self.at_best, self.of_known_orders)
    }

    /// Share of executions of known orders at the head of the queue.
    #[must_use]
    pub fn at_head_percent(&self) -> f64 {
        percent(self.at_head, self.of_known_orders)
    }
}

pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Why executions were not as the book picks, as far as the record shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Causes {
    /// All orders ahead of it have higher numbers: it entered before them and was shown after them, as NASDAQ shows what waited for
    /// the opening. The exchange keeps the time of entry; the file does not have it.
    pub entered_before_shown_after: u64,
    /// An order ahead of it was passed over, and the record does not say why: an exchange's self-match prevention, a minimum
    /// quantity, a change of attributes that cost priority.
    pub passed_over: u64,
    /// At another price than the best of its side.
    pub not_at_best: u64,
    /// The book did not have the order, or not as much of it.
    pub order_gone: u64,
}

/// Why an execution was not as the book picks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// [`Causes::entered_before_shown_after`].
    EnteredBeforeShownAfter,
    /// [`Causes::passed_over`].
    PassedOver,
    /// [`Causes::not_at_best`].
    NotAtBest,
    /// [`Causes::order_gone`].
    OrderGone,
    /// An add that by the record rested, and in the book traded.
    AddTraded,
    /// Two lines of the record contradict each other: an order rests where another, which the file names once more, would have met
    /// it; or an execution passes such an order over. The order is set aside.
    Contradiction,
    /// An auction that uncrossed otherwise.
    Auction,
}

/// A disagreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Mismatch {
    /// Number of the message (an aggressor's first) in the file.
    pub index: u64,
    /// Its time.
    pub time_ns: u64,
    /// The order that traded by the record.
    pub order_ref: u64,
    /// The order that the book picked instead, or that stood ahead.
    pub instead: Option<u64>,
    /// The cause.
    pub cause: Cause,
}

/// An auction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct AuctionReport {
    /// Time in nanoseconds.
    pub time_ns: u64,
    /// Recorded price in ticks.
    pub recorded_price_ticks: i64,
    /// Recorded volume in lots.
    pub recorded_lots: u64,
    /// The book's price; `None` if no bid reached an offer.
    pub price_ticks: Option<i64>,
    /// The book's price if ties went to the price nearest to yesterday's close, where the file says that.
    pub price_near_close_ticks: Option<i64>,
    /// The book's volume.
    pub lots: u64,
    /// Left over at the price: bid positive, offered negative.
    pub imbalance_lots: i64,
    /// Recorded pairs.
    pub pairs: u64,
    /// Pairs that are the same, order by order, at the same place.
    pub pairs_matched: u64,
    /// Orders that traded by the record.
    pub orders: u64,
    /// Those that traded just as much in the book.
    pub orders_matched: u64,
}

impl AuctionReport {
    /// Whether price and volume are the recorded ones.
    #[must_use]
    pub fn matches(&self) -> bool {
        self.price_ticks == Some(self.recorded_price_ticks) && self.lots == self.recorded_lots
    }
}

/// Feeds that report created, changed and deleted orders and anonymous trades.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct TapeReport {
    /// Trades reported.
    pub trades: u64,
    /// Those for which the book made one of exactly that price and size.
    pub trades_matched: u64,
    /// Why the book did not make the others, as far as the feed shows.
    pub trade_causes: TradeCauses,
    /// Trades of the book that nobody reported.
    pub trades_unreported: u64,
    /// Statements that an order has so much left, or nothing.
    pub statements: u64,
    /// Those that say what the book had found already.
    pub statements_matched: u64,
    /// Those of orders that the book had traded further already: it makes all fills of an aggressor at once, the feed reports
    /// them one by one.
    pub statements_outrun: u64,
    /// Those that the book did not find and was set to.
    pub statements_corrected: u64,
    /// Of these, those that took off an order what a reported trade says at its price: [`TradeCauses::taker_not_shown`].
    pub statements_corrected_by_trade: u64,
}

/// Why the book did not make trades that a feed without executions reports, as far as the feed shows. They add up to the trades
/// that were not matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct TradeCauses {
    /// An order that stood at just the price lost just the size, and the feed showed nobody who took it: market orders are not in
    /// it.
    pub taker_not_shown: u64,
    /// The book made a trade at the price that nobody reported, of another size: it met the orders otherwise than the exchange.
    pub other_size: u64,
    /// Nothing that the feed showed lost just that: its orders were not shown, or the book had traded them otherwise before.
    pub no_order_shown: u64,
    /// The price is not a whole number of ticks, so the book cannot have made it.
    pub off_tick: u64,
}

/// The answer to a file of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct WorkloadReport {
    /// Trades.
    pub trades: u64,
    /// Lots traded.
    pub volume_lots: u64,
    /// Commands that traded.
    pub commands_with_trade: u64,
    /// Ask levels left.
    pub ask_levels: u64,
    /// Bid levels left.
    pub bid_levels: u64,
    /// Asks left.
    pub ask_orders: u64,
    /// Bids left.
    pub bid_orders: u64,
    /// Hash of the levels left.
    pub level_hash: u64,
    /// Whether all of it is what `FILE.expect` says; `None` without such a file.
    pub as_expected: Option<bool>,
}

/// The book alone, its input in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct TimingReport {
    /// Rounds run.
    pub rounds: u32,
    /// Messages that the book saw in each: an aggressor counts as the messages that reported it.
    pub messages: u64,
    /// Median over the rounds of a round's time.
    pub total_ns: u64,
    /// That per message. Corrections (a book rebuilt) are not in it.
    pub ns_per_message: f64,
}

impl Report {
    /// The report as JSON, indented.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report has only string keys")
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        crate::text::write(self, f)
    }
}
