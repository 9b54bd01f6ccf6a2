//! Fair access as participants of leaf gateways see it: pairs of orders go through two gateways a known time apart, and the venue
//! sequences some of them the wrong way round. Three replicas and the gateways are processes on loopback. The prober uses neither
//! their clocks nor their counters.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use walras_client::cluster::{FairOptions, FairPhase, Pairs, ReplicaAddress, measure_fairness_through};
use walras_client::local_cluster::{FIRST_GATEWAY, LocalCluster, LocalOptions, LocalReplica};
use walras_client::read_key;

use super::Config;
use crate::report::{Figure, Report, Unit};

const PATIENCE: Duration = Duration::from_secs(60);
const GATEWAYS: u16 = 2;
/// Other orders a second in the second phase, through the same gateways.
const OFFERED: u64 = 4_000;
/// How much later the second order of a pair is sent, for the pairs that count.
const APART_NS: u64 = 1_000_000;
/// The most pairs that may be inverted, in percent.
const GOAL_PERCENT: f64 = 1.0;

/// Inverted pairs 1 ms apart in percent, at rest and under load.
fn inverted(program: &Path, dir: &Path, time: Duration) -> anyhow::Result<[f64; 2]> {
    let _ = std::fs::remove_dir_all(dir);
    let number = toml::Value::Integer;
    let limits = ["requests_per_second", "burst", "source_requests_per_second", "source_burst"];
    let mut settings: Vec<_> = limits.map(|key| ("throttle", key, number(1_000_000_000))).into();
    settings.push(("cluster", "durability", "disk".into()));
    // One machine has one clock.
    settings.push(("fair_access", "bound_us", number(10)));
    settings.push(("fair_access", "sequencing", "1%".into()));
    let options = LocalOptions { replicas: 3, gateways: GATEWAYS, settings, ..LocalOptions::default() };
    let mut local = LocalCluster::prepare(program, dir, &options)?;
    (1..=3).try_for_each(|id| local.start(id))?;
    local.wait_for_leader(PATIENCE)?;
    (FIRST_GATEWAY..).take(GATEWAYS.into()).try_for_each(|id| local.start(id))?;
    let key = read_key(&local.operator_key())?;
    let address = |replica: &LocalReplica| ReplicaAddress { url: replica.url(), orders: replica.orders.clone(), trust: None };
    let replicas: Vec<ReplicaAddress> = local.replicas.iter().map(address).collect();
    let gateways: Vec<String> = local.gateways.iter().map(|gateway| gateway.orders.clone()).collect();
    let report = measure_fairness_through(&replicas, &gateways, &key, FairOptions { offered: Some(OFFERED), time })?;
    eprint!("{report}");
    local.stop()?;
    std::fs::remove_dir_all(dir).with_context(|| format!("removing {}", dir.display()))?;
    let percent = |phase: &FairPhase| {
        let pairs = phase.pairs.iter().find(|pairs| pairs.difference_ns == APART_NS && pairs.pairs > 0);
        pairs.map(Pairs::inverted_percent).with_context(|| format!("no pair could be sent as planned: {report}"))
    };
    let [rest, load] = &report.phases[..] else { anyhow::bail!("{} phases were measured, not two", report.phases.len()) };
    Ok([percent(rest)?, percent(load)?])
}

pub(super) fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let program = &config.walras;
    if !program.is_file() {
        report.note(format!("leaf_inversions_* are missing: {} is not built", program.display()));
        return Ok(());
    }
    std::fs::create_dir_all(&config.scratch).with_context(|| format!("making {}", config.scratch.display()))?;
    let dir = config.scratch.join("prober");
    let (time, rounds) = if config.is_full { (Duration::from_secs(20), config.rounds.min(3)) } else { (Duration::from_secs(1), 1) };
    let (mut at_rest, mut under_load) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        eprintln!("  the prober through two leaf gateways, round {round}:");
        let [rest, load] = inverted(program, &dir, time)?;
        at_rest.push(rest);
        under_load.push(load);
    }
    ensure!(!at_rest.is_empty(), "no round was measured");
    let rest = report.samples("leaf_inversions_1ms_percent", at_rest);
    report.figure(Figure::new("leaf_inversions_1ms_percent", rest, Unit::PercentWrong).bar(GOAL_PERCENT));
    let load = report.samples("leaf_inversions_1ms_load_percent", under_load);
    report.figure(Figure::new("leaf_inversions_1ms_load_percent", load, Unit::PercentWrong).bar(GOAL_PERCENT));
    report.note(format!(
        "leaf_inversions_*: of the pairs of orders sent 1 ms apart through two leaf gateways of a cluster of three, those whose \
         second order was sequenced first, by the answers; d_s steered to 1 %; at rest, and with {OFFERED} other orders a second \
         through the same gateways"
    ));
    Ok(())
}
