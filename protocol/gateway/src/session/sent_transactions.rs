//! The frames of transactions that a client has sent or will send, until their results come.

use std::collections::VecDeque;

use walras_types::BatchMarketId;
use walras_wire::order_entry::{SignedTransactions, TRANSACTIONS_UNANSWERED_MAX, TransactionResults};

use super::client_settings::SubmitError;
use super::transactions::FrameOutcome;

/// Frames without results. They are sent again by the next connection: each transaction has its number, so the venue takes none twice.
#[derive(Debug, Default)]
pub(super) struct SentTransactions {
    /// In the order of their numbers.
    frames: VecDeque<Frame>,
    /// How many of them were sent on this connection.
    sent: usize,
    /// Transactions in them.
    count: usize,
    last: u64,
}

#[derive(Debug)]
struct Frame {
    number: u64,
    market: BatchMarketId,
    items: Vec<u8>,
    count: usize,
}

impl SentTransactions {
    /// Takes a frame to send.
    pub(super) fn push(&mut self, market: BatchMarketId, items: Vec<u8>) -> Result<u64, SubmitError> {
        let number = self.last + 1;
        let count = SignedTransactions::new(number, market, &items).map_err(SubmitError::NoTransactions)?.count();
        if self.count + count > TRANSACTIONS_UNANSWERED_MAX {
            return Err(SubmitError::WindowFull(TRANSACTIONS_UNANSWERED_MAX as u32));
        }
        self.frames.push_back(Frame { number, market, items, count });
        (self.last, self.count) = (number, self.count + count);
        Ok(number)
    }

    /// The next frame that this connection has not carried yet.
    pub(super) fn next_unsent(&mut self) -> Option<SignedTransactions<'_>> {
        let Frame { number, market, items, .. } = self.frames.get(self.sent)?;
        self.sent += 1;
        SignedTransactions::new(*number, *market, items).ok()
    }

    /// The connection is lost.
    pub(super) fn resend(&mut self) {
        self.sent = 0;
    }

    /// The results of a frame, once; `None` where none is expected, or for another number of transactions.
    pub(super) fn take(&mut self, results: &TransactionResults<'_>) -> Option<FrameOutcome> {
        let place = self.frames.iter().position(|frame| frame.number == results.number)?;
        if place >= self.sent || self.frames[place].count != results.count() {
            return None;
        }
        let frame = self.frames.remove(place)?;
        self.sent -= 1;
        self.count -= frame.count;
        Some(FrameOutcome {
            number: frame.number,
            results: results.iter().collect(),
            blocks: results.first_block.zip(results.last_block),
            retry_after_ns: results.retry_after_ns,
        })
    }

    /// Transactions without results.
    pub(super) fn count(&self) -> usize {
        self.count
    }
}
