//! A small market in which every number can be worked out by hand: instrument 0, BTC for USD, between accounts 0 and 1. A lot is 0.001 BTC,
//! a tick 0.5 USD for one BTC; nobody pays fees. And a batch market.

use walras_types::{
    AccountId, Allocation, Amount, AssetId, BatchMarketId, BatchPhase, ClientOrderId, Commission, EngineVersion, FeeSchedule,
    InstrumentId, InstrumentSpec, Intake, LowerBounds, Mu, OrderTerms, OrderType, PriceTicks, QualityMax, RiskLimits, Side,
    SizeLots, Symbol, TradingPhase, TransferId,
};
use walras_wire::{
    AccountCommand, AddBatchAsset, AssetSpec, BatchMarketCommand, BatchMarketSpec, Command, Event, InstrumentCommand, LinkedOrder,
    NewOrder, OrderCommand, OrderEvent, SetBatchPhase, SetTradingPhase, Transfer, VenueCommand,
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

/// A batch market with a filter and little commission, a block each millisecond.
#[must_use]
pub fn batch_market(market: BatchMarketId) -> BatchMarketSpec {
    BatchMarketSpec {
        market,
        symbol: Symbol::new("MAIN").expect("a symbol"),
        commission: Commission::new(15).expect("a commission"),
        mu: Mu::new(10).expect("a share"),
        lower_bounds: LowerBounds::BestEffort,
        quality: QualityMax::USUAL,
        intake: Intake::Filter,
        interval_ns: 1_000_000,
        transactions_max: 100,
        domain: [7; 32],
    }
}

/// What makes a batch market, gives it these assets and opens it.
#[must_use]
pub fn batch_opening(spec: BatchMarketSpec, assets: impl IntoIterator<Item = AssetId>) -> Vec<Command> {
    let market = spec.market;
    let mut commands = vec![BatchMarketCommand::Create(spec)];
    commands.extend(assets.into_iter().map(|asset| BatchMarketCommand::AddAsset(AddBatchAsset { market, asset })));
    commands.push(BatchMarketCommand::SetPhase(SetBatchPhase { market, phase: BatchPhase::Open }));
    commands.into_iter().map(Command::BatchMarket).collect()
}

/// A limit order in the small market.
#[must_use]
pub fn order(account: u32, id: u64, side: Side, price_ticks: i64, size_lots: u64) -> Command {
    let terms = OrderTerms::limit(side, ticks(price_ticks), SizeLots::new(size_lots));
    let (account, instrument) = (AccountId(account), InstrumentId(0));
    Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id: ClientOrderId(id), terms }))
}

/// Five commands after it: account 1 buys four lots by an order that trades twice at once and has an exit, which then stands for both
/// trades.
#[must_use]
pub fn bracket() -> Vec<Command> {
    let (side, trigger, size) = (Side::Sell, ticks(59_000), SizeLots::new(4));
    let terms = OrderTerms { order_type: OrderType::Stop { trigger }, ..OrderTerms::limit(side, trigger, size) };
    let exit = NewOrder { account: AccountId(1), instrument: InstrumentId(0), client_order_id: ClientOrderId(2), terms };
    vec![
        // The first that has brackets.
        Command::Venue(VenueCommand::SetEngineVersion(EngineVersion(13))),
        order(0, 1, Side::Sell, 60_001, 3),
        order(0, 2, Side::Sell, 60_002, 1),
        Command::Order(OrderCommand::NewLinked(LinkedOrder::exit(&exit, ClientOrderId(1), None))),
        order(1, 1, Side::Buy, 60_002, 4),
    ]
}

/// The events of an entry as an engine may give them that lets exits follow each trade of their entry, and not all of them together: right
/// behind the first trade.
#[must_use]
pub fn with_exits_in_between(events: &[Event]) -> Vec<Event> {
    let is_trade = |event: &Event| matches!(event, Event::Order(OrderEvent::Traded(_)));
    let first = events.iter().position(is_trade).map_or(events.len(), |trade| trade + 1);
    let (before, behind) = events.split_at(first);
    let (exits, rest): (Vec<Event>, Vec<Event>) =
        behind.iter().copied().partition(|event| matches!(event, Event::Order(OrderEvent::Amended(_))));
    [before, &exits[..], &rest[..]].concat()
}

fn ticks(price: i64) -> PriceTicks {
    PriceTicks::new(price).expect("prices of tests are prices")
}

#[cfg(test)]
mod tests {
    use walras_engine::Engine;
    use walras_types::{LogIndex, TimeNs};

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

    #[test]
    fn an_exit_grows_as_its_entry_trades() {
        let (mut engine, mut events) = (Engine::new(), Vec::new());
        for (at, command) in (1..).zip(opening().iter().chain(&bracket())) {
            events.clear();
            engine.apply(LogIndex(at), TimeNs(at), command, &mut events);
            assert!(!events.iter().any(|event| matches!(event, Event::Rejected(_))), "{events:?}");
        }
        let kinds = |events: &[Event]| -> String {
            let kind = |event: &Event| match event {
                Event::Order(OrderEvent::Accepted(_)) => 'a',
                Event::Order(OrderEvent::Traded(_)) => 't',
                Event::Order(OrderEvent::Amended(_)) => 'm',
                other => panic!("{other:?}"),
            };
            events.iter().map(kind).collect()
        };
        assert_eq!((kinds(&events), kinds(&with_exits_in_between(&events))), ("attm".to_owned(), "atmt".to_owned()));
    }
}
