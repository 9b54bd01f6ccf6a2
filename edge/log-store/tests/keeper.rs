//! The keeper's answers, one by one: what fails, what it says, and what the log then holds.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::*;
use walras_log_store::sim_disk::{SimDisk, SimFaults};
use walras_log_store::{Failure, LogError, LogKeeper, LogOptions, Upkeep, Written};
use walras_types::LogIndex;

const MS: u64 = 1_000_000;

fn keeper(disk: &SimDisk, options: LogOptions) -> LogKeeper<SimDisk> {
    LogKeeper::new(open(disk, options).unwrap().0)
}

/// Writes so many self-naming entries.
fn write(keeper: &mut LogKeeper<SimDisk>, now_ns: u64, count: u64) -> Written {
    let first = keeper.acknowledged_end();
    let entries: Vec<Vec<u8>> = (first.0..first.0 + count).map(entry).collect();
    keeper.write(now_ns, first, entries.iter().map(Vec::as_slice))
}

fn assert_durable(keeper: &mut LogKeeper<SimDisk>, now_ns: u64, count: u64, after_failure: bool) {
    match write(keeper, now_ns, count) {
        Written::Durable { was_failing } => assert_eq!(was_failing, after_failure),
        other => panic!("{other:?}"),
    }
}

/// The log is open and holds the self-naming entries before `end`, and `end` is what the keeper acknowledged.
fn assert_keeps(keeper: &LogKeeper<SimDisk>, end: u64) {
    assert_eq!(keeper.acknowledged_end(), LogIndex(end));
    assert_holds(keeper.log().expect("the log is open"), 1..end);
}

fn is_io(failure: &Failure) -> bool {
    matches!(failure.error, LogError::Io { .. })
}

/// The next write, or sync, fails once.
fn one_write_fails(disk: &SimDisk) {
    disk.set_faults(SimFaults { write_error_in: Some(0), ..SimFaults::default() });
}

fn one_sync_fails(disk: &SimDisk) {
    disk.set_faults(SimFaults { sync_error_in: Some(0), ..SimFaults::default() });
}

/// The device is gone after so many operations.
fn gone_after(disk: &SimDisk, ops: u64) {
    disk.set_faults(SimFaults { gone_in_ops: Some(ops), ..SimFaults::default() });
}

#[test]
fn groups_follow_each_other_over_restarts() {
    let disk = sim(1);
    let mut kept = keeper(&disk, tiny(4));
    assert_keeps(&kept, 1);
    for count in [1, 3, 7, 20] {
        assert_durable(&mut kept, 0, count, false);
    }
    assert!(matches!(kept.write(0, LogIndex(32), []), Written::Durable { was_failing: false }), "an empty group is no entry");
    assert_keeps(&kept, 32);
    kept.close().unwrap();
    let mut kept = keeper(&disk, tiny(4));
    assert_keeps(&kept, 32);
    assert_durable(&mut kept, 0, 2, false);
    assert_keeps(&kept, 34);
}

#[test]
#[should_panic(expected = "without a gap")]
fn a_group_that_does_not_follow_is_a_broken_invariant() {
    keeper(&sim(1), tiny(4)).write(0, LogIndex(2), [b"x".as_slice()]);
}

#[test]
fn a_write_or_sync_that_fails_is_undone_at_once_and_the_next_one_succeeds() {
    for seed in 0..200 {
        let disk = sim(seed);
        let mut kept = keeper(&disk, tiny(40));
        assert_durable(&mut kept, 0, 5, false);
        if seed % 2 == 0 {
            one_write_fails(&disk)
        } else {
            one_sync_fails(&disk)
        };
        match write(&mut kept, 0, 1 + seed % 9) {
            Written::Undone(Some(failure)) => assert!(failure.is_first && is_io(&failure), "{failure}"),
            other => panic!("{other:?}"),
        }
        assert_keeps(&kept, 6);
        assert_durable(&mut kept, 0, 3, true);
        assert_durable(&mut kept, 0, 1, false);
        assert_keeps(&kept, 10);
        disk.crash();
        assert_keeps(&keeper(&disk, tiny(40)), 10);
    }
}

