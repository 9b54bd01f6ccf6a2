//! FIX on real sockets: the example of docs/fix.md, a restart of the venue, and clients that misbehave.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use walras_access::{Clock, operator_key_file};
use walras_client::{Client, read_key};
use walras_config::Config;
use walras_gateway::ClientKey;
use walras_log_store::RealDisk;
use walras_node::node::Node;
use walras_types::TimeNs;

fn config() -> Config {
    let mut config = Config::default();
    let fix = [&mut config.fix.listen, &mut config.fix.market_data_listen];
    for listen in [&mut config.http.listen, &mut config.order_entry.listen].into_iter().chain(fix) {
        *listen = "127.0.0.1:0".into();
    }
    config.log.segment_bytes = 1 << 20;
    config
}

fn fix_address(node: &Node) -> SocketAddr {
    node.fix_address().unwrap()
}

/// A market of BTC/USD with one funded account; its key's text.
fn market(node: &Node, dir: &Path) -> String {
    let operator = Client::new(&format!("http://{}", node.address()), Some(read_key(&operator_key_file(dir)).unwrap()));
    let post = |path: &str, body: Value| operator.signed("POST", path, Some(&body)).unwrap();
    post("/v1/admin/assets", json!({"symbol": "BTC", "decimals": 8}));
    post("/v1/admin/assets", json!({"symbol": "USD", "decimals": 6}));
    post(
        "/v1/admin/instruments",
        json!({"symbol": "BTC/USD", "base": "BTC", "quote": "USD", "tick_size": "0.25", "lot_size": "0.0001", "reference_price": "10"}),
    );
    post("/v1/admin/phases", json!({"instrument": "BTC-USD", "phase": "continuous"}));
    post("/v1/admin/accounts", json!({}));
    post("/v1/admin/deposits", json!({"account_id": 0, "asset": "USD", "amount": "1000000", "transfer_id": "1"}));
    let key = json!({"account_id": 0, "permissions": ["read", "trade"], "algorithm": "hmac-sha256"});
    post("/v1/admin/keys", key)["key"].as_str().unwrap().to_owned()
}

/// The program in docs/fix.md.
fn example() -> &'static str {
    let document = include_str!("../../../docs/fix.md");
    document.split_once("```python\n").unwrap().1.split_once("```").unwrap().0
}

#[test]
fn the_examples_of_the_document_trade() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(dir.path(), &config()).unwrap();
    let key = market(&node, dir.path());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fix-order.mjs");
    let key_file = dir.path().join("trader.key");
    std::fs::write(&key_file, format!("{key}\n")).unwrap();
    let (mut python, mut javascript) = (Command::new("python3"), Command::new("node"));
    python.args(["-c", example()]);
    javascript.arg(script);
    for mut program in [python, javascript] {
        let ran = program.arg(fix_address(&node).to_string()).arg(&key_file).args(["BTC/USD", "10"]).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        let lines: Vec<&str> = said.lines().map(str::trim_end).collect();
        assert_eq!(lines.get(..3), Some(&["logged on", "report 0", "report 4"][..]), "{ran:?}");
    }
    node.stop();
}

/// A client that says what it expects.
struct Session {
    stream: TcpStream,
    name: &'static str,
    key: String,
    seq: u64,
    expects: u64,
    unread: Vec<u8>,
    /// All that was heard, for the message of a failure.
    heard: String,
}

