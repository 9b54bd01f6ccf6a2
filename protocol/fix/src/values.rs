//! Formats of values, times in text.

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Any text.
    Text,
    /// One character.
    Char,
    /// A whole number with or without a minus sign.
    Int,
    /// A whole number from 0 on.
    Count,
    /// A decimal number with or without a minus sign.
    Decimal,
    /// Y or N.
    Boolean,
    /// A date and a time.
    Timestamp,
    /// A date.
    Date,
    /// A time of day.
    Time,
    /// Several texts, each between spaces.
    List,
    /// Bytes, whose number the field before says.
    Data,
}

impl Format {
    /// The format of a type of the dictionaries. Types whose values need a table kept elsewhere (countries, currencies) are texts.
    pub(crate) fn of_type(name: &str) -> Self {
        match name {
            "CHAR" => Self::Char,
            "INT" | "DAYOFMONTH" => Self::Int,
            "LENGTH" | "SEQNUM" | "NUMINGROUP" => Self::Count,
            "AMT" | "FLOAT" | "PERCENTAGE" | "PRICE" | "PRICEOFFSET" | "QTY" => Self::Decimal,
            "BOOLEAN" => Self::Boolean,
            "TIME" | "UTCTIMESTAMP" => Self::Timestamp,
            "DATE" | "UTCDATE" | "UTCDATEONLY" | "LOCALMKTDATE" => Self::Date,
            "UTCTIMEONLY" => Self::Time,
            "MULTIPLECHARVALUE" | "MULTIPLESTRINGVALUE" | "MULTIPLEVALUESTRING" => Self::List,
            "DATA" | "XMLDATA" => Self::Data,
            _ => Self::Text,
        }
    }

    /// Whether a value, which is not empty, has this format.
    pub(crate) fn fits(self, value: &[u8]) -> bool {
        match self {
            Self::Text | Self::List | Self::Data => true,
            Self::Char => value.len() == 1,
            Self::Int => is_int(value.strip_prefix(b"-").unwrap_or(value)),
            Self::Count => is_int(value),
            Self::Decimal => is_decimal(value.strip_prefix(b"-").unwrap_or(value)),
            Self::Boolean => matches!(value, b"Y" | b"N"),
            Self::Timestamp => parse_timestamp(value).is_some(),
            Self::Date => parse_date(value).is_some(),
            Self::Time => parse_time(value).is_some(),
        }
    }
}

fn is_int(digits: &[u8]) -> bool {
    !digits.is_empty() && digits.len() <= 19 && digits.iter().all(u8::is_ascii_digit)
}

/// Digits with at most one point, anywhere among them.
fn is_decimal(text: &[u8]) -> bool {
    let points = text.iter().filter(|byte| **byte == b'.').count();
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    points <= 1 && digits >= 1 && points + digits == text.len()
}

/// A whole number from 0 on, with leading zeros or without.
pub(crate) fn parse_count(digits: &[u8]) -> Option<u64> {
    if !is_int(digits) {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| number.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
}

const DAY_NS: u64 = 86_400_000_000_000;

/// `YYYYMMDD-HH:MM:SS` with a fraction of up to nine digits or without, in nanoseconds since the Unix epoch, UTC. A leap second is
/// the first instant of the next minute.
#[must_use]
pub fn parse_timestamp(text: &[u8]) -> Option<u64> {
    let date = parse_date(text.get(..8)?)?;
    if *text.get(8)? != b'-' {
        return None;
    }
    let time_ns = parse_time(text.get(9..)?)?;
    date.checked_mul(DAY_NS)?.checked_add(time_ns)
}

/// `YYYYMMDD` from 1970 on, in days since the Unix epoch.
fn parse_date(text: &[u8]) -> Option<u64> {
    if text.len() != 8 {
        return None;
    }
    let number = |range: std::ops::Range<usize>| parse_count(&text[range]);
    let (year, month, day) = (number(0..4)?, number(4..6)?, number(6..8)?);
    if year < 1970 || !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
        return None;
    }
    Some(days_before(year, month) + day - 1)
}

