//! A batch of offers from a file, cleared once, with prices, fills and what they are worth: `walras clear`, which `docs/clear.md`
//! describes.
//!
//! *Deliberately absent*: arguments (`edge/node`); finding prices and amounts (`walras-batch-solver`).
//!
//! *Invariant*: a file that cannot be read ends in an error that says where it is wrong, never in a panic of ours.
//!
//! *Start reading* at [`load`], then [`clear()`] and [`Tables`].

use std::panic::PanicHookInfo;
use std::path::{Path, PathBuf};

use walras_batch_solver::offers::{Decimals, NamedMarket, OffersError};
use walras_batch_solver::{ClearError, Cleared, Settings};
use walras_clearing::AssetIndex;
use walras_terminal::progress::while_waiting;

mod compressed;
mod parquet_file;
mod plot;
mod read;
mod tables;

pub use read::ReadError;
pub use tables::{Fills, Tables};

/// Why a file was not cleared.
#[derive(Debug, thiserror::Error)]
pub enum ClearFileError {
    /// The file cannot be read, or is no list of offers.
    #[error("{}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        source: ReadError,
    },
    /// The offers make no market.
    #[error("{}: {source}", file.display())]
    Offers {
        /// The file.
        file: PathBuf,
        /// What is wrong with them.
        source: OffersError,
    },
    /// There is no clearing.
    #[error(transparent)]
    Clear(ClearError),
    /// Some offers clearly in the money would not trade in full, and all of them have to.
    #[error(
        "--strict: offers clearly in the money would not trade in full in {pair_count} pairs, first {sell} for {buy}: \
         allow more --queries, a larger --mu or --eps, or leave out --strict"
    )]
    Strict {
        /// Pairs that would sell too little.
        pair_count: usize,
        /// What the first of them sells.
        sell: String,
        /// What it buys.
        buy: String,
    },
    /// No such asset.
    #[error("--numeraire {0}: no offer names this asset; give one of the prices table, or leave the option out")]
    Numeraire(String),
    /// An output cannot be written.
    #[error("{}: could not be written: {source}", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The plot cannot be drawn.
    #[error("{}: could not be drawn: {what}", file.display())]
    Plot {
        /// The file.
        file: PathBuf,
        /// What the library said.
        what: String,
    },
}

/// For a panic hook: why the file that this thread reads cannot be read, if the panic is the Parquet library's. That library
/// answers some damaged bytes with a panic, which tells the user nothing. `None` if the panic is ours.
#[must_use]
pub fn panic_of_parquet(file: &Path, panic: &PanicHookInfo<'_>) -> Option<ClearFileError> {
    let source = parquet_file::error_of_panic(panic)?;
    Some(ClearFileError::Read { file: file.to_owned(), source })
}

/// Reads a file of offers and makes a market of them.
///
/// # Errors
/// [`ClearFileError::Read`] and [`ClearFileError::Offers`].
///
/// # Panics
/// On some damaged Parquet files; see [`panic_of_parquet`].
pub fn load(file: &Path, decimals: &Decimals) -> Result<NamedMarket, ClearFileError> {
    let offers = read::read(file).map_err(|source| ClearFileError::Read { file: file.to_owned(), source })?;
    let built = while_waiting("sorting offers", || offers.build(decimals));
    built.map_err(|source| ClearFileError::Offers { file: file.to_owned(), source })
}

/// The same for text that is not in a file.
///
/// # Errors
/// [`ReadError`].
pub fn load_text(text: &[u8], decimals: &Decimals) -> Result<NamedMarket, ReadError> {
    Ok(read::offers_of_text(text)?.build(decimals)?)
}

/// Clears a market, with a sign of life where it takes long.
///
/// # Errors
/// [`ClearFileError::Clear`] and [`ClearFileError::Strict`].
pub fn clear<'m>(named: &'m NamedMarket, settings: &Settings<'_>) -> Result<Cleared<'m>, ClearFileError> {
    let name = |asset: AssetIndex| named.assets[asset.index()].name.clone();
    while_waiting("clearing", || walras_batch_solver::clear(&named.market, settings)).map_err(|error| match error {
        ClearError::LowerBounds { pair_count, first: Some(pair) } => {
            ClearFileError::Strict { pair_count, sell: name(pair.sell), buy: name(pair.buy) }
        }
        other => ClearFileError::Clear(other),
    })
}

/// Draws supply and demand of the pairs that trade most around their rates, at most so many.
///
/// # Errors
/// [`ClearFileError::Plot`] and [`ClearFileError::Write`].
pub fn write_plot(file: &Path, named: &NamedMarket, cleared: &Cleared<'_>, pair_count_max: usize) -> Result<(), ClearFileError> {
    let svg = plot::draw(named, cleared, pair_count_max);
    let svg = svg.map_err(|what| ClearFileError::Plot { file: file.to_owned(), what })?;
    std::fs::write(file, svg).map_err(|source| ClearFileError::Write { file: file.to_owned(), source })
}

/// Writes a row for each fill.
///
/// # Errors
/// [`ClearFileError::Write`].
pub fn write_fills(file: &Path, fills: &Fills<'_>) -> Result<(), ClearFileError> {
    fills.write_csv(file).map_err(|source| ClearFileError::Write { file: file.to_owned(), source })
}
