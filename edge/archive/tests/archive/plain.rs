//! A small market in which every number is known.

use walras_archive::Day;
use walras_types::{
    AccountId, Allocation, Amount, AssetId, ClientOrderId, FeeSchedule, InstrumentId, InstrumentSpec, LogIndex, OrderTerms,
    PriceTicks, RiskLimits, Side, SizeLots, Symbol, TimeNs, TradingPhase, TransferId,
};
use walras_wire::{AssetSpec, Command, NewOrder, SetTradingPhase, Transfer};

use super::world::{BEGIN_NS, Entry, Script};

/// A market of one instrument, in which two accounts may trade.
pub(crate) fn opening() -> Vec<Command> {
    let mut commands = Vec::new();
    for (asset, symbol, decimals) in [(0, "BTC", 8), (1, "USD", 6)] {
        commands.push(Command::CreateAsset(AssetSpec { asset: AssetId(asset), symbol: Symbol::new(symbol).unwrap(), decimals }));
    }
    for account in [0, 1].map(AccountId) {
        commands.push(Command::CreateAccount(account));
        for asset in [0, 1] {
            let (amount, transfer_id) = (Amount::new(1 << 50).unwrap(), TransferId(u64::from(asset) + 1));
            commands.push(Command::Deposit(Transfer { account, asset: AssetId(asset), amount, transfer_id }));
        }
    }
    let instrument = InstrumentId(0);
    commands.push(Command::CreateInstrument(InstrumentSpec {
        instrument,
        symbol: Symbol::new("BTC/USD").unwrap(),
        base: AssetId(0),
        quote: AssetId(1),
        // 0.001 BTC, and 0.5 USD per BTC.
        lot_units: 100_000,
        tick_value_units: 500,
        allocation: Allocation::PriceTime,
        fees: FeeSchedule { maker_ppm: 0, taker_ppm: 0 },
        collar_ppm: 1_000_000,
        band_ppm: 1_000_000,
        reference_price: PriceTicks::new(60_000).unwrap(),
        default_limits: RiskLimits::NONE,
    }));
    commands.push(Command::SetTradingPhase(SetTradingPhase { instrument, phase: TradingPhase::Continuous }));
    commands
}

pub(crate) fn order(account: u32, id: u64, side: Side, ticks: i64, size: u64) -> Command {
    let (price, instrument) = (PriceTicks::new(ticks).unwrap(), InstrumentId(0));
    let terms = OrderTerms::limit(side, price, SizeLots::new(size));
    Command::NewOrder(NewOrder { account: AccountId(account), instrument, client_order_id: ClientOrderId(id), terms })
}

/// Four trades, of which every number is known, and the next day's first entry.
pub(crate) fn plain() -> Script {
    let mut commands = opening();
    commands.push(order(0, 1, Side::Sell, 60_002, 5));
    commands.push(order(0, 2, Side::Sell, 60_003, 7));
    commands.push(order(0, 3, Side::Buy, 59_999, 4));
    commands.push(order(1, 1, Side::Buy, 60_002, 2));
    commands.push(order(1, 2, Side::Sell, 59_999, 1));
    commands.push(order(1, 3, Side::Buy, 60_010, 6));
    let mut entries: Vec<Entry> = Vec::new();
    for (at, command) in (0..).zip(commands) {
        entries.push((LogIndex(at + 1), TimeNs(BEGIN_NS + at * 700_000_000), command));
    }
    let tomorrow = Day::of(TimeNs(BEGIN_NS)).end();
    entries.push((LogIndex(entries.len() as u64 + 1), tomorrow, Command::Tick));
    Script::of(entries)
}
