//! The overlay tree below the venue, or two parallel ones (in the seeds that decide so), over which the markets are spread. Replicas
//! publish, the leader sends, relays pass on with spraying and hedges, siblings watch each other, and the leader's keeper gives all
//! relays views without those that are gone. Receivers read, ask replicas for what they miss, and go on from snapshots. Leaf gateways
//! hold packets until they may be known, ask replicas for what they miss (in the seeds that decide so), and their participants read below
//! them. Datagrams are lost, doubled, late and overtaken.
//! Relays die, stand still and go on with what they knew, begin again with nothing, are cut off, and lie about their siblings. One
//! answers and forwards nothing (in the seeds that decide so), and those below it say so. Where a test asks for it, market data surges to
//! fifteen times its rate. Under fair access leaf gateways also report how late market data comes to them (in the seeds that decide so),
//! and a relay lies about that. The state machines are the product's (`walras-relay`, `walras-feed`), those of relays, receivers and
//! keepers as sockets drive them; this module stands for their drivers in `edge/relay-link` and `edge/node`.
//!
//! It listens to the replicas and sends them nothing but those reports, so without them the rest of the venue does the same with it as
//! without it. Only the run is longer: it lasts until all readers have everything.
//!
//! In the seeds that decide so, somebody without the tree's key cuts datagrams and sends forged ones (`tamper.rs`).
//!
//! *Deliberately absent*: the seal's strength (a relay that holds the key can alter what it passes on); how often one source may ask
//! (`edge/relay-link`); that a new leader begins without the relays that did not answer its replica lately.

mod board;
mod links;
mod reader;
mod relay;
mod sender;
mod shape;
mod surge;
mod tamper;
mod world;

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use walras_feed::channel::{ChannelId, Trees};
use walras_feed::control::Control;
use walras_feed::recall::RecallSettings;
use walras_feed::sender::Packets;
use walras_relay::keeping::Keeping;
use walras_relay::live::split;
use walras_relay::packet::TreeKey;
use walras_relay::reader::Request;
use walras_relay::rewinder::Answer;
use walras_replica::FeedPiece;
use walras_sequencer::ReceiverSample;
use walras_testkit::{Choices, Random};

use self::board::Board;
use self::links::{Address, Datagram, Links, Quality};
use self::reader::{OutletEnd, Reads};
use self::relay::{RelayActs, RelayPlace, RelayProcess};
use self::sender::{SenderEnd, tree_of};
use self::shape::{DIRECT, OUTLETS, Shape, TREE};
use self::surge::Surges;
use self::tamper::{Tamper, open};
use super::checks::{Checks, KeeperSeen};
use super::mutation::Mutation;
use super::replica::Moment;
use crate::common::clock::EPOCH_NS;

/// How often timers are looked at: a socket's thread waits no longer.
const TICK_NS: u64 = 1_000_000;
/// Participants of each leaf gateway.
const PARTICIPANTS: usize = 2;
/// The longest time between two faults, in a storm.
const FAULT_NS_MAX: u64 = 600_000_000;
/// The longest time that a relay is without a process, or stands still.
const DOWN_NS_MAX: u64 = 2_500_000_000;
/// The longest time that a path is cut.
const CUT_NS_MAX: u64 = 1_000_000_000;

/// What the tree knows of a replica's machine.
#[derive(Clone, Copy)]
pub(super) struct Host {
    /// Of its process.
    pub(super) generation: u64,
    pub(super) at: Moment,
    /// Nothing happens in the process before.
    pub(super) paused_until_ns: u64,
}

/// What the tree needs when something happens in it: the replicas' machines, `None` without a process, and the checkers.
pub(super) struct Around<'a> {
    pub(super) now_ns: u64,
    pub(super) hosts: &'a [Option<Host>],
    pub(super) checks: &'a mut Checks,
}

/// What happened in the tree.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OverlayCounts {
    pub(super) relay_crashes: u64,
    pub(super) relay_stalls: u64,
    pub(super) relay_lies: u64,
    pub(super) views: u64,
    pub(super) asked: u64,
    /// Views by which a leader went without a relay because it forwarded nothing.
    pub(super) mute_views: u64,
    pub(super) restarted_readers: u64,
    /// Messages that replicas sent again to leaf gateways which have started again since.
    pub(super) recalled: u64,
}

