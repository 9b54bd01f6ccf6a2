//! `openapi.yaml` against a running server, both ways: what it documents is what the server does, and nothing else.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use walras_access::operator_key_file;
use walras_api::ROUTES;
use walras_api::json::batches::unhex;
use walras_batch::light::LightBlock;
use walras_clearing::{AssetIndex, OfferId, OfferKey, Pair};
use walras_client::{Client, read_key};
use walras_gateway::ClientKey;
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, CreatePool, OfferName, PoolRule, TransactionSeq,
};
use walras_wait::until_some;

use crate::schema::{check, check_named, document};
use crate::support::{Raw, Signer, Venue, key, limit, wait_for_transactions};

/// Every documented operation: method, path.
fn operations(document: &Value) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            all.push((method.clone(), path.clone()));
        }
    }
    all
}

#[test]
fn every_route_is_documented_and_every_documented_path_is_a_route() {
    let documented: BTreeSet<_> = operations(&document()).into_iter().collect();
    let served: BTreeSet<_> = ROUTES.iter().map(|(method, path)| (method.to_string(), path.to_string())).collect();
    assert_eq!(served, documented);
    assert_eq!(ROUTES.len(), served.len(), "a route twice");
}

/// What an operation takes is shown by an example, which is what the description says.
#[test]
fn every_body_of_a_request_has_an_example_of_its_schema() {
    let document = document();
    for (method, path) in operations(&document) {
        let body = &document["paths"][&path][&method]["requestBody"];
        if body.is_null() {
            continue;
        }
        let content = &body["content"]["application/json"];
        assert!(!content["example"].is_null(), "{method} {path} has no example");
        check(&document, &content["schema"], &content["example"]).unwrap_or_else(|e| panic!("{method} {path}: {e}"));
    }
}

struct Walk {
    document: Value,
    url: String,
    operator: ClientKey,
    trader: ClientKey,
    reader: ClientKey,
    covered: BTreeSet<(String, String, String)>,
}

/// `/v1/instruments/BTC-USD/book?depth=1` is of `/v1/instruments/{instrument}/book`.
fn is_of(template: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap();
    let (t, p): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    t.len() == p.len() && t.iter().zip(&p).all(|(t, p)| t.starts_with('{') || t == p)
}

impl Walk {
    /// Sends a request and holds the answer against what is documented for it.
    fn go(&mut self, expected: u16, method: &str, path: &str, body: &[u8], key: Option<&ClientKey>) -> Value {
        let answer = until_some("no block is under way", || {
            let answer = Raw { method: &method.to_uppercase(), path, body, key }.send(&self.url);
            // Nothing can be proven meanwhile.
            let is_late = method == "get" && expected == 200 && answer.text.contains("a batch is closed and not cleared yet");
            (!is_late).then_some(answer)
        });
        assert_eq!(answer.status, expected, "{method} {path}: {}", answer.text);
        let operations = operations(&self.document);
        let exact = operations.iter().find(|(m, t)| m == method && t == path.split('?').next().unwrap());
        let template = exact.or_else(|| operations.iter().find(|(m, t)| m == method && is_of(t, path)));
        let (_, template) = template.unwrap_or_else(|| panic!("{method} {path} is not documented"));
        let operation = &self.document["paths"][template][method];
        let mut response = &operation["responses"][expected.to_string()];
        assert!(response.is_object(), "{method} {template} does not document {expected}");
        if let Some(named) = response["$ref"].as_str() {
            response = self.document.pointer(named.strip_prefix('#').unwrap()).unwrap();
        }
        self.covered.insert((method.to_owned(), template.clone(), expected.to_string()));
        let Some(content) = response["content"].as_object() else { return Value::Null };
        let media = answer.content_type.split(';').next().unwrap().to_owned();
        let schema = &content.get(&media).unwrap_or_else(|| panic!("{method} {path} answered {media:?}"))["schema"];
        if schema.is_null() {
            return Value::String(answer.text);
        }
        let body = answer.json();
        check(&self.document, schema, &body).unwrap_or_else(|e| panic!("{method} {path} {expected}: {e}\n{body:#}"));
        body
    }

    fn get(&mut self, expected: u16, path: &str) -> Value {
        self.go(expected, "get", path, b"", None)
    }

    fn operate(&mut self, expected: u16, method: &str, path: &str, body: &Value) -> Value {
        let key = self.operator.clone();
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        if (200..300).contains(&expected) {
            self.check_request(method, path, body);
        }
        self.go(expected, method, path, &bytes, Some(&key))
    }

    fn trade(&mut self, expected: u16, method: &str, path: &str, body: &Value) -> Value {
        let key = self.trader.clone();
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        if (200..300).contains(&expected) {
            self.check_request(method, path, body);
        }
        self.go(expected, method, path, &bytes, Some(&key))
    }

    /// What the server takes is what is documented.
    fn check_request(&self, method: &str, path: &str, body: &Value) {
        let operations = operations(&self.document);
        let (_, template) = operations.iter().find(|(m, t)| m == method && is_of(t, path)).unwrap();
        let schema = &self.document["paths"][template][method]["requestBody"]["content"]["application/json"]["schema"];
        if schema.is_object() {
            check(&self.document, schema, body).unwrap_or_else(|e| panic!("{method} {path}: {e}\n{body:#}"));
        }
    }
}

