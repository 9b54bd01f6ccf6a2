//! Amounts in whole units for every pair, at given prices: the plan in value, then its rounding.

use walras_types::{Amount, BatchPrice, Commission};

use crate::blocks::blocks;
use crate::circulation::{Answer, CirculationSolver, Cut};
use crate::limits::{COARSE_SHIFT, NODE_COUNT_MAX, RELAX_ROUNDS_MAX, SINGLE_REMOVALS_MAX, VALUE_MAX};
use crate::network::{Network, ValueArc};
use crate::repair::{LocalLane, Repair};
use crate::value::ValueUnit;

/// One way of trading in a pair: its sell offers, its buy offers, a pool. Bounds in units of the asset sold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// The asset sold.
    pub sell: u32,
    /// The asset bought.
    pub buy: u32,
    /// The least that should be sold.
    pub lower: Amount,
    /// The most that may be sold.
    pub upper: Amount,
}

/// What a lane trades.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneFill {
    /// Units sold.
    pub sold: Amount,
    /// Units bought with them.
    pub bought: Amount,
}

/// What lanes can trade in whole units.
pub trait Fills {
    /// The largest trade of a lane that sells at most `sold_max`, which is at most the lane's upper bound, and that the offers behind it can
    /// honour. Selling more never buys less; selling nothing buys nothing; what is bought is worth no more than what is sold, or by less than
    /// a unit.
    fn at_most(&self, lane: usize, sold_max: Amount) -> LaneFill;
}

/// Lanes, and what a unit of each asset is worth.
#[derive(Clone, Copy, Debug)]
pub struct LaneMarket<'a> {
    prices: &'a [Option<BatchPrice>],
    lanes: &'a [Lane],
    commission: Commission,
}

/// Why lanes make no market.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaneError {
    /// A lane sells or buys an asset beyond the last, or an asset for itself.
    #[error("lane {lane} is not between two of the market's assets: number assets from 0, and give a price or none for each")]
    Assets {
        /// The lane's place in the list.
        lane: usize,
    },
    /// A lane can trade and one of its assets has no price.
    #[error("lane {lane} trades an asset without a price: leave it out, or set its upper bound to zero")]
    Unpriced {
        /// The lane's place in the list.
        lane: usize,
    },
    /// A lane's lower bound is above its upper bound.
    #[error("lane {lane} should sell more than it may: its lower bound is above its upper bound")]
    Bounds {
        /// The lane's place in the list.
        lane: usize,
    },
    /// Lanes are not in the order of their pairs.
    #[error("lane {lane} comes after one of a later pair: sort lanes by the asset sold, then by the asset bought")]
    Order {
        /// The lane's place in the list.
        lane: usize,
    },
}

/// Amounts of which no asset is short, and how they came about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amounts {
    /// What each lane trades, in the order of the lanes.
    pub fills: Vec<LaneFill>,
    /// The parts of the market that share at most one asset with each other, such as each stock with the currency that it trades in.
    pub parts: Vec<PartReport>,
    /// How many lanes sell less than they should.
    pub below_lower_count: usize,
}

/// How the amounts of one part of the market came about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartReport {
    /// Its assets, in ascending order.
    pub assets: Vec<u32>,
    /// The unit of the values below.
    pub value_unit: ValueUnit,
    /// The greatest value that can trade if amounts need not be whole.
    pub planned: i128,
    /// How much less trades. Below zero if rounding found more than the plan, which sets something aside for it.
    pub given_up: i128,
    /// What became of the lower bounds in the plan.
    pub relaxed: Relaxed,
    /// Assets taken out of the market because they could not be balanced in whole units.
    pub assets_removed: Vec<u32>,
    /// Changes made after rounding.
    pub repair_count: usize,
}

/// What became of the lower bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relaxed {
    /// They are kept.
    No,
    /// No flow keeps them all: some are lowered.
    Lowered {
        /// The first proof that they had to be.
        first: Cut,
        /// By how much, together.
        by: i128,
    },
    /// No flow keeps them all, and lowering them did not end: none is kept.
    Dropped {
        /// The first proof that they can not all be kept.
        first: Cut,
    },
    /// The part has more assets than a network holds, and nothing of it trades.
    TooManyAssets,
    /// The search was to end before there were amounts, and nothing of the part trades.
    OutOfTime,
}

