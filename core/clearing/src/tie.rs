//! Which of two offers with one limit comes first: the choice of nobody who does not make the batch.

use crate::offer::OfferId;

/// Draws tie-breaks: SipHash-1-3 (Aumasson, Bernstein 2012) of account and offer under a key that nobody knew when they were sent.
///
/// The key is the hash of the batch in which the offers arrived, taken once it is closed. It depends on every transaction of the batch, so who
/// does not know the others can not search for ids that win; after that no id can be changed. Who does know them all and may still add one, that
/// is whoever proposes the batch, can search: it tries versions of a transaction of its own until the key suits it. That moves its offers among
/// those of the same effective limit, and nowhere else (`docs/adr/0007-batches-in-the-log.md`). An offer keeps its tie-break for life, so what
/// stands stays sorted.
#[derive(Clone, Copy, Debug)]
pub struct TieBreak {
    start: [u64; 4],
}

impl TieBreak {
    /// The draws of a closed batch, by its hash. The first 16 bytes are the key.
    #[must_use]
    pub const fn new(batch_hash: &[u8; 32]) -> Self {
        let (words, _) = batch_hash.as_chunks::<8>();
        let (low, high) = (u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1]));
        // "somepseudorandomlygeneratedbytes", the function's own constants.
        Self {
            start: [
                low ^ 0x736f_6d65_7073_6575,
                high ^ 0x646f_7261_6e64_6f6d,
                low ^ 0x6c79_6765_6e65_7261,
                high ^ 0x7465_6462_7974_6573,
            ],
        }
    }

    /// The tie-break of an account's offer. Lower comes first.
    #[must_use]
    #[inline]
    pub const fn of(&self, account: u64, offer: OfferId) -> u64 {
        const MESSAGE_BYTES: u64 = 16;
        let mut state = self.start;
        let words = [account, offer.0, MESSAGE_BYTES << 56];
        let mut at = 0;
        while at < words.len() {
            state[3] ^= words[at];
            state = Self::round(state);
            state[0] ^= words[at];
            at += 1;
        }
        state[2] ^= 0xff;
        let [a, b, c, d] = Self::round(Self::round(Self::round(state)));
        a ^ b ^ c ^ d
    }

    const fn round([mut a, mut b, mut c, mut d]: [u64; 4]) -> [u64; 4] {
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        [a, b, c, d]
    }
}
