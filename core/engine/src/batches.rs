//! Batch markets at a venue: what is collected, when it is closed and cleared, and what is told of it.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::sync::Arc;

use walras_batch::{
    AccountError, Accounts, Batch, BatchSettings, BlockHeader, BlockRejected, Cleared, Collected, Effect, FillMove, Outcomes,
    PoolChange, PoolChangeKind, ProposedClearing, Quality, Roots, Then, threads_worth,
};
use walras_clearing::{Edition, Offer, Pair, Pairs, PoolTraded as TradedByPool, Rules};
use walras_order_book::PriceIndex;
use walras_types::limits::{
    BATCH_INTERVAL_NS_MAX, BATCH_INTERVAL_NS_MIN, BATCH_MARKETS_MAX, BATCH_PAIRS_MAX, BATCH_TRANSACTIONS_MAX,
    BATCH_VENUE_CURRENCIES_MAX, BATCH_VENUE_PAIRS_MAX, BATCH_VENUE_TRANSACTIONS_MAX, BLOCK_AT_ONCE_MAX, BLOCK_STEP_UNITS,
    KEY_REPLACED_NS, TRANSACTION_SEQ_END, TRANSACTIONS_PER_ACCOUNT_MAX,
};
use walras_types::{
    AccountFee, AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPhase, BatchTransaction, DropReason, LogIndex,
    OfferName, PublicKey, RejectReason, TimeNs, TransactionSeq,
};
use walras_wire::batch::BlockProposal;
use walras_wire::{
    AccountEvent, AccountFeeChanged, AccountFeePaid, AccountKeySet, AccountStatus, AddBatchAsset, BatchAssetAdded, BatchClosed,
    BatchCommand, BatchCurrenciesSet, BatchEvent, BatchIntervalChanged, BatchMarketCommand, BatchMarketEvent, BatchMarketSpec,
    BatchPhaseChanged, BlockCleared, CloseBatch, Event, IssuerSet, OfferCancelled, OfferOpened, OfferTraded, Paid, PoolClosed,
    PoolCreated, PoolMoved, PoolTraded, Rejected, SetAccountFee, SetAccountKey, SetBatchCurrencies, SetBatchInterval,
    SetBatchPhase, SetIssuer, SubmitTransaction, SupplyChanged, TransactionCollected, TransactionDropped, VenueEvent,
};

use crate::engine::Engine;
use crate::versions::Rules as _;

const _: () = assert!(BATCH_VENUE_PAIRS_MAX <= BATCH_PAIRS_MAX);
const _: () = assert!(BATCH_VENUE_CURRENCIES_MAX * BATCH_VENUE_CURRENCIES_MAX <= BATCH_VENUE_PAIRS_MAX);
const _: () = assert!(BATCH_VENUE_TRANSACTIONS_MAX as usize <= BATCH_TRANSACTIONS_MAX);

/// The batch markets of a venue, and what they know of its accounts.
pub(crate) struct Batches {
    pub(crate) accounts: Accounts,
    /// By id.
    pub(crate) markets: Vec<BatchMarketState>,
    /// Accounts whose keys the operator replaced, and when. Those that were replaced longer than [`KEY_REPLACED_NS`] before the last one
    /// are not kept.
    pub(crate) keys_replaced: BTreeMap<AccountId, TimeNs>,
    /// How many share the work of a block; no part of the state.
    pub(crate) threads: NonZero<usize>,
    /// Whether a block began work that nobody has taken yet; no part of the state.
    pub(crate) has_jobs: bool,
    /// Blocks whose work is at most so large are carried out in one entry; and how much one entry does of others. The same on all replicas,
    /// and no part of the state.
    pub(crate) at_once_max: u64,
    pub(crate) step_units: NonZero<usize>,
}

