//! A cluster with fair access as processes on loopback, under load by participants through gateways: what the bench and the
//! experiments measure.
//!
//! ```text
//! this process: participants --order entry--> gateways (learners) --TLS--> leader: hold, log, engine --log--> all
//!                            <-----------------------answers of what they have applied----------------
//! ```
//!
//! *Deliberately absent*: delays of a network (loopback has none; figures that need them are simulated, `tools/cloud-model`),
//! several machines.
//!
//! *Invariants*
//! - A measurement whose answers are not all there, each once and in its session's order, is an error, and so is one in which the
//!   leader took another number of orders than was answered.
//!
//! *Start reading* at [`FairCluster::start`] and [`FairCluster::measure`].

pub mod processor;
pub mod rates;
mod released;
mod sequenced;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rustix::process::Signal;
use serde_json::json;
use walras_client::cluster::{
    ClusterLoad, ClusterReport, FairOptions, FairReport, Flow, LoadOptions, Offered, ReplicaAddress, Ways, measure_fairness,
};
use walras_client::local_cluster::{LocalCluster, LocalOptions};
use walras_client::{Client, read_key};
use walras_gateway::ClientKey;
use walras_wait::{pause, within};

pub use processor::ProcessorTime;
pub use released::Released;
pub use sequenced::Sequenced;

/// Longest wait for what should come at once.
const PATIENCE: Duration = Duration::from_secs(60);
/// The leader shows what it has done within this time.
const SHOWN_AFTER: Duration = Duration::from_millis(100);
/// How far the clocks of one machine are apart: it has one.
const CLOCK_BOUND_US: i64 = 10;

/// Publications of held market data a second: as often as the venue publishes.
const PUBLICATIONS_PER_S: i64 = 200;

/// How the leader sets d_s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Delay {
    /// To so many microseconds.
    FixedUs(u32),
    /// So that one of a hundred orders is unfair.
    Tracking,
}

/// What the cluster is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Replicas that vote.
    pub voters: u16,
    /// Learners, by which participants send.
    pub gateways: u16,
    /// `disk`, or `memory`.
    pub durability: &'static str,
    /// The hold.
    pub delay: Delay,
    /// How long every replica holds market data, in microseconds; `None` where it does not.
    pub release_us: Option<u32>,
}

/// Who sends, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Participants {
    /// How many, each with a session.
    pub count: u32,
    /// Markets.
    pub markets: u32,
    /// Gateways by which each sends a command.
    pub copies: usize,
    /// Of the generated orders.
    pub seed: u64,
}

impl Participants {
    /// As many participants and symbols as the published shard had (CloudEx, table 1), by one gateway.
    pub const PUBLISHED: Self = Self { count: 48, markets: 100, copies: 1, seed: 6 };
}

/// A running cluster.
#[derive(Debug)]
pub struct FairCluster {
    local: LocalCluster,
    shape: Shape,
    key: ClientKey,
    dir: PathBuf,
}

/// One measurement.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Measured {
    /// What participants saw.
    pub report: ClusterReport,
    /// Orders that were reported late: they missed d_s.
    pub late: u64,
    /// Orders answered, after the end of the measurement too.
    pub answered: u64,
    /// What the leader did with them.
    pub sequenced: Sequenced,
    /// What replicas did with market data, where it is held.
    pub released: Option<Released>,
    /// Processor time, while it was measured.
    pub processor: ProcessorTime,
}

