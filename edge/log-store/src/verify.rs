//! Checks a log without changing it.

use crate::disk::{Disk, LockKind};
use crate::error::LogError;
use crate::identity::Identity;
use crate::plan::Plan;
use crate::reader::{scan_whole, while_in_use};
use crate::report::{SegmentReport, SegmentRole, VerifyReport};
use crate::writer::lock;
use std::path::Path;
use walras_types::LogIndex;

/// Reads every byte of a log and reports what is there. Changes nothing. Damage is reported, not returned as an error; errors are
/// for what keeps it from looking: no log, an unreadable disk, another version. The segments that were let go of and kept count as
/// far back as they are there without a gap. A log in use is read while its writer continues.
pub fn verify<D: Disk>(disk: &D, dir: &Path) -> Result<VerifyReport, LogError> {
    match lock(disk, dir, LockKind::Shared) {
        Ok(_held) => look(disk, dir),
        Err(LogError::Locked { .. }) => while_in_use(|| look(disk, dir), |report| report.damage.is_none()),
        Err(error) => Err(error),
    }
}

fn look<D: Disk>(disk: &D, dir: &Path) -> Result<VerifyReport, LogError> {
    let identity = Identity::read(disk, dir)?.ok_or_else(|| LogError::NotFound { dir: dir.to_path_buf() })?;
    let scans = scan_whole(disk, dir, identity.log_id)?;
    let mut segments: Vec<SegmentReport> = scans.iter().map(|scan| SegmentReport::of(scan, SegmentRole::Unknown)).collect();
    let mut report = VerifyReport {
        log_id: identity.log_id,
        owner_id: identity.owner_id,
        segments: Vec::new(),
        first_index: None,
        last_index: None,
        entry_count: 0,
        payload_bytes: segments.iter().map(|segment| segment.payload_bytes).sum(),
        torn_tail: None,
        damage: None,
    };
    match Plan::with_history(dir, scans) {
        Ok(plan) => {
            let live: Vec<u64> = plan.kept.iter().map(|kept| kept.scan.id).collect();
            let superseded: Vec<u64> = plan.superseded.iter().chain(&plan.let_go).map(|scan| scan.id).collect();
            for segment in &mut segments {
                segment.role = match segment.id {
                    id if live.contains(&id) => SegmentRole::Live,
                    id if superseded.contains(&id) => SegmentRole::Superseded,
                    _ => SegmentRole::Unused,
                };
            }
            report.first_index = Some(plan.first_index());
            report.entry_count = plan.end_index().0 - plan.first_index().0;
            report.last_index = (report.entry_count > 0).then(|| LogIndex(plan.end_index().0 - 1));
            report.payload_bytes = plan.kept.iter().map(|kept| kept.scan.payload_bytes).sum();
            report.torn_tail = plan.torn_tail;
        }
        Err(damage @ LogError::Corrupt { .. }) => report.damage = Some(damage.to_string()),
        Err(other) => return Err(other),
    }
    report.segments = segments;
    Ok(report)
}
