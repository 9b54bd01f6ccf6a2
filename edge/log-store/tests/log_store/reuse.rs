//! Files of segments that were let go of serve again, and the first segments of a log are short.

use crate::common::*;
use walras_log_store::sim_disk::SimDisk;
use walras_log_store::{LogOptions, LogWriter, verify};
use walras_types::LogIndex;

/// Writes segments and lets go of several at once, as snapshots do.
fn rounds(log: &mut LogWriter<SimDisk>, count: u64) {
    for _ in 0..count {
        for _ in 0..18 {
            write_group(log, 1);
            log.maintain().unwrap();
        }
        let up_to = LogIndex(log.durable_end().0 - 18);
        log.truncate_prefix(up_to).unwrap();
        log.maintain().unwrap();
    }
}

#[test]
fn a_log_that_lets_go_of_as_much_as_it_takes_makes_no_file() {
    let disk = sim(1);
    let (mut log, _) = open(&disk, tiny(7)).unwrap();
    rounds(&mut log, 3);
    let made = disk.created_count();
    rounds(&mut log, 20);
    assert_eq!(disk.created_count(), made);
    let (first, end) = (log.first_index().0, log.durable_end().0);
    assert_holds(&log, first..end);
    drop(log);
    disk.crash();
    let report = verify(&disk, &dir()).unwrap();
    assert!(report.is_sound() && report.segments.iter().all(|segment| segment.recycled), "{report:#?}");
    let (mut log, recovery) = open(&disk, tiny(7)).unwrap();
    assert_eq!((recovery.end_index.0, recovery.torn_tail), (end, None));
    rounds(&mut log, 3);
    // Where the log goes on after a crash in a file that served before it begins another segment, and shortens the one it left.
    assert!(disk.created_count() <= made + 1, "what was kept is found again");
}

#[test]
fn no_more_files_are_kept_than_asked_for() {
    for spent_files_max in [0, 1, 2, 5] {
        let disk = sim(2);
        let (mut log, _) = open(&disk, LogOptions { spent_files_max, ..tiny(7) }).unwrap();
        for _ in 0..100 {
            write_group(&mut log, 1);
        }
        log.maintain().unwrap();
        log.reset_to(LogIndex(500)).unwrap();
        // One of them becomes the next segment.
        log.maintain().unwrap();
        assert_eq!(segments(&disk).len(), 1 + 1 + spent_files_max);
        let made = disk.created_count();
        for index in 500..515 {
            log.append(&entry(index)).unwrap();
            log.sync().unwrap();
        }
        assert_eq!(disk.created_count() == made, spent_files_max > 0, "without maintenance the writer takes them itself");
        assert_holds(&log, 500..515);
    }
}

#[test]
fn files_of_another_length_go() {
    let disk = sim(3);
    let (mut log, _) = open(&disk, tiny(7)).unwrap();
    for _ in 0..60 {
        write_group(&mut log, 1);
    }
    log.close().unwrap();
    let (mut log, _) = open(&disk, tiny(9)).unwrap();
    log.reset_to(LogIndex(1)).unwrap();
    log.maintain().unwrap();
    log.maintain().unwrap();
    assert_eq!(segments(&disk).len(), 2);
    assert!(segments(&disk).iter().all(|path| disk.bytes_of(path).unwrap().len() == 9 * 512));
}

#[test]
fn a_file_that_is_being_read_waits() {
    let disk = sim(4);
    let (mut log, _) = open(&disk, tiny(7)).unwrap();
    rounds(&mut log, 3);
    let first = log.first_index();
    let end = log.durable_end();
    let mut reader = log.reader(first).unwrap();
    for _ in 0..40 {
        write_group(&mut log, 1);
        log.maintain().unwrap();
        log.truncate_prefix(LogIndex(log.durable_end().0 - 2)).unwrap();
    }
    for index in first.0..end.0 {
        let found = reader.next().unwrap().map(|found| (found.index.0, found.payload.to_vec()));
        assert_eq!(found, Some((index, entry(index))));
    }
    assert_eq!(reader.next().unwrap(), None);
}

