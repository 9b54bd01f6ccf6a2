//! Messages to send.

use crate::Version;
use crate::frame::{SOH, checksum};
use crate::tags;
use crate::values::{write_digits, write_timestamp};

/// The fields of a message's body, in the order in which they are added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body(Vec<u8>);

impl Body {
    /// Without fields.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all fields and keeps the memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a field. A separator in the value, which would begin another field, becomes a question mark.
    pub fn bytes(&mut self, tag: i32, value: &[u8]) -> &mut Self {
        write_field(tag, value, &mut self.0);
        self
    }

    /// Adds a field.
    pub fn text(&mut self, tag: i32, value: &str) -> &mut Self {
        self.bytes(tag, value.as_bytes())
    }

    /// Adds a field.
    pub fn number(&mut self, tag: i32, value: u64) -> &mut Self {
        write_tag(tag, &mut self.0);
        write_digits(value, 1, &mut self.0);
        self.0.push(SOH);
        self
    }

    /// Adds a field: Y or N.
    pub fn flag(&mut self, tag: i32, value: bool) -> &mut Self {
        self.bytes(tag, if value { b"Y" } else { b"N" })
    }

    /// Adds a time, given in nanoseconds since the Unix epoch.
    pub fn time(&mut self, tag: i32, time_ns: u64, version: Version) -> &mut Self {
        write_tag(tag, &mut self.0);
        write_timestamp(time_ns, version.has_milliseconds(), &mut self.0);
        self.0.push(SOH);
        self
    }

    /// Adds a time as a date and a time of day, in two fields.
    pub fn date_and_time(&mut self, (date, time): (i32, i32), time_ns: u64, version: Version) -> &mut Self {
        let mut text = Vec::with_capacity(24);
        write_timestamp(time_ns, version.has_milliseconds(), &mut text);
        // Eight digits, a hyphen and the time of day.
        self.bytes(date, &text[..8]).bytes(time, &text[9..])
    }

    /// Adds the fields of another body.
    pub fn append(&mut self, other: &Self) -> &mut Self {
        self.0.extend_from_slice(&other.0);
        self
    }

    /// The fields as they are sent.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

fn write_tag(tag: i32, to: &mut Vec<u8>) {
    if tag < 0 {
        to.push(b'-');
    }
    write_digits(u64::from(tag.unsigned_abs()), 1, to);
    to.push(b'=');
}

fn write_field(tag: i32, value: &[u8], to: &mut Vec<u8>) {
    write_tag(tag, to);
    to.extend(value.iter().map(|byte| if *byte == SOH { b'?' } else { *byte }));
    to.push(SOH);
}

/// A field that a header has besides the usual ones. Its tag is above that of TargetCompID(56).
pub type HeaderField<'a> = (i32, &'a [u8]);

/// A message to send.
pub(crate) struct Outgoing<'a> {
    pub(crate) version: Version,
    pub(crate) msg_type: &'a [u8],
    pub(crate) seq: u64,
    pub(crate) sender: &'a [u8],
    pub(crate) target: &'a [u8],
    pub(crate) time_ns: u64,
    /// When it was first sent, of a message that is sent again.
    pub(crate) first_sent_ns: Option<u64>,
    /// In the order of their tags.
    pub(crate) extra: &'a [HeaderField<'a>],
    pub(crate) body: &'a [u8],
}

impl Outgoing<'_> {
    /// Appends the message.
    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        // BodyLength comes before what it measures: room is left for it, and what is not needed is closed afterwards.
        const LENGTH_DIGITS: usize = 6;
        let start = to.len();
        write_field(tags::BEGIN_STRING, self.version.begin_string().as_bytes(), to);
        write_tag(tags::BODY_LENGTH, to);
        let length_at = to.len();
        to.extend_from_slice(&[b'0'; LENGTH_DIGITS]);
        to.push(SOH);
        let body_at = to.len();
        self.encode_body(to);
        let mut digits = Vec::with_capacity(LENGTH_DIGITS);
        write_digits((to.len() - body_at) as u64, 1, &mut digits);
        drop(to.splice(length_at..length_at + LENGTH_DIGITS, digits));
        let sum = checksum(&to[start..]);
        to.extend_from_slice(b"10=");
        write_digits(u64::from(sum), 3, to);
        to.push(SOH);
    }

    fn encode_body(&self, to: &mut Vec<u8>) {
        let has_milliseconds = self.version.has_milliseconds();
        write_field(tags::MSG_TYPE, self.msg_type, to);
        write_tag(tags::MSG_SEQ_NUM, to);
        write_digits(self.seq, 1, to);
        to.push(SOH);
        if self.first_sent_ns.is_some() {
            write_field(tags::POSS_DUP_FLAG, b"Y", to);
        }
        write_field(tags::SENDER_COMP_ID, self.sender, to);
        write_tag(tags::SENDING_TIME, to);
        write_timestamp(self.time_ns, has_milliseconds, to);
        to.push(SOH);
        write_field(tags::TARGET_COMP_ID, self.target, to);
        let mut first_sent_ns = self.first_sent_ns;
        let mut write_first_sent = |to: &mut Vec<u8>| {
            if let Some(time_ns) = first_sent_ns.take() {
                write_tag(tags::ORIG_SENDING_TIME, to);
                write_timestamp(time_ns, has_milliseconds, to);
                to.push(SOH);
            }
        };
        for (tag, value) in self.extra {
            if *tag > tags::ORIG_SENDING_TIME {
                write_first_sent(to);
            }
            write_field(*tag, value, to);
        }
        write_first_sent(to);
        to.extend_from_slice(self.body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Frame, Framer};

    #[test]
    fn a_message_has_its_length_its_checksum_and_its_fields_in_order() {
        let mut body = Body::new();
        body.text(11, "a\x01b").number(38, 0).flag(123, true).time(60, 1_001_000_000, Version::Fix41);
        let outgoing = Outgoing {
            version: Version::Fix44,
            msg_type: b"8",
            seq: 12,
            sender: b"US",
            target: b"THEM",
            time_ns: 2_500_000_000,
            first_sent_ns: Some(1_000_000_000),
            extra: &[(97, b"Y"), (128, b"JCD")],
            body: body.as_bytes(),
        };
        let mut bytes = b"before".to_vec();
        outgoing.encode(&mut bytes);
        let text = String::from_utf8(bytes.clone()).unwrap().replace('\x01', "|");
        assert!(
            text.starts_with("before8=FIX.4.4|9=133|35=8|34=12|43=Y|49=US|52=19700101-00:00:02.500|56=THEM|97=Y|122="),
            "{text}"
        );
        assert!(text.contains("|122=19700101-00:00:01.000|128=JCD|11=a?b|38=0|123=Y|60=19700101-00:00:01|10="), "{text}");
        let mut framer = Framer::default();
        framer.push(&bytes[6..]);
        assert_eq!(framer.next(1_000), Some(Frame::Whole(0..bytes.len() - 6)));
    }
}
