//! Every family of hard markets, solved and judged: `cargo run --release -p walras-price-solver --example families -- [SEEDS]
//! [FAMILY ...]`.
//!
//! With the family `large`: markets of a thousand and of four thousand assets.
//!
//! Per family: markets, how many no prices were found for, the median and the worst time of a solve, the most queries.

use std::time::Instant;

use walras_price_solver::demand::DemandIndex;
use walras_price_solver::families::{self, Family};
use walras_price_solver::solve::{Accuracy, Outcome, Portfolio, PriceSolver, Problem, Tatonnement};
use walras_price_solver::synthetic::{Model, Shape, Variant};

const ACCURACIES: [(i32, i32); 4] = [(10, 10), (15, 10), (15, 15), (20, 15)];

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let seeds: u64 = arguments.next().map_or(Ok(20), |seeds| seeds.parse())?;
    let wanted: Vec<String> = arguments.collect();
    if wanted == ["large"] {
        return large();
    }
    let (mut markets, mut failed, mut worse, mut slowest) = (0, 0, 0, 0.0f64);
    println!("family               markets  failed  median ms   max ms  max queries");
    for family in Family::ALL {
        let name = format!("{family:?}");
        if !wanted.is_empty() && !wanted.contains(&name) {
            continue;
        }
        let (mut times, mut failures, mut queries) = (Vec::new(), Vec::new(), 0);
        for seed in 0..seeds {
            let market = family.market(seed);
            let index = DemandIndex::from_offers(market.asset_count, &market.offers, Vec::new())?;
            let (eps_bits, mu_bits) = ACCURACIES[if seed % 2 == 0 { 1 } else { seed as usize / 2 % 4 }];
            let problem = Problem::cold(&index, Accuracy::bits(eps_bits, mu_bits));
            let begun = Instant::now();
            let solution = Portfolio.solve(&problem);
            times.push(begun.elapsed().as_secs_f64() * 1e3);
            queries = queries.max(solution.queries);
            if solution.outcome == Outcome::Approximate {
                failures.push((seed, (eps_bits, mu_bits), solution.worst_excess));
                let tatonnement = Tatonnement::default().solve(&problem);
                worse += usize::from(tatonnement.outcome < solution.outcome || tatonnement.worst_excess < solution.worst_excess);
            }
        }
        times.sort_by(f64::total_cmp);
        let max = times.last().copied().unwrap_or(0.0);
        println!("{name:20} {:7} {:7} {:10.2} {max:8.2} {queries:12}", times.len(), failures.len(), times[times.len() / 2]);
        failures.iter().take(3).for_each(|(seed, bits, excess)| println!("    seed {seed} at {bits:?}: excess {excess:.3e}"));
        markets += times.len();
        failed += failures.len();
        slowest = slowest.max(max);
    }
    println!("{markets} markets, {failed} failed, {worse} of them worse than tatonnement, slowest {slowest:.1} ms");
    Ok(())
}

fn large() -> anyhow::Result<()> {
    let sparse = |asset_count, offer_count| {
        families::made(Model { asset_count, offer_count, variant: Variant::Default, shape: Shape::EvenCycles }, 0)
    };
    let markets = [
        ("1,000 assets, dense", families::dense(1_000, 0)),
        ("1,000 assets, 5,000 offers", sparse(1_000, 5_000)),
        ("4,000 assets, 20,000 offers", sparse(4_000, 20_000)),
    ];
    for (name, market) in markets {
        let index = DemandIndex::from_offers(market.asset_count, &market.offers, Vec::new())?;
        let begun = Instant::now();
        let solution = Portfolio.solve(&Problem::cold(&index, Accuracy::bits(15, 10)));
        let ms = begun.elapsed().as_secs_f64() * 1e3;
        println!("{name}: {:?} in {ms:.0} ms, {} queries, {} blocks", solution.outcome, solution.queries, solution.blocks);
    }
    Ok(())
}