/// `HH:MM:SS` with a fraction of up to nine digits or without, in nanoseconds since midnight.
fn parse_time(text: &[u8]) -> Option<u64> {
    let (whole, fraction) = text.split_at_checked(8)?;
    if whole[2] != b':' || whole[5] != b':' {
        return None;
    }
    let (hours, minutes, seconds) = (parse_count(&whole[..2])?, parse_count(&whole[3..5])?, parse_count(&whole[6..])?);
    if hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    let nanoseconds = match fraction {
        [] => 0,
        [b'.', digits @ ..] if (1..=9).contains(&digits.len()) => {
            let missing = u32::try_from(9 - digits.len()).ok()?;
            parse_count(digits)?.checked_mul(10_u64.pow(missing))?
        }
        _ => return None,
    };
    Some((hours * 3_600 + minutes * 60 + seconds) * 1_000_000_000 + nanoseconds)
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_in(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from the Unix epoch to the first of a month.
fn days_before(year: u64, month: u64) -> u64 {
    let leap_days = |years: u64| years / 4 - years / 100 + years / 400;
    let years = (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969);
    years + (1..month).map(|month| days_in(year, month)).sum::<u64>()
}

/// Appends a time in nanoseconds since the Unix epoch as UTC, to the second or to the millisecond; what is finer is cut off.
pub(crate) fn write_timestamp(time_ns: u64, has_milliseconds: bool, to: &mut Vec<u8>) {
    let (days, in_day) = (time_ns / DAY_NS, time_ns % DAY_NS);
    // A year has at most 366 days, so this is the year or one shortly before it.
    let mut year = 1970 + days / 366;
    while days_before(year + 1, 1) <= days {
        year += 1;
    }
    let mut month = 1;
    while month < 12 && days_before(year, month + 1) <= days {
        month += 1;
    }
    let day = days - days_before(year, month) + 1;
    let seconds = in_day / 1_000_000_000;
    write_digits(year, 4, to);
    write_digits(month, 2, to);
    write_digits(day, 2, to);
    to.push(b'-');
    write_digits(seconds / 3_600, 2, to);
    to.push(b':');
    write_digits(seconds / 60 % 60, 2, to);
    to.push(b':');
    write_digits(seconds % 60, 2, to);
    if has_milliseconds {
        to.push(b'.');
        write_digits(in_day / 1_000_000 % 1_000, 3, to);
    }
}

/// Appends a number with at least `width` digits.
pub(crate) fn write_digits(number: u64, width: usize, to: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    let mut rest = number;
    while rest > 0 || digits.len() - at < width.max(1) {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
    }
    to.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        for (text, time_ns) in [
            ("19700101-00:00:00.000", 0),
            ("19700101-00:00:01.001", 1_001_000_000),
            ("20000229-23:59:59.999", 951_868_799_999_000_000),
            ("20010101-00:00:00.000", 978_307_200_000_000_000),
            ("20261124-02:43:30.123", 1_795_488_210_123_000_000),
            ("21000301-00:00:00.000", 4_107_542_400_000_000_000),
        ] {
            assert_eq!(parse_timestamp(text.as_bytes()), Some(time_ns), "{text}");
            let mut written = Vec::new();
            write_timestamp(time_ns, true, &mut written);
            assert_eq!(String::from_utf8(written).unwrap(), text);
            let mut seconds = Vec::new();
            write_timestamp(time_ns, false, &mut seconds);
            assert_eq!(seconds, &text.as_bytes()[..17]);
        }
        assert_eq!(parse_timestamp(b"19700101-00:00:00.000000001"), Some(1));
        for wrong in [
            "",
            "20040415",
            "20010229-00:00:00",
            "20010101-24:00:00",
            "20010101-00:00:00.",
            "20010101T00:00:00",
            "20010101-0:00:00",
        ] {
            assert_eq!(parse_timestamp(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn formats_refuse_what_is_none_of_theirs() {
        for (name, right, wrong) in [
            ("QTY", "002000.00", "+200.00"),
            ("PRICE", "-1.5", "1e5"),
            ("PRICE", ".5", "."),
            ("INT", "-12", "1.2"),
            ("SEQNUM", "12", "-12"),
            ("CHAR", "w", "ww"),
            ("BOOLEAN", "Y", "y"),
            ("UTCTIMESTAMP", "20040415-01:02:03", "20040415"),
            ("UTCTIMEONLY", "01:02:03", "1:2:3"),
            ("LOCALMKTDATE", "20040415", "20041315"),
        ] {
            let format = Format::of_type(name);
            assert!(format.fits(right.as_bytes()), "{name} {right}");
            assert!(!format.fits(wrong.as_bytes()), "{name} {wrong}");
        }
    }
}
