//! History as commands of a venue: the engine takes them, and trades as the record says.

use std::collections::BTreeMap;
use std::path::Path;

use walras_engine::Engine;
use walras_market_history::Format;
use walras_replay::plan::Action;
use walras_replay::reconstruct::Steps;
use walras_replay::venue::{VenueOptions, commands, setup};
use walras_replay::{Loaded, Options};
use walras_types::{AccountId, LogIndex, SelfTrade, TimeNs};
use walras_wire::{Command, Event, InstrumentEvent, OrderCommand, OrderEvent};

use crate::find;

#[derive(Debug, Default)]
struct Outcome {
    commands: u64,
    trades: u64,
    lots: u64,
    uncrosses: Vec<(Option<i64>, u64)>,
    rejects: BTreeMap<&'static str, u64>,
    last_time: TimeNs,
}

/// Applies everything; the setup must be taken whole.
fn venue(loaded: &Loaded, options: &VenueOptions) -> Outcome {
    let mut engine = Engine::new();
    let mut outcome = Outcome::default();
    let mut events = Vec::new();
    for command in setup(loaded, options).unwrap() {
        engine.apply(engine.last_applied().next(), options.start, &command, &mut events);
        assert!(!events.iter().any(|event| matches!(event, Event::Rejected(_))), "{command:?}: {events:?}");
        events.clear();
    }
    let mut index: LogIndex = engine.last_applied();
    for (time, command) in commands(loaded, options).unwrap() {
        index = index.next();
        outcome.commands += 1;
        outcome.last_time = time;
        engine.apply(index, time, &command, &mut events);
        for event in events.drain(..) {
            match event {
                Event::Order(OrderEvent::Traded(traded)) => {
                    outcome.trades += 1;
                    outcome.lots += traded.size.get();
                }
                Event::Instrument(InstrumentEvent::Uncrossed(uncrossed)) => {
                    outcome.uncrosses.push((uncrossed.price.map(|price| price.get()), uncrossed.volume.get()))
                }
                Event::Rejected(rejected) => *outcome.rejects.entry(rejected.reason.name()).or_default() += 1,
                _ => {}
            }
        }
    }
    engine.check_invariants();
    outcome
}

fn load(path: &Path) -> Loaded {
    Loaded::open(path, &Options::default(), &mut |_| {}).unwrap()
}

#[test]
fn an_aggressor_is_of_an_account_that_owns_no_maker() {
    // Four makers and an aggressor in a pool of three accounts: some makers share an account, and the aggressor finds a free one or says
    // that it may trade with itself.
    for seed in 0..200u64 {
        let adds: String = (0..4).map(|maker| format!("1.0,1,{},10,100000,1\n", seed * 10 + maker + 1)).collect();
        let fills: String = (0..4).map(|maker| format!("2.0,4,{},10,100000,1\n", seed * 10 + maker + 1)).collect();
        let loaded = Loaded::read((adds + &fills).as_bytes(), Format::Lobster, &Options::default(), &mut |_| {}).unwrap();
        let options = VenueOptions { accounts: 3, ..VenueOptions::new(Format::Lobster) };
        let orders: Vec<_> = commands(&loaded, &options)
            .unwrap()
            .map(|(_, command)| match command {
                Command::Order(OrderCommand::New(order)) => order,
                other => panic!("{other:?}"),
            })
            .collect();
        let [makers @ .., aggressor] = &orders[..] else { panic!("no orders") };
        let free = makers.iter().all(|maker| maker.account != aggressor.account);
        assert_eq!(free, aggressor.terms.self_trade == SelfTrade::CancelNewest);
        assert!(orders.iter().all(|order| order.account < AccountId(3)));
        let outcome = venue(&loaded, &options);
        assert_eq!((outcome.trades, outcome.lots, outcome.rejects.len()), (4, 40, 0));
    }
}

#[test]
fn a_pool_of_one_account_is_refused() {
    let loaded = Loaded::read(&b"1.0,1,1,10,100000,1\n"[..], Format::Lobster, &Options::default(), &mut |_| {}).unwrap();
    let error = setup(&loaded, &VenueOptions { accounts: 1, ..VenueOptions::new(Format::Lobster) }).unwrap_err();
    assert!(error.to_string().contains("give it at least two"), "{error}");
}

#[test]
fn commands_begin_at_the_venues_time_and_never_go_back() {
    let text = "5.0,1,1,10,100000,1\n7.0,1,2,10,100000,1\n6.0,3,1,10,100000,1\n";
    let loaded = Loaded::read(text.as_bytes(), Format::Lobster, &Options::default(), &mut |_| {}).unwrap();
    let options = VenueOptions { start: TimeNs(1_000), ..VenueOptions::new(Format::Lobster) };
    let times: Vec<u64> = commands(&loaded, &options).unwrap().map(|(time, _)| time.0).collect();
    assert_eq!(times, [1_000, 2_000_001_000, 2_000_001_000]);
}

#[test]
fn the_aapl_hour_trades_at_a_venue() {
    let Some(path) = find("lobster/AAPL_2012-06-21_34200000_37800000_message_50.csv") else { return };
    let loaded = load(&path);
    let outcome = venue(&loaded, &VenueOptions::new(Format::Lobster));
    eprintln!("{outcome:?}");
    // Without corrections the 24 executions that are not price-time leave a few orders too many, which then trade in slices.
    let recorded: u64 = Steps::new(&loaded)
        .unwrap()
        .map(|step| match step.unwrap().action {
            Action::Sweep(aggressor) => aggressor.fills.iter().map(|fill| fill.size.get()).sum(),
            _ => 0,
        })
        .sum();
    assert!(outcome.trades.abs_diff(4_067) * 50 <= 4_067, "{outcome:?}");
    assert!(outcome.lots.abs_diff(recorded) * 1_000 <= recorded, "{recorded} lots recorded, {outcome:?}");
    assert!(outcome.rejects.keys().all(|reason| *reason == "UnknownOrder"), "{outcome:?}");
    assert!(outcome.rejects.values().sum::<u64>() <= 15, "{outcome:?}");
    assert!(outcome.last_time.0 < 3_600_000_000_000);
}

#[test]
fn the_shanghai_day_trades_at_a_venue_as_recorded() {
    let Some(path) = find("sse/AX_sbe_sse_600519.zip") else { return };
    let outcome = venue(&load(&path), &VenueOptions::new(Format::Sse));
    eprintln!("{outcome:?}");
    assert_eq!((outcome.trades, outcome.lots), (18_685, 2_432_171));
    assert_eq!(outcome.uncrosses, [(Some(180_808), 42_718), (Some(179_700), 40_203)]);
    assert!(outcome.rejects.is_empty(), "{outcome:?}");
}

#[test]
fn the_bitstamp_morning_trades_at_a_venue_as_in_the_book() {
    let Some(path) = find("bitstamp/2015-05-01.log.xz") else { return };
    let outcome = venue(&load(&path), &VenueOptions::new(Format::BitstampLog));
    eprintln!("{outcome:?}");
    assert!(outcome.trades >= 500, "{outcome:?}");
    assert!(outcome.rejects.keys().all(|reason| *reason == "UnknownOrder"), "{outcome:?}");
}
