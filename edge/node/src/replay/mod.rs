//! `walras replay`: recorded history through a book, by `walras-replay`, with a progress bar.

use std::path::Path;

use walras_market_history::Format;
use walras_replay::{Options, Progress, Report, Stage};

use crate::progress::Slow;

/// Why a replay has no report.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file can not be read or driven through a book.
    #[error(transparent)]
    Replay(#[from] walras_replay::ReplayError),
    /// The format is not one.
    #[error("format {0:?}: give one of {list}", list = Format::list())]
    Format(String),
}

/// Replays a file of a format, or of the one that it is recognised as.
pub fn run(path: &Path, format: Option<&str>) -> Result<Report, ReplayError> {
    let format = match format {
        Some(name) => Some(Format::from_name(name).ok_or_else(|| ReplayError::Format(name.to_owned()))?),
        None => None,
    };
    let options = Options { format, ..Options::default() };
    let mut bar: Option<(Stage, Slow)> = None;
    let report = walras_replay::run(path, &options, &mut |progress: Progress| {
        if !bar.as_ref().is_some_and(|(stage, _)| *stage == progress.stage) {
            if let Some((_, mut ended)) = bar.take() {
                ended.finish();
            }
            bar = Some((progress.stage, Slow::new(progress.stage.name(), progress.total)));
        }
        if let Some((_, bar)) = &mut bar {
            bar.set(progress.done);
        }
    });
    if let Some((_, mut bar)) = bar {
        bar.finish();
    }
    Ok(report?)
}
