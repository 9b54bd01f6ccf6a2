//! A hash map from order ids. The venue assigns them, no participant chooses them, so the hash has no key.
//!
//! A large one is in parts, each a table of its own. What grows is a part, so no entry of the log waits until the values of a whole book
//! have moved.

use hashbrown::HashTable;
use walras_types::OrderId;

/// Values by order id. Its order of iteration says nothing: sort what comes out of it.
#[derive(Clone, Debug)]
pub(crate) struct IdMap<V> {
    /// One, or [`PARTS`].
    parts: Vec<Part<V>>,
    len: usize,
}

type Part<V> = HashTable<(OrderId, V)>;

/// Parts of a large map: of a million values, none moves more than some 4,000 at once. A power of two.
const PARTS: usize = 256;

/// A map with more is large.
const WHOLE_MAX: usize = 4_096;

impl<V> Default for IdMap<V> {
    fn default() -> Self {
        Self { parts: vec![Part::new()], len: 0 }
    }
}

/// Spreads consecutive numbers over the table by one wide multiplication and a fold.
fn hash(id: OrderId) -> u64 {
    let wide = u128::from(id.0) * 0x9E37_79B9_7F4A_7C15;
    (wide as u64) ^ ((wide >> 64) as u64)
}

impl<V> IdMap<V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The part of a hash, by bits that a part does not look at itself: it takes the lowest and the highest.
    fn part(&self, hash: u64) -> usize {
        (hash >> 40) as usize & (self.parts.len() - 1)
    }

    pub(crate) fn get(&self, id: &OrderId) -> Option<&V> {
        let hash = hash(*id);
        self.parts[self.part(hash)].find(hash, |(other, _)| other == id).map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, id: &OrderId) -> Option<&mut V> {
        let hash = hash(*id);
        let part = self.part(hash);
        self.parts[part].find_mut(hash, |(other, _)| other == id).map(|(_, value)| value)
    }

    pub(crate) fn contains_key(&self, id: &OrderId) -> bool {
        self.get(id).is_some()
    }

    /// The value that it replaces.
    pub(crate) fn insert(&mut self, id: OrderId, value: V) -> Option<V> {
        if let Some(before) = self.get_mut(&id) {
            return Some(std::mem::replace(before, value));
        }
        if self.len == WHOLE_MAX && self.parts.len() == 1 {
            self.split();
        }
        self.add(id, value);
        self.len += 1;
        None
    }

    fn add(&mut self, id: OrderId, value: V) {
        let hash_of_it = hash(id);
        let part = self.part(hash_of_it);
        self.parts[part].insert_unique(hash_of_it, (id, value), |(other, _)| hash(*other));
    }

    #[cold]
    fn split(&mut self) {
        let whole = std::mem::replace(&mut self.parts, std::iter::repeat_with(Part::new).take(PARTS).collect());
        whole.into_iter().flatten().for_each(|(id, value)| self.add(id, value));
    }

    pub(crate) fn remove(&mut self, id: &OrderId) -> Option<V> {
        let hash = hash(*id);
        let part = self.part(hash);
        let entry = self.parts[part].find_entry(hash, |(other, _)| other == id).ok()?;
        self.len -= 1;
        Some(entry.remove().0.1)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&OrderId, &V)> {
        self.parts.iter().flatten().map(|(id, value)| (id, value))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Ids as a venue gives them, with gaps, of orders that come and go, across the size from which it is in parts.
        #[test]
        fn equals_a_map(steps in prop::collection::vec((0..10_u8, 1..5_u64, any::<u64>()), 0..12_000)) {
            let (mut map, mut model, mut next) = (IdMap::default(), BTreeMap::new(), 0);
            for (kind, gap, drawn) in steps {
                let some = OrderId(drawn % (next + 2));
                match kind {
                    0 | 1 => prop_assert_eq!(map.remove(&some), model.remove(&some)),
                    2 => prop_assert_eq!(map.insert(some, drawn), model.insert(some, drawn)),
                    3 => {
                        prop_assert_eq!(map.get(&some), model.get(&some));
                        prop_assert_eq!(map.contains_key(&some), model.contains_key(&some));
                    }
                    4 => {
                        let (found, expected) = (map.get_mut(&some), model.get_mut(&some));
                        prop_assert_eq!(&found, &expected);
                        found.into_iter().chain(expected).for_each(|value| *value ^= 1);
                    }
                    _ => {
                        next += gap;
                        prop_assert_eq!(map.insert(OrderId(next), drawn), model.insert(OrderId(next), drawn));
                    }
                }
                prop_assert_eq!(map.len(), model.len());
            }
            let mut all: Vec<_> = map.iter().collect();
            all.sort_unstable();
            prop_assert_eq!(all, model.iter().collect::<Vec<_>>());
        }
    }

    /// However many there are, a table that grows holds few.
    #[test]
    fn what_grows_at_once_is_small() {
        let (mut map, mut moved_max) = (IdMap::default(), 0);
        for number in 0..1 << 20 {
            let before: Vec<usize> = if map.len() == WHOLE_MAX { map.parts.iter().map(Part::len).collect() } else { Vec::new() };
            let part = map.part(hash(OrderId(3 * number)));
            let (capacity, len) = (map.parts[part].capacity(), map.parts[part].len());
            map.insert(OrderId(3 * number), number);
            moved_max = moved_max.max(before.iter().sum());
            if map.parts.len() > part && map.parts[part].capacity() != capacity {
                moved_max = moved_max.max(len);
            }
        }
        assert_eq!(map.parts.len(), PARTS);
        assert!((1_000..=2 * WHOLE_MAX).contains(&moved_max), "{moved_max} values moved at once");
    }
}
