//! SPEEDEX 2021, Figure 7, and 2023, Figure 8: a convex program on a general solver against ours, time against offers.
//!
//! The program is `convex/program.py`: a market is handed over as a file, prices and times come back as a line. Both must find the
//! same prices: ours are compared at the accuracy that is timed and at a much finer one.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use walras_price_solver::synthetic::{MadeBatch, Model, Offer, Shape, Variant};

use crate::plot::{self, Axis, Series, Stroke};
use crate::record::{Record, markdown, repository};
use crate::ruler::{Bits, Timed, cold, exponent, grouped, index_of, median, quantile, thousandths};
use crate::warm::difference;

/// As published.
const BITS: Bits = (15, 10);
/// For comparing prices.
const FINE: Bits = (30, 25);
/// General solvers: the papers' and the default of CVXPY.
const SOLVERS: [&str; 2] = ["ECOS", "CLARABEL"];

/// What to run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Folder below `experiments/`.
    pub folder: &'static str,
    /// Lines of the figure.
    pub asset_counts: Vec<usize>,
    /// Offers given to both.
    pub offer_counts: Vec<usize>,
    /// Offers given to ours alone, to show where it goes.
    pub offer_counts_ours: Vec<usize>,
    /// Number of batches, with seeds from 0; the median counts.
    pub seeds: u64,
    /// Where files for the program go.
    pub scratch: PathBuf,
}

impl Setup {
    /// The 2021 paper's: 10 assets; 20 and 50 went the same way.
    #[must_use]
    pub fn full_2021(seeds: u64) -> Self {
        Self {
            folder: "speedex-2021/fig-7",
            asset_counts: vec![10],
            offer_counts: vec![100, 200, 500, 1_000, 2_000, 5_000, 10_000],
            offer_counts_ours: vec![100_000, 1_000_000],
            seeds,
            scratch: repository().join("target/speedex"),
        }
    }

    /// The 2023 paper's: several numbers of assets.
    #[must_use]
    pub fn full_2023(seeds: u64) -> Self {
        Self {
            folder: "speedex-2023/fig-8",
            asset_counts: vec![10, 20, 50],
            offer_counts: vec![500, 1_000, 2_000, 5_000, 10_000],
            offer_counts_ours: Vec::new(),
            ..Self::full_2021(seeds)
        }
    }

    /// Some seconds in a debug build.
    #[must_use]
    pub fn small(scratch: &Path) -> Self {
        let scratch = scratch.to_owned();
        Self { offer_counts: vec![100, 400], offer_counts_ours: vec![1_000], scratch, ..Self::full_2021(1) }
    }
}

/// A Python that can run the program.
#[derive(Clone, Debug)]
pub struct Python {
    path: PathBuf,
    versions: Value,
}

impl Python {
    /// That of `convex/setup.sh`, or the system's if it has the packages; else why not.
    pub fn find() -> Result<Self, String> {
        let made = repository().join("target/speedex-convex/bin/python");
        let path = if made.exists() { made } else { PathBuf::from("python3") };
        let advice = "not run: make its environment with experiments/speedex-2021/convex/setup.sh";
        let output =
            Command::new(&path).arg(program()).arg("--check").output().map_err(|_| format!("{advice} (there is no Python)"))?;
        if !output.status.success() {
            return Err(format!("{advice} (cvxpy, clarabel and ecos are not all there)"));
        }
        let versions = serde_json::from_slice(&output.stdout).map_err(|_| format!("{advice} (its check says nothing legible)"))?;
        Ok(Self { path, versions })
    }

    fn solve(&self, solver: &str, market: &Path) -> anyhow::Result<Answer> {
        let output = Command::new(&self.path).arg(program()).args(["--solver", solver]).arg(market).output();
        let output = output.with_context(|| format!("running {}: is it still there?", self.path.display()))?;
        if !output.status.success() {
            bail!("the convex program failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        let line = String::from_utf8(output.stdout)?;
        serde_json::from_str(line.lines().last().unwrap_or("")).with_context(|| format!("the convex program said `{line}`"))
    }
}

fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("convex/program.py")
}

/// What the program answers.
#[derive(Clone, Debug, Deserialize)]
struct Answer {
    status: String,
    total_seconds: Option<f64>,
    solver_seconds: Option<f64>,
    objective: Option<f64>,
    prices: Option<Vec<f64>>,
}

/// A market with only what can trade, as the program wants it: every asset is sold and bought by someone.
struct Exported {
    /// The market's numbers of the assets.
    assets: Vec<usize>,
    offers: Vec<Offer>,
}

impl Exported {
    fn of(offers: &[Offer], prices: &[Option<f64>]) -> Self {
        let mut names = vec![None; prices.len()];
        let mut assets = Vec::new();
        for (asset, _) in prices.iter().enumerate().filter(|(_, price)| price.is_some()) {
            names[asset] = Some(assets.len());
            assets.push(asset);
        }
        let rename = |offer: &Offer| Some(Offer { sell: names[offer.sell]?, buy: names[offer.buy]?, ..*offer });
        Self { offers: offers.iter().filter_map(rename).collect(), assets }
    }

