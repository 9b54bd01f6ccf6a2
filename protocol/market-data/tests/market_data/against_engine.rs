//! What readers rebuild from the engine's events, and from a feed of the levels that it says changed, equals the engine's own book
//! and open orders after every command.

use std::collections::BTreeMap;

use proptest::prelude::*;
use walras_engine::{DepthLevel, DisplayedOrder, Engine};
use walras_market_data::{
    AccountDelta, AccountRecord, AccountView, BookChanges, BookFeed, BookLevel, EndedOrder, FeedBook, MarketData, OrderEnd,
    OrderHistories, OrderHistory, OrderView, PublicBooks, PublicOrder, RecordId,
};
use walras_types::{
    AccountId, Allocation, Amendment, Amount, AssetId, ClientOrderId, Display, FeeSchedule, InstrumentId, InstrumentSpec, LogIndex,
    OrderId, OrderTerms, OrderType, PostOnly, PriceTicks, RiskLimits, SelfTrade, Side, SizeLots, Symbol, TimeInForce, TimeNs,
    TradingPhase, Trail, TransferId,
};
use walras_wire::{
    AccountCommand, AccountStatus, AmendOrder, AssetSpec, CancelOrder, Command, Event, InstrumentCommand, MassCancel, NewOrder,
    OrderCommand, OrderEvent, SetAccountStatus, SetTradingPhase, Transfer, VenueCommand,
};

const INSTRUMENT: InstrumentId = InstrumentId(0);
const ACCOUNTS: u32 = 3;

fn ticks(n: i64) -> PriceTicks {
    PriceTicks::new(n).unwrap()
}

fn lots(n: u64) -> SizeLots {
    SizeLots::new(n)
}

/// An engine, the market data that listens to it, and readers of both.
struct Venue {
    engine: Engine,
    market: MarketData,
    /// Of the events alone.
    books: PublicBooks,
    /// Of the levels that are said to have changed.
    feed: BookFeed,
    reader: FeedBook,
    views: Vec<AccountView>,
    histories: OrderHistories,
    /// What each order that ever was asked, when, and what it traded: the naive model of histories.
    pasts: BTreeMap<u64, OrderHistory>,
    /// The terms of each order that is or was open, with its amendments.
    terms: BTreeMap<OrderId, OrderTerms>,
    /// The orders that have ended, as their records say.
    ended: BTreeMap<OrderId, EndedOrder>,
    last_record: RecordId,
    time: TimeNs,
}

impl Venue {
    fn new(allocation: Allocation, band_ppm: u32) -> Self {
        let mut venue = Self {
            engine: Engine::new(),
            market: MarketData::new(),
            books: PublicBooks::new(),
            feed: BookFeed::default(),
            reader: FeedBook::new(INSTRUMENT),
            views: (0..ACCOUNTS).map(|_| AccountView::default()).collect(),
            histories: OrderHistories::default(),
            pasts: BTreeMap::new(),
            terms: BTreeMap::new(),
            ended: BTreeMap::new(),
            last_record: RecordId::default(),
            time: TimeNs(1_000),
        };
        for (asset, symbol) in [(0, "BTC"), (1, "USD")] {
            let spec = AssetSpec { asset: AssetId(asset), symbol: Symbol::new(symbol).unwrap(), decimals: 2 };
            venue.apply(&Command::Venue(VenueCommand::CreateAsset(spec)));
        }
        venue.apply(&Command::Instrument(InstrumentCommand::Create(InstrumentSpec {
            instrument: INSTRUMENT,
            symbol: Symbol::new("BTC/USD").unwrap(),
            base: AssetId(0),
            quote: AssetId(1),
            lot_units: 1,
            tick_value_units: 1,
            allocation,
            fees: FeeSchedule { maker_ppm: -100, taker_ppm: 300 },
            collar_ppm: 1_000_000,
            band_ppm,
            reference_price: ticks(100),
            default_limits: RiskLimits::NONE,
        })));
        for account in (0..ACCOUNTS).map(AccountId) {
            venue.apply(&Command::Account(AccountCommand::Create(account)));
            for asset in 0..2 {
                let amount = Amount::new(1 << 40).unwrap();
                let transfer_id = TransferId(u64::from(asset) + 1);
                venue.apply(&Command::Account(AccountCommand::Deposit(Transfer {
                    account,
                    asset: AssetId(asset),
                    amount,
                    transfer_id,
                })));
            }
        }
        venue.phase(TradingPhase::Continuous);
        venue
    }

