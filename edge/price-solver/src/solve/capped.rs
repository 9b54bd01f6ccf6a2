//! A block in which no offer is much larger than all that others can give for it.
//!
//! Where others can take a millionth of an offer, a millionth of it trades, at a price within `mu` of its limit. A smaller offer
//! leads to the same prices, since any share of an offer within `mu` of its limit is within the bounds. A price that makes an offer
//! trade a share of 10^-12 differs from its limit in the 16th digit, which floats do not have. So the solver looks for prices among
//! smaller offers, and checks the amounts that it finds against the offers as they are.

use crate::block::Block;
use crate::demand::{Book, DemandIndex};
use crate::pool::{Pool, PoolSide, Side};

/// The counterparts of an offer are worth less once they are cut themselves: so many rounds.
const ROUNDS: usize = 4;
/// What rounding may do to a sum.
const SUMS_ROUNDING: f64 = 1e-6;

/// The largest amount of an offer in each book; incomplete when it is over.
pub(super) fn largest_offers(block: &Block<'_>, is_over: &dyn Fn() -> bool) -> Vec<f64> {
    let largest = |book: &Book| {
        let levels = block.index.levels(book, 0..book.offer_count as usize);
        levels.fold(0.0, |most: f64, (_, amount)| most.max(amount))
    };
    block.books.iter().take_while(|_| !is_over()).map(largest).collect()
}

/// Whether an offer may be larger than that, before any is cut: if none is, none will be.
fn may_be_cut(block: &Block<'_>, prices: &[f64], times: f64, largest: &[f64]) -> bool {
    let n = prices.len();
    let mut most = Most { times, given: vec![0.0; n], taken: vec![0.0; n] };
    for book in &block.books {
        let value = prices[book.sell as usize] * block.index.sums_at(book, book.offer_count as usize)[0];
        most.given[book.sell as usize] += value;
        most.taken[book.buy as usize] += value;
    }
    most.add_pools(block);
    let mut books = block.books.iter().zip(largest);
    // In another order sums are rounded otherwise.
    books.any(|(book, amount)| {
        let (sell, buy) = (book.sell as usize, book.buy as usize);
        let is_less = prices[sell] * amount < (1.0 - SUMS_ROUNDING) * most.of(sell, buy);
        !is_less
    })
}

/// The block's offers, cut at these prices to so many times what their counterparts are worth, under the block's numbers; `None`
/// where no offer is that large, or when it is over.
pub(super) fn capped(
    block: &Block<'_>,
    prices: &[f64],
    times: f64,
    largest: &[f64],
    is_over: &dyn Fn() -> bool,
) -> Option<DemandIndex> {
    if !may_be_cut(block, prices, times, largest) {
        return None;
    }
    let n = prices.len();
    let mut most = Most { times, given: vec![f64::INFINITY; n], taken: vec![f64::INFINITY; n] };
    for _ in 0..ROUNDS {
        let mut next = Most { times, given: vec![0.0; n], taken: vec![0.0; n] };
        for book in &block.books {
            if is_over() {
                return None;
            }
            let (sell, buy) = (book.sell as usize, book.buy as usize);
            let most = most.of(sell, buy);
            let values = block.index.levels(book, 0..book.offer_count as usize).map(|(_, amount)| prices[sell] * amount);
            let value = values.map(|value| value.min(most)).sum::<f64>();
            next.given[sell] += value;
            next.taken[buy] += value;
        }
        next.add_pools(block);
        most = next;
    }
    let pool = |side: &PoolSide| {
        let rule = block.index.pools[side.pool as usize].rule.clone();
        (side.side == Side::SellsFirst).then(|| Pool { first: side.sell as usize, second: side.buy as usize, rule })
    };
    let pools = block.pools.iter().filter_map(pool).collect();
    let mut index = DemandIndex::empty(prices.len(), pools).ok()?;
    let mut is_cut = false;
    for book in &block.books {
        let (sell, buy) = (book.sell as usize, book.buy as usize);
        let most = most.of(sell, buy) / prices[sell];
        let levels: Vec<(f64, f64)> = block
            .index
            .levels(book, 0..book.offer_count as usize)
            .filter(|(_, amount)| *amount > 0.0)
            .map(|(limit, amount)| (limit, amount.min(most)))
            .collect();
        is_cut |= levels.iter().any(|(_, amount)| *amount == most);
        index.push_book(sell, buy, &levels).ok()?;
    }
    is_cut.then_some(index)
}

/// In value, what all offers together give of each asset, and what they take of it.
struct Most {
    times: f64,
    given: Vec<f64>,
    taken: Vec<f64>,
}

impl Most {
    /// What a pool gives and takes has no end.
    fn add_pools(&mut self, block: &Block<'_>) {
        for side in &block.pools {
            (self.given[side.sell as usize], self.taken[side.buy as usize]) = (f64::INFINITY, f64::INFINITY);
        }
    }

    /// What an offer is cut to.
    fn of(&self, sell: usize, buy: usize) -> f64 {
        self.times * self.taken[sell].min(self.given[buy])
    }
}
