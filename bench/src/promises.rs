//! What the venue promises of itself, measured: `make bench NAME=promises`.
//!
//! Bounded work: how long the longest single entry of the log takes, where an order meets 200,000 others, a trade touches 100,000
//! stops, an order that must fill whole can not, an auction trades 200,000 times, a day with 200,000 orders ends, or an account is
//! suspended that has 100,000 orders, or as many as it may have by default, where a book grows to a million orders, and where an
//! order fills 50,000 that have a take-profit and a stop-loss each. Each is applied entry by entry as a leader logs it, and every
//! entry is timed. What is left out: the log, the network, and what readers of the events do.
//!
//! Reads beside orders: `promises/reads.rs`. Fair access from outside: `promises/inversions.rs`. An upgrade under load:
//! `promises/upgrades.rs`. What somebody sends again: `walras_siege::replays`. CloudEx's shard with four gateways:
//! `promises/shard.rs`. Faults planted in the simulator: `promises/mutants.rs`.

mod inversions;
mod mutants;
mod reads;
mod shard;
mod upgrades;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::ensure;
use walras_engine::Engine;
use walras_engine::versions::NEWEST;
use walras_types::limits::OPEN_ORDERS_DEFAULT;
use walras_types::{
    AccountId, ClientOrderId, OrderTerms, OrderType, PriceTicks, RejectReason, Side, SizeLots, TimeInForce, TradingPhase,
};
use walras_wire::{
    AccountCommand, AccountStatus, Command, Event, InstrumentCommand, LinkedOrder, NewOrder, OrderCommand, OrderEvent,
    SetAccountStatus, SetTradingPhase, VenueCommand,
};

use crate::report::{Figure, Report, Unit};
use crate::statistics::median;
use crate::venue::{INSTRUMENT, STREAM_TIME, open};

/// How much is measured.
#[derive(Clone, Debug)]
pub struct Config {
    /// Rounds; the figure is the median of each round's longest entry.
    pub rounds: usize,
    /// Whether the books are as large as the figures' names say.
    pub is_full: bool,
    /// The program that a cluster runs.
    pub walras: PathBuf,
    /// The program of the next release, as tests of upgrades have it.
    pub next: PathBuf,
    /// Folder for a venue's data.
    pub scratch: PathBuf,
}

/// Those who rest, one who takes, and one whose stops wait.
const MAKERS: u32 = 64;
const TAKER: AccountId = AccountId(MAKERS);
const STOPS: AccountId = AccountId(MAKERS + 1);
const USERS: u32 = MAKERS + 2;

/// Prices over which resting orders are spread, and the best of them.
const PRICES: u64 = 500;
const BEST: i64 = 30_711;

/// Attempts to fill what can not be filled.
const ATTEMPTS: u64 = 200;

/// Without these nothing is written.
const REQUIRED: &[&str] = &["c1_orders_per_s_4_gateways", "c1_late_percent", "replays_accepted", "mutants_found_percent"];

/// Rounds of what starts processes, at most.
const ROUNDS_OF_PROCESSES_MAX: usize = 3;

