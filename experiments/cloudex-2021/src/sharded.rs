//! Table 1, simulated: what an order takes to the engine and back, by the number of shards, at the throughput that was published
//! for each.
//!
//! As figure 6a with one copy (`replicated.rs`, and its [`Costs`]): participant – link – gateway, which stamps – link – the shard's
//! receiver. Then our hold of the shard, until d_s after the stamp, its engine, which does one order at a time, and the same way
//! back. Symbols are spread evenly over shards; each has an engine of its own. The portfolio matrix, at which the published system
//! stops scaling, is not simulated: loads are given.
//!
//! Fitted: d_s, which was not published, to the end-to-end latency of one shard. Those of more shards are the model's own answer.

use std::path::Path;

use walras_fair_access::GatewayId;
use walras_fair_access::resequence::{Arrival, Resequencer, ResequencerSettings, Stamp};
use walras_types::{SessionId, SessionSeq};

use crate::draw::Draw;
use crate::network::{GATEWAYS, Network, Source};
use crate::replicated::{Costs, straggle_ns};
use crate::workload::{PARTICIPANTS, Workload};

/// Symbols of the published run.
pub const SYMBOLS: usize = 100;

/// How long orders are held after their stamps; fitted.
pub const DELAY_NS: u64 = 475_000;

/// Published: shards, orders a second, median latency in microseconds to the engine, and to the confirmation.
pub const PUBLISHED: [(usize, f64, f64, f64); 5] = [
    (1, 22_000.0, 365.0, 1_128.0),
    (2, 40_000.0, 402.0, 1_089.0),
    (4, 49_000.0, 401.0, 1_094.0),
    (8, 61_000.0, 390.0, 1_080.0),
    (16, 61_000.0, 395.0, 1_044.0),
];

/// Ours, of a row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Shards.
    pub shards: usize,
    /// Orders of all participants.
    pub orders_per_s: f64,
    /// From the participant to the engine's receiver; median, microseconds.
    pub submission_us: f64,
    /// Until the participant has the confirmation.
    pub end_to_end_us: f64,
    /// Orders confirmed.
    pub orders: u64,
}

#[derive(Clone, Copy, Debug)]
struct Order {
    sent_ns: u64,
    /// At the gateway.
    stamp_ns: u64,
    /// At the shard, before its receiver has looked at it.
    arrived_ns: u64,
    participant: u16,
    gateway: u16,
    seq: u64,
}

/// All rows.
///
/// # Errors
/// If the shared data are there but cannot be parsed.
pub fn run(workload: &Workload, data: &Path) -> anyhow::Result<(Vec<Row>, Source)> {
    let way = |direction| Network::load(data, workload.seed, direction);
    // To the gateway, to the engine, and back.
    let ways = [way(3)?, way(1)?, way(2)?, way(4)?];
    let rows = PUBLISHED.iter().map(|(shards, orders_per_s, ..)| row(workload, &ways, *shards, *orders_per_s)).collect();
    Ok((rows, ways[0].source))
}

