//! A list, of balances or of something else that there is for each account, in parts that a copy shares until they change.

use std::sync::Arc;

/// Values in a part: a power of two. A copy costs some nanoseconds for each part, the first change of a part after it the copying
/// of the part.
pub const PART_ACCOUNTS: u32 = 512;

const PART: usize = PART_ACCOUNTS as usize;

/// A list that grows at its end, in parts of [`PART_ACCOUNTS`] values.
///
/// A part is either owned, and then as near as a plain list's values, or shared with copies ([`Self::share`]). A change of a value
/// in a shared part copies the part first, unless no copy has it any more.
#[derive(Debug)]
pub struct Parts<T> {
    parts: Vec<Part<T>>,
    len: usize,
}

/// One part. Of one that is shared `own` is empty, so that looking a value up there fails and no other check is needed before.
#[derive(Debug)]
struct Part<T> {
    own: Vec<T>,
    shared: Option<Arc<Vec<T>>>,
}

impl<T> Default for Parts<T> {
    fn default() -> Self {
        Self { parts: Vec::new(), len: 0 }
    }
}

/// A copy that shares nothing: [`Parts::share`] is for those that do.
impl<T: Clone> Clone for Parts<T> {
    fn clone(&self) -> Self {
        let part = |part: &Part<T>| Part { own: part.values().to_vec(), shared: None };
        Self { parts: self.parts.iter().map(part).collect(), len: self.len }
    }
}

impl<T: Clone + PartialEq> PartialEq for Parts<T> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<T: Clone + Eq> Eq for Parts<T> {}

impl<T: Clone> FromIterator<T> for Parts<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut parts = Self::default();
        values.into_iter().for_each(|value| parts.push(value));
        parts
    }
}

impl<T> Part<T> {
    fn values(&self) -> &[T] {
        self.shared.as_ref().map_or(&self.own, |shared| shared)
    }
}

impl<T: Clone> Part<T> {
    #[inline]
    fn get(&self, place: usize) -> Option<&T> {
        match self.own.get(place) {
            Some(value) => Some(value),
            None => self.shared.as_ref()?.get(place),
        }
    }

    #[inline]
    fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        if place < self.own.len() {
            return self.own.get_mut(place);
        }
        self.taken_back(place)
    }

    #[cold]
    #[inline(never)]
    fn taken_back(&mut self, place: usize) -> Option<&mut T> {
        self.take_back();
        self.own.get_mut(place)
    }

    /// Owns the part again: without copying it, when nobody else has it any more.
    fn take_back(&mut self) {
        if let Some(shared) = self.shared.take() {
            self.own = Arc::try_unwrap(shared).unwrap_or_else(|shared| Vec::clone(&shared));
        }
    }

    fn share(&mut self) -> Self {
        let shared = self.shared.get_or_insert_with(|| Arc::new(std::mem::take(&mut self.own)));
        Self { own: Vec::new(), shared: Some(Arc::clone(shared)) }
    }

    fn push(&mut self, value: T) {
        self.take_back();
        if self.own.len() == self.own.capacity() {
            // Doubling would waste half of the memory of a small ledger of many assets.
            self.own.reserve_exact((self.own.len() / 8 + 16).min(PART - self.own.len()));
        }
        self.own.push(value);
    }
}

impl<T: Clone> Parts<T> {
    /// The same value so many times.
    #[must_use]
    pub fn filled(value: T, len: usize) -> Self {
        let part = |first: usize| Part { own: vec![value.clone(); PART.min(len - first)], shared: None };
        Self { parts: (0..len).step_by(PART).map(part).collect(), len }
    }

    /// How many values there are.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value at a place.
    #[must_use]
    #[inline]
    pub fn get(&self, place: usize) -> Option<&T> {
        self.parts.get(place / PART)?.get(place % PART)
    }

    /// The value at a place, to be changed.
    #[inline]
    pub fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        self.parts.get_mut(place / PART)?.get_mut(place % PART)
    }

    /// Adds a value.
    pub fn push(&mut self, value: T) {
        if self.len.is_multiple_of(PART) {
            self.parts.push(Part { own: Vec::new(), shared: None });
        }
        self.parts.last_mut().expect("a part was added").push(value);
        self.len += 1;
    }

    /// Takes the last value.
    pub fn pop(&mut self) -> Option<T> {
        let last = self.parts.last_mut()?;
        last.take_back();
        let value = last.own.pop();
        if last.own.is_empty() {
            self.parts.pop();
        }
        self.len -= 1;
        value
    }

    /// Makes it this long, by values like this one or by taking values off.
    pub fn resize(&mut self, len: usize, value: T) {
        while self.len > len {
            self.pop();
        }
        while self.len < len {
            self.push(value.clone());
        }
    }

    /// The values in their order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.parts.iter().flat_map(|part| part.values())
    }

    /// A copy that has each part in common with this one until either changes it: O(parts).
    #[must_use]
    pub fn share(&mut self) -> Self {
        Self { parts: self.parts.iter_mut().map(Part::share).collect(), len: self.len }
    }

    /// All of it, to be cut for threads.
    #[must_use]
    pub fn as_range(&mut self) -> PartsRange<'_, T> {
        PartsRange(&mut self.parts)
    }

    /// Bytes of memory that the values take, room to grow included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let of_part = |part: &Part<T>| part.own.capacity().max(part.values().len()) * size_of::<T>();
        self.parts.iter().map(of_part).sum::<usize>() + self.parts.capacity() * size_of::<Part<T>>()
    }
}

