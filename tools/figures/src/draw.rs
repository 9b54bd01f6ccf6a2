//! Draws from a seed: the same on every machine and with every library version, which libraries' generators do not promise.

/// `SplitMix64` (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): good enough for models and made orders.
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// The draws that these names have under a seed; those of other names are independent.
    #[must_use]
    pub fn new(seed: u64, names: &[u64]) -> Self {
        let mut draws = Self { state: seed };
        for name in names {
            draws.state = draws.bits() ^ name;
        }
        draws
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
    pub fn below(&mut self, count: u64) -> u64 {
        let scaled = (u128::from(self.bits()) * u128::from(count)) >> 64;
        u64::try_from(scaled).expect("scaled below the count")
    }

    /// Standard normal (Box and Muller, 1958).
    pub fn normal(&mut self) -> f64 {
        let (radius, angle) = ((-2.0 * (1.0 - self.unit()).ln()).sqrt(), 2.0 * std::f64::consts::PI * self.unit());
        radius * angle.cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_published_generator() {
        let mut draws = SplitMix64::new(1_234_567, &[]);
        let first = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([(); 3].map(|()| draws.bits()), first);
        assert_ne!(SplitMix64::new(7, &[1]).bits(), SplitMix64::new(7, &[2]).bits());
        let all: Vec<f64> = (0..1_000).map(|_| draws.unit()).collect();
        assert!(all.iter().all(|unit| (0.0..1.0).contains(unit)) && (0.45..0.55).contains(&(all.iter().sum::<f64>() / 1e3)));
        assert!((0..1_000).map(|_| draws.below(7)).all(|drawn| drawn < 7));
    }
}