/// A batch market as it stands.
pub(crate) struct BatchMarketState {
    pub(crate) spec: BatchMarketSpec,
    /// How its rules are read. Follows from the engine's version.
    pub(crate) edition: Edition,
    pub(crate) phase: BatchPhase,
    pub(crate) assets: Vec<AssetId>,
    /// How many of them are currencies; `None` where all are.
    pub(crate) currencies: Option<u16>,
    /// What each account costs that a transaction opens.
    pub(crate) account_fee: FeeInForce,
    /// From the first opening.
    pub(crate) batch: Option<Batch>,
    /// Of the batch that collects.
    pub(crate) collected: Collected,
    /// Keys that it asks for; follows from that.
    pub(crate) keys_asked: BTreeSet<PublicKey>,
    /// Accounts of which it has a transaction that sets the key, and whose keys the operator replaced since or a moment before: it sets
    /// none of theirs.
    pub(crate) keys_kept: BTreeSet<AccountId>,
    /// Of the batch that is closed or being closed, how many transactions were left out.
    pub(crate) dropped: u32,
    pub(crate) last: Option<LastBlock>,
    /// What came of the last block. No part of the state: a caller that proves it later keeps it.
    pub(crate) outcomes: Option<Arc<Outcomes>>,
}

/// What opening an account costs. A batch keeps what it was when its first transaction came, so that whoever is collected knows what it pays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeeInForce {
    /// In the batch that collects.
    pub now: Option<AccountFee>,
    /// In the batches after it.
    pub next: Option<AccountFee>,
}

/// The last block of a batch market.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastBlock {
    /// What it says.
    pub header: BlockHeader,
    /// What the state hashed to after it; the last is the block's hash.
    pub roots: Roots,
    /// The root of the trie over the accounts that it touched.
    pub touched: [u8; 32],
    /// When it was cleared.
    pub time: TimeNs,
    /// Where it was cleared.
    pub log_index: LogIndex,
    /// How many transactions were left out of it.
    pub dropped: u32,
    /// How many offers traded.
    pub offers_traded: u64,
}

impl Batches {
    pub(crate) fn new() -> Self {
        Self {
            accounts: Accounts::new(),
            markets: Vec::new(),
            keys_replaced: BTreeMap::new(),
            threads: NonZero::<usize>::MIN,
            has_jobs: false,
            at_once_max: BLOCK_AT_ONCE_MAX,
            step_units: NonZero::new(BLOCK_STEP_UNITS).expect("a step does something"),
        }
    }

    pub(crate) fn market(&self, market: BatchMarketId) -> Result<&BatchMarketState, RejectReason> {
        self.markets.get(usize::from(market.0)).ok_or(RejectReason::UnknownBatchMarket)
    }

    /// Reads the rules of all markets by this edition.
    pub(crate) fn follow(&mut self, edition: Edition) {
        self.markets.iter_mut().for_each(|market| market.follow(edition));
    }

    fn market_mut(&mut self, market: BatchMarketId) -> Result<&mut BatchMarketState, RejectReason> {
        self.markets.get_mut(usize::from(market.0)).ok_or(RejectReason::UnknownBatchMarket)
    }
}

impl BatchMarketState {
    pub(crate) fn new(spec: BatchMarketSpec, edition: Edition) -> Self {
        Self {
            spec,
            edition,
            phase: BatchPhase::Closed,
            assets: Vec::new(),
            currencies: None,
            account_fee: FeeInForce::default(),
            batch: None,
            collected: Collected::default(),
            keys_asked: BTreeSet::new(),
            keys_kept: BTreeSet::new(),
            dropped: 0,
            last: None,
            outcomes: None,
        }
    }

    /// The market, if it is open.
    fn open(&mut self) -> Result<&mut Batch, RejectReason> {
        match (self.phase, &mut self.batch) {
            (BatchPhase::Open, Some(batch)) => Ok(batch),
            (BatchPhase::Open | BatchPhase::Closed, _) => Err(RejectReason::BatchMarketClosed),
        }
    }

    pub(crate) fn settings(&self) -> BatchSettings {
        BatchSettings {
            market: self.spec.market,
            assets: self.assets.clone(),
            currencies: self.currencies.filter(|currencies| usize::from(*currencies) != self.assets.len()),
            rules: rules(&self.spec, self.edition),
            quality: self.spec.quality,
            account_fee: self.account_fee.now,
        }
    }

    /// The block that what is collected now goes into.
    pub(crate) fn collecting_block(&self) -> u64 {
        self.batch.as_ref().map_or(1, |batch| batch.number() + u64::from(batch.is_under_way()))
    }

