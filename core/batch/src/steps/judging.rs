//! Judging a batch account by account.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::sync::Arc;

use walras_ledger::{AccountSet, Ledger};
use walras_types::{AccountFee, BatchTransaction, Intake, OfferName, PublicKey};

use super::sorting::Sorting;
use super::{Stage, Stepped};
use crate::accounts::Accounts;
use crate::batch::Batch;
use crate::close::PartOf;
use crate::pools::PoolChangeKind;
use crate::settings::BatchSettings;

/// What was collected for a batch.
#[derive(Clone, Debug, Default)]
pub struct Collected {
    /// In the order in which they came, all of accounts that there are.
    pub transactions: Vec<BatchTransaction>,
    /// Their names' numbers, and their places among them.
    pub names: BTreeMap<u64, u32>,
    /// Keys that several of them ask for.
    pub keys_twice: BTreeSet<PublicKey>,
    /// How many of them open an account; follows from these.
    pub accounts: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Judging {
    pub(super) batch: Arc<Collected>,
    /// The first name that is not judged yet.
    pub(super) next: Option<u64>,
    pub(super) account_fee: Option<AccountFee>,
    /// The bytes of those that are kept, in the order of (account, number).
    pub(super) kept: Vec<u8>,
    pub(super) kept_count: u32,
    /// How many were judged since the batch was begun or restored.
    judged_count: usize,
    /// These follow from those bytes.
    pools_created: usize,
    hasher: blake3::Hasher,
}

impl Judging {
    pub(super) fn new(collected: Collected, parent: [u8; 32], account_fee: Option<AccountFee>) -> Self {
        let next = collected.names.first_key_value().map(|(name, _)| *name);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&parent);
        let batch = Arc::new(collected);
        Self { batch, next, account_fee, kept: Vec::new(), kept_count: 0, judged_count: 0, pools_created: 0, hasher }
    }

    /// Goes on from what was kept.
    pub(super) fn with_kept(mut self, kept: &[u8], kept_count: u32, pools_created: usize) -> Self {
        self.hasher.update(kept);
        self.kept = kept.to_vec();
        (self.kept_count, self.pools_created) = (kept_count, pools_created);
        self
    }

    /// How many are not judged yet.
    pub(super) fn left_count(&self) -> usize {
        self.batch.names.len() - self.judged_count
    }

    /// Those that are not judged yet, in the order in which they came.
    pub(super) fn left(&self) -> Vec<&BatchTransaction> {
        let Some(next) = self.next else { return Vec::new() };
        let mut places: Vec<u32> = self.batch.names.range(next..).map(|(_, place)| *place).collect();
        places.sort_unstable();
        places.iter().map(|place| &self.batch.transactions[*place as usize]).collect()
    }

    /// Whether a transaction of this name is not judged yet.
    pub(crate) fn waits(&self, name: u64) -> bool {
        self.next.is_some_and(|next| next <= name) && self.batch.names.contains_key(&name)
    }

    /// All transactions of the next accounts: about so many.
    fn next_part(&mut self, units: NonZero<usize>) -> Vec<BatchTransaction> {
        let mut part = Vec::with_capacity(units.get() + 64);
        let Some(next) = self.next else { return part };
        let mut names = self.batch.names.range(next..).peekable();
        let mut of_account: Vec<u32> = Vec::new();
        let account_of = |name: u64| OfferName::of_number(name).account;
        while part.len() < units.get()
            && let Some((first, place)) = names.next()
        {
            let account = account_of(*first);
            of_account.clear();
            of_account.push(*place);
            while let Some((_, place)) = names.next_if(|(name, _)| account_of(**name) == account) {
                of_account.push(*place);
            }
            // As they came.
            of_account.sort_unstable();
            part.extend(of_account.iter().map(|place| self.batch.transactions[*place as usize]));
        }
        self.next = names.peek().map(|(name, _)| **name);
        self.judged_count += part.len();
        part
    }
}

impl Batch {
    pub(super) fn judge_some(
        &mut self,
        mut judging: Box<Judging>,
        ledger: &mut Ledger,
        accounts: &mut Accounts,
        intake: Intake,
        units: NonZero<usize>,
    ) -> Stepped {
        accounts.follow(ledger.account_count());
        let part = judging.next_part(units);
        let settings = BatchSettings { account_fee: judging.account_fee, ..self.settings.clone() };
        let part_of = PartOf { keys_twice: &judging.batch.keys_twice, pools_created: judging.pools_created };
        let outcomes = self.judge(ledger, accounts, &settings, &part, intake, Some(&part_of), NonZero::<usize>::MIN);

        // Units to be issued are reserved by their issuer until the block ends.
        for issue in outcomes.iter().flat_map(|outcome| &outcome.issues) {
            ledger.issue_reserved(issue.account, issue.asset, issue.amount).expect("the supply has room for what is kept");
        }
        for outcome in &outcomes {
            accounts.keys.expect_all(outcome.all_keys());
        }
        if ledger.tracks_changes() {
            // A block may be cleared before this one, and numbers are hashed with their accounts.
            let mut changed = AccountSet::with_room(ledger.account_count());
            outcomes.iter().flat_map(|outcome| &outcome.senders).for_each(|(account, _)| changed.insert(*account));
            ledger.mark_changed(&changed);
        }
        let mut dropped = Vec::new();
        for outcome in outcomes {
            judging.hasher.update(&outcome.bytes);
            judging.kept.extend_from_slice(&outcome.bytes);
            judging.kept_count += outcome.senders.iter().map(|(_, count)| count).sum::<u32>();
            let is_created = |change: &&crate::PoolChange| matches!(change.kind, PoolChangeKind::Created { .. });
            judging.pools_created += outcome.pool_changes.iter().filter(is_created).count();
            dropped.extend(outcome.dropped);
        }
        dropped.sort_unstable();
        let name = |place: u32| OfferName { account: part[place as usize].account, sequence: part[place as usize].sequence };
        let dropped = dropped.into_iter().map(|(place, reason)| (name(place), reason)).collect();
        if judging.next.is_some() {
            self.steps.stage = Stage::Judging(judging);
            return Stepped::Judged { dropped, closed: None };
        }
        let Judging { batch, account_fee, kept, kept_count, hasher, .. } = *judging;
        let (batch_hash, accounts) = (*hasher.finalize().as_bytes(), batch.accounts);
        let mut sorting = Sorting::new(self, Some(batch), account_fee, Arc::new(kept), kept_count, batch_hash, 0);
        sorting.accounts = accounts;
        let job = sorting.job();
        self.steps.begin(Stage::Sorting(Box::new(sorting)), Some(job));
        Stepped::Judged { dropped, closed: Some((batch_hash, kept_count)) }
    }

    /// Whether a transaction of this name waits to be judged.
    #[must_use]
    pub fn waits_to_be_judged(&self, name: u64) -> bool {
        matches!(&self.steps.stage, Stage::Judging(judging) if judging.waits(name))
    }

    /// The last of these names that waits to be judged.
    #[must_use]
    pub fn last_waiting(&self, names: std::ops::RangeInclusive<u64>) -> Option<u64> {
        let Stage::Judging(judging) = &self.steps.stage else { return None };
        let next = judging.next?;
        judging.batch.names.range(names).next_back().map(|(name, _)| *name).filter(|name| *name >= next)
    }
}
