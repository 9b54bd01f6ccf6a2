//! The whole inbound path with one misbehaving gateway: what it costs the others.

use walras_fair_access::GatewayId;
use walras_fair_access::delay::{DelayBounds, DelayControl, DelaySettings, Ppm, Tracking};
use walras_fair_access::outliers::{OutlierSettings, Outliers, Standing};
use walras_fair_access::resequence::{Arrival, GatewayCounts, Resequencer, ResequencerSettings, Stamp};
use walras_types::{SessionId, SessionSeq};

const GATEWAYS: u16 = 8;
const LIAR: u16 = 5;
const GAP_NS: u64 = 20_000;
const ORDERS: u64 = 120_000;

/// The cost to the other gateways.
struct Borne {
    unfair_ppm: u64,
    held_mean_ns: u64,
    /// The liar's own.
    liar_held_mean_ns: u64,
    delay_ns: u64,
    liar: GatewayCounts,
    liar_standing: Standing,
}

struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Orders come 60 to 220 us after they reached the edge. From a third on the liar's clock is off.
fn run(off_ns: impl Fn(u64) -> i64) -> Borne {
    let settings =
        ResequencerSettings { gateways: GATEWAYS, future_max_ns: 5_000, past_max_ns: 10_000_000, held_per_gateway_max: 1_000 };
    let bounds = DelayBounds { min_ns: 0, max_ns: 2_000_000, start_ns: 200_000 };
    let tracking = Tracking { bounds, target: Ppm(20_000), step_ns: 2_000, level_window: 127 };
    let mut control = DelayControl::new(DelaySettings::Tracking(tracking));
    let mut outliers = Outliers::new(OutlierSettings {
        gateways: GATEWAYS,
        apart_max_ns: 100_000,
        round_trip_max_ns: 0,
        window: 63,
        samples_per_look: 16,
    });
    let mut hold = Resequencer::new(settings, control.delay_ns());
    let mut draw = Draw(7);
    let mut arrivals: Vec<(u64, u16, u64, i64)> = (0..ORDERS)
        .map(|order| {
            let gateway = u16::try_from(draw.below(u64::from(GATEWAYS))).expect("below the number of gateways");
            let edge_ns = 1_000_000_000 + order * GAP_NS + draw.below(GAP_NS);
            let off_ns = if gateway == LIAR && order > ORDERS / 3 { off_ns(order) } else { 0 };
            (edge_ns + 60_000 + draw.below(160_000), gateway, edge_ns, off_ns)
        })
        .collect();
    arrivals.sort_unstable();
    let (mut orders, mut unfair, mut held_ns, mut number) = (0, 0, 0, 0);
    let (mut liar_orders, mut liar_held_ns) = (0, 0);
    for (now_ns, gateway, edge_ns, off_ns) in arrivals {
        while let Some(due_ns) = hold.next_due_ns().filter(|due_ns| *due_ns <= now_ns) {
            let released = hold.pop_due(due_ns).expect("it is due");
            if outliers.standing(released.gateway) == Some(Standing::Fits) {
                control.on_verdict(released.sequence.is_unfair().into());
                hold.set_delay_ns(control.delay_ns());
            }
            if released.gateway.0 != LIAR && number > ORDERS / 2 {
                orders += 1;
                // An order of the lying gateway in between does not wrong the order after it; only orders that left too late count.
                unfair += u64::from(released.late_ns > 0);
                held_ns += due_ns - released.arrived_ns;
            } else if number > ORDERS / 2 {
                liar_orders += 1;
                liar_held_ns += due_ns - released.arrived_ns;
            }
        }
        number += 1;
        let stamp_ns = edge_ns.saturating_add_signed(off_ns);
        let transit_ns = now_ns.cast_signed() - stamp_ns.cast_signed();
        let stamp = match outliers.on_transit(now_ns, GatewayId(gateway), transit_ns) {
            Standing::Outlier => Stamp::OnArrival,
            Standing::Fits => {
                control.on_transit(transit_ns);
                hold.set_delay_ns(control.delay_ns());
                Stamp::Gateway(stamp_ns)
            }
        };
        let (session, session_seq) = (SessionId(u64::from(gateway)), SessionSeq(number));
        let arrival = Arrival { gateway: GatewayId(gateway), session, session_seq, stamp, order: () };
        hold.push(now_ns, arrival).expect("there is room");
    }
    Borne {
        unfair_ppm: unfair * 1_000_000 / orders,
        held_mean_ns: held_ns / orders,
        liar_held_mean_ns: liar_held_ns / liar_orders,
        delay_ns: control.delay_ns(),
        liar: *hold.counts(GatewayId(LIAR)).expect("configured"),
        liar_standing: outliers.standing(GatewayId(LIAR)).expect("configured"),
    }
}

#[test]
fn a_clock_that_is_off_costs_its_own_gateway_alone() {
    let honest = run(|_| 0);
    assert_eq!(honest.liar_standing, Standing::Fits);
    type Off = fn(u64) -> i64;
    let lies: [(&str, Off); 4] = [
        ("it jumped back", |_| -700_000),
        ("it jumped ahead", |_| 700_000),
        ("it drifts", |order| -(order.cast_signed() * 20 - ORDERS.cast_signed() * 20 / 3)),
        ("far in the future", |_| i64::MAX / 4),
    ];
    for (name, off_ns) in lies {
        let borne = run(off_ns);
        assert_eq!(borne.liar_standing, Standing::Outlier, "{name}");
        assert!(borne.held_mean_ns < honest.held_mean_ns + 15_000, "{name}: held {} {}", borne.held_mean_ns, honest.held_mean_ns);
        assert!(borne.delay_ns < honest.delay_ns + 15_000, "{name}: d_s {} {}", borne.delay_ns, honest.delay_ns);
        assert!(borne.unfair_ppm < honest.unfair_ppm + 10_000, "{name}: late {} {}", borne.unfair_ppm, honest.unfair_ppm);
        // The lying gateway gains nothing: without trusted stamps its orders wait from their arrival.
        assert!(borne.liar_held_mean_ns >= honest.held_mean_ns, "{name}: {}", borne.liar_held_mean_ns);
        assert!(borne.liar.unstamped > borne.liar.orders / 3, "{name}: {:?}", borne.liar);
    }
}
