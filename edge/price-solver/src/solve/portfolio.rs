//! The default: structure first, then the cheapest method that will do, then the next.

use super::capped::{self, capped};
use super::interior::Interior;
use super::newton::Continuation;
use super::{
    BlockSolver, Budget, Found, Outcome, PriceSolver, Problem, Solution, Task, Tatonnement, solve_structure, start, two_assets,
};
use crate::bounds;
use crate::demand::Window;
use crate::structure::Structure;

/// Width of the first window from good start prices, in log price; from the last batch's prices; from nowhere.
const WIDTH_COLD: f64 = 0.1;
const WIDTH_WARM: f64 = 0.02;
const WIDTH_FLAT: f64 = 8.0;
/// The last prices are near when at most this share of the value finds no counterpart in the window of a warm start, as where
/// prices are a third of the window off. The first width is then so many times this share of that window.
const NEARLY_CLEAR: f64 = 0.2;
const WIDTH_PER_IMBALANCE: f64 = 8.0;
/// How many widths at which Newton's method stalled the offers may be away that the interior-point method looks at, in turn.
const WIDENINGS: [f64; 4] = [3.0, 24.0, 192.0, f64::INFINITY];
/// Offers are cut to so many times what all others can give for them, twice before all offers are looked at as they are: what they
/// are worth depends on prices, and the second cut is at the prices of the first. Afterwards smaller offers are cut, too.
const CUTS_FIRST: [f64; 2] = [1024.0, 1024.0];
const CUTS_LAST: [f64; 3] = [64.0, 8.0, 1024.0];
/// Queries of the last resort.
const TATONNEMENT_QUERIES: u64 = 5_000;

/// Takes the market apart; solves pairs exactly, the rest by Newton's method with continuation, finished by an interior-point
/// method where books are nearly steps; falls back on smaller offers and on wider windows, then on tatonnement.
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
        solve_structure(self, problem, &Structure::of_until(problem.index, &|| problem.budget.is_over()))
    }
}

impl PriceSolver for Newton {
    fn name(&self) -> &'static str {
        "newton"
    }

    fn solve(&self, problem: &Problem<'_>) -> Solution {
        solve_structure(self, problem, &Structure::of_until(problem.index, &|| problem.budget.is_over()))
    }
}

impl BlockSolver for Newton {
    fn solve_block(&self, task: &mut Task<'_, '_>) -> Found {
        let (prices, width) = match task.start.take() {
            Some(start) => (start, WIDTH_WARM),
            None => (start::from_medians(task.block, &|| task.budget.is_over()), WIDTH_COLD),
        };
        let mut newton = Continuation::new(task.block, prices, width);
        newton.run(task);
        newton.best(task)
    }
}

