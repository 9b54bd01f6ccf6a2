//! The nodes of a relay tree on their sockets allocate at the start, and nothing per packet: a relay, and a receiver below it. What the
//! thread of the test allocates is counted: those of the test runner allocate when they like. A program of its own, because it has another
//! allocator.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use walras_allocations::{Counting, allocations_of};
use walras_feed::channel::{ChannelId, View};
use walras_relay::keeping::Keeping;
use walras_relay::live::join;
use walras_relay::packet::{Header, Kind, Packet, PacketWriter, TreeKey};
use walras_relay::relay::{Relay, RelaySettings};
use walras_relay::tree::Tree;
use walras_relay_link::socket::{Offload, Socket};
use walras_relay_link::{Leaf, RelayNode};
use walras_types::InstrumentId;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const TREE: u32 = 3;
const EPOCH: u16 = 1;
const RECEIVERS: u32 = 8;
const CHANNELS: u64 = 4;
/// Packets that are sent before the nodes take any, so few that no socket's buffer is too small.
const BATCH: u64 = 32;
/// Batches until all memory is there, and those after it.
const WARM_UP: u64 = 4;
const BATCHES: u64 = 60;
/// A node looks for so long at a socket where nothing is.
const WAIT: Duration = Duration::from_millis(5);
/// What does not come on loopback in so long does not come at all.
const PATIENCE: Duration = Duration::from_secs(20);

fn key() -> TreeKey {
    TreeKey::new([7; 32])
}

fn bound(offload: Offload) -> Socket {
    Socket::bind("127.0.0.1:0".parse().unwrap(), WAIT, offload).unwrap()
}

/// Packets of several channels, one after the other, each of three messages, that may be released later.
fn batch(number: u64) -> Vec<Vec<u8>> {
    let mut writer = PacketWriter::default();
    let packet = |at: u64| {
        let (channel, packet) = (InstrumentId((at % CHANNELS) as u32), 1 + at / CHANNELS);
        (0..3_u64).for_each(|message| assert!(writer.push(&[message as u8; 40])));
        let header = Header {
            kind: Kind::Data,
            count: 3,
            channel: ChannelId::instrument(View::Levels, channel).get(),
            tree: join(TREE, EPOCH),
            packet,
            first: 3 * packet - 2,
            sent_ns: 9,
            release_ns: 1_000_000_000 + 50_000 * at,
        };
        let mut bytes = Vec::new();
        writer.finish(&header, &key(), &mut bytes);
        bytes
    };
    (number * BATCH..(number + 1) * BATCH).map(packet).collect()
}

/// First copies, further ones, and forged packets that a relay took.
fn handled(relay: &RelayNode) -> [u64; 3] {
    let counts = relay.counts();
    [counts.first, counts.copies, counts.forged]
}

/// A relay, and the receivers below it.
struct Nodes {
    from: Socket,
    relay: RelayNode,
    to: SocketAddr,
    leaves: Vec<Leaf>,
}

impl Nodes {
    /// The first of two relays. The other one is out by the view that it is sent, so it passes all packets on to all receivers.
    fn new(offload: Offload) -> Self {
        let tree = Tree::of_layers(vec![2, RECEIVERS]).unwrap();
        let settings = RelaySettings { layer: 0, place: 0, tree: TREE, hedge: 1, packets_remembered: 1 << 10, channels_max: 64 };
        let leaves: Vec<Leaf> = (0..RECEIVERS).map(|_| Leaf::new(bound(offload), key())).collect();
        let (from, socket) = (bound(Offload::None), bound(offload));
        let to = socket.address().unwrap();
        let mut nodes = vec![to, from.address().unwrap()];
        nodes.extend(leaves.iter().map(|leaf| leaf.address().unwrap()));
        let mut relay = RelayNode::new(socket, Relay::new(tree, settings), key(), &nodes, 5);
        let (mut view, out) = (Vec::new(), BTreeSet::from([1]));
        Keeping::View { version: 1, epoch: EPOCH, out }.encode(TREE, 1, &key(), &mut view);
        from.send_to(&view, to).unwrap();
        let begun = Instant::now();
        while relay.step().unwrap() == 0 {
            assert!(begun.elapsed() < PATIENCE, "the view does not come");
        }
        Self { from, relay, to, leaves }
    }

    /// Sends a batch, each packet twice, and a forged one. What the relay and the first receiver allocate while they take it.
    fn pass(&mut self, number: u64) -> [u64; 2] {
        let made = batch(number);
        let mut forged = made[0].clone();
        forged[60] ^= 1;
        for bytes in made.iter().chain(&made).chain([&forged]) {
            self.from.send_to(bytes, self.to).unwrap();
        }
        let begun = Instant::now();
        let expected = [(number + 1) * BATCH, (number + 1) * BATCH, number + 1];
        let relay = &mut self.relay;
        let by_relay = allocations_of(|| {
            while handled(relay) != expected {
                relay.step().unwrap();
                assert!(begun.elapsed() < PATIENCE, "loopback loses nothing");
            }
        });
        let mut by_leaf = 0;
        for (at, leaf) in self.leaves.iter_mut().enumerate() {
            let (mut packets, mut bytes) = (0, 0);
            let allocated = allocations_of(|| {
                while packets < BATCH {
                    let take = |packet: &Packet<'_>| {
                        packets += 1;
                        bytes += packet.messages().map(|(_, message)| message.len()).sum::<usize>();
                    };
                    leaf.receive(take).unwrap();
                    assert!(begun.elapsed() < PATIENCE, "receiver {at} misses packets");
                }
            });
            assert_eq!((packets, bytes), (BATCH, BATCH as usize * 3 * 40), "receiver {at}");
            by_leaf += if at == 0 { allocated } else { 0 };
        }
        [by_relay, by_leaf]
    }
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations_of(|| drop(std::hint::black_box(Box::new(5)))), 1);
}

/// A relay checks what it received and passes first copies on, several in one call of the system where it can; a receiver checks and reads
/// them.
#[test]
fn a_relay_and_a_receiver_on_sockets_allocate_nothing_per_packet() {
    for offload in [Offload::None, Offload::Segments] {
        let mut nodes = Nodes::new(offload);
        for number in 0..WARM_UP {
            nodes.pass(number);
        }
        for number in WARM_UP..WARM_UP + BATCHES {
            assert_eq!(nodes.pass(number), [0, 0], "batch {number}, {offload:?}");
        }
        assert_eq!(nodes.relay.lost(), 0);
    }
}
