//! A market and accounts as bytes and back: little endian, one encoding per state. Hashes are not among them: they are made anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use walras_clearing::{AssetIndex, BatchMarket, Edition, LowerBounds, Offer, OfferId, Pair, Pairs, Pool, PoolSide, Rules};
use walras_ledger::Ledger;
use walras_types::limits::{
    ACCOUNTS_MAX, ASSETS_MAX, BATCH_TRANSACTIONS_MAX, POOLS_MAX, TRANSACTION_SEQ_BITS, TRANSACTION_SEQ_END,
};
use walras_types::{
    AccountFee, AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, Commission, Mu, OfferName,
    PoolRule, PublicKey, QualityMax, TransactionSeq,
};
use walras_wire::batch::{TRANSACTION_BYTES_MAX, decode_next_transaction};

use crate::accounts::Accounts;
use crate::batch::Batch;
use crate::closed::{ClosedBatch, NewKey};
use crate::effects::{Effect, Then};
use crate::gather::ByPair;
use crate::pool_entries::{POOL_BYTES, pool_content};
use crate::pools::{PoolChange, PoolChangeKind, PoolHead, Pools, Provider};
use crate::settings::BatchSettings;

/// How a market is written: what later versions of the engine have is not in the bytes of earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarketForm {
    /// Without the counts of pools and of pool changes: there may be none.
    WithoutPools,
    /// Without steps: none may be under way.
    Pools,
    /// Without accounts that keep their keys: there may be none.
    Steps,
    /// All.
    KeysKept,
}

impl MarketForm {
    const fn has_pools(self) -> bool {
        matches!(self, Self::Pools | Self::Steps | Self::KeysKept)
    }

    const fn has_steps(self) -> bool {
        matches!(self, Self::Steps | Self::KeysKept)
    }

    /// Whether accounts that keep their keys are written.
    #[must_use]
    pub const fn has_keys_kept(self) -> bool {
        matches!(self, Self::KeysKept)
    }
}

/// Why bytes are no market or no accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// Too few or too many bytes for the counts they announce.
    #[error("the bytes are cut, or longer than they say: use another snapshot")]
    Length,
    /// A number beyond its limit, or one that stands for nothing.
    #[error("the bytes hold a number beyond its limit: use another snapshot")]
    OutOfRange,
    /// Something is out of order, or there twice.
    #[error("the bytes are not in the order in which a snapshot writes them: use another snapshot")]
    Order,
    /// Its parts contradict each other.
    #[error("the bytes contradict each other ({0}): use another snapshot")]
    Contradiction(&'static str),
}

