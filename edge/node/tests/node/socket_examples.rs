//! The examples in `asyncapi.yaml`, next to a live venue: it sends each message that is shown with the fields that are shown, and reads
//! what clients are shown to send. That all it sends has the schema that is named for it, each test of a socket checks (`Socket::next`).

use std::time::Instant;

use serde_json::{Value, json};
use walras_config::Config;
use walras_types::RejectReason as R;

use crate::batches::{signers, with_batch};
use crate::examples::differ;
use crate::replica::{leading, one_with_fair_access};
use crate::schema::{kind_of_sent, socket_document, socket_messages};
use crate::support::{Market, PATIENCE, Signer, Socket, Venue, limit, send, wait_for_transactions};

const USD: u32 = 1;
const EUR: u32 = 2;

/// What was sent over a connection: each message's name in the document, and the message.
type Heard = Vec<(&'static str, Value)>;

/// A connection, and all that it was sent.
struct Listener {
    socket: Socket,
    heard: Heard,
}

impl Listener {
    /// Signed in as Alice.
    fn of_alice(url: &str, market: &Market) -> Self {
        let mut socket = Socket::connect(url);
        let authenticated = socket.authenticate(&market.alice_key);
        Self { socket, heard: vec![("authenticated", authenticated)] }
    }

    fn read(&mut self) -> &Value {
        let message = self.socket.next().unwrap();
        self.heard.push((kind_of_sent(&message).unwrap(), message));
        &self.heard[self.heard.len() - 1].1
    }

    /// Reads until a message is this one.
    fn until(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let message = self.read();
            if is_it(message) {
                return message.clone();
            }
            assert!(Instant::now() < deadline, "{what} did not come");
        }
    }

    /// Sends a message with an id; its answer.
    fn ask(&mut self, message: &Value) -> Value {
        self.socket.send(message);
        self.until(&message.to_string(), |answer| answer["id"] == message["id"])
    }
}

/// A venue whose batch market has the assets of the examples.
fn config() -> Config {
    let mut config = with_batch();
    config.batch[0].assets = ["USD", "EUR"].map(str::to_owned).to_vec();
    config
}

/// A limit order that its owner calls by a text.
fn named(name: &str, side: &str, size: &str, price: &str) -> Value {
    let mut order = limit(0, side, size, price);
    order["client_order_id"] = name.into();
    order
}

fn over_socket(mut order: Value, id: &str) -> Value {
    (order["op"], order["id"]) = ("order".into(), id.into());
    order
}

/// All examples of an operation's messages, in their order: a message's name and one of its examples.
fn shown(description: &Value, operation: &str) -> Vec<(String, Value)> {
    let of = |name: String| {
        let examples = description["channels"]["socket"]["messages"][&name]["examples"].as_array().unwrap();
        let payloads: Vec<_> = examples.iter().map(|example| (name.clone(), example["payload"].clone())).collect();
        payloads
    };
    socket_messages(description, operation).into_iter().flat_map(of).collect()
}

/// Whether lists that have something in an example have something in what was sent, so that their contents are compared.
fn has_as_much(example: &Value, sent: &Value) -> bool {
    match (example, sent) {
        (Value::Object(one), Value::Object(other)) => {
            one.iter().all(|(key, value)| other.get(key).is_none_or(|other| has_as_much(value, other)))
        }
        (Value::Array(one), Value::Array(other)) => match (one.first(), other.first()) {
            (Some(one), Some(other)) => has_as_much(one, other),
            (Some(_), None) => false,
            (None, _) => true,
        },
        _ => true,
    }
}

