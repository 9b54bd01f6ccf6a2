//! Messages, lost connections, and changes of the peers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use walras_peer_link::{LinkError, LinkEvent, LinkFaults, PathFaults, SendError, SetupError};

use crate::net::{Net, authority, id, plain, tls};

fn three() -> Net {
    let authority = authority(crate::net::CLUSTER);
    Net::connected((1..=3).map(|me| tls(&authority, me)).collect())
}

#[test]
fn everybody_hears_everybody_in_order() {
    let mut net = three();
    for round in 0..20_u8 {
        for from in 0..3 {
            for to in (1..=3).filter(|to| *to != from as u64 + 1) {
                let len = [0, 1, 100, 20_000, 300_000][usize::from(round) % 5];
                net.at(from).send(id(to), vec![round; len]).unwrap();
            }
        }
    }
    net.until(|net| net.events.iter().all(|events| events.len() == 40));
    for (place, events) in net.events.iter().enumerate() {
        for from in (1..=3).filter(|from| *from != place as u64 + 1) {
            let bytes: Vec<_> = events
                .iter()
                .filter_map(|e| match e {
                    LinkEvent::Message { from: f, bytes } if *f == id(from) => Some(bytes),
                    _ => None,
                })
                .collect();
            assert_eq!(bytes.len(), 20);
            for (round, bytes) in bytes.into_iter().enumerate() {
                assert_eq!(bytes.len(), [0, 1, 100, 20_000, 300_000][round % 5]);
                assert!(bytes.iter().all(|byte| usize::from(*byte) == round));
            }
        }
    }
}

#[test]
fn a_replica_that_stops_is_lost_and_linked_again_when_it_is_back() {
    let authority = authority(crate::net::CLUSTER);
    let mut net = Net::connected((1..=3).map(|me| tls(&authority, me)).collect());
    let address = net.address(0);
    net.links[0] = None;
    for place in [1, 2] {
        let lost = net.wait(place, |e| matches!(e, LinkEvent::Lost { .. }));
        assert!(
            matches!(lost, LinkEvent::Lost { id: who, why: LinkError::Closed | LinkError::Broken(_) } if who == id(1)),
            "{lost:?}"
        );
        assert_eq!(net.at(place).send(id(1), "x"), Err(SendError::NotLinked(id(1))));
    }
    let mut again = tls(&authority, 1);
    (again.listen, again.incarnation) = (address, 100);
    let place = net.start(again);
    let others = [(2, net.address(1)), (3, net.address(2))];
    net.introduce(place, &others);
    for at in [1, 2] {
        net.wait(at, |e| matches!(e, LinkEvent::Connected { id: who, .. } if *who == id(1)));
        net.at(at).send(id(1), vec![at as u8]).unwrap();
    }
    let mut heard = [net.message(place), net.message(place)];
    heard.sort();
    assert_eq!(heard, [(2, vec![1]), (3, vec![2])]);
    // While the peer was away, its refusal was reported once, however many attempts were made.
    for place in [1, 2] {
        let reported = net.events[place].iter().filter(|e| matches!(e, LinkEvent::Refused { .. })).count();
        assert!(reported <= 1, "{:?}", net.events[place]);
    }
}

#[test]
fn removed_peers_are_notified_and_may_come_back() {
    let mut net = three();
    let (second, third) = (net.address(1), net.address(2));
    net.introduce(0, &[(2, second)]);
    let lost = net.wait(0, |e| matches!(e, LinkEvent::Lost { .. }));
    assert_eq!(lost, LinkEvent::Lost { id: id(3), why: LinkError::Removed });
    let lost = net.wait(2, |e| matches!(e, LinkEvent::Lost { .. }));
    assert!(matches!(lost, LinkEvent::Lost { why: LinkError::RefusedByPeer(_), .. }), "{lost:?}");
    // It calls again and is refused as unknown; both sides report this once.
    let refused = net.wait(0, |e| matches!(e, LinkEvent::Refused { .. }));
    assert!(
        matches!(refused, LinkEvent::Refused { why: LinkError::UnknownReplica { id: who }, .. } if who == id(3)),
        "{refused:?}"
    );
    let refused = net.wait(2, |e| matches!(e, LinkEvent::Refused { .. }));
    let LinkEvent::Refused { why: LinkError::RefusedByPeer(text), .. } = refused else { panic!("{refused:?}") };
    assert!(text.contains("not among the peers"), "{text}");
    for _ in 0..20 {
        net.skipped_ns += 600_000_000;
        net.step(Duration::from_millis(5));
    }
    assert!(net.events[0].is_empty() && !net.events[2].iter().any(|e| matches!(e, LinkEvent::Refused { .. })), "{:?}", net.events);
    net.introduce(0, &[(2, second), (3, third)]);
    net.wait(2, |e| matches!(e, LinkEvent::Connected { id: who, .. } if *who == id(1)));
}

