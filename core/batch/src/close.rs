//! The first half of a block: which transactions are kept, what they reserve, which offers stand.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::sync::Arc;

use walras_clearing::fork_join::fork_join;
use walras_clearing::{BatchMarket, Offer, OfferKey, SellChange, TieBreak};
use walras_ledger::{AccountSet, AccountsPart, Ledger, Parts, PartsRange};
use walras_types::limits::{BATCH_TRANSACTIONS_MAX, POOL_RESERVE_MIN, POOLS_MAX, TRANSACTION_SEQ_END};
use walras_types::{AccountId, Amount, AssetId, BatchOperation, BatchTransaction, Intake, OfferName, PublicKey, TransactionSeq};

use crate::accounts::Accounts;
use crate::batch::Batch;
use crate::closed::{ClosedBatch, NewKey};
use crate::effects;
use crate::gather::{ByPair, Entry, Look, look, sender};
use crate::intake::{Outcome, Taken, View, window_place};
use crate::joined;
use crate::pools::PoolChange;
use crate::settings::{AssetTable, BatchSettings};
use walras_types::DropReason;

/// What came of a closed batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The hash of the transactions that are kept and of the block before; ties are drawn by it.
    pub batch_hash: [u8; 32],
    /// How many are kept.
    pub kept_count: u32,
    /// The places of the others in ascending order, and why each was left out.
    pub dropped: Vec<(u32, DropReason)>,
}

/// Why a batch was not closed. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseError {
    /// The batch closed before is not cleared yet.
    #[error("the batch that was closed before waits to be cleared: clear it first, with an empty clearing if there is no better")]
    NotCleared,
    /// More transactions than a batch may have.
    #[error("{0} transactions: close at most {BATCH_TRANSACTIONS_MAX} at once")]
    TooMany(usize),
}

impl Batch {
    /// Closes a batch of transactions: those that are kept reserve what they spend, new offers stand, cancelled ones no longer do. What is
    /// kept depends neither on the number of threads nor, with [`Intake::Filter`], on the order of the transactions.
    ///
    /// # Errors
    /// See [`CloseError`].
    pub fn close(
        &mut self,
        ledger: &mut Ledger,
        accounts: &mut Accounts,
        transactions: &[BatchTransaction],
        intake: Intake,
        threads: NonZero<usize>,
    ) -> Result<Closed, CloseError> {
        if self.is_under_way() {
            return Err(CloseError::NotCleared);
        }
        if transactions.len() > BATCH_TRANSACTIONS_MAX {
            return Err(CloseError::TooMany(transactions.len()));
        }
        accounts.follow(ledger.account_count());
        let outcomes = self.judge(ledger, accounts, &self.settings, transactions, intake, None, threads);

        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.parent);
        for outcome in &outcomes {
            hasher.update(&outcome.bytes);
        }
        let batch_hash = *hasher.finalize().as_bytes();

