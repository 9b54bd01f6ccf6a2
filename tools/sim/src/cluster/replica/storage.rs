//! The work of the threads that the node has next to the replica's own: one writes and syncs the log, one writes snapshots.

use std::collections::VecDeque;

use walras_consensus::{Durability, Slot, SnapshotMeta, Ticket, Write};
use walras_replica::engine_hash;
use walras_replica_log::{Attempt, DurableWriter, ReplicaLog, Snapshots, Upkeep};
use walras_types::LogIndex;

use crate::cluster::mutation::Mutation;
use crate::common::disk::VenueDisk;

/// Asked of the log's thread.
pub(super) enum LogJob {
    Write(Write),
    LetGo(SnapshotMeta),
}

/// The log, the snapshots, and what is asked of them.
pub(super) struct Storage {
    pub(super) log: DurableWriter<VenueDisk>,
    pub(super) snapshots: Snapshots<VenueDisk>,
    /// What the log's thread has not heard of yet.
    pub(super) jobs: VecDeque<LogJob>,
    pub(super) durability: Durability,
    /// Written, and being synced: the last ticket of it.
    pub(super) syncing: Option<Ticket>,
    /// Where memory counts: what waits is about to be written.
    pub(super) is_writing: bool,
    /// An attempt failed, and the next one is planned.
    pub(super) is_retrying: bool,
    /// States that wait to be written.
    pub(super) states: VecDeque<(SnapshotMeta, Vec<u8>)>,
    pub(super) upkeep: Option<Upkeep<VenueDisk>>,
    pub(super) written_count: u64,
    mutation: Option<Mutation>,
}

impl Storage {
    pub(super) fn new(
        log: ReplicaLog<VenueDisk>,
        snapshots: Snapshots<VenueDisk>,
        durability: Durability,
        mutation: Option<Mutation>,
    ) -> Self {
        let log = DurableWriter::new(log);
        let (jobs, states) = (VecDeque::new(), VecDeque::new());
        let (syncing, is_writing, is_retrying, upkeep) = (None, false, false, None);
        Self { log, snapshots, jobs, durability, syncing, is_writing, is_retrying, states, upkeep, written_count: 0, mutation }
    }

    /// Whether the log's thread has something to do. After a failure it has, with nothing to write either: only an attempt finds
    /// out that the disk is back, and until then no command is taken that would have to be written.
    pub(super) fn has_work(&self) -> bool {
        !self.jobs.is_empty() || self.log.is_owing() || self.log.next_attempt_ns().is_some()
    }

    /// Hands what waits to the operating system, all at once.
    pub(super) fn hand_over(&mut self, now_ns: u64) -> Attempt {
        self.take_jobs();
        self.attempt(now_ns, DurableWriter::flush)
    }

    /// Makes it durable.
    pub(super) fn end_sync(&mut self, now_ns: u64) -> Attempt {
        self.syncing = None;
        let attempt = self.attempt(now_ns, DurableWriter::sync);
        if self.upkeep.is_none() {
            self.upkeep = self.log.upkeep(now_ns);
        }
        attempt
    }

    fn take_jobs(&mut self) {
        for job in self.jobs.drain(..) {
            match job {
                LogJob::Write(write) => self.log.take(write),
                LogJob::LetGo(meta) => self.log.let_go(meta),
            }
        }
    }

    fn attempt(&mut self, now_ns: u64, act: impl FnOnce(&mut DurableWriter<VenueDisk>, u64) -> Attempt) -> Attempt {
        // The log would wait for it, and here is nobody else who does it.
        self.keep_up();
        let attempt = act(&mut self.log, now_ns);
        self.log.attempt_ended(now_ns);
        attempt
    }

    /// Writes what waits and leaves the mark of an orderly stop.
    pub(super) fn close(mut self) -> Result<(), String> {
        self.take_jobs();
        self.keep_up();
        self.log.close().map_err(|e| e.to_string())
    }

    /// Prepares and removes segments.
    pub(super) fn keep_up(&mut self) {
        if let Some(upkeep) = self.upkeep.take() {
            // A failure costs nothing yet.
            let _ = upkeep.run();
        }
    }

    /// Takes a state that is to be written.
    pub(super) fn take_state(&mut self, meta: SnapshotMeta, state: Vec<u8>) {
        if self.mutation == Some(Mutation::LetGoBeforeSnapshot) {
            self.jobs.push_back(LogJob::LetGo(meta.clone()));
        }
        self.states.push_back((meta, state));
    }

    /// The entry and the hash of the state that has waited longest.
    pub(super) fn hash_state(&self) -> Option<(LogIndex, [u8; 32])> {
        let (meta, state) = self.states.front()?;
        Some((meta.log_index, engine_hash(state)?))
    }

    /// Writes the state that has waited longest; `None` when that fails, which costs only that the log keeps what it would have
    /// replaced.
    pub(super) fn write_state(&mut self) -> Option<SnapshotMeta> {
        let (meta, state) = self.states.pop_front()?;
        let mut writer = self.snapshots.begin(meta.clone()).ok()?;
        writer.append(&state).ok()?;
        writer.finish().ok()?;
        self.written_count += 1;
        Some(meta)
    }

    /// Removes the snapshots to which the log does not reach back.
    pub(super) fn remove_old(&self) {
        // A failure costs space; the next call tries again.
        if let Some(log) = self.log.log() {
            let _ = self.snapshots.remove_before(log.oldest_snapshot());
        }
    }

    /// The state of a snapshot.
    pub(super) fn read(&self, slot: Slot) -> Result<Vec<u8>, String> {
        self.snapshots.read(slot).and_then(walras_replica_log::SnapshotReader::read_all).map_err(|e| e.to_string())
    }
}