#[test]
fn a_peer_that_does_not_read_costs_a_queue_and_no_more() {
    let mut configs = vec![plain(1), plain(2)];
    for config in &mut configs {
        config.limits.queue_bytes_max = 8 << 20;
        config.limits.message_bytes_max = 1 << 20;
    }
    let mut net = Net::connected(configs);
    // From here on the second replica does not run.
    let mut reader = net.links[1].take();
    let message = bytes::Bytes::from(vec![7; 64 << 10]);
    let mut sent = 0_u64;
    let refused = loop {
        assert!(sent < 10_000, "sockets do not hold so much");
        match net.at(0).send(id(2), message.clone()) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
        let now_ns = net.now_ns();
        let events = &mut net.events[0];
        net.links[0].as_mut().unwrap().flush(now_ns, events);
    };
    assert_eq!(refused, SendError::QueueFull(id(2)));
    let queued_bytes = net.at(0).status(id(2)).unwrap().queued_bytes;
    assert!(queued_bytes <= 8 << 20 && queued_bytes > 7 << 20, "{queued_bytes}");
    net.links[1] = reader.take();
    let came = |net: &Net| net.events[1].iter().filter(|e| matches!(e, LinkEvent::Message { .. })).count() as u64;
    net.until(|net| came(net) == sent);
    net.at(0).send(id(2), "more").unwrap();
    net.until(|net| came(net) == sent + 1);
}

#[test]
fn a_link_that_is_cut_is_lost_at_both_ends_and_made_again() {
    // The replica that was called cuts the link, then the one that called.
    for (cuts, other) in [(0, 1), (1, 0)] {
        let mut configs = vec![plain(1), plain(2)];
        for config in &mut configs {
            (config.limits.queue_bytes_max, config.limits.message_bytes_max) = (8 << 20, 1 << 20);
        }
        let mut net = Net::connected(configs);
        let there = id(other as u64 + 1);
        // Nothing is flushed, so that all of it is queued.
        let message = bytes::Bytes::from(vec![7; 1 << 20]);
        while net.at(cuts).send(there, message.clone()).is_ok() {}
        assert_eq!(net.at(cuts).send(there, message), Err(SendError::QueueFull(there)));
        let mut ended = Vec::new();
        net.at(cuts).cut(there, &mut ended);
        assert_eq!(ended, [LinkEvent::Lost { id: there, why: LinkError::Overrun }]);
        assert_eq!(net.at(cuts).send(there, "x"), Err(SendError::NotLinked(there)));
        net.at(cuts).cut(there, &mut ended);
        assert_eq!(ended.len(), 1, "it is not linked now");
        net.wait(other, |e| matches!(e, LinkEvent::Lost { .. }));
        net.wait(cuts, |e| matches!(e, LinkEvent::Connected { .. }));
        net.wait(other, |e| matches!(e, LinkEvent::Connected { .. }));
        net.at(cuts).send(there, "more").unwrap();
        assert_eq!(net.message(other), (cuts as u64 + 1, b"more".to_vec()), "nothing of before came");
    }
}

#[test]
fn a_message_too_long_is_refused_where_it_is_made() {
    let mut net = three();
    let bytes_max = 8 << 20;
    assert_eq!(net.at(0).send(id(2), vec![0; bytes_max + 1]), Err(SendError::TooLong { bytes: bytes_max + 1, bytes_max }));
    net.at(0).send(id(2), vec![1; bytes_max]).unwrap();
    assert_eq!(net.message(1).1.len(), bytes_max);
}

#[test]
fn a_peer_that_has_stopped_answering_is_given_up() {
    let mut net = Net::connected(vec![plain(1), plain(2)]);
    net.links[1].as_mut().unwrap();
    let _frozen = net.links[1].take();
    net.skipped_ns += 1_100_000_000;
    net.step(Duration::ZERO);
    assert!(net.events[0].is_empty(), "it is only asked: {:?}", net.events[0]);
    net.skipped_ns += 2_100_000_000;
    let lost = net.wait(0, |e| matches!(e, LinkEvent::Lost { .. }));
    assert_eq!(lost, LinkEvent::Lost { id: id(2), why: LinkError::Silent });
}

#[test]
fn silence_with_answers_is_no_reason_to_give_up() {
    let mut net = Net::connected(vec![plain(1), plain(2)]);
    for _ in 0..20 {
        net.skipped_ns += 1_100_000_000;
        (0..4).for_each(|_| net.step(Duration::from_millis(2)));
    }
    assert!(net.events.iter().all(Vec::is_empty), "{:?}", net.events);
}