/// Checks that restored markets, accounts and ledger go together, so that no block of them can fail. What each account has reserved is left to
/// the caller, who knows what else it is reserved for: see [`Batch::for_each_reserved`].
///
/// # Errors
/// [`RestoreError::Contradiction`].
pub fn check_restored<'b>(
    batches: impl Iterator<Item = &'b Batch>,
    accounts: &Accounts,
    ledger: &Ledger,
) -> Result<(), RestoreError> {
    let is = |is: bool, what: &'static str| if is { Ok(()) } else { Err(RestoreError::Contradiction(what)) };
    let known = |account: AccountId| account.0 < ledger.account_count();
    let issued = |(asset, issuer): (&AssetId, &AccountId)| asset.0 < ledger.asset_count() && known(*issuer);
    is(accounts.last.len() <= ledger.account_count() as usize, "more numbers than accounts")?;
    is(accounts.suspended.iter().all(|account| known(*account)), "a suspended account")?;
    is(accounts.issuers.iter().all(issued), "an issuer")?;
    let mut pending = BTreeSet::new();
    let mut pooled = BTreeMap::<AssetId, i128>::new();
    for batch in batches {
        let mut named = batch.settings.assets.iter().copied().chain(batch.settings.account_fee.map(|fee| fee.asset));
        is(named.all(|asset| asset.0 < ledger.asset_count()), "a market's asset")?;
        let of_pool = |head: &PoolHead| OfferName::of_number(head.name);
        let mut names = batch.pools.heads.iter().map(of_pool);
        is(names.all(|name| known(name.account) && name.sequence <= accounts.last(name.account)), "a pool's name")?;
        is(batch.pools.providers.iter().all(|provider| known(provider.account)), "a provider")?;
        batch.for_each_pooled(|asset, units| *pooled.entry(asset).or_default() += units);
        let names = batch.market.books().iter().flat_map(|book| book.sells().as_slice());
        let mut names = names.map(|offer| OfferName::of_number(offer.key().id.0));
        is(names.all(|name| known(name.account) && name.sequence <= accounts.last(name.account)), "an offer's name")?;
        is(batch.keys_to_come().into_iter().all(|key| pending.insert(key)), "a key that two accounts are to have")?;
        is(batch.keys_kept.iter().all(|account| known(*account)), "an account that keeps its key")?;
        let Some(closed) = &batch.closed else { continue };
        let effect = |Effect { asset, account, then, .. }: &Effect| {
            asset.0 < ledger.asset_count() && known(*account) && !matches!(then, Then::Paid(to) if !known(*to))
        };
        is(closed.effects.iter().all(effect), "an effect's account or asset")?;
        is(closed.senders.iter().all(|(account, count)| known(*account) && *count > 0), "a sender")?;
        let sent: u64 = closed.senders.iter().map(|(_, count)| u64::from(*count)).sum();
        is(sent == u64::from(closed.kept_count), "how many transactions are kept")?;
        let mut paid = closed.effects.iter().filter(|effect| effect.then == Then::AccountFee);
        let change = |change: &PoolChange| known(change.by.account) && batch.check_pair(change.assets[0], change.assets[1]).is_ok();
        is(closed.pool_changes.iter().all(change), "what comes into a pool")?;
        let is_created = |change: &&PoolChange| matches!(change.kind, PoolChangeKind::Created { .. });
        let created_count = closed.keys.len() + closed.pool_changes.iter().filter(is_created).count();
        let paid_count = if closed.account_fee.is_some() { created_count } else { 0 };
        let is_fee = |effect: &Effect| closed.account_fee == Some(AccountFee { asset: effect.asset, amount: effect.amount });
        is(paid.clone().count() == paid_count && paid.all(is_fee), "what is paid for accounts and pools")?;
    }
    for asset in (0..ledger.asset_count()).map(AssetId) {
        let held = ledger.pooled(asset).map_or(0, |amount| i128::from(amount.get()));
        is(pooled.remove(&asset).unwrap_or(0) == held, "what pools have")?;
    }
    is(ledger.account_count() as usize + pending.len() <= ACCOUNTS_MAX as usize, "more accounts than there may be")?;
    is(*accounts.keys.pending() == pending, "keys of accounts to be created")
}

