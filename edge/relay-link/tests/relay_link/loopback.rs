//! One sender, two levels of relays and eight readers on real sockets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use walras_fair_access::release::HoldSettings;
use walras_feed::book::{Book, Content};
use walras_feed::channel::{ChannelId, Trees, View};
use walras_feed::control::{Control, RelayFigures};
use walras_feed::outlet::{Outlet, OutletSettings};
use walras_feed::publisher::{Publisher, Views};
use walras_feed::reader::MarketReader;
use walras_feed::recall::{RecallCounts, RecallSettings};
use walras_feed::sender::{Packets, Sender, SenderSettings};
use walras_relay::keeper::{KeeperSettings, OutBecause};
use walras_relay::keeping::Keeping;
use walras_relay::live::join;
use walras_relay::packet::{PACKET_BYTES_MAX, Packet, TreeKey};
use walras_relay::reader::{ReaderSettings, Request};
use walras_relay::relay::{Relay, RelaySettings};
use walras_relay::tree::Tree;
use walras_relay_link::socket::{Offload, Socket};
use walras_relay_link::{
    AskRate, KeeperNode, Leaf, Lookout, NodeCounts, RecallNode, RelayNode, RewindCounts, RewindNode, SenderNode,
};
use walras_types::{
    AccountId, Allocation, AssetId, ClientOrderId, FeeSchedule, InstrumentId, InstrumentSpec, LogIndex, OrderId, PriceTicks,
    RiskLimits, Side, SizeLots, Symbol, TimeNs,
};
use walras_wire::{Event, InstrumentEvent, OrderAccepted, OrderEvent, Resting};

pub(super) const TREE: u32 = 7;
const INSTRUMENT: InstrumentId = InstrumentId(0);
const WAIT: Duration = Duration::from_millis(5);
/// What does not come on loopback in so long does not come at all.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// A gap is one only where something is lost: other threads may be slow.
pub(super) const READER: ReaderSettings =
    ReaderSettings { held_max: 4_096, gap_wait_ns: 10_000_000_000, retry_ns: 10_000_000_000, request_max: 500 };

pub(super) fn key() -> TreeKey {
    TreeKey::new([6; 32])
}

pub(super) fn socket(offload: Offload) -> Socket {
    Socket::bind("127.0.0.1:0".parse().unwrap(), WAIT, offload).unwrap()
}

/// A publisher with one instrument, and its sender.
pub(super) struct Venue {
    pub(super) publisher: Publisher,
    pub(super) sender: Sender,
    pub(super) packets: Packets,
    entry: u64,
    pub(super) orders: u64,
    /// When what is published next may be known.
    pub(super) release_ns: u64,
}

impl Venue {
    pub(super) fn new() -> Self {
        let settings = SenderSettings {
            tree: TREE,
            trees: Trees::ONE,
            epoch: 0,
            first_number: 1,
            key: key(),
            packet_bytes: PACKET_BYTES_MAX,
            rewind_bytes_max: 1 << 20,
            rewind_total_bytes_max: 1 << 20,
            heartbeat_ns: 1_000_000_000,
            snapshot_bytes_per_s: 1_000_000,
            rotation_ns_min: 0,
        };
        let (publisher, sender) = (Publisher::new(Views::of(&[View::Orders])), Sender::new(settings));
        let mut venue = Self { publisher, sender, packets: Packets::default(), entry: 0, orders: 0, release_ns: 0 };
        venue.entry(&Event::Instrument(InstrumentEvent::Created(InstrumentSpec {
            instrument: INSTRUMENT,
            symbol: Symbol::new("BTC/USD").unwrap(),
            base: AssetId(0),
            quote: AssetId(1),
            lot_units: 1,
            tick_value_units: 1,
            allocation: Allocation::PriceTime,
            fees: FeeSchedule { maker_ppm: 0, taker_ppm: 0 },
            collar_ppm: 1_000_000,
            band_ppm: 1_000_000,
            reference_price: PriceTicks::new(100).unwrap(),
            default_limits: RiskLimits::NONE,
        })));
        venue
    }

    fn entry(&mut self, event: &Event) {
        self.entry += 1;
        self.publisher.begin(LogIndex(self.entry), TimeNs(self.entry)).unwrap();
        self.publisher.on_event(event).unwrap();
        self.publisher.end();
    }

