//! Stops of every kind: clean, repeated, and `kill -9` of a real process under load.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use walras_client::{Client, ClientError};
use walras_engine::Engine;
use walras_log_store::RealDisk;
use walras_node::node::Node;
use walras_replica_log::Dump;

use crate::support::{Venue, config, entries_of_log, limit, market, operator, replica_dir, restart, spawn};

/// Replays the log in a folder from its beginning.
fn hash_of_log(dir: &std::path::Path) -> [u8; 32] {
    let (mut engine, mut events) = (Engine::new(), Vec::new());
    for entry in entries_of_log(dir) {
        entry.apply(&mut engine, &mut events);
        events.clear();
    }
    engine.check_invariants();
    engine.state_hash()
}

#[test]
fn a_clean_stop_and_a_second_start_lose_nothing() {
    let mut venue = Venue::start();
    let market = venue.market();
    market.order(&market.bob, &limit(1, "sell", "2", "30000"));
    market.order(&market.alice, &limit(1, "buy", "0.5", "30000"));
    let account = market.alice.signed("GET", "/v1/account", None).unwrap();
    let trades = market.alice.get("/v1/instruments/BTC-USD/trades").unwrap();
    let candles = market.alice.get("/v1/instruments/BTC-USD/candles").unwrap();
    let book = market.alice.get("/v1/instruments/BTC-USD/book").unwrap();
    let hash = venue.node().venue().read_blocking(|view| view.engine.state_hash()).unwrap();
    venue.stop();
    assert_eq!(hash_of_log(&venue.dir), hash);

    let node = restart(RealDisk, &venue.dir, &config());
    assert_eq!(node.recovered().state_hash, hash);
    assert_eq!(node.recovered().entries_replayed, 0, "the stop wrote a snapshot");
    let alice = Client::new(&format!("http://{}", node.address()), Some(market.alice_key.clone()));
    assert_eq!(alice.signed("GET", "/v1/account", None).unwrap(), account);
    assert_eq!(alice.get("/v1/instruments/BTC-USD/trades").unwrap(), trades);
    assert_eq!(alice.get("/v1/instruments/BTC-USD/candles").unwrap(), candles);
    assert_eq!(alice.get("/v1/instruments/BTC-USD/book").unwrap(), book);
    assert_eq!(alice.signed("GET", "/v1/fills", None).unwrap()["fills"].as_array().unwrap().len(), 1);
    // And it goes on where it was.
    let next = alice.signed("POST", "/v1/orders", Some(&limit(2, "buy", "1.5", "30000"))).unwrap();
    assert_eq!((&next["status"], &next["fills"][0]["trade_id"]), (&json!("filled"), &json!("2")));
    node.stop();
}

#[test]
fn snapshots_on_the_way_change_nothing() {
    let mut config = config();
    config.log.snapshot_every_entries = 7;
    let mut venue = Venue::with(&config);
    let market = venue.market();
    for id in 1..60_u64 {
        let side = if id % 3 == 0 { "sell" } else { "buy" };
        let client = if id % 3 == 0 { &market.bob } else { &market.alice };
        market.order(client, &limit(id, side, "0.01", &(29_990 + id % 7).to_string()));
    }
    let hash = venue.node().venue().read_blocking(|view| view.engine.state_hash()).unwrap();
    venue.stop();
    let written = Dump::open(&RealDisk, &replica_dir(&venue.dir)).unwrap().snapshots.len();
    assert_eq!(written, 2, "one on the way, the last at the stop");
    assert_eq!(hash_of_log(&venue.dir), hash, "small enough that the log's first segment is still there");
    let node = restart(RealDisk, &venue.dir, &config);
    assert_eq!(node.recovered().state_hash, hash);
    node.stop();
}

#[test]
fn two_venues_do_not_share_a_folder() {
    let venue = Venue::start();
    let refused = Node::start(&venue.dir, &config()).map(Node::stop).unwrap_err().to_string();
    assert!(refused.contains("in use by another process"), "{refused}");
}

/// A venue in a process of its own. It ends with the test, however that ends.
pub(crate) struct Process {
    child: Child,
    pub(crate) url: String,
}

impl Process {
    fn start(dir: &std::path::Path) -> Self {
        Self::start_with(dir, "")
    }

    /// With more in its configuration.
    pub(crate) fn start_with(dir: &std::path::Path, more: &str) -> Self {
        Self::start_at(dir, "127.0.0.1:0", more)
    }

