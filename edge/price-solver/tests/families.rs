//! Markets that are hard to price: every family of them, and those that a search found.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use walras_price_solver::climb::{climb, parse};
use walras_price_solver::demand::DemandIndex;
use walras_price_solver::families::{Family, FamilyMarket};
use walras_price_solver::random::Random;
use walras_price_solver::solve::{Accuracy, Outcome, Portfolio, PriceSolver, Problem, Solution};

#[path = "oracle/mod.rs"]
mod oracle;

const ACCURACIES: [(i32, i32); 4] = [(15, 10), (10, 10), (15, 15), (20, 15)];
const SEEDS: u64 = 6;
/// Most queries of a search: each costs a pass over the offers and a solve at most.
const QUERIES_MAX: u64 = 3_000;

fn solve(market: &FamilyMarket, (eps_bits, mu_bits): (i32, i32)) -> Solution {
    let index = DemandIndex::from_offers(market.asset_count, &market.offers, Vec::new()).unwrap();
    Portfolio.solve(&Problem::cold(&index, Accuracy::bits(eps_bits, mu_bits)))
}

/// In every part of these markets there is a clearing: demand is continuous, and each asset is sold by somebody at a high enough
/// price. A judge that shares no code with the solver agrees with every one.
#[test]
fn every_family_clears() {
    for family in Family::ALL {
        for seed in 0..SEEDS {
            let market = family.market(seed);
            let (eps_bits, mu_bits) = ACCURACIES[seed as usize % ACCURACIES.len()];
            let solution = solve(&market, (eps_bits, mu_bits));
            assert!(solution.outcome < Outcome::Approximate, "{family:?} {seed} {eps_bits} {mu_bits}: {}", solution.worst_excess);
            assert!(solution.queries <= QUERIES_MAX, "{family:?} {seed}: {} queries", solution.queries);
            let (eps, mu) = ((-f64::from(eps_bits)).exp2(), (-f64::from(mu_bits)).exp2());
            assert!(oracle::is_clearing(&market, &solution.prices, eps, mu), "{family:?} {seed} {eps_bits} {mu_bits}");
        }
    }
}

/// What `make break` found once. The first lines of each file say why it was hard.
#[test]
fn what_was_found_clears() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/found");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "csv"));
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let market = parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let solution = solve(&market, (15, 10));
        assert!(solution.outcome < Outcome::Approximate, "{}: {}", path.display(), solution.worst_excess);
        assert!(oracle::is_clearing(&market, &solution.prices, (-15_f64).exp2(), (-10_f64).exp2()), "{}", path.display());
    }
}

/// Hills of the bounded search: `make break` climbs others for as long as it is let.
const HILLS: u64 = 12;
const TRIALS_PER_HILL: u64 = 120;

/// A search for markets without prices, from fixed seeds: what it makes harder still clears.
#[test]
fn a_bounded_climb_breaks_nothing() {
    let (mut tried, mut risen) = (0, 0);
    for hill in 0..HILLS {
        let random = &mut Random::new(hill);
        let (family, market) = std::iter::repeat_with(|| small_of(random)).flatten().next().unwrap();
        let first = solve(&market, (15, 10)).queries;
        let mut left = TRIALS_PER_HILL;
        let climbed = climb(market, random, &queries, || {
            left = left.saturating_sub(1);
            left > 0
        });
        tried += climbed.tried;
        let found = format!("{family:?}, hill {hill}, {} offers", climbed.harder.offers.len());
        let queries = climbed.hardness.unwrap_or_else(|| panic!("no prices: {found}: {:?}", climbed.harder.offers));
        assert!(queries <= QUERIES_MAX, "{found}: {queries} queries");
        let prices = solve(&climbed.harder, (15, 10)).prices;
        assert!(oracle::is_clearing(&climbed.harder, &prices, (-15_f64).exp2(), (-10_f64).exp2()), "{found}");
        risen += u64::from(queries > first);
    }
    assert!(tried >= 50 * HILLS && risen >= HILLS / 2, "{tried} trials, {risen} hills were climbed at all");
}

/// The queries of a search, or none if it found no prices that clear.
fn queries(market: &FamilyMarket) -> Option<u64> {
    let solution = solve(market, (15, 10));
    (solution.outcome != Outcome::Approximate).then_some(solution.queries)
}

fn small_of(random: &mut Random) -> Option<(Family, FamilyMarket)> {
    let family = Family::ALL[random.below(Family::ALL.len())];
    Some((family, family.market(random.bits()))).filter(|(_, market)| market.offers.len() <= 120)
}

/// The judge says no to prices that clear nothing.
#[test]
fn the_judge_refuses_prices_that_do_not_clear() {
    for family in [Family::Pareto10, Family::TenWhales, Family::Ring] {
        let market = family.market(0);
        let solution = solve(&market, (15, 10));
        let verdict = |factor: f64| {
            let mut prices = solution.prices.clone();
            prices[0] = prices[0].map(|price| price * factor);
            oracle::is_clearing(&market, &prices, (-15_f64).exp2(), (-10_f64).exp2())
        };
        assert!(verdict(1.0) && !verdict(1.1) && !verdict(0.9), "{family:?}");
    }
}