impl Session {
    fn log_on(address: SocketAddr, (name, key): (&'static str, &str), seq: u64, expects: u64) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut session = Self { stream, name, key: key.to_owned(), seq, expects, unread: Vec::new(), heard: String::new() };
        let (id, secret) = key.split_once('.').unwrap();
        let body = format!("98=0|108=30|553={id}|554={secret}|789={expects}|");
        session.send("A", &body);
        session
    }

    fn send(&mut self, msg_type: &str, body: &str) {
        self.seq += 1;
        let bytes = message_of(self.name, msg_type, self.seq - 1, body);
        self.stream.write_all(&bytes).unwrap();
    }

    /// The next execution report, logout or refusal of a logon; the numbers of all messages are followed.
    fn hears(&mut self) -> (String, String, String) {
        loop {
            let Some(end) = self.unread.windows(4).position(|window| window == b"\x0110=").filter(|at| self.unread.len() >= at + 8)
            else {
                let mut bytes = [0; 4_096];
                let len = self.stream.read(&mut bytes).unwrap_or_else(|e| panic!("{e}: {}", self.heard));
                assert!(len > 0, "the venue closed the connection of {}", self.key);
                self.unread.extend_from_slice(&bytes[..len]);
                continue;
            };
            let text = String::from_utf8(self.unread.drain(..end + 8).collect()).unwrap();
            self.heard += &text;
            let get = |tag: &str| {
                let found = text.split('\x01').find_map(|field| field.strip_prefix(tag)?.strip_prefix('='));
                found.unwrap_or_default().to_owned()
            };
            let seq: u64 = get("34").parse().unwrap();
            match get("35").as_str() {
                "4" => self.expects = get("36").parse().unwrap(),
                _ if seq == self.expects => self.expects += 1,
                _ => {}
            }
            if matches!(get("35").as_str(), "8" | "5" | "3") {
                return (get("11"), get("150"), get("58"));
            }
        }
    }
}

fn message(msg_type: &str, seq: u64, body: &str) -> Vec<u8> {
    message_of("TEST", msg_type, seq, body)
}

fn message_of(name: &str, msg_type: &str, seq: u64, body: &str) -> Vec<u8> {
    message_to("WALRAS", (name, msg_type, seq), body)
}

fn message_to(target: &str, (name, msg_type, seq): (&str, &str, u64), body: &str) -> Vec<u8> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let time = walras_fix_time(u64::try_from(now).unwrap());
    let rest =
        format!("35={msg_type}|34={seq}|49={name}|52={time}|56={target}|{}", body.replace("NOW", &time)).replace('|', "\x01");
    let text = format!("8=FIX.4.4\x019={}\x01{rest}", rest.len());
    let sum = text.bytes().fold(0_u8, u8::wrapping_add);
    format!("{text}10={sum:03}\x01").into_bytes()
}

/// A time as FIX writes it.
fn walras_fix_time(now_ns: u64) -> String {
    let (days, ns) = (now_ns / 86_400_000_000_000, now_ns % 86_400_000_000_000);
    // Days since 0000-03-01, by the years of 400 that the Gregorian calendar repeats in.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + era * 400 + later;
    let ms = ns / 1_000_000;
    format!("{year:04}{month:02}{day:02}-{:02}:{:02}:{:02}.{:03}", ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60, ms % 1_000)
}

fn order(name: &str) -> String {
    format!("11={name}|55=BTC/USD|54=1|60=NOW|38=0.5|40=2|44=10|59=1|")
}

fn said(name: &str, kind: &str) -> (String, String) {
    (name.to_owned(), kind.to_owned())
}

#[test]
fn a_session_goes_on_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(dir.path(), &config()).unwrap();
    let key = market(&node, dir.path());
    let mut session = Session::log_on(fix_address(&node), ("TEST", &key), 1, 1);
    session.send("D", &order("before"));
    let (name, kind, _) = session.hears();
    assert_eq!((name, kind), said("before", "0"));
    // Its report comes, and is not read.
    session.send("D", &order("unread"));
    let mut byte = [0];
    session.stream.peek(&mut byte).unwrap();
    let (seq, expects) = (session.seq, session.expects);
    node.stop();
    let node = Node::start(dir.path(), &config()).unwrap();
    let mut session = Session::log_on(fix_address(&node), ("TEST", &key), seq, expects);
    let (name, kind, text) = session.hears();
    assert_eq!((name, kind), said("unread", "0"), "{text}");
    session.send("F", "11=last|41=before|55=BTC/USD|54=1|60=NOW|38=0.5|");
    let (name, kind, text) = session.hears();
    assert_eq!((name, kind), said("last", "4"), "{text}");
    node.stop();
}

