//! Random writes of a replica with failing writes and syncs, disks that are full or gone, a lack of descriptors, power failures and
//! kills at any point, against [`MemoryLog`]: what was reported durable is there, nothing is there that was not taken, a prefix of the
//! writes after that, and once the disk is back everything.

use crate::common::*;
use std::collections::BTreeMap;
use walras_consensus::{DurableLog, MemoryLog, Recovered, Slot, SlotEntry, SnapshotMeta, Ticket, Write};
use walras_log_store::sim_disk::{SimDisk, SimDiskConfig, SimFaults};
use walras_replica_log::{Attempt, DurableWriter, Opened, Options, Snapshots, Trouble, Upkeep};

const MS: u64 = 1_000_000;

/// A mistake planted in the driver or in the writer's place, to see that the checks find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// A failed attempt counts as done.
    IgnoresFailures,
    /// What an attempt did not write is forgotten when it fails.
    ForgetsOwed,
    /// The log is opened again, and all that is owed written after that write by write, as if nothing of it could be there.
    WritesEachAgain,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    failures: u64,
    shortages: u64,
    full: u64,
    recovered: u64,
    paused: u64,
    crashes: u64,
    lost_writes: u64,
    installed: u64,
    replaced: u64,
}

struct Run {
    disk: SimDisk,
    options: Options,
    random: Random,
    bug: Option<Bug>,
    writer: Option<DurableWriter<SimDisk>>,
    snapshots: Option<Snapshots<SimDisk>>,
    upkeep: Option<Upkeep<SimDisk>>,
    now_ns: u64,
    /// What was reported durable, and the writes after that.
    memory: MemoryLog,
    /// For planted faults: the writes after that, again.
    unsynced: Vec<Write>,
    finished: BTreeMap<Slot, SnapshotMeta>,
    term: u64,
    commit: u64,
    base: u64,
    entries: BTreeMap<u64, SlotEntry>,
    ticket: u64,
    seed: u64,
    counts: Counts,
}

impl Run {
    fn new(seed: u64, options: &Options, bug: Option<Bug>) -> Self {
        let disk = SimDisk::new(seed, SimDiskConfig { page_bytes: 512, ..SimDiskConfig::default() });
        let mut run = Self {
            disk,
            options: options.clone(),
            random: Random::new(seed),
            bug,
            writer: None,
            snapshots: None,
            upkeep: None,
            now_ns: 0,
            memory: MemoryLog::new(identity().genesis),
            unsynced: Vec::new(),
            finished: BTreeMap::new(),
            term: 1,
            commit: 0,
            base: 0,
            entries: BTreeMap::new(),
            ticket: 0,
            seed,
            counts: Counts::default(),
        };
        let opened = open(&run.disk, options).unwrap();
        run.begin(opened);
        run
    }

    fn begin(&mut self, opened: Opened<SimDisk>) {
        let Recovered { hard_state, snapshot, entries } = opened.recovered;
        (self.term, self.commit) = (self.term.max(hard_state.term.0), hard_state.commit.0.max(snapshot.slot.0));
        self.base = snapshot.slot.0;
        self.entries = entries.into_iter().map(|entry| (entry.slot.0, entry)).collect();
        self.ticket = 0;
        self.unsynced.clear();
        self.snapshots = Some(opened.snapshots);
        self.writer = Some(DurableWriter::new(opened.log));
    }

    fn last(&self) -> u64 {
        self.entries.last_key_value().map_or(self.base, |(last, _)| *last)
    }

    fn take(&mut self, entries: Vec<SlotEntry>, installed: Option<SnapshotMeta>) {
        self.ticket += 1;
        let write = Write { installed, ..write(self.ticket, self.term, self.commit, entries) };
        let Ok(()) = self.memory.write(write.clone());
        self.unsynced.push(write.clone());
        self.writer.as_mut().unwrap().take(write);
    }