#[test]
fn an_entry_that_is_too_long_is_undone_with_its_whole_group() {
    let disk = sim(2);
    let options = tiny(8);
    let long = vec![1; options.entry_bytes_max() + 1];
    let mut kept = keeper(&disk, options);
    assert_durable(&mut kept, 0, 2, false);
    match kept.write(0, LogIndex(3), [b"short".as_slice(), &long, b"short"]) {
        Written::Undone(Some(Failure { error: LogError::EntryTooLong { .. }, is_first: true })) => {}
        other => panic!("{other:?}"),
    }
    assert_keeps(&kept, 3);
    assert_durable(&mut kept, 0, 2, true);
    assert_keeps(&kept, 5);
}

/// Two entries, then a group of one whose bytes the disk got, but neither a sync nor what came after it.
fn in_doubt(disk: &SimDisk) -> LogKeeper<SimDisk> {
    let mut kept = keeper(disk, tiny(8));
    assert_durable(&mut kept, 0, 2, false);
    gone_after(disk, 1);
    match write(&mut kept, 0, 1) {
        Written::InDoubt { failure, reopening: LogError::Io { .. } } => assert!(failure.is_first && is_io(&failure), "{failure}"),
        other => panic!("{other:?}"),
    }
    assert!(kept.log().is_none());
    assert_eq!(kept.acknowledged_end(), LogIndex(3));
    kept
}

#[test]
fn what_is_in_doubt_comes_back_by_a_crash_or_is_cut_off_before_the_next_group() {
    let mut came_back = 0;
    for seed in 0..60 {
        let disk = sim(seed);
        let mut kept = in_doubt(&disk);
        // Nothing is begun while it is.
        match write(&mut kept, 0, 4) {
            Written::Undone(Some(failure)) => assert!(!failure.is_first && is_io(&failure), "{failure}"),
            other => panic!("{other:?}"),
        }
        let crashed = disk.fork();
        crashed.crash();
        let end = keeper(&crashed, tiny(8)).acknowledged_end().0;
        assert!(end == 3 || end == 4, "entries of the group that was refused: {end}");
        came_back += end - 3;

        disk.set_faults(SimFaults::default());
        let other = b"not the one in doubt".as_slice();
        assert!(matches!(kept.write(0, LogIndex(3), [other]), Written::Durable { was_failing: true }));
        let expected = [(1, entry(1)), (2, entry(2)), (3, other.to_vec())];
        assert_eq!(contents(kept.log().unwrap()), expected);
        disk.crash();
        assert_eq!(contents(keeper(&disk, tiny(8)).log().unwrap()), expected);
    }
    assert!((10..50).contains(&came_back), "{came_back} of 60 came back: the doubt is real");
}

#[test]
fn what_is_in_doubt_is_settled_before_the_next_group_is_refused_for_another_reason() {
    for seed in 0..60 {
        let disk = sim(seed);
        let mut kept = in_doubt(&disk);
        disk.set_faults(SimFaults::default());
        let long = vec![1; tiny(8).entry_bytes_max() + 1];
        assert!(matches!(kept.write(0, LogIndex(3), [long.as_slice()]), Written::Undone(Some(_))));
        assert_keeps(&kept, 3);
        disk.crash();
        assert_keeps(&keeper(&disk, tiny(8)), 3);
    }
}

#[test]
fn a_reopening_that_can_not_cut_leaves_the_doubt() {
    // Some disks show the whole group after its sync failed; then opening succeeds and the cut, which needs a new segment, does not.
    let mut refused_cuts = 0;
    for seed in 0..100 {
        let disk = sim(seed);
        let mut kept = keeper(&disk, tiny(8));
        assert_durable(&mut kept, 0, 2, false);
        one_sync_fails(&disk);
        let used: u64 = disk.paths().iter().map(|path| disk.bytes_of(path).unwrap().len() as u64).sum();
        disk.set_capacity(used);
        match write(&mut kept, 0, 1) {
            Written::Undone(Some(_)) => assert_keeps(&kept, 3),
            Written::InDoubt { failure, reopening: LogError::DiskFull { .. } } => {
                assert!(is_io(&failure), "{failure}");
                assert!(kept.log().is_none());
                refused_cuts += 1;
            }
            other => panic!("{other:?}"),
        }
        disk.set_capacity(u64::MAX);
        assert_durable(&mut kept, 0, 2, true);
        assert_keeps(&kept, 5);
    }
    assert!((20..100).contains(&refused_cuts), "{refused_cuts} cuts refused of 100");
}

