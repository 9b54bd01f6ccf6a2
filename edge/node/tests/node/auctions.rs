//! A day with an opening and a closing auction, by REST and from the command line: orders collect, cross, trade at one price, and what
//! came of it is read back.

use serde_json::{Value, json};
use walras_access::operator_key_file;
use walras_client::Client;
use walras_types::RejectReason as R;

use crate::cli::Cli;
use crate::support::{Socket, Venue, code, limit};

fn number(reason: R) -> u64 {
    u64::from(reason.number())
}

fn balances(client: &Client) -> Vec<(String, String)> {
    let account = client.signed("GET", "/v1/account", None).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    account["balances"].as_array().unwrap().iter().map(|row| (text(&row["available"]), text(&row["reserved"]))).collect()
}

fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(String, String)> {
    pairs.map(|(a, b)| (a.to_owned(), b.to_owned())).into()
}

#[test]
fn a_day_opens_and_closes_with_an_auction_over_rest() {
    let venue = Venue::start();
    let market = venue.market();
    let (alice, bob) = (&market.alice, &market.bob);
    let phase = |to: &str| market.operator.signed("POST", "/v1/admin/phases", Some(&json!({"instrument": "BTC-USD", "phase": to})));
    let of_market = || alice.get("/v1/instruments").unwrap()["instruments"][0].clone();
    let trades = || alice.get("/v1/instruments/BTC-USD/trades").unwrap()["trades"].as_array().unwrap().clone();
    let book = || {
        let book = alice.get("/v1/instruments/BTC-USD/book").unwrap();
        let (auction, listed) = (alice.get("/v1/instruments/BTC-USD/auction").unwrap(), of_market());
        assert_eq!((&auction["indicative"], &auction["log_index"]), (&book["indicative"], &book["log_index"]));
        for field in ["phase", "phase_cause", "reference_price", "last_uncross"] {
            assert_eq!(auction[field], listed[field], "{field}");
        }
        book
    };

    assert_eq!(of_market()["last_uncross"], Value::Null, "there was no auction yet");
    phase("closed").unwrap();
    assert_eq!(code(alice.signed("POST", "/v1/orders", Some(&limit(1, "buy", "1", "30000")))), number(R::PhaseTakesNoOrders));
    assert_eq!(code(phase("closing_auction")), number(R::PhaseChangeInvalid), "an auction that ends a day that has not begun");
    phase("pre_open").unwrap();
    assert_eq!(market.order(alice, &limit(1, "buy", "2", "30100"))["status"], "resting");
    let at_once = json!({"instrument": "BTC-USD", "client_order_id": "9", "side": "sell", "type": "market", "size": "1"});
    assert_eq!(code(bob.signed("POST", "/v1/orders", Some(&at_once))), number(R::PhaseNoImmediate));
    phase("opening_auction").unwrap();
    assert_eq!(of_market()["phase"], "opening_auction");
    assert_eq!(book()["indicative"], Value::Null, "nothing crosses yet");
    market.order(bob, &limit(1, "sell", "1.5", "29900"));
    assert_eq!(book()["indicative"], json!({"price": "30100.00", "volume": "1.5000", "imbalance": "0.5000"}));
    market.order(bob, &limit(2, "sell", "1", "30050"));
    let indicative = book()["indicative"].clone();
    assert_eq!(indicative, json!({"price": "30050.00", "volume": "2.0000", "imbalance": "-0.5000"}));
    // The book is crossed, and nothing has traded.
    assert_eq!(book()["bids"], json!([["30100.00", "2.0000", 1]]));
    assert_eq!(book()["asks"], json!([["29900.00", "1.5000", 1], ["30050.00", "1.0000", 1]]));
    assert_eq!(trades(), [] as [Value; 0]);

    phase("continuous").unwrap();
    // Most trades at 30050 to 30100; what is left over is offered, so the price is the lowest of these.
    let uncross = trades();
    let shown: Vec<_> = uncross.iter().map(|t| (t["price"].as_str().unwrap(), t["size"].as_str().unwrap())).collect();
    assert_eq!(shown, [("30050.00", "0.5000"), ("30050.00", "1.5000")], "newest first");
    assert!(uncross.iter().all(|trade| trade["taker_side"].is_null()), "nobody takes in an auction: {uncross:?}");
    assert_eq!((&of_market()["last_price"], &of_market()["reference_price"]), (&json!("30050.00"), &json!("30050.00")));
    assert_eq!(of_market()["last_uncross"], indicative);
    assert_eq!(book()["indicative"], Value::Null, "orders match as they come");
    assert_eq!(book()["bids"], json!([]));
    assert_eq!(book()["asks"], json!([["30050.00", "0.5000", 1]]));
    let fills = alice.signed("GET", "/v1/fills", None).unwrap();
    for (fill, fee) in fills["fills"].as_array().unwrap().iter().zip(["1.5025", "4.5075"]) {
        // Both sides pay the maker's rate, 100 parts in a million.
        assert_eq!((&fill["role"], &fill["price"], &fill["fee"]), (&json!("auction"), &json!("30050.00"), &json!(fee)), "{fill}");
    }
    assert_eq!(
        balances(alice),
        pairs([("102", "0"), ("939893.99", "0")]),
        "what the limit reserved beyond the price is free again"
    );
    assert_eq!(balances(bob), pairs([("97.5", "0.5"), ("1060093.99", "0")]));

    phase("closing_auction").unwrap();
    let day = |id, price| {
        let mut order = limit(id, "buy", "0.2", price);
        order["time_in_force"] = "day".into();
        order
    };
    market.order(alice, &day(2, "30060"));
    market.order(alice, &day(3, "29000"));
    assert_eq!(trades().len(), 2, "orders collect");
    phase("closed").unwrap();
    let closing = trades();
    assert_eq!(closing.len(), 3);
    assert_eq!((&closing[0]["price"], &closing[0]["size"]), (&json!("30050.00"), &json!("0.2000")));
    assert_eq!(of_market()["last_uncross"], json!({"price": "30050.00", "volume": "0.2000", "imbalance": "-0.3000"}));
    // One in which nothing crosses says so.
    phase("pre_open").unwrap();
    phase("opening_auction").unwrap();
    phase("continuous").unwrap();
    assert_eq!(of_market()["last_uncross"], json!({"price": null, "volume": "0", "imbalance": "0"}));
    assert_eq!(alice.signed("GET", "/v1/orders", None).unwrap()["orders"], json!([]), "the day is over for day orders");
    let left = bob.signed("GET", "/v1/orders", None).unwrap();
    assert_eq!((&left["orders"][0]["open"], &left["orders"][0]["client_order_id"]), (&json!("0.3000"), &json!("2")));
}

