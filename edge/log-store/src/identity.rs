//! The small file that identifies a log. It is written once, after the first segment, so if it exists the log is complete.

use crate::disk::{Disk, DiskFile, read_full_at};
use crate::error::{During, LogError};
use crate::format::FORMAT_VERSION;
use std::path::Path;

/// Its name.
pub(crate) const IDENTITY_FILE: &str = "log.id";
const TEMPORARY_FILE: &str = "log.id.new";
const MAGIC: [u8; 8] = *b"WALRASID";
const IDENTITY_BYTES: usize = 32;

/// Which log, and whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) log_id: u64,
    pub(crate) owner_id: u64,
}

impl Identity {
    fn encode(&self) -> [u8; IDENTITY_BYTES] {
        let mut bytes = [0; IDENTITY_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.log_id.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.owner_id.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..28]);
        bytes[28..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the identity; `None` when the file does not exist.
    pub(crate) fn read<D: Disk>(disk: &D, dir: &Path) -> Result<Option<Self>, LogError> {
        let path = dir.join(IDENTITY_FILE);
        let file = match disk.open_read_only(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(LogError::io("open", &path, error)),
        };
        let mut bytes = [0; IDENTITY_BYTES];
        let got = read_full_at(&file, &mut bytes, 0).during("read", &path)?;
        let word =
            |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("the fields lie inside the file's fixed length"));
        let half =
            |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("the fields lie inside the file's fixed length"));
        if got < IDENTITY_BYTES || bytes[..8] != MAGIC || half(28) != crc32c::crc32c(&bytes[..28]) {
            return Err(LogError::corrupt(&path, 0, "it does not hold the log's identity"));
        }
        if half(8) != FORMAT_VERSION {
            return Err(LogError::Version { path, found: half(8), supported: FORMAT_VERSION });
        }
        Ok(Some(Self { log_id: word(12), owner_id: word(20) }))
    }

    /// Writes the identity so that after a crash it is there whole or not at all.
    pub(crate) fn write<D: Disk>(&self, disk: &D, dir: &Path) -> Result<(), LogError> {
        let temporary = dir.join(TEMPORARY_FILE);
        let path = dir.join(IDENTITY_FILE);
        let file = match disk.create(&temporary) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => disk.open(&temporary),
            other => other,
        }
        .during("create", &temporary)?;
        file.write_all_at(&self.encode(), 0).during("write", &temporary)?;
        file.sync_data().during("sync", &temporary)?;
        disk.rename(&temporary, &path).during("rename a new file to", &path)?;
        disk.sync_dir(dir).during("sync", dir)
    }
}
