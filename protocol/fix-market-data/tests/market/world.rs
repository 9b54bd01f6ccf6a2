//! An engine, the server, and clients as far as these tests need them.

use std::collections::BTreeMap;
use std::sync::Arc;

use walras_engine::Engine;
use walras_fix_market_data::{Auction, BatchPiece, BatchPrice, BookPiece, Day, MarketDataServer, MarketDataSettings, Need, Piece};
use walras_fix_orders::{Catalog, Secrecy};
use walras_gateway::{Algorithm, ClientKey, Gateway, GatewayConfig, Permission, Permissions, Rate, Refusal, SourceId};
use walras_market_data::{BookLevel, PublicTrade};
use walras_types::{
    AccountId, Allocation, Amount, AssetId, BatchMarketId, ClientOrderId, Display, FeeSchedule, InstrumentId, InstrumentSpec,
    LogIndex, OrderTerms, OrderType, PostOnly, PriceTicks, RejectReason, RiskLimits, SelfTrade, Side, SizeLots, Symbol,
    TimeInForce, TimeNs, TradingPhase, TransferId,
};
use walras_wire::{
    AccountCommand, AssetSpec, CancelOrder, Command, Event, InstrumentCommand, NewOrder, OrderCommand, OrderEvent, SetTradingPhase,
    Transfer, VenueCommand,
};

/// The begin of 2026.
pub(crate) const DAY_NS: u64 = 1_767_225_600_000_000_000;

/// What a book shows: price and size, best first.
pub(crate) type Shown = Vec<(String, String)>;

/// A received message.
#[derive(Clone, Debug)]
pub(crate) struct Received(pub(crate) Vec<(i32, String)>);

impl Received {
    pub(crate) fn get(&self, tag: i32) -> Option<&str> {
        self.0.iter().find(|(found, _)| *found == tag).map(|(_, value)| value.as_str())
    }

    /// The entries of the group of 268: each begins with 279 or 269.
    pub(crate) fn entries(&self) -> Vec<BTreeMap<i32, String>> {
        let first = if self.get(35) == Some("X") { 279 } else { 269 };
        let at = self.0.iter().position(|(tag, _)| *tag == 268).expect("a message with entries");
        let mut entries: Vec<BTreeMap<i32, String>> = Vec::new();
        for (tag, value) in &self.0[at + 1..] {
            match *tag {
                10 => break,
                tag if tag == first => entries.push(BTreeMap::from([(tag, value.clone())])),
                tag => {
                    let twice = entries.last_mut().expect("an entry begins").insert(tag, value.clone());
                    assert_eq!(twice, None, "{tag} comes once in {self:?}");
                }
            }
        }
        assert_eq!(entries.len().to_string(), self.0[at].1);
        entries
    }
}

pub(crate) struct World {
    pub(crate) now_ns: u64,
    pub(crate) engine: Engine,
    pub(crate) server: MarketDataServer,
    gateway: Gateway,
    log_index: u64,
    subscribed: BTreeMap<Need, bool>,
    trades: BTreeMap<InstrumentId, Vec<PublicTrade>>,
    /// What was published of each book last.
    published: BTreeMap<InstrumentId, [BTreeMap<i64, BookLevel>; 2]>,
    pub(crate) is_throttled: bool,
}

pub(crate) fn symbol(at: u32) -> String {
    format!("BTC{at}/USD")
}

pub(crate) fn key() -> ClientKey {
    ClientKey::generate(Algorithm::HmacSha256, &[7; ClientKey::ENTROPY_LEN])
}

impl World {
    /// So many instruments in ticks of 0.5 and lots of 0.001, and two accounts.
    pub(crate) fn new(instruments: u32) -> Self {
        let rate = Rate::new(1_000_000, 1_000_000).unwrap();
        let now_ns = DAY_NS + 3_600_000_000_000;
        let mut gateway = Gateway::new(GatewayConfig { key_rate: rate, source_rate: rate, ..GatewayConfig::new(now_ns) });
        gateway.add_key(key().record(Some(AccountId(0)), Permissions::from_iter([Permission::Read])).unwrap()).unwrap();
        let mut server = MarketDataServer::new(MarketDataSettings::of("WALRAS"));
        server.at(0, now_ns);
        let mut world = Self {
            now_ns,
            engine: Engine::new(),
            server,
            gateway,
            log_index: 0,
            subscribed: BTreeMap::new(),
            trades: BTreeMap::new(),
            published: BTreeMap::new(),
            is_throttled: false,
        };
        for (asset, name, decimals) in [(0, "BTC", 8), (1, "USD", 6)] {
            let asset = AssetSpec { asset: AssetId(asset), symbol: Symbol::new(name).unwrap(), decimals };
            world.apply(&Command::Venue(VenueCommand::CreateAsset(asset)));
        }
        for account in [0, 1].map(AccountId) {
            world.apply(&Command::Account(AccountCommand::Create(account)));
            for asset in [0, 1] {
                let (amount, transfer_id) = (Amount::new(1 << 50).unwrap(), TransferId(u64::from(asset) + 1));
                let transfer = Transfer { account, asset: AssetId(asset), amount, transfer_id };
                world.apply(&Command::Account(AccountCommand::Deposit(transfer)));
            }
        }
        for at in 0..instruments {
            world.list(at);
        }
        world
    }

