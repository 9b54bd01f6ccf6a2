//! Retained segments are read as one with the log, also while its writer has it open, with crashes at every operation.

use std::path::Path;
use walras_log_store::sim_disk::{SimDisk, SimDiskConfig, SimFaults};
use walras_log_store::{Disk, LetGo, LogError, LogOptions, LogWriter, RealDisk, history, open_read_only, open_whole, verify};
use walras_types::LogIndex;

fn dir() -> &'static Path {
    Path::new("/log")
}

/// Few entries fill a segment.
fn options() -> LogOptions {
    LogOptions { segment_bytes: 7 * 512, block_bytes: 512, group_bytes_max: 1024, let_go: LetGo::Keep, ..LogOptions::default() }
}

fn payload(index: u64) -> Vec<u8> {
    let mut bytes = vec![7; 300];
    bytes[..8].copy_from_slice(&index.to_le_bytes());
    bytes
}

/// Writes groups and lets go of all but the last few entries, as a venue does after each snapshot.
fn write<D: Disk>(log: &mut LogWriter<D>, groups: u64) -> Result<(), LogError> {
    for group in 0..groups {
        for _ in 0..2 {
            log.append(&payload(log.next_index().0))?;
        }
        log.sync()?;
        if group % 3 == 0 {
            log.truncate_prefix(LogIndex(log.durable_end().0.saturating_sub(9).max(1)))?;
        }
        log.maintain()?;
    }
    Ok(())
}

/// The first and last entry that can be read; every one between is what was written.
fn held<D: Disk>(disk: &D, dir: &Path) -> (u64, u64) {
    let (mut reader, _) = open_whole(disk, dir, None).unwrap();
    let first = reader.first_index().0;
    let mut next = first;
    while let Some(entry) = reader.next().unwrap() {
        assert_eq!((entry.index.0, entry.payload), (next, &payload(next)[..]));
        next += 1;
    }
    (first, next - 1)
}

#[test]
fn everything_let_go_of_is_still_read_and_the_log_opens_without_it() {
    let disk = SimDisk::new(1, SimDiskConfig::default());
    let (mut log, _) = LogWriter::open(disk.clone(), dir(), options()).unwrap();
    write(&mut log, 40).unwrap();
    assert!(log.first_index() > LogIndex(30) && history::list(&disk, dir()).unwrap().len() > 3);
    // The writer has the log: only a reader of the whole may look.
    assert!(matches!(open_read_only(&disk, dir(), None), Err(LogError::Locked { .. })));
    assert_eq!(held(&disk, dir()), (1, 80));
    let report = verify(&disk, dir()).unwrap();
    assert!(report.is_sound());
    assert_eq!((report.first_index, report.entry_count), (Some(LogIndex(1)), 80));
    let (first, end) = (log.first_index(), log.durable_end());
    log.close().unwrap();
    let (log, recovery) = LogWriter::open(disk.clone(), dir(), options()).unwrap();
    assert_eq!((recovery.first_index, recovery.end_index), (first, end));
    drop(log);
    assert_eq!(held(&disk, dir()), (1, 80));
}

#[test]
fn a_reader_goes_on_while_the_log_lets_go_under_its_hands() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, _) = LogWriter::open(RealDisk, folder.path(), options()).unwrap();
    write(&mut log, 10).unwrap();
    let (mut reader, lock) = open_whole(&RealDisk, folder.path(), None).unwrap();
    assert!(lock.is_none());
    let mut count = 0;
    while let Some(entry) = reader.next().unwrap() {
        assert_eq!(entry.payload, payload(entry.index.0));
        count += 1;
        write(&mut log, 1).unwrap();
    }
    assert_eq!((count, held(&RealDisk, folder.path())), (20, (1, 60)));
}

#[test]
fn the_oldest_go_and_a_gap_ends_the_history() {
    let disk = SimDisk::new(2, SimDiskConfig::default());
    let (mut log, _) = LogWriter::open(disk.clone(), dir(), options()).unwrap();
    write(&mut log, 40).unwrap();
    let kept = history::list(&disk, dir()).unwrap();
    disk.remove(&kept[0].0).unwrap();
    let (first, last) = held(&disk, dir());
    assert!(first > 1 && first < 30 && last == 80, "{first} to {last}");
    disk.remove(&kept[3].0).unwrap();
    let (after_gap, last) = held(&disk, dir());
    assert!(after_gap > first && last == 80, "{after_gap} to {last}");
    let asked = open_whole(&disk, dir(), Some(LogIndex(first)));
    assert!(matches!(asked, Err(LogError::OutOfRange { .. })));
    // The log itself misses nothing.
    drop(log);
    LogWriter::open(disk, dir(), options()).unwrap();
}

#[test]
fn a_log_that_kept_nothing_before_and_one_that_keeps_nothing_any_more_open() {
    let disk = SimDisk::new(3, SimDiskConfig::default());
    let without = LogOptions { let_go: LetGo::Reuse, spent_files_max: 2, ..options() };
    let mut end = 0;
    for options in [&without, &options(), &without, &options()] {
        let (mut log, _) = LogWriter::open(disk.clone(), dir(), options.clone()).unwrap();
        write(&mut log, 20).unwrap();
        end += 40;
        log.close().unwrap();
        assert_eq!(held(&disk, dir()).1, end);
        assert!(verify(&disk, dir()).unwrap().is_sound());
    }
}

#[test]
fn no_crash_loses_what_was_let_go_of() {
    let mut crashes = 0;
    for crash_in_ops in 0..400 {
        let disk = SimDisk::new(crash_in_ops, SimDiskConfig { page_bytes: 512, ..SimDiskConfig::default() });
        let (mut log, _) = LogWriter::open(disk.clone(), dir(), options()).unwrap();
        disk.set_faults(SimFaults { crash_in_ops: Some(crash_in_ops), ..SimFaults::default() });
        let written = write(&mut log, 30);
        crashes += u64::from(written.is_err());
        let end = log.durable_end().0 - 1;
        drop(log);
        disk.crash();
        let (first, last) = if end == 0 { (1, end) } else { held(&disk, dir()) };
        assert!(first == 1 && last >= end, "crash in {crash_in_ops}: {first} to {last} of {end}");
        let (mut log, _) = LogWriter::open(disk.clone(), dir(), options()).unwrap();
        write(&mut log, 10).unwrap();
        let (first, last) = held(&disk, dir());
        assert!(first == 1 && last >= end + 20, "after crash in {crash_in_ops}: {first} to {last} of {end}");
    }
    assert!(crashes > 150, "{crashes} crashes test little");
}