impl<'a> LaneMarket<'a> {
    /// A market, checked. Lanes come in ascending order of (sell, buy); a pair may have several, and the first of them trade first.
    ///
    /// # Errors
    /// [`LaneError`] says what is wrong and with which lane.
    pub fn new(prices: &'a [Option<BatchPrice>], lanes: &'a [Lane], commission: Commission) -> Result<Self, LaneError> {
        let price = |asset: u32| prices[asset as usize].filter(|price| !price.is_zero());
        let mut last = (0, 0);
        for (index, lane) in lanes.iter().enumerate() {
            if lane.sell == lane.buy || lane.sell.max(lane.buy) as usize >= prices.len() {
                return Err(LaneError::Assets { lane: index });
            }
            if !lane.upper.is_zero() && (price(lane.sell).is_none() || price(lane.buy).is_none()) {
                return Err(LaneError::Unpriced { lane: index });
            }
            if lane.lower > lane.upper {
                return Err(LaneError::Bounds { lane: index });
            }
            if (lane.sell, lane.buy) < last {
                return Err(LaneError::Order { lane: index });
            }
            last = (lane.sell, lane.buy);
        }
        Ok(Self { prices, lanes, commission })
    }
}

/// Finds amounts. Keeps its tables between calls; equal markets give equal amounts, whatever it did before.
#[derive(Clone, Debug, Default)]
pub struct AmountsFinder {
    solver: CirculationSolver,
}

impl AmountsFinder {
    /// A finder without tables yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Amounts with the greatest value that conserve every asset in whole units. There always are some: in the worst case nothing trades.
    ///
    /// Lower bounds are kept where they can be; the report says where they are not.
    pub fn find(&mut self, market: &LaneMarket<'_>, fills: &impl Fills) -> Amounts {
        self.find_until(market, fills, &|| false)
    }

    /// The same until `is_over` says so: parts that have no amounts by then trade nothing.
    pub fn find_until(&mut self, market: &LaneMarket<'_>, fills: &impl Fills, is_over: &dyn Fn() -> bool) -> Amounts {
        let mut amounts = Amounts { fills: vec![LaneFill::default(); market.lanes.len()], parts: Vec::new(), below_lower_count: 0 };
        for part in parts(market) {
            let (part_fills, report) = self.find_in_part(market, part, fills, is_over);
            for (index, fill) in part_fills {
                amounts.fills[index] = fill;
            }
            amounts.parts.push(report);
        }
        amounts.below_lower_count = market.lanes.iter().zip(&amounts.fills).filter(|(lane, fill)| fill.sold < lane.lower).count();
        amounts
    }

    /// Plans, rounds, repairs; takes an asset out and starts anew as often as the repair asks for it.
    fn find_in_part(
        &mut self,
        market: &LaneMarket<'_>,
        mut part: Part,
        fills: &impl Fills,
        is_over: &dyn Fn() -> bool,
    ) -> (Vec<(usize, LaneFill)>, PartReport) {
        let mut first: Option<(i128, Relaxed)> = None;
        let mut removed: Vec<u32> = Vec::new();
        loop {
            let plan = part.plan(&mut self.solver, market.commission, is_over);
            let (planned, relaxed) = first.get_or_insert((plan.value, plan.relaxed)).clone();
            for (lane, &sold) in part.lanes.iter_mut().zip(&plan.sold) {
                lane.lower = lane.lower.min(sold);
            }
            let rounded = part.lanes.iter().zip(&plan.sold).map(|(lane, &sold)| fills.at_most(lane.index, sold)).collect();
            match Repair::new(&part.lanes, &part.coarse_first, fills, rounded).finish(is_over) {
                Ok((mut repaired, repair_count)) => {
                    if plan.value - part.value_of(&repaired) > plan.value >> COARSE_SHIFT {
                        let worth = |lane: usize, sold| i128::from(part.worth(lane, sold));
                        repaired = Repair::new(&part.lanes, &part.coarse_first, fills, repaired).sell_more(&worth, is_over);
                    }
                    let value = part.value_of(&repaired);
                    let fills = part.lanes.iter().map(|lane| lane.index).zip(repaired).collect();
                    let report = PartReport {
                        assets: part.assets,
                        value_unit: part.value_unit,
                        planned,
                        given_up: planned - value,
                        relaxed,
                        assets_removed: removed,
                        repair_count,
                    };
                    return (fills, report);
                }
                Err(asset) => {
                    let leaving =
                        if removed.len() < SINGLE_REMOVALS_MAX { vec![asset] } else { part.half_with_fewest_lanes(asset) };
                    // An asset that is short trades, so each time one more leaves; and after the single ones half of what is left.
                    for asset in leaving {
                        removed.push(part.assets[asset]);
                        part.remove(asset);
                    }
                }
            }
        }
    }
}