/// Why an example is none of the messages that were sent; nothing where it is one.
fn unlike(name: &str, example: &Value, heard: &[(&'static str, Value)]) -> Option<String> {
    let mut reasons = Vec::new();
    for (_, message) in heard.iter().filter(|(kind, message)| *kind == name && message["kind"] == example["kind"]) {
        match differ(example, message, name) {
            Ok(()) if has_as_much(example, message) => return None,
            Ok(()) => reasons.push(format!("a list is empty in {message}")),
            Err(e) => reasons.push(e),
        }
    }
    reasons.dedup();
    Some(format!("no message was sent as this example of {name} shows it: {example}\n{reasons:#?}"))
}

/// Sends what clients are shown to send, as it is shown.
fn send_as_shown(description: &Value, listener: &mut Listener) {
    for (name, example) in shown(description, "ask") {
        let answer = if example["id"].is_string() {
            listener.ask(&example)
        } else {
            listener.socket.send(&example);
            let kinds = ["subscribed", "unsubscribed", "authenticated", "error"];
            listener.until(&name, |answer| kinds.iter().any(|kind| answer["type"] == *kind))
        };
        assert_ne!(answer["error"]["code"], R::Malformed.number(), "{name}: {answer}");
    }
}

/// Makes the venue send every kind of message, but for what only fair access shows.
fn provoke(market: &Market, listener: &mut Listener) {
    let Market { alice, bob, .. } = market;
    market.order(alice, &named("bid-1", "buy", "1", "29000"));
    market.order(bob, &limit(1, "sell", "1", "31000"));
    for (channel, field, value) in [
        ("book", "instrument", "BTC-USD"),
        ("book_orders", "instrument", "BTC-USD"),
        ("trades", "instrument", "BTC-USD"),
        ("ticker", "instrument", "BTC-USD"),
        ("candles", "instrument", "BTC-USD"),
        ("batch", "batch", "main"),
    ] {
        let answer = listener.ask(&json!({"op": "subscribe", "channel": channel, field: value, "id": "1"}));
        assert_eq!(answer["type"], "subscribed", "{answer}");
    }
    for channel in ["status", "instruments"] {
        listener.ask(&json!({"op": "subscribe", "channel": channel, "id": "1"}));
    }
    let defined = json!({
        "symbol": "BTC/EUR", "base": "BTC", "quote": "EUR", "tick_size": "0.1", "lot_size": "0.1", "reference_price": "27000",
    });
    market.operator.signed("POST", "/v1/admin/instruments", Some(&defined)).unwrap();

    // It takes what there is, and stands with the rest.
    market.order(bob, &limit(2, "sell", "0.2", "30000"));
    let placed = listener.ask(&over_socket(named("bid-7", "buy", "0.5", "30000"), "3"));
    assert_eq!(placed["status"], "partially_filled", "{placed}");

    // One order takes the slice of an iceberg, whose next one stands behind the others, and a part of what stood behind it.
    let mut iceberg = named("ice", "buy", "0.3", "30010");
    (iceberg["display"], iceberg["peak"]) = ("iceberg".into(), "0.2".into());
    market.order(alice, &iceberg);
    let behind = market.order(alice, &named("bid-9", "buy", "0.2", "30010"))["order_id"].clone();
    let adds = |message: &Value| message["added"].as_array().is_some_and(|added| added.iter().any(|order| order[0] == behind));
    listener.until("the last bid in the book by order", adds);
    market.order(bob, &limit(3, "sell", "0.3", "30010"));
    let changes_all = |message: &Value| {
        let lists = ["removed", "resized", "added"].map(|list| message[list].as_array());
        lists.iter().all(|list| list.is_some_and(|list| !list.is_empty()))
    };
    listener.until("an order that lost its place", changes_all);

    let session = alice.signed("POST", "/v1/sessions", Some(&json!({"token": "7"}))).unwrap()["session"].clone();
    let mut numbered = over_socket(limit(8, "sell", "0.2", "32000"), "4");
    (numbered["session"], numbered["session_seq"]) = (session.clone(), "1".into());
    let answers = [listener.ask(&numbered), listener.ask(&numbered)];
    assert_eq!(answers.map(|answer| answer["repeated"].clone()), [json!(false), json!(true)]);
    let cancel = json!({"op": "cancel", "instrument": "BTC-USD", "client_order_id": "8"});
    let mut too_much = limit(9, "sell", "900", "32000");
    too_much["op"] = "order".into();
    listener.ask(&json!({"op": "many", "id": "8", "commands": [cancel, too_much]}));
    listener.ask(&json!({"op": "cancel", "id": "5", "instrument": "BTC-USD", "client_order_id": "bid-99"}));
    listener.ask(&json!({"op": "cancel_on_disconnect", "id": "9", "session": session}));
    // By now the book has shown both sides for long.
    for op in ["unsubscribe", "subscribe"] {
        listener.ask(&json!({"op": op, "channel": "book", "instrument": "BTC-USD", "id": "1"}));
    }
    listener.ask(&json!({"op": "mass_cancel", "id": "7", "instrument": "BTC-USD", "side": "buy"}));
}

/// Offers that trade, and some that stand.
fn trade_in_a_batch(market: &Market, [alice, bob]: &[Signer; 2], listener: &mut Listener) {
    let offers = [
        alice.offer(1, EUR, USD, 100_000, "10000"),
        bob.offer(1, USD, EUR, 2_000_000_000, "0.00009"),
        alice.offer(2, EUR, USD, 1_000, "20000"),
    ];
    send(&market.operator, "main", &offers);
    wait_for_transactions(&market.operator, "main", 3);
    let has_block = |message: &Value| message["blocks"].as_array().is_some_and(|blocks| !blocks.is_empty());
    listener.until("a block", has_block);
    listener.ask(&json!({"op": "subscribe", "channel": "demand", "batch": "main", "sell": "EUR", "buy": "USD", "id": "1"}));
}

/// What a venue with fair access sends of an order: where it waited.
fn of_fair_access() -> Heard {
    let (_dir, node, market) = leading(&one_with_fair_access());
    let before = market.alice.signed("GET", "/v1/reports?after=0&limit=1", None).unwrap()["last"].clone();
    market.order(&market.alice, &named("bid-7", "buy", "0.5", "30000"));
    let mut listener = Listener::of_alice(&format!("http://{}", node.address()), &market);
    listener.socket.send(&json!({"op": "subscribe", "channel": "reports", "after": before}));
    listener.until("the order's report", |message| message["type"] == "reports");
    let Listener { socket, heard } = listener;
    drop(socket);
    assert_eq!(node.stop(), None);
    heard
}

#[test]
fn the_websocket_sends_and_reads_what_is_shown() {
    let description = socket_document();
    let venue = Venue::with(&config());
    let market = venue.market();
    market.operator.signed("POST", "/v1/admin/assets", Some(&json!({"symbol": "EUR", "decimals": 2}))).unwrap();
    for account in [0, 1] {
        let deposit = json!({"account_id": account, "asset": "EUR", "amount": "1000000", "transfer_id": "3"});
        market.operator.signed("POST", "/v1/admin/deposits", Some(&deposit)).unwrap();
    }
    // The batch market is open.
    let signers = signers(&market);
    // The account has more reports than the number after which a client is shown to ask.
    for _ in 0..9 {
        market.order(&market.alice, &named("spare", "buy", "1", "29000"));
        market.alice.signed("DELETE", "/v1/orders/BTC-USD/spare", None).unwrap();
    }
    let mut listener = Listener::of_alice(&venue.url(), &market);
    send_as_shown(&description, &mut listener);
    provoke(&market, &mut listener);
    trade_in_a_batch(&market, &signers, &mut listener);
    listener.heard.extend(of_fair_access());
    // The rest is on its way.
    let deadline = Instant::now() + PATIENCE;
    let examples = shown(&description, "tell");
    loop {
        let missing: Vec<String> = examples.iter().filter_map(|(name, example)| unlike(name, example, &listener.heard)).collect();
        if missing.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{}", missing.join("\n"));
        listener.read();
    }
}

#[test]
fn an_example_that_no_message_is_like_is_noticed() {
    let pong = json!({"type": "pong", "time_ns": "5", "id": "2"});
    assert_eq!(unlike("pong", &pong, &[("pong", pong.clone())]), None);
    assert!(unlike("pong", &pong, &[("pong", json!({"type": "pong", "time_ns": "5"}))]).is_some());
    assert!(unlike("error", &pong, &[("pong", pong.clone())]).is_some());
    assert!(has_as_much(&json!({"a": [], "b": [1]}), &json!({"a": [1], "b": [2, 3]})));
    assert!(!has_as_much(&json!({"b": [{"c": [1]}]}), &json!({"b": [{"c": []}]})));
}