impl FairCluster {
    /// Starts it in a folder, which is created empty. `program` is `walras`.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn start(program: &Path, dir: &Path, shape: Shape) -> anyhow::Result<Self> {
        ensure!(program.is_file(), "{} is not built: cargo build --release -p walras-node", program.display());
        let _ = std::fs::remove_dir_all(dir);
        let number = toml::Value::Integer;
        let limits = ["requests_per_second", "burst", "source_requests_per_second", "source_burst"];
        let mut settings: Vec<_> = limits.map(|key| ("throttle", key, number(1_000_000_000))).into();
        settings.push(("cluster", "durability", shape.durability.into()));
        settings.push(("fair_access", "bound_us", number(CLOCK_BOUND_US)));
        match shape.delay {
            Delay::FixedUs(us) => {
                settings.push(("fair_access", "sequencing", format!("{us}us").into()));
                // The cost of a fixed delay is measured, so no order may leave before it is over.
                settings.push(("fair_access", "watermark_us", number(0)));
            }
            Delay::Tracking => settings.push(("fair_access", "sequencing", "1%".into())),
        }
        if let Some(us) = shape.release_us {
            settings.push(("fair_access", "release", format!("{us}us").into()));
            settings.push(("fair_access", "release_max_us", number(2 * i64::from(us))));
            settings.push(("websocket", "updates_per_second", number(PUBLICATIONS_PER_S)));
        }
        let options = LocalOptions { replicas: shape.voters, later: shape.gateways, settings, ..LocalOptions::default() };
        let local = LocalCluster::prepare(program, dir, &options)?;
        let key = read_key(&local.operator_key())?;
        let mut cluster = Self { local, shape, key, dir: dir.to_path_buf() };
        if shape.voters == 1 && shape.gateways > 0 {
            cluster.begin_alone()?;
        } else {
            (1..=u64::from(shape.voters)).try_for_each(|id| cluster.local.start(id))?;
        }
        cluster.local.wait_for_leader(PATIENCE)?;
        for gateway in cluster.gateway_ids() {
            cluster.add_gateway(gateway)?;
        }
        cluster.check_equal()?;
        Ok(cluster)
    }

    /// Starts the only voter without a word of others, and tells it of them when it leads: with an empty folder it would not begin a
    /// cluster that it is to have begun alone.
    fn begin_alone(&mut self) -> anyhow::Result<()> {
        let dir = self.local.replicas[0].dir.clone();
        let path = dir.join("walras.toml");
        let all = std::fs::read_to_string(&path).context("reading a configuration that was just written")?;
        let mut alone: toml::Table = all.parse()?;
        let cluster = alone.get_mut("cluster").and_then(toml::Value::as_table_mut).context("a section [cluster]")?;
        for key in ["peers", "genesis", "listen", "keys"] {
            cluster.remove(key);
        }
        std::fs::write(&path, alone.to_string())?;
        self.local.start(1)?;
        self.local.wait_for_leader(PATIENCE)?;
        std::fs::write(&path, all)?;
        self.local.replicas[0].signal(Signal::HUP)?;
        within(PATIENCE, || {
            let said = std::fs::read_to_string(dir.join("replica.log"))?;
            ensure!(
                said.contains("the replicas are 1, "),
                "replica 1 does not take its peers: see {}",
                dir.join("replica.log").display()
            );
            Ok(())
        })
    }

    fn gateway_ids(&self) -> std::ops::RangeInclusive<u64> {
        let voters = u64::from(self.shape.voters);
        voters + 1..=voters + u64::from(self.shape.gateways)
    }

    fn add_gateway(&mut self, id: u64) -> anyhow::Result<()> {
        self.local.start(id)?;
        let body = json!({"replica": id, "learner": true});
        // One change is made at a time.
        within(PATIENCE, || {
            self.client(self.leader()?)?.signed("POST", "/v1/admin/cluster/add", Some(&body)).map_err(anyhow::Error::from)
        })
        .with_context(|| format!("replica {id} does not become a learner"))?;
        Ok(())
    }

    fn leader(&self) -> anyhow::Result<u64> {
        self.local.leader().context("nobody leads any more: see the files replica.log in the cluster's folder")
    }

    fn client(&self, id: u64) -> anyhow::Result<Client> {
        let replica = self.local.replicas.iter().find(|replica| replica.id == id).context("there is no such replica")?;
        Ok(Client::new(&replica.url(), Some(self.key.clone())))
    }

    /// Makes markets and accounts of their own for participants, and logs them on.
    ///
    /// # Errors
    /// When the venue does not take them.
    pub fn participants(&self, participants: &Participants) -> anyhow::Result<ClusterLoad> {
        let Participants { count, markets, copies, seed } = *participants;
        let replicas = self.addresses();
        let mut gateways: Vec<String> = self
            .gateway_ids()
            .filter_map(|id| self.local.replicas.iter().find(|one| one.id == id))
            .map(|one| one.orders.clone())
            .collect();
        if gateways.is_empty() {
            gateways = replicas.iter().map(|one| one.orders.clone()).collect();
        }
        ensure!(copies <= gateways.len(), "{copies} copies of an order need as many gateways, and there are {}", gateways.len());
        let ways = Ways::Gateways { gateways, copies };
        let options = LoadOptions { sessions: count, markets, flow: Flow::Generated(seed), ways };
        ClusterLoad::prepare_with(&replicas, &self.key, &options).context("making the participants of a measurement")
    }

    /// Sends pairs of orders through two replicas and reports how many were sequenced the wrong way round.
    ///
    /// # Errors
    /// When an order is not answered.
    pub fn fairness(&self, options: FairOptions) -> anyhow::Result<FairReport> {
        measure_fairness(&self.addresses(), &self.key, options).context("sending pairs of orders")
    }

    fn addresses(&self) -> Vec<ReplicaAddress> {
        self.local.replicas.iter().map(|one| ReplicaAddress { url: one.url(), orders: one.orders.clone(), trust: None }).collect()
    }

    /// Has them send for a while to warm up, then measures.
    ///
    /// # Errors
    /// When an answer is wrong, or missing.
    pub fn measure(&self, load: &mut ClusterLoad, offered: Offered, time: Duration) -> anyhow::Result<Measured> {
        load.run(offered, Duration::ZERO, time).context("warming up")?;
        let measured = self.measure_now(load, offered, time)?;
        let lost = measured.report.reconnects;
        ensure!(lost == 0, "{lost} connections were lost while nothing failed");
        Ok(measured)
    }

    /// The same without warming up; connections may be lost.
    ///
    /// # Errors
    /// When an answer is wrong, or missing.
    pub fn measure_now(&self, load: &mut ClusterLoad, offered: Offered, time: Duration) -> anyhow::Result<Measured> {
        let leader = self.leader()?;
        let before = self.sequenced_at_rest(leader)?;
        let released_before = self.released(leader)?;
        let watch = self.watch(leader)?;
        let report = load.run(offered, Duration::ZERO, time).context("measuring")?;
        let processor = self.watch(leader)?.since(&watch);
        let released = self.released(leader)?;
        let (answered, late) = (load.answered_count(), load.late_count());
        let sequenced = self.sequenced_at_rest(leader)?.since(&before);
        let Sequenced { held, refused, differing, malformed, .. } = sequenced;
        ensure!(self.leader()? == leader, "another replica leads than when the measurement began");
        ensure!(
            differing == 0 && malformed == 0,
            "the leader dropped {differing} copies that differ and {malformed} that are none"
        );
        // Refused orders were sent again.
        ensure!(
            held >= answered && held <= answered + refused,
            "{answered} orders were answered, and the leader took {held} and refused {refused} of those"
        );
        ensure!(report.rejected * 5 < answered, "{} of {answered} commands were rejected", report.rejected);
        let released = released.zip(released_before).map(|(now, before)| now.since(&before));
        ensure!(released.is_none_or(|released| released.refused == 0), "market data was not held: {released:?}");
        Ok(Measured { report, late, answered, sequenced, released, processor })
    }

    fn released(&self, leader: u64) -> anyhow::Result<Option<Released>> {
        if self.shape.release_us.is_none() {
            return Ok(None);
        }
        let said = |id| Ok(self.client(id)?.get("/v1/fair-access")?);
        let all = self.local.replicas.iter().map(|replica| said(replica.id)).collect::<anyhow::Result<Vec<_>>>()?;
        Released::of(&said(leader)?, &all)
    }

    /// While nobody sends: what is shown is a moment old, so until it does not change any more.
    fn sequenced_at_rest(&self, leader: u64) -> anyhow::Result<Sequenced> {
        let client = self.client(leader)?;
        let look = || Sequenced::of(&client.get("/v1/fair-access")?);
        let (begun, mut last) = (Instant::now(), look()?);
        loop {
            pause(SHOWN_AFTER);
            let now = look()?;
            if (now.copies, now.held) == (last.copies, last.held) {
                return Ok(now);
            }
            ensure!(begun.elapsed() < PATIENCE, "the leader goes on sequencing although nobody sends");
            last = now;
        }
    }

    /// Processor time until now, by who took it.
    fn watch(&self, leader: u64) -> anyhow::Result<ProcessorTime> {
        let mut time = ProcessorTime::of_this_thread()?;
        for replica in &self.local.replicas {
            let Some(process) = replica.process_id() else { continue };
            let taken_ns = processor::of_process(process)?;
            match replica.id {
                id if id == leader => time.leader_ns += taken_ns,
                id if id > u64::from(self.shape.voters) => time.gateways_ns += taken_ns,
                _ => time.followers_ns += taken_ns,
            }
        }
        Ok(time)
    }

    /// Measures, and half way through kills a gateway, the how manieth from 0 of all; afterwards it is started again, and has to
    /// catch up.
    ///
    /// # Errors
    /// When an answer is wrong, or missing.
    pub fn measure_with_a_death(
        &mut self,
        load: &mut ClusterLoad,
        offered: Offered,
        time: Duration,
        which: u16,
    ) -> anyhow::Result<Measured> {
        let id = u64::from(self.shape.voters + 1 + which);
        let place = self.local.replicas.iter().position(|replica| replica.id == id).context("there is no such gateway")?;
        let measured = std::thread::scope(|scope| {
            let victim = &self.local.replicas[place];
            let killer = scope.spawn(move || {
                pause(time / 2);
                victim.signal(Signal::KILL)
            });
            let measured = self.measure_now(load, offered, time);
            killer.join().map_err(|_| anyhow::anyhow!("the thread that kills a gateway panicked"))??;
            measured
        })?;
        self.local.replicas[place].wait()?;
        self.local.start(id)?;
        self.check_equal()?;
        Ok(measured)
    }

    /// All replicas get to the same entry.
    ///
    /// # Errors
    /// When they do not.
    pub fn check_equal(&self) -> anyhow::Result<u64> {
        self.local
            .wait_for_equal(PATIENCE)
            .map_err(|entries| anyhow::anyhow!("the replicas do not come to the same entry: {entries:?}"))
    }

    /// Stops it and removes its folder.
    ///
    /// # Errors
    /// When a process does not end.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.local.stop()?;
        std::fs::remove_dir_all(&self.dir).context("removing the cluster's folder")
    }
}
