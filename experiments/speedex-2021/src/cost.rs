//! Cost against the number of assets and of offers, with the exponents of the power laws that fit best.

use serde_json::{Value, json};
use walras_price_solver::solve::Outcome;
use walras_price_solver::synthetic::{MadeBatch, Model, Shape, Variant};

use crate::plot::{self, Axis, Series, Stroke};
use crate::record::{Record, markdown};
use crate::ruler::{cold, exponent, grouped, index_of, median, thousandths};

/// `(eps, mu)` in bits.
const BITS: (i32, i32) = (15, 10);

/// What to run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Numbers of assets at `offers_at`.
    pub asset_counts: Vec<usize>,
    /// Offers in that series.
    pub offers_at: usize,
    /// Numbers of offers at `assets_at`.
    pub offer_counts: Vec<usize>,
    /// Assets in that series.
    pub assets_at: usize,
    /// Number of batches, with seeds from 0; the median counts.
    pub seeds: u64,
    /// Number of solves of each; the median counts.
    pub repetitions: usize,
}

impl Setup {
    /// 10 to 200 assets, 10^2 to 10^7 offers.
    #[must_use]
    pub fn full(seeds: u64) -> Self {
        Self {
            asset_counts: vec![10, 20, 50, 100, 200],
            offers_at: 500_000,
            offer_counts: vec![100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000],
            assets_at: 50,
            seeds,
            repetitions: 7,
        }
    }

    /// Some seconds in a debug build.
    #[must_use]
    pub fn small() -> Self {
        let (asset_counts, offer_counts) = (vec![10, 20], vec![100, 1_000, 10_000]);
        Self { asset_counts, offers_at: 5_000, offer_counts, assets_at: 20, repetitions: 1, ..Self::full(1) }
    }
}

struct Point {
    asset_count: usize,
    offer_count: usize,
    book_count: usize,
    solve_ms: f64,
    index_ms: f64,
    queries: f64,
    unsolved: Vec<u64>,
}

/// Runs it.
pub fn run(setup: &Setup) -> anyhow::Result<Record> {
    let by_assets: Vec<Point> =
        setup.asset_counts.iter().map(|&assets| point(setup, assets, setup.offers_at)).collect::<Result<_, _>>()?;
    let by_offers: Vec<Point> =
        setup.offer_counts.iter().map(|&offers| point(setup, setup.assets_at, offers)).collect::<Result<_, _>>()?;
    record(setup, &by_assets, &by_offers)
}

fn point(setup: &Setup, asset_count: usize, offer_count: usize) -> anyhow::Result<Point> {
    let model = Model { asset_count, offer_count, variant: Variant::Default, shape: Shape::Cycles };
    let (mut solves, mut indexes, mut queries, mut unsolved, mut book_count) = (vec![], vec![], vec![], vec![], 0);
    // Ten million offers take a while to make; their times hardly differ between batches.
    for seed in 0..if offer_count > 2_000_000 { setup.seeds.min(2) } else { setup.seeds } {
        let batch = MadeBatch::new(model, seed);
        let begin = std::time::Instant::now();
        let index = index_of(asset_count, &batch.offers)?;
        indexes.push(begin.elapsed().as_secs_f64() * 1e3);
        drop(batch);
        book_count = index.book_count();
        let timed = cold(&index, BITS, setup.repetitions);
        if timed.solution.outcome == Outcome::Approximate {
            unsolved.push(seed);
        }
        solves.push(timed.ms);
        queries.push(timed.solution.queries as f64);
    }
    println!("cost: {asset_count} assets, {offer_count} offers: {:.3} ms", median(&solves));
    Ok(Point {
        asset_count,
        offer_count,
        book_count,
        solve_ms: median(&solves),
        index_ms: median(&indexes),
        queries: median(&queries),
        unsolved,
    })
}

fn record(setup: &Setup, by_assets: &[Point], by_offers: &[Point]) -> anyhow::Result<Record> {
    let assets: Vec<(f64, f64)> = by_assets.iter().map(|point| (point.asset_count as f64, point.solve_ms)).collect();
    let offers: Vec<(f64, f64)> = by_offers.iter().map(|point| (point.offer_count as f64, point.solve_ms)).collect();
    let index: Vec<(f64, f64)> = by_offers.iter().map(|point| (point.offer_count as f64, point.index_ms)).collect();
    let (in_assets, in_offers, of_index) = (exponent(&assets), exponent(&offers), exponent(&index));
    let fitted = |what: &str, exponent: f64| format!("{what}: exponent {exponent:.2}");
    let fit = |points: &[(f64, f64)], colour| {
        let (slope, count) = (exponent(points), points.len() as f64);
        let shift = points.iter().map(|(x, y)| y.ln() - slope * x.ln()).sum::<f64>() / count;
        let line = points.iter().map(|&(x, _)| (x, (shift + slope * x.ln()).exp())).collect();
        Series { name: "its power law".into(), points: line, colour, stroke: Stroke::Thin }
    };
    let fits = [fit(&assets, 1), fit(&offers, 0)];
    let series = [
        Series {
            name: fitted(&format!("solve against assets, {} offers", grouped(setup.offers_at)), in_assets),
            points: assets,
            colour: 1,
            stroke: Stroke::Line,
        },
        Series {
            name: fitted(&format!("solve against offers, {} assets", setup.assets_at), in_offers),
            points: offers,
            colour: 0,
            stroke: Stroke::Line,
        },
        Series { name: fitted("building the index against offers", of_index), points: index, colour: 6, stroke: Stroke::Thin },
    ];
    let [by_assets_line, by_offers_line, index_line] = series;
    let [by_assets_fit, by_offers_fit] = fits;
    let series = [by_assets_line, by_assets_fit, by_offers_line, by_offers_fit, index_line];
    let title = "Cost against assets and offers at (15, 10), cold, one core";
    let plot_svg = plot::lines(title, "assets or offers (logarithmic)", Axis::Counts, "median time (logarithmic)", &series)?;
    let all = || by_assets.iter().chain(by_offers);
    let row = |point: &Point| {
        vec![
            point.asset_count.to_string(),
            grouped(point.offer_count),
            grouped(point.book_count),
            plot::time_label(point.solve_ms),
            format!("{:.0}", point.queries),
            plot::time_label(point.index_ms),
            point.unsolved.len().to_string(),
        ]
    };
    let value = |point: &Point| -> Value {
        json!({
            "asset_count": point.asset_count,
            "offer_count": point.offer_count,
            "book_count": point.book_count,
            "solve_median_ms": thousandths(point.solve_ms),
            "index_median_ms": thousandths(point.index_ms),
            "queries_median": point.queries,
            "unsolved_seeds": point.unsolved,
        })
    };
    let header = ["assets", "offers", "books", "solve", "queries", "index", "unsolved"].map(String::from);
    let table = format!(
        "Exponents fitted: {in_assets:.2} in assets, {in_offers:.2} in offers; {of_index:.2} in offers for the index.\n\n{}",
        markdown(&header, &all().map(row).collect::<Vec<_>>())
    );
    let result = json!({
        "bits": BITS,
        "seeds": setup.seeds,
        "repetitions": setup.repetitions,
        "published": "a demand query takes O(assets^2 lg offers) (2023, section 5.1); no figure",
        "exponent_in_assets": thousandths(in_assets),
        "exponent_in_offers": thousandths(in_offers),
        "index_exponent_in_offers": thousandths(of_index),
        "ours": all().map(value).collect::<Vec<_>>(),
    });
    Ok(Record { folder: "speedex-2021/cost".into(), result, table, plot_svg: Some(plot_svg) })
}