impl Batch {
    /// Gives the market's bytes to `sink`, piece by piece:
    ///
    /// `market u16 | commission u8, 0 for none | mu u8 | lower bounds u8: 0 required, 1 best effort | gap u32 | unserved u32 |
    /// assets u16 | currencies u16, 0 where all are | each asset u32 |
    /// account fee: 0, or 1 and its asset u32, amount u64 | number u64 | parent 32 |
    /// pairs u32 | for each: sell u16, buy u16, offers u32, for each in the order of keys: stated u64, tie u64, id u64, amount u64 |
    /// pools u32 | for each in the order of names: name u64, first u16, second u16, rule u8, its parameters u32, fee u32, reserves u64 each, shares
    /// u64, providers u32, for each: account u32, shares u64 | 0, or 1 and the closed batch: hash 32 | kept u32 | bytes of those u32 | those, as they are signed | its account fee | effects u32, for each:
    /// asset u32, account u32, amount u64, kind u8: 0 paid, 1
    /// cancelled, 2 issued, 3 burnt, 4 account fee, and u64: the recipient, what it would have bought over the offer's number, 0, 0, 0 | pool changes u32, for each: pool u64, by u64, assets u32 each, amounts u64 each, shares u64, kind u8: 0 created and rule u8, its
    /// parameters u32, fee u32; 1 deposited, 2 withdrawn, 3 closed | keys u32, each 32 |
    /// senders u32, for each: account u32, count u32 | from [`MarketForm::Steps`] on how far a block has come (`steps/snapshot.rs`) |
    /// from [`MarketForm::KeysKept`] on accounts that set no key in the block under way u32, each u32`.
    pub fn snapshot_as(&self, form: MarketForm, sink: &mut impl FnMut(&[u8])) {
        let has_pools = form.has_pools();
        sink(&self.settings.market.0.to_le_bytes());
        self.settings.put(sink);
        put_fee(self.settings.account_fee, sink);
        sink(&self.number.to_le_bytes());
        sink(&self.parent);
        put_count(self.market.books().len(), sink);
        for book in self.market.books() {
            sink(&book.pair().sell.0.to_le_bytes());
            sink(&book.pair().buy.0.to_le_bytes());
            put_count(book.sells().as_slice().len(), sink);
            put_offers(book.sells().as_slice(), sink);
        }
        if has_pools {
            self.put_pools(sink);
        }
        match &self.closed {
            None => sink(&[0]),
            Some(closed) => {
                sink(&[1]);
                closed.snapshot(has_pools, sink);
            }
        }
        if form.has_steps() {
            self.steps.snapshot(sink);
        }
        if form.has_keys_kept() {
            put_count(self.keys_kept.len(), sink);
            self.keys_kept.iter().for_each(|account| sink(&account.0.to_le_bytes()));
        }
    }

    fn put_pools(&self, sink: &mut impl FnMut(&[u8])) {
        put_count(self.pools.heads.len(), sink);
        for view in self.pools() {
            sink(&view.name.number().to_le_bytes());
            sink(&pool_content(&view.pool, view.shares));
            let providers = self.pools.providers_of(view.name);
            put_count(providers.len(), sink);
            for Provider { pool: _, account, shares } in providers {
                sink(&account.0.to_le_bytes());
                sink(&shares.get().to_le_bytes());
            }
        }
    }

    /// [`Self::snapshot_as`] without steps.
    pub fn snapshot(&self, sink: &mut impl FnMut(&[u8])) {
        self.snapshot_as(MarketForm::Pools, sink);
    }

    /// The market that [`Self::snapshot`] gave, with rules of [`Edition::NEWEST`]: see [`Self::set_edition`].
    ///
    /// # Errors
    /// See [`RestoreError`].
    pub fn restore(bytes: &[u8]) -> Result<Self, RestoreError> {
        Self::restore_as(MarketForm::Pools, bytes)
    }

