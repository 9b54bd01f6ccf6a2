//! Messages from one sender to many receivers, over the relays of `protocol/relay` and a simulated network.
//!
//! Copies that reach relays are events in one queue, in the order of time: a relay takes the first copy, and its senders (lanes)
//! work on one message after another. Copies that reach receivers are most of all and are no events: what a receiver does with
//! copies, take the first, needs no more than the earliest time. A message that all relays have passed on is an event again, at the
//! time at which the last receiver has it. Buffers are used again; nothing is allocated for a packet.
//!
//! A tree without spraying is the product's own tree on packets whose numbers are multiples of all numbers that spraying counts by.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use walras_random::Random;
use walras_relay::packet::{Header, Kind};
use walras_relay::relay::{Arrival, Relay, RelaySettings};
use walras_relay::tree::Tree;

use crate::network::{Machine, Network, exponential_ns};

/// A prime, so that also the multiples of a tree without spraying have places of their own in a relay's memory.
const PACKETS_REMEMBERED: usize = 4_093;
const CHANNEL: u32 = 1;
const TREE: u32 = 1;
/// What a receiver has that never got the message.
pub const NEVER: u32 = u32::MAX;

/// Whose children a block of nodes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assignment {
    /// The same parent's, and in the same order, for each message.
    Fixed,
    /// Another parent's for each message, another child first: what the product does.
    Sprayed,
}

/// What sending costs a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hosts {
    /// From a packet's arrival until its first copy leaves.
    pub receive_ns: u64,
    /// Between two copies.
    pub copy_ns: u64,
    /// Messages that a machine copies at the same time.
    pub lanes: usize,
}

impl Hosts {
    /// The paper's: six cores that send, 2.7 us for a copy (appendices A and E).
    pub const PUBLISHED: Self = Self { receive_ns: 0, copy_ns: 2_700, lanes: 6 };
    /// The paper's sender of direct unicasts, which uses another interface: 2.4 us for a copy (the slope of fig. 4).
    pub const PUBLISHED_UNICAST: Self = Self { receive_ns: 0, copy_ns: 2_400, lanes: 6 };
    /// The paper's sender of direct unicasts with the machines of its tree: so that 100 take the 351 us of table 8 at the median. 2.7 us a
    /// copy make it 312.
    pub const PUBLISHED_ROOT: Self = Self { receive_ns: 0, copy_ns: 3_100, lanes: 6 };
    /// Ours, a system call for each copy: 1.3 us, 0.57 us to receive; one core. Measured on one core with 466-byte packets.
    pub const SENDTO: Self = Self { receive_ns: 570, copy_ns: 1_300, lanes: 1 };
    /// Ours, segmented in batches: 0.35 us a copy, measured likewise.
    pub const SEGMENTED: Self = Self { receive_ns: 570, copy_ns: 350, lanes: 1 };
}

/// What a run needs to know.
#[derive(Clone, Debug)]
pub struct Setup<'n> {
    /// The links.
    pub network: &'n Network,
    /// Who sends to whom.
    pub tree: Tree,
    /// Additional copies. Each message travels by one of these.
    pub hedges: Vec<u32>,
    /// Whose children a block is.
    pub assignment: Assignment,
    /// What sending costs.
    pub hosts: Hosts,
    /// Mean time for which a packet occupies the path between two machines; `None` if paths are as wide as needed.
    pub path_ns: Option<f64>,
    /// Packets that are lost, in a million.
    pub lost_ppm: u32,
    /// Of all draws.
    pub seed: u64,
}

impl<'n> Setup<'n> {
    /// Without spraying, as the paper's figures 7 to 11 were made, by the paper's machines.
    #[must_use]
    pub fn published(network: &'n Network, tree: Tree, hedge: u32, seed: u64) -> Self {
        let (assignment, hosts) = (Assignment::Fixed, Hosts::PUBLISHED);
        Self { network, tree, hedges: vec![hedge], assignment, hosts, path_ns: None, lost_ppm: 0, seed }
    }