#[test]
fn a_halt_says_whether_the_price_band_or_the_operator_caused_it() {
    let venue = Venue::start();
    let market = venue.market();
    let operate = |path: &str, body: &Value| drop(market.operator.signed("POST", path, Some(body)).unwrap());
    let phase = |to: &str| operate("/v1/admin/phases", &json!({"instrument": "NARROW", "phase": to}));
    let spec = json!({
        "symbol": "NARROW", "base": "BTC", "quote": "USD", "tick_size": "0.25", "lot_size": "0.0001", "reference_price": "30000",
        "collar_ppm": 100_000, "band_ppm": 50_000,
    });
    operate("/v1/admin/instruments", &spec);
    let mut socket = Socket::connect(&venue.url());
    socket.ask(&json!({"op": "subscribe", "channel": "ticker", "instrument": "NARROW"}), "subscribed");
    let mut is_now = |phase: &str, cause: &str| {
        let instruments = market.alice.get("/v1/instruments").unwrap()["instruments"].as_array().unwrap().clone();
        let listed = instruments.iter().find(|row| row["symbol"] == "NARROW").unwrap().clone();
        let [auction, ticker] =
            ["auction", "ticker"].map(|what| market.alice.get(&format!("/v1/instruments/NARROW/{what}")).unwrap());
        let mut pushed = socket.next_of("ticker");
        while pushed["phase"] != phase {
            pushed = socket.next_of("ticker");
        }
        for said in [&listed, &auction, &ticker, &pushed] {
            assert_eq!((&said["phase"], &said["phase_cause"]), (&json!(phase), &json!(cause)), "{said}");
        }
    };
    is_now("closed", "operator");
    phase("continuous");
    is_now("continuous", "operator");
    let order = |side: &str, price: &str| {
        let mut order = limit(1, side, "1", price);
        order["instrument"] = "NARROW".into();
        order
    };
    market.order(&market.alice, &order("sell", "32000"));
    let outside = market.order(&market.bob, &order("buy", "32500"));
    assert_eq!((&outside["status"], &outside["reason"]), (&json!("cancelled"), &json!("price_band")), "{outside}");
    is_now("halt", "price_band");
    phase("continuous");
    is_now("continuous", "operator");
    phase("halt");
    is_now("halt", "operator");
}

