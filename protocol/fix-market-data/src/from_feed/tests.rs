//! Readers of the feed against an engine that publishes: what they are given is what a replica gives its own readers.

use std::collections::BTreeMap;

use walras_engine::Engine;
use walras_feed::message::AuctionIndicated;
use walras_feed::publisher::{Publisher, Views};
use walras_feed::sender::{Packets, Sender, SenderSettings};
use walras_market_data::limits::BOOK_ORDERS_MAX;
use walras_market_data::{BookChanges, MarketData};
use walras_random::Random;
use walras_relay::packet::{Kind, PACKET_BYTES_MAX, TreeKey};
use walras_types::{
    AccountId, Allocation, Amount, BatchPhase, ClientOrderId, Commission, Display, FeeSchedule, InstrumentSpec, Intake, LogIndex,
    LowerBounds, Mu, OrderTerms, OrderType, PostOnly, PriceTicks, QualityMax, RiskLimits, SelfTrade, Side, SizeLots, Symbol,
    TimeInForce, TradeId, TradingPhase, TransferId,
};
use walras_wire::{
    AccountCommand, AssetSpec, BatchAssetAdded, BatchEvent, BatchIntervalChanged, BatchMarketEvent, BatchMarketSpec,
    BatchPhaseChanged, BlockCleared, CancelOrder, Command, Event, InstrumentCommand, NewOrder, OrderCommand, PhaseCause,
    SetTradingPhase, Transfer, VenueCommand,
};

use super::*;
use crate::market::Market;
use crate::orders::Orders;

const DAY_NS: u64 = 86_400_000_000_000;
const MS: u64 = 1_000_000;
const EVERY_NS: u64 = 50 * MS;
/// Noon of some day.
const START_NS: u64 = 20_000 * DAY_NS + DAY_NS / 2;
const INSTRUMENTS: u32 = 2;
const DEPTHS: [usize; 3] = [1, 3, usize::MAX];

/// What readers were given of each instrument.
struct Given {
    markets: BTreeMap<InstrumentId, Market>,
    /// Books, books by order and days that were given since this was asked before.
    books: usize,
    by_order: usize,
    days: usize,
}

impl Given {
    fn new() -> Self {
        let market = |id| {
            let mut market = Market::default();
            for depth in DEPTHS {
                market.book.begin(depth);
                market.orders.begin(depth);
            }
            (InstrumentId(id), market)
        };
        Self { markets: (0..INSTRUMENTS).map(market).collect(), books: 0, by_order: 0, days: 0 }
    }

    fn take(&mut self, piece: &Piece<'_>) {
        match piece {
            Piece::Book(book) => {
                self.books += 1;
                self.markets.get_mut(&book.instrument).unwrap().book.take(book);
            }
            Piece::Orders(orders) => {
                self.by_order += 1;
                self.markets.get_mut(&orders.instrument).unwrap().orders.take(orders);
            }
            Piece::Trades { instrument, is_snapshot, trades } => {
                self.markets.get_mut(instrument).unwrap().trades.take(*is_snapshot, trades);
            }
            Piece::Day(day) => {
                self.days += 1;
                self.markets.get_mut(&day.instrument).unwrap().day.take(*day);
            }
            Piece::Batch(_) | Piece::BatchTerms(..) => {}
        }
    }

    fn market(&self, id: u32) -> &Market {
        &self.markets[&InstrumentId(id)]
    }
}

/// An engine, the feed of it, and the market data that a replica derives from it.
struct Venue {
    engine: Engine,
    market: MarketData,
    publisher: Publisher,
    sender: Sender,
    packets: Packets,
    now_ns: u64,
    log_index: u64,
    /// The interval of the last publication.
    interval: u64,
    /// Of each entry that concerned an instrument, its book then, by level and by order, and what an auction would have traded.
    books: BTreeMap<(u32, u64), [Vec<BookLevel>; 2]>,
    indicated: BTreeMap<(u32, u64), Option<Auction>>,
    queues: BTreeMap<(u32, u64), [Vec<PublicOrder>; 2]>,
    trades: BTreeMap<u32, Vec<PublicTrade>>,
    auctions: [Option<Auction>; INSTRUMENTS as usize],
}

fn ticks(price: i64) -> PriceTicks {
    PriceTicks::new(price).unwrap()
}

