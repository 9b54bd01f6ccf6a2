//! Quantities: each a newtype with only the arithmetic that means something.

use crate::limits::{AMOUNT_MAX, PRICE_TICKS_MAX, SIZE_LOTS_MAX};

/// A price in an instrument's ticks, 1 to [`PRICE_TICKS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct PriceTicks(i64);

impl PriceTicks {
    /// The lowest price.
    pub const MIN: Self = Self(1);
    /// The highest price.
    pub const MAX: Self = Self(PRICE_TICKS_MAX);

    /// A price, or `None` outside `1..=PRICE_TICKS_MAX`.
    #[must_use]
    #[inline]
    pub const fn new(ticks: i64) -> Option<Self> {
        if ticks >= 1 && ticks <= PRICE_TICKS_MAX { Some(Self(ticks)) } else { None }
    }

    /// The nearest price to `ticks` inside the range.
    #[must_use]
    #[inline]
    pub fn saturating(ticks: i64) -> Self {
        Self(ticks.clamp(1, PRICE_TICKS_MAX))
    }

    /// The number of ticks.
    #[must_use]
    #[inline]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Distance between two prices, in ticks.
    #[must_use]
    #[inline]
    pub fn distance(self, other: Self) -> u64 {
        self.0.abs_diff(other.0)
    }
}

impl std::fmt::Display for PriceTicks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A size in an instrument's lots, 0 to 2^63. An order's size is checked against [`SIZE_LOTS_MAX`]; sums over a book are larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct SizeLots(u64);

impl SizeLots {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// A size that an order may have, or `None` outside `1..=SIZE_LOTS_MAX`.
    #[must_use]
    #[inline]
    pub const fn order_size(lots: u64) -> Option<Self> {
        if lots >= 1 && lots <= SIZE_LOTS_MAX { Some(Self(lots)) } else { None }
    }

    /// Any number of lots, for sums and remainders.
    #[must_use]
    #[inline]
    pub const fn new(lots: u64) -> Self {
        Self(lots)
    }

    /// The number of lots.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether nothing is left.
    #[must_use]
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The difference, or zero when `other` is larger.
    #[must_use]
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl std::ops::Add for SizeLots {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl std::ops::Sub for SizeLots {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl std::ops::AddAssign for SizeLots {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::ops::SubAssign for SizeLots {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl std::iter::Sum for SizeLots {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, |a, b| a + b)
    }
}

impl std::fmt::Display for SizeLots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// An amount of an asset in its smallest unit, 0 to [`AMOUNT_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Amount(u64);

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The largest amount.
    pub const MAX: Self = Self(AMOUNT_MAX);

    /// An amount, or `None` above [`AMOUNT_MAX`].
    #[must_use]
    #[inline]
    pub const fn new(units: u64) -> Option<Self> {
        if units <= AMOUNT_MAX { Some(Self(units)) } else { None }
    }

    /// An amount from a 128-bit intermediate, or `None` above [`AMOUNT_MAX`].
    #[must_use]
    #[inline]
    pub fn from_wide(units: u128) -> Option<Self> {
        if units <= AMOUNT_MAX as u128 { Some(Self(units as u64)) } else { None }
    }

    /// The number of smallest units.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether there is nothing.
    #[must_use]
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The sum, or `None` above [`AMOUNT_MAX`].
    #[must_use]
    #[inline]
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        Self::new(self.0 + other.0)
    }

    /// The difference, or `None` below zero.
    #[must_use]
    #[inline]
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(units) => Some(Self(units)),
            None => None,
        }
    }
}

impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Where the remainder of a division goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Toward zero: the one who pays keeps the remainder.
    Down,
    /// Away from zero: the one who is paid gets the remainder.
    Up,
}

/// `amount * ppm / 1_000_000`, rounded as said. Exact in 128 bits; the result never exceeds `amount` for `ppm <= 1_000_000`.
#[must_use]
#[inline]
pub fn parts_per_million(amount: Amount, ppm: u32, rounding: Rounding) -> Amount {
    assert!(ppm <= 1_000_000, "a share of more than the whole");
    // u64 suffices (and its division by a constant is a multiplication) unless the amount is astronomically large.
    let (whole, remainder) = match amount.get().checked_mul(u64::from(ppm)) {
        Some(product) => (product / 1_000_000, product % 1_000_000),
        None => {
            let product = u128::from(amount.get()) * u128::from(ppm);
            ((product / 1_000_000) as u64, (product % 1_000_000) as u64)
        }
    };
    match rounding {
        Rounding::Down => Amount(whole),
        Rounding::Up => Amount(whole + u64::from(remainder > 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_closed() {
        assert_eq!(PriceTicks::new(0), None);
        assert_eq!(PriceTicks::new(PRICE_TICKS_MAX + 1), None);
        assert_eq!(SizeLots::order_size(0), None);
        assert_eq!(SizeLots::order_size(SIZE_LOTS_MAX + 1), None);
        assert_eq!(Amount::new(AMOUNT_MAX + 1), None);
        assert_eq!(Amount::MAX.checked_add(Amount(1)), None);
        assert_eq!(Amount::ZERO.checked_sub(Amount(1)), None);
    }

    #[test]
    fn parts_per_million_says_who_keeps_the_remainder() {
        let one = Amount(1);
        assert_eq!(parts_per_million(one, 1, Rounding::Down), Amount(0));
        assert_eq!(parts_per_million(one, 1, Rounding::Up), Amount(1));
        assert_eq!(parts_per_million(Amount::MAX, 1_000_000, Rounding::Up), Amount::MAX);
        assert_eq!(parts_per_million(Amount(2_000_000), 250, Rounding::Up), Amount(500));
    }
}
