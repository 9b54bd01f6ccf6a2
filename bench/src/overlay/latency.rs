//! Multicast on real sockets of this machine: by relays of the product, and by the same sender to each receiver itself.
//!
//! The overall latency of a message is the time from sending until the last receiver's socket has its first copy; its window is the
//! time from the first receiver to the last. A socket has a datagram when the kernel says that it came ([`Stamped`]): in a cloud each
//! receiver has a machine of its own, so the time in which a hundred are read here is in no figure.
//!
//! All relays share this machine's processors with the sender. With two of them the copies of a tree are sent one after the other, as
//! those of unicast are, and each relay receives and checks too, so nothing can be won here. Where each relay has a machine, relays work
//! at once.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use walras_feed::channel::Trees;
use walras_feed::sender::Packets;
use walras_relay::packet::{Header, Kind, Packet, PacketWriter};
use walras_relay::tree::Tree;
use walras_relay_link::socket::{Offload, Socket};
use walras_relay_link::{Layout, NodeCounts, RelayNode, SenderNode};

use super::Config;
use super::relay::{MESSAGE_BYTES, TREE, key};
use super::stamped::Stamped;
use crate::report::{Figure, Report, Unit};
use crate::statistics::Percentiles;

/// Messages in a second: with a hundred receivers and a hedge two processors are busy for half of the time.
const RATE_PER_S: u32 = 500;
/// From one message to the next.
const INTERVAL: Duration = Duration::from_millis(1_000 / RATE_PER_S as u64);
/// So long after a message was sent, receivers' sockets are read: it has come by then, and the next one is not sent yet.
const READ_AFTER: Duration = Duration::from_micros(1_200);
/// How long a relay waits for a packet, as the program does.
const WAIT: Duration = Duration::from_millis(5);
/// After the last message, those that are under way have so long to arrive.
const SETTLE: Duration = Duration::from_secs(2);

/// How messages travel in one run.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// As figures have it.
    name: &'static str,
    /// Nodes of each layer below the sender; the last are the receivers.
    layers: &'static [u32],
    /// Additional copies.
    hedge: u32,
    /// Relays do not sleep.
    spins: bool,
}

impl Way {
    const fn of(name: &'static str, layers: &'static [u32], hedge: u32) -> Self {
        Self { name, layers, hedge, spins: false }
    }

    const fn spinning(self) -> Self {
        Self { spins: true, ..self }
    }

    fn receivers(&self) -> u32 {
        self.layers.last().copied().unwrap_or_default()
    }

    /// Nodes that are no receivers.
    fn relays(&self) -> usize {
        self.layers.iter().rev().skip(1).map(|width| *width as usize).sum()
    }

    /// Whether each relay that spins has a core, and the sender too.
    fn fits(&self, cores: usize) -> bool {
        !self.spins || cores > self.relays()
    }

    /// The name of a figure.
    fn metric(&self, of: &str) -> String {
        match self.receivers() {
            1 => format!("socket_{}_{of}", self.name),
            count => format!("socket_{}_{of}_n{count}", self.name),
        }
    }
}

/// `one_layer` is the paper's tree for a hundred receivers.
const WAYS: [Way; 10] = [
    Way::of("unicast", &[20], 0),
    Way::of("latency", &[2, 4, 20], 0),
    Way::of("hedged", &[2, 4, 20], 1),
    Way::of("unicast", &[100], 0),
    Way::of("one_layer", &[10, 100], 0),
    Way::of("latency", &[3, 10, 100], 0),
    Way::of("hedged", &[3, 10, 100], 1),
    Way::of("spin_latency", &[3, 10, 100], 0).spinning(),
    Way::of("hop", &[1, 1], 0),
    Way::of("hop_spin", &[1, 1], 0).spinning(),
];
/// Receivers for which a tree is compared with unicast.
const COMPARED: [u32; 2] = [20, 100];

/// When each message was sent, and came.
struct Arrivals {
    receivers: usize,
    sent_ns: Vec<u64>,
    /// By message and receiver: when the first copy came.
    first_ns: Vec<Option<u64>>,
}

impl Arrivals {
    fn of(messages: usize, receivers: usize) -> Self {
        Self { receivers, sent_ns: Vec::with_capacity(messages), first_ns: vec![None; messages * receivers] }
    }

    /// A datagram came to a receiver.
    fn note(&mut self, place: usize, came_ns: u64, bytes: &[u8]) {
        // What is no packet was sent to learn whether the kernel stamps.
        let Some(packet) = Packet::of_own(bytes) else { return };
        let Some(message) = packet.header().packet.checked_sub(1) else { return };
        if let Some(first_ns) = self.first_ns.get_mut(message as usize * self.receivers + place) {
            *first_ns = Some(first_ns.map_or(came_ns, |before_ns| before_ns.min(came_ns)));
        }
    }

