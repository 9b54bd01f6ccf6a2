//! A simulated mesh from one seed: clocks with offset, drift and wander, asymmetric paths with queues, noisy stamps, and nodes with
//! bad clocks or false reports.
//!
//! The tests of `walras_fair_access::mesh`, its figures and the bench share it.
//!
//! *Deliberately absent*: packets (an edge's stamps of a window are generated directly; encoded probes over links have their own
//! tests).
//!
//! *Invariants*
//! - The same seed gives the same world everywhere.
//! - The estimates are the product's, unchanged.
//!
//! *Start reading* at [`Simulation::step`].

use std::collections::BTreeMap;
use std::f64::consts::TAU;
use std::time::Instant;

use walras_fair_access::clock::{ClockReading, SlewLimits, VirtualClock};
use walras_fair_access::mesh::{
    CodedFilter, Coordinator, CoordinatorConfig, EdgeReport, NodeId, Pair, Schedule, Verdict, WindowOutcome, WindowSamples,
};

/// Numbers from a seed.
#[derive(Clone)]
pub struct Random(walras_random::Random);

impl Random {
    /// Those of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(walras_random::Random::new(seed ^ 0x1234_5678_9abc_def0))
    }

    /// 64 bits.
    #[expect(clippy::should_implement_trait, reason = "numbers have no end")]
    pub fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Above 0, at most 1.
    pub fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// From `low` to `high`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Normally distributed about 0.
    pub fn normal(&mut self, sigma: f64) -> f64 {
        if sigma == 0.0 {
            return 0.0;
        }
        sigma * (-2.0 * self.unit().ln()).sqrt() * (TAU * self.unit()).cos()
    }
}

/// Parameters of the world.
#[derive(Clone, Copy)]
pub struct World {
    /// Nodes.
    pub node_count: usize,
    /// Seed of all random draws.
    pub seed: u64,
    /// Range of the paths' delays.
    pub delay_ns: [f64; 2],
    /// Asymmetry of a path, drawn per direction.
    pub asymmetry_ns: f64,
    /// Standard deviation of each stamp.
    pub stamp_noise_ns: f64,
    /// Share of probes that meet a queue; the next field is their mean waiting time.
    pub queued_share: f64,
    /// See `queued_share`.
    pub queue_ns: f64,
    /// Largest initial offset of a clock.
    pub offset_ns_max: f64,
    /// Largest drift of a clock.
    pub drift_max: f64,
    /// Amplitude of the rates' wander, over periods of 100 to 600 s.
    pub wander: f64,
    /// Interval between two exchanges of an edge.
    pub interval_ns: u64,
    /// Length of a window.
    pub window_ns: u64,
}

impl World {
    /// Offsets of 10 ms, drifts of 30 us/s, 0.1 us/s of wander, stamps with 30 ns of noise, and a third of all probes in queues of
    /// 5 us.
    pub fn new(node_count: usize, seed: u64) -> Self {
        Self {
            node_count,
            seed,
            delay_ns: [20_000.0, 60_000.0],
            asymmetry_ns: 500.0,
            stamp_noise_ns: 30.0,
            queued_share: 0.33,
            queue_ns: 5_000.0,
            offset_ns_max: 10e6,
            drift_max: 30e-6,
            wander: 0.1e-6,
            interval_ns: 4_000_000,
            window_ns: 1_000_000_000,
        }
    }
}

/// The fault of a bad node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Misdeed {
    /// Its clock jumps once.
    Jump {
        /// When, in seconds.
        at_s: f64,
        /// The size of the step.
        by_ns: f64,
    },
    /// Its clock starts to drift.
    Drift {
        /// When, in seconds.
        from_s: f64,
        /// The drift rate.
        rate: f64,
    },
    /// It starts to report different false times to its peers.
    Lie {
        /// When, in seconds.
        from_s: f64,
        /// The largest error.
        up_to_ns: f64,
    },
}

struct Oscillator {
    offset_ns: f64,
    drift: f64,
    wander: f64,
    period_s: f64,
    phase: f64,
    misdeeds: Vec<Misdeed>,
}

