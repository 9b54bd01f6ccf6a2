//! Which offers are unknowns of the interior-point method, and which are put together.
//!
//! Millions of offers may lie near the rates, as where small batches come to what has stood for long. One unknown for each would
//! take 120 bytes and 16 ns an iteration. So where there are more than [`UNKNOWNS_MAX`], neighbours in a book become *lumps*: one
//! offer of their amount at their mean limit.
//!
//! A lump whose limits lie within `mu` of each other keeps the bounds. Its limits cannot lie on both sides of a ramp that is `mu`
//! wide. If none is below the ramp, the ramp is convex over them: at the mean limit the lump sells at most what its offers do by
//! smoothed demand, so no more than may be sold. If none is above it, the ramp is concave, and the lump sells at least what must be
//! sold. So what a market of such lumps sells lies within the bounds of Appendix D, and amounts that clear it clear the offers.
//!
//! Lumps are narrower on the ramp, and grow with the distance from it: there they only say where prices cannot go.

use crate::block::Block;
use crate::demand::Book;

/// Unknowns at most: an iteration over so many takes two milliseconds, and they take 16 MiB. A book may have three in any case.
pub(super) const UNKNOWNS_MAX: usize = 1 << 17;
/// How wide a lump on the ramp is, of `mu`, if there are not too many of that width; else so many times as wide, again and again.
const LUMP_OF_MU: f64 = 1.0 / 16.0;
const COARSER: f64 = 4.0;
/// The widest: a book is three lumps at most, below the ramp, on it and above it.
const WIDEST: f64 = 1e4;
/// Beyond this, in log price, no factor is a float.
const LOG_MAX: f64 = 700.0;

/// An unknown: one offer or a lump.
pub(super) struct Unknown {
    pub(super) limit: f64,
    pub(super) amount: f64,
}

/// The offers of a block near its prices, as unknowns.
pub(super) struct Unknowns<'a, 'i> {
    block: &'a Block<'i>,
    mu: f64,
    /// Of each book the places of its offers near the rate, and the rate.
    near: Vec<(usize, usize, f64)>,
    offer_count: usize,
    /// Of a lump on the ramp, as a share of `mu`; none where each offer is one.
    width: Option<f64>,
}

impl<'a, 'i> Unknowns<'a, 'i> {
    /// The offers at these places of the books, at these rates.
    pub(super) fn new(block: &'a Block<'i>, mu: f64, near: Vec<(usize, usize, f64)>, count_max: usize) -> Self {
        let offer_count = near.iter().map(|(low, high, _)| high - low).sum();
        let mut unknowns = Self { block, mu, near, offer_count, width: None };
        if offer_count > count_max {
            let mut width = LUMP_OF_MU;
            while unknowns.lump_count(width, count_max) > count_max && width < WIDEST {
                width *= COARSER;
            }
            unknowns.width = Some(width);
        }
        unknowns
    }

    /// Offers that are put together.
    pub(super) fn is_lumped(&self) -> bool {
        self.width.is_some()
    }

    pub(super) fn offer_count(&self) -> usize {
        self.offer_count
    }

    /// The place of the first of a book.
    pub(super) fn low(&self, number: usize) -> usize {
        self.near[number].0
    }

    /// Those of a book, limits ascending.
    pub(super) fn of_book(&self, number: usize, mut push: impl FnMut(Unknown)) {
        let (book, (low, high, _)) = (&self.block.books[number], self.near[number]);
        let Some(width) = self.width else {
            let levels = self.block.index.levels(book, low..high);
            return levels.for_each(|(limit, amount)| push(Unknown { limit, amount }));
        };
        let mut first = low;
        let mut before = self.block.index.sums_at(book, low);
        while first < high {
            let end = self.lump_end(number, first, width);
            let sums = self.block.index.sums_at(book, end);
            let limit = |place: usize| self.block.index.limit(book, place);
            let amount = sums[0] - before[0];
            // Rounding of the sums may lead out of the lump.
            let mean = ((sums[1] - before[1]) / amount).max(limit(first)).min(limit(end - 1));
            push(Unknown { limit: mean, amount });
            (first, before) = (end, sums);
        }
    }

    /// How many lumps of this width there are; any number above `most` where there are more than that.
    fn lump_count(&self, width: f64, most: usize) -> usize {
        let mut count = 0;
        for (number, &(low, high, _)) in self.near.iter().enumerate() {
            let mut first = low;
            while first < high && count <= most {
                first = self.lump_end(number, first, width);
                count += 1;
            }
        }
        count
    }