    /// With spraying, as the product sends, by the paper's machines.
    #[must_use]
    pub fn product(network: &'n Network, tree: Tree, hedge: u32, seed: u64) -> Self {
        Self { assignment: Assignment::Sprayed, ..Self::published(network, tree, hedge, seed) }
    }
}

/// A message under way, or delivered.
#[derive(Clone, Debug)]
pub struct Flight {
    /// Its header; the packet's number is what spraying counts by.
    pub header: Header,
    /// Which of the hedges it travels by.
    pub plane: usize,
    /// When the first copy reached each receiver, in ns after it was sent.
    pub after_ns: Vec<u32>,
    /// Copies on their way to relays.
    outstanding: u32,
}

impl Flight {
    /// The latency of the last receiver that got it, and of the first. `None` if nobody did.
    #[must_use]
    pub fn last_and_first_ns(&self) -> Option<(u32, u32)> {
        let there = || self.after_ns.iter().copied().filter(|ns| *ns != NEVER);
        Some((there().max()?, there().min()?))
    }

    /// Receivers that never got it.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.after_ns.iter().filter(|ns| **ns == NEVER).count()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Reaches { node: u32 },
    IsDelivered,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at_ns: u64,
    slot: u32,
    what: What,
}

/// A node that sends: the sender, then all relays by layer.
#[derive(Debug)]
struct Node {
    layer_below: usize,
    place: u32,
    machine: Machine,
    is_dead: bool,
    /// When each of its lanes is free.
    free_ns: Box<[u64]>,
}

/// The sender, its relays, its receivers, and all that is under way.
#[derive(Debug)]
pub struct World<'n> {
    setup: Setup<'n>,
    random: Random,
    /// What a number is multiplied by to be a packet's.
    stride: u64,
    sent: u64,
    nodes: Vec<Node>,
    /// By plane, then by node without the sender.
    relays: Vec<Vec<Relay>>,
    /// Index of the first relay of each layer in `nodes`.
    begins: Vec<usize>,
    receivers: Vec<Machine>,
    /// When each path is free, by layer, parent and child.
    paths_free_ns: Vec<Vec<u64>>,
    flights: Vec<Flight>,
    free_slots: Vec<u32>,
    delivered: Option<u32>,
    queue: BinaryHeap<Reverse<Event>>,
    children: Vec<u32>,
    copies: u64,
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}", self.slot, self.at_ns)
    }
}

impl<'n> World<'n> {
    /// Nothing was sent.
    #[must_use]
    pub fn new(setup: Setup<'n>) -> Self {
        let (tree, network) = (&setup.tree, setup.network);
        let last = tree.depth() - 1;
        let lanes = vec![0; setup.hosts.lanes].into_boxed_slice();
        // The sender's name is that of a node above layer 0.
        let sender = Node { layer_below: 0, place: 0, machine: network.machine(60, 0), is_dead: false, free_ns: lanes.clone() };
        let (mut nodes, mut begins) = (vec![sender], Vec::new());
        for layer in 0..last {
            begins.push(nodes.len());
            nodes.extend((0..tree.layers()[layer]).map(|place| Node {
                layer_below: layer + 1,
                place,
                machine: network.machine(layer, place),
                is_dead: false,
                free_ns: lanes.clone(),
            }));
        }
        let relay = |node: &Node, hedge: u32| {
            let (layer, packets_remembered) = (node.layer_below - 1, PACKETS_REMEMBERED);
            let settings = RelaySettings { layer, place: node.place, tree: TREE, hedge, packets_remembered, channels_max: 1 };
            Relay::new(tree.clone(), settings)
        };
        let relays = setup.hedges.iter().map(|hedge| nodes[1..].iter().map(|node| relay(node, *hedge)).collect()).collect();
        let receivers = (0..tree.layers()[last]).map(|place| network.machine(last, place)).collect();
        let pairs = |layer: usize| tree.layers()[layer] as usize * parents_of(tree, layer) as usize;
        let paths_free_ns = match setup.path_ns {
            Some(_) => (0..=last).map(|layer| vec![0; pairs(layer)]).collect(),
            None => Vec::new(),
        };
        let stride = match setup.assignment {
            Assignment::Fixed => counted_by(tree),
            Assignment::Sprayed => 1,
        };
        Self {
            random: Random::new(setup.seed),
            stride,
            sent: 0,
            nodes,
            relays,
            begins,
            receivers,
            paths_free_ns,
            flights: Vec::new(),
            free_slots: Vec::new(),
            delivered: None,
            queue: BinaryHeap::new(),
            children: Vec::new(),
            copies: 0,
            setup,
        }
    }

