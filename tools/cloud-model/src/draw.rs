//! Seeded draws: the same from the same seed on every machine and with every library version.

use walras_figures::draw::Draws;

/// A seeded source of random draws.
#[derive(Clone, Debug)]
pub struct Draw(Draws);

impl Draw {
    /// The source with a name; sources with different names are independent.
    #[must_use]
    pub fn new(seed: u64, name: u64) -> Self {
        Self(Draws::new(seed, &[name]))
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// A number from 0 up to, not including, 1.
    pub fn unit(&mut self) -> f64 {
        self.0.unit()
    }

    /// An integer below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.0.below(count as u64)).expect("it is below the count")
    }

    /// The time to the next event of a Poisson process.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// A standard normal number.
    pub fn normal(&mut self) -> f64 {
        self.0.normal()
    }
}
