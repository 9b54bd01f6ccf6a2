//! The pools of a batch market as the price solver sees them: what the core lets each sell at a rate, in floats.
//!
//! At the net rate `r` a pool with reserves `x` and `y` sells the `s` for which its price for the last unit is `r (1 - fee)`. The price depends
//! on the ratio of the reserves alone: so that ratio `t` is found first. A weighted pool has it after the trade, so `s` is from
//! `y + r s = t (x - s)`; a stable swap on its curve, so its value with `x - s` and `t (x - s)` is that with `x` and `y`.

use std::sync::Arc;

use walras_clearing::PoolRule;
use walras_price_solver::pool::{Pool, Side, Supply, TradingRule};

/// A pool that asks its price and its fee of the net rate, which is the rate times `kept`.
pub(crate) fn rule_of(pool: &walras_clearing::Pool, kept: f64) -> Pool {
    let [first, second] = pool.assets.map(walras_clearing::AssetIndex::index);
    let reserves = pool.reserves.map(|reserve| reserve.get() as f64);
    let asked = 1.0 - f64::from(pool.fee_ppm) / 1e6;
    let rule: Arc<dyn TradingRule> = match pool.rule {
        PoolRule::ConstantProduct => Arc::new(BatchPool { reserves, asked, kept, curve: Weighted { weights: [1.0, 1.0] } }),
        PoolRule::Weighted { weights } => {
            Arc::new(BatchPool { reserves, asked, kept, curve: Weighted { weights: weights.map(f64::from) } })
        }
        PoolRule::StableSwap { amplification } => {
            Arc::new(BatchPool { reserves, asked, kept, curve: StableSwap { n: 4.0 * f64::from(amplification) } })
        }
    };
    Pool { first, second, rule }
}

/// What a pool sells at a price for its last unit.
trait Curve: std::fmt::Debug + Send + Sync {
    /// The price at a ratio of the reserves, of what is bought to what is sold; it grows with the ratio.
    fn price(&self, side: Side, ratio: f64) -> f64;

    /// What it sells of `x` at the net rate when it asks a share of that for its last unit, above its price at `x` and `y`.
    fn supply(&self, side: Side, reserves: (f64, f64), net: f64, price: f64) -> Supply;
}

#[derive(Debug)]
struct Weighted {
    weights: [f64; 2],
}

impl Weighted {
    /// The weight of what is sold over that of what is bought.
    fn share(&self, side: Side) -> f64 {
        match side {
            Side::SellsFirst => self.weights[0] / self.weights[1],
            Side::SellsSecond => self.weights[1] / self.weights[0],
        }
    }
}

impl Curve for Weighted {
    fn price(&self, side: Side, ratio: f64) -> f64 {
        ratio * self.share(side)
    }

    fn supply(&self, side: Side, (x, y): (f64, f64), net: f64, price: f64) -> Supply {
        let ratio = price / self.share(side);
        Supply { amount: (ratio * x - y) / (net + ratio), slope: y / (net + ratio) }
    }
}

/// Egorov's function for two assets; `n` is four times the amplification.
#[derive(Debug)]
struct StableSwap {
    n: f64,
}

/// Ratios are within `e^-80` and `e^80`: beyond, a pool has nothing left to sell that counts.
const LOG_RATIO_MAX: f64 = 80.0;

/// Halvings until a ratio is as exact as a float.
const HALVINGS: u32 = 60;

impl StableSwap {
    /// The value at reserves of 1 and `ratio`, at least 1.
    fn value_above_one(&self, ratio: f64) -> f64 {
        // Newton's method, from above: the function is convex in `d`.
        let quadruple = 4.0 * ratio;
        let mut d = 1.0 + ratio;
        for _ in 0..100 {
            let excess = d * d * d + (self.n - 1.0) * quadruple * d - self.n * (1.0 + ratio) * quadruple;
            let next = d - excess / (3.0 * d * d + (self.n - 1.0) * quadruple);
            if next >= d {
                break;
            }
            d = next;
        }
        d
    }

    /// The value at reserves of 1 and `ratio`.
    fn value_of(&self, ratio: f64) -> f64 {
        if ratio >= 1.0 { self.value_above_one(ratio) } else { ratio * self.value_above_one(1.0 / ratio) }
    }

    fn price_of(&self, ratio: f64) -> f64 {
        let above_one = |ratio: f64| {
            let (cube, quadruple) = (self.value_above_one(ratio).powi(3), 4.0 * ratio);
            (self.n + cube / quadruple) / (self.n + cube / (quadruple * ratio))
        };
        if ratio >= 1.0 { above_one(ratio) } else { 1.0 / above_one(1.0 / ratio) }
    }

    /// The ratio at a price, and by how much its logarithm grows with that of the price.
    fn ratio_at(&self, price: f64) -> (f64, f64) {
        const STEP: f64 = 1e-3;
        let (mut low, mut high) = (-LOG_RATIO_MAX, LOG_RATIO_MAX);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if self.price_of(middle.exp()) < price { low = middle } else { high = middle }
        }
        let at = 0.5 * (low + high);
        let log_price = |log_ratio: f64| self.price_of(log_ratio.exp()).ln();
        let steepness = (log_price(at + STEP) - log_price(at - STEP)) / (2.0 * STEP);
        (at.exp(), 1.0 / steepness.max(1e-9))
    }
}

