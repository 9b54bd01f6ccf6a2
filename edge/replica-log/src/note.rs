//! A small file in the log's folder, replaced atomically: what a replica must know about itself before it opens its log.

use std::io;
use std::path::{Path, PathBuf};

use walras_log_store::{Disk, DiskFile};

use crate::open::LOG_FOLDER;

const FOLDER: &str = "note";
const NAME: &str = "note";
const NEW_NAME: &str = "note.new";
const HASH_BYTES: usize = 32;
/// Maximum length of a note.
const NOTE_BYTES_MAX: u64 = 1 << 20;

/// A note: its BLAKE3 hash, then its bytes. After any crash it is the old one or the new one.
#[derive(Clone, Debug)]
pub struct Note<D> {
    disk: D,
    dir: PathBuf,
}

impl<D: Disk> Note<D> {
    /// The note of the log in this folder.
    pub fn of_log(disk: D, dir: &Path) -> Self {
        Self { disk, dir: dir.to_path_buf() }
    }

    fn folder(&self) -> PathBuf {
        self.dir.join(FOLDER)
    }

    /// Reads the note, if there is one.
    ///
    /// # Errors
    /// The disk's, and [`io::ErrorKind::InvalidData`] if it is damaged.
    pub fn read(&self) -> io::Result<Option<Vec<u8>>> {
        let file = match self.disk.open_read_only(&self.folder().join(NAME)) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the note in the log's folder is damaged");
        let len = file.len()?;
        if len > NOTE_BYTES_MAX {
            return Err(damaged());
        }
        let mut bytes = vec![0; usize::try_from(len).expect("it is short")];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], filled as u64)? {
                0 => return Err(damaged()),
                count => filled += count,
            }
        }
        let (hash, note) = bytes.split_first_chunk::<HASH_BYTES>().ok_or_else(damaged)?;
        if blake3::hash(note) != *hash {
            return Err(damaged());
        }
        Ok(Some(note.to_vec()))
    }

    /// Whether there is a log in the folder.
    ///
    /// # Errors
    /// The disk's.
    pub fn has_log(&self) -> io::Result<bool> {
        match self.disk.list(&self.dir.join(LOG_FOLDER)) {
            Ok(names) => Ok(names.iter().any(|name| name.ends_with(".seg"))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Replaces the note, durably.
    ///
    /// # Errors
    /// The disk's; the note is then the old one or this one.
    pub fn write(&self, note: &[u8]) -> io::Result<()> {
        let folder = self.folder();
        let (new, path) = (folder.join(NEW_NAME), folder.join(NAME));
        self.disk.create_dir_all(&folder)?;
        match self.disk.remove(&new) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let file = self.disk.create(&new)?;
        let mut bytes = blake3::hash(note).as_bytes().to_vec();
        bytes.extend_from_slice(note);
        file.write_all_at(&bytes, 0)?;
        file.sync_data()?;
        self.disk.rename(&new, &path)?;
        self.disk.sync_dir(&folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walras_log_store::sim_disk::{SimDisk, SimDiskConfig};

    #[test]
    fn it_is_the_old_one_or_the_new_one_whenever_the_power_fails() {
        let dir = Path::new("/replica");
        let mut seen = [0; 2];
        for ops in 0..30 {
            let disk = SimDisk::new(ops, SimDiskConfig::default());
            disk.create_dir_all(dir).unwrap();
            let note = Note::of_log(disk.clone(), dir);
            assert_eq!(note.read().unwrap(), None);
            note.write(b"old").unwrap();
            let faults = walras_log_store::sim_disk::SimFaults { crash_in_ops: Some(ops), ..Default::default() };
            disk.set_faults(faults);
            let done = note.write(b"new");
            disk.crash();
            let kept = note.read().unwrap().unwrap();
            assert!(kept == b"new" || (kept == b"old" && done.is_err()), "{kept:?} after {done:?}");
            seen[usize::from(kept == b"new")] += 1;
        }
        assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
    }

    #[test]
    fn damage_is_noticed() {
        let dir = Path::new("/replica");
        let disk = SimDisk::new(1, SimDiskConfig::default());
        disk.create_dir_all(dir).unwrap();
        let note = Note::of_log(disk.clone(), dir);
        note.write(b"something").unwrap();
        assert_eq!(note.read().unwrap().as_deref(), Some(&b"something"[..]));
        disk.open(&dir.join("note/note")).unwrap().write_all_at(b"x", 40).unwrap();
        assert_eq!(note.read().unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
