//! Where prices exist, the solver finds them: an independent convex program looks for prices of small markets of every family.
#![allow(clippy::unwrap_used, reason = "the helpers of a test")]

use walras_price_solver::demand::DemandIndex;
use walras_price_solver::families::{Family, FamilyMarket};
use walras_price_solver::random::Random;
use walras_price_solver::solve::{Accuracy, Outcome, Portfolio, PriceSolver, Problem, Solution};
use walras_price_solver::synthetic::Offer;

#[path = "oracle/convex.rs"]
mod convex;
#[path = "oracle/mod.rs"]
mod oracle;

/// What the convex program can do in little time.
const ASSETS_MAX: usize = 8;
const SEEDS: u64 = 12;
const ACCURACIES: [(i32, i32); 4] = [(15, 10), (10, 10), (15, 15), (20, 15)];

fn solve(market: &FamilyMarket, (eps_bits, mu_bits): (i32, i32)) -> Solution {
    let index = DemandIndex::from_offers(market.asset_count, &market.offers, Vec::new()).unwrap();
    Portfolio.solve(&Problem::cold(&index, Accuracy::bits(eps_bits, mu_bits)))
}

fn shares((eps_bits, mu_bits): (i32, i32)) -> (f64, f64) {
    ((-f64::from(eps_bits)).exp2(), (-f64::from(mu_bits)).exp2())
}

/// The offers among a few assets that lead to each other, numbered from 0. Around the largest offer at even seeds, so that whales are
/// in; around the first one at odd seeds.
fn scaled_down(market: &FamilyMarket, seed: u64) -> Option<FamilyMarket> {
    let first = match seed % 2 {
        0 => market.offers.iter().max_by(|a, b| a.amount.total_cmp(&b.amount))?,
        _ => &market.offers[0],
    };
    let mut chosen = vec![first.sell, first.buy];
    while chosen.len() < ASSETS_MAX {
        let mut ties = vec![0; market.asset_count];
        for Offer { sell, buy, .. } in &market.offers {
            match (chosen.contains(sell), chosen.contains(buy)) {
                (true, false) => ties[*buy] += 1,
                (false, true) => ties[*sell] += 1,
                _ => {}
            }
        }
        let Some(next) = (0..ties.len()).filter(|&asset| ties[asset] > 0).max_by_key(|&asset| (ties[asset], asset)) else { break };
        chosen.push(next);
    }
    let together = strongly_connected(market, &chosen);
    let name = |asset| together.iter().position(|&other| other == asset);
    let named = |offer: &Offer| Some(Offer { sell: name(offer.sell)?, buy: name(offer.buy)?, ..*offer });
    let offers = market.offers.iter().filter_map(named).collect();
    (together.len() >= 2).then_some(FamilyMarket { asset_count: together.len(), offers })
}

/// The most of the chosen assets that lead to each other by offers among them: only they can all have prices.
fn strongly_connected(market: &FamilyMarket, chosen: &[usize]) -> Vec<usize> {
    let n = market.asset_count;
    let mut leads = vec![vec![false; n]; n];
    for offer in market.offers.iter().filter(|offer| chosen.contains(&offer.sell) && chosen.contains(&offer.buy)) {
        leads[offer.sell][offer.buy] = true;
    }
    for &via in chosen {
        for &from in chosen {
            for &to in chosen {
                leads[from][to] |= leads[from][via] && leads[via][to];
            }
        }
    }
    let of = |&asset: &usize| chosen.iter().copied().filter(|&other| leads[asset][other] && leads[other][asset]).collect();
    chosen.iter().map(of).max_by_key(Vec::len).unwrap_or_default()
}

/// The markets of a run: family, seed, accuracy.
fn markets() -> impl Iterator<Item = (String, FamilyMarket, (i32, i32))> {
    Family::ALL.into_iter().flat_map(|family| {
        (0..SEEDS).filter_map(move |seed| {
            let bits = ACCURACIES[(seed / 2) as usize % ACCURACIES.len()];
            Some((format!("{family:?} {seed} at {bits:?}"), scaled_down(&family.market(seed), seed)?, bits))
        })
    })
}

/// Where the convex program finds prices at which amounts within the rules exist, the solver does, too. In these markets that is
/// everywhere, so neither may fail.
#[test]
fn what_has_a_clearing_is_cleared() {
    let mut tried = 0;
    for (name, market, bits) in markets() {
        let (eps, mu) = shares(bits);
        let exists = convex::clearing(&market, eps, mu);
        assert!(exists.is_some(), "{name}: the convex program finds no prices of {} offers", market.offers.len());
        let solution = solve(&market, bits);
        assert!(solution.outcome < Outcome::Approximate, "{name}: prices exist; excess {}", solution.worst_excess);
        assert!(oracle::is_clearing(&market, &solution.prices, eps, mu), "{name}");
        tried += 1;
    }
    println!("{tried} markets");
    assert!(tried >= 250, "{tried}: most families have small markets in them");
}

