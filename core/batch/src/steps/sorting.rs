//! What kept transactions come to, found from their bytes; and the market with their offers.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::sync::Arc;

use walras_clearing::{BatchMarket, Offer, OfferId, TieBreak};
use walras_types::limits::ASSETS_MAX;
use walras_types::{
    AccountFee, AccountId, Amount, AssetId, BatchOperation, BatchTransaction, CreateOffer, IssuedAmount, OfferName, Payment,
};
use walras_wire::batch::{TRANSACTION_BYTES_MAX, decode_next_transaction};

use super::job::{BlockJob, Job};
use super::judging::Collected;
use super::{Stage, Stepped};
use crate::batch::Batch;
use crate::close::{change_market, tied};
use crate::closed::{ClosedBatch, NewKey};
use crate::effects::{self, Effect, Then};
use crate::intake::{Outcome, Taken, View};
use crate::keys::Keys;
use crate::pools::{PoolChange, PoolChangeKind, Pools};
use crate::settings::{AssetTable, BatchSettings};

#[derive(Clone, Debug)]
pub(crate) struct Sorting {
    batch_hash: [u8; 32],
    pub(super) account_fee: Option<AccountFee>,
    pub(super) kept: Arc<Vec<u8>>,
    pub(super) kept_count: u32,
    /// Of these bytes, how many belong to transactions whose offers were announced.
    pub(super) opened: usize,
    /// The most accounts that it opens.
    pub(super) accounts: usize,
    job: Arc<Job<Sorted>>,
}

/// The market with a batch's offers.
struct Sorted {
    closed: Arc<ClosedBatch>,
    market: Arc<BatchMarket>,
    pools: Arc<Pools>,
}

/// What kept transactions are read with: the market before them.
struct Before {
    settings: BatchSettings,
    table: AssetTable,
    market: Arc<BatchMarket>,
    pools: Arc<Pools>,
}

impl Sorting {
    /// `batch` is let go by the job: its end takes time.
    pub(super) fn new(
        market: &Batch,
        batch: Option<Arc<Collected>>,
        account_fee: Option<AccountFee>,
        kept: Arc<Vec<u8>>,
        kept_count: u32,
        batch_hash: [u8; 32],
        opened: usize,
    ) -> Self {
        let (before, of_job) = (Before::of(market, account_fee), Arc::clone(&kept));
        let job = Job::new(move |threads| {
            drop(batch);
            before.sorted(of_job, kept_count, batch_hash, threads)
        });
        Self { batch_hash, account_fee, kept, kept_count, opened, accounts: 0, job }
    }

    pub(super) fn job(&self) -> BlockJob {
        BlockJob::new(&self.job)
    }

    /// How many steps do not wait.
    pub(super) fn ready_count(&self, units: NonZero<usize>) -> usize {
        match self.kept.len() - self.opened {
            0 => usize::from(self.job.is_done()),
            left => 1 + left / (units.get() * TRANSACTION_BYTES_MAX + 1),
        }
    }
}

impl Before {
    fn of(market: &Batch, account_fee: Option<AccountFee>) -> Self {
        let settings = BatchSettings { account_fee, ..market.settings.clone() };
        let (table, pools) = (market.table.clone(), Arc::clone(&market.pools));
        Self { settings, table, market: Arc::clone(&market.market), pools }
    }

