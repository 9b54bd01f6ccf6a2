//! What came of orders, to be shown.

use hdrhistogram::Histogram;
use walras_fair_access::GatewayId;
use walras_fair_access::delay::{Judged, Ppm};
use walras_fair_access::matching::MatchingCounts;
use walras_fair_access::outliers::Standing;
use walras_fair_access::resequence::GatewayCounts;

/// Outcomes of one gateway's copies, in addition to what the hold counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntakeCounts {
    /// Copies that came, counted in one of the figures below or in those of the hold.
    pub copies: u64,
    /// Dropped: the same came before, or is done.
    pub duplicates: u64,
    /// Dropped: something else came under the same number.
    pub differing: u64,
    /// Waited for an order before them.
    pub early: u64,
    /// Handed back, whatever the reason.
    pub refused: u64,
    /// Messages that were none, or asked for what no session may.
    pub malformed: u64,
    /// Came after its watermark had passed their stamps: it broke its promise.
    pub behind_watermark: u64,
    /// Orders, of any gateway, that waited until the end of their delay because this one had not shown a watermark past them.
    pub waited_for: u64,
}

/// One gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewayFigures {
    /// Which.
    pub gateway: GatewayId,
    /// Its copies.
    pub copies: IntakeCounts,
    /// What the hold says of those that it took.
    pub hold: GatewayCounts,
    /// Whether its stamps fit the others'.
    pub standing: Standing,
    /// Stamps that did not count because it was an outlier.
    pub outlier_samples: u64,
    /// Its share of unfair orders, by which d_s is steered.
    pub steering: Judged,
}

/// The intake as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntakeFigures {
    /// d_s now.
    pub delay_ns: u64,
    /// Orders whose sequence was judged, and those of them that were unfair.
    pub judged: u64,
    /// See `judged`.
    pub unfair: u64,
    /// The share over the last window, of all gateways together.
    pub unfair_recent: Ppm,
    /// The gateway whose share is the greatest: d_s follows it. `None` until one has had enough orders.
    pub worst: Option<GatewayId>,
    /// Orders of which a later one of the same price had matched before they came, next to those that matched.
    pub matching: MatchingCounts,
    /// Orders that left before the end of their delay because every gateway had shown a watermark past them.
    pub merged: u64,
    /// In the hold.
    pub held: usize,
    /// Waiting for an order before them.
    pub early: usize,
    /// How long orders were held, in nanoseconds: the median, the 99th percentile, the longest.
    pub queueing_p50_ns: u64,
    /// See `queueing_p50_ns`.
    pub queueing_p99_ns: u64,
    /// See `queueing_p50_ns`.
    pub queueing_ns_max: u64,
    /// Those that anything came from.
    pub gateways: Vec<GatewayFigures>,
}

/// How long orders were held.
#[derive(Debug)]
pub(super) struct Queueing(Histogram<u64>);

/// A minute: nothing is held that long.
const QUEUEING_NS_MAX: u64 = 60_000_000_000;

impl Queueing {
    pub(super) fn new() -> Self {
        Self(Histogram::new_with_bounds(1, QUEUEING_NS_MAX, 2).expect("bounds and precision are in range"))
    }

    pub(super) fn record(&mut self, held_ns: u64) {
        self.0.saturating_record(held_ns);
    }

    /// The median, the 99th percentile, the longest.
    pub(super) fn percentiles(&self) -> [u64; 3] {
        [self.0.value_at_quantile(0.5), self.0.value_at_quantile(0.99), self.0.max()]
    }
}
