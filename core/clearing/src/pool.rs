//! What a pool may sell in a batch, whatever its rule.
//!
//! A pool keeps a function of its two reserves from falling. Its *price* where it has `x` and `y` of them is what the function says one
//! unit of the first is worth in the second. At a rate it is like offers to sell without gaps, of which the last has the limit
//! `price / (1 - fee)`, which must hold: `price <= rate * (1 - fee)`. So it never trades past its own price, and its function never falls:
//! the sets on which the function is at least some value are convex, and the price is the slope of the border of such a set.
//!
//! - *Constant product and weighted* pools trade until their price with what they *have then*, `x - s` and `y + b`, is that limit. It is the
//!   best that they can do at a uniform price. The tangent in the point after the trade has no point of a higher value on its near side,
//!   and the point before lies there, since `price * s <= rate * s <= b`: so the value does not fall.
//! - *Stable swaps* trade until their price *on their curve* is the limit: at `x - s` and so much of the other asset as keeps the value what
//!   it was. What they get beyond that raises the value, which is checked. With the first rule they would sell less at higher rates (what
//!   they trade are no gross substitutes), and prices that clear need not be found, nor be the only ones.
//!
//! The fee stays in the pool: all that the pool has is its providers'. Every step is exact, or rounded so that the price is too high: in the
//! pool's favour.
//!
//! Sources: the demand of a constant-function market maker at batch prices as in Ramseyer, Goyal, Goel, Mazieres, "Augmenting batch exchanges
//! with constant function market makers" (2024); Angeris, Chitra, "Improved price oracles: constant function market makers" (2020) for
//! what the functions have in common.
//!
//! *A further rule* is a [`Curve`] here, exact and rounded in the pool's favour; a variant of [`PoolRule`] with a number, which only a
//! later version of the engine takes; the same curve in floats for the solver (`edge/batch-solver/src/pools.rs`), which must sell no less
//! at a higher rate; its name and its parameters in answers, in the log's description, on the command line, in both clients and their light
//! clients; and a naive model of it next to the others (`core/clearing/tests/clearing/naive_pools.rs`). Those who match on [`PoolRule`] do
//! so exhaustively, so the compiler names most of these places.

use walras_types::{Amount, NetRate, PoolRule, U256};

use crate::offer::{Pool, PoolSide};

const MILLION: u32 = 1_000_000;

/// `numerator / denominator * 2^exponent`; both have at most 107 bits, so that parts per million of them fit 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarginalPrice {
    /// Not zero.
    pub numerator: u128,
    /// Not zero.
    pub denominator: u128,
    /// Of two.
    pub exponent: i32,
}

/// The function that a pool keeps from falling: concave, growing with both reserves, and doubling with them.
pub trait Curve {
    /// Units of the bought asset that the pool asks for the last unit of the sold one, when its reserves of what it sells and of what it buys
    /// go from `before` to `after`, all 1 to [`Amount::MAX`]. Never below what the function says, and above it by no more than
    /// rounding at 60 bits. `None` where the function falls, which it does not where that price is paid for all that is sold.
    fn last_price(&self, before: [u64; 2], after: [u64; 2]) -> Option<MarginalPrice>;
}

/// `x^a * y^b` with the weight of what is sold and of what is bought.
struct Weighted {
    sold: u16,
    bought: u16,
}

impl Curve for Weighted {
    fn last_price(&self, _: [u64; 2], [sold, bought]: [u64; 2]) -> Option<MarginalPrice> {
        let (numerator, denominator) = (u128::from(bought) * u128::from(self.sold), u128::from(sold) * u128::from(self.bought));
        Some(MarginalPrice { numerator, denominator, exponent: 0 })
    }
}

/// `D` of `n (x + y) + D = n D + D^3 / (4xy)`, where `n` is four times the amplification.
struct StableSwap {
    n: u32,
}

impl StableSwap {
    /// Whether the function is at least `d` with these reserves, which are below 2^63 and not zero: `D` solves
    /// `D^3 + (n - 1) 4xy D = n (x + y) 4xy`, whose left side grows with it.
    fn is_worth(&self, x: u64, y: u64, d: u64) -> bool {
        let (n, quadruple, d) = (u128::from(self.n), 4 * (u128::from(x) * u128::from(y)), u128::from(d));
        // 214 bits, and 192 and 216.
        let right = U256::product(n * (u128::from(x) + u128::from(y)), quadruple);
        U256::product(d * d, d).plus(U256::product((n - 1) * d, quadruple)) <= right
    }

