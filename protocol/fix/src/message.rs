//! A received message: its fields in their order.

use crate::frame::SOH;
use crate::tags;
use crate::values::{parse_count, parse_timestamp};

/// A message whose length and checksum are right, split into fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    bytes: Vec<u8>,
    fields: Vec<Field>,
}

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) tag: i32,
    /// Its value in the message's bytes.
    start: u32,
    end: u32,
}

impl Message {
    /// Splits a message. `is_data` says which fields hold bytes whose length the field before says. `None` for a message that is
    /// garbled: its fields are not of the form `TAG=VALUE`, or the third one is not its type.
    pub(crate) fn split(bytes: &[u8], is_data: impl Fn(i32) -> bool) -> Option<Self> {
        let mut fields: Vec<Field> = Vec::with_capacity(24);
        let mut at = 0;
        let mut before: &[u8] = &[];
        while at < bytes.len() {
            let (tag, value_at) = split_tag(bytes, at)?;
            let value_len = data_len(bytes, value_at, before).filter(|_| is_data(tag));
            let value_len = value_len.or_else(|| bytes[value_at..].iter().position(|byte| *byte == SOH))?;
            before = &bytes[value_at..value_at + value_len];
            fields.push(Field { tag, start: u32::try_from(value_at).ok()?, end: u32::try_from(value_at + value_len).ok()? });
            at = value_at + value_len + 1;
        }
        let begins_rightly = fields.len() >= 4 && fields[2].tag == tags::MSG_TYPE;
        begins_rightly.then(|| Self { bytes: bytes.to_vec(), fields })
    }

    /// All bytes, as they came.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn fields(&self) -> &[Field] {
        &self.fields
    }

    pub(crate) fn value(&self, field: Field) -> &[u8] {
        // A message is at most `u32::MAX` bytes, so these fit.
        &self.bytes[field.start as usize..field.end as usize]
    }

    /// Every field with its value, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = (i32, &[u8])> {
        self.fields.iter().map(|field| (field.tag, self.value(*field)))
    }

    /// The value of the first field with a tag.
    #[must_use]
    pub fn get(&self, tag: i32) -> Option<&[u8]> {
        self.fields.iter().find(|field| field.tag == tag).map(|field| self.value(*field))
    }

    /// The same as text; `None` also where it is not UTF-8.
    #[must_use]
    pub fn text(&self, tag: i32) -> Option<&str> {
        std::str::from_utf8(self.get(tag)?).ok()
    }

    /// The same as a whole number from 0 on.
    #[must_use]
    pub fn count(&self, tag: i32) -> Option<u64> {
        parse_count(self.get(tag)?)
    }

    /// Whether a field says Y.
    #[must_use]
    pub fn flag(&self, tag: i32) -> bool {
        self.get(tag) == Some(b"Y")
    }

    /// The same as a time, in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn time_ns(&self, tag: i32) -> Option<u64> {
        parse_timestamp(self.get(tag)?)
    }

    /// MsgType(35).
    #[must_use]
    pub fn msg_type(&self) -> &[u8] {
        self.value(self.fields[2])
    }

    /// MsgSeqNum(34).
    #[must_use]
    pub fn seq(&self) -> Option<u64> {
        self.count(tags::MSG_SEQ_NUM)
    }
}

/// The tag of the field that begins at `at`, and where its value begins.
fn split_tag(bytes: &[u8], at: usize) -> Option<(i32, usize)> {
    let (is_negative, digits_at) = if bytes[at] == b'-' { (true, at + 1) } else { (false, at) };
    let digits = bytes[digits_at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if bytes.get(digits_at + digits) != Some(&b'=') || digits > 9 {
        return None;
    }
    let tag = i32::try_from(parse_count(&bytes[digits_at..digits_at + digits])?).ok()?;
    Some((if is_negative { -tag } else { tag }, digits_at + digits + 1))
}

/// The length of a data field, if the field before says one that ends at a separator.
fn data_len(bytes: &[u8], value_at: usize, before: &[u8]) -> Option<usize> {
    let len = usize::try_from(parse_count(before)?).ok()?;
    (bytes.get(value_at.checked_add(len)?) == Some(&SOH)).then_some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Option<Message> {
        Message::split(text.replace('|', "\x01").as_bytes(), |tag| tag == 96)
    }

    #[test]
    fn fields_are_found_by_their_tags() {
        let message = split("8=FIX.4.4|9=5|35=D|34=12|-1=HI|11=|43=Y|52=19700101-00:00:01|10=000|").unwrap();
        assert_eq!((message.msg_type(), message.seq(), message.get(-1)), (&b"D"[..], Some(12), Some(&b"HI"[..])));
        assert_eq!((message.get(11), message.flag(43), message.flag(97)), (Some(&b""[..]), true, false));
        assert_eq!((message.time_ns(52), message.time_ns(11), message.text(35)), (Some(1_000_000_000), None, Some("D")));
        assert_eq!(message.iter().count(), 9);
    }

    #[test]
    fn data_may_hold_separators() {
        let message = split("8=FIX.4.4|9=5|35=A|34=1|95=5|96=a|b=c|10=000|").unwrap();
        assert_eq!(message.get(96), Some(&b"a\x01b=c"[..]));
        assert!(split("8=FIX.4.4|9=5|35=A|34=1|95=4|96=a|b=c|10=000|").is_none(), "b is no tag");
    }

    #[test]
    fn what_has_no_fields_is_garbled() {
        for wrong in [
            "8=FIX.4.4|9=5|34=3|35=0|10=000|",
            "8=FIX.4.4|9=5|35=0|4garbled9=TW|10=000|",
            "8=FIX.4.4|9=5|35=0|=TW|10=000|",
            "8=FIX.4.4|9=5|35=0|49|10=000|",
            "8=FIX.4.4|9=5|35=0|12345678901=x|10=000|",
            "8=FIX.4.4|9=5|35=0|",
            "",
        ] {
            assert!(split(wrong).is_none(), "{wrong}");
        }
    }
}
