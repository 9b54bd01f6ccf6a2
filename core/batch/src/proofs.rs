//! Short proofs of what the last block left, for whoever keeps no state: see [`walras_merkle::verify_offer`] and
//! [`walras_merkle::verify_account`], and [`crate::light`] for what a client makes of them.

use walras_clearing::{Offer, OfferKey, Pair};
use walras_ledger::Ledger;
use walras_merkle::{AccountProof, OFFER_KEY_BYTES, OfferProof};
use walras_types::AccountId;

use crate::accounts::Accounts;
use crate::batch::Batch;
use crate::pool_entries::{POOLS_NUMBER, PoolEntries};
use crate::trees::{OfferEntries, put_account, trie_key};

impl Batch {
    /// A proof that an offer stands, or that none of this key does, under the last block's root of offers. `None` while a batch is closed, for
    /// then the market is ahead of that root, before the first block, and of what is no pair of the market.
    #[must_use]
    pub fn prove_offer(&self, pair: Pair, key: &OfferKey) -> Option<OfferProof> {
        let number = self.pair_number(pair)?;
        let trie = self.trees.of_pair(number).filter(|_| self.closed.is_none())?;
        let (pairs, roots) = self.trees.pairs(&self.table, &self.market);
        let book = self.market.book(pair);
        let entries = OfferEntries(book.map_or(&[], |book| book.sells().as_slice()));
        Some(OfferProof::new((pairs, &roots), number, Some((trie, &entries)), &trie_key(key)))
    }

    /// A proof of what stands under a key of the trie of pools, or that nothing does. `None` as [`Self::prove_offer`].
    pub(crate) fn prove_pool(&self, key: &[u8; OFFER_KEY_BYTES]) -> Option<OfferProof> {
        let (pairs, roots) = self.trees.pairs(&self.table, &self.market);
        let trie = self.trees.of_pools().filter(|_| self.closed.is_none())?;
        let entries = PoolEntries::new(&self.pools, self.market.pools());
        Some(OfferProof::new((pairs, &roots), POOLS_NUMBER, Some((trie, &entries)), key))
    }

    /// The number that a pair has in proofs; `None` where the market has no such pair.
    #[must_use]
    pub fn pair_number(&self, pair: Pair) -> Option<u32> {
        self.table.pairs().number(pair)
    }

    /// What stands for an offer in proofs: `amount u64 | stated limit u64`, little endian.
    #[must_use]
    pub fn offer_content(offer: &Offer) -> [u8; 16] {
        let mut content = [0; 16];
        content[..8].copy_from_slice(&offer.amount().get().to_le_bytes());
        content[8..].copy_from_slice(&offer.stated().bits().to_le_bytes());
        content
    }

    /// Bytes of memory that standing offers take: their arrays, and the tries over them.
    #[must_use]
    pub fn offer_bytes(&self) -> (usize, usize) {
        (self.market.offer_bytes(), self.trees.bytes())
    }
}

impl Accounts {
    /// A proof of what an account was, or that there was none, under the last block's root of accounts; after a block that was rejected for its
    /// hashes, under no block's until the next. [`Self::statement`] looks.
    #[must_use]
    pub fn prove(&self, account: AccountId) -> AccountProof {
        self.tree.prove(account.0)
    }

    /// What stands for an account in proofs:
    ///
    /// `id u32 | 1 and its key, or 0 | highest number used u64`, then for each asset of which it has something `asset u16 | u8: how many bytes
    /// available takes, and in the high half reserved | available | reserved`, little endian without leading zeros.
    #[must_use]
    pub fn content(&self, ledger: &Ledger, account: AccountId) -> Vec<u8> {
        let mut content = Vec::new();
        put_account(ledger, self, account, |bytes| content.extend_from_slice(bytes));
        content
    }
}
