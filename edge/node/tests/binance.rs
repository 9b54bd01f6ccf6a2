//! The dialect of `docs/binance.md` from outside: signatures that are taken once, whoever asks wrongly, and slow readers.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::Message;
use tungstenite::stream::MaybeTlsStream;
use walras_access::connections::Doors;
use walras_access::{Access, Clock, Start, now, operator_key_file};
use walras_client::{Client, read_key};
use walras_config::Config;
use walras_gateway::ClientKey;
use walras_node::node::Node;
use walras_types::TimeNs;
use walras_wait::until_some;

struct Venue {
    node: Option<Node>,
    config: Config,
    _folder: TempDir,
    key: ClientKey,
}

impl Venue {
    fn start() -> Self {
        let mut config = Config::default();
        config.http.listen = "127.0.0.1:0".into();
        config.order_entry.listen = "127.0.0.1:0".into();
        config.binance.listen = "127.0.0.1:0".into();
        config.log.segment_bytes = 1 << 20;
        config.websocket.updates_per_second = 100;
        let folder = tempfile::tempdir().unwrap();
        let node = Node::start(folder.path(), &config).unwrap();
        let url = format!("http://{}", node.address());
        let operator = Client::new(&url, Some(read_key(&operator_key_file(folder.path())).unwrap()));
        let post = |path: &str, body: Value| operator.signed("POST", path, Some(&body)).unwrap();
        for (symbol, decimals) in [("BTC", 8), ("USD", 6)] {
            post("/v1/admin/assets", json!({"symbol": symbol, "decimals": decimals}));
        }
        let instrument = json!({
            "symbol": "BTC/USD", "base": "BTC", "quote": "USD", "tick_size": "0.01", "lot_size": "0.0001", "reference_price": "30000",
        });
        post("/v1/admin/instruments", instrument);
        post("/v1/admin/phases", json!({"instrument": "BTC/USD", "phase": "continuous"}));
        post("/v1/admin/accounts", json!({}));
        post("/v1/admin/deposits", json!({"account_id": 0, "asset": "USD", "amount": "1000000", "transfer_id": "1"}));
        let made = post("/v1/admin/keys", json!({"account_id": 0, "permissions": ["read", "trade"]}));
        let key = ClientKey::from_token(made["key"].as_str().unwrap()).unwrap();
        Self { node: Some(node), config, _folder: folder, key }
    }

    /// Stops it, and starts it again on its data.
    fn restart(&mut self) {
        self.node.take().unwrap().stop();
        let node = Node::start(self._folder.path(), &self.config).unwrap();
        // No stamp of the time before is taken.
        let from = until_some("the venue says from when on it takes stamps", || {
            let status = Client::new(&format!("http://{}", node.address()), None).get("/v1/status").ok()?;
            status["accepts_timestamps_from_ns"].as_str()?.parse::<u64>().ok()
        });
        walras_wait::until("stamps of now are taken", || now().0 > from + 1_000_000);
        self.node = Some(node);
    }

    fn node(&self) -> &Node {
        self.node.as_ref().unwrap()
    }

    fn url(&self) -> String {
        format!("http://{}", self.node().binance_address().unwrap())
    }

    /// A text with its signature.
    fn signed(&self, text: &str) -> String {
        let text = format!("{text}&timestamp={}", now().0 / 1_000_000);
        format!("{text}&signature={}", self.key.sign_text(text.as_bytes()))
    }

    fn send(&self, url: &str, method: &str, path: &str, text: &str) -> (u16, Value) {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let key = self.key.key_id().to_string();
        let url = format!("{url}{path}");
        let mut answer = match method {
            "GET" => agent.get(format!("{url}?{text}")).header("X-MBX-APIKEY", &key).call(),
            "DELETE" => agent.delete(format!("{url}?{text}")).header("X-MBX-APIKEY", &key).call(),
            _ => agent.post(url).header("X-MBX-APIKEY", &key).send(text),
        }
        .unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        (answer.status().as_u16(), serde_json::from_str(&text).unwrap())
    }