    /// Adds a transaction to those that are collected, unless one of its name is there.
    pub(crate) fn collect(&mut self, transaction: BatchTransaction) -> bool {
        let BatchTransaction { account, sequence, operation, .. } = transaction;
        let name = OfferName { account, sequence }.number();
        // A batch has fewer than 2^32.
        let place = self.collected.transactions.len() as u32;
        if self.collected.names.contains_key(&name) {
            return false;
        }
        if let BatchOperation::CreateAccount(key) | BatchOperation::SetKey(key) = operation
            && !self.keys_asked.insert(key)
        {
            self.collected.keys_twice.insert(key);
        }
        self.collected.accounts += usize::from(matches!(operation, BatchOperation::CreateAccount(_)));
        self.collected.names.insert(name, place);
        self.collected.transactions.push(transaction);
        true
    }

    /// What was collected, to be closed. Nothing is collected then.
    pub(crate) fn take_collected(&mut self) -> Collected {
        self.keys_asked.clear();
        if let Some(batch) = &mut self.batch {
            batch.keep_keys(std::mem::take(&mut self.keys_kept));
        }
        std::mem::take(&mut self.collected)
    }

    /// Whether what is collected has a transaction that sets an account's key.
    pub(crate) fn sets_key(&self, account: AccountId) -> bool {
        let name = |sequence| OfferName { account, sequence: TransactionSeq(sequence) }.number();
        let mut of_account = self.collected.names.range(name(0)..=name(TRANSACTION_SEQ_END - 1));
        let sets_key = |place: &u32| matches!(self.collected.transactions[*place as usize].operation, BatchOperation::SetKey(_));
        of_account.any(|(_, place)| sets_key(place))
    }

    /// The operator replaced an account's key: what the account sent before sets no other.
    fn keep_key(&mut self, account: AccountId) {
        if self.sets_key(account) {
            self.keys_kept.insert(account);
        }
        if let Some(batch) = self.batch.as_mut().filter(|batch| batch.is_under_way()) {
            batch.keep_keys([account]);
        }
    }

    /// Whether a transaction of this name is collected, or waits to be judged.
    fn knows(&self, name: u64) -> bool {
        self.collected.names.contains_key(&name) || self.batch.as_ref().is_some_and(|batch| batch.waits_to_be_judged(name))
    }

    /// Reads the rules by this edition from the next block on.
    fn follow(&mut self, edition: Edition) {
        self.edition = edition;
        if let Some(batch) = &mut self.batch {
            batch.set_edition(edition);
        }
    }

    /// Lets what accounts are to cost be what they cost: where nothing is collected yet.
    pub(crate) fn begin_fee(&mut self) {
        self.account_fee.now = self.account_fee.next;
        if let Some(batch) = &mut self.batch {
            batch.set_account_fee(self.account_fee.now);
        }
    }
}

/// By what the proposed clearings of a market are measured.
pub(crate) fn rules(spec: &BatchMarketSpec, edition: Edition) -> Rules {
    Rules { edition, commission: spec.commission, mu: spec.mu, lower_bounds: spec.lower_bounds }
}

/// Whether every field of a definition is in its documented range and they go together.
pub(crate) fn is_possible(spec: &BatchMarketSpec) -> bool {
    let most = 1..=BATCH_VENUE_TRANSACTIONS_MAX;
    let is_lively = is_interval(spec.interval_ns) && most.contains(&spec.transactions_max);
    is_lively && rules(spec, Edition::NEWEST).leave_freedom() && spec.quality.is_possible()
}

/// Whether a market may have so many assets, so many of them currencies.
pub(crate) fn has_room_for(asset_count: usize, currencies: Option<u16>) -> bool {
    let Some(currencies) = currencies.map(usize::from) else { return asset_count <= BATCH_VENUE_CURRENCIES_MAX };
    // It may get its assets later.
    let pairs = Pairs::with_currencies(asset_count.max(currencies), currencies);
    currencies <= BATCH_VENUE_CURRENCIES_MAX && pairs.is_some_and(|pairs| pairs.count() <= BATCH_VENUE_PAIRS_MAX)
}

fn is_interval(interval_ns: u64) -> bool {
    (BATCH_INTERVAL_NS_MIN..=BATCH_INTERVAL_NS_MAX).contains(&interval_ns)
}

