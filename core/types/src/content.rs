//! What a command says, as a number: two commands under one number of a session are the same command if their digests are equal.

/// A digest of a command's canonical bytes: SipHash-1-3 under the key 0.
///
/// It is a part of the replicated state, so the versions of the wire and of the snapshot fix the algorithm. It protects
/// participants from their own mistakes: a collision could only mislead the participant who made it, since both commands come
/// through one session. SipHash mixes well without a secret key. It costs less than a cryptographic hash of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentDigest(pub u64);

impl ContentDigest {
    /// Of a command's bytes.
    #[must_use]
    #[inline]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mut state = Sip([0x736f_6d65_7073_6575, 0x646f_7261_6e64_6f6d, 0x6c79_6765_6e65_7261, 0x7465_6462_7974_6573]);
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| state.take(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        // The lowest byte of the length.
        last[7] = bytes.len().to_le_bytes()[0];
        state.take(u64::from_le_bytes(last));
        Self(state.finish())
    }
}

/// The four words of SipHash.
struct Sip([u64; 4]);

impl Sip {
    #[inline(always)]
    fn round(&mut self) {
        let [v0, v1, v2, v3] = &mut self.0;
        *v0 = v0.wrapping_add(*v1);
        *v2 = v2.wrapping_add(*v3);
        *v1 = v1.rotate_left(13) ^ *v0;
        *v3 = v3.rotate_left(16) ^ *v2;
        *v0 = v0.rotate_left(32);
        *v2 = v2.wrapping_add(*v1);
        *v0 = v0.wrapping_add(*v3);
        *v1 = v1.rotate_left(17) ^ *v2;
        *v3 = v3.rotate_left(21) ^ *v0;
        *v2 = v2.rotate_left(32);
    }

    #[inline(always)]
    fn take(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.0[0] ^= word;
    }

    #[inline(always)]
    fn finish(mut self) -> u64 {
        self.0[2] ^= 0xff;
        (0..3).for_each(|_| self.round());
        let [v0, v1, v2, v3] = self.0;
        v0 ^ v1 ^ v2 ^ v3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the bytes 0, 1, 2 ... by another implementation of SipHash-1-3 (the crate `siphasher`, version 1).
    #[test]
    fn the_digest_is_siphash_1_3_for_ever() {
        const KNOWN: [(u16, u64); 8] = [
            (0, 0xd1fb_a762_150c_532c),
            (1, 0x68a9_1412_8e01_e473),
            (7, 0x2f09_8ab0_c751_325a),
            (8, 0xead4_11e6_7ebe_2eea),
            (15, 0xf30e_b725_bb91_c9ea),
            (42, 0xfcaf_3c64_874d_d0b4),
            (63, 0x385d_3e39_e5f3_7359),
            (256, 0x31ae_646a_fba7_0308),
        ];
        for (len, digest) in KNOWN {
            let bytes: Vec<u8> = (0..len).map(|at| at.to_le_bytes()[0]).collect();
            assert_eq!(ContentDigest::of_bytes(&bytes), ContentDigest(digest), "{len} bytes");
        }
    }
}
