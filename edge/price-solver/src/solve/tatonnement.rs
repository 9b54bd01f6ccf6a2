//! Tatonnement, as SPEEDEX has it (2021, section 4.3 and Appendix D; 2023, Appendix C): the reference to compare with.
//!
//! Prices move by `p <- p (1 + step nu p Z)`: multiplicatively, so that the common scale does not matter; by excess demand in value, so
//! that the unit of an asset does not; by the factor `nu` of an asset's volume, so that rarely traded assets keep up. A step is taken if it
//! does not raise the sum of squared imbalances by more than a hundredth, and the next is longer; otherwise the next is shorter, and
//! below a least length it is taken anyway. Instances differ in that least length and in whether volumes count; they take turns
//! and the first to clear wins. Every 1,000 rounds the bounds of Appendix D are tried too.
//!
//! Differences from the reference implementation: floats for fixed point, imbalances relative to the market's total value (so that step
//! lengths mean the same in every market), turns for threads.

use super::{BlockSolver, Found, Outcome, PriceSolver, Problem, Solution, Task, solve_structure};
use crate::demand::Window;
use crate::structure::Structure;

/// One way to step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Instance {
    /// Steps are not made shorter than this.
    pub step_min: f64,
    /// What weighs an asset's imbalance.
    pub weights: Weights,
}

/// What weighs an asset's imbalance in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// Nothing: all assets alike.
    Alike,
    /// The inverse of its volume at the present prices, taken again every ten rounds.
    Volumes,
    /// The inverse of its volume in a block before: [`Tatonnement::volumes`].
    VolumesBefore,
}

/// The papers' price search, on the whole market at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Tatonnement {
    /// The instances that take turns.
    pub instances: Vec<Instance>,
    /// The value of each asset that a block before traded, for [`Weights::VolumesBefore`]; where it is empty all assets are alike.
    pub volumes: Vec<f64>,
}

impl Default for Tatonnement {
    /// Six instances: three least steps 2^11 apart, with and without volumes.
    fn default() -> Self {
        let steps = [-28.0f64, -17.0, -6.0].map(f64::exp2);
        let instances =
            [Weights::Volumes, Weights::Alike].into_iter().flat_map(|weights| steps.map(|step_min| Instance { step_min, weights }));
        Self { instances: instances.collect(), volumes: Vec::new() }
    }
}

const STEP_UP: f64 = 1.4;
const STEP_DOWN: f64 = 0.8;
const STEP_START: f64 = 1.0 / 64.0;
/// How much a step may raise the sum of squares.
const TOLERANCE: f64 = 1.01;
/// A price changes by at most this factor in a step.
const CHANGE_MAX: f64 = 2.0;
const VOLUME_FACTOR_MAX: f64 = 1_000.0;
const ROUNDS_PER_TURN: u64 = 50;
const ROUNDS_PER_VOLUME: u64 = 10;
const ROUNDS_PER_BOUNDS: u64 = 1_000;

impl PriceSolver for Tatonnement {
    fn name(&self) -> &'static str {
        "tatonnement"
    }

    fn solve(&self, problem: &Problem<'_>) -> Solution {
        solve_structure(self, problem, &Structure::whole_until(problem.index, &|| problem.budget.is_over()))
    }
}

impl BlockSolver for Tatonnement {
    fn solve_block(&self, task: &mut Task<'_, '_>) -> Found {
        let start = task.start.take().unwrap_or_else(|| vec![1.0; task.block.asset_count()]);
        self.solve_from(task, &start, u64::MAX)
    }
}

impl Tatonnement {
    pub(super) fn solve_from(&self, task: &mut Task<'_, '_>, start: &[f64], queries_max: u64) -> Found {
        let end = task.queries.saturating_add(queries_max);
        let mut walks: Vec<Walk> = self.instances.iter().map(|&instance| Walk::new(instance, start, &self.volumes)).collect();
        let mut best = task.judge(start);
        while best.outcome == Outcome::Approximate && !walks.is_empty() {
            for walk in &mut walks {
                if walk.turn(task) {
                    best = best.or_better(task.judge(&walk.prices));
                }
                if best.outcome < Outcome::Approximate || task.is_spent() || task.queries >= end {
                    return best;
                }
            }
        }
        best
    }
}

