//! A relay: the product's state machines, without the socket of `edge/relay-link`.

use std::collections::{BTreeSet, VecDeque};

use walras_feed::channel::held_until;
use walras_relay::copies::Copies;
use walras_relay::keeping::Keeping;
use walras_relay::live::{Views, split};
use walras_relay::packet::{Header, Packet};
use walras_relay::relay::{Arrival, Relay, RelaySettings};
use walras_relay::watch::{Watch, WatchEffect, WatchSettings};

use super::lateness::{Gathers, LIE_NS};
use super::links::{Address, Datagram};
use super::shape::{COPIES, DIRECT, Shape, TREE};
use crate::cluster::mutation::Mutation;

/// Datagrams that wait in the socket of a relay that stands still, at most.
const WAITING_MAX: usize = 256;
const PACKETS_REMEMBERED: usize = 1 << 12;
const CHANNELS_MAX: usize = 64;

/// One place of the tree, with a process or without.
pub(super) struct RelayPlace {
    pub(super) process: Option<RelayProcess>,
    /// When a process starts again, if there is none.
    pub(super) starts_ns: u64,
    /// While it stands still: until when, and what waits in its socket.
    pub(super) stalled: Option<(u64, VecDeque<Datagram>)>,
    /// It reports all others as silent.
    pub(super) is_lying: bool,
    /// It answers and forwards nothing.
    pub(super) is_mute: bool,
}

impl RelayPlace {
    /// Whether the relay stands still: then the datagram waits, or is lost if there is no room.
    pub(super) fn waits(&mut self, datagram: &Datagram) -> bool {
        let Some((_, waiting)) = &mut self.stalled else { return false };
        if waiting.len() < WAITING_MAX {
            waiting.push_back(datagram.clone());
        }
        true
    }
}

pub(super) struct RelayProcess {
    relay: Relay,
    tree: u32,
    /// Its number in the tree.
    me: u32,
    /// Its number among all processes of relays.
    pub(super) life: u64,
    views: Views,
    watch: Watch,
    /// Which relays above bring packets, where nodes watch that.
    copies: Option<Copies>,
    /// Who sent the newest view, with its version.
    sender: Option<(Address, u64)>,
    /// How late pieces come to receivers below.
    gathers: Gathers,
    effects: Vec<WatchEffect>,
    mutation: Option<Mutation>,
}

/// What a relay wants to happen.
#[derive(Debug, Default)]
pub(super) struct RelayActs {
    /// It says this to the tree.
    pub(super) says: Vec<(Address, Keeping)>,
    /// It passes the packet on to these nodes, by a view without those relays.
    pub(super) passes: Option<(Vec<u32>, BTreeSet<u32>)>,
}

impl RelayProcess {
    pub(super) fn new(shape: &Shape, (tree, me): (u32, u32), life: u64, mutation: Option<Mutation>) -> Self {
        let (layer, place) = shape.place(me);
        let settings = RelaySettings {
            layer,
            place,
            tree: TREE + tree,
            hedge: shape.hedge,
            packets_remembered: PACKETS_REMEMBERED,
            channels_max: CHANNELS_MAX,
        };
        let relay = Relay::new(shape.tree.clone(), settings);
        let watch = Watch::new(me, WatchSettings::default(), life << 32);
        let (views, effects) = (Views::new(&shape.tree), Vec::new());
        let copies = shape.has_copies.then(|| Copies::new(me, shape.tree.relays(), COPIES));
        Self { relay, tree, me, life, views, watch, copies, sender: None, gathers: Gathers::new(shape), effects, mutation }
    }

