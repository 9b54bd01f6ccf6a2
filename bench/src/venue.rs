//! A venue with one continuous instrument and as many rich accounts as a stream has users, and the stream as its clients send it.

use std::collections::BTreeMap;

use walras_engine::Engine;
use walras_types::limits::SIZE_LOTS_MAX;
use walras_types::{
    AccountId, Allocation, Amendment, Amount, AssetId, ClientOrderId, FeeSchedule, InstrumentId, InstrumentSpec, LogIndex,
    OrderTerms, PriceTicks, RiskLimits, SelfTrade, SizeLots, Symbol, TimeInForce, TimeNs, TradingPhase, TransferId,
};
use walras_wire::{
    AccountCommand, AmendOrder, AssetSpec, CancelOrder, Command, Event, InstrumentCommand, NewOrder, OrderCommand, OrderEvent,
    SetTradingPhase, Transfer, VenueCommand,
};

use crate::records::{Op, Record};

/// The one instrument.
pub const INSTRUMENT: InstrumentId = InstrumentId(0);
const SETUP_TIME: TimeNs = TimeNs(1);

/// The time of every command of a stream: nothing in it expires.
pub const STREAM_TIME: TimeNs = TimeNs(2);

/// What the client cores see of the events: enough to tell a right run from a wrong one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Trades.
    pub trades: u64,
    /// Lots traded.
    pub volume: u64,
    /// Commands refused.
    pub rejects: u64,
    /// Events of any kind.
    pub events: u64,
}

impl Outcome {
    /// Counts one event.
    #[inline]
    pub fn see(&mut self, event: &Event) {
        self.events += 1;
        match event {
            Event::Order(OrderEvent::Traded(trade)) => {
                self.trades += 1;
                self.volume += trade.size.get();
            }
            Event::Rejected(_) => self.rejects += 1,
            _ => {}
        }
    }
}

/// A venue before the first command of a stream; nobody publishes its books. Fees, collar, band and risk limits are all in force, and wide enough for the stream.
#[must_use]
pub fn open(users: u32) -> Engine {
    let mut engine = Engine::new();
    engine.stop_telling_levels();
    let mut events = Vec::new();
    for command in setup(users) {
        engine.apply(engine.last_applied().next(), SETUP_TIME, &command, &mut events);
    }
    assert!(!events.iter().any(|event| matches!(event, Event::Rejected(_))), "the setup is valid");
    engine
}

pub(crate) fn setup(users: u32) -> impl Iterator<Item = Command> {
    let symbol = |text| Symbol::new(text).expect("upper case and short");
    let riches = Amount::new(1 << 50).expect("below AMOUNT_MAX");
    let (base, quote) = (AssetId(0), AssetId(1));
    let venue = [
        Command::Venue(VenueCommand::CreateAsset(AssetSpec { asset: base, symbol: symbol("BASE"), decimals: 8 })),
        Command::Venue(VenueCommand::CreateAsset(AssetSpec { asset: quote, symbol: symbol("QUOTE"), decimals: 8 })),
        Command::Instrument(InstrumentCommand::Create(InstrumentSpec {
            instrument: INSTRUMENT,
            symbol: symbol("BASE/QUOTE"),
            base,
            quote,
            lot_units: 100,
            tick_value_units: 1,
            allocation: Allocation::PriceTime,
            fees: FeeSchedule { maker_ppm: 100, taker_ppm: 250 },
            collar_ppm: 900_000,
            band_ppm: 900_000,
            reference_price: PriceTicks::saturating(30_711),
            default_limits: RiskLimits {
                order_lots_max: SizeLots::new(SIZE_LOTS_MAX / 2),
                order_value_max: riches,
                open_orders_max: 1 << 20,
                position_lots_max: SizeLots::new(1 << 40),
            },
        })),
        Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase {
            instrument: INSTRUMENT,
            phase: TradingPhase::Continuous,
        })),
    ];
    let accounts = (0..users).map(AccountId).flat_map(move |account| {
        let deposit = move |asset: AssetId| {
            Command::Account(AccountCommand::Deposit(Transfer {
                account,
                asset,
                amount: riches,
                transfer_id: TransferId(u64::from(asset.0) + 1),
            }))
        };
        [Command::Account(AccountCommand::Create(account)), deposit(base), deposit(quote)]
    });
    venue.into_iter().chain(accounts)
}

