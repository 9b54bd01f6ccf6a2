//! What trading programs need of REST and the WebSocket: orders named by texts, what became of an order, pages of all that ended, many
//! orders in one request, sessions and numbered reports on the WebSocket.

use std::collections::BTreeSet;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use walras_client::{Client, headers, sign};
use walras_gateway::Request;
use walras_types::RejectReason as R;
use walras_wait::until_ok;
use walras_wire::order_entry::ReportEvent;
use walras_wire::{Event, OrderEvent};

use crate::history::with_archive;
use crate::schema::{check, check_named, document};
use crate::support::{Market, Raw, Socket, Venue, code, config, limit, restart};

fn named(name: &str, side: &str, size: &str, price: &str) -> Value {
    json!({"instrument": "BTC-USD", "client_order_id": name, "side": side, "type": "limit", "size": size, "price": price})
}

fn state(client: &Client, id: &str) -> Value {
    let state = client.signed("GET", &format!("/v1/orders/BTC-USD/{id}"), None).unwrap();
    check_named(&document(), "OrderState", &state);
    state
}

fn session(client: &Client) -> u64 {
    let opened = client.signed("POST", "/v1/sessions", Some(&json!({"token": "77"}))).unwrap();
    opened["session"].as_str().unwrap().parse().unwrap()
}

#[test]
fn an_order_is_called_by_a_text_wherever_it_is_shown_also_after_a_restart() {
    let mut venue = Venue::start();
    let market = venue.market();
    let mut socket = Socket::connect(&venue.url());
    socket.authenticate(&market.alice_key);
    check_named(&document(), "WsAccount", &socket.next_of("account"));
    let entered = market.order(&market.alice, &named("x-3f/[7]:~#1", "buy", "2", "29000"));
    check_named(&document(), "OrderAnswer", &entered);
    assert_eq!(
        (&entered["client_order_id"], &entered["events"][0]["client_order_id"]),
        (&json!("x-3f/[7]:~#1"), &json!("x-3f/[7]:~#1"))
    );
    let path = "x-3f%2F%5B7%5D%3A%7E%231";
    let update = socket.next_of("account");
    assert_eq!(update["order_updates"][0]["client_order_id"], "x-3f/[7]:~#1", "{update}");
    assert_eq!(
        code(market.alice.signed("POST", "/v1/orders", Some(&named("x-3f/[7]:~#1", "buy", "1", "29000")))),
        u64::from(R::DuplicateClientOrderId.number())
    );
    let fills = market.order(&market.bob, &named("b", "sell", "0.5", "29000"));
    assert_eq!(fills["fills"][0]["fee_asset"], "USD");
    let amended = market.alice.signed("PATCH", &format!("/v1/orders/BTC-USD/{path}"), Some(&json!({"price": "29100"}))).unwrap();
    assert_eq!(amended["client_order_id"], "x-3f/[7]:~#1");
    for bad in ["a b", "a\"", "it's", "", "99999999999999999999", &"x".repeat(37)] {
        let refused = market.alice.signed("POST", "/v1/orders", Some(&named(bad, "buy", "1", "1000")));
        assert_eq!(code(refused), u64::from(R::Malformed.number()), "{bad}");
    }
    let look = |client: &Client| {
        let open = client.signed("GET", "/v1/orders", None).unwrap();
        check_named(&document(), "Orders", &open);
        assert_eq!(open["orders"][0]["client_order_id"], "x-3f/[7]:~#1");
        let mine = client.signed("GET", "/v1/fills", None).unwrap();
        check_named(&document(), "Fills", &mine);
        assert_eq!((&mine["fills"][0]["client_order_id"], &mine["complete"]), (&json!("x-3f/[7]:~#1"), &json!(true)));
        let order = state(client, path);
        let shown = ["client_order_id", "status", "original_size", "filled", "average_price", "price", "fee"]
            .map(|name| order[name].clone());
        assert_eq!(
            shown,
            ["x-3f/[7]:~#1", "partially_filled", "2.0000", "0.5000", "29000.00", "29100.00", "1.45"].map(Value::from),
            "{order}"
        );
        order
    };
    let before = look(&market.alice);
    // From the log alone, then from a snapshot.
    for snapshot in [false, true] {
        if snapshot {
            venue.node().venue().snapshot_blocking().unwrap();
        }
        venue.stop();
        venue.node = Some(restart(walras_log_store::RealDisk, &venue.dir, &config()));
        assert_eq!(look(&Client::new(&venue.url(), Some(market.alice_key.clone()))), before);
    }
    let alice = Client::new(&venue.url(), Some(market.alice_key.clone()));
    let all = alice.signed("DELETE", "/v1/orders", None).unwrap();
    assert_eq!(all["cancelled"][0]["client_order_id"], "x-3f/[7]:~#1");
    let ended = state(&alice, path);
    assert_eq!(
        ["status", "reason", "cancelled", "open", "client_order_id"].map(|name| ended[name].as_str().unwrap().to_owned()),
        ["cancelled", "mass_cancelled", "1.5000", "0", "x-3f/[7]:~#1"]
    );
    let reports = alice.signed("GET", "/v1/reports?after=0&limit=200", None).unwrap();
    check_named(&document(), "Reports", &reports);
    let all = reports["reports"].as_array().unwrap();
    assert!((1..).zip(all).all(|(seq, report): (u64, _)| report["report_seq"] == seq.to_string().as_str()));
    let of_order: Vec<_> = all.iter().filter(|report| report["order_id"] == ended["order_id"]).collect();
    assert_eq!(
        of_order.iter().map(|report| report["event"].as_str().unwrap()).collect::<Vec<_>>(),
        ["accepted", "filled", "amended", "cancelled"]
    );
    assert!(of_order.iter().all(|report| report["client_order_id"] == "x-3f/[7]:~#1"));
}

