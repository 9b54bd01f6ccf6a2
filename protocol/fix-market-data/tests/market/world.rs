//! An engine, the server, and clients as far as these tests need them.

use std::collections::BTreeMap;
use std::sync::Arc;

use walras_engine::{DisplayedOrder, Engine};
use walras_feed::message::BatchCleared;
use walras_fix::{Dictionaries, Leniency, RejectReason as FixReason, Rules, Version};
use walras_fix_market_data::{
    Auction, BatchListed, BatchPiece, BatchPrice, BatchTerms, BookPiece, Day, MarketDataServer, MarketDataSettings, Need,
    OrdersPiece, Piece,
};
use walras_fix_orders::{Catalog, Secrecy};
use walras_gateway::{Algorithm, ClientKey, Gateway, GatewayConfig, Permission, Permissions, Rate, Refusal, SourceId};
use walras_market_data::limits::BOOK_ORDERS_MAX;
use walras_market_data::{BookLevel, PublicOrder, PublicTrade};
use walras_types::{
    AccountId, Allocation, Amendment, Amount, AssetId, BatchMarketId, BatchPhase, ClientOrderId, Display, FeeSchedule,
    InstrumentId, InstrumentSpec, LogIndex, OrderTerms, OrderType, PostOnly, PriceTicks, RejectReason, RiskLimits, SelfTrade, Side,
    SizeLots, Symbol, TimeInForce, TimeNs, TradingPhase, TransferId,
};
use walras_wire::{
    AccountCommand, AmendOrder, AssetSpec, CancelOrder, Command, Event, InstrumentCommand, InstrumentEvent, NewOrder, OrderCommand,
    OrderEvent, PhaseCause, SetTradingPhase, Transfer, VenueCommand,
};

/// The begin of 2026.
pub(crate) const DAY_NS: u64 = 1_767_225_600_000_000_000;

/// What a book shows: price and size, best first.
pub(crate) type Shown = Vec<(String, String)>;

/// The orders that it shows: number, price and size, as they stand.
pub(crate) type Queue = Vec<(String, String, String)>;

