//! What a relay does with a packet, a view, a question or a report, and when it is time for something. Relays on sockets and those of
//! simulations are hosts of this one state machine.
//!
//! The host gives it what arrives, and the time. The first copy of a packet goes as it is to the nodes that [`Came::First`] has; messages
//! of the relay's own wait in [`RelayMachine::says`].
//!
//! *Deliberately absent*: sockets and clocks, seals, and the figures of which a host makes its answers.
//!
//! *Invariants*
//! - No memory is allocated for a packet of a channel that is known.
//! - Until its host has taken what it says, it answers [`ANSWERED_MAX`] messages about the tree and no more.
//! - What is said of another tree says nothing of this one: trees that travel side by side have one key, and nodes of the same numbers.

use std::collections::BTreeSet;
use std::vec::Drain;

use crate::copies::{Copies, CopiesSettings};
use crate::deadline::ReportSettings;
use crate::keeping::Keeping;
use crate::lateness::{Pieces, Reports};
use crate::live::{Live, Views, split};
use crate::packet::{Header, Packet};
use crate::relay::{Arrival, Relay};
use crate::watch::{Watch, WatchEffect, WatchSettings};

/// Messages about the tree that a relay answers before its host has taken what it says.
pub const ANSWERED_MAX: usize = 64;
/// How often receivers hear a view again, some of whom may not have got it.
pub const VIEW_AGAIN_NS: u64 = 1_000_000_000;

/// What differs between hosts.
#[derive(Clone, Copy, Debug)]
pub struct MachineSettings {
    /// When a relay above is mute.
    pub copies: CopiesSettings,
    /// The release time of a packet that receivers hold until then; `None` for others.
    pub held_until: fn(&Header) -> Option<u64>,
    /// Random, so that no answer to an earlier process counts.
    pub seed: u64,
}

/// What a packet is to a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came<'m> {
    /// The first copy. It goes on as it is.
    First {
        /// To these nodes, by number, in order.
        to: &'m [u32],
        /// The view that says so.
        live: &'m Live,
        /// A hedge came before the copy of the relay's own parent.
        is_hedged: bool,
    },
    /// A further copy.
    Copy,
    /// Older than any packet that is remembered.
    TooOld,
    /// Of one more channel than there may be.
    NoRoom,
    /// A message about the tree.
    Kept,
    /// Nothing for a relay.
    Other,
}

/// See the module's documentation. `A` is an address.
#[derive(Debug)]
pub struct RelayMachine<A> {
    relay: Relay,
    /// Its number.
    me: u32,
    /// All nodes of the tree, by number.
    nodes: Vec<A>,
    held_until: fn(&Header) -> Option<u64>,
    views: Views,
    watch: Watch,
    /// Which relays above bring packets.
    copies: Copies,
    /// Who sent the newest view, with its version.
    sender: Option<(A, u64)>,
    /// The version of the view that receivers below heard last, and when.
    passed_view: (u64, u64),
    /// What receivers below say, and the pieces about which they may.
    reports: Reports,
    pieces: Pieces,
    says: Vec<(A, Keeping)>,
    /// Messages about the tree since the host took what it says.
    answered: usize,
    /// Of the last packet.
    children: Vec<u32>,
    /// Empty.
    mute: Vec<u32>,
    effects: Vec<WatchEffect>,
}

impl<A: Copy + PartialEq> RelayMachine<A> {
    /// A relay of a tree whose nodes have these addresses, by number.
    #[must_use]
    pub fn new(relay: Relay, nodes: Vec<A>, settings: MachineSettings) -> Self {
        let MachineSettings { copies, held_until, seed } = settings;
        let (me, views) = (relay.number(), Views::new(relay.tree()));
        Self {
            me,
            views,
            watch: Watch::new(me, WatchSettings::default(), seed),
            copies: Copies::new(me, relay.tree().relays(), copies),
            reports: Reports::new(ReportSettings::ROBUST, nodes.len()),
            relay,
            nodes,
            held_until,
            sender: None,
            passed_view: (0, 0),
            pieces: Pieces::default(),
            says: Vec::new(),
            answered: 0,
            children: Vec::new(),
            mute: Vec::new(),
            effects: Vec::new(),
        }
    }

