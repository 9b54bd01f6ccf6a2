//! Random work of a keeper, with failing writes and syncs, disks that are full or gone, crashes and kills, against a naive model.
//!
//! The invariant: entries that were acknowledged are read back, in order, once; entries that were undone are in no log that is opened
//! later; entries in doubt are found, if at all, only by a start before the next acknowledgement, and from the first on.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::RefCell;
use walras_log_store::sim_disk::{SimDisk, SimFaults};
use walras_log_store::{LogError, LogKeeper, LogOptions, Upkeep, Written, verify};
use walras_types::LogIndex;

#[derive(Clone, Debug)]
enum Step {
    /// Entries of these lengths; how long the attempt takes; what becomes of upkeep that is out, while the entries are appended.
    Write(Vec<usize>, u64, Fate),
    Faults(SimFaults),
    /// So many bytes fit beyond what is there.
    Room(u64),
    /// So many more files can be opened; without a number as many as are asked for.
    Descriptors(Option<usize>),
    Wait(u64),
    /// Lets go of this share of the entries, in 16ths.
    LetGo(u64),
    Seal,
    Upkeep(Fate),
    PowerFailure,
    Kill,
    Close,
}

/// What becomes of upkeep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Run,
    Drop,
    /// It stays out until the next write or the end of the process.
    Keep,
}

const MS: u64 = 1_000_000;

fn options() -> LogOptions {
    LogOptions { group_bytes_max: 1024, ..tiny(6) }
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![3 => Just(Fate::Run), 1 => Just(Fate::Drop), 3 => Just(Fate::Keep)]
}

fn due(one_in: u32, within: u64) -> impl Strategy<Value = Option<u64>> {
    prop_oneof![one_in - 1 => Just(None), 1 => (0..within).prop_map(Some)]
}

fn step() -> impl Strategy<Value = Step> {
    let longest = options().entry_bytes_max();
    let length = prop_oneof![12 => 0..90_usize, 3 => 0..=longest, 1 => Just(longest + 1)];
    let lengths = prop::collection::vec(length, 0..9);
    let took = prop_oneof![8 => 0..MS, 1 => (99 * MS)..(101 * MS), 1 => Just(700 * MS)];
    let faults =
        (due(3, 14), due(3, 6), due(3, 6), due(3, 14)).prop_map(|(crash_in_ops, sync_error_in, write_error_in, gone_in_ops)| {
            Step::Faults(SimFaults { crash_in_ops, sync_error_in, write_error_in, gone_in_ops })
        });
    prop_oneof![
        24 => (lengths, took, fate()).prop_map(|(lengths, took, fate)| Step::Write(lengths, took, fate)),
        5 => faults,
        3 => Just(Step::Faults(SimFaults::default())),
        1 => (0..2 * options().segment_bytes).prop_map(Step::Room),
        2 => Just(Step::Room(u64::MAX)),
        2 => prop_oneof![2 => (0..3_usize).prop_map(Some), 1 => Just(None)].prop_map(Step::Descriptors),
        2 => (0..1500 * MS).prop_map(Step::Wait),
        2 => (0..17_u64).prop_map(Step::LetGo),
        2 => Just(Step::Seal),
        6 => fate().prop_map(Step::Upkeep),
        1 => Just(Step::PowerFailure),
        1 => Just(Step::Kill),
        1 => Just(Step::Close),
    ]
}

/// How often each thing happened, over all cases: a test in which little happens shows little.
#[derive(Debug, Default)]
struct Seen {
    durable: u64,
    durable_after_failure: u64,
    undone: u64,
    out_of_descriptors: u64,
    not_tried: u64,
    in_doubt: u64,
    came_back: u64,
    did_not_come_back: u64,
    ran_while_appending: u64,
    starts: u64,
    let_go: u64,
}

struct Run<'a> {
    disk: SimDisk,
    keeper: Option<LogKeeper<SimDisk>>,
    upkeep: Option<Upkeep<SimDisk>>,
    now_ns: u64,
    /// Makes every entry one of a kind.
    serial: u64,
    /// The model: every entry that was acknowledged, from 1 on.
    acknowledged: Vec<Vec<u8>>,
    /// Entries that a start may find behind those.
    in_doubt: Vec<Vec<u8>>,
    /// The log may begin with any entry up to this one.
    first_latest: u64,
    is_failing: bool,
    not_before_ns: u64,
    seen: &'a RefCell<Seen>,
}

impl<'a> Run<'a> {
    fn new(seed: u64, seen: &'a RefCell<Seen>) -> Self {
        let disk = sim(seed);
        let keeper = LogKeeper::new(open(&disk, options()).unwrap().0);
        Self {
            disk,
            keeper: Some(keeper),
            upkeep: None,
            now_ns: 0,
            serial: 0,
            acknowledged: Vec::new(),
            in_doubt: Vec::new(),
            first_latest: 1,
            is_failing: false,
            not_before_ns: 0,
            seen,
        }
    }