    pub(crate) fn list(&mut self, at: u32) {
        self.apply(&Command::Instrument(InstrumentCommand::Create(InstrumentSpec {
            instrument: InstrumentId(at),
            symbol: Symbol::new(&symbol(at)).unwrap(),
            base: AssetId(0),
            quote: AssetId(1),
            lot_units: 100_000,
            tick_value_units: 500,
            allocation: Allocation::PriceTime,
            fees: FeeSchedule { maker_ppm: 0, taker_ppm: 100 },
            collar_ppm: 1_000_000,
            band_ppm: 1_000_000,
            reference_price: PriceTicks::new(100).unwrap(),
            default_limits: RiskLimits::NONE,
        })));
        self.phase(at, TradingPhase::Continuous);
        let catalog = Catalog::of(self.engine.instruments().map(|view| view.spec), self.engine.assets());
        self.server.set_catalog(Arc::new(catalog), Vec::new());
        self.feed_new();
    }

    pub(crate) fn phase(&mut self, at: u32, phase: TradingPhase) {
        let set = SetTradingPhase { instrument: InstrumentId(at), phase };
        self.apply(&Command::Instrument(InstrumentCommand::SetPhase(set)));
    }

    fn apply(&mut self, command: &Command) -> Vec<Event> {
        self.log_index += 1;
        let (mut events, time) = (Vec::new(), TimeNs(self.now_ns));
        self.engine.apply(LogIndex(self.log_index), time, command, &mut events);
        for event in &events {
            if let Event::Order(OrderEvent::Traded(trade)) = event {
                let trade_of = PublicTrade {
                    trade_id: trade.trade_id,
                    time,
                    price: trade.price,
                    size: trade.size,
                    taker_side: Some(Side::Buy),
                };
                self.trades.entry(trade.instrument).or_default().push(trade_of);
            }
        }
        events
    }

    /// An order; one that crosses trades.
    pub(crate) fn order(&mut self, at: u32, id: u64, side: Side, price: i64, size: u64) {
        let terms = OrderTerms {
            side,
            size: SizeLots::new(size),
            order_type: OrderType::Limit { price: PriceTicks::new(price).unwrap(), post_only: PostOnly::Off },
            time_in_force: TimeInForce::GoodTillCancel,
            display: Display::Full,
            min_size: None,
            self_trade: SelfTrade::CancelNewest,
        };
        let (account, instrument) = (AccountId(u32::from(side == Side::Sell)), InstrumentId(at));
        let order = NewOrder { account, instrument, client_order_id: ClientOrderId(id), terms };
        self.apply(&Command::Order(OrderCommand::New(order)));
    }

    pub(crate) fn cancel(&mut self, at: u32, id: u64, side: Side) {
        let (account, instrument) = (AccountId(u32::from(side == Side::Sell)), InstrumentId(at));
        let cancel = CancelOrder { account, instrument, client_order_id: ClientOrderId(id) };
        self.apply(&Command::Order(OrderCommand::Cancel(cancel)));
    }

    fn levels(&self, instrument: InstrumentId, side: Side) -> Vec<BookLevel> {
        let mut depth = Vec::new();
        self.engine.depth(instrument, side, usize::MAX, &mut depth);
        let level = |level: &walras_engine::DepthLevel| BookLevel {
            price: level.price,
            shown: level.shown,
            order_count: level.order_count,
        };
        depth.iter().map(level).collect()
    }

    fn day(&self, instrument: InstrumentId) -> Day {
        let trades = self.trades.get(&instrument).map_or(&[][..], Vec::as_slice);
        let prices = || trades.iter().map(|trade| trade.price);
        Day {
            instrument,
            phase: self.engine.instrument(instrument).unwrap().phase,
            last: prices().next_back(),
            open: prices().next(),
            high: prices().max(),
            low: prices().min(),
            volume: SizeLots::new(trades.iter().map(|trade| trade.size.get()).sum()),
        }
    }

