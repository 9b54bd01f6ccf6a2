//! Draws from a seed and names: the same on every machine.

use walras_random::Random;

/// Numbers for models and made orders.
#[derive(Clone, Debug)]
pub struct Draws(Random);

impl Draws {
    /// The draws that these names have under a seed; those of other names are independent.
    #[must_use]
    pub fn new(seed: u64, names: &[u64]) -> Self {
        Self(names.iter().fold(Random::new(seed), |mut random, name| Random::new(random.next_u64() ^ name)))
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// At least 0, below 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Below a count; the bias of scaling is below 2^-50 for counts of thousands.
    pub fn below(&mut self, count: u64) -> u64 {
        self.0.below(count)
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
        let mut draws = Draws::new(1_234_567, &[]);
        let first = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([(); 3].map(|()| draws.bits()), first);
        assert_ne!(Draws::new(7, &[1]).bits(), Draws::new(7, &[2]).bits());
        let all: Vec<f64> = (0..1_000).map(|_| draws.unit()).collect();
        assert!(all.iter().all(|unit| (0.0..1.0).contains(unit)) && (0.45..0.55).contains(&(all.iter().sum::<f64>() / 1e3)));
        assert!((0..1_000).map(|_| draws.below(7)).all(|drawn| drawn < 7));
    }
}
