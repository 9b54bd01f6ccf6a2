//! Orderly markets with some offers that know no order.

use walras_clearing::BatchMarket;
use walras_price_solver::families;
use walras_price_solver::random::Random;
use walras_price_solver::synthetic::{Model, Shape, Variant};

use super::market::{offer_of, pair_of};
use super::wild::Draw;

/// One offer in so many is wild.
const WILD_EVERY: u64 = 10;

/// A market of the papers' model, of any variant: 3 to 6 assets and 40 to 79 offers, every tenth of which is wild instead.
pub(crate) fn partly_wild(seed: u64) -> BatchMarket {
    let (random, draw) = (&mut Random::new(seed), &mut Draw::new(seed));
    let (asset_count, offer_count) = (3 + random.below(4), 40 + random.below(40));
    let variant = Variant::ALL[random.below(Variant::ALL.len())];
    let orderly = families::made(Model { asset_count, offer_count, variant, shape: Shape::Cycles }, random.bits());
    let offers = (0_u64..).zip(&orderly.offers).filter_map(|(id, offer)| {
        if id.is_multiple_of(WILD_EVERY) {
            draw.offer(id, asset_count as u16)
        } else {
            Some((pair_of(offer), offer_of(id, offer)?))
        }
    });
    let offers: Vec<_> = offers.collect();
    BatchMarket::build(asset_count, &offers, &[], Vec::new()).expect("offers are few, and of known assets")
}
