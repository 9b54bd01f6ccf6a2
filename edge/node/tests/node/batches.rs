//! Batch markets from outside: from the configuration to a block, what is refused, what readers hear, and what a crash leaves.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use walras_access::operator_key_file;
use walras_api::json::batches::hex;
use walras_batch_signatures::SigningKey;
use walras_client::Client;
use walras_config::{Batch, Config};
use walras_gateway::ClientKey;
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, CreatePool, DropReason, IssuedAmount, OfferName, PoolRule,
    PublicKey, TransactionSeq, WithdrawFromPool,
};
use walras_wait::until_some;

use crate::cli::Cli;
use crate::recovery::Process;
use crate::schema::{check_named, document};
use crate::support::{Market, Raw, Signer, Socket, Venue, code, config, market, operator, send, wait_for_transactions};

const BTC: u32 = 0;
const USD: u32 = 1;

pub(crate) fn with_batch() -> Config {
    let mut config = config();
    config.batch =
        vec![Batch { name: "main".into(), assets: vec!["USD".into(), "BTC".into()], interval_ms: 5, ..Batch::default() }];
    config
}

/// The declared market, once it is open.
pub(crate) fn open(client: &Client) -> Value {
    until_some("the declared market is open", || {
        let batch = client.get("/v1/batches").unwrap()["batches"][0].clone();
        (batch["phase"] == "open").then_some(batch)
    })
}

/// All blocks, oldest first, once they hold so many transactions.
pub(crate) fn blocks(client: &Client, transactions: u64) -> Vec<Value> {
    let found = wait_for_transactions(client, "main", transactions);
    let mut blocks = found.as_array().unwrap().clone();
    blocks.reverse();
    blocks
}

/// The market of a venue that declares one, with keys for both accounts.
pub(crate) fn signers(market: &Market) -> [Signer; 2] {
    let domain = open(&market.operator)["domain"].as_str().unwrap().to_owned();
    [0, 1].map(|account| {
        let signer = Signer::new(account, &domain);
        let body = json!({"account_id": account, "key": signer.public_key()});
        market.operator.signed("POST", "/v1/admin/account-keys", Some(&body)).unwrap();
        signer
    })
}

pub(crate) fn balance(client: &Client, asset: &str) -> (String, String) {
    let account = client.signed("GET", "/v1/account", None).unwrap();
    let found = account["balances"].as_array().unwrap().iter().find(|b| b["asset"] == asset).unwrap();
    let text = |field: &str| found[field].as_str().unwrap().to_owned();
    (text("available"), text("reserved"))
}

/// The error of a transaction that was refused.
fn refused(result: &Value) -> u64 {
    result["error"]["code"].as_u64().unwrap_or_else(|| panic!("it was taken: {result}"))
}

#[test]
fn offers_of_both_ways_trade_at_one_price_and_balances_follow() {
    let venue = Venue::with(&with_batch());
    let market = venue.market();
    let [alice, bob] = signers(&market);
    let before = market.alice.signed("GET", "/v1/account", None).unwrap();
    assert_eq!((&before["transaction_key"], &before["next_sequence"]), (&json!(alice.public_key()), &json!("1")));
    // Alice sells 0.1 BTC at 29,000 or better, Bob 3,000 USD for BTC at 30,030 or better, and pays Alice a dollar.
    let sent = [
        alice.offer(1, BTC, USD, 10_000_000, "290"),
        bob.offer(1, USD, BTC, 3_000_000_000, "0.00333"),
        bob.pay(2, 0, USD, 1_000_000),
    ];
    let results = send(&market.operator, "main", &sent);
    for (result, sequence) in results.iter().zip(["1", "1", "2"]) {
        assert_eq!(result["sequence"], sequence, "{result}");
    }
    let blocks = blocks(&market.operator, 3);
    let traded = blocks.iter().find(|block| block["offers_traded"] == 2).unwrap_or_else(|| panic!("{blocks:#?}"));
    let price: f64 = traded["prices"]["BTC"].as_str().unwrap().parse().unwrap();
    assert!((29_000.0..30_031.0).contains(&price), "{price}");
    assert_eq!(traded["prices"]["USD"], "1");
    assert_eq!(traded["pairs_traded"], 2);
    let sold: f64 = traded["volumes"]["BTC"].as_str().unwrap().parse().unwrap();
    assert!(sold > 0.09 && sold <= 0.1, "{sold}");
    // What Alice sold she has no more, and no offer stands past its limit.
    let (available, reserved) = balance(&market.alice, "BTC");
    let has: f64 = available.parse::<f64>().unwrap() + reserved.parse::<f64>().unwrap();
    assert!((has - (100.0 - sold)).abs() < 1e-9, "{has}");
    let dollars: f64 = balance(&market.alice, "USD").0.parse().unwrap();
    assert!(dollars > 1_000_001.0 + 29_000.0 * sold * 0.9999, "{dollars}");
    // The header is what the block's number says.
    let header = market.operator.get(&format!("/v1/batches/main/blocks/{}/header", traded["block"].as_str().unwrap())).unwrap();
    assert_eq!(header["roots"]["state"], traded["state_root"]);
    assert_eq!(market.alice.signed("GET", "/v1/account", None).unwrap()["next_sequence"], "2");
}

