//! One relay on one core with ten children, next to a plain relay of `recvmmsg` and `sendmmsg` which checks nothing.
//!
//! Both get the same packets, of one message of 466 bytes each, faster than they can pass them on. What a relay passes on in a second
//! is the figure. The children's sockets are there, and nobody reads them: what they have no room for the kernel drops, alike for both.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use walras_relay::packet::{Header, Kind, PacketWriter, TreeKey};
use walras_relay::relay::{Relay, RelaySettings};
use walras_relay::tree::Tree;
use walras_relay_link::RelayNode;
use walras_relay_link::socket::{Offload, Outgoing, Received, Socket};

use super::Config;
use crate::report::{Figure, PeerFigure, Report, Unit};

pub(super) const FAN_OUT: u32 = 10;
pub(super) const MESSAGE_BYTES: usize = 466;
pub(super) const TREE: u32 = 1;
const WAIT: Duration = Duration::from_millis(20);
/// Times as many packets as the plain relay: where the kernel cuts in software, and where receivers take joined datagrams.
const BARS: [f64; 2] = [2.8, 7.0];
/// Packets that a relay on one core passes on in a second, where the kernel cuts in software, and where nothing is cut (claim J16).
const RATE_BARS: [f64; 2] = [250_000.0, 500_000.0];
/// With one additional copy a relay sends twice as much, so it passes on half as many packets.
const HEDGED_BAR: f64 = 0.5;
/// Packets that the load sends at once.
const BURST: u64 = 32;

pub(super) fn key() -> TreeKey {
    TreeKey::new([8; 32])
}

fn socket(offload: Offload) -> anyhow::Result<Socket> {
    Socket::bind(SocketAddr::from(([127, 0, 0, 1], 0)), WAIT, offload).context("binding a socket on loopback")
}

/// Sends packets with consecutive numbers until it is stopped.
fn load(to: SocketAddr, is_over: &AtomicBool) -> anyhow::Result<()> {
    let socket = socket(Offload::Segments)?;
    let mut outgoing = Outgoing::to(&[to], &socket);
    let (mut writer, mut bytes, mut packet) = (PacketWriter::default(), Vec::new(), 0_u64);
    let message = [0x77; MESSAGE_BYTES];
    while !is_over.load(Ordering::Relaxed) {
        bytes.clear();
        for number in 0..BURST {
            packet += 1;
            ensure!(writer.push(&message), "a message fits");
            let header = Header {
                kind: Kind::Data,
                count: 1,
                channel: 1,
                tree: TREE,
                packet,
                first: packet,
                sent_ns: packet,
                release_ns: 0,
            };
            writer.finish(&header, &key(), &mut bytes);
            outgoing.add(0, number as u32);
        }
        let each = bytes.len() / BURST as usize;
        outgoing.flush(&socket, |number| &bytes[number as usize * each..(number as usize + 1) * each])?;
    }
    Ok(())
}

/// Packets that a relay passes on in a second under this load.
fn rate(config: &Config, to: SocketAddr, mut step: impl FnMut() -> anyhow::Result<usize>) -> anyhow::Result<f64> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sends = scope.spawn(|| load(to, &is_over));
        let result = (|| {
            let warm = Instant::now();
            while warm.elapsed() < Duration::from_millis(config.load_ms / 4) {
                step()?;
            }
            let (began, mut count) = (Instant::now(), 0);
            while began.elapsed() < Duration::from_millis(config.load_ms) {
                count += step()?;
            }
            Ok(count as f64 / began.elapsed().as_secs_f64())
        })();
        is_over.store(true, Ordering::Relaxed);
        sends.join().expect("the load does not panic")?;
        result
    })
}

