//! Crowds of connections that do nothing, and what a well-behaved client has of the venue beside them.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};

use serde_json::json;
use walras_config::Config;

use crate::support::{PATIENCE, Raw, Socket, Venue, config, key, limit, until};

/// An address of this machine that is not the others'.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A connection from an address of this machine.
pub(crate) fn connect_from(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((IpAddr::from(from), 0).into()).unwrap();
        socket.connect(to).await.unwrap().into_std().unwrap()
    });
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// What an unsigned request from another address is answered.
pub(crate) fn get_from(from: Ipv4Addr, to: SocketAddr, path: &str) -> String {
    let mut stream = connect_from(from, to);
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// A WebSocket of which nothing is read but that it is open.
fn open_socket(to: SocketAddr, path: &str) -> TcpStream {
    let upgrade = "HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(format!("GET {path} {upgrade}").as_bytes()).unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 101");
    stream
}

/// So many idle WebSockets of one address. The last ones are open; earlier ones may have made room for them.
fn idle_sockets(to: SocketAddr, count: usize) -> Vec<TcpStream> {
    (0..count).map(|_| open_socket(to, "/v1/ws")).collect()
}

fn small(places: usize) -> Config {
    let mut config = config();
    config.http.connections_max = places;
    // The crowd's requests are not what is counted here.
    config.throttle.source_requests_per_second = 1_000_000;
    config.throttle.source_burst = 1_000_000;
    config.http.header_timeout_ms = 60_000;
    config
}

/// A small venue with a port for operators, where the allowance of an address is soon used up.
fn with_an_operators_port() -> Venue {
    let mut config = small(4);
    config.http.operator_listen = "127.0.0.1:0".to_owned();
    config.throttle.source_burst = 20;
    config.throttle.source_requests_per_second = 1;
    Venue::with(&config)
}

/// Asks on a connection that stays open, and reads until so many answers have come in all.
fn ask_again(stream: &mut TcpStream, heard: &mut Vec<u8>, answers: usize) {
    stream.write_all(b"GET /v1/time HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    while String::from_utf8_lossy(heard).matches("HTTP/1.1 200").count() < answers {
        let mut bytes = [0; 4096];
        let len = stream.read(&mut bytes).unwrap();
        assert!(len > 0, "the venue closed it after {:?}", String::from_utf8_lossy(heard));
        heard.extend_from_slice(&bytes[..len]);
    }
}

#[test]
fn a_crowd_of_idle_sockets_keeps_neither_the_operator_nor_another_address_out() {
    let venue = Venue::with(&small(16));
    let market = venue.market();
    let address = venue.node().address();
    // One who has shown a key, and one who reads from another address, are inside before the crowd comes.
    let mut trader = Socket::connect(&venue.url());
    trader.authenticate(&key(&market.operator, 0, &["read", "trade"]));
    let mut reader = connect_from(ELSEWHERE, address);
    let mut heard = Vec::new();
    ask_again(&mut reader, &mut heard, 1);
    let crowd = idle_sockets(address, 60);
    // The operator shares the crowd's address.
    let made = market.operator.signed("POST", "/v1/admin/accounts", Some(&json!({}))).unwrap();
    assert_eq!(made["account_id"], 2);
    market.order(&market.alice, &limit(1, "buy", "1", "30000"));
    let answer = get_from(ELSEWHERE, address, "/v1/instruments/BTC-USD/book");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    ask_again(&mut reader, &mut heard, 2);
    assert_eq!(trader.ask(&json!({"op": "ping"}), "pong")["type"], "pong", "one with a key stays");
    // 16 places, and some that are being closed.
    until("the crowd is cut to the places", || venue.node().venue().status().connections() <= 16);
    drop(crowd);
}

