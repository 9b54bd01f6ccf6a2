//! Hard markets in whole units: whatever their offers' sizes, the block that is proposed trades, and a validator accepts it.
#![allow(clippy::unwrap_used)] // Helpers of tests are not recognised as tests.

use std::sync::atomic::{AtomicU64, Ordering};

use walras_batch::{Assessed, BlockPlace, Certificate, ProposedClearing, QualityMax, assess};
use walras_batch_solver::{Budget, ClosedBatch, Deadline, Settings, clear};
use walras_clearing::{BatchMarket, Edition, LowerBounds, Rules, verify};
use walras_price_solver::climb::climb;
use walras_price_solver::families::{self, Family, FamilyMarket};
use walras_price_solver::random::Random;
use walras_price_solver::synthetic::Offer;
use walras_types::{BatchMarketId, Commission, Mu};
use walras_wire::batch::BlockProposal;

#[path = "made/market.rs"]
mod market;
#[path = "made/partly_wild.rs"]
mod partly_wild;
#[path = "made/trial.rs"]
mod trial;
#[path = "made/wild.rs"]
mod wild;

use market::market_of;
use partly_wild::partly_wild;
use trial::{attacked, looks_of_attack, looks_of_block};
use wild::wild;

fn rules() -> Rules {
    let (commission, mu) = (Commission::new(15).unwrap(), Mu::new(10).unwrap());
    Rules { edition: Edition::NEWEST, commission, mu, lower_bounds: LowerBounds::BestEffort }
}

fn closed(offers: &BatchMarket) -> ClosedBatch<'_> {
    let place = BlockPlace { number: 1, parent: [0; 32], batch_hash: [1; 32] };
    ClosedBatch { market: BatchMarketId(0), place, offers, rules: rules(), quality: QualityMax::USUAL }
}

fn assert_acceptable(market: &BatchMarket, block: &BlockProposal) {
    let proposed = ProposedClearing::from(block);
    verify(market, &proposed.proposal, &rules()).unwrap();
    let certificate = Certificate::find(market, &proposed.proposal, &rules());
    assert_eq!(assess(market, &proposed.proposal, &rules(), &QualityMax::USUAL), Assessed { certificate, beyond: Vec::new() });
}

/// What cannot be served in whole units may be set aside; of these families nothing else may.
const SEEDS: u64 = 4;

#[test]
fn no_family_is_set_aside() {
    let (mut tried, mut aside) = (0, Vec::new());
    for family in Family::ALL {
        for seed in 0..SEEDS {
            let made = family.market(seed);
            let market = market_of(made.asset_count, &made.offers);
            let batch = closed(&market);
            let block = batch.propose(None, Budget::queries(10_000)).unwrap();
            assert_acceptable(&market, &block);
            tried += 1;
            if batch.set_aside(&block) > 0 {
                aside.push(format!("{family:?} {seed}: {} of {}", batch.set_aside(&block), made.asset_count));
            }
        }
    }
    assert!(aside.is_empty(), "{} of {tried}: {aside:#?}", aside.len());
}

/// Markets of each kind; the example `wild_blocks` counts 2,000.
const WILD_SEEDS: u64 = 120;

/// A tenth of wild offers stops no orderly market. Where all are wild, whole units may leave a market in a hundred without a clearing.
#[test]
fn wild_offers_set_few_parts_aside() {
    let kinds: [(&dyn Fn(u64) -> BatchMarket, u64); 2] = [(&partly_wild, 0), (&wild, 2)];
    for (made, percent_max) in kinds {
        let (mut with_part, mut aside) = (0, Vec::new());
        for seed in 0..WILD_SEEDS {
            let market = made(seed);
            if market.parts().count() == 0 {
                continue;
            }
            with_part += 1;
            let batch = closed(&market);
            let block = batch.propose(None, Budget::queries(10_000)).unwrap();
            assert_acceptable(&market, &block);
            if batch.set_aside(&block) > 0 {
                aside.push(seed);
            }
        }
        assert!(with_part >= WILD_SEEDS / 3, "{with_part}");
        assert!(aside.len() as u64 * 100 <= percent_max * with_part, "{aside:?} of {with_part}, {percent_max} % may be");
    }
}

/// A clock that strikes after so many looks, and counts those after it.
struct Clock {
    looks: AtomicU64,
    strikes_at: u64,
}

impl Clock {
    fn has_struck(&self) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed) >= self.strikes_at
    }
}

/// Whenever the deadline passes, the search ends within a few looks at the clock, with a clearing that breaks no rule.
#[test]
fn a_deadline_ends_prices_amounts_margins_and_close_ups() {
    let made = families::dense(150, 1);
    let market = market_of(made.asset_count, &made.offers);
    let looks_in_all = {
        let clock = Clock { looks: AtomicU64::new(0), strikes_at: u64::MAX };
        let ask = || clock.has_struck();
        let budget = Budget { deadline: Some(Deadline::When(&ask)), ..Budget::queries(10_000) };
        clear(&market, &Settings { budget, ..Settings::new(rules().commission, rules().mu) }).unwrap();
        clock.looks.load(Ordering::Relaxed)
    };
    assert!(looks_in_all > 50, "{looks_in_all}: the clock is hardly looked at");
    for strikes_at in (0..looks_in_all).step_by((looks_in_all / 12) as usize + 1) {
        let clock = Clock { looks: AtomicU64::new(0), strikes_at };
        let ask = || clock.has_struck();
        let budget = Budget { deadline: Some(Deadline::When(&ask)), ..Budget::queries(10_000) };
        let cleared = clear(&market, &Settings { budget, ..Settings::new(rules().commission, rules().mu) }).unwrap();
        verify(&market, &cleared.proposal, &rules()).unwrap();
        let late = clock.looks.load(Ordering::Relaxed) - strikes_at;
        assert!(late < 60, "{late} looks after the deadline at {strikes_at} of {looks_in_all}");
    }
}