/// An order has one name by FIX and by REST, wherever it came in, and after a restart.
#[test]
fn an_order_has_one_name_by_fix_and_by_rest() {
    const UUID: &str = "3f2504e0-4f89-11d3-9a0c-0305e82c3301";
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(dir.path(), &config()).unwrap();
    let key = market(&node, dir.path());
    let rest = |node: &Node| Client::new(&format!("http://{}", node.address()), Some(ClientKey::from_token(&key).unwrap()));
    let mut session = Session::log_on(fix_address(&node), ("TEST", &key), 1, 1);
    for name in ["bid-7", UUID] {
        session.send("D", &order(name));
        let (heard, kind, text) = session.hears();
        assert_eq!((heard, kind), said(name, "0"), "{text}");
        let found = rest(&node).signed("GET", &format!("/v1/orders/BTC-USD/{name}"), None).unwrap();
        assert_eq!(found["client_order_id"], name);
    }
    let mut by_rest = json!({"instrument": "BTC-USD", "client_order_id": "by-rest/8", "side": "buy", "type": "limit"});
    (by_rest["size"], by_rest["price"]) = ("0.5".into(), "9".into());
    rest(&node).signed("POST", "/v1/orders", Some(&by_rest)).unwrap();
    let (heard, kind, text) = session.hears();
    assert_eq!((heard, kind), said("by-rest/8", "0"), "{text}");
    let (seq, expects) = (session.seq, session.expects);
    node.stop();
    let node = Node::start(dir.path(), &config()).unwrap();
    let mut session = Session::log_on(fix_address(&node), ("TEST", &key), seq, expects);
    rest(&node).signed("DELETE", &format!("/v1/orders/BTC-USD/{UUID}"), None).unwrap();
    let (heard, kind, text) = session.hears();
    assert_eq!((heard, kind), said(UUID, "4"), "{text}");
    session.send("F", "11=last|41=by-rest/8|55=BTC/USD|54=1|60=NOW|38=0.5|");
    let (heard, kind, text) = session.hears();
    assert_eq!((heard, kind), said("last", "4"), "{text}");
    node.stop();
}

/// The programs in docs that keep a book, and what runs them.
const BOOKS: [(&str, &str); 2] = [("python3", "fix-book.py"), ("node", "fix-book.mjs")];

/// A program that reads market data, and what it prints.
struct Reader {
    process: std::process::Child,
    lines: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Reader {
    /// A program of the documents, whole.
    fn start((runner, program): (&str, &str), address: SocketAddr, key: &Path) -> Self {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(program);
        // What never comes is waited for so long.
        let mut command = Command::new("timeout");
        command.args(["60", runner]).arg(program).arg(address.to_string()).arg(key).arg("BTC/USD");
        let mut process = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
        let lines = std::io::BufRead::lines(std::io::BufReader::new(process.stdout.take().unwrap()));
        Self { process, lines }
    }

    /// Reads until the best levels are these, however a language writes numbers.
    fn shows(&mut self, best: &str) {
        let prices = |line: &str| line.split(' ').map(|price| price.parse().ok()).collect::<Vec<Option<f64>>>();
        loop {
            let line = self.lines.next().expect("the program goes on").unwrap();
            if prices(&line) == prices(best) {
                return;
            }
        }
    }
}

#[test]
fn market_data_is_what_the_venue_publishes_and_begins_again_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(dir.path(), &config()).unwrap();
    let key = market(&node, dir.path());
    let key_file = dir.path().join("reader.key");
    std::fs::write(&key_file, &key).unwrap();
    let mut orders = Session::log_on(fix_address(&node), ("TEST", &key), 1, 1);
    let mut readers = BOOKS.map(|book| Reader::start(book, node.fix_market_data_address().unwrap(), &key_file));
    let mut all_show = |best: &str| readers.iter_mut().for_each(|reader| reader.shows(best));
    all_show("- -");
    for (name, price) in [("one", "10"), ("two", "10.25"), ("three", "9")] {
        orders.send("D", &format!("11={name}|55=BTC/USD|54=1|60=NOW|38=0.5|40=2|44={price}|59=1|"));
        assert_eq!(orders.hears().1, "0");
    }
    all_show("10.25 -");
    orders.send("F", "11=gone|41=two|55=BTC/USD|54=1|60=NOW|38=0.5|");
    assert_eq!(orders.hears().1, "4");
    all_show("10.0 -");
    // It takes no orders, and says which instruments there are.
    let asked = raw_session(&node, &key, &[("D", "11=x|55=BTC/USD|54=1|60=NOW|38=1|40=1|")]);
    assert!(asked.contains("\u{1}35=j\u{1}") && asked.contains("takes V, c, e, g and x"), "{asked}");
    let listed = raw_session(&node, &key, &[("x", "320=all|559=4|")]);
    assert!(listed.contains("\u{1}35=y\u{1}") && listed.contains("tick 0.25, lot 0.0001"), "{listed}");
    let status = raw_session(&node, &key, &[("e", "324=phase|55=BTC/USD|263=0|")]);
    assert!(status.contains("\u{1}326=17\u{1}") && status.contains("\u{1}58=continuous, by the operator\u{1}"), "{status}");
    // Single orders, by the numbers that they have over HTTP.
    let by_order = raw_session(&node, &key, &[("V", "262=o|263=0|264=0|266=N|267=1|269=0|146=1|55=BTC/USD|")]);
    let orders = Client::new(&format!("http://{}", node.address()), None).get("/v1/instruments/BTC-USD/book/orders").unwrap();
    let bids = orders["bids"].as_array().unwrap();
    assert_eq!(bids.len(), 2, "{orders}");
    for bid in bids {
        let entry = format!("\u{1}269=0\u{1}270={}\u{1}271={}\u{1}37={}\u{1}", bid[1], bid[2], bid[0]).replace('"', "");
        assert!(by_order.contains("\u{1}35=W\u{1}") && by_order.contains(&entry), "{bid}: {by_order}");
    }
    node.stop();
    let node = Node::start(dir.path(), &config()).unwrap();
    for book in BOOKS {
        Reader::start(book, node.fix_market_data_address().unwrap(), &key_file).shows("10.0 -");
    }
    node.stop();
}

