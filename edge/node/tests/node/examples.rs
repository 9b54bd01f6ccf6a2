//! The examples in `openapi.yaml`. Those of answers are answers of venues: `WALRAS_WRITE_EXAMPLES=1` writes them, and each run compares
//! the shape of what is there with what the venues say. Those of bodies and parameters are what the venues are asked with.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::Path;

use serde_json::{Value, json};
use walras_access::operator_key_file;
use walras_api::json::batches::unhex;
use walras_client::{Client, read_key};
use walras_config::Config;
use walras_node::node::Node;
use walras_types::{Amount, AssetId, BatchMarketId, BatchOperation, CreatePool, PoolRule, RejectReason};
use walras_wait::{until, until_some};
use walras_wire::batch::decode_signed_transaction;

use crate::batches::{signers, with_batch};
use crate::history::with_archive;
use crate::schema::{check, document};
use crate::shards;
use crate::support::{self, Market, Raw, Venue, limit, wait_for_transactions};

/// Where the written part of the document begins: it is the last one.
const BEGIN: &str =
    "  # Written by a test (edge/node/tests/node/examples.rs): WALRAS_WRITE_EXAMPLES=1 writes it again.\n  examples:\n";

/// Answers by their operations.
type Answers = Vec<(&'static str, Value)>;

/// The operations that show no example of an answer, and why.
const WITHOUT_ANSWER: [(&str, &str); 12] = [
    ("getHistoryDaysDayFile", "a file of the archive, as it is"),
    ("openWebSocket", "the connection changes its protocol; asyncapi.yaml has examples of its messages"),
    ("getOpenapiYaml", "the document itself"),
    ("getOpenapiJson", "the document itself"),
    ("getAsyncApi", "a document with its own examples"),
    ("getAsyncApiJson", "a document with its own examples"),
    ("getDocs", "a page"),
    ("getDocsReader", "a page's program"),
    ("getDocsWebsocket", "a page"),
    ("getDocsWebsocketReader", "a page's program"),
    ("getDocsShapes", "a page's program"),
    ("getDocsStyle", "a page's style"),
];

/// An operation that shows the answer of another one, which has the same fields: a venue of one program is at its newest version already.
const AS_ANOTHER: (&str, &str) = ("postAdminClusterEngineVersion", "postAdminPhases");

/// A venue that has all that is asked for: a clock, an archive in this folder, a batch market.
fn config(folder: &Path) -> Config {
    let mut config = with_archive(folder);
    config.batch = with_batch().batch;
    (config.clock.source, config.clock.declared_bound_us) = ("system".into(), 250);
    config
}

fn sent(client: &Client, method: &str, path: &str, body: &Value) -> Value {
    client.signed(method, path, (!body.is_null()).then_some(body)).unwrap_or_else(|e| panic!("{method} {path}: {e}"))
}

/// All operations of the document: method, path, what is said of them.
fn operations(document: &Value) -> impl Iterator<Item = (&str, &str, &Value)> {
    document["paths"].as_object().unwrap().iter().flat_map(|(path, methods)| {
        methods.as_object().unwrap().iter().map(move |(method, says)| (method.as_str(), path.as_str(), says))
    })
}

/// The operation of this name, behind its method and path.
fn operation<'a>(document: &'a Value, name: &str) -> (&'a str, &'a str, &'a Value) {
    let found = operations(document).find(|(.., says)| says["operationId"] == name);
    found.unwrap_or_else(|| panic!("openapi.yaml has no operation {name}"))
}

/// The body that the document shows for an operation.
fn body(document: &Value, name: &str) -> Value {
    let (.., says) = operation(document, name);
    says["requestBody"]["content"]["application/json"]["example"].clone()
}

/// The answers that have examples.
fn answers(document: &Value, market: &Market) -> Answers {
    [
        of_participants(document, market),
        of_the_venue(market),
        of_the_batch_market(market),
        of_light_clients(market),
        of_operators(market),
        of_last_changes(document, market),
        of_operators_commands(document, market),
        of_a_shard(document),
        of_a_cluster(document),
    ]
    .concat()
}

