//! The seam between the log and storage: [`crate::RealDisk`] in production, [`crate::sim_disk::SimDisk`] in tests and simulation.
//!
//! The seam is as narrow as the log's needs. What each call promises after a power failure is part of its contract, because the
//! log's correctness argument rests on these promises and on nothing else:
//!
//! - written bytes are durable once a later [`DiskFile::sync_data`] returned `Ok`; until then each of them may or may not survive,
//!   in any combination;
//! - a created, renamed or removed name is durable once a later [`Disk::sync_dir`] of its folder returned `Ok`; a name that changed its
//!   folder once both were synced, and until then the file is in one of the two;
//! - bytes that were durable and not written since stay as they are;
//! - after a `sync_data` that failed, nothing is known about the bytes written since the one before, not even when a later one
//!   returns `Ok`, and reads may show bytes that never reached the device until [`DiskFile::drop_cache`] was called.

use crate::pace::Pace;
use std::io;
use std::path::Path;

/// How a folder is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// For the one writer.
    Exclusive,
    /// For readers that must not meet a writer.
    Shared,
}

/// A place that holds folders of files.
pub trait Disk: Clone + Send + Sync + 'static {
    /// An open file.
    type File: DiskFile;
    /// A held lock; dropping it unlocks.
    type Lock: Send + Sync + std::fmt::Debug;

    /// Creates a folder and those above it, durably, where they are missing.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// Locks a folder without waiting; [`io::ErrorKind::WouldBlock`] when another holds it.
    fn lock_dir(&self, dir: &Path, kind: LockKind) -> io::Result<Self::Lock>;
    /// Names of the files in a folder, in any order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Creates an empty file for reading and writing; [`io::ErrorKind::AlreadyExists`] when the name is taken.
    fn create(&self, path: &Path) -> io::Result<Self::File>;
    /// Opens a file for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Self::File>;
    /// Opens a file for reading.
    fn open_read_only(&self, path: &Path) -> io::Result<Self::File>;
    /// Gives a file another name, in the same folder or in one of the same disk, replacing what has that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file's name.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes creations, renames and removals in a folder durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// A number that no other call is likely to return.
    fn entropy(&self) -> io::Result<u64>;
}

/// An open file of a [`Disk`].
pub trait DiskFile: Send + Sync + std::fmt::Debug + 'static {
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file holds no byte.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Reads some bytes at `offset`; fewer than asked for is no error, 0 means the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `buf` at `offset`.
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;
    /// Makes the file at least `len` bytes long and reserves the space, so that writing below `len` needs none later. New bytes read
    /// as zero. [`io::ErrorKind::StorageFull`] when there is no room. A disk on which this takes long does it piece by piece, tells `pace`
    /// how far it is, and pauses between the pieces while [`Pace::has_time`].
    fn allocate(&self, len: u64, pace: &Pace) -> io::Result<()>;
    /// Cuts the file to `len` bytes.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Makes all bytes written so far, and the length, durable.
    fn sync_data(&self) -> io::Result<()>;
    /// Forgets what memory holds of the file, so that the next read sees what the device has. Call after `sync_data`.
    fn drop_cache(&self) -> io::Result<()>;
}

/// Fills `buf` from `offset` as far as the file goes; returns how many bytes were read.
pub fn read_full_at<F: DiskFile>(file: &F, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buf.len() {
        match file.read_at(&mut buf[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
