//! Hold and release as the product steers it (`docs/adr/0041-receivers-steer-the-release-delay.md`): receivers report how late samples of
//! pieces came against their release times, relays pass on the greatest of each, and the leader steers the delay, by the rules that its
//! configuration gives. All of that is the product's code: `walras_relay::lateness`, `walras_sequencer::ReleaseSteering` and
//! `walras_config`. In [`crate::held`] the deadlines are those of `walras_relay::deadline` instead, as the paper has them.
//!
//! *Left out*: the time in which a change of the delay becomes an entry of the log; replicas that are farther away than receivers (the
//! leader alone has its publications, at once); reports that are lost.

use walras_config::Config;
use walras_consensus::ReplicaId;
use walras_event_queue::EventQueue;
use walras_fair_access::delay::Ppm;
use walras_random::Random;
use walras_relay::deadline::{Maximum, ReportSettings};
use walras_relay::lateness::{Lateness, Pieces, Reports};
use walras_relay::tree::Tree;
use walras_sequencer::{ReceiverSample, ReleaseRules, ReleaseSteering};
use walras_types::LogIndex;
use walras_wire::AccessDelays;

use crate::latency::BEGIN_NS;
use crate::multicast::{Flight, Setup};
use crate::network::Network;
use crate::released::{self, Receivers, Released};

const REPORTS: ReportSettings = ReportSettings::ROBUST;

/// The rules of a venue that sets nothing but the share of market data that may come too late.
///
/// # Panics
/// For a share that no venue may set.
#[must_use]
pub fn rules(target: Ppm) -> ReleaseRules {
    let mut config = Config::default();
    config.fair_access.release = format!("{}.{:04}%", target.0 / 10_000, target.0 % 10_000);
    config.release_rules().ok().flatten().expect("a share that a venue may set")
}

/// A node that reports: a relay or a receiver by layer and place, or the sender.
#[derive(Clone, Copy)]
enum Node {
    Sender,
    Below { layer: usize, place: u32 },
}

/// Each node reports from a phase of its own on.
enum Moment {
    /// A node's report is due.
    Due(Node),
    /// A report reaches a node above.
    Reaches { to: Node, from: u32, samples: Vec<Maximum> },
}

/// The sender's, the relays' and the receivers' ends, and the reports.
struct Ends<'n> {
    network: &'n Network,
    tree: Tree,
    random: Random,
    receivers: Receivers,
    lateness: Vec<Lateness>,
    /// By layer of relays and place.
    relays: Vec<Vec<Reports>>,
    sender: Reports,
    /// What was sent: every relay passes all of it on.
    pieces: Pieces,
    leader: ReplicaId,
    steering: ReleaseSteering,
    in_force: AccessDelays,
    moments: EventQueue<Moment>,
}

/// Runs messages at [`RATE`](crate::latency::RATE); `see` gets each that was released at all receivers.
pub fn held_by_product(setup: Setup<'_>, rules: ReleaseRules, messages: u64, see: impl FnMut(&Released<'_>)) {
    let ends = Ends::new(&setup, rules);
    released::run(setup, ends, messages, see);
}

impl released::Ends for Ends<'_> {
    fn until(&mut self, now_ns: u64) {
        while let Some((at_ns, moment)) = self.moments.pop_until(now_ns) {
            match moment {
                Moment::Due(node) => {
                    self.report(at_ns, node);
                    self.moments.at(at_ns + REPORTS.interval_ns, moment);
                }
                Moment::Reaches { to, from, samples } => {
                    let reports = match to {
                        Node::Sender => &mut self.sender,
                        Node::Below { layer, place } => &mut self.relays[layer][place as usize],
                    };
                    reports.on_late(at_ns, from, samples, &self.pieces);
                }
            }
        }
    }

    fn release_ns(&mut self, now_ns: u64, number: u64, _packet: u64) -> u64 {
        let held_ns = self.in_force.release_ns;
        let release_ns = now_ns + held_ns;
        self.pieces.passed(release_ns, held_ns);
        self.steering.on_made(LogIndex(number), held_ns);
        self.steering.on_arrival(self.leader, LogIndex(number), 0);
        self.steer(now_ns);
        release_ns
    }

    fn delivered(&mut self, flight: &Flight) -> Released<'_> {
        let Self { receivers, lateness, .. } = self;
        receivers.take(flight, |place, now_ns| lateness[place].packet(now_ns, flight.header.release_ns))
    }
}

