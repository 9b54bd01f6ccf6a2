//! Errors of the log, with what the operator can do.

use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};
use walras_types::LogIndex;

/// An operating failure of the log or the snapshot store.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The disk is full. Nothing acknowledged is lost.
    #[error(
        "no space left to {action} {path}: nothing acknowledged is lost; free space on that disk, then start again (the log goes on \
         where it stopped)"
    )]
    DiskFull {
        /// The attempted operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The process, or the machine, has as many files and connections open as it may. Nothing was changed, and the same call may be
    /// made again.
    #[error(
        "no file descriptor left to {action} {path}: too many files and connections are open, and the disk is not full; nothing \
         acknowledged is lost and it is tried again; raise the limit of open files (`ulimit -n`), or see what holds so many"
    )]
    OutOfDescriptors {
        /// The attempted operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The operating system failed.
    #[error("could not {action} {path}: {source}; check the disk and the permissions, then start again")]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// An earlier write or sync failed; what reached the disk since the last good one is unknown.
    #[error("an earlier write or sync of this log failed, so it takes no more: acknowledge nothing, close it and open it again")]
    Poisoned,
    /// Another process has the log open.
    #[error("{dir} is in use by another process: stop that process, or give this one a folder of its own")]
    Locked {
        /// The folder.
        dir: PathBuf,
    },
    /// Bytes that were acknowledged are damaged.
    #[error(
        "{path} is damaged at byte {offset}: {detail}. Entries that were acknowledged may be unreadable, so the log is not opened and \
         nothing was changed; keep a copy of the folder, restore it from a backup or from another replica, and see what is readable \
         with `walras log verify`"
    )]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// Where the damage begins.
        offset: u64,
        /// What is wrong and how it is known.
        detail: String,
    },
    /// The log ends before an entry that is known to have been durable.
    #[error(
        "the log in {dir} ends at entry {last}, but entry {floor} is known to have been durable: a file is missing or its end is \
         damaged; restore the folder from a backup or from another replica"
    )]
    BelowFloor {
        /// The log's folder.
        dir: PathBuf,
        /// Its last entry.
        last: LogIndex,
        /// The entry that must be there.
        floor: LogIndex,
    },
    /// The file that identifies the log is missing although the log has entries.
    #[error("{dir} holds log segments but no `{file}`: restore that file from a backup of this folder, or give another folder")]
    IdentityMissing {
        /// The log's folder.
        dir: PathBuf,
        /// The name of the missing file.
        file: &'static str,
    },
    /// There is no log here.
    #[error("{dir} holds no log: check the path; a venue makes its log when it first starts")]
    NotFound {
        /// The folder.
        dir: PathBuf,
    },
    /// The files belong to another venue or cluster.
    #[error("{path} belongs to {found:#018x}, not to {expected:#018x}: give the folder of this venue, or an empty one")]
    WrongOwner {
        /// The file that names the owner.
        path: PathBuf,
        /// The owner that was found.
        found: u64,
        /// The expected owner.
        expected: u64,
    },
    /// The files are of a version that this program does not know.
    #[error("{path} has format version {found}, this program reads version {supported}: use the program that wrote it")]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version of this program.
        supported: u32,
    },
    /// An entry is longer than a group may be.
    #[error("an entry of {bytes} bytes is longer than {max}: split it, or raise `group_bytes_max` and `segment_bytes`")]
    EntryTooLong {
        /// Its length.
        bytes: usize,
        /// The longest allowed.
        max: usize,
    },
    /// An index outside what the log holds.
    #[error("entry {index} is outside the log, which holds {first} up to (not including) {end}: ask inside that range")]
    OutOfRange {
        /// The index asked for.
        index: LogIndex,
        /// The first entry held.
        first: LogIndex,
        /// The position after the last one.
        end: LogIndex,
    },
    /// A snapshot that is not newer than the newest one.
    #[error(
        "a snapshot of entry {index} is not newer than the one of entry {newest}: write it only after more entries were applied"
    )]
    SnapshotNotNewer {
        /// The entry it is of.
        index: LogIndex,
        /// The entry that the newest one is of.
        newest: LogIndex,
    },
    /// Options that cannot work.
    #[error("the log's options cannot work: {detail}")]
    Options {
        /// What is wrong and what would be right.
        detail: String,
    },
}

impl LogError {
    /// Whether the same call may succeed later on the same log, because it was refused before anything was changed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::OutOfDescriptors { .. })
    }

    /// Distinguishes a full disk and a lack of descriptors from other failures.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { action, path },
            _ if is_out_of_descriptors(&source) => Self::OutOfDescriptors { action, path },
            _ => Self::Io { action, path, source },
        }
    }

    pub(crate) fn corrupt(path: &Path, offset: u64, detail: impl Into<String>) -> Self {
        Self::Corrupt { path: path.to_path_buf(), offset, detail: detail.into() }
    }
}

/// Whether an error says that the process or the machine has no descriptor left.
#[must_use]
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Adds the file and the operation to an I/O error.
pub(crate) trait During<T> {
    fn during(self, action: &'static str, path: &Path) -> Result<T, LogError>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, action: &'static str, path: &Path) -> Result<T, LogError> {
        self.map_err(|source| LogError::io(action, path, source))
    }
}
