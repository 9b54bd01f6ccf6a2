//! Full disks, failed writes and syncs, torn spares, killed processes.

use crate::common::*;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use walras_log_store::sim_disk::{SimDisk, SimFaults};
use walras_log_store::{LogError, LogOptions, LogWriter, RealDisk, verify};
use walras_types::LogIndex;

fn assert_poisoned(log: &mut LogWriter<SimDisk>) {
    let next = log.next_index();
    assert!(matches!(log.append(b"x"), Err(LogError::Poisoned)));
    assert!(matches!(log.sync(), Err(LogError::Poisoned)));
    assert!(matches!(log.seal(), Err(LogError::Poisoned)));
    assert!(matches!(log.truncate_prefix(LogIndex(1)), Err(LogError::Poisoned)));
    assert!(matches!(log.truncate_suffix(next), Err(LogError::Poisoned)));
    assert!(matches!(log.reset_to(next), Err(LogError::Poisoned)));
    assert!(log.maintenance().is_none());
}

#[test]
fn a_full_disk_stops_acknowledging_loses_nothing_and_goes_on_after_space_is_freed() {
    let disk = sim(1);
    let options = tiny(6);
    let (mut log, _) = open(&disk, options.clone()).unwrap();
    write_group(&mut log, 4);
    disk.set_capacity(32 + 3 * options.segment_bytes);
    let full = loop {
        let index = log.next_index().0;
        log.append(&entry(index)).unwrap();
        if let Err(error) = log.sync() {
            break error;
        }
    };
    assert!(matches!(full, LogError::DiskFull { .. }), "{full}");
    assert!(full.to_string().contains("nothing acknowledged is lost; free space"));
    let acknowledged = log.durable_end().0;
    assert!(acknowledged > 10);
    assert_poisoned(&mut log);
    assert_eq!(contents(&log).len() as u64, acknowledged - 1, "reading goes on");
    drop(log);
    // Still full: what is there can be read and the log opens, because nothing has to be cut.
    let (mut log, recovery) = open(&disk, options.clone()).unwrap();
    assert_eq!((recovery.end_index.0, recovery.torn_tail), (acknowledged, None));
    let index = log.next_index().0;
    log.append(&entry(index)).unwrap();
    assert!(matches!(log.sync(), Err(LogError::DiskFull { .. })));
    drop(log);
    disk.set_capacity(u64::MAX);
    let (mut log, _) = open(&disk, options).unwrap();
    assert_holds(&log, 1..acknowledged);
    write_group(&mut log, 50);
    assert_holds(&log, 1..acknowledged + 50);
}

#[test]
fn maintenance_warns_of_a_full_disk_while_the_log_still_goes_on() {
    let disk = sim(2);
    let options = tiny(30);
    let (mut log, _) = open(&disk, options.clone()).unwrap();
    disk.set_capacity(32 + options.segment_bytes + 100);
    assert!(matches!(log.maintain(), Err(LogError::DiskFull { .. })));
    assert_eq!(segments(&disk).len(), 1, "a half-made file is taken away");
    write_group(&mut log, 9);
    assert!(log.maintain().is_err());
    write_group(&mut log, 9);
    disk.set_capacity(u64::MAX);
    log.maintain().unwrap();
    for _ in 0..60 {
        write_group(&mut log, 2);
    }
    assert_holds(&log, 1..139);
}

#[test]
fn after_a_failed_sync_or_write_nothing_more_is_taken_until_it_is_opened_again() {
    for seed in 0..300 {
        let disk = sim(seed);
        let (mut log, _) = open(&disk, tiny(40)).unwrap();
        write_group(&mut log, 5);
        for index in 6..6 + seed % 30 + 1 {
            log.append(&entry(index)).unwrap();
        }
        let (sync_error_in, write_error_in) = if seed % 3 == 0 { (None, Some(0)) } else { (Some(0), None) };
        disk.set_faults(SimFaults { sync_error_in, write_error_in, ..SimFaults::default() });
        let error = log.sync().unwrap_err();
        assert!(matches!(error, LogError::Io { .. }), "{error}");
        assert_eq!(log.durable_end(), LogIndex(6));
        // The disk works again, and a second sync would say so; what the first one lost stays lost.
        assert_poisoned(&mut log);
        drop(log);
        let (log, recovery) = open(&disk, tiny(40)).unwrap();
        let held = recovery.end_index.0;
        assert!(held == 6 || held == 6 + seed % 30 + 1, "a group is there whole or not at all");
        assert_holds(&log, 1..held);
        drop(log);
        disk.crash();
        assert_holds(&open(&disk, tiny(40)).unwrap().0, 1..held);
    }
}

