//! Frames of transactions that came by order entry, from their arrival until each of their transactions has its result.

use std::collections::BTreeMap;

use walras_gateway::session::{FrameOutcome, TransactionFrame};
use walras_types::{BatchMarketId, DropReason, RejectReason, torn_chains};
use walras_wire::batch::SignedTransaction;
use walras_wire::{BatchEvent, Event};

use crate::StreamId;

/// Transactions of all connections together that may wait for their results: about 16 MiB.
const WAITING_MAX: usize = 1 << 16;

/// Signatures that are to be checked: each is its account's, for this market, or is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyJob {
    /// Its number at this replica.
    pub frame: u64,
    /// For which market they must be signed.
    pub market: BatchMarketId,
    /// The transactions.
    pub transactions: Vec<SignedTransaction>,
    /// The place of each in its frame.
    pub places: Vec<u16>,
}

/// A frame without its results.
#[derive(Debug)]
struct Waiting {
    stream: StreamId,
    outcome: FrameOutcome,
    /// Transactions without a result.
    left: usize,
}

/// Frames that wait.
#[derive(Debug, Default)]
pub(crate) struct TransactionFrames {
    frames: BTreeMap<u64, Waiting>,
    last: u64,
    /// Transactions in them.
    count: usize,
}

/// What a frame comes to.
pub(crate) enum Begun {
    /// Signatures are to be checked.
    Verify(VerifyJob),
    /// Each transaction has its result.
    Done(FrameOutcome),
}

impl TransactionFrames {
    /// A frame came. With a `refusal` none of its transactions is taken, for this reason.
    pub(crate) fn begin(&mut self, stream: StreamId, frame: TransactionFrame, refusal: Option<RejectReason>) -> Begun {
        let TransactionFrame { number, market, transactions, retry_after_ns } = frame;
        let is_full = self.count + transactions.len() > WAITING_MAX;
        let refusal = refusal.or(is_full.then_some(RejectReason::Overloaded));
        let mut results = vec![None; transactions.len()];
        let (mut to_verify, mut places) = (Vec::with_capacity(transactions.len()), Vec::with_capacity(transactions.len()));
        for (place, one) in transactions.into_iter().enumerate() {
            match (one, refusal) {
                (Ok(signed), None) => {
                    to_verify.push(signed);
                    // A frame has at most 256.
                    places.push(place as u16);
                }
                (Ok(_), Some(reason)) | (Err(reason), _) => results[place] = Some(reason),
            }
        }
        let outcome = FrameOutcome { number, results, blocks: None, retry_after_ns };
        if to_verify.is_empty() {
            return Begun::Done(outcome);
        }
        self.last += 1;
        self.count += to_verify.len();
        self.frames.insert(self.last, Waiting { stream, outcome, left: to_verify.len() });
        Begun::Verify(VerifyJob { frame: self.last, market, transactions: to_verify, places })
    }

    /// What came of one transaction: the block that it was collected for, or why it was not. Returns the results of its frame where this
    /// was the last one.
    pub(crate) fn settle(&mut self, frame: u64, place: u16, result: Result<u64, RejectReason>) -> Option<(StreamId, FrameOutcome)> {
        let waiting = self.frames.get_mut(&frame)?;
        match result {
            Ok(block) => {
                let (first, _) = waiting.outcome.blocks.unwrap_or((block, block));
                waiting.outcome.blocks = Some((first, block));
            }
            Err(reason) => waiting.outcome.results[usize::from(place)] = Some(reason),
        }
        waiting.left -= 1;
        self.count -= 1;
        if waiting.left > 0 {
            return None;
        }
        self.frames.remove(&frame).map(|done| (done.stream, done.outcome))
    }
}

/// Refuses what is joined with a refused one, of transactions that came together: none of a chain is kept without the others.
pub fn refuse_torn(transactions: &[SignedTransaction], verdicts: &mut [Result<(), RejectReason>]) {
    if verdicts.iter().all(Result::is_ok) {
        return;
    }
    let known = transactions.iter().zip(verdicts.iter());
    let known: Vec<_> = known.map(|(signed, verdict)| (signed.transaction, verdict.is_err())).collect();
    for (verdict, is_torn) in verdicts.iter_mut().zip(torn_chains(&known)) {
        if is_torn && verdict.is_ok() {
            *verdict = Err(DropReason::JoinedDropped.refusal());
        }
    }
}

