//! Which transactions of a batch are kept, and what they do.

use std::collections::{BTreeMap, BTreeSet};

use walras_clearing::{Offer, OfferId, OfferKey, Pair, TieBreak};
use walras_types::limits::{AMOUNT_MAX, TRANSACTION_SEQ_END, TRANSACTIONS_PER_ACCOUNT_MAX};
use walras_types::{
    AccountFee, AccountId, AssetId, BatchOperation, BatchTransaction, CancelOffer, CreateOffer, IssuedAmount, Joined, OfferName,
    Payment, PublicKey, TransactionSeq,
};

use super::venue::{Pending, Standing, Venue};

/// How it is decided what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intake {
    /// Of what is right by itself each account has all or nothing, whatever the order.
    Filter,
    /// One after the other, as far as what is left allows.
    Reserve,
}

/// What can be wrong with a transaction, or with those of an account together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// No such account sends.
    UnknownAccount,
    /// The sender may do nothing.
    Suspended,
    /// The number is not above the last one, or too far above.
    NumberOutOfWindow,
    /// Another transaction of the account has the number.
    NumberTwice,
    /// Another market, or none.
    UnknownMarket,
    /// An asset that is not there, or not in the market.
    UnknownAsset,
    /// An asset for itself.
    EqualAssets,
    /// Of nothing.
    ZeroAmount,
    /// No amount honours the limit.
    Unfillable,
    /// The account has no such offer.
    NoSuchOffer,
    /// Another transaction cancels the offer.
    CancelledTwice,
    /// Nobody gets the payment.
    UnknownRecipient,
    /// The sender gets it.
    PaysItself,
    /// Only an asset's issuer makes and destroys units.
    NotIssuer,
    /// There would be more than there may be.
    SupplyExceeded,
    /// An account has the key.
    KeyTaken,
    /// Another transaction asks for the key.
    KeyTwice,
    /// Another transaction of the account sets its key.
    KeySetTwice,
    /// The operator replaced the account's key.
    KeyReplaced,
    /// More is spent than was available.
    Overdraft,
    /// The block comes after the last one that may have it.
    Expired,
    /// It is joined with one that is not there.
    JoinedMissing,
    /// It is joined with one that is wrong.
    JoinedDropped,
}

/// What a batch comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The places of the transactions that are kept, ascending.
    pub kept: Vec<usize>,
    /// Of the others, all that is wrong.
    pub dropped: BTreeMap<usize, BTreeSet<Fault>>,
}

/// The model of pools is in core/batch/tests/blocks/pools.
const NO_POOLS: &str = "this model has no pools";

/// What a transaction takes from an account's available balance, where accounts cost this.
fn debit(operation: &BatchOperation, account_fee: Option<AccountFee>) -> Option<(AssetId, u128)> {
    match operation {
        BatchOperation::CreateOffer(create) => Some((create.sell, u128::from(create.amount.get()))),
        BatchOperation::Payment(payment) => Some((payment.asset, u128::from(payment.amount.get()))),
        BatchOperation::Burn(burnt) => Some((burnt.asset, u128::from(burnt.amount.get()))),
        BatchOperation::CreateAccount(_) => account_fee.map(|fee| (fee.asset, u128::from(fee.amount.get()))),
        BatchOperation::CancelOffer(_) | BatchOperation::Issue(_) | BatchOperation::SetKey(_) => None,
        BatchOperation::CreatePool(_) | BatchOperation::DepositToPool(_) | BatchOperation::WithdrawFromPool(_) => {
            panic!("{NO_POOLS}")
        }
    }
}

/// The key that an account would have by the transaction.
fn asked_key(transaction: &BatchTransaction) -> Option<PublicKey> {
    match transaction.operation {
        BatchOperation::CreateAccount(key) | BatchOperation::SetKey(key) => Some(key),
        _ => None,
    }
}

