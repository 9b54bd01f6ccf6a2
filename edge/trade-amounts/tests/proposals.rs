//! Whatever stands in a market and whatever the prices: what is proposed is what the core accepts.
#![allow(clippy::unwrap_used)] // Helpers of tests are not recognised as tests.

use proptest::prelude::*;
use walras_clearing::{
    AssetIndex, BatchMarket, BuyOffer, Edition, LowerBounds, Offer, OfferId, Pair, Pool, PoolRule, Proposal, Rules, Verified,
    verify,
};
use walras_trade_amounts::{AmountsFinder, Proposed, Relaxed, propose};
use walras_types::{Amount, BatchPrice, Commission, Mu};

#[derive(Clone, Debug)]
struct Case {
    market: BatchMarket,
    prices: Vec<Option<BatchPrice>>,
    rules: Rules,
}

fn amount(units: u64) -> Amount {
    Amount::new(units).unwrap()
}

fn price(value: f64) -> Option<BatchPrice> {
    BatchPrice::from_bits(value.to_bits()).ok()
}

/// Few units, many, and almost too many.
fn units() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 1..20_u64, 4 => 1..1_000_000_u64, 1 => 1..1_u64 << 40, 1 => 1..1_u64 << 58]
}

fn valuation() -> impl Strategy<Value = Option<BatchPrice>> {
    let exponent = prop_oneof![4 => -2.0..2.0_f64, 2 => -40.0..40.0_f64, 1 => -126.0..126.0_f64];
    prop_oneof![
        8 => exponent.prop_map(|exponent| price(exponent.exp2())),
        2 => (-3..3_i32).prop_map(|exponent| price(f64::from(exponent).exp2())),
        1 => Just(None),
        1 => Just(Some(BatchPrice::MAX)),
        1 => Just(Some(BatchPrice::MIN)),
    ]
}

fn rules() -> impl Strategy<Value = Rules> {
    let commission = prop_oneof![2 => Just(Commission::NONE), 3 => (1..=30_u8).prop_map(|k| Commission::new(k).unwrap())];
    (commission, 1..=30_u8).prop_map(|(commission, mu)| Rules {
        edition: Edition::NEWEST,
        commission,
        mu: Mu::new(mu).unwrap(),
        lower_bounds: LowerBounds::BestEffort,
    })
}

/// An offer as it is drawn: the pair, units, how far its limit is from the rate, and whether it buys.
type Drawn = (u16, u16, u64, f64, u8);

fn cases() -> impl Strategy<Value = Case> {
    (2..=7_u16).prop_flat_map(|asset_count| {
        let nearness = prop_oneof![4 => -0.02..0.005_f64, 1 => Just(0.0), 1 => -3.0..3.0_f64];
        let offers = prop::collection::vec((0..asset_count, 1..asset_count, units(), nearness, 0..8_u8), 0..60);
        let pools = prop::collection::vec((0..asset_count, 1..asset_count, units(), units(), 0..20_000_u32), 0..3);
        let prices = prop::collection::vec(valuation(), asset_count as usize);
        (Just(asset_count), offers, pools, prices, rules()).prop_map(|(asset_count, offers, pools, prices, rules)| {
            let market = market(asset_count, &offers, &pools, &prices);
            Case { market, prices, rules }
        })
    })
}

fn market(asset_count: u16, drawn: &[Drawn], pools: &[(u16, u16, u64, u64, u32)], prices: &[Option<BatchPrice>]) -> BatchMarket {
    let pair = |sell: u16, step: u16| Pair { sell: AssetIndex(sell), buy: AssetIndex((sell + step) % asset_count) };
    let value = |asset: AssetIndex| prices[asset.index()].map_or(1.0, |price| f64::from_bits(price.bits()));
    let (mut sells, mut buys) = (Vec::new(), Vec::new());
    for (index, &(sell, step, units, nearness, kind)) in (0..).zip(drawn) {
        let pair = pair(sell, step);
        let rate = value(pair.sell) / value(pair.buy);
        let limit = if kind == 7 { BatchPrice::ZERO } else { price(rate * (1.0 + nearness).abs()).unwrap_or(BatchPrice::ZERO) };
        let id = OfferId(index);
        if kind == 6 {
            let wanted = (units as f64 * rate).clamp(1.0, 1e18) as u64;
            buys.extend(BuyOffer::new(limit, index % 3, id, amount(wanted), amount(units)).ok().map(|offer| (pair, offer)));
        } else {
            sells.extend(Offer::new(limit, index % 3, id, amount(units)).ok().map(|offer| (pair, offer)));
        }
    }
    let pools = pools
        .iter()
        .zip(
            [PoolRule::ConstantProduct, PoolRule::Weighted { weights: [3, 1] }, PoolRule::StableSwap { amplification: 85 }]
                .into_iter()
                .cycle(),
        )
        .map(|(&(first, step, x, y, fee_ppm), rule)| {
            let Pair { sell, buy } = pair(first, step);
            Pool { assets: [sell, buy], rule, reserves: [amount(x), amount(y)], fee_ppm }
        })
        .collect();
    BatchMarket::build(asset_count as usize, &sells, &buys, pools).unwrap()
}

