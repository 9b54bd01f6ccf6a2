//! A multicast with hold and release: receivers with clocks of their own report their delays up the tree, the sender sets deadlines,
//! and receivers hold what comes early. Deadlines and reports are those of `walras_relay::deadline`, which a venue does not use: it steers
//! as [`crate::product`] does. The hold is that of `protocol/fair-access`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use walras_fair_access::release::{Hold, HoldSettings};
use walras_random::Random;
use walras_relay::deadline::{Deadlines, Gather, ReceiverDelays, Report, ReportSettings, Rule};
use walras_relay::packet::Header;
use walras_relay::tree::Tree;

use crate::latency::{BEGIN_NS, RATE};
use crate::multicast::{Flight, NEVER, Setup, World, parents_of};
use crate::network::{Network, normal};

/// Standard deviation of a receiver's clock error: 90 % are within 200 ns (section 8).
pub const CLOCK_NS: f64 = 122.0;
/// Between two reports of a node. The paper does not say.
const INTERVAL_NS: u64 = 50_000_000;
const HOLD: HoldSettings = HoldSettings { held_max: 1_024, wait_max_ns: 100_000_000 };

/// What reports say, and how often.
pub const REPORTS: ReportSettings = ReportSettings {
    interval_ns: INTERVAL_NS,
    patience_ns: 3 * INTERVAL_NS,
    silent_ns: 10 * INTERVAL_NS,
    ..ReportSettings::PUBLISHED
};

/// A message as all receivers have it.
#[derive(Debug)]
pub struct Released<'r> {
    /// Its number, from 1.
    pub number: u64,
    /// From its sending to its release at each receiver, in true time; [`NEVER`] where it never came.
    pub after_ns: &'r [u32],
    /// How long each receiver held it.
    pub held_ns: &'r [u32],
}

/// A receiver's clock and hold.
pub(crate) struct Holder {
    /// What its clock is ahead.
    clock_ns: i64,
    hold: Hold<()>,
}

impl Holder {
    /// With a clock that is off as clocks are.
    pub(crate) fn new(random: &mut Random) -> Self {
        Self { clock_ns: (CLOCK_NS * normal(random)) as i64, hold: Hold::new(HOLD) }
    }

    /// What its clock shows then.
    pub(crate) fn clock(&self, true_ns: u64) -> u64 {
        true_ns.saturating_add_signed(self.clock_ns)
    }

    /// A message comes so long after it was sent. How long after that it is released, and how long it is held; `None` where the hold has no
    /// room for it.
    pub(crate) fn take(&mut self, header: &Header, arrived_ns: u32) -> Option<(u32, u32)> {
        let now_ns = self.clock(header.sent_ns + u64::from(arrived_ns));
        if self.hold.push(now_ns, header.release_ns, ()).is_err() {
            return None;
        }
        let due_ns = now_ns.max(header.release_ns);
        let due = self.hold.release_due(due_ns).expect("it is due");
        let released_ns = due_ns.saturating_add_signed(-self.clock_ns);
        let after_ns = u32::try_from(released_ns.saturating_sub(header.sent_ns)).unwrap_or(NEVER - 1);
        Some((after_ns, (due_ns - due.arrived_ns) as u32))
    }
}

struct Receiver {
    delays: ReceiverDelays,
    holder: Holder,
}

/// When nodes report, and reports under way. Nodes nearer to the receivers report earlier in an interval.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    /// All nodes of a layer report.
    Reports { layer: usize },
    /// The sender ends an interval.
    IntervalEnds,
    /// A report reaches a node of the layer above.
    Reaches { layer: usize, parent: u32, child: usize, report: usize },
}

/// The sender's and all receivers' ends, and the reports.
struct Ends<'n> {
    network: &'n Network,
    tree: Tree,
    random: Random,
    receivers: Vec<Receiver>,
    /// By layer of relays and place.
    gathers: Vec<Vec<Gather>>,
    deadlines: Deadlines,
    moments: BinaryHeap<Reverse<(u64, u64, Moment)>>,
    count: u64,
    reports: Vec<Report>,
    free_reports: Vec<usize>,
    after_ns: Vec<u32>,
    held_ns: Vec<u32>,
}

/// Runs messages at [`RATE`]; `see` gets each that was released at all receivers.
pub fn held(setup: Setup<'_>, rule: Rule, messages: u64, see: impl FnMut(&Released<'_>)) {
    held_with(setup, rule, REPORTS, messages, see);
}