/// Rates of pairs that have offers may differ by this share, that of the commission, between two searches for the same market.
const RATES_APART: f64 = 1.0 / (1_u64 << 20) as f64;

/// In markets with many offers about the rate of each pair, prices are determined up to their unit: two searches that share nothing find
/// the same.
#[test]
fn both_find_the_same_prices() {
    let bits = (20, 10);
    let (_, mu) = shares(bits);
    let (mut compared, mut widest) = (0, 0.0_f64);
    for family in [Family::Pareto10, Family::Pareto12, Family::Pareto15, Family::HubsWithTails, Family::DisconnectedParts] {
        for seed in (1..60).step_by(2) {
            let Some(market) = scaled_down(&family.market(seed), seed).filter(|market| market.offers.len() >= 60) else { continue };
            let solution = solve(&market, bits);
            if solution.outcome > Outcome::Cleared {
                continue;
            }
            let own = convex::smoothed_clearing(&market, 1e-8, mu).unwrap();
            for offer in &market.offers {
                let rate = solution.prices[offer.sell].unwrap() / solution.prices[offer.buy].unwrap();
                let apart = (rate * own[offer.buy] / own[offer.sell]).ln().abs();
                widest = widest.max(apart);
                assert!(apart < RATES_APART, "{family:?} {seed}: {apart} between {} and {}", offer.sell, offer.buy);
            }
            compared += 1;
        }
    }
    println!("{compared} markets, rates at most {widest:e} apart");
    assert!(compared >= 20, "{compared}");
}

/// What the program rests on: valued at clearing prices, the excess demand at any prices is worth at least nothing.
#[test]
fn clearing_prices_value_every_excess_demand_at_least_at_nothing() {
    let (mu, random) = (shares((15, 10)).1, &mut Random::new(5));
    let mut positive = 0;
    for family in [Family::Pareto12, Family::Ring, Family::MarketOrders, Family::Ties, Family::Scattered] {
        let market = scaled_down(&family.market(1), 1).unwrap();
        let clearing = convex::smoothed_clearing(&market, 1e-9, mu).unwrap();
        for round in 0..200 {
            let spread = [1e-3, 0.05, 3.0][round % 3];
            let prices: Vec<f64> = clearing.iter().map(|price| price * random.uniform(-spread, spread).exp()).collect();
            let (excess, worst) = convex::excess(&market, &prices, mu);
            let worth: Vec<f64> = excess.iter().zip(&clearing).map(|(units, price)| units * price).collect();
            let (sum, scale): (f64, f64) = (worth.iter().sum(), worth.iter().map(|worth| worth.abs()).sum());
            assert!(sum >= -1e-6 * scale.max(f64::MIN_POSITIVE), "{family:?} {round}: {sum} of {scale}, at an excess of {worst}");
            positive += u32::from(sum > 1e-3 * scale);
        }
    }
    assert!(positive > 300, "{positive}: excess demand is hardly ever worth anything");
}

fn offer(sell: usize, buy: usize, limit: f64, amount: f64) -> Offer {
    Offer { sell, buy, limit, amount }
}

/// The search can say no: an asset that is bought at any price and that nobody sells has no clearing price.
#[test]
fn where_there_are_no_prices_none_are_found() {
    let (eps, mu) = shares((15, 10));
    let both = [offer(0, 1, 0.5, 100.0), offer(1, 0, 0.5, 100.0)];
    let two = FamilyMarket { asset_count: 2, offers: both.to_vec() };
    assert!(convex::clearing(&two, eps, mu).is_some());
    let bought_only = FamilyMarket { asset_count: 3, offers: [&both[..], &[offer(0, 2, 0.0, 10.0)]].concat() };
    assert_eq!(convex::clearing(&bought_only, eps, mu), None);
    // The solver gives that asset no price, and trades the others.
    let solution = solve(&bought_only, (15, 10));
    assert!(solution.prices[2].is_none() && solution.outcome < Outcome::Approximate);
    // An offer that sells a little of it makes prices possible.
    let sold = FamilyMarket { asset_count: 3, offers: [&bought_only.offers[..], &[offer(2, 1, 1e-6, 1.0)]].concat() };
    let prices = convex::clearing(&sold, eps, mu).unwrap();
    assert!(oracle::is_clearing(&sold, &prices.into_iter().map(Some).collect::<Vec<_>>(), eps, mu));
}
