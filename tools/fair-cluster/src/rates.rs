//! The highest rate of orders at which a cluster holds what fair access promises.

use std::time::Duration;

use anyhow::ensure;
use walras_client::cluster::{ClusterLoad, Offered};

use crate::{FairCluster, Measured};

/// What a rate has to hold, in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Answered of what was offered, at least.
    pub answered_min: f64,
    /// Orders that left the hold after one with a later stamp, at most: d_s holds.
    pub orders_late_max: f64,
    /// Publications that came to some gateway after their release time, at most.
    pub market_data_late_max: f64,
}

impl Limits {
    /// d_s is steered to one order in a hundred.
    pub const USUAL: Self = Self { answered_min: 97.0, orders_late_max: 2.0, market_data_late_max: 5.0 };
}

impl Measured {
    /// Orders answered while it was measured, in percent of those offered.
    #[must_use]
    pub fn answered_percent(&self) -> f64 {
        let offered = self.report.offered_per_second.unwrap_or(0) as f64;
        100.0 * self.report.acknowledged_per_second / offered
    }

    /// Of all orders taken into the hold, those that left it after one with a later stamp, in percent.
    #[must_use]
    pub fn orders_late_percent(&self) -> f64 {
        100.0 * self.sequenced.out_of_sequence as f64 / self.sequenced.held.max(1) as f64
    }

    /// Publications that came to some gateway after their release time, in percent; 0 where market data is not held.
    #[must_use]
    pub fn market_data_late_percent(&self) -> f64 {
        self.released.unwrap_or_default().unfair_percent()
    }

    /// Processors that all roles took together.
    #[must_use]
    pub fn processors(&self) -> f64 {
        let taken = self.processor;
        let all_ns = taken.leader_ns + taken.followers_ns + taken.gateways_ns + taken.participants_ns;
        all_ns as f64 / 1e9 / self.report.seconds.max(1e-9)
    }

    /// Whether it keeps within limits.
    #[must_use]
    pub fn holds(&self, limits: &Limits) -> bool {
        self.answered_percent() >= limits.answered_min
            && self.orders_late_percent() <= limits.orders_late_max
            && self.market_data_late_percent() <= limits.market_data_late_max
    }

    /// A line about it.
    #[must_use]
    pub fn line(&self) -> String {
        format!(
            "{}/s: {:.1} % answered in time, p50 {} us, d_s {} us, {:.2} % of orders late, {:.2} % of {} publications late, {:.2} processors",
            self.report.offered_per_second.unwrap_or(0),
            self.answered_percent(),
            self.report.latency.p50_ns / 1_000,
            self.sequenced.delay_ns / 1_000,
            self.orders_late_percent(),
            self.market_data_late_percent(),
            self.released.unwrap_or_default().judged,
            self.processors(),
        )
    }
}

/// Tries rates from the lowest on clusters side by side, each rate for so long after as long to warm up, until one of the clusters does
/// not hold; what each measured at the highest rate that all held, and nothing where not even the lowest one was held.
///
/// # Errors
/// When an answer is wrong, or no gateway reports when market data came.
pub fn highest_held(
    clusters: &[FairCluster],
    loads: &mut [ClusterLoad],
    rates: &[u64],
    limits: &Limits,
    time: Duration,
) -> anyhow::Result<Vec<Measured>> {
    let mut held = Vec::new();
    for rate in rates {
        let all = side_by_side(clusters, loads, Offered::PerSecond(*rate), time)?;
        let holds = all.iter().all(|measured| measured.holds(limits));
        for measured in &all {
            ensure!(
                measured.released.is_none_or(|released| released.judged > 0),
                "no publication was judged: do the gateways report?"
            );
            eprintln!("    {}: {}", measured.line(), if measured.holds(limits) { "holds" } else { "does not hold" });
        }
        if !holds {
            break;
        }
        held = all;
    }
    Ok(held)
}

/// One load on each cluster, all at the same time.
///
/// # Errors
/// When an answer is wrong.
pub fn side_by_side(
    clusters: &[FairCluster],
    loads: &mut [ClusterLoad],
    offered: Offered,
    time: Duration,
) -> anyhow::Result<Vec<Measured>> {
    std::thread::scope(|scope| {
        let runs: Vec<_> =
            clusters.iter().zip(loads).map(|(cluster, load)| scope.spawn(move || cluster.measure(load, offered, time))).collect();
        let joined = runs.into_iter().map(|run| run.join().map_err(|_| anyhow::anyhow!("a load's thread panicked"))?);
        joined.collect()
    })
}
