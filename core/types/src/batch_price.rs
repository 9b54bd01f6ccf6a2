//! The price format of batch markets: offers' limits, assets' valuations, the wire. See `docs/adr/0005-batch-price.md`.

use crate::quantity::{Amount, Rounding};
use crate::wide::U256;

/// A positive price `m * 2^e` with `2^52 <= m < 2^53`, from 2^-126 to 2^126, or [`BatchPrice::ZERO`], the limit of a market order.
///
/// As an offer's limit: the least number of units bought for each unit sold. As an asset's valuation: its worth in a unit that all
/// assets of a batch share; only ratios of valuations mean something. The relative resolution is 2^-52 everywhere.
///
/// The bits are those of a positive IEEE 754 binary64 of the same value: 11 bits of exponent, biased by 1023, above 52 bits of
/// fraction. Here they are an *integer* format: the core never makes a float of them; outside the core
/// `f64::from_bits(price.bits())` is the price without loss. The order of the bits is the order of the prices, so the big-endian
/// bytes are a key that sorts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct BatchPrice(u64);

/// Bits of the fraction.
const FRACTION_BITS: u32 = 52;
/// What the exponent's bits say more than `e`: the bias, and the fraction's bits.
const EXPONENT_BIAS: i32 = 1023 + FRACTION_BITS as i32;
/// Most significant digits of a price in decimal: below 10^38 < 2^127.
const DIGITS_MAX: usize = 38;

/// Why something is no [`BatchPrice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchPriceError {
    /// The price, after rounding, is outside 2^-126 to 2^126, or the ratio has a zero.
    OutOfRange,
    /// The bits are neither zero nor those of a price in range.
    InvalidBits(u64),
    /// The text is no decimal number.
    Malformed,
}

impl std::fmt::Display for BatchPriceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OutOfRange => f.write_str("the price is not within 2^-126 and 2^126 (about 1.2e-38 and 8.5e37): use other units"),
            Self::InvalidBits(bits) => {
                write!(f, "{bits:#018x} is no price: send 0, or the bits of a binary64 within 2^-126 and 2^126")
            }
            Self::Malformed => {
                write!(f, "not a price: write digits, at most {DIGITS_MAX} significant ones, with at most one point")
            }
        }
    }
}

impl std::error::Error for BatchPriceError {}

impl BatchPrice {
    /// The limit of a market order: it holds at every rate. No valuation.
    pub const ZERO: Self = Self(0);
    /// The lowest price, 2^-126.
    pub const MIN: Self = Self((1023 - 126) << FRACTION_BITS);
    /// One: a unit for a unit.
    pub const ONE: Self = Self(1023 << FRACTION_BITS);
    /// The highest price, 2^126.
    pub const MAX: Self = Self((1023 + 126) << FRACTION_BITS);

    /// The price of these bits.
    ///
    /// # Errors
    /// [`BatchPriceError::InvalidBits`] unless they are 0 or within [`BatchPrice::MIN`] and [`BatchPrice::MAX`].
    pub const fn from_bits(bits: u64) -> Result<Self, BatchPriceError> {
        if bits == 0 || (bits >= Self::MIN.0 && bits <= Self::MAX.0) {
            Ok(Self(bits))
        } else {
            Err(BatchPriceError::InvalidBits(bits))
        }
    }

    /// The bits: those of a binary64 of the same value.
    #[must_use]
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The next price above; `None` of the limit of a market order, and of [`BatchPrice::MAX`].
    #[must_use]
    pub const fn next_above(self) -> Option<Self> {
        if self.0 == 0 || self.0 >= Self::MAX.0 { None } else { Some(Self(self.0 + 1)) }
    }

    /// Whether this is the limit of a market order.
    #[must_use]
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `(m, e)` of the price `m * 2^e`, `2^52 <= m < 2^53`; `(0, 0)` of zero.
    #[must_use]
    #[inline]
    pub const fn parts(self) -> (u64, i32) {
        if self.0 == 0 {
            return (0, 0);
        }
        let fraction = self.0 & ((1 << FRACTION_BITS) - 1);
        (fraction | 1 << FRACTION_BITS, (self.0 >> FRACTION_BITS) as i32 - EXPONENT_BIAS)
    }

