//! A block: a part of a market whose prices are found on their own, and the demand query on it.

use crate::demand::{Book, DemandIndex, Search, Window};
use crate::layout::Layout;
use crate::node::{self, Counting};
use crate::pool::PoolSide;

/// Books searched abreast, level by level, so that their cache misses overlap.
const ABREAST: usize = 16;

/// Steps in settling one asset: enough to come within 2^-14 of the range looked at, and then to a root among few limits.
const SETTLE_HALVINGS: usize = 14;
const SETTLE_SECANTS: usize = 12;

/// A part of a market, with its own numbering of assets.
#[derive(Clone, Debug)]
pub(crate) struct Block<'i> {
    pub(crate) index: &'i DemandIndex,
    /// The market's numbers of the block's assets.
    pub(crate) assets: Vec<u32>,
    /// Books between the block's assets, under the block's numbers.
    pub(crate) books: Vec<Book>,
    pub(crate) pools: Vec<PoolSide>,
    /// Where slopes lie in answers to queries.
    pub(crate) layout: Layout,
}

/// What a market answers to prices. All in value: amounts times prices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    /// Value of each asset sold.
    pub sold: Vec<f64>,
    /// Value of each asset bought, before commission.
    pub bought: Vec<f64>,
    /// The Jacobian's off-diagonals, row by row, all non-negative: the derivative of the row's excess demand by the log price of the
    /// column. The diagonal is minus the sum of its column; its places here are zero.
    pub slopes: Vec<f64>,
}

impl Demand {
    /// Room for that many assets.
    pub fn new(asset_count: usize) -> Self {
        Self::with_layout(asset_count, &Layout::Rows(asset_count))
    }

    /// Room for that many assets, slopes laid out in this way.
    pub(crate) fn with_layout(asset_count: usize, layout: &Layout) -> Self {
        Self { sold: vec![0.0; asset_count], bought: vec![0.0; asset_count], slopes: vec![0.0; layout.len()] }
    }

    /// Whether demand, less commission, exceeds supply nowhere: the papers' rule for stopping.
    pub fn clears(&self, eps: f64) -> bool {
        self.sold.iter().zip(&self.bought).all(|(&sold, &bought)| (1.0 - eps) * bought <= sold)
    }

    /// The largest share by which an asset's demand exceeds its supply: `1 - sold / bought`, or zero.
    pub fn worst_excess(&self) -> f64 {
        let excess = |(&sold, &bought): (&f64, &f64)| if bought > sold { 1.0 - sold / bought } else { 0.0 };
        self.sold.iter().zip(&self.bought).map(excess).fold(0.0, f64::max)
    }

    /// The largest share of what is sold and bought of an asset that finds no counterpart, from zero to one.
    pub(crate) fn worst_imbalance(&self) -> f64 {
        let share = |(&sold, &bought): (&f64, &f64)| (sold - bought).abs() / (sold + bought).max(f64::MIN_POSITIVE);
        self.sold.iter().zip(&self.bought).map(share).fold(0.0, f64::max)
    }

    /// The share of the value sold and bought that finds no counterpart, from zero to one.
    pub fn imbalance(&self) -> f64 {
        let pairs = || self.sold.iter().zip(&self.bought);
        let all: f64 = pairs().map(|(&sold, &bought)| sold + bought).sum();
        pairs().map(|(&sold, &bought)| (sold - bought).abs()).sum::<f64>() / all.max(f64::MIN_POSITIVE)
    }
}

impl Block<'_> {
    pub(crate) fn asset_count(&self) -> usize {
        self.assets.len()
    }

    /// Limits in the block's books.
    pub(crate) fn offer_count(&self) -> usize {
        self.books.iter().map(|book| book.offer_count as usize).sum()
    }

    /// Moves the price of one asset, others as they are, to where its supply and demand agree; at most by a factor `e^reach`.
    pub(crate) fn settle_asset(&self, asset: usize, prices: &mut [f64], window: Window, reach: f64) {
        let touches = |book: &&Book| book.sell as usize == asset || book.buy as usize == asset;
        let books: Vec<&Book> = self.books.iter().filter(touches).collect();
        let pools: Vec<&PoolSide> =
            self.pools.iter().filter(|side| side.sell as usize == asset || side.buy as usize == asset).collect();
        let excess_at = |price: f64, prices: &mut [f64]| {
            prices[asset] = price;
            let mut excess = 0.0;
            for book in &books {
                let value = self.value_sold(book, prices[book.sell as usize], prices[book.buy as usize], window);
                excess += if book.buy as usize == asset { value } else { -value };
            }
            for side in &pools {
                let (p_sell, p_buy) = (prices[side.sell as usize], prices[side.buy as usize]);
                let value = p_sell * self.index.pools[side.pool as usize].supply(side.side, p_sell / p_buy).amount;
                excess += if side.buy as usize == asset { value } else { -value };
            }
            excess
        };
        // Excess falls as the price rises. Halving finds a stretch with few limits, false position (Illinois) the root in it.
        let (mut low, mut high) = ((prices[asset] / reach.exp(), f64::INFINITY), (prices[asset] * reach.exp(), -f64::INFINITY));
        for step in 0..SETTLE_HALVINGS + SETTLE_SECANTS {
            let secant = low.0 + (high.0 - low.0) * (low.1 / (low.1 - high.1));
            let halve = step < SETTLE_HALVINGS || !secant.is_finite();
            let price = if halve { low.0.sqrt() * high.0.sqrt() } else { secant.clamp(low.0, high.0) };
            let excess = excess_at(price, prices);
            if excess > 0.0 {
                low = (price, excess);
                high.1 *= if halve { 1.0 } else { 0.5 };
            } else if excess < 0.0 {
                high = (price, excess);
                low.1 *= if halve { 1.0 } else { 0.5 };
            } else {
                break;
            }
        }
    }

    fn value_sold(&self, book: &Book, p_sell: f64, p_buy: f64, window: Window) -> f64 {
        let rate = (p_sell / p_buy).min(f64::MAX);
        let [full, some] = [window.low(), window.high()].map(|end| self.index.sums_at(book, self.index.rank(book, rate * end)));
        let per_span = 1.0 / (window.high() - window.low());
        let by_sell = p_sell * (full[0] + (some[0] - full[0]) * window.high() * per_span);
        above_noise(by_sell - p_buy * (some[1] - full[1]) * per_span, by_sell)
    }

    /// Supply, demand and slopes at these prices. Allocates nothing. The result does not depend on the machine's vector width.
    pub(crate) fn query(&self, prices: &[f64], window: Window, answer: &mut Demand) {
        let Self { index, books, pools, layout, .. } = self;
        node::with_fastest(Query { index, books, pools, layout, prices, window, answer });
    }
}

