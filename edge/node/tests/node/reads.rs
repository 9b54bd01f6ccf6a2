//! Large reads: in pages that joined are the whole, and in visits that leave the venue's thread to orders.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::mpsc;
use std::task::Poll;

use serde_json::{Value, json};
use walras_client::Client;
use walras_log_store::RealDisk;
use walras_ports::{OrderKey, VISITS_PER_ROUND, View, open_order};
use walras_sequencer::SignedBy;
use walras_types::{AccountId, ClientOrderId, InstrumentId, OrderTerms, PriceTicks, RejectReason as R, Side, SizeLots};
use walras_wire::{CancelOrder, Command, NewOrder, OrderCommand, VenueCommand};

use crate::schema::{check_named, document};
use crate::support::{Market, Socket, Venue, code, config, limit, restart};

/// Enters bids of alice with these names, one lot each.
fn enter(venue: &Venue, names: impl IntoIterator<Item = u64>) {
    let handle = venue.node().venue();
    for name in names {
        // The book's prices are multiples of 0.25.
        let price = PriceTicks::new(4 * 29_000 + i64::try_from(name % 7).unwrap()).unwrap();
        let terms = OrderTerms::limit(Side::Buy, price, SizeLots::new(1));
        let (account, instrument, client_order_id) = (AccountId(0), InstrumentId(0), ClientOrderId(name));
        handle.send_blocking(Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms }))).unwrap();
    }
    let entered = handle.command_blocking(Command::Venue(VenueCommand::Tick)).unwrap();
    assert!(entered.rejected().is_none());
}

fn ask(client: &Client, path: &str) -> Value {
    client.signed("GET", path, None).unwrap()
}

/// The orders of a page, and the next page's path.
fn page(client: &Client, query: &str, cursor: Option<&str>) -> (Vec<Value>, Option<String>) {
    let cursor = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
    let answer = ask(client, &format!("/v1/orders?{query}{cursor}"));
    check_named(&document(), "Orders", &answer);
    (answer["orders"].as_array().unwrap().clone(), answer["next"].as_str().map(str::to_owned))
}

fn all_pages(client: &Client, query: &str) -> Vec<Value> {
    let (mut all, mut next) = page(client, query, None);
    while let Some(cursor) = next {
        let more = page(client, query, Some(&cursor));
        all.extend(more.0);
        next = more.1;
    }
    all
}

fn names(orders: &[Value]) -> Vec<u64> {
    orders.iter().map(|order| order["client_order_id"].as_str().unwrap().parse().unwrap()).collect()
}

#[test]
fn pages_joined_are_all_orders() {
    let venue = Venue::start();
    let market = venue.market();
    enter(&venue, 1..=300);
    let second = json!({
        "symbol": "BTC/EUR", "base": "BTC", "quote": "USD", "tick_size": "0.25", "lot_size": "0.0001", "reference_price": "30000",
    });
    market.operator.signed("POST", "/v1/admin/instruments", Some(&second)).unwrap();
    market.operator.signed("POST", "/v1/admin/phases", Some(&json!({"instrument": "BTC-EUR", "phase": "continuous"}))).unwrap();
    for id in 1..=3 {
        let mut other = limit(id, "buy", "0.5", "29500");
        other["instrument"] = "BTC-EUR".into();
        market.order(&market.alice, &other);
    }
    let whole = ask(&market.alice, "/v1/orders");
    assert_eq!(whole["next"], Value::Null);
    let whole = whole["orders"].as_array().unwrap();
    assert_eq!(names(whole), (1..=300).chain(1..=3).collect::<Vec<_>>(), "by instrument, then as they entered");
    for limit in [1, 40, 299, 300, 301, 303, 1_000] {
        assert_eq!(&all_pages(&market.alice, &format!("limit={limit}")), whole, "pages of {limit}");
    }
    assert_eq!(all_pages(&market.alice, "instrument=BTC-EUR&limit=2"), whole[300..]);
    assert_eq!(all_pages(&market.alice, "instrument=BTC-USD&limit=70"), whole[..300]);
    assert_eq!(&market.alice.signed_pages("/v1/orders?limit=100", "orders").unwrap()["orders"], &json!(whole));
    assert_eq!(all_pages(&market.bob, "limit=1"), [] as [Value; 0]);

    let refused = |query: &str| code(market.alice.signed("GET", &format!("/v1/orders?{query}"), None));
    for query in ["cursor=5", "cursor=0-x", "cursor=", "limit=1001", "limit=x", "instrument=BTC-EUR&cursor=0-9", "after=3"] {
        assert_eq!(refused(query), u64::from(R::Malformed.number()), "{query}");
    }
    // Behind all there is.
    assert_eq!(page(&market.alice, "limit=3", Some("99-0")), (vec![], None));
}

