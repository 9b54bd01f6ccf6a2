//! Why a replay could not run.

use std::path::PathBuf;

use walras_market_history::HistoryError;

use crate::limits::{INSTRUMENTS_NAMED_MAX, REORDER_EVENTS_MAX};
use crate::survey::InstrumentReport;

/// Why a replay could not run. That history and book disagree is no error: the [`crate::Report`] counts it.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file cannot be read as history.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The file does not hold the instrument asked for, or holds several and none was asked for.
    #[error("{}", instruments(.ask, .present))]
    Instrument {
        /// What is the matter.
        ask: Ask,
        /// In the file, the busiest first.
        present: Vec<InstrumentReport>,
    },
    /// A price that was given is none.
    #[error(
        "{option} {given:?} is no price of this file; write a number above zero with at most {decimals} decimals, and a \
             reference price as a whole number of ticks"
    )]
    Price {
        /// Which option.
        option: &'static str,
        /// What was given.
        given: String,
        /// Decimals that the file's prices have.
        decimals: u32,
    },
    /// An orderbook file for a format that has none.
    #[error("an orderbook file belongs to a LOBSTER message file, and this is {0}; leave --orderbook out")]
    OrderbookUnknown(&'static str),
    /// A message came too long after one that the exchange numbered later.
    #[error(
        "message {index} stands more than {REORDER_EVENTS_MAX} messages behind where the exchange's number puts it; \
         sort the file by that number"
    )]
    Disorder {
        /// Its number in the file.
        index: u64,
    },
    /// The file changed between two readings.
    #[error("the file changed while it was replayed; replay it once nobody writes to it")]
    Changed,
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
    /// A file next to the history could not be read.
    #[error("reading {}: {source}; check the path and its permissions", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The log refused, or its disk.
    #[cfg(feature = "log")]
    #[error(transparent)]
    Log(#[from] walras_log_store::LogError),
    /// An entry of the log that was just written is none.
    #[cfg(feature = "log")]
    #[error("entry {index} of the log that was just written: {source}; check the disk")]
    Entry {
        /// The log index.
        index: walras_types::LogIndex,
        /// The cause.
        source: walras_sequencer::EntryError,
    },
    /// The folder for the log holds one already.
    #[error("{} holds a log already, which is not overwritten; name a folder that has none", .0.display())]
    LogInUse(PathBuf),
    /// The venue cannot be set up for this history.
    #[error("{what}; {advice}")]
    Venue {
        /// The fault.
        what: &'static str,
        /// Advice.
        advice: &'static str,
    },
}

/// What is the matter with the choice of an instrument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// None was asked for, and there are several.
    Several,
    /// This one is not there.
    Unknown(String),
}

fn instruments(ask: &Ask, present: &[InstrumentReport]) -> String {
    let shown: Vec<String> =
        present.iter().take(INSTRUMENTS_NAMED_MAX).map(|one| format!("{one} ({} messages)", one.messages)).collect();
    let more = if present.len() > shown.len() { ", ... (--instruments lists all of them)" } else { "" };
    let list = shown.join(", ");
    match ask {
        Ask::Several => format!(
            "the file holds {} instruments, and a replay is of one; choose it with --instrument. The busiest: {list}{more}",
            present.len()
        ),
        Ask::Unknown(name) if present.is_empty() => {
            format!("no message of the file concerns {name}, nor any other instrument; check that it is the whole file")
        }
        Ask::Unknown(name) => {
            format!(
                "instrument {name} has no message in the file; choose one that has, or leave --instrument out of a file of one. It has {list}{more}"
            )
        }
    }
}