    fn auction(&self, instrument: InstrumentId) -> Option<Auction> {
        self.engine.indicative(instrument).map(|uncross| Auction {
            price: uncross.price,
            volume: uncross.volume,
            imbalance_lots: uncross.imbalance_lots,
        })
    }

    /// Publishes what changed since it was published last, or all of it.
    pub(crate) fn publish(&mut self, at: u32, all: bool) {
        let instrument = InstrumentId(at);
        let now = [Side::Buy, Side::Sell].map(|side| {
            self.levels(instrument, side).into_iter().map(|level| (level.price.get(), level)).collect::<BTreeMap<_, _>>()
        });
        let before = self.published.insert(instrument, now.clone()).unwrap_or_default();
        let changed = |side: usize| -> Vec<BookLevel> {
            if all {
                return now[side].values().copied().collect();
            }
            let gone = before[side].values().filter(|level| !now[side].contains_key(&level.price.get()));
            let gone = gone.map(|level| BookLevel::gone(level.price));
            now[side].values().filter(|level| before[side].get(&level.price.get()) != Some(level)).copied().chain(gone).collect()
        };
        let (bids, asks, auction) = (changed(0), changed(1), self.auction(instrument));
        let book = BookPiece { instrument, is_snapshot: all, log_index: self.log_index, bids: &bids, asks: &asks, auction };
        self.server.at(self.now_ns - DAY_NS, self.now_ns);
        if self.subscribed.get(&Need::Book(instrument)) == Some(&true) {
            self.server.on_piece(&Piece::Book(book));
        }
        let trades = self.trades.get(&instrument).cloned().unwrap_or_default();
        if self.subscribed.get(&Need::Trades(instrument)) == Some(&true) {
            let newest_first: Vec<_> = trades.iter().rev().take(100).copied().collect();
            let is_snapshot = all;
            let trades = if all { &newest_first[..] } else { &trades[..] };
            self.server.on_piece(&Piece::Trades { instrument, is_snapshot, trades });
        }
        if self.subscribed.get(&Need::Day(instrument)) == Some(&true) {
            let day = self.day(instrument);
            self.server.on_piece(&Piece::Day(day));
        }
    }

    /// Begins the feeds that the server asks for, with snapshots.
    pub(crate) fn feed_new(&mut self) {
        while let Some((need, is_wanted)) = self.server.next_ask() {
            self.subscribed.insert(need, is_wanted);
            if let (true, Need::Book(instrument) | Need::Trades(instrument) | Need::Day(instrument)) = (is_wanted, need) {
                self.publish(instrument.0, true);
            }
        }
    }

    /// There is one batch market, `main`.
    pub(crate) fn has_batch_market(&mut self) {
        let catalog = Catalog::of(self.engine.instruments().map(|view| view.spec), self.engine.assets());
        self.server.set_catalog(Arc::new(catalog), vec![(BatchMarketId(0), "main".to_owned())]);
    }

    /// Its block was cleared: asset, price and volume.
    pub(crate) fn block(&mut self, block: u64, prices: &[(&str, &str, &str)]) {
        let price = |(asset, price, volume): &(&str, &str, &str)| BatchPrice {
            asset: (*asset).to_owned(),
            price: (*price).to_owned(),
            volume: (*volume).to_owned(),
        };
        let prices: Vec<BatchPrice> = prices.iter().map(price).collect();
        let piece = BatchPiece { market: BatchMarketId(0), block, time: TimeNs(self.now_ns), prices: &prices };
        self.server.on_piece(&Piece::Batch(piece));
    }

    pub(crate) fn needed(&self) -> usize {
        self.subscribed.values().filter(|is_wanted| **is_wanted).count()
    }

    /// The feeds end, and begin again.
    pub(crate) fn lose_feeds(&mut self) {
        let needs = self.server.on_feeds_lost();
        for need in needs {
            if let Need::Book(instrument) | Need::Trades(instrument) | Need::Day(instrument) = need {
                self.publish(instrument.0, true);
            }
        }
    }

    pub(crate) fn send(&mut self, client: &mut Client, msg_type: &str, body: &str) {
        let bytes = client.message(self.now_ns, msg_type, body);
        self.send_bytes(client, &bytes);
    }

    pub(crate) fn send_bytes(&mut self, client: &Client, bytes: &[u8]) {
        self.server.at(self.now_ns - DAY_NS, self.now_ns);
        let is_throttled = self.is_throttled;
        let refusal = Refusal { reason: RejectReason::Throttled, detail: None, retry_after_ns: Some(1) };
        self.server.on_bytes(client.id, bytes, &mut |_, _, _| if is_throttled { Err(refusal.clone()) } else { Ok(()) });
        while let Some((id, logon)) = self.server.next_logon() {
            let verdict = logon.authorize(&mut self.gateway, self.now_ns, SourceId::of("10.0.0.1".parse().unwrap()));
            self.server.authenticated(id, verdict);
        }
        self.feed_new();
    }