/// The file of an API key of account 0 that signs its transactions too.
fn signing_key(operator: &Client, folder: &Path) -> PathBuf {
    let asked = json!({"account_id": 0, "permissions": ["read", "trade"], "algorithm": "ed25519"});
    let made = operator.signed("POST", "/v1/admin/keys", Some(&asked)).unwrap();
    let signing = ClientKey::from_token(made["key"].as_str().unwrap()).unwrap();
    let public = hex(&SigningKey::from_seed(&signing.ed25519_seed().unwrap()).public_key().0);
    operator.signed("POST", "/v1/admin/account-keys", Some(&json!({"account_id": 0, "key": public}))).unwrap();
    let key = folder.join("alice.key");
    std::fs::write(&key, signing.to_token().as_str()).unwrap();
    key
}

/// The program of docs/batch-transactions.md signs an offer that the venue takes.
#[test]
fn the_program_of_the_document_sells_in_a_batch_market() {
    let venue = Venue::with(&with_batch());
    let market = venue.market();
    open(&market.operator);
    let folder = tempfile::tempdir().unwrap();
    let key = signing_key(&market.operator, folder.path());
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/batch-offer.mjs");
    let mut node = std::process::Command::new("node");
    node.arg(program).arg(venue.url()).arg(key).args(["0", "1", "main", "BTC", "USD", "0.1", "29000"]);
    node.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let ended = crate::support::spawn(&mut node).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    let answer: Value = serde_json::from_str(&said).unwrap();
    check_named(&document(), "BatchResults", &answer);
    assert_eq!(answer["results"][0]["sequence"], "1", "{answer}");
    blocks(&market.operator, 1);
    assert_eq!(balance(&market.alice, "BTC"), ("99.9".to_owned(), "0.1".to_owned()));
}

/// The example in Rust, which is compiled here too.
#[allow(dead_code, reason = "it has a main function")]
#[path = "../../../client/examples/batch_offer.rs"]
mod batch_offer;

#[test]
fn the_example_in_rust_sells_in_a_batch_market() {
    let venue = Venue::with(&with_batch());
    let market = venue.market();
    open(&market.operator);
    let folder = tempfile::tempdir().unwrap();
    let key = signing_key(&market.operator, folder.path());
    // 0.1 BTC of eight decimals, at 29,000 USD of six.
    let args = [&venue.url(), key.to_str().unwrap(), "0", "1", "main", "0", "1", "10000000", "290"].map(str::to_owned);
    let answer = batch_offer::run(&args).unwrap();
    check_named(&document(), "BatchResults", &answer);
    assert_eq!(answer["results"][0]["sequence"], "1", "{answer}");
    blocks(&market.operator, 1);
    assert_eq!(balance(&market.alice, "BTC"), ("99.9".to_owned(), "0.1".to_owned()));
    assert!(batch_offer::run(&args[1..]).is_err());
}

