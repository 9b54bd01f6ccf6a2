//! Why a replay could not run.

use std::path::PathBuf;

use walras_market_history::HistoryError;

/// Why a replay could not run. That history and book disagree is no error: the [`crate::Report`] counts it.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file can not be read as history.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The file holds several instruments and names none of those asked for.
    #[error("instrument {wanted} has no message in the file; it has {}; choose one of them, or name none for the busiest", list(.present))]
    UnknownInstrument {
        /// Asked for.
        wanted: u32,
        /// In the file, the busiest first.
        present: Vec<u32>,
    },
    /// The file holds nothing for a book.
    #[error("{} holds no message that concerns a book; check that it is the whole file and not only its beginning", .0.display())]
    Empty(PathBuf),
    /// A scale of zero units.
    #[error("a tick of {units_per_tick} and a lot of {units_per_lot} units are none; give both at least one unit")]
    Scale {
        /// Asked for.
        units_per_tick: i64,
        /// Asked for.
        units_per_lot: u64,
    },
    /// A file beside the history could not be read.
    #[error("reading {}: {source}; check the path and its permissions", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The log refused, or its disk.
    #[error(transparent)]
    Log(#[from] walras_log_store::LogError),
    /// An entry of the log that was just written is none.
    #[error("entry {index} of the log that was just written: {source}; check the disk")]
    Entry {
        /// Which.
        index: walras_types::LogIndex,
        /// Why.
        source: walras_sequencer::EntryError,
    },
    /// The folder for the log holds one already.
    #[error("{} holds a log already, which is not overwritten; name a folder that has none", .0.display())]
    LogInUse(PathBuf),
    /// The venue can not be set up for this history.
    #[error("{what}; {advice}")]
    Venue {
        /// What is wrong.
        what: &'static str,
        /// What to do.
        advice: &'static str,
    },
}

fn list(present: &[u32]) -> String {
    let shown: Vec<String> = present.iter().take(8).map(u32::to_string).collect();
    let more = if present.len() > 8 { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}
