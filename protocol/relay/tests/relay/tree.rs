//! A sender, its relays and its readers, over links that lose, double, delay and damage packets.

use std::collections::BTreeMap;

use walras_random::Random;
use walras_relay::packet::{Header, Kind, Packet, PacketWriter, TreeKey};
use walras_relay::reader::{Message, Reader, ReaderSettings};
use walras_relay::relay::{Relay, RelaySettings};
use walras_relay::rewinder::{Answer, Rewinder};
use walras_relay::tree::Tree;

const CHANNEL: u32 = 2;
const TREE: u32 = 1;
const READER: ReaderSettings = ReaderSettings { held_max: 64, gap_wait_ns: 2_000_000, retry_ns: 4_000_000, request_max: 40 };

/// Chances in a thousand, of each packet on each link.
#[derive(Clone, Copy, Default)]
struct Links {
    lost: u64,
    doubled: u64,
    damaged: u64,
    delay_ns_max: u64,
}

/// Where a packet arrives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    layer: usize,
    place: u32,
}

struct World {
    tree: Tree,
    hedge: u32,
    links: Links,
    draw: Random,
    key: TreeKey,
    now_ns: u64,
    /// By time, then by number.
    under_way: BTreeMap<(u64, u64), (Node, Vec<u8>)>,
    sent: u64,
    relays: BTreeMap<Node, Relay>,
    /// Of those that are dead nothing comes.
    dead: Vec<Node>,
    readers: Vec<Reader>,
    read: Vec<Vec<(u64, Vec<u8>)>>,
    refused: u64,
    rewinder: Rewinder,
    packets: u64,
    said: Vec<Vec<u8>>,
}

impl World {
    fn new(tree: Tree, hedge: u32, links: Links, seed: u64) -> Self {
        let last = tree.depth() - 1;
        let places = (0..last).flat_map(|layer| (0..tree.layers()[layer]).map(move |place| Node { layer, place }));
        let relay = |at: Node| {
            let Node { layer, place } = at;
            let settings = RelaySettings { layer, place, tree: TREE, hedge, packets_remembered: 256, channels_max: 4 };
            (at, Relay::new(tree.clone(), settings))
        };
        let count = tree.layers()[last] as usize;
        Self {
            relays: places.map(relay).collect(),
            hedge,
            links,
            draw: Random::new(seed),
            key: TreeKey::new([9; 32]),
            now_ns: 0,
            under_way: BTreeMap::new(),
            sent: 0,
            dead: Vec::new(),
            readers: (0..count).map(|_| Reader::new(CHANNEL, 1, READER)).collect(),
            read: vec![Vec::new(); count],
            refused: 0,
            rewinder: Rewinder::new(CHANNEL, 1, 60_000),
            packets: 0,
            said: Vec::new(),
            tree,
        }
    }

    fn is_hit(&mut self, permille: u64) -> bool {
        self.draw.below(1_000) < permille
    }

    fn send(&mut self, to: Node, bytes: &[u8]) {
        let Links { lost, doubled, damaged, delay_ns_max } = self.links;
        for _ in 0..1 + u64::from(self.is_hit(doubled)) {
            let mut bytes = bytes.to_vec();
            if self.is_hit(damaged) {
                let at = self.draw.below(bytes.len() as u64) as usize;
                bytes[at] ^= 0x10;
            }
            let at_ns = self.now_ns + 10_000 + self.draw.below(delay_ns_max + 1);
            self.sent += 1;
            if !self.is_hit(lost) {
                self.under_way.insert((at_ns, self.sent), (to, bytes));
            }
        }
    }

