//! An independent judge of prices: a feasible circulation in whole numbers, from the offers alone.
//!
//! It shares no code with the solver. At given prices each ordered pair carries a value between what its offers must sell and what
//! they may sell (SPEEDEX 2023, Appendix D), and no asset may be bought by more than its supply and the commission cover. A maximum
//! flow (Dinic 1970) in 128-bit integers decides that, so values 10^20 apart lose nothing. A flow that is found is checked against
//! the rule itself: a yes is a proof.

use std::collections::BTreeMap;

use walras_price_solver::families::FamilyMarket;

/// Bits of the largest sum of values.
const VALUE_BITS: i32 = 110;
/// What is bought may exceed what is sold by this share beyond the commission: prices are floats.
const ROUNDING: f64 = 1.0 / (1_u64 << 38) as f64;
/// Limits that differ by no more from the rate, or from the lower end of the window, are on the edge: prices of blocks are scaled
/// together.
const TIE: f64 = 1e-13;
/// The commission is a share of what is bought, which the flow decides: so many flows, each with the commission of the one before.
const ROUNDS_MAX: usize = 30;

/// Values that a pair must and may carry, in units.
#[derive(Clone, Copy, Debug, Default)]
struct Bounds {
    low: i128,
    high: i128,
    /// What smoothed demand says, between the two.
    middle: i128,
}

/// Whether amounts within the bounds clear the market at these prices.
pub(crate) fn is_clearing(market: &FamilyMarket, prices: &[Option<f64>], eps: f64, mu: f64) -> bool {
    let priced: Vec<(usize, usize, f64, f64, f64)> = market
        .offers
        .iter()
        .filter_map(|offer| {
            let (sell, buy) = (prices[offer.sell]?, prices[offer.buy]?);
            Some((offer.sell, offer.buy, sell / buy, offer.limit, sell * offer.amount))
        })
        .collect();
    let is_in_money = |rate: f64, limit: f64| limit <= rate * (1.0 + TIE);
    let in_money = priced.iter().filter(|(_, _, rate, limit, _)| is_in_money(*rate, *limit));
    let unit = in_money.map(|(.., value)| value).sum::<f64>().max(f64::MIN_POSITIVE) * f64::from(-VALUE_BITS).exp2();
    let mut pairs: BTreeMap<(usize, usize), Bounds> = BTreeMap::new();
    for &(sell, buy, rate, limit, value) in priced.iter().filter(|(_, _, rate, limit, _)| is_in_money(*rate, *limit)) {
        let bounds = pairs.entry((sell, buy)).or_default();
        let units = (value / unit) as i128;
        bounds.high += units;
        let share = ((rate - limit) / (mu * rate)).clamp(0.0, 1.0);
        bounds.middle += (value * share / unit) as i128;
        if limit <= rate * (1.0 - mu) * (1.0 - TIE) {
            bounds.low += units;
        }
    }
    let starts: [fn(&Bounds) -> i128; 3] = [|bounds| bounds.low, |bounds| bounds.middle, |bounds| bounds.high];
    starts.into_iter().any(|start| clears_from(&pairs, market.asset_count, eps + ROUNDING, start))
}

/// Whether a flow clears that is found with the commission of such values.
fn clears_from(pairs: &BTreeMap<(usize, usize), Bounds>, asset_count: usize, share: f64, start: fn(&Bounds) -> i128) -> bool {
    let commission = |bought: i128| (bought as f64 * share) as i128 + 1;
    let mut bought = vec![0; asset_count];
    pairs.iter().for_each(|(&(_, buy), bounds)| bought[buy] += start(bounds));
    for _ in 0..ROUNDS_MAX {
        let spare: Vec<i128> = bought.iter().map(|&bought| commission(bought)).collect();
        let Some(flows) = circulation(pairs, &spare) else { return false };
        let mut sold = vec![0; asset_count];
        bought.fill(0);
        for (&(sell, buy), flow) in pairs.keys().zip(flows) {
            sold[sell] += flow;
            bought[buy] += flow;
        }
        if sold.iter().zip(&bought).all(|(&sold, &bought)| sold + commission(bought) >= bought) {
            return true;
        }
    }
    false
}

/// A flow of each pair within its bounds, such that each asset's purchases exceed its sales by at most what it has to spare.
fn circulation(pairs: &BTreeMap<(usize, usize), Bounds>, spare: &[i128]) -> Option<Vec<i128>> {
    let n = spare.len();
    let (market, source, sink) = (n, n + 1, n + 2);
    let mut network = Network::new(n + 3);
    let mut due = vec![0; n];
    let arcs: Vec<usize> = pairs
        .iter()
        .map(|(&(sell, buy), bounds)| {
            due[sell] -= bounds.low;
            due[buy] += bounds.low;
            network.arc(sell, buy, bounds.high - bounds.low)
        })
        .collect();
    let unbounded = 1_i128 << 120;
    let mut wanted = 0;
    for asset in 0..n {
        // What is bought beyond what is sold goes to the market, and comes from it the other way.
        network.arc(asset, market, spare[asset]);
        network.arc(market, asset, unbounded);
        wanted += due[asset].max(0);
        network.arc(source, asset, due[asset].max(0));
        network.arc(asset, sink, (-due[asset]).max(0));
    }
    let total = network.max_flow(source, sink);
    (total == wanted).then(|| pairs.values().zip(arcs).map(|(bounds, arc)| bounds.low + network.room[arc ^ 1]).collect())
}

/// A network of residual room: each arc is followed by the one back.
struct Network {
    to: Vec<usize>,
    room: Vec<i128>,
    from: Vec<Vec<usize>>,
}

impl Network {
    fn new(node_count: usize) -> Self {
        Self { to: Vec::new(), room: Vec::new(), from: vec![Vec::new(); node_count] }
    }

    fn arc(&mut self, from: usize, to: usize, room: i128) -> usize {
        let arc = self.to.len();
        self.to.extend([to, from]);
        self.room.extend([room, 0]);
        self.from[from].push(arc);
        self.from[to].push(arc + 1);
        arc
    }

    fn max_flow(&mut self, source: usize, sink: usize) -> i128 {
        let mut total = 0;
        loop {
            let levels = self.levels(source);
            if levels[sink] == usize::MAX {
                return total;
            }
            let mut next = vec![0; self.from.len()];
            loop {
                let pushed = self.push(source, sink, i128::MAX, &levels, &mut next);
                if pushed == 0 {
                    break;
                }
                total += pushed;
            }
        }
    }

    fn levels(&self, source: usize) -> Vec<usize> {
        let mut levels = vec![usize::MAX; self.from.len()];
        levels[source] = 0;
        let mut queue = std::collections::VecDeque::from([source]);
        while let Some(node) = queue.pop_front() {
            for &arc in &self.from[node] {
                if self.room[arc] > 0 && levels[self.to[arc]] == usize::MAX {
                    levels[self.to[arc]] = levels[node] + 1;
                    queue.push_back(self.to[arc]);
                }
            }
        }
        levels
    }

    fn push(&mut self, node: usize, sink: usize, most: i128, levels: &[usize], next: &mut [usize]) -> i128 {
        if node == sink {
            return most;
        }
        while let Some(&arc) = self.from[node].get(next[node]) {
            let to = self.to[arc];
            if self.room[arc] > 0 && levels[to] == levels[node] + 1 {
                let pushed = self.push(to, sink, most.min(self.room[arc]), levels, next);
                if pushed > 0 {
                    self.room[arc] -= pushed;
                    self.room[arc ^ 1] += pushed;
                    return pushed;
                }
            }
            next[node] += 1;
        }
        0
    }
}