    /// The price `m * 2^e`, for any `m` above zero, rounded to 53 bits where `m` has more.
    ///
    /// # Errors
    /// [`BatchPriceError::OutOfRange`] when `m` is zero or the rounded price is out of range.
    pub const fn from_parts(m: u64, e: i32, rounding: Rounding) -> Result<Self, BatchPriceError> {
        Self::rounded(m, e, false, rounding)
    }

    /// The price nearest to `(m + d) * 2^e` on the side that `rounding` says, where `0 < d < 1` if `has_more`, else `d = 0`.
    /// With `has_more`, `m` must have at least 53 bits.
    const fn rounded(m: u64, e: i32, has_more: bool, rounding: Rounding) -> Result<Self, BatchPriceError> {
        // Beyond these exponents no m brings the price into range; within, the sums below do not overflow.
        if m == 0 || e < -300 || e > 300 {
            return Err(BatchPriceError::OutOfRange);
        }
        let surplus_bits = 64 - m.leading_zeros() as i32 - (FRACTION_BITS as i32 + 1);
        let (mut fraction, mut exponent, mut has_more) = (m, e + surplus_bits, has_more);
        if surplus_bits <= 0 {
            fraction <<= -surplus_bits;
        } else {
            fraction >>= surplus_bits;
            has_more = has_more || fraction << surplus_bits != m;
        }
        if has_more && matches!(rounding, Rounding::Up) {
            fraction += 1;
            if fraction == 1 << (FRACTION_BITS + 1) {
                fraction >>= 1;
                exponent += 1;
            }
        }
        let biased = exponent + EXPONENT_BIAS;
        if biased < 1 || biased > 2046 {
            return Err(BatchPriceError::OutOfRange);
        }
        let bits = (biased as u64) << FRACTION_BITS | (fraction & ((1 << FRACTION_BITS) - 1));
        if bits < Self::MIN.0 || bits > Self::MAX.0 { Err(BatchPriceError::OutOfRange) } else { Ok(Self(bits)) }
    }

    /// The price `numerator / denominator`, rounded as said. Round a limit up, so that it is never worse than stated.
    ///
    /// # Errors
    /// [`BatchPriceError::OutOfRange`] when either is zero or the rounded price is out of range.
    pub const fn from_ratio(numerator: u128, denominator: u128, rounding: Rounding) -> Result<Self, BatchPriceError> {
        if numerator == 0 || denominator == 0 {
            return Err(BatchPriceError::OutOfRange);
        }
        let (by, divisor_by) = (numerator.leading_zeros(), denominator.leading_zeros());
        if by >= 1 && divisor_by >= 64 {
            // Amounts, mostly: 127 bits over 64 make 63 or 64.
            let (scaled, divisor) = (numerator << (by - 1), denominator << (divisor_by - 64));
            let exponent = divisor_by as i32 - by as i32 - 63;
            return Self::rounded((scaled / divisor) as u64, exponent, scaled % divisor != 0, rounding);
        }
        // Both scaled until their top bit is set: the quotient is within 1/2 and 2, and 64 of its bits suffice.
        let (mut rest, divisor) = (numerator << by, denominator << divisor_by);
        let mut quotient: u64 = 0;
        let mut overflow = false;
        let mut bit = 0;
        // Long division: before each step rest < 2 * divisor (with `overflow` its bit 128), after it rest < divisor.
        while bit < 64 {
            let fits = overflow || rest >= divisor;
            if fits {
                rest = rest.wrapping_sub(divisor);
            }
            quotient = quotient << 1 | fits as u64;
            overflow = rest >> 127 == 1;
            rest <<= 1;
            bit += 1;
        }
        // quotient * 2^-63, with a first bit that may be zero: at least 63 bits.
        Self::rounded(quotient, divisor_by as i32 - by as i32 - 63, overflow || rest != 0, rounding)
    }

    /// The price of a decimal number such as `0.00001234`, rounded as said.
    ///
    /// # Errors
    /// [`BatchPriceError::Malformed`] when the text is no decimal number of at most 38 significant digits (and 38 after the point);
    /// [`BatchPriceError::OutOfRange`] when the price is out of range, zero included: a market order has no price in decimal.
    pub fn from_decimal(text: &str, rounding: Rounding) -> Result<Self, BatchPriceError> {
        let (numerator, denominator) = Self::ratio_of_decimal(text)?;
        Self::from_ratio(numerator, denominator, rounding)
    }