#[test]
fn garbage_and_unknown_peers_are_refused_and_reported_once() {
    for secure in [true, false] {
        let authority = authority(crate::net::CLUSTER);
        let mut net = Net::new(vec![if secure { tls(&authority, 1) } else { plain(1) }]);
        let mut seed = 1_u32;
        for _ in 0..20 {
            let mut stranger = TcpStream::connect(net.address(0)).unwrap();
            stranger.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
            let garbage: Vec<u8> = (0..5_000)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (seed >> 24) as u8
                })
                .collect();
            // The connection may be refused before all bytes are written.
            let _ = stranger.write_all(&garbage);
            net.until(|_| !matches!(stranger.read(&mut [0; 1_000]), Err(e) if matches!(e.kind(), std::io::ErrorKind::WouldBlock)));
            // Slow enough not to be refused as one that connects too often.
            net.skipped_ns += 1_000_000_000;
        }
        let reported: Vec<_> = net.events[0].iter().collect();
        assert_eq!(reported.len(), 1, "{reported:?}");
        let why = match reported[0] {
            LinkEvent::Refused { id: None, remote: Some(_), why } => why,
            other => panic!("{other:?}"),
        };
        assert!(if secure { *why == LinkError::NotTls } else { matches!(why, LinkError::Frame(_)) }, "{why:?}");
    }
}

#[test]
fn a_stranger_who_says_nothing_is_shown_out() {
    let mut net = Net::new(vec![plain(1)]);
    let stranger = TcpStream::connect(net.address(0)).unwrap();
    net.step(Duration::from_secs(1));
    net.skipped_ns += 5_100_000_000;
    let refused = net.wait(0, |e| matches!(e, LinkEvent::Refused { .. }));
    assert!(matches!(refused, LinkEvent::Refused { why: LinkError::HandshakeTooSlow, .. }), "{refused:?}");
    drop(stranger);
}

#[test]
fn strangers_who_stay_do_not_keep_a_peer_out() {
    let mut net = Net::new(vec![plain(1), plain(2)]);
    let crowd: Vec<TcpStream> = (0..90).map(|_| TcpStream::connect(net.address(1)).unwrap()).collect();
    let crowd_first: Vec<TcpStream> = (0..90).map(|_| TcpStream::connect(net.address(0)).unwrap()).collect();
    (0..5).for_each(|_| net.step(Duration::from_millis(5)));
    net.acquaint();
    // The silent connections stay open. No time passes, so none of them times out; the oldest is closed, and the peer is admitted.
    net.until_connected();
    drop((crowd, crowd_first));
}

#[test]
fn strangers_who_return_at_once_are_not_heard_and_a_peer_is() {
    let mut net = Net::new(vec![plain(1), plain(2)]);
    let connected = |net: &mut Net, count: usize| {
        let crowd: Vec<TcpStream> = (0..count).map(|_| connect_from([127, 0, 0, 2], net.address(1))).collect();
        (0..5).for_each(|_| net.step(Duration::from_millis(5)));
        let stay = |stream: &&TcpStream| {
            stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
            matches!((&mut &**stream).read(&mut [0; 1]), Err(e) if e.kind() == std::io::ErrorKind::WouldBlock)
        };
        crowd.iter().filter(stay).count()
    };
    // A burst of four is heard, then two a second. Steps take real time, too.
    assert!((4..=5).contains(&connected(&mut net, 30)));
    let refusals =
        |net: &Net| net.events[1].iter().filter(|e| matches!(e, LinkEvent::Refused { why: LinkError::TooOften, .. })).count();
    assert_eq!(refusals(&net), 1, "it is reported once");
    net.skipped_ns += 1_000_000_000;
    assert!((2..=3).contains(&connected(&mut net, 30)));
    net.acquaint();
    net.until_connected();
}

fn connect_from(source: [u8; 4], to: std::net::SocketAddr) -> TcpStream {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &std::net::SocketAddr::from((source, 0))).unwrap();
    rustix::net::connect(&socket, &to).unwrap();
    socket.into()
}

#[test]
fn without_tls_nothing_leaves_the_machine() {
    let poll = mio::Poll::new().unwrap();
    let mut outside = plain(1);
    outside.listen = "0.0.0.0:0".parse().unwrap();
    let refused = walras_peer_link::Links::new(poll.registry(), 0..20, outside, 0);
    assert!(matches!(refused, Err(SetupError::PlainOutside(_))));
    let mut outside = plain(1);
    outside.peers.insert(id(2), "192.0.2.1:7000".parse().unwrap());
    let refused = walras_peer_link::Links::new(poll.registry(), 0..20, outside, 0);
    assert!(matches!(refused, Err(SetupError::PlainOutside(_))));
}