impl BlockSolver for Portfolio {
    fn solve_block(&self, task: &mut Task<'_, '_>) -> Found {
        let warm = task.start.take();
        if task.block.asset_count() == 2 {
            let start = warm.unwrap_or_else(|| start::from_medians(task.block, &|| false));
            return two_assets::solve(task, start[0] / start[1]);
        }
        let mut best: Option<Found> = None;
        let mut starts = Starts::new(task, warm);
        while let Some((prices, width)) = starts.next(task) {
            let found = from_start(task, prices, width, width == WIDTH_FLAT);
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

/// Where to start, and with which width, in turn. The last prices come first when they nearly clear; else the nearer of them and of
/// the medians comes first, at the width of a cold start; flat prices come last.
struct Starts {
    /// In reverse.
    known: Vec<(Vec<f64>, f64)>,
    /// Not worked out unless needed: it takes as long as several queries.
    are_medians_left: bool,
    is_flat_left: bool,
}

impl Starts {
    fn new(task: &mut Task<'_, '_>, last: Option<Vec<f64>>) -> Self {
        let Some(last) = last else { return Self { known: Vec::new(), are_medians_left: true, is_flat_left: true } };
        let imbalance_at = |task: &mut Task<'_, '_>, prices: &[f64]| {
            task.query(prices, Window::widened(task.accuracy.mu, WIDTH_WARM));
            task.answer.imbalance()
        };
        let imbalance = imbalance_at(task, &last);
        if imbalance <= NEARLY_CLEAR {
            let width = WIDTH_WARM * (WIDTH_PER_IMBALANCE * imbalance).min(1.0);
            return Self { known: vec![(last, width)], are_medians_left: true, is_flat_left: true };
        }
        let medians = start::from_medians(task.block, &|| task.budget.is_over());
        let are_medians_nearer = imbalance_at(task, &medians) <= imbalance;
        let mut known = vec![(last, WIDTH_COLD), (medians, WIDTH_COLD)];
        if !are_medians_nearer {
            known.reverse();
        }
        Self { known, are_medians_left: false, is_flat_left: true }
    }

    fn next(&mut self, task: &Task<'_, '_>) -> Option<(Vec<f64>, f64)> {
        if let Some(known) = self.known.pop() {
            return Some(known);
        }
        if std::mem::take(&mut self.are_medians_left) {
            return Some((start::from_medians(task.block, &|| task.budget.is_over()), WIDTH_COLD));
        }
        std::mem::take(&mut self.is_flat_left).then(|| (vec![1.0; task.block.asset_count()], WIDTH_FLAT))
    }
}

/// By Newton's method. Where that stalls, by the interior-point method: first with the largest offers cut, if any are that large,
/// then with all offers as they are.
fn from_start(task: &mut Task<'_, '_>, prices: Vec<f64>, width: f64, is_last: bool) -> Found {
    let mut newton = Continuation::new(task.block, prices, width);
    newton.run(task);
    let mut best = newton.best(task);
    if is_enough(&best, task) {
        return best;
    }
    let mut around = best.prices.clone();
    let largest = capped::largest_offers(task.block, &|| task.budget.is_over());
    for times in CUTS_FIRST {
        if !is_enough(&best, task) {
            best = with_cut(task, best, &mut around, (times, &largest));
        }
    }
    if !is_enough(&best, task) && (newton.has_solved() || is_last) {
        best = best.or_better(by_interior(task, &newton));
    }
    for times in CUTS_LAST {
        if !is_enough(&best, task) {
            best = with_cut(task, best, &mut around, (times, &largest));
        }
    }
    best
}

fn is_enough(best: &Found, task: &Task<'_, '_>) -> bool {
    best.outcome < Outcome::Approximate || task.is_spent()
}

/// Offers around where Newton stalled are the ones whose answer is open; more, if these prove too few.
fn by_interior(task: &mut Task<'_, '_>, newton: &Continuation) -> Found {
    let width = newton.solved_width();
    let mut best: Option<Found> = None;
    for widening in WIDENINGS {
        let mut interior =
            Interior::new(task.block, task.accuracy, newton.solved_prices(), (widening * width, 0.1 * width), task.unknowns_max);
        let holds_all_offers = interior.holds_all_offers();
        let found = interior.run(task, true);
        let found = match best.take() {
            Some(best) => best.or_better(found),
            None => found,
        };
        if is_enough(&found, task) || holds_all_offers {
            return found;
        }
        best = Some(found);
    }
    best.expect("there is more than one widening")
}

/// Searches with offers cut to so many times their counterparts, at the prices `around`, which become those found. The better of
/// that and of what there is.
fn with_cut(task: &mut Task<'_, '_>, best: Found, around: &mut Vec<f64>, (times, largest): (f64, &[f64])) -> Found {
    let Some(index) = capped(task.block, around, times, largest, &|| task.budget.is_over()) else { return best };
    let structure = Structure::whole_until(&index, &|| task.budget.is_over());
    let block = &structure.blocks[0];
    let queries = task.budget.queries.saturating_sub(task.queries);
    let problem = Problem { budget: Budget { queries, ..task.budget }, ..Problem::cold(&index, task.accuracy) };
    let mut inner = Task::new(block, None, &problem);
    let start = start::from_medians(block, &|| inner.budget.is_over());
    let mut newton = Continuation::new(block, start, WIDTH_COLD);
    newton.run(&mut inner);
    let mut found = newton.best(&mut inner);
    if !is_enough(&found, &inner) {
        found = found.or_better(by_interior(&mut inner, &newton));
    }
    task.queries += inner.queries;
    around.clone_from(&found.prices);
    let judged = task.judge(&found.prices);
    if judged.outcome < Outcome::Approximate {
        return best.or_better(judged);
    }
    let values = found.values.or_else(|| bounds::amounts(block, &found.prices, task.accuracy));
    let judged = match values {
        Some(values) => task.judge_amounts(judged, &values),
        None => judged,
    };
    best.or_better(task.judge_flow(judged))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::DemandIndex;
    use crate::random::Random;
    use crate::solve::Accuracy;
    use crate::synthetic::{MadeBatch, Model, Offer, Shape, Variant};

    const ASSETS: usize = 20;

    /// What stands after large batches, and a few new offers: books barely touch.
    fn thin_market(seed: u64) -> Vec<Offer> {
        let model = Model { asset_count: ASSETS, offer_count: 10_000, variant: Variant::Default, shape: Shape::EvenCycles };
        let mut batch = MadeBatch::new(model, seed);
        let mut offers: Vec<Offer> = Vec::new();
        while offers.len() < 30_000 {
            batch.next();
            offers.extend(&batch.offers);
            let index = DemandIndex::from_offers(ASSETS, &offers, Vec::new()).unwrap();
            let prices = Portfolio.solve(&Problem::cold(&index, Accuracy::bits(15, 10))).prices;
            offers.retain(|offer| offer.limit > prices[offer.sell].unwrap() / prices[offer.buy].unwrap());
        }
        offers.extend(&batch.offers[..20]);
        offers
    }

    #[test]
    fn a_thin_market_takes_a_look_at_few_offers() {
        let mut stalls = 0;
        for seed in 0..6 {
            let index = DemandIndex::from_offers(ASSETS, &thin_market(seed), Vec::new()).unwrap();
            let structure = Structure::of(&index);
            let [block] = &structure.blocks[..] else { panic!("all assets are in one part") };
            let mut task = Task::new(block, None, &Problem::cold(&index, Accuracy::bits(15, 10)));
            let accuracy = task.accuracy;
            let mut newton = Continuation::new(block, start::from_medians(block, &|| false), WIDTH_COLD);
            newton.run(&mut task);
            if newton.best(&mut task).outcome < Outcome::Approximate {
                continue;
            }
            stalls += 1;
            let width = newton.solved_width();
            let mut interior =
                Interior::new(block, accuracy, newton.solved_prices(), (24.0 * width, 0.1 * width), task.unknowns_max);
            assert!(!interior.holds_all_offers(), "{seed}");
            let found = interior.run(&mut task, true);
            assert!(found.outcome < Outcome::Approximate, "{seed}: {:?} {}", found.outcome, found.worst_excess);
        }
        assert!(stalls > 0, "nothing was tried");
    }

    /// Offers stand so densely above the rates that thousands lie within `mu` of them, and a few new ones come. Put together they
    /// are as good as one by one: what clears them clears the offers.
    #[test]
    fn a_small_batch_among_dense_offers_clears_with_few_unknowns() {
        const UNKNOWNS_MAX: usize = 2_500;
        let model = Model { asset_count: ASSETS, offer_count: 60_000, variant: Variant::Default, shape: Shape::Cycles };
        let mut batch = MadeBatch::new(model, 1);
        let mut random = Random::new(1);
        let mut offers = batch.offers.clone();
        offers.iter_mut().for_each(|offer| offer.limit *= 1.0 + random.uniform(0.0, 0.03));
        let (mut stalls, mut last) = (0, None);
        for _ in 0..12 {
            let index = DemandIndex::from_offers(ASSETS, &offers, Vec::new()).unwrap();
            let structure = Structure::of(&index);
            let [block] = &structure.blocks[..] else { panic!("all assets are in one part") };
            let mut task = Task::new(block, last.take(), &Problem::cold(&index, Accuracy::bits(15, 10)));
            task.unknowns_max = UNKNOWNS_MAX;
            let found = Portfolio.solve_block(&mut task);
            assert!(found.outcome < Outcome::Approximate, "{:?} {}", found.outcome, found.worst_excess);
            assert!(task.queries < 500, "{} queries", task.queries);
            let mut newton = Continuation::new(block, found.prices.clone(), WIDTH_WARM);
            newton.run(&mut task);
            stalls += usize::from(newton.best(&mut task).outcome == Outcome::Approximate);
            for reach in WIDENINGS {
                let (accuracy, most) = (task.accuracy, task.unknowns_max);
                let interior = Interior::new(block, accuracy, &found.prices, (reach * 1e-3, 1e-4), most);
                assert!(interior.unknown_count() <= UNKNOWNS_MAX, "{} unknowns", interior.unknown_count());
                assert!(interior.holds_all_offers() || reach < f64::INFINITY);
            }
            offers.retain(|offer| offer.limit > found.prices[offer.sell] / found.prices[offer.buy]);
            batch.next_of(20);
            offers.extend(&batch.offers);
            last = Some(found.prices);
        }
        assert!(offers.len() > 30_000 && stalls >= 3, "{} offers stand, {stalls} stalls: nothing was tried", offers.len());
    }
}
