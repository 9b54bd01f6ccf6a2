//! A batch market as the price solver sees it, and the solver's prices as the core sees them.
//!
//! The solver's window ends at the ratio of two prices, but offers trade when their limit holds at the net rate, after commission. So
//! limits are handed over divided by `1 - eps`, and `mu` is what is left of it between the net rate and the bound below which offers must
//! trade. Where `mu` is not above `eps`, nothing is left.

use walras_clearing::{AssetIndex, BatchMarket, Pair, PairBook};
use walras_price_solver::demand::{DemandIndex, IndexError};
use walras_price_solver::pool::Pool;
use walras_price_solver::solve::Accuracy;
use walras_types::{Amount, BatchPrice, Commission, Mu};

use crate::pools;

/// The value of a price. Without loss: the bits are those of the float.
pub(crate) fn float(price: BatchPrice) -> f64 {
    f64::from_bits(price.bits())
}

/// The share that the commission leaves, exactly.
pub(crate) fn kept(commission: Commission) -> f64 {
    1.0 - commission.exponent().map_or(0.0, |k| (-f64::from(k)).exp2())
}

/// How the solver sees limits, and the accuracy that it is asked for; see the head of this file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// Limits are divided by it.
    pub(crate) kept: f64,
    pub(crate) accuracy: Accuracy,
}

impl Scale {
    /// Every offer that trades gets at least the share `margin` of mu more than its limit, and still trades in full where it must.
    pub(crate) fn new(commission: Commission, mu: Mu, margin: f64) -> Self {
        let (of_commission, mu) = (kept(commission), (-f64::from(mu.exponent())).exp2());
        let kept = of_commission * (1.0 - margin * mu);
        Self { kept, accuracy: Accuracy { eps: 1.0 - of_commission, mu: (1.0 - (1.0 - mu) / kept).max(0.0) } }
    }
}

/// Sell offers and pools, ready for demand queries; offers of one limit count as one. Limits are divided by what the commission leaves.
///
/// # Errors
/// [`IndexError::TooMany`], when a pair has more than 2^28 offers or all have more than about 2^32.
pub fn demand_index(market: &BatchMarket, commission: Commission) -> Result<DemandIndex, IndexError> {
    Ok(index_with_buys(market, kept(commission), &|_| None, &|| false)?.expect("there is time"))
}

/// What buy offers of a pair count for: nothing, or as if they sold at this rate what they ask for.
pub(crate) type BuyRate<'a> = &'a dyn Fn(Pair) -> Option<f64>;

/// `None` when it is over before all offers are indexed.
pub(crate) fn index_with_buys(
    market: &BatchMarket,
    kept: f64,
    buy_rate: BuyRate<'_>,
    is_over: &dyn Fn() -> bool,
) -> Result<Option<DemandIndex>, IndexError> {
    let mut index = without_offers(market, kept)?;
    index.reserve(market.books().len(), market.books().iter().map(|book| book.sells().as_slice().len()).sum());
    let mut levels = Vec::new();
    for book in market.books() {
        if is_over() {
            return Ok(None);
        }
        collect(book, kept, buy_rate(book.pair()), &mut levels);
        index.push_book(book.pair().sell.index(), book.pair().buy.index(), &levels)?;
    }
    Ok(Some(index))
}

/// An index of the pools alone.
pub(crate) fn without_offers(market: &BatchMarket, kept: f64) -> Result<DemandIndex, IndexError> {
    DemandIndex::empty(market.asset_count(), pools_of(market, kept))
}

pub(crate) fn pools_of(market: &BatchMarket, kept: f64) -> Vec<Pool> {
    market.pools().iter().map(|pool| pools::rule_of(pool, kept)).collect()
}

/// The `(limit, amount)` of a pair, limits strictly ascending.
pub(crate) fn collect(book: &PairBook, kept: f64, buy_rate: Option<f64>, levels: &mut Vec<(f64, f64)>) {
    levels.clear();
    let sells = book.sells().as_slice().iter().map(|offer| (float(offer.key().limit) / kept, units(offer.amount())));
    levels.extend(sells);
    if let Some(rate) = buy_rate {
        levels.extend(book.buys().as_slice().iter().map(|offer| {
            let limit = float(offer.key().limit);
            // At least a unit is sold, as in the core.
            (limit / kept, (units(offer.bought()) / limit.max(rate)).max(1.0))
        }));
        levels.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    }
    join(levels);
}

/// An amount as a float. Amounts are below 2^63, and a processor turns a signed number into a float by one instruction.
fn units(amount: Amount) -> f64 {
    amount.get() as i64 as f64
}

/// Offers of one limit become one, in their order. Mostly there are none, so all are looked at before any moves.
fn join(levels: &mut Vec<(f64, f64)>) {
    let has_equal = levels.iter().zip(levels.iter().skip(1)).fold(false, |any, (lower, higher)| any | (lower.0 == higher.0));
    if has_equal {
        levels.dedup_by(|later, first| {
            let is_equal = later.0 == first.0;
            if is_equal {
                first.1 += later.1;
            }
            is_equal
        });
    }
}

/// Groups of assets between which something stands, as a group number per asset; assets without a price are in none.
pub(crate) fn components(market: &BatchMarket, is_priced: impl Fn(usize) -> bool) -> Vec<Option<usize>> {
    let mut parent: Vec<usize> = (0..market.asset_count()).collect();
    let pools = market.pools().iter().map(|pool| pool.assets);
    let links = market.books().iter().map(|book| [book.pair().sell, book.pair().buy]).chain(pools);
    for [a, b] in links.map(|assets| assets.map(AssetIndex::index)).filter(|&[a, b]| is_priced(a) && is_priced(b)) {
        let (a, b) = (root(&mut parent, a), root(&mut parent, b));
        parent[a.max(b)] = a.min(b);
    }
    (0..market.asset_count()).map(|asset| is_priced(asset).then(|| root(&mut parent, asset))).collect()
}