/// The operator's commands.
impl<I: PriceIndex> Engine<I> {
    /// What the commands on the rules of batch markets do: in one function of its own, so that it costs the others nothing.
    #[cold]
    #[inline(never)]
    pub(crate) fn execute_batch_market(
        &mut self,
        command: &BatchMarketCommand,
        events: &mut Vec<Event>,
    ) -> Result<(), RejectReason> {
        match command {
            BatchMarketCommand::Create(c) => self.create_batch_market(c, events),
            BatchMarketCommand::AddAsset(c) => self.add_batch_asset(c, events),
            BatchMarketCommand::SetPhase(c) => self.set_batch_phase(c, events),
            BatchMarketCommand::SetInterval(c) => self.set_batch_interval(c, events),
            BatchMarketCommand::SetAccountFee(c) => self.set_account_fee(c, events),
            BatchMarketCommand::SetCurrencies(c) => self.set_currencies(c, events),
        }
    }

    /// What the commands of batches do: in one function of its own, for the same reason.
    #[cold]
    #[inline(never)]
    pub(crate) fn execute_batch(&mut self, command: &BatchCommand, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        match command {
            BatchCommand::Submit(c) => self.submit_transaction(c, events),
            BatchCommand::Close(c) => self.close_batch(c, events),
            BatchCommand::Step(c) => self.step_block(c, events),
        }
    }

    fn create_batch_market(&mut self, spec: &BatchMarketSpec, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let next = self.batches.markets.len();
        if usize::from(spec.market.0) != next || next == BATCH_MARKETS_MAX {
            return Err(RejectReason::IdNotNext);
        }
        if self.batches.markets.iter().any(|other| other.spec.symbol == spec.symbol) {
            return Err(RejectReason::DuplicateSymbol);
        }
        if !is_possible(spec) {
            return Err(RejectReason::BatchRulesInvalid);
        }
        self.batches.markets.push(BatchMarketState::new(*spec, self.version.batch_edition()));
        events.push(Event::BatchMarket(BatchMarketEvent::Created(*spec)));
        Ok(())
    }

    fn add_batch_asset(&mut self, add: &AddBatchAsset, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let AddBatchAsset { market, asset } = *add;
        let asset_count = self.ledger.asset_count();
        let state = self.batches.market_mut(market)?;
        if state.batch.is_some() {
            return Err(RejectReason::BatchAssetsFixed);
        }
        if asset.0 >= asset_count {
            return Err(RejectReason::UnknownAsset);
        }
        if state.assets.contains(&asset) || !has_room_for(state.assets.len() + 1, state.currencies) {
            return Err(RejectReason::BatchAssetsInvalid);
        }
        state.assets.push(asset);
        events.push(Event::BatchMarket(BatchMarketEvent::AssetAdded(BatchAssetAdded { market, asset })));
        Ok(())
    }

    /// Setting what they are already is no error.
    fn set_currencies(&mut self, set: &SetBatchCurrencies, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let SetBatchCurrencies { market, currencies } = *set;
        if !self.version.has_currencies() {
            return Err(RejectReason::NeedsLaterVersion);
        }
        let state = self.batches.market_mut(market)?;
        if state.batch.is_some() {
            return Err(RejectReason::BatchAssetsFixed);
        }
        if !has_room_for(state.assets.len(), Some(currencies)) {
            return Err(RejectReason::BatchAssetsInvalid);
        }
        state.currencies = Some(currencies);
        events.push(Event::BatchMarket(BatchMarketEvent::CurrenciesSet(BatchCurrenciesSet { market, currencies })));
        Ok(())
    }

    /// Setting the phase that a market is in already is no error, and is told of like any other.
    fn set_batch_phase(&mut self, set: &SetBatchPhase, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let SetBatchPhase { market, phase } = *set;
        let state = self.batches.market_mut(market)?;
        if phase == BatchPhase::Open && state.batch.is_none() {
            state.batch = Some(Batch::new(state.settings()).map_err(|_| RejectReason::BatchAssetsInvalid)?);
        }
        state.phase = phase;
        events.push(Event::BatchMarket(BatchMarketEvent::PhaseChanged(BatchPhaseChanged { market, phase })));
        Ok(())
    }

