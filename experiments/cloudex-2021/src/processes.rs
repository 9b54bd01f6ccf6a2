//! Table 1 and figure 6b on real processes: shards, each a cluster of its own, and copies of an order by several gateways; and C9,
//! a gateway that is killed under load. Over loopback, so that what is seen is processors' work, and nothing of a network's delay.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use walras_client::cluster::{ClusterLoad, Offered};
use walras_fair_cluster::rates::{Limits, highest_held, side_by_side};
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

/// Orders a second of all participants in figure 6b: so few that processors are left over. Where they are full, more copies make larger
/// packs of messages, and an order seems to cost less.
pub const COPIES_OFFERED_PER_S: u64 = 6_000;
/// Figure 6b's rounds: each measures all numbers of copies, and the round with the median counts.
const COPIES_ROUNDS: usize = 3;

/// Gateways of a shard.
pub const GATEWAYS: u16 = 4;
/// How long a shard's replicas hold market data, in microseconds. Processes that share two processors are behind by milliseconds now and
/// then.
pub const RELEASE_US: u32 = 30_000;
/// Rates that are offered to all shards together, to find the highest one that holds.
pub const RATES: [u64; 8] = [11_000, 22_000, 33_000, 44_000, 55_000, 66_000, 77_000, 88_000];

/// Commands unanswered of all participants of a shard, where as many as possible are to be answered.
pub const OUTSTANDING: usize = 8_192;
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

    fn start(&self, name: &str, gateways: u16, delay: Delay, release_us: Option<u32>) -> anyhow::Result<FairCluster> {
        let shape = Shape { voters: 1, gateways, durability: "disk", delay, release_us };
        FairCluster::start(&self.program, &self.scratch.join(name), shape)
    }
}

/// A number of shards, all at the same time.
#[derive(Clone, Debug)]
pub struct Shards {
    /// At the published throughput, shared by all of them.
    pub published_load: Vec<Measured>,
    /// At the highest rate that all of them held ([`Limits::USUAL`]); empty where not even the lowest one was held.
    pub held: Vec<Measured>,
    /// With as many orders unanswered as saturate them.
    pub most: Vec<Measured>,
}

impl Shards {
    /// Number of shards.
    #[must_use]
    pub fn count(&self) -> usize {
        self.most.len()
    }

    /// Orders a second of all of them at the highest rate that held.
    #[must_use]
    pub fn held_per_s(&self) -> f64 {
        per_s(&self.held)
    }

    /// Orders a second of all of them where they are saturated.
    #[must_use]
    pub fn most_per_s(&self) -> f64 {
        per_s(&self.most)
    }
}

fn per_s(all: &[Measured]) -> f64 {
    all.iter().map(|measured| measured.report.acknowledged_per_second).fold(0.0, |sum, one| sum + one)
}

/// Table 1: clusters side by side, each with its gateways, its own share of the symbols, and all participants.
///
/// # Errors
/// When one does not come up, or an answer is wrong.
pub fn shards(given: &Given, count: usize) -> anyhow::Result<Shards> {
    let clusters = (0..count)
        .map(|shard| given.start(&format!("shard-{shard}-of-{count}"), GATEWAYS, Delay::Tracking, Some(RELEASE_US)))
        .collect::<Result<Vec<_>, _>>()?;
    let markets = u32::try_from(SYMBOLS / count).context("symbols are few")?;
    let participants = |shard: usize| Participants { count: PARTICIPANTS as u32, markets, copies: 1, seed: SEED + shard as u64 };
    let mut loads: Vec<ClusterLoad> =
        clusters.iter().enumerate().map(|(shard, cluster)| cluster.participants(&participants(shard))).collect::<Result<_, _>>()?;
    // The heaviest load comes last: what it leaves to be written would slow down the next.
    let published = Offered::PerSecond(PUBLISHED_PER_S / count as u64);
    let published_load = side_by_side(&clusters, &mut loads, published, given.time)?;
    let rates = RATES.map(|rate| rate / count as u64);
    let held = highest_held(&clusters, &mut loads, &rates, &Limits::USUAL, given.time / 4)?;
    let most = side_by_side(&clusters, &mut loads, Offered::Outstanding(OUTSTANDING), given.time / 2)?;
    drop(loads);
    for cluster in clusters {
        cluster.check_equal()?;
        cluster.stop()?;
    }
    Ok(Shards { published_load, held, most })
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
        let leader = |copies: usize| self.by_copies.get(copies - 1).map_or(f64::NAN, leader_ns_per_order);
        leader(3) / leader(1)
    }
}

/// Nanoseconds of the engine's replica for an order.
fn leader_ns_per_order(of: &Measured) -> f64 {
    of.processor.leader_ns as f64 / of.answered.max(1) as f64
}

/// Figure 6b: processors by copies.
///
/// # Errors
/// When the cluster does not come up, or an answer is wrong.
pub fn copies(given: &Given) -> anyhow::Result<Copies> {
    let mut cluster = given.start("copies", COPIES_MAX as u16, Delay::FixedUs(300), None)?;
    let offered = Offered::PerSecond(COPIES_OFFERED_PER_S);
    let participants = |copies: usize| Participants { count: PARTICIPANTS as u32, markets: SYMBOLS as u32, copies, seed: SEED };
    let mut rounds = vec![Vec::new(); COPIES_MAX];
    for round in 1..=COPIES_ROUNDS {
        for copies in 1..=COPIES_MAX {
            let mut load = cluster.participants(&participants(copies))?;
            let measured = cluster.measure(&mut load, offered, given.time / 2)?;
            let dropped = measured.sequenced.duplicates_per_order();
            ensure!(dropped >= 0.9 * (copies - 1) as f64, "of {copies} copies of an order {dropped} were dropped");
            eprintln!(
                "    round {round}, {copies} copies: leader {:.1} us an order; {}",
                leader_ns_per_order(&measured) / 1e3,
                measured.line()
            );
            rounds[copies - 1].push(measured);
        }
    }
    let median = |mut all: Vec<Measured>| {
        all.sort_by(|one, other| leader_ns_per_order(one).total_cmp(&leader_ns_per_order(other)));
        all.swap_remove(all.len() / 2)
    };
    let by_copies = rounds.into_iter().map(median).collect();
    let mut load = cluster.participants(&participants(2))?;
    let with_a_death = cluster.measure_with_a_death(&mut load, offered, given.time, 0)?;
    drop(load);
    cluster.stop()?;
    Ok(Copies { by_copies, with_a_death })
}