    fn is_whole(&self) -> bool {
        self.first_ns.iter().all(Option::is_some)
    }

    /// Without so many messages at the beginning, in which buffers are touched for the first time.
    fn run(&self, warm_up: usize) -> anyhow::Result<Run> {
        let (mut latencies_us, mut windows_us, mut missed) = (Vec::new(), Vec::new(), 0);
        for (sent_ns, came) in self.sent_ns.iter().zip(self.first_ns.chunks(self.receivers)).skip(warm_up) {
            let came: Option<Vec<u64>> = came.iter().copied().collect();
            let Some((first_ns, last_ns)) = came.and_then(|came| came.iter().min().copied().zip(came.iter().max().copied())) else {
                missed += 1;
                continue;
            };
            latencies_us.push(last_ns.saturating_sub(*sent_ns) as f64 / 1e3);
            windows_us.push((last_ns - first_ns) as f64 / 1e3);
        }
        let messages = latencies_us.len() + missed;
        ensure!(missed * 2 < messages, "{missed} of {messages} messages did not come to every receiver: is the machine busy?");
        let latency = Percentiles::of(latencies_us).context("a message came to every receiver")?;
        let window = Percentiles::of(windows_us).context("a message came to every receiver")?;
        Ok(Run { latency, window, messages, missed })
    }
}

/// What one run came to, in us.
struct Run {
    latency: Percentiles,
    window: Percentiles,
    /// Messages that count.
    messages: usize,
    /// Of these, those that some receiver does not have.
    missed: usize,
}

fn socket() -> anyhow::Result<Socket> {
    Socket::bind(([127, 0, 0, 1], 0).into(), WAIT, Offload::Segments).context("binding a node's socket on loopback")
}

/// The relays of a tree above these receivers.
fn relays(way: Way, tree: &Tree, receivers: &Stamped) -> anyhow::Result<(Layout, Vec<RelayNode>)> {
    let (_, widths) = way.layers.split_last().context("a tree has receivers")?;
    let (mut sockets, mut layers) = (Vec::new(), Vec::new());
    for (layer, width) in widths.iter().enumerate() {
        let mut addresses = Vec::new();
        for place in 0..*width {
            let socket = if way.spins { socket()?.spinning(WAIT) } else { socket()? };
            addresses.push(socket.address()?);
            sockets.push((layer, place, socket));
        }
        layers.push(addresses);
    }
    layers.push(receivers.addresses()?);
    let (hedge, trees) = (way.hedge, Trees::ONE);
    let layout = Layout { tree_number: TREE, hedge, tree: tree.clone(), layers, key: key(), trees, index: 0 };
    let nodes = layout.nodes();
    let mut relays = Vec::new();
    for (layer, place, socket) in sockets {
        let (relay, _) = layout.relay(layer, place)?;
        relays.push(RelayNode::new(socket, relay, key(), &nodes, 1));
    }
    Ok((layout, relays))
}

/// Passes packets on until it is over.
fn pass_on(mut node: RelayNode, is_over: &AtomicBool) -> anyhow::Result<NodeCounts> {
    while !is_over.load(Ordering::Relaxed) {
        node.step()?;
    }
    Ok(node.counts())
}

fn sleep_until(instant: Instant) {
    std::thread::sleep(instant.saturating_duration_since(Instant::now())); // pause: the load is paced
}

/// Sends messages at the rate, and reads what came to the receivers in between.
fn send(sender: &mut SenderNode, receivers: &mut Stamped, (messages, receiver_count): (usize, u32)) -> anyhow::Result<Arrivals> {
    let mut arrivals = Arrivals::of(messages, receiver_count as usize);
    let (mut packets, mut writer) = (Packets::default(), PacketWriter::default());
    let mut due = Instant::now();
    for packet in 1..=messages as u64 {
        // One that is late does not bring the next ones together.
        due = Instant::now().max(due + INTERVAL);
        sleep_until(due);
        packets.clear();
        ensure!(writer.push(&[0x77; MESSAGE_BYTES]), "a message fits");
        let sent_ns = walras_access::now().0;
        let (kind, first) = (Kind::Data, packet);
        let header = Header { kind, count: 1, channel: 1, tree: TREE, packet, first, sent_ns, release_ns: 0 };
        packets.push(&header, &mut writer, &key());
        arrivals.sent_ns.push(sent_ns);
        sender.send(&packets)?;
        sleep_until(due + READ_AFTER);
        receivers.drain(|place, came_ns, bytes| arrivals.note(place, came_ns, bytes))?;
    }
    let ended = Instant::now();
    while !arrivals.is_whole() && ended.elapsed() < SETTLE {
        std::thread::sleep(Duration::from_millis(1)); // pause: what is under way arrives
        receivers.drain(|place, came_ns, bytes| arrivals.note(place, came_ns, bytes))?;
    }
    ensure!(sender.lost() == 0, "the sender's own system did not take {} packets", sender.lost());
    Ok(arrivals)
}