    fn set_batch_interval(&mut self, set: &SetBatchInterval, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let SetBatchInterval { market, interval_ns } = *set;
        let state = self.batches.market_mut(market)?;
        if !is_interval(interval_ns) {
            return Err(RejectReason::BatchRulesInvalid);
        }
        state.spec.interval_ns = interval_ns;
        events.push(Event::BatchMarket(BatchMarketEvent::IntervalChanged(BatchIntervalChanged { market, interval_ns })));
        Ok(())
    }

    /// Setting what accounts cost already is no error, and is told of like any other.
    fn set_account_fee(&mut self, set: &SetAccountFee, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let SetAccountFee { market, fee } = *set;
        let asset_count = self.ledger.asset_count();
        let state = self.batches.market_mut(market)?;
        if let Some(AccountFee { asset, amount }) = fee {
            if asset.0 >= asset_count {
                return Err(RejectReason::UnknownAsset);
            }
            if amount.is_zero() {
                return Err(RejectReason::AmountOutOfRange);
            }
        }
        state.account_fee.next = fee;
        let is_begun = !state.collected.transactions.is_empty();
        if !is_begun {
            state.begin_fee();
        }
        let from_block = state.collecting_block() + u64::from(is_begun);
        events.push(Event::BatchMarket(BatchMarketEvent::AccountFeeChanged(AccountFeeChanged { market, from_block, fee })));
        Ok(())
    }

    pub(crate) fn set_account_key(&mut self, set: &SetAccountKey, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let SetAccountKey { account, key } = *set;
        self.status(account)?;
        let now = self.time;
        let Batches { accounts, markets, keys_replaced, .. } = &mut self.batches;
        let before = accounts.key(account);
        accounts.set_key(account, key).map_err(account_reason)?;
        if self.version.keeps_replaced_keys() && before.is_some_and(|before| before != key) {
            markets.iter_mut().for_each(|market| market.keep_key(account));
            keys_replaced.retain(|_, replaced| was_just_replaced(*replaced, now));
            keys_replaced.insert(account, now);
        }
        // A key is hashed with its account's balances.
        self.ledger.mark(account);
        events.push(Event::Account(AccountEvent::KeySet(AccountKeySet { account, key })));
        Ok(())
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn set_issuer(&mut self, set: &SetIssuer, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let SetIssuer { asset, account } = *set;
        self.status(account)?;
        if asset.0 >= self.ledger.asset_count() {
            return Err(RejectReason::UnknownAsset);
        }
        self.batches.accounts.set_issuer(asset, account).map_err(account_reason)?;
        events.push(Event::Venue(VenueEvent::IssuerSet(IssuerSet { asset, account })));
        Ok(())
    }
}

fn account_reason(error: AccountError) -> RejectReason {
    match error {
        AccountError::UnknownAccount(_) => RejectReason::UnknownAccount,
        AccountError::UnknownAsset(_) => RejectReason::UnknownAsset,
        AccountError::KeyTaken => RejectReason::KeyTaken,
    }
}

/// A batch: collected, closed, cleared.
impl<I: PriceIndex> Engine<I> {
    /// Takes a transaction into the batch that collects, or refuses what could only do harm there: whatever makes the filter drop all of an
    /// account's transactions, and that somebody else could bring about by sending what the account signed once more or to another place.
    fn submit_transaction(&mut self, submit: &SubmitTransaction, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let market = submit.market();
        let transaction = submit.transaction();
        let BatchTransaction { account, sequence, terms, .. } = transaction;
        self.check_active(account)?;
        let (has_shards, is_known, now) = (self.shard_place().count > 1, self.knows_transaction(&transaction), self.time);
        let Batches { accounts, markets, keys_replaced, .. } = &mut self.batches;
        let name = OfferName { account, sequence }.number();
        let state = markets.get_mut(usize::from(market.0)).ok_or(RejectReason::UnknownBatchMarket)?;
        state.open()?;
        let block = state.collecting_block();
        if named_market(&transaction).is_some_and(|named| named != market) {
            return Err(RejectReason::BatchMarketMismatch);
        }
        if !is_known {
            return Err(RejectReason::NeedsLaterVersion);
        }
        if !terms.allow(block) {
            return Err(RejectReason::AlreadyExpired);
        }
        if has_shards && matches!(transaction.operation, BatchOperation::CreateAccount(_)) {
            return Err(RejectReason::AccountsByOperator);
        }
        if accounts.key(account).is_none() {
            return Err(RejectReason::NoTransactionKey);
        }
        if !is_in_window(accounts.last(account), sequence) {
            return Err(RejectReason::TransactionSeqOutOfWindow);
        }
        // What names no market can be sent to any.
        if markets.iter().any(|other| other.knows(name)) {
            return Err(RejectReason::DuplicateTransaction);
        }
        let state = &mut markets[usize::from(market.0)];
        if state.collected.transactions.len() >= state.spec.transactions_max as usize {
            return Err(RejectReason::BatchFull);
        }
        // It may have been signed with the key before, and checked when that still held.
        if matches!(transaction.operation, BatchOperation::SetKey(_))
            && keys_replaced.get(&account).is_some_and(|replaced| was_just_replaced(*replaced, now))
        {
            state.keys_kept.insert(account);
        }
        state.collect(transaction);
        events.push(Event::Batch(BatchEvent::TransactionCollected(TransactionCollected { market, account, sequence, block })));
        Ok(())
    }