    /// Numerator and denominator of a decimal number, exactly.
    ///
    /// # Errors
    /// [`BatchPriceError::Malformed`], as [`BatchPrice::from_decimal`].
    pub fn ratio_of_decimal(text: &str) -> Result<(u128, u128), BatchPriceError> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let fraction = fraction.trim_end_matches('0');
        let digits = || whole.bytes().chain(fraction.bytes());
        let significant_count = digits().skip_while(|&digit| digit == b'0').count();
        let is_number = text.bytes().any(|b| b.is_ascii_digit()) && digits().all(|digit| digit.is_ascii_digit());
        if !is_number || significant_count > DIGITS_MAX || fraction.len() > DIGITS_MAX {
            return Err(BatchPriceError::Malformed);
        }
        // At most 38 digits: below 10^38 < 2^127.
        let numerator = digits().fold(0_u128, |number, digit| number * 10 + u128::from(digit - b'0'));
        Ok((numerator, 10_u128.pow(fraction.len() as u32)))
    }

    /// The limit of an offer to sell `amount` for at least `numerator / denominator` units each.
    ///
    /// An offer must bring a whole number of units. So the limit is the price next below the ratio if that asks for as many units
    /// as the ratio does, else the price next above. It never asks for less. It asks for a unit more only where no price asks for
    /// as many. The price above alone would often ask for one more: 0.92 of 10,000 units is 9,200, and the next price above 0.92
    /// asks for 9,201.
    ///
    /// # Errors
    /// As [`BatchPrice::from_ratio`].
    pub fn limit_of_sale(numerator: u128, denominator: u128, amount: Amount) -> Result<Self, BatchPriceError> {
        let above = Self::from_ratio(numerator, denominator, Rounding::Up)?;
        let asked = U256::product(numerator, u128::from(amount.get()));
        let asks_as_much = |below: &Self| {
            let least = below.bought_at_least(amount).map(|least| U256::product(u128::from(least.get()), denominator));
            least.is_some_and(|least| least.scaled_is_at_least(0, asked))
        };
        Ok(Self::from_ratio(numerator, denominator, Rounding::Down).ok().filter(asks_as_much).unwrap_or(above))
    }

    /// The limit of an offer to buy `bought` for at least `numerator / denominator` units for each unit sold: the price next below
    /// the ratio if that allows to sell as many units as the ratio does, else the price next above.
    ///
    /// # Errors
    /// As [`BatchPrice::from_ratio`].
    pub fn limit_of_purchase(numerator: u128, denominator: u128, bought: Amount) -> Result<Self, BatchPriceError> {
        let above = Self::from_ratio(numerator, denominator, Rounding::Up)?;
        let paid = U256::product(u128::from(bought.get()), denominator);
        let allows_as_much = |below: &Self| {
            let most = U256::product(numerator, u128::from(below.sold_at_most(bought).get()));
            paid.scaled_is_at_least(0, most)
        };
        Ok(Self::from_ratio(numerator, denominator, Rounding::Down).ok().filter(allows_as_much).unwrap_or(above))
    }

    /// The most units that may be sold for `bought` at this limit, at most [`Amount::MAX`].
    #[must_use]
    pub fn sold_at_most(self, bought: Amount) -> Amount {
        let (m, e) = self.parts();
        if self.is_honoured_by(Amount::MAX, bought) {
            return Amount::MAX;
        }
        if bought.is_zero() {
            return Amount::ZERO;
        }
        // floor(bought / (m * 2^e)) is below 2^63.
        let most = match u32::try_from(e) {
            Ok(up) => (bought.get() / m).checked_shr(up).unwrap_or(0),
            Err(_) => shifted_quotient(bought.get(), e.unsigned_abs(), m),
        };
        Amount::new(most).unwrap_or(Amount::MAX)
    }

    /// Whether who sells `sold` and gets `bought` gets at least this price: `self * sold <= bought`, exactly.
    #[must_use]
    pub const fn is_honoured_by(self, sold: Amount, bought: Amount) -> bool {
        let (m, e) = self.parts();
        // 53 + 63 bits.
        let least = m as u128 * sold.get() as u128;
        if least == 0 {
            return true;
        }
        let bought = bought.get() as u128;
        match e {
            // A shift that loses bits would make at least 2^128, which is above any amount.
            0.. => e as u32 <= least.leading_zeros() && least << e <= bought,
            // least < 2^116 is below bought * 2^-e from -e = 116 on, unless nothing is bought.
            _ if e <= -116 => bought > 0,
            // Compared from the right: least <= bought * 2^-e, where bought may have to lose no bits.
            _ => (e.unsigned_abs()) > bought.leading_zeros() || least <= bought << e.unsigned_abs(),
        }
    }

    /// Whether this price is at most `bought / sold`, exactly: `self * sold <= bought`, for any two numbers.
    #[must_use]
    pub const fn is_at_most_ratio(self, bought: u64, sold: u64) -> bool {
        let (m, e) = self.parts();
        U256::product(bought as u128, 1).scaled_is_at_least(-e, U256::product(m as u128, sold as u128))
    }

    /// The least whole number of units that `sold` must buy to honour this price, rounded up; `None` above [`Amount::MAX`].
    #[must_use]
    pub fn bought_at_least(self, sold: Amount) -> Option<Amount> {
        let (m, e) = self.parts();
        let product = u128::from(m) * u128::from(sold.get());
        if product == 0 {
            return Some(Amount::ZERO);
        }
        match u32::try_from(e) {
            Ok(up) if up > product.leading_zeros() => None,
            Ok(up) => Amount::from_wide(product << up),
            // Below 2^116: a shift by more leaves less than one.
            Err(_) if e <= -116 => Amount::new(1),
            Err(_) => Amount::from_wide(((product - 1) >> e.unsigned_abs()) + 1),
        }
    }
}