    /// What they come to; `None` where they cannot have been kept.
    fn outcome(&self, kept: &[u8]) -> Option<Outcome> {
        let (keys, suspended, keys_kept, issuers) = (Keys::default(), BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
        let view = View {
            settings: &self.settings,
            table: &self.table,
            market: &self.market,
            keys: &keys,
            suspended: &suspended,
            keys_kept: &keys_kept,
            issuers: &issuers,
            supply: vec![Amount::ZERO; ASSETS_MAX as usize],
            account_count: u32::MAX,
            has_room: true,
            pools: &self.pools,
            pools_refused: Vec::new(),
            keys_refused: &[],
            block: 0,
        };
        let (mut outcome, mut taken, mut rest) = (Outcome::default(), Taken::default(), kept);
        while !rest.is_empty() {
            let (transaction, length) = decode_next_transaction(rest).ok()?;
            rest = &rest[length..];
            match outcome.senders.last_mut().filter(|(sender, _)| *sender == transaction.account) {
                Some((_, count)) => *count += 1,
                None => {
                    taken.clear();
                    outcome.senders.push((transaction.account, 1));
                }
            }
            view.take_again(&transaction, &mut taken, &mut outcome)?;
        }
        Some(outcome)
    }

    fn sorted(self, kept: Arc<Vec<u8>>, kept_count: u32, batch_hash: [u8; 32], threads: NonZero<usize>) -> Sorted {
        let outcome = self.outcome(&kept).expect("what was kept was good");
        let mut market = BatchMarket::clone(&self.market);
        let outcomes = [outcome];
        let (added, removed) = change_market(&self.table, &mut market, &outcomes, &TieBreak::new(&batch_hash), threads);
        let [outcome] = outcomes;
        let (mut pools, mut pool_changes) = (self.pools, outcome.pool_changes);
        if !pool_changes.is_empty() {
            let index = |asset: AssetId| self.table.index(asset).expect("a pool is of the market's assets");
            Arc::make_mut(&mut pools).change(&mut market, &mut pool_changes, &index);
        }
        let closed = ClosedBatch {
            batch_hash,
            kept_count,
            transactions: kept,
            account_fee: self.settings.account_fee,
            effects: effects::by_asset(ASSETS_MAX, &[&outcome.effects]),
            pool_changes,
            keys: outcome.keys,
            new_keys: outcome.new_keys,
            senders: outcome.senders,
            added,
            removed,
        };
        Sorted { closed: Arc::new(closed), market: Arc::new(market), pools }
    }
}

impl View<'_> {
    /// Takes a transaction that was found good, whatever its account has now. `None` where it cannot have been.
    fn take_again(&self, transaction: &BatchTransaction, taken: &mut Taken, outcome: &mut Outcome) -> Option<()> {
        let BatchTransaction { account, sequence, operation, .. } = transaction;
        let (account, name) = (*account, OfferName { account: *account, sequence: *sequence });
        let all = |_: AssetId| Some(Amount::MAX);
        let mut effect = |asset, amount, then| outcome.effects.push(Effect { asset, account, amount, then });
        match operation {
            BatchOperation::CreateAccount(key) => {
                if let Some(AccountFee { asset, amount }) = self.settings.account_fee {
                    effect(asset, amount, Then::AccountFee);
                }
                outcome.keys.push(*key);
            }
            BatchOperation::SetKey(key) => outcome.new_keys.push(NewKey { by: name, key: *key }),
            BatchOperation::CreateOffer(create) => {
                let (pair, offer) = self.offer_of(name, create)?;
                outcome.offers.push(offer);
                outcome.offer_pairs.push(self.table.number(pair));
            }
            BatchOperation::CancelOffer(cancel) => {
                self.cancel(account, cancel, || self.standing(transaction), taken, outcome).ok()?;
            }
            BatchOperation::Payment(Payment { to, asset, amount }) => effect(*asset, *amount, Then::Paid(*to)),
            BatchOperation::Issue(IssuedAmount { asset, amount }) => effect(*asset, *amount, Then::Issued),
            BatchOperation::Burn(IssuedAmount { asset, amount }) => effect(*asset, *amount, Then::Burnt),
            BatchOperation::CreatePool(create) => {
                self.create_pool(name, create, &mut Taken::default(), all, outcome).ok()?;
            }
            BatchOperation::DepositToPool(deposit) => {
                let pool = self.pool(deposit.market, deposit.pool).ok()?;
                let (shares, amounts) = pool.bought_by(deposit.amounts)?;
                let (kind, assets) = (PoolChangeKind::Deposited, self.assets_of(&pool));
                outcome.pool_changes.push(PoolChange { pool: pool.name, kind, by: name, assets, amounts, shares });
            }
            BatchOperation::WithdrawFromPool(withdraw) => {
                let pool = self.pool(withdraw.market, withdraw.pool).ok()?;
                let shares = withdraw.shares;
                taken.give_back(pool.name.number(), shares, self.pools.shares(pool.name, account)).ok()?;
                let (kind, assets, amounts) = (PoolChangeKind::Withdrawn, self.assets_of(&pool), pool.worth(shares));
                outcome.pool_changes.push(PoolChange { pool: pool.name, kind, by: name, assets, amounts, shares });
            }
        }
        Some(())
    }

