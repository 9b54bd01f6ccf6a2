//! `walras relay` as processes: a venue with the feed, relays of which one or every second one dies under load, and readers who notice
//! nothing.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use walras_feed::book::Book;
use walras_feed::channel::{ChannelId, View};
use walras_feed::reader::MarketReader;
use walras_relay::packet::TreeKey;
use walras_relay::reader::ReaderSettings;
use walras_relay_link::Leaf;
use walras_relay_link::socket::{Offload, Socket};
use walras_types::{InstrumentId, Side};

use crate::schema::{check_named, document};
use crate::support::{Market, Venue, config, limit, spawn, until};

const ORDERS: u64 = 240;
const KILLED_AT: u64 = 80;
const STARTED_AGAIN_AT: u64 = 160;

/// It never asks for what is missing: whoever has a gap goes no further.
const READER: ReaderSettings = ReaderSettings { held_max: 1_024, gap_wait_ns: u64::MAX, retry_ns: u64::MAX, request_max: 1 };

/// A relay; it ends with the test, however that ends.
struct Relay {
    child: Child,
    /// Open as long as it runs: it reports now and then.
    _said: BufReader<ChildStderr>,
}

impl Relay {
    /// Returns once it receives.
    fn start(tree: &Path, place: usize) -> Self {
        let (relay, said) = Self::start_with(tree, place, &[]);
        assert!(!said.contains("spins"), "it sleeps unless it is asked not to: {said}");
        relay
    }

