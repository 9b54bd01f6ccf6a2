//! Pseudorandom numbers from a seed: for schedules that every node computes alike, jitter, simulations, and tests.
//!
//! The generator is SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014). It is here, and
//! not in a library, because committed seeds and golden files depend on the exact sequence, which libraries may change with a
//! release.
//!
//! *Deliberately absent*: secrets (the generator is predictable: keys and nonces come from the operating system), floats.
//!
//! *Invariant*: the same seed gives the same numbers on every machine and in every version.
//!
//! *Start reading* at [`Random`].

/// A stream of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, any of 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// From 0 to `bound - 1`; 0 if `bound` is 0. The bias is below `bound / 2^64`.
    pub fn below(&mut self, bound: u64) -> u64 {
        let scaled = (u128::from(self.next_u64()) * u128::from(bound)) >> 64;
        u64::try_from(scaled).expect("scaled below the bound")
    }

    /// Fills a buffer.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }

    /// An independent stream, named by a number: draws from it do not move this one.
    #[must_use]
    pub const fn fork(&self, name: u64) -> Self {
        let mut mixed = Self(self.0 ^ name.wrapping_mul(0xd6e8_feb8_6659_fd93));
        Self(mixed.next_u64())
    }
}

/// The generator's mixing function: a bijection that spreads close numbers.
#[must_use]
pub const fn mix(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_published_generator() {
        let mut random = Random::new(1_234_567);
        let first = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([(); 3].map(|()| random.next_u64()), first);
        let mut bytes = [0; 11];
        Random::new(1_234_567).fill(&mut bytes);
        assert_eq!((&bytes[..8], &bytes[8..]), (&first[0].to_le_bytes()[..], &first[1].to_le_bytes()[..3]));
    }

    #[test]
    fn numbers_stay_below_their_bound_and_come_equally_often() {
        let mut random = Random::new(7);
        let mut counts = [0_u32; 7];
        (0..7_000).for_each(|_| counts[random.below(7) as usize] += 1);
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
        assert_eq!((random.below(1), random.below(0)), (0, 0));
    }

    #[test]
    fn a_fork_is_a_stream_of_its_own() {
        let mut random = Random::new(3);
        let (mut one, mut two) = (random.fork(1), random.fork(2));
        let drawn = [one.next_u64(), two.next_u64(), random.next_u64()];
        assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2] && drawn[0] != drawn[2], "{drawn:?}");
        assert_eq!(Random::new(3).next_u64(), drawn[2]);
    }
}
