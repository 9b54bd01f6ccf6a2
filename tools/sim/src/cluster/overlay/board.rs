//! Market data by FIX at a leaf gateway, made of the packets that it has released, and a program that reads a book there. It reads slowly
//! at times, and its connection ends now and then.

use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;

use walras_feed::channel::Trees;
use walras_fix_market_data::{FromFeed, FromFeedSettings, MarketDataServer, MarketDataSettings, is_read};
use walras_fix_orders::{Catalog, Secrecy};
use walras_gateway::{ClientKey, Gateway, GatewayConfig, KeyRecord, Rate, SourceId};
use walras_relay::packet::Packet;
use walras_replica::PublicationMark;
use walras_testkit::{Choices, Random};
use walras_types::InstrumentId;

use crate::cluster::checks::Checks;
use crate::cluster::fix::book::{BookClient, Wish};
use crate::cluster::mutation::Mutation;
use crate::cluster::replica::releases::PUBLISH_EVERY_NS;
use crate::common::clock::EPOCH_NS;

/// Of so many moments the connection ends in one.
const ENDS_ONE_OF: u64 = 3_000;
/// It connects again after this at most.
const AGAIN_NS_MAX: u64 = 200_000_000;
/// The longest time for which the program reads nothing.
const RESTS_NS_MAX: u64 = 400_000_000;
/// Of so many moments it begins such a rest in one.
const RESTS_ONE_OF: u64 = 500;

thread_local! {
    /// Its dictionaries are read once in each thread.
    static SETTINGS: MarketDataSettings = MarketDataSettings::of("WALRAS");
}

/// See the module's documentation.
pub(super) struct Board {
    choices: Choices<'static>,
    trees: Trees,
    server: MarketDataServer,
    feed: FromFeed,
    gateway: Gateway,
    /// Channels whose packets are of use.
    channels: BTreeSet<u32>,
    /// What is listed, and how many instruments the venue had then.
    catalog: (Arc<Catalog>, usize),
    /// Publications that may not be known yet.
    marks: VecDeque<PublicationMark>,
    reader: BookClient,
    /// Which book it reads.
    instrument: Option<InstrumentId>,
    connection: Option<u64>,
    connections: u64,
    connects_ns: u64,
    reads_ns: u64,
    has_whims: bool,
}

impl Board {
    pub(super) fn new(random: &Random, (key, record): (&ClientKey, KeyRecord), trees: Trees, mutation: Option<Mutation>) -> Self {
        let mut choices = Choices::of_random(random.fork(0));
        let rate = Rate::new(2_000, 2_000).expect("it is not zero");
        let mut gateway = Gateway::new(GatewayConfig { key_rate: rate, source_rate: rate, ..GatewayConfig::new(EPOCH_NS) });
        gateway.add_key(record).expect("it is the only key");
        let token = key.to_token();
        let (id, secret) = token.split_once('.').expect("a key has an id and a secret");
        let wish = Wish { depth: choices.pick(&[0, 0, 1, 3]), is_incremental: !choices.one_in(3) };
        let (server, feed) = started(trees);
        Self {
            choices,
            trees,
            server,
            feed,
            gateway,
            channels: BTreeSet::new(),
            catalog: (Arc::default(), 0),
            marks: VecDeque::new(),
            reader: BookClient::new(format!("553={id}|554={secret}|"), wish, mutation),
            instrument: None,
            connection: None,
            connections: 0,
            connects_ns: 0,
            reads_ns: 0,
            has_whims: true,
        }
    }

    /// The gateway starts again with nothing.
    pub(super) fn restart(&mut self, now_ns: u64) {
        (self.server, self.feed) = started(self.trees);
        (self.catalog, self.channels) = ((Arc::default(), 0), BTreeSet::new());
        self.marks.clear();
        self.is_lost(now_ns);
    }

    /// Faults have stopped: the connection lasts, and the program reads at once.
    pub(super) fn heal(&mut self) {
        self.has_whims = false;
    }

    /// The venue publishes at this entry.
    pub(super) fn on_mark(&mut self, mark: PublicationMark) {
        self.marks.push_back(mark);
    }

    /// A packet whose time has come.
    pub(super) fn on_packet(&mut self, now_ns: u64, bytes: &[u8]) {
        if let Some(packet) = Packet::of_own(bytes).filter(|packet| is_read(&self.channels, packet.header().channel)) {
            self.feed.packet(now_ns, &packet);
        }
    }

    /// What the gateway and the program do now; `clock_ns` is the gateway's time of day.
    pub(super) fn tick(&mut self, now_ns: u64, clock_ns: u64, checks: &mut Checks) {
        self.server.at(now_ns, clock_ns);
        self.follow_listing(checks);
        while let Some(mark) = self.marks.front().copied().filter(|mark| mark.release_ns <= clock_ns) {
            self.marks.pop_front();
            self.feed.published(now_ns, mark.log_index.0, mark.time.0);
        }
        self.feed.on_time(now_ns, clock_ns);
        self.server.on_timer();
        self.settle(now_ns);
        self.connect(now_ns);
        self.read((now_ns, clock_ns), checks);
        self.write(now_ns, clock_ns);
        self.settle(now_ns);
    }

