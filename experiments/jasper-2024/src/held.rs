//! A multicast with hold and release: receivers with clocks of their own report their delays up the tree, the sender sets deadlines,
//! and receivers hold what comes early. Deadlines and reports are those of `walras_relay::deadline`, which a venue does not use: it steers
//! as [`crate::product`] does.

use walras_event_queue::EventQueue;
use walras_random::Random;
use walras_relay::deadline::{Deadlines, Gather, ReceiverDelays, Report, ReportSettings, Rule};
use walras_relay::tree::Tree;

use crate::latency::BEGIN_NS;
use crate::multicast::{Flight, Setup, parents_of};
use crate::network::Network;
use crate::released::{self, Receivers, Released};

/// Between two reports of a node. The paper does not say.
const INTERVAL_NS: u64 = 50_000_000;

/// What reports say, and how often.
const REPORTS: ReportSettings = ReportSettings {
    interval_ns: INTERVAL_NS,
    patience_ns: 3 * INTERVAL_NS,
    silent_ns: 10 * INTERVAL_NS,
    ..ReportSettings::PUBLISHED
};

/// When nodes report, and reports under way. Nodes nearer to the receivers report earlier in an interval.
enum Moment {
    /// All nodes of a layer report.
    Reports { layer: usize },
    /// The sender ends an interval.
    IntervalEnds,
    /// A report reaches a node of the layer above.
    Reaches { layer: usize, parent: u32, child: usize, report: Report },
}

/// The sender's and all receivers' ends, and the reports.
struct Ends<'n> {
    network: &'n Network,
    tree: Tree,
    random: Random,
    receivers: Receivers,
    delays: Vec<ReceiverDelays>,
    /// By layer of relays and place.
    gathers: Vec<Vec<Gather>>,
    deadlines: Deadlines,
    moments: EventQueue<Moment>,
}

/// Runs messages at [`RATE`](crate::latency::RATE); `see` gets each that was released at all receivers.
pub fn held(setup: Setup<'_>, rule: Rule, messages: u64, see: impl FnMut(&Released<'_>)) {
    let ends = Ends::new(&setup, rule);
    released::run(setup, ends, messages, see);
}

impl released::Ends for Ends<'_> {
    fn until(&mut self, now_ns: u64) {
        while let Some((at_ns, moment)) = self.moments.pop_until(now_ns) {
            match moment {
                Moment::Reports { layer } => {
                    self.report(at_ns, layer);
                    self.moments.at(at_ns + INTERVAL_NS, moment);
                }
                Moment::IntervalEnds => {
                    self.deadlines.on_interval(at_ns);
                    self.moments.at(at_ns + INTERVAL_NS, moment);
                }
                Moment::Reaches { layer, parent, child, report } => {
                    let taken = match layer {
                        0 => self.deadlines.report(at_ns, child, &report),
                        _ => self.gathers[layer - 1][parent as usize].report(at_ns, child, &report),
                    };
                    taken.expect("nodes report to their parents");
                }
            }
        }
    }

    fn release_ns(&mut self, now_ns: u64, _number: u64, packet: u64) -> u64 {
        self.deadlines.release_ns(now_ns, packet)
    }

    fn delivered(&mut self, flight: &Flight) -> Released<'_> {
        let Self { receivers, delays, .. } = self;
        receivers.take(flight, |place, now_ns| delays[place].packet(now_ns, &flight.header))
    }
}

impl<'n> Ends<'n> {
    fn new(setup: &Setup<'n>, rule: Rule) -> Self {
        let tree = setup.tree.clone();
        let last = tree.depth() - 1;
        let receivers = tree.layers()[last] as usize;
        let gathers = (0..last).map(|layer| {
            let children = |place| tree.block(layer + 1, place).len();
            (0..tree.layers()[layer]).map(|place| Gather::new(REPORTS, children(place))).collect()
        });
        let mut ends = Self {
            network: setup.network,
            random: Random::new(setup.seed).fork(2),
            receivers: Receivers::new(receivers, &mut Random::new(setup.seed).fork(1)),
            delays: (0..receivers).map(|_| ReceiverDelays::new(REPORTS)).collect(),
            gathers: gathers.collect(),
            deadlines: Deadlines::new(rule, REPORTS, tree.layers()[0] as usize),
            moments: EventQueue::new(),
            tree,
        };
        // A layer has a tenth of the interval for its reports to arrive.
        for layer in 0..=last {
            ends.moments.at(BEGIN_NS + INTERVAL_NS / 10 * (last - layer) as u64, Moment::Reports { layer });
        }
        ends.moments.at(BEGIN_NS + INTERVAL_NS / 10 * (last as u64 + 1), Moment::IntervalEnds);
        ends
    }

    /// All nodes of a layer report to the parents of their blocks.
    fn report(&mut self, now_ns: u64, layer: usize) {
        for place in 0..self.tree.layers()[layer] {
            let report = match self.gathers.get_mut(layer) {
                Some(relays) => relays[place as usize].take(now_ns),
                None => self.delays[place as usize].report(),
            };
            let parent = self.tree.block_of(layer, place);
            let child = (place - self.tree.block(layer, parent).start) as usize;
            debug_assert!(parent < parents_of(&self.tree, layer));
            let link = self.network.link(layer, parent, place);
            let at_ns = now_ns + self.network.delay_ns(link, now_ns, &mut self.random);
            self.moments.at(at_ns, Moment::Reaches { layer, parent, child, report });
        }
    }
}

#[cfg(test)]
mod tests {
    use walras_fair_access::delay::{DelayBounds, DelaySettings};

    use super::*;

    /// With a long fixed delay all receivers release together, but for their clocks; with none each as it comes.
    #[test]
    fn what_is_held_is_released_together() {
        let network = Network::fitted(5);
        let windows = |delay_ns: u64| {
            let setup = Setup::product(&network, Tree::new(2, 4, 16).unwrap(), 1, 6);
            let rule = Rule::Steered(DelaySettings::Static { delay_ns });
            let mut windows = Vec::new();
            held(setup, rule, 500, |released| {
                let (last, first) = (released.after_ns.iter().max().unwrap(), released.after_ns.iter().min().unwrap());
                assert!(released.held_ns.iter().all(|ns| u64::from(*ns) <= delay_ns));
                windows.push(last - first);
            });
            assert_eq!(windows.len(), 500);
            windows.sort_unstable();
            windows[250]
        };
        assert!(windows(6_000_000) < 1_000);
        assert!(windows(0) > 20_000);
    }

    /// Reports reach the sender: the deadline leaves its start and covers what receivers see.
    #[test]
    fn deadlines_follow_reports_through_all_layers() {
        let network = Network::fitted(5);
        let bounds = DelayBounds { min_ns: 0, max_ns: 5_000_000, start_ns: 3_000_000 };
        let setup = Setup::product(&network, Tree::new(3, 3, 27).unwrap(), 1, 6);
        let mut last_us = Vec::new();
        held(setup, Rule::MaximumOfQuantiles(bounds), 4_000, |released| {
            last_us.push(released.after_ns.iter().max().unwrap() / 1_000);
        });
        let late = &last_us[3_000..];
        assert!(last_us[0] > 2_990 && late.iter().all(|us| (60..2_500).contains(us)), "{} {late:?}", last_us[0]);
    }
}
