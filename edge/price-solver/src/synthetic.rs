//! Made batches: the data model of SPEEDEX 2021, Appendix G, every variant of its Appendix H, and the reference generator's two shapes.
//!
//! Assets have hidden valuations. *Good* offers (90 %) accept them: they come in cycles over 2 to 7 random assets, each offer of a
//! cycle worth the same at the valuations, with a limit a little below the true ratio. *Bad* offers come alone, between two random
//! assets, with a limit a little above it. Where the paper leaves a number open, the variant's documentation gives ours.
//!
//! A batch is a function of its model and seed on one machine; logarithms and cosines of [`MadeBatch::next`] may differ in the last
//! bit between machines.

use crate::random::Random;

/// One limit order: sells up to `amount` of `sell` if it gets at least `limit` of `buy` for each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offer {
    /// The asset sold.
    pub sell: usize,
    /// The asset bought.
    pub buy: usize,
    /// Least amount bought per amount sold.
    pub limit: f64,
    /// Amount sold at most.
    pub amount: f64,
}

/// What an offer's distribution may be: the rows of SPEEDEX 2021, Figure 6, and the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Limits of good offers 0 to 2 % below the true ratio, of bad ones 0 to 2 % above; valuations 1 to 1,000.
    Default,
    /// One offer in ten is ten times as large.
    SomeLarge,
    /// The first asset is worth 10,000, the second 0.1.
    OutlierPrices,
    /// One offer in ten is good, not nine.
    TenPercentGood,
    /// No limit within 10 % of the true ratio: 10 to 12 % away.
    NoneNear,
    /// All limits within 1 % of the true ratio.
    Close,
    /// Limits of good offers up to 50 % below the true ratio, of bad ones up to 100 % above.
    Dispersed,
    /// Assets are drawn with weights falling geometrically from 1 to 1/1,000 from the first to the last.
    UnevenVolumes,
}

impl Variant {
    /// All rows of Figure 6 and the default.
    pub const ALL: [Self; 8] = [
        Self::Default,
        Self::SomeLarge,
        Self::OutlierPrices,
        Self::TenPercentGood,
        Self::NoneNear,
        Self::Close,
        Self::Dispersed,
        Self::UnevenVolumes,
    ];

    /// Distance of a good offer's limit below the true ratio, and of a bad one's above, as fractions of it.
    fn distances(self) -> [(f64, f64); 2] {
        match self {
            Self::NoneNear => [(0.10, 0.12); 2],
            Self::Close => [(0.0, 0.01); 2],
            Self::Dispersed => [(0.0, 0.5), (0.0, 1.0)],
            _ => [(0.0, 0.02); 2],
        }
    }
}

/// Which assets good offers go round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Cycles of 2 to 7 assets, all lengths as likely (Appendix G); every offer of a cycle has the same value.
    EvenCycles,
    /// Cycles of 2 to 7 assets with weights 100, 80, 50, 30, 10, 5, as the reference's block generator draws them.
    Cycles,
    /// Every offer sells or buys the first asset. The two offers of a cycle sell the same *amount*, as the reference's price
    /// experiment does, so their values differ by the ratio of two prices and supply is far from balanced.
    Star,
}

/// The model of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// Assets.
    pub asset_count: usize,
    /// Offers.
    pub offer_count: usize,
    /// The distribution.
    pub variant: Variant,
    /// The topology.
    pub shape: Shape,
}

/// A batch and the valuations it was made from.
#[derive(Clone, Debug)]
pub struct MadeBatch {
    /// The offers, in the order in which they were made.
    pub offers: Vec<Offer>,
    /// One valuation per asset. Not exactly an equilibrium: bad offers and chance move it.
    pub valuations: Vec<f64>,
    model: Model,
    random: Random,
}

/// Amounts are whole numbers of this fraction of a unit of value.
const UNITS_PER_VALUE: f64 = 1e4;
const CYCLE_WEIGHTS_EVEN: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
const CYCLE_WEIGHTS_REFERENCE: [f64; 6] = [100.0, 180.0, 230.0, 260.0, 270.0, 275.0];
/// Standard deviation of a valuation's logarithm from one batch to the next.
const DRIFT: f64 = 0.05;

