//! Timing one solve.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::Serialize;
use walras_price_solver::demand::DemandIndex;
use walras_price_solver::solve::{Accuracy, Budget, Deadline, Outcome, Portfolio, PriceSolver, Problem, Solution, Tatonnement};
use walras_price_solver::synthetic::{MadeBatch, Model, Offer};

/// Commission and smoothing in the papers' notation: `(-log2 eps, -log2 mu)`.
pub type Bits = (i32, i32);

/// A solve and how long it took.
#[derive(Clone, Debug)]
pub struct Timed {
    /// What came of it.
    pub solution: Solution,
    /// Median over the repetitions.
    pub ms: f64,
}

impl Timed {
    /// Whether prices of the accuracy asked for were found.
    #[must_use]
    pub fn is_solved(&self) -> bool {
        self.solution.outcome < Outcome::Approximate
    }
}

/// Solves the same problem some times.
#[must_use]
pub fn timed(solver: &impl PriceSolver, problem: &Problem<'_>, repetitions: usize) -> Timed {
    let mut times = Vec::with_capacity(repetitions);
    let mut last = None;
    for _ in 0..repetitions.max(1) {
        let begin = Instant::now();
        last = Some(black_box(solver.solve(black_box(problem))));
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    Timed { solution: last.expect("one repetition at least"), ms: median(&times) }
}

/// Adds demand up again, offer by offer and apart from the solver's index, where the solver says that smoothed demand clears.
///
/// # Errors
/// When demand, less commission, exceeds the supply of an asset there.
pub fn check_cleared(offers: &[Offer], solution: &Solution, (eps_bits, mu_bits): Bits) -> anyhow::Result<()> {
    if solution.outcome != Outcome::Cleared {
        return Ok(());
    }
    let (eps, mu) = ((-f64::from(eps_bits)).exp2(), (-f64::from(mu_bits)).exp2());
    let (mut sold, mut bought) = (vec![0.0; solution.prices.len()], vec![0.0; solution.prices.len()]);
    for offer in offers {
        let (Some(sell), Some(buy)) = (solution.prices[offer.sell], solution.prices[offer.buy]) else { continue };
        let rate = sell / buy;
        let value = sell * offer.amount * ((rate - offer.limit) / (mu * rate)).clamp(0.0, 1.0);
        sold[offer.sell] += value;
        bought[offer.buy] += value;
    }
    // Sums of half a million in another order differ in their last bits; a ramp of width mu makes them 1 / mu times as large.
    let rounding = 1e-12 / mu;
    for (asset, (&sold, &bought)) in sold.iter().zip(&bought).enumerate() {
        let within = (1.0 - eps) * bought <= sold * (1.0 + rounding);
        ensure!(
            within,
            "asset {asset} is bought for {bought} and sold for {sold} at ({eps_bits}, {mu_bits}): the solver called it cleared"
        );
    }
    Ok(())
}

/// A cold solve by the default solver, within its query budget and without a deadline.
#[must_use]
pub fn cold(index: &DemandIndex, (eps_bits, mu_bits): Bits, repetitions: usize) -> Timed {
    timed(&Portfolio, &Problem::cold(index, Accuracy::bits(eps_bits, mu_bits)), repetitions)
}

/// The papers' method on one core, from flat prices, once: at most that long and that many queries.
#[must_use]
pub fn tatonnement(index: &DemandIndex, (eps_bits, mu_bits): Bits, limit: Duration, queries: u64) -> Timed {
    let budget = Budget { queries, deadline: Some(Deadline::At(Instant::now() + limit)), cancel: None };
    timed(&Tatonnement::default(), &Problem { budget, ..Problem::cold(index, Accuracy::bits(eps_bits, mu_bits)) }, 1)
}

/// An index of these offers.
pub fn index_of(asset_count: usize, offers: &[Offer]) -> anyhow::Result<DemandIndex> {
    DemandIndex::from_offers(asset_count, offers, Vec::new()).context("made offers are always sound")
}

/// The index of a made batch.
pub fn made(model: Model, seed: u64) -> anyhow::Result<DemandIndex> {
    index_of(model.asset_count, &MadeBatch::new(model, seed).offers)
}

/// The middle one of some values; not a number of none.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The arithmetic mean; not a number of none.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The value below which a share of the values lies, interpolated; not a number of none.
#[must_use]
pub fn quantile(values: &[f64], share: f64) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// Milliseconds, summed up.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spread {
    /// Arithmetic mean, as the papers give it.
    pub mean_ms: f64,
    /// Half are below; what interruptions of a shared machine move least.
    pub median_ms: f64,
    /// 99 % are below.
    pub p99_ms: f64,
    /// Greatest.
    pub max_ms: f64,
}

impl Spread {
    /// Of at least one value.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        assert!(!values.is_empty(), "a spread needs a value");
        let [mean_ms, median_ms, p99_ms, max_ms] =
            [mean(values), median(values), quantile(values, 0.99), quantile(values, 1.0)].map(thousandths);
        Self { mean_ms, median_ms, p99_ms, max_ms }
    }
}

/// Rounded to a thousandth: less would be noise.
#[must_use]
pub fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Exponent of the power law that fits best, by least squares of logarithms; not a number below two points.
#[must_use]
pub fn exponent(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|&(x, y)| (x.ln(), y.ln())).collect();
    let count = logs.len() as f64;
    let (mean_x, mean_y) = (logs.iter().map(|log| log.0).sum::<f64>() / count, logs.iter().map(|log| log.1).sum::<f64>() / count);
    let along: f64 = logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / along
}

/// A count with its thousands set off.
#[must_use]
pub fn grouped(count: usize) -> String {
    walras_figures::plot::grouped(count as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_called_cleared_and_is_not_is_found() {
        let offer = |sell, buy, limit, amount| Offer { sell, buy, limit, amount };
        let offers = [offer(0, 1, 1.9, 100.0), offer(1, 0, 0.4, 210.0)];
        let mut solution = cold(&index_of(2, &offers).unwrap(), (15, 10), 1).solution;
        assert_eq!(solution.outcome, Outcome::Cleared);
        check_cleared(&offers, &solution, (15, 10)).unwrap();
        solution.prices[0] = solution.prices[0].map(|price| price * 1.001);
        assert!(check_cleared(&offers, &solution, (15, 10)).is_err());
        solution.outcome = Outcome::Approximate;
        check_cleared(&offers, &solution, (15, 10)).unwrap();
    }

    #[test]
    fn sums_worked_out_by_hand() {
        assert_eq!([median(&[3.0, 1.0, 2.0]), mean(&[1.0, 2.0, 6.0]), quantile(&[0.0, 10.0], 0.25)], [2.0, 3.0, 2.5]);
        assert!((exponent(&[(1.0, 3.0), (10.0, 300.0), (100.0, 30_000.0)]) - 2.0).abs() < 1e-12);
    }
}
