//! What a leaf gateway costs: an order through it and the replica above, in processor time of both processes, and how much later
//! its answer comes than to a participant who is at the replica. Then the same with market data, which a relay passes to the leaf
//! and the leaf holds. Orders themselves pass no relay.
//!
//! Two processes on loopback, without fair access: with it an order waits for d_s, counted from the leaf's stamp, and the leaf's hop is
//! inside that wait. The participants are another process's, this one, and their time does not count.

use std::num::NonZero;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use walras_client::cluster::{ClusterLoad, ClusterReport, Flow, LoadOptions, Offered, ReplicaAddress, Ways};
use walras_client::local_cluster::{FIRST_GATEWAY, FIRST_RELAY, LocalCluster, LocalOptions};
use walras_client::read_key;
use walras_fair_cluster::processor::of_process;
use walras_gateway::ClientKey;

use super::Config;
use crate::report::{Figure, Report, Unit};

const PATIENCE: Duration = Duration::from_secs(30);
/// Orders a second, from what is asked for downwards.
const RATES: [u64; 5] = [50_000, 40_000, 30_000, 20_000, 10_000];
/// Of an offered rate, in percent.
const KEEPS_UP: f64 = 97.0;
/// A rate at which nobody waits for a processor.
const LOW_PER_S: u64 = 500;
const SESSIONS: u32 = 16;
const SEED: u64 = 9;

/// One for the leaf that spins, and as many for the replica and the participants as they have without it; one for others.
const SPIN_CORES: usize = 4;

/// Asked of an order over all hops, with a relay for the market data that comes of it.
const CPU_US_BAR: f64 = 10.0;
const EXTRA_US_BAR: f64 = 60.0;

/// A replica and a leaf below it.
struct Pair {
    local: LocalCluster,
    replicas: Vec<ReplicaAddress>,
    key: ClientKey,
}

impl Pair {
    /// With a leaf that spins, the thread that passes orders on does not sleep.
    fn start(program: &Path, dir: &Path, durability: &'static str, (relays, spins): (u16, bool)) -> anyhow::Result<Self> {
        let _ = std::fs::remove_dir_all(dir);
        let limits = ["requests_per_second", "burst", "source_requests_per_second", "source_burst"];
        let mut settings = limits.map(|key| ("throttle", key, toml::Value::Integer(1_000_000_000))).to_vec();
        settings.push(("cluster", "durability", durability.into()));
        settings.push(("gateway", "spin_orders", spins.into()));
        let options = LocalOptions { replicas: 1, gateways: 1, relays, settings, ..LocalOptions::default() };
        let mut local = LocalCluster::prepare(program, dir, &options)?;
        local.start(1)?;
        local.wait_for_leader(PATIENCE)?;
        (FIRST_RELAY..).take(relays.into()).try_for_each(|relay| local.start(relay))?;
        local.start(FIRST_GATEWAY)?;
        let address = |replica: &walras_client::local_cluster::LocalReplica| ReplicaAddress {
            url: replica.url(),
            orders: replica.orders.clone(),
            trust: None,
        };
        let (replicas, key) = (local.replicas.iter().map(address).collect(), read_key(&local.operator_key())?);
        Ok(Self { local, replicas, key })
    }

    fn load(&self, through_leaf: bool) -> anyhow::Result<ClusterLoad> {
        let gateways = self.local.gateways.iter().map(|leaf| leaf.orders.clone()).collect();
        let ways = if through_leaf { Ways::Gateways { gateways, copies: 1 } } else { Ways::Leader };
        let options = LoadOptions { sessions: SESSIONS, markets: 1, flow: Flow::Generated(SEED), ways };
        ClusterLoad::prepare_with(&self.replicas, &self.key, &options).context("making participants")
    }

    /// Processor time of all processes since they began.
    fn taken_ns(&self) -> anyhow::Result<u64> {
        let processes = self.local.replicas.iter().chain(&self.local.gateways).chain(&self.local.relays);
        processes.map(|process| of_process(process.process_id().context("a process has ended")?)).sum()
    }

    fn stop(mut self, dir: &Path) -> anyhow::Result<()> {
        self.local.stop()?;
        std::fs::remove_dir_all(dir).with_context(|| format!("removing {}", dir.display()))
    }
}

fn measured(load: &mut ClusterLoad, per_s: u64, time: Duration) -> anyhow::Result<ClusterReport> {
    let report = load.run(Offered::PerSecond(per_s), Duration::ZERO, time).context("orders through a leaf")?;
    ensure!(report.reconnects == 0, "{} connections were lost while nothing failed", report.reconnects);
    ensure!(report.rejected * 5 < report.answered, "{} of {} commands were rejected", report.rejected, report.answered);
    Ok(report)
}

/// The highest rate that both keep up with, and the processor time of an order then, in us.
fn cost(program: &Path, dir: &Path, (time, rates): (Duration, usize), relays: u16) -> anyhow::Result<Option<(f64, f64)>> {
    let pair = Pair::start(program, dir, "disk", (relays, false))?;
    let mut load = pair.load(true)?;
    let mut found = None;
    for rate in RATES.iter().rev().take(rates).rev() {
        measured(&mut load, *rate, time)?;
        let before_ns = pair.taken_ns()?;
        let report = measured(&mut load, *rate, time)?;
        let taken_us = (pair.taken_ns()? - before_ns) as f64 / 1e3 / report.answered.max(1) as f64;
        let percent = 100.0 * report.acknowledged_per_second / *rate as f64;
        let with = if relays > 0 { ", market data by a relay" } else { "" };
        eprintln!("    {rate}/s through a leaf{with}: {percent:.1} % answered in time, {taken_us:.1} us of processors an order");
        if percent >= KEEPS_UP {
            found = Some((report.acknowledged_per_second, taken_us));
            break;
        }
    }
    drop(load);
    pair.stop(dir)?;
    Ok(found)
}

