//! The one writer of a log.

use crate::disk::{Disk, DiskFile, LockKind};
use crate::error::{During, LogError};
use crate::format::{GroupHeader, GroupKind, Writing};
use crate::history::LetGo;
use crate::identity::Identity;
use crate::maintenance::{Chores, Coming, Maintenance, Trim};
use crate::open;
use crate::options::LogOptions;
use crate::pace::Pace;
use crate::pending::Pending;
use crate::reader::LogReader;
use crate::report::Recovery;
use crate::scan::note;
use crate::segment::{Recipe, Segment, Spare, SpentFile};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{TryRecvError, channel};
use walras_types::LogIndex;

/// The only writer of a log. [`append`](Self::append) buffers, [`flush`](Self::flush) hands to the operating system,
/// [`sync`](Self::sync) makes durable.
///
/// It has no thread of its own. After a failed write or sync every call returns [`LogError::Poisoned`]. A
/// [retryable](LogError::is_retryable) error is different: that call changed nothing, and buffered entries stay buffered. Dropping
/// the writer loses unsynced entries; [`close`](Self::close) also proves to the next opening that nothing is missing.
#[derive(Debug)]
pub struct LogWriter<D: Disk> {
    pub(crate) disk: D,
    pub(crate) dir: PathBuf,
    pub(crate) options: LogOptions,
    pub(crate) identity: Identity,
    pub(crate) sealed: VecDeque<Segment<D::File>>,
    pub(crate) active: Segment<D::File>,
    /// Prepared segments, in the order of their ids.
    pub(crate) spares: VecDeque<Spare<D::File>>,
    pub(crate) spare_coming: Option<Coming<D::File>>,
    pub(crate) trims: Vec<Trim<D::File>>,
    /// Files that no longer count, to become segments again.
    pub(crate) spent: Vec<SpentFile<D::File>>,
    /// Files of dropped segments that are to be retained.
    pub(crate) leaving: Vec<SpentFile<D::File>>,
    /// Id of the first spare, or of the one that will be prepared next.
    pub(crate) next_segment_id: u64,
    pub(crate) pending: Pending,
    pub(crate) poisoned: bool,
    /// Every entry before this one is durable.
    pub(crate) durable_end: LogIndex,
    /// Every byte of the active segment before this offset is durable. All older segments are, entirely.
    pub(crate) synced_offset: u64,
    /// Shared with unfinished maintenance, because the folder must not be opened before that is done.
    pub(crate) lock: Arc<D::Lock>,
}

impl<D: Disk> LogWriter<D> {
    /// Opens and recovers the log in `dir`, or makes one. All entries that it reports are durable when it returns.
    ///
    /// A torn tail is cut and reported; damage that a crash does not explain is [`LogError::Corrupt`], and nothing is changed.
    pub fn open(disk: D, dir: &Path, options: LogOptions) -> Result<(Self, Recovery), LogError> {
        open::open(disk, dir, options)
    }

    /// Closes a failed log but keeps its folder locked, to open it again. Drop unfinished [`Maintenance`] first.
    #[must_use]
    pub fn into_failed(self) -> FailedLog<D> {
        FailedLog { disk: self.disk, dir: self.dir, options: self.options, lock: self.lock }
    }

    /// The first entry held; the next to come when there is none.
    #[must_use]
    pub fn first_index(&self) -> LogIndex {
        self.sealed.front().unwrap_or(&self.active).first_index
    }

    /// Every entry before this one is durable.
    #[must_use]
    pub fn durable_end(&self) -> LogIndex {
        self.durable_end
    }

    /// The index that the next entry gets.
    #[must_use]
    pub fn next_index(&self) -> LogIndex {
        self.pending.next_index()
    }

    /// The last durable entry; `None` when the log holds none.
    #[must_use]
    pub fn last_index(&self) -> Option<LogIndex> {
        (self.first_index() < self.durable_end()).then(|| LogIndex(self.durable_end().0 - 1))
    }