/// One run.
fn measured(way: Way, messages: usize) -> anyhow::Result<Run> {
    let tree = Tree::of_layers(way.layers.to_vec()).context("a tree of these layers")?;
    let mut receivers = Stamped::open(way.receivers())?;
    let (layout, relays) = relays(way, &tree, &receivers)?;
    let mut sender = SenderNode::new(socket()?, &tree, way.hedge, &layout.nodes());
    let is_over = AtomicBool::new(false);
    let arrivals = std::thread::scope(|scope| {
        let is_over = &is_over;
        let running: Vec<_> = relays.into_iter().map(|node| scope.spawn(move || pass_on(node, is_over))).collect();
        let arrivals = send(&mut sender, &mut receivers, (messages, way.receivers()));
        is_over.store(true, Ordering::Relaxed);
        for relay in running {
            let counts = relay.join().expect("a relay does not panic")?;
            ensure!(counts.others + counts.forged + counts.malformed == 0, "a relay refused what was sent: {counts:?}");
        }
        arrivals
    })?;
    arrivals.run(messages / 10)
}

/// The rounds of one way, in us.
#[derive(Default)]
struct Rounds {
    p50: Vec<f64>,
    p99: Vec<f64>,
    window_p50: Vec<f64>,
    window_p99: Vec<f64>,
}

impl Rounds {
    fn add(&mut self, run: &Run) {
        self.p50.push(run.latency.p50);
        self.p99.push(run.latency.p99);
        self.window_p50.push(run.window.p50);
        self.window_p99.push(run.window.p99);
    }
}

/// The figures of one way.
fn figures(way: Way, rounds: &Rounds, report: &mut Report) {
    let mut all = vec![("p50_us", &rounds.p50), ("p99_us", &rounds.p99)];
    if way.receivers() > 1 {
        all.push(("window_p50_us", &rounds.window_p50));
        report.samples(way.metric("window_p99_us"), rounds.window_p99.clone());
    }
    for (of, samples) in all {
        let median = report.samples(way.metric(of), samples.clone());
        report.figure(Figure::new(way.metric(of), median, Unit::Us));
    }
}

/// How many times longer something takes than something else of the same round.
fn ratio(metric: String, ours: &[f64], theirs: &[f64], report: &mut Report) {
    let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    let median = report.samples(metric.clone(), ratios);
    report.figure(Figure::new(metric, median, Unit::Ratio));
}

