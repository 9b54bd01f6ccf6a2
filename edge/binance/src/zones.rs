//! Time zones of the dialect: offsets from UTC by which days and candles begin.

use std::ops::RangeInclusive;

/// Offsets that the dialect takes, in minutes.
const MINUTES: RangeInclusive<i16> = -12 * 60..=14 * 60;

/// An offset from UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Zone {
    minutes: i16,
}

impl Zone {
    /// None.
    pub(crate) const UTC: Self = Self { minutes: 0 };

    /// Reads hours, or hours and minutes: `8`, `-1:00`, `+05:45`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (sign, rest) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "00"));
        let number = |digits: &str| if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse::<i16>().ok() } else { None };
        if hours.len() > 2 || minutes.len() != 2 {
            return None;
        }
        let (hours, minutes) = (number(hours)?, number(minutes)?);
        let offset = sign * (hours * 60 + minutes);
        (minutes < 60 && MINUTES.contains(&offset)).then_some(Self { minutes: offset })
    }

    /// In seconds.
    pub(crate) fn seconds(self) -> i64 {
        i64::from(self.minutes) * 60
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_hours_or_hours_and_minutes() {
        let seconds = |text: &str| Zone::parse(text).map(Zone::seconds);
        let read = [
            ("0", 0),
            ("8", 28_800),
            ("+08:00", 28_800),
            ("-1:00", -3_600),
            ("05:45", 20_700),
            ("-12", -43_200),
            ("14:00", 50_400),
        ];
        for (text, offset_s) in read {
            assert_eq!(seconds(text), Some(offset_s), "{text}");
        }
        for text in ["", "+", "-", ":", "8:", "8:5", "8:60", "008", "14:01", "-12:01", "--8", "+-8", "8:00:00", "UTC", " 8", "1.5"]
        {
            assert_eq!(seconds(text), None, "{text}");
        }
        assert_eq!(Zone::parse("+00:00"), Some(Zone::UTC));
    }
}