#[test]
fn what_is_not_a_transaction_of_its_account_is_refused_with_its_number() {
    let venue = Venue::with(&with_batch());
    let market = venue.market();
    let [alice, bob] = signers(&market);
    let good = alice.pay(1, 1, USD, 5);
    let forged = {
        let mut text = alice.pay(2, 1, USD, 5);
        // A digit of the amount.
        let place = text.len() - 128 - 16;
        let digit = if &text[place..=place] == "f" { "0" } else { "f" };
        text.replace_range(place..=place, digit);
        text
    };
    let as_another = {
        // Alice's transaction under Bob's signature.
        let (alices, bobs) = (alice.pay(2, 1, USD, 5), bob.pay(2, 1, USD, 5));
        format!("{}{}", &alices[..alices.len() - 128], &bobs[bobs.len() - 128..])
    };
    let elsewhere = Signer::new(0, &"77".repeat(32)).pay(2, 1, USD, 5);
    let keyless = Signer::new(7, open(&market.operator)["domain"].as_str().unwrap()).pay(1, 1, USD, 5);
    let sent = [
        good.clone(),
        forged,
        as_another,
        elsewhere,
        keyless,
        good[..good.len() - 2].to_owned(),
        format!("{good}00"),
        good[..good.len() - 1].to_owned(),
        "xy".into(),
        String::new(),
        alice.pay(66, 1, USD, 5),
    ];
    let results = send(&market.operator, "main", &sent);
    assert_eq!(results[0]["sequence"], "1");
    let codes: Vec<u64> = results[1..].iter().map(refused).collect();
    assert_eq!(codes, [104, 104, 104, 67, 100, 100, 100, 100, 100, 32], "{results:#?}");
    blocks(&market.operator, 1);
    assert_eq!(refused(&send(&market.operator, "main", std::slice::from_ref(&good))[0]), 32, "it was taken before");
    let too_many = json!({"transactions": vec![good.clone(); 1001]}).to_string();
    let path = "/v1/batches/main/transactions";
    let answer = Raw { method: "POST", path, body: too_many.as_bytes(), key: None }.send(&venue.url());
    assert_eq!((answer.status, answer.code()), (413, 101));
    let answer = Raw { method: "POST", path: "/v1/batches/other/transactions", body: b"{\"transactions\":[]}", key: None };
    assert_eq!(answer.send(&venue.url()).code(), 11);
    let phase = json!({"batch": "main", "phase": "closed"});
    market.operator.signed("POST", "/v1/admin/batch-phases", Some(&phase)).unwrap();
    assert_eq!(refused(&send(&market.operator, "main", &[alice.pay(2, 1, USD, 5)])[0]), 49);
    let (dollars, _) = balance(&market.bob, "USD");
    assert_eq!(dollars, "1000000.000005", "one payment of all of these");
}

/// REST refuses what no batch could keep, says what to do about it, and uses up no number.
#[test]
fn what_no_batch_keeps_is_refused_with_advice() {
    let venue = Venue::with(&with_batch());
    let market = venue.market();
    let [alice, _] = signers(&market);
    let (batch, amount) = (BatchMarketId(0), |units| Amount::new(units).unwrap());
    let sign = |operation| alice.sign(1, operation);
    let pool = |fee_ppm, units: [u64; 2]| {
        let (assets, rule, amounts) = ([AssetId(BTC), AssetId(USD)], PoolRule::ConstantProduct, units.map(amount));
        sign(BatchOperation::CreatePool(CreatePool { market: batch, assets, rule, fee_ppm, amounts }))
    };
    let unknown = OfferName { account: AccountId(1), sequence: TransactionSeq(9) };
    let cases = [
        (alice.offer(1, BTC, USD, 0, "1"), DropReason::ZeroAmount),
        (alice.offer(1, BTC, BTC, 5, "1"), DropReason::EqualAssets),
        (alice.offer(1, BTC, 77, 5, "1"), DropReason::UnknownAsset),
        (alice.offer(1, BTC, USD, 1 << 62, "4"), DropReason::Unfillable),
        (alice.pay(1, 1, USD, 0), DropReason::ZeroAmount),
        (alice.pay(1, 1, 77, 5), DropReason::UnknownAsset),
        (alice.pay(1, 0, USD, 5), DropReason::PaysItself),
        (alice.pay(1, 500, USD, 5), DropReason::UnknownRecipient),
        (sign(BatchOperation::Issue(IssuedAmount { asset: AssetId(USD), amount: amount(5) })), DropReason::NotIssuer),
        (pool(900_000, [5_000, 5_000]), DropReason::PoolTerms),
        (pool(3_000, [5_000, 999]), DropReason::PoolTooSmall),
        (
            sign(BatchOperation::WithdrawFromPool(WithdrawFromPool { market: batch, pool: unknown, shares: amount(5) })),
            DropReason::UnknownPool,
        ),
    ];
    let sent: Vec<String> = cases.iter().map(|(text, _)| text.clone()).chain([alice.pay(1, 1, USD, 5)]).collect();
    let results = send(&market.operator, "main", &sent);
    for (place, (_, reason)) in cases.iter().enumerate() {
        let result = &results[place];
        assert_eq!(refused(result), u64::from(reason.refusal().number()), "{reason:?}: {result}");
        let detail = result["error"]["detail"].as_str().unwrap();
        assert_eq!(detail, format!("transactions[{place}]: {}", reason.advice()), "{result}");
    }
    assert_eq!(results[cases.len()]["sequence"], "1", "the number is still there for a good one");
    blocks(&market.operator, 1);
    assert_eq!(balance(&market.bob, "USD").0, "1000000.000005");
}

