//! What the links tell their owner.

use std::net::SocketAddr;

use bytes::Bytes;
use walras_consensus::ReplicaId;

use crate::error::LinkError;
use crate::frame::Versions;
use crate::listener::ShortageNews;
use crate::snapshot::{SnapshotFailure, SnapshotId};

/// News of the links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// A peer is linked: what is sent from now on is on its way.
    Connected {
        /// Who.
        id: ReplicaId,
        /// What it runs.
        versions: Versions,
    },
    /// A peer is no longer linked. What had not arrived is lost.
    Lost {
        /// Who.
        id: ReplicaId,
        /// Why.
        why: LinkError,
    },
    /// A link could not be made. Reported once for each cause, not for each attempt; again after a link was up in between.
    Refused {
        /// Who, if that is known: whom we called, or who the certificate says it is.
        id: Option<ReplicaId>,
        /// Where, if it has an address.
        remote: Option<SocketAddr>,
        /// Why.
        why: LinkError,
    },
    /// Connections cannot be accepted, or can be again. Reported once.
    Shortage(ShortageNews),
    /// A message came.
    Message {
        /// From whom; with TLS, the certificate says so too.
        from: ReplicaId,
        /// The message. It shares memory with what came just before and after it.
        bytes: Bytes,
    },
    /// A peer begins to send a snapshot.
    SnapshotBegin {
        /// From whom.
        from: ReplicaId,
        /// Its number on this link.
        id: SnapshotId,
        /// What the sender says about it.
        meta: Bytes,
        /// Its length.
        total_bytes: u64,
    },
    /// The next bytes of it. Say when they are dealt with: [`crate::Links::snapshot_taken`], or no more will come.
    SnapshotChunk {
        /// From whom.
        from: ReplicaId,
        /// Which.
        id: SnapshotId,
        /// Where in the snapshot.
        offset: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// All of it has come, and its hash is right. Say how it went: [`crate::Links::answer_snapshot`].
    SnapshotEnd {
        /// From whom.
        from: ReplicaId,
        /// Which.
        id: SnapshotId,
        /// BLAKE3 of all its bytes.
        hash: [u8; 32],
    },
    /// The rest will not come, or what came is not what was sent: forget it.
    SnapshotBroken {
        /// From whom.
        from: ReplicaId,
        /// Which.
        id: SnapshotId,
        /// Why.
        why: SnapshotFailure,
    },
    /// The receiver has a snapshot of ours and accepted it.
    SnapshotDelivered {
        /// Who.
        to: ReplicaId,
        /// Which.
        id: SnapshotId,
    },
    /// The receiver does not have it, or does not want it.
    SnapshotFailed {
        /// Who.
        to: ReplicaId,
        /// Which.
        id: SnapshotId,
        /// Why.
        why: SnapshotFailure,
    },
}