impl Curve for StableSwap {
    fn price(&self, _: Side, ratio: f64) -> f64 {
        self.price_of(ratio)
    }

    fn supply(&self, _: Side, (x, y): (f64, f64), _: f64, price: f64) -> Supply {
        let (ratio, growth) = self.ratio_at(price);
        let left = x * (self.value_of(y / x) / self.value_of(ratio));
        // Of the value the share `ratio / (price + ratio)` is that of the asset bought, for it doubles with both reserves.
        Supply { amount: x - left, slope: left * ratio / (price + ratio) * growth }
    }
}

#[derive(Debug)]
struct BatchPool<C> {
    reserves: [f64; 2],
    /// `1 - fee`.
    asked: f64,
    /// `1 - eps`.
    kept: f64,
    curve: C,
}

impl<C: Curve> BatchPool<C> {
    fn sold_and_bought(&self, side: Side) -> (f64, f64) {
        let [first, second] = self.reserves;
        match side {
            Side::SellsFirst => (first, second),
            Side::SellsSecond => (second, first),
        }
    }
}

impl<C: Curve> TradingRule for BatchPool<C> {
    fn supply(&self, side: Side, rate: f64) -> Supply {
        const NOTHING: Supply = Supply { amount: 0.0, slope: 0.0 };
        let (x, y) = self.sold_and_bought(side);
        let net = rate * self.kept;
        let price = net * self.asked;
        if price <= self.curve.price(side, y / x) {
            return NOTHING;
        }
        let Supply { amount, slope } = self.curve.supply(side, (x, y), net, price);
        if amount > 0.0 && slope.is_finite() { Supply { amount: amount.min(x), slope: slope.max(0.0) } } else { NOTHING }
    }

    fn resting_rate(&self, side: Side) -> Option<f64> {
        let (x, y) = self.sold_and_bought(side);
        Some(self.curve.price(side, y / x))
    }
}

#[cfg(test)]
mod tests {
    use walras_clearing::{AssetIndex, PoolSide};
    use walras_types::{Amount, BatchPrice, Commission, NetRate};

    use super::*;

    /// The floats beside the core's exact answer, and the slope beside a difference.
    #[test]
    fn pools_sell_what_the_core_lets_them() {
        let rules = [
            PoolRule::ConstantProduct,
            PoolRule::Weighted { weights: [1, 4] },
            PoolRule::Weighted { weights: [30, 1] },
            PoolRule::StableSwap { amplification: 1 },
            PoolRule::StableSwap { amplification: 85 },
            PoolRule::StableSwap { amplification: 1_000_000 },
        ];
        let commission = Commission::new(10).unwrap();
        let kept = 1.0 - 2_f64.powi(-10);
        let mut traded = 0;
        for (rule, fee_ppm) in rules.into_iter().flat_map(|rule| [0, 3_000, 100_000].map(|fee_ppm| (rule, fee_ppm))) {
            for units in
                [[1_000_000_000_u64, 1_000_000_000], [3_000_000_000_000, 1_000_000_000], [5_000_000_000, 700_000_000_000_000]]
            {
                let assets = [AssetIndex(0), AssetIndex(1)];
                let pool =
                    walras_clearing::Pool { assets, rule, reserves: units.map(|units| Amount::new(units).unwrap()), fee_ppm };
                let seen = rule_of(&pool, kept);
                for rate in [1e-4, 0.01, 0.4, 0.9, 0.999, 1.0, 1.002, 1.2, 3.0, 100.0, 4e5] {
                    let price = BatchPrice::from_bits(f64::to_bits(rate)).unwrap();
                    let exact = NetRate::new(price, BatchPrice::ONE, commission).unwrap();
                    let Supply { amount, slope } = seen.rule.supply(Side::SellsFirst, rate);
                    let most = pool.sold_most(PoolSide::First, &exact).get() as f64;
                    let tolerance = 2.0 + 1e-6 * most + 2.0 / rate;
                    assert!((amount - most).abs() <= tolerance, "{pool:?} at {rate}: {amount} and {most}");
                    let by = 1e-5;
                    let more = seen.rule.supply(Side::SellsFirst, rate * (1.0 + by)).amount;
                    let fewer = seen.rule.supply(Side::SellsFirst, rate * (1.0 - by)).amount;
                    if fewer > 0.0 {
                        let difference = (more - fewer) / (2.0 * by);
                        // A difference of large numbers is no more exact than that.
                        let noise = 1e-15 * most / by;
                        assert!(
                            (slope - difference).abs() <= 1e-2 * (1.0 + difference) + noise,
                            "{pool:?} at {rate}: {slope}, {difference}"
                        );
                        traded += 1;
                    }
                    let other = seen.rule.supply(Side::SellsSecond, 1.0 / rate).amount;
                    assert!(amount == 0.0 || other == 0.0, "{pool:?} at {rate}");
                }
            }
        }
        assert!(traded > 100, "{traded}");
    }
}
