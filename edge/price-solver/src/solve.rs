//! Solvers behind one trait.
//!
//! [`Portfolio`] is the one to use; the others are its parts and, with [`Tatonnement`], the papers' method for comparison.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::block::{Block, Demand};
use crate::bounds;
use crate::demand::{DemandIndex, Window};
use crate::structure::Structure;

mod capped;
mod interior;
mod krylov;
mod markov;
mod newton;
mod portfolio;
mod start;
mod tatonnement;
mod two_assets;
mod unknowns;

use unknowns::UNKNOWNS_MAX;

pub use portfolio::{Newton, Portfolio};
pub use tatonnement::{Instance, Tatonnement, Weights};

/// How good prices must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// Commission: demand may exceed supply by this share. Taken as at least 2^-40: floats do not balance exactly.
    pub eps: f64,
    /// Smoothing: an offer trades in full when its limit is better than the rate by more than this share. Taken as at least 2^-40.
    pub mu: f64,
}

const ACCURACY_MIN: f64 = 1.0 / (1u64 << 40) as f64;

impl Accuracy {
    /// `eps = 2^-eps_bits` and `mu = 2^-mu_bits`, the papers' notation `(eps_bits, mu_bits)`.
    pub fn bits(eps_bits: i32, mu_bits: i32) -> Self {
        Self { eps: (-f64::from(eps_bits)).exp2(), mu: (-f64::from(mu_bits)).exp2() }
    }

    /// The same within what floats can do.
    fn within_reach(self) -> Self {
        Self { eps: self.eps.clamp(ACCURACY_MIN, 0.5), mu: self.mu.clamp(ACCURACY_MIN, 0.5) }
    }
}

/// When a search ends, whatever it has.
#[derive(Clone, Copy)]
pub enum Deadline<'a> {
    /// At this instant.
    At(Instant),
    /// When this says so: a clock of the caller's.
    When(&'a (dyn Fn() -> bool + Sync)),
}

impl Deadline<'_> {
    fn has_passed(self) -> bool {
        match self {
            Self::At(instant) => Instant::now() >= instant,
            Self::When(has_passed) => has_passed(),
        }
    }
}

impl<'a> Deadline<'a> {
    /// When this share of the time until it has passed. A clock of the caller's has no times between.
    #[must_use]
    pub fn sooner(self, share: f64) -> Deadline<'a> {
        match self {
            Self::At(instant) => {
                let now = Instant::now();
                Self::At(now + instant.saturating_duration_since(now).mul_f64(share.clamp(0.0, 1.0)))
            }
            Self::When(has_passed) => Self::When(has_passed),
        }
    }
}

impl fmt::Debug for Deadline<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(instant) => formatter.debug_tuple("At").field(instant).finish(),
            Self::When(_) => formatter.write_str("When(..)"),
        }
    }
}

/// How much may be spent. The result depends on `queries` alone unless a deadline or a cancel flag cuts in.
#[derive(Clone, Copy, Debug)]
pub struct Budget<'a> {
    /// Demand queries at most, or as much work of other kinds, on each block: each part of the market that is priced on its own.
    pub queries: u64,
    /// Return the best prices so far when it has passed.
    pub deadline: Option<Deadline<'a>>,
    /// Return the best prices so far when it becomes true.
    pub cancel: Option<&'a AtomicBool>,
}

impl Budget<'_> {
    /// That many queries, no deadline.
    pub fn queries(queries: u64) -> Self {
        Self { queries, deadline: None, cancel: None }
    }

    /// The same, and no longer than this from now on.
    #[must_use]
    pub fn within(self, time: Duration) -> Self {
        Self { deadline: Some(Deadline::At(Instant::now() + time)), ..self }
    }

    /// Whether nothing is left.
    fn is_spent(&self, queries: u64) -> bool {
        queries >= self.queries || self.is_over()
    }

    /// Whether the deadline has passed or the search was cancelled. Everything that can take long asks on the way.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) || self.deadline.is_some_and(Deadline::has_passed)
    }
}

