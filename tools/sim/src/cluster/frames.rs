//! A client that sends transactions of batch markets in frames, over the connection on which it orders: each under a number of its own, and
//! again until it knows what came of it.

use std::collections::BTreeMap;

use walras_gateway::session::FrameOutcome;
use walras_testkit::Choices;
use walras_types::{AccountId, Amount, AssetId, BatchOperation, BatchTransaction, Payment, RejectReason, TransactionSeq};
use walras_wire::batch::{SIGNATURE_BYTES, SignedTransaction, encode_signed_transaction};
use walras_wire::order_entry::push_signed_bytes;

use super::checks::Checks;
use super::mutation::Mutation;
use crate::common::batches::{ACCOUNTS, operation};

/// The account of these transactions; nobody else sends any for it where such a client is.
pub(super) const ACCOUNT: AccountId = AccountId(1);
/// The number of its client.
pub(super) const CLIENT: usize = 3;

/// New transactions in a frame, at most, and transactions without a result.
const NEW_MAX: u64 = 4;
const OPEN_MAX: usize = 16;

/// Nobody's.
const STRANGER: AccountId = AccountId(4_000);

/// The transactions of one account.
pub(super) struct Frames {
    /// Those of which it is not known what came of them.
    open: BTreeMap<TransactionSeq, BatchOperation>,
    /// The frame that was sent last.
    sent: Option<(u64, Vec<TransactionSeq>)>,
    next: TransactionSeq,
}

impl Frames {
    pub(super) fn new() -> Self {
        Self { open: BTreeMap::new(), sent: None, next: TransactionSeq(1) }
    }

    /// Whether it knows what came of all.
    pub(super) fn is_content(&self) -> bool {
        self.open.is_empty()
    }

    /// The items of the next frame, unless it waits for one: those that have no result, and some new ones if it may ask.
    pub(super) fn next_items(&mut self, c: &mut Choices<'_>, may_ask: bool, checks: &mut Checks) -> Option<Vec<u8>> {
        if self.sent.is_some() {
            return None;
        }
        for _ in 0..if may_ask { c.below(NEW_MAX + 1) } else { 0 } {
            if self.open.len() >= OPEN_MAX {
                break;
            }
            let stranger =
                || BatchOperation::Payment(Payment { to: STRANGER, asset: AssetId(0), amount: Amount::new(1).expect("one") });
            // Now and then one that no batch would keep.
            let drawn = if c.one_in(6) { Some(stranger()) } else { operation(ACCOUNTS.into(), |n| c.below(n)) };
            let Some(operation) = drawn else { continue };
            let sequence = self.next;
            self.next = TransactionSeq(sequence.0 + 1);
            self.open.insert(sequence, operation);
            checks.on_transaction_asked(BatchTransaction::new(ACCOUNT, sequence, operation));
        }
        let mut items = Vec::new();
        for (sequence, operation) in &self.open {
            let transaction = BatchTransaction::new(ACCOUNT, *sequence, *operation);
            let mut bytes = Vec::new();
            encode_signed_transaction(&SignedTransaction { transaction, signature: [0; SIGNATURE_BYTES] }, &mut bytes);
            assert!(push_signed_bytes(&bytes, &mut items), "it is as long as one is");
        }
        (!items.is_empty()).then_some(items)
    }

    /// What was open is in the frame of this number.
    pub(super) fn on_sent(&mut self, number: u64) {
        self.sent = Some((number, self.open.keys().copied().collect()));
    }

    /// What came of a frame.
    pub(super) fn on_outcome(&mut self, mut outcome: FrameOutcome, mutation: Option<Mutation>, checks: &mut Checks) {
        let Some((number, sequences)) = self.sent.take() else { return checks.on_frame_unknown(outcome.number) };
        if number != outcome.number || sequences.len() != outcome.results.len() {
            return checks.on_frame_unknown(outcome.number);
        }
        if mutation == Some(Mutation::ResultsMixedUp) {
            outcome.results.rotate_left(1);
        }
        for (sequence, result) in sequences.into_iter().zip(outcome.results) {
            checks.on_transaction_result(ACCOUNT, sequence, result, outcome.blocks);
            if is_known(result) {
                self.open.remove(&sequence);
            }
        }
    }
}

/// Whether a result says what came of a transaction for good.
fn is_known(result: Option<RejectReason>) -> bool {
    !matches!(
        result,
        Some(
            RejectReason::VenueNotReady
                | RejectReason::StorageFull
                | RejectReason::NotLeader
                | RejectReason::BatchFull
                | RejectReason::Overloaded
                | RejectReason::Throttled
        )
    )
}