    /// The sender says so many messages in a packet; none is a heartbeat.
    fn say(&mut self, count: u64) {
        let (first, mut writer, mut bytes) = (self.said.len() as u64 + 1, PacketWriter::default(), Vec::new());
        for number in first..first + count {
            let message = format!("message {number} {}", "x".repeat((number % 13) as usize)).into_bytes();
            assert!(writer.push(&message));
            self.rewinder.push(&Message { number, sent_ns: self.now_ns, release_ns: self.now_ns + 500_000, bytes: &message });
            self.said.push(message);
        }
        self.packets += 1;
        let kind = if count == 0 { Kind::Heartbeat } else { Kind::Data };
        let (packet, sent_ns, release_ns) = (self.packets, self.now_ns, self.now_ns + 500_000);
        let header = Header { kind, count: count as u16, channel: CHANNEL, tree: TREE, packet, first, sent_ns, release_ns };
        writer.finish(&header, &self.key, &mut bytes);
        let children: Vec<u32> = self.tree.children(0, 0, packet, self.hedge).collect();
        children.into_iter().for_each(|place| self.send(Node { layer: 0, place }, &bytes));
    }

    /// What is under way arrives, up to a time; readers ask when it is time to.
    fn run_to(&mut self, until_ns: u64) {
        while self.now_ns < until_ns {
            let wakes = self.readers.iter().filter_map(Reader::wake_ns).min().unwrap_or(u64::MAX);
            let arrives = self.under_way.first_key_value().map_or(u64::MAX, |((at_ns, _), _)| *at_ns);
            self.now_ns = self.now_ns.max(wakes.min(arrives)).min(until_ns);
            while let Some(first) = self.under_way.first_entry().filter(|first| first.key().0 <= self.now_ns) {
                let (node, bytes) = first.remove();
                self.arrives(node, &bytes);
            }
            for place in 0..self.readers.len() {
                self.ask(place);
            }
        }
    }

    fn arrives(&mut self, at: Node, bytes: &[u8]) {
        if self.dead.contains(&at) {
            return;
        }
        let key = self.key.clone();
        let Ok(packet) = Packet::decode(bytes, &key) else {
            self.refused += 1;
            return;
        };
        let Some(relay) = self.relays.get_mut(&at) else {
            let (reader, read) = (&mut self.readers[at.place as usize], &mut self.read[at.place as usize]);
            return reader.packet(self.now_ns, &packet, |message| {
                assert_eq!(message.release_ns, message.sent_ns + 500_000, "the release time is as the sender set it");
                read.push((message.number, message.bytes.to_vec()));
            });
        };
        let mut children = Vec::new();
        relay.packet(packet.header(), &mut children);
        children.into_iter().for_each(|place| self.send(Node { layer: at.layer + 1, place }, bytes));
    }

    fn ask(&mut self, place: usize) {
        let Some(request) = self.readers[place].request(self.now_ns) else { return };
        let mut packets = Vec::new();
        match self.rewinder.answer(&request, TREE, &self.key, &mut packets) {
            Answer::Sent => {}
            Answer::GoneBefore(number) => self.readers[place].gone_before(number),
            Answer::Unknown => panic!("{request:?} asks for what was never said"),
        }
        let to = Node { layer: self.tree.depth() - 1, place: place as u32 };
        packets.iter().for_each(|bytes| self.send(to, bytes));
    }

    /// Every reader read what was said from a number on, in order, each once.
    fn assert_all_read(&self, first: u64) {
        for (place, read) in self.read.iter().enumerate() {
            let said = self.said.iter().zip(1..).skip(first as usize - 1).map(|(message, number)| (number, message.clone()));
            assert!(read.iter().cloned().eq(said), "reader {place} of {:?}: {:?}", self.tree, self.readers[place].counts());
        }
    }
}

fn trees() -> [Tree; 4] {
    [Tree::new(1, 1, 5), Tree::new(2, 3, 8), Tree::new(3, 3, 30), Tree::new(4, 2, 17)].map(Result::unwrap)
}

