//! One batch market's state.

use std::collections::BTreeSet;
use std::sync::Arc;

use walras_clearing::{AssetIndex, BatchMarket, Edition, Offer, Pair, Pairs};
use walras_ledger::Ledger;
use walras_types::{AccountFee, AccountId, Amount, AssetId, DropReason, OfferName};

use crate::closed::ClosedBatch;
use crate::effects::{Effect, Then};
use crate::pools::{PoolChange, PoolView, Pools};
use crate::proposed::BlockPlace;
use crate::settings::{AssetTable, BatchSettings, SettingsError};
use crate::steps::Steps;
use crate::trees::OfferTrees;

/// A batch market on a ledger: what stands in it, and the batch that is closed and waits to be cleared.
#[derive(Debug)]
pub struct Batch {
    pub(crate) settings: BatchSettings,
    pub(crate) table: AssetTable,
    /// Shared with whoever looks for prices while it does not change.
    pub(crate) market: Arc<BatchMarket>,
    /// Whose its pools are.
    pub(crate) pools: Arc<Pools>,
    /// The number of the next block, from 1.
    pub(crate) number: u64,
    /// The hash of the block before; zeros before the first.
    pub(crate) parent: [u8; 32],
    pub(crate) closed: Option<Arc<ClosedBatch>>,
    /// Accounts whose transactions in the block under way set no key: see [`Self::keep_keys`].
    pub(crate) keys_kept: BTreeSet<AccountId>,
    /// How far a block has come that is carried out in steps.
    pub(crate) steps: Steps,
    /// No part of the state.
    pub(crate) trees: OfferTrees,
}

/// A copy has a market of its own at once, so that its first block takes as long as any other.
impl Clone for Batch {
    fn clone(&self) -> Self {
        let Self { settings, table, market, pools, number, parent, closed, keys_kept, steps, trees } = self;
        Self {
            settings: settings.clone(),
            table: table.clone(),
            market: Arc::new(market.unshared()),
            pools: Arc::new(Pools::clone(pools)),
            number: *number,
            parent: *parent,
            closed: closed.clone(),
            keys_kept: keys_kept.clone(),
            steps: steps.unshared(),
            trees: trees.clone(),
        }
    }
}

impl Batch {
    /// A copy for a snapshot, without what follows from the rest: it may be asked for [`Self::snapshot`] only. What stands is shared until the
    /// market changes.
    #[must_use]
    pub fn for_snapshot(&self) -> Self {
        let Self { settings, table, market, pools, number, parent, closed, keys_kept, steps, trees: _ } = self;
        Self {
            settings: settings.clone(),
            table: table.clone(),
            market: Arc::clone(market),
            pools: Arc::clone(pools),
            number: *number,
            parent: *parent,
            closed: closed.clone(),
            keys_kept: keys_kept.clone(),
            steps: steps.clone(),
            trees: OfferTrees::default(),
        }
    }

    /// A market in which nothing stands.
    ///
    /// # Errors
    /// See [`SettingsError`].
    pub fn new(mut settings: BatchSettings) -> Result<Self, SettingsError> {
        let table = AssetTable::new(&settings)?;
        // Rules have one form.
        settings.currencies = settings.currencies.filter(|_| !table.pairs().are_all());
        if !settings.quality.is_possible() {
            return Err(SettingsError::Quality);
        }
        let market = BatchMarket::build(settings.assets.len(), &[], &[], Vec::new()).expect("a market without offers is one");
        Ok(Self {
            settings,
            table,
            market: Arc::new(market),
            pools: Arc::new(Pools::default()),
            number: 1,
            parent: [0; 32],
            closed: None,
            keys_kept: BTreeSet::new(),
            steps: Steps::default(),
            trees: OfferTrees::default(),
        })
    }

    /// What the market is.
    #[must_use]
    pub const fn settings(&self) -> &BatchSettings {
        &self.settings
    }

    /// Sets what each account costs that a transaction of the next batch to be closed opens. A batch that is closed already costs what it did.
    pub const fn set_account_fee(&mut self, fee: Option<AccountFee>) {
        self.settings.account_fee = fee;
    }

    /// Sets how the market's rules are read. A snapshot does not say it: it follows from the engine's version.
    pub const fn set_edition(&mut self, edition: Edition) {
        self.settings.rules.edition = edition;
    }

    /// Lets no transaction of these accounts set a key in the block under way, or in the next one where none is: their keys were replaced
    /// since, or a moment before, by an order that a stolen key cannot give. What is not judged yet is dropped for it; what is kept sets
    /// nothing when the block is cleared.
    pub fn keep_keys(&mut self, accounts: impl IntoIterator<Item = AccountId>) {
        self.keys_kept.extend(accounts);
    }

    /// What stands: of a closed batch with its new offers and without the cancelled ones. What a solver is to see.
    #[must_use]
    pub fn market(&self) -> &BatchMarket {
        &self.market
    }

    /// [`Self::market`] to be kept while the venue goes on: nothing is copied, until the market changes and somebody still has this.
    #[must_use]
    pub fn shared_market(&self) -> Arc<BatchMarket> {
        Arc::clone(&self.market)
    }

    /// An asset of the market; `None` when it has not so many.
    #[must_use]
    pub fn asset(&self, index: AssetIndex) -> Option<AssetId> {
        self.settings.assets.get(index.index()).copied()
    }

