//! The batch market of the load: what sets it up, its transactions, its blocks.

use std::time::{Duration, Instant};

use serde_json::Value;
use walras_batch_signatures::SigningKey;
use walras_types::limits::TRANSACTIONS_PER_ACCOUNT_MAX;
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPhase, BatchPrice, BatchTransaction, Commission, CreateOffer,
    Intake, LowerBounds, Mu, Payment, QualityMax, Rounding, Symbol, TransactionSeq, TransferId,
};
use walras_wire::batch::{SigningDomain, encode_signed_transaction};
use walras_wire::{
    AccountCommand, AddBatchAsset, AssetSpec, BatchMarketCommand, BatchMarketSpec, Command, SetAccountKey, SetBatchPhase, Transfer,
    VenueCommand,
};

use super::sending::Items;
use super::{PATIENCE_NS, TransactionLoad};
use crate::error::LoadError;
use crate::http::Client;

/// Assets of the market.
const ASSETS: u32 = 4;
/// Units of each asset that an account has.
const RICHES: u64 = 1 << 40;
/// Transactions of a batch, at most.
const BATCH_MAX: u32 = 1 << 19;

/// What is set up.
pub(super) struct Market {
    pub(super) id: BatchMarketId,
    name: String,
    first_asset: u32,
    pub(super) first_account: AccountId,
    pub(super) accounts: u32,
    seed: [u8; 32],
    domain: [u8; 32],
}

/// Of a market's blocks.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) cleared: u64,
    pub(super) dropped: u64,
    pub(super) blocks: u64,
    pub(super) offers_traded: u64,
}

impl Market {
    /// Its ids are the venue's next ones.
    pub(super) fn plan(http: &Client, options: &TransactionLoad) -> Result<Self, LoadError> {
        let count = |path: &str, field: &str| {
            let answer = http.get(path)?;
            Ok::<_, LoadError>(answer[field].as_array().map_or(0, Vec::len) as u32)
        };
        let (first_asset, batches) = (count("/v1/assets", "assets")?, count("/v1/batches", "batches")?);
        let first_account = http.get("/v1/status")?["accounts"].as_u64().unwrap_or(0) as u32;
        let accounts = options.transactions.div_ceil(TRANSACTIONS_PER_ACCOUNT_MAX as u32 / 2).max(2);
        let id = u16::try_from(batches).map_err(|_| LoadError::Cluster("the venue has too many batch markets".to_owned()))?;
        let (seed, domain) = (walras_access::random_bytes(), walras_access::random_bytes());
        let name = format!("LOAD{batches}");
        Ok(Self { id: BatchMarketId(id), name, first_asset, first_account: AccountId(first_account), accounts, seed, domain })
    }

    fn asset(&self, place: u32) -> AssetId {
        AssetId(self.first_asset + place % ASSETS)
    }

    fn key(&self, account: u32) -> SigningKey {
        let mut seed = self.seed;
        seed.iter_mut().zip(account.to_le_bytes()).for_each(|(byte, of_account)| *byte ^= of_account);
        SigningKey::from_seed(&seed)
    }

    /// Commands that set it up.
    pub(super) fn setup(&self, options: &TransactionLoad) -> impl Iterator<Item = Command> {
        let symbol = |text: String| Symbol::new(&text).expect("letters and a number are a symbol");
        let assets = (0..ASSETS).map(move |place| {
            let AssetId(asset) = self.asset(place);
            let spec = AssetSpec { asset: AssetId(asset), symbol: symbol(format!("L{asset}")), decimals: 2 };
            Command::Venue(VenueCommand::CreateAsset(spec))
        });
        let spec = BatchMarketSpec {
            market: self.id,
            symbol: symbol(self.name.clone()),
            commission: Commission::new(15).expect("a commission"),
            mu: Mu::new(10).expect("a mu"),
            lower_bounds: LowerBounds::BestEffort,
            quality: QualityMax::NONE,
            intake: Intake::Filter,
            interval_ns: u64::try_from(options.interval.as_nanos()).unwrap_or(u64::MAX),
            transactions_max: BATCH_MAX,
            domain: self.domain,
        };
        let create = Command::BatchMarket(BatchMarketCommand::Create(spec));
        let added = (0..ASSETS).map(|place| {
            let added = AddBatchAsset { market: self.id, asset: self.asset(place) };
            Command::BatchMarket(BatchMarketCommand::AddAsset(added))
        });
        let accounts = (0..self.accounts).flat_map(move |number| {
            let account = AccountId(self.first_account.0 + number);
            let key = SetAccountKey { account, key: self.key(number).public_key() };
            let deposit = move |place| {
                let amount = Amount::new(RICHES).expect("an amount");
                let transfer =
                    Transfer { account, asset: self.asset(place), amount, transfer_id: TransferId(u64::from(place) + 1) };
                Command::Account(AccountCommand::Deposit(transfer))
            };
            let opened = [Command::Account(AccountCommand::Create(account)), Command::Account(AccountCommand::SetKey(key))];
            opened.into_iter().chain((0..ASSETS).map(deposit))
        });
        let phase = SetBatchPhase { market: self.id, phase: BatchPhase::Open };
        let open = Command::BatchMarket(BatchMarketCommand::SetPhase(phase));
        assets.chain([create]).chain(added).chain(accounts).chain([open])
    }

