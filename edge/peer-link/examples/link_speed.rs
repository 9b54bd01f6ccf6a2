//! How fast two linked replicas are over loopback, in two threads of one process:
//! `cargo run --release -p walras-peer-link --example link_speed`.
//!
//! Round trips of 64 bytes, one at a time, with threads that block in the poll and (with `spin`) with threads that do not; messages
//! of 64 KiB in one direction as fast as they go, each checked for its length and number. Then the same in one thread that holds
//! both ends: the processor's time for both, which other programs disturb little. What it leaves out: a network, and all work but
//! sending.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mio::{Events, Poll};
use walras_consensus::ReplicaId;
use walras_peer_link::keys::{Authority, Validity};
use walras_peer_link::{LinkConfig, LinkEvent, Links, Security, TlsIdentity, Versions};

const CLUSTER: u64 = 1;

struct Node {
    poll: Poll,
    ready: Events,
    links: Links,
    events: Vec<LinkEvent>,
    started: Instant,
}

impl Node {
    fn new(me: u64, authority: Option<&Authority>) -> Self {
        let security = authority.map_or(Security::PlainOnLoopback, |authority| {
            let issued = authority.issue(id(me), Validity::from_now()).unwrap();
            let root = authority.own().certificate.as_bytes();
            Security::Tls(TlsIdentity::from_pem(root, issued.certificate.as_bytes(), issued.key.as_bytes()).unwrap())
        });
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let config = LinkConfig::new(id(me), CLUSTER, listen, security, Versions::new(1, 1, "link_speed"));
        let poll = Poll::new().unwrap();
        let links = Links::new(poll.registry(), 0..20, config, 0).unwrap();
        Self { poll, ready: Events::with_capacity(16), links, events: Vec::new(), started: Instant::now() }
    }

    /// As the loop of a replica does it.
    fn step(&mut self, wait: Option<Duration>) {
        let now_ns = self.started.elapsed().as_nanos() as u64;
        if now_ns >= self.links.next_deadline_ns() {
            self.links.on_timer(now_ns, &mut self.events);
        }
        self.links.flush(now_ns, &mut self.events);
        // Something may be left to read that the poll does not report any more.
        let due = Duration::from_nanos(self.links.next_deadline_ns().saturating_sub(now_ns));
        self.poll.poll(&mut self.ready, Some(wait.map_or(due, |wait| wait.min(due)))).unwrap();
        for event in &self.ready {
            self.links.on_ready(event, now_ns, &mut self.events);
        }
    }
}

fn id(id: u64) -> ReplicaId {
    ReplicaId::new(id).unwrap()
}

fn pair(authority: Option<&Authority>) -> (Node, Node) {
    let (mut one, mut two) = (Node::new(1, authority), Node::new(2, authority));
    let (at_one, at_two) = (one.links.local_address(), two.links.local_address());
    one.links.set_peers(0, [(id(2), at_two.into())].into(), &mut Vec::new()).unwrap();
    two.links.set_peers(0, [(id(1), at_one.into())].into(), &mut Vec::new()).unwrap();
    while one.events.is_empty() || two.events.is_empty() {
        one.step(Some(Duration::from_millis(1)));
        two.step(Some(Duration::from_millis(1)));
    }
    for node in [&mut one, &mut two] {
        assert!(matches!(node.events.remove(0), LinkEvent::Connected { .. }));
    }
    (one, two)
}

/// Microseconds: median and the 99th percentile.
fn round_trips(authority: Option<&Authority>, wait: Option<Duration>, count: u64) -> (f64, f64) {
    let (mut one, mut two) = pair(authority);
    let echo = std::thread::spawn(move || {
        loop {
            two.step(wait);
            for event in std::mem::take(&mut two.events) {
                match event {
                    LinkEvent::Message { from, bytes } => two.links.send(from, bytes).unwrap(),
                    LinkEvent::Lost { .. } => return,
                    other => panic!("{other:?}"),
                }
            }
        }
    });
    let mut took_ns = Vec::new();
    for number in 0..count {
        let mut message = [0; 64];
        message[..8].copy_from_slice(&number.to_le_bytes());
        let begun = Instant::now();
        one.links.send(id(2), Bytes::copy_from_slice(&message)).unwrap();
        while one.events.is_empty() {
            one.step(wait);
        }
        took_ns.push(begun.elapsed().as_nanos() as u64);
        assert_eq!(one.events.pop(), Some(LinkEvent::Message { from: id(2), bytes: Bytes::copy_from_slice(&message) }));
    }
    drop(one);
    echo.join().unwrap();
    took_ns.sort_unstable();
    let at = |share: usize| took_ns[took_ns.len() * share / 100] as f64 / 1e3;
    (at(50), at(99))
}

