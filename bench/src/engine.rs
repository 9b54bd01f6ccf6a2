//! The engine with ledger and risk: serial, over two cores, with a durable journal, and its latency under an open-loop load.

use std::time::Instant;

use walras_engine::Engine;
use walras_log_store::{LogOptions, LogWriter, RealDisk};
use walras_types::{
    AccountId, Allocation, Amendment, Amount, AssetId, ClientOrderId, FeeSchedule, InstrumentId, InstrumentSpec, LogIndex,
    OrderTerms, PriceTicks, RiskLimits, SelfTrade, Side, SizeLots, Symbol, TimeInForce, TimeNs, TradingPhase, TransferId, prefetch,
};
use walras_wire::{AmendOrder, AssetSpec, CancelOrder, Command, Event, NewOrder, SetTradingPhase, Transfer, encode_command};

use crate::records::{Op, Record};

/// A venue with one continuous instrument and 1,000 rich accounts, as exchange-core's own benchmark has.
pub fn venue(engine: &mut Engine, users: u32) -> u64 {
    let mut commands = vec![
        Command::CreateAsset(AssetSpec { asset: AssetId(0), symbol: Symbol::new("BASE").expect("valid"), decimals: 8 }),
        Command::CreateAsset(AssetSpec { asset: AssetId(1), symbol: Symbol::new("QUOTE").expect("valid"), decimals: 8 }),
        Command::CreateInstrument(InstrumentSpec {
            instrument: InstrumentId(0),
            symbol: Symbol::new("BASE/QUOTE").expect("valid"),
            base: AssetId(0),
            quote: AssetId(1),
            lot_units: 100,
            tick_value_units: 1,
            allocation: Allocation::PriceTime,
            fees: FeeSchedule { maker_ppm: 100, taker_ppm: 250 },
            collar_ppm: 900_000,
            band_ppm: 900_000,
            reference_price: PriceTicks::new(30_711).expect("valid"),
            default_limits: RiskLimits {
                order_lots_max: SizeLots::new(1 << 30),
                order_value_max: Amount::new(1 << 50).expect("valid"),
                open_orders_max: 1 << 20,
                position_lots_max: SizeLots::new(1 << 40),
            },
        }),
        Command::SetTradingPhase(SetTradingPhase { instrument: InstrumentId(0), phase: TradingPhase::Continuous }),
    ];
    for account in 0..users {
        commands.push(Command::CreateAccount(AccountId(account)));
        for asset in 0..2 {
            commands.push(Command::Deposit(Transfer {
                account: AccountId(account),
                asset: AssetId(asset),
                amount: Amount::new(1 << 50).expect("valid"),
                transfer_id: TransferId(u64::from(asset) + 1),
            }));
        }
    }
    let mut events = Vec::new();
    let mut index = engine.last_applied();
    for command in &commands {
        index = index.next();
        engine.apply(index, TimeNs(1), command, &mut events);
    }
    assert!(!events.iter().any(|event| matches!(event, Event::Rejected(_))), "{events:?}");
    index.0
}

/// The stream as clients would send it. A reduce names its new open size, which a client knows: here, from a run before.
pub fn commands(records: &[Record], self_trade: SelfTrade) -> Vec<Command> {
    let instrument = InstrumentId(0);
    let mut open = std::collections::HashMap::new();
    let mut engine: Engine = Engine::new();
    let mut index = LogIndex(venue(&mut engine, 1 + records.iter().map(|r| r.user).max().unwrap_or(0)));
    let mut events = Vec::new();
    records
        .iter()
        .map(|r| {
            let account = AccountId(r.user);
            let client_order_id = ClientOrderId(r.id as u64);
            let command = match r.op {
                Op::Gtc | Op::Ioc => {
                    let side = if r.side == 1 { Side::Buy } else { Side::Sell };
                    let mut terms = OrderTerms::limit(side, PriceTicks::saturating(r.price), SizeLots::new(r.size as u64));
                    terms.self_trade = self_trade;
                    if r.op == Op::Ioc {
                        terms.time_in_force = TimeInForce::ImmediateOrCancel;
                    }
                    Command::NewOrder(NewOrder { account, instrument, client_order_id, terms })
                }
                Op::Cancel => Command::CancelOrder(CancelOrder { account, instrument, client_order_id }),
                Op::Move => Command::AmendOrder(AmendOrder {
                    account,
                    instrument,
                    amendment: Amendment { client_order_id, price: PriceTicks::new(r.price), size: None },
                }),
                Op::Reduce => {
                    let left = open.get(&r.id).copied().unwrap_or(0u64).saturating_sub(r.size as u64);
                    if left == 0 {
                        Command::CancelOrder(CancelOrder { account, instrument, client_order_id })
                    } else {
                        let size = Some(SizeLots::new(left));
                        Command::AmendOrder(AmendOrder {
                            account,
                            instrument,
                            amendment: Amendment { client_order_id, price: None, size },
                        })
                    }
                }
            };
            index = index.next();
            events.clear();
            engine.apply(index, TimeNs(2), &command, &mut events);
            for event in &events {
                match event {
                    Event::OrderAccepted(e) => drop(open.insert(e.client_order_id.0 as i64, e.resting.open.get())),
                    Event::OrderAmended(e) => drop(open.insert(e.client_order_id.0 as i64, e.resting.open.get())),
                    Event::Traded(e) => drop(open.insert(e.maker.client_order_id.0 as i64, e.maker.open.get())),
                    _ => {}
                }
            }
            command
        })
        .collect()
}