/// Reports of how late market data comes.
struct LateReports {
    /// Of how they travel, and when the relay lies: kept apart, so that reports do not change what else is drawn.
    choices: Choices<'static>,
    /// The place of the relay that lies, if one does.
    liar: Option<usize>,
    /// What came to the senders at these replicas.
    heard: Vec<(usize, Vec<ReceiverSample>)>,
}

/// A receiver of the tree.
enum Receiver {
    Direct(Reads),
    Outlet(Box<OutletEnd>, Vec<Reads>),
}

pub(super) struct Overlay {
    shape: Shape,
    choices: Choices<'static>,
    links: Links,
    /// Where datagrams are cut and forged.
    tamper: Option<Tamper>,
    senders: Vec<Option<SenderEnd>>,
    relays: Vec<RelayPlace>,
    receivers: Vec<Receiver>,
    /// Market data by FIX at the first leaf gateway.
    board: Option<Box<Board>>,
    /// Where receivers report how late market data comes.
    reports: Option<LateReports>,
    /// How that travels by which nodes watch which relays bring packets, where they do: kept apart likewise.
    of_copies: Option<Choices<'static>>,
    /// Where market data surges now and then.
    surges: Option<Surges>,
    /// By tree: packets that senders sent.
    sent: Vec<u64>,
    rewind_bytes_max: usize,
    mutation: Option<Mutation>,
    /// By how many times faults are rarer than in a storm.
    rarer: u64,
    tick_ns: u64,
    /// `None` once faults have stopped.
    fault_ns: Option<u64>,
    /// The next number of a socket, a life of a relay, or a program that reads.
    next_number: u64,
    /// Empty.
    packets: Packets,
    pub(super) counts: OverlayCounts,
    /// When [`super::event::Event::Overlay`] is planned next.
    pub(super) wake_ns: Option<u64>,
}

