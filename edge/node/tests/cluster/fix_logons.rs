//! A signed FIX logon that somebody saw and sends again, to the same replica and to the others, at each of which FIX participants come in.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use walras_access::now;
use walras_fix::{Body, Version};
use walras_gateway::ClientKey;

use super::client::{dial, read};
use super::fix_trading::fix_of;
use super::{Cluster, PATIENCE, Shape};

/// A signed logon is good for five seconds: what is compared happens in four.
const IN_TIME: Duration = Duration::from_secs(4);

const VERSION: Version = Version::Fix44;

/// What a replica answers a logon with.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    LoggedOn,
    /// Its Logout's text.
    Refused(String),
}

/// A logon by a signature of now.
fn logon(key: &ClientKey, resets: bool) -> Vec<u8> {
    let mut time = Body::new();
    time.time(52, now().0, VERSION);
    let time = String::from_utf8(time.as_bytes().to_vec()).unwrap();
    let sent = time.trim_start_matches("52=").trim_end_matches('\u{1}');
    let reset = if resets { "Y" } else { "N" };
    let signed = format!("walras-v1\nLOGON\n/fix\nFIX.4.4\nDESK\nWALRAS\n1\n{sent}\n30\n{reset}\n");
    let signature = key.sign_bytes(signed.as_bytes());
    let (key_id, _) = key.to_token().split_once('.').map(|(id, secret)| (id.to_owned(), secret.len())).unwrap();
    let rest = format!(
        "35=A|34=1|49=DESK|52={sent}|56=WALRAS|98=0|108=30|141={reset}|95={}|96={signature}|553={key_id}|",
        signature.len()
    );
    let rest = rest.replace('|', "\u{1}");
    let text = format!("8=FIX.4.4\u{1}9={}\u{1}{rest}", rest.len());
    let sum = text.bytes().fold(0_u8, u8::wrapping_add);
    format!("{text}10={sum:03}\u{1}").into_bytes()
}

/// Sends a logon, and gives the answer and the connection.
fn send(address: &str, logon: &[u8]) -> (Answer, TcpStream) {
    let mut stream = dial(address, Duration::from_millis(20)).unwrap();
    stream.write_all(logon).unwrap();
    let (begun, mut buffer, mut heard) = (Instant::now(), vec![0; 64 << 10], String::new());
    loop {
        assert!(begun.elapsed() < PATIENCE, "a logon is not answered: {heard}");
        let bytes = read(&mut stream, &mut buffer).unwrap_or_else(|error| panic!("{error} after {heard}"));
        heard.push_str(std::str::from_utf8(bytes).unwrap());
        if !heard.contains("\u{1}10=") {
            continue;
        }
        let get = |tag: &str| heard.split('\u{1}').find_map(|field| field.strip_prefix(tag)).unwrap_or_default().to_owned();
        match get("35=").as_str() {
            "A" => return (Answer::LoggedOn, stream),
            "5" => return (Answer::Refused(get("58=")), stream),
            other => panic!("{other} answers a logon: {heard}"),
        }
    }
}

/// A cluster whose replicas all take FIX sessions, and where.
fn cluster(replicas: u16, more: Vec<(&'static str, &'static str, toml::Value)>) -> (Cluster, Vec<String>) {
    let cluster = Cluster::of(Shape { replicas, fix: true, more, ..Shape::default() });
    let addresses = cluster.local.replicas.iter().map(fix_of).collect();
    (cluster, addresses)
}

fn is_reused(answer: &Answer) -> bool {
    matches!(answer, Answer::Refused(text) if text.contains("NonceReused") || text.contains("a logon is good once"))
}

#[test]
fn a_fix_logon_that_is_sent_again_is_refused_by_every_replica() {
    let settings = vec![("fair_access", "sequencing", "500us".into()), ("fair_access", "bound_us", toml::Value::Integer(10))];
    let (cluster, addresses) = cluster(3, settings);
    let (_, key) = cluster.market(1).remove(0);
    let begun = Instant::now();
    // The first logon begins the session at 1; later ones begin its numbers again.
    let mut resets = false;
    for first in addresses.iter().cycle() {
        assert!(begun.elapsed() < PATIENCE, "never in time");
        let (signed, bytes) = (Instant::now(), logon(&key, resets));
        let (answer, kept) = send(first, &bytes);
        if signed.elapsed() > IN_TIME {
            // A machine that stood still.
            continue;
        }
        assert_eq!(answer, Answer::LoggedOn, "at {first}");
        resets = true;
        let again: Vec<_> = addresses.iter().map(|address| send(address, &bytes).0).collect();
        if signed.elapsed() > IN_TIME {
            continue;
        }
        assert!(again.iter().all(is_reused), "sent again to {addresses:?}, first to {first}: {again:?}");
        drop(kept);
        // Each replica was the first one of a logon.
        if first == addresses.last().unwrap() {
            break;
        }
    }
}

/// Without fair access only the leader takes sessions: what it forgets of them when they end, the state does not.
#[test]
fn a_replica_that_starts_again_refuses_a_fix_logon_from_before() {
    let (mut cluster, addresses) = cluster(1, Vec::new());
    let (_, key) = cluster.market(1).remove(0);
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < PATIENCE, "never in time");
        let (signed, bytes) = (Instant::now(), logon(&key, true));
        let (answer, _) = send(&addresses[0], &bytes);
        assert_eq!(answer, Answer::LoggedOn);
        let replica = &mut cluster.local.replicas[0];
        replica.signal(Signal::KILL).unwrap();
        replica.wait().unwrap();
        cluster.local.start(1).unwrap();
        cluster.local.wait_for_leader(PATIENCE).unwrap();
        let (again, _) = send(&addresses[0], &bytes);
        if signed.elapsed() < IN_TIME {
            assert!(is_reused(&again), "{again:?}");
            return;
        }
    }
}
