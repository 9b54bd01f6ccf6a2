//! ClOrdID(11) is text, the engine's `client_order_id` a number.
//!
//! The two highest bits of the number say how the text became it:
//! - 00: a decimal number below 2^62 without leading zeros, as it is;
//! - 10: up to ten letters, digits and hyphens, six bits each;
//! - 11: any other text: a digest. Its text cannot be found from the number; `#` and the number stand for it.

use walras_types::{ClientOrderId, ContentDigest};

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

/// The number that stands for a text.
#[must_use]
pub fn id_of(text: &str) -> ClientOrderId {
    if let Some(number) = number(text).filter(|number| number >> 62 == 0) {
        return ClientOrderId(number);
    }
    if let Some(number) = text.strip_prefix('#').and_then(number) {
        return ClientOrderId(number);
    }
    let packed = text.bytes().try_fold(0_u64, |packed, byte| Some((packed << 6) | code(byte)?));
    match packed.filter(|_| (1..=PACKED_CHARS_MAX).contains(&text.len())) {
        Some(packed) => ClientOrderId(PACKED | packed),
        None => ClientOrderId(DIGEST | (ContentDigest::of_bytes(text.as_bytes()).0 >> 2)),
    }
}

/// The text that a number stands for, as far as that can be found.
#[must_use]
pub fn text_of(id: ClientOrderId) -> String {
    let ClientOrderId(id) = id;
    if id >> 62 == 0 {
        return id.to_string();
    }
    let codes = (0..PACKED_CHARS_MAX).rev().map(|at| (id >> (6 * at)) & 63);
    let codes: Vec<u64> = codes.skip_while(|code| *code == 0).collect();
    let is_packed = id >> 60 == PACKED >> 60 && !codes.is_empty() && !codes.contains(&0);
    if is_packed { codes.into_iter().map(decoded).collect() } else { format!("#{id}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts_come_back() {
        for text in ["0", "1", "17", "4611686018427387903", "A", "a-Z9", "order-0001", "007", "zzzzzzzzzz", "----------"] {
            assert_eq!(text_of(id_of(text)), text);
        }
        assert_eq!(id_of("77"), ClientOrderId(77));
    }

    #[test]
    fn long_texts_have_numbers_of_their_own() {
        let texts = [
            "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
            "3f2504e0-4f89-11d3-9a0c-0305e82c3302",
            "4611686018427387904",
            "a b",
            "",
            "-----------",
            "ä",
        ];
        let ids: Vec<ClientOrderId> = texts.iter().map(|text| id_of(text)).collect();
        for (at, id) in ids.iter().enumerate() {
            assert!(!ids[..at].contains(id));
            assert_eq!(id_of(&text_of(*id)), *id, "the name that stands for the text");
        }
    }

    #[test]
    fn numbers_of_other_interfaces_have_a_text_that_leads_back() {
        for id in [0, 5, u64::MAX, 1 << 62, 1 << 63, (1 << 63) | 64, (0b1001 << 60) | 5] {
            assert_eq!(id_of(&text_of(ClientOrderId(id))), ClientOrderId(id), "{id}");
        }
    }
}
