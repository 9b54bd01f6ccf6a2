//! Pacing at relays in bursts of orders (table 5, section 8.7): packets lost at the engine's receive queue, and packets that it takes,
//! without pacing, by the published rule and by ours, for several thresholds.

use std::collections::VecDeque;

use walras_event_queue::EventQueue;
use walras_random::Random;
use walras_relay::pacing::Pacer;

use crate::Extent;
use crate::network::{Network, exponential_ns};
use crate::rows::{Check, Curve, Findings, Row};

const RELAYS: usize = 2;
/// Orders a second of all ten participants; in a burst twice as many.
const BASE: f64 = 70_000.0;
/// What the engine takes: between the two. Not published.
const TAKE_NS: u64 = 10_000;
/// Packets that its receive queue has room for. Not published.
const ROOM: usize = 1_024;
/// Between two packets of a relay that does not pause.
const APART_NS: u64 = 1_300;
/// The longest pause: less than what comes outside bursts.
const PAUSE_NS_MAX: u64 = 100_000;
const FROM_NS: u64 = 1_000_000_000;

/// What happens when.
enum Event {
    /// An order comes to a relay.
    Comes { relay: usize },
    /// A relay may send.
    Sends { relay: usize },
    /// A packet reaches the engine's queue.
    Reaches { relay: usize, sent_ns: u64 },
    /// A relay hears how long a packet took.
    Hears { relay: usize, delay_ns: u64 },
}

struct Relay {
    pacer: Pacer,
    waiting: u64,
    /// Whether its next send is among the events.
    is_due: bool,
    free_ns: u64,
}

struct Run<'n> {
    network: &'n Network,
    random: Random,
    events: EventQueue<Event>,
    relays: [Relay; RELAYS],
    served_ns: VecDeque<u64>,
    quiet_ns: u64,
    burst_ns: u64,
    outcome: Outcome,
}

/// Over all, and in the burst.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    offered: u64,
    lost: u64,
    taken: u64,
    burst_taken: u64,
    /// The longest queue at a relay.
    waiting_max: u64,
}

impl Run<'_> {
    fn is_burst(&self, at_ns: u64) -> bool {
        let since_ns = at_ns - FROM_NS;
        since_ns >= self.quiet_ns && since_ns < self.quiet_ns + self.burst_ns
    }

    fn ends_ns(&self) -> u64 {
        FROM_NS + 2 * self.quiet_ns + self.burst_ns
    }

    fn delay_ns(&mut self, now_ns: u64, relay: usize) -> u64 {
        let link = self.network.link(0, 0, relay as u32);
        self.network.delay_ns(link, now_ns, &mut self.random)
    }

    fn run(mut self) -> Outcome {
        (0..RELAYS).for_each(|relay| self.events.at(FROM_NS, Event::Comes { relay }));
        while let Some((now_ns, event)) = self.events.pop() {
            match event {
                Event::Comes { relay } => self.comes(now_ns, relay),
                Event::Sends { relay } => self.sends(now_ns, relay),
                Event::Reaches { relay, sent_ns } => self.reaches(now_ns, relay, sent_ns),
                Event::Hears { relay, delay_ns } => self.relays[relay].pacer.on_delay(now_ns, delay_ns),
            }
        }
        self.outcome
    }

    fn comes(&mut self, now_ns: u64, relay: usize) {
        self.outcome.offered += 1;
        let at = &mut self.relays[relay];
        at.waiting += 1;
        self.outcome.waiting_max = self.outcome.waiting_max.max(at.waiting);
        self.look_whether_due(now_ns, relay);
        let all = if self.is_burst(now_ns) { 2.0 * BASE } else { BASE };
        let rate = all / RELAYS as f64;
        let next_ns = now_ns + exponential_ns(&mut self.random, 1e9 / rate);
        if next_ns < self.ends_ns() {
            self.events.at(next_ns, Event::Comes { relay });
        }
    }

    fn look_whether_due(&mut self, now_ns: u64, relay: usize) {
        let at = &mut self.relays[relay];
        if at.waiting > 0 && !at.is_due {
            at.is_due = true;
            let at_ns = now_ns.max(at.free_ns).max(at.pacer.next_ns());
            self.events.at(at_ns, Event::Sends { relay });
        }
    }

    fn sends(&mut self, now_ns: u64, relay: usize) {
        let at = &mut self.relays[relay];
        at.is_due = false;
        // The pause may have grown since.
        if now_ns >= at.pacer.next_ns() {
            at.waiting -= 1;
            at.free_ns = now_ns + APART_NS;
            at.pacer.on_sent(now_ns);
            let delay_ns = self.delay_ns(now_ns, relay);
            self.events.at(now_ns + delay_ns, Event::Reaches { relay, sent_ns: now_ns });
        }
        self.look_whether_due(now_ns, relay);
    }

    fn reaches(&mut self, now_ns: u64, relay: usize, sent_ns: u64) {
        while self.served_ns.front().is_some_and(|served_ns| *served_ns <= now_ns) {
            self.served_ns.pop_front();
        }
        if self.served_ns.len() >= ROOM {
            self.outcome.lost += 1;
            return;
        }
        let served_ns = now_ns.max(self.served_ns.back().copied().unwrap_or(0)) + TAKE_NS;
        self.served_ns.push_back(served_ns);
        self.outcome.taken += 1;
        self.outcome.burst_taken += u64::from(self.is_burst(served_ns));
        let back_ns = self.delay_ns(served_ns, relay);
        self.events.at(served_ns + back_ns, Event::Hears { relay, delay_ns: served_ns - sent_ns });
    }
}

