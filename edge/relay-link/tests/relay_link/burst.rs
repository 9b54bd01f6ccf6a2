//! Bursts of fifteen times the usual rate, through relays on real sockets to leaf gateways that have room for a part of one. What has no
//! room, and what sockets drop, comes back from a replica. Time is the test's, so that nothing depends on how busy the machine is.

use std::time::Instant;

use walras_fair_access::release::HoldSettings;
use walras_feed::book::{Content, OrderBook};
use walras_feed::channel::Trees;
use walras_feed::outlet::{Outlet, OutletSettings};
use walras_feed::reader::MarketReader;
use walras_feed::recall::RecallSettings;
use walras_feed::sender::{Packets, Sender};
use walras_relay::packet::{PACKET_BYTES_MAX, Packet, TreeKey};
use walras_relay::reader::Request;
use walras_relay::rewinder::Answer;
use walras_relay::tree::Tree;
use walras_relay_link::socket::{Offload, Socket};
use walras_relay_link::{AskRate, Leaf, RecallNode, RewindNode};

use super::loopback::{PATIENCE, READER, Started, TREE, Venue, channel, key, socket, start};

/// Packets of a usual round, and of one of a burst.
const USUAL: u64 = 100;
const BURST: u64 = 15 * USUAL;
const ROUND_NS: u64 = 1_000_000;
/// How long market data is held.
const HELD_NS: u64 = ROUND_NS / 2;
/// Packets that a gateway may hold: those of two usual rounds.
const HELD_MAX: usize = 2 * USUAL as usize;

const RECALL: RecallSettings = RecallSettings {
    replicas: 1,
    gap_wait_ns: 10,
    retry_ns: 1_000,
    tries_max: 16,
    runs_max: 1_024,
    run_messages_max: 20_000,
    per_s: 1_000_000,
    burst: 1_000,
    kept_bytes_max: 1 << 16,
};

fn own_key() -> TreeKey {
    TreeKey::new([9; 32])
}

/// A leaf gateway, and a participant that asks for nothing.
struct Gateway {
    leaf: Leaf,
    outlet: Outlet,
    recalls: RecallNode,
    reader: MarketReader,
    released: Packets,
}

impl Gateway {
    fn new(receives: Socket, replica: &RewindNode) -> Self {
        let outlet = Outlet::new(OutletSettings {
            tree: TREE,
            trees: Trees::ONE,
            own_tree: TREE + 1,
            key: own_key(),
            packets_remembered: 1 << 12,
            channels_max: 4,
            hold: HoldSettings { held_max: HELD_MAX, wait_max_ns: 10 * ROUND_NS },
            packet_bytes: PACKET_BYTES_MAX,
            rewind_bytes_max: 1 << 20,
            rewind_total_bytes_max: 1 << 20,
            recall: Some(RECALL),
        });
        let recalls = RecallNode::new(socket(Offload::None), key(), TREE, vec![replica.address().unwrap()]);
        let reader = MarketReader::from_the_start(channel(), READER);
        Self { leaf: Leaf::new(receives, key()), outlet, recalls, reader, released: Packets::default() }
    }

