//! What stands in a batch market: pairs, offers to sell, offers to buy, pools.

use walras_types::{Amount, BatchPrice, PoolRule, effective_buy_limit, effective_limit};

/// An asset of one batch market: dense from 0. The engine knows which ledger asset it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct AssetIndex(pub u16);

impl AssetIndex {
    /// As an index into what is kept per asset.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Display for AssetIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// An ordered pair of assets: `sell` is sold for `buy`. Pairs are ordered by what they sell, then by what they buy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// The asset sold.
    pub sell: AssetIndex,
    /// The asset bought.
    pub buy: AssetIndex,
}

impl std::fmt::Display for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}->{}", self.sell, self.buy)
    }
}

/// The name of an offer, opaque to this crate; unique within its pair and kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct OfferId(pub u64);

/// The place of an offer among those of its pair and kind: the lowest limit first, then a tie-break that no account can choose (see
/// [`crate::TieBreak`] for who can), then the id, which makes the order total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferKey {
    /// The effective limit: units bought for a unit sold, at least.
    pub limit: BatchPrice,
    /// The tie-break.
    pub tie: u64,
    /// The id.
    pub id: OfferId,
}

/// Why something can not stand in a batch market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferError {
    /// It sells, buys or reserves nothing.
    ZeroAmount,
    /// No amount that honours the limit can be bought and sold.
    Unfillable,
}

impl std::fmt::Display for OfferError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::ZeroAmount => "the amount is zero: offer at least one unit",
            Self::Unfillable => "the limit times the amount is more than an amount can be, or less than one unit: lower the limit",
        })
    }
}

impl std::error::Error for OfferError {}

/// An offer to sell a fixed amount, at its limit or better; in whole or in part. A market order has the limit [`BatchPrice::ZERO`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    key: OfferKey,
    amount: Amount,
    /// What its owner asked for; the key has what whole units can honour of that.
    stated: BatchPrice,
}

// With its running sum, 48 bytes an offer.
const _: () = assert!(size_of::<Offer>() == 40);

impl Offer {
    /// An offer to sell `amount` for at least `stated` units each. Its key has the effective limit ([`effective_limit`]), at which a full
    /// fill buys, in whole units, no less than the stated limit asks for. Make it anew of the stated limit for what a partial fill left.
    ///
    /// # Errors
    /// [`OfferError::ZeroAmount`]; [`OfferError::Unfillable`] when `stated * amount` is above [`Amount::MAX`].
    pub fn new(stated: BatchPrice, tie: u64, id: OfferId, amount: Amount) -> Result<Self, OfferError> {
        if amount.is_zero() {
            return Err(OfferError::ZeroAmount);
        }
        let limit = effective_limit(stated, amount).ok_or(OfferError::Unfillable)?;
        Ok(Self { key: OfferKey { limit, tie, id }, amount, stated })
    }

    /// Its place in the pair.
    #[must_use]
    #[inline]
    pub const fn key(&self) -> OfferKey {
        self.key
    }

    /// Units offered for sale, at least 1.
    #[must_use]
    #[inline]
    pub const fn amount(&self) -> Amount {
        self.amount
    }

    /// The limit that was stated: at most that of the key.
    #[must_use]
    #[inline]
    pub const fn stated(&self) -> BatchPrice {
        self.stated
    }

    /// The same offer with another tie-break.
    #[must_use]
    #[inline]
    pub const fn with_tie(mut self, tie: u64) -> Self {
        self.key.tie = tie;
        self
    }

    /// What a full fill must bring, so that it keeps the stated limit: the effective limit is this for [`Self::amount`], exactly.
    #[must_use]
    pub fn asked(&self) -> Amount {
        self.stated.bought_at_least(self.amount).expect("else there was no effective limit")
    }

    /// The offer that stands after a part of this one sold: of the stated limit, under the same tie-break and id, for the rest.
    ///
    /// # Errors
    /// As [`Offer::new`]; [`OfferError::ZeroAmount`] when nothing is left.
    pub fn after(&self, sold: Amount) -> Result<Self, OfferError> {
        let rest = self.amount.checked_sub(sold).unwrap_or(Amount::ZERO);
        Self::new(self.stated, self.key.tie, self.key.id, rest)
    }
}

/// An offer to buy a fixed amount, selling as little as the batch's rate asks and never more than what it reserved; in whole or in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuyOffer {
    key: OfferKey,
    bought: Amount,
    /// The least of what was given and what the stated limit allows: the effective limit is [`Self::bought`] for this, exactly.
    sold_max: Amount,
}

impl BuyOffer {
    /// An offer to buy `bought` for at most `sold_max`, at no less than `stated` units for each sold ([`BatchPrice::ZERO`]: only
    /// `sold_max` bounds it). Its key has the effective limit ([`effective_buy_limit`]).
    ///
    /// # Errors
    /// [`OfferError::ZeroAmount`]; [`OfferError::Unfillable`] when the stated limit allows to sell less than one unit.
    pub fn new(stated: BatchPrice, tie: u64, id: OfferId, bought: Amount, sold_max: Amount) -> Result<Self, OfferError> {
        if bought.is_zero() || sold_max.is_zero() {
            return Err(OfferError::ZeroAmount);
        }
        let limit = effective_buy_limit(stated, bought, sold_max).ok_or(OfferError::Unfillable)?;
        Ok(Self { key: OfferKey { limit, tie, id }, bought, sold_max: sold_max.min(stated.sold_at_most(bought)) })
    }

    /// Its place in the pair.
    #[must_use]
    #[inline]
    pub const fn key(&self) -> OfferKey {
        self.key
    }

    /// Units to be bought, at least 1.
    #[must_use]
    #[inline]
    pub const fn bought(&self) -> Amount {
        self.bought
    }

    /// Most units that it may sell, at least 1.
    #[must_use]
    #[inline]
    pub const fn sold_max(&self) -> Amount {
        self.sold_max
    }
}

/// Which asset of a pool the pool sells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum PoolSide {
    /// It sells the first for the second.
    First = 0,
    /// It sells the second for the first.
    Second = 1,
}

/// The place of a pool in its market, dense from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct PoolIndex(pub u32);

/// A constant-function market maker: it trades as long as its marginal price is within the batch's rate, less its fee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Its two assets, different ones.
    pub assets: [AssetIndex; 2],
    /// How it prices them.
    pub rule: PoolRule,
    /// What it has of each, at least 1.
    pub reserves: [Amount; 2],
    /// What it asks beyond its marginal price, in parts per million, below a million.
    pub fee_ppm: u32,
}

impl Pool {
    /// The pair in which it sells this side.
    #[must_use]
    pub const fn pair(&self, side: PoolSide) -> Pair {
        let [first, second] = self.assets;
        match side {
            PoolSide::First => Pair { sell: first, buy: second },
            PoolSide::Second => Pair { sell: second, buy: first },
        }
    }
}
