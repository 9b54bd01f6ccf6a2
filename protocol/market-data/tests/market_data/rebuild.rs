//! What market data rebuilds from events equals what the exchange that emitted them knows, after every command.

use std::collections::BTreeMap;

use proptest::prelude::*;
use walras_market_data::{
    AccountView, Applied, BookChanges, BookFeed, BookLevel, Candle, FeedBook, FillRole, Interval, MarketData, PublicBook,
    PublicBooks, RestoreError,
};
use walras_types::{AccountId, EngineVersion, LogIndex, PriceTicks, Side, SizeLots, TimeNs, TradeId, TradingPhase};
use walras_wire::{Event, InstrumentEvent, OrderEvent, PhaseCause, PhaseChanged};

use crate::model::{Action, INSTRUMENT, Model, Show, spec};

const ACCOUNTS: u32 = 3;

fn action() -> impl Strategy<Value = Action> {
    let side = prop_oneof![Just(Side::Buy), Just(Side::Sell)];
    let show = prop_oneof![3 => Just(Show::Full), 2 => (1u64..6).prop_map(Show::Iceberg), 1 => Just(Show::Hidden)];
    let new = (0..ACCOUNTS, side, 95i64..106, 1u64..25, show, prop::bool::weighted(0.2), prop::option::weighted(0.15, 95i64..106))
        .prop_map(|(account, side, price, size, show, ioc, trigger)| Action::New {
            account,
            side,
            price,
            size,
            show,
            ioc,
            trigger,
        });
    let phase = prop_oneof![Just(TradingPhase::Continuous), Just(TradingPhase::OpeningAuction)];
    prop_oneof![
        12 => new,
        2 => (0usize..64).prop_map(|nth| Action::Cancel { nth }),
        4 => (0usize..64, prop::option::of(95i64..106), prop::option::of(1u64..25))
            .prop_map(|(nth, price, size)| Action::Amend { nth, price, size }),
        1 => (0..ACCOUNTS).prop_map(|account| Action::MassCancel { account }),
        2 => phase.prop_map(Action::Phase),
    ]
}

/// A venue's market data with a reader of its events, one of its book's feed and one of each account.
struct Watched {
    market: MarketData,
    books: PublicBooks,
    feed: BookFeed,
    reader: FeedBook,
    views: Vec<AccountView>,
}

impl Watched {
    fn new() -> Self {
        let mut market = MarketData::new();
        let mut books = PublicBooks::new();
        market.on_event(LogIndex(1), TimeNs(1), &Event::Instrument(InstrumentEvent::Created(spec()))).unwrap();
        books.on_event(LogIndex(1), &Event::Instrument(InstrumentEvent::Created(spec()))).unwrap();
        Self {
            market,
            books,
            feed: BookFeed::default(),
            reader: FeedBook::new(INSTRUMENT),
            views: (0..ACCOUNTS).map(|_| AccountView::default()).collect(),
        }
    }

    fn book(&self) -> &PublicBook {
        self.books.book(INSTRUMENT).unwrap()
    }

    /// What every price shows.
    fn shown(&self) -> BTreeMap<(Side, PriceTicks), BookLevel> {
        let levels = |side| self.book().levels(side).map(move |level| ((side, level.price), level));
        Side::BOTH.into_iter().flat_map(levels).collect()
    }

    fn on_entry(&mut self, log_index: u64, time: TimeNs, events: &[Event]) {
        let mut deltas = Vec::new();
        let before = self.shown();
        for event in events {
            self.market.on_event(LogIndex(log_index), time, event).unwrap();
            if let Event::Order(OrderEvent::Replenished(e)) = event {
                let owner = self.book().owner(e.order_id);
                let mut reported = Vec::new();
                self.market.private_deltas(event, &mut reported);
                assert_eq!(reported.iter().map(|&(account, _)| account).collect::<Vec<_>>(), Vec::from_iter(owner));
            }
            self.books.on_event(LogIndex(log_index), event).unwrap();
            let before = deltas.len();
            self.market.private_deltas(event, &mut deltas);
            let notified: Vec<AccountId> = deltas[before..].iter().map(|&(account, _)| account).collect();
            for account in &notified {
                let named = event.accounts().contains(&Some(*account));
                assert!(named || matches!(event, Event::Order(OrderEvent::Replenished(_))), "{event:?} reported to {account}");
            }
        }
        for (account, delta) in deltas {
            self.views[account.0 as usize].apply(&delta);
        }
        // As an engine says.
        let after = self.shown();
        for &(side, price) in before.keys().chain(after.keys()) {
            if before.get(&(side, price)) != after.get(&(side, price)) {
                self.market.on_changed_level(INSTRUMENT, side, price).unwrap();
            }
        }
    }

