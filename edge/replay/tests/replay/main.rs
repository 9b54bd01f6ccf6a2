//! Histories of every format, through order books and through a venue.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod itch_files;
mod level_files;
mod made_histories;
mod real_files;
mod small_histories;
mod venue;
mod venue_run;

use std::path::{Path, PathBuf};

use walras_replay::data_folder;

/// A real file, from `WALRAS_DATA` or from `../shared/data` next to the repository. A missing one is reported, for a test to skip.
fn find(file: &str) -> Option<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let found = data_folder(&repository).map(|data| data.join(file)).filter(|path| path.is_file());
    if found.is_none() {
        eprintln!("SKIPPED: {file} is neither in WALRAS_DATA nor in ../shared/data");
    }
    found
}
