//! How late market data comes to leaf gateways, where that arrives: the leader holds market data for as long as they need.

use std::collections::BTreeMap;

use walras_relay::deadline::{Maximum, ReportSettings};
use walras_relay::lateness::{Pieces, Reports};
use walras_sequencer::ReceiverSample;

use super::shape::Shape;

/// What a relay that lies adds to the delays that it reports.
pub(super) const LIE_NS: i64 = 30_000_000;

/// What the sender hears.
pub(super) struct Gathers {
    reports: Reports,
    pieces: Pieces,
}

impl Gathers {
    pub(super) fn new(shape: &Shape) -> Self {
        let nodes = shape.tree.layers().iter().sum::<u32>() as usize;
        Self { reports: Reports::new(ReportSettings::ROBUST, nodes), pieces: Pieces::default() }
    }

    /// A piece with this release time leaves, which is held for so long.
    pub(super) fn passed(&mut self, release_ns: u64, held_ns: u64) {
        self.pieces.passed(release_ns, held_ns);
    }

    pub(super) fn on_late(&mut self, now_ns: u64, node: u32, samples: Vec<Maximum>) {
        self.reports.on_late(now_ns, node, samples, &self.pieces);
    }

    /// What the sender hears: samples by their release times.
    pub(super) fn hears(&mut self, now_ns: u64) -> Option<BTreeMap<u64, ReceiverSample>> {
        let Self { reports, pieces } = self;
        let sample = |Maximum { packet, delay_ns }| {
            let held_ns = pieces.held_ns(packet)?;
            Some((packet, ReceiverSample { held_ns, late_ns: delay_ns }))
        };
        Some(reports.on_timer(now_ns)?.into_iter().filter_map(sample).collect())
    }
}
