//! Clearings of small markets that can be worked out by hand, and of any market that can be built.
#![allow(clippy::unwrap_used)] // Helpers of tests are not recognised as tests.

use proptest::prelude::*;
use walras_batch_solver::{Budget, ClearError, Cleared, Outcome, PriceMakers, Settings, Solver, clear};
use walras_clearing::{
    AssetIndex, BatchMarket, BuyOffer, Edition, LowerBounds, Offer, OfferId, Pair, Pool, PoolRule, Rules, verify,
};
use walras_types::{Amount, BatchPrice, Commission, Mu, Rounding};

#[path = "made/limits.rs"]
mod limits;

use limits::{stated, units};

fn amount(units: u64) -> Amount {
    Amount::new(units).unwrap()
}

fn pair(sell: u16, buy: u16) -> Pair {
    Pair { sell: AssetIndex(sell), buy: AssetIndex(buy) }
}

fn limit(text: &str) -> BatchPrice {
    if text == "0" { BatchPrice::ZERO } else { BatchPrice::from_decimal(text, Rounding::Up).unwrap() }
}

/// `(sell, buy, units, limit)`.
type Line<'a> = (u16, u16, u64, &'a str);

fn market(asset_count: usize, sells: &[Line<'_>], buys: &[(u16, u16, u64, u64)], pools: Vec<Pool>) -> BatchMarket {
    let offer = |(id, &(sell, buy, units, stated)): (u64, &Line<'_>)| {
        (pair(sell, buy), Offer::new(limit(stated), 0, OfferId(id), amount(units)).unwrap())
    };
    let sells: Vec<_> = (0..).zip(sells).map(offer).collect();
    let buy = |(id, &(sell, buy, bought, sold_max)): (u64, &(u16, u16, u64, u64))| {
        (pair(sell, buy), BuyOffer::new(BatchPrice::ZERO, 0, OfferId(id), amount(bought), amount(sold_max)).unwrap())
    };
    let buys: Vec<_> = (1_000..).zip(buys).map(buy).collect();
    BatchMarket::build(asset_count, &sells, &buys, pools).unwrap()
}

fn settings(mu_exponent: u8) -> Settings<'static> {
    Settings::new(Commission::NONE, Mu::new(mu_exponent).unwrap())
}

/// `(id, sold, bought)` of every fill.
fn fills(cleared: &Cleared<'_>) -> Vec<(u64, u64, u64)> {
    let verified = &cleared.verified;
    let of_pair = |clearing| {
        let fills = verified.fills(clearing);
        fills.sells().chain(fills.buys()).map(|fill| (fill.id.0, fill.sold.get(), fill.bought.get())).collect::<Vec<_>>()
    };
    verified.pairs().iter().flat_map(of_pair).collect()
}

fn rate(cleared: &Cleared<'_>, sell: usize, buy: usize) -> f64 {
    let price = |asset: usize| f64::from_bits(cleared.proposal.prices[asset].unwrap().bits());
    price(sell) / price(buy)
}

#[test]
fn two_offers_that_fit_trade_in_full() {
    let market = market(2, &[(0, 1, 100, "2"), (1, 0, 200, "0.4")], &[], vec![]);
    for solver in [Solver::Portfolio, Solver::Newton, Solver::Tatonnement] {
        let cleared = clear(&market, &Settings { solver, ..settings(10) }).unwrap();
        let rate = rate(&cleared, 0, 1);
        assert!((2.0..=2.5).contains(&rate), "{solver:?}: {rate}");
        assert_eq!(cleared.report.fill_count, 2, "{solver:?}");
        assert!(cleared.report.outcome < Outcome::Approximate, "{solver:?}");
        assert!(cleared.report.mu_achieved <= 1.0 / 1_024.0, "{solver:?}");
    }
}

#[test]
fn the_report_counts_what_can_be_counted_by_hand() {
    // At a rate of 2, given by the two large market orders, offer 2 gains 2 - 1 a unit, offer 3 stays out.
    let offers = [(0, 1, 1_000_000, "0"), (1, 0, 2_000_000, "0"), (0, 1, 10, "1"), (1, 0, 20, "0.25"), (0, 1, 5, "3")];
    let market = market(2, &offers, &[], vec![]);
    let cleared = clear(&market, &settings(10)).unwrap();
    let report = &cleared.report;
    assert_eq!((report.offer_count, report.in_the_money_count, report.fill_count), (5, 4, 4));
    assert_eq!((report.pair_count, report.component_count), (2, 1));
    assert!((rate(&cleared, 0, 1) - 2.0).abs() < 1e-3);
    let one = f64::from_bits(cleared.proposal.prices[1].unwrap().bits());
    // Ten units that gain 1 of asset 1 each, and twenty that gain a quarter of asset 0, worth half of asset 1, each.
    assert!((report.realised_utility / one - 20.0).abs() < 0.1, "{}", report.realised_utility / one);
    assert!(report.unrealised_share() < 0.1, "{}", report.unrealised_share());
    assert!((report.volume / one / 4_000_040.0 - 1.0).abs() < 1e-3);
}