/// Hills of the bounded search: `make break` climbs others for as long as it is let.
const HILLS: u64 = 8;
const TRIALS_PER_HILL: u64 = 40;
const CLIMBED_OFFERS_MAX: usize = 80;

/// A search for markets of which a block sets a part aside, from fixed seeds: what it makes harder is not set aside either.
#[test]
fn a_bounded_climb_sets_nothing_aside() {
    let (mut tried, mut risen) = (0, 0);
    for hill in 0..HILLS {
        let random = &mut Random::new(hill);
        let (family, market) = std::iter::repeat_with(|| small_of(random)).flatten().next().unwrap();
        let first = looks_of_block(&market);
        let mut left = TRIALS_PER_HILL;
        let climbed = climb(market, random, &looks_of_block, || {
            left = left.saturating_sub(1);
            left > 0
        });
        tried += climbed.tried;
        assert!(climbed.hardness.is_some(), "{family:?}, hill {hill}: set aside: {:?}", climbed.harder.offers);
        risen += u64::from(climbed.hardness > first);
    }
    assert!(tried >= 30 * HILLS && risen >= HILLS / 2, "{tried} trials, {risen} hills were climbed at all");
}

fn small_of(random: &mut Random) -> Option<(Family, FamilyMarket)> {
    let family = Family::ALL[random.below(Family::ALL.len())];
    Some((family, family.market(random.bits()))).filter(|(_, market)| market.offers.len() <= CLIMBED_OFFERS_MAX)
}

/// A search for offers that stop an orderly market: a few, of any size at any limit, among its assets and two that nobody else trades.
/// Whatever they are, all of the orderly market's parts are priced.
#[test]
fn a_few_offers_set_no_asset_of_an_orderly_market_aside() {
    let (mut tried, mut risen) = (0, 0);
    for hill in 0..HILLS {
        let random = &mut Random::new(hill);
        let (orderly, attack) = attacked(random);
        let trial = |attack: &FamilyMarket| looks_of_attack(&orderly, attack);
        let first = trial(&attack);
        let mut left = TRIALS_PER_HILL;
        let climbed = climb(attack, random, &trial, || {
            left = left.saturating_sub(1);
            left > 0
        });
        tried += climbed.tried;
        assert!(climbed.hardness.is_some(), "hill {hill}: {:?} stop {:?}", climbed.harder.offers, orderly.offers);
        risen += u64::from(climbed.hardness > first);
    }
    assert!(tried >= 30 * HILLS && risen > 0, "{tried} trials, {risen} hills were climbed at all");
}

/// The trial can fail: if large offers are set aside, the market counts as broken, and if small ones are, it does not.
#[test]
fn a_trial_tells_parts_that_must_clear_from_whole_units() {
    let two = |amount: f64| {
        let offer = |sell, buy| Offer { sell, buy, limit: 0.9, amount };
        FamilyMarket { asset_count: 2, offers: vec![offer(0, 1), offer(1, 0)] }
    };
    let both = [walras_clearing::AssetIndex(0), walras_clearing::AssetIndex(1)];
    assert!(trial::are_large(&two(1e7), &both) && !trial::are_large(&two(1e3), &both));
    assert!(looks_of_block(&two(1e7)) > Some(0));
}

/// Of eight units of the first asset, worth two and two thirds of the second, a quarter is left over in whole units. So no block prices
/// the two, and no offers of an attack are the reason.
#[test]
fn the_trial_of_an_attack_tells_when_an_asset_is_set_aside() {
    let offer = |sell, buy, limit, amount| Offer { sell, buy, limit, amount };
    let coarse = [offer(0, 1, 0.1, 4.0), offer(0, 1, 0.1, 4.0), offer(1, 0, 3.0, 181_477_458.0)];
    let orderly = FamilyMarket { asset_count: 2, offers: coarse.to_vec() };
    let nothing = FamilyMarket { asset_count: 2, offers: Vec::new() };
    assert_eq!(looks_of_attack(&orderly, &nothing), None);
    // Whole units excuse it where nobody is attacked.
    assert_eq!(looks_of_block(&orderly), Some(0));
    // What is only among the attack's own assets is its own affair.
    let shifted = |offer: &Offer| Offer { sell: offer.sell + 2, buy: offer.buy + 2, ..*offer };
    let attack = FamilyMarket { asset_count: 4, offers: coarse.iter().map(shifted).collect() };
    let fitting = FamilyMarket { asset_count: 2, offers: vec![offer(0, 1, 0.9, 1e7), offer(1, 0, 0.9, 1e7)] };
    assert!(looks_of_attack(&fitting, &attack) > Some(0));
}
