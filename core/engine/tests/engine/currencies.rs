//! Batch markets with currencies: how many assets they may have, which pairs, and that a restored engine has the same.

use walras_engine::versions::NEWEST;
use walras_types::*;
use walras_wire::*;

use crate::batch_market::{MARKET, add, create, open};
use crate::venue::{USD, Venue, opening};

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
    commands.push(create());
    venue.take_all(commands);
    venue
}

fn set(currencies: u16) -> Command {
    Command::BatchMarket(BatchMarketCommand::SetCurrencies(SetBatchCurrencies { market: MARKET, currencies }))
}

#[test]
fn ten_currencies_have_a_thousand_and_nineteen_stocks_and_no_pair_of_two() {
    let mut venue = venue();
    assert_eq!((venue.refused(set(10)), set(10).since()), (Some(RejectReason::NeedsLaterVersion), EngineVersion(13)));
    venue.apply(Command::Venue(VenueCommand::SetEngineVersion(NEWEST)));
    for impossible in [0, 101, u16::MAX] {
        assert_eq!(venue.refused(set(impossible)), Some(RejectReason::BatchAssetsInvalid), "{impossible}");
    }
    let events = venue.apply(set(10));
    let said = BatchMarketEvent::CurrenciesSet(BatchCurrenciesSet { market: MARKET, currencies: 10 });
    assert_eq!(events, [Event::BatchMarket(said)]);
    for asset in 0..1_029 {
        assert_eq!(venue.refused(add(AssetId(asset))), None, "{asset}");
        if asset == 3 {
            assert_eq!(venue.restored().refused(open()), Some(RejectReason::BatchAssetsInvalid), "fewer than currencies");
        }
    }
    assert_eq!(venue.refused(add(AssetId(1_029))), Some(RejectReason::BatchAssetsInvalid), "20,490 pairs");
    assert_eq!(venue.refused(set(11)), Some(RejectReason::BatchAssetsInvalid), "too many for these assets");
    // Before and after it is opened a restored engine has the same market.
    let mut venue = venue.restored();
    assert_eq!(venue.engine.batch_market(MARKET).unwrap().currencies, Some(10));
    assert_eq!(venue.refused(open()), None);
    assert_eq!(venue.refused(set(9)), Some(RejectReason::BatchAssetsFixed));
    let venue = venue.restored();
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
    (0..100).for_each(|asset| assert_eq!(venue.refused(add(AssetId(asset))), None, "{asset}"));
    assert_eq!(venue.refused(add(AssetId(100))), Some(RejectReason::BatchAssetsInvalid));
    assert_eq!(venue.engine.batch_market(MARKET).unwrap().currencies, None);
    // As many currencies as assets is what it is without.
    assert_eq!(venue.refused(set(100)), None);
    assert_eq!(venue.refused(open()), None);
    assert!(venue.restored().engine.batch_pair(MARKET, AssetId(99), USD).is_some());
}
