//! The ways in that programs written for others take: `make bench NAME=access`.
//!
//! - `fix44_wire_percent` and its like: acceptance definitions that FIX engines share, by what is on the wire; `fix44_j_percent` by
//!   QuickFIX/J's rule, which also compares how a text begins. They need the definitions (`fix-at` in the folder of data).
//! - `fix_*`: orders and cancels over FIX 4.4 into a process of the program whose log is on disk, next to acceptors on quickfix-rs and
//!   quickfix-go (`bench/peers`) that answer the same messages at once and keep nothing.
//! - `fix_round_trip_us`: the median from an order to its report, one at a time, by the same programs. The venue's report comes
//!   after the order is on its disk.
//! - `facade_orders_per_s`, `facade_hmac_orders_per_s`: orders and cancels in the dialect of Binance's Spot API (`docs/binance.md`), signed
//!   with Ed25519 and with HMAC.
//! - `ccxt_passed` and its like: what unmodified clients came to in `make facade-test`, read from its result file.
//! - `python_venue_orders_per_s`, `asyncio_orders_per_s`: the Python package, where `make python` has built it. Next to it hftbacktest,
//!   where that is installed (`python_venue_vs_hftbacktest`), and the order book of ABIDES, where `--abides` names a checkout
//!   (`python_venue_vs_abides`).
//! - `good_p99_under_attack_ratio`: the worst of `make bench NAME=siege`, read from its result file;
//!   `good_p99_under_attack_ratio_fix` and its like: of one interface alone.
//!
//! *Start reading* at [`run`].

mod clients;
mod definitions;
mod engines;
mod facade;
mod fix;
mod idle;
mod python;

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::product::processes::{Running, Signing};
use crate::report::{Figure, PeerFigure, Report, Unit};

/// Loads in Binance's dialect: each metric, and how its orders are signed.
const FACADE: [(&str, Signing); 2] = [("facade_orders_per_s", Signing::Ed25519), ("facade_hmac_orders_per_s", Signing::Hmac)];

/// What is run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Times each load is measured; figures are medians.
    pub rounds: usize,
    /// Seconds of each load.
    pub seconds: u32,
    /// FIX sessions that stand idle.
    pub idle_sessions: usize,
    /// Orders of each round of the Python package.
    pub python_orders: usize,
    /// The program.
    pub walras: PathBuf,
    /// The folder of peers; `None` without them.
    pub peers: Option<PathBuf>,
    /// The folder of a checkout of ABIDES; `None` without it.
    pub abides: Option<PathBuf>,
    /// The folder of recorded data.
    pub data: PathBuf,
    /// Where data lies while it is measured.
    pub scratch: PathBuf,
    /// Where the results of other benches are.
    pub results: PathBuf,
}

/// Measures, and reports. What cannot be measured here is a note.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(config.rounds);
    report.require(&["fix_cpu_us_per_order", "fix_orders_per_s", "facade_orders_per_s", "facade_hmac_orders_per_s"]);
    std::fs::create_dir_all(&config.scratch)
        .with_context(|| format!("making {}; name a folder that you may write to with --streams", config.scratch.display()))?;
    definitions::run(&config.data, report)?;
    clients::run(&config.results, report);
    orders(config, report)?;
    idle::run(config, report)?;
    python::run(config, report);
    Ok(())
}

/// What was seen of a FIX engine, by round.
#[derive(Default)]
struct Rounds {
    per_second: Vec<f64>,
    cpu_us: Vec<f64>,
    round_trip_us: Vec<f64>,
}

impl Rounds {
    fn push(&mut self, seen: &fix::Seen, round_trip_us: f64) {
        self.round_trip_us.push(round_trip_us);
        self.per_second.push(seen.per_second);
        self.cpu_us.push(seen.cpu_us);
    }
}

