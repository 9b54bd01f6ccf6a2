//! The dialect of `docs/binance.md` from outside: signatures that are taken once, requests that are wrong, streams, keys that are
//! revoked.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
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
use walras_types::{
    AccountId, ClientOrderId, Display, InstrumentId, LogIndex, OrderTerms, OrderType, PostOnly, PriceTicks, SelfTrade, Side,
    SizeLots, TimeInForce, TimeNs,
};
use walras_wait::until_some;
use walras_wire::{Command as VenueCommand, NewOrder, OrderCommand};

struct Venue {
    node: Option<Node>,
    config: Config,
    _folder: TempDir,
    key: ClientKey,
}

impl Venue {
    fn start() -> Self {
        Self::with(|_| ())
    }

    /// With another configuration.
    fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default();
        config.http.listen = "127.0.0.1:0".into();
        config.order_entry.listen = "127.0.0.1:0".into();
        config.binance.listen = "127.0.0.1:0".into();
        config.log.segment_bytes = 1 << 20;
        config.websocket.updates_per_second = 100;
        change(&mut config);
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
            "PUT" => agent.put(url).header("X-MBX-APIKEY", &key).send(text),
            "DELETE" => agent.delete(format!("{url}?{text}")).header("X-MBX-APIKEY", &key).call(),
            _ => agent.post(url).header("X-MBX-APIKEY", &key).send(text),
        }
        .unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        (answer.status().as_u16(), serde_json::from_str(&text).unwrap())
    }

    /// What `GET` answers without a signature.
    fn get(&self, path: &str, text: &str) -> Value {
        let (status, answer) = self.send(&self.url(), "GET", path, text);
        assert_eq!(status, 200, "{path} {text}: {answer}");
        answer
    }

    /// A second account, with something to sell.
    fn seller(&self) -> Client {
        let url = format!("http://{}", self.node().address());
        let operator = Client::new(&url, Some(read_key(&operator_key_file(self._folder.path())).unwrap()));
        let post = |path: &str, body: Value| operator.signed("POST", path, Some(&body)).unwrap();
        post("/v1/admin/accounts", json!({}));
        post("/v1/admin/deposits", json!({"account_id": 1, "asset": "BTC", "amount": "10", "transfer_id": "1"}));
        let made = post("/v1/admin/keys", json!({"account_id": 1, "permissions": ["read", "trade"]}));
        Client::new(&url, Some(ClientKey::from_token(made["key"].as_str().unwrap()).unwrap()))
    }

    /// A stream, which is read for a moment at a time.
    fn stream(&self, name: &str) -> Socket {
        let ws = self.url().replace("http", "ws");
        let (socket, _) = tungstenite::connect(format!("{ws}/ws/{name}")).unwrap();
        let MaybeTlsStream::Plain(stream) = socket.get_ref() else { panic!("the venue has no TLS") };
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        socket
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

type Socket = tungstenite::WebSocket<MaybeTlsStream<std::net::TcpStream>>;

/// What a stream says next, if it does so in a moment.
fn heard(socket: &mut Socket) -> Option<Value> {
    match socket.read() {
        Ok(Message::Text(text)) => Some(serde_json::from_str(&text).unwrap()),
        Ok(_) => None,
        Err(tungstenite::Error::Io(e)) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
        Err(e) => panic!("the stream ended: {e}"),
    }
}

/// Sells at 29000 what is bought there, at once.
fn sell(seller: &Client, name: &str, size: &str) {
    let order = json!({
        "instrument": "BTC-USD", "client_order_id": name, "side": "sell", "type": "limit", "size": size, "price": "29000",
        "time_in_force": "ioc",
    });
    seller.signed("POST", "/v1/orders", Some(&order)).unwrap();
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
    let seller = venue.seller();
    let oco = "symbol=BTCUSD&side=BUY&quantity=0.1&aboveType=STOP_LOSS&aboveStopPrice=31000&aboveClientOrderId=protects\
               &belowType=LIMIT_MAKER&belowPrice=29000&belowClientOrderId=takes";
    let place = || {
        let (status, placed) = venue.send(&venue.url(), "POST", "/api/v3/orderList/oco", &venue.signed(oco));
        assert_eq!(status, 200, "{placed}");
        placed
    };

    let (_, opened) = venue.send(&venue.url(), "POST", "/api/v3/userDataStream", "");
    let mut socket = venue.stream(opened["listenKey"].as_str().unwrap());
    let mut next = || heard(&mut socket);
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
    sell(&seller, "1", "0.04");
    sell(&seller, "2", "0.06");
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
/// The program of docs/binance.md without packages enters an order, sees it, and cancels it.
/// More of an account's past than a request looks at from the newest record on.
const PAST: u64 = 22_000;
/// Commands on their way at a time.
const AT_ONCE: u64 = 200;

/// Buys a lot at a time, which seller's order gives; returns once the archive has it all.
fn fill_past(venue: &Venue) {
    let seller = venue.seller();
    let order = json!({
        "instrument": "BTC-USD", "client_order_id": "1", "side": "sell", "type": "limit", "size": "2.2", "price": "29000",
    });
    seller.signed("POST", "/v1/orders", Some(&order)).unwrap();
    let terms = OrderTerms {
        side: Side::Buy,
        size: SizeLots::new(1),
        order_type: OrderType::Limit { price: PriceTicks::saturating(2_900_000), post_only: PostOnly::Off },
        time_in_force: TimeInForce::ImmediateOrCancel,
        display: Display::Full,
        min_size: None,
        self_trade: SelfTrade::CancelNewest,
    };
    let handle = venue.node().venue();
    let buy = |number: u64| {
        let client_order_id = ClientOrderId(number);
        let order = NewOrder { account: AccountId(0), instrument: InstrumentId(0), client_order_id, terms };
        handle.submit(VenueCommand::Order(OrderCommand::New(order))).unwrap()
    };
    let mut last = LogIndex(0);
    for first in (0..PAST).step_by(AT_ONCE as usize) {
        let sent: Vec<_> = (first..first + AT_ONCE).map(buy).collect();
        for answer in sent {
            let outcome = answer.blocking_recv().unwrap().unwrap();
            assert_eq!(outcome.rejected(), None);
            last = outcome.log_index;
        }
    }
    walras_wait::until("the archive has it", || handle.archive().unwrap().view().durable >= last);
}

#[test]
fn an_accounts_past_is_paged_from_its_beginning() {
    let archive = tempfile::tempdir().unwrap();
    let venue = Venue::with(|config| {
        config.archive.folder = archive.path().to_str().unwrap().to_owned();
        let throttle = &mut config.throttle;
        (throttle.requests_per_second, throttle.burst) = (1_000_000_000, 1_000_000_000);
        (throttle.source_requests_per_second, throttle.source_burst) = (1_000_000_000, 1_000_000_000);
    });
    fill_past(&venue);
    let ask = |path: &str, text: &str| {
        let answer = venue.get(&format!("/api/v3/{path}"), &venue.signed(&format!("symbol=BTCUSD&{text}")));
        answer.as_array().unwrap().clone()
    };
    // Nothing is known of the past yet, and all of it came later.
    assert_eq!(ask("allOrders", "endTime=1"), Vec::<Value>::new());
    // As programs page: from 0 on, then from behind the last one, until there are no more.
    let all = |path: &str, from: &str, id: &str| {
        let (mut found, mut next) = (Vec::new(), 0);
        loop {
            let page = ask(path, &format!("limit=1000&{from}={next}"));
            let Some(last) = page.last() else { return found };
            next = last[id].as_u64().unwrap() + 1;
            found.extend(page);
        }
    };
    let (trades, orders) = (all("myTrades", "fromId", "id"), all("allOrders", "orderId", "orderId"));
    let numbers = |records: &[Value], name: &str| records.iter().map(|one| one[name].as_u64().unwrap()).collect::<Vec<_>>();
    let (trade_ids, order_ids) = (numbers(&trades, "id"), numbers(&orders, "orderId"));
    assert_eq!((trade_ids.len() as u64, order_ids.len() as u64), (PAST, PAST));
    assert!(trade_ids.is_sorted_by(|a, b| a < b) && order_ids.is_sorted_by(|a, b| a < b));
    assert_eq!(numbers(&trades, "orderId"), order_ids);

    // From a time on, and the last ones without a beginning.
    let old = &trades[100];
    let start = old["time"].as_u64().unwrap();
    let at = trades.iter().position(|trade| trade["time"].as_u64() == Some(start)).unwrap();
    let span = format!("startTime={start}&endTime={}&limit=7", start + 86_400_000);
    assert_eq!(ask("myTrades", &span), trades[at..at + 7]);
    let since = orders.iter().position(|order| order["time"].as_u64() >= Some(start)).unwrap();
    assert_eq!(ask("allOrders", &span), orders[since..since + 7]);
    assert_eq!(ask("myTrades", "limit=3"), trades[trades.len() - 3..]);
    assert_eq!(ask("allOrders", "limit=3"), orders[orders.len() - 3..]);
    // The last ones up to a time.
    let until = orders.iter().rposition(|order| order["time"].as_u64() <= Some(start)).unwrap() + 1;
    assert!(until > 3 && until < 2_000, "{until} orders came by then");
    assert_eq!(ask("allOrders", &format!("endTime={start}&limit=3")), orders[until - 3..until]);
    // The first one by its name alone.
    let first = venue.get("/api/v3/order", &venue.signed("symbol=BTCUSD&origClientOrderId=0"));
    assert_eq!((&first["orderId"], &first["clientOrderId"]), (&orders[0]["orderId"], &json!("0")), "{first}");
    // Those of an old order, and it.
    let of_old = format!("orderId={}", old["orderId"]);
    assert_eq!(ask("myTrades", &of_old), std::slice::from_ref(old));
    let order = venue.get("/api/v3/order", &venue.signed(&format!("symbol=BTCUSD&{of_old}")));
    assert_eq!((&order["orderId"], &order["status"]), (&old["orderId"], &json!("FILLED")), "{order}");
}

#[test]
fn the_program_without_packages_enters_an_order_and_cancels_it() {
    let venue = Venue::start();
    let key = venue._folder.path().join("bot.key");
    std::fs::write(&key, venue.key.to_token().as_str()).unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/binance-order.mjs");
    let mut node = Command::new("node");
    node.arg(program).arg(venue.url()).arg(key).args(["BTCUSD", "BUY", "0.01", "29000"]);
    let ended = node.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    let lines: Vec<&str> = said.lines().collect();
    let [placed, bid, open, cancelled] = lines[..] else { panic!("{said}") };
    let id = placed.split(' ').nth(1).unwrap();
    assert_eq!((placed, cancelled), (format!("placed {id} NEW").as_str(), "cancelled CANCELED"));
    assert!(bid.contains("29000") && bid.contains("0.01") && open.contains(id), "{said}");
    let (_, open) = venue.send(&venue.url(), "GET", "/api/v3/openOrders", &venue.signed("symbol=BTCUSD"));
    assert_eq!(open, json!([]));
}

#[test]
fn equal_questions_one_after_the_other_are_answered() {
    let venue = Venue::start();
    for _ in 0..20 {
        let (status, answer) = venue.send(&venue.url(), "GET", "/api/v3/openOrders", &venue.signed("symbol=BTCUSD"));
        assert_eq!(status, 200, "{answer}");
    }
}

#[test]
fn a_revoked_key_ends_its_accounts_stream() {
    let venue = Venue::start();
    let operator = Client::new(
        &format!("http://{}", venue.node().address()),
        Some(read_key(&operator_key_file(venue._folder.path())).unwrap()),
    );
    let (_, opened) = venue.send(&venue.url(), "POST", "/api/v3/userDataStream", "");
    let mut stream = venue.stream(opened["listenKey"].as_str().unwrap());
    let mut public = venue.stream("btcusd@bookTicker");
    let mut price = 29_000;
    let mut order = || {
        price += 1;
        let text = format!("symbol=BTCUSD&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price={price}");
        venue.send(&venue.url(), "POST", "/api/v3/order", &venue.signed(&text))
    };
    // It is a stream of orders.
    until_some("the stream reports an order", || {
        assert_eq!(order().0, 200);
        heard(&mut stream).filter(|said| said["e"] == "executionReport")
    });
    operator.signed("DELETE", &format!("/v1/admin/keys/{}", venue.key.key_id()), None).unwrap();
    let ended = until_some("the stream says that it ends", || heard(&mut stream).filter(|said| said["e"] == "listenKeyExpired"));
    assert_eq!(ended["listenKey"], opened["listenKey"]);
    let listing = json!({"method": "LIST_SUBSCRIPTIONS", "id": 1}).to_string();
    until_some("the connection has no streams", || {
        stream.send(Message::text(listing.as_str())).unwrap();
        heard(&mut stream).filter(|said| said["result"] == json!([]))
    });
    let (status, refused) = order();
    assert_eq!((status, &refused["code"]), (401, &json!(-2015)), "{refused}");
    // What everybody may read goes on.
    let made =
        operator.signed("POST", "/v1/admin/keys", Some(&json!({"account_id": 0, "permissions": ["read", "trade"]}))).unwrap();
    let other = ClientKey::from_token(made["key"].as_str().unwrap()).unwrap();
    let trader = Client::new(&format!("http://{}", venue.node().address()), Some(other));
    let order =
        json!({"instrument": "BTC-USD", "side": "buy", "type": "limit", "size": "0.01", "price": "29900", "client_order_id": "7"});
    trader.signed("POST", "/v1/orders", Some(&order)).unwrap();
    until_some("the public stream goes on", || {
        heard(&mut public).filter(|said| said["b"].as_str().is_some_and(|bid| bid.starts_with("29900")))
    });
}

/// Asks over the WebSocket API.
fn ask(socket: &mut Socket, method: &str, params: &Value) -> Value {
    socket.send(Message::text(json!({"id": 7, "method": method, "params": params}).to_string())).unwrap();
    loop {
        if let Message::Text(text) = socket.read().unwrap() {
            let answer: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(answer["id"], 7, "{answer}");
            return answer;
        }
    }
}

/// Parameters with the key's signature, as the WebSocket API takes it: over all of them by name.
fn signed_params(venue: &Venue, params: &[(&str, &str)]) -> Value {
    let (key, stamp) = (venue.key.key_id().to_string(), (now().0 / 1_000_000).to_string());
    let mut all = params.to_vec();
    all.extend([("apiKey", key.as_str()), ("timestamp", stamp.as_str())]);
    all.sort_unstable();
    let text = all.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");
    let signature = venue.key.sign_text(text.as_bytes());
    all.push(("signature", signature.as_str()));
    all.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect::<serde_json::Map<_, _>>().into()
}

/// Each method of the WebSocket API that has a twin among the paths answers as that does.
#[test]
fn the_websocket_api_answers_as_its_twins_do() {
    let venue = Venue::start();
    let seller = venue.seller();
    let (status, placed) = venue.send(&venue.url(), "POST", "/api/v3/order", &venue.signed(ORDER));
    assert_eq!(status, 200, "{placed}");
    sell(&seller, "1", "0.04");
    let oco = "symbol=BTCUSD&side=BUY&quantity=0.1&aboveType=STOP_LOSS&aboveStopPrice=31000&belowType=LIMIT_MAKER&belowPrice=28000";
    let (status, list) = venue.send(&venue.url(), "POST", "/api/v3/orderList/oco", &venue.signed(oco));
    assert_eq!(status, 200, "{list}");
    let ws = venue.url().replace("http", "ws");
    let (mut socket, _) = tungstenite::connect(format!("{ws}/ws-api/v3")).unwrap();

    let one = json!({"symbol": "BTCUSD"});
    let twins = [
        ("trades.recent", "trades"),
        ("trades.historical", "historicalTrades"),
        ("trades.aggregate", "aggTrades"),
        ("avgPrice", "avgPrice"),
        ("ticker.price", "ticker/price"),
        ("ticker.book", "ticker/bookTicker"),
        ("ticker.24hr", "ticker/24hr"),
        ("ticker.tradingDay", "ticker/tradingDay"),
        ("ticker", "ticker"),
    ];
    // Times are those of the question.
    let timeless = |mut answer: Value| {
        if answer.get("openTime").is_some() {
            for name in ["openTime", "closeTime"] {
                assert!(answer[name].take().is_u64(), "{name} of {answer}");
            }
        }
        answer
    };
    for (method, path) in twins {
        let answer = ask(&mut socket, method, &one);
        assert_eq!(answer["status"], 200, "{method}: {answer}");
        let twin = venue.get(&format!("/api/v3/{path}"), "symbol=BTCUSD");
        assert_eq!(timeless(answer["result"].clone()), timeless(twin), "{method}");
    }
    let with_key = ask(&mut socket, "trades.historical", &json!({"symbol": "BTCUSD", "apiKey": "hm_any"}));
    assert_eq!(with_key["result"][0]["price"], "29000.00", "{with_key}");
    let all = ask(&mut socket, "ticker.price", &json!({}));
    assert_eq!(all["result"], json!([{"symbol": "BTCUSD", "price": "29000.00"}]), "{all}");
    let several = ask(&mut socket, "ticker", &json!({"symbols": ["BTCUSD"], "windowSize": "4h", "type": "MINI"}));
    assert_eq!((&several["result"][0]["count"], several["result"][0].get("priceChange")), (&json!(1), None), "{several}");

    let (of_symbol, of_all) = (&[("symbol", "BTCUSD")][..], &[][..]);
    let own = [
        ("account.commission", "account/commission", of_symbol),
        ("account.rateLimits.orders", "rateLimit/order", of_all),
        ("allOrderLists", "allOrderList", of_all),
        ("openOrderLists.status", "openOrderList", of_all),
        ("myFilters", "myFilters", of_symbol),
    ];
    for (method, path, params) in own {
        let answer = ask(&mut socket, method, &signed_params(&venue, params));
        assert_eq!(answer["status"], 200, "{method}: {answer}");
        let text = params.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");
        let twin = venue.get(&format!("/api/v3/{path}"), &venue.signed(&text));
        if method == "account.rateLimits.orders" {
            // The first is of ten seconds, which may be others.
            assert_eq!(answer["result"][1], twin[1], "{method}");
        } else {
            assert_eq!(answer["result"], twin, "{method}");
        }
        assert_eq!(ask(&mut socket, method, &json!({}))["error"]["code"], -1102, "{method} is for who signs");
    }
    let lists = |text: &str| venue.get("/api/v3/allOrderList", &venue.signed(text)).as_array().unwrap().len();
    let id = list["orderListId"].as_u64().unwrap();
    assert_eq!((lists("limit=5"), lists(&format!("fromId={id}")), lists(&format!("fromId={}", id + 1))), (1, 1, 0));
    assert_eq!(venue.code("GET", "/api/v3/allOrderList", &venue.signed("fromId=1&startTime=1")).1, -1128);

    let mut amend = |id: &Value| {
        let id = id.to_string();
        let asked = signed_params(&venue, &[("symbol", "BTCUSD"), ("newQty", "0.05"), ("orderId", id.as_str())]);
        ask(&mut socket, "order.amend.keepPriority", &asked)
    };
    let amended = amend(&placed["orderId"]);
    assert_eq!(amended["result"]["amendedOrder"]["qty"], "0.0500", "{amended}");
    let of_list = amend(&list["orders"][0]["orderId"]);
    assert_eq!(of_list["error"]["code"], -2038, "{of_list}");
    let tested = signed_params(
        &venue,
        &[("symbol", "BTCUSD"), ("side", "BUY"), ("type", "MARKET"), ("quantity", "0.1"), ("computeCommissionRates", "true")],
    );
    let tested = ask(&mut socket, "order.test", &tested);
    assert_eq!(tested["result"]["symbol"], "BTCUSD", "{tested}");

    let key = venue.key.key_id().to_string();
    let opened = ask(&mut socket, "userDataStream.start", &json!({"apiKey": key}));
    let listen_key = &opened["result"]["listenKey"];
    let of = json!({"apiKey": key, "listenKey": listen_key});
    assert_eq!(ask(&mut socket, "userDataStream.ping", &of)["result"], json!({}), "{opened}");
    assert_eq!(ask(&mut socket, "userDataStream.stop", &of)["result"], json!({}));
    assert_eq!(ask(&mut socket, "userDataStream.ping", &of)["error"]["code"], -1125);
    let unknown = json!({"apiKey": "hm_nobody"});
    assert_eq!(ask(&mut socket, "userDataStream.start", &unknown)["error"]["code"], -2015);
    // docs/binance.md names these.
    for method in ["order.amendments", "myPreventedMatches", "myAllocations", "sor.order.place", "sor.order.test"] {
        assert_eq!(ask(&mut socket, method, &one)["error"]["code"], -1020, "{method}");
    }
    for path in ["order/amendments", "myPreventedMatches", "myAllocations"] {
        assert_eq!(venue.code("GET", &format!("/api/v3/{path}"), &venue.signed("symbol=BTCUSD")), (404, -1020), "{path}");
    }
}

/// Windows and candles begin where they say, also in other time zones.
#[test]
fn windows_roll_and_days_are_those_of_a_time_zone() {
    let venue = Venue::start();
    let seller = venue.seller();
    let (status, placed) = venue.send(&venue.url(), "POST", "/api/v3/order", &venue.signed(ORDER));
    assert_eq!(status, 200, "{placed}");
    sell(&seller, "1", "0.04");
    sell(&seller, "2", "0.06");
    for (text, base_s, size_s) in
        [("", 300, 86_400), ("&windowSize=59m", 60, 3_540), ("&windowSize=23h", 300, 82_800), ("&windowSize=7d", 3_600, 604_800)]
    {
        let ticker = venue.get("/api/v3/ticker", &format!("symbol=BTCUSD{text}"));
        let seen = ["count", "volume", "quoteVolume", "openPrice", "lastPrice", "priceChange", "weightedAvgPrice"]
            .map(|name| &ticker[name]);
        let expected = [json!(2), json!("0.1000"), json!("2900.000000"), json!("29000.00"), json!("29000.00"), json!("0.00")];
        assert_eq!(seen[..6], expected.each_ref(), "{ticker}");
        assert!(
            seen[6].as_str().is_some_and(|average| average.starts_with("29000")) && ticker.get("bidPrice").is_none(),
            "{ticker}"
        );
        let [open_ms, close_ms] = ["openTime", "closeTime"].map(|name| ticker[name].as_u64().unwrap());
        assert_eq!(open_ms % (base_s * 1_000), 0, "{ticker}");
        assert!((size_s..size_s + base_s).contains(&(close_ms / 1_000 - open_ms / 1_000)), "{ticker}");
    }
    let mini = venue.get("/api/v3/ticker", "symbols=[%22BTCUSD%22]&windowSize=1h&type=MINI");
    assert_eq!((&mini[0]["count"], mini[0].get("priceChange")), (&json!(2), None), "{mini}");

    // Where it is about noon, so that the day does not end meanwhile.
    let zone = 12 - (now().0 / 3_600_000_000_000 % 24) as i64;
    let day = venue.get("/api/v3/ticker/tradingDay", &format!("symbol=BTCUSD&timeZone={zone}"));
    let [open_ms, close_ms] = ["openTime", "closeTime"].map(|name| day[name].as_i64().unwrap());
    assert_eq!(((open_ms + zone * 3_600_000) % 86_400_000, close_ms - open_ms), (0, 86_399_999), "{day}");
    assert_eq!((&day["count"], &day["volume"]), (&json!(2), &json!("0.1000")), "{day}");
    let candles = venue.get("/api/v3/klines", &format!("symbol=BTCUSD&interval=1d&timeZone={zone}"));
    assert_eq!((candles[0][0].as_i64(), candles[0][6].as_i64()), (Some(open_ms), Some(close_ms)), "{candles}");
    assert_eq!((&candles[0][8], candles.as_array().map(Vec::len)), (&json!(2), Some(1)), "{candles}");

    let code = |path: &str, text: &str| venue.code("GET", &format!("/api/v3/ticker{path}"), text).1;
    assert_eq!((code("", "windowSize=1h"), code("/tradingDay", "type=FULL")), (-1102, -1102));
    assert_eq!((code("", "symbol=BTCUSD&windowSize=60m"), code("/tradingDay", "symbol=BTCUSD&timeZone=15")), (-1130, -1130));
    assert_eq!((code("", "symbol=BTCUSD&type=ALL"), code("", "symbol=NOPE")), (-1139, -1121));
    let many: Vec<String> = (0..101).map(|n| format!("%22A{n}%22")).collect();
    assert_eq!(code("", &format!("symbols=[{}]", many.join(","))), -1101);
}

/// A smaller quantity keeps the order's place, and the account's stream says so.
#[test]
fn an_amended_order_keeps_its_place() {
    let venue = Venue::start();
    let seller = venue.seller();
    let amend = |text: &str| venue.send(&venue.url(), "PUT", "/api/v3/order/amend/keepPriority", &venue.signed(text));
    let place = |name: &str| {
        let text = venue.signed(&format!("{ORDER}&newClientOrderId={name}"));
        let (status, placed) = venue.send(&venue.url(), "POST", "/api/v3/order", &text);
        assert_eq!(status, 200, "{placed}");
        placed["orderId"].as_u64().unwrap()
    };
    let order = |id: u64| {
        let order = venue.get("/api/v3/order", &venue.signed(&format!("symbol=BTCUSD&orderId={id}")));
        ["status", "origQty", "executedQty"].map(|name| order[name].as_str().unwrap().to_owned())
    };
    let (first, second) = (place("first"), place("second"));
    sell(&seller, "1", "0.04");
    let of = format!("symbol=BTCUSD&orderId={first}");
    let (status, done) = amend(&format!("{of}&newQty=0.06&newClientOrderId=first"));
    assert_eq!(status, 200, "{done}");
    let amended = &done["amendedOrder"];
    let seen = ["qty", "executedQty", "status", "origClientOrderId", "clientOrderId"].map(|name| amended[name].as_str().unwrap());
    assert_eq!(seen, ["0.0600", "0.0400", "PARTIALLY_FILLED", "first", "first"], "{done}");
    assert_eq!((&amended["orderId"], &amended["orderListId"]), (&json!(first), &json!(-1)), "{done}");
    assert!(done["executionId"].as_u64().is_some_and(|id| id > second) && done["transactTime"].is_u64(), "{done}");
    assert_eq!(order(first), ["PARTIALLY_FILLED", "0.0600", "0.0400"]);
    for (text, code) in [
        (format!("{of}&newQty=0.06"), -2038),
        (format!("{of}&newQty=0.1"), -2038),
        (format!("{of}&newQty=0.04"), -2038),
        (format!("{of}&newQty=0.05&newClientOrderId=other"), -2038),
        (format!("{of}&newQty=0"), -1013),
        (format!("{of}&newQty=0.00001"), -1013),
        (format!("{of}&newQty=-1"), -1100),
        (of.clone(), -1102),
        ("symbol=BTCUSD&newQty=0.05".to_owned(), -1102),
        ("symbol=BTCUSD&orderId=999999&newQty=0.05".to_owned(), -2038),
        (format!("{of}&newQty=0.05&price=29001"), -1104),
    ] {
        let (_, refused) = amend(&text);
        assert_eq!(refused["code"], code, "{text}: {refused}");
    }
    // The first in the queue is still the first.
    sell(&seller, "2", "0.03");
    assert_eq!(
        (order(first), order(second)),
        (["FILLED", "0.0600", "0.0600"].map(str::to_owned), ["PARTIALLY_FILLED", "0.1000", "0.0100"].map(str::to_owned))
    );
    let info = venue.get("/api/v3/exchangeInfo", "symbol=BTCUSD");
    assert_eq!(info["symbols"][0]["amendAllowed"], true, "{info}");

    let (_, opened) = venue.send(&venue.url(), "POST", "/api/v3/userDataStream", "");
    let mut socket = venue.stream(opened["listenKey"].as_str().unwrap());
    let mut next = || heard(&mut socket);
    // Each is smaller than the one before: the stream may not know the account yet.
    let mut lots = 1_000;
    let replaced = until_some("the stream reports an amendment", || {
        lots -= 1;
        let (status, done) = amend(&format!("symbol=BTCUSD&orderId={second}&newQty=0.{lots:04}"));
        assert_eq!(status, 200, "{done}");
        next().filter(|said| said["x"] == "REPLACED")
    });
    assert_eq!((&replaced["i"], &replaced["c"], &replaced["X"]), (&json!(second), &json!("second"), &json!("PARTIALLY_FILLED")));
    let quantity = replaced["q"].as_str().unwrap();
    assert!(("0.0101".."0.1000").contains(&quantity) && replaced["z"] == "0.0100", "{replaced}");
}

#[test]
fn streams_of_windows_and_of_candles_in_a_time_zone() {
    let venue = Venue::start();
    let seller = venue.seller();
    let (status, placed) = venue.send(&venue.url(), "POST", "/api/v3/order", &venue.signed(ORDER));
    assert_eq!(status, 200, "{placed}");
    sell(&seller, "1", "0.04");
    let ws = venue.url().replace("http", "ws");
    let wanted = "btcusd@ticker_1h/btcusd@ticker_1d/!ticker_4h@arr/!miniTicker@arr@1000ms/btcusd@kline_1d@%2B08:00/btcusd@kline_1d";
    let (mut socket, _) = tungstenite::connect(format!("{ws}/stream?streams={wanted}")).unwrap();
    let wrong = [
        "btcusd@ticker_2h",
        "!ticker_2h@arr",
        "!ticker_1h",
        "btcusd@kline_1d@+09:00",
        "btcusd@kline_7d@+08:00",
        "btcusd@trade@+08:00",
    ];
    let mut said = std::collections::BTreeMap::new();
    for name in wrong {
        socket.send(Message::text(json!({"method": "SUBSCRIBE", "params": [name], "id": 1}).to_string())).unwrap();
    }
    let mut refused = 0;
    until_some("all streams are heard", || {
        if let Message::Text(text) = socket.read().unwrap() {
            let message: Value = serde_json::from_str(&text).unwrap();
            refused += usize::from(message["error"]["code"] == 2);
            if let Some(stream) = message["stream"].as_str() {
                said.insert(stream.to_owned(), message["data"].clone());
            }
        }
        (said.len() == 6 && refused == wrong.len()).then_some(())
    });
    let window = |said: &Value, kind: &str, size_ms: u64| {
        assert_eq!(
            (&said["e"], &said["s"], &said["n"], &said["v"]),
            (&json!(kind), &json!("BTCUSD"), &json!(1), &json!("0.0400")),
            "{said}"
        );
        let [open_ms, close_ms] = ["O", "C"].map(|name| said[name].as_u64().unwrap());
        assert!(open_ms % 60_000 == 0 && (size_ms..size_ms + 300_000).contains(&(close_ms - open_ms)), "{said}");
        assert!(said.get("b").is_none() && said["c"] == "29000.00", "{said}");
    };
    window(&said["btcusd@ticker_1h"], "1hTicker", 3_600_000);
    window(&said["btcusd@ticker_1d"], "1dTicker", 86_400_000);
    window(&said["!ticker_4h@arr"][0], "4hTicker", 14_400_000);
    assert_eq!(said["!miniTicker@arr@1000ms"][0]["e"], "24hrMiniTicker", "{said:?}");
    let start = |name: &str| said[name]["k"]["t"].as_u64().unwrap();
    assert_eq!((start("btcusd@kline_1d@+08:00") % 86_400_000, start("btcusd@kline_1d") % 86_400_000), (57_600_000, 0));
}