fn check(case: &Case) -> Proposed {
    let proposed = propose(&mut AmountsFinder::new(), &case.market, &case.prices, &case.rules);
    let best_effort = Rules { lower_bounds: LowerBounds::BestEffort, ..case.rules };
    let verified = verify(&case.market, &proposed.proposal, &best_effort);
    let verified: Verified<'_> = verified.unwrap_or_else(|why| panic!("{why} in {:?}", proposed.proposal));
    drop(verified);
    if proposed.amounts.below_lower_count == 0 {
        let strict = Rules { lower_bounds: LowerBounds::Required, ..case.rules };
        let verified = verify(&case.market, &proposed.proposal, &strict);
        assert!(verified.is_ok(), "{:?}", verified.err());
    }
    proposed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn are_always_accepted(case in cases()) {
        check(&case);
    }
}

/// Rules with this commission.
fn with_commission(commission: Commission) -> Rules {
    Rules { edition: Edition::NEWEST, commission, mu: Mu::new(10).unwrap(), lower_bounds: LowerBounds::Required }
}

fn sell(from: u16, to: u16, limit: f64, units: u64, id: u64) -> (Pair, Offer) {
    let limit = price(limit).unwrap();
    (Pair { sell: AssetIndex(from), buy: AssetIndex(to) }, Offer::new(limit, 0, OfferId(id), amount(units)).unwrap())
}

fn sold(proposal: &Proposal, from: u16, to: u16) -> u64 {
    let of_pair = |trade: &&walras_clearing::PairTrade| (trade.pair.sell.0, trade.pair.buy.0) == (from, to);
    proposal.trades.iter().find(of_pair).map_or(0, |trade| trade.sold.get())
}

#[test]
fn two_offers_that_meet_trade_in_full() {
    let offers = [sell(0, 1, 0.9, 1_000, 1), sell(1, 0, 0.9, 1_000, 2)];
    let market = BatchMarket::build(2, &offers, &[], vec![]).unwrap();
    for commission in [Commission::NONE, Commission::new(15).unwrap()] {
        let case = Case { market: market.clone(), prices: vec![price(1.0), price(1.0)], rules: with_commission(commission) };
        let proposed = check(&case);
        assert_eq!((sold(&proposed.proposal, 0, 1), sold(&proposed.proposal, 1, 0)), (1_000, 1_000));
        assert_eq!(proposed.amounts.below_lower_count, 0);
        assert!(verify(&case.market, &proposed.proposal, &case.rules).is_ok());
    }
}

/// One unit of asset 0 is worth 10^12 of asset 1: three units are wanted, what is offered for them is a little too little for the third.
#[test]
fn units_of_very_different_worth() {
    let offers = [
        sell(0, 1, 0.9e12, 1, 1),
        sell(0, 1, 0.9e12, 1, 2),
        sell(0, 1, 0.9995e12, 1, 3),
        sell(1, 0, 0.6e-12, 2_999_999_999_999, 4),
    ];
    let market = BatchMarket::build(2, &offers, &[], vec![]).unwrap();
    let case = Case { market, prices: vec![price(1e12), price(1.0)], rules: with_commission(Commission::NONE) };
    let proposed = check(&case);
    assert_eq!(sold(&proposed.proposal, 0, 1), 2);
    assert!(sold(&proposed.proposal, 1, 0) >= 2_000_000_000_000);
}

/// Three units are offered for 2.9999 of the other asset, so for two in whole units. The other offer sells three all the same: the
/// third unit is left over by rounding, and would else stay with the venue.
#[test]
fn what_rounding_leaves_over_is_sold_where_units_are_coarse() {
    let offers = [sell(1, 0, 1.0, 181_477_458, 1), sell(0, 1, 0.3, 3, 2)];
    let market = BatchMarket::build(2, &offers, &[], vec![]).unwrap();
    // The rate of asset 1 is just above its limit.
    let prices = vec![price(1.0), price(1.0 + 0.5_f64.powi(14))];
    let proposed = check(&Case { market, prices, rules: with_commission(Commission::new(15).unwrap()) });
    assert_eq!((sold(&proposed.proposal, 0, 1), sold(&proposed.proposal, 1, 0)), (3, 3));
}

