//! Venues in processes that may open few files, and crowds of connections that want them all.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use walras_client::Client;
use walras_wire::order_entry::{VenueMessage, decode_venue, split_frame};

use crate::crowds::get_from;
use crate::replica::one;
use crate::support::{Market, PATIENCE, limit, market, operator, spawn, until};

/// More connections than any of these processes may open files.
const CROWD: usize = 400;

/// A venue or a gateway under a limit of open files. It ends with the test, however that ends.
struct Process {
    child: Child,
    log: PathBuf,
    /// What it printed when it was open.
    line: String,
}

impl Process {
    /// A venue. `ulimit` is what the shell is given, such as `-n 256`; the limit that a service manager sets.
    fn start(dir: &Path, ulimit: &str, config: &str) -> Self {
        Self::run(dir, ulimit, config, &["serve", "--listen", "127.0.0.1:0"])
    }

    fn run(dir: &Path, ulimit: &str, config: &str, arguments: &[&str]) -> Self {
        let (file, log) = (dir.join("walras.toml"), dir.join("walras.log"));
        std::fs::write(&file, config).unwrap();
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("ulimit {ulimit} && exec \"$0\" \"$@\"")).arg(env!("CARGO_BIN_EXE_walras"));
        command.args(arguments).arg("--config").arg(&file).arg("--data").arg(dir.join("venue"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(std::fs::File::create(&log).unwrap());
        let mut child = spawn(&mut command);
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, log, line }
    }

    /// The address behind these words of its line.
    fn after(&self, words: &str) -> SocketAddr {
        let address = || {
            let rest = self.line.split_once(words)?.1;
            let end = rest.find(['/', ',', '\n']).unwrap_or(rest.len());
            rest[..end].trim().parse().ok()
        };
        address().unwrap_or_else(|| panic!("no {words}in {:?}: {}", self.line, self.said()))
    }

    fn http(&self) -> SocketAddr {
        self.after("http://")
    }

