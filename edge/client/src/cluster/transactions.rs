//! Load on a batch market by binary order entry: signed transactions of many accounts, many in a frame, until a block has cleared each.
//!
//! The market, its assets and its accounts are set up by an operator's session, and all transactions are signed before the first is sent.
//! Each account sends payments and offers around equal prices, under the numbers 1 to 64 of its own. What the venue has no room for is sent
//! again.
//!
//! Check: what was collected is cleared or dropped, by the venue's own count of its blocks.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use serde_json::Value;
use walras_batch_signatures::SigningKey;
use walras_gateway::ClientKey;
use walras_gateway::session::{AnyClient, ClientSettings, FrameOutcome};
use walras_types::limits::TRANSACTIONS_PER_ACCOUNT_MAX;
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPhase, BatchPrice, BatchTransaction, Commission, CreateOffer,
    Intake, LowerBounds, Mu, Payment, QualityMax, RejectReason, Rounding, Symbol, TransactionSeq, TransferId,
};
use walras_wire::batch::{SigningDomain, encode_signed_transaction};
use walras_wire::order_entry::{Role, TRANSACTIONS_PER_FRAME_MAX, TRANSACTIONS_UNANSWERED_MAX, push_signed_bytes};
use walras_wire::{
    AccountCommand, AddBatchAsset, AssetSpec, BatchMarketCommand, BatchMarketSpec, Command, SetAccountKey, SetBatchPhase, Transfer,
    VenueCommand,
};

use super::market::{account_key, settings};
use super::{ClusterLoad, PATIENCE_NS, ReplicaAddress, TIMERS_EVERY_NS, client};
use crate::error::LoadError;
use crate::http::Client;

/// Assets of the market.
const ASSETS: u32 = 4;
/// Units of each asset that an account has.
const RICHES: u64 = 1 << 40;
/// Transactions of a batch, at most.
const BATCH_MAX: u32 = 1 << 19;
/// What has no room is sent again after this, where the venue says nothing else.
const RETRY_NS: u64 = 5_000_000;

/// How many transactions of how many accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionLoad {
    /// Transactions in all. There are as many accounts as it takes for 32 of each.
    pub transactions: u32,
    /// Connections.
    pub connections: u32,
    /// From one batch to the next.
    pub interval: Duration,
    /// Threads that sign before the measurement.
    pub signing_threads: usize,
}

/// What came of them.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct TransactionReport {
    /// Transactions that were sent and signed.
    pub transactions: u64,
    /// Accounts that signed them.
    pub accounts: u32,
    /// Those that were collected.
    pub collected: u64,
    /// Those that were refused for good.
    pub refused: u64,
    /// Why the first of these was.
    pub first_refusal: Option<&'static str>,
    /// Those that were sent more than once, since there was no room.
    pub sent_again: u64,
    /// Those that a block has.
    pub cleared: u64,
    /// Those that a block left out.
    pub dropped: u64,
    /// Blocks that have them.
    pub blocks: u64,
    /// Offers that traded in these blocks.
    pub offers_traded: u64,
    /// From the first one sent to the last one answered.
    pub collected_seconds: f64,
    /// From the first one sent until the last block was cleared.
    pub cleared_seconds: f64,
    /// Transactions that were sent, signed, checked, logged, cleared and dropped a second, end to end.
    pub cleared_per_second: f64,
}

impl std::fmt::Display for TransactionReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} signed transactions of {} accounts", self.transactions, self.accounts)?;
        writeln!(
            f,
            "  collected  {} in {:.2} s ({} refused, {} sent again)",
            self.collected, self.collected_seconds, self.refused, self.sent_again
        )?;
        writeln!(
            f,
            "  cleared    {} in {:.2} s, {} dropped, {} blocks, {} offers traded",
            self.cleared, self.cleared_seconds, self.dropped, self.blocks, self.offers_traded
        )?;
        if let Some(reason) = self.first_refusal {
            writeln!(f, "  the first refusal: {reason}")?;
        }
        writeln!(f, "  end to end {:.0}/s", self.cleared_per_second)
    }
}

