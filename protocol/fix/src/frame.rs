//! Finds messages in a stream of bytes: `8=..|9=LENGTH|body|10=SUM|`.

use std::ops::Range;

/// What separates fields.
pub(crate) const SOH: u8 = 1;

/// Maximum digits of BodyLength(9).
const LENGTH_DIGITS_MAX: usize = 7;
/// Maximum bytes of BeginString(8).
const BEGIN_STRING_MAX: usize = 16;

/// Received bytes that are no whole message yet, and the messages in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Framer {
    bytes: Vec<u8>,
    /// Bytes before this one are done with.
    start: usize,
    /// Of those behind `start`, so many hold no end of the message: who sends it in crumbs does not have it searched again with each.
    searched: usize,
    #[cfg(test)]
    looked_at: usize,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Bytes whose length and checksum are right: see [`Framer::bytes`].
    Whole(Range<usize>),
    /// Bytes that are no message: they are skipped.
    Garbled,
    /// A message that is longer than is accepted.
    TooLong,
}

/// What a search in bytes that are not all there yet finds.
enum Found<T> {
    At(T),
    /// More bytes must come.
    NotYet,
    No,
}

impl Framer {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 && self.start * 2 >= self.bytes.len() {
            self.bytes.drain(..self.start);
            self.start = 0;
            if self.bytes.is_empty() && self.bytes.capacity() > (64 << 10) {
                self.bytes = Vec::new();
            }
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    pub(crate) fn bytes(&self, frame: Range<usize>) -> &[u8] {
        &self.bytes[frame]
    }

    /// The next message of at most `bytes_max` bytes; `None` until more bytes come. A wrong length makes the message end at the next
    /// checksum field behind that length, so a length that is too great spoils the next message too.
    pub(crate) fn next(&mut self, bytes_max: usize) -> Option<Frame> {
        self.skip_to_start()?;
        let bytes = &self.bytes[self.start..];
        let (body, length) = match header(bytes) {
            Found::At(found) => found,
            Found::NotYet => return None,
            Found::No => return Some(self.skip_start()),
        };
        let Some(body_end) = body.checked_add(length).filter(|end| *end <= bytes_max) else { return Some(Frame::TooLong) };
        // The last three bytes may be the beginning of what is looked for.
        let from = (body_end - 1).max(self.searched.saturating_sub(3));
        #[cfg(test)]
        {
            self.looked_at += bytes.len().saturating_sub(from);
        }
        let Some(sum) = trailer(bytes, from) else {
            self.searched = bytes.len();
            return if bytes.len() > bytes_max + 16 { Some(Frame::TooLong) } else { None };
        };
        let Some(sum_len) = bytes[sum..].iter().position(|byte| *byte == SOH) else {
            if bytes.len() - sum <= 8 {
                return None;
            }
            // A checksum has three digits. Each header before this field would be searched to here again, so they are skipped with it.
            self.skip_to(self.start + sum);
            return Some(Frame::Garbled);
        };
        let is_sound = sum == body_end + 3 && is_sum_of(&bytes[sum..sum + sum_len], &bytes[..body_end]);
        let frame = self.start..self.start + sum + sum_len + 1;
        self.skip_to(frame.end);
        Some(if is_sound { Frame::Whole(frame) } else { Frame::Garbled })
    }

    /// Skips bytes up to the next field 8; `None` if there is none yet.
    fn skip_to_start(&mut self) -> Option<()> {
        let bytes = &self.bytes[self.start..];
        if bytes.len() < 2 {
            return None;
        }
        if bytes.starts_with(b"8=") {
            return Some(());
        }
        match bytes.windows(3).position(|window| window == [SOH, b'8', b'=']) {
            Some(at) => {
                self.skip_to(self.start + at + 1);
                Some(())
            }
            None => {
                // The last two bytes may be the beginning of what is looked for.
                self.skip_to(self.bytes.len() - 2);
                None
            }
        }
    }

    /// Skips a field 8 that begins no message.
    fn skip_start(&mut self) -> Frame {
        self.skip_to(self.start + 2);
        Frame::Garbled
    }

