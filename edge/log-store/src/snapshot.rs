//! Snapshots of the state that the log produces. The last two are retained, so that a damaged one costs time and not data.
//!
//! ```text
//! header (48 bytes)                                             payload
//!  0 magic "WALRASSN"    24 log_index u64                       48...
//!  8 version u32         32 payload length u64
//! 12 zeros u32           40 CRC32C of the payload
//! 16 owner id u64        44 CRC32C of bytes 0..44
//! ```

use crate::disk::{Disk, DiskFile, LockKind, read_full_at};
use crate::error::{During, LogError};
use crate::writer::lock;
use std::path::{Path, PathBuf};
use walras_types::LogIndex;

/// Version of the snapshot file's format.
pub const SNAPSHOT_VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"WALRASSN";
const HEADER_BYTES: usize = 48;
/// Snapshots are written and synced in pieces of this size, so that a sync of the log on the same disk never waits long.
const CHUNK_BYTES: usize = 8 << 20;
const KEPT_COUNT: usize = 2;

/// A snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The last entry that is part of the state.
    pub log_index: LogIndex,
    /// The encoded state.
    pub bytes: Vec<u8>,
}

/// A snapshot that could not be used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedSnapshot {
    /// Its file.
    pub path: PathBuf,
    /// The fault.
    pub detail: String,
}

impl std::fmt::Display for DamagedSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, detail } = self;
        write!(f, "{} is damaged ({detail}): an older snapshot serves in its place; check the disk", path.display())
    }
}

/// The snapshots in one folder. It may live on another thread than the log.
#[derive(Debug)]
pub struct SnapshotStore<D: Disk> {
    disk: D,
    dir: PathBuf,
    owner_id: u64,
    /// Sound ones, oldest first.
    sound: Vec<LogIndex>,
    damaged: Vec<DamagedSnapshot>,
    _lock: Option<D::Lock>,
}

fn snapshot_name(log_index: LogIndex) -> String {
    format!("{:020}.snap", log_index.0)
}

fn snapshot_index(name: &str) -> Option<LogIndex> {
    let index = LogIndex(name.strip_suffix(".snap")?.parse().ok()?);
    (snapshot_name(index) == name).then_some(index)
}

impl<D: Disk> SnapshotStore<D> {
    /// Opens a folder of snapshots, or makes one; checks each of them and removes what an interrupted write left.
    pub fn open(disk: D, dir: &Path, owner_id: u64) -> Result<Self, LogError> {
        disk.create_dir_all(dir).during("create", dir)?;
        let held = lock(&disk, dir, LockKind::Exclusive)?;
        let names = disk.list(dir).during("list", dir)?;
        for name in names.iter().filter(|name| name.ends_with(".snap.new")) {
            let path = dir.join(name);
            disk.remove(&path).during("remove", &path)?;
        }
        // A process that died between renaming and syncing left a name that is not durable.
        disk.sync_dir(dir).during("sync", dir)?;
        Self::check_all(disk, dir, owner_id, &names, Some(held))
    }

    /// Opens a folder of snapshots that no other process uses, for reading only.
    pub fn open_read_only(disk: D, dir: &Path, owner_id: u64) -> Result<Self, LogError> {
        let held = lock(&disk, dir, LockKind::Shared)?;
        let names = disk.list(dir).during("list", dir)?;
        Self::check_all(disk, dir, owner_id, &names, Some(held))
    }

    /// Opens a folder of snapshots for reading while its writer continues. If the writer removes a snapshot meanwhile, this tries
    /// again.
    pub fn open_live(disk: D, dir: &Path, owner_id: u64) -> Result<Self, LogError> {
        let names = disk.list(dir).during("list", dir)?;
        Self::check_all(disk, dir, owner_id, &names, None)
    }

    fn check_all(disk: D, dir: &Path, owner_id: u64, names: &[String], held: Option<D::Lock>) -> Result<Self, LogError> {
        let mut indices: Vec<LogIndex> = names.iter().filter_map(|name| snapshot_index(name)).collect();
        indices.sort_unstable();
        let (mut sound, mut damaged) = (Vec::new(), Vec::new());
        for log_index in indices {
            match read(&disk, dir, log_index, owner_id)? {
                Ok(_) => sound.push(log_index),
                Err(found) => damaged.push(found),
            }
        }
        Ok(Self { disk, dir: dir.to_path_buf(), owner_id, sound, damaged, _lock: held })
    }

    /// Snapshots that were found damaged when the folder was opened.
    #[must_use]
    pub fn damaged(&self) -> &[DamagedSnapshot] {
        &self.damaged
    }

    /// Entries of the sound snapshots, oldest first.
    #[must_use]
    pub fn indices(&self) -> &[LogIndex] {
        &self.sound
    }

    /// Entries up to and including this one are in two snapshots, so the log may let go of them
    /// ([`crate::LogWriter::truncate_prefix`]).
    #[must_use]
    pub fn spare_up_to(&self) -> Option<LogIndex> {
        let at = self.sound.len().checked_sub(KEPT_COUNT)?;
        Some(self.sound[at])
    }

    /// The newest sound snapshot; those that turned out to be damaged on the way to it come second.
    pub fn load_newest(&self) -> Result<(Option<Snapshot>, Vec<DamagedSnapshot>), LogError> {
        let mut damaged = self.damaged.clone();
        for log_index in self.sound.iter().rev() {
            match read(&self.disk, &self.dir, *log_index, self.owner_id)? {
                Ok(bytes) => return Ok((Some(Snapshot { log_index: *log_index, bytes }), damaged)),
                Err(found) => damaged.push(found),
            }
        }
        Ok((None, damaged))
    }

