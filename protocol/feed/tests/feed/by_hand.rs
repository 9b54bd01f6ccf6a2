//! Small pasts whose messages can be checked by reading.

use walras_feed::book::{Book, Content};
use walras_feed::channel::{ChannelId, View};
use walras_feed::message::{
    AssetCleared, AuctionIndicated, BatchClosed, Head, LevelChanged, Message, OrderAdded, OrderCancelled, OrderExecuted,
    OrderReduced, OrderReplaced, Place, TopChanged, Traded,
};
use walras_feed::publisher::{PublishError, Publisher, Views};
use walras_types::{
    AccountId, Allocation, AssetId, BatchMarketId, BatchPrice, ClientOrderId, FeeSchedule, InstrumentId, InstrumentSpec, LogIndex,
    OrderId, PriceTicks, RiskLimits, Side, SizeLots, Symbol, TimeNs, TradeId,
};
use walras_wire::{
    BatchAssetAdded, BatchEvent, BatchMarketCommand, BatchMarketEvent, BatchMarketSpec, CancelReason, Command, Event,
    InstrumentEvent, OrderAccepted, OrderAmended, OrderCancelled as Cancelled, OrderEvent, OrderReplenished, Priority, Resting,
    TradeParty, Traded as Trade,
};

const INSTRUMENT: InstrumentId = InstrumentId(0);

fn ticks(n: i64) -> PriceTicks {
    PriceTicks::new(n).unwrap()
}

fn lots(n: u64) -> SizeLots {
    SizeLots::new(n)
}

fn resting(open: u64, shown: u64) -> Resting {
    Resting { open: lots(open), shown: lots(shown) }
}

fn accepted(order: u64, side: Side, price: i64, size: u64, resting: Resting) -> Event {
    Event::Order(OrderEvent::Accepted(OrderAccepted {
        instrument: INSTRUMENT,
        account: AccountId(1),
        client_order_id: ClientOrderId(order),
        order_id: OrderId(order),
        side,
        size: lots(size),
        price: Some(ticks(price)),
        resting,
    }))
}

fn party(order: u64, open: u64) -> TradeParty {
    TradeParty { account: AccountId(1), client_order_id: ClientOrderId(order), order_id: OrderId(order), open: lots(open), fee: 0 }
}

fn traded(id: u64, price: i64, size: u64, taker_side: Side, maker: TradeParty, taker: TradeParty) -> Event {
    let (instrument, trade_id) = (INSTRUMENT, TradeId(id));
    Event::Order(OrderEvent::Traded(Trade {
        instrument,
        trade_id,
        price: ticks(price),
        size: lots(size),
        taker_side,
        maker,
        taker,
    }))
}

/// A publisher with an instrument, and what it says in each view after each entry.
struct Told {
    publisher: Publisher,
    entry: u64,
}

impl Told {
    fn new() -> Self {
        let mut told = Self { publisher: Publisher::new(Views::ALL), entry: 0 };
        told.entry(&[Event::Instrument(InstrumentEvent::Created(InstrumentSpec {
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
            reference_price: ticks(100),
            default_limits: RiskLimits::NONE,
        }))]);
        told
    }

    fn entry(&mut self, events: &[Event]) -> Vec<(View, u64, Head, Message)> {
        self.entry += 1;
        self.publisher.begin(LogIndex(self.entry), TimeNs(self.entry * 10)).unwrap();
        events.iter().for_each(|event| self.publisher.on_event(event).unwrap());
        self.publisher.end();
        let mut said = Vec::new();
        self.publisher.take(|run| {
            for (number, bytes) in (run.first..).zip(run.messages()) {
                let (head, message) = Message::decode(bytes).unwrap();
                assert_eq!((head.log_index, head.time_ns), (self.entry, self.entry * 10));
                said.push((run.channel.view(), number, head, message));
            }
        });
        for view in View::ALL {
            let of_view: Vec<_> = said.iter().filter(|(of, ..)| *of == view).collect();
            let lasts = of_view.iter().filter(|(_, _, head, _)| head.place == Place::Last).count();
            assert_eq!(lasts, usize::from(!of_view.is_empty()), "one message is the last");
            assert!(of_view.last().is_none_or(|(_, _, head, _)| head.place == Place::Last));
        }
        said
    }

    /// What an entry says in a view.
    fn said(&mut self, view: View, events: &[Event]) -> Vec<Message> {
        self.entry(events).into_iter().filter(|(of, ..)| *of == view).map(|(_, _, _, message)| message).collect()
    }
}