/// Initial reading of the clocks, so that times are realistically large.
const EPOCH_NS: u64 = 1_800_000_000_000_000_000;

impl Oscillator {
    /// The clock's lead over true time.
    fn ahead_ns(&self, at_s: f64) -> f64 {
        let turn = TAU / self.period_s;
        let swing = self.wander / turn * (self.phase.cos() - (turn * at_s + self.phase).cos());
        let bad: f64 = (self.misdeeds.iter())
            .map(|misdeed| match *misdeed {
                Misdeed::Jump { at_s: jump_s, by_ns } if at_s >= jump_s => by_ns,
                Misdeed::Drift { from_s, rate } if at_s >= from_s => (at_s - from_s) * rate * 1e9,
                _ => 0.0,
            })
            .sum();
        self.offset_ns + (self.drift * at_s + swing) * 1e9 + bad
    }

    /// Its reading with an error of `noise_ns`.
    fn read_ns(&self, at_s: f64, noise_ns: f64) -> u64 {
        let whole_s = at_s.floor();
        let rest_ns = (at_s - whole_s) * 1e9 + self.ahead_ns(at_s) + noise_ns;
        (EPOCH_NS + whole_s as u64 * 1_000_000_000).wrapping_add_signed(rest_ns.round() as i64)
    }
}

/// One reading of a virtual clock.
#[derive(Clone, Copy)]
pub struct Look {
    /// The node.
    pub node: usize,
    /// Its time less that of the first reference.
    pub error_ns: f64,
    /// The reading.
    pub reading: ClockReading,
}

/// A mesh under simulation, window by window.
pub struct Simulation {
    /// Parameters of the world.
    pub world: World,
    /// Which nodes probe each other.
    pub schedule: Schedule,
    /// The coordinator.
    pub coordinator: Coordinator,
    /// The virtual clock of each node.
    pub clocks: Vec<VirtualClock>,
    oscillators: Vec<Oscillator>,
    delays_ns: BTreeMap<(usize, usize), f64>,
    lies_ns: BTreeMap<(usize, usize), f64>,
    random: Random,
    /// A node whose probes are all lost.
    pub cut_off: Option<usize>,
    /// The window to come.
    pub window: u64,
    first_window: u64,
    /// The outcome of each window.
    pub outcomes: Vec<WindowOutcome>,
    /// Readings of all readable clocks, four times per window.
    pub looks: Vec<Vec<Look>>,
    /// How long each window took to solve; measured, never judged.
    pub close_ms: Vec<f64>,
}

impl Simulation {
    /// Before its first window.
    pub fn new(world: World, schedule: Schedule) -> Self {
        let mut random = Random::new(world.seed);
        let oscillators = (0..world.node_count)
            .map(|_| Oscillator {
                offset_ns: random.between(-world.offset_ns_max, world.offset_ns_max),
                drift: random.between(-world.drift_max, world.drift_max),
                wander: world.wander * random.unit(),
                period_s: random.between(100.0, 600.0),
                phase: random.between(0.0, TAU),
                misdeeds: Vec::new(),
            })
            .collect();
        let first_window = EPOCH_NS / world.window_ns;
        assert_eq!(EPOCH_NS % world.window_ns, 0);
        Self {
            world,
            schedule,
            coordinator: Coordinator::new(CoordinatorConfig::new(schedule, world.window_ns), first_window),
            clocks: (0..world.node_count).map(|_| VirtualClock::new(SlewLimits::default())).collect(),
            oscillators,
            delays_ns: BTreeMap::new(),
            lies_ns: BTreeMap::new(),
            random,
            cut_off: None,
            window: first_window,
            first_window,
            outcomes: Vec::new(),
            looks: Vec::new(),
            close_ms: Vec::new(),
        }
    }

    /// K of 10, changing.
    pub fn rotating(world: World) -> Self {
        Self::new(world, Schedule::rotating(world.node_count, 10, world.seed))
    }

