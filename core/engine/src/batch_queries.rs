//! Looking at batch markets. Nothing here changes anything but what is no part of the state.

use std::num::NonZero;
use std::sync::Arc;

use walras_batch::{Batch, BlockPlace, Outcomes, PoolView};
use walras_clearing::{BatchMarket, OfferKey, Pair, Rules};
use walras_order_book::PriceIndex;
use walras_types::limits::TRANSACTION_SEQ_END;
use walras_types::{AccountId, Amount, AssetId, BatchMarketId, BatchPhase, OfferName, PublicKey, QualityMax, TransactionSeq};
use walras_wire::BatchMarketSpec;

use crate::batches::{BatchMarketState, Batches, FeeInForce, LastBlock, rules};
use crate::engine::Engine;

/// A batch market as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchMarketView<'e> {
    /// Its definition, with the interval that is in force.
    pub spec: &'e BatchMarketSpec,
    /// Whether it takes transactions.
    pub phase: BatchPhase,
    /// Its assets; fixed once it was opened. Their places number them in clearings.
    pub assets: &'e [AssetId],
    /// How many of its assets are currencies, those that come first; `None` where all are.
    pub currencies: Option<u16>,
    /// What each account costs that a transaction opens.
    pub account_fee: FeeInForce,
    /// How many transactions the batch that collects has.
    pub collected: usize,
    /// The most accounts that transactions open which are collected, or in the block under way.
    pub accounts_to_come: usize,
    /// The number of the block that is next to be cleared, from 1.
    pub next_block: u64,
    /// The batch that is closed and waits to be cleared: it becomes block [`Self::next_block`].
    pub closed: Option<BlockPlace>,
    /// Whether a batch is closed or being closed, or its block is being carried out.
    pub is_under_way: bool,
    /// Whether it is known which transactions of that batch are kept.
    pub is_judged: bool,
    /// Whether steps of a block move funds now: what was taken from those who sell is not with those who buy yet.
    pub moves_funds: bool,
    /// What stands, of a closed batch with its new offers and without the cancelled ones; `None` before the first opening.
    pub market: Option<&'e BatchMarket>,
    /// The last block.
    pub last: Option<&'e LastBlock>,
    /// What came in the last block to each of its transactions and to each offer that it traded; `None` after a restore.
    pub outcomes: Option<&'e Arc<Outcomes>>,
}

impl BatchMarketView<'_> {
    /// The number of the block that the batch that collects becomes.
    #[must_use]
    pub fn collecting_block(&self) -> u64 {
        self.next_block + u64::from(self.is_under_way)
    }
}

impl<I: PriceIndex> Engine<I> {
    /// How many threads share the work of a block. Changes nothing but the time it takes.
    pub fn set_threads(&mut self, threads: NonZero<usize>) {
        self.batches.threads = threads;
    }

    /// Hashes all that batch markets commit to, which else the first block after a start or a restore does. Changes nothing but that time.
    pub fn prepare_batches(&mut self) {
        let Batches { accounts, markets, threads, .. } = &mut self.batches;
        // One market's block may have the tree that all need.
        markets.iter_mut().filter_map(|state| state.batch.as_mut()).for_each(|batch| batch.settle_trees(accounts, *threads));
        for batch in markets.iter_mut().filter_map(|state| state.batch.as_mut()) {
            batch.prepare(&mut self.ledger, accounts, *threads);
        }
    }

    /// All batch markets, by id.
    pub fn batch_markets(&self) -> impl ExactSizeIterator<Item = BatchMarketView<'_>> + '_ {
        self.batches.markets.iter().map(BatchMarketState::view)
    }

