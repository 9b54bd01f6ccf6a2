//! Where a receiver reports how late market data comes: to the relay above it, or to another one while that is silent.

use std::collections::HashMap;
use std::net::SocketAddr;

use walras_feed::channel::held_until;
use walras_relay::deadline::ReportSettings;
use walras_relay::keeping::Keeping;
use walras_relay::lateness::Lateness;
use walras_relay::packet::Header;

use crate::above::Above;
use crate::layout::Layout;

/// A relay that was silent for so long gets no reports.
const SILENT_NS: u64 = 1_000_000_000;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct LateReports {
    tree: u32,
    /// This receiver's number in the tree.
    node: u32,
    /// The relays, and when a packet of each came: the one of this receiver's block first, then the others of its layer, then those above.
    relays: Vec<(SocketAddr, u64)>,
    /// By address.
    places: HashMap<SocketAddr, usize>,
    /// Where the sender asks, while no relay is in, and when it did.
    sender: Option<(SocketAddr, u64)>,
    /// Which relays bring packets.
    pub(crate) above: Above,
    lateness: Lateness,
    next_ns: u64,
}

impl LateReports {
    /// Of the receiver at a place of the last layer.
    pub(crate) fn of(layout: &Layout, place: u32) -> Self {
        let (layers, last) = (&layout.layers, layout.layers.len() - 1);
        let mut relays = Vec::new();
        if let Some(above) = last.checked_sub(1).map(|above| &layers[above]) {
            let own = layout.tree.block_of(last, place) as usize % above.len();
            relays.extend(above[own..].iter().chain(&above[..own]).copied());
            relays.extend(layers[..last - 1].iter().rev().flatten().copied());
        }
        Self {
            tree: layout.tree_number,
            node: layout.tree.relays() + place,
            places: (0..).zip(&relays).map(|(at, address)| (*address, at)).collect(),
            relays: relays.into_iter().map(|address| (address, 0)).collect(),
            sender: None,
            above: Above::of(layout, place),
            lateness: Lateness::default(),
            next_ns: 0,
        }
    }

    /// A packet of the tree came.
    pub(crate) fn from(&mut self, now_ns: u64, source: SocketAddr) {
        if let Some(place) = self.places.get(&source) {
            self.relays[*place].1 = now_ns;
        }
    }

    /// The sender says that it is there.
    pub(crate) fn asked(&mut self, now_ns: u64, by: SocketAddr) {
        self.sender = Some((by, now_ns));
    }

    /// The first copy of a packet came, by the clock by which it is released.
    pub(crate) fn first(&mut self, venue_ns: u64, header: &Header) {
        if let Some(release_ns) = held_until(header) {
            self.lateness.packet(venue_ns, release_ns);
        }
    }

    /// Packets that came after their release time.
    pub(crate) const fn late(&self) -> u64 {
        self.lateness.late()
    }

    /// A report that is due, and to whom.
    pub(crate) fn due(&mut self, now_ns: u64, venue_ns: Option<u64>) -> Option<(Keeping, u32, SocketAddr)> {
        let venue_ns = venue_ns.filter(|_| now_ns >= self.next_ns)?;
        self.next_ns = now_ns.saturating_add(ReportSettings::ROBUST.interval_ns);
        // Taken even if there is no one to report to: the next report is about what comes from now on.
        let samples = self.lateness.report(venue_ns);
        Some((Keeping::Late { node: self.node, samples }, self.tree, self.to(now_ns)?))
    }

    /// Which relays bring nothing, where that is to be said, and to whom: one that brings something, which passes it on to the sender.
    pub(crate) fn mute(&mut self, now_ns: u64) -> Option<(Vec<Keeping>, u32, SocketAddr)> {
        let says = self.above.says(now_ns);
        if says.is_empty() { None } else { Some((says, self.tree, self.to(now_ns)?)) }
    }

    /// Where it reports.
    fn to(&self, now_ns: u64) -> Option<SocketAddr> {
        let is_heard = |at_ns: u64| now_ns.saturating_sub(at_ns) <= SILENT_NS;
        let relay = self.relays.iter().find(|(_, at_ns)| is_heard(*at_ns)).map(|(relay, _)| *relay);
        let sender = || self.sender.filter(|(_, at_ns)| now_ns.saturating_sub(*at_ns) <= 3 * SILENT_NS).map(|(sender, _)| sender);
        relay.or_else(sender)
    }
}

#[cfg(test)]
mod tests {
    use walras_feed::channel::{ChannelId, Trees, View};
    use walras_relay::live::{Live, join};
    use walras_relay::packet::{Kind, TreeKey};
    use walras_relay::tree::Tree;
    use walras_types::InstrumentId;

    use super::*;

    const MS: u64 = 1_000_000;
    const BEGIN_NS: u64 = 1_700_000_000_000_000_000;

