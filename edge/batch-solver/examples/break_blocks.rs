//! Looks for markets of which a block sets a part aside: `make break`, or `cargo run --release -p walras-batch-solver --example
//! break_blocks -- [SECONDS] [SEED] [FOLDER]`.
//!
//! It climbs hills as `break` of `walras-price-solver` does, but by whole blocks ([`ClosedBatch::propose`]): what makes the search of a
//! block look at the clock more often is kept. Two kinds of hills take turns:
//!
//! - the market of a family. It is broken if a part is set aside though its offers are large enough that whole units are no excuse;
//! - a few offers in an orderly market, which stays as it is. They break it if an asset of the orderly market is set aside.
//!
//! A broken market is made smaller and written to the folder as lines `sell,buy,limit,amount`. The exit status is 1 if any was found.
//!
//! [`ClosedBatch::propose`]: walras_batch_solver::ClosedBatch::propose

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use walras_price_solver::climb::{Climbed, Trial, climb, shrink, text};
use walras_price_solver::families::{Family, FamilyMarket};
use walras_price_solver::random::Random;

#[path = "../tests/made/market.rs"]
mod market;
#[path = "../tests/made/trial.rs"]
mod trial;

use trial::{attacked, looks_of_attack, looks_of_block, together};

/// Blocks of larger markets are searched too slowly.
const OFFERS_MAX: usize = 300;

/// Where a hill ended.
struct Hill {
    name: String,
    /// The hardest market, as small as it was made if it is broken.
    market: FamilyMarket,
    hardness: Option<u64>,
    tried: u64,
}

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
        let of_attack = climbs.is_multiple_of(2);
        let hill = if of_attack { Some(attack_hill(&mut random, end)) } else { family_hill(&mut random, end) };
        let Some(hill) = hill else { continue };
        tried += hill.tried;
        match hill.hardness {
            Some(looks) => hardest = hardest.max(looks),
            None => {
                found += 1;
                std::fs::create_dir_all(&folder)?;
                let path = folder.join(format!("block-{}-{seed}-{climbs}.csv", hill.name));
                std::fs::write(&path, text(&hill.market))?;
                println!("found {}: {} offers of {} assets", path.display(), hill.market.offers.len(), hill.market.asset_count);
            }
        }
    }
    println!(
        "{tried} blocks on {climbs} hills, {found} with a part set aside, the hardest other looked at the clock {hardest} times"
    );
    Ok(if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// From the market of a family, if it is small enough.
fn family_hill(random: &mut Random, end: Instant) -> Option<Hill> {
    let family = Family::ALL[random.below(Family::ALL.len())];
    let market = family.market(random.bits());
    (market.offers.len() <= OFFERS_MAX).then(|| hill(format!("{family:?}"), market, random, &looks_of_block, end))
}

/// From a few offers in an orderly market, which alone are changed and made fewer.
fn attack_hill(random: &mut Random, end: Instant) -> Hill {
    let (orderly, attack) = attacked(random);
    let trial = |attack: &FamilyMarket| looks_of_attack(&orderly, attack);
    let hill = hill("Attack".to_owned(), attack, random, &trial, end);
    Hill { market: together(&orderly, &hill.market), ..hill }
}

fn hill(name: String, market: FamilyMarket, random: &mut Random, trial: Trial<'_>, end: Instant) -> Hill {
    let Climbed { harder: mut market, hardness, tried } = climb(market, random, trial, || Instant::now() < end);
    if hardness.is_none() {
        shrink(&mut market, random, trial);
    }
    Hill { name, market, hardness, tried }
}