    /// The pair of two different assets of the market, one of them a currency.
    #[must_use]
    pub fn pair(&self, sell: AssetId, buy: AssetId) -> Option<Pair> {
        self.check_pair(sell, buy).ok()
    }

    /// [`Self::pair`], or why the market has none of these two.
    ///
    /// # Errors
    /// [`DropReason::UnknownAsset`], [`DropReason::EqualAssets`], [`DropReason::NoSuchPair`].
    pub fn check_pair(&self, sell: AssetId, buy: AssetId) -> Result<Pair, DropReason> {
        let (sell, buy) = self.table.index(sell).zip(self.table.index(buy)).ok_or(DropReason::UnknownAsset)?;
        self.table.check(Pair { sell, buy })
    }

    /// The market's pairs.
    #[must_use]
    pub const fn pairs(&self) -> Pairs {
        self.table.pairs()
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

    /// The place of the block that the closed batch becomes; `None` where a clearing of it is being carried out in steps already.
    #[must_use]
    pub fn place_to_clear(&self) -> Option<BlockPlace> {
        let batch_hash = *self.closed().filter(|_| self.steps.are_done())?;
        Some(BlockPlace { number: self.number, parent: self.parent, batch_hash })
    }

    /// The offers that the closed batch put into the market, by pair and in the order of their keys: right after [`Self::close`], for what
    /// was restored from a snapshot does not know them any more.
    pub fn opened(&self) -> impl Iterator<Item = (Pair, &Offer)> {
        let added = self.closed.iter().flat_map(|closed| (0..self.table.place_count()).map(|pair| (pair, &closed.added)));
        added.flat_map(move |(pair, added)| added.of_pair(pair).iter().map(move |offer| (self.table.pair(pair), offer)))
    }

    /// What must be reserved: by each standing offer what it sells, and by what a batch waits to do that is closed or being closed.
    pub fn for_each_reserved(&self, mut reserved: impl FnMut(AccountId, AssetId, Amount)) {
        if self.for_each_reserved_in_steps(&mut reserved) {
            return;
        }
        self.for_each_offered(&self.market, &mut reserved);
        for Effect { asset, account, amount, .. } in self.closed.iter().flat_map(|closed| &closed.effects) {
            reserved(*account, *asset, *amount);
        }
        for change in self.pool_changes() {
            change.reserved().for_each(|(asset, amount)| reserved(change.by.account, asset, amount));
        }
    }

    /// What the offers of this market's or of another state of it sell.
    pub(crate) fn for_each_offered(&self, market: &BatchMarket, reserved: &mut impl FnMut(AccountId, AssetId, Amount)) {
        for book in market.books() {
            let asset = self.settings.assets[book.pair().sell.index()];
            for offer in book.sells().as_slice() {
                reserved(OfferName::of_number(offer.key().id.0).account, asset, offer.amount());
            }
        }
    }

    fn pool_changes(&self) -> &[PoolChange] {
        self.closed.as_ref().map_or(&[], |closed| &closed.pool_changes)
    }

    /// What the ledger must hold for batch markets: by each pool what it has, but for what a closed batch waits to do, and what a
    /// block that moves funds in steps took and has not given yet.
    pub fn for_each_pooled(&self, mut pooled: impl FnMut(AssetId, i128)) {
        for pool in self.market.pools() {
            for (index, reserve) in pool.assets.iter().zip(pool.reserves) {
                pooled(self.settings.assets[index.index()], i128::from(reserve.get()));
            }
        }
        for change in self.pool_changes() {
            change.assets.iter().for_each(|asset| pooled(*asset, -change.flow(*asset)));
        }
        self.steps.for_each_held(pooled);
    }

    /// The pools, in ascending order of their names, which is that of [`BatchMarket::pools`]; of a closed batch with what it asked.
    pub fn pools(&self) -> impl ExactSizeIterator<Item = PoolView> {
        (0..self.pools.heads.len()).map(|place| self.pools.view(&self.market, place))
    }

    /// A pool: O(log pools).
    #[must_use]
    pub fn pool(&self, name: OfferName) -> Option<PoolView> {
        self.pools.place(name).map(|place| self.pools.view(&self.market, place))
    }

    /// An account's shares of a pool: O(log providers).
    #[must_use]
    pub fn pool_shares(&self, pool: OfferName, account: AccountId) -> Amount {
        self.pools.shares(pool, account)
    }

    /// The providers of a pool with their shares, in ascending order of their accounts.
    pub fn pool_providers(&self, pool: OfferName) -> impl ExactSizeIterator<Item = (AccountId, Amount)> {
        self.pools.providers_of(pool).iter().map(|provider| (provider.account, provider.shares))
    }

    /// Checks the whole market against the ledger: what stands, and what a closed batch waits to do, is reserved by accounts that there are.
    ///
    /// # Panics
    /// When it is not.
    pub fn check_invariants(&self, ledger: &Ledger) {
        let account_count = ledger.account_count() as usize;
        let mut needed = vec![Vec::new(); ledger.asset_count() as usize];
        self.for_each_reserved(|account, asset, amount| {
            let of_asset = &mut needed[asset.0 as usize];
            of_asset.resize(account_count, 0_u128);
            of_asset[account.0 as usize] += u128::from(amount.get());
        });
        assert!(self.market.books().iter().all(|book| book.buys().is_empty()), "nobody offers to buy a fixed amount");
        for Effect { then, .. } in self.closed.iter().flat_map(|closed| &closed.effects) {
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
