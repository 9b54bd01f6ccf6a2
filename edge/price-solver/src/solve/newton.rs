//! Newton's method with continuation: solve for a wide window, narrow it, solve again from there.
//!
//! In a window of width `w` (log price) offers within `w` of the rate answer in part, demand is nearly smooth over distances of `w`, and
//! Newton's method converges from that far. The solution moves by the order of `w` as the window narrows; so each width's solution is
//! a good start for the next, and how far the last step went says how much narrower the next window may be. Dense books take one or
//! two steps per width down to `mu`; where books are nearly steps the method stalls, and says at which width.

use super::markov::{SILENT, Stopped};
use super::{Found, Task, markov};
use crate::block::{Block, Demand};
use crate::demand::Window;

/// Ties every asset to its old price by this share of its slope: enough to keep parts together that do not trade at the moment.
const ANCHOR: f64 = 1e-9;
/// A width is solved when a full step was no longer than this share of it.
const STEP_SOLVED: f64 = 0.3;
/// The next width: so many of the last steps, and within these shares of the present width.
const WIDTH_PER_STEP: f64 = 4.0;
const NARROWING: (f64, f64) = (1.0 / 16.0, 0.5);
/// Backtracking: the share of a step tried next, the least share, and the least fall of the merit per share of a step.
const SHORTER: f64 = 0.35;
const SHARE_MIN: f64 = 0.1;
const FALL_MIN: f64 = 0.1;
/// Iterations at one width.
const ITERATIONS_MAX: usize = 6;
const ITERATIONS_MAX_LAST: usize = 12;
/// An asset's price moves by at most this in a step, in log price: so many widths, and within these bounds.
const TRUST_WIDTHS: f64 = 4.0;
const TRUST: (f64, f64) = (0.02, 8.0);
/// An asset is lonely when its imbalance exceeds this share of its volume; so many at least are settled one by one.
const LONELY: f64 = 0.1;
const LONELY_MAX: usize = 8;
/// How far an asset may be settled away, in log price.
const SETTLE_REACH: f64 = 1.0;
/// The share of a step that was mended afterwards: all but whole, so that the width is not called solved by it.
const ALMOST_ALL: f64 = 0.99;
/// A squared imbalance that is rounding alone.
const MERIT_ZERO: f64 = 1e-24;
/// How often a stall is answered by a wider window; with many offers more often, because the interior-point method costs more.
const RETREATS_MAX: u32 = 1;
const RETREATS_MAX_MANY: u32 = 3;
const MANY_OFFERS: usize = 20_000;

/// How the attempt at one width ended.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Level {
    Cleared,
    /// With a last step of this length.
    Solved(f64),
    Stalled,
    Spent,
}

pub(super) struct Continuation {
    prices: Vec<f64>,
    /// Prices at the narrowest width solved so far, and that width.
    solved: (Vec<f64>, f64),
    any_solved: bool,
    width: f64,
    trial: Demand,
    trial_prices: Vec<f64>,
    matrix: Vec<f64>,
    anchor: Vec<f64>,
    right: Vec<f64>,
    ratios: Vec<f64>,
}

impl Continuation {
    pub(super) fn new(block: &Block<'_>, prices: Vec<f64>, width: f64) -> Self {
        let n = prices.len();
        Self {
            solved: (prices.clone(), width),
            any_solved: false,
            width,
            trial: Demand::with_layout(n, &block.layout),
            trial_prices: vec![1.0; n],
            matrix: vec![0.0; block.layout.len()],
            anchor: vec![0.0; n],
            right: vec![0.0; n],
            ratios: vec![1.0; n],
            prices,
        }
    }

    pub(super) fn solved_prices(&self) -> &[f64] {
        &self.solved.0
    }

    /// Whether any width was solved.
    pub(super) fn has_solved(&self) -> bool {
        self.any_solved
    }

    pub(super) fn solved_width(&self) -> f64 {
        self.solved.1
    }

    /// What came of it.
    pub(super) fn best(&self, task: &mut Task<'_, '_>) -> Found {
        task.judge(&self.prices)
    }