/// A connected part of a market.
struct Part {
    assets: Vec<u32>,
    prices: Vec<BatchPrice>,
    lanes: Vec<LocalLane>,
    coarse_first: Vec<usize>,
    value_unit: ValueUnit,
}

/// What each lane of a part should sell, not yet balanced.
struct Plan {
    sold: Vec<Amount>,
    value: i128,
    relaxed: Relaxed,
}

/// How much of the commission a plan may spend on keeping lower bounds and on more volume.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spend {
    /// What rounding can not need.
    AllButRounding,
    All,
}

/// The parts of a market, each planned by itself: its blocks. An asset that joins blocks is balanced within each of them, which costs no
/// value, since a circulation is a sum of cycles and a cycle stays within a block.
fn parts(market: &LaneMarket<'_>) -> Vec<Part> {
    let lanes: Vec<(u32, u32)> = market.lanes.iter().map(|lane| (lane.sell, lane.buy)).collect();
    let is_trading = |lane: usize| !market.lanes[lane].upper.is_zero();
    let mut local = vec![0; market.prices.len()];
    blocks(market.prices.len(), &lanes, is_trading).into_iter().map(|block| part(market, &block, &mut local)).collect()
}

/// The part of these lanes, in ascending order. `local` is room for a number per asset.
fn part(market: &LaneMarket<'_>, block: &[usize], local: &mut [usize]) -> Part {
    let mut assets: Vec<u32> = block.iter().flat_map(|&index| [market.lanes[index].sell, market.lanes[index].buy]).collect();
    assets.sort_unstable();
    assets.dedup();
    for (place, &asset) in assets.iter().enumerate() {
        local[asset as usize] = place;
    }
    let price = |asset: &u32| market.prices[*asset as usize].expect("a lane that trades has prices");
    let prices: Vec<BatchPrice> = assets.iter().map(price).collect();
    let of_market = |&index: &usize| {
        let Lane { sell, buy, lower, upper } = market.lanes[index];
        LocalLane { index, sell: local[sell as usize], buy: local[buy as usize], lower, upper, wanted: lower }
    };
    let lanes: Vec<LocalLane> = block.iter().map(of_market).collect();
    let mut coarse_first: Vec<usize> = (0..assets.len()).collect();
    coarse_first.sort_by_key(|&asset| (std::cmp::Reverse(prices[asset]), asset));
    let lanes_per_pair_max = lanes.chunk_by(same_pair).map(<[_]>::len).max().unwrap_or(1);
    let value_unit = ValueUnit::finest(lanes.iter().map(|lane| (lane.upper, prices[lane.sell])), lanes_per_pair_max);
    Part { assets, prices, lanes, coarse_first, value_unit }
}

fn same_pair(a: &LocalLane, b: &LocalLane) -> bool {
    (a.sell, a.buy) == (b.sell, b.buy)
}

