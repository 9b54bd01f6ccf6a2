//! Batch markets that nobody can stop: families of hard markets, and dense ones of a thousand assets: `make bench NAME=batch`.
//!
//! Every market has a clearing in each of its parts, so a search without one has failed. Tatonnement, as the papers have it, runs
//! on the same markets wherever the portfolio fails, and on a sample of the others.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use walras_batch_solver::{Deadline, KeptIndex, Settings, clear, clear_with};
use walras_clearing::{BatchMarket, Offer, OfferKey, Pair, SellChange};
use walras_price_solver::demand::DemandIndex;
use walras_price_solver::families::{self, Family, FamilyMarket};
use walras_price_solver::random::Random;
use walras_price_solver::solve::{Accuracy, Budget, Outcome, Portfolio, PriceSolver, Problem, Solution, Tatonnement};
use walras_price_solver::synthetic::{MadeBatch, Model, Shape, Variant};
use walras_types::{Commission, Mu};

use crate::clearing::sells_of;
use crate::report::{Figure, Report, Unit};

/// How to run.
#[derive(Debug)]
pub struct Config {
    /// Rounds; figures are medians over them.
    pub rounds: usize,
    /// Whether to run all of it, or some seeds.
    pub is_full: bool,
}

const ACCURACIES: [(i32, i32); 4] = [(15, 10), (10, 10), (15, 15), (20, 15)];
/// What a search may take.
const WORST_MS: f64 = 250.0;
/// One market in so many is given to tatonnement, too.
const SAMPLED: u64 = 20;
const TATONNEMENT_QUERIES: u64 = 5_000;

/// Runs all of it.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(config.rounds);
    families_of_markets(config, report)?;
    dense(config, report)?;
    offers_to_prices(config, report)?;
    deadline(config, report)
}

fn solved(market: &FamilyMarket, (eps_bits, mu_bits): (i32, i32)) -> anyhow::Result<(DemandIndex, Accuracy, Solution, f64)> {
    let index = DemandIndex::from_offers(market.asset_count, &market.offers, Vec::new())?;
    let accuracy = Accuracy::bits(eps_bits, mu_bits);
    let begun = Instant::now();
    let solution = Portfolio.solve(&Problem::cold(&index, accuracy));
    let ms = begun.elapsed().as_secs_f64() * 1e3;
    Ok((index, accuracy, solution, ms))
}

fn families_of_markets(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let seeds = if config.is_full { 400 } else { 2 };
    let (mut tried, mut failed, mut worse, mut worst_ms) = (0_u64, 0_u64, 0_u64, 0.0_f64);
    let mut failed_families = Vec::new();
    for family in Family::ALL {
        eprintln!("{family:?}: {seeds} markets");
        for seed in 0..seeds {
            let bits = ACCURACIES[seed as usize % ACCURACIES.len()];
            let (index, accuracy, solution, ms) = solved(&family.market(seed), bits)?;
            tried += 1;
            worst_ms = worst_ms.max(ms);
            let has_failed = solution.outcome == Outcome::Approximate;
            if has_failed {
                failed += 1;
                failed_families.push(format!("{family:?} {seed} at {bits:?}"));
            }
            if has_failed || seed % SAMPLED == 0 {
                let budget = Budget::queries(TATONNEMENT_QUERIES);
                let other = Tatonnement::default().solve(&Problem { budget, ..Problem::cold(&index, accuracy) });
                worse += u64::from((other.outcome, other.worst_excess) < (solution.outcome, solution.worst_excess) && has_failed);
            }
        }
    }
    report.check(format!(
        "{tried} markets of {} families, each solved cold on one core; none may be left approximate",
        Family::ALL.len()
    ));
    for failure in failed_families.iter().take(20) {
        report.note(format!("no prices: {failure}"));
    }
    report.figure(Figure::new("families_failed", failed as f64, Unit::Failures).bar(0.0));
    report.figure(Figure::new("markets_tried", tried as f64, Unit::Count));
    report.figure(Figure::new("worst_solve_ms", worst_ms, Unit::Ms).bar(WORST_MS));
    report.figure(Figure::new("worse_than_tatonnement", worse as f64, Unit::Failures).bar(0.0));
    Ok(())
}

fn dense(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let asset_count = if config.is_full { 1_000 } else { 120 };
    eprintln!("{asset_count} dense assets");
    let market = families::dense(asset_count, 0);
    let mut times = Vec::new();
    for _ in 0..config.rounds {
        let (_, _, solution, ms) = solved(&market, ACCURACIES[0])?;
        ensure!(solution.outcome != Outcome::Approximate, "the dense market was not cleared");
        times.push(ms);
    }
    let ms = report.samples("dense_1000_assets_ms", times);
    report.figure(Figure::new("dense_1000_assets_ms", ms, Unit::Ms).bar(1_000.0));
    Ok(())
}

/// The share of standing offers that goes from one block to the next; as many come.
const CHANGING: f64 = 0.1;
/// Threads that change the market, as in a venue on such a machine. Index and prices are found on one.
const THREADS: usize = 2;

