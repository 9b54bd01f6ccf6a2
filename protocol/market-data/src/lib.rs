//! Market data: the venue's events into trades, candles, tickers and private order updates; events, or a feed, back into a book.
//!
//! Two halves that share the events and nothing else:
//! - [`MarketData`] is what a venue publishes from. It is fed every `(LogIndex, TimeNs, &Event)` in the order of the log, and holds
//!   what the engine does not keep. It has no book: of that it notes which levels changed ([`ChangedLevels`]), as the engine says
//!   of each entry, and the engine is asked what they show when they are sent.
//! - [`PublicBooks`] and [`FeedBook`] are a reader's: they rebuild the books from the events alone, or from the messages of a feed,
//!   and never ask the engine. A test of the whole venue, the simulator and a fuzz target hold them equal to the engine's books
//!   after every command: so the events tell everything.
//!
//! *Deliberately absent*: JSON and sockets (they are `edge/`'s), batching timers and per-connection queues (likewise), the relay
//! tree and hold-and-release (their own crates), indicative auction prices (the engine publishes the uncross, not its forecast).
//!
//! *Invariants*
//! - The shown size and the count of displayed orders of a price level of a [`PublicBook`] equal what the events say, between any
//!   two commands. Hidden orders and the reserves of icebergs never appear in what a public query returns.
//! - Every structure is bounded by [`limits`]; a full one drops the oldest, and a reader who fell behind learns of it.
//! - A [`FeedBook`] that took a snapshot and every update after it equals the book it was made from; one that missed an update says
//!   so and shows nothing until the next snapshot.
//! - No float, no clock: a trade's and a candle's time is its log entry's.
//!
//! *What the events must keep to* for this to hold (the engine's side of the contract):
//! 1. `resting` in `OrderAccepted`, `OrderAmended` and `StopTriggered` is what stands after the order's OWN trades, which follow;
//!    its own trades name it as `taker` and do not shrink what stands. Trades of other orders that hit it later (a stop that it
//!    triggered) name it as `maker` and do.
//! 2. A trade in which neither side is the latest order accepted, amended or triggered by the same command is an uncross: both
//!    stand.
//! 3. After a trade, an order that stands shows `min(shown - size, open)` or nothing, unless an `OrderReplenished` follows and says
//!    otherwise. A trade may exceed what its maker shows (an uncross reaches into an iceberg's reserve).
//! 4. An `OrderReduced` of the incoming order itself is already in its `resting`.
//! 5. An `OrderReplenished` follows the trade or reduction that used up the slice before; no other trade or reduction comes
//!    between.
//!
//! *Start reading* at [`MarketData::on_event`], then [`ChangedLevels`]; of a reader, at [`PublicBooks`], then [`FeedBook`].
#![deny(clippy::float_arithmetic)]

mod batch_snapshot;
mod batches;
mod book;
mod books;
mod candles;
mod entry;
mod feed;
mod fills;
mod histories;
mod id_map;
mod levels;
pub mod limits;
mod market;
mod offers;
mod private;
mod snapshot;
mod tape;
mod ticker;

pub use batches::{BatchBlock, BatchFeed, BlockProof, TradedOffers};
pub use book::{PublicBook, PublicOrder};
pub use books::PublicBooks;
pub use candles::{Candle, Candles, Interval};
pub use entry::Inconsistency;
pub use feed::{Applied, BookFeed, BookMessage, BookMessageKind, FeedBook, FeedError};
pub use fills::Fills;
pub use histories::{OrderHistories, OrderHistory};
pub use levels::{BookChanges, BookLevel, ChangedLevels, LevelChange};
pub use market::{InstrumentFeed, MarketData};
pub use offers::{OfferBytes, OfferChange, OfferFill, OfferOutcome, Offers, StandingOffer, TransactionOutcome};
pub use private::{AccountDelta, AccountView, Fill, FillRole, OrderStatus, OrderView};
pub use snapshot::RestoreError;
pub use tape::{PublicTrade, Tape};
pub use ticker::{DayStats, Ticker};
