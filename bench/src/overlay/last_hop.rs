//! The last hop where a participant's program is not in the gateway's process: model 2 of the Jasper paper (table 7), over a socket.
//!
//! The product's outlet holds messages and sends each to the participant at its release time. What is measured is the time from the
//! release time until the kernel has it in the participant's socket, and until the participant's program has read it: one that sleeps
//! until something comes, and one that spins. The jitter is the 90th percentile less the median, as in the paper.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use walras_fair_access::release::HoldSettings;
use walras_feed::channel::Trees;
use walras_feed::outlet::{Outlet, OutletSettings};
use walras_feed::sender::Packets;
use walras_relay::packet::{Header, Kind, PACKET_BYTES_MAX, Packet, PacketWriter, TreeKey};
use walras_relay_link::OutletNode;
use walras_relay_link::socket::{Offload, Socket};

use super::Config;
use super::relay::{MESSAGE_BYTES, TREE, key};
use super::stamped::{Stamped, quantile};
use crate::report::{Figure, Report, Unit};

/// The paper's.
const RATE_PER_S: u64 = 8_000;
const INTERVAL_NS: u64 = 1_000_000_000 / RATE_PER_S;
/// The number of the gateway's own tree.
const OWN_TREE: u32 = TREE + 1;
const OWN_KEY: [u8; 32] = [9; 32];
/// The first message is released so long after the outlet began to take them, and later by so much for each.
const BEGIN_NS: u64 = 20_000_000;
const TAKE_NS: u64 = 20_000;
/// The last message is read within this.
const SETTLE: Duration = Duration::from_secs(2);

fn own_key() -> TreeKey {
    TreeKey::new(OWN_KEY)
}

/// How late each message came, in us after its release time.
#[derive(Default)]
struct Hops {
    socket_us: Vec<f64>,
    read_us: Vec<f64>,
}

/// An outlet that holds so many messages, one for each interval.
fn filled(count: u64) -> anyhow::Result<Outlet> {
    let mut outlet = Outlet::new(OutletSettings {
        tree: TREE,
        trees: Trees::ONE,
        own_tree: OWN_TREE,
        key: own_key(),
        packets_remembered: 1 << 12,
        channels_max: 1,
        hold: HoldSettings { held_max: usize::try_from(count)?, wait_max_ns: u64::MAX },
        packet_bytes: PACKET_BYTES_MAX,
        rewind_bytes_max: 1 << 20,
        rewind_total_bytes_max: 1 << 20,
        recall: None,
    });
    let (mut writer, mut bytes) = (PacketWriter::default(), Vec::new());
    let now_ns = walras_access::now().0;
    let begin_ns = now_ns + BEGIN_NS + TAKE_NS * count;
    for packet in 1..=count {
        ensure!(writer.push(&[0x77; MESSAGE_BYTES]), "a message fits");
        let (kind, first, release_ns) = (Kind::Data, packet, begin_ns + packet * INTERVAL_NS);
        let header = Header { kind, count: 1, channel: 1, tree: TREE, packet, first, sent_ns: now_ns, release_ns };
        bytes.clear();
        writer.finish(&header, &key(), &mut bytes);
        outlet.packet(now_ns, &Packet::decode(&bytes, &key())?)?;
    }
    Ok(outlet)
}

/// Sends each message when it is due, as the gateway does: it spins before a release.
fn release(mut outlet: Outlet, node: &mut OutletNode, count: u64) -> anyhow::Result<()> {
    let (mut packets, mut sent) = (Packets::default(), 0);
    while sent < count {
        packets.clear();
        outlet.release(walras_access::now().0, &mut packets);
        if packets.count() == 0 {
            std::hint::spin_loop();
            continue;
        }
        sent += packets.count() as u64;
        node.send(&packets)?;
    }
    Ok(())
}

/// The participant's program.
fn participant(mut receiver: Stamped, count: u64, spins: bool, is_over: &AtomicBool) -> anyhow::Result<Hops> {
    let mut hops = Hops::default();
    while (hops.socket_us.len() as u64) < count && !is_over.load(Ordering::Relaxed) {
        if !spins {
            receiver.wait()?;
        }
        receiver.drain(|_, came_ns, bytes| {
            let read_ns = walras_access::now().0;
            let Ok(packet) = Packet::decode(bytes, &own_key()) else { return };
            let after_us = |at_ns: u64| at_ns.saturating_sub(packet.header().release_ns) as f64 / 1e3;
            hops.socket_us.push(after_us(came_ns));
            hops.read_us.push(after_us(read_ns));
        })?;
    }
    Ok(hops)
}

