//! The WebSocket: feeds without gaps, private channels that stay private, slow readers dropped, commands in order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use walras_access::{Clock, now};
use walras_client::{headers, sign};
use walras_gateway::{ClientKey, Request};
use walras_log_store::RealDisk;
use walras_types::{RejectReason as R, TimeNs};

use crate::schema::{check_named, document};
use crate::support::{Market, Raw, Socket, Venue, code, config, limit, market, operator, restart_by};

fn subscribe(socket: &mut Socket, channel: &str) -> Value {
    socket.ask(&json!({"op": "subscribe", "channel": channel, "instrument": "BTC-USD"}), "subscribed")
}

/// A reader's book.
#[derive(Debug, Default, PartialEq)]
struct Book {
    seq: u64,
    sides: [BTreeMap<String, (String, u64)>; 2],
}

/// CRC-32, one bit after the other.
fn crc32(text: &str) -> u32 {
    let bit = |sum: u32, bit: u32| (sum >> 1) ^ (0xEDB8_8320 * ((sum ^ bit) & 1));
    !text.bytes().fold(!0, |sum, byte| (0..8).fold(sum, |sum, i| bit(sum, u32::from(byte) >> i)))
}

impl Book {
    /// As docs/websocket.md says it.
    fn checksum(&self) -> u32 {
        let mut texts = Vec::new();
        for (side, is_bids) in self.sides.iter().zip([true, false]) {
            let mut levels: Vec<_> =
                side.iter().map(|(price, (size, _))| (price.replace('.', "").parse::<i64>().unwrap(), price, size)).collect();
            levels.sort();
            if is_bids {
                levels.reverse();
            }
            texts.extend(levels.into_iter().take(10).flat_map(|(_, price, size)| [price.as_str(), size.as_str()]));
        }
        crc32(&texts.join(":"))
    }

    fn apply(&mut self, message: &Value) {
        let seq: u64 = message["feed_seq"].as_str().unwrap().parse().unwrap();
        assert_eq!(seq, self.seq + 1, "a gap");
        self.seq = seq;
        if message["kind"] == "snapshot" {
            self.sides = Default::default();
        }
        for (side, name) in self.sides.iter_mut().zip(["bids", "asks"]) {
            for level in message[name].as_array().unwrap() {
                let text = |i: usize| level[i].as_str().unwrap().to_owned();
                if text(1) == "0" {
                    side.remove(&text(0));
                } else {
                    side.insert(text(0), (text(1), level[2].as_u64().unwrap()));
                }
            }
        }
        assert_eq!(message["checksum"], self.checksum(), "{message}");
    }
}

/// Reads the book's feed until it shows an entry of the log at or after this.
fn follow(socket: &mut Socket, book: &mut Book, until: u64) {
    loop {
        let message = socket.next_of("book");
        check_named(&document(), "WsBook", &message);
        book.apply(&message);
        if message["log_index"].as_str().unwrap().parse::<u64>().unwrap() >= until {
            return;
        }
    }
}

fn index_of(reply: &Value) -> u64 {
    reply["log_index"].as_str().unwrap().parse().unwrap()
}

#[test]
fn a_reader_who_follows_the_updates_holds_the_book() {
    let venue = Venue::start();
    let market = venue.market();
    market.order(&market.alice, &limit(1, "buy", "1", "29000"));
    let mut socket = Socket::connect(&venue.url());
    check_named(&document(), "WsSubscribed", &subscribe(&mut socket, "book"));
    let mut book = Book::default();
    book.apply(&socket.next_of("book"));
    assert_eq!(book.sides[0]["29000.00"], ("1.0000".into(), 1));
    let mut last = 0;
    for id in 2..60_u64 {
        let (side, price) = if id % 2 == 0 { ("buy", 29_900 - id) } else { ("sell", 30_100 + id) };
        last = index_of(&market.order(&market.alice, &limit(id, side, "0.5", &price.to_string())));
        if id % 5 == 0 {
            last = index_of(&market.alice.signed("DELETE", &format!("/v1/orders/BTC-USD/{id}"), None).unwrap());
        }
    }
    follow(&mut socket, &mut book, last);
    let mut fresh = Book::default();
    let mut second = Socket::connect(&venue.url());
    subscribe(&mut second, "book");
    fresh.apply(&second.next_of("book"));
    assert_eq!(book.sides, fresh.sides, "updates led to where a snapshot is");
    assert!(book.seq > 1);
}