    fn close_batch(&mut self, close: &CloseBatch, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let CloseBatch { market, block } = *close;
        let has_steps = self.version.has_block_steps();
        let (at_once_max, account_count) = (self.block_at_once_max(), self.ledger.account_count());
        let Batches { accounts, markets, threads, .. } = &mut self.batches;
        let state = markets.get_mut(usize::from(market.0)).ok_or(RejectReason::UnknownBatchMarket)?;
        let batch = state.open()?;
        if batch.is_under_way() {
            return Err(RejectReason::BatchNotCleared);
        }
        if block != batch.number() {
            return Err(RejectReason::BatchNotNext);
        }
        if has_steps && !state.is_for_one_entry(account_count, state.collected.transactions.len(), at_once_max) {
            state.dropped = 0;
            let collected = state.take_collected();
            let batch = state.batch.as_mut().expect("an open market has one");
            batch.begin_to_close(collected).expect("nothing is under way");
            state.begin_fee();
            return Ok(());
        }
        let Collected { transactions, .. } = state.take_collected();
        let batch = state.batch.as_mut().expect("an open market has one");
        let threads = threads_worth(*threads, &transactions);
        let closed = batch.close(&mut self.ledger, accounts, &transactions, state.spec.intake, threads);
        let closed = closed.expect("nothing waits, and a batch has at most BATCH_VENUE_TRANSACTIONS_MAX transactions");
        // Fewer than there are transactions.
        state.dropped = closed.dropped.len() as u32;
        let (batch_hash, kept, dropped) = (closed.batch_hash, closed.kept_count, state.dropped);
        events.push(Event::Batch(BatchEvent::Closed(BatchClosed { market, block, batch_hash, kept, dropped })));
        for (place, reason) in closed.dropped {
            let BatchTransaction { account, sequence, .. } = transactions[place as usize];
            events.push(Event::Batch(BatchEvent::TransactionDropped(TransactionDropped { market, account, sequence, reason })));
        }
        for (pair, offer) in batch.opened() {
            events.push(opened(market, assets_of(&state.assets, pair), offer));
        }
        state.begin_fee();
        Ok(())
    }

    /// Applies one log entry that holds a proposed clearing, and appends what happened to `events`: all that the block does and
    /// [`BatchEvent::Cleared`], or [`BatchEvent::ClearingRejected`] and nothing else.
    ///
    /// # Panics
    /// As [`Engine::apply`].
    pub fn apply_clearing(&mut self, log_index: LogIndex, time: TimeNs, block: &BlockProposal, events: &mut Vec<Event>) {
        self.begin(log_index, time, events);
        let market = block.market;
        let refused = |reason| Event::Rejected(Rejected { account: None, instrument: None, client_order_id: None, reason });
        if let Err(reason) = self.batches.market(market) {
            events.push(refused(reason));
        } else if let Err(rejected) = self.clear_batch(block, events) {
            let code = rejected.code();
            events.push(Event::Batch(BatchEvent::ClearingRejected(walras_wire::BlockRejected {
                market,
                block: block.number,
                code,
            })));
        }
    }

