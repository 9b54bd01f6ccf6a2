//! SPEEDEX 2021 and 2023, Figure 2: the fewest offers that are solved in under 0.25 s, over a grid of accuracies.
//!
//! The papers need a number of offers for the method to be fast. So the question is asked of every number on a ladder: the answer is
//! the least one from which on all batches, of it and of all larger ones, are solved, in under 0.25 s on average.

use std::time::Duration;

use serde_json::{Value, json};
use walras_price_solver::demand::DemandIndex;
use walras_price_solver::synthetic::{Model, Shape, Variant};

use crate::plot::{self, Cell, Panel};
use crate::record::{Record, markdown};
use crate::ruler::{Bits, cold, grouped, made, mean, tatonnement, thousandths};

/// The papers' limit.
pub const LIMIT_MS: f64 = 250.0;

/// What to run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Folder below `experiments/`, and its name in the plot.
    pub folder: &'static str,
    /// One panel each.
    pub asset_counts: Vec<usize>,
    /// How offers are drawn.
    pub shape: Shape,
    /// `-log2 mu`.
    pub mu_bits: Vec<i32>,
    /// `-log2 eps`.
    pub eps_bits: Vec<i32>,
    /// Numbers of offers, ascending.
    pub ladder: Vec<usize>,
    /// Batches per number; 5 in the papers.
    pub seeds: u64,
    /// The most queries of the papers' method.
    pub tatonnement_queries: u64,
}

impl Setup {
    /// The 2021 paper's: 20 and 50 assets, Appendix G's data.
    #[must_use]
    pub fn full_2021(seeds: u64) -> Self {
        Self {
            folder: "speedex-2021/fig-2",
            asset_counts: vec![20, 50],
            shape: Shape::EvenCycles,
            mu_bits: vec![5, 10, 15, 20],
            eps_bits: vec![5, 10, 15, 20, 25],
            ladder: vec![10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000],
            seeds,
            tatonnement_queries: u64::MAX,
        }
    }

    /// The 2023 paper's: 50 assets, the block generator's data.
    #[must_use]
    pub fn full_2023(seeds: u64) -> Self {
        Self { folder: "speedex-2023/fig-2", asset_counts: vec![50], shape: Shape::Cycles, ..Self::full_2021(seeds) }
    }

    /// Some seconds in a debug build.
    #[must_use]
    pub fn small() -> Self {
        let (mu_bits, eps_bits) = (vec![5, 10], vec![5, 15]);
        Self {
            mu_bits,
            eps_bits,
            ladder: vec![20, 200, 2_000],
            asset_counts: vec![20],
            tatonnement_queries: 300,
            ..Self::full_2021(2)
        }
    }
}

/// One accuracy of one panel.
struct Answer {
    bits: Bits,
    /// The least number from which on all is well.
    ours: Option<usize>,
    /// The slowest mean of any number on the ladder, and that number.
    slowest: (f64, usize),
    /// `(offers, seed)`.
    unsolved: Vec<(usize, u64)>,
    tatonnement: Option<usize>,
}

/// Runs it.
pub fn run(setup: &Setup) -> anyhow::Result<Record> {
    let mut panels = Vec::new();
    for &asset_count in &setup.asset_counts {
        let mut rungs: Vec<(usize, Vec<DemandIndex>)> = Vec::new();
        for &offer_count in &setup.ladder {
            let model = Model { asset_count, offer_count, variant: Variant::Default, shape: setup.shape };
            rungs.push((offer_count, (0..setup.seeds).map(|seed| made(model, seed)).collect::<Result<_, _>>()?));
        }
        let grid = setup.eps_bits.iter().flat_map(|&eps| setup.mu_bits.iter().map(move |&mu| (eps, mu)));
        panels.push((asset_count, grid.map(|bits| answer(setup, &rungs, bits)).collect::<Vec<_>>()));
        println!("{}: {asset_count} assets done", setup.folder);
    }
    record(setup, &panels)
}