/// One run.
fn measured(count: u64, spins: bool) -> anyhow::Result<Hops> {
    let receiver = Stamped::open(1)?;
    let from = Socket::bind(([127, 0, 0, 1], 0).into(), SETTLE, Offload::Segments).context("binding the gateway's socket")?;
    let mut node = OutletNode::new(from, &receiver.addresses()?);
    let outlet = filled(count)?;
    let is_over = AtomicBool::new(false);
    let hops = std::thread::scope(|scope| {
        let is_over = &is_over;
        let reads = scope.spawn(move || participant(receiver, count, spins, is_over));
        let released = release(outlet, &mut node, count);
        let ended = Instant::now();
        while released.is_ok() && !reads.is_finished() && ended.elapsed() < SETTLE {
            std::thread::sleep(Duration::from_millis(1)); // pause: the participant reads the last messages
        }
        is_over.store(true, Ordering::Relaxed);
        let hops = reads.join().expect("the participant does not panic")?;
        released.map(|()| hops)
    })?;
    let came = hops.socket_us.len() as u64;
    ensure!(came <= count, "{came} messages came of {count}");
    ensure!(came * 2 > count, "{came} messages came of {count}: is the machine busy?");
    Ok(hops)
}

/// The medians and the jitters of some rounds.
#[derive(Default)]
struct Rounds {
    p50_us: Vec<f64>,
    jitter_us: Vec<f64>,
}

impl Rounds {
    /// Without the first tenth of the samples, in which buffers are touched for the first time.
    fn add(&mut self, mut samples_us: Vec<f64>) {
        samples_us.drain(..samples_us.len() / 10);
        samples_us.sort_by(f64::total_cmp);
        let p50_us = quantile(&samples_us, 50);
        self.p50_us.push(p50_us);
        self.jitter_us.push(quantile(&samples_us, 90) - p50_us);
    }

    fn report(self, name: &str, report: &mut Report) {
        for (of, samples) in [("p50_us", self.p50_us), ("jitter_us", self.jitter_us)] {
            let metric = format!("socket_model_2_{name}{of}");
            let median = report.samples(metric.clone(), samples);
            report.figure(Figure::new(metric, median, Unit::Us));
        }
    }
}

pub(super) fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let count = (config.load_ms * RATE_PER_S / 1_000).max(10);
    let (mut socket, mut read, mut spin_read) = (Rounds::default(), Rounds::default(), Rounds::default());
    for round in 1..=config.rounds {
        let Hops { socket_us, read_us } = measured(count, false)?;
        socket.add(socket_us);
        read.add(read_us);
        // The gateway spins on one core, the participant on another one.
        if cores > 1 {
            spin_read.add(measured(count, true)?.read_us);
        }
        let last = |rounds: &Rounds| rounds.p50_us.last().copied().unwrap_or_default();
        let [in_socket, read, spin_read] = [&socket, &read, &spin_read].map(last);
        eprintln!(
            "  a participant behind a socket, round {round}: {in_socket:.1} us to its socket, {read:.1} to a program that sleeps, \
             {spin_read:.1} to one that spins"
        );
    }
    socket.report("", report);
    read.report("read_", report);
    if cores > 1 {
        spin_read.report("spin_read_", report);
    } else {
        report.note("socket_model_2_spin_read_* are missing: they need two processors");
    }
    report.note(format!(
        "socket_model_2_*: {RATE_PER_S} messages of {MESSAGE_BYTES} bytes a second from a leaf gateway's outlet to one participant over \
         loopback, from the release time until the kernel has them in the participant's socket; read: until a program that sleeps has \
         read them; spin_read: until one that spins has; jitter: p90 less p50. Published for a gateway and a participant on two machines \
         of a cloud (Jasper, table 7, model 2): about 50 us, jitter more than 10"
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each message comes once, not before its time, and is read after the kernel had it, by a program that sleeps and by one that spins.
    #[test]
    fn what_is_released_is_read_once() {
        for spins in [false, true] {
            let Hops { socket_us, read_us } = measured(40, spins).unwrap();
            assert!(socket_us.len() == read_us.len() && !socket_us.is_empty());
            // Where it had come before its time this would be 0.
            assert!(socket_us.iter().zip(&read_us).all(|(socket_us, read_us)| 0.0 < *socket_us && socket_us <= read_us));
        }
    }

    #[test]
    fn the_jitter_is_what_the_slower_ones_take_longer() {
        let mut rounds = Rounds::default();
        rounds.add((1..=11).map(f64::from).rev().collect());
        assert_eq!((rounds.p50_us, rounds.jitter_us), (vec![5.0], vec![4.0]), "11 is left out");
    }
}