    fn flush(&mut self) {
        let book = self.books.book(INSTRUMENT).unwrap();
        let market_feed = self.market.instrument_mut(INSTRUMENT).unwrap();
        let mut changes = Vec::new();
        let taken = market_feed.changed_levels().take(|side, price| book.level(side, price), &mut changes);
        assert_eq!(taken, BookChanges::Levels);
        let first = self.reader.log_index().is_none();
        let levels = Side::BOTH.map(|side| book.levels(side).collect());
        let message = if first { self.feed.snapshot(market_feed, levels) } else { self.feed.update(market_feed, &changes) };
        let applied = self.reader.apply(&message).unwrap();
        assert_eq!(applied, if first { Applied::Snapshot } else { Applied::Update });
    }

    /// Snapshots of what the venue publishes from, and of the reader's books.
    fn saved(&self) -> [Vec<u8>; 2] {
        let [mut market, mut books] = [const { Vec::new() }; 2];
        self.market.snapshot(&mut market);
        self.books.snapshot(&mut books);
        [market, books]
    }

    fn check(&self, model: &Model) {
        self.market.check_invariants();
        self.books.check_invariants();
        let (feed, book) = (self.market.instrument(INSTRUMENT).unwrap(), self.book());
        for side in Side::BOTH {
            let shown: BTreeMap<i64, (u64, u32)> =
                book.levels(side).map(|l| (l.price.get(), (l.shown.get(), l.order_count))).collect();
            assert_eq!(shown, model.depth(side), "{side:?}");
            assert_eq!(book.best(side), book.levels(side).next());
        }
        let queue: Vec<_> = book.orders().iter().map(|o| (o.order_id.0, o.side, o.price.get(), o.shown.get())).collect();
        assert_eq!(queue, model.queue());
        for (account, view) in (0..).zip(&self.views) {
            let open: BTreeMap<_, _> =
                view.open_orders().map(|o| (o.order_id.0, (o.price.map(|p| p.get()), o.open.get(), o.shown.get()))).collect();
            assert_eq!(open, model.account(account), "account {account}");
        }
        let tape: Vec<_> = feed.tape().iter().map(|t| (t.trade_id.0, t.price.get(), t.size.get(), t.taker_side)).collect();
        let trades: Vec<_> = model.trades.iter().map(|t| (t.id, t.price, t.size, t.taker_side)).collect();
        assert_eq!(tape, trades);
    }

    fn reader_agrees(&self) {
        for side in Side::BOTH {
            assert!(self.reader.levels(side).eq(self.book().levels(side)), "{side:?}");
        }
    }
}

/// Candles computed from the whole tape.
fn naive_candles(market: &MarketData, interval: Interval) -> Vec<Candle> {
    let mut candles: BTreeMap<u64, Candle> = BTreeMap::new();
    for trade in market.instrument(INSTRUMENT).unwrap().tape().iter() {
        let start_s = trade.time.0 / 1_000_000_000 / interval.seconds() * interval.seconds();
        let one = Candle {
            start_s,
            open: trade.price,
            high: trade.price,
            low: trade.price,
            close: trade.price,
            volume: SizeLots::ZERO,
            trade_count: 0,
            tick_lots: 0,
            bought: SizeLots::ZERO,
            bought_tick_lots: 0,
        };
        let candle = candles.entry(start_s).or_insert(one);
        candle.high = candle.high.max(trade.price);
        candle.low = candle.low.min(trade.price);
        candle.close = trade.price;
        candle.volume += trade.size;
        candle.trade_count += 1;
        let tick_lots = u128::from(trade.price.get().unsigned_abs()) * u128::from(trade.size.get());
        candle.tick_lots += tick_lots;
        if trade.taker_side == Some(Side::Buy) {
            candle.bought += trade.size;
            candle.bought_tick_lots += tick_lots;
        }
    }
    candles.into_values().collect()
}

const DAY_NS: u64 = 86_400_000_000_000;

