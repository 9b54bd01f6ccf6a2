//! Clearing a batch: prices, amounts, real days: `make bench NAME=clearing`.
//!
//! Peers: GLPK, run in the same call if it is installed. The reference implementation of SPEEDEX cannot be built here; its
//! figures are those measured apart on a machine like this one, best of its strategies for each row, on data of the same generator.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, ensure};
use serde_json::Value;
use walras_batch_solver::{Settings, clear};
use walras_clearing::{AssetIndex, BatchMarket, Offer as SellOffer, OfferId, Pair};
use walras_price_solver::Demand;
use walras_price_solver::demand::{DemandIndex, Window};
use walras_price_solver::real_days::RealDays;
use walras_price_solver::solve::{Accuracy, Outcome, Portfolio, PriceSolver, Problem, Solution};
use walras_price_solver::synthetic::{MadeBatch, Model, Offer, Shape, Variant};
use walras_trade_amounts::synthetic::bounds_near_equilibrium;
use walras_trade_amounts::{Answer, CirculationSolver, Network, problem_text, solve_linear_program};
use walras_types::{Amount, BatchPrice, Commission, Mu};

use crate::report::{Figure, PeerFigure, Report, Unit};
use crate::statistics::median;

/// How to run.
#[derive(Debug)]
pub struct Config {
    /// Rounds; figures are medians over them.
    pub rounds: usize,
    /// Whether to run all of it, not a thousandth.
    pub is_full: bool,
    /// Where exchange data may lie.
    pub data: PathBuf,
    /// The folder of peers, if they are to be run.
    pub peers: Option<PathBuf>,
    /// Where problems for peers are written.
    pub scratch: PathBuf,
}

const ACCURACIES: [(i32, i32); 4] = [(10, 10), (15, 10), (15, 15), (20, 15)];
const SEED: u64 = 0;
/// What a solve of the grid may take.
const DEADLINE_MS: f64 = 250.0;

/// Runs all of it. Fails at the first wrong answer.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(config.rounds);
    dense(config, report)?;
    sparse(config, report)?;
    scale(config, report)?;
    circulation(config, report)?;
    real_days(config, report)?;
    grid(config, report)
}

fn reference(value_ms: f64) -> PeerFigure {
    let how = "measured apart on a machine like this one (2 cores, 2.6 GHz, one thread), best of its step scales, data of the same generator";
    PeerFigure::new("SPEEDEX's own implementation", value_ms, Unit::Ms, how)
}

fn batch(asset_count: usize, offer_count: usize, shape: Shape) -> MadeBatch {
    MadeBatch::new(Model { asset_count, offer_count, variant: Variant::Default, shape }, SEED)
}

fn index_of(asset_count: usize, offers: &[Offer]) -> anyhow::Result<DemandIndex> {
    Ok(DemandIndex::from_offers(asset_count, offers, Vec::new())?)
}

/// Milliseconds of each round, and what was found, which must be the same in every round.
fn rounds(config: &Config, problem: &Problem<'_>) -> anyhow::Result<(Vec<f64>, Solution)> {
    let mut times = Vec::new();
    let mut first: Option<Solution> = None;
    for _ in 0..config.rounds {
        let begun = Instant::now();
        let solution = Portfolio.solve(problem);
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        ensure!(first.as_ref().is_none_or(|first| *first == solution), "two solves of one market differ");
        first.get_or_insert(solution);
    }
    let solution = first.context("--rounds must be at least 1")?;
    ensure!(solution.outcome != Outcome::Approximate, "a market that must clear did not");
    Ok((times, solution))
}