    /// Where the lump ends that begins at a place of a book.
    fn lump_end(&self, number: usize, first: usize, width: f64) -> usize {
        let (book, (_, high, rate)): (&Book, _) = (&self.block.books[number], self.near[number]);
        let limit = self.block.index.limit(book, first);
        let above = (limit / rate).ln();
        let below = -above - self.mu;
        let wide = width * self.mu.max(above).max(below);
        // What is below the ramp stays apart from what is on it.
        let wide = if below > 0.0 { wide.min(below) } else { wide };
        let end = limit * wide.min(LOG_MAX).exp();
        self.block.index.rank(book, end.min(f64::MAX)).clamp(first + 1, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::DemandIndex;
    use crate::random::Random;
    use crate::structure::Structure;
    use crate::synthetic::Offer;

    const MU: f64 = 1.0 / 1024.0;

    /// Two books, many limits within some `mu` of the rate 1 and some far away.
    fn dense(random: &mut Random, offer_count: usize) -> DemandIndex {
        let offer = |sell: usize, random: &mut Random| {
            let far = if random.below(4) == 0 { 0.5 } else { 4.0 * MU };
            // A few are worth as much as all others.
            let amount = random.uniform(1.0, 100.0) * if random.below(50) == 0 { 1e3 } else { 1.0 };
            Offer { sell, buy: 1 - sell, limit: 1.0 + random.uniform(-far, far), amount }
        };
        let offers: Vec<Offer> = (0..offer_count).map(|place| offer(place % 2, random)).collect();
        DemandIndex::from_offers(2, &offers, Vec::new()).unwrap()
    }

    fn all_near(block: &Block<'_>) -> Vec<(usize, usize, f64)> {
        block.books.iter().map(|book| (0, book.offer_count as usize, 1.0)).collect()
    }

    fn collected(unknowns: &Unknowns<'_, '_>, number: usize) -> Vec<Unknown> {
        let mut found = Vec::new();
        unknowns.of_book(number, |unknown| found.push(unknown));
        found
    }

    #[test]
    fn there_are_never_more_than_the_most_and_nothing_is_lost() {
        let mut random = Random::new(1);
        for offer_count in [10, 100, 1_000, 20_000] {
            let index = dense(&mut random, offer_count);
            let structure = Structure::of(&index);
            let block = &structure.blocks[0];
            for most in [2, 20, 100, 1_000, 100_000] {
                let unknowns = Unknowns::new(block, MU, all_near(block), most);
                assert_eq!(unknowns.offer_count(), index.offer_count());
                assert_eq!(unknowns.is_lumped(), index.offer_count() > most);
                let of_books: Vec<_> = (0..2).map(|number| collected(&unknowns, number)).collect();
                let count: usize = of_books.iter().map(Vec::len).sum();
                assert!(count <= most.max(6), "{count} unknowns of {offer_count}, at most {most}");
                for (book, of_book) in block.books.iter().zip(&of_books) {
                    let [amount, worth] = index.sums_at(book, book.offer_count as usize);
                    let sum: f64 = of_book.iter().map(|unknown| unknown.amount).sum();
                    let mean: f64 = of_book.iter().map(|unknown| unknown.amount * unknown.limit).sum();
                    assert!((sum / amount - 1.0).abs() < 1e-9 && (mean / worth - 1.0).abs() < 1e-9, "{sum} of {amount}");
                    assert!(of_book.windows(2).all(|pair| pair[0].limit < pair[1].limit), "not in order");
                }
            }
        }
    }

    /// What lumps no wider than `mu` sell, their offers may sell and need not sell more; see the head of this file.
    #[test]
    fn what_narrow_lumps_sell_is_within_the_bounds_of_their_offers() {
        let mut random = Random::new(2);
        let (mut inside, mut lumps) = (0, 0);
        for _ in 0..200 {
            let index = dense(&mut random, 2_000);
            let structure = Structure::of(&index);
            let block = &structure.blocks[0];
            let mut unknowns = Unknowns::new(block, MU, all_near(block), 1);
            // On the ramp around 1 a lump is as wide as `mu`.
            unknowns.width = Some(1.0);
            let (book, of_book) = (&block.books[0], collected(&unknowns, 0));
            lumps += of_book.len();
            for _ in 0..50 {
                let rate = 1.0 + random.uniform(-0.5, 0.5) * MU;
                let sold: f64 = of_book.iter().map(|of| of.amount * ((rate - of.limit) / (MU * rate)).clamp(0.0, 1.0)).sum();
                let [low, high] = [rate * (1.0 - MU), rate].map(|key| index.sums_at(book, index.rank(book, key))[0]);
                assert!(low * (1.0 - 1e-9) <= sold && sold <= high * (1.0 + 1e-9), "{low} {sold} {high} at {rate}");
                inside += usize::from(low < sold && sold < high);
            }
        }
        assert!(inside > 5_000, "{inside}: few bounds leave room");
        assert!(lumps < 200 * 100, "{lumps}: hardly anything is put together");
    }
}
