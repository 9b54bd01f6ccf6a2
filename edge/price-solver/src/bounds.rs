//! Whether amounts exist that clear at given prices: the bounds of SPEEDEX 2023, Appendix D, and a witness within them.
//!
//! Smoothed demand is one way to fill the gap between the bounds, not the only one. Where it clears all but a little, the witness
//! starts from it and passes on what is missing: an asset short of supply buys less, down to its buyers' lower bounds, then sells
//! more, up to its sellers' upper bounds. What is missing shrinks by the commission on the way, or an asset runs out of room and
//! the search ends without a verdict: finding no witness here is no proof that there is none. Where that costs a search its prices,
//! a maximum flow decides ([`crate::circulation`]).

use crate::block::Block;
use crate::circulation;
use crate::solve::Accuracy;

const SWEEPS_MAX: usize = 60;
/// The search goes on as long as so many sweeps leave at most this share of what was missing: at a slower pace it would not end in
/// time.
const SWEEPS_OF_HOPE: usize = 8;
const HOPED: f64 = 0.25;
/// What may be missing, as a share of what is bought: floats do not balance exactly.
const ROUNDING: f64 = 1.0 / (1u64 << 40) as f64;

/// One ordered pair's value sold, and how low and high it may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) sell: usize,
    pub(crate) buy: usize,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) value: f64,
}

/// Values sold per book of the block, in its order, that conserve every asset after commission; `None` where none were found.
pub(crate) fn amounts(block: &Block<'_>, prices: &[f64], accuracy: Accuracy) -> Option<Vec<f64>> {
    let flows = block.books.iter().map(|book| flow(block, book, prices, accuracy.mu)).collect();
    mended(block, prices, accuracy, flows)
}

/// The same from values other than smoothed demand's, in the order of the block's books: a share of an offer so large that the
/// price which it would answer with that share is no float.
pub(crate) fn amounts_near(block: &Block<'_>, prices: &[f64], accuracy: Accuracy, values: &[f64]) -> Option<Vec<f64>> {
    let near = |(book, &value): (&crate::demand::Book, &f64)| {
        let flow = flow(block, book, prices, accuracy.mu);
        Flow { value: value.max(flow.low).min(flow.high), ..flow }
    };
    mended(block, prices, accuracy, block.books.iter().zip(values).map(near).collect())
}

/// The same by a maximum flow from the least that each book must sell: it finds values wherever there are some, but for rounding, and
/// takes longer.
pub(crate) fn amounts_by_flow(
    block: &Block<'_>,
    prices: &[f64],
    accuracy: Accuracy,
    is_over: &dyn Fn() -> bool,
) -> Option<Vec<f64>> {
    let mut flows: Vec<Flow> = block.books.iter().map(|book| flow(block, book, prices, accuracy.mu)).collect();
    flows.iter_mut().for_each(|flow| flow.high = flow.high.max(flow.low));
    flows.extend(of_pools(block, prices));
    if !circulation::conserve(&mut flows, prices.len(), is_over) {
        return None;
    }
    let mut sums = vec![Sums::default(); prices.len()];
    for flow in &flows {
        sums[flow.sell].sold += flow.value;
        sums[flow.buy].bought += flow.value;
    }
    let is_conserved = sums.iter().all(|sums| sums.missing(1.0 - accuracy.eps) <= ROUNDING * sums.bought);
    is_conserved.then(|| flows[..block.books.len()].iter().map(|flow| flow.value).collect())
}

/// What pools sell at the prices, no more and no less.
fn of_pools(block: &Block<'_>, prices: &[f64]) -> impl Iterator<Item = Flow> {
    block.pools.iter().map(|side| {
        let (sell, buy) = (side.sell as usize, side.buy as usize);
        let value = prices[sell] * block.index.pools[side.pool as usize].supply(side.side, prices[sell] / prices[buy]).amount;
        Flow { sell, buy, low: value, high: value, value }
    })
}

fn mended(block: &Block<'_>, prices: &[f64], accuracy: Accuracy, mut flows: Vec<Flow>) -> Option<Vec<f64>> {
    let n = prices.len();
    let book_count = flows.len();
    flows.extend(of_pools(block, prices));
    let keep = 1.0 - accuracy.eps;
    let mut sums = vec![Sums::default(); n];
    let mut shares = vec![Shares::default(); n];
    let mut hoped = f64::INFINITY;
    for sweep in 0..SWEEPS_MAX {
        sums.fill(Sums::default());
        for flow in &mut flows {
            let [change_sell, change_buy] = [shares[flow.sell].more, shares[flow.buy].less];
            flow.value += change_sell * (flow.high - flow.value) - change_buy * (flow.value - flow.low);
            flow.value = flow.value.max(flow.low).min(flow.high);
            sums[flow.sell].sold += flow.value;
            sums[flow.sell].more += flow.high - flow.value;
            sums[flow.buy].bought += flow.value;
            sums[flow.buy].less += flow.value - flow.low;
        }
        let mut missing = 0.0;
        for (sums, shares) in sums.iter().zip(&mut shares) {
            *shares = sums.shares(keep)?;
            missing += if *shares == Shares::default() { 0.0 } else { sums.missing(keep) };
        }
        if missing == 0.0 {
            return Some(flows[..book_count].iter().map(|flow| flow.value).collect());
        }
        if sweep % SWEEPS_OF_HOPE == 0 {
            if missing > hoped {
                return None;
            }
            hoped = HOPED * missing;
        }
    }
    None
}

