//! How late market data comes to receivers, reported up a tree of real sockets. Release times are of a clock that the test moves, so that
//! what is late does not depend on how busy the machine is.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use walras_feed::channel::{ChannelId, Trees, View};
use walras_feed::sender::Packets;
use walras_relay::deadline::Maximum;
use walras_relay::keeper::KeeperSettings;
use walras_relay::keeper_machine::Heard;
use walras_relay::keeping::Keeping;
use walras_relay::lateness::Pieces;
use walras_relay::packet::{Header, Kind, PacketWriter, TreeKey};
use walras_relay::tree::Tree;
use walras_relay_link::socket::{Offload, Socket};
use walras_relay_link::{KeeperNode, Layout, Leaf, RelayNode, SenderNode};
use walras_types::InstrumentId;

const TREE: u32 = 7;
const HELD_NS: u64 = 500_000;
const TRANSIT_NS: u64 = 100_000;
const WAIT: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(30);
/// Packets until reports about earlier ones are through, and until a node that is gone is no longer waited for.
const REPORTED: usize = 250;
const SILENT: usize = 500;
const BEGIN_NS: u64 = 1_700_000_000_000_000_000;

fn key() -> TreeKey {
    TreeKey::new([6; 32])
}

fn socket() -> Socket {
    Socket::bind("127.0.0.1:0".parse().unwrap(), WAIT, Offload::Segments).unwrap()
}

struct Running {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// A sender, relays in one layer, and receivers.
struct World {
    node: SenderNode,
    keeper: KeeperNode,
    pieces: Mutex<Pieces>,
    layout: Layout,
    relays: Vec<Option<Running>>,
    leaves: Vec<Leaf>,
    packet: u64,
}

impl World {
    fn new(relays: u32, receivers: u32) -> Self {
        let widths = if relays == 0 { vec![receivers] } else { vec![relays, receivers] };
        let tree = Tree::of_layers(widths.clone()).unwrap();
        let sockets: Vec<Vec<Socket>> = widths.iter().map(|count| (0..*count).map(|_| socket()).collect()).collect();
        let layers: Vec<Vec<SocketAddr>> =
            sockets.iter().map(|layer| layer.iter().map(|socket| socket.address().unwrap()).collect()).collect();
        let layout = Layout { tree_number: TREE, hedge: 1, tree: tree.clone(), layers, key: key(), trees: Trees::ONE, index: 0 };
        let nodes = layout.nodes();
        let from = "127.0.0.1:0".parse().unwrap();
        let keeper = KeeperNode::open(from, (&tree, TREE, key()), &nodes, KeeperSettings::default(), 1).unwrap();
        let node = SenderNode::new(socket(), &tree, layout.hedge, &nodes);
        let mut sockets = sockets;
        let leaves = (0..).zip(sockets.pop().unwrap()).map(|(place, socket)| Leaf::new(socket, key()).reporting(&layout, place));
        let leaves = leaves.collect();
        let start = |(place, socket): (u32, Socket)| {
            let mut node = RelayNode::new(socket, layout.relay(0, place).unwrap().0, key(), &nodes, 5);
            let stop = Arc::new(AtomicBool::new(false));
            let stopped = Arc::clone(&stop);
            let thread = std::thread::spawn(move || {
                while !stopped.load(Ordering::Relaxed) {
                    node.step().unwrap();
                }
            });
            Some(Running { stop, thread })
        };
        let relays = (0..).zip(sockets.pop().unwrap_or_default()).map(start).collect();
        Self { node, keeper, pieces: Mutex::default(), layout, relays, leaves, packet: 0 }
    }

    fn kill(&mut self, relay: usize) {
        let Running { stop, thread } = self.relays[relay].take().unwrap();
        stop.store(true, Ordering::Relaxed);
        thread.join().unwrap();
    }

    /// Packets, one every 3 ms of release times and as many real ones at least, until so many samples came to the sender. A receiver has
    /// each packet after its `transit_ns`; without one it reads nothing. `also` is called for each packet with its release time.
    fn hear(&mut self, samples: usize, transits_ns: &[Option<u64>], mut also: impl FnMut(&Self, u64)) -> Vec<Heard> {
        let (began, mut heard) = (Instant::now(), Vec::new());
        let channel = ChannelId::instrument(View::Orders, InstrumentId(3)).get();
        while heard.len() < samples {
            assert!(began.elapsed() < PATIENCE, "{} samples: {heard:?}", heard.len());
            self.packet += 1;
            let sent_ns = BEGIN_NS + self.packet * 3_000_000;
            let release_ns = sent_ns + HELD_NS;
            let (mut writer, mut packets) = (PacketWriter::default(), Packets::default());
            assert!(writer.push(&[9; 40]));
            let (packet, count, tree) = (self.packet, 1, walras_relay::live::join(TREE, self.keeper.live().epoch()));
            let header = Header { kind: Kind::Data, count, channel, tree, packet, first: packet, sent_ns, release_ns };
            packets.push(&header, &mut writer, &key());
            self.pieces.lock().unwrap().passed(release_ns, HELD_NS);
            self.node.send(&packets).unwrap();
            let round = Instant::now();
            for (leaf, transit_ns) in self.leaves.iter_mut().zip(transits_ns) {
                let Some(transit_ns) = transit_ns else { continue };
                let mut is_here = false;
                while !is_here {
                    let clock = || Some(sent_ns + transit_ns);
                    let first = |packet: &walras_relay::packet::Packet<'_>| {
                        let is_first = packet.header().packet == header.packet && !is_here;
                        is_here |= is_first;
                        is_first
                    };
                    leaf.receive_held(clock, first).unwrap();
                    assert!(began.elapsed() < PATIENCE, "packet {packet} did not come");
                }
            }
            also(self, release_ns);
            while round.elapsed() < Duration::from_millis(3) {
                if let Some(live) = self.keeper.step(&self.pieces).unwrap() {
                    self.node.set_live(live);
                }
                heard.extend(self.keeper.heard(&self.pieces).unwrap_or_default());
            }
        }
        heard
    }
}

