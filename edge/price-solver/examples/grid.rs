//! The solver's figures on one core, as tables: `cargo run --release -p walras-price-solver --example grid -- [SECTION ...]`.
//!
//! Sections: `query` (nanoseconds per book and query), `made` (the reference generator's data), `scale` (assets and offers), `real` (500
//! days of real prices), `warm` (last batch's prices), `structure` (thousands of assets), `figure6=SEEDS` (SPEEDEX 2021, Figure 6, with
//! that many seeds per cell), `families=SEEDS` (heavy tails, whales, thin assets and the other families of hard markets). Without
//! sections, all of them with few seeds. A time is a solve alone; building the index is apart.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use walras_price_solver::Demand;
use walras_price_solver::demand::{DemandIndex, Window};
use walras_price_solver::families::Family;
use walras_price_solver::real_days::RealDays;
use walras_price_solver::solve::{Accuracy, Budget, Newton, Outcome, Portfolio, PriceSolver, Problem, Solution, Tatonnement};
use walras_price_solver::synthetic::{MadeBatch, Model, Offer, Shape, Variant};

#[global_allocator]
static ALLOCATOR: walras_huge_pages::HugePages = walras_huge_pages::HugePages;

const ACCURACIES: [(i32, i32); 4] = [(10, 10), (15, 10), (15, 15), (20, 15)];
const REPETITIONS: usize = 7;

fn main() -> anyhow::Result<()> {
    let mut sections: Vec<String> = std::env::args().skip(1).collect();
    if sections.is_empty() {
        sections = ["query", "made", "scale", "real", "warm", "structure", "figure6=3", "families=3"].map(String::from).to_vec();
    }
    for section in sections {
        match section.split_once('=') {
            None if section == "query" => query()?,
            None if section == "made" => made()?,
            None if section == "scale" => scale()?,
            None if section == "real" => real()?,
            None if section == "warm" => warm()?,
            None if section == "structure" => structure()?,
            Some(("figure6", seeds)) => figure6(seeds.parse().context("figure6=SEEDS takes a number")?)?,
            Some(("families", seeds)) => families(seeds.parse().context("families=SEEDS takes a number")?)?,
            _ => anyhow::bail!(
                "unknown section `{section}`: take query, made, scale, real, warm, structure, figure6=SEEDS or families=SEEDS"
            ),
        }
    }
    Ok(())
}

fn index_of(asset_count: usize, offers: &[Offer]) -> anyhow::Result<DemandIndex> {
    Ok(DemandIndex::from_offers(asset_count, offers, Vec::new())?)
}

fn made_batch(asset_count: usize, offer_count: usize, shape: Shape, seed: u64) -> MadeBatch {
    MadeBatch::new(Model { asset_count, offer_count, variant: Variant::Default, shape }, seed)
}

