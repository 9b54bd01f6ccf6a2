//! Values sold that conserve every asset, from the least that each book must sell: a maximum flow.
//!
//! Smoothed demand is no start where an offer of 10^12 times the others sells a share of 10^-12 of itself: its price then differs from
//! its limit by less than the last digit of a float, and what smoothed demand says of it is noise. Here such an offer sells nothing
//! at first, and what the others need of it then. So the values that come out are no larger than they have to be, and exact at the
//! size of those that pass through each asset.

use std::collections::VecDeque;

use crate::bounds::Flow;

/// Of more books than this no flow is looked for: it would take longer than the search of prices.
const BOOKS_MAX: usize = 4_000;
/// Paths at most, for each book.
const PATHS_PER_BOOK: usize = 2;
/// What may be missing of an asset, as a share of what is bought of it: where much passes through it, its sums are no more exact.
const ROUNDING: f64 = 1.0 / (1u64 << 42) as f64;
/// The least that is passed on, as a share of what is bought of the asset that lacks it.
const LEAST: f64 = ROUNDING / 16.0;
/// Paths between two looks at the clock.
const LOOK_EVERY: usize = 64;

/// Sets values within the bounds such that of no asset more is bought than sold; `false` where that cannot be, or takes too long.
pub(crate) fn conserve(flows: &mut [Flow], asset_count: usize, is_over: &dyn Fn() -> bool) -> bool {
    if flows.len() > BOOKS_MAX {
        return false;
    }
    let mut network = Network::new(flows, asset_count);
    let mut paths_left = PATHS_PER_BOOK * flows.len();
    for asset in 0..asset_count {
        while network.missing[asset] > 2.0 * network.rounding[asset] {
            if paths_left == 0 || (paths_left.is_multiple_of(LOOK_EVERY) && is_over()) || !network.pass_on(flows, asset) {
                return false;
            }
            paths_left -= 1;
        }
    }
    // Sums of what passed through a book may leave it by rounding.
    flows.iter_mut().for_each(|flow| flow.value = flow.value.max(flow.low).min(flow.high));
    true
}

/// A way from an asset: a book that can sell more of it, or one that can buy less of it.
#[derive(Clone, Copy)]
enum Way {
    SellsMore(u32),
    BuysLess(u32),
}

struct Network {
    /// By asset.
    ways: Vec<Vec<Way>>,
    /// What is bought of each asset beyond what is sold; what is sold beyond what is bought counts below zero.
    missing: Vec<f64>,
    rounding: Vec<f64>,
    /// Of the search at hand: the way by which each asset was reached.
    reached: Vec<Option<Way>>,
    next: VecDeque<usize>,
}

impl Network {
    fn new(flows: &mut [Flow], asset_count: usize) -> Self {
        let (mut ways, mut missing, mut bought) = (vec![Vec::new(); asset_count], vec![0.0; asset_count], vec![0.0; asset_count]);
        for (number, flow) in (0..).zip(flows) {
            flow.value = flow.low;
            missing[flow.buy] += flow.low;
            bought[flow.buy] += flow.low;
            missing[flow.sell] -= flow.low;
            if flow.high > flow.low {
                ways[flow.sell].push(Way::SellsMore(number));
                ways[flow.buy].push(Way::BuysLess(number));
            }
        }
        let rounding = bought.iter().map(|bought| ROUNDING * bought).collect();
        Self { ways, missing, rounding, reached: vec![None; asset_count], next: VecDeque::new() }
    }

