//! Batch markets in the simulation: the operator who declares one and those who trade in it, all at whatever replica leads, and a solver that
//! takes a while. What a leader that dies was asked to do is lost, and the next one begins from the state.

use walras_batch_solver::{Budget, ClosedBatch};
use walras_engine::Engine;
use walras_sequencer::{SolveJob, Solved};
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPhase, BatchPrice, BatchTransaction, Commission, CreateOffer,
    Intake, LowerBounds, Mu, Payment, PublicKey, QualityMax, Rounding, Symbol,
};
use walras_wire::batch::{SIGNATURE_BYTES, SignedTransaction};
use walras_wire::{AddBatchAsset, BatchMarketSpec, Command, SetAccountKey, SetBatchPhase, SubmitTransaction};

use super::Moment;

const MARKET: BatchMarketId = BatchMarketId(0);
const ASSETS: usize = 2;
const INTERVAL_NS: u64 = 25_000_000;
/// Accounts that trade.
const ACCOUNTS: u32 = 4;
/// Transactions at a time, at most.
const TRANSACTIONS_MAX: u64 = 3;

/// What is sent now: the next step of declaring the market, or some transactions.
pub(super) fn commands(engine: &Engine, at: Moment) -> Vec<Command> {
    if let Some(step) = declare(engine) {
        return vec![step];
    }
    if at.is_quiet || engine.batch_market(MARKET).is_none() {
        return Vec::new();
    }
    let mut random = Random(at.now_ns ^ engine.last_applied().0.rotate_left(32) | 1);
    let count = random.below(TRANSACTIONS_MAX + 1);
    (0..count).filter_map(|_| transaction(engine, &mut random)).collect()
}

fn declare(engine: &Engine) -> Option<Command> {
    if engine.assets().len() < ASSETS {
        return None;
    }
    let Some(view) = engine.batch_market(MARKET) else {
        return Some(Command::CreateBatchMarket(BatchMarketSpec {
            market: MARKET,
            symbol: Symbol::new("MAIN").expect("a symbol"),
            commission: Commission::new(15).expect("a commission"),
            mu: Mu::new(10).expect("a share"),
            lower_bounds: LowerBounds::BestEffort,
            quality: QualityMax { gap_ppb: 10_000_000, unserved_ppb: 10_000_000 },
            intake: Intake::Filter,
            interval_ns: INTERVAL_NS,
            transactions_max: 100,
            domain: [7; 32],
        }));
    };
    if view.market.is_none() {
        let asset = AssetId(u32::try_from(view.assets.len()).expect("two at most"));
        return Some(if view.assets.len() < ASSETS {
            Command::AddBatchAsset(AddBatchAsset { market: MARKET, asset })
        } else {
            Command::SetBatchPhase(SetBatchPhase { market: MARKET, phase: BatchPhase::Open })
        });
    }
    let keyless =
        (0..engine.account_count().min(ACCOUNTS)).map(AccountId).find(|account| engine.transaction_key(*account).is_none());
    keyless.map(|account| {
        let mut key = [1; 32];
        key[..4].copy_from_slice(&account.0.to_le_bytes());
        Command::SetAccountKey(SetAccountKey { account, key: PublicKey(key) })
    })
}

fn transaction(engine: &Engine, random: &mut Random) -> Option<Command> {
    let count = u64::from(engine.account_count().min(ACCOUNTS));
    let account = AccountId(u32::try_from(random.below(count.max(1))).expect("few"));
    let amount = Amount::new(1 + random.below(40))?;
    let asset = AssetId(u32::try_from(random.below(ASSETS as u64)).expect("few"));
    let other = AssetId(1 - asset.0);
    let operation = if random.below(5) == 0 {
        let to = AccountId(u32::try_from(random.below(count.max(1))).expect("few"));
        BatchOperation::Payment(Payment { to, asset, amount })
    } else {
        let limit = BatchPrice::from_ratio(u128::from(80 + random.below(41)), 100, Rounding::Up).ok()?;
        BatchOperation::CreateOffer(CreateOffer { market: MARKET, sell: asset, buy: other, amount, limit })
    };
    let transaction = BatchTransaction { account, sequence: engine.next_transaction(account), operation };
    let signed = SignedTransaction { transaction, signature: [0; SIGNATURE_BYTES] };
    Some(Command::SubmitTransaction(SubmitTransaction::new(MARKET, &signed).ok()?))
}

/// A solver: small searches, and nothing after some that failed.
pub(super) fn solve(job: &SolveJob) -> Solved {
    let SolveJob { market, place, ref offers, rules, quality, attempt } = *job;
    let batch = ClosedBatch { market, place, offers, rules, quality };
    let proposal = if attempt < 3 { batch.propose(None, Budget::queries(500)).ok() } else { Some(batch.propose_nothing()) };
    Solved { market, block: place.number, proposal: proposal.map(Box::new) }
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
