//! A cluster of three replicas under one load, to look at with a profiler or to hold two programs against each other:
//! `cluster PROGRAM disk|memory SECONDS SESSIONS LOAD`, where LOAD is `320000/s`, or `1000` orders that are unanswered at any time.

use std::path::Path;

use anyhow::Context;
use walras_bench::replication::ours::{Given, one_load};
use walras_client::cluster::Offered;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, durability, seconds, sessions, load] = arguments.as_slice() else {
        anyhow::bail!("say PROGRAM DURABILITY SECONDS SESSIONS LOAD")
    };
    let durability = match durability.as_str() {
        "disk" => "disk",
        "memory" => "memory",
        other => anyhow::bail!("DURABILITY is disk or memory, not {other}"),
    };
    let given = Given {
        program: Path::new(program),
        scratch: Path::new("target/bench-data"),
        seconds: seconds.parse().context("SECONDS is a number")?,
        deaths: 0,
    };
    let sessions = sessions.parse().context("SESSIONS is a number")?;
    let offered = match load.strip_suffix("/s") {
        Some(rate) => Offered::PerSecond(rate.parse().context("LOAD is a rate, as 320000/s")?),
        None => Offered::Outstanding(load.parse().context("LOAD is a number of orders, or a rate as 320000/s")?),
    };
    let report = one_load(&given, durability, sessions, offered)?;
    println!(
        "{:.0} orders/s, mean {:.0} us, p50 {:.0}, p99 {:.0}",
        report.acknowledged_per_second,
        report.mean_ns / 1e3,
        report.latency.p50_ns as f64 / 1e3,
        report.latency.p99_ns as f64 / 1e3,
    );
    Ok(())
}
