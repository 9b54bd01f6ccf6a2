//! The second line of defence: a part that no way clears is searched without a few of its offers.
//!
//! Only the search leaves them out. Amounts are then found and judged for all offers, at the prices that the search found: what the few
//! do not trade counts as unserved, and the block keeps the market's rules. `docs/adr/0036-no-offer-is-left-out.md` says why a block
//! may leave out no more than that.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::iter::successors;

use walras_clearing::{BatchMarket, Offer, OfferKey, Pair, Parts, PoolSide};
use walras_types::BatchPrice;

use crate::index::float;

/// So many of a part's largest offers are left out one by one, and so many of its smallest.
const ALONE_MAX: usize = 32;

/// So many are left out together at most: two, four, and so on, never more than half of the part.
const TOGETHER_MAX: usize = 256;

/// An offer and its pair.
type Named = (Pair, OfferKey);

/// Sets of a part's offers to leave out, in the order in which they are to be tried: one by one the largest by value at these prices, in
/// turn with the smallest, then several of either together. A unit of an asset without a price counts as one.
///
/// Large offers move prices. Of small ones no part may keep its limit in whole units, and they may be all that an asset has. They take
/// turns because a deadline may leave time for a few tries only.
pub(crate) fn sets(market: &BatchMarket, parts: &Parts, part: usize, prices: &[Option<BatchPrice>]) -> Vec<Vec<Named>> {
    let mut offers: Vec<Valued> = Vec::new();
    for (pair, offer) in offers_of(market, parts, part) {
        let price = prices[pair.sell.index()].map_or(1.0, float);
        offers.push((offer.amount().get() as f64 * price, (pair, offer.key())));
    }
    let count = offers.len();
    let largest = first_of(offers.clone(), |a, b| smaller_first(b, a));
    let smallest = first_of(offers, smaller_first);
    // Of a part of few offers all are among the largest: each is left out alone once.
    let large_alone = count.min(ALONE_MAX);
    let small_alone = (count - large_alone).min(ALONE_MAX);
    let alone = |offers: &[Named]| offers.iter().map(|named| vec![*named]).collect::<Vec<_>>();
    let mut sets = in_turn(alone(&largest[..large_alone]), alone(&smallest[..small_alone]));
    let most = (count / 2).min(TOGETHER_MAX);
    let counts = || successors(Some(2), |count| Some(count * 2)).take_while(move |count| *count <= most);
    let together = |offers: &[Named]| counts().map(|count| offers[..count].to_vec()).collect::<Vec<_>>();
    sets.extend(in_turn(together(&largest), together(&smallest)));
    sets
}

/// An offer with its value.
type Valued = (f64, Named);

/// Of equal value, in the order of their names.
fn smaller_first(a: &Valued, b: &Valued) -> Ordering {
    a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1))
}

/// The first offers by an order, at most [`TOGETHER_MAX`] of them.
fn first_of(mut offers: Vec<Valued>, order: impl Fn(&Valued, &Valued) -> Ordering) -> Vec<Named> {
    if offers.len() > TOGETHER_MAX {
        offers.select_nth_unstable_by(TOGETHER_MAX, &order);
        offers.truncate(TOGETHER_MAX);
    }
    offers.sort_unstable_by(order);
    offers.into_iter().map(|(_, named)| named).collect()
}

/// One of the first, one of the second, and so on; then what either has left.
fn in_turn(first: Vec<Vec<Named>>, second: Vec<Vec<Named>>) -> Vec<Vec<Named>> {
    let mut all = Vec::with_capacity(first.len() + second.len());
    let mut second = second.into_iter();
    for set in first {
        all.push(set);
        all.extend(second.next());
    }
    all.extend(second);
    all
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
