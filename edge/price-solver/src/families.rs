//! Families of markets that are hard to price: heavy tails, whales, thin assets next to thick ones, ties, near-arbitrage.
//!
//! The made batches of [`crate::synthetic`] have the papers' distributions, in which no offer is much larger than another. Real
//! markets and adversaries are not like that. Each family here is one way in which offers can differ by many powers of ten; a
//! market is a function of its family and seed. Amounts are whole numbers from 1 to 2^62, so that every market can also be cleared
//! in whole units.

use crate::random::Random;
use crate::synthetic::{MadeBatch, Model, Offer, Shape, Variant};

/// A market of a family.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyMarket {
    /// Assets.
    pub asset_count: usize,
    /// Offers, in the order in which they were made.
    pub offers: Vec<Offer>,
}

/// A way in which the offers of a market can be far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Sizes by a Pareto distribution with the exponent 0.6: the largest offer is as large as all others.
    Pareto06,
    /// The same with 0.8.
    Pareto08,
    /// The same with 1.
    Pareto10,
    /// The same with 1.2.
    Pareto12,
    /// The same with 1.5.
    Pareto15,
    /// Sizes log-uniform over ten powers of ten.
    LogUniform,
    /// 20 assets, 990 offers of up to 10^6 units and ten of 10^10.
    TenWhales,
    /// The same with ten of 10^11 or 10^12.
    TenLargerWhales,
    /// The same with thirty of 10^9.
    ThirtyWhales,
    /// 50 assets, 5,000 offers, one in a hundred 2,000 times the mean.
    OneInAHundred,
    /// Up to thirty offers of 10^3 to 10^12 times the mean each.
    WhalesOfAllSizes,
    /// All whales sell one asset.
    OneSidedWhales,
    /// Whales that trade with each other, round a cycle, at the market's rates.
    WhaleCycle,
    /// Assets drawn with weights from 1 to 10^-6.
    ThinAssets,
    /// Assets whose offers are all a millionth to a billionth of the others'.
    TinyAssets,
    /// Parts that have no offers between them, of different sizes.
    DisconnectedParts,
    /// A ring of assets, each traded with its neighbours alone.
    Ring,
    /// A handful of different limits, exactly at the valuations.
    Ties,
    /// Limits within 10^-9 of each other.
    NearlyTies,
    /// Cycles of offers that would be an arbitrage of 10^-12, or lack so much.
    NearArbitrage,
    /// Valuations over 24 powers of ten.
    ExtremeValuations,
    /// Half of all offers have no limit.
    MarketOrders,
    /// Limits over two powers of ten about the valuations: few offers trade, and all prices are far from most limits.
    Scattered,
    /// One limit in twenty is off by six powers of ten either way, and one offer in fifty is a whale.
    Slips,
    /// Three to six assets, and few offers; sizes, limits and pairs are log-uniform.
    SmallAndWild,
    /// All offers sell or buy one asset or its four hubs, with Pareto sizes.
    HubsWithTails,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 26] = [
        Self::Pareto06,
        Self::Pareto08,
        Self::Pareto10,
        Self::Pareto12,
        Self::Pareto15,
        Self::LogUniform,
        Self::TenWhales,
        Self::TenLargerWhales,
        Self::ThirtyWhales,
        Self::OneInAHundred,
        Self::WhalesOfAllSizes,
        Self::OneSidedWhales,
        Self::WhaleCycle,
        Self::ThinAssets,
        Self::TinyAssets,
        Self::DisconnectedParts,
        Self::Ring,
        Self::Ties,
        Self::NearlyTies,
        Self::NearArbitrage,
        Self::ExtremeValuations,
        Self::MarketOrders,
        Self::Scattered,
        Self::Slips,
        Self::SmallAndWild,
        Self::HubsWithTails,
    ];

    /// The market of a seed.
    #[must_use]
    pub fn market(self, seed: u64) -> FamilyMarket {
        let mut random = Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ self as u64);
        match self {
            Self::Pareto06 => pareto(&mut random, 0.6),
            Self::Pareto08 => pareto(&mut random, 0.8),
            Self::Pareto10 => pareto(&mut random, 1.0),
            Self::Pareto12 => pareto(&mut random, 1.2),
            Self::Pareto15 => pareto(&mut random, 1.5),
            Self::LogUniform => usual(&mut random, |random| 10f64.powf(random.uniform(0.0, 10.0))),
            Self::TenWhales => few_whales(&mut random, &[10.0], 10),
            Self::TenLargerWhales => few_whales(&mut random, &[11.0, 12.0], 10),
            Self::ThirtyWhales => few_whales(&mut random, &[9.0], 30),
            Self::OneInAHundred => one_in_a_hundred(&mut random),
            Self::WhalesOfAllSizes => whales_of_all_sizes(&mut random),
            Self::OneSidedWhales => one_sided_whales(&mut random),
            Self::WhaleCycle => whale_cycle(&mut random),
            Self::ThinAssets => thin_assets(&mut random),
            Self::TinyAssets => tiny_assets(&mut random),
            Self::DisconnectedParts => disconnected_parts(&mut random),
            Self::Ring => ring(&mut random),
            Self::Ties => ties(&mut random),
            Self::NearlyTies => nearly_ties(&mut random),
            Self::NearArbitrage => near_arbitrage(&mut random),
            Self::ExtremeValuations => extreme_valuations(&mut random),
            Self::MarketOrders => market_orders(&mut random),
            Self::Scattered => scattered(&mut random),
            Self::Slips => slips(&mut random),
            Self::SmallAndWild => small_and_wild(&mut random),
            Self::HubsWithTails => hubs_with_tails(&mut random),
        }
    }
}

