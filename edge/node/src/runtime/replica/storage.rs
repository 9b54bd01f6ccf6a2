//! The threads that wait for the disk: one writes and syncs the log, one writes and receives snapshots.

use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use tracing::{error, info, warn};
use walras_consensus::{Durability, SnapshotMeta, Ticket, Write};
use walras_log_store::Disk;
use walras_peer_link::SnapshotId;
use walras_replica_log::{ReplicaLog, SnapshotInfo, SnapshotWriter, Snapshots};

use super::doorbell::Doorbell;
use crate::runtime::frozen::FrozenState;

/// Asked of the log's thread.
pub(super) enum LogJob {
    /// Make this durable, or with [`Durability::Memory`] hand it to the operating system.
    Write(Write),
    /// What is before this snapshot may go.
    LetGo(SnapshotMeta),
}

/// What it says.
pub(super) enum LogDone {
    /// This write and those before it are as durable as they need to be.
    Persisted(Ticket),
    /// The disk failed; it takes nothing more.
    Failed(String),
}

/// With nothing to write for this long, the log is sealed.
const IDLE: Duration = Duration::from_millis(200);
/// In memory mode, the longest that something lies unsynced.
const MEMORY_SYNC_EVERY: Duration = Duration::from_millis(20);

pub(super) struct LogThread<D: Disk> {
    pub(super) log: ReplicaLog<D>,
    pub(super) durability: Durability,
    pub(super) jobs: Receiver<LogJob>,
    pub(super) done: Sender<LogDone>,
    pub(super) doorbell: Doorbell,
}