impl Venue {
    fn new() -> Self {
        let sender = Sender::new(SenderSettings {
            tree: 1,
            trees: Trees::ONE,
            epoch: 0,
            first_number: 1,
            key: TreeKey::new([1; 32]),
            packet_bytes: PACKET_BYTES_MAX,
            rewind_bytes_max: 1 << 16,
            rewind_total_bytes_max: 1 << 20,
            heartbeat_ns: 20 * MS,
            snapshot_bytes_per_s: 1 << 20,
            rotation_ns_min: 100 * MS,
        });
        let mut venue = Self {
            engine: Engine::new(),
            market: MarketData::new(),
            publisher: Publisher::new(Views::ALL),
            sender,
            packets: Packets::default(),
            now_ns: START_NS,
            log_index: 0,
            interval: 0,
            books: BTreeMap::new(),
            indicated: BTreeMap::new(),
            queues: BTreeMap::new(),
            trades: BTreeMap::new(),
            auctions: [None; INSTRUMENTS as usize],
        };
        for (asset, name) in [(0, "BTC"), (1, "USD")] {
            let spec = AssetSpec { asset: AssetId(asset), symbol: Symbol::new(name).unwrap(), decimals: 6 };
            venue.apply(&Command::Venue(VenueCommand::CreateAsset(spec)));
        }
        for account in [0, 1].map(AccountId) {
            venue.apply(&Command::Account(AccountCommand::Create(account)));
            for asset in [0, 1] {
                let (amount, transfer_id) = (Amount::new(1 << 50).unwrap(), TransferId(u64::from(asset) + 1));
                let transfer = Transfer { account, asset: AssetId(asset), amount, transfer_id };
                venue.apply(&Command::Account(AccountCommand::Deposit(transfer)));
            }
        }
        for id in 0..INSTRUMENTS {
            venue.apply(&Command::Instrument(InstrumentCommand::Create(InstrumentSpec {
                instrument: InstrumentId(id),
                symbol: Symbol::new(&format!("BTC{id}/USD")).unwrap(),
                base: AssetId(0),
                quote: AssetId(1),
                lot_units: 100,
                tick_value_units: 500,
                allocation: Allocation::PriceTime,
                fees: FeeSchedule { maker_ppm: 0, taker_ppm: 100 },
                collar_ppm: 1_000_000,
                band_ppm: 1_000_000,
                reference_price: ticks(100),
                default_limits: RiskLimits::NONE,
            })));
            venue.phase(id, TradingPhase::Continuous);
        }
        venue
    }

    fn phase(&mut self, id: u32, phase: TradingPhase) -> bool {
        let set = SetTradingPhase { instrument: InstrumentId(id), phase };
        self.apply(&Command::Instrument(InstrumentCommand::SetPhase(set)))
    }

    fn order(&mut self, id: u32, client_order_id: u64, side: Side, price: i64, size: u64) -> bool {
        let terms = OrderTerms {
            side,
            size: SizeLots::new(size),
            order_type: OrderType::Limit { price: ticks(price), post_only: PostOnly::Off },
            time_in_force: TimeInForce::GoodTillCancel,
            display: Display::Full,
            min_size: None,
            self_trade: SelfTrade::CancelNewest,
        };
        let (account, instrument) = (AccountId(u32::from(side == Side::Sell)), InstrumentId(id));
        let order = NewOrder { account, instrument, client_order_id: ClientOrderId(client_order_id), terms };
        self.apply(&Command::Order(OrderCommand::New(order)))
    }

    fn cancel(&mut self, id: u32, client_order_id: u64, side: Side) -> bool {
        let (account, instrument) = (AccountId(u32::from(side == Side::Sell)), InstrumentId(id));
        let cancel = CancelOrder { account, instrument, client_order_id: ClientOrderId(client_order_id) };
        self.apply(&Command::Order(OrderCommand::Cancel(cancel)))
    }

    /// An entry of the log; whether the venue publishes after it.
    fn apply(&mut self, command: &Command) -> bool {
        self.log_index += 1;
        let (log_index, time, mut events) = (LogIndex(self.log_index), TimeNs(self.now_ns), Vec::new());
        self.engine.apply(log_index, time, command, &mut events);
        self.market.on_entry(log_index, time).unwrap();
        self.publisher.begin(log_index, time).unwrap();
        for event in &events {
            self.market.on_event(log_index, time, event).unwrap();
            self.publisher.on_event(event).unwrap();
        }
        for level in self.engine.changed_levels() {
            self.market.on_changed_level(level.instrument, level.side, level.price).unwrap();
        }
        for id in 0..self.market.instruments().len() as u32 {
            let instrument = InstrumentId(id);
            if self.market.instrument(instrument).unwrap().revision() == log_index {
                let collects = self.engine.instrument(instrument).unwrap().phase != TradingPhase::Continuous;
                let indicated = self.engine.indicative(instrument).filter(|_| collects).map(|uncross| AuctionIndicated {
                    price: Some(uncross.price),
                    volume: uncross.volume,
                    imbalance_lots: uncross.imbalance_lots,
                });
                self.publisher.on_indication(instrument, indicated).unwrap();
                let book = Side::BOTH.map(|side| self.levels(id, side));
                self.books.insert((id, self.log_index), book);
                self.indicated.insert((id, self.log_index), self.auction(id));
                self.queues.insert((id, self.log_index), self.displayed(id));
                let after = self.trades.entry(id).or_default().last().map_or(TradeId(0), |trade| trade.trade_id);
                let new: Vec<PublicTrade> = self.market.instrument(instrument).unwrap().tape().since(after).copied().collect();
                self.trades.entry(id).or_default().extend(new);
            }
        }
        self.publisher.end();
        self.sender.publish(&mut self.publisher, self.now_ns, self.now_ns, &mut self.packets);
        let interval = self.now_ns / EVERY_NS;
        interval > std::mem::replace(&mut self.interval, interval)
    }

