//! Looks for markets of which a block sets a part aside: `make break`, or `cargo run --release -p walras-batch-solver --example
//! break_blocks -- [SECONDS] [SEED] [FOLDER]`.
//!
//! It climbs hills as `break` of `walras-price-solver` does, but by whole blocks ([`ClosedBatch::propose`]): what makes the search of a
//! block look at the clock more often is kept. A market of which a part is set aside, though its offers are large enough that whole units
//! are no excuse, is made smaller and written to the folder as lines `sell,buy,limit,amount`. The exit status is 1 if any was found.
//!
//! [`ClosedBatch::propose`]: walras_batch_solver::ClosedBatch::propose

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use walras_price_solver::climb::{Climbed, climb, shrink, text};
use walras_price_solver::families::Family;
use walras_price_solver::random::Random;

#[path = "../tests/made/market.rs"]
#[expect(dead_code, reason = "tests make whole markets, a trial makes one offer after another")]
mod market;
#[path = "../tests/made/trial.rs"]
mod trial;

use trial::looks_of_block;

/// Blocks of larger markets are searched too slowly.
const OFFERS_MAX: usize = 300;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments.next().map_or(Ok(60), |text| text.parse())?;
    let seed: u64 = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| "target/broken".to_owned()));
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut random = Random::new(seed);
    let (mut tried, mut found, mut hardest, mut climbs) = (0_u64, 0_u64, 0, 0_u64);
    while Instant::now() < end {
        climbs += 1;
        let family = Family::ALL[random.below(Family::ALL.len())];
        let market = family.market(random.bits());
        if market.offers.len() > OFFERS_MAX {
            continue;
        }
        let Climbed { mut harder, hardness, tried: of_climb } =
            climb(market, &mut random, &looks_of_block, || Instant::now() < end);
        tried += of_climb;
        match hardness {
            Some(looks) => hardest = hardest.max(looks),
            None => {
                found += 1;
                shrink(&mut harder, &mut random, &looks_of_block);
                std::fs::create_dir_all(&folder)?;
                let path = folder.join(format!("block-{family:?}-{seed}-{climbs}.csv"));
                std::fs::write(&path, text(&harder))?;
                println!("found {}: {} offers of {} assets", path.display(), harder.offers.len(), harder.asset_count);
            }
        }
    }
    println!(
        "{tried} blocks on {climbs} hills, {found} with a part set aside, the hardest other looked at the clock {hardest} times"
    );
    Ok(if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