    /// The market that [`Self::snapshot_as`] gave in the same form.
    ///
    /// # Errors
    /// See [`RestoreError`].
    pub fn restore_as(form: MarketForm, bytes: &[u8]) -> Result<Self, RestoreError> {
        let has_pools = form.has_pools();
        let r = &mut Reader(bytes);
        let market = BatchMarketId(u16::from_le_bytes(r.take()?));
        let [commission, mu, lower_bounds] = r.take()?;
        let commission = match commission {
            0 => Commission::NONE,
            k => Commission::new(k).ok_or(RestoreError::OutOfRange)?,
        };
        let lower_bounds = match lower_bounds {
            0 => LowerBounds::Required,
            1 => LowerBounds::BestEffort,
            _ => return Err(RestoreError::OutOfRange),
        };
        let rules = Rules { edition: Edition::NEWEST, commission, mu: Mu::new(mu).ok_or(RestoreError::OutOfRange)?, lower_bounds };
        let quality = QualityMax { gap_ppb: r.u32()?, unserved_ppb: r.u32()? };
        let pairs = Pairs::from_bits(r.u32()?).ok_or(RestoreError::OutOfRange)?;
        let assets = (0..pairs.asset_count()).map(|_| Ok(AssetId(r.u32()?))).collect::<Result<_, _>>()?;
        // Fewer than 2^16.
        let currencies = (!pairs.are_all()).then_some(pairs.currency_count() as u16);
        let settings = BatchSettings { market, assets, currencies, rules, quality, account_fee: r.account_fee()? };
        let mut batch = Self::new(settings).map_err(|_| RestoreError::OutOfRange)?;
        (batch.number, batch.parent) = (r.u64()?, r.take()?);
        if !(1..u64::MAX).contains(&batch.number) {
            return Err(RestoreError::OutOfRange);
        }
        let mut market = restore_offers(r, pairs)?;
        if has_pools {
            batch.pools = Arc::new(restore_pools(r, &mut market, pairs)?);
        }
        batch.market = Arc::new(market);
        batch.closed = match r.take()? {
            [0] => None,
            [1] => Some(Arc::new(ClosedBatch::restore(r, has_pools)?)),
            _ => return Err(RestoreError::OutOfRange),
        };
        if form.has_steps() {
            batch.restore_steps(r)?;
        }
        if form.has_keys_kept() {
            for _ in 0..r.count(ACCOUNTS_MAX as usize, 4)? {
                let account = r.account()?;
                in_order(batch.keys_kept.last() < Some(&account))?;
                batch.keys_kept.insert(account);
            }
            if !batch.keys_kept.is_empty() && !batch.is_under_way() {
                return Err(RestoreError::Contradiction("accounts that keep their keys in no block"));
            }
        }
        r.end()?;
        Ok(batch)
    }
}

fn restore_offers(r: &mut Reader<'_>, pairs: Pairs) -> Result<BatchMarket, RestoreError> {
    let mut offers = Vec::new();
    let mut last = None;
    for _ in 0..r.count(pairs.count(), 8)? {
        let [sell, buy] = [r.take()?, r.take()?].map(|index| walras_clearing::AssetIndex(u16::from_le_bytes(index)));
        let pair = Pair { sell, buy };
        in_range(pairs.has(pair))?;
        let count = r.count(usize::MAX, 32)?;
        if count == 0 || last.replace(pair).is_some_and(|last| last >= pair) {
            return Err(RestoreError::Order);
        }
        let mut last_key = None;
        for _ in 0..count {
            let stated = BatchPrice::from_bits(r.u64()?).map_err(|_| RestoreError::OutOfRange)?;
            let (tie, id) = (r.u64()?, OfferId(r.u64()?));
            let offer = Offer::new(stated, tie, id, r.amount()?).map_err(|_| RestoreError::OutOfRange)?;
            if last_key.replace(offer.key()).is_some_and(|last| last >= offer.key()) {
                return Err(RestoreError::Order);
            }
            offers.push((pair, offer));
        }
    }
    BatchMarket::build(pairs.asset_count(), &offers, &[], Vec::new()).map_err(|_| RestoreError::OutOfRange)
}

fn restore_pools(r: &mut Reader<'_>, market: &mut BatchMarket, pairs: Pairs) -> Result<Pools, RestoreError> {
    let (mut pools, mut of_market) = (Pools::default(), Vec::new());
    for _ in 0..r.count(POOLS_MAX, 8 + POOL_BYTES + 4)? {
        let name = r.u64()?;
        in_order(pools.heads.last().is_none_or(|last: &PoolHead| last.name < name))?;
        let assets = [r.take()?, r.take()?].map(|index| AssetIndex(u16::from_le_bytes(index)));
        let (rule, fee_ppm) = (r.pool_rule()?, r.u32()?);
        let pool = Pool { assets, rule, fee_ppm, reserves: [r.amount()?, r.amount()?] };
        in_range(pairs.has(pool.pair(PoolSide::First)))?;
        of_market.push(pool);
        let shares = r.amount()?;
        pools.heads.push(PoolHead { name, shares });
        let (mut sum, mut last) = (0, None);
        for _ in 0..r.count(ACCOUNTS_MAX as usize, 12)? {
            let provider = Provider { pool: name, account: r.account()?, shares: r.amount()? };
            in_order(last.replace(provider.account).is_none_or(|last| last < provider.account))?;
            in_range(!provider.shares.is_zero())?;
            sum += u128::from(provider.shares.get());
            pools.providers.push(provider);
        }
        if sum != u128::from(shares.get()) || shares.is_zero() {
            return Err(RestoreError::Contradiction("shares of a pool"));
        }
    }
    market.set_pools(of_market).map_err(|_| RestoreError::OutOfRange)?;
    Ok(pools)
}