/// Measures.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(config.rounds);
    report.require(REQUIRED);
    planted(config, report)?;
    let (makers, stops) = if config.is_full { (200_000, 100_000) } else { (2_000, 1_000) };
    let (many, grown_to) = if config.is_full { (100_000, 1_000_000) } else { (1_500, 10_000) };
    let bracketed_count = if config.is_full { 50_000 } else { 500 };
    let mut worst = [const { Vec::new() }; 9];
    for round in 1..=config.rounds {
        let found = [
            unfillable(makers)?,
            fills(makers)?,
            triggered(stops)?,
            uncrossed(makers)?,
            day_ended(makers)?,
            suspended(makers, makers.min(u64::from(OPEN_ORDERS_DEFAULT)))?,
            suspended(makers, many)?,
            grown(grown_to)?,
            bracketed(bracketed_count)?,
        ];
        eprintln!("  round {round}: {found:?} us");
        worst.iter_mut().zip(found).for_each(|(all, one)| all.push(one));
    }
    let (orders, samples) = if config.is_full { (100_000, 400) } else { (2_000, 20) };
    let mut found = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for round in 1..=config.rounds {
        let visit_us = reads::longest_visit_us(orders)?;
        let served = reads::served(orders, samples, &config.scratch)?;
        eprintln!("  round {round}: longest visit {visit_us} us, {served:?}");
        found.iter_mut().zip([visit_us, served.page_ms, served.all_ms, served.p50_ratio]).for_each(|(all, one)| all.push(one));
    }
    report.check(format!("{orders} open orders of an account listed in pages, each once"));
    let [visit_us, page_ms, all_ms, p50_ratio] = found.map(|samples| median(&samples));
    report.figure(Figure::new("orders_visit_longest_us", visit_us, Unit::Us).bar(1_000.0));
    report.figure(Figure::new("orders_page_100k_ms", page_ms, Unit::Ms));
    report.figure(Figure::new("orders_all_100k_ms", all_ms, Unit::Ms));
    report.figure(Figure::new("good_p50_ratio_under_reads", p50_ratio, Unit::Ratio));
    report.check(format!(
        "{makers} orders filled, {stops} stops triggered, {makers} trades of an auction and {makers} orders of a day cancelled, {many} of an \
         account that is suspended, each once, in entries of the log; a book grown to {grown_to} orders; \
         {bracketed_count} brackets filled, each with its two exits"
    ));
    let names = [
        "fok_worst_us_at_200k",
        "fills_200k_longest_hold_us",
        "stops_100k_longest_hold_us",
        "uncross_200k_longest_hold_us",
        "day_end_200k_longest_hold_us",
        "suspend_10k_longest_hold_us",
        "suspend_100k_longest_hold_us",
        "grow_1m_longest_hold_us",
        "brackets_50k_longest_hold_us",
    ];
    for (name, samples) in names.into_iter().zip(worst) {
        report.figure(Figure::new(name, median(&samples), Unit::Us).bar(1_000.0));
    }
    if !config.walras.is_file() {
        report.note(format!(
            "what processes show is missing: {} is not built; build it with `cargo build --release -p walras-node`",
            config.walras.display()
        ));
        return Ok(());
    }
    replayed(config, report)?;
    sharded(config, report)?;
    inverted(config, report)?;
    upgraded(config, report)
}

/// Faults planted in the simulator.
fn planted(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    eprintln!("  faults planted in the simulator:");
    let searched = mutants::search(config.is_full)?;
    report.figure(Figure::new("mutants_found_percent", searched.found_percent(), Unit::Percent).bar(100.0));
    report.figure(Figure::new("mutants_planted", searched.planted as f64, Unit::Count));
    match &searched.missed[..] {
        [] => report.check(format!(
            "{} faults planted in the simulator, each found by the checkers that are there for it",
            searched.planted
        )),
        missed => report.note(format!("planted faults that were not found: {}", missed.join("; "))),
    }
    Ok(())
}

/// What participants sent, sent again.
fn replayed(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    eprintln!("  what participants and the operator sent, sent again by somebody else:");
    let (mut sent, mut readers, mut accepted) = (0, 0, Vec::new());
    for _ in 0..config.rounds.min(ROUNDS_OF_PROCESSES_MAX) {
        let replayed = walras_siege::replays::run(&config.walras, &config.scratch.join("replays"))?;
        eprintln!("    {} copies and forged frames, accepted: {:?}", replayed.sent, replayed.accepted);
        sent += replayed.sent;
        readers += replayed.readers;
        accepted.extend(replayed.accepted);
    }
    report.figure(Figure::new("replays_accepted", accepted.len() as f64, Unit::Failures).bar(0.0));
    report.figure(Figure::new("replays_sent", sent as f64, Unit::Count));
    if readers > 0 {
        report.note(format!(
            "replays: {readers} copies of a WebSocket's first message were let in to read by replicas that do not lead, as docs/websocket.md says; \
             orders by them were refused"
        ));
    }
    match &accepted[..] {
        [] => report.check(format!(
            "{sent} copies refused: of logons, of whole connections, of signed orders, of the operator's commands, of a WebSocket's first \
             message, at every replica before and after a change of leader; and frames without a seal"
        )),
        accepted => report.note(format!("accepted although it was sent before: {}", accepted.join("; "))),
    }
    Ok(())
}

