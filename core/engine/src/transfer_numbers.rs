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
//! state that is older than what it said before does, as long as nothing was made up since. See [`TransferNumbers::compare`].

use walras_types::TransferSeq;

/// The numbers of the transfers between two shards, as one of them has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferNumbers {
    /// The oldest that it sent and that is in transit; with none in transit the one that it sends next.
    pub oldest_out: TransferSeq,
    /// The one that it sends next.
    pub next_out: TransferSeq,
    /// The one that it takes next.
    pub next_in: TransferSeq,
}

/// Who forgot what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetBack {
    /// This shard took transfers that it does not know of.
    OwnTaken {
        /// What it takes next.
        next: TransferSeq,
        /// The other's oldest in transit: those before were taken.
        known: TransferSeq,
    },
    /// This shard sent transfers that it does not know of.
    OwnSent {
        /// What it sent next when it began.
        next: TransferSeq,
        /// What the other takes next: those before were sent.
        known: TransferSeq,
    },
    /// The other shard took transfers that it does not know of.
    OtherTaken {
        /// What it takes next.
        next: TransferSeq,
        /// This shard's oldest in transit.
        known: TransferSeq,
    },
    /// The other shard sent transfers that it does not know of.
    OtherSent {
        /// What it sends next.
        next: TransferSeq,
        /// What this shard takes next.
        known: TransferSeq,
    },
}

impl TransferNumbers {
    /// Holds what the other shard says against what this one had `before` it was asked and has `after` it answered. `sent_before` is a
    /// number below which everything is that can have reached the other shard: what was sent next before the first of it was brought by
    /// whoever asks, or, once they have agreed, what is sent next now.
    ///
    /// # Errors
    /// Who was set back to an older state.
    pub fn compare(before: Self, others: Self, after: Self, sent_before: TransferSeq) -> Result<(), SetBack> {
        if others.next_in < before.oldest_out {
            return Err(SetBack::OtherTaken { next: others.next_in, known: before.oldest_out });
        }
        if others.next_in > sent_before {
            return Err(SetBack::OwnSent { next: sent_before, known: others.next_in });
        }
        if after.next_in < others.oldest_out {
            return Err(SetBack::OwnTaken { next: after.next_in, known: others.oldest_out });
        }
        if before.next_in > others.next_out {
            return Err(SetBack::OtherSent { next: others.next_out, known: before.next_in });
        }
        Ok(())
    }
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
        let compare = |others, sent_before| TransferNumbers::compare(own, others, own, TransferSeq(sent_before));
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
        assert_eq!(TransferNumbers::compare(before, numbers(22, 23, 10), after, after.next_out), Ok(()));
    }
}