fn restore_pool_change(r: &mut Reader<'_>) -> Result<PoolChange, RestoreError> {
    let [pool, by] = [r.u64()?, r.u64()?].map(OfferName::of_number);
    let assets = [AssetId(r.u32()?), AssetId(r.u32()?)];
    let (amounts, shares) = ([r.amount()?, r.amount()?], r.amount()?);
    let kind = match r.take()? {
        [0] => PoolChangeKind::Created { rule: r.pool_rule()?, fee_ppm: r.u32()? },
        [1] => PoolChangeKind::Deposited,
        [2] => PoolChangeKind::Withdrawn,
        [3] => PoolChangeKind::Closed,
        _ => return Err(RestoreError::OutOfRange),
    };
    Ok(PoolChange { pool, kind, by, assets, amounts, shares })
}

impl ClosedBatch {
    fn snapshot(&self, has_pools: bool, sink: &mut impl FnMut(&[u8])) {
        sink(&self.batch_hash);
        sink(&self.kept_count.to_le_bytes());
        put_count(self.transactions.len(), sink);
        sink(&self.transactions);
        put_fee(self.account_fee, sink);
        put_count(self.effects.len(), sink);
        for Effect { asset, account, amount, then } in &self.effects {
            sink(&asset.0.to_le_bytes());
            sink(&account.0.to_le_bytes());
            sink(&amount.get().to_le_bytes());
            let (kind, to) = match then {
                Then::Paid(to) => (0, u64::from(to.0)),
                Then::Cancelled { buy, sequence } => (1, u64::from(buy.0) << TRANSACTION_SEQ_BITS | sequence.0),
                Then::Issued => (2, 0),
                Then::Burnt => (3, 0),
                Then::AccountFee => (4, 0),
            };
            sink(&[kind]);
            sink(&to.to_le_bytes());
        }
        if has_pools {
            put_count(self.pool_changes.len(), sink);
        }
        for PoolChange { pool, kind, by, assets, amounts, shares } in &self.pool_changes {
            [pool, by].iter().for_each(|name| sink(&name.number().to_le_bytes()));
            assets.iter().for_each(|asset| sink(&asset.0.to_le_bytes()));
            amounts.iter().chain([shares]).for_each(|units| sink(&units.get().to_le_bytes()));
            match kind {
                PoolChangeKind::Created { rule, fee_ppm } => {
                    let (number, parameters) = rule.parts();
                    sink(&[0, number]);
                    sink(&parameters.to_le_bytes());
                    sink(&fee_ppm.to_le_bytes());
                }
                PoolChangeKind::Deposited => sink(&[1]),
                PoolChangeKind::Withdrawn => sink(&[2]),
                PoolChangeKind::Closed => sink(&[3]),
            }
        }
        put_count(self.keys.len(), sink);
        self.keys.iter().for_each(|key| sink(&key.0));
        put_count(self.senders.len(), sink);
        for (account, count) in &self.senders {
            sink(&account.0.to_le_bytes());
            sink(&count.to_le_bytes());
        }
    }

