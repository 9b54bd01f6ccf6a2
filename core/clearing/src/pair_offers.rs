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

/// Where a change of a pair goes: places before it, in ascending order.
#[derive(Debug)]
pub(crate) struct Places {
    /// Of those that go.
    pub(crate) removed: Vec<usize>,
    /// Below which each of those that come goes.
    pub(crate) added: Vec<usize>,
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

    /// Where a change goes, before anything changes: O((removed + added) log offers).
    ///
    /// # Errors
    /// [`MarketError::UnknownOffer`] when a key to remove is not there or named twice, [`MarketError::DuplicateOffer`] when one to add is
    /// there already.
    pub(crate) fn locate(&self, removed: &mut [OfferKey], added: &mut [T]) -> Result<Places, MarketError> {
        removed.sort_unstable();
        added.sort_unstable_by_key(T::key);
        let mut places = Places { removed: Vec::with_capacity(removed.len()), added: Vec::with_capacity(added.len()) };
        let mut from = 0;
        for key in &*removed {
            from += self.offers[from..].partition_point(|offer| offer.key() < *key);
            if self.offers.get(from).is_none_or(|offer| offer.key() != *key) {
                return Err(MarketError::UnknownOffer(*key));
            }
            places.removed.push(from);
            // Named once more it is not found.
            from += 1;
        }
        let (mut from, mut last) = (0, None);
        for key in added.iter().map(T::key) {
            from += self.offers[from..].partition_point(|offer| offer.key() < key);
            let stands = self.offers.get(from).is_some_and(|offer| offer.key() == key);
            if last.replace(key) == Some(key) || (stands && places.removed.binary_search(&from).is_err()) {
                return Err(MarketError::DuplicateOffer(key));
            }
            places.added.push(from);
        }
        Ok(places)
    }

    /// Makes a change in place. Only what lies above its first place moves.
    pub(crate) fn change(&mut self, places: &Places, added: &[T]) {
        let Some(&first) = places.removed.first().into_iter().chain(places.added.first()).min() else { return };
        self.remove(&places.removed);
        self.insert(places, added);
        self.sum_from(first);
    }

    /// What stays closes up.
    fn remove(&mut self, places: &[usize]) {
        let Some(&first) = places.first() else { return };
        let ends = places.iter().skip(1).copied().chain([self.offers.len()]);
        let mut len = first;
        for (&gone, next) in places.iter().zip(ends) {
            self.offers.copy_within(gone + 1..next, len);
            len += next - gone - 1;
        }
        self.offers.truncate(len);
    }

    /// Puts what comes in between, from the highest down; places are those before anything was removed.
    fn insert(&mut self, places: &Places, added: &[T]) {
        let Some(&filler) = added.first() else { return };
        let mut end = self.offers.len();
        self.make_room(added.len());
        self.offers.resize(end + added.len(), filler);
        let mut gone_count = places.removed.len();
        for (number, (&place, &offer)) in places.added.iter().zip(added).enumerate().rev() {
            while gone_count > 0 && places.removed[gone_count - 1] >= place {
                gone_count -= 1;
            }
            let at = place - gone_count;
            self.offers.copy_within(at..end, at + number + 1);
            self.offers[at + number] = offer;
            end = at;
        }
    }

    /// Room for so many more, and an eighth beyond that: doubling would waste half of the memory.
    fn make_room(&mut self, more: usize) {
        if self.offers.len() + more > self.offers.capacity() {
            let spare = (self.offers.len() + more) / 8;
            self.offers.reserve_exact(more + spare);
            self.through.reserve_exact((self.offers.len() + more + spare).saturating_sub(self.through.len()));
        }
    }

    /// The running sums from one place on.
    fn sum_from(&mut self, first: usize) {
        self.through.truncate(first);
        let mut sum = self.through.last().copied().unwrap_or(0);
        self.through.extend(self.offers[first..].iter().map(|offer| {
            // Both at most 2^63 - 1.
            sum = (sum + offer.units().get()).min(AMOUNT_MAX);
            sum
        }));
    }

    /// Takes out what traded: the first offers, of which the last leaves a rest or nothing. O(offers), most of it one move of memory.
    pub(crate) fn take_traded(&mut self, count: usize, rest: Option<T>) -> Vec<T> {
        let first = count - usize::from(rest.is_some());
        let left = self.offers.len() - first;
        let traded = if self.offers.capacity() > left + left / 4 {
            // What is left moves anyway: to where it takes no more room than it needs.
            let mut offers = Vec::with_capacity(left + left / 8);
            offers.extend_from_slice(&self.offers[first..]);
            let mut traded = std::mem::replace(&mut self.offers, offers);
            self.through = Vec::with_capacity(self.offers.capacity());
            traded.truncate(count);
            traded.shrink_to_fit();
            traded
        } else {
            let traded = self.offers[..count].to_vec();
            drop(self.offers.drain(..first));
            traded
        };
        if let Some(rest) = rest {
            // Its key may be another than before, but all with a lower one are gone.
            let key = rest.key();
            let below = self.offers[1..].partition_point(|offer| offer.key() < key);
            self.offers.copy_within(1..=below, 0);
            self.offers[below] = rest;
        }
        self.sum_from(0);
        traded
    }

    /// The offer of a key: O(log n).
    #[must_use]
    pub fn get(&self, key: &OfferKey) -> Option<&T> {
        self.offers.binary_search_by(|offer| offer.key().cmp(key)).ok().map(|at| &self.offers[at])
    }

    /// Bytes of memory that the offers take, room to grow included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.offers.capacity() * size_of::<T>() + self.through.capacity() * size_of::<u64>()
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
