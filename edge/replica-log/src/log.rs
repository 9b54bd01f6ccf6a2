//! The log of a replica: writing, reading, and dropping its start.

use crate::content::Content;
use crate::error::{OpenError, ReplicaLogError};
use crate::identity::Identity;
use crate::open::{self, Opened, Options};
use crate::record::{put_closed, put_head, put_installed, put_slot, put_state, slot_record_bytes};
use crate::slots::{DecidedReader, SlotReader};
use crate::snapshots::Snapshots;
use crate::upkeep::{Upkeep, UpkeepOut};
use std::ops::Range;
use std::path::{Path, PathBuf};
use walras_consensus::{DurableLog, Recovered, Slot, SnapshotMeta, Ticket, Write};
use walras_log_store::{Disk, FailedLog, LogWriter};
use walras_types::LogIndex;

/// The durable log of one replica.
///
/// [`write`](Self::write) accepts a write, [`flush`](Self::flush) hands it to the operating system, [`sync`](Self::sync) makes it
/// durable. After a failure that is not [retryable](ReplicaLogError::is_retryable), all calls return [`ReplicaLogError::Failed`],
/// and writes since the last sync may be on the disk or not. [`crate::DurableWriter`] then opens the log again and repeats them.
#[derive(Debug)]
pub struct ReplicaLog<D: Disk> {
    pub(crate) disk: D,
    pub(crate) dir: PathBuf,
    pub(crate) identity: Identity,
    pub(crate) options: Options,
    pub(crate) log: LogWriter<D>,
    /// Includes what is not durable yet.
    pub(crate) content: Content,
    pub(crate) snapshots: Snapshots<D>,
    /// The snapshot from which the log continues, and the slot of the one before it, to which the log reaches back.
    pub(crate) newest: SnapshotMeta,
    pub(crate) oldest_snapshot: Slot,
    /// A snapshot installed by a write that is not durable yet, and its record.
    pub(crate) installing: Option<(SnapshotMeta, LogIndex)>,
    pub(crate) last_ticket: Ticket,
    pub(crate) failed: bool,
    pub(crate) upkeep: UpkeepOut,
}

impl<D: Disk> ReplicaLog<D> {
    /// Opens the log and the snapshots in `dir`, or makes them if there are none. Returns the state from which the replica starts.
    pub fn open(disk: D, dir: &Path, identity: Identity, options: Options) -> Result<Opened<D>, OpenError> {
        open::open(disk, dir, identity, options)
    }

    /// Opens the log again for a replica that restarts. Waits for unfinished [`Upkeep`].
    pub fn reopen(mut self) -> Result<Opened<D>, OpenError> {
        self.log.hurry();
        self.upkeep.wait();
        let Self { disk, dir, identity, options, log, snapshots, .. } = self;
        // Releases its lock first.
        drop(log);
        open::open_live(disk, &dir, identity, options, snapshots)
    }

    /// Accepts a write, without I/O. After a crash, all of it or nothing is there, and never without the writes before it.
    ///
    /// # Panics
    ///
    /// When tickets or slots do not follow those before.
    pub fn write(&mut self, write: &Write) -> Result<(), ReplicaLogError> {
        let bytes_max = self.options.log.entry_bytes_max();
        let too_long =
            write.entries.iter().map(|entry| (entry.slot, slot_record_bytes(entry))).find(|(_, bytes)| *bytes > bytes_max);
        self.guarded(|log| {
            if let Some((slot, bytes)) = too_long {
                return Err(ReplicaLogError::SlotTooLong { slot, bytes, bytes_max });
            }
            assert!(write.ticket > log.last_ticket, "tickets ascend");
            log.last_ticket = write.ticket;
            log.log.append_with(|bytes| put_state(bytes, &write.hard_state))?;
            log.content.hard_state = write.hard_state;
            if let Some(meta) = &write.installed {
                let record = log.log.append_with(|bytes| put_installed(bytes, meta))?;
                log.content.note_installed(record, meta.clone());
                log.installing = Some((meta.clone(), record));
            }
            for entry in &write.entries {
                let record = log.log.append_with(|bytes| put_slot(bytes, entry))?;
                let noted = log.content.note_slot(record, entry.slot, entry.term);
                assert_eq!(noted, Ok(()), "slots are written without gaps");
            }
            Ok(())
        })
    }