        let mut kept = Vec::with_capacity(outcomes.iter().map(|outcome| outcome.bytes.len()).sum());
        outcomes.iter().for_each(|outcome| kept.extend_from_slice(&outcome.bytes));
        let market = Arc::make_mut(&mut self.market);
        let (added, removed) = change_market(&self.table, market, &outcomes, &TieBreak::new(&batch_hash), threads);
        let pool_changes = self.change_pools(&outcomes);
        let effects: Vec<_> = outcomes.iter().map(|outcome| &outcome.effects[..]).collect();
        let effects = effects::by_asset(ledger.asset_count(), &effects);
        // Units to be issued are reserved by their issuer until the block ends.
        for issue in outcomes.iter().flat_map(|outcome| &outcome.issues) {
            ledger.issue_reserved(issue.account, issue.asset, issue.amount).expect("the supply has room for what is kept");
        }
        let keys: Vec<PublicKey> = outcomes.iter().flat_map(|outcome| &outcome.keys).copied().collect();
        let new_keys: Vec<NewKey> = outcomes.iter().flat_map(|outcome| &outcome.new_keys).copied().collect();
        accounts.keys.expect_all(keys.iter().chain(new_keys.iter().map(|new| &new.key)));
        let senders: Vec<(AccountId, u32)> = outcomes.iter().flat_map(|outcome| &outcome.senders).copied().collect();
        if ledger.tracks_changes() {
            // Another market's block may be cleared before this one, and numbers are hashed with their accounts.
            let mut changed = AccountSet::with_room(ledger.account_count());
            senders.iter().for_each(|(account, _)| changed.insert(*account));
            ledger.mark_changed(&changed);
        }
        let kept_count = senders.iter().map(|(_, count)| count).sum();
        let mut dropped: Vec<(u32, DropReason)> = outcomes.into_iter().flat_map(|outcome| outcome.dropped).collect();
        dropped.sort_unstable();
        let account_fee = self.settings.account_fee;
        let transactions = Arc::new(kept);
        self.closed = Some(Arc::new(ClosedBatch {
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
        }));
        Ok(Closed { batch_hash, kept_count, dropped })
    }

    /// What is kept, in parts that follow each other in the order of accounts. Reserves what it spends and counts its numbers as used. The
    /// transactions are those of some accounts where the batch is judged in steps.
    #[expect(clippy::too_many_arguments, reason = "what a whole batch and a part of one have in common")]
    pub(crate) fn judge(
        &self,
        ledger: &mut Ledger,
        accounts: &mut Accounts,
        settings: &BatchSettings,
        transactions: &[BatchTransaction],
        intake: Intake,
        part_of: Option<&PartOf<'_>>,
        threads: NonZero<usize>,
    ) -> Vec<Outcome> {
        let account_count = ledger.account_count();
        let mut look = look(transactions, account_count, threads);
        let mut keys_twice = keys_twice(&mut look.keys);
        let mut pools_room = POOLS_MAX - self.pools.heads.len();
        if let Some(part_of) = part_of {
            // No two are equal in what is sorted and then looked up.
            keys_twice = look.keys.iter().map(|(key, _)| *key).filter(|key| part_of.keys_twice.contains(key)).collect();
            pools_room -= part_of.pools_created;
        }
        let room = accounts.room(account_count) as usize;
        let may_ask = |index: u32| {
            let account = transactions[index as usize].account;
            account.0 < account_count && !accounts.suspended.contains(&account)
        };
        // They are looked at closely only where there would not be room for all.
        let has_room =
            look.keys.len() <= room || creatable_count(&look.keys, intake, |key| accounts.keys.is_taken(key), may_ask) <= room;
        let supply = (0..ledger.asset_count()).map(|asset| ledger.supply(AssetId(asset)).expect("below the count of assets"));
        let mut view = View {
            settings,
            table: &self.table,
            market: &self.market,
            keys: &accounts.keys,
            suspended: &accounts.suspended,
            keys_kept: &self.keys_kept,
            issuers: &accounts.issuers,
            supply: supply.collect(),
            account_count,
            has_room,
            pools: &self.pools,
            pools_refused: pools_refused(&look, transactions, pools_room, accounts, ledger),
            keys_refused: &[],
            block: self.number,
        };
        let mut refused = Vec::new();
        match intake {
            Intake::Filter => view.keys_refused = &keys_twice,
            Intake::Reserve => refused = untangle(&view, transactions, &look.keys, &keys_twice, ledger, &accounts.last),
        }
        let (mut last, mut first) = (accounts.last.as_range(), 0);
        let mut work = Vec::with_capacity(look.ends.len());
        for (&end, part) in look.ends.iter().zip(ledger.parts_by_account(&look.ends)) {
            let last = last.split_off((end - first) as usize);
            work.push(PartWork { first, end, part, last });
            first = end;
        }
        let judged = fork_join(work, |work| work.judge(&view, transactions, &look, intake, &refused));
        let unknown = look.unknown.iter().map(|&index| (index, DropReason::UnknownAccount)).collect();
        judged.into_iter().chain([Outcome { dropped: unknown, ..Outcome::default() }]).collect()
    }

    /// Lets come into pools and go out of them what was asked.
    fn change_pools(&mut self, outcomes: &[Outcome]) -> Vec<PoolChange> {
        let mut changes: Vec<PoolChange> = outcomes.iter().flat_map(|outcome| &outcome.pool_changes).copied().collect();
        if !changes.is_empty() {
            let table = &self.table;
            let index = |asset: AssetId| table.index(asset).expect("a pool is of the market's assets");
            Arc::make_mut(&mut self.pools).change(Arc::make_mut(&mut self.market), &mut changes, &index);
        }
        changes
    }
}

