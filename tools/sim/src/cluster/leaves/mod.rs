//! Leaf gateways: the product's, each with links to all replicas, which carry messages in order or are lost, and with clients that know
//! no replica. They die like all else, and start again with nothing.

mod wrong;

use std::collections::BTreeMap;

use bytes::Bytes;
use walras_fair_access::clock::ClockStatus;
use walras_gateway::session::{ServerSettings, VenueKeys};
use walras_gateway::{Gateway, GatewayConfig, Rate};
use walras_replica::{Leaf, LeafEffect, LeafMessage, LeafSettings};
use walras_sequencer::GatewayTime;
use walras_testkit::{Choices, Random};
use walras_types::TimeNs;

use super::event::{Event, Phase};
use super::mutation::Mutation;
use super::net::{Direction, End, Flow};
use super::places::{LEAVES, LEAVES_FROM, place_of, replica_id};
use super::replica::{StreamId, Streams, fair, fix_settings, protocol_of};
use super::world::World;
use crate::common::checks::Violation;
use crate::common::clock::EPOCH_NS;
use wrong::WrongLeaf;

/// Their links count as streams of clients from this number on.
const LINKS_FROM: usize = 1_000;

/// A leaf dies about this often in a storm, and starts again after this at most.
const DIES_NS: u64 = 4_000_000_000;
const DOWN_NS_MAX: u64 = 400_000_000;
/// A link that is lost is made again after this.
const LINK_NS: u64 = 30_000_000;
/// The clock of a leaf is off by less.
const ERROR_NS: u64 = 50_000;

/// All leaves of a venue.
pub(super) struct Leaves {
    places: Vec<Place>,
    choices: Choices<'static>,
    random: Random,
    mutation: Option<Mutation>,
    /// Leaves that died, and times that one went to another replica.
    pub(super) crashes: u64,
    pub(super) moves: u64,
}

struct Place {
    process: Option<LeafProcess>,
    generation: u64,
    wake_ns: Option<u64>,
    links: BTreeMap<usize, Link>,
    error_ns: i64,
    /// What its stamps of orders are multiples of.
    grain_ns: u64,
    was_attached: bool,
}

/// A link with a replica: the begin of a message that came at each end.
struct Link {
    stream: StreamId,
    at_replica: Vec<u8>,
    at_leaf: Vec<u8>,
}

struct LeafProcess {
    leaf: Leaf,
    gateway: Gateway,
    streams: Streams,
    wrong: WrongLeaf,
}

impl Leaves {
    pub(super) fn new(random: &Random, grain_ns: u64, mutation: Option<Mutation>) -> Self {
        let mut choices = Choices::of_random(random.fork(18));
        let mut place = || Place {
            process: None,
            generation: 0,
            wake_ns: None,
            links: BTreeMap::new(),
            error_ns: choices.below(2 * ERROR_NS).cast_signed() - ERROR_NS.cast_signed(),
            grain_ns,
            was_attached: false,
        };
        let places = (0..LEAVES).map(|_| place()).collect();
        Self { places, choices, random: random.fork(19), mutation, crashes: 0, moves: 0 }
    }
}

impl Place {
    fn at(&self, now_ns: u64) -> GatewayTime {
        let time_ns = (EPOCH_NS + now_ns).saturating_add_signed(self.error_ns);
        GatewayTime { now_ns, now: TimeNs(time_ns), time_ns, status: ClockStatus::Good }
    }

    /// When what a client sent counts as having come.
    fn stamp(&self, at: GatewayTime) -> GatewayTime {
        GatewayTime { time_ns: at.time_ns / self.grain_ns * self.grain_ns, ..at }
    }
}

/// Messages that are whole, each after its length; the rest stays.
fn take_messages(bytes: &mut Vec<u8>) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>()
        && let Some(message) = rest.get(..u32::from_le_bytes(*length) as usize)
    {
        let message = message.to_vec();
        bytes.drain(..4 + message.len());
        messages.push(message);
    }
    messages
}

fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("messages are short");
    [&length.to_le_bytes()[..], message].concat()
}

impl World {
    pub(super) fn plan_leaves(&mut self) {
        let Some(leaves) = &mut self.leaves else { return };
        for leaf in 0..leaves.places.len() {
            let dies_ns = leaves.choices.within(1_000_000, 2 * DIES_NS) * self.density.rarer;
            self.schedule.at(0, Event::LeafStarts(leaf));
            self.schedule.at(dies_ns, Event::LeafDies(leaf));
        }
    }