    /// So many orders, each in a packet of its own; the packets are in `self.packets`.
    pub(super) fn orders(&mut self, count: u64) {
        self.packets.clear();
        for _ in 0..count {
            self.orders += 1;
            let size = SizeLots::new(1);
            self.entry(&Event::Order(OrderEvent::Accepted(OrderAccepted {
                instrument: INSTRUMENT,
                account: AccountId(0),
                client_order_id: ClientOrderId(self.orders),
                order_id: OrderId(self.orders),
                side: Side::Buy,
                size,
                price: PriceTicks::new(1 + self.orders as i64 % 50),
                resting: Resting { open: size, shown: size },
            })));
            self.sender.publish(&mut self.publisher, self.entry, self.release_ns, &mut self.packets);
        }
    }
}

pub(super) fn channel() -> ChannelId {
    ChannelId::instrument(View::Orders, INSTRUMENT)
}

/// A relay in a thread of its own, which ends when it is stopped.
pub(super) struct RunningRelay {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<NodeCounts>,
}

impl RunningRelay {
    fn start(mut node: RelayNode, address: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                node.step().unwrap();
            }
            assert_eq!(node.lost(), 0);
            node.counts()
        });
        Self { address, stop, thread }
    }

    /// It is gone with its socket.
    pub(super) fn kill(self) -> NodeCounts {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// A tree whose relays have been started.
pub(super) struct Started {
    pub(super) node: SenderNode,
    /// Addresses of all nodes, by number.
    nodes: Vec<SocketAddr>,
    pub(super) relays: Vec<Vec<RunningRelay>>,
    /// Sockets of the last layer.
    pub(super) receivers: Vec<Socket>,
}

/// Starts the relays of a tree, on any ports.
pub(super) fn start(tree: &Tree, hedge: u32, offload: Offload) -> Started {
    let sockets = |count: &u32| -> Vec<Socket> { (0..*count).map(|_| socket(offload)).collect() };
    let mut sockets: Vec<Vec<Socket>> = tree.layers().iter().map(sockets).collect();
    let nodes: Vec<SocketAddr> = sockets.iter().flatten().map(|socket| socket.address().unwrap()).collect();
    let node = SenderNode::new(socket(offload), tree, hedge, &nodes);
    let receivers = sockets.pop().unwrap();
    let of_layer = |(layer, sockets): (usize, Vec<Socket>)| -> Vec<RunningRelay> {
        let relay = |(place, socket): (u32, Socket)| {
            let settings = RelaySettings { layer, place, tree: TREE, hedge, packets_remembered: 1 << 12, channels_max: 8 };
            let address = socket.address().unwrap();
            let relay = Relay::new(tree.clone(), settings);
            RunningRelay::start(RelayNode::new(socket, relay, key(), &nodes, 5), address)
        };
        (0..).zip(sockets).map(relay).collect()
    };
    let relays = sockets.into_iter().enumerate().map(of_layer).collect();
    Started { node, nodes, relays, receivers }
}

struct World {
    venue: Venue,
    node: SenderNode,
    keeper: KeeperNode,
    relays: Vec<Vec<RunningRelay>>,
    leaves: Vec<(Leaf, MarketReader)>,
}

impl World {
    fn new(hedge: u32, offload: Offload) -> Self {
        let tree = Tree::new(3, 3, 9).unwrap();
        let Started { node, nodes, relays, receivers } = start(&tree, hedge, offload);
        let settings = KeeperSettings { return_ns: 50_000_000, ..KeeperSettings::default() };
        let from = "127.0.0.1:0".parse().unwrap();
        let keeper = KeeperNode::open(from, (&tree, TREE, key()), &nodes, settings, 1).unwrap();
        let reader = || MarketReader::from_the_start(channel(), READER);
        let leaves = receivers.into_iter().map(|socket| (Leaf::new(socket, key()), reader())).collect();
        Self { venue: Venue::new(), node, keeper, relays, leaves }
    }

    /// Keeps the tree until packets go by a view in which so many relays are out.
    fn keep_until(&mut self, out: usize) {
        let (began, pieces) = (Instant::now(), std::sync::Mutex::default());
        while self.keeper.live().epoch() == 0 || self.keeper.live().out().len() != out {
            if let Some(live) = self.keeper.step(&pieces).unwrap() {
                self.venue.sender.set_epoch(live.epoch());
                self.node.set_live(live);
            }
            assert!(began.elapsed() < PATIENCE, "{:?} are out, not {out}", self.keeper.live().out());
        }
    }

    /// Sends so many orders, and waits until all leaves have read them.
    fn send(&mut self, orders: u64) {
        self.venue.orders(orders);
        self.node.send(&self.venue.packets).unwrap();
        let (next, began) = (self.venue.publisher.next(channel()).unwrap(), Instant::now());
        for (leaf, reader) in &mut self.leaves {
            while reader.next() < next {
                leaf.receive(|packet| reader.packet(0, packet, |_, _| {})).unwrap();
                assert!(began.elapsed() < PATIENCE, "{} of {next}: {reader:?}", reader.next());
            }
        }
    }

    fn assert_all_read_without_asking(&self) {
        for (leaf, reader) in &self.leaves {
            let book = reader.book().unwrap();
            let Content::Orders(orders) = book.content() else { panic!("{book:?}") };
            assert_eq!(orders.order_count() as u64, self.venue.orders);
            assert_eq!((reader.counts().asked, leaf.counts().forged, leaf.counts().malformed), (0, 0, 0));
        }
    }

    fn stop(self) -> Vec<Vec<NodeCounts>> {
        self.relays.into_iter().map(|layer| layer.into_iter().map(RunningRelay::kill).collect()).collect()
    }
}

#[test]
fn everybody_reads_everything_over_two_levels_of_relays() {
    for (hedge, offload) in [(0, Offload::Segments), (1, Offload::Segments), (1, Offload::None)] {
        let mut world = World::new(hedge, offload);
        for _ in 0..20 {
            world.send(15);
        }
        world.assert_all_read_without_asking();
        for (layer, relays) in world.relays.iter().enumerate() {
            let addresses: Vec<SocketAddr> = relays.iter().map(|relay| relay.address).collect();
            let mut stranger = Lookout::open(&addresses, TREE, TreeKey::new([1; 32]), 7).unwrap();
            assert!(stranger.ask(WAIT).unwrap().iter().all(Option::is_none), "without its key");
            for said in ask_until(&addresses) {
                assert_eq!((said.first, said.lost, said.others), (world.venue.orders, 0, 0), "layer {layer}: {said:?}");
                assert!(said.transit_ns_p50 > 0 && said.transit_ns_p50 <= said.transit_ns_p99, "{said:?}");
                assert!(layer == 1 && hedge == 1 || said.hedged == 0, "who has one parent has no hedge: {said:?}");
            }
        }
        let recalls = RecallCounts { asked: 5, answered: 4, back: 30, given_up: 1 };
        world.leaves[0].0.set_recalls(recalls);
        let leaf = world.leaves[0].0.address().unwrap();
        std::thread::scope(|scope| {
            let asking = scope.spawn(move || ask_until(&[leaf])[0]);
            while !asking.is_finished() {
                world.leaves[0].0.receive(|_| {}).unwrap();
            }
            let said = asking.join().unwrap();
            assert!(said.first >= world.venue.orders && said.transit_ns_p50 > 0, "{said:?}");
            assert_eq!(said.recalls, recalls);
        });
        // The definition travels in the packet of the first order.
        let packets = world.venue.orders;
        let counts = world.stop();
        for (layer, counts) in counts.iter().enumerate() {
            let (first, copies) = counts.iter().fold((0, 0), |(first, copies), of| (first + of.first, copies + of.copies));
            if hedge == 0 {
                // Each packet takes one way only, so the relays of a layer share them, or get all.
                assert_eq!((first, copies), (packets * counts.len() as u64, 0), "layer {layer}: {counts:?}");
            } else {
                assert!(first == packets * counts.len() as u64, "layer {layer}: {counts:?}");
                assert!(layer == 0 || copies > 0, "layer {layer}: {counts:?}");
            }
        }
    }
}

/// What nodes say, which are asked again until the machine has time for their threads.
fn ask_until(nodes: &[SocketAddr]) -> Vec<RelayFigures> {
    let (mut lookout, began) = (Lookout::open(nodes, TREE, key(), 1).unwrap(), Instant::now());
    loop {
        if let Some(figures) = lookout.ask(WAIT * 40).unwrap().into_iter().collect() {
            return figures;
        }
        assert!(began.elapsed() < PATIENCE, "one of {nodes:?} does not answer");
    }
}

/// With one further copy, a relay of each level may be gone: no reader has a gap.
#[test]
fn relays_that_are_killed_leave_no_gap() {
    let mut world = World::new(1, Offload::Segments);
    for _ in 0..5 {
        world.send(15);
    }
    for layer in 0..2 {
        let place = layer;
        let counts = world.relays[layer].remove(place).kill();
        assert!(counts.first > 0);
        for _ in 0..10 {
            world.send(15);
        }
    }
    // What the relay that is gone would have sent to the second layer came by its hedges, and nothing was lost.
    let said = ask_until(&world.relays[1].iter().map(|relay| relay.address).collect::<Vec<_>>());
    assert!(said.iter().all(|said| said.hedged > 0 && said.lost == 0), "{said:?}");
    world.assert_all_read_without_asking();
    world.stop();
}

/// Relays are killed one after the other, while data flows, until one is left in each layer. Two neighbours that are gone at once
/// would cost readers a gap; here each is out before the next one dies.
#[test]
fn the_tree_is_rebuilt_without_relays_that_are_gone() {
    let mut world = World::new(1, Offload::Segments);
    world.keep_until(0);
    let mut out = 0;
    for layer in 0..2 {
        while world.relays[layer].len() > 1 {
            world.send(15);
            world.relays[layer].remove(0).kill();
            world.send(15);
            out += 1;
            world.keep_until(out);
        }
    }
    world.send(15);
    assert_eq!(out, 2 + 8);
    world.assert_all_read_without_asking();
    // The last ones go: the sender reaches the receivers by itself.
    for layer in &mut world.relays {
        layer.remove(0).kill();
    }
    world.keep_until(out + 2);
    world.send(15);
    world.assert_all_read_without_asking();
}

/// A relay that answers what it is asked, and forwards nothing.
fn answer_alone(socket: &Socket, node: u32, stop: &AtomicBool) {
    let mut buffer = [0; PACKET_BYTES_MAX];
    while !stop.load(Ordering::Relaxed) {
        let Some((bytes, from)) = socket.receive_from(&mut buffer).unwrap() else { continue };
        let says = match Packet::decode(bytes, &key()).ok().and_then(|packet| Keeping::decode(&packet)) {
            Some(Keeping::Ping { question }) => Keeping::Pong { question },
            Some(Keeping::View { version, .. }) => Keeping::Taken { node, version },
            _ => continue,
        };
        let mut said = Vec::new();
        says.encode(TREE, 1, &key(), &mut said);
        let _ = socket.send_to(&said, from);
    }
}

/// The sender hears a relay, and nobody below it does: they say so, and it is out.
#[test]
fn a_relay_that_answers_and_forwards_nothing_is_out() {
    let mut world = World::new(1, Offload::Segments);
    world.keep_until(0);
    let (address, stop) = (world.relays[0][1].address, Arc::new(AtomicBool::new(false)));
    world.relays[0].remove(1).kill();
    let (mute, stopped) = (Socket::bind(address, WAIT, Offload::None).unwrap(), Arc::clone(&stop));
    let answering = std::thread::spawn(move || answer_alone(&mute, 1, &stopped));
    let (began, pieces) = (Instant::now(), std::sync::Mutex::default());
    while !world.keeper.out().any(|out| out == (1, OutBecause::Mute)) && began.elapsed() < PATIENCE {
        world.send(15);
        for _ in 0..5 {
            if let Some(live) = world.keeper.step(&pieces).unwrap() {
                world.venue.sender.set_epoch(live.epoch());
                world.node.set_live(live);
            }
        }
    }
    stop.store(true, Ordering::Relaxed);
    answering.join().unwrap();
    assert_eq!(world.keeper.out().collect::<Vec<_>>(), [(1, OutBecause::Mute)]);
    world.assert_all_read_without_asking();
    world.stop();
}

#[test]
fn what_is_forged_cut_or_too_long_is_counted_and_dropped_and_others_are_served() {
    let mut world = World::new(1, Offload::Segments);
    let (relay, leaf) = (world.relays[0][0].address, world.leaves[0].0.address().unwrap());
    let attacker = socket(Offload::None);
    world.venue.orders(1);
    let sound = world.venue.packets.bytes(0).to_vec();
    world.node.send(&world.venue.packets).unwrap();
    let mut forged = sound.clone();
    forged[50] ^= 1;
    for _ in 0..300 {
        for to in [relay, leaf] {
            attacker.send_to(&forged, to).unwrap();
            attacker.send_to(&sound[..40], to).unwrap();
            attacker.send_to(&[0; 3_000], to).unwrap();
            attacker.send_to(&[], to).unwrap();
        }
        world.send(1);
    }
    // Sent once more by somebody else, a sound packet is a copy.
    attacker.send_to(&sound, relay).unwrap();
    world.send(1);
    let counts = world.leaves[0].0.counts();

    assert!(counts.forged > 200 && counts.malformed > 200, "{counts:?}");
    for (_, reader) in &world.leaves {
        assert_eq!((reader.counts().asked, reader.error()), (0, None));
    }
    let counts = world.stop()[0][0];
    assert!(counts.forged > 200 && counts.malformed > 200, "{counts:?}");
}

#[test]
fn a_reader_that_missed_packets_asks_and_one_that_asks_too_often_waits() {
    let mut venue = Venue::new();
    let rate = AskRate { per_s: 10, burst: 5, sources_max: 4 };
    let mut rewinder = RewindNode::new(socket(Offload::None), key(), TREE, rate);
    let mut leaf = Leaf::new(socket(Offload::Segments), key());
    let settings = ReaderSettings { gap_wait_ns: 0, retry_ns: 1, request_max: 500, ..READER };
    let mut reader = MarketReader::from_the_start(channel(), settings);
    venue.orders(40);
    // Only the last packet arrives.
    let last = venue.packets.bytes(venue.packets.count() - 1);
    reader.packet(1, &Packet::decode(last, &key()).unwrap(), |_, _| {});
    let (next, began) = (venue.publisher.next(channel()).unwrap(), Instant::now());
    let mut now_ns = 10;
    while reader.next() < next {
        now_ns += 1_000;
        if let Some(request) = reader.request(now_ns) {
            leaf.ask(&request, TREE, now_ns, rewinder.address().unwrap()).unwrap();
            assert!(rewinder.step(|| now_ns, |request, answer| venue.sender.answer(request, answer)).unwrap());
        }
        leaf.receive(|packet| reader.packet(now_ns, packet, |_, _| {})).unwrap();
        assert!(began.elapsed() < PATIENCE, "{reader:?}");
    }
    assert!(reader.book().is_some_and(Book::is_whole));
    // What was never said has no answer, and what somebody else sealed is no request.
    let other = Leaf::new(socket(Offload::None), TreeKey::new([1; 32]));
    let request = Request { channel: channel().get(), first: 1, count: 1 };
    other.ask(&request, TREE, now_ns, rewinder.address().unwrap()).unwrap();
    assert!(rewinder.step(|| now_ns, |request, answer| venue.sender.answer(request, answer)).unwrap());
    for later_ns in 1..=10 {
        now_ns += later_ns;
        leaf.ask(&request, TREE, now_ns, rewinder.address().unwrap()).unwrap();
        assert!(rewinder.step(|| now_ns, |request, answer| venue.sender.answer(request, answer)).unwrap());
    }
    let counts = rewinder.counts();
    assert!(counts.refused == 1 && counts.answered <= 5 && counts.too_often >= 6, "{counts:?}");
    // Of messages that are gone it says from which number on it has some.
    let gone = Control::GoneBefore { channel: 1, number: 2 };
    let mut bytes = Vec::new();
    gone.encode(TREE, 1, &key(), &mut bytes);
    assert_eq!(Control::decode(&Packet::decode(&bytes, &key()).unwrap()), Some(gone));
}

/// Somebody without the key has seen a request, and sends it again from an address that is another's. The reader is answered in full; what
/// was sent before, or has no time of now, brings a packet at most, and all of that together few.
#[test]
fn a_request_that_is_sent_again_brings_next_to_nothing() {
    const NOW: u64 = 1_700_000_000_000_000_000;
    let mut venue = Venue::new();
    venue.orders(40);
    let rate = AskRate { per_s: 10, burst: 5, sources_max: 4 };
    let mut rewinder = RewindNode::new(socket(Offload::None), key(), TREE, rate);
    let (to, [reader, victim]) = (rewinder.address().unwrap(), [(); 2].map(|()| socket(Offload::None)));
    let request = |first, tree, sent_ns| {
        let mut bytes = Vec::new();
        Control::Ask(Request { channel: channel().get(), first, count: 500 }).encode(tree, sent_ns, &key(), &mut bytes);
        bytes
    };
    // Packets that come to where a request seems to be from.
    let mut brings = |from: &Socket, bytes: &[u8], now_ns: u64| {
        from.send_to(bytes, to).unwrap();
        assert!(rewinder.step(|| now_ns, |request, answer| venue.sender.answer(request, answer)).unwrap());
        let mut buffer = [0; PACKET_BYTES_MAX];
        std::iter::from_fn(|| from.receive_from(&mut buffer).unwrap().map(|_| ())).count()
    };
    let seen = request(1, TREE, NOW);
    assert_eq!(brings(&reader, &seen, NOW), 16);
    let again: Vec<usize> = (0..20).map(|later_ns| brings(&victim, &seen, NOW + later_ns)).collect();
    assert_eq!((again.iter().sum::<usize>(), again.iter().max()), (5, Some(&1)), "{again:?}");
    // It takes nothing away from readers.
    assert_eq!(brings(&reader, &request(17, join(TREE, 3), NOW + 30), NOW + 30), 16, "in any view");
    let late = NOW + 20_000_000_000;
    assert_eq!(brings(&victim, &seen, late), 1, "it is old");
    assert_eq!(brings(&reader, &request(1, TREE, 0), late), 1, "it says no time");
    assert_eq!(brings(&reader, &request(1, TREE + 1, late), late), 0, "it is for another tree");
    let RewindCounts { answered, stale, too_often, refused } = rewinder.counts();
    assert_eq!((answered, stale, too_often, refused), (9, 7, 15, 1));
}

/// A leaf gateway lost packets on all paths, and one of two replicas is silent. The other one has the messages, so that the gateway's
/// participants, who never ask, have all of them.
#[test]
fn a_gateway_gets_what_it_lost_from_a_replica() {
    let mut venue = Venue::new();
    let rate = AskRate { per_s: 1_000, burst: 1_000, sources_max: 4 };
    let mut rewinder = RewindNode::new(socket(Offload::None), key(), TREE, rate);
    let silent = socket(Offload::None);
    let replicas = vec![silent.address().unwrap(), rewinder.address().unwrap()];
    let recalls = RecallNode::new(socket(Offload::None), key(), TREE, replicas);
    let own_key = TreeKey::new([9; 32]);
    let mut outlet = Outlet::new(OutletSettings {
        tree: TREE,
        trees: Trees::ONE,
        own_tree: TREE + 1,
        key: own_key.clone(),
        packets_remembered: 64,
        channels_max: 4,
        hold: HoldSettings { held_max: 100, wait_max_ns: 1_000 },
        packet_bytes: PACKET_BYTES_MAX,
        rewind_bytes_max: 1 << 20,
        rewind_total_bytes_max: 1 << 20,
        recall: Some(RecallSettings {
            replicas: 2,
            gap_wait_ns: 10,
            retry_ns: 1_000,
            tries_max: 4,
            runs_max: 8,
            run_messages_max: 500,
            per_s: 1_000_000,
            burst: 1_000,
            kept_bytes_max: 1 << 20,
        }),
    });
    let mut reader = MarketReader::from_the_start(channel(), READER);
    venue.orders(40);
    let (mut now_ns, began) = (1_000_000, Instant::now());
    for (at, (_, bytes)) in venue.packets.iter().enumerate() {
        if !(10..20).contains(&at) && at != 30 {
            outlet.packet(now_ns, &Packet::decode(bytes, &key()).unwrap()).unwrap();
        }
    }
    let (next, mut released) = (venue.publisher.next(channel()).unwrap(), Packets::default());
    while reader.next() < next {
        released.clear();
        outlet.release(now_ns, &mut released);
        for (_, bytes) in released.iter() {
            reader.packet(now_ns, &Packet::decode(bytes, &own_key).unwrap(), |_, _| {});
        }
        now_ns += 1_000;
        while let Some((replica, request)) = outlet.request(now_ns) {
            recalls.ask(replica, &request, now_ns).unwrap();
            if replica == 1 {
                assert!(rewinder.step(|| now_ns, |request, answer| venue.sender.answer(request, answer)).unwrap());
            }
        }
        recalls.receive(|packet| assert!(outlet.packet(now_ns, packet).is_ok(), "there is room")).unwrap();
        assert!(began.elapsed() < PATIENCE, "{reader:?}");
    }
    assert!(reader.book().is_some_and(Book::is_whole) && reader.counts().asked == 0);
    let counts = outlet.recall_counts();
    assert!(counts.back >= 11 && counts.given_up == 0, "{counts:?}");
}
