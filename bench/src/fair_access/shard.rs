//! A shard of real processes: participants in this one, a gateway, and one or three replicas that hold, log on disk and match.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use walras_client::cluster::Offered;
use walras_fair_cluster::{Delay, FairCluster, Measured, Participants, Shape};

use crate::report::{Figure, PeerFigure, Report, Unit};

/// Commands unanswered of all participants, where as many as possible are to be answered.
const OUTSTANDING: usize = 8_192;
/// The published shard's throughput, at which latencies are taken.
const PUBLISHED_PER_S: u64 = 22_000;
const BAR_PER_S: f64 = 220_000.0;

/// One round of a shard with so many voting replicas.
struct Round {
    most: Measured,
    at_published: Measured,
}

fn round(program: &Path, scratch: &Path, voters: u16, time: Duration) -> anyhow::Result<Round> {
    let shape = Shape { voters, gateways: 1, durability: "disk", delay: Delay::Tracking, release_us: None };
    let cluster = FairCluster::start(program, &scratch.join(format!("fair-{voters}")), shape)?;
    let mut load = cluster.participants(&Participants::PUBLISHED)?;
    let at_published = cluster.measure(&mut load, Offered::PerSecond(PUBLISHED_PER_S), time)?;
    let most = cluster.measure(&mut load, Offered::Outstanding(OUTSTANDING), time)?;
    drop(load);
    cluster.check_equal()?;
    cluster.stop()?;
    Ok(Round { most, at_published })
}

/// Measures shards, of one replica and of three.
pub(super) fn shards(program: &Path, scratch: &Path, rounds: usize, seconds: f64, report: &mut Report) -> anyhow::Result<()> {
    let time = Duration::from_secs_f64(seconds);
    for (voters, suffix) in [(1, ""), (3, "_3_replicas")] {
        eprintln!("a shard of {voters} replicas and a gateway");
        let rounds = (0..rounds)
            .map(|_| round(program, scratch, voters, time))
            .collect::<anyhow::Result<Vec<Round>>>()
            .with_context(|| format!("measuring a shard of {voters} replicas"))?;
        let mut figure = |metric: String, unit: Unit, value: &dyn Fn(&Round) -> f64| {
            let median = report.samples(metric.clone(), rounds.iter().map(value).collect());
            let figure = Figure::new(metric.clone(), median, unit);
            report.figure(if metric.starts_with("orders_per_s") { figure.against(published()).bar(BAR_PER_S) } else { figure });
        };
        let us = |ns: u64| ns as f64 / 1e3;
        figure(format!("orders_per_s_per_shard{suffix}"), Unit::PerS, &|round| round.most.report.acknowledged_per_second);
        figure(format!("shard_mean_ack_us_at_22k{suffix}"), Unit::Us, &|round| round.at_published.report.mean_ns / 1e3);
        figure(format!("shard_p99_ack_us_at_22k{suffix}"), Unit::Us, &|round| us(round.at_published.report.latency.p99_ns));
        figure(format!("shard_d_s_us_at_22k{suffix}"), Unit::Us, &|round| us(round.at_published.sequenced.delay_ns));
        figure(format!("shard_held_p50_us_at_22k{suffix}"), Unit::Us, &|round| us(round.at_published.sequenced.queueing_p50_ns));
        figure(format!("shard_mean_ack_us_at_most{suffix}"), Unit::Us, &|round| round.most.report.mean_ns / 1e3);
    }
    report.note(
        "orders_per_s_per_shard: participants, gateway and replicas share this machine's processors; the figures end in _3_replicas where three \
         replicas vote. The published shard had machines of its own for participants, 16 gateways and its engine, and wrote no log",
    );
    report.check(
        "shards: each command is answered once, in its session's order, by an entry of the log of its own; the leader took as many as were answered; \
         at the end all replicas stand at the same entry",
    );
    Ok(())
}

fn published() -> PeerFigure {
    PeerFigure::new("CloudEx", PUBLISHED_PER_S as f64, Unit::PerS, "published: table 1, one shard, on a cloud's machines")
}