#[test]
fn impossible_configurations_are_refused() {
    let poll = mio::Poll::new().unwrap();
    let mut own_peer = plain(1);
    own_peer.peers.insert(id(1), "127.0.0.1:7000".parse().unwrap());
    assert!(matches!(walras_peer_link::Links::new(poll.registry(), 0..20, own_peer, 0), Err(SetupError::OwnPeer(_))));
    assert!(matches!(walras_peer_link::Links::new(poll.registry(), 0..2, plain(1), 0), Err(SetupError::Tokens { .. })));
    let mut small = plain(1);
    small.limits.message_bytes_max = 1;
    assert!(matches!(walras_peer_link::Links::new(poll.registry(), 0..20, small, 0), Err(SetupError::Limits(_))));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut busy = plain(1);
    busy.listen = taken.local_addr().unwrap();
    assert!(matches!(walras_peer_link::Links::new(poll.registry(), 0..20, busy, 0), Err(SetupError::Listen { .. })));
}

#[test]
fn a_peer_is_found_by_name() {
    let authority = authority(crate::net::CLUSTER);
    let mut net = Net::new((1..=2).map(|me| tls(&authority, me)).collect());
    let (first, second) = (net.address(0), net.address(1));
    net.introduce(0, &[(2, second)]);
    let named = [(id(1), format!("localhost:{}", first.port()).parse().unwrap())].into();
    let now_ns = net.now_ns();
    net.at(1).set_peers(now_ns, named, &mut Vec::new()).unwrap();
    net.until_connected();

    let nobody = [(id(1), "nobody.invalid:1".parse().unwrap())].into();
    let mut lonely = Net::new(vec![]);
    let place = lonely.start(tls(&authority, 2));
    let now_ns = lonely.now_ns();
    lonely.at(place).set_peers(now_ns, nobody, &mut Vec::new()).unwrap();
    let refused = lonely.wait(place, |e| matches!(e, LinkEvent::Refused { .. }));
    assert!(matches!(refused, LinkEvent::Refused { why: LinkError::Unresolved(_), .. }), "{refused:?}");
}

#[test]
fn injected_faults_lose_and_delay_and_end() {
    let mut net = three();
    assert_eq!(net.at(0).set_faults(id(2), LinkFaults::BLOCKED), Err(SendError::FaultsForbidden));

    let mut configs = vec![plain(1), plain(2)];
    configs.iter_mut().for_each(|config| config.faults_allowed = true);
    let mut net = Net::connected(configs);
    // In one direction only.
    net.at(0).set_faults(id(2), LinkFaults { out: PathFaults::BLOCKED, back: PathFaults::default() }).unwrap();
    net.at(0).send(id(2), "lost").unwrap();
    net.at(1).send(id(1), "heard").unwrap();
    assert_eq!(net.message(0), (2, b"heard".to_vec()));
    net.at(0).set_faults(id(2), LinkFaults { out: PathFaults::default(), back: PathFaults::BLOCKED }).unwrap();
    net.at(0).send(id(2), "now it comes").unwrap();
    net.at(1).send(id(1), "lost").unwrap();
    assert_eq!(net.message(1), (1, b"now it comes".to_vec()));
    // The link stays up throughout.
    for _ in 0..10 {
        net.skipped_ns += 1_100_000_000;
        (0..4).for_each(|_| net.step(Duration::from_millis(2)));
    }
    assert!(net.events.iter().all(Vec::is_empty), "{:?}", net.events);
    let delay_ns = 300_000_000;
    let late = PathFaults { lost_per_million: 0, delay_ns };
    net.at(0).set_faults(id(2), LinkFaults { out: late, back: late }).unwrap();
    let sent_ns = net.now_ns();
    net.at(0).send(id(2), "one").unwrap();
    net.at(0).send(id(2), "two").unwrap();
    net.at(1).send(id(1), "three").unwrap();
    (0..4).for_each(|_| net.step(Duration::from_millis(2)));
    assert!(net.events.iter().all(Vec::is_empty));
    net.skipped_ns += delay_ns;
    assert_eq!([net.message(1).1, net.message(1).1], [b"one".to_vec(), b"two".to_vec()]);
    assert_eq!(net.message(0).1, b"three".to_vec());
    assert!(net.now_ns() - sent_ns >= delay_ns);
    net.at(0).set_faults(id(2), LinkFaults::default()).unwrap();
    net.at(0).send(id(2), "clear").unwrap();
    assert_eq!(net.message(1).1, b"clear".to_vec());
}