    fn restore(r: &mut Reader<'_>, has_pools: bool) -> Result<Self, RestoreError> {
        let (batch_hash, kept_count) = (r.take()?, r.u32()?);
        let length = r.count(BATCH_TRANSACTIONS_MAX * TRANSACTION_BYTES_MAX, 1)?;
        let transactions = Arc::new(r.bytes(length)?.to_vec());
        let account_fee = r.account_fee()?;
        let effect = |r: &mut Reader<'_>| {
            let (asset, account, amount) = (AssetId(r.u32()?), r.account()?, r.amount()?);
            let then = match (r.take()?, r.u64()?) {
                ([0], to) if to < u64::from(ACCOUNTS_MAX) => Then::Paid(AccountId(to as u32)),
                ([1], name) if name >> TRANSACTION_SEQ_BITS < u64::from(ASSETS_MAX) => {
                    let buy = AssetId((name >> TRANSACTION_SEQ_BITS) as u32);
                    Then::Cancelled { buy, sequence: TransactionSeq(name & (TRANSACTION_SEQ_END - 1)) }
                }
                ([2], 0) => Then::Issued,
                ([3], 0) => Then::Burnt,
                ([4], 0) => Then::AccountFee,
                _ => return Err(RestoreError::OutOfRange),
            };
            Ok(Effect { asset, account, amount, then })
        };
        let effects: Vec<Effect> = (0..r.count(BATCH_TRANSACTIONS_MAX, 25)?).map(|_| effect(r)).collect::<Result<_, _>>()?;
        if effects.iter().any(|effect| effect.asset.0 >= ASSETS_MAX) {
            return Err(RestoreError::OutOfRange);
        }
        let change_count = if has_pools { r.count(BATCH_TRANSACTIONS_MAX + POOLS_MAX, 49)? } else { 0 };
        let changes = (0..change_count).map(|_| restore_pool_change(r));
        let pool_changes: Vec<PoolChange> = changes.collect::<Result<_, _>>()?;
        let keys: Vec<PublicKey> =
            (0..r.count(BATCH_TRANSACTIONS_MAX, 32)?).map(|_| Ok(PublicKey(r.take()?))).collect::<Result<_, _>>()?;
        let sender = |r: &mut Reader<'_>| Ok((r.account()?, r.u32()?));
        let senders: Vec<_> = (0..r.count(ACCOUNTS_MAX as usize, 8)?).map(|_| sender(r)).collect::<Result<_, _>>()?;
        if !effects.is_sorted_by_key(|effect| effect.asset) || !senders.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(RestoreError::Order);
        }
        let new_keys = check_kept(&transactions, &senders, &keys, &pool_changes)?;
        let (added, removed) = (ByPair::default(), ByPair::default());
        Ok(Self {
            batch_hash,
            kept_count,
            transactions,
            account_fee,
            effects,
            pool_changes,
            keys,
            new_keys,
            senders,
            added,
            removed,
        })
    }
}

/// Checks that a closed batch's transactions are those of its senders, in order, and ask for its keys and for what pools get and give. Says
/// which accounts get another key.
fn check_kept(
    transactions: &[u8],
    senders: &[(AccountId, u32)],
    keys: &[PublicKey],
    pool_changes: &[PoolChange],
) -> Result<Vec<NewKey>, RestoreError> {
    let mut new_keys = Vec::<NewKey>::new();
    let mut changes = pool_changes.iter().peekable();
    let (mut rest, mut last, mut sent, mut asked) = (transactions, None, Vec::<(AccountId, u32)>::new(), Vec::new());
    while !rest.is_empty() {
        let (transaction, length) = decode_next_transaction(rest).map_err(|_| RestoreError::OutOfRange)?;
        rest = &rest[length..];
        let BatchTransaction { account, sequence, operation, .. } = transaction;
        in_order(last.replace((account, sequence)).is_none_or(|last| last < (account, sequence)))?;
        match sent.last_mut().filter(|(sender, _)| *sender == account) {
            Some((_, count)) => *count += 1,
            None => sent.push((account, 1)),
        }
        let name = OfferName { account, sequence };
        match operation {
            BatchOperation::CreateAccount(key) => asked.push(key),
            BatchOperation::SetKey(key) => {
                in_order(new_keys.last().is_none_or(|last| last.by.account < account))?;
                new_keys.push(NewKey { by: name, key });
            }
            BatchOperation::CreatePool(_) | BatchOperation::DepositToPool(_) | BatchOperation::WithdrawFromPool(_) => {
                let is_of_this = |change: &&PoolChange| change.by == name && change.kind != PoolChangeKind::Closed;
                changes.next_if(is_of_this).ok_or(RestoreError::Contradiction("what comes into a pool"))?;
            }
            _ => {}
        }
    }
    let is_closed = |change: &PoolChange| change.kind == PoolChangeKind::Closed;
    let agrees = sent == senders && asked == keys && changes.all(is_closed);
    if agrees { Ok(new_keys) } else { Err(RestoreError::Contradiction("the transactions of a closed batch")) }
}