    pub(super) fn run(&mut self, task: &mut Task<'_, '_>) {
        let mu = task.accuracy.mu;
        let retreats_max = if task.block.offer_count() > MANY_OFFERS { RETREATS_MAX_MANY } else { RETREATS_MAX };
        let mut retreats = 0;
        loop {
            match self.level(task) {
                Level::Cleared | Level::Spent => return,
                Level::Solved(step) => {
                    self.any_solved = true;
                    self.solved.0.copy_from_slice(&self.prices);
                    self.solved.1 = self.width;
                    let (least, most) = NARROWING;
                    self.width = (WIDTH_PER_STEP * step).clamp(self.width * least, self.width * most);
                    if self.width < mu / 4.0 {
                        self.width = 0.0;
                    }
                }
                Level::Stalled if retreats == retreats_max => {
                    self.prices.copy_from_slice(&self.solved.0);
                    return;
                }
                Level::Stalled => {
                    retreats += 1;
                    self.prices.copy_from_slice(&self.solved.0);
                    self.width = if self.any_solved { (self.width.max(mu / 8.0) * self.solved.1).sqrt() } else { self.width * 8.0 };
                    self.solved.1 = self.solved.1.max(self.width * f64::from(u8::from(!self.any_solved)));
                }
            }
        }
    }

    /// Newton steps at one width.
    fn level(&mut self, task: &mut Task<'_, '_>) -> Level {
        let (width, mu) = (self.width, task.accuracy.mu);
        let window = Window::widened(mu, width);
        let is_last = width == 0.0;
        let trust = (TRUST_WIDTHS * (width + mu)).clamp(TRUST.0, TRUST.1).exp();
        task.query(&self.prices, window);
        for _ in 0..if is_last { ITERATIONS_MAX_LAST } else { ITERATIONS_MAX } {
            if is_last && task.answer.clears(task.accuracy.eps) {
                return Level::Cleared;
            }
            if task.is_spent() {
                return Level::Spent;
            }
            let Ok(step) = self.find_ratios(task) else { return Level::Spent };
            let Some(share) = self.search(task, window, trust) else { return Level::Stalled };
            if !is_last && share == 1.0 && step <= STEP_SOLVED * (width + mu) {
                return Level::Solved(step);
            }
        }
        Level::Stalled
    }

    /// The Newton step as ratios of prices; its greatest length in log price.
    fn find_ratios(&mut self, task: &Task<'_, '_>) -> Result<f64, Stopped> {
        let (n, answer, layout) = (self.prices.len(), &task.answer, &task.block.layout);
        self.matrix.copy_from_slice(&answer.slopes);
        layout.column_sums(&answer.slopes, &mut self.anchor);
        let max = self.anchor.iter().fold(f64::MIN_POSITIVE, |max, &sum| max.max(sum));
        self.anchor.iter_mut().for_each(|sum| *sum = ANCHOR * sum.max(SILENT * max));
        self.right.copy_from_slice(&self.anchor);
        markov::solve(layout, &mut self.matrix, &mut self.anchor, &mut self.right, &mut self.ratios, &|| task.budget.is_over())?;
        // Only ratios of prices mean something: the median asset stays, so that one asset that could go anywhere moves no other.
        self.right.copy_from_slice(&self.ratios);
        let (_, &mut middle, _) = self.right.select_nth_unstable_by(n / 2, f64::total_cmp);
        self.ratios.iter_mut().for_each(|ratio| *ratio /= middle.max(f64::MIN_POSITIVE));
        Ok(self.ratios.iter().fold(0.0f64, |step, ratio| step.max(ratio.ln().abs())))
    }