/// The medians through a leaf and at the replica, in us. In memory, for a disk's syncs differ by more than is looked for.
fn medians(program: &Path, dir: &Path, time: Duration, spins: bool) -> anyhow::Result<(f64, f64)> {
    let pair = Pair::start(program, dir, "memory", (0, spins))?;
    let mut p50_us = [0.0; 2];
    for (through_leaf, p50_us) in [false, true].into_iter().zip(&mut p50_us) {
        let mut load = pair.load(through_leaf)?;
        measured(&mut load, LOW_PER_S, time)?;
        *p50_us = measured(&mut load, LOW_PER_S, time)?.latency.p50_ns as f64 / 1e3;
    }
    pair.stop(dir)?;
    let [direct, through] = p50_us;
    let kind = if spins { "a leaf that spins" } else { "a leaf" };
    eprintln!("    p50 at {LOW_PER_S}/s: {through:.0} us through {kind}, {direct:.0} us at the replica");
    Ok((through, direct))
}

pub(super) fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let program = &config.walras;
    if !program.is_file() {
        report.note(format!(
            "leaf_* are missing: {} is not built; build it with `cargo build --release -p walras-node`",
            program.display()
        ));
        return Ok(());
    }
    std::fs::create_dir_all(&config.scratch).with_context(|| format!("making {}", config.scratch.display()))?;
    let dir = config.scratch.join("leaf");
    let (time, rates) = if config.is_full { (Duration::from_secs(2), RATES.len()) } else { (Duration::from_millis(300), 1) };
    let (mut costs, mut with_relay, mut waits, mut spin_waits) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    for round in 1..=config.rounds {
        eprintln!("  a leaf gateway, round {round}:");
        costs.extend(cost(program, &dir, (time, rates), 0)?);
        with_relay.extend(cost(program, &dir, (time, rates), 1)?);
        waits.push(medians(program, &dir, time, false)?);
        if cores >= SPIN_CORES {
            spin_waits.push(medians(program, &dir, time, true)?);
        }
    }
    let extras = |waits: &[(f64, f64)]| waits.iter().map(|(through, direct)| through - direct).collect::<Vec<_>>();
    let extra = report.samples("leaf_p50_extra_us", extras(&waits));
    report.figure(Figure::new("leaf_p50_extra_us", extra, Unit::Us).bar(EXTRA_US_BAR));
    if spin_waits.is_empty() {
        report.note(format!("leaf_spin_p50_extra_us is missing: it needs {SPIN_CORES} processors, of which the leaf takes one"));
    } else {
        let extra = report.samples("leaf_spin_p50_extra_us", extras(&spin_waits));
        report.figure(Figure::new("leaf_spin_p50_extra_us", extra, Unit::Us));
    }
    let direct = report.samples("leaf_p50_direct_us", waits.iter().map(|(_, direct)| *direct).collect());
    report.figure(Figure::new("leaf_p50_direct_us", direct, Unit::Us));
    if costs.is_empty() {
        report.note("leaf_cpu_us_per_order is missing: not even the lowest rate was kept up with; is the machine busy?");
        return Ok(());
    }
    let rate = report.samples("leaf_orders_per_s", costs.iter().map(|(rate, _)| *rate).collect());
    report.figure(Figure::new("leaf_orders_per_s", rate, Unit::PerS));
    let taken = report.samples("leaf_cpu_us_per_order", costs.into_iter().map(|(_, taken)| taken).collect());
    report.figure(Figure::new("leaf_cpu_us_per_order", taken, Unit::Us).bar(CPU_US_BAR));
    if with_relay.is_empty() {
        report.note("leaf_relay_cpu_us_per_order is missing: not even the lowest rate was kept up with; is the machine busy?");
    } else {
        let rate = report.samples("leaf_relay_orders_per_s", with_relay.iter().map(|(rate, _)| *rate).collect());
        report.figure(Figure::new("leaf_relay_orders_per_s", rate, Unit::PerS));
        let taken = report.samples("leaf_relay_cpu_us_per_order", with_relay.into_iter().map(|(_, taken)| taken).collect());
        report.figure(Figure::new("leaf_relay_cpu_us_per_order", taken, Unit::Us).bar(CPU_US_BAR));
    }
    report.check("leaf: each order answered once, in its session's order");
    report.note(format!(
        "leaf_cpu_us_per_order: a leaf gateway and the replica above it, both processes, logs on disk, without the participants' \
         process, at the highest of {RATES:?} orders a second that they keep up with; no relay is in it, since orders pass none; \
         leaf_relay_*: the same with the market data of these orders, which a relay passes to the leaf and the leaf to one \
         participant, with the relay's process counted too. What is asked is {CPU_US_BAR} us an order at {} orders a second over all \
         hops with one relay: leaf_relay_cpu_us_per_order has all of these, and with the relay the whole way of the market data; \
         leaf_cpu_us_per_order has only the hops that the order itself passes. leaf_p50_extra_us: at {LOW_PER_S} orders a second, in \
         memory; leaf_spin_p50_extra_us: the same with a leaf whose thread for orders spins on a core of its own",
        RATES[0]
    ));
    Ok(())
}
