//! The overlay tree: what a relay passes on, next to a plain one of batched system calls; what the binary feed costs; what a leaf gateway
//! costs an order; what it costs to call a strategy with a message; and the figures of a simulated cloud with a thousand receivers.

mod feed;
mod leaf;
mod relay;
mod simulated;
#[cfg(feature = "strategies")]
mod strategies;

use std::path::PathBuf;

use crate::report::Report;

/// What is run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Rounds; figures are medians over them.
    pub rounds: usize,
    /// How long each relay is under load, in ms.
    pub load_ms: u64,
    /// Commands of the feed's stream.
    pub commands: usize,
    /// Whether all is measured, for as long as it takes.
    pub is_full: bool,
    /// The program that a replica and a leaf gateway run.
    pub walras: PathBuf,
    /// The program of the simulated figures.
    pub jasper: PathBuf,
    /// Where logs lie.
    pub scratch: PathBuf,
}

/// Without these nothing is written.
const REQUIRED: &[&str] = &[
    "relay_vs_sendmmsg",
    "tree_vs_unicast_n100",
    "n1000_vs_n100",
    "window_1us_percent_n100",
    "window_1us_percent_n1000",
    "loq_burst_ratio",
    "loq_latency_ratio",
    "leaf_cpu_us_per_order",
    "leaf_p50_extra_us",
    "feed_ns_per_event_encode",
    "feed_ns_per_event_apply",
];

/// Measures, and records.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(config.rounds);
    report.require(REQUIRED);
    feed::run(config, report)?;
    relay::run(config, report)?;
    leaf::run(config, report)?;
    #[cfg(feature = "strategies")]
    strategies::run(config, report)?;
    #[cfg(not(feature = "strategies"))]
    report.note("without strategies: bench/run.sh builds them in");
    simulated::run(&config.jasper, config.is_full, report)
}
