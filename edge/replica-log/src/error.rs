//! Why the log or the snapshots refused, and what the reader can do about it.

use std::io;
use std::path::{Path, PathBuf};
use walras_consensus::{ReplicaId, Slot};
use walras_log_store::{LogError, is_out_of_descriptors};
use walras_types::LogIndex;

/// A log that does not open. Nothing was lost by trying.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store below refused.
    #[error(transparent)]
    Store(#[from] LogError),
    /// The snapshots beside it refused.
    #[error(transparent)]
    Snapshot(SnapshotError),
    /// It is the log of another cluster.
    #[error(
        "{dir} holds the log of cluster {found:016x}, not of {expected:016x}: give the folder of this cluster's replica, or an empty one"
    )]
    OtherCluster {
        /// Where.
        dir: PathBuf,
        /// Whose it is.
        found: u64,
        /// Whose it should be.
        expected: u64,
    },
    /// It is the log of another replica of the cluster.
    #[error(
        "{dir} holds the log of replica {found}, not of replica {expected}: disks or settings were swapped; start each replica on its \
         own folder (a replica on another's log would vote twice)"
    )]
    OtherReplica {
        /// Where.
        dir: PathBuf,
        /// Whose it is.
        found: u64,
        /// Whose it should be.
        expected: ReplicaId,
    },
    /// The cluster began with others than the configuration says.
    #[error(
        "{dir} holds the log of a cluster that began with the replicas {found}, and the configuration says that it began with {expected}: correct \
         cluster.genesis, which never changes and is the same on all replicas, or give this replica an empty folder"
    )]
    OtherGenesis {
        /// Where.
        dir: PathBuf,
        /// With whom it began.
        found: String,
        /// With whom it should have.
        expected: String,
    },
    /// A version that this program does not know.
    #[error(
        "{dir} holds a replica's log of version {found}, this program reads version {supported}: use the program that wrote it"
    )]
    Version {
        /// Where.
        dir: PathBuf,
        /// Its version.
        found: u32,
        /// Ours.
        supported: u32,
    },
    /// A record that does not fit those before it although its checksum is right.
    #[error(
        "record {record} of the log in {dir} does not fit those before it ({detail}): this program or the one that wrote it is wrong; \
         keep the folder for whoever looks into that, and add the replica anew under a new id"
    )]
    Misfit {
        /// Where.
        dir: PathBuf,
        /// Which one.
        record: LogIndex,
        /// What is wrong.
        detail: String,
    },
    /// No head, no hard state: not a replica's log.
    #[error("{dir} holds a log that no replica wrote: give a replica's folder, or an empty one")]
    NoReplicaLog {
        /// Where.
        dir: PathBuf,
    },
    /// There are snapshots and no log.
    #[error(
        "{dir} holds a snapshot of slot {slot} and no log: what this replica promised is lost with the log; restore the log from where it \
         went, or empty the folder and add the replica anew under a new id"
    )]
    LogLost {
        /// Where.
        dir: PathBuf,
        /// The newest snapshot.
        slot: Slot,
    },
    /// No sound snapshot from which the log goes on.
    #[error(
        "the log in {dir} goes on from a snapshot that is not there ({detail}): restore the folder of snapshots, or empty both and add \
         the replica anew under a new id"
    )]
    SnapshotMissing {
        /// Where.
        dir: PathBuf,
        /// What is needed and what is there.
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

/// The log can not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaLogError {
    /// The store below refused.
    #[error(transparent)]
    Store(#[from] LogError),
    /// An earlier write failed.
    #[error("an earlier write of this replica's log failed: open the log again, and write again what was not durable")]
    Failed,
    /// A slot that does not fit the longest group.
    #[error(
        "slot {slot} takes {bytes} bytes in the log, and {bytes_max} are the most: raise `group_bytes_max` and `segment_bytes`, or \
         lower `pack_bytes_max`; the replica must stop and start again"
    )]
    SlotTooLong {
        /// Which one.
        slot: Slot,
        /// Its length.
        bytes: usize,
        /// The longest allowed.
        bytes_max: usize,
    },
    /// Slots that are not on this disk, or not yet.
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
    /// No snapshot tells how many entries came before.
    #[error("no snapshot tells which entries the log holds: ask another replica, or an archive")]
    NotCounted,
    /// A record that was readable when the log was opened is not, or not what it was.
    #[error("record {record} of the log is not what it was when the log was opened: check the disk, and restart the replica")]
    Unreadable {
        /// Which one.
        record: LogIndex,
    },
    /// No snapshot from which the log goes on.
    #[error(transparent)]
    Open(Box<OpenError>),
}

/// A snapshot that can not be written, read or taken.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The disk refused.
    #[error(transparent)]
    Disk(#[from] LogError),
    /// The transfer ended before the state did.
    #[error(
        "a snapshot of slot {slot} was cut short: {got} of {expected} bytes came; it was thrown away, ask the leader to send it again"
    )]
    CutShort {
        /// Which one.
        slot: Slot,
        /// Bytes that came.
        got: u64,
        /// Bytes announced.
        expected: u64,
    },
    /// More came than was announced, or other bytes.
    #[error(
        "a snapshot of slot {slot} came with other bytes than were announced ({detail}); it was thrown away, ask the leader to send it again"
    )]
    Differs {
        /// Which one.
        slot: Slot,
        /// In what.
        detail: &'static str,
    },
    /// A file that does not hold what it should.
    #[error("{path} is damaged ({detail}): an older snapshot or the leader's serves in its place; check the disk")]
    Damaged {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        detail: &'static str,
    },
    /// There is none of that slot.
    #[error("there is no snapshot of slot {slot} here: take a newer one, or ask another replica")]
    Missing {
        /// Which one.
        slot: Slot,
    },
    /// It belongs to another cluster.
    #[error("{path} is a snapshot of cluster {found:016x}, not of {expected:016x}: give the folder of this cluster's replica")]
    OtherCluster {
        /// Its file.
        path: PathBuf,
        /// Whose it is.
        found: u64,
        /// Whose it should be.
        expected: u64,
    },
    /// A version that this program does not know.
    #[error("{path} is a snapshot of version {found}, this program reads version {supported}: use the program that wrote it")]
    Version {
        /// Its file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// Ours.
        supported: u32,
    },
    /// It never began to come, or made room for others.
    #[error(
        "the snapshot from replica {from} is not coming any more, since others came meanwhile: ask the leader to send it again"
    )]
    NotComing {
        /// Who sends it.
        from: ReplicaId,
    },
    /// The announcement of a snapshot does not decode.
    #[error("the announcement of a snapshot is not well-formed; check that only replicas of this program connect here")]
    Announcement,
}

impl ReplicaLogError {
    /// Whether the same call may be made again later: what it was to write is still to be written, and nothing of it is on the disk.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_retryable())
    }

    /// Whether the disk of the moment explains it: the log is opened again, and the attempt repeated.
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

/// Names the file and the deed in an I/O failure.
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
