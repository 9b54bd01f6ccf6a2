//! A relay: the product's state machine, without the socket of `edge/relay-link`; and what is wrong with it where a fault is planted.

use std::collections::{BTreeSet, VecDeque};

use walras_feed::channel::held_until;
use walras_relay::keeping::Keeping;
use walras_relay::live::{Live, split};
use walras_relay::packet::{Header, Packet};
use walras_relay::relay::{Relay, RelaySettings};
use walras_relay::relay_machine::{Came, MachineSettings, RelayMachine};

use super::links::{Address, Datagram};
use super::shape::{CHANNELS_MAX, COPIES, Shape, TREE};
use crate::cluster::mutation::Mutation;

/// Datagrams that wait in the socket of a relay that stands still, at most.
const WAITING_MAX: usize = 256;
const PACKETS_REMEMBERED: usize = 1 << 12;
/// What a relay that lies adds to the delays that it reports.
const LIE_NS: i64 = 30_000_000;

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
    /// Whether it answers nothing.
    pub(super) fn is_silent(&self) -> bool {
        self.process.is_none() || self.stalled.is_some()
    }

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
    /// Its number among all processes of relays.
    pub(super) life: u64,
    machine: RelayMachine<Address>,
    /// Whether it says which relays bring nothing, and the views to receivers.
    has_copies: bool,
    /// What it has to say of how late market data comes.
    late: Option<(Address, Keeping)>,
    mutation: Option<Mutation>,
}

/// The nodes to which a packet goes on, and the relays that are out by the view that says so.
pub(super) type Passes = (Vec<u32>, BTreeSet<u32>);

/// What a relay wants to happen.
#[derive(Debug, Default)]
pub(super) struct RelayActs {
    /// It says this to the tree.
    pub(super) says: Vec<(Address, Keeping)>,
    /// It passes the packet on.
    pub(super) passes: Option<Passes>,
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
        let settings = MachineSettings { copies: COPIES, held_until, seed: life << 32 };
        let machine = RelayMachine::new(relay, shape.addresses(tree), settings);
        Self { life, machine, has_copies: shape.has_copies, late: None, mutation }
    }

    /// A packet of the tree arrives.
    pub(super) fn on_packet(&mut self, now_ns: u64, from: Address, packet: &Packet<'_>) -> RelayActs {
        let (passes, is_copy) = match self.machine.on_packet(now_ns, Some(from), packet) {
            Came::First { to, live, .. } => (Some((to.to_vec(), live.out().clone())), false),
            came => (None, came == Came::Copy),
        };
        let says = self.says();
        let spoiled = self.mutation.and_then(|mutation| self.spoiled(mutation, packet.header(), passes.as_ref(), is_copy));
        RelayActs { says, passes: spoiled.or(passes) }
    }

    /// What it passes on where a fault is planted; `None` for what it would without.
    fn spoiled(&self, mutation: Mutation, header: &Header, passes: Option<&Passes>, is_copy: bool) -> Option<Passes> {
        let (_, epoch) = split(header.tree);
        let (relay, views) = (self.machine.relay(), self.machine.views());
        let by = |live: &Live, hedge: u32| {
            let mut children = Vec::new();
            live.children(Some(relay.number()), header.packet, hedge, &mut children);
            (children, live.out().clone())
        };
        let has_out = passes.is_some_and(|(_, out)| !out.is_empty());
        match mutation {
            Mutation::RelayPassesCopies if is_copy => Some(by(views.of(epoch), relay.hedge())),
            Mutation::RelayDropsHedges if epoch > 0 && has_out => Some(by(views.of(epoch), 0)),
            Mutation::RelayPassesByNewestView if passes.is_some() => Some(by(views.newest(), relay.hedge())),
            _ => None,
        }
    }

    /// Does what it is time for. It reports the relay `lies` as silent, whether that is true or not.
    pub(super) fn on_timer(&mut self, now_ns: u64, lies: Option<u32>) -> RelayActs {
        self.machine.on_timer(now_ns);
        let mut says = self.says();
        if let (Some(node), Some((to, version))) = (lies, self.machine.sender()) {
            says.push((to, Keeping::Silent { node, version }));
        }
        RelayActs { says, passes: None }
    }

    /// What it says at once. What it has to say of how late market data comes waits, since the others say theirs first.
    fn says(&mut self) -> Vec<(Address, Keeping)> {
        let Self { machine, has_copies, late, mutation, .. } = self;
        let mut says = Vec::new();
        for (to, keeping) in machine.says() {
            match keeping {
                Keeping::Late { .. } => *late = Some((to, keeping)),
                Keeping::Mute { .. } if *mutation == Some(Mutation::MutesUnreported) => {}
                // Nobody looks which relays bring packets.
                Keeping::Mute { .. } | Keeping::View { .. } if !*has_copies => {}
                keeping => says.push((to, keeping)),
            }
        }
        says
    }

    /// What it passes on of how late market data comes to receivers below, or more than that. The next node up, and what it hears.
    pub(super) fn reports(&mut self, exaggerates: bool) -> Option<(Address, Keeping)> {
        let (to, mut late) = self.late.take()?;
        if let Keeping::Late { samples, .. } = &mut late
            && (exaggerates || self.mutation == Some(Mutation::RelayExaggerates))
        {
            samples.iter_mut().for_each(|sample| sample.delay_ns += LIE_NS);
        }
        Some((to, late))
    }
}