    /// Goes as much of the step as lowers the imbalance; the share gone, if any.
    fn search(&mut self, task: &mut Task<'_, '_>, window: Window, trust: f64) -> Option<f64> {
        let merit = merit(&task.answer, &task.answer);
        let mut share = 1.0;
        loop {
            for ((trial, price), ratio) in self.trial_prices.iter_mut().zip(&self.prices).zip(&self.ratios) {
                *trial = price * (1.0 + share * (ratio.clamp(1.0 / trust, trust) - 1.0));
            }
            task.queries += 1;
            task.block.query(&self.trial_prices, window, &mut self.trial);
            if merit <= MERIT_ZERO || self::merit(&self.trial, &task.answer) <= merit * (1.0 - FALL_MIN * share) {
                std::mem::swap(&mut self.prices, &mut self.trial_prices);
                std::mem::swap(&mut task.answer, &mut self.trial);
                return Some(share);
            }
            if share == 1.0
                && self.settle_lonely(task, window)
                && self::merit(&self.trial, &task.answer) <= merit * (1.0 - FALL_MIN)
            {
                std::mem::swap(&mut self.prices, &mut self.trial_prices);
                std::mem::swap(&mut task.answer, &mut self.trial);
                return Some(ALMOST_ALL);
            }
            share *= SHORTER;
            if share < SHARE_MIN || task.is_spent() {
                return None;
            }
        }
    }

    /// Settles the few assets that the step left far out of balance one by one: nonlinear elimination. Their answer is nearly a step
    /// even where the rest of the market is smooth, and would keep the rest from going on. Says whether there were any.
    fn settle_lonely(&mut self, task: &mut Task<'_, '_>, window: Window) -> bool {
        let imbalance = |asset: usize, demand: &Demand| {
            let (sold, bought) = (demand.sold[asset], demand.bought[asset]);
            (bought - sold).abs() / (bought + sold).max(f64::MIN_POSITIVE)
        };
        let lonely: Vec<usize> = (0..self.prices.len()).filter(|&asset| imbalance(asset, &self.trial) > LONELY).collect();
        if lonely.is_empty() || lonely.len() > LONELY_MAX.max(self.prices.len() / 8) {
            return false;
        }
        for asset in lonely {
            task.block.settle_asset(asset, &mut self.trial_prices, window, SETTLE_REACH);
            task.queries += 1;
        }
        task.queries += 1;
        task.block.query(&self.trial_prices, window, &mut self.trial);
        true
    }
}

/// Sum of squared imbalances, each relative to the asset's volume in `scale`.
fn merit(answer: &Demand, scale: &Demand) -> f64 {
    let floor = 1e-9 * scale.sold.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let volumes = scale.sold.iter().zip(&scale.bought).map(|(&sold, &bought)| sold + bought + floor);
    answer.sold.iter().zip(&answer.bought).zip(volumes).map(|((&sold, &bought), volume)| ((bought - sold) / volume).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::DemandIndex;
    use crate::solve::{Accuracy, Problem};
    use crate::structure::Structure;
    use crate::synthetic::Offer;

    /// The last asset is wanted and nobody sells it at these prices: its own step has no end, the others' step is what it is without it.
    #[test]
    fn an_asset_that_could_go_anywhere_moves_no_other() {
        let spread = |sell, buy, amount| (0..20).map(move |k| Offer { sell, buy, limit: 0.9 + 0.01 * f64::from(k), amount });
        let mut offers: Vec<Offer> =
            [(0, 1, 3.0), (1, 2, 2.0), (2, 0, 1.0)].into_iter().flat_map(|(a, b, c)| spread(a, b, c)).collect();
        let mut step = |asset_count: usize| {
            let index = DemandIndex::from_offers(asset_count, &offers, Vec::new()).unwrap();
            let (structure, prices) = (Structure::whole(&index), vec![1.0; asset_count]);
            let block = &structure.blocks[0];
            let mut task = Task::new(block, None, &Problem::cold(&index, Accuracy::bits(15, 10)));
            task.query(&prices, Window::widened(1e-3, 0.05));
            let mut newton = Continuation::new(block, prices, 0.05);
            newton.find_ratios(&task).unwrap();
            offers.push(Offer { sell: 0, buy: 3, limit: 0.1, amount: 0.01 });
            newton.ratios
        };
        let (without, with) = (step(3), step(4));
        assert!(with[3] > 1e3, "{with:?}");
        for (a, b) in [(0, 1), (1, 2)] {
            assert!((with[a] / with[b] / (without[a] / without[b]) - 1.0).abs() < 0.01, "{without:?} {with:?}");
        }
        assert!(with[..3].iter().all(|ratio| (0.5..2.0).contains(ratio)), "{with:?}");
    }
}