/// What the venue says to one session of market data: the first application message.
fn raw_session(node: &Node, key: &str, messages: &[(&str, &str)]) -> String {
    let mut stream = TcpStream::connect(node.fix_market_data_address().unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let (id, secret) = key.split_once('.').unwrap();
    let logon = format!("98=0|108=30|141=Y|553={id}|554={secret}|");
    for (seq, (msg_type, body)) in (1..).zip([("A", logon.as_str())].iter().chain(messages)) {
        let bytes = message_to("WALRAS-MD", ("RAW", msg_type, seq), body);
        stream.write_all(&bytes).unwrap();
    }
    let (mut said, mut bytes) = (String::new(), [0; 4_096]);
    while said.matches("\u{1}10=").count() < 2 || !said.ends_with('\u{1}') {
        let len = stream.read(&mut bytes).unwrap();
        assert!(len > 0, "the venue closed the connection after {said}");
        said.push_str(std::str::from_utf8(&bytes[..len]).unwrap());
    }
    said
}

#[test]
fn readers_of_market_data_that_misbehave_end_and_the_others_are_served() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(dir.path(), &config()).unwrap();
    let key = market(&node, dir.path());
    let address = node.fix_market_data_address().unwrap();
    for (at, attack) in attacks().into_iter().enumerate() {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let _ = stream.write_all(&attack);
        let listed = raw_session(&node, &key, &[("x", "320=all|559=4|")]);
        assert!(listed.contains("\u{1}35=y\u{1}"), "attack {at}: {listed}");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.is_empty() || answer.contains("\u{1}35=5\u{1}"), "attack {at}: {answer}");
    }
    // One that subscribes over and over and reads nothing.
    let mut greedy = TcpStream::connect(address).unwrap();
    greedy.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let (id, secret) = key.split_once('.').unwrap();
    let logon = format!("98=0|108=30|141=Y|553={id}|554={secret}|");
    greedy.write_all(&message_to("WALRAS-MD", ("GREEDY", "A", 1), &logon)).unwrap();
    for seq in 2..3_000 {
        let asked = format!("262={seq}|263=1|264=0|265=1|267=1|269=0|146=1|55=BTC/USD|");
        if greedy.write_all(&message_to("WALRAS-MD", ("GREEDY", "V", seq), &asked)).is_err() {
            break;
        }
    }
    // It counts against its key's rate, so this one asks with another key.
    let operator = Client::new(&format!("http://{}", node.address()), Some(read_key(&operator_key_file(dir.path())).unwrap()));
    let other = json!({"account_id": 0, "permissions": ["read"], "algorithm": "hmac-sha256"});
    let other = operator.signed("POST", "/v1/admin/keys", Some(&other)).unwrap()["key"].as_str().unwrap().to_owned();
    let listed = raw_session(&node, &other, &[("x", "320=all|559=4|")]);
    assert!(listed.contains("\u{1}35=y\u{1}"), "{listed}");
    node.stop();
}