    /// Heartbeats and snapshots that are due.
    fn rotate(&mut self) {
        self.sender.heartbeats((self.now_ns, self.now_ns), &mut self.packets);
        self.sender.snapshots(&self.publisher, (self.now_ns, self.now_ns), &mut self.packets);
    }

    /// Gives what was sent to a reader; `passes` says whether a packet comes.
    fn deliver(&mut self, feed: &mut FromFeed, mut passes: impl FnMut(Kind) -> bool) {
        for (header, bytes) in self.packets.iter().filter(|(header, _)| passes(header.kind)) {
            let packet = Packet::of_own(bytes).unwrap();
            assert_eq!(packet.header().channel, header.channel);
            feed.packet(self.now_ns, &packet);
        }
        self.packets.clear();
    }

    fn levels(&self, id: u32, side: Side) -> Vec<BookLevel> {
        let mut depth = Vec::new();
        self.engine.depth(InstrumentId(id), side, usize::MAX, &mut depth);
        let level = |level: &walras_engine::DepthLevel| BookLevel {
            price: level.price,
            shown: level.shown,
            order_count: level.order_count,
        };
        depth.iter().map(level).collect()
    }

    fn displayed(&self, id: u32) -> [Vec<PublicOrder>; 2] {
        Side::BOTH.map(|side| {
            let mut displayed = Vec::new();
            self.engine.displayed_orders(InstrumentId(id), side, BOOK_ORDERS_MAX, &mut displayed);
            let public = |order: &walras_engine::DisplayedOrder| PublicOrder {
                order_id: order.order_id,
                side,
                price: order.price,
                shown: order.shown,
            };
            displayed.iter().map(public).collect()
        })
    }

    fn auction(&self, id: u32) -> Option<Auction> {
        let of = |uncross: walras_engine::Uncross| Auction {
            price: uncross.price,
            volume: uncross.volume,
            imbalance_lots: uncross.imbalance_lots,
        };
        self.engine.indicative(InstrumentId(id)).map(of)
    }

    fn day(&self, id: u32) -> Day {
        let feed = self.market.instrument(InstrumentId(id)).unwrap();
        let ticker = feed.ticker();
        let day = ticker.day(TimeNs(self.now_ns));
        Day {
            instrument: InstrumentId(id),
            phase: ticker.phase,
            phase_cause: ticker.phase_cause,
            last: ticker.last,
            open: day.map(|day| day.open),
            high: day.map(|day| day.high),
            low: day.map(|day| day.low),
            previous_close: feed.previous_close(TimeNs(self.now_ns)),
            volume: Some(day.map_or(SizeLots::ZERO, |day| day.volume)),
        }
    }

    /// What a replica gives its readers of the state as it is: all of it, or what changed since this was asked before.
    fn publish(&mut self, all: bool, given: &mut Given) {
        for id in 0..INSTRUMENTS {
            let (instrument, engine, auction) = (InstrumentId(id), &self.engine, self.auction(id));
            let now = |side, price| {
                engine.level(instrument, side, price).map(|level| BookLevel {
                    price: level.price,
                    shown: level.shown,
                    order_count: level.order_count,
                })
            };
            let (mut changes, feed) = (Vec::new(), self.market.instrument_mut(instrument).unwrap());
            let log_index = feed.revision().0;
            let is_whole = all || feed.changed_levels().take(now, &mut changes) == BookChanges::TooMany;
            let of = |side| changes.iter().filter(move |change| change.side == side).map(|change| change.level).collect();
            let [bids, asks]: [Vec<BookLevel>; 2] =
                if is_whole { Side::BOTH.map(|side| self.levels(id, side)) } else { Side::BOTH.map(of) };
            let is_news = std::mem::replace(&mut self.auctions[id as usize], auction) != auction;
            if is_whole || is_news || !changes.is_empty() {
                let (bids, asks) = (&bids[..], &asks[..]);
                given.take(&Piece::Book(BookPiece { instrument, is_snapshot: is_whole, log_index, bids, asks, auction }));
            }
            let now = self.displayed(id);
            if all || both(&given.market(id).orders) != now.each_ref().map(Vec::as_slice) {
                given.take(&Piece::Orders(OrdersPiece { instrument, log_index, bids: &now[0], asks: &now[1] }));
            }
            let newest_first: Vec<PublicTrade> =
                self.market.instrument(instrument).unwrap().tape().newest_first(None).take(100).copied().collect();
            given.take(&Piece::Trades { instrument, is_snapshot: true, trades: &newest_first });
            let day = self.day(id);
            if given.market(id).day.now != Some(day) {
                given.take(&Piece::Day(day));
            }
        }
    }
}

fn both(orders: &Orders) -> [&[PublicOrder]; 2] {
    Side::BOTH.map(|side| orders.of(usize::MAX, side))
}

fn from_feed() -> FromFeed {
    FromFeed::new(FromFeedSettings { every_ns: EVERY_NS, trees: Trees::ONE })
}

fn want_all(feed: &mut FromFeed, now_ns: u64) {
    for id in (0..INSTRUMENTS).map(InstrumentId) {
        [Need::Book(id), Need::Orders(id), Need::Trades(id), Need::Day(id)]
            .into_iter()
            .for_each(|need| feed.want(now_ns, need, true));
    }
}

