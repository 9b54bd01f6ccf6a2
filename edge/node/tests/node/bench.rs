//! `walras bench`: load on a venue, and the measurement of a machine, for a moment.

use std::time::Duration;

use serde_json::json;
use walras_client::LoadError;
use walras_client::load::{LoadOptions, LoadReport, Mode, run};
use walras_gateway::ClientKey;

use crate::cli::Cli;
use crate::support::{Venue, config, limit};

/// 120 commands in three tenths of a second.
fn load(url: String, key: &ClientKey, mode: Mode) -> Result<LoadReport, LoadError> {
    let (instrument, time) = ("BTC-USD".to_owned(), Duration::from_millis(300));
    run(&LoadOptions { url, key: key.clone(), instrument, connections: 3, rate_per_second: 400, time, mode })
}

fn statuses(report: &LoadReport) -> Vec<(&str, u64)> {
    report.statuses.iter().map(|(name, count)| (name.as_str(), *count)).collect()
}

#[test]
fn resting_orders_are_answered_and_taken_out_again() {
    let venue = Venue::start();
    let market = venue.market();
    market.order(&market.bob, &limit(1, "sell", "1", "30000"));
    let report = load(venue.url(), &market.alice_key, Mode::Resting).unwrap();
    assert_eq!((report.sent, report.acknowledged, report.orders_acknowledged), (120, 120, 60), "{report}");
    assert_eq!(statuses(&report), [("cancelled", 60), ("resting", 60)], "{report}");
    assert_eq!((report.unanswered, report.left_open, report.refused.len()), (0, 0, 0), "{report}");
    assert_eq!((report.latency.count, report.lateness.count), (120, 120));
    let latency = report.latency;
    assert!(latency.p50_ns > 0 && latency.p50_ns <= latency.p99_ns && latency.p99_ns <= latency.max_ns, "{report}");
    // The last was due 297.5 ms after the first, and nobody waits for what is not yet due.
    assert!(report.elapsed_ns >= 297_000_000, "{report}");
    assert_eq!(report.price, "25200.00", "four fifths of the way to the collar's end");
    assert_eq!(market.alice.signed("GET", "/v1/orders", None).unwrap()["orders"], json!([]));
    let trades = market.alice.get("/v1/instruments/BTC-USD/trades").unwrap();
    assert_eq!(trades["trades"], json!([]), "none of them traded");
}

#[test]
fn orders_that_match_trade_inside_the_spread() {
    let venue = Venue::start();
    let market = venue.market();
    market.order(&market.bob, &limit(1, "sell", "1", "30010"));
    market.order(&market.bob, &limit(2, "buy", "1", "29990"));
    let report = load(venue.url(), &market.alice_key, Mode::Matching).unwrap();
    assert_eq!((report.acknowledged, report.orders_acknowledged, report.left_open), (120, 120, 0), "{report}");
    assert_eq!(statuses(&report), [("filled", 60), ("resting", 60)], "{report}");
    let trades = market.alice.get("/v1/instruments/BTC-USD/trades?limit=1000").unwrap();
    let trades = trades["trades"].as_array().unwrap();
    assert_eq!(trades.len(), 60);
    assert!(trades.iter().all(|trade| trade["price"] == "30000.00" && trade["size"] == "0.0001"));
}

#[test]
fn a_throttled_load_stops_cleans_up_and_names_the_setting() {
    let mut config = config();
    (config.throttle.requests_per_second, config.throttle.burst) = (10, 20);
    let venue = Venue::with(&config);
    let market = venue.market();
    for (mode, key) in [(Mode::Resting, &market.alice_key), (Mode::Matching, &market.bob_key)] {
        let error = load(venue.url(), key, mode).unwrap_err();
        assert!(matches!(error, LoadError::Throttled { acknowledged: 1.., .. }), "{error}");
        let said = error.to_string();
        assert!(said.contains("`throttle.requests_per_second`") && said.contains("--rate"), "{said}");
        let book = market.alice.get("/v1/instruments/BTC-USD/book").unwrap();
        assert_eq!((&book["bids"], &book["asks"]), (&json!([]), &json!([])), "{mode:?}");
    }
}

#[test]
fn what_no_load_can_be_put_on_is_told_before_anything_is_sent() {
    let venue = Venue::start();
    let market = venue.market();
    let of = |instrument: &str, url: String| {
        let (instrument, time) = (instrument.to_owned(), Duration::from_millis(10));
        let key = market.alice_key.clone();
        run(&LoadOptions { url, key, instrument, connections: 1, rate_per_second: 100, time, mode: Mode::Matching }).unwrap_err()
    };
    assert!(of("ETH/USD", venue.url()).to_string().contains("walras instruments"));
    assert!(of("BTC/USD", "http://127.0.0.1:9".into()).to_string().contains("is the venue running there"));
    market.order(&market.bob, &limit(1, "sell", "1", "30000.25"));
    market.order(&market.bob, &limit(2, "buy", "1", "30000"));
    assert!(of("BTC/USD", venue.url()).to_string().contains("--mode resting"));
    market.operator.signed("POST", "/v1/admin/phases", Some(&json!({"instrument": "BTC/USD", "phase": "halt"}))).unwrap();
    assert!(of("BTC/USD", venue.url()).to_string().contains("walras admin phase BTC/USD continuous"));
}

#[test]
fn a_machine_is_measured_and_nothing_is_left_behind() {
    let dir = tempfile::tempdir().unwrap();
    let cli = Cli { url: "http://127.0.0.1:9".into(), key_file: "no-such.key".into() };
    let data = dir.path().to_str().unwrap();
    let report = cli.json(&["bench", "--commands", "2000", "--seconds", "0.05", "--data", data]);
    assert_eq!((&report["load"]["commands"], &report["load"]["resting_orders"]), (&3_000.into(), &1_000.into()), "{report}");
    for part in ["book", "engine"] {
        assert!(report[part]["ns_per_command"].as_f64().unwrap() > 0.0, "{report}");
    }
    let log = &report["log"];
    assert!(log["one_by_one"]["count"].as_u64().unwrap() > 0 && log["grouped"]["sync"]["p99_ns"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "what was written is gone");
    let said = cli.text(&["bench", "--commands", "2000", "--seconds", "0.05", "--data", data]);
    assert!(said.contains("engine with accounts and ledger") && said.contains("durable, one at a time"), "{said}");
    let (status, said) = cli.fails(&["bench", "--url", "http://127.0.0.1:9"]);
    assert!(status == 2 && said.contains("--instrument"), "{said}");
    assert_eq!(cli.fails(&["bench", "--rate", "100"]).0, 2, "a rate is of a load");
}

#[test]
fn a_load_is_put_on_from_the_command_line() {
    let venue = Venue::start();
    let market = venue.market();
    let key_file = venue.dir.join("alice.key");
    std::fs::write(&key_file, market.alice_key.to_token().as_str()).unwrap();
    let cli = Cli { url: "http://127.0.0.1:9".into(), key_file: "no-such.key".into() };
    let (url, key) = (venue.url(), key_file.to_str().unwrap().to_owned());
    let load = ["bench", "--url", &url, "--key", &key, "--instrument", "BTC/USD", "--seconds", "0.1", "--rate", "200"];
    let report = cli.json(&load);
    assert_eq!((&report["acknowledged"], &report["mode"]), (&20.into(), &"resting".into()), "{report}");
    let said = cli.text(&load);
    assert!(said.contains("acknowledged") && said.contains("p99.9"), "{said}");
    assert_eq!(cli.fails(&["bench", "--instrument", "BTC/USD"]).0, 4, "the key file is missing");
}
