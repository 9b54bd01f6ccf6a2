//! What is on the disk after the power failed, through the kernel. Where nothing can be mounted, the tests say so and end.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use walras_lossy_disk::LossyFolder;

fn mounted(seed: u64, test: impl FnOnce(&LossyFolder, &Path)) {
    let dir = tempfile::tempdir().unwrap();
    match LossyFolder::mount(dir.path(), seed) {
        Ok(folder) => test(&folder, dir.path()),
        Err(why) => println!("skipped: {why}"),
    }
}

/// A file with so many bytes, which is closed.
fn write(path: &Path, len: usize, is_synced: bool) {
    let mut file = File::create(path).unwrap();
    file.write_all(&vec![7; len]).unwrap();
    if is_synced {
        file.sync_all().unwrap();
        File::open(path.parent().unwrap()).unwrap().sync_all().unwrap();
    }
}

#[test]
fn what_was_synced_is_there_after_the_power_failed() {
    for seed in 0..10 {
        mounted(seed, |folder, at| {
            fs::create_dir(at.join("log")).unwrap();
            let path = at.join("log/1.seg");
            write(&path, 20_000, true);
            fs::rename(&path, at.join("log/2.seg")).unwrap();
            File::open(at.join("log")).unwrap().sync_all().unwrap();
            folder.lose_power();
            assert!(!path.exists());
            assert_eq!(fs::read(at.join("log/2.seg")).unwrap(), vec![7; 20_000]);
            let names: Vec<_> = fs::read_dir(at.join("log")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(names, ["2.seg"]);
        });
    }
}

#[test]
fn what_was_not_synced_is_lost_sooner_or_later() {
    for is_lying in [false, true] {
        let (mut tried, mut lost) = (0, 0);
        for seed in 0..20 {
            mounted(seed, |folder, at| {
                if is_lying {
                    folder.ignore_syncs();
                }
                write(&at.join("file"), 20_000, is_lying);
                assert_eq!(fs::read(at.join("file")).unwrap(), vec![7; 20_000], "memory has it");
                folder.lose_power();
                tried += 1;
                lost += u32::from(fs::read(at.join("file")).ok() != Some(vec![7; 20_000]));
            });
        }
        assert!(tried == 0 || lost > 0, "nothing was lost in {tried} losses of power");
    }
}
