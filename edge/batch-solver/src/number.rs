//! Decimal numbers as people and programs write them, exactly.

use crate::offers::Problem;

/// Longest text of a number.
const LEN_MAX: usize = 400;
/// Powers of ten that are written as digits.
const ZEROS_WRITTEN_MAX: i32 = 40;

/// `mantissa * 10^exponent`, without trailing zeros in the mantissa; zero is `0 * 10^0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) mantissa: u64,
    pub(crate) exponent: i32,
}

impl Number {
    /// Reads `12`, `0.5`, `1e-7`, `2.5E+3`: no sign but in the exponent, no spaces within, at most 19 significant digits.
    pub(crate) fn parse(text: &str) -> Result<Self, Problem> {
        match text.strip_prefix('-') {
            None => Self::parse_unsigned(text),
            Some(rest) if Self::parse_unsigned(rest).is_ok() => Err(Problem::Negative(shown(text))),
            Some(_) => Err(Problem::NotANumber(shown(text))),
        }
    }

    fn parse_unsigned(text: &str) -> Result<Self, Problem> {
        let malformed = || Problem::NotANumber(shown(text));
        let text = text.strip_prefix('+').unwrap_or(text);
        if text.len() > LEN_MAX {
            return Err(malformed());
        }
        let (number, exponent) = match text.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, exponent.parse::<i16>().map_err(|_| malformed())?),
            None => (text, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = || whole.bytes().chain(fraction.bytes());
        if digits().next().is_none() || !digits().all(|digit| digit.is_ascii_digit()) {
            return Err(malformed());
        }
        // Both lengths are at most LEN_MAX.
        let mut exponent = i32::from(exponent) - fraction.len() as i32;
        let trailing = digits().rev().take_while(|&digit| digit == b'0').count();
        let significant = digits().count() - trailing;
        exponent += trailing as i32;
        let mut mantissa = 0_u64;
        for digit in digits().take(significant) {
            let next = mantissa.checked_mul(10).and_then(|ten| ten.checked_add(u64::from(digit - b'0')));
            mantissa = next.ok_or_else(|| Problem::TooManyDigits(shown(text)))?;
        }
        Ok(if mantissa == 0 { Self::default() } else { Self { mantissa, exponent } })
    }

    pub(crate) fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// Decimals that it needs.
    pub(crate) fn decimals(self) -> u32 {
        self.exponent.min(0).unsigned_abs()
    }

    /// About its value.
    pub(crate) fn to_f64(self) -> f64 {
        self.mantissa as f64 * 10_f64.powi(self.exponent)
    }

    /// Its text without an exponent, or with one where that takes many zeros.
    pub(crate) fn text(self) -> String {
        let digits = self.mantissa.to_string();
        let zeros = |count: usize| "0".repeat(count);
        let places = self.exponent.unsigned_abs() as usize;
        if self.exponent.abs() > ZEROS_WRITTEN_MAX {
            format!("{digits}e{}", self.exponent)
        } else if self.exponent >= 0 {
            digits + &zeros(places)
        } else {
            let digits = zeros((places + 1).saturating_sub(digits.len())) + &digits;
            let (whole, fraction) = digits.split_at(digits.len() - places);
            format!("{whole}.{fraction}")
        }
    }

    /// The number times `10^decimals`; `None` where it is no whole number or too large for 128 bits.
    pub(crate) fn scaled(self, decimals: u32) -> Option<u128> {
        let by = self.exponent + i32::try_from(decimals).ok()?;
        if self.is_zero() {
            return Some(0);
        }
        u128::from(self.mantissa).checked_mul(10_u128.checked_pow(u32::try_from(by).ok()?)?)
    }

    /// Numerator and denominator of the number times `10^shift`; `None` where 128 bits do not hold them.
    pub(crate) fn ratio(self, shift: i32) -> Option<(u128, u128)> {
        let by = self.exponent + shift;
        let power = 10_u128.checked_pow(by.unsigned_abs())?;
        if by >= 0 { Some((u128::from(self.mantissa).checked_mul(power)?, 1)) } else { Some((u128::from(self.mantissa), power)) }
    }
}

/// Whether a terminal shows it as a character of a text: neither a control character, nor one that turns the direction of others, nor one
/// that is not seen, so that two names would look alike.
#[must_use]
pub fn is_printable(c: char) -> bool {
    !c.is_control() && !is_invisible(c)
}