#[test]
fn an_order_that_stands_through_all_pages_is_in_one() {
    let venue = Venue::start();
    let market = venue.market();
    enter(&venue, 1..=400);
    let gone: BTreeSet<u64> = (1..=400).filter(|name| name % 5 == 0).collect();
    let (mut seen, mut next) = page(&market.alice, "limit=50", None);
    let mut cancelled = gone.iter();
    let mut new = 401..;
    while let Some(cursor) = next {
        for name in cancelled.by_ref().take(12) {
            market.alice.signed("DELETE", &format!("/v1/orders/BTC-USD/{name}"), None).unwrap();
        }
        enter(&venue, new.by_ref().take(3));
        let more = page(&market.alice, "limit=50", Some(&cursor));
        seen.extend(more.0);
        next = more.1;
    }
    assert_eq!(cancelled.next(), None, "all were cancelled meanwhile");
    let seen = names(&seen);
    let mut count = BTreeMap::new();
    seen.iter().for_each(|name| *count.entry(*name).or_insert(0) += 1);
    assert!(count.values().all(|count| *count == 1), "twice: {count:?}");
    assert!((1..=400).filter(|name| !gone.contains(name)).all(|name| count.contains_key(&name)), "missing: {count:?}");
    assert!(seen.iter().any(|name| *name > 400), "new ones come last");
}

/// An order that took twice, was hit once, and was amended.
fn traded(market: &Market) -> u64 {
    market.order(&market.bob, &limit(1, "sell", "0.1", "29990"));
    market.order(&market.bob, &limit(2, "sell", "0.1", "29995.25"));
    let entered = market.order(&market.alice, &limit(7, "buy", "0.5", "30000"));
    market.order(&market.bob, &limit(3, "sell", "0.05", "30000"));
    market.alice.signed("PATCH", "/v1/orders/BTC-USD/7", Some(&json!({"size": "0.2"}))).unwrap();
    entered["time_ns"].as_str().unwrap().parse().unwrap()
}

#[test]
fn an_orders_past_is_told_also_after_a_restart() {
    let mut venue = Venue::start();
    let market = venue.market();
    let entered_at = traded(&market);
    market.order(&market.alice, &limit(8, "buy", "1", "29000"));
    let told = ask(&market.alice, "/v1/orders")["orders"].clone();
    let past = ["original_size", "filled", "average_price", "entered_at_ns", "open", "status"];
    let of = |order: &Value| past.map(|field| order[field].clone());
    let texts = ["0.5000", "0.2500", "29994.1", &entered_at.to_string(), "0.2000", "partially_filled"];
    assert_eq!(of(&told[0]), texts.map(Value::from));
    assert_eq!(of(&told[1])[..3], ["1.0000".into(), "0".into(), Value::Null]);
    let mut socket = Socket::connect(&venue.url());
    socket.authenticate(&market.alice_key);
    let snapshot = socket.next_of("account");
    check_named(&document(), "WsAccount", &snapshot);
    assert_eq!((&snapshot["orders"], &snapshot["has_more"]), (&told, &json!(false)), "the WebSocket says the same");
    drop(socket);
    venue.stop();
    venue.node = Some(restart(RealDisk, &venue.dir, &config()));
    let alice = Client::new(&venue.url(), Some(market.alice_key.clone()));
    assert_eq!(ask(&alice, "/v1/orders")["orders"], told, "from a snapshot");
}

