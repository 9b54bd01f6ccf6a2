//! One property for each thing that must hold.

use proptest::prelude::*;
use walras_clearing::{
    AssetIndex, BatchMarket, BuyOffer, Edition, Offer, OfferId, Pair, PairTrade, PartLimit, Pool, PoolTrade, Proposal, Rejected,
    Rules, Verified, honourable_bought, honourable_sold, verify,
};
use walras_types::{Amount, BatchPrice, Commission, NetRate, Rounding, limits::AMOUNT_MAX};

use super::generate::{self, Below};
use super::greedy;
use super::naive::{Outcome, Parts, Stated, net_rate, value, whole};

/// Choices made by bytes; zero when they are spent.
fn choices(bytes: &[u8]) -> impl FnMut(u64) -> u64 {
    let mut bytes = bytes.iter().copied();
    move |bound| {
        let width = if bound <= 256 { 1 } else { 8 };
        let number = (0..width).fold(0_u64, |number, _| number << 8 | u64::from(bytes.next().unwrap_or(0)));
        number % bound
    }
}

fn entropy() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..900)
}

fn outcome(verified: &Verified<'_>) -> Outcome {
    let fills = verified.pairs().iter().map(|clearing| {
        let fills = verified.fills(clearing);
        (clearing.pair, fills.sells().collect(), fills.buys().collect())
    });
    let short = verified.shortfall().first.map(|(pair, _)| pair).into_iter().collect();
    Outcome { fills: fills.collect(), pools: verified.pools().to_vec(), surplus: verified.surplus(), short }
}

/// The judge and the check agree: both accept with the same fills, or the reason is one that the judge found too.
fn agree(parts: &Parts, market: &BatchMarket, proposal: &Proposal, rules: &Rules) -> Result<bool, TestCaseError> {
    match (verify(market, proposal, rules), parts.judge(proposal, rules)) {
        (Ok(verified), Ok(mut expected)) => {
            prop_assert_eq!(verified.shortfall().pair_count, expected.short.len());
            expected.short.truncate(1);
            prop_assert_eq!(outcome(&verified), expected);
            for (asset, surplus) in (0..).zip(verified.surplus()) {
                prop_assert!(surplus >= verified.surplus_least(AssetIndex(asset)));
            }
            Ok(true)
        }
        (Err(rejected), Err(broken)) => {
            prop_assert!(broken.contains(&rejected.number()), "{} is none of {:?}", rejected, broken);
            prop_assert!(rejected.to_string().len() > 40);
            Ok(false)
        }
        (got, expected) => Err(TestCaseError::fail(format!("verify: {:?}, the judge: {expected:?}", got.map(|ok| outcome(&ok))))),
    }
}

struct Case {
    parts: Parts,
    market: BatchMarket,
    prices: Vec<BatchPrice>,
    rules: Rules,
}

