//! Events of the links.

use std::net::SocketAddr;

use bytes::Bytes;
use walras_consensus::ReplicaId;

use crate::error::LinkError;
use crate::frame::Versions;
use crate::listener::ShortageNews;
use crate::snapshot::{SnapshotFailure, SnapshotId};

/// An event of the links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// A peer is linked: messages can be sent.
    Connected {
        /// The replica.
        id: ReplicaId,
        /// The peer's versions.
        versions: Versions,
    },
    /// A peer is no longer linked. Messages that had not arrived are lost.
    Lost {
        /// The replica.
        id: ReplicaId,
        /// The reason.
        why: LinkError,
    },
    /// A link could not be made. Reported once for each cause, not for each attempt; again after a link was up in between.
    Refused {
        /// The replica, if known: the one that was called, or the one in the certificate.
        id: Option<ReplicaId>,
        /// The remote address, if there is one.
        remote: Option<SocketAddr>,
        /// The reason.
        why: LinkError,
    },
    /// Connections cannot be accepted, or can be again. Reported once.
    Shortage(ShortageNews),
    /// A message came.
    Message {
        /// The sender; with TLS, verified by its certificate.
        from: ReplicaId,
        /// The message. It shares a buffer with its neighbours in the stream.
        bytes: Bytes,
    },
    /// A peer begins to send a snapshot.
    SnapshotBegin {
        /// The sender.
        from: ReplicaId,
        /// Its number on this link.
        id: SnapshotId,
        /// The sender's description of it.
        meta: Bytes,
        /// Its length.
        total_bytes: u64,
    },
    /// The next bytes of a snapshot. Once they are processed, call [`crate::Links::snapshot_taken`]; otherwise no more will come.
    SnapshotChunk {
        /// The sender.
        from: ReplicaId,
        /// The snapshot's number on this link.
        id: SnapshotId,
        /// Offset in the snapshot.
        offset: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// The snapshot is complete and its hash is correct. Reply with [`crate::Links::answer_snapshot`].
    SnapshotEnd {
        /// The sender.
        from: ReplicaId,
        /// The snapshot's number on this link.
        id: SnapshotId,
        /// BLAKE3 of all its bytes.
        hash: [u8; 32],
    },
    /// The snapshot was interrupted or damaged: discard it.
    SnapshotBroken {
        /// The sender.
        from: ReplicaId,
        /// The snapshot's number on this link.
        id: SnapshotId,
        /// The reason.
        why: SnapshotFailure,
    },
    /// The receiver has this replica's snapshot and accepted it.
    SnapshotDelivered {
        /// The receiver.
        to: ReplicaId,
        /// The snapshot's number on this link.
        id: SnapshotId,
    },
    /// The receiver did not get or did not accept this replica's snapshot.
    SnapshotFailed {
        /// The receiver.
        to: ReplicaId,
        /// The snapshot's number on this link.
        id: SnapshotId,
        /// The reason.
        why: SnapshotFailure,
    },
}
