//! A state that is kept while the engine goes on, so that its bytes can be made elsewhere.
//!
//! What there is of each account (balances, numbers, keys, the last transfer), what sessions remember and what stands in batch markets is
//! shared in parts until it changes. Open orders, what is collected and each account's status, which is a byte, are copied. The rest is
//! encoded at once, positions among it. Hash trees and indices follow from these and are not kept.

use walras_batch::{Collected, MarketForm};
use walras_ledger::{Ledger, Parts};
use walras_order_book::{FrozenOrders, PriceIndex};
use walras_types::TransferId;
use walras_wire::AccountStatus;
use walras_wire::codec::Writer;

use crate::batches::{BatchMarketState, Batches};
use crate::engine::Engine;
use crate::market::Market;
use crate::sessions::FrozenSessions;
use crate::snapshot::{append_hash, count, encode_accounts, encode_funds, put_order};
use crate::versions::Rules;

/// The state after one entry. [`Self::snapshot`] gives the bytes that [`Engine::snapshot`] gave then.
pub struct Frozen {
    /// The bytes before the accounts.
    front: Vec<u8>,
    statuses: Vec<AccountStatus>,
    transfers: Parts<Option<TransferId>>,
    /// The bytes before an instrument's open orders, and these.
    markets: Vec<(Vec<u8>, FrozenOrders)>,
    before_sessions: Vec<u8>,
    sessions: FrozenSessions,
    after_sessions: Vec<u8>,
    form: MarketForm,
    batches: Batches,
    ledger: Ledger,
}

impl std::fmt::Debug for Frozen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Frozen({} accounts)", self.ledger.account_count())
    }
}

/// Bytes of an account's status and last transfer, at most.
const ACCOUNT_BYTES_MAX: usize = 10;

impl Frozen {
    /// Appends the state's bytes to `out`.
    pub fn snapshot(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.reserve(self.front.len() + ACCOUNT_BYTES_MAX * self.statuses.len() + self.ledger.snapshot_len());
        out.extend_from_slice(&self.front);
        encode_accounts(&self.statuses, &self.transfers, out, &mut |_| ());
        count(&mut Writer(out), self.markets.len());
        for (front, orders) in &self.markets {
            out.extend_from_slice(front);
            orders.for_each_order(|order| put_order(order, &mut Writer(out)));
        }
        out.extend_from_slice(&self.before_sessions);
        self.sessions.encode(out, &mut |_| ());
        out.extend_from_slice(&self.after_sessions);
        let mut sink = |piece: &[u8]| out.extend_from_slice(piece);
        encode_funds(self.form, &self.batches, &self.ledger, &mut sink);
        append_hash(out, start);
    }
}

impl<I: PriceIndex> Engine<I> {
    /// Keeps the state as it is: in a small part of the time that [`Self::snapshot`] takes, where there are many accounts and offers.
    #[must_use]
    pub fn freeze(&mut self) -> Frozen {
        let encoded = |encode: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = Vec::new();
            encode(&mut bytes);
            bytes
        };
        let front = encoded(&|bytes| self.encode_before_accounts(bytes, &mut |_| ()));
        let of_market = |market: &Market<I>| (encoded(&|bytes| market.encode_front(bytes, &mut |_| ())), market.book.freeze());
        let markets = self.markets.iter().map(of_market).collect();
        let before_sessions = encoded(&|bytes| self.encode_before_sessions(bytes, &mut |_| ()));
        let after_sessions = encoded(&|bytes| self.encode_after_sessions(bytes, &mut |_| ()));
        Frozen {
            front,
            statuses: self.statuses.clone(),
            transfers: self.transfers.share(),
            markets,
            before_sessions,
            sessions: self.sessions.freeze(),
            after_sessions,
            form: self.version.market_form(),
            batches: self.batches.for_snapshot(),
            ledger: self.ledger.share(),
        }
    }
}

impl Batches {
    fn for_snapshot(&mut self) -> Self {
        let markets = self.markets.iter().map(BatchMarketState::for_snapshot).collect();
        let (accounts, keys_replaced) = (self.accounts.for_snapshot(), self.keys_replaced.clone());
        Self { accounts, markets, keys_replaced, ..Self::new() }
    }
}

impl BatchMarketState {
    /// The names follow from what is collected.
    fn for_snapshot(&self) -> Self {
        let Self {
            spec,
            edition,
            phase,
            assets,
            currencies,
            account_fee,
            batch,
            collected,
            keys_asked: _,
            keys_kept,
            dropped,
            last,
            outcomes: _,
        } = self;
        let batch = batch.as_ref().map(walras_batch::Batch::for_snapshot);
        let collected = Collected { transactions: collected.transactions.clone(), ..Collected::default() };
        let (assets, last, keys_kept) = (assets.clone(), last.clone(), keys_kept.clone());
        let (phase, currencies, account_fee, dropped) = (*phase, *currencies, *account_fee, *dropped);
        Self { batch, assets, currencies, account_fee, collected, keys_kept, last, dropped, phase, ..Self::new(*spec, *edition) }
    }
}
