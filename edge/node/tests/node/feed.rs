//! The binary feed of a running venue on real sockets: a reader has its book from the start, late, and across a restart.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use walras_client::Client;
use walras_feed::book::{Book, Content};
use walras_feed::channel::{ChannelId, View};
use walras_feed::reader::MarketReader;
use walras_gateway::ClientKey;
use walras_log_store::RealDisk;
use walras_relay::packet::TreeKey;
use walras_relay::reader::ReaderSettings;
use walras_relay_link::Leaf;
use walras_relay_link::socket::{Offload, Socket};
use walras_types::{InstrumentId, Side};

use crate::support::{PATIENCE, Venue, config, limit, restart};

const READER: ReaderSettings = ReaderSettings { held_max: 1_024, gap_wait_ns: u64::MAX, retry_ns: u64::MAX, request_max: 1 };

/// A tree without relays: one receiver, at this address.
fn write_tree(folder: &Path, receiver: SocketAddr) -> String {
    let file = folder.join("tree.toml");
    std::fs::write(&file, format!("tree = 3\nkey_file = \"tree.key\"\nlayers = [[\"{receiver}\"]]\n")).unwrap();
    std::fs::write(folder.join("tree.key"), "07".repeat(32)).unwrap();
    file.display().to_string()
}

/// Reads until a reader's displayed orders are these: their sides, prices in ticks and sizes in lots.
fn read_until(leaf: &mut Leaf, reader: &mut MarketReader, expected: &[(Side, i64, u64)]) {
    let began = Instant::now();
    loop {
        if let Some(Content::Orders(orders)) = reader.book().map(Book::content) {
            let orders: Vec<_> = orders.orders().iter().map(|order| (order.side, order.price.get(), order.shown.get())).collect();
            if orders == expected {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{orders:?}");
        }
        assert!(began.elapsed() < PATIENCE, "{reader:?}");
        leaf.receive(|packet| reader.packet(1, packet, |_, _| {})).unwrap();
        assert_eq!(reader.error(), None);
    }
}

#[test]
fn a_reader_has_the_book_from_the_start_late_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let socket = Socket::bind("127.0.0.1:0".parse().unwrap(), Duration::from_millis(20), Offload::Segments).unwrap();
    let mut leaf = Leaf::new(socket, TreeKey::new([7; 32]));
    let mut config = config();
    config.feed.tree = write_tree(folder.path(), leaf.address().unwrap());
    config.feed.source = "127.0.0.1:0".into();
    config.feed.snapshot_rotation_ms = 20;
    config.feed.heartbeat_ms = 20;
    let mut venue = Venue::with(&config);
    let market = venue.market();
    let channel = ChannelId::instrument(View::Orders, InstrumentId(0));
    let mut reader = MarketReader::from_the_start(channel, READER);
    // One tick is 0.25, one lot 0.0001.
    market.order(&market.alice, &limit(1, "buy", "2", "30000"));
    market.order(&market.bob, &limit(1, "sell", "1", "30100"));
    let mut hidden = limit(2, "sell", "1", "30050");
    hidden["display"] = "hidden".into();
    market.order(&market.bob, &hidden);
    let quotes = [(Side::Buy, 120_000, 20_000), (Side::Sell, 120_400, 10_000)];
    read_until(&mut leaf, &mut reader, &quotes);
    let mut late = MarketReader::joining(channel, READER);
    read_until(&mut leaf, &mut late, &quotes);
    venue.stop();
    venue.node = Some(restart(RealDisk, &venue.dir, &config));
    let client = |key: &ClientKey| Client::new(&venue.url(), Some(key.clone()));
    let (alice, bob) = (client(&market.alice_key), client(&market.bob_key));
    market.order(&alice, &limit(3, "buy", "0.5", "30100"));
    market.order(&bob, &limit(4, "sell", "0.5", "30200"));
    // The hidden order traded first, and nobody sees what is left of it.
    let after = [(Side::Buy, 120_000, 20_000), (Side::Sell, 120_400, 10_000), (Side::Sell, 120_800, 5_000)];
    read_until(&mut leaf, &mut late, &after);
    assert!(late.book().unwrap().market().last_trade.is_some_and(|trade| trade.price.get() == 120_200));
    read_until(&mut leaf, &mut MarketReader::joining(channel, READER), &after);
}

/// The example in Rust, which is compiled here too.
#[allow(dead_code, reason = "it has a main function")]
#[path = "../../../relay-link/examples/feed_book.rs"]
mod feed_book;

#[test]
fn the_example_of_the_feed_in_rust_keeps_a_book() {
    let folder = tempfile::tempdir().unwrap();
    // Free a moment ago.
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let [own, ask] = sockets.map(|socket| socket.local_addr().unwrap());
    let mut config = config();
    config.feed.tree = write_tree(folder.path(), own);
    (config.feed.source, config.feed.requests) = ("127.0.0.1:0".into(), ask.to_string());
    config.feed.snapshot_rotation_ms = 20;
    config.feed.heartbeat_ms = 20;
    let venue = Venue::with(&config);
    let market = venue.market();
    let args = [own.to_string(), config.feed.tree.clone(), ask.to_string(), "0".into()];
    let mut seen = Vec::new();
    // The book is shown before anything is entered, and each change has one message of its own.
    feed_book::run(&args, |best| {
        match seen.len() {
            0 => drop(market.order(&market.alice, &limit(1, "buy", "1", "30000"))),
            1 => drop(market.order(&market.bob, &limit(2, "sell", "1", "30100"))),
            2 => drop(market.alice.signed("DELETE", "/v1/orders/BTC-USD/1", None).unwrap()),
            _ => {}
        }
        seen.push(best);
        seen.len() < 4
    })
    .unwrap();
    let (bid, ask) = (Some(120_000), Some(120_400));
    assert_eq!(seen, [[None, None], [bid, None], [bid, ask], [None, ask]]);
    assert!(feed_book::run(&args[1..], |_| true).is_err());
}

#[test]
fn a_wrong_tree_is_refused_at_the_start() {
    let mut config = config();
    config.feed.tree = "nowhere.toml".into();
    let folder = tempfile::tempdir().unwrap();
    let Err(error) = walras_node::node::Node::start(folder.path(), &config) else { panic!("there is no such file") };
    assert!(error.to_string().contains("feed.tree") && error.to_string().contains("nowhere.toml"), "{error}");
}
