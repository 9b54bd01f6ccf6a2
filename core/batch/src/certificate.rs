//! The proof that a clearing trades nearly all that can be traded at its prices.
//!
//! At given prices, what pair `ij` may sell is worth `v[ij]` with `lower[ij] <= v[ij] <= upper[ij]`, and of each asset at least as much is
//! sold as is bought, after commission `eps`: `sum_j v[ij] + slack[i] >= (1 - eps) sum_k v[ki]`, where the slack is a unit of `i` for each pair
//! that buys it, since what a pair buys is rounded down. For any potentials `pi >= 0` the value of every clearing that keeps the rules is then
//! at most
//!
//! `sum_ij max over v[ij] of (1 + pi[i] - (1 - eps) pi[j]) v[ij], plus sum_i pi[i] slack[i]`
//!
//! (weak duality of linear programs). The bounds are those of `verify`; where a pair sells less than offers clearly in the money want,
//! what it sells is the lower one: so the claim is about all clearings that serve such offers no worse. Whoever finds good potentials
//! proves with one number for each asset what a validator checks in O(pairs * log offers), without a solver. All roundings make the
//! bound larger.

use walras_clearing::{BatchMarket, Proposal, Rules};
use walras_types::{Amount, BatchPrice, NetRate};

/// A claim that what trades is worth nearly all that could, and the evidence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// What is missing at most, as a share of what can be traded: in parts per billion, at most a billion.
    pub gap_ppb: u32,
    /// A potential for each asset in units of 2^-20, 0 to [`POTENTIAL_MAX`].
    pub potentials: Vec<i64>,
}

/// Potentials in units of 2^-20.
pub const POTENTIAL_ONE: i64 = 1 << 20;

/// Highest potential: 2^16.
pub const POTENTIAL_MAX: i64 = 1 << 36;

/// Everything, in parts per billion.
pub const GAP_PPB_ALL: u32 = 1_000_000_000;

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
    /// A gap of more than everything.
    #[error("a gap of {0} parts per billion is more than everything: leave the certificate out")]
    Gap(u32),
    /// The bound is further away than said.
    #[error(
        "by these potentials {bound} could trade and {traded} does, further apart than the gap says: state a larger gap, or trade more"
    )]
    NotProven {
        /// What trades, in units of value.
        traded: u128,
        /// What the potentials prove that may trade at most.
        bound: u128,
    },
}

/// Bits of the largest value.
const VALUE_BITS: u32 = 44;
/// Bits of the fraction of a reduced price: 20 of a potential, 30 of a commission.
const FRACTION_BITS: u32 = 50;

/// Checks a certificate of a proposal that was verified: O(pairs * log offers).
///
/// # Errors
/// See [`CertificateError`].
pub(crate) fn check(
    certificate: &Certificate,
    market: &BatchMarket,
    proposal: &Proposal,
    rules: &Rules,
) -> Result<(), CertificateError> {
    let Certificate { gap_ppb, potentials } = certificate;
    if potentials.len() != market.asset_count() {
        return Err(CertificateError::PotentialCount { expected: market.asset_count(), found: potentials.len() });
    }
    if let Some(asset) = potentials.iter().position(|potential| !(0..=POTENTIAL_MAX).contains(potential)) {
        return Err(CertificateError::Potential(asset));
    }
    if *gap_ppb > GAP_PPB_ALL {
        return Err(CertificateError::Gap(*gap_ppb));
    }
    let (traded, bound) = traded_and_bound(potentials, market, proposal, rules);
    // 44 + 16 + 30 bits, and 44 + 16 + 18 + 30.
    let (all, gap) = (u128::from(GAP_PPB_ALL), u128::from(*gap_ppb));
    if traded * all >= bound * (all - gap) { Ok(()) } else { Err(CertificateError::NotProven { traded, bound }) }
}

