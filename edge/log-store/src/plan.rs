//! Derives the log from its segments: which segments count, up to which entry, and whether to refuse.

use crate::disk::DiskFile;
use crate::error::LogError;
use crate::format::{GroupHeader, GroupKind};
use crate::report::TornTail;
use crate::scan::{SegmentScan, Tail};
use std::path::Path;
use walras_types::LogIndex;

/// A segment that counts.
#[derive(Debug)]
pub(crate) struct Kept<F> {
    pub(crate) scan: SegmentScan<F>,
    pub(crate) first_index: LogIndex,
    /// Entries from here on are another segment's, or do not exist.
    pub(crate) end_index: LogIndex,
}

/// The log that a folder of segments holds.
#[derive(Debug)]
pub(crate) struct Plan<F> {
    /// Oldest first; the last one is the active one. Never empty.
    pub(crate) kept: Vec<Kept<F>>,
    /// Segments that were let go of, newest first.
    pub(crate) let_go: Vec<SegmentScan<F>>,
    /// Others that no longer count, in the order in which they may go.
    pub(crate) superseded: Vec<SegmentScan<F>>,
    /// Prepared segments that were never used, and half-prepared ones.
    pub(crate) unused: Vec<SegmentScan<F>>,
    /// What was cut.
    pub(crate) torn_tail: Option<TornTail>,
}

impl<F: DiskFile> Plan<F> {
    /// Decides; `scans` in ascending order of id.
    pub(crate) fn new(dir: &Path, scans: Vec<SegmentScan<F>>) -> Result<Self, LogError> {
        Self::reaching(Reach::Floor, dir, scans)
    }

    /// The same with dropped segments, as far back as they are there without a gap.
    pub(crate) fn with_history(dir: &Path, scans: Vec<SegmentScan<F>>) -> Result<Self, LogError> {
        Self::reaching(Reach::History, dir, scans)
    }

    fn reaching(reach: Reach, dir: &Path, scans: Vec<SegmentScan<F>>) -> Result<Self, LogError> {
        let Some(active_at) = scans.iter().rposition(|scan| scan.first.is_some()) else {
            let Some(damaged) = scans.iter().find_map(damage) else {
                return Err(LogError::corrupt(
                    dir,
                    0,
                    "the log was set up here once, but no segment holds anything; the segment files are missing",
                ));
            };
            return Err(damaged);
        };
        let mut scans = scans;
        let unused = scans.split_off(active_at + 1);
        let active = &scans[active_at];
        for scan in std::iter::once(active).chain(&unused) {
            if let Some(damaged) = damage(scan) {
                return Err(damaged);
            }
        }
        refuse_gap_before_torn_segment(active, &unused)?;
        let torn_tail = std::iter::once(active).chain(&unused).find_map(TornTail::of);
        let Chain { mut kept, let_go, superseded } = chain(reach, scans)?;
        let unfinished = hide_unfinished(&mut kept);
        Ok(Self { kept, let_go, superseded, unused, torn_tail: unfinished.or(torn_tail) })
    }

    pub(crate) fn first_index(&self) -> LogIndex {
        self.kept[0].first_index
    }

    pub(crate) fn end_index(&self) -> LogIndex {
        self.kept[self.kept.len() - 1].end_index
    }
}

/// The error for a segment whose end no crash explains.
fn damage<F>(scan: &SegmentScan<F>) -> Option<LogError> {
    match &scan.tail {
        Tail::Damaged { detail } => Some(LogError::corrupt(&scan.path, scan.end_offset, detail.clone())),
        Tail::Zero | Tail::Stale | Tail::Torn { .. } => None,
    }
}

/// A torn first group of a later segment proves that all before it was synced, hence readable.
fn refuse_gap_before_torn_segment<F>(active: &SegmentScan<F>, unused: &[SegmentScan<F>]) -> Result<(), LogError> {
    for scan in unused {
        let Tail::Torn { header: Some(GroupHeader { first_index, floor_index, kind, .. }) } = scan.tail else { continue };
        // It may claim less: a group that was torn before the active segment went on growing.
        let explained = first_index <= active.end_index || (kind == GroupKind::Cut && floor_index == first_index);
        if !explained {
            let detail = format!(
                "entries before {first_index} were on disk when {} was begun, but only those before {} are readable",
                scan.path.display(),
                active.end_index
            );
            return Err(LogError::corrupt(&active.path, active.end_offset, detail));
        }
    }
    Ok(())
}

