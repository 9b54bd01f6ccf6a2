//! The engine with ledger and risk: serial, over two cores, with a durable journal, and its latency under an open-loop load.

use std::time::Instant;

use walras_engine::Engine;
use walras_types::{
    AccountId, Allocation, Amendment, Amount, AssetId, ClientOrderId, FeeSchedule, InstrumentId, InstrumentSpec, LogIndex,
    OrderTerms, PriceTicks, RiskLimits, SelfTrade, Side, SizeLots, Symbol, TimeInForce, TimeNs, TradingPhase, TransferId,
};
use walras_wire::{AmendOrder, AssetSpec, CancelOrder, Command, Event, NewOrder, SetTradingPhase, Transfer};

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

/// A client core that sends commands and reads events, and an engine core.
pub fn pipeline(records: &[Record], rounds: usize) {
    let commands = commands(records, SelfTrade::CancelNewest);
    let users = 1 + records.iter().map(|r| r.user).max().unwrap_or(0);
    let mut times = Vec::new();
    let mut answer = Answer::default();
    for _ in 0..rounds {
        let mut engine: Engine = Engine::new();
        let mut index = LogIndex(venue(&mut engine, users));
        let (mut command_in, mut command_out) = rtrb::RingBuffer::<Command>::new(1024);
        let (mut event_in, mut event_out) = rtrb::RingBuffer::<Event>::new(4096);
        let count = commands.len();
        let worker = std::thread::spawn(move || {
            let mut events: Vec<Event> = Vec::with_capacity(4096);
            let mut done = 0;
            while done < count {
                let ready = command_out.slots().min(64);
                if ready == 0 {
                    std::hint::spin_loop();
                    continue;
                }
                let chunk = command_out.read_chunk(ready).expect("ready");
                let (first, second) = chunk.as_slices();
                for part in [first, second] {
                    for (at, command) in part.iter().enumerate() {
                        if let Some(ahead) = part.get(at + 4) {
                            let lines: &[[u8; 64]; 2] = unsafe { std::mem::transmute(ahead) };
                            walras_types::prefetch(&lines[0]);
                            walras_types::prefetch(&lines[1]);
                        }
                        index = index.next();
                        engine.apply(index, TimeNs(2), command, &mut events);
                    }
                }
                chunk.commit_all();
                done += ready;
                let mut sent = 0;
                while sent < events.len() {
                    let room = event_in.slots().min(events.len() - sent);
                    if room == 0 {
                        std::hint::spin_loop();
                        continue;
                    }
                    let chunk = event_in.write_chunk_uninit(room).expect("room");
                    chunk.fill_from_iter(events[sent..sent + room].iter().copied());
                    sent += room;
                }
                events.clear();
            }
        });
        answer = Answer::default();
        let start = Instant::now();
        let mut sent = 0;
        loop {
            let room = command_in.slots().min(count - sent).min(64);
            if room > 0 {
                let chunk = command_in.write_chunk_uninit(room).expect("room");
                chunk.fill_from_iter(commands[sent..sent + room].iter().copied());
                sent += room;
            }
            let ready = event_out.slots();
            if ready > 0 {
                let chunk = event_out.read_chunk(ready).expect("ready");
                let (first, second) = chunk.as_slices();
                first.iter().chain(second).for_each(|event| answer.see(event));
                chunk.commit_all();
            } else if sent == count && worker.is_finished() && event_out.slots() == 0 {
                break;
            }
        }
        times.push(count as f64 / start.elapsed().as_secs_f64() / 1e6);
        worker.join().expect("the engine thread ends");
    }
    times.sort_by(f64::total_cmp);
    println!("pipeline: median {:.2} best {:.2} M/s  {answer:?}", times[times.len() / 2], times[times.len() - 1]);
}