    fn skip_to(&mut self, start: usize) {
        (self.start, self.searched) = (start, 0);
    }
}

/// Where the body begins, and its length by BodyLength(9), which must follow the first field.
fn header(bytes: &[u8]) -> Found<(usize, usize)> {
    let Some(begin_len) = bytes.iter().take(BEGIN_STRING_MAX).position(|byte| *byte == SOH) else {
        return if bytes.len() < BEGIN_STRING_MAX { Found::NotYet } else { Found::No };
    };
    let digits_at = begin_len + 3;
    let Some(tag) = bytes.get(begin_len + 1..digits_at) else { return Found::NotYet };
    if tag != b"9=" {
        return Found::No;
    }
    let digits = bytes[digits_at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    match bytes.get(digits_at + digits) {
        _ if digits > LENGTH_DIGITS_MAX => Found::No,
        None => Found::NotYet,
        Some(&SOH) if digits > 0 => {
            let length =
                bytes[digits_at..digits_at + digits].iter().fold(0, |length, digit| length * 10 + usize::from(digit - b'0'));
            Found::At((digits_at + digits + 1, length))
        }
        Some(_) => Found::No,
    }
}

/// Where the value of the first field 10 begins whose separator is not before `from`.
fn trailer(bytes: &[u8], from: usize) -> Option<usize> {
    let at = bytes.get(from..)?.windows(4).position(|window| window == [SOH, b'1', b'0', b'='])?;
    Some(from + at + 4)
}

fn is_sum_of(digits: &[u8], bytes: &[u8]) -> bool {
    let &[hundreds @ b'0'..=b'9', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] = digits else { return false };
    let number = u32::from(hundreds - b'0') * 100 + u32::from(tens - b'0') * 10 + u32::from(ones - b'0');
    number == u32::from(checksum(bytes))
}

/// The sum of all bytes, modulo 256.
pub(crate) fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(body: &str) -> Vec<u8> {
        let mut bytes = format!("8=FIX.4.4|9={}|{body}", body.len()).replace('|', "\x01").into_bytes();
        let sum = checksum(&bytes);
        bytes.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
        bytes
    }

    fn frames(bytes: &[u8], cut: usize) -> Vec<Option<String>> {
        let mut framer = Framer::default();
        let mut frames = Vec::new();
        for part in bytes.chunks(cut) {
            framer.push(part);
            while let Some(frame) = framer.next(1_000) {
                match frame {
                    Frame::Whole(range) => {
                        frames.push(Some(String::from_utf8(framer.bytes(range).to_vec()).unwrap().replace('\x01', "|")));
                    }
                    Frame::Garbled => frames.push(None),
                    Frame::TooLong => return frames,
                }
            }
        }
        frames
    }

    #[test]
    fn messages_are_found_however_the_bytes_are_cut() {
        let one = message("35=0|34=2|58=108=30|");
        let two = message("35=1|34=3|");
        let mut bytes = b"35=0\x0199=x\x01".to_vec();
        bytes.extend_from_slice(&one);
        bytes.extend_from_slice(&two);
        for cut in 1..bytes.len() {
            let found: Vec<String> = frames(&bytes, cut).into_iter().flatten().collect();
            assert_eq!(found.len(), 2, "{cut}");
            assert!(found[0].contains("58=108=30") && found[1].contains("34=3"));
        }
    }

    #[test]
    fn each_byte_is_searched_once_however_small_the_crumbs() {
        let mut framer = Framer::default();
        framer.push(b"8=FIX.4.4\x019=1\x01");
        let crumbs = 900;
        for _ in 0..crumbs {
            framer.push(b"x");
            assert_eq!(framer.next(1_000), None);
        }
        assert!(framer.looked_at < 5 * crumbs, "{} bytes were looked at for {crumbs}", framer.looked_at);
        framer.push(b"\x0110=000\x01");
        assert_eq!(framer.next(1_000), Some(Frame::Garbled), "its end is found");
        framer.push(&message("35=0|34=9|"));
        assert!(matches!(framer.next(1_000), Some(Frame::Whole(_))));
    }

    #[test]
    fn headers_before_a_checksum_that_does_not_end_are_searched_once() {
        let mut framer = Framer::default();
        let headers = "8=A\x019=1\x01".repeat(100);
        framer.push(headers.as_bytes());
        framer.push(b"10=123456789");
        while let Some(frame) = framer.next(1_000) {
            assert_eq!(frame, Frame::Garbled);
        }
        assert!(framer.looked_at <= 2 * headers.len(), "{} bytes were looked at for {}", framer.looked_at, headers.len());
        framer.push(b"\x01");
        framer.push(&message("35=0|34=9|"));
        assert!(matches!(framer.next(1_000), Some(Frame::Whole(_))));
    }

    #[test]
    fn a_wrong_checksum_spoils_one_message_and_a_great_length_two() {
        let good = message("35=0|34=9|");
        let mut bad_sum = message("35=0|34=2|");
        let at = bad_sum.len() - 2;
        bad_sum[at] = if bad_sum[at] == b'0' { b'1' } else { b'0' };
        let all = frames(&[&bad_sum[..], &good].concat(), 7);
        assert_eq!((all.len(), all[0].is_none(), all[1].is_some()), (2, true, true));
        let long = String::from_utf8(message("35=0|34=2|")).unwrap().replace("9=10", "9=25").into_bytes();
        let all = frames(&[&long[..], &good, &good].concat(), 7);
        assert_eq!((all.len(), all[0].is_none(), all[1].is_some()), (2, true, true));
        let short = String::from_utf8(message("35=0|34=2|")).unwrap().replace("9=10", "9=4").into_bytes();
        let all = frames(&[&short[..], &good].concat(), 7);
        assert_eq!((all.len(), all[0].is_none(), all[1].is_some()), (2, true, true));
    }

    #[test]
    fn what_is_no_message_is_skipped_or_too_long() {
        let good = message("35=0|34=9|");
        for wrong in
            ["8=FIX.4.4|35=0|", "8=FIX.4.4|9=x|", "8=FIX.4.4|9=|", "8=FIX.4.4.4.4.4.4.4.4.4|", "8=FIX.4.4|9=12345678|", "|8=8=|"]
        {
            let all = frames(&[wrong.replace('|', "\x01").as_bytes(), &good].concat(), 3);
            assert_eq!(all.iter().flatten().count(), 1, "{wrong}");
        }
        let mut framer = Framer::default();
        framer.push(b"8=FIX.4.4\x019=5000\x01");
        assert_eq!(framer.next(1_000), Some(Frame::TooLong));
        let mut framer = Framer::default();
        framer.push(b"8=FIX.4.4\x019=10\x01");
        framer.push(&[b'x'; 2_000]);
        assert_eq!(framer.next(1_000), Some(Frame::TooLong));
    }
}
