//! `walras replay`: recorded history through a book.

use std::path::Path;

use serde_json::{Value, json};
use walras_market_history::{Format, History, HistoryError, Tally};

/// Why a replay has no report.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file can not be read.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The format is not one.
    #[error("format {0:?}: give one of {list}", list = Format::list())]
    Format(String),
}

/// What a replay found.
#[derive(Clone, Debug)]
pub struct Report {
    format: Format,
    tally: Tally,
}

impl Report {
    /// The same for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({"format": self.format.name(), "tally": format!("{:?}", self.tally)})
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}: {:?}", self.format.name(), self.tally)
    }
}

/// Reads a file of a format, or of the one that it is recognised as.
pub fn run(path: &Path, format: Option<&str>) -> Result<Report, ReplayError> {
    let mut history = match format {
        Some(name) => History::open_as(path, Format::from_name(name).ok_or_else(|| ReplayError::Format(name.to_owned()))?)?,
        None => History::open(path)?,
    };
    let mut tally = Tally::new(None);
    let mut progress = crate::progress::Slow::new("replaying", None);
    let mut count = 0;
    for event in history.by_ref() {
        tally.count(&event?);
        count += 1;
        progress.set(count);
    }
    progress.finish();
    Ok(Report { format: history.format(), tally })
}