impl Accounts {
    /// Gives the accounts' bytes to `sink`, piece by piece:
    ///
    /// `accounts u32 | for each: last u64, then 0, or 1 and its key | keys without an account u32, each 32 | suspended u32, each u32 | issuers
    /// u32, for each: asset u32, account u32`.
    pub fn snapshot(&self, sink: &mut impl FnMut(&[u8])) {
        put_count(self.last.len(), sink);
        for (last, key) in self.last.iter().zip(self.keys.all()) {
            sink(&last.to_le_bytes());
            match key {
                None => sink(&[0]),
                Some(key) => {
                    sink(&[1]);
                    sink(&key.0);
                }
            }
        }
        put_count(self.keys.pending().len(), sink);
        self.keys.pending().iter().for_each(|key| sink(&key.0));
        put_count(self.suspended.len(), sink);
        self.suspended.iter().for_each(|account| sink(&account.0.to_le_bytes()));
        put_count(self.issuers.len(), sink);
        for (asset, account) in &self.issuers {
            sink(&asset.0.to_le_bytes());
            sink(&account.0.to_le_bytes());
        }
    }

    /// The accounts that [`Self::snapshot`] gave.
    ///
    /// # Errors
    /// See [`RestoreError`].
    pub fn restore(bytes: &[u8]) -> Result<Self, RestoreError> {
        let r = &mut Reader(bytes);
        let mut accounts = Self::new();
        let account_count = r.count(ACCOUNTS_MAX as usize, 9)?;
        accounts.follow(account_count as u32);
        for account in 0..account_count {
            accounts.last[account] = Some(r.u64()?).filter(|last| *last < TRANSACTION_SEQ_END).ok_or(RestoreError::OutOfRange)?;
            match r.take()? {
                [0] => {}
                [1] => {
                    let key = PublicKey(r.take()?);
                    accounts.set_key(AccountId(account as u32), key).map_err(|_| RestoreError::Order)?;
                }
                _ => return Err(RestoreError::OutOfRange),
            }
        }
        let mut last = None;
        for _ in 0..r.count(ACCOUNTS_MAX as usize, 32)? {
            let key = PublicKey(r.take()?);
            let is_late = last.replace(key).is_none_or(|last| last < key);
            if !is_late || !accounts.keys.expect(key) {
                return Err(RestoreError::Order);
            }
        }
        for _ in 0..r.count(ACCOUNTS_MAX as usize, 4)? {
            let account = r.account()?;
            in_order(accounts.suspended.last() < Some(&account))?;
            accounts.suspended.insert(account);
        }
        for _ in 0..r.count(ASSETS_MAX as usize, 8)? {
            let asset = AssetId(r.u32()?);
            in_order(accounts.issuers.last_key_value().is_none_or(|(last, _)| *last < asset))?;
            let issuer = r.account()?;
            accounts.set_issuer(asset, issuer).map_err(|_| RestoreError::OutOfRange)?;
        }
        r.end()?;
        Ok(accounts)
    }
}