impl Part {
    /// The plan of the greatest value. First with all lower bounds and so much of the commission as rounding can not need, then with all of the
    /// commission. If no flow keeps the lower bounds, those into the assets that cannot pay for them fall by what is missing, as often as it
    /// takes; if that is more often than [`RELAX_ROUNDS_MAX`], they all drop to zero.
    fn plan(&self, solver: &mut CirculationSolver, commission: Commission, is_over: &dyn Fn() -> bool) -> Plan {
        let of_nothing = |relaxed| Plan { sold: vec![Amount::ZERO; self.lanes.len()], value: 0, relaxed };
        if self.assets.len() > NODE_COUNT_MAX {
            return of_nothing(Relaxed::TooManyAssets);
        }
        let mut bounds: Vec<(i64, i64)> = self.lanes.iter().map(|lane| self.bounds(lane)).collect();
        if commission != Commission::NONE {
            let surplus_min = self.surplus_min(&bounds, commission, Spend::AllButRounding);
            match self.solve(solver, &bounds, &surplus_min, is_over) {
                Some(Answer::Best(best)) => return self.plan_of(&best.flows, best.value, &bounds, Relaxed::No),
                Some(Answer::Infeasible(_)) => {}
                None => return of_nothing(Relaxed::OutOfTime),
            }
        }
        let mut relaxed = Relaxed::No;
        for _ in 0..RELAX_ROUNDS_MAX {
            let surplus_min = self.surplus_min(&bounds, commission, Spend::All);
            match self.solve(solver, &bounds, &surplus_min, is_over) {
                None => return of_nothing(Relaxed::OutOfTime),
                Some(Answer::Best(best)) => return self.plan_of(&best.flows, best.value, &bounds, relaxed),
                Some(Answer::Infeasible(cut)) => {
                    let lowered = self.relax(&mut bounds, &cut, commission);
                    relaxed = match relaxed {
                        Relaxed::Lowered { first, by } => Relaxed::Lowered { first, by: by + lowered },
                        _ => Relaxed::Lowered { first: self.with_names(cut), by: lowered },
                    };
                }
            }
        }
        for (lower, _) in &mut bounds {
            *lower = 0;
        }
        let relaxed = match relaxed {
            Relaxed::Lowered { first, .. } => Relaxed::Dropped { first },
            other => other,
        };
        match self.solve(solver, &bounds, &vec![0; self.assets.len()], is_over) {
            None => of_nothing(Relaxed::OutOfTime),
            Some(Answer::Best(best)) => self.plan_of(&best.flows, best.value, &bounds, relaxed),
            Some(Answer::Infeasible(_)) => unreachable!("nothing on every arc is a circulation when no arc must carry anything"),
        }
    }

    /// Lowers lower bounds into a cut until it no longer proves that they can not hold, the largest first: few offers suffer, not all.
    fn relax(&self, bounds: &mut [(i64, i64)], cut: &Cut, commission: Commission) -> i128 {
        let mut inside = vec![false; self.assets.len()];
        cut.assets.iter().for_each(|&asset| inside[asset as usize] = true);
        let crosses = |&index: &usize| !inside[self.lanes[index].sell] && inside[self.lanes[index].buy];
        let mut crossing: Vec<usize> = (0..self.lanes.len()).filter(crosses).collect();
        crossing.sort_by_key(|&index| (std::cmp::Reverse(bounds[index].0), index));
        let mut missing = cut.surplus_min - (cut.upper_out - cut.lower_in);
        if let Some(exponent) = commission.exponent() {
            // Less that must be bought is less commission to spend: eps of what is lowered and a rounding for each asset. As eps <= 1/2,
            // twice eps covers that eps of itself too.
            missing += (missing >> (exponent - 1)) + 2 * (cut.assets.len() as i128 + 1);
        }
        let mut rest = missing;
        for index in crossing {
            let lower = &mut bounds[index].0;
            let less = i64::try_from(rest).map_or(*lower, |rest| rest.min(*lower));
            *lower -= less;
            rest -= i128::from(less);
        }
        missing - rest
    }

    /// The asset given and half of those that still trade, those in the fewest lanes.
    fn half_with_fewest_lanes(&self, asset: usize) -> Vec<usize> {
        let mut lane_counts = vec![0_usize; self.assets.len()];
        for lane in self.lanes.iter().filter(|lane| !lane.upper.is_zero()) {
            lane_counts[lane.sell] += 1;
            lane_counts[lane.buy] += 1;
        }
        let mut trading: Vec<usize> = (0..self.assets.len()).filter(|&other| other != asset && lane_counts[other] > 0).collect();
        trading.sort_by_key(|&other| (lane_counts[other], other));
        trading.truncate(trading.len().div_ceil(2));
        trading.push(asset);
        trading
    }

    /// Its lanes trade nothing from now on.
    fn remove(&mut self, asset: usize) {
        for lane in self.lanes.iter_mut().filter(|lane| lane.sell == asset || lane.buy == asset) {
            (lane.lower, lane.upper) = (Amount::ZERO, Amount::ZERO);
        }
    }

    /// The value that trades.
    fn value_of(&self, fills: &[LaneFill]) -> i128 {
        fills.iter().enumerate().map(|(lane, fill)| i128::from(self.worth(lane, fill.sold))).sum()
    }