#[test]
fn operators_have_places_of_their_own_where_strangers_do_not_stay() {
    let venue = with_an_operators_port();
    let address = venue.node().operator_address().unwrap();
    let operator = venue.operator().at(&format!("http://{address}"));
    // What strangers of the same address send does not count against an operator here.
    let status = || Raw { method: "GET", path: "/v1/time", body: b"", key: None }.send(&venue.url()).status;
    until("the address has used up its allowance", || status() == 429);
    operator.signed("POST", "/v1/admin/accounts", Some(&json!({}))).unwrap();
    // One who shows nothing is sent away, whatever else it asks.
    let mut stranger = connect_from(Ipv4Addr::LOCALHOST, address);
    let mut socket = Socket::connect(&format!("http://{address}"));
    assert_eq!(stranger.read(&mut [0; 16]).unwrap_or(0), 0, "closed after some seconds");
    assert_eq!(socket.next(), Err(Some(4010)));
}

#[test]
fn strangers_at_the_operators_port_are_throttled_and_an_operator_is_not() {
    const REQUESTS: usize = 60;
    let venue = with_an_operators_port();
    let address = venue.node().operator_address().unwrap();
    let mut stranger = connect_from(Ipv4Addr::LOCALHOST, address);
    stranger.write_all(&b"GET /v1/time HTTP/1.1\r\nHost: a\r\n\r\n".repeat(REQUESTS)).unwrap();
    let mut heard = String::new();
    while heard.matches("HTTP/1.1 ").count() < REQUESTS {
        let mut bytes = [0; 4096];
        let len = stranger.read(&mut bytes).unwrap();
        assert!(len > 0, "the venue closed it after {heard:?}");
        heard += &String::from_utf8_lossy(&bytes[..len]);
    }
    let (served, refused) = (heard.matches("HTTP/1.1 200").count(), heard.matches("HTTP/1.1 429").count());
    assert!(served >= 20 && refused >= 20, "{served} were served, {refused} refused");
    // The operator has the stranger's address.
    let operator = venue.operator().at(&format!("http://{address}"));
    for _ in 0..40 {
        operator.signed("GET", "/v1/admin/keys", None).unwrap();
    }
}

#[test]
fn a_socket_that_answers_no_ping_and_one_of_no_use_are_closed_and_others_stay() {
    let mut config = config();
    config.websocket.ping_interval_ms = 300;
    config.websocket.idle_timeout_ms = 1_000;
    let venue = Venue::with(&config);
    // It never reads, and so never answers.
    let deaf = idle_sockets(venue.node().address(), 1);
    let mut idle = Socket::connect(&venue.url());
    let mut reader = Socket::connect(&venue.url());
    reader.ask(&json!({"op": "subscribe", "channel": "status"}), "subscribed");
    let idle = std::thread::spawn(move || idle.next());
    let begun = std::time::Instant::now();
    while !idle.is_finished() || venue.node().venue().status().connections() > 1 {
        // While it reads it answers pings, and it stays.
        assert_eq!(reader.next_of("status")["type"], "status");
        assert!(begun.elapsed() < PATIENCE, "the idle one and the deaf one are closed");
    }
    assert_eq!(idle.join().unwrap(), Err(Some(4010)), "it answered pings, and did nothing else");
    drop(deaf);
}

/// The answer to each ping would wait in the venue's memory.
#[test]
fn one_that_pings_and_reads_no_answer_is_read_no_further() {
    /// Of a thousand pings each: far more than what is on the way has room for.
    const BLOCKS: usize = 600;
    let mut config = small(16);
    config.binance.listen = "127.0.0.1:0".to_owned();
    config.websocket.write_timeout_ms = 500;
    let venue = Venue::with(&config);
    let ping = [&[0x89_u8, 0x80 | 125, 0, 0, 0, 0][..], &[0; 125][..]].concat();
    let pings = ping.repeat(1_000);
    let dialect = venue.node().binance_address().unwrap();
    for (to, path) in [(venue.node().address(), "/v1/ws"), (dialect, "/ws"), (dialect, "/ws-api/v3")] {
        let mut deaf = open_socket(to, path);
        let taken = (0..BLOCKS).take_while(|_| deaf.write_all(&pings).is_ok()).count();
        assert!(taken < BLOCKS, "{path}: the venue took all pings, and has their answers");
    }
    let mut reader = Socket::connect(&venue.url());
    assert_eq!(reader.ask(&json!({"op": "ping"}), "pong")["type"], "pong");
}
