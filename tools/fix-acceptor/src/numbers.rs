//! Numbers that leap, as a definition has them: one by one.
//!
//! The venue's sessions of orders number their messages so that a number says which report comes next (`walras_fix::Lasting`), and gap
//! fills lead over the numbers between. A definition knows nothing of that. Here each message gets its place among those that were sent,
//! gap fills are left out, and what a definition asks to have sent again is asked by the numbers that the messages had.

use crate::definition::completed;
use crate::matching::fields;

/// The numbers of one connection.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// Those of the messages that were sent, in order.
    sent: Vec<u64>,
}

/// A number above all.
const ABOVE: u64 = 1 << 40;

impl Numbers {
    /// A message of the acceptor with its place; `None` for one that only leads over numbers.
    pub(crate) fn heard(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        let said = fields(message);
        let get = |tag: &str| said.iter().find(|(of, _)| *of == tag.as_bytes()).map(|(_, value)| *value);
        let number = |tag: &str| get(tag).and_then(|value| std::str::from_utf8(value).ok()?.parse::<u64>().ok());
        let is = |tag: &str, value: &[u8]| get(tag) == Some(value);
        let (is_fill, seq) = (is("35", b"4") && is("123", b"Y"), number("34").unwrap_or(0));
        if !is("43", b"Y") {
            if is_fill {
                return None;
            }
            self.sent.push(seq);
            return Some(with_values(message, &[("34", self.sent.len() as u64)]));
        }
        let place = self.place_from(seq);
        if !is_fill {
            return Some(with_values(message, &[("34", place)]));
        }
        // What it fills may have been numbers alone.
        let next = self.place_from(number("36").unwrap_or(0));
        (next > place).then(|| with_values(message, &[("34", place), ("36", next)]))
    }

    /// A line of a definition, with the numbers that messages had in the place of those that it asks for.
    pub(crate) fn asked(&self, line: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(line.len());
        let is_request = fields(line).iter().any(|(tag, value)| *tag == b"35" && *value == b"2");
        for field in line.split_inclusive(|byte| *byte == 1) {
            let number = |tag: &[u8]| {
                let text = field.strip_prefix(tag)?.strip_suffix(b"\x01")?;
                std::str::from_utf8(text).ok()?.parse::<u64>().ok()
            };
            match number(b"7=").map(|from| ("7", from)).or_else(|| number(b"16=").map(|to| ("16", to))) {
                Some((tag, place)) if is_request => out.extend(format!("{tag}={}\x01", self.number_of(place)).bytes()),
                _ => out.extend_from_slice(field),
            }
        }
        out
    }

    /// The place of the first message with this number or a later one.
    fn place_from(&self, number: u64) -> u64 {
        self.sent.partition_point(|sent| *sent < number) as u64 + 1
    }

    /// The number of a message; 0, and what FIX 4.2 has for it, stand for all.
    fn number_of(&self, place: u64) -> u64 {
        if matches!(place, 0 | 999_999) {
            return place;
        }
        usize::try_from(place - 1).ok().and_then(|at| self.sent.get(at)).copied().unwrap_or(ABOVE)
    }
}

/// A message with other values of these fields, and the length and checksum that it has then.
fn with_values(message: &[u8], values: &[(&str, u64)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len());
    for (tag, value) in fields(message) {
        if matches!(tag, b"9" | b"10") {
            continue;
        }
        let other = values.iter().find(|(of, _)| of.as_bytes() == tag).map(|(_, value)| value.to_string());
        out.extend_from_slice(tag);
        out.push(b'=');
        out.extend_from_slice(other.as_deref().map_or(value, str::as_bytes));
        out.push(1);
    }
    completed(&out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(fields: &str) -> Vec<u8> {
        completed(fields.replace('|', "\x01").as_bytes())
    }

    #[test]
    fn messages_have_places_and_gap_fills_have_none() {
        let mut numbers = Numbers::default();
        assert_eq!(numbers.heard(&message("8=FIX.4.4|35=A|34=1|")), Some(message("8=FIX.4.4|35=A|34=1|")));
        assert_eq!(numbers.heard(&message("8=FIX.4.4|35=4|34=2|36=1025|123=Y|")), None);
        assert_eq!(numbers.heard(&message("8=FIX.4.4|35=D|34=1025|11=a|")), Some(message("8=FIX.4.4|35=D|34=2|11=a|")));
        assert_eq!(numbers.heard(&message("8=FIX.4.4|35=4|34=1026|36=16388|123=Y|")), None);
        assert_eq!(numbers.heard(&message("8=FIX.4.4|35=0|34=16388|")), Some(message("8=FIX.4.4|35=0|34=3|")));
        // Sent again: the first two, and what fills the rest.
        let asked = |numbers: &Numbers, line: &str| numbers.asked(line.replace('|', "\x01").as_bytes());
        let expected = "8=FIX.4.4|35=2|34=9|7=1025|16=16388|".replace('|', "\x01");
        assert_eq!(asked(&numbers, "8=FIX.4.4|35=2|34=9|7=2|16=3|"), expected.as_bytes());
        let expected = "8=FIX.4.4|35=2|34=9|7=1|16=0|".replace('|', "\x01");
        assert_eq!(asked(&numbers, "8=FIX.4.4|35=2|34=9|7=1|16=0|"), expected.as_bytes());
        assert_eq!(asked(&numbers, "8=FIX.4.4|35=D|34=9|7=2|"), "8=FIX.4.4|35=D|34=9|7=2|".replace('|', "\x01").as_bytes());
        for (said, expected) in [
            ("35=4|34=1|43=Y|36=1025|123=Y|", Some("35=4|34=1|43=Y|36=2|123=Y|")),
            ("35=D|34=1025|43=Y|11=a|", Some("35=D|34=2|43=Y|11=a|")),
            ("35=4|34=1026|43=Y|36=16388|123=Y|", None),
            ("35=4|34=1026|43=Y|36=16389|123=Y|", Some("35=4|34=3|43=Y|36=4|123=Y|")),
        ] {
            let expected = expected.map(|expected| message(&format!("8=FIX.4.4|{expected}")));
            assert_eq!(numbers.heard(&message(&format!("8=FIX.4.4|{said}"))), expected, "{said}");
        }
    }
}