impl MadeBatch {
    /// The batch of a model and a seed. A model of fewer than two assets has no offers.
    pub fn new(model: Model, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut valuations: Vec<f64> = (0..model.asset_count).map(|_| random.uniform(1.0, 1000.0)).collect();
        if let (Variant::OutlierPrices, [first, second, ..]) = (model.variant, &mut valuations[..]) {
            (*first, *second) = (10_000.0, 0.1);
        }
        let mut batch = Self { offers: Vec::new(), valuations, model, random };
        batch.fill();
        batch
    }

    /// The next batch: valuations drift as in Appendix G, the offers are new.
    pub fn next(&mut self) {
        self.next_of(self.model.offer_count);
    }

    /// The next batch, of another number of offers, which is the model's from now on.
    pub fn next_of(&mut self, offer_count: usize) {
        self.model.offer_count = offer_count;
        for valuation in &mut self.valuations {
            *valuation *= (DRIFT * self.random.normal()).exp();
        }
        self.fill();
    }

    fn fill(&mut self) {
        self.offers.clear();
        if self.model.asset_count < 2 {
            return;
        }
        self.offers.reserve(self.model.offer_count + 7);
        let good_share = if self.model.variant == Variant::TenPercentGood { 0.1 } else { 0.9 };
        let good_count = (self.model.offer_count as f64 * good_share).round() as usize;
        let weights: Vec<f64> = self.running_weights();
        while self.offers.len() < good_count {
            self.push_cycle(&weights);
        }
        self.offers.truncate(good_count);
        while self.offers.len() < self.model.offer_count {
            let pair = self.draw_assets(2, &weights);
            let value = self.draw_value();
            self.push(pair[0], pair[1], value / self.valuations[pair[0]], false);
        }
    }

    /// Running sums of the assets' weights.
    fn running_weights(&self) -> Vec<f64> {
        let last = (self.model.asset_count - 1) as f64;
        let weight = |asset: usize| match self.model.variant {
            Variant::UnevenVolumes => 1e-3f64.powf(asset as f64 / last),
            _ => 1.0,
        };
        (0..self.model.asset_count)
            .scan(0.0, |sum, asset| {
                Some({
                    *sum += weight(asset);
                    *sum
                })
            })
            .collect()
    }

    fn push_cycle(&mut self, weights: &[f64]) {
        let lengths = match self.model.shape {
            Shape::EvenCycles => &CYCLE_WEIGHTS_EVEN,
            Shape::Cycles | Shape::Star => &CYCLE_WEIGHTS_REFERENCE,
        };
        let length = match self.model.shape {
            Shape::Star => 2,
            Shape::EvenCycles | Shape::Cycles => (2 + self.random.weighted(lengths)).min(self.model.asset_count),
        };
        let assets = self.draw_assets(length, weights);
        let value = self.draw_value();
        for (place, &sell) in assets.iter().enumerate() {
            let worth = if self.model.shape == Shape::Star { self.valuations[assets[0]] } else { self.valuations[sell] };
            self.push(sell, assets[(place + 1) % length], value / worth, true);
        }
    }

    fn draw_value(&mut self) -> f64 {
        self.random.uniform(1e3, 1e6)
    }

    /// `count` different assets.
    fn draw_assets(&mut self, count: usize, weights: &[f64]) -> Vec<usize> {
        let mut assets = Vec::with_capacity(count);
        if self.model.shape == Shape::Star {
            assets.push(0);
            assets.push(1 + self.random.below(self.model.asset_count - 1));
            if self.random.below(2) == 1 {
                assets.swap(0, 1);
            }
            return assets;
        }
        while assets.len() < count {
            let asset = self.random.weighted(weights);
            if !assets.contains(&asset) {
                assets.push(asset);
            }
        }
        assets
    }

    fn push(&mut self, sell: usize, buy: usize, amount: f64, good: bool) {
        let [below, above] = self.model.variant.distances();
        let ratio = self.valuations[sell] / self.valuations[buy];
        let limit = if good {
            ratio * (1.0 - self.random.uniform(below.0, below.1))
        } else {
            ratio * (1.0 + self.random.uniform(above.0, above.1))
        };
        let large = self.model.variant == Variant::SomeLarge && self.random.below(10) == 0;
        let amount = (amount * if large { 10.0 * UNITS_PER_VALUE } else { UNITS_PER_VALUE }).floor().max(1.0);
        self.offers.push(Offer { sell, buy, limit, amount });
    }
}