fn row(workload: &Workload, ways: &[Network; 4], shards: usize, orders_per_s: f64) -> Row {
    let workload = Workload { orders_per_s, ..*workload };
    let mut latencies = Latencies { draw: Draw::new(workload.seed, 52), submissions_us: Vec::new(), round_trips_us: Vec::new() };
    for orders in &sent(&workload, ways, shards) {
        shard(orders, &workload, ways, &mut latencies);
    }
    let Latencies { submissions_us, round_trips_us, .. } = &mut latencies;
    let orders = round_trips_us.len() as u64;
    Row { shards, orders_per_s, submission_us: median(submissions_us), end_to_end_us: median(round_trips_us), orders }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// By shard, in the order of arrival.
fn sent(workload: &Workload, ways: &[Network; 4], shards: usize) -> Vec<Vec<Order>> {
    let costs = Costs::FITTED;
    let mut draw = Draw::new(workload.seed, 51);
    let mut seqs = [0_u64; PARTICIPANTS];
    let mut at = workload.lead_ns as f64;
    let mut at_gateways = Vec::with_capacity(workload.expected_orders());
    while let Some(next) = workload.next_order_ns(&mut draw, at) {
        at = next;
        let sent_ns = at as u64;
        let participant = draw.below(PARTICIPANTS);
        let gateway = participant % GATEWAYS;
        let shard = draw.below(SYMBOLS) % shards;
        seqs[participant] += 1;
        let name = 200 + participant as u64;
        let late_ns = straggle_ns(workload.seed, name, sent_ns, costs.common_straggle, &mut draw);
        let transit_ns = costs.send_ns + late_ns + costs.software_ns + ways[0].transit_ns(gateway, sent_ns, &mut draw);
        let stamp_ns = sent_ns + transit_ns as u64;
        let (participant, gateway) = (participant as u16, gateway as u16);
        at_gateways
            .push((shard, Order { sent_ns, stamp_ns, arrived_ns: 0, participant, gateway, seq: seqs[usize::from(participant)] }));
    }
    at_gateways.sort_unstable_by_key(|(_, order)| (order.stamp_ns, order.participant, order.seq));
    let (mut free_ns, mut link_ns) = ([0_u64; GATEWAYS], vec![[0_u64; GATEWAYS]; shards]);
    let mut by_shard = vec![Vec::new(); shards];
    for (shard, order) in at_gateways {
        let gateway = usize::from(order.gateway);
        let begun_ns = order.stamp_ns.max(free_ns[gateway]);
        free_ns[gateway] = begun_ns + costs.gateway_ns as u64;
        let late_ns = straggle_ns(workload.seed, 100 + gateway as u64, begun_ns, costs.gateway_straggle, &mut draw);
        let gone_ns = free_ns[gateway] + late_ns as u64;
        let arrived_ns = gone_ns + (costs.software_ns + ways[1].transit_ns(gateway, gone_ns, &mut draw)) as u64;
        let link_ns = &mut link_ns[shard][gateway];
        *link_ns = arrived_ns.max(*link_ns);
        by_shard[shard].push(Order { arrived_ns: *link_ns, ..order });
    }
    for orders in &mut by_shard {
        orders.sort_unstable_by_key(|order| (order.arrived_ns, order.participant, order.seq));
    }
    by_shard
}

struct Latencies {
    draw: Draw,
    submissions_us: Vec<f64>,
    round_trips_us: Vec<f64>,
}

/// The receiver, the hold and the engine of one shard.
fn shard(orders: &[Order], workload: &Workload, ways: &[Network; 4], latencies: &mut Latencies) {
    let settings = ResequencerSettings {
        gateways: GATEWAYS as u16,
        future_max_ns: 1_000_000,
        past_max_ns: 1_000_000_000,
        held_per_gateway_max: 1 << 20,
    };
    let mut hold: Resequencer<Order> = Resequencer::new(settings, DELAY_NS);
    let (mut received_ns, mut done_ns) = (0_u64, 0_u64);
    let last = orders.last().map(|order| (u64::MAX, *order));
    let arrivals = orders.iter().map(|order| (order.arrived_ns, *order)).chain(last);
    for (arrived_ns, order) in arrivals {
        // What is due before it arrives.
        while let Some(due_ns) = hold.next_due_ns() {
            let now_ns = due_ns.max(done_ns);
            if now_ns > arrived_ns {
                break;
            }
            let released = hold.pop_due(now_ns).expect("it is due");
            done_ns = now_ns + workload.service_ns as u64;
            latencies.confirmed(done_ns, &released.order, ways);
        }
        if arrived_ns == u64::MAX {
            return;
        }
        received_ns = received_ns.max(arrived_ns) + Costs::FITTED.receive_ns as u64;
        latencies.submissions_us.push((received_ns - order.sent_ns) as f64 / 1_000.0);
        let arrival = Arrival {
            gateway: GatewayId(order.gateway),
            session: SessionId(order.participant.into()),
            session_seq: SessionSeq(order.seq),
            stamp: Stamp::Gateway(order.stamp_ns),
            order,
        };
        hold.push(received_ns, arrival).expect("the hold has room for what comes in a second");
    }
}

impl Latencies {
    /// The same way back.
    fn confirmed(&mut self, done_ns: u64, order: &Order, ways: &[Network; 4]) {
        let (costs, gateway) = (Costs::FITTED, usize::from(order.gateway));
        let software_ns = costs.send_ns + 2.0 * costs.software_ns + costs.gateway_ns;
        let links_ns = ways[2].transit_ns(gateway, done_ns, &mut self.draw) + ways[3].transit_ns(gateway, done_ns, &mut self.draw);
        self.round_trips_us.push(((done_ns - order.sent_ns) as f64 + software_ns + links_ns) / 1_000.0);
    }
}
