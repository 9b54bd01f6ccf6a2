//! `walras replay`: recorded history through a book or a venue, by `walras-replay`, with a progress bar.

use std::path::Path;

use walras_market_history::Format;
use walras_replay::venue::VenueReport;
use walras_replay::{InstrumentReport, Options, Progress, Report, Stage};
use walras_terminal::progress::Slow;

use crate::cli::ReplayArgs;

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

/// Replays a file through a book.
pub(super) fn run(path: &Path, options: &Options) -> Result<Report, ReplayError> {
    let mut bars = Bars::default();
    Ok(walras_replay::run(path, options, &mut |progress| bars.tell(progress))?)
}

/// The same through a venue in this process, and once more through a durable log in the folder given.
pub(super) fn run_venue(path: &Path, options: Options, log: Option<&Path>) -> Result<VenueReport, ReplayError> {
    let options = Options { timing_rounds: VENUE_ROUNDS, ..options };
    let mut bars = Bars::default();
    Ok(walras_replay::venue::run(path, &options, log, &mut |progress| bars.tell(progress))?)
}

/// The instruments of a file, as a table and as JSON.
pub(super) fn list(path: &Path, options: &Options) -> Result<(String, String), ReplayError> {
    let mut bars = Bars::default();
    let instruments = walras_replay::instruments(path, options, &mut |progress| bars.tell(progress))?;
    let mut table = format!("{:<12} {:>8} {:>14}\n", "symbol", "number", "messages");
    for InstrumentReport { instrument, symbol, messages } in &instruments {
        let symbol = symbol.as_deref().unwrap_or("-");
        table.push_str(&format!("{symbol:<12} {instrument:>8} {messages:>14}\n"));
    }
    let json = serde_json::to_string(&instruments).expect("a list of instruments has only string keys");
    Ok((table, json))
}

/// The most memory that this process had resident so far, where the system says it.
#[must_use]
pub(super) fn peak_memory_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.split_whitespace().next()?.parse().ok()
}

/// What the command line says of a replay.
pub(super) fn options(args: &ReplayArgs) -> Result<Options, ReplayError> {
    let format = match &args.format {
        Some(name) => Some(Format::from_name(name).ok_or_else(|| ReplayError::Format(name.clone()))?),
        None => None,
    };
    Ok(Options {
        format,
        tick: args.tick.clone(),
        instrument: args.instrument.clone(),
        reference_price: args.reference_price.clone(),
        levels: args.levels,
        orderbook: args.orderbook.clone(),
        ..Options::default()
    })
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
