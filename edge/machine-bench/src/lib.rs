//! What this machine does in one process: the book, the engine with accounts and ledger, and the disk under a folder.
//!
//! All three take the same made stream (`walras-market-history`'s churn: a book held near 1,000 orders), whose answer is known; a part
//! that answers otherwise gives no figure.

use std::fmt::{Display, Formatter};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use walras_client::{Latencies, LatencyReport};
use walras_log_store::{LogOptions, LogWriter, RealDisk, open_read_only};
use walras_market_history::workload::{Churn, ChurnConfig};
use walras_market_history::workload_file::{INFO, WorkloadResult};
use walras_market_history::{Format, HistoryEvent};
use walras_replay::venue::{VenueOptions, commands};
use walras_replay::{Loaded, Options, Progress, WorkloadReport};
use walras_sequencer::encode_entry;
use walras_terminal::progress::Slow;

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The stream could not be run.
    #[error(transparent)]
    Replay(#[from] walras_replay::ReplayError),
    /// The log under the data folder refused, or its disk.
    #[error(transparent)]
    Log(#[from] walras_log_store::LogError),
    /// Something was measured that gave a wrong answer, so its speed means nothing.
    #[error(
        "{0} gave another answer than the stream's: its speed means nothing; please report this with the machine and the version"
    )]
    WrongAnswer(&'static str),
    /// A folder could not be made.
    #[error("could not make {}: {source}; choose another folder with --data", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Rounds; the report has their median.
const ROUNDS: u32 = 5;
/// Different entries that are written; after the last comes the first again.
const ENTRIES: usize = 1 << 16;
/// Entries that one sync makes durable when many wait.
const GROUP: usize = 1_024;
/// The log's most bytes: a fast disk would fill up in the time given.
const LOG_BYTES_MAX: u64 = 512 << 20;

/// What to measure.
#[derive(Clone, Debug)]
pub struct MachineOptions {
    /// Commands of the stream, after the 1,000 that fill the book.
    pub commands: u64,
    /// Under which folder the log is written, and removed when it was measured.
    pub data: PathBuf,
    /// How long the disk is measured.
    pub disk_time: Duration,
    /// Of this program, for the report.
    pub commit: &'static str,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct MachineReport {
    /// Where.
    pub machine: Machine,
    /// On what.
    pub load: StreamReport,
    /// One instrument's book: matching alone.
    pub book: SpeedReport,
    /// The engine: accounts, risk, ledger, book and events; on one thread, commands in memory.
    pub engine: SpeedReport,
    /// The durable log.
    pub log: LogSpeed,
}

/// The machine and the program.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Threads that run at a time.
    pub cpus: usize,
    /// What the processor calls itself, where the system says.
    pub cpu: Option<String>,
    /// Version of this program.
    pub version: &'static str,
    /// Its commit.
    pub commit: &'static str,
    /// Whether it was built without optimisation for speed: then the figures say little.
    pub debug_build: bool,
}

/// The stream.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StreamReport {
    /// Commands, those that fill the book included.
    pub commands: u64,
    /// Orders that the book is held near.
    pub resting_orders: u64,
    /// Trades that come of it.
    pub trades: u64,
    /// Its seed.
    pub seed: u64,
}

/// How fast a part takes the stream.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SpeedReport {
    /// Rounds of which this is the median.
    pub rounds: u32,
    /// Nanoseconds a command.
    pub ns_per_command: f64,
    /// The same, upside down.
    pub commands_per_second: f64,
}

impl SpeedReport {
    fn new(rounds: u32, ns_per_command: f64) -> Self {
        Self { rounds, ns_per_command, commands_per_second: 1e9 / ns_per_command.max(f64::MIN_POSITIVE) }
    }
}

/// How fast commands become durable under the folder.
#[derive(Clone, Debug, Serialize)]
pub struct LogSpeed {
    /// Under which folder.
    pub folder: PathBuf,
    /// Bytes of an entry, on average.
    pub entry_bytes: f64,
    /// One command at a time: writing it and syncing. What the disk adds to the answer of a quiet venue.
    pub one_by_one: LatencyReport,
    /// As many commands as wait when a venue is busy, made durable by one sync.
    pub grouped: GroupedReport,
}

/// Commands in groups.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct GroupedReport {
    /// Commands of a group.
    pub group: usize,
    /// Durable commands a second, with one group written after the other.
    pub commands_per_second: f64,
    /// Writing and syncing a group.
    pub sync: LatencyReport,
}

/// Measures. Calls `progress` with how far the stream's part is.
pub fn run(options: &MachineOptions, progress: &mut dyn FnMut(Progress)) -> Result<MachineReport, MachineError> {
    let seed = 1;
    let config = ChurnConfig { commands: options.commands, ..ChurnConfig::standard(seed) };
    let mut churn = Churn::new(config);
    let events: Vec<HistoryEvent> = (0..).zip(&mut churn).map(|(index, command)| command.event(index)).collect();
    let expected = churn.result();
    drop(churn);
    let loaded = Loaded::from_events(Format::Workload, INFO, events);
    let timed = Options { timing_rounds: ROUNDS, mismatches_named_max: 0, ..Options::default() };

    let report = walras_replay::run_loaded(&loaded, &timed, progress)?;
    check("the book", report.workload, &expected)?;
    let book = report.timing.map_or(0.0, |timing| timing.ns_per_message);

    let venue = VenueOptions::new(Format::Workload);
    let report = walras_replay::venue::run_loaded(&loaded, &venue, &timed, None, progress)?;
    check("the engine", report.workload, &expected)?;
    let engine = report.timing.map_or(0.0, |timing| timing.ns_per_command);

    let entries: Vec<Vec<u8>> = commands(&loaded, &venue)?
        .take(ENTRIES)
        .map(|(time, command)| {
            let mut bytes = Vec::new();
            encode_entry(time, None, &command, &mut bytes);
            bytes
        })
        .collect();
    let log = log_speed(&options.data, &entries, options.disk_time)?;
    Ok(MachineReport {
        machine: machine(options.commit),
        load: StreamReport { commands: expected.mix.total(), resting_orders: config.target_orders, trades: expected.trades, seed },
        book: SpeedReport::new(ROUNDS, book),
        engine: SpeedReport::new(ROUNDS, engine),
        log,
    })
}

