//! Made offers of the price solver as offers of a market.

use walras_clearing::{AssetIndex, BatchMarket, Offer, OfferId, Pair};
use walras_price_solver::synthetic;
use walras_types::{Amount, BatchPrice};

/// What an offer sells for what.
pub(crate) fn pair_of(offer: &synthetic::Offer) -> Pair {
    Pair { sell: AssetIndex(offer.sell as u16), buy: AssetIndex(offer.buy as u16) }
}

/// The offer under a number, if there can be such a one.
pub(crate) fn offer_of(id: u64, offer: &synthetic::Offer) -> Option<Offer> {
    let limit = BatchPrice::from_bits(offer.limit.to_bits()).ok()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates, and is checked")]
    let amount = Amount::new(offer.amount as u64)?;
    Offer::new(limit, id, OfferId(id), amount).ok()
}

/// A market of all of these that there can be.
pub(crate) fn market_of(asset_count: usize, offers: &[synthetic::Offer]) -> BatchMarket {
    let offers: Vec<_> = (0..).zip(offers).filter_map(|(id, offer)| Some((pair_of(offer), offer_of(id, offer)?))).collect();
    BatchMarket::build(asset_count, &offers, &[], Vec::new()).expect("offers are of known assets")
}
