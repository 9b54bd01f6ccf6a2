//! Small markets and proposals made of choices, biased to where a clearing goes wrong: equal limits, simple rates, amounts at both
//! ends, prices at the ends of their range, proposals a little beside a right one.

use walras_clearing::{
    AssetIndex, BatchMarket, BuyOffer, Edition, LowerBounds, Offer, OfferId, Pair, PairTrade, Pool, PoolIndex, PoolRule, PoolSide,
    PoolTrade, Proposal, Rules,
};
use walras_types::{Amount, BatchPrice, Commission, Mu, Rounding, limits::AMOUNT_MAX};

use super::greedy;
use super::naive::{Parts, Stated};

/// Gives a number below its argument.
pub(crate) type Below<'a> = &'a mut dyn FnMut(u64) -> u64;

const OFFERS_MAX: u64 = 24;
const POOLS_MAX: u64 = 3;

fn units(below: Below<'_>, bits_max: u64) -> u64 {
    match below(8) {
        0..=2 => 1 + below(12),
        3..=5 => 1 + below(1_000_000),
        6 => 1 + below(1 << bits_max),
        _ => (1_u64 << below(bits_max)).saturating_add(below(3)),
    }
}

fn simple_price(below: Below<'_>) -> BatchPrice {
    BatchPrice::from_ratio(1 + u128::from(below(8)), 1 + u128::from(below(8)), Rounding::Up).expect("near one")
}

fn any_price(below: Below<'_>) -> BatchPrice {
    match below(12) {
        0..=7 => simple_price(below),
        8 => [BatchPrice::MIN, BatchPrice::MAX][below(2) as usize],
        9 => BatchPrice::from_parts((1 << 52) + below(1 << 52), below(170) as i32 - 140, Rounding::Down).expect("in range"),
        10 => BatchPrice::from_parts((1 << 52) + below(1 << 52), -52, Rounding::Down).expect("near one"),
        _ => BatchPrice::from_parts(1, below(80) as i32 - 40, Rounding::Down).expect("in range"),
    }
}

/// A limit at, next to, or near the ratio of two prices; or none at all.
fn limit(below: Below<'_>, sell: BatchPrice, buy: BatchPrice) -> BatchPrice {
    let ((sell_m, sell_e), (buy_m, buy_e)) = (sell.parts(), buy.parts());
    let ratio = BatchPrice::from_ratio(sell_m.into(), buy_m.into(), Rounding::Up).expect("near one");
    let (m, e) = ratio.parts();
    let Ok(ratio) = BatchPrice::from_parts(m, e + sell_e - buy_e, Rounding::Up) else { return any_price(below) };
    let steps = |bits: u64| BatchPrice::from_bits(ratio.bits().wrapping_add(bits)).unwrap_or(ratio);
    match below(10) {
        0 => BatchPrice::ZERO,
        1 => any_price(below),
        2 => steps(below(5).wrapping_sub(2)),
        3..=6 => steps((below(1 << 50)).wrapping_neg()),
        7 => steps((below(1 << 44)).wrapping_neg()),
        _ => steps(below(1 << 50)),
    }
}

fn pair(below: Below<'_>, asset_count: usize) -> Pair {
    let sell = below(asset_count as u64) as u16;
    let other = below(asset_count as u64 - 1) as u16;
    Pair { sell: AssetIndex(sell), buy: AssetIndex(if other >= sell { other + 1 } else { other }) }
}

/// What stands; of each asset no more than an amount is for sale.
pub(crate) fn parts(below: Below<'_>, prices: &[BatchPrice]) -> Parts {
    let asset_count = prices.len();
    let mut parts = Parts { asset_count, ..Parts::default() };
    let mut left = vec![AMOUNT_MAX; asset_count];
    for number in 0..below(OFFERS_MAX + 1) {
        let pair = pair(below, asset_count);
        let limit = limit(below, prices[pair.sell.index()], prices[pair.buy.index()]);
        let sold = units(below, 62).min(left[pair.sell.index()]);
        let (sold, tie, id) = (Amount::new(sold).expect("for sale"), below(3), OfferId(number));
        let stands = if below(4) > 0 {
            Offer::new(limit, tie, id, sold).map(|offer| parts.sells.push(Stated { pair, limit, offer })).is_ok()
        } else {
            let bought = Amount::new(units(below, 63).min(AMOUNT_MAX)).expect("an amount");
            BuyOffer::new(limit, tie, id, bought, sold).map(|offer| parts.buys.push(Stated { pair, limit, offer })).is_ok()
        };
        if stands {
            left[pair.sell.index()] -= sold.get();
        }
    }
    for _ in 0..below(POOLS_MAX) {
        let Pair { sell, buy } = pair(below, asset_count);
        let reserves = [(sell, units(below, 61)), (buy, units(below, 61))].map(|(asset, units)| units.min(left[asset.index()]));
        if !reserves.contains(&0) {
            left[sell.index()] -= reserves[0];
            left[buy.index()] -= reserves[1];
            let fee_ppm = [0, 1, 3_000, 500_000, 999_999][below(5) as usize];
            let reserves = reserves.map(|units| Amount::new(units).expect("for sale"));
            parts.pools.push(Pool { assets: [sell, buy], rule: pool_rule(below), reserves, fee_ppm });
        }
    }
    parts
}

