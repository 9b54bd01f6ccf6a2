//! Orders with exits over HTTP and over the WebSocket, by themselves and among several commands: all of them are entered, or none.

use serde_json::{Value, json};
use walras_client::{headers, sign};
use walras_gateway::Request;
use walras_types::RejectReason as R;

use crate::schema::{check_named, document};
use crate::support::{Market, Raw, Socket, Venue, code, limit, until};

fn open(market: &Market) -> Vec<Value> {
    let document = document();
    let orders = market.alice.signed("GET", "/v1/orders", None).unwrap();
    let orders = orders["orders"].as_array().unwrap().clone();
    orders.iter().for_each(|order| check_named(&document, "Order", order));
    orders
}

fn bracket(id: u64) -> Value {
    let mut body = limit(id, "buy", "1", "29900");
    body["take_profit"] = json!({"trigger": "31000", "client_order_id": "profit"});
    body["stop_loss"] = json!({"trigger": "29000", "price": "28990"});
    body
}

#[test]
fn exits_are_entered_first_and_stand_for_what_is_filled() {
    let venue = Venue::start();
    let market = venue.market();
    let body = bracket(7);
    check_named(&document(), "OrderRequest", &body);
    let placed = market.order(&market.alice, &body);
    check_named(&document(), "OrderAnswer", &placed);
    let number = |answer: &Value| answer["order_id"].as_str().unwrap().parse::<u64>().unwrap();
    assert_eq!(placed["take_profit"]["client_order_id"], "profit");
    assert!(number(&placed["take_profit"]) < number(&placed["stop_loss"]) && number(&placed["stop_loss"]) < number(&placed));
    let held = open(&market);
    assert_eq!(held.len(), 3);
    for (order, kind) in held.iter().zip(["take_profit", "stop_limit"]) {
        let says = [&order["type"], &order["exit_of"], &order["side"], &order["open"]];
        assert_eq!(says, [kind, "7", "sell", "1.0000"], "{order}");
        assert_eq!((&order["is_held"], &order["linked_order_id"]), (&json!(true), &Value::Null));
    }
    market.order(&market.bob, &limit(1, "sell", "0.4", "29900"));
    let active = open(&market);
    for order in &active[..2] {
        assert_eq!((&order["is_held"], &order["open"]), (&json!(false), &json!("0.4000")), "{order}");
    }
    assert_eq!(active[0]["linked_order_id"], active[1]["order_id"]);
    // An entry never stands without its exits.
    market.alice.signed("DELETE", "/v1/orders/BTC-USD/profit", None).unwrap();
    assert_eq!(open(&market), Vec::<Value>::new());
}

#[test]
fn where_one_is_refused_nothing_is_left() {
    let venue = Venue::start();
    let market = venue.market();
    let refused = |body: &Value| market.alice.signed("POST", "/v1/orders", Some(body));
    let mut dear = bracket(1);
    dear["size"] = "90".into();
    assert_eq!(code(refused(&dear)), u64::from(R::InsufficientFunds.number()));
    assert_eq!(open(&market), Vec::<Value>::new());
    let mut wrong = bracket(1);
    wrong["stop_loss"]["price"] = "90000".into();
    let error = refused(&wrong).unwrap_err().to_string();
    assert!(error.contains("stop_loss"), "{error}");
    assert_eq!(open(&market), Vec::<Value>::new());
    for (field, value) in [("exit_of", json!("5")), ("stop_loss", json!({"price": "1"})), ("stop_loss", json!({"trigger": 1}))] {
        let mut body = bracket(1);
        body[field] = value;
        assert!(refused(&body).is_err(), "{body}");
        assert_eq!(open(&market), Vec::<Value>::new());
    }
    // With numbers each is sent by itself.
    let session = market.alice.signed("POST", "/v1/sessions", Some(&json!({"token": "5"}))).unwrap();
    let numbered = format!("/v1/orders?session={}&session_seq=1", session["session"].as_str().unwrap());
    assert_eq!(code(market.alice.signed("POST", &numbered, Some(&bracket(1)))), u64::from(R::Malformed.number()));
    let exit = json!({
        "op": "order", "instrument": "BTC-USD", "client_order_id": "sl", "side": "sell", "type": "stop", "size": "1",
        "trigger": "29000", "exit_of": "in",
    });
    let entry = json!({
        "op": "order", "instrument": "BTC-USD", "client_order_id": "in", "side": "buy", "type": "limit", "size": "1", "price": "29900",
    });
    let path = format!("/v1/orders/batch?session={}&session_seq=1", session["session"].as_str().unwrap());
    let results = market.alice.signed("POST", &path, Some(&json!({"commands": [exit, entry]}))).unwrap();
    assert_eq!(results["results"][1]["answer"]["status"], "resting", "{results}");
    assert_eq!(open(&market).len(), 2);
}