/// An instance on its way.
struct Walk {
    instance: Instance,
    step: f64,
    rounds: u64,
    prices: Vec<f64>,
    /// Excess demand in value, as a share of the market's.
    excess: Vec<f64>,
    heuristic: f64,
    factors: Vec<f64>,
    trial: Vec<f64>,
}

impl Walk {
    fn new(instance: Instance, start: &[f64], volumes: &[f64]) -> Self {
        let n = start.len();
        let (prices, trial) = (start.to_vec(), start.to_vec());
        let is_known = instance.weights == Weights::VolumesBefore && volumes.len() == n;
        Self {
            instance,
            step: STEP_START,
            rounds: 0,
            prices,
            excess: vec![0.0; n],
            heuristic: f64::INFINITY,
            factors: if is_known { factors(volumes) } else { vec![1.0; n] },
            trial,
        }
    }

    /// Some rounds. True when the prices deserve to be judged.
    fn turn(&mut self, task: &mut Task<'_, '_>) -> bool {
        let window = Window::of_mu(task.accuracy.mu);
        for _ in 0..ROUNDS_PER_TURN {
            for (((trial, price), excess), factor) in self.trial.iter_mut().zip(&self.prices).zip(&self.excess).zip(&self.factors) {
                *trial = price * (1.0 + self.step * factor * excess).clamp(1.0 / CHANGE_MAX, CHANGE_MAX);
            }
            task.query(&self.trial, window);
            let total = task.answer.sold.iter().sum::<f64>().max(f64::MIN_POSITIVE);
            let heuristic: f64 =
                task.answer.bought.iter().zip(&task.answer.sold).map(|(&bought, &sold)| ((bought - sold) / total).powi(2)).sum();
            self.rounds += 1;
            if heuristic <= TOLERANCE * self.heuristic || self.step <= self.instance.step_min {
                std::mem::swap(&mut self.prices, &mut self.trial);
                self.heuristic = heuristic;
                for ((excess, &bought), &sold) in self.excess.iter_mut().zip(&task.answer.bought).zip(&task.answer.sold) {
                    *excess = (bought - sold) / total;
                }
                self.step = (self.step * STEP_UP).min(1e6);
                if self.instance.weights == Weights::Volumes && self.rounds.is_multiple_of(ROUNDS_PER_VOLUME) {
                    self.weigh_volumes(task);
                }
                if task.answer.clears(task.accuracy.eps) {
                    return true;
                }
                self.keep_scale();
            } else {
                self.step = (self.step * STEP_DOWN).max(self.instance.step_min);
            }
            if task.is_spent() {
                return true;
            }
        }
        self.rounds.is_multiple_of(ROUNDS_PER_BOUNDS)
    }

    /// Factors from the smaller of what is sold and bought of each asset.
    fn weigh_volumes(&mut self, task: &Task<'_, '_>) {
        let volumes: Vec<f64> = task.answer.sold.iter().zip(&task.answer.bought).map(|(&sold, &bought)| sold.min(bought)).collect();
        self.factors = factors(&volumes);
    }

    /// The common scale is free; kept near one, no product overflows.
    fn keep_scale(&mut self) {
        let max = self.prices.iter().fold(0.0f64, |max, &price| max.max(price));
        if !(1e-50..1e50).contains(&max) {
            self.prices.iter_mut().for_each(|price| *price = (*price / max).max(1e-200));
        }
    }
}

/// The inverse of volumes, as shares of the largest.
fn factors(volumes: &[f64]) -> Vec<f64> {
    let max = volumes.iter().copied().fold(0.0, f64::max);
    let factor = |&volume: &f64| {
        if max > 0.0 { (max / volume.max(max / VOLUME_FACTOR_MAX)).min(VOLUME_FACTOR_MAX) } else { 1.0 }
    };
    volumes.iter().map(factor).collect()
}