fn take_all(feed: &mut FromFeed, given: &mut Given) {
    while let Some(piece) = feed.next_piece() {
        given.take(&piece.as_piece().unwrap());
    }
}

/// Random entries: orders that cross, cancels, auctions.
struct Traders {
    random: Random,
    open: Vec<(u32, u64, Side)>,
    orders: u64,
}

impl Traders {
    fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), open: Vec::new(), orders: 0 }
    }

    fn act(&mut self, venue: &mut Venue) -> bool {
        let Self { random, open, orders } = self;
        let id = u32::try_from(random.below(u64::from(INSTRUMENTS))).unwrap();
        match random.below(20) {
            0 => {
                let is_continuous = venue.engine.instrument(InstrumentId(id)).unwrap().phase == TradingPhase::Continuous;
                venue.phase(id, if is_continuous { TradingPhase::ClosingAuction } else { TradingPhase::Continuous })
            }
            // Nothing that readers hear of.
            1..=3 => venue.apply(&Command::Venue(VenueCommand::Tick)),
            4..=9 if !open.is_empty() => {
                let at = usize::try_from(random.below(open.len() as u64)).unwrap();
                let (id, order, side) = open.swap_remove(at);
                venue.cancel(id, order, side)
            }
            _ => {
                *orders += 1;
                let side = if random.below(2) == 0 { Side::Buy } else { Side::Sell };
                let price = 95 + i64::try_from(random.below(10)).unwrap() + if side == Side::Sell { 3 } else { 0 };
                open.push((id, *orders, side));
                venue.order(id, *orders, side, price, 1 + random.below(20))
            }
        }
    }
}

/// The same updates as at a replica: the same entries are merged, whatever the order of packets and of what is published.
#[test]
fn readers_are_given_what_a_replica_gives() {
    for seed in 0..16 {
        let (mut venue, mut feed) = (Venue::new(), from_feed());
        let (mut here, mut there) = (Given::new(), Given::new());
        want_all(&mut feed, 0);
        venue.now_ns += 200 * MS;
        venue.rotate();
        venue.deliver(&mut feed, |_| true);
        take_all(&mut feed, &mut here);
        venue.publish(true, &mut there);
        venue.publish(false, &mut there);
        assert_eq!([here.books, here.by_order, here.days], [INSTRUMENTS as usize; 3]);
        let mut traders = Traders::new(seed);
        let (mut publications, mut late) = (0, Vec::new());
        for step in 0..400_u64 {
            venue.now_ns += traders.random.below(40) * MS + if step == 200 { DAY_NS / 2 } else { 0 };
            let publishes = traders.act(&mut venue);
            if publishes {
                publications += 1;
                venue.publish(false, &mut there);
                late.push((venue.log_index, venue.now_ns));
            }
            // Packets of later entries may come before it is heard that an entry was published.
            venue.deliver(&mut feed, |_| true);
            if !late.is_empty() && traders.random.below(2) == 0 {
                (here.books, there.books) = (0, 0);
                // Readers at the replica have been given it: compare when all is.
                for (log_index, time_ns) in late.drain(..) {
                    feed.published(venue.now_ns, log_index, time_ns);
                    take_all(&mut feed, &mut here);
                }
                for id in 0..INSTRUMENTS {
                    let (one, other) = (here.market(id), there.market(id));
                    let at = format!("seed {seed}, step {step}, instrument {id}");
                    assert_eq!(one.book.update, other.book.update, "{at}");
                    assert_eq!(one.book.auction, other.book.auction, "{at}");
                    assert_eq!(one.orders.update, other.orders.update, "{at}");
                    for (depth, side) in DEPTHS.into_iter().flat_map(|depth| Side::BOTH.map(|side| (depth, side))) {
                        assert_eq!(one.orders.of(depth, side), other.orders.of(depth, side), "{at}");
                        assert_eq!(one.orders.changes(depth), other.orders.changes(depth), "{at}");
                        assert_eq!(one.book.levels(depth, side), other.book.levels(depth, side), "{at}");
                        assert_eq!(one.book.changes(depth), other.book.changes(depth), "{at}");
                    }
                    assert_eq!(one.trades.last(), other.trades.last(), "{at}");
                    let known = |day: Day| if day.last.is_none() { Day { volume: None, ..day } } else { day };
                    assert_eq!(one.day.now.map(known), other.day.now.map(known), "{at}");
                }
            }
        }
        assert!(publications > 50 && traders.orders > 100);
    }
}