/// What the trades since 00:00 UTC of `now` were worth, from the whole tape.
fn naive_day_tick_lots(market: &MarketData, now: TimeNs) -> u128 {
    let day = |time: TimeNs| time.0 / DAY_NS;
    let today = market.instrument(INSTRUMENT).unwrap().tape().iter().filter(|trade| day(trade.time) == day(now));
    today.map(|trade| u128::from(trade.price.get().unsigned_abs()) * u128::from(trade.size.get())).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rebuilt_from_events_equals_the_exchange(
        actions in prop::collection::vec((action(), 0u64..40_000_000_000, prop::bool::ANY), 1..120),
        cut in 0usize..120,
    ) {
        let mut model = Model::new();
        let mut watched = Watched::new();
        let mut restored: Option<(MarketData, PublicBooks)> = None;
        // Twenty minutes before the end of a UTC day.
        let mut time = TimeNs(85_200_000_000_000);
        for (k, &(action, step_ns, flush)) in actions.iter().enumerate() {
            let log_index = k as u64 + 2;
            time = TimeNs(time.0 + step_ns);
            let events = model.act(log_index, action);
            watched.on_entry(log_index, time, &events);
            watched.check(&model);
            let day_tick_lots = watched.market.instrument(INSTRUMENT).unwrap().day_tick_lots(time);
            prop_assert_eq!(day_tick_lots, naive_day_tick_lots(&watched.market, time));
            let feed = watched.market.instrument(INSTRUMENT).unwrap();
            let before_today = feed.tape().newest_first(None).find(|trade| trade.time.0 / DAY_NS < time.0 / DAY_NS);
            prop_assert_eq!(feed.previous_close(time), before_today.map(|trade| trade.price));
            if flush {
                watched.flush();
                watched.reader_agrees();
            }
            if let Some((market, books)) = &mut restored {
                for event in &events {
                    market.on_event(LogIndex(log_index), time, event).unwrap();
                    books.on_event(LogIndex(log_index), event).unwrap();
                }
            }
            if k == cut {
                let [market, books] = watched.saved();
                restored = Some((MarketData::restore(&market).unwrap(), PublicBooks::restore(&books).unwrap()));
            }
        }
        for interval in Interval::ALL {
            let kept: Vec<Candle> = watched.market.instrument(INSTRUMENT).unwrap().candles().iter(interval).copied().collect();
            prop_assert_eq!(kept, naive_candles(&watched.market, interval));
        }
        if let Some((market, books)) = restored {
            let [mut a, mut b] = [const { Vec::new() }; 2];
            market.snapshot(&mut a);
            books.snapshot(&mut b);
            prop_assert_eq!(watched.saved(), [a, b]);
        }
    }

    #[test]
    fn a_damaged_snapshot_is_refused_or_means_one_state(
        actions in prop::collection::vec(action(), 1..40),
        at in 0.0f64..1.0,
        flip in 1u8..=255,
        cut in prop::bool::ANY,
    ) {
        let mut model = Model::new();
        let mut watched = Watched::new();
        for (log_index, action) in (2..).zip(actions) {
            let events = model.act(log_index, action);
            watched.on_entry(log_index, TimeNs(log_index), &events);
        }
        for mut bytes in watched.saved() {
            let at = ((bytes.len() - 1) as f64 * at) as usize;
            if cut {
                bytes.truncate(at);
            } else {
                bytes[at] ^= flip;
            }
            let mut again = Vec::new();
            if let Ok(market) = MarketData::restore(&bytes) {
                market.check_invariants();
                market.snapshot(&mut again);
            } else if let Ok(books) = PublicBooks::restore(&bytes) {
                books.check_invariants();
                books.snapshot(&mut again);
            } else {
                continue;
            }
            prop_assert!(!cut);
            // What the version before wrote is written again in this one's form.
            if again[7] == bytes[7] {
                prop_assert_eq!(again, bytes);
            }
        }
    }
}

/// A snapshot of another version and bytes that are not a snapshot are refused with different errors.
#[test]
fn a_snapshot_of_another_version_is_reported_as_such() {
    let [mut bytes, books] = Watched::new().saved();
    assert_eq!(MarketData::restore(&books).unwrap_err(), RestoreError::NotASnapshot);
    bytes[7] = 1;
    let refused = MarketData::restore(&bytes).unwrap_err();
    assert_eq!(refused, RestoreError::Version { got: 1, expected: 8 });
    assert!(refused.to_string().contains("version 1"), "{refused}");
}