    fn phase(&mut self, phase: TradingPhase) {
        self.apply(&Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase { instrument: INSTRUMENT, phase })));
    }

    fn apply(&mut self, command: &Command) {
        let log_index = self.engine.last_applied().next();
        let mut events = Vec::new();
        self.engine.apply(log_index, self.time, command, &mut events);
        self.remember(log_index, command, &events);
        self.listen(log_index, command, &events);
        self.publish();
        self.compare(command, &events);
    }

    fn remember(&mut self, log_index: LogIndex, command: &Command, events: &[Event]) {
        if let Command::Order(OrderCommand::New(new)) = command {
            let past =
                OrderHistory { size: new.terms.size, entered: self.time, filled: SizeLots::ZERO, filled_tick_lots: 0, about: None };
            self.pasts.insert(log_index.0, past);
        }
        for event in events {
            match (event, command) {
                (Event::Order(OrderEvent::Accepted(e)), Command::Order(OrderCommand::New(new))) => {
                    self.terms.insert(e.order_id, new.terms);
                }
                (Event::Order(OrderEvent::Amended(e)), Command::Order(OrderCommand::Amend(amend))) => {
                    let terms = self.terms.get_mut(&e.order_id).unwrap();
                    *terms = terms.amended(&amend.amendment);
                }
                _ => {}
            }
            let Event::Order(OrderEvent::Traded(trade)) = event else { continue };
            for id in [trade.maker.order_id, trade.taker.order_id] {
                let past = self.pasts.get_mut(&id.0).unwrap();
                past.filled += trade.size;
                past.filled_tick_lots += u128::try_from(trade.price.get()).unwrap() * u128::from(trade.size.get());
            }
        }
    }

    fn listen(&mut self, log_index: LogIndex, command: &Command, events: &[Event]) {
        self.market.on_entry(log_index, self.time).unwrap();
        self.books.on_entry(log_index).unwrap();
        let mut deltas = Vec::new();
        for event in events {
            self.market.on_event(log_index, self.time, event).unwrap_or_else(|error| panic!("{error}: {events:#?}"));
            self.books.on_event(log_index, event).unwrap_or_else(|error| panic!("{error}: {events:#?}"));
            self.market.private_deltas(event, &mut deltas);
        }
        self.record(log_index, command, events, &deltas);
        for level in self.engine.changed_levels() {
            self.market.on_changed_level(level.instrument, level.side, level.price).unwrap();
        }
        for (account, delta) in deltas {
            self.views[account.0 as usize].apply(&delta);
        }
    }

    /// What the entry records of accounts: the same fills as their readers hear of, and each order that ended, once.
    fn record(&mut self, log_index: LogIndex, command: &Command, events: &[Event], deltas: &[(AccountId, AccountDelta)]) {
        let mut records = Vec::new();
        self.histories.on_entry(log_index, self.time, Some(command), events, &mut records);
        let mut fills = Vec::new();
        for recorded in records {
            assert!(recorded.id > self.last_record && recorded.id.log_index == log_index);
            self.last_record = recorded.id;
            match recorded.record {
                AccountRecord::Fill(fill) => fills.push((recorded.account, fill)),
                AccountRecord::Ended(ended) => {
                    let past = self.pasts[&ended.order_id.0];
                    let as_said = (past.size, past.entered, past.filled, past.filled_tick_lots, Some(self.terms[&ended.order_id]));
                    assert_eq!(
                        (ended.size, ended.entered, ended.filled, ended.filled_tick_lots, ended.terms),
                        as_said,
                        "{events:#?}"
                    );
                    assert_eq!((ended.ended, ended.side), (self.time, self.terms[&ended.order_id].side));
                    let cancels = events
                        .iter()
                        .any(|event| matches!(event, Event::Order(OrderEvent::Cancelled(e)) if e.order_id == ended.order_id));
                    assert_eq!(matches!(ended.end, OrderEnd::Cancelled(_)), cancels, "{ended:?} by {events:#?}");
                    assert_eq!(self.ended.insert(ended.order_id, ended), None, "an order ends once");
                }
            }
        }
        let filled = |(account, delta): &(AccountId, AccountDelta)| match delta {
            AccountDelta::Filled(fill) => Some((*account, *fill)),
            _ => None,
        };
        assert_eq!(fills, deltas.iter().filter_map(filled).collect::<Vec<_>>());
    }

    /// Sends what changed now and then, as a node does.
    fn publish(&mut self) {
        let Some(market) = self.market.instrument_mut(INSTRUMENT) else { return };
        if !self.engine.last_applied().0.is_multiple_of(3) {
            return;
        }
        let level = |level: DepthLevel| BookLevel { price: level.price, shown: level.shown, order_count: level.order_count };
        let mut changes = Vec::new();
        let now = |side, price| self.engine.level(INSTRUMENT, side, price).map(level);
        assert_eq!(market.changed_levels().take(now, &mut changes), BookChanges::Levels);
        let depth = Side::BOTH.map(|side| {
            let mut depth = Vec::new();
            self.engine.depth(INSTRUMENT, side, usize::MAX, &mut depth);
            depth.into_iter().map(level).collect::<Vec<_>>()
        });
        let message = match self.reader.log_index() {
            None => self.feed.snapshot(market, depth.clone()),
            Some(_) => self.feed.update(market, &changes),
        };
        self.reader.apply(&message).unwrap();
        assert_eq!(Side::BOTH.map(|side| self.reader.levels(side).collect::<Vec<_>>()), depth);
    }

    fn compare(&self, command: &Command, events: &[Event]) {
        self.market.check_invariants();
        self.books.check_invariants();
        let Some((feed, book)) = self.market.instrument(INSTRUMENT).zip(self.books.book(INSTRUMENT)) else { return };
        let view = self.engine.instrument(INSTRUMENT).unwrap();
        assert_eq!((feed.ticker().phase, feed.ticker().last), (view.phase, view.last_price), "{command:?} {events:#?}");
        for side in Side::BOTH {
            let mut depth = Vec::new();
            self.engine.depth(INSTRUMENT, side, usize::MAX, &mut depth);
            let theirs: Vec<_> = depth.iter().map(|l| (l.price, l.shown, l.order_count)).collect();
            let ours: Vec<_> = book.levels(side).map(|l| (l.price, l.shown, l.order_count)).collect();
            assert_eq!(ours, theirs, "{side:?} after {command:?} {events:#?}");
        }
        // By order, and in the order of the queues.
        let mut displayed = Vec::new();
        for side in Side::BOTH {
            let mut orders = Vec::new();
            assert!(!self.engine.displayed_orders(INSTRUMENT, side, usize::MAX, &mut orders), "these are all");
            let public = |order: DisplayedOrder| {
                let DisplayedOrder { order_id, price, shown } = order;
                PublicOrder { order_id, side, price, shown }
            };
            displayed.extend(orders.into_iter().map(public));
        }
        assert_eq!(book.orders(), displayed, "after {command:?} {events:#?}");
        let mut shown_orders = BTreeMap::new();
        let mut histories = BTreeMap::new();
        for (account, view) in (0..).map(AccountId).zip(&self.views) {
            let mut open = Vec::new();
            self.engine.open_orders(account, INSTRUMENT, &mut open);
            histories.extend(open.iter().map(|o| (o.order_id, self.pasts[&o.order_id.0])));
            shown_orders.extend(open.iter().filter(|o| !o.shown.is_zero()).map(|o| (o.order_id, o.shown)));
            let theirs: BTreeMap<_, _> = open.iter().map(|o| (o.order_id, (o.client_order_id, o.price, o.open, o.shown))).collect();
            let summary = |o: &OrderView| (o.order_id, (o.client_order_id, o.price, o.open, o.shown));
            let ours: BTreeMap<_, _> = view.open_orders().map(summary).collect();
            assert_eq!(ours, theirs, "account {account} after {command:?} {events:#?}");
        }
        let ours: BTreeMap<_, _> = book.orders().iter().map(|o| (o.order_id, o.shown)).collect();
        assert_eq!(ours, shown_orders);
        let ours: BTreeMap<_, _> =
            self.histories.iter().map(|(id, history)| (*id, OrderHistory { about: None, ..*history })).collect();
        assert_eq!(ours, histories, "histories after {command:?} {events:#?}");
        for (id, history) in self.histories.iter() {
            assert_eq!(history.about.unwrap().terms, Some(self.terms[id]));
        }
        let over = self.terms.keys().filter(|id| !histories.contains_key(id));
        assert!(over.eq(self.ended.keys()), "all that is not open has ended");
    }
}

