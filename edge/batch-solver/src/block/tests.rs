//! Parts that no way clears: they trade all the same where the search leaves out a few of their offers.

use std::sync::atomic::{AtomicU64, Ordering};

use walras_clearing::{Edition, Offer, OfferId};
use walras_price_solver::solve::Deadline;
use walras_types::{Amount, Commission};

use super::*;

#[path = "../../tests/made/wild.rs"]
mod made;

use made::wild;

fn closed(offers: &BatchMarket) -> ClosedBatch<'_> {
    let rules = Rules {
        edition: Edition::NEWEST,
        commission: Commission::new(15).unwrap(),
        mu: Mu::new(10).unwrap(),
        lower_bounds: LowerBounds::BestEffort,
    };
    let place = BlockPlace { number: 1, parent: [0; 32], batch_hash: [1; 32] };
    ClosedBatch { market: BatchMarketId(0), place, offers, rules, quality: QualityMax::USUAL }
}

/// Each has a part that no way is good enough for. A single offer left out of the search is enough.
#[test]
fn a_part_that_no_way_clears_trades_where_the_search_leaves_out_a_few_offers() {
    for seed in [44, 1_381, 1_427, 1_719, 3_684] {
        let market = wild(seed);
        let batch = closed(&market);
        let budget = Budget::queries(10_000);
        let (found, assessed) = batch.by_ways(&mut KeptIndex::default(), None, budget).unwrap();
        assert!(!assessed.beyond.is_empty(), "{seed}: a way is good enough by now; look for another market");
        let (_, mended) = batch.without_few(found, assessed, budget);
        assert!(mended.beyond.is_empty(), "{seed}: {:?}", mended.beyond);
        let block = batch.propose(None, budget).unwrap();
        assert_eq!(batch.set_aside(&block), 0, "{seed}: {:?}", block.prices);
        assert!(!block.trades.is_empty(), "{seed}");
        // A validator looks at all offers, and finds what the block states.
        let proposed = ProposedClearing::from(&block);
        verify(&market, &proposed.proposal, &batch.rules).unwrap();
        assert!(batch.assess(&proposed.proposal).beyond.is_empty(), "{seed}");
        assert!(block.certificate.unserved_ppb <= QualityMax::USUAL.unserved_ppb, "{seed}");
    }
}

/// A search that is over leaves everything as it was found.
#[test]
fn nothing_is_left_out_when_time_is_over() {
    let market = wild(1_381);
    let batch = closed(&market);
    let (found, assessed) = batch.by_ways(&mut KeptIndex::default(), None, Budget::queries(10_000)).unwrap();
    let over = || true;
    let budget = Budget { deadline: Some(Deadline::When(&over)), ..Budget::queries(10_000) };
    assert_eq!(batch.without_few(found.clone(), assessed.clone(), budget), (found, assessed));
}

/// Looks at the clock after the deadline, at most.
const LATE_LOOKS_MAX: u64 = 60;

/// What `propose` comes to by a clock that strikes after so many looks, and how often it looks at that clock.
fn proposed_by(batch: &ClosedBatch<'_>, start: Option<&[Option<BatchPrice>]>, strikes_at: u64) -> (BlockProposal, u64) {
    let looks = AtomicU64::new(0);
    let has_struck = || looks.fetch_add(1, Ordering::Relaxed) >= strikes_at;
    let budget = Budget { deadline: Some(Deadline::When(&has_struck)), ..Budget::queries(10_000) };
    let block = batch.propose(start, budget).unwrap();
    (block, looks.load(Ordering::Relaxed))
}

