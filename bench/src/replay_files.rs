//! Recorded files of every shape through `walras replay`, each in a process of its own: `make bench NAME=replay_files`.
//!
//! - `replay_files_read`: files that were replayed to a report, of all that were tried.
//! - `replay_lobster_l1_at_best_percent`: the least share of executions at the best price of any LOBSTER file of one level; `_l10_` of ten.
//! - `replay_peak_mib`: the most memory that any of the processes had resident (VmHWM).
//!
//! Files of 1, 5, 10 and 50 levels are cut from days that are known whole, as LOBSTER does: from three made stocks, and from the AAPL hour
//! where it is there. They are written to the folder of streams and stay there. An ITCH day of many instruments is made too.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;
use walras_market_history::itch::{ItchBody, ItchHeader, ItchMessage, ItchReader, ItchWriter, lobster_to_itch};
use walras_market_history::lobster::{LevelCut, LobsterMessage, LobsterReader, LobsterWriter};
use walras_market_history::open_bytes;
use walras_market_history::synthetic::{SyntheticConfig, write_lobster};
use walras_replay::LOBSTER_FILE;

use crate::report::{Figure, Report, Unit};

/// What is measured and where.
#[derive(Clone, Debug)]
pub struct Config {
    /// Two hours of each made stock, or a minute in a trial.
    pub is_full: bool,
    /// Recorded data, as far as it is there.
    pub data: PathBuf,
    /// The program.
    pub walras: PathBuf,
    /// Where made files are put.
    pub scratch: PathBuf,
}

const LEVELS: [usize; 4] = [1, 5, 10, 50];
/// Per cent at the best price that files of one level, and of ten, must reach.
const L1_PERCENT_BAR: f64 = 89.0;
const L10_PERCENT_BAR: f64 = 96.0;
const PEAK_MIB_BAR: f64 = 256.0;
/// Instruments of the made ITCH day.
const ITCH_INSTRUMENTS: u16 = 20;
/// Messages of each of them.
const ITCH_MESSAGES: usize = 100_000;

/// A file, and the levels that it was cut to.
struct Tried {
    path: PathBuf,
    levels: Option<usize>,
    options: Vec<String>,
}

/// Makes the files, replays each, and reports.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(1);
    std::fs::create_dir_all(&config.scratch).context("making the folder of files; name another with --streams")?;
    let mut tried = made(config)?;
    for file in [
        LOBSTER_FILE,
        "sse/AX_sbe_sse_600519.zip",
        "bitstamp/2015-05-01.log.xz",
        "bitstamp/orders.csv.xz",
        "ec-workload/ec_1k_3m.bin.xz",
    ] {
        let path = config.data.join(file);
        if config.is_full && path.is_file() {
            tried.push(Tried { path, levels: None, options: Vec::new() });
        } else {
            report.note(format!("{file} was not replayed: it is not in {}, or this is a trial", config.data.display()));
        }
    }
    let (mut read, mut peak_mib) = (0, 0.0_f64);
    let mut least = [100.0_f64; 2];
    for file in &tried {
        for venue in [false, true] {
            let name = file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let found = match replay(&config.walras, file, venue) {
                Ok(found) => found,
                Err(why) => {
                    report.note(format!("{name} was not read: {why:#}"));
                    continue;
                }
            };
            let mib = found["peak_memory_kib"].as_f64().context("the report of a replay has no peak_memory_kib")? / 1_024.0;
            peak_mib = peak_mib.max(mib);
            if venue {
                report.check(format!("{name} through a venue: {mib:.0} MiB at most"));
                continue;
            }
            read += 1;
            let executions = &found["executions"];
            let at_best = executions["at_best"].as_f64().zip(executions["of_known_orders"].as_f64());
            let percent = at_best.filter(|(_, of)| *of > 0.0).map(|(part, of)| 100.0 * part / of);
            for (slot, levels) in [(0, 1), (1, 10)] {
                if let (true, Some(percent)) = (file.levels == Some(levels), percent) {
                    least[slot] = least[slot].min(percent);
                }
            }
            let percent = percent.map_or(String::new(), |percent| format!("{percent:.2} % at best, "));
            report.check(format!("{name}: {percent}{mib:.0} MiB at most"));
        }
    }
    report.figure(Figure::new("replay_files_read", f64::from(read), Unit::Count).bar(tried.len() as f64));
    report.figure(Figure::new("replay_lobster_l1_at_best_percent", least[0], Unit::Percent).bar(L1_PERCENT_BAR));
    report.figure(Figure::new("replay_lobster_l10_at_best_percent", least[1], Unit::Percent).bar(L10_PERCENT_BAR));
    report.figure(Figure::new("replay_peak_mib", peak_mib, Unit::Mib).bar(PEAK_MIB_BAR));
    Ok(())
}

