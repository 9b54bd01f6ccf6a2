//! Snapshots: the newest sound one is found, whatever crashed or was damaged, and the log keeps what a fallback needs.

use crate::common::*;
use std::path::{Path, PathBuf};
use walras_log_store::sim_disk::{SimDisk, SimFaults};
use walras_log_store::{LogError, RealDisk, Snapshot, SnapshotStore};
use walras_types::LogIndex;

type Damage = Box<dyn Fn(&mut Vec<u8>)>;

fn folder() -> PathBuf {
    PathBuf::from("/venue/snapshots")
}

fn store(disk: &SimDisk) -> Result<SnapshotStore<SimDisk>, LogError> {
    SnapshotStore::open(disk.clone(), &folder(), 1)
}

fn state(index: u64) -> Vec<u8> {
    (0..index * 37 % 2000).map(|at| (at * index) as u8).collect()
}

fn newest(store: &SnapshotStore<SimDisk>) -> Option<u64> {
    let (snapshot, _) = store.load_newest().unwrap();
    snapshot.map(|Snapshot { log_index, bytes }| {
        assert_eq!(bytes, state(log_index.0));
        log_index.0
    })
}

#[test]
fn the_last_two_are_kept_and_the_older_one_says_what_the_log_may_let_go() {
    let disk = sim(1);
    let mut snapshots = store(&disk).unwrap();
    assert_eq!((newest(&snapshots), snapshots.spare_up_to()), (None, None));
    for (written, spare) in [(10, None), (25, Some(10)), (70, Some(25)), (71, Some(70))] {
        snapshots.write(LogIndex(written), &state(written)).unwrap();
        assert_eq!((newest(&snapshots), snapshots.spare_up_to()), (Some(written), spare.map(LogIndex)));
    }
    assert!(matches!(snapshots.write(LogIndex(71), b""), Err(LogError::SnapshotNotNewer { .. })));
    assert_eq!(disk.paths().len(), 2);
    assert!(matches!(store(&disk), Err(LogError::Locked { .. })));
    drop(snapshots);
    let snapshots = store(&disk).unwrap();
    assert_eq!((snapshots.indices(), snapshots.damaged()), (&[LogIndex(70), LogIndex(71)][..], &[][..]));
    drop(snapshots);
    assert!(matches!(SnapshotStore::open(disk, &folder(), 2), Err(LogError::WrongOwner { found: 1, expected: 2, .. })));
}

#[test]
fn any_damage_to_the_newest_falls_back_to_the_one_before_and_is_reported() {
    let whole = sim(2);
    let mut snapshots = store(&whole).unwrap();
    snapshots.write(LogIndex(3), &state(3)).unwrap();
    snapshots.write(LogIndex(5), &state(5)).unwrap();
    drop(snapshots);
    let path = folder().join("00000000000000000005.snap");
    let len = whole.bytes_of(&path).unwrap().len();
    let damages: Vec<Damage> = (0..len)
        .flat_map(|at| -> [Damage; 2] { [Box::new(move |bytes| bytes[at] ^= 2), Box::new(move |bytes| bytes.truncate(at))] })
        .chain([Box::new(|bytes: &mut Vec<u8>| bytes.push(0)) as Damage])
        .collect();
    for (number, damage) in damages.iter().enumerate() {
        let disk = whole.fork();
        disk.edit(&path, damage);
        let mut snapshots = store(&disk).unwrap();
        assert_eq!(newest(&snapshots), Some(3), "damage {number}");
        assert_eq!(snapshots.spare_up_to(), None, "the log must keep what leads from 3 on");
        assert_eq!(snapshots.load_newest().unwrap().1, snapshots.damaged());
        assert_eq!(snapshots.damaged()[0].path, path);
        // The sound one is not given up for the damaged one.
        let next = if number % 2 == 0 { 5 } else { 8 };
        snapshots.write(LogIndex(next), &state(next)).unwrap();
        assert_eq!(snapshots.indices(), [LogIndex(3), LogIndex(next)]);
        drop(snapshots);
        let snapshots = store(&disk).unwrap();
        assert_eq!((snapshots.indices(), snapshots.damaged().len()), (&[LogIndex(3), LogIndex(next)][..], 0));
    }
}

#[test]
fn damage_that_comes_after_opening_falls_back_too() {
    let disk = sim(3);
    let mut snapshots = store(&disk).unwrap();
    snapshots.write(LogIndex(3), &state(3)).unwrap();
    snapshots.write(LogIndex(5), &state(5)).unwrap();
    disk.flip(&folder().join("00000000000000000005.snap"), 60, 1);
    let (snapshot, damaged) = snapshots.load_newest().unwrap();
    assert_eq!((snapshot.unwrap().log_index, damaged.len()), (LogIndex(3), 1));
    assert!(damaged[0].to_string().contains("an older snapshot serves"));
}