    /// A packet of the tree arrives, from a relay of it or from somebody else.
    pub(super) fn on_packet(&mut self, now_ns: u64, (from, from_relay): (Address, Option<u32>), packet: &Packet<'_>) -> RelayActs {
        let Self { relay, me, views, watch, copies, sender, gathers, mutation, .. } = self;
        let mut acts = RelayActs::default();
        let header = packet.header();
        let (tree, epoch) = split(header.tree);
        let arrival = match relay.arrives(&Header { tree, ..*header }) {
            Arrival::Copy if *mutation == Some(Mutation::RelayPassesCopies) => Arrival::First,
            arrival => arrival,
        };
        let is_copy = matches!(arrival, Arrival::First | Arrival::Copy | Arrival::TooOld);
        if let (true, Some(copies), Some(live)) = (is_copy, copies.as_mut(), views.known(epoch)) {
            let packet = (header.packet, relay.hedge());
            copies.arrives(now_ns, live, packet, arrival == Arrival::First, |parent| from_relay == Some(parent));
            copies.skipped(now_ns, live, packet, relay.skipped());
        }
        match arrival {
            Arrival::First => {
                held_until(header).into_iter().for_each(|release_ns| gathers.passed(release_ns, 0));
                let (live, mut children) = (views.of(epoch), Vec::new());
                let forgets = *mutation == Some(Mutation::RelayDropsHedges) && epoch > 0 && !live.out().is_empty();
                live.children(Some(*me), header.packet, if forgets { 0 } else { relay.hedge() }, &mut children);
                acts.passes = Some((children, live.out().clone()));
            }
            Arrival::Copy | Arrival::TooOld | Arrival::NoRoom => {}
            Arrival::NotOurs => match Keeping::decode(packet) {
                Some(Keeping::Ping { question }) => acts.says.push((from, Keeping::Pong { question })),
                Some(Keeping::Pong { question }) => watch.on_pong(now_ns, question),
                Some(Keeping::View { version, epoch, out }) => {
                    if views.take(version, epoch, &out) {
                        if sender.is_none_or(|(_, newest)| version >= newest) {
                            *sender = Some((from, version));
                        }
                        watch.set_view(now_ns, views.newest());
                        acts.says.push((from, Keeping::Taken { node: *me, version }));
                        if let Some(copies) = copies {
                            let live = views.newest();
                            copies.set_view(live);
                            // Leaf gateways alone look. They have the same number in all trees.
                            let leaves = live.reporters(*me).iter().filter(|node| **node >= relay.tree().relays() + DIRECT);
                            let view = Keeping::View { version, epoch, out };
                            acts.says.extend(leaves.map(|leaf| (Address::Node(*leaf), view.clone())));
                        }
                    }
                }
                Some(mute @ Keeping::Mute { .. }) => acts.says.extend(sender.map(|(to, _)| (to, mute))),
                Some(Keeping::Late { node, samples }) => gathers.on_late(now_ns, node, samples),
                Some(Keeping::Taken { .. } | Keeping::Silent { .. }) | None => {}
            },
        }
        acts
    }

    /// Passes on what receivers below say of how late market data comes, or more than that. The next node up, and what it hears.
    pub(super) fn reports(&mut self, shape: &Shape, now_ns: u64, exaggerates: bool) -> Option<(Address, Keeping)> {
        let more_ns = if exaggerates || self.mutation == Some(Mutation::RelayExaggerates) { LIE_NS } else { 0 };
        let late = self.gathers.passes_on(now_ns, self.me, more_ns)?;
        let parent = self.views.newest().reports_to(self.me).map(|parent| Address::Node(shape.number(self.tree, parent)));
        Some((parent.or(self.sender.map(|(sender, _)| sender))?, late))
    }

    /// Watches its sibling. It reports the relay `lies` as silent, whether that is true or not.
    pub(super) fn on_timer(&mut self, shape: &Shape, now_ns: u64, lies: Option<u32>) -> RelayActs {
        let mut acts = RelayActs::default();
        self.watch.on_timer(now_ns, &mut self.effects);
        for effect in self.effects.drain(..) {
            match effect {
                WatchEffect::Ping { node, question } => {
                    acts.says.push((Address::Node(shape.number(self.tree, node)), Keeping::Ping { question }));
                }
                WatchEffect::Report { node } => {
                    acts.says.extend(self.sender.map(|(to, version)| (to, Keeping::Silent { node, version })));
                }
            }
        }
        if let (Some(node), Some((to, version))) = (lies, self.sender) {
            acts.says.push((to, Keeping::Silent { node, version }));
        }
        if let (Some(copies), Some((to, version))) = (&mut self.copies, self.sender) {
            let (mut mute, by) = (Vec::new(), self.me);
            copies.on_timer(now_ns, &mut mute);
            acts.says.extend(mute.into_iter().map(|node| (to, Keeping::Mute { node, by, version })));
        }
        acts
    }
}
