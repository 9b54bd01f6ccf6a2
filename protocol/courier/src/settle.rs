//! What is brought, what the other shard says of it, and what the own shard is told then.

use walras_engine::{Engine, InTransit, PriceIndex, TransferOutcome};
use walras_types::{ShardId, TransferSeq};
use walras_wire::{ShardCommand, TransferIn, TransferOut, TransferPlace, TransfersTaken};

/// What came of a transfer, as the shard that it is for says.
pub type Told = (TransferSeq, TransferOutcome);

/// What the shard that a transfer is for is asked to take.
#[must_use]
pub fn carried(from_shard: ShardId, waits: &InTransit) -> TransferIn {
    let TransferOut { account, asset, amount, to_shard, .. } = waits.transfer;
    TransferIn { from_shard, to_shard, transfer_seq: waits.transfer_seq, account, asset, amount }
}

/// What a shard says of transfers that were brought, now or before: as far as they follow each other and it took or refused them.
pub fn outcomes<I: PriceIndex>(engine: &Engine<I>, from: ShardId, brought: &[TransferSeq]) -> Vec<Told> {
    brought.iter().map_while(|seq| Some((*seq, engine.transfer_outcome(from, *seq)?))).collect()
}

/// Those that follow each other from `first` on.
pub(crate) fn consecutive(first: TransferSeq, told: Vec<Told>) -> Vec<Told> {
    told.into_iter().zip(first.0..).take_while(|((seq, _), next)| seq.0 == *next).map(|(told, _)| told).collect()
}

/// What is to be told to the own shard: those that were taken, in runs, and those that were refused, one by one.
pub(crate) fn settlements(by_shard: ShardId, told: &[Told]) -> Vec<ShardCommand> {
    let of_one_kind = told.chunk_by(|(_, a), (_, b)| (a, b) == (&TransferOutcome::Taken, &TransferOutcome::Taken));
    let command = |run: &[Told]| {
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
        let told = vec![(TransferSeq(7), taken), (TransferSeq(8), refused), (TransferSeq(10), taken)];
        assert_eq!(consecutive(TransferSeq(7), told.clone()), told[..2]);
        assert_eq!(consecutive(TransferSeq(6), told), []);
    }

    #[test]
    fn what_was_taken_is_confirmed_in_runs_and_what_was_refused_comes_back() {
        let told: Vec<Told> = "TTRRT"
            .chars()
            .zip(5..)
            .map(|(kind, seq)| (TransferSeq(seq), if kind == 'T' { TransferOutcome::Taken } else { TransferOutcome::Refused }))
            .collect();
        let taken = |first, last| {
            let (first, last) = (TransferSeq(first), TransferSeq(last));
            ShardCommand::ConfirmTransfers(TransfersTaken { by_shard: BY, first, last })
        };
        let back = |seq| ShardCommand::ReturnTransfer(TransferPlace { shard: BY, transfer_seq: TransferSeq(seq) });
        assert_eq!(settlements(BY, &told), [taken(5, 6), back(7), back(8), taken(9, 9)]);
        assert_eq!(settlements(BY, &[]), []);
    }
}