    /// The transaction at an index: all accounts send their first one, then all their second one, and so on.
    fn transaction(&self, index: u32) -> BatchTransaction {
        let (account, sequence) = (index % self.accounts, index / self.accounts + 1);
        // Bits without a pattern, the same for each index.
        let bits = (u64::from(index) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let units = Amount::new(1_000 + bits % 100_000).expect("an amount");
        let operation = if bits % 5 == 0 {
            let to = AccountId(self.first_account.0 + (account + 1) % self.accounts);
            BatchOperation::Payment(Payment { to, asset: self.asset(index), amount: units })
        } else {
            let (sell, buy) = (self.asset(index), self.asset(index + 1 + (bits >> 8) as u32 % (ASSETS - 1)));
            // From 0.3 % below equal to 0.1 % above.
            let limit = BatchPrice::from_ratio(u128::from(9_970 + (bits >> 16) % 40), 10_000, Rounding::Up);
            let limit = limit.expect("a price near 1");
            BatchOperation::CreateOffer(CreateOffer { market: self.id, sell, buy, amount: units, limit })
        };
        let account = AccountId(self.first_account.0 + account);
        BatchTransaction::new(account, TransactionSeq(u64::from(sequence)), operation)
    }

    /// All of them, signed.
    pub(super) fn signed(&self, options: &TransactionLoad) -> Items {
        let domain = SigningDomain::new(&self.domain);
        let sign = |range: std::ops::Range<u32>| {
            let (mut items, mut bytes) = (Items::default(), Vec::new());
            for index in range {
                bytes.clear();
                let transaction = self.transaction(index);
                let key = self.key(transaction.account.0 - self.first_account.0);
                encode_signed_transaction(&key.sign(&domain, &transaction), &mut bytes);
                items.push(&bytes);
            }
            items
        };
        let each = options.transactions.div_ceil(options.signing_threads.max(1) as u32).max(1);
        let ranges = (0..options.transactions).step_by(each as usize).map(|from| from..(from + each).min(options.transactions));
        let mut all = Items::default();
        std::thread::scope(|scope| {
            let parts: Vec<_> = ranges.map(|range| scope.spawn(|| sign(range))).collect();
            parts.into_iter().for_each(|part| all.append(&part.join().expect("signing does not panic")));
        });
        all
    }

    /// Until blocks account for all that was collected.
    pub(super) fn wait_until_cleared(&self, http: &Client, collected: u64) -> Result<Totals, LoadError> {
        let give_up = Instant::now() + Duration::from_nanos(PATIENCE_NS);
        loop {
            let answer = http.get(&format!("/v1/batches/{}/blocks?limit=1000", self.name))?;
            let mut totals = Totals::default();
            let number = |block: &Value, field: &str| block[field].as_u64().unwrap_or(0);
            for block in answer["blocks"].as_array().into_iter().flatten() {
                totals.cleared += number(block, "transactions");
                totals.dropped += number(block, "dropped");
                totals.offers_traded += number(block, "offers_traded");
                totals.blocks += 1;
            }
            if totals.cleared + totals.dropped == collected {
                return Ok(totals);
            }
            if totals.cleared + totals.dropped > collected || Instant::now() > give_up {
                let Totals { cleared, dropped, .. } = totals;
                let what = format!("{collected} transactions were collected, {cleared} cleared and {dropped} dropped");
                return Err(LoadError::Cluster(what));
            }
            std::thread::sleep(Duration::from_millis(2)); // pause: the venue clears the last block
        }
    }
}
