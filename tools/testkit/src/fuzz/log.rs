//! Recovery of the log and of snapshots from whatever stands on the disk.

use std::path::{Path, PathBuf};

use walras_log_store::sim_disk::{SimDisk, SimDiskConfig};
use walras_log_store::{Disk, DiskFile, LogError, LogOptions, LogWriter, SnapshotStore, open_read_only, verify};
use walras_types::LogIndex;

use crate::Choices;

const DIR: &str = "/log";
const BLOCK: u32 = 512;

fn options() -> LogOptions {
    LogOptions { segment_bytes: 8 * u64::from(BLOCK), block_bytes: BLOCK, group_bytes_max: 2048, ..LogOptions::default() }
}

/// A log of two segments whose entries name themselves.
fn sound_log() -> SimDisk {
    let disk = SimDisk::new(1, SimDiskConfig { page_bytes: BLOCK as usize, short_reads: false, ..SimDiskConfig::default() });
    let (mut log, _) = LogWriter::open(disk.clone(), Path::new(DIR), options()).expect("an empty disk takes a log");
    for _ in 0..9 {
        for _ in 0..3 {
            let index = log.next_index();
            log.append(&payload(index)).expect("a short entry fits");
        }
        log.sync().expect("the disk is well");
    }
    drop(log);
    disk.kill();
    disk
}

fn payload(index: LogIndex) -> Vec<u8> {
    let mut bytes = index.0.to_le_bytes().to_vec();
    bytes.resize(8 + (index.0 * 7 % 61) as usize, index.0 as u8 | 1);
    bytes
}

/// Changes files of a sound log, then opens it: it opens and goes on, or says what is wrong. It never shows an entry that was not
/// written.
pub fn recovery(bytes: &[u8]) {
    let disk = sound_log();
    let mut c = Choices::of_bytes(bytes);
    let paths = disk.paths();
    let path = paths[c.below(paths.len() as u64) as usize].clone();
    let whole_file = c.below(3) == 2;
    // A checksum of 32 bits finds every change within 32 bits; a fuzzer can forge what is wider.
    let mut must_notice = !whole_file;
    if whole_file {
        let rest = c.rest();
        disk.edit(&path, |file| file.splice(.., rest.iter().copied()).for_each(drop));
    } else {
        let patch_count = c.below(4);
        must_notice &= patch_count <= 1;
        for _ in 0..patch_count {
            let at = c.any() as usize;
            let value = c.byte();
            match c.weighted(&[8, 1, 1]) {
                0 => disk.edit(&path, |file| {
                    if !file.is_empty() {
                        let at = at % file.len();
                        file[at] ^= value
                    }
                }),
                1 => disk.edit(&path, |file| file.truncate(at % (file.len() + 1))),
                _ => disk.edit(&path, |file| file.resize((file.len() + at % 2048).min(1 << 16), value)),
            }
        }
        if c.one_in(8) && disk.bytes_of(&path).is_some() {
            disk.lose(&path);
        }
    }
    let report = verify(&disk, Path::new(DIR));
    if let Ok((reader, lock)) = open_read_only(&disk, Path::new(DIR), None) {
        read(reader, must_notice);
        drop(lock);
    }
    match LogWriter::open(disk.clone(), Path::new(DIR), options()) {
        Ok((mut log, found)) => {
            assert!(found.created || report.is_ok_and(|report| report.is_sound()), "a log opened that does not verify");
            let held = read(log.reader(log.first_index()).expect("the first index is inside the log"), must_notice);
            assert_eq!(held, found.entry_count);
            goes_on(&mut log, &disk, held);
        }
        Err(error) => assert!(is_about_damage(&error), "{error}"),
    }
}

/// Reads to the end; how many entries there were.
fn read<F: DiskFile>(mut reader: walras_log_store::LogReader<F>, must_notice: bool) -> u64 {
    let mut count = 0;
    let mut last = None;
    loop {
        match reader.next() {
            Ok(Some(entry)) => {
                assert!(last.is_none_or(|last: LogIndex| entry.index == last.next()), "entries in order, each once");
                last = Some(entry.index);
                if must_notice {
                    assert_eq!(entry.payload, payload(entry.index), "an entry that was never written");
                }
                count += 1;
            }
            Ok(None) => return count,
            Err(error) => panic!("it opened and then did not read: {error}"),
        }
    }
}

/// What opens takes more, and has it after the next start.
fn goes_on(log: &mut LogWriter<SimDisk>, disk: &SimDisk, held: u64) {
    if log.next_index().0 > u64::MAX - 10 {
        return;
    }
    let (first, next) = (log.first_index(), log.next_index());
    log.append(b"more").expect("an open log takes an entry");
    assert_eq!(log.sync().expect("the disk is well"), next.next());
    disk.crash();
    let (log, _) = LogWriter::open(disk.clone(), Path::new(DIR), options()).expect("what was open opens again");
    assert_eq!((log.first_index(), log.durable_end()), (first, next.next()));
    assert_eq!(log.durable_end().0 - log.first_index().0, held + 1);
}

fn is_about_damage(error: &LogError) -> bool {
    match error {
        LogError::Corrupt { .. }
        | LogError::IdentityMissing { .. }
        | LogError::NotFound { .. }
        | LogError::Version { .. }
        | LogError::WrongOwner { .. }
        | LogError::BelowFloor { .. } => true,
        LogError::DiskFull { .. }
        | LogError::OutOfDescriptors { .. }
        | LogError::Io { .. }
        | LogError::Poisoned
        | LogError::Locked { .. }
        | LogError::EntryTooLong { .. }
        | LogError::OutOfRange { .. }
        | LogError::SnapshotNotNewer { .. }
        | LogError::Options { .. } => false,
    }
}

/// A folder with one sound snapshot and one of these bytes: the sound one loads, or the other where it is whole.
pub fn snapshot_store(bytes: &[u8]) {
    let disk = SimDisk::new(2, SimDiskConfig { short_reads: false, ..SimDiskConfig::default() });
    let dir = PathBuf::from("/snapshots");
    let mut store = SnapshotStore::open(disk.clone(), &dir, 7).expect("an empty disk takes snapshots");
    store.write(LogIndex(5), b"the state after five").expect("the disk is well");
    drop(store);
    disk.kill();
    let newer = dir.join(format!("{:020}.snap", 9));
    disk.create(&newer).and_then(|file| file.write_all_at(bytes, 0)).expect("the disk is well");
    match SnapshotStore::open(disk.clone(), &dir, 7) {
        Ok(mut store) => {
            let (snapshot, damaged) = store.load_newest().expect("an open folder loads");
            let snapshot = snapshot.expect("one of them is sound");
            assert_eq!(damaged.len(), usize::from(snapshot.log_index == LogIndex(5)), "the newer one is whole or damaged");
            store.write(LogIndex(11), b"after eleven").expect("the disk is well");
            assert_eq!(store.load_newest().expect("an open folder loads").0.map(|found| found.log_index), Some(LogIndex(11)));
        }
        Err(error) => assert!(matches!(error, LogError::Version { .. } | LogError::WrongOwner { .. }), "{error}"),
    }
}
