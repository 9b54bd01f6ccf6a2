//! Snapshots by slot: written and read in pieces, checked by a hash, sent to and received from other replicas.

use crate::error::{During, SnapshotError};
use crate::identity::Identity;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use walras_consensus::{Slot, SnapshotMeta};
use walras_log_store::{Disk, DiskFile, LockKind, read_full_at};

/// Version of the snapshot file's format and of its announcement.
pub const REPLICA_SNAPSHOT_VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"WALRASRS";
const HEADER_BYTES: usize = 4096;
const META_AT: usize = 80;
const CRC_AT: usize = HEADER_BYTES - 4;
/// Snapshots are written and synced in pieces of this size, so that a sync of the log on the same disk never waits long.
const SYNC_EVERY_BYTES: u64 = 8 << 20;
const READ_BYTES: usize = 1 << 20;

/// A snapshot's metadata: its place in the log, and the length and hash of its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// Its place in the log.
    pub meta: SnapshotMeta,
    /// Length of the state.
    pub state_bytes: u64,
    /// BLAKE3 of the state.
    pub state_hash: [u8; 32],
}

impl SnapshotInfo {
    /// Encodes its announcement to a receiver: version, length, hash, place.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = REPLICA_SNAPSHOT_VERSION.to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.state_bytes.to_le_bytes());
        bytes.extend_from_slice(&self.state_hash);
        self.meta.encode(&mut bytes);
        bytes
    }

    /// Decodes an announcement.
    pub fn decode(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let decode = || {
            let (version, rest) = bytes.split_first_chunk::<4>()?;
            let (state_bytes, rest) = rest.split_first_chunk::<8>()?;
            let (state_hash, rest) = rest.split_first_chunk::<32>()?;
            let meta = SnapshotMeta::decode(rest)?;
            let is_known = u32::from_le_bytes(*version) == REPLICA_SNAPSHOT_VERSION;
            is_known.then_some(Self { meta, state_bytes: u64::from_le_bytes(*state_bytes), state_hash: *state_hash })
        };
        decode().ok_or(SnapshotError::Announcement)
    }
}

/// The snapshots of one replica. Clones share the folder and may write or send on another thread than the log's.
#[derive(Debug)]
pub struct Snapshots<D: Disk>(Arc<Shared<D>>);

impl<D: Disk> Clone for Snapshots<D> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[derive(Debug)]
struct Shared<D: Disk> {
    disk: D,
    dir: PathBuf,
    cluster_id: u64,
    replica: u64,
    /// Every record of the log before this one is durable. Each snapshot stores it: a log that ends earlier has lost data.
    log_end: AtomicU64,
    held: Mutex<Held>,
    _lock: D::Lock,
}

#[derive(Debug, Default)]
struct Held {
    by_slot: BTreeMap<Slot, SnapshotInfo>,
    /// Files with damaged headers.
    damaged: Vec<PathBuf>,
    /// Makes the names of temporary files unique.
    next_temporary: u64,
}

fn snapshot_name(slot: Slot) -> String {
    format!("{:020}.snap", slot.0)
}

fn snapshot_slot(name: &str) -> Option<Slot> {
    let slot = Slot(name.strip_suffix(".snap")?.parse().ok()?);
    (snapshot_name(slot) == name).then_some(slot)
}

impl<D: Disk> Snapshots<D> {
    /// Opens or makes a folder, and removes the remains of interrupted writes. Checks headers and lengths; readers check the
    /// hashes. Also returns the first record that was not durable when the newest snapshot was written.
    pub(crate) fn open(disk: D, dir: &Path, identity: &Identity) -> Result<(Self, u64), SnapshotError> {
        disk.create_dir_all(dir).during("create", dir)?;
        let lock = disk.lock_dir(dir, LockKind::Exclusive).during("lock", dir)?;
        let names = disk.list(dir).during("list", dir)?;
        for name in names.iter().filter(|name| name.ends_with(".snap.new")) {
            let path = dir.join(name);
            disk.remove(&path).during("remove", &path)?;
        }
        // A process that died between renaming and syncing left a name that is not durable.
        disk.sync_dir(dir).during("sync", dir)?;
        let (cluster_id, replica) = (identity.cluster_id, identity.replica.get());
        let (mut held, mut floor) = (Held::default(), 0);
        for slot in names.iter().filter_map(|name| snapshot_slot(name)) {
            let path = dir.join(snapshot_name(slot));
            match read_header(&disk, &path, cluster_id) {
                Ok(header) if header.info.meta.slot == slot => {
                    if header.replica == replica {
                        floor = floor.max(header.log_floor);
                    }
                    held.by_slot.insert(slot, header.info);
                }
                Ok(_) | Err(SnapshotError::Damaged { .. }) => held.damaged.push(path),
                Err(error) => return Err(error),
            }
        }
        let held = Mutex::new(held);
        let log_end = AtomicU64::new(0);
        Ok((Self(Arc::new(Shared { disk, dir: dir.to_path_buf(), cluster_id, replica, log_end, held, _lock: lock })), floor))
    }