/// 50 assets, 500,000 offers, cold.
fn dense(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let offer_count = if config.is_full { 500_000 } else { 5_000 };
    eprintln!("50 assets, {offer_count} offers");
    let batch = batch(50, offer_count, Shape::Cycles);
    let (sells, mut market_ms, mut index_ms) = (sells_of(&batch.offers, &mut 0)?, Vec::new(), Vec::new());
    for _ in 0..config.rounds {
        let begun = Instant::now();
        BatchMarket::build(50, &sells, &[], Vec::new())?;
        market_ms.push(begun.elapsed().as_secs_f64() * 1e3);
        let begun = Instant::now();
        index_of(50, &batch.offers)?;
        index_ms.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    for (metric, samples) in [("n50_500k_market_ms", market_ms), ("n50_500k_index_ms", index_ms)] {
        let value = report.samples(metric, samples);
        report.figure(Figure::new(metric, value, Unit::Ms));
    }
    let index = index_of(50, &batch.offers)?;
    let rows = [((15, 10), "n50_500k_e15_m10", 83.6, 8.0), ((20, 15), "n50_500k_e20_m15", 366.0, 15.0)];
    for ((eps_bits, mu_bits), name, reference_ms, bar) in rows {
        let (times, solution) = rounds(config, &Problem::cold(&index, Accuracy::bits(eps_bits, mu_bits)))?;
        let ms = report.samples(format!("{name}_ms"), times);
        report.figure(Figure::new(format!("{name}_ms"), ms, Unit::Ms).against(reference(reference_ms)).bar(bar));
        let queries = Figure::new(format!("{name}_queries"), solution.queries as f64, Unit::Queries);
        report.figure(if mu_bits == 10 { queries.bar(20.0) } else { queries });
    }
    let (times, solution) = warm(config, &batch)?;
    let ms = report.samples("n50_500k_warm_e15_m10_ms", times);
    report.figure(Figure::new("n50_500k_warm_e15_m10_ms", ms, Unit::Ms));
    report.figure(Figure::new("n50_500k_warm_e15_m10_queries", solution.queries as f64, Unit::Queries));
    let ns = report.samples("query_ns_per_book", (0..config.rounds).map(|round| query_ns(&index, &batch, round)).collect());
    let peer = PeerFigure::new("SPEEDEX's own implementation", 170.0, Unit::Ns, "measured apart, prices jittered, one thread");
    report.figure(Figure::new("query_ns_per_book", ns, Unit::Ns).against(peer).bar(30.0));
    report.check("dense: every round found the same prices, and smoothed demand clears at them or amounts within the bounds exist");
    Ok(())
}

/// The next batch, from the last one's prices.
fn warm(config: &Config, batch: &MadeBatch) -> anyhow::Result<(Vec<f64>, Solution)> {
    let index = index_of(50, &batch.offers)?;
    let accuracy = Accuracy::bits(15, 10);
    let last = Portfolio.solve(&Problem::cold(&index, accuracy));
    let start: Vec<f64> = last.prices.iter().map(|price| price.unwrap_or(0.0)).collect();
    let mut next = batch.clone();
    next.next();
    let index = index_of(50, &next.offers)?;
    rounds(config, &Problem { start: Some(&start), ..Problem::cold(&index, accuracy) })
}

/// Nanoseconds per book of a demand query with slopes, all prices moved by up to 0.1 % before each.
fn query_ns(index: &DemandIndex, batch: &MadeBatch, round: usize) -> f64 {
    const TURNS: usize = 100;
    let (mut demand, mut prices) = (Demand::new(batch.valuations.len()), batch.valuations.clone());
    let begun = Instant::now();
    for turn in 0..TURNS {
        for (asset, (price, valuation)) in prices.iter_mut().zip(&batch.valuations).enumerate() {
            *price = valuation * (1.0 + 1e-3 * ((asset * 7 + turn * 13 + round) % 17) as f64 / 17.0);
        }
        index.demand(&prices, Window::of_mu(1e-3), &mut demand);
        std::hint::black_box(&demand);
    }
    begun.elapsed().as_secs_f64() * 1e9 / TURNS as f64 / index.book_count() as f64
}

/// 50 assets, 500 offers: the reference solves two of the four accuracies.
fn sparse(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    eprintln!("50 assets, 500 offers");
    let batch = batch(50, 500, Shape::Cycles);
    let index = index_of(50, &batch.offers)?;
    let mut worst: f64 = 0.0;
    for (eps_bits, mu_bits) in ACCURACIES {
        let (times, _) = rounds(config, &Problem::cold(&index, Accuracy::bits(eps_bits, mu_bits)))?;
        worst = worst.max(report.samples(format!("n50_500_e{eps_bits}_m{mu_bits}_ms"), times));
    }
    report.note("n50_500_worst_ms: the reference's figure is of (15,10); it never solved (15,15) and (20,15) within 3 s");
    report.figure(Figure::new("n50_500_worst_ms", worst, Unit::Ms).against(reference(139.0)).bar(5.0));
    Ok(())
}

/// 200 assets: prices and whole amounts, checked by the core.
fn scale(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let offer_count = if config.is_full { 500_000 } else { 20_000 };
    eprintln!("200 assets, {offer_count} offers, prices and amounts");
    let market = BatchMarket::build(200, &sells_of(&batch(200, offer_count, Shape::Cycles).offers, &mut 0)?, &[], Vec::new())?;
    let exponent = |bits| Commission::new(bits).context("an exponent within 1 and 30");
    let settings = Settings::new(exponent(15)?, Mu::new(10).context("an exponent within 1 and 30")?);
    let (mut both, mut prices, mut amounts, mut verify) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..config.rounds {
        let cleared = clear(&market, &settings)?;
        ensure!(cleared.report.outcome != Outcome::Approximate, "200 assets did not clear");
        let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
        let times = cleared.report.times;
        both.push(ms(times.prices) + ms(times.amounts));
        prices.push(ms(times.prices));
        amounts.push(ms(times.amounts));
        verify.push(ms(times.verify));
    }
    report.check("200 assets: the core verified every clearing");
    let how = "its linear program alone (GLPK), measured apart on a machine like this one";
    let peer = PeerFigure::new("SPEEDEX's own implementation", 1_321.0, Unit::Ms, how);
    let value = report.samples("n200_prices_and_amounts_ms", both);
    report.figure(Figure::new("n200_prices_and_amounts_ms", value, Unit::Ms).against(peer).bar(100.0));
    for (metric, samples) in [("n200_prices_ms", prices), ("n200_amounts_ms", amounts), ("n200_verify_ms", verify)] {
        let value = report.samples(metric, samples);
        report.figure(Figure::new(metric, value, Unit::Ms));
    }
    Ok(())
}

/// The offers in whole units, under ids from this one on, which is then the next.
pub(crate) fn sells_of(offers: &[Offer], next_id: &mut u64) -> anyhow::Result<Vec<(Pair, SellOffer)>> {
    let asset = |index: usize| u16::try_from(index).map(AssetIndex);
    let mut sells = Vec::with_capacity(offers.len());
    for (number, offer) in (*next_id..).zip(offers) {
        let pair = Pair { sell: asset(offer.sell)?, buy: asset(offer.buy)? };
        let amount = Amount::new(offer.amount as u64).context("an amount is below 2^63")?;
        let stated = BatchPrice::from_bits(offer.limit.to_bits())?;
        sells.push((pair, SellOffer::new(stated, number, OfferId(number), amount)?));
    }
    *next_id += offers.len() as u64;
    Ok(sells)
}

/// Integer circulation compared with a linear program in GLPK, on bounds as 500,000 offers leave them.
fn circulation(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let peer = config.peers.as_deref().map(Glpk::build);
    if let Some(Err(why)) = &peer {
        report.note(format!("GLPK was NOT RUN, so our figures stand alone: {why}"));
    }
    let peer = peer.and_then(Result::ok);
    for (asset_count, bar) in [(50, Some(100.0)), (200, None)] {
        eprintln!("amounts of {asset_count} assets");
        let arcs = bounds_near_equilibrium(asset_count, 500_000, 10, 1);
        let nothing = vec![0; asset_count as usize];
        let mut solver = CirculationSolver::new();
        let mut us = Vec::new();
        for _ in 0..config.rounds * 5 {
            let begun = Instant::now();
            let network = Network::new(&arcs, &nothing)?;
            let answer = solver.solve(&network);
            us.push(begun.elapsed().as_secs_f64() * 1e6);
            let Answer::Best(best) = answer else { anyhow::bail!("bounds made to hold do not") };
            ensure!(best.check(&network), "the circulation does not prove itself");
        }
        let network = Network::new(&arcs, &nothing)?;
        let Answer::Best(best) = solver.solve(&network) else { anyhow::bail!("bounds made to hold do not") };
        let oracle = solve_linear_program(&network, 0.0)?.value;
        ensure!(
            (oracle - best.value as f64).abs() <= 1e-9 * oracle,
            "the linear program has {oracle}, the circulation {}",
            best.value
        );
        let metric = format!("circulation_n{asset_count}_us");
        let value = report.samples(&metric, us);
        let theirs = match &peer {
            Some(peer) => {
                let solved = peer.solve(&network, &config.scratch, config.rounds)?;
                Some(solved.context("GLPK finds no amounts within bounds that were made feasible")?.0)
            }
            None => None,
        };
        if let Some(theirs) = theirs {
            let how = "glp_simplex alone, primal, presolver on, as the reference calls it; same problem, same call, median";
            let figure = Figure::new(metric, value, Unit::Us).against(PeerFigure::new("GLPK", theirs, Unit::Us, how));
            report.figure(figure);
            let times = Figure::new(format!("circulation_vs_glpk_n{asset_count}"), theirs / value, Unit::TimesFaster);
            report.figure(match bar {
                Some(bar) => times.bar(bar),
                None => times,
            });
        } else {
            report.figure(Figure::new(metric, value, Unit::Us));
        }
    }
    report.check("circulation: each proves that none has more value, and the linear program of another library has the same value");
    Ok(())
}

/// The peer of the circulation.
pub(crate) struct Glpk {
    script: PathBuf,
}

/// The commission of the linear program: 2^-15.
const COMMISSION_EXPONENT: u32 = 15;
/// The peer's message on bounds that cannot hold (`bench/peers/glpk/solve.c`).
const INFEASIBLE: &str = "the bounds of this problem can not hold";

impl Glpk {
    pub(crate) fn build(peers: &Path) -> Result<Self, String> {
        let script = peers.join("glpk/run.sh");
        match Command::new(&script).arg("--build-only").output() {
            Ok(output) if output.status.success() => Ok(Self { script }),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(format!("{} does not start ({error}); run the bench by bench/run.sh", script.display())),
        }
    }

    /// Its time in microseconds, and the value that it trades; `None` if it finds that the bounds cannot hold.
    pub(crate) fn solve(&self, network: &Network<'_>, scratch: &Path, rounds: usize) -> anyhow::Result<Option<(f64, f64)>> {
        std::fs::create_dir_all(scratch)?;
        let file = scratch.join("amounts.txt");
        std::fs::write(&file, problem_text(network, COMMISSION_EXPONENT))?;
        let output = Command::new(&self.script).arg(&file).args(["--rounds", &rounds.to_string()]).output()?;
        let (text, why) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if why.contains(INFEASIBLE) {
            return Ok(None);
        }
        ensure!(output.status.success(), "GLPK ended with {}: {text}{why}", output.status);
        let answer: Value = serde_json::from_str(text.lines().last().unwrap_or_default())?;
        let number = |name: &str| answer[name].as_f64().with_context(|| format!("GLPK's report has no {name}"));
        Ok(Some((number("solve_ms_median")? * 1e3, number("objective")?)))
    }
}

/// 500 days of the prices and volumes of 50 assets.
fn real_days(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    const DAYS: usize = 500;
    let folder = config.data.join("coingecko");
    if !folder.is_dir() {
        report.note("real days were NOT RUN: no coingecko folder in WALRAS_DATA or ../shared/data");
        return Ok(());
    }
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|ending| ending == "csv"));
    files.sort();
    let texts: Vec<String> = files.iter().map(std::fs::read_to_string).collect::<Result<_, _>>()?;
    let days = RealDays::parse(texts.iter().map(String::as_str), DAYS)?;
    let count = if config.is_full { days.len() } else { 5 };
    eprintln!("{count} real days");
    let (mut solved, mut times) = (0, Vec::new());
    for day in 0..count {
        let index = index_of(days.asset_count(), &days.offers(day, 30_000, 1))?;
        let problem = Problem::cold(&index, Accuracy::bits(15, 10));
        let mut own = Vec::new();
        let mut outcome = Outcome::Approximate;
        for _ in 0..3 {
            let begun = Instant::now();
            outcome = Portfolio.solve(&problem).outcome;
            own.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        solved += usize::from(outcome != Outcome::Approximate);
        times.push(median(&own));
    }
    let worst = times.iter().copied().fold(0.0, f64::max);
    let peer =
        PeerFigure::new("SPEEDEX 2023, section 6.2", 350.0, Unit::Count, "published, of 500, its own batches of the same source");
    report.figure(Figure::new("real_days_solved", solved as f64, Unit::Count).against(peer).bar(500.0));
    report.figure(Figure::new("real_days_median_ms", median(&times), Unit::Ms));
    report.figure(Figure::new("real_days_worst_ms", worst, Unit::Ms).bar(5.0));
    Ok(())
}

