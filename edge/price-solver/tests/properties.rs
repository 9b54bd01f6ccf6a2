//! What holds of every solver on every market: naive models beside the index, invariances, exact answers, bad input.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use proptest::prelude::*;
use walras_price_solver::Demand;
use walras_price_solver::demand::{DemandIndex, IndexError, Window};
use walras_price_solver::pool::{ConstantProduct, Pool, Side, TradingRule};
use walras_price_solver::real_days::RealDays;
use walras_price_solver::solve::{
    Accuracy, Budget, Deadline, Newton, Outcome, Portfolio, PriceSolver, Problem, Solution, Tatonnement,
};
use walras_price_solver::synthetic::{MadeBatch, Model, Offer, Shape, Variant};

fn offer(sell: usize, buy: usize, limit: f64, amount: f64) -> Offer {
    Offer { sell, buy, limit, amount }
}

fn index(asset_count: usize, offers: &[Offer]) -> DemandIndex {
    DemandIndex::from_offers(asset_count, offers, Vec::new()).unwrap()
}

fn clear(asset_count: usize, offers: &[Offer], accuracy: Accuracy) -> Solution {
    let solution = Portfolio.solve(&Problem::cold(&index(asset_count, offers), accuracy));
    check_sound(&solution);
    solution
}

fn check_sound(solution: &Solution) {
    assert!(solution.prices.iter().flatten().all(|price| price.is_finite() && *price > 0.0), "{solution:?}");
    assert!((0.0..=1.0).contains(&solution.worst_excess), "{solution:?}");
}

/// Offer by offer, as SPEEDEX 2023, Appendix C.2 has it.
fn naive_demand(asset_count: usize, offers: &[Offer], prices: &[f64], window: Window) -> Demand {
    let mut demand = Demand::new(asset_count);
    for offer in offers {
        let rate = prices[offer.sell] / prices[offer.buy];
        let share = ((window.high() * rate - offer.limit) / ((window.high() - window.low()) * rate)).clamp(0.0, 1.0);
        let value = prices[offer.sell] * offer.amount * share;
        demand.sold[offer.sell] += value;
        demand.bought[offer.buy] += value;
    }
    demand
}

fn any_offers(asset_count: usize, count: usize) -> impl Strategy<Value = Vec<Offer>> {
    let one = (0..asset_count, 1..asset_count, -0.1f64..0.1, 0u32..40, prop::bool::weighted(0.05));
    prop::collection::vec(one, 1..count).prop_map(move |all| {
        let made = all.into_iter().map(|(sell, step, log, amount, market)| {
            let limit = if market { 0.0 } else { (log * 64.0).round().exp2().sqrt().sqrt() };
            offer(sell, (sell + step) % asset_count, limit, f64::from(amount + 1))
        });
        made.collect()
    })
}

