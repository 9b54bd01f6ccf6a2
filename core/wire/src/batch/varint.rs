//! Whole numbers in as few bytes as they need: seven bits a byte, lowest first (LEB128), the shortest form only.

use crate::codec::{DecodeError, Reader, Writer};

/// Bytes of the longest.
pub(super) const VARINT_BYTES_MAX: usize = 10;

#[inline]
pub(super) fn put(w: &mut Writer<'_>, mut value: u64) {
    while value >= 0x80 {
        w.u8(value as u8 | 0x80);
        value >>= 7;
    }
    w.u8(value as u8);
}

#[inline]
pub(super) fn get(r: &mut Reader<'_>) -> Result<u64, DecodeError> {
    let mut value = 0;
    for at in 0..VARINT_BYTES_MAX {
        let byte = r.u8()?;
        value |= u64::from(byte & 0x7f) << (7 * at);
        // The tenth byte has room for one bit.
        let is_too_large = at == VARINT_BYTES_MAX - 1 && byte > 1;
        let is_padded = at > 0 && byte == 0;
        if is_too_large || is_padded {
            break;
        }
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(r.expected("a number below 2^64 in as few bytes as it needs"))
}

/// Signed numbers near zero as small ones: 0, -1, 1, -2, ... as 0, 1, 2, 3, ...
#[inline]
pub(super) fn put_signed(w: &mut Writer<'_>, value: i64) {
    put(w, ((value << 1) ^ (value >> 63)) as u64);
}

#[inline]
pub(super) fn get_signed(r: &mut Reader<'_>) -> Result<i64, DecodeError> {
    let folded = get(r)?;
    Ok((folded >> 1) as i64 ^ -((folded & 1) as i64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes_of(value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        put(&mut Writer(&mut bytes), value);
        bytes
    }

    fn read(bytes: &[u8]) -> Option<u64> {
        let r = &mut Reader::new(bytes);
        let value = get(r).ok()?;
        r.clone().finish().ok().map(|()| value)
    }

    #[test]
    fn numbers_take_the_bytes_that_they_need() {
        for (value, bytes) in [(0, &[0][..]), (127, &[127]), (128, &[0x80, 1]), (300, &[0xac, 2])] {
            assert_eq!((bytes_of(value), read(bytes)), (bytes.to_vec(), Some(value)));
        }
        let most = [&[0xff; 9][..], &[1]].concat();
        assert_eq!((bytes_of(u64::MAX), read(&most)), (most.clone(), Some(u64::MAX)));
        for wrong in
            [&[][..], &[0x80], &[0x80, 0], &[0xff, 0x80, 0], &[&[0xff; 9][..], &[2]].concat(), &[&[0xff; 10][..], &[1]].concat()]
        {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_number_has_one_form(value in any::<u64>(), shift in 0..64_u32, bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            let value = value >> shift;
            prop_assert_eq!(read(&bytes_of(value)), Some(value));
            if let Some(value) = read(&bytes) {
                prop_assert_eq!(bytes_of(value), bytes);
            }
        }

        #[test]
        fn a_signed_number_has_one_form(value in any::<i64>(), shift in 0..64_u32) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            put_signed(&mut Writer(&mut bytes), value);
            prop_assert_eq!(get_signed(&mut Reader::new(&bytes)), Ok(value));
            prop_assert!((-64..64).contains(&value) == (bytes.len() == 1));
        }
    }
}