/// CloudEx's shard with four gateways.
fn sharded(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let (time, rates) = if config.is_full { (Duration::from_secs(2), usize::MAX) } else { (Duration::from_millis(500), 1) };
    let mut rounds = Vec::new();
    for round in 1..=config.rounds.min(ROUNDS_OF_PROCESSES_MAX) {
        eprintln!("  a shard with four gateways, round {round}:");
        rounds.extend(shard::round(&config.walras, &config.scratch.join("shard"), time, rates)?);
    }
    if rounds.is_empty() {
        report.note("c1 is missing: not even the lowest rate held; is the machine busy?");
        return Ok(());
    }
    shard::report(&rounds, report);
    Ok(())
}

/// An upgrade of a cluster.
fn upgraded(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    if !config.next.is_file() {
        let advice = "`cargo build --release -p walras-node --example rehearsal`";
        report.note(format!("upgrades are missing: {} is not built; build it with {advice}", config.next.display()));
        return Ok(());
    }
    let time = Duration::from_secs(if config.is_full { 20 } else { 15 });
    let mut gaps = Vec::new();
    for _ in 0..config.rounds.min(5) {
        gaps.push(upgrades::longest_gap_ms((&config.walras, &config.next), &config.scratch.join("upgrade"), time)?);
    }
    report.figure(Figure::new("upgrade_longest_gap_ms", median(&gaps), Unit::Ms));
    report.check("three replicas upgraded under load to a program with other rules, every order answered once");
    Ok(())
}

/// Pairs of orders through a cluster with fair access.
fn inverted(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let time = Duration::from_secs(if config.is_full { 30 } else { 1 });
    let mut found = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for round in 1..=config.rounds {
        eprintln!("  round {round}:");
        let one = inversions::inversions(&config.walras, &config.scratch.join("inversions"), time)?;
        let figures = [one.at_1ms_rest_percent, one.at_1ms_load_percent, one.at_3ms_load_percent, one.reported_over_measured];
        found.iter_mut().zip(figures).for_each(|(all, one)| all.push(one));
    }
    let [rest, load, far, reported] = found.map(|samples| median(&samples));
    report.figure(Figure::new("inversions_1ms_percent_rest", rest, Unit::PercentWrong).bar(1.0));
    report.figure(Figure::new("inversions_1ms_percent_load", load, Unit::PercentWrong).bar(1.0));
    report.figure(Figure::new("inversions_3ms_percent_load", far, Unit::PercentWrong).bar(0.1));
    report.figure(Figure::new("reported_over_measured", reported, Unit::Fraction).bar(0.8));
    Ok(())
}

fn lots(size: u64) -> SizeLots {
    SizeLots::new(size)
}

fn price(above_best: u64) -> PriceTicks {
    PriceTicks::saturating(BEST + i64::try_from(above_best).unwrap_or(i64::MAX / 2))
}

fn order(account: AccountId, id: u64, terms: OrderTerms) -> Command {
    let client_order_id = ClientOrderId(id);
    Command::Order(OrderCommand::New(NewOrder { account, instrument: INSTRUMENT, client_order_id, terms }))
}

/// Applies an entry; its events, and the microseconds that it took.
fn apply(engine: &mut Engine, command: &Command, events: &mut Vec<Event>) -> f64 {
    events.clear();
    let begun = Instant::now();
    engine.apply(engine.last_applied().next(), STREAM_TIME, command, events);
    begun.elapsed().as_secs_f64() * 1e6
}

/// Applies a command and the ticks that go on with it: the longest entry, and how many events of a kind there were.
fn carry_out(engine: &mut Engine, command: &Command, wanted: impl Fn(&OrderEvent) -> bool) -> (f64, usize) {
    let mut events = Vec::with_capacity(1 << 14);
    let (mut longest, mut count) = (apply(engine, command, &mut events), 0);
    loop {
        count += events.iter().filter(|event| matches!(event, Event::Order(event) if wanted(event))).count();
        if !engine.has_work() {
            return (longest, count);
        }
        longest = longest.max(apply(engine, &Command::Venue(VenueCommand::Tick), &mut events));
    }
}

/// A venue in which that many offers of one lot rest.
fn offered(count: u64) -> anyhow::Result<Engine> {
    let (mut engine, mut events) = (open(USERS), Vec::new());
    apply(&mut engine, &Command::Venue(VenueCommand::SetEngineVersion(NEWEST)), &mut events);
    for id in 0..count {
        let account = AccountId(u32::try_from(id % u64::from(MAKERS))?);
        apply(&mut engine, &order(account, id, OrderTerms::limit(Side::Sell, price(id % PRICES), lots(1))), &mut events);
        ensure!(!events.iter().any(|event| matches!(event, Event::Rejected(_))), "an offer was refused: {events:?}");
    }
    Ok(engine)
}

