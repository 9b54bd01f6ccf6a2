//! Batch markets with currencies: how many assets they may have, which pairs, and that a restored engine has the same.

use walras_engine::Engine;
use walras_engine::versions::NEWEST;
use walras_types::*;
use walras_wire::*;

use crate::venue::{USD, Venue, opening};

const MARKET: BatchMarketId = BatchMarketId(0);
const ASSETS: u32 = 1_030;

/// A venue with so many assets and a market that has none.
fn venue() -> Venue {
    let mut venue = Venue::new();
    let mut commands = opening(1, 1_000_000, &[]);
    let known = commands.iter().filter(|command| matches!(command, Command::Venue(VenueCommand::CreateAsset(_)))).count();
    for asset in (known as u32..ASSETS).map(AssetId) {
        let spec = AssetSpec { asset, symbol: Symbol::new(&format!("S{}", asset.0)).unwrap(), decimals: 2 };
        commands.push(Command::Venue(VenueCommand::CreateAsset(spec)));
    }
    commands.push(Command::BatchMarket(BatchMarketCommand::Create(BatchMarketSpec {
        market: MARKET,
        symbol: Symbol::new("MAIN").unwrap(),
        commission: Commission::new(15).unwrap(),
        mu: Mu::new(10).unwrap(),
        lower_bounds: LowerBounds::BestEffort,
        quality: QualityMax::NONE,
        intake: Intake::Filter,
        interval_ns: 500_000_000,
        transactions_max: 100,
        domain: [7; 32],
    })));
    for command in commands {
        assert_eq!(refused(&mut venue, command), None, "{command:?}");
    }
    venue
}

fn refused(venue: &mut Venue, command: Command) -> Option<RejectReason> {
    venue.apply(command).iter().find_map(|event| match event {
        Event::Rejected(rejected) => Some(rejected.reason),
        _ => None,
    })
}

fn set(currencies: u16) -> Command {
    Command::BatchMarket(BatchMarketCommand::SetCurrencies(SetBatchCurrencies { market: MARKET, currencies }))
}

fn add(asset: u32) -> Command {
    Command::BatchMarket(BatchMarketCommand::AddAsset(AddBatchAsset { market: MARKET, asset: AssetId(asset) }))
}

fn open() -> Command {
    Command::BatchMarket(BatchMarketCommand::SetPhase(SetBatchPhase { market: MARKET, phase: BatchPhase::Open }))
}

fn restored(venue: &Venue) -> Venue {
    let mut bytes = Vec::new();
    venue.engine.snapshot(&mut bytes);
    let mut engine = Engine::restore(&bytes).unwrap();
    assert_eq!(engine.state_hash(), venue.engine.state_hash());
    let mut frozen = Vec::new();
    engine.freeze().snapshot(&mut frozen);
    assert!(frozen == bytes, "what is kept for a snapshot has all of the state");
    Venue { engine, now: venue.now }
}

#[test]
fn ten_currencies_have_a_thousand_and_nineteen_stocks_and_no_pair_of_two() {
    let mut venue = venue();
    assert_eq!((refused(&mut venue, set(10)), set(10).since()), (Some(RejectReason::NeedsLaterVersion), EngineVersion(13)));
    venue.apply(Command::Venue(VenueCommand::SetEngineVersion(NEWEST)));
    for impossible in [0, 101, u16::MAX] {
        assert_eq!(refused(&mut venue, set(impossible)), Some(RejectReason::BatchAssetsInvalid), "{impossible}");
    }
    let events = venue.apply(set(10));
    let said = BatchMarketEvent::CurrenciesSet(BatchCurrenciesSet { market: MARKET, currencies: 10 });
    assert_eq!(events, [Event::BatchMarket(said)]);
    for asset in 0..1_029 {
        assert_eq!(refused(&mut venue, add(asset)), None, "{asset}");
        if asset == 3 {
            assert_eq!(refused(&mut restored(&venue), open()), Some(RejectReason::BatchAssetsInvalid), "fewer than currencies");
        }
    }
    assert_eq!(refused(&mut venue, add(1_029)), Some(RejectReason::BatchAssetsInvalid), "20,490 pairs");
    assert_eq!(refused(&mut venue, set(11)), Some(RejectReason::BatchAssetsInvalid), "too many for these assets");
    // Before and after it is opened a restored engine has the same market.
    let mut venue = restored(&venue);
    assert_eq!(venue.engine.batch_market(MARKET).unwrap().currencies, Some(10));
    assert_eq!(refused(&mut venue, open()), None);
    assert_eq!(refused(&mut venue, set(9)), Some(RejectReason::BatchAssetsFixed));
    let venue = restored(&venue);
    let pair = |sell, buy| venue.engine.batch_pair(MARKET, AssetId(sell), AssetId(buy)).is_some();
    assert!(pair(0, 9) && pair(9, 1_028) && pair(1_028, 0));
    assert!(!pair(10, 1_028) && !pair(10, 10) && !pair(0, 1_029));
    let offer = |sell, buy| {
        let (sell, buy, amount) = (AssetId(sell), AssetId(buy), Amount::new(5).unwrap());
        let offer = BatchOperation::CreateOffer(CreateOffer { market: MARKET, sell, buy, amount, limit: BatchPrice::ONE });
        venue.engine.check_transaction(MARKET, &BatchTransaction::new(AccountId(0), TransactionSeq(1), offer))
    };
    assert_eq!((offer(10, 11), offer(10, 9), offer(9, 9)), (Err(DropReason::NoSuchPair), Ok(()), Err(DropReason::EqualAssets)));
    assert_eq!(offer(0, 1_029), Err(DropReason::UnknownAsset));
    venue.engine.check_invariants();
}

#[test]
fn without_currencies_a_market_has_a_hundred_assets() {
    let mut venue = venue();
    venue.apply(Command::Venue(VenueCommand::SetEngineVersion(NEWEST)));
    (0..100).for_each(|asset| assert_eq!(refused(&mut venue, add(asset)), None, "{asset}"));
    assert_eq!(refused(&mut venue, add(100)), Some(RejectReason::BatchAssetsInvalid));
    assert_eq!(venue.engine.batch_market(MARKET).unwrap().currencies, None);
    // As many currencies as assets is what it is without.
    assert_eq!(refused(&mut venue, set(100)), None);
    assert_eq!(refused(&mut venue, open()), None);
    assert!(restored(&venue).engine.batch_pair(MARKET, AssetId(99), USD).is_some());
}
