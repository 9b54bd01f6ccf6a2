//! Frames of signed transactions of batch markets on a connection: what the venue's end reads of one, and what comes back.

use walras_types::{BatchMarketId, RejectReason};
use walras_wire::batch::{SignedTransaction, decode_signed_transaction};
use walras_wire::order_entry::{SignedTransactions, TransactionResults, VenueMessage, encode_venue, push_result};

use crate::Refusal;

/// Transactions that came in one frame, whose signatures are not checked yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionFrame {
    /// The client's number of the frame.
    pub number: u64,
    /// Into which market's batch.
    pub market: BatchMarketId,
    /// Each transaction, or why it is refused at once.
    pub transactions: Vec<Result<SignedTransaction, RejectReason>>,
    /// How long to wait before those are sent again that were throttled.
    pub retry_after_ns: Option<u64>,
}

/// What came of the transactions of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameOutcome {
    /// The client's number of the frame.
    pub number: u64,
    /// Each, in the frame's order: `None` for one that was collected.
    pub results: Vec<Option<RejectReason>>,
    /// The blocks that the first and the last of the collected ones are for.
    pub blocks: Option<(u64, u64)>,
    /// How long to wait before those are sent again that were throttled.
    pub retry_after_ns: Option<u64>,
}

impl TransactionFrame {
    /// Reads a frame's transactions. Each costs the key what an order does: from the first that is throttled on, all are.
    ///
    /// # Errors
    /// The key may send none at all.
    pub(super) fn read(frame: &SignedTransactions<'_>, mut charge: impl FnMut() -> Result<(), Refusal>) -> Result<Self, Refusal> {
        let SignedTransactions { number, market, .. } = *frame;
        let mut transactions = Vec::with_capacity(frame.count());
        let (mut is_throttled, mut retry_after_ns) = (false, None);
        for bytes in frame.iter() {
            if !is_throttled && let Err(refusal) = charge() {
                if refusal.reason != RejectReason::Throttled {
                    return Err(refusal);
                }
                (is_throttled, retry_after_ns) = (true, refusal.retry_after_ns);
            }
            transactions.push(if is_throttled {
                Err(RejectReason::Throttled)
            } else {
                decode_signed_transaction(bytes).map_err(|_| RejectReason::Malformed)
            });
        }
        Ok(Self { number, market, transactions, retry_after_ns })
    }
}

impl FrameOutcome {
    /// Appends it as a message.
    pub(super) fn encode(&self, buffer: &mut Vec<u8>) {
        let mut results = Vec::with_capacity(2 * self.results.len());
        self.results.iter().for_each(|result| push_result(*result, &mut results));
        let message = TransactionResults::new(self.number, self.blocks, self.retry_after_ns, &results);
        encode_venue(&VenueMessage::Transactions(message.expect("a frame has 1 to 256 transactions")), buffer);
    }
}
