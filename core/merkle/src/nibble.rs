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
    let ((a_words, a_rest), (b_words, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let differing = |(a, b): (&[u8; 8], &[u8; 8])| (u64::from_be_bytes(*a) ^ u64::from_be_bytes(*b)).leading_zeros() as usize / 4;
    for (at, words) in a_words.iter().zip(b_words).enumerate() {
        let same = differing(words);
        if same < 16 {
            return 16 * at + same;
        }
    }
    let rest = |bytes: &[u8]| bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let unused = 16 - 2 * a_rest.len();
    16 * a_words.len() + (rest(a_rest) ^ rest(b_rest)).leading_zeros() as usize / 4 - unused
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
        let a: [u8; 17] = std::array::from_fn(|at| at as u8);
        for depth in 0..34 {
            let mut b = a;
            b[depth / 2] ^= if depth % 2 == 0 { 0x10 } else { 0x01 };
            assert_eq!(common(&a, &b), depth);
            b[16] ^= 0xff;
            assert_eq!(common(&a, &b), depth.min(32));
        }
        assert_eq!(common(&a, &a), 34);
        assert_eq!(digits(0b1000_0000_0001_0010).collect::<Vec<_>>(), [1, 4, 15]);
        assert_eq!(digits(0).count(), 0);
    }
}