proptest! {
    #[test]
    fn the_index_answers_like_a_loop_over_all_offers(
        offers in any_offers(4, 1200),
        logs in prop::collection::vec(-3.0f64..3.0, 4),
        width in prop_oneof![Just(0.0), 0.0f64..2.0],
        mu_bits in 1i32..20,
    ) {
        let prices: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
        let window = Window::widened((-f64::from(mu_bits)).exp2(), width);
        let naive = naive_demand(4, &offers, &prices, window);
        let mut demand = Demand::new(4);
        index(4, &offers).demand(&prices, window, &mut demand);
        let total: f64 = naive.sold.iter().sum::<f64>() + 1.0;
        // Cancellation within a window of relative width mu costs its bits.
        let tolerance = 1e-13 * f64::from(mu_bits).exp2() * total;
        for asset in 0..4 {
            prop_assert!((naive.sold[asset] - demand.sold[asset]).abs() <= tolerance, "{naive:?} {demand:?}");
            prop_assert!((naive.bought[asset] - demand.bought[asset]).abs() <= tolerance);
        }
        // Scaling all prices scales all values: row by row, slopes add up to minus the excess.
        for asset in 0..4 {
            let row: f64 = (0..4).map(|other| demand.slopes[asset * 4 + other]).sum();
            let column: f64 = (0..4).map(|other| demand.slopes[other * 4 + asset]).sum();
            let excess = demand.bought[asset] - demand.sold[asset];
            prop_assert!((row - column - excess).abs() <= tolerance * 4.0 * f64::from(mu_bits).exp2(), "{row} {column} {excess}");
        }
    }

    #[test]
    fn small_markets_of_any_kind_clear(offers in any_offers(5, 60), eps_bits in 5i32..20, mu_bits in 5i32..16) {
        let solution = clear(5, &offers, Accuracy::bits(eps_bits, mu_bits));
        prop_assert!(solution.outcome < Outcome::Approximate, "{solution:?}");
        prop_assert!(solution.queries < 5_000, "{}", solution.queries);
    }

    #[test]
    fn the_order_of_offers_does_not_matter(offers in any_offers(4, 60), rotation in 0usize..60) {
        let mut other = offers.clone();
        other.rotate_left(rotation % offers.len());
        let accuracy = Accuracy::bits(15, 10);
        prop_assert_eq!(clear(4, &offers, accuracy), clear(4, &other, accuracy));
    }

    #[test]
    fn wild_numbers_end_in_prices(
        all in prop::collection::vec((0usize..4, 1usize..4, -100i32..=100, 0i32..=63), 1..40),
    ) {
        let offers: Vec<Offer> = all
            .into_iter()
            .map(|(sell, step, limit, amount)| offer(sell, (sell + step) % 4, f64::from(limit).exp2(), f64::from(amount).exp2()))
            .collect();
        let problem_index = index(4, &offers);
        let problem = Problem { budget: Budget::queries(2_000), ..Problem::cold(&problem_index, Accuracy::bits(15, 10)) };
        for solver in [&Portfolio as &dyn PriceSolver, &Newton, &Tatonnement::default()] {
            let solution = solver.solve(&problem);
            check_sound(&solution);
            prop_assert!(solution.queries < 2_500, "{} {}", solver.name(), solution.queries);
        }
    }
}

fn dense(seed: u64) -> MadeBatch {
    MadeBatch::new(Model { asset_count: 8, offer_count: 20_000, variant: Variant::Default, shape: Shape::EvenCycles }, seed)
}

fn assert_same_rates(a: &[Option<f64>], b: &[Option<f64>], tolerance: f64) {
    for ((a0, b0), (a1, b1)) in a.iter().zip(b).zip(a.iter().zip(b).skip(1)) {
        let (one, other) = (a0.unwrap() / a1.unwrap(), b0.unwrap() / b1.unwrap());
        assert!((one / other - 1.0).abs() < tolerance, "{one} {other}");
    }
}

#[test]
fn the_solvers_agree() {
    let batch = dense(1);
    let index = index(8, &batch.offers);
    let problem = Problem::cold(&index, Accuracy::bits(20, 10));
    let reference = Portfolio.solve(&problem);
    assert_eq!(reference.outcome, Outcome::Cleared);
    for solver in [&Newton as &dyn PriceSolver, &Tatonnement::default()] {
        let solution = solver.solve(&problem);
        assert_eq!(solution.outcome, Outcome::Cleared, "{}", solver.name());
        assert_same_rates(&reference.prices, &solution.prices, 1e-4);
    }
    // What they call cleared is so, offer by offer.
    let prices: Vec<f64> = reference.prices.iter().map(|price| price.unwrap()).collect();
    let demand = naive_demand(8, &batch.offers, &prices, Window::of_mu((-10f64).exp2()));
    assert!(demand.sold.iter().zip(&demand.bought).all(|(sold, bought)| bought * (1.0 - (-20f64).exp2()) <= sold * (1.0 + 1e-12)));
}

