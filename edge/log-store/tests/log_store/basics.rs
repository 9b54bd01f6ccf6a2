//! What the log does when nothing goes wrong.

use crate::common::*;
use walras_log_store::{LogError, LogOptions, LogWriter, RealDisk, SegmentRole, open_read_only, verify};
use walras_types::LogIndex;

#[test]
fn entries_come_back_in_order_across_segments_and_openings() {
    let disk = sim(1);
    let (mut log, recovery) = open(&disk, tiny(6)).unwrap();
    assert!(recovery.created && recovery.entry_count == 0);
    assert_eq!((log.first_index(), log.last_index()), (LogIndex(1), None));
    for group in 1..40 {
        write_group(&mut log, group % 9);
        if group % 5 == 0 {
            log.maintain().unwrap();
        }
    }
    let end = log.durable_end().0;
    assert_holds(&log, 1..end);
    assert!(log.footprint().0 > 6, "{:?}", log.footprint());
    assert_eq!(log.close().unwrap(), LogIndex(end));
    let (log, recovery) = open(&disk, tiny(6)).unwrap();
    assert_eq!((recovery.created, recovery.end_index.0, recovery.entry_count), (false, end, end - 1));
    assert_eq!(recovery.torn_tail, None);
    assert_holds(&log, 1..end);
}

#[test]
fn a_reader_starts_at_any_entry_and_needs_the_writer_no_more() {
    let disk = sim(2);
    let (mut log, _) = open(&disk, tiny(8)).unwrap();
    for _ in 0..30 {
        write_group(&mut log, 5);
    }
    for from in 1..=151 {
        let entries = read_from(&log, LogIndex(from));
        assert_eq!(entries, (from..151).map(|index| (index, entry(index))).collect::<Vec<_>>(), "from {from}");
    }
    assert!(matches!(log.reader(LogIndex(152)), Err(LogError::OutOfRange { .. })));
    assert!(matches!(log.reader(LogIndex(0)), Err(LogError::OutOfRange { .. })));
    let all = log.reader(LogIndex(1)).unwrap();
    let mut used = log.reader(LogIndex(1)).unwrap();
    let mut reader = log.reader(LogIndex(150)).unwrap();
    write_group(&mut log, 1);
    drop(log);
    assert_eq!(reader.next().unwrap().unwrap().index, LogIndex(150));
    assert_eq!(reader.next().unwrap(), None);
    // Another reader of what one has yet to return.
    for from in 1..=151 {
        let mut again = all.again(LogIndex(from)).unwrap();
        for index in from..151 {
            assert_eq!(again.next().unwrap().unwrap().payload, entry(index));
        }
        assert_eq!(again.next().unwrap(), None);
        if let Some(read) = used.next().unwrap() {
            assert_eq!(read.index, LogIndex(from));
        }
        assert!(matches!(used.again(LogIndex(from)), Err(LogError::OutOfRange { .. })) || from == 151);
        let mut after = used.again(LogIndex((from + 1).min(151))).unwrap();
        let next = after.next().unwrap().map(|entry| entry.index.0);
        assert_eq!(next, (from < 150).then_some(from + 1));
    }
    assert!(matches!(all.again(LogIndex(152)), Err(LogError::OutOfRange { .. })));
}

#[test]
fn groups_larger_than_a_group_or_a_segment_are_split_and_an_entry_too_long_is_refused() {
    let disk = sim(3);
    let options = tiny(5);
    let (mut log, _) = open(&disk, options.clone()).unwrap();
    let longest = options.entry_bytes_max();
    assert!(matches!(log.append(&vec![1; longest + 1]), Err(LogError::EntryTooLong { max, .. }) if max == longest));
    let mut expected = Vec::new();
    for round in 0..60_usize {
        let payload = vec![round as u8; round * 131 % (longest + 1)];
        let index = log.append(&payload).unwrap();
        expected.push((index.0, payload));
        if round % 7 == 6 {
            assert!(log.append(&vec![1; longest + 1]).is_err());
        }
        if round % 11 == 10 {
            log.sync().unwrap();
        }
    }
    log.append(&vec![9; longest]).unwrap();
    expected.push((61, vec![9; longest]));
    log.sync().unwrap();
    assert_eq!(contents(&log), expected);
    drop(log);
    assert_eq!(contents(&open(&disk, options).unwrap().0), expected);
}

