//! What clients get wrong, each with its number; and that none of it leaves a trace.

use std::io::{Read, Write};

use serde_json::{Value, json};
use walras_access::now;
use walras_client::{Client, headers, sign};
use walras_gateway::Request;
use walras_types::RejectReason as R;

use crate::support::{PATIENCE, Raw, Socket, Venue, code, config, key, limit};

#[test]
fn malformed_orders_say_which_field_and_leave_no_trace() {
    let venue = Venue::start();
    let market = venue.market();
    let log_index = venue.node().venue().status().progress().log_index;
    let good = limit(1, "buy", "1", "30000");
    let with = |field: &str, value: Value| {
        let mut body = good.clone();
        body[field] = value;
        body
    };
    let cases = [
        (with("side", json!("long")), R::Malformed),
        (with("side", Value::Null), R::Malformed),
        (with("type", json!("iceberg")), R::Malformed),
        (with("size", json!(1)), R::Malformed),
        (with("size", json!("-1")), R::Malformed),
        (with("size", json!("1e2")), R::Malformed),
        (with("size", json!("1.00001")), R::SizeNotOnLot),
        (with("size", json!("0")), R::SizeOutOfRange),
        (with("size", json!("99999999999999999999")), R::SizeOutOfRange),
        (with("price", json!("30000.1")), R::PriceNotOnTick),
        (with("price", json!("0")), R::PriceOutOfRange),
        (with("price", json!("999999999999999999")), R::PriceOutOfRange),
        (with("price", Value::Null), R::Malformed),
        (with("trigger", json!("30000")), R::Malformed),
        (with("instrument", json!("NO/SUCH")), R::UnknownInstrument),
        (with("client_order_id", json!("18446744073709551616")), R::Malformed),
        (with("client_order_id", json!("one two")), R::Malformed),
        (with("client_order_id", json!("o'ne")), R::Malformed),
        (with("client_order_id", json!("a-text-of-thirty-seven-characters-xyz")), R::Malformed),
        (with("client_order_id", json!(1)), R::Malformed),
        (with("time_in_force", json!("forever")), R::Malformed),
        (with("time_in_force", json!("gtt")), R::Malformed),
        (with("expire_time_ns", json!("5")), R::Malformed),
        (with("post_only", json!("yes")), R::Malformed),
        (with("display", json!("iceberg")), R::Malformed),
        (with("peak", json!("0.5")), R::Malformed),
        (with("self_trade", json!("no")), R::Malformed),
        (with("surprise", json!(1)), R::Malformed),
        (json!([]), R::Malformed),
        (json!("order"), R::Malformed),
    ];
    for (body, reason) in cases {
        let refused = market.alice.signed("POST", "/v1/orders", Some(&body));
        assert_eq!(code(refused), u64::from(reason.number()), "{body}");
    }
    assert_eq!(venue.node().venue().status().progress().log_index, log_index, "nothing of this reached the log");
    assert_eq!(market.order(&market.alice, &good)["status"], "resting");
}

#[test]
fn what_only_the_market_can_tell_is_a_conflict() {
    let venue = Venue::start();
    let market = venue.market();
    market.order(&market.alice, &limit(1, "buy", "1", "30000"));
    let with = |field: &str, value: &str| {
        let mut body = limit(2, "buy", "1", "30000");
        body[field] = value.into();
        body
    };
    let cases = [
        (limit(1, "buy", "1", "30000"), R::DuplicateClientOrderId),
        (with("size", "90"), R::InsufficientFunds),
        (with("price", "300000"), R::PriceOutsideCollar),
        (with("time_in_force", "fok"), R::FillOrKillUnfillable),
    ];
    for (body, reason) in cases {
        let refused = market.alice.signed("POST", "/v1/orders", Some(&body));
        assert_eq!(code(refused), u64::from(reason.number()), "{body}");
    }
    let unknown = market.alice.signed("DELETE", "/v1/orders/BTC-USD/99", None);
    assert_eq!(code(unknown), u64::from(R::UnknownOrder.number()));
    let phase = json!({"instrument": "BTC-USD", "phase": "halt"});
    market.operator.signed("POST", "/v1/admin/phases", Some(&phase)).unwrap();
    let refused = market.alice.signed("POST", "/v1/orders", Some(&with("size", "1")));
    assert_eq!(code(refused), u64::from(R::PhaseTakesNoOrders.number()));
}