    fn code(&self, method: &str, path: &str, text: &str) -> (u16, i64) {
        let (status, answer) = self.send(&self.url(), method, path, text);
        (status, answer["code"].as_i64().unwrap_or_else(|| panic!("{answer}")))
    }
}

impl Drop for Venue {
    fn drop(&mut self) {
        if let Some(node) = self.node.take() {
            node.stop();
        }
    }
}

const ORDER: &str = "symbol=BTCUSD&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.1&price=29000";

#[test]
fn a_signed_text_is_taken_once_here_and_at_another_gate() {
    let venue = Venue::start();
    let text = venue.signed(ORDER);
    let (status, placed) = venue.send(&venue.url(), "POST", "/api/v3/order", &text);
    assert_eq!((status, placed["status"].as_str()), (200, Some("NEW")), "{placed}");
    assert_eq!(venue.code("POST", "/api/v3/order", &text), (400, -1021));
    // In the query it is the same text.
    assert_eq!(venue.code("GET", "/api/v3/order", &text), (400, -1021));

    // Another gate before the same log, as another replica's: it has not seen the text, and the log has.
    let other = tempfile::tempdir().unwrap();
    let start = Start { started: TimeNs(0), log_time: TimeNs(0) };
    let gate = Access::open(other.path(), venue.config.throttle.rates(), Clock::system(), start).unwrap();
    for news in venue.node().access().all_news() {
        gate.take_news(&news).unwrap();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (stop, stopping) = tokio::sync::watch::channel(false);
    let config = Arc::new(venue.config.clone());
    let server = {
        let _context = runtime.enter();
        walras_binance::bind(&config).unwrap()
    };
    let url = format!("http://{}", server.as_ref().unwrap().address());
    let app = walras_binance::App::new(venue.node().venue(), Arc::new(gate), config, runtime.handle().clone(), stopping);
    let places = venue.config.places();
    let status = venue.node().venue().status().clone();
    let served = runtime.spawn(walras_binance::serve(server, app, status, (Doors::new(places), places)));
    let (status, refused) = venue.send(&url, "POST", "/api/v3/order", &text);
    assert_eq!((status, refused["code"].as_i64()), (400, Some(-1021)), "{refused}");
    // A cancel and what replaces it are two commands, and a copy of them is none.
    let replace = format!(
        "{ORDER}&cancelReplaceMode=ALLOW_FAILURE&cancelOrderId={}&newClientOrderId=again",
        placed["orderId"].as_u64().unwrap()
    );
    let text = venue.signed(&replace);
    let (status, replaced) = venue.send(&venue.url(), "POST", "/api/v3/order/cancelReplace", &text);
    assert_eq!((status, replaced["newOrderResult"].as_str()), (200, Some("SUCCESS")), "{replaced}");
    let (status, refused) = venue.send(&url, "POST", "/api/v3/order/cancelReplace", &text);
    assert!(status >= 400, "{refused}");
    let (_, open) = venue.send(&venue.url(), "GET", "/api/v3/openOrders", &venue.signed("symbol=BTCUSD"));
    assert_eq!(open.as_array().map(Vec::len), Some(1), "{open}");
    stop.send(true).unwrap();
    runtime.block_on(served).unwrap();
}

#[test]
fn what_is_wrong_has_its_number_and_the_next_request_is_served() {
    let venue = Venue::start();
    let wrong = |text: &str, code: i64| assert_eq!(venue.code("POST", "/api/v3/order", &venue.signed(text)).1, code, "{text}");
    wrong(&ORDER.replace("29000", "1e5"), -1100);
    wrong(&ORDER.replace("29000", "-1"), -1100);
    wrong(&ORDER.replace("29000", "99999999999999999999"), -1013);
    wrong(&ORDER.replace("29000", "29000.001"), -1013);
    wrong(&ORDER.replace("29000", "0"), -1013);
    wrong(&ORDER.replace("BTCUSD", "NOPE"), -1121);
    wrong(&ORDER.replace("=BUY", "=HOLD"), -1117);
    wrong(&ORDER.replace("=LIMIT", "=PEG"), -1116);
    wrong(&ORDER.replace("=GTC", "=GTX"), -1115);
    wrong(&ORDER.replace("=LIMIT", "=TAKE_PROFIT"), -1102);
    wrong(&format!("{ORDER}&quantity=1"), -1101);
    wrong(&format!("{ORDER}&what=1"), -1104);
    wrong(&format!("{ORDER}&newClientOrderId=a%20b"), -1100);
    wrong(&format!("{ORDER}&recvWindow=60001"), -1131);
    wrong(&format!("{ORDER}&icebergQty=0.1"), -1013);
    wrong(&ORDER.replace("0.1", "100000"), -2010);
    assert_eq!(venue.code("POST", "/api/v3/order", ORDER), (400, -1102));
    assert_eq!(venue.code("POST", "/api/v3/order", ""), (400, -1102));
    assert_eq!(venue.code("POST", "/api/v3/order", &"x".repeat(40_000)), (413, -1013));
    assert_eq!(venue.code("POST", "/api/v3/order", &"a&".repeat(2_000)), (400, -1101));
    assert_eq!(venue.code("GET", "/api/v3/nothing", ""), (404, -1020));
    assert_eq!(venue.code("DELETE", "/api/v3/depth", ""), (405, -1020));
    let late = format!("{ORDER}&timestamp={}", now().0 / 1_000_000 - 6_000);
    let late = format!("{late}&signature={}", venue.key.sign_text(late.as_bytes()));
    assert_eq!(venue.code("POST", "/api/v3/order", &late), (400, -1021));
    let early = format!("{ORDER}&timestamp={}", now().0 / 1_000_000 + 6_000);
    let early = format!("{early}&signature={}", venue.key.sign_text(early.as_bytes()));
    assert_eq!(venue.code("POST", "/api/v3/order", &early), (400, -1021));
    // What was signed is what counts.
    let changed = venue.signed(ORDER).replace("0.1", "0.2");
    assert_eq!(venue.code("POST", "/api/v3/order", &changed), (400, -1022));
    let (status, placed) = venue.send(&venue.url(), "POST", "/api/v3/order", &venue.signed(ORDER));
    assert_eq!(status, 200, "{placed}");
}

#[test]
fn a_trailing_stop_goes_by_its_delta() {
    let venue = Venue::start();
    let stop = "symbol=BTCUSD&side=BUY&type=STOP_LOSS&quantity=0.1&trailingDelta=150&newOrderRespType=RESULT";
    let order = |text: &str| venue.send(&venue.url(), "POST", "/api/v3/order", &venue.signed(text));
    let (status, placed) = order(stop);
    assert_eq!((status, &placed["type"], &placed["trailingDelta"]), (200, &"STOP_LOSS".into(), &150.into()), "{placed}");
    assert!(placed.get("stopPrice").is_none() && placed["workingTime"] == -1, "{placed}");
    let (status, limit) =
        order("symbol=BTCUSD&side=BUY&type=STOP_LOSS_LIMIT&timeInForce=GTC&quantity=0.1&price=30100&trailingDelta=1");
    assert_eq!(status, 200, "{limit}");
    let (_, open) = venue.send(&venue.url(), "GET", "/api/v3/openOrders", &venue.signed("symbol=BTCUSD"));
    let deltas: Vec<_> = open.as_array().unwrap().iter().map(|order| (&order["type"], &order["trailingDelta"])).collect();
    assert_eq!(deltas, [(&"STOP_LOSS".into(), &150.into()), (&"STOP_LOSS_LIMIT".into(), &1.into())], "{open}");
    let wrong = |text: &str, code: i64| assert_eq!(venue.code("POST", "/api/v3/order", &venue.signed(text)).1, code, "{text}");
    wrong(&stop.replace("=150", "=0"), -1013);
    wrong(&stop.replace("=150", "=10000"), -1013);
    wrong(&stop.replace("=150", "=1.5"), -1100);
    wrong(&format!("{stop}&stopPrice=29000"), -2010);
    wrong(&stop.replace("STOP_LOSS", "TAKE_PROFIT"), -2010);
    wrong(&format!("{ORDER}&trailingDelta=150"), -1106);
}

#[test]
fn pending_orders_come_before_the_one_that_they_wait_for() {
    let venue = Venue::start();
    let list = |path: &str, text: &str| venue.send(&venue.url(), "POST", &format!("/api/v3/orderList/{path}"), &venue.signed(text));
    let open = || {
        let (_, open) = venue.send(&venue.url(), "GET", "/api/v3/openOrders", &venue.signed("symbol=BTCUSD"));
        open.as_array().unwrap().len()
    };
    let working = "symbol=BTCUSD&workingType=LIMIT&workingTimeInForce=GTC&workingSide=BUY&workingQuantity=0.1&workingPrice=29000";
    let two = "pendingSide=SELL&pendingQuantity=0.1&pendingAboveType=TAKE_PROFIT&pendingAboveStopPrice=31000\
               &pendingBelowType=STOP_LOSS_LIMIT&pendingBelowStopPrice=28000&pendingBelowPrice=27990&pendingBelowTimeInForce=GTC";
    let (status, placed) = list("otoco", &format!("{working}&{two}"));
    assert_eq!((status, &placed["contingencyType"]), (200, &"OTO".into()), "{placed}");
    let reports = placed["orderReports"].as_array().unwrap();
    let says: Vec<_> = reports.iter().map(|one| (one["type"].as_str().unwrap(), one["status"].as_str().unwrap())).collect();
    assert_eq!(says, [("LIMIT", "NEW"), ("TAKE_PROFIT", "PENDING_NEW"), ("STOP_LOSS_LIMIT", "PENDING_NEW")], "{placed}");
    assert_eq!(open(), 3);
    let cancel = format!("symbol=BTCUSD&orderId={}", reports[2]["orderId"]);
    let (status, _) = venue.send(&venue.url(), "DELETE", "/api/v3/order", &venue.signed(&cancel));
    assert_eq!((status, open()), (200, 0), "all of a list go with one of them");
    let one = "pendingSide=SELL&pendingQuantity=0.1&pendingType=STOP_LOSS&pendingStopPrice=28000";
    let (status, placed) = list("oto", &format!("{working}&{one}"));
    assert_eq!((status, placed["orders"].as_array().unwrap().len(), open()), (200, 2, 2), "{placed}");
    for (text, code) in [
        (format!("{working}&{}", one.replace("SELL", "BUY")), -2010),
        (format!("{working}&{}", one.replace("=0.1", "=0.2")), -2010),
        (format!("{working}&{}&pendingPrice=31000", one.replace("STOP_LOSS&pendingStopPrice=28000", "LIMIT_MAKER")), -2010),
        (format!("{}&{one}", working.replace("=0.1", "=99").replace("29000", "29001")), -2010),
        (working.to_owned(), -1102),
    ] {
        let (_, answer) = list(
            "oto",
            &text.replace("pendingQuantity=0.1", if text.contains("=99") { "pendingQuantity=99" } else { "pendingQuantity=0.1" }),
        );
        assert_eq!(answer["code"], code, "{text}: {answer}");
    }
    assert_eq!(open(), 2, "of what was refused nothing is left");
    let kill = working.replace("GTC", "FOK");
    let (status, placed) = list("oto", &format!("{kill}&{one}"));
    assert_eq!((status, &placed["orderReports"][0]["status"], open()), (200, &"EXPIRED".into(), 2), "{placed}");
}

#[test]
fn a_stream_answers_what_is_wrong_and_goes_on() {
    let venue = Venue::start();
    let ws = venue.url().replace("http", "ws");
    let (mut socket, _) = tungstenite::connect(format!("{ws}/ws/btcusd@bookTicker")).unwrap();
    let names: Vec<String> = (0..1_025).map(|_| "btcusd@trade".to_owned()).collect();
    socket.send(Message::text(json!({"method": "SUBSCRIBE", "params": names, "id": 1}).to_string())).unwrap();
    for text in ["{", r#"{"method": "SUBSCRIBE", "params": ["nope@trade"], "id": 2}"#, r#"{"method": "SELL", "id": 3}"#] {
        socket.send(Message::text(text)).unwrap();
    }
    let mut next = || {
        until_some("the stream says something", || match socket.read().unwrap() {
            Message::Text(text) => Some(serde_json::from_str::<Value>(&text).unwrap()),
            _ => None,
        })
    };
    let mut codes = Vec::new();
    while codes.len() < 4 {
        codes.extend(next()["error"]["code"].as_i64());
    }
    assert_eq!(codes, [2, 3, 2, 2]);
    let (status, answer) = venue.send(&venue.url(), "POST", "/api/v3/order", &venue.signed(ORDER));
    assert_eq!(status, 200, "{answer}");
    let mut best = next();
    while best["b"] != "29000.00" {
        best = next();
    }
}

/// The stream reports an order list when it begins, and when both of its orders have ended, however they end.
#[test]
fn an_accounts_stream_has_the_status_of_order_lists() {
    let venue = Venue::start();
    let url = format!("http://{}", venue.node().address());
    let operator = Client::new(&url, Some(read_key(&operator_key_file(venue._folder.path())).unwrap()));
    let post = |path: &str, body: Value| operator.signed("POST", path, Some(&body)).unwrap();
    post("/v1/admin/accounts", json!({}));
    post("/v1/admin/deposits", json!({"account_id": 1, "asset": "BTC", "amount": "10", "transfer_id": "1"}));
    let made = post("/v1/admin/keys", json!({"account_id": 1, "permissions": ["read", "trade"]}));
    let seller = Client::new(&url, Some(ClientKey::from_token(made["key"].as_str().unwrap()).unwrap()));

    let oco = "symbol=BTCUSD&side=BUY&quantity=0.1&aboveType=STOP_LOSS&aboveStopPrice=31000&aboveClientOrderId=protects\
               &belowType=LIMIT_MAKER&belowPrice=29000&belowClientOrderId=takes";
    let place = || {
        let (status, placed) = venue.send(&venue.url(), "POST", "/api/v3/orderList/oco", &venue.signed(oco));
        assert_eq!(status, 200, "{placed}");
        placed
    };

    let (_, opened) = venue.send(&venue.url(), "POST", "/api/v3/userDataStream", "");
    let ws = venue.url().replace("http", "ws");
    let (mut socket, _) = tungstenite::connect(format!("{ws}/ws/{}", opened["listenKey"].as_str().unwrap())).unwrap();
    let MaybeTlsStream::Plain(stream) = socket.get_ref() else { panic!("the venue has no TLS") };
    stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut next = || match socket.read() {
        Ok(Message::Text(text)) => Some(serde_json::from_str::<Value>(&text).unwrap()),
        Ok(_) => None,
        Err(tungstenite::Error::Io(e)) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
        Err(e) => panic!("the stream ended: {e}"),
    };
    let cancel = |id: u64| {
        let cancel = format!("symbol=BTCUSD&orderListId={id}");
        venue.send(&venue.url(), "DELETE", "/api/v3/orderList", &venue.signed(&cancel))
    };
    // The stream does not report what came before it knew the account.
    let mut is_open = false;
    while !is_open {
        cancel(place()["orderListId"].as_u64().unwrap());
        is_open = next().is_some();
    }
    let last = place()["orderListId"].as_u64().unwrap();
    cancel(last);
    let is_done = |said: &Value| said["e"] == "listStatus" && said["g"] == last && said["l"] == "ALL_DONE";
    until_some("the stream reports the list", || next().filter(is_done));
    // All that the stream says of orders and lists, up to the next status of a list.
    let mut until_status = || {
        let mut reports = Vec::new();
        loop {
            let said = until_some("the stream says something", &mut next);
            match said["e"].as_str() {
                Some("executionReport") => reports.push(said),
                Some("listStatus") => return (reports, said),
                _ => {}
            }
        }
    };
    let placed = place();
    let (reports, begun) = until_status();
    let id = placed["orderListId"].as_u64().unwrap();
    assert_eq!((&begun["g"], &begun["l"], &begun["L"]), (&json!(id), &json!("EXEC_STARTED"), &json!("EXECUTING")), "{begun}");
    assert_eq!((&begun["s"], &begun["c"], &begun["r"]), (&json!("BTCUSD"), &json!("OCO"), &json!("NONE")));
    let legs: Vec<_> = begun["O"].as_array().unwrap().iter().map(|leg| (&leg["c"], leg["i"].as_u64().unwrap())).collect();
    let named: Vec<_> = reports.iter().map(|report| (&report["c"], report["i"].as_u64().unwrap())).collect();
    assert_eq!((legs.clone(), legs[1].1), (named, id), "{begun}");
    assert_eq!((legs[0].0, legs[1].0), (&json!("protects"), &json!("takes")));
    assert!(reports.iter().all(|report| report["x"] == "NEW"), "{reports:?}");
    assert_eq!(reports[1]["g"], id, "the later one is in the list from the beginning");

    // Cancelled together.
    let (status, done) = cancel(id);
    assert_eq!((status, &done["listOrderStatus"]), (200, &json!("ALL_DONE")), "{done}");
    let (reports, done) = until_status();
    assert_eq!((&done["g"], &done["l"], &done["L"]), (&json!(id), &json!("ALL_DONE"), &json!("ALL_DONE")), "{done}");
    assert!(reports.len() == 2 && reports.iter().all(|report| report["g"] == id), "{reports:?}");
    let kinds: Vec<_> = reports.iter().map(|report| report["x"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["EXPIRED", "CANCELED"], "the other one was asked for");

    // One trades in part: the other is gone, and the list is done when the rest has traded.
    let id = place()["orderListId"].as_u64().unwrap();
    let (_, begun) = until_status();
    assert_eq!((&begun["g"], &begun["l"]), (&json!(id), &json!("EXEC_STARTED")));
    let sell = |name: &str, size: &str| {
        let order = json!({
            "instrument": "BTC-USD", "client_order_id": name, "side": "sell", "type": "limit", "size": size, "price": "29000",
            "time_in_force": "ioc",
        });
        seller.signed("POST", "/v1/orders", Some(&order)).unwrap();
    };
    sell("1", "0.04");
    sell("2", "0.06");
    let (reports, done) = until_status();
    assert_eq!((&done["g"], &done["l"], &done["L"]), (&json!(id), &json!("ALL_DONE"), &json!("ALL_DONE")), "{done}");
    let of = |name: &str| -> Vec<&str> {
        reports.iter().filter(|report| report["c"] == name).map(|report| report["X"].as_str().unwrap()).collect()
    };
    assert_eq!((of("protects"), of("takes")), (vec!["EXPIRED"], vec!["PARTIALLY_FILLED", "FILLED"]), "{reports:?}");
    assert!(reports.iter().all(|report| report["g"] == id), "{reports:?}");
}

/// What an order is called and how it ended is known of an ended one, too, and after a restart.
#[test]
fn an_order_that_ended_keeps_its_name_and_its_end() {
    let mut venue = Venue::start();
    let long = "x-HNA2TXFJ:bot/a.b_c-0123456789abcde";
    assert_eq!(long.len(), 36);
    let get = |venue: &Venue, path: &str, text: &str| {
        let (status, answer) = venue.send(&venue.url(), "GET", path, &venue.signed(text));
        assert_eq!(status, 200, "{answer}");
        answer
    };
    let (status, placed) =
        venue.send(&venue.url(), "POST", "/api/v3/order", &venue.signed(&format!("{ORDER}&newClientOrderId={long}")));
    assert_eq!((status, placed["clientOrderId"].as_str()), (200, Some(long)), "{placed}");
    let id = placed["orderId"].as_u64().unwrap();
    let of_name = format!("symbol=BTCUSD&origClientOrderId={long}");
    assert_eq!(get(&venue, "/api/v3/order", &of_name)["status"], "NEW");
    let (status, gone) = venue.send(&venue.url(), "DELETE", "/api/v3/order", &venue.signed(&of_name));
    assert_eq!((status, gone["origClientOrderId"].as_str()), (200, Some(long)), "{gone}");
    let (_, open) = venue.send(&venue.url(), "POST", "/api/v3/order", &venue.signed(&format!("{ORDER}&newClientOrderId=second")));
    let check = |venue: &Venue| {
        for asked in [of_name.clone(), format!("symbol=BTCUSD&orderId={id}")] {
            let order = get(venue, "/api/v3/order", &asked);
            let seen = (order["status"].as_str(), order["clientOrderId"].as_str(), order["origQty"].as_str());
            assert_eq!(seen, (Some("CANCELED"), Some(long), Some("0.1000")), "{order}");
        }
        let all = get(venue, "/api/v3/allOrders", "symbol=BTCUSD");
        let all: Vec<_> =
            all.as_array().unwrap().iter().map(|order| (order["orderId"].as_u64(), order["status"].clone())).collect();
        assert_eq!(all, [(Some(id), json!("CANCELED")), (open["orderId"].as_u64(), json!("NEW"))]);
        let from = get(venue, "/api/v3/allOrders", &format!("symbol=BTCUSD&limit=1&orderId={}", id + 1));
        assert_eq!(from[0]["clientOrderId"], "second", "{from}");
        assert_eq!(get(venue, "/api/v3/myTrades", "symbol=BTCUSD"), json!([]));
    };
    check(&venue);
    // The name of one that ended is free again, and means the newer one.
    let (status, again) =
        venue.send(&venue.url(), "POST", "/api/v3/order", &venue.signed(&format!("{ORDER}&newClientOrderId={long}")));
    assert_eq!(status, 200, "{again}");
    assert_eq!(get(&venue, "/api/v3/order", &of_name)["orderId"], again["orderId"]);
    let (status, answer) = venue.send(&venue.url(), "DELETE", "/api/v3/order", &venue.signed(&of_name));
    assert_eq!(status, 200, "{answer}");
    venue.restart();
    let order = get(&venue, "/api/v3/order", &of_name);
    assert_eq!((&order["status"], &order["orderId"]), (&json!("CANCELED"), &again["orderId"]), "{order}");
    let order = get(&venue, "/api/v3/order", &format!("symbol=BTCUSD&orderId={id}"));
    assert_eq!((&order["status"], &order["clientOrderId"]), (&json!("CANCELED"), &json!(long)), "{order}");
    // What is not there has its number.
    let code = |text: &str| venue.code("GET", "/api/v3/order", &venue.signed(text)).1;
    assert_eq!(code("symbol=BTCUSD&origClientOrderId=nobody"), -2013);
    assert_eq!(code(&format!("symbol=BTCUSD&orderId={id}&origClientOrderId=second")), -2039);
    assert_eq!(code("symbol=BTCUSD&origClientOrderId=007"), -1130);
    let (status, wide) =
        venue.send(&venue.url(), "GET", "/api/v3/allOrders", &venue.signed("symbol=BTCUSD&startTime=1&endTime=86400002"));
    assert_eq!((status, wide["code"].as_i64()), (400, Some(-1127)), "{wide}");
}

/// A program that waits for each answer never signs one text twice, however fast it asks.
#[test]
fn equal_questions_one_after_the_other_are_answered() {
    let venue = Venue::start();
    for _ in 0..20 {
        let (status, answer) = venue.send(&venue.url(), "GET", "/api/v3/openOrders", &venue.signed("symbol=BTCUSD"));
        assert_eq!(status, 200, "{answer}");
    }
}