#[test]
fn readers_hear_of_blocks_of_demand_and_of_their_own_offers() {
    let venue = Venue::with(&with_batch());
    let market = venue.market();
    let [alice, bob] = signers(&market);
    let mut socket = Socket::connect(&venue.url());
    let subscribed = socket.ask(&json!({"op": "subscribe", "channel": "batch", "batch": "main"}), "subscribed");
    assert_eq!((&subscribed["channel"], &subscribed["batch"]), (&json!("batch"), &json!("main")));
    let snapshot = socket.next_of("batch");
    check_named(&document(), "WsBatch", &snapshot);
    assert_eq!((&snapshot["kind"], &snapshot["blocks"]), (&json!("snapshot"), &json!([])));
    socket.ask(&json!({"op": "subscribe", "channel": "demand", "batch": "main", "sell": "BTC", "buy": "USD"}), "subscribed");
    assert_eq!(socket.next_of("demand")["price"], Value::Null, "nothing was ever offered");
    socket.authenticate(&market.alice_key);
    let account = socket.next_of("account");
    check_named(&document(), "WsAccount", &account);
    assert_eq!((&account["offers"], &account["offer_fills"]), (&json!([]), &json!([])));
    let transactions = [
        alice.offer(1, BTC, USD, 10_000_000, "290"),
        bob.offer(1, USD, BTC, 3_000_000_000, "0.00333"),
        alice.offer(2, BTC, USD, 1_000, "900"),
        // More than there is: all of the account's transactions are left out of their batch. It is Bob's second.
        bob.offer(2, USD, BTC, 9_000_000_000_000_000, "0.00333"),
    ];
    let mut heard = Heard::default();
    for (kept, transaction) in (1..).zip(&transactions) {
        send(&market.operator, "main", std::slice::from_ref(transaction));
        // Each in a batch of its own, or the last one would take Bob's first one with it.
        blocks(&market.operator, kept.min(3));
        // A feed sends what holds when it is due, and the next block would take the place of this one.
        while kept == 2 && !heard.traded_supply {
            heard.take(&socket.next().unwrap());
        }
    }
    while !(heard.transactions >= 3 && heard.fills >= 1 && heard.statuses.contains(&"open 2".to_owned())) {
        heard.take(&socket.next().unwrap());
    }
    let statuses = heard.statuses;
    let place = |what: &str| statuses.iter().position(|status| status == what).unwrap_or_else(|| panic!("no {what}: {statuses:?}"));
    assert!(place("open 1") < place("traded 1"), "{statuses:?}");
    let offers = market.alice.signed("GET", "/v1/offers", None).unwrap();
    let standing = offers["offers"].as_array().unwrap().iter().find(|offer| offer["sequence"] == "2").unwrap();
    assert_eq!((&standing["stated_price"], &standing["amount"]), (&json!("90000"), &json!("0.00001")));
    let outcomes = market.alice.signed("GET", "/v1/transactions", None).unwrap();
    check_named(&document(), "TransactionOutcomes", &outcomes);
    let of = |sequence: &str| {
        outcomes["transactions"].as_array().unwrap().iter().find(|one| one["sequence"] == sequence).unwrap().clone()
    };
    let (sold, waiting) = (of("1"), of("2"));
    assert_eq!((&sold["status"], &sold["sold"], &sold["standing"]), (&json!("cleared"), &json!("0.1"), &json!("0")));
    let [bought, price] = ["bought", "price"].map(|field| sold[field].as_str().unwrap().parse::<f64>().unwrap());
    assert!(price >= 29_000.0 && (bought - 0.1 * price).abs() < 0.01, "{sold}");
    assert_eq!((&waiting["sold"], &waiting["price"], &waiting["standing"]), (&json!("0"), &Value::Null, &json!("0.00001")));
}

