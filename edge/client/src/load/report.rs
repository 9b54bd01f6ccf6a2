//! The report of a load.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};
use std::time::Duration;

use super::{LoadOptions, Mode, Plan, Seen};
use crate::latency::LatencyReport;

/// The report of a load.
#[derive(Clone, Debug, serde::Serialize)]
pub struct LoadReport {
    /// The venue's URL.
    pub url: String,
    /// The instrument's symbol.
    pub instrument: String,
    /// What the orders did.
    pub mode: Mode,
    /// The price of the orders.
    pub price: String,
    /// Number of connections.
    pub connections: u64,
    /// Commands a second that were due.
    pub rate_per_second: u64,
    /// Commands that were sent.
    pub sent: u64,
    /// Those that took effect: durable and applied when the answer came.
    pub acknowledged: u64,
    /// Of these, orders; the others are cancels.
    pub orders_acknowledged: u64,
    /// Number of answers by the order's status after them.
    pub statuses: BTreeMap<String, u64>,
    /// Number of refusals by the reason's name.
    pub refused: BTreeMap<String, u64>,
    /// Commands without an answer when the waiting ended.
    pub unanswered: u64,
    /// Time from when the first command was due to the last answer.
    pub elapsed_ns: u64,
    /// Acknowledged commands a second.
    pub acknowledged_per_second: f64,
    /// Acknowledged orders a second.
    pub orders_per_second: f64,
    /// Time from when a command was due to its acknowledgement.
    pub latency: LatencyReport,
    /// Delay between when a command was due and when it was sent; part of the latency. If it is large, the sending machine is the
    /// limit.
    pub lateness: LatencyReport,
    /// Orders that could not be cancelled.
    pub left_open: u64,
}

impl LoadReport {
    pub(super) fn new(options: &LoadOptions, plan: &Plan, seen: Seen, elapsed: Duration, left_open: u64) -> Self {
        let refused: u64 = seen.refused.values().sum();
        let per_second = |count: u64| count as f64 / elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        Self {
            url: options.url.clone(),
            instrument: plan.quote.instrument.clone(),
            mode: options.mode,
            price: plan.quote.price.clone(),
            connections: plan.connections,
            rate_per_second: plan.rate_per_second,
            sent: seen.sent,
            acknowledged: seen.replies,
            orders_acknowledged: seen.order_replies,
            statuses: seen.statuses,
            refused: seen.refused,
            unanswered: seen.sent.saturating_sub(seen.replies + refused),
            elapsed_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
            acknowledged_per_second: per_second(seen.replies),
            orders_per_second: per_second(seen.order_replies),
            latency: seen.latency.report(),
            lateness: seen.lateness.report(),
            left_open,
        }
    }
}

impl Display for LoadReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { url, instrument, price, connections, rate_per_second, .. } = self;
        let what = match self.mode {
            Mode::Resting => "bids that rest, and their cancels,",
            Mode::Matching => "offers and the bids that take them,",
        };
        writeln!(f, "{url}: {what} on {instrument} at {price}, {rate_per_second}/s over {connections} connections")?;
        let mut line = |name: &str, value: String| writeln!(f, "  {name:<20} {value}");
        let seconds = self.elapsed_ns as f64 / 1e9;
        line("sent", format!("{} commands in {seconds:.2} s", self.sent))?;
        line(
            "acknowledged",
            format!(
                "{} ({:.0}/s), of them {} orders ({:.0}/s)",
                self.acknowledged, self.acknowledged_per_second, self.orders_acknowledged, self.orders_per_second
            ),
        )?;
        line("latency", format!("{}", self.latency))?;
        line("sent late", format!("{}", self.lateness))?;
        for (name, count) in &self.refused {
            line("refused", format!("{count} {name}"))?;
        }
        if self.unanswered > 0 {
            line("unanswered", format!("{}; the venue was given five seconds", self.unanswered))?;
        }
        if self.left_open > 0 {
            line("left open", format!("{} orders; `walras cancel --all --side buy` (or sell) takes them out", self.left_open))?;
        }
        Ok(())
    }
}