#[test]
fn every_documented_answer_of_every_path_is_given_as_documented() {
    let venue = Venue::start();
    let market = venue.market();
    let operator = read_key(&operator_key_file(&venue.dir)).unwrap();
    let mut walk = Walk {
        document: document(),
        url: venue.url(),
        operator,
        trader: market.alice_key.clone(),
        reader: key(&market.operator, 0, &["read"]),
        covered: BTreeSet::new(),
    };
    // Trades, so that nothing is empty.
    market.order(&market.bob, &limit(1, "sell", "2", "30000"));
    market.order(&market.alice, &limit(1, "buy", "0.5", "30000"));

    public(&mut walk);
    trading(&mut walk);
    numbered(&mut walk);
    administration(&mut walk);
    batches(&mut walk);
    refusals_of_all(&mut walk);

    let mut documented = BTreeSet::new();
    for (method, path) in operations(&walk.document) {
        for status in walk.document["paths"][&path][&method]["responses"].as_object().unwrap().keys() {
            // `default` stands for what any request may get (429 and 503), which has tests of its own.
            if status != "default" {
                documented.insert((method.clone(), path.clone(), status.clone()));
            }
        }
    }
    // This venue is alone, and has no fair access; those in `replica.rs` and `tests/cluster` are and have.
    let needs_others = |path: &str| path.starts_with("/v1/admin/cluster/") || path == "/v1/fair-access";
    documented.retain(|(_, path, status)| !needs_others(path) || status != "200");
    // Nobody falls behind here.
    documented.remove(&("post".into(), "/v1/admin/cluster/add".into(), "409".into()));
    // It is no shard of several; those in `shards.rs` are.
    for path in ["/v1/account/transfers", "/v1/admin/transfers/in"] {
        documented.remove(&("post".into(), path.into(), "200".into()));
    }
    // Nor does it keep a clock; those in `clock.rs` do.
    documented.remove(&("get".into(), "/v1/clock".into(), "200".into()));
    // Nor an archive; those in `history.rs` do.
    documented.retain(|(_, path, status)| !(path.starts_with("/v1/history") && status == "200"));
    // `storage.rs` has a venue that is not ready.
    documented.remove(&("get".into(), "/readyz".into(), "503".into()));
    // As many reports as are kept do not come together here.
    documented.remove(&("get".into(), "/v1/reports".into(), "404".into()));
    // The upgrade itself is what the WebSocket tests begin with.
    documented.remove(&("get".into(), "/v1/ws".into(), "101".into()));
    assert_eq!(walk.covered, documented);
}

fn public(walk: &mut Walk) {
    assert_eq!(walk.get(200, "/v1/status")["ready"], true);
    walk.get(200, "/v1/time");
    walk.get(404, "/v1/clock");
    walk.get(200, "/healthz");
    assert_eq!(walk.get(200, "/readyz"), json!({"ready": true, "reasons": []}));
    let latency = walk.get(200, "/v1/latency");
    let of = |stage: &str| latency["stages"].as_array().unwrap().iter().find(|times| times["stage"] == stage).cloned();
    let log = of("log").unwrap_or_else(|| panic!("what there is was logged: {latency}"));
    assert!(log["count"].as_u64() >= log["recent"].as_u64() && log["p50_ns"].as_u64() <= log["p999_ns"].as_u64(), "{log}");
    assert!(of("request").is_some() && of("apply").is_some(), "the market was made over HTTP: {latency}");
    assert!(of("hold").is_none(), "nothing is held here: {latency}");
    let shards = walk.get(200, "/v1/shards");
    assert_eq!((&shards["count"], &shards["shards"][0]["instruments"]), (&json!(1), &json!(["BTC/USD"])));
    for path in ["trades?instrument=BTC-USD", "books?instrument=BTC-USD", "days", "days/2026-11-21/manifest.json"] {
        walk.get(404, &format!("/v1/history/{path}"));
    }
    walk.get(400, "/v1/history/trades?instrument=BTC-USD&limit=many");
    walk.get(400, "/v1/history/books");
    assert_eq!(walk.get(200, "/v1/assets")["assets"][0]["supply"], "200");
    let instruments = walk.get(200, "/v1/instruments");
    assert_eq!(instruments["instruments"][0]["tick_size"], "0.25");
    assert_eq!(instruments["instruments"][0]["lot_size"], "0.0001");
    let book = walk.get(200, "/v1/instruments/BTC-USD/book?depth=5");
    assert_eq!(book["asks"], json!([["30000.00", "1.5000", 1]]));
    let orders = walk.get(200, "/v1/instruments/BTC-USD/book/orders?limit=5");
    let ask = &orders["asks"][0];
    assert_eq!((&ask[1], &ask[2], &orders["has_more_asks"]), (&json!("30000.00"), &json!("1.5000"), &json!(false)));
    assert_eq!((&orders["bids"], &orders["log_index"]), (&json!([]), &book["log_index"]));
    let auction = walk.get(200, "/v1/instruments/BTC-USD/auction");
    assert_eq!((&auction["phase"], &auction["last_uncross"]), (&json!("continuous"), &Value::Null));
    let ticker = walk.get(200, "/v1/instruments/BTC-USD/ticker");
    assert_eq!((&ticker["best_ask"], &ticker["best_ask_size"], &ticker["best_bid_size"]), (&ask[1], &ask[2], &Value::Null));
    assert_eq!(
        (&ticker["open"], &ticker["turnover"], &ticker["previous_close"]),
        (&json!("30000.00"), &json!("15000"), &Value::Null)
    );
    walk.get(400, "/v1/instruments/BTC-USD/book/orders?limit=501");
    let trades = walk.get(200, "/v1/instruments/BTC-USD/trades?limit=5");
    assert_eq!((&trades["trades"][0]["price"], &trades["trades"][0]["size"]), (&json!("30000.00"), &json!("0.5000")));
    let before = walk.get(200, "/v1/instruments/BTC-USD/trades?before=1");
    assert_eq!(before["trades"], json!([]));
    let candles = walk.get(200, "/v1/instruments/BTC-USD/candles?interval=1s&limit=5");
    assert_eq!(candles["candles"][0]["volume"], "0.5000");
    for of in ["book", "book/orders", "auction", "ticker", "trades", "candles"] {
        walk.get(404, &format!("/v1/instruments/NO-SUCH/{of}"));
        walk.get(400, &format!("/v1/instruments/BTC-USD/{of}?limit=many"));
        walk.get(400, &format!("/v1/instruments/BTC-USD/{of}?limit=1001"));
        walk.get(400, &format!("/v1/instruments/BTC-USD/{of}?depth=1001"));
    }
    walk.get(400, "/v1/ws");
    let yaml = walk.get(200, "/openapi.yaml");
    assert_eq!(yaml.as_str(), Some(walras_api::http::OPENAPI_YAML));
    for page in ["/docs", "/docs/websocket", "/docs/reader.js", "/docs/websocket.js", "/docs/shapes.js", "/docs/style.css"] {
        walk.get(200, page);
    }
    assert_eq!(walk.get(200, "/asyncapi.yaml").as_str(), Some(walras_api::http::ASYNCAPI_YAML));
    let json: Value = serde_json::from_str(walk.get(200, "/asyncapi.json").as_str().unwrap()).unwrap();
    assert_eq!(json, serde_saphyr::from_str::<Value>(walras_api::http::ASYNCAPI_YAML).unwrap());
    let json: Value = serde_json::from_str(walk.get(200, "/openapi.json").as_str().unwrap()).unwrap();
    assert_eq!(json, walk.document);
    assert!(walk.get(200, "/metrics").as_str().unwrap().contains("walras_trades_total 1\n"));
}

