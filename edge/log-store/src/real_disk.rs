//! [`Disk`] over the operating system.

use crate::disk::{Disk, DiskFile, LockKind};
use crate::pace::Pace;
use crate::reserve::with_reserve;
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

/// Name of the file that carries the lock. It stays when the lock is released: removing it would let two writers lock two files.
const LOCK_FILE: &str = "LOCK";

/// Zeros are written to the device in pieces of this size, so that a sync of the log on the same disk never waits long.
const ZERO_CHUNK_BYTES: usize = 256 << 10;
/// Pause between two pieces while there is time. It limits filling to 85 MB/s, which hardly slows the log (docs/tried.md).
const ZERO_PAUSE: Duration = Duration::from_millis(3);
/// Memory and places of direct writes are multiples of this.
const DIRECT_BYTES: usize = 4096;

/// The operating system's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

/// A file of the operating system.
#[derive(Debug)]
pub struct RealFile(File);

/// A lock (`flock`) on a folder's lock file; the kernel releases it when the process ends, however it ends.
#[derive(Debug)]
pub struct RealLock {
    _file: File,
}

impl Disk for RealDisk {
    type File = RealFile;
    type Lock = RealLock;

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let missing: Vec<&Path> = dir.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).collect();
        std::fs::create_dir_all(dir)?;
        for created in missing {
            let parent = match created.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            };
            self.sync_dir(parent)?;
        }
        Ok(())
    }

    fn lock_dir(&self, dir: &Path, kind: LockKind) -> io::Result<RealLock> {
        let path = dir.join(LOCK_FILE);
        let (file, operation) = match kind {
            LockKind::Exclusive => (
                with_reserve(|| OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path))?,
                FlockOperation::NonBlockingLockExclusive,
            ),
            LockKind::Shared => (with_reserve(|| File::open(&path))?, FlockOperation::NonBlockingLockShared),
        };
        flock(&file, operation)?;
        Ok(RealLock { _file: file })
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in with_reserve(|| std::fs::read_dir(dir))? {
            // A name that is not UTF-8 is none of ours.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn create(&self, path: &Path) -> io::Result<RealFile> {
        with_reserve(|| OpenOptions::new().create_new(true).read(true).write(true).open(path)).map(RealFile)
    }

    fn open(&self, path: &Path) -> io::Result<RealFile> {
        with_reserve(|| OpenOptions::new().read(true).write(true).open(path)).map(RealFile)
    }

    fn open_read_only(&self, path: &Path) -> io::Result<RealFile> {
        with_reserve(|| File::open(path)).map(RealFile)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        with_reserve(|| File::open(dir))?.sync_all()
    }

    fn entropy(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
        assert_eq!(filled, bytes.len(), "the kernel returns small requests for random bytes whole");
        Ok(u64::from_le_bytes(bytes))
    }
}

impl DiskFile for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buf, offset)
    }

    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(buf, offset)
    }

    fn allocate(&self, len: u64, pace: &Pace) -> io::Result<()> {
        let before = self.len()?;
        reserve(&self.0, len)?;
        // Reserved blocks that were never written are marked as such; the first write to each would change metadata, and every
        // sync would have to commit that as well. Zeros written once, ahead of time, spare the hot path this.
        write_zeros(&self.0, before, len, pace)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn drop_cache(&self) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        rustix::fs::fadvise(&self.0, 0, None, rustix::fs::Advice::DontNeed)?;
        Ok(())
    }
}

/// Reserves space where the file system can; where it cannot, the zeros written next do it.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn reserve(file: &File, len: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    loop {
        match fallocate(file, FallocateFlags::empty(), 0, len) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn reserve(_file: &File, _len: u64) -> io::Result<()> {
    Ok(())
}