/// What a socket said of blocks, of demand and of an account.
#[derive(Default)]
struct Heard {
    transactions: u64,
    /// Status and sequence of each offer that changed, oldest first.
    statuses: Vec<String>,
    fills: usize,
    /// Whether the curve counted Alice's first offer, which traded, in the block that it traded in.
    traded_supply: bool,
}

impl Heard {
    fn take(&mut self, message: &Value) {
        match message["type"].as_str().unwrap() {
            "batch" => {
                check_named(&document(), "WsBatch", message);
                let blocks = message["blocks"].as_array().unwrap();
                self.transactions += blocks.iter().map(|block| block["transactions"].as_u64().unwrap()).sum::<u64>();
            }
            "demand" => {
                check_named(&document(), "WsDemand", message);
                let points = message["points"].as_array().unwrap();
                self.traded_supply |= points.len() == 41 && points.last().is_some_and(|last| last["supply"] == "0.1");
            }
            "account" => {
                check_named(&document(), "WsAccount", message);
                for update in message["offer_updates"].as_array().unwrap() {
                    let [status, sequence] = ["status", "sequence"].map(|field| update[field].as_str().unwrap());
                    self.statuses.push(format!("{status} {sequence}"));
                }
                self.fills += message["offer_fills"].as_array().unwrap().len();
            }
            other => panic!("{other}"),
        }
    }
}

/// A decimal amount in its last digits, six of them.
/// What the command line asks for, checks and shows: of the issuer's transactions and of its account.
fn prove(issuer: &Cli, operator: &Cli) {
    let burnt = issuer.json(&["batch", "proof", "transaction", "2"]);
    assert_eq!((&burnt["proven"], &burnt["trusted"]), (&json!("units destroyed"), &json!("the venue's own word")));
    assert_eq!(burnt["block_bytes"], 354);
    let opened = issuer.json(&["batch", "proof", "transaction", "3"]);
    assert_eq!((&opened["proven"], &opened["created_account"]), (&json!("a new account"), &json!(2)));
    // A block that is known from elsewhere: its hash is taken, and no other's.
    let hash = burnt["hash"].as_str().unwrap();
    let block = burnt["block"].as_str().unwrap();
    let shown = operator.json(&["batch", "proof", "block", block, "--price", "USD", "--trade", "USD", "BTC", "--trusted", hash]);
    assert_eq!((&shown["trusted"], &shown["price"], &shown["sold_units"]), (&json!("the hash given"), &json!("none"), &json!("0")));
    let (status, said) = operator.fails(&["batch", "proof", "block", block, "--trusted", &"0".repeat(64)]);
    assert!(status != 0 && said.contains("do not hash to the block that is trusted"), "{said}");
    let (status, said) = operator.fails(&["batch", "proof", "block", block, "--trusted", "00"]);
    assert!(status != 0 && said.contains("64 hexadecimal digits"), "{said}");
    // Dropped: no block has it.
    let (status, said) = issuer.fails(&["batch", "proof", "transaction", "4"]);
    assert!(status != 0 && said.contains("did anything under that number"), "{said}");
    let absent = issuer.json(&["batch", "proof", "transaction", "4", "--block", block]);
    assert_eq!(absent["proven"], "the block did nothing under that number");
}

pub(crate) fn micros(text: &str) -> u64 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{fraction:0<6}").parse().unwrap()
}

