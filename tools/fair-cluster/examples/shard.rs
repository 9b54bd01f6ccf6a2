//! One shard under load, to look at with a profiler or to hold two programs against each other:
//! `shard PROGRAM VOTERS SECONDS LOAD`, where LOAD is `22000/s`, or `8192` orders that are unanswered at any time.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use walras_client::cluster::Offered;
use walras_fair_cluster::{Delay, FairCluster, Participants, Shape};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, voters, seconds, load] = arguments.as_slice() else { anyhow::bail!("say PROGRAM VOTERS SECONDS LOAD") };
    let voters = voters.parse().context("VOTERS is a number")?;
    let time = Duration::from_secs(seconds.parse().context("SECONDS is a number")?);
    let offered = match load.strip_suffix("/s") {
        Some(rate) => Offered::PerSecond(rate.parse().context("LOAD is a rate, as 22000/s")?),
        None => Offered::Outstanding(load.parse().context("LOAD is a number of orders, or a rate as 22000/s")?),
    };
    let shape = Shape { voters, gateways: 1, durability: "disk", delay: Delay::Tracking, release_us: None };
    let cluster = FairCluster::start(Path::new(program), Path::new("target/bench-data/shard"), shape)?;
    let mut load = cluster.participants(&Participants::PUBLISHED)?;
    let measured = cluster.measure(&mut load, offered, time)?;
    drop(load);
    let (report, sequenced) = (&measured.report, &measured.sequenced);
    println!(
        "{:.0} orders/s, mean {:.0} us, p50 {:.0}, p99 {:.0}; d_s {} us; processor {:?}",
        report.acknowledged_per_second,
        report.mean_ns / 1e3,
        report.latency.p50_ns as f64 / 1e3,
        report.latency.p99_ns as f64 / 1e3,
        sequenced.delay_ns / 1_000,
        measured.processor,
    );
    cluster.check_equal()?;
    cluster.stop()
}
