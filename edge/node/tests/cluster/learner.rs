//! A replica that learns and does not vote serves books, trades, candles and feeds: the leader's, at the same entry of the log.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use tungstenite::{Error, Message, WebSocket};
use walras_client::Client;

use super::client::{Diary, Participant};
use super::{Cluster, PATIENCE, Shape, check_told, member, participants, progress, stop_in_order, until};

/// The levels of both sides, by price, as feeds tell them.
#[derive(Clone, Debug, Default, PartialEq)]
struct Book {
    sides: [BTreeMap<String, Value>; 2],
}

/// What a feed has told.
#[derive(Clone, Debug, Default)]
struct Told {
    book: Book,
    feed_seq: u64,
    /// Trades, oldest first, by their numbers.
    trades: BTreeMap<u64, Value>,
    /// Candles of a minute, by when they begin.
    candles: BTreeMap<String, Value>,
    ticker: Value,
}

impl Told {
    fn take(&mut self, message: &Value) {
        let number = |value: &Value| value.as_str().unwrap().parse::<u64>().unwrap();
        match message["type"].as_str().unwrap() {
            "book" => {
                let feed_seq = number(&message["feed_seq"]);
                assert_eq!(feed_seq, self.feed_seq + 1, "a gap");
                self.feed_seq = feed_seq;
                if message["kind"] == "snapshot" {
                    self.book = Book::default();
                }
                for (side, name) in self.book.sides.iter_mut().zip(["bids", "asks"]) {
                    for level in message[name].as_array().unwrap() {
                        let price = level[0].as_str().unwrap().to_owned();
                        if level[1] == "0" {
                            side.remove(&price);
                        } else {
                            side.insert(price, level.clone());
                        }
                    }
                }
            }
            "trades" => {
                let trades = message["trades"].as_array().unwrap();
                self.trades.extend(trades.iter().map(|trade| (number(&trade["trade_id"]), trade.clone())));
            }
            "candles" => {
                let candles = message["candles"].as_array().unwrap();
                self.candles.extend(candles.iter().map(|candle| (candle["time_s"].to_string(), candle.clone())));
            }
            "ticker" => self.ticker = message.clone(),
            _ => {}
        }
    }
}

struct Feed(WebSocket<TcpStream>);

impl Feed {
    /// All public channels of the market.
    fn of(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        let (mut socket, _) = tungstenite::client(format!("ws://{address}/v1/ws"), stream).unwrap();
        socket.get_ref().set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        for channel in ["book", "trades", "ticker"] {
            let ask = json!({"op": "subscribe", "channel": channel, "instrument": "BTC-USD"});
            socket.send(Message::text(ask.to_string())).unwrap();
        }
        let ask = json!({"op": "subscribe", "channel": "candles", "instrument": "BTC-USD", "interval": "1m"});
        socket.send(Message::text(ask.to_string())).unwrap();
        Self(socket)
    }

    /// What comes next, if something does soon.
    fn read(&mut self) -> Option<Value> {
        match self.0.read() {
            Ok(Message::Text(text)) => Some(serde_json::from_str(text.as_str()).unwrap()),
            Ok(_) => None,
            Err(Error::Io(e)) if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => None,
            Err(e) => panic!("the feed ended: {e}"),
        }
    }
}

/// What a replica answers, and of which entry. The log goes on by itself, so they are asked until they answer of the same.
fn of_one_entry(leader: &Client, learner: &Client, path: &str) -> [Value; 2] {
    let mut answers = [Value::Null, Value::Null];
    until(&format!("both answer {path} of one entry"), || {
        answers = [leader, learner].map(|client| client.get(path).unwrap());
        answers[0]["log_index"] == answers[1]["log_index"]
    });
    answers
}

#[test]
fn a_learner_serves_what_the_leader_does() {
    let mut cluster = Cluster::of(Shape { later: 1, checkpoint_every: 400, ..Shape::default() });
    let participants = participants(&cluster, 2);
    cluster.local.start(4).unwrap();
    let operator = cluster.operator(1);
    operator.signed("POST", "/v1/admin/cluster/add", Some(&json!({"replica": 4, "learner": true}))).unwrap();
    until("the fourth learns", || member(&cluster, 4, 4) == "learner");
    cluster.catches_up(4);

    // Its feed is followed under load.
    let learner_address = cluster.local.replicas[3].http.clone();
    let (followed, is_over) = (Arc::new(Mutex::new(Told::default())), Arc::new(AtomicBool::new(false)));
    let follower = std::thread::spawn({
        let (followed, is_over, mut feed) = (Arc::clone(&followed), Arc::clone(&is_over), Feed::of(&learner_address));
        move || {
            while !is_over.load(SeqCst) {
                if let Some(message) = feed.read() {
                    followed.lock().unwrap().take(&message);
                }
            }
        }
    });
    progress(&participants, 400);
    // It does not vote: a majority of the three others goes on without it, and none of its reads has to be taken back afterwards.
    cluster.local.replicas[3].signal(Signal::STOP).unwrap();
    progress(&participants, 200);
    cluster.local.replicas[3].signal(Signal::CONT).unwrap();
    progress(&participants, 200);
    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();

    let id = cluster.local.wait_for_leader(PATIENCE).unwrap();
    cluster.catches_up(4);
    let [leader, learner] = [id, 4].map(|id| cluster.operator(id));
    let [of_leader, of_learner] = of_one_entry(&leader, &learner, "/v1/instruments/BTC-USD/book?depth=1000");
    assert_eq!(of_leader, of_learner);
    assert!(!of_leader["bids"].as_array().unwrap().is_empty() || !of_leader["asks"].as_array().unwrap().is_empty());
    for path in ["trades?limit=1000", "candles?interval=1s", "candles?interval=1m"] {
        let path = format!("/v1/instruments/BTC-USD/{path}");
        let [of_leader, of_learner] = [&leader, &learner].map(|client| client.get(&path).unwrap());
        assert_eq!(of_leader, of_learner, "{path}");
        assert!(of_leader.as_object().unwrap().values().all(|list| !list.as_array().unwrap().is_empty()), "{path}: {of_leader}");
    }

    // Who followed the learner comes to hold what somebody is shown who comes to the leader now.
    let mut shown = Told::default();
    let mut feed = Feed::of(&cluster.local.replicas[id as usize - 1].http);
    until("the leader shows all", || {
        feed.read().iter().for_each(|message| shown.take(message));
        shown.feed_seq > 0 && !shown.trades.is_empty() && !shown.candles.is_empty() && !shown.ticker.is_null()
    });
    until("who followed the learner holds the same", || {
        let followed = followed.lock().unwrap();
        let ticker = ["last_price", "best_bid", "best_ask", "volume"].map(|field| followed.ticker[field] == shown.ticker[field]);
        (&followed.book, &followed.candles) == (&shown.book, &shown.candles)
            && shown.trades.iter().all(|(trade_id, trade)| followed.trades.get(trade_id) == Some(trade))
            && ticker.iter().all(|is_same| *is_same)
    });
    is_over.store(true, SeqCst);
    follower.join().unwrap();

    let end = stop_in_order(&mut cluster, &[1, 2, 3]);
    check_all(&mut cluster, &diaries, end);
}

fn check_all(cluster: &mut Cluster, diaries: &[Diary], end: u64) {
    // The learner stops too, so that its log can be read.
    let replica = &mut cluster.local.replicas[3];
    replica.signal(Signal::TERM).unwrap();
    assert_eq!(replica.wait().unwrap(), Some(0));
    check_told(cluster, &[1, 2, 3], diaries, end);
}