/// One thread, one command after the other.
pub fn serial(records: &[Record], rounds: usize) {
    for self_trade in [SelfTrade::Allow, SelfTrade::CancelNewest] {
        let commands = commands(records, self_trade);
        let users = 1 + records.iter().map(|r| r.user).max().unwrap_or(0);
        let mut times = Vec::new();
        let mut answer = String::new();
        for _ in 0..rounds {
            let mut engine: Engine = Engine::new();
            let mut index = LogIndex(venue(&mut engine, users));
            let mut events = Vec::with_capacity(1 << 12);
            let (mut trades, mut volume, mut rejects) = (0u64, 0u64, 0u64);
            let start = Instant::now();
            for command in &commands {
                index = index.next();
                engine.apply(index, TimeNs(2), command, &mut events);
                if events.len() > 1000 {
                    for e in &events {
                        match e {
                            Event::Traded(t) => {
                                trades += 1;
                                volume += t.size.get();
                            }
                            Event::Rejected(_) => rejects += 1,
                            _ => {}
                        }
                    }
                    events.clear();
                }
            }
            for e in &events {
                match e {
                    Event::Traded(t) => {
                        trades += 1;
                        volume += t.size.get();
                    }
                    Event::Rejected(_) => rejects += 1,
                    _ => {}
                }
            }
            times.push(start.elapsed().as_nanos() as f64 / commands.len() as f64);
            answer = format!("trades {trades} volume {volume} rejects {rejects}");
        }
        times.sort_by(f64::total_cmp);
        println!("engine {self_trade:?}: best {:.1} median {:.1} ns  {answer}", times[0], times[times.len() / 2]);
    }
    println!("size of Command {} Event {}", size_of::<Command>(), size_of::<Event>());
}

/// Counts what a client would see.
#[derive(Default, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    trades: u64,
    volume: u64,
    rejects: u64,
    events: u64,
}

impl Answer {
    #[inline]
    fn see(&mut self, event: &Event) {
        self.events += 1;
        match event {
            Event::Traded(t) => {
                self.trades += 1;
                self.volume += t.size.get();
            }
            Event::Rejected(_) => self.rejects += 1,
            _ => {}
        }
    }
}

/// How the stream is driven through a pipeline of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// Events are released as they come.
    None,
    /// Commands are appended to a log on disk; events are released once their command is synced.
    Durable,
}

const COMMANDS_IN_RING: usize = 8_192;
const EVENTS_IN_RING: usize = 8_192;
/// Commands handed over at a time.
const BATCH: usize = 64;
/// Commands per group at most; a sync costs the same for one as for all of them.
const GROUP: usize = 4_096;

/// An event, and how many commands were applied up to and with its own.
#[derive(Clone, Copy)]
struct Told {
    applied: u64,
    event: Event,
}

/// The engine's thread: takes commands from one ring, tells events into another.
fn engine_thread(
    mut engine: Engine,
    mut index: LogIndex,
    mut commands: rtrb::Consumer<Command>,
    mut told: rtrb::Producer<Told>,
    count: usize,
) -> Engine {
    let mut events: Vec<Event> = Vec::with_capacity(EVENTS_IN_RING);
    let mut applied: u64 = 0;
    while (applied as usize) < count {
        let ready = commands.slots().min(BATCH);
        if ready == 0 {
            std::hint::spin_loop();
            continue;
        }
        let chunk = commands.read_chunk(ready).expect("as many are ready");
        let (first, second) = chunk.as_slices();
        for part in [first, second] {
            for (at, command) in part.iter().enumerate() {
                if let Some(ahead) = part.get(at + 4) {
                    prefetch(ahead);
                }
                index = index.next();
                engine.apply(index, TimeNs(2), command, &mut events);
                applied += 1;
                if events.len() >= BATCH || at + 1 == part.len() {
                    tell(&mut told, &mut events, applied);
                }
            }
        }
        chunk.commit_all();
    }
    engine
}

#[inline]
fn tell(told: &mut rtrb::Producer<Told>, events: &mut Vec<Event>, applied: u64) {
    let mut sent = 0;
    while sent < events.len() {
        let room = told.slots().min(events.len() - sent);
        if room == 0 {
            std::hint::spin_loop();
            continue;
        }
        let chunk = told.write_chunk_uninit(room).expect("there is room");
        chunk.fill_from_iter(events[sent..sent + room].iter().map(|&event| Told { applied, event }));
        sent += room;
    }
    events.clear();
}