fn terms() -> impl Strategy<Value = OrderTerms> {
    let price = || (94i64..107).prop_map(ticks);
    let post_only = prop_oneof![4 => Just(PostOnly::Off), 1 => Just(PostOnly::Reject), 1 => Just(PostOnly::Reprice)];
    let order_type = prop_oneof![
        10 => (price(), post_only).prop_map(|(price, post_only)| OrderType::Limit { price, post_only }),
        1 => Just(OrderType::Market),
        1 => price().prop_map(|trigger| OrderType::Stop { trigger }),
        2 => (price(), price()).prop_map(|(trigger, price)| OrderType::StopLimit { trigger, price }),
        1 => price().prop_map(|trigger| OrderType::TakeProfit { trigger }),
        1 => (price(), price()).prop_map(|(trigger, price)| OrderType::TakeProfitLimit { trigger, price }),
        1 => (1u32..9).prop_map(|ticks| OrderType::TrailingStop { trail: Trail::Ticks(ticks) }),
        1 => (1u32..90_000, price()).prop_map(|(ppm, price)| OrderType::TrailingStopLimit { trail: Trail::Ppm(ppm), price }),
    ];
    let time_in_force = prop_oneof![
        8 => Just(TimeInForce::GoodTillCancel),
        1 => Just(TimeInForce::Day),
        1 => (1_000u64..3_000).prop_map(|until| TimeInForce::GoodTill(TimeNs(until))),
        2 => Just(TimeInForce::ImmediateOrCancel),
        1 => Just(TimeInForce::FillOrKill),
    ];
    let display = prop_oneof![
        3 => Just(Display::Full),
        2 => (1u64..6).prop_map(|peak| Display::Iceberg { peak: lots(peak) }),
        1 => Just(Display::Hidden),
    ];
    let self_trade = prop_oneof![
        Just(SelfTrade::CancelNewest),
        Just(SelfTrade::CancelOldest),
        Just(SelfTrade::CancelBoth),
        Just(SelfTrade::Decrement),
        Just(SelfTrade::Allow),
    ];
    let min_size = prop::option::weighted(0.05, (1u64..6).prop_map(lots));
    let side = prop_oneof![Just(Side::Buy), Just(Side::Sell)];
    (side, 1u64..30, order_type, time_in_force, display, min_size, self_trade).prop_map(
        |(side, size, order_type, time_in_force, display, min_size, self_trade)| OrderTerms {
            side,
            size: lots(size),
            order_type,
            time_in_force,
            display,
            min_size,
            self_trade,
        },
    )
}

