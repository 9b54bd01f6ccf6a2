//! From amounts that nearly balance to amounts that do.
//!
//! Rounded to whole units, and to what the last offer of each pair can honour, some asset may be bought a few units more than it is sold.
//! Assets that are short are helped one at a time, those whose unit is worth most first, because what helps them costs assets with finer
//! units, where less is lost by rounding. What helps is to sell more of it or to buy less of it; either costs another asset some units, which
//! may have them left over, or be helped in turn. In this order:
//!
//! 1. the shortest chain of such changes, within the lanes' bounds, that ends in an asset with enough left over: for all that is short, or for a
//!    half of it, a quarter, and so on;
//! 2. the same, buying less than the lower bounds ask for;
//! 3. buy less of it, down to the lower bounds, then below them, and help the other asset later.
//!
//! The first two leave no new asset short. The third may, and chains can be searched for in vain, so the lanes looked at are counted: past a
//! number proportional to the lanes there are the repair gives up and names an asset, and the caller takes that asset out of the market. So the
//! whole ends at the latest when nothing trades.
//!
//! Where units are coarse, rounding may cost much of what could trade; `more.rs` then lets lanes sell more again.

use std::collections::VecDeque;

use walras_types::Amount;

use crate::amounts::{Fills, LaneFill};
use crate::limits::{REPAIR_WORK_MIN, REPAIR_WORK_PER_LANE};

mod more;

/// A lane of one component of the market, its assets numbered within the component.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalLane {
    /// Its place in the caller's list.
    pub(crate) index: usize,
    pub(crate) sell: usize,
    pub(crate) buy: usize,
    pub(crate) lower: Amount,
    pub(crate) upper: Amount,
    /// Its lower bound before the plan lowered it.
    pub(crate) wanted: Amount,
}

/// How far a lane may be lowered to help an asset.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Down {
    ToLower,
    ToNothing,
}

/// How a chain of changes came to an asset: what changes, from which asset it came.
#[derive(Clone, Copy)]
struct Link {
    from: usize,
    lane: usize,
    new: LaneFill,
}

pub(crate) struct Repair<'a, F> {
    lanes: &'a [LocalLane],
    /// Assets, those with the most valuable unit first.
    coarse_first: &'a [usize],
    fills: &'a F,
    /// What each lane trades.
    fill: Vec<LaneFill>,
    /// Units sold less units bought, of each asset.
    balance: Vec<i128>,
    /// Lanes that sell, and that buy, an asset; of the latter those that sell the finest units first.
    selling: Vec<Vec<u32>>,
    buying: Vec<Vec<u32>>,
    step_count: usize,
    /// Lanes looked at.
    work: usize,
    /// Lanes that were changed, with what they traded before.
    changed: Vec<(usize, LaneFill)>,
}

impl<'a, F: Fills> Repair<'a, F> {
    pub(crate) fn new(lanes: &'a [LocalLane], coarse_first: &'a [usize], fills: &'a F, fill: Vec<LaneFill>) -> Self {
        let mut balance = vec![0; coarse_first.len()];
        for (lane, fill) in lanes.iter().zip(&fill) {
            balance[lane.sell] += i128::from(fill.sold.get());
            balance[lane.buy] -= i128::from(fill.bought.get());
        }
        let (selling, buying, changed) = (Vec::new(), Vec::new(), Vec::new());
        Self { lanes, coarse_first, fills, fill, balance, selling, buying, step_count: 0, work: 0, changed }
    }

    /// Amounts of which no asset is short, or an asset that should leave the market, as where the search was to end.
    pub(crate) fn finish(mut self, is_over: &dyn Fn() -> bool) -> Result<(Vec<LaneFill>, usize), usize> {
        let work_max = self.work_max();
        while let Some(asset) = self.short() {
            if self.selling.is_empty() {
                self.list_lanes();
            }
            self.step_count += 1;
            let is_helped = self.work <= work_max
                && !is_over()
                && (self.help_by_chain(asset, Down::ToLower)
                    || self.help_by_chain(asset, Down::ToNothing)
                    || self.buy_less(asset, Down::ToLower)
                    || self.buy_less(asset, Down::ToNothing));
            if !is_helped {
                return Err(self.least_traded_short());
            }
        }
        Ok((self.fill, self.step_count))
    }

    fn work_max(&self) -> usize {
        REPAIR_WORK_MIN + REPAIR_WORK_PER_LANE * self.lanes.len()
    }

    /// The short asset whose unit is worth most.
    fn short(&self) -> Option<usize> {
        self.coarse_first.iter().copied().find(|&asset| self.balance[asset] < 0)
    }

    fn list_lanes(&mut self) {
        self.selling = vec![Vec::new(); self.balance.len()];
        self.buying = vec![Vec::new(); self.balance.len()];
        for (lane, index) in self.lanes.iter().zip(0..) {
            self.selling[lane.sell].push(index);
        }
        for &asset in self.coarse_first.iter().rev() {
            for &index in &self.selling[asset] {
                self.buying[self.lanes[index as usize].buy].push(index);
            }
        }
    }

    /// Of the short assets, the one in which the fewest lanes trade.
    fn least_traded_short(&self) -> usize {
        let lane_count = |asset: usize| {
            let trades = |&&index: &&u32| !self.fill[index as usize].sold.is_zero();
            self.selling[asset].iter().chain(&self.buying[asset]).filter(trades).count()
        };
        let short = (0..self.balance.len()).filter(|&asset| self.balance[asset] < 0);
        short.min_by_key(|&asset| (lane_count(asset), asset)).expect("called while an asset is short")
    }