/// The relay of the product.
fn ours(config: &Config, children: &[SocketAddr], hedge: u32) -> anyhow::Result<f64> {
    // With a hedge the relay has a sibling, and sends to its children too.
    let tree = Tree::new(2, 1 + hedge, FAN_OUT * (1 + hedge)).context("a tree of one relay and its siblings")?;
    let settings = RelaySettings { layer: 0, place: 0, tree: TREE, hedge, packets_remembered: 1 << 16, channels_max: 4 };
    let socket = socket(Offload::Segments)?;
    let (address, relay) = (socket.address()?, Relay::new(tree, settings));
    // Its siblings get nothing: it is first in its layer.
    let siblings = std::iter::repeat_n(address, 1 + hedge as usize);
    let nodes: Vec<SocketAddr> = siblings.chain(children.iter().copied()).collect();
    let mut node = RelayNode::new(socket, relay, key(), &nodes, 1);
    let mut forwarded = 0;
    let rate = rate(config, address, || {
        node.step()?;
        Ok((node.counts().first - std::mem::replace(&mut forwarded, node.counts().first)) as usize)
    })?;
    let counts = node.counts();
    ensure!(counts.first > 0 && counts.copies + counts.others + counts.forged + counts.malformed == 0, "{counts:?}");
    Ok(rate)
}

/// A relay that receives and sends in batches, and looks at nothing.
fn plain(config: &Config, children: &[SocketAddr]) -> anyhow::Result<f64> {
    let socket = socket(Offload::None)?;
    let (mut received, mut outgoing) = (Received::by(&socket), Outgoing::to(children, &socket));
    let address = socket.address()?;
    rate(config, address, || {
        let count = received.receive(&socket)?;
        for packet in 0..count as u32 {
            (0..FAN_OUT).for_each(|child| outgoing.add(child, packet));
        }
        outgoing.flush(&socket, |packet| received.packet(packet as usize))?;
        Ok(count)
    })
}

pub(super) fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let offloads = [(Offload::None, ""), (Offload::Segments, "_joined")];
    for ((offload, suffix), (bar, rate_bar)) in offloads.into_iter().zip(BARS.into_iter().zip(RATE_BARS)) {
        let mut sinks = Vec::new();
        for _ in 0..2 * FAN_OUT {
            sinks.push(socket(offload)?);
        }
        let children = sinks.iter().map(Socket::address).collect::<Result<Vec<_>, _>>()?;
        let mut samples: [Vec<f64>; 3] = [const { Vec::new() }; 3];
        for _ in 0..config.rounds {
            let children = &children[..FAN_OUT as usize];
            samples[0].push(plain(config, children)?);
            samples[1].push(ours(config, children, 0)?);
            samples[2].push(ours(config, &sinks_of(&sinks)?, 1)?);
        }
        let [plain, ours, hedged] = samples;
        let ratios = |ours: &[f64], theirs: &[f64]| ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect::<Vec<_>>();
        let (over_plain, of_unhedged) = (ratios(&ours, &plain), ratios(&hedged, &ours));
        let plain = report.samples(format!("sendmmsg{suffix}_per_s"), plain);
        let peer = |how| PeerFigure::new("recvmmsg/sendmmsg", plain, Unit::PerS, how);
        let same = "the same load, children and run; no seal is checked and no copy dropped";
        let rate = report.samples(format!("relay{suffix}_per_s"), ours);
        report.figure(Figure::new(format!("relay{suffix}_per_s"), rate, Unit::PerS).against(peer(same)).bar(rate_bar));
        let rate = report.samples(format!("relay{suffix}_hedged_per_s"), hedged);
        report.figure(Figure::new(format!("relay{suffix}_hedged_per_s"), rate, Unit::PerS));
        let share = report.samples(format!("relay{suffix}_hedged_vs_plain"), of_unhedged);
        report.figure(Figure::new(format!("relay{suffix}_hedged_vs_plain"), share, Unit::Fraction).bar(HEDGED_BAR));
        let ratio = report.samples(format!("relay{suffix}_vs_sendmmsg"), over_plain);
        report.figure(Figure::new(format!("relay{suffix}_vs_sendmmsg"), ratio, Unit::TimesFaster).bar(bar));
    }
    report.check("the relay passed on first copies only, and refused nothing of its load");
    report.note(
        "fan-out 10, messages of 466 bytes, one in a packet, on loopback; relay: children take single datagrams, so the kernel cuts in \
         software; relay_joined: children take joined ones, so nothing is cut, as with a device that segments; the load is sent on \
         another core",
    );
    Ok(())
}

fn sinks_of(sinks: &[Socket]) -> anyhow::Result<Vec<SocketAddr>> {
    Ok(sinks.iter().map(Socket::address).collect::<Result<Vec<_>, _>>()?)
}