fn run(network: &Network, pacer: &Pacer, extent: Extent) -> Outcome {
    let relay = || Relay { pacer: pacer.clone(), waiting: 0, is_due: false, free_ns: 0 };
    let (quiet_ns, burst_ns) = (extent.of(2_000_000_000, 150_000_000), extent.of(1_000_000_000, 300_000_000));
    let run = Run {
        network,
        random: Random::new(18),
        events: EventQueue::new(),
        relays: [relay(), relay()],
        served_ns: VecDeque::new(),
        quiet_ns,
        burst_ns,
        outcome: Outcome::default(),
    };
    run.run()
}

/// Table 5.
#[must_use]
pub fn table_5(network: &Network, extent: Extent) -> Findings {
    let thresholds_us = extent.of(&[50, 100, 200, 500, 2_000, 8_000, 20_000][..], &[200, 20_000][..]);
    let without = run(network, &Pacer::published(u64::MAX, 0), extent);
    let lost_percent = |outcome: &Outcome| 100.0 * outcome.lost as f64 / outcome.offered as f64;
    let mut rows = vec![Row::own("J18", "no pacing: orders lost", lost_percent(&without), "percent", Check::Shown)];
    let (mut lost_points, mut taken_points) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for threshold_us in thresholds_us {
        let threshold_ns = threshold_us * 1_000;
        let rules = [Pacer::published(threshold_ns, PAUSE_NS_MAX), Pacer::draining(threshold_ns, PAUSE_NS_MAX)];
        for (at, (name, pacer)) in ["published rule", "ours"].into_iter().zip(&rules).enumerate() {
            let outcome = run(network, pacer, extent);
            let lost = outcome.lost as f64 / without.lost as f64;
            let taken = outcome.burst_taken as f64 / without.burst_taken as f64;
            // Ours is set to the delay of a queue of a fifth of the room.
            let is_ours = at == 1 && *threshold_us == 200;
            let (lost_check, taken_check) =
                if is_ours { (Check::AtMost(0.2), Check::AtLeast(0.9)) } else { (Check::Shown, Check::Shown) };
            let what = |of: &str| format!("{name}, T = {threshold_us} us: {of}");
            rows.push(Row::own("J18", what("lost over lost without"), lost, "ratio", lost_check));
            rows.push(Row::own("J18", what("taken in the burst over taken without"), taken, "ratio", taken_check));
            rows.push(Row::own("J18", what("longest queue at a relay"), outcome.waiting_max as f64, "orders", Check::Shown));
            lost_points[at].push((*threshold_us as f64, lost));
            taken_points[at].push((*threshold_us as f64, taken));
        }
    }
    let ordered = |points: &[(f64, f64)]| f64::from(u8::from(points.is_sorted_by(|a, b| a.1 <= b.1 + 0.02)));
    rows.push(Row::own(
        "J18",
        "ours: the higher the threshold, the more is lost",
        ordered(&lost_points[1]),
        "",
        Check::AtLeast(1.0),
    ));
    rows.push(Row::own(
        "J18",
        "ours: the higher the threshold, the more is taken",
        ordered(&taken_points[1]),
        "",
        Check::AtLeast(1.0),
    ));
    let [published_lost, our_lost] = lost_points;
    let curves = vec![Curve::ours("lost, ours", our_lost), Curve::ours("lost, published rule", published_lost)];
    Findings {
        name: "table-5",
        title: "orders lost with pacing over those lost without",
        axes: ("threshold, us", "ratio"),
        rows,
        curves,
    }
}