#[test]
fn without_descriptors_nothing_is_written_nothing_is_lost_and_the_same_call_succeeds_later() {
    for more in 0..2 {
        let disk = sim(5);
        let (mut log, _) = open(&disk, tiny(6)).unwrap();
        write_group(&mut log, 4);
        disk.set_more_descriptors(Some(more));
        let (mut short_count, mut rounds) = (0, 0);
        while short_count < 5 {
            rounds += 1;
            assert!(rounds < 100, "a segment ends at some time");
            let (acknowledged, index) = (log.durable_end(), log.next_index().0);
            log.append(&entry(index)).unwrap();
            let Err(error) = log.sync() else { continue };
            assert!(matches!(error, LogError::OutOfDescriptors { .. }) && error.is_retryable(), "{error}");
            let said = error.to_string();
            assert!(said.contains("ulimit -n") && said.contains("the disk is not full"), "{said}");
            assert_eq!((log.durable_end(), contents(&log).len() as u64), (acknowledged, acknowledged.0 - 1));
            // What else needs a segment is refused as well, and changes nothing.
            let next = log.next_index();
            assert!(log.truncate_suffix(LogIndex(2)).is_err() && log.reset_to(LogIndex(900)).is_err());
            assert_eq!((log.next_index(), log.first_index()), (next, LogIndex(1)));
            short_count += 1;
        }
        // A crash now loses what was never acknowledged, and nothing else.
        let crashed = disk.fork();
        crashed.set_more_descriptors(None);
        crashed.crash();
        let held = log.durable_end().0;
        let (found, _) = open(&crashed, tiny(6)).unwrap();
        assert_holds(&found, 1..held);
        disk.set_more_descriptors(None);
        let end = log.next_index();
        assert_eq!(log.sync().unwrap(), end, "all that was buffered, in order");
        write_group(&mut log, 30);
        drop(log);
        disk.crash();
        assert_holds(&open(&disk, tiny(6)).unwrap().0, 1..end.0 + 30);
    }
}

#[test]
fn a_read_that_fails_keeps_the_log_closed() {
    let disk = sim(3);
    drop(open(&disk, tiny(4)).unwrap());
    disk.set_faults(SimFaults { sync_error_in: Some(0), ..SimFaults::default() });
    assert!(matches!(open(&disk, tiny(4)), Err(LogError::Io { .. })));
    open(&disk, tiny(4)).unwrap();
}

/// A log whose next group goes to the spare, and that group.
fn at_the_end_of_a_segment() -> (SimDisk, LogOptions, u64) {
    let disk = sim(4);
    let options = tiny(8);
    let (mut log, _) = open(&disk, options.clone()).unwrap();
    for _ in 0..6 {
        write_group(&mut log, 1);
    }
    log.maintain().unwrap();
    let end = log.durable_end().0;
    log.append(&[7; 1500]).unwrap();
    log.sync().unwrap();
    drop(log);
    assert_eq!(segments(&disk).len(), 2);
    (disk, options, end)
}