fn root(parent: &mut [usize], mut asset: usize) -> usize {
    while parent[asset] != asset {
        parent[asset] = parent[parent[asset]];
        asset = parent[asset];
    }
    asset
}

/// The solver's prices in the core's format, without loss: only ratios mean something, so each group of assets is moved, by a power of
/// two, to the middle of the format's range. Where some are further apart than that range, each part is moved by itself, so that the assets with
/// the most offers come to the middle, and what is still outside gets the nearest price inside: a few odd limits leave no others
/// without prices.
#[must_use]
pub fn batch_prices(market: &BatchMarket, prices: &[Option<f64>]) -> Vec<Option<BatchPrice>> {
    let prices: Vec<Option<f64>> = prices.iter().map(|price| price.filter(|price| price.is_normal() && *price > 0.0)).collect();
    let together = scaled(&components(market, |asset| prices[asset].is_some()), &prices);
    if together.iter().zip(&prices).all(|(scaled, price)| scaled.is_some() == price.is_some()) {
        return together;
    }
    // Nothing trades between two parts, so what their prices are to each other matters less than that each has them.
    let parts = market.parts();
    let mut offer_counts = vec![0; prices.len()];
    market.books().iter().for_each(|book| offer_counts[book.pair().sell.index()] += book.sells().as_slice().len());
    let mut alone = vec![None; prices.len()];
    for part in 0..parts.count() {
        let priced = parts.assets(part).filter_map(|asset| Some((asset.index(), prices[asset.index()]?)));
        let mut ascending: Vec<(usize, f64)> = priced.collect();
        ascending.sort_by(|a, b| a.1.total_cmp(&b.1));
        let half = ascending.iter().map(|(asset, _)| offer_counts[*asset]).sum::<usize>().div_ceil(2);
        let mut seen = 0;
        let middle = ascending.iter().find(|(asset, _)| {
            seen += offer_counts[*asset];
            seen >= half
        });
        let Some(middle) = middle.map(|(_, price)| exponent(*price)) else { continue };
        ascending.iter().for_each(|(asset, price)| alone[*asset] = clamped(*price, middle));
    }
    alone
}

/// A price moved so that those of this exponent come to the middle of the range, or the end of the range that is nearest.
fn clamped(price: f64, middle: i32) -> Option<BatchPrice> {
    match exponent(price) - middle {
        ..-126 => Some(BatchPrice::MIN),
        126.. => Some(BatchPrice::MAX),
        _ => BatchPrice::from_bits((price.to_bits() as i64 - (i64::from(middle) << 52)) as u64).ok(),
    }
}

/// Each group moved to the middle of the range; what is in none has no price.
fn scaled(groups: &[Option<usize>], prices: &[Option<f64>]) -> Vec<Option<BatchPrice>> {
    let mut range: Vec<Option<(i32, i32)>> = vec![None; prices.len()];
    let priced = || groups.iter().zip(prices).filter_map(|(group, price)| Some(((*group)?, (*price)?)));
    for (group, price) in priced() {
        let exponent = exponent(price);
        let (low, high) = range[group].unwrap_or((exponent, exponent));
        range[group] = Some((low.min(exponent), high.max(exponent)));
    }
    let scaled = |group: Option<usize>, price: Option<f64>| {
        let (price, (low, high)) = (price?, range[group?]?);
        let bits = (price.to_bits() as i64) - (i64::from((low + high).div_euclid(2)) << 52);
        BatchPrice::from_bits(u64::try_from(bits).ok()?).ok().filter(|price| !price.is_zero())
    };
    groups.iter().zip(prices).map(|(&group, &price)| scaled(group, price)).collect()
}

/// `e` of a normal float `f * 2^e`, `1 <= f < 2`.
fn exponent(value: f64) -> i32 {
    ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn offers_of_one_limit_become_one_as_if_pushed_one_by_one(limits in prop::collection::vec(0_u8..40, 0..60)) {
            let mut limits = limits;
            limits.sort_unstable();
            let mut levels: Vec<(f64, f64)> = (1..).zip(&limits).map(|(id, limit)| (f64::from(*limit), 0.1 * f64::from(id))).collect();
            let mut pushed: Vec<(f64, f64)> = Vec::new();
            for &(limit, amount) in &levels {
                match pushed.last_mut() {
                    Some((last, sum)) if *last == limit => *sum += amount,
                    _ => pushed.push((limit, amount)),
                }
            }
            join(&mut levels);
            prop_assert_eq!(levels, pushed);
        }
    }

    #[test]
    fn amounts_as_floats_are_rounded_as_ever() {
        for units_of in [0, 1, (1 << 53) + 1, (1 << 62) + (1 << 9), Amount::MAX.get()] {
            assert_eq!(units(Amount::new(units_of).unwrap()), units_of as f64);
        }
    }

    #[test]
    fn prices_as_far_apart_as_floats_go_end_at_the_ends_of_the_range() {
        let (least, most) = (f64::MIN_POSITIVE, f64::MAX);
        assert_eq!(clamped(most, exponent(least)), Some(BatchPrice::MAX));
        assert_eq!(clamped(least, exponent(most)), Some(BatchPrice::MIN));
        for price in [least, 1.0, most] {
            let alone = clamped(price, exponent(price)).expect("a price in the middle");
            assert!(BatchPrice::MIN < alone && alone < BatchPrice::MAX, "{price}");
        }
    }
}