/// MB a second.
fn throughput(authority: Option<&Authority>, count: u64) -> f64 {
    let (mut one, mut two) = pair(authority);
    let body = vec![7; 64 << 10];
    let begun = Instant::now();
    let reader = std::thread::spawn(move || {
        let mut next = 0_u64;
        while next < count {
            two.step(None);
            for event in two.events.drain(..) {
                let LinkEvent::Message { bytes, .. } = event else { panic!("{event:?}") };
                assert_eq!((bytes.len(), &bytes[..8]), (64 << 10, &next.to_le_bytes()[..]));
                next += 1;
            }
        }
        two
    });
    for number in 0..count {
        let mut message = body.clone();
        message[..8].copy_from_slice(&number.to_le_bytes());
        let message = Bytes::from(message);
        // What does not fit now fits when the reader has caught up.
        while one.links.send(id(2), message.clone()).is_err() {
            one.step(Some(Duration::from_millis(10)));
        }
        one.step(Some(Duration::ZERO));
    }
    while !reader.is_finished() {
        one.step(Some(Duration::from_millis(1)));
    }
    let took_s = begun.elapsed().as_secs_f64();
    drop(reader.join().unwrap());
    (count * (64 << 10)) as f64 / 1e6 / took_s
}

/// Time that this thread was on a processor (Linux).
fn on_cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// Microseconds of processor for `count` messages of `len` bytes that go one way, and come back if `back`, `at_once` at a time.
fn cpu_us(authority: Option<&Authority>, len: usize, back: bool, at_once: u64, count: u64) -> f64 {
    let (mut one, mut two) = pair(authority);
    let message = Bytes::from(vec![7; len]);
    let begun_ns = on_cpu_ns();
    for _ in 0..count / at_once {
        (0..at_once).for_each(|_| one.links.send(id(2), message.clone()).unwrap());
        let mut come = 0;
        while come < at_once {
            one.step(Some(Duration::ZERO));
            two.step(Some(Duration::ZERO));
            let (waits, answers) = if back { (&mut one, Some(&mut two)) } else { (&mut two, None) };
            come += waits.events.len() as u64;
            waits.events.drain(..).for_each(|e| assert!(matches!(e, LinkEvent::Message { bytes, .. } if bytes.len() == len)));
            if let Some(two) = answers {
                for event in two.events.drain(..) {
                    let LinkEvent::Message { from, bytes } = event else { panic!("{event:?}") };
                    two.links.send(from, bytes).unwrap();
                }
            }
        }
    }
    (on_cpu_ns() - begun_ns) as f64 / 1e3 / count as f64
}

fn main() {
    let spins = std::env::args().any(|word| word == "spin");
    let authority = Authority::new(CLUSTER, Validity::from_now()).unwrap();
    for (name, authority) in [("plain", None), ("TLS", Some(&authority))] {
        let there_and_back = cpu_us(authority, 64, true, 1, 20_000);
        let packed = cpu_us(authority, 64, true, 64, 200_000);
        let large = cpu_us(authority, 64 << 10, false, 1, 5_000);
        println!(
            "{name}, processor, both ends: 64 B there and back {there_and_back:.1} us, 64 at once {packed:.2} us each; 64 KiB one way {large:.1} us"
        );
        let (p50, p99) = round_trips(authority, None, 5_000);
        println!("{name}, two threads: 64 B there and back, blocking, p50 {p50:.1} us, p99 {p99:.1} us");
        println!("{name}, two threads: 64 KiB one way {:.0} MB/s", throughput(authority, 10_000));
        if spins {
            let (p50, p99) = round_trips(authority, Some(Duration::ZERO), 100_000);
            println!("{name}, two threads: 64 B there and back, spinning, p50 {p50:.1} us, p99 {p99:.1} us");
        }
    }
}