#[test]
fn an_auction_is_run_and_read_from_the_command_line() {
    let venue = Venue::start();
    drop(venue.market());
    let operator = Cli { url: venue.url(), key_file: operator_key_file(&venue.dir) };
    let [alice, bob] = ["0", "1"].map(|account| {
        let key_file = venue.dir.join(format!("trader-{account}.key"));
        operator.text(&["admin", "key", "--account", account, "--out", key_file.to_str().unwrap()]);
        Cli { url: venue.url(), key_file }
    });
    let phase = |to: &str| operator.text(&["admin", "phase", "BTC/USD", to]);
    phase("closed");
    let (status, said) = operator.fails(&["admin", "phase", "BTC/USD", "opening_auction"]);
    assert_eq!(status, 1);
    assert!(
        said.contains("PhaseChangeInvalid (42)") && said.contains("closed: pre_open, continuous;"),
        "what may follow is told: {said}"
    );
    phase("pre_open");
    phase("opening_auction");
    alice.text(&["order", "buy", "BTC/USD", "2", "--price", "30100", "--id", "1"]);
    bob.text(&["order", "sell", "BTC/USD", "1.5", "--price", "29900", "--id", "1"]);
    bob.text(&["order", "sell", "BTC/USD", "1", "--price", "30050", "--id", "2"]);
    let (status, said) = bob.fails(&["order", "sell", "BTC/USD", "1"]);
    assert!(status == 1 && said.contains("PhaseNoImmediate (41)") && said.contains("wait"), "{said}");
    assert!(operator.text(&["instruments"]).contains("opening_auction"));
    let book = operator.text(&["book", "BTC/USD"]);
    assert_eq!(book.lines().last().unwrap(), "indicative: 2.0000 would trade at 30050.00, 0.5000 to sell would be left");
    assert_eq!(operator.text(&["trades", "BTC/USD"]), "(none)\n");
    phase("continuous");
    let tape = operator.text(&["trades", "BTC/USD"]);
    assert_eq!(tape.lines().count(), 3, "a head and two trades: {tape}");
    assert!(
        tape.lines().skip(1).all(|line| line.contains("30050.00") && line.ends_with('-')),
        "at one price, taken by nobody: {tape}"
    );
    let fills = alice.json(&["account", "fills"]);
    assert!(fills["fills"].as_array().unwrap().iter().all(|fill| fill["role"] == "auction"), "{fills}");
    let shown = operator.json(&["instruments"])["instruments"][0].clone();
    assert_eq!([&shown["phase"], &shown["last_price"], &shown["reference_price"]], ["continuous", "30050.00", "30050.00"]);
    assert_eq!(shown["last_uncross"], json!({"price": "30050.00", "volume": "2.0000", "imbalance": "-0.5000"}));
    let left = bob.json(&["account", "orders"]);
    assert_eq!((&left["orders"][0]["open"], &left["orders"][0]["client_order_id"]), (&json!("0.5000"), &json!("2")));
}
