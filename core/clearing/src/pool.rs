//! What a constant-product pool may sell in a batch.
//!
//! A pool with reserves `x` and `y` sells `s` of the first and gets `b >= rate * s` of the second. It is like offers to sell without gaps:
//! its marginal price after the trade, `(y + b) / (x - s)`, over `1 - fee`, is the limit of the last of them, which must hold:
//!
//! `y + b <= rate * (1 - fee) * (x - s)`
//!
//! This is what makes the trade best for the pool at a uniform price, and it implies that its product never falls, fee or no fee on
//! what it gets: `(x - s)(y + (1 - fee) b) - x y = (1 - fee) b (x - s) - s y >= s ((1 - fee) rate (x - s) - y) >= s b >= 0`.
//! Every step is exact: amounts have 63 bits, parts per million 20, and the comparison is one of 256-bit products.
//!
//! Source: the demand of a constant-function market maker at batch prices as in Ramseyer, Goyal, Goel, Mazieres, "Augmenting batch exchanges
//! with constant function market makers" (2024). Another constant function belongs here only if its own condition can be checked in integers.

use walras_types::{Amount, NetRate};

use crate::offer::{Pool, PoolSide};

const MILLION: u32 = 1_000_000;

impl Pool {
    /// What the pool has of what it sells, and of what it buys.
    #[must_use]
    pub const fn reserves_of(&self, side: PoolSide) -> (Amount, Amount) {
        let [first, second] = self.reserves;
        match side {
            PoolSide::First => (first, second),
            PoolSide::Second => (second, first),
        }
    }

    /// Whether it may sell `sold` for `bought` at this rate. It always may sell nothing for nothing.
    #[must_use]
    pub fn accepts(&self, side: PoolSide, rate: &NetRate, sold: Amount, bought: Amount) -> bool {
        let (x, y) = self.reserves_of(side);
        let Some(left) = x.checked_sub(sold).filter(|left| !left.is_zero()) else { return false };
        if sold.is_zero() {
            return bought.is_zero();
        }
        // 63 + 20 and 64 + 20 bits.
        let left = u128::from(left.get()) * u128::from(MILLION.saturating_sub(self.fee_ppm));
        let after = (u128::from(y.get()) + u128::from(bought.get())) * u128::from(MILLION);
        rate.pays_at_least(left, after)
    }

    /// The most that it may sell at this rate: 0 where its price is not met. 63 exact comparisons.
    #[must_use]
    pub fn sold_most(&self, side: PoolSide, rate: &NetRate) -> Amount {
        // What it gets grows with what it sells, and what it has left falls: once it refuses it refuses all that is more.
        let accepts = |sold: Amount| rate.bought_up(sold).is_some_and(|bought| self.accepts(side, rate, sold, bought));
        let mut most = Amount::ZERO;
        for bit in (0..63).rev() {
            let more = Amount::new(most.get() | 1 << bit).expect("63 bits");
            if accepts(more) {
                most = more;
            }
        }
        most
    }
}