    /// The value of what a lane sells, by its place.
    fn worth(&self, lane: usize, sold: Amount) -> i64 {
        self.value_unit.worth_down(sold, self.prices[self.lanes[lane].sell])
    }

    /// A lane's bounds in value.
    fn bounds(&self, lane: &LocalLane) -> (i64, i64) {
        let price = self.prices[lane.sell];
        let upper = self.value_unit.worth_down(lane.upper, price);
        (self.value_unit.worth_up(lane.lower, price).min(upper), upper)
    }

    fn solve(
        &self,
        solver: &mut CirculationSolver,
        bounds: &[(i64, i64)],
        surplus_min: &[i64],
        is_over: &dyn Fn() -> bool,
    ) -> Option<Answer> {
        let mut arcs = Vec::with_capacity(self.lanes.len());
        let mut rest = bounds;
        for lanes in self.lanes.chunk_by(same_pair) {
            let (of_pair, after) = rest.split_at(lanes.len());
            rest = after;
            // The unit is such that the lanes of a pair are together at most VALUE_MAX.
            let (lower, upper) = of_pair.iter().fold((0, 0), |sum, bounds| (sum.0 + bounds.0, sum.1 + bounds.1));
            arcs.push(ValueArc { from: lanes[0].sell as u32, to: lanes[0].buy as u32, lower, upper });
        }
        let network = Network::new(&arcs, surplus_min).expect("lanes are checked, pairs distinct, bounds within the unit's range");
        solver.solve_until(&network, is_over)
    }

    /// What the commission is sure to leave of each asset may be spent: of what must be bought of it, the share eps.
    fn surplus_min(&self, bounds: &[(i64, i64)], commission: Commission, spend: Spend) -> Vec<i64> {
        let Some(exponent) = commission.exponent() else { return vec![0; self.assets.len()] };
        let one = Amount::new(1).expect("one unit is an amount");
        let mut surely_bought = vec![0_i128; self.assets.len()];
        let mut lost_in_rounding = vec![0_i128; self.assets.len()];
        for (lane, &(lower, upper)) in self.lanes.iter().zip(bounds) {
            surely_bought[lane.buy] += i128::from(lower);
            // Rounding down to whole units sells up to a unit less of the asset, and bounds are off by up to a unit of value.
            lost_in_rounding[lane.buy] += 2;
            lost_in_rounding[lane.sell] += 2;
            if lower < upper {
                lost_in_rounding[lane.sell] += i128::from(self.value_unit.worth_up(one, self.prices[lane.sell]));
            }
        }
        let spent = |(bought, lost): (i128, i128)| {
            let lost = if spend == Spend::All { 0 } else { lost };
            let spent = ((bought >> exponent) - lost).clamp(0, i128::from(VALUE_MAX));
            -i64::try_from(spent).expect("clamped")
        };
        surely_bought.into_iter().zip(lost_in_rounding).map(spent).collect()
    }

    /// Amounts of flows: a pair's flow fills the lower bounds of its lanes, then its lanes in turn.
    fn plan_of(&self, flows: &[i64], value: i128, bounds: &[(i64, i64)], relaxed: Relaxed) -> Plan {
        let mut sold = Vec::with_capacity(self.lanes.len());
        for (lanes, &flow) in self.lanes.chunk_by(same_pair).zip(flows) {
            let bounds = &bounds[sold.len()..][..lanes.len()];
            let mut above_lower = flow - bounds.iter().map(|(lower, _)| lower).sum::<i64>();
            for (lane, &(lower, upper)) in lanes.iter().zip(bounds) {
                let share = above_lower.min(upper - lower);
                above_lower -= share;
                let price = self.prices[lane.sell];
                let least = if lower < self.value_unit.worth_up(lane.lower, price).min(upper) { Amount::ZERO } else { lane.lower };
                sold.push(match lower + share {
                    0 => least,
                    flow if flow == upper && share > 0 => lane.upper,
                    _ if share == 0 && !least.is_zero() => least,
                    flow => self.value_unit.amount_down(flow, price).clamp(least, lane.upper),
                });
            }
        }
        Plan { sold, value, relaxed }
    }

    /// A cut with the market's names of assets.
    fn with_names(&self, cut: Cut) -> Cut {
        Cut { assets: cut.assets.iter().map(|&asset| self.assets[asset as usize]).collect(), ..cut }
    }
}
