//! Our own cluster under the bench's loads: three processes of `walras` on loopback with TLS between them, one program that sends
//! generated order flow over binary order entry.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use walras_client::cluster::{ClusterLoad, ClusterReport, Flow, Offered, ReplicaAddress};
use walras_client::failover::{FailoverOptions, Manner, failover};
use walras_client::local_cluster::{LocalCluster, LocalOptions};
use walras_client::read_key;
use walras_gateway::ClientKey;

use crate::report::{Figure, Unit};

/// What a round gives our cluster: the same as the peers get.
#[derive(Debug)]
pub struct Given<'a> {
    /// The program.
    pub program: &'a Path,
    /// Where logs go, on the disk to be measured. Leave it as it was.
    pub scratch: &'a Path,
    /// Seconds to measure each load, after as many of warming up.
    pub seconds: u32,
    /// Deaths of a leader of each manner.
    pub deaths: u32,
}

const REPLICAS: u16 = 3;
const PATIENCE: Duration = Duration::from_secs(30);
/// Commands unanswered where as many as possible are to be answered: less than the sessions' windows together.
const OUTSTANDING: usize = 8_192;
const SESSIONS_AT_MOST_LOAD: u32 = 16;
/// Sessions of the other loads: of two gateways that each send for many participants. A peer's client has one.
const SESSIONS: u32 = 2;
const OFFERED_PER_S: u64 = 320_000;
const ORDERS_SEED: u64 = 4;

/// One round of our cluster: each metric at most once, its answers checked, an error if one is wrong.
///
/// Every answer is counted once and in its session's order by the client itself, which fails on a gap; at the end all replicas have
/// to stand at the same entry with the same number of commands.
pub fn ours(given: &Given<'_>) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for durability in ["disk", "memory"] {
        let mut cluster = Cluster::start(given, durability)?;
        cluster.loads(given.seconds, durability, &mut figures)?;
        cluster.stop()?;
    }
    let names = ["failover_p50_ms_150_300", "failover_max_ms_150_300"];
    let names_silent = ["failover_silent_p50_ms", "failover_silent_max_ms"];
    for (manner, names) in [(Manner::Killed, names), (Manner::Silent, names_silent)] {
        let folder = given.scratch.join("walras-failover");
        let _ = std::fs::remove_dir_all(&folder);
        let options = FailoverOptions { manner, ..FailoverOptions::new(150, 300, given.deaths) };
        let deaths = failover(given.program, &folder, &options)?;
        let mut deaths_ms: Vec<f64> = deaths.iter().map(|death| death.acknowledged.as_secs_f64() * 1e3).collect();
        std::fs::remove_dir_all(&folder).context("removing the cluster's folder")?;
        deaths_ms.sort_by(f64::total_cmp);
        ensure!(!deaths_ms.is_empty(), "no leader died");
        let [p50, max] = names;
        figures.push(Figure::new(p50, deaths_ms[deaths_ms.len() / 2], Unit::Ms));
        figures.push(Figure::new(max, deaths_ms[deaths_ms.len() - 1], Unit::Ms));
    }
    Ok(figures)
}

/// One load on a cluster of our own, after as long of warming up: to look at with a profiler, or to hold two programs against each
/// other.
pub fn one_load(given: &Given<'_>, durability: &'static str, sessions: u32, offered: Offered) -> anyhow::Result<ClusterReport> {
    let cluster = Cluster::start(given, durability)?;
    let time = Duration::from_secs(given.seconds.into());
    let mut load = ClusterLoad::prepare(&cluster.replicas, &cluster.key, sessions, ORDERS_SEED)?;
    let report = load.run(offered, time, time).map(checked).context("measuring our cluster")??;
    drop(load);
    cluster.check_equal()?;
    cluster.stop()?;
    Ok(report)
}

struct Cluster {
    local: LocalCluster,
    replicas: Vec<ReplicaAddress>,
    key: ClientKey,
    dir: PathBuf,
}

impl Cluster {
    fn start(given: &Given<'_>, durability: &'static str) -> anyhow::Result<Self> {
        let program = given.program;
        ensure!(program.is_file(), "{} is not built: cargo build --release -p walras-node", program.display());
        let dir = given.scratch.join(format!("walras-{durability}"));
        let _ = std::fs::remove_dir_all(&dir);
        let unlimited = || toml::Value::Integer(1_000_000_000);
        let limits = ["requests_per_second", "burst", "source_requests_per_second", "source_burst"];
        let mut settings: Vec<_> = limits.map(|key| ("throttle", key, unlimited())).into();
        settings.push(("cluster", "durability", durability.into()));
        let options = LocalOptions { replicas: REPLICAS, settings, ..LocalOptions::default() };
        let mut local = LocalCluster::prepare(program, &dir, &options)?;
        for id in 1..=u64::from(REPLICAS) {
            local.start(id)?;
        }
        local.wait_for_leader(PATIENCE)?;
        let address = |replica: &walras_client::local_cluster::LocalReplica| ReplicaAddress {
            url: replica.url(),
            orders: replica.orders.clone(),
            trust: None,
        };
        let replicas = local.replicas.iter().map(address).collect();
        let key = read_key(&local.operator_key())?;
        Ok(Self { local, replicas, key, dir })
    }

