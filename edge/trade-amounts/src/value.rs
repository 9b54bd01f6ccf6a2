//! Amounts of different assets in one unit of value, and back.

use walras_types::{Amount, BatchPrice};

use crate::limits::VALUE_MAX;

/// A unit of value, `2^exponent` of what valuations count: the finest in which every bound given to it fits [`VALUE_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueUnit {
    exponent: i32,
}

impl ValueUnit {
    /// The finest unit in which `count_max` of these amounts, at their valuations, together fit [`VALUE_MAX`], whichever they are.
    #[must_use]
    pub fn finest(worths: impl Iterator<Item = (Amount, BatchPrice)>, count_max: usize) -> Self {
        let top = |(amount, price): (Amount, BatchPrice)| {
            let (m, e) = price.parts();
            let product = u128::from(m) * u128::from(amount.get());
            (product != 0).then(|| e + 128 - product.leading_zeros() as i32)
        };
        // A worth is below 2^top, so that count_max of them are below 2^(top + spread).
        let spread = count_max.max(1).next_power_of_two().trailing_zeros() as i32;
        let top = worths.filter_map(top).max().unwrap_or(0);
        Self { exponent: top + spread - VALUE_MAX.trailing_zeros() as i32 }
    }

    /// `e` of this unit, `2^e` of what valuations count.
    #[must_use]
    pub const fn exponent(self) -> i32 {
        self.exponent
    }

    /// What an amount is worth in this unit, rounded down; at most [`VALUE_MAX`].
    #[must_use]
    pub fn worth_down(self, amount: Amount, price: BatchPrice) -> i64 {
        let (m, e) = price.parts();
        shifted_down(u128::from(m) * u128::from(amount.get()), e - self.exponent)
    }

    /// What an amount is worth in this unit, rounded up; at most [`VALUE_MAX`].
    #[must_use]
    pub fn worth_up(self, amount: Amount, price: BatchPrice) -> i64 {
        let (m, e) = price.parts();
        let product = u128::from(m) * u128::from(amount.get());
        let down = shifted_down(product, e - self.exponent);
        let is_exact = match u32::try_from(self.exponent - e) {
            Ok(by) => product.trailing_zeros() >= by.min(128) || product == 0,
            Err(_) => true,
        };
        if is_exact { down } else { (down + 1).min(VALUE_MAX) }
    }

    /// The most units of an asset that are worth at most `value`, at most [`Amount::MAX`].
    #[must_use]
    pub fn amount_down(self, value: i64, price: BatchPrice) -> Amount {
        let (m, e) = price.parts();
        let value = u128::from(value.unsigned_abs());
        let units = match u32::try_from(self.exponent - e) {
            _ if m == 0 || value == 0 => 0,
            // At least 2^117 / 2^53.
            Ok(up) if up > value.leading_zeros() => u128::MAX,
            Ok(up) => (value << up) / u128::from(m),
            Err(_) => value.checked_shr((e - self.exponent).unsigned_abs()).unwrap_or(0) / u128::from(m),
        };
        Amount::from_wide(units).unwrap_or(Amount::MAX)
    }
}

/// `floor(product * 2^by)`, at most [`VALUE_MAX`].
fn shifted_down(product: u128, by: i32) -> i64 {
    let shifted = match u32::try_from(by) {
        Ok(up) if product != 0 && up > product.leading_zeros() => u128::MAX,
        Ok(up) => product.checked_shl(up).unwrap_or(0),
        Err(_) => product.checked_shr(by.unsigned_abs()).unwrap_or(0),
    };
    i64::try_from(shifted).map_or(VALUE_MAX, |value| value.min(VALUE_MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use walras_types::Rounding;

    use super::*;

    fn prices() -> impl Strategy<Value = BatchPrice> {
        (1..=u64::MAX, -180..=60_i32).prop_filter_map("in range", |(m, e)| BatchPrice::from_parts(m, e, Rounding::Down).ok())
    }

    proptest! {
        #[test]
        fn there_and_back(price in prices(), units in 0..=Amount::MAX.get(), other in prices(), others in 0..=Amount::MAX.get()) {
            let (amount, other_amount) = (Amount::new(units).unwrap(), Amount::new(others).unwrap());
            let unit = ValueUnit::finest([(amount, price), (other_amount, other)].into_iter(), 2);
            let (down, up) = (unit.worth_down(amount, price), unit.worth_up(amount, price));
            prop_assert!(down <= up && up <= down + 1 && up <= VALUE_MAX);
            prop_assert!(unit.worth_down(other_amount, other) <= VALUE_MAX - down);
            prop_assert!(unit.amount_down(down, price) <= amount);
            if up < VALUE_MAX {
                prop_assert!(unit.amount_down(up, price) >= amount);
            }
        }

        #[test]
        fn nothing_is_worth_nothing(price in prices(), exponent in -500..500_i32) {
            let unit = ValueUnit { exponent };
            prop_assert_eq!((unit.worth_down(Amount::ZERO, price), unit.worth_up(Amount::ZERO, price)), (0, 0));
            prop_assert_eq!(unit.amount_down(0, price), Amount::ZERO);
        }
    }
}