/// What a client sends that nobody should.
fn attacks() -> Vec<Vec<u8>> {
    let logon = |seq: u64, body: &str| message("A", seq, body);
    vec![
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0; 100_000],
        b"8=FIX.4.4\x019=99999999\x01".to_vec(),
        b"8=FIX.4.4\x019=5\x0135=0\x0110=000\x01".to_vec(),
        b"8=FIX.4.4\x01".repeat(20_000),
        message("D", 1, &order("without a logon")),
        logon(1, "98=0|108=30|"),
        logon(1, "98=0|108=30|553=hm_000000000000000000000000|554=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA|"),
        logon(1, "98=0|108=30|553=|554=|"),
        logon(9_999_999, "98=0|108=0|553=x|95=3|96=a\u{1}b|"),
        [logon(1, "98=0|108=30|553=hm_x|554=y|"), b"8=FIX.4.4\x019=1".repeat(30_000)].concat(),
    ]
}

#[test]
fn clients_that_misbehave_end_and_the_others_are_served() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(dir.path(), &config()).unwrap();
    let key = market(&node, dir.path());
    let address = fix_address(&node);
    let mut good = Session::log_on(address, ("TEST", &key), 1, 1);
    for (at, attack) in attacks().into_iter().enumerate() {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // It may be closed before all is written.
        let _ = stream.write_all(&attack);
        good.send("D", &order(&format!("during-{at}")));
        let (name, kind, text) = good.hears();
        assert_eq!((name, kind), said(&format!("during-{at}"), "0"), "{text}");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let is_refusal = ["\u{1}35=3\u{1}", "\u{1}35=5\u{1}"].iter().any(|kind| answer.contains(kind));
        assert!(answer.is_empty() || is_refusal, "attack {at}: {answer}");
    }
    // Connections that say nothing, and one that asks for much and reads nothing.
    let silent: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut greedy = Session::log_on(address, ("GREEDY", &key), 1, 1);
    greedy.stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    for seq in 2..20_000 {
        if greedy.stream.write_all(&message_of("GREEDY", "1", seq, "112=are you there|")).is_err() {
            break;
        }
    }
    drop(silent);
    good.send("D", &order("last"));
    let (name, kind, text) = good.hears();
    assert_eq!((name, kind), said("last", "0"), "{text}");
    node.stop();
}

/// What a connection hears until it is closed.
fn heard_to_the_end(mut stream: TcpStream) -> String {
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard);
    String::from_utf8_lossy(&heard).into_owned()
}

/// Logs on with new numbers, and what the venue answers.
fn answer_to_logon(address: SocketAddr, (target, name): (&str, &str), key: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let (id, secret) = key.split_once('.').unwrap();
    let logon = format!("98=0|108=30|141=Y|553={id}|554={secret}|");
    stream.write_all(&message_to(target, (name, "A", 1), &logon)).unwrap();
    let mut bytes = [0; 4_096];
    let len = stream.read(&mut bytes).unwrap();
    (stream, String::from_utf8_lossy(&bytes[..len]).into_owned())
}