#[test]
fn three_assets_trade_in_a_circle() {
    let offers = [(0, 1, 600, "1.9"), (1, 2, 1_200, "2.9"), (2, 0, 3_600, "0.16")];
    let market = market(3, &offers, &[], vec![]);
    let cleared = clear(&market, &settings(10)).unwrap();
    assert_eq!(fills(&cleared).len(), 3);
    assert!(cleared.report.unpriced.is_empty());
    // The rates are 2, 3 and a sixth: no binary fraction, so without commission a unit may be missing.
    assert!(cleared.report.bounds.first_below.is_none_or(|(_, units)| units == amount(1)), "{:?}", cleared.report.bounds);
    let with_commission = Settings::new(Commission::new(15).unwrap(), Mu::new(10).unwrap());
    let cleared = clear(&market, &with_commission).unwrap();
    assert_eq!(fills(&cleared).len(), 3);
    assert_eq!(cleared.report.bounds.pairs_below, 0, "{:?}", cleared.report.bounds);
}

/// An offer of so much for at least so much, as somebody types it.
fn for_at_least((sell, buy): (u16, u16), id: u64, units: u64, bought: u64) -> (Pair, Offer) {
    let limit = BatchPrice::limit_of_sale(bought.into(), units.into(), amount(units)).unwrap();
    (pair(sell, buy), Offer::new(limit, 0, OfferId(id), amount(units)).unwrap())
}

/// A number of assets, offers, and what is expected of each.
type Case<'a> = (usize, &'a [(Pair, Offer)], &'a [(u64, u64, u64)]);

#[test]
fn offers_whose_limits_meet_at_one_rate_trade_without_commission() {
    let without = Settings::new(Commission::NONE, Mu::new(10).unwrap());
    let cases: &[Case<'_>] = &[
        (
            2,
            &[for_at_least((0, 1), 1, 10_000, 8_000), for_at_least((1, 0), 2, 8_000, 10_000)],
            &[(1, 10_000, 8_000), (2, 8_000, 10_000)],
        ),
        // Of one the other takes a part.
        (
            2,
            &[for_at_least((0, 1), 1, 10_000, 8_000), for_at_least((1, 0), 2, 4_000, 5_000)],
            &[(1, 5_000, 4_000), (2, 4_000, 5_000)],
        ),
        // Around three assets.
        (
            3,
            &[for_at_least((0, 1), 1, 1_000, 700), for_at_least((1, 2), 2, 700, 300), for_at_least((2, 0), 3, 300, 1_000)],
            &[(1, 1_000, 700), (2, 700, 300), (3, 300, 1_000)],
        ),
    ];
    for (assets, offers, expected) in cases {
        let market = BatchMarket::build(*assets, offers, &[], vec![]).unwrap();
        let mut found = fills(&clear(&market, &without).unwrap());
        found.sort_unstable();
        assert_eq!(found, *expected, "{offers:?}");
        // As it was read before.
        let first = clear(&market, &Settings { edition: Edition::First, ..without }).unwrap();
        assert!(fills(&first).is_empty(), "{offers:?}");
        // And nobody gets less with a commission.
        let with = clear(&market, &Settings::new(Commission::new(15).unwrap(), Mu::new(10).unwrap())).unwrap();
        assert!(fills(&with).is_empty(), "{offers:?}");
    }
    // Beside others that make the prices of two more assets.
    let others =
        [for_at_least((2, 3), 3, 90_000, 81_000), for_at_least((3, 2), 4, 90_000, 81_000), for_at_least((3, 0), 5, 700, 500)];
    let market = BatchMarket::build(4, &[cases[0].1, &others].concat(), &[], vec![]).unwrap();
    let found = fills(&clear(&market, &without).unwrap());
    assert!(found.contains(&(1, 10_000, 8_000)) && found.iter().any(|(id, ..)| *id == 3), "{found:?}");
}

