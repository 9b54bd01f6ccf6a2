//! Snapshots received from other replicas, piece by piece, several at a time.
//!
//! For a while there may be two leaders, one that does not know yet that it was replaced, and both may send. Each transfer has its
//! own file, so an interrupted one does not affect the others.

use std::collections::BTreeMap;

use walras_consensus::ReplicaId;
use walras_log_store::Disk;

use crate::error::SnapshotError;
use crate::snapshots::{SnapshotInfo, SnapshotWriter};

/// Maximum number of concurrent transfers. A further one replaces the one that made no progress for longest, so a lost sender does
/// not occupy disk space forever.
pub const INCOMING_MAX: usize = 4;

/// Identifies a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IncomingId {
    /// The sender.
    pub from: ReplicaId,
    /// The sender's number for it.
    pub number: u64,
}

/// The incomplete snapshots.
#[derive(Debug)]
pub struct Incoming<D: Disk> {
    coming: BTreeMap<IncomingId, Coming<D>>,
    /// Number of pieces added to any of them.
    steps: u64,
}

#[derive(Debug)]
struct Coming<D: Disk> {
    writer: SnapshotWriter<D>,
    /// Value of `steps` when a piece was last added to it.
    last_step: u64,
}

impl<D: Disk> Default for Incoming<D> {
    fn default() -> Self {
        Self { coming: BTreeMap::new(), steps: 0 }
    }
}

impl<D: Disk> Incoming<D> {
    /// Starts without transfers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a transfer. If there were [`INCOMING_MAX`], returns the one that is given up for it; its sender must be notified.
    pub fn begin(&mut self, id: IncomingId, writer: SnapshotWriter<D>) -> Option<IncomingId> {
        self.coming.remove(&id);
        let is_full = self.coming.len() >= INCOMING_MAX;
        let stalest = self.coming.iter().filter(|_| is_full).min_by_key(|(_, coming)| coming.last_step).map(|(id, _)| *id);
        if let Some(stalest) = stalest {
            self.coming.remove(&stalest);
        }
        let last_step = self.step();
        self.coming.insert(id, Coming { writer, last_step });
        stalest
    }

    /// Adds a piece of the state. Pieces of a transfer that was given up are ignored.
    ///
    /// # Errors
    /// As [`SnapshotWriter::append`]; the transfer is then given up.
    pub fn append(&mut self, id: IncomingId, piece: &[u8]) -> Result<(), SnapshotError> {
        let last_step = self.step();
        let Some(coming) = self.coming.get_mut(&id) else { return Ok(()) };
        coming.last_step = last_step;
        let appended = coming.writer.append(piece);
        if appended.is_err() {
            self.coming.remove(&id);
        }
        appended
    }

    /// Makes a complete snapshot durable, if it matches its announcement.
    ///
    /// # Errors
    /// As [`SnapshotWriter::finish`]; [`SnapshotError::NotComing`] if the transfer never began or was given up.
    pub fn finish(&mut self, id: IncomingId) -> Result<SnapshotInfo, SnapshotError> {
        self.coming.remove(&id).ok_or(SnapshotError::NotComing { from: id.from })?.writer.finish()
    }

    /// Gives up a transfer.
    pub fn give_up(&mut self, id: IncomingId) {
        self.coming.remove(&id);
    }

    fn step(&mut self) -> u64 {
        self.steps += 1;
        self.steps
    }
}