/// The places of transactions that are kept together or not at all, in the order of their numbers; first the chain of which one came first.
fn chains(transactions: &[BatchTransaction]) -> Vec<Vec<usize>> {
    let mut places: Vec<usize> = (0..transactions.len()).collect();
    // Of several that have one number, which one the next number follows does not depend on their order.
    places.sort_by_key(|place| {
        let BatchTransaction { account, sequence, terms, .. } = transactions[*place];
        (account, sequence, terms.joined)
    });
    let mut chains: Vec<Vec<usize>> = Vec::new();
    for place in places {
        let next = &transactions[place];
        let goes_on = |chain: &&mut Vec<usize>| {
            let last = &transactions[chain[chain.len() - 1]];
            let is_next = last.account == next.account && u128::from(last.sequence.0) + 1 == u128::from(next.sequence.0);
            is_next
                && match last.terms.joined {
                    Joined::No | Joined::Last => false,
                    Joined::Next => matches!(next.terms.joined, Joined::No | Joined::Next | Joined::First),
                    Joined::First | Joined::Middle => matches!(next.terms.joined, Joined::Middle | Joined::Last),
                }
        };
        match chains.last_mut().filter(goes_on) {
            Some(chain) => chain.push(place),
            None => chains.push(vec![place]),
        }
    }
    chains.sort_by_key(|chain| chain.iter().min().copied());
    chains
}

/// All that is wrong with the transactions of a chain, of what is wrong with each alone.
fn faults_of_chain(transactions: &[BatchTransaction], chain: &[usize], mut faults: Vec<BTreeSet<Fault>>) -> Vec<BTreeSet<Fault>> {
    let last = chain.len() - 1;
    if matches!(transactions[chain[0]].terms.joined, Joined::Middle | Joined::Last) {
        faults[0].insert(Fault::JoinedMissing);
    }
    if matches!(transactions[chain[last]].terms.joined, Joined::Next | Joined::First | Joined::Middle) {
        faults[last].insert(Fault::JoinedMissing);
    }
    if faults.iter().any(|faults| !faults.is_empty()) {
        faults.iter_mut().filter(|faults| faults.is_empty()).for_each(|faults| faults.extend([Fault::JoinedDropped]));
    }
    faults
}

/// What transactions taken so far have used up.
#[derive(Clone, Default)]
struct Used {
    numbers: BTreeSet<(AccountId, TransactionSeq)>,
    cancelled: BTreeSet<(Pair, OfferKey)>,
    keys: BTreeSet<PublicKey>,
    sets_key: BTreeSet<AccountId>,
    debits: BTreeMap<(AccountId, AssetId), u128>,
    issued: BTreeMap<AssetId, u128>,
}

impl Used {
    fn add(&mut self, venue: &Venue, transaction: &BatchTransaction) {
        let BatchTransaction { account, sequence, operation, .. } = transaction;
        self.numbers.insert((*account, *sequence));
        if let Some((asset, units)) = debit(operation, venue.account_fee) {
            *self.debits.entry((*account, asset)).or_default() += units;
        }
        match operation {
            BatchOperation::CancelOffer(cancel) => self.cancelled.extend(venue.cancelled(*account, cancel)),
            BatchOperation::CreateAccount(key) => {
                self.keys.insert(*key);
            }
            BatchOperation::SetKey(key) => {
                self.keys.insert(*key);
                self.sets_key.insert(*account);
            }
            BatchOperation::Issue(issued) => {
                *self.issued.entry(issued.asset).or_default() += u128::from(issued.amount.get());
            }
            _ => {}
        }
    }
}

impl Venue {
    /// Which transactions are kept, and why not the others.
    #[must_use]
    pub fn judge(&self, transactions: &[BatchTransaction], intake: Intake) -> Verdict {
        match intake {
            Intake::Filter => self.filter(transactions),
            Intake::Reserve => self.reserve(transactions),
        }
    }

    /// All that is wrong with a transaction by itself, whatever else is in the batch.
    fn own_faults(&self, transaction: &BatchTransaction) -> BTreeSet<Fault> {
        let BatchTransaction { account, sequence, operation, .. } = transaction;
        let last = self.last.get(account).copied().unwrap_or(0);
        let in_window = sequence.0 > last
            && sequence.0 <= last.saturating_add(TRANSACTIONS_PER_ACCOUNT_MAX)
            && sequence.0 < TRANSACTION_SEQ_END;
        let mut faults = self.operation_faults(*account, *sequence, operation);
        let keeps_key = matches!(operation, BatchOperation::SetKey(_)) && self.keys_kept.contains(account);
        let mut check = |is_right: bool, fault| {
            if !is_right {
                faults.insert(fault);
            }
        };
        check(account.0 < self.account_count, Fault::UnknownAccount);
        check(!self.suspended.contains(account), Fault::Suspended);
        check(in_window, Fault::NumberOutOfWindow);
        check(!keeps_key, Fault::KeyReplaced);
        check(transaction.terms.until.is_none_or(|until| self.block <= until.get()), Fault::Expired);
        faults
    }

