//! The offers of one pair and one kind, sorted, with sums.

use walras_types::{Amount, BatchPrice, NetRate, limits::AMOUNT_MAX};

use crate::honour::PartLimit;
use crate::market::MarketError;
use crate::offer::{BuyOffer, Offer, OfferKey};
use crate::proposal::Edition;

/// What stands in a pair: [`Offer`] and [`BuyOffer`].
pub trait Stands: Copy {
    /// Its place.
    fn key(&self) -> OfferKey;
    /// The units that it fixes: sold of an offer, bought of a buy offer. At least 1.
    fn units(&self) -> Amount;
    /// The most units that it may sell. At least 1.
    fn sold_max(&self) -> Amount;
    /// Its effective limit, exactly: at least so many units bought for so many sold.
    fn least_ratio(&self) -> LeastRatio;
}

/// A limit as whole units state it: a rate holds if it is at least `bought / sold`. The limit of a key is this, rounded up to 53 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeastRatio {
    /// Units bought.
    pub bought: Amount,
    /// For so many sold, at least 1.
    pub sold: Amount,
}

impl LeastRatio {
    /// Whether a part that sells and buys so much keeps the limit, exactly.
    #[must_use]
    pub fn is_honoured_by(&self, sold: Amount, bought: Amount) -> bool {
        // 63 + 63 bits.
        let product = |a: Amount, b: Amount| a.get() as u128 * b.get() as u128;
        product(self.bought, sold) <= product(bought, self.sold)
    }
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
    fn least_ratio(&self) -> LeastRatio {
        LeastRatio { bought: self.asked(), sold: self.amount() }
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
    fn least_ratio(&self) -> LeastRatio {
        LeastRatio { bought: self.bought(), sold: self.sold_max() }
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

/// Fewer than 2^63 offers of less than 2^63 units fit 127 bits.
fn units_of<'o, T: Stands + 'o>(offers: impl Iterator<Item = &'o T>) -> u128 {
    offers.map(|offer| u128::from(offer.units().get())).sum()
}

/// How many of these have a lower key, looked for from the first one on: O(log of it). Of a book of which much changes each is found near
/// the one before, in memory that was fetched for that.
fn sooner<T: Stands>(offers: &[T], key: &OfferKey) -> usize {
    let (mut low, mut step) = (0, 1);
    while let Some(offer) = offers.get(low + step - 1)
        && offer.key() < *key
    {
        low += step;
        step *= 2;
    }
    let high = (low + step - 1).min(offers.len());
    low + offers[low..high].partition_point(|offer| offer.key() < *key)
}

/// Searches that go on together: about as many as a processor can wait for.
pub(crate) const TOGETHER: usize = 16;

/// How many of these have a lower key, for each of some keys in ascending order. Of few keys in a large book the binary searches go
/// on side by side, a step of each at a time: a search waits for memory at each step, and so a processor waits for all of them
/// together.
fn places_below<T: Stands>(offers: &[T], keys: impl ExactSizeIterator<Item = OfferKey>) -> Vec<usize> {
    let mut places = Vec::with_capacity(keys.len());
    if keys.len() > offers.len() / 8 {
        let mut from = 0;
        for key in keys {
            from += sooner(&offers[from..], &key);
            places.push(from);
        }
        return places;
    }
    let keys: Vec<OfferKey> = keys.collect();
    for keys in keys.chunks(TOGETHER) {
        let (mut at, mut left) = ([0; TOGETHER], offers.len());
        while left > 1 {
            let half = left / 2;
            for (at, key) in at.iter_mut().zip(keys) {
                *at += if is_at_most(key, &offers[*at + half - 1].key()) { 0 } else { half };
            }
            left -= half;
        }
        places
            .extend(at.iter().zip(keys).map(|(at, key)| at + usize::from(offers.get(*at).is_some_and(|offer| offer.key() < *key))));
    }
    places
}

/// Whether a key comes before another or is the same: without a branch, since which way one goes is a coin toss to the processor.
#[inline]
pub(crate) fn is_at_most(a: &OfferKey, b: &OfferKey) -> bool {
    let high = |key: &OfferKey| u128::from(key.limit.bits()) << 64 | u128::from(key.tie);
    let (high_a, high_b) = (high(a), high(b));
    (high_a < high_b) | ((high_a == high_b) & (a.id <= b.id))
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
/// What comes, trades and goes has limits near the rate, and most of what stands in a large book lies above. So there is room before the first
/// offer as well as after the last: a change moves what lies below it or what lies above it, whichever is less, and what traded leaves room.
///
/// A sum stops at [`Amount::MAX`]: buy offers may want more than there can be. No question about an amount sees a difference, since what
/// is asked for is never above it.
#[derive(Clone, Debug)]
pub struct PairOffers<T> {
    /// So much room, in which anything may be, then the offers.
    offers: Vec<T>,
    room: usize,
    /// Beside each offer: the units of all up to and with this one, and `origin`, modulo 2^64.
    through: Vec<u64>,
    /// What the sums begin with, so that those above a change stay as they are.
    origin: u64,
    /// Whether a sum stopped; then they begin with zero.
    has_stopped: bool,
}

impl<T> Default for PairOffers<T> {
    fn default() -> Self {
        Self { offers: Vec::new(), room: 0, through: Vec::new(), origin: 0, has_stopped: false }
    }
}

/// The same offers, however much room there is.
impl<T: PartialEq> PartialEq for PairOffers<T> {
    fn eq(&self, other: &Self) -> bool {
        self.offers[self.room..] == other.offers[other.room..]
    }
}

impl<T: Eq> Eq for PairOffers<T> {}

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
        let mut last = None;
        for key in offers.iter().map(T::key) {
            if last.replace(key) == Some(key) {
                return Err(MarketError::DuplicateOffer(key));
            }
        }
        let mut all = Self { offers, ..Self::default() };
        all.sum_all();
        Ok(all)
    }

    /// Where a change goes, before anything changes: O((removed + added) log offers).
    ///
    /// # Errors
    /// [`MarketError::UnknownOffer`] when a key to remove is not there or named twice, [`MarketError::DuplicateOffer`] when one to add is
    /// there already.
    pub(crate) fn locate(&self, removed: &mut [OfferKey], added: &mut [T]) -> Result<Places, MarketError> {
        removed.sort_unstable();
        added.sort_unstable_by_key(T::key);
        let offers = self.as_slice();
        let places = Places {
            removed: places_below(offers, removed.iter().copied()),
            added: places_below(offers, added.iter().map(T::key)),
        };
        let mut last = None;
        for (key, place) in removed.iter().zip(&places.removed) {
            // Named once more it is not found.
            if offers.get(*place).is_none_or(|offer| offer.key() != *key) || last.replace(*place) == Some(*place) {
                return Err(MarketError::UnknownOffer(*key));
            }
        }
        let mut last = None;
        for (key, place) in added.iter().map(T::key).zip(&places.added) {
            let stands = offers.get(*place).is_some_and(|offer| offer.key() == key);
            if last.replace(key) == Some(key) || (stands && places.removed.binary_search(place).is_err()) {
                return Err(MarketError::DuplicateOffer(key));
            }
        }
        Ok(places)
    }

    /// Makes a change in place: what lies below its last place moves, or what lies above its first, whichever is less.
    pub(crate) fn change(&mut self, places: &Places, added: &[T]) {
        let Places { removed, added: before } = places;
        let Some(&first) = removed.first().into_iter().chain(before.first()).min() else { return };
        let end = removed.last().map_or(0, |last| last + 1).max(before.last().copied().unwrap_or(0));
        let count = self.as_slice().len();
        let stops = self.has_stopped || {
            let left =
                u128::from(self.units_of_first(count).get()) - units_of(removed.iter().map(|place| &self.as_slice()[*place]));
            left + units_of(added.iter()) > u128::from(AMOUNT_MAX)
        };
        if end < count - first && !stops {
            self.remove_below(removed);
            self.insert_below(places, added);
            self.sum_below(end - removed.len() + added.len());
        } else {
            self.remove_above(removed);
            self.insert_above(places, added);
            if stops { self.sum_all() } else { self.sum_from(first) }
        }
        self.give_back(2 * self.as_slice().len());
    }

    /// What stays closes up, downward.
    fn remove_above(&mut self, places: &[usize]) {
        let Some(&first) = places.first() else { return };
        let ends = places.iter().skip(1).copied().chain([self.as_slice().len()]);
        let mut len = self.room + first;
        for (&gone, next) in places.iter().zip(ends) {
            self.offers.copy_within(self.room + gone + 1..self.room + next, len);
            len += next - gone - 1;
        }
        self.offers.truncate(len);
        self.through.truncate(len);
    }

    /// What stays closes up, upward.
    fn remove_below(&mut self, places: &[usize]) {
        let Some(&last) = places.last() else { return };
        let mut first = self.room + last + 1;
        for (number, &gone) in places.iter().enumerate().rev() {
            let from = number.checked_sub(1).map_or(0, |before| places[before] + 1);
            first -= gone - from;
            self.offers.copy_within(self.room + from..self.room + gone, first);
        }
        self.room = first;
    }

    /// Puts what comes in between, from the highest down; places are those before anything was removed.
    fn insert_above(&mut self, places: &Places, added: &[T]) {
        let Some(&filler) = added.first() else { return };
        if self.offers.len() + added.len() > self.offers.capacity() {
            self.lay_out(filler, 0, added.len());
        }
        let mut end = self.offers.len();
        self.offers.resize(end + added.len(), filler);
        self.through.resize(end + added.len(), 0);
        let mut gone_count = places.removed.len();
        for (number, (&place, &offer)) in places.added.iter().zip(added).enumerate().rev() {
            while gone_count > 0 && places.removed[gone_count - 1] >= place {
                gone_count -= 1;
            }
            let at = self.room + place - gone_count;
            self.offers.copy_within(at..end, at + number + 1);
            self.offers[at + number] = offer;
            end = at;
        }
    }

    /// The same from the lowest up, into the room before the first.
    fn insert_below(&mut self, places: &Places, added: &[T]) {
        let Some(&filler) = added.first() else { return };
        if self.room < added.len() {
            self.lay_out(filler, added.len(), 0);
        }
        let (mut from, mut to) = (self.room, self.room - added.len());
        let mut gone_count = 0;
        for (&place, &offer) in places.added.iter().zip(added) {
            while places.removed.get(gone_count).is_some_and(|gone| *gone < place) {
                gone_count += 1;
            }
            let at = self.room + place - gone_count;
            self.offers.copy_within(from..at, to);
            to += at - from;
            self.offers[to] = offer;
            (from, to) = (at, to + 1);
        }
        self.room -= added.len();
    }

    /// Moves all to where so many more fit before and after, and an eighth beyond that: doubling would waste half of the memory.
    fn lay_out(&mut self, filler: T, before: usize, after: usize) {
        let count = self.as_slice().len();
        let spare = (count + before + after) / 8;
        let room = before + spare / 2;
        let mut offers = Vec::with_capacity(count + before + after + spare);
        offers.resize(room, filler);
        offers.extend_from_slice(self.as_slice());
        let mut through = Vec::with_capacity(offers.capacity());
        through.resize(room, 0);
        through.extend_from_slice(&self.through[self.room..]);
        (self.offers, self.through, self.room) = (offers, through, room);
    }

    /// All running sums.
    fn sum_all(&mut self) {
        (self.origin, self.has_stopped) = (0, false);
        self.through.clear();
        self.through.resize(self.offers.len(), 0);
        let mut sum = 0_u64;
        for (through, offer) in self.through[self.room..].iter_mut().zip(&self.offers[self.room..]) {
            // Both at most 2^63 - 1.
            sum += offer.units().get();
            self.has_stopped |= sum > AMOUNT_MAX;
            sum = sum.min(AMOUNT_MAX);
            *through = sum;
        }
    }

    /// The running sums from one place on, where none stops.
    fn sum_from(&mut self, first: usize) {
        let first = self.room + first;
        let mut sum = if first == self.room { self.origin } else { self.through[first - 1] };
        for (through, offer) in self.through[first..].iter_mut().zip(&self.offers[first..]) {
            sum = sum.wrapping_add(offer.units().get());
            *through = sum;
        }
    }

    /// The running sums below a place where an offer stands as before, where none stops: those from there on stay.
    fn sum_below(&mut self, end: usize) {
        let end = self.room + end;
        let mut sum = self.through[end];
        for (below, offer) in self.through[self.room..end].iter_mut().rev().zip(self.offers[self.room + 1..=end].iter().rev()) {
            sum = sum.wrapping_sub(offer.units().get());
            *below = sum;
        }
        self.origin = sum.wrapping_sub(self.offers[self.room].units().get());
    }

    /// Takes out what traded: the first offers, of which the last leaves a rest or nothing. O(traded), and now and then O(offers), when what is left
    /// needs less memory.
    pub(crate) fn take_traded(&mut self, count: usize, rest: Option<T>) -> Vec<T> {
        let traded = self.as_slice()[..count].to_vec();
        let gone = count - usize::from(rest.is_some());
        if let Some(last) = gone.checked_sub(1) {
            self.origin = self.through[self.room + last];
            self.room += gone;
        }
        let left = self.as_slice().len();
        if let Some(rest) = rest {
            // Its key may be another than before, but all with a lower one are gone.
            let key = rest.key();
            let below = self.as_slice()[1..].partition_point(|offer| offer.key() < key);
            self.offers.copy_within(self.room + 1..=self.room + below, self.room);
            self.offers[self.room + below] = rest;
            if below + 1 < left && !self.has_stopped { self.sum_below(below + 1) } else { self.sum_all() }
        } else if self.has_stopped {
            self.sum_all();
        }
        self.give_back(left + left / 4);
        traded
    }

    /// Lays all out anew where there is memory for more offers than this.
    fn give_back(&mut self, most: usize) {
        if self.offers.capacity() > most {
            match self.as_slice().first() {
                Some(&filler) => self.lay_out(filler, 0, 0),
                None => *self = Self::default(),
            }
        }
    }

    /// The offer of a key: O(log n).
    #[must_use]
    pub fn get(&self, key: &OfferKey) -> Option<&T> {
        let offers = self.as_slice();
        offers.binary_search_by(|offer| offer.key().cmp(key)).ok().map(|at| &offers[at])
    }

    /// Bytes of memory that the offers take, room to grow included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.offers.capacity() * size_of::<T>() + self.through.capacity() * size_of::<u64>()
    }

    /// The offers, lowest limit first.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        &self.offers[self.room..]
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    /// How many offers have this limit or a lower one: O(log n).
    #[must_use]
    pub fn count_at_or_below(&self, limit: BatchPrice) -> usize {
        self.as_slice().partition_point(|offer| offer.key().limit <= limit)
    }

    /// Units of the first offers; at most [`Amount::MAX`].
    #[must_use]
    pub fn units_of_first(&self, count: usize) -> Amount {
        let sum = count.checked_sub(1).map_or(0, |last| self.through[self.room + last].wrapping_sub(self.origin));
        Amount::new(sum).expect("sums stop at Amount::MAX")
    }

    /// Units of the offers with this limit or a lower one, at most [`Amount::MAX`]: O(log n).
    #[must_use]
    pub fn units_at_or_below(&self, limit: BatchPrice) -> Amount {
        self.units_of_first(self.count_at_or_below(limit))
    }

    /// Units of the first offers, in the order of their keys, whose limits hold at this rate; of many more than `enough` some may
    /// be left out, so that the search ends: O(log n), and of [`Edition::Second`] O(log n + those up to `enough` whose limits round
    /// to the price above the rate).
    ///
    /// Of a limit that rounds to that price, an offer's own amount says on which side of the rate it lies.
    #[must_use]
    pub fn units_holding(&self, rate: &NetRate, edition: Edition, enough: Amount) -> Amount {
        self.units_of_first(self.count_holding(rate, edition, enough))
    }

    /// How many those are.
    #[must_use]
    pub fn count_holding(&self, rate: &NetRate, edition: Edition, enough: Amount) -> usize {
        let highest = rate.highest_limit();
        let mut count = self.count_at_or_below(highest);
        if edition == Edition::Second
            && let Some(above) = highest.next_above()
        {
            let is_open = |offer: &T| offer.key().limit == above && PartLimit::of(offer, edition).holds_at(rate);
            while self.units_of_first(count) < enough && self.as_slice().get(count).is_some_and(is_open) {
                count += 1;
            }
        }
        count
    }

    /// Where so many units end: O(log n). `None` when there are not so many.
    #[must_use]
    pub fn split(&self, units: Amount) -> Option<Split> {
        if units.is_zero() {
            return Some(Split::default());
        }
        // The first offer that reaches the units; the sum before it is below them, so it did not stop at the maximum.
        let sums = &self.through[self.room..];
        let reaching = sums.partition_point(|&sum| sum.wrapping_sub(self.origin) < units.get());
        let whole = self.as_slice().get(reaching)?.units();
        let before = self.units_of_first(reaching);
        let part = Amount::new(units.get() - before.get()).expect("below the units");
        debug_assert!(self.units_of_first(reaching + 1) >= units && part <= whole);
        if part == whole {
            Some(Split { full_count: reaching + 1, part: Amount::ZERO })
        } else {
            Some(Split { full_count: reaching, part })
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::offer::OfferId;

    fn offer((limit, id): (u64, u64)) -> Offer {
        let limit = BatchPrice::from_bits(BatchPrice::ONE.bits() + (limit << 50)).unwrap();
        Offer::new(limit, id % 3, OfferId(id), Amount::new(1_000_000).unwrap()).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn places_are_those_of_a_search_for_each(
            stands in prop::collection::vec((0_u64..5, 0_u64..900), 0..400),
            keys in prop::collection::vec((0_u64..5, 0_u64..900), 0..50),
        ) {
            let sorted = |all: Vec<(u64, u64)>| {
                let mut offers: Vec<Offer> = all.into_iter().map(offer).collect();
                offers.sort_unstable_by_key(Offer::key);
                offers
            };
            let (offers, keys) = (sorted(stands), sorted(keys));
            let alone = keys.iter().map(|key| offers.partition_point(|offer| offer.key() < key.key()));
            prop_assert_eq!(places_below(&offers, keys.iter().map(Offer::key)), alone.collect::<Vec<_>>());
        }
    }
}