    /// One snapshot, or what is wrong with it.
    pub fn load(&self, log_index: LogIndex) -> Result<Result<Snapshot, DamagedSnapshot>, LogError> {
        let found = read(&self.disk, &self.dir, log_index, self.owner_id)?;
        Ok(found.map(|bytes| Snapshot { log_index, bytes }))
    }

    /// Writes a snapshot durably, then removes all but the last two sound ones. After a failure the folder holds what it held
    /// before, and perhaps the new one; trying again is allowed.
    pub fn write(&mut self, log_index: LogIndex, bytes: &[u8]) -> Result<(), LogError> {
        if let Some(newest) = self.sound.last().copied().filter(|newest| *newest >= log_index) {
            return Err(LogError::SnapshotNotNewer { index: log_index, newest });
        }
        let path = self.dir.join(snapshot_name(log_index));
        let temporary = self.dir.join(format!("{}.new", snapshot_name(log_index)));
        if let Err(error) = self.write_file(&temporary, log_index, bytes) {
            // Frees the space. If that fails too, the next opening does it; the first failure is the one to report.
            let _ = self.disk.remove(&temporary);
            return Err(error);
        }
        self.disk.rename(&temporary, &path).during("rename a new snapshot to", &path)?;
        self.disk.sync_dir(&self.dir).during("sync", &self.dir)?;
        self.sound.push(log_index);
        self.damaged.retain(|found| found.path != path);
        self.remove_old()
    }

    fn write_file(&self, path: &Path, log_index: LogIndex, bytes: &[u8]) -> Result<(), LogError> {
        let file = match self.disk.create(path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                self.disk.remove(path).and_then(|()| self.disk.create(path))
            }
            other => other,
        }
        .during("create", path)?;
        file.write_all_at(&encode_header(self.owner_id, log_index, bytes), 0).during("write", path)?;
        let mut offset = HEADER_BYTES as u64;
        for chunk in bytes.chunks(CHUNK_BYTES) {
            if offset > HEADER_BYTES as u64 {
                file.sync_data().during("sync", path)?;
            }
            file.write_all_at(chunk, offset).during("write", path)?;
            offset += chunk.len() as u64;
        }
        file.sync_data().during("sync", path)
    }

    fn remove_old(&mut self) -> Result<(), LogError> {
        let surplus = self.sound.len().saturating_sub(KEPT_COUNT);
        let mut spent: Vec<PathBuf> = self.sound[..surplus].iter().map(|index| self.dir.join(snapshot_name(*index))).collect();
        if self.sound.len() >= KEPT_COUNT {
            spent.extend(self.damaged.drain(..).map(|found| found.path));
        }
        self.sound.drain(..surplus);
        if spent.is_empty() {
            return Ok(());
        }
        for path in spent {
            self.disk.remove(&path).during("remove", &path)?;
        }
        self.disk.sync_dir(&self.dir).during("sync", &self.dir)
    }
}

fn encode_header(owner_id: u64, log_index: LogIndex, bytes: &[u8]) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&SNAPSHOT_VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&owner_id.to_le_bytes());
    header[24..32].copy_from_slice(&log_index.0.to_le_bytes());
    header[32..40].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    header[40..44].copy_from_slice(&crc32c::crc32c(bytes).to_le_bytes());
    let crc = crc32c::crc32c(&header[..44]);
    header[44..].copy_from_slice(&crc.to_le_bytes());
    header
}

/// The payload of a snapshot, or what is wrong with it. A snapshot of another owner or version is an error, not damage.
fn read<D: Disk>(disk: &D, dir: &Path, log_index: LogIndex, owner_id: u64) -> Result<Result<Vec<u8>, DamagedSnapshot>, LogError> {
    let path = dir.join(snapshot_name(log_index));
    let damaged = |detail: &str| Ok(Err(DamagedSnapshot { path: path.clone(), detail: detail.to_owned() }));
    let file = disk.open_read_only(&path).during("open", &path)?;
    let len = file.len().during("read the length of", &path)?;
    let mut header = [0; HEADER_BYTES];
    let got = read_full_at(&file, &mut header, 0).during("read", &path)?;
    let half = |at: usize| u32::from_le_bytes(*header[at..].first_chunk().expect("the fields lie inside the header"));
    let word = |at: usize| u64::from_le_bytes(*header[at..].first_chunk().expect("the fields lie inside the header"));
    if got < HEADER_BYTES || header[..8] != MAGIC || half(44) != crc32c::crc32c(&header[..44]) {
        return damaged("its header is not readable");
    }
    if half(8) != SNAPSHOT_VERSION {
        return Err(LogError::Version { path, found: half(8), supported: SNAPSHOT_VERSION });
    }
    if word(16) != owner_id {
        return Err(LogError::WrongOwner { path, found: word(16), expected: owner_id });
    }
    if word(24) != log_index.0 {
        return damaged("its name and its header disagree");
    }
    if len != word(32).saturating_add(HEADER_BYTES as u64) {
        return damaged("its length is not what its header says");
    }
    let Ok(payload_bytes) = usize::try_from(word(32)) else { return damaged("it is longer than this machine's memory") };
    let mut payload = vec![0; payload_bytes];
    let got = read_full_at(&file, &mut payload, HEADER_BYTES as u64).during("read", &path)?;
    if got < payload.len() || half(40) != crc32c::crc32c(&payload) {
        return damaged("its checksum does not match its bytes");
    }
    Ok(Ok(payload))
}