/// From a block's changes to prices: offers come and go, the solver's index follows, prices are searched from the last block's. Each
/// round's result is that of an index made anew.
fn offers_to_prices(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let offer_count = if config.is_full { 500_000 } else { 5_000 };
    eprintln!("50 assets, {offer_count} offers, from offers to prices");
    let model = Model { asset_count: 50, offer_count, variant: Variant::Default, shape: Shape::Cycles };
    let (mut made, mut random, mut first_id) = (MadeBatch::new(model, 0), Random::new(0), 0);
    let mut market = BatchMarket::build(50, &sells_of(&made.offers, &mut first_id)?, &[], Vec::new())?;
    let (settings, threads) = (settings()?, NonZero::new(THREADS).context("at least one thread")?);
    let mut kept = KeptIndex::default();
    let mut last = clear_with(&mut kept, &market, &settings)?.proposal.prices;
    let (mut all, mut parts) = (Vec::new(), [Vec::new(), Vec::new(), Vec::new()]);
    for _ in 0..config.rounds {
        let mut changes: BTreeMap<Pair, (Vec<OfferKey>, Vec<Offer>)> = BTreeMap::new();
        for book in market.books() {
            let gone = book.sells().as_slice().iter().filter(|_| random.unit() < CHANGING).map(Offer::key);
            changes.entry(book.pair()).or_default().0.extend(gone);
        }
        made.next_of((offer_count as f64 * CHANGING) as usize);
        for (pair, offer) in sells_of(&made.offers, &mut first_id)? {
            changes.entry(pair).or_default().1.push(offer);
        }
        let changes = changes.iter_mut().map(|(pair, (removed, added))| SellChange { pair: *pair, removed, added }).collect();
        let begun = Instant::now();
        market.change_sells(changes, threads)?;
        let change_ms = begun.elapsed().as_secs_f64() * 1e3;
        let settings = Settings { start: Some(&last), ..settings };
        let cleared = clear_with(&mut kept, &market, &settings)?;
        let times = cleared.report.times;
        ensure!(cleared.report.outcome != Outcome::Approximate, "a market that must clear did not");
        let anew = clear(&market, &settings)?.proposal;
        ensure!(cleared.proposal == anew, "an index that was kept found something else than one made anew");
        let of_round = [change_ms, times.index.as_secs_f64() * 1e3, times.prices.as_secs_f64() * 1e3];
        all.push(of_round.iter().sum());
        parts.iter_mut().zip(of_round).for_each(|(samples, ms)| samples.push(ms));
        last = anew.prices;
    }
    report.check("offers to prices: the index that was kept found what one made anew finds, in every round");
    let ms = report.samples("offers_to_prices_500k_ms", all);
    report.figure(Figure::new("offers_to_prices_500k_ms", ms, Unit::Ms).bar(15.0));
    for (part, samples) in ["change", "index", "prices"].into_iter().zip(parts) {
        let metric = format!("offers_to_prices_500k_{part}_ms");
        let value = report.samples(&metric, samples);
        report.figure(Figure::new(metric, value, Unit::Ms));
    }
    Ok(())
}

/// A market too large for its time: what a deadline of two seconds takes in all.
fn deadline(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let (asset_count, offer_count, ms) = if config.is_full { (4_000, 20_000, 2_000) } else { (200, 1_000, 20) };
    eprintln!("{asset_count} assets, {offer_count} offers, a deadline of {ms} ms");
    let model = Model { asset_count, offer_count, variant: Variant::Default, shape: Shape::EvenCycles };
    let market = BatchMarket::build(asset_count, &sells_of(&families::made(model, 0).offers, &mut 0)?, &[], Vec::new())?;
    let settings = settings()?;
    let mut times = Vec::new();
    for _ in 0..config.rounds {
        let begun = Instant::now();
        let deadline = Some(Deadline::At(begun + Duration::from_millis(ms)));
        // The core has checked what comes back.
        clear(&market, &Settings { budget: Budget { deadline, ..settings.budget }, ..settings })?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let ms = report.samples("deadline_2s_4000_assets_ms", times);
    report.check("what a deadline of two seconds left of 4,000 assets and 20,000 offers was verified by the core");
    report.figure(Figure::new("deadline_2s_4000_assets_ms", ms, Unit::Ms).bar(2_500.0));
    Ok(())
}

fn settings() -> anyhow::Result<Settings<'static>> {
    let commission = Commission::new(15).context("an exponent within 1 and 30")?;
    Ok(Settings::new(commission, Mu::new(10).context("an exponent within 1 and 30")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_has_every_figure() {
        let mut report = Report::begin("batch");
        run(&Config { rounds: 2, is_full: false }, &mut report).unwrap();
        let value = |name: &str| report.figures().iter().find(|figure| figure.metric == name).unwrap().value;
        assert!(value("families_failed") < 1.0 && value("worse_than_tatonnement") < 1.0);
        assert!(value("markets_tried") > 50.0 && value("worst_solve_ms") > 0.0 && value("dense_1000_assets_ms") > 0.0);
        assert!(value("offers_to_prices_500k_ms") > 0.0 && value("deadline_2s_4000_assets_ms") > 0.0);
    }
}
