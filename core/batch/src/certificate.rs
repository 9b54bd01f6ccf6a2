//! The proof that a clearing trades nearly all that can be traded at its prices.
//!
//! At given prices, what pair `ij` may sell is worth `v[ij]` with `lower[ij] <= v[ij] <= upper[ij]`, and of each asset at least as much is
//! sold as is bought, after commission `eps`: `sum_j v[ij] >= (1 - eps) sum_k v[ki]`. For any potentials `pi >= 0` the value that trades within
//! a part is then at most
//!
//! `sum_ij max over v[ij] of (1 + pi[i] - (1 - eps) pi[j]) v[ij]`, plus `pi[i]` of what leaves the part, less `(1 - eps) pi[j]` of what comes to it
//!
//! (weak duality of linear programs; between parts nothing can trade but what the commission leaves, and that is as the block has it). The
//! bounds are those of `verify`; where a pair sells less than offers clearly in the money want, what it sells is the lower one: so the claim
//! is about all clearings that serve such offers no worse. What whole units can not tell counts as sold ([`crate::Quality`]). Whoever finds good
//! potentials proves with one number for each asset what a validator checks in O(pairs * log offers), without a solver. All roundings make
//! the bound larger.

use walras_clearing::{BatchMarket, Pair, Proposal, Rules};

use crate::quality::{Looks, share_ppb};
use crate::value::Unit;

/// What a block says of its own quality, and the evidence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// What is missing at most of what can be traded, as the potentials prove it: in parts per billion. [`crate::Quality::gap_ppb`].
    pub gap_ppb: u32,
    /// [`crate::Quality::unserved_ppb`].
    pub unserved_ppb: u32,
    /// A potential for each asset in units of 2^-20, 0 to [`POTENTIAL_MAX`].
    pub potentials: Vec<i64>,
}

/// Potentials in units of 2^-20.
pub const POTENTIAL_ONE: i64 = 1 << 20;

/// Highest potential: 2^16.
pub const POTENTIAL_MAX: i64 = 1 << 36;

/// Everything, in parts per billion.
pub const GAP_PPB_ALL: u32 = walras_types::PPB_ALL;

/// Why a certificate proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Not one potential for each asset.
    #[error("the certificate has {found} potentials for {expected} assets: give one for each")]
    PotentialCount {
        /// Assets.
        expected: usize,
        /// Potentials.
        found: usize,
    },
    /// A potential is out of range.
    #[error("the potential of asset {0} is negative or above 2^16: shift all by one number, only differences matter much")]
    Potential(usize),
    /// The potentials prove another gap.
    #[error("the potentials prove a gap of {proven} ppb, and {stated} are stated: state what they prove, or find better ones")]
    Gap {
        /// What the block says.
        stated: u32,
        /// What is proven.
        proven: u32,
    },
}

/// Bits of the largest value. With 17 + 30 of a reduced price and 16 of the number of pairs, and with 30 of a share, fewer than 127.
const VALUE_BITS: u32 = 60;
/// Bits of the fraction of a reduced price: those of a commission. A potential has 20.
const FRACTION_BITS: u32 = 30;

impl Certificate {
    /// The certificate of a proposal that was verified, for its proposer: O(assets * pairs + pairs * log offers). The gap that it proves is small
    /// if the amounts are nearly the best at the prices.
    ///
    /// Where a pair could trade more, `pi` must rise along it by at least one, where it could trade less by at most one (and by as much more as the commission
    /// takes): potentials that fit all pairs prove that nothing more can trade. What rounding left over in a pair is not worth a step of its own, and how much that is is
    /// tried out.
    #[must_use]
    pub fn find(market: &BatchMarket, proposal: &Proposal, rules: &Rules) -> Self {
        let looks = Looks::new(market, proposal, rules);
        Self::of_parts(&looks, &find_parts(&looks, rules))
    }

    /// That of all parts that are priced, of what was found for each.
    pub(crate) fn of_parts(looks: &Looks, parts: &[PartProof]) -> Self {
        let mut all = vec![0; looks.asset_count];
        let mut gap_ppb = looks.of_nothing_ppb().unwrap_or(0);
        for (of_part, potentials) in parts {
            gap_ppb = gap_ppb.max(*of_part);
            // Those of other parts say nothing of this one.
            all.iter_mut().zip(potentials).for_each(|(all, potential)| *all += potential);
        }
        Self { gap_ppb, unserved_ppb: looks.unserved_ppb(), potentials: all }
    }

