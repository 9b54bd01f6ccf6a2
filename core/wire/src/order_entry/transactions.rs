//! Frames of signed transactions of batch markets, and what came of each.
//!
//! A frame holds the bytes that `docs/batch-transactions.md` describes, each behind its length. Here only the frame's shape is checked: a
//! transaction that does not read as one gets a result of its own, and so spoils no other.

use walras_types::{BatchMarketId, RejectReason};

use super::FRAME_LEN_MAX;
use crate::batch::{SIGNATURE_BYTES, TRANSACTION_BYTES_MAX};
use crate::codec::{DecodeError, Reader, Wire, Writer};

/// Transactions in one frame.
pub const TRANSACTIONS_PER_FRAME_MAX: usize = 256;

/// Transactions of one connection that may wait for their results.
pub const TRANSACTIONS_UNANSWERED_MAX: usize = 8_192;

/// Bytes of the longest signed transaction.
pub const SIGNED_TRANSACTION_BYTES_MAX: usize = TRANSACTION_BYTES_MAX + SIGNATURE_BYTES;

/// Bytes of such a frame before its transactions: kind, number, market, count.
const HEAD_BYTES: usize = 1 + 8 + 2 + 2;

/// Most bytes that follow the length of a frame of transactions. All other frames have [`FRAME_LEN_MAX`].
pub const TRANSACTIONS_FRAME_LEN_MAX: usize = HEAD_BYTES + TRANSACTIONS_PER_FRAME_MAX * (1 + SIGNED_TRANSACTION_BYTES_MAX);

const _: () = assert!(SIGNED_TRANSACTION_BYTES_MAX <= u8::MAX as usize);
const _: () = assert!(TRANSACTIONS_FRAME_LEN_MAX < super::RUN_BYTES_MAX - super::FRAME_HEADER_BYTES);
const _: () = assert!(1 + 8 + 3 * 9 + 2 + 2 * TRANSACTIONS_PER_FRAME_MAX <= FRAME_LEN_MAX);
// The text of an error names it.
const _: () = assert!(TRANSACTIONS_FRAME_LEN_MAX == 30_221);

const COUNT_EXPECTED: &str = "1 to 256 transactions";

/// A frame of signed transactions for one market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedTransactions<'a> {
    /// The client's number of the frame, which its results repeat.
    pub number: u64,
    /// Into which market's batch.
    pub market: BatchMarketId,
    count: u16,
    items: &'a [u8],
}

impl<'a> SignedTransactions<'a> {
    /// Of items, as [`push_signed_bytes`] appends them.
    ///
    /// # Errors
    /// [`DecodeError`] where the items stop being any, or are none or too many.
    pub fn new(number: u64, market: BatchMarketId, items: &'a [u8]) -> Result<Self, DecodeError> {
        let r = &mut Reader::new(items);
        let mut count = 0_u16;
        while r.position() < items.len() {
            item(r)?;
            count = count.saturating_add(1);
        }
        r.checked((1..=TRANSACTIONS_PER_FRAME_MAX).contains(&usize::from(count)).then_some(()), COUNT_EXPECTED)?;
        Ok(Self { number, market, count, items })
    }

    /// How many transactions it has, from 1.
    #[must_use]
    pub fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// What stands for a signed transaction, one after the other.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = self.items;
        std::iter::from_fn(move || {
            let (len, after) = rest.split_first()?;
            let (bytes, left) = after.split_at_checked(usize::from(*len))?;
            rest = left;
            Some(bytes)
        })
    }

    pub(super) fn put(&self, w: &mut Writer<'_>) {
        w.u64(self.number);
        self.market.put(w);
        w.u16(self.count);
        w.0.extend_from_slice(self.items);
    }

    pub(super) fn get(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let (number, market, count) = (r.u64()?, Wire::get(r)?, r.u16()?);
        r.checked((1..=TRANSACTIONS_PER_FRAME_MAX).contains(&usize::from(count)).then_some(()), COUNT_EXPECTED)?;
        let (mut all, begin) = (r.clone(), r.position());
        for _ in 0..count {
            item(r)?;
        }
        let items = all.slice(r.position() - begin, "as many transactions as announced")?;
        Ok(Self { number, market, count, items })
    }
}

