//! The log's history: what the log has let go of is still there to be read, while the venue runs and afterwards.

use serde_json::Value;
use walras_access::operator_key_file;
use walras_log_store::{RealDisk, history};

use crate::cli::Cli;
use crate::support::{Market, Venue, config, limit, replica_dir, until};

fn order(market: &Market, ids: std::ops::Range<u64>) {
    for id in ids {
        market.order(&market.alice, &limit(id, "buy", "0.0001", "29000"));
    }
}

fn dumped(cli: &Cli, dir: &str) -> Vec<u64> {
    let text = cli.text(&["log", "dump", dir, "--json"]);
    text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["log_index"].as_u64().unwrap()).collect()
}

#[test]
fn what_the_log_let_go_of_is_read_while_the_venue_runs_and_after_it() {
    let mut config = config();
    config.log.segment_bytes = 64 << 10;
    let mut venue = Venue::with(&config);
    let market = venue.market();
    let cli = Cli { url: venue.url(), key_file: operator_key_file(&venue.dir) };
    let dir = venue.dir.to_str().unwrap().to_owned();
    let log = replica_dir(&venue.dir).join("log");
    for round in 0..4 {
        order(&market, 1 + round * 40..41 + round * 40);
        venue.node().venue().snapshot_blocking().unwrap();
    }
    until("segments leave the log for its history", || {
        order(&market, 9_000..9_001);
        market.alice.signed("DELETE", "/v1/orders/BTC-USD/9000", None).unwrap();
        history::list(&RealDisk, &log).unwrap().len() > 2
    });
    let last = venue.node().venue().status().progress().log_index.0;
    let of_running = dumped(&cli, &dir);
    assert_eq!((of_running[0], of_running.len() as u64), (1, *of_running.last().unwrap()));
    assert!(of_running.len() as u64 >= last);
    let sound = cli.json(&["log", "verify", &dir]);
    assert_eq!((&sound["sound"], &sound["first_index"]), (&Value::Bool(true), &Value::from("1")));
    let audit = cli.json(&["log", "audit", &dir]);
    assert_eq!((&audit["from_snapshot"], &audit["sound"]), (&Value::from("0"), &Value::Bool(true)));
    assert!(audit["states_compared"].as_u64().unwrap() >= 2, "{audit}");
    // What it finds is bounded by what was there when it began, so it ends though the venue goes on.
    venue.stop();
    let stopped = dumped(&cli, &dir);
    assert_eq!((stopped[0], stopped.len() as u64), (1, *stopped.last().unwrap()));
    assert!(cli.text(&["log", "audit", &dir]).contains("sound"));
    // The venue itself starts from its snapshot, and not from the history.
    venue.node = Some(crate::support::restart(RealDisk, &venue.dir, &config));
    assert!(venue.node().recovered().snapshot_index.0 > 40);
}

#[test]
fn a_venue_that_keeps_nothing_uses_its_files_again() {
    let mut config = config();
    config.log.segment_bytes = 64 << 10;
    config.log.keep_mib = 0;
    let venue = Venue::with(&config);
    let market = venue.market();
    for round in 0..4 {
        order(&market, 1 + round * 40..41 + round * 40);
        venue.node().venue().snapshot_blocking().unwrap();
    }
    assert!(!replica_dir(&venue.dir).join("log").join("history").exists());
}