    /// Makes a node bad.
    pub fn misbehave(&mut self, node: usize, misdeed: Misdeed) {
        self.oscillators[node].misdeeds.push(misdeed);
    }

    fn window_s(&self) -> f64 {
        self.world.window_ns as f64 * 1e-9
    }

    /// The start of the window to come, in true time.
    pub fn now_s(&self) -> f64 {
        (self.window - self.first_window) as f64 * self.window_s()
    }

    /// Simulates a window of probes, its solution 50 ms later, and readings of all virtual clocks until the next window.
    pub fn step(&mut self) -> &WindowOutcome {
        let start_s = self.now_s();
        let mut samples = WindowSamples::default();
        for (from, to) in self.schedule.edges(self.window) {
            let (from_index, to_index) = (from.0 as usize, to.0 as usize);
            samples.clear();
            if ![from_index, to_index].map(Some).contains(&self.cut_off) {
                self.sample(from_index, to_index, start_s, &mut samples);
            }
            // The middle of the window by the node's own clock, which is off by some milliseconds.
            let off_s = self.random.between(-0.01, 0.01);
            let anchor_ns = self.oscillators[from_index].read_ns(start_s + self.window_s() / 2.0 + off_s, 0.0);
            let result = samples.fit(&CodedFilter::default(), anchor_ns);
            self.coordinator
                .on_report(&EdgeReport { window: self.window, from, to, result })
                .expect("the schedule has the edge, and the window is open");
        }
        let start = Instant::now();
        let outcome = self.coordinator.close_window(self.window).expect("windows are closed in order, each once");
        self.close_ms.push(start.elapsed().as_secs_f64() * 1e3);
        self.window += 1;
        self.deliver(&outcome);
        self.outcomes.push(outcome);
        let end_s = self.now_s();
        for part in 0..4 {
            let at_s = end_s + 0.051 + (self.window_s() - 0.002) * f64::from(part) / 3.0;
            self.look(at_s);
        }
        self.outcomes.last().expect("one was pushed just now")
    }

    /// Simulates several windows.
    pub fn steps(&mut self, count: usize) {
        for _ in 0..count {
            self.step();
        }
    }

    fn deliver(&mut self, outcome: &WindowOutcome) {
        let at_s = self.now_s() + 0.05;
        for (node, verdict) in outcome.verdicts.iter().enumerate() {
            let local_ns = self.oscillators[node].read_ns(at_s, 0.0);
            match verdict {
                Verdict::Synced(line) => self.clocks[node].on_correction(local_ns, *line),
                Verdict::Excluded(_) => self.clocks[node].on_excluded(),
                Verdict::Unreached => {}
            }
        }
    }

    /// Reads all readable clocks, with their errors relative to the first reference.
    fn look(&mut self, at_s: f64) {
        let truth_ns = self.oscillators[0].ahead_ns(at_s) + at_s.fract() * 1e9;
        let whole_ns = EPOCH_NS + at_s.floor() as u64 * 1_000_000_000;
        let mut looks = Vec::new();
        for node in 0..self.world.node_count {
            let local_ns = self.oscillators[node].read_ns(at_s, 0.0);
            if let Some(reading) = self.clocks[node].read(local_ns) {
                let error_ns = (i128::from(reading.time_ns) - i128::from(whole_ns)) as f64 - truth_ns;
                looks.push(Look { node, error_ns, reading });
            }
        }
        self.looks.push(looks);
    }

