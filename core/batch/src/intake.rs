//! What one account may do in a block: its transactions one by one against what it had when the block began.

use std::collections::{BTreeMap, BTreeSet};

use walras_clearing::{BatchMarket, Offer, OfferId, OfferKey, Pair};
use walras_types::limits::{AMOUNT_MAX, POOL_FEE_PPM_MAX, POOL_RESERVE_MIN, TRANSACTION_SEQ_END, TRANSACTIONS_PER_ACCOUNT_MAX};
use walras_types::{
    AccountFee, AccountId, Amount, AssetId, BatchOperation, BatchTransaction, CancelOffer, CreateOffer, CreatePool, IssuedAmount,
    OfferName, Payment, PublicKey, TransactionSeq,
};
use walras_wire::batch::encode_transaction;

use crate::closed::NewKey;
use crate::effects::{Effect, Then};
use crate::keys::Keys;
use crate::pools::{PoolChange, PoolChangeKind, PoolView, Pools};
use crate::settings::{AssetTable, BatchSettings};
use walras_types::DropReason;

/// The state when a block begins, less what threads change: balances and last numbers.
pub(crate) struct View<'a> {
    pub(crate) settings: &'a BatchSettings,
    pub(crate) table: &'a AssetTable,
    pub(crate) market: &'a BatchMarket,
    pub(crate) keys: &'a Keys,
    pub(crate) suspended: &'a BTreeSet<AccountId>,
    /// Accounts that set no key in this block: see [`crate::Batch::keep_keys`].
    pub(crate) keys_kept: &'a BTreeSet<AccountId>,
    pub(crate) issuers: &'a BTreeMap<AssetId, AccountId>,
    /// By asset of the ledger.
    pub(crate) supply: Vec<Amount>,
    pub(crate) account_count: u32,
    /// Whether all accounts that the batch asks for can be created.
    pub(crate) has_room: bool,
    /// Whose the market's pools are.
    pub(crate) pools: &'a Pools,
    /// Names of transactions for whose pools there is no room, in ascending order.
    pub(crate) pools_refused: Vec<u64>,
    /// Keys that no transaction gets, in ascending order.
    pub(crate) keys_refused: &'a [PublicKey],
    /// The block's number.
    pub(crate) block: u64,
}

/// What transactions of one account used up so far.
#[derive(Clone, Default)]
pub(crate) struct Taken {
    /// A bit for each number of the window.
    numbers: u64,
    debits: Vec<Debit>,
    issued: Vec<(AssetId, u64)>,
    cancelled: Vec<OfferId>,
    /// Whether the account's key is set.
    sets_key: bool,
    /// Shares that are given back of each pool, by its name.
    given_back: Vec<(u64, Amount)>,
}

#[derive(Clone, Copy)]
pub(crate) struct Debit {
    pub(crate) asset: AssetId,
    pub(crate) total: Amount,
    left: Amount,
}

impl Taken {
    pub(crate) fn clear(&mut self) {
        self.numbers = 0;
        self.debits.clear();
        self.issued.clear();
        self.cancelled.clear();
        self.sets_key = false;
        self.given_back.clear();
    }

    /// What is spent of each asset.
    pub(crate) fn debits(&self) -> &[Debit] {
        &self.debits
    }

    /// Takes from what is left of an asset: subtracts before it adds, so that no sum can overflow.
    fn debit(&mut self, asset: AssetId, amount: Amount, available: impl FnOnce() -> Option<Amount>) -> Result<(), DropReason> {
        if let Some(debit) = self.debits.iter_mut().find(|debit| debit.asset == asset) {
            debit.left = debit.left.checked_sub(amount).ok_or(DropReason::Overdraft)?;
            // At most what was available.
            debit.total = debit.total.checked_add(amount).ok_or(DropReason::Overdraft)?;
            return Ok(());
        }
        let left = available().and_then(|all| all.checked_sub(amount)).ok_or(DropReason::Overdraft)?;
        self.debits.push(Debit { asset, total: amount, left });
        Ok(())
    }