    fn url(&self) -> String {
        format!("http://{}", self.http())
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

/// Connections that say nothing. Those that the system no longer takes, because nobody accepts them, are given up soon.
fn crowd(to: SocketAddr) -> Vec<TcpStream> {
    (0..CROWD).map_while(|_| TcpStream::connect_timeout(&to, Duration::from_secs(1)).ok()).collect()
}

/// Trades until the log has gone over the ends of several of its segments.
fn trade(market: &Market, venue: &Path, from: u64) {
    let log = venue.join("replica/log");
    let newest = || {
        std::fs::read_dir(&log)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .filter(|n| n.to_string_lossy().ends_with(".seg"))
            .max()
    };
    let (begun_with, mut id, mut segments) = (newest(), from, std::collections::BTreeSet::new());
    while segments.len() < 3 {
        for _ in 0..50 {
            market.order(&market.alice, &limit(id, "buy", "0.0001", "29000"));
            market.alice.signed("DELETE", &format!("/v1/orders/BTC-USD/{id}"), None).unwrap();
            id += 1;
        }
        segments.extend(newest().filter(|newest| Some(newest) != begun_with.as_ref()));
        assert!(id < from + 20_000, "the log's segments are small");
    }
}

const SMALL: &str = "[log]\nsegment_bytes = 65536\n[throttle]\nrequests_per_second = 1000000\nburst = 1000000\n\
                     source_requests_per_second = 1000000\nsource_burst = 1000000\n";

#[test]
fn a_venue_of_one_machine_goes_on_beside_more_connections_than_it_may_open() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = Process::start(dir.path(), "-n 256", SMALL);
    let said = process.said();
    assert!(said.contains("connections of clients at a time") && said.contains("this process may open 256 files"), "{said}");
    let market = market(&operator(&process.url(), &dir.path().join("venue")));
    let idle = crowd(process.http());
    trade(&market, &dir.path().join("venue"), 1);
    assert!(get_from(Ipv4Addr::new(127, 0, 0, 2), process.http(), "/v1/status").contains("\"storage\":\"ok\""));
    drop(idle);
    assert!(process.is_running());
    let said = process.said();
    assert!(!said.contains("free space"), "no disk is full: {said}");
}

#[test]
fn places_of_operators_are_no_clients() {
    let clients = |more: &str| {
        let dir = tempfile::tempdir().unwrap();
        let process = Process::start(dir.path(), "-n 256", &format!("{SMALL}{more}"));
        let said = process.said();
        let (before, _) = said.split_once(" connections of clients at a time").unwrap_or_else(|| panic!("{said}"));
        before.rsplit(' ').next().unwrap().parse::<usize>().unwrap()
    };
    let (without, with) = (clients(""), clients("[http]\noperator_listen = \"127.0.0.1:0\"\n"));
    // The listener itself is a file, and what else is open at a start differs a little.
    assert!(without.abs_diff(with + 64) < 8, "{without} without, {with} with the operators' port");
}

#[test]
fn the_limit_is_raised_as_far_as_it_may_be() {
    let dir = tempfile::tempdir().unwrap();
    let process = Process::start(dir.path(), "-S -n 256", SMALL);
    let said = process.said();
    assert!(said.contains("raised the limit of open files from 256 to"), "{said}");
}

#[test]
fn a_replica_and_its_order_entry_outlive_a_crowd_that_took_every_place() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = one().cluster;
    let config = format!(
        "{SMALL}[cluster]\nreplica = 1\ninsecure_loopback = true\npeers = [\"{}\"]\nlisten = \"{}\"\n[order_entry]\nlisten = \"127.0.0.1:0\"\n",
        cluster.peers[0], cluster.listen,
    );
    let mut process = Process::start(dir.path(), "-n 256", &config);
    let orders = process.after("binary orders at ");
    let url = process.url();
    until("it leads", || Client::new(&url, None).get("/v1/cluster").is_ok_and(|view| view["takes_commands"] == true));
    let market = market(&operator(&url, &dir.path().join("venue")));
    let idle = [crowd(orders), crowd(process.http())];
    trade(&market, &dir.path().join("venue"), 1);
    assert!(process.is_running(), "{}", process.said());
    // Beside the crowd, and after it: a connection to order entry is spoken to.
    for _ in 0..2 {
        assert_eq!(malformed_is_answered(orders), 1007);
    }
    drop(idle);
    assert_eq!(malformed_is_answered(orders), 1007);
    let said = process.said();
    let lines = said.lines().filter(|line| line.contains("order entry:")).count();
    assert!(lines < 60, "the crowd has not filled the log: {lines} lines");
    assert!(!said.contains("Some(") && !said.contains("None"), "plain words: {said}");
}

/// Of a cluster that is not there: it takes connections, and lets nobody in.
const GATEWAY: &str = "[cluster]\ninsecure_loopback = true\npeers = [\"1=127.0.0.1:1\", \"2=127.0.0.1:2\", \"3=127.0.0.1:3\"]\n\
                       [gateway]\nid = 40\n[order_entry]\nlisten = \"127.0.0.1:0\"\n[fix]\nlisten = \"127.0.0.1:0\"\n";

#[test]
fn a_gateway_has_no_more_places_than_it_may_open_and_counts_the_lines_that_it_leaves_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = Process::run(dir.path(), "-n 256", GATEWAY, &["gateway"]);
    let idle = crowd(process.after("orders by FIX at "));
    assert_eq!(malformed_is_answered(process.after("binary orders at ")), 1007);
    until("what was left out is counted", || process.said().contains("more connections that had not logged on ended"));
    assert!(process.is_running());
    let said = process.said();
    assert!(said.contains("connections of clients at a time") && said.contains("this process may open 256 files"), "{said}");
    assert!(!said.contains("cannot be accepted"), "{said}");
    drop(idle);
}

/// Sends what no client would; the number of the reason for which order entry says goodbye.
fn malformed_is_answered(orders: SocketAddr) -> u16 {
    use std::io::{Read, Write};
    let mut stream = TcpStream::connect(orders).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&[0xff; 64]).unwrap();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let (welcome, rest) = split_frame(&bytes).unwrap().expect("a whole message");
    assert!(matches!(decode_venue(welcome).unwrap(), VenueMessage::Welcome(_)));
    match decode_venue(split_frame(rest).unwrap().expect("a second message").0).unwrap() {
        VenueMessage::Bye { reason, .. } => reason.number(),
        other => panic!("{other:?}"),
    }
}