    /// The largest whole `D` that is not above the function's value; at most `x + y`, which is below 2^64.
    fn value_down(&self, x: u64, y: u64) -> u64 {
        // Between the geometric and the arithmetic mean, twice.
        let geometric = (u128::from(x) * u128::from(y)).isqrt() as u64;
        greatest(2 * geometric, x + y, |d| self.is_worth(x, y, d))
    }

    /// Its price: `y (4n x^2 y + D^3) / (x (4n x y^2 + D^3))`. It falls with `D` where there is more of what is sold, and else grows with it.
    fn price_up(&self, x: u64, y: u64) -> MarginalPrice {
        const KEPT_BITS: u32 = 100;
        let down = self.value_down(x, y);
        let d = u128::from(if x > y { down } else { down.saturating_add(1) });
        let (cube, quadruple) = (U256::product(d * d, d), 4 * (u128::from(x) * u128::from(y)));
        let with = |reserve: u64| U256::product(u128::from(self.n) * u128::from(reserve), quadruple).plus(cube);
        let (above, above_exponent) = with(x).leading_up(KEPT_BITS);
        let (below, below_exponent) = with(y).leading_down(KEPT_BITS);
        let (numerator, up) = U256::product(above, y.into()).leading_up(KEPT_BITS);
        let (denominator, down) = U256::product(below, x.into()).leading_down(KEPT_BITS);
        let exponent = (above_exponent + up).cast_signed() - (below_exponent + down).cast_signed();
        MarginalPrice { numerator, denominator, exponent }
    }
}

impl Curve for StableSwap {
    fn last_price(&self, before: [u64; 2], after: [u64; 2]) -> Option<MarginalPrice> {
        // Only ratios count: as large as they may be, so that what is rounded is as small as it may be.
        let up = (before[0] | after[1]).leading_zeros().saturating_sub(1);
        let ([x, y], [left, got]) = (before.map(|units| units << up), after.map(|units| units << up));
        if [x, y] == [left, got] {
            return Some(self.price_up(x, y));
        }
        let value_up = self.value_down(x, y).saturating_add(1);
        if !self.is_worth(left, got, value_up) {
            return None;
        }
        // The least of the other asset that keeps the value.
        let kept = got - greatest(0, got - y, |less| self.is_worth(left, got - less, value_up));
        Some(self.price_up(left, kept))
    }
}

/// The greatest number from `low` to `high` for which it holds, as it does for `low` and for none above one for which it does not.
fn greatest(mut low: u64, mut high: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if holds(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

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

    /// What it asks for the last unit that it sells on a side, before its fee, when it has so much then: both at least 1.
    fn last_price(&self, side: PoolSide, left: Amount, got: Amount) -> Option<MarginalPrice> {
        let (x, y) = self.reserves_of(side);
        let (before, after) = ([x.get(), y.get()], [left.get(), got.get()]);
        match self.rule {
            PoolRule::ConstantProduct => Weighted { sold: 1, bought: 1 }.last_price(before, after),
            PoolRule::Weighted { weights: [first, second] } => match side {
                PoolSide::First => Weighted { sold: first, bought: second },
                PoolSide::Second => Weighted { sold: second, bought: first },
            }
            .last_price(before, after),
            PoolRule::StableSwap { amplification } => StableSwap { n: 4 * amplification }.last_price(before, after),
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
        y.checked_add(bought).is_some_and(|after| self.is_content(side, rate, left, after))
    }

    /// Whether its price holds at this rate when it has so much of what it sells and of what it buys.
    fn is_content(&self, side: PoolSide, rate: &NetRate, left: Amount, after: Amount) -> bool {
        let Some(MarginalPrice { numerator, denominator, exponent }) = self.last_price(side, left, after) else { return false };
        let kept = u128::from(MILLION.saturating_sub(self.fee_ppm));
        rate.pays_scaled_at_least(denominator * kept, -exponent, numerator * u128::from(MILLION))
    }

    /// The most that it may sell at this rate: 0 where its price is not met. At most 63 comparisons.
    #[must_use]
    pub fn sold_most(&self, side: PoolSide, rate: &NetRate) -> Amount {
        let (x, y) = self.reserves_of(side);
        if !self.is_content(side, rate, x, y) {
            return Amount::ZERO;
        }
        // What it gets grows with what it sells, and what it has left falls: once it refuses it refuses all that is more, but for
        // rounding of the price.
        let accepts = |sold: Amount| rate.bought_up(sold).is_some_and(|bought| self.accepts(side, rate, sold, bought));
        let mut most = Amount::ZERO;
        for bit in (0..64 - x.get().leading_zeros()).rev() {
            let more = Amount::new(most.get() | 1 << bit).expect("no more bits than a reserve has");
            if accepts(more) {
                most = more;
            }
        }
        most
    }
}
