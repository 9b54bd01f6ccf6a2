//! A block in which no offer is much larger than all that others can give for it.
//!
//! Where others can take a millionth of an offer, a millionth of it trades, at a price within `mu` of its limit. A smaller offer
//! leads to the same prices, since any share of an offer within `mu` of its limit is within the bounds. A price that makes an offer
//! trade a share of 10^-12 differs from its limit in the 16th digit, which floats do not have. So the solver looks for prices among
//! smaller offers, and checks the amounts that it finds against the offers as they are.

use crate::block::Block;
use crate::demand::DemandIndex;
use crate::pool::{Pool, PoolSide, Side};

/// The counterparts of an offer are worth less once they are cut themselves: so many rounds.
const ROUNDS: usize = 4;

/// The block's offers, cut at these prices to so many times what their counterparts are worth, under the block's numbers; `None`
/// where no offer is that large.
pub(super) fn capped(block: &Block<'_>, prices: &[f64], times: f64) -> Option<DemandIndex> {
    let n = prices.len();
    let mut most = Most { times, given: vec![f64::INFINITY; n], taken: vec![f64::INFINITY; n] };
    for _ in 0..ROUNDS {
        let mut next = Most { times, given: vec![0.0; n], taken: vec![0.0; n] };
        for book in &block.books {
            let (sell, buy) = (book.sell as usize, book.buy as usize);
            let most = most.of(sell, buy);
            let values = block.index.levels(book, 0..book.offer_count as usize).map(|(_, amount)| prices[sell] * amount);
            let value = values.map(|value| value.min(most)).sum::<f64>();
            next.given[sell] += value;
            next.taken[buy] += value;
        }
        // What a pool gives and takes has no end.
        for side in &block.pools {
            (next.given[side.sell as usize], next.taken[side.buy as usize]) = (f64::INFINITY, f64::INFINITY);
        }
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
    /// What an offer is cut to.
    fn of(&self, sell: usize, buy: usize) -> f64 {
        self.times * self.taken[sell].min(self.given[buy])
    }
}
