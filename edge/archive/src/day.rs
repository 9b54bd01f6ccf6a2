//! Days of the log's time, in UTC.

use time::{Date, Month};
use walras_types::TimeNs;

/// Nanoseconds of a day: the log's time has no leap seconds.
pub(crate) const DAY_NS: u64 = 86_400_000_000_000;

/// A day in UTC. It prints as `2026-11-21`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(u32);

impl Day {
    /// The day that a time is in.
    #[must_use]
    pub fn of(time: TimeNs) -> Self {
        Self(u32::try_from(time.0 / DAY_NS).expect("2^64 nanoseconds are 213503 days"))
    }

    /// As it prints; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (year, month, day) =
            (text.get(0..4)?.parse().ok()?, text.get(5..7)?.parse::<u8>().ok()?, text.get(8..10)?.parse().ok()?);
        let date = Date::from_calendar_date(year, Month::try_from(month).ok()?, day).ok()?;
        let found = Self(u32::try_from(date.to_julian_day() - JULIAN_1970).ok()?);
        (found.to_string() == text).then_some(found)
    }

    /// Its first nanosecond.
    #[must_use]
    pub fn start(self) -> TimeNs {
        TimeNs(u64::from(self.0).saturating_mul(DAY_NS))
    }

    /// The first nanosecond of the day after it.
    #[must_use]
    pub fn end(self) -> TimeNs {
        self.next().start()
    }

    /// The day after it.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// So many days before it, not before 1970.
    #[must_use]
    pub fn before(self, days: u32) -> Self {
        Self(self.0.saturating_sub(days))
    }

    /// Days since the first of January 1970.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    pub(crate) fn from_number(number: u32) -> Self {
        Self(number)
    }

    /// Year, month and day of the month.
    #[must_use]
    pub fn date(self) -> (u32, u32, u32) {
        let julian = i32::try_from(self.0).ok().and_then(|days| days.checked_add(JULIAN_1970));
        let date = julian.and_then(|day| Date::from_julian_day(day).ok()).unwrap_or(Date::MAX);
        let (year, month, day) = date.to_calendar_date();
        (year.unsigned_abs(), u8::from(month).into(), day.into())
    }
}

/// The Julian day of the first of January 1970.
const JULIAN_1970: i32 = 2_440_588;

impl std::fmt::Display for Day {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (year, month, day) = self.date();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_print_and_parse_as_the_calendar_has_them() {
        for (number, text) in
            [(0, "1970-01-01"), (59, "1970-03-01"), (11_016, "2000-02-29"), (11_017, "2000-03-01"), (20_778, "2026-11-21")]
        {
            assert_eq!(Day(number).to_string(), text);
            assert_eq!(Day::parse(text), Some(Day(number)));
        }
        for number in 0..200_000 {
            assert_eq!(Day::parse(&Day(number).to_string()), Some(Day(number)));
        }
        for text in ["", "2026-11-31", "2100-02-29", "2026-1-01", "2026-11-21.partial", "1969-12-31", "2026/11/21", "２026-11-21"]
        {
            assert_eq!(Day::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_day_has_its_first_nanosecond_and_not_the_next_days() {
        let day = Day::parse("2026-11-21").unwrap();
        assert_eq!(Day::of(day.start()), day);
        assert_eq!(Day::of(TimeNs(day.end().0 - 1)), day);
        assert_eq!(Day::of(day.end()), day.next());
        assert_eq!(Day::of(TimeNs(u64::MAX)).to_string(), "2554-07-21");
    }
}
