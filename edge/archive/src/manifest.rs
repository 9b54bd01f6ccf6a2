//! The manifest of a closed day: its files, and whether the day is complete.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::record::Listing;
use crate::{ArchiveError, During};

pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const LISTINGS: &str = "instruments.json";
const VERSION: u32 = 1;

/// Entries of the log that are missing, first and last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

/// A file of a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its name in the day's folder.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Number of rows of a table, or of records of a journal.
    pub rows: u64,
    /// BLAKE3 of its bytes, in hexadecimal.
    pub blake3: String,
}

/// `manifest.json` of a closed day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this format.
    pub version: u32,
    /// The day, as `2026-11-21`.
    pub day: String,
    /// Whether every entry of the day is in it.
    pub complete: bool,
    /// The missing entries.
    pub missing: Vec<Missing>,
    /// The day's first entry. The day before ends with the one before it, unless entries are missing between them.
    pub first_log_index: u64,
    /// The day's last entry.
    pub last_log_index: u64,
    /// Its time.
    pub last_time_ns: u64,
    /// Trades of all instruments.
    pub trades: u64,
    /// Book snapshots of all instruments.
    pub books: u64,
    /// Maximum levels per side in a book snapshot.
    pub depth: u32,
    /// All files except the manifest and those that are private.
    pub files: Vec<FileEntry>,
    /// Files that only the venue reads: what happened to accounts. They are not given out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub private: Vec<FileEntry>,
    /// Files that were not made, and why.
    pub notes: Vec<String>,
}

impl Manifest {
    pub(crate) const VERSION: u32 = VERSION;

    /// Reads the manifest in a day's folder.
    pub fn read(dir: &Path) -> Result<Self, ArchiveError> {
        let path = dir.join(MANIFEST);
        let bytes = std::fs::read(&path).during("read", &path)?;
        let manifest: Self = serde_json::from_slice(&bytes).map_err(|e| ArchiveError::damaged(&path, e.to_string()))?;
        if manifest.version == VERSION {
            Ok(manifest)
        } else {
            Err(ArchiveError::damaged(path, format!("it is of version {}, and this program reads {VERSION}", manifest.version)))
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        pretty(self)
    }
}

fn pretty(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).expect("numbers, texts and lists of them are JSON");
    bytes.push(b'\n');
    bytes
}

pub(crate) fn encode_listings<'a>(listings: impl Iterator<Item = &'a Listing>) -> Vec<u8> {
    pretty(&listings.collect::<Vec<_>>())
}

pub(crate) fn read_listings(dir: &Path) -> Result<Vec<Listing>, ArchiveError> {
    let path = dir.join(LISTINGS);
    match std::fs::read(&path) {
        // A day before the first instrument.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        read => serde_json::from_slice(&read.during("read", &path)?).map_err(|e| ArchiveError::damaged(path, e.to_string())),
    }
}
