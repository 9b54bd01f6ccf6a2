//! What the venue releases, and what of it is needed here.

use walras_feed::message::BatchCleared;
use walras_market_data::{BookLevel, PublicOrder, PublicTrade};
use walras_types::{BatchMarketId, BatchPhase, InstrumentId, PriceTicks, SizeLots, TimeNs, TradingPhase};
use walras_wire::PhaseCause;

/// A part of the venue's market data that somebody reads here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// An instrument's book.
    Book(InstrumentId),
    /// Its trades.
    Trades(InstrumentId),
    /// The figures of its day, and its phase.
    Day(InstrumentId),
    /// A batch market's blocks, its phase and its interval.
    Batch(BatchMarketId),
    /// An instrument's book by order.
    Orders(InstrumentId),
}

/// Something that the venue has released.
#[derive(Clone, Copy, Debug)]
pub enum Piece<'a> {
    /// A book, or its levels that changed.
    Book(BookPiece<'a>),
    /// Trades.
    Trades {
        /// Where.
        instrument: InstrumentId,
        /// Whether these are the last ones, newest first, and not new ones, oldest first.
        is_snapshot: bool,
        /// The trades. Some of an update may be known.
        trades: &'a [PublicTrade],
    },
    /// Figures of a day.
    Day(Day),
    /// A batch market's block.
    Batch(BatchPiece<'a>),
    /// How a batch market trades now.
    BatchTerms(BatchMarketId, BatchTerms),
    /// A book by order.
    Orders(OrdersPiece<'a>),
}

/// A book, or its levels that changed.
#[derive(Clone, Copy, Debug)]
pub struct BookPiece<'a> {
    /// Which.
    pub instrument: InstrumentId,
    /// Whether all levels are here.
    pub is_snapshot: bool,
    /// The entry of the log after which the book looked so.
    pub log_index: u64,
    /// Bids; one that shows nothing is gone.
    pub bids: &'a [BookLevel],
    /// Asks, likewise.
    pub asks: &'a [BookLevel],
    /// What an auction would trade now.
    pub auction: Option<Auction>,
}

/// The first displayed orders of each side of a book, as they stand.
#[derive(Clone, Copy, Debug)]
pub struct OrdersPiece<'a> {
    /// Which.
    pub instrument: InstrumentId,
    /// The entry of the log after which the book looked so.
    pub log_index: u64,
    /// Bids: best price first, at each price the first in the queue first.
    pub bids: &'a [PublicOrder],
    /// Asks, likewise.
    pub asks: &'a [PublicOrder],
}

/// What an auction would trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auction {
    /// At which price.
    pub price: PriceTicks,
    /// How much.
    pub volume: SizeLots,
    /// Bid (positive) or offered (negative) at the price beyond it, in lots.
    pub imbalance_lots: i64,
}

/// An instrument's phase and the figures of its UTC day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Day {
    /// Which instrument.
    pub instrument: InstrumentId,
    /// Its phase.
    pub phase: TradingPhase,
    /// Why it is in this phase; `None` where that is not known any more.
    pub phase_cause: Option<PhaseCause>,
    /// Price of the last trade.
    pub last: Option<PriceTicks>,
    /// Price of the day's first trade; `None` before it, and where not all trades of the day are known.
    pub open: Option<PriceTicks>,
    /// Highest price, likewise.
    pub high: Option<PriceTicks>,
    /// Lowest price, likewise.
    pub low: Option<PriceTicks>,
    /// Price of the last trade before the day; `None` where there was none, or it is not known.
    pub previous_close: Option<PriceTicks>,
    /// Traded, in lots; `None` where not all trades of the day are known.
    pub volume: Option<SizeLots>,
}

/// How a batch market trades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchTerms {
    /// Whether it takes transactions.
    pub phase: BatchPhase,
    /// From one close of a batch to the next, in ns.
    pub interval_ns: u64,
}

/// A batch market's last block.
#[derive(Clone, Copy, Debug)]
pub struct BatchPiece<'a> {
    /// Which market.
    pub market: BatchMarketId,
    /// The block, as the binary feed has it; `None` before the first one.
    pub cleared: Option<BatchCleared>,
    /// When it was cleared.
    pub time: TimeNs,
    /// Of each asset that has a price.
    pub prices: &'a [BatchPrice],
}

/// The price of an asset in a block, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchPrice {
    /// The asset's symbol.
    pub asset: String,
    /// Of one of it, in the market's first asset.
    pub price: String,
    /// How much of it was sold in the block.
    pub volume: String,
}
