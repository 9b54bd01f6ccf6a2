//! Random writes with crashes, failed writes and syncs, and full disks at any point, against [`MemoryLog`]: what is recovered is
//! what it would hold after the first so many of the writes, and after all that were acknowledged.

use crate::common::*;
use std::collections::BTreeMap;
use walras_consensus::{DurableLog, MemoryLog, Recovered, Slot, SlotEntry, SnapshotMeta, Ticket, Write};
use walras_log_store::LogError;
use walras_log_store::sim_disk::{SimDisk, SimDiskConfig, SimFaults};
use walras_replica_log::{Opened, Options, ReplicaLogError, Stop};
use walras_types::LogIndex;

/// A planted bug in the log's driver, to show that the checks find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// Says that a write is durable when the operating system has it.
    SkipsSync,
    /// Writes the promises, and the slots that they count on after that.
    CommitBeforeSlots,
    /// Appends the slots of a new leader without a cut where both have some.
    KeepsReplacedSlots,
    /// Lets go of slots before the snapshot that covers them is durable.
    LetsGoTooEarly,
    /// Removes all snapshots but the newest that it sees, installed or not.
    RemovesSnapshots,
}

struct Run {
    disk: SimDisk,
    options: Options,
    random: Random,
    bug: Option<Bug>,
    opened: Option<Opened<SimDisk>>,
    /// What is known to be durable, and the writes that are not.
    memory: MemoryLog,
    /// Of the writes that are not known to be durable, this many were flushed.
    flushed: usize,
    /// And these many were written when something was let go, which syncs them if it frees a segment.
    let_go_after: Vec<usize>,
    /// Snapshots that were finished.
    finished: BTreeMap<Slot, SnapshotMeta>,
    /// As the replica sees it, with what is not durable.
    term: u64,
    commit: u64,
    entries: BTreeMap<u64, SlotEntry>,
    base: u64,
    ticket: u64,
    orderly: bool,
    seed: u64,
    counts: Counts,
}

/// What was recovered, for people.
fn brief(recovered: &Recovered) -> String {
    let Recovered { hard_state, snapshot, entries } = recovered;
    let slots: Vec<String> = entries.iter().map(|entry| format!("{}.{}", entry.slot, entry.term)).collect();
    format!("{hard_state:?}, snapshot {}.{}, slots {}", snapshot.slot, snapshot.term, slots.join(" "))
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    crashes: u64,
    failures: u64,
    lost_writes: u64,
    replaced: u64,
    installed: u64,
    released: u64,
    torn: u64,
}

type Outcome = Result<(), ReplicaLogError>;

impl Run {
    fn new(seed: u64, disk: SimDiskConfig, options: &Options, bug: Option<Bug>) -> Self {
        let disk = SimDisk::new(seed, disk);
        let opened = open(&disk, options).unwrap();
        assert_eq!(opened.report.stop, Stop::Never);
        Self {
            disk,
            options: options.clone(),
            random: Random::new(seed),
            bug,
            memory: MemoryLog::new(identity().genesis),
            opened: Some(opened),
            flushed: 0,
            let_go_after: Vec::new(),
            finished: BTreeMap::new(),
            term: 1,
            commit: 0,
            entries: BTreeMap::new(),
            base: 0,
            ticket: 0,
            orderly: false,
            seed,
            counts: Counts::default(),
        }
    }

    fn last(&self) -> u64 {
        self.entries.last_key_value().map_or(self.base, |(last, _)| *last)
    }

    fn plan_faults(&mut self) {
        let mut due = |one_in: u64, within: u64| (self.random.below(one_in) == 0).then(|| self.random.below(within));
        let faults =
            SimFaults { crash_in_ops: due(3, 20), sync_error_in: due(6, 6), write_error_in: due(8, 6), gone_in_ops: due(20, 12) };
        self.disk.set_faults(faults);
        if self.random.one_in(10) {
            let used: u64 = self.disk.paths().iter().map(|path| self.disk.bytes_of(path).unwrap().len() as u64).sum();
            self.disk.set_capacity(used + self.random.below(2 * self.options.log.segment_bytes));
        }
    }

    fn next_write(&mut self, entries: Vec<SlotEntry>) -> Write {
        self.ticket += 1;
        write(self.ticket, self.term, self.commit, entries)
    }

