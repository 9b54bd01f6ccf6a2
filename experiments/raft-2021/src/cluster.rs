//! Clusters of real processes on this machine: fig-4.1, for comparison with its simulation, fig-4.7 and fig-4.9.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use walras_client::cluster::{ClusterLoad, ClusterReport, Offered, ReplicaAddress};
use walras_client::failover::{Death, FailoverOptions, failover};
use walras_client::local_cluster::{LocalCluster, LocalOptions, LocalReplica};
use walras_client::read_key;

use crate::failover::Range;

/// Longest wait for an election at the beginning.
const PATIENCE: Duration = Duration::from_secs(30);

/// Replicas of fig-4.7 and fig-4.1.
pub const REPLICAS: u16 = 3;

/// What fig-4.7 is run with.
#[derive(Clone, Debug)]
pub struct Loads {
    /// For each point, clients (a connection each), and commands that all of them together have unanswered.
    pub points: Vec<(u32, usize)>,
    /// Runs of each point.
    pub trials: u32,
    /// How long each is, after a third of it to warm up.
    pub trial: Duration,
    /// Only to see that it works.
    pub is_small: bool,
}

impl Loads {
    /// One command unanswered for each client, and, last, the etcd table's 1,000 clients on 100 connections.
    #[must_use]
    pub fn clients() -> Self {
        let points = vec![(1, 1), (2, 2), (4, 4), (7, 7), (16, 16), (64, 64), (100, 1_000)];
        Self { points, trials: 10, trial: Duration::from_millis(600), is_small: false }
    }

    /// Four clients that burst, as fig-4.9 has a fixed number of them.
    #[must_use]
    pub fn burst() -> Self {
        Self { points: vec![(4, 256)], trials: 10, trial: Duration::from_millis(600), is_small: false }
    }

    /// A trial of two points, to see that it works.
    #[must_use]
    pub fn small(&self) -> Self {
        let points = self.points.iter().take(2).copied().collect();
        Self { points, trials: 2, trial: Duration::from_millis(100), is_small: true }
    }
}

/// The trials of one point.
#[derive(Clone, Debug)]
pub struct Point {
    /// Replicas.
    pub replicas: u16,
    /// Connections.
    pub clients: u32,
    /// Commands unanswered.
    pub outstanding: usize,
    /// One for each trial.
    pub trials: Vec<ClusterReport>,
}

impl Point {
    /// The mean time to an answer in each trial, in microseconds.
    #[must_use]
    pub fn means_us(&self) -> Vec<f64> {
        self.trials.iter().map(|trial| trial.mean_ns / 1e3).collect()
    }

    /// Commands answered a second in each trial.
    #[must_use]
    pub fn throughputs(&self) -> Vec<f64> {
        self.trials.iter().map(|trial| trial.acknowledged_per_second).collect()
    }
}

/// The program that replicas run, from the same build folder as this one.
pub fn program() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("asking for this program's file")?;
    let program = own.parent().unwrap_or(Path::new(".")).join("walras");
    ensure!(program.exists(), "{} is not there: build it with `cargo build --release -p walras-node`", program.display());
    Ok(program)
}

/// A folder for clusters' files, gone with the value. On the disk of the build, not in memory: what is synced must be.
pub(crate) fn scratch() -> anyhow::Result<tempfile::TempDir> {
    let parent = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/raft-2021");
    std::fs::create_dir_all(&parent).with_context(|| format!("making {}: is there room?", parent.display()))?;
    tempfile::tempdir_in(&parent).with_context(|| format!("making a folder in {}: is there room?", parent.display()))
}

/// Kills the leader of three processes so often.
pub fn deaths(program: &Path, range: Range, deaths: u32) -> anyhow::Result<Vec<Death>> {
    let scratch = scratch()?;
    // The figure is about timeouts: fast fail-over would hide them.
    let options = FailoverOptions { fast: false, ..FailoverOptions::new(range.min_ms, range.max_ms, deaths) };
    Ok(failover(program, &scratch.path().join("cluster"), &options)?)
}

/// Throttles that nothing meets.
pub(crate) fn unlimited() -> Vec<(&'static str, &'static str, toml::Value)> {
    let number = toml::Value::Integer(1_000_000_000);
    ["requests_per_second", "burst", "source_requests_per_second", "source_burst"]
        .map(|key| ("throttle", key, number.clone()))
        .to_vec()
}

/// Where clients find the replicas.
pub(crate) fn addresses(local: &LocalCluster) -> Vec<ReplicaAddress> {
    let address = |replica: &LocalReplica| ReplicaAddress { url: replica.url(), orders: replica.orders.clone(), trust: None };
    local.replicas.iter().map(address).collect()
}

/// All points on a cluster of so many processes that acknowledge from disk.
pub fn load(program: &Path, replicas: u16, loads: &Loads, seed: u64) -> anyhow::Result<Vec<Point>> {
    let scratch = scratch()?;
    let options = LocalOptions { replicas, settings: unlimited(), ..LocalOptions::default() };
    let mut local = LocalCluster::prepare(program, &scratch.path().join("cluster"), &options)?;
    for id in 1..=u64::from(replicas) {
        local.start(id)?;
    }
    local.wait_for_leader(PATIENCE)?;
    let key = read_key(&local.operator_key())?;
    let addresses = addresses(&local);
    let mut points = Vec::new();
    for (clients, outstanding) in &loads.points {
        let mut load = ClusterLoad::prepare(&addresses, &key, *clients, seed)?;
        let trials = (0..loads.trials).map(|_| load.run(Offered::Outstanding(*outstanding), loads.trial / 3, loads.trial));
        let trials = trials.collect::<Result<Vec<_>, _>>()?;
        ensure!(trials.iter().all(|trial| trial.acknowledged > 0), "a trial of {clients} clients was not answered at all");
        points.push(Point { replicas, clients: *clients, outstanding: *outstanding, trials });
    }
    local.stop()?;
    Ok(points)
}