impl Overlay {
    pub(super) fn new(random: &Random, machines: usize, rarer: u64, mutation: Option<Mutation>) -> Self {
        // Planted faults are looked for with one tree.
        let has_two = Choices::of_random(random.fork(34)).one_in(3) && mutation.is_none();
        let trees = Trees::new(if has_two { 2 } else { 1 }).expect("they are few");
        let mut choices = Choices::of_random(random.fork(24));
        let mut shape = Shape::draw(&mut choices, trees);
        if matches!(mutation, Some(Mutation::RelayDropsHedges | Mutation::MutesUnreported)) {
            shape.hedge = 1;
        }
        // It takes a tree in which nothing else fails for a while.
        let rarer = if mutation == Some(Mutation::MutesUnreported) { 10 * rarer } else { rarer };
        // Other planted faults are looked for in gateways that ask nobody.
        let asks =
            mutation.map_or_else(|| Choices::of_random(random.fork(35)).one_in(2), |planted| planted == Mutation::RecallEarly);
        shape.recall = asks.then(|| recall(machines));
        // Planted faults are looked for where nobody watches which relays bring packets, but for its own.
        let has_mute = mutation == Some(Mutation::MutesUnreported);
        let mut of_copies = (mutation.is_none() || has_mute).then(|| Choices::of_random(random.fork(37)));
        shape.has_copies = of_copies.is_some();
        let mute = of_copies.as_mut().and_then(|choices| mute_relay(choices, &shape, has_mute));
        let mut next_number = 1;
        let mut number = || {
            next_number += 1;
            next_number
        };
        let relays = shape.relays().filter_map(|relay| shape.relay(relay)).map(|me| RelayPlace {
            process: Some(RelayProcess::new(&shape, me, number(), mutation)),
            starts_ns: 0,
            stalled: None,
            is_lying: false,
            is_mute: mute == Some(me),
        });
        let relays = relays.collect();
        let mut reads = |c: &mut Choices<'_>| {
            let reads = Reads::from_the_start(c, number(), trees);
            if c.one_in(3) { Reads::joining(&reads.channels(), number(), trees) } else { reads }
        };
        let mut receivers: Vec<Receiver> = (0..DIRECT).map(|_| Receiver::Direct(reads(&mut choices))).collect();
        for at in 0..OUTLETS as usize {
            let participants = (0..PARTICIPANTS).map(|_| reads(&mut choices)).collect();
            receivers.push(Receiver::Outlet(Box::new(OutletEnd::new(&mut choices, &shape, at, mutation)), participants));
        }
        let mut of_tamper = Choices::of_random(random.fork(38));
        let is_tampered = of_tamper.one_in(2) && mutation.is_none() || mutation == Some(Mutation::SealsUnchecked);
        let rewind_bytes_max = choices.pick(&[3_000, 30_000, 1_000_000]);
        let fault_ns = Some(choices.within(1, FAULT_NS_MAX) * rarer);
        Self {
            shape,
            choices,
            links: Links::new(),
            tamper: is_tampered.then(|| Tamper::new(of_tamper, mutation)),
            senders: (0..machines).map(|_| None).collect(),
            relays,
            receivers,
            board: None,
            reports: None,
            of_copies,
            surges: None,
            sent: vec![0; trees.count() as usize],
            rewind_bytes_max,
            mutation,
            rarer,
            tick_ns: TICK_NS,
            fault_ns,
            next_number,
            packets: Packets::default(),
            counts: OverlayCounts::default(),
            wake_ns: None,
        }
    }

    /// Whether the markets are spread over two trees.
    pub(super) fn has_two_trees(&self) -> bool {
        self.shape.trees != Trees::ONE
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// Messages that replicas sent again to leaf gateways.
    pub(super) fn recalled(&self) -> u64 {
        let of = |receiver: &Receiver| if let Receiver::Outlet(outlet, _) = receiver { outlet.recalled() } else { 0 };
        self.counts.recalled + self.receivers.iter().map(of).sum::<u64>()
    }

    /// Surges, packets that were sent in them in addition to the venue's, and datagrams for which a socket had no room.
    pub(super) fn surge_counts(&self) -> [u64; 3] {
        let [begun, packets] = self.surges.as_ref().map(Surges::counts).unwrap_or_default();
        [begun, packets, self.links.overflowed]
    }

    /// When something happens next.
    pub(super) fn next_ns(&self) -> u64 {
        self.links.next_ns().map_or(self.tick_ns, |next_ns| next_ns.min(self.tick_ns))
    }

    /// Datagrams lost, doubled, cut and forged, and faults of relays.
    pub(super) fn faults(&self) -> u64 {
        let [cut, forged, _] = self.tamper_counts();
        self.links.lost_or_doubled + cut + forged + self.counts.relay_crashes + self.counts.relay_stalls
    }

    /// Datagrams that were cut, forged, and refused.
    pub(super) fn tamper_counts(&self) -> [u64; 3] {
        self.tamper.as_ref().map(Tamper::counts).unwrap_or_default()
    }

    /// A replica's process begins with a state, or goes on from one.
    pub(super) fn on_begin(&mut self, replica: usize, host: Host, publisher: &walras_feed::publisher::Publisher) {
        self.sender_of(replica, host).begin(publisher);
    }

    /// A replica publishes an entry.
    pub(super) fn on_piece(&mut self, around: &mut Around<'_>, replica: usize, piece: &FeedPiece) {
        let Some(host) = around.hosts[replica] else { return };
        let trees = self.shape.trees;
        let surged = self.surges.as_mut().and_then(|surges| surges.follow(around.now_ns, trees, piece));
        let piece = surged.as_ref().unwrap_or(piece);
        let (socket, mut packets) = (self.number(), std::mem::take(&mut self.packets));
        self.sender_of(replica, host);
        let Self { senders, shape, .. } = self;
        if let Some(sender) = &mut senders[replica] {
            sender.on_piece(shape, host.at, piece, socket, &mut packets);
        }
        self.send_packets(around, replica, packets);
    }

    fn sender_of(&mut self, replica: usize, host: Host) -> &mut SenderEnd {
        let Self { senders, shape, rewind_bytes_max, mutation, .. } = self;
        let sender = &mut senders[replica];
        if sender.as_ref().is_none_or(|sender| sender.generation != host.generation) {
            *sender = None;
        }
        sender.get_or_insert_with(|| SenderEnd::new(shape, host.generation, *rewind_bytes_max, *mutation))
    }

    /// Does what is due.
    pub(super) fn run(&mut self, around: &mut Around<'_>) {
        // The sender of a process ended with it.
        for (sender, host) in self.senders.iter_mut().zip(around.hosts) {
            if sender.as_ref().is_some_and(|sender| host.is_none_or(|host| host.generation != sender.generation)) {
                *sender = None;
            }
        }
        while let Some(datagram) = self.links.arrived(around.now_ns) {
            self.arrives(around, &datagram);
        }
        if around.now_ns >= self.tick_ns {
            self.tick_ns = around.now_ns + TICK_NS;
            self.tick(around);
        }
    }

    fn send(&mut self, now_ns: u64, from: Address, to: Address, bytes: &Rc<[u8]>) {
        let mut datagram = Datagram { from, to, bytes: Rc::clone(bytes) };
        self.tamper_with(now_ns, &mut datagram);
        self.links.send(&mut self.choices, now_ns, datagram);
    }

    /// A datagram that is sent may be cut, and another one may come in its sender's name.
    fn tamper_with(&mut self, now_ns: u64, datagram: &mut Datagram) {
        let forged = self.tamper.as_mut().and_then(|tamper| tamper.strike(now_ns, datagram));
        if let Some((at_ns, forged)) = forged {
            self.links.at(at_ns, forged);
        }
    }

    fn say(&mut self, now_ns: u64, from: Address, to: Address, keeping: &Keeping) {
        let mut bytes = Vec::new();
        let tree = |address: Address| match address {
            Address::Keeper(_, socket) => Some(tree_of(socket)),
            Address::Node(number) => self.shape.relay(number).map(|(tree, _)| tree),
            Address::Requests(_) | Address::LeafRequests(_) | Address::Participant(..) => None,
        };
        let tree = tree(from).or(tree(to)).unwrap_or(0);
        keeping.encode(TREE + tree, EPOCH_NS + now_ns, &self.shape.key, &mut bytes);
        let mut datagram = Datagram { from, to, bytes: bytes.into() };
        self.tamper_with(now_ns, &mut datagram);
        let asks_receiver = matches!(keeping, Keeping::Ping { .. }) && self.is_receiver(to);
        let choices = match (keeping, from, &mut self.reports, &mut self.of_copies) {
            (Keeping::Late { .. }, _, Some(reports), _) => &mut reports.choices,
            (_, _, Some(reports), _) if asks_receiver => &mut reports.choices,
            (Keeping::Mute { .. }, _, _, Some(of_copies)) | (Keeping::View { .. }, Address::Node(_), _, Some(of_copies)) => {
                of_copies
            }
            _ => &mut self.choices,
        };
        self.links.send(choices, now_ns, datagram);
    }

    /// Packets of the leader go to the nodes that its view says.
    fn send_packets(&mut self, around: &mut Around<'_>, replica: usize, mut packets: Packets) {
        let mut datagrams = Vec::new();
        if let Some(sender) = &self.senders[replica] {
            for (header, bytes) in packets.iter() {
                let (mut children, bytes): (Vec<u32>, Rc<[u8]>) = (Vec::new(), bytes.into());
                let tree = split(header.tree).0 - TREE;
                let branch = &sender.branches[tree as usize];
                branch.live.children(None, header.packet, self.shape.hedge, &mut children);
                self.sent[tree as usize] += 1;
                around.checks.on_packet_sent(header, &branch.view, self.shape.hedge);
                datagrams.extend(children.into_iter().map(|child| (self.shape.number(tree, child), Rc::clone(&bytes))));
            }
        }
        for (child, bytes) in datagrams {
            self.send(around.now_ns, Address::Requests(replica), Address::Node(child), &bytes);
        }
        packets.clear();
        self.packets = packets;
    }

    /// A keeper says this, and packets go by its newest view.
    fn keep(&mut self, now_ns: u64, (replica, tree): (usize, usize), says: Vec<(Address, Keeping)>) {
        let Some(sender) = &mut self.senders[replica] else { return };
        let branch = &mut sender.branches[tree];
        let Some((socket, keeper)) = &mut branch.keeper else { return };
        let (from, new_view) = (Address::Keeper(replica, *socket), keeper.new_view());
        if let Some(live) = new_view {
            self.counts.views += 1;
            self.counts.mute_views += u64::from(branch.has_mute());
            branch.use_view(&self.shape, live);
        }
        for (to, keeping) in says {
            // Receivers are asked where they report how late market data comes.
            if self.reports.is_some() || !self.is_receiver(to) {
                self.say(now_ns, from, to, &keeping);
            }
        }
    }

    fn is_receiver(&self, address: Address) -> bool {
        matches!(address, Address::Node(number) if self.shape.relay(number).is_none())
    }

    fn arrives(&mut self, around: &mut Around<'_>, datagram: &Datagram) {
        match datagram.to {
            Address::Keeper(replica, _) | Address::Requests(replica) => self.arrives_at_replica(around, replica, datagram),
            Address::Node(node) if self.shape.relay(node).is_some() => self.arrives_at_relay(around, node, datagram),
            Address::Node(node) => {
                let at = (node - self.shape.tree.relays()) as usize;
                let packet = open(&mut self.tamper, &datagram.bytes, &self.shape.key, around.checks);
                let Some(packet) = packet else { return };
                match (&mut self.receivers[at], Keeping::decode(&packet)) {
                    // It only reads.
                    (Receiver::Direct(_), Some(_)) => {}
                    (Receiver::Direct(reads), None) => reads.on_packet(around.now_ns, &packet, around.checks),
                    (Receiver::Outlet(outlet, _), Some(keeping)) => {
                        outlet.on_keeping(around.now_ns, datagram.from, packet.header(), &keeping);
                    }
                    (Receiver::Outlet(outlet, _), None) => {
                        outlet.on_packet(around.now_ns, datagram.from, &packet, &self.shape, around.checks);
                        self.release(around, at);
                    }
                }
            }
            Address::LeafRequests(node) => self.ask_outlet(around, node, datagram),
            Address::Participant(node, number) => {
                let packet = open(&mut self.tamper, &datagram.bytes, &self.shape.own_key, around.checks);
                let Some(packet) = packet else { return };
                if let Receiver::Outlet(_, participants) = &mut self.receivers[node as usize] {
                    participants[number].on_packet(around.now_ns, &packet, around.checks);
                }
            }
        }
    }

    fn arrives_at_replica(&mut self, around: &mut Around<'_>, replica: usize, datagram: &Datagram) {
        let Some(host) = around.hosts[replica] else { return };
        if host.paused_until_ns > around.now_ns {
            self.links.at(host.paused_until_ns, datagram.clone());
            return;
        }
        let packet = open(&mut self.tamper, &datagram.bytes, &self.shape.key, around.checks);
        let Some(packet) = packet else { return };
        let Some(sender) = &mut self.senders[replica] else { return };
        if let (Address::Keeper(_, socket), Some(keeping)) = (datagram.to, Keeping::decode(&packet)) {
            if let Some(tree) = sender.kept_by(socket) {
                let says = sender.branches[tree].on_keeping(host.at.now_ns, packet.header().tree, keeping);
                self.keep(around.now_ns, (replica, tree), says);
            }
        } else if let Some(Control::Ask(request)) = Control::decode(&packet) {
            let Some(channel) = ChannelId::new(request.channel) else { return };
            let station = &sender.branches[self.shape.trees.of(channel) as usize].station;
            let mut answer = Vec::new();
            let answered = if self.mutation == Some(Mutation::RewinderShifts) && request.first > 1 {
                let answered = station.answer(&Request { first: request.first - 1, ..request }, &mut answer);
                answer = answer.iter().map(|bytes| world::shifted(bytes, &self.shape.key)).collect();
                answered
            } else {
                station.answer(&request, &mut answer)
            };
            answer.extend(gone(&answered, request.channel, (TREE, &self.shape.key), host.at.clock_ns));
            for bytes in answer {
                self.send(around.now_ns, Address::Requests(replica), datagram.from, &bytes.into());
            }
        }
    }

    fn arrives_at_relay(&mut self, around: &mut Around<'_>, node: u32, datagram: &Datagram) {
        let Some(relay) = self.shape.relay(node) else { return };
        let place = &mut self.relays[self.shape.at(relay)];
        if place.process.is_none() || place.waits(datagram) {
            return;
        }
        let is_mute = place.is_mute;
        let Some(process) = &mut place.process else { return };
        let packet = open(&mut self.tamper, &datagram.bytes, &self.shape.key, around.checks);
        let Some(packet) = packet else { return };
        let RelayActs { says, passes } = process.on_packet(around.now_ns, datagram.from, &packet);
        let life = process.life;
        if let Some(Keeping::View { version, epoch, out }) = Keeping::decode(&packet)
            && says.iter().any(|(_, said)| *said == Keeping::Taken { node: relay.1, version })
        {
            around.checks.on_view_taken(life, version, epoch, &out);
        }
        if let Some((children, out)) = passes.filter(|_| !is_mute) {
            let (tree, relay) = relay;
            around.checks.on_packet_passed(packet.header(), (relay, life), &out, &children);
            for child in children {
                let child = self.shape.number(tree, child);
                self.send(around.now_ns, Address::Node(node), Address::Node(child), &datagram.bytes);
            }
        }
        says.iter().for_each(|(to, keeping)| self.say(around.now_ns, Address::Node(node), *to, keeping));
    }

    /// A participant asks its leaf gateway.
    fn ask_outlet(&mut self, around: &mut Around<'_>, node: u32, datagram: &Datagram) {
        let Receiver::Outlet(outlet, _) = &mut self.receivers[node as usize] else { return };
        let asked = open(&mut self.tamper, &datagram.bytes, &self.shape.own_key, around.checks);
        let Some(Control::Ask(request)) = asked.and_then(|packet| Control::decode(&packet)) else { return };
        for bytes in outlet.answer(around.now_ns, &request, &self.shape, around.checks) {
            self.send(around.now_ns, datagram.to, datagram.from, &bytes.into());
        }
    }

    /// A leaf gateway gives its participants what is due.
    fn release(&mut self, around: &mut Around<'_>, at: usize) {
        let Receiver::Outlet(outlet, participants) = &mut self.receivers[at] else { return };
        let count = participants.len();
        for bytes in outlet.release(around.now_ns, &self.shape, around.checks) {
            if let Some(board) = self.board.as_mut().filter(|_| at == DIRECT as usize) {
                board.on_packet(around.now_ns, &bytes);
            }
            let bytes = bytes.into();
            for number in 0..count {
                self.send(around.now_ns, Address::LeafRequests(at as u32), Address::Participant(at as u32, number), &bytes);
            }
        }
    }

    /// Timers, and faults.
    fn tick(&mut self, around: &mut Around<'_>) {
        let now_ns = around.now_ns;
        for replica in 0..self.senders.len() {
            let Some(host) = around.hosts[replica].filter(|host| host.paused_until_ns <= now_ns) else { continue };
            for tree in 0..self.shape.trees.count() as usize {
                let Some(sender) = &mut self.senders[replica] else { continue };
                let mut packets = std::mem::take(&mut self.packets);
                let says = sender.branches[tree].on_timer(host.at, &mut packets);
                self.send_packets(around, replica, packets);
                self.keep(now_ns, (replica, tree), says);
                self.see_keeper(around, replica, tree as u32);
            }
        }
        for node in self.shape.relays().collect::<Vec<_>>() {
            self.relay_wakes(around, node);
        }
        for at in 0..self.receivers.len() {
            self.release(around, at);
            self.ask(now_ns, at, around.hosts.len());
        }
        self.report(around);
        if let (Some(board), Receiver::Outlet(outlet, _)) = (&mut self.board, &self.receivers[DIRECT as usize]) {
            board.tick(now_ns, outlet.clock_ns(now_ns), around.checks);
        }
        if self.fault_ns.is_some_and(|fault_ns| fault_ns <= now_ns) {
            self.fault_ns = Some(now_ns + self.choices.within(1, FAULT_NS_MAX) * self.rarer);
            self.strike(around);
        }
    }

    /// Checkers see the keeper of a replica that sends by a tree.
    fn see_keeper(&self, around: &mut Around<'_>, replica: usize, tree: u32) {
        let branches = || self.senders.iter().map(|sender| sender.as_ref().map(|sender| &sender.branches[tree as usize]));
        let Some(branch) = branches().nth(replica).flatten() else { return };
        let Some((number, keeper)) = &branch.keeper else { return };
        let place = |relay: u32| &self.relays[self.shape.at((tree, relay))];
        let silent: BTreeSet<u32> = (0..self.shape.tree.relays()).filter(|relay| place(*relay).is_silent()).collect();
        // Others of its layer bring what it does not.
        let layer = |relay: u32| self.shape.place(relay).0;
        let has_others = |mute: u32| branch.live.relays().any(|other| other != mute && layer(other) == layer(mute));
        let mute = branch.live.relays().find(|relay| place(*relay).is_mute && has_others(*relay));
        let is_filling = |receiver: &Receiver| matches!(receiver, Receiver::Outlet(outlet, _) if outlet.is_filling());
        let is_quiet = self.shape.has_copies
            && self.surges.is_none()
            && silent.is_empty()
            && branches().flatten().filter(|branch| branch.keeper.is_some()).count() == 1
            && !self.receivers.iter().any(is_filling);
        let disturbed = is_quiet.then(|| [self.faults(), self.counts.restarted_readers, self.counts.views]);
        let (out, packets) = (keeper.out().map(|(relay, _)| relay).collect(), self.sent[tree as usize]);
        around.checks.on_keeper(around.now_ns, &KeeperSeen { number: *number, out, silent, mute, disturbed, packets });
    }

    /// Leaf gateways, and relays above them, report how late market data comes; what reaches a sender is for its replica. Leaf gateways
    /// also report which relays bring them nothing.
    fn report(&mut self, around: &mut Around<'_>) {
        let now_ns = around.now_ns;
        let liar = self.reports.as_mut().and_then(|reports| reports.liar.filter(|_| reports.choices.one_in(2)));
        let mut says: Vec<(Address, Address, Keeping)> = Vec::new();
        for (at, receiver) in (self.shape.tree.relays()..).zip(&mut self.receivers) {
            let Receiver::Outlet(outlet, _) = receiver else { continue };
            let (clock_ns, mut of_outlet) = (outlet.clock_ns(now_ns), Vec::new());
            outlet.machines.iter_mut().for_each(|machine| machine.on_timer(now_ns, Some(clock_ns), &mut of_outlet));
            says.extend(of_outlet.into_iter().map(|(to, keeping)| (Address::Node(at), to, keeping)));
        }
        for (at, (number, place)) in self.shape.relays().zip(&mut self.relays).enumerate() {
            let late = place.process.as_mut().and_then(|process| process.reports(liar == Some(at)));
            says.extend(late.map(|(to, late)| (Address::Node(number), to, late)));
        }
        let says_mute = self.of_copies.is_some() && self.mutation != Some(Mutation::MutesUnreported);
        let says_late = self.reports.is_some();
        if let Some(reports) = &mut self.reports {
            for (replica, sender) in self.senders.iter_mut().enumerate() {
                let host = around.hosts[replica].filter(|host| host.paused_until_ns <= now_ns);
                let (Some(_), Some(sender)) = (host, sender) else { continue };
                if let Some(heard) = sender.hears() {
                    let lies = reports.liar.is_some();
                    heard.iter().for_each(|(release_ns, sample)| around.checks.on_late_heard(*release_ns, sample.late_ns, lies));
                    reports.heard.push((replica, heard.into_values().collect()));
                }
            }
        }
        says.retain(|(_, _, keeping)| if matches!(keeping, Keeping::Late { .. }) { says_late } else { says_mute });
        says.into_iter().for_each(|(from, to, keeping)| self.say(now_ns, from, to, &keeping));
    }

    fn relay_wakes(&mut self, around: &mut Around<'_>, node: u32) {
        let now_ns = around.now_ns;
        let life = self.number();
        let Some(relay) = self.shape.relay(node) else { return };
        let at = self.shape.at(relay);
        let place = &mut self.relays[at];
        if place.process.is_none() {
            if place.starts_ns <= now_ns {
                let process = place.process.insert(RelayProcess::new(&self.shape, relay, life, self.mutation));
                let RelayActs { says, .. } = process.on_timer(now_ns, None);
                assert!(says.is_empty(), "it knows nobody: {says:?}");
            }
            return;
        }
        if place.stalled.as_ref().is_some_and(|(until_ns, _)| *until_ns > now_ns) {
            return;
        }
        // First what waited in its socket.
        for datagram in place.stalled.take().map_or_else(VecDeque::new, |(_, waiting)| waiting) {
            self.arrives_at_relay(around, node, &datagram);
        }
        let count = u64::from(self.shape.tree.relays());
        let place = &mut self.relays[at];
        let lies = (place.is_lying && self.choices.one_in(5)).then(|| self.choices.below(count) as u32);
        self.counts.relay_lies += u64::from(lies.is_some());
        let Some(process) = &mut place.process else { return };
        let RelayActs { says, .. } = process.on_timer(now_ns, lies);
        says.iter().for_each(|(to, keeping)| self.say(now_ns, Address::Node(node), *to, keeping));
    }

    /// Readers ask for what they miss: those of the tree any replica, participants their gateway, which asks the replicas in turn.
    fn ask(&mut self, now_ns: u64, at: usize, replicas: usize) {
        let node = self.shape.tree.relays() + at as u32;
        let mut requests = Vec::new();
        match &mut self.receivers[at] {
            Receiver::Direct(reads) => {
                for request in reads.requests(now_ns) {
                    let replica = self.choices.below(replicas as u64) as usize;
                    requests.push((Address::Node(node), Address::Requests(replica), request));
                }
            }
            Receiver::Outlet(outlet, participants) => {
                while let Some((replica, request)) = outlet.request(now_ns) {
                    requests.push((Address::Node(node), Address::Requests(replica), request));
                }
                for (number, reads) in participants.iter_mut().enumerate() {
                    let from = Address::Participant(at as u32, number);
                    let to = Address::LeafRequests(at as u32);
                    requests.extend(reads.requests(now_ns).into_iter().map(|request| (from, to, request)));
                }
            }
        }
        for (from, to, request) in requests {
            self.counts.asked += 1;
            let (tree, key) = match to {
                Address::LeafRequests(_) => (shape::OWN_TREE, &self.shape.own_key),
                _ => (TREE, &self.shape.key),
            };
            let mut bytes = Vec::new();
            Control::Ask(request).encode(tree, EPOCH_NS + now_ns, key, &mut bytes);
            self.send(now_ns, from, to, &bytes.into());
        }
    }
}