#[test]
fn all_is_read_once_and_in_order_whatever_links_do() {
    for (seed, tree) in trees().into_iter().enumerate() {
        for hedge in [0, 1] {
            let links = Links { lost: 60, doubled: 30, damaged: 20, delay_ns_max: 3_000_000 };
            let mut world = World::new(tree.clone(), hedge, links, seed as u64);
            for _ in 0..300 {
                let count = world.draw.below(4);
                world.say(count);
                world.run_to(world.now_ns + 700_000);
            }
            for _ in 0..40 {
                world.say(0);
                world.run_to(world.now_ns + 20_000_000);
            }
            world.assert_all_read(1);
            assert!(world.refused > 0 && world.readers.iter().any(|reader| reader.counts().asked > 0));
        }
    }
}

/// Jasper, section 7: with one further copy, all relays with an even number may be gone, and nothing is missing.
#[test]
fn every_second_relay_may_be_dead() {
    for (seed, tree) in trees().into_iter().enumerate().skip(1) {
        // One layer of an odd width has two odd neighbours nowhere: its last relay stays.
        let mut world = World::new(tree.clone(), 1, Links { delay_ns_max: 1_000_000, ..Links::default() }, seed as u64);
        let evens = world.relays.keys().copied().filter(|at| at.place % 2 == 0 && at.place + 1 < tree.layers()[at.layer]);
        world.dead = evens.collect();
        assert!(!world.dead.is_empty());
        for _ in 0..100 {
            world.say(2);
            world.run_to(world.now_ns + 10_000_000);
        }
        world.assert_all_read(1);
        assert!(world.readers.iter().all(|reader| reader.counts().asked == 0), "nobody had to ask");
    }
}

#[test]
fn a_relay_that_dies_without_further_copies_costs_its_children_a_request() {
    let mut world = World::new(Tree::new(2, 3, 9).unwrap(), 0, Links::default(), 5);
    world.dead = vec![Node { layer: 0, place: 1 }];
    for _ in 0..60 {
        world.say(1);
        world.run_to(world.now_ns + 3_000_000);
    }
    world.say(0);
    world.run_to(world.now_ns + 100_000_000);
    world.say(0);
    world.run_to(world.now_ns + 1_000_000_000);
    world.assert_all_read(1);
    // Spraying spreads its loss over all readers: none loses more than a third of the packets.
    assert!(world.readers.iter().all(|reader| (10..=25).contains(&reader.counts().asked)), "{:?}", world.readers[0].counts());
}

#[test]
fn one_who_was_away_for_long_needs_a_snapshot_and_then_goes_on() {
    let mut world = World::new(Tree::new(2, 2, 4).unwrap(), 1, Links { delay_ns_max: 50_000, ..Links::default() }, 8);
    for _ in 0..10 {
        world.say(1);
        world.run_to(world.now_ns + 1_000_000);
    }
    let away = Node { layer: 1, place: 3 };
    world.dead = vec![away];
    for _ in 0..800 {
        world.say(3);
        world.run_to(world.now_ns + 1_000_000);
    }
    world.dead.clear();
    for _ in 0..20 {
        world.say(1);
        world.run_to(world.now_ns + 1_000_000);
    }
    assert!(world.readers[3].needs_snapshot() && world.read[3].len() == 10, "{:?}", world.readers[3]);
    // A snapshot that is as new as the third of the last messages; messages come while it is under way.
    let upto = world.said.len() as u64 - 17;
    world.say(1);
    world.run_to(world.now_ns + 1_000_000);
    let (now_ns, read) = (world.now_ns, &mut world.read[3]);
    world.readers[3].join(now_ns, upto, |message| read.push((message.number, message.bytes.to_vec())));
    world.say(1);
    world.run_to(world.now_ns + 100_000_000);
    let numbers: Vec<u64> = world.read[3][10..].iter().map(|(number, _)| *number).collect();
    assert!(numbers.iter().copied().eq(upto..=world.said.len() as u64), "{numbers:?} from {upto}");
    // One that begins late does the same.
    let mut late = Reader::joining(CHANNEL, READER);
    assert!(late.needs_snapshot() && late.wake_ns().is_none());
    let mut numbers = Vec::new();
    late.join(now_ns, upto, |message| numbers.push(message.number));
    assert!(!late.needs_snapshot() && numbers.is_empty() && late.next() == upto);
}
