//! Lines, and exact numbers in text.

use std::io::BufRead;

use crate::error::{HistoryError, Position, show};

/// Longest line of any text format; the longest seen is under 1,500 bytes.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// Lines of a stream, one buffer for all.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    format: &'static str,
    line: u64,
    byte: u64,
    next_byte: u64,
    ended: bool,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(source: R, format: &'static str) -> Self {
        Self { source, buffer: Vec::with_capacity(2048), format, line: 0, byte: 0, next_byte: 0, ended: false }
    }

    pub(crate) fn position(&self) -> Position {
        Position::Line { line: self.line, byte: self.byte }
    }

    pub(crate) fn number(&self) -> u64 {
        self.line
    }

    /// The line last read by [`Lines::advance`].
    pub(crate) fn current(&self) -> &[u8] {
        &self.buffer
    }

    /// Reads the next line that is not empty, without its end; `None` at the end of the stream. A line that is too long is an
    /// error; reading goes on behind it.
    pub(crate) fn advance(&mut self) -> Option<Result<(), HistoryError>> {
        loop {
            if self.ended {
                return None;
            }
            match self.read_line() {
                Err(error) => return Some(Err(error)),
                Ok(true) if self.buffer.is_empty() => {}
                Ok(true) => return Some(Ok(())),
                Ok(false) => {
                    self.ended = true;
                    return None;
                }
            }
        }
    }

    /// `false` at the end of the stream.
    fn read_line(&mut self) -> Result<bool, HistoryError> {
        self.buffer.clear();
        self.byte = self.next_byte;
        let mut length = 0u64;
        loop {
            let chunk = match self.source.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(source) => {
                    self.ended = true;
                    return Err(HistoryError::Read { at: self.position(), source });
                }
            };
            if chunk.is_empty() {
                if length == 0 {
                    return Ok(false);
                }
                break;
            }
            let end = chunk.iter().position(|&byte| byte == b'\n');
            let taken = end.map_or(chunk.len(), |end| end + 1);
            let kept = end.unwrap_or(chunk.len()).min(LINE_BYTES_MAX + 1 - self.buffer.len().min(LINE_BYTES_MAX + 1));
            self.buffer.extend_from_slice(&chunk[..kept]);
            self.source.consume(taken);
            length += taken as u64;
            if end.is_some() {
                break;
            }
        }
        self.next_byte += length;
        self.line += 1;
        if self.buffer.len() > LINE_BYTES_MAX {
            return Err(self.malformed(
                "a line of at most 65,536 bytes",
                &self.buffer,
                "this is not a text file of the format, or its line ends were lost: unpack or fetch it again",
            ));
        }
        if self.buffer.last() == Some(&b'\r') {
            self.buffer.pop();
        }
        Ok(true)
    }

    pub(crate) fn malformed(&self, expected: &'static str, found: &[u8], advice: &'static str) -> HistoryError {
        HistoryError::Malformed { format: self.format, at: self.position(), expected, found: show(found), advice }
    }
}

/// A decimal integer without sign.
pub(crate) fn parse_u64(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut value = 0u64;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// A decimal integer that may have a minus sign.
pub(crate) fn parse_i64(text: &[u8]) -> Option<i64> {
    match text.strip_prefix(b"-") {
        Some(digits) => 0i64.checked_sub_unsigned(parse_u64(digits)?),
        None => i64::try_from(parse_u64(text)?).ok(),
    }
}

/// Whether digits beyond the wanted ones are refused or rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digits {
    /// Refused, unless they are zeros.
    Exact,
    /// Rounded to nearest, half away from zero. For numbers that a program printed from a binary float: the nearest decimal of
    /// the wanted length is the number that it meant.
    Nearest,
}

/// A decimal number without sign, optionally with an exponent, times `10^decimals`.
pub(crate) fn parse_decimal(text: &[u8], decimals: u32, digits: Digits) -> Option<u64> {
    let exponent_at = text.iter().position(|&byte| byte == b'e' || byte == b'E');
    let (mantissa, exponent) = match exponent_at {
        Some(at) => {
            let exponent = &text[at + 1..];
            (&text[..at], parse_i64(exponent.strip_prefix(b"+").unwrap_or(exponent)).filter(|e| e.abs() <= 64)?)
        }
        None => (text, 0),
    };
    // How many of the mantissa's digits are wanted: those before the point, then as many as the scale and the exponent say.
    let whole_digits = mantissa.iter().position(|&byte| byte == b'.').unwrap_or(mantissa.len());
    let mut wanted = i64::try_from(whole_digits).ok()? + i64::from(decimals) + exponent;
    let (mut value, mut seen_digit, mut seen_point) = (0u64, false, false);
    for &byte in mantissa {
        if byte == b'.' && !seen_point {
            seen_point = true;
            continue;
        }
        let digit = u64::from(byte.wrapping_sub(b'0'));
        if digit > 9 {
            return None;
        }
        seen_digit = true;
        if wanted > 0 {
            value = value.checked_mul(10)?.checked_add(digit)?;
        } else if digits == Digits::Exact && digit != 0 {
            return None;
        } else if wanted == 0 {
            value = value.checked_add(u64::from(digit >= 5))?;
        }
        wanted -= 1;
    }
    if !seen_digit {
        return None;
    }
    for _ in 0..wanted.max(0) {
        value = value.checked_mul(10)?;
    }
    Some(value)
}