    /// Takes several amounts, or none where there is not enough for all.
    fn debit_all(&mut self, all: &[(AssetId, Amount)], available: impl Fn(AssetId) -> Option<Amount>) -> Result<(), DropReason> {
        for (asset, _) in all {
            let asked: u128 = all.iter().filter(|(of, _)| of == asset).map(|(_, amount)| u128::from(amount.get())).sum();
            let known = self.debits.iter().find(|debit| debit.asset == *asset).map(|debit| debit.left);
            let left = known.or_else(|| available(*asset)).ok_or(DropReason::Overdraft)?;
            if u128::from(left.get()) < asked {
                return Err(DropReason::Overdraft);
            }
        }
        all.iter().try_for_each(|(asset, amount)| self.debit(*asset, *amount, || available(*asset)))
    }

    pub(crate) fn give_back(&mut self, pool: u64, shares: Amount, of_account: Amount) -> Result<(), DropReason> {
        let at = self.given_back.iter().position(|(of, _)| *of == pool);
        let before = at.map_or(Amount::ZERO, |at| self.given_back[at].1);
        let total = before.checked_add(shares).filter(|total| *total <= of_account).ok_or(DropReason::SharesOverdrawn)?;
        match at {
            Some(at) => self.given_back[at].1 = total,
            None => self.given_back.push((pool, total)),
        }
        Ok(())
    }

    fn issue(&mut self, asset: AssetId, amount: Amount, supply: Amount) -> Result<(), DropReason> {
        let at = self.issued.iter().position(|(of, _)| *of == asset);
        let before = at.map_or(0, |at| self.issued[at].1);
        // Both at most 2^63 - 1, and so is the sum that is kept.
        let total = before + amount.get();
        if total > AMOUNT_MAX - supply.get() {
            return Err(DropReason::SupplyOverflow);
        }
        match at {
            Some(at) => self.issued[at].1 = total,
            None => self.issued.push((asset, total)),
        }
        Ok(())
    }
}

/// What kept transactions come to, in the order of (account, number).
#[derive(Default)]
pub(crate) struct Outcome {
    /// The bytes that are hashed.
    pub(crate) bytes: Vec<u8>,
    /// New offers, without a tie-break yet, and the numbers of their pairs.
    pub(crate) offers: Vec<Offer>,
    pub(crate) offer_pairs: Vec<u32>,
    /// Cancelled offers, and the numbers of their pairs.
    pub(crate) cancelled: Vec<OfferKey>,
    pub(crate) cancelled_pairs: Vec<u32>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) pool_changes: Vec<PoolChange>,
    /// Those effects for which units have to be made.
    pub(crate) issues: Vec<Effect>,
    /// Of accounts to be created.
    pub(crate) keys: Vec<PublicKey>,
    /// Of accounts that get another one.
    pub(crate) new_keys: Vec<NewKey>,
    /// Who sent how many that are kept.
    pub(crate) senders: Vec<(AccountId, u32)>,
    pub(crate) dropped: Vec<(u32, DropReason)>,
}

/// Where an outcome stood.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    offers: usize,
    cancelled: usize,
    effects: usize,
    pool_changes: usize,
    issues: usize,
    keys: usize,
    new_keys: usize,
}

