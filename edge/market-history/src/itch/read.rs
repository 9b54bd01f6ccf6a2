//! From bytes to messages.

use std::io::{BufRead, ErrorKind};

use walras_types::Side;

use super::{ItchBody, ItchHeader, ItchMessage, MESSAGE_BYTES_MAX, MESSAGE_LENGTHS, NAME, message_length};
use crate::error::{HistoryError, Position, show};

const FRAMING_ADVICE: &str =
    "the file is not framed as the public day files are (two bytes of length, then the message), or it is damaged: fetch it again";

/// How many messages of each type were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItchCounts {
    by_type: [u64; 256],
    /// Messages of types that the specification does not know; skipped.
    pub unknown: u64,
    /// Empty messages, which mark the end of a session; skipped.
    pub end_marks: u64,
}

impl Default for ItchCounts {
    fn default() -> Self {
        Self { by_type: [0; 256], unknown: 0, end_marks: 0 }
    }
}

impl ItchCounts {
    /// Messages of one type.
    #[must_use]
    pub fn of(&self, message_type: u8) -> u64 {
        self.by_type[usize::from(message_type)]
    }

    /// Messages of each known type that occurred, in the specification's order.
    pub fn known(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        MESSAGE_LENGTHS.iter().map(|&(message_type, _)| (message_type, self.of(message_type))).filter(|&(_, count)| count > 0)
    }
}

/// What a source's buffer held.
enum Buffered {
    Message(u64, ItchMessage),
    /// A message of an unknown type, now counted.
    Skipped,
    /// Not all of a message; or one that the slower way takes as well.
    Incomplete,
}

/// Reads an ITCH 5.0 file. Ends at the first error: behind a damaged length nothing can be trusted.
#[derive(Debug)]
pub struct ItchReader<R> {
    source: R,
    byte: u64,
    index: u64,
    ended: bool,
    counts: ItchCounts,
}

impl<R: BufRead> ItchReader<R> {
    /// Reads from `source`.
    pub fn new(source: R) -> Self {
        Self { source, byte: 0, index: 0, ended: false, counts: ItchCounts::default() }
    }

    /// What was read so far, by type.
    pub fn counts(&self) -> &ItchCounts {
        &self.counts
    }

    /// The next message of a known type with its number.
    pub fn next_message(&mut self) -> Option<Result<(u64, ItchMessage), HistoryError>> {
        if self.ended {
            return None;
        }
        let result = self.read_message().transpose();
        self.ended = !matches!(result, Some(Ok(_)));
        result
    }

    fn read_message(&mut self) -> Result<Option<(u64, ItchMessage)>, HistoryError> {
        loop {
            let start = self.byte;
            match self.read_buffered(start)? {
                Buffered::Message(index, message) => return Ok(Some((index, message))),
                Buffered::Skipped => continue,
                Buffered::Incomplete => {}
            }
            let mut frame = [0u8; MESSAGE_BYTES_MAX + 2];
            if !self.fill(start, &mut frame[..2], true)? {
                return Ok(None);
            }
            let length = u16::from_be_bytes([frame[0], frame[1]]);
            if length == 0 {
                self.counts.end_marks += 1;
                continue;
            }
            self.fill(start, &mut frame[2..3], false)?;
            let message_type = frame[2];
            self.count(message_type);
            match message_length(message_type) {
                None => self.skip(start, length - 1)?,
                Some(known_length) if known_length != length => return Err(wrong_length(start, message_type, length)),
                Some(_) => {
                    let end = 2 + usize::from(length);
                    self.fill(start, &mut frame[3..end], false)?;
                    return Ok(decode_checked(start, &frame[2..end])?.map(|message| (self.index, message)));
                }
            }
        }
    }