    fn operation_faults(&self, account: AccountId, sequence: TransactionSeq, operation: &BatchOperation) -> BTreeSet<Fault> {
        let mut faults = BTreeSet::new();
        let mut check = |is_right: bool, fault| {
            if !is_right {
                faults.insert(fault);
            }
        };
        match operation {
            BatchOperation::CreateAccount(key) | BatchOperation::SetKey(key) => {
                check(!self.keys.values().any(|taken| taken == key), Fault::KeyTaken)
            }
            BatchOperation::CreateOffer(CreateOffer { market, sell, buy, amount, limit }) => {
                check(*market == self.market, Fault::UnknownMarket);
                check(self.index_of(*sell).is_some() && self.index_of(*buy).is_some(), Fault::UnknownAsset);
                check(sell != buy, Fault::EqualAssets);
                check(!amount.is_zero(), Fault::ZeroAmount);
                let id = OfferId(OfferName { account, sequence }.number());
                check(amount.is_zero() || Offer::new(*limit, 0, id, *amount).is_ok(), Fault::Unfillable);
            }
            BatchOperation::CancelOffer(cancel) => {
                check(cancel.market == self.market, Fault::UnknownMarket);
                check(self.index_of(cancel.sell).is_some() && self.index_of(cancel.buy).is_some(), Fault::UnknownAsset);
                check(cancel.sell != cancel.buy, Fault::EqualAssets);
                check(self.cancelled(account, cancel).is_some(), Fault::NoSuchOffer);
            }
            BatchOperation::Payment(payment) => {
                check(payment.asset.0 < self.asset_count, Fault::UnknownAsset);
                check(!payment.amount.is_zero(), Fault::ZeroAmount);
                check(payment.to.0 < self.account_count, Fault::UnknownRecipient);
                check(payment.to != account, Fault::PaysItself);
            }
            BatchOperation::Issue(moved) | BatchOperation::Burn(moved) => {
                check(moved.asset.0 < self.asset_count, Fault::UnknownAsset);
                check(!moved.amount.is_zero(), Fault::ZeroAmount);
                check(self.issuers.get(&moved.asset) == Some(&account), Fault::NotIssuer);
            }
            BatchOperation::CreatePool(_) | BatchOperation::DepositToPool(_) | BatchOperation::WithdrawFromPool(_) => {
                panic!("{NO_POOLS}")
            }
        }
        faults
    }

    /// The offer that a cancel names, if it stands.
    fn cancelled(&self, account: AccountId, cancel: &CancelOffer) -> Option<(Pair, OfferKey)> {
        if cancel.market != self.market || cancel.sequence.0 >= TRANSACTION_SEQ_END {
            return None;
        }
        let id = OfferId(OfferName { account, sequence: cancel.sequence }.number());
        let place = (self.pair(cancel.sell, cancel.buy)?, OfferKey { limit: cancel.limit, tie: cancel.tie, id });
        self.offers.contains_key(&place).then_some(place)
    }

