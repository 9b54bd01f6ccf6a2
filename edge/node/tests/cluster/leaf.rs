//! Leaf gateways as processes: participants who know no replica, while the replica above is killed, and another one leads.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use walras_access::now;
use walras_client::cluster::{ClusterLoad, Flow, LoadOptions, Offered, ReplicaAddress, Ways};
use walras_client::local_cluster::{FIRST_GATEWAY, FIRST_RELAY, LocalReplica};
use walras_client::{Client, read_key};
use walras_feed::book::Book;
use walras_feed::channel::{ChannelId, View};
use walras_feed::message::Message;
use walras_feed::reader::MarketReader;
use walras_gateway::ClientKey;
use walras_relay::packet::Kind;
use walras_relay::reader::{ReaderSettings, Request};
use walras_relay_link::socket::{Offload, Socket};
use walras_relay_link::{Layout, Leaf};
use walras_types::{AccountId, InstrumentId, Side};

use super::client::{Diary, Participant};
use super::{Cluster, PATIENCE, Shape, check_told, progress, stop_in_order, until};

const ALL: [u64; 3] = [1, 2, 3];

/// The replica above a gateway, as the gateway's log says.
fn above(cluster: &Cluster, gateway: usize) -> Option<u64> {
    let log = std::fs::read_to_string(cluster.local.gateways[gateway].dir.join("replica.log")).unwrap();
    let last = log.lines().rfind(|line| line.contains("orders go to replica") || line.contains("orders do not go to replica"))?;
    let (_, replica) = last.split_once("orders go to replica ")?;
    replica.trim().parse().ok()
}

pub(super) fn wait_above(cluster: &Cluster, gateway: usize, but: &BTreeSet<u64>) -> u64 {
    let mut found = None;
    until("the gateway stands below a replica", || {
        found = above(cluster, gateway).filter(|id| !but.contains(id));
        found.is_some()
    });
    found.unwrap()
}

/// What a replica says of the gateways: those that are linked and stand below it with sessions.
fn shown_below(cluster: &Cluster, replica: u64) -> Vec<u64> {
    let view = Client::new(&cluster.local.replicas[replica as usize - 1].url(), None).get("/v1/cluster").unwrap();
    let is_below = |gateway: &&Value| {
        let has_sessions = gateway["sessions"].as_u64() >= Some(1);
        gateway["is_linked"] == true && gateway["stands_below"] == true && has_sessions
    };
    view["gateways"].as_array().unwrap().iter().filter(is_below).filter_map(|gateway| gateway["gateway"].as_u64()).collect()
}

/// Two gateways, and a participant at each.
fn started(more: Vec<(&'static str, &'static str, toml::Value)>) -> (Cluster, Vec<Participant>) {
    let mut cluster = Cluster::of(Shape { gateways: 2, more, ..Shape::default() });
    let accounts = cluster.market(2);
    for id in [FIRST_GATEWAY, FIRST_GATEWAY + 1] {
        cluster.local.start(id).unwrap();
    }
    let orders: Vec<String> = cluster.local.gateways.iter().map(|gateway| gateway.orders.clone()).collect();
    let participants = (0x1eaf..).zip(accounts).zip(orders);
    let participants: Vec<Participant> =
        participants.map(|((seed, (account, key)), way)| Participant::start(account, key, vec![way], seed)).collect();
    progress(&participants, 200);
    (cluster, participants)
}

fn finish(mut cluster: Cluster, participants: Vec<Participant>) {
    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    for diary in &diaries {
        assert_eq!(diary.lost, Vec::<String>::new(), "a participant of a gateway stays connected");
    }
    let end = stop_in_order(&mut cluster, &ALL);
    check_told(&cluster, &ALL, &diaries, end);
}

#[test]
fn with_fair_access_sessions_survive_the_replica_above_and_the_leader() {
    let settings = vec![("fair_access", "sequencing", "500us".into()), ("fair_access", "bound_us", toml::Value::Integer(10))];
    let (mut cluster, participants) = started(settings);
    for gateway in [0, 1] {
        let killed = wait_above(&cluster, gateway, &BTreeSet::new());
        cluster.kill(killed);
        progress(&participants, 200);
        assert_ne!(wait_above(&cluster, gateway, &BTreeSet::from([killed])), killed);
        cluster.local.start(killed).unwrap();
        cluster.catches_up(killed);
    }
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    cluster.kill(leader);
    progress(&participants, 200);
    cluster.local.start(leader).unwrap();
    cluster.catches_up(leader);
    finish(cluster, participants);
}