/// SPEEDEX 2021, Figure 6: every variant of the data, 20 and 50 assets, four accuracies.
fn grid(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let (sizes, seeds): (&[usize], u64) = if config.is_full { (&[60, 500, 5_000, 50_000, 500_000], 100) } else { (&[60, 500], 2) };
    let (mut solves, mut failures, mut slowest) = (0_u64, 0_u64, 0.0_f64);
    for asset_count in [20, 50] {
        for &offer_count in sizes {
            eprintln!("grid: {asset_count} assets, {offer_count} offers, {} variants of {seeds} seeds", Variant::ALL.len());
            for variant in Variant::ALL {
                for seed in 0..seeds {
                    let model = Model { asset_count, offer_count, variant, shape: Shape::EvenCycles };
                    let index = index_of(asset_count, &MadeBatch::new(model, seed).offers)?;
                    for (eps_bits, mu_bits) in ACCURACIES {
                        let problem = Problem::cold(&index, Accuracy::bits(eps_bits, mu_bits));
                        let begun = Instant::now();
                        let outcome = Portfolio.solve(&problem).outcome;
                        let ms = begun.elapsed().as_secs_f64() * 1e3;
                        solves += 1;
                        slowest = slowest.max(ms);
                        failures += u64::from(outcome == Outcome::Approximate || ms > DEADLINE_MS);
                    }
                }
            }
        }
    }
    report.check(format!("grid: {solves} solves, over {DEADLINE_MS} ms counts as a failure"));
    report.figure(Figure::new("grid_failures", failures as f64, Unit::Failures).bar(0.0));
    report.figure(Figure::new("grid_slowest_ms", slowest, Unit::Ms).bar(DEADLINE_MS));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_has_every_figure() {
        let folder = tempfile::tempdir().unwrap();
        let mut report = Report::begin("clearing");
        let data = crate::streams::data_folder();
        let has_days = data.join("coingecko").is_dir();
        let config = Config { rounds: 2, is_full: false, data, peers: None, scratch: folder.path().to_owned() };
        run(&config, &mut report).unwrap();
        let metrics: Vec<&str> = report.figures().iter().map(|figure| figure.metric.as_str()).collect();
        for metric in
            ["n50_500k_e15_m10_ms", "n50_500k_e20_m15_ms", "n50_500_worst_ms", "grid_failures", "n200_prices_and_amounts_ms"]
        {
            assert!(metrics.contains(&metric), "{metric} is missing from {metrics:?}");
        }
        assert_eq!(metrics.contains(&"real_days_solved"), has_days);
        let failures = report.figures().iter().find(|figure| figure.metric == "grid_failures").unwrap();
        assert!(failures.value < 1.0);
    }
}