    fn clear_batch(&mut self, block: &BlockProposal, events: &mut Vec<Event>) -> Result<(), BlockRejected> {
        let (time, log_index) = (self.time, self.last_applied);
        if self.is_cleared_in_steps(block) {
            return self.begin_to_clear(block);
        }
        let Batches { accounts, markets, threads, .. } = &mut self.batches;
        // Another market's block may have the tree.
        markets.iter_mut().filter_map(|state| state.batch.as_mut()).for_each(|batch| batch.settle_trees(accounts, *threads));
        let state = &mut markets[usize::from(block.market.0)];
        let batch = state.batch.as_mut().ok_or(BlockRejected::NothingClosed)?;
        let threads = batch.threads_worth_clearing(*threads);
        let cleared = batch.clear(&mut self.ledger, accounts, &ProposedClearing::from(block), threads)?;
        let Cleared {
            header,
            roots,
            touched,
            outcomes,
            traded,
            pools_traded,
            pool_changes,
            effects,
            created,
            new_keys,
            keys_kept,
            shortfall: _,
        } = cleared;
        let offers_traded = traded.iter().map(|pair| pair.offers.len() as u64).sum();
        for fill in traded.iter().flat_map(FillMove::all_of) {
            tell_traded(block.market, assets_of(&state.assets, fill.pair), &fill, events);
        }
        for (pool, traded) in &pools_traded {
            events.push(told_of_trade(block.market, assets_of(&state.assets, traded.pair), *pool, traded));
        }
        pool_changes.iter().for_each(|change| events.push(told_of_pool(block.market, change)));
        effects.iter().for_each(|effect| events.push(told(block.market, effect)));
        for (account, key) in created {
            self.statuses.push(AccountStatus::Active);
            self.transfers.push(None);
            events.push(Event::Account(AccountEvent::Created(account)));
            events.push(Event::Account(AccountEvent::KeySet(AccountKeySet { account, key })));
        }
        for (account, key) in new_keys {
            events.push(Event::Account(AccountEvent::KeySet(AccountKeySet { account, key })));
        }
        keys_kept.iter().for_each(|name| events.push(key_kept(block.market, *name)));
        events.push(told_of_block(&header, &roots, offers_traded));
        let dropped = std::mem::take(&mut state.dropped);
        state.outcomes = Some(Arc::new(outcomes));
        state.last = Some(LastBlock { header, roots, touched, time, log_index, dropped, offers_traded });
        Ok(())
    }
}

/// The market that a transaction names, if it names one.
fn named_market(transaction: &BatchTransaction) -> Option<BatchMarketId> {
    match &transaction.operation {
        BatchOperation::CreateOffer(create) => Some(create.market),
        BatchOperation::CancelOffer(cancel) => Some(cancel.market),
        BatchOperation::CreatePool(create) => Some(create.market),
        BatchOperation::DepositToPool(deposit) => Some(deposit.market),
        BatchOperation::WithdrawFromPool(withdraw) => Some(withdraw.market),
        BatchOperation::CreateAccount(_)
        | BatchOperation::Payment(_)
        | BatchOperation::Issue(_)
        | BatchOperation::Burn(_)
        | BatchOperation::SetKey(_) => None,
    }
}

/// Whether what was signed with a key that was replaced then may still be on its way.
fn was_just_replaced(replaced: TimeNs, now: TimeNs) -> bool {
    now.0.saturating_sub(replaced.0) <= KEY_REPLACED_NS
}

fn is_in_window(last: TransactionSeq, sequence: TransactionSeq) -> bool {
    sequence > last && sequence.0 - last.0 <= TRANSACTIONS_PER_ACCOUNT_MAX && sequence.0 < TRANSACTION_SEQ_END
}

pub(crate) fn assets_of(assets: &[AssetId], pair: Pair) -> (AssetId, AssetId) {
    (assets[pair.sell.index()], assets[pair.buy.index()])
}

/// An offer that stands from now on.
pub(crate) fn opened(market: BatchMarketId, (sell, buy): (AssetId, AssetId), offer: &Offer) -> Event {
    let OfferName { account, sequence } = OfferName::of_number(offer.key().id.0);
    let (amount, stated, limit, tie) = (offer.amount(), offer.stated(), offer.key().limit, offer.key().tie);
    Event::Batch(BatchEvent::OfferOpened(OfferOpened { market, account, sequence, sell, buy, amount, stated, limit, tie }))
}

pub(crate) fn tell_traded(market: BatchMarketId, (sell, buy): (AssetId, AssetId), fill: &FillMove, events: &mut Vec<Event>) {
    let FillMove { offer: OfferName { account, sequence }, sold, bought, left, is_closed, .. } = *fill;
    events.push(Event::Batch(BatchEvent::OfferTraded(OfferTraded { market, account, sequence, sell, buy, sold, bought, left })));
    if is_closed && left > Amount::ZERO {
        let cancelled = OfferCancelled { market, account, sequence, sell, buy, amount: left };
        events.push(Event::Batch(BatchEvent::OfferCancelled(cancelled)));
    }
}

pub(crate) fn told_of_trade(
    market: BatchMarketId,
    (sell, buy): (AssetId, AssetId),
    pool: OfferName,
    traded: &TradedByPool,
) -> Event {
    let TradedByPool { sold, bought, .. } = *traded;
    Event::Batch(BatchEvent::PoolTraded(PoolTraded { market, pool, sell, buy, sold, bought }))
}

pub(crate) fn told_of_block(header: &BlockHeader, roots: &Roots, offers_traded: u64) -> Event {
    let Quality { gap_ppb, unserved_ppb, set_aside } = header.quality;
    Event::Batch(BatchEvent::Cleared(BlockCleared {
        market: header.market,
        block: header.number,
        transactions: header.transaction_count,
        // A market has fewer than 2^32 pairs.
        pairs: header.trades.len() as u32,
        offers_traded,
        gap_ppb,
        unserved_ppb,
        set_aside,
        state_root: roots.state,
    }))
}

pub(crate) fn told(market: BatchMarketId, effect: &Effect) -> Event {
    let Effect { asset, account, amount, then } = *effect;
    match then {
        Then::Paid(to) => Event::Batch(BatchEvent::Paid(Paid { market, from: account, to, asset, amount })),
        Then::Cancelled { buy, sequence } => {
            Event::Batch(BatchEvent::OfferCancelled(OfferCancelled { market, account, sequence, sell: asset, buy, amount }))
        }
        Then::Issued => Event::Batch(BatchEvent::Issued(SupplyChanged { account, asset, amount })),
        Then::Burnt => Event::Batch(BatchEvent::Burnt(SupplyChanged { account, asset, amount })),
        Then::AccountFee => Event::Batch(BatchEvent::AccountFeePaid(AccountFeePaid { market, account, asset, amount })),
    }
}

pub(crate) fn told_of_pool(market: BatchMarketId, change: &PoolChange) -> Event {
    let PoolChange { pool, kind, by, assets: [first, second], amounts, shares } = *change;
    let moved = PoolMoved { market, pool, account: by.account, sequence: by.sequence, first, second, amounts, shares };
    Event::Batch(match kind {
        PoolChangeKind::Created { rule, fee_ppm } => {
            BatchEvent::PoolCreated(PoolCreated { market, pool, first, second, rule, fee_ppm, amounts, shares })
        }
        PoolChangeKind::Deposited => BatchEvent::PoolDeposited(moved),
        PoolChangeKind::Withdrawn => BatchEvent::PoolWithdrawn(moved),
        PoolChangeKind::Closed => BatchEvent::PoolClosed(PoolClosed { market, pool, first, second, amounts }),
    })
}

/// A transaction of the block under this name set no key.
pub(crate) fn key_kept(market: BatchMarketId, OfferName { account, sequence }: OfferName) -> Event {
    let reason = DropReason::KeyReplaced;
    Event::Batch(BatchEvent::TransactionDropped(TransactionDropped { market, account, sequence, reason }))
}

/// Suspends or reinstates an account for batch markets.
pub(crate) fn follow_status(accounts: &mut Accounts, account: AccountId, status: AccountStatus) {
    match status {
        AccountStatus::Active => accounts.resume(account),
        AccountStatus::Suspended => accounts.suspend(account),
    }
}
