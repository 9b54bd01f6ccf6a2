//! Whether the simulator's checkers can fail: every fault that can be planted in a simulated venue is planted, and has to be found by the
//! checkers that are there for it within its seeds (`walras_sim::cluster::planted`, `walras_sim::shards::planted`).

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use anyhow::{Context, ensure};
use walras_sim::{Found, Missed, cluster, shards};

/// All that can be planted.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Cluster(cluster::Mutation),
    Shards(shards::Mutation),
}

impl Fault {
    fn all() -> Vec<Self> {
        let of_clusters = cluster::Mutation::ALL.iter().copied().map(Self::Cluster);
        of_clusters.chain(shards::Mutation::ALL.iter().copied().map(Self::Shards)).collect()
    }

    fn find(self) -> Result<Found, Missed> {
        match self {
            Self::Cluster(mutation) => cluster::planted(mutation).find(),
            Self::Shards(mutation) => shards::planted(mutation).find(),
        }
    }

    /// Seeds that have to be enough.
    fn seeds(self) -> u64 {
        let seeds = match self {
            Self::Cluster(mutation) => cluster::planted(mutation).seeds,
            Self::Shards(mutation) => shards::planted(mutation).seeds,
        };
        seeds.end() - seeds.start() + 1
    }
}

/// How many were planted, and those that were not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Searched {
    pub(super) planted: usize,
    pub(super) missed: Vec<String>,
}

impl Searched {
    pub(super) fn found_percent(&self) -> f64 {
        100.0 * (self.planted - self.missed.len()) as f64 / self.planted.max(1) as f64
    }
}

/// Plants and looks for them, one on each processor at a time; all, or in a small run those that a few seeds show.
pub(super) fn search(is_full: bool) -> anyhow::Result<Searched> {
    let faults: Vec<Fault> = Fault::all().into_iter().filter(|fault| is_full || fault.seeds() <= 3).collect();
    let (next, missed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
            match fault.find() {
                Ok(Found { seed, violation }) => eprintln!("    {fault:?}: seed {seed}, by {}", violation.check),
                Err(why) => {
                    eprintln!("    NOT FOUND: {why}");
                    missed.lock().map_err(|_| anyhow::anyhow!("another search panicked"))?.push(why.to_string());
                }
            }
        }
        anyhow::Ok(())
    };
    std::thread::scope(|scope| {
        let threads = available_parallelism().map_or(1, NonZero::get);
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        all.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow::anyhow!("a simulation panicked"))?)
    })?;
    ensure!(!faults.is_empty(), "no fault was planted");
    let missed = missed.into_inner().ok().context("another search panicked")?;
    Ok(Searched { planted: faults.len(), missed })
}