#[test]
fn the_indicative_price_follows_orders_that_nobody_sees_and_ends_with_the_auction() {
    let venue = Venue::start();
    let market = venue.market();
    let phase = |to: &str| {
        market.operator.signed("POST", "/v1/admin/phases", Some(&json!({"instrument": "BTC-USD", "phase": to}))).unwrap();
    };
    for to in ["closed", "pre_open"] {
        phase(to);
    }
    let mut socket = Socket::connect(&venue.url());
    subscribe(&mut socket, "book");
    let mut book = Book::default();
    // The first message that says so.
    let mut wait_for = |indicative: Value| loop {
        let message = socket.next_of("book");
        check_named(&document(), "WsBook", &message);
        book.apply(&message);
        if message["indicative"] == indicative {
            return message;
        }
    };
    wait_for(Value::Null);
    market.order(&market.alice, &limit(1, "buy", "2", "30100"));
    market.order(&market.bob, &limit(1, "sell", "1", "30000"));
    wait_for(json!({"price": "30100.00", "volume": "1.0000", "imbalance": "1.0000"}));
    let mut hidden = limit(2, "sell", "1.5", "30050");
    hidden["display"] = "hidden".into();
    market.order(&market.bob, &hidden);
    let update = wait_for(json!({"price": "30050.00", "volume": "2.0000", "imbalance": "-0.5000"}));
    assert_eq!((&update["bids"], &update["asks"]), (&json!([]), &json!([])), "no level changed");
    let mut late = Socket::connect(&venue.url());
    subscribe(&mut late, "book");
    assert_eq!(late.next_of("book")["indicative"], update["indicative"], "a snapshot says the same");
    phase("opening_auction");
    phase("continuous");
    let over = wait_for(Value::Null);
    assert_eq!(over["bids"], json!([["30100.00", "0", 0]]));
}

#[test]
fn a_late_reader_begins_with_the_book_as_the_others_were_sent_it() {
    let venue = Venue::start();
    let market = venue.market();
    market.order(&market.alice, &limit(1, "buy", "1", "29000"));
    let mut readers = vec![(Socket::connect(&venue.url()), Book::default())];
    subscribe(&mut readers[0].0, "book");
    for id in 2..=30 {
        market.order(&market.alice, &limit(id, "buy", "0.5", &(29_000 + id % 9).to_string()));
        if id % 3 == 0 {
            // It may have traded.
            drop(market.alice.signed("DELETE", &format!("/v1/orders/BTC-USD/{}", id - 1), None));
        }
        let last = index_of(&market.order(&market.bob, &limit(id, "sell", "0.25", &(29_020 - id % 20).to_string())));
        if id % 10 == 0 {
            let mut late = Socket::connect(&venue.url());
            subscribe(&mut late, "book");
            readers.push((late, Book::default()));
        }
        readers.iter_mut().for_each(|(socket, book)| follow(socket, book, last));
        let sides = readers[0].1.sides.clone();
        for (_, book) in &readers {
            assert_eq!(book.sides, sides);
        }
    }
    let book = market.alice.get("/v1/instruments/BTC-USD/book").unwrap();
    for (side, name) in readers[3].1.sides.iter().zip(["bids", "asks"]) {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let level = |level: &Value| (text(&level[0]), (text(&level[1]), level[2].as_u64().unwrap()));
        assert_eq!(*side, book[name].as_array().unwrap().iter().map(level).collect(), "{name}");
    }
}

/// A reader's book by order: the venue's numbers of orders, with side, price and size, as they stand.
#[derive(Debug, Default)]
struct OrderBook {
    seq: u64,
    log_index: Option<String>,
    orders: Vec<(String, String, String, String)>,
}

impl OrderBook {
    fn apply(&mut self, message: &Value) {
        check_named(&document(), "WsBookOrders", message);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        if message["kind"] == "snapshot" {
            *self = Self { seq: self.seq, ..Self::default() };
        }
        self.seq += 1;
        assert_eq!(message["feed_seq"], self.seq.to_string(), "a gap");
        assert_eq!(message["previous_log_index"].as_str(), self.log_index.as_deref(), "a gap");
        self.log_index = Some(text(&message["log_index"]));
        for order_id in message["removed"].as_array().unwrap() {
            let before = self.orders.len();
            self.orders.retain(|order| order.0 != text(order_id));
            assert_eq!(self.orders.len() + 1, before, "{message}");
        }
        for resized in message["resized"].as_array().unwrap() {
            let order = self.orders.iter_mut().find(|order| order.0 == text(&resized[0])).unwrap();
            order.3 = text(&resized[1]);
        }
        for added in message["added"].as_array().unwrap() {
            self.orders.push((text(&added[0]), text(&added[1]), text(&added[2]), text(&added[3])));
        }
        // What was pushed last stands behind all others of its price.
        self.orders.sort_by_key(|(_, side, price, _)| {
            let ticks: i64 = price.replace('.', "").parse().unwrap();
            if side == "buy" { (0, -ticks) } else { (1, ticks) }
        });
        let first = |name: &'static str| self.orders.iter().filter(move |order| order.1 == name).take(10);
        let texts =
            ["buy", "sell"].into_iter().flat_map(first).map(|(order_id, _, price, size)| format!("{order_id}:{price}:{size}"));
        assert_eq!(message["checksum"], crc32(&texts.collect::<Vec<_>>().join(":")), "{message}");
    }