#[test]
fn without_fair_access_a_gateway_follows_the_leader() {
    let (mut cluster, participants) = started(Vec::new());
    for _ in 0..2 {
        let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
        assert_eq!([0, 1].map(|gateway| wait_above(&cluster, gateway, &BTreeSet::new())), [leader; 2]);
        until("the leader shows both", || shown_below(&cluster, leader) == [FIRST_GATEWAY, FIRST_GATEWAY + 1]);
        cluster.kill(leader);
        progress(&participants, 200);
        cluster.local.start(leader).unwrap();
        cluster.catches_up(leader);
    }
    finish(cluster, participants);
}

/// Orders a second of all sessions, and in a burst fifteen times as many.
const USUAL_PER_S: u64 = 300;

/// Nothing is lost: what the gateways and the leader cannot take at once waits in connections, and is answered.
#[test]
fn a_burst_of_orders_at_fifteen_times_the_rate_is_answered_order_by_order() {
    let settings = vec![("fair_access", "sequencing", "500us".into()), ("fair_access", "bound_us", toml::Value::Integer(10))];
    let mut cluster = Cluster::of(Shape { gateways: 2, more: settings, ..Shape::default() });
    for id in [FIRST_GATEWAY, FIRST_GATEWAY + 1] {
        cluster.local.start(id).unwrap();
    }
    let address = |replica: &LocalReplica| ReplicaAddress { url: replica.url(), orders: replica.orders.clone(), trust: None };
    let replicas: Vec<ReplicaAddress> = cluster.local.replicas.iter().map(address).collect();
    let gateways = cluster.local.gateways.iter().map(|gateway| gateway.orders.clone()).collect();
    let key = read_key(&cluster.local.operator_key()).unwrap();
    let ways = Ways::Gateways { gateways, copies: 1 };
    let options = LoadOptions { sessions: 8, markets: 1, flow: Flow::Generated(15), ways };
    let mut load = ClusterLoad::prepare_with(&replicas, &key, &options).unwrap();
    for per_s in [USUAL_PER_S, 15 * USUAL_PER_S, USUAL_PER_S] {
        // It ends once each command is answered, in its session's order, and fails where one is not.
        let report = load.run(Offered::PerSecond(per_s), Duration::ZERO, Duration::from_millis(500)).unwrap();
        assert_eq!(report.reconnects, 0, "{report}");
        assert!(report.answered >= per_s / 4 && report.rejected * 5 < report.answered, "at {per_s} a second: {report}");
    }
    drop(load);
    stop_in_order(&mut cluster, &ALL);
}

/// A participant's end of a gateway's market data, which never asks for what is missing.
pub(super) struct Listener {
    reader: Arc<Mutex<MarketReader>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

impl Listener {
    /// Of the gateway in this folder.
    pub(super) fn start(gateway: &Path) -> Self {
        Self::hearing(gateway, |_| {})
    }

    /// The same, and each message goes to `heard`, in order.
    pub(super) fn hearing(gateway: &Path, mut heard: impl FnMut(&Message) + Send + 'static) -> Self {
        let own = Layout::read(&gateway.join("participants.toml")).unwrap();
        let socket = Socket::bind(own.layers[0][0], Duration::from_millis(5), Offload::Segments).unwrap();
        let mut leaf = Leaf::new(socket, own.key.clone());
        let settings = ReaderSettings { held_max: 4_096, gap_wait_ns: u64::MAX, retry_ns: u64::MAX, request_max: 1 };
        let channel = ChannelId::instrument(View::Orders, InstrumentId(0));
        let reader = Arc::new(Mutex::new(MarketReader::from_the_start(channel, settings)));
        let is_over = Arc::new(AtomicBool::new(false));
        let (theirs, ends) = (Arc::clone(&reader), Arc::clone(&is_over));
        let read = move || {
            let mut packets = 0;
            while !ends.load(Ordering::Relaxed) {
                let mut reader = theirs.lock().unwrap();
                let take = |packet: &walras_relay::packet::Packet<'_>| {
                    assert!(packet.header().release_ns <= now().0, "nobody sees it before its time");
                    packets += 1;
                    reader.packet(1, packet, |_, message| heard(message));
                };
                leaf.receive(take).unwrap();
            }
            packets
        };
        Self { reader, is_over, thread: Some(std::thread::spawn(read)) }
    }