/// Bypasses the page cache where possible. A piece written to the cache must be synced, which also commits the file system's
/// journal. During that commit every log on the disk waits to update its modification time: milliseconds on a busy machine.
fn write_zeros(file: &File, from: u64, to: u64, pace: &Pace) -> io::Result<()> {
    let memory = vec![0; ZERO_CHUNK_BYTES + DIRECT_BYTES];
    let zeros = &memory[memory.as_ptr().align_offset(DIRECT_BYTES).min(DIRECT_BYTES)..][..ZERO_CHUNK_BYTES];
    let is_aligned = from.is_multiple_of(DIRECT_BYTES as u64) && to.is_multiple_of(DIRECT_BYTES as u64);
    let mut direct = is_aligned && write_directly(file, true).is_ok();
    let mut fill = || {
        let mut offset = from;
        while offset < to {
            let piece = usize::try_from(to - offset).unwrap_or(ZERO_CHUNK_BYTES).min(ZERO_CHUNK_BYTES);
            match file.write_all_at(&zeros[..piece], offset) {
                // The file system has its own idea of what is aligned.
                Err(error) if direct && error.kind() == io::ErrorKind::InvalidInput => {
                    write_directly(file, false)?;
                    direct = false;
                    continue;
                }
                written => written?,
            }
            if !direct {
                file.sync_data()?;
            }
            offset += piece as u64;
            pace.note_filled(offset);
            if offset < to && pace.has_time() {
                std::thread::sleep(ZERO_PAUSE); // pause: so that the log has the disk
            }
        }
        Ok(())
    };
    let filled = fill();
    if direct {
        write_directly(file, false)?;
    }
    filled
}

/// Whether writes to a file go past the page cache.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn write_directly(file: &File, direct: bool) -> io::Result<()> {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let mut flags = fcntl_getfl(file)?;
    flags.set(OFlags::DIRECT, direct);
    Ok(fcntl_setfl(file, flags)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn write_directly(_file: &File, direct: bool) -> io::Result<()> {
    if direct { Err(io::ErrorKind::Unsupported.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocated_space_is_zero_and_a_second_allocation_keeps_what_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = RealDisk.create(&dir.path().join("a")).unwrap();
        file.allocate(10_000, &Pace::default()).unwrap();
        assert_eq!(file.len().unwrap(), 10_000);
        file.write_all_at(b"kept", 5_000).unwrap();
        file.allocate(10_000, &Pace::default()).unwrap();
        let mut bytes = vec![1; 10_000];
        assert_eq!(crate::disk::read_full_at(&file, &mut bytes, 0).unwrap(), 10_000);
        assert_eq!(&bytes[5_000..5_004], b"kept");
        assert!(bytes[..5_000].iter().chain(&bytes[5_004..]).all(|b| *b == 0));
    }

    #[test]
    fn zeros_stand_in_where_nothing_can_be_reserved() {
        let dir = tempfile::tempdir().unwrap();
        let file = RealDisk.create(&dir.path().join("a")).unwrap();
        write_zeros(&file.0, 0, (ZERO_CHUNK_BYTES + 5) as u64, &Pace::default()).unwrap();
        assert_eq!(file.len().unwrap(), (ZERO_CHUNK_BYTES + 5) as u64);
    }

    #[test]
    fn filling_says_how_far_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let file = RealDisk.create(&dir.path().join("a")).unwrap();
        for (pace, len) in [(Pace::hurried(), 3 * ZERO_CHUNK_BYTES as u64), (Pace::default(), 5 * ZERO_CHUNK_BYTES as u64)] {
            let had_time = pace.has_time();
            file.allocate(len, &pace).unwrap();
            assert_eq!((file.len().unwrap(), pace.has_time()), (len, had_time));
            // The direct flag must be cleared for later writers: these bytes are not aligned.
            file.write_all_at(b"abc", 5).unwrap();
            pace.keep_ahead_of(1, 1, len);
            assert!(pace.has_time(), "it is filled to its end");
        }
    }

    #[test]
    fn a_length_that_is_not_aligned_is_filled_too() {
        let dir = tempfile::tempdir().unwrap();
        for len in [1, 511, 4096, 4097, ZERO_CHUNK_BYTES as u64 + 512] {
            let file = RealDisk.create(&dir.path().join(len.to_string())).unwrap();
            file.allocate(len, &Pace::hurried()).unwrap();
            let mut bytes = vec![1; usize::try_from(len).unwrap() + 1];
            assert_eq!(crate::disk::read_full_at(&file, &mut bytes, 0).unwrap() as u64, len);
            assert!(bytes[..bytes.len() - 1].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn a_folder_is_locked_once_for_writing_or_often_for_reading() {
        let dir = tempfile::tempdir().unwrap();
        let held = RealDisk.lock_dir(dir.path(), LockKind::Exclusive).unwrap();
        for kind in [LockKind::Exclusive, LockKind::Shared] {
            assert_eq!(RealDisk.lock_dir(dir.path(), kind).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        }
        drop(held);
        let _a = RealDisk.lock_dir(dir.path(), LockKind::Shared).unwrap();
        let _b = RealDisk.lock_dir(dir.path(), LockKind::Shared).unwrap();
        assert!(RealDisk.lock_dir(dir.path(), LockKind::Exclusive).is_err());
    }
}