fn orders(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let (engines, missing) = match &config.peers {
        Some(peers) => engines::build(peers),
        None => (Vec::new(), vec!["no FIX engine was RUN next to ours: --no-peer was given".to_owned()]),
    };
    for why in missing {
        report.note(why);
    }
    let (mut ours, mut facade) = (Rounds::default(), FACADE.map(|_| Vec::new()));
    let mut theirs: Vec<Rounds> = engines.iter().map(|_| Rounds::default()).collect();
    for round in 1..=config.rounds {
        eprintln!("round {round} of {}", config.rounds);
        let venue = Open::start(config, "access", "")?;
        let (seen, round_trip_us) = fix::of_venue(&venue, config.seconds)?;
        ours.push(&seen, round_trip_us);
        for ((_, signing), rates) in FACADE.into_iter().zip(&mut facade) {
            rates.push(facade::most_per_second(&venue, signing, config.seconds)?);
        }
        venue.running.stop()?;
        for (engine, rounds) in engines.iter().zip(&mut theirs) {
            rounds.push(&engine.measure(config.seconds, &config.scratch)?, engine.round_trip_us(&config.scratch)?);
        }
    }
    report.check("every order over FIX was answered by its report, and none was rejected");
    report.check("every order and cancel in Binance's dialect was answered with 200");
    let per_second = report.samples("fix_orders_per_s", ours.per_second);
    let cpu_us = report.samples("fix_cpu_us_per_order", ours.cpu_us);
    let round_trip_us = report.samples("fix_round_trip_us", ours.round_trip_us);
    // The best engine is the one that takes least processor time.
    let mut best: Option<(&str, f64, f64)> = None;
    let mut soonest: Option<(&str, f64)> = None;
    for (engine, rounds) in engines.iter().zip(theirs) {
        let per_second = report.samples(format!("{}_orders_per_s", engine.metric), rounds.per_second);
        let cpu_us = report.samples(format!("{}_cpu_us", engine.metric), rounds.cpu_us);
        let round_trip_us = report.samples(format!("{}_round_trip_us", engine.metric), rounds.round_trip_us);
        if soonest.is_none_or(|(_, least)| round_trip_us < least) {
            soonest = Some((engine.name, round_trip_us));
        }
        if best.is_none_or(|(_, _, least)| cpu_us < least) {
            best = Some((engine.name, per_second, cpu_us));
        }
    }
    let peer = |unit: Unit, value: fn(f64, f64) -> f64| {
        best.map(|(name, per_second, cpu_us)| PeerFigure::new(name, value(per_second, cpu_us), unit, engines::HOW))
    };
    report.figure(Figure::new("fix_orders_per_s", per_second, Unit::PerS).against_any(peer(Unit::PerS, |rate, _| rate)));
    report.figure(Figure::new("fix_cpu_us_per_order", cpu_us, Unit::Us).against_any(peer(Unit::Us, |_, us| us)).bar(8.0));
    let soonest = soonest.map(|(name, us)| PeerFigure::new(name, us, Unit::Us, engines::HOW));
    report.note("fix_round_trip_us: the venue reports an order after it is on its disk; the peers keep nothing");
    report.figure(Figure::new("fix_round_trip_us", round_trip_us, Unit::Us).against_any(soonest).bar(15.0));
    if let Some((_, _, theirs_us)) = best {
        report.note("fix_vs_best_engine compares processor time of an order: ours checks, logs, matches and reports it");
        report.figure(Figure::new("fix_vs_best_engine", theirs_us / cpu_us, Unit::TimesFaster).bar(1.0));
    }
    for ((metric, _), rates) in FACADE.into_iter().zip(facade) {
        let rate = report.samples(metric, rates);
        report.figure(Figure::new(metric, rate, Unit::PerS).bar(20_000.0));
    }
    Ok(())
}

/// A venue that speaks FIX and the dialect, with an open market.
struct Open {
    running: Running,
    market: crate::product::processes::Market,
    /// `host:port` of FIX and of the dialect.
    fix: String,
    facade: String,
}

impl Open {
    /// Starts one, with more of its configuration in `more`.
    fn start(config: &Config, name: &str, more: &str) -> anyhow::Result<Self> {
        let (fix, facade) = (free_address()?, free_address()?);
        let limits = ["requests_per_second", "burst", "source_requests_per_second", "source_burst"];
        let throttle: String = limits.iter().map(|limit| format!("{limit} = 1000000000\n")).collect();
        let text = format!("[fix]\nlisten = \"{fix}\"\n[binance]\nlisten = \"{facade}\"\n[throttle]\n{throttle}{more}");
        let running = Running::served(&config.walras, &config.scratch.join(name), &text)?;
        let market = running.open_market()?;
        Ok(Self { running, market, fix, facade })
    }
}

/// An address of this machine that nobody listens at.
fn free_address() -> anyhow::Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0").context("looking for a free port")?.local_addr()?.to_string())
}

/// A JSON file, or why there is none.
fn read_json(path: &Path) -> Result<serde_json::Value, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    serde_json::from_str(&text).map_err(|e| format!("{} is no JSON: {e}", path.display()))
}