#[test]
fn what_became_of_an_order_is_told_by_either_id() {
    let venue = Venue::start();
    let market = venue.market();
    let id = |answer: &Value| answer["order_id"].as_str().unwrap().to_owned();
    let rests = id(&market.order(&market.alice, &limit(1, "buy", "2", "29000")));
    let filled = id(&market.order(&market.bob, &limit(1, "sell", "1", "29000")));
    let by_id = |client: &Client, id: &str| state(client, &format!("{id}?by=order_id"));
    let ended = by_id(&market.bob, &filled);
    assert_eq!(ended, state(&market.bob, "1"));
    let shown =
        ["status", "filled", "cancelled", "average_price", "fee", "fee_asset"].map(|name| ended[name].as_str().unwrap().to_owned());
    assert_eq!(shown, ["filled", "1.0000", "0", "29000.00", "5.8", "USD"]);
    assert_eq!((&ended["reason"], &ended["ended_at_ns"]), (&Value::Null, &ended["entered_at_ns"]));
    assert_eq!(by_id(&market.alice, &rests)["status"], "partially_filled");
    // Nobody else's order, whatever its id.
    for path in [format!("{filled}?by=order_id"), "77".to_owned(), "nothing".to_owned(), "999999?by=order_id".to_owned()] {
        let refused = market.alice.signed("GET", &format!("/v1/orders/BTC-USD/{path}"), None);
        assert_eq!(code(refused), u64::from(R::NotFound.number()), "{path}");
    }
    let mut ioc = limit(2, "buy", "1", "28000");
    ioc["time_in_force"] = "ioc".into();
    market.order(&market.bob, &ioc);
    assert_eq!((&state(&market.bob, "2")["reason"], &state(&market.bob, "2")["cancelled"]), (&json!("unfilled"), &json!("1.0000")));
    market.alice.signed("DELETE", "/v1/orders/BTC-USD/1", None).unwrap();
    let gone = state(&market.alice, "1");
    assert_eq!((&gone["reason"], &gone["filled"], &gone["type"]), (&json!("requested"), &json!("1.0000"), &json!("limit")));
    // The same name again: the open order first.
    market.order(&market.alice, &limit(1, "buy", "3", "28000"));
    assert_eq!(state(&market.alice, "1")["status"], "resting");
    assert_eq!(by_id(&market.alice, &rests), gone);
    let closed = market.bob.signed("GET", "/v1/orders/closed?limit=1", None).unwrap();
    check_named(&document(), "ClosedOrders", &closed);
    assert_eq!(closed["orders"][0]["client_order_id"], "2");
    let rest = market.bob.signed("GET", &format!("/v1/orders/closed?cursor={}", closed["next"].as_str().unwrap()), None).unwrap();
    let mut listed = rest["orders"][0].clone();
    let ended_at = listed.as_object_mut().unwrap().remove("log_index").unwrap();
    assert_eq!((rest["orders"].as_array().unwrap().len(), &listed, &rest["next"]), (1, &ended, &Value::Null));
    // The other way: what ended after that one.
    let later = format!("/v1/orders/closed?after={}", ended_at.as_str().unwrap());
    assert_eq!(market.bob.signed("GET", &later, None).unwrap()["orders"], closed["orders"]);
    assert_eq!(code(market.bob.signed("GET", "/v1/orders/closed?cursor=x", None)), u64::from(R::Malformed.number()));
}

/// Pages of a list from one cursor to the next; how many pages.
fn all(client: &Client, path: &str, list: &str) -> (Vec<Value>, usize) {
    let (mut found, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        // The archive is up to a second behind what memory has let go of.
        let page = until_ok(path, || client.signed("GET", &format!("{path}{cursor}"), None).map_err(|e| e.to_string()));
        check_named(&document(), if list == "fills" { "Fills" } else { "ClosedOrders" }, &page);
        assert_eq!(page["complete"], true);
        found.extend(page[list].as_array().unwrap().clone());
        pages += 1;
        let Some(next) = page["next"].as_str() else { return (found, pages) };
        cursor = format!("&cursor={next}");
    }
}

