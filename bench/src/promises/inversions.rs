//! Fair access as participants feel it: pairs of orders through two of three replicas, sent a known time apart, of which the venue
//! sequences some the wrong way round; at rest, and beside 8,000 other orders a second.

use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use walras_client::cluster::{FairOptions, FairPhase};
use walras_fair_cluster::{Delay, FairCluster, Shape};

/// Orders a second in the background.
const OFFERED: u64 = 8_000;

/// What one round found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) at_1ms_rest_percent: f64,
    pub(super) at_1ms_load_percent: f64,
    pub(super) at_3ms_load_percent: f64,
    /// Inverted pairs that the venue reported, of all; 1 if none was inverted.
    pub(super) reported_over_measured: f64,
}

/// Measures for so long at rest, and as long under load.
pub(super) fn inversions(program: &Path, dir: &Path, time: Duration) -> anyhow::Result<Found> {
    let shape = Shape { voters: 3, gateways: 0, durability: "disk", delay: Delay::Tracking, release_us: None };
    let cluster = FairCluster::start(program, dir, shape)?;
    let report = cluster.fairness(FairOptions { offered: Some(OFFERED), time })?;
    eprint!("{report}");
    cluster.check_equal()?;
    cluster.stop()?;
    let [rest, load] = &report.phases[..] else { anyhow::bail!("{} phases were measured, not two", report.phases.len()) };
    let percent = |phase: &FairPhase, difference_ns: u64| {
        let pairs = phase.pairs.iter().find(|pairs| pairs.difference_ns == difference_ns);
        pairs.filter(|pairs| pairs.pairs > 0).map(|pairs| pairs.inverted_percent())
    };
    let all = [percent(rest, 1_000_000), percent(load, 1_000_000), percent(load, 3_000_000)];
    ensure!(all.iter().all(Option::is_some), "no pair of some difference could be sent as planned: {report}");
    let [at_1ms_rest_percent, at_1ms_load_percent, at_3ms_load_percent] = all.map(Option::unwrap_or_default);
    let sum = |figure: fn(&walras_client::cluster::Pairs) -> u64| {
        report.phases.iter().flat_map(|phase| &phase.pairs).map(figure).sum::<u64>()
    };
    let (inverted, reported) = (sum(|pairs| pairs.inverted), sum(|pairs| pairs.inverted_reported));
    let reported_over_measured = if inverted == 0 { 1.0 } else { reported as f64 / inverted as f64 };
    Ok(Found { at_1ms_rest_percent, at_1ms_load_percent, at_3ms_load_percent, reported_over_measured })
}