    fn offer_of(&self, name: OfferName, create: &CreateOffer) -> Option<(walras_clearing::Pair, Offer)> {
        let pair = self.pair(create.market, create.sell, create.buy).ok()?;
        Some((pair, Offer::new(create.limit, 0, OfferId(name.number()), create.amount).ok()?))
    }
}

impl Batch {
    /// What is kept of a batch that is being closed.
    pub(super) fn kept_in_steps(&self) -> Option<Outcome> {
        match &self.steps.stage {
            Stage::Judging(judging) => Before::of(self, judging.account_fee).outcome(&judging.kept),
            Stage::Sorting(sorting) => Before::of(self, sorting.account_fee).outcome(&sorting.kept),
            _ => None,
        }
    }

    /// Whether so many transactions of these accounts, in ascending order, can have been kept.
    pub(super) fn can_be_kept(&self, kept: &[u8], account_fee: Option<AccountFee>) -> Option<Outcome> {
        let (mut rest, mut last) = (kept, None::<(AccountId, _)>);
        while !rest.is_empty() {
            let (BatchTransaction { account, sequence, .. }, length) = decode_next_transaction(rest).ok()?;
            rest = &rest[length..];
            if last.replace((account, sequence)).is_some_and(|last| last >= (account, sequence)) {
                return None;
            }
        }
        Before::of(self, account_fee).outcome(kept)
    }

    pub(super) fn sort_some(&mut self, mut sorting: Box<Sorting>, units: NonZero<usize>, threads: NonZero<usize>) -> Stepped {
        if sorting.opened < sorting.kept.len() {
            let opened = self.opened_next(&mut sorting, units);
            self.steps.stage = Stage::Sorting(sorting);
            return Stepped::Opened(opened);
        }
        let Sorted { closed, market, pools } = sorting.job.result(threads);
        (self.closed, self.pools) = (Some(Arc::clone(closed)), Arc::clone(pools));
        self.steps.spent = Some(std::mem::replace(&mut self.market, Arc::clone(market)));
        Stepped::Closed
    }

    /// The offers of the next transactions that were kept.
    fn opened_next(&self, sorting: &mut Sorting, units: NonZero<usize>) -> Vec<(walras_clearing::Pair, Offer)> {
        let ties = TieBreak::new(&sorting.batch_hash);
        let mut opened = Vec::with_capacity(units.get());
        for _ in 0..units.get() {
            let rest = &sorting.kept[sorting.opened..];
            if rest.is_empty() {
                break;
            }
            let (transaction, length) = decode_next_transaction(rest).expect("what is kept was encoded here");
            sorting.opened += length;
            if let BatchOperation::CreateOffer(CreateOffer { sell, buy, amount, limit, .. }) = transaction.operation {
                let name = OfferName { account: transaction.account, sequence: transaction.sequence };
                let pair = self.pair(sell, buy).expect("what is kept is of the market's assets");
                let offer = Offer::new(limit, 0, OfferId(name.number()), amount).expect("what is kept is an offer");
                opened.push((pair, tied(&ties, offer)));
            }
        }
        opened
    }
}