/// Trailing stops: what they say, and where their triggers are; the last trade was at 30000.
fn trailing(walk: &mut Walk) {
    let stop =
        |id: &str, kind: &str| json!({"instrument": "BTC-USD", "client_order_id": id, "side": "sell", "type": kind, "size": "0.1"});
    let with = |mut order: Value, fields: &[(&str, Value)]| {
        fields.iter().for_each(|(name, value)| order[*name] = value.clone());
        order
    };
    let of_ticks = with(stop("21", "trailing_stop"), &[("trail", "250".into())]);
    assert_eq!(walk.trade(200, "post", "/v1/orders", &of_ticks)["status"], "waiting_trigger");
    let of_ppm = with(stop("22", "trailing_stop_limit"), &[("trail_ppm", 10_000.into()), ("price", "29000".into())]);
    assert_eq!(walk.trade(200, "post", "/v1/orders", &of_ppm)["status"], "waiting_trigger");
    let orders = walk.trade(200, "get", "/v1/orders?instrument=BTC-USD", &Value::Null);
    let says = |id: &str| {
        let order = orders["orders"].as_array().unwrap().iter().find(|order| order["client_order_id"] == id).unwrap();
        ["type", "trigger", "trail", "trail_ppm", "price"].map(|name| order[name].clone())
    };
    assert_eq!(says("21"), [json!("trailing_stop"), json!("29750.00"), json!("250.00"), Value::Null, Value::Null]);
    assert_eq!(says("22"), [json!("trailing_stop_limit"), json!("29700.00"), Value::Null, json!(10_000), json!("29000.00")]);
    for wrong in [
        stop("23", "trailing_stop"),
        with(of_ticks.clone(), &[("trail_ppm", 10.into())]),
        with(of_ticks.clone(), &[("trigger", "29000".into())]),
        with(stop("23", "stop"), &[("trigger", "29000".into()), ("trail", "250".into())]),
        with(stop("23", "trailing_stop"), &[("trail", "0.005".into())]),
    ] {
        walk.trade(400, "post", "/v1/orders", &wrong);
    }
    let too_far = with(stop("23", "trailing_stop"), &[("trail", "30000".into())]);
    assert_eq!(walk.trade(409, "post", "/v1/orders", &too_far)["error"]["code"], 95);
    assert_eq!(walk.trade(409, "patch", "/v1/orders/BTC-USD/21", &json!({"trigger": "29000"}))["error"]["code"], 29);
    for id in ["21", "22"] {
        walk.trade(200, "delete", &format!("/v1/orders/BTC-USD/{id}"), &Value::Null);
    }
}

