//! File operations of an archive, counted so that a test can make the disk fail at any of them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Who may read a file that is created, as far as this process's mask allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    Anybody,
    /// The user that the venue runs as.
    Venue,
}

/// Writes files. Clones are cheap.
#[derive(Clone, Debug, Default)]
pub struct Files(Option<Faults>);

/// For tests: the number of operations before the disk fails, until more are allowed.
#[derive(Clone, Debug)]
pub struct Faults {
    left: Arc<AtomicU64>,
    done: Arc<AtomicU64>,
}

impl Faults {
    /// A disk that fails after this number of operations.
    #[must_use]
    pub fn after(steps: u64) -> Self {
        Self { left: Arc::new(AtomicU64::new(steps)), done: Arc::new(AtomicU64::new(0)) }
    }

    /// Allows more operations.
    pub fn allow(&self, steps: u64) {
        self.left.store(steps, Ordering::Relaxed);
    }

    /// Number of operations so far.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}

impl Files {
    /// Files on a disk that may fail.
    #[must_use]
    pub fn failing(faults: Faults) -> Self {
        Self(Some(faults))
    }

    fn step(&self) -> io::Result<()> {
        let Some(faults) = &self.0 else { return Ok(()) };
        let took = faults.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        match took {
            Ok(_) => {
                faults.done.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(_) => Err(io::Error::new(io::ErrorKind::StorageFull, "no room (a fault of a test)")),
        }
    }

    pub(crate) fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        std::fs::create_dir_all(path)
    }

    /// Creates an empty file, replacing any existing one.
    pub(crate) fn create(&self, path: &Path) -> io::Result<OutFile> {
        self.step()?;
        Ok(OutFile { file: File::create(path)?, files: self.clone(), hasher: blake3::Hasher::new(), bytes: 0 })
    }

    /// Opens or creates a file, truncated to a length, for appending.
    pub(crate) fn go_on(&self, path: &Path, len: u64, readers: Readers) -> io::Result<OutFile> {
        self.step()?;
        let mode = match readers {
            Readers::Anybody => 0o666,
            Readers::Venue => 0o600,
        };
        let file = OpenOptions::new().create(true).append(true).mode(mode).open(path)?;
        file.set_len(len)?;
        Ok(OutFile { file, files: self.clone(), hasher: blake3::Hasher::new(), bytes: 0 })
    }

    /// Writes a file atomically and durably.
    pub(crate) fn put(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let new = path.with_extension("new");
        let mut file = self.create(&new)?;
        file.write_all(bytes)?;
        file.sync()?;
        self.rename(&new, path)?;
        path.parent().map_or(Ok(()), |dir| self.sync_dir(dir))
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        std::fs::rename(from, to)
    }

    pub(crate) fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        std::fs::remove_file(path)
    }

    pub(crate) fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        std::fs::remove_dir_all(path)
    }

    pub(crate) fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        File::open(path)?.sync_all()
    }
}

/// A file that is being written, and the hash of what was written to it.
#[derive(Debug)]
pub(crate) struct OutFile {
    file: File,
    files: Files,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl OutFile {
    /// Makes all writes durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.files.step()?;
        self.file.sync_all()
    }

    /// Bytes written, and their hash.
    pub(crate) fn digest(&self) -> (u64, String) {
        (self.bytes, self.hasher.finalize().to_hex().to_string())
    }
}

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Err(e) = self.files.step() {
            // A full disk writes only a part.
            self.file.write_all(&bytes[..bytes.len() / 2])?;
            return Err(e);
        }
        let count = self.file.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