fn over_socket(mut order: Value, id: &str) -> Value {
    (order["op"], order["id"]) = ("order".into(), id.into());
    order
}

#[test]
fn over_the_websocket_an_order_has_exits_too() {
    let venue = Venue::start();
    let market = venue.market();
    let mut socket = Socket::connect(&venue.url());
    socket.authenticate(&market.alice_key);
    let asked = over_socket(bracket(7), "a");
    check_named(&document(), "WsOrder", &asked);
    let placed = socket.ask(&asked, "reply");
    check_named(&document(), "WsReply", &placed);
    assert_eq!((&placed["id"], &placed["status"], &placed["client_order_id"]), (&json!("a"), &json!("resting"), &json!("7")));
    assert_eq!(placed["take_profit"]["client_order_id"], "profit");
    let orders = open(&market);
    let numbers: Vec<_> = orders.iter().map(|order| &order["order_id"]).collect();
    assert_eq!(numbers, [&placed["take_profit"]["order_id"], &placed["stop_loss"]["order_id"], &placed["order_id"]]);
    let cancel = json!({"op": "cancel", "id": "b", "instrument": "BTC-USD", "client_order_id": "7"});
    assert_eq!(socket.ask(&cancel, "reply")["status"], "cancelled");
    assert_eq!(open(&market), Vec::<Value>::new());

    let mut refused = |body: Value, id: &str| {
        let error = socket.ask(&over_socket(body, id), "error");
        check_named(&document(), "WsError", &error);
        assert_eq!((&error["id"], open(&market)), (&json!(id), Vec::<Value>::new()));
        error["error"].clone()
    };
    let mut dear = bracket(1);
    dear["size"] = "90".into();
    assert_eq!(refused(dear, "c")["code"], R::InsufficientFunds.number());
    let mut wrong = bracket(1);
    wrong["stop_loss"]["price"] = "90000".into();
    let error = refused(wrong, "d");
    assert!(error["detail"].as_str().is_some_and(|detail| detail.contains("stop_loss")), "{error}");
    // With numbers each is sent by itself.
    let session = market.alice.signed("POST", "/v1/sessions", Some(&json!({"token": "5"}))).unwrap()["session"].clone();
    let mut numbered = bracket(1);
    (numbered["session"], numbered["session_seq"]) = (session.clone(), "1".into());
    assert_eq!(refused(numbered, "e")["code"], R::Malformed.number());
    let many = json!({"op": "many", "id": "f", "session": session, "session_seq": "1", "commands": [one(bracket(1))]});
    let replies = socket.ask(&many, "replies");
    let result = &replies["results"][0];
    let detail = result["error"]["detail"].as_str().unwrap();
    assert!(detail.starts_with("take_profit does not go here") && result["log_index"].is_string(), "{replies}");
    assert_eq!(open(&market), Vec::<Value>::new());
}

fn one(mut order: Value) -> Value {
    order["op"] = "order".into();
    order
}

