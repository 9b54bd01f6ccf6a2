//! Whether volumes of the block before help tatonnement: `cargo run --release -p walras-price-solver --example volumes -- [SEEDS]`.
//!
//! Twenty blocks follow each other; a tenth of the offers changes from one to the next. Each is searched by one instance that weighs
//! nothing, one that weighs by the volumes at the present prices, and one that weighs by those of the block before; from the last
//! block's prices, and from flat ones. A table of the mean number of queries, and of searches without prices.

use anyhow::Context;
use walras_price_solver::Demand;
use walras_price_solver::demand::{DemandIndex, Window};
use walras_price_solver::random::Random;
use walras_price_solver::solve::{
    Accuracy, Budget, Instance, Outcome, Portfolio, PriceSolver, Problem, Solution, Tatonnement, Weights,
};
use walras_price_solver::synthetic::{MadeBatch, Model, Offer, Shape, Variant};

const BLOCKS: usize = 20;
const ASSETS: usize = 20;
const OFFERS: usize = 5_000;
/// Of a search; then it counts as one without prices.
const QUERIES_MAX: u64 = 20_000;
const STEP_MIN: f64 = 1.0 / (1_u64 << 17) as f64;

fn main() -> anyhow::Result<()> {
    let seeds: u64 = std::env::args().nth(1).map_or(Ok(3), |text| text.parse()).context("SEEDS is a number")?;
    println!(
        "| offers | start | alike | volumes now | volumes of the block before | portfolio |\n| --- | --- | --- | --- | --- | --- |"
    );
    for variant in [Variant::Default, Variant::UnevenVolumes, Variant::SomeLarge] {
        for is_warm in [true, false] {
            let mut sums = [(0_u64, 0_u64); 4];
            for seed in 0..seeds {
                blocks(variant, seed, is_warm, &mut sums)?;
            }
            let start = if is_warm { "last prices" } else { "flat" };
            let count = seeds * (BLOCKS as u64 - 1);
            let cells = sums.map(|(queries, failed)| format!("{} ({failed})", queries / count)).join(" | ");
            println!("| {variant:?} | {start} | {cells} |");
        }
    }
    Ok(())
}

fn blocks(variant: Variant, seed: u64, is_warm: bool, sums: &mut [(u64, u64); 4]) -> anyhow::Result<()> {
    let model = Model { asset_count: ASSETS, offer_count: OFFERS, variant, shape: Shape::Cycles };
    let (mut made, mut random) = (MadeBatch::new(model, seed), Random::new(seed));
    let mut standing = made.offers.clone();
    let mut last: Option<(Vec<f64>, Vec<f64>)> = None;
    for _ in 0..BLOCKS {
        let index = DemandIndex::from_offers(ASSETS, &standing, Vec::new())?;
        let start = last.as_ref().filter(|_| is_warm).map(|(prices, _)| &prices[..]);
        let problem = Problem { start, budget: Budget::queries(QUERIES_MAX), ..Problem::cold(&index, Accuracy::bits(15, 10)) };
        let best = Portfolio.solve(&problem);
        if let Some((_, volumes)) = &last {
            for (sum, weights) in sums.iter_mut().zip([Weights::Alike, Weights::Volumes, Weights::VolumesBefore]) {
                let instances = vec![Instance { step_min: STEP_MIN, weights }];
                count(sum, &Tatonnement { instances, volumes: volumes.clone() }.solve(&problem));
            }
            count(&mut sums[3], &best);
        }
        let prices: Vec<f64> = best.prices.iter().map(|price| price.unwrap_or(1.0)).collect();
        let mut demand = Demand::new(ASSETS);
        index.demand(&prices, Window::of_mu(1.0 / 1024.0), &mut demand);
        let volumes = demand.sold.iter().zip(&demand.bought).map(|(&sold, &bought)| sold.min(bought)).collect();
        last = Some((prices, volumes));
        change(&mut standing, &mut made, &mut random);
    }
    Ok(())
}

fn count((queries, failed): &mut (u64, u64), solution: &Solution) {
    *queries += solution.queries;
    *failed += u64::from(solution.outcome == Outcome::Approximate);
}

/// A tenth of the offers goes, as many come.
fn change(standing: &mut Vec<Offer>, made: &mut MadeBatch, random: &mut Random) {
    standing.retain(|_| random.below(10) > 0);
    made.next_of(OFFERS - standing.len());
    standing.extend_from_slice(&made.offers);
}
