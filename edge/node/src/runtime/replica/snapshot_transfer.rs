//! Snapshots on their way between replicas, and what a replica reads and writes of its disk at once.

use std::io::{self, Read};

use tracing::warn;
use walras_consensus::SnapshotMeta;
use walras_log_store::{Disk, DiskFile};
use walras_replica::ReplicaDisk;
use walras_replica_log::{Note, SnapshotInfo, SnapshotReader, Snapshots};

/// What a replica reads and writes at once.
pub(super) struct ReplicaFiles<D: Disk> {
    pub(super) store: Snapshots<D>,
    /// What it knows of the cluster's disks.
    pub(super) note: Note<D>,
    /// Whether that could not be written the last time.
    pub(super) is_note_failing: bool,
}

impl<D: Disk> ReplicaDisk for ReplicaFiles<D> {
    fn read_snapshot(&mut self, meta: &SnapshotMeta) -> Result<Vec<u8>, String> {
        self.store.read(meta.slot).and_then(SnapshotReader::read_all).map_err(|e| e.to_string())
    }

    fn keep_introductions(&mut self, bytes: &[u8]) -> Result<(), String> {
        let written = self.note.write(bytes).map_err(|e| e.to_string());
        let was_failing = std::mem::replace(&mut self.is_note_failing, written.is_err());
        if let Some(why) = written.as_ref().err().filter(|_| !was_failing) {
            warn!("what is known of the other replicas' disks can not be kept: {why}; those that are new wait until it can");
        }
        written
    }
}

/// What goes before a snapshot's bytes: what it is, and the message of the consensus that announces it.
pub(super) fn announce(info: &SnapshotInfo, message: &[u8]) -> Vec<u8> {
    let info = info.encode();
    let mut bytes = u32::try_from(info.len()).expect("an announcement is short").to_le_bytes().to_vec();
    bytes.extend_from_slice(&info);
    bytes.extend_from_slice(message);
    bytes
}

/// Such bytes, taken apart.
pub(super) fn announced(bytes: &bytes::Bytes) -> Option<(SnapshotInfo, bytes::Bytes)> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
    let (info, _) = rest.split_at_checked(len)?;
    Some((SnapshotInfo::decode(info).ok()?, bytes.slice(4 + len..)))
}

/// A snapshot's bytes for a link.
pub(super) struct Source<F> {
    reader: SnapshotReader<F>,
    piece: Vec<u8>,
    at: usize,
}

impl<F> Source<F> {
    pub(super) fn new(reader: SnapshotReader<F>) -> Self {
        Self { reader, piece: Vec::new(), at: 0 }
    }
}

impl<F: DiskFile> Read for Source<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() {
            self.piece.clear();
            self.at = 0;
            if !self.reader.next(&mut self.piece).map_err(io::Error::other)? {
                return Ok(0);
            }
        }
        let len = buffer.len().min(self.piece.len() - self.at);
        buffer[..len].copy_from_slice(&self.piece[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}