/// Tells whether amounts within the bounds of SPEEDEX 2023, Appendix D, conserve every asset at these prices. Assets without a price
/// do not trade.
pub type Feasible<'a> = &'a dyn Fn(&[Option<f64>]) -> bool;

/// What is to be solved.
#[derive(Clone, Copy)]
pub struct Problem<'a> {
    /// The market.
    pub index: &'a DemandIndex,
    /// Prices to start from, one per asset, such as the last batch's; one that is not positive and finite counts as 1. Cold without.
    pub start: Option<&'a [f64]>,
    /// How good prices must be.
    pub accuracy: Accuracy,
    /// How much may be spent.
    pub budget: Budget<'a>,
    /// Asked, beside the own check of the bounds, when smoothed demand does not clear but is near.
    pub feasible: Option<Feasible<'a>>,
}

impl<'a> Problem<'a> {
    /// A cold start with 10,000 queries per block.
    pub fn cold(index: &'a DemandIndex, accuracy: Accuracy) -> Self {
        Self { index, start: None, accuracy, budget: Budget::queries(10_000), feasible: None }
    }
}

/// How well prices clear, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Smoothed demand, less commission, exceeds supply nowhere.
    Cleared,
    /// Amounts within the bounds of Appendix D exist that conserve every asset.
    ClearedWithinBounds,
    /// Neither is known: the best prices found.
    Approximate,
}

/// Prices, and what they are worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// One price per asset; none for an asset that cannot trade because what it brings never comes back to it.
    pub prices: Vec<Option<f64>>,
    /// The worst outcome of any part of the market.
    pub outcome: Outcome,
    /// Demand queries and iterations spent, on all blocks together.
    pub queries: u64,
    /// The largest share of an asset's smoothed demand that its supply does not cover.
    pub worst_excess: f64,
    /// Parts that were priced on their own.
    pub blocks: usize,
}

/// Finds prices of a market.
pub trait PriceSolver {
    /// A name for reports.
    fn name(&self) -> &'static str;

    /// Prices. Never fails: where the budget ends, the best prices found are returned and said to be approximate.
    fn solve(&self, problem: &Problem<'_>) -> Solution;
}

/// A solver of one block.
trait BlockSolver {
    fn solve_block(&self, task: &mut Task<'_, '_>) -> Found;
}

/// One block to solve, and the solvers' common state on it.
struct Task<'a, 'i> {
    block: &'a Block<'i>,
    start: Option<Vec<f64>>,
    accuracy: Accuracy,
    budget: Budget<'a>,
    feasible: Option<Feasible<'a>>,
    /// What the interior-point method may have, at most.
    unknowns_max: usize,
    /// Queries so far.
    queries: u64,
    answer: Demand,
}

/// Prices of a block.
#[derive(Clone, Debug)]
struct Found {
    prices: Vec<f64>,
    outcome: Outcome,
    worst_excess: f64,
    /// Of what is cleared within bounds the values sold per book, unless the caller's own check says that there are some.
    values: Option<Vec<f64>>,
}

impl Found {
    /// The better of two; the first if they are alike.
    fn or_better(self, other: Self) -> Self {
        let other_is_better =
            other.outcome < self.outcome || (other.outcome == self.outcome && other.worst_excess < self.worst_excess);
        if other_is_better { other } else { self }
    }
}

/// Beyond this excess, amounts within the bounds are not looked for: it would be in vain.
const NEAR: f64 = 0.05;
/// Unless it is less than this share of all that is in the money.
const SPECKS: f64 = 1e-4;

impl<'a, 'i> Task<'a, 'i> {
    fn new(block: &'a Block<'i>, start: Option<Vec<f64>>, problem: &Problem<'a>) -> Self {
        let Problem { accuracy, budget, feasible, .. } = *problem;
        let answer = Demand::with_layout(block.asset_count(), &block.layout);
        Self { block, start, accuracy: accuracy.within_reach(), budget, feasible, unknowns_max: UNKNOWNS_MAX, queries: 0, answer }
    }
}

impl Task<'_, '_> {
    fn is_spent(&self) -> bool {
        self.budget.is_spent(self.queries)
    }