    pub(super) fn leaf_starts(&mut self, leaf: usize) {
        let Self { leaves: Some(leaves), schedule, machines, keys, now_ns, merges, checks, fix, .. } = self else { return };
        checks.borrow_mut().on_leaf_start(replica_id(LEAVES_FROM + leaf));
        let place = &mut leaves.places[leaf];
        let at = place.at(*now_ns);
        let mut entropy = [0; VenueKeys::ENTROPY_LEN];
        leaves.random.fork(place.generation * LEAVES as u64 + leaf as u64).fill(&mut entropy);
        let rate = Rate::new(2_000, 2_000).expect("it is not zero");
        let mut gateway = Gateway::new(GatewayConfig { key_rate: rate, source_rate: rate, ..GatewayConfig::new(at.now.0) });
        for key in keys.iter() {
            gateway.add_key(key.clone()).expect("each client has a key of its own");
        }
        // Each prefers another one.
        let replicas = (0..machines.len()).map(|place| replica_id((place + leaf) % machines.len())).collect();
        let settings = LeafSettings {
            entry: ServerSettings::default(),
            entry_keys: std::sync::Arc::new(VenueKeys::new(&entropy)),
            forwards: fair::forwards(*merges),
            replicas,
            lists: !fix.is_empty(),
        };
        let (mut process, wrong) = (Leaf::new(settings), WrongLeaf::new(leaves.mutation));
        if !fix.is_empty() {
            process.entry_mut().set_fix(fix_settings());
        }
        place.process = Some(LeafProcess { leaf: process, gateway, streams: Streams::default(), wrong });
        (place.wake_ns, place.was_attached) = (None, false);
        for replica in 0..machines.len() {
            schedule.at(*now_ns + LINK_NS, Event::LeafLinks { leaf, replica });
        }
    }

    /// A leaf is killed.
    pub(super) fn leaf_dies(&mut self, leaf: usize) -> Result<(), Violation> {
        if self.phase != Phase::Safety {
            return Ok(());
        }
        let Self { leaves: Some(leaves), network, schedule, now_ns, density, .. } = self else { return Ok(()) };
        let (down_ns, next_ns) = (leaves.choices.below(DOWN_NS_MAX), leaves.choices.within(1_000_000, 2 * DIES_NS) * density.rarer);
        let place = &mut leaves.places[leaf];
        schedule.at(*now_ns + down_ns + next_ns, Event::LeafDies(leaf));
        if place.process.take().is_none() {
            return Ok(());
        }
        leaves.crashes += 1;
        place.generation += 1;
        let linked = std::mem::take(&mut place.links);
        let mut streams = network.streams_of(End::Replica(LEAVES_FROM + leaf));
        streams.extend(network.streams_of(End::Client(LINKS_FROM + leaf)));
        schedule.at(*now_ns + down_ns, Event::LeafStarts(leaf));
        self.trace.line(self.now_ns, || format!("leaf {leaf} dies"));
        for stream in streams {
            self.cut_stream(stream);
        }
        let id = replica_id(LEAVES_FROM + leaf);
        linked.into_keys().try_for_each(|replica| self.with_process(replica, |process, at| process.on_link_lost(at, id)))
    }

    /// A leaf makes a link with a replica, if that is there.
    pub(super) fn leaf_links(&mut self, leaf: usize, replica: usize) -> Result<(), Violation> {
        let (here, there) = (End::Client(LINKS_FROM + leaf), End::Replica(replica));
        let passes = self.reaches(here, there) && self.reaches(there, here) && self.machines[replica].process.is_some();
        let Some(place) = self.leaves.as_mut().map(|leaves| &mut leaves.places[leaf]) else { return Ok(()) };
        if place.process.is_none() || place.links.contains_key(&replica) {
            return Ok(());
        }
        if !passes {
            self.schedule.at(self.now_ns + LINK_NS, Event::LeafLinks { leaf, replica });
            return Ok(());
        }
        let stream = self.network.open_stream(LINKS_FROM + leaf, replica);
        self.network.is_up(stream);
        place.links.insert(replica, Link { stream, at_replica: Vec::new(), at_leaf: Vec::new() });
        self.with_process(replica, |process, at| process.on_linked(at, replica_id(LEAVES_FROM + leaf)))?;
        self.with_leaf(leaf, |process, at| process.leaf.on_linked(at, replica_id(replica)));
        Ok(())
    }

