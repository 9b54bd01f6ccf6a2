//! Snapshots that come from other replicas, piece by piece, several side by side.
//!
//! There may be two leaders for a while, one of which does not know yet that it is none, and both may send. Each transfer has a file of its
//! own, so that they do not spoil each other's: one that is cut short must cost the others nothing.

use std::collections::BTreeMap;

use walras_consensus::ReplicaId;
use walras_log_store::Disk;

use crate::error::SnapshotError;
use crate::snapshots::{SnapshotInfo, SnapshotWriter};

/// Snapshots that come side by side. One more takes the place of the one to which nothing was added for longest: a sender that is heard
/// no more holds no disk for ever.
pub const INCOMING_MAX: usize = 4;

/// Which one of those that come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IncomingId {
    /// Who sends it.
    pub from: ReplicaId,
    /// Its number among those that this one sent.
    pub number: u64,
}

/// The snapshots that come and are not whole yet.
#[derive(Debug)]
pub struct Incoming<D: Disk> {
    coming: BTreeMap<IncomingId, Coming<D>>,
    /// How often anything was added to any.
    steps: u64,
}

#[derive(Debug)]
struct Coming<D: Disk> {
    writer: SnapshotWriter<D>,
    /// When something was last added to it, in steps.
    last_step: u64,
}

impl<D: Disk> Default for Incoming<D> {
    fn default() -> Self {
        Self { coming: BTreeMap::new(), steps: 0 }
    }
}

impl<D: Disk> Incoming<D> {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One begins to come. Says which other one is given up for it, if there were [`INCOMING_MAX`]: its sender has to be told.
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

    /// Adds a piece of its state. Of one that is not coming any more pieces may still be on their way: they are passed over.
    ///
    /// # Errors
    /// As [`SnapshotWriter::append`]; then it is given up.
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

    /// All of it came: makes it durable, if it is what was announced.
    ///
    /// # Errors
    /// As [`SnapshotWriter::finish`]; [`SnapshotError::NotComing`] when it never began or was given up.
    pub fn finish(&mut self, id: IncomingId) -> Result<SnapshotInfo, SnapshotError> {
        self.coming.remove(&id).ok_or(SnapshotError::NotComing { from: id.from })?.writer.finish()
    }

    /// The rest of it will not come.
    pub fn give_up(&mut self, id: IncomingId) {
        self.coming.remove(&id);
    }

    fn step(&mut self) -> u64 {
        self.steps += 1;
        self.steps
    }
}