impl DemandIndex {
    /// Supply, demand and slopes of the whole market at these prices, one per asset, all finite and above zero. Allocates nothing once
    /// `demand` has room for the assets. The result does not depend on the machine's vector width.
    ///
    /// # Panics
    /// If there are fewer or more prices than assets.
    pub fn demand(&self, prices: &[f64], window: Window, demand: &mut Demand) {
        assert_eq!(prices.len(), self.asset_count, "one price per asset");
        if demand.sold.len() != prices.len() {
            *demand = Demand::new(prices.len());
        }
        let (books, pools, layout) = (&self.books, &self.pool_sides, &Layout::Rows(self.asset_count));
        node::with_fastest(Query { index: self, books, pools, layout, prices, window, answer: demand });
    }
}

/// A difference, or zero where it is rounding alone: an offer right at the edge of its window sells nothing rather than a speck, which
/// would count as demand without supply.
#[inline(always)]
fn above_noise(difference: f64, minuend: f64) -> f64 {
    if difference > minuend * NOISE { difference } else { 0.0 }
}

const NOISE: f64 = 1.0 / (1u64 << 48) as f64;

/// A query on its way to the fastest search.
struct Query<'a> {
    index: &'a DemandIndex,
    books: &'a [Book],
    pools: &'a [PoolSide],
    layout: &'a Layout,
    prices: &'a [f64],
    window: Window,
    answer: &'a mut Demand,
}

impl node::Search for Query<'_> {
    #[inline(always)]
    fn run<C: Counting>(self) {
        let Self { index, books, pools, layout, prices, window, answer } = self;
        answer.sold.fill(0.0);
        answer.bought.fill(0.0);
        answer.slopes.fill(0.0);
        let per_span = 1.0 / (window.high() - window.low());
        let high_per_span = window.high() * per_span;
        for (chunk, books) in books.chunks(ABREAST).enumerate() {
            let mut searches = [Search::default(); ABREAST];
            let searches = &mut searches[..books.len()];
            let mut depth = 0;
            for (search, book) in searches.iter_mut().zip(books) {
                let rate = (prices[book.sell as usize] / prices[book.buy as usize]).min(f64::MAX);
                *search = Search::new(book, rate * window.low(), rate * window.high());
                depth = depth.max(book.depth());
            }
            for _ in 0..depth {
                for (search, book) in searches.iter_mut().zip(books) {
                    index.descend::<C>(book, search);
                }
            }
            for (search, book) in searches.iter_mut().zip(books) {
                index.finish::<C>(book, search);
            }
            for (place, (search, book)) in searches.iter().zip(books).enumerate() {
                let (sell, buy) = (book.sell as usize, book.buy as usize);
                let (p_sell, p_buy) = (prices[sell], prices[buy]);
                let full = index.sums_at(book, search.at[0]);
                let some = index.sums_at(book, search.at[1]);
                let by_sell = p_sell * (full[0] + (some[0] - full[0]) * high_per_span);
                let by_buy = p_buy * (some[1] - full[1]) * per_span;
                let value = above_noise(by_sell - by_buy, by_sell);
                answer.sold[sell] += value;
                answer.bought[buy] += value;
                let [of_buy, of_sell] = layout.book_slots(chunk * ABREAST + place, sell, buy);
                answer.slopes[of_buy] += by_buy;
                answer.slopes[of_sell] += by_sell;
            }
        }
        for (number, side) in pools.iter().enumerate() {
            let (sell, buy) = (side.sell as usize, side.buy as usize);
            let supply = index.pools[side.pool as usize].supply(side.side, prices[sell] / prices[buy]);
            let (value, by_buy) = (prices[sell] * supply.amount, prices[sell] * supply.slope);
            answer.sold[sell] += value;
            answer.bought[buy] += value;
            let [of_buy, of_sell] = layout.pool_slots(number, sell, buy);
            answer.slopes[of_buy] += by_buy;
            answer.slopes[of_sell] += value + by_buy;
        }
    }
}