/// The relay that answers and forwards nothing, if there is one: in one of four venues, or where there has to be one. Not the only one of
/// its layer, without which nothing arrives, and not without hedges.
fn mute_relay(choices: &mut Choices<'static>, shape: &Shape, has_mute: bool) -> Option<(u32, u32)> {
    let is_there = choices.one_in(4) || has_mute;
    let relay = choices.below(shape.tree.relays().into()) as u32;
    let (layer, _) = shape.place(relay);
    (is_there && shape.hedge > 0 && shape.tree.layers()[layer] > 1).then_some((0, relay))
}

/// How leaf gateways ask this many replicas.
fn recall(replicas: usize) -> RecallSettings {
    RecallSettings {
        replicas,
        gap_wait_ns: 1_000_000,
        retry_ns: 10_000_000,
        tries_max: replicas.max(4) as u32,
        runs_max: 64,
        run_messages_max: 200,
        per_s: 2_000,
        burst: 100,
        kept_bytes_max: 20_000,
    }
}

/// The answer to a reader whose messages are no longer kept.
fn gone(answer: &Answer, channel: u32, (tree, key): (u32, &TreeKey), clock_ns: u64) -> Option<Vec<u8>> {
    let Answer::GoneBefore(number) = *answer else { return None };
    let mut bytes = Vec::new();
    Control::GoneBefore { channel, number }.encode(tree, clock_ns, key, &mut bytes);
    Some(bytes)
}
