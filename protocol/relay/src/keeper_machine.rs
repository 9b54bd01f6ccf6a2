//! What the sender of a tree says to its nodes, and by which view packets go. Senders on sockets and those of simulations are hosts of this
//! one state machine.
//!
//! The [`Keeper`] decides which relays are out. The machine has the addresses, and gathers what receivers report of how late market data
//! comes. While no relay is in, it asks the receivers, which then report to the sender itself.
//!
//! The host gives it the messages about the tree that arrive, and the time. Then it takes what the machine says
//! ([`KeeperMachine::says`]), the view by which packets go ([`KeeperMachine::new_view`]), and what receivers reported
//! ([`KeeperMachine::heard`]).
//!
//! *Deliberately absent*: sockets, clocks and seals; packets of market data; when a sender begins and ends.
//!
//! *Invariants*
//! - A message that arrives makes it say one message at most.
//! - What is said of another tree says nothing of this one: trees that travel side by side have one key, and nodes of the same numbers.

use std::vec::Drain;

use crate::deadline::{Maximum, ReportSettings};
use crate::keeper::{Keeper, KeeperEffect, KeeperSettings, OutBecause};
use crate::keeping::Keeping;
use crate::lateness::{Pieces, Reports};
use crate::live::{Live, split};
use crate::tree::Tree;

/// How often receivers hear where to report while no relay is in.
const ASK_EVERY_NS: u64 = 1_000_000_000;

/// A sample of the pieces that were sent: when the last receiver had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The piece's release time, by which it is known.
    pub release_ns: u64,
    /// How long it was held.
    pub held_ns: u64,
    /// How long after its release time it came to the last receiver; less than 0 where it came in time.
    pub late_ns: i64,
}

/// See the module's documentation. `A` is an address.
#[derive(Debug)]
pub struct KeeperMachine<A> {
    keeper: Keeper,
    /// The tree's number.
    tree: u32,
    /// All nodes of the tree, by number.
    nodes: Vec<A>,
    /// The number of the first receiver.
    receivers: usize,
    /// When receivers are asked next, if no relay is in.
    asks_ns: u64,
    reports: Reports,
    /// The last report, until the host takes it.
    late: Option<Vec<Maximum>>,
    /// By which packets go, until the host takes it.
    new_view: Option<Live>,
    says: Vec<(A, Keeping)>,
    /// Empty.
    effects: Vec<KeeperEffect>,
}

impl<A: Copy> KeeperMachine<A> {
    /// One that begins to send, in a tree of this number whose nodes have these addresses, by number. `version` is greater than those of
    /// the views of senders before.
    #[must_use]
    pub fn new((tree, number): (&Tree, u32), nodes: Vec<A>, settings: KeeperSettings, now_ns: u64, version: u64) -> Self {
        let keeper = Keeper::new(tree, settings, now_ns, version);
        Self {
            // Another sender's view may be the last that the host has.
            new_view: Some(keeper.live().clone()),
            keeper,
            tree: number,
            receivers: tree.relays() as usize,
            asks_ns: 0,
            reports: Reports::new(ReportSettings::ROBUST, nodes.len()),
            nodes,
            late: None,
            says: Vec::new(),
            effects: Vec::new(),
        }
    }

    /// The same one before it began, for a sender that knows which nodes answered lately: see [`Keeper::without_silent`].
    #[must_use]
    pub fn without_silent(self, answered: &[bool]) -> Self {
        Self { keeper: self.keeper.without_silent(answered), ..self }
    }

    /// By which packets go.
    #[must_use]
    pub fn live(&self) -> &Live {
        self.keeper.live()
    }

