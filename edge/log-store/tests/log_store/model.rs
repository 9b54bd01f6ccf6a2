//! Random work with crashes, failed writes and syncs, and full disks at any point, against a naive model.
//!
//! The invariant: after any crash the log opens, every acknowledged entry is there, in order, once, and nothing follows a gap. What
//! was under way may have happened, or not. What was flushed and not synced is there up to the end of some flush, all of it unless the
//! machine stopped.

use crate::common::*;
use walras_log_store::sim_disk::{SimDisk, SimDiskConfig, SimFaults};
use walras_log_store::{LogError, LogOptions, LogWriter, SegmentReport, SegmentRole, verify};
use walras_types::LogIndex;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % bound
    }
}

/// States that the log may be found in: entries from `first` on, in one of these counts; the log may begin anywhere up to
/// `first_latest`.
#[derive(Clone, Debug)]
struct Possible {
    first: u64,
    first_latest: u64,
    entries: Vec<Vec<u8>>,
    counts: Vec<usize>,
}

impl Possible {
    fn holds(&self, first: u64, entries: &[Vec<u8>]) -> bool {
        let in_range = (self.first..=self.first_latest).contains(&first);
        let Some(expected) = in_range.then(|| self.entries.get((first - self.first) as usize..)).flatten() else { return false };
        let count = entries.len() + (first - self.first) as usize;
        self.counts.contains(&count) && *entries == expected[..entries.len()]
    }
}

/// What the log is known to hold, and what waits for a sync: up to these counts it was flushed.
struct Model {
    first: u64,
    durable: Vec<Vec<u8>>,
    pending: Vec<Vec<u8>>,
    flushed: Vec<usize>,
}

impl Model {
    fn new(first: u64, durable: Vec<Vec<u8>>) -> Self {
        Self { first, durable, pending: Vec::new(), flushed: Vec::new() }
    }

    fn end(&self) -> u64 {
        self.first + self.durable.len() as u64
    }

    fn all(&self) -> Vec<Vec<u8>> {
        self.durable.iter().chain(&self.pending).cloned().collect()
    }

    fn unchanged(&self) -> Possible {
        let counts = [0].iter().chain(&self.flushed).map(|count| self.durable.len() + count).collect();
        Possible { first: self.first, first_latest: self.first, entries: self.all(), counts }
    }

    /// While the process alone ends.
    fn written(&self) -> Possible {
        let possible = self.unchanged();
        Possible { counts: possible.counts[possible.counts.len() - 1..].to_vec(), ..possible }
    }

    fn syncing(&self) -> Possible {
        let mut possible = self.unchanged();
        possible.counts.push(possible.entries.len());
        possible
    }

    fn synced(&mut self) {
        self.durable.append(&mut self.pending);
        self.flushed.clear();
    }
}

struct Run {
    disk: SimDisk,
    options: LogOptions,
    random: Random,
    model: Model,
    /// Makes every payload one of a kind.
    serial: u64,
    log: Option<LogWriter<SimDisk>>,
    seed: u64,
    crashes: u64,
    refusals: u64,
    /// Restarts at which only a part of what was flushed was there.
    lost_flushes: u64,
    /// Restarts with entries in a file that served before.
    reused: u64,
}

type Outcome = Result<(), LogError>;

impl Run {
    fn new(seed: u64, disk: SimDiskConfig, options: LogOptions) -> Self {
        let disk = SimDisk::new(seed, disk);
        let (log, _) = open(&disk, options.clone()).unwrap();
        Self {
            disk,
            options,
            random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            model: Model::new(1, Vec::new()),
            serial: 0,
            log: Some(log),
            seed,
            crashes: 0,
            refusals: 0,
            lost_flushes: 0,
            reused: 0,
        }
    }

    fn payload(&mut self) -> Vec<u8> {
        self.serial += 1;
        let longest = self.options.entry_bytes_max() as u64;
        let len = match self.random.below(20) {
            0 => longest,
            1..4 => self.random.below(longest),
            _ => self.random.below(90),
        };
        let mut bytes = vec![if self.serial.is_multiple_of(3) { 0 } else { self.serial as u8 }; len as usize];
        for (at, byte) in self.serial.to_le_bytes().into_iter().enumerate().take(bytes.len()) {
            bytes[at] = byte;
        }
        bytes
    }

    fn plan_faults(&mut self) {
        let mut due = |one_in: u64, within: u64| (self.random.below(one_in) == 0).then(|| self.random.below(within));
        let faults =
            SimFaults { crash_in_ops: due(3, 12), sync_error_in: due(6, 6), write_error_in: due(8, 6), gone_in_ops: due(20, 12) };
        self.disk.set_faults(faults);
        if self.random.below(10) == 0 {
            let used: u64 = self.disk.paths().iter().map(|path| self.disk.bytes_of(path).unwrap().len() as u64).sum();
            self.disk.set_capacity(used + self.random.below(2 * self.options.segment_bytes));
        }
    }

