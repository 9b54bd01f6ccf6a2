//! What a sync of the disk costs, without anything of ours or of a peer around it.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;

use crate::statistics::Percentiles;

const BLOCK_BYTES: usize = 4_096;
const BLOCKS: u64 = 256;
/// A tenth of a second on a good disk, two on a bad one.
const SYNCS: u64 = 512;

/// Microseconds of writing 4 KiB and syncing the data, over and over, into a file that was written in whole before: no metadata changes.
pub fn sync_us(folder: &Path) -> anyhow::Result<Percentiles> {
    let path = folder.join("sync-time");
    let measured =
        measure(&path).with_context(|| format!("syncing {}; check that its disk has space and is yours", path.display()));
    // What could not be made need not be removed.
    let _ = std::fs::remove_file(&path);
    measured
}

fn measure(path: &Path) -> anyhow::Result<Percentiles> {
    let file = OpenOptions::new().create(true).truncate(true).write(true).open(path)?;
    let block = [0x5a; BLOCK_BYTES];
    for index in 0..BLOCKS {
        file.write_all_at(&block, index * BLOCK_BYTES as u64)?;
    }
    file.sync_all()?;
    let mut samples = Vec::with_capacity(SYNCS as usize);
    for index in 0..SYNCS {
        let begun = Instant::now();
        file.write_all_at(&block, index % BLOCKS * BLOCK_BYTES as u64)?;
        file.sync_data()?;
        samples.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    Percentiles::of(samples).context("no sync was timed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_takes_time_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let sync = sync_us(folder.path()).unwrap();
        assert!(sync.p50 > 0.0 && sync.p99 >= sync.p50, "{sync:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let error = format!("{:#}", sync_us(&folder.path().join("gone")).unwrap_err());
        assert!(error.contains("check that its disk"), "{error}");
    }
}