#[test]
fn options_may_change_between_openings() {
    let disk = sim(4);
    let mut end = 1;
    for (blocks, block_bytes) in [(6, 512), (20, 512), (4, 1024), (3, 4096), (9, 512)] {
        let options = LogOptions {
            segment_bytes: blocks * u64::from(block_bytes),
            block_bytes,
            group_bytes_max: 4096,
            ..LogOptions::default()
        };
        let (mut log, _) = open(&disk, options).unwrap();
        assert_holds(&log, 1..end);
        for _ in 0..12 {
            write_group(&mut log, 9);
            log.maintain().unwrap();
        }
        end = log.durable_end().0;
    }
    assert_holds(&open(&disk, tiny(4)).unwrap().0, 1..end);
}

#[test]
fn options_that_cannot_work_are_refused_with_what_would() {
    let disk = sim(5);
    for options in [
        LogOptions { block_bytes: 1000, ..LogOptions::default() },
        LogOptions { segment_bytes: 4096, ..LogOptions::default() },
        LogOptions { segment_bytes: (64 << 20) + 1, ..LogOptions::default() },
        LogOptions { group_bytes_max: 0, ..LogOptions::default() },
    ] {
        assert!(matches!(open(&disk, options), Err(LogError::Options { .. })));
    }
}

#[test]
fn a_prefix_goes_by_whole_segments_and_their_files_are_used_again() {
    let disk = sim(6);
    let (mut log, _) = open(&disk, tiny(6)).unwrap();
    let mut first = 1;
    for round in 0..60 {
        write_group(&mut log, 4);
        log.maintain().unwrap();
        if round % 7 == 6 {
            let up_to = LogIndex(log.durable_end().0 - 10);
            let kept_from = log.truncate_prefix(up_to).unwrap();
            assert!(kept_from.0 >= first && kept_from <= up_to.next());
            first = kept_from.0;
            log.maintain().unwrap();
        }
    }
    assert!(first > 100);
    assert!(segments(&disk).len() < 8, "{:?}", segments(&disk));
    let end = log.durable_end().0;
    assert_holds(&log, first..end);
    assert!(matches!(log.truncate_prefix(LogIndex(end)), Err(LogError::OutOfRange { .. })));
    log.close().unwrap();
    let report = verify(&disk, &dir()).unwrap();
    assert!(report.is_sound() && report.segments.iter().any(|segment| segment.recycled), "{report:#?}");
    let (log, recovery) = open(&disk, tiny(6)).unwrap();
    assert_eq!(recovery.torn_tail, None);
    assert_holds(&log, first..end);
}

#[test]
fn a_suffix_goes_entry_by_entry() {
    for from in 1..=61 {
        let disk = sim(from);
        let (mut log, _) = open(&disk, tiny(6)).unwrap();
        for _ in 0..12 {
            write_group(&mut log, 5);
        }
        log.truncate_suffix(LogIndex(from)).unwrap();
        assert_holds(&log, 1..from);
        write_group(&mut log, 3);
        log.append(b"buffered").unwrap();
        log.truncate_suffix(LogIndex(from + 2)).unwrap();
        assert_holds(&log, 1..from + 2);
        log.maintain().unwrap();
        assert_holds(&log, 1..from + 2);
        write_group(&mut log, 3);
        drop(log);
        let (log, recovery) = open(&disk, tiny(6)).unwrap();
        assert_eq!(recovery.torn_tail, None);
        assert_holds(&log, 1..from + 5);
        // While its writer has it open.
        assert!(verify(&disk, &dir()).unwrap().is_sound());
    }
}

#[test]
fn a_follower_starts_again_after_a_snapshot() {
    for first in [3, 31, 1000] {
        let disk = sim(first);
        let (mut log, _) = open(&disk, tiny(6)).unwrap();
        for _ in 0..6 {
            write_group(&mut log, 5);
        }
        log.append(b"buffered").unwrap();
        log.reset_to(LogIndex(first)).unwrap();
        assert_holds(&log, first..first);
        assert_eq!(log.last_index(), None);
        drop(log);
        let (mut log, _) = open(&disk, tiny(6)).unwrap();
        assert_holds(&log, first..first);
        write_group(&mut log, 9);
        log.maintain().unwrap();
        assert!(segments(&disk).len() <= 3, "{:?}", segments(&disk));
        assert_holds(&log, first..first + 9);
    }
}

