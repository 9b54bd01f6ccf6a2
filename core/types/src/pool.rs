//! Pools of batch markets: their rules, and what accounts ask of them.

use crate::limits::{POOL_AMPLIFICATION_MAX, POOL_WEIGHT_MAX};
use crate::{Amount, AssetId, BatchMarketId, OfferName};

/// The function of its two reserves that a pool keeps from falling. Each is a mean of the reserves up to a factor: it grows with both,
/// is concave, and doubles with them. So a pool's price depends on the ratio of its reserves alone, and shares of it keep their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PoolRule {
    /// `x * y`.
    ConstantProduct,
    /// `x^w * y^v`: the first asset is the share `w / (w + v)` of the pool's value. Weights are 1 to [`POOL_WEIGHT_MAX`].
    Weighted {
        /// Of the first asset and of the second.
        weights: [u16; 2],
    },
    /// For assets of about one value: the `D` of `4A (x + y) + D = 4A D + D^3 / (4 x y)` (Egorov 2019, for two assets). The larger the
    /// amplification `A` is, the flatter is the price near equal reserves.
    StableSwap {
        /// `A`, 1 to [`POOL_AMPLIFICATION_MAX`].
        amplification: u32,
    },
}

impl PoolRule {
    /// Whether its numbers are in their ranges.
    #[must_use]
    pub const fn is_possible(&self) -> bool {
        match *self {
            Self::ConstantProduct => true,
            Self::Weighted { weights: [first, second] } => {
                0 < first && first <= POOL_WEIGHT_MAX && 0 < second && second <= POOL_WEIGHT_MAX
            }
            Self::StableSwap { amplification } => 0 < amplification && amplification <= POOL_AMPLIFICATION_MAX,
        }
    }

    /// Its number and its parameters in one number: none, the first weight in the low half, the amplification.
    #[must_use]
    pub const fn parts(&self) -> (u8, u32) {
        match *self {
            Self::ConstantProduct => (0, 0),
            Self::Weighted { weights: [first, second] } => (1, first as u32 | (second as u32) << 16),
            Self::StableSwap { amplification } => (2, amplification),
        }
    }

    /// The rule that [`Self::parts`] gave; `None` where its numbers are out of range or it is none.
    #[must_use]
    pub fn of_parts(number: u8, parameters: u32) -> Option<Self> {
        let rule = match (number, parameters) {
            (0, 0) => Self::ConstantProduct,
            (1, _) => Self::Weighted { weights: [parameters as u16, (parameters >> 16) as u16] },
            (2, _) => Self::StableSwap { amplification: parameters },
            _ => return None,
        };
        rule.is_possible().then_some(rule)
    }
}

/// Creates a pool. Its creator is its first provider, with as many shares as the smaller reserve has units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreatePool {
    /// The batch market.
    pub market: BatchMarketId,
    /// The first asset and the second.
    pub assets: [AssetId; 2],
    /// How it prices them.
    pub rule: PoolRule,
    /// What it asks beyond its marginal price, in parts per million, at most [`crate::limits::POOL_FEE_PPM_MAX`]. It stays in the pool.
    pub fee_ppm: u32,
    /// The first reserves, at least [`crate::limits::POOL_RESERVE_MIN`] units of each asset.
    pub amounts: [Amount; 2],
}

/// Adds to a pool in the ratio of its reserves, for new shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepositToPool {
    /// The batch market.
    pub market: BatchMarketId,
    /// The pool: the transaction that created it.
    pub pool: OfferName,
    /// The most that it takes of each asset. It takes as much as the reserves' ratio allows.
    pub amounts: [Amount; 2],
}

/// Gives shares of a pool back for their part of its reserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithdrawFromPool {
    /// The batch market.
    pub market: BatchMarketId,
    /// The pool: the transaction that created it.
    pub pool: OfferName,
    /// How many shares, at least 1.
    pub shares: Amount,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_its_parts() {
        let weighted = |first, second| PoolRule::Weighted { weights: [first, second] };
        let stable = |amplification| PoolRule::StableSwap { amplification };
        for rule in
            [PoolRule::ConstantProduct, weighted(1, POOL_WEIGHT_MAX), weighted(80, 20), stable(1), stable(POOL_AMPLIFICATION_MAX)]
        {
            let (number, parameters) = rule.parts();
            assert_eq!(PoolRule::of_parts(number, parameters), Some(rule));
        }
        for wrong in
            [weighted(0, 1), weighted(1, 0), weighted(POOL_WEIGHT_MAX + 1, 1), stable(0), stable(POOL_AMPLIFICATION_MAX + 1)]
        {
            assert!(!wrong.is_possible());
            let (number, parameters) = wrong.parts();
            assert_eq!(PoolRule::of_parts(number, parameters), None, "{wrong:?}");
        }
        assert_eq!((PoolRule::of_parts(0, 1), PoolRule::of_parts(3, 1)), (None, None));
    }
}