fn command() -> impl Strategy<Value = Command> {
    let account = || (0..ACCOUNTS).prop_map(AccountId);
    let name = || (1u64..24).prop_map(ClientOrderId);
    let instrument = INSTRUMENT;
    let phases = [
        TradingPhase::Closed,
        TradingPhase::PreOpen,
        TradingPhase::OpeningAuction,
        TradingPhase::Continuous,
        TradingPhase::Continuous,
        TradingPhase::Continuous,
        TradingPhase::Halt,
        TradingPhase::ClosingAuction,
    ];
    let price = || (94i64..107).prop_map(ticks);
    let size = prop::option::of((1u64..30).prop_map(lots));
    let amend = (account(), name(), prop::option::of(price()), prop::option::weighted(0.2, price()), size);
    prop_oneof![
        24 => (account(), name(), terms()).prop_map(move |(account, client_order_id, terms)| {
            Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms }))
        }),
        3 => (account(), name()).prop_map(move |(account, client_order_id)| {
            Command::Order(OrderCommand::Cancel(CancelOrder { account, instrument, client_order_id }))
        }),
        8 => amend.prop_map(move |(account, client_order_id, price, trigger, size)| {
            Command::Order(OrderCommand::Amend(AmendOrder { account, instrument, amendment: Amendment { client_order_id, price, trigger, size } }))
        }),
        1 => (account(), prop::option::of(prop_oneof![Just(Side::Buy), Just(Side::Sell)]))
            .prop_map(|(account, side)| Command::Order(OrderCommand::MassCancel(MassCancel { account, instrument: None, side }))),
        1 => Just(Command::Venue(VenueCommand::Tick)),
        1 => (account(), prop_oneof![1 => Just(AccountStatus::Suspended), 2 => Just(AccountStatus::Active)])
            .prop_map(|(account, status)| Command::Account(AccountCommand::SetStatus(SetAccountStatus { account, status }))),
        5 => prop::sample::select(phases.to_vec())
            .prop_map(move |phase| Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase { instrument, phase }))),
    ]
}

fn allocation() -> impl Strategy<Value = Allocation> {
    let min_lots = lots(2);
    prop::sample::select(vec![
        Allocation::PriceTime,
        Allocation::ProRata { min_lots },
        Allocation::TopProRata { top_lots_max: lots(5), min_lots },
        Allocation::Split { fifo_percent: 40, min_lots },
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rebuilt_from_events_equals_the_engine(
        allocation in allocation(),
        band_ppm in prop_oneof![Just(1_000_000u32), Just(40_000)],
        commands in prop::collection::vec((command(), 0u64..60), 1..150),
    ) {
        let mut venue = Venue::new(allocation, band_ppm);
        for (command, step_ns) in commands {
            venue.time = TimeNs(venue.time.0 + step_ns);
            venue.apply(&command);
        }
    }
}