fn case(below: Below<'_>) -> Case {
    let prices = generate::prices(below);
    let parts = generate::parts(below, &prices);
    let (market, rules) = (generate::market(&parts), generate::rules(below));
    Case { parts, market, prices, rules }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// What conserves, keeps limits and clears is accepted, and only that.
    #[test]
    fn the_check_agrees_with_a_naive_judge(bytes in entropy()) {
        let below: Below<'_> = &mut choices(&bytes);
        let Case { parts, market, prices, rules } = case(below);
        let mut proposal = generate::right_proposal(below, &market, &prices, &rules);
        // The greedy proposal leaves lower bounds to luck, and keeps all else.
        prop_assert!(agree(&parts, &market, &proposal, &greedy::best_effort(&rules))?, "{:?}", proposal);
        agree(&parts, &market, &proposal, &rules)?;
        for _ in 0..below(4) {
            generate::disturb(below, &mut proposal);
            agree(&parts, &market, &proposal, &rules)?;
        }
    }

    #[test]
    fn the_order_of_offers_changes_nothing(bytes in entropy()) {
        let below: Below<'_> = &mut choices(&bytes);
        let Case { mut parts, market, .. } = case(below);
        for at in (1..parts.sells.len()).rev() {
            parts.sells.swap(at, below(at as u64 + 1) as usize);
        }
        parts.buys.reverse();
        prop_assert_eq!(generate::market(&parts), market);
    }

    #[test]
    fn the_names_of_assets_change_nothing(bytes in entropy()) {
        let below: Below<'_> = &mut choices(&bytes);
        let Case { parts, market, prices, rules } = case(below);
        let rules = greedy::best_effort(&rules);
        let proposal = generate::right_proposal(below, &market, &prices, &rules);
        let (count, shift) = (parts.asset_count as u16, below(parts.asset_count as u64) as u16);
        let asset = |asset: AssetIndex| AssetIndex((count - 1 - asset.0 + shift) % count);
        let pair = |pair: Pair| Pair { sell: asset(pair.sell), buy: asset(pair.buy) };
        let renamed = Parts {
            asset_count: parts.asset_count,
            sells: parts.sells.iter().map(|stated| Stated { pair: pair(stated.pair), ..*stated }).collect(),
            buys: parts.buys.iter().map(|stated| Stated { pair: pair(stated.pair), ..*stated }).collect(),
            pools: parts.pools.iter().map(|pool| Pool { assets: pool.assets.map(asset), ..*pool }).collect(),
        };
        let mut prices = vec![None; parts.asset_count];
        (0..).zip(&proposal.prices).for_each(|(from, &price)| prices[asset(AssetIndex(from)).index()] = price);
        let mut trades: Vec<_> = proposal.trades.iter().map(|trade| PairTrade { pair: pair(trade.pair), ..*trade }).collect();
        trades.sort_by_key(|trade| trade.pair);
        let renamed_proposal = Proposal { prices, trades, pools: proposal.pools.clone() };
        let renamed_market = generate::market(&renamed);
        let (before, after) = (verify(&market, &proposal, &rules), verify(&renamed_market, &renamed_proposal, &rules));
        let (before, after) = (outcome(&before.unwrap()), outcome(&after.unwrap()));
        let mut fills: Vec<_> = before.fills.into_iter().map(|(of, sells, buys)| (pair(of), sells, buys)).collect();
        fills.sort_by_key(|(pair, _, _)| *pair);
        prop_assert_eq!(fills, after.fills);
        prop_assert_eq!(before.pools, after.pools);
        (0..).zip(before.surplus).for_each(|(from, units)| assert_eq!(after.surplus[asset(AssetIndex(from)).index()], units));
    }

    /// All valuations times a power of two are the same prices.
    #[test]
    fn the_unit_of_valuation_changes_nothing(bytes in entropy(), by in -20..20_i32) {
        let below: Below<'_> = &mut choices(&bytes);
        let Case { market, prices, rules, .. } = case(below);
        let rules = greedy::best_effort(&rules);
        let proposal = generate::right_proposal(below, &market, &prices, &rules);
        let scale = |price: BatchPrice| {
            let (m, e) = price.parts();
            BatchPrice::from_parts(m, e + by, Rounding::Down).ok()
        };
        let scaled: Option<Vec<_>> = proposal.prices.iter().map(|price| price.map_or(Some(None), |price| scale(price).map(Some))).collect();
        prop_assume!(scaled.is_some());
        let scaled = Proposal { prices: scaled.unwrap(), ..proposal.clone() };
        let (before, after) = (verify(&market, &proposal, &rules), verify(&market, &scaled, &rules));
        prop_assert_eq!(outcome(&before.unwrap()), outcome(&after.unwrap()));
    }

    /// An asset in units a power of two smaller: where nothing is rounded every amount of it is so many times larger, all else is as before.
    #[test]
    fn redenomination_changes_nothing_where_nothing_is_rounded(bytes in entropy(), by in 0..12_i32, asset in 0..2_u16) {
        let below: Below<'_> = &mut choices(&bytes);
        let power = |exponent: i32| BatchPrice::from_parts(1, exponent, Rounding::Down).unwrap();
        let prices = [power(below(5) as i32), power(below(5) as i32)];
        let offers: Vec<_> = (0..below(12)).map(|id| (below(2) as u16, below(12) as i32 - 6, (1 + below(1_000)) << 12, id)).collect();
        let build = |by: i32| {
            let side = |of: u16| if of == asset { by } else { 0 };
            let sells: Vec<_> = offers.iter().map(|&(sell, limit, units, id)| {
                let units = Amount::new(units << side(sell)).unwrap();
                let offer = Offer::new(power(limit - side(sell) + side(1 - sell)), 0, OfferId(id), units).unwrap();
                (Pair { sell: AssetIndex(sell), buy: AssetIndex(1 - sell) }, offer)
            }).collect();
            BatchMarket::build(2, &sells, &[], Vec::new()).unwrap()
        };
        let shifted = |price: BatchPrice, by: i32| {
            let (m, e) = price.parts();
            BatchPrice::from_parts(m, e - by, Rounding::Down).unwrap()
        };
        let (coarse, fine) = (build(0), build(by));
        let rules = greedy::best_effort(&generate::rules(below));
        let rules = Rules { edition: Edition::NEWEST, commission: Commission::NONE, ..rules };
        let proposal = greedy::propose(&coarse, &prices.map(Some), &rules);
        let mut same = proposal.clone();
        same.prices[usize::from(asset)] = Some(shifted(prices[usize::from(asset)], by));
        for trade in same.trades.iter_mut().filter(|trade| trade.pair.sell.0 == asset) {
            trade.sold = Amount::new(trade.sold.get() << by).unwrap();
        }
        let (before, after) = (verify(&coarse, &proposal, &rules).unwrap(), verify(&fine, &same, &rules).unwrap());
        prop_assert_eq!(before.shortfall().pair_count, after.shortfall().pair_count);
        let (before, after) = (outcome(&before), outcome(&after));
        for ((pair, coarse, _), (_, fine, _)) in before.fills.iter().zip(&after.fills) {
            let times = |of: AssetIndex| if of.0 == asset { 1_u64 << by } else { 1 };
            for (coarse, fine) in coarse.iter().zip(fine) {
                prop_assert_eq!((coarse.id, coarse.sold.get() * times(pair.sell)), (fine.id, fine.sold.get()));
                prop_assert_eq!(coarse.bought.get() * times(pair.buy), fine.bought.get());
            }
        }
        prop_assert_eq!(before.fills.len(), after.fills.len());
    }

    /// No arbitrage: whoever trades round a cycle at a batch's rates, selling or buying, ends with no more than at the start.
    #[test]
    fn a_cycle_never_gains(bytes in entropy(), start in 0..=AMOUNT_MAX) {
        let below: Below<'_> = &mut choices(&bytes);
        let (prices, commission) = (generate::prices(below), generate::rules(below).commission);
        let assets: Vec<usize> = (0..1 + below(6)).map(|_| below(prices.len() as u64) as usize).collect();
        let rates = (0..assets.len()).map(|at| {
            let (sell, buy) = (assets[at], assets[(at + 1) % assets.len()]);
            NetRate::new(prices[sell], prices[buy], commission).unwrap()
        });
        let rates: Vec<_> = rates.collect();
        let start = Amount::new(start >> below(63)).unwrap();
        let end = rates.iter().try_fold(start, |units, rate| rate.bought_down(units));
        prop_assert!(end.is_none_or(|end| end <= start));
        let cost = rates.iter().rev().try_fold(start, |units, rate| rate.sold_up(units));
        prop_assert!(cost.is_none_or(|cost| cost >= start));
    }

    /// The part that is advised keeps the limit, and is the largest, or short by less than the smallest such part.
    #[test]
    fn advised_parts_keep_their_limits(bytes in entropy(), part in 1..3_000_u64) {
        let below: Below<'_> = &mut choices(&bytes);
        let prices = [1 + below(300), 1 + below(300)].map(|units| BatchPrice::from_parts(units, below(8) as i32, Rounding::Up).unwrap());
        let commission = generate::rules(below).commission;
        let rate = NetRate::new(prices[0], prices[1], commission).unwrap();
        let highest = rate.highest_limit();
        let width = 1 + below(52);
        let limit = BatchPrice::from_bits(highest.bits() - below(1 << width)).unwrap_or(highest);
        let (exact, least, part) = (net_rate(prices[0], prices[1], commission), value(limit), Amount::new(part).unwrap());
        let sells = |sold: u64| (whole(sold) * &exact).floor() >= whole(sold) * &least;
        let buys = |bought: u64| (whole(bought) / &exact).ceil() * &least <= whole(bought);
        check_advice(honourable_sold(PartLimit::OfKey(limit), &rate, part).get(), part.get(), sells)?;
        check_advice(honourable_bought(PartLimit::OfKey(limit), &rate, part).get(), part.get(), buys)?;
    }

    #[test]
    fn a_pools_most_is_accepted_and_one_more_is_not(bytes in entropy()) {
        let below: Below<'_> = &mut choices(&bytes);
        let Case { parts, market, prices, rules } = case(below);
        let rules = greedy::best_effort(&rules);
        for (pool, index) in parts.pools.iter().zip(0..) {
            let side = [walras_clearing::PoolSide::First, walras_clearing::PoolSide::Second][below(2) as usize];
            let pair = pool.pair(side);
            let rate = NetRate::new(prices[pair.sell.index()], prices[pair.buy.index()], rules.commission).unwrap();
            let most = pool.sold_most(side, &rate);
            let pools = |units: u64| vec![PoolTrade { pool: walras_clearing::PoolIndex(index), side, sold: Amount::new(units).unwrap() }];
            let proposal = |units: u64| Proposal { prices: prices.iter().copied().map(Some).collect(), trades: vec![], pools: pools(units) };
            let more = verify(&market, &proposal(most.get() + 1), &rules).map(|verified| outcome(&verified));
            let is_told = matches!(more, Err(Rejected::PoolSoldTooMuch { most: told, .. }) if told == most);
            prop_assert!(is_told || matches!(more, Err(Rejected::PoolOverflow(_))), "{:?}", more);
            let all = verify(&market, &proposal(most.get()), &rules).map(|verified| outcome(&verified));
            prop_assert!(!matches!(all, Err(Rejected::PoolSoldTooMuch { .. })), "{:?}", all);
        }
    }

    /// Changing a market offer by offer, or all at once, or building it: the same market.
    #[test]
    fn a_changed_market_is_the_market_built_so(bytes in entropy()) {
        let below: Below<'_> = &mut choices(&bytes);
        let Case { parts, market, .. } = case(below);
        let stays: Vec<bool> = (0..parts.sells.len() + parts.buys.len()).map(|_| below(3) > 0).collect();
        let (stay_sells, stay_buys) = stays.split_at(parts.sells.len());
        let kept = Parts {
            sells: parts.sells.iter().zip(stay_sells).filter(|(_, stays)| **stays).map(|(stated, _)| *stated).collect(),
            buys: parts.buys.iter().zip(stay_buys).filter(|(_, stays)| **stays).map(|(stated, _)| *stated).collect(),
            ..parts.clone()
        };
        let few = generate::market(&kept);
        let mut changed = market.clone();
        let gone = parts.sells.iter().zip(stay_sells).filter(|(_, stays)| !**stays).map(|(stated, _)| (stated.pair, stated.offer));
        let gone_buys = parts.buys.iter().zip(stay_buys).filter(|(_, stays)| !**stays).map(|(stated, _)| (stated.pair, stated.offer));
        let (gone, gone_buys): (Vec<(Pair, Offer)>, Vec<(Pair, BuyOffer)>) = (gone.collect(), gone_buys.collect());
        for pair in market.books().iter().map(|book| book.pair()) {
            let sells = gone.iter().filter(|(of, _)| *of == pair).map(|(_, offer)| offer.key());
            let buys = gone_buys.iter().filter(|(of, _)| *of == pair).map(|(_, offer)| offer.key());
            let (sells, buys) = (sells.collect(), buys.collect());
            let change = |removed| walras_clearing::Change { removed, added: vec![] };
            changed.change_pair(pair, change(sells), walras_clearing::Change { removed: buys, added: vec![] }).unwrap();
        }
        prop_assert_eq!(&changed, &few);
        for (pair, offer) in gone {
            let added = walras_clearing::Change { removed: vec![], added: vec![offer] };
            changed.change_pair(pair, added, walras_clearing::Change::default()).unwrap();
        }
        for (pair, offer) in gone_buys {
            let added = walras_clearing::Change { removed: vec![], added: vec![offer] };
            changed.change_pair(pair, walras_clearing::Change::default(), added).unwrap();
        }
        prop_assert_eq!(changed, market);
    }
}