/// Characters without a shape of their own: what Unicode calls default ignorable (joiners, marks of direction, fillers, variation
/// selectors, tags), ends of lines and paragraphs, and marks of annotations and of hieroglyphs' places.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The text of a cell, for a message.
pub(crate) fn shown(text: &str) -> String {
    const SHOWN_MAX: usize = 40;
    let mut shown: String = text.chars().take(SHOWN_MAX).map(|c| if is_printable(c) { c } else { '\u{fffd}' }).collect();
    if text.chars().nth(SHOWN_MAX).is_some() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(mantissa: u64, exponent: i32) -> Result<Number, Problem> {
        Ok(Number { mantissa, exponent })
    }

    #[test]
    fn numbers_are_read_exactly() {
        for (text, mantissa, exponent) in [
            ("0", 0, 0),
            ("0.000", 0, 0),
            ("12", 12, 0),
            ("1200", 12, 2),
            ("0.050", 5, -2),
            (".5", 5, -1),
            ("5.", 5, 0),
            ("1e-7", 1, -7),
        ] {
            assert_eq!(Number::parse(text), number(mantissa, exponent), "{text}");
        }
        assert_eq!(Number::parse("2.5E+3"), number(25, 2));
        assert_eq!(Number::parse("18446744073709551615"), number(u64::MAX, 0));
        assert!(matches!(Number::parse("18446744073709551616"), Err(Problem::TooManyDigits(_))));
        assert!(matches!(Number::parse("-1"), Err(Problem::Negative(_))));
        for text in ["", ".", "abc", "1,5", "NaN", "inf", "-inf", "1e", "1e99999", "0x10", "1 2", "--1", "1.2.3", "\u{663}"] {
            assert!(matches!(Number::parse(text), Err(Problem::NotANumber(_))), "{text}");
        }
        // A cell has no length that ends the stack.
        for dashes in [2, 3, 401, 1_000_000] {
            assert!(matches!(Number::parse(&"-".repeat(dashes)), Err(Problem::NotANumber(_))), "{dashes} dashes");
        }
        for text in ["0", "12", "1200", "0.05", "1.5", "1e999", "1e-41", "18446744073709551615", "0.0000001", "1e41"] {
            assert_eq!(Number::parse(text).unwrap().text(), text);
        }
        assert_eq!(Number::parse("1.25").unwrap().scaled(2), Some(125));
        assert_eq!(Number::parse("1.25").unwrap().scaled(1), None);
        assert_eq!(Number::parse("1e300").unwrap().scaled(0), None);
    }

    #[test]
    fn what_is_not_seen_is_no_character_of_a_name() {
        let controls = "\u{0}\u{7f}\u{9b}";
        let invisible =
            "\u{ad}\u{34f}\u{180e}\u{200b}\u{200d}\u{2028}\u{2060}\u{2064}\u{3164}\u{fe0f}\u{feff}\u{fff9}\u{e0001}\u{e0061}";
        let turning = "\u{61c}\u{200e}\u{202e}\u{2066}";
        for c in [controls, invisible, turning].concat().chars() {
            assert!(!is_printable(c), "{:x}", u32::from(c));
        }
        // What has a shape is one, and so is the mark that takes the place of what is none.
        for c in ['A', ' ', '-', '\u{df}', '\u{301}', '\u{628}', '\u{6dd}', '\u{20ac}', '\u{4e00}', '\u{fffd}', '\u{1f600}'] {
            assert!(is_printable(c), "{:x}", u32::from(c));
        }
        assert_eq!(shown("B\u{200b}TC"), "B\u{fffd}TC");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[-+0-9.eE]{0,12}|.{0,12}") {
            if let Ok(number) = Number::parse(&text) {
                let expected: f64 = text.trim_end_matches('.').parse().unwrap_or(f64::NAN);
                let close = (number.to_f64() - expected).abs() <= expected.abs() * 1e-9;
                prop_assert!(close || !expected.is_normal() || !number.to_f64().is_normal(), "{} {:?}", text, number);
                let _ = (number.scaled(18), number.ratio(18), number.ratio(-18), number.decimals());
            }
        }
    }
}
