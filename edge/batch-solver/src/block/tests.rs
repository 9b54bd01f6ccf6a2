//! Parts that no way clears: they trade all the same where the search leaves out a few of their offers.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use walras_clearing::{Edition, Offer, OfferId, PairBook};
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
    let offer = |sell, buy, units| offer(units, (sell, buy), 0.5, units);
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

/// An offer from one asset to another, under an id.
fn offer(id: u64, (sell, buy): (u16, u16), limit: f64, units: u64) -> (Pair, Offer) {
    let limit = BatchPrice::from_bits(limit.to_bits()).unwrap();
    let pair = Pair { sell: AssetIndex(sell), buy: AssetIndex(buy) };
    (pair, Offer::new(limit, 0, OfferId(id), Amount::new(units).unwrap()).unwrap())
}

/// Ids of offers that are large and never trade.
const FAR: u64 = 1_000;

/// A part that one small offer stops, and where it stands.
///
/// 140 units each of the assets 1, 2 and 3 go round a cycle, by way of 80 of asset 0 that are for sale at any price. The offer sells 150
/// more for 151. So the rate is near 151/150, and 59 of its units should trade. But no part of fewer than 130 units keeps its limit at such
/// a rate in whole units. What it does not sell is missing round the cycle, also in the pair of the assets 2 and 3, where nothing excuses
/// it. Without the offer 20 units that are for sale at 1.5 keep the rate near that, and at such a rate the offer can trade in part.
fn stopped_by_a_small_offer() -> (BatchMarket, (Pair, OfferKey)) {
    let mut offers = vec![offer(0, (0, 1), 0.125, 80), offer(1, (0, 1), 1.0066, 150), offer(2, (0, 1), 1.5, 20)];
    let stopping = (offers[1].0, offers[1].1.key());
    for id in 3..24 {
        let sell = 1 + (id % 3) as u16;
        offers.push(offer(id, (sell, (sell + 1) % 4), 0.5, 20));
    }
    for id in FAR..FAR + 40 {
        let pair = if id.is_multiple_of(2) { (0, 1) } else { (1, 0) };
        offers.push(offer(id, pair, 3.0 + (id - FAR) as f64 / 128.0, 1_000_000 + id));
    }
    (BatchMarket::build(4, &offers, &[], Vec::new()).unwrap(), stopping)
}

/// However many of the largest offers the search leaves out, the part is not mended. It is without one of the smallest.
#[test]
fn a_part_that_a_small_offer_stops_trades_where_the_search_leaves_it_out() {
    let (market, stopping) = stopped_by_a_small_offer();
    let (batch, budget, parts) = (closed(&market), Budget::queries(10_000), market.parts());
    let (found, assessed) = batch.by_ways(&mut KeptIndex::default(), None, budget).unwrap();
    assert_eq!((parts.count(), &assessed.beyond[..]), (1, &[0][..]), "{found:?}");
    let mends = |left_out: &[(Pair, OfferKey)]| {
        let rest = few::without(&market, &parts, 0, left_out);
        let other = ClosedBatch { offers: &rest, ..batch };
        let other = other.search(Way::Cold, None, budget, &mut KeptIndex::default()).unwrap();
        batch.with_prices_of(&found, &assessed, &other, &parts, &[0], budget).is_some()
    };
    let is_large = |set: &Vec<(Pair, OfferKey)>| set.iter().all(|(_, key)| key.id.0 >= FAR);
    let (large, small): (Vec<_>, Vec<_>) = sets(&market, &found.prices).into_iter().partition(is_large);
    assert!(large.iter().any(|set| set.len() == 16) && large.iter().all(|set| !mends(set)));
    assert!(small.contains(&vec![stopping]) && mends(&[stopping]));
    let block = batch.propose(None, budget).unwrap();
    assert_eq!(batch.set_aside(&block), 0, "{:?}", block.prices);
    let proposed = ProposedClearing::from(&block);
    verify(&market, &proposed.proposal, &batch.rules).unwrap();
    assert!(!block.trades.is_empty() && batch.assess(&proposed.proposal).beyond.is_empty());
}

