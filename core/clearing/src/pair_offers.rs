//! The offers of one pair and one kind, sorted, with sums.

use walras_types::{Amount, BatchPrice, limits::AMOUNT_MAX};

use crate::market::MarketError;
use crate::offer::{BuyOffer, Offer, OfferKey};

/// What stands in a pair: [`Offer`] and [`BuyOffer`].
pub trait Stands: Copy {
    /// Its place.
    fn key(&self) -> OfferKey;
    /// The units that it fixes: sold of an offer, bought of a buy offer. At least 1.
    fn units(&self) -> Amount;
    /// The most units that it may sell. At least 1.
    fn sold_max(&self) -> Amount;
}

impl Stands for Offer {
    fn key(&self) -> OfferKey {
        self.key()
    }
    fn units(&self) -> Amount {
        self.amount()
    }
    fn sold_max(&self) -> Amount {
        self.amount()
    }
}

impl Stands for BuyOffer {
    fn key(&self) -> OfferKey {
        self.key()
    }
    fn units(&self) -> Amount {
        self.bought()
    }
    fn sold_max(&self) -> Amount {
        self.sold_max()
    }
}

/// Where a number of units ends among sorted offers: so many offers are used up, and of the next one a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Offers used up.
    pub full_count: usize,
    /// Units of the one after them; less than it has, and often zero.
    pub part: Amount,
}

/// The offers of one pair and one kind in the order of their keys, lowest limit first, with running sums of their units.
///
/// A sum stops at [`Amount::MAX`]: buy offers may want more than there can be. No question about an amount sees a difference, since what
/// is asked for is never above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairOffers<T> {
    offers: Vec<T>,
    /// The units of all offers up to and with this one.
    through: Vec<u64>,
}

impl<T> Default for PairOffers<T> {
    fn default() -> Self {
        Self { offers: Vec::new(), through: Vec::new() }
    }
}

impl<T: Stands> PairOffers<T> {
    /// Sorts offers: O(n log n).
    ///
    /// # Errors
    /// [`MarketError::DuplicateOffer`] when two have one key.
    pub fn build(mut offers: Vec<T>) -> Result<Self, MarketError> {
        offers.sort_unstable_by_key(T::key);
        Self::of_sorted(offers)
    }

    /// Of offers whose limits ascend; those of one limit in any order.
    pub(crate) fn of_ascending(mut offers: Vec<T>) -> Result<Self, MarketError> {
        for equal in offers.chunk_by_mut(|a, b| a.key().limit == b.key().limit).filter(|equal| equal.len() > 1) {
            equal.sort_unstable_by_key(T::key);
        }
        Self::of_sorted(offers)
    }

    fn of_sorted(offers: Vec<T>) -> Result<Self, MarketError> {
        let mut sum = 0_u64;
        let mut through = Vec::with_capacity(offers.len());
        let mut last = None;
        for offer in &offers {
            let key = offer.key();
            if last.replace(key) == Some(key) {
                return Err(MarketError::DuplicateOffer(key));
            }
            // Both at most 2^63 - 1.
            sum = (sum + offer.units().get()).min(AMOUNT_MAX);
            through.push(sum);
        }
        Ok(Self { offers, through })
    }

    /// These offers less those of the keys in `removed`, and those in `added`: O(n + m log m) for `m` changes.
    ///
    /// # Errors
    /// [`MarketError::UnknownOffer`] when a key to remove is not there or named twice, [`MarketError::DuplicateOffer`] when one to add is
    /// there already.
    pub fn changed(&self, mut removed: Vec<OfferKey>, mut added: Vec<T>) -> Result<Self, MarketError> {
        removed.sort_unstable();
        added.sort_unstable_by_key(T::key);
        let mut merged = Vec::with_capacity((self.offers.len() + added.len()).saturating_sub(removed.len()));
        let (mut removed, mut added) = (removed.into_iter().peekable(), added.into_iter().peekable());
        for &offer in &self.offers {
            let key = offer.key();
            if removed.next_if_eq(&key).is_some() {
                continue;
            }
            while let Some(earlier) = added.next_if(|new| new.key() < key) {
                merged.push(earlier);
            }
            merged.push(offer);
        }
        merged.extend(added);
        match removed.next() {
            Some(key) => Err(MarketError::UnknownOffer(key)),
            None => Self::of_sorted(merged),
        }
    }

    /// The offers, lowest limit first.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        &self.offers
    }

    /// The running sums of units, one for each offer, itself included; at most [`Amount::MAX`].
    #[must_use]
    pub fn sums(&self) -> &[u64] {
        &self.through
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.offers.is_empty()
    }

    /// How many offers have this limit or a lower one: O(log n).
    #[must_use]
    pub fn count_at_or_below(&self, limit: BatchPrice) -> usize {
        self.offers.partition_point(|offer| offer.key().limit <= limit)
    }

    /// Units of the first offers; at most [`Amount::MAX`].
    #[must_use]
    pub fn units_of_first(&self, count: usize) -> Amount {
        let sum = count.checked_sub(1).map_or(0, |last| self.through[last]);
        Amount::new(sum).expect("sums stop at Amount::MAX")
    }

    /// Units of the offers with this limit or a lower one, at most [`Amount::MAX`]: O(log n).
    #[must_use]
    pub fn units_at_or_below(&self, limit: BatchPrice) -> Amount {
        self.units_of_first(self.count_at_or_below(limit))
    }

    /// Where so many units end: O(log n). `None` when there are not so many.
    #[must_use]
    pub fn split(&self, units: Amount) -> Option<Split> {
        if units.is_zero() {
            return Some(Split::default());
        }
        // The first offer that reaches the units; the sum before it is below them, so it did not stop at the maximum.
        let reaching = self.through.partition_point(|&sum| sum < units.get());
        let sum = *self.through.get(reaching)?;
        let before = self.units_of_first(reaching);
        let whole = self.offers[reaching].units();
        let part = Amount::new(units.get() - before.get()).expect("below the units");
        debug_assert!(sum >= units.get() && part <= whole);
        if part == whole {
            Some(Split { full_count: reaching + 1, part: Amount::ZERO })
        } else {
            Some(Split { full_count: reaching, part })
        }
    }
}