impl<T: Clone> std::ops::Index<usize> for Parts<T> {
    type Output = T;

    #[inline]
    fn index(&self, place: usize) -> &T {
        self.get(place).expect("a place below the length")
    }
}

impl<T: Clone> std::ops::IndexMut<usize> for Parts<T> {
    #[inline]
    fn index_mut(&mut self, place: usize) -> &mut T {
        self.get_mut(place).expect("a place below the length")
    }
}

/// Some consecutive parts of a [`Parts`], for one thread. Places count from its first.
#[derive(Debug)]
pub struct PartsRange<'p, T>(&'p mut [Part<T>]);

impl<'p, T: Clone> PartsRange<'p, T> {
    /// Takes the parts of the first so many values out of it: a multiple of [`PART_ACCOUNTS`], or all that it has.
    ///
    /// # Panics
    /// When it has not so many.
    #[must_use]
    pub fn split_off(&mut self, len: usize) -> Self {
        Self(self.0.split_off_mut(..len.div_ceil(PART)).expect("no more than there are"))
    }

    /// The value at a place.
    #[must_use]
    #[inline]
    pub fn get(&self, place: usize) -> Option<&T> {
        self.0.get(place / PART)?.get(place % PART)
    }

    /// The value at a place, to be changed.
    #[inline]
    pub fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        self.0.get_mut(place / PART)?.get_mut(place % PART)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push(u32),
        Pop,
        Resize(usize),
        Set(usize, u32),
        SetInRange(usize, usize, u32),
        Share,
        Forget,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            2 => any::<u32>().prop_map(Step::Push),
            2 => Just(Step::Pop),
            2 => (0..4 * PART).prop_map(Step::Resize),
            8 => (0..4 * PART, any::<u32>()).prop_map(|(place, value)| Step::Set(place, value)),
            4 => (0..4_usize, 0..4 * PART, any::<u32>()).prop_map(|(cut, place, value)| Step::SetInRange(cut, place, value)),
            3 => Just(Step::Share),
            1 => Just(Step::Forget),
        ];
        prop::collection::vec(step, 0..80)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        /// It is what a plain list is, and copies are what it was when they were made.
        #[test]
        fn it_is_a_list_and_copies_stay_as_they_were(steps in steps()) {
            let (mut parts, mut list): (Parts<u32>, Vec<u32>) = (Parts::default(), Vec::new());
            let mut copies: Vec<(Parts<u32>, Vec<u32>)> = Vec::new();
            for step in steps {
                match step {
                    Step::Push(value) => {
                        parts.push(value);
                        list.push(value);
                    }
                    Step::Pop => prop_assert_eq!(parts.pop(), list.pop()),
                    Step::Resize(len) => {
                        parts.resize(len, 7);
                        list.resize(len, 7);
                    }
                    Step::Set(place, value) => {
                        let (of_parts, of_list) = (parts.get_mut(place), list.get_mut(place));
                        prop_assert_eq!(of_parts.is_some(), of_list.is_some());
                        of_parts.into_iter().chain(of_list).for_each(|place| *place = value);
                    }
                    Step::SetInRange(cut, place, value) => {
                        let mut rest = parts.as_range();
                        let first = (cut * PART).min(list.len() / PART * PART);
                        let mut range = rest.split_off(first);
                        let found = if place < first { range.get_mut(place) } else { rest.get_mut(place - first) };
                        let of_list = list.get_mut(place);
                        prop_assert_eq!(found.is_some(), of_list.is_some());
                        found.into_iter().chain(of_list).for_each(|place| *place = value);
                    }
                    Step::Share => copies.push((parts.share(), list.clone())),
                    Step::Forget => copies.truncate(copies.len() / 2),
                }
                prop_assert_eq!(parts.len(), list.len());
                prop_assert!(parts.iter().eq(&list) && (0..list.len() + 2).all(|place| parts.get(place) == list.get(place)));
                for (copy, then) in &copies {
                    prop_assert!(copy.iter().eq(then) && copy.len() == then.len());
                }
            }
            prop_assert_eq!(parts.clone(), list.into_iter().collect());
        }
    }

    #[test]
    fn what_is_shared_is_copied_only_while_a_copy_has_it() {
        let mut parts = Parts::filled(1_u32, 2 * PART);
        let at = |parts: &Parts<u32>, place: usize| std::ptr::from_ref(parts.get(place).unwrap());
        let before = at(&parts, 0);
        let copy = parts.share();
        assert_eq!((at(&parts, 0), at(&copy, 0)), (before, before), "nothing is copied yet");
        *parts.get_mut(PART).unwrap() = 2;
        assert_eq!(at(&parts, 0), at(&copy, 0), "the other part is still shared");
        assert_ne!(at(&parts, PART), at(&copy, PART));
        drop(copy);
        *parts.get_mut(0).unwrap() = 3;
        assert_eq!(at(&parts, 0), before, "nobody else has it");
    }
}