impl Certificate {
    /// A certificate of a proposal that was verified, for its proposer: O(assets * pairs + pairs * log offers). The gap that it proves is small if
    /// the amounts are nearly the best at the prices.
    ///
    /// Where a pair could trade more, `pi` must rise along it by at least one, where it could trade less by at most one: potentials that fit all
    /// pairs prove that nothing more can trade. What rounding left over in a pair is not worth a step of its own, and how much that is is
    /// tried out.
    #[must_use]
    pub fn find(market: &BatchMarket, proposal: &Proposal, rules: &Rules) -> Self {
        let bounds: Vec<Bounds> = bounds(market, proposal, rules).collect();
        let unit = Unit::of(bounds.iter().map(|pair| (pair.upper, pair.price)));
        // What a pair could trade more, and less.
        let room: Vec<(&Bounds, i128, i128)> = bounds
            .iter()
            .map(|pair| {
                let sold = unit.worth_down(pair.sold, pair.price);
                (pair, unit.worth_down(pair.upper, pair.price) - sold, sold - unit.worth_down(pair.lower, pair.price))
            })
            .collect();
        let total: i128 = bounds.iter().map(|pair| unit.worth_down(pair.upper, pair.price)).sum();
        let spares = SPARE_SHIFTS.iter().map(|shift| total >> shift);
        let tried =
            [vec![0; market.asset_count()]].into_iter().chain(spares.map(|spare| fitting(&room, market.asset_count(), spare)));
        let proven = tried.filter_map(|potentials| Some((gap_ppb(&potentials, market, proposal, rules)?, potentials)));
        // Zeros are potentials.
        let (gap_ppb, potentials) = proven.min().unwrap_or_default();
        Self { gap_ppb, potentials }
    }
}

/// Shares of all that can be traded, as powers of two, that a pair's rest may be without counting.
const SPARE_SHIFTS: [u32; 6] = [14, 18, 22, 26, 32, 44];

/// The least potentials that fit the pairs, or ones that do not where no potentials do.
fn fitting(room: &[(&Bounds, i128, i128)], asset_count: usize, spare: i128) -> Vec<i64> {
    let mut potentials = vec![0; asset_count];
    for _ in 0..asset_count {
        let mut is_done = true;
        for (pair, more, less) in room {
            let (from, to) = (potentials[pair.sell], potentials[pair.buy]);
            if *more > spare && to < from + POTENTIAL_ONE {
                potentials[pair.buy] = from + POTENTIAL_ONE;
                is_done = false;
            } else if *less > spare && from < to - POTENTIAL_ONE {
                potentials[pair.sell] = to - POTENTIAL_ONE;
                is_done = false;
            }
        }
        if is_done {
            break;
        }
    }
    potentials
}

/// The smallest gap that these potentials prove, in parts per billion, rounded up. For proposers.
#[must_use]
pub fn gap_ppb(potentials: &[i64], market: &BatchMarket, proposal: &Proposal, rules: &Rules) -> Option<u32> {
    let is_right = potentials.len() == market.asset_count() && potentials.iter().all(|p| (0..=POTENTIAL_MAX).contains(p));
    let (traded, bound) = is_right.then(|| traded_and_bound(potentials, market, proposal, rules))?;
    let all = u128::from(GAP_PPB_ALL);
    let missing = bound.saturating_sub(traded) * all;
    // No more than everything is missing.
    Some(missing.checked_div(bound).map_or(0, |share| (share + u128::from(share * bound < missing)) as u32))
}

/// A pair that could trade: what of it is worth what, at most and at least.
struct Bounds {
    sell: usize,
    buy: usize,
    price: BatchPrice,
    other: BatchPrice,
    lower: Amount,
    upper: Amount,
    sold: Amount,
}