/// What a part of a batch has to know of the rest.
pub(crate) struct PartOf<'b> {
    /// Keys that several of the batch's transactions ask for.
    pub(crate) keys_twice: &'b BTreeSet<PublicKey>,
    /// How many pools the parts before create.
    pub(crate) pools_created: usize,
}

/// An offer with the tie-break that its batch draws for it.
pub(crate) fn tied(ties: &TieBreak, offer: Offer) -> Offer {
    let id = offer.key().id;
    offer.with_tie(ties.of(u64::from(OfferName::of_number(id.0).account.0), id))
}

/// Puts new offers into the market and takes cancelled ones out. Says which, by pair and in the order of their keys.
pub(crate) fn change_market(
    table: &AssetTable,
    market: &mut BatchMarket,
    outcomes: &[Outcome],
    ties: &TieBreak,
    threads: NonZero<usize>,
) -> (ByPair<Offer>, ByPair<OfferKey>) {
    let place_count = table.place_count();
    let offers: Vec<_> = outcomes.iter().map(|outcome| (&outcome.offer_pairs[..], &outcome.offers[..])).collect();
    let cancelled: Vec<_> = outcomes.iter().map(|outcome| (&outcome.cancelled_pairs[..], &outcome.cancelled[..])).collect();
    let mut added = ByPair::of(place_count, &offers, |offer| tied(ties, offer), threads);
    let mut removed = ByPair::of(place_count, &cancelled, |key| key, threads);
    let changes = (0..place_count).zip(added.pairs_mut().zip(removed.pairs_mut()));
    let changes = changes.filter(|(_, (added, removed))| !added.is_empty() || !removed.is_empty());
    let changes = changes.map(|(number, (added, removed))| SellChange { pair: table.pair(number), removed, added });
    let changes: Vec<_> = changes.collect();
    market.change_sells(changes, threads).expect("ids are new, cancelled offers stand, and what is for sale is reserved");
    (added, removed)
}

/// Names of the transactions that may not create a pool since there is no room for all, in ascending order: of those that could alone, the
/// last in the order of (account, number). Who can not pay takes nobody's room.
fn pools_refused(look: &Look, transactions: &[BatchTransaction], room: usize, accounts: &Accounts, ledger: &Ledger) -> Vec<u64> {
    if look.pools.len() <= room {
        return Vec::new();
    }
    let could = |index: &&u32| {
        let BatchTransaction { account, sequence, operation, .. } = &transactions[**index as usize];
        let BatchOperation::CreatePool(create) = operation else { return false };
        let has = |(asset, amount): (&AssetId, Amount)| {
            ledger.balance(*account, *asset).is_some_and(|balance| balance.available >= amount && amount.get() >= POOL_RESERVE_MIN)
        };
        sequence.0 < TRANSACTION_SEQ_END
            && !accounts.suspended.contains(account)
            && create.assets.iter().zip(create.amounts).all(has)
    };
    let name = |index: &u32| {
        let BatchTransaction { account, sequence, .. } = transactions[*index as usize];
        OfferName { account, sequence }.number()
    };
    let mut names: Vec<u64> = look.pools.iter().filter(could).map(name).collect();
    names.sort_unstable();
    names.dedup();
    names.split_off(room.min(names.len()))
}

/// Keys that more than one transaction asks for, in ascending order. Sorts the keys.
fn keys_twice(keys: &mut [(PublicKey, u32)]) -> Vec<PublicKey> {
    keys.sort_unstable();
    keys.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1).map(|same| same[0].0).collect()
}

/// How many accounts the batch can come to at most: one for each key that nobody has and that somebody asks for who may; where no key is given to
/// whoever is first, only those that one transaction asks for. The keys are sorted. So what is dropped anyway takes nobody's room, but for what
/// somebody asks for and can not pay.
fn creatable_count(
    keys: &[(PublicKey, u32)],
    intake: Intake,
    is_taken: impl Fn(&PublicKey) -> bool,
    may_ask: impl Fn(u32) -> bool,
) -> usize {
    let is_creatable = |same: &&[(PublicKey, u32)]| {
        let is_given = match intake {
            Intake::Filter => same.len() == 1,
            Intake::Reserve => true,
        };
        is_given && !is_taken(&same[0].0) && same.iter().any(|(_, index)| may_ask(*index))
    };
    keys.chunk_by(|a, b| a.0 == b.0).filter(is_creatable).count()
}

