//! The log's thread on a disk that loses what was not synced: whatever it has reported durable is there after the loss of power at
//! any moment, and nothing is there that was not taken. That this check can fail is shown by a thread and by disks that lie.

use std::path::Path;
use std::thread::JoinHandle;

use bytes::Bytes;
use walras_consensus::{Durability, HardState, Members, ReplicaId, Slot, Term, Ticket};
use walras_log_store::LogOptions;
use walras_log_store::sim_disk::{SimDisk, SimDiskConfig, SimFaults, SimSyncs};
use walras_replica_log::{Identity, OpenError, Opened, Options, ReplicaLog};
use walras_testkit::Random;

use super::*;

/// Few and small segments, so that one follows the other.
fn options() -> Options {
    let log = LogOptions {
        segment_bytes: 64 * 512,
        first_segment_bytes: 32 * 512,
        block_bytes: 512,
        group_bytes_max: 16 * 512,
        ..LogOptions::default()
    };
    Options { log, retained_slots: 24 }
}

fn me() -> ReplicaId {
    ReplicaId::new(1).expect("not 0")
}

fn open(disk: &SimDisk) -> Result<Opened<SimDisk>, OpenError> {
    let identity = Identity { cluster_id: 1, replica: me(), genesis: Members::of_voters([me()]) };
    ReplicaLog::open(disk.clone(), Path::new("/venue"), identity, options())
}

/// A log's thread that reports each write durable before it is synced.
fn run_early(mut thread: LogThread<SimDisk>) {
    while let Ok(job) = thread.jobs.recv() {
        if let ThreadJob::Log(LogJob::Write(write)) = &job {
            say(&thread.reports, &thread.doorbell, ThreadReport::Log(LogReport::Persisted(write.ticket)));
        }
        thread.take(job);
        if let Some(host) = &mut thread.host {
            host.attempt_due(&mut |_| {});
        }
    }
    if let Some(host) = thread.host {
        host.close();
    }
}

struct Run {
    disk: SimDisk,
    durability: Durability,
    seat: LogSeat<SimDisk>,
    thread: JoinHandle<()>,
    random: Random,
    /// All that were taken. Ticket and slot are the place, from 1.
    writes: Vec<Write>,
    persisted: usize,
    is_failing: bool,
    /// Losses of power at which something was owed.
    interrupted: u64,
}

