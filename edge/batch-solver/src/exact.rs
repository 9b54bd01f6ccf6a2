//! Prices whose ratios are exact fractions.
//!
//! Without commission, offers whose limits meet at one rate trade at that rate alone: 10,000 sold at 0.8 or more for what another sells
//! 8,000 of at 1.25 or more. The solver's prices are floats, and no float is 4 / 5, but a ratio of two prices is: of 4 and 5. So
//! limits that close a cycle without leaving anything over are looked for near the rates that were found, or among the lowest
//! limits, and prices are made of whole numbers that give these rates exactly.
//!
//! Whether anything is won by it, amounts at both prices say; see `clear.rs`.

use walras_clearing::{AssetIndex, BatchMarket, LeastRatio, PairBook, Stands};
use walras_types::{BatchPrice, Rounding};

use crate::index::float;

/// How near to a rate a limit must be, as a share of it: solvers find rates that clear to less.
const NEAR: f64 = 1e-6;
/// Limits of a pair that are looked at, on either side of the rate.
const LIMITS_MAX: usize = 8;
/// Bits of a price.
const PRICE_BITS: u32 = 53;

/// A limit near the rate: `price[sell] * ratio.sold = price[buy] * ratio.bought` at which it just holds.
#[derive(Clone, Copy, Debug)]
struct Edge {
    sell: usize,
    buy: usize,
    ratio: LeastRatio,
    /// What stands behind it, in value.
    worth: f64,
    /// Whether it is near the rate that was found, not only among the lowest of its pair.
    is_near: bool,
    /// Whether somebody sells the other way at just this rate.
    is_met: bool,
}

/// Prices at which limits that close a cycle all just hold, near the prices given; `None` where no limits close one, or when it is over
/// before they are joined. In the worst case each limit is tried with all assets that are joined already.
pub(crate) fn at_limits(
    market: &BatchMarket,
    prices: &[Option<BatchPrice>],
    is_over: &dyn Fn() -> bool,
) -> Option<Vec<Option<BatchPrice>>> {
    // Where nothing trades at other rates, assets may have no prices yet.
    let parts = market.parts();
    let is_in_part = |asset: u16| parts.of(AssetIndex(asset)).is_some();
    let or_any = |(asset, price): (u16, &Option<BatchPrice>)| price.or_else(|| is_in_part(asset).then_some(BatchPrice::ONE));
    let known: Vec<Option<BatchPrice>> = (0..).zip(prices).map(or_any).collect();
    let mut edges: Vec<Edge> = market.books().iter().flat_map(|book| near_limits(book, &known)).collect();
    let reverse = |edge: &Edge| edges.partition_point(|other| (other.sell, other.buy) < (edge.buy, edge.sell));
    let meets = |edge: &Edge| {
        let mut back = edges[reverse(edge)..].iter().take_while(|other| (other.sell, other.buy) == (edge.buy, edge.sell));
        back.any(|other| is_met(edge.ratio, other.ratio))
    };
    let met: Vec<bool> = edges.iter().map(meets).collect();
    edges.iter_mut().zip(met).for_each(|(edge, is_met)| edge.is_met = is_met);
    edges.sort_by(|a, b| {
        (b.is_met, b.is_near)
            .cmp(&(a.is_met, a.is_near))
            .then(b.worth.total_cmp(&a.worth))
            .then((a.sell, a.buy).cmp(&(b.sell, b.buy)))
    });

    let of_all = Groups::joined(prices.len(), &edges, is_over)?;
    let mut tight: Vec<Edge> = edges.into_iter().filter(|edge| of_all.is_tight(edge)).collect();
    keep_cycles(prices.len(), &mut tight, is_over)?;
    if tight.is_empty() {
        return None;
    }
    Groups::joined(prices.len(), &tight, is_over)?.prices(prices, &known)
}

