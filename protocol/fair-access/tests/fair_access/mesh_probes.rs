//! Probers that talk to each other in bytes, over links that delay, reorder and lose: from packets to corrected clocks.

#![allow(clippy::float_arithmetic, reason = "a simulation")]

use walras_event_queue::EventQueue;
use walras_fair_access::clock::{SlewLimits, VirtualClock};
use walras_fair_access::mesh::{
    CodedFilter, Coordinator, CoordinatorConfig, Half, NodeId, PROBE_BYTES, Probe, Prober, ProberConfig, ProberEffect, Schedule,
    SendProbe, Verdict,
};
use walras_mesh_sim::Random;

const NODES: usize = 9;
const WINDOW_NS: u64 = 1_000_000_000;
const EPOCH_NS: u64 = 1_800_000_000 * WINDOW_NS;

enum Event {
    Timer { node: usize, round: u64 },
    Arrives { from: usize, to: usize, bytes: [u8; PROBE_BYTES] },
    Close { window: u64 },
}

struct Net {
    random: Random,
    /// What is due, at the true time since `EPOCH_NS`.
    queue: EventQueue<Event>,
    clocks: Vec<(i64, f64)>,
    probers: Vec<Prober>,
    timer_rounds: Vec<u64>,
    coordinator: Coordinator,
    virtual_clocks: Vec<VirtualClock>,
    probes_lost: u64,
    refused: u64,
    synced_windows: u64,
}

impl Net {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let schedule = Schedule::rotating(NODES, 3, seed);
        let config = |node| ProberConfig {
            node: NodeId(node as u32),
            schedule,
            window_ns: WINDOW_NS,
            interval_ns: 10_000_000,
            spacing_ns: 30_000,
            filter: CodedFilter::default(),
        };
        let clocks = (0..NODES).map(|_| (random.between(-10e6, 10e6) as i64, random.between(-30e-6, 30e-6))).collect();
        let mut net = Self {
            random,
            queue: EventQueue::new(),
            clocks,
            probers: (0..NODES).map(|node| Prober::new(config(node))).collect(),
            timer_rounds: vec![0; NODES],
            coordinator: Coordinator::new(CoordinatorConfig::new(schedule, WINDOW_NS), EPOCH_NS / WINDOW_NS),
            virtual_clocks: (0..NODES).map(|_| VirtualClock::new(SlewLimits::default())).collect(),
            probes_lost: 0,
            refused: 0,
            synced_windows: 0,
        };
        for node in 0..NODES {
            net.queue.at(20_000_000, Event::Timer { node, round: 0 });
        }
        net.queue.at(WINDOW_NS + 50_000_000, Event::Close { window: EPOCH_NS / WINDOW_NS });
        net
    }

    fn local_ns(&self, node: usize, at_ns: u64) -> u64 {
        let (offset_ns, drift) = self.clocks[node];
        (EPOCH_NS + at_ns).wrapping_add_signed(offset_ns + (drift * at_ns as f64).round() as i64)
    }

    fn stamp_ns(&mut self, node: usize, at_ns: u64) -> u64 {
        let noise = self.random.normal(20.0).round() as i64;
        self.local_ns(node, at_ns).wrapping_add_signed(noise)
    }

    fn run(&mut self, until_ns: u64) {
        while let Some((at_ns, event)) = self.queue.pop_until(until_ns) {
            let mut effects = Vec::new();
            match event {
                // A stale timer: it was set again since.
                Event::Timer { node, round } if round != self.timer_rounds[node] => {}
                Event::Timer { node, .. } => {
                    let local_ns = self.local_ns(node, at_ns);
                    let next_ns = self.probers[node].on_timer(local_ns, &mut effects);
                    self.timer_rounds[node] += 1;
                    let round = self.timer_rounds[node];
                    self.queue.at(at_ns + next_ns.saturating_sub(local_ns).max(1_000), Event::Timer { node, round });
                    self.apply(node, at_ns, effects);
                }
                Event::Arrives { from, to, bytes } => {
                    let rx_ns = self.stamp_ns(to, at_ns);
                    let probe = Probe::decode(&bytes).unwrap();
                    self.probers[to].on_probe((NodeId(from as u32), 1), rx_ns, &probe, &mut effects);
                    self.apply(to, at_ns + 5_000, effects);
                }
                Event::Close { window } => {
                    let outcome = self.coordinator.close_window(window).unwrap();
                    assert!(outcome.newly_excluded.is_empty(), "{:?}", outcome.newly_excluded);
                    self.synced_windows += 1;
                    for (node, verdict) in outcome.verdicts.iter().enumerate() {
                        if let Verdict::Synced(line) = verdict {
                            let local_ns = self.local_ns(node, at_ns);
                            self.virtual_clocks[node].on_correction(local_ns, *line);
                            self.probers[node].on_correction(line);
                        }
                    }
                    self.queue.at(at_ns + WINDOW_NS, Event::Close { window: window + 1 });
                }
            }
        }
    }

    fn apply(&mut self, node: usize, at_ns: u64, effects: Vec<ProberEffect>) {
        for effect in effects {
            match effect {
                ProberEffect::Send(send) => self.send(node, at_ns, &send),
                // The first window is not whole: clocks were 10 ms apart.
                ProberEffect::Report(report) => self.refused += u64::from(self.coordinator.on_report(&report).is_err()),
            }
        }
    }

    fn send(&mut self, node: usize, at_ns: u64, send: &SendProbe) {
        let tx_ns = self.stamp_ns(node, at_ns);
        self.probers[node].on_sent(send, tx_ns);
        if self.random.unit() < 0.05 {
            self.probes_lost += 1;
            return;
        }
        let queue_ns = if self.random.unit() < 0.3 { -40_000.0 * self.random.unit().ln() } else { 0.0 };
        let to = send.to.0 as usize;
        self.queue.at(at_ns + 25_000 + queue_ns as u64, Event::Arrives { from: node, to, bytes: send.probe.encode() });
    }
}