/// A stream as commands, with what comes of them.
#[derive(Debug)]
pub struct Session {
    /// The commands.
    pub commands: Vec<Command>,
    /// Accounts that they name.
    pub users: u32,
    /// What a serial run makes of them.
    pub outcome: Outcome,
}

/// Turns a stream into commands. A client that reduces an order says what should be left of it, so the engine runs along to know that.
#[must_use]
pub fn session(records: &[Record], self_trade: SelfTrade) -> Session {
    let users = 1 + records.iter().map(|record| record.user).max().unwrap_or(0);
    let mut engine = open(users);
    let mut outcome = Outcome::default();
    let mut open: BTreeMap<u64, u64> = BTreeMap::new();
    let mut events = Vec::new();
    let mut next = |record: &Record| {
        let command = command(record, self_trade, open.get(&(record.id as u64)).copied().unwrap_or(0));
        events.clear();
        engine.apply(engine.last_applied().next(), STREAM_TIME, &command, &mut events);
        for event in &events {
            outcome.see(event);
            match event {
                Event::Order(OrderEvent::Accepted(order)) => drop(open.insert(order.client_order_id.0, order.resting.open.get())),
                Event::Order(OrderEvent::Amended(order)) => drop(open.insert(order.client_order_id.0, order.resting.open.get())),
                Event::Order(OrderEvent::Traded(trade)) => drop(open.insert(trade.maker.client_order_id.0, trade.maker.open.get())),
                Event::Order(OrderEvent::Cancelled(order)) => drop(open.remove(&order.client_order_id.0)),
                _ => {}
            }
        }
        command
    };
    let commands = records.iter().map(&mut next).collect();
    Session { commands, users, outcome }
}

fn command(record: &Record, self_trade: SelfTrade, open: u64) -> Command {
    let (account, instrument) = (AccountId(record.user), INSTRUMENT);
    let client_order_id = ClientOrderId(record.id as u64);
    let cancel = Command::Order(OrderCommand::Cancel(CancelOrder { account, instrument, client_order_id }));
    let amend = |price, size| {
        Command::Order(OrderCommand::Amend(AmendOrder {
            account,
            instrument,
            amendment: Amendment { client_order_id, price, trigger: None, size },
        }))
    };
    match record.op {
        Op::Gtc | Op::Ioc => {
            let limit = OrderTerms::limit(record.side(), PriceTicks::saturating(record.price), SizeLots::new(record.size as u64));
            let time_in_force = if record.op == Op::Gtc { TimeInForce::GoodTillCancel } else { TimeInForce::ImmediateOrCancel };
            Command::Order(OrderCommand::New(NewOrder {
                account,
                instrument,
                client_order_id,
                terms: OrderTerms { time_in_force, self_trade, ..limit },
            }))
        }
        Op::Cancel => cancel,
        Op::Move => amend(Some(PriceTicks::saturating(record.price)), None),
        Op::Reduce => match open.saturating_sub(record.size as u64) {
            0 => cancel,
            left => amend(None, Some(SizeLots::new(left))),
        },
    }
}

/// Applies a session on one thread; nanoseconds per command, and what came of it.
#[must_use]
pub fn serial(session: &Session) -> (f64, Outcome) {
    const EVENTS_MAX: usize = 1_024;
    let mut engine = open(session.users);
    let mut index: LogIndex = engine.last_applied();
    let mut events = Vec::with_capacity(2 * EVENTS_MAX);
    let mut outcome = Outcome::default();
    let begun = std::time::Instant::now();
    for command in &session.commands {
        index = index.next();
        engine.apply(index, STREAM_TIME, command, &mut events);
        if events.len() >= EVENTS_MAX {
            events.drain(..).for_each(|event| outcome.see(&event));
        }
    }
    events.iter().for_each(|event| outcome.see(event));
    (begun.elapsed().as_nanos() as f64 / session.commands.len() as f64, outcome)
}