/// Packets are lost, and nobody is asked for them: whatever is given is true of the venue.
#[test]
fn what_is_given_is_true_whatever_is_lost() {
    let (mut wholes, mut auctions, mut by_order, mut hidden) = (0, 0, 0, 0);
    for seed in 0..16 {
        let (mut venue, mut feed, mut given) = (Venue::new(), from_feed(), Given::new());
        let mut traders = Traders::new(seed);
        let mut losses = Random::new(seed + 1_000);
        want_all(&mut feed, 0);
        for step in 0..1_500_u64 {
            venue.now_ns += traders.random.below(10) * MS + if step == 700 { DAY_NS / 2 } else { 0 };
            let publishes = traders.act(&mut venue);
            venue.rotate();
            venue.deliver(&mut feed, |_| losses.below(40) > 0);
            // The replica above may be silent for a while.
            if publishes && step / 100 % 3 != 2 {
                feed.published(venue.now_ns, venue.log_index, venue.now_ns);
            }
            feed.on_time(venue.now_ns, venue.now_ns);
            while let Some(piece) = feed.next_piece() {
                let piece = piece.as_piece().unwrap();
                given.take(&piece);
                match piece {
                    Piece::Book(BookPiece { instrument, is_snapshot, log_index, auction, .. }) => {
                        wholes += u64::from(is_snapshot);
                        auctions += u64::from(auction.is_some_and(|auction| auction.imbalance_lots != 0));
                        let at = (instrument.0, log_index);
                        assert_eq!(auction, venue.indicated[&at], "seed {seed}, step {step}");
                        let expected = &venue.books[&at];
                        let book = &given.market(instrument.0).book;
                        for (side, expected) in Side::BOTH.into_iter().zip(expected) {
                            assert_eq!(book.levels(usize::MAX, side), &expected[..], "seed {seed}, step {step}");
                        }
                    }
                    Piece::Orders(OrdersPiece { instrument, log_index, .. }) => {
                        by_order += 1;
                        let orders = &given.market(instrument.0).orders;
                        let expected = &venue.queues[&(instrument.0, log_index)];
                        assert_eq!(both(orders), expected.each_ref().map(Vec::as_slice), "seed {seed}, step {step}");
                    }
                    Piece::Day(day) => {
                        let Some(volume) = day.volume else {
                            hidden += 1;
                            continue;
                        };
                        let market = given.market(day.instrument.0);
                        let last = market.trades.last().map_or(0, |last| last.0);
                        let of_day =
                            |trade: &&PublicTrade| trade.trade_id.0 <= last && trade.time.0 / DAY_NS == venue.now_ns / DAY_NS;
                        let all = venue.trades.get(&day.instrument.0).map_or(&[][..], Vec::as_slice);
                        let sizes = all.iter().filter(of_day).map(|trade| trade.size.get());
                        assert_eq!(volume.get(), sizes.sum::<u64>(), "seed {seed}, step {step}");
                        let before = |trade: &&PublicTrade| trade.time.0 / DAY_NS < venue.now_ns / DAY_NS;
                        let close = all.iter().rfind(before).map(|trade| trade.price);
                        assert!(day.previous_close.is_none() || day.previous_close == close, "seed {seed}, step {step}");
                        let prices = || all.iter().filter(of_day).map(|trade| trade.price);
                        assert_eq!((day.open, day.high, day.low), (prices().next(), prices().max(), prices().min()));
                    }
                    Piece::Trades { .. } | Piece::Batch(_) | Piece::BatchTerms(..) => {}
                }
            }
        }
        // Once nothing is lost any more they have the venue's books.
        for _ in 0..20 {
            venue.now_ns += 50 * MS;
            venue.apply(&Command::Venue(VenueCommand::Tick));
            venue.rotate();
            venue.deliver(&mut feed, |_| true);
            feed.on_time(venue.now_ns, venue.now_ns);
            take_all(&mut feed, &mut given);
        }
        for (id, side) in (0..INSTRUMENTS).flat_map(|id| Side::BOTH.map(|side| (id, side))) {
            assert_eq!(given.market(id).book.levels(usize::MAX, side), &venue.levels(id, side)[..], "seed {seed}");
            let orders = &venue.displayed(id)[usize::from(side == Side::Sell)];
            assert_eq!(given.market(id).orders.of(usize::MAX, side), &orders[..], "seed {seed}");
        }
    }
    let what = format!("{wholes} snapshots, {auctions} imbalances, {by_order} books by order, {hidden} days without figures");
    assert!(wholes > 100 && auctions > 100 && by_order > 1_000 && hidden > 10, "{what}");
}