#[test]
fn a_refusal_says_which_bound_the_order_met() {
    let venue = Venue::start();
    let market = venue.market();
    market.order(&market.bob, &limit(1, "sell", "1", "30000"));
    market.order(&market.alice, &limit(1, "buy", "0.5", "30000"));
    let limits = json!({"order_size_max": "10", "order_value_max": "200000", "open_orders_max": 1, "position_max": "2"});
    let account = market.alice.signed("GET", "/v1/account", None).unwrap()["account_id"].clone();
    let set = json!({"account_id": account, "instrument": "BTC-USD", "limits": limits});
    market.operator.signed("POST", "/v1/admin/limits", Some(&set)).unwrap();
    let stop =
        |side: &str, trigger: &str| json!({"instrument": "BTC-USD", "side": side, "type": "stop", "size": "1", "trigger": trigger});
    let mut socket = Socket::connect(&venue.url());
    socket.authenticate(&market.alice_key);
    let mut check = |body: Value, reason: R, detail: &str| {
        let text = body.to_string();
        let answer =
            Raw { method: "POST", path: "/v1/orders", body: text.as_bytes(), key: Some(&market.alice_key) }.send(&venue.url());
        let said = answer.json()["error"].clone();
        let mut message = body.clone();
        message["op"] = "order".into();
        for said in [said, socket.ask(&message, "error")["error"].clone()] {
            assert_eq!(said["code"], reason.number(), "{body}: {said}");
            assert!(said["detail"].as_str().is_some_and(|said| said.contains(detail)), "{body}: {said}");
        }
    };
    check(limit(2, "buy", "1", "300000"), R::PriceOutsideCollar, "the collar is now ");
    check(limit(2, "buy", "11", "29000"), R::OrderTooLarge, "the largest size is 10.0000");
    check(limit(2, "buy", "9", "29000"), R::OrderValueTooLarge, "the largest value is 200000 USD");
    check(limit(2, "buy", "2", "29000"), R::PositionLimit, "the limit is 2.0000; the position is 0.5000");
    check(stop("buy", "30000"), R::StopWouldTrigger, "the last price is 30000.00");
    check(stop("buy", "29000"), R::StopWouldTrigger, "the last price is 30000.00");
    check(stop("sell", "30000"), R::StopWouldTrigger, "the last price is 30000.00");
    let mut unknown = limit(2, "buy", "1", "29000");
    unknown["instrument"] = "btcusd".into();
    check(unknown, R::UnknownInstrument, "the nearest is \"BTC/USD\"");
    market.order(&market.alice, &limit(3, "buy", "1", "29000"));
    check(limit(4, "buy", "0.1", "29000"), R::TooManyOpenOrders, "at most 1 may be open, and 1 are");
}