/// A price as it is written, to be ordered.
pub(crate) fn number(text: &str) -> f64 {
    text.parse().unwrap()
}

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
    /// Why each instrument is in its phase.
    phase_causes: BTreeMap<InstrumentId, PhaseCause>,
    /// What was published of each book last.
    published: BTreeMap<InstrumentId, [BTreeMap<i64, BookLevel>; 2]>,
    pub(crate) is_throttled: bool,
    /// The price of the day before.
    pub(crate) previous_close: Option<PriceTicks>,
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
            phase_causes: BTreeMap::new(),
            published: BTreeMap::new(),
            is_throttled: false,
            previous_close: None,
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
            if let Event::Instrument(InstrumentEvent::PhaseChanged(changed)) = event {
                self.phase_causes.insert(changed.instrument, changed.cause);
            }
        }
        events
    }

    /// An order; one that crosses trades.
    pub(crate) fn order(&mut self, at: u32, id: u64, side: Side, price: i64, size: u64) {
        self.enter(at, id, side, (price, size, Display::Full));
    }

    pub(crate) fn enter(&mut self, at: u32, id: u64, side: Side, (price, size, display): (i64, u64, Display)) {
        let terms = OrderTerms {
            side,
            size: SizeLots::new(size),
            order_type: OrderType::Limit { price: PriceTicks::new(price).unwrap(), post_only: PostOnly::Off },
            time_in_force: TimeInForce::GoodTillCancel,
            display,
            min_size: None,
            self_trade: SelfTrade::CancelNewest,
        };
        let (account, instrument) = (AccountId(u32::from(side == Side::Sell)), InstrumentId(at));
        let order = NewOrder { account, instrument, client_order_id: ClientOrderId(id), terms };
        self.apply(&Command::Order(OrderCommand::New(order)));
    }

    /// Changes the price or the size of an order.
    pub(crate) fn amend(&mut self, at: u32, id: u64, side: Side, (price, size): (Option<i64>, Option<u64>)) {
        let (account, instrument) = (AccountId(u32::from(side == Side::Sell)), InstrumentId(at));
        let (price, size) = (price.and_then(PriceTicks::new), size.map(SizeLots::new));
        let amendment = Amendment { client_order_id: ClientOrderId(id), price, trigger: None, size };
        self.apply(&Command::Order(OrderCommand::Amend(AmendOrder { account, instrument, amendment })));
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

    fn displayed(&self, instrument: InstrumentId, side: Side) -> Vec<PublicOrder> {
        let mut displayed = Vec::new();
        self.engine.displayed_orders(instrument, side, BOOK_ORDERS_MAX, &mut displayed);
        let public = |DisplayedOrder { order_id, price, shown }: DisplayedOrder| PublicOrder { order_id, side, price, shown };
        displayed.into_iter().map(public).collect()
    }

    fn day(&self, instrument: InstrumentId) -> Day {
        let trades = self.trades.get(&instrument).map_or(&[][..], Vec::as_slice);
        let prices = || trades.iter().map(|trade| trade.price);
        Day {
            instrument,
            phase: self.engine.instrument(instrument).unwrap().phase,
            phase_cause: self.phase_causes.get(&instrument).copied(),
            last: prices().next_back(),
            open: prices().next(),
            high: prices().max(),
            low: prices().min(),
            previous_close: self.previous_close,
            volume: Some(SizeLots::new(trades.iter().map(|trade| trade.size.get()).sum())),
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
        if self.subscribed.get(&Need::Orders(instrument)) == Some(&true) {
            let [bids, asks] = Side::BOTH.map(|side| self.displayed(instrument, side));
            let orders = OrdersPiece { instrument, log_index: self.log_index, bids: &bids, asks: &asks };
            self.server.on_piece(&Piece::Orders(orders));
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
            if let (true, Some(instrument)) = (is_wanted, instrument_of(need)) {
                self.publish(instrument.0, true);
            }
        }
    }

    /// There is one batch market, `main`.
    pub(crate) fn has_batch_market(&mut self) {
        let catalog = Catalog::of(self.engine.instruments().map(|view| view.spec), self.engine.assets());
        let assets = ["USD", "BTC", "ETH"].map(str::to_owned).to_vec();
        let batch = BatchListed { market: BatchMarketId(0), name: "main".to_owned(), assets };
        self.server.set_catalog(Arc::new(catalog), vec![batch]);
    }

    /// It was opened or closed, or its interval is another one.
    pub(crate) fn batch_terms(&mut self, phase: BatchPhase, interval_ns: u64) {
        self.server.on_piece(&Piece::BatchTerms(BatchMarketId(0), BatchTerms { phase, interval_ns }));
    }

    /// Its block was cleared: asset, price and volume. 0: there was none yet.
    pub(crate) fn block(&mut self, block: u64, prices: &[(&str, &str, &str)]) {
        let price = |(asset, price, volume): &(&str, &str, &str)| BatchPrice {
            asset: (*asset).to_owned(),
            price: (*price).to_owned(),
            volume: (*volume).to_owned(),
        };
        let prices: Vec<BatchPrice> = prices.iter().map(price).collect();
        let cleared = (block > 0).then_some(BatchCleared {
            block,
            transactions: 11,
            pairs: 12,
            offers_traded: 13,
            gap_ppb: 14,
            unserved_ppb: 15,
            set_aside: 16,
            state_root: [0x1f; 32],
        });
        let piece = BatchPiece { market: BatchMarketId(0), cleared, time: TimeNs(self.now_ns), prices: &prices };
        self.server.on_piece(&Piece::Batch(piece));
    }

    /// The engine's book by order.
    pub(crate) fn queues(&self, at: u32, depth: usize) -> [Queue; 2] {
        let catalog = Catalog::of(self.engine.instruments().map(|view| view.spec), self.engine.assets());
        let scale = &catalog.get(InstrumentId(at)).unwrap().scale;
        Side::BOTH.map(|side| {
            let orders = self.displayed(InstrumentId(at), side).into_iter().take(depth);
            let text = |order: PublicOrder| {
                (order.order_id.0.to_string(), scale.price(order.price).to_string(), scale.size(order.shown).to_string())
            };
            orders.map(text).collect()
        })
    }

    pub(crate) fn needed(&self) -> usize {
        self.subscribed.values().filter(|is_wanted| **is_wanted).count()
    }

    /// The feeds end, and begin again.
    pub(crate) fn lose_feeds(&mut self) {
        let needs = self.server.on_feeds_lost();
        for need in needs {
            if let Some(instrument) = instrument_of(need) {
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
        let (begin, appl_ver_id) = match version {
            "FIX.5.0" => ("FIXT.1.1", "7"),
            "FIX.5.0SP1" => ("FIXT.1.1", "8"),
            "FIX.5.0SP2" => ("FIXT.1.1", "9"),
            version => (version, ""),
        };
        let version_field = if appl_ver_id.is_empty() { String::new() } else { format!("1137={appl_ver_id}|") };
        let mut client = Client::of(id, 1);
        client.begin = begin.to_owned();
        client.version = Version::of_session(begin.as_bytes(), Some(appl_ver_id.as_bytes())).unwrap();
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

fn instrument_of(need: Need) -> Option<InstrumentId> {
    match need {
        Need::Book(instrument) | Need::Orders(instrument) | Need::Trades(instrument) | Need::Day(instrument) => Some(instrument),
        Need::Batch(_) => None,
    }
}

pub(crate) struct Client {
    pub(crate) id: u64,
    begin: String,
    version: Version,
    dictionaries: Dictionaries,
    seq: u64,
    expects: u64,
    unread: Vec<u8>,
}

impl Client {
    /// One whose next message has this number.
    pub(crate) fn of(id: u64, seq: u64) -> Self {
        let (begin, version, dictionaries) = ("FIX.4.4".to_owned(), Version::Fix44, Dictionaries::new());
        Self { id, begin, version, dictionaries, seq, expects: 1, unread: Vec::new() }
    }

    pub(crate) fn message(&mut self, now_ns: u64, msg_type: &str, body: &str) -> Vec<u8> {
        let rest = format!("35={msg_type}|34={}|49=READER{}|52={}|56=WALRAS-MD|{body}", self.seq, self.id, stamp(now_ns));
        self.seq += 1;
        let text = format!("8={}|9={}|{rest}", self.begin, rest.len()).replace('|', "\x01");
        let sum = text.bytes().fold(0_u8, u8::wrapping_add);
        format!("{text}10={sum:03}\x01").into_bytes()
    }

    /// Engines reject what the dictionary of the version does not have. Users' own fields come to those alone who ask for them.
    fn check(&self, bytes: &[u8]) {
        let message = self.dictionaries.read(bytes).unwrap();
        let user_tags = if message.get(5083).is_some() { Leniency::Allowed } else { Leniency::Rejected };
        let rules = Rules { user_tags, empty_values: Leniency::Rejected };
        let mut verdict = self.dictionaries.check(self.version, &message, rules);
        // Extension packs of 5.0 SP2 made LastUpdateTime(779) required; the dictionaries of engines, which are older, reject it.
        if verdict.is_err_and(|fault| (fault.reason, fault.tag) == (FixReason::RequiredTagMissing, Some(779))) {
            verdict = Ok(());
        }
        assert_eq!(verdict, Ok(()), "{:?}: {}", self.version, String::from_utf8_lossy(bytes));
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
            self.check(&text);
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