#[test]
fn one_that_begins_late_leaves_out_figures_until_the_next_day() {
    let mut venue = Venue::new();
    venue.order(0, 1, Side::Sell, 100, 5);
    venue.order(0, 2, Side::Buy, 100, 2);
    venue.packets.clear();
    let (mut feed, mut given) = (from_feed(), Given::new());
    let id = InstrumentId(0);
    feed.want(0, Need::Book(id), true);
    feed.want(0, Need::Day(id), true);
    assert_eq!(feed.channels().unwrap().len(), 1);
    venue.order(0, 3, Side::Buy, 90, 1);
    venue.deliver(&mut feed, |_| true);
    feed.on_time(venue.now_ns, venue.now_ns);
    assert!(feed.next_piece().is_none(), "nothing is known before a snapshot");
    venue.now_ns += 200 * MS;
    venue.rotate();
    venue.deliver(&mut feed, |_| true);
    take_all(&mut feed, &mut given);
    assert_eq!(given.market(0).book.levels(usize::MAX, Side::Buy).len(), 1);
    assert_eq!(given.market(0).day.now.map(|day| (day.phase, day.volume)), Some((TradingPhase::Continuous, None)));
    // It has seen no trade before this one.
    venue.order(0, 4, Side::Buy, 100, 1);
    venue.deliver(&mut feed, |_| true);
    feed.published(venue.now_ns, venue.log_index, venue.now_ns);
    take_all(&mut feed, &mut given);
    let day = given.market(0).day.now.unwrap();
    assert_eq!((day.last, day.open, day.volume), (Some(ticks(100)), None, None));
    venue.now_ns += DAY_NS / 2;
    venue.apply(&Command::Venue(VenueCommand::Tick));
    feed.published(venue.now_ns, venue.log_index, venue.now_ns);
    take_all(&mut feed, &mut given);
    assert_eq!(given.market(0).day.now.unwrap().volume, Some(SizeLots::ZERO));
    // Nobody needs it: it is read on for a minute, in which who asks again has it at once.
    let now_ns = venue.now_ns;
    feed.want(now_ns, Need::Book(id), false);
    feed.want(now_ns, Need::Day(id), false);
    feed.want(now_ns + IDLE_NS - 1, Need::Book(id), true);
    assert!(matches!(feed.next_piece(), Some(OwnedPiece::Book { is_snapshot: true, .. })));
    feed.want(now_ns + IDLE_NS, Need::Book(id), false);
    feed.on_time(now_ns + 2 * IDLE_NS, now_ns);
    assert_eq!(feed.channels(), Some(BTreeSet::new()));
}

#[test]
fn updates_and_snapshots_say_that_the_price_band_caused_a_halt() {
    let (mut venue, mut early, mut late) = (Venue::new(), from_feed(), from_feed());
    let rotate = |venue: &mut Venue, feed: &mut FromFeed| {
        for _ in 0..4 {
            venue.now_ns += 100 * MS;
            venue.rotate();
            venue.deliver(feed, |_| true);
        }
    };
    let said = |feed: &mut FromFeed| {
        let mut given = Given::new();
        take_all(feed, &mut given);
        given.market(0).day.now.map(|day| (day.phase, day.phase_cause))
    };
    early.want(0, Need::Day(InstrumentId(0)), true);
    rotate(&mut venue, &mut early);
    assert_eq!(said(&mut early), Some((TradingPhase::Continuous, Some(PhaseCause::Operator))));
    for (order, side, price) in [(1, Side::Sell, 190), (2, Side::Buy, 190), (3, Side::Sell, 300), (4, Side::Buy, 300)] {
        venue.order(0, order, side, price, 1);
    }
    venue.deliver(&mut early, |_| true);
    early.published(venue.now_ns, venue.log_index, venue.now_ns);
    let halted = Some((TradingPhase::Halt, Some(PhaseCause::PriceBand)));
    assert_eq!(said(&mut early), halted);
    late.want(0, Need::Day(InstrumentId(0)), true);
    rotate(&mut venue, &mut late);
    assert_eq!(said(&mut late), halted);
}

#[test]
fn publications_that_nobody_announces_are_not_waited_for() {
    let (mut venue, mut feed, mut given) = (Venue::new(), from_feed(), Given::new());
    want_all(&mut feed, 0);
    venue.now_ns += 200 * MS;
    venue.rotate();
    venue.deliver(&mut feed, |_| true);
    feed.published(venue.now_ns, venue.log_index, venue.now_ns);
    take_all(&mut feed, &mut given);
    given.books = 0;
    venue.order(0, 1, Side::Buy, 90, 1);
    venue.deliver(&mut feed, |_| true);
    let due_ns = feed.wake_ns();
    assert_eq!(due_ns, venue.now_ns + INTERVALS_MAX * EVERY_NS);
    feed.on_time(due_ns - 1, due_ns);
    take_all(&mut feed, &mut given);
    assert_eq!(given.books, 0);
    feed.on_time(due_ns, due_ns);
    take_all(&mut feed, &mut given);
    assert_eq!(given.books, 1);
    // From here on as often as replicas publish.
    venue.now_ns = due_ns;
    venue.order(0, 2, Side::Buy, 91, 1);
    venue.deliver(&mut feed, |_| true);
    assert_eq!(feed.wake_ns(), due_ns + EVERY_NS);
    // Until a replica says again when it publishes.
    feed.published(venue.now_ns, venue.log_index, venue.now_ns);
    take_all(&mut feed, &mut given);
    assert_eq!((given.books, feed.wake_ns()), (2, u64::MAX));
}

#[test]
fn what_comes_after_its_publication_is_given_at_once() {
    let (mut venue, mut feed, mut given) = (Venue::new(), from_feed(), Given::new());
    want_all(&mut feed, 0);
    venue.now_ns += 200 * MS;
    venue.rotate();
    venue.deliver(&mut feed, |_| true);
    take_all(&mut feed, &mut given);
    given.books = 0;
    venue.order(0, 1, Side::Buy, 90, 1);
    feed.published(venue.now_ns, venue.log_index, venue.now_ns);
    venue.order(0, 2, Side::Buy, 91, 1);
    venue.deliver(&mut feed, |_| true);
    take_all(&mut feed, &mut given);
    assert_eq!((given.books, given.market(0).book.levels(usize::MAX, Side::Buy).len()), (1, 1), "the second one waits");
}