    /// Something arrives by a link, or from a leaf's client. `None` where the stream is neither.
    pub(super) fn arrive_at_leaf(
        &mut self,
        (stream, direction): (StreamId, Direction),
        (client, replica): (usize, usize),
        flow: &Flow,
    ) -> Option<Result<(), Violation>> {
        let leaves = self.leaves.as_mut()?;
        if let Some(leaf) = client.checked_sub(LINKS_FROM).filter(|leaf| *leaf < LEAVES) {
            let link = leaves.places[leaf].links.get_mut(&replica).filter(|link| link.stream == stream);
            // One that was lost before says nothing more.
            let Some(link) = link else { return Some(Ok(())) };
            return Some(match (direction, flow) {
                (_, Flow::End) => self.leaf_link_lost(leaf, replica),
                (Direction::ToReplica, Flow::Bytes(bytes)) => {
                    link.at_replica.extend_from_slice(bytes);
                    let messages = take_messages(&mut link.at_replica);
                    messages.into_iter().try_for_each(|message| {
                        let from = replica_id(LEAVES_FROM + leaf);
                        self.with_process(replica, |process, at| process.on_leaf_message(at, from, message.into()))
                    })
                }
                (Direction::ToClient, Flow::Bytes(bytes)) => {
                    link.at_leaf.extend_from_slice(bytes);
                    let messages = take_messages(&mut link.at_leaf);
                    messages.into_iter().for_each(|message| self.leaf_hears(leaf, replica, &message.into()));
                    Ok(())
                }
            });
        }
        let leaf = replica.checked_sub(LEAVES_FROM).filter(|_| direction == Direction::ToReplica)?;
        let stamped = leaves.places[leaf].stamp(leaves.places[leaf].at(self.now_ns));
        self.with_leaf(leaf, |process, at| match flow {
            Flow::Bytes(bytes) => process.on_bytes(stamped, stream, bytes),
            Flow::End => process.on_stream_end(at, stream),
        });
        Some(Ok(()))
    }

    /// A message of a replica arrives at a leaf.
    fn leaf_hears(&mut self, leaf: usize, replica: usize, bytes: &Bytes) {
        let (id, from) = (replica_id(LEAVES_FROM + leaf), replica_id(replica));
        let Ok(message) = LeafMessage::decode(bytes) else { return };
        self.checks.borrow_mut().on_leaf_received(id, from, &message);
        self.with_leaf(leaf, |process, at| {
            if process.wrong.hears(&message) {
                process.leaf.on_message(at, from, bytes);
            }
        });
    }

    /// A link has ended: both ends learn it.
    fn leaf_link_lost(&mut self, leaf: usize, replica: usize) -> Result<(), Violation> {
        let Some(place) = self.leaves.as_mut().map(|leaves| &mut leaves.places[leaf]) else { return Ok(()) };
        if let Some(link) = place.links.remove(&replica) {
            self.cut_stream(link.stream);
        }
        self.schedule.at(self.now_ns + LINK_NS, Event::LeafLinks { leaf, replica });
        self.with_leaf(leaf, |process, at| process.leaf.on_link_lost(at, replica_id(replica)));
        self.with_process(replica, |process, at| process.on_link_lost(at, replica_id(LEAVES_FROM + leaf)))
    }

    /// A replica sends to a leaf.
    pub(super) fn send_to_leaf(&mut self, from: usize, leaf: usize, bytes: &[u8]) {
        let Some(leaves) = &self.leaves else { return };
        let Some(link) = leaves.places.get(leaf).and_then(|place| place.links.get(&from)) else { return };
        self.write(link.stream, Direction::ToClient, Flow::Bytes(framed(bytes)));
    }

    /// A client connects to a leaf; whether one is there.
    pub(super) fn accept_at_leaf(&mut self, leaf: usize, client: usize) -> Option<StreamId> {
        let place = self.leaves.as_ref().and_then(|leaves| leaves.places.get(leaf))?;
        place.process.as_ref()?;
        let stream = self.network.open_stream(client, LEAVES_FROM + leaf);
        self.with_leaf(leaf, |process, at| {
            let id = process.streams.accept(stream, client);
            process.leaf.on_connected(at, id, protocol_of(client));
        });
        Some(stream)
    }

    pub(super) fn leaf_wakes(&mut self, leaf: usize, generation: u64) {
        let Some(place) = self.leaves.as_mut().map(|leaves| &mut leaves.places[leaf]) else { return };
        if place.generation == generation && place.wake_ns.is_some_and(|wake_ns| wake_ns <= self.now_ns) {
            place.wake_ns = None;
            self.with_leaf(leaf, |_, _| ());
        }
    }