fn trading(walk: &mut Walk) {
    let resting = walk.trade(200, "post", "/v1/orders", &limit(7, "buy", "1", "29000"));
    assert_eq!((&resting["status"], &resting["open"]), (&json!("resting"), &json!("1.0000")));
    walk.trade(400, "post", "/v1/orders", &limit(8, "buy", "1", "29000.1"));
    walk.trade(409, "post", "/v1/orders", &limit(7, "buy", "1", "29000"));
    let mut conditional = limit(9, "sell", "0.5", "28000");
    conditional["type"] = "stop_limit".into();
    conditional["trigger"] = "28500".into();
    conditional["time_in_force"] = "gtt".into();
    conditional["expire_time_ns"] = u64::MAX.to_string().into();
    assert_eq!(walk.trade(200, "post", "/v1/orders", &conditional)["status"], "waiting_trigger");
    let moved = walk.trade(200, "patch", "/v1/orders/BTC-USD/9", &json!({"trigger": "28600", "price": "28100"}));
    assert_eq!((&moved["status"], &moved["events"][0]["priority"]), (&json!("waiting_trigger"), &json!("lost")));
    let stop = json!({
        "instrument": "BTC-USD", "client_order_id": "11", "side": "sell", "type": "stop", "size": "0.5", "trigger": "28000",
        "time_in_force": "day",
    });
    assert_eq!(walk.trade(200, "post", "/v1/orders", &stop)["status"], "waiting_trigger");
    walk.trade(409, "patch", "/v1/orders/BTC-USD/11", &json!({"price": "28000"}));
    walk.trade(200, "patch", "/v1/orders/BTC-USD/11", &json!({"trigger": "28250"}));
    trailing(walk);
    let mut iceberg = limit(10, "buy", "1", "29500");
    iceberg["display"] = "iceberg".into();
    iceberg["peak"] = "0.25".into();
    iceberg["post_only"] = "reject".into();
    walk.trade(200, "post", "/v1/orders", &iceberg);
    let orders = walk.trade(200, "get", "/v1/orders?instrument=BTC-USD", &Value::Null);
    let orders = orders["orders"].as_array().unwrap();
    assert_eq!(orders.len(), 4);
    let says = |order: &Value| [&order["type"], &order["time_in_force"], &order["trigger"], &order["price"]].map(Value::clone);
    assert_eq!(says(&orders[1]), [json!("stop_limit"), json!("gtt"), json!("28600.00"), json!("28100.00")]);
    assert_eq!(says(&orders[2]), [json!("stop"), json!("day"), json!("28250.00"), Value::Null]);
    assert_eq!(walk.trade(200, "delete", "/v1/orders/BTC-USD/11", &Value::Null)["status"], "cancelled");
    walk.trade(400, "get", "/v1/orders?no=1", &Value::Null);
    walk.trade(409, "get", "/v1/orders?instrument=NO-SUCH", &Value::Null);
    assert_eq!(walk.trade(200, "get", "/v1/account", &Value::Null)["account_id"], 0);
    let fills = walk.trade(200, "get", "/v1/fills?limit=1", &Value::Null);
    assert_eq!((&fills["fills"][0]["role"], &fills["fills"][0]["fee"]), (&json!("taker"), &json!("3")));
    walk.trade(400, "get", "/v1/fills?limit=x", &Value::Null);
    walk.trade(400, "get", "/v1/fills?limit=1001", &Value::Null);
    let first = walk.trade(200, "get", "/v1/fills?instrument=BTC-USD&after=0&limit=1", &Value::Null);
    assert_eq!(first["fills"].as_array().unwrap().len(), 1);
    for bad in ["after=0", "instrument=BTC-USD&after=-1", "instrument=BTC-USD&after=18446744073709551616"] {
        walk.trade(400, "get", &format!("/v1/fills?{bad}"), &Value::Null);
    }
    let none = json!({"transfers": [], "last_client_transfer_id": null});
    assert_eq!(walk.trade(200, "get", "/v1/account/transfers", &Value::Null), none);
    walk.trade(409, "post", "/v1/account/transfers", &json!({"asset": "USD", "amount": "1", "to_shard": 1}));

    let amended = walk.trade(200, "patch", "/v1/orders/BTC-USD/7", &json!({"size": "0.5"}));
    assert_eq!((&amended["open"], &amended["events"][0]["priority"]), (&json!("0.5000"), &json!("kept")));
    walk.trade(400, "patch", "/v1/orders/BTC-USD/7", &json!({}));
    walk.trade(409, "patch", "/v1/orders/BTC-USD/99", &json!({"size": "0.5"}));
    assert_eq!(walk.trade(200, "delete", "/v1/orders/BTC-USD/7", &Value::Null)["status"], "cancelled");
    walk.trade(409, "delete", "/v1/orders/BTC-USD/7", &Value::Null);
    walk.trade(400, "delete", "/v1/orders/BTC-USD/se%20ven", &Value::Null);
    walk.trade(409, "delete", "/v1/orders/BTC-USD/seven", &Value::Null);
    let ended = walk.trade(200, "get", "/v1/orders/BTC-USD/7", &Value::Null);
    assert_eq!((&ended["status"], &ended["reason"]), (&json!("cancelled"), &json!("requested")));
    walk.trade(404, "get", "/v1/orders/BTC-USD/seven", &Value::Null);
    walk.trade(400, "get", "/v1/orders/BTC-USD/7?by=name", &Value::Null);
    let closed = walk.trade(200, "get", "/v1/orders/closed?limit=2&instrument=BTC-USD", &Value::Null);
    let mut listed = closed["orders"][0].clone();
    let ended_at = listed.as_object_mut().unwrap().remove("log_index").unwrap();
    assert_eq!((closed["orders"].as_array().unwrap().len(), &listed), (2, &ended));
    let later = walk.trade(200, "get", &format!("/v1/orders/closed?after={}", ended_at.as_str().unwrap()), &Value::Null);
    assert_eq!((&later["orders"], &later["complete"]), (&json!([]), &json!(true)));
    walk.trade(400, "get", "/v1/orders/closed?after=x", &Value::Null);
    walk.trade(400, "get", "/v1/orders/closed?since=x", &Value::Null);
    walk.trade(409, "get", "/v1/orders/closed?instrument=NO-SUCH", &Value::Null);
    walk.trade(409, "get", "/v1/fills?instrument=NO-SUCH", &Value::Null);
    walk.trade(200, "get", "/v1/reports?after=0", &Value::Null);
    walk.trade(400, "get", "/v1/reports?limit=1000", &Value::Null);
    let cancel = json!({"commands": [{"op": "cancel", "instrument": "BTC-USD", "client_order_id": "7"}]});
    assert_eq!(walk.trade(200, "post", "/v1/orders/batch", &cancel)["results"][0]["error"]["code"], 4);
    walk.trade(400, "post", "/v1/orders/batch", &json!({"commands": []}));
    assert!(walk.trade(200, "post", "/v1/cancel-after", &json!({"timeout_ms": 60_000}))["cancels_at_ns"].is_string());
    walk.trade(200, "post", "/v1/cancel-after", &json!({"timeout_ms": 0}));
    assert_eq!(walk.trade(200, "get", "/v1/cancel-after", &Value::Null)["cancels_at_ns"], Value::Null);
    walk.trade(400, "post", "/v1/cancel-after", &json!({"timeout_ms": "soon"}));
    walk.trade(409, "post", "/v1/cancel-after?session=999999&session_seq=1", &json!({"timeout_ms": 1_000}));
    let all = walk.trade(200, "delete", "/v1/orders?instrument=BTC-USD&side=buy", &Value::Null);
    assert_eq!(all["cancelled"].as_array().unwrap().len(), 1);
    walk.trade(400, "delete", "/v1/orders?side=up", &Value::Null);
    walk.trade(409, "delete", "/v1/orders?instrument=NO-SUCH", &Value::Null);
}

/// Under numbers of a session: each twice.
fn numbered(walk: &mut Walk) {
    let session = walk.trade(200, "post", "/v1/sessions", &json!({"token": "5"}));
    assert_eq!(walk.trade(200, "get", "/v1/sessions", &Value::Null)["sessions"], json!([session]));
    let under = |path: &str, seq: u64| format!("{path}?session={}&session_seq={seq}", session["session"].as_str().unwrap());
    for is_repeated in [false, true] {
        let order = limit(70, "buy", "1", "28000");
        assert_eq!(walk.trade(200, "post", &under("/v1/orders", 1), &order)["repeated"], is_repeated);
        walk.trade(409, "post", &under("/v1/orders", 2), &order);
        let of_it = "/v1/orders/BTC-USD/70";
        assert_eq!(walk.trade(200, "patch", &under(of_it, 3), &json!({"size": "0.5"}))["repeated"], is_repeated);
        assert_eq!(walk.trade(200, "delete", &under(of_it, 4), &Value::Null)["repeated"], is_repeated);
        assert_eq!(walk.trade(200, "delete", &under("/v1/orders", 5), &Value::Null)["repeated"], is_repeated);
    }
}