    /// Hands all writes to the operating system: they survive the end of this process, but not of the machine.
    /// [`walras_consensus::Durability::Memory`] requires this before anything that depends on the write is sent.
    pub fn flush(&mut self) -> Result<(), ReplicaLogError> {
        self.guarded(|log| Ok(log.log.flush()?))
    }

    /// Makes all writes durable, with one write and one sync; returns the last ticket, for
    /// [`walras_consensus::Replica::on_persisted`].
    pub fn sync(&mut self) -> Result<Ticket, ReplicaLogError> {
        self.guarded(|log| {
            log.sync_records()?;
            if let Some((meta, record)) = log.installing.take() {
                (log.oldest_snapshot, log.newest) = (meta.slot, meta);
                log.release(record)?;
            }
            Ok(log.last_ticket)
        })
    }

    /// The state at `snapshot` is durable. Slots before the snapshot before it go, as far as they fill whole segments. With
    /// other members, [`Options::retained_slots`] before the new one stay, for those that are behind. Costs nothing, or
    /// three syncs where segments go, however many.
    pub fn let_go(&mut self, snapshot: &SnapshotMeta) -> Result<(), ReplicaLogError> {
        self.guarded(|log| {
            if snapshot.slot <= log.newest.slot {
                return Ok(());
            }
            let oldest = log.newest.slot;
            let retained_slots = if snapshot.members.is_one() { 0 } else { log.options.retained_slots };
            let retained = Slot(snapshot.slot.0.saturating_sub(retained_slots));
            if let Some(record) = log.content.record_at(oldest.min(retained)) {
                log.release(record)?;
            }
            // Only now, because after a failure the call is repeated.
            (log.oldest_snapshot, log.newest) = (oldest, snapshot.clone());
            Ok(())
        })
    }

    /// The snapshot to which the log reaches back. Earlier ones are no longer needed: [`Snapshots::remove_before`].
    #[must_use]
    pub fn oldest_snapshot(&self) -> Slot {
        self.oldest_snapshot
    }

    /// The durable slots on this disk. Undecided ones may still be replaced.
    #[must_use]
    pub fn slots(&self) -> Range<Slot> {
        let end = self.content.end_before(self.log.durable_end());
        self.content.first_slot().unwrap_or(end)..end
    }

    /// Reads durable slots, for a follower that lacks slots no longer in memory. Takes 8 bytes per slot, so read a few thousand at
    /// a time.
    pub fn read_slots(&self, slots: Range<Slot>) -> Result<SlotReader<D::File>, ReplicaLogError> {
        let held = self.slots();
        if slots.start < held.start || slots.end > held.end {
            return Err(ReplicaLogError::NotHeld { first: held.start, end: held.end });
        }
        SlotReader::new(&self.content, slots, &|from| self.log.reader(from))
    }

    /// Reads packs from the one with entry `from` up to and including slot `decided`, the last one that the replica delivered.
    pub fn decided(&self, from: LogIndex, decided: Slot) -> Result<DecidedReader<D::File>, ReplicaLogError> {
        let anchors = open::anchors(&self.content, &self.snapshots.list());
        let end = self.slots().end.min(decided.next());
        DecidedReader::new(&self.content, &anchors, from, end, &|from| self.log.reader(from))
    }

    /// For idle times: later damage to the last writes can then be distinguished from a crash.
    pub fn seal(&mut self) -> Result<(), ReplicaLogError> {
        self.guarded(|log| Ok(log.log.seal()?))
    }

    /// Makes everything durable and marks an orderly stop. Waits for unfinished [`Upkeep`].
    pub fn close(mut self) -> Result<(), ReplicaLogError> {
        self.log.hurry();
        self.upkeep.wait();
        self.sync()?;
        self.log.append_with(put_closed)?;
        self.log.close()?;
        Ok(())
    }

    /// Returns slow work that is due, if any. To be called after every sync; cheap if nothing is due. One piece of work is out at a
    /// time; after a failed one, the next comes a second later at the earliest. `now_ns` counts from any epoch.
    pub fn upkeep(&mut self, now_ns: u64) -> Option<Upkeep<D>> {
        if self.failed || !self.upkeep.may_begin(now_ns) {
            return None;
        }
        self.log.maintenance().map(|work| self.upkeep.begin(now_ns, work))
    }

