//! What is delivered, the other shard's answer to it, and the commands for the own shard that follow from the answer.

use walras_engine::{Engine, InTransit, PriceIndex, TransferOutcome};
use walras_types::{ShardId, TransferSeq};
use walras_wire::{ShardCommand, TransferIn, TransferOut, TransferPlace, TransfersTaken};

/// The result of a transfer, as the receiving shard reports it.
pub type Reported = (TransferSeq, TransferOutcome);

/// The command for the receiving shard.
#[must_use]
pub fn carried(from_shard: ShardId, waits: &InTransit) -> TransferIn {
    let TransferOut { account, asset, amount, to_shard, .. } = waits.transfer;
    TransferIn { from_shard, to_shard, transfer_seq: waits.transfer_seq, account, asset, amount }
}

/// A shard's results of delivered transfers, now or before: up to the first that it neither took nor refused.
pub fn outcomes<I: PriceIndex>(engine: &Engine<I>, from: ShardId, delivered: &[TransferSeq]) -> Vec<Reported> {
    delivered.iter().map_while(|seq| Some((*seq, engine.transfer_outcome(from, *seq)?))).collect()
}

/// The results from `first` on, up to the first gap.
pub(crate) fn consecutive(first: TransferSeq, reported: Vec<Reported>) -> Vec<Reported> {
    reported.into_iter().zip(first.0..).take_while(|((seq, _), next)| seq.0 == *next).map(|(reported, _)| reported).collect()
}

/// The commands for the own shard: taken transfers in runs, refused ones one by one.
pub(crate) fn settlements(by_shard: ShardId, reported: &[Reported]) -> Vec<ShardCommand> {
    let of_one_kind = reported.chunk_by(|(_, a), (_, b)| (a, b) == (&TransferOutcome::Taken, &TransferOutcome::Taken));
    let command = |run: &[Reported]| {
        let (first, outcome) = run[0];
        match outcome {
            TransferOutcome::Taken => {
                let last = TransferSeq(first.0 + run.len() as u64 - 1);
                ShardCommand::ConfirmTransfers(TransfersTaken { by_shard, first, last })
            }
            TransferOutcome::Refused => ShardCommand::ReturnTransfer(TransferPlace { shard: by_shard, transfer_seq: first }),
        }
    };
    of_one_kind.map(command).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY: ShardId = ShardId(3);

    #[test]
    fn an_answer_counts_as_far_as_it_follows() {
        let (taken, refused) = (TransferOutcome::Taken, TransferOutcome::Refused);
        let reported = vec![(TransferSeq(7), taken), (TransferSeq(8), refused), (TransferSeq(10), taken)];
        assert_eq!(consecutive(TransferSeq(7), reported.clone()), reported[..2]);
        assert_eq!(consecutive(TransferSeq(6), reported), []);
    }

    #[test]
    fn what_was_taken_is_confirmed_in_runs_and_what_was_refused_comes_back() {
        let reported: Vec<Reported> = "TTRRT"
            .chars()
            .zip(5..)
            .map(|(kind, seq)| (TransferSeq(seq), if kind == 'T' { TransferOutcome::Taken } else { TransferOutcome::Refused }))
            .collect();
        let taken = |first, last| {
            let (first, last) = (TransferSeq(first), TransferSeq(last));
            ShardCommand::ConfirmTransfers(TransfersTaken { by_shard: BY, first, last })
        };
        let back = |seq| ShardCommand::ReturnTransfer(TransferPlace { shard: BY, transfer_seq: TransferSeq(seq) });
        assert_eq!(settlements(BY, &reported), [taken(5, 6), back(7), back(8), taken(9, 9)]);
        assert_eq!(settlements(BY, &[]), []);
    }
}
