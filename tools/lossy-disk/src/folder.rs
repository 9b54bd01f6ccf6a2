//! A mounted folder, and what may become of it.

use std::path::Path;
use std::sync::{Arc, Mutex};

use fuser::{BackgroundSession, Config, MountOption};
use walras_log_store::sim_disk::{SimDisk, SimDiskConfig, SimSyncs};

use crate::fuse::{Lossy, Mounted};
use crate::tree::Tree;

/// A folder on a lossy disk, until it is dropped.
#[derive(Debug)]
pub struct LossyFolder {
    disk: SimDisk,
    tree: Arc<Mutex<Tree>>,
    _session: BackgroundSession,
}

/// It cannot be mounted here.
#[derive(Debug, thiserror::Error)]
#[error("no file system of this process can be mounted ({0}): that takes /dev/fuse, and the right to mount or fusermount3")]
pub struct MountError(#[from] std::io::Error);

impl LossyFolder {
    /// Mounts an empty one over a folder that exists. The seed decides what is lost.
    ///
    /// # Errors
    /// Where the system lets this user mount nothing.
    pub fn mount(at: &Path, seed: u64) -> Result<Self, MountError> {
        let disk = SimDisk::new(seed, SimDiskConfig { short_reads: false, ..SimDiskConfig::default() });
        let tree = Arc::new(Mutex::new(Tree::new()));
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("walras-lossy".to_owned()), MountOption::RW];
        let session = fuser::spawn_mount(Mounted::new(Lossy::new(disk.clone(), Arc::clone(&tree))), at, &config)?;
        Ok(Self { disk, tree, _session: session })
    }

    /// The power fails and is back: what was not synced survives in part. Processes that have files open there must be gone.
    pub fn lose_power(&self) {
        let mut tree = self.tree.lock().expect("no holder of this lock panics");
        self.disk.crash();
        tree.forget_files();
    }

    /// From now on the disk says that it has synced, and has not.
    pub fn ignore_syncs(&self) {
        self.disk.set_syncs(SimSyncs::Ignored);
    }
}