/// A client core that sends commands, journals them, and reads events; and an engine core. Millions of commands a second.
pub fn pipeline(commands: &[Command], users: u32, journal: Journal, directory: &std::path::Path) -> anyhow::Result<(f64, Answer)> {
    let mut engine: Engine = Engine::new();
    let index = LogIndex(venue(&mut engine, users));
    let (mut command_in, command_out) = rtrb::RingBuffer::<Command>::new(COMMANDS_IN_RING);
    let (told_in, mut told_out) = rtrb::RingBuffer::<Told>::new(EVENTS_IN_RING);
    let count = commands.len();
    let mut log = match journal {
        Journal::None => None,
        Journal::Durable => {
            let options = LogOptions { segment_bytes: 256 << 20, ..LogOptions::default() };
            let (mut log, _) = LogWriter::open(RealDisk, directory, options)?;
            log.maintain()?;
            Some(log)
        }
    };
    let worker = std::thread::spawn(move || engine_thread(engine, index, command_out, told_in, count));
    let mut answer = Answer::default();
    // Events of commands beyond this are not released.
    let mut durable = if log.is_some() { 0 } else { u64::MAX };
    let (mut sent, mut logged) = (0, 0);
    let start = Instant::now();
    loop {
        let room = command_in.slots().min(count - sent).min(BATCH);
        if room > 0 {
            let batch = &commands[sent..sent + room];
            if let Some(log) = &mut log {
                for command in batch {
                    log.append_with(|buffer| encode_command(command, buffer))?;
                }
            }
            command_in.write_chunk_uninit(room).expect("there is room").fill_from_iter(batch.iter().copied());
            sent += room;
        }
        let pending = sent - logged;
        if let Some(log) = &mut log
            && (pending >= GROUP || (pending > 0 && room == 0))
        {
            log.sync()?;
            log.maintain()?;
            logged = sent;
            durable = logged as u64;
        }
        let mut released = 0;
        let chunk = told_out.read_chunk(told_out.slots()).expect("as many are ready");
        let (first, second) = chunk.as_slices();
        for told in first.iter().chain(second).take_while(|told| told.applied <= durable) {
            answer.see(&told.event);
            released += 1;
        }
        chunk.commit(released);
        if released == 0 && sent == count && logged_all(&log, logged, sent) && worker.is_finished() && told_out.is_empty() {
            break;
        }
    }
    let rate = count as f64 / start.elapsed().as_secs_f64() / 1e6;
    worker.join().expect("the engine thread ends");
    if let Some(log) = log {
        log.close()?;
    }
    Ok((rate, answer))
}

fn logged_all<T>(log: &Option<T>, logged: usize, sent: usize) -> bool {
    log.is_none() || logged == sent
}

/// Percentiles, in microseconds, of the time from when a command should have been sent to when its client has read its last event,
/// at `rate` commands a second, whatever the engine does meanwhile (open loop, so that no omission is coordinated).
pub fn latency(commands: &[Command], users: u32, rate: u64) -> [f64; 5] {
    let mut engine: Engine = Engine::new();
    let mut index = LogIndex(venue(&mut engine, users));
    let (mut command_in, mut command_out) = rtrb::RingBuffer::<Command>::new(COMMANDS_IN_RING);
    let (mut told_in, mut told_out) = rtrb::RingBuffer::<Told>::new(EVENTS_IN_RING);
    let count = commands.len();
    let worker = std::thread::spawn(move || {
        let mut events: Vec<Event> = Vec::with_capacity(64);
        let mut applied: u64 = 0;
        while (applied as usize) < count {
            let Ok(command) = command_out.pop() else {
                std::hint::spin_loop();
                continue;
            };
            index = index.next();
            applied += 1;
            engine.apply(index, TimeNs(2), &command, &mut events);
            tell(&mut told_in, &mut events, applied);
        }
    });
    let interval_ns = 1_000_000_000 / rate;
    let mut latencies = vec![0u32; count];
    let (mut sent, mut seen) = (0usize, 0u64);
    let start = Instant::now();
    while (seen as usize) < count {
        let now = start.elapsed().as_nanos() as u64;
        while sent < count && sent as u64 * interval_ns <= now && command_in.push(commands[sent]).is_ok() {
            sent += 1;
        }
        while let Ok(told) = told_out.pop() {
            let at = (told.applied - 1) as usize;
            let now = start.elapsed().as_nanos() as u64;
            latencies[at] = (now - at as u64 * interval_ns).min(u64::from(u32::MAX)) as u32;
            seen = told.applied;
        }
    }
    worker.join().expect("the engine thread ends");
    latencies.sort_unstable();
    [0.5, 0.9, 0.99, 0.999, 0.9999].map(|p| f64::from(latencies[((count - 1) as f64 * p) as usize]) / 1_000.0)
}