/// Those of the first part.
fn sets(market: &BatchMarket, prices: &[Option<BatchPrice>]) -> Vec<Vec<(Pair, OfferKey)>> {
    few::sets(market, &market.parts(), 0, prices, &|| false).unwrap()
}

/// The offers of two assets, of 1, 2, 3 and so on units.
fn of_all_sizes(count: u64) -> BatchMarket {
    let pair = |units: u64| if units.is_multiple_of(2) { (0, 1) } else { (1, 0) };
    let offers: Vec<_> = (1..=count).map(|units| offer(units, pair(units), 1.0, units)).collect();
    BatchMarket::build(2, &offers, &[], Vec::new()).unwrap()
}

#[test]
fn the_largest_and_the_smallest_are_left_out_in_turn() {
    let market = of_all_sizes(100);
    let sets = sets(&market, &[Some(BatchPrice::ONE); 2]);
    // Ids are units.
    let ids: Vec<Vec<u64>> = sets.iter().map(|set| set.iter().map(|(_, key)| key.id.0).collect()).collect();
    assert_eq!(ids[..4], [[100], [1], [99], [2]]);
    assert_eq!(ids[62..66], [vec![69], vec![32], vec![100, 99], vec![1, 2]]);
    assert_eq!(ids[66..68], [[100, 99, 98, 97], [1, 2, 3, 4]]);
    assert_eq!(ids[64..].iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 4, 4, 8, 8, 16, 16, 32, 32]);
}

#[test]
fn each_offer_is_left_out_alone_once_at_most_and_never_more_than_half_together() {
    for count in [2, 3, 31, 32, 33, 64, 65, 600] {
        let market = of_all_sizes(count);
        let parts = market.parts();
        let sets = sets(&market, &[Some(BatchPrice::ONE); 2]);
        let alone: Vec<_> = sets.iter().filter(|set| set.len() == 1).collect();
        assert_eq!(alone.len() as u64, count.min(64), "{count}");
        assert_eq!(alone.iter().collect::<BTreeSet<_>>().len(), alone.len(), "{count}");
        let most = sets.iter().map(Vec::len).max().unwrap() as u64;
        assert!(most == 1 || most <= (count / 2).min(256), "{count}: {most}");
        for set in sets {
            let rest = few::without(&market, &parts, 0, &set);
            let left: usize = rest.books().iter().map(|book| book.sells().as_slice().len()).sum();
            assert_eq!((left + set.len()) as u64, count);
        }
    }
}

/// A search without a few offers takes memory for the pairs in which these stand, and none for all the others.
#[test]
fn what_is_left_out_costs_no_copy_of_the_market() {
    let offers: Vec<_> = (0..9_u16).map(|id| offer(u64::from(id), (id % 3, (id + 1) % 3), 1.0, 5)).collect();
    let market = BatchMarket::build(3, &offers, &[], Vec::new()).unwrap();
    let (pair, left_out) = (offers[0].0, (offers[0].0, offers[0].1.key()));
    let rest = few::without(&market, &market.parts(), 0, &[left_out]);
    let is_shared = |of_rest: &Arc<PairBook>| market.books().iter().any(|book| Arc::ptr_eq(book, of_rest));
    let shared: Vec<bool> = rest.books().iter().map(is_shared).collect();
    assert_eq!(shared, rest.books().iter().map(|book| book.pair() != pair).collect::<Vec<_>>());
    assert_eq!(rest.book(pair).unwrap().sells().as_slice().len(), 2);
}

/// The offers of a large part are looked at no longer than there is time.
#[test]
fn what_to_leave_out_is_not_looked_for_when_time_is_over() {
    let market = of_all_sizes(100);
    let looks = Cell::new(0);
    let strikes_at = |at: u32| {
        looks.set(0);
        let is_over = || looks.replace(looks.get() + 1) >= at;
        few::sets(&market, &market.parts(), 0, &[Some(BatchPrice::ONE); 2], &is_over).is_some()
    };
    assert_eq!([0, 1, 2].map(|at| (strikes_at(at), looks.get())), [(false, 1), (false, 2), (true, 2)]);
}
