//! Where random choices come from.

pub use walras_random::Random;

/// A source of choices.
#[derive(Clone, Debug)]
pub struct Choices<'a>(Source<'a>);

#[derive(Clone, Debug)]
enum Source<'a> {
    Bytes(&'a [u8]),
    Seed(Random),
}

impl Choices<'static> {
    /// Choices without end.
    #[must_use]
    pub const fn of_seed(seed: u64) -> Self {
        Self(Source::Seed(Random::new(seed)))
    }

    /// Choices without end, as those of a seed.
    #[must_use]
    pub const fn of_random(random: Random) -> Self {
        Self(Source::Seed(random))
    }
}

impl<'a> Choices<'a> {
    /// Choices made by bytes: each takes as few bytes as hold it, so that a small change of the bytes is a small change of what
    /// happens. When the bytes are spent every number is zero.
    #[must_use]
    pub const fn of_bytes(bytes: &'a [u8]) -> Self {
        Self(Source::Bytes(bytes))
    }

    /// Whether the bytes are used up. Loops end on it.
    #[must_use]
    pub const fn is_spent(&self) -> bool {
        matches!(self.0, Source::Bytes([]))
    }

    /// Any number of so many bytes.
    fn wide(&mut self, width: usize) -> u64 {
        match &mut self.0 {
            Source::Bytes(bytes) => {
                let (taken, rest) = bytes.split_at(width.min(bytes.len()));
                *bytes = rest;
                let mut number = [0; 8];
                number[..taken.len()].copy_from_slice(taken);
                u64::from_le_bytes(number)
            }
            Source::Seed(random) => random.next_u64() >> (64 - 8 * width),
        }
    }

    /// Any byte.
    pub fn byte(&mut self) -> u8 {
        self.wide(1) as u8
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.wide(8)
    }

    /// A number below `bound`; small ones are a little more likely where `bound` is no power of two.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below zero");
        let width = match bound {
            0..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            0x1_0001..=0x1_0000_0000 => 4,
            _ => 8,
        };
        self.wide(width) % bound
    }

    /// A number of `low..=high`.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True once in `count` times.
    pub fn one_in(&mut self, count: u64) -> bool {
        // Zero, which spent bytes give, means no: what is rare is left out of the end of an input.
        self.below(count) == count - 1 && !self.is_spent()
    }

    /// One of them.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }

    /// An index, each as likely as its weight says. The weights add up to at most 256.
    pub fn weighted(&mut self, weights: &[u8]) -> usize {
        let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
        let mut at = self.below(total);
        for (index, &weight) in weights.iter().enumerate() {
            match at.checked_sub(u64::from(weight)) {
                Some(rest) => at = rest,
                None => return index,
            }
        }
        unreachable!("the number is below the sum of the weights")
    }

    /// Up to `max` bytes, as many as a first byte says; the rest stays.
    pub fn bytes(&mut self, max: usize) -> Vec<u8> {
        let len = (self.below(256) as usize).min(max);
        (0..len).map(|_| self.byte()).collect()
    }

    /// All bytes that are left; none of a seed.
    #[must_use]
    pub fn rest(self) -> &'a [u8] {
        match self.0 {
            Source::Bytes(bytes) => bytes,
            Source::Seed(_) => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_make_choices_until_they_are_spent() {
        let mut c = Choices::of_bytes(&[7, 1, 2, 9]);
        assert_eq!((c.below(5), c.below(300), c.is_spent()), (2, 0x0201 % 300, false));
        assert_eq!((c.byte(), c.is_spent(), c.any(), c.one_in(1)), (9, true, 0, false));
        assert_eq!(Choices::of_bytes(&[2, 8, 9, 5]).bytes(10), [8, 9]);
    }

    #[test]
    fn a_seed_makes_the_same_choices_again_and_every_one_of_them() {
        let draw = |seed| {
            let mut c = Choices::of_seed(seed);
            (0..1_000).map(|_| c.weighted(&[1, 0, 3])).collect::<Vec<_>>()
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
        let ones = draw(3).iter().filter(|&&index| index == 0).count();
        assert!((150..350).contains(&ones) && !draw(3).contains(&1), "{ones}");
    }
}