    /// Bytes that wait for the next [`sync`](Self::sync).
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.pending.bytes()
    }

    /// Segments that hold entries, and the bytes of their files.
    #[must_use]
    pub fn footprint(&self) -> (usize, u64) {
        let bytes = self.sealed.iter().chain([&self.active]).map(|segment| segment.file_bytes).sum();
        (self.sealed.len() + 1, bytes)
    }

    /// Buffers an entry and returns its index. It may be acknowledged once [`sync`](Self::sync) has returned.
    #[inline]
    pub fn append(&mut self, payload: &[u8]) -> Result<LogIndex, LogError> {
        self.append_with(|buffer| buffer.extend_from_slice(payload))
    }

    /// Buffers an entry whose payload `encode` writes in place: it appends to the buffer it is given and leaves the rest alone.
    #[inline]
    pub fn append_with(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> Result<LogIndex, LogError> {
        self.refuse_if_poisoned()?;
        self.pending.append_with(encode)
    }

    /// Makes all buffered entries durable, as one group: one write and one sync, unless the group crosses the end of a segment or
    /// [`LogOptions::group_bytes_max`]. Every entry before the index returned is durable. After a crash meanwhile all those that
    /// were buffered are there or none, however many groups they took.
    pub fn sync(&mut self) -> Result<LogIndex, LogError> {
        self.guarded(Self::write_and_sync)?;
        Ok(self.durable_end())
    }

    /// Hands all buffered entries to the operating system without waiting for the device: they survive the end of this process, but
    /// not of the machine, before the next [`sync`](Self::sync). All of one call or none. Readers do not see them yet.
    pub fn flush(&mut self) -> Result<(), LogError> {
        self.guarded(|log| log.write_pending(After::Nothing))
    }

    /// Writes an empty group, which proves to later openings that all entries before it were synced. Useful when the log becomes
    /// idle: damage to the last entries can then be distinguished from a torn tail.
    pub fn seal(&mut self) -> Result<(), LogError> {
        self.guarded(|log| {
            log.write_and_sync()?;
            if log.active.ends_with_seal {
                return Ok(());
            }
            log.prepare_for_empty_group()?;
            log.write_empty_group(GroupKind::Continue, log.durable_end())
        })
    }

    /// Syncs, seals and closes.
    pub fn close(mut self) -> Result<LogIndex, LogError> {
        self.seal()?;
        Ok(self.durable_end())
    }

    /// Reads durable entries from `from` on. The reader sees the log as it is now and is independent of the writer.
    pub fn reader(&self, from: LogIndex) -> Result<LogReader<D::File>, LogError> {
        if from < self.first_index() || from > self.durable_end() {
            return Err(LogError::OutOfRange { index: from, first: self.first_index(), end: self.durable_end() });
        }
        Ok(LogReader::new(self.sealed.iter().chain([&self.active]), from, self.durable_end()))
    }

    /// Whether [`truncate_prefix`](Self::truncate_prefix) would drop anything.
    #[must_use]
    pub fn can_let_go(&self, up_to: LogIndex) -> bool {
        self.sealed.front().is_some_and(|segment| segment.end_index <= up_to.next())
    }

    /// Drops entries up to and including `up_to`, in whole segments; returns the first entry still held. Costs one sync, whatever
    /// the number of segments. Up to [`LogOptions::spent_files_max`] files are kept for reuse, and
    /// [`maintenance`](Self::maintenance) removes the others; with [`LetGo::Keep`] it moves all of them into the history.
    pub fn truncate_prefix(&mut self, up_to: LogIndex) -> Result<LogIndex, LogError> {
        self.refuse_if_poisoned()?;
        if up_to >= self.durable_end() {
            return Err(LogError::OutOfRange { index: up_to, first: self.first_index(), end: self.durable_end() });
        }
        self.guarded(|log| {
            let droppable = log.sealed.iter().take_while(|segment| segment.end_index <= up_to.next()).count();
            if droppable == 0 {
                return Ok(());
            }
            log.write_and_sync()?;
            // The new floor is durable before any file is removed, so files may be removed in any order. Rolling may append to
            // `sealed` here.
            log.prepare_for_empty_group()?;
            let floor_index = log.sealed.get(droppable).unwrap_or(&log.active).first_index;
            log.pending.set_floor(floor_index);
            log.write_empty_group(GroupKind::Continue, log.durable_end())?;
            let gone = log.sealed.drain(..droppable).map(Segment::into_spent);
            match log.options.let_go {
                LetGo::Reuse => log.spent.extend(gone),
                LetGo::Keep => log.leaving.extend(gone),
            }
            Ok(())
        })?;
        Ok(self.first_index())
    }

    /// Removes entry `from` and all after it, buffered ones too; the next entry gets index `from`. Durable when it returns.
    pub fn truncate_suffix(&mut self, from: LogIndex) -> Result<(), LogError> {
        self.refuse_if_poisoned()?;
        if from < self.first_index() || from > self.next_index() {
            return Err(LogError::OutOfRange { index: from, first: self.first_index(), end: self.next_index() });
        }
        self.guarded(|log| {
            log.write_and_sync()?;
            if from == log.durable_end() {
                return Ok(());
            }
            log.prepare_spares(1)?;
            log.cut_at(from)
        })
    }

    /// Removes everything, buffered entries too; the next entry gets index `first_index`. For a follower that was sent a snapshot.
    /// Durable when it returns.
    pub fn reset_to(&mut self, first_index: LogIndex) -> Result<(), LogError> {
        self.guarded(|log| {
            log.prepare_spares(1)?;
            log.pending.set_floor(first_index);
            log.cut_at(first_index)?;
            log.spent.extend(log.sealed.drain(..).map(Segment::into_spent));
            Ok(())
        })
    }

    /// Returns slow work that is due, if any, for another thread or for idle time. To be called every few syncs; cheap if nothing
    /// is due.
    pub fn maintenance(&mut self) -> Option<Maintenance<D>> {
        self.collect_spare();
        let has_chores = self.spares.is_empty() || !self.trims.is_empty() || !self.leaving.is_empty() || self.has_surplus();
        if self.poisoned || self.spare_coming.is_some() || !has_chores {
            return None;
        }
        let recipe = Recipe::new(&self.dir, self.identity, self.next_segment_id, &self.options);
        let segment_bytes = recipe.segment_bytes;
        let prepare = self.spares.is_empty().then(|| {
            let again = recipe.take_spent(&mut self.spent);
            (recipe, again)
        });
        let (trims, leaving) = (std::mem::take(&mut self.trims), std::mem::take(&mut self.leaving));
        let chores = Chores { trims, leaving, surplus: self.take_surplus(), prepare };
        let (done, spare) = channel();
        let pace = Arc::new(Pace::default());
        self.spare_coming = Some(Coming { spare, pace: Arc::clone(&pace), segment_bytes });
        Some(Maintenance { disk: self.disk.clone(), dir: self.dir.clone(), chores, pace, done, _lock: Arc::clone(&self.lock) })
    }

    /// Runs the slow work that is due.
    pub fn maintain(&mut self) -> Result<(), LogError> {
        let Some(work) = self.maintenance() else { return Ok(()) };
        self.hurry();
        work.run()
    }

    /// Makes unfinished maintenance run without pauses, because the caller will wait for it.
    pub fn hurry(&self) {
        if let Some(coming) = &self.spare_coming {
            coming.pace.hurry();
        }
    }

    fn has_surplus(&self) -> bool {
        let LogOptions { segment_bytes, spent_files_max, .. } = self.options;
        self.spent.len() > spent_files_max || self.spent.iter().any(|file| file.file_bytes != segment_bytes)
    }

    /// Spent files to be removed: those with another length than segments have now, and surplus ones; oldest first.
    fn take_surplus(&mut self) -> Vec<SpentFile<D::File>> {
        let LogOptions { segment_bytes, spent_files_max, .. } = self.options;
        let (kept, mut surplus): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.spent).into_iter().partition(|file| file.file_bytes == segment_bytes);
        self.spent = kept;
        surplus.extend(self.spent.drain(..self.spent.len().saturating_sub(spent_files_max)));
        surplus
    }

    /// Runs `work` unless an earlier one failed; a failure is the last thing that happens, unless it came before any change.
    pub(crate) fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, LogError>) -> Result<T, LogError> {
        self.refuse_if_poisoned()?;
        let result = work(self);
        self.poisoned = result.as_ref().is_err_and(|error| !error.is_retryable());
        result
    }

    fn refuse_if_poisoned(&self) -> Result<(), LogError> {
        if self.poisoned { Err(LogError::Poisoned) } else { Ok(()) }
    }

    fn write_and_sync(&mut self) -> Result<(), LogError> {
        self.write_pending(After::Sync)?;
        self.sync_active()?;
        self.durable_end = self.active.end_index;
        Ok(())
    }

    fn write_pending(&mut self, after: After) -> Result<(), LogError> {
        let group_count = self.pending.finish();
        if let Some(last) = group_count.checked_sub(1) {
            let (segment_id, _) = self.pending.place_of(last);
            if segment_id != self.active.layout.segment_id {
                // All segments are made before a byte is written, so that a failure here has changed nothing.
                self.prepare_spares(segment_id - self.next_segment_id + 1)?;
            }
        }
        for at in 0..group_count {
            let (segment_id, offset) = self.pending.place_of(at);
            if segment_id != self.active.layout.segment_id {
                self.roll()?;
            }
            let writing = Writing {
                more_follows: at + 1 < group_count,
                continues_row: at > 0,
                not_synced: after == After::Nothing,
                unsynced_bytes: offset - self.synced_offset,
            };
            let (header, bytes) = self.pending.group(at, writing);
            write_group(&mut self.active, &header, bytes)?;
            if after == After::Sync {
                self.sync_active()?;
            }
        }
        self.pending.clear();
        if let Some(Coming { pace, segment_bytes, .. }) = &self.spare_coming {
            pace.keep_ahead_of(self.active.end_offset, self.active.file_bytes, *segment_bytes);
        }
        Ok(())
    }

    /// Syncs what was written to the active segment, if anything was since the last time.
    fn sync_active(&mut self) -> Result<(), LogError> {
        if self.synced_offset < self.active.end_offset {
            self.active.file.sync_data().during("sync", &self.active.path)?;
            self.synced_offset = self.active.end_offset;
        }
        Ok(())
    }

    fn write_empty_group(&mut self, kind: GroupKind, first_index: LogIndex) -> Result<(), LogError> {
        self.pending.append_empty_group(kind, first_index);
        self.write_and_sync()
    }

    /// Begins a segment whose first group cuts off the entries of older segments from `from` on.
    pub(crate) fn cut_at(&mut self, from: LogIndex) -> Result<(), LogError> {
        self.pending.restart(from, self.next_segment_id);
        self.write_empty_group(GroupKind::Cut, from)?;
        let kept = self.sealed.iter().take_while(|segment| segment.first_index < from).count();
        self.spent.extend(self.sealed.drain(kept..).map(Segment::into_spent));
        if let Some(last) = self.sealed.back_mut() {
            last.end_index = last.end_index.min(from);
            self.trims.extend(slack(last));
        }
        Ok(())
    }

    /// Makes the spare the active segment. Its header is durable already, so the next group needs no more than any other.
    fn roll(&mut self) -> Result<(), LogError> {
        // A group in a later segment proves that all before it was synced.
        self.sync_active()?;
        let spare = self.spares.pop_front().expect("it was prepared before anything was written");
        assert_eq!(spare.header.segment_id, self.next_segment_id, "segments are used in the order of their ids");
        self.next_segment_id += 1;
        let segment = spare.into_segment(self.active.end_index);
        self.synced_offset = segment.end_offset;
        self.sealed.push_back(std::mem::replace(&mut self.active, segment));
        Ok(())
    }

    /// Makes sure that the given number of segments is ready to follow the active one.
    pub(crate) fn prepare_spares(&mut self, count: u64) -> Result<(), LogError> {
        while (self.spares.len() as u64) < count {
            let spare = self.prepare_spare()?;
            self.push_spare(spare);
        }
        Ok(())
    }

    /// Makes room for a group of one block, when nothing else is buffered.
    fn prepare_for_empty_group(&mut self) -> Result<(), LogError> {
        if self.pending.is_at_end() { self.prepare_spares(1) } else { Ok(()) }
    }

    fn prepare_spare(&mut self) -> Result<Spare<D::File>, LogError> {
        if let Some(coming) = self.spare_coming.take() {
            // Waits for the maintenance in progress. When that failed or was dropped, the segment is prepared below.
            coming.pace.hurry();
            if let Ok(spare) = coming.spare.recv() {
                return Ok(spare);
            }
        }
        let segment_id = self.next_segment_id + self.spares.len() as u64;
        let recipe = Recipe::new(&self.dir, self.identity, segment_id, &self.options);
        match recipe.take_spent(&mut self.spent) {
            Some(file) => recipe.recycle(&self.disk, file),
            None => recipe.create(&self.disk, &Pace::hurried()),
        }
    }

    fn push_spare(&mut self, spare: Spare<D::File>) {
        let segment_id = self.next_segment_id + self.spares.len() as u64;
        assert_eq!(spare.header.segment_id, segment_id, "segments are prepared in the order of their ids");
        self.spares.push_back(spare);
    }

    fn collect_spare(&mut self) {
        let Some(coming) = &self.spare_coming else { return };
        match coming.spare.try_recv() {
            Ok(spare) => {
                self.spare_coming = None;
                self.push_spare(spare);
            }
            Err(TryRecvError::Disconnected) => self.spare_coming = None,
            Err(TryRecvError::Empty) => {}
        }
    }
}

