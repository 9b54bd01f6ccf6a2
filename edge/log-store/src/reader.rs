//! Reading entries, across segments, in bounded memory.

use crate::cursor::{Cursor, Layout};
use crate::disk::{Disk, DiskFile, LockKind};
use crate::error::{During, LogError};
use crate::format::{GroupHeader, RECORD_HEADER_BYTES};
use crate::history::{self, HISTORY_FOLDER};
use crate::identity::Identity;
use crate::open::{Access, scan_all, segment_ids};
use crate::plan::Plan;
use crate::scan::SegmentScan;
use crate::segment::Segment;
use crate::writer::lock;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use walras_types::LogIndex;

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its index.
    pub index: LogIndex,
    /// Its bytes.
    pub payload: &'a [u8],
}

#[derive(Debug)]
struct Stretch<F> {
    path: PathBuf,
    file: Arc<F>,
    layout: Layout,
    /// Offset of a group at or before the first entry wanted.
    offset: u64,
    end_index: LogIndex,
}

#[derive(Clone, Copy, Debug)]
struct InGroup {
    header: GroupHeader,
    offset: u64,
    index: LogIndex,
}

impl<F> Clone for Stretch<F> {
    fn clone(&self) -> Self {
        let Self { path, file, layout, offset, end_index } = self;
        Self { path: path.clone(), file: Arc::clone(file), layout: *layout, offset: *offset, end_index: *end_index }
    }
}

/// Iterates entries in order. It holds one window of 256 KiB, or of the longest entry, and the names of the segments.
#[derive(Debug)]
pub struct LogReader<F> {
    stretches: VecDeque<Stretch<F>>,
    cursor: Option<Cursor<F>>,
    group: Option<InGroup>,
    from: LogIndex,
    first_index: LogIndex,
    end_index: LogIndex,
}

impl<F: DiskFile> LogReader<F> {
    /// Reads from `from`, which the segments hold or end with, up to `end_index`.
    pub(crate) fn new<'a>(segments: impl Iterator<Item = &'a Segment<F>>, from: LogIndex, end_index: LogIndex) -> Self {
        let mut first_index = None;
        let mut stretches = VecDeque::new();
        for segment in segments {
            first_index.get_or_insert(segment.first_index);
            if segment.end_index <= from {
                continue;
            }
            let at = segment.marks.partition_point(|mark| mark.first_index <= from);
            let near = at.checked_sub(1).map_or(u64::from(segment.layout.block_bytes), |at| segment.marks[at].offset);
            stretches.push_back(Stretch {
                path: segment.path.clone(),
                file: Arc::clone(&segment.file),
                layout: segment.layout,
                offset: near,
                end_index: segment.end_index,
            });
        }
        Self { stretches, cursor: None, group: None, from, first_index: first_index.unwrap_or(from), end_index }
    }

    /// The first entry that the log held when the reader was made.
    #[must_use]
    pub fn first_index(&self) -> LogIndex {
        self.first_index
    }

    /// The position after the last entry that the reader will return.
    #[must_use]
    pub fn end_index(&self) -> LogIndex {
        self.end_index
    }

    /// Another reader of the entries that this one has not returned yet, from `from` on. It does not search the folder again.
    pub fn again(&self, from: LogIndex) -> Result<Self, LogError> {
        if from < self.from || from > self.end_index {
            return Err(LogError::OutOfRange { index: from, first: self.from, end: self.end_index });
        }
        let Self { stretches, first_index, end_index, .. } = self;
        let stretches = stretches.iter().skip_while(|stretch| stretch.end_index <= from).cloned().collect();
        Ok(Self { stretches, cursor: None, group: None, from, first_index: *first_index, end_index: *end_index })
    }

    /// The next entry; `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "an entry borrows the reader, which `Iterator` cannot express")]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, LogError> {
        loop {
            if self.from >= self.end_index {
                return Ok(None);
            }
            let Some(stretch) = self.stretches.front() else { return Ok(None) };
            if self.from >= stretch.end_index {
                self.stretches.pop_front();
                self.group = None;
                if let (Some(next), Some(cursor)) = (self.stretches.front(), &mut self.cursor) {
                    cursor.move_to(Arc::clone(&next.file), next.layout);
                }
                continue;
            }
            let cursor = self.cursor.get_or_insert_with(|| Cursor::new(Arc::clone(&stretch.file), stretch.layout));
            let Some(at) = self.group else {
                self.group = Some(enter_group(cursor, stretch, self.from)?);
                continue;
            };
            if at.index >= at.header.end_index() {
                self.stretches[0].offset = at.header.next_offset(cursor.layout.block_bytes);
                self.group = None;
                continue;
            }
            let body_end = at.header.body_offset() + u64::from(at.header.body_bytes);
            let payload_bytes = match cursor.record(at.offset, body_end, at.index).during("read", &stretch.path)? {
                Some(payload) => payload.len(),
                None => return Err(unreadable(stretch, at.offset, at.index)),
            };
            let payload_offset = at.offset + RECORD_HEADER_BYTES as u64;
            self.group = Some(InGroup { offset: payload_offset + payload_bytes as u64, index: at.index.next(), ..at });
            if at.index < self.from {
                continue;
            }
            self.from = at.index.next();
            let path = &self.stretches[0].path;
            let cursor = self.cursor.as_mut().expect("the cursor was made above");
            let payload = cursor.bytes(payload_offset, payload_bytes).during("read", path)?.expect("the record was read above");
            return Ok(Some(Entry { index: at.index, payload }));
        }
    }
}

