//! Pools: agents that sell either of two assets by a formula, beside the offers.
//!
//! A pool answers a rate with the amount that it sells; it trades at the batch's prices like everyone. Gross substitutability, on
//! which the solvers rest, needs the amount to be non-decreasing in the rate.

use std::fmt;
use std::sync::Arc;

/// Which of a pool's two assets is sold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It sells its first asset and buys the second.
    SellsFirst,
    /// It sells its second asset and buys the first.
    SellsSecond,
}

/// What a pool sells at a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Supply {
    /// Amount sold, from 0 up.
    pub amount: f64,
    /// Its derivative by the logarithm of the rate, from 0 up.
    pub slope: f64,
}

/// A rule that trades two assets: constant functions of reserves and the like.
pub trait TradingRule: fmt::Debug + Send + Sync {
    /// What it sells on a side when one unit sold brings `rate` units of the other asset. Continuous and non-decreasing in the rate,
    /// zero on at least one side for every rate, finite.
    fn supply(&self, side: Side, rate: f64) -> Supply;

    /// A rate at which the rule is content to sell nothing on that side, where one is known: a hint for where prices start.
    fn resting_rate(&self, side: Side) -> Option<f64>;
}

/// A trading rule between two assets of a market.
#[derive(Clone, Debug)]
pub struct Pool {
    /// The first asset.
    pub first: usize,
    /// The second asset.
    pub second: usize,
    /// The rule.
    pub rule: Arc<dyn TradingRule>,
}

impl Pool {
    /// A constant-product pool.
    pub fn constant_product(first: usize, second: usize, rule: ConstantProduct) -> Self {
        Self { first, second, rule: Arc::new(rule) }
    }

    pub(crate) fn check(&self, asset_count: usize) -> Result<(), &'static str> {
        if self.first >= asset_count || self.second >= asset_count {
            return Err("it names an asset that the market does not have: number the assets from 0");
        }
        if self.first == self.second {
            return Err("its two assets are the same: a pool trades two different assets");
        }
        Ok(())
    }

    /// Its two sides, under the market's numbers.
    pub(crate) fn sides(&self, pool: u32) -> [PoolSide; 2] {
        let (first, second) = (self.first as u32, self.second as u32);
        let sells_first = PoolSide { sell: first, buy: second, pool, side: Side::SellsFirst };
        [sells_first, PoolSide { sell: second, buy: first, pool, side: Side::SellsSecond }]
    }

    /// The logarithm of [`TradingRule::resting_rate`].
    pub(crate) fn resting_log_rate(&self, side: Side) -> Option<f64> {
        self.rule.resting_rate(side).map(f64::ln).filter(|log| log.is_finite())
    }

    pub(crate) fn supply(&self, side: Side, rate: f64) -> Supply {
        self.rule.supply(side, rate)
    }
}

/// A pool that keeps the product of its reserves from falling, with a fee (Ramseyer, Goyal, Goel, Mazieres, arXiv 2210.04929): at rate
/// `a` it sells `max(0, X sqrt(1 - f) - sqrt(X Y / a))`, of reserves `X` of the sold and `Y` of the bought asset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConstantProduct {
    reserves: [f64; 2],
    kept: f64,
}

impl ConstantProduct {
    /// A pool with these reserves of its first and second asset, and a fee as a fraction: `None` unless reserves are finite and above
    /// zero and the fee lies in `[0, 1)`.
    pub fn new(reserves: [f64; 2], fee: f64) -> Option<Self> {
        let sound = reserves.iter().all(|&reserve| reserve > 0.0 && reserve.is_finite()) && (0.0..1.0).contains(&fee);
        sound.then_some(Self { reserves, kept: (1.0 - fee).sqrt() })
    }
}

impl TradingRule for ConstantProduct {
    fn supply(&self, side: Side, rate: f64) -> Supply {
        let [sold, bought] = match side {
            Side::SellsFirst => self.reserves,
            Side::SellsSecond => [self.reserves[1], self.reserves[0]],
        };
        // The reserve of the sold asset at which the pool's own price is the rate.
        let left = (sold / rate).sqrt() * bought.sqrt();
        let amount = sold * self.kept - left;
        if amount > 0.0 { Supply { amount, slope: 0.5 * left } } else { Supply { amount: 0.0, slope: 0.0 } }
    }

    fn resting_rate(&self, side: Side) -> Option<f64> {
        Some(match side {
            Side::SellsFirst => self.reserves[1] / self.reserves[0],
            Side::SellsSecond => self.reserves[0] / self.reserves[1],
        })
    }
}

/// One side of a pool, in a block's numbering.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolSide {
    pub(crate) sell: u32,
    pub(crate) buy: u32,
    pub(crate) pool: u32,
    pub(crate) side: Side,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_holds_still_at_its_own_price_and_never_loses_its_product() {
        let pool = ConstantProduct::new([100.0, 400.0], 0.0).unwrap();
        for rate in [0.5, 1.0, 3.999, 4.0, 4.001, 8.0, 1e30] {
            let first = pool.supply(Side::SellsFirst, rate);
            let second = pool.supply(Side::SellsSecond, 1.0 / rate);
            assert!(first.amount == 0.0 || second.amount == 0.0);
            let (x, y) = (100.0 - first.amount + second.amount / rate, 400.0 + first.amount * rate - second.amount);
            assert!(x > 0.0 && y > 0.0 && x * y >= 40_000.0 * (1.0 - 1e-12), "{rate}: {x} {y}");
            let step = 1e-7;
            let slope = (pool.supply(Side::SellsFirst, rate * (1.0 + step)).amount - first.amount) / step;
            assert!((slope - first.slope).abs() <= 1e-4 * (1.0 + first.slope) || first.amount == 0.0, "{rate}");
        }
        // Within the fee of its own price it does nothing.
        let pool = ConstantProduct::new([100.0, 400.0], 0.01).unwrap();
        assert_eq!(pool.supply(Side::SellsFirst, 4.0 / 0.995).amount, 0.0);
        assert!(pool.supply(Side::SellsFirst, 4.0 / 0.98).amount > 0.0);
        assert_eq!(ConstantProduct::new([0.0, 1.0], 0.0), None);
        assert_eq!(ConstantProduct::new([1.0, 1.0], 1.0), None);
    }
}