    fn address(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    /// Two relays, above three more, above six receivers.
    fn reports(place: u32) -> LateReports {
        let layers: Vec<Vec<SocketAddr>> = vec![
            (0..2).map(|at| address(10 + at)).collect(),
            (0..3).map(|at| address(20 + at)).collect(),
            (0..6).map(|at| address(30 + at)).collect(),
        ];
        let tree = Tree::of_layers(vec![2, 3, 6]).unwrap();
        let (key, trees) = (TreeKey::new([1; 32]), Trees::ONE);
        LateReports::of(&Layout { tree_number: 7, hedge: 1, tree, layers, key, trees, index: 0 }, place)
    }

    fn to(reports: &mut LateReports, now_ns: u64) -> Option<u16> {
        reports.due(now_ns, Some(now_ns)).map(|(keeping, tree, to)| {
            assert!(matches!(keeping, Keeping::Late { node: 8, .. }) && tree == 7, "{keeping:?}");
            to.port()
        })
    }

    #[test]
    fn reports_go_to_the_own_relay_and_to_another_one_while_that_is_silent() {
        let mut reports = reports(3);
        assert_eq!(to(&mut reports, BEGIN_NS), None, "nobody is there");
        let at = |ms: u64| BEGIN_NS + ms * MS;
        for port in [10, 20, 22, 99] {
            reports.from(at(100), address(port));
        }
        assert_eq!(to(&mut reports, at(100)), Some(22), "the next of its layer after its own, 21");
        reports.from(at(110), address(21));
        assert_eq!((to(&mut reports, at(199)), to(&mut reports, at(200))), (None, Some(21)), "one in an interval");
        reports.from(at(1_500), address(10));
        assert_eq!(to(&mut reports, at(1_500)), Some(10), "all others were silent for a second");
        reports.asked(at(4_000), address(5));
        assert_eq!((to(&mut reports, at(4_100)), to(&mut reports, at(9_000))), (Some(5), None));
        reports.from(at(9_100), address(20));
        assert_eq!(reports.due(at(9_200), None), None, "what time it is is not known");
        assert_eq!(to(&mut reports, at(9_300)), Some(20));
    }

    /// The receiver's relay answers, and brings nothing. It says so to another one.
    #[test]
    fn a_relay_that_brings_nothing_is_named_to_one_that_does() {
        let mut reports = reports(3);
        let at = |ms: u64| BEGIN_NS + ms * MS;
        let layout_tree = Tree::of_layers(vec![2, 3, 6]).unwrap();
        reports.above.view(9, 4, &std::collections::BTreeSet::new());
        let live = Live::without(&layout_tree, 4, &std::collections::BTreeSet::new());
        for packet in 1..=300 {
            let header = Header {
                kind: Kind::Data,
                count: 1,
                channel: 1,
                tree: join(7, 4),
                packet,
                first: packet,
                sent_ns: 1,
                release_ns: 0,
            };
            let mut parents = Vec::new();
            live.parents(8, packet, 1, &mut parents);
            // Relays 2, 3 and 4 have the ports from 20 on; 3 is mute.
            for (place, relay) in parents.into_iter().filter(|relay| *relay != 3).enumerate() {
                let source = address(20 + relay as u16 - 2);
                reports.from(at(packet), source);
                reports.above.copy(at(packet), &header, place == 0, 0, source);
            }
        }
        let (says, tree, to) = reports.mute(at(300)).unwrap();
        assert_eq!((says, tree, to), (vec![Keeping::Mute { node: 3, by: 8, version: 9 }], 7, address(22)));
        assert_eq!(reports.mute(at(301)), None, "not again at once");
        // Of another tree, by an unknown view and without a number nothing follows.
        let header = Header { kind: Kind::Data, count: 1, channel: 1, tree: 8, packet: 5, first: 1, sent_ns: 1, release_ns: 0 };
        for header in [header, Header { tree: join(7, 5), ..header }, Header { tree: 7, packet: 0, ..header }] {
            reports.above.copy(at(302), &header, false, 0, address(21));
        }
        assert!(reports.mute(at(400)).is_some());
    }

    #[test]
    fn what_came_late_is_counted_and_reported() {
        let mut reports = reports(3);
        let header = |channel, kind, release_ns| {
            let (packet, sent_ns) = (1, release_ns - 300);
            Header { kind, count: 1, channel, tree: 7, packet, first: 1, sent_ns, release_ns }
        };
        let (news, snapshots) = (ChannelId::instrument(View::Orders, InstrumentId(3)), ChannelId::snapshots(View::Orders));
        reports.first(BEGIN_NS + 5, &header(news.get(), Kind::Data, BEGIN_NS));
        reports.first(BEGIN_NS, &header(news.get(), Kind::Data, BEGIN_NS + 400 * MS));
        reports.first(BEGIN_NS + 5, &header(news.get(), Kind::Heartbeat, BEGIN_NS));
        reports.first(BEGIN_NS + 5, &header(snapshots.get(), Kind::Data, BEGIN_NS));
        reports.from(BEGIN_NS + 60 * MS, address(21));
        let (keeping, ..) = reports.due(BEGIN_NS + 60 * MS, Some(BEGIN_NS + 60 * MS)).unwrap();
        let Keeping::Late { samples, .. } = keeping else { panic!("{keeping:?}") };
        assert_eq!((samples.len(), samples[0].packet, samples[0].delay_ns, reports.late()), (1, BEGIN_NS, 5, 1));
    }
}
