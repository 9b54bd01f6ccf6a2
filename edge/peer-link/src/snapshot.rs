//! Snapshots on a link: in chunks between the messages, as fast as the receiver takes them.
//!
//! The sender starts with [`SNAPSHOT_WINDOW_BYTES`] of credit and gets more as the receiver's owner processes chunks. So buffers
//! and memory on both sides hold no more than that, and a message waits behind no more than that.

use std::io::Read;

use bytes::Bytes;

use crate::frame::{Frame, FrameError};

/// Bytes of a snapshot in one frame.
pub const SNAPSHOT_CHUNK_BYTES: usize = 64 << 10;
/// Maximum unprocessed bytes of a snapshot.
pub const SNAPSHOT_WINDOW_BYTES: usize = 512 << 10;

/// Numbers the snapshots that one side sends on one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(pub u32);

/// Why a snapshot did not arrive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotFailure {
    /// The link was lost.
    #[error("the link was lost on the way; send it again when it is back")]
    LinkLost,
    /// The source of its bytes failed, or ended early.
    #[error("the sender could not read it ({0}); take another snapshot")]
    Source(String),
    /// The hash does not match.
    #[error(
        "its hash is not that of what was sent; send it again, and test the memory and disks of both machines if it happens twice"
    )]
    Damaged,
    /// The receiver refused it.
    #[error("the receiver refused it: {0}")]
    Refused(String),
}

/// An outgoing snapshot.
pub(crate) struct Leaving {
    pub(crate) id: SnapshotId,
    begin: Option<Bytes>,
    source: Box<dyn Read + Send>,
    total_bytes: u64,
    sent_bytes: u64,
    credit_bytes: u64,
    hasher: blake3::Hasher,
    /// Whether the source had no bytes ready.
    pub(crate) is_starved: bool,
    ended: bool,
}

/// The next step of an outgoing snapshot.
pub(crate) enum Next {
    Send(Frame),
    Wait,
    Fail(String),
}

impl Leaving {
    pub(crate) fn new(id: SnapshotId, meta: Bytes, total_bytes: u64, source: Box<dyn Read + Send>) -> Self {
        Self {
            id,
            begin: Some(meta),
            source,
            total_bytes,
            sent_bytes: 0,
            credit_bytes: SNAPSHOT_WINDOW_BYTES as u64,
            hasher: blake3::Hasher::new(),
            is_starved: false,
            ended: false,
        }
    }

    pub(crate) fn credit(&mut self, bytes: u32) {
        self.credit_bytes = self.credit_bytes.saturating_add(u64::from(bytes)).min(SNAPSHOT_WINDOW_BYTES as u64);
    }

    pub(crate) fn next(&mut self, buffer: &mut Vec<u8>) -> Next {
        let id = self.id;
        if let Some(meta) = self.begin.take() {
            return Next::Send(Frame::Begin { id, total_bytes: self.total_bytes, meta });
        }
        if self.ended {
            return Next::Wait;
        }
        let left = self.total_bytes - self.sent_bytes;
        if left == 0 {
            self.ended = true;
            return Next::Send(Frame::End { id, hash: *self.hasher.finalize().as_bytes() });
        }
        let want = left.min(self.credit_bytes).min(SNAPSHOT_CHUNK_BYTES as u64) as usize;
        if want == 0 || self.is_starved {
            return Next::Wait;
        }
        buffer.resize(want, 0);
        let read = loop {
            match self.source.read(buffer) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        match read {
            Ok(0) => Next::Fail(format!("it ends after {} of {} bytes", self.sent_bytes, self.total_bytes)),
            Ok(read) => {
                let bytes = Bytes::copy_from_slice(&buffer[..read]);
                self.hasher.update(&bytes);
                self.sent_bytes += read as u64;
                self.credit_bytes -= read as u64;
                Next::Send(Frame::Chunk { id, bytes })
            }
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                self.is_starved = true;
                Next::Wait
            }
            Err(e) => Next::Fail(e.to_string()),
        }
    }
}

/// An incoming snapshot.
#[derive(Debug)]
pub(crate) struct Coming {
    pub(crate) id: SnapshotId,
    total_bytes: u64,
    received_bytes: u64,
    /// Received bytes that the owner has not processed.
    untaken_bytes: u64,
    hasher: blake3::Hasher,
    /// Whether it is complete and the owner has not replied.
    pub(crate) has_ended: bool,
}

impl Coming {
    pub(crate) fn new(id: SnapshotId, total_bytes: u64) -> Self {
        Self { id, total_bytes, received_bytes: 0, untaken_bytes: 0, hasher: blake3::Hasher::new(), has_ended: false }
    }

    /// Takes a chunk; returns its offset.
    pub(crate) fn chunk(&mut self, bytes: &[u8]) -> Result<u64, FrameError> {
        let (offset, len) = (self.received_bytes, bytes.len() as u64);
        if self.has_ended || len == 0 || len > self.total_bytes - offset {
            return Err(FrameError::Unexpected("a snapshot with more bytes than it said"));
        }
        if self.untaken_bytes + len > SNAPSHOT_WINDOW_BYTES as u64 {
            return Err(FrameError::Unexpected("more of a snapshot than there was credit for"));
        }
        self.hasher.update(bytes);
        self.received_bytes += len;
        self.untaken_bytes += len;
        Ok(offset)
    }

    /// Records processed bytes; returns the new credit for the sender.
    pub(crate) fn taken(&mut self, bytes: usize) -> u32 {
        let taken = self.untaken_bytes.min(bytes as u64);
        self.untaken_bytes -= taken;
        u32::try_from(taken).expect("no more is untaken than a window")
    }

    pub(crate) fn end(&mut self, hash: [u8; 32]) -> Result<(), SnapshotFailure> {
        self.has_ended = true;
        let is_right = self.received_bytes == self.total_bytes && *self.hasher.finalize().as_bytes() == hash;
        is_right.then_some(()).ok_or(SnapshotFailure::Damaged)
    }
}
