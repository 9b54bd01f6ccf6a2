//! Fair access: clocks that agree, copies of one order, the sequencer's hold, release at an instant, delays that keep their
//! targets: `make bench NAME=fair-access`.
//!
//! The mesh and the delays run in simulation, since no machine here has a cloud's clocks and links; the rest is real, shards are
//! processes.

mod costs;
mod reading;
mod release;
mod shard;

use std::path::PathBuf;

use anyhow::ensure;
use walras_clock_sync::ClockService;
use walras_cloud_model::figure::worst_error_of_ours;
use walras_cloud_model::network::Source;
use walras_cloud_model::workload::Workload;
use walras_mesh_sim::{Simulation, World, quantile};

use crate::clock::Clock;
use crate::report::{Figure, Report, Unit};

/// How to run.
#[derive(Debug)]
pub struct Config {
    /// Rounds; figures of times are medians over them.
    pub rounds: usize,
    /// Whether to run all of it.
    pub is_full: bool,
    /// Where measured delays may lie.
    pub data: PathBuf,
    /// The program that shards run.
    pub walras: PathBuf,
    /// Where their logs lie.
    pub scratch: PathBuf,
}

/// Without these nothing is written.
const REQUIRED: &[&str] = &[
    "orders_per_s_per_shard",
    "ddp_worst_relative_error",
    "mesh_p90_ns_asym_500ns",
    "mesh_p99_ns_symmetric",
    "release_overshoot_p999_ns",
    "dedupe_ns_per_copy",
];

/// Runs all of it. Fails at the first wrong answer.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(config.rounds);
    report.require(REQUIRED);
    orders_per_s_per_shard(config, report)?;
    mesh(config, report)?;
    delays(config, report)?;
    copies_and_holds(config, report)?;
    readings(config, report)?;
    releases(config, report)
}

/// Orders through real processes.
fn orders_per_s_per_shard(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    if !config.walras.is_file() {
        report.note(format!(
            "orders_per_s_per_shard is missing: {} is not built; build it with `cargo build --release -p walras-node`",
            config.walras.display()
        ));
        return Ok(());
    }
    let seconds = if config.is_full { 5.0 } else { 0.3 };
    shard::shards(&config.walras, &config.scratch, config.rounds, seconds, report)
}

/// How far apart two clocks of a mesh are while they are in use: 50 nodes, 20 peers each, three seeds.
fn mesh(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let (nodes, seeds, warm) = if config.is_full { (50, 3, 20) } else { (24, 1, 4) };
    eprintln!("mesh of {nodes} nodes in simulation");
    let errors_ns = |world: World| {
        let mut errors = Vec::new();
        for seed in 1..=seeds {
            let mut simulation = Simulation::rotating(World { seed, ..world });
            simulation.steps(warm + 4);
            let are_all_good = simulation.outcomes.iter().all(|outcome| outcome.newly_excluded.is_empty());
            ensure!(are_all_good, "the mesh excluded a node whose clock is good");
            let (within, all) = simulation.covered(4 * warm, |node| node != 0);
            ensure!(within * 1_000 >= all * 990, "{within} of {all} readings were within their bounds");
            errors.extend(simulation.pair_errors_ns(4 * warm, |_| true));
        }
        errors.sort_by(f64::total_cmp);
        Ok(errors)
    };
    let asymmetric = errors_ns(World::new(nodes, 0))?;
    let symmetric = errors_ns(World { asymmetry_ns: 0.0, ..World::new(nodes, 0) })?;
    report.check(format!(
        "mesh: at least 99 of 100 readings of {nodes} nodes lie within their bounds, and no good clock is excluded"
    ));
    for (metric, errors, permille, bar) in [
        ("mesh_p90_ns_asym_500ns", &asymmetric, 900, 200.0),
        ("mesh_p99_ns_asym_500ns", &asymmetric, 990, 300.0),
        ("mesh_p99_ns_symmetric", &symmetric, 990, 10.0),
    ] {
        report.figure(Figure::new(metric, quantile(errors, permille), Unit::Ns).bar(bar));
    }
    Ok(())
}

