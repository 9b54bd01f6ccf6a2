//! What a session costs: the same commands by `apply` and by `apply_numbered`, over few and over many sessions.
//!
//! `cargo run --release -p walras-engine --example numbered`. Each account enters an order far from the others' and cancels it by its
//! next command, so that the engine's own part is as small as it gets and the difference as plain. The least of some rounds counts; the
//! answers are checked. It says nothing of the gateway's part, nor of the log's. On a busy machine count instructions instead, of 64
//! sessions: `valgrind --tool=callgrind --toggle-collect='*_commands*' target/release/examples/numbered 64`, then `callgrind_annotate
//! --inclusive=yes`, and part the sums of `plain_commands` and `numbered_commands` by 2^20 each.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement: it reads the clock and prints, and is no part of the core"
)]

use std::time::Instant;

use walras_engine::{Engine, Numbered};
use walras_types::limits::SESSION_WINDOW;
use walras_types::*;
use walras_wire::*;

const COMMANDS: usize = 1 << 20;
const ROUNDS: usize = 7;

/// A venue of so many accounts with a session each, and the sessions.
fn venue(accounts: u32) -> (Engine, Vec<SessionId>) {
    let mut engine = Engine::new();
    let (base, quote) = (AssetId(0), AssetId(1));
    let symbol = |text| Symbol::new(text).expect("it is one");
    let asset = |asset, text| Command::Venue(VenueCommand::CreateAsset(AssetSpec { asset, symbol: symbol(text), decimals: 2 }));
    let spec = InstrumentSpec {
        instrument: InstrumentId(0),
        symbol: symbol("BTC/USD"),
        base,
        quote,
        lot_units: 1,
        tick_value_units: 1,
        allocation: Allocation::PriceTime,
        fees: FeeSchedule { maker_ppm: 0, taker_ppm: 0 },
        collar_ppm: 1_000_000,
        band_ppm: 1_000_000,
        reference_price: PriceTicks::saturating(10_000),
        default_limits: RiskLimits::NONE,
    };
    let mut start = vec![asset(base, "BTC"), asset(quote, "USD"), Command::Instrument(InstrumentCommand::Create(spec))];
    let phase = TradingPhase::Continuous;
    start.push(Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase { instrument: InstrumentId(0), phase })));
    for account in (0..accounts).map(AccountId) {
        let amount = Amount::new(1 << 40).expect("it is below AMOUNT_MAX");
        start.push(Command::Account(AccountCommand::Create(account)));
        start.push(Command::Account(AccountCommand::Deposit(Transfer {
            account,
            asset: quote,
            amount,
            transfer_id: TransferId(1),
        })));
        start.push(Command::Session(SessionCommand::Open(OpenSession { account: Some(account), token: 1 })));
    }
    let mut events = Vec::new();
    for command in start {
        engine.apply(engine.last_applied().next(), TimeNs(1), &command, &mut events);
    }
    let opened = |event: &Event| if let Event::Session(SessionEvent::Opened(e)) = event { Some(e.session) } else { None };
    let sessions = events.iter().filter_map(opened).collect();
    (engine, sessions)
}

/// Whose turn it is, and the command: accounts in no order that a processor could learn, each with a cancel after an order.
fn commands(accounts: u32) -> Vec<(AccountId, Command)> {
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let mut has_order = vec![false; accounts as usize];
    let (instrument, client_order_id) = (InstrumentId(0), ClientOrderId(1));
    (0..COMMANDS)
        .map(|_| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let account = AccountId((random % u64::from(accounts)) as u32);
            let has = &mut has_order[account.0 as usize];
            *has = !*has;
            let price = PriceTicks::saturating(9_000 + (random >> 40) as i64 % 64);
            let terms = OrderTerms::limit(Side::Buy, price, SizeLots::new(1));
            let command = if *has {
                Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms }))
            } else {
                Command::Order(OrderCommand::Cancel(CancelOrder { account, instrument, client_order_id }))
            };
            (account, command)
        })
        .collect()
}

/// Nanoseconds per command.
fn per_command(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64 / COMMANDS as f64
}

fn plain(accounts: u32, commands: &[(AccountId, Command)]) -> f64 {
    let (mut engine, _) = venue(accounts);
    let start = Instant::now();
    plain_commands(&mut engine, commands);
    per_command(start)
}

/// Found by valgrind by its name.
#[inline(never)]
fn plain_commands(engine: &mut Engine, commands: &[(AccountId, Command)]) {
    let mut events = Vec::with_capacity(16);
    for (_, command) in commands {
        events.clear();
        engine.apply(engine.last_applied().next(), TimeNs(1), command, &mut events);
    }
}

/// As [`plain_commands`]; gives how many took effect.
#[inline(never)]
fn numbered_commands(engine: &mut Engine, commands: &[(Ordinal, Command)]) -> usize {
    let (mut events, mut done) = (Vec::with_capacity(16), 0);
    for (ordinal, command) in commands {
        events.clear();
        let became = engine.apply_numbered(engine.last_applied().next(), TimeNs(1), *ordinal, command, &mut events);
        done += usize::from(matches!(became, Numbered::Done(Answer { rejected: None, .. })));
    }
    done
}

fn numbered(accounts: u32, commands: &[(AccountId, Command)]) -> f64 {
    let (mut engine, sessions) = venue(accounts);
    // Full windows: a session that has been in use for a while, and never grows again.
    let mut next = vec![SessionSeq(1); accounts as usize];
    for (account, (&session, next)) in (0..).map(AccountId).zip(sessions.iter().zip(&mut next)) {
        let (instrument, client_order_id) = (InstrumentId(0), ClientOrderId(2));
        let nothing = Command::Order(OrderCommand::Cancel(CancelOrder { account, instrument, client_order_id }));
        while next.0 <= SESSION_WINDOW as u64 {
            let ordinal = Ordinal { session, session_seq: *next };
            engine.apply_numbered(engine.last_applied().next(), TimeNs(1), ordinal, &nothing, &mut Vec::new());
            *next = next.next();
        }
    }
    // Numbered before, as they would come.
    let numbered: Vec<(Ordinal, Command)> = commands
        .iter()
        .map(|&(account, command)| {
            let session_seq = next[account.0 as usize];
            next[account.0 as usize] = session_seq.next();
            (Ordinal { session: sessions[account.0 as usize], session_seq }, command)
        })
        .collect();
    let start = Instant::now();
    let done = numbered_commands(&mut engine, &numbered);
    let took = per_command(start);
    assert_eq!(done, COMMANDS, "every command takes effect");
    took
}

fn main() {
    println!("sessions  apply ns  apply_numbered ns  difference ns");
    let only = std::env::args().nth(1).map(|count| count.parse().expect("the argument is a number of sessions, at most 16384"));
    let rounds = if only.is_some() { 1 } else { ROUNDS };
    for accounts in only.map_or(vec![1, 16, 256, 1_024, 4_096, 16_384], |only| vec![only]) {
        let commands = commands(accounts);
        let least = |run: fn(u32, &[(AccountId, Command)]) -> f64| {
            (0..rounds).map(|_| run(accounts, &commands)).fold(f64::INFINITY, f64::min)
        };
        let (plain, numbered) = (least(plain), least(numbered));
        println!("{accounts:>8}  {plain:>8.1}  {numbered:>17.1}  {:>13.1}", numbered - plain);
    }
}
