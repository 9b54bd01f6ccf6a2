//! SPEEDEX 2021, Figure 6: solver times over every variant of the data (Appendix H), the starred cells too.

use anyhow::Context;
use serde_json::{Value, json};
use walras_price_solver::solve::Outcome;
use walras_price_solver::synthetic::{MadeBatch, Model, Shape, Variant};

use crate::plot::{self, Cell, Panel};
use crate::published::{self, ACCURACIES, Published};
use crate::record::{Record, markdown};
use crate::ruler::{Bits, Spread, check_cleared, cold, grouped, index_of};

/// One core, in the issue that set the goal.
pub const DEADLINE_MS: f64 = 250.0;

/// What to run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The paper has one number of assets, and does not tell which.
    pub asset_counts: Vec<usize>,
    /// The paper has 500 and more.
    pub offer_counts: Vec<usize>,
    /// Rows.
    pub variants: Vec<Variant>,
    /// Batches per cell, seeds from 0; 5 in the paper.
    pub seeds: u64,
}

impl Setup {
    /// Everything.
    #[must_use]
    pub fn full(seeds: u64) -> Self {
        Self {
            asset_counts: vec![20, 50],
            offer_counts: vec![60, 500, 5_000, 50_000, 500_000],
            variants: Variant::ALL.to_vec(),
            seeds,
        }
    }

    /// Some seconds in a debug build.
    #[must_use]
    pub fn small() -> Self {
        Self { asset_counts: vec![20], offer_counts: vec![500, 2_000], ..Self::full(2) }
    }
}

/// What came of one batch.
struct Run {
    seed: u64,
    ms: f64,
    outcome: Outcome,
    queries: u64,
    worst_excess: f64,
}

struct CellRuns {
    asset_count: usize,
    offer_count: usize,
    variant: Variant,
    column: usize,
    runs: Vec<Run>,
}

impl CellRuns {
    fn bits(&self) -> Bits {
        ACCURACIES[self.column]
    }

    fn times(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run.ms).collect()
    }

    fn unsolved(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.outcome == Outcome::Approximate)
    }

    fn late(&self) -> usize {
        self.runs.iter().filter(|run| run.ms > DEADLINE_MS).count()
    }

    fn within_bounds(&self) -> usize {
        self.runs.iter().filter(|run| run.outcome == Outcome::ClearedWithinBounds).count()
    }

    fn published(&self) -> Option<Published> {
        // The times of Figure 1 at 20 assets are those of Figure 6 at 500,000 offers; so it is compared at 20 assets.
        (self.asset_count == 20).then(|| published::figure_6(self.variant, self.offer_count, self.column)).flatten()
    }
}

/// Runs it.
pub fn run(setup: &Setup) -> anyhow::Result<Record> {
    let mut cells = Vec::new();
    for &asset_count in &setup.asset_counts {
        for &offer_count in &setup.offer_counts {
            for &variant in &setup.variants {
                cells.extend(run_row(setup, Model { asset_count, offer_count, variant, shape: Shape::EvenCycles })?);
            }
        }
    }
    record(setup, &cells)
}

fn run_row(setup: &Setup, model: Model) -> anyhow::Result<Vec<CellRuns>> {
    let Model { asset_count, offer_count, variant, .. } = model;
    let empty = |column| CellRuns { asset_count, offer_count, variant, column, runs: Vec::new() };
    let mut row: Vec<CellRuns> = (0..ACCURACIES.len()).map(empty).collect();
    for seed in 0..setup.seeds {
        let offers = MadeBatch::new(model, seed).offers;
        let index = index_of(asset_count, &offers)?;
        for cell in &mut row {
            let timed = cold(&index, cell.bits(), 1);
            check_cleared(&offers, &timed.solution, cell.bits()).with_context(|| format!("{model:?}, seed {seed}"))?;
            let (outcome, queries, worst_excess) = (timed.solution.outcome, timed.solution.queries, timed.solution.worst_excess);
            cell.runs.push(Run { seed, ms: timed.ms, outcome, queries, worst_excess });
        }
    }
    let cells: Vec<String> = row.iter().map(cell_times).collect();
    println!("{asset_count} assets, {offer_count} offers, {}: {}", name(variant), cells.join("; "));
    Ok(row)
}

