//! Markets without any order: amounts from one unit to the most, limits over all that there can be.

use walras_clearing::{AssetIndex, BatchMarket, Offer, OfferId, Pair};
use walras_types::{Amount, BatchPrice};

/// A multiplicative generator.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x1234_5678_9ABC_DEF1))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn unit(&mut self) -> f64 {
        self.next() as f64 / u64::MAX as f64
    }

    /// Near each other, far apart, and at the ends of what there can be.
    fn limit(&mut self) -> BatchPrice {
        let two_to = |exponent: f64| BatchPrice::from_bits(exponent.exp2().to_bits()).expect("it is in the range of limits");
        match self.below(10) {
            0..6 => two_to(self.unit() * 2.0 - 1.0),
            6..8 => two_to(self.unit() * 40.0 - 20.0),
            8 => two_to(self.unit() * 250.0 - 125.0),
            _ => [BatchPrice::MIN, BatchPrice::MAX, BatchPrice::ONE, BatchPrice::ZERO][self.below(4) as usize],
        }
    }

    /// Few units, many, and as many as 64 offers may have.
    fn units(&mut self) -> Amount {
        let units = match self.below(11) {
            0..4 => 1 + self.below(999),
            4..7 => 1 + self.below(999_999_999),
            7..9 => 1 + self.below(3),
            9 => 1 + self.below(Amount::MAX.get() / 64),
            _ => Amount::MAX.get() / 64,
        };
        Amount::new(units).expect("at most the most")
    }

    /// An offer between any two assets, if there can be such a one.
    pub(crate) fn offer(&mut self, id: u64, asset_count: u16) -> Option<(Pair, Offer)> {
        let sell = self.below(asset_count.into()) as u16;
        let buy = (sell + 1 + self.below(u64::from(asset_count) - 1) as u16) % asset_count;
        let (limit, units) = (self.limit(), self.units());
        let offer = Offer::new(limit, id, OfferId(id), units).ok()?;
        Some((Pair { sell: AssetIndex(sell), buy: AssetIndex(buy) }, offer))
    }
}

/// Up to 40 offers among 2 to 8 assets, all of them wild.
pub(crate) fn wild(seed: u64) -> BatchMarket {
    let draw = &mut Draw::new(seed);
    let asset_count = 2 + draw.below(7) as u16;
    let offer_count = draw.below(40);
    // Not used. Without them the markets that are named elsewhere by their seeds would be others.
    (0..asset_count).for_each(|_| _ = draw.unit());
    let offers: Vec<_> = (0..offer_count).filter_map(|id| draw.offer(id, asset_count)).collect();
    BatchMarket::build(asset_count.into(), &offers, &[], Vec::new()).expect("64 of the largest offers are as many as there may be")
}
