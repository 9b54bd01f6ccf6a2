//! Why a proposal is no clearing.

use walras_types::Amount;

use crate::offer::{AssetIndex, OfferId, Pair, PoolIndex};

/// Why a proposal was rejected: the first thing found wrong. Numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// The number of prices is not the number of assets.
    PriceCount {
        /// Assets of the market.
        expected: usize,
        /// Prices of the proposal.
        found: usize,
    },
    /// A valuation of zero.
    ZeroPrice(AssetIndex),
    /// A pair comes after itself or after a later one.
    TradesOutOfOrder(Pair),
    /// A pair has an asset that is not in the market.
    UnknownAsset(Pair),
    /// A pair of an asset with itself.
    EqualAssets(Pair),
    /// A pair trades, and one of its assets has no price.
    Unpriced(Pair),
    /// More is sold than the offers whose limits hold can sell.
    SoldTooMuch {
        /// The pair.
        pair: Pair,
        /// What the proposal sells.
        sold: Amount,
        /// What it may sell.
        most: Amount,
    },
    /// Less is sold than the offers that are clearly in the money want to sell.
    SoldTooLittle {
        /// The pair.
        pair: Pair,
        /// What the proposal sells.
        sold: Amount,
        /// What it must sell.
        least: Amount,
    },
    /// The last sell offer of a pair would sell a part that buys, in whole units, less than its limit asks for.
    PartBreaksLimit {
        /// The pair.
        pair: Pair,
        /// The offer.
        offer: OfferId,
        /// What it would sell.
        sold: Amount,
        /// What it would get.
        bought: Amount,
    },
    /// More is bought by buy offers than those whose limits hold want.
    BoughtTooMuch {
        /// The pair.
        pair: Pair,
        /// What the proposal buys.
        bought: Amount,
        /// What it may buy.
        most: Amount,
    },
    /// The last buy offer of a pair would buy a part that costs, in whole units, more than its limit allows.
    BuyPartBreaksLimit {
        /// The pair.
        pair: Pair,
        /// The offer.
        offer: OfferId,
        /// What it would sell.
        sold: Amount,
        /// What it would get.
        bought: Amount,
    },
    /// What a pair pays or gets is more than an amount can be.
    AmountOverflow(Pair),
    /// Pools come out of order.
    PoolsOutOfOrder(PoolIndex),
    /// There is no such pool.
    UnknownPool(PoolIndex),
    /// A pool trades, and one of its assets has no price.
    PoolUnpriced(PoolIndex),
    /// A pool would sell past the batch's rate less its fee, or all it has.
    PoolSoldTooMuch {
        /// The pool.
        pool: PoolIndex,
        /// What the proposal sells.
        sold: Amount,
        /// What it may sell.
        most: Amount,
    },
    /// What a pool gets, or has then, is more than an amount can be.
    PoolOverflow(PoolIndex),
    /// More of an asset is bought than sold.
    Deficit {
        /// The asset.
        asset: AssetIndex,
        /// Units sold, at least.
        sold: u128,
        /// Units bought, at most.
        bought: u128,
    },
}

impl Rejected {
    /// The stable number of the reason.
    #[must_use]
    pub const fn number(&self) -> u16 {
        match self {
            Self::PriceCount { .. } => 1,
            Self::ZeroPrice(_) => 2,
            Self::TradesOutOfOrder(_) => 3,
            Self::UnknownAsset(_) => 4,
            Self::EqualAssets(_) => 5,
            Self::Unpriced(_) => 6,
            Self::SoldTooMuch { .. } => 7,
            Self::SoldTooLittle { .. } => 8,
            Self::PartBreaksLimit { .. } => 9,
            Self::BoughtTooMuch { .. } => 10,
            Self::BuyPartBreaksLimit { .. } => 11,
            Self::AmountOverflow(_) => 12,
            Self::PoolsOutOfOrder(_) => 13,
            Self::UnknownPool(_) => 14,
            Self::PoolUnpriced(_) => 15,
            Self::PoolSoldTooMuch { .. } => 16,
            Self::PoolOverflow(_) => 17,
            Self::Deficit { .. } => 18,
        }
    }
}

impl std::fmt::Display for Rejected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "clearing rejected ({}): ", self.number())?;
        match self {
            Self::PriceCount { expected, found } => {
                write!(f, "{found} prices for {expected} assets: give each asset a price or none")
            }
            Self::ZeroPrice(asset) => write!(f, "asset {asset} has the price zero: leave its price out if it has none"),
            Self::TradesOutOfOrder(pair) => write!(f, "pair {pair} is out of order: name each pair once, in ascending order"),
            Self::UnknownAsset(pair) => write!(f, "pair {pair} has an asset that is not in this market: use its own indexes"),
            Self::EqualAssets(pair) => write!(f, "pair {pair} trades an asset for itself: leave it out"),
            Self::Unpriced(pair) => {
                write!(f, "pair {pair} trades, and an asset of it has no price: give it one, or do not trade it")
            }
            Self::SoldTooMuch { pair, sold, most } => {
                write!(
                    f,
                    "pair {pair} sells {sold}, and offers whose limits hold sell {most}: sell {} less",
                    sold.get() - most.get()
                )
            }
            Self::SoldTooLittle { pair, sold, least } => {
                let missing = least.get() - sold.get();
                write!(
                    f,
                    "pair {pair} sells {sold}, and offers clearly in the money sell {least}: sell {missing} more, or find better prices"
                )
            }
            Self::PartBreaksLimit { pair, offer, sold, bought } | Self::BuyPartBreaksLimit { pair, offer, sold, bought } => {
                write!(f, "in pair {pair} offer {} would sell {sold} for {bought}, past its limit: ", offer.0)?;
                f.write_str("trade a part that whole units can honour (honourable_sold, honourable_bought)")
            }
            Self::BoughtTooMuch { pair, bought, most } => {
                let excess = bought.get() - most.get();
                write!(f, "pair {pair} buys {bought}, and buy offers whose limits hold want {most}: buy {excess} less")
            }
            Self::AmountOverflow(pair) => {
                write!(f, "what pair {pair} pays or gets is more than an amount can be: trade less of it")
            }
            Self::PoolsOutOfOrder(pool) => write!(f, "pool {} is out of order: name each pool once, in ascending order", pool.0),
            Self::UnknownPool(pool) => write!(f, "there is no pool {}: use the market's own indexes", pool.0),
            Self::PoolUnpriced(pool) => {
                write!(f, "pool {} trades, and an asset of it has no price: give it one, or do not trade it", pool.0)
            }
            Self::PoolSoldTooMuch { pool, sold, most } => {
                let excess = sold.get() - most.get();
                write!(f, "pool {} sells {sold}, and at this rate it sells at most {most}: sell {excess} less", pool.0)
            }
            Self::PoolOverflow(pool) => {
                write!(f, "what pool {} gets or has then is more than an amount can be: trade less of it", pool.0)
            }
            Self::Deficit { asset, sold, bought } => {
                write!(f, "of asset {asset} {bought} are bought and {sold} sold: {} too many are bought", bought - sold)
            }
        }
    }
}

impl std::error::Error for Rejected {}
