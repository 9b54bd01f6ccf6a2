//! The entries of a market's trie of pools: each pool, and each provider's shares of it.
//!
//! The trie stands among those of the pairs under [`POOLS_NUMBER`], which is that of no pair: a market without pools has none.

use walras_clearing::Pool;
use walras_merkle::{Content, Entries, OFFER_KEY_BYTES, offer_key};
use walras_types::{AccountId, Amount, OfferName};

use crate::pools::{PoolChange, PoolHead, Pools, Provider};

/// The number of the pair of the first asset with itself.
pub(crate) const POOLS_NUMBER: u32 = 0;

/// Bytes that stand for a pool, and for a provider's shares.
pub(crate) const POOL_BYTES: usize = 2 + 2 + 1 + 4 + 4 + 8 + 8 + 8;
pub(crate) const SHARES_BYTES: usize = 8;

/// The key of a pool: before those of its providers.
pub(crate) fn pool_key(pool: OfferName) -> [u8; OFFER_KEY_BYTES] {
    offer_key(pool.number(), 0, 0)
}

/// The key of a provider.
pub(crate) fn provider_key(pool: OfferName, account: AccountId) -> [u8; OFFER_KEY_BYTES] {
    offer_key(pool.number(), account.0.into(), 1)
}

/// Pools, each before its providers.
pub(crate) struct PoolEntries<'p> {
    pools: &'p Pools,
    of_market: &'p [Pool],
    /// The place of each pool among the entries.
    starts: Vec<usize>,
}

/// What stands at a place.
enum Entry<'p> {
    Pool(&'p PoolHead, &'p Pool),
    Provider(&'p Provider),
}

impl<'p> PoolEntries<'p> {
    pub(crate) fn new(pools: &'p Pools, of_market: &'p [Pool]) -> Self {
        let before = |head: &PoolHead| pools.providers.partition_point(|provider| provider.pool < head.name);
        let starts = (0..).zip(&pools.heads).map(|(place, head): (usize, _)| place + before(head)).collect();
        Self { pools, of_market, starts }
    }

    fn entry(&self, place: usize) -> Entry<'p> {
        let pool = self.starts.partition_point(|start| *start <= place) - 1;
        match place - self.starts[pool] {
            0 => Entry::Pool(&self.pools.heads[pool], &self.of_market[pool]),
            _ => Entry::Provider(&self.pools.providers[place - pool - 1]),
        }
    }
}

impl Entries<OFFER_KEY_BYTES> for PoolEntries<'_> {
    fn count(&self) -> usize {
        self.pools.heads.len() + self.pools.providers.len()
    }

    fn key(&self, place: usize) -> [u8; OFFER_KEY_BYTES] {
        match self.entry(place) {
            Entry::Pool(head, _) => pool_key(OfferName::of_number(head.name)),
            Entry::Provider(provider) => provider_key(OfferName::of_number(provider.pool), provider.account),
        }
    }

    fn put_value(&self, place: usize, value: &mut Content<'_>) {
        match self.entry(place) {
            Entry::Pool(head, pool) => value.put(&pool_content(pool, head.shares)),
            Entry::Provider(provider) => value.put(&provider.shares.get().to_le_bytes()),
        }
    }
}

/// `first asset u16 | second asset u16 | rule u8 | its parameters u32 | fee u32 | first reserve u64 | second reserve u64 | shares u64`, little
/// endian; assets by their numbers in the market.
pub(crate) fn pool_content(pool: &Pool, shares: Amount) -> [u8; POOL_BYTES] {
    let (rule, parameters) = pool.rule.parts();
    let [first, second] = pool.assets.map(|asset| asset.0.to_le_bytes());
    let [x, y] = pool.reserves.map(|reserve| reserve.get().to_le_bytes());
    let parts: [&[u8]; 8] =
        [&first, &second, &[rule], &parameters.to_le_bytes(), &pool.fee_ppm.to_le_bytes(), &x, &y, &shares.get().to_le_bytes()];
    let mut content = [0; POOL_BYTES];
    let mut at = 0;
    for part in parts {
        content[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    content
}

/// The keys under which a block changed the trie, in ascending order.
pub(crate) fn changed_keys(changes: &[PoolChange], traded: impl Iterator<Item = OfferName>) -> Vec<[u8; OFFER_KEY_BYTES]> {
    let of_change = |change: &PoolChange| [pool_key(change.pool), provider_key(change.pool, change.by.account)];
    let mut keys: Vec<_> = changes.iter().flat_map(of_change).chain(traded.map(pool_key)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}
