//! Values of amounts of several assets, as integers in one unit.

use walras_types::{Amount, BatchPrice};

/// The unit 2^exponent of value. The larger one is the larger unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unit {
    exponent: i32,
}

impl Unit {
    /// Finer than any value asks for.
    pub(crate) const LEAST: Self = Self { exponent: -1_000 };

    /// The finest in which this has no more bits.
    pub(crate) fn of_one(amount: Amount, price: BatchPrice, bits: u32) -> Self {
        let (m, e) = price.parts();
        match u128::from(m) * u128::from(amount.get()) {
            0 => Self::LEAST,
            product => Self { exponent: (128 - product.leading_zeros()).cast_signed() + e - bits.cast_signed() },
        }
    }

    /// The finest in which none of these has more bits.
    pub(crate) fn of(worths: impl Iterator<Item = (Amount, BatchPrice)>, bits: u32) -> Self {
        worths.map(|(amount, price)| Self::of_one(amount, price, bits)).max().unwrap_or(Self::LEAST)
    }

    /// Rounded down; of what has no more bits than the unit was made for.
    pub(crate) fn worth_down(self, amount: Amount, price: BatchPrice) -> i128 {
        let (m, e) = price.parts();
        let product = u128::from(m) * u128::from(amount.get());
        match u32::try_from(self.exponent - e) {
            // Nothing is left of what is worth much less.
            Ok(down) => product.checked_shr(down).unwrap_or(0).cast_signed(),
            Err(_) if product == 0 => 0,
            Err(_) => (product << (e - self.exponent).unsigned_abs()).cast_signed(),
        }
    }

    /// Rounded up, or one more.
    pub(crate) fn worth_up(self, amount: Amount, price: BatchPrice) -> i128 {
        self.worth_down(amount, price) + i128::from(!amount.is_zero())
    }
}
