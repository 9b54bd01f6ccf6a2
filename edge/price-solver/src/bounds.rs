//! Whether amounts exist that clear at given prices: the bounds of SPEEDEX 2023, Appendix D, and a witness within them.
//!
//! Smoothed demand is one way to fill the gap between the bounds, not the only one. Where it clears all but a little, the witness starts
//! from it and passes on what is missing: an asset short of supply buys less, down to its buyers' lower bounds, then sells more, up to
//! its sellers' upper bounds. What is missing shrinks by the commission on the way, or an asset runs out of room and the search ends
//! without a verdict: finding no witness here is no proof that there is none.

use crate::block::Block;
use crate::solve::Accuracy;

const SWEEPS_MAX: usize = 60;

/// One ordered pair's value sold, and how low and high it may be.
struct Flow {
    sell: usize,
    buy: usize,
    low: f64,
    high: f64,
    value: f64,
}

/// Values sold per book of the block, in its order, that conserve every asset after commission; `None` where none were found.
pub(crate) fn amounts(block: &Block<'_>, prices: &[f64], accuracy: Accuracy) -> Option<Vec<f64>> {
    let n = prices.len();
    let mut flows: Vec<Flow> = block.books.iter().map(|book| flow(block, book, prices, accuracy.mu)).collect();
    let book_count = flows.len();
    for side in &block.pools {
        let (sell, buy) = (side.sell as usize, side.buy as usize);
        let value = prices[sell] * block.index.pools[side.pool as usize].supply(side.side, prices[sell] / prices[buy]).amount;
        flows.push(Flow { sell, buy, low: value, high: value, value });
    }
    let keep = 1.0 - accuracy.eps;
    let (mut surplus, mut less, mut more) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
    for _ in 0..SWEEPS_MAX {
        surplus.fill(0.0);
        for flow in &flows {
            surplus[flow.sell] += flow.value;
            surplus[flow.buy] -= keep * flow.value;
        }
        if surplus.iter().all(|&surplus| surplus >= 0.0) {
            return Some(flows[..book_count].iter().map(|flow| flow.value).collect());
        }
        less.fill(0.0);
        more.fill(0.0);
        for flow in &flows {
            less[flow.buy] += flow.value - flow.low;
            more[flow.sell] += flow.high - flow.value;
        }
        // Shares of the room to use: first buying less, then selling more. A little more than is missing, so that rounding does not
        // leave a rest for ever.
        for asset in 0..n {
            let missing = (-surplus[asset] / keep * (1.0 + 1e-6)).max(0.0);
            let by_less = missing.min(less[asset]);
            let by_more = (missing - by_less) * keep;
            if by_more > more[asset] {
                return None;
            }
            less[asset] = if by_less > 0.0 { by_less / less[asset] } else { 0.0 };
            more[asset] = if by_more > 0.0 { by_more / more[asset] } else { 0.0 };
        }
        for flow in &mut flows {
            let change = more[flow.sell] * (flow.high - flow.value) - less[flow.buy] * (flow.value - flow.low);
            flow.value = (flow.value + change).clamp(flow.low, flow.high);
        }
    }
    None
}

fn flow(block: &Block<'_>, book: &crate::demand::Book, prices: &[f64], mu: f64) -> Flow {
    let (sell, buy) = (book.sell as usize, book.buy as usize);
    let rate = (prices[sell] / prices[buy]).min(f64::MAX);
    let [full, some] = [rate * (1.0 - mu), rate].map(|key| block.index.sums_at(book, block.index.rank(book, key)));
    let (low, high) = (prices[sell] * full[0], prices[sell] * some[0]);
    let ramp = ((some[0] - full[0]) * rate - (some[1] - full[1])) / (mu * rate);
    Flow { sell, buy, low, high, value: (prices[sell] * (full[0] + ramp)).clamp(low, high.max(low)) }
}
