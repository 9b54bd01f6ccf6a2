//! Looks for markets that the solver does not price: `make break`, or `cargo run --release -p walras-price-solver --example break
//! -- [SECONDS] [SEED] [FOLDER]`.
//!
//! It climbs hills: from a market of a family it changes some offers at random, keeps what makes the search longer, and begins with
//! another market after a while. A market without prices is made smaller, as long as it has none, and written to the folder as
//! lines `sell,buy,limit,amount` for `tests/found`. The exit status is 1 if any was found.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use walras_price_solver::demand::DemandIndex;
use walras_price_solver::families::{Family, FamilyMarket};
use walras_price_solver::random::Random;
use walras_price_solver::solve::{Accuracy, Outcome, Portfolio, PriceSolver, Problem};
use walras_price_solver::synthetic::Offer;

/// Changes in vain after which another market is taken.
const FUTILE_MAX: u32 = 60;
/// Markets larger than this are climbed too slowly.
const OFFERS_MAX: usize = 600;
const AMOUNT_MAX: f64 = (1u64 << 62) as f64;

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments.next().map_or(Ok(60), |text| text.parse())?;
    let seed: u64 = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| "target/broken".to_owned()));
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut random = Random::new(seed);
    let (mut tried, mut found, mut hardest, mut climbs) = (0u64, 0u64, 0, 0u64);
    while Instant::now() < end {
        climbs += 1;
        let family = Family::ALL[random.below(Family::ALL.len())];
        let mut market = family.market(random.bits());
        if market.offers.len() > OFFERS_MAX {
            continue;
        }
        let (mut best, mut futile) = (trial(&market), 0);
        while futile < FUTILE_MAX && best.is_some() && Instant::now() < end {
            let mut changed = market.clone();
            change(&mut changed, &mut random);
            let queries = trial(&changed);
            tried += 1;
            let is_harder = queries.is_none_or(|queries| best.is_some_and(|best| queries > best));
            futile = if is_harder { 0 } else { futile + 1 };
            if queries.is_none() || queries >= best {
                (market, best) = (changed, queries);
            }
        }
        match best {
            Some(queries) => hardest = hardest.max(queries),
            None => {
                found += 1;
                shrink(&mut market, &mut random);
                std::fs::create_dir_all(&folder)?;
                let path = folder.join(format!("{family:?}-{seed}-{climbs}.csv"));
                std::fs::write(&path, text(&market))?;
                println!("found {}: {} offers of {} assets", path.display(), market.offers.len(), market.asset_count);
            }
        }
    }
    println!("{tried} markets on {climbs} hills, {found} without prices, the hardest other took {hardest} queries");
    Ok(if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The queries of a search, or none if it found no prices that clear.
fn trial(market: &FamilyMarket) -> Option<u64> {
    let index = DemandIndex::from_offers(market.asset_count, &market.offers, Vec::new()).expect("offers are changed to sound ones");
    let solution = Portfolio.solve(&Problem::cold(&index, Accuracy::bits(15, 10)));
    (solution.outcome != Outcome::Approximate).then_some(solution.queries)
}

fn change(market: &mut FamilyMarket, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let at = random.below(market.offers.len());
        let other = market.offers[random.below(market.offers.len())];
        let offer = &mut market.offers[at];
        match random.below(7) {
            0 => offer.amount *= 10f64.powf(random.uniform(-6.0, 6.0)),
            1 => offer.limit *= 10f64.powf(random.uniform(-3.0, 3.0)),
            2 => offer.limit *= 1.0 + 0.02 * random.uniform(-1.0, 1.0),
            3 => (offer.sell, offer.buy, offer.limit) = (other.sell, other.buy, other.limit),
            4 => offer.amount = other.amount,
            5 => {
                // The other way round, at the same rate.
                let limit = if offer.limit > 0.0 { 1.0 / offer.limit } else { 0.0 };
                (offer.sell, offer.buy, offer.limit) = (offer.buy, offer.sell, limit);
            }
            _ => {
                let copied = Offer { amount: (offer.amount * random.unit()).max(1.0), ..*offer };
                market.offers.push(copied);
            }
        }
        let offer = &mut market.offers[at];
        offer.amount = offer.amount.floor().clamp(1.0, AMOUNT_MAX);
        offer.limit = offer.limit.clamp(0.0, 1e60);
    }
}

/// Leaves out offers as long as there are still no prices.
fn shrink(market: &mut FamilyMarket, random: &mut Random) {
    for _ in 0..400 {
        let mut less = market.clone();
        for _ in 0..=less.offers.len() / 20 {
            less.offers.swap_remove(random.below(less.offers.len()));
        }
        if less.offers.len() > 3 && trial(&less).is_none() {
            *market = less;
        }
    }
}

fn text(market: &FamilyMarket) -> String {
    let mut text = String::from("sell,buy,limit,amount\n");
    for Offer { sell, buy, limit, amount } in &market.offers {
        text += &format!("{sell},{buy},{limit:e},{amount}\n");
    }
    text
}
