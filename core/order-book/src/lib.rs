//! One instrument's continuous book: order types, allocation rules, matching.
//!
//! *Deliberately absent*: accounts (an [`OwnerId`] is only compared), funds, fees, risk, phases, clocks. The engine decides who may
//! trade and when; the book decides with whom.
//!
//! *Invariants*
//! - An order never trades beyond its limit, nor outside the [`Band`].
//! - No order is passed over by a later one of its price, except by the book's allocation, an iceberg's replenishment, or because it
//!   is hidden and the other displayed.
//! - Outside auctions no bid reaches an offer.
//! - A [`Refusal`] changes and reports nothing.
//! - What the book reports does not depend on the price index, nor on where in memory an order lies: a restored book behaves as the
//!   saved one.
//!
//! Adding, cancelling and each fill cost O(1) in the number of resting orders with the [`Ladder`], O(key bytes) with the adaptive
//! radix tree. Cancelling many walks the book; expiring and triggering cost O(log n) in the orders that expire or wait, and so does a price
//! that trailing stops follow.
//!
//! *Start reading* at [`api`], then `book`, then `matching`. Sources: price-time and pro-rata as in the Raft matching engine
//! dissertation, section 2.3.2; the radix tree, section 3.3.2.
#![deny(clippy::float_arithmetic)]

mod allocation;
pub mod api;
mod arena;
mod art;
mod auction;
mod book;
mod day_end;
mod extras;
mod frozen;
mod id_index;
mod ladder;
mod matching;
mod price_index;
mod query;
mod slot;
mod stops;
mod trails;
mod warm;

pub use api::*;
pub use art::Art;
pub use auction::PriceSearch;
pub use book::OrderBook;
pub use frozen::FrozenOrders;
pub use ladder::Ladder;
pub use price_index::{Level, PriceIndex, Rank};
pub use query::RestoreError;
pub use warm::{NameHash, Seen};
