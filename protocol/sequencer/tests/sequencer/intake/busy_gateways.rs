//! Gateways whose sockets are read late: bytes wait while the one thread is busy. Orders are to be sequenced as they came, and what the
//! venue counts is what participants feel.

use std::collections::BTreeMap;

use walras_fair_access::clock::ClockStatus;
use walras_fair_access::delay::{DelayBounds, DelaySettings, Ppm, Tracking};
use walras_fair_access::resequence::Stamp;
use walras_sequencer::{Arrivals, GatewayTime, IntakeSettings};
use walras_types::{Ordinal, TimeNs};

use super::{World, ordinal};

const GATEWAYS: u16 = 3;
const APART_NS: u64 = 125_000;
const LINK_NS: u64 = 60_000;
/// So long a gateway is busy with others: 50 us, in one of 50 rounds up to 3 ms.
const ROUND_NS: u64 = 50_000;
const BUSY_NS: u64 = 3_000_000;

/// What stamps orders.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Kernel,
    Reading,
}

/// Shares in ppm, of orders before which one was sequenced that came later: as it was, and as the venue counts.
fn overtaken_ppm(by: By) -> [u64; 2] {
    let bounds = DelayBounds { min_ns: 0, max_ns: 20_000_000, start_ns: 1_000_000 };
    let tracking = Tracking { bounds, target: Ppm(10_000), step_ns: 5_000, level_window: 1_000 };
    let settings = IntakeSettings { outlier_apart_max_ns: 1 << 60, ..IntakeSettings::new(4, DelaySettings::Tracking(tracking), 7) };
    let mut world = World::new(settings, u64::from(GATEWAYS));
    let mut arrivals = Arrivals::default();
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let (mut next, mut reads_ns, mut last_ns) = ([1; 3], [0_u64; 3], [0; 3]);
    let mut came_ns: BTreeMap<Ordinal, u64> = BTreeMap::new();
    // At the leader: when, from where, with which stamp, and which.
    let mut at_leader: Vec<(u64, u16, u64, Ordinal)> = Vec::new();
    let mut now_ns = 1_000_000_000;
    for _ in 0..120_000 {
        now_ns += APART_NS / 2 + random() % APART_NS;
        let gateway = u16::try_from(random() % u64::from(GATEWAYS)).unwrap();
        let place = usize::from(gateway);
        while reads_ns[place] < now_ns {
            let busy_ns = if random().is_multiple_of(50) { random() % BUSY_NS } else { ROUND_NS };
            reads_ns[place] = reads_ns[place].max(now_ns - ROUND_NS) + busy_ns.max(1);
        }
        let read_ns = reads_ns[place];
        let at = GatewayTime { now_ns: read_ns, now: TimeNs(read_ns), time_ns: read_ns, status: ClockStatus::Good };
        let waited_ns = (by == By::Kernel).then_some(read_ns - now_ns);
        let stamp_ns = arrivals.at(at, waited_ns, &mut last_ns[place]).time_ns;
        let ordinal = ordinal(u64::from(gateway) + 1, next[place]);
        next[place] += 1;
        came_ns.insert(ordinal, now_ns);
        at_leader.push((read_ns + LINK_NS, gateway, stamp_ns, ordinal));
    }
    at_leader.sort_by_key(|(at_ns, _, _, ordinal)| (*at_ns, *ordinal));
    for (at_ns, gateway, stamp_ns, ordinal) in at_leader {
        world.runs_until(at_ns);
        world.comes(at_ns, gateway, Stamp::Gateway(stamp_ns), ordinal, 1);
    }
    world.runs_until(u64::MAX);
    let (mut latest_ns, mut overtaken, all) = (0, 0, came_ns.len() as u64);
    for (_, ordinal) in &world.venue.taken {
        let came_ns = came_ns[&ordinal.unwrap()];
        overtaken += u64::from(came_ns < latest_ns);
        latest_ns = latest_ns.max(came_ns);
    }
    let figures = world.figures();
    assert_eq!(figures.judged, all);
    [overtaken * 1_000_000 / all, figures.unfair * 1_000_000 / all]
}

#[test]
fn stamps_of_the_kernel_keep_the_target_and_what_is_counted_is_what_is_felt() {
    let [felt, counted] = overtaken_ppm(By::Kernel);
    assert_eq!(felt, counted);
    assert!(felt <= 10_500, "{felt} ppm, the target is 10,000");
}

/// What it was before: the venue knows of hardly any.
#[test]
fn stamps_of_reading_hide_what_is_felt() {
    let [felt, counted] = overtaken_ppm(By::Reading);
    assert!(felt > 20_000 && counted < felt / 2, "{felt} felt, {counted} counted");
}
