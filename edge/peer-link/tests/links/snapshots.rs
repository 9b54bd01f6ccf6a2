//! Snapshots between the messages.

use std::io::{self, Read};
use std::time::Duration;

use walras_peer_link::{LinkError, LinkEvent, LinkFaults, PathFaults, SendError, SnapshotFailure, SnapshotId};

use crate::net::{CLUSTER, Net, authority, id, plain, tls};

/// Bytes that are made as they are read.
struct Made {
    at: u64,
    fails_at: u64,
    ends_at: u64,
    /// Every other read finds nothing at hand.
    stutters: bool,
}

fn made() -> Box<Made> {
    Box::new(Made { at: 0, fails_at: u64::MAX, ends_at: u64::MAX, stutters: false })
}

fn byte(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl Read for Made {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.fails_at {
            return Err(io::Error::other("the disk is gone"));
        }
        self.stutters = !self.stutters && self.fails_at == u64::MAX - 1;
        if self.stutters {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let len = into.len().min(usize::try_from(self.ends_at.saturating_sub(self.at)).unwrap_or(usize::MAX));
        for place in &mut into[..len] {
            *place = byte(self.at);
            self.at += 1;
        }
        Ok(len)
    }
}

/// What the second replica has of a snapshot.
#[derive(Default)]
struct Taken {
    id: Option<SnapshotId>,
    meta: Vec<u8>,
    total_bytes: u64,
    bytes: u64,
    hash: Option<[u8; 32]>,
    broken: Option<SnapshotFailure>,
    messages: Vec<Vec<u8>>,
}

impl Taken {
    /// Takes what came, and lets more come.
    fn take(&mut self, net: &mut Net, place: usize) {
        for event in std::mem::take(&mut net.events[place]) {
            match event {
                LinkEvent::SnapshotBegin { id, meta, total_bytes, .. } => {
                    let messages = std::mem::take(&mut self.messages);
                    *self = Self { id: Some(id), meta: meta.to_vec(), total_bytes, messages, ..Self::default() };
                }
                LinkEvent::SnapshotChunk { from, id, offset, bytes } => {
                    assert_eq!((Some(id), offset), (self.id, self.bytes));
                    assert!(bytes.iter().zip(offset..).all(|(b, at)| *b == byte(at)));
                    self.bytes += bytes.len() as u64;
                    net.at(place).snapshot_taken(from, id, bytes.len());
                }
                LinkEvent::SnapshotEnd { hash, .. } => self.hash = Some(hash),
                LinkEvent::SnapshotBroken { why, .. } => self.broken = Some(why),
                LinkEvent::Message { bytes, .. } => self.messages.push(bytes.to_vec()),
                other => panic!("{other:?}"),
            }
        }
    }
}

fn pair() -> Net {
    let authority = authority(CLUSTER);
    Net::connected(vec![tls(&authority, 1), tls(&authority, 2)])
}

#[test]
fn a_large_snapshot_arrives_whole_and_messages_pass_it() {
    let total_bytes = 48 << 20;
    let mut net = pair();
    let snapshot = net.at(0).send_snapshot(id(2), "slot 7", total_bytes, made()).unwrap();
    assert_eq!(net.at(0).send_snapshot(id(2), "", 1, made()), Err(SendError::SnapshotUnderWay(id(2))));
    let mut taken = Taken::default();
    let (mut sent, mut behind_bytes_max) = (0_u64, 0);
    let mut sent_at = Vec::new();
    while taken.hash.is_none() {
        if sent == taken.messages.len() as u64 {
            // The next message leaves when the last one came.
            sent_at.push(taken.bytes);
            net.at(0).send(id(2), sent.to_le_bytes().to_vec()).unwrap();
            sent += 1;
        }
        net.step(Duration::from_millis(50));
        let before = taken.messages.len();
        taken.take(&mut net, 1);
        for at_bytes in &sent_at[before..taken.messages.len()] {
            behind_bytes_max = behind_bytes_max.max(taken.bytes - at_bytes);
        }
    }
    assert_eq!((taken.bytes, taken.total_bytes, taken.meta.as_slice()), (total_bytes, total_bytes, &b"slot 7"[..]));
    let mut whole = Vec::new();
    made().take(total_bytes).read_to_end(&mut whole).unwrap();
    assert_eq!(taken.hash, Some(*blake3::hash(&whole).as_bytes()));
    assert!(sent > 10, "{sent} messages went between the chunks");
    assert!(behind_bytes_max <= 2 << 20, "a message waited behind {behind_bytes_max} bytes");
    assert!(net.events[0].is_empty(), "not delivered before it is answered");
    net.at(1).answer_snapshot(id(1), snapshot, Ok(()));
    assert_eq!(net.wait(0, |_| true), LinkEvent::SnapshotDelivered { to: id(2), id: snapshot });
    // And another one, empty.
    let second = net.at(0).send_snapshot(id(2), "", 0, made()).unwrap();
    net.until(|net| net.events[1].iter().any(|e| matches!(e, LinkEvent::SnapshotEnd { .. })));
    net.at(1).answer_snapshot(id(1), second, Err("the disk is full; make room".to_owned()));
    let why = SnapshotFailure::Refused("the disk is full; make room".to_owned());
    assert_eq!(net.wait(0, |_| true), LinkEvent::SnapshotFailed { to: id(2), id: second, why });
}

#[test]
fn no_more_is_on_its_way_than_the_receiver_has_taken_and_a_window() {
    let mut net = pair();
    net.at(0).send_snapshot(id(2), "", 10 << 20, made()).unwrap();
    (0..100).for_each(|_| net.step(Duration::from_millis(2)));
    let came: usize =
        net.events[1].iter().map(|e| if let LinkEvent::SnapshotChunk { bytes, .. } = e { bytes.len() } else { 0 }).sum();
    assert_eq!(came, walras_peer_link::SNAPSHOT_WINDOW_BYTES);
    // Meanwhile messages pass.
    net.at(0).send(id(2), "alive").unwrap();
    assert_eq!(net.message(1).1, b"alive".to_vec());
    let mut taken = Taken::default();
    while taken.hash.is_none() {
        taken.take(&mut net, 1);
        net.step(Duration::from_millis(50));
        taken.take(&mut net, 1);
    }
    assert_eq!(taken.bytes, 10 << 20);
}

#[test]
fn a_source_that_fails_or_ends_early_breaks_the_snapshot_on_both_sides() {
    let fails = Box::new(Made { fails_at: 100_000, ..*made() });
    let short = Box::new(Made { ends_at: 100_000, ..*made() });
    for (source, text) in [(fails, "the disk is gone"), (short, "it ends after 100000 of 300000 bytes")] {
        let mut net = pair();
        let snapshot = net.at(0).send_snapshot(id(2), "", 300_000, source).unwrap();
        let failed = net.wait(0, |e| matches!(e, LinkEvent::SnapshotFailed { .. }));
        // The source that fails is asked for whole chunks, so it fails at the next one.
        let LinkEvent::SnapshotFailed { why: SnapshotFailure::Source(why), .. } = failed else { panic!("{failed:?}") };
        assert!(why.contains(text), "{why}");
        let broken = net.wait(1, |e| matches!(e, LinkEvent::SnapshotBroken { .. }));
        assert!(
            matches!(broken, LinkEvent::SnapshotBroken { id, why: SnapshotFailure::Source(_), .. } if id == snapshot),
            "{broken:?}"
        );
        // The link is as good as before.
        net.at(0).send_snapshot(id(2), "", 10, made()).unwrap();
        net.wait(1, |e| matches!(e, LinkEvent::SnapshotEnd { .. }));
    }
}

#[test]
fn a_source_may_have_nothing_at_hand() {
    let mut net = pair();
    net.at(0).send_snapshot(id(2), "", 400_000, Box::new(Made { fails_at: u64::MAX - 1, ..*made() })).unwrap();
    net.wait(1, |e| matches!(e, LinkEvent::SnapshotEnd { .. }));
}

#[test]
fn a_snapshot_that_is_cut_is_broken_on_both_sides() {
    let mut net = pair();
    let snapshot = net.at(0).send_snapshot(id(2), "", 10 << 20, made()).unwrap();
    net.wait(1, |e| matches!(e, LinkEvent::SnapshotChunk { .. }));
    let second = net.address(1);
    // The sender takes the receiver out and in again: the connection ends in between.
    net.introduce(0, &[]);
    net.introduce(0, &[(2, second)]);
    let failed = net.wait(0, |e| matches!(e, LinkEvent::SnapshotFailed { .. }));
    assert_eq!(failed, LinkEvent::SnapshotFailed { to: id(2), id: snapshot, why: SnapshotFailure::LinkLost });
    let broken = net.wait(1, |e| matches!(e, LinkEvent::SnapshotBroken { .. }));
    assert_eq!(broken, LinkEvent::SnapshotBroken { from: id(1), id: snapshot, why: SnapshotFailure::LinkLost });
    net.wait(1, |e| matches!(e, LinkEvent::Connected { .. }));
    assert!(!net.events[1].iter().any(|e| matches!(e, LinkEvent::SnapshotEnd { .. })));
}

#[test]
fn a_receiver_may_refuse_in_the_middle() {
    let mut net = pair();
    let snapshot = net.at(0).send_snapshot(id(2), "", 10 << 20, made()).unwrap();
    net.wait(1, |e| matches!(e, LinkEvent::SnapshotChunk { .. }));
    net.at(1).answer_snapshot(id(1), snapshot, Err("no room".to_owned()));
    net.wait(0, |e| matches!(e, LinkEvent::SnapshotFailed { why: SnapshotFailure::Refused(_), .. }));
    net.events[1].clear();
    net.at(0).send_snapshot(id(2), "", 10, made()).unwrap();
    net.wait(1, |e| matches!(e, LinkEvent::SnapshotEnd { .. }));
}

#[test]
fn injected_faults_hold_a_snapshot_which_goes_on_after_them() {
    for one_way in [
        LinkFaults { out: PathFaults::BLOCKED, ..LinkFaults::default() },
        LinkFaults { back: PathFaults::BLOCKED, ..LinkFaults::default() },
    ] {
        let mut configs = vec![plain(1), plain(2)];
        configs.iter_mut().for_each(|config| config.faults_allowed = true);
        let mut net = Net::connected(configs);
        net.at(0).send_snapshot(id(2), "", 2 << 20, made()).unwrap();
        let mut taken = Taken::default();
        while taken.bytes == 0 {
            net.step(Duration::from_millis(50));
            taken.take(&mut net, 1);
        }
        net.at(0).set_faults(id(2), one_way).unwrap();
        for _ in 0..50 {
            net.step(Duration::from_millis(2));
            taken.take(&mut net, 1);
        }
        assert!(taken.hash.is_none(), "two windows at most got through");
        net.at(0).set_faults(id(2), LinkFaults::default()).unwrap();
        while taken.hash.is_none() {
            net.step(Duration::from_millis(50));
            taken.take(&mut net, 1);
        }
        assert_eq!(taken.bytes, 2 << 20);
    }
}

/// A peer without TLS, written by hand, that sends what no replica would.
mod rogue {
    use super::*;
    use std::io::Write;
    use std::net::TcpStream;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let len = u32::try_from(payload.len() + 1).unwrap();
        [&len.to_le_bytes()[..], &[kind], payload].concat()
    }

    fn hello() -> Vec<u8> {
        let mut hello = b"wlrs".to_vec();
        hello.extend_from_slice(&walras_peer_link::LINK_VERSION.to_le_bytes());
        hello.push(walras_consensus::MESSAGE_VERSION);
        hello.extend_from_slice(&3_u16.to_le_bytes());
        hello.extend_from_slice(&11_u16.to_le_bytes());
        [CLUSTER, 2, 2].iter().for_each(|word| hello.extend_from_slice(&word.to_le_bytes()));
        frame(0, &hello)
    }

    /// What comes of these frames after a good greeting.
    fn after(frames: &[Vec<u8>]) -> Vec<LinkEvent> {
        let mut net = Net::new(vec![plain(1)]);
        net.introduce(0, &[(2, "127.0.0.1:1".parse().unwrap())]);
        let mut rogue = TcpStream::connect(net.address(0)).unwrap();
        rogue.write_all(&hello()).unwrap();
        net.wait(0, |e| matches!(e, LinkEvent::Connected { .. }));
        rogue.write_all(&frames.concat()).unwrap();
        let last = net.wait(0, |e| matches!(e, LinkEvent::Lost { .. } | LinkEvent::SnapshotEnd { .. }));
        net.events[0].push(last);
        std::mem::take(&mut net.events[0])
    }

    fn begin(total: u64) -> Vec<u8> {
        frame(5, &[&1_u32.to_le_bytes()[..], &total.to_le_bytes(), b"meta"].concat())
    }

    fn chunk(bytes: &[u8]) -> Vec<u8> {
        frame(6, &[&1_u32.to_le_bytes()[..], bytes].concat())
    }

    fn end(hash: [u8; 32]) -> Vec<u8> {
        frame(7, &[&1_u32.to_le_bytes()[..], &hash].concat())
    }

    #[test]
    fn a_damaged_snapshot_is_refused() {
        let right = *blake3::hash(b"abcdef").as_bytes();
        let events = after(&[begin(6), chunk(b"abc"), chunk(b"def"), end(right)]);
        assert!(matches!(events.last(), Some(LinkEvent::SnapshotEnd { .. })), "{events:?}");
        for frames in [
            [begin(6), chunk(b"abc"), chunk(b"dex"), end(right), frame(1, b"enough")],
            [begin(6), chunk(b"abc"), frame(3, b""), end(*blake3::hash(b"abc").as_bytes()), frame(1, b"enough")],
        ] {
            let events = after(&frames);
            let broken = events.iter().any(|e| matches!(e, LinkEvent::SnapshotBroken { why: SnapshotFailure::Damaged, .. }));
            assert!(broken && !events.iter().any(|e| matches!(e, LinkEvent::SnapshotEnd { .. })), "{events:?}");
        }
    }

    #[test]
    fn what_no_replica_would_send_ends_the_link() {
        let window = vec![0; walras_peer_link::SNAPSHOT_WINDOW_BYTES];
        for frames in [
            vec![frame(99, b"")],
            vec![frame(0, b"wlrs")],
            vec![hello()],
            vec![vec![0, 0, 0, 0, 0]],
            vec![u32::MAX.to_le_bytes().to_vec()],
            vec![begin(6), begin(6)],
            vec![begin(2), chunk(b"abc")],
            vec![begin(u64::MAX), chunk(&window), chunk(b"one too many")],
            vec![begin(2), chunk(b"")],
            vec![frame(1, &[0xff])],
        ] {
            let events = after(&frames);
            assert!(matches!(events.last(), Some(LinkEvent::Lost { why: LinkError::Frame(_), .. })), "{events:?}");
        }
    }

    #[test]
    fn answers_to_nothing_are_harmless() {
        let id = 5_u32.to_le_bytes();
        let frames = [
            frame(4, b""),
            frame(6, &[&id[..], b"x"].concat()),
            frame(7, &[&id[..], &[0; 32]].concat()),
            frame(8, &id),
            frame(9, &[id, u32::MAX.to_le_bytes()].concat()),
            frame(10, &[&id[..], &[1]].concat()),
            frame(1, b"that was all"),
        ];
        let events = after(&frames);
        let why = LinkError::RefusedByPeer("that was all".to_owned());
        assert_eq!(events, [LinkEvent::Lost { id: super::id(2), why }]);
    }
}