fn added(order: u64, side: Side, price: i64, shown: u64) -> Message {
    OrderAdded { order_id: OrderId(order), side, price: ticks(price), shown: lots(shown) }.into()
}

fn executed(order: u64, trade: u64, shown: u64) -> Message {
    OrderExecuted { order_id: OrderId(order), trade_id: TradeId(trade), shown: lots(shown) }.into()
}

fn print(trade: u64, price: i64, size: u64, taker_side: Option<Side>) -> Message {
    Traded { trade_id: TradeId(trade), price: ticks(price), size: lots(size), taker_side }.into()
}

/// The example of the document.
#[test]
fn an_order_that_takes_and_rests() {
    let mut told = Told::new();
    told.entry(&[accepted(700, Side::Sell, 101, 3, resting(3, 3))]);
    let takes = [accepted(812, Side::Buy, 101, 5, resting(2, 2)), traded(9, 101, 3, Side::Buy, party(700, 0), party(812, 2))];
    let all = told.entry(&takes);
    let of = |view| all.iter().filter(move |(of, ..)| *of == view).map(|(_, _, _, message)| *message).collect::<Vec<_>>();
    let trade = print(9, 101, 3, Some(Side::Buy));
    assert_eq!(of(View::Orders), [trade, executed(700, 9, 0), added(812, Side::Buy, 101, 2)]);
    let level = |side, shown, order_count| LevelChanged { side, price: ticks(101), shown: lots(shown), order_count }.into();
    assert_eq!(of(View::Levels), [trade, level(Side::Buy, 2, 1), level(Side::Sell, 0, 0)]);
    let top = TopChanged {
        bid: Some(ticks(101)),
        bid_shown: lots(2),
        bid_order_count: 1,
        ask: None,
        ask_shown: lots(0),
        ask_order_count: 0,
    };
    assert_eq!(of(View::Top), [trade, top.into()]);
    let numbers: Vec<u64> = all.iter().filter(|(of, ..)| *of == View::Orders).map(|(_, number, ..)| *number).collect();
    assert_eq!(numbers, [3, 4, 5], "after the definition and the ask");
}

/// Nothing says that there is a hidden order, or what an iceberg has in reserve.
#[test]
fn what_is_hidden_is_not_said() {
    let mut told = Told::new();
    assert!(told.entry(&[accepted(1, Side::Sell, 101, 9, resting(9, 0))]).is_empty());
    let iceberg = told.said(View::Orders, &[accepted(2, Side::Sell, 101, 9, resting(9, 4))]);
    assert_eq!(iceberg, [added(2, Side::Sell, 101, 4)]);
    let replenished =
        Event::Order(OrderEvent::Replenished(OrderReplenished { instrument: INSTRUMENT, order_id: OrderId(2), shown: lots(4) }));
    let sweeps = [
        accepted(3, Side::Buy, 101, 6, Resting::default()),
        traded(1, 101, 4, Side::Buy, party(2, 5), party(3, 2)),
        replenished,
        traded(2, 101, 2, Side::Buy, party(1, 7), party(3, 0)),
    ];
    let said = told.said(View::Orders, &sweeps);
    let expected =
        [print(1, 101, 4, Some(Side::Buy)), executed(2, 1, 0), added(2, Side::Sell, 101, 4), print(2, 101, 2, Some(Side::Buy))];
    assert_eq!(said, expected);
    // The level shows what it showed before, so nothing but the trades is said of it.
    let cancelled = |order| {
        Event::Order(OrderEvent::Cancelled(Cancelled {
            instrument: INSTRUMENT,
            account: AccountId(1),
            client_order_id: ClientOrderId(order),
            order_id: OrderId(order),
            open: lots(1),
            reason: CancelReason::Requested,
        }))
    };
    assert!(told.entry(&[cancelled(1)]).is_empty());
    assert_eq!(told.said(View::Orders, &[cancelled(2)]), [OrderCancelled { order_id: OrderId(2) }.into()]);
}

