//! A batch market of a cluster whose leaders are killed: every batch is cleared all the same, and everywhere to the same blocks.

use rustix::process::Signal;
use serde_json::{Value, json};
use walras_api::json::batches::{hex, unhex};
use walras_batch_signatures::SigningKey;
use walras_client::cluster::{ReplicaAddress, TransactionLoad, measure_transactions};
use walras_client::local_cluster::LocalReplica;
use walras_client::{Client, ClientError, read_key};
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, CreateOffer, RejectReason, Rounding,
    TransactionSeq,
};
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
        let (account, sequence) = (AccountId(self.account), TransactionSeq(self.next));
        self.next += 1;
        let transaction = BatchTransaction::new(account, sequence, BatchOperation::CreateOffer(offer));
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

#[test]
fn every_batch_is_cleared_though_its_leader_is_killed() {
    let mut cluster = Cluster::start(0);
    cluster.market(2);
    let operator = cluster.operator(1);
    let main = json!({"name": "main", "assets": ["USD", "BTC"], "interval_ms": 5});
    let created = taken("the market", || operator.signed("POST", "/v1/admin/batches", Some(&main)));
    let domain = unhex(created["domain"].as_str().unwrap()).unwrap();
    let domain = SigningDomain::new(&domain.try_into().unwrap());
    let mut signers = [Signer::new(0), Signer::new(1)];
    for signer in &signers {
        let body = json!({"account_id": signer.account, "key": hex(&signer.key.public_key().0)});
        taken("a key", || operator.signed("POST", "/v1/admin/account-keys", Some(&body)));
    }
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