#[test]
fn maintenance_may_run_on_another_thread_or_not_at_all() {
    let disk = sim(7);
    let (mut log, _) = open(&disk, tiny(4)).unwrap();
    std::thread::scope(|scope| {
        for round in 0..50 {
            if let Some(work) = log.maintenance() {
                match round % 3 {
                    0 => drop(work),
                    1 => work.run().unwrap(),
                    _ => {
                        scope.spawn(|| work.run().unwrap());
                    }
                }
            }
            write_group(&mut log, 3);
        }
    });
    assert_holds(&log, 1..151);
    drop(log);
    assert_holds(&open(&disk, tiny(4)).unwrap().0, 1..151);
}

#[test]
fn an_encoder_that_panics_leaves_no_trace() {
    let disk = sim(8);
    let (mut log, _) = open(&disk, tiny(6)).unwrap();
    for round in 0..10 {
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            log.append_with(|buffer| {
                buffer.extend_from_slice(b"half");
                std::panic::resume_unwind(Box::new("the encoder gave up"));
            })
        }));
        assert!(panicked.is_err());
        if round % 2 == 0 {
            write_group(&mut log, 2);
        }
        log.sync().unwrap();
    }
    assert_holds(&log, 1..11);
}

#[test]
fn verify_and_dump_see_what_open_sees_and_change_nothing() {
    let disk = sim(9);
    assert!(matches!(verify(&disk, &dir()), Err(LogError::NotFound { .. })));
    let (mut log, _) = open(&disk, tiny(6)).unwrap();
    for _ in 0..12 {
        write_group(&mut log, 5);
    }
    log.truncate_suffix(LogIndex(40)).unwrap();
    log.close().unwrap();
    let before = disk.op_count();
    let report = verify(&disk, &dir()).unwrap();
    assert!(report.is_sound());
    assert_eq!((report.first_index, report.last_index, report.entry_count), (Some(LogIndex(1)), Some(LogIndex(39)), 39));
    assert!(report.segments.iter().any(|segment| segment.role == SegmentRole::Live));
    assert!(report.segments.iter().any(|segment| segment.role == SegmentRole::Superseded));
    let (mut reader, lock) = open_read_only(&disk, &dir(), Some(LogIndex(37))).unwrap();
    let mut indices = Vec::new();
    while let Some(entry) = reader.next().unwrap() {
        indices.push(entry.index.0);
    }
    assert_eq!(indices, [37, 38, 39]);
    assert_eq!(disk.op_count(), before);
    assert!(matches!(open(&disk, tiny(6)), Err(LogError::Locked { .. })));
    drop(lock);
    open(&disk, tiny(6)).unwrap();
}

#[test]
fn the_same_on_a_real_disk() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("a/b");
    let options = LogOptions { segment_bytes: 64 << 10, group_bytes_max: 16 << 10, ..LogOptions::default() };
    let (mut log, _) = LogWriter::open(RealDisk, &dir, options.clone()).unwrap();
    for _ in 0..40 {
        write_group(&mut log, 50);
        log.maintain().unwrap();
    }
    assert!(log.footprint().0 > 2);
    let locked = LogWriter::open(RealDisk, &dir, options.clone()).unwrap_err();
    assert!(matches!(&locked, LogError::Locked { dir: named } if *named == dir), "{locked}");
    assert!(locked.to_string().contains("stop that process"));
    let first = log.truncate_prefix(LogIndex(900)).unwrap().0;
    log.truncate_suffix(LogIndex(1500)).unwrap();
    log.maintain().unwrap();
    write_group(&mut log, 10);
    drop(log);
    let report = verify(&RealDisk, &dir).unwrap();
    assert!(report.is_sound(), "{report:#?}");
    let (log, recovery) = LogWriter::open(RealDisk, &dir, options).unwrap();
    assert_eq!((recovery.first_index.0, recovery.end_index.0, recovery.torn_tail), (first, 1510, None));
    assert_holds(&log, first..1510);
}

#[test]
fn the_parts_may_move_to_the_threads_that_use_them() {
    fn may_move<T: Send + 'static>() {}
    may_move::<LogWriter<RealDisk>>();
    may_move::<walras_log_store::LogReader<walras_log_store::RealFile>>();
    may_move::<walras_log_store::Maintenance<RealDisk>>();
    may_move::<walras_log_store::SnapshotStore<RealDisk>>();
}
