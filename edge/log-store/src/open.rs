//! Opening a log: find the segments, read them, decide which of them count, cut a torn tail.

use crate::cursor::{Cursor, Layout};
use crate::disk::{Disk, DiskFile, LockKind};
use crate::error::{During, LogError};
use crate::format::FIRST_SEGMENT_ID;
use crate::history::LetGo;
use crate::identity::{IDENTITY_FILE, Identity};
use crate::options::LogOptions;
use crate::pace::Pace;
use crate::pending::{Pending, Place};
use crate::plan::Plan;
use crate::report::Recovery;
use crate::scan::{SegmentScan, Tail, read_header, scan, segment_id, segment_name};
use crate::segment::{Recipe, Segment, Spare, SpentFile};
use crate::writer::{LogWriter, lock, slack};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use walras_types::LogIndex;

pub(crate) fn open<D: Disk>(disk: D, dir: &Path, options: LogOptions) -> Result<(LogWriter<D>, Recovery), LogError> {
    options.check()?;
    disk.create_dir_all(dir).during("create", dir)?;
    let held = Arc::new(lock(&disk, dir, LockKind::Exclusive)?);
    match Identity::read(&disk, dir)? {
        Some(identity) => open_held(disk, dir, options, identity, held),
        None => create(disk, dir, options, held),
    }
}

/// Opens a log whose lock is held since it was opened before: it is there, or something removed it.
pub(crate) fn open_again<D: Disk>(disk: D, dir: &Path, options: LogOptions, held: Arc<D::Lock>) -> Result<LogWriter<D>, LogError> {
    let identity = Identity::read(&disk, dir)?.ok_or_else(|| LogError::NotFound { dir: dir.to_path_buf() })?;
    open_held(disk, dir, options, identity, held).map(|(log, _)| log)
}

fn open_held<D: Disk>(
    disk: D,
    dir: &Path,
    options: LogOptions,
    identity: Identity,
    held: Arc<D::Lock>,
) -> Result<(LogWriter<D>, Recovery), LogError> {
    if identity.owner_id != options.owner_id {
        let path = dir.join(IDENTITY_FILE);
        return Err(LogError::WrongOwner { path, found: identity.owner_id, expected: options.owner_id });
    }
    let ids = segment_ids(&disk, dir)?;
    make_durable(&disk, dir, identity.log_id, &ids)?;
    let plan = Plan::new(dir, scan_all(&disk, dir, identity.log_id, &ids, Access::Write)?)?;
    if let Some(floor) = options.durable_floor.filter(|floor| *floor >= plan.end_index()) {
        let last = LogIndex(plan.end_index().0.saturating_sub(1));
        return Err(LogError::BelowFloor { dir: dir.to_path_buf(), last, floor });
    }
    let recovery = Recovery {
        created: false,
        first_index: plan.first_index(),
        end_index: plan.end_index(),
        entry_count: plan.end_index().0 - plan.first_index().0,
        payload_bytes: plan.kept.iter().map(|kept| kept.scan.payload_bytes).sum(),
        segment_count: plan.kept.len(),
        torn_tail: plan.torn_tail.clone(),
    };
    let highest_id = ids.last().copied().expect("a plan has segments");
    let log = resume(disk, dir, options, identity, held, plan, highest_id)?;
    Ok((log, recovery))
}

/// Takes up a planned log. Where anything follows the last group, there or in a later segment, that is left as it is and a new
/// segment is begun: no byte of a segment is ever written twice.
fn resume<D: Disk>(
    disk: D,
    dir: &Path,
    options: LogOptions,
    identity: Identity,
    held: Arc<D::Lock>,
    plan: Plan<D::File>,
    highest_id: u64,
) -> Result<LogWriter<D>, LogError> {
    let (end_index, floor_index) = (plan.end_index(), plan.kept[plan.kept.len() - 1].scan.floor_index);
    let Plan { kept, let_go, superseded, mut unused, torn_tail } = plan;
    let active_scan = &kept[kept.len() - 1].scan;
    let goes_on_in_place = torn_tail.is_none() && active_scan.tail == Tail::Zero && active_scan.is_full_length();
    let spare = unused.pop_if(|scan| is_clean_spare(scan, &options)).map(|scan| Spare {
        path: scan.path,
        file: scan.file,
        header: scan.header.expect("a clean spare has a header"),
    });
    let next_segment_id = spare.as_ref().map_or(highest_id + 1, |spare| spare.header.segment_id);
    let mut segments: VecDeque<Segment<D::File>> = kept.into_iter().map(Segment::from_kept).collect();
    let active = segments.pop_back().expect("a plan keeps at least one segment");
    let mut spent: Vec<SpentFile<D::File>> = superseded.into_iter().chain(unused).map(SpentFile::of).collect();
    let mut leaving = Vec::new();
    match options.let_go {
        LetGo::Reuse => spent.extend(let_go.into_iter().map(SpentFile::of)),
        LetGo::Keep => leaving.extend(let_go.into_iter().map(SpentFile::of)),
    }
    let trims = segments.iter_mut().filter_map(slack).collect();
    let place = Place {
        segment_id: active.layout.segment_id,
        block_bytes: active.layout.block_bytes,
        segment_end: active.layout.end,
        offset: active.end_offset,
    };
    let pending = Pending::new(&options, identity.log_id, place, next_segment_id, end_index, floor_index);
    let synced_offset = active.end_offset;
    let mut log = LogWriter {
        disk,
        dir: dir.to_path_buf(),
        options,
        identity,
        sealed: segments,
        active,
        spares: spare.into_iter().collect(),
        spare_coming: None,
        trims,
        spent,
        leaving,
        next_segment_id,
        pending,
        poisoned: false,
        durable_end: end_index,
        synced_offset,
        lock: held,
    };
    if !goes_on_in_place {
        log.guarded(|log| {
            log.prepare_spares(1)?;
            log.cut_at(end_index)
        })?;
    }
    Ok(log)
}

