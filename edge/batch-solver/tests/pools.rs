//! Blocks of markets with pools: whatever pools there are a validator accepts what is proposed, and where prices fit them it is as good
//! as without.
#![allow(clippy::unwrap_used)] // Helpers of tests are not recognised as tests.

use proptest::prelude::*;
use walras_batch::{Assessed, BlockPlace, Certificate, ProposedClearing, QualityMax, assess};
use walras_batch_solver::{Budget, ClosedBatch};
use walras_clearing::{AssetIndex, BatchMarket, Edition, LowerBounds, Offer, OfferId, Pair, Pool, PoolRule, Rules, verify};
use walras_price_solver::synthetic::{MadeBatch, Model, Shape, Variant};
use walras_types::{Amount, BatchMarketId, BatchPrice, Commission, Mu};
use walras_wire::batch::BlockProposal;

#[path = "made/limits.rs"]
mod limits;
#[path = "made/market.rs"]
mod market;

use limits::{stated, units};
use market::{market_of, offer_of, pair_of};

fn rules() -> Rules {
    let (commission, mu) = (Commission::new(15).unwrap(), Mu::new(10).unwrap());
    Rules { edition: Edition::NEWEST, commission, mu, lower_bounds: LowerBounds::BestEffort }
}

fn closed(offers: &BatchMarket, quality: QualityMax) -> ClosedBatch<'_> {
    let place = BlockPlace { number: 1, parent: [0; 32], batch_hash: [1; 32] };
    ClosedBatch { market: BatchMarketId(0), place, offers, rules: rules(), quality }
}

/// What a validator checks of it, but for the hashes.
fn assert_acceptable(market: &BatchMarket, quality: &QualityMax, block: &BlockProposal) {
    let proposed = ProposedClearing::from(block);
    verify(market, &proposed.proposal, &rules()).unwrap();
    let certificate = Certificate::find(market, &proposed.proposal, &rules());
    assert_eq!(proposed.certificate, certificate);
    assert_eq!(assess(market, &proposed.proposal, &rules(), quality), Assessed { certificate, beyond: Vec::new() });
}

fn rule() -> impl Strategy<Value = PoolRule> {
    prop_oneof![
        Just(PoolRule::ConstantProduct),
        [1..=1_000_u16, 1..=1_000_u16].prop_map(|weights| PoolRule::Weighted { weights }),
        (0..20_u32).prop_map(|bits| PoolRule::StableSwap { amplification: 1 << bits }),
    ]
}