/// Of one asset: value sold and bought, and how much more could be sold, how much less bought.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    sold: f64,
    bought: f64,
    more: f64,
    less: f64,
}

/// What of an asset's room to sell more and to buy less is to be used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Shares {
    more: f64,
    less: f64,
}

impl Sums {
    fn missing(&self, keep: f64) -> f64 {
        self.bought - self.sold / keep
    }

    /// Buys less first, then sells more; `None` where there is no room for it.
    fn shares(&self, keep: f64) -> Option<Shares> {
        let missing = self.missing(keep);
        if missing <= ROUNDING * self.bought {
            return Some(Shares::default());
        }
        // A little more than is missing, so that no rest is left for ever.
        let by_less = (missing * (1.0 + 1e-6)).min(self.less);
        let by_more = (missing * (1.0 + 1e-6) - by_less) * keep;
        let share = |used: f64, room: f64| if used > 0.0 { used / room } else { 0.0 };
        (by_more <= self.more).then(|| Shares { more: share(by_more, self.more), less: share(by_less, self.less) })
    }
}

fn flow(block: &Block<'_>, book: &crate::demand::Book, prices: &[f64], mu: f64) -> Flow {
    let (sell, buy) = (book.sell as usize, book.buy as usize);
    let rate = (prices[sell] / prices[buy]).min(f64::MAX);
    let [full, some] = [rate * (1.0 - mu), rate].map(|key| block.index.sums_at(book, block.index.rank(book, key)));
    let (low, high) = (prices[sell] * full[0], prices[sell] * some[0]);
    let ramp = ((some[0] - full[0]) * rate - (some[1] - full[1])) / (mu * rate);
    Flow { sell, buy, low, high, value: (prices[sell] * (full[0] + ramp)).clamp(low, high.max(low)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::DemandIndex;
    use crate::random::Random;
    use crate::solve::{Outcome, Portfolio, PriceSolver, Problem};
    use crate::structure::Structure;
    use crate::synthetic::{MadeBatch, Model, Shape, Variant};

    /// Prices that clear only within the bounds come with amounts; these keep every offer's rule and conserve every asset.
    #[test]
    fn a_witness_keeps_the_bounds_of_every_offer() {
        let mut witnesses = 0;
        for seed in 0..30 {
            let model = Model { asset_count: 20, offer_count: 500, variant: Variant::SomeLarge, shape: Shape::EvenCycles };
            let batch = MadeBatch::new(model, seed);
            let index = DemandIndex::from_offers(20, &batch.offers, Vec::new()).unwrap();
            let accuracy = Accuracy::bits(15, 10);
            let solution = Portfolio.solve(&Problem::cold(&index, accuracy));
            if solution.outcome != Outcome::ClearedWithinBounds {
                continue;
            }
            let structure = Structure::whole(&index);
            let prices: Vec<f64> = solution.prices.iter().map(|price| price.unwrap()).collect();
            // Where the witness was the interior-point method's own, smoothed demand may lead to none.
            let Some(values) = amounts(&structure.blocks[0], &prices, accuracy) else { continue };
            witnesses += 1;
            let (mut balance, mut bought) = (vec![0.0; 20], vec![0.0; 20]);
            for (book, value) in index.books.iter().zip(values) {
                let (sell, buy) = (book.sell as usize, book.buy as usize);
                let rate = prices[sell] / prices[buy];
                let of_pair = || batch.offers.iter().filter(|offer| (offer.sell, offer.buy) == (sell, buy));
                let sum =
                    |factor: f64| of_pair().filter(|offer| offer.limit <= rate * factor).map(|offer| offer.amount).sum::<f64>();
                let (low, high) = (sum(1.0 - accuracy.mu) * prices[sell], sum(1.0) * prices[sell]);
                assert!(value >= low * (1.0 - 1e-12) && value <= high * (1.0 + 1e-12), "{low} {value} {high}");
                balance[sell] += value;
                balance[buy] -= value * (1.0 - accuracy.eps);
                bought[buy] += value;
            }
            let is_kept = |(balance, bought): (&f64, &f64)| *balance >= -1e-12 * bought;
            assert!(balance.iter().zip(&bought).all(is_kept), "{balance:?} {bought:?}");
        }
        assert!(witnesses >= 10, "{witnesses}: the data no longer exercise the search");
    }

    #[test]
    fn no_witness_where_the_bounds_leave_no_room() {
        // Everything is far in the money, and worth twice as much on one side.
        let mut random = Random::new(1);
        let mut offer = |sell, buy, amount| crate::synthetic::Offer { sell, buy, limit: 0.1 * (1.0 + random.unit()), amount };
        let index = DemandIndex::from_offers(2, &[offer(0, 1, 2.0), offer(1, 0, 1.0)], Vec::new()).unwrap();
        let structure = Structure::of(&index);
        let verdict = |ratio: f64| amounts(&structure.blocks[0], &[ratio, 1.0], Accuracy::bits(10, 10)).is_some();
        assert!(!verdict(1.0) && !verdict(0.501) && verdict(0.5));
    }
}
