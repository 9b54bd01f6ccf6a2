//! Counts markets of which a block sets a part aside: `cargo run --release -p walras-batch-solver --example wild_blocks -- [MARKETS]`.
//!
//! It takes about as many markets of each of two kinds, and an eighth as many hard ones of all families. Each is cleared by the rules
//! before engine version 13 and by those since. Where a part is set aside by the latter, it looks for a single offer without
//! which all others trade. `docs/adr/0036-no-offer-is-left-out.md` has the figures, and `tests/families.rs` a share of this.

use walras_batch::BlockPlace;
use walras_batch_solver::{Budget, ClearError, ClosedBatch};
use walras_clearing::{BatchMarket, Edition, LowerBounds, Offer, Pair, PairBook, Rules};
use walras_price_solver::families::Family;
use walras_types::{BatchMarketId, Commission, Mu, QualityMax};

#[path = "../tests/made/market.rs"]
mod market;
#[path = "../tests/made/partly_wild.rs"]
mod partly_wild;
#[path = "../tests/made/wild.rs"]
mod wild;

use market::market_of;
use partly_wild::partly_wild;
use wild::wild;

type AnyError = Box<dyn std::error::Error>;

/// Markets of each kind, if no number is given.
const MARKETS: u64 = 2_000;

/// Of larger markets no single offers are left out: each takes a block.
const OFFERS_MAX: usize = 100;

/// What came of the markets of a kind.
#[derive(Default)]
struct Counts {
    with_part: u64,
    aside_before: u64,
    aside_since: u64,
    /// Of the last, those whose other offers all trade without one of them.
    single: u64,
}

/// Markets of a kind, by seed.
type Made<'a> = &'a dyn Fn(u64) -> BatchMarket;

fn main() -> Result<(), AnyError> {
    let markets: u64 = std::env::args().nth(1).map_or(Ok(MARKETS), |text| text.parse())?;
    let family = |seed: u64| {
        let families = Family::ALL.len() as u64;
        let made = Family::ALL[(seed % families) as usize].market(seed / families);
        market_of(made.asset_count, &made.offers)
    };
    let kinds: [(&str, u64, Made<'_>); 3] = [
        ("hard, of all families", markets / 8, &family),
        ("orderly, with a tenth of wild offers", markets, &partly_wild),
        ("up to 40 wild offers", markets, &wild),
    ];
    println!("| markets | with a part | set aside before version 13 | set aside since | of these, those with a single reason |");
    println!("| --- | --- | --- | --- | --- |");
    for (name, count, made) in kinds {
        let Counts { with_part, aside_before, aside_since, single } = counted(count, made)?;
        println!("| {name} | {with_part} of {count} | {aside_before} | {aside_since} | {single} |");
    }
    Ok(())
}

fn counted(count: u64, made: Made<'_>) -> Result<Counts, AnyError> {
    let rules = |edition| {
        let (commission, mu) = (Commission::new(15).ok_or("a commission")?, Mu::new(10).ok_or("a share")?);
        Ok::<_, AnyError>(Rules { edition, commission, mu, lower_bounds: LowerBounds::BestEffort })
    };
    let (before, since) = (rules(Edition::First)?, rules(Edition::Second)?);
    let mut counts = Counts::default();
    for seed in 0..count {
        let market = made(seed);
        if market.parts().count() == 0 {
            continue;
        }
        counts.with_part += 1;
        counts.aside_before += u64::from(is_aside(&market, before)?);
        if is_aside(&market, since)? {
            counts.aside_since += 1;
            counts.single += u64::from(has_single_reason(&market, since)?);
        }
    }
    Ok(counts)
}

/// Whether a block sets a part of it aside.
fn is_aside(market: &BatchMarket, rules: Rules) -> Result<bool, ClearError> {
    let place = BlockPlace { number: 1, parent: [0; 32], batch_hash: [1; 32] };
    let batch = ClosedBatch { market: BatchMarketId(0), place, offers: market, rules, quality: QualityMax::USUAL };
    Ok(batch.set_aside(&batch.propose(None, Budget::queries(10_000))?) > 0)
}

/// Whether there is an offer without which nothing is set aside, and there is still a part.
fn has_single_reason(market: &BatchMarket, rules: Rules) -> Result<bool, AnyError> {
    fn of_book(book: &PairBook) -> impl Iterator<Item = (Pair, Offer)> {
        book.sells().as_slice().iter().map(|offer| (book.pair(), *offer))
    }
    let offers: Vec<(Pair, Offer)> = market.books().iter().flat_map(|book| of_book(book)).collect();
    if offers.len() > OFFERS_MAX {
        return Ok(false);
    }
    for place in 0..offers.len() {
        let mut rest = offers.clone();
        rest.remove(place);
        let rest = BatchMarket::build(market.asset_count(), &rest, &[], Vec::new())?;
        if rest.parts().count() > 0 && !is_aside(&rest, rules)? {
            return Ok(true);
        }
    }
    Ok(false)
}