    /// The common case: a message that lies whole in the source's buffer.
    fn read_buffered(&mut self, start: u64) -> Result<Buffered, HistoryError> {
        let chunk = match self.source.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(Buffered::Incomplete),
            Err(source) => return Err(HistoryError::Read { at: Position::Byte(start), source }),
        };
        let Some((prefix, tail)) = chunk.split_first_chunk::<2>() else { return Ok(Buffered::Incomplete) };
        let length = u16::from_be_bytes(*prefix);
        if length == 0 || usize::from(length) > MESSAGE_BYTES_MAX {
            return Ok(Buffered::Incomplete);
        }
        let Some(bytes) = tail.get(..usize::from(length)) else { return Ok(Buffered::Incomplete) };
        let message_type = bytes[0];
        let message = decode_checked(start, bytes);
        self.source.consume(2 + usize::from(length));
        self.byte += 2 + u64::from(length);
        self.count(message_type);
        Ok(match message? {
            None => Buffered::Skipped,
            Some(message) => Buffered::Message(self.index, message),
        })
    }

    fn count(&mut self, message_type: u8) {
        self.index += 1;
        match message_length(message_type) {
            None => self.counts.unknown += 1,
            Some(_) => self.counts.by_type[usize::from(message_type)] += 1,
        }
    }

    /// Fills `into`; `false` when the stream ended before its first byte and that `may_end`.
    fn fill(&mut self, start: u64, into: &mut [u8], may_end: bool) -> Result<bool, HistoryError> {
        let mut filled = 0;
        while filled < into.len() {
            match self.source.read(&mut into[filled..]) {
                Ok(0) if filled == 0 && may_end => return Ok(false),
                Ok(0) => return Err(Self::broken_off(start)),
                Ok(count) => {
                    filled += count;
                    self.byte += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(HistoryError::Read { at: Position::Byte(start), source }),
            }
        }
        Ok(true)
    }

    fn skip(&mut self, start: u64, count: u16) -> Result<(), HistoryError> {
        let mut left = usize::from(count);
        while left > 0 {
            let available = match self.source.fill_buf() {
                Ok(chunk) => chunk.len().min(left),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(source) => return Err(HistoryError::Read { at: Position::Byte(start), source }),
            };
            if available == 0 {
                return Err(Self::broken_off(start));
            }
            self.source.consume(available);
            self.byte += available as u64;
            left -= available;
        }
        Ok(())
    }

    fn broken_off(start: u64) -> HistoryError {
        HistoryError::Read { at: Position::Byte(start), source: ErrorKind::UnexpectedEof.into() }
    }
}

impl<R: BufRead> Iterator for ItchReader<R> {
    type Item = Result<ItchMessage, HistoryError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_message()?.map(|(_, message)| message))
    }
}

fn wrong_length(start: u64, message_type: u8, length: u16) -> HistoryError {
    let known_length = message_length(message_type).unwrap_or_default();
    HistoryError::Malformed {
        format: NAME,
        at: Position::Byte(start),
        expected: "the length that the specification gives the type",
        found: format!("length {length} for type '{}' of {known_length}", message_type.escape_ascii()),
        advice: FRAMING_ADVICE,
    }
}

/// The message in `bytes`, or `None` if its type is unknown.
#[inline]
fn decode_checked(start: u64, bytes: &[u8]) -> Result<Option<ItchMessage>, HistoryError> {
    let Some(known_length) = message_length(bytes[0]) else { return Ok(None) };
    if usize::from(known_length) != bytes.len() {
        return Err(wrong_length(start, bytes[0], u16::try_from(bytes.len()).unwrap_or(u16::MAX)));
    }
    match decode(bytes) {
        Ok(message) => Ok(Some(message)),
        Err(expected) => Err(HistoryError::Malformed {
            format: NAME,
            at: Position::Byte(start),
            expected,
            found: show(bytes),
            advice: FRAMING_ADVICE,
        }),
    }
}

/// Takes fields off a message whose length was checked against its type.
struct Fields<'a> {
    bytes: &'a [u8],
}

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.bytes.split_first_chunk::<N>().expect("the length of a message was checked against its type");
        self.bytes = rest;
        *field
    }

    fn byte(&mut self) -> u8 {
        self.take::<1>()[0]
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take())
    }

    fn u48(&mut self) -> u64 {
        let [a, b, c, d, e, f] = self.take();
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take())
    }

    fn side(&mut self) -> Result<Side, &'static str> {
        match self.byte() {
            b'B' => Ok(Side::Buy),
            b'S' => Ok(Side::Sell),
            _ => Err("a side of B or S"),
        }
    }
}

