//! A small market in which every number can be worked out by hand: instrument 0, BTC for USD, between accounts 0 and 1. A lot is 0.001 BTC,
//! a tick 0.5 USD for one BTC; nobody pays fees.

use walras_types::{
    AccountId, Allocation, Amount, AssetId, ClientOrderId, FeeSchedule, InstrumentId, InstrumentSpec, OrderTerms, PriceTicks,
    RiskLimits, Side, SizeLots, Symbol, TradingPhase, TransferId,
};
use walras_wire::{
    AccountCommand, AssetSpec, Command, InstrumentCommand, NewOrder, OrderCommand, SetTradingPhase, Transfer, VenueCommand,
};

/// What makes it: ten commands, after which it trades. Each account has 2^50 units of both assets.
#[must_use]
pub fn opening() -> Vec<Command> {
    let symbol = |name| Symbol::new(name).expect("the names below are symbols");
    let mut commands = Vec::new();
    for (asset, name, decimals) in [(0, "BTC", 8), (1, "USD", 6)] {
        commands.push(Command::Venue(VenueCommand::CreateAsset(AssetSpec {
            asset: AssetId(asset),
            symbol: symbol(name),
            decimals,
        })));
    }
    for account in [0, 1].map(AccountId) {
        commands.push(Command::Account(AccountCommand::Create(account)));
        for asset in [0, 1] {
            let (amount, transfer_id) = (Amount::new(1 << 50).expect("it is small enough"), TransferId(u64::from(asset) + 1));
            commands.push(Command::Account(AccountCommand::Deposit(Transfer {
                account,
                asset: AssetId(asset),
                amount,
                transfer_id,
            })));
        }
    }
    let instrument = InstrumentId(0);
    commands.push(Command::Instrument(InstrumentCommand::Create(InstrumentSpec {
        instrument,
        symbol: symbol("BTC/USD"),
        base: AssetId(0),
        quote: AssetId(1),
        lot_units: 100_000,
        tick_value_units: 500,
        allocation: Allocation::PriceTime,
        fees: FeeSchedule { maker_ppm: 0, taker_ppm: 0 },
        collar_ppm: 1_000_000,
        band_ppm: 1_000_000,
        reference_price: ticks(60_000),
        default_limits: RiskLimits::NONE,
    })));
    commands
        .push(Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase { instrument, phase: TradingPhase::Continuous })));
    commands
}

/// A limit order in it.
#[must_use]
pub fn order(account: u32, id: u64, side: Side, price_ticks: i64, size_lots: u64) -> Command {
    let terms = OrderTerms::limit(side, ticks(price_ticks), SizeLots::new(size_lots));
    let (account, instrument) = (AccountId(account), InstrumentId(0));
    Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id: ClientOrderId(id), terms }))
}

fn ticks(price: i64) -> PriceTicks {
    PriceTicks::new(price).expect("prices of tests are prices")
}

#[cfg(test)]
mod tests {
    use walras_engine::Engine;
    use walras_types::{LogIndex, TimeNs};
    use walras_wire::{Event, OrderEvent};

    use super::*;

    #[test]
    fn it_trades() {
        let (mut engine, mut events) = (Engine::new(), Vec::new());
        let crossing = [order(0, 1, Side::Sell, 60_000, 3), order(1, 1, Side::Buy, 60_000, 2)];
        for (at, command) in (1..).zip(opening().iter().chain(&crossing)) {
            engine.apply(LogIndex(at), TimeNs(at), command, &mut events);
        }
        assert!(!events.iter().any(|event| matches!(event, Event::Rejected(_))), "{events:?}");
        assert_eq!(events.iter().filter(|event| matches!(event, Event::Order(OrderEvent::Traded(_)))).count(), 1);
    }
}
