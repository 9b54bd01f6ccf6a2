//! Commands over HTTP that have a number of a session: sent again they take effect once, whatever became of their answers.

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};
use walras_client::{Client, ClientError, headers, sign};
use walras_gateway::{ClientKey, Request};
use walras_types::RejectReason;
use walras_wait::until;

use crate::cli::Cli;
use crate::schema::{check_named, document};
use crate::support::{Raw, Venue, config, limit, restart};

fn open(client: &Client, token: u64) -> u64 {
    let session = client.signed("POST", "/v1/sessions", Some(&json!({"token": token.to_string()}))).unwrap();
    check_named(&document(), "Session", &session);
    session["session"].as_str().unwrap().parse().unwrap()
}

fn under(path: &str, session: u64, seq: u64) -> String {
    format!("{path}{}session={session}&session_seq={seq}", if path.contains('?') { '&' } else { '?' })
}

fn next_seq(client: &Client, session: u64) -> u64 {
    let sessions = client.signed("GET", "/v1/sessions", None).unwrap();
    let all = sessions["sessions"].as_array().unwrap();
    let name = session.to_string();
    let row = all.iter().find(|row| row["session"] == name.as_str()).unwrap();
    row["next_seq"].as_str().unwrap().parse().unwrap()
}

/// Sends a request whose answer nobody reads.
fn send(url: &str, key: &ClientKey, method: &str, path: &str, body: &Value) -> TcpStream {
    let body = body.to_string();
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: venue\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers(&sign(key, &Request { method, path, body: body.as_bytes() })) {
        text += &format!("{name}: {value}\r\n");
    }
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    stream.write_all(format!("{text}\r\n{body}").as_bytes()).unwrap();
    stream
}

fn position(client: &Client) -> String {
    let account = client.signed("GET", "/v1/account", None).unwrap();
    account["positions"][0]["position"].as_str().unwrap().to_owned()
}

