//! SPEEDEX 2021, Figure 1: solver time against the accuracy, 500,000 offers, 20 assets.

use std::time::Duration;

use serde_json::{Value, json};
use walras_price_solver::synthetic::{Model, Shape, Variant};

use crate::plot::{self, Axis, Series, Stroke};
use crate::published::{ACCURACIES, REFERENCE_20_500K_MS};
use crate::record::{Record, markdown};
use crate::ruler::{Bits, Spread, cold, grouped, made, mean, tatonnement};

/// What to run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Assets.
    pub asset_count: usize,
    /// Offers.
    pub offer_count: usize,
    /// Lines of the figure: `-log2 mu`.
    pub mu_bits: Vec<i32>,
    /// Its axis: `-log2 eps`.
    pub eps_bits: Vec<i32>,
    /// Batches; seeds from 0.
    pub seeds: u64,
    /// Number of solves of each; the median counts.
    pub repetitions: usize,
    /// Limits of the papers' method, per solve: time (2 s in the paper) and queries.
    pub tatonnement: (Duration, u64),
}

impl Setup {
    /// The published settings as far as they are given, with finer and coarser accuracies than the figure's.
    #[must_use]
    pub fn full(seeds: u64) -> Self {
        Self {
            asset_count: 20,
            offer_count: 500_000,
            mu_bits: vec![5, 7, 10, 12, 15, 17, 20, 23],
            eps_bits: vec![5, 7, 10, 12, 15, 17, 20, 22, 25, 30],
            seeds,
            repetitions: 5,
            tatonnement: (Duration::from_secs(2), u64::MAX),
        }
    }

    /// Some seconds in a debug build.
    #[must_use]
    pub fn small() -> Self {
        let tatonnement = (Duration::from_secs(60), 300);
        Self { offer_count: 5_000, mu_bits: vec![7, 10], eps_bits: vec![5, 10, 15], repetitions: 1, tatonnement, ..Self::full(2) }
    }
}

struct Point {
    bits: Bits,
    times: Vec<f64>,
    queries: Vec<f64>,
    unsolved: Vec<u64>,
    /// Of the papers' method; none where a batch was not solved in time.
    reference: Option<Vec<f64>>,
}

/// Runs it.
pub fn run(setup: &Setup) -> anyhow::Result<Record> {
    let model = Model {
        asset_count: setup.asset_count,
        offer_count: setup.offer_count,
        variant: Variant::Default,
        shape: Shape::EvenCycles,
    };
    let indexes: Vec<_> = (0..setup.seeds).map(|seed| made(model, seed)).collect::<Result<_, _>>()?;
    let mut points = Vec::new();
    for &mu in &setup.mu_bits {
        for &eps in &setup.eps_bits {
            let mut point =
                Point { bits: (eps, mu), times: Vec::new(), queries: Vec::new(), unsolved: Vec::new(), reference: None };
            for (seed, index) in (0..).zip(&indexes) {
                let timed = cold(index, point.bits, setup.repetitions);
                if !timed.is_solved() {
                    point.unsolved.push(seed);
                }
                point.times.push(timed.ms);
                point.queries.push(timed.solution.queries as f64);
            }
            let (limit, queries) = setup.tatonnement;
            let solved = indexes.iter().map(|index| tatonnement(index, point.bits, limit, queries));
            point.reference = solved.map(|timed| timed.is_solved().then_some(timed.ms)).collect();
            points.push(point);
        }
    }
    record(setup, &points)
}

fn record(setup: &Setup, points: &[Point]) -> anyhow::Result<Record> {
    let mut series = Vec::new();
    for (colour, &mu) in setup.mu_bits.iter().enumerate() {
        let of_line = || points.iter().filter(move |point| point.bits.1 == mu);
        // As in the paper: a point where not every batch was solved is left out.
        let ours = of_line().filter(|point| point.unsolved.is_empty()).map(|point| (f64::from(point.bits.0), mean(&point.times)));
        let theirs = of_line().filter_map(|point| Some((f64::from(point.bits.0), mean(point.reference.as_ref()?))));
        series.push(Series { name: format!("mu 2^-{mu}"), points: ours.collect(), colour, stroke: Stroke::Line });
        series.push(Series { name: format!("mu 2^-{mu}, tatonnement"), points: theirs.collect(), colour, stroke: Stroke::Thin });
    }
    let title = format!("Fig. 1: {} offers, {} assets, cold, one core", grouped(setup.offer_count), setup.asset_count);
    let y_title = format!("mean time of {} batches (logarithmic)", setup.seeds);
    let plot_svg = Some(plot::lines(&title, "-log2 eps", Axis::Linear, &y_title, &series)?);
    let header: Vec<String> = [
        "(eps, mu) bits",
        "ours, mean",
        "ours, max",
        "queries, mean",
        "unsolved",
        "tatonnement here, mean",
        "reference implementation",
    ]
    .map(String::from)
    .to_vec();
    let rows: Vec<Vec<String>> = points.iter().map(|point| row(setup, point)).collect();
    let ours: Vec<Value> = points.iter().map(value).collect();
    let result = json!({
        "asset_count": setup.asset_count,
        "offer_count": setup.offer_count,
        "seeds": setup.seeds,
        "repetitions": setup.repetitions,
        "published": "curves without numbers: time grows slowly with accuracy, then steeply; points with a time-out (2 s) left out",
        "reference_implementation_ms": ACCURACIES.iter().zip(REFERENCE_20_500K_MS).map(|(bits, ms)| json!({ "bits": bits, "low": ms.0, "high": ms.1 })).collect::<Vec<_>>(),
        "ours": ours,
    });
    Ok(Record { folder: "speedex-2021/fig-1".into(), result, table: markdown(&header, &rows), plot_svg })
}

fn value(point: &Point) -> Value {
    json!({
        "eps_bits": point.bits.0,
        "mu_bits": point.bits.1,
        "time": Spread::of(&point.times),
        "queries_mean": mean(&point.queries),
        "unsolved_seeds": point.unsolved,
        "tatonnement_mean_ms": point.reference.as_ref().map(|times| mean(times)),
    })
}

fn row(setup: &Setup, point: &Point) -> Vec<String> {
    let time = Spread::of(&point.times);
    let is_published = setup.asset_count == 20 && setup.offer_count == 500_000;
    let reference = ACCURACIES.iter().position(|bits| *bits == point.bits && is_published).map(|place| REFERENCE_20_500K_MS[place]);
    vec![
        format!("({}, {})", point.bits.0, point.bits.1),
        plot::time_label(time.mean_ms),
        plot::time_label(time.max_ms),
        format!("{:.1}", mean(&point.queries)),
        point.unsolved.len().to_string(),
        point.reference.as_ref().map_or("over its limit".into(), |times| plot::time_label(mean(times))),
        reference.map_or(String::new(), |(low, high)| format!("{low} to {high} ms")),
    ]
}