/// `bytes` begin with a known type and have its length.
#[inline]
fn decode(bytes: &[u8]) -> Result<ItchMessage, &'static str> {
    let mut fields = Fields { bytes };
    let message_type = fields.byte();
    let header = ItchHeader { locate: fields.u16(), tracking: fields.u16(), time_ns: fields.u48() };
    let body = match message_type {
        b'S' => ItchBody::System { code: fields.byte() },
        b'R' => ItchBody::Directory {
            symbol: fields.take(),
            market_category: fields.byte(),
            financial_status: fields.byte(),
            round_lot_size: fields.u32(),
            round_lots_only: fields.byte(),
            issue_classification: fields.byte(),
            issue_subtype: fields.take(),
            authenticity: fields.byte(),
            short_sale_threshold: fields.byte(),
            ipo_flag: fields.byte(),
            luld_tier: fields.byte(),
            etp_flag: fields.byte(),
            etp_leverage: fields.u32(),
            inverse: fields.byte(),
        },
        b'H' => {
            ItchBody::TradingAction { symbol: fields.take(), state: fields.byte(), reserved: fields.byte(), reason: fields.take() }
        }
        b'A' | b'F' => ItchBody::Add {
            order_ref: fields.u64(),
            side: fields.side()?,
            shares: fields.u32(),
            symbol: fields.take(),
            price: fields.u32(),
            attribution: (message_type == b'F').then(|| fields.take()),
        },
        b'E' => ItchBody::Execute { order_ref: fields.u64(), shares: fields.u32(), match_number: fields.u64() },
        b'C' => ItchBody::ExecuteAtPrice {
            order_ref: fields.u64(),
            shares: fields.u32(),
            match_number: fields.u64(),
            printable: match fields.byte() {
                b'Y' => true,
                b'N' => false,
                _ => return Err("a printable flag of Y or N"),
            },
            price: fields.u32(),
        },
        b'X' => ItchBody::Cancel { order_ref: fields.u64(), shares: fields.u32() },
        b'D' => ItchBody::Delete { order_ref: fields.u64() },
        b'U' => ItchBody::Replace { old_ref: fields.u64(), new_ref: fields.u64(), shares: fields.u32(), price: fields.u32() },
        b'P' => ItchBody::Trade {
            order_ref: fields.u64(),
            side: fields.side()?,
            shares: fields.u32(),
            symbol: fields.take(),
            price: fields.u32(),
            match_number: fields.u64(),
        },
        b'Q' => ItchBody::Cross {
            shares: fields.u64(),
            symbol: fields.take(),
            price: fields.u32(),
            match_number: fields.u64(),
            cross_type: fields.byte(),
        },
        _ => ItchBody::Other { message_type },
    };
    Ok(ItchMessage { header, body })
}

/// Reads all of `bytes`, to the first error: the entry for fuzzing.
pub fn parse_all(bytes: &[u8]) -> Result<ItchCounts, HistoryError> {
    let mut reader = ItchReader::new(bytes);
    while let Some(message) = reader.next_message() {
        message?;
    }
    Ok(reader.counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_add_is_decoded_from_the_bytes_of_the_specification() {
        let mut bytes = vec![0, 36, b'A', 0x01, 0x02, 0, 7];
        bytes.extend_from_slice(&[0, 0x1f, 0x1a, 0xce, 0xd8, 0x18]); // 34,200,004,241,176 >> 0 in six bytes, checked below
        bytes.extend_from_slice(&77u64.to_be_bytes());
        bytes.push(b'S');
        bytes.extend_from_slice(&100u32.to_be_bytes());
        bytes.extend_from_slice(b"AAPL    ");
        bytes.extend_from_slice(&5_859_100u32.to_be_bytes());
        let message = ItchReader::new(&bytes[..]).next().unwrap().unwrap();
        assert_eq!(message.header, ItchHeader { locate: 0x0102, tracking: 7, time_ns: 0x1f_1ace_d818 });
        let expected = ItchBody::Add {
            order_ref: 77,
            side: Side::Sell,
            shares: 100,
            symbol: *b"AAPL    ",
            price: 5_859_100,
            attribution: None,
        };
        assert_eq!(message.body, expected);
    }

    #[test]
    fn every_type_has_its_length_and_unknown_ones_are_skipped() {
        let mut bytes = Vec::new();
        for (message_type, length) in MESSAGE_LENGTHS {
            bytes.extend_from_slice(&length.to_be_bytes());
            let mut body = vec![b'Y'; usize::from(length)];
            body[0] = message_type;
            if matches!(message_type, b'A' | b'F' | b'P') {
                body[19] = b'B';
            }
            bytes.extend_from_slice(&body);
            bytes.extend_from_slice(&[0, 3, b'z', 1, 2]);
        }
        bytes.extend_from_slice(&[0, 0]);
        let counts = parse_all(&bytes).unwrap();
        assert_eq!((counts.unknown, counts.end_marks), (23, 1));
        assert_eq!(counts.known().collect::<Vec<_>>(), MESSAGE_LENGTHS.map(|(message_type, _)| (message_type, 1)));
    }

    #[test]
    fn damage_is_named_by_its_place() {
        let good = [0, 12, b'S', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b'O'];
        let mut short = good.to_vec();
        short.extend_from_slice(&good[..9]);
        let mut reader = ItchReader::new(&short[..]);
        reader.next().unwrap().unwrap();
        let error = reader.next().unwrap().unwrap_err();
        assert!(error.to_string().contains("byte 14"), "{error}");
        assert!(reader.next().is_none());
        let mut wrong = good;
        wrong[1] = 13;
        assert!(parse_all(&wrong).unwrap_err().to_string().contains("length 13 for type 'S' of 12"));
    }
}
