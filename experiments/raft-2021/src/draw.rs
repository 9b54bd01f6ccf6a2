//! Seeded draws: the same orders from the same seed on every machine and with every library version.

use walras_figures::draw::Draws;
use walras_types::{PriceTicks, Side, SizeLots};

use crate::books::LimitOrder;

/// The draws of one iteration of one experiment.
pub struct Draw(Draws);

impl Draw {
    /// Those that this iteration has under a seed.
    #[must_use]
    pub fn new(seed: u64, experiment: u64, iteration: u64) -> Self {
        Self(Draws::new(seed, &[experiment, iteration]))
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Uniform between two numbers, both included. Spans are small.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    /// From a distribution whose logarithm is normal, by its median and the spread of that logarithm.
    pub fn log_normal(&mut self, median: f64, spread: f64) -> f64 {
        median * (spread * self.0.normal()).exp()
    }

    /// An order with price and size uniform in their ranges, both ends included.
    pub fn order(&mut self, id: u64, side: Side, prices: (u64, u64), sizes: (u64, u64)) -> LimitOrder {
        let price = self.between(prices.0, prices.1);
        limit_order(id, side, price, self.between(sizes.0, sizes.1))
    }
}

/// An order in plain numbers.
#[must_use]
pub fn limit_order(id: u64, side: Side, price: u64, size: u64) -> LimitOrder {
    let price = i64::try_from(price).ok().and_then(PriceTicks::new).expect("the experiments' prices are valid");
    LimitOrder { id, side, price, size: SizeLots::order_size(size).expect("the experiments' sizes are valid") }
}
