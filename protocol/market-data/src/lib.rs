//! Market data: turns the venue's events into trades, candles, tickers and private order updates, and events or a feed back into
//! books.
//!
//! Two halves that share only the events:
//! - [`MarketData`] is the venue's side. It takes every `(LogIndex, TimeNs, &Event)` in log order and stores what the engine does
//!   not. It has no book: it tracks which levels changed ([`ChangedLevels`]), as the engine reports for each entry, and the engine
//!   supplies their content when they are sent.
//! - [`PublicBooks`] and [`FeedBook`] are a reader's side. They rebuild the books from the events alone, or from the messages of a
//!   feed, without the engine. A test of the whole venue, the simulator and a fuzz target compare them with the engine's books
//!   after every command, which shows that the events are complete.
//!
//! *Deliberately absent*: JSON and sockets (they are `edge/`'s), batching timers and per-connection queues (likewise), the relay
//! tree and hold-and-release (their own crates), indicative auction prices (the engine publishes the uncross, not its forecast).
//!
//! *Invariants*
//! - The shown size and the count of displayed orders of a price level of a [`PublicBook`] equal what the events say, between any
//!   two commands. Hidden orders and the reserves of icebergs never appear in what a public query returns.
//! - Every structure is bounded by [`limits`]. A full one drops its oldest data, and readers that fell behind are notified.
//! - A [`FeedBook`] that applied a snapshot and every later update equals the venue's book. One that missed an update returns an
//!   error and is empty until the next snapshot.
//! - No float, no clock: a trade's and a candle's time is its log entry's.
//!
//! *What the events must guarantee* for this to hold (the engine's side of the contract):
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
mod ended;
mod entry;
mod feed;
mod fills;
mod histories;
mod id_map;
mod levels;
pub mod limits;
mod market;
mod offers;
mod orders;
mod private;
mod recent;
mod records;
mod snapshot;
mod tape;
mod ticker;

pub use batches::{BatchBlock, BatchFeed, BlockProof, TradedOffers};
pub use book::{PublicBook, PublicOrder};
pub use books::PublicBooks;
pub use candles::{Candle, Candles, Interval};
pub use ended::EndedOrders;
pub use entry::Inconsistency;
pub use feed::{Applied, BookFeed, BookMessage, BookMessageKind, FeedBook, FeedError};
pub use fills::Fills;
pub use histories::{OrderAbout, OrderHistories, OrderHistory};
pub use levels::{BookChanges, BookLevel, ChangedLevels, LevelChange};
pub use market::{InstrumentFeed, MarketData};
pub use offers::{OfferBytes, OfferChange, OfferFill, OfferOutcome, Offers, StandingOffer, TransactionOutcome};
pub use orders::{OrderChange, OrderChangeKind, order_changes};
pub use private::{AccountDelta, AccountView, Fill, FillRole, OrderStatus, OrderView};
pub use records::{AccountRecord, EndedOrder, NoRecordId, OrderEnd, RecordId, Recorded};
pub use snapshot::RestoreError;
pub use tape::{PublicTrade, Tape};
pub use ticker::{DayStats, Ticker};