fn cell_times(cell: &CellRuns) -> String {
    let time = Spread::of(&cell.times());
    let seeds: Vec<u64> = cell.unsolved().map(|run| run.seed).collect();
    let unsolved = if seeds.is_empty() { String::new() } else { format!(" UNSOLVED seeds {seeds:?}") };
    format!("{:.2} / {:.2} ms{unsolved}", time.median_ms, time.max_ms)
}

fn record(setup: &Setup, cells: &[CellRuns]) -> anyhow::Result<Record> {
    let header = [
        "assets",
        "offers",
        "data",
        "(eps, mu)",
        "published mean",
        "ours, mean",
        "median",
        "max",
        "solved",
        "by bounds only",
        "over 250 ms",
    ];
    let mut rows = Vec::new();
    let mut values = Vec::new();
    for cell in cells {
        let time = Spread::of(&cell.times());
        let unsolved = cell.unsolved().count();
        let (eps, mu) = cell.bits();
        rows.push(vec![
            cell.asset_count.to_string(),
            grouped(cell.offer_count),
            name(cell.variant).into(),
            format!("({eps}, {mu})"),
            cell.published().map_or(String::new(), Published::text),
            plot::time_label(time.mean_ms),
            plot::time_label(time.median_ms),
            plot::time_label(time.max_ms),
            format!("{} of {}", cell.runs.len() - unsolved, cell.runs.len()),
            cell.within_bounds().to_string(),
            cell.late().to_string(),
        ]);
        values.push(value(cell, time));
    }
    let (unsolved, late): (usize, usize) =
        (cells.iter().map(|cell| cell.unsolved().count()).sum(), cells.iter().map(CellRuns::late).sum());
    let solves: usize = cells.iter().map(|cell| cell.runs.len()).sum();
    let max_ms = cells.iter().flat_map(|cell| cell.times()).fold(0.0, f64::max);
    let stars = cells.iter().filter(|cell| cell.published() == Some(Published::Star));
    let stars_solved = stars.clone().filter(|cell| cell.unsolved().count() == 0).count();
    let result = json!({
        "seeds": setup.seeds,
        "deadline_ms": DEADLINE_MS,
        "cells": cells.len(),
        "cells_with_every_seed_solved": cells.iter().filter(|cell| cell.unsolved().count() == 0).count(),
        "solves": solves,
        "unsolved": unsolved,
        "over_deadline": late,
        "max_ms": max_ms,
        "starred_cells": stars.count(),
        "starred_cells_solved": stars_solved,
        "ours": values,
    });
    let table = format!(
        "{} of {} solves found prices; {late} took over 250 ms; the slowest {}. Published: 20 assets taken, `*` not all of 5 runs within 5 s, \
         `?` not legible in the copy at hand.\n\n{}",
        solves - unsolved,
        solves,
        plot::time_label(max_ms),
        markdown(&header.map(String::from), &rows)
    );
    let title =
        format!("Fig. 6: median time (and seeds of {} unsolved) over the variants of the data, cold, one core", setup.seeds);
    let plot_svg = Some(plot::maps(&title, &panels(setup, cells), 190, (104, 19))?);
    Ok(Record { folder: "speedex-2021/fig-6".into(), result, table, plot_svg })
}