/// The report of a process that replays a file.
fn replay(walras: &Path, file: &Tried, venue: bool) -> anyhow::Result<Value> {
    let mut command = Command::new(walras);
    command.arg("--json").arg("replay").arg(&file.path).args(&file.options);
    if venue {
        command.arg("--venue");
    }
    let output = command.output().with_context(|| format!("starting {}; build it with cargo build", walras.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "walras replay ended with {}: {}", output.status, said.trim());
    serde_json::from_slice(&output.stdout).context("the report of a replay is no JSON")
}

/// Three stocks: a lively one, one whose price runs, and one below a dollar.
fn stocks(is_full: bool) -> [(&'static str, SyntheticConfig); 3] {
    let seconds = if is_full { 2 * 3_600 } else { 60 };
    let lively = SyntheticConfig { seed: 11, duration_ns: seconds * 1_000_000_000, ..SyntheticConfig::default() };
    let running = SyntheticConfig {
        seed: 12,
        fundamental_step_milliticks: 6_000,
        fundamental_reversion_ppm: 20,
        lean_permille_per_tick: 60,
        ..lively
    };
    let cheap = SyntheticConfig { seed: 13, units_per_tick: 1, start_price_ticks: 4_321, ..lively };
    [("LIVELY", lively), ("RUNS", running), ("CHEAP", cheap)]
}

/// Makes the files that cannot be in the repository, or that nobody has recorded.
fn made(config: &Config) -> anyhow::Result<Vec<Tried>> {
    let mut tried = Vec::new();
    let mut days: Vec<(String, PathBuf)> = Vec::new();
    for (name, stock) in stocks(config.is_full) {
        let path = config.scratch.join(format!("{name}_whole.csv"));
        let file = std::fs::File::create(&path).with_context(|| format!("writing {}", path.display()))?;
        write_lobster(stock, std::io::BufWriter::new(file))?;
        days.push((name.to_owned(), path));
    }
    let recorded = config.data.join(LOBSTER_FILE);
    if recorded.is_file() {
        days.push(("AAPL".to_owned(), recorded));
    }
    for (name, day) in &days {
        for levels in LEVELS {
            let path = config.scratch.join(format!("{name}_made_message_{levels}.csv"));
            cut(day, levels, &path)?;
            tried.push(Tried { path, levels: Some(levels), options: Vec::new() });
        }
    }
    let path = config.scratch.join("made_day.itch");
    itch_day(&days[0].1, &path)?;
    let options = ["--instrument", "S7"].map(str::to_owned).to_vec();
    tried.push(Tried { path, levels: None, options });
    Ok(tried)
}

/// The message file that LOBSTER would make of a day with so many levels.
fn cut(day: &Path, levels: usize, to: &Path) -> anyhow::Result<()> {
    let mut cut = LevelCut::new(levels);
    let file = std::fs::File::create(to).with_context(|| format!("writing {}", to.display()))?;
    let mut writer = LobsterWriter::new(std::io::BufWriter::new(file));
    for message in LobsterReader::new(open_bytes(day)?) {
        let message: LobsterMessage = message?;
        if cut.take(&message) {
            writer.write(&message)?;
        }
    }
    writer.finish()?;
    Ok(())
}

/// A day of many instruments, each with the same flow of orders.
fn itch_day(day: &Path, to: &Path) -> anyhow::Result<()> {
    let mut one = Vec::new();
    lobster_to_itch(open_bytes(day)?, &mut one, *b"ONE     ")?;
    let file = std::fs::File::create(to).with_context(|| format!("writing {}", to.display()))?;
    let mut writer = ItchWriter::new(std::io::BufWriter::new(file));
    for message in ItchReader::new(&one[..]).take(ITCH_MESSAGES) {
        let ItchMessage { header, body } = message?;
        if header.locate == 0 {
            writer.write(&ItchMessage { header, body })?;
            continue;
        }
        for locate in 1..=ITCH_INSTRUMENTS {
            let body = renamed(body, locate);
            writer.write(&ItchMessage { header: ItchHeader { locate, ..header }, body })?;
        }
    }
    writer.finish()?;
    Ok(())
}

/// A message as one of instrument number `locate`, whose orders have numbers of their own.
fn renamed(body: ItchBody, locate: u16) -> ItchBody {
    let number = |order_ref: u64| order_ref * u64::from(ITCH_INSTRUMENTS) + u64::from(locate);
    let mut name = *b"        ";
    let text = format!("S{locate}");
    name[..text.len()].copy_from_slice(text.as_bytes());
    let mut body = body;
    match &mut body {
        ItchBody::Directory { symbol, .. }
        | ItchBody::TradingAction { symbol, .. }
        | ItchBody::Trade { symbol, .. }
        | ItchBody::Cross { symbol, .. } => {
            *symbol = name;
        }
        ItchBody::Add { symbol, order_ref, .. } => {
            *symbol = name;
            *order_ref = number(*order_ref);
        }
        ItchBody::Execute { order_ref, .. }
        | ItchBody::ExecuteAtPrice { order_ref, .. }
        | ItchBody::Cancel { order_ref, .. }
        | ItchBody::Delete { order_ref } => *order_ref = number(*order_ref),
        ItchBody::Replace { old_ref, new_ref, .. } => {
            *old_ref = number(*old_ref);
            *new_ref = number(*new_ref);
        }
        ItchBody::System { .. } | ItchBody::Other { .. } => {}
    }
    body
}
