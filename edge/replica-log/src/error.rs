//! Errors of the log and of snapshots, with what the operator can do.

use std::io;
use std::path::{Path, PathBuf};
use walras_consensus::{ReplicaId, Slot};
use walras_log_store::{LogError, is_out_of_descriptors};
use walras_types::LogIndex;

/// Why a log does not open. The attempt has lost nothing.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The underlying store failed.
    #[error(transparent)]
    Store(#[from] LogError),
    /// The snapshots cannot be read.
    #[error(transparent)]
    Snapshot(SnapshotError),
    /// It is the log of another cluster.
    #[error(
        "{dir} holds the log of cluster {found:016x}, not of {expected:016x}: give the folder of this cluster's replica, or an empty one"
    )]
    OtherCluster {
        /// The log's folder.
        dir: PathBuf,
        /// The owner that was found.
        found: u64,
        /// The expected owner.
        expected: u64,
    },
    /// It is the log of another replica of the cluster.
    #[error(
        "{dir} holds the log of replica {found}, not of replica {expected}: disks or settings were swapped; start each replica on its \
         own folder (a replica on another's log would vote twice)"
    )]
    OtherReplica {
        /// The log's folder.
        dir: PathBuf,
        /// The owner that was found.
        found: u64,
        /// The expected owner.
        expected: ReplicaId,
    },
    /// The cluster's first members differ from the configuration.
    #[error(
        "{dir} holds the log of a cluster that began with the replicas {found}, and the configuration says that it began with {expected}: correct \
         cluster.genesis, which never changes and is the same on all replicas, or give this replica an empty folder"
    )]
    OtherGenesis {
        /// The log's folder.
        dir: PathBuf,
        /// The first members in the log.
        found: String,
        /// The first members in the configuration.
        expected: String,
    },
    /// A version that this program does not know.
    #[error(
        "{dir} holds a replica's log of version {found}, this program reads version {supported}: use the program that wrote it"
    )]
    Version {
        /// The log's folder.
        dir: PathBuf,
        /// Its version.
        found: u32,
        /// The version that this program supports.
        supported: u32,
    },
    /// A record contradicts earlier ones although its checksum is correct.
    #[error(
        "record {record} of the log in {dir} contradicts earlier ones ({detail}): this program or the one that wrote it is wrong; \
         keep the folder for analysis, and add the replica again under a new id"
    )]
    Misfit {
        /// The log's folder.
        dir: PathBuf,
        /// The record.
        record: LogIndex,
        /// The fault.
        detail: String,
    },
    /// No head, no hard state: not a replica's log.
    #[error("{dir} holds a log that no replica wrote: give a replica's folder, or an empty one")]
    NoReplicaLog {
        /// The log's folder.
        dir: PathBuf,
    },
    /// There are snapshots and no log.
    #[error(
        "{dir} holds a snapshot of slot {slot} and no log: what this replica promised is lost with the log; restore the log from where it \
         went, or empty the folder and add the replica again under a new id"
    )]
    LogLost {
        /// The log's folder.
        dir: PathBuf,
        /// The newest snapshot.
        slot: Slot,
    },
    /// No intact snapshot from which the log continues.
    #[error(
        "the log in {dir} continues from a snapshot that is missing ({detail}): restore the folder of snapshots, or empty both and add \
         the replica again under a new id"
    )]
    SnapshotMissing {
        /// The log's folder.
        dir: PathBuf,
        /// What is needed and what was found.
        detail: String,
    },
}

impl From<SnapshotError> for OpenError {
    fn from(error: SnapshotError) -> Self {
        match error {
            SnapshotError::Disk(error) => Self::Store(error),
            other => Self::Snapshot(other),
        }
    }
}

/// Why an operation of the log failed.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaLogError {
    /// The underlying store failed.
    #[error(transparent)]
    Store(#[from] LogError),
    /// An earlier write failed.
    #[error("an earlier write of this replica's log failed: open the log again, and write again what was not durable")]
    Failed,
    /// A slot is longer than a group may be.
    #[error(
        "slot {slot} takes {bytes} bytes in the log, and {bytes_max} are the most: raise `group_bytes_max` and `segment_bytes`, or \
         lower `pack_bytes_max`; the replica must stop and start again"
    )]
    SlotTooLong {
        /// The slot.
        slot: Slot,
        /// Its length.
        bytes: usize,
        /// The longest allowed.
        bytes_max: usize,
    },
    /// The slots are not on this disk, or not yet.
    #[error("slots {first} up to (not including) {end} are on this disk: ask for those, or another replica")]
    NotHeld {
        /// The first one held.
        first: Slot,
        /// The position after the last durable one.
        end: Slot,
    },
    /// The entry is older than what is held.
    #[error("the log holds entries from {first} on: ask for those, or an archive")]
    EntryNotHeld {
        /// The first one held.
        first: LogIndex,
    },
    /// No snapshot gives the number of earlier entries.
    #[error("no snapshot gives the number of the log's first entry: ask another replica, or an archive")]
    NotCounted,
    /// A record has become unreadable or changed since the log was opened.
    #[error("record {record} of the log is not what it was when the log was opened: check the disk, and restart the replica")]
    Unreadable {
        /// The record.
        record: LogIndex,
    },
    /// There is no snapshot from which the log continues.
    #[error(transparent)]
    Open(Box<OpenError>),
}