    /// Its place, and the packets that it remembers.
    #[must_use]
    pub fn relay(&self) -> &Relay {
        &self.relay
    }

    /// The views that it knows.
    #[must_use]
    pub fn views(&self) -> &Views {
        &self.views
    }

    /// Who sent the newest view, and its version.
    #[must_use]
    pub fn sender(&self) -> Option<(A, u64)> {
        self.sender
    }

    /// A packet with the tree's seal arrives; `from` is the address that it comes from, where that is known. `now_ns` never goes back.
    pub fn on_packet(&mut self, now_ns: u64, from: Option<A>, packet: &Packet<'_>) -> Came<'_> {
        let header = packet.header();
        let (tree, epoch) = split(header.tree);
        let arrival = self.relay.arrives(&Header { tree, ..*header });
        let is_first = match arrival {
            Arrival::First => true,
            Arrival::Copy | Arrival::TooOld => false,
            Arrival::NoRoom => return Came::NoRoom,
            Arrival::NotOurs => return if self.hears(now_ns, from, packet) { Came::Kept } else { Came::Other },
        };
        let (me, held_until) = (self.me, self.held_until);
        let Self { relay, nodes, views, copies, pieces, children, .. } = self;
        let hedge = relay.hedge();
        if let Some(live) = views.known(epoch) {
            let is_from = |parent: u32| from.is_some() && nodes.get(parent as usize).copied() == from;
            copies.arrives(now_ns, live, (header.packet, hedge), is_first, is_from);
            copies.skipped(now_ns, live, (header.packet, hedge), relay.skipped());
        }
        if !is_first {
            return if arrival == Arrival::Copy { Came::Copy } else { Came::TooOld };
        }
        if let Some(release_ns) = held_until(header) {
            pieces.passed(release_ns, 0);
        }
        let live = views.of(epoch);
        let own = live.own_parent(me, header.packet, hedge).and_then(|parent| nodes.get(parent as usize).copied());
        let is_hedged = own.is_some() && own != from;
        children.clear();
        live.children(Some(me), header.packet, hedge, children);
        Came::First { to: children, live, is_hedged }
    }

    /// Whether a packet is a message about the tree that a relay answers or passes on.
    fn hears(&mut self, now_ns: u64, from: Option<A>, packet: &Packet<'_>) -> bool {
        let is_of_tree = split(packet.header().tree).0 == self.relay.tree_number();
        let Some(from) = from.filter(|_| is_of_tree && self.answered < ANSWERED_MAX) else { return false };
        match Keeping::decode(packet) {
            Some(Keeping::Ping { question }) => self.says.push((from, Keeping::Pong { question })),
            Some(Keeping::Pong { question }) => self.watch.on_pong(now_ns, question),
            Some(Keeping::View { version, epoch, out }) => self.on_view(now_ns, from, (version, epoch, out)),
            // Of a receiver, which knows no sender.
            Some(mute @ Keeping::Mute { .. }) => self.says.extend(self.sender.map(|(to, _)| (to, mute))),
            Some(Keeping::Late { node, samples }) => self.reports.on_late(now_ns, node, samples, &self.pieces),
            Some(Keeping::Taken { .. } | Keeping::Silent { .. }) | None => return false,
        }
        self.answered += 1;
        true
    }

    fn on_view(&mut self, now_ns: u64, from: A, (version, epoch, out): (u64, u16, BTreeSet<u32>)) {
        if !self.views.take(version, epoch, &out) {
            return;
        }
        if self.sender.is_none_or(|(_, newest)| version >= newest) {
            self.sender = Some((from, version));
        }
        self.watch.set_view(now_ns, self.views.newest());
        self.copies.set_view(self.views.newest());
        self.says.push((from, Keeping::Taken { node: self.me, version }));
        self.pass_view(now_ns, version, &Keeping::View { version, epoch, out });
    }

    /// Says to the receivers of its block which view there is, now and then.
    fn pass_view(&mut self, now_ns: u64, version: u64, view: &Keeping) {
        let Self { me, nodes, views, passed_view, says, .. } = self;
        let (last, said_ns) = *passed_view;
        let is_said = version == last && now_ns.saturating_sub(said_ns) < VIEW_AGAIN_NS;
        if is_said || version != views.version() {
            return;
        }
        let live = views.newest();
        let receivers = live.reporters(*me).iter().filter(|node| live.is_receiver(**node));
        let to = receivers.filter_map(|receiver| nodes.get(*receiver as usize));
        says.extend(to.map(|to| (*to, view.clone())));
        *passed_view = (version, now_ns);
    }

    /// Does what it is time for. Each call after another costs little, however soon it comes.
    pub fn on_timer(&mut self, now_ns: u64) {
        self.watch_sibling(now_ns);
        self.report_mute(now_ns);
        self.report_late(now_ns);
    }

    fn watch_sibling(&mut self, now_ns: u64) {
        let Self { nodes, watch, sender, says, effects, .. } = self;
        watch.on_timer(now_ns, effects);
        for effect in effects.drain(..) {
            match effect {
                WatchEffect::Ping { node, question } => {
                    says.extend(nodes.get(node as usize).map(|to| (*to, Keeping::Ping { question })));
                }
                WatchEffect::Report { node } => {
                    says.extend(sender.map(|(to, version)| (to, Keeping::Silent { node, version })));
                }
            }
        }
    }

    /// Says to the sender which relays above bring nothing.
    fn report_mute(&mut self, now_ns: u64) {
        let Self { me, copies, sender, says, mute, .. } = self;
        copies.on_timer(now_ns, mute);
        let by = *me;
        for node in mute.drain(..) {
            says.extend(sender.map(|(to, version)| (to, Keeping::Mute { node, by, version })));
        }
    }

    /// Passes on what receivers below say of how late market data comes.
    fn report_late(&mut self, now_ns: u64) {
        let Self { me, nodes, views, sender, reports, says, .. } = self;
        let Some(samples) = reports.on_timer(now_ns) else { return };
        let parent = views.newest().reports_to(*me).and_then(|parent| nodes.get(parent as usize).copied());
        let to = parent.or(sender.map(|(sender, _)| sender));
        says.extend(to.map(|to| (to, Keeping::Late { node: *me, samples })));
    }

    /// What it has to say, each with the address to which it goes. The host sends it after the packets that go on.
    pub fn says(&mut self) -> Drain<'_, (A, Keeping)> {
        self.answered = 0;
        self.says.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadline::Maximum;
    use crate::live::join;
    use crate::packet::{Kind, PacketWriter, TreeKey};
    use crate::relay::RelaySettings;
    use crate::tree::Tree;

    const MS: u64 = 1_000_000;
    const TREE: u32 = 3;
    /// The sender's address; a node's is its number.
    const SENDER: u32 = 900;
    const KEEPER: u32 = 901;

    fn key() -> TreeKey {
        TreeKey::new([5; 32])
    }

    /// Relay 3, the second of the second layer: two relays above it, six receivers below three of its layer.
    fn machine() -> RelayMachine<u32> {
        let tree = Tree::of_layers(vec![2, 3, 6]).unwrap();
        let settings = RelaySettings { layer: 1, place: 1, tree: TREE, hedge: 1, packets_remembered: 64, channels_max: 2 };
        let held_until = |header: &Header| (header.release_ns > 0).then_some(header.release_ns);
        let settings_of_machine = MachineSettings { copies: CopiesSettings::default(), held_until, seed: 7 };
        RelayMachine::new(Relay::new(tree, settings), (0..11).collect(), settings_of_machine)
    }

    fn hear(machine: &mut RelayMachine<u32>, now_ns: u64, from: u32, keeping: &Keeping) -> bool {
        hear_of(machine, TREE, now_ns, from, keeping)
    }

    fn hear_of(machine: &mut RelayMachine<u32>, tree: u32, now_ns: u64, from: u32, keeping: &Keeping) -> bool {
        let mut bytes = Vec::new();
        keeping.encode(tree, 1, &key(), &mut bytes);
        machine.on_packet(now_ns, Some(from), &Packet::decode(&bytes, &key()).unwrap()) == Came::Kept
    }

    fn data(channel: u32, packet: u64, epoch: u16, release_ns: u64) -> Vec<u8> {
        let (mut writer, mut bytes) = (PacketWriter::default(), Vec::new());
        assert!(writer.push(&[1; 9]));
        let tree = join(TREE, epoch);
        let header = Header { kind: Kind::Data, count: 1, channel, tree, packet, first: packet, sent_ns: 1, release_ns };
        writer.finish(&header, &key(), &mut bytes);
        bytes
    }

    fn said(machine: &mut RelayMachine<u32>) -> Vec<(u32, Keeping)> {
        machine.says().collect()
    }

    fn view(version: u64, epoch: u16, out: &[u32]) -> Keeping {
        Keeping::View { version, epoch, out: out.iter().copied().collect() }
    }

    #[test]
    fn first_copies_go_on_by_the_view_that_they_name_and_others_end() {
        let mut machine = machine();
        assert!(hear(&mut machine, 0, KEEPER, &view(4, 1, &[4])));
        for (epoch, out) in [(1, vec![4]), (0, vec![])] {
            let bytes = data(1, 5 + u64::from(epoch), epoch, 0);
            let packet = Packet::decode(&bytes, &key()).unwrap();
            let (mut expected, number) = (Vec::new(), packet.header().packet);
            let live = Live::without(&Tree::of_layers(vec![2, 3, 6]).unwrap(), epoch, &out.into_iter().collect());
            live.children(Some(3), number, 1, &mut expected);
            let own = live.own_parent(3, number, 1).unwrap();
            let came = machine.on_packet(1, Some(1 - own), &packet);
            assert_eq!(came, Came::First { to: &expected, live: &live, is_hedged: true });
            assert_eq!(machine.on_packet(1, Some(own), &packet), Came::Copy);
        }
        let mut came = |channel, packet| {
            let bytes = data(channel, packet, 1, 0);
            let came = machine.on_packet(2, None, &Packet::decode(&bytes, &key()).unwrap());
            if let Came::First { .. } = came { None } else { Some(format!("{came:?}")) }
        };
        assert_eq!([came(2, 9), came(3, 9)], [None, Some("NoRoom".to_owned())]);
        assert_eq!([came(2, 500), came(2, 9)], [None, Some("TooOld".to_owned())]);
    }

    /// The keeper says a view ten times a second. Receivers hear it at once, and again after a second.
    #[test]
    fn receivers_of_its_block_hear_a_view_now_and_then() {
        let mut machine = machine();
        let heard = |machine: &mut RelayMachine<u32>, now_ns: u64, said_view: &Keeping| {
            hear(machine, now_ns, KEEPER, said_view);
            let says = said(machine);
            let receivers: Vec<u32> = says.iter().filter(|(_, keeping)| keeping == said_view).map(|(to, _)| *to).collect();
            assert_eq!(says.len(), receivers.len() + usize::from(says.first().is_some_and(|(to, _)| *to == KEEPER)), "{says:?}");
            receivers
        };
        let own = Live::all(machine.relay().tree()).reporters(3).to_vec();
        assert!(own.len() == 2 && own.iter().all(|node| *node >= 5), "{own:?}");
        assert_eq!(heard(&mut machine, 0, &view(4, 1, &[])), own);
        let again: Vec<u64> = (1..25).filter(|at| !heard(&mut machine, at * 100 * MS, &view(4, 1, &[])).is_empty()).collect();
        assert_eq!(again, [10, 20]);
        assert_eq!(heard(&mut machine, 2_401 * MS, &view(6, 2, &[4])).len(), 3, "a new one at once, and two relays are left");
        assert_eq!(heard(&mut machine, 5_000 * MS, &view(4, 1, &[])), [], "there is a newer one");
    }

    #[test]
    fn questions_are_answered_and_what_is_for_the_sender_goes_to_the_newest_one() {
        let mut machine = machine();
        let mute = |version| Keeping::Mute { node: 4, by: 9, version };
        assert!(hear(&mut machine, 0, 9, &mute(1)));
        assert_eq!(said(&mut machine), [], "no sender is known");
        hear(&mut machine, 0, SENDER, &view(4, 1, &[]));
        hear(&mut machine, 0, KEEPER, &view(9, 2, &[]));
        hear(&mut machine, 0, SENDER, &view(4, 1, &[]));
        said(&mut machine);
        assert!(hear(&mut machine, 1, 9, &mute(9)) && hear(&mut machine, 1, 2, &Keeping::Ping { question: 8 }));
        assert_eq!(said(&mut machine), [(KEEPER, mute(9)), (2, Keeping::Pong { question: 8 })]);
        for keeping in [Keeping::Taken { node: 3, version: 9 }, Keeping::Silent { node: 3, version: 9 }] {
            assert!(!hear(&mut machine, 1, 9, &keeping), "{keeping:?}");
        }
        // Its sibling answers nothing.
        let mut reports = Vec::new();
        for at in 0..20 {
            machine.on_timer(at * 5 * MS);
            reports.extend(said(&mut machine).into_iter().filter(|(_, keeping)| !matches!(keeping, Keeping::Ping { .. })));
        }
        let expected = (KEEPER, Keeping::Silent { node: 4, version: 9 });
        assert!(reports.len() > 5 && reports.iter().all(|report| *report == expected), "{reports:?}");
    }

    /// Relay 0 answers everybody and brings nothing. What receivers below say of late pieces goes to the relay above.
    #[test]
    fn it_reports_a_mute_relay_and_what_receivers_say() {
        let mut machine = machine();
        hear(&mut machine, 0, KEEPER, &view(9, 2, &[]));
        for number in 1..=400 {
            let bytes = data(1, number, 2, if number == 400 { 1 << 40 } else { 0 });
            let packet = Packet::decode(&bytes, &key()).unwrap();
            machine.on_packet(number * MS, Some(1), &packet);
        }
        let samples = vec![Maximum { packet: 1 << 40, delay_ns: 5 }, Maximum { packet: 7, delay_ns: 5 }];
        assert!(hear(&mut machine, 400 * MS, 7, &Keeping::Late { node: 7, samples }));
        said(&mut machine);
        let mut says = Vec::new();
        for at in 0..10 {
            machine.on_timer((400 + at * 100) * MS);
            says.extend(said(&mut machine));
        }
        assert!(says.contains(&(KEEPER, Keeping::Mute { node: 0, by: 3, version: 9 })), "{says:?}");
        let parent = Live::all(machine.relay().tree()).reports_to(3).unwrap();
        let late = Keeping::Late { node: 3, samples: vec![Maximum { packet: 1 << 40, delay_ns: 5 }] };
        assert!(says.contains(&(parent, late)), "{says:?}");
    }

    /// A view of the tree next to it, which has relays of the same numbers, would send its packets astray.
    #[test]
    fn what_is_said_of_another_tree_is_not_taken() {
        let mut machine = machine();
        for keeping in [view(4, 1, &[4]), Keeping::Ping { question: 1 }, Keeping::Mute { node: 0, by: 9, version: 1 }] {
            assert!(!hear_of(&mut machine, TREE + 1, 0, SENDER, &keeping), "{keeping:?}");
        }
        assert_eq!((machine.views().version(), machine.sender(), said(&mut machine)), (0, None, vec![]));
        assert!(hear(&mut machine, 0, SENDER, &view(4, 1, &[4])));
    }

    #[test]
    fn more_messages_than_it_answers_wait_for_nothing() {
        let mut machine = machine();
        let ping = Keeping::Ping { question: 1 };
        assert_eq!((0..200).filter(|_| hear(&mut machine, 0, 4, &ping)).count(), ANSWERED_MAX);
        assert_eq!(said(&mut machine).len(), ANSWERED_MAX);
        assert!(hear(&mut machine, 0, 4, &ping));
    }
}