impl Run {
    fn new(seed: u64, durability: Durability, writer: Writer, thread: fn(LogThread<SimDisk>)) -> Self {
        let disk = SimDisk::new(seed, SimDiskConfig { page_bytes: 512, ..SimDiskConfig::default() });
        let host = LogHost::new(open(&disk).expect("a disk without faults").log, durability);
        let (seat, log_thread) = LogSeat::new(host, writer, Doorbell::default());
        let thread = std::thread::spawn(move || thread(log_thread));
        let (writes, random) = (Vec::new(), Random::new(seed));
        Self { disk, durability, seat, thread, random, writes, persisted: 0, is_failing: false, interrupted: 0 }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    fn take(&mut self) {
        let number = self.writes.len() as u64 + 1;
        let len = if self.below(6) == 0 { BYTES_FEW + 1 } else { 1 + self.below(600) as usize };
        let term = Term(1 + number / 10);
        let pack = Bytes::from(vec![u8::try_from(number % 251).expect("it is small"); len]);
        let entry = SlotEntry { slot: Slot(number), term, body: Body::Pack(pack) };
        let hard_state = HardState { term, vote: Some(me()), commit: Slot(number - 1) };
        let write = Write { ticket: Ticket(number), hard_state, installed: None, entries: vec![entry] };
        self.writes.push(write.clone());
        self.seat.take(LogJob::Write(write));
    }

    fn hear(&mut self) {
        while let Some(report) = self.seat.hear().expect("the thread runs") {
            match report {
                LogReport::Persisted(Ticket(ticket)) => self.persisted = ticket as usize,
                LogReport::Storage(storage) => self.is_failing = storage != walras_ports::Storage::Ok,
                LogReport::Lost(why) => panic!("the log is lost: {why}"),
            }
        }
    }

    /// What would be there if power failed now; with memory that counts, if the process were killed.
    fn check(&mut self) -> Result<(), String> {
        self.hear();
        self.interrupted += u64::from(self.persisted < self.writes.len());
        let wreck = self.disk.fork();
        match self.durability {
            Durability::Disk => wreck.crash(),
            Durability::Memory => wreck.kill(),
        }
        wreck.set_syncs(SimSyncs::Done);
        let found = open(&wreck).map_err(|error| error.to_string())?.recovered;
        let (count, persisted) = (found.entries.len(), self.persisted);
        let taken = self.writes.iter().flat_map(|write| &write.entries);
        if count < persisted || count > self.writes.len() || !found.entries.iter().eq(taken.take(count)) {
            return Err(format!("{count} writes are there, of {persisted} that were reported, and they are other ones, perhaps"));
        }
        let last = count.checked_sub(1).map_or_else(HardState::default, |last| self.writes[last].hard_state);
        if found.hard_state == last { Ok(()) } else { Err(format!("{:?} is there, and not {last:?}", found.hard_state)) }
    }

    /// Rounds, until nothing is owed.
    fn settle(&mut self) {
        walras_wait::until("everything is durable", || {
            self.seat.write();
            self.hear();
            self.persisted == self.writes.len() && !self.is_failing
        });
    }

    fn stop(self) {
        self.disk.set_syncs(SimSyncs::Done);
        drop(self.seat);
        self.thread.join().expect("it does not panic");
    }
}

/// Anything at any moment: two threads share the log, and power fails whenever it does.
fn at_any_moment(seed: u64, durability: Durability, writer: Writer) -> u64 {
    let mut run = Run::new(seed, durability, writer, LogThread::run);
    for step in 0..60 {
        for _ in 0..run.below(4) {
            run.take();
        }
        if run.below(3) > 0 {
            run.seat.write();
        }
        // A failure is followed by a pause, so there are few.
        if durability == Durability::Disk && step == 20 + seed % 20 {
            let within = run.below(4);
            let faults = if seed.is_multiple_of(2) {
                SimFaults { sync_error_in: Some(within), ..SimFaults::default() }
            } else {
                SimFaults { write_error_in: Some(within), ..SimFaults::default() }
            };
            run.disk.set_faults(faults);
        }
        run.check().unwrap_or_else(|what| panic!("seed {seed}, step {step}, {durability:?}, {writer:?}: {what}"));
    }
    run.disk.set_faults(SimFaults::default());
    run.settle();
    run.check().unwrap_or_else(|what| panic!("seed {seed}, at the end, {durability:?}, {writer:?}: {what}"));
    let interrupted = run.interrupted;
    run.stop();
    interrupted
}

#[test]
fn what_the_log_has_reported_survives_the_loss_of_power_at_any_moment() {
    let mut interrupted = 0;
    for seed in 0..12 {
        for writer in [Writer::Thread, Writer::Either] {
            interrupted += at_any_moment(seed, Durability::Disk, writer);
        }
    }
    assert!(interrupted > 100, "power failed {interrupted} times while something was owed: that tests little");
}

#[test]
fn where_memory_counts_what_was_reported_survives_the_end_of_the_process() {
    for seed in 0..6 {
        for writer in [Writer::Thread, Writer::Either] {
            at_any_moment(seed, Durability::Memory, writer);
        }
    }
}

/// The disk is slow: power fails while the thread waits for it.
fn during_a_sync(seed: u64, thread: fn(LogThread<SimDisk>)) -> Result<(), String> {
    let mut run = Run::new(seed, Durability::Disk, Writer::Thread, thread);
    let mut found = Ok(());
    for _ in 0..10 {
        run.disk.set_syncs(SimSyncs::Held);
        run.take();
        walras_wait::until("the thread waits for the disk", || run.disk.held_sync_count() > 0);
        found = found.and_then(|()| run.check());
        run.disk.set_syncs(SimSyncs::Done);
        run.settle();
    }
    assert_eq!(run.persisted, run.writes.len());
    run.stop();
    found
}

#[test]
fn nothing_is_reported_while_its_sync_is_under_way_and_a_thread_that_does_so_is_found() {
    for seed in 0..5 {
        during_a_sync(seed, LogThread::run).unwrap();
        let found = during_a_sync(seed, run_early).expect_err("the thread reports early, and that is not found");
        assert!(found.contains("that were reported"), "{found}");
    }
}

#[test]
fn a_log_that_is_never_synced_is_found() {
    for writer in [Writer::Thread, Writer::Either] {
        let mut run = Run::new(1, Durability::Disk, writer, LogThread::run);
        run.disk.set_syncs(SimSyncs::Ignored);
        let found = (0..50).find_map(|_| {
            run.take();
            run.settle();
            run.check().err()
        });
        run.stop();
        assert!(found.is_some(), "{writer:?}: 50 losses of power lost nothing");
    }
}