    pub(crate) fn connect(&mut self, id: u64, version: &str) -> Client {
        self.server.connect(id, Secrecy::Private);
        let (begin, version_field) = match version {
            "FIX.5.0SP2" => ("FIXT.1.1", "1137=9|"),
            version => (version, ""),
        };
        let mut client = Client { id, begin: begin.to_owned(), seq: 1, expects: 1, unread: Vec::new() };
        let token = key().to_token().to_string();
        let (name, secret) = token.split_once('.').unwrap();
        let proof = match version {
            // 4.2 has no Username.
            "FIX.4.2" => String::new(),
            _ => format!("553={name}|554={secret}|"),
        };
        if proof.is_empty() {
            // It signs.
            let time = stamp(self.now_ns);
            let signed = format!("walras-v1\nLOGON\n/fix\nFIX.4.2\nREADER{id}\nWALRAS-MD\n1\n{time}\n30\nY\n");
            let signature = format!("{name}:{}", key().sign_bytes(signed.as_bytes()));
            self.send(&mut client, "A", &format!("98=0|108=30|95={}|96={signature}|141=Y|", signature.len()));
        } else {
            self.send(&mut client, "A", &format!("98=0|108=30|141=Y|{proof}{version_field}"));
        }
        client
    }

    /// What it is sent, in order.
    pub(crate) fn hear(&mut self, client: &mut Client) -> Vec<Received> {
        let mut all = Vec::new();
        loop {
            let output = self.server.output(client.id).to_vec();
            if output.is_empty() {
                return all;
            }
            self.server.consume(client.id, output.len());
            all.extend(client.take(&output));
        }
    }

    /// The engine's book.
    pub(crate) fn book(&self, at: u32, depth: usize) -> [Shown; 2] {
        [Side::Buy, Side::Sell].map(|side| {
            let catalog = Catalog::of(self.engine.instruments().map(|view| view.spec), self.engine.assets());
            let scale = &catalog.get(InstrumentId(at)).unwrap().scale;
            let levels = self.levels(InstrumentId(at), side).into_iter().take(depth);
            levels.map(|level| (scale.price(level.price).to_string(), scale.size(level.shown).to_string())).collect()
        })
    }
}

pub(crate) struct Client {
    pub(crate) id: u64,
    begin: String,
    seq: u64,
    expects: u64,
    unread: Vec<u8>,
}

impl Client {
    /// One whose next message has this number.
    pub(crate) fn of(id: u64, seq: u64) -> Self {
        Self { id, begin: "FIX.4.4".to_owned(), seq, expects: 1, unread: Vec::new() }
    }

    pub(crate) fn message(&mut self, now_ns: u64, msg_type: &str, body: &str) -> Vec<u8> {
        let rest = format!("35={msg_type}|34={}|49=READER{}|52={}|56=WALRAS-MD|{body}", self.seq, self.id, stamp(now_ns));
        self.seq += 1;
        let text = format!("8={}|9={}|{rest}", self.begin, rest.len()).replace('|', "\x01");
        let sum = text.bytes().fold(0_u8, u8::wrapping_add);
        format!("{text}10={sum:03}\x01").into_bytes()
    }

    /// Messages whose numbers follow each other.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<Received> {
        self.unread.extend_from_slice(bytes);
        let mut all = Vec::new();
        while let Some(at) = self.unread.windows(4).position(|window| window == b"\x0110=") {
            if self.unread.len() < at + 8 {
                break;
            }
            let text: Vec<u8> = self.unread.drain(..at + 8).collect();
            let text = String::from_utf8(text).unwrap();
            let fields = text.split_terminator('\x01').map(|field| field.split_once('=').unwrap());
            let message = Received(fields.map(|(tag, value)| (tag.parse().unwrap(), value.to_owned())).collect());
            assert_eq!(message.get(34), Some(self.expects.to_string().as_str()), "{message:?}");
            self.expects += 1;
            all.push(message);
        }
        all
    }
}

/// A time of day within the first day of 2026.
pub(crate) fn stamp(now_ns: u64) -> String {
    let ms = (now_ns - DAY_NS) / 1_000_000;
    let (s, ms) = (ms / 1_000, ms % 1_000);
    format!("20260101-{:02}:{:02}:{:02}.{ms:03}", s / 3_600, s / 60 % 60, s % 60)
}