/// The solution, and the least and the median time of some repetitions in milliseconds.
fn timed(solver: &impl PriceSolver, problem: &Problem<'_>, repetitions: usize) -> (Solution, f64, f64) {
    let mut times = Vec::new();
    let mut solution = None;
    for _ in 0..repetitions {
        let begin = Instant::now();
        solution = Some(black_box(solver.solve(problem)));
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    (solution.expect("at least one repetition"), times[0], times[repetitions / 2])
}

fn query() -> anyhow::Result<()> {
    println!("\nDemand query with slopes, all prices jittered by up to 0.1 % before each\nassets  offers   ns per book");
    for (asset_count, offer_count) in [(20, 500_000), (50, 5_000), (50, 50_000), (50, 500_000), (50, 5_000_000), (200, 500_000)] {
        let batch = made_batch(asset_count, offer_count, Shape::Cycles, 1);
        let index = index_of(asset_count, &batch.offers)?;
        let (mut demand, mut prices) = (Demand::new(asset_count), batch.valuations.clone());
        let mut best = f64::INFINITY;
        for round in 0..5 {
            let begin = Instant::now();
            for turn in 0..100usize {
                for (asset, (price, valuation)) in prices.iter_mut().zip(&batch.valuations).enumerate() {
                    *price = valuation * (1.0 + 1e-3 * ((asset * 7 + turn * 13 + round) % 17) as f64 / 17.0);
                }
                index.demand(&prices, Window::of_mu(1e-3), &mut demand);
                black_box(&demand);
            }
            best = best.min(begin.elapsed().as_secs_f64() * 1e9 / 100.0 / index.book_count() as f64);
        }
        println!("{asset_count:6} {offer_count:8} {best:8.1}");
    }
    Ok(())
}

fn made() -> anyhow::Result<()> {
    println!("\nThe reference generator's data, cold, one core: milliseconds median (least) / queries, per (eps, mu) in bits");
    println!("assets data   offers  index ms {}", ACCURACIES.map(|(e, m)| format!("{:>24}", format!("({e},{m})"))).concat());
    for (asset_count, shape) in [(20, Shape::Cycles), (50, Shape::Cycles), (50, Shape::Star), (200, Shape::Cycles)] {
        for offer_count in [500, 5_000, 50_000, 500_000] {
            let batch = made_batch(asset_count, offer_count, shape, 0);
            let begin = Instant::now();
            let index = index_of(asset_count, &batch.offers)?;
            let build_ms = begin.elapsed().as_secs_f64() * 1e3;
            let mut line = format!("{asset_count:6} {:6} {offer_count:7} {build_ms:8.1} ", format!("{shape:?}"));
            for (eps_bits, mu_bits) in ACCURACIES {
                let problem = Problem::cold(&index, Accuracy::bits(eps_bits, mu_bits));
                let (solution, least, median) = timed(&Portfolio, &problem, REPETITIONS);
                line += &format!("{:>24}", format!("{median:.2} ({least:.2}) / {}{}", solution.queries, mark(solution.outcome)));
            }
            println!("{line}");
        }
    }
    println!("  b: cleared within the bounds of the trade amounts, not by smoothed demand;  FAIL: neither");
    Ok(())
}

fn mark(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Cleared => "",
        Outcome::ClearedWithinBounds => "b",
        Outcome::Approximate => " FAIL",
    }
}

fn scale() -> anyhow::Result<()> {
    println!(
        "\nCost against assets and offers at (15,10), cold\nassets   offers  median ms  least ms  queries  newton alone  tatonnement ms / queries"
    );
    let sizes = [10, 20, 50, 100, 200].map(|assets| (assets, 500_000));
    for (asset_count, offer_count) in
        sizes.into_iter().chain([100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000].map(|offers| (50, offers)))
    {
        let batch = made_batch(asset_count, offer_count, Shape::Cycles, 0);
        let index = index_of(asset_count, &batch.offers)?;
        let problem = Problem::cold(&index, Accuracy::bits(15, 10));
        let (solution, least, median) = timed(&Portfolio, &problem, REPETITIONS);
        let (newton, _, newton_ms) = timed(&Newton, &problem, 3);
        let budget = Budget::queries(20_000);
        let (reference, _, reference_ms) = timed(&Tatonnement::default(), &Problem { budget, ..problem }, 1);
        println!(
            "{asset_count:6} {offer_count:8} {median:10.2} {least:9.2} {:8}{} {newton_ms:10.2}{} {reference_ms:10.1} / {}{}",
            solution.queries,
            mark(solution.outcome),
            mark(newton.outcome),
            reference.queries,
            mark(reference.outcome)
        );
    }
    Ok(())
}

