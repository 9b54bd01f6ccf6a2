//! The default: structure first, then the cheapest method that will do, then the next.

use super::interior::Interior;
use super::newton::Continuation;
use super::{BlockSolver, Found, Outcome, PriceSolver, Problem, Solution, Task, Tatonnement, solve_structure, start, two_assets};
use crate::structure::Structure;

/// Width of the first window from good start prices, in log price; from the last batch's prices; from nowhere.
const WIDTH_COLD: f64 = 0.1;
const WIDTH_WARM: f64 = 0.02;
const WIDTH_FLAT: f64 = 8.0;
/// Queries of the last resort.
const TATONNEMENT_QUERIES: u64 = 5_000;

/// Takes the market apart; solves pairs exactly, the rest by Newton's method with continuation, finished by an interior-point method
/// where books are nearly steps; falls back on wider windows, then on tatonnement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Portfolio;

/// Newton's method with continuation alone, on each block.
#[derive(Clone, Copy, Debug, Default)]
pub struct Newton;

impl PriceSolver for Portfolio {
    fn name(&self) -> &'static str {
        "portfolio"
    }

    fn solve(&self, problem: &Problem<'_>) -> Solution {
        solve_structure(self, problem, &Structure::of(problem.index))
    }
}

impl PriceSolver for Newton {
    fn name(&self) -> &'static str {
        "newton"
    }

    fn solve(&self, problem: &Problem<'_>) -> Solution {
        solve_structure(self, problem, &Structure::of(problem.index))
    }
}

impl BlockSolver for Newton {
    fn solve_block(&self, task: &mut Task<'_, '_>) -> Found {
        let (prices, width) = match task.start.take() {
            Some(start) => (start, WIDTH_WARM),
            None => (start::from_medians(task.block), WIDTH_COLD),
        };
        let mut newton = Continuation::new(prices, width);
        newton.run(task);
        newton.best(task)
    }
}

impl BlockSolver for Portfolio {
    fn solve_block(&self, task: &mut Task<'_, '_>) -> Found {
        let warm = task.start.take();
        if task.block.asset_count() == 2 {
            let start = warm.unwrap_or_else(|| start::from_medians(task.block));
            return two_assets::solve(task, start[0] / start[1]);
        }
        let mut best: Option<Found> = None;
        let starts = [warm.map(|prices| (prices, WIDTH_WARM)), Some((Vec::new(), WIDTH_COLD)), Some((Vec::new(), WIDTH_FLAT))];
        for (mut prices, width) in starts.into_iter().flatten() {
            if prices.is_empty() {
                prices = if width == WIDTH_FLAT { vec![1.0; task.block.asset_count()] } else { start::from_medians(task.block) };
            }
            let found = newton_then_interior(task, prices, width, width == WIDTH_FLAT);
            let found = match best.take() {
                Some(best) => best.or_better(found),
                None => found,
            };
            if found.outcome < Outcome::Approximate || task.is_spent() {
                return found;
            }
            best = Some(found);
        }
        let best = best.expect("there is always a cold start");
        let found = Tatonnement::default().solve_from(task, &best.prices, TATONNEMENT_QUERIES);
        best.or_better(found)
    }
}

fn newton_then_interior(task: &mut Task<'_, '_>, prices: Vec<f64>, width: f64, is_last: bool) -> Found {
    let mut newton = Continuation::new(prices, width);
    newton.run(task);
    let mut best = newton.best(task);
    // Offers within a few windows of where Newton stalled are the ones whose answer is open; more, if that proves too few.
    if !newton.has_solved() && !is_last {
        // Elsewhere may be better.
        return best;
    }
    for widening in [3.0, 24.0, f64::INFINITY] {
        if best.outcome < Outcome::Approximate || task.is_spent() {
            break;
        }
        let width = newton.solved_width();
        let mut interior = Interior::new(task.block, task.accuracy, newton.solved_prices(), widening * width, 0.1 * width);
        let holds_all_offers = interior.holds_all_offers();
        best = best.or_better(interior.run(task, true));
        if holds_all_offers && best.outcome == Outcome::Approximate {
            let mut interior = Interior::new(task.block, task.accuracy, newton.solved_prices(), f64::INFINITY, 0.1 * width);
            best = best.or_better(interior.run(task, false));
            break;
        }
    }
    best
}
