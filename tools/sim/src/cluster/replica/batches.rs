//! Batch markets in the simulation: the operator who declares one and those who trade in it, all at whatever replica leads; a
//! solver takes a while. What a leader that dies was asked to do is lost, and the next one begins from the state.

use walras_engine::Engine;
use walras_engine::versions::OLDEST;
use walras_types::limits::POOL_RESERVE_MIN;
use walras_types::{
    AccountId, Amount, AssetId, BatchOperation, BatchPhase, BatchTransaction, CreatePool, DepositToPool, EngineVersion, OfferName,
    PoolRule, PublicKey, TransactionSeq, WithdrawFromPool,
};
use walras_wire::batch::{SIGNATURE_BYTES, SignedTransaction};
use walras_wire::{
    AccountCommand, AddBatchAsset, BatchCommand, BatchMarketCommand, Command, SetAccountKey, SetBatchPhase, SubmitTransaction,
};

use super::moment::Moment;
use crate::common::batches::{ACCOUNTS, ASSETS, MARKET, account_fee, key, new_account, operation, spec};

/// Transactions at a time, at most.
const TRANSACTIONS_MAX: u64 = 3;
/// Pools, about.
const POOLS_MAX: u64 = 4;

/// What is sent now: the next step of declaring the market, which closes a batch so often, or some transactions, and now and then
/// what accounts are to cost. Of the account `framed` a client sends the transactions.
pub(super) fn commands(engine: &Engine, at: Moment, interval_ns: u64, framed: Option<AccountId>) -> Vec<Command> {
    if let Some(step) = declare(engine, interval_ns) {
        return vec![step];
    }
    if at.is_quiet || engine.batch_market(MARKET).is_none() {
        return Vec::new();
    }
    let mut random = Random(at.now_ns ^ engine.last_applied().0.rotate_left(32) | 1);
    if random.below(50) == 0 {
        return vec![account_fee(|n| random.below(n))];
    }
    let count = random.below(TRANSACTIONS_MAX + 1);
    let is_others = |command: &Command| command.account() != framed;
    (0..count).filter_map(|_| transaction(engine, &mut random)).filter(is_others).collect()
}

fn declare(engine: &Engine, interval_ns: u64) -> Option<Command> {
    if engine.assets().len() < ASSETS {
        return None;
    }
    let Some(view) = engine.batch_market(MARKET) else {
        return Some(Command::BatchMarket(BatchMarketCommand::Create(spec(interval_ns))));
    };
    if view.market.is_none() {
        let asset = AssetId(u32::try_from(view.assets.len()).expect("two at most"));
        return Some(if view.assets.len() < ASSETS {
            Command::BatchMarket(BatchMarketCommand::AddAsset(AddBatchAsset { market: MARKET, asset }))
        } else {
            Command::BatchMarket(BatchMarketCommand::SetPhase(SetBatchPhase { market: MARKET, phase: BatchPhase::Open }))
        });
    }
    let keyless =
        (0..engine.account_count().min(ACCOUNTS)).map(AccountId).find(|account| engine.transaction_key(*account).is_none());
    keyless.map(|account| Command::Account(AccountCommand::SetKey(SetAccountKey { account, key: key(account) })))
}

fn transaction(engine: &Engine, random: &mut Random) -> Option<Command> {
    let count = u64::from(engine.account_count().min(ACCOUNTS));
    let account = AccountId(u32::try_from(random.below(count.max(1))).expect("few"));
    // The operator's accounts come first, or theirs would be others' numbers.
    let operation = if engine.account_count() >= walras_testkit::commands::ACCOUNTS && random.below(16) == 0 {
        key_or_account(engine, random)
    } else if random.below(5) == 0 {
        of_a_pool(engine, account, random)?
    } else {
        operation(count, |n| random.below(n))?
    };
    let transaction = BatchTransaction::new(account, engine.next_transaction(account), operation);
    let signed = SignedTransaction { transaction, signature: [0; SIGNATURE_BYTES] };
    Some(Command::Batch(BatchCommand::Submit(SubmitTransaction::new(MARKET, &signed).ok()?)))
}

/// A new account, or another key for an old one where the rules in force know that: leaders log it only then.
fn key_or_account(engine: &Engine, random: &mut Random) -> BatchOperation {
    if engine.version() >= EngineVersion(13) && random.below(3) == 0 {
        return BatchOperation::SetKey(PublicKey([100 + u8::try_from(random.below(8)).expect("few"); 32]));
    }
    new_account(|n| random.below(n))
}

/// A pool created, added to or left, whether or not the rules in force know pools.
fn of_a_pool(engine: &Engine, account: AccountId, random: &mut Random) -> Option<BatchOperation> {
    let pools: Vec<OfferName> = engine.pools(MARKET).map(|view| view.name).collect();
    let place = usize::try_from(random.below(POOLS_MAX)).expect("few");
    let is_unknown = random.below(8) == 0;
    let pool = pools.get(place).copied().or_else(|| is_unknown.then_some(OfferName { account, sequence: TransactionSeq(1) }));
    let Some(pool) = pool else {
        let is_rich = |asset| engine.balance(account, AssetId(asset)).available.get() >= 2 * POOL_RESERVE_MIN;
        // All that an account asks is dropped where it cannot pay for one of it.
        if engine.version() > OLDEST && !(is_rich(0) && is_rich(1)) {
            return None;
        }
        let rule = match random.below(3) {
            0 => PoolRule::ConstantProduct,
            1 => PoolRule::Weighted { weights: [2, 3] },
            _ => PoolRule::StableSwap { amplification: 20 },
        };
        let amounts = [Amount::new(POOL_RESERVE_MIN + random.below(100))?, Amount::new(POOL_RESERVE_MIN + random.below(100))?];
        let assets = [AssetId(0), AssetId(1)];
        return Some(BatchOperation::CreatePool(CreatePool { market: MARKET, assets, rule, fee_ppm: 3_000, amounts }));
    };
    Some(if random.below(3) == 0 {
        let shares = Amount::new(1 + random.below(engine.pool_shares(MARKET, pool, account).get().max(1)))?;
        BatchOperation::WithdrawFromPool(WithdrawFromPool { market: MARKET, pool, shares })
    } else {
        let amounts = [Amount::new(1 + random.below(80))?, Amount::new(1 + random.below(80))?];
        BatchOperation::DepositToPool(DepositToPool { market: MARKET, pool, amounts })
    })
}

/// Xorshift: the same for the same moment.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}