    fn delay_ns(&mut self, from: usize, to: usize) -> f64 {
        let (low, high) = (from.min(to), from.max(to));
        if !self.delays_ns.contains_key(&(from, to)) {
            // The order in which paths are first used does not change them.
            let mut random = Random::new(self.world.seed ^ ((low * 65_536 + high) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let [least_ns, most_ns] = self.world.delay_ns;
            let shared_ns = random.between(least_ns, most_ns);
            let up_ns = shared_ns + random.normal(self.world.asymmetry_ns);
            let down_ns = shared_ns + random.normal(self.world.asymmetry_ns);
            self.delays_ns.insert((low, high), up_ns);
            self.delays_ns.insert((high, low), down_ns);
        }
        self.delays_ns[&(from, to)]
    }

    fn lie_ns(&mut self, from: usize, to: usize, at_s: f64) -> f64 {
        let lie = self.oscillators[from].misdeeds.iter().find_map(|misdeed| match *misdeed {
            Misdeed::Lie { from_s, up_to_ns } if at_s >= from_s => Some(up_to_ns),
            _ => None,
        });
        let Some(up_to_ns) = lie else { return 0.0 };
        let random = &mut self.random;
        *self.lies_ns.entry((from, to)).or_insert_with(|| random.between(-up_to_ns, up_to_ns))
    }

    /// The exchanges of an edge in a window.
    fn sample(&mut self, from: usize, to: usize, start_s: f64, samples: &mut WindowSamples) {
        let there_ns = self.delay_ns(from, to);
        let back_ns = self.delay_ns(to, from);
        let lies_ns = [self.lie_ns(from, to, start_s), self.lie_ns(to, from, start_s)];
        let interval_s = self.world.interval_ns as f64 * 1e-9;
        let count = self.world.window_ns / self.world.interval_ns;
        let phase_s = interval_s * self.random.unit();
        for step in 0..count {
            let sent_s = start_s + phase_s + step as f64 * interval_s;
            samples.forward.push(self.pair((from, lies_ns[0]), (to, lies_ns[1]), sent_s, there_ns));
            samples.backward.push(self.pair((to, lies_ns[1]), (from, lies_ns[0]), sent_s + 1e-4, back_ns));
        }
    }

    fn pair(&mut self, from: (usize, f64), to: (usize, f64), sent_s: f64, delay_ns: f64) -> Pair {
        let world = self.world;
        let mut pair = Pair { tx_ns: [0; 2], rx_ns: [0; 2] };
        for index in 0..2 {
            let tx_s = sent_s + index as f64 * 30e-6;
            let queue_ns = if self.random.unit() < world.queued_share { -world.queue_ns * self.random.unit().ln() } else { 0.0 };
            let rx_s = tx_s + (delay_ns + queue_ns) * 1e-9;
            let noise_ns = [self.random.normal(world.stamp_noise_ns), self.random.normal(world.stamp_noise_ns)];
            pair.tx_ns[index] = self.oscillators[from.0].read_ns(tx_s, from.1 + noise_ns[0]);
            pair.rx_ns[index] = self.oscillators[to.0].read_ns(rx_s, to.1 + noise_ns[1]);
        }
        pair
    }

    /// Differences of all pairs of virtual clocks of nodes for which `keep` holds, in the readings from `first_look` on; sorted.
    pub fn pair_errors_ns(&self, first_look: usize, keep: impl Fn(usize) -> bool) -> Vec<f64> {
        let mut errors = Vec::new();
        for looks in &self.looks[first_look..] {
            let looks: Vec<_> = looks.iter().filter(|look| keep(look.node)).collect();
            for (index, a) in looks.iter().enumerate() {
                errors.extend(looks[index + 1..].iter().map(|b| (a.error_ns - b.error_ns).abs()));
            }
        }
        errors.sort_by(f64::total_cmp);
        errors
    }

    /// Number of readings from `first_look` on with an error within the bound, and number of all.
    pub fn covered(&self, first_look: usize, keep: impl Fn(usize) -> bool) -> (usize, usize) {
        let looks = self.looks[first_look..].iter().flatten().filter(|look| keep(look.node));
        looks.fold((0, 0), |(within, all), look| {
            (within + usize::from(look.error_ns.abs() <= look.reading.bound_ns as f64), all + 1)
        })
    }
}

/// The quantile of sorted values, in thousandths.
pub fn quantile(sorted: &[f64], permille: usize) -> f64 {
    sorted[(sorted.len() * permille / 1_000).min(sorted.len() - 1)]
}

/// A node by its number.
pub fn node(index: usize) -> NodeId {
    NodeId(index as u32)
}
