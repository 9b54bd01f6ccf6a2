//! The product under load: `make bench NAME=venue`.
//!
//! Everything here is of real processes of the program `walras`, started, configured and loaded through its own command line, so
//! that an older program can stand in the same run (`--before FILE`). What other benches call a venue is a rig: parts of the
//! program on a thread.
//!
//! - `solo_*`: a cluster of one replica, durable unless the name says memory, by binary order entry.
//! - `cluster3_*`: three replicas on this machine.
//! - `ws_*`, `rest_*`: the cluster of one by its WebSocket and by REST: orders that rest, and their cancels.
//! - `single_*`, only with `--before FILE`: that older program's host without a replicated log, to which `solo_vs_before` compares
//!   the cluster of one, by WebSocket: it has no binary order entry.
//!
//! *Deliberately absent*: peers. [`replication`](mod@crate::replication) compares a cluster with others.
//!
//! *Start reading* at [`run`].

pub(crate) mod order_pairs;
pub(crate) mod processes;
mod rest;

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::replication::disk;
use crate::report::{Figure, Report, Unit};
use processes::{Durability, Running};

/// What is run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Times each load is measured; figures are medians.
    pub rounds: usize,
    /// Seconds of each load.
    pub seconds: u32,
    /// The program.
    pub walras: PathBuf,
    /// An older one, for `solo_vs_before`.
    pub before: Option<PathBuf>,
    /// Where data lies while it is measured: on the disk to be measured.
    pub scratch: PathBuf,
}

/// Commands unanswered where as many as possible are to be answered.
const OUTSTANDING: &str = "8192";
/// Sessions that share them.
const SESSIONS_AT_MOST: &str = "16";
/// Sessions of a fixed rate: two gateways of many participants.
const SESSIONS: &str = "2";
/// Rates of the WebSocket are doubled from here until less than nine tenths are acknowledged.
const SOCKET_RATE_FIRST: u32 = 8_000;
const SOCKET_RATE_MAX: u32 = 256_000;
const SOCKET_CONNECTIONS: &str = "8";

/// Goals of the venue on two cores with its load generator.
const SOLO_ORDERS_PER_S_BAR: f64 = 1_000_000.0;
const CPU_US_AT_100K_BAR: f64 = 5.0;
const CPU_US_AT_5K_BAR: f64 = 20.0;
const CLUSTER3_CPU_US_AT_5K_BAR: f64 = 60.0;
/// Of the mean acknowledgement at 10,000 orders a second, in syncs of the disk.
const SYNCS_AT_10K_BAR: f64 = 2.0;

/// Measures, and reports.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(config.rounds);
    report.require(&["solo_orders_per_s", "solo_mean_ack_us_at_10k", "solo_cpu_us_per_order_at_100k", "cluster3_orders_per_s"]);
    std::fs::create_dir_all(&config.scratch)
        .with_context(|| format!("making {}; name a folder that you may write to with --streams", config.scratch.display()))?;
    let mut samples: Vec<(String, Unit, Vec<f64>)> = Vec::new();
    let mut keep = |name: String, unit: Unit, value: f64| match samples.iter_mut().find(|(known, ..)| *known == name) {
        Some((_, _, values)) => values.push(value),
        None => samples.push((name, unit, vec![value])),
    };
    for round in 1..=config.rounds {
        eprintln!("round {round} of {}", config.rounds);
        let sync_us = disk::sync_us(&config.scratch)?.p50;
        keep("disk_sync_us".to_owned(), Unit::Us, sync_us);
        for (name, replicas, durability) in
            [("solo", 1, Durability::Disk), ("solo_memory", 1, Durability::Memory), ("cluster3", 3, Durability::Disk)]
        {
            let venue = Running::cluster(&config.walras, &config.scratch.join(name), replicas, durability)?;
            by_order_entry(&venue, name, config.seconds, &mut keep)?;
            venue.stop()?;
        }
        let venue = Running::cluster(&config.walras, &config.scratch.join("api"), 1, Durability::Disk)?;
        let now = by_api(&venue, "", config.seconds, &mut keep)?;
        venue.stop()?;
        if let Some(before) = &config.before {
            let venue = Running::single(before, &config.scratch.join("single"))?;
            let then = by_api(&venue, "single_", config.seconds, &mut keep)?;
            venue.stop()?;
            keep("solo_vs_before".to_owned(), Unit::TimesFaster, now / then);
        }
    }
    for (name, unit, values) in samples {
        let figure = Figure::new(name.clone(), report.samples(name.clone(), values), unit);
        report.figure(match bar(&name, report) {
            Some(bar) => figure.bar(bar),
            None => figure,
        });
    }
    report.check("every command was answered once, in its session's order, and no connection was lost");
    Ok(())
}

