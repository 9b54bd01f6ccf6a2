//! The second line of defence: a part that no way clears is searched without a few of its offers.
//!
//! Only the search leaves them out. Amounts are then found and judged for all offers, at the prices that the search found: what the few
//! do not trade counts as unserved, and the block keeps the market's rules. `docs/adr/0036-no-offer-is-left-out.md` says why a block
//! may leave out no more than that.

use std::collections::BTreeSet;

use walras_clearing::{BatchMarket, Offer, OfferKey, Pair, Parts, PoolSide};
use walras_types::BatchPrice;

use crate::index::float;

/// So many of a part's offers are left out one by one, the largest first.
const ALONE_MAX: usize = 32;

/// So many are left out together at most: two, four, and so on, never more than half of the part.
const TOGETHER_MAX: usize = 256;

/// An offer and its pair.
type Named = (Pair, OfferKey);

/// Sets of a part's offers to leave out, in the order in which they are to be tried: the largest by value at these prices first. A unit
/// of an asset without a price counts as one.
pub(crate) fn sets(market: &BatchMarket, parts: &Parts, part: usize, prices: &[Option<BatchPrice>]) -> Vec<Vec<Named>> {
    let mut offers: Vec<(f64, Named)> = Vec::new();
    for (pair, offer) in offers_of(market, parts, part) {
        let price = prices[pair.sell.index()].map_or(1.0, float);
        offers.push((offer.amount().get() as f64 * price, (pair, offer.key())));
    }
    let half = offers.len() / 2;
    // Of equal value, in the order of their names.
    let larger_first = |a: &(f64, Named), b: &(f64, Named)| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1));
    if offers.len() > TOGETHER_MAX {
        offers.select_nth_unstable_by(TOGETHER_MAX, larger_first);
        offers.truncate(TOGETHER_MAX);
    }
    offers.sort_unstable_by(larger_first);
    let mut sets: Vec<Vec<Named>> = offers.iter().take(ALONE_MAX).map(|(_, named)| vec![*named]).collect();
    let mut count = 2;
    while count <= half.min(TOGETHER_MAX) {
        sets.push(offers[..count].iter().map(|(_, named)| *named).collect());
        count *= 2;
    }
    sets
}

/// A market of one part alone, without these offers.
pub(crate) fn without(market: &BatchMarket, parts: &Parts, part: usize, left_out: &[Named]) -> BatchMarket {
    let left_out: BTreeSet<Named> = left_out.iter().copied().collect();
    let stays = |(pair, offer): &(Pair, Offer)| !left_out.contains(&(*pair, offer.key()));
    let sells: Vec<(Pair, Offer)> = offers_of(market, parts, part).filter(stays).collect();
    let is_of = |pair: Pair| parts.of_both(pair.sell, pair.buy) == Some(part);
    let pools = market.pools().iter().filter(|pool| is_of(pool.pair(PoolSide::First))).copied().collect();
    BatchMarket::build(market.asset_count(), &sells, &[], pools).expect("less of a market is one")
}

fn offers_of<'m>(market: &'m BatchMarket, parts: &'m Parts, part: usize) -> impl Iterator<Item = (Pair, Offer)> + 'm {
    let books = market.books().iter().filter(move |book| parts.of_both(book.pair().sell, book.pair().buy) == Some(part));
    books.flat_map(|book| book.sells().as_slice().iter().map(move |offer| (book.pair(), *offer)))
}
