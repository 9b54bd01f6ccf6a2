//! A venue to write scenarios on: applies commands one after another and checks the whole state after each.

use std::collections::{BTreeMap, BTreeSet};

use walras_engine::{ChangedLevel, DepthLevel, Engine, Numbered};
use walras_order_book::{Ladder, Level, PriceIndex, Rank};
use walras_types::*;
use walras_wire::*;

/// The simplest price index: what the engine emits may not depend on which one its books use.
#[derive(Default)]
pub struct MapIndex(BTreeMap<Rank, Level>);

impl PriceIndex for MapIndex {
    fn best(&self) -> Rank {
        self.0.last_key_value().map_or(Rank::BOTTOM, |(rank, _)| *rank)
    }
    fn next_worse(&self, than: Rank) -> Rank {
        self.0.range(..than).next_back().map_or(Rank::BOTTOM, |(rank, _)| *rank)
    }
    fn get(&self, rank: Rank) -> Option<&Level> {
        self.0.get(&rank)
    }
    fn level_mut(&mut self, rank: Rank) -> &mut Level {
        self.0.get_mut(&rank).unwrap()
    }
    fn get_or_insert(&mut self, rank: Rank) -> &mut Level {
        self.0.entry(rank).or_default()
    }
    fn remove(&mut self, rank: Rank) {
        self.0.remove(&rank).unwrap();
    }
    fn level_count(&self) -> usize {
        self.0.len()
    }
    fn check_invariants(&self) {}
}

pub struct Venue<I: PriceIndex = Ladder> {
    pub engine: Engine<I>,
    pub now: TimeNs,
}

impl<I: PriceIndex> Venue<I> {
    pub fn new() -> Self {
        Self { engine: Engine::with_hash_seed(7), now: TimeNs(1) }
    }

    /// Applies a command, and gives its events.
    pub fn apply(&mut self, command: Command) -> Vec<Event> {
        let mut events = Vec::new();
        let before = shown(&self.engine);
        self.engine.apply(self.engine.last_applied().next(), self.now, &command, &mut events);
        self.engine.check_invariants();
        self.check_changed_levels(&before, &events);
        events
    }

    /// Applies a command, and gives why it was rejected, if it was.
    pub fn refused(&mut self, command: Command) -> Option<RejectReason> {
        self.apply(command).iter().find_map(|event| match event {
            Event::Rejected(rejected) => Some(rejected.reason),
            _ => None,
        })
    }

    /// Applies commands of which none is rejected.
    pub fn take_all(&mut self, commands: impl IntoIterator<Item = Command>) {
        for command in commands {
            assert_eq!(self.refused(command), None, "{command:?}");
        }
    }

    /// Applies a session's command, and gives what became of it and its events.
    pub fn apply_numbered(&mut self, ordinal: Ordinal, command: Command) -> (Numbered, Vec<Event>) {
        let mut events = Vec::new();
        let before = shown(&self.engine);
        let became = self.engine.apply_numbered(self.engine.last_applied().next(), self.now, ordinal, &command, &mut events);
        self.engine.check_invariants();
        self.check_changed_levels(&before, &events);
        (became, events)
    }

    /// The engine names every level of which it changed what it shows, and none where only hidden orders came and went.
    fn check_changed_levels(&self, before: &Shown, events: &[Event]) {
        let after = shown(&self.engine);
        let told: BTreeSet<ChangedLevel> = self.engine.changed_levels().collect();
        for level in before.keys().chain(after.keys()) {
            assert!(before.get(level) == after.get(level) || told.contains(level), "{level:?} changed untold: {events:#?}");
        }
        // A stop that entered may have stood, and traded with the next, within the command.
        let has_stops = events.iter().any(|event| matches!(event, Event::Order(OrderEvent::Triggered(_))));
        for level in &told {
            let price = self.engine.level(level.instrument, level.side, level.price);
            assert_eq!(price.as_ref(), after.get(level), "what a level shows alone and in the depth");
            assert!(has_stops || before.contains_key(level) || price.is_some(), "{level:?} was never shown: {events:#?}");
        }
        for instrument in self.engine.instruments().map(|view| view.spec.instrument) {
            for side in Side::BOTH {
                let mut depth = Vec::new();
                self.engine.depth(instrument, side, 1, &mut depth);
                assert_eq!(self.engine.best_level(instrument, side), depth.first().copied());
            }
        }
    }
}

