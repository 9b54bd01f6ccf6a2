//! Figure 6a: replicated order submission. The same order through 1 to 5 gateways; how long until the engine has the first copy.
//!
//! A copy goes: participant's send (copies one after the other) – link – gateway (one thread, in order of arrival) – link – the
//! engine's receiver (one thread) – [`Duplicates`]. Gateways straggle now and then, each on its own: that is what copies help
//! against. What the participant, or the receiver, is late with hits all copies alike. A second run has independent links: nothing
//! hits copies alike, and each gateway's link to the engine has a delay of its own injected ([`Disturbance::StepsApart`]).
//!
//! Fitted to the published run with one copy: how often and how long gateways, and all copies together, straggle. Two to five
//! copies are the model's own answer, except for the receiver's time for a copy, which is the processor's cost that the published
//! text names as the reason for the rise at five: [`Costs::receive_ns`].

use std::path::Path;

use walras_fair_access::duplicates::{Copy, DuplicateSettings, Duplicates};
use walras_types::{SessionId, SessionSeq};

use crate::draw::Draw;
use crate::network::{GATEWAYS, Network, Source};
use crate::workload::{Disturbance, LinkId, PARTICIPANTS, Workload};

/// What copies cost, and what makes them late.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Of one hop: encoding, ZeroMQ, threads.
    pub software_ns: f64,
    /// A participant's time for sending a copy.
    pub send_ns: f64,
    /// A gateway's for checking, stamping and passing one on.
    pub gateway_ns: f64,
    /// The receiver's time for a copy.
    pub receive_ns: f64,
    /// Share of time in which a gateway straggles; exponential extra then.
    pub gateway_straggle: (f64, f64),
    /// The same of what hits all copies of a participant alike.
    pub common_straggle: (f64, f64),
}

impl Costs {
    /// As fitted.
    pub const FITTED: Self = Self {
        software_ns: 60_000.0,
        send_ns: 8_000.0,
        gateway_ns: 38_000.0,
        receive_ns: 7_000.0,
        gateway_straggle: (0.008, 300_000.0),
        common_straggle: (0.006, 215_000.0),
    };

    /// The same, where nothing hits all copies of a participant alike.
    pub const INDEPENDENT: Self = Self { common_straggle: (0.0, 0.0), ..Self::FITTED };
}

/// How long a state of straggling lasts.
const EPISODE_NS: u64 = 10_000_000;

/// Published, microseconds: p50, p99, p99.9 by copies.
pub const PUBLISHED: [(f64, f64, f64); 5] =
    [(365.0, 678.0, 1_096.0), (321.0, 508.0, 729.0), (309.0, 483.0, 658.0), (320.0, 518.0, 770.0), (322.0, 577.0, 1_044.0)];

/// Of one number of copies.
#[derive(Clone, Copy, Debug)]
pub struct Submission {
    /// Copies.
    pub copies: usize,
    /// Microseconds.
    pub p50_us: f64,
    /// Microseconds.
    pub p99_us: f64,
    /// Microseconds.
    pub p999_us: f64,
    /// Orders that the engine took.
    pub first: u64,
    /// Copies it dropped.
    pub duplicates: u64,
    /// Orders that never arrived.
    pub lost: u64,
}

