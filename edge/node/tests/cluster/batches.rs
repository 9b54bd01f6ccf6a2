//! A batch market of a cluster whose leaders are killed: every batch is cleared all the same, and everywhere to the same blocks.

use rustix::process::Signal;
use serde_json::{Value, json};
use walras_api::json::batches::{hex, unhex};
use walras_batch_signatures::SigningKey;
use walras_client::cluster::{ReplicaAddress, TransactionLoad, measure_transactions};
use walras_client::local_cluster::LocalReplica;
use walras_client::{Client, ClientError, read_key};
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, CreateOffer, Payment, RejectReason,
    Rounding, TransactionSeq,
};
use walras_wait::until_some;
use walras_wire::batch::{SigningDomain, encode_signed_transaction};

use super::{Cluster, PATIENCE, until};

const BTC: AssetId = AssetId(0);
const USD: AssetId = AssetId(1);

struct Signer {
    account: u32,
    key: SigningKey,
    next: u64,
}

impl Signer {
    fn new(account: u32) -> Self {
        Self { account, key: SigningKey::from_seed(&[account as u8 + 1; 32]), next: 1 }
    }

    /// Sells units at so many each, at least.
    fn offer(&mut self, domain: &SigningDomain, (sell, buy): (AssetId, AssetId), units: u64, limit: &str) -> String {
        let limit = BatchPrice::from_decimal(limit, Rounding::Up).unwrap();
        let offer = CreateOffer { market: BatchMarketId(0), sell, buy, amount: Amount::new(units).unwrap(), limit };
        self.sign(domain, BatchOperation::CreateOffer(offer))
    }

    /// Pays a unit.
    fn pay(&mut self, domain: &SigningDomain, to: u32) -> String {
        let payment = Payment { to: AccountId(to), asset: USD, amount: Amount::new(1).unwrap() };
        self.sign(domain, BatchOperation::Payment(payment))
    }

    fn sign(&mut self, domain: &SigningDomain, operation: BatchOperation) -> String {
        let (account, sequence) = (AccountId(self.account), TransactionSeq(self.next));
        self.next += 1;
        let transaction = BatchTransaction::new(account, sequence, operation);
        let mut bytes = Vec::new();
        encode_signed_transaction(&self.key.sign(domain, &transaction), &mut bytes);
        hex(&bytes)
    }
}

/// Sends until somebody leads who takes it.
fn taken(what: &str, mut send: impl FnMut() -> Result<Value, ClientError>) -> Value {
    let mut answer = None;
    until(&format!("{what} is taken"), || match send() {
        Err(refused) if refused.is(RejectReason::NotLeader) => false,
        answered => {
            answer = Some(answered.unwrap());
            true
        }
    });
    answer.unwrap()
}

/// Blocks of a replica, newest first, and how many transactions they hold.
fn blocks(client: &Client) -> (Value, u64) {
    let blocks = client.get("/v1/batches/main/blocks?limit=1000").map_or_else(|_| json!([]), |answer| answer["blocks"].clone());
    let sum = blocks.as_array().into_iter().flatten().map(|block| block["transactions"].as_u64().unwrap()).sum();
    (blocks, sum)
}

/// A cluster with a batch market, and two accounts whose keys it knows.
fn with_main() -> (Cluster, SigningDomain, [Signer; 2]) {
    let cluster = Cluster::start(0);
    cluster.market(2);
    let operator = cluster.operator(1);
    let main = json!({"name": "main", "assets": ["USD", "BTC"], "interval_ms": 5});
    let created = taken("the market", || operator.signed("POST", "/v1/admin/batches", Some(&main)));
    let domain = unhex(created["domain"].as_str().unwrap()).unwrap();
    let domain = SigningDomain::new(&domain.try_into().unwrap());
    let signers = [Signer::new(0), Signer::new(1)];
    for signer in &signers {
        let body = json!({"account_id": signer.account, "key": hex(&signer.key.public_key().0)});
        taken("a key", || operator.signed("POST", "/v1/admin/account-keys", Some(&body)));
    }
    (cluster, domain, signers)
}

