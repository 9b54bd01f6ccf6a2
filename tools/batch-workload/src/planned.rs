//! Cancels that are to come.

use std::collections::VecDeque;

use walras_clearing::{OfferId, OfferKey, Pair};
use walras_types::{AccountId, BatchPrice, OfferName, TransactionSeq};

/// An offer that is to be cancelled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    pub(crate) pair: Pair,
    pub(crate) limit: BatchPrice,
    pub(crate) tie: u64,
    pub(crate) account: AccountId,
    pub(crate) sequence: TransactionSeq,
}

impl Planned {
    /// The key of the offer when it was created. A partial trade rounds the limit again and may change the key.
    pub(crate) fn key(&self) -> OfferKey {
        let name = OfferName { account: self.account, sequence: self.sequence };
        OfferKey { limit: self.limit, tie: self.tie, id: OfferId(name.number()) }
    }
}

/// Planned cancels by the block in which they are due.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calendar {
    /// From the next block on.
    due: VecDeque<Vec<Planned>>,
}

impl Calendar {
    /// In so many blocks; 1 is the next.
    pub(crate) fn plan(&mut self, in_blocks: u16, planned: Planned) {
        let place = usize::from(in_blocks) - 1;
        if self.due.len() <= place {
            self.due.resize_with(place + 1, Vec::new);
        }
        self.due[place].push(planned);
    }

    /// Those of the next block, which is over now.
    pub(crate) fn take_due(&mut self) -> Vec<Planned> {
        self.due.pop_front().unwrap_or_default()
    }
}