#[test]
fn one_key_takes_the_places_of_its_account_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config();
    config.http.account_connections_max = 4;
    let node = Node::start(dir.path(), &config).unwrap();
    let key = market(&node, dir.path());
    let operator = Client::new(&format!("http://{}", node.address()), Some(read_key(&operator_key_file(dir.path())).unwrap()));
    let post = |path: &str, body: Value| operator.signed("POST", path, Some(&body)).unwrap();
    post("/v1/admin/accounts", json!({}));
    let other = json!({"account_id": 1, "permissions": ["read", "trade"], "algorithm": "hmac-sha256"});
    let other = post("/v1/admin/keys", other)["key"].as_str().unwrap().to_owned();
    let (orders, data) = (fix_address(&node), node.fix_market_data_address().unwrap());
    let is_let_in = |answer: &str| answer.contains("\u{1}35=A\u{1}");

    let three = ["ONE", "TWO", "THREE"].map(|name| {
        let (stream, answer) = answer_to_logon(data, ("WALRAS-MD", name), &key);
        assert!(is_let_in(&answer), "{name}: {answer}");
        stream
    });
    // A drop copy is the fourth.
    let (_drop_copy, answer) = answer_to_logon(orders, ("WALRAS-DROP", "FOUR"), &key);
    assert!(is_let_in(&answer), "{answer}");
    for (address, target) in [(data, "WALRAS-MD"), (orders, "WALRAS-DROP"), (orders, "WALRAS")] {
        let (_, answer) = answer_to_logon(address, (target, "FIVE"), &key);
        let is_refused = answer.contains("\u{1}35=5\u{1}") && answer.contains("This account has 4 connections");
        assert!(is_refused && answer.contains("http.account_connections_max"), "{target}: {answer}");
    }
    // Another account's key is let in, and this one once a session of it has ended.
    let (_stays, answer) = answer_to_logon(data, ("WALRAS-MD", "OTHER"), &other);
    assert!(is_let_in(&answer), "{answer}");
    let [mut first, ..] = three;
    first.write_all(&message_to("WALRAS-MD", ("ONE", "5", 2), "")).unwrap();
    heard_to_the_end(first);
    let (_again, answer) = answer_to_logon(data, ("WALRAS-MD", "AGAIN"), &key);
    assert!(is_let_in(&answer), "{answer}");
    node.stop();
}

/// Sessions that only listen send no request at which their key would be checked.
#[test]
fn a_revoked_key_ends_its_sessions_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(dir.path(), &config()).unwrap();
    let key = market(&node, dir.path());
    let operator = Client::new(&format!("http://{}", node.address()), Some(read_key(&operator_key_file(dir.path())).unwrap()));
    let other = json!({"account_id": 0, "permissions": ["read", "trade"], "algorithm": "hmac-sha256"});
    let other = operator.signed("POST", "/v1/admin/keys", Some(&other)).unwrap()["key"].as_str().unwrap().to_owned();
    let (id, _) = key.split_once('.').unwrap();
    let listener = |address: SocketAddr, target: &str| {
        let (stream, answer) = answer_to_logon(address, (target, "LISTENS"), &key);
        assert!(answer.contains("\u{1}35=A\u{1}"), "{target}: {answer}");
        stream
    };
    let drop_copy = listener(fix_address(&node), "WALRAS-DROP");
    let reader = listener(node.fix_market_data_address().unwrap(), "WALRAS-MD");
    let mut orders = Session::log_on(fix_address(&node), ("TEST", &key), 1, 1);
    orders.send("D", &order("one"));
    assert_eq!(orders.hears().1, "0");
    let mut stays = Session::log_on(fix_address(&node), ("STAYS", &other), 1, 1);
    operator.signed("DELETE", &format!("/v1/admin/keys/{id}"), None).unwrap();
    let (name, _, text) = orders.hears();
    assert!(name.is_empty() && text.contains("revoked"), "{name}: {text}");
    for (what, stream) in [("a drop copy", drop_copy), ("a reader of market data", reader)] {
        let heard = heard_to_the_end(stream);
        assert!(heard.contains("\u{1}35=5\u{1}") && heard.contains("revoked"), "{what}: {heard}");
    }
    let (_, _, text) = Session::log_on(fix_address(&node), ("TEST", &key), orders.seq, orders.expects).hears();
    assert!(text.contains("UnknownKey"), "{text}");
    // The account's other key is as good as before, and its orders are.
    stays.send("F", "11=end|41=one|55=BTC/USD|54=1|60=NOW|38=0.5|");
    assert_eq!(stays.hears().1, "4");
    node.stop();
}

