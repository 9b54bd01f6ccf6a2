//! CloudEx's shard (table 1) on this project: 48 participants, four gateway processes, one leader, market data held and released by all
//! of them, everything on this machine's processors. How many orders a second it takes while orders are sequenced by their stamps and
//! market data comes in time, and what an order costs each role.
//!
//! The gateways are replicas that do not vote: they stamp orders, apply the log, and hold what it publishes until its release time. A leaf
//! gateway (`docs/gateways.md`) does not report to the leader when market data came, so the leader could not say what was late at it;
//! what an order costs a leaf is in the bench `overlay`.
//!
//! Rates are tried from the lowest; the first one that does not hold ends a round.

use std::path::Path;
use std::time::Duration;

use walras_fair_cluster::rates::{Limits, highest_held};
use walras_fair_cluster::{Delay, FairCluster, Measured, Participants, Shape};

use crate::report::{Figure, PeerFigure, Report, Unit};

/// Orders a second that are offered, from CloudEx's shard on.
const RATES: [u64; 8] = [11_000, 22_000, 33_000, 44_000, 55_000, 66_000, 77_000, 88_000];
/// CloudEx's shard, and twice that.
const PUBLISHED_PER_S: f64 = 22_000.0;
const BAR_PER_S: f64 = 44_000.0;
const GATEWAYS: u16 = 4;
/// How long market data is held. Processes that share two processors are behind by milliseconds now and then.
const RELEASE_US: u32 = 30_000;

/// Tries rates, each for so long after as long to warm up; what was measured at the highest one that held, `None` where none did.
pub(super) fn round(program: &Path, dir: &Path, time: Duration, rates: usize) -> anyhow::Result<Option<Measured>> {
    let release_us = Some(RELEASE_US);
    let shape = Shape { voters: 1, gateways: GATEWAYS, durability: "disk", delay: Delay::Tracking, release_us };
    let clusters = [FairCluster::start(program, dir, shape)?];
    let mut loads = [clusters[0].participants(&Participants::PUBLISHED)?];
    let held = highest_held(&clusters, &mut loads, &RATES[..rates.min(RATES.len())], &Limits::USUAL, time)?;
    drop(loads);
    for cluster in clusters {
        cluster.check_equal()?;
        cluster.stop()?;
    }
    Ok(held.into_iter().next())
}

/// Puts all rounds into the report.
pub(super) fn report(rounds: &[Measured], report: &mut Report) {
    let how = "published: table 1, one shard, machines of a cloud";
    let published = PeerFigure::new("CloudEx", PUBLISHED_PER_S, Unit::PerS, how);
    let per_order = |of: &Measured, ns: u64| ns as f64 / 1e3 / of.answered.max(1) as f64;
    let Limits { answered_min, orders_late_max, market_data_late_max } = Limits::USUAL;
    let mut figure = |metric: &str, unit: Unit, value: &dyn Fn(&Measured) -> f64| {
        let median = report.samples(metric, rounds.iter().map(value).collect());
        Figure::new(metric, median, unit)
    };
    let figures = [
        figure("c1_orders_per_s_4_gateways", Unit::PerS, &|of| of.report.acknowledged_per_second).against(published).bar(BAR_PER_S),
        figure("c1_late_percent", Unit::PercentWrong, &Measured::market_data_late_percent).bar(market_data_late_max),
        figure("c1_orders_late_percent", Unit::PercentWrong, &Measured::orders_late_percent),
        figure("c1_leader_cpu_us_per_order", Unit::Us, &|of| per_order(of, of.processor.leader_ns)),
        figure("c1_gateway_cpu_us_per_order", Unit::Us, &|of| per_order(of, of.processor.gateways_ns) / f64::from(GATEWAYS)),
        figure("c1_participants_cpu_us_per_order", Unit::Us, &|of| per_order(of, of.processor.participants_ns)),
        figure("c1_processors", Unit::Ratio, &Measured::processors),
        figure("c1_p50_ack_us", Unit::Us, &|of| of.report.latency.p50_ns as f64 / 1e3),
        figure("c1_d_s_us", Unit::Us, &|of| of.sequenced.delay_ns as f64 / 1e3),
        figure("c1_d_h_us", Unit::Us, &|of| of.released.unwrap_or_default().delay_ns as f64 / 1e3),
    ];
    figures.into_iter().for_each(|figure| report.figure(figure));
    report.note(format!(
        "c1: one shard, {GATEWAYS} gateways (replicas that do not vote), 48 participants and 100 markets on this machine's processors; the \
         highest rate of {RATES:?} at which {answered_min} % were answered in time, at most {orders_late_max} % of orders missed d_s and at \
         most {market_data_late_max} % of publications came to some gateway after their release time; processor times are of the leader, of \
         one gateway, and of all participants, for an order of the shard"
    ));
    report.check("c1: each order answered once, in its session's order; leader and gateways stand at the same entry");
}