fn value(cell: &CellRuns, time: Spread) -> Value {
    let unsolved: Vec<Value> = cell
        .unsolved()
        .map(|run| json!({ "seed": run.seed, "ms": run.ms, "queries": run.queries, "worst_excess": run.worst_excess }))
        .collect();
    let published = match cell.published() {
        Some(Published::Seconds(seconds)) => json!({ "mean_ms": seconds * 1e3 }),
        Some(Published::Star) => json!("not all of 5 runs within 5 s"),
        Some(Published::Illegible) => json!("not legible in the copy at hand"),
        None => Value::Null,
    };
    json!({
        "asset_count": cell.asset_count,
        "offer_count": cell.offer_count,
        "data": name(cell.variant),
        "eps_bits": cell.bits().0,
        "mu_bits": cell.bits().1,
        "published": published,
        "time": time,
        "slowest_seed": cell.runs.iter().max_by(|a, b| a.ms.total_cmp(&b.ms)).map(|run| run.seed),
        "queries_max": cell.runs.iter().map(|run| run.queries).max(),
        "success_rate": (cell.runs.len() - unsolved.len()) as f64 / cell.runs.len() as f64,
        "by_bounds_only": cell.within_bounds(),
        "over_deadline": cell.late(),
        "unsolved": unsolved,
    })
}

fn panels(setup: &Setup, cells: &[CellRuns]) -> Vec<Panel> {
    let columns: Vec<String> = ACCURACIES.iter().map(|(eps, mu)| format!("({eps}, {mu})")).collect();
    let row_names = || {
        let offers = setup.offer_counts.iter().rev();
        setup.variants.iter().flat_map(move |&variant| offers.clone().map(move |&count| (variant, count)))
    };
    let find = |asset_count: usize, (variant, offer_count): (Variant, usize), column: usize| {
        let is_it = |cell: &&CellRuns| {
            cell.asset_count == asset_count && cell.variant == variant && cell.offer_count == offer_count && cell.column == column
        };
        cells.iter().find(is_it)
    };
    // From 0.1 ms to a second.
    let shade = |ms: f64| ((ms.max(0.1)).log10() + 1.0) / 4.0;
    let ours = |cell: &CellRuns| {
        let (median, unsolved) = (Spread::of(&cell.times()).median_ms, cell.unsolved().count());
        let text = plot::time_label(median) + &if unsolved > 0 { format!(" ({unsolved})") } else { String::new() };
        Cell { text, shade: if unsolved > 0 { 1.0 } else { shade(median) } }
    };
    let theirs = |published: Published| match published {
        Published::Seconds(seconds) => Cell { text: published.text(), shade: shade(seconds * 1e3) },
        Published::Star => Cell { text: "*".into(), shade: 1.0 },
        Published::Illegible => Cell { text: "?".into(), shade: 0.5 },
    };
    let nothing = || Cell { text: String::new(), shade: 0.5 };
    let rows: Vec<String> = row_names().map(|(variant, count)| format!("{}, {}", name(variant), grouped(count))).collect();
    let map = |title: String, cell: &dyn Fn((Variant, usize), usize) -> Cell| Panel {
        title,
        columns: columns.clone(),
        rows: rows.clone(),
        cells: row_names().map(|row| (0..ACCURACIES.len()).map(|column| cell(row, column)).collect()).collect(),
    };
    let mut panels = vec![map("published".into(), &|(variant, count), column| {
        published::figure_6(variant, count, column).map_or_else(nothing, theirs)
    })];
    for &asset_count in &setup.asset_counts {
        let cell = |row, column| find(asset_count, row, column).map_or_else(nothing, ours);
        panels.push(map(format!("ours, {asset_count} assets"), &cell));
    }
    panels
}

/// The paper's name of a row.
#[must_use]
pub fn name(variant: Variant) -> &'static str {
    match variant {
        Variant::Default => "Default",
        Variant::SomeLarge => "Some Large Offers",
        Variant::OutlierPrices => "Outlier Prices",
        Variant::TenPercentGood => "10% Good Offers",
        Variant::NoneNear => "None Near Market",
        Variant::Close => "Close to Market",
        Variant::Dispersed => "Dispersed",
        Variant::UnevenVolumes => "Uneven Volumes",
    }
}