/// The folder of daily histories, if it is there.
fn history_folder() -> Option<PathBuf> {
    let root = std::env::var_os("WALRAS_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from);
    Some(root.join("coingecko")).filter(|folder| folder.is_dir())
}

fn real() -> anyhow::Result<()> {
    let Some(folder) = history_folder() else {
        println!("\nReal days: skipped, no coingecko folder in $WALRAS_DATA or ../shared/data");
        return Ok(());
    };
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|ending| ending == "csv"));
    files.sort();
    let texts: Vec<String> = files.iter().map(std::fs::read_to_string).collect::<Result<_, _>>()?;
    let days = RealDays::parse(texts.iter().map(String::as_str), 500)?;
    println!("\nReal days: {} assets, 30,000 offers, {} days, cold and from the last day's prices", days.asset_count(), days.len());
    println!("(eps,mu)  start    solved  by smoothing  median ms   max ms  queries median  max");
    for (eps_bits, mu_bits) in ACCURACIES {
        for warm in [false, true] {
            let (mut times, mut queries, mut cleared, mut within) = (Vec::new(), Vec::new(), 0, 0);
            for day in 0..days.len() {
                let index = index_of(days.asset_count(), &days.offers(day, 30_000, 1))?;
                let start = days.prices(day.saturating_sub(1));
                let mut problem = Problem::cold(&index, Accuracy::bits(eps_bits, mu_bits));
                problem.start = warm.then_some(&start[..]);
                let (solution, least, _) = timed(&Portfolio, &problem, 3);
                times.push(least);
                queries.push(solution.queries);
                cleared += usize::from(solution.outcome == Outcome::Cleared);
                within += usize::from(solution.outcome == Outcome::ClearedWithinBounds);
            }
            times.sort_by(f64::total_cmp);
            queries.sort_unstable();
            let (middle, last) = (days.len() / 2, days.len() - 1);
            println!(
                "({eps_bits},{mu_bits})   {}  {:4} of {}  {cleared:10} {:10.2} {:8.2} {:12} {:8}",
                if warm { "warm" } else { "cold" },
                cleared + within,
                days.len(),
                times[middle],
                times[last],
                queries[middle],
                queries[last]
            );
        }
    }
    Ok(())
}

fn warm() -> anyhow::Result<()> {
    println!("\nThe next batch, valuations moved by exp(N(0, 0.05)): cold against the last batch's prices, at (15,10)");
    println!("assets  offers  cold ms / queries  warm ms / queries");
    for (asset_count, offer_count) in [(50, 500), (50, 5_000), (50, 50_000), (50, 500_000)] {
        let mut batch = made_batch(asset_count, offer_count, Shape::Cycles, 0);
        let first = Portfolio.solve(&Problem::cold(&index_of(asset_count, &batch.offers)?, Accuracy::bits(15, 10)));
        let start: Vec<f64> = first.prices.iter().map(|price| price.unwrap_or(1.0)).collect();
        batch.next();
        let index = index_of(asset_count, &batch.offers)?;
        let problem = Problem::cold(&index, Accuracy::bits(15, 10));
        let (cold, _, cold_ms) = timed(&Portfolio, &problem, REPETITIONS);
        let (warm, _, warm_ms) = timed(&Portfolio, &Problem { start: Some(&start), ..problem }, REPETITIONS);
        println!(
            "{asset_count:6} {offer_count:7} {cold_ms:8.2} / {}{} {warm_ms:12.2} / {}{}",
            cold.queries,
            mark(cold.outcome),
            warm.queries,
            mark(warm.outcome)
        );
    }
    Ok(())
}

fn structure() -> anyhow::Result<()> {
    println!(
        "\nTen numeraires and stocks that trade with one of them each, 200 offers per stock, at (15,10)\nassets  offers  blocks  ms"
    );
    for stock_count in [100, 1_000, 5_000] {
        let mut offers = made_batch(10, 10_000, Shape::Cycles, 0).offers;
        for stock in 0..stock_count {
            let pair = made_batch(2, 200, Shape::Cycles, stock as u64 + 1).offers;
            let name = |asset: usize| if asset == 0 { stock % 10 } else { 10 + stock };
            offers.extend(pair.iter().map(|offer| Offer { sell: name(offer.sell), buy: name(offer.buy), ..*offer }));
        }
        let index = index_of(10 + stock_count, &offers)?;
        let budget = Budget::queries(10_000_000);
        let (solution, _, median) =
            timed(&Portfolio, &Problem { budget, ..Problem::cold(&index, Accuracy::bits(15, 10)) }, REPETITIONS);
        println!("{:6} {:7} {:7} {median:6.2}{}", 10 + stock_count, offers.len(), solution.blocks, mark(solution.outcome));
    }
    Ok(())
}

