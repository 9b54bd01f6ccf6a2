//! Many pairs changed and traded at once: as one by one, whatever the number of threads, and undone.

use std::num::NonZero;
use std::sync::Arc;

use proptest::prelude::*;
use walras_clearing::{
    AssetIndex, BatchMarket, BuyOffer, Change, Edition, LowerBounds, MarketError, Offer, OfferId, OfferKey, Pair, PairBook,
    PairTrade, Pool, PoolRule, PoolSide, Proposal, Rules, SellChange, verify,
};
use walras_types::{Amount, BatchPrice, Commission, Mu, NetRate, Rounding};

fn below(state: &mut u64, bound: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % bound
}

fn offers(state: &mut u64, first_id: u64, count: u64) -> Vec<(Pair, Offer)> {
    let offer = |number| {
        let (sell, step) = (below(state, 4), 1 + below(state, 3));
        let pair = Pair { sell: AssetIndex(sell as u16), buy: AssetIndex(((sell + step) % 4) as u16) };
        let limit = BatchPrice::from_ratio(90 + u128::from(below(state, 20)), 100, Rounding::Down).unwrap();
        let (tie, units) = (below(state, 3), Amount::new(1 + below(state, 30)).unwrap());
        (pair, Offer::new(limit, tie, OfferId(first_id + number), units).unwrap())
    };
    (0..count).map(offer).collect()
}

fn pairs() -> impl Iterator<Item = Pair> {
    let assets = || (0..4).map(AssetIndex);
    assets().flat_map(move |sell| assets().map(move |buy| Pair { sell, buy })).filter(|pair| pair.sell != pair.buy)
}

fn rules() -> Rules {
    let (edition, commission, lower_bounds) = (Edition::NEWEST, Commission::NONE, LowerBounds::BestEffort);
    Rules { edition, commission, mu: Mu::new(10).unwrap(), lower_bounds }
}

fn threads(count: usize) -> NonZero<usize> {
    NonZero::new(count).unwrap()
}

/// Offers and sums are those of a market that is built of what stands.
fn assert_as_built(market: &BatchMarket) {
    let of_book = |book: &PairBook| book.sells().as_slice().iter().map(|offer| (book.pair(), *offer)).collect::<Vec<_>>();
    let offers: Vec<(Pair, Offer)> = market.books().iter().flat_map(|book| of_book(book)).collect();
    let built = BatchMarket::build(market.asset_count(), &offers, &[], vec![]).unwrap();
    assert_eq!(market, &built);
    for (book, built) in market.books().iter().zip(built.books()) {
        let (sells, built) = (book.sells(), built.sells());
        for count in 0..=sells.as_slice().len() {
            let units = built.units_of_first(count);
            assert_eq!(sells.units_of_first(count), units, "the first {count} of {}", book.pair());
            let one = Amount::new(1).unwrap();
            for units in [units.checked_sub(one), Some(units), units.checked_add(one)].into_iter().flatten() {
                assert_eq!(sells.split(units), built.split(units), "{units:?} of {}", book.pair());
            }
        }
        let room = sells.bytes() / (size_of::<Offer>() + size_of::<u64>());
        let most = 2 * sells.as_slice().len();
        assert!(room <= most, "room for {room} offers where {} stand", sells.as_slice().len());
    }
}

/// Some pairs of a market are the market that is built of what stands in them, and share its books.
#[test]
fn some_pairs_of_a_market_are_a_market() {
    let sells = offers(&mut 7, 0, 200);
    let units = |units| Amount::new(units).unwrap();
    let buy = |id: u64, pair: Pair| (pair, BuyOffer::new(BatchPrice::ZERO, 0, OfferId(id), units(5), units(7 + id)).unwrap());
    let buys: Vec<(Pair, BuyOffer)> = (0..).zip(pairs()).map(|(id, pair)| buy(id, pair)).collect();
    let pool = |assets: [u16; 2]| {
        let (assets, reserves) = (assets.map(AssetIndex), [units(100), units(300)]);
        Pool { assets, rule: PoolRule::ConstantProduct, reserves, fee_ppm: 3_000 }
    };
    let pools = vec![pool([0, 1]), pool([2, 3])];
    let market = BatchMarket::build(4, &sells, &buys, pools.clone()).unwrap();
    for first in 0..4 {
        let is_of = |pair: Pair| pair.sell.0.max(pair.buy.0) <= first;
        let sells: Vec<_> = sells.iter().filter(|(pair, _)| is_of(*pair)).copied().collect();
        let buys: Vec<_> = buys.iter().filter(|(pair, _)| is_of(*pair)).copied().collect();
        let pools = pools.iter().filter(|pool| is_of(pool.pair(PoolSide::First))).copied().collect();
        let some = market.of_pairs(is_of);
        assert_eq!(some, BatchMarket::build(4, &sells, &buys, pools).unwrap());
        let shared = |book: &Arc<PairBook>| market.books().iter().any(|of_all| Arc::ptr_eq(of_all, book));
        assert!(some.books().iter().all(shared));
    }
}