    fn side(&self, name: &str) -> Value {
        let of_side = self.orders.iter().filter(|(_, side, _, _)| side == name);
        of_side.map(|(order_id, _, price, size)| json!([order_id, price, size])).collect()
    }
}

#[test]
fn a_book_by_order_has_every_displayed_order_in_its_place_and_nobodys_name() {
    let venue = Venue::start();
    let market = venue.market();
    market.order(&market.alice, &limit(1, "buy", "1", "29000"));
    let mut readers = vec![(Socket::connect(&venue.url()), OrderBook::default())];
    check_named(&document(), "WsSubscribed", &subscribe(&mut readers[0].0, "book_orders"));
    for id in 2..=40_u64 {
        let mut order = limit(id, "buy", "0.5", &(29_000 + id % 5).to_string());
        match id % 6 {
            0 => order["display"] = "hidden".into(),
            1 => {
                order["display"] = "iceberg".into();
                order["peak"] = "0.2".into();
            }
            _ => {}
        }
        market.order(&market.alice, &order);
        if id % 4 == 0 {
            // It loses its place, or has traded.
            drop(market.alice.signed("PATCH", &format!("/v1/orders/BTC-USD/{}", id - 2), Some(&json!({"size": "0.75"}))));
        }
        market.order(&market.bob, &limit(id, "sell", "0.25", &(29_012 - id % 10).to_string()));
        if id % 7 != 0 {
            continue;
        }
        let last = index_of(&market.order(&market.bob, &limit(100 + id, "sell", "0.1", "29500")));
        let mut late = Socket::connect(&venue.url());
        subscribe(&mut late, "book_orders");
        readers.push((late, OrderBook::default()));
        for (socket, book) in &mut readers {
            while book.log_index.as_ref().is_none_or(|at| at.parse::<u64>().unwrap() < last) {
                book.apply(&socket.next_of("book_orders"));
            }
        }
        let answer = market.alice.get("/v1/instruments/BTC-USD/book/orders?limit=500").unwrap();
        for (_, book) in &readers {
            assert_eq!((book.side("buy"), book.side("sell")), (answer["bids"].clone(), answer["asks"].clone()));
        }
        let levels = market.alice.get("/v1/instruments/BTC-USD/book").unwrap();
        for side in ["bids", "asks"] {
            let counts: u64 = levels[side].as_array().unwrap().iter().map(|level| level[2].as_u64().unwrap()).sum();
            assert_eq!(answer[side].as_array().unwrap().len() as u64, counts, "as many as the levels have");
        }
    }
    let answer = market.alice.get("/v1/instruments/BTC-USD/book/orders?limit=1").unwrap();
    assert_eq!((answer["bids"].as_array().unwrap().len(), &answer["has_more_bids"]), (1, &json!(true)));
}

#[test]
fn trades_candles_and_ticker_tell_the_same_trade() {
    let venue = Venue::start();
    let market = venue.market();
    let mut socket = Socket::connect(&venue.url());
    for channel in ["trades", "ticker"] {
        subscribe(&mut socket, channel);
    }
    let candles = json!({"op": "subscribe", "channel": "candles", "instrument": "BTC/USD", "interval": "1h"});
    assert_eq!(socket.ask(&candles, "subscribed")["interval"], "1h");
    market.order(&market.bob, &limit(1, "sell", "1", "30000"));
    market.order(&market.alice, &limit(1, "buy", "0.25", "30000"));
    let (mut trade, mut candle, mut ticker) = (None, None, None);
    while trade.is_none() || candle.is_none() || ticker.is_none() {
        let message = socket.next().unwrap();
        let is_update = message["kind"] == "update";
        match message["type"].as_str().unwrap() {
            "trades" if is_update => trade = Some(message),
            "candles" if is_update => candle = Some(message),
            "ticker" if message["last_price"] == "30000.00" => ticker = Some(message),
            _ => {}
        }
    }
    let (trade, candle, ticker) = (trade.unwrap(), candle.unwrap(), ticker.unwrap());
    for (name, message) in [("WsTrades", &trade), ("WsCandles", &candle), ("WsTicker", &ticker)] {
        check_named(&document(), name, message);
    }
    assert_eq!((&trade["trades"][0]["taker_side"], &trade["trades"][0]["size"]), (&json!("buy"), &json!("0.2500")));
    assert_eq!((&candle["candles"][0]["close"], &candle["candles"][0]["volume"]), (&json!("30000.00"), &json!("0.2500")));
    assert_eq!((&ticker["best_ask"], &ticker["best_bid"], &ticker["volume"]), (&json!("30000.00"), &Value::Null, &json!("0.2500")));
    assert_eq!((&ticker["best_ask_size"], &ticker["open"]), (&json!("0.7500"), &json!("30000.00")));
    assert_eq!(ticker["turnover"], json!("7500"));
    assert_eq!((&ticker["high"], &ticker["low"], &ticker["change_ppm"]), (&json!("30000.00"), &json!("30000.00"), &json!(0)));
}