/// Limits of a pair's sell offers near its rate, and the lowest ones; the same once.
fn near_limits(book: &PairBook, prices: &[Option<BatchPrice>]) -> Vec<Edge> {
    let (sell, buy) = (book.pair().sell.index(), book.pair().buy.index());
    let (Some(sell_price), Some(buy_price)) = (prices[sell].map(float), prices[buy].map(float)) else { return Vec::new() };
    let rate = sell_price / buy_price;
    let offers = book.sells().as_slice();
    let middle = offers.partition_point(|offer| float(offer.key().limit) <= rate);
    let is_near = |limit: f64| (limit / rate - 1.0).abs() <= NEAR;
    let around = &offers[middle.saturating_sub(LIMITS_MAX)..(middle + LIMITS_MAX).min(offers.len())];
    let near = around.iter().filter(|offer| is_near(float(offer.key().limit)));
    // Where nothing trades at other rates, the rate that was found may be any.
    let lowest = offers.iter().take(LIMITS_MAX).filter(|offer| !offer.key().limit.is_zero());
    let mut edges: Vec<Edge> = Vec::new();
    for (offer, is_near) in near.map(|offer| (offer, true)).chain(lowest.map(|offer| (offer, false))) {
        let (ratio, worth) = (offer.least_ratio(), offer.amount().get() as f64 * sell_price);
        match edges.iter_mut().find(|edge| is_same(edge.ratio, ratio)) {
            Some(edge) => edge.worth += worth,
            None => edges.push(Edge { sell, buy, ratio, worth, is_near, is_met: false }),
        }
    }
    edges
}

fn wide(amount: walras_types::Amount) -> u128 {
    u128::from(amount.get())
}

fn is_same(a: LeastRatio, b: LeastRatio) -> bool {
    wide(a.bought) * wide(b.sold) == wide(b.bought) * wide(a.sold)
}

/// Whether one sells at just the rate at which the other, which sells the other way, does.
fn is_met(a: LeastRatio, b: LeastRatio) -> bool {
    wide(a.bought) * wide(b.bought) == wide(a.sold) * wide(b.sold)
}

/// Leaves those that what is bought by each of them is sold by another of them, and the other way round, for the others are on no cycle.
/// `None` when it is over before: of a long row of limits each round takes the ends alone.
fn keep_cycles(asset_count: usize, edges: &mut Vec<Edge>, is_over: &dyn Fn() -> bool) -> Option<()> {
    while !is_over() {
        let (mut sold, mut bought) = (vec![false; asset_count], vec![false; asset_count]);
        for edge in edges.iter() {
            sold[edge.sell] = true;
            bought[edge.buy] = true;
        }
        let count = edges.len();
        edges.retain(|edge| bought[edge.sell] && sold[edge.buy]);
        if edges.len() == count {
            return Some(());
        }
    }
    None
}

/// Assets between which rates are exact, with whole numbers for prices, without a common factor in a group.
struct Groups {
    group_of: Vec<usize>,
    members: Vec<Vec<usize>>,
    prices: Vec<u128>,
}

impl Groups {
    /// Each edge joins the groups of its assets, in the order of edges, where the prices stay prices. `None` when it is over before.
    fn joined(asset_count: usize, edges: &[Edge], is_over: &dyn Fn() -> bool) -> Option<Self> {
        let members = (0..asset_count).map(|asset| vec![asset]).collect();
        let mut groups = Self { group_of: (0..asset_count).collect(), members, prices: vec![1; asset_count] };
        for edge in edges.iter().filter(|edge| !edge.ratio.bought.is_zero()) {
            if groups.are_apart(edge) {
                if is_over() {
                    return None;
                }
                groups.join(edge);
            }
        }
        Some(groups)
    }

    fn are_apart(&self, edge: &Edge) -> bool {
        self.group_of[edge.sell] != self.group_of[edge.buy]
    }

    fn is_tight(&self, edge: &Edge) -> bool {
        let sides = [(edge.sell, edge.ratio.sold), (edge.buy, edge.ratio.bought)];
        let [sold, bought] = sides.map(|(asset, units)| self.prices[asset].checked_mul(wide(units)));
        !self.are_apart(edge) && sold.is_some() && sold == bought
    }

