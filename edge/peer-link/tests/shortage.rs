//! A replica runs out of descriptors while a peer connects. The test has a process of its own, because it lowers the process's
//! limit.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

#[path = "links/net.rs"]
#[allow(dead_code, reason = "the other tests of links use the rest")]
mod net;

use std::fs::File;
use std::time::Duration;

use net::{Net, plain};
use rustix::process::{Resource, getrlimit, setrlimit};
use walras_peer_link::LinkEvent;
use walras_peer_link::listener::ShortageNews;

/// Lowers the limit and takes all descriptors.
fn take_all() -> Vec<File> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = Some(128);
    setrlimit(Resource::Nofile, limit).unwrap();
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

#[test]
fn a_peer_that_called_during_a_shortage_is_linked_after_it() {
    let mut net = Net::new(vec![plain(1), plain(2)]);
    // The second replica connects: its socket takes the last descriptor.
    let mut taken = take_all();
    taken.pop();
    net.acquaint();
    net.until(|net| net.events[0].iter().any(|event| matches!(event, LinkEvent::Shortage(ShortageNews::Begun(_)))));
    assert!(File::open("/dev/null").is_err(), "there is none left");
    // The first replica gets no further event for this connection: no other peer connects, and the poll reported it once.
    for _ in 0..3 {
        net.skipped_ns += 200_000_000;
        net.step(Duration::from_millis(1));
    }
    let reported = net.events[0].iter().filter(|event| matches!(event, LinkEvent::Shortage(ShortageNews::Begun(_)))).count();
    assert_eq!(reported, 1, "a shortage is reported once");
    drop(taken);
    net.until(|net| net.events.iter().all(|events| events.iter().any(|e| matches!(e, LinkEvent::Connected { .. }))));
    net.skipped_ns += 6_000_000_000;
    net.until(|net| net.events[0].iter().any(|event| matches!(event, LinkEvent::Shortage(ShortageNews::Over(_)))));
}
