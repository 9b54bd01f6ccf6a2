//! The index that is kept against one that is made anew, after every change of a market.

use std::collections::BTreeMap;
use std::num::NonZero;

use proptest::prelude::*;
use walras_clearing::{AssetIndex, Offer, OfferId, OfferKey, PoolRule, SellChange};
use walras_price_solver::Demand;
use walras_price_solver::demand::Window;
use walras_types::{Amount, BatchPrice, Commission, Mu, Rounding};

use super::*;
use crate::{Settings, clear, clear_with};

const ASSETS: u16 = 5;

#[derive(Clone, Debug)]
enum Step {
    /// `(sell, buy beyond it, limit, amount)`, so many of each.
    Add(Vec<(u16, u16, u32, u64)>, u8),
    /// Offers at one place in so many.
    Remove(usize),
    /// All of a pair.
    Empty(u16, u16),
    /// A pool's reserves.
    Pools(Vec<(u64, u64)>),
    /// Somebody keeps the market as it is.
    Keep,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let offer = (0..ASSETS, 1..ASSETS, prop_oneof![1 => Just(0), 8 => 90..110_u32], 1..10_000_u64);
    let step = prop_oneof![
        6 => (prop::collection::vec(offer, 0..12), 1..20_u8).prop_map(|(offers, times)| Step::Add(offers, times)),
        4 => (1..12_usize).prop_map(Step::Remove),
        2 => (0..ASSETS, 1..ASSETS).prop_map(|(sell, step)| Step::Empty(sell, (sell + step) % ASSETS)),
        1 => prop::collection::vec((1_000..9_000_u64, 1_000..9_000_u64), 0..3).prop_map(Step::Pools),
        1 => Just(Step::Keep),
    ];
    prop::collection::vec(step, 1..60)
}

fn pair(sell: u16, buy: u16) -> Pair {
    Pair { sell: AssetIndex(sell), buy: AssetIndex(buy) }
}

fn change(market: &mut BatchMarket, removed: Vec<(Pair, OfferKey)>, added: Vec<(Pair, Offer)>) {
    let mut changes: BTreeMap<Pair, (Vec<OfferKey>, Vec<Offer>)> = BTreeMap::new();
    removed.into_iter().for_each(|(pair, key)| changes.entry(pair).or_default().0.push(key));
    added.into_iter().for_each(|(pair, offer)| changes.entry(pair).or_default().1.push(offer));
    let changes = changes.iter_mut().map(|(pair, (removed, added))| SellChange { pair: *pair, removed, added });
    market.change_sells(changes.collect(), NonZero::<usize>::MIN).unwrap();
}

/// Counts offers as they are made.
fn apply(market: &mut BatchMarket, step: &Step, made: &mut u64, keeps: &mut Vec<BatchMarket>) {
    let standing = |market: &BatchMarket| -> Vec<(Pair, OfferKey)> {
        let keys =
            |book: &Arc<PairBook>| book.sells().as_slice().iter().map(|offer| (book.pair(), offer.key())).collect::<Vec<_>>();
        market.books().iter().flat_map(keys).collect()
    };
    match step {
        Step::Add(offers, times) => {
            let mut added = Vec::new();
            for &(sell, step, limit, units) in offers.iter().flat_map(|offer| std::iter::repeat_n(offer, usize::from(*times))) {
                *made += 1;
                // Of one limit, and of others close by.
                let limit = limit * 1_000 + if limit > 0 { (*made % 3) as u32 } else { 0 };
                let stated = format!("{}.{:06}", limit / 100_000, limit % 100_000 * 10);
                let limit = BatchPrice::from_decimal(&stated, Rounding::Up).unwrap_or(BatchPrice::ZERO);
                let offer = Offer::new(limit, *made, OfferId(*made), Amount::new(units).unwrap());
                added.extend(offer.ok().map(|offer| (pair(sell, (sell + step) % ASSETS), offer)));
            }
            change(market, Vec::new(), added);
        }
        Step::Remove(every) => change(market, standing(market).into_iter().step_by(*every).collect(), Vec::new()),
        Step::Empty(sell, buy) => {
            let of_pair = standing(market).into_iter().filter(|(of, _)| *of == pair(*sell, *buy));
            change(market, of_pair.collect(), Vec::new());
        }
        Step::Pools(pools) => {
            let pools = pools.iter().zip(0..).map(|(&(x, y), first)| walras_clearing::Pool {
                assets: [AssetIndex(first), AssetIndex(first + 1)],
                reserves: [x, y].map(|units| Amount::new(units).unwrap()),
                fee_ppm: 3_000,
                rule: PoolRule::ConstantProduct,
            });
            market.set_pools(pools.collect()).unwrap();
        }
        Step::Keep => keeps.push(market.clone()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn it_answers_as_one_that_is_made_anew(steps in steps()) {
        let settings = Settings::new(Commission::new(15).unwrap(), Mu::new(10).unwrap());
        let divisor = index::kept(settings.commission);
        let mut market = BatchMarket::build(usize::from(ASSETS), &[], &[], Vec::new()).unwrap();
        let (mut kept, mut of_clears, mut made, mut keeps) = (KeptIndex::default(), KeptIndex::default(), 0, Vec::new());
        for (number, step) in steps.iter().enumerate() {
            apply(&mut market, step, &mut made, &mut keeps);
            let anew = index::demand_index(&market, settings.commission).unwrap();
            let index = kept.of(&market, divisor, &|| false).unwrap().unwrap();
            prop_assert!(index.has_same_books(&anew), "after step {}", number);
            let (mut found, mut expected) = (Demand::default(), Demand::default());
            let prices: Vec<f64> = (0..ASSETS).map(|asset| 1.0 + f64::from(asset) / 100.0).collect();
            index.demand(&prices, Window::of_mu(1e-3), &mut found);
            anew.demand(&prices, Window::of_mu(1e-3), &mut expected);
            prop_assert_eq!((found.sold, found.bought), (expected.sold, expected.bought));
        }
        let (by_kept, by_new) = (clear_with(&mut of_clears, &market, &settings), clear(&market, &settings));
        prop_assert_eq!(by_kept.unwrap().proposal, by_new.unwrap().proposal);
        // The same again, nothing having changed; and what others kept is as it was.
        let again = clear_with(&mut of_clears, &market, &settings).unwrap().proposal;
        prop_assert_eq!(again, clear(&market, &settings).unwrap().proposal);
        for market in &keeps {
            let anew = index::demand_index(market, settings.commission).unwrap();
            prop_assert!(kept.of(market, divisor, &|| false).unwrap().unwrap().has_same_books(&anew));
        }
    }
}

/// What a book outgrows is not left lying for ever.
#[test]
fn an_index_that_changes_for_long_stays_as_large_as_its_market() {
    let mut market = BatchMarket::build(2, &[], &[], Vec::new()).unwrap();
    let (mut kept, mut made) = (KeptIndex::default(), 0);
    for round in 0..200 {
        let grow = Step::Add(vec![(0, 1, 95, 5)], if round % 2 == 0 { 120 } else { 1 });
        apply(&mut market, &grow, &mut made, &mut Vec::new());
        kept.of(&market, 1.0, &|| false).unwrap().unwrap();
        if round % 2 == 1 {
            apply(&mut market, &Step::Remove(1), &mut made, &mut Vec::new());
            apply(&mut market, &Step::Add(vec![(0, 1, 95, 5)], 1), &mut made, &mut Vec::new());
        }
        kept.of(&market, 1.0, &|| false).unwrap().unwrap();
    }
    assert!(!kept.of(&market, 1.0, &|| false).unwrap().unwrap().is_mostly_unused());
}