fn administration(walk: &mut Walk) {
    walk.operate(200, "post", "/v1/admin/assets", &json!({"symbol": "ETH", "decimals": 6}));
    walk.operate(409, "post", "/v1/admin/assets", &json!({"symbol": "ETH", "decimals": 6}));
    let eth = json!({
        "symbol": "ETH/USD", "base": "ETH", "quote": "USD", "tick_size": "0.01", "lot_size": "0.001", "reference_price": "2000",
        "allocation": {"kind": "top_pro_rata", "top_size_max": "10", "min_size": "0.01"}, "collar_ppm": 50_000, "band_ppm": 100_000,
        "default_limits": {"order_size_max": "100", "open_orders_max": 10},
    });
    assert_eq!(walk.operate(200, "post", "/v1/admin/instruments", &eth)["instrument_id"], 1);
    walk.operate(409, "post", "/v1/admin/instruments", &eth);
    walk.operate(200, "post", "/v1/admin/instrument-shards", &json!({"instrument": "ETH-USD", "shard": 0}));
    walk.operate(409, "post", "/v1/admin/instrument-shards", &json!({"instrument": "ETH-USD", "shard": 1}));
    let brought = json!([{"transfer_seq": "1", "account_id": 0, "asset_id": 0, "amount_units": "1"}]);
    let from_nowhere = json!({"from_shard": 1, "to_shard": 0, "transfers": brought});
    walk.operate(409, "post", "/v1/admin/transfers/in", &from_nowhere);
    let shown = walk.get(200, "/v1/instruments")["instruments"][1].clone();
    assert_eq!(
        shown["allocation"],
        eth["allocation"].clone().tap(|a| a["top_size_max"] = "10.000".into(), |a| a["min_size"] = "0.010".into())
    );
    assert_eq!(walk.operate(200, "post", "/v1/admin/accounts", &json!({}))["account_id"], 2);
    let account = walk.operate(200, "get", "/v1/admin/accounts/1", &Value::Null);
    assert_eq!(account["positions"][0]["position"], "-0.5000");
    walk.operate(404, "get", "/v1/admin/accounts/77", &Value::Null);
    walk.operate(400, "get", "/v1/admin/accounts/one", &Value::Null);
    let deposit = json!({"account_id": 2, "asset": "ETH", "amount": "1.5", "transfer_id": "1"});
    walk.operate(200, "post", "/v1/admin/deposits", &deposit);
    walk.operate(409, "post", "/v1/admin/deposits", &deposit);
    let withdrawal = json!({"account_id": 2, "asset": "ETH", "amount": "0.5", "transfer_id": "2"});
    walk.operate(200, "post", "/v1/admin/withdrawals", &withdrawal);
    walk.operate(409, "post", "/v1/admin/withdrawals", &withdrawal);
    let collected = walk.operate(200, "get", "/v1/admin/fees", &Value::Null)["fees"].clone();
    assert_eq!(collected[1], json!({"asset": "USD", "amount": "4.5"}));
    let moved = walk.operate(200, "post", "/v1/admin/fees", &json!({"account_id": 2, "asset": "USD"}));
    assert_eq!((&moved["asset"], &moved["amount"]), (&json!("USD"), &json!("4.5")));
    assert_eq!(walk.operate(200, "get", "/v1/admin/fees", &Value::Null)["fees"][1]["amount"], "0");
    walk.operate(409, "post", "/v1/admin/fees", &json!({"account_id": 77, "asset": "USD"}));
    let funds = walk.operate(200, "get", "/v1/admin/accounts/2", &Value::Null);
    assert_eq!(
        funds["balances"],
        json!([
            {"asset": "USD", "available": "4.5", "reserved": "0"}, {"asset": "ETH", "available": "1", "reserved": "0"},
        ])
    );
    let limits = json!({"account_id": 2, "instrument": "BTC/USD", "limits": {"order_size_max": "1", "order_value_max": "50000", "position_max": "0"}});
    walk.operate(200, "post", "/v1/admin/limits", &limits);
    let shown = walk.operate(200, "get", "/v1/admin/accounts/2", &Value::Null);
    let [of_btc, of_eth] = [0, 1].map(|at| shown["limits"][at]["limits"].clone());
    assert_eq!(
        (&of_btc["order_value_max"], &of_btc["open_orders_max"], &of_eth["position_max"]),
        (&json!("50000"), &json!(10_000), &Value::Null),
        "what was not given is the default"
    );
    assert_eq!(shown["last_transfer_id"], "2");
    let all = walk.operate(200, "get", "/v1/admin/accounts?from=1&limit=1", &Value::Null);
    let keys = &all["accounts"][0]["keys"];
    assert_eq!(all, json!({"accounts": [{"account_id": 1, "status": "active", "keys": keys}], "count": 3, "next": 2}));
    assert!(keys[0].as_str().is_some_and(|id| id.starts_with("hm_")) && keys[1].is_null(), "one key without a name: {keys}");
    assert_eq!(walk.operate(200, "get", "/v1/admin/accounts", &Value::Null)["next"], Value::Null);
    walk.operate(400, "get", "/v1/admin/accounts?from=x", &Value::Null);
    walk.operate(409, "post", "/v1/admin/limits", &json!({"account_id": 77, "instrument": "BTC/USD", "limits": {}}));
    walk.operate(200, "post", "/v1/admin/phases", &json!({"instrument": "ETH-USD", "phase": "pre_open"}));
    walk.operate(409, "post", "/v1/admin/phases", &json!({"instrument": "ETH-USD", "phase": "closing_auction"}));
    walk.operate(200, "post", "/v1/admin/account-status", &json!({"account_id": 2, "status": "suspended"}));
    walk.operate(409, "post", "/v1/admin/account-status", &json!({"account_id": 77, "status": "active"}));
    let made = walk.operate(
        200,
        "post",
        "/v1/admin/keys",
        &json!({"account_id": 2, "permissions": ["read"], "algorithm": "ed25519", "name": "Ann"}),
    );
    assert_eq!(walk.operate(200, "get", "/v1/admin/accounts?from=2", &Value::Null)["accounts"][0]["keys"], json!(["Ann"]));
    walk.operate(400, "post", "/v1/admin/keys", &json!({"account_id": 2, "permissions": ["read"], "name": "\u{1b}[2J"}));
    walk.operate(409, "post", "/v1/admin/keys", &json!({"account_id": 77, "permissions": ["read"]}));
    let listed = walk.operate(200, "get", "/v1/admin/keys", &Value::Null);
    assert!(listed["keys"].as_array().unwrap().iter().any(|key| key["key_id"] == made["key_id"]));
    let last = format!("/v1/admin/keys/{}", walk.operator.key_id());
    walk.operate(409, "delete", &last, &Value::Null);
    let path = format!("/v1/admin/keys/{}", made["key_id"].as_str().unwrap());
    walk.operate(200, "delete", &path, &Value::Null);
    walk.operate(404, "delete", &path, &Value::Null);
    walk.operate(200, "post", "/v1/admin/snapshots", &Value::Null);
    walk.operate(200, "post", "/v1/admin/snapshots", &Value::Null);
    // It is a cluster of one, with nobody to hand over to.
    walk.get(200, "/v1/cluster");
    walk.get(404, "/v1/fair-access");
    walk.operate(409, "post", "/v1/admin/cluster/engine-version", &json!({"engine_version": 1}));
    for (what, replica, status) in [("transfer", 2, 409), ("add", 2, 400), ("remove", 1, 409), ("faults", 2, 404)] {
        walk.operate(status, "post", &format!("/v1/admin/cluster/{what}"), &json!({"replica": replica}));
    }
}