#[test]
fn the_private_channel_is_its_accounts_alone() {
    let venue = Venue::start();
    let market = venue.market();
    let (mut alice, mut bob) = (Socket::connect(&venue.url()), Socket::connect(&venue.url()));
    for (socket, key) in [(&mut alice, &market.alice_key), (&mut bob, &market.bob_key)] {
        check_named(&document(), "WsAuthenticated", &socket.authenticate(key));
        let snapshot = socket.next_of("account");
        check_named(&document(), "WsAccount", &snapshot);
        assert_eq!((&snapshot["kind"], &snapshot["orders"]), (&json!("snapshot"), &json!([])));
    }
    market.order(&market.alice, &limit(3, "buy", "1", "30000"));
    let update = alice.next_of("account");
    check_named(&document(), "WsAccount", &update);
    let order = &update["order_updates"][0];
    assert_eq!((&order["client_order_id"], &order["status"], &order["type"]), (&json!("3"), &json!("resting"), &json!("limit")));
    assert_eq!(update["balances"][1], json!({"asset": "USD", "available": "969994", "reserved": "30006"}));

    // The first that bob hears is of his own order.
    market.order(&market.bob, &limit(8, "sell", "0.5", "30000"));
    let heard = bob.next_of("account");
    assert_eq!(heard["order_updates"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&heard["order_updates"][0]["client_order_id"], &heard["order_updates"][0]["status"]),
        (&json!("8"), &json!("filled"))
    );
    assert_eq!((&heard["fills"][0]["role"], &heard["fills"][0]["size"]), (&json!("taker"), &json!("0.5000")));
    let partly = alice.next_of("account");
    check_named(&document(), "WsAccount", &partly);
    assert_eq!(
        (&partly["order_updates"][0]["status"], &partly["order_updates"][0]["open"]),
        (&json!("partially_filled"), &json!("0.5000"))
    );
    assert_eq!((&partly["fills"][0]["role"], &partly["fills"][0]["fee"]), (&json!("maker"), &json!("1.5")));

    market.alice.signed("DELETE", "/v1/orders/BTC-USD/3", None).unwrap();
    let gone = alice.next_of("account");
    let mut stop = limit(4, "sell", "1", "28000");
    (stop["type"], stop["trigger"], stop["time_in_force"]) = ("stop_limit".into(), "29000".into(), "ioc".into());
    market.order(&market.alice, &stop);
    assert_eq!(alice.next_of("account")["order_updates"][0]["trigger"], "29000.00");
    let change = json!({"trigger": "28750", "price": "27500"});
    market.alice.signed("PATCH", "/v1/orders/BTC-USD/4", Some(&change)).unwrap();
    let moved = &alice.next_of("account")["order_updates"][0];
    assert_eq!(
        (&moved["trigger"], &moved["price"], &moved["status"]),
        (&json!("28750.00"), &json!("27500.00"), &json!("waiting_trigger"))
    );
    assert_eq!(
        (&gone["order_updates"][0]["status"], &gone["order_updates"][0]["reason"]),
        (&json!("cancelled"), &json!("requested"))
    );
}