#[test]
fn what_was_acknowledged_must_be_there_when_it_is_opened_again() {
    let disk = sim(3);
    let mut kept = keeper(&disk, tiny(8));
    assert_durable(&mut kept, 0, 1, false);
    assert_durable(&mut kept, 0, 2, false);
    let (path, groups) = last_groups(&disk, 512);
    // Damage at rest that looks like a torn tail to whoever does not know what was acknowledged.
    disk.flip(&path, groups.last().unwrap() + 60, 1);
    gone_after(&disk, 0);
    assert!(matches!(write(&mut kept, 0, 1), Written::InDoubt { .. }));
    disk.set_faults(SimFaults::default());
    for _ in 0..3 {
        match write(&mut kept, 0, 1) {
            Written::Undone(Some(Failure { error: LogError::BelowFloor { last, floor, .. }, is_first: false })) => {
                assert_eq!((last, floor), (LogIndex(1), LogIndex(3)));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_dear_failure_is_not_repeated_at_once_and_a_cheap_one_is() {
    let disk = sim(4);
    let mut kept = keeper(&disk, tiny(8));
    let tried = |disk: &SimDisk, kept: &mut LogKeeper<SimDisk>, now_ns| {
        let before = disk.op_count();
        let written = write(kept, now_ns, 1);
        assert!(matches!(written, Written::Undone(_) | Written::InDoubt { .. }), "{written:?}");
        let tried = disk.op_count() > before;
        assert_eq!(tried, !matches!(written, Written::Undone(None)));
        tried
    };
    gone_after(&disk, 0);
    let mut now = 5 * MS;
    for took in [0, MS, 100 * MS] {
        assert!(tried(&disk, &mut kept, now));
        now += took;
        kept.write_ended(now);
    }
    assert!(tried(&disk, &mut kept, now), "so far each was cheap");
    // A second from when it ended.
    for took in [100 * MS + 1, 5000 * MS] {
        now += took;
        kept.write_ended(now);
        assert!(!tried(&disk, &mut kept, now));
        now += 1000 * MS - 1;
        assert!(!tried(&disk, &mut kept, now));
        kept.write_ended(now + 500 * MS); // of a write that tried nothing: says nothing
        now += 1;
        assert!(tried(&disk, &mut kept, now));
    }
    kept.write_ended(now + 200 * MS);
    now += 1200 * MS;
    disk.set_faults(SimFaults::default());
    assert_durable(&mut kept, now, 2, true);
    kept.write_ended(now + 5000 * MS);
    assert_durable(&mut kept, now + 5000 * MS, 2, false);
    // What nobody said the end of did not last until the next one's.
    one_sync_fails(&disk);
    assert!(tried(&disk, &mut kept, now + 5000 * MS));
    assert_durable(&mut kept, now + 9000 * MS, 1, true);
    kept.write_ended(now + 9000 * MS);
    assert_durable(&mut kept, now + 9000 * MS, 1, false);
    assert_keeps(&kept, 7);
}

#[test]
fn letting_go_frees_whole_segments_and_failing_at_it_costs_only_space() {
    let disk = sim(5);
    let mut kept = keeper(&disk, tiny(4));
    for _ in 0..12 {
        assert_durable(&mut kept, 0, 1, false);
    }
    gone_after(&disk, 0);
    assert!(matches!(kept.let_go(LogIndex(6)), Err(LogError::Io { .. })));
    assert!(kept.log().is_none());
    assert_eq!(kept.let_go(LogIndex(6)).unwrap(), None, "there is no log to let go of anything");
    disk.set_faults(SimFaults::default());
    assert_durable(&mut kept, 0, 1, false);
    assert_keeps(&kept, 14);
    let first = kept.let_go(LogIndex(6)).unwrap().unwrap();
    assert!(first > LogIndex(1) && first <= LogIndex(7), "{first}");
    assert_eq!(kept.let_go(LogIndex(first.0 - 1)).unwrap(), None, "it went already");
    assert_eq!(read_from(kept.log().unwrap(), first).len() as u64, 14 - first.0);
}

#[test]
fn a_seal_that_fails_loses_nothing() {
    let disk = sim(6);
    let mut kept = keeper(&disk, tiny(8));
    assert_durable(&mut kept, 0, 3, false);
    kept.seal().unwrap();
    kept.seal().unwrap();
    assert_durable(&mut kept, 0, 1, false);
    one_sync_fails(&disk);
    assert!(kept.seal().is_err());
    assert!(kept.log().is_none());
    kept.seal().unwrap();
    assert_durable(&mut kept, 0, 1, false);
    one_sync_fails(&disk);
    assert!(kept.close().is_err());
    assert_keeps(&keeper(&disk, tiny(8)), 6);
}

#[test]
fn upkeep_that_fails_is_told_once_and_tried_again_after_a_second() {
    let disk = sim(7);
    let mut kept = keeper(&disk, tiny(8));
    let out = kept.upkeep(0).expect("there is no spare segment yet");
    assert!(kept.upkeep(2000 * MS).is_none(), "one piece at a time");
    gone_after(&disk, 0);
    assert!(matches!(out.run(), Err(Failure { error: LogError::Io { .. }, is_first: true })));
    assert!(kept.upkeep(999 * MS).is_none());
    let out = kept.upkeep(1000 * MS).unwrap();
    assert!(matches!(out.run(), Err(Failure { is_first: false, .. })));
    drop(kept.upkeep(2000 * MS).unwrap());
    assert!(kept.upkeep(2999 * MS).is_none(), "what was dropped waits, too");
    disk.set_faults(SimFaults::default());
    kept.upkeep(3000 * MS).unwrap().run().unwrap();
    assert!(kept.upkeep(3001 * MS).is_none(), "nothing is due");
    assert_eq!(segments(&disk).len(), 2);
    // What is due after a success is due at once, and its failure is news.
    while segments(&disk).len() == 2 {
        assert_durable(&mut kept, 3001 * MS, 1, false);
        if let Some(upkeep) = kept.upkeep(3001 * MS) {
            upkeep.run().unwrap();
        }
    }
    for _ in 0..7 {
        assert_durable(&mut kept, 3001 * MS, 1, false);
    }
    let out = kept.upkeep(3001 * MS).unwrap();
    gone_after(&disk, 0);
    assert!(matches!(out.run(), Err(Failure { is_first: true, .. })));
}

/// Does something that has to wait for upkeep on a thread of its own, and runs the upkeep here, as soon as the other says that it is
/// about to wait.
fn meanwhile<T: Send>(upkeep: Upkeep<SimDisk>, wait: impl FnOnce(&dyn Fn()) -> T + Send) -> T {
    std::thread::scope(|scope| {
        let (now, begins) = std::sync::mpsc::channel();
        let waiting = scope.spawn(move || wait(&|| now.send(()).unwrap()));
        begins.recv().unwrap();
        upkeep.run().unwrap();
        waiting.join().unwrap()
    })
}

#[test]
fn reopening_waits_for_upkeep_that_is_out() {
    let long = vec![1; tiny(8).entry_bytes_max() + 1];
    for _ in 0..50 {
        let disk = sim(8);
        let mut kept = keeper(&disk, tiny(8));
        assert_durable(&mut kept, 0, 2, false);
        let upkeep = kept.upkeep(0).unwrap();
        let written = meanwhile(upkeep, |begins| {
            let one_too_long = std::iter::once_with(|| {
                begins();
                long.as_slice()
            });
            kept.write(0, LogIndex(3), one_too_long)
        });
        assert!(matches!(written, Written::Undone(Some(_))), "{written:?}");
        for index in 3..23 {
            assert_durable(&mut kept, 0, 1, index == 3);
        }
        assert_keeps(&kept, 23);
        disk.crash();
        assert_keeps(&keeper(&disk, tiny(8)), 23);
    }
}

#[test]
fn closing_waits_for_upkeep_that_is_out_so_that_the_log_can_be_opened_again() {
    for _ in 0..50 {
        let disk = sim(9);
        let mut kept = keeper(&disk, tiny(8));
        assert_durable(&mut kept, 0, 2, false);
        let upkeep = kept.upkeep(0).unwrap();
        let kept = meanwhile(upkeep, |begins| {
            begins();
            kept.close().unwrap();
            keeper(&disk, tiny(8))
        });
        assert_keeps(&kept, 3);
    }
}