    /// What [`crate::BlockHeader::certificate`] has: the hash of `gap u32 | unserved u32 | each potential i64`, little endian.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        const DOMAIN: &[u8; 32] = b"walras batch 1 certificate      ";
        let mut hasher = blake3::Hasher::new_keyed(DOMAIN);
        hasher.update(&self.gap_ppb.to_le_bytes());
        hasher.update(&self.unserved_ppb.to_le_bytes());
        self.potentials.iter().for_each(|potential| _ = hasher.update(&potential.to_le_bytes()));
        *hasher.finalize().as_bytes()
    }
}

/// The gap that potentials prove, in parts per billion, rounded up. For proposers.
///
/// # Errors
/// [`CertificateError::PotentialCount`], [`CertificateError::Potential`].
pub fn gap_ppb(potentials: &[i64], market: &BatchMarket, proposal: &Proposal, rules: &Rules) -> Result<u32, CertificateError> {
    potentials_gap_ppb(potentials, &Looks::new(market, proposal, rules), rules)
}

pub(crate) fn potentials_gap_ppb(potentials: &[i64], looks: &Looks, rules: &Rules) -> Result<u32, CertificateError> {
    if potentials.len() != looks.asset_count {
        return Err(CertificateError::PotentialCount { expected: looks.asset_count, found: potentials.len() });
    }
    if let Some(asset) = potentials.iter().position(|potential| !(0..=POTENTIAL_MAX).contains(potential)) {
        return Err(CertificateError::Potential(asset));
    }
    let of_parts = PartValues::all(looks).iter().map(|part| part.gap_ppb(potentials, rules)).max();
    Ok(looks.of_nothing_ppb().or(of_parts).unwrap_or(0))
}

/// The smallest gap found of a part, and the potentials that prove it: zero for assets of other parts.
pub(crate) type PartProof = (u32, Vec<i64>);

/// Of each part that is priced, in their order.
pub(crate) fn find_parts(looks: &Looks, rules: &Rules) -> Vec<PartProof> {
    let of_part = |part: PartValues| {
        let none = vec![0; looks.asset_count];
        let fitting = SPARE_SHIFTS.iter().map(|shift| part.fitting(looks.asset_count, (part.total() >> shift).max(2), rules));
        let first = (part.gap_ppb(&none, rules), none);
        fitting.map(|potentials| (part.gap_ppb(&potentials, rules), potentials)).fold(first, |best, proof| best.min(proof))
    };
    PartValues::all(looks).into_iter().map(of_part).collect()
}

/// Shares of all that can be traded, as powers of two, that a pair's rest may be without counting; two units are rounding at least.
const SPARE_SHIFTS: [u32; 7] = [14, 18, 22, 26, 32, 44, 60];

/// A priced part in one unit of value.
struct PartValues {
    pairs: Vec<PairValues>,
    /// What trades from an asset of it to another part, and from there to an asset of it.
    leaving: Vec<(usize, i128)>,
    coming: Vec<(usize, i128)>,
}

struct PairValues {
    sell: usize,
    buy: usize,
    lower: i128,
    sold: i128,
    upper: i128,
}

/// What the commission leaves, in units of 2^-30.
fn kept(rules: &Rules) -> i128 {
    match rules.commission.exponent() {
        Some(k) => (1 << FRACTION_BITS) - (1 << (FRACTION_BITS - u32::from(k))),
        None => 1 << FRACTION_BITS,
    }
}

impl PartValues {
    fn all(looks: &Looks) -> Vec<Self> {
        let of_pair = |pair: Pair| (pair.sell.index(), pair.buy.index());
        let crosses = looks.crossing.iter().filter(|crossing| !crossing.sold.is_zero());
        let crosses: Vec<_> = crosses.map(|of| (of, looks.parts.of(of.pair.sell), looks.parts.of(of.pair.buy))).collect();
        let mut pairs = looks.pairs.clone();
        pairs.sort_by_key(|look| look.part);
        let of_part = |part: usize| {
            let from = pairs.partition_point(|look| look.part < part);
            let pairs = &pairs[from..pairs.partition_point(|look| look.part <= part)];
            let crosses = || crosses.iter().filter(|(_, from, to)| [from, to].contains(&&Some(part)));
            let worths = pairs.iter().map(|look| (look.upper, look.price));
            let unit = Unit::of(worths.chain(crosses().map(|(of, ..)| (of.sold, of.price))), VALUE_BITS);
            let values = pairs.iter().filter(|look| !look.upper.is_zero()).map(|look| {
                let (sell, buy) = of_pair(look.pair);
                PairValues {
                    sell,
                    buy,
                    lower: unit.worth_down(look.wanted.min(look.sold), look.price),
                    sold: unit.worth_down(look.sold, look.price),
                    upper: unit.worth_up(look.upper, look.price),
                }
            });
            let leaving = crosses().filter(|(_, from, _)| *from == Some(part));
            let coming = crosses().filter(|(_, _, to)| *to == Some(part));
            Self {
                pairs: values.collect(),
                leaving: leaving.map(|(of, ..)| (of.pair.sell.index(), unit.worth_up(of.sold, of.price))).collect(),
                coming: coming.map(|(of, ..)| (of.pair.buy.index(), unit.worth_down(of.sold, of.price))).collect(),
            }
        };
        looks.priced_parts().map(of_part).collect()
    }

