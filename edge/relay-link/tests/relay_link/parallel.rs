//! Two parallel trees on real sockets, with relays of their own each, over which four markets are spread. Every receiver stands in both;
//! one joins late.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use walras_feed::book::{Book, Content};
use walras_feed::channel::{ChannelId, Trees, View};
use walras_feed::message::{Head, Message, OrderAdded, Place};
use walras_feed::publisher::Run;
use walras_feed::reader::MarketReader;
use walras_feed::sender::{Packets, SenderSettings};
use walras_feed::station::{Part, Station};
use walras_relay::packet::{PACKET_BYTES_MAX, TreeKey};
use walras_relay::reader::ReaderSettings;
use walras_relay::relay::{Relay, RelaySettings};
use walras_relay::tree::Tree;
use walras_relay_link::socket::{Offload, Socket};
use walras_relay_link::{Leaf, NodeCounts, RelayNode, SenderNode};
use walras_types::{InstrumentId, OrderId, PriceTicks, Side, SizeLots};

const TREE: u32 = 7;
const TREES: u32 = 2;
const MARKETS: u32 = 4;
const RECEIVERS: usize = 3;
const WAIT: Duration = Duration::from_millis(5);
/// What does not come on loopback within this time does not come at all.
const PATIENCE: Duration = Duration::from_secs(20);
/// Only a loss counts as a gap, after a long wait: other threads may be slow.
const READER: ReaderSettings =
    ReaderSettings { held_max: 4_096, gap_wait_ns: 10_000_000_000, retry_ns: 10_000_000_000, request_max: 500 };
const SECOND_NS: u64 = 1_000_000_000;

fn key() -> TreeKey {
    TreeKey::new([6; 32])
}

fn trees() -> Trees {
    Trees::new(TREES).unwrap()
}

fn socket() -> Socket {
    Socket::bind("127.0.0.1:0".parse().unwrap(), WAIT, Offload::Segments).unwrap()
}

fn channels() -> Vec<ChannelId> {
    (0..MARKETS).map(|market| ChannelId::instrument(View::Orders, InstrumentId(market))).collect()
}

/// A relay in a thread of its own.
struct RunningRelay {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<NodeCounts>,
}