    /// Fills `answer` at these prices.
    fn query(&mut self, prices: &[f64], window: Window) {
        self.queries += 1;
        self.block.query(prices, window, &mut self.answer);
    }

    /// What these prices are worth.
    fn judge(&mut self, prices: &[f64]) -> Found {
        self.query(prices, Window::of_mu(self.accuracy.mu));
        let worst_excess = self.answer.worst_excess();
        let found = |outcome, values| Found { prices: prices.to_vec(), outcome, worst_excess, values };
        if self.answer.clears(self.accuracy.eps) {
            return found(Outcome::Cleared, None);
        }
        if worst_excess >= NEAR && !self.lacks_specks() {
            return found(Outcome::Approximate, None);
        }
        self.queries += 1;
        match bounds::amounts(self.block, prices, self.accuracy) {
            Some(values) => found(Outcome::ClearedWithinBounds, Some(values)),
            None if self.is_feasible(prices) => found(Outcome::ClearedWithinBounds, None),
            None => found(Outcome::Approximate, None),
        }
    }

    /// The same prices, cleared within bounds if such values sold of each book can be mended to amounts within them.
    fn judge_amounts(&mut self, found: Found, values: &[f64]) -> Found {
        self.queries += 1;
        match bounds::amounts_near(self.block, &found.prices, self.accuracy, values) {
            Some(values) => Found { outcome: Outcome::ClearedWithinBounds, values: Some(values), ..found },
            None => found,
        }
    }

    /// The same prices, cleared within bounds if a maximum flow finds amounts within them: whatever smoothed demand is.
    fn judge_flow(&mut self, found: Found) -> Found {
        if found.outcome < Outcome::Approximate || self.is_spent() {
            return found;
        }
        self.queries += 1;
        match bounds::amounts_by_flow(self.block, &found.prices, self.accuracy, &|| self.budget.is_over()) {
            Some(values) => Found { outcome: Outcome::ClearedWithinBounds, values: Some(values), ..found },
            None => found,
        }
    }

    /// Whether what is missing is little against what could trade: where books barely touch, any small flow is out of balance.
    fn lacks_specks(&self) -> bool {
        let missing: f64 = self.answer.bought.iter().zip(&self.answer.sold).map(|(&bought, &sold)| (bought - sold).max(0.0)).sum();
        missing < SPECKS * self.accuracy.mu * self.answer.slopes.iter().sum::<f64>()
    }

    /// What the caller's own check says.
    fn is_feasible(&self, prices: &[f64]) -> bool {
        self.feasible.is_some_and(|feasible| {
            let mut all = vec![None; self.block.index.asset_count];
            self.block.assets.iter().zip(prices).for_each(|(&asset, &price)| all[asset as usize] = Some(price));
            feasible(&all)
        })
    }
}

/// Solves block by block.
fn solve_structure(solver: &impl BlockSolver, problem: &Problem<'_>, structure: &Structure<'_>) -> Solution {
    let (mut queries, mut outcome, mut worst_excess) = (0, Outcome::Cleared, 0.0f64);
    let mut prices = Vec::with_capacity(structure.blocks.len());
    for block in &structure.blocks {
        let start = problem.start.map(|start| {
            let usable = |asset: &u32| start.get(*asset as usize).copied().filter(|price| price.is_normal() && *price > 0.0);
            block.assets.iter().map(|asset| usable(asset).unwrap_or(1.0)).collect()
        });
        let mut task = Task::new(block, start, problem);
        let found = solver.solve_block(&mut task);
        queries += task.queries;
        outcome = outcome.max(found.outcome);
        worst_excess = worst_excess.max(found.worst_excess);
        prices.push(found.prices);
    }
    let prices = structure.combine(problem.index, &prices);
    Solution { prices, outcome, queries, worst_excess, blocks: structure.blocks.len() }
}