    fn append(&mut self, from: u64) {
        let count = 1 + self.random.below(4);
        let longest = self.options.log.entry_bytes_max() as u64 - 100;
        let entries: Vec<SlotEntry> = (from..from + count)
            .map(|slot| {
                let len = if self.random.one_in(9) { self.random.below(longest) } else { self.random.below(90) };
                slot_entry(slot, self.term, len as usize)
            })
            .collect();
        self.entries.split_off(&from);
        self.entries.extend(entries.iter().map(|entry| (entry.slot.0, entry.clone())));
        self.commit += self.random.below(self.last() - self.commit + 1);
        self.take(entries, None);
    }

    fn plan_faults(&mut self) {
        let mut due = |one_in: u64, within: u64| (self.random.below(one_in) == 0).then(|| self.random.below(within));
        let faults =
            SimFaults { crash_in_ops: due(8, 20), sync_error_in: due(3, 6), write_error_in: due(3, 6), gone_in_ops: due(4, 12) };
        self.disk.set_faults(faults);
        match self.random.below(6) {
            0 => {
                let used: u64 = self.disk.paths().iter().map(|path| self.disk.bytes_of(path).unwrap().len() as u64).sum();
                self.disk.set_capacity(used + self.random.below(2 * self.options.log.segment_bytes));
            }
            1 => {
                let more = self.random.below(3) as usize;
                self.disk.set_more_descriptors(Some(more));
            }
            2 => self.heal(),
            _ => {}
        }
    }

    fn heal(&mut self) {
        self.disk.set_faults(SimFaults::default());
        self.disk.set_capacity(u64::MAX);
        self.disk.set_more_descriptors(None);
    }

    /// Everything that was taken is durable, or not; what was reported must be so.
    fn attempt(&mut self, syncs: bool) -> Result<(), String> {
        // The writer would wait for it, and here is nobody else who does it.
        if let Some(upkeep) = self.upkeep.take() {
            let _ = upkeep.run();
        }
        let writer = self.writer.as_mut().unwrap();
        let attempt = if syncs { writer.sync(self.now_ns) } else { writer.flush(self.now_ns) };
        self.now_ns += self.random.below(3 * MS);
        writer.attempt_ended(self.now_ns);
        let is_done = match attempt {
            Attempt::Done { ticket, was_failing } => {
                assert_eq!(ticket, Ticket(self.ticket), "seed {}", self.seed);
                self.counts.recovered += u64::from(was_failing);
                assert!(!syncs || !writer.is_owing());
                true
            }
            Attempt::Failed(failure) => {
                self.counts.failures += 1;
                self.counts.shortages += u64::from(failure.trouble() == Trouble::Descriptors);
                self.counts.full += u64::from(failure.error.to_string().contains("no space left"));
                assert!(writer.next_attempt_ns().is_some_and(|at| at >= self.now_ns));
                if let Some(bug @ (Bug::ForgetsOwed | Bug::WritesEachAgain)) = self.bug.filter(|_| !self.disk.is_off()) {
                    return self.open_without_writer(bug);
                }
                self.bug == Some(Bug::IgnoresFailures)
            }
            Attempt::Paused => {
                self.counts.paused += 1;
                false
            }
            Attempt::Lost(error) => return Err(format!("seed {}: {error}", self.seed)),
        };
        if is_done && syncs {
            let Ok(_) = DurableLog::sync(&mut self.memory);
            self.unsynced.clear();
        }
        Ok(())
    }

    /// The log is opened again without the writer: what was not durable is forgotten, or written again, one after the other.
    fn open_without_writer(&mut self, bug: Bug) -> Result<(), String> {
        self.heal();
        (self.writer, self.snapshots) = (None, None);
        let Opened { mut log, snapshots, .. } = open(&self.disk, &self.options).map_err(|error| error.to_string())?;
        if bug == Bug::WritesEachAgain {
            let writes = std::mem::take(&mut self.unsynced);
            let written = writes.iter().try_for_each(|write| log.write(write)).and_then(|()| log.sync());
            written.map_err(|error| error.to_string())?;
            let Ok(_) = DurableLog::sync(&mut self.memory);
        }
        (self.snapshots, self.writer) = (Some(snapshots), Some(DurableWriter::new(log)));
        self.ticket = 0;
        Ok(())
    }