impl Drop for World {
    fn drop(&mut self) {
        (0..self.relays.len()).for_each(|relay| {
            if self.relays[relay].is_some() {
                self.kill(relay);
            }
        });
    }
}

/// By how much a packet with this transit is late: less than 0, since it is early.
fn early(transit_ns: u64) -> i64 {
    transit_ns as i64 - HELD_NS as i64
}

fn assert_all(heard: &[Heard], late_ns: i64, why: &str) {
    // What is at the edge of two parts of a test is of both.
    let late = heard.iter().filter(|heard| heard.late_ns == late_ns).count();
    assert!(late * 10 >= heard.len() * 8, "{why}: {late} of {} are {late_ns}: {heard:?}", heard.len());
    assert!(heard.iter().all(|heard| heard.held_ns == HELD_NS), "{why}: {heard:?}");
}

#[test]
fn a_slow_receiver_is_heard_of_and_one_that_lies_or_dies_is_not() {
    let mut world = World::new(2, 6);
    let usual = [Some(TRANSIT_NS); 6];
    world.hear(REPORTED, &usual, |_, _| {});
    assert_all(&world.hear(40, &usual, |_, _| {}), early(TRANSIT_NS), "all are alike");
    // Within the bound of 1 ms.
    let slow_ns = TRANSIT_NS + 800_000;
    let slow = std::array::from_fn::<_, 6, _>(|at| Some(if at == 4 { slow_ns } else { TRANSIT_NS }));
    world.hear(REPORTED, &slow, |_, _| {});
    assert_all(&world.hear(40, &slow, |_, _| {}), early(slow_ns), "one is slow");
    assert!(world.leaves[4].figures().late >= 200 && world.leaves[0].figures().late == 0, "{:?}", world.leaves[4].figures());
    // It dies, and another one in its place says that everything comes a minute late.
    let gone = std::array::from_fn::<_, 6, _>(|at| Some(TRANSIT_NS).filter(|_| at != 4));
    let liar = socket();
    let lie = |world: &World, release_ns: u64| {
        let node = world.layout.tree.relays() + 4;
        let samples =
            vec![Maximum { packet: release_ns, delay_ns: 60_000_000_000 }, Maximum { packet: release_ns + 1, delay_ns: 7 }];
        let mut bytes = Vec::new();
        Keeping::Late { node, samples }.encode(TREE, 1, &key(), &mut bytes);
        world.layout.layers[0].iter().for_each(|relay| liar.send_to(&bytes, *relay).unwrap());
        // And one without the key.
        bytes.clear();
        Keeping::Late { node: 3, samples: vec![] }.encode(TREE, 1, &TreeKey::new([1; 32]), &mut bytes);
        world.layout.layers[0].iter().for_each(|relay| liar.send_to(&bytes, *relay).unwrap());
    };
    world.hear(SILENT, &gone, lie);
    assert_all(&world.hear(40, &gone, lie), early(TRANSIT_NS), "one lies");
    // A relay dies: those below it report to the other one.
    world.kill(0);
    world.hear(SILENT, &gone, |_, _| {});
    let slow = std::array::from_fn::<_, 6, _>(|at| Some(if at == 0 { slow_ns } else { TRANSIT_NS }).filter(|_| at != 4));
    world.hear(REPORTED, &slow, |_, _| {});
    assert_all(&world.hear(40, &slow, |_, _| {}), early(slow_ns), "a receiver below a relay that is gone");
}

#[test]
fn receivers_report_to_the_sender_where_there_is_no_relay() {
    let mut world = World::new(0, 3);
    let slow = [Some(TRANSIT_NS), Some(TRANSIT_NS + 300_000), Some(TRANSIT_NS)];
    world.hear(REPORTED, &slow, |_, _| {});
    assert_all(&world.hear(40, &slow, |_, _| {}), early(TRANSIT_NS + 300_000), "one is slow");
}
