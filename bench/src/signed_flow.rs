//! Signed transactions from a client to a cleared block, on one durable replica: by binary order entry, in processes.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use walras_client::cluster::{ReplicaAddress, TransactionLoad, TransactionReport, measure_transactions};
use walras_client::local_cluster::{LocalCluster, LocalOptions};
use walras_client::read_key;

use crate::report::{Figure, Report, Unit};

/// How to run.
#[derive(Debug)]
pub struct Config {
    /// The program.
    pub walras: PathBuf,
    /// Where the venue's folder is made; on the disk that it is to be durable on.
    pub scratch: PathBuf,
    /// Rounds; the figure is their median.
    pub rounds: usize,
    /// Whether it is as many transactions as the figure needs, or a few.
    pub is_full: bool,
}

const PATIENCE: Duration = Duration::from_secs(60);
const INTERVAL: Duration = Duration::from_millis(250);
/// What a venue of a few thousand accounts on two processors is to do, with its load on the same two.
const BAR_KTPS: f64 = 100.0;

/// Runs it.
///
/// # Errors
/// The program is not there, or a transaction is not in a block.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let transactions = if config.is_full { 1_000_000 } else { 2_000 };
    let (mut cleared, mut collected) = (Vec::new(), Vec::new());
    for round in 0..config.rounds {
        eprintln!("{transactions} signed transactions, from a client to a block: round {}", round + 1);
        let outcome = one_round(config, transactions)?;
        cleared.push(outcome.cleared_per_second / 1e3);
        collected.push(outcome.collected as f64 / outcome.collected_seconds / 1e3);
    }
    report.check(
        "what one client sent is in blocks, each transaction once, by the count of these; a refused or dropped one fails the run",
    );
    let ktps = report.samples("end_to_end_signed_ktps", cleared);
    report.figure(Figure::new("end_to_end_signed_ktps", ktps, Unit::Ktps).bar(BAR_KTPS));
    let ktps = report.samples("collected_signed_ktps", collected);
    report.figure(Figure::new("collected_signed_ktps", ktps, Unit::Ktps));
    Ok(())
}

fn one_round(config: &Config, transactions: u32) -> anyhow::Result<TransactionReport> {
    ensure!(config.walras.is_file(), "{} is not built: cargo build --release -p walras-node", config.walras.display());
    let dir = config.scratch.join("signed-flow");
    let _ = std::fs::remove_dir_all(&dir);
    let limits = ["requests_per_second", "burst", "source_requests_per_second", "source_burst"];
    let settings = limits.map(|key| ("throttle", key, toml::Value::Integer(1_000_000_000))).into();
    let options = LocalOptions { replicas: 1, settings, ..LocalOptions::default() };
    let mut local = LocalCluster::prepare(&config.walras, &dir, &options)?;
    local.start(1)?;
    local.wait_for_leader(PATIENCE)?;
    let replica = &local.replicas[0];
    let replicas = [ReplicaAddress { url: replica.url(), orders: replica.orders.clone(), trust: None }];
    let load = TransactionLoad { transactions, connections: 2, interval: INTERVAL, signing_threads: 2 };
    let outcome = measure_transactions(&replicas, &read_key(&local.operator_key())?, &load)?;
    ensure!(outcome.refused == 0 && outcome.dropped == 0 && outcome.collected == u64::from(transactions), "{outcome}");
    eprint!("{outcome}");
    local.stop()?;
    std::fs::remove_dir_all(&dir).context("removing the venue's folder")?;
    Ok(outcome)
}