fn batches(walk: &mut Walk) {
    let main = json!({"name": "main", "assets": ["USD", "BTC"], "interval_ms": 5, "commission": 15, "mu": 10, "intake": "filter"});
    let created = walk.operate(200, "post", "/v1/admin/batches", &main);
    walk.operate(409, "post", "/v1/admin/batches", &main);
    let domain = created["domain"].as_str().unwrap().to_owned();
    let signers: Vec<Signer> = [0, 1].map(|account| Signer::new(account, &domain)).into();
    for signer in &signers {
        let key = json!({"account_id": signer.account, "key": signer.public_key()});
        walk.operate(200, "post", "/v1/admin/account-keys", &key);
    }
    walk.operate(409, "post", "/v1/admin/account-keys", &json!({"account_id": 77, "key": Signer::new(77, &domain).public_key()}));
    walk.operate(200, "post", "/v1/admin/issuers", &json!({"asset": "BTC", "account_id": 0}));
    walk.operate(409, "post", "/v1/admin/issuers", &json!({"asset": "BTC", "account_id": 77}));
    // 0.1 BTC for at least 2,900 USD, and 3,000 USD for at least 0.0999 BTC: BTC is asset 0, USD 1.
    let (usd, btc) = (1, 0);
    let sent = json!({"transactions": [
        signers[0].offer(1, btc, usd, 10_000_000, "290"), signers[1].offer(1, usd, btc, 3_000_000_000, "0.00333"),
        signers[0].offer(2, btc, usd, 10_000_000, "900"), "00",
    ]});
    let path = "/v1/batches/main/transactions";
    let bytes = sent.to_string().into_bytes();
    let results = walk.go(200, "post", path, &bytes, None);
    assert_eq!(results["results"][0], json!({"account_id": 0, "sequence": "1", "block": "1"}));
    assert_eq!(results["results"][3]["error"]["code"], 100);
    walk.go(400, "post", path, b"{\"no_such_field\":1}", None);
    walk.go(404, "post", "/v1/batches/none/transactions", &bytes, None);
    walk.go(413, "post", path, json!({"transactions": vec!["00"; 1_001]}).to_string().as_bytes(), None);
    let client = Client::new(&walk.url, None);
    wait_for_transactions(&client, "main", 3);
    assert_eq!(walk.get(200, "/v1/batches")["batches"][0]["name"], "main");
    let metrics = walk.get(200, "/metrics").as_str().unwrap().to_owned();
    for figure in ["walras_batch_idle_blocks{market=\"main\"} 0\n", "walras_batch_collected{market=\"main\"} 0\n"] {
        assert!(metrics.contains(figure), "{figure}: {metrics}");
    }
    walk.get(200, "/v1/batches/main/blocks?limit=5");
    walk.get(400, "/v1/batches/main/blocks?limit=many");
    walk.get(404, "/v1/batches/none/blocks");
    walk.get(200, "/v1/batches/main/blocks/1/header");
    walk.get(400, "/v1/batches/main/blocks/one/header");
    walk.get(404, "/v1/batches/main/blocks/7/header");
    assert_eq!(walk.get(200, "/v1/batches/main/demand?sell=BTC&buy=USD")["points"].as_array().unwrap().len(), 41);
    walk.get(400, "/v1/batches/main/demand?sell=BTC");
    walk.get(404, "/v1/batches/none/demand?sell=BTC&buy=USD");
    walk.get(409, "/v1/batches/main/demand?sell=BTC&buy=BTC");
    let account = |of: &str| format!("/v1/batches/{of}");
    let (own, none) = (account("main/proofs/account/0"), account("main/proofs/account/77"));
    for (path, asked, has) in [(own, 0, true), (none, 77, false)] {
        let said = walk.trade(200, "get", &path, &Value::Null);
        let bytes = |field: &str| unhex(said[field].as_str().unwrap()).unwrap();
        let trusted = unhex(said["roots"]["state"].as_str().unwrap()).unwrap();
        let block = LightBlock::open(&trusted.try_into().unwrap(), &bytes("light_header"), &bytes("light_roots")).unwrap();
        let found = block.account(AccountId(asked), &bytes("statement")).unwrap();
        assert_eq!(found.is_some_and(|state| !state.balances.is_empty()), has, "{said}");
    }
    prove_block(walk);
    prove_transaction(walk);
    // What Bob has is not for Alice to see, and for nobody without a key.
    walk.trade(403, "get", &account("main/proofs/account/1"), &Value::Null);
    walk.get(401, &account("main/proofs/account/1"));
    walk.trade(400, "get", &account("main/proofs/account/one"), &Value::Null);
    walk.trade(404, "get", &account("none/proofs/account/0"), &Value::Null);
    let outcomes = walk.trade(200, "get", "/v1/transactions?limit=10", &Value::Null);
    assert_eq!(outcomes["transactions"][0]["status"], "cleared", "{outcomes}");
    walk.trade(400, "get", "/v1/transactions?limit=65", &Value::Null);
    let number = outcomes["transactions"][0]["sequence"].as_str().unwrap();
    let one = walk.trade(200, "get", &format!("/v1/transactions?sequence={number}"), &Value::Null);
    assert_eq!(one["transactions"], json!([outcomes["transactions"][0]]), "the one of a number");
    let none = walk.trade(200, "get", "/v1/transactions?sequence=274877906943", &Value::Null);
    assert_eq!(none["transactions"], json!([]));
    walk.trade(400, "get", "/v1/transactions?sequence=274877906944", &Value::Null);
    walk.get(401, "/v1/transactions");
    walk.trade(400, "get", "/v1/offers?cursor=x", &Value::Null);
    let offers = walk.trade(200, "get", "/v1/offers", &Value::Null);
    let offer = &offers["offers"][0];
    assert_eq!((&offer["sequence"], &offer["stated_price"], &offer["amount"]), (&json!("2"), &json!("90000"), &json!("0.1")));
    let place = |account: u32, name: &str, buy: &str| {
        let text = |field: &str| offer[field].as_str().unwrap().to_owned();
        let (limit, tie) = (text("limit_bits"), text("tie"));
        format!("/v1/batches/{name}/proofs/offer?account_id={account}&sequence=2&sell=BTC&buy={buy}&limit_bits={limit}&tie={tie}")
    };
    let number = |field: &str| offer[field].as_str().unwrap().parse::<u64>().unwrap();
    for (account, stands) in [(0, Some(10_000_000)), (1, None)] {
        let said = walk.get(200, &place(account, "main", "USD"));
        let bytes = |field: &str| unhex(said[field].as_str().unwrap()).unwrap();
        let trusted = unhex(said["roots"]["state"].as_str().unwrap()).unwrap();
        let block = LightBlock::open(&trusted.try_into().unwrap(), &bytes("light_header"), &bytes("light_roots")).unwrap();
        let id = OfferId(OfferName { account: AccountId(account), sequence: TransactionSeq(2) }.number());
        let key = OfferKey { limit: BatchPrice::from_bits(number("limit_bits")).unwrap(), tie: number("tie"), id };
        // The market's assets are USD and BTC, in this order.
        let pair = Pair { sell: AssetIndex(1), buy: AssetIndex(0) };
        let found = block.offer(pair, &key, &bytes("statement")).unwrap();
        assert_eq!(found.map(|offer| offer.amount().get()), stands);
    }
    walk.get(400, "/v1/batches/main/proofs/offer?account_id=0");
    walk.get(404, &place(0, "none", "USD"));
    walk.get(409, &place(0, "main", "XYZ"));
    pools(walk, &signers[0]);
    walk.operate(200, "post", "/v1/admin/batch-phases", &json!({"batch": "main", "phase": "closed"}));
    walk.operate(409, "post", "/v1/admin/batch-phases", &json!({"batch": "none", "phase": "closed"}));
    walk.operate(200, "post", "/v1/admin/account-fees", &json!({"batch": "main", "account_fee": "0.5 USD"}));
    assert_eq!(walk.get(200, "/v1/batches")["batches"][0]["account_fee_next"], json!({"amount": "0.5", "asset": "USD"}));
    walk.operate(400, "post", "/v1/admin/account-fees", &json!({"batch": "main", "account_fee": "0 USD"}));
    walk.operate(409, "post", "/v1/admin/account-fees", &json!({"batch": "main", "account_fee": "1 NONE"}));
    walk.operate(409, "post", "/v1/admin/account-fees", &json!({"batch": "none", "account_fee": "none"}));
    walk.operate(200, "post", "/v1/admin/account-fees", &json!({"batch": "main", "account_fee": "none"}));
    assert_eq!(walk.get(200, "/v1/batches")["batches"][0]["account_fee"], Value::Null);
}

