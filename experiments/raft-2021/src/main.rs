//! Runs an experiment and rewrites its folder; `--small` runs it small and writes nothing.

use std::path::Path;

use anyhow::bail;
use walras_experiments_raft_2021::SEED;
use walras_experiments_raft_2021::cluster::{self, Loads};
use walras_experiments_raft_2021::etcd;
use walras_experiments_raft_2021::failover::{self, RANGES, Range, Timing};
use walras_figures::origin::Origin;
use walras_huge_pages::HugePages;

/// As in the venue. Every book profits: the baseline's heaps are large allocations too.
#[global_allocator]
static ALLOCATOR: HugePages = HugePages;
use walras_experiments_raft_2021::large_sell::{self, Outcome, SIZE_DETAIL, SIZES_FULL, SIZES_SMALL};
use walras_experiments_raft_2021::matching_pair::{self, Setup};
use walras_experiments_raft_2021::measure::Stopwatch;
use walras_experiments_raft_2021::record::{self, Record};
use walras_experiments_raft_2021::record_cluster::{self, RealDeaths};
use walras_experiments_raft_2021::{peer, profile, streaming};

const USAGE: &str = "usage: raft-2021 fig-4.1|fig-4.2|fig-4.3|fig-4.4|fig-4.5|fig-4.6|fig-4.7|fig-4.9|sec-3.4|all [--small]";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    Full,
    Small,
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (figure, scale) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [figure] | ["--", figure] => (figure, Scale::Full),
        [figure, "--small"] | ["--small", figure] => (figure, Scale::Small),
        _ => bail!(USAGE),
    };
    let stopwatch = Stopwatch::calibrated();
    let origin = Origin::begin();
    println!("timer overhead {:.1} ns, subtracted", stopwatch.overhead_ns);
    // exchange-core comes last: where Java is missing, the others are done by then.
    let figures = match figure {
        "all" => &["fig-4.2", "fig-4.4", "fig-4.5", "fig-4.6", "fig-4.1", "fig-4.7", "fig-4.9", "sec-3.4", "fig-4.3"][..],
        _ => &[figure],
    };
    let experiments = Path::new(env!("CARGO_MANIFEST_DIR"));
    for figure in figures {
        let record = match *figure {
            "fig-4.1" => failover(scale)?,
            "fig-4.2" => pair(scale, &stopwatch)?,
            "fig-4.3" => peer(scale, &stopwatch)?,
            "fig-4.4" => profile(scale, &stopwatch)?,
            "fig-4.5" => record::sizes(&sizes(scale, &stopwatch)?)?,
            "fig-4.6" => detail(scale, &stopwatch)?,
            "fig-4.7" => clients(scale)?,
            "fig-4.9" => cluster_sizes(scale)?,
            "sec-3.4" => calls(scale)?,
            other => bail!("there is no experiment {other}; {USAGE}"),
        };
        println!("{figure}: {:#}", record.result);
        if scale == Scale::Full {
            record.write(&origin, &stopwatch, experiments)?;
            println!("{figure}: wrote result.json, iterations.csv and plot.svg");
        }
    }
    Ok(())
}

/// Ranges whose leaders are killed as processes too.
const REAL_RANGES: [Range; 2] = [RANGES[5], RANGES[6]];

fn failover(scale: Scale) -> anyhow::Result<Record> {
    let (elections, deaths) = match scale {
        Scale::Full => (1_000, 100),
        Scale::Small => (10, 3),
    };
    // First, so that a missing program is reported before long measurements.
    let program = cluster::program()?;
    println!("{elections} simulated elections of each kind");
    let timing = Timing::LOCAL;
    let simulated = failover::simulate_all(&timing, elections, SEED)?;
    let mut real = Vec::new();
    for range in REAL_RANGES {
        println!("{deaths} deaths of leaders among three processes, {} ms", range.name());
        real.push(RealDeaths { range, deaths: cluster::deaths(&program, range, deaths)? });
    }
    record_cluster::failover(&simulated, &timing, &real)
}

fn clients(scale: Scale) -> anyhow::Result<Record> {
    let loads = scaled(scale, Loads::clients());
    let points = cluster::load(&cluster::program()?, cluster::REPLICAS, &loads, SEED)?;
    println!("etcd under the same loads");
    record_cluster::clients(&points, &etcd::measure(&[cluster::REPLICAS], &loads)?, &loads)
}

fn cluster_sizes(scale: Scale) -> anyhow::Result<Record> {
    let loads = scaled(scale, Loads::burst());
    let sizes = [3, 5, 7];
    let mut points = Vec::new();
    for replicas in sizes {
        points.extend(cluster::load(&cluster::program()?, replicas, &loads, SEED)?);
    }
    println!("etcd under the same loads");
    record_cluster::sizes(&points, &etcd::measure(&sizes, &loads)?, &loads)
}

fn scaled(scale: Scale, loads: Loads) -> Loads {
    match scale {
        Scale::Full => loads,
        Scale::Small => loads.small(),
    }
}

fn pair(scale: Scale, stopwatch: &Stopwatch) -> anyhow::Result<Record> {
    let setup = match scale {
        Scale::Full => Setup::FULL,
        Scale::Small => Setup::SMALL,
    };
    record::matching_pair(&setup, &matching_pair::run(&setup, SEED, stopwatch)?)
}

fn peer(scale: Scale, stopwatch: &Stopwatch) -> anyhow::Result<Record> {
    let setup = match scale {
        Scale::Full => peer::FULL,
        Scale::Small => peer::SMALL,
    };
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    println!("exchange-core and ours, {} pairs", setup.pairs_per_iteration);
    record::peer(&setup, &peer::run(&setup, SEED, stopwatch, &repository, &repository.join("target/raft-2021"))?)
}

fn profile(scale: Scale, stopwatch: &Stopwatch) -> anyhow::Result<Record> {
    let setup = match scale {
        Scale::Full => profile::Setup::FULL,
        Scale::Small => profile::Setup::SMALL,
    };
    println!("samples of each book for {:?}", setup.sampled);
    record::profile(&setup, &profile::run(&setup, SEED, stopwatch)?)
}

fn calls(scale: Scale) -> anyhow::Result<Record> {
    let setup = match scale {
        Scale::Full => streaming::Setup::FULL,
        Scale::Small => streaming::Setup::SMALL,
    };
    record::streaming(&setup, &streaming::run(&cluster::program()?, &setup, SEED)?)
}

fn sizes(scale: Scale, stopwatch: &Stopwatch) -> anyhow::Result<Vec<Outcome>> {
    let (sizes, iterations) = match scale {
        Scale::Full => (&SIZES_FULL[..], large_sell::ITERATIONS),
        Scale::Small => (&SIZES_SMALL[..], large_sell::ITERATIONS_SMALL),
    };
    sizes.iter().map(|size| sell(*size, iterations, stopwatch)).collect()
}

fn detail(scale: Scale, stopwatch: &Stopwatch) -> anyhow::Result<Record> {
    let (size, iterations) = match scale {
        Scale::Full => (SIZE_DETAIL, large_sell::ITERATIONS),
        Scale::Small => (SIZES_SMALL[0], large_sell::ITERATIONS_SMALL),
    };
    record::detail(&sell(size, iterations, stopwatch)?)
}

fn sell(orders_per_side: u64, iterations: u64, stopwatch: &Stopwatch) -> anyhow::Result<Outcome> {
    println!("a sell into {orders_per_side} orders a side, {iterations} times");
    large_sell::run(orders_per_side, iterations, SEED, stopwatch)
}