    fn new_entries(&mut self, from: u64) -> Vec<SlotEntry> {
        let count = 1 + self.random.below(6);
        let longest = self.options.log.entry_bytes_max() as u64 - 100;
        let entries = (from..from + count).map(|slot| {
            let len = match self.random.below(20) {
                0 => longest,
                1..4 => self.random.below(longest),
                _ => self.random.below(90),
            };
            slot_entry(slot, self.term, len as usize)
        });
        entries.collect()
    }

    fn append(&mut self, from: u64) -> Outcome {
        let entries = self.new_entries(from);
        self.entries.split_off(&from);
        self.entries.extend(entries.iter().map(|entry| (entry.slot.0, entry.clone())));
        // What is committed was on some majority: nothing of it is replaced again.
        self.commit += self.random.below(self.last() - self.commit + 1);
        let write = self.next_write(entries);
        self.write(write)
    }

    fn write(&mut self, write: Write) -> Outcome {
        let mut given = write.clone();
        if self.bug == Some(Bug::KeepsReplacedSlots) {
            let Ok(held) = self.memory.recover();
            let replaced: Vec<SlotEntry> =
                held.entries.into_iter().filter(|old| !given.entries.is_empty() && old.slot >= given.entries[0].slot).collect();
            for old in replaced {
                if let Some(new) = given.entries.iter_mut().find(|new| new.slot == old.slot) {
                    *new = old;
                }
            }
        }
        let Ok(()) = self.memory.write(write);
        let log = &mut self.opened.as_mut().unwrap().log;
        if self.bug == Some(Bug::CommitBeforeSlots) {
            log.sync()?;
            given.ticket = Ticket(given.ticket.0 * 2);
            log.write(&Write { ticket: Ticket(given.ticket.0 - 1), entries: vec![], installed: None, ..given.clone() })?;
            log.sync()?;
        }
        log.write(&given)
    }

    fn sync(&mut self) -> Outcome {
        let log = &mut self.opened.as_mut().unwrap().log;
        if self.bug == Some(Bug::SkipsSync) {
            log.flush()?;
        } else if self.bug == Some(Bug::CommitBeforeSlots) {
            log.sync()?;
        } else {
            assert_eq!(log.sync()?, Ticket(self.ticket));
        }
        let Ok(_) = DurableLog::sync(&mut self.memory);
        (self.flushed, self.let_go_after) = (0, Vec::new());
        Ok(())
    }

    fn flush(&mut self) -> Outcome {
        self.opened.as_mut().unwrap().log.flush()?;
        self.flushed = self.memory.unsynced_count();
        Ok(())
    }

    /// Takes a snapshot of something decided that is durable here, and lets go.
    fn take_snapshot(&mut self) -> Outcome {
        let Ok(Recovered { snapshot, entries, .. }) = self.memory.recover();
        let decided = entries.iter().filter(|entry| {
            entry.slot.0 <= self.commit && self.entries.get(&entry.slot.0).is_some_and(|now| now.term == entry.term)
        });
        let Some(SlotEntry { slot, term, .. }) = decided.last().cloned() else { return Ok(()) };
        assert!(slot > snapshot.slot);
        let meta = meta(slot.0, term.0);
        let opened = self.opened.as_mut().unwrap();
        if self.bug == Some(Bug::LetsGoTooEarly) {
            opened.log.let_go(&meta)?;
            return Ok(());
        }
        // It may be there although finishing it failed.
        self.finished.insert(slot, meta.clone());
        match crate::common::take_snapshot(opened, slot.0, term.0) {
            Ok(info) => assert_eq!(info, crate::common::info(slot.0, term.0)),
            // The log goes on.
            Err(_) if !self.disk.is_off() => return Ok(()),
            Err(_) => return Err(ReplicaLogError::Failed),
        }
        if self.random.one_in(6) {
            // Forgotten until another one.
            return Ok(());
        }
        let before = opened.log.footprint().0;
        opened.log.let_go(&meta)?;
        self.let_go_after.push(self.memory.unsynced_count());
        self.counts.released += u64::from(opened.log.footprint().0 < before);
        let Ok(()) = DurableLog::let_go(&mut self.memory, meta.clone());
        let before = if self.bug == Some(Bug::RemovesSnapshots) { slot } else { opened.log.oldest_snapshot() };
        // A failure costs space alone.
        let _ = opened.snapshots.remove_before(before);
        Ok(())
    }