    fn take_snapshot(&mut self) {
        let Ok(Recovered { entries, .. }) = self.memory.recover();
        let decided = entries.iter().filter(|entry| {
            entry.slot.0 <= self.commit && self.entries.get(&entry.slot.0).is_some_and(|now| now.term == entry.term)
        });
        let Some(SlotEntry { slot, term, .. }) = decided.last().cloned() else { return };
        let meta = meta(slot.0, term.0);
        self.finished.insert(slot, meta.clone());
        let begun = self.snapshots.as_ref().unwrap().begin(meta.clone());
        let written = begun.and_then(|mut writer| {
            writer.append(&state(slot.0))?;
            writer.finish()
        });
        if written.is_ok() {
            self.writer.as_mut().unwrap().let_go(meta.clone());
            let Ok(()) = DurableLog::let_go(&mut self.memory, meta);
        }
    }

    fn install(&mut self) {
        let slot = self.last() + 1 + self.random.below(9);
        let announced = info(slot, self.term);
        self.finished.insert(Slot(slot), announced.meta.clone());
        let begun = self.snapshots.as_ref().unwrap().receive(announced.clone());
        let received = begun.and_then(|mut writer| {
            writer.append(&state(slot))?;
            writer.finish()
        });
        if received.is_ok() {
            self.counts.installed += 1;
            self.entries.clear();
            (self.base, self.commit) = (slot, slot);
            self.take(vec![], Some(announced.meta));
        }
    }

    fn step(&mut self) -> Result<(), String> {
        match self.random.below(30) {
            0..8 => self.append(self.last() + 1),
            8 | 9 => {
                self.term += 1 + self.random.below(2);
                let from = self.commit + 1 + self.random.below(self.last() - self.commit + 1);
                self.counts.replaced += u64::from(from <= self.last());
                self.append(from);
            }
            10 => {
                self.term += 1;
                self.take(vec![], None);
            }
            11..18 => self.attempt(true)?,
            18 | 19 => self.attempt(false)?,
            20 => self.take_snapshot(),
            21 => self.install(),
            22 | 23 => {
                if let Some(upkeep) = self.writer.as_mut().unwrap().upkeep(self.now_ns) {
                    match self.random.below(3) {
                        0 => drop(upkeep.run()),
                        1 => self.upkeep = Some(upkeep),
                        _ => drop(upkeep),
                    }
                }
            }
            24 | 25 => self.plan_faults(),
            26 => self.heal(),
            27 => self.now_ns += self.random.below(400 * MS),
            28 if self.random.one_in(4) => return self.restart(false),
            _ => {}
        }
        if self.disk.is_off() { self.restart(true) } else { Ok(()) }
    }

    /// The end of the process, or of the machine; what is there then is compared.
    fn restart(&mut self, power_fails: bool) -> Result<(), String> {
        (self.writer, self.snapshots, self.upkeep) = (None, None, None);
        if power_fails || self.random.one_in(2) {
            self.disk.crash();
            self.counts.crashes += 1;
        } else {
            self.disk.kill();
        }
        self.heal();
        let opened = open(&self.disk, &self.options).map_err(|error| format!("seed {}: {error}", self.seed))?;
        let found = &opened.recovered;
        let unsynced = self.memory.unsynced_count();
        let after = |survivors: usize| {
            let mut memory = self.memory.clone();
            memory.crash(survivors);
            if let Some(newer) = self.finished.get(&found.snapshot.slot).filter(|meta| meta.slot > memory.snapshot().slot) {
                let Ok(()) = DurableLog::let_go(&mut memory, newer.clone());
            }
            memory
        };
        let Some(survivors) = (0..=unsynced).rev().find(|count| after(*count).recover() == Ok(found.clone())) else {
            return Err(format!("seed {}: {:?} is no prefix of the writes", self.seed, found.hard_state));
        };
        self.counts.lost_writes += (unsynced - survivors) as u64;
        self.memory = after(survivors);
        self.begin(opened);
        Ok(())
    }