/// What the offers have that transactions cancel, looked up together.
struct Standing {
    /// By transaction: units, or zero where no such offer stands. Nothing when nobody cancels.
    units: Vec<u64>,
}

impl Standing {
    fn of(view: &View<'_>, transactions: &[BatchTransaction], entries: &[Entry]) -> Self {
        let cancels = |entry: &Entry| Some((entry.1, view.cancels(&transactions[entry.1 as usize])?));
        let (indexes, asked): (Vec<u32>, Vec<_>) = entries.iter().filter_map(cancels).unzip();
        let mut units = if asked.is_empty() { Vec::new() } else { vec![0; transactions.len()] };
        for (index, offer) in indexes.iter().zip(view.market.find_sells(&asked)) {
            units[*index as usize] = offer.map_or(0, |offer| offer.amount().get());
        }
        Self { units }
    }

    fn of_transaction(&self, index: u32) -> Option<Amount> {
        // An offer has a unit at least.
        self.units.get(index as usize).copied().and_then(Amount::new).filter(|amount| !amount.is_zero())
    }
}

/// Entries whose transactions and balances are fetched together: few enough that they stay in a processor's own cache.
const EXPECTED: usize = 128;

/// One thread's accounts.
struct PartWork<'l> {
    first: u32,
    end: u32,
    part: AccountsPart<'l>,
    last: PartsRange<'l, u64>,
}