#[test]
fn what_never_comes_back_has_no_price() {
    // Nobody wants asset 2 but for asset 3, which nobody offers.
    let market = market(5, &[(0, 1, 100, "2"), (1, 0, 200, "0.4"), (2, 3, 7, "1")], &[], vec![]);
    let cleared = clear(&market, &settings(10)).unwrap();
    assert_eq!(cleared.report.unpriced, [AssetIndex(2), AssetIndex(3), AssetIndex(4)]);
    assert_eq!(cleared.report.bounds.unpriced_pair_count, 1);
    assert_eq!(fills(&cleared).len(), 2);
}

#[test]
fn nothing_one_offer_and_offers_out_of_the_money_trade_nothing() {
    for offers in [&[][..], &[(0, 1, 5, "1")], &[(0, 1, 5, "2"), (1, 0, 5, "2")]] {
        let market = market(2, offers, &[], vec![]);
        let cleared = clear(&market, &settings(10)).unwrap();
        assert!(fills(&cleared).is_empty());
        assert_eq!((cleared.report.volume, cleared.report.unrealised_share()), (0.0, 0.0));
    }
    let nothing = market(0, &[], &[], vec![]);
    assert_eq!(clear(&nothing, &settings(10)).unwrap().report.offer_count, 0);
}

#[test]
fn buy_offers_fill_at_the_prices_of_sell_offers() {
    let sells = [(0, 1, 1_000, "0"), (1, 0, 2_000, "0")];
    let with_sells = market(2, &sells, &[(0, 1, 100, 60), (0, 1, 100, 40)], vec![]);
    let alone = market(2, &sells, &[], vec![]);
    let (with_sells, alone) = (clear(&with_sells, &settings(10)).unwrap(), clear(&alone, &settings(10)).unwrap());
    assert_eq!(with_sells.proposal.prices, alone.proposal.prices);
    assert_eq!(with_sells.report.buying_pair_count, 0);
    // The second asks for more than the rate.
    assert_eq!(with_sells.report.in_the_money_count, 3);
}

#[test]
fn a_market_that_only_buys_in_one_direction_is_priced_too() {
    // A thousand of asset 0 for sale from 2 up; somebody wants 500 of it for at most 1500 of asset 1.
    let market = market(2, &[(0, 1, 1_000, "2")], &[(1, 0, 500, 1_500)], vec![]);
    let cleared = clear(&market, &settings(10)).unwrap();
    assert_eq!(cleared.report.buying_pair_count, 1);
    let fills = fills(&cleared);
    let bought = fills.iter().find(|(id, ..)| *id == 1_000).unwrap();
    assert_eq!(bought.2, 500, "{fills:?}");
    assert!(bought.1 <= 1_001, "the seller's offer is at the margin, so its limit is the rate: {fills:?}");
}

/// Two sell offers make a rate of two and leave nothing of asset 1. A buy offer of a million of it that makes prices too halves the
/// rate: then the first seller takes one million and the buyer the other.
#[test]
fn buy_offers_that_make_prices_change_the_rate() {
    let sells = [(0, 1, 1_000_000, "0"), (1, 0, 2_000_000, "0")];
    let market = market(2, &sells, &[(0, 1, 1_000_000, 4_000_000)], vec![]);
    let cleared_by = |makers| {
        let usual = Settings::new(Commission::new(15).unwrap(), Mu::new(10).unwrap());
        let cleared = clear(&market, &Settings { makers, budget: Budget::queries(1_000_000), ..usual }).unwrap();
        let bought = fills(&cleared).iter().find(|(id, ..)| *id == 1_000).map_or(0, |(_, _, bought)| *bought);
        let rounds = (cleared.report.buy_round_count, cleared.report.are_buy_rates_settled);
        (rate(&cleared, 0, 1), bought, cleared.report.buying_pair_count, rounds)
    };
    let (alone, bought, pairs, rounds) = cleared_by(PriceMakers::SellOffers);
    assert!((alone - 2.0).abs() < 0.01 && bought < 10_000, "{alone} {bought}");
    assert_eq!((pairs, rounds), (0, (0, true)));
    let (with_buyer, bought, pairs, (rounds, is_settled)) = cleared_by(PriceMakers::AllOffers { rounds_max: 64 });
    assert!((with_buyer - 1.0).abs() < 0.01 && bought > 990_000, "{with_buyer} {bought}");
    assert!(pairs == 1 && is_settled && (2..64).contains(&rounds), "{pairs} {rounds}");
    // At a rate of two the buyer sells half a million for its million: one round is not enough.
    let (between, _, pairs, rounds) = cleared_by(PriceMakers::AllOffers { rounds_max: 1 });
    assert!((between - 4.0 / 3.0).abs() < 0.01, "{between}");
    assert_eq!((pairs, rounds), (1, (1, false)));
}