    /// Each by itself first, and beside all who ask for the same key; what is right so far then beside all others of its account.
    fn filter(&self, transactions: &[BatchTransaction]) -> Verdict {
        let mut all: Vec<(&BatchTransaction, BTreeSet<Fault>)> = transactions.iter().map(|t| (t, self.own_faults(t))).collect();
        for (transaction, own) in &mut all {
            let key = asked_key(transaction);
            let asks_the_same = |other: &&BatchTransaction| asked_key(other) == key;
            if key.is_some() && own.is_empty() && transactions.iter().filter(asks_the_same).count() > 1 {
                own.insert(Fault::KeyTwice);
            }
        }
        for chain in chains(transactions) {
            let own: Vec<BTreeSet<Fault>> = chain.iter().map(|place| all[*place].1.clone()).collect();
            for (place, faults) in chain.iter().zip(faults_of_chain(transactions, &chain, own)) {
                all[*place].1 = faults;
            }
        }
        let right = || all.iter().filter(|(_, own)| own.is_empty()).map(|(transaction, _)| *transaction);
        let mut used = Used::default();
        right().for_each(|transaction| used.add(self, transaction));
        let mut together: BTreeMap<AccountId, BTreeSet<Fault>> = BTreeMap::new();
        let mut costs = |account: AccountId, fault| together.entry(account).or_default().insert(fault);
        for (at, (a, of_a)) in all.iter().enumerate() {
            for (b, of_b) in &all[..at] {
                let is_of_one = a.account == b.account;
                // A number that the account may use counts, whatever else is wrong.
                let is_late = of_a.union(of_b).any(|fault| *fault == Fault::NumberOutOfWindow);
                if is_of_one && a.sequence == b.sequence && !is_late {
                    costs(a.account, Fault::NumberTwice);
                }
                let are_cancels = matches!(a.operation, BatchOperation::CancelOffer(_)) && a.operation == b.operation;
                let are_set_keys = [a, b].iter().all(|t| matches!(t.operation, BatchOperation::SetKey(_)));
                if is_of_one && are_set_keys && of_a.is_empty() && of_b.is_empty() {
                    costs(a.account, Fault::KeySetTwice);
                }
                if is_of_one && are_cancels && of_a.is_empty() && of_b.is_empty() {
                    costs(a.account, Fault::CancelledTwice);
                }
            }
        }
        for ((account, asset), units) in used.debits {
            if units > self.holding(account, asset).available {
                costs(account, Fault::Overdraft);
            }
        }
        for transaction in right() {
            // What somebody else asks for is no issue.
            if let BatchOperation::Issue(issue) = &transaction.operation
                && self.supply_of(issue.asset) + used.issued[&issue.asset] > u128::from(AMOUNT_MAX)
            {
                costs(transaction.account, Fault::SupplyExceeded);
            }
        }
        let mut verdict = Verdict::default();
        for (place, (transaction, own)) in all.into_iter().enumerate() {
            let faults: BTreeSet<Fault> =
                own.into_iter().chain(together.get(&transaction.account).into_iter().flatten().copied()).collect();
            if faults.is_empty() {
                verdict.kept.push(place);
            } else {
                verdict.dropped.insert(place, faults);
            }
        }
        verdict
    }

    /// One after the other; those that are joined when the first of them comes.
    fn reserve(&self, transactions: &[BatchTransaction]) -> Verdict {
        let (mut verdict, mut used) = (Verdict::default(), Used::default());
        for chain in chains(transactions) {
            let mut used_with = used.clone();
            let own = |place: &usize| {
                let transaction = &transactions[*place];
                let mut faults = self.own_faults(transaction);
                faults.extend(self.faults_beside(&used_with, transaction));
                if faults.is_empty() {
                    used_with.add(self, transaction);
                }
                faults
            };
            let own = chain.iter().map(own).collect();
            let faults = faults_of_chain(transactions, &chain, own);
            if faults.iter().all(BTreeSet::is_empty) {
                used = used_with;
                verdict.kept.extend(chain);
            } else {
                verdict.dropped.extend(chain.into_iter().zip(faults));
            }
        }
        verdict.kept.sort_unstable();
        verdict
    }

    /// What is wrong with one more transaction beside those taken.
    fn faults_beside(&self, used: &Used, transaction: &BatchTransaction) -> Vec<Fault> {
        let BatchTransaction { account, sequence, operation, .. } = transaction;
        let mut faults = Vec::new();
        if used.numbers.contains(&(*account, *sequence)) {
            faults.push(Fault::NumberTwice);
        }
        if let Some((asset, units)) = debit(operation, self.account_fee) {
            let before = used.debits.get(&(*account, asset)).copied().unwrap_or_default();
            if before + units > self.holding(*account, asset).available {
                faults.push(Fault::Overdraft);
            }
        }
        match operation {
            BatchOperation::CancelOffer(cancel)
                if self.cancelled(*account, cancel).is_some_and(|place| used.cancelled.contains(&place)) =>
            {
                faults.push(Fault::CancelledTwice);
            }
            BatchOperation::CreateAccount(key) if used.keys.contains(key) => faults.push(Fault::KeyTwice),
            BatchOperation::SetKey(key) => {
                faults.extend(used.keys.contains(key).then_some(Fault::KeyTwice));
                faults.extend(used.sets_key.contains(account).then_some(Fault::KeySetTwice));
            }
            BatchOperation::Issue(issue) => {
                let before = used.issued.get(&issue.asset).copied().unwrap_or_default();
                if self.supply_of(issue.asset) + before + u128::from(issue.amount.get()) > u128::from(AMOUNT_MAX) {
                    faults.push(Fault::SupplyExceeded);
                }
            }
            _ => {}
        }
        faults
    }

