//! Seeded draws: the same orders from the same seed on every machine and with every library version.

use walras_types::{PriceTicks, Side, SizeLots};

use crate::books::LimitOrder;

/// `SplitMix64` (Steele, Lea, Flood, 2014): good enough for uniform draws, and fixed for ever, which libraries' generators are not.
pub struct Draw {
    state: u64,
}

impl Draw {
    /// The draws of one iteration of one experiment.
    #[must_use]
    pub fn new(seed: u64, experiment: u64, iteration: u64) -> Self {
        let mut draw = Self { state: seed };
        for word in [experiment, iteration] {
            draw.state = draw.bits() ^ word;
        }
        draw
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform between two numbers, both included. Spans are small, so that the bias of scaling is below 2^-50.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        let span = u128::from(high - low + 1);
        let scaled = (u128::from(self.bits()) * span) >> 64;
        low + u64::try_from(scaled).expect("scaled below the span")
    }

    /// From a distribution whose logarithm is normal, by its median and the spread of that logarithm (Box and Muller, 1958).
    pub fn log_normal(&mut self, median: f64, spread: f64) -> f64 {
        let mut unit = || (self.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        let (radius, angle) = ((-2.0 * (1.0 - unit()).ln()).sqrt(), 2.0 * std::f64::consts::PI * unit());
        median * (spread * radius * angle.cos()).exp()
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
