//! The examples of answers in `openapi.yaml` are answers of a venue: `WALRAS_WRITE_EXAMPLES=1` writes them, and each run compares the
//! shape of what is there with what a venue says.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use walras_client::Client;
use walras_config::Config;
use walras_types::{Amount, AssetId, BatchMarketId, BatchOperation, CreatePool, PoolRule};
use walras_wait::until_some;

use crate::batches::{signers, with_batch};
use crate::history::with_archive;
use crate::schema::{check, document};
use crate::support::{Market, Raw, Venue, limit, wait_for_transactions};

/// Where the written part of the document begins: it is the last one.
const BEGIN: &str =
    "  # Written by a test (edge/node/tests/node/examples.rs): WALRAS_WRITE_EXAMPLES=1 writes it again.\n  examples:\n";

/// Answers by their operations.
type Answers = Vec<(&'static str, Value)>;

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

/// The answers that have examples.
fn answers(market: &Market) -> Answers {
    [of_participants(market), of_the_venue(market), of_the_batch_market(market), of_operators(market), of_last_changes(market)]
        .concat()
}

fn of_participants(market: &Market) -> Answers {
    let Market { alice, bob, .. } = market;
    let session = sent(alice, "POST", "/v1/sessions", &json!({"token": "7"}));
    let once = format!("?session={}&session_seq=1", session["session"].as_str().unwrap());
    let placed = sent(alice, "POST", &format!("/v1/orders{once}"), &limit(1, "buy", "1", "29999.75"));
    sent(bob, "POST", "/v1/orders", &limit(2, "sell", "0.4", "29999.75"));
    sent(bob, "POST", "/v1/orders", &limit(3, "sell", "2", "30010"));
    let many = json!({"commands": [
        {"op": "order", "instrument": "BTC-USD", "client_order_id": "5", "side": "buy", "type": "limit", "size": "0.5", "price": "29990"},
        {"op": "cancel", "instrument": "BTC-USD", "client_order_id": "5"},
    ]});
    let many = sent(alice, "POST", "/v1/orders/batch", &many);
    sent(alice, "POST", "/v1/orders", &limit(6, "buy", "0.1", "29000"));
    let cancelled = sent(alice, "DELETE", "/v1/orders/BTC-USD/6", &Value::Null);
    let after = sent(alice, "POST", "/v1/cancel-after", &json!({"timeout_ms": 60_000}));
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
        ("getAccountTransfers", private("/v1/account/transfers")),
        ("listOpenOrders", private("/v1/orders")),
        ("placeOrder", placed),
        ("sendMany", many),
        ("cancelAfter", after),
        ("listClosedOrders", private("/v1/orders/closed?limit=2")),
        ("getOrder", private("/v1/orders/BTC-USD/1")),
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
fn of_last_changes(Market { alice, .. }: &Market) -> Answers {
    vec![
        ("amendOrder", sent(alice, "PATCH", "/v1/orders/BTC-USD/1", &json!({"price": "29999.5"}))),
        ("getCancelAfter", sent(alice, "GET", "/v1/cancel-after", &Value::Null)),
        ("cancelAll", sent(alice, "DELETE", "/v1/orders", &Value::Null)),
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
fn differ(example: &Value, real: &Value, path: &str) -> Result<(), String> {
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

/// The operation of this name, with its path and method.
fn operation<'a>(document: &'a Value, name: &str) -> &'a Value {
    let paths = document["paths"].as_object().unwrap().values();
    let mut operations = paths.flat_map(|methods| methods.as_object().unwrap().values());
    operations.find(|operation| operation["operationId"] == name).unwrap_or_else(|| panic!("openapi.yaml has no operation {name}"))
}

#[test]
fn examples_of_answers_are_what_a_venue_says() {
    let folder = tempfile::tempdir().unwrap();
    let venue = Venue::with(&config(folder.path()));
    let market = venue.market();
    let answers = answers(&market);
    if std::env::var_os("WALRAS_WRITE_EXAMPLES").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/openapi.yaml");
        let text = std::fs::read_to_string(&path).unwrap();
        let kept = text.split(BEGIN).next().unwrap();
        let lines: String = answers.iter().map(|(name, answer)| in_lines(name, answer)).collect();
        std::fs::write(&path, format!("{kept}{BEGIN}{lines}")).unwrap();
        return;
    }
    let document = document();
    let examples = document["components"]["examples"].as_object().unwrap();
    assert_eq!(examples.len(), answers.len());
    for (name, answer) in answers {
        let content = &operation(&document, name)["responses"]["200"]["content"]["application/json"];
        assert_eq!(content["examples"]["answer"]["$ref"], json!(format!("#/components/examples/{name}")), "{name} shows it");
        let example = &examples[name]["value"];
        check(&document, &content["schema"], example).unwrap_or_else(|e| panic!("{name}: {e}"));
        check(&document, &content["schema"], &answer).unwrap_or_else(|e| panic!("{name}: {e}"));
        differ(example, &answer, name).unwrap_or_else(|e| panic!("{e}: write the examples again (WALRAS_WRITE_EXAMPLES=1)"));
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
    // Exits go with one order alone.
    let of_order = fields("OrderRequest", &["take_profit", "stop_loss"]);
    assert_eq!((fields("OneOrder", &["op"]), fields("WsOrder", &socket)), (of_order.clone(), of_order));
    let of_order = ["instrument", "client_order_id"];
    assert_eq!(fields("OneAmend", &[&["op"][..], &of_order].concat()), fields("AmendRequest", &[]));
    assert_eq!(fields("WsAmend", &[&socket[..], &of_order].concat()), fields("AmendRequest", &[]));
}
