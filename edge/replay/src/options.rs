//! What one may choose of a replay, and how it tells of its progress.

use std::path::PathBuf;

use walras_market_history::Format;

/// What one may choose. [`Options::default`] is right for every known file.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file's format; `None` to recognise it.
    pub format: Option<Format>,
    /// Price of a tick in currency, such as `0.0001`; `None` for the format's own, see [`crate::Scale::of_format`]; of NASDAQ's
    /// files a cent, and 0.0001 where orders below a dollar need it.
    pub tick: Option<String>,
    /// Which of a file's instruments, by symbol or by the file's number; `None` for the only one.
    pub instrument: Option<String>,
    /// Reference price of auctions, and of the instrument of a venue, in currency; `None` for the exchange's rule, see
    /// [`crate::plan::AuctionReference`].
    pub reference_price: Option<String>,
    /// Levels a side that a LOBSTER file shows; `None` for those that its name says.
    pub levels: Option<u32>,
    /// LOBSTER's orderbook file; `None` for the one next to the message file, if there is one.
    pub orderbook: Option<PathBuf>,
    /// How often the book alone is run and timed; zero to leave it out. The report gives the median.
    pub timing_rounds: u32,
    /// How many mismatches the report names one by one.
    pub mismatches_named_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: None,
            tick: None,
            instrument: None,
            reference_price: None,
            levels: None,
            orderbook: None,
            timing_rounds: 9,
            mismatches_named_max: 64,
        }
    }
}

/// What a replay is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Reading the file, in messages.
    Reading,
    /// Running the book and comparing, in steps; running the venue, in commands.
    Comparing,
    /// Timing: the book alone, in rounds; the venue, in commands.
    Timing,
    /// Running the venue through a log, in entries.
    Logging,
    /// Reading that log back, in entries.
    ReadingBack,
}

impl Stage {
    /// As a progress bar calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Reading => "reading",
            Stage::Comparing => "replaying",
            Stage::Timing => "timing",
            Stage::Logging => "logging",
            Stage::ReadingBack => "reading the log back",
        }
    }
}

/// How far a replay has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Doing what.
    pub stage: Stage,
    /// How much of it.
    pub done: u64,
    /// Of how much, where known.
    pub total: Option<u64>,
}