impl<'n> Ends<'n> {
    fn new(setup: &Setup<'n>, rules: ReleaseRules) -> Self {
        let tree = setup.tree.clone();
        let last = tree.depth() - 1;
        let (receivers, nodes) = (tree.layers()[last] as usize, tree.layers().iter().sum::<u32>() as usize);
        let reports = || Reports::new(REPORTS, nodes);
        let leader = ReplicaId::new(1).expect("it is not 0");
        let mut ends = Self {
            network: setup.network,
            random: Random::new(setup.seed).fork(2),
            receivers: Receivers::new(receivers, &mut Random::new(setup.seed).fork(1)),
            lateness: (0..receivers).map(|_| Lateness::default()).collect(),
            relays: tree.layers()[..last].iter().map(|width| (0..*width).map(|_| reports()).collect()).collect(),
            sender: reports(),
            pieces: Pieces::default(),
            leader,
            steering: ReleaseSteering::new(rules, 0, std::iter::once(leader)),
            in_force: AccessDelays::default(),
            moments: EventQueue::new(),
            tree,
        };
        ends.steer(BEGIN_NS);
        ends.begin_at_a_phase(Node::Sender);
        for layer in 0..=last {
            for place in 0..ends.tree.layers()[layer] {
                ends.begin_at_a_phase(Node::Below { layer, place });
            }
        }
        ends
    }

    fn begin_at_a_phase(&mut self, node: Node) {
        let at_ns = BEGIN_NS + self.random.below(REPORTS.interval_ns);
        self.moments.at(at_ns, Moment::Due(node));
    }

    /// A node says what it knows, the sender to the leader's steering.
    fn report(&mut self, now_ns: u64, node: Node) {
        let Node::Below { layer, place } = node else { return self.sender_hears(now_ns) };
        let samples = match self.relays.get_mut(layer) {
            Some(relays) => relays[place as usize].on_timer(now_ns),
            None => Some(self.lateness[place as usize].report(self.receivers.clock(place as usize, now_ns))),
        };
        let Some(samples) = samples else { return };
        let parent = self.tree.block_of(layer, place);
        let link = self.network.link(layer, parent, place);
        let at_ns = now_ns + self.network.delay_ns(link, now_ns, &mut self.random);
        let to = layer.checked_sub(1).map_or(Node::Sender, |layer| Node::Below { layer, place: parent });
        let from = self.tree.layers()[..layer].iter().sum::<u32>() + place;
        self.moments.at(at_ns, Moment::Reaches { to, from, samples });
    }

    fn sender_hears(&mut self, now_ns: u64) {
        let Some(samples) = self.sender.on_timer(now_ns) else { return };
        let sample = |sample: &Maximum| {
            let held_ns = self.pieces.held_ns(sample.packet)?;
            Some(ReceiverSample { held_ns, late_ns: sample.delay_ns })
        };
        let heard: Vec<ReceiverSample> = samples.iter().filter_map(sample).collect();
        self.steering.on_receivers(now_ns, &heard);
        self.steer(now_ns);
    }

    fn steer(&mut self, now_ns: u64) {
        self.in_force = self.steering.wanted(now_ns, self.in_force, 0).unwrap_or(self.in_force);
    }
}

#[cfg(test)]
mod tests {
    use walras_fair_access::delay::{DelaySettings, Tracking};

    use super::*;

    #[test]
    fn the_rules_are_those_of_a_configuration() {
        let DelaySettings::Tracking(Tracking { target, bounds, .. }) = rules(Ppm(30_000)).delay else { panic!("it is steered") };
        assert_eq!((target, bounds.max_ns, bounds.start_ns), (Ppm(30_000), 20_000_000, 1_000_000));
    }

    /// Reports reach the leader through all layers: the delay leaves its start, and the share of messages that come too late to a
    /// receiver is the one that was asked.
    #[test]
    fn the_delay_comes_to_what_receivers_need() {
        let network = Network::fitted(5);
        let (messages, judged) = (30_000, 5_000);
        for tree in [Tree::new(2, 4, 16).unwrap(), Tree::new(3, 3, 27).unwrap()] {
            let (mut first_us, mut longest_us, mut late) = (0, 0, 0);
            held_by_product(Setup::product(&network, tree, 1, 6), rules(Ppm(200_000)), messages, |released| {
                let last_us = released.after_ns.iter().max().unwrap() / 1_000;
                if released.number == 1 {
                    first_us = last_us;
                } else if released.number > messages - judged {
                    longest_us = longest_us.max(released.held_ns.iter().max().unwrap() / 1_000);
                    late += u64::from(released.held_ns.contains(&0));
                }
            });
            assert!(first_us >= 990 && longest_us < 900, "at first after {first_us} us, then held for {longest_us}");
            assert!((judged / 12..judged / 3).contains(&late), "{late} of {judged} came too late, a fifth was asked");
        }
    }
}