fn item(r: &mut Reader<'_>) -> Result<(), DecodeError> {
    let len = usize::from(r.u8()?);
    let is_sound = (1..=SIGNED_TRANSACTION_BYTES_MAX).contains(&len);
    r.checked(is_sound.then_some(()), "a signed transaction of 1 to 112 bytes")?;
    r.slice(len, "as many bytes of a signed transaction as announced").map(|_| ())
}

/// Appends a signed transaction's bytes as an item of a frame. `false`, and nothing is appended, where none is as short or as long.
pub fn push_signed_bytes(signed: &[u8], items: &mut Vec<u8>) -> bool {
    let len = u8::try_from(signed.len()).ok().filter(|len| (1..=SIGNED_TRANSACTION_BYTES_MAX).contains(&usize::from(*len)));
    let Some(len) = len else { return false };
    items.push(len);
    items.extend_from_slice(signed);
    true
}

/// What came of the transactions of a frame: all of them, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionResults<'a> {
    /// The frame's number.
    pub number: u64,
    /// The block that the first of the collected ones is for; `None` where none was collected.
    pub first_block: Option<u64>,
    /// The block that the last of the collected ones is for.
    pub last_block: Option<u64>,
    /// How long to wait before those are sent again that were throttled.
    pub retry_after_ns: Option<u64>,
    results: &'a [u8],
}

impl<'a> TransactionResults<'a> {
    /// Of results, as [`push_result`] appends them.
    ///
    /// # Errors
    /// [`DecodeError`] where they are none or too many, or name a reason that there is not.
    pub fn new(
        number: u64,
        blocks: Option<(u64, u64)>,
        retry_after_ns: Option<u64>,
        results: &'a [u8],
    ) -> Result<Self, DecodeError> {
        let (first_block, last_block) = blocks.unzip();
        check_results(results)?;
        Ok(Self { number, first_block, last_block, retry_after_ns, results })
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.results.len() / 2
    }

    /// `None` for a transaction that was collected; else why it was not.
    pub fn iter(&self) -> impl Iterator<Item = Option<RejectReason>> + use<'a> {
        self.results.as_chunks().0.iter().map(|number| RejectReason::from_number(u16::from_le_bytes(*number)))
    }

    pub(super) fn put(&self, w: &mut Writer<'_>) {
        w.u64(self.number);
        self.first_block.put(w);
        self.last_block.put(w);
        self.retry_after_ns.put(w);
        // Both were checked when this was made.
        w.u16(self.count() as u16);
        w.0.extend_from_slice(self.results);
    }

    pub(super) fn get(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let (number, first_block, last_block) = (r.u64()?, Wire::get(r)?, Wire::get(r)?);
        let (retry_after_ns, count) = (Wire::get(r)?, r.u16()?);
        let results = r.slice(2 * usize::from(count), "as many results as announced")?;
        check_results(results)?;
        Ok(Self { number, first_block, last_block, retry_after_ns, results })
    }
}

fn check_results(results: &[u8]) -> Result<(), DecodeError> {
    let r = &mut Reader::new(results);
    r.checked((2..=2 * TRANSACTIONS_PER_FRAME_MAX).contains(&results.len()).then_some(()), "1 to 256 results")?;
    while r.position() < results.len() {
        super::reason_or_none(r)?;
    }
    Ok(())
}

/// Appends what came of one transaction.
pub fn push_result(rejected: Option<RejectReason>, results: &mut Vec<u8>) {
    results.extend_from_slice(&rejected.map_or(0, RejectReason::number).to_le_bytes());
}
