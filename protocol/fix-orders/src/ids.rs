//! ClOrdID(11) is text, the engine's `client_order_id` a number.
//!
//! The number of a text is the venue's ([`ClientOrder`]): that of digits is what they say, that of a name of up to 36 characters is its
//! hash, and the name goes into the log with the order. A text that is no name, because it is longer or has other characters, has a digest
//! of its own, of which the two highest bits are set; its text is in no log.
//!
//! Programs that did not know names gave other numbers ([`id_before`]), of which the two highest bits said how the text became it:
//! - 00: a decimal number below 2^62 without leading zeros, as it is;
//! - 10: up to ten letters, digits and hyphens, six bits each;
//! - 11: any other text: the digest.
//!
//! They are the numbers of orders from then, and of those that enter before version 14 of the engine: while replicas may run, or go back
//! to, a program that finds orders by no other numbers.

use walras_gateway::{ClientOrder, NoClientOrder};
use walras_types::{ClientOrderId, ClientOrderName, ContentDigest, EngineVersion};

/// Longest ClOrdID, in bytes.
pub const CL_ORD_ID_BYTES_MAX: usize = 64;

const PACKED: u64 = 0b10 << 62;
const DIGEST: u64 = 0b11 << 62;
const PACKED_CHARS_MAX: usize = 10;

/// Six bits of a character, from 1 on.
fn code(byte: u8) -> Option<u64> {
    let code = match byte {
        b'0'..=b'9' => byte - b'0' + 1,
        b'A'..=b'Z' => byte - b'A' + 11,
        b'a'..=b'z' => byte - b'a' + 37,
        b'-' => 63,
        _ => return None,
    };
    Some(u64::from(code))
}

fn decoded(code: u64) -> char {
    let byte = u8::try_from(code).unwrap_or(0);
    char::from(match byte {
        1..=10 => b'0' + byte - 1,
        11..=36 => b'A' + byte - 11,
        37..=62 => b'a' + byte - 37,
        _ => b'-',
    })
}

fn number(text: &str) -> Option<u64> {
    let is_canonical = text == "0" || (!text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit()));
    text.parse().ok().filter(|_| is_canonical)
}

fn digest(text: &str) -> ClientOrderId {
    ClientOrderId(DIGEST | (ContentDigest::of_bytes(text.as_bytes()).0 >> 2))
}

/// What a ClOrdID is to the venue: its number, and the name that goes into the log, if it is one.
#[must_use]
pub fn client_order(text: &str) -> ClientOrder {
    ClientOrder::parse(text).unwrap_or_else(|NoClientOrder| digest(text).into())
}

/// The number that stands for a text.
#[must_use]
pub fn id_of(text: &str) -> ClientOrderId {
    client_order(text).id
}

/// From this version of the engine on FIX gives names: the first that no program knows which gave other numbers.
const NAMES_SINCE: EngineVersion = EngineVersion(14);

/// What a ClOrdID is to the venue under a version of the engine.
pub(crate) fn client_order_under(text: &str, version: EngineVersion) -> ClientOrder {
    if version >= NAMES_SINCE { client_order(text) } else { id_before(text).into() }
}

/// The number of it.
pub(crate) fn id_under(text: &str, version: EngineVersion) -> ClientOrderId {
    client_order_under(text, version).id
}

/// What the log has of a ClOrdID that a replacement gives, under a version of the engine: the text, if it is a name, or digits.
pub(crate) fn replacement_under(text: &str, version: EngineVersion) -> Option<ClientOrderName> {
    ClientOrderName::of_replacement(text.as_bytes()).filter(|_| version >= NAMES_SINCE)
}

/// The number that stands for a text before that.
#[must_use]
pub fn id_before(text: &str) -> ClientOrderId {
    if let Some(number) = number(text).filter(|number| number >> 62 == 0) {
        return ClientOrderId(number);
    }
    if let Some(number) = text.strip_prefix('#').and_then(number) {
        return ClientOrderId(number);
    }
    let packed = text.bytes().try_fold(0_u64, |packed, byte| Some((packed << 6) | code(byte)?));
    match packed.filter(|_| (1..=PACKED_CHARS_MAX).contains(&text.len())) {
        Some(packed) => ClientOrderId(PACKED | packed),
        None => digest(text),
    }
}

/// The text that a number stands for, of an order without a name: that of up to ten characters which [`id_before`] made it of, else its
/// digits.
#[must_use]
pub fn text_of(id: ClientOrderId) -> String {
    let ClientOrderId(id) = id;
    let codes = (0..PACKED_CHARS_MAX).rev().map(|at| (id >> (6 * at)) & 63);
    let codes: Vec<u64> = codes.skip_while(|code| *code == 0).collect();
    let is_packed = id >> 60 == PACKED >> 60 && !codes.is_empty() && !codes.contains(&0);
    if is_packed { codes.into_iter().map(decoded).collect() } else { id.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in every other interface.
    #[test]
    fn a_text_has_the_number_that_it_has_by_rest() {
        let longest = "x".repeat(36);
        for text in ["bid-7", "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "a/b:c", "#17", &longest] {
            let order = client_order(text);
            assert_eq!(Ok(order), ClientOrder::parse(text));
            assert_eq!(order.name.map(|name| name.to_string()).as_deref(), Some(text));
            assert_eq!(id_of(text), order.id);
        }
        for (text, id) in [("0", 0), ("77", 77), ("18446744073709551615", u64::MAX), ("007", 7)] {
            assert_eq!(client_order(text), ClientOrder::from(ClientOrderId(id)), "{text}");
        }
    }

    /// Texts that no other interface takes have numbers of their own, which are no hashes of names that anybody gave.
    #[test]
    fn other_texts_have_numbers_of_their_own() {
        let long = ["x".repeat(37), "x".repeat(38)];
        let texts = ["a b", "order number 7", "", "\u{e4}", "it's", "18446744073709551616", &long[0], &long[1]];
        let orders = texts.map(client_order);
        for (at, order) in orders.iter().enumerate() {
            assert!(order.name.is_none() && order.id.0 >> 62 == 3 && !orders[..at].contains(order), "{:?}", texts[at]);
            assert_eq!(id_of(&text_of(order.id)), order.id, "the digits that stand for the text");
        }
    }

    #[test]
    fn short_texts_from_before_come_back() {
        for text in ["0", "1", "17", "4611686018427387903", "A", "a-Z9", "order-0001", "007", "zzzzzzzzzz", "----------"] {
            assert_eq!(text_of(id_before(text)), text);
        }
        assert_eq!((id_before("77"), id_before("#77")), (ClientOrderId(77), ClientOrderId(77)));
        for text in ["3f2504e0-4f89-11d3-9a0c-0305e82c3301", "4611686018427387904", "a b", "-----------"] {
            let id = id_before(text);
            assert_eq!((id.0 >> 62, id_before(&format!("#{}", id.0))), (3, id), "{text}");
        }
    }

    #[test]
    fn numbers_of_other_interfaces_have_a_text_that_leads_back() {
        for id in [0, 5, u64::MAX, 1 << 62, 1 << 63, (1 << 63) | 64, (0b1001 << 60) | 5] {
            let text = text_of(ClientOrderId(id));
            assert!(id_of(&text) == ClientOrderId(id) || id_before(&text) == ClientOrderId(id), "{id}: {text}");
        }
    }
}
