//! Looks for markets that the solver does not price: `make break`, or `cargo run --release -p walras-price-solver --example break
//! -- [SECONDS] [SEED] [FOLDER]`.
//!
//! It climbs hills: from a market of a family it changes some offers at random, keeps what makes the search longer, and begins with
//! another market after a while ([`walras_price_solver::climb`], which a test runs for a few hills). A market without prices is
//! made smaller, as long as it has none, and written to the folder as lines `sell,buy,limit,amount` for `tests/found`. The exit
//! status is 1 if any was found.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use walras_price_solver::climb::{Climbed, climb, shrink, text};
use walras_price_solver::demand::DemandIndex;
use walras_price_solver::families::{Family, FamilyMarket};
use walras_price_solver::random::Random;
use walras_price_solver::solve::{Accuracy, Outcome, Portfolio, PriceSolver, Problem};

/// Markets larger than this are climbed too slowly.
const OFFERS_MAX: usize = 600;

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
        let Climbed { harder, hardness, tried: of_climb } = climb(market, &mut random, &queries, || Instant::now() < end);
        (market, tried) = (harder, tried + of_climb);
        match hardness {
            Some(queries) => hardest = hardest.max(queries),
            None => {
                found += 1;
                shrink(&mut market, &mut random, &queries);
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
fn queries(market: &FamilyMarket) -> Option<u64> {
    let index = DemandIndex::from_offers(market.asset_count, &market.offers, Vec::new()).expect("offers are changed to sound ones");
    let solution = Portfolio.solve(&Problem::cold(&index, Accuracy::bits(15, 10)));
    (solution.outcome != Outcome::Approximate).then_some(solution.queries)
}
