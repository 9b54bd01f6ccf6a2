//! Many senders at once to one receive queue that has a bound: reports of delays to the sender (appendix B), and orders to the engine
//! (the paper's first version: 1.58 % lost straight, 0.68 % over two relays).

use walras_random::Random;

use crate::Extent;
use crate::network::{Network, exponential_ns};
use crate::rows::{Check, Findings, Row};

/// A receive queue: bounded, and served one packet after the other.
#[derive(Debug)]
struct Queue {
    room: usize,
    service_ns: u64,
    /// When those that are in it are served.
    served_ns: std::collections::VecDeque<u64>,
}

impl Queue {
    const fn new(room: usize, service_ns: u64) -> Self {
        Self { room, service_ns, served_ns: std::collections::VecDeque::new() }
    }

    /// A packet arrives. When it is served; `None` if it is lost. Arrivals come in the order of time.
    fn arrives(&mut self, now_ns: u64) -> Option<u64> {
        while self.served_ns.front().is_some_and(|served_ns| *served_ns <= now_ns) {
            self.served_ns.pop_front();
        }
        if self.served_ns.len() >= self.room {
            return None;
        }
        let served_ns = now_ns.max(self.served_ns.back().copied().unwrap_or(0)) + self.service_ns;
        self.served_ns.push_back(served_ns);
        Some(served_ns)
    }
}

/// What a machine needs to take a packet in: a slow path of 2 us.
const TAKE_NS: u64 = 2_000;

/// Share of packets lost, in percent, where so many senders report at the same time.
fn lost_percent(network: &Network, senders: u32, room: usize, rounds: u64) -> f64 {
    let (random, mut lost) = (&mut Random::new(26), 0_u64);
    for round in 0..rounds {
        let now_ns = 1_000_000_000 + round * 100_000_000;
        let mut arrivals: Vec<u64> =
            (0..senders).map(|sender| now_ns + network.delay_ns(network.link(0, 0, sender), now_ns, random)).collect();
        arrivals.sort_unstable();
        let mut queue = Queue::new(room, TAKE_NS);
        lost += arrivals.iter().filter(|at_ns| queue.arrives(**at_ns).is_none()).count() as u64;
    }
    100.0 * lost as f64 / (rounds * u64::from(senders)) as f64
}

/// Reports of 100 receivers: straight to the sender, and up the tree of ten relays with ten children each.
#[must_use]
pub fn deadlines(network: &Network, extent: Extent) -> Findings {
    let rounds = extent.of(2_000, 100);
    let mut rows = Vec::new();
    // How long the receive queue was is not published.
    for room in [16, 32, 48, 64] {
        let (direct, tree) = (lost_percent(network, 100, room, rounds), lost_percent(network, 10, room, rounds));
        let check = if room == 32 { Check::AtLeast(20.0) } else { Check::Shown };
        let what = format!("queue of {room}: reports lost, 100 straight to the sender");
        rows.push(Row { claim: "J26", what, published: Some(20.0), ours: direct, unit: "percent", check });
        let what = format!("queue of {room}: reports lost, 10 children each");
        rows.push(Row::own("J26", what, tree, "percent", Check::Within(0.0, 0.0)));
    }
    Findings::table("deadlines", "reports of delays to the sender", rows)
}

/// Orders a participant sends at once, when market data makes it: geometric, with this mean.
const AT_ONCE: f64 = 6.0;
/// Between two orders of a participant that sends several at once, and of a relay: a call for each.
const APART_NS: u64 = 1_300;

/// Ten participants with 5,000 orders/s each to an engine whose receive queue has a bound, straight and over two relays with a queue
/// of the same length.
#[must_use]
pub fn orders(network: &Network, extent: Extent) -> Findings {
    let rounds = extent.of(200_000, 5_000);
    let mut rows = Vec::new();
    for (room, is_judged) in [(40, false), (52, true), (64, false)] {
        let (straight, relayed) = (orders_lost(network, room, false, rounds), orders_lost(network, room, true, rounds));
        let what = |how: &str| format!("queue of {room}: orders lost, {how}");
        rows.push(Row::new("J17", what("straight"), 1.58, straight, "percent", Check::Shown));
        rows.push(Row::new("J17", what("over two relays"), 0.68, relayed, "percent", Check::Shown));
        let check = if is_judged { Check::near(0.43, 0.15) } else { Check::Shown };
        rows.push(Row::new("J17", what("over relays to straight"), 0.43, relayed / straight, "ratio", check));
    }
    Findings::table("incast", "orders lost at receive queues", rows)
}

fn orders_lost(network: &Network, room: usize, is_relayed: bool, rounds: u64) -> f64 {
    let random = &mut Random::new(17);
    let (mut sent, mut lost) = (0_u64, 0_u64);
    for round in 0..rounds {
        // All have the market data at the same time; a round is far from the next.
        let now_ns = 1_000_000_000 + round * 1_000_000;
        let mut by_relay: [Vec<u64>; 2] = Default::default();
        for participant in 0..10_u32 {
            let count = exponential_ns(random, AT_ONCE);
            let relay = participant as usize % 2;
            for at in 0..count {
                let left_ns = now_ns + at * APART_NS;
                let link = network.link(1, relay as u32, participant);
                by_relay[relay].push(left_ns + network.delay_ns(link, left_ns, random));
            }
            sent += count;
        }
        let mut engine: Vec<u64> = if is_relayed {
            by_relay
                .iter_mut()
                .enumerate()
                .flat_map(|(relay, arrivals)| {
                    arrivals.sort_unstable();
                    let mut queue = Queue::new(room, TAKE_NS);
                    let passed: Vec<u64> = arrivals.iter().filter_map(|at_ns| queue.arrives(*at_ns)).collect();
                    lost += (arrivals.len() - passed.len()) as u64;
                    let link = network.link(0, 0, relay as u32);
                    passed.into_iter().map(|at_ns| at_ns + network.delay_ns(link, at_ns, random)).collect::<Vec<_>>()
                })
                .collect()
        } else {
            by_relay.concat()
        };
        engine.sort_unstable();
        let mut queue = Queue::new(room, TAKE_NS);
        lost += engine.iter().filter(|at_ns| queue.arrives(**at_ns).is_none()).count() as u64;
    }
    100.0 * lost as f64 / sent.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_loses_what_it_has_no_room_for() {
        let mut queue = Queue::new(2, 10);
        let served: Vec<Option<u64>> = [0, 1, 2, 10, 19, 20, 50].into_iter().map(|at_ns| queue.arrives(at_ns)).collect();
        assert_eq!(served, [Some(10), Some(20), None, Some(30), None, Some(40), Some(60)]);
    }
}
