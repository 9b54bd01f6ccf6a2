//! A replicated log on one machine, compared with etcd and Aeron Cluster: `make bench NAME=replication`.
//!
//! Every round runs each peer under each of its loads once, then our own cluster ([`ours::ours`]), all with 64-byte commands, all
//! with their logs in one folder, one at a time. Before each of them the disk's own sync time is taken ([`disk`]), because it moves
//! by more than what is compared.
//!
//! *Deliberately absent*: a figure that was not measured in this call. Without the metrics in [`REQUIRED`] no file is written: the
//! table is printed, and the run ends with what is missing.
//!
//! *Start reading* at [`run`]; [`mod@compare`] says which figures are compared.

pub mod compare;
pub mod disk;
pub mod ours;
pub mod peers;

use std::path::PathBuf;

use anyhow::Context;

use crate::replication::compare::{Measured, compare};
use crate::replication::ours::{Given, ours};
use crate::replication::peers::{LEFT_OUT, Line, Load, Peer, aeron_loads, etcd_loads};
use crate::report::{Figure, Report, Unit};
use walras_figures::machine::LoadWatch;

/// Without all of these there is no `replication.json`.
pub const REQUIRED: [&str; 6] = [
    "vs_etcd_throughput",
    "orders_per_s_durable",
    "mean_ack_us_at_320k_durable",
    "mean_ack_us_at_320k_memory",
    "failover_p50_ms_150_300",
    "failover_silent_p50_ms",
];

/// How to run.
#[derive(Debug)]
pub struct Config {
    /// Rounds; figures are medians over them.
    pub rounds: usize,
    /// Seconds measured of each load; the same are spent before on warming up.
    pub seconds: u32,
    /// The folder of peers, if they are to be run.
    pub peers: Option<PathBuf>,
    /// The folder of the only one that is to be run.
    pub only_peer: Option<String>,
    /// The program that our cluster runs; without it only peers are measured.
    pub walras: Option<PathBuf>,
    /// Where logs lie while they are measured: on the disk to be measured.
    pub scratch: PathBuf,
}

/// Deaths of a leader of each manner, in all rounds together, and in one at least.
const DEATHS_OF_ALL_ROUNDS: u32 = 30;
const DEATHS_OF_A_ROUND_MIN: u32 = 5;

/// Below this a sync did not reach a device.
const SYNC_US_MIN: f64 = 5.0;

/// Runs all of it. Fails at our first wrong answer; a peer's run that fails is a note.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(config.rounds);
    report.require(&REQUIRED);
    std::fs::create_dir_all(&config.scratch)
        .with_context(|| format!("making {}; name a folder that you may write to with --streams", config.scratch.display()))?;
    let etcd = built(config, "etcd", "etcd", report);
    let aeron = built(config, "aeron", "Aeron Cluster", report);
    let mut measured = Measured::default();
    measured.surroundings("before", disk::sync_us(&config.scratch)?, 0.0);
    for round in 1..=config.rounds {
        eprintln!("round {round} of {}", config.rounds);
        for (peer, loads) in [(&etcd, etcd_loads()), (&aeron, aeron_loads())] {
            let Some(peer) = peer else { continue };
            for load in loads {
                let key = load.key();
                match beside_the_disk(config, &key, &mut measured, || peer.run(&load, config.seconds, &config.scratch)) {
                    Ok(line) => {
                        eprintln!("  {key}: {:.0}/s, mean {:.0} us, p99 {:.0} us", line.per_s, line.mean_us, line.p99_us);
                        measured.peer(&load, line);
                    }
                    // A peer that does not start, or fails, is reported, and does not keep the others from being measured.
                    Err(why) => {
                        let why = format!("{key} has no figure of round {round}: {why:#}");
                        eprintln!("  {why}");
                        report.note(why);
                    }
                }
            }
        }
        if let Some(program) = &config.walras {
            let deaths = DEATHS_OF_ALL_ROUNDS.div_ceil(u32::try_from(config.rounds)?).max(DEATHS_OF_A_ROUND_MIN);
            let given = Given { program, scratch: &config.scratch, seconds: config.seconds, deaths };
            let figures = beside_the_disk(config, "ours", &mut measured, || ours(&given))?;
            measured.ours(figures)?;
        }
    }
    if etcd.is_some() {
        report.check("etcd: in every run that counts each member held exactly the acknowledged puts, and the leader stayed");
    }
    if aeron.is_some() {
        report.note(LEFT_OUT);
        report.check(
            "Aeron Cluster: in every run that counts answers came once each in order, and each member had applied exactly those commands",
        );
    }
    compare(&measured, report)
}

fn built(config: &Config, folder: &'static str, name: &'static str, report: &mut Report) -> Option<Peer> {
    let built = match &config.peers {
        Some(_) if config.only_peer.as_ref().is_some_and(|only| only != folder) => {
            Err("another one alone was asked for".to_owned())
        }
        Some(peers) => Peer::build(peers, folder, name),
        None => Err("--no-peer was given".to_owned()),
    };
    built.map_err(|why| report.note(format!("{name} was NOT RUN, so there is no figure of it: {why}"))).ok()
}

/// Runs one load, having taken the disk's sync time, and watches what others take meanwhile.
fn beside_the_disk<T>(
    config: &Config,
    key: &str,
    measured: &mut Measured,
    run: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let sync = disk::sync_us(&config.scratch)?;
    let watch = LoadWatch::begin();
    let done = run().with_context(|| format!("measuring {key}"))?;
    measured.surroundings(key, sync, watch.end().others_cpu_percent);
    Ok(done)
}

/// What the disk did, over all takes of all rounds.
fn disk_figures(measured: &Measured, report: &mut Report) {
    let p50 = report.samples("disk_sync_p50_us", measured.syncs().map(|sync| sync.p50).collect());
    let p99 = report.samples("disk_sync_p99_us", measured.syncs().map(|sync| sync.p99).collect());
    if p50 < SYNC_US_MIN {
        report.note(format!(
            "a sync took {p50:.1} us: the folder is on no disk, and no figure here is durable; name another with --streams"
        ));
    }
    report.figure(Figure::new("disk_sync_p50_us", p50, Unit::Us));
    report.figure(Figure::new("disk_sync_p99_us", p99, Unit::Us));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_its_required_metrics_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut report = Report::begin("replication");
        let config =
            Config { rounds: 1, seconds: 1, peers: None, only_peer: None, walras: None, scratch: folder.path().join("scratch") };
        run(&config, &mut report).unwrap();
        let metrics: Vec<&str> = report.figures().iter().map(|figure| figure.metric.as_str()).collect();
        assert!(metrics.contains(&"disk_sync_p50_us") && metrics.contains(&"disk_sync_p99_us"), "{metrics:?}");
        let missing: Vec<&str> = REQUIRED.into_iter().filter(|metric| !metrics.contains(metric)).collect();
        let written = report.finish(Some(folder.path()));
        assert_eq!(written.is_ok(), missing.is_empty());
        if let Err(refused) = written {
            assert!(missing.iter().all(|metric| refused.to_string().contains(metric)), "{refused}");
            assert!(!folder.path().join("replication.json").exists());
        }
    }
}