/// Parts with no trade between them have prices that need not be comparable: each is planned in a unit of its own.
#[test]
fn parts_far_apart_in_price_all_trade() {
    let offers = [sell(0, 1, 0.5, 5, 1), sell(1, 0, 0.5, 5, 2), sell(2, 3, 0.5, 7, 3), sell(3, 2, 0.5, 7, 4)];
    let market = BatchMarket::build(5, &offers, &[], vec![]).unwrap();
    let prices = vec![Some(BatchPrice::MAX), Some(BatchPrice::MAX), Some(BatchPrice::MIN), Some(BatchPrice::MIN), None];
    let proposed = check(&Case { market, prices, rules: with_commission(Commission::NONE) });
    let all: Vec<u64> = proposed.proposal.trades.iter().map(|trade| trade.sold.get()).collect();
    assert_eq!(all, [5, 5, 7, 7]);
    assert_eq!(proposed.amounts.parts.len(), 2);
    assert!(proposed.amounts.parts.iter().all(|part| part.given_up == 0 && part.relaxed == Relaxed::No));
}

/// Far in the money both, and unequal: no flow keeps the lower bounds. They drop, the cut says why, and what can trade does.
#[test]
fn lower_bounds_that_cannot_hold_drop_and_are_reported() {
    let offers = [sell(0, 1, 0.5, 1_000, 1), sell(1, 0, 0.5, 400, 2)];
    let market = BatchMarket::build(2, &offers, &[], vec![]).unwrap();
    let case = Case { market, prices: vec![price(1.0), price(1.0)], rules: with_commission(Commission::new(15).unwrap()) };
    let proposed = propose(&mut AmountsFinder::new(), &case.market, &case.prices, &case.rules);
    assert_eq!((sold(&proposed.proposal, 0, 1), sold(&proposed.proposal, 1, 0)), (400, 400));
    let part = &proposed.amounts.parts[0];
    let Relaxed::Lowered { first: cut, .. } = &part.relaxed else { panic!("{part:?}") };
    assert_eq!(cut.assets, [1]);
    assert!(cut.upper_out - cut.lower_in < cut.surplus_min);
    assert_eq!(proposed.amounts.below_lower_count, 1);
    assert!(verify(&case.market, &proposed.proposal, &case.rules).is_err());
}

/// What the commission leaves with the venue keeps lower bounds that would not hold without it.
#[test]
fn the_commission_pays_for_small_imbalance() {
    let offers = [sell(0, 1, 0.5, 1_000_000, 1), sell(1, 0, 0.5, 999_990, 2)];
    let market = BatchMarket::build(2, &offers, &[], vec![]).unwrap();
    let prices = vec![price(1.0), price(1.0)];
    let rules = with_commission(Commission::new(15).unwrap());
    let proposed = check(&Case { market: market.clone(), prices: prices.clone(), rules });
    assert_eq!(proposed.amounts.below_lower_count, 0);
    let free = check(&Case {
        market,
        prices,
        rules: Rules { lower_bounds: LowerBounds::BestEffort, ..with_commission(Commission::NONE) },
    });
    assert_eq!(free.amounts.below_lower_count, 1);
}

/// A thousand stocks that trade in one currency: each is planned alone, and the currency is balanced in each.
#[test]
fn stocks_of_one_currency_are_planned_one_by_one() {
    let stock_count = 1_000;
    let mut offers: Vec<(Pair, Offer)> = Vec::new();
    for stock in 1..=stock_count {
        let units = 100 + u64::from(stock);
        offers.push(sell(0, stock, 0.9, units, u64::from(stock)));
        offers.push(sell(stock, 0, 0.9, units, u64::from(stock)));
    }
    let market = BatchMarket::build(usize::from(stock_count) + 1, &offers, &[], vec![]).unwrap();
    let prices = vec![price(1.0); usize::from(stock_count) + 1];
    let proposed = check(&Case { market, prices, rules: with_commission(Commission::NONE) });
    assert_eq!(proposed.amounts.parts.len(), usize::from(stock_count));
    assert!(proposed.amounts.parts.iter().all(|part| part.relaxed == Relaxed::No && part.given_up == 0));
    assert_eq!((sold(&proposed.proposal, 0, 7), sold(&proposed.proposal, 7, 0)), (107, 107));
}

#[test]
fn markets_of_nothing_and_of_one_offer() {
    let rules = with_commission(Commission::NONE);
    let empty = check(&Case { market: BatchMarket::build(0, &[], &[], vec![]).unwrap(), prices: vec![], rules });
    assert!(empty.proposal.trades.is_empty() && empty.amounts.parts.is_empty());
    let market = BatchMarket::build(2, &[sell(0, 1, 2.0, 5, 1)], &[], vec![]).unwrap();
    let alone = check(&Case { market, prices: vec![price(1.0), price(1.0)], rules });
    assert!(alone.proposal.trades.is_empty());
}