/// Whenever the deadline passes: in the first search, in any other way, while offers are left out, or while parts are set aside. What
/// is found by then is a block that a validator accepts, and the search ends within a few looks at the clock.
#[test]
fn a_deadline_at_any_step_of_a_proposal_ends_in_a_valid_block() {
    const STRIKES: u64 = 60;
    for seed in [387, 685, 1_381] {
        let market = wild(seed);
        let batch = closed(&market);
        let (whole, _) = proposed_by(&batch, None, u64::MAX);
        for start in [None, Some(&whole.prices[..])] {
            let (_, looks_in_all) = proposed_by(&batch, start, u64::MAX);
            // From the prices of the whole it may be good enough at once.
            assert!(looks_in_all >= STRIKES || start.is_some(), "{seed}: {looks_in_all}: the clock is hardly looked at");
            for strikes_at in (0..looks_in_all).step_by(looks_in_all.div_ceil(STRIKES) as usize) {
                let (block, looks) = proposed_by(&batch, start, strikes_at);
                let late = looks - strikes_at;
                assert!(late < LATE_LOOKS_MAX, "{seed}: {late} looks after the deadline at {strikes_at} of {looks_in_all}");
                let proposed = ProposedClearing::from(&block);
                verify(&market, &proposed.proposal, &batch.rules).unwrap();
                assert!(batch.assess(&proposed.proposal).beyond.is_empty(), "{seed}, {strikes_at} of {looks_in_all}");
            }
        }
    }
}

/// An asset loses its price, and another is short without its trades. So amounts are found once more, unless the deadline has passed.
#[test]
fn amounts_that_are_found_once_more_look_at_the_clock() {
    let offer = |sell: u16, buy: u16, units: u64| {
        let limit = BatchPrice::from_bits(0.5_f64.to_bits()).unwrap();
        let pair = Pair { sell: AssetIndex(sell), buy: AssetIndex(buy) };
        (pair, Offer::new(limit, 0, OfferId(units), Amount::new(units).unwrap()).unwrap())
    };
    // Round a cycle of three assets, and to and fro between the last two.
    let offers = [offer(0, 1, 1_000), offer(1, 2, 1_500), offer(2, 0, 1_000), offer(2, 1, 500)];
    let market = BatchMarket::build(3, &offers, &[], Vec::new()).unwrap();
    let batch = closed(&market);
    let mut found = batch.amounts_at(&[Some(BatchPrice::ONE); 3], Budget::queries(1));
    assert_eq!(found.trades.len(), 4, "{:?}", found.trades);
    found.prices[0] = None;
    let rest = batch.without_unpriced(found.clone(), Budget::queries(1));
    assert_eq!(rest.trades.iter().map(|trade| trade.sold.get()).collect::<Vec<_>>(), [500, 500]);
    let is_over = || true;
    let late = Budget { deadline: Some(Deadline::When(&is_over)), ..Budget::queries(1) };
    assert!(batch.without_unpriced(found, late).trades.is_empty());
}

#[test]
fn the_largest_are_left_out_first_and_never_more_than_half_together() {
    let market = wild(1_381);
    let parts = market.parts();
    let prices = vec![Some(BatchPrice::ONE); market.asset_count()];
    for part in 0..parts.count() {
        let all: Vec<_> = few::without(&market, &parts, part, &[])
            .books()
            .iter()
            .flat_map(|book| book.sells().as_slice().iter().map(|offer| (book.pair(), *offer)).collect::<Vec<_>>())
            .collect();
        let amount = |named: &(Pair, OfferKey)| all.iter().find(|(pair, offer)| (*pair, offer.key()) == *named).unwrap().1.amount();
        let sets = few::sets(&market, &parts, part, &prices);
        let alone: Vec<_> = sets.iter().filter(|set| set.len() == 1).map(|set| amount(&set[0])).collect();
        assert_eq!(alone.len(), all.len().min(32));
        assert!(alone.is_sorted_by(|a, b| a >= b), "{alone:?}");
        assert!(sets.iter().all(|set| set.len() == 1 || set.len() <= all.len() / 2));
        for set in sets {
            let rest = few::without(&market, &parts, part, &set);
            let left: usize = rest.books().iter().map(|book| book.sells().as_slice().len()).sum();
            assert_eq!(left + set.len(), all.len());
        }
    }
}