/// What the events of a submitted transaction say of it.
pub(crate) fn collected(events: &[Event]) -> Result<u64, RejectReason> {
    let of_one = |event: &Event| match event {
        Event::Batch(BatchEvent::TransactionCollected(collected)) => Some(Ok(collected.block)),
        Event::Rejected(rejected) => Some(Err(rejected.reason)),
        _ => None,
    };
    events.iter().find_map(of_one).unwrap_or(Err(RejectReason::VenueNotReady))
}

#[cfg(test)]
mod tests {
    use walras_types::{AccountId, Amount, AssetId, BatchOperation, BatchTransaction, Joined, Payment, TransactionSeq};

    use super::*;

    fn frame(number: u64, transactions: Vec<Result<SignedTransaction, RejectReason>>) -> TransactionFrame {
        TransactionFrame { number, market: BatchMarketId(0), transactions, retry_after_ns: None }
    }

    fn signed() -> SignedTransaction {
        let payment = Payment { to: AccountId(2), asset: AssetId(0), amount: Amount::new(1).unwrap() };
        let transaction = BatchTransaction::new(AccountId(1), TransactionSeq(1), BatchOperation::Payment(payment));
        SignedTransaction { transaction, signature: [0; 64] }
    }

    const STREAM: StreamId = StreamId { place: 0, serial: 7 };

    #[test]
    fn a_frame_has_its_results_once_all_are_known() {
        let mut frames = TransactionFrames::default();
        let one = frame(9, vec![Err(RejectReason::Malformed), Ok(signed()), Ok(signed()), Ok(signed())]);
        let Begun::Verify(job) = frames.begin(STREAM, one, None) else { panic!("three are to be verified") };
        assert_eq!((job.places, job.transactions.len()), (vec![1, 2, 3], 3));
        assert_eq!(frames.settle(job.frame, 2, Err(RejectReason::SignatureInvalid)), None);
        assert_eq!(frames.settle(job.frame, 1, Ok(4)), None);
        let (stream, outcome) = frames.settle(job.frame, 3, Ok(5)).unwrap();
        assert_eq!((stream, outcome.number, outcome.blocks), (STREAM, 9, Some((4, 5))));
        let malformed = Some(RejectReason::Malformed);
        assert_eq!(outcome.results, [malformed, None, Some(RejectReason::SignatureInvalid), None]);
        assert_eq!(frames.settle(job.frame, 3, Ok(5)), None, "it has them once");
        assert_eq!(frames.count, 0);
    }

    #[test]
    fn nothing_is_taken_that_is_joined_with_a_refused_one() {
        let of = |sequence, joined| {
            let mut signed = signed();
            signed.transaction.sequence = TransactionSeq(sequence);
            signed.transaction.terms.joined = joined;
            signed
        };
        let [first, middle, last] = [Joined::First, Joined::Middle, Joined::Last];
        let sent = [of(4, Joined::Next), of(5, Joined::No), of(8, last), of(6, first), of(7, middle)];
        let [forbidden, joined] = [Err(RejectReason::Forbidden), Err(RejectReason::JoinedRefused)];
        for (refused, expected) in [
            (0, [forbidden, joined, Ok(()), Ok(()), Ok(())]),
            (1, [joined, forbidden, Ok(()), Ok(()), Ok(())]),
            (2, [Ok(()), Ok(()), forbidden, joined, joined]),
            (3, [Ok(()), Ok(()), joined, forbidden, joined]),
        ] {
            let mut verdicts = [Ok(()); 5];
            verdicts[refused] = forbidden;
            refuse_torn(&sent, &mut verdicts);
            assert_eq!(verdicts, expected, "{refused}");
        }
        let mut all_good = [Ok(()); 5];
        refuse_torn(&sent, &mut all_good);
        assert_eq!(all_good, [Ok(()); 5]);
    }

    #[test]
    fn what_is_refused_at_once_waits_for_nothing() {
        let mut frames = TransactionFrames::default();
        let refused =
            frames.begin(STREAM, frame(1, vec![Ok(signed()), Err(RejectReason::Malformed)]), Some(RejectReason::NotLeader));
        let Begun::Done(outcome) = refused else { panic!("nothing is verified") };
        assert_eq!(outcome.results, [Some(RejectReason::NotLeader), Some(RejectReason::Malformed)]);
        for number in 0..WAITING_MAX as u64 / 256 {
            assert!(matches!(frames.begin(STREAM, frame(number, vec![Ok(signed()); 256]), None), Begun::Verify(_)));
        }
        let Begun::Done(outcome) = frames.begin(STREAM, frame(1, vec![Ok(signed())]), None) else { panic!("there is no room") };
        assert_eq!(outcome.results, [Some(RejectReason::Overloaded)]);
    }
}