    /// All snapshots, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<SnapshotInfo> {
        self.held().by_slot.values().cloned().collect()
    }

    /// The snapshot of a slot, to send or to load.
    pub fn read(&self, slot: Slot) -> Result<SnapshotReader<D::File>, SnapshotError> {
        let info = self.held().by_slot.get(&slot).cloned().ok_or(SnapshotError::Missing { slot })?;
        SnapshotReader::open(&self.0.disk, &self.0.dir, info)
    }

    /// Starts a snapshot of this replica's state. Append the state, then call [`SnapshotWriter::finish`]; dropping the writer gives
    /// up.
    pub fn begin(&self, meta: SnapshotMeta) -> Result<SnapshotWriter<D>, SnapshotError> {
        self.writer(meta, None)
    }

    /// Starts to receive an announced snapshot.
    pub fn receive(&self, announced: SnapshotInfo) -> Result<SnapshotWriter<D>, SnapshotError> {
        self.writer(announced.meta.clone(), Some(announced))
    }

    /// Removes snapshots of earlier slots, and damaged files. Snapshots before [`crate::ReplicaLog::oldest_snapshot`] are no longer
    /// needed. A failure only costs space; the next call tries again.
    pub fn remove_before(&self, slot: Slot) -> Result<(), SnapshotError> {
        let mut spent: Vec<PathBuf> = Vec::new();
        {
            let mut held = self.held();
            let kept = held.by_slot.split_off(&slot);
            let gone = std::mem::replace(&mut held.by_slot, kept);
            spent.extend(gone.into_keys().map(|slot| self.path(slot)));
            if held.by_slot.contains_key(&slot) {
                spent.append(&mut held.damaged);
            }
        }
        for (at, path) in spent.iter().enumerate() {
            match self.0.disk.remove(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    self.held().damaged.extend_from_slice(&spent[at..]);
                    return Err(error).during("remove", path).map_err(SnapshotError::Disk);
                }
                Ok(()) | Err(_) => {}
            }
        }
        if !spent.is_empty() {
            self.0.disk.sync_dir(&self.0.dir).during("sync", &self.0.dir)?;
        }
        Ok(())
    }

    /// Records that the log is durable up to, not including, this record.
    pub(crate) fn note_log_end(&self, end: u64) {
        self.0.log_end.fetch_max(end, Ordering::Relaxed);
    }

    /// The state of a snapshot; `None` if it does not match its header. A failing disk is an error.
    pub(crate) fn sound_state(&self, slot: Slot) -> Result<Option<Vec<u8>>, SnapshotError> {
        match self.read(slot).and_then(SnapshotReader::read_all) {
            Ok(state) => Ok(Some(state)),
            Err(SnapshotError::Damaged { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn log_end(&self) -> u64 {
        self.0.log_end.load(Ordering::Relaxed)
    }

    pub(crate) fn damaged(&self) -> Vec<PathBuf> {
        self.held().damaged.clone()
    }

    pub(crate) fn path(&self, slot: Slot) -> PathBuf {
        self.0.dir.join(snapshot_name(slot))
    }

    fn writer(&self, meta: SnapshotMeta, announced: Option<SnapshotInfo>) -> Result<SnapshotWriter<D>, SnapshotError> {
        let number = {
            let mut held = self.held();
            held.next_temporary += 1;
            held.next_temporary
        };
        let temporary = self.0.dir.join(format!("{:020}.{number}.snap.new", meta.slot.0));
        let file = self.0.disk.create(&temporary).during("create", &temporary)?;
        Ok(SnapshotWriter {
            snapshots: self.clone(),
            file,
            temporary: Some(temporary),
            meta,
            announced,
            hasher: blake3::Hasher::new(),
            written: 0,
            synced: 0,
        })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().expect("no holder of this lock panics")
    }
}

/// The snapshots in a folder that have intact headers, oldest first. Takes no lock and changes nothing.
pub(crate) fn read_infos<D: Disk>(disk: &D, dir: &Path, cluster_id: u64) -> Result<Vec<SnapshotInfo>, SnapshotError> {
    let mut slots: Vec<Slot> = disk.list(dir).during("list", dir)?.iter().filter_map(|name| snapshot_slot(name)).collect();
    slots.sort_unstable();
    let mut infos = Vec::new();
    for slot in slots {
        match read_header(disk, &dir.join(snapshot_name(slot)), cluster_id) {
            Ok(header) => infos.push(header.info),
            Err(SnapshotError::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(infos)
}

/// A snapshot being written. If dropped before it is finished, it leaves nothing.
#[derive(Debug)]
pub struct SnapshotWriter<D: Disk> {
    snapshots: Snapshots<D>,
    file: D::File,
    /// The temporary path, until the file has its final name.
    temporary: Option<PathBuf>,
    meta: SnapshotMeta,
    announced: Option<SnapshotInfo>,
    hasher: blake3::Hasher,
    written: u64,
    synced: u64,
}

impl<D: Disk> SnapshotWriter<D> {
    /// Bytes of state so far.
    #[must_use]
    pub fn state_bytes(&self) -> u64 {
        self.written
    }

    /// Adds a piece of the state, of any length.
    pub fn append(&mut self, piece: &[u8]) -> Result<(), SnapshotError> {
        let path = self.temporary.as_deref().expect("it has its name only when it is finished");
        if self.announced.as_ref().is_some_and(|info| self.written + piece.len() as u64 > info.state_bytes) {
            return Err(SnapshotError::Differs { slot: self.meta.slot, detail: "more bytes than announced" });
        }
        for piece in piece.chunks(READ_BYTES) {
            if self.written - self.synced >= SYNC_EVERY_BYTES {
                self.file.sync_data().during("sync", path)?;
                self.synced = self.written;
            }
            self.file.write_all_at(piece, HEADER_BYTES as u64 + self.written).during("write", path)?;
            self.hasher.update(piece);
            self.written += piece.len() as u64;
        }
        Ok(())
    }

    /// Makes the snapshot durable, if it matches its announcement. It can then be read, sent and started from.
    pub fn finish(mut self) -> Result<SnapshotInfo, SnapshotError> {
        let slot = self.meta.slot;
        let info =
            SnapshotInfo { meta: self.meta.clone(), state_bytes: self.written, state_hash: *self.hasher.finalize().as_bytes() };
        if let Some(announced) = &self.announced {
            if self.written < announced.state_bytes {
                return Err(SnapshotError::CutShort { slot, got: self.written, expected: announced.state_bytes });
            }
            if info != *announced {
                return Err(SnapshotError::Differs { slot, detail: "another hash" });
            }
        }
        let Shared { disk, dir, cluster_id, replica, log_end, .. } = &*self.snapshots.0;
        let temporary = self.temporary.as_deref().expect("it has its name only when it is finished");
        let header = Header { info, replica: *replica, log_floor: log_end.load(Ordering::Relaxed) };
        // The state first: the header must not become durable before it.
        self.file.sync_data().during("sync", temporary)?;
        self.file.write_all_at(&header.encode(*cluster_id), 0).during("write", temporary)?;
        self.file.sync_data().during("sync", temporary)?;
        let path = self.snapshots.path(slot);
        disk.rename(temporary, &path).during("rename a new snapshot to", &path)?;
        self.temporary = None;
        disk.sync_dir(dir).during("sync", dir)?;
        let mut held = self.snapshots.held();
        held.damaged.retain(|damaged| *damaged != path);
        held.by_slot.insert(slot, header.info.clone());
        Ok(header.info)
    }
}

impl<D: Disk> Drop for SnapshotWriter<D> {
    fn drop(&mut self) {
        if let Some(path) = self.temporary.take() {
            // Frees the space. If that fails too, the next opening does it.
            let _ = self.snapshots.0.disk.remove(&path);
        }
    }
}

/// Reads a snapshot in pieces.
#[derive(Debug)]
pub struct SnapshotReader<F> {
    file: F,
    path: PathBuf,
    info: SnapshotInfo,
    offset: u64,
    hasher: blake3::Hasher,
}

impl<F: DiskFile> SnapshotReader<F> {
    pub(crate) fn open<D: Disk<File = F>>(disk: &D, dir: &Path, info: SnapshotInfo) -> Result<Self, SnapshotError> {
        let path = dir.join(snapshot_name(info.meta.slot));
        let file = disk.open_read_only(&path).during("open", &path)?;
        Ok(Self { file, path, info, offset: 0, hasher: blake3::Hasher::new() })
    }

    /// Its metadata. [`SnapshotInfo::encode`] announces it to a receiver.
    #[must_use]
    pub fn info(&self) -> &SnapshotInfo {
        &self.info
    }

    /// Reads the next piece of the state, at most 1 MiB, into `piece`; `false` at the end. The caller may use the state only after
    /// the end, when its hash has been verified.
    pub fn next(&mut self, piece: &mut Vec<u8>) -> Result<bool, SnapshotError> {
        piece.resize(self.next_len()?, 0);
        self.fill(piece)?;
        Ok(!piece.is_empty())
    }

    /// The whole state, checked.
    pub fn read_all(mut self) -> Result<Vec<u8>, SnapshotError> {
        // The length was checked when the header was read.
        let mut state = Vec::with_capacity(usize::try_from(self.info.state_bytes).unwrap_or(0));
        loop {
            let at = state.len();
            state.resize(at + self.next_len()?, 0);
            if at == state.len() {
                return Ok(state);
            }
            self.fill(&mut state[at..])?;
        }
    }

    /// Length of the next piece; 0 at the end, after the hash was verified.
    fn next_len(&self) -> Result<usize, SnapshotError> {
        let left = self.info.state_bytes - self.offset;
        if left == 0 && *self.hasher.finalize().as_bytes() != self.info.state_hash {
            return Err(self.damaged("its hash does not match its bytes"));
        }
        Ok(usize::try_from(left).unwrap_or(usize::MAX).min(READ_BYTES))
    }

    fn fill(&mut self, piece: &mut [u8]) -> Result<(), SnapshotError> {
        let got = read_full_at(&self.file, piece, HEADER_BYTES as u64 + self.offset).during("read", &self.path)?;
        if got < piece.len() {
            return Err(self.damaged("it is shorter than its header says"));
        }
        self.hasher.update(piece);
        self.offset += got as u64;
        Ok(())
    }

    fn damaged(&self, detail: &'static str) -> SnapshotError {
        SnapshotError::Damaged { path: self.path.clone(), detail }
    }
}

struct Header {
    info: SnapshotInfo,
    replica: u64,
    log_floor: u64,
}

impl Header {
    fn encode(&self, cluster_id: u64) -> Vec<u8> {
        let mut meta = Vec::new();
        self.info.meta.encode(&mut meta);
        assert!(META_AT + meta.len() <= CRC_AT, "the members are bounded, and fit");
        let mut bytes = vec![0; HEADER_BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &MAGIC);
        put(8, &REPLICA_SNAPSHOT_VERSION.to_le_bytes());
        put(12, &u32::try_from(meta.len()).expect("it fits the header").to_le_bytes());
        put(16, &cluster_id.to_le_bytes());
        put(24, &self.replica.to_le_bytes());
        put(32, &self.log_floor.to_le_bytes());
        put(40, &self.info.state_bytes.to_le_bytes());
        put(48, &self.info.state_hash);
        put(META_AT, &meta);
        let crc = crc32c::crc32c(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }
}

fn read_header<D: Disk>(disk: &D, path: &Path, cluster_id: u64) -> Result<Header, SnapshotError> {
    let damaged = |detail| SnapshotError::Damaged { path: path.to_path_buf(), detail };
    let file = disk.open_read_only(path).during("open", path)?;
    let len = file.len().during("read the length of", path)?;
    let mut bytes = vec![0; HEADER_BYTES];
    let got = read_full_at(&file, &mut bytes, 0).during("read", path)?;
    let half = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("the fields lie inside the header"));
    let word = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("the fields lie inside the header"));
    if got < HEADER_BYTES || bytes[..8] != MAGIC || half(CRC_AT) != crc32c::crc32c(&bytes[..CRC_AT]) {
        return Err(damaged("its header is not readable"));
    }
    if half(8) != REPLICA_SNAPSHOT_VERSION {
        return Err(SnapshotError::Version { path: path.to_path_buf(), found: half(8), supported: REPLICA_SNAPSHOT_VERSION });
    }
    if word(16) != cluster_id {
        return Err(SnapshotError::OtherCluster { path: path.to_path_buf(), found: word(16), expected: cluster_id });
    }
    let meta_end = META_AT.saturating_add(half(12) as usize);
    let meta = bytes.get(META_AT..meta_end).and_then(SnapshotMeta::decode).ok_or_else(|| damaged("its place does not decode"))?;
    let (state_bytes, state_hash) = (word(40), *bytes[48..].first_chunk().expect("the fields lie inside the header"));
    if len != state_bytes.saturating_add(HEADER_BYTES as u64) {
        return Err(damaged("its length is not what its header says"));
    }
    Ok(Header { info: SnapshotInfo { meta, state_bytes, state_hash }, replica: word(24), log_floor: word(32) })
}
