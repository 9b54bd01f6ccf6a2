//! How hard a market is to clear as a whole block: what climbs go by.

use std::sync::atomic::{AtomicU64, Ordering};

use walras_batch::BlockPlace;
use walras_batch_solver::{Budget, ClosedBatch, Deadline};
use walras_clearing::{AssetIndex, BatchMarket, Edition, LowerBounds, Rules};
use walras_price_solver::demand::DemandIndex;
use walras_price_solver::families::{self, FamilyMarket};
use walras_price_solver::random::Random;
use walras_price_solver::solve::{Accuracy, Portfolio, PriceSolver, Problem};
use walras_price_solver::synthetic::{Model, Offer, Shape, Variant};
use walras_types::{BatchMarketId, Commission, Mu, QualityMax};

use super::market::{market_of, offer_of, pair_of};

/// An offer of so many units, for as many of the other asset, is cleared in whole units as well as in any others.
const UNITS_MIN: f64 = (1_u64 << 20) as f64;

/// An attack has so many offers at most.
const ATTACK_OFFERS_MAX: usize = 16;

/// Assets that the offers of an attack add to a market.
const ADDED_ASSETS: usize = 2;

/// How often the search of a block looks at the clock. None if it sets a part aside in which all offers are large enough; where some are
/// not, whole units are an excuse, and the market is none to go on from.
pub(crate) fn looks_of_block(made: &FamilyMarket) -> Option<u64> {
    let Some((looks, aside)) = searched(made) else { return Some(0) };
    if aside.is_empty() {
        return Some(looks);
    }
    (!are_large(made, &aside)).then_some(0)
}

/// How often the search of a block looks at the clock, of an orderly market with the offers of an attack in it. None if it sets an asset of
/// the orderly market aside. Nothing excuses that: neither whole units nor limits, since an attack may have any.
pub(crate) fn looks_of_attack(orderly: &FamilyMarket, attack: &FamilyMarket) -> Option<u64> {
    if attack.offers.len() > ATTACK_OFFERS_MAX {
        return Some(0);
    }
    let Some((looks, aside)) = searched(&together(orderly, attack)) else { return Some(0) };
    let parts = market_of(orderly.asset_count, &orderly.offers).parts();
    let is_orderly = |asset: &AssetIndex| asset.index() < orderly.asset_count && parts.of(*asset).is_some();
    (!aside.iter().any(is_orderly)).then_some(looks)
}

/// An orderly market of 3 to 6 assets, and up to six offers of any size at any limit, among these assets and two that nobody else trades.
pub(crate) fn attacked(random: &mut Random) -> (FamilyMarket, FamilyMarket) {
    let (asset_count, offer_count) = (3 + random.below(4), 40 + random.below(40));
    let variant = Variant::ALL[random.below(Variant::ALL.len())];
    let orderly = families::made(Model { asset_count, offer_count, variant, shape: Shape::Cycles }, random.bits());
    let asset_count = asset_count + ADDED_ASSETS;
    let offers = (0..=random.below(6)).map(|_| {
        let sell = random.below(asset_count);
        let buy = (sell + 1 + random.below(asset_count - 1)) % asset_count;
        let limit = if random.below(5) == 0 { 0.0 } else { 10_f64.powf(random.uniform(-6.0, 6.0)) };
        Offer { sell, buy, limit, amount: 10_f64.powf(random.uniform(0.0, 12.0)).floor() }
    });
    let offers = offers.collect();
    (orderly, FamilyMarket { asset_count, offers })
}

/// The offers of both.
pub(crate) fn together(orderly: &FamilyMarket, attack: &FamilyMarket) -> FamilyMarket {
    let asset_count = orderly.asset_count.max(attack.asset_count);
    FamilyMarket { asset_count, offers: [&orderly.offers[..], &attack.offers[..]].concat() }
}

/// How often the search of a block looks at the clock, and what it sets aside. None where there is no such market.
fn searched(made: &FamilyMarket) -> Option<(u64, Vec<AssetIndex>)> {
    let offers: Vec<_> = (0..).zip(&made.offers).filter_map(|(id, offer)| Some((pair_of(offer), offer_of(id, offer)?))).collect();
    // Of an asset there may be more than a market takes.
    let market = BatchMarket::build(made.asset_count, &offers, &[], Vec::new()).ok()?;
    let rules = Rules {
        edition: Edition::NEWEST,
        commission: Commission::new(15)?,
        mu: Mu::new(10)?,
        lower_bounds: LowerBounds::BestEffort,
    };
    let place = BlockPlace { number: 1, parent: [0; 32], batch_hash: [1; 32] };
    let batch = ClosedBatch { market: BatchMarketId(0), place, offers: &market, rules, quality: QualityMax::USUAL };
    let looks = AtomicU64::new(0);
    let never = || {
        looks.fetch_add(1, Ordering::Relaxed);
        false
    };
    let budget = Budget { deadline: Some(Deadline::When(&never)), ..Budget::queries(10_000) };
    let block = batch.propose(None, budget).expect("whatever stands, there is a block");
    Some((looks.load(Ordering::Relaxed), batch.assets_set_aside(&block)))
}

/// Whether all offers between these assets are large enough, at the prices that they have if units need not be whole.
pub(crate) fn are_large(made: &FamilyMarket, assets: &[AssetIndex]) -> bool {
    let index = DemandIndex::from_offers(made.asset_count, &made.offers, Vec::new()).expect("offers are changed to sound ones");
    let prices = Portfolio.solve(&Problem::cold(&index, Accuracy::bits(15, 10))).prices;
    made.offers.iter().all(|offer| {
        let pair = pair_of(offer);
        let is_aside = assets.contains(&pair.sell) && assets.contains(&pair.buy);
        match (prices[offer.sell], prices[offer.buy]) {
            (Some(sell), Some(buy)) if is_aside => offer.amount.min(offer.amount * sell / buy) >= UNITS_MIN,
            _ => true,
        }
    })
}