#[test]
fn a_cut_after_a_crash_fills_nothing_either() {
    for seed in 0..50 {
        let disk = sim(seed);
        let (mut log, _) = open(&disk, tiny(7)).unwrap();
        rounds(&mut log, 3);
        let end = log.durable_end().0;
        log.append(&entry(end)).unwrap();
        log.flush().unwrap();
        drop(log);
        disk.crash();
        let made = disk.created_count();
        let (log, _) = open(&disk, tiny(7)).unwrap();
        assert_eq!(disk.created_count(), made);
        let (first, found) = (log.first_index().0, log.durable_end().0);
        assert!((end..=end + 1).contains(&found));
        assert_holds(&log, first..found);
    }
}

/// A group torn at any byte, either side first, over what the file held in its earlier life.
#[test]
fn a_group_torn_at_any_byte_in_a_file_that_serves_again_is_cut() {
    let disk = sim(5);
    let (mut log, _) = open(&disk, tiny(8)).unwrap();
    rounds(&mut log, 3);
    // Not the first group of its segment.
    for _ in 0..2 {
        write_group(&mut log, 1);
        log.maintain().unwrap();
    }
    let (first, end) = (log.first_index().0, log.durable_end().0);
    let old: Vec<_> = segments(&disk).into_iter().map(|path| (disk.bytes_of(&path).unwrap(), path)).collect();
    write_group(&mut log, 20);
    let changed: Vec<_> = old.iter().filter(|(bytes, path)| disk.bytes_of(path).as_ref() != Some(bytes)).collect();
    let [(old, path)] = &changed[..] else { panic!("one group, one file: {}", changed.len()) };
    let new = disk.bytes_of(path).unwrap();
    let at: Vec<usize> = (0..new.len()).filter(|at| new[*at] != old[*at]).collect();
    let from = at[0] / 512 * 512;
    let body_bytes = u32::from_le_bytes(new[from + 36..from + 40].try_into().unwrap()) as usize;
    // What fills the last block belongs to no record.
    let to = from + 56 + body_bytes;
    assert!(to - from > 512 && old[from..to].iter().any(|byte| *byte != 0), "a group of some blocks over something old");
    drop(log);
    disk.kill();
    let mut whole = 0;
    for cut in from..=to {
        for new_first in [true, false] {
            let copy = disk.fork();
            copy.edit(path, |bytes| {
                if new_first {
                    bytes[cut..to].copy_from_slice(&old[cut..to])
                } else {
                    bytes[from..cut].copy_from_slice(&old[from..cut])
                }
            });
            let is_whole = copy.bytes_of(path).unwrap()[from..to] == new[from..to];
            whole += u64::from(is_whole);
            let (mut log, recovery) = open(&copy, tiny(8)).unwrap();
            let found = if is_whole { end + 20 } else { end };
            assert_eq!(recovery.end_index.0, found, "cut at {cut}, new first: {new_first}");
            assert_holds(&log, first..found);
            write_group(&mut log, 3);
            assert_holds(&log, first..found + 3);
        }
    }
    assert!((2..100).contains(&whole), "{whole}");
}

#[test]
fn the_first_segments_are_short_and_double() {
    let disk = sim(6);
    let options = LogOptions { first_segment_bytes: 1, ..tiny(16) };
    let (mut log, _) = open(&disk, options.clone()).unwrap();
    for round in 0..60 {
        write_group(&mut log, 1 + round % 3);
        if round % 2 == 0 {
            log.maintain().unwrap();
        }
        if round % 11 == 10 {
            log.close().unwrap();
            log = open(&disk, options.clone()).unwrap().0;
        }
    }
    let end = log.durable_end().0;
    assert_holds(&log, 1..end);
    let blocks: Vec<usize> = segments(&disk).iter().map(|path| disk.bytes_of(path).unwrap().len() / 512).collect();
    assert_eq!(blocks[..3], [5, 10, 16], "2,048 bytes of a group and the header's block at least");
    assert!(blocks[3..].iter().all(|blocks| *blocks == 16), "{blocks:?}");
    // The longest entry fits wherever it comes.
    let longest = vec![7; options.entry_bytes_max()];
    let (mut log, _) = LogWriter::open(sim(7), &dir(), options).unwrap();
    for _ in 0..6 {
        log.append(&longest).unwrap();
    }
    log.sync().unwrap();
    assert_eq!(log.durable_end(), LogIndex(7));
}
