//! Table 1 and figure 6b on real processes: shards, each a cluster of its own, and copies of an order by several gateways; and C9,
//! a gateway that is killed under load. Over loopback, so that what is seen is processors' work, and nothing of a network's delay.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use walras_client::cluster::{ClusterLoad, Offered};
use walras_fair_cluster::{Delay, FairCluster, Measured, Participants, Shape};

use crate::figure::Extent;
use crate::sharded::SYMBOLS;
use crate::workload::PARTICIPANTS;

/// Orders a second of the published shard.
pub const PUBLISHED_PER_S: u64 = 22_000;

/// Shards that are run at the same time here: a processor each.
pub const SHARDS: [usize; 2] = [1, 2];

/// Copies of figure 6b, and so its gateways.
pub const COPIES_MAX: usize = 5;

/// Published processors: the matching engine's, the gateways', the participants', by copies.
pub const PUBLISHED_CORES: [(f64, f64, f64); COPIES_MAX] =
    [(13.0, 2.4, 0.4), (14.1, 2.7, 0.5), (15.4, 3.1, 0.6), (17.6, 3.5, 0.7), (18.4, 3.8, 0.8)];

/// Commands unanswered of all participants of a shard, where as many as possible are to be answered.
const OUTSTANDING: usize = 8_192;
const SEED: u64 = 2_021;

/// What a run of processes is given.
#[derive(Clone, Debug)]
pub struct Given {
    /// `walras`.
    pub program: PathBuf,
    /// Where logs go.
    pub scratch: PathBuf,
    /// How long each load is measured, after as long to warm up.
    pub time: Duration,
}

impl Given {
    /// The program from this one's build folder; logs on the disk of the build.
    ///
    /// # Errors
    /// When it is not there.
    pub fn here(extent: Extent) -> anyhow::Result<Self> {
        let own = std::env::current_exe().context("asking for this program's file")?;
        let program = own.with_file_name("walras");
        ensure!(program.exists(), "{} is not there: build it with `cargo build --release -p walras-node`", program.display());
        let scratch = own.parent().unwrap_or(Path::new(".")).join("cloudex-2021-data");
        let time = match extent {
            Extent::Full => Duration::from_secs(8),
            Extent::Small => Duration::from_millis(500),
        };
        Ok(Self { program, scratch, time })
    }

    fn start(&self, name: &str, gateways: u16, delay: Delay) -> anyhow::Result<FairCluster> {
        let shape = Shape { voters: 1, gateways, durability: "disk", delay };
        FairCluster::start(&self.program, &self.scratch.join(name), shape)
    }
}

/// A number of shards, all at the same time.
#[derive(Clone, Debug)]
pub struct Shards {
    /// At as many orders as are answered, a measurement of each.
    pub most: Vec<Measured>,
    /// At the published throughput, shared by all of them.
    pub published_load: Vec<Measured>,
}

impl Shards {
    /// Number of shards.
    #[must_use]
    pub fn count(&self) -> usize {
        self.most.len()
    }

    /// Orders a second of all of them.
    #[must_use]
    pub fn orders_per_s(&self) -> f64 {
        self.most.iter().map(|measured| measured.report.acknowledged_per_second).sum()
    }
}

/// Table 1: clusters side by side, each with a gateway, its own share of the symbols, and all participants.
///
/// # Errors
/// When one does not come up, or an answer is wrong.
pub fn shards(given: &Given, count: usize) -> anyhow::Result<Shards> {
    let clusters = (0..count)
        .map(|shard| given.start(&format!("shard-{shard}-of-{count}"), 1, Delay::Tracking))
        .collect::<Result<Vec<_>, _>>()?;
    let markets = u32::try_from(SYMBOLS / count).context("symbols are few")?;
    let participants = |shard: usize| Participants { count: PARTICIPANTS as u32, markets, copies: 1, seed: SEED + shard as u64 };
    let mut loads: Vec<ClusterLoad> =
        clusters.iter().enumerate().map(|(shard, cluster)| cluster.participants(&participants(shard))).collect::<Result<_, _>>()?;
    let mut side_by_side = |offered: Offered| {
        std::thread::scope(|scope| {
            let runs: Vec<_> = clusters
                .iter()
                .zip(&mut loads)
                .map(|(cluster, load)| scope.spawn(move || cluster.measure(load, offered, given.time)))
                .collect();
            let joined = runs.into_iter().map(|run| run.join().map_err(|_| anyhow::anyhow!("a load's thread panicked"))?);
            joined.collect::<anyhow::Result<Vec<Measured>>>()
        })
    };
    // The heaviest load comes last: what it leaves to be written would slow down the next.
    let published_load = side_by_side(Offered::PerSecond(PUBLISHED_PER_S / count as u64))?;
    let most = side_by_side(Offered::Outstanding(OUTSTANDING))?;
    drop(loads);
    for cluster in clusters {
        cluster.check_equal()?;
        cluster.stop()?;
    }
    Ok(Shards { most, published_load })
}

/// Figure 6b, and C9.
#[derive(Clone, Debug)]
pub struct Copies {
    /// By copies, from 1.
    pub by_copies: Vec<Measured>,
    /// Two copies, one of whose gateways is killed half way.
    pub with_a_death: Measured,
}

impl Copies {
    /// The engine's processor time for an order with three copies over that with one.
    #[must_use]
    pub fn three_over_one(&self) -> f64 {
        let leader = |copies: usize| {
            self.by_copies.get(copies - 1).map_or(f64::NAN, |of| of.processor.leader_ns as f64 / of.answered as f64)
        };
        leader(3) / leader(1)
    }
}

/// Figure 6b: processors by copies, at the published load.
///
/// # Errors
/// When the cluster does not come up, or an answer is wrong.
pub fn copies(given: &Given) -> anyhow::Result<Copies> {
    let mut cluster = given.start("copies", COPIES_MAX as u16, Delay::FixedUs(300))?;
    let offered = Offered::PerSecond(PUBLISHED_PER_S);
    let participants = |copies: usize| Participants { count: PARTICIPANTS as u32, markets: SYMBOLS as u32, copies, seed: SEED };
    let mut by_copies = Vec::new();
    for copies in 1..=COPIES_MAX {
        let mut load = cluster.participants(&participants(copies))?;
        let measured = cluster.measure(&mut load, offered, given.time)?;
        let dropped = measured.sequenced.duplicates_per_order();
        ensure!(dropped >= 0.9 * (copies - 1) as f64, "of {copies} copies of an order {dropped} were dropped");
        by_copies.push(measured);
    }
    let mut load = cluster.participants(&participants(2))?;
    let with_a_death = cluster.measure_with_a_death(&mut load, offered, given.time, 0)?;
    drop(load);
    cluster.stop()?;
    Ok(Copies { by_copies, with_a_death })
}