#[test]
fn blocks_of_a_batch_market_come_with_its_name() {
    let (mut venue, mut feed) = (Venue::new(), from_feed());
    let market = BatchMarketId(0);
    let say = |venue: &mut Venue, feed: &mut FromFeed, events: &[Event], prices: &[Option<BatchPrice>]| {
        venue.log_index += 1;
        venue.publisher.begin(LogIndex(venue.log_index), TimeNs(venue.now_ns)).unwrap();
        for event in events {
            venue.publisher.on_event(event).unwrap();
            if matches!(event, Event::Batch(BatchEvent::Cleared(_))) {
                venue.publisher.on_prices(market, prices).unwrap();
            }
        }
        venue.publisher.end();
        venue.sender.publish(&mut venue.publisher, venue.now_ns, venue.now_ns, &mut venue.packets);
        venue.deliver(feed, |_| true);
    };
    let cleared = |block| {
        Event::Batch(BatchEvent::Cleared(BlockCleared {
            market,
            block,
            transactions: 1,
            pairs: 1,
            offers_traded: 2,
            gap_ppb: 3,
            unserved_ppb: 4,
            set_aside: 5,
            state_root: [6; 32],
        }))
    };
    let created = Event::BatchMarket(BatchMarketEvent::Created(BatchMarketSpec {
        market,
        symbol: Symbol::new("MAIN").unwrap(),
        commission: Commission::new(15).unwrap(),
        mu: Mu::new(10).unwrap(),
        lower_bounds: LowerBounds::BestEffort,
        quality: QualityMax::NONE,
        intake: Intake::Filter,
        interval_ns: 1_000 * MS,
        transactions_max: 100,
        domain: [3; 32],
    }));
    let added = |asset| Event::BatchMarket(BatchMarketEvent::AssetAdded(BatchAssetAdded { market, asset }));
    let phased = |phase| Event::BatchMarket(BatchMarketEvent::PhaseChanged(BatchPhaseChanged { market, phase }));
    let timed = |interval_ns| Event::BatchMarket(BatchMarketEvent::IntervalChanged(BatchIntervalChanged { market, interval_ns }));
    let terms = |phase, ms: u64| Some(OwnedPiece::BatchTerms(market, BatchTerms { phase, interval_ns: ms * MS }));
    let listed = |assets: &[u32]| {
        let assets = assets.iter().copied().map(AssetId).collect();
        Some(vec![BatchMarket { market, name: "main".to_owned(), assets }])
    };
    say(&mut venue, &mut feed, &[created, added(AssetId(1)), added(AssetId(0))], &[]);
    assert_eq!(feed.new_batches(), None, "its first message may not be its first");
    venue.now_ns += 200 * MS;
    venue.rotate();
    venue.deliver(&mut feed, |_| true);
    assert_eq!((feed.new_batches(), feed.new_batches()), (listed(&[1, 0]), None));
    feed.want(0, Need::Batch(market), true);
    let none = Block { market, cleared: None, time: TimeNs(0), assets: Vec::new() };
    assert_eq!(feed.next_piece(), terms(BatchPhase::Closed, 1_000));
    assert_eq!(feed.next_piece(), Some(OwnedPiece::Block(none)));
    say(&mut venue, &mut feed, &[phased(BatchPhase::Open)], &[]);
    assert_eq!(feed.next_piece(), None, "it is not published");
    let of_open = venue.log_index;
    say(&mut venue, &mut feed, &[timed(250 * MS)], &[]);
    feed.published(venue.now_ns, of_open, venue.now_ns);
    assert_eq!(feed.next_piece(), terms(BatchPhase::Open, 1_000));
    assert_eq!(feed.next_piece(), None, "the interval's change is not published");
    feed.published(venue.now_ns, venue.log_index, venue.now_ns);
    assert_eq!(feed.next_piece(), terms(BatchPhase::Open, 250));
    let price = BatchPrice::ONE;
    say(&mut venue, &mut feed, &[cleared(1)], &[Some(price), None]);
    assert_eq!(feed.next_piece(), None, "it is not published");
    feed.published(venue.now_ns, venue.log_index, venue.now_ns);
    let assets = vec![(AssetId(1), Some(price), 0), (AssetId(0), None, 0)];
    let said = BatchCleared {
        block: 1,
        transactions: 1,
        pairs: 1,
        offers_traded: 2,
        gap_ppb: 3,
        unserved_ppb: 4,
        set_aside: 5,
        state_root: [6; 32],
    };
    let block = Block { market, cleared: Some(said), time: TimeNs(venue.now_ns), assets };
    assert_eq!(feed.next_piece(), Some(OwnedPiece::Block(block.clone())));
    // Who asks later is given the last one.
    feed.want(0, Need::Batch(market), false);
    feed.want(0, Need::Batch(market), true);
    assert_eq!(feed.next_piece(), terms(BatchPhase::Open, 250));
    assert_eq!(feed.next_piece(), Some(OwnedPiece::Block(block)));
    // One more asset.
    say(&mut venue, &mut feed, &[added(AssetId(2))], &[]);
    assert_eq!((feed.new_batches(), feed.next_piece()), (listed(&[1, 0, 2]), None));
}