/// In a unit of value that fits all: what trades, rounded down, and what these potentials say could, rounded up.
fn traded_and_bound(potentials: &[i64], market: &BatchMarket, proposal: &Proposal, rules: &Rules) -> (u128, u128) {
    let bounds: Vec<Bounds> = bounds(market, proposal, rules).collect();
    let one = Amount::new(1).expect("one");
    let unit = Unit::of(bounds.iter().flat_map(|pair| [(pair.upper, pair.price), (one, pair.other)]));
    let kept = match rules.commission.exponent() {
        Some(k) => (1_i128 << 30) - (1 << (30 - k)),
        None => 1 << 30,
    };
    let mut bound = 0_i128;
    for pair in &bounds {
        // Up to 20 + 30 + 17 bits.
        let (from, to) = (i128::from(potentials[pair.sell]), i128::from(potentials[pair.buy]));
        let reduced = ((i128::from(POTENTIAL_ONE) + from) << 30) - kept * to;
        bound += if reduced >= 0 {
            reduced * unit.worth_up(pair.upper, pair.price)
        } else {
            reduced * unit.worth_down(pair.lower, pair.price)
        };
        // A unit of what is bought may be missing.
        bound += (to << 30) * unit.worth_up(one, pair.other);
    }
    let bound = (bound + (1 << FRACTION_BITS) - 1) >> FRACTION_BITS;
    let traded = proposal.trades.iter().map(|trade| {
        let price = proposal.prices.get(trade.pair.sell.index()).copied().flatten().unwrap_or(BatchPrice::ZERO);
        unit.worth_down(trade.sold, price)
    });
    let traded: i128 = traded.sum();
    debug_assert!(traded <= bound, "weak duality: {traded} trades and at most {bound} can");
    let positive = |value: i128| u128::try_from(value).unwrap_or(0);
    (positive(traded), positive(bound))
}

/// The bounds that `verify` uses, of pairs that have a rate; where less is sold than the lower one, that.
fn bounds(market: &BatchMarket, proposal: &Proposal, rules: &Rules) -> impl Iterator<Item = Bounds> {
    market.books().iter().filter_map(move |book| {
        let pair = book.pair();
        let price = proposal.prices.get(pair.sell.index()).copied().flatten()?;
        let other = proposal.prices.get(pair.buy.index()).copied().flatten()?;
        let highest = NetRate::new(price, other, rules.commission)?.highest_limit();
        let upper = book.sells().units_at_or_below(highest);
        let clear = NetRate::less_mu(price, other, rules.mu).map_or(BatchPrice::ZERO, |rate| rate.highest_limit());
        let at = proposal.trades.binary_search_by_key(&pair, |trade| trade.pair);
        let sold = at.map_or(Amount::ZERO, |at| proposal.trades[at].sold);
        let lower = book.sells().units_at_or_below(clear.min(highest)).min(sold);
        (!upper.is_zero()).then_some(Bounds { sell: pair.sell.index(), buy: pair.buy.index(), price, other, lower, upper, sold })
    })
}

/// The unit 2^exponent of value.
struct Unit {
    exponent: i32,
}

impl Unit {
    /// The finest in which none of these has more than [`VALUE_BITS`] bits.
    fn of(worths: impl Iterator<Item = (Amount, BatchPrice)>) -> Self {
        let top = worths.filter(|(amount, price)| !amount.is_zero() && !price.is_zero()).map(|(amount, price)| {
            let (m, e) = price.parts();
            let product = u128::from(m) * u128::from(amount.get());
            (128 - product.leading_zeros()) as i32 + e
        });
        Self { exponent: top.max().unwrap_or(0) - VALUE_BITS as i32 }
    }

    fn worth_down(&self, amount: Amount, price: BatchPrice) -> i128 {
        let (m, e) = price.parts();
        let product = u128::from(m) * u128::from(amount.get());
        // At most VALUE_BITS bits by the choice of the unit; nothing of an unpriced or a much smaller asset.
        match u32::try_from(self.exponent - e) {
            Ok(down) => (product.checked_shr(down).unwrap_or(0)).cast_signed(),
            Err(_) => (product << (e - self.exponent).unsigned_abs()).cast_signed(),
        }
    }

    fn worth_up(&self, amount: Amount, price: BatchPrice) -> i128 {
        self.worth_down(amount, price) + i128::from(!amount.is_zero())
    }
}
