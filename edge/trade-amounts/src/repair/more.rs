//! Where units are coarse, rounding may cost much of what could trade: lanes sell more again, without an asset getting short.
//!
//! A lane sells more for what is left over of the asset that it buys. Otherwise it sells the least that it can above the present amount,
//! and for the asset that is short then others help, by chains of changes as in the repair. What trades more in value is kept. One
//! offer sells 2 units for 3, or 4 for 6; the other sells 4 to 5 for 2, or 6 for 3. None of the two can sell more alone, and both can.

use walras_types::Amount;

use super::{Down, LocalLane, Repair, minus, plus};
use crate::amounts::{Fills, LaneFill};
use crate::limits::{SELL_MORE_HELPS_MAX, SELL_MORE_ROUNDS_MAX, SELL_MORE_STEP_MAX, SELL_MORE_TRIES_MAX};

/// What an amount sold by a lane, by its place, is worth.
type Worth<'a> = &'a dyn Fn(usize, Amount) -> i128;

/// What a lane sells at most.
type Bound = fn(&LocalLane) -> Amount;

impl<F: Fills> Repair<'_, F> {
    /// Of balanced amounts those in which lanes sell more, first the lanes that sell less than they should.
    pub(crate) fn sell_more(mut self, worth: Worth<'_>, is_over: &dyn Fn() -> bool) -> Vec<LaneFill> {
        let bounds: [Bound; 2] = [|lane| lane.wanted.min(lane.upper), |lane| lane.upper];
        let work_max = self.work_max();
        self.list_lanes();
        for _ in 0..SELL_MORE_ROUNDS_MAX {
            let mut has_changed = false;
            for bound in bounds {
                for (index, lane) in self.lanes.iter().enumerate() {
                    let bound = bound(lane);
                    if self.fill[index].sold >= bound {
                        continue;
                    }
                    if self.work > work_max || is_over() {
                        return self.fill;
                    }
                    has_changed |= self.spend_left_over(index, bound) || self.step_up(index, bound, worth);
                }
            }
            if !has_changed {
                break;
            }
        }
        self.fill
    }

    /// Sells more by a lane, up to this bound and for no more than what is left over of the asset that it buys. Whether it does.
    fn spend_left_over(&mut self, index: usize, bound: Amount) -> bool {
        let (lane, old) = (self.lanes[index], self.fill[index]);
        let left = self.balance[lane.buy];
        let mut target = bound;
        for _ in 0..SELL_MORE_TRIES_MAX {
            if left <= 0 || target <= old.sold {
                return false;
            }
            self.work += 1;
            let new = self.fills.at_most(lane.index, target);
            let (gain, cost) = (minus(new.sold, old.sold), minus(new.bought, old.bought));
            if gain <= 0 {
                return false;
            }
            if cost <= left {
                self.change(index, new);
                return true;
            }
            // In proportion, rounded down, so it falls each time; all factors are below 2^63.
            target = plus(old.sold, gain * left / cost);
        }
        false
    }

    /// Sells the least that a lane can above what it sells, and helps the assets that are short then. Whether more trades in value; if
    /// not, nothing has changed.
    fn step_up(&mut self, index: usize, bound: Amount, worth: Worth<'_>) -> bool {
        let Some(new) = self.least_above(index, bound) else { return false };
        self.changed.clear();
        self.change(index, new);
        for _ in 0..SELL_MORE_HELPS_MAX {
            let Some(short) = self.short() else { break };
            if !self.help_by_chain(short, Down::ToLower) {
                break;
            }
        }
        let is_better = self.short().is_none() && self.gain(worth) > 0;
        if !is_better {
            self.undo();
        }
        is_better
    }

    /// What a lane trades that sells more, within this bound: nearly the least that offers can honour.
    fn least_above(&mut self, index: usize, bound: Amount) -> Option<LaneFill> {
        let (lane, old) = (self.lanes[index], self.fill[index]);
        let mut step = 1;
        while step <= SELL_MORE_STEP_MAX {
            self.work += 1;
            let target = plus(old.sold, step).min(bound);
            let new = self.fills.at_most(lane.index, target);
            if new.sold > old.sold {
                return Some(new);
            }
            if target == bound {
                return None;
            }
            step *= 2;
        }
        None
    }

    /// By how much more trades in value than before what was changed.
    fn gain(&self, worth: Worth<'_>) -> i128 {
        let mut gain = 0;
        for (place, &(index, before)) in self.changed.iter().enumerate() {
            // A lane may have changed several times; what it traded at first counts.
            if self.changed[..place].iter().all(|&(other, _)| other != index) {
                gain += worth(index, self.fill[index].sold) - worth(index, before.sold);
            }
        }
        gain
    }

    /// Takes back what was changed.
    fn undo(&mut self) {
        for (index, before) in std::mem::take(&mut self.changed).into_iter().rev() {
            self.change(index, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A unit of each asset for a unit of each other, by multiples of a grain for each lane.
    struct ByGrain(&'static [u64]);

    impl Fills for ByGrain {
        fn at_most(&self, lane: usize, sold_max: Amount) -> LaneFill {
            let sold = units(sold_max.get() / self.0[lane] * self.0[lane]);
            LaneFill { sold, bought: sold }
        }
    }

    fn units(units: u64) -> Amount {
        Amount::new(units).unwrap()
    }

    fn lane(index: usize, sell: usize, buy: usize, upper: u64, wanted: u64) -> LocalLane {
        LocalLane { index, sell, buy, lower: Amount::ZERO, upper: units(upper), wanted: units(wanted) }
    }

    fn sold(lanes: &[LocalLane], assets: &[usize], fills: &ByGrain, balanced: Vec<LaneFill>) -> Vec<u64> {
        let worth = |_, sold: Amount| i128::from(sold.get());
        let more = Repair::new(lanes, assets, fills, balanced).sell_more(&worth, &|| false);
        more.iter().map(|fill| fill.sold.get()).collect()
    }

    /// Two units of asset 0 are left over. The first lane could take both, and the second should sell one.
    #[test]
    fn what_is_left_over_goes_first_to_lanes_that_sell_less_than_they_should() {
        let lanes = [lane(0, 1, 0, 10, 0), lane(1, 2, 0, 10, 1), lane(2, 0, 1, 2, 0)];
        let sells_two = LaneFill { sold: units(2), bought: Amount::ZERO };
        let balanced = vec![LaneFill::default(), LaneFill::default(), sells_two];
        assert_eq!(sold(&lanes, &[0, 1, 2], &ByGrain(&[1, 1, 1]), balanced), [1, 1, 2]);
    }

    /// Nothing is left over, and no lane can sell more alone. The first sells two units at once, and the second follows.
    #[test]
    fn lanes_sell_more_together() {
        let lanes = [lane(0, 0, 1, 7, 0), lane(1, 1, 0, 9, 0)];
        let balanced = vec![LaneFill::default(); 2];
        assert_eq!(sold(&lanes, &[0, 1], &ByGrain(&[2, 1]), balanced), [6, 6]);
        // Multiples of 2 and of 5: ten are more than the first lane has.
        let balanced = vec![LaneFill::default(); 2];
        assert_eq!(sold(&lanes, &[0, 1], &ByGrain(&[2, 5]), balanced), [0, 0]);
    }

    #[test]
    fn nothing_changes_when_time_is_over() {
        let lanes = [lane(0, 0, 1, 7, 0), lane(1, 1, 0, 9, 0)];
        let balanced = vec![LaneFill::default(); 2];
        let fills = ByGrain(&[1, 1]);
        let repair = Repair::new(&lanes, &[0, 1], &fills, balanced.clone());
        assert_eq!(repair.sell_more(&|_, sold| i128::from(sold.get()), &|| true), balanced);
    }
}
