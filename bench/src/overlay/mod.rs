//! The overlay tree: what a relay passes on, next to a plain one of batched system calls, and what the binary feed costs.

mod feed;
mod relay;

use crate::report::Report;

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Rounds; figures are medians over them.
    pub rounds: usize,
    /// How long each relay is under load, in ms.
    pub load_ms: u64,
    /// Commands of the feed's stream.
    pub commands: usize,
}

/// Measures, and records.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(config.rounds);
    report.require(&["relay_vs_sendmmsg", "feed_ns_per_event_encode", "feed_ns_per_event_apply"]);
    feed::run(config, report)?;
    relay::run(config, report)
}
