//! How the parts of a clearing grow with what stands: a market that nobody cancels in and where one offer in ten is good, block after block, prices
//! moving by 5 % each. Each block is cleared from close-ups and among all offers.
//!
//! With a fourth number, that many offers are made first, at one valuation and densely: they ask up to 3 % more than those of the
//! model. Then come blocks of the model, and what is timed is a whole proposal, as a venue makes it. Small blocks among very many
//! such offers are what price searches find hard.
//!
//! `cargo run --release -p walras-batch-solver --example growth -- [assets] [offers a block] [blocks] [standing]`

use std::num::NonZero;
use std::time::Instant;

use walras_batch::{BlockPlace, ProposedClearing};
use walras_batch_solver::{Cleared, ClosedBatch, KeptIndex, Settings, Sight, clear};
use walras_clearing::{AssetIndex, BatchMarket, Offer, OfferId, Pair, SellChange, verify};
use walras_price_solver::random::Random;
use walras_price_solver::synthetic::{MadeBatch, Model, Shape, Variant};
use walras_types::{Amount, BatchMarketId, BatchPrice, Commission, Mu, QualityMax};

/// How much more than in the model offers ask that are made first, at most.
const MORE_MAX: f64 = 0.03;

type AnyError = Box<dyn std::error::Error>;

fn main() -> Result<(), AnyError> {
    let numbers: Vec<usize> = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let number = |place: usize, usual: usize| numbers.get(place).copied().unwrap_or(usual);
    let (asset_count, offer_count, block_count) = (number(0, 20), number(1, 100_000), number(2, 30));
    match number(3, 0) {
        0 => grow(asset_count, offer_count, block_count),
        standing => among_many(asset_count, offer_count, block_count, standing),
    }
}

fn settings(last: Option<&[Option<BatchPrice>]>) -> Result<Settings<'_>, AnyError> {
    let usual = Settings::new(Commission::new(15).ok_or("a commission")?, Mu::new(10).ok_or("a share")?);
    Ok(Settings { start: last, ..usual })
}

fn grow(asset_count: usize, offer_count: usize, block_count: usize) -> Result<(), AnyError> {
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
        let standing = standing_in(&market);
        let settings = settings(last.as_deref())?;
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

fn among_many(asset_count: usize, offer_count: usize, block_count: usize, standing: usize) -> Result<(), AnyError> {
    let one = NonZero::<usize>::MIN;
    let model = Model { asset_count, offer_count: standing, variant: Variant::Default, shape: Shape::Cycles };
    let (mut made, mut random) = (MadeBatch::new(model, 1), Random::new(1));
    made.offers.iter_mut().for_each(|offer| offer.limit *= 1.0 + random.uniform(0.0, MORE_MAX));
    let mut market = BatchMarket::build(asset_count, &[], &[], Vec::new())?;
    let (mut last, mut kept): (Option<Vec<Option<BatchPrice>>>, _) = (None, KeptIndex::default());
    println!("standing, of them new | ms: propose, trade | unserved and gap, parts per billion");
    for block in 0..=block_count as u64 {
        add(&mut market, &made, block, one)?;
        let (standing, new) = (standing_in(&market), made.offers.len());
        made.next_of(offer_count);
        let settings = settings(last.as_deref())?;
        let place = BlockPlace { number: block, parent: [0; 32], batch_hash: [0; 32] };
        let rules = settings.rules();
        let batch = ClosedBatch { market: BatchMarketId(0), place, offers: &market, rules, quality: QualityMax::USUAL };
        let begun = Instant::now();
        let proposed = batch.propose_with(&mut kept, last.as_deref(), settings.budget)?;
        let propose_ms = ms(begun);
        let plans = verify(&market, &ProposedClearing::from(&proposed).proposal, &rules)?.into_plans().0;
        let begun = Instant::now();
        market.trade(plans, one);
        let (trade_ms, of) = (ms(begun), &proposed.certificate);
        println!("{standing:>9} {new:>8} | {propose_ms:8.1} {trade_ms:7.1} | {} {}", of.unserved_ppb, of.gap_ppb);
        last = Some(proposed.prices);
    }
    Ok(())
}

fn standing_in(market: &BatchMarket) -> usize {
    market.books().iter().map(|book| book.sells().as_slice().len()).sum()
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
