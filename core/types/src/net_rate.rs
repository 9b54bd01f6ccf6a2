//! What a sold unit buys in a batch, exactly: the ratio of two valuations less the commission.

use std::num::NonZero;

use crate::batch_price::BatchPrice;
use crate::quantity::Amount;
use crate::wide::U256;

/// Finest commission and accuracy: 2^-30.
pub const BATCH_EXPONENT_MAX: u8 = 30;

/// The commission of a batch market: the share 2^-k of what every fill buys stays with the venue, or nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Commission(Option<NonZero<u8>>);

impl Commission {
    /// No commission.
    pub const NONE: Self = Self(None);

    /// The commission 2^-k, or `None` unless `1 <= k <= 30`.
    #[must_use]
    pub const fn new(k: u8) -> Option<Self> {
        match NonZero::new(k) {
            Some(exponent) if k <= BATCH_EXPONENT_MAX => Some(Self(Some(exponent))),
            _ => None,
        }
    }

    /// `k` of the commission 2^-k.
    #[must_use]
    pub const fn exponent(self) -> Option<u8> {
        match self.0 {
            Some(exponent) => Some(exponent.get()),
            None => None,
        }
    }

    /// `(n, k)` of the factor `1 - 2^-k = n * 2^-k` that the commission leaves.
    const fn factor(self) -> (u64, u32) {
        match self.0 {
            Some(exponent) => ((1 << exponent.get()) - 1, exponent.get() as u32),
            None => (1, 0),
        }
    }
}

/// The accuracy of a batch: sell offers whose limit is more than the share mu = 2^-m below the rate are clearly in the money,
/// and by prices that nearly clear the market they trade in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mu(NonZero<u8>);

impl Mu {
    /// The accuracy 2^-m, or `None` unless `1 <= m <= 30`.
    #[must_use]
    pub const fn new(m: u8) -> Option<Self> {
        match NonZero::new(m) {
            Some(exponent) if m <= BATCH_EXPONENT_MAX => Some(Self(exponent)),
            _ => None,
        }
    }

    /// `m` of the accuracy 2^-m.
    #[must_use]
    pub const fn exponent(self) -> u8 {
        self.0.get()
    }
}

/// The rate of an ordered pair in a batch: `p_sell / p_buy * (1 - eps)` units bought for a unit sold. What an offer gets.
///
/// Prepared once for a pair, then used for each offer. It holds the exact fraction `numerator / denominator * 2^scale`, and the
/// first 64 bits of its value, which answer nearly every question with one multiplication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetRate {
    /// The mantissa of the selling valuation times the commission's `2^k - 1`: below 2^83.
    numerator: u128,
    /// The mantissa of the buying valuation.
    denominator: u64,
    scale: i32,
    /// `2^63 <= mantissa`, and `mantissa <= rate * 2^shift < mantissa + 1`.
    mantissa: u64,
    shift: i32,
}

impl NetRate {
    /// The rate between two valuations; `None` when one of them is zero.
    #[must_use]
    #[inline]
    pub const fn new(sell: BatchPrice, buy: BatchPrice, commission: Commission) -> Option<Self> {
        let (n, k) = commission.factor();
        let ((sell_m, sell_e), (buy_m, buy_e)) = (sell.parts(), buy.parts());
        if sell_m == 0 || buy_m == 0 {
            return None;
        }
        // 53 + 30 bits.
        let numerator = sell_m as u128 * n as u128;
        let scale = sell_e - k as i32 - buy_e;
        // Scaled to 117 bits and divided by 53: a quotient of 64 or 65 bits.
        let up = numerator.leading_zeros() - 11;
        let quotient = (numerator << up) / buy_m as u128;
        let is_long = (quotient >> 64) as u32;
        // Rounding down twice is rounding down once.
        let mantissa = (quotient >> is_long) as u64;
        Some(Self { numerator, denominator: buy_m, scale, mantissa, shift: up as i32 - scale - is_long as i32 })
    }

    /// The rate before commission, less the share mu: a sell offer whose limit this accepts is clearly in the money (if the net
    /// rate accepts it too). `None` when a valuation is zero.
    #[must_use]
    #[inline]
    pub const fn less_mu(sell: BatchPrice, buy: BatchPrice, mu: Mu) -> Option<Self> {
        Self::new(sell, buy, Commission(Some(mu.0)))
    }