fn refusal(result: Result<Value, ClientError>) -> (u16, u64) {
    match result {
        Err(ClientError::Refused { status, code, .. }) => (status, code),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// Trades at once, so that a second one would not be refused for its name.
fn take() -> Value {
    json!({"instrument": "BTC-USD", "client_order_id": "5", "side": "buy", "type": "limit", "size": "0.5", "price": "30000", "time_in_force": "ioc"})
}

#[test]
fn an_order_whose_answer_is_lost_is_sent_again_and_stands_once_also_after_a_restart() {
    let mut venue = Venue::start();
    let market = venue.market();
    market.order(&market.bob, &limit(1, "sell", "10", "30000"));
    let session = open(&market.alice, 7);
    assert_eq!(open(&market.alice, 7), session, "the same token, the same session");

    let path = under("/v1/orders", session, 1);
    let unread = send(&venue.url(), &market.alice_key, "POST", &path, &take());
    until("the order is in the log", || next_seq(&market.alice, session) >= 2);
    drop(unread);
    let again = market.alice.signed("POST", &path, Some(&take())).unwrap();
    check_named(&document(), "RepeatedAnswer", &again);
    assert_eq!((&again["repeated"], &again["client_order_id"]), (&json!(true), &json!("5")));
    assert_eq!(position(&market.alice), "0.5000");

    // The next number: what came of it is told once in full, then what stands in the log.
    let path = under("/v1/orders", session, 2);
    let first = market.alice.signed("POST", &path, Some(&take())).unwrap();
    assert_eq!((&first["status"], &first["repeated"]), (&json!("filled"), &json!(false)));
    let log_index = first["log_index"].clone();
    assert_ne!(log_index, again["log_index"]);
    for _ in 0..2 {
        let again = market.alice.signed("POST", &path, Some(&take())).unwrap();
        assert_eq!((&again["log_index"], &again["repeated"]), (&log_index, &json!(true)));
    }
    assert_eq!(position(&market.alice), "1.0000");

    venue.stop();
    venue.node = Some(restart(walras_log_store::RealDisk, &venue.dir, &config()));
    let alice = Client::new(&venue.url(), Some(market.alice_key.clone()));
    let again = alice.signed("POST", &path, Some(&take())).unwrap();
    assert_eq!((&again["log_index"], &again["repeated"]), (&log_index, &json!(true)));
    assert_eq!((position(&alice).as_str(), next_seq(&alice, session)), ("1.0000", 3));
}

/// As a trader's program did it: number 1 is taken for a second order by mistake. It was told that the second one stood.
#[test]
fn another_command_under_a_number_that_was_used_is_refused() {
    let mut venue = Venue::start();
    let market = venue.market();
    let session = open(&market.alice, 7);
    let first = limit(11, "buy", "1", "28000");
    let path = under("/v1/orders", session, 1);
    let done = market.alice.signed("POST", &path, Some(&first)).unwrap();
    let with = |field: &str, value: Value| {
        let mut other = first.clone();
        other[field] = value;
        other
    };
    let others = [
        limit(22, "sell", "1", "52000"),
        with("client_order_id", json!("22")),
        with("side", json!("sell")),
        with("size", json!("2")),
        with("price", json!("28001")),
        with("time_in_force", json!("day")),
        with("post_only", json!("reject")),
        with("self_trade", json!("allow")),
    ];
    let reused = (409, u64::from(RejectReason::SessionSeqReused.number()));
    let cancel = under("/v1/orders/BTC-USD/11", session, 1);
    let check = |client: &Client| {
        for other in &others {
            assert_eq!(refusal(client.signed("POST", &path, Some(other))), reused, "{other}");
        }
        assert_eq!(refusal(client.signed("DELETE", &cancel, None)), reused);
        assert_eq!(refusal(client.signed("PATCH", &cancel, Some(&json!({"size": "0.5"})))), reused);
        // The same in other words is the same.
        for same in [first.clone(), with("price", json!("28000.00")), with("time_in_force", json!("gtc"))] {
            let again = client.signed("POST", &path, Some(&same)).unwrap();
            assert_eq!(
                (&again["repeated"], &again["log_index"], &again["client_order_id"]),
                (&json!(true), &done["log_index"], &json!("11"))
            );
        }
        let orders = client.signed("GET", "/v1/orders", None).unwrap();
        let names: Vec<&Value> = orders["orders"].as_array().unwrap().iter().map(|order| &order["client_order_id"]).collect();
        assert_eq!((names, next_seq(client, session)), (vec![&json!("11")], 2));
    };
    check(&market.alice);
    // From the log, and from a snapshot.
    for has_snapshot in [false, true] {
        if has_snapshot {
            venue.operator().signed("POST", "/v1/admin/snapshots", None).unwrap();
        }
        venue.stop();
        venue.node = Some(restart(walras_log_store::RealDisk, &venue.dir, &config()));
        check(&Client::new(&venue.url(), Some(market.alice_key.clone())));
    }
}

#[test]
fn a_rejection_uses_its_number_up_and_other_refusals_do_not() {
    let venue = Venue::start();
    let market = venue.market();
    let session = open(&market.alice, 1);
    let order = limit(9, "buy", "1", "29000");
    market.alice.signed("POST", &under("/v1/orders", session, 1), Some(&order)).unwrap();
    // Its name is taken: that is an answer, and stays it.
    let path = under("/v1/orders", session, 2);
    let mut said = Vec::new();
    for _ in 0..2 {
        let body = order.to_string();
        let answer = Raw { method: "POST", path: &path, body: body.as_bytes(), key: Some(&market.alice_key) }.send(&venue.url());
        assert_eq!(answer.status, 409, "{}", answer.text);
        check_named(&document(), "Error", &answer.json());
        said.push(answer.json());
    }
    assert_eq!(said[0], said[1]);
    assert!(said[0]["log_index"].is_string() && said[0]["session_seq"] == "2");

    // Numbers that are not the next, sessions that are not the account's, and halves of a number.
    let refused =
        |client: &Client, session: u64, seq: u64| refusal(client.signed("POST", &under("/v1/orders", session, seq), Some(&order)));
    assert_eq!(refused(&market.alice, session, 9), (409, RejectReason::SessionSeqGap.number().into()));
    let unknown = (409, RejectReason::UnknownSession.number().into());
    assert_eq!((refused(&market.bob, session, 3), refused(&market.alice, session + 1_000, 1)), (unknown, unknown));
    for half in [format!("/v1/orders?session={session}"), "/v1/orders?session_seq=3".to_owned(), under("/v1/orders", session, 0)] {
        assert_eq!(refusal(market.alice.signed("POST", &half, Some(&order))).0, 400, "{half}");
    }
    assert_eq!(next_seq(&market.alice, session), 3);

    // An order without a name has the same one each time; amending and cancelling have numbers too.
    let mut unnamed = limit(0, "buy", "1", "28000");
    unnamed.as_object_mut().unwrap().remove("client_order_id");
    let path = under("/v1/orders", session, 3);
    let name = |answer: &Value| answer["client_order_id"].as_str().unwrap().to_owned();
    let named = [(); 2].map(|()| name(&market.alice.signed("POST", &path, Some(&unnamed)).unwrap()));
    assert_eq!(named[0], named[1]);
    let each = |seq: u64, method: &str, path: &str, body: Option<&Value>| {
        let path = under(path, session, seq);
        let answers = [(); 2].map(|()| market.alice.signed(method, &path, body).unwrap());
        assert_eq!(answers[0]["log_index"], answers[1]["log_index"]);
        assert_eq!([&answers[0]["repeated"], &answers[1]["repeated"]], [false, true]);
        answers[0].clone()
    };
    assert_eq!(each(4, "PATCH", "/v1/orders/BTC-USD/9", Some(&json!({"size": "0.5"})))["open"], "0.5000");
    assert_eq!(each(5, "DELETE", "/v1/orders/BTC-USD/9", None)["status"], "cancelled");
    let all = each(6, "DELETE", "/v1/orders?side=buy", None);
    check_named(&document(), "MassCancelAnswer", &all);
    assert_eq!(all["cancelled"].as_array().unwrap().len(), 1);
}

#[test]
fn the_command_line_numbers_its_orders_and_says_how_to_go_on() {
    let mut venue = Venue::start();
    let market = venue.market();
    market.order(&market.bob, &limit(1, "sell", "10", "30000"));
    let key_file = venue.dir.join("alice.key");
    std::fs::write(&key_file, market.alice_key.to_token().as_bytes()).unwrap();
    let cli = Cli { url: venue.url(), key_file };
    let opened = cli.json(&["session", "open"]);
    let session = opened["session"].as_str().unwrap();
    assert_eq!(cli.json(&["session", "open"]), opened);
    let order = ["order", "buy", "BTC/USD", "0.5", "--session", session];
    let first = cli.json(&order);
    assert_eq!((&first["session_seq"], &first["status"]), (&json!("1"), &json!("filled")));
    let again = cli.text(&[&order[..], &["--seq", "1"]].concat());
    assert!(again.contains("before") && again.contains(first["log_index"].as_str().unwrap()), "{again}");
    assert_eq!(cli.json(&order)["session_seq"], "2");
    assert_eq!(position(&market.alice), "1.0000");
    assert!(cli.text(&["session", "list"]).contains(session));
    let (status, said) = cli.fails(&["order", "buy", "BTC/USD", "0.5", "--session", "999999"]);
    assert!(status == 4 && said.contains("session open"), "{status}: {said}");
    venue.stop();
    let (status, said) = cli.fails(&[&order[..], &["--seq", "3", "--patience", "0"]].concat());
    assert!(status == 3 && said.contains(&format!("--session {session} --seq 3")), "{status}: {said}");
}