    /// Price levels as the copy has them, best first: price in ticks, size in lots.
    pub(super) fn levels(&self, side: Side) -> Vec<(i64, u64)> {
        let reader = self.reader.lock().unwrap();
        assert_eq!(reader.error(), None);
        let levels = reader.book().and_then(Book::levels).unwrap();
        levels.levels(side).map(|level| (level.price.get(), level.shown.get())).collect()
    }

    /// Packets that came.
    pub(super) fn finish(mut self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

/// The venue's own levels. One tick is 0.25, one lot 0.0001.
pub(super) fn levels_of(book: &Value, side: &str) -> Vec<(i64, u64)> {
    let number = |value: &Value, unit: f64| (value.as_str().unwrap().parse::<f64>().unwrap() / unit).round();
    let level = |level: &Value| (number(&level[0], 0.25) as i64, number(&level[1], 0.0001) as u64);
    book[side].as_array().unwrap().iter().map(level).collect()
}

/// Keys that are made while a gateway runs reach it a moment after the replicas.
pub(super) fn wait_for_keys(gateway: &Path, accounts: &[(AccountId, ClientKey)]) {
    let file = gateway.join("data").join("keys.json");
    until("a gateway knows the keys", || {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        accounts.iter().all(|(_, key)| key.to_token().as_str().split('.').next().is_some_and(|id| text.contains(id)))
    });
}

/// Waits until the leader has more than so many samples of how late market data came to gateways, and returns how many.
fn hears_receivers(cluster: &Cluster, more_than: u64) -> u64 {
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let venue = Client::new(&cluster.local.replicas[leader as usize - 1].url(), None);
    let mut samples = 0;
    until("gateways report up the tree", || {
        let receivers = venue.get("/v1/fair-access").unwrap()["release"]["judged"]["receivers"].clone();
        samples = receivers["samples"].as_u64().unwrap_or(0);
        samples > more_than && receivers["delay_ns"].is_u64()
    });
    samples
}

fn have_the_book(venue: &Client, listeners: &[Listener]) {
    until("participants have the venue's book", || {
        let book = venue.get("/v1/instruments/BTC-USD/book?depth=1000").unwrap();
        let expected = [levels_of(&book, "bids"), levels_of(&book, "asks")];
        listeners.iter().all(|listener| Side::BOTH.map(|side| listener.levels(side)) == expected)
    });
}

#[test]
fn participants_of_gateways_see_the_venues_books_at_their_time_whichever_relay_dies() {
    let more = vec![("fair_access", "release", "5%".into()), ("feed", "heartbeat_ms", toml::Value::Integer(50))];
    let mut cluster = Cluster::of(Shape { gateways: 3, relays: 3, checkpoint_every: 200, more, ..Shape::default() });
    for id in (FIRST_RELAY..).take(3).chain((FIRST_GATEWAY..).take(3)) {
        cluster.local.start(id).unwrap();
    }
    let listeners = [0, 1, 2].map(|gateway| Listener::start(&cluster.local.gateways[gateway].dir));
    let accounts = cluster.market(2);
    for gateway in &cluster.local.gateways {
        wait_for_keys(&gateway.dir, &accounts);
    }
    let orders: Vec<String> = cluster.local.gateways.iter().map(|gateway| gateway.orders.clone()).collect();
    let participants: Vec<Participant> = (0xfeed..)
        .zip(accounts)
        .zip(orders)
        .map(|((seed, (account, key)), way)| Participant::start(account, key, vec![way], seed))
        .collect();
    progress(&participants, 200);
    let heard = hears_receivers(&cluster, 0);
    cluster.local.relays[1].signal(Signal::KILL).unwrap();
    cluster.local.relays[1].wait().unwrap();
    progress(&participants, 200);
    hears_receivers(&cluster, heard);
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    assert!(diaries.iter().all(|diary| diary.answers.len() >= 400));
    let venue = Client::new(&cluster.local.replicas[leader as usize - 1].url(), None);
    have_the_book(&venue, &listeners);
    let tree = venue.get("/v1/cluster").unwrap()["tree"].clone();
    assert_eq!(tree["layers"], serde_json::json!([3, 3]));
    assert!(tree["packets"].as_u64() > Some(400), "it is the leader that sends: {tree}");
    assert!(tree["delivery"][1]["late"].is_u64() && tree["delivery"][0]["late"] == 0, "gateways hold, relays do not: {tree}");
    for listener in listeners {
        assert!(listener.finish() > 400, "it heard of every entry");
    }
    let end = stop_in_order(&mut cluster, &ALL);
    check_told(&cluster, &ALL, &diaries, end);
}

/// A gateway whose threads never sleep: orders are answered once each, and market data comes at its time.
#[test]
fn a_gateway_that_spins_serves_its_participant() {
    let more = vec![
        ("fair_access", "release", "5%".into()),
        ("feed", "heartbeat_ms", toml::Value::Integer(50)),
        ("gateway", "spin_orders", true.into()),
        ("gateway", "spin_market_data", true.into()),
    ];
    let mut cluster = Cluster::of(Shape { gateways: 1, relays: 1, checkpoint_every: 50, more, ..Shape::default() });
    for id in [FIRST_RELAY, FIRST_GATEWAY] {
        cluster.local.start(id).unwrap();
    }
    let listener = Listener::start(&cluster.local.gateways[0].dir);
    let mut accounts = cluster.market(1);
    wait_for_keys(&cluster.local.gateways[0].dir, &accounts);
    let (account, key) = accounts.remove(0);
    let participants = vec![Participant::start(account, key, vec![cluster.local.gateways[0].orders.clone()], 0x5b1)];
    progress(&participants, 200);
    hears_receivers(&cluster, 0);
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    let venue = Client::new(&cluster.local.replicas[leader as usize - 1].url(), None);
    have_the_book(&venue, std::slice::from_ref(&listener));
    assert!(listener.finish() > 50, "it heard of every entry");
    let gateway = &mut cluster.local.gateways[0];
    gateway.signal(Signal::TERM).unwrap();
    assert_eq!(gateway.wait().unwrap(), Some(0), "its threads end");
    let end = stop_in_order(&mut cluster, &ALL);
    check_told(&cluster, &ALL, &diaries, end);
}

/// A gateway that starts late has none of the messages from before. It asks the replicas for those that its participant asks for.
#[test]
fn a_participant_gets_from_its_gateway_what_only_the_replicas_have() {
    let more = vec![("feed", "heartbeat_ms", toml::Value::Integer(50))];
    let mut cluster = Cluster::of(Shape { gateways: 1, relays: 1, more, ..Shape::default() });
    cluster.local.start(FIRST_RELAY).unwrap();
    cluster.market(1);
    cluster.local.start(FIRST_GATEWAY).unwrap();
    let gateway = &cluster.local.gateways[0];
    let own = Layout::read(&gateway.dir.join("participants.toml")).unwrap();
    let socket = Socket::bind(own.layers[0][0], Duration::from_millis(20), Offload::Segments).unwrap();
    let (mut leaf, requests) = (Leaf::new(socket, own.key.clone()), gateway.orders.parse().unwrap());
    let channel = ChannelId::instrument(View::Orders, InstrumentId(0)).get();
    let mut is_here = false;
    until("the first message of the market comes", || {
        leaf.ask(&Request { channel, first: 1, count: 1 }, own.tree_number, now().0, requests).unwrap();
        let take = |packet: &walras_relay::packet::Packet<'_>| {
            let header = packet.header();
            is_here |= (header.kind, header.channel, header.first) == (Kind::Again, channel, 1);
        };
        leaf.receive(take).unwrap();
        is_here
    });
    // Every replica asks the gateway for its figures.
    let venue = Client::new(&cluster.local.replicas[1].url(), None);
    until("a replica shows what the gateway asked for", || {
        let receiver = venue.get("/v1/cluster").unwrap()["tree"]["receivers"][0].clone();
        let count = |name: &str| receiver[name].as_u64().unwrap_or(0);
        let (asked, answered) = (count("recalls_asked"), count("recalls_answered"));
        receiver["place"] == 0 && asked >= answered && answered > 0 && count("messages_recalled") > 0
    });
    stop_in_order(&mut cluster, &ALL);
}