#[test]
fn accounts_are_opened_and_units_issued_and_burnt_from_the_command_line() {
    let venue = Venue::with(&with_batch());
    let market = venue.market();
    open(&market.operator);
    let operator = Cli { url: venue.url(), key_file: operator_key_file(&venue.dir) };
    let key_file = |name: &str| venue.dir.join(name);
    let name = |name: &str| key_file(name).to_str().unwrap().to_owned();
    for holder in ["issuer.key", "friend.key"] {
        let made = operator.json(&["keys", "new", "--out", &name(holder)]);
        if holder == "issuer.key" {
            let (id, public) = (made["key_id"].as_str().unwrap(), made["public_key"].as_str().unwrap());
            operator.text(&["admin", "key", "--account", "0", "--key-id", id, "--public-key", public]);
            operator.text(&["admin", "transaction-key", "0", &name(holder)]);
        }
    }
    let issuer = Cli { url: venue.url(), key_file: key_file("issuer.key") };
    // Nobody made it the issuer: no batch would keep the transaction, so none collects it.
    let (status, said) = issuer.fails(&["batch", "issue", "2.5", "USD"]);
    assert!(status != 0 && said.contains("not the asset's issuer"), "{said}");
    let before = micros(&balance(&market.alice, "USD").0);
    operator.text(&["admin", "issuer", "USD", "0"]);
    issuer.json(&["batch", "issue", "2.5", "USD"]);
    blocks(&market.operator, 1);
    assert_eq!(micros(&balance(&market.alice, "USD").0), before + 2_500_000);
    issuer.json(&["batch", "burn", "0.75", "USD"]);
    blocks(&market.operator, 2);
    assert_eq!(micros(&balance(&market.alice, "USD").0), before + 1_750_000);
    operator.text(&["admin", "account-fee", "main", "1.5", "USD"]);
    let listed = operator.text(&["batch", "list"]);
    assert!(listed.contains("1.5 USD"), "{listed}");
    let said = issuer.text(&["batch", "create-account", &name("friend.key")]);
    assert!(said.contains("sequence"), "{said}");
    blocks(&market.operator, 3);
    assert_eq!(micros(&balance(&market.alice, "USD").0), before + 250_000, "the account cost 1.5 USD");
    let had = micros(&balance(&market.bob, "USD").0);
    operator.text(&["admin", "fees", "1", "USD"]);
    assert_eq!(micros(&balance(&market.bob, "USD").0), had + 1_500_000, "which the operator gave Bob");
    let friend = operator.json(&["admin", "show", "2"]);
    assert_eq!((&friend["account_id"], &friend["next_sequence"]), (&json!(2), &json!("1")));
    assert!(friend["transaction_key"].is_string(), "{friend}");
    // More than there is: collected, and left out of its block.
    let burnt = issuer.json(&["batch", "burn", "9000000000000", "USD"]);
    assert_eq!(burnt["sequence"], "4");
    let outcome = until_some("the transaction is dropped", || {
        let outcome = issuer.json(&["batch", "outcome", "4"]);
        (outcome["status"] == "dropped").then_some(outcome)
    });
    assert_eq!(outcome["reason"]["name"], "Overdraft");
    let listed = issuer.text(&["batch", "outcome"]);
    assert!(listed.contains("Overdraft") && listed.matches("cleared").count() == 3, "{listed}");
    let (status, said) = issuer.fails(&["batch", "outcome", "77"]);
    assert!(status != 0 && said.contains("77 is among the last 64"), "{said}");
    prove(&issuer, &operator);
    // Of small order: anybody could sign for it.
    let (status, said) = issuer.fails(&["batch", "create-account", &format!("01{}", "00".repeat(31))]);
    assert!(status != 0 && said.contains("small order"), "{said}");
}