/// A snapshot keeps why an instrument is in its phase. Of one in the form before, the cause is known where it follows from the phase.
#[test]
fn the_cause_of_a_phase_is_kept() {
    let mut market = Watched::new().market;
    let said = |market: &MarketData| {
        let ticker = market.instrument(INSTRUMENT).unwrap().ticker();
        (ticker.phase, ticker.phase_cause)
    };
    let restored = |market: &MarketData, version: u16| {
        let mut bytes = Vec::new();
        market.snapshot_under(EngineVersion(version), &mut bytes);
        said(&MarketData::restore(&bytes).unwrap())
    };
    assert_eq!(said(&market), (TradingPhase::Closed, Some(PhaseCause::Operator)));
    for (log_index, phase, cause, before) in [
        (2, TradingPhase::Continuous, PhaseCause::Operator, Some(PhaseCause::Operator)),
        (3, TradingPhase::Halt, PhaseCause::PriceBand, None),
        (4, TradingPhase::Continuous, PhaseCause::Operator, Some(PhaseCause::Operator)),
        (5, TradingPhase::Halt, PhaseCause::Operator, None),
    ] {
        let changed = PhaseChanged { instrument: INSTRUMENT, phase, cause };
        let event = Event::Instrument(InstrumentEvent::PhaseChanged(changed));
        market.on_event(LogIndex(log_index), TimeNs(log_index), &event).unwrap();
        assert_eq!([said(&market), restored(&market, 14)], [(phase, Some(cause)); 2]);
        assert_eq!(restored(&market, 13), (phase, before));
    }
}

/// A lost event is noticed, not papered over.
#[test]
fn a_lost_event_is_noticed() {
    let new = |account, side, price, size| Action::New { account, side, price, size, show: Show::Full, ioc: false, trigger: None };
    let mut model = Model::new();
    let mut watched = Watched::new();
    let lost = model.act(2, new(0, Side::Sell, 100, 5));
    assert_eq!(lost.len(), 1);
    let events = model.act(3, new(1, Side::Buy, 100, 3));
    let errors: Vec<_> = events.iter().filter_map(|event| watched.books.on_event(LogIndex(3), event).err()).collect();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].to_string().contains("rebuild"), "{}", errors[0]);
    // Entries in the past change nothing.
    let before = watched.book().orders();
    watched.books.on_event(LogIndex(2), &lost[0]).unwrap_err();
    assert_eq!(watched.book().orders(), before);
    watched.market.on_event(LogIndex(3), TimeNs(3), &events[0]).unwrap();
    watched.market.on_event(LogIndex(2), TimeNs(2), &lost[0]).unwrap_err();
}

/// Maker, taker and auction fills are reported to the right accounts.
#[test]
fn fills_say_their_part() {
    let new = |account, side, size| Action::New { account, side, price: 100, size, show: Show::Full, ioc: false, trigger: None };
    let mut model = Model::new();
    let mut watched = Watched::new();
    let actions = [
        new(0, Side::Sell, 5),
        new(1, Side::Buy, 2),
        Action::Phase(TradingPhase::OpeningAuction),
        new(1, Side::Buy, 2),
        Action::Phase(TradingPhase::Continuous),
    ];
    let mut fills = Vec::new();
    for (log_index, action) in (2..).zip(actions) {
        for event in model.act(log_index, action) {
            watched.market.on_event(LogIndex(log_index), TimeNs(log_index), &event).unwrap();
            let mut deltas = Vec::new();
            watched.market.private_deltas(&event, &mut deltas);
            fills.extend(deltas.into_iter().filter_map(|(account, delta)| match delta {
                walras_market_data::AccountDelta::Filled(f) => Some((account.0, f.side, f.role, f.open.get(), f.trade_id)),
                _ => None,
            }));
        }
    }
    assert_eq!(
        fills,
        [
            (0, Side::Sell, FillRole::Maker, 3, TradeId(1)),
            (1, Side::Buy, FillRole::Taker, 0, TradeId(1)),
            (1, Side::Buy, FillRole::Auction, 0, TradeId(2)),
            (0, Side::Sell, FillRole::Auction, 1, TradeId(2)),
        ]
    );
    assert_eq!(watched.market.trade_count(), 2);
}
