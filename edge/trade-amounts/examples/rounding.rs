//! What rounding to whole units gives up: `cargo run --release -p walras-trade-amounts --example rounding`.
//!
//! Each row: made markets near their equilibrium in which units are worth up to 2^u (an offer 30,000), with how many the plan had to lower
//! lower bounds, how many pairs sell less than they should, how many markets lost an asset, repair steps per market, and the share of the
//! planned value that was given up at worst and in the mean.

use walras_clearing::{Edition, LowerBounds, Rules, verify};
use walras_trade_amounts::synthetic::market_near_equilibrium;
use walras_trade_amounts::{AmountsFinder, Proposed, Relaxed, propose};
use walras_types::{Commission, Mu};

fn main() {
    println!("assets  offers  eps   u | markets relaxed zeroed below/market lost steps/market  worst   mean    us");
    for (node_count, offer_count, trials) in
        [(5, 20, 200), (5, 500, 200), (20, 400, 100), (20, 5_000, 100), (50, 2_450, 10), (50, 100_000, 10)]
    {
        for eps in [0, 15, 20] {
            for unit_worth in [-10, 0, 10, 20] {
                row(node_count, offer_count, eps, unit_worth, trials);
            }
        }
    }
}

fn row(node_count: u16, offer_count: u64, eps: u8, unit_worth: i32, trials: u64) {
    let rules = Rules {
        edition: Edition::NEWEST,
        commission: Commission::new(eps).unwrap_or(Commission::NONE),
        mu: Mu::new(10).expect("within 1 and 30"),
        lower_bounds: LowerBounds::BestEffort,
    };
    let mut finder = AmountsFinder::new();
    let (mut relaxed, mut zeroed, mut below, mut lost, mut steps) = (0, 0, 0, 0, 0);
    let (mut worst, mut sum, mut us) = (0.0_f64, 0.0, 0.0);
    for seed in 0..trials {
        let (market, prices) = market_near_equilibrium(node_count, offer_count, 10, unit_worth, seed);
        let start = std::time::Instant::now();
        let Proposed { proposal, amounts, .. } = propose(&mut finder, &market, &prices, &rules);
        us += start.elapsed().as_secs_f64() * 1e6;
        verify(&market, &proposal, &rules).expect("proposals are accepted");
        below += amounts.below_lower_count;
        for part in &amounts.parts {
            relaxed += u32::from(part.relaxed != Relaxed::No);
            zeroed += u32::from(matches!(part.relaxed, Relaxed::Dropped { .. }));
            lost += usize::from(!part.assets_removed.is_empty());
            steps += part.repair_count;
            let share = part.given_up as f64 / part.planned.max(1) as f64;
            (worst, sum) = (worst.max(share), sum + share);
        }
    }
    let each = |total: f64| total / trials as f64;
    println!(
        "{node_count:6} {offer_count:7} {eps:4} {unit_worth:3} | {trials:7} {relaxed:7} {zeroed:6} {:12.1} {lost:4} {:12.2} {worst:6.0e} {:6.0e} {:5.0}",
        each(below as f64),
        each(steps as f64),
        each(sum),
        each(us)
    );
}