    /// Of two groups that are apart.
    fn join(&mut self, edge: &Edge) {
        let (of_sell, of_buy) = (self.group_of[edge.sell], self.group_of[edge.buy]);
        let by_sell = self.prices[edge.buy].checked_mul(wide(edge.ratio.bought));
        let by_buy = self.prices[edge.sell].checked_mul(wide(edge.ratio.sold));
        let Some((by_sell, by_buy)) = by_sell.zip(by_buy) else { return };
        let scaled = |groups: &Self, group: usize, by: u128| -> Option<Vec<(usize, u128)>> {
            let members = groups.members[group].iter();
            members.map(|&asset| Some((asset, groups.prices[asset].checked_mul(by)?))).collect()
        };
        let common = greatest_common_divisor(by_sell, by_buy);
        let Some(mut all) = scaled(self, of_sell, by_sell / common) else { return };
        let Some(others) = scaled(self, of_buy, by_buy / common) else { return };
        all.extend(others);
        let common = all.iter().fold(0, |common, (_, price)| greatest_common_divisor(common, *price));
        if all.iter().any(|(_, price)| bits(price / common) > PRICE_BITS) {
            return;
        }
        for (asset, price) in all {
            self.prices[asset] = price / common;
        }
        for asset in std::mem::take(&mut self.members[of_buy]) {
            self.group_of[asset] = of_sell;
            self.members[of_sell].push(asset);
        }
    }

    /// The prices given, but of groups those whole numbers, times what brings them nearest to those known.
    fn prices(&self, given: &[Option<BatchPrice>], known: &[Option<BatchPrice>]) -> Option<Vec<Option<BatchPrice>>> {
        let mut prices = given.to_vec();
        for members in self.members.iter().filter(|members| members.len() > 1) {
            let first = members[0];
            let used = members.iter().map(|asset| bits(self.prices[*asset])).max()?;
            let (mantissa, exponent) = BatchPrice::from_ratio(1, self.prices[first], Rounding::Down).ok()?.parts();
            let (of_first, up) = known[first]?.parts();
            // The first price over its whole number, to as many bits as are left.
            let product = u128::from(mantissa) * u128::from(of_first);
            let spare = (128 - product.leading_zeros()).checked_sub(PRICE_BITS.saturating_sub(used).max(1))?;
            let factor = product >> spare;
            for &asset in members {
                let (price, zeros) = (self.prices[asset], self.prices[asset].trailing_zeros());
                let m = u64::try_from((price >> zeros).checked_mul(factor)?).ok()?;
                let exponent = i32::try_from(spare + zeros).ok()? + exponent + up;
                let rounded = BatchPrice::from_parts(m, exponent, Rounding::Down).ok()?;
                prices[asset] = Some(rounded).filter(|_| 64 - m.leading_zeros() - m.trailing_zeros() <= PRICE_BITS);
                prices[asset]?;
            }
        }
        Some(prices)
    }
}

/// Significant bits, without zeros at the end.
fn bits(number: u128) -> u32 {
    if number == 0 { 0 } else { 128 - number.leading_zeros() - number.trailing_zeros() }
}

