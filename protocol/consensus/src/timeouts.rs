//! Election timeouts from a seed.
//!
//! The library draws them from the operating system's randomness, each time that it resets itself. So that a whole cluster replays from
//! one seed, the one it drew is overwritten with one of ours after every call, before anything can read it.

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): good enough to keep replicas from standing for election together.
#[derive(Clone, Debug)]
pub(crate) struct Timeouts {
    state: u64,
    min: usize,
    max: usize,
    current: usize,
}

impl Timeouts {
    pub(crate) fn new(seed: u64, min: usize, max: usize) -> Self {
        let mut timeouts = Self { state: seed, min, max, current: min };
        timeouts.draw();
        timeouts
    }

    /// A number that another seed is not likely to give.
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn draw(&mut self) {
        let span = (self.max - self.min) as u128 + 1;
        let above = (u128::from(self.next_u64()) * span) >> 64;
        self.current = self.min + usize::try_from(above).expect("it is at most max - min");
    }

    /// Ticks, between both limits, which it may equal.
    pub(crate) fn current(&self) -> usize {
        self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_timeout_between_the_limits_comes_about_equally_often() {
        let mut timeouts = Timeouts::new(1, 150, 153);
        let mut counts = [0_u32; 4];
        for _ in 0..4_000 {
            timeouts.draw();
            counts[timeouts.current() - 150] += 1;
        }
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
        assert_eq!(Timeouts::new(9, 150, 150).current(), 150);
    }
}