proptest! {
    /// Two deep books through blocks of changes near the rate, far from it and anywhere, and trades.
    #[test]
    fn books_that_change_and_trade_are_as_if_built_anew(seed: u64) {
        let state = &mut seed.clone();
        let [there, back] = [(0, 1), (1, 0)].map(|(sell, buy)| Pair { sell: AssetIndex(sell), buy: AssetIndex(buy) });
        let rules = rules();
        let mut market = BatchMarket::build(2, &[], &[], vec![]).unwrap();
        for block in 0..12 {
            let mut parts = Vec::new();
            for pair in [there, back] {
                let stands = market.book(pair).map_or(&[][..], |book| book.sells().as_slice());
                let (from, to) = match below(state, 4) {
                    0 => (0, stands.len()),
                    1 => (0, stands.len() / 8),
                    2 => (stands.len() - stands.len() / 8, stands.len()),
                    _ => (stands.len() / 3, stands.len() / 2),
                };
                let share = 2 + below(state, 20);
                let removed: Vec<OfferKey> = stands[from..to].iter().filter(|_| below(state, share) == 0).map(Offer::key).collect();
                // In hundredths of the rate.
                let (least, span) = [(95, 20), (95, 200), (200, 100), (90, 4)][below(state, 4) as usize];
                let count = if block == 0 { 150 } else { below(state, 40) };
                let added: Vec<Offer> = (0..count).map(|number| {
                    let limit = BatchPrice::from_ratio(u128::from(least + below(state, span)), 100, Rounding::Down).unwrap();
                    let units = Amount::new(1 + below(state, 30)).unwrap();
                    Offer::new(limit, below(state, 3), OfferId(1_000 * block + number), units).unwrap()
                }).collect();
                parts.push((pair, removed, added));
            }
            let changes = parts.iter_mut().map(|(pair, removed, added)| SellChange { pair: *pair, removed, added }).collect();
            market.change_sells(changes, threads(1)).unwrap();
            assert_as_built(&market);
            let most = |pair| market.book(pair).map_or(0, |book| book.sells().units_at_or_below(BatchPrice::ONE).get());
            let sold = Amount::new(below(state, most(there).min(most(back)) + 1)).unwrap();
            let trades = [there, back].map(|pair| PairTrade { pair, sold, bought_by_buy_offers: Amount::ZERO }).to_vec();
            let proposal = Proposal { prices: vec![Some(BatchPrice::ONE); 2], trades, pools: vec![] };
            let Ok(verified) = verify(&market, &proposal, &rules) else { continue };
            let plans = verified.into_plans().0;
            let before = market.clone();
            let traded = market.trade(plans, threads(1));
            assert_as_built(&market);
            if below(state, 4) == 0 {
                market.untrade(traded, threads(1));
                prop_assert_eq!(&market, &before);
                assert_as_built(&market);
            }
        }
    }

    #[test]
    fn many_pairs_change_as_one_by_one(seed: u64, thread_count in 1..9_usize) {
        let state = &mut seed.clone();
        let count = below(state, 80);
        let old = offers(state, 0, count);
        let new = offers(state, 1_000, 40);
        let before = BatchMarket::build(4, &old, &[], vec![]).unwrap();
        let (mut at_once, mut singly) = (before.clone(), before.clone());
        let mut parts: Vec<(Pair, Vec<OfferKey>, Vec<Offer>)> = Vec::new();
        for pair in pairs() {
            if below(state, 4) == 0 {
                continue;
            }
            let stands = old.iter().filter(|(of, _)| *of == pair).map(|(_, offer)| offer.key());
            let removed: Vec<OfferKey> = stands.filter(|_| below(state, 2) == 0).collect();
            let added: Vec<Offer> = new.iter().filter(|(of, _)| *of == pair).map(|(_, offer)| *offer).collect();
            singly.change_pair(pair, Change { removed: removed.clone(), added: added.clone() }, Change::default()).unwrap();
            parts.push((pair, removed, added));
        }
        let mut right = parts.clone();
        let changes = right.iter_mut().map(|(pair, removed, added)| SellChange { pair: *pair, removed, added }).collect();
        at_once.change_sells(changes, threads(thread_count)).unwrap();
        prop_assert_eq!(&at_once, &singly);
        // One that is wrong anywhere, and nothing changed.
        let wrong = below(state, 2) == 0;
        if let Some((pair, removed, added)) = parts.last_mut() {
            let key = added.first().map(Offer::key).unwrap_or(OfferKey { limit: BatchPrice::ONE, tie: 99, id: OfferId(99) });
            if wrong || added.is_empty() { removed.push(key) } else { added.push(added[0]) }
            let pair = *pair;
            let changes = parts.iter_mut().map(|(pair, removed, added)| SellChange { pair: *pair, removed, added }).collect();
            let mut refused = before.clone();
            prop_assert!(refused.change_sells(changes, threads(thread_count)).is_err(), "{}", pair);
            prop_assert_eq!(&refused, &before);
            let twice = || SellChange { pair, removed: &mut [], added: &mut [] };
            prop_assert_eq!(refused.change_sells(vec![twice(), twice()], threads(2)), Err(MarketError::PairsOutOfOrder(pair)));
        }
    }

    #[test]
    fn what_trades_leaves_the_market_and_comes_back(seed: u64, thread_count in 1..9_usize) {
        let state = &mut seed.clone();
        let before = BatchMarket::build(4, &offers(state, 0, 100), &[], vec![]).unwrap();
        let rules = rules();
        // A ring in which each pair sells as much as the next buys.
        let ring: Vec<Pair> = (0..4_u16).map(|at| Pair { sell: AssetIndex(at), buy: AssetIndex((at + 1) % 4) }).collect();
        let rate = NetRate::new(BatchPrice::ONE, BatchPrice::ONE, rules.commission).unwrap();
        let most = |pair: &Pair| before.book(*pair).map_or(Amount::ZERO, |book| book.sells().units_at_or_below(rate.highest_limit()));
        let least = ring.iter().map(most).min().unwrap().get();
        let sold = Amount::new(least - below(state, least + 1).min(least)).unwrap();
        let mut trades: Vec<PairTrade> = ring.iter().map(|&pair| PairTrade { pair, sold, bought_by_buy_offers: Amount::ZERO }).collect();
        trades.sort_by_key(|trade| trade.pair);
        let proposal = Proposal { prices: vec![Some(BatchPrice::ONE); 4], trades, pools: vec![] };
        let Ok(verified) = verify(&before, &proposal, &rules) else { return Ok(()) };
        let fills: Vec<_> = verified.pairs().iter().flat_map(|pair| verified.fills(pair).sells().collect::<Vec<_>>()).collect();
        let marginal: Vec<_> = verified.pairs().iter().map(|pair| verified.fills(pair).marginal_sell()).collect();
        let mut market = before.clone();
        let traded = market.trade(verified.into_plans().0, threads(thread_count));
        let found: Vec<_> = traded.iter().flat_map(|pair| pair.fills()).map(|(offer, sold, bought)| (offer.key().id, sold, bought)).collect();
        prop_assert_eq!(found, fills.iter().map(|fill| (fill.id, fill.sold, fill.bought)).collect::<Vec<_>>());
        prop_assert_eq!(traded.iter().map(|pair| pair.marginal()).collect::<Vec<_>>(), marginal);
        // What is left is what a market built of it would be.
        let mut left: Vec<(Pair, Offer)> = Vec::new();
        for book in before.books() {
            for offer in book.sells().as_slice() {
                match fills.iter().find(|fill| fill.id == offer.key().id) {
                    None => left.push((book.pair(), *offer)),
                    Some(fill) => left.extend(offer.after(fill.sold).ok().map(|rest| (book.pair(), rest))),
                }
            }
        }
        prop_assert_eq!(&market, &BatchMarket::build(4, &left, &[], vec![]).unwrap());
        market.untrade(traded, threads(thread_count));
        prop_assert_eq!(market, before);
    }
}