#[test]
fn the_private_channel_says_which_orders_are_linked() {
    let venue = Venue::start();
    let market = venue.market();
    let mut alice = Socket::connect(&venue.url());
    alice.authenticate(&market.alice_key);
    alice.next_of("account");
    let mut stop = limit(1, "sell", "1", "28000");
    (stop["type"], stop["trigger"]) = ("stop_limit".into(), "29000".into());
    let mut profit = limit(2, "sell", "1", "31000");
    (profit["post_only"], profit["oco_with"]) = ("reject".into(), "1".into());
    // The updates of an order, as they come.
    let mut updates = Vec::new();
    let mut update_of = |alice: &mut Socket, client: &str, status: &str| loop {
        if let Some(place) = updates.iter().position(|u: &Value| u["client_order_id"] == client && u["status"] == status) {
            return updates.remove(place);
        }
        let heard = alice.next_of("account");
        check_named(&document(), "WsAccount", &heard);
        updates.extend(heard["order_updates"].as_array().into_iter().flatten().cloned());
    };
    market.order(&market.alice, &stop);
    let first = update_of(&mut alice, "1", "waiting_trigger");
    assert_eq!(first["linked_order_id"], Value::Null, "{first}");
    market.order(&market.alice, &profit);
    let second = update_of(&mut alice, "2", "resting");
    assert_eq!(second["linked_order_id"], first["order_id"], "{second}");
    market.alice.signed("DELETE", "/v1/orders/BTC-USD/2", None).unwrap();
    let gone = [update_of(&mut alice, "2", "cancelled"), update_of(&mut alice, "1", "cancelled")];
    assert_eq!((&gone[0]["linked_order_id"], &gone[1]["linked_order_id"]), (&first["order_id"], &second["order_id"]), "{gone:?}");
    assert_eq!((&gone[0]["reason"], &gone[1]["reason"]), (&json!("requested"), &json!("linked")));
    // A reader that comes later hears it of orders that it was sent. Over the socket an order may be linked as well.
    market.order(&market.alice, &stop);
    (profit["op"], profit["id"]) = ("order".into(), "b".into());
    check_named(&document(), "WsOrder", &profit);
    alice.ask(&profit, "reply");
    let mut late = Socket::connect(&venue.url());
    late.authenticate(&market.alice_key);
    let orders = late.next_of("account")["orders"].clone();
    assert_eq!((&orders[0]["linked_order_id"], &orders[1]["linked_order_id"]), (&orders[1]["order_id"], &orders[0]["order_id"]));
    market.alice.signed("DELETE", "/v1/orders/BTC-USD/1", None).unwrap();
    let heard = late.next_of("account");
    let linked: Vec<_> = heard["order_updates"].as_array().unwrap().iter().map(|update| &update["linked_order_id"]).collect();
    assert_eq!(linked, [&orders[1]["order_id"], &orders[0]["order_id"]], "{heard}");
}

#[test]
fn commands_over_the_socket_are_answered_by_id() {
    let venue = Venue::start();
    let market = venue.market();
    let mut socket = Socket::connect(&venue.url());
    let order = |id: &str, client: u64, side: &str| {
        let mut message = limit(client, side, "1", "30000");
        message["op"] = "order".into();
        message["id"] = id.into();
        message
    };
    let refused = socket.ask(&order("a", 1, "buy"), "error");
    check_named(&document(), "WsError", &refused);
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("a"), &json!(R::Unauthenticated.number())));
    socket.authenticate(&market.alice_key);
    // Sent without waiting: answered in order, because they are applied in order.
    socket.send(&order("b", 1, "buy"));
    socket.send(&json!({"op": "amend", "id": "c", "instrument": "BTC-USD", "client_order_id": "1", "size": "0.5"}));
    socket.send(&order("d", 1, "buy"));
    socket.send(&json!({"op": "cancel", "id": "e", "instrument": "BTC-USD", "client_order_id": "1"}));
    socket.send(&json!({"op": "mass_cancel", "id": "f"}));
    let mut answers = BTreeMap::new();
    while answers.len() < 5 {
        let message = socket.next().unwrap();
        if let Some(id) = message["id"].as_str() {
            answers.insert(id.to_owned(), message);
        }
    }
    check_named(&document(), "WsReply", &answers["b"]);
    assert_eq!((&answers["b"]["status"], &answers["b"]["open"]), (&json!("resting"), &json!("1.0000")));
    assert_eq!(answers["c"]["open"], "0.5000");
    assert_eq!(answers["d"]["error"]["code"], R::DuplicateClientOrderId.number());
    assert_eq!(answers["e"]["status"], "cancelled");
    check_named(&document(), "WsMassCancelReply", &answers["f"]);
    assert_eq!(answers["f"]["cancelled"], json!([]));
    let indices: Vec<u64> = ["b", "c", "e", "f"].iter().map(|id| index_of(&answers[*id])).collect();
    assert!(indices.is_sorted(), "{indices:?}");
}

