//! One batch market's state.

use walras_clearing::{BatchMarket, Offer, OfferKey};
use walras_ledger::Ledger;
use walras_types::{AccountId, Amount, AssetId, OfferName, PublicKey};

use crate::effects::{Effect, Then};
use crate::gather::ByPair;
use crate::settings::{AssetTable, BatchSettings, SettingsError};
use crate::trees::OfferTrees;

/// A batch market on a ledger: what stands in it, and the batch that is closed and waits to be cleared.
#[derive(Clone, Debug)]
pub struct Batch {
    pub(crate) settings: BatchSettings,
    pub(crate) table: AssetTable,
    pub(crate) market: BatchMarket,
    /// The number of the next block, from 1.
    pub(crate) number: u64,
    /// The hash of the block before; zeros before the first.
    pub(crate) parent: [u8; 32],
    pub(crate) closed: Option<ClosedBatch>,
    /// No part of the state.
    pub(crate) trees: OfferTrees,
}

/// A batch that waits to be cleared.
#[derive(Clone, Debug)]
pub(crate) struct ClosedBatch {
    pub(crate) batch_hash: [u8; 32],
    pub(crate) kept_count: u32,
    /// In the order of assets, then of (account, number).
    pub(crate) effects: Vec<Effect>,
    /// Of accounts to be created, in the order of (asking account, number).
    pub(crate) keys: Vec<PublicKey>,
    /// Accounts whose transactions are kept, in ascending order, and how many of each.
    pub(crate) senders: Vec<(AccountId, u32)>,
    /// What came into the market and went out of it. No part of the state: only the tries follow it.
    pub(crate) added: ByPair<Offer>,
    pub(crate) removed: ByPair<OfferKey>,
}

impl Batch {
    /// A market in which nothing stands.
    ///
    /// # Errors
    /// See [`SettingsError`].
    pub fn new(settings: BatchSettings) -> Result<Self, SettingsError> {
        let table = AssetTable::new(&settings.assets)?;
        let market = BatchMarket::build(settings.assets.len(), &[], &[], Vec::new()).expect("a market without offers is one");
        Ok(Self { settings, table, market, number: 1, parent: [0; 32], closed: None, trees: OfferTrees::default() })
    }

    /// What the market is.
    #[must_use]
    pub const fn settings(&self) -> &BatchSettings {
        &self.settings
    }

    /// What stands: of a closed batch with its new offers and without the cancelled ones. What a solver is to see.
    #[must_use]
    pub const fn market(&self) -> &BatchMarket {
        &self.market
    }

    /// The number of the block that is next to be cleared, from 1.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The hash of the last block that was cleared; zeros before the first.
    #[must_use]
    pub const fn parent(&self) -> &[u8; 32] {
        &self.parent
    }

    /// The hash of the batch that is closed and waits to be cleared.
    #[must_use]
    pub fn closed(&self) -> Option<&[u8; 32]> {
        self.closed.as_ref().map(|closed| &closed.batch_hash)
    }

    /// Checks the whole market against the ledger: what stands, and what a closed batch waits to do, is reserved by accounts that there are.
    ///
    /// # Panics
    /// When it is not.
    pub fn check_invariants(&self, ledger: &Ledger) {
        let account_count = ledger.account_count() as usize;
        let effects = self.closed.iter().flat_map(|closed| &closed.effects);
        let mut needed = vec![Vec::new(); ledger.asset_count() as usize];
        let mut need = |asset: AssetId, account: AccountId, amount: Amount| {
            let of_asset = &mut needed[asset.0 as usize];
            of_asset.resize(account_count, 0_u128);
            of_asset[account.0 as usize] += u128::from(amount.get());
        };
        for book in self.market.books() {
            let asset = self.settings.assets[book.pair().sell.index()];
            assert!(book.buys().is_empty(), "nobody offers to buy a fixed amount");
            for offer in book.sells().as_slice() {
                need(asset, OfferName::of_number(offer.key().id.0).account, offer.amount());
            }
        }
        for Effect { asset, account, amount, then } in effects {
            need(*asset, *account, *amount);
            assert!(!matches!(then, Then::Paid(to) if to.0 as usize >= account_count), "there is whoever is paid");
        }
        for (asset, of_asset) in (0..).map(AssetId).zip(&needed) {
            for (account, needed) in (0..).map(AccountId).zip(of_asset) {
                let reserved = ledger.balance(account, asset).map_or(0, |balance| u128::from(balance.reserved.get()));
                assert!(*needed <= reserved, "account {account} has {reserved} of asset {asset} reserved, and needs {needed}");
            }
        }
    }
}
