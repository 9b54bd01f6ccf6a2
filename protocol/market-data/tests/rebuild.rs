//! What market data rebuilds from events equals what the exchange that emitted them knows, after every command.
#![allow(clippy::unwrap_used, reason = "a test panics to fail")]

mod model;

use std::collections::BTreeMap;

use model::{Action, INSTRUMENT, Model, Show, spec};
use proptest::prelude::*;
use walras_market_data::{
    AccountView, Applied, BookChanges, BookFeed, Candle, FeedBook, FillRole, Interval, MarketData, concerned,
};
use walras_types::{AccountId, LogIndex, Side, SizeLots, TimeNs, TradeId, TradingPhase};
use walras_wire::Event;

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

/// A venue's market data with a reader of its book and of each account.
struct Watched {
    market: MarketData,
    feed: BookFeed,
    reader: FeedBook,
    views: Vec<AccountView>,
}

impl Watched {
    fn new() -> Self {
        let mut market = MarketData::new();
        market.on_event(LogIndex(1), TimeNs(1), &Event::InstrumentCreated(spec())).unwrap();
        Self {
            market,
            feed: BookFeed::default(),
            reader: FeedBook::new(INSTRUMENT),
            views: (0..ACCOUNTS).map(|_| AccountView::default()).collect(),
        }
    }

    fn on_entry(&mut self, log_index: u64, time: TimeNs, events: &[Event]) {
        let mut deltas = Vec::new();
        for event in events {
            self.market.on_event(LogIndex(log_index), time, event).unwrap();
            let before = deltas.len();
            self.market.private_deltas(event, &mut deltas);
            let told: Vec<AccountId> = deltas[before..].iter().map(|&(account, _)| account).collect();
            for account in &told {
                let named = concerned(event).contains(&Some(*account));
                assert!(named || matches!(event, Event::OrderReplenished(_)), "{event:?} told to {account}");
            }
        }
        for (account, delta) in deltas {
            self.views[account.0 as usize].apply(&delta);
        }
    }

    fn flush(&mut self) {
        let market_feed = self.market.instrument_mut(INSTRUMENT).unwrap();
        let mut changes = Vec::new();
        assert_eq!(market_feed.book_mut().take_changes(&mut changes), BookChanges::Levels);
        let first = self.reader.log_index().is_none();
        let message = if first { self.feed.snapshot(market_feed) } else { self.feed.update(market_feed, &changes) };
        let applied = self.reader.apply(&message).unwrap();
        assert_eq!(applied, if first { Applied::Snapshot } else { Applied::Update });
    }

    fn check(&self, model: &Model) {
        self.market.check_invariants();
        let feed = self.market.instrument(INSTRUMENT).unwrap();
        for side in Side::BOTH {
            let shown: BTreeMap<i64, (u64, u32)> =
                feed.book().levels(side).map(|l| (l.price.get(), (l.shown.get(), l.order_count))).collect();
            assert_eq!(shown, model.depth(side), "{side:?}");
            assert_eq!(feed.book().best(side), feed.book().levels(side).next());
        }
        let queue: Vec<_> = feed.book().orders().iter().map(|o| (o.order_id.0, o.side, o.price.get(), o.shown.get())).collect();
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
        let feed = self.market.instrument(INSTRUMENT).unwrap();
        for side in Side::BOTH {
            assert!(self.reader.levels(side).eq(feed.book().levels(side)), "{side:?}");
        }
    }
}

/// Candles made anew from the whole tape.
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
        };
        let candle = candles.entry(start_s).or_insert(one);
        candle.high = candle.high.max(trade.price);
        candle.low = candle.low.min(trade.price);
        candle.close = trade.price;
        candle.volume += trade.size;
        candle.trade_count += 1;
    }
    candles.into_values().collect()
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
        let mut restored: Option<MarketData> = None;
        let mut time = TimeNs(1_000_000_000);
        for (k, &(action, step_ns, flush)) in actions.iter().enumerate() {
            let log_index = k as u64 + 2;
            time = TimeNs(time.0 + step_ns);
            let events = model.act(log_index, action);
            watched.on_entry(log_index, time, &events);
            watched.check(&model);
            if flush {
                watched.flush();
                watched.reader_agrees();
            }
            if let Some(restored) = &mut restored {
                for event in &events {
                    restored.on_event(LogIndex(log_index), time, event).unwrap();
                }
            }
            if k == cut {
                let mut bytes = Vec::new();
                watched.market.snapshot(&mut bytes);
                restored = Some(MarketData::restore(&bytes).unwrap());
            }
        }
        for interval in Interval::ALL {
            let kept: Vec<Candle> = watched.market.instrument(INSTRUMENT).unwrap().candles().iter(interval).copied().collect();
            prop_assert_eq!(kept, naive_candles(&watched.market, interval));
        }
        if let Some(restored) = restored {
            let (mut a, mut b) = (Vec::new(), Vec::new());
            watched.market.snapshot(&mut a);
            restored.snapshot(&mut b);
            prop_assert_eq!(a, b);
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
        let mut bytes = Vec::new();
        watched.market.snapshot(&mut bytes);
        let at = ((bytes.len() - 1) as f64 * at) as usize;
        if cut {
            bytes.truncate(at);
            prop_assert!(MarketData::restore(&bytes).is_err());
        } else {
            bytes[at] ^= flip;
            if let Ok(market) = MarketData::restore(&bytes) {
                market.check_invariants();
                let mut again = Vec::new();
                market.snapshot(&mut again);
                prop_assert_eq!(again, bytes);
            }
        }
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
    let errors: Vec<_> = events.iter().filter_map(|event| watched.market.on_event(LogIndex(3), TimeNs(3), event).err()).collect();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].to_string().contains("rebuild"), "{}", errors[0]);
    // Entries in the past change nothing.
    let before = watched.market.instrument(INSTRUMENT).unwrap().book().orders();
    watched.market.on_event(LogIndex(2), TimeNs(2), &lost[0]).unwrap_err();
    assert_eq!(watched.market.instrument(INSTRUMENT).unwrap().book().orders(), before);
}

/// Maker, taker and auction fills are told to the right sides.
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
