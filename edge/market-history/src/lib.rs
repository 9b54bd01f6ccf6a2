//! Order-by-order history of real markets, and made markets: readers, one vocabulary of events, generators.
//!
//! - *Readers* of LOBSTER message files, NASDAQ ITCH 5.0, the Shanghai exchange's level-2 text log, Bitstamp's websocket log and
//!   order list, and 32-byte workload commands; plain, xz, gzip or a zip with one file. Writers of LOBSTER, ITCH and workload files.
//! - *One vocabulary*, [`HistoryEvent`], into which all of them fit, so that a driver is written once.
//! - *Generators*: [`synthetic`] markets for demos, [`workload`]s with known answers for measurements.
//!
//! *Deliberately absent*: an order book. What history means for a book (does an execution hit the head of its queue, is a snapshot
//! what the orders come to) is for the one who joins the two. The generators keep a plain private book of their own orders, because
//! one cannot cancel a live order without knowing which are live. Also absent: downloads, clocks, guesses. Nothing here fills in what
//! a file does not say.
//!
//! *Invariants*
//! - No number was ever a float: prices and sizes are exact integers in the file's own units ([`PriceUnits`], [`SizeUnits`]), times
//!   integer nanoseconds. [`TickScale`] turns them into an instrument's ticks and lots exactly, or says that it cannot. The one
//!   rounding, of numbers that their source printed from floats, is named in [`bitstamp`] and [`lobster`].
//! - No bytes make a reader panic, allocate per message, or hold more than a line or a message. What is malformed is an error with
//!   its place, what was expected and what to do.
//! - A generator is a function of its configuration, the same on every machine: integers only, its own random numbers.
//!
//! ```
//! use walras_market_history::{Format, History, HistoryKind, Tally, TickScale};
//!
//! let file = b"34200.004241176,1,16113575,18,5853300,1\n34200.1,4,16113575,8,5853300,1\n";
//! let cents = TickScale::new(100, 1).unwrap();
//! let mut tally = Tally::new(Some(cents));
//! for event in History::new(&file[..], Format::Lobster) {
//!     let event = event?;
//!     if let HistoryKind::Add { price, size, .. } = event.kind {
//!         assert_eq!((cents.ticks(price)?.get(), cents.lots(size)?.get()), (58_533, 18));
//!     }
//!     tally.count(&event);
//! }
//! assert_eq!((tally.adds, tally.executions, tally.off_tick), (1, 1, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Start reading* at [`event`], then [`History`], then the format of interest.
//!
//! *Sources*: the formats' own documents, named in their modules; Smith, Farmer, Gillemot, Krishnamurthy 2003 and Cont, Stoikov,
//! Talreja 2010 for [`synthetic`]; the published description of exchange-core's generator for [`workload`].
#![deny(clippy::float_arithmetic)]

pub mod event;
mod history;
mod source;

pub mod bitstamp;
pub mod itch;
pub mod lobster;
pub mod sse;
pub mod workload_file;

pub mod synthetic;
pub mod workload;

mod error;
mod format;
mod model_book;
mod random;
mod tally;
mod text;

pub use error::{HistoryError, Position};
pub use event::*;
pub use format::Format;
pub use history::{History, parse_all};
pub use source::{ByteSource, XZ_MEMORY_KIB_MAX, decompressed, detect, detect_bytes, open_bytes};
pub use tally::Tally;
pub use text::LINE_BYTES_MAX;