impl Outcome {
    /// Keys that accounts are to have.
    pub(crate) fn all_keys(&self) -> impl Iterator<Item = &PublicKey> {
        self.keys.iter().chain(self.new_keys.iter().map(|new| &new.key))
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            offers: self.offers.len(),
            cancelled: self.cancelled.len(),
            effects: self.effects.len(),
            pool_changes: self.pool_changes.len(),
            issues: self.issues.len(),
            keys: self.keys.len(),
            new_keys: self.new_keys.len(),
        }
    }

    pub(crate) fn rewind(&mut self, mark: Mark) {
        self.offers.truncate(mark.offers);
        self.offer_pairs.truncate(mark.offers);
        self.cancelled.truncate(mark.cancelled);
        self.cancelled_pairs.truncate(mark.cancelled);
        self.effects.truncate(mark.effects);
        self.pool_changes.truncate(mark.pool_changes);
        self.issues.truncate(mark.issues);
        self.keys.truncate(mark.keys);
        self.new_keys.truncate(mark.new_keys);
    }

    /// Adds the bytes of a transaction that is kept for good.
    pub(crate) fn keep(&mut self, transaction: &BatchTransaction) {
        encode_transaction(transaction, &mut self.bytes);
    }
}

/// Whether an account whose highest number was `last` may use this one, and which of its window it is.
pub(crate) fn window_place(last: u64, sequence: TransactionSeq) -> Option<u32> {
    let place = sequence.0.checked_sub(last)?.checked_sub(1)?;
    // Below 64.
    (place < TRANSACTIONS_PER_ACCOUNT_MAX && sequence.0 < TRANSACTION_SEQ_END).then_some(place as u32)
}

fn cancelled_key(account: AccountId, cancel: &CancelOffer) -> OfferKey {
    let id = OfferId(OfferName { account, sequence: cancel.sequence }.number());
    OfferKey { limit: cancel.limit, tie: cancel.tie, id }
}