#[test]
fn a_group_torn_in_a_fresh_segment_is_left_behind_for_good() {
    let (whole, options, end) = at_the_end_of_a_segment();
    let path = segments(&whole)[1].clone();
    for missing in 1..=4 {
        let disk = whole.fork();
        disk.edit(&path, |bytes| bytes[missing * 512..(missing + 1) * 512].fill(0));
        let (mut log, recovery) = open(&disk, options.clone()).unwrap();
        let torn = recovery.torn_tail.expect("the torn group is reported");
        assert_eq!((torn.path.as_path(), torn.offset), (path.as_path(), 512));
        assert_holds(&log, 1..end);
        // A shorter group where the torn one was would leave the rest of that one behind it.
        write_group(&mut log, 1);
        drop(log);
        let (used, offsets) = last_groups(&disk, 512);
        assert!(used > path, "the torn segment is not used");
        disk.flip(&used, offsets.last().unwrap() + 60, 1);
        let (log, _) = open(&disk, options.clone()).unwrap();
        assert_holds(&log, 1..end);
        drop(log);
        assert_eq!(open(&disk, options.clone()).unwrap().1.torn_tail, None);
    }
}

#[test]
fn a_torn_group_after_a_damaged_segment_refuses() {
    let (disk, options, _) = at_the_end_of_a_segment();
    let paths = segments(&disk);
    disk.edit(&paths[1], |bytes| bytes[2 * 512..3 * 512].fill(0));
    let last = *group_offsets(&disk.bytes_of(&paths[0]).unwrap(), 512).last().unwrap();
    disk.flip(&paths[0], last + 60, 1);
    assert!(is_corrupt(&open(&disk, options).unwrap_err()), "the torn group's header names the entry that is missing");
}

#[test]
fn maintenance_that_is_not_done_keeps_others_out_of_the_folder() {
    let disk = sim(5);
    let (mut log, _) = open(&disk, tiny(4)).unwrap();
    write_group(&mut log, 1);
    let late = log.maintenance().unwrap();
    drop(log);
    // Both would make the segment of the same id, the later one over the entries of the other.
    assert!(matches!(open(&disk, tiny(4)), Err(LogError::Locked { .. })));
    late.run().unwrap();
    let (mut log, _) = open(&disk, tiny(4)).unwrap();
    for _ in 0..4 {
        write_group(&mut log, 1);
    }
    let late = log.maintenance().unwrap();
    drop(log);
    drop(late);
    let (log, _) = open(&disk, tiny(4)).unwrap();
    assert_holds(&log, 1..6);
}

const CHILD_DIR: &str = "WALRAS_LOG_STORE_TEST_CHILD_DIR";

fn child_options() -> LogOptions {
    LogOptions { segment_bytes: 256 << 10, ..LogOptions::default() }
}

/// Not a test of its own: what the next test kills. It writes without end and tells each acknowledgement.
#[test]
fn child_that_is_killed() {
    let Ok(dir) = std::env::var(CHILD_DIR) else { return };
    let (mut log, _) = LogWriter::open(RealDisk, dir.as_ref(), child_options()).unwrap();
    let mut out = std::io::stdout();
    loop {
        let count = 1 + log.next_index().0 % 40;
        write_group(&mut log, count);
        log.maintain().unwrap();
        writeln!(out, "acknowledged before {}", log.durable_end().0).unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn a_process_killed_under_load_loses_nothing_acknowledged() {
    let temp = tempfile::tempdir().unwrap();
    let mut held = 1;
    for round in 0..5 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "faults::child_that_is_killed", "--nocapture", "--test-threads", "1"])
            .env(CHILD_DIR, temp.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acknowledged = 0;
        let mut read = |lines: &mut dyn Iterator<Item = std::io::Result<String>>, most: usize| {
            for line in lines.map_while(Result::ok).filter(|line| line.contains("acknowledged before")).take(most) {
                // The test harness may print on the same line before it, and the kill may cut the last one short.
                let number = line.rsplit(' ').next().unwrap();
                acknowledged = acknowledged.max(number.parse().unwrap());
            }
        };
        read(&mut lines, 20 + round * 13);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(acknowledged > held, "the child got on");
        let report = verify(&RealDisk, temp.path()).unwrap();
        assert!(report.is_sound(), "{report:#?}");
        let (log, recovery) = LogWriter::open(RealDisk, temp.path(), child_options()).unwrap();
        assert!(recovery.end_index.0 >= acknowledged, "{acknowledged} {recovery:?}");
        held = recovery.end_index.0;
        assert_holds(&log, 1..held);
    }
}
