//! Signatures of batch transactions in a log that is audited. `apply` does not check them, so somebody who could write to the log could
//! have invented an account's transactions.
//!
//! The accounts' keys follow from the log, or from the state that its replay begins with. Only transactions that the engine accepted are
//! checked; rejected ones changed nothing. They are checked thousands at a time, and the error names the first that does not hold.

use std::collections::BTreeMap;
use std::num::NonZero;

use walras_batch_signatures::{CHUNK_MAX, KeyCache, SignedItem, Verifier};
use walras_engine::Engine;
use walras_sequencer::{Content, Entry};
use walras_types::limits::KEY_REPLACED_NS;
use walras_types::{AccountId, BatchMarketId, LogIndex, PublicKey, TimeNs, TransactionSeq};
use walras_wire::batch::SigningDomain;
use walras_wire::{AccountEvent, BatchCommand, BatchEvent, BatchMarketEvent, Command, Event, SubmitTransaction};

use crate::LogReadError;

/// Checks the signatures of a log's transactions, entry by entry.
pub struct SignatureAudit {
    keys: KeyCache,
    /// Keys that were replaced a moment ago, and when.
    replaced: BTreeMap<AccountId, Vec<(PublicKey, TimeNs)>>,
    verifiers: BTreeMap<BatchMarketId, Verifier>,
    /// Of one market, not yet checked.
    waiting: Vec<Waiting>,
    threads: NonZero<usize>,
    checked: u64,
}

struct Waiting {
    log_index: LogIndex,
    time: TimeNs,
    submit: SubmitTransaction,
}

impl SignatureAudit {
    /// For a replay that begins with this state.
    pub fn from_state(engine: &Engine) -> Result<Self, LogReadError> {
        let threads = std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        let mut audit = Self {
            keys: KeyCache::default(),
            replaced: BTreeMap::new(),
            verifiers: BTreeMap::new(),
            waiting: Vec::new(),
            threads,
            checked: 0,
        };
        for view in engine.batch_markets() {
            audit.add_market(view.spec.market, &view.spec.domain)?;
        }
        for account in (0..engine.account_count()).map(AccountId) {
            if let Some(key) = engine.transaction_key(account) {
                audit.keys.insert(account, key).map_err(|e| LogReadError::damaged(&e))?;
            }
        }
        Ok(audit)
    }

    /// Takes the next entry and what it did.
    pub fn on_entry(&mut self, entry: &Entry, events: &[Event]) -> Result<(), LogReadError> {
        for event in events {
            match event {
                Event::BatchMarket(BatchMarketEvent::Created(spec)) => self.add_market(spec.market, &spec.domain)?,
                Event::Account(AccountEvent::KeySet(set)) => self.set_key(set.account, set.key, entry.time)?,
                Event::Batch(BatchEvent::TransactionCollected(_)) => {
                    if let Content::Command(Command::Batch(BatchCommand::Submit(submit))) = &entry.content {
                        self.collect(Waiting { log_index: entry.log_index, time: entry.time, submit: *submit })?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks what is left. How many were checked.
    pub fn finish(mut self) -> Result<u64, LogReadError> {
        self.check()?;
        Ok(self.checked)
    }

    fn add_market(&mut self, market: BatchMarketId, domain: &[u8; 32]) -> Result<(), LogReadError> {
        let verifier = Verifier::new(SigningDomain::new(domain));
        let verifier = verifier.map_err(|e| LogReadError::Random(e.to_string()))?;
        self.verifiers.insert(market, verifier);
        Ok(())
    }

    fn set_key(&mut self, account: AccountId, key: PublicKey, time: TimeNs) -> Result<(), LogReadError> {
        if let Some(old) = self.keys.key(account) {
            // What waits was signed with the old one.
            self.check()?;
            let before = self.replaced.entry(account).or_default();
            before.retain(|(_, at)| counts_yet(*at, time));
            before.push((old, time));
        }
        self.keys.insert(account, key).map_err(|e| LogReadError::damaged(&e))
    }

    fn collect(&mut self, one: Waiting) -> Result<(), LogReadError> {
        let is_of_another = self.waiting.first().is_some_and(|first| first.submit.market() != one.submit.market());
        if is_of_another || self.waiting.len() >= CHUNK_MAX * self.threads.get() {
            self.check()?;
        }
        self.waiting.push(one);
        Ok(())
    }

    fn check(&mut self) -> Result<(), LogReadError> {
        let waiting = std::mem::take(&mut self.waiting);
        let Some(first) = waiting.first() else { return Ok(()) };
        let Some(verifier) = self.verifiers.get(&first.submit.market()) else {
            return Err(LogReadError::Damaged(format!("entry {}: its batch market was never created", first.log_index)));
        };
        let items: Vec<SignedItem<'_>> = waiting.iter().map(|one| item(&one.submit)).collect();
        let holds = verifier.verify(&self.keys, &items, self.threads);
        for (one, _) in waiting.iter().zip(holds).filter(|(_, holds)| !holds) {
            if !self.held_before(verifier, one) {
                return Err(forged(one));
            }
        }
        self.checked += waiting.len() as u64;
        Ok(())
    }

    /// Whether it was signed with a key that was replaced while it was on its way.
    fn held_before(&self, verifier: &Verifier, one: &Waiting) -> bool {
        let before = self.replaced.get(&one.submit.account()).into_iter().flatten();
        before.filter(|(_, at)| counts_yet(*at, one.time)).any(|(key, _)| {
            let mut keys = KeyCache::default();
            // One place is enough: the account's id does not matter to its signature.
            keys.insert(AccountId(0), *key).is_ok()
                && verifier.verify_one(&keys, &SignedItem { account: AccountId(0), ..item(&one.submit) })
        })
    }
}

/// Whether a key that was replaced then counts at this time: a transaction is checked before it is logged, and its account may get another
/// key in between.
fn counts_yet(replaced: TimeNs, time: TimeNs) -> bool {
    time.0.saturating_sub(replaced.0) <= KEY_REPLACED_NS
}

fn item(submit: &SubmitTransaction) -> SignedItem<'_> {
    SignedItem { account: submit.account(), transaction_bytes: submit.transaction_bytes(), signature: submit.signature() }
}

fn forged(one: &Waiting) -> LogReadError {
    let (account, TransactionSeq(sequence)) = (one.submit.account(), one.submit.transaction().sequence);
    LogReadError::Damaged(format!(
        "entry {}: transaction {sequence} of account {account} does not bear that account's signature: the log was changed, or a \
         leader accepted what the account did not sign; `walras log dump` shows the entry",
        one.log_index
    ))
}
