//! How the parts of a clearing grow with what stands: a market that nobody cancels in and where one offer in ten is good, block after block, prices
//! moving by 5 % each. Each block is cleared from close-ups and among all offers.
//!
//! `cargo run --release -p walras-batch-solver --example growth -- [assets] [offers a block] [blocks]`

use std::num::NonZero;
use std::time::Instant;

use walras_batch_solver::{Cleared, Settings, Sight, clear};
use walras_clearing::{AssetIndex, BatchMarket, Offer, OfferId, Pair, SellChange};
use walras_price_solver::synthetic::{MadeBatch, Model, Shape, Variant};
use walras_types::{Amount, BatchPrice, Commission, Mu};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers: Vec<usize> = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let number = |place: usize, usual: usize| numbers.get(place).copied().unwrap_or(usual);
    let (asset_count, offer_count, block_count) = (number(0, 20), number(1, 100_000), number(2, 30));
    let one = NonZero::<usize>::MIN;
    let model = Model { asset_count, offer_count, variant: Variant::TenPercentGood, shape: Shape::Cycles };
    let mut made = MadeBatch::new(model, 1);
    let mut market = BatchMarket::build(asset_count, &[], &[], Vec::new())?;
    let mut last: Option<Vec<Option<BatchPrice>>> = None;
    println!("offers, ms: close | from close-ups: index prices amounts verify report, queries | among all: the same | trade");
    for block in 0..block_count as u64 {
        let begun = Instant::now();
        add(&mut market, &made, block, one)?;
        let close_ms = ms(begun);
        made.next();
        let standing: usize = market.books().iter().map(|book| book.sells().as_slice().len()).sum();
        let usual = Settings::new(Commission::new(15).ok_or("a commission")?, Mu::new(10).ok_or("a share")?);
        let settings = Settings { start: last.as_deref(), ..usual };
        let all = told(&clear(&market, &Settings { sight: Sight::AllOffers, ..settings })?);
        let cleared = clear(&market, &settings)?;
        let close_up = told(&cleared);
        last = Some(cleared.proposal.prices);
        let plans = cleared.verified.into_plans().0;
        let begun = Instant::now();
        market.trade(plans, one);
        println!("{standing:>9} | {close_ms:6.1} | {close_up} | {all} | {:6.1}", ms(begun));
    }
    Ok(())
}

fn ms(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}

fn told(cleared: &Cleared<'_>) -> String {
    let (report, times) = (&cleared.report, &cleared.report.times);
    let parts = [times.index, times.prices, times.amounts, times.verify, times.report].map(|time| time.as_secs_f64() * 1e3);
    let parts: Vec<String> = parts.iter().map(|part| format!("{part:6.1}")).collect();
    format!("{} {:>5} {:?}", parts.join(" "), report.queries, report.outcome)
}

fn add(market: &mut BatchMarket, made: &MadeBatch, block: u64, threads: NonZero<usize>) -> Result<(), Box<dyn std::error::Error>> {
    let asset_count = market.asset_count();
    let mut by_pair: Vec<Vec<Offer>> = vec![Vec::new(); asset_count * asset_count];
    for (id, offer) in ((block << 32)..).zip(&made.offers) {
        let limit = BatchPrice::from_bits(offer.limit.to_bits())?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made offers are far below the most")]
        let amount = Amount::new(offer.amount as u64).ok_or("an amount")?;
        by_pair[offer.sell * asset_count + offer.buy].extend(Offer::new(limit, id, OfferId(id), amount).ok());
    }
    let changes = by_pair.iter_mut().enumerate().filter(|(_, added)| !added.is_empty());
    let index = |asset: usize| AssetIndex(u16::try_from(asset).expect("few assets"));
    let changes = changes.map(|(place, added)| {
        let pair = Pair { sell: index(place / asset_count), buy: index(place % asset_count) };
        SellChange { pair, removed: &mut [], added }
    });
    market.change_sells(changes.collect(), threads)?;
    Ok(())
}
