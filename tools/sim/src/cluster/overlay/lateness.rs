//! How late market data comes to leaf gateways: they report it up the tree, relays pass on the greatest of each piece, and the leader holds
//! market data for as long as they need. They also report which relays bring them nothing.

use std::collections::{BTreeMap, BTreeSet};

use walras_feed::channel::held_until;
use walras_relay::copies::Copies;
use walras_relay::deadline::{Maximum, ReportSettings};
use walras_relay::keeping::Keeping;
use walras_relay::lateness::{Lateness, Pieces, Reports};
use walras_relay::live::{Views, split};
use walras_relay::packet::Header;
use walras_sequencer::ReceiverSample;

use super::shape::{COPIES, Shape};

/// A relay that was silent for so long gets no reports.
const SILENT_NS: u64 = 1_000_000_000;
/// What a relay that lies adds to the delays that it reports.
pub(super) const LIE_NS: i64 = 30_000_000;

/// What a leaf gateway notes and reports.
pub(super) struct Reporter {
    node: u32,
    lateness: Lateness,
    /// The relays to which it may report, the first of them that is heard being the one, and when each was.
    relays: Vec<(u32, Option<u64>)>,
    next_ns: u64,
    hedge: u32,
    views: Views,
    copies: Copies,
}

impl Reporter {
    /// Of the receiver at a place of the last layer.
    pub(super) fn new(shape: &Shape, place: u32) -> Self {
        let last = shape.tree.layers().len() - 1;
        let mut firsts: Vec<u32> = vec![0];
        shape.tree.layers().iter().for_each(|width| firsts.push(firsts[firsts.len() - 1] + width));
        let (above, first) = (shape.tree.layers()[last - 1], firsts[last - 1]);
        let own = shape.tree.block_of(last, place) % above;
        let of_layer = (0..above).map(|at| first + (own + at) % above);
        let relays = of_layer.chain((0..first).rev()).map(|relay| (relay, None)).collect();
        let node = shape.tree.relays() + place;
        let (views, copies) = (Views::new(&shape.tree), Copies::new(node, shape.tree.relays(), COPIES));
        Self { node, lateness: Lateness::default(), relays, next_ns: 0, hedge: shape.hedge, views, copies }
    }

    /// A relay says which view there is.
    pub(super) fn view(&mut self, version: u64, epoch: u16, out: &BTreeSet<u32>) {
        if self.views.take(version, epoch, out) {
            self.copies.set_view(self.views.newest());
        }
    }

    /// A copy of a packet came from a relay, or from the sender.
    pub(super) fn copy(&mut self, now_ns: u64, header: &Header, is_first: bool, from: Option<u32>) {
        let (_, epoch) = split(header.tree);
        if let (true, Some(live)) = (header.packet > 0, self.views.known(epoch)) {
            self.copies.arrives(now_ns, live, (header.packet, self.hedge), is_first, |relay| from == Some(relay));
        }
    }

    /// What is to be said of relays that bring nothing, and to which relay.
    pub(super) fn mute(&mut self, now_ns: u64) -> Option<(u32, Vec<Keeping>)> {
        let (mut mute, by, version) = (Vec::new(), self.node, self.views.version());
        self.copies.on_timer(now_ns, &mut mute);
        let says: Vec<Keeping> = mute.into_iter().map(|node| Keeping::Mute { node, by, version }).collect();
        if says.is_empty() { None } else { Some((self.to(now_ns)?, says)) }
    }

    /// The relay to which it reports.
    fn to(&self, now_ns: u64) -> Option<u32> {
        let is_heard = |heard_ns: &Option<u64>| heard_ns.is_some_and(|heard_ns| now_ns - heard_ns <= SILENT_NS);
        self.relays.iter().find(|(_, heard_ns)| is_heard(heard_ns)).map(|(relay, _)| *relay)
    }

    /// A packet of a relay came.
    pub(super) fn heard(&mut self, now_ns: u64, relay: u32) {
        self.relays.iter_mut().filter(|(known, _)| *known == relay).for_each(|(_, heard_ns)| *heard_ns = Some(now_ns));
    }

    /// The first copy of a packet came, by the clock by which it is released.
    pub(super) fn first(&mut self, clock_ns: u64, header: &Header) {
        held_until(header).into_iter().for_each(|release_ns| self.lateness.packet(clock_ns, release_ns));
    }

    /// A report that is due, and to which relay.
    pub(super) fn due(&mut self, now_ns: u64, clock_ns: u64) -> Option<(u32, Keeping)> {
        if now_ns < self.next_ns {
            return None;
        }
        self.next_ns = now_ns + ReportSettings::ROBUST.interval_ns;
        let samples = self.lateness.report(clock_ns);
        Some((self.to(now_ns)?, Keeping::Late { node: self.node, samples }))
    }
}

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