fn opened(said: &Value) -> LightBlock {
    let bytes = |text: &Value| unhex(text.as_str().unwrap()).unwrap();
    let trusted = bytes(&said["roots"]["state"]).try_into().unwrap();
    LightBlock::open(&trusted, &bytes(&said["light_header"]), &bytes(&said["light_roots"])).unwrap()
}

fn prove_block(walk: &mut Walk) {
    let said = walk.get(200, "/v1/batches/main/proofs/block?block=1&asset=BTC&sell=BTC&buy=USD");
    assert_eq!((&said["asset_index"], &said["sell_index"], &said["buy_index"]), (&json!(1), &json!(1), &json!(0)));
    let (block, bytes) = (opened(&said), |field: &str| unhex(said[field].as_str().unwrap()).unwrap());
    let pair = Pair { sell: AssetIndex(1), buy: AssetIndex(0) };
    assert_eq!((block.header().number, block.full()), (1, None));
    // What is proven is what the full header says.
    let full = walk.get(200, "/v1/batches/main/blocks/1/header");
    let full = unhex(full["header"].as_str().unwrap()).unwrap();
    let trusted = unhex(said["roots"]["state"].as_str().unwrap()).unwrap().try_into().unwrap();
    let full = LightBlock::open(&trusted, &full, &bytes("light_roots")).unwrap();
    let full = full.full().unwrap();
    let traded = full.trades.iter().find(|(trade, _)| trade.pair == pair).copied();
    assert_eq!(block.trade(pair, &bytes("trade_statement")), Ok(traded));
    assert_eq!(block.price(AssetIndex(1), &bytes("price_statement")), Ok(full.prices[1]));
    assert_eq!(opened(&walk.get(200, "/v1/batches/main/proofs/block")).header().market.0, 0);
    walk.get(404, "/v1/batches/main/proofs/block?block=77");
    walk.get(404, "/v1/batches/none/proofs/block");
    walk.get(400, "/v1/batches/main/proofs/block?sell=BTC");
    walk.get(400, "/v1/batches/main/proofs/block?sell=BTC&buy=BTC");
    walk.get(409, "/v1/batches/main/proofs/block?asset=XYZ");
}

fn prove_transaction(walk: &mut Walk) {
    let path = |rest: &str| format!("/v1/batches/main/proofs/transaction/{rest}");
    let said = walk.trade(200, "get", &path("2"), &Value::Null);
    let statement = |said: &Value| unhex(said["statement"].as_str().unwrap()).unwrap();
    let name = |sequence| OfferName { account: AccountId(0), sequence: TransactionSeq(sequence) };
    let outcome = opened(&said).outcome(name(2), &statement(&said)).unwrap().unwrap();
    assert!(matches!(outcome.operation, Some(BatchOperation::CreateOffer(_))), "{outcome:?}");
    assert_eq!((outcome.traded, &said["blocks"][0]), (None, &said["block"]));
    let none = walk.trade(200, "get", &path("40?block=1"), &Value::Null);
    assert_eq!(opened(&none).outcome(name(40), &statement(&none)), Ok(None));
    walk.trade(404, "get", &path("40"), &Value::Null);
    walk.trade(404, "get", &path("2?block=77"), &Value::Null);
    walk.trade(400, "get", &path("two"), &Value::Null);
    walk.get(401, &path("2"));
}

