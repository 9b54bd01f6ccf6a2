//! Orders over HTTP under numbers of a session: the answer is lost on its way, or with the leader, and the order is sent again at the same and at another
//! leader. One effect, and the same answer each time.

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use walras_access::now;
use walras_client::{Client, ClientError};
use walras_gateway::ClientKey;
use walras_types::RejectReason;

use super::proxy::{Passing, Proxy};
use super::{Cluster, PATIENCE, Shape, until};

struct Trader {
    key: ClientKey,
    session: u64,
}

impl Trader {
    fn at(&self, cluster: &Cluster, id: u64) -> Client {
        Client::new(&cluster.local.replicas[id as usize - 1].url(), Some(self.key.clone()))
    }

    fn path(&self, seq: u64) -> String {
        format!("/v1/orders?session={}&session_seq={seq}", self.session)
    }

    /// As whoever leads knows it.
    fn next_seq(&self, cluster: &Cluster, leader: u64) -> u64 {
        let Ok(sessions) = self.at(cluster, leader).signed("GET", "/v1/sessions", None) else { return 0 };
        let all = sessions["sessions"].as_array().cloned().unwrap_or_default();
        let name = self.session.to_string();
        let row = all.iter().find(|row| row["session"] == name.as_str()).cloned().unwrap_or_default();
        row["next_seq"].as_str().map_or(0, |text| text.parse().unwrap())
    }

    fn position(&self, cluster: &Cluster, leader: u64) -> Value {
        self.at(cluster, leader).signed("GET", "/v1/account", None).unwrap()["positions"][0]["position"].clone()
    }

    /// Sends an order by a way on which answers are lost, and does `then` once the log has it.
    fn send_unheard(&self, cluster: &mut Cluster, leader: u64, seq: u64, then: impl FnOnce(&mut Cluster)) {
        // One that started a moment ago refuses what is stamped now, and that would not be heard either.
        until("it takes what is stamped now", || {
            let status = self.at(cluster, leader).get("/v1/status").unwrap();
            status["accepts_timestamps_from_ns"].as_str().is_none_or(|from| from.parse::<u64>().unwrap() <= now().0)
        });
        let way = Proxy::start(&cluster.local.replicas[leader as usize - 1].http);
        way.set(Passing::Open, Passing::Lost);
        let client = Client::new(&format!("http://{}", way.address), Some(self.key.clone()));
        let path = self.path(seq);
        let sending = std::thread::spawn(move || client.signed_here("POST", &path, Some(&take())));
        until("the order is in the log", || self.next_seq(cluster, leader) == seq + 1);
        then(cluster);
        way.cut();
        let unheard = sending.join().unwrap();
        assert!(matches!(unheard, Err(ClientError::Unreachable { .. })), "{unheard:?}");
    }
}

/// Trades at once and is gone, so that a second one would not be refused for its name.
fn take() -> Value {
    json!({"instrument": "BTC-USD", "client_order_id": "5", "side": "buy", "type": "limit", "size": "1", "price": "30000", "time_in_force": "ioc"})
}

fn begin(cluster: &Cluster) -> Trader {
    let accounts = cluster.market(2);
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let maker = cluster.operator(leader).with_key(accounts[1].1.clone());
    let asks =
        json!({"instrument": "BTC-USD", "client_order_id": "1", "side": "sell", "type": "limit", "size": "100", "price": "30000"});
    maker.signed("POST", "/v1/orders", Some(&asks)).unwrap();
    let mut trader = Trader { key: accounts[0].1.clone(), session: 0 };
    // A follower says who leads.
    let opened = trader.at(cluster, leader % 3 + 1).signed("POST", "/v1/sessions", Some(&json!({"token": "7"}))).unwrap();
    trader.session = opened["session"].as_str().unwrap().parse().unwrap();
    trader
}

/// The answer to a command that was carried out before.
fn repeated(client: &Client, path: &str) -> Value {
    let answer = client.signed("POST", path, Some(&take())).unwrap();
    assert_eq!(answer["repeated"], true, "{answer}");
    answer["log_index"].clone()
}

/// Another order under the number.
fn refuses_another(client: &Client, path: &str) {
    let mut other = take();
    other["side"] = "sell".into();
    let refused = client.signed("POST", path, Some(&other));
    let reused = u64::from(RejectReason::SessionSeqReused.number());
    assert!(matches!(refused, Err(ClientError::Refused { status: 409, code, .. }) if code == reused), "{refused:?}");
}

fn sent_again_at_both_leaders(mut cluster: Cluster) {
    let trader = begin(&cluster);
    let first = cluster.local.wait_for_leader(PATIENCE).unwrap();

    // The answer is lost on its way: the same leader is asked, then another one.
    trader.send_unheard(&mut cluster, first, 1, |_| ());
    let log_index = repeated(&trader.at(&cluster, first), &trader.path(1));
    refuses_another(&trader.at(&cluster, first), &trader.path(1));
    assert_eq!(trader.position(&cluster, first), "1.0000");
    cluster.kill(first);
    let second = cluster.local.wait_for_leader(PATIENCE).unwrap();
    assert_eq!(repeated(&trader.at(&cluster, second), &trader.path(1)), log_index);
    refuses_another(&trader.at(&cluster, second), &trader.path(1));
    assert_eq!(trader.position(&cluster, second), "1.0000");

    // The leader is killed with the answer.
    cluster.local.start(first).unwrap();
    cluster.catches_up(first);
    trader.send_unheard(&mut cluster, second, 2, |cluster| cluster.kill(second));
    let third = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let log_index = repeated(&trader.at(&cluster, third), &trader.path(2));
    assert_eq!(trader.position(&cluster, third), "2.0000");

    // The command line finds whoever leads by itself, and sends until it is answered.
    cluster.local.start(second).unwrap();
    cluster.catches_up(second);
    let asked = (1..=3).find(|id| *id != third).unwrap();
    let url = cluster.local.replicas[asked as usize - 1].url();
    let key_file = cluster.local.replicas[0].dir.join("trader.key");
    std::fs::write(&key_file, trader.key.to_token().as_bytes()).unwrap();
    cluster.kill(third);
    let output = Command::new(env!("CARGO_BIN_EXE_walras"))
        .args(["order", "buy", "BTC/USD", "1", "--json", "--patience", "60", "--url", &url])
        .args(["--session", &trader.session.to_string(), "--seq", "3"])
        .arg("--key-file")
        .arg(&key_file)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let next = json!({"instrument": "BTC-USD", "side": "buy", "type": "market", "size": "1"});
    let again = trader.at(&cluster, leader).signed("POST", &trader.path(3), Some(&next)).unwrap();
    assert_eq!((&again["log_index"], &again["repeated"]), (&answer["log_index"], &json!(true)));
    assert_ne!(again["log_index"], log_index);
    assert_eq!(trader.position(&cluster, leader), "3.0000");
}

#[test]
fn an_order_over_http_is_sent_again_at_the_same_and_at_another_leader_and_stands_once() {
    sent_again_at_both_leaders(Cluster::start(0));
}

#[test]
fn the_same_with_fair_access() {
    let more = vec![("fair_access", "sequencing", "500us".into()), ("fair_access", "bound_us", toml::Value::Integer(10))];
    sent_again_at_both_leaders(Cluster::of(Shape { more, ..Shape::default() }));
}