/// The same with other reports.
pub fn held_with(setup: Setup<'_>, rule: Rule, reports: ReportSettings, messages: u64, mut see: impl FnMut(&Released<'_>)) {
    let mut ends = Ends::new(&setup, rule, reports);
    let mut world = World::new(setup);
    for number in 0..messages {
        let at_ns = BEGIN_NS + (number as f64 * 1e9 / RATE) as u64;
        while let Some((now_ns, flight)) = world.delivered_before(at_ns) {
            ends.until(now_ns);
            see(&ends.delivered(flight));
        }
        ends.until(at_ns);
        let release_ns = ends.deadlines.release_ns(at_ns, world.next_packet());
        world.send(at_ns, 0, release_ns);
    }
    while let Some((_, flight)) = world.delivered_before(u64::MAX) {
        see(&ends.delivered(flight));
    }
}

impl<'n> Ends<'n> {
    fn new(setup: &Setup<'n>, rule: Rule, settings: ReportSettings) -> Self {
        let tree = setup.tree.clone();
        let random = &mut Random::new(setup.seed).fork(1);
        let last = tree.depth() - 1;
        let receivers = tree.layers()[last] as usize;
        let receiver = |_| Receiver { delays: ReceiverDelays::new(settings), holder: Holder::new(random) };
        let gathers = (0..last).map(|layer| {
            let children = |place| tree.block(layer + 1, place).len();
            (0..tree.layers()[layer]).map(|place| Gather::new(settings, children(place))).collect()
        });
        let mut ends = Self {
            network: setup.network,
            random: Random::new(setup.seed).fork(2),
            receivers: (0..receivers).map(receiver).collect(),
            gathers: gathers.collect(),
            deadlines: Deadlines::new(rule, settings, tree.layers()[0] as usize),
            moments: BinaryHeap::new(),
            count: 0,
            reports: Vec::new(),
            free_reports: Vec::new(),
            after_ns: vec![0; receivers],
            held_ns: vec![0; receivers],
            tree,
        };
        // A layer has a tenth of the interval for its reports to arrive.
        for layer in 0..=last {
            ends.at(BEGIN_NS + INTERVAL_NS / 10 * (last - layer) as u64, Moment::Reports { layer });
        }
        ends.at(BEGIN_NS + INTERVAL_NS / 10 * (last as u64 + 1), Moment::IntervalEnds);
        ends
    }

    fn at(&mut self, at_ns: u64, moment: Moment) {
        self.count += 1;
        self.moments.push(Reverse((at_ns, self.count, moment)));
    }

    fn until(&mut self, now_ns: u64) {
        while self.moments.peek().is_some_and(|Reverse((at_ns, ..))| *at_ns <= now_ns)
            && let Some(Reverse((at_ns, _, moment))) = self.moments.pop()
        {
            match moment {
                Moment::Reports { layer } => {
                    self.report(at_ns, layer);
                    self.at(at_ns + INTERVAL_NS, moment);
                }
                Moment::IntervalEnds => {
                    self.deadlines.on_interval(at_ns);
                    self.at(at_ns + INTERVAL_NS, moment);
                }
                Moment::Reaches { layer, parent, child, report } => {
                    let said = &self.reports[report];
                    let taken = match layer {
                        0 => self.deadlines.report(at_ns, child, said),
                        _ => self.gathers[layer - 1][parent as usize].report(at_ns, child, said),
                    };
                    taken.expect("nodes report to their parents");
                    self.free_reports.push(report);
                }
            }
        }
    }

    /// All nodes of a layer report to the parents of their blocks.
    fn report(&mut self, now_ns: u64, layer: usize) {
        for place in 0..self.tree.layers()[layer] {
            let report = match self.gathers.get_mut(layer) {
                Some(relays) => relays[place as usize].take(now_ns),
                None => self.receivers[place as usize].delays.report(),
            };
            let parent = self.tree.block_of(layer, place);
            let child = (place - self.tree.block(layer, parent).start) as usize;
            debug_assert!(parent < parents_of(&self.tree, layer));
            let link = self.network.link(layer, parent, place);
            let at_ns = now_ns + self.network.delay_ns(link, now_ns, &mut self.random);
            let slot = self.free_reports.pop().unwrap_or_else(|| {
                self.reports.push(Report::default());
                self.reports.len() - 1
            });
            self.reports[slot] = report;
            self.at(at_ns, Moment::Reaches { layer, parent, child, report: slot });
        }
    }

    fn delivered(&mut self, flight: &Flight) -> Released<'_> {
        let header = flight.header;
        let places = flight.after_ns.iter().zip(&mut self.receivers).zip(self.after_ns.iter_mut().zip(&mut self.held_ns));
        for ((arrived_ns, receiver), (after_ns, held_ns)) in places {
            (*after_ns, *held_ns) = (NEVER, 0);
            if *arrived_ns == NEVER {
                continue;
            }
            // By the receiver's clock.
            let Receiver { delays, holder } = receiver;
            delays.packet(holder.clock(header.sent_ns + u64::from(*arrived_ns)), &header);
            if let Some(released) = holder.take(&header, *arrived_ns) {
                (*after_ns, *held_ns) = released;
            }
        }
        Released { number: header.first, after_ns: &self.after_ns, held_ns: &self.held_ns }
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
