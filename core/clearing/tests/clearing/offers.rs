//! What can stand, in which order, and who comes first among equals.

use walras_clearing::{
    AssetIndex, BatchMarket, BuyOffer, Change, MarketError, Offer, OfferError, OfferId, Pair, PairOffers, Pool, PoolIndex,
    PoolRule, Split, TieBreak,
};
use walras_types::{
    Amount, BatchPrice, Rounding,
    limits::{AMOUNT_MAX, ASSETS_MAX},
};

fn amount(units: u64) -> Amount {
    Amount::new(units).unwrap()
}

fn price(text: &str) -> BatchPrice {
    BatchPrice::from_decimal(text, Rounding::Up).unwrap()
}

fn offer(limit: &str, tie: u64, id: u64, units: u64) -> Offer {
    Offer::new(price(limit), tie, OfferId(id), amount(units)).unwrap()
}

const PAIR: Pair = Pair { sell: AssetIndex(0), buy: AssetIndex(1) };

#[test]
fn offers_that_can_never_trade_are_refused() {
    let new = |limit: BatchPrice, units: u64| Offer::new(limit, 0, OfferId(0), amount(units)).map(|offer| offer.key().limit);
    assert_eq!(new(BatchPrice::ONE, 0), Err(OfferError::ZeroAmount));
    assert_eq!(new(BatchPrice::MAX, 1), Err(OfferError::Unfillable));
    assert_eq!(new(price("2"), AMOUNT_MAX), Err(OfferError::Unfillable));
    assert_eq!(new(BatchPrice::ONE, AMOUNT_MAX), Ok(BatchPrice::ONE));
    // Ten units at 0.25 or better get three for all ten, or they stay.
    assert_eq!(new(price("0.25"), 10), Ok(price("0.3")));
    assert_eq!(new(BatchPrice::MIN, 4), Ok(price("0.25")));
    assert_eq!(new(BatchPrice::ZERO, 4), Ok(BatchPrice::ZERO));

    let buy = |limit: BatchPrice, bought: u64, sold_max: u64| {
        BuyOffer::new(limit, 0, OfferId(0), amount(bought), amount(sold_max)).map(|offer| offer.key().limit)
    };
    assert_eq!(buy(BatchPrice::ONE, 0, 1), Err(OfferError::ZeroAmount));
    assert_eq!(buy(BatchPrice::ONE, 1, 0), Err(OfferError::ZeroAmount));
    assert_eq!(buy(price("3"), 2, 9), Err(OfferError::Unfillable));
    // Ten bought at 3 or more for each sold: at most three sold, so 10/3.
    assert_eq!(buy(price("3"), 10, 100), BatchPrice::from_ratio(10, 3, Rounding::Up).map_err(|_| OfferError::Unfillable));
    assert_eq!(buy(BatchPrice::ZERO, 10, 4), Ok(price("2.5")));
}

#[test]
fn offers_stand_by_limit_then_tie_break_then_id() {
    let offers = vec![offer("2", 0, 1, 5), offer("1", 9, 2, 7), offer("1", 3, 4, 1), offer("1", 3, 3, 2)];
    let sorted = PairOffers::build(offers).unwrap();
    let ids: Vec<u64> = sorted.as_slice().iter().map(|offer| offer.key().id.0).collect();
    assert_eq!(ids, [3, 4, 2, 1]);
    assert_eq!([0, 1, 2, 3, 4].map(|count| sorted.units_of_first(count).get()), [0, 2, 3, 10, 15]);
    assert_eq!(sorted.units_at_or_below(BatchPrice::ZERO), amount(0));
    assert_eq!(sorted.units_at_or_below(price("1")), amount(10));
    assert_eq!(sorted.units_at_or_below(BatchPrice::MAX), amount(15));
    let split = |units: u64| sorted.split(amount(units)).map(|Split { full_count, part }| (full_count, part.get()));
    assert_eq!([split(0), split(1), split(2), split(3)], [Some((0, 0)), Some((0, 1)), Some((1, 0)), Some((2, 0))]);
    assert_eq!([split(9), split(10), split(15), split(16)], [Some((2, 6)), Some((3, 0)), Some((4, 0)), None]);
    let twice = vec![offer("1", 3, 4, 1), offer("1", 3, 4, 1)];
    assert_eq!(PairOffers::build(twice.clone()), Err(MarketError::DuplicateOffer(twice[0].key())));
}

#[test]
fn buy_offers_may_want_more_than_there_can_be() {
    let huge = |id: u64| BuyOffer::new(BatchPrice::ZERO, 0, OfferId(id), Amount::MAX, amount(1)).unwrap();
    let offers = PairOffers::build(vec![huge(1), huge(2), huge(3)]).unwrap();
    assert_eq!([1, 2, 3].map(|count| offers.units_of_first(count)), [Amount::MAX; 3]);
    assert_eq!(offers.split(Amount::MAX), Some(Split { full_count: 1, part: Amount::ZERO }));
    assert_eq!(offers.split(amount(AMOUNT_MAX - 1)), Some(Split { full_count: 0, part: amount(AMOUNT_MAX - 1) }));
}

