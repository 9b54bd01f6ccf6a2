//! Exact decimals: an integer and the number of its decimals.

use crate::limits::DECIMAL_LEN_MAX;

/// An exact decimal number. It prints all its decimals: [`Decimal::minimal`] drops the trailing zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    is_negative: bool,
    mantissa: u128,
    decimals: u32,
}

impl Decimal {
    /// `mantissa / 10^decimals`.
    #[must_use]
    pub const fn new(mantissa: u128, decimals: u32) -> Self {
        Self { is_negative: false, mantissa, decimals }
    }

    /// `mantissa / 10^decimals`, of either sign.
    #[must_use]
    pub const fn signed(mantissa: i128, decimals: u32) -> Self {
        Self { is_negative: mantissa < 0, mantissa: mantissa.unsigned_abs(), decimals }
    }

    /// The number times `10^decimals`, without its sign.
    #[must_use]
    pub const fn mantissa(self) -> u128 {
        self.mantissa
    }

    /// How many decimals it prints.
    #[must_use]
    pub const fn decimals(self) -> u32 {
        self.decimals
    }

    /// The same number without trailing zeros after the point.
    #[must_use]
    pub const fn minimal(mut self) -> Self {
        while self.decimals > 0 && self.mantissa.is_multiple_of(10) {
            self.mantissa /= 10;
            self.decimals -= 1;
        }
        self
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let decimals = usize::try_from(self.decimals).expect("a number of decimals is small");
        let sign = if self.is_negative { "-" } else { "" };
        // A power of ten that does not fit is above each mantissa.
        let (whole, fraction) = match 10_u128.checked_pow(self.decimals) {
            Some(power) => (self.mantissa / power, self.mantissa % power),
            None => (0, self.mantissa),
        };
        if decimals == 0 { write!(f, "{sign}{whole}") } else { write!(f, "{sign}{whole}.{fraction:0>decimals$}") }
    }
}

/// Why a text is not a multiple of `10^-decimals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Not digits with at most one point between them, or leading zeros, or too long.
    Malformed,
    /// A number with more decimals.
    TooFine,
    /// A number that is too large.
    TooLarge,
}

/// Parses `text * 10^decimals`, exactly. Trailing zeros beyond `decimals` are accepted; signs, exponents and spaces are refused.
pub(crate) fn parse_scaled(text: &str, decimals: u32) -> Result<u128, Fault> {
    let (whole, fraction) = match text.split_once('.') {
        Some((_, "")) => return Err(Fault::Malformed),
        Some((whole, fraction)) => (whole.as_bytes(), fraction.as_bytes()),
        None => (text.as_bytes(), &[][..]),
    };
    let all_digits = whole.iter().chain(fraction).all(u8::is_ascii_digit);
    if !all_digits || whole.is_empty() || (whole.len() > 1 && whole[0] == b'0') || text.len() > DECIMAL_LEN_MAX {
        return Err(Fault::Malformed);
    }
    let kept = usize::try_from(decimals).map_or(fraction.len(), |decimals| decimals.min(fraction.len()));
    if fraction[kept..].iter().any(|&digit| digit != b'0') {
        return Err(Fault::TooFine);
    }
    let digits = whole.iter().chain(&fraction[..kept]).map(|digit| u128::from(digit - b'0'));
    let missing = (kept..usize::try_from(decimals).unwrap_or(usize::MAX)).map(|_| 0);
    let mut scaled: u128 = 0;
    for digit in digits.chain(missing) {
        scaled = scaled.checked_mul(10).and_then(|tens| tens.checked_add(digit)).ok_or(Fault::TooLarge)?;
    }
    Ok(scaled)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decimals_print_all_or_only_needed_digits() {
        for (number, all, needed) in [
            (Decimal::new(0, 0), "0", "0"),
            (Decimal::new(0, 3), "0.000", "0"),
            (Decimal::new(5, 3), "0.005", "0.005"),
            (Decimal::new(3_071_125, 2), "30711.25", "30711.25"),
            (Decimal::new(1_500, 3), "1.500", "1.5"),
            (Decimal::new(1_500, 0), "1500", "1500"),
            (Decimal::signed(-1_050, 3), "-1.050", "-1.05"),
            (Decimal::signed(i128::MIN, 0), "-170141183460469231731687303715884105728", "-170141183460469231731687303715884105728"),
            (Decimal::new(u128::MAX, 38), "3.40282366920938463463374607431768211455", "3.40282366920938463463374607431768211455"),
        ] {
            assert_eq!((number.to_string().as_str(), number.minimal().to_string().as_str()), (all, needed));
        }
    }

    #[test]
    fn texts_are_read_exactly_or_refused() {
        for (text, decimals, expected) in [
            ("30711.25", 2, Ok(3_071_125)),
            ("30711.25", 4, Ok(307_112_500)),
            ("30711.2500", 2, Ok(3_071_125)),
            ("30711.251", 2, Err(Fault::TooFine)),
            ("0", 0, Ok(0)),
            ("0.0", 0, Ok(0)),
            ("340282366920938463463374607431768211455", 0, Ok(u128::MAX)),
            ("340282366920938463463374607431768211456", 0, Err(Fault::TooLarge)),
            ("34028236692093846346337460743176821146", 1, Err(Fault::TooLarge)),
            ("", 2, Err(Fault::Malformed)),
            (".", 2, Err(Fault::Malformed)),
            (".5", 2, Err(Fault::Malformed)),
            ("5.", 2, Err(Fault::Malformed)),
            ("05", 2, Err(Fault::Malformed)),
            ("00.5", 2, Err(Fault::Malformed)),
            ("+5", 2, Err(Fault::Malformed)),
            ("-5", 2, Err(Fault::Malformed)),
            ("1e3", 2, Err(Fault::Malformed)),
            ("1_000", 2, Err(Fault::Malformed)),
            ("1,5", 2, Err(Fault::Malformed)),
            (" 5", 2, Err(Fault::Malformed)),
            ("5\n", 2, Err(Fault::Malformed)),
            ("1.2.3", 2, Err(Fault::Malformed)),
            ("٣", 2, Err(Fault::Malformed)),
            ("NaN", 2, Err(Fault::Malformed)),
        ] {
            assert_eq!(parse_scaled(text, decimals), expected, "{text:?} with {decimals} decimals");
        }
        assert_eq!(parse_scaled(&"0".repeat(DECIMAL_LEN_MAX + 1), 0), Err(Fault::Malformed));
        assert_eq!(parse_scaled(&format!("1.{}", "0".repeat(DECIMAL_LEN_MAX - 2)), 0), Ok(1));
        assert_eq!(parse_scaled(&format!("1.{}", "0".repeat(DECIMAL_LEN_MAX - 1)), 0), Err(Fault::Malformed));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_printed_parses_back(mantissa in any::<u128>(), shift in 0u32..128, decimals in 0u32..40) {
            let number = Decimal::new(mantissa >> shift, decimals);
            prop_assert_eq!(parse_scaled(&number.to_string(), decimals), Ok(mantissa >> shift));
            prop_assert_eq!(parse_scaled(&number.minimal().to_string(), decimals), Ok(mantissa >> shift));
        }

        #[test]
        fn no_text_panics(text in "[0-9.e+-]{0,45}|.{0,10}", decimals in 0u32..60) {
            if let Ok(scaled) = parse_scaled(&text, decimals) {
                prop_assert_eq!(parse_scaled(&Decimal::new(scaled, decimals).to_string(), decimals), Ok(scaled));
            }
        }
    }
}