impl RunningRelay {
    fn start(mut node: RelayNode) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                node.step().unwrap();
            }
            node.counts()
        });
        Self { stop, thread }
    }

    fn stop(self) -> NodeCounts {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// One tree: its sender, and its relays.
struct Branch {
    station: Station,
    node: SenderNode,
    relays: Vec<RunningRelay>,
    elapsed_ns: u64,
}

impl Branch {
    /// The tree with this number, from 0, and a socket for each receiver.
    fn new(at: u32) -> (Self, Vec<Socket>) {
        let tree = Tree::of_layers(vec![2, RECEIVERS as u32]).unwrap();
        let sockets: Vec<Socket> = (0..2 + RECEIVERS).map(|_| socket()).collect();
        let nodes: Vec<SocketAddr> = sockets.iter().map(|socket| socket.address().unwrap()).collect();
        let settings = SenderSettings {
            tree: TREE,
            trees: trees(),
            epoch: 0,
            first_number: 1,
            key: key(),
            packet_bytes: PACKET_BYTES_MAX,
            rewind_bytes_max: 1 << 20,
            rewind_total_bytes_max: 1 << 20,
            heartbeat_ns: SECOND_NS,
            snapshot_bytes_per_s: 100_000_000,
            rotation_ns_min: SECOND_NS,
        };
        let node = SenderNode::new(socket(), &tree, 1, &nodes);
        let mut sockets = sockets.into_iter();
        let relays = (0..2).map(|place| {
            let settings =
                RelaySettings { layer: 0, place, tree: TREE + at, hedge: 1, packets_remembered: 1 << 12, channels_max: 16 };
            let relay = Relay::new(tree.clone(), settings);
            RunningRelay::start(RelayNode::new(sockets.next().unwrap(), relay, key(), &nodes, 5))
        });
        let relays = relays.collect();
        let mut station = Station::of_tree(settings, at);
        station.set_part(Part::Sends, 1);
        (Self { station, node, relays, elapsed_ns: 0 }, sockets.collect())
    }
}

/// A receiver: a socket in each tree, and a reader of each market.
struct Receiver {
    leaves: Vec<Leaf>,
    readers: Vec<MarketReader>,
}

impl Receiver {
    fn step(&mut self) {
        let Self { leaves, readers } = self;
        for leaf in leaves {
            leaf.receive(|packet| readers.iter_mut().for_each(|reader| reader.packet(0, packet, |_, _| {}))).unwrap();
        }
    }

    fn wait_for(&mut self, next: u64) {
        let began = Instant::now();
        while self.readers.iter().any(|reader| reader.next() < next || reader.book().is_none()) {
            self.step();
            assert!(began.elapsed() < PATIENCE, "{:?}", self.readers);
        }
    }
}

struct World {
    branches: Vec<Branch>,
    receivers: Vec<Receiver>,
    orders: u64,
}

impl World {
    fn new() -> Self {
        let (branches, sockets): (Vec<_>, Vec<_>) = (0..TREES).map(Branch::new).unzip();
        let mut sockets: Vec<_> = sockets.into_iter().map(Vec::into_iter).collect();
        let receivers = (0..RECEIVERS).map(|_| {
            let leaves = sockets.iter_mut().map(|sockets| Leaf::new(sockets.next().unwrap(), key())).collect();
            let reader = |channel| MarketReader::from_the_start(channel, READER).of_trees(trees());
            Receiver { leaves, readers: channels().into_iter().map(reader).collect() }
        });
        let receivers = receivers.collect();
        Self { branches, receivers, orders: 0 }
    }

    /// An order in each market; each travels by the tree of its market.
    fn send(&mut self) {
        self.orders += 1;
        let (order_id, price) = (OrderId(self.orders), PriceTicks::saturating(1 + self.orders as i64 % 50));
        let mut bytes = vec![0; 2];
        Message::from(OrderAdded { order_id, side: Side::Buy, price, shown: SizeLots::new(1) })
            .encode(&Head { place: Place::Last, log_index: self.orders, time_ns: self.orders }, &mut bytes);
        let length = (bytes.len() - 2) as u16;
        bytes[..2].copy_from_slice(&length.to_le_bytes());
        for channel in channels() {
            let Branch { station, node, .. } = &mut self.branches[trees().of(channel) as usize];
            let mut packets = Packets::default();
            station.publish(Run::new(channel, self.orders, &bytes), Part::Sends, (1, 0), &mut packets);
            assert_eq!(packets.count(), 1);
            node.send(&packets).unwrap();
        }
    }

    /// What is sent without anybody's asking: heartbeats and snapshots.
    fn rotate(&mut self) {
        for Branch { station, node, elapsed_ns, .. } in &mut self.branches {
            let mut packets = Packets::default();
            *elapsed_ns += SECOND_NS;
            station.on_timer((*elapsed_ns, *elapsed_ns), &mut packets);
            node.send(&packets).unwrap();
        }
    }
}

#[test]
fn two_trees_carry_half_of_the_markets_each_and_one_who_joins_late_reads_all() {
    let mut world = World::new();
    for _ in 0..40 {
        world.send();
        let next = world.orders + 1;
        world.receivers.iter_mut().for_each(|receiver| receiver.wait_for(next));
    }
    // The last receiver begins again with nothing, while data flows.
    let mut late = world.receivers.pop().unwrap();
    late.readers = channels().into_iter().map(|channel| MarketReader::joining(channel, READER).of_trees(trees())).collect();
    let began = Instant::now();
    while late.readers.iter().any(|reader| reader.book().is_none()) {
        world.send();
        world.rotate();
        late.step();
        world.receivers.iter_mut().for_each(Receiver::step);
        assert!(began.elapsed() < PATIENCE, "{:?}", late.readers);
    }
    world.send();
    let next = world.orders + 1;
    late.wait_for(next);
    world.receivers.iter_mut().for_each(|receiver| receiver.wait_for(next));
    let books: Vec<Vec<&Book>> = world
        .receivers
        .iter()
        .chain([&late])
        .map(|receiver| receiver.readers.iter().map(|reader| reader.book().unwrap()).collect())
        .collect();
    for books in &books {
        for (market, book) in books.iter().enumerate() {
            let Content::Orders(orders) = book.content() else { panic!("{book:?}") };
            let Content::Orders(first) = books[0].content() else { panic!("{book:?}") };
            assert_eq!((orders.order_count() as u64, orders.orders()), (world.orders, first.orders()), "market {market}");
        }
    }
    assert!(
        late.readers.iter().chain(&world.receivers[0].readers).all(|reader| reader.counts().asked == 0 && reader.error().is_none())
    );
    for (at, branch) in world.branches.into_iter().enumerate() {
        for counts in branch.relays.into_iter().map(RunningRelay::stop) {
            // Every relay of a tree has its two markets, and nothing of the other tree's.
            assert!(counts.first >= 2 * world.orders && counts.others == 0, "tree {at}: {counts:?}");
        }
    }
}