/// By how much our delays miss the unfairness that they are to keep, at their worst.
fn delays(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    eprintln!("delays in simulation");
    let workload = if config.is_full { Workload::FULL } else { Workload::SMALL };
    let (worst, source) = worst_error_of_ours(&workload, &config.data)?;
    if source == Source::Synthetic {
        report.note(format!(
            "no measured delays of a cloud in {}: the synthetic ones are used (set WALRAS_DATA)",
            config.data.display()
        ));
    }
    report.figure(Figure::new("ddp_worst_relative_error", worst, Unit::Share).bar(0.15));
    Ok(())
}

fn copies_and_holds(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    eprintln!("copies and holds");
    let batches = if config.is_full { 4_000 } else { 40 };
    let mut measure = |metric: &str, bar: Option<f64>, once: &dyn Fn() -> anyhow::Result<f64>| -> anyhow::Result<()> {
        let samples = (0..config.rounds).map(|_| once()).collect::<anyhow::Result<_>>()?;
        let value = report.samples(metric, samples);
        let figure = Figure::new(metric, value, Unit::Ns);
        report.figure(if let Some(bar) = bar { figure.bar(bar) } else { figure });
        Ok(())
    };
    measure("dedupe_ns_per_copy", Some(100.0), &|| costs::duplicates(1_024, 3, batches))?;
    measure("dedupe_16k_sessions_ns_per_copy", None, &|| costs::duplicates(16_384, 3, batches))?;
    measure("hold_220k_per_s_ns_per_order", None, &|| costs::resequence(220_000, 250_000, batches))?;
    measure("hold_2m_per_s_ns_per_order", None, &|| costs::resequence(2_000_000, 250_000, batches))?;
    measure("delay_ns_per_sample", None, &|| Ok(costs::delay(batches)))?;
    report.check("copies: of each order one passes; holds: what was pushed leaves once, in the order of stamps");
    Ok(())
}

/// What a thread that stamps pays for the time.
fn readings(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    eprintln!("readings of the clock");
    let batches = if config.is_full { 4_000 } else { 40 };
    let mut tell = |metric: &str, service: &ClockService| {
        let rounds = (0..config.rounds).map(|_| reading::readings(service, batches)).collect::<anyhow::Result<Vec<_>>>()?;
        let lost: usize = rounds.iter().map(|round| round.lost).sum();
        if lost > 0 {
            report.note(format!("{metric}: the clock was lost {lost} times while it was read; those batches are left out"));
        }
        let value = report.samples(metric, rounds.iter().map(|round| round.ns).collect());
        report.figure(Figure::new(metric, value, Unit::Ns).bar(100.0));
        anyhow::Ok(())
    };
    tell("clock_reading_ns", &reading::system()?)?;
    let [_coordinator, mesh] = reading::mesh()?;
    tell("clock_reading_mesh_ns", &mesh)?;
    Ok(())
}

fn releases(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    eprintln!("release by spinning");
    let clock = Clock::calibrated();
    let publications = if config.is_full { 200_000 } else { 2_000 };
    let rounds = (0..config.rounds).map(|_| release::round(&clock, publications)).collect::<anyhow::Result<Vec<_>>>()?;
    let all: u64 = rounds.iter().map(|round| round.publications).sum();
    let interrupted: u64 = rounds.iter().map(|round| round.interrupted).sum();
    report.note(format!(
        "release: {interrupted} of {all} publications were due while the system had taken the processor from the spinning thread \
         (two looks at the clock more \
         than {} ns apart); they are left out of release_overshoot_* and are in release_overshoot_all_p999_ns. The machine reads \
         its clock in {:.0} ns",
        release::INTERRUPTED_NS,
        clock.overhead_ns()
    ));
    let mut figure = |metric: &str, value: fn(&release::Round) -> f64, bar: Option<f64>| {
        let median = report.samples(metric, rounds.iter().map(value).collect());
        let figure = Figure::new(metric, median, Unit::Ns);
        report.figure(if let Some(bar) = bar { figure.bar(bar) } else { figure });
    };
    figure("release_overshoot_p50_ns", |round| round.overshoot.p50, None);
    figure("release_overshoot_p99_ns", |round| round.overshoot.p99, None);
    figure("release_overshoot_p999_ns", |round| round.overshoot.p999, Some(100.0));
    figure("release_bare_p999_ns", |round| round.bare.p999, None);
    figure("release_overshoot_all_p999_ns", |round| round.overshoot_of_all.p999, None);
    report.check("release: no publication left before its time, each once, in order");
    Ok(())
}