    /// Relays that are out, or will be by the next view, and why.
    pub fn out(&self) -> impl Iterator<Item = (u32, OutBecause)> + '_ {
        self.keeper.out()
    }

    /// A message arrives about a tree, as its packet's header names that. `pieces` are those that were sent.
    pub fn on_keeping(&mut self, now_ns: u64, tree: u32, keeping: Keeping, pieces: &Pieces) {
        if split(tree).0 != self.tree {
            return;
        }
        let Self { keeper, reports, effects, .. } = self;
        match keeping {
            Keeping::Pong { question } => keeper.on_pong(now_ns, question),
            Keeping::Taken { node, version } => keeper.on_taken(node, version),
            Keeping::Silent { node, .. } => keeper.on_silent(now_ns, node, effects),
            Keeping::Mute { node, by, version } => keeper.on_mute(now_ns, node, by, version),
            Keeping::Late { node, samples } => reports.on_late(now_ns, node, samples, pieces),
            // For the other nodes.
            Keeping::Ping { .. } | Keeping::View { .. } => {}
        }
        self.carry_out();
    }

    /// Does what it is time for. Each call after another costs little, however soon it comes.
    pub fn on_timer(&mut self, now_ns: u64) {
        self.keeper.on_timer(now_ns, &mut self.effects);
        self.carry_out();
        if let Some(samples) = self.reports.on_timer(now_ns) {
            self.late = Some(samples);
        }
        self.ask_receivers(now_ns);
    }

    fn carry_out(&mut self) {
        let Self { nodes, new_view, says, effects, .. } = self;
        for effect in effects.drain(..) {
            let (node, keeping) = match effect {
                KeeperEffect::Ping { node, question } => (node, Keeping::Ping { question }),
                KeeperEffect::View { node, version, epoch, out } => (node, Keeping::View { version, epoch, out }),
                KeeperEffect::Use(live) => {
                    *new_view = Some(live);
                    continue;
                }
            };
            says.extend(nodes.get(node as usize).map(|to| (*to, keeping)));
        }
    }

    fn ask_receivers(&mut self, now_ns: u64) {
        let Self { keeper, nodes, receivers, asks_ns, says, .. } = self;
        let is_alone = keeper.live().relays().next().is_none();
        if is_alone && now_ns >= *asks_ns {
            *asks_ns = now_ns.saturating_add(ASK_EVERY_NS);
            says.extend(nodes.iter().skip(*receivers).map(|to| (*to, Keeping::Ping { question: 0 })));
        }
    }

    /// What it has to say, each with the address to which it goes. Where that takes nothing, it is said again later.
    pub fn says(&mut self) -> Drain<'_, (A, Keeping)> {
        self.says.drain(..)
    }

    /// The view by which packets go from now on, if it is another one than at the last call. At the first call it is that of all nodes.
    pub fn new_view(&mut self) -> Option<Live> {
        self.new_view.take()
    }

    /// What receivers reported last; `None` where the host has it, or none did. An empty list says that receivers are there.
    pub fn heard(&mut self, pieces: &Pieces) -> Option<Vec<Heard>> {
        // Where it is not known any more for how long the piece was held, there is nothing to learn.
        let heard = |Maximum { packet: release_ns, delay_ns: late_ns }| {
            Some(Heard { release_ns, held_ns: pieces.held_ns(release_ns)?, late_ns })
        };
        Some(self.late.take()?.into_iter().filter_map(heard).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lateness::SLOT_NS;

    const MS: u64 = 1_000_000;
    const TREE: u32 = 3;

    /// Two relays with the addresses 10 and 11, above three receivers from 12 on.
    fn machine() -> KeeperMachine<u32> {
        let tree = Tree::of_layers(vec![2, 3]).unwrap();
        KeeperMachine::new((&tree, TREE), (10..15).collect(), KeeperSettings::default(), 0, 1_000)
    }

    fn said(machine: &mut KeeperMachine<u32>) -> Vec<(u32, Keeping)> {
        machine.says().collect()
    }

    fn hear(machine: &mut KeeperMachine<u32>, now_ns: u64, keeping: Keeping) -> Vec<(u32, Keeping)> {
        machine.on_keeping(now_ns, TREE, keeping, &Pieces::default());
        said(machine)
    }

    fn view(number: u64, out: &[u32]) -> Keeping {
        Keeping::View { version: number, epoch: number as u16, out: out.iter().copied().collect() }
    }

    #[test]
    fn packets_go_by_a_view_once_all_relays_know_it() {
        let mut machine = machine();
        assert_eq!(machine.new_view().map(|live| live.epoch()), Some(0), "whatever view a sender before had");
        machine.on_timer(0);
        let says = said(&mut machine);
        let asked = says.iter().filter(|(_, keeping)| matches!(keeping, Keeping::Ping { .. })).map(|(to, _)| *to);
        assert_eq!(asked.collect::<Vec<_>>(), [10, 11]);
        assert_eq!(says[2..], [(10, view(1_001, &[])), (11, view(1_001, &[]))]);
        assert_eq!(hear(&mut machine, MS, Keeping::Taken { node: 0, version: 1_001 }), []);
        machine.on_timer(MS);
        assert_eq!((said(&mut machine), machine.new_view()), (vec![], None), "the other one does not know it");
        assert_eq!(hear(&mut machine, MS, Keeping::Taken { node: 1, version: 1_001 }), []);
        machine.on_timer(2 * MS);
        assert_eq!(machine.new_view().map(|live| live.epoch()), Some(1_001));
        // One of them reports the other, which is asked at once and does not answer.
        let silent = Keeping::Silent { node: 1, version: 1_001 };
        let asked = hear(&mut machine, 3 * MS, silent.clone());
        assert!(matches!(asked[..], [(11, Keeping::Ping { .. })]), "{asked:?}");
        for keeping in [silent, view(2_000, &[0]), Keeping::Ping { question: 1 }, Keeping::Silent { node: 77, version: 1_001 }] {
            assert_eq!(hear(&mut machine, 4 * MS, keeping), []);
        }
        machine.on_timer(20 * MS);
        assert_eq!(said(&mut machine), [(10, view(1_002, &[1]))]);
        assert_eq!(machine.out().collect::<Vec<_>>(), [(1, OutBecause::Silent)]);
        assert_eq!((machine.live().epoch(), machine.new_view()), (1_001, None));
    }

    #[test]
    fn what_is_said_of_another_tree_is_not_taken() {
        let mut machine = machine();
        machine.on_timer(0);
        assert_eq!(said(&mut machine).len(), 4);
        for node in [0, 1] {
            machine.on_keeping(MS, TREE + 1, Keeping::Taken { node, version: 1_001 }, &Pieces::default());
        }
        assert_eq!(machine.new_view().map(|live| live.epoch()), Some(0));
        machine.on_timer(2 * MS);
        assert_eq!(machine.new_view(), None, "no relay of this tree took the view");
    }

    /// Both relays answer nothing. Else receivers would not know where to report.
    #[test]
    fn receivers_are_asked_once_a_second_while_no_relay_is_in() {
        let (mut machine, mut asked) = (machine(), Vec::new());
        for at in 0..250 {
            machine.on_timer(at * 10 * MS);
            let of_receivers = machine.says().filter(|(to, _)| *to >= 12);
            asked.extend(of_receivers.map(|(to, keeping)| (at * 10, to, keeping)));
        }
        let ask = |at_ms: u64| [12_u32, 13, 14].map(|to| (at_ms, to, Keeping::Ping { question: 0 }));
        assert_eq!(asked, [ask(200), ask(1_200), ask(2_200)].concat());
        assert_eq!(machine.live().relays().count(), 0);
    }

    #[test]
    fn reports_about_pieces_that_were_sent_are_handed_out_once() {
        let (mut machine, mut pieces) = (machine(), Pieces::default());
        let sample = |packet| Maximum { packet, delay_ns: -3 };
        let [first_ns, second_ns] = [500, 501].map(|slot| slot * SLOT_NS);
        pieces.passed(first_ns, 7);
        let late = Keeping::Late { node: 0, samples: vec![sample(first_ns), sample(first_ns + 1)] };
        machine.on_keeping(5, TREE, late, &pieces);
        assert_eq!(machine.heard(&pieces), None, "a report is not yet due");
        machine.on_timer(5);
        let heard = Heard { release_ns: first_ns, held_ns: 7, late_ns: -3 };
        assert_eq!((machine.heard(&pieces), machine.heard(&pieces)), (Some(vec![heard]), None));
        machine.on_timer(150 * MS);
        assert_eq!(machine.heard(&pieces), Some(vec![]), "somebody is there");
        pieces.passed(second_ns, 8);
        machine.on_keeping(200 * MS, TREE, Keeping::Late { node: 0, samples: vec![sample(second_ns)] }, &pieces);
        machine.on_timer(300 * MS);
        assert_eq!(machine.heard(&Pieces::default()), Some(vec![]), "for how long it was held is forgotten");
    }
}