#[test]
fn a_crash_at_any_operation_leaves_the_old_or_the_new_one() {
    let mut finished = 0;
    for seed in 0..40 {
        for crash_in_ops in 0..60 {
            let disk = sim(seed);
            disk.set_faults(SimFaults { crash_in_ops: Some(crash_in_ops), ..SimFaults::default() });
            let (mut written, mut begun) = (0, 0);
            if let Ok(mut snapshots) = store(&disk) {
                for index in [2, 9, 40, 41, 60] {
                    begun = index;
                    match snapshots.write(LogIndex(index), &state(index)) {
                        Ok(()) => written = index,
                        Err(_) => break,
                    }
                }
            }
            finished += u32::from(written == 60);
            disk.crash();
            let snapshots = store(&disk).unwrap();
            assert!(snapshots.damaged().is_empty(), "seed {seed} op {crash_in_ops}: {:?}", snapshots.damaged());
            let found = newest(&snapshots).unwrap_or(0);
            assert!(found >= written && found <= begun, "seed {seed} op {crash_in_ops}: {found} of {written} to {begun}");
            // Every dropped entry is still covered by two snapshots.
            if written > 2 {
                assert!(snapshots.indices().len() >= 2, "seed {seed} op {crash_in_ops}: {:?}", snapshots.indices());
            }
            assert!(disk.paths().iter().all(|path| path.extension().is_some_and(|ext| ext == "snap")));
        }
    }
    assert!((1..40 * 60).contains(&finished), "the crashes cover everything that is done: {finished}");
}

#[test]
fn a_full_disk_or_a_failed_sync_leaves_the_old_ones_and_another_try_succeeds() {
    let disk = sim(4);
    let mut snapshots = store(&disk).unwrap();
    snapshots.write(LogIndex(9), &state(9)).unwrap();
    disk.set_capacity(900);
    assert!(matches!(snapshots.write(LogIndex(50), &state(50)), Err(LogError::DiskFull { .. })));
    assert_eq!((newest(&snapshots), disk.paths().len()), (Some(9), 1));
    disk.set_capacity(u64::MAX);
    disk.set_faults(SimFaults { sync_error_in: Some(0), ..SimFaults::default() });
    assert!(matches!(snapshots.write(LogIndex(50), &state(50)), Err(LogError::Io { .. })));
    assert_eq!((newest(&snapshots), disk.paths().len()), (Some(9), 1));
    snapshots.write(LogIndex(50), &state(50)).unwrap();
    assert_eq!(newest(&snapshots), Some(50));
}

#[test]
fn snapshots_let_the_log_go_and_the_two_together_hold_everything() {
    let disk = sim(5);
    let (mut log, _) = open(&disk, tiny(6)).unwrap();
    let mut snapshots = store(&disk).unwrap();
    for round in 1..=40_u64 {
        write_group(&mut log, 3);
        log.maintain().unwrap();
        if round % 8 == 0 {
            let applied = log.durable_end().0 - 1;
            snapshots.write(LogIndex(applied), &state(applied)).unwrap();
            if let Some(up_to) = snapshots.spare_up_to() {
                log.truncate_prefix(up_to).unwrap();
            }
        }
    }
    assert!(log.first_index().0 > 50);
    drop((log, snapshots));
    disk.crash();
    let snapshots = store(&disk).unwrap();
    let (log, _) = open(&disk, tiny(6)).unwrap();
    for index in snapshots.indices() {
        assert!(log.first_index() <= index.next(), "either snapshot can be brought up to date");
        assert_eq!(read_from(&log, index.next()).last().map(|last| last.0), Some(120).filter(|_| index.0 < 120));
    }
}

#[test]
fn the_same_on_a_real_disk() {
    let temp = tempfile::tempdir().unwrap();
    let dir: &Path = &temp.path().join("snapshots");
    let mut snapshots = SnapshotStore::open(RealDisk, dir, 1).unwrap();
    let large = vec![3; (8 << 20) + 17];
    snapshots.write(LogIndex(1), b"first").unwrap();
    snapshots.write(LogIndex(2), &large).unwrap();
    std::fs::write(dir.join("00000000000000000003.snap.new"), b"half").unwrap();
    drop(snapshots);
    let snapshots = SnapshotStore::open(RealDisk, dir, 1).unwrap();
    let (snapshot, damaged) = snapshots.load_newest().unwrap();
    assert_eq!((snapshot.unwrap().bytes, damaged), (large, vec![]));
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 3, "two snapshots and the lock");
}