impl PartWork<'_> {
    /// The highest number that an account used.
    fn last_of(&self, account: AccountId) -> u64 {
        *self.last.get((account.0 - self.first) as usize).expect("an account of this part")
    }

    /// Fetches what entries look at that are judged next. It lies anywhere in memory, and judging waits for each: here a processor
    /// waits for many at once. A hint.
    fn expect(&self, transactions: &[BatchTransaction], entries: &[Entry]) {
        let spent = |entry: &Entry| {
            let transaction = &transactions[entry.1 as usize];
            let asset = match &transaction.operation {
                BatchOperation::CreateOffer(create) => create.sell,
                BatchOperation::Payment(payment) => payment.asset,
                _ => return 0,
            };
            self.part.balance(transaction.account, asset).map_or(0, |balance| balance.available.get())
        };
        std::hint::black_box(entries.iter().fold(0, |seen, entry| seen ^ spent(entry)));
    }

    fn judge(
        mut self,
        view: &View<'_>,
        transactions: &[BatchTransaction],
        look: &Look,
        intake: Intake,
        refused: &[(u32, DropReason)],
    ) -> Outcome {
        let mut entries = look.of_accounts(transactions, self.first, self.end);
        match intake {
            Intake::Filter => entries.sort_unstable(),
            Intake::Reserve => entries.sort_unstable_by_key(|entry| (sender(entry), entry.1)),
        }
        let standing = Standing::of(view, transactions, &entries);
        let (mut taken, mut outcome) = (Taken::default(), Outcome::default());
        outcome.bytes.reserve(entries.len() * 48);
        outcome.offers.reserve(entries.len());
        outcome.offer_pairs.reserve(entries.len());
        let (mut chosen, mut kept) = (Vec::new(), Vec::new());
        let mut left = &entries[..];
        let mut expected = 0;
        for group in entries.chunk_by(|a, b| sender(a) == sender(b)) {
            let account = sender(&group[0]);
            if expected == 0 {
                expected = EXPECTED.min(left.len());
                self.expect(transactions, &left[..expected]);
            }
            left = &left[group.len()..];
            expected = expected.saturating_sub(group.len());
            if view.suspended.contains(&account) {
                outcome.dropped.extend(group.iter().map(|entry| (entry.1, DropReason::Suspended)));
                continue;
            }
            let mark = outcome.mark();
            taken.clear();
            match intake {
                Intake::Filter => {
                    let told = outcome.dropped.len();
                    match self.filter(view, transactions, group, &standing, &mut taken, &mut outcome, &mut kept) {
                        Ok(()) => self.keep(account, transactions, &kept, &taken, &mut outcome),
                        Err(reason) => {
                            outcome.rewind(mark);
                            outcome.dropped.truncate(told);
                            outcome.dropped.extend(group.iter().map(|entry| (entry.1, reason)));
                        }
                    }
                }
                Intake::Reserve => {
                    self.choose(view, transactions, group, &standing, refused, &mut taken, &mut outcome, &mut chosen);
                    outcome.rewind(mark);
                    taken.clear();
                    chosen.sort_unstable();
                    let filtered = self.filter(view, transactions, &chosen, &standing, &mut taken, &mut outcome, &mut kept);
                    assert_eq!((filtered, kept.len()), (Ok(()), chosen.len()), "what is kept singly is kept together");
                    self.keep(account, transactions, &kept, &taken, &mut outcome);
                }
            }
        }
        outcome
    }

    /// The transactions of an account that are good by themselves, in the order of their numbers; or why they can not be together.
    #[expect(clippy::too_many_arguments, reason = "scratch space that is used again for every account")]
    fn filter(
        &self,
        view: &View<'_>,
        transactions: &[BatchTransaction],
        group: &[Entry],
        standing: &Standing,
        taken: &mut Taken,
        outcome: &mut Outcome,
        kept: &mut Vec<Entry>,
    ) -> Result<(), DropReason> {
        kept.clear();
        let Some(account) = group.first().map(sender) else { return Ok(()) };
        let last = self.last_of(account);
        let transaction = |entry: &Entry| &transactions[entry.1 as usize];
        // Before anything else, so that nothing depends on the order of two transactions with one number.
        let mut numbers = 0_u64;
        for place in group.iter().filter_map(|entry| window_place(last, transaction(entry).sequence)) {
            if numbers >> place & 1 == 1 {
                return Err(DropReason::SequenceTwice);
            }
            numbers |= 1 << place;
        }
        let available = |asset: AssetId| Some(self.part.balance(account, asset)?.available);
        let standing = |entry: &Entry| standing.of_transaction(entry.1);
        let torn = joined::torn(view, transactions, group, last, standing);
        for (place, entry) in group.iter().enumerate() {
            if let Some(reason) = torn.get(place).copied().flatten() {
                outcome.dropped.push((entry.1, reason));
                continue;
            }
            match view.take(transaction(entry), last, taken, available, || standing(entry), outcome) {
                Ok(()) => kept.push(*entry),
                Err(reason) if reason.is_of_one() => outcome.dropped.push((entry.1, reason)),
                Err(reason) => return Err(reason),
            }
        }
        Ok(())
    }

    /// Those of an account's transactions that can be taken, one after the other as given.
    #[expect(clippy::too_many_arguments, reason = "scratch space that is used again for every account")]
    fn choose(
        &self,
        view: &View<'_>,
        transactions: &[BatchTransaction],
        group: &[Entry],
        standing: &Standing,
        refused: &[(u32, DropReason)],
        taken: &mut Taken,
        outcome: &mut Outcome,
        kept: &mut Vec<Entry>,
    ) {
        kept.clear();
        let account = sender(&group[0]);
        let last = self.last_of(account);
        let available = |asset: AssetId| Some(self.part.balance(account, asset)?.available);
        let take = |entry: &Entry, taken: &mut Taken, outcome: &mut Outcome| {
            let before = refused.binary_search_by_key(&entry.1, |(index, _)| *index).map_or(Ok(()), |at| Err(refused[at].1));
            let (transaction, standing) = (&transactions[entry.1 as usize], || standing.of_transaction(entry.1));
            before.and_then(|()| view.take(transaction, last, taken, available, standing, outcome))
        };
        let mut faults = Vec::new();
        joined::for_each_chain(transactions, group, |chain| {
            let before = joined::any_is_joined(transactions, chain).then(|| (taken.clone(), outcome.mark()));
            faults.clear();
            faults.extend(chain.iter().map(|entry| take(entry, taken, outcome).err()));
            joined::add_faults(transactions, chain, &mut faults);
            if faults.iter().all(Option::is_none) {
                kept.extend(chain);
                return;
            }
            if let Some((taken_before, mark)) = before {
                *taken = taken_before;
                outcome.rewind(mark);
            }
            outcome.dropped.extend(chain.iter().zip(&faults).filter_map(|(entry, fault)| Some((entry.1, (*fault)?))));
        });
    }

    /// Reserves what an account's transactions spend, and counts their numbers as used.
    fn keep(
        &mut self,
        account: AccountId,
        transactions: &[BatchTransaction],
        group: &[Entry],
        taken: &Taken,
        outcome: &mut Outcome,
    ) {
        let Some((highest, _)) = group.last() else { return };
        let last = self.last.get_mut((account.0 - self.first) as usize);
        *last.expect("an account of this part") = OfferName::of_number(*highest).sequence.0;
        for debit in taken.debits() {
            self.part.reserve(account, debit.asset, debit.total).expect("it was found to be available");
        }
        group.iter().for_each(|entry| outcome.keep(&transactions[entry.1 as usize]));
        outcome.senders.push((account, group.len() as u32));
    }
}

