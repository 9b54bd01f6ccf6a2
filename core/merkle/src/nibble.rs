//! Keys as digits of four bits, the highest first.

/// Digit number `depth` of a key.
#[inline]
pub(crate) fn digit(key: &[u8], depth: usize) -> u8 {
    let byte = key[depth / 2];
    if depth.is_multiple_of(2) { byte >> 4 } else { byte & 15 }
}

/// How many digits two keys of one length have in common at their beginnings.
#[inline]
pub(crate) fn common<const KEY: usize>(a: &[u8; KEY], b: &[u8; KEY]) -> usize {
    a.iter().zip(b).position(|(a, b)| a != b).map_or(2 * KEY, |at| 2 * at + usize::from((a[at] ^ b[at]) < 16))
}

/// The digits of a mask, ascending.
#[inline]
pub(crate) fn digits(mask: u16) -> impl Iterator<Item = u8> {
    let mut left = mask;
    std::iter::from_fn(move || {
        let digit = (left != 0).then(|| left.trailing_zeros() as u8)?;
        left &= left - 1;
        Some(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_keys() {
        assert_eq!([0, 1, 2, 3].map(|depth| digit(&[0x12, 0xef], depth)), [1, 2, 14, 15]);
        assert_eq!(common(&[0x12, 0x34], &[0x12, 0x34]), 4);
        assert_eq!(common(&[0x12, 0x34], &[0x12, 0x35]), 3);
        assert_eq!(common(&[0x12, 0x34], &[0x12, 0x44]), 2);
        assert_eq!(common(&[0x12, 0x34], &[0x92, 0x34]), 0);
        assert_eq!(digits(0b1000_0000_0001_0010).collect::<Vec<_>>(), [1, 4, 15]);
        assert_eq!(digits(0).count(), 0);
    }
}