#[test]
fn an_amended_order_keeps_its_place_or_moves() {
    let mut told = Told::new();
    told.entry(&[accepted(1, Side::Buy, 99, 5, resting(5, 5))]);
    let amended = |price, priority, open| {
        Event::Order(OrderEvent::Amended(OrderAmended {
            instrument: INSTRUMENT,
            account: AccountId(1),
            client_order_id: ClientOrderId(1),
            order_id: OrderId(1),
            side: Side::Buy,
            price: Some(ticks(price)),
            priority,
            resting: resting(open, open),
        }))
    };
    let (order_id, said) = (OrderId(1), |told: &mut Told, event| told.said(View::Orders, &[event]));
    assert_eq!(said(&mut told, amended(99, Priority::Kept, 3)), [OrderReduced { order_id, shown: lots(3) }.into()]);
    assert!(said(&mut told, amended(99, Priority::Kept, 3)).is_empty());
    let replaced = |price, shown| Message::from(OrderReplaced { order_id, price: ticks(price), shown: lots(shown) });
    assert_eq!(said(&mut told, amended(99, Priority::Lost, 8)), [replaced(99, 8)]);
    assert_eq!(said(&mut told, amended(98, Priority::Lost, 8)), [replaced(98, 8)]);
}

/// In an uncross both orders of a trade stand, and nobody came in.
#[test]
fn both_orders_of_an_uncross_are_executed() {
    let mut told = Told::new();
    told.entry(&[accepted(1, Side::Buy, 102, 5, resting(5, 5))]);
    told.entry(&[accepted(2, Side::Sell, 100, 3, resting(3, 3))]);
    let said = told.said(View::Orders, &[traded(1, 101, 3, Side::Sell, party(1, 2), party(2, 0))]);
    assert_eq!(said, [print(1, 101, 3, None), executed(1, 1, 2), executed(2, 1, 0)]);
}

#[test]
fn what_does_not_follow_is_reported() {
    let mut told = Told::new();
    let (log_index, unknown) = (LogIndex(2), InstrumentId(1));
    told.publisher.begin(log_index, TimeNs(1)).unwrap();
    let trade = traded(1, 101, 3, Side::Buy, party(1, 2), party(2, 0));
    let missing = told.publisher.on_event(&trade).unwrap_err();
    assert_eq!(missing, PublishError::UnknownOrder { log_index, order_id: OrderId(1) });
    let OrderEvent::Accepted(accepted) = (match accepted(1, Side::Buy, 1, 1, resting(1, 1)) {
        Event::Order(event) => event,
        other => panic!("{other:?}"),
    }) else {
        panic!("it is accepted")
    };
    let elsewhere = Event::Order(OrderEvent::Accepted(OrderAccepted { instrument: unknown, ..accepted }));
    let expected = PublishError::UnknownInstrument { log_index, instrument: unknown };
    assert_eq!(told.publisher.on_event(&elsewhere), Err(expected));
    told.publisher.end();
    assert_eq!(told.publisher.begin(log_index, TimeNs(1)), Err(PublishError::OutOfOrder { last: log_index, got: log_index }));
}

/// A copy refuses what does not follow, and needs a snapshot then.
#[test]
fn a_copy_refuses_what_does_not_follow() {
    let head = Head { place: Place::Last, log_index: 1, time_ns: 1 };
    let book = || {
        let mut book = Book::new(ChannelId::instrument(View::Orders, INSTRUMENT));
        book.apply(&head, &added(1, Side::Buy, 99, 5)).unwrap();
        book
    };
    let refused: [Message; 8] = [
        added(1, Side::Buy, 98, 5),
        added(2, Side::Buy, 98, 0),
        added(2, Side::Buy, 99, u64::MAX),
        executed(2, 1, 1),
        OrderReduced { order_id: OrderId(1), shown: lots(0) }.into(),
        OrderCancelled { order_id: OrderId(2) }.into(),
        OrderReplaced { order_id: OrderId(1), price: ticks(5), shown: lots(0) }.into(),
        LevelChanged { side: Side::Buy, price: ticks(1), shown: lots(1), order_count: 1 }.into(),
    ];
    for message in refused {
        assert!(book().apply(&head, &message).is_err(), "{message:?}");
    }
    let mut levels = Book::new(ChannelId::instrument(View::Levels, INSTRUMENT));
    for (shown, order_count) in [(0, 1), (1, 0)] {
        let wrong = LevelChanged { side: Side::Buy, price: ticks(1), shown: lots(shown), order_count };
        assert!(levels.apply(&head, &wrong.into()).is_err());
    }
}