pub(super) fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let ways: Vec<Way> = WAYS.into_iter().filter(|way| way.fits(cores)).collect();
    let messages = usize::try_from(2 * config.load_ms * u64::from(RATE_PER_S) / 1_000)?;
    let mut rounds: Vec<Rounds> = ways.iter().map(|_| Rounds::default()).collect();
    let (mut sent, mut missed) = (0, 0);
    for round in 1..=config.rounds {
        eprintln!("  multicast on sockets, round {round}:");
        for (way, rounds) in ways.iter().zip(&mut rounds) {
            let run = measured(*way, messages).with_context(|| format!("multicast on sockets, {way:?}"))?;
            (sent, missed) = (sent + run.messages, missed + run.missed);
            let Run { latency: Percentiles { p50, p99, .. }, window, missed, .. } = &run;
            eprintln!(
                "    {:?}, hedge {}: the last receiver after {p50:.0} us (p99 {p99:.0}), window {:.0} us, {missed} missed",
                way.layers, way.hedge, window.p50
            );
            rounds.add(&run);
        }
    }
    for (way, rounds) in ways.iter().zip(&rounds) {
        figures(*way, rounds, report);
    }
    let of = |name: &str, receivers: u32| {
        let mut all = ways.iter().zip(&rounds);
        all.find(|(way, _)| way.name == name && way.receivers() == receivers).map(|(_, rounds)| rounds)
    };
    for n in COMPARED {
        let [Some(unicast), Some(tree), Some(hedged)] = ["unicast", "latency", "hedged"].map(|name| of(name, n)) else { continue };
        ratio(format!("socket_tree_vs_unicast_n{n}"), &tree.p50, &unicast.p50, report);
        ratio(format!("socket_hedged_p99_ratio_n{n}"), &hedged.p99, &tree.p99, report);
        ratio(format!("socket_hedged_window_p99_ratio_n{n}"), &hedged.window_p99, &tree.window_p99, report);
        if let Some(one_layer) = of("one_layer", n) {
            ratio(format!("socket_one_layer_vs_unicast_n{n}"), &one_layer.p50, &unicast.p50, report);
        }
    }
    let share = 100.0 * missed as f64 / sent.max(1) as f64;
    report.figure(Figure::new("socket_missed_percent", share, Unit::PercentWrong));
    report.check(
        "sockets: relays refused nothing of what was sent, and passed it on to every receiver but for what is counted as missed",
    );
    report.note(format!(
        "socket_*: {RATE_PER_S} messages of {MESSAGE_BYTES} bytes a second on loopback, from sending until the last receiver's socket has \
         the first copy, as the kernel says; all nodes share {cores} processors, so relays work one after the other, which machines of \
         their own do at once: compare the ratios with tree_vs_unicast_n100, which is simulated. Trees [2, 4, 20] and [3, 10, 100], \
         one_layer [10, 100]; hedged: one additional copy; hop: one relay and one receiver; spin: the relays spin. Published for a \
         hundred machines in a cloud (Jasper, figures 7 and 8, p50 and p99 in us): unicast 254 and 466, tree 129 and 199, hedge 1 over \
         hedge 0 199 over 401 at p99, windows at p99 357 without a hedge and 154 with one"
    ));
    for way in WAYS.into_iter().filter(|way| !way.fits(cores)) {
        let (metric, needed) = (way.metric("p50_us"), way.relays() + 1);
        report.note(format!(
            "{metric} is missing: it needs {needed} processors, one for each relay that spins and one for the sender"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn packet(number: u64) -> Vec<u8> {
        let (mut writer, mut bytes) = (PacketWriter::default(), Vec::new());
        assert!(writer.push(&[1; MESSAGE_BYTES]));
        let (kind, first) = (Kind::Data, number);
        let header = Header { kind, count: 1, channel: 1, tree: TREE, packet: number, first, sent_ns: 1, release_ns: 0 };
        writer.finish(&header, &key(), &mut bytes);
        bytes
    }

    #[test]
    fn a_messages_latency_is_that_of_the_last_first_copy() {
        let mut arrivals = Arrivals::of(4, 2);
        arrivals.sent_ns = vec![1_000, 10_000, 20_000, 30_000];
        for (number, place, came_ns) in [
            (1, 0, 1_000_000),
            (1, 1, 1_000_000),
            (2, 0, 12_000),
            (2, 1, 15_000),
            (2, 1, 99_000),
            (3, 0, 24_000),
            (3, 0, 23_000),
            (3, 1, 21_000),
            (4, 1, 31_000),
        ] {
            arrivals.note(place, came_ns, &packet(number));
        }
        arrivals.note(0, 1, &[0]);
        arrivals.note(0, 1, &packet(5));
        assert!(!arrivals.is_whole());
        let run = arrivals.run(1).unwrap();
        assert_eq!((run.messages, run.missed), (3, 1), "the fourth did not come to the first receiver");
        assert_eq!((run.latency.p50, run.latency.max), (3.0, 5.0));
        assert_eq!((run.window.p50, run.window.max), (2.0, 3.0));
        arrivals.note(0, 33_000, &packet(4));
        assert!(arrivals.is_whole());
        let mut none = Arrivals::of(2, 1);
        none.sent_ns = vec![1, 2];
        assert!(none.run(0).is_err());
    }

    /// Every receiver gets everything by every way, also by relays that spin.
    #[test]
    fn all_ways_reach_all_receivers() {
        let config = Config {
            rounds: 1,
            load_ms: 20,
            commands: 0,
            is_full: false,
            walras: PathBuf::new(),
            jasper: PathBuf::new(),
            scratch: PathBuf::new(),
        };
        let mut report = Report::begin("overlay");
        run(&config, &mut report).unwrap();
        let value = |metric: &str| report.figures().iter().find(|figure| figure.metric == metric).map(|figure| figure.value);
        for metric in ["socket_unicast_p50_us_n20", "socket_latency_p50_us_n100", "socket_hedged_p99_us_n100", "socket_hop_p50_us"]
        {
            assert!(value(metric) > Some(0.0), "{metric}");
        }
        for n in COMPARED {
            assert!(value(&format!("socket_tree_vs_unicast_n{n}")) > Some(0.0), "{n} receivers");
            assert!(value(&format!("socket_hedged_p99_ratio_n{n}")) > Some(0.0), "{n} receivers");
        }
        assert!(value("socket_latency_window_p50_us_n100") > Some(0.0));
        assert!(value("socket_missed_percent").is_some());
    }
}
