//! A venue that publishes, links that lose, double, damage and delay, and readers whose copies are compared with the engine after
//! every packet.

use std::collections::BTreeMap;

use walras_engine::Engine;
use walras_feed::book::{Book, Content};
use walras_feed::channel::{ChannelId, Trees, View};
use walras_feed::message::AuctionIndicated;
use walras_feed::publisher::{Publisher, Views};
use walras_feed::reader::MarketReader;
use walras_feed::sender::{Packets, Sender, SenderSettings};
use walras_market_data::PublicBooks;
use walras_random::Random;
use walras_relay::packet::{PACKET_BYTES_MAX, Packet, TreeKey};
use walras_relay::reader::ReaderSettings;
use walras_relay::rewinder::Answer;
use walras_testkit::published::{BatchExpected, indicated};
use walras_types::{BatchMarketId, InstrumentId, LogIndex, OrderId, PriceTicks, Side, SizeLots, TimeNs, TradingPhase};
use walras_wire::batch::BlockProposal;
use walras_wire::{BatchEvent, Command, Event};

pub(crate) const KEY: [u8; 32] = [3; 32];
const READER: ReaderSettings = ReaderSettings { held_max: 256, gap_wait_ns: 300_000, retry_ns: 600_000, request_max: 200 };

type Depth = Vec<(PriceTicks, SizeLots, u32)>;

/// All markets as the engine has them after an entry.
#[derive(Clone, Debug, Default)]
struct Expected {
    instruments: Vec<Instrument>,
    batches: Vec<BatchExpected>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Instrument {
    phase: TradingPhase,
    levels: [Depth; 2],
    orders: Vec<(OrderId, Side, PriceTicks, SizeLots)>,
    /// What its auction would trade, as of the last entry for which the host computed it.
    indicated: Option<AuctionIndicated>,
}

/// Chances in a thousand, of each packet on each link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Links {
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    pub(crate) damaged: u64,
    pub(crate) delay_ns_max: u64,
}

pub(crate) struct Client {
    pub(crate) reader: MarketReader,
    /// Packets after which its copy was whole and equal to the engine's.
    pub(crate) compared: u64,
}

/// Copies that were compared and had something that few have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// What an auction would trade.
    pub(crate) indicated: u64,
    /// A block in which something was sold.
    pub(crate) sold: u64,
}

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) publisher: Publisher,
    pub(crate) sender: Sender,
    pub(crate) clients: Vec<Client>,
    pub(crate) links: Links,
    pub(crate) now_ns: u64,
    pub(crate) events: Vec<Event>,
    pub(crate) seen: Seen,
    books: PublicBooks,
    /// By entry.
    expected: BTreeMap<u64, Expected>,
    packets: Packets,
    draw: Random,
    under_way: BTreeMap<(u64, u64), (usize, Vec<u8>)>,
    sent: u64,
}

impl World {
    pub(crate) fn new(seed: u64, links: Links, rewind_bytes_max: usize) -> Self {
        let key = TreeKey::new(KEY);
        let settings = SenderSettings {
            tree: 1,
            trees: Trees::ONE,
            epoch: 0,
            first_number: 1,
            key,
            packet_bytes: PACKET_BYTES_MAX,
            rewind_bytes_max,
            rewind_total_bytes_max: 1 << 30,
            heartbeat_ns: 2_000_000,
            snapshot_bytes_per_s: 4_000_000,
            rotation_ns_min: 0,
        };
        Self {
            engine: Engine::new(),
            publisher: Publisher::new(Views::ALL),
            sender: Sender::new(settings),
            clients: Vec::new(),
            links,
            now_ns: 1_000,
            events: Vec::new(),
            seen: Seen::default(),
            books: PublicBooks::new(),
            expected: BTreeMap::from([(0, Expected::default())]),
            packets: Packets::default(),
            draw: Random::new(seed),
            under_way: BTreeMap::new(),
            sent: 0,
        }
    }

    /// A reader of a channel, from its first message on or from a snapshot.
    pub(crate) fn join(&mut self, channel: ChannelId, is_late: bool) {
        let make = if is_late { MarketReader::joining } else { MarketReader::from_the_start };
        self.clients.push(Client { reader: make(channel, READER), compared: 0 });
    }