/// Markets of one kind at each accuracy: how many failed, how many cleared within bounds only, and the time of each solve in milliseconds.
#[derive(Default)]
struct Cells([(usize, usize, Vec<f64>); 4]);

impl Cells {
    fn solve(&mut self, asset_count: usize, offers: &[Offer]) -> anyhow::Result<()> {
        let index = index_of(asset_count, offers)?;
        for (cell, (eps_bits, mu_bits)) in self.0.iter_mut().zip(ACCURACIES) {
            let problem = Problem::cold(&index, Accuracy::bits(eps_bits, mu_bits));
            let (solution, _, median) = timed(&Portfolio, &problem, 1);
            cell.0 += usize::from(solution.outcome == Outcome::Approximate);
            cell.1 += usize::from(solution.outcome == Outcome::ClearedWithinBounds);
            cell.2.push(median);
        }
        Ok(())
    }

    /// Prints a line; the failures, and the longest time.
    fn print(mut self, name: &str) -> (usize, f64) {
        let (mut line, mut failures, mut slowest) = (name.to_owned(), 0, 0.0f64);
        for (failed, within, times) in &mut self.0 {
            times.sort_by(f64::total_cmp);
            let median = times.get(times.len() / 2).copied().unwrap_or(0.0);
            let max = times.last().copied().unwrap_or(0.0);
            line += &format!("{:>26}", format!("{failed} {median:.2} / {max:.2} b{within}"));
            failures += *failed;
            slowest = slowest.max(max);
        }
        println!("{line}");
        (failures, slowest)
    }
}

fn heads() -> String {
    ACCURACIES.map(|(e, m)| format!("{:>26}", format!("({e},{m})"))).concat()
}

fn figure6(seeds: u64) -> anyhow::Result<()> {
    println!(
        "\nSPEEDEX 2021, Figure 6, {seeds} seeds per cell, cold: failures, milliseconds median / max, solved within bounds only"
    );
    println!("assets offers variant        {}", heads());
    let mut failures = 0;
    let mut slowest = 0.0f64;
    for asset_count in [20, 50] {
        for offer_count in [60, 500, 5_000, 50_000, 500_000] {
            for variant in Variant::ALL {
                let mut cells = Cells::default();
                for seed in 0..seeds {
                    let batch = MadeBatch::new(Model { asset_count, offer_count, variant, shape: Shape::EvenCycles }, seed);
                    cells.solve(asset_count, &batch.offers)?;
                }
                let (failed, max) = cells.print(&format!("{asset_count:6} {offer_count:6} {:14}", format!("{variant:?}")));
                failures += failed;
                slowest = slowest.max(max);
            }
        }
    }
    println!("failures {failures}, slowest {slowest:.1} ms");
    Ok(())
}

/// No offer of the tables above is much larger than the others; of these many are.
fn families(seeds: u64) -> anyhow::Result<()> {
    println!(
        "\nFamilies of hard markets, {seeds} seeds per cell, cold: failures, milliseconds median / max, solved within bounds only"
    );
    println!("family              {}", heads());
    let mut failures = 0;
    let mut slowest = 0.0f64;
    for family in Family::ALL {
        let mut cells = Cells::default();
        for seed in 0..seeds {
            let market = family.market(seed);
            cells.solve(market.asset_count, &market.offers)?;
        }
        let (failed, max) = cells.print(&format!("{:20}", format!("{family:?}")));
        failures += failed;
        slowest = slowest.max(max);
    }
    println!("failures {failures}, slowest {slowest:.1} ms");
    Ok(())
}