    /// One batch market.
    #[must_use]
    pub fn batch_market(&self, market: BatchMarketId) -> Option<BatchMarketView<'_>> {
        self.batches.market(market).ok().map(BatchMarketState::view)
    }

    /// What somebody needs who looks for a clearing of the batch that is closed: which block it is for, what stands, by which rules it is
    /// measured, how much it may leave undone. Nothing is copied. `None` when no batch is closed.
    #[must_use]
    pub fn batch_to_clear(&self, market: BatchMarketId) -> Option<(BlockPlace, Arc<BatchMarket>, Rules, QualityMax)> {
        let state = self.batches.market(market).ok()?;
        let batch = state.batch.as_ref()?;
        Some((batch.place_to_clear()?, batch.shared_market(), rules(&state.spec, state.edition), state.spec.quality))
    }

    /// The key that signs an account's transactions.
    #[must_use]
    pub fn transaction_key(&self, account: AccountId) -> Option<PublicKey> {
        self.batches.accounts.key(account)
    }

    /// The account whose key it is.
    #[must_use]
    pub fn account_of_key(&self, key: &PublicKey) -> Option<AccountId> {
        self.batches.accounts.account_of(key)
    }

    /// The highest number that a transaction of an account has used, in batches that are closed: the next may have any of the 64 after it
    /// that is not collected yet.
    #[must_use]
    pub fn last_transaction(&self, account: AccountId) -> TransactionSeq {
        self.batches.accounts.last(account)
    }

    /// The number after all that an account has used or that are collected.
    #[must_use]
    pub fn next_transaction(&self, account: AccountId) -> TransactionSeq {
        let name = |sequence| OfferName { account, sequence: TransactionSeq(sequence) }.number();
        let all = name(0)..=name(TRANSACTION_SEQ_END - 1);
        let of_market = |state: &BatchMarketState| {
            let collected = state.collected.names.range(all.clone()).next_back().map(|(name, _)| *name);
            collected.max(state.batch.as_ref().and_then(|batch| batch.last_waiting(all.clone())))
        };
        let names = self.batches.markets.iter().filter_map(of_market);
        let collected = names.map(|name| OfferName::of_number(name).sequence).max();
        TransactionSeq(self.last_transaction(account).max(collected.unwrap_or_default()).0 + 1)
    }

    /// Who may make and destroy units of an asset.
    #[must_use]
    pub fn issuer(&self, asset: AssetId) -> Option<AccountId> {
        self.batches.accounts.issuer(asset)
    }

    /// What an account was when the venue's last block ended, or that there was none, with the proof of it, as bytes
    /// ([`walras_batch::light`] reads them), and that block, whichever market's: its roots are what the proof is under. `None` before the first block,
    /// and when the account is another since; after a restore, when any is.
    #[must_use]
    pub fn account_statement(&self, account: AccountId) -> Option<(&LastBlock, Vec<u8>)> {
        let last = self.batches.markets.iter().filter_map(|state| state.last.as_ref()).max_by_key(|last| last.log_index)?;
        Some((last, self.batches.accounts.statement(&self.ledger, account, &last.roots)?))
    }

    /// The offer that stands under a key since the market's last block, or that none does, with the proof of it, as bytes, and that block. `None`
    /// while a batch is closed, for then the market is ahead of that root, and after a restore until [`Self::prepare_batches`] or the next block.
    #[must_use]
    pub fn offer_statement(&self, market: BatchMarketId, pair: Pair, key: &OfferKey) -> Option<(&LastBlock, Vec<u8>)> {
        let state = self.batches.market(market).ok()?;
        Some((state.last.as_ref()?, state.batch.as_ref()?.offer_statement(pair, key)?))
    }

    /// The pools of a batch market, in ascending order of their names; of a closed batch with what it asked. None before the first opening.
    pub fn pools(&self, market: BatchMarketId) -> impl Iterator<Item = PoolView> {
        let batch = self.batches.market(market).ok().and_then(|state| state.batch.as_ref());
        batch.into_iter().flat_map(Batch::pools)
    }

    /// A pool.
    #[must_use]
    pub fn pool(&self, market: BatchMarketId, name: OfferName) -> Option<PoolView> {
        self.batches.market(market).ok()?.batch.as_ref()?.pool(name)
    }

    /// An account's shares of a pool.
    #[must_use]
    pub fn pool_shares(&self, market: BatchMarketId, pool: OfferName, account: AccountId) -> Amount {
        let batch = self.batches.market(market).ok().and_then(|state| state.batch.as_ref());
        batch.map_or(Amount::ZERO, |batch| batch.pool_shares(pool, account))
    }

    /// How much of an asset pools hold; zero when there is no such asset.
    #[must_use]
    pub fn pooled(&self, asset: AssetId) -> Amount {
        self.ledger.pooled(asset).unwrap_or_default()
    }

    /// A pool since the market's last block, or an account's shares of it, or that there is none, with the proof of it, as bytes, and that
    /// block. `None` as [`Self::offer_statement`].
    #[must_use]
    pub fn pool_statement(
        &self,
        market: BatchMarketId,
        pool: OfferName,
        provider: Option<AccountId>,
    ) -> Option<(&LastBlock, Vec<u8>)> {
        let state = self.batches.market(market).ok()?;
        Some((state.last.as_ref()?, state.batch.as_ref()?.pool_statement(pool, provider)?))
    }

    /// The pair of two assets in a batch market, one of them a currency.
    #[must_use]
    pub fn batch_pair(&self, market: BatchMarketId, sell: AssetId, buy: AssetId) -> Option<Pair> {
        self.batches.market(market).ok()?.batch.as_ref()?.pair(sell, buy)
    }
}

impl BatchMarketState {
    fn view(&self) -> BatchMarketView<'_> {
        let batch = self.batch.as_ref();
        BatchMarketView {
            spec: &self.spec,
            phase: self.phase,
            assets: &self.assets,
            currencies: self.currencies,
            account_fee: self.account_fee,
            collected: self.collected.transactions.len(),
            accounts_to_come: self.collected.accounts + batch.map_or(0, walras_batch::Batch::accounts_to_come),
            next_block: batch.map_or(1, walras_batch::Batch::number),
            closed: batch.and_then(walras_batch::Batch::place_to_clear),
            is_judged: batch.is_some_and(walras_batch::Batch::is_judged),
            moves_funds: batch.is_some_and(walras_batch::Batch::moves_funds),
            is_under_way: batch.is_some_and(walras_batch::Batch::is_under_way),
            market: batch.map(walras_batch::Batch::market),
            last: self.last.as_ref(),
            outcomes: self.outcomes.as_ref(),
        }
    }
}