    pub(crate) fn apply(&mut self, command: &Command) {
        let (log_index, time) = (self.engine.last_applied().next(), TimeNs(self.now_ns));
        self.events.clear();
        self.engine.apply(log_index, time, command, &mut self.events);
        self.publish(log_index, time);
    }

    /// The same with the clearing of a batch.
    pub(crate) fn clear(&mut self, block: &BlockProposal) {
        let (log_index, time) = (self.engine.last_applied().next(), TimeNs(self.now_ns));
        self.events.clear();
        self.engine.apply_clearing(log_index, time, block, &mut self.events);
        self.publish(log_index, time);
    }

    fn publish(&mut self, log_index: LogIndex, time: TimeNs) {
        self.publisher.begin(log_index, time).unwrap();
        self.books.on_entry(log_index).unwrap();
        for event in &self.events {
            self.publisher.on_event(event).unwrap_or_else(|error| panic!("{error}: {:#?}", self.events));
            self.books.on_event(log_index, event).unwrap();
            if let Event::Batch(BatchEvent::Cleared(cleared)) = event {
                let market = self.engine.batch_market(cleared.market).unwrap();
                self.publisher.on_prices(cleared.market, &market.last.unwrap().header.prices).unwrap();
            }
        }
        let before = self.expected.last_key_value().map(|(_, expected)| expected.clone()).unwrap_or_default();
        let mut expected = Expected::default();
        for id in (0..self.engine.instruments().len() as u32).map(InstrumentId) {
            let mut instrument = self.as_it_is(id);
            // A host computes what an auction would trade now and then, and always that there is none.
            if instrument.phase == TradingPhase::Continuous || log_index.0.is_multiple_of(3) {
                instrument.indicated = indicated(&self.engine, id);
                self.publisher.on_indication(id, instrument.indicated).unwrap();
            } else {
                instrument.indicated = before.instruments.get(id.0 as usize).and_then(|before| before.indicated);
            }
            expected.instruments.push(instrument);
        }
        let markets = (0..self.engine.batch_markets().len() as u16).map(BatchMarketId);
        expected.batches = markets.map(|market| BatchExpected::of(&self.engine, market).unwrap()).collect();
        self.publisher.end();
        self.expected.insert(log_index.0, expected);
    }

    fn as_it_is(&self, instrument: InstrumentId) -> Instrument {
        let levels = Side::BOTH.map(|side| {
            let mut depth = Vec::new();
            self.engine.depth(instrument, side, usize::MAX, &mut depth);
            depth.iter().map(|level| (level.price, level.shown, level.order_count)).collect()
        });
        let book = self.books.book(instrument).unwrap();
        let orders = book.orders().iter().map(|order| (order.order_id, order.side, order.price, order.shown)).collect();
        Instrument { phase: self.engine.instrument(instrument).unwrap().phase, levels, orders, indicated: None }
    }

    /// Sends what there is: messages, heartbeats, snapshots.
    pub(crate) fn send(&mut self) {
        let (now_ns, mut packets) = (self.now_ns, std::mem::take(&mut self.packets));
        packets.clear();
        self.sender.publish(&mut self.publisher, now_ns, now_ns + 500_000, &mut packets);
        self.sender.heartbeats((now_ns, now_ns), &mut packets);
        self.sender.snapshots(&self.publisher, (now_ns, now_ns), &mut packets);
        for (header, bytes) in packets.iter() {
            let packet = Packet::decode(bytes, &TreeKey::new(KEY)).unwrap();
            assert_eq!(packet.header(), header);
            for client in 0..self.clients.len() {
                self.transmit(client, bytes);
            }
        }
        self.packets = packets;
    }

    fn is_hit(&mut self, permille: u64) -> bool {
        self.draw.below(1_000) < permille
    }

