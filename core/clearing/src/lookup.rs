//! Many offers looked up at once.
//!
//! A binary search in a large book waits for memory at each step, and the next step needs what came. So several searches go on side
//! by side, a step of each at a time: a processor waits for all of them together.

use crate::market::{BatchMarket, PairBook};
use crate::offer::{Offer, OfferKey, Pair};
use crate::pair_offers::{TOGETHER, is_at_most};

/// One search: `offers[at]` is the last offer whose key is at most the one that is looked for, or is before all of those.
#[derive(Clone, Copy)]
struct Search<'m> {
    offers: &'m [Offer],
    at: usize,
    left: usize,
}

impl BatchMarket {
    /// The sell offers of these pairs and keys, in the order in which they are asked for; `None` where none stands.
    #[must_use]
    pub fn find_sells(&self, asked: &[(Pair, OfferKey)]) -> Vec<Option<Offer>> {
        let mut found = Vec::with_capacity(asked.len());
        let mut searches = [Search { offers: &[], at: 0, left: 0 }; TOGETHER];
        let table = Table::of(self, asked.len());
        for asked in asked.chunks(TOGETHER) {
            let mut left_most = 0;
            for (search, (pair, _)) in searches.iter_mut().zip(asked) {
                let offers = table.book(self, *pair).map_or(&[][..], |book| book.sells.as_slice());
                *search = Search { offers, at: 0, left: offers.len() };
                left_most = left_most.max(offers.len());
            }
            while left_most > 1 {
                for (search, (_, key)) in searches.iter_mut().zip(asked) {
                    // Of one that has come to its end, half of what is left is nothing.
                    let half = search.left / 2;
                    let place = search.at + half;
                    let is_below = search.offers.get(place).is_some_and(|offer| is_at_most(&offer.key(), key));
                    search.at = if is_below { place } else { search.at };
                    search.left -= half;
                }
                left_most -= left_most / 2;
            }
            let is_it = |(search, (_, key)): (&Search<'_>, &(Pair, OfferKey))| {
                search.offers.get(search.at).copied().filter(|offer| offer.key() == *key)
            };
            found.extend(searches.iter().zip(asked).map(is_it));
        }
        found
    }
}

/// Where the books of pairs are.
enum Table {
    /// One more than the place of a pair's book, or zero, by `sell * assets + buy`.
    Dense(Vec<u32>),
    /// They are searched.
    None,
}

impl Table {
    /// Worth it when so many books are asked for that looking at all of them once is less.
    fn of(market: &BatchMarket, asked_count: usize) -> Self {
        let assets = market.asset_count();
        if asked_count * 4 < assets * assets {
            return Self::None;
        }
        let mut places = vec![0; assets * assets];
        for (place, book) in (1..).zip(&market.books) {
            places[book.pair.sell.index() * assets + book.pair.buy.index()] = place;
        }
        Self::Dense(places)
    }

    fn book<'m>(&self, market: &'m BatchMarket, pair: Pair) -> Option<&'m PairBook> {
        let assets = market.asset_count();
        match self {
            Self::None => market.book(pair),
            Self::Dense(_) if pair.sell.index().max(pair.buy.index()) >= assets => None,
            Self::Dense(places) => {
                let place = places[pair.sell.index() * assets + pair.buy.index()].checked_sub(1)?;
                Some(&market.books[place as usize])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use walras_types::{Amount, BatchPrice};

    use super::*;
    use crate::offer::{AssetIndex, OfferId};

    fn offer((sell, buy, limit, id): (u16, u16, u8, u64)) -> (Pair, Offer) {
        let limit = BatchPrice::from_bits(BatchPrice::ONE.bits() + (u64::from(limit) << 50)).unwrap();
        let pair = Pair { sell: AssetIndex(sell), buy: AssetIndex((sell + 1 + buy) % 4) };
        (pair, Offer::new(limit, id % 3, OfferId(id), Amount::new(1_000_000).unwrap()).unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn together_they_are_found_as_each_alone(
            stands in prop::collection::btree_map(0_u64..400, (0_u16..4, 0_u16..3, 0_u8..5), 0..200),
            asked in prop::collection::vec((0_u64..400, 0_u16..5, 0_u16..3, 0_u8..5, any::<bool>()), 0..60),
        ) {
            let offers: Vec<_> = stands.iter().map(|(id, (sell, buy, limit))| offer((*sell, *buy, *limit, *id))).collect();
            let market = BatchMarket::build(4, &offers, &[], Vec::new()).unwrap();
            // Half of them stand.
            let asked = asked.into_iter().map(|(id, sell, buy, limit, is_there)| {
                let (sell, buy, limit) = stands.get(&id).copied().filter(|_| is_there).unwrap_or((sell, buy, limit));
                let (pair, offer) = offer((sell, buy, limit, id));
                (pair, offer.key())
            });
            let asked: Vec<_> = asked.collect();
            let alone = asked.iter().map(|(pair, key)| market.book(*pair).and_then(|book| book.sells().get(key)).copied());
            prop_assert_eq!(market.find_sells(&asked), alone.collect::<Vec<_>>());
        }
    }
}