/// What a figure has to reach.
fn bar(name: &str, report: &Report) -> Option<f64> {
    let sync_us = report.figures().iter().find(|figure| figure.metric == "disk_sync_us").map(|figure| figure.value);
    match name {
        "solo_orders_per_s" => Some(SOLO_ORDERS_PER_S_BAR),
        "solo_vs_before" => Some(1.0),
        "solo_mean_ack_us_at_10k" => sync_us.map(|sync_us| SYNCS_AT_10K_BAR * sync_us),
        "solo_cpu_us_per_order_at_100k" => Some(CPU_US_AT_100K_BAR),
        "solo_cpu_us_per_order_at_5k" => Some(CPU_US_AT_5K_BAR),
        "cluster3_cpu_us_per_order_at_5k" => Some(CLUSTER3_CPU_US_AT_5K_BAR),
        _ => None,
    }
}

/// The most, and acknowledgements and processor time at rates below it.
fn by_order_entry(venue: &Running, name: &str, seconds: u32, keep: &mut impl FnMut(String, Unit, f64)) -> anyhow::Result<()> {
    let most = load(venue, &["--outstanding", OUTSTANDING, "--sessions", SESSIONS_AT_MOST], seconds)?;
    keep(format!("{name}_orders_per_s"), Unit::PerS, most.per_second);
    let half = (most.per_second / 2.0) as u64;
    for (at, rate) in [("5k", 5_000), ("10k", 10_000), ("100k", 100_000), ("half", half)] {
        let seen = load(venue, &["--offered", &rate.to_string(), "--sessions", SESSIONS], seconds)?;
        for (what, us) in [("mean", seen.mean_us), ("p50", seen.p50_us), ("p99", seen.p99_us), ("p999", seen.p999_us)] {
            keep(format!("{name}_{what}_ack_us_at_{at}"), Unit::Us, us);
        }
        keep(format!("{name}_cpu_us_per_order_at_{at}"), Unit::Us, seen.cpu_us);
    }
    Ok(())
}

/// What a load saw.
struct Seen {
    per_second: f64,
    mean_us: f64,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    /// Of all processes of the venue, an acknowledged command.
    cpu_us: f64,
}

fn load(venue: &Running, load: &[&str], seconds: u32) -> anyhow::Result<Seen> {
    let seconds = seconds.to_string();
    let begun = venue.cpu_us()?;
    let seen = venue.walras(&[&["bench", "--cluster", "--seconds", &seconds], load].concat())?;
    let spent = venue.cpu_us()? - begun;
    let reconnects = seen["reconnects"].as_u64().context("a report of another form")?;
    ensure!(reconnects == 0, "{reconnects} connections were lost while nothing failed");
    let (rejected, acknowledged) = (number(&seen["rejected"])?, number(&seen["acknowledged"])?);
    ensure!(rejected * 5.0 < acknowledged, "{rejected} of {acknowledged} commands were rejected");
    let latency = |name: &str| Ok::<_, anyhow::Error>(number(&seen["latency"][name])? / 1e3);
    Ok(Seen {
        per_second: number(&seen["acknowledged_per_second"])?,
        mean_us: number(&seen["mean_ns"])? / 1e3,
        p50_us: latency("p50_ns")?,
        p99_us: latency("p99_ns")?,
        p999_us: latency("p999_ns")?,
        // The second of warming up counts in both.
        cpu_us: spent / number(&seen["answered"])?,
    })
}

/// By WebSocket and by REST; the most by WebSocket.
fn by_api(venue: &Running, prefix: &str, seconds: u32, keep: &mut impl FnMut(String, Unit, f64)) -> anyhow::Result<f64> {
    let market = venue.open_market()?;
    let mut most = 0.0_f64;
    let mut rate = SOCKET_RATE_FIRST;
    while rate <= SOCKET_RATE_MAX {
        let (wanted, time) = (rate.to_string(), seconds.to_string());
        let seen = venue.walras_as(
            &market.key_file,
            &[
                "bench",
                "--instrument",
                &market.instrument,
                "--connections",
                SOCKET_CONNECTIONS,
                "--rate",
                &wanted,
                "--seconds",
                &time,
            ],
        )?;
        let acknowledged = number(&seen["acknowledged_per_second"])?;
        if rate == SOCKET_RATE_FIRST {
            keep(format!("{prefix}ws_p50_ack_us_at_8k"), Unit::Us, number(&seen["latency"]["p50_ns"])? / 1e3);
            keep(format!("{prefix}ws_p99_ack_us_at_8k"), Unit::Us, number(&seen["latency"]["p99_ns"])? / 1e3);
        }
        most = most.max(acknowledged);
        if acknowledged < 0.9 * f64::from(rate) {
            break;
        }
        rate *= 2;
    }
    keep(format!("{prefix}ws_orders_per_s"), Unit::PerS, most);
    keep(format!("{prefix}rest_orders_per_s"), Unit::PerS, rest::most_per_second(venue, &market, seconds)?);
    Ok(most)
}

fn number(value: &Value) -> anyhow::Result<f64> {
    value.as_f64().with_context(|| format!("{value} stands where a number was expected"))
}

/// The program's answer as JSON.
fn json_of(program: &Path, arguments: &[&str]) -> anyhow::Result<Value> {
    let output = std::process::Command::new(program).arg("--json").args(arguments).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "walras {} failed: {said}", arguments.join(" "));
    serde_json::from_slice(&output.stdout).with_context(|| format!("walras {} printed no JSON", arguments.join(" ")))
}
