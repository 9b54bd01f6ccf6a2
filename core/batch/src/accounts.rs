//! What batch markets know of accounts beside their balances.

use std::collections::{BTreeMap, BTreeSet};

use walras_ledger::Parts;
use walras_merkle::AccountTree;
use walras_types::limits::{ACCOUNTS_MAX, ASSETS_MAX};
use walras_types::{AccountId, AssetId, PublicKey, TransactionSeq};

use crate::keys::Keys;

/// Sequence numbers, keys, issuers: shared by all batch markets of a venue. Ids are the ledger's; accounts that only the ledger knows
/// have no key and have used no number.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    /// The highest number that each used.
    pub(crate) last: Parts<u64>,
    pub(crate) keys: Keys,
    pub(crate) suspended: BTreeSet<AccountId>,
    pub(crate) issuers: BTreeMap<AssetId, AccountId>,
    /// Hashes of all accounts. No part of the state.
    pub(crate) tree: AccountTree,
    /// Whether a market's block is being hashed beside the engine, and no other's may be. It follows from the markets.
    pub(crate) is_hashing: bool,
}

impl PartialEq for Accounts {
    fn eq(&self, other: &Self) -> bool {
        (&self.last, &self.keys, &self.suspended, &self.issuers) == (&other.last, &other.keys, &other.suspended, &other.issuers)
    }
}

impl Eq for Accounts {}

/// Why something about accounts was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    /// An account beyond those that there may be.
    #[error("account {0} is beyond the last that a venue may have")]
    UnknownAccount(AccountId),
    /// An asset beyond those that there may be.
    #[error("asset {0} is beyond the last that a venue may have")]
    UnknownAsset(AssetId),
    /// The key belongs to an account, or will.
    #[error("an account has that key already: use another key")]
    KeyTaken,
}

impl Accounts {
    /// No accounts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The highest number that an account used; zero before its first transaction.
    #[must_use]
    pub fn last(&self, account: AccountId) -> TransactionSeq {
        TransactionSeq(self.last.get(account.0 as usize).copied().unwrap_or(0))
    }

    /// The key of an account, if it has one.
    #[must_use]
    pub fn key(&self, account: AccountId) -> Option<PublicKey> {
        self.keys.get(account)
    }

    /// The account of a key.
    #[must_use]
    pub fn account_of(&self, key: &PublicKey) -> Option<AccountId> {
        self.keys.owner(key)
    }

    /// Who may make and destroy units of an asset.
    #[must_use]
    pub fn issuer(&self, asset: AssetId) -> Option<AccountId> {
        self.issuers.get(&asset).copied()
    }

    /// Gives an account a key, in place of the one it had.
    ///
    /// # Errors
    /// [`AccountError::KeyTaken`], [`AccountError::UnknownAccount`].
    pub fn set_key(&mut self, account: AccountId, key: PublicKey) -> Result<(), AccountError> {
        if account.0 >= ACCOUNTS_MAX {
            return Err(AccountError::UnknownAccount(account));
        }
        if self.keys.is_taken(&key) && self.keys.owner(&key) != Some(account) {
            return Err(AccountError::KeyTaken);
        }
        self.follow(account.0 + 1);
        self.keys.set(account, key);
        Ok(())
    }

    /// Makes an account the issuer of an asset.
    ///
    /// # Errors
    /// [`AccountError::UnknownAsset`].
    pub fn set_issuer(&mut self, asset: AssetId, account: AccountId) -> Result<(), AccountError> {
        if asset.0 >= ASSETS_MAX {
            return Err(AccountError::UnknownAsset(asset));
        }
        self.issuers.insert(asset, account);
        Ok(())
    }

    /// From now on no transaction of the account is taken. What stands goes on standing.
    pub fn suspend(&mut self, account: AccountId) {
        self.suspended.insert(account);
    }

    /// Undoes [`Self::suspend`].
    pub fn resume(&mut self, account: AccountId) {
        self.suspended.remove(&account);
    }

    /// Whether no transaction of the account is taken.
    #[must_use]
    pub fn is_suspended(&self, account: AccountId) -> bool {
        self.suspended.contains(&account)
    }

    /// How many more accounts there may be, beside so many on the ledger and those that closed batches are going to create. Whoever creates others
    /// leaves room for these.
    #[must_use]
    pub fn room(&self, account_count: u32) -> u32 {
        let pending = u32::try_from(self.keys.pending().len()).unwrap_or(u32::MAX);
        ACCOUNTS_MAX.saturating_sub(account_count).saturating_sub(pending)
    }

    /// Bytes of memory that they take, as far as can be counted: but for suspended accounts, issuers and accounts that are to be created.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.last.bytes() + self.keys.bytes() + self.tree.heap_bytes()
    }

    /// A copy for a snapshot, without what follows from the rest: it may be asked for [`Self::snapshot`] only. Numbers and keys are
    /// shared until they change.
    #[must_use]
    pub fn for_snapshot(&mut self) -> Self {
        let Self { last, keys, suspended, issuers, tree: _, is_hashing } = self;
        let (suspended, issuers, is_hashing) = (suspended.clone(), issuers.clone(), *is_hashing);
        Self { last: last.share(), keys: keys.without_index(), suspended, issuers, tree: AccountTree::default(), is_hashing }
    }

    /// Makes place for accounts that the ledger has.
    pub(crate) fn follow(&mut self, account_count: u32) {
        let more = (account_count as usize).saturating_sub(self.last.len());
        if more > 0 {
            self.last.resize(account_count as usize, 0);
            self.keys.resize(account_count as usize);
        }
    }
}