pub(crate) fn in_order(is: bool) -> Result<(), RestoreError> {
    if is { Ok(()) } else { Err(RestoreError::Order) }
}

fn in_range(is: bool) -> Result<(), RestoreError> {
    if is { Ok(()) } else { Err(RestoreError::OutOfRange) }
}

pub(crate) fn put_count(count: usize, sink: &mut impl FnMut(&[u8])) {
    let count = u32::try_from(count).expect("nothing has as many members as there are numbers");
    sink(&count.to_le_bytes());
}

pub(crate) fn put_fee(fee: Option<AccountFee>, sink: &mut impl FnMut(&[u8])) {
    match fee {
        None => sink(&[0]),
        Some(AccountFee { asset, amount }) => {
            sink(&[1]);
            sink(&asset.0.to_le_bytes());
            sink(&amount.get().to_le_bytes());
        }
    }
}

/// Bytes of an offer, and how many offers make a piece: what takes pieces pays for each.
const OFFER_BYTES: usize = 32;
const OFFERS_AT_ONCE: usize = 32;

fn put_offers(offers: &[Offer], sink: &mut impl FnMut(&[u8])) {
    let mut bytes = [0; OFFERS_AT_ONCE * OFFER_BYTES];
    for some in offers.chunks(OFFERS_AT_ONCE) {
        for (place, offer) in bytes.chunks_exact_mut(OFFER_BYTES).zip(some) {
            let numbers = [offer.stated().bits(), offer.key().tie, offer.key().id.0, offer.amount().get()];
            place.copy_from_slice(numbers.map(u64::to_le_bytes).as_flattened());
        }
        sink(&bytes[..some.len() * OFFER_BYTES]);
    }
}

/// What is left to be read.
pub(crate) struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], RestoreError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(RestoreError::Length)?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, RestoreError> {
        self.take().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, RestoreError> {
        self.take().map(u64::from_le_bytes)
    }

    fn amount(&mut self) -> Result<Amount, RestoreError> {
        Amount::new(self.u64()?).ok_or(RestoreError::OutOfRange)
    }

    pub(crate) fn account(&mut self) -> Result<AccountId, RestoreError> {
        Some(self.u32()?).filter(|account| *account < ACCOUNTS_MAX).map(AccountId).ok_or(RestoreError::OutOfRange)
    }

    /// All that is left.
    pub(crate) fn rest(&self) -> &[u8] {
        self.0
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Result<&[u8], RestoreError> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(RestoreError::Length)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn pool_rule(&mut self) -> Result<PoolRule, RestoreError> {
        let ([number], parameters) = (self.take()?, self.u32()?);
        PoolRule::of_parts(number, parameters).ok_or(RestoreError::OutOfRange)
    }

    pub(crate) fn account_fee(&mut self) -> Result<Option<AccountFee>, RestoreError> {
        match self.take()? {
            [0] => Ok(None),
            [1] => {
                let fee = AccountFee { asset: AssetId(self.u32()?), amount: self.amount()? };
                let is_fee = fee.asset.0 < ASSETS_MAX && !fee.amount.is_zero();
                if is_fee { Ok(Some(fee)) } else { Err(RestoreError::OutOfRange) }
            }
            _ => Err(RestoreError::OutOfRange),
        }
    }

    /// How many follow, of so many bytes each at least: no damaged count can ask for more memory than its bytes take.
    pub(crate) fn count(&mut self, most: usize, bytes_each: usize) -> Result<usize, RestoreError> {
        let count = self.u32()? as usize;
        if count > most {
            return Err(RestoreError::OutOfRange);
        }
        if count > self.0.len() / bytes_each { Err(RestoreError::Length) } else { Ok(count) }
    }

    fn end(&self) -> Result<(), RestoreError> {
        if self.0.is_empty() { Ok(()) } else { Err(RestoreError::Length) }
    }
}