    fn entries(&mut self, lengths: Vec<usize>) -> Vec<Vec<u8>> {
        let entry = |length| {
            self.serial += 1;
            let mut bytes = vec![if self.serial.is_multiple_of(3) { 0 } else { self.serial as u8 }; length];
            bytes.iter_mut().zip(self.serial.to_le_bytes()).for_each(|(byte, of_serial)| *byte = of_serial);
            bytes
        };
        lengths.into_iter().map(entry).collect()
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Write(lengths, took_ns, fate) => self.write(lengths, took_ns, fate),
            Step::Faults(faults) => self.disk.set_faults(faults),
            Step::Room(bytes) => {
                let used: u64 = self.disk.paths().iter().map(|path| self.disk.bytes_of(path).unwrap().len() as u64).sum();
                self.disk.set_capacity(used.saturating_add(bytes));
            }
            Step::Descriptors(count) => self.disk.set_more_descriptors(count),
            Step::Wait(wait_ns) => self.now_ns += wait_ns,
            Step::LetGo(share) => {
                self.end_upkeep(Fate::Run);
                let up_to = self.acknowledged.len() as u64 * share / 16;
                if up_to > 0 {
                    let let_go = self.keeper.as_mut().unwrap().let_go(LogIndex(up_to));
                    if let Ok(Some(first)) = let_go {
                        assert!(first.0 <= up_to + 1);
                        self.seen.borrow_mut().let_go += 1;
                    }
                    self.first_latest = self.first_latest.max(up_to + 1);
                }
            }
            Step::Seal => {
                self.end_upkeep(Fate::Run);
                let _ = self.keeper.as_mut().unwrap().seal();
            }
            Step::Upkeep(fate) => {
                if let Some(upkeep) = self.keeper.as_mut().unwrap().upkeep(self.now_ns) {
                    assert!(self.upkeep.is_none(), "two pieces of upkeep are out");
                    self.upkeep = Some(upkeep);
                }
                self.end_upkeep(fate);
            }
            Step::PowerFailure => self.restart(SimDisk::crash),
            Step::Kill => self.restart(SimDisk::kill),
            Step::Close => {
                self.end_upkeep(Fate::Run);
                let closed = self.keeper.take().unwrap().close();
                // The folder is free, whether or not that went well, and a closed log has nothing that was not synced.
                if closed.is_ok() && self.in_doubt.is_empty() { self.restart(SimDisk::crash) } else { self.restart(SimDisk::kill) }
            }
        }
        if self.disk.is_off() {
            self.restart(SimDisk::crash);
        }
        self.check_open_log();
    }

    fn end_upkeep(&mut self, fate: Fate) {
        match (fate, self.upkeep.take()) {
            (Fate::Run, Some(upkeep)) => drop(upkeep.run()),
            (Fate::Keep, upkeep) => self.upkeep = upkeep,
            (Fate::Run | Fate::Drop, _) => {}
        }
    }

    fn write(&mut self, lengths: Vec<usize>, took_ns: u64, fate: Fate) {
        let entries = self.entries(lengths);
        let first = LogIndex(self.acknowledged.len() as u64 + 1);
        let mut keeper = self.keeper.take().unwrap();
        // On one thread nobody else ends it, so it ends before anything may wait for it: at the latest while entries are appended,
        // which asks nothing of the disk.
        if keeper.log().is_none() || entries.is_empty() || fate != Fate::Keep {
            self.end_upkeep(if fate == Fate::Keep { Fate::Run } else { fate });
        }
        let mut out = self.upkeep.take();
        let (ops, was_open) = (self.disk.op_count(), keeper.log().is_some());
        let appended = entries.iter().map(|entry| {
            if let Some(upkeep) = out.take() {
                self.seen.borrow_mut().ran_while_appending += 1;
                drop(upkeep.run());
            }
            entry.as_slice()
        });
        let written = keeper.write(self.now_ns, first, appended);
        drop(out);
        if let Written::Undone(Some(failure)) = &written
            && was_open
            && failure.error.is_retryable()
        {
            assert!(keeper.log().is_some(), "a log that was short of descriptors needs no opening, which would take more of them");
            self.seen.borrow_mut().out_of_descriptors += 1;
        }
        let tried = self.disk.op_count() > ops;
        self.now_ns += took_ns;
        keeper.write_ended(self.now_ns);
        self.take_answer(written, entries, took_ns, tried, keeper.log().is_some());
        self.keeper = Some(keeper);
    }

    fn take_answer(&mut self, written: Written, entries: Vec<Vec<u8>>, took_ns: u64, tried: bool, is_open: bool) {
        let mut seen = self.seen.borrow_mut();
        let may_try = self.now_ns - took_ns >= self.not_before_ns;
        assert_eq!(may_try, !matches!(written, Written::Undone(None)));
        match written {
            Written::Durable { was_failing } => {
                assert!(is_open);
                assert_eq!(was_failing, self.is_failing);
                self.is_failing = false;
                self.acknowledged.extend(entries);
                self.in_doubt.clear();
                seen.durable += 1;
                seen.durable_after_failure += u64::from(was_failing);
                return;
            }
            Written::Undone(None) => {
                assert!(!tried);
                seen.not_tried += 1;
                return;
            }
            Written::Undone(Some(failure)) => {
                assert_eq!(failure.is_first, !self.is_failing);
                seen.undone += 1;
                if is_open {
                    self.in_doubt.clear();
                }
            }
            Written::InDoubt { failure, reopening } => {
                assert!(!is_open, "an open log has no doubts");
                assert_eq!(failure.is_first, !self.is_failing);
                assert!(
                    matches!(reopening, LogError::Io { .. } | LogError::DiskFull { .. } | LogError::OutOfDescriptors { .. }),
                    "{reopening}"
                );
                self.in_doubt = entries;
                seen.in_doubt += 1;
            }
        }
        self.is_failing = true;
        if took_ns > 100 * MS {
            self.not_before_ns = self.now_ns + 1000 * MS;
        }
    }

    /// Ends the process or the machine, starts again, and compares.
    fn restart(&mut self, end: impl Fn(&SimDisk)) {
        self.keeper = None;
        self.upkeep = None;
        end(&self.disk);
        self.disk.set_capacity(u64::MAX);
        self.disk.set_more_descriptors(None);
        let report = verify(&self.disk, &dir()).unwrap();
        assert!(report.is_sound(), "{report:#?}");
        let (log, _) = open(&self.disk, options()).unwrap();
        let (first, found) = (log.first_index().0, contents(&log));
        assert!(first <= self.first_latest, "it begins with {first}, not with {} or before", self.first_latest);
        let known = self.acknowledged.iter().chain(&self.in_doubt).enumerate().map(|(at, bytes)| (at as u64 + 1, bytes.clone()));
        let expected: Vec<_> = known.skip(first as usize - 1).take(found.len()).collect();
        assert_eq!(found, expected);
        let end = log.durable_end().0 as usize - 1;
        assert!(end >= self.acknowledged.len(), "{end} of {} acknowledged entries", self.acknowledged.len());

        let mut seen = self.seen.borrow_mut();
        seen.starts += 1;
        let came_back = end - self.acknowledged.len();
        seen.came_back += u64::from(came_back > 0);
        seen.did_not_come_back += u64::from(came_back == 0 && !self.in_doubt.is_empty());
        self.acknowledged.extend(self.in_doubt.drain(..came_back));
        self.in_doubt.clear();
        (self.is_failing, self.not_before_ns) = (false, 0);
        self.keeper = Some(LogKeeper::new(log));
    }

    /// An open log holds what was acknowledged and no more, whatever is in doubt.
    fn check_open_log(&self) {
        let keeper = self.keeper.as_ref().unwrap();
        let end = self.acknowledged.len() as u64 + 1;
        assert_eq!(keeper.acknowledged_end(), LogIndex(end));
        let Some(log) = keeper.log() else { return };
        assert_eq!((log.durable_end(), log.next_index()), (LogIndex(end), LogIndex(end)));
        let first = log.first_index().0;
        assert!(first <= self.first_latest);
        let expected: Vec<_> = (first..end).map(|index| (index, self.acknowledged[index as usize - 1].clone())).collect();
        assert_eq!(contents(log), expected);
    }
}

#[test]
fn what_is_acknowledged_stays_what_is_undone_is_gone_whatever_fails() {
    let seen = RefCell::new(Seen::default());
    let config = Config::default();
    // A failing case is printed whole: there is no file of them.
    let mut runner = TestRunner::new(Config { cases: config.cases.max(512), failure_persistence: None, ..config });
    let cases = (any::<u64>(), prop::collection::vec(step(), 1..60));
    let result = runner.run(&cases, |(seed, steps)| {
        let mut run = Run::new(seed, &seen);
        steps.into_iter().for_each(|step| run.step(step));
        run.restart(SimDisk::crash);
        run.check_open_log();
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let seen = seen.into_inner();
    println!("{seen:?}");
    let Seen { durable, durable_after_failure, undone, not_tried, in_doubt, came_back, did_not_come_back, .. } = seen;
    let Seen { ran_while_appending, starts, let_go, out_of_descriptors, .. } = seen;
    let rare = [
        durable_after_failure,
        undone,
        not_tried,
        in_doubt,
        came_back,
        did_not_come_back,
        ran_while_appending,
        starts,
        let_go,
        out_of_descriptors,
    ];
    assert!(durable > 1000 && rare.iter().all(|count| *count > 5), "too little happened: {seen:?}");
}