/// Amounts end here, and all of an asset together: 2^62 units.
const AMOUNT_MAX: f64 = (1u64 << 62) as f64;
/// What offers of no particular size are worth at most.
const SIZE: f64 = 1e6;

/// A market on its way: valuations and offers.
struct Maker<'r> {
    random: &'r mut Random,
    valuations: Vec<f64>,
    offers: Vec<Offer>,
}

impl<'r> Maker<'r> {
    /// Valuations over two powers of ten.
    fn new(random: &'r mut Random, asset_count: usize) -> Self {
        let valuations = (0..asset_count).map(|_| 10f64.powf(random.uniform(-1.0, 1.0))).collect();
        Self { random, valuations, offers: Vec::new() }
    }

    /// 5 to 50 assets, and the offers that suit them.
    fn usual(random: &'r mut Random) -> (Self, usize) {
        let asset_count = [5, 10, 20, 50][random.below(4)];
        let offer_count = asset_count * [5, 15, 50][random.below(3)];
        (Self::new(random, asset_count), offer_count)
    }

    fn two_assets(&mut self) -> (usize, usize) {
        let n = self.valuations.len();
        let sell = self.random.below(n);
        (sell, (sell + 1 + self.random.below(n - 1)) % n)
    }

    fn small(&mut self) -> f64 {
        self.random.uniform(1.0, SIZE)
    }

    /// Limits lie as in the papers' model: nine of ten up to 2 % below the true ratio, the others above it.
    fn usual_ratio(&mut self) -> f64 {
        if self.random.below(10) == 0 { 1.0 + self.random.uniform(0.0, 0.02) } else { 1.0 - self.random.uniform(0.0, 0.02) }
    }

    fn push(&mut self, (sell, buy): (usize, usize), worth: f64, ratio: f64) {
        let amount = (worth / self.valuations[sell]).floor().clamp(1.0, AMOUNT_MAX);
        let limit = self.valuations[sell] / self.valuations[buy] * ratio;
        self.offers.push(Offer { sell, buy, limit, amount });
    }

    fn push_usual(&mut self, worth: f64) {
        let (pair, ratio) = (self.two_assets(), self.usual_ratio());
        self.push(pair, worth, ratio);
    }

    fn push_usuals(&mut self, count: usize) {
        for _ in 0..count {
            let worth = self.small();
            self.push_usual(worth);
        }
    }

    /// Of an asset there are at most [`AMOUNT_MAX`] units: later offers get what is left of them.
    fn done(mut self) -> FamilyMarket {
        let mut left = vec![AMOUNT_MAX; self.valuations.len()];
        for offer in &mut self.offers {
            let left = &mut left[offer.sell];
            offer.amount = offer.amount.min((*left * 0.5).floor()).max(1.0);
            *left -= offer.amount;
        }
        FamilyMarket { asset_count: self.valuations.len(), offers: self.offers }
    }
}