fn of_participants(document: &Value, Market { alice, bob, .. }: &Market) -> Answers {
    let session = sent(alice, "POST", "/v1/sessions", &body(document, "openSession"));
    let once = format!("?session={}&session_seq=1", session["session"].as_str().unwrap());
    let placed = sent(alice, "POST", &format!("/v1/orders{once}"), &body(document, "placeOrder"));
    sent(bob, "POST", "/v1/orders", &limit(2, "sell", "0.4", "29999.75"));
    sent(bob, "POST", "/v1/orders", &limit(3, "sell", "2", "30010"));
    let many = sent(alice, "POST", "/v1/orders/batch", &body(document, "sendMany"));
    let mut of_name = limit(6, "buy", "0.1", "29000");
    of_name["client_order_id"] = "bid-6".into();
    sent(alice, "POST", "/v1/orders", &of_name);
    let cancelled = sent(alice, "DELETE", "/v1/orders/BTC-USD/bid-6", &Value::Null);
    let after = sent(alice, "POST", "/v1/cancel-after", &body(document, "cancelAfter"));
    let public = |path: &str| alice.get(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let private = |path: &str| sent(alice, "GET", path, &Value::Null);
    vec![
        ("getStatus", public("/v1/status")),
        ("getTime", public("/v1/time")),
        ("getAssets", public("/v1/assets")),
        ("getInstruments", public("/v1/instruments")),
        ("getInstrumentsInstrumentBook", public("/v1/instruments/BTC-USD/book?depth=2")),
        ("getInstrumentsInstrumentBookOrders", public("/v1/instruments/BTC-USD/book/orders?limit=2")),
        ("getInstrumentsInstrumentAuction", public("/v1/instruments/BTC-USD/auction")),
        ("getInstrumentsInstrumentTicker", public("/v1/instruments/BTC-USD/ticker")),
        ("getInstrumentsInstrumentTrades", public("/v1/instruments/BTC-USD/trades?limit=2")),
        ("getInstrumentsInstrumentCandles", public("/v1/instruments/BTC-USD/candles?interval=1m&limit=2")),
        ("getAccount", private("/v1/account")),
        ("listOpenOrders", private("/v1/orders")),
        ("placeOrder", placed),
        ("sendMany", many),
        ("cancelAfter", after),
        ("listClosedOrders", private("/v1/orders/closed?limit=2")),
        ("getOrder", private("/v1/orders/BTC-USD/bid-7")),
        ("cancelOrder", cancelled),
        ("listFills", private("/v1/fills?limit=2")),
        ("listReports", private("/v1/reports?after=0&limit=3")),
        ("listSessions", private("/v1/sessions")),
        ("openSession", session),
    ]
}

fn of_the_venue(Market { alice, .. }: &Market) -> Answers {
    let public = |path: &str| alice.get(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    // The archive is up to a second behind.
    let past = |path: &str, list: &str| {
        let has_some = |answer: &Value| answer[list].as_array().is_some_and(|items| !items.is_empty());
        until_some(path, || alice.get(path).ok().filter(has_some))
    };
    vec![
        ("getClock", public("/v1/clock")),
        ("getLatency", public("/v1/latency")),
        ("getShards", public("/v1/shards")),
        ("getCluster", public("/v1/cluster")),
        ("getReadyz", public("/readyz")),
        ("getHistoryTrades", past("/v1/history/trades?instrument=BTC-USD&limit=2", "trades")),
        ("getHistoryBooks", past("/v1/history/books?instrument=BTC-USD", "bids")),
        ("getHistoryDays", past("/v1/history/days", "days")),
    ]
}

/// Two offers that trade, one that stands, and then a pool.
fn of_the_batch_market(market: &Market) -> Answers {
    let Market { alice, .. } = market;
    let (btc, usd) = (0, 1);
    let [seller, buyer] = signers(market);
    let send = |transactions: &[String]| {
        let body = json!({"transactions": transactions}).to_string();
        let path = "/v1/batches/main/transactions";
        let answer = Raw { method: "POST", path, body: body.as_bytes(), key: None }.send(alice.url());
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    };
    let collected = send(&[
        seller.offer(1, btc, usd, 10_000_000, "290"),
        seller.offer(2, btc, usd, 1_000, "900"),
        buyer.offer(1, usd, btc, 3_000_000_000, "0.00333"),
    ]);
    wait_for_transactions(alice, "main", 3);
    let public = |path: &str| alice.get(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let private = |path: &str| sent(alice, "GET", path, &Value::Null);
    let blocks = public("/v1/batches/main/blocks?limit=1");
    let amounts = [1_000_000_000, 290_000_000_000].map(|units| Amount::new(units).unwrap());
    let (assets, rule) = ([AssetId(btc), AssetId(usd)], PoolRule::Weighted { weights: [1, 1] });
    let pool = CreatePool { market: BatchMarketId(0), assets, rule, fee_ppm: 3_000, amounts };
    send(&[seller.sign(3, BatchOperation::CreatePool(pool))]);
    wait_for_transactions(alice, "main", 4);
    let pools = until_some("the pool is there", || {
        alice.get("/v1/batches/main/pools").ok().filter(|answer| answer["pools"][0].is_object())
    });
    vec![
        ("postBatchesBatchTransactions", collected),
        ("getBatches", public("/v1/batches")),
        ("getBatchesBatchBlocks", blocks),
        ("getBatchesBatchDemand", public("/v1/batches/main/demand?sell=BTC&buy=USD")),
        ("getBatchesBatchPools", pools),
        ("getShares", private("/v1/shares")),
        ("getOffers", private("/v1/offers?limit=1")),
        ("getTransactions", private("/v1/transactions?limit=2")),
    ]
}

/// What proves the state after the last block, and what happened in the first one.
fn of_light_clients(Market { alice, .. }: &Market) -> Answers {
    let offer = sent(alice, "GET", "/v1/offers?limit=1", &Value::Null)["offers"][0].clone();
    let [limit_bits, tie] = ["limit_bits", "tie"].map(|field| offer[field].as_str().unwrap());
    let place = format!("offer?account_id=0&sequence=2&sell=BTC&buy=USD&limit_bits={limit_bits}&tie={tie}");
    // While a batch is closed and not cleared nothing can be proven.
    let proof = |rest: &str| {
        let path = format!("/v1/batches/main/proofs/{rest}");
        until_some(&path, || alice.signed("GET", &path, None).ok())
    };
    vec![
        ("getBatchesBatchBlocksBlockHeader", alice.get("/v1/batches/main/blocks/1/header").unwrap()),
        ("getBatchesBatchProofsBlock", proof("block?block=1&asset=BTC&sell=BTC&buy=USD")),
        ("getBatchesBatchProofsTransactionSequence", proof("transaction/2")),
        ("getBatchesBatchProofsAccountAccountId", proof("account/0")),
        ("getBatchesBatchProofsOffer", proof(&place)),
        ("getBatchesBatchProofsPool", proof("pool?account_id=0&sequence=3")),
        ("getBatchesBatchProofsShares", proof("shares?account_id=0&sequence=3")),
    ]
}

fn of_operators(Market { operator, .. }: &Market) -> Answers {
    let asked = |path: &str| sent(operator, "GET", path, &Value::Null);
    vec![
        ("getAdminAccounts", asked("/v1/admin/accounts?limit=2")),
        ("getAdminAccountsAccountId", asked("/v1/admin/accounts/0")),
        ("getAdminFees", asked("/v1/admin/fees")),
        ("getAdminKeys", asked("/v1/admin/keys")),
    ]
}

/// Behind what shows the order that they change.
fn of_last_changes(document: &Value, Market { alice, .. }: &Market) -> Answers {
    vec![
        ("amendOrder", sent(alice, "PATCH", "/v1/orders/BTC-USD/bid-7", &body(document, "amendOrder"))),
        ("getCancelAfter", sent(alice, "GET", "/v1/cancel-after", &Value::Null)),
        ("cancelAll", sent(alice, "DELETE", "/v1/orders", &Value::Null)),
    ]
}

/// Each as the document shows it: they make a second instrument, a third account and a second batch market.
fn of_operators_commands(document: &Value, Market { operator, .. }: &Market) -> Answers {
    let shown = [
        "postAdminAssets",
        "postAdminInstruments",
        "postAdminInstrumentShards",
        "postAdminPhases",
        "postAdminAccounts",
        "postAdminDeposits",
        "postAdminWithdrawals",
        "postAdminFees",
        "postAdminLimits",
        "postAdminAccountKeys",
        "postAdminIssuers",
        "postAdminKeys",
        "postAdminAccountStatus",
        "postAdminBatches",
        "postAdminAccountFees",
        "postAdminBatchPhases",
    ];
    let ask = |name| (name, sent(operator, "POST", operation(document, name).1, &body(document, name)));
    let mut answers: Answers = shown.into_iter().map(ask).collect();
    let made = answers.iter().find(|(name, _)| *name == "postAdminKeys").unwrap();
    let key = format!("/v1/admin/keys/{}", made.1["key_id"].as_str().unwrap());
    answers.push(("deleteAdminKeysKeyId", sent(operator, "DELETE", &key, &Value::Null)));
    answers.push(("postAdminSnapshots", sent(operator, "POST", "/v1/admin/snapshots", &Value::Null)));
    answers
}

/// Of one of two shards. The other one is away, so that what is sent there is in transit.
fn of_a_shard(document: &Value) -> Answers {
    let root = tempfile::tempdir().unwrap();
    let (addresses, dirs) = (shards::addresses(), shards::dirs(root.path()));
    let node = Node::start(&dirs[0], &shards::node_config(0, &addresses, &dirs)).unwrap();
    let operator = support::operator(&format!("http://{}", node.address()), &dirs[0]);
    until("the venue knows that it is a shard", || operator.get("/v1/shards").unwrap()["count"] == 2);
    let Market { alice, .. } = support::market(&operator);
    let answers = vec![
        ("postAccountTransfers", sent(&alice, "POST", "/v1/account/transfers", &body(document, "postAccountTransfers"))),
        ("getAccountTransfers", sent(&alice, "GET", "/v1/account/transfers", &Value::Null)),
        ("postAdminTransfersIn", sent(&operator, "POST", "/v1/admin/transfers/in", &body(document, "postAdminTransfersIn"))),
    ];
    assert_eq!(node.stop(), None);
    answers
}

/// Of two replicas with fair access. They let a third one in and take it out, and then the leader hands over.
fn of_a_cluster(document: &Value) -> Answers {
    let folder = tempfile::tempdir().unwrap();
    // Held together, so that each is another one.
    let held = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let links = held.each_ref().map(|listener| listener.local_addr().unwrap().to_string());
    drop(held);
    let peers: Vec<String> = (1..).zip(&links).map(|(id, address)| format!("{id}={address}")).collect();
    let nodes = [(1, &links[0]), (2, &links[1])].map(|(id, listen)| {
        let mut config = support::config();
        config.cluster.replica = id;
        config.cluster.insecure_loopback = true;
        config.cluster.peers.clone_from(&peers);
        config.cluster.genesis = vec![1, 2];
        config.cluster.listen.clone_from(listen);
        config.cluster.test_faults = true;
        (config.cluster.election_timeout_min_ms, config.cluster.election_timeout_max_ms) = (600, 1_200);
        config.fair_access.sequencing = "300us".to_owned();
        config.fair_access.watermark_us = 0;
        config.fair_access.release = "100us".to_owned();
        config.fair_access.bound_us = 20;
        config.check().unwrap();
        let dir = folder.path().join(format!("replica-{id}"));
        std::fs::create_dir(&dir).unwrap();
        (id, Node::start(&dir, &config).unwrap(), dir)
    });
    let leads = || nodes.iter().find(|(_, node, _)| node.venue().cluster().view().is_taking);
    let (leader, node, dir) = until_some("one of the two leads", leads);
    let other = 3 - *leader;
    let operator = support::operator(&format!("http://{}", node.address()), dir);
    let market = support::market(&operator);
    market.order(&market.bob, &limit(1, "sell", "2", "30000"));
    let fair = until_some("the order was held", || {
        let view = operator.get("/v1/fair-access").ok()?;
        (view["sequencer"]["gateways"][0]["held"].as_u64() > Some(0)).then_some(view)
    });
    let ask = |what: &str, body: &Value| sent(&operator, "POST", &format!("/v1/admin/cluster/{what}"), body);
    let to_other = |name: &str| {
        let mut body = body(document, name);
        body["replica"] = json!(other);
        body
    };
    let wait_until_third_is = |member: &str| {
        until(member, || {
            let view = operator.get("/v1/cluster").unwrap();
            view["replicas"].as_array().unwrap().iter().any(|one| one["replica"] == 3 && one["member"] == member)
        });
    };
    let faults = ask("faults", &to_other("postAdminClusterFaults"));
    let added = ask("add", &body(document, "postAdminClusterAdd"));
    wait_until_third_is("learner");
    let removed = ask("remove", &body(document, "postAdminClusterRemove"));
    wait_until_third_is("none");
    let handed_over = ask("transfer", &to_other("postAdminClusterTransfer"));
    for (_, node, _) in nodes {
        assert_eq!(node.stop(), None);
    }
    vec![
        ("getFairAccess", fair),
        ("postAdminClusterFaults", faults),
        ("postAdminClusterAdd", added),
        ("postAdminClusterRemove", removed),
        ("postAdminClusterTransfer", handed_over),
    ]
}

/// The most columns of a line of examples.
const COLUMNS_MAX: usize = 132;

/// An example in lines of at most [`COLUMNS_MAX`], but for values that are longer: they break after commas between fields.
fn in_lines(name: &str, value: &Value) -> String {
    let text = format!("    {name}: {{value: {}}}", flow(value));
    let (mut lines, mut line, mut quoted, mut escaped) = (String::new(), String::new(), false, false);
    let mut piece = String::new();
    for c in text.chars() {
        piece.push(c);
        quoted ^= c == '"' && !escaped;
        escaped = quoted && c == '\\' && !escaped;
        if c == ',' && !quoted {
            if line.len() + piece.len() > COLUMNS_MAX {
                lines += &format!("{}\n", line.trim_end());
                line = "       ".to_owned();
            }
            line += &std::mem::take(&mut piece);
        }
    }
    if line.len() + piece.len() > COLUMNS_MAX {
        lines += &format!("{}\n", line.trim_end());
        line = "       ".to_owned();
    }
    format!("{lines}{line}{piece}\n")
}

/// As YAML in one line.
fn flow(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> = fields.iter().map(|(key, value)| format!("{}: {}", json!(key), flow(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// Whether two answers have the same fields of the same kinds. What may be absent is null.
pub(crate) fn differ(example: &Value, real: &Value, path: &str) -> Result<(), String> {
    match (example, real) {
        (Value::Null, _) | (_, Value::Null) => Ok(()),
        (Value::Object(one), Value::Object(other)) => {
            if let Some(lost) = one.keys().find(|key| !other.contains_key(*key)) {
                return Err(format!("{path}: the venue says no {lost} any more"));
            }
            if let Some(new) = other.keys().find(|key| !one.contains_key(*key)) {
                return Err(format!("{path}: the venue says {new}, and the example does not"));
            }
            one.iter().try_for_each(|(key, value)| differ(value, &other[key], &format!("{path}.{key}")))
        }
        (Value::Array(one), Value::Array(other)) => match (one.first(), other.first()) {
            (Some(one), Some(other)) => differ(one, other, &format!("{path}[0]")),
            _ => Ok(()),
        },
        (Value::String(one), Value::String(other)) => {
            let is_number = |text: &str| text.parse::<f64>().is_ok();
            if is_number(one) == is_number(other) { Ok(()) } else { Err(format!("{path}: {one:?} became {other:?}")) }
        }
        (Value::Number(_), Value::Number(_)) | (Value::Bool(_), Value::Bool(_)) => Ok(()),
        (one, other) => Err(format!("{path}: {one} became {other}")),
    }
}

#[test]
fn examples_of_answers_are_what_a_venue_says() {
    let folder = tempfile::tempdir().unwrap();
    let venue = Venue::with(&config(folder.path()));
    let market = venue.market();
    let document = document();
    let answers = answers(&document, &market);
    if std::env::var_os("WALRAS_WRITE_EXAMPLES").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/openapi.yaml");
        let text = std::fs::read_to_string(&path).unwrap();
        let kept = text.split(BEGIN).next().unwrap();
        let lines: String = answers.iter().map(|(name, answer)| in_lines(name, answer)).collect();
        std::fs::write(&path, format!("{kept}{BEGIN}{lines}")).unwrap();
        return;
    }
    let examples = document["components"]["examples"].as_object().unwrap();
    assert_eq!(examples.len(), answers.len());
    for (name, answer) in answers {
        let schema = &operation(&document, name).2["responses"]["200"]["content"]["application/json"]["schema"];
        let example = &examples[name]["value"];
        check(&document, schema, &answer).unwrap_or_else(|e| panic!("{name}: {e}"));
        differ(example, &answer, name).unwrap_or_else(|e| panic!("{e}: write the examples again (WALRAS_WRITE_EXAMPLES=1)"));
    }
    ask_as_shown(&document, &venue, &market);
}

/// Asks every question as the document shows it: with what it needs, and then with one more parameter each time. None is malformed. What
/// is shown may be of another venue, where this one has nothing.
fn ask_as_shown(document: &Value, venue: &Venue, market: &Market) {
    let operator = read_key(&operator_key_file(&venue.dir)).unwrap();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let named = |one: &Value| format!("{}={}", text(&one["name"]), text(&one["example"]));
    let mut found = BTreeMap::new();
    for (_, path, says) in operations(document).filter(|(method, path, _)| *method == "get" && path.starts_with("/v1/")) {
        if says["responses"]["200"].is_null() {
            continue;
        }
        let key = match says["security"][0]["key"][0].as_str() {
            None => None,
            Some("operator") => Some(&operator),
            Some(_) => Some(&market.alice_key),
        };
        let parameters = || says["parameters"].as_array().into_iter().flatten();
        let path = parameters()
            .filter(|one| one["in"] == "path")
            .fold(path.to_owned(), |path, one| path.replace(&format!("{{{}}}", text(&one["name"])), &text(&one["example"])));
        let (needed, further): (Vec<&Value>, Vec<&Value>) =
            parameters().filter(|one| one["in"] == "query").partition(|one| one["required"] == true);
        // Who names one of a pair names the other.
        let (pair, single): (Vec<&Value>, Vec<&Value>) =
            further.into_iter().partition(|one| one["name"] == "sell" || one["name"] == "buy");
        // A trade's number counts in its instrument.
        let needs = |one: &Value| path == "/v1/fills" && one["name"] == "after";
        let instrument = single.iter().copied().find(|one| one["name"] == "instrument");
        let alone = single.iter().map(|one| instrument.filter(|_| needs(one)).into_iter().chain([*one]).collect::<Vec<_>>());
        for more in [Vec::new(), pair].into_iter().chain(alone) {
            let query: Vec<String> = needed.iter().chain(&more).map(|one| named(one)).collect();
            let path = if query.is_empty() { path.clone() } else { format!("{path}?{}", query.join("&")) };
            let answer = Raw { method: "GET", path: &path, body: b"", key }.send(&venue.url());
            assert!(matches!(answer.status, 200 | 404), "{path}: {}", answer.text);
            *found.entry(answer.status).or_insert(0) += 1;
        }
    }
    assert!(found[&200] > 4 * found.get(&404).copied().unwrap_or(0), "most of what is shown is there: {found:?}");
}

#[test]
fn every_operation_shows_an_answer_of_its_schema() {
    let document = document();
    let without: BTreeMap<&str, &str> = WITHOUT_ANSWER.into();
    let (mut seen, mut used) = (BTreeSet::new(), BTreeSet::new());
    for (method, path, says) in operations(&document) {
        let name = says["operationId"].as_str().unwrap();
        let contents = says["responses"]["200"]["content"].as_object();
        let shows = |content: &Value| !content["example"].is_null() || content["examples"].is_object();
        let is_shown = contents.is_some_and(|contents| contents.values().all(shows));
        if let Some(why) = without.get(name) {
            assert!(!is_shown, "{name} has an example, and is listed as one without ({why})");
            seen.insert(name);
            continue;
        }
        assert!(is_shown, "{method} {path} shows no example of its answer");
        let content = &says["responses"]["200"]["content"]["application/json"];
        for example in content["examples"].as_object().into_iter().flat_map(|examples| examples.values()) {
            let of = example["$ref"].as_str().unwrap().strip_prefix("#/components/examples/").unwrap();
            assert!(of == name || (name, of) == AS_ANOTHER, "{name} shows the answer of {of}");
            let value = &document["components"]["examples"][of]["value"];
            check(&document, &content["schema"], value).unwrap_or_else(|e| panic!("{name}: {e}"));
            used.insert(of);
        }
    }
    assert_eq!(seen.len(), without.len(), "an operation that is listed is not there");
    let written: BTreeSet<&str> = document["components"]["examples"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(used, written, "each example is shown");
    // Who shows another one's answer has the same fields.
    let schema = |name: &str| operation(&document, name).2["responses"]["200"]["content"]["application/json"]["schema"].clone();
    assert_eq!(schema(AS_ANOTHER.0), schema(AS_ANOTHER.1));
}

#[test]
fn schemas_that_show_an_example_fit_it() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut shown = 0;
    for (name, schema) in schemas.iter().filter(|(_, schema)| !schema["example"].is_null()) {
        check(&document, schema, &schema["example"]).unwrap_or_else(|e| panic!("{name}: {e}"));
        shown += 1;
    }
    assert!(shown > 0, "a leaf gateway's figures have one: no venue of a single process has such a gateway");
}

#[test]
fn every_parameter_has_an_example_of_its_schema() {
    let document = document();
    for (method, path, says) in operations(&document) {
        for parameter in says["parameters"].as_array().into_iter().flatten() {
            let place = format!("{method} {path}: {}", parameter["name"]);
            assert!(!parameter["example"].is_null(), "{place} has no example");
            check(&document, &parameter["schema"], &parameter["example"]).unwrap_or_else(|e| panic!("{place}: {e}"));
        }
    }
}

/// The example of an answer that is text.
fn shown_text<'a>(document: &'a Value, path: &str) -> &'a str {
    document["paths"][path]["get"]["responses"]["200"]["content"]["text/plain"]["example"].as_str().unwrap()
}

#[test]
fn texts_are_answered_as_shown() {
    let (document, venue) = (document(), Venue::start());
    let text = |path: &str| Raw { method: "GET", path, body: b"", key: None }.send(&venue.url()).text;
    assert_eq!(text("/healthz"), shown_text(&document, "/healthz"));
    // Figures differ; their names, types and meanings do not.
    let without_figure = |line: &str| match line.strip_prefix("walras_") {
        Some(figure) => figure.rsplit_once(' ').unwrap().0.to_owned(),
        None => line.to_owned(),
    };
    let said: BTreeSet<String> = text("/metrics").lines().map(without_figure).collect();
    for line in shown_text(&document, "/metrics").lines() {
        assert!(said.contains(&without_figure(line)), "{line}");
    }
}

#[test]
fn refusals_are_answered_as_shown() {
    let (document, venue) = (document(), Venue::start());
    let market = venue.market();
    let (off_tick, large) = (limit(7, "buy", "1", "29000.1").to_string(), " ".repeat(20_000));
    let alice = Some(&market.alice_key);
    for (name, status, method, path, body, key) in [
        ("Malformed", 400, "POST", "/v1/orders", off_tick.as_str(), alice),
        ("Unauthenticated", 401, "GET", "/v1/account", "", None),
        ("Forbidden", 403, "GET", "/v1/admin/keys", "", alice),
        ("NotFound", 404, "GET", "/v1/instruments/NO-SUCH/book", "", None),
        ("Refused", 409, "DELETE", "/v1/orders/BTC-USD/bid-99", "", alice),
        ("TooLarge", 413, "POST", "/v1/orders", large.as_str(), alice),
    ] {
        let shown = &document["components"]["responses"][name]["content"]["application/json"]["example"];
        let answer = Raw { method, path, body: body.as_bytes(), key }.send(&venue.url());
        assert_eq!((answer.status, &answer.json()), (status, shown), "{name}");
    }
}

/// Every refusal below a value, as its number, name and message.
fn refusals(value: &Value) -> Vec<(u64, &Value, &Value)> {
    let below: Vec<&Value> = match value {
        Value::Object(fields) => fields.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    };
    let own = value["code"].as_u64().map(|code| (code, &value["name"], &value["message"]));
    own.into_iter().chain(below.into_iter().flat_map(refusals)).collect()
}

#[test]
fn refusals_in_examples_have_their_own_words() {
    let (openapi, asyncapi) = (document(), serde_saphyr::from_str::<Value>(walras_api::http::ASYNCAPI_YAML).unwrap());
    let responses = openapi["components"]["responses"].as_object().unwrap();
    for (name, response) in responses {
        let content = &response["content"]["application/json"];
        assert!(!content["example"].is_null(), "{name} has no example");
        check(&openapi, &content["schema"], &content["example"]).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    let found = [refusals(&openapi), refusals(&asyncapi)].concat();
    assert!(found.len() > responses.len(), "those of the WebSocket as well");
    for (code, name, message) in found {
        let reason = u16::try_from(code).ok().and_then(RejectReason::from_number).unwrap_or_else(|| panic!("{code} is no reason"));
        assert_eq!((name, message), (&json!(reason.name()), &json!(reason.advice())), "{code}");
    }
}

/// Their signatures are of another market, so no venue takes them.
#[test]
fn the_transactions_that_are_shown_can_be_read() {
    let shown = body(&document(), "postBatchesBatchTransactions");
    for transaction in shown["transactions"].as_array().unwrap() {
        let bytes = unhex(transaction.as_str().unwrap()).unwrap();
        decode_signed_transaction(&bytes).unwrap_or_else(|e| panic!("{transaction}: {e}"));
    }
}

#[test]
fn an_example_that_drifted_is_noticed() {
    let example = json!({"a": "1", "b": [{"c": true}], "d": null});
    assert_eq!(differ(&example, &json!({"a": "2", "b": [{"c": false}, {"c": true}], "d": {"e": 1}}), ""), Ok(()));
    for other in [
        json!({"a": "2", "b": []}),
        json!({"a": "2", "b": [], "d": null, "new": 1}),
        json!({"a": "x", "b": [], "d": null}),
        json!({"a": 1, "b": [], "d": null}),
        json!({"a": "2", "b": [{"c": 1}], "d": null}),
    ] {
        assert!(differ(&example, &other, "").is_err(), "{other}");
    }
}

/// An order has the same fields in every way in, and so has a change of one.
#[test]
fn every_way_in_takes_all_of_an_order() {
    let document = document();
    let fields = |name: &str, without: &[&str]| {
        let properties = document["components"]["schemas"][name]["properties"].as_object().unwrap();
        for field in without {
            assert!(properties.contains_key(*field), "{name} has no {field}");
        }
        properties.keys().filter(|field| !without.contains(&field.as_str())).cloned().collect::<BTreeSet<_>>()
    };
    let socket = ["op", "id", "session", "session_seq"];
    assert_eq!(fields("WsOrder", &socket), fields("OrderRequest", &[]));
    assert_eq!(fields("OneOrder", &["op"]), fields("OrderRequest", &[]));
    let of_order = ["instrument", "client_order_id"];
    assert_eq!(fields("OneAmend", &[&["op"][..], &of_order].concat()), fields("AmendRequest", &[]));
    assert_eq!(fields("WsAmend", &[&socket[..], &of_order].concat()), fields("AmendRequest", &[]));
}