    /// The tree.
    #[must_use]
    pub const fn tree(&self) -> &Tree {
        &self.setup.tree
    }

    /// The network.
    #[must_use]
    pub const fn network(&self) -> &'n Network {
        self.setup.network
    }

    /// Packets that were put on a link.
    #[must_use]
    pub const fn copies(&self) -> u64 {
        self.copies
    }

    /// The packet number that the next message will have.
    #[must_use]
    pub const fn next_packet(&self) -> u64 {
        (self.sent + 1) * self.stride
    }

    /// From now on nothing comes from a relay.
    pub fn kill(&mut self, layer: usize, place: u32) {
        let node = self.begins[layer] + place as usize;
        self.nodes[node].is_dead = true;
    }

    /// A message leaves. Times never go back.
    pub fn send(&mut self, at_ns: u64, plane: usize, release_ns: u64) {
        self.sent += 1;
        let (packet, first) = (self.sent * self.stride, self.sent);
        let header = Header { kind: Kind::Data, count: 1, channel: CHANNEL, tree: TREE, packet, first, sent_ns: at_ns, release_ns };
        let receivers = self.receivers.len();
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.flights.push(Flight { header, plane, after_ns: Vec::new(), outstanding: 0 });
            self.flights.len() as u32 - 1
        });
        let flight = &mut self.flights[slot as usize];
        (flight.header, flight.plane, flight.outstanding) = (header, plane, 0);
        flight.after_ns.clear();
        flight.after_ns.resize(receivers, NEVER);
        self.children.clear();
        self.children.extend(self.setup.tree.children(0, 0, packet, self.setup.hedges[plane]));
        self.copy(at_ns, 0, slot);
        self.look_whether_delivered(at_ns, slot);
    }

    /// The next message that all its receivers have by then, `None` if there is none. It is valid until the next call.
    pub fn delivered_before(&mut self, until_ns: u64) -> Option<(u64, &Flight)> {
        self.free_slots.extend(self.delivered.take());
        while self.queue.peek().is_some_and(|Reverse(event)| event.at_ns < until_ns) {
            let Reverse(Event { at_ns, slot, what }) = self.queue.pop()?;
            match what {
                What::Reaches { node } => self.reaches(at_ns, node as usize, slot),
                What::IsDelivered => {
                    self.delivered = Some(slot);
                    return Some((at_ns, &self.flights[slot as usize]));
                }
            }
        }
        None
    }

    fn reaches(&mut self, now_ns: u64, node: usize, slot: u32) {
        let flight = &mut self.flights[slot as usize];
        flight.outstanding -= 1;
        if !self.nodes[node].is_dead {
            let relay = &mut self.relays[flight.plane][node - 1];
            if relay.packet(&flight.header, &mut self.children) == Arrival::First {
                self.copy(now_ns + self.setup.hosts.receive_ns, node, slot);
            }
        }
        self.look_whether_delivered(now_ns, slot);
    }

    /// A node sends copies to all `children`, one after the other, on the lane that is free first.
    fn copy(&mut self, now_ns: u64, node: usize, slot: u32) {
        let children = std::mem::take(&mut self.children);
        let (copy_ns, from) = (self.setup.hosts.copy_ns, &mut self.nodes[node]);
        let stall_ns = self.setup.network.relay_stall_ns(from.machine, now_ns);
        let (layer, place) = (from.layer_below, from.place);
        let lane = from.free_ns.iter_mut().min().expect("a machine has a lane");
        let begins_ns = now_ns.max(*lane);
        *lane = begins_ns + copy_ns * children.len() as u64;
        for (at, child) in children.iter().enumerate() {
            self.link(begins_ns + copy_ns * at as u64 + stall_ns, layer, place, *child, slot);
        }
        self.copies += children.len() as u64;
        self.children = children;
    }

    fn link(&mut self, mut leaves_ns: u64, layer: usize, parent: u32, child: u32, slot: u32) {
        let Setup { network, path_ns, lost_ppm, .. } = self.setup;
        if let Some(path_ns) = path_ns {
            let width = self.setup.tree.layers()[layer] as usize;
            let free_ns = &mut self.paths_free_ns[layer][parent as usize * width + child as usize];
            leaves_ns = leaves_ns.max(*free_ns) + exponential_ns(&mut self.random, path_ns);
            *free_ns = leaves_ns;
        }
        if lost_ppm > 0 && self.random.below(1_000_000) < u64::from(lost_ppm) {
            return;
        }
        let at_ns = leaves_ns + network.delay_ns(network.link(layer, parent, child), leaves_ns, &mut self.random);
        let flight = &mut self.flights[slot as usize];
        if layer + 1 < self.setup.tree.depth() {
            flight.outstanding += 1;
            let node = (self.begins[layer] + child as usize) as u32;
            self.queue.push(Reverse(Event { at_ns, slot, what: What::Reaches { node } }));
            return;
        }
        let at_ns = at_ns + network.receiver_stall_ns(self.receivers[child as usize], at_ns);
        let after_ns = u32::try_from(at_ns - flight.header.sent_ns).unwrap_or(NEVER - 1);
        let first_ns = &mut flight.after_ns[child as usize];
        *first_ns = after_ns.min(*first_ns);
    }

    fn look_whether_delivered(&mut self, now_ns: u64, slot: u32) {
        let flight = &self.flights[slot as usize];
        if flight.outstanding == 0 {
            let last_ns = flight.last_and_first_ns().map_or(0, |(last_ns, _)| u64::from(last_ns));
            let at_ns = now_ns.max(flight.header.sent_ns + last_ns);
            self.queue.push(Reverse(Event { at_ns, slot, what: What::IsDelivered }));
        }
    }
}