/// As a revoked key: for who only listens too.
#[test]
fn an_expired_key_ends_its_sessions_and_no_others() {
    const SECOND: u64 = 1_000_000_000;
    let dir = tempfile::tempdir().unwrap();
    let ahead_ns = Arc::new(AtomicU64::new(0));
    let clock = Clock::new({
        let ahead_ns = Arc::clone(&ahead_ns);
        move || TimeNs(walras_access::now().0 + ahead_ns.load(Relaxed))
    });
    let node = Node::start_on(RealDisk, clock, dir.path(), &config()).unwrap();
    let other = market(&node, dir.path());
    let operator = Client::new(&format!("http://{}", node.address()), Some(read_key(&operator_key_file(dir.path())).unwrap()));
    let expires = (walras_access::now().0 + 40 * SECOND).to_string();
    let key = json!({
        "account_id": 0, "permissions": ["read", "trade"], "algorithm": "hmac-sha256", "expire_time_ns": expires,
    });
    let key = operator.signed("POST", "/v1/admin/keys", Some(&key)).unwrap()["key"].as_str().unwrap().to_owned();
    let listener = |address: SocketAddr, target: &str| {
        let (stream, answer) = answer_to_logon(address, (target, "LISTENS"), &key);
        assert!(answer.contains("\u{1}35=A\u{1}"), "{target}: {answer}");
        stream
    };
    let drop_copy = listener(fix_address(&node), "WALRAS-DROP");
    let reader = listener(node.fix_market_data_address().unwrap(), "WALRAS-MD");
    let mut orders = Session::log_on(fix_address(&node), ("TEST", &key), 1, 1);
    orders.send("D", &order("one"));
    assert_eq!(orders.hears().1, "0");
    let mut stays = Session::log_on(fix_address(&node), ("STAYS", &other), 1, 1);
    // Less than two heartbeats later.
    ahead_ns.store(45 * SECOND, Relaxed);
    let (name, _, text) = orders.hears();
    assert!(name.is_empty() && text.contains("has expired: ask the operator"), "{name}: {text}");
    for (what, stream) in [("a drop copy", drop_copy), ("a reader of market data", reader)] {
        let heard = heard_to_the_end(stream);
        assert!(heard.contains("\u{1}35=5\u{1}") && heard.contains("has expired"), "{what}: {heard}");
    }
    let (_, _, text) = Session::log_on(fix_address(&node), ("TEST", &key), orders.seq, orders.expects).hears();
    assert!(text.contains("KeyExpired (119)") && text.contains("ask the operator"), "{text}");
    let (_, refused) = answer_to_logon(node.fix_market_data_address().unwrap(), ("WALRAS-MD", "AGAIN"), &key);
    assert!(refused.contains("\u{1}35=5\u{1}") && refused.contains("KeyExpired (119)"), "{refused}");
    // The account's other key is as good as before, and its orders are.
    stays.send("F", "11=end|41=one|55=BTC/USD|54=1|60=NOW|38=0.5|");
    assert_eq!(stays.hears().1, "4");
    node.stop();
}

/// A peer that vanishes without a logout, as after a cable was pulled: its connection ends, and its session is free.
#[test]
fn a_peer_that_vanishes_is_let_go_of() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(dir.path(), &config()).unwrap();
    let key = market(&node, dir.path());
    let (id, secret) = key.split_once('.').unwrap();
    let mut stream = TcpStream::connect(fix_address(&node)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // A heartbeat each second; it never says anything again, and reads all that comes.
    let logon = format!("98=0|108=1|553={id}|554={secret}|");
    stream.write_all(&message_to("WALRAS", ("GONE", "A", 1), &logon)).unwrap();
    let heard = heard_to_the_end(stream);
    assert!(heard.contains("\u{1}35=1\u{1}"), "it is asked whether it is there: {heard}");
    // Only commands use up numbers for good: the venue still expects the first.
    let mut again = Session::log_on(fix_address(&node), ("GONE", &key), 1, 1);
    again.send("D", &order("back"));
    assert_eq!(again.hears().1, "0");
    node.stop();
}