/// Orders that must fill whole and want one lot more than there is: of one who rests nothing there, and of one who does.
fn unfillable(makers: u64) -> anyhow::Result<f64> {
    let (mut engine, mut events, mut worst) = (offered(makers)?, Vec::new(), 0.0_f64);
    for attempt in 0..ATTEMPTS {
        let account = if attempt % 2 == 0 { TAKER } else { AccountId(0) };
        let terms =
            OrderTerms { time_in_force: TimeInForce::FillOrKill, ..OrderTerms::limit(Side::Buy, price(PRICES), lots(makers + 1)) };
        worst = worst.max(apply(&mut engine, &order(account, 1 << 40, terms), &mut events));
        let is_refused = |event: &Event| {
            let Event::Rejected(rejected) = event else { return false };
            matches!(rejected.reason, RejectReason::FillOrKillUnfillable | RejectReason::FillCheckTooDeep)
        };
        ensure!(events.iter().all(is_refused), "it was not refused: {events:?}");
    }
    Ok(worst)
}

/// One order that fills them all.
fn fills(makers: u64) -> anyhow::Result<f64> {
    let mut engine = offered(makers)?;
    let taker = order(TAKER, 1, OrderTerms::limit(Side::Buy, price(PRICES), lots(makers)));
    let (longest, trades) = carry_out(&mut engine, &taker, |event| matches!(event, OrderEvent::Traded(_)));
    ensure!(trades as u64 == makers, "{trades} trades of {makers}");
    Ok(longest)
}

/// One order that fills that many offers, each with a take-profit and a stop-loss: exits that buy, whose funds are reserved as it
/// does.
fn bracketed(entries: u64) -> anyhow::Result<f64> {
    let (mut engine, mut events) = (open(USERS), Vec::new());
    apply(&mut engine, &Command::Venue(VenueCommand::SetEngineVersion(NEWEST)), &mut events);
    let (takes, protects) = (PriceTicks::saturating(BEST - 100), price(PRICES + 100));
    for id in 0..entries {
        let (account, entry) = (AccountId(u32::try_from(id % u64::from(MAKERS))?), 3 * id);
        let exits = [OrderType::TakeProfit { trigger: takes }, OrderType::Stop { trigger: protects }];
        for (place, order_type) in (1..).zip(exits) {
            let terms = OrderTerms { order_type, ..OrderTerms::limit(Side::Buy, price(0), lots(1)) };
            let exit = NewOrder { account, instrument: INSTRUMENT, client_order_id: ClientOrderId(entry + place), terms };
            let exit = OrderCommand::NewLinked(LinkedOrder::exit(&exit, ClientOrderId(entry), None));
            apply(&mut engine, &Command::Order(exit), &mut events);
            ensure!(!events.iter().any(|event| matches!(event, Event::Rejected(_))), "an exit was refused: {events:?}");
        }
        apply(&mut engine, &order(account, entry, OrderTerms::limit(Side::Sell, price(id % PRICES), lots(1))), &mut events);
        ensure!(!events.iter().any(|event| matches!(event, Event::Rejected(_))), "an offer was refused: {events:?}");
    }
    let taker = order(TAKER, 1, OrderTerms::limit(Side::Buy, price(PRICES), lots(entries)));
    let (longest, released) = carry_out(&mut engine, &taker, |event| matches!(event, OrderEvent::Amended(_)));
    ensure!(released as u64 == 2 * entries, "{released} exits became active of {entries} entries");
    Ok(longest)
}

/// One trade that touches that many stops, whose limits rest then.
fn triggered(stops: u64) -> anyhow::Result<f64> {
    let (mut engine, mut events) = (offered(10)?, Vec::new());
    for id in 0..stops {
        let stop = OrderTerms {
            order_type: OrderType::StopLimit { trigger: price(0), price: PriceTicks::saturating(BEST - 1) },
            ..OrderTerms::limit(Side::Buy, price(0), lots(1))
        };
        apply(&mut engine, &order(STOPS, id, stop), &mut events);
        ensure!(!events.iter().any(|event| matches!(event, Event::Rejected(_))), "a stop was refused: {events:?}");
    }
    let taker = order(TAKER, 1, OrderTerms::limit(Side::Buy, price(0), lots(1)));
    let (longest, entered) = carry_out(&mut engine, &taker, |event| matches!(event, OrderEvent::Triggered(_)));
    ensure!(entered as u64 == stops, "{entered} stops of {stops}");
    Ok(longest)
}