#[test]
fn names_and_units_of_assets_do_not_matter() {
    let batch = dense(2);
    let accuracy = Accuracy::bits(30, 10);
    let plain = clear(8, &batch.offers, accuracy);
    assert_eq!(plain.outcome, Outcome::Cleared);
    let name = |asset: usize| (asset * 3 + 5) % 8;
    let renamed: Vec<Offer> = batch.offers.iter().map(|o| Offer { sell: name(o.sell), buy: name(o.buy), ..*o }).collect();
    let solution = clear(8, &renamed, accuracy);
    let back: Vec<Option<f64>> = (0..8).map(|asset| solution.prices[name(asset)]).collect();
    assert_same_rates(&plain.prices, &back, 1e-6);
    // A unit of asset 2 becomes 2^40 smaller ones, one of asset 5 becomes 7 times as large.
    let unit = |asset: usize| [1.0, 1.0, (40f64).exp2(), 1.0, 1.0, 1.0 / 7.0, 1.0, 1.0][asset];
    let redenominated: Vec<Offer> = batch
        .offers
        .iter()
        .map(|o| Offer { limit: o.limit * unit(o.buy) / unit(o.sell), amount: o.amount * unit(o.sell), ..*o })
        .collect();
    let solution = clear(8, &redenominated, accuracy);
    let back: Vec<Option<f64>> = (0..8).map(|asset| solution.prices[asset].map(|price| price * unit(asset))).collect();
    assert_same_rates(&plain.prices, &back, 1e-6);
}

#[test]
fn tiny_markets_have_their_exact_prices() {
    let accuracy = Accuracy::bits(30, 20);
    let rate = |solution: &Solution, a: usize, b: usize| solution.prices[a].unwrap() / solution.prices[b].unwrap();
    // All in the money: 100 of one asset for 50 of the other.
    let solution = clear(2, &[offer(0, 1, 0.1, 100.0), offer(1, 0, 0.1, 50.0)], accuracy);
    assert!((rate(&solution, 0, 1) - 0.5).abs() < 1e-9, "{solution:?}");
    // SPEEDEX 2021, Example F.1: only 1 can balance 100.
    let solution = clear(2, &[offer(0, 1, 1.0, 100.0), offer(1, 0, 1.0, 1.0)], accuracy);
    assert_eq!(solution.outcome, Outcome::Cleared);
    assert!((rate(&solution, 0, 1) - 1.0).abs() < 2e-6, "{solution:?}");
    // A cycle of three, market orders all, amounts 1, 2, 4: values must be equal.
    let cycle = [offer(0, 1, 0.0, 1.0), offer(1, 2, 0.0, 2.0), offer(2, 0, 0.0, 4.0)];
    let solution = clear(3, &cycle, accuracy);
    assert_eq!(solution.outcome, Outcome::Cleared);
    assert!((rate(&solution, 0, 1) - 2.0).abs() < 1e-9 && (rate(&solution, 1, 2) - 2.0).abs() < 1e-9, "{solution:?}");
    // Two sellers of asset 0 at 3 and 5 against 4 units' worth: the first sells all, the second is marginal.
    let offers = [offer(0, 1, 3.0, 1.0), offer(0, 1, 5.0, 1.0), offer(1, 0, 0.01, 7.0)];
    let solution = clear(2, &offers, accuracy);
    assert!((rate(&solution, 0, 1) - 5.0).abs() < 1e-4, "{solution:?}");
    // Nothing trades between 1/2 and 2: the middle.
    let solution = clear(2, &[offer(0, 1, 2.0, 1.0), offer(1, 0, 2.0, 1.0)], accuracy);
    assert!((rate(&solution, 0, 1) - 1.0).abs() < 1e-6, "{solution:?}");
}

#[test]
fn what_cannot_trade_has_no_price_or_no_effect() {
    let accuracy = Accuracy::bits(15, 10);
    // One offer alone; nobody sells back.
    let solution = clear(3, &[offer(0, 1, 1.0, 1.0)], accuracy);
    assert_eq!((solution.prices, solution.outcome, solution.blocks), (vec![None; 3], Outcome::Cleared, 0));
    // No offer, no asset.
    assert_eq!(clear(0, &[], accuracy).prices, []);
    // Two parts that do not meet, and an asset that nobody wants.
    let mut offers = vec![offer(0, 1, 1.0, 5.0), offer(1, 0, 0.9, 5.0), offer(2, 3, 7.0, 5.0), offer(3, 2, 0.1, 50.0)];
    offers.push(offer(4, 0, 0.0, 1e9));
    let solution = clear(5, &offers, accuracy);
    assert_eq!(solution.outcome, Outcome::Cleared);
    assert_eq!(solution.blocks, 2);
    assert_eq!(solution.prices[4], None);
    assert!(solution.prices[..4].iter().all(Option::is_some));
    // All out of the money.
    let offers: Vec<Offer> = (0..4).flat_map(|a| (0..4).filter(move |&b| b != a).map(move |b| offer(a, b, 2.0, 1.0))).collect();
    let solution = clear(4, &offers, accuracy);
    assert_eq!((solution.outcome, solution.worst_excess), (Outcome::Cleared, 0.0));
    // Between two parts: what 0 and 1 want from 2 and 3 is out of the money at the combined prices.
    let one_way =
        [offer(0, 1, 1.0, 1.0), offer(1, 0, 1.0, 1.0), offer(2, 3, 1.0, 1.0), offer(3, 2, 1.0, 1.0), offer(0, 2, 1e-9, 1.0)];
    let prices = clear(4, &one_way, accuracy).prices;
    assert!(prices[0].unwrap() / prices[2].unwrap() < 1e-9);
}