    fn loads(&mut self, seconds: u32, durability: &str, figures: &mut Vec<Figure>) -> anyhow::Result<()> {
        let time = Duration::from_secs(seconds.into());
        let measure =
            |load: &mut ClusterLoad, offered| load.run(offered, time, time).map(checked).context("measuring our cluster")?;
        // The heaviest load comes last: what it leaves to be written would slow down the next.
        let mut load = ClusterLoad::prepare(&self.replicas, &self.key, SESSIONS, ORDERS_SEED)?;
        let offered = measure(&mut load, Offered::PerSecond(OFFERED_PER_S))?;
        let one = measure(&mut load, Offered::Outstanding(1))?;
        let thousand = measure(&mut load, Offered::Outstanding(1_000))?;
        drop(load);
        let mut wide = ClusterLoad::prepare(&self.replicas, &self.key, SESSIONS_AT_MOST_LOAD, ORDERS_SEED)?;
        let most = measure(&mut wide, Offered::Outstanding(OUTSTANDING))?;
        drop(wide);
        // What an exchange recorded, where it is at hand.
        let recorded = recorded_flow().map(|flow| {
            let mut load = ClusterLoad::prepare_flow(&self.replicas, &self.key, SESSIONS, &flow)?;
            let report = load.run(Offered::Outstanding(1_000), time, time).context("measuring our cluster with recorded orders")?;
            ensure!(report.reconnects == 0, "{} connections were lost while nothing failed", report.reconnects);
            anyhow::Ok(report)
        });
        let recorded = recorded.transpose()?;
        let us = |ns: f64| ns / 1e3;
        let kind = if durability == "disk" { "durable" } else { durability };
        let mut tell = |metric: String, value: f64, unit| figures.push(Figure::new(metric, value, unit));
        tell(format!("orders_per_s_{kind}"), most.acknowledged_per_second, Unit::PerS);
        tell(format!("mean_ack_us_at_most_{kind}"), us(most.mean_ns), Unit::Us);
        tell(format!("orders_per_s_1000_outstanding_{kind}"), thousand.acknowledged_per_second, Unit::PerS);
        tell(format!("acknowledged_per_s_at_320k_{kind}"), offered.acknowledged_per_second, Unit::PerS);
        tell(format!("mean_ack_us_at_320k_{kind}"), us(offered.mean_ns), Unit::Us);
        tell(format!("p99_ack_us_at_320k_{kind}"), us(offered.latency.p99_ns as f64), Unit::Us);
        tell(format!("mean_ack_us_one_{kind}"), us(one.mean_ns), Unit::Us);
        if let Some(recorded) = recorded {
            tell(format!("orders_per_s_1000_outstanding_recorded_{kind}"), recorded.acknowledged_per_second, Unit::PerS);
            tell(format!("mean_ack_us_1000_outstanding_recorded_{kind}"), us(recorded.mean_ns), Unit::Us);
        }
        self.check_equal()
    }

    /// All replicas get to the same entry.
    fn check_equal(&self) -> anyhow::Result<()> {
        let equal = self.local.wait_for_equal(PATIENCE);
        equal.map(|_| ()).map_err(|entries| anyhow::anyhow!("the replicas do not come to the same entry: {entries:?}"))
    }

    fn stop(mut self) -> anyhow::Result<()> {
        self.local.stop()?;
        std::fs::remove_dir_all(&self.dir).context("removing the cluster's folder")
    }
}

/// An hour of AAPL on Nasdaq, as LOBSTER gives it away; `None` where it is not at hand.
fn recorded_flow() -> Option<Flow> {
    const FILE: &str = "lobster/AAPL_2012-06-21_34200000_37800000_message_50.csv";
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = walras_replay::data_folder(&repository)?.join(FILE);
    path.is_file().then_some(Flow::Recorded(path))
}

fn checked(report: ClusterReport) -> anyhow::Result<ClusterReport> {
    ensure!(report.reconnects == 0, "{} connections were lost while nothing failed", report.reconnects);
    ensure!(report.rejected * 5 < report.acknowledged, "{} of {} commands were rejected", report.rejected, report.acknowledged);
    Ok(report)
}
