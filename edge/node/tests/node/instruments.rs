//! How an instrument shares a level and what it lets an account do, as its operator defined it by REST or from the command line.

use serde_json::{Value, json};
use walras_access::operator_key_file;
use walras_types::RejectReason as R;

use crate::cli::Cli;
use crate::support::{Market, Venue, code};

/// Bids of 3, then 1, at one price; 2 come in. What is left of both.
fn left_of_two_bids(market: &Market, symbol: &str) -> [String; 2] {
    let order = |id: u64, side: &str, size: &str| json!({"instrument": symbol, "client_order_id": id.to_string(), "side": side, "type": "limit", "size": size, "price": "30000"});
    market.operator.signed("POST", "/v1/admin/phases", Some(&json!({"instrument": symbol, "phase": "continuous"}))).unwrap();
    market.order(&market.alice, &order(1, "buy", "3"));
    market.order(&market.alice, &order(2, "buy", "1"));
    assert_eq!(market.order(&market.bob, &order(1, "sell", "2"))["status"], "filled");
    let answer = market.alice.signed("GET", &format!("/v1/orders?instrument={symbol}"), None).unwrap();
    let orders = answer["orders"].as_array().unwrap();
    ["1", "2"].map(|id| {
        let order = orders.iter().find(|order| order["client_order_id"] == id).unwrap();
        order["open"].as_str().unwrap().to_owned()
    })
}

/// Kinds with their fields, as flags and as JSON, and what two bids have left.
///
/// - split: 0.8 goes to the first; of 1.2 each gets its part of the 2.2 and 1 that are left.
/// - top_pro_rata: 0.5 goes to the first; of 15,000 lots it gets 10,714 of 2.5 and 1, the other 4,285; the one that rounding left is the first's.
fn kinds() -> [(&'static str, Vec<&'static str>, Value, [&'static str; 2]); 4] {
    [
        ("FIFO", vec!["--allocation", "price_time"], json!({"kind": "price_time"}), ["1.0000", "1.0000"]),
        (
            "PARTS",
            vec!["--allocation", "pro_rata", "--allocation-min-size", "0.01"],
            json!({"kind": "pro_rata", "min_size": "0.0100"}),
            ["1.5000", "0.5000"],
        ),
        (
            "TOP",
            vec!["--allocation", "top_pro_rata", "--allocation-top-size-max", "0.5"],
            json!({"kind": "top_pro_rata", "top_size_max": "0.5000", "min_size": "0.0001"}),
            ["1.4285", "0.5715"],
        ),
        (
            "SPLIT",
            vec!["--allocation", "split", "--allocation-fifo-percent", "40"],
            json!({"kind": "split", "fifo_percent": 40, "min_size": "0.0001"}),
            ["1.3750", "0.6250"],
        ),
    ]
}

/// `walras admin instrument` with flags of its own.
fn define<'a>(symbol: &'a str, flags: &[&'a str]) -> Vec<&'a str> {
    let instrument = ["admin", "instrument", symbol, "BTC", "USD", "--tick-size", "0.25", "--lot-size", "0.0001"];
    [&instrument[..], &["--reference-price", "30000"], flags].concat()
}

#[test]
fn every_allocation_is_defined_from_the_command_line_and_over_rest() {
    let venue = Venue::start();
    let market = venue.market();
    let operator = Cli { url: venue.url(), key_file: operator_key_file(&venue.dir) };
    for (symbol, flags, body, left) in kinds() {
        operator.text(&define(symbol, &flags));
        let over_rest = format!("{symbol}.2");
        let request = json!({
            "symbol": over_rest, "base": "BTC", "quote": "USD", "tick_size": "0.25", "lot_size": "0.0001", "reference_price": "30000",
            "allocation": body,
        });
        market.operator.signed("POST", "/v1/admin/instruments", Some(&request)).unwrap();
        let listed = operator.json(&["instruments"])["instruments"].as_array().unwrap().clone();
        for symbol in [symbol, over_rest.as_str()] {
            let shown = listed.iter().find(|row| row["symbol"] == symbol).unwrap();
            assert_eq!(shown["allocation"], body, "{symbol}");
            assert_eq!(left_of_two_bids(&market, symbol), left, "{symbol}");
        }
    }
    let table = operator.text(&["instruments"]);
    let line = table.lines().find(|line| line.starts_with("SPLIT ")).unwrap();
    assert!(line.ends_with("split"), "{table}");
}

#[test]
fn flags_of_an_allocation_that_do_not_go_together_are_told() {
    let venue = Venue::start();
    let market = venue.market();
    drop(market);
    let operator = Cli { url: venue.url(), key_file: operator_key_file(&venue.dir) };
    let told = |flags: &[&str], status: i32, what: &str| {
        let (found, said) = operator.fails(&define("A/B", flags));
        assert_eq!(found, status, "{flags:?}: {said}");
        assert!(said.contains(what), "{flags:?}: {said}");
    };
    told(&["--allocation", "split"], 2, "--allocation-fifo-percent");
    told(&["--allocation", "top_pro_rata"], 2, "--allocation-top-size-max");
    told(&["--allocation-min-size", "1"], 2, "--allocation");
    told(&["--allocation", "split", "--allocation-fifo-percent", "101"], 2, "101");
    told(&["--allocation", "fifo"], 2, "price_time");
    // What does not go with the kind is the venue's to refuse.
    told(&["--allocation", "pro_rata", "--allocation-top-size-max", "1"], 1, "top_size_max");
    told(&["--allocation", "pro_rata", "--allocation-min-size", "0.00001"], 1, "allocation.min_size");
}

#[test]
fn limits_of_an_instrument_hold_for_whoever_has_none_of_his_own() {
    let venue = Venue::start();
    let market = venue.market();
    let operator = Cli { url: venue.url(), key_file: operator_key_file(&venue.dir) };
    let flags = ["--order-size-max", "2", "--order-value-max", "45000", "--open-orders-max", "3", "--position-max", "2.5"];
    operator.text(&define("LIMITED", &flags));
    operator.text(&["admin", "phase", "LIMITED", "continuous"]);
    let order = |id: u64, size: &str, price: &str| {
        let order = json!({
            "instrument": "LIMITED", "client_order_id": id.to_string(), "side": "buy", "type": "limit", "size": size, "price": price,
        });
        market.alice.signed("POST", "/v1/orders", Some(&order))
    };
    let refused = |result, reason: R| assert_eq!(code(result), u64::from(reason.number()), "{reason:?}");
    refused(order(1, "2.0001", "25000"), R::OrderTooLarge);
    refused(order(1, "2", "25000"), R::OrderValueTooLarge);
    order(1, "1.5", "25000").unwrap();
    refused(order(2, "1.0001", "25000"), R::PositionLimit);
    order(2, "0.5", "25000").unwrap();
    order(3, "0.1", "25000").unwrap();
    refused(order(4, "0.1", "25000"), R::TooManyOpenOrders);
    // Limits of the account's own take their place.
    operator.text(&["admin", "limits", "0", "LIMITED", "--open-orders-max", "4"]);
    order(4, "2.5", "25000").unwrap();
    refused(order(5, "0.1", "25000"), R::TooManyOpenOrders);
}
