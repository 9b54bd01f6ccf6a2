//! Outbound market data: a publication goes to all gateways, which hold it until t_M + d_h.

use std::collections::VecDeque;

use walras_fair_access::delay::{DelayControl, DelaySettings};

use crate::draw::Draw;
use crate::network::{GATEWAYS, Network};
use crate::policy::Outcome;
use crate::workload::{Disturbance, LinkId, Workload};

/// Transit time of gateways' reports to the engine, without injected delay.
const REPORT_NS: u64 = 150_000;

struct Run {
    control: DelayControl,
    /// Reports: time of arrival, transit time to the slowest gateway, whether it was unfair.
    reports: VecDeque<(u64, i64, bool)>,
    outcome: Outcome,
}

/// The publications, one per order, the same for all policies.
#[must_use]
pub fn released(network: &Network, disturbance: Disturbance, all: &[DelaySettings], workload: &Workload) -> Vec<Outcome> {
    let mut draw = Draw::new(workload.seed, 21);
    let mut runs: Vec<Run> = all.iter().map(|settings| Run::new(*settings)).collect();
    let mut last_ns = [0_u64; GATEWAYS];
    let mut at = workload.lead_ns as f64;
    while let Some(next) = workload.next_order_ns(&mut draw, at) {
        at = next;
        let made_ns = at as u64;
        let (mut transits_ns, mut slowest) = ([0_u64; GATEWAYS], (0, 0));
        for (gateway, transit_ns) in transits_ns.iter_mut().enumerate() {
            let injected_ns = disturbance.at_ns(LinkId::outbound(gateway), made_ns - workload.lead_ns);
            let link_ns = workload.software_out_ns + network.transit_ns(gateway, made_ns, &mut draw);
            last_ns[gateway] = last_ns[gateway].max(made_ns + link_ns as u64 + injected_ns);
            *transit_ns = last_ns[gateway] - made_ns;
            slowest = slowest.max((*transit_ns, injected_ns));
        }
        let (slowest_ns, injected_ns) = slowest;
        let sum_ns: u64 = transits_ns.iter().sum();
        for run in &mut runs {
            run.publication(made_ns, &transits_ns, slowest_ns, sum_ns, injected_ns);
        }
    }
    runs.iter().map(|run| run.outcome).collect()
}

impl Run {
    fn new(settings: DelaySettings) -> Self {
        Self { control: DelayControl::new(settings), reports: VecDeque::new(), outcome: Outcome::default() }
    }

    fn publication(&mut self, made_ns: u64, transits_ns: &[u64; GATEWAYS], slowest_ns: u64, sum_ns: u64, injected_ns: u64) {
        while let Some((known_ns, transit_ns, is_unfair)) = self.reports.front().copied() {
            if known_ns > made_ns {
                break;
            }
            self.reports.pop_front();
            self.control.on_transit(transit_ns);
            self.control.on_verdict(is_unfair.into());
        }
        let delay_ns = self.control.delay_ns();
        let is_unfair = slowest_ns > delay_ns;
        let held_ns = if is_unfair {
            transits_ns.iter().map(|transit_ns| delay_ns.saturating_sub(*transit_ns)).sum()
        } else {
            GATEWAYS as u64 * delay_ns - sum_ns
        };
        self.outcome.add(is_unfair, held_ns as f64 / GATEWAYS as f64);
        // Reports come by one link each and keep their order.
        let known_ns = made_ns + slowest_ns + REPORT_NS + injected_ns;
        let known_ns = known_ns.max(self.reports.back().map_or(0, |report| report.0));
        self.reports.push_back((known_ns, slowest_ns.cast_signed(), is_unfair));
    }
}
