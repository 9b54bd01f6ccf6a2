//! `walras replay`: recorded history through a book or a venue, by `walras-replay`, with a progress bar.

use std::path::Path;

use walras_market_history::Format;
use walras_replay::venue::VenueReport;
use walras_replay::{Options, Progress, Report, Stage};

use crate::progress::Slow;

/// How often a venue is run and timed: it does more than a book, and takes its time.
const VENUE_ROUNDS: u32 = 3;

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

/// Replays a file of a format, or of the one that it is recognised as, through a book.
pub fn run(path: &Path, format: Option<&str>) -> Result<Report, ReplayError> {
    let options = options(format)?;
    let mut bars = Bars::default();
    Ok(walras_replay::run(path, &options, &mut |progress| bars.tell(progress))?)
}

/// The same through a venue in this process, and once more through a durable log in the folder given.
pub fn run_venue(path: &Path, format: Option<&str>, log: Option<&Path>) -> Result<VenueReport, ReplayError> {
    let options = Options { timing_rounds: VENUE_ROUNDS, ..options(format)? };
    let mut bars = Bars::default();
    Ok(walras_replay::venue::run(path, &options, log, &mut |progress| bars.tell(progress))?)
}

fn options(format: Option<&str>) -> Result<Options, ReplayError> {
    let format = match format {
        Some(name) => Some(Format::from_name(name).ok_or_else(|| ReplayError::Format(name.to_owned()))?),
        None => None,
    };
    Ok(Options { format, ..Options::default() })
}

/// A progress bar for each stage, one after the other.
#[derive(Default)]
pub(crate) struct Bars {
    bar: Option<(Stage, Slow)>,
}

impl Bars {
    pub(crate) fn tell(&mut self, progress: Progress) {
        if !self.bar.as_ref().is_some_and(|(stage, _)| *stage == progress.stage) {
            self.end();
            self.bar = Some((progress.stage, Slow::new(progress.stage.name(), progress.total)));
        }
        if let Some((_, bar)) = &mut self.bar {
            bar.set(progress.done);
        }
    }

    fn end(&mut self) {
        if let Some((_, mut bar)) = self.bar.take() {
            bar.finish();
        }
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.end();
    }
}