#[test]
fn what_does_not_parse_is_answered_and_the_connection_goes_on() {
    let venue = Venue::start();
    venue.market();
    let mut socket = Socket::connect(&venue.url());
    let bad = [
        "",
        "{",
        "[]",
        "7",
        r#"{"op":"dance"}"#,
        r#"{"op":7}"#,
        r#"{"channel":"book"}"#,
        r#"{"op":"subscribe","channel":"book"}"#,
        r#"{"op":"subscribe","channel":"account","instrument":"BTC-USD"}"#,
        r#"{"op":"subscribe","channel":"book","instrument":"BTC-USD","interval":"1s"}"#,
        r#"{"op":"subscribe","channel":"candles","instrument":"BTC-USD","interval":"2s"}"#,
        r#"{"op":"auth"}"#,
        r#"{"op":"ping","more":1,"id":7}"#,
        r#"{"op":"ping","more":1}"#,
        r#"{"op":"order","instrument":"BTC-USD","side":"buy","side":"sell","size":"1","type":"limit","price":"1"}"#,
    ];
    for text in bad {
        socket.send_raw(Message::Text(text.into()));
        let answer = socket.next_of("error");
        assert_eq!(answer["error"]["code"], R::Malformed.number(), "{text}");
    }
    socket.send_raw(Message::Binary(vec![1, 2, 3].into()));
    assert_eq!(socket.next_of("error")["error"]["code"], R::Malformed.number());
    let unknown = json!({"op": "subscribe", "channel": "book", "instrument": "NO/SUCH"});
    assert_eq!(socket.ask(&unknown, "error")["error"]["code"], R::UnknownInstrument.number());
    check_named(&document(), "WsPong", &socket.ask(&json!({"op": "ping"}), "pong"));
    let pong = socket.ask(&json!({"op": "ping", "id": "p-1"}), "pong");
    check_named(&document(), "WsPong", &pong);
    assert_eq!(pong["id"], "p-1");
    let subscribed = socket.ask(&json!({"op": "subscribe", "channel": "ticker", "instrument": "BTC-USD", "id": "s"}), "subscribed");
    check_named(&document(), "WsSubscribed", &subscribed);
    assert_eq!(subscribed["id"], "s");
    socket.send(&json!({"op": "subscribe", "channel": "status"}));
    check_named(&document(), "WsStatus", &socket.next_of("status"));
    // One message too large ends it, with the code for that or none.
    socket.send_raw(Message::Text("x".repeat(100_000).into()));
    assert!(matches!(socket.next(), Err(Some(1009) | None)));
}

#[test]
fn a_revoked_key_ends_what_its_connections_may_do() {
    let venue = Venue::start();
    let market = venue.market();
    let mut socket = Socket::connect(&venue.url());
    socket.authenticate(&market.alice_key);
    market.operator.signed("DELETE", &format!("/v1/admin/keys/{}", market.alice_key.key_id()), None).unwrap();
    let mut order = limit(1, "buy", "1", "30000");
    order["op"] = "order".into();
    // Until the connection is closed nothing is done for it.
    socket.send(&order);
    loop {
        match socket.next() {
            Ok(message) if message["type"] == "error" => assert_eq!(message["error"]["code"], R::UnknownKey.number()),
            Ok(message) => assert_ne!(message["type"], "result", "{message}"),
            Err(code) => {
                assert_eq!(code, Some(walras_api::ws::CLOSE_REVOKED));
                return;
            }
        }
    }
}

#[test]
fn an_expired_key_is_refused_and_its_connections_are_closed() {
    const SECOND: u64 = 1_000_000_000;
    let dir = tempfile::tempdir().unwrap();
    let ahead_ns = Arc::new(AtomicU64::new(0));
    let clock = Clock::new({
        let ahead_ns = Arc::clone(&ahead_ns);
        move || TimeNs(now().0 + ahead_ns.load(Relaxed))
    });
    let node = restart_by(clock, RealDisk, dir.path(), &config());
    let url = format!("http://{}", node.address());
    let operator = operator(&url, dir.path());
    let market = market(&operator);
    let end_ns = now().0 + 40 * SECOND;
    let make = |expires: u64| {
        let permissions = ["read", "trade"];
        let body = json!({"account_id": 0, "permissions": permissions, "expire_time_ns": expires.to_string()});
        operator.signed("POST", "/v1/admin/keys", Some(&body))
    };
    assert_eq!(code(make(1)), u64::from(R::Malformed.number()), "that has passed");
    let made = make(end_ns).unwrap();
    assert_eq!(made["expire_time_ns"], end_ns.to_string());
    let key = ClientKey::from_token(made["key"].as_str().unwrap()).unwrap();
    let (mut listens, mut stays) = (Socket::connect(&url), Socket::connect(&url));
    listens.authenticate(&key);
    stays.authenticate(&market.bob_key);
    let ask = |stamp: u64| {
        let fields = key.sign(&Request { method: "GET", path: "/v1/account", body: b"" }, stamp, &stamp.to_string());
        Raw { method: "GET", path: "/v1/account", body: b"", key: None }.send_with(&url, headers(&fields))
    };
    assert_eq!(ask(now().0).status, 200);
    ahead_ns.store(45 * SECOND, Relaxed);
    let closed = loop {
        match listens.next() {
            Ok(_) => {}
            Err(code) => break code,
        }
    };
    assert_eq!(closed, Some(walras_api::ws::CLOSE_REVOKED));
    let refused = ask(now().0 + 45 * SECOND);
    assert_eq!((refused.status, refused.code()), (401, u64::from(R::KeyExpired.number())), "{}", refused.text);
    assert!(refused.text.contains("ask the operator for another one"), "{}", refused.text);
    assert_eq!(stays.ask(&json!({"op": "ping"}), "pong")["type"], "pong");
    drop((listens, stays));
    node.stop();
}

