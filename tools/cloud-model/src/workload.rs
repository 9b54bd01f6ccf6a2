//! The workload, and the disturbance of the network.

use crate::draw::Draw;
use crate::network::GATEWAYS;

/// Market participants, three at each gateway.
pub const PARTICIPANTS: usize = 3 * GATEWAYS;

/// Load and what is fitted to the published runs.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Of every draw.
    pub seed: u64,
    /// Orders of all participants.
    pub orders_per_s: f64,
    /// Simulated.
    pub duration_ns: u64,
    /// The clocks' reading at the beginning.
    pub lead_ns: u64,
    /// Software at both ends of a message in: encoding, ZeroMQ, threads. Fitted together with `service_ns`: the published queueing
    /// of static delays that cover everything is 130 us below the delay, and includes waiting for the engine.
    pub software_in_ns: f64,
    /// Of a message out, which goes to all gateways. Fitted: 275 us below.
    pub software_out_ns: f64,
    /// The engine's time for an order, always the same. Fitted: 8.4 % unfair with resequencing at d_s 0, where only waiting for the
    /// engine gives orders the time to be sorted. (The published shard is full at 22,000 orders/s.)
    pub service_ns: f64,
    /// Standard deviation of a gateway's clock; published: p99 159 ns.
    pub clock_error_ns: f64,
}

impl Workload {
    /// As published.
    pub const FULL: Self = Self {
        seed: 2021,
        orders_per_s: 22_000.0,
        duration_ns: 300_000_000_000,
        lead_ns: 1_000_000_000,
        software_in_ns: 80_000.0,
        software_out_ns: 160_000.0,
        service_ns: 38_500.0,
        clock_error_ns: 62.0,
    };

    /// For tests: each of the disturbance's delays once.
    pub const SMALL: Self = Self { duration_ns: 18_000_000_000, ..Self::FULL };

    /// Orders, a few more.
    #[must_use]
    pub fn expected_orders(&self) -> usize {
        (self.orders_per_s * self.duration_ns as f64 / 1e9 * 1.01) as usize + 1_000
    }

    /// When the next order is sent after a time; `None` where all are. The first comes after `lead_ns`.
    pub fn next_order_ns(&self, draw: &mut Draw, after_ns: f64) -> Option<f64> {
        let next_ns = after_ns + draw.exponential(1e9 / self.orders_per_s);
        ((next_ns as u64) < self.lead_ns + self.duration_ns).then_some(next_ns)
    }
}

/// Delay injected between gateways and the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// None: figure 4.
    None,
    /// 0, 400, 200 us in turn, six seconds each, all links alike: figure 5.
    Steps,
    /// One of the same delays on each link by itself: another draw every six seconds, from a moment of the link's own.
    StepsApart,
}

/// How long an injected delay stays.
const STEP_NS: u64 = 6_000_000_000;
const STEPS_NS: [u64; 3] = [0, 400_000, 200_000];

impl Disturbance {
    /// On a link at a time since the beginning.
    #[must_use]
    pub fn at_ns(self, link: LinkId, since_ns: u64) -> u64 {
        match self {
            Self::None => 0,
            Self::Steps => STEPS_NS[(since_ns / STEP_NS % 3) as usize],
            Self::StepsApart => {
                let moment_ns = Draw::new(link.0, 0).below(STEP_NS as usize) as u64;
                let step = (since_ns + moment_ns) / STEP_NS;
                STEPS_NS[Draw::new(link.0, 1 + step).below(STEPS_NS.len())]
            }
        }
    }
}

/// A link of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkId(u64);

impl LinkId {
    /// From a gateway to the engine.
    #[must_use]
    pub fn inbound(gateway: usize) -> Self {
        Self(gateway as u64)
    }

    /// From the engine to a gateway.
    #[must_use]
    pub fn outbound(gateway: usize) -> Self {
        Self((GATEWAYS + gateway) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apart_each_link_has_delays_of_its_own() {
        let at = |gateway, second: u64| Disturbance::StepsApart.at_ns(LinkId::inbound(gateway), second * 1_000_000_000);
        let of = |gateway| (0..600).map(|second| at(gateway, second)).collect::<Vec<_>>();
        for gateway in 0..GATEWAYS {
            let ours = of(gateway);
            for step in STEPS_NS {
                let share = ours.iter().filter(|ns| **ns == step).count();
                assert!((120..280).contains(&share), "gateway {gateway}: {step} ns in {share} of 600 seconds");
            }
            // A third of the time two links agree by chance.
            let other = of((gateway + 1) % GATEWAYS);
            let alike = ours.iter().zip(&other).filter(|(one, other)| one == other).count();
            assert!((100..320).contains(&alike), "gateway {gateway} agrees with the next in {alike} of 600 seconds");
        }
    }
}