#[test]
fn a_market_that_is_none_is_refused() {
    let pair = |sell: u16, buy: u16| Pair { sell: AssetIndex(sell), buy: AssetIndex(buy) };
    let build = |count: usize, offers: &[(Pair, Offer)], pools: Vec<Pool>| BatchMarket::build(count, offers, &[], pools).map(drop);
    let one = offer("1", 0, 0, 1);
    assert_eq!(build(2, &[(pair(0, 2), one)], vec![]), Err(MarketError::UnknownAsset(AssetIndex(2))));
    assert_eq!(build(2, &[(pair(1, 1), one)], vec![]), Err(MarketError::EqualAssets(AssetIndex(1))));
    assert_eq!(build(0, &[(PAIR, one)], vec![]), Err(MarketError::UnknownAsset(AssetIndex(0))));
    assert_eq!(build(5_000, &[], vec![]), Err(MarketError::TooManyAssets(5_000)));
    let all = offer("1", 0, 1, AMOUNT_MAX);
    assert_eq!(build(3, &[(PAIR, one), (pair(0, 2), all)], vec![]), Err(MarketError::TooMuchOffered(AssetIndex(0))));
    let pool = |reserve: u64, fee_ppm: u32| Pool {
        assets: [AssetIndex(0), AssetIndex(1)],
        rule: PoolRule::ConstantProduct,
        reserves: [amount(reserve); 2],
        fee_ppm,
    };
    assert_eq!(build(2, &[(PAIR, all)], vec![pool(1, 0)]), Err(MarketError::TooMuchOffered(AssetIndex(0))));
    assert_eq!(build(2, &[], vec![pool(1, 0), pool(0, 0)]), Err(MarketError::InvalidPool(PoolIndex(1))));
    assert_eq!(build(2, &[], vec![pool(1, 1_000_000)]), Err(MarketError::InvalidPool(PoolIndex(0))));
    assert_eq!(build(1, &[], vec![pool(1, 0)]), Err(MarketError::UnknownAsset(AssetIndex(1))));
    assert_eq!(build(2, &[(PAIR, all)], vec![]), Ok(()));
    assert_eq!(build(0, &[], vec![]), Ok(()));
}

#[test]
fn a_refused_change_changes_nothing() {
    let mut market = BatchMarket::build(2, &[(PAIR, offer("1", 0, 1, 5))], &[], vec![]).unwrap();
    let before = market.clone();
    let key = offer("1", 0, 1, 5).key();
    let mut change = |removed: Vec<_>, added: Vec<Offer>| market.change_pair(PAIR, Change { removed, added }, Change::default());
    assert_eq!(change(vec![], vec![offer("1", 0, 1, 9)]), Err(MarketError::DuplicateOffer(key)));
    assert_eq!(change(vec![key, key], vec![]), Err(MarketError::UnknownOffer(key)));
    let other = offer("1", 0, 2, 5).key();
    assert_eq!(change(vec![other], vec![]), Err(MarketError::UnknownOffer(other)));
    assert_eq!(change(vec![], vec![offer("1", 0, 2, AMOUNT_MAX)]), Err(MarketError::TooMuchOffered(AssetIndex(0))));
    assert_eq!(market, before);
    // An offer may be replaced by what a part left of it, under the same key.
    market.change_pair(PAIR, Change { removed: vec![key], added: vec![offer("1", 0, 1, 2)] }, Change::default()).unwrap();
    assert_eq!((market.for_sale(AssetIndex(0)), market.for_sale(AssetIndex(1))), (amount(2), amount(0)));
    market.change_pair(PAIR, Change { removed: vec![key], added: vec![] }, Change::default()).unwrap();
    assert_eq!(market, BatchMarket::build(2, &[], &[], vec![]).unwrap());
}

/// SipHash-1-3 under the key zero is what the standard library's default hasher computes today.
#[test]
fn the_tie_break_is_siphash() {
    let zero = TieBreak::new(&[0; 32]);
    assert_eq!(zero.of(0, OfferId(0)), 0x76be_999e_3e25_b2a0);
    assert_eq!(zero.of(1, OfferId(2)), 0xfb05_8313_e620_1d48);
}

/// Whatever ids an account chooses before the key is known, it comes first as often as everybody else.
#[test]
fn nobody_chooses_their_place() {
    const ACCOUNTS: u64 = 8;
    const BATCHES: u64 = 8_000;
    let ids: [fn(u64) -> u64; 4] = [|_| 0, |account| account, |account| u64::MAX - account, |account| account << 32];
    for id in ids {
        let mut wins = [0_u64; ACCOUNTS as usize];
        for batch in 0..BATCHES {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&batch.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes());
            let draws = TieBreak::new(&hash);
            let first = (0..ACCOUNTS).min_by_key(|&account| draws.of(account, OfferId(id(account)))).unwrap();
            wins[first as usize] += 1;
        }
        // Six standard deviations of 1,000 wins each.
        assert!(wins.iter().all(|&count| (822..1_178).contains(&count)), "{wins:?}");
    }
}

#[test]
fn pairs_stand_in_order_up_to_the_last_asset_and_the_highest_limit() {
    let last = u16::try_from(ASSETS_MAX - 1).unwrap();
    let pairs = [(last, last - 1), (last, 0), (last - 1, last), (0, last), (1, 0), (0, 1)]
        .map(|(sell, buy)| Pair { sell: AssetIndex(sell), buy: AssetIndex(buy) });
    let limits = [price("4611686018427387904"), BatchPrice::ZERO, price("1")];
    let of_pair = |pair| (0..).zip(limits).map(move |(id, limit)| (pair, Offer::new(limit, 0, OfferId(id), amount(1)).unwrap()));
    let offers: Vec<(Pair, Offer)> = pairs.into_iter().flat_map(of_pair).collect();
    let market = BatchMarket::build(usize::from(last) + 1, &offers, &[], vec![]).unwrap();
    let mut expected = pairs.to_vec();
    expected.sort();
    assert_eq!(market.books().iter().map(|book| book.pair()).collect::<Vec<_>>(), expected);
    for book in market.books() {
        let ids: Vec<u64> = book.sells().as_slice().iter().map(|offer| offer.key().id.0).collect();
        assert_eq!(ids, [1, 2, 0]);
    }
}