fn usual(random: &mut Random, size: impl Fn(&mut Random) -> f64) -> FamilyMarket {
    let (mut maker, count) = Maker::usual(random);
    for _ in 0..count {
        let worth = size(maker.random);
        maker.push_usual(worth);
    }
    maker.done()
}

fn pareto(random: &mut Random, alpha: f64) -> FamilyMarket {
    usual(random, |random| pareto_size(random, alpha))
}

fn pareto_size(random: &mut Random, alpha: f64) -> f64 {
    1e3 * (1.0 - random.unit()).powf(-1.0 / alpha)
}

fn few_whales(random: &mut Random, exponents: &[f64], count: usize) -> FamilyMarket {
    let mut maker = Maker::new(random, 20);
    maker.push_usuals(1_000 - count);
    let worth = 10f64.powf(exponents[maker.random.below(exponents.len())]);
    (0..count).for_each(|_| maker.push_usual(worth));
    maker.done()
}

fn one_in_a_hundred(random: &mut Random) -> FamilyMarket {
    let mut maker = Maker::new(random, 50);
    maker.push_usuals(4_950);
    (0..50).for_each(|_| maker.push_usual(0.5 * SIZE * 2_000.0));
    maker.done()
}

/// 10^3 to 10^12 times the mean of the others.
fn whale_size(random: &mut Random) -> f64 {
    0.5 * SIZE * 10f64.powf(random.uniform(3.0, 12.0))
}

fn whales_of_all_sizes(random: &mut Random) -> FamilyMarket {
    let (mut maker, count) = Maker::usual(random);
    maker.push_usuals(count);
    for _ in 0..=maker.random.below(30) {
        let worth = whale_size(maker.random);
        maker.push_usual(worth);
    }
    maker.done()
}

fn one_sided_whales(random: &mut Random) -> FamilyMarket {
    let (mut maker, count) = Maker::usual(random);
    maker.push_usuals(count);
    let n = maker.valuations.len();
    for _ in 0..=maker.random.below(10) {
        let (buy, worth, ratio) = (1 + maker.random.below(n - 1), whale_size(maker.random), maker.usual_ratio());
        maker.push((0, buy), worth, ratio);
    }
    maker.done()
}

fn whale_cycle(random: &mut Random) -> FamilyMarket {
    let (mut maker, count) = Maker::usual(random);
    maker.push_usuals(count);
    let length = 2 + maker.random.below(maker.valuations.len() - 1);
    let worth = whale_size(maker.random);
    for sell in 0..length {
        let (size, ratio) = (maker.random.uniform(0.5, 1.5), 1.0 - maker.random.uniform(0.0, 0.002));
        maker.push((sell, (sell + 1) % length), worth * size, ratio);
    }
    maker.done()
}

fn thin_assets(random: &mut Random) -> FamilyMarket {
    let (mut maker, count) = Maker::usual(random);
    let n = maker.valuations.len();
    let mut sum = 0.0;
    let weights: Vec<f64> = (0..n)
        .map(|asset| {
            sum += 1e-6f64.powf(asset as f64 / (n - 1) as f64);
            sum
        })
        .collect();
    // Of each asset there are two offers at least, so that it can trade.
    for asset in 0..n {
        let other = (asset + 1 + maker.random.below(n - 1)) % n;
        for pair in [(asset, other), (other, asset)] {
            let (worth, ratio) = (maker.small(), maker.usual_ratio());
            maker.push(pair, worth, ratio);
        }
    }
    while maker.offers.len() < count.max(3 * n) {
        let pair = (maker.random.weighted(&weights), maker.random.weighted(&weights));
        if pair.0 != pair.1 {
            let (worth, ratio) = (maker.small(), maker.usual_ratio());
            maker.push(pair, worth, ratio);
        }
    }
    maker.done()
}