#[test]
fn every_feed_of_a_connection_counts_its_messages() {
    let venue = Venue::start();
    let market = venue.market();
    let mut socket = Socket::connect(&venue.url());
    socket.authenticate(&market.alice_key);
    let ask = |socket: &mut Socket, channel: &str| {
        socket.send(&json!({"op": "subscribe", "channel": channel, "instrument": "BTC-USD"}));
    };
    ["book", "book_orders", "trades"].iter().for_each(|channel| ask(&mut socket, channel));
    for interval in ["1s", "1m"] {
        socket.send(&json!({"op": "subscribe", "channel": "candles", "instrument": "BTC-USD", "interval": interval}));
    }
    socket.send(&json!({"op": "subscribe", "channel": "status"}));
    let mut counts = BTreeMap::<String, u64>::new();
    let feeds = ["book ", "book_orders ", "trades ", "ticker ", "candles 1s", "candles 1m", "account ", "status "];
    for id in 1.. {
        market.order(&market.bob, &limit(id, "sell", "0.001", "30000"));
        market.order(&market.alice, &limit(id, "buy", "0.001", "30000"));
        // The snapshot comes again, and its number goes on.
        ask(&mut socket, "ticker");
        loop {
            let message = socket.next().unwrap();
            let Some(feed_seq) = message["feed_seq"].as_str() else { continue };
            let feed = format!("{} {}", message["type"].as_str().unwrap(), message["interval"].as_str().unwrap_or_default());
            let count = counts.entry(feed.clone()).or_default();
            *count += 1;
            assert_eq!(feed_seq, count.to_string(), "a gap in {feed}");
            if feed == "ticker " {
                break;
            }
        }
        if feeds.iter().all(|feed| counts.get(*feed).is_some_and(|count| *count >= 2)) {
            return;
        }
    }
}

/// What a reader of the list of instruments holds, by id.
#[derive(Default)]
struct Listed {
    seq: u64,
    instruments: BTreeMap<u64, Value>,
}

impl Listed {
    /// Reads until the list is this one; the last message.
    fn follow(&mut self, socket: &mut Socket, until: &[Value]) -> Value {
        loop {
            let message = socket.next_of("instruments");
            check_named(&document(), "WsInstruments", &message);
            self.seq += 1;
            assert_eq!(message["feed_seq"], self.seq.to_string(), "a gap");
            if message["kind"] == "snapshot" {
                self.instruments.clear();
            }
            for instrument in message["instruments"].as_array().unwrap() {
                self.instruments.insert(instrument["instrument_id"].as_u64().unwrap(), instrument.clone());
            }
            if self.instruments.values().eq(until) {
                return message;
            }
        }
    }
}

#[test]
fn a_reader_of_the_list_hears_of_new_instruments_and_of_phases() {
    let venue = Venue::start();
    let market = venue.market();
    let operate = |path: &str, body: &Value| drop(market.operator.signed("POST", path, Some(body)).unwrap());
    // As REST lists them, but for what changes with each trade.
    let now = || {
        let mut all = market.alice.get("/v1/instruments").unwrap()["instruments"].as_array().unwrap().clone();
        for instrument in &mut all {
            assert!(instrument.as_object_mut().unwrap().remove("last_price").is_some());
        }
        all
    };
    let subscribe = json!({"op": "subscribe", "channel": "instruments"});
    let (mut socket, mut list) = (Socket::connect(&venue.url()), Listed::default());
    let mut of_one = subscribe.clone();
    of_one["instrument"] = "BTC-USD".into();
    assert_eq!(socket.ask(&of_one, "error")["error"]["code"], R::Malformed.number());
    check_named(&document(), "WsSubscribed", &socket.ask(&subscribe, "subscribed"));
    assert_eq!(list.follow(&mut socket, &now())["kind"], "snapshot");

    let spec = json!({
        "symbol": "NEW", "base": "BTC", "quote": "USD", "tick_size": "0.25", "lot_size": "0.0001", "reference_price": "30000",
    });
    operate("/v1/admin/instruments", &spec);
    let defined = list.follow(&mut socket, &now());
    assert_eq!((&defined["kind"], list.instruments.len()), (&json!("update"), 2));
    assert_eq!(list.instruments[&1]["phase"], "closed");
    // Trades change nothing of it.
    market.order(&market.alice, &limit(1, "buy", "1", "30000"));
    market.order(&market.bob, &limit(1, "sell", "1", "30000"));
    operate("/v1/admin/phases", &json!({"instrument": "NEW", "phase": "continuous"}));
    let opened = list.follow(&mut socket, &now());
    assert_eq!((&opened["kind"], &opened["instruments"]), (&json!("update"), &json!([now()[1]])));

    // Who comes later, and who asks again, has the same.
    let (mut second, mut from_now) = (Socket::connect(&venue.url()), Listed::default());
    second.ask(&subscribe, "subscribed");
    assert_eq!(from_now.follow(&mut second, &now())["kind"], "snapshot");
    socket.ask(&subscribe, "subscribed");
    assert_eq!(list.follow(&mut socket, &now())["kind"], "snapshot");
    for op in ["unsubscribe", "subscribe"] {
        socket.send(&json!({"op": op, "channel": "instruments"}));
    }
    assert_eq!(list.follow(&mut socket, &now())["kind"], "snapshot");
    operate("/v1/admin/phases", &json!({"instrument": "NEW", "phase": "halt"}));
    assert_eq!(list.follow(&mut socket, &now())["instruments"], from_now.follow(&mut second, &now())["instruments"]);
}

