//! What a relay loses below its rate while its children read. Each child counts its packets.
//!
//! First the load is more than the relay passes on, which gives its rate on this machine. Then the load is four fifths of that
//! rate, sent evenly.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use walras_relay::packet::{Header, Kind, PacketWriter};
use walras_relay::relay::{Relay, RelaySettings};
use walras_relay::tree::Tree;
use walras_relay_link::RelayNode;
use walras_relay_link::socket::{Offload, Outgoing, Received, Socket};

use super::Config;
use super::relay::{FAN_OUT, MESSAGE_BYTES, TREE, key};
use crate::report::{Figure, Report, Unit};

const WAIT: Duration = Duration::from_millis(5);
/// After the load ends, packets under way have this long to arrive.
const SETTLE: Duration = Duration::from_millis(200);
/// Packets that are sent at once: as many as a venue sends in a busy moment, and no more than a relay takes in one call.
const AT_ONCE: u64 = 8;
/// The load, in percent of the rate.
const SHARE_PERCENT: f64 = 80.0;

/// What one run came to.
struct Counted {
    sent: u64,
    passed_on: u64,
    /// Packets that arrived at all children together.
    came: u64,
    /// From the begin of the load until the relay passed its last packet on.
    seconds: f64,
}

fn socket(offload: Offload) -> anyhow::Result<Socket> {
    Socket::bind(SocketAddr::from(([127, 0, 0, 1], 0)), WAIT, offload).context("binding a socket on loopback")
}

/// Sends for so long, at a rate or as fast as it goes. Gives the number of packets.
fn send(to: SocketAddr, per_s: Option<f64>, time: Duration) -> anyhow::Result<u64> {
    let socket = socket(Offload::Segments)?;
    let mut outgoing = Outgoing::to(&[to], &socket);
    let (mut writer, mut bytes, mut packet) = (PacketWriter::default(), Vec::new(), 0_u64);
    let (message, began) = ([0x77; MESSAGE_BYTES], Instant::now());
    while began.elapsed() < time {
        if per_s.is_some_and(|per_s| packet as f64 > began.elapsed().as_secs_f64() * per_s) {
            // It sleeps, since the relay and the children may need this core. The next packets are due by then.
            std::thread::sleep(Duration::from_micros(50)); // pause: the load is paced
            continue;
        }
        bytes.clear();
        for number in 0..AT_ONCE {
            packet += 1;
            ensure!(writer.push(&message), "a message fits");
            let (kind, first) = (Kind::Data, packet);
            let header = Header { kind, count: 1, channel: 1, tree: TREE, packet, first, sent_ns: packet, release_ns: 0 };
            writer.finish(&header, &key(), &mut bytes);
            outgoing.add(0, number as u32);
        }
        let each = bytes.len() / AT_ONCE as usize;
        outgoing.flush(&socket, |number| &bytes[number as usize * each..(number as usize + 1) * each])?;
    }
    ensure!(outgoing.lost() == 0 || per_s.is_none(), "the load's own system did not take {} packets", outgoing.lost());
    Ok(packet - outgoing.lost())
}

/// One relay, ten children that read, and a load.
fn counted(offload: Offload, per_s: Option<f64>, time: Duration) -> anyhow::Result<Counted> {
    let sinks = (0..FAN_OUT).map(|_| socket(offload)).collect::<anyhow::Result<Vec<_>>>()?;
    let children = sinks.iter().map(Socket::address).collect::<Result<Vec<_>, _>>()?;
    let settings = RelaySettings { layer: 0, place: 0, tree: TREE, hedge: 0, packets_remembered: 1 << 16, channels_max: 4 };
    let relay = Relay::new(Tree::new(2, 1, FAN_OUT).context("a tree of one relay")?, settings);
    let receives = socket(Offload::Segments)?;
    let address = receives.address()?;
    let nodes: Vec<SocketAddr> = [address].into_iter().chain(children).collect();
    let mut node = RelayNode::new(receives, relay, key(), &nodes, 1);
    let (is_over, came) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (is_over, came) = (&is_over, &came);
        let readers: Vec<_> = sinks
            .iter()
            .map(|sink| {
                scope.spawn(move || -> anyhow::Result<()> {
                    let mut received = Received::by(sink);
                    while !is_over.load(Ordering::Relaxed) {
                        came.fetch_add(received.receive(sink)? as u64, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        let relays = scope.spawn(move || -> anyhow::Result<(u64, f64)> {
            let (began, mut passed_on, mut seconds) = (Instant::now(), 0, 0.0);
            while !is_over.load(Ordering::Relaxed) {
                node.step()?;
                if node.counts().first > passed_on {
                    (passed_on, seconds) = (node.counts().first, began.elapsed().as_secs_f64());
                }
            }
            Ok((passed_on, seconds))
        });
        let sent = send(address, per_s, time);
        std::thread::sleep(SETTLE); // pause: what is under way arrives
        is_over.store(true, Ordering::Relaxed);
        let (passed_on, seconds) = relays.join().expect("the relay does not panic")?;
        readers.into_iter().try_for_each(|reader| reader.join().expect("a child does not panic"))?;
        Ok(Counted { sent: sent?, passed_on, came: came.load(Ordering::Relaxed), seconds })
    })
}

pub(super) fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let time = Duration::from_millis(config.load_ms);
    let (mut rates, mut losses) = (Vec::new(), Vec::new());
    for round in 1..=config.rounds {
        let full = counted(Offload::Segments, None, time)?;
        ensure!(full.passed_on > 0, "the relay passed nothing on");
        let rate = full.passed_on as f64 / full.seconds;
        let share = Some(rate * SHARE_PERCENT / 100.0);
        let Counted { sent, passed_on, came, .. } = counted(Offload::Segments, share, time)?;
        ensure!(came <= sent * u64::from(FAN_OUT), "{came} packets came of {sent} to {FAN_OUT} children each");
        let lost = 100.0 - 100.0 * came as f64 / (sent * u64::from(FAN_OUT)).max(1) as f64;
        eprintln!(
            "  children that read, round {round}: {rate:.0} packets/s; at {SHARE_PERCENT} % {passed_on} of {sent} passed on, \
             {lost:.4} % of the copies lost"
        );
        rates.push(rate);
        losses.push(lost);
    }
    let rate = report.samples("relay_read_per_s", rates);
    report.figure(Figure::new("relay_read_per_s", rate, Unit::PerS));
    let lost = report.samples("relay_lost_at_80_percent", losses);
    report.figure(Figure::new("relay_lost_at_80_percent", lost, Unit::PercentWrong).bar(0.0));
    report.note(
        "relay_read_per_s: as relay_joined_per_s, with ten children that read and count, in threads that share the machine's cores \
         with the relay and the load; relay_lost_at_80_percent: the share of their copies that did not arrive, at four fifths of that \
         rate, sent 8 packets at a time",
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_passed_on_and_read_is_counted() {
        for per_s in [None, Some(2_000.0)] {
            let Counted { sent, passed_on, came, .. } = counted(Offload::Segments, per_s, Duration::from_millis(40)).unwrap();
            assert!(sent > 0 && (1..=sent).contains(&passed_on), "{passed_on} of {sent}");
            assert!((1..=passed_on * u64::from(FAN_OUT)).contains(&came), "{came} of {passed_on} packets at {FAN_OUT} children");
        }
    }
}
