//! A hash map from order ids, for millions of lookups a second.
//!
//! Order ids are log indices: the venue assigns them, no participant chooses them, so a fixed hasher invites no flooding. Iteration order
//! never shows: [`IdMap::sorted`] is the only way to see all entries.

use std::hash::{BuildHasher, Hasher};

use walras_types::OrderId;

/// Spreads consecutive numbers over the table by one multiplication and a fold.
#[derive(Clone, Copy, Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // An odd constant near 2^64 divided by the golden ratio; folding the wide product lets every input bit reach both the
        // low bits (the bucket) and the high seven (the tag).
        let wide = u128::from(self.0 ^ number) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (wide as u64) ^ ((wide >> 64) as u64);
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct BuildIdHasher;

impl BuildHasher for BuildIdHasher {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        IdHasher::default()
    }
}

/// Values by order id.
#[derive(Clone, Debug)]
pub(crate) struct IdMap<V> {
    map: hashbrown::HashMap<u64, V, BuildIdHasher>,
}

impl<V> Default for IdMap<V> {
    fn default() -> Self {
        Self { map: hashbrown::HashMap::with_hasher(BuildIdHasher) }
    }
}

impl<V> IdMap<V> {
    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    pub(crate) fn get(&self, id: OrderId) -> Option<&V> {
        self.map.get(&id.0)
    }

    pub(crate) fn get_mut(&mut self, id: OrderId) -> Option<&mut V> {
        self.map.get_mut(&id.0)
    }

    pub(crate) fn insert(&mut self, id: OrderId, value: V) -> Option<V> {
        self.map.insert(id.0, value)
    }

    pub(crate) fn remove(&mut self, id: OrderId) -> Option<V> {
        self.map.remove(&id.0)
    }

    /// All entries by ascending id.
    pub(crate) fn sorted(&self) -> Vec<(OrderId, &V)> {
        let mut entries: Vec<_> = self.map.iter().map(|(&id, value)| (OrderId(id), value)).collect();
        entries.sort_unstable_by_key(|&(id, _)| id);
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_and_strided_ids_spread_over_buckets_and_tags() {
        for stride in [1u64, 2, 64, 1 << 20, 1 << 40] {
            let mut low = std::collections::BTreeSet::new();
            let mut tags = std::collections::BTreeSet::new();
            for k in 0..1024 {
                let hash = BuildIdHasher.hash_one(k * stride);
                low.insert(hash & 1023);
                tags.insert(hash >> 57);
            }
            // Random hashing of 1,024 into 1,024 leaves about 647 buckets used; a bad one collapses.
            assert!(low.len() > 500, "stride {stride}: {} buckets", low.len());
            assert!(tags.len() > 60, "stride {stride}: {} tags", tags.len());
        }
    }
}
