//! An upgrade of three replicas to a program that differs in what a trade costs, under load: the longest that an order waited for its
//! answer, from when it was due.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};
use walras_client::cluster::{ClusterLoad, Offered, ReplicaAddress};
use walras_client::local_cluster::{LocalCluster, LocalOptions};
use walras_client::{Client, read_key};
use walras_engine::versions::REHEARSAL;

/// Orders a second.
const OFFERED: u64 = 2_000;
const SESSIONS: u32 = 8;
const PATIENCE: Duration = Duration::from_secs(30);

/// Upgrades all replicas from one program to the other within `time`, then goes to its rules; the longest wait in milliseconds.
pub(super) fn longest_gap_ms((now, next): (&Path, &Path), dir: &Path, time: Duration) -> anyhow::Result<f64> {
    if dir.exists() {
        std::fs::remove_dir_all(dir).with_context(|| format!("removing {}", dir.display()))?;
    }
    let throttles = ["requests_per_second", "burst", "source_requests_per_second", "source_burst"];
    let settings = throttles.map(|key| ("throttle", key, toml::Value::Integer(1_000_000_000))).to_vec();
    let mut local = LocalCluster::prepare(now, dir, &LocalOptions { replicas: 3, settings, ..LocalOptions::default() })?;
    for id in 1..=3 {
        local.start(id)?;
    }
    local.wait_for_leader(PATIENCE)?;
    let key = read_key(&local.operator_key())?;
    let address = |replica: &walras_client::local_cluster::LocalReplica| ReplicaAddress {
        url: replica.url(),
        orders: replica.orders.clone(),
        trust: None,
    };
    let addresses: Vec<ReplicaAddress> = local.replicas.iter().map(address).collect();
    let mut load = ClusterLoad::prepare(&addresses, &key, SESSIONS, 1)?;
    let running = std::thread::spawn(move || load.run(Offered::PerSecond(OFFERED), Duration::from_millis(500), time));
    let begun = Instant::now();
    upgrade(&mut local, next)?;
    let operator = Client::new(&addresses[0].url, Some(key));
    let asked = json!({"engine_version": REHEARSAL.0});
    wait("the leader goes to the next rules", || {
        operator.signed("POST", "/v1/admin/cluster/engine-version", Some(&asked)).is_ok()
    })?;
    wait("all replicas are under them", || {
        (1..=3).all(|id| local.status(id).is_some_and(|view| view["engine_version"] == REHEARSAL.0))
    })?;
    ensure!(begun.elapsed() < time, "the upgrade took longer than the load: {:?}", begun.elapsed());
    let took = begun.elapsed();
    let report = running.join().map_err(|_| anyhow::anyhow!("the load panicked"))??;
    ensure!(report.reconnects > 0, "nobody lost a connection: the replicas were not stopped");
    eprintln!("  upgraded in {took:?}: {report}");
    for replica in &mut local.replicas {
        replica.signal(Signal::TERM)?;
        replica.wait()?;
    }
    std::fs::remove_dir_all(dir).with_context(|| format!("removing {}", dir.display()))?;
    Ok(report.latency.max_ns as f64 / 1e6)
}

/// Followers first, then the one that led, which hands over when it is stopped.
fn upgrade(local: &mut LocalCluster, next: &Path) -> anyhow::Result<()> {
    let leader = local.wait_for_leader(PATIENCE)?;
    local.set_program(next);
    for id in [leader % 3 + 1, (leader + 1) % 3 + 1, leader] {
        let replica = &mut local.replicas[id as usize - 1];
        replica.signal(Signal::TERM)?;
        ensure!(replica.wait()? == Some(0), "replica {id} did not stop in good order");
        local.start(id)?;
        wait("the replica has caught up", || {
            let index = |view: &Value| view["log_index"].as_str().and_then(|text| text.parse::<u64>().ok());
            let leads = local.leader().and_then(|leader| local.status(leader));
            let (Some(leads), Some(follows)) = (leads, local.status(id)) else { return false };
            follows["leader"] == leads["replica"] && index(&follows) >= index(&leads)
        })?;
    }
    Ok(())
}

fn wait(what: &str, holds: impl Fn() -> bool) -> anyhow::Result<()> {
    let look = || if holds() { Ok(()) } else { Err(()) };
    walras_wait::within(PATIENCE, look).map_err(|()| anyhow::anyhow!("it is not so after {PATIENCE:?}: {what}"))
}
