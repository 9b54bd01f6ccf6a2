//! The same batch solved cold and from the last batch's prices; valuations drift in between as in Appendix G.

use serde_json::json;
use walras_price_solver::solve::{Accuracy, Portfolio, Problem};
use walras_price_solver::synthetic::{MadeBatch, Model, Shape, Variant};

use crate::plot::{self, Axis, Series, Stroke};
use crate::record::{Record, markdown};
use crate::ruler::{cold, grouped, index_of, median, quantile, thousandths, timed};

const BITS: (i32, i32) = (15, 10);

/// What to run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Assets.
    pub asset_count: usize,
    /// Offers.
    pub offer_counts: Vec<usize>,
    /// Chains of batches, seeds from 0.
    pub seeds: u64,
    /// Batches after the first of each.
    pub batches: usize,
    /// Number of solves of each; the median counts.
    pub repetitions: usize,
}

impl Setup {
    /// 500 to 500,000 offers.
    #[must_use]
    pub fn full(seeds: u64) -> Self {
        Self { asset_count: 50, offer_counts: vec![500, 5_000, 50_000, 500_000], seeds, batches: 4, repetitions: 5 }
    }

    /// Some seconds in a debug build.
    #[must_use]
    pub fn small() -> Self {
        Self { asset_count: 20, offer_counts: vec![500, 2_000], batches: 1, repetitions: 1, ..Self::full(1) }
    }
}

#[derive(Default)]
struct Row {
    /// Cold and warm.
    ms: [Vec<f64>; 2],
    queries: [Vec<f64>; 2],
    unsolved: [usize; 2],
    /// The largest ratio between the two solves' prices, less 1, once their scales agree.
    difference: Vec<f64>,
    solves: usize,
}

/// Runs it.
pub fn run(setup: &Setup) -> anyhow::Result<Record> {
    let mut rows = Vec::new();
    for &offer_count in &setup.offer_counts {
        let mut row = Row::default();
        for seed in 0..setup.seeds {
            chain(setup, offer_count, seed, &mut row)?;
        }
        rows.push((offer_count, row));
    }
    record(setup, &rows)
}

fn chain(setup: &Setup, offer_count: usize, seed: u64, row: &mut Row) -> anyhow::Result<()> {
    let model = Model { asset_count: setup.asset_count, offer_count, variant: Variant::Default, shape: Shape::Cycles };
    let mut batch = MadeBatch::new(model, seed);
    let mut last = cold(&index_of(setup.asset_count, &batch.offers)?, BITS, 1).solution.prices;
    for _ in 0..setup.batches {
        batch.next();
        let index = index_of(setup.asset_count, &batch.offers)?;
        // A new asset has no last price; the solver takes any that is not positive for none.
        let start: Vec<f64> = last.iter().map(|price| price.unwrap_or(0.0)).collect();
        let problem = Problem::cold(&index, Accuracy::bits(BITS.0, BITS.1));
        let cold = timed(&Portfolio, &problem, setup.repetitions);
        let warm = timed(&Portfolio, &Problem { start: Some(&start), ..problem }, setup.repetitions);
        row.difference.push(difference(&cold.solution.prices, &warm.solution.prices));
        for (place, timed) in [&cold, &warm].into_iter().enumerate() {
            row.ms[place].push(timed.ms);
            row.queries[place].push(timed.solution.queries as f64);
            row.unsolved[place] += usize::from(!timed.is_solved());
        }
        row.solves += 1;
        last = warm.solution.prices;
    }
    Ok(())
}

/// The spread of the ratios of two price vectors, which agree up to a common factor when it is zero.
#[must_use]
pub fn difference(first: &[Option<f64>], second: &[Option<f64>]) -> f64 {
    let ratios = first.iter().zip(second).filter_map(|(first, second)| Some(((*first)? / (*second)?).ln()));
    let (least, most) = ratios.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), log| (least.min(log), most.max(log)));
    if least <= most { (most - least).exp_m1() } else { 0.0 }
}

fn record(setup: &Setup, rows: &[(usize, Row)]) -> anyhow::Result<Record> {
    let header = [
        "offers",
        "cold",
        "warm",
        "queries cold",
        "queries warm",
        "unsolved cold",
        "unsolved warm",
        "prices differ by, median",
        "at most",
    ];
    let share = |value: f64| format!("{:.4} %", value * 100.0);
    let table_row = |(offer_count, row): &(usize, Row)| {
        let [cold, warm] = [0, 1].map(|place| plot::time_label(median(&row.ms[place])));
        let [queries_cold, queries_warm] = [0, 1].map(|place| format!("{:.0}", median(&row.queries[place])));
        let [unsolved_cold, unsolved_warm] = row.unsolved.map(|count| format!("{count} of {}", row.solves));
        let (middle, most) = (share(median(&row.difference)), share(quantile(&row.difference, 1.0)));
        vec![grouped(*offer_count), cold, warm, queries_cold, queries_warm, unsolved_cold, unsolved_warm, middle, most]
    };
    let value = |(offer_count, row): &(usize, Row)| {
        json!({
            "offer_count": offer_count,
            "solves": row.solves,
            "cold_median_ms": thousandths(median(&row.ms[0])),
            "warm_median_ms": thousandths(median(&row.ms[1])),
            "cold_queries_median": median(&row.queries[0]),
            "warm_queries_median": median(&row.queries[1]),
            "cold_unsolved": row.unsolved[0],
            "warm_unsolved": row.unsolved[1],
            "price_difference_median": median(&row.difference),
            "price_difference_max": quantile(&row.difference, 1.0),
        })
    };
    let series = ["cold", "warm"].into_iter().enumerate().map(|(place, name)| Series {
        name: name.into(),
        points: rows.iter().map(|(count, row)| (*count as f64, median(&row.ms[place]))).collect(),
        colour: place,
        stroke: Stroke::Line,
    });
    let title = format!("Cold and warm, {} assets at (15, 10), one core", setup.asset_count);
    let plot_svg =
        plot::lines(&title, "offers (logarithmic)", Axis::Counts, "median time (logarithmic)", &series.collect::<Vec<_>>())?;
    let result = json!({
        "asset_count": setup.asset_count,
        "bits": BITS,
        "published": "the reference starts every block from the last one's prices; no figure",
        "ours": rows.iter().map(value).collect::<Vec<_>>(),
    });
    let table = markdown(&header.map(String::from), &rows.iter().map(table_row).collect::<Vec<_>>());
    Ok(Record { folder: "speedex-2021/cold-warm".into(), result, table, plot_svg: Some(plot_svg) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_that_differ_by_a_factor_are_the_same() {
        assert!(difference(&[Some(1.0), Some(3.0), None], &[Some(2.0), Some(6.0), Some(1.0)]).abs() < 1e-12);
        assert!((difference(&[Some(1.0), Some(3.0)], &[Some(1.0), Some(2.0)]) - 0.5).abs() < 1e-12);
    }
}
