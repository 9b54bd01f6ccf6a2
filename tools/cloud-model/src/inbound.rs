//! Inbound orders: stamped by 16 gateways, held by the sequencer, processed by an engine one at a time.

use walras_fair_access::GatewayId;
use walras_fair_access::delay::{DelayControl, DelaySettings};
use walras_fair_access::resequence::{Arrival, Released, Resequencer, ResequencerSettings, Stamp};
use walras_types::{SessionId, SessionSeq};

use crate::draw::Draw;
use crate::network::{GATEWAYS, Network};
use crate::policy::Outcome;
use crate::workload::{Disturbance, LinkId, PARTICIPANTS, Workload};

/// An order as it reaches the sequencer.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Arrival time.
    pub arrived_ns: u64,
    /// Its stamp, by its gateway's clock.
    pub stamp_ns: u64,
    /// That gateway.
    pub gateway: u16,
    /// Who sent it.
    pub participant: u16,
    /// The participant's number for it.
    pub session_seq: u32,
}

/// All orders, by arrival.
#[must_use]
pub fn orders(workload: &Workload, network: &Network, disturbance: Disturbance) -> Vec<Order> {
    let mut draw = Draw::new(workload.seed, 11);
    let clock_errors_ns: Vec<f64> = (0..GATEWAYS).map(|_| workload.clock_error_ns * draw.normal()).collect();
    let mut last_ns = [0_u64; GATEWAYS];
    let mut seqs = [0_u32; PARTICIPANTS];
    let mut orders = Vec::with_capacity(workload.expected_orders());
    let mut at = workload.lead_ns as f64;
    while let Some(next) = workload.next_order_ns(&mut draw, at) {
        at = next;
        let sent_ns = at as u64;
        let participant = draw.below(PARTICIPANTS);
        let gateway = participant % GATEWAYS;
        let transit_ns = workload.software_in_ns + network.transit_ns(gateway, sent_ns, &mut draw);
        let arrived_ns = sent_ns + transit_ns as u64 + disturbance.at_ns(LinkId::inbound(gateway), sent_ns - workload.lead_ns);
        last_ns[gateway] = last_ns[gateway].max(arrived_ns);
        seqs[participant] += 1;
        orders.push(Order {
            arrived_ns: last_ns[gateway],
            stamp_ns: sent_ns.saturating_add_signed(clock_errors_ns[gateway] as i64),
            gateway: gateway as u16,
            participant: participant as u16,
            session_seq: seqs[participant],
        });
    }
    orders.sort_unstable_by_key(|order| (order.arrived_ns, order.stamp_ns, order.gateway, order.participant, order.session_seq));
    orders
}

/// Processes orders in order of arrival, without clocks and hold.
#[must_use]
pub fn without_resequencing(orders: &[Order]) -> Outcome {
    let mut outcome = Outcome::default();
    for pair in orders.windows(2) {
        outcome.add(pair[1].stamp_ns < pair[0].stamp_ns, 0.0);
    }
    outcome
}

/// Processes orders through the product's resequencer and delay control.
#[must_use]
pub fn resequenced(orders: &[Order], settings: DelaySettings, workload: &Workload) -> Outcome {
    let mut run = Run::new(settings, workload, |released: &Released<()>| released.sequence.is_unfair());
    for order in orders {
        run.process_until(order.arrived_ns);
        run.push(order);
    }
    run.process_until(u64::MAX);
    run.outcome
}

pub(crate) const SETTINGS: ResequencerSettings = ResequencerSettings {
    gateways: GATEWAYS as u16,
    future_max_ns: 1_000_000,
    past_max_ns: 1_000_000_000,
    held_per_gateway_max: 1 << 20,
};

/// Orders on their way through the product's hold and delay control.
pub(crate) struct Run {
    pub(crate) hold: Resequencer<()>,
    control: DelayControl,
    service_ns: u64,
    /// Which orders count as out of sequence.
    is_unfair: fn(&Released<()>) -> bool,
    /// When the engine is free.
    free_ns: u64,
    /// When the last message with a watermark came: an order that it lets go leaves no sooner. 0 without watermarks.
    pub(crate) came_ns: u64,
    pub(crate) outcome: Outcome,
}

impl Run {
    pub(crate) fn new(settings: DelaySettings, workload: &Workload, is_unfair: fn(&Released<()>) -> bool) -> Self {
        let (mut hold, control) = (Resequencer::new(SETTINGS, 0), DelayControl::new(settings));
        hold.set_delay_ns(control.delay_ns());
        let (service_ns, outcome) = (workload.service_ns as u64, Outcome::default());
        Self { hold, control, service_ns, is_unfair, free_ns: 0, came_ns: 0, outcome }
    }

    /// An order arrives.
    pub(crate) fn push(&mut self, order: &Order) {
        self.control.on_transit(order.arrived_ns.cast_signed() - order.stamp_ns.cast_signed());
        self.hold.set_delay_ns(self.control.delay_ns());
        let arrival = Arrival {
            gateway: GatewayId(order.gateway),
            session: SessionId(u64::from(order.participant)),
            session_seq: SessionSeq(u64::from(order.session_seq)),
            stamp: Stamp::Gateway(order.stamp_ns),
            order: (),
        };
        self.hold.push(order.arrived_ns, arrival).expect("the hold has room for what comes in a second");
    }

    /// Processes the orders that are due before the next arrival.
    pub(crate) fn process_until(&mut self, arrival_ns: u64) {
        while let Some(due_ns) = self.hold.next_due_ns() {
            let now_ns = due_ns.max(self.free_ns).max(self.came_ns);
            if now_ns > arrival_ns {
                return;
            }
            let released = self.hold.pop_due(now_ns).expect("it is due");
            self.free_ns = now_ns + self.service_ns;
            self.note(now_ns, &released);
        }
    }

    fn note(&mut self, now_ns: u64, released: &Released<()>) {
        let is_unfair = (self.is_unfair)(released);
        self.control.on_verdict(is_unfair.into());
        self.hold.set_delay_ns(self.control.delay_ns());
        self.outcome.add(is_unfair, (now_ns - released.arrived_ns) as f64);
        self.outcome.late += u64::from(released.late_ns > 0);
    }
}