/// A gateway that stops at a time and passes nothing on from then.
#[derive(Clone, Copy, Debug)]
pub struct Crash {
    /// The gateway.
    pub gateway: usize,
    /// When, in nanoseconds of the clocks.
    pub at_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Copied {
    at_ns: u64,
    sent_ns: u64,
    participant: u16,
    gateway: u16,
    seq: u64,
}

/// Whether something straggles in an episode: the same answer whenever it is asked.
pub(crate) fn straggle_ns(seed: u64, name: u64, at_ns: u64, (share, mean_ns): (f64, f64), draw: &mut Draw) -> f64 {
    let mut of_episode = Draw::new(seed ^ name.wrapping_mul(0x9e37_79b9), at_ns / EPISODE_NS);
    if of_episode.unit() < share { draw.exponential(mean_ns) } else { 0.0 }
}

/// Sends all orders with so many copies each.
#[must_use]
pub fn submit(
    workload: &Workload,
    network: [&Network; 2],
    (costs, disturbance): (&Costs, Disturbance),
    copies: usize,
    crash: Option<Crash>,
) -> Submission {
    let mut at_gateways = sent(workload, network[0], costs, copies);
    let orders = (at_gateways.len() / copies) as u64;
    at_gateways.sort_unstable_by_key(|copy| (copy.at_ns, copy.participant, copy.seq, copy.gateway));
    let mut draw = Draw::new(workload.seed, 32);
    let mut free_ns = [0_u64; GATEWAYS];
    let mut link_ns = [0_u64; GATEWAYS];
    let mut at_engine: Vec<Copied> = Vec::with_capacity(at_gateways.len());
    for copy in at_gateways {
        let gateway = usize::from(copy.gateway);
        let begun_ns = copy.at_ns.max(free_ns[gateway]);
        let extra_ns = straggle_ns(workload.seed, 100 + gateway as u64, begun_ns, costs.gateway_straggle, &mut draw);
        free_ns[gateway] = begun_ns + costs.gateway_ns as u64;
        let gone_ns = free_ns[gateway] + extra_ns as u64;
        if crash.is_some_and(|crash| crash.gateway == gateway && gone_ns >= crash.at_ns) {
            continue;
        }
        let injected_ns = disturbance.at_ns(LinkId::inbound(gateway), gone_ns - workload.lead_ns);
        let arrived_ns = gone_ns + injected_ns + (costs.software_ns + network[1].transit_ns(gateway, gone_ns, &mut draw)) as u64;
        link_ns[gateway] = link_ns[gateway].max(arrived_ns);
        at_engine.push(Copied { at_ns: link_ns[gateway], ..copy });
    }
    at_engine.sort_unstable_by_key(|copy| (copy.at_ns, copy.participant, copy.seq, copy.gateway));
    received(at_engine, orders, workload, costs, copies)
}

fn sent(workload: &Workload, network: &Network, costs: &Costs, copies: usize) -> Vec<Copied> {
    let mut draw = Draw::new(workload.seed, 31);
    let mut seqs = [0_u64; PARTICIPANTS];
    let mut all = Vec::with_capacity(workload.expected_orders() * copies);
    let mut at = workload.lead_ns as f64;
    while let Some(next) = workload.next_order_ns(&mut draw, at) {
        at = next;
        let sent_ns = at as u64;
        let participant = draw.below(PARTICIPANTS);
        seqs[participant] += 1;
        let common_ns = straggle_ns(workload.seed, 200 + participant as u64, sent_ns, costs.common_straggle, &mut draw);
        for copy in 0..copies {
            // Spread, so that participants of one gateway do not share all others.
            let gateway = (participant + copy * (1 + participant / GATEWAYS)) % GATEWAYS;
            let left_ns = at + common_ns + costs.send_ns * (copy + 1) as f64;
            let transit_ns = costs.software_ns + network.transit_ns(gateway, sent_ns, &mut draw);
            let (participant, gateway) = (participant as u16, gateway as u16);
            let at_ns = (left_ns + transit_ns) as u64;
            all.push(Copied { at_ns, sent_ns, participant, gateway, seq: seqs[usize::from(participant)] });
        }
    }
    all
}

fn received(at_engine: Vec<Copied>, orders: u64, workload: &Workload, costs: &Costs, copies: usize) -> Submission {
    let mut duplicates =
        Duplicates::new(DuplicateSettings { sessions_max: PARTICIPANTS, window: 1_024, digest_key: workload.seed });
    for session in 0..PARTICIPANTS as u64 {
        duplicates.open(SessionId(session), SessionSeq(0)).expect("as many sessions as participants");
    }
    let mut free_ns = 0_u64;
    let mut latencies_us = Vec::with_capacity(at_engine.len() / copies);
    for copy in at_engine {
        free_ns = free_ns.max(copy.at_ns) + costs.receive_ns as u64;
        let digest = duplicates.digest(&copy.seq.to_le_bytes());
        let judged = duplicates.judge(SessionId(u64::from(copy.participant)), SessionSeq(copy.seq), digest);
        if judged == Copy::First {
            latencies_us.push((free_ns - copy.sent_ns) as f64 / 1_000.0);
        }
    }
    latencies_us.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| latencies_us.get(((latencies_us.len().max(1) - 1) as f64 * share) as usize).copied().unwrap_or(0.0);
    let totals = duplicates.totals();
    Submission {
        copies,
        p50_us: at(0.5),
        p99_us: at(0.99),
        p999_us: at(0.999),
        first: totals.first,
        duplicates: totals.duplicates,
        lost: orders - totals.first,
    }
}

/// All numbers of copies, and a gateway that dies half way through, with one copy and with two.
#[derive(Clone, Debug)]
pub struct Replicated {
    /// Where the network's delays come from.
    pub source: Source,
    /// By copies, from 1.
    pub by_copies: Vec<Submission>,
    /// The same over links that are independent of each other.
    pub apart: Vec<Submission>,
    /// One copy, then two.
    pub with_crash: [Submission; 2],
}

/// Runs figure 6a, and C9: what is lost when a gateway dies.
///
/// # Errors
/// If the shared data are there but cannot be parsed.
pub fn run(workload: &Workload, data: &Path) -> anyhow::Result<Replicated> {
    let networks = [Network::load(data, workload.seed, 3)?, Network::load(data, workload.seed, 1)?];
    let submit = |given, copies, crash| submit(workload, [&networks[0], &networks[1]], given, copies, crash);
    let (fitted, apart) = ((&Costs::FITTED, Disturbance::None), (&Costs::INDEPENDENT, Disturbance::StepsApart));
    let crash = Some(Crash { gateway: 3, at_ns: workload.lead_ns + workload.duration_ns / 2 });
    Ok(Replicated {
        source: networks[0].source,
        by_copies: (1..=PUBLISHED.len()).map(|copies| submit(fitted, copies, None)).collect(),
        apart: (1..=PUBLISHED.len()).map(|copies| submit(apart, copies, None)).collect(),
        with_crash: [submit(fitted, 1, crash), submit(fitted, 2, crash)],
    })
}