    fn transmit(&mut self, client: usize, bytes: &[u8]) {
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
                self.under_way.insert((at_ns, self.sent), (client, bytes));
            }
        }
    }

    /// What is under way arrives, up to a time; readers ask when it is time to.
    pub(crate) fn run_to(&mut self, until_ns: u64) {
        while self.now_ns < until_ns {
            let wakes = self.clients.iter().filter_map(|client| client.reader.wake_ns()).min().unwrap_or(u64::MAX);
            let arrives = self.under_way.first_key_value().map_or(u64::MAX, |((at_ns, _), _)| *at_ns);
            self.now_ns = self.now_ns.max(wakes.min(arrives)).min(until_ns);
            while let Some(first) = self.under_way.first_entry().filter(|first| first.key().0 <= self.now_ns) {
                let (client, bytes) = first.remove();
                self.arrives(client, &bytes);
            }
            for client in 0..self.clients.len() {
                self.ask(client);
            }
        }
    }

    fn arrives(&mut self, client: usize, bytes: &[u8]) {
        let Ok(packet) = Packet::decode(bytes, &TreeKey::new(KEY)) else { return };
        let Client { reader, compared } = &mut self.clients[client];
        reader.packet(self.now_ns, &packet, |_, _| {});
        assert_eq!(reader.error(), None, "{reader:?}");
        if let Some(book) = reader.book().filter(|book| book.is_whole() && book.head().log_index > 0) {
            compare(reader.channel(), book, &self.expected);
            *compared += 1;
            self.seen.indicated += u64::from(book.market().indicated.is_some());
            if let Content::Batches(state) = book.content() {
                self.seen.sold += u64::from(state.prices.iter().any(|asset| asset.sold > 0));
            }
        }
    }

    fn ask(&mut self, client: usize) {
        let Some(request) = self.clients[client].reader.request(self.now_ns) else { return };
        let mut packets = Vec::new();
        match self.sender.answer(&request, &mut packets) {
            Answer::Sent => {}
            Answer::GoneBefore(number) => self.clients[client].reader.gone_before(request.channel, number),
            Answer::Unknown => panic!("{request:?} asks for what was never said"),
        }
        packets.iter().for_each(|bytes| self.transmit(client, bytes));
    }

    /// The links are good, and time passes until every reader has all.
    pub(crate) fn settle(&mut self) {
        self.links = Links::default();
        for _ in 0..400 {
            self.send();
            self.run_to(self.now_ns + 2_000_000);
        }
        for Client { reader, .. } in &self.clients {
            let next = self.publisher.next(reader.channel());
            assert!(reader.book().is_some_and(Book::is_whole) && Some(reader.next()) == next, "{next:?}, {reader:?}");
        }
    }
}

/// A reader's copy equals the engine's market after the entry that it is at.
fn compare(channel: ChannelId, book: &Book, expected: &BTreeMap<u64, Expected>) {
    let entry = &expected[&book.head().log_index];
    let context = || format!("{channel:?} after entry {}", book.head().log_index);
    let market = channel.market() as usize;
    if let Content::Batches(state) = book.content() {
        entry.batches[market].check(state).unwrap_or_else(|what| panic!("{}: {what}", context()));
        return;
    }
    let expected = &entry.instruments[market];
    assert_eq!(book.market().phase.unwrap().phase, expected.phase, "{}", context());
    assert_eq!(book.market().indicated, expected.indicated, "{}", context());
    if let Some(levels) = book.levels() {
        let depth = Side::BOTH
            .map(|side| levels.levels(side).map(|level| (level.price, level.shown, level.order_count)).collect::<Depth>());
        assert_eq!(depth, expected.levels, "{}", context());
    }
    match book.content() {
        Content::Orders(orders) => {
            let orders: Vec<_> = orders.orders().iter().map(|o| (o.order_id, o.side, o.price, o.shown)).collect();
            assert_eq!(orders, expected.orders, "{}", context());
        }
        Content::Levels(_) | Content::Batches(_) => {}
        Content::Top(top) => {
            let best = expected.levels.clone().map(|depth| depth.first().copied());
            let ours = top.map_or([None, None], |top| {
                let bid = top.bid.map(|price| (price, top.bid_shown, top.bid_order_count));
                [bid, top.ask.map(|price| (price, top.ask_shown, top.ask_order_count))]
            });
            assert_eq!(ours, best, "{}", context());
        }
    }
}

/// Every view of an instrument.
pub(crate) fn channels(instrument: u32) -> [ChannelId; 3] {
    View::BOOKS.map(|view| ChannelId::instrument(view, InstrumentId(instrument)))
}