    fn install(&mut self) -> Outcome {
        let slot = self.last() + 1 + self.random.below(9);
        let announced = info(slot, self.term);
        let opened = self.opened.as_mut().unwrap();
        self.finished.insert(Slot(slot), announced.meta.clone());
        let received = opened.snapshots.receive(announced.clone()).and_then(|mut writer| {
            state(slot).chunks(1 + slot as usize * 13).try_for_each(|piece| writer.append(piece))?;
            writer.finish()
        });
        match received {
            Ok(_) => {}
            Err(_) if !self.disk.is_off() => return Ok(()),
            Err(_) => return Err(ReplicaLogError::Failed),
        }
        if self.bug == Some(Bug::RemovesSnapshots) {
            let _ = opened.snapshots.remove_before(Slot(slot));
        }
        if self.random.one_in(4) {
            // The message that goes with it is lost.
            return Ok(());
        }
        self.counts.installed += 1;
        self.entries.clear();
        (self.base, self.commit) = (slot, slot);
        let installed = Some(announced.meta);
        let write = Write { installed, ..self.next_write(vec![]) };
        self.write(write)
    }

    fn step(&mut self) -> Outcome {
        match self.random.below(20) {
            0..6 => self.append(self.last() + 1),
            6 => {
                self.term += 1 + self.random.below(2);
                let from = self.commit + 1 + self.random.below(self.last() - self.commit + 1);
                self.counts.replaced += u64::from(from <= self.last());
                self.append(from)
            }
            7 => {
                self.term += 1;
                let write = self.next_write(vec![]);
                self.write(write)
            }
            8..13 => self.sync(),
            13 | 14 => self.flush(),
            15 | 16 => self.take_snapshot(),
            17 if self.random.one_in(3) => self.install(),
            18 => {
                let upkeep = self.opened.as_mut().unwrap().log.upkeep(self.ticket * 1_000_000_000);
                // Undone, or failed, it is done when it must be.
                if let Some(upkeep) = upkeep.filter(|_| self.random.one_in(2)) {
                    let _ = upkeep.run();
                }
                if self.disk.is_off() { Err(ReplicaLogError::Failed) } else { Ok(()) }
            }
            19 => {
                let log = &mut self.opened.as_mut().unwrap().log;
                log.seal()?;
                let Ok(_) = DurableLog::sync(&mut self.memory);
                (self.flushed, self.let_go_after) = (0, Vec::new());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn check_reads(&mut self) {
        let opened = self.opened.as_ref().unwrap();
        assert_eq!(DurableLog::recover(&opened.log).unwrap(), opened.recovered, "seed {}", self.seed);
        let slots = opened.log.slots();
        let known = |slot: Slot| opened.recovered.entries.iter().find(|entry| entry.slot == slot);
        let mut reader = opened.log.read_slots(slots.clone()).unwrap();
        let mut expected = slots.start;
        while let Some(entry) = reader.next().unwrap() {
            assert_eq!(entry.slot, expected);
            if expected > opened.recovered.snapshot.slot {
                assert_eq!(Some(&entry), known(expected));
            }
            expected = expected.next();
        }
        assert_eq!(expected, slots.end);
        assert!(opened.log.read_slots(slots.start..slots.end.next()).is_err());
        // Every entry that is decided and held, in order.
        let commit = opened.recovered.hard_state.commit;
        let first = log_index(Slot(slots.start.0 - 1)).next();
        for from in [first, LogIndex(first.0 + self.random.below(9)), log_index(opened.recovered.snapshot.slot).next()] {
            let mut decided = opened.log.decided(from, commit).unwrap();
            let mut next = None;
            while let Some(committed) = decided.next().unwrap() {
                let first = committed.first;
                assert!(next.is_none_or(|next| next == first) && committed.slot <= commit);
                assert!(next.is_some() || (first <= from && from.0 < first.0 + committed.pack.len() as u64), "{from} {first}");
                let mut named = committed.pack.entries();
                assert!(named.all(|entry| entry[..8] == committed.slot.0.to_le_bytes()));
                assert_eq!(log_index(committed.slot), LogIndex(first.0 + committed.pack.len() as u64 - 1));
                next = Some(LogIndex(first.0 + committed.pack.len() as u64));
            }
            let end = log_index(commit.min(Slot(slots.end.0 - 1))).next();
            assert!(next.map_or(from >= end, |next| next == end), "seed {}: {from} {next:?} {end}", self.seed);
        }
        if first.0 > 1 {
            assert!(matches!(
                opened.log.decided(LogIndex(first.0 - 1), commit),
                Err(ReplicaLogError::EntryNotHeld { first: held }) if held == first
            ));
        }
    }

    /// Ends the process or the machine, or only the replica; opens the log, and compares.
    fn restart(&mut self, failed: bool) -> Result<(), String> {
        let orderly = std::mem::take(&mut self.orderly);
        let (mut crashed, mut opened) = (false, None);
        if let Some(before) = self.opened.take()
            && !self.disk.is_off()
            && !orderly
            && self.random.one_in(3)
        {
            self.disk.set_faults(SimFaults::default());
            let Opened { log, snapshots, .. } = before;
            drop(snapshots);
            opened = log.reopen().ok();
        }
        let opened = match opened {
            Some(opened) => opened,
            None => {
                crashed |= self.fail_over();
                loop {
                    if self.random.one_in(3) {
                        let crash_in_ops = Some(self.random.below(12));
                        self.disk.set_faults(SimFaults { crash_in_ops, ..SimFaults::default() });
                    }
                    match open(&self.disk, &self.options) {
                        Ok(opened) => break opened,
                        Err(_) if self.disk.is_off() => crashed |= self.fail_over(),
                        Err(error) if error.to_string().contains("no space left") => self.disk.set_capacity(u64::MAX),
                        Err(error) => return Err(format!("seed {}: {error}", self.seed)),
                    }
                }
            }
        };
        self.disk.set_faults(SimFaults::default());
        let found = &opened.recovered;
        let slot = found.snapshot.slot.0;
        assert_eq!(opened.state, (slot > 0).then(|| state(slot)), "seed {}", self.seed);
        // After the first so many of the writes.
        let possible = |survivors: usize| {
            let mut memory = self.memory.clone();
            memory.crash(survivors);
            if let Some(newer) = self.finished.get(&found.snapshot.slot).filter(|meta| meta.slot > memory.snapshot().slot) {
                let Ok(()) = DurableLog::let_go(&mut memory, newer.clone());
            }
            memory
        };
        let unsynced = self.memory.unsynced_count();
        let is = |memory: &MemoryLog| memory.recover() == Ok(found.clone());
        let Some(memory) = (0..=unsynced).rev().map(possible).find(is) else {
            let (found, Ok(memory)) = (brief(found), self.memory.recover().map(|memory| brief(&memory)));
            return Err(format!("seed {}: {found}\nis not what {memory}\nand {unsynced} writes make", self.seed));
        };
        let lost = (0..=unsynced).find(|lost| is(&possible(unsynced - lost))).unwrap();
        // Another process at the same machine finds what was flushed. What was neither flushed nor synced is gone, unless it failed
        // halfway.
        let there = |count: usize| count >= self.flushed && is(&possible(count));
        if !crashed && !failed && !there(self.flushed) && !self.let_go_after.iter().any(|count| there(*count)) {
            let lost = (0..=unsynced).rev().find(|lost| is(&possible(unsynced - lost)));
            return Err(format!(
                "seed {}: the end of a process lost or made writes: {lost:?} of {unsynced} are gone, {} were flushed",
                self.seed, self.flushed
            ));
        }
        let may_be_closed = orderly && !crashed;
        if !failed && opened.report.stop != (if may_be_closed { Stop::Orderly } else { Stop::Crash }) && !orderly {
            return Err(format!("seed {}: a crash looks like {:?}", self.seed, opened.report.stop));
        }
        if orderly && opened.report.stop != Stop::Orderly && !crashed {
            return Err(format!("seed {}: a good end looks like {:?}", self.seed, opened.report.stop));
        }
        self.counts.lost_writes += lost as u64;
        self.counts.torn += u64::from(opened.report.store.torn_tail.is_some());
        self.memory = memory;
        let Recovered { hard_state, snapshot, entries } = found.clone();
        (self.term, self.commit) = (self.term.max(hard_state.term.0), hard_state.commit.0.max(snapshot.slot.0));
        self.base = snapshot.slot.0;
        self.entries = entries.into_iter().map(|entry| (entry.slot.0, entry)).collect();
        (self.flushed, self.let_go_after, self.ticket) = (0, Vec::new(), 0);
        self.opened = Some(opened);
        self.check_reads();
        Ok(())
    }

    fn fail_over(&mut self) -> bool {
        let crashes = self.disk.is_off() || self.random.one_in(2);
        if crashes {
            self.disk.crash();
            self.counts.crashes += 1;
        } else {
            self.disk.kill();
        }
        crashes
    }

    fn steps(&mut self, count: u64) -> Result<(), String> {
        for _ in 0..count {
            if self.random.one_in(5) {
                self.plan_faults();
            }
            let done = self.step();
            // What was ignored may have been the end of the machine.
            let done = if self.disk.is_off() { Err(ReplicaLogError::Failed) } else { done };
            match done {
                Ok(()) if self.random.one_in(30) => {
                    if self.random.one_in(3) {
                        self.close();
                    }
                    self.restart(false)?;
                }
                Ok(()) => {}
                Err(error) => {
                    self.counts.failures += 1;
                    self.check_refusal(&error);
                    self.restart(true)?;
                    if self.random.one_in(2) {
                        self.disk.set_capacity(u64::MAX);
                    }
                }
            }
        }
        self.restart(false)
    }

    fn close(&mut self) {
        self.disk.set_faults(SimFaults::default());
        self.disk.set_capacity(u64::MAX);
        let Opened { log, snapshots, .. } = self.opened.take().unwrap();
        drop(snapshots);
        log.close().unwrap();
        let Ok(_) = DurableLog::sync(&mut self.memory);
        (self.flushed, self.orderly) = (0, true);
    }

    /// After a failure nothing more is taken.
    fn check_refusal(&mut self, error: &ReplicaLogError) {
        let is_disk = matches!(error, ReplicaLogError::Store(LogError::Io { .. } | LogError::DiskFull { .. }));
        assert!(is_disk || self.disk.is_off(), "seed {}: {error}", self.seed);
        if is_disk {
            let log = &mut self.opened.as_mut().unwrap().log;
            assert!(matches!(log.sync(), Err(ReplicaLogError::Failed)));
            assert!(matches!(log.write(&write(u64::MAX, 1, 0, vec![])), Err(ReplicaLogError::Failed)));
            assert!(log.upkeep(u64::MAX).is_none());
        }
    }
}

fn run_seeds(seeds: u64, disk: SimDiskConfig, options: &Options, bug: Option<Bug>) -> Result<Counts, String> {
    let mut total = Counts::default();
    for seed in 1..=seeds {
        let mut run = Run::new(seed, disk, options, bug);
        run.steps(150)?;
        let Counts { crashes, failures, lost_writes, replaced, installed, released, torn } = run.counts;
        total.crashes += crashes;
        total.failures += failures;
        total.lost_writes += lost_writes;
        total.replaced += replaced;
        total.installed += installed;
        total.released += released;
        total.torn += torn;
    }
    Ok(total)
}

/// As many seeds as asked for by `WALRAS_LOG_SEEDS`, or few.
fn seeds() -> u64 {
    std::env::var("WALRAS_LOG_SEEDS").map_or(60, |count| count.parse().expect("WALRAS_LOG_SEEDS is a number of seeds"))
}

fn check(disk: SimDiskConfig, options: &Options) {
    let counts = run_seeds(seeds(), disk, options, None).unwrap_or_else(|violation| panic!("{violation}"));
    println!("{counts:?}");
    let Counts { crashes, failures, lost_writes, replaced, installed, released, torn } = counts;
    for count in [crashes, failures, lost_writes, replaced, installed, released, torn] {
        assert!(count > 20, "{counts:?} test little");
    }
}

fn pages(page_bytes: usize) -> SimDiskConfig {
    SimDiskConfig { page_bytes, ..SimDiskConfig::default() }
}

#[test]
fn small_segments() {
    check(pages(512), &tiny(8, 0));
}

#[test]
fn segments_of_one_group_where_almost_every_write_crosses_a_border() {
    check(pages(512), &tiny(5, 3));
}

#[test]
fn slots_are_kept_for_slow_followers_and_torn_pages_mix_old_and_new() {
    check(SimDiskConfig { garbage_pages: false, ..pages(4096) }, &tiny(16, 20));
}

#[test]
fn planted_bugs_are_found() {
    for bug in [Bug::SkipsSync, Bug::CommitBeforeSlots, Bug::KeepsReplacedSlots, Bug::LetsGoTooEarly, Bug::RemovesSnapshots] {
        let found = run_seeds(60, pages(512), &tiny(8, 0), Some(bug)).err();
        println!("{bug:?}: {found:?}");
        assert!(found.is_some(), "{bug:?} is not found");
    }
}