#[test]
fn signatures_cover_everything_and_are_taken_once() {
    let venue = Venue::start();
    let market = venue.market();
    let url = venue.url();
    let key = &market.alice_key;
    let body = limit(1, "buy", "1", "30000").to_string();
    let request = Request { method: "POST", path: "/v1/orders", body: body.as_bytes() };
    let fields = sign(key, &request);
    let send = |body: &[u8], path: &str, fields: &walras_gateway::AuthFields| {
        let answer = Raw { method: "POST", path, body, key: None }.send_with(&url, headers(fields));
        if answer.status == 200 { 0 } else { answer.code() }
    };
    let number = |reason: R| u64::from(reason.number());

    let other_body = limit(1, "buy", "2", "30000").to_string();
    assert_eq!(send(other_body.as_bytes(), "/v1/orders", &fields), number(R::SignatureInvalid), "another body");
    assert_eq!(send(body.as_bytes(), "/v1/orders?x=1", &fields), number(R::SignatureInvalid), "another path");
    let altered = walras_gateway::AuthFields { nonce: "other".into(), ..fields.clone() };
    assert_eq!(send(body.as_bytes(), "/v1/orders", &altered), number(R::SignatureInvalid), "another nonce");
    let altered = walras_gateway::AuthFields { key: "hm_nobody".into(), ..fields.clone() };
    assert_eq!(send(body.as_bytes(), "/v1/orders", &altered), number(R::UnknownKey));
    let altered = walras_gateway::AuthFields { signature: "short".into(), ..fields.clone() };
    assert_eq!(send(body.as_bytes(), "/v1/orders", &altered), number(R::SignatureInvalid));

    let second_ns = 1_000_000_000;
    for stamp in [now().0 - 6 * second_ns, now().0 + 6 * second_ns, venue.node().venue().status().started().0 - 1] {
        let stale = key.sign(&request, stamp, "n1");
        assert_eq!(send(body.as_bytes(), "/v1/orders", &stale), number(R::TimestampStale), "{stamp}");
    }
    assert_eq!(send(body.as_bytes(), "/v1/orders", &fields), 0, "as it was signed it is taken");
    assert_eq!(send(body.as_bytes(), "/v1/orders", &fields), number(R::NonceReused), "once");
    assert_eq!(market.alice.signed("GET", "/v1/orders", None).unwrap()["orders"].as_array().unwrap().len(), 1);
}

#[test]
fn keys_do_only_what_they_may_and_only_until_they_are_revoked() {
    let venue = Venue::start();
    let market = venue.market();
    let reader = key(&market.operator, 0, &["read"]);
    let client = market.operator.with_key(reader.clone());
    client.signed("GET", "/v1/account", None).unwrap();
    let order = limit(1, "buy", "1", "30000");
    assert_eq!(code(client.signed("POST", "/v1/orders", Some(&order))), u64::from(R::Forbidden.number()));
    assert_eq!(code(market.alice.signed("POST", "/v1/admin/accounts", Some(&json!({})))), u64::from(R::Forbidden.number()));
    assert_eq!(code(market.operator.signed("POST", "/v1/orders", Some(&order))), u64::from(R::Forbidden.number()));
    market.operator.signed("DELETE", &format!("/v1/admin/keys/{}", reader.key_id()), None).unwrap();
    assert_eq!(code(client.signed("GET", "/v1/account", None)), u64::from(R::UnknownKey.number()));
}

#[test]
fn one_account_never_sees_or_touches_anothers_orders() {
    let venue = Venue::start();
    let market = venue.market();
    market.order(&market.alice, &limit(5, "buy", "1", "29000"));
    assert_eq!(market.bob.signed("GET", "/v1/orders", None).unwrap()["orders"], json!([]));
    assert_eq!(code(market.bob.signed("DELETE", "/v1/orders/BTC-USD/5", None)), u64::from(R::UnknownOrder.number()));
    let cancelled = market.bob.signed("DELETE", "/v1/orders", None).unwrap();
    assert_eq!(cancelled["cancelled"], json!([]));
    assert_eq!(market.alice.signed("GET", "/v1/orders", None).unwrap()["orders"].as_array().unwrap().len(), 1);
}