fn greatest_common_divisor(a: u128, b: u128) -> u128 {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use walras_clearing::{Offer, OfferId, Pair};
    use walras_types::{Amount, Commission, NetRate};

    use super::*;

    fn sell(from: u16, to: u16, amount: u64, bought: u64) -> (Pair, Offer) {
        let units = Amount::new(amount).unwrap();
        let limit = BatchPrice::limit_of_sale(bought.into(), amount.into(), units).unwrap();
        (Pair { sell: AssetIndex(from), buy: AssetIndex(to) }, Offer::new(limit, 0, OfferId(1), units).unwrap())
    }

    fn prices(prices: &[f64]) -> Vec<Option<BatchPrice>> {
        prices.iter().map(|price| BatchPrice::from_bits(price.to_bits()).ok()).collect()
    }

    /// The rate of a pair brings exactly so much for the amount, and one less than that for one less.
    fn assert_exact(found: &[Option<BatchPrice>], (from, to): (usize, usize), amount: u64, bought: u64) {
        let rate = NetRate::new(found[from].unwrap(), found[to].unwrap(), Commission::NONE).unwrap();
        assert!(rate.pays_at_least(amount.into(), bought.into()) && rate.pays_at_most(amount.into(), bought.into()));
    }

    #[test]
    fn two_limits_that_meet() {
        let market = BatchMarket::build(2, &[sell(0, 1, 10_000, 8_000), sell(1, 0, 8_000, 10_000)], &[], vec![]).unwrap();
        let found = at_limits(&market, &prices(&[0.800_000_01, 1.0]), &|| false).unwrap();
        assert_exact(&found, (0, 1), 10_000, 8_000);
        let moved = float(found[0].unwrap()) / 0.8;
        assert!((moved - 1.0).abs() < 1e-6, "{moved}");
        let from_afar = at_limits(&market, &prices(&[0.9, 1.0]), &|| false).unwrap();
        assert_exact(&from_afar, (0, 1), 10_000, 8_000);
    }

    #[test]
    fn three_limits_that_close_a_cycle() {
        let offers = [sell(0, 1, 1_000, 700), sell(1, 2, 700, 300), sell(2, 0, 300, 1_000), sell(0, 2, 1_001, 299)];
        let market = BatchMarket::build(4, &offers, &[], vec![]).unwrap();
        let found = at_limits(&market, &prices(&[1.0, 1.0 / 0.7, 1.0 / 0.3, 7.0]), &|| false).unwrap();
        for ((from, to), amount, bought) in [((0, 1), 10, 7), ((1, 2), 7, 3), ((2, 0), 3, 10)] {
            assert_exact(&found, (from, to), amount, bought);
        }
        assert_eq!(found[3], prices(&[7.0])[0], "what is in no cycle keeps its price");
    }

    #[test]
    fn nothing_is_joined_after_the_deadline() {
        let offers = [sell(0, 1, 1_000, 700), sell(1, 2, 700, 300), sell(2, 0, 300, 1_000)];
        let market = BatchMarket::build(3, &offers, &[], vec![]).unwrap();
        let near = prices(&[1.0, 1.0 / 0.7, 1.0 / 0.3]);
        let by_a_clock = |strikes_at: usize| {
            let looks = Cell::new(0);
            let is_over = || looks.replace(looks.get() + 1) >= strikes_at;
            let found = at_limits(&market, &near, &is_over);
            (found.is_some(), looks.get())
        };
        let (is_found, looks) = by_a_clock(usize::MAX);
        assert!(is_found && looks == 5, "two assets join a third among all limits, and where the cycle is found: {looks}");
        for strikes_at in 0..looks {
            assert_eq!(by_a_clock(strikes_at), (false, strikes_at + 1));
        }
    }

    #[test]
    fn limits_that_leave_something_over_are_left_alone() {
        let offers = [sell(0, 1, 10_000, 8_000), sell(1, 0, 8_000, 9_999)];
        let market = BatchMarket::build(2, &offers, &[], vec![]).unwrap();
        assert_eq!(at_limits(&market, &prices(&[0.8, 1.0]), &|| false), None);
    }

    #[test]
    fn prices_that_would_need_more_bits_than_there_are_join_nothing() {
        // Each step brings two prime factors more.
        let primes = [1_000_003, 1_000_033, 1_000_037, 1_000_039, 1_000_081, 1_000_099_u64];
        let offers: Vec<(Pair, Offer)> = primes
            .windows(2)
            .zip(0..)
            .flat_map(|(two, asset)| [sell(asset, asset + 1, two[0], two[1]), sell(asset + 1, asset, two[1], two[0])])
            .collect();
        let market = BatchMarket::build(primes.len(), &offers, &[], vec![]).unwrap();
        let near: Vec<f64> = primes.iter().map(|prime| 1e6 / *prime as f64).collect();
        let found = at_limits(&market, &prices(&near), &|| false).unwrap();
        let found: Vec<BatchPrice> = found.into_iter().map(Option::unwrap).collect();
        let is_exact = |at: &usize| {
            let rate = NetRate::new(found[*at], found[at + 1], Commission::NONE).unwrap();
            let (sold, bought) = (primes[*at].into(), primes[at + 1].into());
            rate.pays_at_least(sold, bought) && rate.pays_at_most(sold, bought)
        };
        let exact_count = (0..primes.len() - 1).filter(is_exact).count();
        assert!((3..5).contains(&exact_count), "three assets fit a price's bits, four do not: {exact_count}");
    }
}