#[test]
fn a_pool_serves_an_offer_alone() {
    let pool = Pool {
        assets: [AssetIndex(0), AssetIndex(1)],
        rule: PoolRule::ConstantProduct,
        reserves: [amount(1_000_000), amount(2_000_000)],
        fee_ppm: 3_000,
    };
    let market = market(2, &[(0, 1, 1_000, "1.5")], &[], vec![pool]);
    let cleared = clear(&market, &settings(10)).unwrap();
    assert_eq!((cleared.report.fill_count, cleared.report.pool_count), (1, 1));
    let fills = fills(&cleared);
    assert!(fills[0].1 > 900 && fills[0].2 > 1_900 * fills[0].1 / 1_000, "{fills:?}");
}

#[test]
fn start_prices_must_be_one_per_asset() {
    let market = market(2, &[(0, 1, 100, "2"), (1, 0, 200, "0.4")], &[], vec![]);
    let start = [Some(BatchPrice::ONE)];
    let error = clear(&market, &Settings { start: Some(&start), ..settings(10) }).unwrap_err();
    assert_eq!(error, ClearError::StartPrices { expected: 2, found: 1 });
    let warm = clear(&market, &settings(10)).unwrap().proposal.prices;
    let again = clear(&market, &Settings { start: Some(&warm), ..settings(10) }).unwrap();
    assert_eq!(again.report.fill_count, 2);
}

#[test]
fn required_bounds_fail_where_best_effort_reports() {
    // One unit against many of another size: whole units can not balance it within mu.
    let market = market(2, &[(0, 1, 3, "0"), (1, 0, 7, "0"), (0, 1, 10, "2.4")], &[], vec![]);
    let cramped = Settings { budget: Budget::queries(1), solver: Solver::Tatonnement, ..settings(30) };
    let best_effort = clear(&market, &cramped).unwrap();
    let required = clear(&market, &Settings { lower_bounds: LowerBounds::Required, ..cramped });
    match best_effort.report.bounds.pairs_below {
        0 => assert!(required.is_ok()),
        count => assert!(matches!(required, Err(ClearError::LowerBounds { pair_count, .. }) if pair_count == count)),
    }
}

#[test]
fn the_order_of_offers_changes_nothing() {
    let sells: Vec<Line<'_>> =
        vec![(0, 1, 600, "1.9"), (1, 2, 1_200, "2.9"), (2, 0, 3_600, "0.16"), (0, 2, 50, "5"), (1, 0, 70, "0.4")];
    let built = |order: &[usize]| {
        let offers: Vec<_> = order
            .iter()
            .map(|&place| {
                let (sell, buy, units, stated) = sells[place];
                (pair(sell, buy), Offer::new(limit(stated), 0, OfferId(place as u64), amount(units)).unwrap())
            })
            .collect();
        BatchMarket::build(3, &offers, &[], vec![]).unwrap()
    };
    let (forward, backward) = (built(&[0, 1, 2, 3, 4]), built(&[4, 2, 0, 3, 1]));
    let (forward, backward) = (clear(&forward, &settings(10)).unwrap(), clear(&backward, &settings(10)).unwrap());
    assert!(!fills(&forward).is_empty());
    assert_eq!((forward.proposal, forward.report.queries), (backward.proposal, backward.report.queries));
}

fn rule() -> impl Strategy<Value = PoolRule> {
    prop_oneof![
        Just(PoolRule::ConstantProduct),
        [1..=50_u16, 1..=50_u16].prop_map(|weights| PoolRule::Weighted { weights }),
        (0..20_u32).prop_map(|bits| PoolRule::StableSwap { amplification: 1 << bits }),
    ]
}

#[test]
fn pools_of_every_rule_serve_offers_at_their_own_price() {
    for (rule, rate) in [
        (PoolRule::ConstantProduct, 2.0),
        (PoolRule::Weighted { weights: [1, 4] }, 0.5),
        (PoolRule::Weighted { weights: [4, 1] }, 8.0),
        (PoolRule::StableSwap { amplification: 100 }, 1.0),
    ] {
        let pool = Pool {
            assets: [AssetIndex(0), AssetIndex(1)],
            rule,
            reserves: [amount(1_000_000_000), amount(2_000_000_000)],
            fee_ppm: 0,
        };
        // The pool buys asset 0, at nearly the price at which it rests: it is far larger than the offer.
        let market = market(2, &[(0, 1, 100_000, "0.1")], &[], vec![pool]);
        let cleared = clear(&market, &settings(10)).unwrap();
        let fills = fills(&cleared);
        let got = fills[0].2 as f64 / fills[0].1 as f64;
        assert!(fills[0].1 > 99_000 && (got / rate - 1.0).abs() < 0.02, "{rule:?} {fills:?}");
    }
}