    /// The replicas name what is new to the gateway.
    fn follow_listing(&mut self, checks: &Checks) {
        let engine = checks.replay().engine();
        let count = engine.instruments().count();
        if count != self.catalog.1 {
            let catalog = Arc::new(Catalog::of(engine.instruments().map(|view| view.spec), engine.assets()));
            self.server.set_catalog(Arc::clone(&catalog), Vec::new());
            self.catalog = (catalog, count);
        }
    }

    /// What the server needs, and what comes of that.
    fn settle(&mut self, now_ns: u64) {
        while let Some((need, is_wanted)) = self.server.next_ask() {
            self.feed.want(now_ns, need, is_wanted);
        }
        if let Some(channels) = self.feed.channels() {
            self.channels = channels;
        }
        // Nobody here reads batch markets.
        while let Some(piece) = self.feed.next_piece() {
            piece.as_piece().into_iter().for_each(|piece| self.server.on_piece(&piece));
        }
    }

    fn connect(&mut self, now_ns: u64) {
        if self.connection.is_some() || now_ns < self.connects_ns {
            return;
        }
        let Some(listed) = self.catalog.0.iter().next() else { return };
        let symbol = listed.spec.symbol.as_str();
        self.instrument = Some(listed.spec.instrument);
        self.connections += 1;
        self.connection = Some(self.connections);
        self.server.connect(self.connections, Secrecy::Private);
        self.reader.log_on(now_ns, symbol);
    }

    fn is_lost(&mut self, now_ns: u64) {
        if let Some(id) = self.connection.take() {
            self.server.on_disconnected(id);
        }
        self.connects_ns = now_ns + self.choices.within(AGAIN_NS_MAX / 10, AGAIN_NS_MAX);
        self.reader.on_lost();
    }

    /// The program reads some of what there is.
    fn read(&mut self, (now_ns, clock_ns): (u64, u64), checks: &mut Checks) {
        let (Some(id), Some(instrument)) = (self.connection, self.instrument) else { return };
        if self.has_whims && self.choices.one_in(RESTS_ONE_OF) {
            self.reads_ns = now_ns + self.choices.below(RESTS_NS_MAX);
        }
        if !self.has_whims || now_ns >= self.reads_ns {
            let some = self.choices.within(1, 4_096) as usize;
            let output = self.server.output(id);
            let bytes = output[..output.len().min(some)].to_vec();
            self.server.consume(id, bytes.len());
            let wish = self.reader.wish();
            match self.reader.on_bytes(now_ns, &bytes) {
                Ok(copies) => {
                    copies.iter().for_each(|copy| checks.on_fix_book(instrument, wish, copy, clock_ns, EPOCH_NS + now_ns));
                }
                Err(why) => checks.on_fix_book_broken(&why),
            }
        }
        let ends = self.has_whims && self.choices.one_in(ENDS_ONE_OF);
        if ends || self.reader.is_logged_out() || self.server.is_over(id) && self.server.output(id).is_empty() {
            self.is_lost(now_ns);
        }
    }

    /// What the program says reaches the server.
    fn write(&mut self, now_ns: u64, clock_ns: u64) {
        let Some(id) = self.connection else { return };
        self.reader.on_time(now_ns);
        let bytes = self.reader.take_output();
        if bytes.is_empty() {
            return;
        }
        let Self { server, gateway, .. } = self;
        server.on_bytes(id, &bytes, &mut |_, _, _| Ok(()));
        while let Some((id, logon)) = server.next_logon() {
            let verdict = logon.authorize(gateway, clock_ns, SourceId::of(Ipv4Addr::LOCALHOST.into()));
            server.authenticated(id, verdict);
        }
        // Who has something to write is looked for at each tick, and why a connection ended is of no interest here.
        while server.next_dirty().is_some() || server.next_end().is_some() {}
    }

    /// What the program lacks.
    pub(super) fn lacks(&self, checks: &Checks) -> Option<String> {
        let instrument = self.instrument?;
        let has_all = self.reader.copy().is_some_and(|copy| checks.is_last_book(instrument, self.reader.wish(), copy));
        (!has_all).then(|| format!("a reader by FIX has the book of {:?}", self.reader.copy().map(|copy| copy.update)))
    }
}

fn started(trees: Trees) -> (MarketDataServer, FromFeed) {
    let settings = FromFeedSettings { every_ns: PUBLISH_EVERY_NS, trees };
    (MarketDataServer::new(SETTINGS.with(Clone::clone)), FromFeed::new(settings))
}