/// Why a snapshot cannot be written, read or received.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] LogError),
    /// The transfer ended before the state did.
    #[error(
        "a snapshot of slot {slot} was cut short: {got} of {expected} bytes came; it was discarded, ask the leader to send it again"
    )]
    CutShort {
        /// The slot.
        slot: Slot,
        /// Bytes that came.
        got: u64,
        /// Bytes announced.
        expected: u64,
    },
    /// The content differs from the announcement.
    #[error(
        "a snapshot of slot {slot} differs from its announcement ({detail}); it was discarded, ask the leader to send it again"
    )]
    Differs {
        /// The slot.
        slot: Slot,
        /// The difference.
        detail: &'static str,
    },
    /// A file is damaged.
    #[error("{path} is damaged ({detail}): an older snapshot or the leader's serves in its place; check the disk")]
    Damaged {
        /// Its file.
        path: PathBuf,
        /// The fault.
        detail: &'static str,
    },
    /// There is no snapshot of that slot.
    #[error("there is no snapshot of slot {slot} here: take a newer one, or ask another replica")]
    Missing {
        /// The slot.
        slot: Slot,
    },
    /// It belongs to another cluster.
    #[error("{path} is a snapshot of cluster {found:016x}, not of {expected:016x}: give the folder of this cluster's replica")]
    OtherCluster {
        /// Its file.
        path: PathBuf,
        /// The owner that was found.
        found: u64,
        /// The expected owner.
        expected: u64,
    },
    /// A version that this program does not know.
    #[error("{path} is a snapshot of version {found}, this program reads version {supported}: use the program that wrote it")]
    Version {
        /// Its file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version that this program supports.
        supported: u32,
    },
    /// The transfer never began, or was given up for others.
    #[error("the transfer of a snapshot from replica {from} was given up for newer ones: ask the leader to send it again")]
    NotComing {
        /// The sender.
        from: ReplicaId,
    },
    /// The announcement of a snapshot does not decode.
    #[error("the announcement of a snapshot is not well-formed; check that only replicas of this program connect here")]
    Announcement,
}

impl ReplicaLogError {
    /// Whether the same call may be repeated later: nothing of it was written to the disk.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_retryable())
    }

    /// Whether the cause may be a temporary state of the disk, so that the log is opened again and the attempt repeated.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Store(error) => may_pass(error),
            Self::Open(error) => matches!(&**error, OpenError::Store(error) if may_pass(error)),
            Self::Failed => true,
            Self::SlotTooLong { .. }
            | Self::NotHeld { .. }
            | Self::EntryNotHeld { .. }
            | Self::NotCounted
            | Self::Unreadable { .. } => false,
        }
    }
}

fn may_pass(error: &LogError) -> bool {
    match error {
        LogError::DiskFull { .. } | LogError::OutOfDescriptors { .. } | LogError::Io { .. } | LogError::Poisoned => true,
        LogError::Locked { .. }
        | LogError::Corrupt { .. }
        | LogError::BelowFloor { .. }
        | LogError::IdentityMissing { .. }
        | LogError::NotFound { .. }
        | LogError::WrongOwner { .. }
        | LogError::Version { .. }
        | LogError::EntryTooLong { .. }
        | LogError::OutOfRange { .. }
        | LogError::SnapshotNotNewer { .. }
        | LogError::Options { .. } => false,
    }
}

/// Adds the file and the operation to an I/O error.
pub(crate) trait During<T> {
    fn during(self, action: &'static str, path: &Path) -> Result<T, LogError>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, action: &'static str, path: &Path) -> Result<T, LogError> {
        self.map_err(|source| {
            let path = path.to_path_buf();
            match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => LogError::DiskFull { action, path },
                io::ErrorKind::WouldBlock => LogError::Locked { dir: path },
                _ if is_out_of_descriptors(&source) => LogError::OutOfDescriptors { action, path },
                _ => LogError::Io { action, path, source },
            }
        })
    }
}
