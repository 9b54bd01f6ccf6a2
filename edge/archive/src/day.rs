//! Days of the log's time, in UTC.

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
        let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u32>().ok();
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        if !(1970..2600).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        // Years that begin in March, so that a leap day is the last of one.
        let years = if month > 2 { year } else { year - 1 };
        let months = (month + 9) % 12;
        let since_march_0 = years * 365 + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day - 1;
        let found = Self(since_march_0.checked_sub(MARCH_0_TO_1970)?);
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
        let days = self.0 + MARCH_0_TO_1970;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let months = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * months + 2) / 5 + 1;
        let month = if months < 10 { months + 3 } else { months - 9 };
        (era * 400 + year_of_era + u32::from(month <= 2), month, day)
    }
}

/// Days from the first of March of the year 0 to the first of January 1970.
const MARCH_0_TO_1970: u32 = 719_468;

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
