//! Whether two shards agree on what moved between them: one that was set back to an older state has forgotten numbers that the other
//! remembers.
//!
//! Of the transfers from one shard to another the sender knows which is the oldest in transit and which number comes next, the receiver
//! which it takes next. At any one moment
//!
//! ```text
//! sender's oldest_out <= receiver's next_in <= sender's next_out
//! ```
//!
//! because a transfer leaves the sender's queue after the receiver took it, and is taken after it was sent. All three only grow. So whoever
//! asks the other shard between two looks at its own state can hold what it hears against what it saw: no delay makes them disagree, and a
//! state that is older than what it said before does, as long as nothing was made up since. See [`compare_numbers`].
//!
//! What was made up since is known by the log: after every start, and under every new leader, a mark comes before anything else
//! ([`ShardCommand::DoubtTransfers`](walras_wire::ShardCommand::DoubtTransfers)). Transfers that are sent behind it wait until the numbers were
//! compared, and the comparison goes by what was sent before it. So whatever is sent meanwhile, under numbers that were given before or not, and
//! whoever leads when the other shard is reached, a state that was set back shows.

use walras_types::TransferSeq;
use walras_wire::{SetBack, TransferNumbers};

/// How it stands with the transfers between this shard and another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferStanding {
    /// The two agreed, and this one did not begin anew since.
    Agreed,
    /// They have not been compared yet: what is in transit waits.
    Doubted,
    /// One of the two was set back to an older state. Nothing moves between them.
    Stopped(SetBack),
}

/// Compares the numbers that the other shard reported with those of this shard, `before` the other was asked and `now`. Every
/// transfer that can have been delivered to the other shard has a number below `sent_before`.
///
/// # Errors
/// Who was set back to an older state.
pub fn compare_numbers(
    before: TransferNumbers,
    reported: TransferNumbers,
    now: TransferNumbers,
    sent_before: TransferSeq,
) -> Result<(), SetBack> {
    if reported.next_in < before.oldest_out {
        return Err(SetBack::OtherTaken { next: reported.next_in, known: before.oldest_out });
    }
    if reported.next_in > sent_before {
        return Err(SetBack::OwnSent { next: sent_before, known: reported.next_in });
    }
    if now.next_in < reported.oldest_out {
        return Err(SetBack::OwnTaken { next: now.next_in, known: reported.oldest_out });
    }
    if before.next_in > reported.next_out {
        return Err(SetBack::OtherSent { next: reported.next_out, known: before.next_in });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(oldest_out: u64, next_out: u64, next_in: u64) -> TransferNumbers {
        TransferNumbers { oldest_out: TransferSeq(oldest_out), next_out: TransferSeq(next_out), next_in: TransferSeq(next_in) }
    }

    #[test]
    fn each_of_the_four_is_told_apart() {
        let own = numbers(4, 9, 20);
        let compare = |others, sent_before| compare_numbers(own, others, own, TransferSeq(sent_before));
        for (next_in, oldest_out, next_out) in [(4, 20, 20), (9, 12, 25), (6, 1, 20)] {
            assert_eq!(compare(numbers(oldest_out, next_out, next_in), 9), Ok(()));
        }
        let [three, four, nine] = [3, 4, 9].map(TransferSeq);
        assert_eq!(compare(numbers(20, 20, 3), 9), Err(SetBack::OtherTaken { next: three, known: four }));
        assert_eq!(compare(numbers(20, 20, 10), 9), Err(SetBack::OwnSent { next: nine, known: TransferSeq(10) }));
        // What was sent meanwhile, under a number that had been used, hides nothing.
        assert_eq!(compare(numbers(20, 20, 9), 4), Err(SetBack::OwnSent { next: four, known: nine }));
        let [twenty, later] = [20, 21].map(TransferSeq);
        assert_eq!(compare(numbers(21, 22, 9), 9), Err(SetBack::OwnTaken { next: twenty, known: later }));
        assert_eq!(compare(numbers(12, 19, 9), 9), Err(SetBack::OtherSent { next: TransferSeq(19), known: twenty }));
    }

    #[test]
    fn what_moves_while_the_other_is_asked_is_no_disagreement() {
        // One more was sent and taken, two were taken from there and confirmed.
        let (before, after) = (numbers(4, 9, 20), numbers(5, 10, 22));
        assert_eq!(compare_numbers(before, numbers(22, 23, 10), after, after.next_out), Ok(()));
    }
}