fn markets() -> impl Strategy<Value = BatchMarket> {
    (2..=6_u16).prop_flat_map(|asset_count| {
        let assets = (0..asset_count, 1..asset_count);
        let sells = prop::collection::vec((assets.clone(), stated(), units()), 0..30);
        let pools = prop::collection::vec((assets, rule(), units(), units(), 0..=100_000_u32), 1..6);
        (sells, pools).prop_map(move |(sells, pools)| {
            let pair = |(sell, step): (u16, u16)| Pair { sell: AssetIndex(sell), buy: AssetIndex((sell + step) % asset_count) };
            let offer = |(id, (at, limit, units)): (u64, ((u16, u16), BatchPrice, u64))| {
                Some((pair(at), Offer::new(limit, 0, OfferId(id), Amount::new(units)?).ok()?))
            };
            let sells: Vec<_> = (0..).zip(sells).filter_map(offer).collect();
            let pool = |(at, rule, x, y, fee_ppm)| {
                let Pair { sell, buy } = pair(at);
                Pool { assets: [sell, buy], rule, reserves: [x, y].map(|units| Amount::new(units).unwrap()), fee_ppm }
            };
            BatchMarket::build(usize::from(asset_count), &sells, &[], pools.into_iter().map(pool).collect()).unwrap()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_pools_there_are_a_block_is_accepted(market in markets(), percent in prop::sample::select(vec![0, 1, 100]), queries in 0..400_u64) {
        let quality = QualityMax { gap_ppb: percent * 10_000_000, unserved_ppb: percent * 10_000_000 };
        let batch = closed(&market, quality);
        let block = batch.propose(None, Budget::queries(queries)).unwrap();
        assert_acceptable(&market, &quality, &block);
        let next = batch.propose(Some(&block.prices), Budget::queries(queries)).unwrap();
        assert_acceptable(&market, &quality, &next);
        assert_acceptable(&market, &quality, &batch.propose_nothing());
    }
}

/// Pools of all rules between assets of a made batch, within a tenth of the prices at which its offers clear.
fn pools_near(prices: &[f64], count: u64, seed: u64) -> Vec<Pool> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let asset_count = prices.len() as u64;
    let mut pool = |number: u64| {
        let first = below(asset_count);
        let second = (first + 1 + below(asset_count - 1)) % asset_count;
        let (p, q) = (prices[first as usize], prices[second as usize]);
        let value = 1e7 * (1.0 + below(1_000) as f64);
        let off = 0.9 + below(200) as f64 / 1_000.0;
        let (rule, share) = match number % 3 {
            0 => (PoolRule::ConstantProduct, 1.0),
            1 => (PoolRule::Weighted { weights: [4, 1] }, 4.0),
            _ if (0.5..2.0).contains(&(p / q)) => (PoolRule::StableSwap { amplification: 85 }, 1.0),
            _ => (PoolRule::Weighted { weights: [1, 9] }, 1.0 / 9.0),
        };
        // The first asset is worth `share` of the second: then the price is p / q.
        let reserves = [value * share / p, value * off / q];
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is above a thousand")]
        let reserves = reserves.map(|units| Amount::new(units as u64).unwrap());
        let assets = [AssetIndex(first as u16), AssetIndex(second as u16)];
        Pool { assets, rule, reserves, fee_ppm: [0, 500, 3_000][below(3) as usize] }
    };
    (0..count).map(&mut pool).collect()
}

#[test]
fn made_batches_with_pools_are_far_within_the_usual_rules() {
    const USUAL: QualityMax = QualityMax::USUAL;
    let (mut traded, mut pool_count) = (0, 0);
    for (asset_count, offer_count, pools) in [(2, 200, 2), (10, 100, 12), (10, 2_000, 40), (30, 3_000, 100)] {
        for seed in 0..4 {
            let variant = Variant::ALL[seed as usize % Variant::ALL.len()];
            let made = MadeBatch::new(Model { asset_count, offer_count, variant, shape: Shape::EvenCycles }, seed);
            let offers: Vec<_> =
                (0..).zip(&made.offers).filter_map(|(id, offer)| Some((pair_of(offer), offer_of(id, offer)?))).collect();
            let without = market_of(asset_count, &made.offers);
            let first = closed(&without, QualityMax::NONE).propose(None, Budget::queries(10_000)).unwrap();
            let prices: Vec<f64> =
                first.prices.iter().map(|price| price.map_or(1.0, |price| f64::from_bits(price.bits()))).collect();
            let market = BatchMarket::build(asset_count, &offers, &[], pools_near(&prices, pools, seed)).unwrap();
            let batch = closed(&market, QualityMax::NONE);
            let block = batch.propose(None, Budget::queries(10_000)).unwrap();
            assert_acceptable(&market, &QualityMax::NONE, &block);
            let what = format!("{asset_count} assets, {offer_count} offers, {pools} pools, seed {seed}");
            let certificate = &block.certificate;
            println!(
                "{what}: gap {} unserved {} pools trading {}",
                certificate.gap_ppb,
                certificate.unserved_ppb,
                block.pools.len()
            );
            assert_eq!(batch.set_aside(&block), 0, "{what}");
            assert!(
                certificate.gap_ppb <= USUAL.gap_ppb / 10 && certificate.unserved_ppb <= USUAL.unserved_ppb / 10,
                "{what}: {certificate:?}"
            );
            traded += block.pools.len();
            pool_count += market.pools().len();
        }
    }
    // Nearly all are far enough off the prices for their fee.
    assert!(traded * 10 > pool_count * 7, "{traded} of {pool_count}");
}
