//! Market data that is held: no replica shows it before its time, all show the same, and the delay follows what the slowest one needs.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use super::{Cluster, PATIENCE, Shape, until};

const DELAY: Duration = Duration::from_millis(40);

fn now_ns() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos().try_into().unwrap()
}

/// A figure of a replica.
pub(super) fn figure(cluster: &Cluster, id: u64, name: &str) -> Option<u64> {
    let mut stream = TcpStream::connect(&cluster.local.replicas[id as usize - 1].http).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: venue\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Who reads the trades of a replica as they come.
struct Reader(WebSocket<TcpStream>);

impl Reader {
    fn of(cluster: &Cluster, id: u64) -> Self {
        let at = &cluster.local.replicas[id as usize - 1].http;
        let stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (socket, _) = tungstenite::client(format!("ws://{at}/v1/ws"), stream).unwrap();
        let mut reader = Self(socket);
        reader.0.send(Message::text(json!({"op": "subscribe", "channel": "trades", "instrument": "BTC-USD"}).to_string())).unwrap();
        while reader.next()["kind"] != "snapshot" {}
        reader
    }

    fn next(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.0.read().unwrap() {
                return serde_json::from_str(text.as_str()).unwrap();
            }
        }
    }

    /// So many trades, each with how long after its making it was read.
    fn trades(mut self, count: usize) -> Vec<(Value, i64)> {
        let mut all = Vec::new();
        while all.len() < count {
            let message = self.next();
            let read_ns = now_ns();
            if message["type"] == "trades" {
                for trade in message["trades"].as_array().unwrap() {
                    let time_ns: u64 = trade["time_ns"].as_str().unwrap().parse().unwrap();
                    all.push((trade.clone(), read_ns.wrapping_sub(time_ns).cast_signed()));
                }
            }
        }
        all
    }
}

#[test]
fn nobody_sees_a_trade_before_its_time() {
    const TRADES: usize = 30;
    let settings = vec![
        ("fair_access", "release", format!("{}ms", DELAY.as_millis()).into()),
        ("fair_access", "release_max_us", toml::Value::Integer(1_000_000)),
        ("websocket", "updates_per_second", toml::Value::Integer(200)),
        // Each keeps a clock, by which it releases what the leader has stamped by its own.
        ("fair_access", "clock", "configured".into()),
        ("clock", "source", "system".into()),
        ("clock", "declared_bound_us", toml::Value::Integer(300)),
    ];
    let cluster = Cluster::of(Shape { more: settings, ..Shape::default() });
    let accounts = cluster.market(2);
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    for id in 1..=3 {
        let held = || figure(&cluster, id, "walras_release_delay_ns") == Some(DELAY.as_nanos().try_into().unwrap());
        until(&format!("replica {id} knows the delay"), held);
        let is_told = || figure(&cluster, id, "walras_release_clock_bound_ns").is_some_and(|bound_ns| bound_ns >= 600_000);
        until(&format!("replica {id} knows the leader's clock, with both bounds"), is_told);
    }
    let readers: Vec<_> = (1..=3).map(|id| Reader::of(&cluster, id)).collect();
    let readers: Vec<_> = readers.into_iter().map(|reader| std::thread::spawn(move || reader.trades(TRADES))).collect();
    let clients: Vec<_> = accounts.into_iter().map(|(_, key)| cluster.operator(leader).with_key(key)).collect();
    for number in 0..TRADES {
        for (client, side) in clients.iter().zip(["sell", "buy"]) {
            let order = json!({
                "instrument": "BTC-USD", "client_order_id": (number + 1).to_string(), "side": side, "type": "limit", "size": "0.0001",
                "price": "30000",
            });
            client.signed("POST", "/v1/orders", Some(&order)).unwrap();
        }
    }
    let read: Vec<Vec<(Value, i64)>> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    for (id, trades) in (1..).zip(&read) {
        let soonest = trades.iter().map(|(_, after_ns)| *after_ns).min().unwrap();
        assert!(soonest >= DELAY.as_nanos() as i64, "replica {id} showed a trade {soonest} ns after it was made");
        let same = trades.iter().zip(&read[0]).all(|((trade, _), (first, _))| trade == first);
        assert!(same && trades.len() == TRADES, "replica {id} showed other trades");
    }

    // An answer to a question waits as well.
    let follower = cluster.operator(leader % 3 + 1);
    for of in ["trades", "book", "book/orders", "auction", "ticker", "candles"] {
        let begun = Instant::now();
        follower.get(&format!("/v1/instruments/BTC-USD/{of}")).unwrap();
        assert!(begun.elapsed() >= DELAY, "{of} was answered after {:?}", begun.elapsed());
    }
    // One's own does not: the order's answer came before anybody saw the trade.
    let held = figure(&cluster, leader, "walras_release_publications_total").unwrap();
    assert!(held > 0, "nothing was held");
}

#[test]
fn the_delay_is_steered_to_what_the_replicas_need() {
    let settings = vec![
        ("fair_access", "release", "20%".into()),
        ("fair_access", "release_max_us", toml::Value::Integer(2_000_000)),
        ("websocket", "updates_per_second", toml::Value::Integer(1_000)),
    ];
    let cluster = Cluster::of(Shape { more: settings, ..Shape::default() });
    cluster.market(0);
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let mut seen = BTreeSet::<u64>::new();
    until("the delay moves, and all go by it", || {
        // Something to publish.
        let _ = cluster.operator(leader).signed("POST", "/v1/admin/accounts", Some(&json!({})));
        let delays: Vec<_> = (1..=3).map(|id| figure(&cluster, id, "walras_release_delay_ns")).collect();
        seen.extend(delays.into_iter().flatten().filter(|delay| *delay > 0));
        seen.len() >= 20
    });
    let (least, most) = (seen.first().unwrap(), seen.last().unwrap());
    assert!(most > least && *most <= 2_000_000_000, "{seen:?}");
}
