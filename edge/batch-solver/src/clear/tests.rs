//! Close-ups against all offers, in and out of chains of blocks.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use walras_clearing::{AssetIndex, Offer, SellChange};
use walras_price_solver::Demand;
use walras_price_solver::solve::Deadline;
use walras_price_solver::synthetic::{self, MadeBatch, Model, Shape, Variant};

use walras_trade_amounts::propose;

use super::*;

#[path = "../../tests/made/market.rs"]
mod market;

use market::{market_of, offer_of, pair_of};

/// So little is seen at once that small markets have lumps.
const NARROW: Lens = Lens { whole_max: 2, reach: 1 };

fn settings() -> Settings<'static> {
    Settings::new(Commission::new(15).unwrap(), Mu::new(10).unwrap())
}

fn demand_at(index: &DemandIndex, prices: &[f64], window: Window) -> Demand {
    let mut demand = Demand::default();
    index.demand(prices, window, &mut demand);
    demand
}

fn window() -> Window {
    Window::of_mu(Scale::new(settings().commission, settings().mu, 0.0).accuracy.mu)
}

/// `(sell, buy beyond it, limit, amount)`, limits close together and often the same.
fn offers() -> impl Strategy<Value = Vec<synthetic::Offer>> {
    let limit = prop_oneof![1 => Just(0.0), 4 => (90..110_u32).prop_map(|limit| f64::from(limit) / 100.0), 4 => 0.99..1.01_f64];
    prop::collection::vec((0..3_usize, 1..3_usize, limit, 1..1_000_u32), 1..200).prop_map(|offers| {
        let offer =
            |(sell, step, limit, amount)| synthetic::Offer { sell, buy: (sell + step) % 3, limit, amount: f64::from(amount) * 1e6 };
        offers.into_iter().map(offer).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// Wherever it was taken: where it says that it is sharp, its demand is that of all offers. Around prices it is sharp there.
    #[test]
    fn what_a_close_up_shows_is_so(offers in offers(), around in prop::option::of(prop::array::uniform3(0.9..1.1_f64)), at in prop::array::uniform3(0.9..1.1_f64), reach in 1..4_usize) {
        let market = market_of(3, &offers);
        let all = index::demand_index(&market, settings().commission).unwrap();
        let lens = Lens { whole_max: 4, reach };
        let kept = index::kept(settings().commission);
        let close_up = CloseUp::taken(&market, kept, around.as_ref().map(|around| &around[..]), window(), lens).unwrap();
        prop_assert!(close_up.index.offer_count() <= all.offer_count());
        prop_assert_eq!(close_up.index.book_count(), all.book_count());
        if let Some(around) = around {
            prop_assert!(close_up.is_sharp_at(&around.map(Some), window()));
        }
        for prices in [around.unwrap_or(at), at] {
            if close_up.is_sharp_at(&prices.map(Some), window()) {
                let (found, expected) = (demand_at(&close_up.index, &prices, window()), demand_at(&all, &prices, window()));
                let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-9 * b.abs().max(1.0));
                prop_assert!(near(&found.sold, &expected.sold) && near(&found.bought, &expected.bought), "{:?} {:?}", found, expected);
            }
        }
    }
}

/// Prices with a margin are near those without it, where these clear; nothing is known of others.
#[test]
fn a_search_with_a_margin_begins_where_the_one_without_ended() {
    let (found, given) = ([Some(BatchPrice::ONE), None], [None, Some(BatchPrice::ONE)]);
    let priced = |outcome| {
        let solution = Solution { prices: vec![Some(1.0), None], outcome, queries: 9, worst_excess: 0.0, blocks: 1 };
        Priced { prices: found.to_vec(), solution, buying_pair_count: 0, buy_round_count: 0, are_buy_rates_settled: true }
    };
    for outcome in [Outcome::Cleared, Outcome::ClearedWithinBounds] {
        assert_eq!(start_with_margin(&priced(outcome), Some(&given)), Some(&found[..]), "{outcome:?}");
        assert_eq!(start_with_margin(&priced(outcome), None), Some(&found[..]), "{outcome:?}");
    }
    assert_eq!(start_with_margin(&priced(Outcome::Approximate), Some(&given)), Some(&given[..]));
    assert_eq!(start_with_margin(&priced(Outcome::Approximate), None), None);
}

/// Blocks whose prices move by some percent, in a market in which more and more stands: prices from close-ups, started at the last block's, clear all offers.
#[test]
fn close_ups_clear_what_all_offers_clear() {
    let one = NonZero::<usize>::MIN;
    for (lens, asset_count, offer_count) in [(Lens::USUAL, 6, 12_000), (NARROW, 6, 1_000), (NARROW, 12, 3_000)] {
        let mut made = MadeBatch::new(Model { asset_count, offer_count, variant: Variant::Default, shape: Shape::Cycles }, 7);
        let mut market = market_of(asset_count, &[]);
        let mut last: Option<Vec<Option<BatchPrice>>> = None;
        let mut by_close_up = 0;
        for block in 0..6_u64 {
            for sell in 0..asset_count {
                for buy in (0..asset_count).filter(|buy| *buy != sell) {
                    let pair = Pair { sell: AssetIndex(sell as u16), buy: AssetIndex(buy as u16) };
                    let of_pair = ((block << 32)..).zip(&made.offers).filter(|(_, offer)| pair_of(offer) == pair);
                    let mut added: Vec<Offer> = of_pair.filter_map(|(id, offer)| offer_of(id, offer)).collect();
                    market.change_sells(vec![SellChange { pair, removed: &mut [], added: &mut added }], one).unwrap();
                }
            }
            made.next();
            let settings = Settings { start: last.as_deref(), ..settings() };
            let mut times = Times::default();
            let all = find_prices(&market, &settings, None, 0.0, &mut KeptIndex::default(), &mut times).unwrap();
            let close = find_prices(&market, &settings, Some(lens), 0.0, &mut KeptIndex::default(), &mut times).unwrap();
            assert!(close.solution.outcome <= all.solution.outcome, "{lens:?}: {:?}, {:?}", close.solution, all.solution);
            by_close_up += usize::from(close.solution != all.solution);
            let prices: Vec<f64> = close.solution.prices.iter().map(|price| price.unwrap()).collect();
            let index = index::demand_index(&market, settings.commission).unwrap();
            if close.solution.outcome == Outcome::Cleared {
                assert!(demand_at(&index, &prices, window()).clears((-15_f64).exp2() * (1.0 + 1e-6)));
            }
            // What assets are worth in each other is what it is by all offers, about.
            let all: Vec<f64> = all.solution.prices.iter().map(|price| price.unwrap()).collect();
            for (close, of_all) in prices.iter().zip(&all) {
                assert!((close / prices[0] / (of_all / all[0]) - 1.0).abs() < 0.01, "{lens:?}: {prices:?} {all:?}");
            }
            let proposed = propose(&mut AmountsFinder::new(), &market, &close.prices, &best_effort(&settings));
            let verified = verify(&market, &proposed.proposal, &best_effort(&settings)).unwrap();
            let plans = verified.into_plans().0;
            market.trade(plans, one);
            last = Some(close.prices);
        }
        assert!(by_close_up >= 5, "{lens:?}: {by_close_up} of 6 blocks were priced from close-ups");
    }
}

/// An index of all offers takes long where very many stand: it is not begun, or not finished, after the deadline.
#[test]
fn no_deadline_waits_for_an_index_of_all_offers() {
    let model = Model { asset_count: 5, offer_count: 110_000, variant: Variant::Default, shape: Shape::Cycles };
    let market = market_of(5, &MadeBatch::new(model, 3).offers);
    assert!(Lens::is_for(&market));
    // One query leads nowhere, so without a deadline all offers are looked at.
    let cramped = Settings { budget: Budget::queries(1), ..settings() };
    let mut kept = KeptIndex::default();
    clear_with(&mut kept, &market, &cramped).unwrap();
    assert!(!kept.is_empty());
    for sight in [Sight::CloseUps, Sight::AllOffers] {
        // The clock strikes at once, or while books are indexed.
        for strikes_at in [0, 10] {
            let looks = AtomicU64::new(0);
            let ask = || looks.fetch_add(1, Ordering::Relaxed) >= strikes_at;
            let budget = Budget { deadline: Some(Deadline::When(&ask)), ..Budget::queries(1) };
            let mut kept = KeptIndex::default();
            let cleared = clear_with(&mut kept, &market, &Settings { sight, budget, ..settings() }).unwrap();
            assert!(kept.is_empty(), "{sight:?}, {strikes_at}");
            let is_priced = cleared.proposal.prices.iter().all(Option::is_some);
            assert_eq!(is_priced, sight == Sight::CloseUps, "the last close-up has prices, and of no index come none");
        }
    }
}

/// Of a market without close-ups the first index is made in any case, however late, and no other one.
#[test]
fn prices_with_a_margin_look_at_the_clock_in_small_markets_too() {
    let model = Model { asset_count: 5, offer_count: 1_000, variant: Variant::Default, shape: Shape::Cycles };
    let market = market_of(5, &MadeBatch::new(model, 3).offers);
    assert!(!Lens::is_for(&market));
    for is_late in [false, true] {
        let ask = || is_late;
        let budget = Budget { deadline: Some(Deadline::When(&ask)), ..settings().budget };
        let settings = Settings { budget, ..settings() };
        for margin in [0.0, MARGINS[0], MARGINS[1]] {
            let priced = find_prices(&market, &settings, None, margin, &mut KeptIndex::default(), &mut Times::default()).unwrap();
            let is_expected = margin == 0.0 || !is_late;
            assert!(priced.prices.iter().all(|price| price.is_some() == is_expected), "{margin}, {is_late}: {:?}", priced.prices);
        }
    }
}