#[test]
fn a_pool_is_created_traded_with_and_left_from_the_command_line() {
    let venue = Venue::with(&with_batch());
    let market = venue.market();
    let [_, bob] = signers(&market);
    let operator = Cli { url: venue.url(), key_file: operator_key_file(&venue.dir) };
    let key_file = venue.dir.join("provider.key");
    let made = operator.json(&["keys", "new", "--out", key_file.to_str().unwrap()]);
    let (id, public) = (made["key_id"].as_str().unwrap(), made["public_key"].as_str().unwrap());
    operator.text(&["admin", "key", "--account", "0", "--key-id", id, "--public-key", public]);
    operator.text(&["admin", "transaction-key", "0", key_file.to_str().unwrap()]);
    let provider = Cli { url: venue.url(), key_file };
    let before = micros(&balance(&market.alice, "USD").0);
    let (status, said) = provider.fails(&["pool", "create", "1", "BTC", "0.000999", "USD"]);
    assert!(status != 0 && said.contains("at least 1000 units"), "{said}");
    let created = provider.json(&["pool", "create", "10", "BTC", "290000", "USD", "--fee-ppm", "0"]);
    let pool = format!("0:{}", created["sequence"].as_str().unwrap());
    blocks(&market.operator, 1);
    assert_eq!(micros(&balance(&market.alice, "USD").0), before - 290_000_000_000);
    let listed = operator.text(&["pool", "list"]);
    assert!(listed.contains(&pool) && listed.contains("290000") && listed.contains("constant product"), "{listed}");
    // Bob sells 0.1 BTC at 28,000 or better: only the pool buys.
    send(&market.operator, "main", &[bob.offer(1, BTC, USD, 10_000_000, "280")]);
    blocks(&market.operator, 2);
    let traded = operator.json(&["pool", "list", "main"])["pools"][0].clone();
    let reserve = |place: usize| traded["reserves"][place].as_str().unwrap().parse::<f64>().unwrap();
    assert!(reserve(0) > 10.09 && reserve(1) < 287_200.0 && reserve(0) * reserve(1) >= 2_900_000.0, "{traded}");
    provider.json(&["pool", "deposit", &pool, "5", "100000"]);
    blocks(&market.operator, 3);
    let own = provider.json(&["pool", "shares"])["shares"][0].clone();
    assert_eq!(own["shares"], own["all_shares"]);
    let second = own["worth"][1].as_str().unwrap().parse::<f64>().unwrap();
    assert!(second > reserve(1) + 99_000.0, "{own}");
    let (status, said) = provider.fails(&["pool", "withdraw", "1:1", "5"]);
    assert!(status != 0 && said.contains("no such pool"), "{said}");
    provider.json(&["pool", "withdraw", &pool]);
    blocks(&market.operator, 4);
    assert_eq!(operator.json(&["pool", "list"])["pools"], json!([]));
    // It has what Bob paid for his dollars, and paid for his bitcoin.
    let (dollars, coins) = (micros(&balance(&market.alice, "USD").0), balance(&market.alice, "BTC").0);
    assert!(dollars < before && coins.parse::<f64>().unwrap() > 100.09, "{dollars} {coins}");
}

#[test]
fn an_account_is_not_opened_for_a_key_that_is_of_no_use() {
    let venue = Venue::with(&with_batch());
    let market = venue.market();
    let [alice, bob] = signers(&market);
    let create = |signer: &Signer, sequence, key: [u8; 32]| signer.sign(sequence, BatchOperation::CreateAccount(PublicKey(key)));
    let small = std::array::from_fn(|place| u8::from(place == 0));
    let no_point = std::array::from_fn(|place| if place == 0 { 2 } else { 0 });
    let not_canonical = [0xff; 32];
    let good = SigningKey::from_seed(&[77; 32]).public_key();
    let sent = [
        create(&alice, 1, small),
        create(&alice, 1, no_point),
        create(&alice, 1, not_canonical),
        create(&alice, 1, good.0),
        // His own key: collected, and left out of the block.
        create(&bob, 1, bob.public_key_bytes()),
    ];
    let results = send(&market.operator, "main", &sent);
    assert_eq!(results[..3].iter().map(refused).collect::<Vec<_>>(), [100, 100, 100]);
    let detail = results[0]["error"]["detail"].as_str().unwrap();
    assert!(detail.contains("transactions[0]") && detail.contains("small order"), "{detail}");
    assert_eq!((&results[3]["sequence"], &results[4]["sequence"]), (&json!("1"), &json!("1")));
    blocks(&market.operator, 1);
    let made = market.operator.signed("GET", "/v1/admin/accounts/2", None).unwrap();
    assert_eq!(made["transaction_key"], hex(&good.0));
    assert_eq!(code(market.operator.signed("GET", "/v1/admin/accounts/3", None)), 1, "Bob has that key himself");
}