/// Where transactions are taken one by one and several ask for one key, the first that is taken gets it, and whether it is taken depends
/// on others of its account: so the accounts that ask for such keys are looked at side by side, in the order given. What they can not have,
/// in ascending order of the places.
fn untangle(
    view: &View<'_>,
    transactions: &[BatchTransaction],
    keys: &[(PublicKey, u32)],
    keys_twice: &[PublicKey],
    ledger: &Ledger,
    last: &Parts<u64>,
) -> Vec<(u32, DropReason)> {
    let asks = keys.iter().filter(|(key, _)| keys_twice.binary_search(key).is_ok());
    let mut states: BTreeMap<AccountId, Taken> =
        asks.map(|(_, index)| (transactions[*index as usize].account, Taken::default())).collect();
    states.retain(|account, _| account.0 < view.account_count && !view.suspended.contains(account));
    if states.is_empty() {
        return Vec::new();
    }
    let (mut refused, mut given, mut outcome) = (Vec::new(), BTreeSet::new(), Outcome::default());
    let nothing = outcome.mark();
    let name = |transaction: &BatchTransaction| {
        let BatchTransaction { account, sequence, .. } = *transaction;
        OfferName { account, sequence: TransactionSeq(sequence.0.min(TRANSACTION_SEQ_END - 1)) }.number()
    };
    let all = (0_u32..).zip(transactions).filter(|(_, transaction)| states.contains_key(&transaction.account));
    let all: Vec<Entry> = all.map(|(index, transaction)| (name(transaction), index)).collect();
    joined::for_each_chain(transactions, &all, |chain| {
        let account = sender(&chain[0]);
        let Some(taken) = states.get_mut(&account) else { return };
        let available = |asset: AssetId| Some(ledger.balance(account, asset)?.available);
        let (before, mut asked) = (taken.clone(), BTreeSet::new());
        let own_fault = |entry: &Entry| {
            let transaction = &transactions[entry.1 as usize];
            let key = match &transaction.operation {
                BatchOperation::CreateAccount(key) | BatchOperation::SetKey(key) => Some(*key),
                _ => None,
            };
            if key.is_some_and(|key| given.contains(&key) || !asked.insert(key)) {
                return Some(DropReason::KeyTwice);
            }
            let standing = || view.standing(transaction);
            view.take(transaction, last[account.0 as usize], taken, available, standing, &mut outcome).err()
        };
        let mut faults: Vec<Option<DropReason>> = chain.iter().map(own_fault).collect();
        outcome.rewind(nothing);
        joined::add_faults(transactions, chain, &mut faults);
        if faults.iter().all(Option::is_none) {
            given.extend(asked);
        } else {
            *taken = before;
            refused.extend(chain.iter().zip(faults).filter_map(|(entry, fault)| Some((entry.1, fault?))));
        }
    });
    refused.sort_unstable();
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_anyway_takes_nobodys_room() {
        let key = |number| PublicKey([number; 32]);
        // Key 1 is asked for once, 2 twice, 3 by somebody who may not, 4 by one such and one other, 5 is taken.
        let keys = [(1, 0), (2, 1), (2, 2), (3, 3), (4, 3), (4, 4), (5, 5)].map(|(number, index)| (key(number), index));
        for (intake, expected) in [(Intake::Filter, 1), (Intake::Reserve, 3)] {
            assert_eq!(creatable_count(&keys, intake, |taken| *taken == key(5), |index| index != 3), expected, "{intake:?}");
        }
    }
}