/// The next field of a line and what follows its separator; the whole rest when there is none.
pub(crate) fn split_field(line: &[u8], separator: u8) -> (&[u8], Option<&[u8]>) {
    match line.iter().position(|&byte| byte == separator) {
        Some(at) => (&line[..at], Some(&line[at + 1..])),
        None => (line, None),
    }
}

/// The fields of a line with exactly `N` of them.
pub(crate) fn split_exactly<const N: usize>(line: &[u8], separator: u8) -> Option<[&[u8]; N]> {
    let mut fields = [&[][..]; N];
    let mut rest = Some(line);
    for field in &mut fields {
        (*field, rest) = split_field(rest?, separator);
    }
    rest.is_none().then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        let exact = |text: &str, decimals| parse_decimal(text.as_bytes(), decimals, Digits::Exact);
        assert_eq!(exact("34200.004241176", 9), Some(34_200_004_241_176));
        assert_eq!(exact("34200.00426064", 9), Some(34_200_004_260_640));
        assert_eq!(exact("34200", 9), Some(34_200_000_000_000));
        assert_eq!(exact("236.470", 2), Some(23_647));
        assert_eq!(exact("236.475", 2), None);
        assert_eq!(exact("18446744073709551616", 0), None);
        assert_eq!(exact("", 2), None);
        assert_eq!(exact(".", 2), None);
        assert_eq!(exact("1.2.3", 2), None);
        assert_eq!(exact("-1", 2), None);
        assert_eq!(exact("12e1", 0), Some(120));
        assert_eq!(exact("120e-1", 0), Some(12));
        assert_eq!(exact("1e99999999999999999999", 0), None);
    }

    #[test]
    fn printed_floats_become_the_decimals_that_they_mean() {
        let nearest = |text: &str, decimals| parse_decimal(text.as_bytes(), decimals, Digits::Nearest);
        assert_eq!(nearest("236.28999999999999", 2), Some(23_629));
        assert_eq!(nearest("236.30000000000001", 2), Some(23_630));
        assert_eq!(nearest("1.7885566900000001", 8), Some(178_855_669));
        assert_eq!(nearest("9.9999999999999995e-07", 8), Some(100));
        assert_eq!(nearest("3.6100000000000002e-06", 8), Some(361));
        assert_eq!(nearest("9.2e-06", 8), Some(920));
        assert_eq!(nearest("9.5e-1", 0), Some(1));
        assert_eq!(nearest("4.9", 0), Some(5));
        assert_eq!(nearest("55e-9", 8), Some(6));
        assert_eq!(nearest("55e-10", 8), Some(1));
        assert_eq!(nearest("55e-11", 8), Some(0));
        assert_eq!(nearest("0", 8), Some(0));
    }

    #[test]
    fn lines_end_anyhow_and_know_where_they_are() {
        let mut lines = Lines::new(&b"one\r\n\n two\nthree"[..], "test");
        let mut seen = Vec::new();
        while let Some(line) = lines.advance() {
            line.unwrap();
            seen.push((String::from_utf8(lines.current().to_vec()).unwrap(), lines.number(), lines.position()));
        }
        let at = |line, byte| Position::Line { line, byte };
        assert_eq!(seen, [("one".into(), 1, at(1, 0)), (" two".into(), 3, at(3, 6)), ("three".into(), 4, at(4, 11))]);
    }

    #[test]
    fn a_line_without_end_takes_bounded_memory_and_reading_goes_on() {
        let mut bytes = vec![b'x'; LINE_BYTES_MAX * 3];
        bytes.extend_from_slice(b"\nnext\n");
        let mut lines = Lines::new(std::io::BufReader::with_capacity(1000, &bytes[..]), "test");
        assert!(lines.advance().unwrap().is_err());
        assert!(lines.buffer.capacity() <= LINE_BYTES_MAX * 2 + 2);
        lines.advance().unwrap().unwrap();
        assert_eq!(lines.current(), b"next");
    }

    #[test]
    fn fields_are_counted() {
        assert_eq!(split_exactly::<2>(b"a,b", b','), Some([&b"a"[..], b"b"]));
        assert_eq!(split_exactly::<2>(b"a", b','), None);
        assert_eq!(split_exactly::<2>(b"a,b,c", b','), None);
        assert_eq!(split_exactly::<1>(b"", b','), Some([&b""[..]]));
    }
}
