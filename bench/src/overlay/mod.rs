//! The overlay tree: what a relay passes on, next to a plain one of batched system calls; how long a message takes over relays' sockets,
//! and to a participant behind a socket; what the binary feed costs; what a leaf gateway costs an order; how fair access holds for
//! participants of two leaf gateways; what it costs to call a strategy with a message; and the figures of a simulated cloud with a
//! thousand receivers.

mod feed;
mod last_hop;
mod latency;
mod leaf;
mod loss;
mod prober;
mod relay;
mod simulated;
mod stamped;
#[cfg(feature = "strategies")]
mod strategies;

use std::path::PathBuf;

use anyhow::ensure;

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
    "relay_joined_vs_sendmmsg",
    "relay_hedged_vs_plain",
    "socket_latency_p50_us_n100",
    "socket_tree_vs_unicast_n100",
    "socket_hedged_p99_ratio_n100",
    "socket_model_2_p50_us",
    "socket_model_2_jitter_us",
    "tree_vs_unicast_n100",
    "n1000_vs_n100",
    "window_1us_percent_n100",
    "window_1us_percent_n1000",
    "window_1us_product_percent_n100",
    "window_1us_product_percent_n1000",
    "hedged_p99_ratio_n100",
    "hedged_window_p99_ratio_n100",
    "cloudex_latency_ratio_n100",
    "cloudex_holding_ratio_n100",
    "cloudex_product_latency_ratio_n100",
    "cloudex_product_holding_ratio_n100",
    "loq_burst_ratio",
    "loq_latency_ratio",
    "leaf_cpu_us_per_order",
    "leaf_relay_cpu_us_per_order",
    "leaf_p50_extra_us",
    "leaf_inversions_1ms_percent",
    "relay_lost_at_80_percent",
    "feed_ns_per_event_encode",
    "feed_ns_per_event_apply",
    "wasm_delivery_ns",
];

/// Why a program lacks the figures of strategies, and how one that has them is built.
const WITHOUT_STRATEGIES: &str = "wasm_* are missing: this program was built without the feature `strategies`; `bench/run.sh overlay` \
                                  builds it in and runs it, as `cargo build --release -p walras-bench --features strategies` builds it";

/// Measures, and records.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    if !cfg!(feature = "strategies") {
        // What is recorded has their figures: nobody waits minutes for what is not written then.
        ensure!(!config.is_full, "overlay.json was not written: {WITHOUT_STRATEGIES}");
        report.note(WITHOUT_STRATEGIES);
    }
    report.rounds(config.rounds);
    report.require(REQUIRED);
    feed::run(config, report)?;
    relay::run(config, report)?;
    loss::run(config, report)?;
    latency::run(config, report)?;
    last_hop::run(config, report)?;
    leaf::run(config, report)?;
    prober::run(config, report)?;
    #[cfg(feature = "strategies")]
    strategies::run(config, report)?;
    simulated::run(&config.jasper, config.is_full, report)
}
