//! Reports about late market data, up a tree of relays: against a naive model, with receivers that are slow, lie, die and come back.

use proptest::prelude::*;
use walras_fair_access::delay::{DelayBounds, DelayControl, DelaySettings, Ppm, Tracking};
use walras_random::Random;
use walras_relay::deadline::{Maximum, ReportSettings, SAMPLES_MAX};
use walras_relay::lateness::{Lateness, Pieces, Reports, SETTLE_NS, SLOT_NS};

const US: i64 = 1_000;
const RELAYS: usize = 3;
const RECEIVERS: usize = 12;
const BEGIN_NS: u64 = 1_700_000_000_000_000_000;
const INTERVAL_NS: u64 = ReportSettings::ROBUST.interval_ns;

/// Three relays, four receivers below each, and the sender, whose delay is steered to 5 % late pieces.
struct World {
    receivers: Vec<Lateness>,
    relays: Vec<(Reports, Pieces)>,
    sender: (Reports, Pieces),
    control: DelayControl,
    now_ns: u64,
    piece: u64,
}

impl World {
    fn new() -> Self {
        let bounds = DelayBounds { min_ns: 0, max_ns: 20_000_000, start_ns: 300_000 };
        let tracking = Tracking { bounds, target: Ppm(50_000), step_ns: 20_000, level_window: 63 };
        let nodes = RELAYS + RECEIVERS;
        let reports = || (Reports::new(ReportSettings::ROBUST, nodes), Pieces::default());
        Self {
            receivers: (0..RECEIVERS).map(|_| Lateness::default()).collect(),
            relays: (0..RELAYS).map(|_| reports()).collect(),
            sender: reports(),
            control: DelayControl::new(DelaySettings::Tracking(tracking)),
            now_ns: BEGIN_NS,
            piece: 0,
        }
    }

    /// Runs so many intervals with a piece each millisecond. `transit_ns` is how long a piece takes to a receiver, `None` where
    /// that is dead or misses it; `lie` alters a receiver's report. Returns the share of pieces of the last half that came late to
    /// any receiver, in percent.
    fn run(
        &mut self,
        intervals: u64,
        mut transit_ns: impl FnMut(usize, &mut Random) -> Option<i64>,
        mut lie: impl FnMut(usize, u64, Vec<Maximum>) -> Option<Vec<Maximum>>,
    ) -> u64 {
        let draw = &mut Random::new(self.now_ns);
        let (mut late, mut judged) = (0_u64, 0_u64);
        for interval in 0..intervals {
            for _ in 0..INTERVAL_NS / 1_000_000 {
                self.piece += 1;
                let (made_ns, held_ns) = (BEGIN_NS + self.piece * 1_000_000, self.control.delay_ns());
                let release_ns = made_ns + held_ns;
                self.sender.1.passed(release_ns, held_ns);
                self.relays.iter_mut().for_each(|relay| relay.1.passed(release_ns, 0));
                let mut is_late = false;
                for (at, receiver) in self.receivers.iter_mut().enumerate() {
                    if let Some(transit_ns) = transit_ns(at, draw) {
                        let at_ns = made_ns.saturating_add_signed(transit_ns);
                        receiver.packet(at_ns, release_ns);
                        is_late |= at_ns > release_ns;
                    }
                }
                if interval * 2 >= intervals {
                    (late, judged) = (late + u64::from(is_late), judged + 1);
                }
            }
            self.now_ns += INTERVAL_NS;
            let now_ns = self.now_ns;
            for (at, receiver) in self.receivers.iter_mut().enumerate() {
                if let Some(samples) = lie(at, now_ns, receiver.report(now_ns)) {
                    let (reports, pieces) = &mut self.relays[at % RELAYS];
                    reports.on_late(now_ns, (RELAYS + at) as u32, samples, pieces);
                }
            }
            for (at, (reports, _)) in self.relays.iter_mut().enumerate() {
                if let Some(samples) = reports.on_timer(now_ns) {
                    self.sender.0.on_late(now_ns, at as u32, samples, &self.sender.1);
                }
            }
            for sample in self.sender.0.on_timer(now_ns).unwrap_or_default() {
                let held_ns = self.sender.1.held_ns(sample.packet).unwrap();
                // As the leader does: reports are old when they come, so the delay that is in force now is judged, not that of then.
                let transit_ns = sample.delay_ns.saturating_add_unsigned(held_ns);
                let is_late = transit_ns > i64::try_from(self.control.delay_ns()).unwrap();
                self.control.on_transit(transit_ns);
                self.control.on_verdict(is_late.into());
            }
        }
        late * 100 / judged.max(1)
    }
}

fn usual(draw: &mut Random) -> i64 {
    (80_000 + draw.below(60_000)) as i64
}

fn honest(_: usize, _: u64, samples: Vec<Maximum>) -> Option<Vec<Maximum>> {
    Some(samples)
}

