//! A batch market on the venue of scenarios: what makes it, and what sends it a transaction.

use walras_types::*;
use walras_wire::batch::{SIGNATURE_BYTES, SignedTransaction};
use walras_wire::*;

use crate::venue::{BTC, USD, opening};

pub const MARKET: BatchMarketId = BatchMarketId(0);

/// Commands that create assets, an account that has funds and this key, and the market, and open it with BTC and USD.
pub fn opening_with_batches(key: PublicKey) -> Vec<Command> {
    let mut commands = opening(1, 1_000_000, &[]);
    commands.extend([create(), add(BTC), add(USD), open(), set_key(AccountId(0), key)]);
    commands
}

/// Creates the market, without assets.
pub fn create() -> Command {
    Command::BatchMarket(BatchMarketCommand::Create(BatchMarketSpec {
        market: MARKET,
        symbol: Symbol::new("MAIN").unwrap(),
        commission: Commission::new(15).unwrap(),
        mu: Mu::new(10).unwrap(),
        lower_bounds: LowerBounds::BestEffort,
        quality: QualityMax::NONE,
        intake: Intake::Filter,
        interval_ns: 500_000_000,
        transactions_max: 100,
        domain: [7; 32],
    }))
}

pub fn add(asset: AssetId) -> Command {
    Command::BatchMarket(BatchMarketCommand::AddAsset(AddBatchAsset { market: MARKET, asset }))
}

pub fn open() -> Command {
    Command::BatchMarket(BatchMarketCommand::SetPhase(SetBatchPhase { market: MARKET, phase: BatchPhase::Open }))
}

/// The operator sets an account's key.
pub fn set_key(account: AccountId, key: PublicKey) -> Command {
    Command::Account(AccountCommand::SetKey(SetAccountKey { account, key }))
}

/// A transaction comes to the log, where its signature is not checked again.
pub fn submit(transaction: BatchTransaction) -> Command {
    let signed = SignedTransaction { transaction, signature: [0; SIGNATURE_BYTES] };
    Command::Batch(BatchCommand::Submit(SubmitTransaction::new(MARKET, &signed).unwrap()))
}
