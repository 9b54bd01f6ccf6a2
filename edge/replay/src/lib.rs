//! Runs real order flow through our book and compares the result with what the exchange recorded.
//!
//! - [`run`] replays a file: for each recorded execution it reconstructs the incoming order that must have caused it, submits that
//!   to [`walras_order_book::OrderBook`], which matches it by its own rules, and compares the fills with the recorded ones, order
//!   by order; then auctions, and the exchange's own snapshots. The [`Report`] says what agrees, what does not and why.
//! - [`venue::commands`] turns the same history into commands for a venue's engine: accounts, reserves, phases and all;
//!   [`venue::run`] applies them.
//! - [`book_commands`] turns it into a file of commands that any book can be driven with.
//! - [`figures`] are what `make bench NAME=replay` records.
//!
//! *Deliberately absent*: readers of formats and any repair of what they say (`walras-market-history`); matching rules
//! (`walras-order-book`): nothing here decides who trades with whom. Pacing: commands carry their time, and their sender waits.
//!
//! *Invariants*
//! - The book's trades are never taken from the record. Disagreements are counted, and the price levels concerned are then set to
//!   the record, so that one disagreement does not cause another.
//! - A file is read twice and never stored: memory holds the book, and a few words for each order that the file adds and never
//!   closes ([`limits`]).
//! - The timed run does the same steps by the same code as the compared one, and must trade the same.
//! - A snapshot counts only in order and in a stated window: [`snapshots`].
//!
//! *Start reading* at [`plan`], then [`reconstruct`], then `drive`.
//!
//! *Sources*: the formats' documents named in `walras-market-history`; other facts are derived from the data, with the evidence
//! given where they are used.

pub mod error;
pub mod limits;
pub mod load;
pub mod options;
pub mod plan;
pub mod reconstruct;
pub mod record;
pub mod report;
pub mod snapshots;

mod apply;
mod book_commands;
mod drive;
mod figures;
mod oracle;
mod quality;
mod run;
mod source;
mod survey;
mod tape;
mod text;
mod timing;
mod truth;
pub mod venue;

pub use book_commands::{BookCommands, book_commands};
pub use error::ReplayError;
pub use figures::{Figure, LOBSTER_FILE, data_folder, figures};
pub use load::{Loaded, Scale, instruments};
pub use options::{Options, Progress, Stage};
pub use oracle::{OrderbookDifference, OrderbookReport};
pub use quality::QualityReport;
pub use report::*;
pub use run::{run, run_loaded};
pub use survey::InstrumentReport;