fn check_advice(advised: u64, part: u64, is_honoured: impl Fn(u64) -> bool) -> Result<(), TestCaseError> {
    prop_assert!(advised <= part && (advised == 0 || is_honoured(advised)), "{} of {}", advised, part);
    let (smallest, largest) = ((1..=part).find(|&units| is_honoured(units)), (1..=part).rev().find(|&units| is_honoured(units)));
    match (smallest, largest) {
        (Some(smallest), Some(largest)) => {
            prop_assert!(advised <= largest && largest - advised < smallest, "{advised} of {largest}")
        }
        _ => prop_assert_eq!(advised, 0),
    }
    Ok(())
}

/// Shows that the properties above see accepted and rejected proposals of every kind.
#[test]
fn generated_proposals_reach_every_verdict() {
    let mut state = 1_u64;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) % bound.min(1 << 53)
    };
    let (mut numbers, mut filled, mut cleared) = (std::collections::BTreeMap::<u16, u32>::new(), 0, 0);
    for _ in 0..8_000 {
        let Case { market, prices, rules, .. } = case(&mut below);
        let mut proposal = generate::right_proposal(&mut below, &market, &prices, &rules);
        for _ in 0..=below(3) {
            match verify(&market, &proposal, &rules) {
                Ok(verified) => {
                    filled += u32::from(!verified.pairs().is_empty());
                    cleared += u32::from(verified.pairs().len() > 2 && verified.shortfall().pair_count == 0);
                }
                Err(rejected) => *numbers.entry(rejected.number()).or_default() += 1,
            }
            generate::disturb(&mut below, &mut proposal);
        }
    }
    let seen: Vec<u16> = numbers.keys().copied().collect();
    assert_eq!(seen, (1..=18).collect::<Vec<_>>(), "{numbers:?}");
    assert!(filled > 1_000 && cleared > 20, "{filled} {cleared}");
}