    /// Gives a short asset all it needs, or a half of that, a quarter, ... at the cost of assets that have it left over. Whether that helped.
    fn help_by_chain(&mut self, asset: usize, down: Down) -> bool {
        let mut need = -self.balance[asset];
        while need > 0 {
            if self.help_with(asset, need, down) {
                return true;
            }
            need /= 2;
        }
        false
    }

    /// Breadth first: which asset pays for what the one before it gets. All or nothing.
    fn help_with(&mut self, asset: usize, need: i128, down: Down) -> bool {
        let mut links: Vec<Option<Link>> = vec![None; self.balance.len()];
        let mut queue = VecDeque::from([(asset, need)]);
        while let Some((from, need)) = queue.pop_front() {
            let (sells, buys) = (&self.selling[from], &self.buying[from]);
            for (&lane, is_sale) in sells.iter().map(|lane| (lane, true)).chain(buys.iter().map(|lane| (lane, false))) {
                self.work += 1;
                let lane = lane as usize;
                let to = if is_sale { self.lanes[lane].buy } else { self.lanes[lane].sell };
                if to == asset || links[to].is_some() || self.balance[to] < 0 {
                    continue;
                }
                let changed = if is_sale { self.raised(lane, need) } else { self.lowered(lane, need, down) };
                let Some((new, gain, cost)) = changed else { continue };
                if gain < need {
                    continue;
                }
                links[to] = Some(Link { from, lane, new });
                if cost <= self.balance[to] {
                    self.apply_chain(&links, asset, to);
                    return true;
                }
                queue.push_back((to, cost - self.balance[to]));
            }
        }
        false
    }

    fn apply_chain(&mut self, links: &[Option<Link>], start: usize, end: usize) {
        let mut at = end;
        while at != start {
            let Link { from, lane, new } = links[at].expect("the search came here along a link");
            self.change(lane, new);
            at = from;
        }
    }

    /// Buys less of a short asset by one lane, which may leave another asset short. Whether that helped.
    fn buy_less(&mut self, asset: usize, down: Down) -> bool {
        for place in 0..self.buying[asset].len() {
            let lane = self.buying[asset][place] as usize;
            self.work += 1;
            if let Some((new, _, _)) = self.lowered(lane, -self.balance[asset], down) {
                self.change(lane, new);
                return true;
            }
        }
        false
    }

    /// What a lane trades when it sells `need` more, or as much more as it may; how much more that is, and what it costs the asset bought.
    fn raised(&self, index: usize, need: i128) -> Option<(LaneFill, i128, i128)> {
        let (lane, old) = (self.lanes[index], self.fill[index]);
        if old.sold >= lane.upper {
            return None;
        }
        let new = self.fills.at_most(lane.index, plus(old.sold, need).min(lane.upper));
        let gain = minus(new.sold, old.sold);
        (gain > 0).then_some((new, gain, minus(new.bought, old.bought)))
    }

    /// What a lane trades when it buys `need` less, or as much less as it may; how much less that is, and what it costs the asset sold.
    fn lowered(&self, index: usize, need: i128, down: Down) -> Option<(LaneFill, i128, i128)> {
        let (lane, old) = (self.lanes[index], self.fill[index]);
        let floor = if down == Down::ToNothing { Amount::ZERO } else { lane.lower };
        if old.sold <= floor || old.bought.is_zero() {
            return None;
        }
        let (sold, bought) = (i128::from(old.sold.get()), i128::from(old.bought.get()));
        let wanted = (bought - need).max(0);
        // In proportion, rounded up; all factors are below 2^63.
        let mut less = (sold * (bought - wanted) + bought - 1) / bought;
        loop {
            let target = minus_to(old.sold, less, floor);
            let new = self.fills.at_most(lane.index, target);
            if i128::from(new.bought.get()) <= wanted || target == floor {
                let gain = minus(old.bought, new.bought);
                return (gain > 0 && new.sold >= floor).then_some((new, gain, minus(old.sold, new.sold)));
            }
            less *= 2;
        }
    }

    fn change(&mut self, index: usize, new: LaneFill) {
        let (lane, old) = (self.lanes[index], self.fill[index]);
        self.balance[lane.sell] += minus(new.sold, old.sold);
        self.balance[lane.buy] -= minus(new.bought, old.bought);
        self.fill[index] = new;
        self.changed.push((index, old));
    }
}

fn minus(a: Amount, b: Amount) -> i128 {
    i128::from(a.get()) - i128::from(b.get())
}

/// `amount + more`, at most [`Amount::MAX`]; `more` is not negative.
fn plus(amount: Amount, more: i128) -> Amount {
    Amount::from_wide(u128::from(amount.get()).saturating_add(more.unsigned_abs())).unwrap_or(Amount::MAX)
}

/// `amount - less`, at least `floor`; `less` is not negative.
fn minus_to(amount: Amount, less: i128, floor: Amount) -> Amount {
    let rest = (i128::from(amount.get()).saturating_sub(less)).max(0).unsigned_abs();
    Amount::from_wide(rest).unwrap_or(Amount::ZERO).max(floor)
}