    /// The same with further arguments; also what it says first.
    fn start_with(tree: &Path, place: usize, more: &[&str]) -> (Self, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_walras"));
        command.args(["relay", "--layer", "0", "--place"]).arg(place.to_string()).arg("--tree").arg(tree).args(more);
        let mut child = spawn(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()));
        let (mut lines, mut said) = (BufReader::new(child.stderr.take().unwrap()), String::new());
        lines.read_line(&mut said).unwrap();
        assert!(said.contains("receives at"), "{said}");
        (Self { child, _said: lines }, said)
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // It may be dead already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A participant in the tree's last layer, who reads in a thread.
struct Participant {
    readers: Arc<Mutex<Vec<MarketReader>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Participant {
    fn start(mut leaf: Leaf) -> Self {
        let channels = [View::Orders, View::Levels, View::Top].map(|view| ChannelId::instrument(view, InstrumentId(0)));
        let readers = channels.map(|channel| MarketReader::from_the_start(channel, READER));
        let (readers, is_over) = (Arc::new(Mutex::new(Vec::from(readers))), Arc::new(AtomicBool::new(false)));
        let (theirs, ends) = (Arc::clone(&readers), Arc::clone(&is_over));
        let read = move || {
            while !ends.load(Ordering::Relaxed) {
                let mut readers = theirs.lock().unwrap();
                leaf.receive(|packet| readers.iter_mut().for_each(|reader| reader.packet(1, packet, |_, _| {}))).unwrap();
            }
        };
        Self { readers, is_over, thread: Some(std::thread::spawn(read)) }
    }

    /// Price levels by the copy of a view, best first: price in ticks, size in lots.
    fn levels(&self, view: View, side: Side) -> Vec<(i64, u64)> {
        let readers = self.readers.lock().unwrap();
        let reader = readers.iter().find(|reader| reader.channel().view() == view).unwrap();
        assert_eq!(reader.error(), None);
        let levels = reader.book().and_then(Book::levels).unwrap();
        levels.levels(side).map(|level| (level.price.get(), level.shown.get())).collect()
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if self.thread.take().unwrap().join().is_err() && !std::thread::panicking() {
            panic!("a reader failed");
        }
    }
}

fn leaf() -> Leaf {
    let socket = Socket::bind("127.0.0.1:0".parse().unwrap(), Duration::from_millis(5), Offload::Segments).unwrap();
    Leaf::new(socket, TreeKey::new([7; 32]))
}

/// Ports of loopback that were free a moment ago.
fn free_ports<const N: usize>() -> [SocketAddr; N] {
    let sockets: [UdpSocket; N] = std::array::from_fn(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
    sockets.map(|socket| socket.local_addr().unwrap())
}

/// The venue's own levels. One tick is 0.25, one lot 0.0001.
fn levels_of(book: &Value, side: &str) -> Vec<(i64, u64)> {
    let number = |value: &Value, unit: f64| (value.as_str().unwrap().parse::<f64>().unwrap() / unit).round();
    let level = |level: &Value| (number(&level[0], 0.25) as i64, number(&level[1], 0.0001) as u64);
    book[side].as_array().unwrap().iter().map(level).collect()
}

/// So many relays above these receivers, each started, with one further copy of each packet; and the file of the tree.
fn relays_above<const RELAYS: usize>(leaves: &[Leaf], folder: &Path) -> (PathBuf, [Relay; RELAYS]) {
    let list = |addresses: &[SocketAddr]| addresses.iter().map(|at| format!("\"{at}\"")).collect::<Vec<_>>().join(", ");
    let receivers: Vec<SocketAddr> = leaves.iter().map(|leaf| leaf.address().unwrap()).collect();
    let layers = format!("layers = [[{}], [{}]]", list(&free_ports::<RELAYS>()), list(&receivers));
    let tree = folder.join("tree.toml");
    std::fs::write(&tree, format!("tree = 5\nhedge = 1\nkey_file = \"tree.key\"\n{layers}\n")).unwrap();
    std::fs::write(folder.join("tree.key"), "07".repeat(32)).unwrap();
    let relays = std::array::from_fn(|place| Relay::start(&tree, place));
    (tree, relays)
}

/// A venue that sends market data by this tree.
fn venue_above(tree: &Path) -> Venue {
    let mut config = config();
    (config.feed.tree, config.feed.source) = (tree.display().to_string(), "127.0.0.1:0".into());
    Venue::with(&config)
}

/// The further copy of a packet goes by the relay next to that of the first. So while every second relay lives, one copy of each packet
/// comes, before the venue has noticed anything and after it.
#[test]
fn every_second_relay_that_dies_at_once_leaves_no_gap() {
    let folder = tempfile::tempdir().unwrap();
    let leaves: [Leaf; 6] = std::array::from_fn(|_| leaf());
    let (tree, mut relays) = relays_above::<6>(&leaves, folder.path());
    let participants = leaves.map(Participant::start);
    let venue = venue_above(&tree);
    let market = venue.market();
    place(&market, 1..=KILLED_AT);
    // None is waited for before all are killed.
    relays.iter_mut().step_by(2).for_each(|relay| relay.child.kill().unwrap());
    place(&market, KILLED_AT + 1..=ORDERS);
    assert_equal_books(&market, &participants);
    let is_running: Vec<bool> = relays.iter_mut().map(|relay| relay.child.try_wait().unwrap().is_none()).collect();
    assert_eq!(is_running, [false, true, false, true, false, true]);
}

#[test]
fn a_relay_that_dies_under_load_leaves_no_gap() {
    let folder = tempfile::tempdir().unwrap();
    let leaves = [leaf(), leaf(), leaf(), leaf()];
    let (tree, mut relays) = relays_above::<3>(&leaves, folder.path());
    let participants = leaves.map(Participant::start);
    let venue = venue_above(&tree);
    let market = venue.market();
    for id in 1..=ORDERS {
        match id {
            KILLED_AT => relays[1].kill(),
            STARTED_AGAIN_AT => {
                let (relay, said) = Relay::start_with(&tree, 1, &["--spin"]);
                assert!(said.contains("it spins on a core of its own"), "{said}");
                relays[1] = relay;
            }
            _ => {}
        }
        place(&market, id..=id);
    }
    assert_equal_books(&market, &participants);
    let said = Command::new(env!("CARGO_BIN_EXE_walras")).args(["relay", "status", "--tree"]).arg(&tree).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    // Receivers that answer in time are listed too.
    assert!((4..=8).contains(&said.lines().count()) && said.contains("by a hedge") && !said.contains("no answer"), "{said}");
    relays[2].kill();
    let said = Command::new(env!("CARGO_BIN_EXE_walras")).args(["relay", "status", "--tree"]).arg(&tree).output().unwrap();
    assert_eq!(String::from_utf8(said.stdout).unwrap().matches("no answer").count(), 1, "one that does not run");
    let said =
        Command::new(env!("CARGO_BIN_EXE_walras")).args(["--json", "relay", "status", "--tree"]).arg(&tree).output().unwrap();
    let said: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!((&said["trees"], said["relays"].as_array().map(Vec::len)), (&json!([{"tree": 5, "hedge": 1}]), Some(3)), "{said}");
    assert!(said["relays"][0]["packets"].as_u64() > Some(100) && said["relays"][2]["packets"].is_null(), "{said}");
    assert!(said["relays"][0]["recalls_asked"] == 0 && said["relays"][2]["recalls_asked"].is_null(), "{said}");
    // The venue asks them too.
    until("the venue shows what relays say", || {
        let tree = market.alice.get("/v1/cluster").unwrap()["tree"].clone();
        let answers = |place: usize| tree["relays"][place]["answers"].as_bool();
        let first = &tree["delivery"][0];
        let is_in: Vec<_> = (0..3).map(|place| tree["relays"][place]["is_in"].as_bool()).collect();
        (answers(0), answers(1), answers(2)) == (Some(true), Some(true), Some(false))
            && (is_in == [Some(true), Some(true), Some(false)] && tree["epoch"].as_u64() > Some(0))
            && (tree["relays"][0]["out_because"].is_null() && tree["relays"][2]["out_because"] == "silent")
            && tree["relays"][0]["packets"].as_u64() > Some(100)
            && (first["nodes"] == 3 && first["answering"] == 2 && first["window_ns"].is_u64())
            && tree["delivery"][1]["answering"] == 4
            && tree["receivers"].as_array().map(Vec::len) == Some(4)
    });
    check_named(&document(), "RelayTree", &market.alice.get("/v1/cluster").unwrap()["tree"]);
    // A neighbour of the one that is out dies too: with the tree as it was, packets would be lost whose copies both went by these two.
    relays[1].kill();
    place(&market, ORDERS + 1..=ORDERS + 60);
    assert_equal_books(&market, &participants);
    relays[1] = Relay::start(&tree, 1);
    relays[2] = Relay::start(&tree, 2);
    until("both are in again", || {
        let tree = market.alice.get("/v1/cluster").unwrap()["tree"].clone();
        (0..3).all(|place| tree["relays"][place]["is_in"] == true)
    });
    place(&market, ORDERS + 61..=ORDERS + 120);
    assert_equal_books(&market, &participants);
}

/// Orders around 30000, so that some trade with what stands there.
fn place(market: &Market, ids: std::ops::RangeInclusive<u64>) {
    for id in ids {
        let offset = (id * 7 % 11) as i64 - 5;
        let (client, side) = if id % 2 == 0 { (&market.alice, "buy") } else { (&market.bob, "sell") };
        market.order(client, &limit(id, side, "0.001", &(30_000 + offset).to_string()));
    }
}

/// Every participant's copy is the venue's book: nobody has a gap.
fn assert_equal_books(market: &Market, participants: &[Participant]) {
    let book = market.alice.get("/v1/instruments/BTC-USD/book?depth=100").unwrap();
    let expected = [levels_of(&book, "bids"), levels_of(&book, "asks")];
    assert!(expected.iter().any(|levels| levels.len() > 2), "{book}");
    for participant in participants {
        for view in [View::Orders, View::Levels] {
            until("a participant's book is the venue's", || Side::BOTH.map(|side| participant.levels(view, side)) == expected);
        }
    }
}