/// In the exact form `m*2^e`; outside the core, a float prints the shortest decimal.
impl std::fmt::Display for BatchPrice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (m, e) = self.parts();
        write!(f, "{m}*2^{e}")
    }
}

/// The limit of an offer to sell `amount` at `stated` or better as whole units can honour it: the least price not below
/// `ceil(stated * amount) / amount`. `None` when `amount` is zero or the product is above [`Amount::MAX`]: no such offer can trade.
///
/// A rate that this limit accepts buys, rounded down, at least `ceil(stated * amount)`: from `rate >= c / amount` with `c` whole
/// follows `rate * amount >= c`, and rounding down keeps it. So a full fill never breaks the stated limit. `None` never comes of
/// `stated` zero.
#[must_use]
pub fn effective_limit(stated: BatchPrice, amount: Amount) -> Option<BatchPrice> {
    let bought = stated.bought_at_least(amount)?;
    match (bought.get(), amount.get()) {
        (_, 0) => None,
        (0, _) => Some(BatchPrice::ZERO),
        (bought, amount) => BatchPrice::from_ratio(u128::from(bought), u128::from(amount), Rounding::Up).ok(),
    }
}

/// The limit of an offer to buy exactly `bought` for at most `sold_max`, at `stated` or better, as whole units can honour it: the
/// least price not below `bought / s`, where `s` is the most that may be sold: `sold_max`, or `floor(bought / stated)` if less.
/// `None` when either amount is zero, or `s` is: no such offer can trade.
///
/// A rate that this limit accepts needs, rounded up, at most `s`: from `rate >= bought / s` follows `bought / rate <= s`, and
/// rounding up to a whole number keeps it.
#[must_use]
pub fn effective_buy_limit(stated: BatchPrice, bought: Amount, sold_max: Amount) -> Option<BatchPrice> {
    if bought.is_zero() || sold_max.is_zero() {
        return None;
    }
    let most = stated.sold_at_most(bought).min(sold_max).get();
    BatchPrice::from_ratio(u128::from(bought.get()), u128::from(most), Rounding::Up).ok()
}

/// `floor(a * 2^by / divisor)` where the quotient fits 64 bits and `2^52 <= divisor < 2^53`, so that `a * 2^by < 2^117`.
fn shifted_quotient(a: u64, by: u32, divisor: u64) -> u64 {
    ((u128::from(a) << by) / u128::from(divisor)) as u64
}