#[test]
fn the_owner_of_an_account_replaces_its_key_from_the_command_line() {
    let venue = Venue::with(&with_batch());
    let market = venue.market();
    open(&market.operator);
    let operator = Cli { url: venue.url(), key_file: operator_key_file(&venue.dir) };
    let file = |name: &str| venue.dir.join(name).to_str().unwrap().to_owned();
    let keys = ["old.key", "new.key"].map(|name| operator.json(&["keys", "new", "--out", &file(name)]));
    let (id, public) = (keys[0]["key_id"].as_str().unwrap(), keys[0]["public_key"].as_str().unwrap());
    operator.text(&["admin", "key", "--account", "0", "--key-id", id, "--public-key", public]);
    operator.text(&["admin", "transaction-key", "0", &file("old.key")]);
    let owner = Cli { url: venue.url(), key_file: venue.dir.join("old.key") };
    owner.json(&["pay", "1", "0.5", "USD"]);
    blocks(&market.operator, 1);
    // A key that anybody could sign for, and one that somebody has.
    let (status, said) = owner.fails(&["batch", "set-key", &format!("01{}", "00".repeat(31))]);
    assert!(status != 0 && said.contains("small order"), "{said}");
    let set = owner.json(&["batch", "set-key", &file("new.key")]);
    assert_eq!(set["sequence"], "2");
    blocks(&market.operator, 2);
    let shown = operator.json(&["admin", "show", "0"]);
    let seed = walras_client::read_key(&venue.dir.join("new.key")).unwrap().ed25519_seed().unwrap();
    assert_eq!(shown["transaction_key"], hex(&SigningKey::from_seed(&seed).public_key().0));
    // From here on the new key signs, the old one does not, and the API key is what it was.
    let (status, said) = owner.fails(&["pay", "1", "0.5", "USD"]);
    assert!(status != 0 && said.contains("signature"), "{said}");
    let paid = owner.json(&["pay", "1", "0.5", "USD", "--transaction-key-file", &file("new.key")]);
    assert_eq!(paid["sequence"], "3", "numbers go on");
    blocks(&market.operator, 3);
    let outcome = owner.json(&["batch", "outcome", "2"]);
    assert_eq!(outcome["status"], "cleared");
    let proven = owner.json(&["batch", "proof", "transaction", "2"]);
    assert_eq!(proven["proven"], "another key");
    // The account's proof is over the new key, and the log audits with both.
    owner.json(&["batch", "proof", "account"]);
}

#[test]
fn kill_9_in_between_keeps_blocks_offers_and_what_was_collected() {
    let dir = tempfile::tempdir().unwrap();
    let more = "[[batch]]\nname = \"main\"\nassets = [\"USD\", \"BTC\"]\ninterval_ms = 5\n";
    let process = Process::start_with(dir.path(), more);
    let market = market(&operator(&process.url, dir.path()));
    let [alice, bob] = signers(&market);
    send(
        &market.operator,
        "main",
        &[alice.offer(1, BTC, USD, 10_000_000, "290"), bob.offer(1, USD, BTC, 3_000_000_000, "0.00333")],
    );
    send(&market.operator, "main", &[alice.offer(2, BTC, USD, 10_000_000, "900")]);
    let known = blocks(&market.operator, 3);
    let offers = market.alice.signed("GET", "/v1/offers", None).unwrap();
    let dollars = micros(&balance(&market.alice, "USD").0);
    let header = |client: &Client, block: &Value| {
        client.get(&format!("/v1/batches/main/blocks/{}/header", block["block"].as_str().unwrap())).unwrap()
    };
    let headers: Vec<Value> = known.iter().map(|block| header(&market.operator, block)).collect();
    // Acknowledged, and perhaps not closed when the process dies.
    let collected = send(&market.operator, "main", &[bob.pay(2, 0, USD, 7_000_000)]);
    assert_eq!(collected[0]["sequence"], "2");
    process.kill();
    let process = Process::start_with(dir.path(), more);
    let client = Client::new(&process.url, Some(market.alice_key.clone()));
    let again = blocks(&client, 4);
    assert_eq!(again[..known.len()], known);
    assert_eq!(client.signed("GET", "/v1/offers", None).unwrap(), offers);
    assert_eq!(micros(&balance(&client, "USD").0), dollars + 7_000_000, "what was acknowledged is paid, once");
    for (block, before) in known.iter().zip(&headers) {
        let header = header(&client, block);
        assert_eq!(&header, before);
        assert_eq!(header["roots"]["state"], block["state_root"]);
    }
    // Each block names the hash of the one before.
    for two in again.windows(2) {
        let next = header(&client, &two[1])["header"].as_str().unwrap().to_owned();
        assert!(next.contains(two[0]["state_root"].as_str().unwrap()), "{next} does not follow {}", two[0]);
    }
    // The chain goes on where it was.
    let number = |block: &Value| block["block"].as_str().unwrap().parse::<u64>().unwrap();
    assert!(again.windows(2).all(|two| number(&two[1]) == number(&two[0]) + 1));
    process.kill();
}