#[test]
fn the_share_of_late_pieces_is_the_target_and_a_slow_receiver_raises_the_delay() {
    let mut world = World::new();
    let late = world.run(150, |_, draw| Some(usual(draw)), honest);
    let before_ns = world.control.delay_ns();
    assert!((1..=9).contains(&late) && (125_000..160_000).contains(&before_ns), "{late} %, {before_ns} ns");
    // One of twelve becomes slow, by less than what counts as broken.
    let slow = |at: usize, draw: &mut Random| Some(usual(draw) + if at == 7 { 600 * US } else { 0 });
    let late = world.run(300, slow, honest);
    let with_ns = world.control.delay_ns();
    assert!((1..=9).contains(&late) && (700_000..800_000).contains(&with_ns), "{late} %, {with_ns} ns");
    // It dies: the delay that only it needed goes.
    let late = world.run(600, |at, draw| (at != 7).then(|| usual(draw)), |at, _, samples| (at != 7).then_some(samples));
    let after_ns = world.control.delay_ns();
    assert!(late <= 9 && after_ns < 200_000, "{late} %, {after_ns} ns");
}

fn said(samples: Vec<Maximum>, instead: fn(i64) -> i64) -> Vec<Maximum> {
    samples.into_iter().map(|sample| Maximum { delay_ns: instead(sample.delay_ns), ..sample }).collect()
}

fn of(pieces: impl Iterator<Item = u64>) -> Vec<Maximum> {
    pieces.map(|packet| Maximum { packet, delay_ns: 9_000_000 }).collect()
}

/// One of twelve has a wrong clock, or lies in any way: it raises the delay of all by no more than 1 ms, and the delay stays right for the
/// others.
#[test]
fn one_that_lies_raises_the_delay_by_no_more_than_the_bound() {
    let all = |_: usize, draw: &mut Random| Some(usual(draw));
    let mut right = World::new();
    right.run(200, all, honest);
    let right_ns = right.control.delay_ns();
    type Lie = fn(u64, Vec<Maximum>) -> Vec<Maximum>;
    let lies: [(&str, Lie, u64); 6] = [
        ("a second ahead", |_, samples| said(samples, |delay_ns| delay_ns + 1_000_000_000), 60_000),
        ("as late as there is", |_, samples| said(samples, |_| i64::MAX), 60_000),
        ("as early as there is", |_, samples| said(samples, |_| i64::MIN), 60_000),
        ("pieces to come", |now_ns, _| of((1..64).map(|at| now_ns + at * SLOT_NS)), 60_000),
        ("pieces that never were", |now_ns, _| of((1..64).map(|at| now_ns - SETTLE_NS - at)), 60_000),
        ("just within the bound", |_, samples| said(samples, |delay_ns| delay_ns + 900_000), 1_000_000),
    ];
    for (name, lie, apart_ns) in lies {
        let mut world = World::new();
        world.run(200, all, |at, now_ns, samples| Some(if at == 5 { lie(now_ns, samples) } else { samples }));
        let with_ns = world.control.delay_ns();
        assert!(with_ns.abs_diff(right_ns) <= apart_ns, "{name}: {with_ns} instead of {right_ns}");
    }
}

proptest! {
    /// What a node passes on of each piece: the greatest of its children's first reports, or the second greatest where one child is apart.
    #[test]
    fn a_node_passes_on_what_the_naive_model_does(
        said in prop::collection::vec((0_u32..6, 0_u64..8, prop_oneof![-2_000_000_i64..2_000_000, Just(i64::MAX), Just(i64::MIN)]), 0..120),
    ) {
        let settings = ReportSettings::ROBUST;
        let (mut reports, mut pieces) = (Reports::new(settings, 6), Pieces::default());
        let release_ns = |piece: u64| BEGIN_NS + piece * SLOT_NS;
        // Piece 0 was never passed on.
        (1..8).for_each(|piece| pieces.passed(release_ns(piece), 5));
        let mut naive: std::collections::BTreeMap<u64, std::collections::BTreeMap<u32, i64>> = std::collections::BTreeMap::new();
        for (node, piece, delay_ns) in said {
            reports.on_late(1, node, vec![Maximum { packet: release_ns(piece), delay_ns }], &pieces);
            if piece > 0 {
                naive.entry(release_ns(piece)).or_default().entry(node).or_insert(delay_ns);
            }
        }
        let mut got = reports.on_timer(settings.patience_ns + 2).unwrap_or_default();
        got.sort_by_key(|sample| sample.packet);
        let expected: Vec<Maximum> = naive.into_iter().map(|(packet, by)| {
            let mut delays: Vec<i64> = by.into_values().collect();
            delays.sort_unstable();
            let greatest = delays.pop().unwrap();
            let second = delays.pop().unwrap_or(greatest);
            let delay_ns = if i128::from(greatest) - i128::from(second) > 1_000_000 { second } else { greatest };
            Maximum { packet, delay_ns }
        }).collect();
        prop_assert!(got.len() <= SAMPLES_MAX);
        prop_assert_eq!(got, expected);
    }
}