fn tiny_assets(random: &mut Random) -> FamilyMarket {
    let (mut maker, count) = Maker::usual(random);
    let n = maker.valuations.len();
    let tiny = n.div_ceil(3);
    for _ in 0..count {
        let (pair, ratio) = (maker.two_assets(), maker.usual_ratio());
        let is_tiny = pair.0 < tiny || pair.1 < tiny;
        let worth = maker.random.uniform(1e9, 1e12) * if is_tiny { 10f64.powf(maker.random.uniform(-9.0, -6.0)) } else { 1.0 };
        maker.push(pair, worth, ratio);
    }
    maker.done()
}

fn disconnected_parts(random: &mut Random) -> FamilyMarket {
    let part_count = 2 + random.below(4);
    let mut all = FamilyMarket { asset_count: 0, offers: Vec::new() };
    for part in 0..part_count {
        let asset_count = 3 + random.below(8);
        let mut maker = Maker::new(random, asset_count);
        let scale = 10f64.powf(maker.random.uniform(0.0, 9.0));
        for _ in 0..asset_count * 10 {
            let worth = pareto_size(maker.random, 1.0) * scale;
            maker.push_usual(worth);
        }
        let moved = |offer: &Offer| Offer { sell: offer.sell + all.asset_count, buy: offer.buy + all.asset_count, ..*offer };
        all.offers.extend(maker.offers.iter().map(moved).collect::<Vec<_>>());
        // What leads from one part to the next and never back.
        if part > 0 {
            all.offers.push(Offer { sell: all.asset_count, buy: 0, limit: 1.0, amount: 1e12 });
        }
        all.asset_count += asset_count;
    }
    all
}

fn ring(random: &mut Random) -> FamilyMarket {
    let asset_count = 5 + random.below(46);
    let mut maker = Maker::new(random, asset_count);
    for asset in 0..asset_count {
        let next = (asset + 1) % asset_count;
        for _ in 0..=maker.random.below(5) {
            for pair in [(asset, next), (next, asset)] {
                let (worth, ratio) = (pareto_size(maker.random, 0.8), maker.usual_ratio());
                maker.push(pair, worth, ratio);
            }
        }
    }
    maker.done()
}

fn ties(random: &mut Random) -> FamilyMarket {
    let (mut maker, count) = Maker::usual(random);
    for _ in 0..count {
        let ratio = [1.0, 1.0, 1.0, 0.99, 1.01, 0.5][maker.random.below(6)];
        let (pair, worth) = (maker.two_assets(), pareto_size(maker.random, 1.0));
        maker.push(pair, worth, ratio);
    }
    maker.done()
}

fn nearly_ties(random: &mut Random) -> FamilyMarket {
    let (mut maker, count) = Maker::usual(random);
    for _ in 0..count {
        let ratio = 1.0 + 1e-9 * maker.random.uniform(-1.0, 1.0);
        let (pair, worth) = (maker.two_assets(), 10f64.powf(maker.random.uniform(0.0, 10.0)));
        maker.push(pair, worth, ratio);
    }
    maker.done()
}

fn near_arbitrage(random: &mut Random) -> FamilyMarket {
    let (mut maker, count) = Maker::usual(random);
    let n = maker.valuations.len();
    while maker.offers.len() < count {
        let length = 2 + maker.random.below(n.min(6) - 1);
        let (first, step) = (maker.random.below(n), 1 + maker.random.below(n - 1));
        let mut assets: Vec<usize> = (0..length).map(|place| (first + place * step) % n).collect();
        assets.dedup();
        if assets.len() < 2 || assets.first() == assets.last() {
            continue;
        }
        let slack = [1e-12, -1e-12, 0.0, 1e-6][maker.random.below(4)];
        for (place, &sell) in assets.iter().enumerate() {
            let buy = assets[(place + 1) % assets.len()];
            let tilt = if place == 0 { 1.0 - slack } else { 1.0 };
            let worth = pareto_size(maker.random, 0.8);
            if sell != buy {
                maker.push((sell, buy), worth, tilt);
            }
        }
    }
    maker.done()
}