/// Sets a market up on the venue of these replicas and sends it the load. `key` is an operator's.
///
/// # Errors
/// The venue cannot be reached or refuses the market, or what came of the transactions does not add up.
pub fn measure_transactions(
    replicas: &[ReplicaAddress],
    key: &ClientKey,
    options: &TransactionLoad,
) -> Result<TransactionReport, LoadError> {
    let clients: Vec<Client> = replicas.iter().map(|replica| Client::new(&replica.url, Some(key.clone()))).collect();
    let http = clients.first().ok_or_else(|| LoadError::Cluster("no replica is named".to_owned()))?;
    let market = Market::plan(http, options)?;
    let orders: Vec<String> = replicas.iter().map(|replica| replica.orders.clone()).collect();
    let mut load = ClusterLoad::idle(replicas);
    let operator = ClientSettings { role: Role::Operator, ..settings(&orders) };
    load.log_on(vec![client(operator, key.clone(), load.now_ns())])?;
    for command in market.setup(options) {
        load.enter(0, load.now_ns(), command);
        // What waits here is bounded too.
        while load.tally.unanswered > 100_000 {
            load.turn(TIMERS_EVERY_NS)?;
        }
    }
    load.drain()?;
    if load.tally.rejected > 0 {
        return Err(LoadError::Cluster(
            "the venue rejected the batch market of the measurement: is another one being set up?".into(),
        ));
    }
    load.lines.clear();
    let trader = account_key(&clients, market.first_account)?;
    let items = market.signed(options);
    let sessions = (0..options.connections.max(1)).map(|_| client(settings(&orders), trader.clone(), load.now_ns())).collect();
    load.log_on(sessions)?;
    let mut sending = Sending::new(&items, market.accounts as usize, load.lines.len(), load.now_ns());
    let begun = Instant::now();
    while sending.answered < u64::from(options.transactions) {
        let now_ns = load.now_ns();
        for (line, flight) in load.lines.iter_mut().zip(0..) {
            let AnyClient::One(client) = &mut line.client else { continue };
            while let Some(outcome) = client.next_transactions() {
                sending.take(flight, now_ns, &outcome);
            }
            while client.unanswered_transactions() + TRANSACTIONS_PER_FRAME_MAX <= TRANSACTIONS_UNANSWERED_MAX
                && let Some((indexes, frame)) = sending.next_frame(flight, now_ns)
            {
                let number = client.submit_transactions(now_ns, market.id, frame);
                let number = number.map_err(|e| LoadError::Cluster(format!("a frame was not taken: {e}")))?;
                sending.flights[flight].frames.insert(number, indexes);
            }
        }
        load.turn(RETRY_NS)?;
        if load.now_ns().saturating_sub(sending.progress_ns) > PATIENCE_NS {
            return Err(LoadError::Cluster(format!("{} transactions have no result", items.ends.len() as u64 - sending.answered)));
        }
    }
    let collected_seconds = begun.elapsed().as_secs_f64();
    let Sending { collected, refused, first_refusal, sent_again, .. } = sending;
    let totals = market.wait_until_cleared(http, collected)?;
    let cleared_seconds = begun.elapsed().as_secs_f64();
    Ok(TransactionReport {
        transactions: u64::from(options.transactions),
        accounts: market.accounts,
        collected,
        refused,
        first_refusal: first_refusal.map(RejectReason::name),
        sent_again,
        cleared: totals.cleared,
        dropped: totals.dropped,
        blocks: totals.blocks,
        offers_traded: totals.offers_traded,
        collected_seconds,
        cleared_seconds,
        cleared_per_second: collected as f64 / cleared_seconds,
    })
}

/// What is set up.
struct Market {
    id: BatchMarketId,
    name: String,
    first_asset: u32,
    first_account: AccountId,
    accounts: u32,
    seed: [u8; 32],
    domain: [u8; 32],
}

