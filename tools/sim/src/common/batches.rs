//! What batch markets of both worlds have in common: how one is declared, what is sent to it, and a solver.

use walras_batch_solver::{Budget, ClosedBatch};
use walras_sequencer::{SolveJob, Solved};
use walras_testkit::plain;
use walras_types::{
    AccountFee, AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, CreateOffer, Payment, PublicKey, Rounding,
};
use walras_wire::{BatchMarketCommand, BatchMarketSpec, Command, SetAccountFee};

/// The market, of the venue's first assets.
pub(crate) const MARKET: BatchMarketId = BatchMarketId(0);
pub(crate) const ASSETS: usize = 2;
/// Accounts that trade.
pub(crate) const ACCOUNTS: u32 = 4;

pub(crate) fn spec(interval_ns: u64) -> BatchMarketSpec {
    BatchMarketSpec { interval_ns, ..plain::batch_market(MARKET) }
}

/// An account's: nobody checks signatures here.
pub(crate) fn key(account: AccountId) -> PublicKey {
    let mut key = [1; 32];
    key[..4].copy_from_slice(&account.0.to_le_bytes());
    PublicKey(key)
}

/// A small payment or offer near par; `below` gives numbers below what it is given.
pub(crate) fn operation(account_count: u64, mut below: impl FnMut(u64) -> u64) -> Option<BatchOperation> {
    let amount = Amount::new(1 + below(40))?;
    let asset = AssetId(u32::try_from(below(ASSETS as u64)).expect("few"));
    let other = AssetId(1 - asset.0);
    Some(if below(5) == 0 {
        let to = AccountId(u32::try_from(below(account_count.max(1))).expect("few"));
        BatchOperation::Payment(Payment { to, asset, amount })
    } else {
        let limit = BatchPrice::from_ratio(u128::from(80 + below(41)), 100, Rounding::Up).ok()?;
        BatchOperation::CreateOffer(CreateOffer { market: MARKET, sell: asset, buy: other, amount, limit })
    })
}

/// An account for one of few keys, so that they do not become many.
pub(crate) fn new_account(mut below: impl FnMut(u64) -> u64) -> BatchOperation {
    BatchOperation::CreateAccount(PublicKey([2 + u8::try_from(below(16)).expect("few"); 32]))
}

/// What accounts cost from now on: a little of some asset, or nothing.
pub(crate) fn account_fee(mut below: impl FnMut(u64) -> u64) -> Command {
    let asset = AssetId(u32::try_from(below(ASSETS as u64)).expect("few"));
    let fee = Amount::new(below(60)).filter(|amount| !amount.is_zero()).map(|amount| AccountFee { asset, amount });
    Command::BatchMarket(BatchMarketCommand::SetAccountFee(SetAccountFee { market: MARKET, fee }))
}

/// A solver: small searches, and nothing after some that failed.
pub(crate) fn solve(job: &SolveJob) -> Solved {
    let SolveJob { market, place, ref offers, rules, quality, attempt } = *job;
    let batch = ClosedBatch { market, place, offers, rules, quality };
    let proposal = if attempt < 3 { batch.propose(None, Budget::queries(500)).ok() } else { Some(batch.propose_nothing()) };
    Solved { market, block: place.number, proposal: proposal.map(Box::new) }
}
