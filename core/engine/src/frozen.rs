//! A state that is kept while the engine goes on, so that its bytes can be made elsewhere.
//!
//! What is large and flat is copied (balances, numbers and keys of accounts, what is collected), what stands in batch markets is shared until it
//! changes, and the rest is encoded at once. Hash trees and indices follow from these and are not kept.

use walras_ledger::Ledger;
use walras_order_book::PriceIndex;

use crate::batches::{BatchMarketState, Batches};
use crate::engine::Engine;
use crate::snapshot::append_hash;

/// The state after one entry. [`Self::snapshot`] gives the bytes that [`Engine::snapshot`] gave then.
pub struct Frozen {
    head: Vec<u8>,
    batches: Batches,
    ledger: Ledger,
}

impl std::fmt::Debug for Frozen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Frozen({} accounts)", self.ledger.account_count())
    }
}

impl Frozen {
    /// Appends the state's bytes to `out`.
    pub fn snapshot(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.reserve(self.head.len() + self.ledger.snapshot_len());
        out.extend_from_slice(&self.head);
        let mut sink = |piece: &[u8]| out.extend_from_slice(piece);
        self.batches.encode(&mut sink);
        self.ledger.snapshot(&mut sink);
        append_hash(out, start);
    }
}

impl<I: PriceIndex> Engine<I> {
    /// Keeps the state as it is: in a small part of the time that [`Self::snapshot`] takes, where there are many accounts and offers.
    #[must_use]
    pub fn freeze(&self) -> Frozen {
        let mut head = Vec::new();
        self.encode_head(&mut |piece| head.extend_from_slice(piece));
        Frozen { head, batches: self.batches.for_snapshot(), ledger: self.ledger.clone() }
    }
}

impl Batches {
    fn for_snapshot(&self) -> Self {
        let Self { accounts, markets, threads } = self;
        let markets = markets.iter().map(BatchMarketState::for_snapshot).collect();
        Self { accounts: accounts.for_snapshot(), markets, threads: *threads }
    }
}

impl BatchMarketState {
    /// The names follow from what is collected.
    fn for_snapshot(&self) -> Self {
        let Self { spec, phase, assets, account_fee, batch, collected, names: _, dropped, last } = self;
        let batch = batch.as_ref().map(walras_batch::Batch::for_snapshot);
        let (assets, collected, last) = (assets.clone(), collected.clone(), last.clone());
        let (phase, account_fee, dropped) = (*phase, *account_fee, *dropped);
        Self { batch, assets, account_fee, collected, last, dropped, phase, ..Self::new(*spec) }
    }
}
