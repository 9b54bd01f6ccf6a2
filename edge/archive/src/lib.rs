//! A venue's past: every trade, and pictures of every book, by day of the log's time, for those who query them and for those who
//! take the files and read them with DuckDB, polars or whatever reads Parquet or DBN.
//!
//! ```text
//! engine's thread                           this crate's thread                               readers
//! entry + events -> Recorder --batches--> Keeper: journals of the present day --day ends--> closed day   -> History
//!                   (never waits)         (synced every second)                 journals, Parquet, DBN,     (pages, a book at a time)
//! log ------------> Again (what there was no room for) --^                      manifest, renamed at once
//! ```
//!
//! A day's folder is `2026-11-21.partial` while it grows: two journals of fixed-size records, each with a checksum. When an entry
//! of a later day comes, the journals are final; the files for others are made of them, then a manifest that names every file with
//! its hash, then the folder gets its name, `2026-11-21`: a day is there whole or not at all.
//!
//! *Deliberately absent*: the market itself (nothing here can stop or slow it: what does not fit the queue is read again from the
//! log), batch markets' blocks (their headers are their own proof), private data (a trade's parties), order-by-order books, a
//! reader of Parquet (the journals answer queries; Parquet is for others).
//!
//! *Invariants*
//! - The archive is a function of the log: after any crash, once the log was replayed, its files are those that it would have had
//!   without, byte for byte.
//! - What is in a closed day is complete and in the log's order, or its manifest names the entries that are missing: those that its
//!   log did not have any more when it was found that there had been no room for them.
//! - A reader is given a record whole and undamaged, or an error.
//!
//! *Start reading* at [`Recorder`] (what is recorded, and when), then [`Keeper`] (how it stays), then [`History`].
//!
//! *Sources*: Parquet's format documentation; Databento's public documentation of DBN, version 3.

mod again;
mod close;
mod day;
mod dbn;
mod files;
mod history;
mod journal;
mod keeper;
mod manifest;
mod parquet_file;
mod record;
mod recorder;
mod service;
mod verify;

pub use again::{Again, Refill};
pub use day::Day;
pub use files::{Faults, Files};
pub use history::{Cursor, DayView, History, Page, TradesQuery};
pub use keeper::{Keeper, Settings};
pub use manifest::{FileEntry, Manifest, Missing};
pub use record::{Batch, Book, Level, Listing, Span, Step, Trade};
pub use recorder::{KEYFRAME_NS, Recorder};
pub use service::{Service, Status, StatusView};
pub use verify::{Verified, verify_day};

use std::path::PathBuf;

/// What an archive cannot do, and how to help it.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The disk.
    #[error("{}: could not {doing}: {source}; check the folder's permissions and the room on its disk", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file whose bytes are not what was written.
    #[error("{} is damaged: {what}; take the day from a copy or from another replica's archive", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A Parquet file could not be made.
    #[error("{}: could not be written as Parquet: {source}", path.display())]
    Parquet {
        /// Which.
        path: PathBuf,
        /// What the library said.
        source: parquet::errors::ParquetError,
    },
    /// A question that would read too much.
    #[error("more than {scanned} records were read without an answer: ask for a later time")]
    TooFar {
        /// How many.
        scanned: u64,
    },
    /// A day, or a file of it, that is not there.
    #[error("{0} is not in the archive: GET /v1/history/days, or `walras archive ls`, lists what is")]
    NotFound(String),
    /// The thread that writes.
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