fn check(what: &'static str, found: Option<WorkloadReport>, expected: &WorkloadResult) -> Result<(), MachineError> {
    let is_right = found.is_some_and(|found| {
        (found.trades, found.volume_lots, found.commands_with_trade, found.level_hash)
            == (expected.trades, expected.volume_lots, expected.commands_with_trade, expected.level_hash)
    });
    if is_right { Ok(()) } else { Err(MachineError::WrongAnswer(what)) }
}

/// The machine this runs on.
fn machine(commit: &'static str) -> Machine {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu =
        info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':')).map(|(_, name)| name.trim().to_owned());
    Machine {
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        cpu,
        version: env!("CARGO_PKG_VERSION"),
        commit,
        debug_build: cfg!(debug_assertions),
    }
}

/// A folder of our own, gone when this is.
struct Scratch(PathBuf);

impl Scratch {
    fn new(data: &Path) -> Result<Self, MachineError> {
        let path = data.join(format!("bench-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|source| MachineError::Folder { path: path.clone(), source })?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What can not be removed stays, under a name that says what it is.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn log_speed(data: &Path, entries: &[Vec<u8>], time: Duration) -> Result<LogSpeed, MachineError> {
    let scratch = Scratch::new(data)?;
    let options = LogOptions::default();
    let (mut log, _) = LogWriter::open(RealDisk, &scratch.0, options)?;
    let mut bar = Slow::new("measuring the disk, ms", u64::try_from(time.as_millis()).ok());
    let begun = Instant::now();
    let mut source = entries.iter().cycle();
    let (mut written, mut bytes) = (0_u64, 0_u64);
    let mut append = |log: &mut LogWriter<RealDisk>, count: usize| {
        for entry in source.by_ref().take(count) {
            log.append(entry)?;
            written += 1;
            bytes += entry.len() as u64;
        }
        Ok::<u64, MachineError>(bytes)
    };
    let mut phase = |count: usize, until: Duration| {
        let (mut syncs, mut groups, mut busy) = (Latencies::default(), 0_u64, Duration::ZERO);
        loop {
            let start = Instant::now();
            let bytes = append(&mut log, count)?;
            log.sync()?;
            let took = start.elapsed();
            syncs.record(took);
            busy += took;
            groups += 1;
            // The next segment is prepared on another thread in a venue; here the clock stands still meanwhile.
            log.maintain()?;
            bar.tell(u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX));
            if begun.elapsed() >= until || bytes >= LOG_BYTES_MAX {
                return Ok::<_, MachineError>((syncs.report(), groups as f64 * count as f64 / busy.as_secs_f64()));
            }
        }
    };
    let (one_by_one, _) = phase(1, time / 2)?;
    let (sync, commands_per_second) = phase(GROUP, time)?;
    bar.finish();
    log.close()?;
    let (mut reader, _lock) = open_read_only(&RealDisk, &scratch.0, None)?;
    let mut expected = entries.iter().cycle();
    let mut read = 0;
    while let Some(entry) = reader.next()? {
        if expected.next().map(Vec::as_slice) != Some(entry.payload) {
            return Err(MachineError::WrongAnswer("the log"));
        }
        read += 1;
    }
    if read != written {
        return Err(MachineError::WrongAnswer("the log"));
    }
    let entry_bytes = bytes as f64 / written as f64;
    Ok(LogSpeed {
        folder: data.to_owned(),
        entry_bytes,
        one_by_one,
        grouped: GroupedReport { group: GROUP, commands_per_second, sync },
    })
}

impl Display for MachineReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Machine { cpus, cpu, version, commit, debug_build } = &self.machine;
        writeln!(f, "walras {version} ({commit}) on {cpus} CPUs{}", cpu.as_ref().map_or(String::new(), |cpu| format!(", {cpu}")))?;
        if *debug_build {
            writeln!(f, "a debug build: the figures say little; measure with a release build")?;
        }
        let StreamReport { commands, resting_orders, trades, .. } = self.load;
        writeln!(
            f,
            "{commands} made commands, about {resting_orders} orders resting, {trades} trades; all answers as they should be"
        )?;
        let mut line = |name: &str, value: String| writeln!(f, "  {name:<34} {value}");
        let speed =
            |speed: &SpeedReport| format!("{:.1} ns a command, {:.2} M/s", speed.ns_per_command, speed.commands_per_second / 1e6);
        line("book", speed(&self.book))?;
        line("engine with accounts and ledger", speed(&self.engine))?;
        let LogSpeed { one_by_one, grouped, entry_bytes, folder } = &self.log;
        line("durable, one at a time", format!("{one_by_one}"))?;
        line(&format!("durable, {} at a time", grouped.group), format!("{}", grouped.sync))?;
        line("", format!("{:.2} M/s of {entry_bytes:.0} bytes", grouped.commands_per_second / 1e6))?;
        line("disk under", folder.display().to_string())
    }
}