/// Of a market's blocks.
#[derive(Default)]
struct Totals {
    cleared: u64,
    dropped: u64,
    blocks: u64,
    offers_traded: u64,
}

impl Market {
    /// Its ids are the venue's next ones.
    fn plan(http: &Client, options: &TransactionLoad) -> Result<Self, LoadError> {
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
    fn setup(&self, options: &TransactionLoad) -> impl Iterator<Item = Command> {
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
        BatchTransaction { account, sequence: TransactionSeq(u64::from(sequence)), operation }
    }

    /// All of them, signed.
    fn signed(&self, options: &TransactionLoad) -> Items {
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
    fn wait_until_cleared(&self, http: &Client, collected: u64) -> Result<Totals, LoadError> {
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

/// Items of frames.
#[derive(Default)]
struct Items {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Items {
    fn push(&mut self, signed: &[u8]) {
        assert!(push_signed_bytes(signed, &mut self.bytes), "it is a signed transaction");
        self.ends.push(self.bytes.len());
    }

    fn append(&mut self, other: &Self) {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend(other.ends.iter().map(|end| before + end));
    }

    fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }
}

/// What is sent, and what is known of it.
struct Sending<'i> {
    items: &'i Items,
    accounts: usize,
    /// Of each connection. An account sends by one of them, in the order of its numbers: one below a number that was taken is refused.
    flights: Vec<Flight>,
    answered: u64,
    collected: u64,
    refused: u64,
    first_refusal: Option<RejectReason>,
    sent_again: u64,
    progress_ns: u64,
}

/// What is sent by one connection.
#[derive(Clone, Debug, Default)]
struct Flight {
    next: usize,
    /// To be sent again, from a time on.
    again: VecDeque<(u64, usize)>,
    /// The transactions of each frame.
    frames: BTreeMap<u64, Vec<usize>>,
}

impl<'i> Sending<'i> {
    fn new(items: &'i Items, accounts: usize, connections: usize, progress_ns: u64) -> Self {
        let flights = vec![Flight::default(); connections];
        Self { items, accounts, flights, answered: 0, collected: 0, refused: 0, first_refusal: None, sent_again: 0, progress_ns }
    }

    /// The next frame: what waits to be sent again first.
    fn next_frame(&mut self, connection: usize, now_ns: u64) -> Option<(Vec<usize>, Vec<u8>)> {
        let (mut indexes, mut frame) = (Vec::new(), Vec::new());
        let (connections, accounts) = (self.flights.len(), self.accounts);
        let flight = &mut self.flights[connection];
        while indexes.len() < TRANSACTIONS_PER_FRAME_MAX {
            let index = if flight.again.front().is_some_and(|(due_ns, _)| *due_ns <= now_ns) {
                flight.again.pop_front().map(|(_, index)| index)
            } else {
                let is_its = |index: &usize| index % accounts % connections == connection;
                let found = (flight.next..self.items.ends.len()).find(is_its);
                flight.next = found.map_or(self.items.ends.len(), |index| index + 1);
                found
            };
            let Some(index) = index else { break };
            frame.extend_from_slice(self.items.get(index));
            indexes.push(index);
        }
        (!indexes.is_empty()).then_some((indexes, frame))
    }

    fn take(&mut self, flight: usize, now_ns: u64, outcome: &FrameOutcome) {
        let Flight { again, frames, .. } = &mut self.flights[flight];
        let indexes = frames.remove(&outcome.number).unwrap_or_default();
        self.progress_ns = now_ns;
        for (index, result) in indexes.into_iter().zip(&outcome.results) {
            match result {
                None => self.collected += 1,
                Some(RejectReason::BatchFull | RejectReason::Overloaded | RejectReason::Throttled) => {
                    self.sent_again += 1;
                    again.push_back((now_ns + outcome.retry_after_ns.unwrap_or(RETRY_NS), index));
                    continue;
                }
                Some(reason) => {
                    self.refused += 1;
                    self.first_refusal.get_or_insert(*reason);
                }
            }
            self.answered += 1;
        }
    }
}
