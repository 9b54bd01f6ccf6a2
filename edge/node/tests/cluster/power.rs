//! Power that fails. The folders of all replicas are on disks that lose what was not synced (`tools/lossy-disk`), as the end of a
//! process alone does not: the kernel keeps what it wrote. `WALRAS_TORTURE_ROUNDS` asks for more rounds: `make torture`.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use rustix::process::Signal;
use walras_lossy_disk::LossyFolder;

use super::client::{Diary, Participant};
use super::{Cluster, PATIENCE, Shape, check_told, participants, progress, stop_in_order};

const REPLICAS: u64 = 3;

fn round_count() -> u64 {
    std::env::var("WALRAS_TORTURE_ROUNDS").map_or(2, |count| count.parse().expect("WALRAS_TORTURE_ROUNDS is a number of rounds"))
}

/// A disk for each replica.
struct Disks {
    folders: Vec<LossyFolder>,
    /// Where they are mounted: it goes after them.
    dir: tempfile::TempDir,
}

impl Disks {
    /// `None`, with a word about it, where nothing can be mounted.
    fn new() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mut folders = Vec::new();
        for id in 1..=REPLICAS {
            let at = dir.path().join(id.to_string());
            std::fs::create_dir(&at).unwrap();
            match LossyFolder::mount(&at, id) {
                Ok(folder) => folders.push(folder),
                Err(why) => {
                    println!("skipped: {why}");
                    return None;
                }
            }
        }
        Some(Self { folders, dir })
    }

    /// A cluster whose data is on them.
    fn cluster(&self) -> Cluster {
        let shape = Shape { segment_bytes: 1 << 20, checkpoint_every: 200, ..Shape::default() };
        Cluster::of_program(Path::new(env!("CARGO_BIN_EXE_walras")), shape, |cluster| {
            for id in 1..=REPLICAS {
                let (data, disk) = (cluster.join(format!("replica-{id}/data")), self.dir.path().join(id.to_string()));
                if data.exists() {
                    copy_durably(&data, &disk);
                    std::fs::remove_dir_all(&data).unwrap();
                }
                std::os::unix::fs::symlink(&disk, &data).unwrap();
            }
        })
    }

    /// Power fails at all replicas at once.
    fn lose_power(&self, cluster: &mut Cluster) {
        for replica in &cluster.local.replicas {
            replica.signal(Signal::KILL).unwrap();
        }
        for replica in &mut cluster.local.replicas {
            assert_eq!(replica.wait().unwrap(), None, "it was killed");
        }
        self.folders.iter().for_each(LossyFolder::lose_power);
    }
}

fn copy_durably(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, target) = entry.map(|entry| (entry.path(), to.join(entry.file_name()))).unwrap();
        if path.is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy_durably(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
            File::open(&target).unwrap().sync_all().unwrap();
        }
    }
    File::open(to).unwrap().sync_all().unwrap();
}

fn start_all(cluster: &mut Cluster) {
    for id in 1..=REPLICAS {
        cluster.local.start(id).unwrap();
    }
    cluster.local.wait_for_leader(PATIENCE).unwrap();
}

#[test]
fn what_was_answered_survives_the_loss_of_power_at_all_replicas() {
    let Some(disks) = Disks::new() else { return };
    let mut cluster = disks.cluster();
    let participants = participants(&cluster, 2);
    progress(&participants, 200);
    for round in 1..=round_count() {
        disks.lose_power(&mut cluster);
        start_all(&mut cluster);
        progress(&participants, 100);
        println!("round {round}: everybody is answered again");
    }
    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    let end = stop_in_order(&mut cluster, &[1, 2, 3]);
    check_told(&cluster, &[1, 2, 3], &diaries, end);
}

/// Whether all that was answered is there after the loss of power at all replicas.
fn survives(is_synced: bool) -> Option<bool> {
    let disks = Disks::new()?;
    let mut cluster = disks.cluster();
    let participants = participants(&cluster, 2);
    progress(&participants, 300);
    if !is_synced {
        disks.folders.iter().for_each(LossyFolder::ignore_syncs);
        progress(&participants, 300);
    }
    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    disks.lose_power(&mut cluster);
    let checked = catch_unwind(AssertUnwindSafe(|| {
        start_all(&mut cluster);
        let end = stop_in_order(&mut cluster, &[1, 2, 3]);
        check_told(&cluster, &[1, 2, 3], &diaries, end);
    }));
    Some(checked.is_ok())
}

/// The check above can fail: disks that say that they have synced, and have not, lose what was answered.
#[test]
fn disks_that_never_sync_are_found() {
    let (Some(honest), Some(lying)) = (survives(true), survives(false)) else { return };
    assert!(honest, "what was synced is there");
    assert!(!lying, "nothing was synced, and nothing is missing");
}