/// A log after a failure, until it is opened again. No other process can open it meanwhile.
#[derive(Debug)]
pub struct FailedLog<D: Disk> {
    disk: D,
    dir: PathBuf,
    options: LogOptions,
    lock: Arc<D::Lock>,
}

impl<D: Disk> FailedLog<D> {
    /// Opens the log again. Its entries are then on the device, and an unfinished write at its end is cut. A log that ends before
    /// `durable_floor` is refused. May be repeated after a failure.
    ///
    /// # Errors
    /// The disk's, or the refusal of a log that lost data.
    pub fn open(&self, durable_floor: Option<LogIndex>) -> Result<LogWriter<D>, LogError> {
        let options = LogOptions { durable_floor, ..self.options.clone() };
        open::open_again(self.disk.clone(), &self.dir, options, Arc::clone(&self.lock))
    }
}

/// What follows the write of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// Its sync, before anything else is written.
    Sync,
    /// Nothing.
    Nothing,
}

/// One write.
fn write_group<F: DiskFile>(active: &mut Segment<F>, header: &GroupHeader, bytes: &[u8]) -> Result<(), LogError> {
    assert_eq!(header.offset, active.end_offset, "groups are written at increasing offsets without gaps");
    active.file.write_all_at(bytes, header.offset).during("write to", &active.path)?;
    if header.kind == GroupKind::Cut {
        active.first_index = header.first_index;
    }
    note(&mut active.marks, header.first_index, header.offset);
    active.end_index = header.end_index();
    active.end_offset = header.offset + bytes.len() as u64;
    active.ends_with_seal = header.record_count == 0;
    Ok(())
}

/// What to cut off a sealed file when it is mostly empty. A small rest stays, so that the file can be recycled.
pub(crate) fn slack<F>(sealed: &mut Segment<F>) -> Option<Trim<F>> {
    if sealed.file_bytes.saturating_sub(sealed.end_offset) <= sealed.file_bytes / 4 {
        return None;
    }
    sealed.file_bytes = sealed.end_offset;
    sealed.layout.end = sealed.end_offset;
    Some(Trim { file: Arc::clone(&sealed.file), path: sealed.path.clone(), len: sealed.end_offset })
}

/// Locks a folder, or returns the error for a locked one.
pub(crate) fn lock<D: Disk>(disk: &D, dir: &Path, kind: LockKind) -> Result<D::Lock, LogError> {
    disk.lock_dir(dir, kind).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => LogError::Locked { dir: dir.to_path_buf() },
        std::io::ErrorKind::NotFound => LogError::NotFound { dir: dir.to_path_buf() },
        _ => LogError::io("lock", dir, error),
    })
}