    /// The number of segments with records, and the bytes of their files.
    #[must_use]
    pub fn footprint(&self) -> (usize, u64) {
        self.log.footprint()
    }

    /// The replica's snapshots.
    #[must_use]
    pub fn snapshots(&self) -> &Snapshots<D> {
        &self.snapshots
    }

    /// Keeps the state that does not depend on the disk, and the folder's lock. Waits for unfinished [`Upkeep`].
    pub(crate) fn into_failed(mut self) -> FailedReplicaLog<D> {
        self.log.hurry();
        self.upkeep.wait();
        let Self { disk, dir, identity, options, log, snapshots, newest, oldest_snapshot, .. } = self;
        FailedReplicaLog { disk, dir, identity, options, log: log.into_failed(), snapshots, newest, oldest_snapshot }
    }

    pub(crate) fn sync_records(&mut self) -> Result<(), ReplicaLogError> {
        let end = self.log.sync()?;
        self.snapshots.note_log_end(end.0);
        Ok(())
    }

    /// Drops whole segments before a record. What must survive is written again first.
    fn release(&mut self, record: LogIndex) -> Result<(), ReplicaLogError> {
        let up_to = LogIndex(record.0.saturating_sub(1));
        if !self.log.can_let_go(up_to) {
            return Ok(());
        }
        let Self { log, identity, content, .. } = self;
        log.append_with(|bytes| put_head(bytes, identity))?;
        log.append_with(|bytes| put_state(bytes, &content.hard_state))?;
        self.sync_records()?;
        let first = self.log.truncate_prefix(up_to)?;
        self.content.forget_before(first);
        Ok(())
    }

    /// Runs `work` unless an earlier call failed. A failure is final, unless the same call may be repeated.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, ReplicaLogError>) -> Result<T, ReplicaLogError> {
        if self.failed {
            return Err(ReplicaLogError::Failed);
        }
        let result = work(self);
        self.failed = result.as_ref().is_err_and(|error| !error.is_retryable());
        result
    }
}

/// A replica's log after a failure, until it is opened again.
#[derive(Debug)]
pub(crate) struct FailedReplicaLog<D: Disk> {
    disk: D,
    dir: PathBuf,
    identity: Identity,
    options: Options,
    log: FailedLog<D>,
    snapshots: Snapshots<D>,
    newest: SnapshotMeta,
    oldest_snapshot: Slot,
}

impl<D: Disk> FailedReplicaLog<D> {
    /// Opens the log again with what reached the device: everything durable, and a prefix of the later writes. May be repeated
    /// after a failure.
    pub(crate) fn open(&self) -> Result<ReplicaLog<D>, OpenError> {
        let log_end = self.snapshots.log_end();
        let log = self.log.open((log_end > 1).then(|| LogIndex(log_end - 1)))?;
        let content = open::scan_own(&log, &self.dir, &self.identity)?;
        self.snapshots.note_log_end(log.durable_end().0);
        let Self { disk, dir, identity, options, snapshots, newest, oldest_snapshot, .. } = self;
        Ok(ReplicaLog {
            disk: disk.clone(),
            dir: dir.clone(),
            identity: identity.clone(),
            options: options.clone(),
            log,
            content,
            snapshots: snapshots.clone(),
            newest: newest.clone(),
            oldest_snapshot: *oldest_snapshot,
            installing: None,
            last_ticket: Ticket(0),
            failed: false,
            upkeep: UpkeepOut::default(),
        })
    }
}

impl<D: Disk> DurableLog for ReplicaLog<D> {
    type Error = ReplicaLogError;

    fn write(&mut self, write: Write) -> Result<(), ReplicaLogError> {
        Self::write(self, &write)
    }

    fn sync(&mut self) -> Result<Ticket, ReplicaLogError> {
        Self::sync(self)
    }

    fn let_go(&mut self, snapshot: SnapshotMeta) -> Result<(), ReplicaLogError> {
        Self::let_go(self, &snapshot)
    }

    /// Reads the durable state from the disk.
    fn recover(&self) -> Result<Recovered, ReplicaLogError> {
        let read = || {
            let content = open::scan_own(&self.log, &self.dir, &self.identity)?;
            open::recovered(&self.log, &self.dir, &content, &self.snapshots)
        };
        read().map(|found| found.recovered).map_err(|error| ReplicaLogError::Open(Box::new(error)))
    }
}