    /// Lets a leaf do something, then does what it wants.
    fn with_leaf(&mut self, leaf: usize, act: impl FnOnce(&mut LeafProcess, GatewayTime)) {
        let Some(leaves) = &mut self.leaves else { return };
        let place = &mut leaves.places[leaf];
        let at = place.at(self.now_ns);
        let Some(process) = &mut place.process else { return };
        act(process, at);
        if self.merges {
            // Bytes that come at this very instant may still come.
            process.leaf.taken_in(at, (at.time_ns / place.grain_ns * place.grain_ns).saturating_sub(1));
        }
        process.leaf.round(at);
        let (mut effects, mut written) = (Vec::new(), Vec::new());
        // What was written to nobody any more may have ended a session.
        process.flush(at, &mut written);
        process.leaf.take_effects(&mut effects);
        let due_ns = process.leaf.deadline_ns().max(self.now_ns + 1);
        if due_ns < u64::MAX && place.wake_ns.is_none_or(|wake_ns| due_ns < wake_ns) {
            place.wake_ns = Some(due_ns);
            self.schedule.at(due_ns, Event::LeafWakes { leaf, generation: place.generation });
        }
        let (mut sends, mut checks, id) = (Vec::new(), self.checks.borrow_mut(), replica_id(LEAVES_FROM + leaf));
        for effect in effects {
            match effect {
                LeafEffect::Send { to, bytes } => {
                    let Some(bytes) = process.wrong.sent(at, bytes) else { continue };
                    let bytes = Bytes::from(bytes);
                    checks.on_leaf_sent(id, self.now_ns, &bytes);
                    let link = place.links.get(&place_of(to)).map(|link| link.stream);
                    sends.extend(link.map(|stream| (stream, framed(&bytes))));
                }
                LeafEffect::Attached(to) => {
                    process.wrong.attached();
                    checks.on_leaf_attached(id, to);
                    leaves.moves += u64::from(std::mem::replace(&mut place.was_attached, true));
                    self.trace.line(self.now_ns, || format!("leaf {leaf} is below replica {to}"));
                }
                LeafEffect::Detached(_) => checks.on_leaf_detached(id),
                LeafEffect::Published(mark) => self.overlay.iter_mut().for_each(|overlay| overlay.on_mark(leaf, mark)),
            }
        }
        checks.on_leaf_settled(id, self.now_ns);
        drop(checks);
        for (stream, bytes) in sends {
            self.write(stream, Direction::ToReplica, Flow::Bytes(bytes));
        }
        for (stream, bytes, ends) in written {
            self.write(stream, Direction::ToClient, Flow::Bytes(bytes));
            if ends {
                self.write(stream, Direction::ToClient, Flow::End);
                self.write(stream, Direction::ToReplica, Flow::End);
            }
        }
    }
}

impl LeafProcess {
    fn on_bytes(&mut self, at: GatewayTime, stream: StreamId, bytes: &[u8]) {
        let Self { leaf, gateway, streams, .. } = self;
        let Some((id, source)) = streams.of(stream) else { return };
        let clock_ns = at.now.0;
        leaf.on_bytes(at, id, bytes, &mut |principal, permission, from| gateway.charge(clock_ns, principal, permission, from, 1));
        while let Some((id, logon)) = leaf.entry_mut().next_logon() {
            let verdict = logon.authorize(gateway, clock_ns, source);
            leaf.on_authenticated(at, id, verdict);
        }
    }

    fn on_stream_end(&mut self, at: GatewayTime, stream: StreamId) {
        if let Some((id, _)) = self.streams.of(stream) {
            self.leaf.on_disconnected(at, id);
            self.streams.remove(stream);
        }
    }

    /// What clients are sent, and whether their connection ends.
    fn flush(&mut self, at: GatewayTime, written: &mut Vec<(StreamId, Vec<u8>, bool)>) {
        let Self { leaf, streams, wrong, .. } = self;
        while let Some(id) = leaf.next_dirty(at) {
            let entry = leaf.entry_mut();
            let (bytes, ends) = (entry.output(id).to_vec(), entry.is_over(id));
            entry.consume(id, bytes.len());
            let bytes = wrong.written(bytes);
            let stream = StreamId(id.serial);
            if ends {
                entry.remove(id);
                streams.remove(stream);
            }
            if ends || !bytes.is_empty() {
                written.push((stream, bytes, ends));
            }
        }
        // Why a connection ended is of no interest here.
        while leaf.entry_mut().next_end().is_some() {}
    }
}
