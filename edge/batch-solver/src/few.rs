//! The second line of defence: a part that no way clears is searched without a few of its offers.
//!
//! Only the search leaves them out. Amounts are then found and judged for all offers, at the prices that the search found: what the few
//! do not trade counts as unserved, and the block keeps the market's rules. `docs/adr/0036-no-offer-is-left-out.md` says why a block
//! may leave out no more than that.

use std::cmp::Ordering;
use std::iter::successors;

use walras_clearing::{BatchMarket, Change, OfferKey, Pair, Parts};
use walras_types::BatchPrice;

use crate::index::float;

/// So many of a part's largest offers are left out one by one, and so many of its smallest.
const ALONE_MAX: usize = 32;

/// So many are left out together at most: two, four, and so on, never more than half of the part.
const TOGETHER_MAX: usize = 256;

/// An offer and its pair.
type Named = (Pair, OfferKey);

/// Sets of a part's offers to leave out, in the order in which they are to be tried: one by one the largest by value at these prices, in
/// turn with the smallest, then several of either together. A unit of an asset without a price counts as one. `None` when it is over before
/// all offers were looked at.
///
/// Large offers move prices. Of small ones no part may keep its limit in whole units, and they may be all that an asset has. They take
/// turns because a deadline may leave time for a few tries only.
pub(crate) fn sets(
    market: &BatchMarket,
    parts: &Parts,
    part: usize,
    prices: &[Option<BatchPrice>],
    is_over: &dyn Fn() -> bool,
) -> Option<Vec<Vec<Named>>> {
    let (mut count, mut largest, mut smallest) = (0, First::by(|a, b| smaller_first(b, a)), First::by(smaller_first));
    for book in market.books().iter().filter(|book| is_of(parts, part, book.pair())) {
        if is_over() {
            return None;
        }
        let (pair, offers) = (book.pair(), book.sells().as_slice());
        let price = prices[pair.sell.index()].map_or(1.0, float);
        count += offers.len();
        for offer in offers {
            let valued = (offer.amount().get() as f64 * price, (pair, offer.key()));
            largest.take(valued);
            smallest.take(valued);
        }
    }
    let (largest, smallest) = (largest.names(), smallest.names());
    // Of a part of few offers all are among the largest: each is left out alone once.
    let large_alone = count.min(ALONE_MAX);
    let small_alone = (count - large_alone).min(ALONE_MAX);
    let alone = |offers: &[Named]| offers.iter().map(|named| vec![*named]).collect::<Vec<_>>();
    let mut sets = in_turn(alone(&largest[..large_alone]), alone(&smallest[..small_alone]));
    let most = (count / 2).min(TOGETHER_MAX);
    let counts = || successors(Some(2), |count| Some(count * 2)).take_while(move |count| *count <= most);
    let together = |offers: &[Named]| counts().map(|count| offers[..count].to_vec()).collect::<Vec<_>>();
    sets.extend(in_turn(together(&largest), together(&smallest)));
    Some(sets)
}

/// An offer with its value.
type Valued = (f64, Named);

/// Of equal value, in the order of their names.
fn smaller_first(a: &Valued, b: &Valued) -> Ordering {
    a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1))
}

/// The first offers by an order, at most [`TOGETHER_MAX`] of them. However many there are, few are kept.
struct First {
    order: fn(&Valued, &Valued) -> Ordering,
    kept: Vec<Valued>,
}

impl First {
    fn by(order: fn(&Valued, &Valued) -> Ordering) -> Self {
        Self { order, kept: Vec::with_capacity(2 * TOGETHER_MAX) }
    }

    fn take(&mut self, offer: Valued) {
        if self.kept.len() == 2 * TOGETHER_MAX {
            self.kept.select_nth_unstable_by(TOGETHER_MAX, self.order);
            self.kept.truncate(TOGETHER_MAX);
        }
        self.kept.push(offer);
    }

    /// In their order.
    fn names(mut self) -> Vec<Named> {
        self.kept.sort_unstable_by(self.order);
        self.kept.into_iter().take(TOGETHER_MAX).map(|(_, named)| named).collect()
    }
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

/// A market of one part alone, without these offers. It shares the books of the other pairs with the market: a copy of a large one would
/// take as much memory again.
pub(crate) fn without(market: &BatchMarket, parts: &Parts, part: usize, left_out: &[Named]) -> BatchMarket {
    let mut rest = market.of_pairs(|pair| is_of(parts, part, pair));
    let mut left_out = left_out.to_vec();
    left_out.sort_unstable();
    for of_pair in left_out.chunk_by(|(a, _), (b, _)| a == b) {
        let gone = Change { removed: of_pair.iter().map(|(_, key)| *key).collect(), added: Vec::new() };
        rest.change_pair(of_pair[0].0, gone, Change::default()).expect("what is left out stands there");
    }
    rest
}

fn is_of(parts: &Parts, part: usize, pair: Pair) -> bool {
    parts.of_both(pair.sell, pair.buy) == Some(part)
}
