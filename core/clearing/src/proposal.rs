//! A clearing as somebody proposes it, and what it is measured by.

use walras_types::{Amount, BatchPrice, Commission, LowerBounds, Mu};

use crate::offer::{Pair, PoolIndex, PoolSide};

/// How much trades in one pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairTrade {
    /// The pair.
    pub pair: Pair,
    /// Units sold by sell offers, from the lowest key up; the last of them may sell a part.
    pub sold: Amount,
    /// Units bought by buy offers, from the lowest key up; the last of them may buy a part. They sell what the rate asks for that.
    pub bought_by_buy_offers: Amount,
}

/// How much a pool trades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolTrade {
    /// The pool.
    pub pool: PoolIndex,
    /// What it sells.
    pub side: PoolSide,
    /// Units it sells. It gets what they are worth at the net rate, rounded up.
    pub sold: Amount,
}

/// Prices and amounts, found by anyone in any way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proposal {
    /// Valuation of each asset, by [`crate::AssetIndex`]; those without one do not trade. Not [`BatchPrice::ZERO`].
    pub prices: Vec<Option<BatchPrice>>,
    /// Trades, in strictly ascending order of their pairs. A pair that is not named does not trade.
    pub trades: Vec<PairTrade>,
    /// Trades of pools, in strictly ascending order of the pools. One that is not named does not trade.
    pub pools: Vec<PoolTrade>,
}

/// How the rules are read. Markets keep theirs until the engine's version says otherwise (`docs/adr/0017-engine-versions.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edition {
    /// A limit holds where the key's does, which is rounded up to 53 bits: two offers whose decimal limits meet at one rate may not trade.
    First,
    /// A limit holds where a full fill keeps it in whole units. Less may be left unserved without counting.
    Second,
}

impl Edition {
    /// That of markets to come.
    pub const NEWEST: Self = Self::Second;
}

/// What a proposal is measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How the others are read.
    pub edition: Edition,
    /// What stays with the venue.
    pub commission: Commission,
    /// How far in the money a sell offer clearly is.
    pub mu: Mu,
    /// Whether such an offer must trade in full.
    pub lower_bounds: LowerBounds,
}

impl Rules {
    /// Whether some sell offers may trade and need not: mu is above the commission. Where it is not, every sell offer that may trade must
    /// trade in full, which prices can seldom do. [`verify`](crate::verify) is exact all the same: with [`LowerBounds::BestEffort`] it
    /// counts what is missing, with [`LowerBounds::Required`] it rejects nearly every proposal. So who sets rules for batches to come, as
    /// the configuration of a venue does, should refuse such rules; who clears one batch by them sees in the report what they cost.
    #[must_use]
    pub const fn leave_freedom(&self) -> bool {
        match self.commission.exponent() {
            Some(commission) => self.mu.exponent() < commission,
            None => true,
        }
    }
}