/// Everyone wants to trade everything, with a little room; values of `value` each.
fn ring(valuations: &[f64], amount: impl Fn(usize) -> f64) -> Vec<Offer> {
    let mut offers = Vec::new();
    for (a, &value) in valuations.iter().enumerate() {
        for (b, &other) in valuations.iter().enumerate().filter(|&(b, _)| b != a) {
            offers.push(offer(a, b, value / other * 0.99, amount(a)));
            offers.push(offer(a, b, value / other * 0.995, 1.0));
            offers.push(offer(a, b, value / other * 1.02, amount(a)));
        }
    }
    offers
}

#[test]
fn extreme_amounts_and_rates_clear() {
    let accuracy = Accuracy::bits(15, 10);
    // Units from 2^-30 to 2^30, in amounts from 8 to 2^63.
    let valuations = [1.0, (30f64).exp2(), (-30f64).exp2(), 3.0];
    let offers = ring(&valuations, |asset| (33f64).exp2() / valuations[asset]);
    assert!(clear(4, &offers, accuracy).outcome < Outcome::Approximate);
    // The same, with one asset offered 2^30 times as much as anyone can pay for.
    let offers = ring(&valuations, |asset| if asset == 1 { (33f64).exp2() } else { (33f64).exp2() / valuations[asset] });
    assert!(clear(4, &offers, accuracy).outcome < Outcome::Approximate);
    // Rates over 2^200, all units alike in number: one asset's whole supply cannot pay for a unit of another. Prices, not clearing.
    let valuations = [1.0, (100f64).exp2(), (-100f64).exp2(), 3.0];
    clear(4, &ring(&valuations, |_| (63f64).exp2()), accuracy);
}

#[test]
fn an_error_says_which_offer_and_what_to_do() {
    let build = |offers: &[Offer]| DemandIndex::from_offers(2, offers, Vec::new()).unwrap_err();
    assert_eq!(build(&[offer(0, 2, 1.0, 1.0)]), IndexError::UnknownAsset { offer: 0, asset: 2, asset_count: 2 });
    assert_eq!(build(&[offer(0, 1, 1.0, 1.0), offer(1, 1, 1.0, 1.0)]), IndexError::SameAsset { offer: 1, asset: 1 });
    for limit in [-1.0, f64::INFINITY, f64::NAN] {
        assert!(build(&[offer(0, 1, limit, 1.0)]).to_string().contains("a limit is a finite number from 0 up"));
    }
    for amount in [0.0, -1.0, f64::INFINITY, f64::NAN] {
        assert!(build(&[offer(0, 1, 1.0, amount)]).to_string().contains("an amount is a finite number above 0"));
    }
    let pool = Pool::constant_product(1, 1, ConstantProduct::new([1.0, 1.0], 0.0).unwrap());
    assert!(DemandIndex::from_offers(2, &[], vec![pool]).unwrap_err().to_string().contains("two different assets"));
    let mut index = DemandIndex::empty(2, Vec::new()).unwrap();
    index.push_book(0, 1, &[(1.0, 1.0), (2.0, 1.0)]).unwrap();
    assert_eq!(index.push_book(1, 0, &[(1.0, 1.0), (1.0, 1.0)]), Err(IndexError::Limit { offer: 3, limit: 1.0 }));
}

