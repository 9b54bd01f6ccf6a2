//! A block: a part of a market whose prices are found on their own, and the demand query on it.

use crate::demand::{Book, DemandIndex, Window};
use crate::pool::PoolSide;

/// A part of a market, with its own numbering of assets.
#[derive(Clone, Debug)]
pub(crate) struct Block<'i> {
    pub(crate) index: &'i DemandIndex,
    /// The market's numbers of the block's assets.
    pub(crate) assets: Vec<u32>,
    /// Books between the block's assets, under the block's numbers.
    pub(crate) books: Vec<Book>,
    pub(crate) pools: Vec<PoolSide>,
}

/// What the market answers to prices. All in value: amounts times prices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// Value of each asset sold.
    pub(crate) sold: Vec<f64>,
    /// Value of each asset bought.
    pub(crate) bought: Vec<f64>,
    /// The Jacobian's off-diagonals, row by row, all non-negative: the derivative of the row's excess demand by the log price of the
    /// column. The diagonal is minus the sum of its column.
    pub(crate) slopes: Vec<f64>,
}

impl Answer {
    pub(crate) fn new(asset_count: usize) -> Self {
        Self { sold: vec![0.0; asset_count], bought: vec![0.0; asset_count], slopes: vec![0.0; asset_count * asset_count] }
    }

    /// Whether demand, less commission, exceeds supply nowhere: the papers' rule for stopping.
    pub(crate) fn clears(&self, eps: f64) -> bool {
        self.sold.iter().zip(&self.bought).all(|(&sold, &bought)| (1.0 - eps) * bought <= sold)
    }

    /// The largest share by which an asset's demand exceeds its supply: `1 - sold / bought`, or zero.
    pub(crate) fn worst_excess(&self) -> f64 {
        let excess = |(&sold, &bought): (&f64, &f64)| if bought > sold { 1.0 - sold / bought } else { 0.0 };
        self.sold.iter().zip(&self.bought).map(excess).fold(0.0, f64::max)
    }
}

impl Block<'_> {
    pub(crate) fn asset_count(&self) -> usize {
        self.assets.len()
    }

    /// Supply, demand and slopes at these prices. Allocates nothing.
    pub(crate) fn query(&self, prices: &[f64], window: Window, answer: &mut Answer) {
        let n = prices.len();
        answer.sold.fill(0.0);
        answer.bought.fill(0.0);
        answer.slopes.fill(0.0);
        let per_span = 1.0 / (window.high() - window.low());
        let high_per_span = window.high() * per_span;
        for book in &self.books {
            let (sell, buy) = (book.sell as usize, book.buy as usize);
            let (p_sell, p_buy) = (prices[sell], prices[buy]);
            let rate = (p_sell / p_buy).min(f64::MAX);
            let full = self.index.sums_at(book, self.index.rank(book, rate * window.low()));
            let some = self.index.sums_at(book, self.index.rank(book, rate * window.high()));
            let by_sell = p_sell * (full[0] + (some[0] - full[0]) * high_per_span);
            let by_buy = p_buy * (some[1] - full[1]) * per_span;
            let value = (by_sell - by_buy).max(0.0);
            answer.sold[sell] += value;
            answer.bought[buy] += value;
            answer.slopes[sell * n + buy] += by_buy;
            answer.slopes[buy * n + sell] += by_sell;
        }
        for side in &self.pools {
            let (sell, buy) = (side.sell as usize, side.buy as usize);
            let supply = self.index.pools[side.pool as usize].supply(side.side, prices[sell] / prices[buy]);
            let (value, by_buy) = (prices[sell] * supply.amount, prices[sell] * supply.slope);
            answer.sold[sell] += value;
            answer.bought[buy] += value;
            answer.slopes[sell * n + buy] += by_buy;
            answer.slopes[buy * n + sell] += value + by_buy;
        }
    }
}