/// Makes a new log. Its identity is written last: without it, the remains of a first segment after a crash are replaced.
fn create<D: Disk>(disk: D, dir: &Path, options: LogOptions, held: Arc<D::Lock>) -> Result<(LogWriter<D>, Recovery), LogError> {
    refuse_to_replace_entries(&disk, dir, options.block_bytes)?;
    let identity = Identity { log_id: disk.entropy().during("get random bytes for", dir)?, owner_id: options.owner_id };
    let spare = Recipe::new(dir, identity, FIRST_SEGMENT_ID, &options).create(&disk, &Pace::hurried())?;
    let first_index = LogIndex(1);
    let active = spare.into_segment(first_index);
    let place = Place {
        segment_id: FIRST_SEGMENT_ID,
        block_bytes: options.block_bytes,
        segment_end: options.segment_bytes_of(FIRST_SEGMENT_ID),
        offset: active.end_offset,
    };
    let next_segment_id = FIRST_SEGMENT_ID + 1;
    let pending = Pending::new(&options, identity.log_id, place, next_segment_id, first_index, first_index);
    let synced_offset = active.end_offset;
    let mut log = LogWriter {
        disk,
        dir: dir.to_path_buf(),
        options,
        identity,
        sealed: VecDeque::new(),
        active,
        spares: VecDeque::new(),
        spare_coming: None,
        trims: Vec::new(),
        spent: Vec::new(),
        leaving: Vec::new(),
        next_segment_id,
        pending,
        poisoned: false,
        durable_end: first_index,
        synced_offset,
        lock: held,
    };
    log.seal()?;
    identity.write(&log.disk, dir)?;
    let recovery = Recovery {
        created: true,
        first_index,
        end_index: first_index,
        entry_count: 0,
        payload_bytes: 0,
        segment_count: 1,
        torn_tail: None,
    };
    Ok((log, recovery))
}

/// Without an identity there may be at most the first segment, without an entry.
fn refuse_to_replace_entries<D: Disk>(disk: &D, dir: &Path, block_bytes: u32) -> Result<(), LogError> {
    for id in segment_ids(disk, dir)? {
        let path = dir.join(segment_name(id));
        let file = disk.open_read_only(&path).during("open", &path)?;
        let len = file.len().during("read the length of", &path)?;
        let header = read_header(&file, &path, id, None)?;
        let mut cursor = Cursor::new(Arc::new(file), Layout { segment_id: id, seed: 0, block_bytes: 0, end: len });
        // The first group is empty and fills block 1; entries come after it. Without a header there is no group.
        let entries_from = header.map_or(u64::from(block_bytes), |header| 2 * u64::from(header.block_bytes));
        let empty = cursor.is_zero(entries_from.min(len)..len).during("read", &path)?;
        if !empty {
            return Err(LogError::IdentityMissing { dir: dir.to_path_buf(), file: IDENTITY_FILE });
        }
    }
    Ok(())
}

/// Whether a prepared segment can be used as it is.
fn is_clean_spare<F: DiskFile>(scan: &SegmentScan<F>, options: &LogOptions) -> bool {
    let as_wanted = scan.header.is_some_and(|header| {
        header.segment_bytes == options.segment_bytes_of(scan.id) && header.block_bytes == options.block_bytes
    });
    as_wanted && scan.is_full_length() && scan.tail == Tail::Zero
}

/// Ids of the segments in a folder, ascending.
pub(crate) fn segment_ids<D: Disk>(disk: &D, dir: &Path) -> Result<Vec<u64>, LogError> {
    let mut ids: Vec<u64> = disk.list(dir).during("list", dir)?.iter().filter_map(|name| segment_id(name)).collect();
    ids.sort_unstable();
    Ok(ids)
}

/// Makes sure that what will be read is on the device. A killed process leaves its last group only in the page cache, and after a
/// failed sync the cache may hold bytes that look clean but are not on the device. Only the last group can be in that state, so
/// only the newest segment with a group and those after it are synced and read again.
fn make_durable<D: Disk>(disk: &D, dir: &Path, log_id: u64, ids: &[u64]) -> Result<(), LogError> {
    for id in ids.iter().rev() {
        let path = dir.join(segment_name(*id));
        let file = disk.open(&path).during("open", &path)?;
        file.sync_data().during("sync", &path)?;
        let len = file.len().during("read the length of", &path)?;
        let header = read_header(&file, &path, *id, Some(log_id))?;
        file.drop_cache().during("drop the cache of", &path)?;
        if let Some(header) = header {
            let mut cursor = Cursor::new(Arc::new(file), Layout::new(log_id, *id, header.block_bytes, len));
            let first = cursor.group(u64::from(header.block_bytes)).during("read", &path)?;
            // Read from memory or from the device: if the former alone had it, older segments were synced before it was written.
            if first.is_some() {
                break;
            }
        }
    }
    disk.sync_dir(dir).during("sync", dir)
}

/// How segments are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

pub(crate) fn scan_all<D: Disk>(
    disk: &D,
    dir: &Path,
    log_id: u64,
    ids: &[u64],
    access: Access,
) -> Result<Vec<SegmentScan<D::File>>, LogError> {
    let (mut scans, mut cursor) = (Vec::with_capacity(ids.len()), None);
    for id in ids {
        let path = dir.join(segment_name(*id));
        let file = match access {
            Access::Read => disk.open_read_only(&path),
            Access::Write => disk.open(&path),
        }
        .during("open", &path)?;
        scans.push(scan(Arc::new(file), path, *id, log_id, &mut cursor)?);
    }
    Ok(scans)
}