#[test]
fn a_book_by_order_begins_with_a_snapshot_and_has_a_channel_of_its_own() {
    let (mut venue, mut feed, mut given) = (Venue::new(), from_feed(), Given::new());
    let id = InstrumentId(1);
    venue.order(1, 1, Side::Buy, 90, 5);
    venue.order(1, 2, Side::Buy, 90, 6);
    venue.packets.clear();
    feed.want(0, Need::Orders(id), true);
    assert_eq!(feed.channels(), Some(BTreeSet::from([ChannelId::instrument(View::Orders, id).get()])));
    venue.now_ns += 200 * MS;
    venue.rotate();
    venue.deliver(&mut feed, |_| true);
    take_all(&mut feed, &mut given);
    assert_eq!(both(&given.market(1).orders), venue.displayed(1).each_ref().map(Vec::as_slice));
    // One who is gone for a while has what was published last, and then what was published since.
    let now_ns = venue.now_ns;
    feed.want(now_ns, Need::Orders(id), false);
    let before = venue.displayed(1);
    venue.order(1, 3, Side::Sell, 90, 2);
    venue.deliver(&mut feed, |_| true);
    given.by_order = 0;
    feed.want(now_ns, Need::Orders(id), true);
    take_all(&mut feed, &mut given);
    assert_eq!((given.by_order, given.market(1).orders.of(9, Side::Buy)), (1, &before[0][..]));
    feed.published(venue.now_ns, venue.log_index, venue.now_ns);
    take_all(&mut feed, &mut given);
    let orders = &given.market(1).orders;
    assert_eq!((given.by_order, orders.of(9, Side::Buy), orders.update), (2, &venue.displayed(1)[0][..], venue.log_index));
    // What changes no displayed order is no news.
    venue.phase(1, TradingPhase::Halt);
    venue.deliver(&mut feed, |_| true);
    feed.published(venue.now_ns, venue.log_index, venue.now_ns);
    assert_eq!(feed.next_piece(), None);
    feed.want(now_ns, Need::Orders(id), false);
    feed.on_time(now_ns + IDLE_NS, now_ns);
    assert_eq!(feed.channels(), Some(BTreeSet::new()));
}

/// Packets that are sound but for some bytes.
#[test]
fn no_bytes_make_it_panic() {
    for seed in 0..200 {
        let (mut venue, mut feed, mut given) = (Venue::new(), from_feed(), Given::new());
        let mut random = Random::new(seed);
        want_all(&mut feed, 0);
        venue.now_ns += 200 * MS;
        venue.rotate();
        let sound: Vec<Vec<u8>> = venue.packets.iter().map(|(_, bytes)| bytes.to_vec()).collect();
        venue.deliver(&mut feed, |_| true);
        for _ in 0..20 {
            let mut bytes = sound[usize::try_from(random.below(sound.len() as u64)).unwrap()].clone();
            for _ in 0..1 + random.below(4) {
                let at = usize::try_from(random.below(bytes.len() as u64)).unwrap();
                bytes[at] = random.below(256) as u8;
            }
            if let Some(packet) = Packet::of_own(&bytes) {
                feed.packet(venue.now_ns, &packet);
            }
            feed.published(venue.now_ns, random.next_u64(), random.next_u64());
            take_all(&mut feed, &mut given);
        }
        venue.order(0, 1, Side::Buy, 90, 1);
        for _ in 0..40 {
            venue.now_ns += 50 * MS;
            venue.apply(&Command::Venue(VenueCommand::Tick));
            venue.rotate();
            venue.deliver(&mut feed, |_| true);
            feed.on_time(venue.now_ns, venue.now_ns);
            take_all(&mut feed, &mut given);
        }
    }
}

#[test]
fn packets_of_other_channels_are_not_asked_for() {
    let none = BTreeSet::new();
    let of = |view| ChannelId::instrument(view, InstrumentId(5)).get();
    let (some, by_order) = (BTreeSet::from([of(View::Levels)]), BTreeSet::from([of(View::Orders)]));
    let snapshots = ChannelId::snapshots(View::Levels).get();
    for (channels, channel, expected) in [
        (&none, of(View::Levels), false),
        (&some, of(View::Levels), true),
        (&some, of(View::Orders), false),
        (&some, ChannelId::instrument(View::Levels, InstrumentId(6)).get(), false),
        (&none, snapshots, false),
        (&some, snapshots, true),
        (&some, ChannelId::snapshots(View::Orders).get(), false),
        (&by_order, ChannelId::snapshots(View::Orders).get(), true),
        (&by_order, snapshots, false),
        (&none, ChannelId::batches(BatchMarketId(1)).get(), true),
        (&none, ChannelId::snapshots(View::Batches).get(), true),
        (&some, 0, false),
    ] {
        assert_eq!(is_read(channels, channel), expected, "{channel:#x}");
    }
}
