//! A large market as a search of prices needs to see it: offers one by one near the rates, in lumps elsewhere.
//!
//! An index of all offers takes time in proportion to what stands, block after block, and a search looks at little of it: where the rate of a pair
//! goes through its book. So a close-up has of each book lumps of equally many offers, each at one limit, and single offers in the lumps around
//! its rate: about the square root of the book's offers of either. Where the window at the prices found lies among single offers in every
//! book, demand there is that of all offers: every lump is either below the window, so that all of it trades, or above, so that nothing does.
//! Where it does not, the next close-up is taken around those prices.

use std::ops::Range;

use walras_clearing::{BatchMarket, PairBook};
use walras_price_solver::demand::{DemandIndex, IndexError, Window};

use crate::index::{self, float};

/// How a close-up is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lens {
    /// Books of at most so many offers are seen whole.
    pub(crate) whole_max: usize,
    /// So many lumps on each side of the rate are seen offer by offer.
    pub(crate) reach: usize,
}

impl Lens {
    /// With more lumps on each side, prices found among lumps are seldom so far off that it takes one close-up more; with fewer there are fewer
    /// levels.
    pub(crate) const USUAL: Self = Self { whole_max: 64, reach: 4 };

    /// Whether close-ups of such a market are worth it: two of them, as are needed where prices moved far, take as long as an index of all at a
    /// thousand offers a book, a third of that at ten thousand.
    pub(crate) fn is_for(market: &BatchMarket) -> bool {
        let offer_count: usize = market.books().iter().map(|book| book.sells().as_slice().len()).sum();
        offer_count >= OFFERS_MIN && offer_count / market.books().len() >= OFFERS_PER_BOOK_MIN
    }
}

/// Smaller markets are indexed within a few milliseconds.
const OFFERS_MIN: usize = 100_000;
const OFFERS_PER_BOOK_MIN: usize = 1_500;

/// How many single offers a lump costs: its limit and its sum lie far from those of the next, and come from memory.
const LUMP_PER_SINGLE: usize = 8;

/// An index of some offers and of lumps of the others.
pub(crate) struct CloseUp {
    pub(crate) index: DemandIndex,
    sharp: Vec<Sharp>,
}

/// Where a book that is not seen whole is seen offer by offer: below `high`, and not below `low`.
#[derive(Clone, Copy, Debug)]
struct Sharp {
    sell: usize,
    buy: usize,
    low: f64,
    high: f64,
}

impl CloseUp {
    /// Around these prices; without, around the middle of each book.
    ///
    /// # Errors
    /// As [`index::demand_index`].
    pub(crate) fn taken(
        market: &BatchMarket,
        kept: f64,
        around: Option<&[f64]>,
        window: Window,
        lens: Lens,
    ) -> Result<Self, IndexError> {
        let mut index = index::without_offers(market, kept)?;
        let levels_of = |book: &PairBook| lens.levels_of(book.sells().as_slice().len());
        index.reserve(market.books().len(), market.books().iter().map(|book| levels_of(book)).sum());
        let (mut sharp, mut levels) = (Vec::new(), Vec::new());
        for book in market.books() {
            let (sell, buy) = (book.pair().sell.index(), book.pair().buy.index());
            let rate = around.map(|prices| prices[sell] / prices[buy]).filter(|rate| rate.is_finite() && *rate > 0.0);
            levels.clear();
            let view = View { book, kept, levels: &mut levels };
            if book.sells().as_slice().len() <= lens.whole_max {
                view.whole();
            } else {
                let (low, high) = view.close_up(rate, window, lens);
                sharp.push(Sharp { sell, buy, low, high });
            }
            index.push_book(sell, buy, &levels)?;
        }
        Ok(Self { index, sharp })
    }

    /// Whether demand at these prices is that of all offers. What has no price does not trade.
    pub(crate) fn is_sharp_at(&self, prices: &[Option<f64>], window: Window) -> bool {
        self.sharp.iter().all(|sharp| {
            let (Some(sell), Some(buy)) = (prices[sharp.sell], prices[sharp.buy]) else { return true };
            let rate = (sell / buy).min(f64::MAX);
            sharp.low <= rate * window.low() && rate * window.high() < sharp.high
        })
    }
}

impl Lens {
    /// Offers in a lump of a book of so many, by which a close-up takes the least time.
    fn lump_len(self, offer_count: usize) -> usize {
        (offer_count * LUMP_PER_SINGLE / (2 * self.reach)).isqrt().max(1)
    }

    /// About how many levels a book of so many offers has.
    fn levels_of(self, offer_count: usize) -> usize {
        let lump_len = self.lump_len(offer_count);
        if offer_count <= self.whole_max { offer_count } else { offer_count / lump_len + 2 * self.reach * lump_len + 4 }
    }
}

/// The levels of a book as they are put down.
struct View<'m, 'l> {
    book: &'m PairBook,
    kept: f64,
    /// `(limit, amount)`, limits strictly ascending.
    levels: &'l mut Vec<(f64, f64)>,
}

impl View<'_, '_> {
    fn limit(&self, place: usize) -> f64 {
        float(self.book.sells().as_slice()[place].key().limit) / self.kept
    }

    /// How many limits are at most this one.
    fn rank(&self, key: f64) -> usize {
        self.book.sells().as_slice().partition_point(|offer| float(offer.key().limit) / self.kept <= key)
    }

    /// One level for some offers.
    fn put(&mut self, limit: f64, offers: Range<usize>) {
        let units = |count: usize| self.book.sells().units_of_first(count).get();
        self.push(limit, (units(offers.end) - units(offers.start)) as f64);
    }

    fn put_single(&mut self, place: usize) {
        let offer = &self.book.sells().as_slice()[place];
        self.push(float(offer.key().limit) / self.kept, offer.amount().get() as f64);
    }

    /// What has the limit of the level before joins it.
    fn push(&mut self, limit: f64, amount: f64) {
        match self.levels.last_mut() {
            Some((last, sum)) if *last == limit => *sum += amount,
            _ => self.levels.push((limit, amount)),
        }
    }

    fn whole(mut self) {
        (0..self.book.sells().as_slice().len()).for_each(|place| self.put_single(place));
    }

    /// Says from where to where the offers are single: lumps have the limits nearest to that.
    fn close_up(mut self, rate: Option<f64>, window: Window, lens: Lens) -> (f64, f64) {
        let offer_count = self.book.sells().as_slice().len();
        let lump_len = lens.lump_len(offer_count);
        let market_orders = self.rank(0.0);
        let [from, to] = match rate {
            Some(rate) => [window.low(), window.high()].map(|end| self.rank(rate * end)),
            None => [market_orders.max(offer_count / 2); 2],
        };
        let reach = lens.reach * lump_len;
        let single = from.saturating_sub(reach)..to.saturating_add(reach).min(offer_count);
        let mut first = 0;
        while first < single.start {
            // Market orders have no price, and the lowest limit is where a book begins: each is a level of its own.
            let end = match first {
                0 if market_orders > 0 => market_orders,
                _ if first == market_orders => first + 1,
                _ => first + lump_len,
            };
            let end = end.min(single.start);
            self.put(self.limit(end - 1), first..end);
            first = end;
        }
        let low = single.start.checked_sub(1).map_or(f64::NEG_INFINITY, |last| self.limit(last));
        single.clone().for_each(|place| self.put_single(place));
        let high = if single.end < offer_count { self.limit(single.end) } else { f64::INFINITY };
        first = single.end;
        while first < offer_count {
            let end = (first + lump_len).min(offer_count);
            self.put(self.limit(first), first..end);
            first = end;
        }
        (low, high)
    }
}
