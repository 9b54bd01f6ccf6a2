//! How hard a market is to clear as a whole block: what climbs go by.

use std::sync::atomic::{AtomicU64, Ordering};

use walras_batch::BlockPlace;
use walras_batch_solver::{Budget, ClosedBatch, Deadline};
use walras_clearing::{AssetIndex, BatchMarket, Edition, LowerBounds, Rules};
use walras_price_solver::demand::DemandIndex;
use walras_price_solver::families::FamilyMarket;
use walras_price_solver::solve::{Accuracy, Portfolio, PriceSolver, Problem};
use walras_types::{BatchMarketId, Commission, Mu, QualityMax};

use super::market::{offer_of, pair_of};

/// An offer of so many units, for as many of the other asset, is cleared in whole units as well as in any others.
const UNITS_MIN: f64 = (1_u64 << 20) as f64;

/// How often the search of a block looks at the clock. None if it sets a part aside in which all offers are large enough; where some are
/// not, whole units are an excuse, and the market is none to go on from.
pub(crate) fn looks_of_block(made: &FamilyMarket) -> Option<u64> {
    let offers: Vec<_> = (0..).zip(&made.offers).filter_map(|(id, offer)| Some((pair_of(offer), offer_of(id, offer)?))).collect();
    // Of an asset there may be more than a market takes.
    let Ok(market) = BatchMarket::build(made.asset_count, &offers, &[], Vec::new()) else { return Some(0) };
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
    let aside = batch.assets_set_aside(&block);
    if aside.is_empty() {
        return Some(looks.load(Ordering::Relaxed));
    }
    (!are_large(made, &aside)).then_some(0)
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