/// A rule of any kind.
fn pool_rule(below: Below<'_>) -> PoolRule {
    match below(4) {
        0 => PoolRule::Weighted { weights: [1 + below(9) as u16, 1 + below(9) as u16] },
        1 => PoolRule::StableSwap { amplification: 1 << below(20) },
        _ => PoolRule::ConstantProduct,
    }
}

/// The market of these parts.
pub(crate) fn market(parts: &Parts) -> BatchMarket {
    let sells: Vec<_> = parts.sells.iter().map(|stated| (stated.pair, stated.offer)).collect();
    let buys: Vec<_> = parts.buys.iter().map(|stated| (stated.pair, stated.offer)).collect();
    BatchMarket::build(parts.asset_count, &sells, &buys, parts.pools.clone()).expect("the parts are sound")
}

/// Valuations of two to five assets.
pub(crate) fn prices(below: Below<'_>) -> Vec<BatchPrice> {
    (0..2 + below(4)).map(|_| any_price(below)).collect()
}

/// Rules of all kinds.
pub(crate) fn rules(below: Below<'_>) -> Rules {
    Rules {
        edition: [Edition::First, Edition::Second][below(2) as usize],
        commission: Commission::new(below(31) as u8).unwrap_or(Commission::NONE),
        mu: Mu::new(1 + below(30) as u8).expect("1 to 30"),
        lower_bounds: [LowerBounds::BestEffort, LowerBounds::Required][below(2) as usize],
    }
}

/// A right proposal at these prices, some of them left out or moved.
pub(crate) fn right_proposal(below: Below<'_>, market: &BatchMarket, prices: &[BatchPrice], rules: &Rules) -> Proposal {
    let mut priced = |price: BatchPrice| match below(16) {
        0 => None,
        1 => Some(BatchPrice::from_bits(price.bits() + 1).unwrap_or(price)),
        2 => Some(BatchPrice::from_bits(price.bits() + (1 << 47)).unwrap_or(price)),
        _ => Some(price),
    };
    let prices: Vec<_> = prices.iter().map(|&price| priced(price)).collect();
    greedy::propose(market, &prices, rules)
}

fn moved(below: Below<'_>, units: Amount) -> Amount {
    let moved = match below(5) {
        0 => units.get().saturating_add(1),
        1 => units.get().saturating_sub(1),
        2 => units.get() / 2,
        3 => self::units(below, 63),
        _ => below(AMOUNT_MAX + 1),
    };
    Amount::new(moved.min(AMOUNT_MAX)).expect("an amount")
}

/// Makes one change that may or may not be right.
pub(crate) fn disturb(below: Below<'_>, proposal: &mut Proposal) {
    let asset_count = proposal.prices.len().max(1) as u64 + below(40) / 39;
    match below(12) {
        0..=4 if !proposal.trades.is_empty() => {
            let at = below(proposal.trades.len() as u64) as usize;
            let trade = &mut proposal.trades[at];
            let which = if below(3) > 0 { &mut trade.sold } else { &mut trade.bought_by_buy_offers };
            *which = moved(below, *which);
        }
        5 if !proposal.trades.is_empty() => {
            let at = below(proposal.trades.len() as u64) as usize;
            let trade = proposal.trades.remove(at);
            if below(4) == 0 {
                proposal.trades.push(trade);
            }
        }
        6..=7 => {
            let asset = |below: Below<'_>| AssetIndex(below(asset_count) as u16);
            let pair = Pair { sell: asset(below), buy: asset(below) };
            let trade = PairTrade { pair, sold: moved(below, Amount::ZERO), bought_by_buy_offers: moved(below, Amount::ZERO) };
            let at = proposal.trades.partition_point(|other| other.pair < pair);
            proposal.trades.insert(at, trade);
        }
        8 if !proposal.prices.is_empty() => {
            let at = below(proposal.prices.len() as u64) as usize;
            proposal.prices[at] = [None, Some(BatchPrice::ZERO), Some(any_price(below)), Some(BatchPrice::MAX)][below(4) as usize];
        }
        9 if below(8) == 0 => proposal.prices.truncate(1),
        10 if !proposal.pools.is_empty() => {
            let at = below(proposal.pools.len() as u64) as usize;
            proposal.pools[at].sold = moved(below, proposal.pools[at].sold);
        }
        11 => {
            let side = [PoolSide::First, PoolSide::Second][below(2) as usize];
            let pool = PoolIndex(below(POOLS_MAX) as u32);
            proposal.pools.push(PoolTrade { pool, side, sold: moved(below, Amount::ZERO) });
        }
        _ => {}
    }
}