#[test]
fn the_private_channel_begins_with_a_large_account_part_by_part() {
    let venue = Venue::start();
    let market = venue.market();
    enter(&venue, 1..=500);
    let mut readers = [(); 2].map(|()| {
        let mut socket = Socket::connect(&venue.url());
        socket.authenticate(&market.alice_key);
        socket
    });
    for socket in &mut readers {
        let mut messages = vec![socket.next_of("account")];
        while messages.last().unwrap()["has_more"] == true {
            messages.push(socket.next_of("account"));
        }
        messages.iter().for_each(|message| check_named(&document(), "WsAccount", message));
        let kinds: Vec<&str> = messages.iter().map(|message| message["kind"].as_str().unwrap()).collect();
        assert!(kinds.len() > 2 && kinds[0] == "snapshot" && kinds[1..].iter().all(|kind| *kind == "more"), "{kinds:?}");
        let orders: Vec<Value> = messages.iter().flat_map(|message| message["orders"].as_array().unwrap().clone()).collect();
        assert_eq!(json!(orders), ask(&market.alice, "/v1/orders")["orders"]);
    }
    // A change of the last of them is sent, with the order's history.
    market.alice.signed("PATCH", "/v1/orders/BTC-USD/500", Some(&json!({"price": "28000"}))).unwrap();
    for socket in &mut readers {
        let update = &socket.next_of("account")["order_updates"][0];
        assert_eq!(
            (&update["client_order_id"], &update["price"], &update["type"], &update["status"]),
            (&json!("500"), &json!("28000.00"), &json!("limit"), &json!("resting"))
        );
    }
}

#[test]
fn a_command_follows_from_what_a_look_sees() {
    let venue = Venue::start();
    venue.market();
    enter(&venue, [7]);
    let handle = venue.node().venue();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (account, instrument, client_order_id) = (AccountId(0), InstrumentId(0), ClientOrderId(7));
    let cancel = || {
        let look = move |view: &View<'_>| {
            let listed = open_order(view, account, instrument, OrderKey::Client(client_order_id)).ok_or("no such order")?;
            let cancel = CancelOrder { account, instrument, client_order_id };
            Ok::<_, &str>((listed.order.open, Command::Order(OrderCommand::Cancel(cancel))))
        };
        runtime.block_on(handle.command_after(SignedBy::NOBODY, look)).unwrap()
    };
    let (open, outcome) = cancel().unwrap();
    assert_eq!((open, outcome.rejected()), (SizeLots::new(1), None));
    assert_eq!(cancel().unwrap_err(), "no such order");
}

/// Holds the venue's thread in a read until many reads and then one command are queued. The reads of that round come first, and no
/// more: the next round begins with the command.
#[test]
fn reads_however_many_leave_each_round_to_commands() {
    const READS: usize = 400;
    let venue = Venue::start();
    venue.market();
    let handle = venue.node().venue();
    let (go, gate) = mpsc::channel::<()>();
    let (begins, begun) = mpsc::channel::<()>();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let seen_waiting: Vec<bool> = runtime.block_on(async {
        type Read<'a> = Pin<Box<dyn Future<Output = bool> + 'a>>;
        let held = move |_: &View<'_>| begins.send(()).is_err() || gate.recv().is_err();
        let mut first: Read<'_> = Box::pin(async { handle.read(held).await.unwrap() });
        let read = |_| -> Read<'_> {
            Box::pin(async {
                let venue = handle.clone();
                handle.read(move |_| venue.commands_waiting() > 0).await.unwrap()
            })
        };
        // A read is queued when it is first asked for.
        poll_fn(|context| {
            assert!(first.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        begun.recv().unwrap();
        let mut reads: Vec<Read<'_>> = (0..READS).map(read).collect();
        poll_fn(|context| {
            for read in &mut reads {
                assert!(read.as_mut().poll(context).is_pending(), "the thread is held");
            }
            Poll::Ready(())
        })
        .await;
        let outcome = handle.submit(Command::Venue(VenueCommand::Tick)).unwrap();
        assert_eq!(handle.commands_waiting(), 1);
        go.send(()).unwrap();
        let mut seen = vec![first.await];
        for read in reads {
            seen.push(read.await);
        }
        outcome.await.unwrap().unwrap();
        seen
    });
    let before_it = seen_waiting.iter().filter(|waiting| **waiting).count();
    assert_eq!((before_it, seen_waiting.len()), (VISITS_PER_ROUND - 1, READS + 1), "of {READS} reads");
}