fn extreme_valuations(random: &mut Random) -> FamilyMarket {
    let (mut maker, count) = Maker::usual(random);
    let n = maker.valuations.len();
    maker.valuations = (0..n).map(|_| 10f64.powf(maker.random.uniform(-12.0, 12.0))).collect();
    for _ in 0..count {
        // Whole units of the most valuable asset are worth so much.
        let worth = 10f64.powf(maker.random.uniform(12.0, 15.0)).min(1e18);
        maker.push_usual(worth);
    }
    maker.done()
}

fn market_orders(random: &mut Random) -> FamilyMarket {
    let (mut maker, count) = Maker::usual(random);
    for _ in 0..count {
        let worth = pareto_size(maker.random, 0.8);
        let ratio = if maker.random.below(2) == 0 { 0.0 } else { maker.usual_ratio() };
        let pair = maker.two_assets();
        maker.push(pair, worth, ratio);
    }
    maker.done()
}

fn scattered(random: &mut Random) -> FamilyMarket {
    let (mut maker, count) = Maker::usual(random);
    for _ in 0..count {
        let ratio = 10f64.powf(maker.random.uniform(-1.0, 1.0));
        let (pair, worth) = (maker.two_assets(), pareto_size(maker.random, 0.8));
        maker.push(pair, worth, ratio);
    }
    maker.done()
}

fn slips(random: &mut Random) -> FamilyMarket {
    let (mut maker, count) = Maker::usual(random);
    for _ in 0..count {
        let slip = if maker.random.below(20) == 0 { 10f64.powf(maker.random.uniform(-6.0, 6.0)) } else { 1.0 };
        let (pair, ratio) = (maker.two_assets(), maker.usual_ratio() * slip);
        let worth = if maker.random.below(50) == 0 { whale_size(maker.random) } else { maker.small() };
        maker.push(pair, worth, ratio);
    }
    maker.done()
}

fn small_and_wild(random: &mut Random) -> FamilyMarket {
    let asset_count = 3 + random.below(4);
    let mut maker = Maker::new(random, asset_count);
    for _ in 0..asset_count * (2 + maker.random.below(6)) {
        let (pair, worth) = (maker.two_assets(), 10f64.powf(maker.random.uniform(0.0, 12.0)));
        let ratio = 10f64.powf(maker.random.uniform(-3.0, 3.0));
        maker.push(pair, worth, ratio);
    }
    maker.done()
}

fn hubs_with_tails(random: &mut Random) -> FamilyMarket {
    let asset_count = [10, 20, 50][random.below(3)];
    let mut maker = Maker::new(random, asset_count);
    for _ in 0..asset_count * 20 {
        let hub = maker.random.below(5);
        let other = maker.random.below(asset_count);
        if hub == other {
            continue;
        }
        let pair = if maker.random.below(2) == 0 { (hub, other) } else { (other, hub) };
        let (worth, ratio) = (pareto_size(maker.random, 0.8), maker.usual_ratio());
        maker.push(pair, worth, ratio);
    }
    maker.done()
}

/// A market of the papers' model, as a family's.
#[must_use]
pub fn made(model: Model, seed: u64) -> FamilyMarket {
    FamilyMarket { asset_count: model.asset_count, offers: MadeBatch::new(model, seed).offers }
}

/// Every pair has offers: what solves cost that grow with the assets. The offers of each asset are worth the same.
#[must_use]
pub fn dense(asset_count: usize, seed: u64) -> FamilyMarket {
    made(
        Model { asset_count, offer_count: asset_count * asset_count / 2, variant: Variant::Default, shape: Shape::EvenCycles },
        seed,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markets_are_what_indexes_and_whole_units_take() {
        for family in Family::ALL {
            for seed in 0..5 {
                let market = family.market(seed);
                assert_eq!(market, family.market(seed));
                assert!(market.offers.len() >= 6, "{family:?}");
                for offer in &market.offers {
                    assert!(offer.sell != offer.buy && offer.sell.max(offer.buy) < market.asset_count, "{family:?} {offer:?}");
                    assert!(offer.limit >= 0.0 && offer.limit.is_finite(), "{family:?} {offer:?}");
                    assert!(
                        offer.amount >= 1.0 && offer.amount <= AMOUNT_MAX && offer.amount.fract() == 0.0,
                        "{family:?} {offer:?}"
                    );
                }
            }
        }
    }
}
