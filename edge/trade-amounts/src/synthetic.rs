//! Made bounds, like those of a batch near its equilibrium. For tests, benches and examples.

use walras_clearing::{AssetIndex, BatchMarket, Offer, OfferId, Pair};
use walras_types::{Amount, BatchPrice};

use crate::network::ValueArc;

/// A generator of numbers that look random (splitmix64): the same seed gives the same numbers.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// A generator.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `bound`, which must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }
}

/// Every ordered pair among `node_count` assets, with the bounds that `offer_count` offers leave at an equilibrium, `mu = 2^-mu_exponent`.
///
/// As in the synthetic data of SPEEDEX, limits lie up to 2 % below the true ratio and prices about as far beside the true ones: on half of
/// the pairs the rate accepts every limit, and the bounds are equal; on the others the limits of a share mu / 2 % of the offers lie in the
/// band between the bounds. Some flow between the bounds is a circulation, as the smoothed demand at an equilibrium is.
#[must_use]
pub fn bounds_near_equilibrium(node_count: u32, offer_count: u64, mu_exponent: u32, seed: u64) -> Vec<ValueArc> {
    let mut dice = Dice::new(seed);
    let n = node_count as usize;
    let pair_count = u64::from(node_count) * u64::from(node_count.saturating_sub(1));
    let offers_per_pair = (offer_count / pair_count.max(1)).max(1);
    let flows = random_circulation(n, offers_per_pair, &mut dice);
    let in_band = |dice: &mut Dice| (0..offers_per_pair).filter(|_| dice.below(1 << mu_exponent) < 50).count() as u64;
    let mut arcs = Vec::with_capacity(n * n);
    for from in 0..node_count {
        for to in (0..node_count).filter(|&to| to != from) {
            let flow = flows[from as usize * n + to as usize];
            let is_band = dice.bits() & 1 == 1;
            let band_count = if is_band { in_band(&mut dice) } else { 0 };
            let band = flow as u64 / offers_per_pair * band_count;
            let below = if band > 0 { dice.below(band) as i64 } else { 0 };
            arcs.push(ValueArc { from, to, lower: (flow - below).max(0), upper: flow - below.min(flow) + band as i64 });
        }
    }
    arcs
}

/// What an offer of [`market_near_equilibrium`] is worth.
const OFFER_WORTH: i64 = 30_000;

/// The market of [`bounds_near_equilibrium`] in offers worth 30,000 each, and its prices: units are worth `2^unit_worth_exponent` at most, and
/// down to a millionth of that. So whole units are a fine measure of an offer where the exponent is far below 14, and a coarse one near it.
///
/// # Panics
/// When the exponent is not within -30 and 30.
#[must_use]
pub fn market_near_equilibrium(
    node_count: u16,
    offer_count: u64,
    mu_exponent: u32,
    unit_worth_exponent: i32,
    seed: u64,
) -> (BatchMarket, Vec<Option<BatchPrice>>) {
    assert!((-30..=30).contains(&unit_worth_exponent), "amounts of units worth more or less than 2^30 do not fit");
    let mut dice = Dice::new(seed ^ 0x5eed);
    let share = |dice: &mut Dice| dice.below(1 << 30) as f64 / f64::from(1 << 30);
    let worths: Vec<f64> = (0..node_count).map(|_| (f64::from(unit_worth_exponent) - 20.0 * share(&mut dice)).exp2()).collect();
    let mut offers = Vec::new();
    for arc in bounds_near_equilibrium(u32::from(node_count), offer_count, mu_exponent, seed) {
        let rate = worths[arc.from as usize] / worths[arc.to as usize];
        let pair = Pair { sell: AssetIndex(arc.from as u16), buy: AssetIndex(arc.to as u16) };
        // Clearly in the money first, then those in the band.
        for (total, is_in_band) in [(arc.lower, false), (arc.upper - arc.lower, true)] {
            for start in (0..total).step_by(OFFER_WORTH as usize) {
                let below =
                    if is_in_band { share(&mut dice) * 0.5_f64.powi(mu_exponent as i32) } else { 0.01 + 0.02 * share(&mut dice) };
                let units = (OFFER_WORTH.min(total - start) as f64 / worths[arc.from as usize]).round() as u64;
                let limit = BatchPrice::from_bits((rate * (1.0 - below)).to_bits()).unwrap_or(BatchPrice::ZERO);
                let amount = Amount::new(units).unwrap_or(Amount::ZERO);
                offers.extend(Offer::new(limit, 0, OfferId(offers.len() as u64), amount).ok().map(|offer| (pair, offer)));
            }
        }
    }
    let market = BatchMarket::build(usize::from(node_count), &offers, &[], Vec::new());
    let prices = worths.iter().map(|worth| BatchPrice::from_bits(worth.to_bits()).ok()).collect();
    (market.expect("known assets, distinct offers, and amounts below 2^63 together"), prices)
}

/// A flow on every ordered pair that conserves value at every asset: the sum of random cycles.
fn random_circulation(n: usize, offers_per_pair: u64, dice: &mut Dice) -> Vec<i64> {
    let mut flows = vec![0; n * n];
    let mut add = |from: usize, to: usize, value: i64| flows[from * n + to] += value;
    for from in 0..n {
        for to in 0..from {
            let value = (20_000 + dice.below(20_000)) * offers_per_pair;
            add(from, to, value as i64);
            add(to, from, value as i64);
            if n > 2 {
                let third = (0..).map(|_| dice.below(n as u64) as usize).find(|&node| node != from && node != to).unwrap_or(0);
                let value = (dice.below(15_000) * offers_per_pair) as i64;
                add(from, to, value);
                add(to, third, value);
                add(third, from, value);
            }
        }
    }
    flows
}
