//! A hash map from order ids. The venue assigns them, no participant chooses them, so a fixed hasher invites no flooding.

use std::hash::{BuildHasher, Hasher};

use walras_types::OrderId;

/// Spreads consecutive numbers over the table by one wide multiplication and a fold.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, number: u64) {
        let wide = u128::from(self.0 ^ number) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (wide as u64) ^ ((wide >> 64) as u64);
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BuildIdHasher;

impl BuildHasher for BuildIdHasher {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        IdHasher::default()
    }
}

/// Values by order id. Its order of iteration says nothing: sort what comes out of it.
pub(crate) type IdMap<V> = hashbrown::HashMap<OrderId, V, BuildIdHasher>;