    /// Closes a batch of which these transactions are kept: what they spend is reserved, and what they issue; new offers stand, with ties by the
    /// batch's hash, and cancelled ones no longer do. All else waits for the batch to be cleared.
    ///
    /// # Panics
    /// When the transactions are not what [`Venue::judge`] keeps, or the batch before is not cleared.
    pub fn close(&mut self, kept: &[BatchTransaction], batch_hash: &[u8; 32]) {
        assert!(self.pending.is_none(), "the batch before is not cleared");
        let mut refunds = Vec::new();
        for BatchTransaction { account, sequence, operation, .. } in kept {
            let last = self.last.entry(*account).or_default();
            *last = (*last).max(sequence.0);
            if let Some((asset, units)) = debit(operation, self.account_fee) {
                self.add_available(*account, asset, -units.cast_signed());
                self.add_reserved(*account, asset, units.cast_signed());
            }
            match operation {
                BatchOperation::CreateOffer(create) => self.create_offer(*account, *sequence, create, batch_hash),
                BatchOperation::CancelOffer(cancel) => {
                    let place = self.cancelled(*account, cancel).expect("a cancel that is kept names an offer that stands");
                    let standing = self.offers.remove(&place).expect("it stands");
                    refunds.push((*account, cancel.sell, standing.amount));
                }
                // There from now on, so that nobody else makes more than there may be; the issuer's to use when the block ends.
                BatchOperation::Issue(IssuedAmount { asset, amount }) => {
                    self.add_supply(*asset, i128::from(amount.get()));
                    self.add_reserved(*account, *asset, i128::from(amount.get()));
                }
                _ => {}
            }
        }
        let keys_kept = std::mem::take(&mut self.keys_kept);
        self.pending = Some(Pending { kept: kept.to_vec(), refunds, account_fee: self.account_fee, keys_kept });
    }

    /// Lets the closed batch take effect, but for its trades. Says which accounts got which keys: those that were created, then those
    /// that set another.
    pub(super) fn finish(&mut self, pending: Pending) -> Vec<(AccountId, PublicKey)> {
        let Pending { kept, refunds, account_fee, keys_kept } = pending;
        for (account, asset, amount) in refunds {
            self.add_reserved(account, asset, -i128::from(amount.get()));
            self.add_available(account, asset, i128::from(amount.get()));
        }
        let (mut new_accounts, mut new_keys) = (BTreeMap::new(), BTreeMap::new());
        for BatchTransaction { account, sequence, operation, .. } in kept {
            match operation {
                BatchOperation::CreateAccount(key) => {
                    new_accounts.insert((account, sequence), key);
                    if let Some(AccountFee { asset, amount }) = account_fee {
                        self.add_reserved(account, asset, -i128::from(amount.get()));
                        *self.fees.entry(asset).or_default() += u128::from(amount.get());
                    }
                }
                BatchOperation::Payment(Payment { to, asset, amount }) => {
                    self.add_reserved(account, asset, -i128::from(amount.get()));
                    self.add_available(to, asset, i128::from(amount.get()));
                }
                BatchOperation::Issue(IssuedAmount { asset, amount }) => {
                    self.add_reserved(account, asset, -i128::from(amount.get()));
                    self.add_available(account, asset, i128::from(amount.get()));
                }
                BatchOperation::Burn(IssuedAmount { asset, amount }) => {
                    self.add_supply(asset, -i128::from(amount.get()));
                    self.add_reserved(account, asset, -i128::from(amount.get()));
                }
                BatchOperation::SetKey(_) if keys_kept.contains(&account) => {}
                BatchOperation::SetKey(key) => drop(new_keys.insert(account, key)),
                BatchOperation::CreateOffer(_) | BatchOperation::CancelOffer(_) => {}
                BatchOperation::CreatePool(_) | BatchOperation::DepositToPool(_) | BatchOperation::WithdrawFromPool(_) => {
                    panic!("{NO_POOLS}")
                }
            }
        }
        let mut given: Vec<_> = (self.account_count..).map(AccountId).zip(new_accounts.into_values()).collect();
        self.account_count += given.len() as u32;
        given.extend(new_keys);
        self.keys.extend(given.iter().copied());
        given
    }

    fn create_offer(&mut self, account: AccountId, sequence: TransactionSeq, create: &CreateOffer, batch_hash: &[u8; 32]) {
        let id = OfferId(OfferName { account, sequence }.number());
        let tie = TieBreak::new(batch_hash).of(u64::from(account.0), id);
        let offer = Offer::new(create.limit, tie, id, create.amount).expect("an offer that is kept can trade");
        let pair = self.pair(create.sell, create.buy).expect("its assets are in the market");
        self.offers.insert((pair, offer.key()), Standing { stated: create.limit, amount: create.amount });
    }
}