/// Each command has its own result, and what stands behind an order with exits is carried out after it.
fn check_many(market: &Market, results: &Value) {
    let codes: Vec<_> = results.as_array().unwrap().iter().map(|result| result["error"]["code"].as_u64().unwrap_or(0)).collect();
    let taken = u64::from(R::DuplicateClientOrderId.number());
    assert_eq!(codes, [0, 0, taken, 0, 0], "{results:#}");
    let entered = &results[1]["answer"];
    assert_eq!((&entered["client_order_id"], &entered["take_profit"]["client_order_id"]), (&json!("7"), &json!("profit")));
    // Its exit has the name of another one.
    assert!(results[2]["error"]["detail"].as_str().is_some_and(|detail| detail.starts_with("take_profit")), "{results:#}");
    assert_eq!((&results[3]["answer"]["status"], &results[4]["answer"]["stop_loss"]), (&json!("cancelled"), &Value::Null));
    let index = |place: usize| results[place]["answer"]["log_index"].as_str().unwrap().parse::<u64>().unwrap();
    assert!(index(0) < index(1) && index(1) < index(3) && index(3) < index(4));
    let names: Vec<_> = open(market).into_iter().map(|order| order["client_order_id"].clone()).collect();
    assert_eq!((names.len(), &names[0], &names[2], &names[3]), (5, &json!("profit"), &json!("7"), &json!("other")));
}

#[test]
fn each_order_of_a_request_of_many_may_have_exits() {
    let venue = Venue::start();
    let market = venue.market();
    let document = document();
    let mut last = bracket(9);
    last["take_profit"]["client_order_id"] = "other".into();
    last.as_object_mut().unwrap().remove("stop_loss");
    let commands = json!([
        one(limit(5, "buy", "1", "29000")),
        one(bracket(7)),
        one(bracket(8)),
        {"op": "cancel", "instrument": "BTC-USD", "client_order_id": "5"},
        one(last),
    ]);
    let body = json!({"commands": commands});
    check_named(&document, "ManyRequest", &body);
    let text = body.to_string();
    let signed = sign(&market.alice_key, &Request { method: "POST", path: "/v1/orders/batch", body: text.as_bytes() });
    let raw = Raw { method: "POST", path: "/v1/orders/batch", body: text.as_bytes(), key: None };
    let answer = raw.send_with(&venue.url(), headers(&signed)).json();
    check_named(&document, "ManyAnswer", &answer);
    check_many(&market, &answer["results"]);
    market.alice.signed("DELETE", "/v1/orders", None).unwrap();
    assert_eq!(raw.send_with(&venue.url(), headers(&signed)).code(), u64::from(R::NonceReused.number()));
    assert_eq!(open(&market), Vec::<Value>::new());

    let mut socket = Socket::connect(&venue.url());
    socket.authenticate(&market.alice_key);
    let asked = json!({"op": "many", "id": "a", "commands": commands});
    check_named(&document, "WsMany", &asked);
    let replies = socket.ask(&asked, "replies");
    check_named(&document, "WsReplies", &replies);
    assert_eq!(replies["id"], "a");
    check_many(&market, &replies["results"]);
}

/// What is still to be entered when the connection ends comes before the cancel.
#[test]
fn a_connection_that_ends_takes_a_bracket_with_it() {
    takes_with_it(&over_socket(bracket(7), "a"));
    takes_with_it(&json!({"op": "many", "commands": [one(bracket(7))]}));
}

fn takes_with_it(asked: &Value) {
    let venue = Venue::start();
    let market = venue.market();
    let session = market.alice.signed("POST", "/v1/sessions", Some(&json!({"token": "5"}))).unwrap()["session"].clone();
    let mut socket = Socket::connect(&venue.url());
    socket.authenticate(&market.alice_key);
    socket.ask(&json!({"op": "cancel_on_disconnect", "session": session}), "cancel_on_disconnect");
    socket.send(asked);
    // The first exit is there, and perhaps not yet the order.
    while socket.next_of("account")["order_updates"].as_array().is_none_or(Vec::is_empty) {}
    drop(socket);
    let entry = || market.alice.signed("GET", "/v1/orders/BTC-USD/7", None);
    until("the order was entered and is cancelled", || entry().is_ok_and(|order| order["status"] == "cancelled"));
    assert_eq!(open(&market), Vec::<Value>::new());
}
