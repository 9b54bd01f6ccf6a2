//! A batch that is closed.

use std::sync::Arc;

use walras_clearing::{Offer, OfferKey};
use walras_types::{AccountFee, AccountId, OfferName, PublicKey};

use crate::effects::Effect;
use crate::gather::ByPair;
use crate::pools::PoolChange;

/// A transaction that sets its account's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewKey {
    pub(crate) by: OfferName,
    pub(crate) key: PublicKey,
}

/// A batch that waits to be cleared.
#[derive(Clone, Debug)]
pub(crate) struct ClosedBatch {
    pub(crate) batch_hash: [u8; 32],
    pub(crate) kept_count: u32,
    /// The bytes of those that are kept, one after the other in the order of (account, number): what came of each is hashed when it
    /// is cleared.
    pub(crate) transactions: Arc<Vec<u8>>,
    /// What each of its accounts costs: what the settings said when it was closed.
    pub(crate) account_fee: Option<AccountFee>,
    /// In the order of assets, then of (account, number).
    pub(crate) effects: Vec<Effect>,
    /// In the order of (account, number), then pools that end.
    pub(crate) pool_changes: Vec<PoolChange>,
    /// Of accounts to be created, in the order of (asking account, number).
    pub(crate) keys: Vec<PublicKey>,
    /// Of accounts that get another key, in ascending order: follows from the transactions.
    pub(crate) new_keys: Vec<NewKey>,
    /// Accounts whose transactions are kept, in ascending order, and how many of each.
    pub(crate) senders: Vec<(AccountId, u32)>,
    /// What came into the market and went out of it. No part of the state: only the tries follow it.
    pub(crate) added: ByPair<Offer>,
    pub(crate) removed: ByPair<OfferKey>,
}

impl ClosedBatch {
    /// Keys that accounts are to have: those of accounts to be created, then others.
    pub(crate) fn all_keys(&self) -> impl Iterator<Item = &PublicKey> {
        self.keys.iter().chain(self.new_keys.iter().map(|new| &new.key))
    }
}