impl Venue {
    /// A start from the snapshot of the state as it is.
    pub fn restored(&self) -> Self {
        let mut bytes = Vec::new();
        self.engine.snapshot(&mut bytes);
        let mut engine = Engine::restore(&bytes).unwrap();
        assert_eq!(engine.state_hash(), self.engine.state_hash());
        let mut frozen = Vec::new();
        engine.freeze().snapshot(&mut frozen);
        assert!(frozen == bytes, "what is kept for a snapshot has all of the state");
        Self { engine, now: self.now }
    }
}

type Shown = BTreeMap<ChangedLevel, DepthLevel>;

/// What every price shows.
fn shown<I: PriceIndex>(engine: &Engine<I>) -> Shown {
    let mut all = Shown::new();
    let mut depth = Vec::new();
    for instrument in engine.instruments().map(|view| view.spec.instrument) {
        for side in Side::BOTH {
            engine.depth(instrument, side, usize::MAX, &mut depth);
            all.extend(depth.drain(..).map(|level| (ChangedLevel { instrument, side, price: level.price }, level)));
        }
    }
    all
}

pub const BTC: AssetId = AssetId(0);
pub const USD: AssetId = AssetId(1);
pub const EUR: AssetId = AssetId(2);

pub fn ticks(price: i64) -> PriceTicks {
    PriceTicks::new(price).unwrap()
}

pub fn lots(size: u64) -> SizeLots {
    SizeLots::new(size)
}

pub fn units(amount: u64) -> Amount {
    Amount::new(amount).unwrap()
}

/// One lot is one unit, one tick on a lot is one unit; no fees, and a collar and band of all prices up to twice the reference.
pub fn spec(id: u32) -> InstrumentSpec {
    InstrumentSpec {
        instrument: InstrumentId(id),
        symbol: Symbol::new(["BTC/USD", "BTC/EUR", "EUR/USD"][id as usize]).unwrap(),
        base: [BTC, BTC, EUR][id as usize],
        quote: [USD, EUR, USD][id as usize],
        lot_units: 1,
        tick_value_units: 1,
        allocation: Allocation::PriceTime,
        fees: FeeSchedule { maker_ppm: 0, taker_ppm: 0 },
        collar_ppm: 1_000_000,
        band_ppm: 1_000_000,
        reference_price: ticks(100),
        default_limits: RiskLimits::NONE,
    }
}

/// Commands that create three assets, `accounts` accounts with `amount` of each (of BTC a fiftieth), and the instruments.
pub fn opening(accounts: u32, amount: u64, specs: &[InstrumentSpec]) -> Vec<Command> {
    let mut commands = Vec::new();
    for (asset, symbol) in [(BTC, "BTC"), (USD, "USD"), (EUR, "EUR")] {
        commands.push(Command::Venue(VenueCommand::CreateAsset(AssetSpec {
            asset,
            symbol: Symbol::new(symbol).unwrap(),
            decimals: 2,
        })));
    }
    for account in (0..accounts).map(AccountId) {
        commands.push(Command::Account(AccountCommand::Create(account)));
        for asset in [BTC, USD, EUR] {
            let transfer_id = TransferId(u64::from(asset.0));
            let amount = if asset == BTC { amount / 50 } else { amount };
            commands.push(Command::Account(AccountCommand::Deposit(Transfer {
                account,
                asset,
                amount: units(amount),
                transfer_id,
            })));
        }
    }
    commands.extend(specs.iter().copied().map(|c| Command::Instrument(InstrumentCommand::Create(c))));
    commands
}

pub fn phase(id: u32, phase: TradingPhase) -> Command {
    Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase { instrument: InstrumentId(id), phase }))
}