#[test]
fn probers_over_lossy_links_bring_all_clocks_together() {
    let mut net = Net::new(1);
    net.run(5 * WINDOW_NS + 500_000_000);
    assert!(net.probes_lost > 1_000 && net.synced_windows == 5, "{} {}", net.probes_lost, net.synced_windows);
    assert_eq!(net.refused, 0);
    let at_ns = 5 * WINDOW_NS + 500_000_000;
    let truth_ns = net.local_ns(0, at_ns);
    for node in 0..NODES {
        let local_ns = net.local_ns(node, at_ns);
        let reading = net.virtual_clocks[node].read(local_ns).unwrap();
        let error_ns = reading.time_ns.abs_diff(truth_ns);
        assert!(error_ns <= 15 && error_ns <= reading.bound_ns, "node {node}: {error_ns} ns, {reading:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_readings() {
    let readings = |seed| {
        let mut net = Net::new(seed);
        net.run(2 * WINDOW_NS + 500_000_000);
        let at_ns = 2 * WINDOW_NS + 500_000_000;
        let locals: Vec<_> = (0..NODES).map(|node| net.local_ns(node, at_ns)).collect();
        net.virtual_clocks.iter_mut().zip(locals).map(|(clock, local_ns)| clock.read(local_ns)).collect::<Vec<_>>()
    };
    assert_eq!(readings(7), readings(7));
    assert_ne!(readings(7), readings(8));
}

/// Node 0 by itself.
fn alone() -> Prober {
    Prober::new(ProberConfig {
        node: NodeId(0),
        schedule: Schedule::rotating(NODES, 3, 1),
        window_ns: WINDOW_NS,
        interval_ns: 10_000_000,
        spacing_ns: 30_000,
        filter: CodedFilter::default(),
    })
}

/// Somebody who heard a node's requests, of this incarnation and of earlier ones, sends them again.
#[test]
fn requests_that_are_sent_again_take_no_stamps_from_those_that_are_asked() {
    const NOW: u64 = 77;
    let mut prober = alone();
    let mut ask = |incarnation, exchange, half, rx_ns| {
        let mut effects = Vec::new();
        prober.on_probe((NodeId(1), incarnation), rx_ns, &Probe::Ask { exchange, half }, &mut effects);
        effects.iter().for_each(|effect| {
            if let ProberEffect::Send(send) = effect {
                prober.on_sent(send, rx_ns + 5);
            }
        });
        effects.into_iter().find_map(|effect| match effect {
            ProberEffect::Send(SendProbe { probe: Probe::Answer { stamps, .. }, .. }) => Some(stamps),
            _ => None,
        })
    };
    // What earlier incarnations asked, as often as they were started.
    for incarnation in 1..7 {
        ask(incarnation, 4_000_000_000, Half::First, 10);
    }
    for exchange in 100..110_u32 {
        let at_ns = 1_000 * u64::from(exchange);
        let before = ask(NOW, exchange, Half::First, at_ns).unwrap();
        for copy in [exchange, exchange - 1, 3] {
            assert_eq!(ask(NOW, copy, Half::First, at_ns + 7), None, "exchange {copy} during {exchange}");
        }
        assert_eq!(ask(NOW, exchange, Half::Second, at_ns + 30), Some(before));
        for incarnation in 1..7 {
            for half in [Half::First, Half::Second] {
                ask(incarnation, 4_000_000_001 + exchange, half, at_ns + 40);
            }
        }
        if exchange > 100 {
            let stamps = before.expect("the exchange before is complete");
            let last_ns = at_ns - 1_000;
            assert_eq!((stamps.exchange, stamps.ask_rx_ns), (exchange - 1, [last_ns, last_ns + 30]));
            assert_eq!(stamps.answer_tx_ns, [last_ns + 5, last_ns + 35]);
        }
    }
}

#[test]
fn what_a_stranger_sends_is_ignored() {
    let mut prober = alone();
    let mut effects = Vec::new();
    let ask = Probe::Ask { exchange: 1, half: Half::First };
    for from in [0, NODES as u32, u32::MAX] {
        prober.on_probe((NodeId(from), 1), EPOCH_NS, &ask, &mut effects);
    }
    // Answers to nothing.
    prober.on_probe((NodeId(1), 1), EPOCH_NS, &Probe::Answer { exchange: 9, half: Half::Second, stamps: None }, &mut effects);
    assert_eq!(effects, []);
    prober.on_probe((NodeId(1), 1), EPOCH_NS, &ask, &mut effects);
    assert_eq!(effects.len(), 1, "a node of the mesh is answered");
}