/// Finds the group that holds `from`, skipping those before it unread.
fn enter_group<F: DiskFile>(cursor: &mut Cursor<F>, stretch: &Stretch<F>, from: LogIndex) -> Result<InGroup, LogError> {
    let mut offset = stretch.offset;
    loop {
        let group = cursor.group(offset).during("read", &stretch.path)?;
        let Some(header) = group.filter(|group| group.first_index <= from) else {
            return Err(unreadable(stretch, offset, from));
        };
        if header.end_index() > from {
            return Ok(InGroup { header, offset: header.body_offset(), index: header.first_index });
        }
        offset = header.next_offset(cursor.layout.block_bytes);
    }
}

fn unreadable<F>(stretch: &Stretch<F>, offset: u64, index: LogIndex) -> LogError {
    LogError::corrupt(&stretch.path, offset, format!("entry {index}, which was readable when the log was opened, is not any more"))
}

/// Opens a log for reading only, for instance to dump it; changes nothing. A log in use by a writer is [`LogError::Locked`]. The
/// lock is held as long as the second value lives.
pub fn open_read_only<D: Disk>(disk: &D, dir: &Path, from: Option<LogIndex>) -> Result<(LogReader<D::File>, D::Lock), LogError> {
    let held = lock(disk, dir, LockKind::Shared)?;
    Ok((open_live(disk, dir, from)?, held))
}

/// A reader of a whole log, and its lock where there is one.
pub type Whole<D> = (LogReader<<D as Disk>::File>, Option<<D as Disk>::Lock>);

/// Opens a log together with its history ([`crate::LetGo::Keep`]), as far back as that goes without a gap, for reading only. The
/// log may be in use: the reader then sees what it held when it was opened, and the sync of the last group may not have finished.
/// This call reads every byte. The second value holds a lock while it exists; it is `None` if a writer has the log open.
pub fn open_whole<D: Disk>(disk: &D, dir: &Path, from: Option<LogIndex>) -> Result<Whole<D>, LogError> {
    let whole = || {
        let identity = Identity::read(disk, dir)?.ok_or_else(|| LogError::NotFound { dir: dir.to_path_buf() })?;
        let plan = Plan::with_history(dir, scan_whole(disk, dir, identity.log_id)?)?;
        reader_of(plan, from)
    };
    match lock(disk, dir, LockKind::Shared) {
        Ok(held) => Ok((whole()?, Some(held))),
        Err(LogError::Locked { .. }) => Ok((while_in_use(whole, |_| true)?, None)),
        Err(error) => Err(error),
    }
}

/// Number of attempts to read a log in use before the result counts.
const LOOKS_MAX: usize = 8;

/// Reads a log in use. A write in progress may look like damage, and a file may be moved meanwhile, so this tries several times.
pub(crate) fn while_in_use<T>(look: impl Fn() -> Result<T, LogError>, is_sound: impl Fn(&T) -> bool) -> Result<T, LogError> {
    let mut looks = 0;
    loop {
        looks += 1;
        match look() {
            Ok(found) if is_sound(&found) || looks == LOOKS_MAX => return Ok(found),
            Err(error @ (LogError::OutOfRange { .. } | LogError::NotFound { .. } | LogError::Version { .. })) => return Err(error),
            Err(error) if looks == LOOKS_MAX => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
}

/// All segments of a log and its history, by ascending id.
pub(crate) fn scan_whole<D: Disk>(disk: &D, dir: &Path, log_id: u64) -> Result<Vec<SegmentScan<D::File>>, LogError> {
    let folder = dir.join(HISTORY_FOLDER);
    // The log's own segments first: a segment that is moved meanwhile is found twice rather than not at all.
    let own = segment_ids(disk, dir)?;
    let mut history = history::ids(disk, dir)?;
    history.retain(|id| !own.contains(id));
    let mut scans = scan_all(disk, &folder, log_id, &history, Access::Read)?;
    scans.extend(scan_all(disk, dir, log_id, &own, Access::Read)?);
    scans.sort_unstable_by_key(|scan| scan.id);
    Ok(scans)
}

/// Opens a log for reading while its writer continues. The reader sees at most what the log held when it was opened. A write in
/// progress may look like damage, and segments may be dropped meanwhile; after an error the caller opens the log again. All
/// returned entries were written, but a replica's log may still replace undecided ones: the caller must know which are final.
pub fn open_live<D: Disk>(disk: &D, dir: &Path, from: Option<LogIndex>) -> Result<LogReader<D::File>, LogError> {
    let identity = Identity::read(disk, dir)?.ok_or_else(|| LogError::NotFound { dir: dir.to_path_buf() })?;
    let ids = segment_ids(disk, dir)?;
    reader_of(Plan::new(dir, scan_all(disk, dir, identity.log_id, &ids, Access::Read)?)?, from)
}

fn reader_of<F: DiskFile>(plan: Plan<F>, from: Option<LogIndex>) -> Result<LogReader<F>, LogError> {
    let (first, end) = (plan.first_index(), plan.end_index());
    let from = from.unwrap_or(first);
    if from < first || from > end {
        return Err(LogError::OutOfRange { index: from, first, end });
    }
    let segments: Vec<Segment<F>> = plan.kept.into_iter().map(Segment::from_kept).collect();
    Ok(LogReader::new(segments.iter(), from, end))
}
