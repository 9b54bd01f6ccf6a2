//! A delay for many gateways: the target holds for each of them, however little of the flow it has.

use walras_fair_access::GatewayId;
use walras_fair_access::delay::{DelayBounds, DelaySettings, GatewayDelays, Ppm, Stepped, Tracking};
use walras_fair_access::outliers::SILENT_NS_MAX;

const BOUNDS: DelayBounds = DelayBounds { min_ns: 0, max_ns: 20_000_000, start_ns: 500_000 };
const TARGET: Ppm = Ppm(10_000);
const NEAR: GatewayId = GatewayId(0);
const FAR: GatewayId = GatewayId(1);

fn tracking() -> DelaySettings {
    DelaySettings::Tracking(Tracking { bounds: BOUNDS, target: TARGET, step_ns: 5_000, level_window: 1_000 })
}

fn stepped() -> DelaySettings {
    DelaySettings::Stepped(Stepped { bounds: BOUNDS, target: TARGET, window: 1_000, step_ns: 500_000, samples_per_step: 50 })
}

/// Orders from a fixed sequence, 100 us apart; each is unfair when its transit exceeds the delay.
struct World {
    delays: GatewayDelays,
    state: u64,
    now_ns: u64,
}

impl World {
    fn new(settings: DelaySettings) -> Self {
        Self { delays: GatewayDelays::new(settings, 4), state: 1, now_ns: 1_000 }
    }

    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.state >> 33
    }

    /// `transits[gateway]` is the least transit, of which every one takes up to half a millisecond more. One of `far_one_of` orders is
    /// the second gateway's. The shares of unfair orders by gateway, in ppm.
    fn run(&mut self, orders: u64, transits: [i64; 2], far_one_of: u64) -> [u64; 2] {
        let mut counts = [(0, 0); 2];
        for _ in 0..orders {
            self.now_ns += 100_000;
            let gateway = if self.random().is_multiple_of(far_one_of) { FAR } else { NEAR };
            let transit_ns = transits[gateway.index()] + i64::try_from(self.random() % 500_000).unwrap();
            self.delays.on_transit(self.now_ns, gateway, transit_ns);
            let is_unfair = transit_ns > i64::try_from(self.delays.delay_ns()).unwrap();
            self.delays.on_verdict(self.now_ns, gateway, is_unfair.into());
            let (all, unfair) = &mut counts[gateway.index()];
            (*all, *unfair) = (*all + 1, *unfair + u64::from(is_unfair));
        }
        counts.map(|(all, unfair)| unfair * 1_000_000 / all.max(1))
    }
}

/// One of a hundred orders comes from 5 ms further away: a share over all orders would be at the target while all of these are late.
#[test]
fn a_far_gateway_with_little_flow_is_on_time_within_the_target() {
    let mut world = World::new(tracking());
    world.run(400_000, [100_000, 5_100_000], 100);
    let [near, far] = world.run(1_000_000, [100_000, 5_100_000], 100);
    assert!(far.abs_diff(10_000) <= 1_500, "{far} ppm at the far one");
    assert!(near <= 10_000, "{near} ppm at the near one");
    assert_eq!(world.delays.worst(), Some(FAR));
    assert!((5_000_000..6_000_000).contains(&world.delays.delay_ns()), "{}", world.delays.delay_ns());
}

/// Half a percent of all orders is unfair, half of the target; but these are all orders of one gateway.
#[test]
fn steps_go_by_the_worst_gateways_share() {
    let mut world = World::new(stepped());
    world.run(40_000, [100_000, 0], u64::MAX);
    assert!(world.delays.delay_ns() < 3_000_000, "{}", world.delays.delay_ns());
    world.run(200_000, [100_000, 5_100_000], 200);
    assert!(world.delays.delay_ns() > 4_000_000, "{}", world.delays.delay_ns());
}

/// Of what was late before it had enough samples no more is to come than that.
#[test]
fn a_gateway_that_joins_from_afar_is_late_only_until_it_has_enough_samples() {
    let mut world = World::new(tracking());
    world.run(100_000, [100_000, 0], u64::MAX);
    assert!(world.delays.delay_ns() < 1_000_000);
    world.run(130, [100_000, 5_100_000], 1);
    assert!(world.delays.delay_ns() > 5_400_000, "{}", world.delays.delay_ns());
    let judged = world.delays.of(FAR).unwrap();
    assert_eq!((judged.judged, judged.unfair >= 99, judged.unfair <= 105), (130, true, true), "{judged:?}");
}

#[test]
fn equal_gateways_get_the_delay_that_one_alone_would_get() {
    let mut world = World::new(tracking());
    world.run(200_000, [100_000, 100_000], 2);
    let [near, far] = world.run(400_000, [100_000, 100_000], 2);
    assert!(near.abs_diff(10_000) <= 1_500 && far.abs_diff(10_000) <= 1_500, "{near}, {far} ppm");
}

#[test]
fn a_gateway_that_falls_silent_delays_nobody_any_more() {
    let mut world = World::new(tracking());
    world.run(200_000, [100_000, 5_100_000], 10);
    assert_eq!(world.delays.worst(), Some(FAR));
    world.now_ns += SILENT_NS_MAX + 1;
    world.run(50, [100_000, 0], u64::MAX);
    assert!(world.delays.delay_ns() > 5_000_000, "nobody else has enough recent samples either");
    world.run(1_000, [100_000, 0], u64::MAX);
    assert_eq!(world.delays.worst(), Some(NEAR));
    assert!(world.delays.delay_ns() < 1_000_000, "{}", world.delays.delay_ns());
}

#[test]
fn few_samples_of_a_gateway_do_not_move_the_delay_for_all() {
    let mut world = World::new(tracking());
    world.run(50_000, [100_000, 0], u64::MAX);
    let before_ns = world.delays.delay_ns();
    world.run(50, [100_000, 9_000_000], 1);
    assert_eq!((world.delays.worst(), world.delays.delay_ns()), (Some(NEAR), before_ns));
    let judged = world.delays.of(FAR).unwrap();
    assert_eq!((judged.judged, judged.unfair, judged.recent), (50, 50, Ppm::ONE), "it is shown all the same");
}

#[test]
fn unknown_gateways_steer_nothing_and_a_fixed_delay_stays() {
    let mut delays = GatewayDelays::new(DelaySettings::Static { delay_ns: 7 }, 1);
    for _ in 0..2_000 {
        delays.on_transit(5, GatewayId(9), 1_000_000);
        delays.on_verdict(5, GatewayId(9), true.into());
        delays.on_transit(5, NEAR, 1_000_000);
        delays.on_verdict(5, NEAR, true.into());
    }
    assert_eq!((delays.delay_ns(), delays.totals(), delays.of(GatewayId(9))), (7, (4_000, 4_000), None));
}