#[test]
fn who_asks_too_often_is_told_to_slow_down() {
    let mut config = config();
    config.throttle.requests_per_second = 1;
    config.throttle.burst = 3;
    let venue = Venue::with(&config);
    let operator = venue.operator();
    let answers: Vec<_> = (0..50).map(|_| operator.signed("GET", "/v1/admin/keys", None)).collect();
    let refused: Vec<_> = answers.into_iter().filter(Result::is_err).collect();
    assert!(!refused.is_empty());
    for answer in refused {
        assert_eq!(code(answer), u64::from(R::Throttled.number()));
    }
    let mut config = self::config();
    (config.throttle.requests_per_second, config.throttle.burst) = (1, 60);
    (config.throttle.source_requests_per_second, config.throttle.source_burst) = (1, 200);
    let venue = Venue::with(&config);
    let market = venue.market();
    let enter = |id: u64| market.alice.signed("POST", "/v1/orders", Some(&limit(id, "buy", "0.0001", "29000")));
    assert!((0..200).any(|id| enter(id).is_err()), "orders are throttled");
    while market.alice.get("/v1/time").is_ok() {}
    assert_eq!(code(enter(1_000)), u64::from(R::Throttled.number()), "the address too");
    market.alice.signed("DELETE", "/v1/orders/BTC-USD/0", None).unwrap();
    assert!(!market.alice.signed("DELETE", "/v1/orders", None).unwrap()["cancelled"].as_array().unwrap().is_empty());

    let mut config = self::config();
    config.throttle.source_requests_per_second = 1;
    config.throttle.source_burst = 2;
    let venue = Venue::with(&config);
    let client = Client::new(&venue.url(), None);
    let refused: Vec<_> = (0..50).map(|_| client.get("/v1/time")).filter(Result::is_err).collect();
    assert!(!refused.is_empty(), "public questions are counted too");
    for answer in refused {
        assert_eq!(code(answer), u64::from(R::Throttled.number()));
    }
    let probe = |path| Raw { method: "GET", path, body: b"", key: None }.send(&venue.url()).status;
    assert!((0..50).all(|_| probe("/healthz") == 200), "a probe must not fail because others ask too often");
    assert!((0..50).any(|_| probe("/readyz") == 429), "readiness asks the venue's thread");
}

#[test]
fn instruments_that_can_not_be_written_in_decimals_are_refused() {
    let venue = Venue::start();
    let market = venue.market();
    let make = |tick: &str, lot: &str| {
        let body = json!({
            "symbol": "NEW/USD", "base": "BTC", "quote": "USD", "tick_size": tick, "lot_size": lot, "reference_price": "1",
        });
        market.operator.signed("POST", "/v1/admin/instruments", Some(&body))
    };
    assert_eq!(code(make("0.01", "0.00001")), u64::from(R::SpecInvalid.number()), "a tick on a lot is below a unit");
    let said = make("0.025", "0.00001").unwrap_err().to_string();
    assert!(said.contains("100 times as large") && said.contains("an asset of 8 decimals"), "{said}");
    assert_eq!(code(make("0.01", "0.000000001")), u64::from(R::AmountNotOnUnit.number()), "a lot is below a unit");
    assert_eq!(code(make("0", "1")), u64::from(R::SpecInvalid.number()));
    make("0.01", "0.0001").unwrap();
}

#[test]
fn a_head_that_does_not_end_is_cut_off() {
    let mut config = config();
    config.http.header_timeout_ms = 50;
    let venue = Venue::with(&config);
    let mut stream = std::net::TcpStream::connect(venue.node().address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /v1/status HTTP/1.1\r\nHost: a\r\nX-Slow: ").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(!String::from_utf8_lossy(&answer).contains("200 OK"));
}

#[test]
fn connections_are_counted_sockets_too_and_a_newcomer_takes_the_place_of_the_longest_idle() {
    let mut config = config();
    config.http.connections_max = 2;
    let venue = Venue::with(&config);
    let (mut one, mut two) = (Socket::connect(&venue.url()), Socket::connect(&venue.url()));
    assert_eq!(venue.node().venue().status().connections(), 2);
    assert_eq!(one.ask(&json!({"op": "ping"}), "pong")["type"], "pong", "the other is idle for longer now");
    let answer = Raw { method: "GET", path: "/v1/time", body: b"", key: None }.send(&venue.url());
    assert_eq!(answer.status, 200, "nobody waits for a place: {}", answer.text);
    assert_eq!(two.next(), Err(Some(1013)), "it is told to try again later");
    assert_eq!(one.ask(&json!({"op": "ping"}), "pong")["type"], "pong", "those that are in go on");
}
