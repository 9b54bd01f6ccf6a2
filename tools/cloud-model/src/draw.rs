//! Seeded draws: the same from the same seed on every machine and with every library version.

/// `SplitMix64` (Steele, Lea, Flood, 2014): good enough for these draws, and fixed for ever, which libraries' generators are not.
#[derive(Clone, Debug)]
pub struct Draw {
    state: u64,
}

impl Draw {
    /// The draws that a name has; those of other names are independent.
    #[must_use]
    pub fn new(seed: u64, name: u64) -> Self {
        let mut draw = Self { state: seed };
        draw.state = draw.bits() ^ name;
        draw
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// At least 0, below 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Below a count; the bias of scaling is below 2^-50 for counts of thousands.
    pub fn below(&mut self, count: usize) -> usize {
        let scaled = (u128::from(self.bits()) * count as u128) >> 64;
        usize::try_from(scaled).expect("scaled below the count")
    }

    /// The time to the next of events that come independently.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Standard normal (Box and Muller, 1958).
    pub fn normal(&mut self) -> f64 {
        let (radius, angle) = ((-2.0 * (1.0 - self.unit()).ln()).sqrt(), 2.0 * std::f64::consts::PI * self.unit());
        radius * angle.cos()
    }
}