#[test]
fn all_that_ever_ended_is_paged_from_memory_and_then_from_the_archive() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = with_archive(folder.path());
    (config.throttle.requests_per_second, config.throttle.burst) = (1_000_000, 1_000_000);
    let venue = Venue::with(&config);
    let market = venue.market();
    market.order(&market.bob, &limit(1, "sell", "50", "29000"));
    let count = 1_700;
    for first in (0..count).step_by(50) {
        let commands: Vec<Value> = (first..first + 50)
            .map(|n| {
                let mut order = named(&format!("n-{n}"), "buy", "0.01", "29000");
                (order["op"], order["time_in_force"]) = ("order".into(), "ioc".into());
                order
            })
            .collect();
        let answer = market.alice.signed("POST", "/v1/orders/batch", Some(&json!({"commands": commands}))).unwrap();
        if first == 0 {
            check_named(&document(), "ManyAnswer", &answer);
        }
        assert!(answer["results"].as_array().unwrap().iter().all(|result| result["answer"]["status"] == "filled"), "{answer}");
    }
    let names = |found: &[Value]| found.iter().map(|one| one["client_order_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let expected: Vec<String> = (0..count).rev().map(|n| format!("n-{n}")).collect();
    let (fills, pages) = all(&market.alice, "/v1/fills?limit=300", "fills");
    assert_eq!(names(&fills), expected, "each once, newest first, over {pages} pages");
    let ids: BTreeSet<_> = fills.iter().map(|fill| fill["trade_id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), count);
    let (closed, _) = all(&market.alice, "/v1/orders/closed?limit=1000", "orders");
    assert_eq!(names(&closed), expected);
    // By time, in what only the archive has.
    let time = |n: usize| fills[n]["time_ns"].as_str().unwrap().parse::<u64>().unwrap();
    let (oldest, newest) = (time(1_600), time(1_400));
    let (within, _) = all(&market.alice, &format!("/v1/fills?limit=77&since={oldest}&until={newest}"), "fills");
    let expected: Vec<_> = fills
        .iter()
        .filter(|fill| (oldest..newest).contains(&fill["time_ns"].as_str().unwrap().parse().unwrap()))
        .cloned()
        .collect();
    assert!(within == expected && within.len() > 100, "{}", within.len());
    // An order that memory has let go of, and its fills.
    let first = state(&market.alice, "n-3");
    assert_eq!((&first["status"], &first["client_order_id"]), (&json!("filled"), &json!("n-3")));
    let id = first["order_id"].as_str().unwrap();
    assert_eq!(state(&market.alice, &format!("{id}?by=order_id")), first);
    let (of_order, _) = all(&market.alice, &format!("/v1/fills?limit=10&order_id={id}"), "fills");
    assert_eq!(of_order, [fills[count - 4].clone()]);
    oldest_first(&market.alice, &fills, &closed);
    // Bob's are his.
    let (bobs, _) = all(&market.bob, "/v1/fills?limit=1000", "fills");
    assert!(bobs.len() == count && bobs.iter().all(|fill| fill["client_order_id"] == "1" && fill["role"] == "maker"));
}

/// Pages by number have the same, the other way, over the border between the archive and memory.
fn oldest_first(client: &Client, fills: &[Value], closed: &[Value]) {
    let reversed = |newest_first: &[Value]| newest_first.iter().rev().cloned().collect::<Vec<_>>();
    let (count, limits) = (fills.len(), [1_000, 300, 77]);
    for limit in limits {
        let (found, pages) = all(client, &format!("/v1/fills?instrument=BTC-USD&after=0&limit={limit}"), "fills");
        assert!(found == reversed(fills) && pages > count / limit, "{limit}: {} in {pages} pages", found.len());
        let (found, _) = all(client, &format!("/v1/orders/closed?after=0&limit={limit}"), "orders");
        assert!(found == reversed(closed), "{limit}: {}", found.len());
    }
    // From numbers of either side of the border, which is about a thousand from the newest, and at both ends.
    for at in [0, 1, 998, 999, 1_000, 1_001, count - 1] {
        let trade = fills[at]["trade_id"].as_str().unwrap();
        let (found, _) = all(client, &format!("/v1/fills?instrument=BTC-USD&after={trade}&limit=400"), "fills");
        assert!(found == reversed(&fills[..at]), "after trade {trade}: {}", found.len());
        let entry = closed[at]["log_index"].as_str().unwrap();
        let (found, _) = all(client, &format!("/v1/orders/closed?after={entry}&limit=400"), "orders");
        assert!(found == reversed(&closed[..at]), "after entry {entry}: {}", found.len());
    }
    // By number and time, and of one order.
    let time = |fill: &Value| fill["time_ns"].as_str().unwrap().parse::<u64>().unwrap();
    let until = time(&fills[1_200]);
    let path = format!("/v1/fills?instrument=BTC-USD&after={}&until={until}&limit=50", fills[1_500]["trade_id"].as_str().unwrap());
    let within: Vec<Value> = fills[..1_500].iter().filter(|fill| time(fill) < until).cloned().collect();
    assert!(all(client, &path, "fills").0 == reversed(&within) && within.len() > 200, "{path}");
    let order = fills[1_600]["order_id"].as_str().unwrap();
    let path = format!("/v1/fills?instrument=BTC-USD&after=0&order_id={order}");
    assert_eq!(all(client, &path, "fills").0, [fills[1_600].clone()]);
    // Cursors of one direction are not of the other.
    let backward = client.signed("GET", "/v1/fills?limit=1", None).unwrap()["next"].as_str().unwrap().to_owned();
    let forward = "/v1/fills?instrument=BTC-USD&after=0&limit=1";
    let next = client.signed("GET", forward, None).unwrap()["next"].as_str().unwrap().to_owned();
    for path in [format!("{forward}&cursor={backward}"), format!("/v1/fills?cursor={next}"), "/v1/fills?after=0".to_owned()] {
        assert_eq!(code(client.signed("GET", &path, None)), u64::from(R::Malformed.number()), "{path}");
    }
}

/// Without an archive a page says whether something between its number and its first record is gone.
#[test]
fn what_memory_has_let_go_of_is_missing_after_older_numbers_alone() {
    let mut config = config();
    (config.throttle.requests_per_second, config.throttle.burst) = (1_000_000, 1_000_000);
    let venue = Venue::with(&config);
    let market = venue.market();
    market.order(&market.bob, &limit(1, "sell", "50", "29000"));
    for first in (0..1_050).step_by(50) {
        let command = |n| {
            let mut order = named(&format!("n-{n}"), "buy", "0.01", "29000");
            (order["op"], order["time_in_force"]) = ("order".into(), "ioc".into());
            order
        };
        let commands: Vec<Value> = (first..first + 50).map(command).collect();
        market.alice.signed("POST", "/v1/orders/batch", Some(&json!({"commands": commands}))).unwrap();
    }
    let after = |trade: u64| {
        let path = format!("/v1/fills?instrument=BTC-USD&after={trade}&limit=10");
        let page = market.alice.signed("GET", &path, None).unwrap();
        (page["fills"][0]["trade_id"].as_str().unwrap().parse::<u64>().unwrap(), page["complete"].clone())
    };
    assert_eq!((after(0), after(49), after(51)), ((51, json!(false)), (51, json!(false)), (52, json!(true))));
}

fn results(client: &Client, path: &str, commands: &Value) -> Vec<Value> {
    let answer = client.signed("POST", path, Some(&json!({"commands": commands}))).unwrap();
    check_named(&document(), "ManyAnswer", &answer);
    answer["results"].as_array().unwrap().clone()
}

fn order(name: &str, side: &str, size: &str, price: &str) -> Value {
    let mut order = named(name, side, size, price);
    order["op"] = "order".into();
    order
}

#[test]
fn many_orders_in_one_request_have_an_outcome_each() {
    let venue = Venue::start();
    let market = venue.market();
    let cancel = |name: &str| json!({"op": "cancel", "instrument": "BTC-USD", "client_order_id": name});
    let commands = json!([
        order("a", "buy", "1", "29000"),
        order("b", "buy", "1", "29000.1"),
        cancel("nothing"),
        {"op": "amend", "instrument": "BTC-USD", "client_order_id": "a", "price": "29010"},
        order("c", "sell", "0.5", "29010"),
        {"op": "subscribe"},
        cancel("a"),
        {"op": "mass_cancel", "instrument": "BTC-USD"},
    ]);
    let check = |results: &[Value]| {
        let codes: Vec<_> = results.iter().map(|result| result["error"]["code"].as_u64().unwrap_or(0)).collect();
        let [off_tick, unknown, malformed] =
            [R::PriceNotOnTick, R::UnknownOrder, R::Malformed].map(|reason| u64::from(reason.number()));
        assert_eq!(codes, [0, off_tick, unknown, 0, 0, malformed, 0, 0], "{results:#?}");
        assert_eq!(results[3]["answer"]["price"], "29010.00");
        // The account's own order: the newest is cancelled.
        assert_eq!(results[4]["answer"]["reason"], "self_trade");
        assert_eq!((&results[6]["answer"]["status"], &results[6]["answer"]["client_order_id"]), (&json!("cancelled"), &json!("a")));
    };
    check(&results(&market.alice, "/v1/orders/batch", &commands));

    // Under numbers: what cannot be read takes its own, and all of it is repeated.
    let session = session(&market.alice);
    let path = format!("/v1/orders/batch?session={session}&session_seq=1");
    let first = results(&market.alice, &path, &commands);
    check(&first);
    assert_eq!((&first[5]["session_seq"], &first[7]["answer"]["session_seq"]), (&json!("6"), &json!("8")));
    let again = results(&market.alice, &path, &commands);
    for (first, again) in first.iter().zip(&again) {
        let index = |result: &Value| result["answer"].get("log_index").or(result.get("log_index")).cloned();
        assert_eq!(index(first), index(again));
        assert!(again["answer"].is_null() || again["answer"]["repeated"] == true);
    }
    let gap =
        results(&market.alice, &format!("/v1/orders/batch?session={session}&session_seq=10"), &json!([{"op": "mass_cancel"}]));
    assert!(gap[0]["error"]["detail"].as_str().unwrap().contains("the next number is 9"), "{gap:?}");
    for bad in [json!({"commands": []}), json!({}), json!({"commands": [], "more": 1}), json!([])] {
        assert_eq!(code(market.alice.signed("POST", "/v1/orders/batch", Some(&bad))), u64::from(R::Malformed.number()), "{bad}");
    }
}

/// A copy of the bytes of a request has no effect, whichever of its commands the venue has.
#[test]
fn a_copy_of_many_orders_is_refused_in_each_of_them() {
    let venue = Venue::start();
    let market = venue.market();
    let body = json!({"commands": [order("a", "buy", "1", "29000"), order("b", "buy", "1", "29000")]}).to_string();
    let signed = sign(&market.alice_key, &Request { method: "POST", path: "/v1/orders/batch", body: body.as_bytes() });
    let raw = Raw { method: "POST", path: "/v1/orders/batch", body: body.as_bytes(), key: None };
    assert_eq!(raw.send_with(&venue.url(), headers(&signed)).status, 200);
    market.alice.signed("DELETE", "/v1/orders", None).unwrap();
    assert_eq!(raw.send_with(&venue.url(), headers(&signed)).code(), u64::from(R::NonceReused.number()));
    assert_eq!(market.alice.signed("GET", "/v1/orders", None).unwrap()["orders"], json!([]));
}

fn reports(socket: &mut Socket, until: u64, last: &mut u64) -> Vec<Value> {
    let mut all = Vec::new();
    while *last < until {
        let message = socket.next_of("reports");
        check_named(&document(), "WsReports", &message);
        for report in message["reports"].as_array().unwrap() {
            *last += 1;
            assert_eq!(report["report_seq"], last.to_string().as_str(), "without a gap");
            all.push(report.clone());
        }
    }
    all
}

fn last_report(market: &Market) -> u64 {
    market.alice.signed("GET", "/v1/reports?limit=0", None).unwrap()["last"].as_str().unwrap().parse().unwrap()
}

#[test]
fn the_websocket_has_sessions_and_numbered_reports_that_go_on_after_a_reconnect() {
    let venue = Venue::start();
    let market = venue.market();
    let session = session(&market.alice).to_string();
    let mut socket = Socket::connect(&venue.url());
    let subscribe = |after: Option<u64>| {
        let mut message = json!({"op": "subscribe", "channel": "reports", "id": "r"});
        if let Some(after) = after {
            message["after"] = after.to_string().into();
        }
        message
    };
    let refused = socket.ask(&subscribe(None), "error");
    assert_eq!(refused["error"]["code"].as_u64(), Some(u64::from(R::Unauthenticated.number())));
    socket.authenticate(&market.alice_key);
    // Another connection, whose messages nothing passes over.
    let mut listener = Socket::connect(&venue.url());
    listener.authenticate(&market.alice_key);
    let subscribed = listener.ask(&subscribe(None), "subscribed");
    check_named(&document(), "WsSubscribed", &subscribed);
    assert_eq!((&subscribed["id"], &subscribed["after"]), (&json!("r"), &json!(last_report(&market).to_string())));
    let mut last = last_report(&market);
    let numbered = |seq: u64, mut message: Value| {
        (message["session"], message["session_seq"], message["id"]) =
            (session.as_str().into(), seq.to_string().into(), seq.to_string().into());
        message
    };
    let first = numbered(1, order("a-1", "buy", "1", "29000"));
    let reply = socket.ask(&first, "reply");
    check_named(&document(), "WsReply", &reply);
    assert_eq!((&reply["session_seq"], &reply["repeated"], &reply["id"]), (&json!("1"), &json!(false), &json!("1")));
    let again = socket.ask(&first, "reply");
    check_named(&document(), "WsRepeatedReply", &again);
    assert_eq!((&again["repeated"], &again["log_index"]), (&json!(true), &reply["log_index"]));
    // Over REST it is the same session.
    let path = format!("/v1/orders?session={session}&session_seq=1");
    let over_rest = market.alice.signed("POST", &path, Some(&named("a-1", "buy", "1", "29000"))).unwrap();
    assert_eq!(over_rest["repeated"], true);
    let rejected = socket.ask(&numbered(2, json!({"op": "cancel", "instrument": "BTC-USD", "client_order_id": "none"})), "error");
    check_named(&document(), "WsError", &rejected);
    assert_eq!(
        (&rejected["session_seq"], rejected["error"]["code"].as_u64()),
        (&json!("2"), Some(u64::from(R::UnknownOrder.number())))
    );
    let gap = socket.ask(&numbered(9, json!({"op": "mass_cancel"})), "error");
    assert!(gap["error"]["detail"].as_str().unwrap().contains("the next number is 3"), "{gap}");
    assert!(gap.get("session_seq").is_none());
    let many = json!({"op": "many", "commands": [order("a-2", "buy", "1", "28000"), {"op": "cancel", "instrument": "BTC-USD", "client_order_id": "a-1"}]});
    let replies = socket.ask(&numbered(3, many), "replies");
    check_named(&document(), "WsReplies", &replies);
    assert_eq!((&replies["id"], &replies["results"][1]["answer"]["session_seq"]), (&json!("3"), &json!("4")));
    let until = last_report(&market);
    let heard = reports(&mut listener, until, &mut last);
    let kinds: Vec<_> = heard.iter().map(|report| report["event"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["accepted", "rejected", "accepted", "cancelled"]);
    drop((socket, listener));

    // What happens meanwhile is told after the number that the client has.
    market.order(&market.bob, &named("b", "sell", "1", "28000"));
    let mut socket = Socket::connect(&venue.url());
    socket.authenticate(&market.alice_key);
    assert_eq!(socket.ask(&subscribe(Some(last)), "subscribed")["after"], last.to_string());
    let until = last_report(&market);
    let missed = reports(&mut socket, until, &mut last);
    assert_eq!(
        (&missed[0]["event"], &missed[0]["client_order_id"], &missed[0]["role"]),
        (&json!("filled"), &json!("a-2"), &json!("maker"))
    );
    let beyond = socket.ask(&subscribe(Some(last + 1)), "error");
    assert_eq!(beyond["id"], "r");
    // All of it again, as over REST.
    let mut from_start = 0;
    socket.ask(&subscribe(Some(0)), "subscribed");
    let all = reports(&mut socket, until, &mut from_start);
    assert_eq!(market.alice.signed("GET", "/v1/reports?after=0&limit=256", None).unwrap()["reports"], json!(all));
}

/// The programs of docs/rest.md, as they stand there: with a key of each kind.
#[test]
fn the_programs_of_the_document_place_an_order_and_show_it() {
    let venue = Venue::start();
    let market = venue.market();
    let folder = tempfile::tempdir().unwrap();
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let key_file = |algorithm: &str| {
        let asked = json!({"account_id": 0, "permissions": ["read", "trade"], "algorithm": algorithm});
        let made = market.operator.signed("POST", "/v1/admin/keys", Some(&asked)).unwrap();
        let path = folder.path().join(algorithm);
        std::fs::write(&path, made["key"].as_str().unwrap()).unwrap();
        path
    };
    for (program, file, algorithm) in
        [("python3", "rest-bot.py", "hmac-sha256"), ("node", "rest-bot.mjs", "hmac-sha256"), ("node", "rest-bot.mjs", "ed25519")]
    {
        let name = format!("{program}/{algorithm}");
        // Started again, it finds the order that is there.
        for _ in 0..2 {
            let mut command = std::process::Command::new(program);
            command.arg(docs.join(file)).arg(venue.url()).arg(key_file(algorithm)).args(["BTC-USD", &name, "buy", "0.5", "29000"]);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            let ended = crate::support::spawn(&mut command).wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&ended.stdout);
            assert!(ended.status.success(), "{name}: {said}{}", String::from_utf8_lossy(&ended.stderr));
            let order: Value = serde_json::from_str(&said).unwrap();
            check_named(&document(), "OrderState", &order);
            assert_eq!((&order["client_order_id"], &order["status"]), (&json!(name), &json!("resting")));
        }
    }
}

/// The example in Rust, which is compiled here too.
#[allow(dead_code, reason = "it has a main function")]
#[path = "../../../client/examples/order_once.rs"]
mod order_once;

#[test]
fn the_example_in_rust_places_an_order_and_shows_it() {
    let venue = Venue::start();
    let market = venue.market();
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("bot.key");
    std::fs::write(&key, market.alice_key.to_token().as_str()).unwrap();
    let key = key.to_str().unwrap();
    let args = [&venue.url(), key, "BTC-USD", "77", "buy", "0.5", "29000"].map(str::to_owned);
    let order = order_once::run(&args).unwrap();
    check_named(&document(), "OrderState", &order);
    assert_eq!((&order["client_order_id"], &order["status"]), (&json!("77"), &json!("resting")));
    assert!(order_once::run(&args[1..]).is_err());
}

/// The examples in Rust, which are compiled here too.
#[allow(dead_code, reason = "it has a main function")]
#[path = "../../../client/examples/order_entry.rs"]
mod order_entry;
#[allow(dead_code, reason = "it has a main function")]
#[path = "../../../client/examples/ws_book.rs"]
mod ws_book;

#[test]
fn the_example_of_order_entry_in_rust_enters_an_order() {
    let venue = Venue::start();
    let market = venue.market();
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("bot.key");
    std::fs::write(&key, market.alice_key.to_token().as_str()).unwrap();
    let address = venue.node().order_entry_address().unwrap().to_string();
    let args = [&address, key.to_str().unwrap(), "0", "0", "116000", "5000"].map(str::to_owned);
    let ReportEvent::Event(Event::Order(OrderEvent::Accepted(accepted))) = order_entry::run(&args).unwrap() else {
        panic!("its first report says that it was accepted");
    };
    let order = state(&market.alice, &accepted.client_order_id.0.to_string());
    assert_eq!((&order["price"], &order["open"], &order["status"]), (&json!("29000.00"), &json!("0.5000"), &json!("resting")));
    assert!(order_entry::run(&args[1..]).is_err());
    let refused = [&address, key.to_str().unwrap(), "0", "9", "116000", "5000"].map(str::to_owned);
    assert!(order_entry::run(&refused).unwrap_err().to_string().contains("UnknownInstrument"));
}

#[test]
fn the_example_of_the_websocket_in_rust_keeps_a_book() {
    let venue = Venue::start();
    let market = venue.market();
    let url = format!("ws://{}", venue.node().address());
    let mut seen = Vec::new();
    // The first message is there before anything is entered, so each order has one of its own.
    ws_book::run(&url, "BTC-USD", |bid, ask| {
        match seen.len() {
            0 => drop(market.order(&market.alice, &limit(1, "buy", "1", "29999.75"))),
            1 => drop(market.order(&market.bob, &limit(2, "sell", "1", "30010"))),
            2 => drop(market.alice.signed("DELETE", "/v1/orders/BTC-USD/1", None).unwrap()),
            _ => {}
        }
        seen.push(format!("{} {}", bid.as_str().unwrap(), ask.as_str().unwrap()));
        seen.len() < 4
    })
    .unwrap();
    assert_eq!(seen, ["- -", "29999.75 -", "29999.75 30010.00", "- 30010.00"]);
    assert!(ws_book::run(&url, "NO-SUCH", |_, _| true).unwrap_err().to_string().contains("UnknownInstrument"));
}

/// The program of docs/websocket.md keeps a book, also over a restart of the venue.
#[test]
fn the_program_of_the_websocket_keeps_a_book() {
    use std::io::BufRead as _;
    let mut venue = Venue::start();
    let market = venue.market();
    let program = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ws-book.mjs");
    let address = venue.node().address();
    // What never comes is waited for so long.
    let mut command = std::process::Command::new("timeout");
    command.args(["60", "node", "--experimental-websocket"]).arg(program).arg(format!("ws://{address}")).arg("BTC-USD");
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let mut node = crate::support::spawn(&mut command);
    let mut lines = std::io::BufReader::new(node.stdout.take().unwrap()).lines();
    let mut shows = |best: &str| {
        while lines.next().expect("the program goes on").unwrap() != best {}
    };
    shows("- -");
    for (id, side, price) in [(1, "buy", "29999.75"), (2, "buy", "24999.5"), (3, "sell", "30010")] {
        market.order(if side == "buy" { &market.alice } else { &market.bob }, &limit(id, side, "1", price));
    }
    shows("29999.75 30010.00");
    market.alice.signed("DELETE", "/v1/orders/BTC-USD/1", None).unwrap();
    shows("24999.50 30010.00");
    venue.stop();
    let mut config = config();
    config.http.listen = address.to_string();
    venue.node = Some(restart(walras_log_store::RealDisk, &venue.dir, &config));
    shows("24999.50 30010.00");
    // Which `timeout` passes on: a kill would leave the program alone, connecting for good.
    kill_process(Pid::from_child(&node), Signal::TERM).unwrap();
    node.wait().unwrap();
}

fn open_orders(client: &Client) -> usize {
    client.signed("GET", "/v1/orders", None).unwrap()["orders"].as_array().unwrap().len()
}

/// By a clock that ticks, so that the log's time goes on while nobody sends anything.
fn ticking() -> walras_config::Config {
    let mut config = config();
    config.log.tick_interval_ms = 50;
    config
}

#[test]
fn a_dead_mans_switch_fires_once_also_after_a_restart() {
    let mut venue = Venue::with(&ticking());
    let market = venue.market();
    let after = |client: &Client, timeout_ms: u64| {
        let set = client.signed("POST", "/v1/cancel-after", Some(&json!({"timeout_ms": timeout_ms}))).unwrap();
        check_named(&document(), "CancelAfter", &set);
        set["cancels_at_ns"].clone()
    };
    market.order(&market.alice, &limit(1, "buy", "1", "29000"));
    market.order(&market.bob, &limit(1, "buy", "1", "29000"));
    // Put off, and switched off: nothing is cancelled.
    let first = after(&market.alice, 60_000);
    assert_ne!(after(&market.alice, 600_000), first);
    assert_eq!(after(&market.alice, 0), Value::Null);
    after(&market.alice, 100);
    until_ok("it fires", || if open_orders(&market.alice) == 0 { Ok(()) } else { Err("open") });
    assert_eq!(state(&market.alice, "1")["reason"], "mass_cancelled");
    assert_eq!(market.alice.signed("GET", "/v1/cancel-after", None).unwrap()["cancels_at_ns"], Value::Null);
    assert_eq!(open_orders(&market.bob), 1, "another account's stay");
    // What is entered then stays.
    market.order(&market.alice, &limit(2, "buy", "1", "29000"));
    // A restart comes before its time: from the log, then from a snapshot.
    for snapshot in [false, true] {
        let alice = Client::new(&venue.url(), Some(market.alice_key.clone()));
        assert_eq!(open_orders(&alice), 1);
        let due = after(&alice, 3_000);
        if snapshot {
            venue.node().venue().snapshot_blocking().unwrap();
        }
        venue.stop();
        venue.node = Some(restart(walras_log_store::RealDisk, &venue.dir, &ticking()));
        let alice = Client::new(&venue.url(), Some(market.alice_key.clone()));
        let now = alice.signed("GET", "/v1/cancel-after", None).unwrap()["cancels_at_ns"].clone();
        assert!(now == due || now.is_null(), "{now} {due}");
        until_ok("it fires", || if open_orders(&alice) == 0 { Ok(()) } else { Err("open") });
        alice.signed("POST", "/v1/orders", Some(&limit(3, "buy", "1", "29000"))).unwrap();
    }
    let alice = Client::new(&venue.url(), Some(market.alice_key.clone()));
    assert_eq!(
        code(alice.signed("POST", "/v1/cancel-after", Some(&json!({"timeout_ms": 86_400_001})))),
        u64::from(R::Malformed.number())
    );
}

#[test]
fn a_websocket_that_ends_takes_its_accounts_orders_with_it_if_it_said_so() {
    let venue = Venue::start();
    let market = venue.market();
    let session = session(&market.alice).to_string();
    let ask = |socket: &mut Socket, session: Option<&str>| {
        let mut message = json!({"op": "cancel_on_disconnect", "id": "c"});
        if let Some(session) = session {
            message["session"] = session.into();
        }
        let answer = socket.ask(&message, "cancel_on_disconnect");
        check_named(&document(), "WsCancelsOnDisconnect", &answer);
        answer
    };
    let connect = || {
        let mut socket = Socket::connect(&venue.url());
        socket.authenticate(&market.alice_key);
        socket
    };
    market.order(&market.alice, &limit(1, "buy", "1", "29000"));
    let mut kept = connect();
    assert_eq!(ask(&mut kept, Some(&session))["session"], session.as_str());
    assert_eq!(ask(&mut kept, None)["session"], Value::Null);
    let wrong = kept.ask(&json!({"op": "cancel_on_disconnect", "session": "999999"}), "error");
    assert_eq!(wrong["error"]["code"].as_u64(), Some(u64::from(R::UnknownSession.number())));
    drop(kept);
    let mut socket = connect();
    ask(&mut socket, Some(&session));
    assert_eq!(open_orders(&market.alice), 1, "the first one did not want it any more");
    drop(socket);
    until_ok("its orders are cancelled", || if open_orders(&market.alice) == 0 { Ok(()) } else { Err("open") });
    assert_eq!(state(&market.alice, "1")["reason"], "mass_cancelled");
    market.order(&market.alice, &limit(2, "buy", "1", "29000"));
    assert_eq!(open_orders(&market.alice), 1);
}

#[test]
fn pages_of_listed_origins_may_use_the_api_and_the_description_is_shown() {
    let mut config = config();
    config.http.cors_origins = vec!["https://desk.example".to_owned()];
    let venue = Venue::with(&config);
    let from = |method: &'static str, path: &'static str, origin: &'static str| {
        let headers = [("origin", origin), ("access-control-request-method", "POST")];
        Raw { method, path, body: b"", key: None }.send_with(&venue.url(), headers)
    };
    let asked = from("OPTIONS", "/v1/orders", "https://desk.example");
    assert!(asked.status == 204 && asked.headers["access-control-allow-origin"] == "https://desk.example");
    assert!(asked.headers["access-control-allow-headers"].to_str().unwrap().contains("walras-signature"));
    let read = from("GET", "/v1/status", "https://desk.example");
    assert!(read.status == 200 && read.headers["access-control-allow-origin"] == "https://desk.example");
    for answer in [from("OPTIONS", "/v1/orders", "https://evil.example"), from("GET", "/v1/status", "https://evil.example")] {
        assert!(!answer.headers.contains_key("access-control-allow-origin"));
    }
    for (path, kind) in [
        ("/docs", "text/html"),
        ("/docs/websocket", "text/html"),
        ("/docs/reader.js", "text/javascript"),
        ("/docs/websocket.js", "text/javascript"),
        ("/docs/shapes.js", "text/javascript"),
        ("/docs/style.css", "text/css"),
        ("/asyncapi.yaml", "application/yaml"),
        ("/asyncapi.json", "application/json"),
    ] {
        let answer = Raw { method: "GET", path, body: b"", key: None }.send(&venue.url());
        assert!(answer.status == 200 && answer.content_type.starts_with(kind), "{path}: {}", answer.content_type);
    }
}

/// Each message of the one document has its shape in the other.
#[test]
fn the_websockets_description_names_shapes_that_there_are() {
    let description: Value = serde_saphyr::from_str(walras_api::http::ASYNCAPI_YAML).unwrap();
    let document = document();
    let messages = description["channels"]["socket"]["messages"].as_object().unwrap();
    let mut named = BTreeSet::new();
    for (name, message) in messages {
        let shape = message["payload"]["$ref"].as_str().unwrap().strip_prefix("/openapi.yaml#/components/schemas/").unwrap();
        let schema = &document["components"]["schemas"][shape];
        assert!(schema.is_object(), "{name}");
        named.insert(shape.to_owned());
        let examples = message["examples"].as_array().unwrap_or_else(|| panic!("{name} has no example"));
        assert!(!examples.is_empty(), "{name} has no example");
        for example in examples {
            check(&document, schema, &example["payload"]).unwrap_or_else(|e| panic!("the example of {name}: {e}"));
        }
    }
    // The channels that it lists are those that a client may name, and the account's.
    let subscriptions = description["channels"]["socket"]["x-subscriptions"].as_array().unwrap();
    let listed: BTreeSet<&str> = subscriptions.iter().map(|one| one["channel"].as_str().unwrap()).collect();
    let channels = document["components"]["schemas"]["WsSubscribe"]["properties"]["channel"]["enum"].as_array().unwrap();
    let may_name: BTreeSet<&str> = channels.iter().map(|channel| channel.as_str().unwrap()).chain(["account"]).collect();
    assert_eq!((&listed, subscriptions.len()), (&may_name, listed.len()));
    for one in subscriptions {
        let path = one["message"]["$ref"].as_str().unwrap().strip_prefix('#').unwrap();
        assert!(description.pointer(path).is_some(), "{path}");
        assert!(one["first"].is_string() && one["then"].is_string() && one["needs"].is_array(), "{one}");
    }
    let mut all = BTreeSet::new();
    for list in ["WsRequest", "WsMessage"] {
        for one in document["components"]["schemas"][list]["oneOf"].as_array().unwrap() {
            all.insert(one["$ref"].as_str().unwrap().rsplit('/').next().unwrap().to_owned());
        }
    }
    assert_eq!(named, all, "every message of the WebSocket is in both");
    for (operation, says) in description["operations"].as_object().unwrap() {
        for message in says["messages"].as_array().unwrap() {
            let path = message["$ref"].as_str().unwrap().strip_prefix('#').unwrap();
            assert!(description.pointer(path).is_some(), "{operation}: {path}");
        }
    }
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, says) in methods.as_object().unwrap() {
            assert!(says["operationId"].is_string(), "{method} {path} has no operationId");
        }
    }
}