    /// At an address that others know.
    pub(crate) fn start_at(dir: &std::path::Path, listen: &str, more: &str) -> Self {
        let config = dir.join("walras.toml");
        // The load is as much as this machine can make.
        let throttle = "[throttle]\nrequests_per_second = 1000000\nburst = 1000000\nsource_requests_per_second = 1000000\nsource_burst = 1000000\n";
        let orders = "[order_entry]\nlisten = \"127.0.0.1:0\"\n";
        std::fs::write(&config, format!("{throttle}{orders}{more}")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_walras"));
        command.args(["serve", "--listen", listen, "--config"]).arg(config).arg("--data").arg(dir);
        let mut child = spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()));
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.split_whitespace().find(|word| word.starts_with("http://127.0.0.1:")).unwrap_or_else(|| panic!("{line}"));
        let url = url.trim_end_matches(['/', ',']).to_owned();
        Self { child, url }
    }

    /// `kill -9`.
    pub(crate) fn kill(self) {}
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

/// Sends orders until the venue is gone; says which were acknowledged, each with its answer, and which one was not answered.
fn trade_until_killed(client: &Client, from: u64) -> (BTreeMap<u64, Value>, Option<u64>) {
    let mut acknowledged = BTreeMap::new();
    for id in from.. {
        let body = limit(id, "buy", "0.0001", &(29_000 + id % 100).to_string());
        match client.signed("POST", "/v1/orders", Some(&body)) {
            Ok(answer) => {
                acknowledged.insert(id, answer);
            }
            Err(ClientError::Unreachable { .. }) => return (acknowledged, Some(id)),
            Err(e) => panic!("{e}"),
        }
    }
    unreachable!("ids do not run out")
}

#[test]
fn kill_9_under_load_loses_nothing_acknowledged_and_doubles_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let process = Process::start(dir.path());
    let market = market(&operator(&process.url, dir.path()));
    let mut acknowledged: [BTreeMap<u64, Value>; 2] = Default::default();
    let mut unanswered: [Vec<u64>; 2] = Default::default();
    let mut process = Some(process);
    for round in 0..3_u64 {
        let running = process.take().unwrap();
        let clients = [&market.alice_key, &market.bob_key].map(|key| Client::new(&running.url, Some(key.clone())));
        std::thread::scope(|scope| {
            let load = clients.each_ref().map(|client| scope.spawn(move || trade_until_killed(client, 1 + round * 1_000_000)));
            // Killed once it has taken some orders of this round: nobody knows which are on their way just then.
            let status = Client::new(&running.url, None);
            let started: u64 = status.get("/v1/status").unwrap()["log_index"].as_str().unwrap().parse().unwrap();
            while status.get("/v1/status").unwrap()["log_index"].as_str().unwrap().parse::<u64>().unwrap()
                < started + 50 + 40 * round
            {}
            running.kill();
            for (account, load) in load.into_iter().enumerate() {
                let (done, open) = load.join().unwrap();
                assert!(!done.is_empty());
                acknowledged[account].extend(done);
                unanswered[account].extend(open);
            }
        });
        let restarted = Process::start(dir.path());
        for (account, key) in [&market.alice_key, &market.bob_key].into_iter().enumerate() {
            let client = Client::new(&restarted.url, Some(key.clone()));
            let orders = client.signed_pages("/v1/orders", "orders").unwrap()["orders"].clone();
            let mut found = BTreeMap::new();
            for order in orders.as_array().unwrap() {
                let id: u64 = order["client_order_id"].as_str().unwrap().parse().unwrap();
                assert!(found.insert(id, order.clone()).is_none(), "order {id} is there twice");
            }
            for (id, answer) in &acknowledged[account] {
                let order = found.remove(id).unwrap_or_else(|| panic!("order {id} was acknowledged and is lost"));
                assert_eq!(order["order_id"], answer["order_id"]);
            }
            let only: Vec<u64> = found.into_keys().collect();
            assert!(only.iter().all(|id| unanswered[account].contains(id)), "{only:?} were never sent");
        }
        process = Some(restarted);
    }
    process.take().unwrap().kill();
    // The log from its beginning, the snapshot and the log after it, and a running venue agree.
    let hash = hash_of_log(dir.path());
    let node = restart(RealDisk, dir.path(), &config());
    assert_eq!(node.recovered().state_hash, hash);
    node.stop();
}

#[test]
fn sigterm_and_sigint_are_clean_stops() {
    for signal in [Signal::TERM, Signal::INT] {
        let dir = tempfile::tempdir().unwrap();
        let mut process = Process::start(dir.path());
        market(&operator(&process.url, dir.path()));
        kill_process(Pid::from_child(&process.child), signal).unwrap();
        assert_eq!(process.child.wait().unwrap().code(), Some(0), "{signal:?}");
        let node = restart(RealDisk, dir.path(), &config());
        assert!(node.recovered().log_index.0 > 0, "{signal:?}");
        assert_eq!(node.recovered().entries_replayed, 0, "it left a snapshot");
        node.stop();
    }
}
