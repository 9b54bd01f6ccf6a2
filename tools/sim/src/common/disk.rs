//! The simulated disk, which may be set to lie about syncs.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use walras_log_store::sim_disk::{SimDisk, SimFile, SimLock};
use walras_log_store::{Disk, DiskFile, LockKind, Pace};

/// A [`SimDisk`], or one that skips syncs.
#[derive(Clone, Debug)]
pub(crate) struct VenueDisk {
    pub(crate) device: SimDisk,
    /// Files whose names end so are not synced.
    skipped: Option<&'static str>,
    reused: Arc<AtomicU64>,
}

#[derive(Debug)]
pub(crate) struct VenueFile {
    file: SimFile,
    skips_sync: bool,
}

impl VenueDisk {
    pub(crate) fn new(device: SimDisk, skipped: Option<&'static str>) -> Self {
        Self { device, skipped, reused: Arc::default() }
    }

    /// Files of segments that became new segments.
    pub(crate) fn reused_count(&self) -> u64 {
        self.reused.load(Ordering::Relaxed)
    }

    fn wrap(&self, path: &Path, file: SimFile) -> VenueFile {
        let skips_sync = self.skipped.is_some_and(|end| path.to_string_lossy().ends_with(end));
        VenueFile { file, skips_sync }
    }
}

impl Disk for VenueDisk {
    type File = VenueFile;
    type Lock = SimLock;

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.device.create_dir_all(dir)
    }
    fn lock_dir(&self, dir: &Path, kind: LockKind) -> io::Result<SimLock> {
        self.device.lock_dir(dir, kind)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.device.list(dir)
    }
    fn create(&self, path: &Path) -> io::Result<VenueFile> {
        Ok(self.wrap(path, self.device.create(path)?))
    }
    fn open(&self, path: &Path) -> io::Result<VenueFile> {
        Ok(self.wrap(path, self.device.open(path)?))
    }
    fn open_read_only(&self, path: &Path) -> io::Result<VenueFile> {
        Ok(self.wrap(path, self.device.open_read_only(path)?))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let is_segment = |path: &Path| path.extension().is_some_and(|end| end == "seg");
        self.reused.fetch_add(u64::from(is_segment(from) && is_segment(to)), Ordering::Relaxed);
        self.device.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.device.remove(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.device.sync_dir(dir)
    }
    fn entropy(&self) -> io::Result<u64> {
        self.device.entropy()
    }
}

impl DiskFile for VenueFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buf, offset)
    }
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(buf, offset)
    }
    fn allocate(&self, len: u64, pace: &Pace) -> io::Result<()> {
        self.file.allocate(len, pace)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        if self.skips_sync { Ok(()) } else { self.file.sync_data() }
    }
    fn drop_cache(&self) -> io::Result<()> {
        self.file.drop_cache()
    }
}