    /// Passes what is missing of an asset on to another of which more is sold than bought, by the fewest books. Says whether there was a
    /// way.
    fn pass_on(&mut self, flows: &mut [Flow], from: usize) -> bool {
        let least = self.rounding[from] * (LEAST / ROUNDING);
        let room = |flows: &[Flow], way: Way| match way {
            Way::SellsMore(number) => {
                let flow = &flows[number as usize];
                (flow.buy, flow.high - flow.value)
            }
            Way::BuysLess(number) => {
                let flow = &flows[number as usize];
                (flow.sell, flow.value - flow.low)
            }
        };
        let origin = |flows: &[Flow], way: Way| match way {
            Way::SellsMore(number) => flows[number as usize].sell,
            Way::BuysLess(number) => flows[number as usize].buy,
        };
        self.reached.fill(None);
        self.next.clear();
        self.next.push_back(from);
        let mut end = None;
        'search: while let Some(asset) = self.next.pop_front() {
            for &way in &self.ways[asset] {
                let (there, room) = room(flows, way);
                if room <= least || there == from || self.reached[there].is_some() {
                    continue;
                }
                self.reached[there] = Some(way);
                if self.rounding[there] - self.missing[there] > least {
                    end = Some(there);
                    break 'search;
                }
                self.next.push_back(there);
            }
        }
        let Some(end) = end else { return false };
        let (mut at, mut amount) = (end, self.missing[from].min(self.rounding[end] - self.missing[end]));
        while let Some(way) = self.reached[at].filter(|_| at != from) {
            amount = amount.min(room(flows, way).1);
            at = origin(flows, way);
        }
        at = end;
        while let Some(way) = self.reached[at].filter(|_| at != from) {
            match way {
                Way::SellsMore(number) => flows[number as usize].value += amount,
                Way::BuysLess(number) => flows[number as usize].value -= amount,
            }
            at = origin(flows, way);
        }
        self.missing[from] -= amount;
        self.missing[end] += amount;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn flow(sell: usize, buy: usize, low: f64, high: f64) -> Flow {
        Flow { sell, buy, low, high, value: 0.5 * high }
    }

    #[test]
    fn a_giant_sells_what_the_others_need_of_it() {
        let mut flows = [flow(0, 1, 0.86, 0.86), flow(1, 2, 0.0, 4.5e2), flow(2, 0, 0.0, 3.9e12)];
        assert!(conserve(&mut flows, 3, &|| false));
        assert_eq!(flows.map(|flow| flow.value), [0.86; 3]);
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let mut flows = [flow(0, 1, 2.0, 2.0), flow(1, 0, 0.0, 1.0)];
        assert!(!conserve(&mut flows, 2, &|| false));
    }

    /// Bounds about a circulation have one, whatever their sizes; a book whose low end is above all that can come back to it has none.
    #[test]
    fn bounds_about_a_circulation_are_met() {
        let mut random = Random::new(7);
        for _ in 0..300 {
            let assets = 3 + random.below(12);
            let mut flows: Vec<Flow> = Vec::new();
            for _ in 0..2 + random.below(20) {
                // A cycle of some assets at one value.
                let value = random.uniform(-12.0, 12.0).exp();
                let (start, length) = (random.below(assets), 2 + random.below(assets - 1));
                for step in 0..length {
                    let (sell, buy) = ((start + step) % assets, (start + (step + 1) % length) % assets);
                    match flows.iter_mut().find(|flow| (flow.sell, flow.buy) == (sell, buy)) {
                        Some(flow) => flow.value += value,
                        None => flows.push(Flow { sell, buy, low: 0.0, high: 0.0, value }),
                    }
                }
            }
            for flow in &mut flows {
                flow.low = flow.value * [0.0, 0.5, 0.9, 1.0][random.below(4)];
                flow.high = flow.value * [1.0, 1.0 + 1e-9, 2.0, 1e9][random.below(4)];
            }
            assert!(conserve(&mut flows, assets, &|| false));
            let (mut missing, mut bought) = (vec![0.0; assets], vec![0.0; assets]);
            for flow in &flows {
                assert!(flow.value >= flow.low && flow.value <= flow.high);
                missing[flow.buy] += flow.value;
                bought[flow.buy] += flow.value;
                missing[flow.sell] -= flow.value;
            }
            assert!(missing.iter().zip(&bought).all(|(missing, bought)| *missing <= 1e-12 * bought), "{missing:?}");
        }
    }
}