    /// The highest limit that holds at this rate; [`BatchPrice::ZERO`] when only market orders do. A limit holds if and only if it
    /// is not above this one: the rate's first 53 bits are the highest price not above the rate.
    #[must_use]
    #[inline]
    pub const fn highest_limit(&self) -> BatchPrice {
        const SPARE_BITS: u32 = 64 - 53;
        let exponent = SPARE_BITS as i32 - self.shift;
        match BatchPrice::from_parts(self.mantissa >> SPARE_BITS, exponent, crate::Rounding::Down) {
            Ok(price) => price,
            // A mantissa of 53 bits makes a price of 2^(exponent + 52) up to 2^(exponent + 53).
            Err(_) if exponent > 0 => BatchPrice::MAX,
            Err(_) => BatchPrice::ZERO,
        }
    }

    /// Whether an offer with this limit accepts the rate: `limit <= p_sell / p_buy * (1 - eps)`, exactly.
    #[must_use]
    #[inline]
    pub fn holds(&self, limit: BatchPrice) -> bool {
        limit <= self.highest_limit()
    }

    /// Whether `rate * sold >= bought`, exactly. For products of amounts too: any `sold` and `bought`.
    #[must_use]
    pub fn pays_at_least(&self, sold: u128, bought: u128) -> bool {
        let (paid, wanted) = (U256::product(sold, self.numerator), U256::product(bought, u128::from(self.denominator)));
        paid.scaled_is_at_least(self.scale, wanted)
    }

    /// Whether `rate * sold <= bought`, exactly.
    #[must_use]
    pub fn pays_at_most(&self, sold: u128, bought: u128) -> bool {
        let (paid, wanted) = (U256::product(sold, self.numerator), U256::product(bought, u128::from(self.denominator)));
        wanted.scaled_is_at_least(-self.scale, paid)
    }

    /// Whether `rate * sold * 2^exponent >= bought`, exactly.
    #[must_use]
    pub fn pays_scaled_at_least(&self, sold: u128, exponent: i32, bought: u128) -> bool {
        let (paid, wanted) = (U256::product(sold, self.numerator), U256::product(bought, u128::from(self.denominator)));
        paid.scaled_is_at_least(self.scale + exponent, wanted)
    }

    /// What `sold` buys, rounded down: the venue keeps the remainder. `None` above [`Amount::MAX`].
    #[must_use]
    #[inline]
    pub fn bought_down(&self, sold: Amount) -> Option<Amount> {
        let units = u128::from(sold.get());
        if !(1..128).contains(&self.shift) {
            // A shift of 0 or less: the rate is 2^63 or more. One of 128 or more: the rate is below 2^-64, and units below 2^63.
            return if self.shift > 0 || units == 0 { Some(Amount::ZERO) } else { None };
        }
        // low <= rate * sold * 2^shift < low + sold, all below 2^63 * 2^64.
        let low = units * u128::from(self.mantissa);
        let floor = low >> self.shift;
        let exact = if (low + units) >> self.shift == floor { floor } else { self.settle_floor(units, floor) };
        Amount::from_wide(exact)
    }

    /// `floor(rate * sold)` where the mantissa leaves it open. Where `floor` is an amount, `sold * 2^63 < 2^63 * 2^shift`, so the
    /// open interval is shorter than one and the answer is `floor` or one more; where it is none, the answer is none either way.
    #[cold]
    fn settle_floor(&self, sold: u128, floor: u128) -> u128 {
        if floor <= u128::from(Amount::MAX.get()) && self.pays_at_least(sold, floor + 1) { floor + 1 } else { floor }
    }

    /// What `sold` buys, rounded up. `None` above [`Amount::MAX`].
    #[must_use]
    pub fn bought_up(&self, sold: Amount) -> Option<Amount> {
        let down = self.bought_down(sold)?;
        let is_exact = self.pays_at_most(u128::from(sold.get()), u128::from(down.get()));
        if is_exact { Some(down) } else { Amount::new(down.get() + 1) }
    }

    /// The least amount whose sale buys at least `bought`: the venue keeps the remainder. `None` above [`Amount::MAX`].
    #[must_use]
    pub fn sold_up(&self, bought: Amount) -> Option<Amount> {
        let units = u128::from(bought.get());
        if units == 0 || self.shift <= 0 {
            // A shift of 0 or less: one unit buys 2^63 or more.
            return Amount::new(bought.get().min(1));
        }
        let shift = self.shift.unsigned_abs();
        if shift > units.leading_zeros() {
            // units * 2^shift >= 2^128 over a mantissa below 2^64.
            return None;
        }
        // sold = ceil(x / (mantissa + d)) for some 0 <= d < 1. With d = 0 this is at most one more wherever it is an amount, since
        // x / mantissa - x / (mantissa + 1) < x / mantissa^2 <= 2^63 / 2^63.
        let ceiling = (units << shift).div_ceil(u128::from(self.mantissa));
        if ceiling > u128::from(Amount::MAX.get()) + 1 {
            return None;
        }
        Amount::from_wide(if self.pays_at_least(ceiling - 1, units) { ceiling - 1 } else { ceiling })
    }
}