fn markets() -> impl Strategy<Value = BatchMarket> {
    (2..=6_u16).prop_flat_map(|asset_count| {
        let assets = (0..asset_count, 1..asset_count);
        let sells = prop::collection::vec((assets.clone(), stated(), units()), 0..40);
        let buys = prop::collection::vec((assets.clone(), stated(), units(), units()), 0..6);
        let pools = prop::collection::vec((assets, rule(), units(), units(), 0..1_000_000_u32), 0..3);
        (sells, buys, pools).prop_map(move |(sells, buys, pools)| {
            let pair = |(sell, step): (u16, u16)| pair(sell, (sell + step) % asset_count);
            let sells: Vec<_> = (0..)
                .zip(sells)
                .filter_map(|(id, (at, limit, units))| Some((pair(at), Offer::new(limit, 0, OfferId(id), amount(units)).ok()?)))
                .collect();
            let buy = |(id, (at, limit, bought, max))| {
                Some((pair(at), BuyOffer::new(limit, 0, OfferId(id), amount(bought), amount(max)).ok()?))
            };
            let buys: Vec<_> = (0..).zip(buys).filter_map(buy).collect();
            let pool = |(at, rule, x, y, fee_ppm)| {
                let pair = pair(at);
                Pool { assets: [pair.sell, pair.buy], rule, reserves: [amount(x), amount(y)], fee_ppm }
            };
            BatchMarket::build(usize::from(asset_count), &sells, &buys, pools.into_iter().map(pool).collect()).unwrap()
        })
    })
}

fn any_settings() -> impl Strategy<Value = Settings<'static>> {
    let commission = prop_oneof![Just(Commission::NONE), (1..=30_u8).prop_map(|k| Commission::new(k).unwrap())];
    let solver = prop_oneof![4 => Just(Solver::Portfolio), 1 => Just(Solver::Newton), 1 => Just(Solver::Tatonnement)];
    let all_offers = (0..5_usize).prop_map(|rounds_max| PriceMakers::AllOffers { rounds_max });
    let makers = prop_oneof![3 => Just(PriceMakers::SellOffers), 1 => all_offers];
    (commission, 1..=30_u8, solver, makers, 0..400_u64).prop_map(|(commission, mu, solver, makers, queries)| Settings {
        solver,
        makers,
        budget: Budget::queries(queries),
        ..Settings::new(commission, Mu::new(mu).unwrap())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_offered_clears_and_is_verified(market in markets(), settings in any_settings()) {
        let cleared = clear(&market, &settings);
        prop_assert!(cleared.is_ok(), "{:?}", cleared.err());
        let cleared = cleared.unwrap();
        let report = &cleared.report;
        let rules = |lower_bounds| Rules { edition: Edition::NEWEST, commission: settings.commission, mu: settings.mu, lower_bounds };
        prop_assert!(verify(&market, &cleared.proposal, &rules(LowerBounds::BestEffort)).is_ok());
        let is_strict = verify(&market, &cleared.proposal, &rules(LowerBounds::Required)).is_ok();
        prop_assert_eq!(is_strict, report.bounds.pairs_below == 0);
        prop_assert_eq!(report.fill_count, fills(&cleared).len());
        prop_assert!(report.fill_count <= report.in_the_money_count && report.in_the_money_count <= report.offer_count);
        prop_assert!((0.0..=1.0).contains(&report.unrealised_share()));
        prop_assert!((0.0..=1.0).contains(&report.mu_achieved), "{}", report.mu_achieved);
        for value in [report.volume, report.realised_utility, report.unrealised_utility, report.kept_value] {
            prop_assert!(value >= 0.0 && value.is_finite());
        }
        let required = clear(&market, &Settings { lower_bounds: LowerBounds::Required, ..settings });
        // Where bounds are required, prices with margins are tried as long as a pair is below its bound.
        prop_assert!(required.is_ok() || !is_strict);
        if let Ok(required) = required {
            prop_assert!(verify(&market, &required.proposal, &rules(LowerBounds::Required)).is_ok());
            if is_strict {
                prop_assert_eq!(required.proposal, cleared.proposal.clone());
            }
        }
        // Warm, from whatever came out.
        let warm = clear(&market, &Settings { start: Some(&cleared.proposal.prices), ..settings });
        prop_assert!(warm.is_ok(), "{:?}", warm.err());
    }
}
