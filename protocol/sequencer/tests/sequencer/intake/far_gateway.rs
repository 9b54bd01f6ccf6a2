//! Gateways of which one has nearly all orders, and another one is far away: fair access is for that one.

use walras_fair_access::GatewayId;
use walras_fair_access::delay::{DelayBounds, DelaySettings, Ppm, Tracking};
use walras_fair_access::outliers::Standing;
use walras_fair_access::resequence::Stamp;
use walras_sequencer::{GatewayFigures, IntakeSettings};

use super::{World, ordinal};

/// 5 ms away, with one of a hundred orders.
const FAR: u16 = 3;
const FAR_NS: u64 = 5_000_000;
const FAR_ONE_OF: u64 = 100;
/// From one order to the next.
const APART_NS: u64 = 100_000;

/// An order on its way: when it comes, its gateway, its stamp.
type OnTheWay = (u64, u16, u64);

struct Cloud {
    world: World,
    random: u64,
    stamp_ns: u64,
    on_the_way: Vec<OnTheWay>,
    comes_last_ns: [u64; 4],
    next: [u64; 4],
}

impl Cloud {
    fn new() -> Self {
        let bounds = DelayBounds { min_ns: 0, max_ns: 20_000_000, start_ns: 1_000_000 };
        let tracking = Tracking { bounds, target: Ppm(10_000), step_ns: 5_000, level_window: 1_000 };
        let settings = IntakeSettings::new(4, DelaySettings::Tracking(tracking), 7);
        assert!(settings.outlier_apart_max_ns < FAR_NS, "else nothing would throw it out");
        Self {
            world: World::new(settings, 4),
            random: 1,
            stamp_ns: 1_000_000_000,
            on_the_way: Vec::new(),
            comes_last_ns: [0; 4],
            next: [1; 4],
        }
    }

    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.random >> 33
    }

    /// The transit of a near gateway takes up to 0.2 ms, one of 50 up to 2 ms; the far one's 5 ms more.
    fn send(&mut self, orders: u64) {
        for _ in 0..orders {
            self.stamp_ns += APART_NS;
            let gateway = if self.random().is_multiple_of(FAR_ONE_OF) { FAR } else { u16::try_from(self.random() % 3).unwrap() };
            let widest_ns = if self.random().is_multiple_of(50) { 2_000_000 } else { 200_000 };
            let far_ns = if gateway == FAR { FAR_NS } else { 0 };
            // A link keeps its order.
            let last_ns = self.comes_last_ns[usize::from(gateway)];
            let comes_ns = (self.stamp_ns + far_ns + self.random() % widest_ns).max(last_ns);
            self.comes_last_ns[usize::from(gateway)] = comes_ns;
            self.on_the_way.push((comes_ns, gateway, self.stamp_ns));
            self.deliver(self.stamp_ns);
        }
    }

    fn deliver(&mut self, until_ns: u64) {
        self.on_the_way.sort_by_key(|(comes_ns, ..)| *comes_ns);
        while self.on_the_way.first().is_some_and(|(comes_ns, ..)| *comes_ns <= until_ns) {
            let (comes_ns, gateway, stamp_ns) = self.on_the_way.remove(0);
            self.world.runs_until(comes_ns);
            let place = &mut self.next[usize::from(gateway)];
            // Each gateway serves a session.
            let ordinal = ordinal(u64::from(gateway) + 1, *place);
            *place += 1;
            self.world.comes(comes_ns, gateway, Stamp::Gateway(stamp_ns), ordinal, 1);
        }
    }

    fn figures(&self, gateway: u16) -> GatewayFigures {
        *self.world.figures().gateways.iter().find(|figures| figures.gateway == GatewayId(gateway)).unwrap()
    }
}

#[test]
fn a_gateway_that_is_far_away_is_on_time_within_the_target() {
    let mut cloud = Cloud::new();
    for _ in 0..8 {
        cloud.world.intake.on_round_trip(GatewayId(FAR), 2 * FAR_NS);
    }
    cloud.send(300_000);
    let before = cloud.figures(FAR);
    cloud.send(400_000);
    let after = cloud.figures(FAR);
    assert_eq!(after.standing, Standing::Fits);
    let (judged, unfair) = (after.steering.judged - before.steering.judged, after.steering.unfair - before.steering.unfair);
    assert!(judged > 3_500, "{judged}");
    assert!(unfair * 1_000 <= judged * 13, "{unfair} of {judged} are overtaken, the target is one of a hundred");
    assert_eq!(cloud.world.figures().worst, Some(GatewayId(FAR)));
    for near in 0..FAR {
        let steering = cloud.figures(near).steering;
        assert!(steering.recent <= Ppm(10_000), "{near}: {steering:?}");
    }
}

/// Nobody measured a round trip: as far as the leader knows its clock is off by 5 ms.
#[test]
fn a_gateway_that_only_seems_far_away_is_an_outlier_and_delays_nobody() {
    let mut cloud = Cloud::new();
    cloud.send(100_000);
    assert_eq!(cloud.figures(FAR).standing, Standing::Outlier);
    assert!(cloud.world.figures().delay_ns < 3_000_000);
}