    fn write(&self, scratch: &Path) -> anyhow::Result<PathBuf> {
        std::fs::create_dir_all(scratch).with_context(|| format!("making {}: is its parent writable?", scratch.display()))?;
        let path = scratch.join("market.json");
        let offers: Vec<Value> =
            self.offers.iter().map(|offer| json!([offer.sell, offer.buy, offer.limit, offer.amount])).collect();
        let text = json!({ "asset_count": self.assets.len(), "offers": offers }).to_string();
        std::fs::write(&path, text).with_context(|| format!("writing {}: is there room?", path.display()))?;
        Ok(path)
    }
}

/// What the program took for one number of offers, by one general solver.
#[derive(Default)]
struct Theirs {
    total_ms: Vec<f64>,
    solver_ms: Vec<f64>,
    objective: Vec<f64>,
    difference: Vec<f64>,
    difference_fine: Vec<f64>,
    failures: Vec<(u64, String)>,
}

struct Point {
    asset_count: usize,
    offer_count: usize,
    ours_ms: Vec<f64>,
    unsolved: Vec<u64>,
    theirs: [Theirs; 2],
}

/// Runs it; without Python, ours alone.
pub fn run(setup: &Setup, python: &Result<Python, String>) -> anyhow::Result<Record> {
    let mut points = Vec::new();
    for &asset_count in &setup.asset_counts {
        for &offer_count in setup.offer_counts.iter().chain(&setup.offer_counts_ours) {
            let python = python.as_ref().ok().filter(|_| setup.offer_counts.contains(&offer_count));
            points.push(point(setup, asset_count, offer_count, python)?);
        }
    }
    record(setup, python, &points)
}

fn point(setup: &Setup, asset_count: usize, offer_count: usize, python: Option<&Python>) -> anyhow::Result<Point> {
    let model = Model { asset_count, offer_count, variant: Variant::Default, shape: Shape::EvenCycles };
    let mut point = Point { asset_count, offer_count, ours_ms: vec![], unsolved: vec![], theirs: Default::default() };
    for seed in 0..setup.seeds {
        let batch = MadeBatch::new(model, seed);
        let index = index_of(asset_count, &batch.offers)?;
        let ours = cold(&index, BITS, 5);
        if !ours.is_solved() {
            point.unsolved.push(seed);
        }
        point.ours_ms.push(ours.ms);
        let Some(python) = python else { continue };
        let fine = cold(&index, FINE, 1);
        let exported = Exported::of(&batch.offers, &ours.solution.prices);
        let market = exported.write(&setup.scratch)?;
        for (theirs, solver) in point.theirs.iter_mut().zip(SOLVERS) {
            theirs.take(seed, python.solve(solver, &market)?, &exported, &ours, &fine);
        }
    }
    println!("{}: {asset_count} assets, {offer_count} offers: ours {:.3} ms", setup.folder, median(&point.ours_ms));
    Ok(point)
}

impl Theirs {
    fn take(&mut self, seed: u64, answer: Answer, exported: &Exported, ours: &Timed, fine: &Timed) {
        let (Some(prices), Some(total)) = (answer.prices, answer.total_seconds) else {
            self.failures.push((seed, answer.status));
            return;
        };
        self.total_ms.push(total * 1e3);
        self.solver_ms.extend(answer.solver_seconds.map(|seconds| seconds * 1e3));
        self.objective.extend(answer.objective);
        let mut all = vec![None; ours.solution.prices.len()];
        exported.assets.iter().zip(prices).for_each(|(&asset, price)| all[asset] = Some(price));
        self.difference.push(difference(&all, &ours.solution.prices));
        self.difference_fine.push(difference(&all, &fine.solution.prices));
    }
}

fn record(setup: &Setup, python: &Result<Python, String>, points: &[Point]) -> anyhow::Result<Record> {
    let mut series = Vec::new();
    for (line, &asset_count) in setup.asset_counts.iter().enumerate() {
        let of_line = || points.iter().filter(move |point| point.asset_count == asset_count);
        let ours = of_line().map(|point| (point.offer_count as f64, median(&point.ours_ms))).collect();
        series.push(curve(format!("ours, {asset_count} assets"), ours, 3 * line, Stroke::Line));
        for (place, solver) in SOLVERS.iter().enumerate() {
            let times = of_line().filter(|point| !point.theirs[place].total_ms.is_empty());
            let times = times.map(|point| (point.offer_count as f64, median(&point.theirs[place].total_ms))).collect();
            series.push(curve(format!("CVXPY with {solver}, {asset_count} assets"), times, 3 * line + place + 1, Stroke::Line));
        }
    }
    let fitted: Vec<(String, f64)> = series
        .iter()
        .filter(|series| series.points.len() > 1)
        .map(|series| (series.name.clone(), exponent(&series.points)))
        .collect();
    for series in &mut series {
        if let Some((_, exponent)) = fitted.iter().find(|(name, _)| *name == series.name) {
            series.name += &format!(": exponent {exponent:.2}");
        }
    }
    let title = "A convex program on a general solver against ours, time against offers";
    let plot_svg = plot::lines(title, "offers (logarithmic)", Axis::Counts, "median time (logarithmic)", &series)?;
    let header = [
        "assets",
        "offers",
        "ours",
        "unsolved",
        "ECOS",
        "in the solver",
        "prices differ by",
        "Clarabel",
        "in the solver",
        "prices differ by",
        "failed",
    ];
    let rows: Vec<Vec<String>> = points.iter().map(row).collect();
    let status = python.as_ref().map_or_else(Clone::clone, |_| "run".into());
    let result = json!({
        "bits": BITS,
        "bits_for_comparing_prices": FINE,
        "seeds": setup.seeds,
        "published": "a curve without numbers: time linear in offers, about ten times as long for 1,000 offers as for 100",
        "convex_program": status,
        "versions": python.as_ref().map_or(&Value::Null, |python| &python.versions),
        "exponents": fitted.iter().map(|(name, exponent)| json!({ "series": name, "exponent": thousandths(*exponent) })).collect::<Vec<_>>(),
        "ours": points.iter().map(value).collect::<Vec<_>>(),
    });
    let table = format!(
        "Convex program: {status}. Prices are compared with ours at ({}, {}), the largest difference of any batch; where few offers leave gaps \
         between limits, more than one vector of prices is right.\n\n{}",
        FINE.0,
        FINE.1,
        markdown(&header.map(String::from), &rows)
    );
    Ok(Record { folder: setup.folder.into(), result, table, plot_svg: Some(plot_svg) })
}

fn curve(name: String, points: Vec<(f64, f64)>, colour: usize, stroke: Stroke) -> Series {
    Series { name, points, colour, stroke }
}

fn row(point: &Point) -> Vec<String> {
    let mut row = vec![
        point.asset_count.to_string(),
        grouped(point.offer_count),
        plot::time_label(median(&point.ours_ms)),
        point.unsolved.len().to_string(),
    ];
    for theirs in &point.theirs {
        if theirs.total_ms.is_empty() {
            row.extend([const { String::new() }; 3]);
            continue;
        }
        row.push(plot::time_label(median(&theirs.total_ms)));
        row.push(plot::time_label(median(&theirs.solver_ms)));
        row.push(format!("{:.1e}", quantile(&theirs.difference_fine, 1.0)));
    }
    row.push(point.theirs.iter().map(|theirs| theirs.failures.len()).sum::<usize>().to_string());
    row
}

fn value(point: &Point) -> Value {
    let theirs = |theirs: &Theirs| {
        if theirs.total_ms.is_empty() && theirs.failures.is_empty() {
            return Value::Null;
        }
        let of = |values: &[f64], share| if values.is_empty() { Value::Null } else { json!(quantile(values, share)) };
        json!({
            "total_median_ms": of(&theirs.total_ms, 0.5),
            "solver_median_ms": of(&theirs.solver_ms, 0.5),
            "objective_max": of(&theirs.objective, 1.0),
            "price_difference_max": of(&theirs.difference, 1.0),
            "price_difference_fine_max": of(&theirs.difference_fine, 1.0),
            "failures": theirs.failures.iter().map(|(seed, status)| json!({ "seed": seed, "status": status })).collect::<Vec<_>>(),
        })
    };
    json!({
        "asset_count": point.asset_count,
        "offer_count": point.offer_count,
        "ours_median_ms": thousandths(median(&point.ours_ms)),
        "unsolved_seeds": point.unsolved,
        "ecos": theirs(&point.theirs[0]),
        "clarabel": theirs(&point.theirs[1]),
    })
}
