//! A venue's history: every trade, regular snapshots of every book and, where it is asked for, what happened to every displayed order, by
//! day of log time. It answers queries, and its files can be read with DuckDB, polars or any other reader of Parquet or DBN.
//!
//! ```text
//! engine's thread                           this crate's thread                               readers
//! entry + events -> Recorder --batches--> Keeper: journals of the present day --day ends--> closed day   -> History
//!                   (never waits)         (synced every second)                 journals, Parquet, DBN,     (pages, a book at a time)
//! log ------------> Again (what the queue had no room for) --^                      manifest, renamed at once
//! ```
//!
//! A day's folder is `2026-11-21.partial` while it grows: journals of fixed-size records, each with a checksum, of trades, of books, of
//! displayed orders (`orders.rs`), and of what happened to accounts, which is private (`accounts.rs`). When an entry of a later day comes,
//! the journals are final. Then the export files are made from them, then a manifest with the hash of every file, and then the folder is
//! renamed to `2026-11-21`. So a closed day is complete or absent.
//!
//! *Deliberately absent*: any effect on the market (data that does not fit the queue is read from the log again), batch markets'
//! blocks (their headers are their own proof), queries for orders (their files are for back-tests), a reader of Parquet (the
//! journals answer queries; Parquet is for others).
//!
//! *Invariants*
//! - The archive is a function of the log: after any crash and replay of the log, its files are byte for byte those that it would
//!   have had without the crash.
//! - A closed day is complete and in log order, or its manifest lists the missing entries: those that did not fit the queue and
//!   that the log no longer had when they were read again.
//! - A reader gets an intact record or an error. What happened to an account is in no file that is given out.
//!
//! *Start reading* at [`Recorder`] (what is recorded, and when), then [`Keeper`] (storage), then [`History`] (queries).
//!
//! *Sources*: Parquet's format documentation; Databento's public documentation of DBN, version 3.

mod accounts;
mod again;
mod by_order;
mod close;
mod day;
mod dbn;
mod files;
mod forward;
mod history;
mod journal;
mod keeper;
mod manifest;
mod orders;
mod parquet_file;
mod record;
mod recorder;
mod service;
mod verify;

pub use accounts::{AccountCursor, AccountPage, AccountQuery, RecordKind};
pub use again::{Again, Refill};
pub use day::Day;
pub use dbn::DbnForm;
pub use files::{Faults, Files};
pub use forward::{ForwardPage, ForwardQuery, RecordPlace, Wanted};
pub use history::{Cursor, DayView, History, Page, TradesQuery};
pub use keeper::{Keeper, Settings};
pub use manifest::{FileEntry, Manifest, Missing};
pub use record::{Batch, Book, Level, Listing, OrderNote, OrderRecord, OrderSaid, OrderStep, Shown, Span, Step, Trade};
pub use recorder::{KEYFRAME_NS, Recorder};
pub use service::{Service, Status, StatusView};
pub use verify::{Verified, verify_day};

use std::path::PathBuf;

/// Errors of an archive, with what the operator can do.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The disk failed.
    #[error("{}: could not {doing}: {source}; check the folder's permissions and the room on its disk", path.display())]
    Io {
        /// The attempted operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file is damaged.
    #[error("{} is damaged: {what}; take the day from a copy or from another replica's archive", path.display())]
    Damaged {
        /// The path.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// A Parquet file could not be made.
    #[error("{}: could not be written as Parquet: {source}", path.display())]
    Parquet {
        /// The path.
        path: PathBuf,
        /// The library's error.
        source: parquet::errors::ParquetError,
    },
    /// A query would read too much.
    #[error("more than {scanned} records were read without an answer: ask for a later time")]
    TooFar {
        /// Number of scanned entries.
        scanned: u64,
    },
    /// A day, or a file of it, does not exist.
    #[error("{0} is not in the archive: GET /v1/history/days, or `walras archive ls`, lists what is")]
    NotFound(String),
    /// The writing thread failed.
    #[error("could not start a thread: {0}; raise the limit on threads of this user")]
    Thread(std::io::Error),
}

impl ArchiveError {
    pub(crate) fn damaged(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.into(), what: what.into() }
    }
}

/// Names the file of an I/O error.
pub(crate) trait During<T> {
    fn during(self, doing: &'static str, path: &std::path::Path) -> Result<T, ArchiveError>;
}

impl<T> During<T> for std::io::Result<T> {
    fn during(self, doing: &'static str, path: &std::path::Path) -> Result<T, ArchiveError> {
        self.map_err(|source| ArchiveError::Io { doing, path: path.to_path_buf(), source })
    }
}