#[test]
fn budgets_deadlines_and_cancelling_end_the_search() {
    let batch = MadeBatch::new(Model { asset_count: 20, offer_count: 500, variant: Variant::SomeLarge, shape: Shape::Cycles }, 3);
    let index = index(20, &batch.offers);
    let problem = Problem::cold(&index, Accuracy::bits(20, 15));
    for solver in [&Portfolio as &dyn PriceSolver, &Newton, &Tatonnement::default()] {
        for queries in [0, 1, 10] {
            let solution = solver.solve(&Problem { budget: Budget::queries(queries), ..problem });
            check_sound(&solution);
            assert!(solution.queries < queries + 30, "{} {}", solver.name(), solution.queries);
            assert_eq!(solution, solver.solve(&Problem { budget: Budget::queries(queries), ..problem }));
        }
        let cancelled = AtomicBool::new(true);
        let budget = Budget { cancel: Some(&cancelled), ..Budget::queries(u64::MAX) };
        assert!(solver.solve(&Problem { budget, ..problem }).queries < 30);
        let budget = Budget { deadline: Some(Deadline::At(Instant::now())), ..Budget::queries(u64::MAX) };
        assert!(solver.solve(&Problem { budget, ..problem }).queries < 30);
    }
    // A start of nonsense is a start of ones.
    let nonsense = [f64::NAN, 0.0, -1.0, f64::INFINITY];
    let solution = Portfolio.solve(&Problem { start: Some(&nonsense), ..problem });
    check_sound(&solution);
    assert!(solution.outcome < Outcome::Approximate);
}

#[test]
fn last_prices_help_where_they_are_near_and_cost_two_queries_where_they_are_not() {
    for seed in 0..5 {
        let batch =
            MadeBatch::new(Model { asset_count: 20, offer_count: 50_000, variant: Variant::Default, shape: Shape::Cycles }, seed);
        let index = index(20, &batch.offers);
        let problem = Problem::cold(&index, Accuracy::bits(15, 10));
        let cold = Portfolio.solve(&problem);
        let off = |factor: f64| -> Vec<f64> {
            let price = |(asset, price): (usize, &Option<f64>)| price.unwrap() * if asset % 2 == 0 { factor } else { 1.0 };
            cold.prices.iter().enumerate().map(price).collect()
        };
        let queries = |start: Vec<f64>| Portfolio.solve(&Problem { start: Some(&start), ..problem }).queries;
        assert!(queries(off(1.0)) < cold.queries && queries(off(1.001)) < cold.queries);
        assert_eq!([queries(off(1.2)), queries(off(1e9))], [cold.queries + 2; 2]);
    }
}

#[test]
fn a_callers_word_on_feasibility_is_taken() {
    let batch = MadeBatch::new(Model { asset_count: 20, offer_count: 500, variant: Variant::SomeLarge, shape: Shape::Cycles }, 3);
    let index = index(20, &batch.offers);
    let yes = |prices: &[Option<f64>]| prices.len() == 20;
    let problem = Problem { feasible: Some(&yes), ..Problem::cold(&index, Accuracy::bits(20, 15)) };
    let sooner = Portfolio.solve(&problem);
    assert_eq!(sooner.outcome, Outcome::ClearedWithinBounds);
    assert!(sooner.queries <= Portfolio.solve(&Problem { feasible: None, ..problem }).queries);
}

/// Sells in proportion to how far the rate exceeds its own: a rule that nobody has thought of.
#[derive(Debug)]
struct Eager;

impl TradingRule for Eager {
    fn supply(&self, side: Side, rate: f64) -> walras_price_solver::pool::Supply {
        let over = if side == Side::SellsFirst { rate - 1.0 } else { 0.0 };
        let room = over.clamp(0.0, 10.0);
        walras_price_solver::pool::Supply { amount: room, slope: if over > 0.0 && over < 10.0 { rate } else { 0.0 } }
    }

    fn resting_rate(&self, _side: Side) -> Option<f64> {
        Some(1.0)
    }
}