fn enter_phase(phase: TradingPhase) -> Command {
    Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase { instrument: INSTRUMENT, phase }))
}

/// Bids of one lot at prices from the best offer on, each for a name of its own.
fn bid(engine: &mut Engine, count: u64, above_best: impl Fn(u64) -> i64, time_in_force: TimeInForce) -> anyhow::Result<()> {
    let mut events = Vec::new();
    for id in 0..count {
        let account = AccountId(u32::try_from(id % u64::from(MAKERS))?);
        let terms = OrderTerms::limit(Side::Buy, PriceTicks::saturating(BEST + above_best(id)), lots(1));
        apply(engine, &order(account, (1 << 40) + id, OrderTerms { time_in_force, ..terms }), &mut events);
        ensure!(!events.iter().any(|event| matches!(event, Event::Rejected(_))), "a bid was refused: {events:?}");
    }
    Ok(())
}

/// A closing auction in which so many bids at as many prices as there are trade with as many offers.
fn uncrossed(makers: u64) -> anyhow::Result<f64> {
    let (mut engine, mut events) = (offered(makers)?, Vec::new());
    apply(&mut engine, &enter_phase(TradingPhase::ClosingAuction), &mut events);
    let prices = i64::try_from(PRICES)?;
    bid(&mut engine, makers, |id| prices + i64::try_from(id).unwrap_or(0) % prices, TimeInForce::GoodTillCancel)?;
    let close = enter_phase(TradingPhase::Closed);
    let (longest, trades) = carry_out(&mut engine, &close, |event| matches!(event, OrderEvent::Traded(_)));
    ensure!(trades as u64 == makers, "{trades} trades of {makers}");
    Ok(longest)
}

/// The end of a day of so many orders, in a book where as many stay.
fn day_ended(makers: u64) -> anyhow::Result<f64> {
    let mut engine = offered(makers)?;
    let prices = i64::try_from(PRICES)?;
    bid(&mut engine, makers, |id| -1 - i64::try_from(id).unwrap_or(0) % prices, TimeInForce::Day)?;
    let close = enter_phase(TradingPhase::Closed);
    let (longest, ended) = carry_out(&mut engine, &close, |event| matches!(event, OrderEvent::Cancelled(_)));
    ensure!(ended as u64 == makers, "{ended} orders of {makers} left");
    Ok(longest)
}

/// The suspension of an account with so many orders, among those of others.
fn suspended(makers: u64, own: u64) -> anyhow::Result<f64> {
    let (mut engine, mut events) = (offered(makers)?, Vec::new());
    for id in 0..own {
        apply(&mut engine, &order(STOPS, id, OrderTerms::limit(Side::Sell, price(id % PRICES), lots(1))), &mut events);
        ensure!(!events.iter().any(|event| matches!(event, Event::Rejected(_))), "an offer was refused: {events:?}");
    }
    let suspend = SetAccountStatus { account: STOPS, status: AccountStatus::Suspended };
    let suspend = Command::Account(AccountCommand::SetStatus(suspend));
    let (longest, left) = carry_out(&mut engine, &suspend, |event| matches!(event, OrderEvent::Cancelled(_)));
    ensure!(left as u64 == own, "{left} orders of {own} left");
    Ok(longest)
}

/// A book that grows from nothing to so many orders: the longest of the entries that do so.
fn grown(count: u64) -> anyhow::Result<f64> {
    let (mut engine, mut events, mut longest) = (open(USERS), Vec::with_capacity(16), 0.0_f64);
    apply(&mut engine, &Command::Venue(VenueCommand::SetEngineVersion(NEWEST)), &mut events);
    for id in 0..count {
        let account = AccountId(u32::try_from(id % u64::from(MAKERS))?);
        let offer = order(account, id, OrderTerms::limit(Side::Sell, price(id % PRICES), lots(1)));
        longest = longest.max(apply(&mut engine, &offer, &mut events));
        ensure!(!events.iter().any(|event| matches!(event, Event::Rejected(_))), "an offer was refused: {events:?}");
    }
    ensure!(engine.open_order_count(INSTRUMENT) as u64 == count, "the book has not grown to {count} orders");
    Ok(longest)
}
