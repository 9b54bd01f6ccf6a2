//! What a trader sends to the batch market.

use walras_testkit::Choices;
use walras_types::{AccountId, BatchTransaction, RejectReason, TransactionSeq};
use walras_wire::batch::{SIGNATURE_BYTES, SignedTransaction};
use walras_wire::{BatchCommand, Command, Event, SubmitTransaction};

use crate::common::batches::{ACCOUNTS, MARKET, new_account, operation};

/// The transactions of one trader. It numbers them one after the other, and where it has lost count, for some were left out of their batches, it
/// tries others.
#[derive(Debug)]
pub(super) struct Transactions {
    account: AccountId,
    next: u64,
    has_lost_count: bool,
}

/// How far numbers may lie above the last one that counted.
const WINDOW: u64 = walras_types::limits::TRANSACTIONS_PER_ACCOUNT_MAX;

impl Transactions {
    pub(super) fn new(account: AccountId) -> Self {
        Self { account, next: 1, has_lost_count: false }
    }

    pub(super) fn next_command(&mut self, c: &mut Choices<'_>) -> Option<Command> {
        if std::mem::take(&mut self.has_lost_count) {
            self.next = (self.next + c.below(WINDOW)).saturating_sub(c.below(2 * WINDOW)).max(1);
        }
        let sequence = TransactionSeq(self.next);
        self.next += 1;
        let operation = if c.one_in(16) { new_account(|n| c.below(n)) } else { operation(u64::from(ACCOUNTS), |n| c.below(n))? };
        let transaction = BatchTransaction { account: self.account, sequence, operation };
        let signed = SignedTransaction { transaction, signature: [0; SIGNATURE_BYTES] };
        Some(Command::Batch(BatchCommand::Submit(SubmitTransaction::new(MARKET, &signed).ok()?)))
    }

    /// Takes what came of one of its commands.
    pub(super) fn on_events(&mut self, events: &[Event]) {
        let lost = |event: &Event| matches!(event, Event::Rejected(r) if r.reason == RejectReason::TransactionSeqOutOfWindow);
        self.has_lost_count |= events.iter().any(lost);
    }
}