/// Hides the groups at the end that count only together with one that is not there: a sync that took several and did not end.
fn hide_unfinished<F>(kept: &mut [Kept<F>]) -> Option<TornTail> {
    let last = &kept[kept.len() - 1];
    if !last.scan.is_unfinished {
        return None;
    }
    let written_end = last.end_index;
    // A row whose beginning was let go was whole when it was; then nothing of it can be missing.
    let (begun_in, (first_index, offset)) =
        kept.iter().rev().find_map(|kept| kept.scan.row_start.map(|start| (&kept.scan.path, start)))?;
    let unfinished = TornTail {
        path: begun_in.clone(),
        offset,
        first_index: Some(first_index),
        entry_count: u32::try_from(written_end.0 - first_index.0).ok(),
    };
    for kept in kept {
        kept.end_index = kept.end_index.min(first_index);
    }
    Some(unfinished)
}

/// How far back a log is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// To the first entry that was not let go of, which must be there.
    Floor,
    /// To the first entry that is there.
    History,
}

/// Segments that count, oldest first, and those that do not.
struct Chain<F> {
    kept: Vec<Kept<F>>,
    let_go: Vec<SegmentScan<F>>,
    superseded: Vec<SegmentScan<F>>,
}

/// Walks from the newest segment to the oldest, each hiding what older ones hold from its first entry on, down to the floor.
fn chain<F>(reach: Reach, mut scans: Vec<SegmentScan<F>>) -> Result<Chain<F>, LogError> {
    let active = scans.pop().expect("the caller found an active segment");
    let floor_index = active.floor_index;
    let mut superseded = Vec::new();
    let mut kept = vec![Kept { first_index: first_index(&active), end_index: active.end_index, scan: active }];
    let mut limit = kept[0].first_index;
    while limit > floor_index {
        let Some(scan) = scans.pop() else {
            let detail =
                format!("it begins with entry {limit}, but entries from {floor_index} on must precede it; a file is missing");
            return Err(LogError::corrupt(&kept[kept.len() - 1].scan.path, 0, detail));
        };
        if scan.first.is_none_or(|(index, _)| index >= limit) {
            superseded.push(scan);
            continue;
        }
        if scan.end_index < limit {
            return Err(gap(&scan, &superseded, limit));
        }
        let hidden_from = limit;
        limit = first_index(&scan);
        kept.push(Kept { first_index: limit, end_index: hidden_from, scan });
    }
    while reach == Reach::History
        && let Some(scan) = scans.pop()
    {
        if scan.first.is_none_or(|(index, _)| index >= limit) {
            superseded.push(scan);
        } else if scan.end_index >= limit {
            let hidden_from = limit;
            limit = first_index(&scan);
            kept.push(Kept { first_index: limit, end_index: hidden_from, scan });
        } else if let Some(damaged) = damage(&scan) {
            return Err(damaged);
        } else {
            // The segments in between were removed or never retained.
            scans.push(scan);
            break;
        }
    }
    kept.reverse();
    // A file that was about to be reused counts as empty.
    let (let_go, empty): (Vec<_>, Vec<_>) = scans.into_iter().rev().partition(|scan| scan.first.is_some());
    superseded.extend(empty);
    Ok(Chain { kept, let_go, superseded })
}

fn first_index<F>(scan: &SegmentScan<F>) -> LogIndex {
    scan.first.expect("only segments with a whole group are kept").0
}

/// The error for a segment that ends before the next one begins: its own damage, or that of one between the two.
fn gap<F>(scan: &SegmentScan<F>, between: &[SegmentScan<F>], limit: LogIndex) -> LogError {
    damage(scan).or_else(|| between.iter().find_map(damage)).unwrap_or_else(|| {
        let detail = format!(
            "entries {} to {} must follow there, because a later segment begins with entry {limit}; they are not readable",
            scan.end_index,
            limit.0 - 1
        );
        LogError::corrupt(&scan.path, scan.end_offset, detail)
    })
}
