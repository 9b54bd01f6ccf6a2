//! Market data by FIX (`docs/fix.md`): the venue's side of all connections that read it, between their bytes and what the venue releases.
//!
//! [`MarketDataServer`] takes bytes, time and [`Piece`]s: books by level and by order, trades, figures of the day and blocks of batch
//! markets, as they are released. It keeps one copy of each market that somebody reads, and says which ones it needs ([`Need`]).
//!
//! [`FromFeed`] makes such pieces of the packets of the binary feed, for a gateway; a replica makes them of its state.
//!
//! *Deliberately absent*: sockets and clocks; when a piece may be known (its host gives it released ones only); the FIX session itself
//! (`walras_fix`); orders (`walras_fix_orders`).
//!
//! *Invariants*
//! - After each message a client that applies it has the venue's book of that release, up to the depth that it asked for.
//! - What a connection holds is bounded by [`limits`], whatever its client sends or does not read. One that reads slowly gets whole
//!   books instead of changes; one that does not read is logged out, with the reason.
//! - No bytes make it panic.
//!
//! *Start reading* at [`MarketDataServer`], then `market.rs`.
#![deny(clippy::float_arithmetic)]

mod connection;
mod from_feed;
pub mod limits;
mod listing;
mod market;
mod orders;
mod piece;
mod request;
mod say;
mod server;
mod spoken;
mod tags;

pub use from_feed::{BatchMarket, Block, FromFeed, FromFeedSettings, OwnedPiece, is_read};
pub use piece::{Auction, BatchPiece, BatchPrice, BatchTerms, BookPiece, Day, Need, OrdersPiece, Piece};
pub use server::{BatchListed, Charge, Ended, MarketDataServer, MarketDataSettings};