/// Nodes of the layer above.
#[must_use]
pub fn parents_of(tree: &Tree, layer: usize) -> u32 {
    if layer == 0 { 1 } else { tree.layers()[layer - 1] }
}

/// The least common multiple of all numbers that spraying counts by.
fn counted_by(tree: &Tree) -> u64 {
    let counts = (0..tree.depth()).flat_map(|layer| {
        let (nodes, parents) = (u64::from(tree.layers()[layer]), u64::from(parents_of(tree, layer)));
        [parents, (nodes / parents).max(1), nodes.div_ceil(parents)]
    });
    counts.fold(1, |all, count| all / common_divisor(all, count) * count)
}

const fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(setup: Setup<'_>, messages: u64, kill: &[(usize, u32)], mut see: impl FnMut(u64, &Flight)) -> u64 {
        let mut world = World::new(setup);
        kill.iter().for_each(|(layer, place)| world.kill(*layer, *place));
        for number in 0..messages {
            let at_ns = 1_000_000 + number * 200_000;
            while let Some((at_ns, flight)) = world.delivered_before(at_ns) {
                see(at_ns, flight);
            }
            world.send(at_ns, 0, 0);
        }
        while let Some((at_ns, flight)) = world.delivered_before(u64::MAX) {
            see(at_ns, flight);
        }
        world.copies()
    }

    #[test]
    fn all_receivers_get_every_message_once_it_is_delivered() {
        let network = Network::fitted(5);
        for (depth, fan_out, receivers, hedge) in [(1, 1, 7, 0), (2, 3, 10, 0), (2, 3, 10, 1), (3, 4, 50, 2)] {
            let tree = Tree::new(depth, fan_out, receivers).unwrap();
            let links: u64 =
                (0..tree.depth()).map(|layer| u64::from(tree.layers()[layer] * (hedge + 1).min(parents_of(&tree, layer)))).sum();
            for setup in [Setup::published(&network, tree.clone(), hedge, 1), Setup::product(&network, tree, hedge, 1)] {
                let (mut seen, mut last) = (Vec::new(), 0);
                let copies = run(setup, 200, &[], |at_ns, flight| {
                    assert!(at_ns >= last, "in the order of time");
                    last = at_ns;
                    let (last_ns, first_ns) = flight.last_and_first_ns().unwrap();
                    assert!(flight.missing() == 0 && first_ns >= 3_000 && at_ns >= flight.header.sent_ns + u64::from(last_ns));
                    seen.push(flight.header.first);
                });
                seen.sort_unstable();
                assert!(seen.into_iter().eq(1..=200));
                assert_eq!(copies, 200 * links, "each copy once");
            }
        }
    }

    /// Without spraying the last child of a relay waits for all before it, whatever the message; with it nobody does always.
    #[test]
    fn only_spraying_shares_the_last_place() {
        let smooth = crate::network::Common { link_ns: 0.0, level: 0.0, spikes: 0.0, ..crate::network::Common::FITTED };
        let network = Network::fitted_with(2, smooth);
        let tree = Tree::new(2, 5, 25).unwrap();
        let means = |setup: Setup<'_>| {
            let mut sums = [0_u64; 25];
            run(setup, 2_000, &[], |_, flight| {
                sums.iter_mut().zip(&flight.after_ns).for_each(|(sum, ns)| *sum += u64::from(*ns));
            });
            let us = sums.map(|sum| sum / 2_000_000);
            us.iter().max().unwrap() - us.iter().min().unwrap()
        };
        let fixed = means(Setup::published(&network, tree.clone(), 0, 1));
        let sprayed = means(Setup::product(&network, tree, 0, 1));
        assert!((19..25).contains(&fixed), "eight places of 2.7 us: {fixed}");
        assert!(sprayed < 4, "{sprayed}");
    }

    #[test]
    fn what_dead_relays_carry_is_missing_unless_hedged() {
        let network = Network::fitted(5);
        let tree = Tree::new(3, 4, 64).unwrap();
        let evens: Vec<(usize, u32)> =
            (0..2).flat_map(|layer| (0..tree.layers()[layer]).step_by(2).map(move |place| (layer, place))).collect();
        let missing = |hedge: u32| {
            let mut missing = 0;
            run(Setup::product(&network, tree.clone(), hedge, 3), 100, &evens, |_, flight| missing += flight.missing());
            missing
        };
        assert_eq!((missing(0), missing(1)), (100 * 48, 0));
    }

    #[test]
    fn a_tree_without_spraying_counts_by_all_of_its_numbers() {
        assert_eq!(counted_by(&Tree::new(2, 10, 100).unwrap()), 10);
        assert_eq!(counted_by(&Tree::new(3, 10, 1_000).unwrap()), 100);
        assert_eq!(counted_by(&Tree::new(2, 32, 1_000).unwrap()), 32 * 31);
        let tree = Tree::new(3, 3, 29).unwrap();
        for layer in 0..3 {
            for parent in 0..parents_of(&tree, layer) {
                let children = |packet: u64| -> Vec<u32> { tree.children(layer, parent, packet, 1).collect() };
                assert_eq!(children(counted_by(&tree)), children(0));
                assert_eq!(children(5 * counted_by(&tree)), children(0));
            }
        }
    }
}