/// 10 BTC and 290,000 USD, so a price of 29,000.
fn pools(walk: &mut Walk, signer: &Signer) {
    assert_eq!(walk.get(200, "/v1/batches/main/pools"), json!({"pools": []}));
    let amounts = [1_000_000_000, 290_000_000_000].map(|units| Amount::new(units).unwrap());
    let (assets, rule) = ([AssetId(0), AssetId(1)], PoolRule::Weighted { weights: [1, 1] });
    let create = CreatePool { market: BatchMarketId(0), assets, rule, fee_ppm: 3_000, amounts };
    let sent = signer.sign(30, BatchOperation::CreatePool(create));
    walk.go(200, "post", "/v1/batches/main/transactions", json!({"transactions": [sent]}).to_string().as_bytes(), None);
    let client = Client::new(&walk.url, None);
    until_some("the pool's block is cleared", || {
        let said = client.get("/v1/batches/main/proofs/pool?account_id=0&sequence=30").ok()?;
        let pools = client.get("/v1/batches/main/pools").unwrap();
        pools["pools"][0].is_object().then_some(said)
    });
    let pool = walk.get(200, "/v1/batches/main/pools")["pools"][0].clone();
    assert_eq!((&pool["first"], &pool["second"], &pool["weights"]), (&json!("BTC"), &json!("USD"), &json!([1, 1])));
    assert_eq!((&pool["reserves"], &pool["shares"]), (&json!(["10", "290000"]), &json!("1000000000")));
    walk.get(404, "/v1/batches/none/pools");
    let own = walk.trade(200, "get", "/v1/shares", &Value::Null)["shares"][0].clone();
    assert_eq!((&own["worth"], &own["shares"]), (&pool["reserves"], &pool["shares"]));
    let place = |what: &str, of: &str, sequence: &str| format!("/v1/batches/{of}/proofs/{what}?account_id=0&sequence={sequence}");
    let statement = |said: &Value| unhex(said["statement"].as_str().unwrap()).unwrap();
    let name = |sequence| OfferName { account: AccountId(0), sequence: TransactionSeq(sequence) };
    let said = walk.get(200, &place("pool", "main", "30"));
    let proven = opened(&said).pool(name(30), &statement(&said)).unwrap().unwrap();
    // The market's assets are USD and BTC, in this order.
    assert_eq!((proven.pool.reserves, proven.pool.assets), (amounts, [AssetIndex(1), AssetIndex(0)]));
    let none = walk.get(200, &place("pool", "main", "31"));
    assert_eq!(opened(&none).pool(name(31), &statement(&none)), Ok(None));
    let said = walk.trade(200, "get", &place("shares", "main", "30"), &Value::Null);
    assert_eq!(opened(&said).pool_shares(name(30), AccountId(0), &statement(&said)), Ok(amounts[0]));
    walk.get(400, &place("pool", "main", "x"));
    walk.get(404, &place("pool", "none", "30"));
    walk.trade(400, "get", &place("shares", "main", "x"), &Value::Null);
    walk.trade(404, "get", &place("shares", "none", "30"), &Value::Null);
}

trait Tap: Sized {
    fn tap(self, one: impl FnOnce(&mut Self), two: impl FnOnce(&mut Self)) -> Self;
}

impl Tap for Value {
    fn tap(mut self, one: impl FnOnce(&mut Self), two: impl FnOnce(&mut Self)) -> Self {
        one(&mut self);
        two(&mut self);
        self
    }
}

/// What every signed operation refuses in the same way.
fn refusals_of_all(walk: &mut Walk) {
    for (method, path) in operations(&walk.document) {
        let operation = walk.document["paths"][&path][&method].clone();
        let Some(permission) = operation["security"][0]["key"][0].as_str().map(str::to_owned) else { continue };
        let path = path
            .replace("{instrument}", "BTC-USD")
            .replace("{client_order_id}", "1")
            .replace("{account_id}", "0")
            .replace("{batch}", "main")
            .replace("{key_id}", "hm_none");
        walk.go(401, &method, &path, b"{}", None);
        let (reader, operator, trader) = (walk.reader.clone(), walk.operator.clone(), walk.trader.clone());
        let lacks = match permission.as_str() {
            "read" => &operator,
            "trade" => &reader,
            _ => &trader,
        };
        walk.go(403, &method, &path, b"{}", Some(lacks));
        if operation["requestBody"].is_object() {
            let may = if permission == "operator" { &operator } else { &trader };
            walk.go(400, &method, &path, b"{\"no_such_field\":", Some(may));
            walk.go(400, &method, &path, b"{\"no_such_field\":1}", Some(may));
            walk.go(413, &method, &path, &[b' '; 20_000], Some(may));
        }
    }
}

#[test]
fn the_errors_body_is_documented() {
    let venue = Venue::start();
    let answer = Raw { method: "GET", path: "/v1/nothing", body: b"", key: None }.send(&venue.url());
    assert_eq!((answer.status, answer.code()), (404, 109));
    check_named(&document(), "Error", &answer.json());
    let answer = Raw { method: "PUT", path: "/v1/orders", body: b"", key: None }.send(&venue.url());
    assert_eq!((answer.status, answer.code()), (405, 109));
    let said = &answer.json()["error"];
    assert!(said["message"].as_str().is_some_and(|message| message.contains("takes other methods")), "{said}");
    assert_eq!(said["detail"], "PUT /v1/orders");
}

#[test]
fn every_answer_is_fenced_in_for_browsers() {
    let venue = Venue::start();
    for path in ["/", "/v1/status", "/v1/nothing"] {
        let answer = Raw { method: "GET", path, body: b"", key: None }.send(&venue.url());
        let header = |name: &str| answer.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
        assert_eq!(header("content-security-policy"), "default-src 'self'", "{path}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header("x-frame-options"), "DENY", "{path}");
        assert_eq!(header("referrer-policy"), "no-referrer", "{path}");
        assert_eq!(header("access-control-allow-origin"), "", "no other site may read answers");
    }
    let page = Raw { method: "GET", path: "/", body: b"", key: None }.send(&venue.url());
    assert_eq!(page.status, 200);
    assert!(page.content_type.starts_with("text/html"));
}