fn metric(venue: &Venue, name: &str) -> u64 {
    let text = Raw { method: "GET", path: "/metrics", body: b"", key: None }.send(&venue.url()).text;
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap()
}

#[test]
fn a_publication_is_encoded_once_for_all_its_readers() {
    const READERS: u64 = 8;
    let venue = Venue::start();
    let market = venue.market();
    let mut readers: Vec<Socket> = (0..READERS).map(|_| Socket::connect(&venue.url())).collect();
    let mut books = Vec::new();
    for reader in &mut readers {
        subscribe(reader, "book");
        let mut book = Book::default();
        book.apply(&reader.next_of("book"));
        books.push(book);
    }
    let mut last = 0;
    for id in 1..40_u64 {
        last = index_of(&market.order(&market.alice, &limit(id, "buy", "0.5", &(29_000 + id).to_string())));
    }
    for (reader, book) in readers.iter_mut().zip(&mut books) {
        follow(reader, book, last);
    }
    let updates = books[0].seq - 1;
    assert!(updates > 0 && books.iter().all(|book| book == &books[0]), "each has all updates, under its own numbers");
    assert_eq!(metric(&venue, "walras_feed_encoded_total"), 1 + updates, "one snapshot, too");
    assert_eq!(metric(&venue, "walras_feed_messages_total"), READERS + READERS * updates);
}

#[test]
fn a_reader_that_logs_on_goes_on_without_a_gap() {
    let venue = Venue::start();
    let market = venue.market();
    let mut socket = Socket::connect(&venue.url());
    subscribe(&mut socket, "book");
    let mut book = Book::default();
    let mut last = 0;
    for id in 1..60_u64 {
        last = index_of(&market.order(&market.bob, &limit(id, "buy", "0.5", &(29_000 + id).to_string())));
        if id == 30 {
            let fields = sign(&market.alice_key, &Request::WEB_SOCKET);
            let (key, timestamp, nonce, signature) = (fields.key, fields.timestamp, fields.nonce, fields.signature);
            socket.send(&json!({"op": "auth", "key": key, "timestamp": timestamp, "nonce": nonce, "signature": signature}));
        }
    }
    follow(&mut socket, &mut book, last);
    let mut order = limit(1, "buy", "1", "29000");
    (order["op"], order["id"]) = ("order".into(), "a".into());
    assert_eq!(socket.ask(&order, "reply")["status"], "resting");
}

/// Fills a reader's queue until the venue drops it.
fn churn_until_dropped(venue: &Venue, market: &Market) {
    let status = venue.node().venue();
    for id in 1.. {
        // A wide, ever-changing book makes large updates.
        for level in 0..40_u64 {
            let price = (29_000 + level).to_string();
            let body = limit(id * 100 + level, "buy", "0.0001", &price);
            market.alice.signed("POST", "/v1/orders", Some(&body)).unwrap();
        }
        market.alice.signed("DELETE", "/v1/orders", None).unwrap();
        if status.status().dropped_readers_total() > 0 {
            return;
        }
        assert!(id < 2_000, "the reader that does not read is never dropped");
    }
}

#[test]
fn a_reader_that_does_not_read_is_dropped_and_the_others_notice_nothing() {
    let mut config = config();
    config.websocket.queue_messages = 4;
    config.websocket.updates_per_second = 1_000;
    config.websocket.send_buffer_bytes = 4_096;
    config.throttle.requests_per_second = 1_000_000;
    config.throttle.burst = 1_000_000;
    config.throttle.source_requests_per_second = 1_000_000;
    config.throttle.source_burst = 1_000_000;
    let venue = Venue::with(&config);
    let market = venue.market();
    let mut slow = Socket::connect_with(&venue.url(), Some(4_096));
    subscribe(&mut slow, "book");
    churn_until_dropped(&venue, &market);
    // It reads what was on its way, then the code that tells it to come back.
    let code = loop {
        if let Err(code) = slow.next() {
            break code;
        }
    };
    assert_eq!(code, Some(walras_api::ws::CLOSE_SLOW));
    let mut again = Socket::connect(&venue.url());
    subscribe(&mut again, "book");
    assert_eq!(again.next_of("book")["kind"], "snapshot");
}
