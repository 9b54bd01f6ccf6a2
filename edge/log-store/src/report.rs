//! Reports of recovery and verification.

use crate::disk::DiskFile;
use crate::scan::{SegmentScan, Tail};
use std::path::PathBuf;
use walras_types::LogIndex;

/// The end of the log that was being written when the machine or the process stopped. It was never acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The file it is in.
    pub path: PathBuf,
    /// Where it begins.
    pub offset: u64,
    /// The first entry it would have held.
    pub first_index: Option<LogIndex>,
    /// How many entries it would have held, if its header survived.
    pub entry_count: Option<u32>,
}

impl TornTail {
    pub(crate) fn of<F: DiskFile>(scan: &SegmentScan<F>) -> Option<Self> {
        let Tail::Torn { header } = &scan.tail else { return None };
        Some(Self {
            path: scan.path.clone(),
            offset: scan.end_offset,
            first_index: header.map(|group| group.first_index).or_else(|| scan.first.map(|_| scan.end_index)),
            entry_count: header.map(|group| group.record_count),
        })
    }
}

impl std::fmt::Display for TornTail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "an unfinished write at byte {} of {}", self.offset, self.path.display())?;
        match (self.entry_count, self.first_index) {
            (Some(count), Some(first)) => write!(f, " ({count} entries from {first}, never acknowledged)"),
            _ => write!(f, " (never acknowledged)"),
        }
    }
}

/// What [`crate::LogWriter::open`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Whether the log was made by this call.
    pub created: bool,
    /// First entry held, or the next to come when there is none.
    pub first_index: LogIndex,
    /// The position after the last entry.
    pub end_index: LogIndex,
    /// Entries held.
    pub entry_count: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Segments that hold them.
    pub segment_count: usize,
    /// What was cut, if anything was.
    pub torn_tail: Option<TornTail>,
}

/// What a segment is to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentRole {
    /// It holds entries of the log.
    Live,
    /// All its entries were cut off or let go; it will be removed.
    Superseded,
    /// Prepared for later, holds nothing.
    Unused,
    /// Its place in the log is not known, because the log is damaged.
    Unknown,
}

/// One segment, as verification saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentReport {
    /// Its file.
    pub path: PathBuf,
    /// Its number; later ones have higher ones.
    pub id: u64,
    /// What it is to the log.
    pub role: SegmentRole,
    /// First entry in it, if it holds a readable group.
    pub first_index: Option<LogIndex>,
    /// The position after its last readable entry.
    pub end_index: LogIndex,
    /// Readable groups: one per sync.
    pub group_count: u64,
    /// Readable entries, including ones that a later cut hides.
    pub entry_count: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Bytes of the file up to the end of the last readable group.
    pub used_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Whether the file was used by an earlier segment before.
    pub recycled: bool,
    /// What is wrong with it, in a sentence; a torn tail is not damage.
    pub damage: Option<String>,
}

/// What [`crate::verify`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyReport {
    /// The log's random name.
    pub log_id: u64,
    /// Whose log it is.
    pub owner_id: u64,
    /// Its segments, oldest first.
    pub segments: Vec<SegmentReport>,
    /// First entry held, or the next to come when there is none. `None` when the log is damaged.
    pub first_index: Option<LogIndex>,
    /// The last entry; `None` when there is none or the log is damaged.
    pub last_index: Option<LogIndex>,
    /// Entries of the log.
    pub entry_count: u64,
    /// Bytes of the payloads of all readable entries.
    pub payload_bytes: u64,
    /// The unfinished write at the end, if there is one. Opening the log cuts it.
    pub torn_tail: Option<TornTail>,
    /// Why the log would refuse to open, with what to do; `None` when it is sound.
    pub damage: Option<String>,
}

impl VerifyReport {
    /// Whether the log opens with nothing lost.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.damage.is_none()
    }
}

impl SegmentReport {
    pub(crate) fn of<F: DiskFile>(scan: &SegmentScan<F>, role: SegmentRole) -> Self {
        let damage = match &scan.tail {
            Tail::Damaged { detail } => Some(format!("byte {}: {detail}", scan.end_offset)),
            Tail::Zero | Tail::Stale | Tail::Torn { .. } => None,
        };
        Self {
            path: scan.path.clone(),
            id: scan.id,
            role,
            first_index: scan.first.map(|(index, _)| index),
            end_index: scan.end_index,
            group_count: scan.group_count,
            entry_count: scan.entry_count,
            payload_bytes: scan.payload_bytes,
            used_bytes: scan.end_offset.min(scan.file_bytes),
            file_bytes: scan.file_bytes,
            recycled: scan.header.is_some_and(|header| header.recycled),
            damage,
        }
    }
}