    fn total(&self) -> i128 {
        self.pairs.iter().map(|pair| pair.upper).sum()
    }

    /// Of what these potentials say could trade, the share that does not.
    fn gap_ppb(&self, potentials: &[i64], rules: &Rules) -> u32 {
        let kept = kept(rules);
        // Of 20 and 30 bits of a fraction, 30 are kept: rounded up, they make the bound larger whatever it is a factor of.
        let whole = |potential: i64| i128::from(potential) << FRACTION_BITS;
        let after_commission = |potential: i64| kept * i128::from(potential);
        let up = |value: i128| -((-value) >> 20);
        let mut bound = 0_i128;
        for pair in &self.pairs {
            let (from, to) = (potentials[pair.sell], potentials[pair.buy]);
            let reduced = up(whole(POTENTIAL_ONE) + whole(from) - after_commission(to));
            bound += reduced * if reduced >= 0 { pair.upper } else { pair.lower };
        }
        for (from, value) in &self.leaving {
            bound += up(whole(potentials[*from])) * value;
        }
        for (to, value) in &self.coming {
            bound -= (after_commission(potentials[*to]) >> 20) * value;
        }
        let bound = (bound + (1 << FRACTION_BITS) - 1) >> FRACTION_BITS;
        let traded: i128 = self.pairs.iter().map(|pair| pair.sold).sum();
        // Where whole units make up for the rest, more may trade than could.
        share_ppb(u128::try_from(bound - traded).unwrap_or(0), u128::try_from(bound).unwrap_or(0))
    }

    /// No path along the pairs has more assets, if it has each once. One of `2 n` assets has n disjoint pairs, and disjoint pairs to which
    /// no other can be added are at least half as many as there can be. In a market of a few currencies they are few.
    fn path_assets_max(&self, asset_count: usize) -> usize {
        let (mut is_taken, mut disjoint) = (vec![false; asset_count], 0);
        for PairValues { sell, buy, .. } in &self.pairs {
            if !is_taken[*sell] && !is_taken[*buy] {
                (is_taken[*sell], is_taken[*buy]) = (true, true);
                disjoint += 1;
            }
        }
        4 * disjoint + 1
    }

    /// The least potentials that fit the pairs, or ones that do not where no potentials do.
    fn fitting(&self, asset_count: usize, spare: i128, rules: &Rules) -> Vec<i64> {
        let kept = kept(rules);
        // Up a pair and down again, so that trading along it neither gains nor loses.
        let up = |from: i64| {
            let up = i128::from(from + POTENTIAL_ONE) << FRACTION_BITS;
            i64::try_from(up / kept + i128::from(up % kept > 0)).unwrap_or(POTENTIAL_MAX).min(POTENTIAL_MAX)
        };
        let down = |to: i64| ((i128::from(to) * kept) >> FRACTION_BITS) as i64 - POTENTIAL_ONE;
        let mut potentials = vec![0; asset_count];
        // Where potentials fit, as many rounds do as the longest path has assets.
        for _ in 0..asset_count.min(self.path_assets_max(asset_count) + 1) {
            let mut is_done = true;
            for PairValues { sell, buy, lower, sold, upper } in &self.pairs {
                let (from, to) = (potentials[*sell], potentials[*buy]);
                if upper - sold > spare && to < up(from) {
                    potentials[*buy] = up(from);
                    is_done = false;
                } else if sold - lower > spare && from < down(to) {
                    potentials[*sell] = down(to);
                    is_done = false;
                }
            }
            if is_done {
                break;
            }
        }
        potentials
    }
}