    /// One step; when it fails, `possible` says what the log may be found to hold.
    fn step(&mut self) -> (Outcome, Vec<Possible>) {
        let mut log = self.log.take().expect("a log is open");
        let before = self.model.unchanged();
        let syncing = self.model.syncing();
        let next = self.model.end() + self.model.pending.len() as u64;
        let result = match self.random.below(19) {
            0..5 => {
                for _ in 0..=self.random.below(12) {
                    let payload = self.payload();
                    let index = log.append(&payload).expect("appending needs no disk");
                    self.model.pending.push(payload);
                    assert_eq!(index.0, self.model.end() + self.model.pending.len() as u64 - 1);
                }
                (Ok(()), vec![])
            }
            5..10 => {
                let done = log.sync().map(|end| {
                    self.model.synced();
                    assert_eq!(end.0, self.model.end());
                });
                (done, vec![syncing])
            }
            10 => (log.seal().map(|()| self.model.synced()), vec![syncing]),
            11..13 => (log.maintain(), vec![before]),
            13 if self.model.durable.len() > 1 => {
                let up_to = self.model.first + self.random.below(self.model.durable.len() as u64 - 1);
                let possible = Possible { first_latest: up_to + 1, ..syncing };
                let done = log.truncate_prefix(LogIndex(up_to)).map(|first| {
                    assert!(first.0 >= self.model.first && first.0 <= up_to + 1);
                    // Nothing needs a sync when nothing can be dropped.
                    if log.durable_end().0 == next {
                        self.model.synced();
                    }
                    self.model.durable.drain(..(first.0 - self.model.first) as usize);
                    self.model.first = first.0;
                });
                (done, vec![possible])
            }
            14 => {
                let from = self.model.first + self.random.below(next - self.model.first + 1);
                let kept = (from - self.model.first) as usize;
                let mut entries = self.model.all();
                entries.truncate(kept);
                let cut = Possible { counts: vec![kept], entries: entries.clone(), ..syncing.clone() };
                let done = log.truncate_suffix(LogIndex(from)).map(|()| {
                    self.model = Model::new(self.model.first, entries);
                });
                (done, vec![syncing, cut])
            }
            15 if self.random.below(4) == 0 => {
                let first = 1 + self.random.below(next + 50);
                let empty = Possible { first, first_latest: first, entries: vec![], counts: vec![0] };
                let done = log.reset_to(LogIndex(first)).map(|()| {
                    self.model = Model::new(first, vec![]);
                });
                (done, vec![before, empty])
            }
            16..19 => {
                let done = log.flush().map(|()| self.model.flushed.push(self.model.pending.len()));
                let mut flushing = before;
                flushing.counts.push(flushing.entries.len());
                (done, vec![flushing])
            }
            _ => (Ok(()), vec![]),
        };
        self.log = Some(log);
        result
    }

    /// Ends the process or the machine, opens the log, and compares.
    fn restart(&mut self, possible: &[Possible], was_idle: bool) {
        self.log = None;
        let crashes_before = self.crashes;
        self.fail_over();
        let log = loop {
            if self.random.below(3) == 0 {
                let crash_in_ops = Some(self.random.below(10));
                self.disk.set_faults(SimFaults { crash_in_ops, ..SimFaults::default() });
            }
            match open(&self.disk, self.options.clone()) {
                Ok((log, _)) => break log,
                Err(_) if self.disk.is_off() => self.fail_over(),
                Err(LogError::DiskFull { .. }) => self.disk.set_capacity(u64::MAX),
                Err(error) => panic!("seed {}: {error}", self.seed),
            }
        };
        let first = log.first_index().0;
        let entries: Vec<Vec<u8>> = match log.reader(log.first_index()).and_then(|mut reader| {
            let mut entries = Vec::new();
            while let Some(entry) = reader.next()? {
                assert_eq!(entry.index.0, first + entries.len() as u64);
                entries.push(entry.payload.to_vec());
            }
            Ok(entries)
        }) {
            Ok(entries) => entries,
            Err(_) if self.disk.is_off() => return self.restart(possible, was_idle && self.crashes == crashes_before),
            Err(error) => panic!("seed {}: {error}", self.seed),
        };
        assert!(
            possible.iter().any(|possible| possible.holds(first, &entries)),
            "seed {}: found {} entries from {first}; possible: {:?}",
            self.seed,
            entries.len(),
            possible.iter().map(|p| (p.first, p.first_latest, p.counts.clone())).collect::<Vec<_>>()
        );
        if was_idle && self.crashes == crashes_before {
            assert!(self.model.written().holds(first, &entries), "seed {}: a killed process lost what it had flushed", self.seed);
        }
        if first == self.model.first && entries.len() < self.model.durable.len() + self.model.flushed.last().unwrap_or(&0) {
            self.lost_flushes += 1;
        }
        self.model = Model::new(first, entries);
        self.log = Some(log);
        self.disk.set_faults(SimFaults::default());
    }

    fn fail_over(&mut self) {
        if self.disk.is_off() || self.random.below(2) == 0 {
            self.disk.crash();
            self.crashes += 1;
        } else {
            self.disk.kill();
        }
        let report = verify(&self.disk, &dir()).unwrap();
        assert!(report.is_sound(), "seed {}: {report:#?}", self.seed);
        let is_reused = |segment: &SegmentReport| segment.recycled && segment.role == SegmentRole::Live && segment.entry_count > 0;
        self.reused += u64::from(report.segments.iter().any(is_reused));
    }