    fn run(mut self, steps: u64) -> Result<Counts, String> {
        for _ in 0..steps {
            self.step()?;
        }
        // The disk is back: everything that was taken is durable soon, without a restart.
        self.heal();
        self.append(self.last() + 1);
        self.now_ns += 10_000 * MS;
        self.attempt(true)?;
        if self.writer.as_ref().unwrap().is_owing() {
            return Err(format!("seed {}: a disk that is back is not written", self.seed));
        }
        let (expected, log) = (self.memory.recover(), self.writer.as_ref().unwrap().log().unwrap());
        let found = log.recover().map_err(|error| error.to_string())?;
        if expected != Ok(found) && self.finished.is_empty() {
            return Err(format!("seed {}: what is durable is not what was taken", self.seed));
        }
        self.restart(true)?;
        Ok(self.counts)
    }
}

fn run_seeds(seeds: u64, options: &Options, bug: Option<Bug>) -> Result<Counts, String> {
    let mut total = Counts::default();
    for seed in 1..=seeds {
        let Counts { failures, shortages, full, recovered, paused, crashes, lost_writes, installed, replaced } =
            Run::new(seed, options, bug).run(300)?;
        total.failures += failures;
        total.shortages += shortages;
        total.full += full;
        total.recovered += recovered;
        total.paused += paused;
        total.crashes += crashes;
        total.lost_writes += lost_writes;
        total.installed += installed;
        total.replaced += replaced;
    }
    Ok(total)
}

fn check(options: &Options) {
    let seeds = std::env::var("WALRAS_LOG_SEEDS").map_or(60, |count| count.parse().expect("WALRAS_LOG_SEEDS is a number of seeds"));
    let counts = run_seeds(seeds, options, None).unwrap_or_else(|violation| panic!("{violation}"));
    println!("{counts:?}");
    let Counts { failures, shortages, full, recovered, paused, crashes, lost_writes, installed, replaced } = counts;
    for count in [failures, shortages, full, recovered, paused, crashes, lost_writes, installed, replaced] {
        assert!(count > 10, "{counts:?} test little");
    }
}

#[test]
fn small_segments() {
    check(&tiny(8, 0));
}

#[test]
fn segments_of_one_group_where_almost_every_write_crosses_a_border() {
    check(&tiny(5, 3));
}

#[test]
fn planted_bugs_are_found() {
    for bug in [Bug::IgnoresFailures, Bug::ForgetsOwed, Bug::WritesEachAgain] {
        // Slots that do not follow each other end in a panic.
        let found = std::panic::catch_unwind(|| run_seeds(60, &tiny(8, 0), Some(bug)));
        assert!(!matches!(found, Ok(Ok(_))), "{bug:?} is not found");
    }
}

/// Where the last group of the log begins, and its file.
fn last_group(disk: &SimDisk) -> (std::path::PathBuf, usize) {
    let offset = |path: &std::path::PathBuf| disk.bytes_of(path)?.windows(4).rposition(|bytes| bytes == b"WGRP");
    let mut segments: Vec<_> = disk.paths().into_iter().filter(|path| path.extension().is_some_and(|end| end == "seg")).collect();
    segments.reverse();
    segments.iter().find_map(|path| Some((path.clone(), offset(path)?))).unwrap()
}

/// Damage to the last writes looks like a crash to a start that knows nothing. A replica that runs knows what was durable, and stops.
#[test]
fn what_was_durable_must_be_there_when_the_log_is_opened_again() {
    let disk = sim(3);
    let mut writer = DurableWriter::new(open(&disk, &tiny(8, 0)).unwrap().log);
    for slot in 1..=2 {
        writer.take(write(slot, 1, slot, vec![slot_entry(slot, 1, 20)]));
        assert!(matches!(writer.sync(0), Attempt::Done { .. }));
    }
    let (path, at) = last_group(&disk);
    disk.flip(&path, at + 60, 1);
    disk.set_faults(SimFaults { gone_in_ops: Some(0), ..SimFaults::default() });
    writer.take(write(3, 1, 3, vec![slot_entry(3, 1, 20)]));
    assert!(matches!(writer.sync(0), Attempt::Failed(_)));
    writer.attempt_ended(0);
    disk.set_faults(SimFaults::default());
    match writer.sync(10_000 * MS) {
        Attempt::Lost(error) => assert!(error.to_string().contains("restore"), "{error}"),
        other => panic!("{other:?}"),
    }
}