impl View<'_> {
    /// Takes one more transaction of an account, or says why not and changes nothing. `standing` is what the offer has that it cancels: see
    /// [`Self::cancels`].
    #[inline]
    pub(crate) fn take(
        &self,
        transaction: &BatchTransaction,
        last: u64,
        taken: &mut Taken,
        available: impl Fn(AssetId) -> Option<Amount>,
        standing: impl FnOnce() -> Option<Amount>,
        outcome: &mut Outcome,
    ) -> Result<(), DropReason> {
        let BatchTransaction { account, sequence, terms, operation } = transaction;
        let number = 1 << window_place(last, *sequence).ok_or(DropReason::SequenceOutOfWindow)?;
        if taken.numbers & number != 0 {
            return Err(DropReason::SequenceTwice);
        }
        if !terms.allow(self.block) {
            return Err(DropReason::Expired);
        }
        let name = || OfferName { account: *account, sequence: *sequence };
        match operation {
            BatchOperation::CreateAccount(key) => {
                self.check_key(key)?;
                if !self.has_room {
                    return Err(DropReason::TooManyAccounts);
                }
                if let Some(AccountFee { asset, amount }) = self.settings.account_fee {
                    taken.debit(asset, amount, || available(asset))?;
                    outcome.effects.push(Effect { asset, account: *account, amount, then: Then::AccountFee });
                }
                outcome.keys.push(*key);
            }
            BatchOperation::CreateOffer(create) => {
                let pair = self.pair(create.market, create.sell, create.buy)?;
                let CreateOffer { sell, amount, limit, .. } = *create;
                if amount.is_zero() {
                    return Err(DropReason::ZeroAmount);
                }
                let id = OfferId(OfferName { account: *account, sequence: *sequence }.number());
                let offer = Offer::new(limit, 0, id, amount).map_err(|_| DropReason::Unfillable)?;
                taken.debit(sell, amount, || available(sell))?;
                outcome.offers.push(offer);
                outcome.offer_pairs.push(self.table.number(pair));
            }
            BatchOperation::CancelOffer(cancel) => self.cancel(*account, cancel, standing, taken, outcome)?,
            BatchOperation::Payment(Payment { to, asset, amount }) => {
                self.check_amount(*asset, *amount)?;
                if to == account {
                    return Err(DropReason::PaysItself);
                }
                if to.0 >= self.account_count {
                    return Err(DropReason::UnknownRecipient);
                }
                taken.debit(*asset, *amount, || available(*asset))?;
                outcome.effects.push(Effect { asset: *asset, account: *account, amount: *amount, then: Then::Paid(*to) });
            }
            BatchOperation::Issue(IssuedAmount { asset, amount }) => {
                self.check_issuer(*account, *asset, *amount)?;
                taken.issue(*asset, *amount, self.supply[asset.0 as usize])?;
                let issue = Effect { asset: *asset, account: *account, amount: *amount, then: Then::Issued };
                outcome.effects.push(issue);
                outcome.issues.push(issue);
            }
            BatchOperation::Burn(IssuedAmount { asset, amount }) => {
                self.check_issuer(*account, *asset, *amount)?;
                taken.debit(*asset, *amount, || available(*asset))?;
                outcome.effects.push(Effect { asset: *asset, account: *account, amount: *amount, then: Then::Burnt });
            }
            BatchOperation::CreatePool(create) => self.create_pool(name(), create, taken, available, outcome)?,
            BatchOperation::DepositToPool(deposit) => {
                let pool = self.pool(deposit.market, deposit.pool)?;
                let (shares, amounts) = pool.bought_by(deposit.amounts).ok_or(DropReason::DepositTooSmall)?;
                let assets = self.assets_of(&pool);
                taken.debit_all(&[(assets[0], amounts[0]), (assets[1], amounts[1])], available)?;
                let kind = PoolChangeKind::Deposited;
                outcome.pool_changes.push(PoolChange { pool: pool.name, kind, by: name(), assets, amounts, shares });
            }
            BatchOperation::WithdrawFromPool(withdraw) => {
                let pool = self.pool(withdraw.market, withdraw.pool)?;
                let shares = withdraw.shares;
                if shares.is_zero() {
                    return Err(DropReason::ZeroAmount);
                }
                taken.give_back(pool.name.number(), shares, self.pools.shares(pool.name, *account))?;
                let (kind, assets, amounts) = (PoolChangeKind::Withdrawn, self.assets_of(&pool), pool.worth(shares));
                outcome.pool_changes.push(PoolChange { pool: pool.name, kind, by: name(), assets, amounts, shares });
            }
            BatchOperation::SetKey(key) => {
                if self.keys_kept.contains(account) {
                    return Err(DropReason::KeyReplaced);
                }
                self.check_key(key)?;
                if std::mem::replace(&mut taken.sets_key, true) {
                    return Err(DropReason::KeySetTwice);
                }
                outcome.new_keys.push(NewKey { by: name(), key: *key });
            }
        }
        taken.numbers |= number;
        Ok(())
    }

    pub(crate) fn create_pool(
        &self,
        name: OfferName,
        create: &CreatePool,
        taken: &mut Taken,
        available: impl Fn(AssetId) -> Option<Amount>,
        outcome: &mut Outcome,
    ) -> Result<(), DropReason> {
        let CreatePool { market, assets, rule, fee_ppm, amounts } = *create;
        self.pair(market, assets[0], assets[1])?;
        if !rule.is_possible() || fee_ppm > POOL_FEE_PPM_MAX {
            return Err(DropReason::PoolTerms);
        }
        let shares = amounts[0].min(amounts[1]);
        if shares.get() < POOL_RESERVE_MIN {
            return Err(DropReason::PoolTooSmall);
        }
        if self.pools_refused.binary_search(&name.number()).is_ok() {
            return Err(DropReason::TooManyPools);
        }
        let mut debits = vec![(assets[0], amounts[0]), (assets[1], amounts[1])];
        // A pool that nobody needs costs the others time, as an account does.
        let fee = self.settings.account_fee;
        debits.extend(fee.map(|fee| (fee.asset, fee.amount)));
        taken.debit_all(&debits, available)?;
        outcome.effects.extend(fee.map(|fee| {
            let AccountFee { asset, amount } = fee;
            Effect { asset, account: name.account, amount, then: Then::AccountFee }
        }));
        let kind = PoolChangeKind::Created { rule, fee_ppm };
        outcome.pool_changes.push(PoolChange { pool: name, kind, by: name, assets, amounts, shares });
        Ok(())
    }

    pub(crate) fn pool(&self, market: walras_types::BatchMarketId, name: OfferName) -> Result<PoolView, DropReason> {
        if market != self.settings.market {
            return Err(DropReason::UnknownMarket);
        }
        let is_name = name.sequence.0 < TRANSACTION_SEQ_END;
        let place = self.pools.place(name).filter(|_| is_name).ok_or(DropReason::UnknownPool)?;
        Ok(self.pools.view(self.market, place))
    }

    pub(crate) fn assets_of(&self, pool: &PoolView) -> [AssetId; 2] {
        pool.pool.assets.map(|index| self.settings.assets[index.index()])
    }

    /// Whether an account can have this key.
    fn check_key(&self, key: &PublicKey) -> Result<(), DropReason> {
        if self.keys.is_taken(key) {
            return Err(DropReason::KeyTaken);
        }
        if self.keys_refused.binary_search(key).is_ok() {
            return Err(DropReason::KeyTwice);
        }
        Ok(())
    }

    /// The offer that a transaction cancels, if it may stand.
    pub(crate) fn cancels(&self, transaction: &BatchTransaction) -> Option<(Pair, OfferKey)> {
        match transaction.operation {
            BatchOperation::CancelOffer(cancel) if cancel.sequence.0 < TRANSACTION_SEQ_END => {
                let pair = self.pair(cancel.market, cancel.sell, cancel.buy).ok()?;
                Some((pair, cancelled_key(transaction.account, &cancel)))
            }
            _ => None,
        }
    }

    /// What the offer has that a transaction cancels.
    pub(crate) fn standing(&self, transaction: &BatchTransaction) -> Option<Amount> {
        let (pair, key) = self.cancels(transaction)?;
        Some(self.market.book(pair)?.sells().get(&key)?.amount())
    }

    pub(crate) fn cancel(
        &self,
        account: AccountId,
        cancel: &CancelOffer,
        standing: impl FnOnce() -> Option<Amount>,
        taken: &mut Taken,
        outcome: &mut Outcome,
    ) -> Result<(), DropReason> {
        let pair = self.pair(cancel.market, cancel.sell, cancel.buy)?;
        let key = cancelled_key(account, cancel);
        let id = key.id;
        let amount = standing().ok_or(DropReason::UnknownOffer)?;
        if taken.cancelled.contains(&id) {
            return Err(DropReason::CancelledTwice);
        }
        taken.cancelled.push(id);
        outcome.cancelled.push(key);
        outcome.cancelled_pairs.push(self.table.number(pair));
        let then = Then::Cancelled { buy: cancel.buy, sequence: cancel.sequence };
        outcome.effects.push(Effect { asset: cancel.sell, account, amount, then });
        Ok(())
    }

    pub(crate) fn pair(&self, market: walras_types::BatchMarketId, sell: AssetId, buy: AssetId) -> Result<Pair, DropReason> {
        if market != self.settings.market {
            return Err(DropReason::UnknownMarket);
        }
        let index = |asset: AssetId| self.table.index(asset).filter(|_| (asset.0 as usize) < self.supply.len());
        let (sell, buy) = index(sell).zip(index(buy)).ok_or(DropReason::UnknownAsset)?;
        self.table.check(Pair { sell, buy })
    }

    fn check_amount(&self, asset: AssetId, amount: Amount) -> Result<(), DropReason> {
        if asset.0 as usize >= self.supply.len() {
            return Err(DropReason::UnknownAsset);
        }
        if amount.is_zero() { Err(DropReason::ZeroAmount) } else { Ok(()) }
    }

    fn check_issuer(&self, account: AccountId, asset: AssetId, amount: Amount) -> Result<(), DropReason> {
        self.check_amount(asset, amount)?;
        if self.issuers.get(&asset) == Some(&account) { Ok(()) } else { Err(DropReason::NotIssuer) }
    }
}
