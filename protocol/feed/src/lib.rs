//! The binary market-data feed: events of the engine as messages of a fixed layout, in channels with a dense numbering each, and a
//! reader that has the venue's books from their packets. `docs/market-data-feed.md` describes it for programs in any language.
//!
//! - [`message`]: the messages and their schema.
//! - [`channel`]: one market in one view: by order, by level, the top of the book, the blocks of a batch market.
//! - [`publisher`]: the venue's end. It has a book of its own for each instrument: the engine does not say what an order showed
//!   before an event.
//! - [`sender`]: messages into packets, heartbeats, snapshots in rotation, and the latest messages for readers that missed some.
//! - [`station`]: the sender on a thread of its own, with copies of the markets, and taking over from another one.
//! - [`reader`]: packets into a [`book`].
//! - [`outlet`]: a leaf gateway, which holds packets until their release time; [`recall`]: what it asks the replicas for again.
//! - [`control`]: requests for messages that are missing.
//!
//! *Why a crate of its own*: the venue's JSON feed, tape and candles (`walras-market-data`) know nothing of packets, and a reader of
//! this feed needs neither them nor a batch market's hashes.
//!
//! *Deliberately absent*: sockets and clocks; when a packet may be released (the host names the time, receivers hold packets until
//! then); what concerns one account.
//!
//! *Invariants*
//! - After each packet that ends with the last message of its entry, a reader's copy equals the venue's book after that entry.
//! - What is hidden appears in no message: hidden orders and the reserves of icebergs trade, and only the trade is published.
//! - A message has one encoding. No bytes make anything panic or grow beyond its bound.
//! - The same log gives the same messages with the same numbers.
//!
//! *Start reading* at the table in [`message`], then [`publisher::Publisher`], then [`reader::MarketReader`].
//!
//! *Sources*: Nasdaq TotalView-ITCH 5.0 for the set of messages by order; `MoldUDP64` for the numbering.
#![deny(clippy::float_arithmetic)]

pub mod book;
pub mod channel;
pub mod control;
mod field;
mod id_map;
pub mod message;
pub mod outlet;
pub mod publisher;
pub mod reader;
pub mod recall;
pub mod sender;
pub mod station;

pub use field::{Part, Primitive};