fn answer(setup: &Setup, rungs: &[(usize, Vec<DemandIndex>)], bits: Bits) -> Answer {
    let mut answer = Answer { bits, ours: None, slowest: (0.0, 0), unsolved: Vec::new(), tatonnement: None };
    let mut goes_on = true;
    for (offer_count, indexes) in rungs.iter().rev() {
        let timed: Vec<_> = indexes.iter().map(|index| cold(index, bits, 1)).collect();
        let unsolved = (0..).zip(&timed).filter(|(_, timed)| !timed.is_solved()).map(|(seed, _)| (*offer_count, seed));
        let before = answer.unsolved.len();
        answer.unsolved.extend(unsolved);
        let mean_ms = mean(&timed.iter().map(|timed| timed.ms).collect::<Vec<_>>());
        if mean_ms > answer.slowest.0 {
            answer.slowest = (mean_ms, *offer_count);
        }
        goes_on &= mean_ms < LIMIT_MS && answer.unsolved.len() == before;
        if goes_on {
            answer.ours = Some(*offer_count);
        }
    }
    // The papers' method is worse with fewer offers: the first number that fails ends its search.
    let limit = Duration::from_secs_f64(LIMIT_MS / 1e3);
    for (offer_count, indexes) in rungs.iter().rev() {
        if !indexes.iter().all(|index| tatonnement(index, bits, limit, setup.tatonnement_queries).is_solved()) {
            break;
        }
        answer.tatonnement = Some(*offer_count);
    }
    answer
}

fn record(setup: &Setup, panels: &[(usize, Vec<Answer>)]) -> anyhow::Result<Record> {
    let mut maps = Vec::new();
    let (mut rows, mut values) = (Vec::new(), Vec::new());
    let none = || format!("more than {}", grouped(setup.ladder.last().copied().unwrap_or(0)));
    let number = |count: Option<usize>| count.map_or_else(none, grouped);
    for (asset_count, answers) in panels {
        maps.push(panel(setup, format!("ours, {asset_count} assets"), answers, |answer| answer.ours));
        maps.push(panel(setup, format!("tatonnement here, {asset_count} assets"), answers, |answer| answer.tatonnement));
        for answer in answers {
            let (slowest_ms, at) = answer.slowest;
            rows.push(vec![
                asset_count.to_string(),
                format!("({}, {})", answer.bits.0, answer.bits.1),
                number(answer.ours),
                format!("{} at {} offers", plot::time_label(slowest_ms), grouped(at)),
                answer.unsolved.len().to_string(),
                number(answer.tatonnement),
            ]);
            values.push(json!({
                "asset_count": asset_count,
                "eps_bits": answer.bits.0,
                "mu_bits": answer.bits.1,
                "offers_least": answer.ours,
                "slowest_mean_ms": thousandths(slowest_ms),
                "slowest_at_offers": at,
                "unsolved": answer.unsolved.iter().map(|(offers, seed)| json!({ "offers": offers, "seed": seed })).collect::<Vec<Value>>(),
                "tatonnement_offers_least": answer.tatonnement,
            }));
        }
    }
    let header = [
        "assets",
        "(eps, mu) bits",
        "ours: fewest offers",
        "slowest mean on the ladder",
        "unsolved",
        "tatonnement here: fewest offers",
    ];
    let result = json!({
        "limit_ms": LIMIT_MS,
        "ladder": setup.ladder,
        "seeds": setup.seeds,
        "shape": format!("{:?}", setup.shape),
        "published": "a map whose numbers are not legible in the copy at hand: from few offers at coarse accuracy to tens and hundreds of thousands at fine accuracy; none, or few, needed at eps = mu = 2^-10",
        "ours": values,
    });
    let title = "Fig. 2: fewest offers solved in under 0.25 s (columns mu, rows eps)";
    let plot_svg = Some(plot::maps(title, &maps, 56, (72, 30))?);
    Ok(Record { folder: setup.folder.into(), result, table: markdown(&header.map(String::from), &rows), plot_svg })
}

fn panel(setup: &Setup, title: String, answers: &[Answer], of: impl Fn(&Answer) -> Option<usize>) -> Panel {
    let most = (*setup.ladder.last().unwrap_or(&1) as f64).ln();
    let least = (*setup.ladder.first().unwrap_or(&1) as f64).ln();
    let cell = |answer: &Answer| match of(answer) {
        Some(count) => Cell { text: grouped(count), shade: 0.9 * ((count as f64).ln() - least) / (most - least).max(1.0) },
        None => Cell { text: "none".into(), shade: 1.0 },
    };
    Panel {
        title,
        columns: setup.mu_bits.iter().map(|bits| format!("2^-{bits}")).collect(),
        rows: setup.eps_bits.iter().map(|bits| format!("2^-{bits}")).collect(),
        cells: answers.chunks(setup.mu_bits.len()).map(|row| row.iter().map(cell).collect()).collect(),
    }
}