#[test]
fn every_batch_is_cleared_though_its_leader_is_killed() {
    let (mut cluster, domain, mut signers) = with_main();
    let mut sent = 0;
    for round in 0..3 {
        let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
        let transactions: Vec<String> = (0..4)
            .flat_map(|_| {
                let [alice, bob] = &mut signers;
                [alice.offer(&domain, (BTC, USD), 1_000_000, "290"), bob.offer(&domain, (USD, BTC), 300_000_000, "0.00333")]
            })
            .collect();
        let client = cluster.operator(leader);
        let answer = taken("transactions", || client.post("/v1/batches/main/transactions", &json!({"transactions": transactions})));
        for result in answer["results"].as_array().unwrap() {
            assert!(result["sequence"].is_string(), "{result}");
        }
        sent += transactions.len() as u64;
        // Acknowledged; collected, closed or cleared: nobody knows which.
        let replica = &mut cluster.local.replicas[leader as usize - 1];
        replica.signal(Signal::KILL).unwrap();
        assert_eq!(replica.wait().unwrap(), None, "it was killed");
        until(&format!("round {round}: all is cleared by the others"), || {
            let all: Vec<_> = cluster.operators().iter().map(blocks).collect();
            all.len() == 2 && all.iter().all(|(_, count)| *count == sent) && all[0].0 == all[1].0
        });
        cluster.local.start(leader).unwrap();
    }
    until("the replicas that were killed have the same blocks", || {
        let all: Vec<_> = cluster.operators().iter().map(blocks).collect();
        all.len() == 3 && all.windows(2).all(|two| two[0] == two[1])
    });
    let (blocks, count) = blocks(&cluster.operator(1));
    assert_eq!(count, sent);
    let traded: u64 = blocks.as_array().unwrap().iter().map(|block| block["offers_traded"].as_u64().unwrap()).sum();
    assert!(traded >= sent / 2, "{traded} of {sent} offers traded");
}

/// Sends a transaction to the leader of the moment until it is collected or was before, and waits until it is in a block.
fn sent_alone(cluster: &Cluster, transaction: &str, sent: u64) {
    let (collected_before, number_used) = (12, 32);
    until("the transaction is collected", || {
        let Some(leader) = cluster.local.leader() else { return false };
        let body = json!({"transactions": [transaction]});
        let Ok(answer) = cluster.operator(leader).post("/v1/batches/main/transactions", &body) else { return false };
        let result = &answer["results"][0];
        result["sequence"].is_string() || [collected_before, number_used].iter().any(|code| result["error"]["code"] == *code)
    });
    until("the transaction is in a block", || cluster.operators().iter().all(|replica| blocks(replica).1 >= sent));
}

/// Two offers that no way clears. Eight units are worth two and two thirds of the other asset, so they buy two, and these buy only six of
/// the eight: more than the market's rules allow is left. So nothing trades in any block, and the leader is replaced, although no leader
/// could find more.
#[test]
fn a_leader_that_sets_a_market_aside_in_every_block_hands_over() {
    /// As in `protocol/sequencer/src/batches.rs`.
    const IDLE_BLOCKS_MAX: u64 = 8;
    let (cluster, domain, [mut alice, mut bob]) = with_main();
    let first = cluster.local.wait_for_leader(PATIENCE).unwrap();
    sent_alone(&cluster, &alice.offer(&domain, (BTC, USD), 181_477_458, "3"), 1);
    sent_alone(&cluster, &bob.offer(&domain, (USD, BTC), 8, "0.1"), 2);
    let hands_over = |id: u64| cluster.said(id).contains("was set aside as a whole in this term: handing over to replica");
    let mut sent = 2;
    let by = loop {
        if let Some(by) = (1..=3).find(|id| hands_over(*id)) {
            break by;
        }
        assert!(sent < 10 * IDLE_BLOCKS_MAX, "nobody hands over: {}", cluster.said(first));
        sent += 1;
        sent_alone(&cluster, &alice.pay(&domain, 1), sent);
    };
    let next = until_some("another leads", || cluster.other_leader(by));
    // The market goes on under the next leader, with the same offers, and says since when nothing traded.
    sent_alone(&cluster, &bob.pay(&domain, 0), sent + 1);
    let batch = cluster.operator(next).get("/v1/batches").unwrap()["batches"][0].clone();
    let idle = batch["idle_blocks"].as_u64().unwrap();
    assert!(idle >= IDLE_BLOCKS_MAX && batch["aside_blocks"] == idle, "{batch}");
    assert_eq!(batch["standing_offers"], "2");
}

#[test]
fn signed_transactions_by_order_entry_are_each_cleared_once() {
    let cluster = Cluster::start(0);
    cluster.local.wait_for_leader(PATIENCE).unwrap();
    let address = |replica: &LocalReplica| ReplicaAddress { url: replica.url(), orders: replica.orders.clone(), trust: None };
    let replicas: Vec<ReplicaAddress> = cluster.local.replicas.iter().map(address).collect();
    let key = read_key(&cluster.local.operator_key()).unwrap();
    let interval = std::time::Duration::from_millis(20);
    let load = TransactionLoad { transactions: 3_000, connections: 2, interval, signing_threads: 1 };
    let report = measure_transactions(&replicas, &key, &load).unwrap();
    assert_eq!((report.collected, report.refused, report.dropped), (3_000, 0, 0), "{report}");
    assert_eq!(report.cleared, 3_000, "each is in one block: {report}");
    assert!(report.offers_traded > 0, "{report}");
}
