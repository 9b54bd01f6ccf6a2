//! The functions that pools keep from falling, in fractions of big integers and as their papers have them.

use num_bigint::BigInt;
use walras_clearing::{Pool, PoolRule, PoolSide};

use super::naive::{Fraction, whole};

/// Bits of the fraction of a stable swap's value.
const FRACTION_BITS: u32 = 160;

/// What a pool asks for the last unit on a side that it sells, of what it sells and of what it buys before and after. Of a stable swap
/// about that: right to some 150 bits. `None` where its function falls.
pub(crate) fn last_price(pool: &Pool, side: PoolSide, before: [&Fraction; 2], [sold, bought]: [&Fraction; 2]) -> Option<Fraction> {
    match pool.rule {
        PoolRule::ConstantProduct => Some(bought / sold),
        PoolRule::Weighted { weights: [first, second] } => {
            let (of_sold, of_bought) = match side {
                PoolSide::First => (first, second),
                PoolSide::Second => (second, first),
            };
            Some(bought / sold * whole(of_sold.into()) / whole(of_bought.into()))
        }
        PoolRule::StableSwap { amplification } => {
            let n = whole(4 * u64::from(amplification));
            let value = stable_value(amplification, before[0], before[1]);
            if !is_at_least(amplification, sold, bought, &value) {
                return None;
            }
            let bought = least(before[1], bought, |y| is_at_least(amplification, sold, y, &value));
            // By the derivatives of n (x + y) + D - n D - D^3 / (4xy).
            let cube = &value * &value * &value;
            let slope = |by: &Fraction, other: &Fraction| &n + &cube / (whole(4) * by * by * other);
            Some(slope(sold, &bought) / slope(&bought, sold))
        }
    }
}

/// `D` of `n (x + y) + D = n D + D^3 / (4xy)`, rounded down at the last of its bits, by halving.
fn stable_value(amplification: u32, x: &Fraction, y: &Fraction) -> Fraction {
    let scale = Fraction::from_integer(BigInt::from(1) << FRACTION_BITS);
    let (mut low, mut high) = (BigInt::from(0), ((x + y) * &scale).ceil().to_integer());
    while low < high {
        let middle = (&low + &high + BigInt::from(1)) / BigInt::from(2);
        if is_at_least(amplification, x, y, &(Fraction::from_integer(middle.clone()) / &scale)) {
            low = middle;
        } else {
            high = middle - BigInt::from(1);
        }
    }
    Fraction::from_integer(low) / scale
}

/// The least number in between for which it holds, as it does for the last, by halving.
fn least(first: &Fraction, last: &Fraction, holds: impl Fn(&Fraction) -> bool) -> Fraction {
    let scale = Fraction::from_integer(BigInt::from(1) << FRACTION_BITS);
    let (mut low, mut high) = ((first * &scale).to_integer(), (last * &scale).to_integer());
    while low < high {
        let middle = (&low + &high) / BigInt::from(2);
        if holds(&(Fraction::from_integer(middle.clone()) / &scale)) { high = middle } else { low = middle + BigInt::from(1) }
    }
    Fraction::from_integer(high) / scale
}

/// Whether the value of a stable swap with these reserves is at least `d`.
fn is_at_least(amplification: u32, x: &Fraction, y: &Fraction, d: &Fraction) -> bool {
    let n = whole(4 * u64::from(amplification));
    &n * (x + y) + d >= &n * d + d * d * d / (whole(4) * x * y)
}

/// Checks that a pool's function does not fall.
pub(crate) fn check_value(pool: &Pool, before: [&Fraction; 2], after: [&Fraction; 2]) {
    let kept = match pool.rule {
        PoolRule::ConstantProduct => after[0] * after[1] >= before[0] * before[1],
        PoolRule::Weighted { weights: [first, second] } => {
            let of = |[x, y]: [&Fraction; 2]| x.pow(i32::from(first)) * y.pow(i32::from(second));
            of(after) >= of(before)
        }
        PoolRule::StableSwap { amplification } => {
            let value = stable_value(amplification, before[0], before[1]);
            is_at_least(amplification, after[0], after[1], &value)
        }
    };
    assert!(kept, "the function of {pool:?} falls from {before:?} to {after:?}");
}