    /// Takes what waits in its socket. What has no room is refused.
    fn take(&mut self, now_ns: u64) {
        let Self { leaf, outlet, .. } = self;
        let mut take = |packet: &Packet<'_>| {
            let _ = outlet.packet(now_ns, packet);
        };
        while leaf.receive(&mut take).unwrap() > 0 {}
    }

    /// Gives its participant what is due.
    fn release(&mut self, now_ns: u64) {
        let Self { outlet, reader, released, .. } = self;
        assert!(outlet.held_count() <= HELD_MAX && outlet.missing_count() <= RECALL.runs_max, "nothing grows");
        released.clear();
        outlet.release(now_ns, released);
        for (_, bytes) in released.iter() {
            reader.packet(now_ns, &Packet::decode(bytes, &own_key()).unwrap(), |_, _| {});
        }
        assert!(reader.held_count() <= READER.held_max && reader.error().is_none(), "{reader:?}");
    }

    /// Asks the replica for what is missing, as far as that is known.
    fn recall(&mut self, now_ns: &mut u64, replica: &mut RewindNode, sender: &Sender) {
        let began = Instant::now();
        while let Some((asked, request)) = self.outlet.request(*now_ns) {
            self.recalls.ask(asked, &request, *now_ns).unwrap();
            let mut count = 0;
            let answer = |request: &Request, packets: &mut Vec<Vec<u8>>| {
                let answer = sender.answer(request, packets);
                count = packets.len() + usize::from(matches!(answer, Answer::GoneBefore(_)));
                answer
            };
            assert!(replica.step(|| *now_ns, answer).unwrap(), "the request is there");
            let Self { outlet, recalls, .. } = self;
            for _ in 0..count {
                let take = |packet: &Packet<'_>| {
                    let _ = outlet.packet(*now_ns, packet);
                };
                assert!(recalls.receive(take).unwrap(), "so is the answer");
            }
            *now_ns += RECALL.retry_ns;
            self.release(*now_ns);
            assert!(began.elapsed() < PATIENCE, "{:?}, {:?}", self.outlet.recall_counts(), self.reader);
        }
    }

    fn book(&self) -> &OrderBook {
        match self.reader.book().unwrap().content() {
            Content::Orders(orders) => orders,
            other => panic!("{other:?}"),
        }
    }
}

struct World {
    venue: Venue,
    tree: Started,
    replica: RewindNode,
    gateways: Vec<Gateway>,
    now_ns: u64,
}

impl World {
    /// Two layers of relays above three gateways. A further copy of each packet goes by another relay.
    fn new() -> Self {
        let mut tree = start(&Tree::of_layers(vec![2, 2, 3]).unwrap(), 1, Offload::Segments);
        let rate = AskRate { per_s: 1_000_000, burst: 1_000_000, sources_max: 4 };
        let replica = RewindNode::new(socket(Offload::None), key(), TREE, rate);
        let gateways = tree.receivers.drain(..).map(|receives| Gateway::new(receives, &replica)).collect();
        Self { venue: Venue::new(), tree, replica, gateways, now_ns: ROUND_NS }
    }

    /// So many orders come at once. Gateways take their packets, which may be known a moment later, and ask for what they miss.
    fn round(&mut self, orders: u64) {
        self.now_ns += ROUND_NS;
        self.venue.release_ns = self.now_ns + HELD_NS;
        self.venue.orders(orders);
        self.tree.node.send(&self.venue.packets).unwrap();
        self.gateways.iter_mut().for_each(|gateway| gateway.take(self.now_ns));
        self.now_ns += HELD_NS;
        for gateway in &mut self.gateways {
            gateway.release(self.now_ns);
            gateway.recall(&mut self.now_ns, &mut self.replica, &self.venue.sender);
        }
    }

    fn have_all_read(&self) -> bool {
        let next = self.venue.publisher.next(channel()).unwrap();
        self.gateways.iter().all(|gateway| gateway.reader.next() == next)
    }
}

#[test]
fn bursts_of_fifteen_times_the_rate_come_to_all_readers_and_nothing_grows() {
    let mut world = World::new();
    (0..5).for_each(|_| world.round(USUAL));
    for burst in 0..3 {
        world.round(BURST);
        if burst == 1 {
            world.tree.relays[0].remove(0).kill();
        }
    }
    // At the usual rate, and then at less, later packets show what is missing of the bursts.
    (0..5).for_each(|_| world.round(USUAL));
    let began = Instant::now();
    while !world.have_all_read() {
        world.round(1);
        assert!(began.elapsed() < PATIENCE, "{:?}", world.gateways.iter().map(|gateway| &gateway.reader).collect::<Vec<_>>());
    }
    let expected = world.gateways[0].book().orders();
    assert_eq!(expected.len() as u64, world.venue.orders);
    for gateway in &world.gateways {
        assert_eq!(gateway.book().orders(), expected, "all have the same book");
        let (counts, recalls) = (gateway.outlet.counts(), gateway.outlet.recall_counts());
        assert!(counts.refused_full > 0 && recalls.back > 0 && recalls.answered <= recalls.asked, "{counts:?}, {recalls:?}");
        assert_eq!((gateway.reader.counts().asked, recalls.given_up, gateway.outlet.missing_count()), (0, 0, 0));
    }
    for relay in world.tree.relays.into_iter().flatten() {
        relay.kill();
    }
}