    fn steps(&mut self, count: u64) {
        for _ in 0..count {
            if self.random.below(4) == 0 {
                self.plan_faults();
            }
            let (done, possible) = self.step();
            match done {
                Ok(()) if self.random.below(25) == 0 => self.restart(&[self.model.unchanged()], true),
                Ok(()) => {}
                Err(error) => {
                    self.refusals += 1;
                    self.check_refusal(&error);
                    self.restart(&possible, false);
                    if self.random.below(2) == 0 {
                        self.disk.set_capacity(u64::MAX);
                    }
                }
            }
        }
        self.restart(&[self.model.unchanged()], true);
    }

    /// After a failed write or sync nothing more is taken.
    fn check_refusal(&mut self, error: &LogError) {
        let log = self.log.as_mut().expect("a log is open");
        assert!(matches!(error, LogError::Io { .. } | LogError::DiskFull { .. }), "seed {}: {error}", self.seed);
        if !self.disk.is_off() && log.append(b"more").is_err() {
            assert!(matches!(log.sync(), Err(LogError::Poisoned)));
            assert!(matches!(log.truncate_suffix(log.next_index()), Err(LogError::Poisoned)));
            assert!(log.maintenance().is_none());
        }
    }
}

fn run_seeds(seeds: std::ops::Range<u64>, disk: SimDiskConfig, options: &LogOptions) {
    let (mut crashes, mut refusals, mut lost_flushes, mut reused) = (0, 0, 0, 0);
    for seed in seeds {
        let mut run = Run::new(seed, disk, options.clone());
        run.steps(120);
        crashes += run.crashes;
        refusals += run.refusals;
        lost_flushes += run.lost_flushes;
        reused += run.reused;
    }
    assert!(
        crashes > 100 && refusals > 100 && lost_flushes > 10 && reused > 100,
        "{crashes} crashes, {refusals} refusals, {lost_flushes} lost flushes and {reused} restarts with reused files test little"
    );
}

/// As many seeds as asked for by `WALRAS_LOG_SEEDS`, or few.
fn seeds() -> std::ops::Range<u64> {
    let count = std::env::var("WALRAS_LOG_SEEDS").map_or(80, |count| count.parse().expect("WALRAS_LOG_SEEDS is a number of seeds"));
    1..1 + count
}

#[test]
fn blocks_are_pages_and_torn_pages_hold_anything() {
    let disk = SimDiskConfig { page_bytes: 512, ..SimDiskConfig::default() };
    run_seeds(seeds(), disk, &tiny(8));
}

#[test]
fn blocks_of_many_pages() {
    let options = LogOptions { segment_bytes: 5 * 4096, group_bytes_max: 8192, ..LogOptions::default() };
    let disk = SimDiskConfig { page_bytes: 512, ..SimDiskConfig::default() };
    run_seeds(seeds(), disk, &options);
}

#[test]
fn pages_of_many_blocks_where_a_torn_page_mixes_old_and_new() {
    let disk = SimDiskConfig { page_bytes: 4096, garbage_pages: false, ..SimDiskConfig::default() };
    run_seeds(seeds(), disk, &tiny(16));
}

#[test]
fn short_first_segments_and_few_spent_files() {
    let disk = SimDiskConfig { page_bytes: 512, ..SimDiskConfig::default() };
    run_seeds(seeds(), disk, &LogOptions { first_segment_bytes: 1, spent_files_max: 1, ..tiny(12) });
}

#[test]
fn segments_of_two_blocks() {
    let disk = SimDiskConfig { page_bytes: 512, ..SimDiskConfig::default() };
    run_seeds(seeds(), disk, &LogOptions { group_bytes_max: 512, ..tiny(2) });
}

#[test]
fn a_crash_at_any_operation_of_making_a_log_leaves_none_or_an_empty_one() {
    let mut done = 0;
    for crash_in_ops in 0..40 {
        for seed in 0..20 {
            let disk = sim(seed);
            disk.set_faults(SimFaults { crash_in_ops: Some(crash_in_ops), ..SimFaults::default() });
            let mut acknowledged = None;
            if let Ok((mut log, _)) = open(&disk, tiny(4)) {
                acknowledged = Some(0);
                log.append(&entry(1)).unwrap();
                if log.sync().is_ok() {
                    acknowledged = Some(1);
                    done += u32::from(log.maintain().is_ok());
                }
            }
            disk.crash();
            let (log, recovery) = open(&disk, tiny(4)).unwrap_or_else(|error| panic!("op {crash_in_ops} seed {seed}: {error}"));
            assert!(!recovery.created || acknowledged.is_none());
            let held = contents(&log);
            assert!(held.len() >= acknowledged.unwrap_or(0), "op {crash_in_ops} seed {seed}");
            assert!(held.is_empty() || (acknowledged.is_some() && held == [(1, entry(1))]));
        }
    }
    assert!((1..40 * 20).contains(&done), "the crashes cover everything that is done: {done}");
}