impl<D: Disk> LogThread<D> {
    /// Until nobody asks any more.
    pub(super) fn run(mut self) {
        let begun = Instant::now();
        let mut unsynced_since: Option<Instant> = None;
        let mut is_sealed = true;
        loop {
            let wait = match unsynced_since {
                Some(since) => MEMORY_SYNC_EVERY.saturating_sub(since.elapsed()),
                None if is_sealed => Duration::from_secs(3600),
                None => IDLE,
            };
            let first = match self.jobs.recv_timeout(wait) {
                Ok(job) => job,
                Err(RecvTimeoutError::Timeout) if unsynced_since.take().is_some() => {
                    if let Err(e) = self.log.sync() {
                        return self.fail(&e.to_string());
                    }
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {
                    is_sealed = true;
                    if let Err(e) = self.log.sync().and_then(|_| self.log.seal()) {
                        return self.fail(&e.to_string());
                    }
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            is_sealed = false;
            // Whatever waits goes with it: one sync for all.
            let mut last = None;
            for job in std::iter::once(first).chain(self.jobs.try_iter()) {
                let took = match job {
                    LogJob::Write(write) => {
                        last = Some(write.ticket);
                        self.log.write(&write)
                    }
                    LogJob::LetGo(meta) => self.log.let_go(&meta),
                };
                if let Err(e) = took {
                    return self.fail(&e.to_string());
                }
            }
            let Some(ticket) = last else { continue };
            let persisted = match self.durability {
                Durability::Disk => self.log.sync().map(|_| ()),
                Durability::Memory => self.log.flush(),
            };
            if let Err(e) = persisted {
                return self.fail(&e.to_string());
            }
            self.tell(LogDone::Persisted(ticket));
            if self.durability == Durability::Memory
                && unsynced_since.get_or_insert_with(Instant::now).elapsed() >= MEMORY_SYNC_EVERY
            {
                unsynced_since = None;
                if let Err(e) = self.log.sync() {
                    return self.fail(&e.to_string());
                }
            }
            let now_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            if let Some(upkeep) = self.log.upkeep(now_ns) {
                let spawned = std::thread::Builder::new().name("walras-segment".into()).spawn(move || {
                    if let Err(e) = upkeep.run() {
                        warn!("the log's next segment could not be prepared: {e}");
                    }
                });
                if let Err(e) = spawned {
                    warn!("no thread to prepare the log's next segment: {e}; the log's own thread will do it");
                }
            }
        }
        if let Err(e) = self.log.close() {
            error!("the log could not be closed in good order: {e}");
        }
    }

    fn tell(&self, done: LogDone) {
        // A replica that is gone hears nothing.
        let _ = self.done.send(done);
        self.doorbell.ring();
    }

    fn fail(&self, why: &str) {
        self.tell(LogDone::Failed(why.to_owned()));
    }
}

/// Asked of the snapshots' thread.
pub(super) enum SnapshotJob {
    /// Make our own state durable.
    Write { meta: SnapshotMeta, state: Box<FrozenState> },
    /// Another replica begins to send one, to be followed by chunks and an end.
    Begin { info: SnapshotInfo },
    /// Bytes of it.
    Chunk { from: walras_consensus::ReplicaId, id: SnapshotId, bytes: bytes::Bytes },
    /// It is whole; `message` announces it to the consensus.
    End { from: walras_consensus::ReplicaId, id: SnapshotId, message: bytes::Bytes },
    /// The rest will not come.
    GiveUp,
    /// Earlier ones are needed no more.
    RemoveBefore(walras_consensus::Slot),
}

/// What it says.
pub(super) enum SnapshotDone {
    /// Our state is durable.
    Written(SnapshotMeta),
    /// It is not; the log keeps what it would have replaced.
    NotWritten(String),
    /// So many bytes of a chunk were dealt with.
    Taken { from: walras_consensus::ReplicaId, id: SnapshotId, bytes: usize },
    /// A received one is durable, or refused.
    Received { from: walras_consensus::ReplicaId, id: SnapshotId, message: Result<bytes::Bytes, String> },
}

pub(super) struct SnapshotThread<D: Disk> {
    pub(super) store: Snapshots<D>,
    pub(super) jobs: Receiver<SnapshotJob>,
    pub(super) done: Sender<SnapshotDone>,
    pub(super) doorbell: Doorbell,
}

impl<D: Disk> SnapshotThread<D> {
    /// Until nobody asks any more.
    pub(super) fn run(self) {
        let mut receiving: Option<Result<SnapshotWriter<D>, String>> = None;
        for job in &self.jobs {
            match job {
                SnapshotJob::Write { meta, state } => self.tell(self.write(meta, *state)),
                SnapshotJob::Begin { info } => receiving = Some(self.store.receive(info).map_err(|e| e.to_string())),
                SnapshotJob::Chunk { from, id, bytes } => {
                    if let Some(Ok(writer)) = &mut receiving
                        && let Err(e) = writer.append(&bytes)
                    {
                        receiving = Some(Err(e.to_string()));
                    }
                    self.tell(SnapshotDone::Taken { from, id, bytes: bytes.len() });
                }
                SnapshotJob::End { from, id, message } => {
                    let finished = match receiving.take() {
                        Some(Ok(writer)) => writer.finish().map(|_| message).map_err(|e| e.to_string()),
                        Some(Err(why)) => Err(why),
                        None => Err("its beginning did not come".to_owned()),
                    };
                    self.tell(SnapshotDone::Received { from, id, message: finished });
                }
                SnapshotJob::GiveUp => receiving = None,
                SnapshotJob::RemoveBefore(slot) => {
                    if let Err(e) = self.store.remove_before(slot) {
                        warn!("old snapshots could not be removed, which costs only space: {e}");
                    }
                }
            }
        }
    }

    fn write(&self, meta: SnapshotMeta, state: FrozenState) -> SnapshotDone {
        let begun = Instant::now();
        let state = state.encode();
        let written = self.store.begin(meta.clone()).and_then(|mut writer| {
            writer.append(&state)?;
            writer.finish()
        });
        match written {
            Ok(_) => {
                info!("snapshot of entry {} (slot {}): {} bytes in {:?}", meta.log_index, meta.slot, state.len(), begun.elapsed());
                SnapshotDone::Written(meta)
            }
            Err(e) => SnapshotDone::NotWritten(e.to_string()),
        }
    }

    fn tell(&self, done: SnapshotDone) {
        let _ = self.done.send(done);
        self.doorbell.ring();
    }
}