#[test]
fn blocks_are_published_with_prices_and_volumes() {
    use walras_wire::{BatchClosed as Closed, BlockCleared, OfferTraded};
    let market = BatchMarketId(0);
    let (mut publisher, mut book) = (Publisher::new(Views::ALL), Book::new(ChannelId::batches(market)));
    let mut said = Vec::new();
    let mut entry = |publisher: &mut Publisher, events: &[Event], prices: Option<&[Option<BatchPrice>]>| {
        publisher.begin(publisher.log_index().next(), TimeNs(5)).unwrap();
        events.iter().for_each(|event| publisher.on_event(event).unwrap());
        if let Some(prices) = prices {
            publisher.on_prices(market, prices).unwrap();
        }
        publisher.end();
        said.clear();
        publisher.take(|run| said.extend(run.messages().map(|bytes| Message::decode(bytes).unwrap())));
        said.iter().for_each(|(head, message)| book.apply(head, message).unwrap());
        said.iter().map(|(_, message)| *message).collect::<Vec<_>>()
    };
    let opening = walras_testkit::batch_commands::opening(&mut walras_testkit::Choices::of_seed(1));
    let created = opening.iter().find_map(|command| match command {
        Command::BatchMarket(BatchMarketCommand::Create(spec)) => Some(BatchMarketSpec { market, ..*spec }),
        _ => None,
    });
    let spec = created.unwrap();
    entry(&mut publisher, &[Event::BatchMarket(BatchMarketEvent::Created(spec))], None);
    for asset in [AssetId(7), AssetId(3)] {
        entry(&mut publisher, &[Event::BatchMarket(BatchMarketEvent::AssetAdded(BatchAssetAdded { market, asset }))], None);
    }
    let closed = Closed { market, block: 1, batch_hash: [0; 32], kept: 4, dropped: 1 };
    let said = entry(&mut publisher, &[Event::Batch(BatchEvent::Closed(closed))], None);
    assert_eq!(said, [BatchClosed { block: 1, kept: 4, dropped: 1 }.into()]);
    let amount = |units| walras_types::Amount::new(units).unwrap();
    let sold = |sell, buy, units| {
        Event::Batch(BatchEvent::OfferTraded(OfferTraded {
            market,
            account: AccountId(1),
            sequence: walras_types::TransactionSeq(1),
            sell: AssetId(sell),
            buy: AssetId(buy),
            sold: amount(units),
            bought: amount(1),
            left: amount(0),
        }))
    };
    let cleared = BlockCleared {
        market,
        block: 1,
        transactions: 4,
        pairs: 2,
        offers_traded: 3,
        gap_ppb: 0,
        unserved_ppb: 0,
        set_aside: 0,
        state_root: [9; 32],
    };
    let events = [sold(3, 7, 10), sold(3, 7, 5), sold(7, 3, 2), Event::Batch(BatchEvent::Cleared(cleared))];
    let said = entry(&mut publisher, &events, Some(&[Some(BatchPrice::ONE), None]));
    let assets = [
        AssetCleared { block: 1, asset: AssetId(7), price: Some(BatchPrice::ONE), sold: 2 },
        AssetCleared { block: 1, asset: AssetId(3), price: None, sold: 15 },
    ];
    assert_eq!(said[1..], assets.map(Message::from));
    let Content::Batches(state) = book.content() else { panic!("{book:?}") };
    assert_eq!((state.prices.as_slice(), state.assets.as_slice()), (&assets[..], &[AssetId(7), AssetId(3)][..]));
    // One that joins late has the same from a snapshot.
    let (mut bytes, mut late) = (Vec::new(), Book::new(ChannelId::batches(market)));
    let count = publisher.snapshot(ChannelId::batches(market), &mut bytes).unwrap();
    let messages: Vec<(Head, Message)> =
        walras_feed::publisher::Messages::of(&bytes).map(|bytes| Message::decode(bytes).unwrap()).collect();
    assert_eq!(messages.len() as u64, count);
    messages[1..messages.len() - 1].iter().for_each(|(head, message)| late.apply(head, message).unwrap());
    let Content::Batches(joined) = late.content() else { panic!("{late:?}") };
    assert_eq!(joined, state);
}

#[test]
fn a_copy_does_not_say_whether_an_auction_was_over_before_its_reader_joined() {
    let head = Head { place: Place::Last, log_index: 7, time_ns: 1 };
    let indicated = AuctionIndicated { price: Some(ticks(100)), volume: lots(3), imbalance_lots: -1 };
    let mut book = Book::new(ChannelId::instrument(View::Top, INSTRUMENT));
    book.apply(&head, &indicated.into()).unwrap();
    assert_eq!(book.market().indicated, Some(indicated));
    book.apply(&head, &AuctionIndicated::NOTHING.into()).unwrap();
    assert_eq!(book.market().indicated, None);
}