#[test]
fn pools_trade_beside_offers() {
    let accuracy = Accuracy::bits(30, 10);
    let pool = |first, second, reserves| Pool::constant_product(first, second, ConstantProduct::new(reserves, 0.003).unwrap());
    // A pool alone rests within its fee.
    let index = DemandIndex::from_offers(2, &[], vec![pool(0, 1, [1_000.0, 4_000.0])]).unwrap();
    let solution = Portfolio.solve(&Problem::cold(&index, accuracy));
    assert_eq!(solution.outcome, Outcome::Cleared);
    let rate = solution.prices[0].unwrap() / solution.prices[1].unwrap();
    assert!((rate / 4.0 - 1.0).abs() < 0.0031, "{rate}");
    // Three pools in a triangle and a market order of a tenth of a reserve: all prices move, nothing is left over.
    let pools = vec![pool(0, 1, [1e6, 1e6]), pool(1, 2, [1e6, 1e6]), pool(2, 0, [1e6, 1e6])];
    let index = DemandIndex::from_offers(3, &[offer(0, 1, 0.0, 1e5)], pools).unwrap();
    let solution = Portfolio.solve(&Problem::cold(&index, accuracy));
    assert_eq!(solution.outcome, Outcome::Cleared, "{solution:?}");
    let rate = solution.prices[0].unwrap() / solution.prices[1].unwrap();
    assert!((0.8..0.95).contains(&rate), "{rate}");
    // Any rule: 3 units wanted, sold in proportion to rate - 1, so the rate is where 3 of asset 1 buy rate - 1 of asset 0.
    let eager = Pool { first: 0, second: 1, rule: std::sync::Arc::new(Eager) };
    let index = DemandIndex::from_offers(2, &[offer(1, 0, 0.0, 6.0)], vec![eager]).unwrap();
    let solution = Portfolio.solve(&Problem::cold(&index, accuracy));
    let rate = solution.prices[0].unwrap() / solution.prices[1].unwrap();
    assert!((rate * (rate - 1.0) - 6.0).abs() < 1e-6, "{rate}");
}

#[test]
fn numeraires_and_stocks_come_apart() {
    let mut offers =
        MadeBatch::new(Model { asset_count: 4, offer_count: 400, variant: Variant::Default, shape: Shape::Cycles }, 0).offers;
    let stocks = 300;
    for stock in 0..stocks {
        let price = 1.0 + stock as f64;
        offers.push(offer(4 + stock, stock % 4, price * 0.99, 10.0));
        offers.push(offer(stock % 4, 4 + stock, 0.98 / price, 10.0 * price));
    }
    let solution = clear(4 + stocks, &offers, Accuracy::bits(15, 10));
    assert_eq!(solution.blocks, stocks + 1);
    assert!(solution.outcome < Outcome::Approximate);
    for stock in 0..stocks {
        let rate = solution.prices[4 + stock].unwrap() / solution.prices[stock % 4].unwrap();
        assert!((0.98..1.03).contains(&(rate / (1.0 + stock as f64))), "{stock}: {rate}");
    }
}

#[test]
fn every_variant_of_the_papers_model_clears() {
    for variant in Variant::ALL {
        for (asset_count, offer_count) in [(20, 60), (20, 500), (50, 500), (20, 5_000)] {
            let batch = MadeBatch::new(Model { asset_count, offer_count, variant, shape: Shape::EvenCycles }, 7);
            assert_eq!(batch.offers.len(), offer_count);
            for (eps_bits, mu_bits) in [(10, 10), (15, 10), (15, 15), (20, 15)] {
                let solution = clear(asset_count, &batch.offers, Accuracy::bits(eps_bits, mu_bits));
                assert!(solution.outcome < Outcome::Approximate, "{variant:?} {asset_count} {offer_count} {eps_bits} {mu_bits}");
            }
        }
    }
}

#[test]
fn days_of_real_prices_clear() {
    let root = std::env::var_os("WALRAS_DATA")
        .map_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data").into(), PathBuf::from);
    let Ok(folder) = std::fs::read_dir(root.join("coingecko")) else {
        eprintln!("skipped: days of real prices, for want of a folder `coingecko` in $WALRAS_DATA or ../shared/data");
        return;
    };
    let mut files: Vec<PathBuf> =
        folder.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "csv")).collect();
    files.sort();
    let texts: Vec<String> = files.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let days = RealDays::parse(texts.iter().map(String::as_str), 500).unwrap();
    for day in (0..500).step_by(50) {
        let solution = clear(days.asset_count(), &days.offers(day, 3_000, 1), Accuracy::bits(15, 10));
        assert!(solution.outcome < Outcome::Approximate, "day {day}: {solution:?}");
    }
}
