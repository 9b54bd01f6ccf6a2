//! The sender's end of keeping a tree whole: it decides which relays are out, and brings the tree to a view without them, or with them
//! again, while data flows.
//!
//! A relay goes out when a sibling reports it silent and it does not answer the sender either, or when it answers the sender nothing for
//! longer. So one relay that lies about another costs that one a question. A relay that is out and answers for a while is taken in again,
//! after longer and longer the more often it came and went.
//!
//! A relay that answers and forwards nothing also goes out. Those below it say so ([`crate::copies`]): more than half of the relays, or two
//! receivers. The sender cannot see for itself, so fewer do not count: one of them may lie, or its path may be cut.
//!
//! Packets go by a new view once all relays that are in it know it; one that does not say so in time goes out as well. Until then they go
//! by the old view, in which hedges replace those that are gone. The view by which packets go is repeated with each question: a relay that
//! restarts so soon that nobody missed it has forgotten the view.

use std::collections::{BTreeMap, BTreeSet};

use crate::live::{Live, RELAYS_MAX};
use crate::tree::Tree;

/// How patient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeeperSettings {
    /// From one question to each relay to the next.
    pub ping_ns: u64,
    /// A relay that a sibling reports has so long to answer.
    pub confirm_ns: u64,
    /// A relay that answers nothing for so long is out, no matter which relay reports it.
    pub silent_ns: u64,
    /// A relay that is out has to answer for so long before it is in again; twice as long each time, up to 64 times.
    pub return_ns: u64,
    /// A view is said again after so long to those who do not say that they know it.
    pub repeat_ns: u64,
    /// A relay that does not know a view after so long is out.
    pub agree_ns: u64,
}

impl Default for KeeperSettings {
    fn default() -> Self {
        const MS: u64 = 1_000_000;
        Self {
            ping_ns: 100 * MS,
            confirm_ns: 15 * MS,
            silent_ns: 500 * MS,
            return_ns: 500 * MS,
            repeat_ns: 10 * MS,
            agree_ns: 200 * MS,
        }
    }
}

/// Why a relay is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutBecause {
    /// It answers nothing.
    Silent,
    /// It does not say that it knows the view.
    Unaware,
    /// It answers, and forwards nothing.
    Mute,
}

/// Nodes below a relay that are listened to at most, and for how long what one says counts.
const WITNESSES_MAX: usize = 16;
const WITNESS_NS: u64 = 1_000_000_000;
/// Receivers that have to say that a relay is mute. How many of them look is not known.
const RECEIVERS_NEEDED: usize = 2;

/// Doublings of the time before a relay is taken in again.
const RETURNS_MAX: u32 = 6;
/// A relay that stayed in for so long counts as one that never left.
const STEADY_NS: u64 = 60_000_000_000;

/// What the keeper wants to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeeperEffect {
    /// Ask this relay.
    Ping {
        /// Its number.
        node: u32,
        /// The question.
        question: u64,
    },
    /// Send this relay the view.
    View {
        /// The relay's number.
        node: u32,
        /// The view's version.
        version: u64,
        /// Its epoch.
        epoch: u16,
        /// Who is out in it.
        out: BTreeSet<u32>,
    },
    /// Packets go by this view from now on.
    Use(Live),
}

#[derive(Clone, Copy, Debug)]
struct Relay {
    /// Why it is out; `None`: it is in.
    out: Option<OutBecause>,
    heard_ns: u64,
    /// A sibling has reported it, and it has not answered since.
    reported_ns: Option<u64>,
    /// Since when it answers, of one that is out.
    back_since_ns: Option<u64>,
    /// How often it was taken in again, and when last.
    returns: u32,
    in_since_ns: u64,
}

#[derive(Debug)]
struct Proposal {
    live: Live,
    version: u64,
    begun_ns: u64,
    said_ns: Option<u64>,
    /// Relays that are in it and did not say that they know it.
    waiting: BTreeSet<u32>,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Keeper {
    tree: Tree,
    settings: KeeperSettings,
    /// By number; none where the tree has none, or too many.
    relays: Vec<Relay>,
    /// By which packets go.
    live: Live,
    live_version: u64,
    proposal: Option<Proposal>,
    version: u64,
    epoch: u16,
    ping_at_ns: u64,
    /// Relays that are mute for nodes below them: the relay, the node, and when it said so.
    mute: BTreeMap<(u32, u32), u64>,
}

impl Keeper {
    /// One that begins to send: packets go by the view of all until the first view is known. `version` is greater than those of senders
    /// before; the time in ns will do.
    #[must_use]
    pub fn new(tree: &Tree, settings: KeeperSettings, now_ns: u64, version: u64) -> Self {
        let relay = Relay { out: None, heard_ns: now_ns, reported_ns: None, back_since_ns: None, returns: 0, in_since_ns: now_ns };
        Self {
            tree: tree.clone(),
            settings,
            relays: if tree.relays() > RELAYS_MAX { Vec::new() } else { vec![relay; tree.relays() as usize] },
            live: Live::all(tree),
            live_version: 0,
            proposal: None,
            version,
            // So that it is hardly ever another sender's.
            epoch: (version ^ version >> 16 ^ version >> 32) as u16,
            ping_at_ns: now_ns,
            mute: BTreeMap::new(),
        }
    }

    /// The same one before it began, for a sender that asked all nodes lately: `answered` says which of them answered, by number. The first
    /// view is without the relays that did not, so that nobody waits for their word. Where no relay answered, it is the sender that hears
    /// nothing, and all are in. One that answers is in again after a while.
    #[must_use]
    pub fn without_silent(mut self, answered: &[bool]) -> Self {
        let answered = &answered[..answered.len().min(self.relays.len())];
        if answered.contains(&true) {
            for (relay, _) in self.relays.iter_mut().zip(answered).filter(|(_, answered)| !**answered) {
                relay.out = Some(OutBecause::Silent);
            }
        }
        self
    }

    /// By which packets go.
    #[must_use]
    pub fn live(&self) -> &Live {
        &self.live
    }

    /// Relays that are out, or will be by the next view, and why.
    pub fn out(&self) -> impl Iterator<Item = (u32, OutBecause)> + '_ {
        (0..).zip(&self.relays).filter_map(|(node, relay)| Some((node, relay.out?)))
    }

    /// A relay has answered a question.
    pub fn on_pong(&mut self, now_ns: u64, question: u64) {
        let Some(relay) = usize::try_from(question & u64::from(u32::MAX)).ok().and_then(|node| self.relays.get_mut(node)) else {
            return;
        };
        // Of a question that was not asked lately nothing follows.
        if question >> 32 != tick(now_ns) && question >> 32 != tick(now_ns.saturating_sub(TICK_NS)) {
            return;
        }
        relay.heard_ns = now_ns;
        relay.reported_ns = None;
        if relay.out.is_some() {
            relay.back_since_ns.get_or_insert(now_ns);
        }
    }

    /// A relay knows a view.
    pub fn on_taken(&mut self, node: u32, version: u64) {
        if let Some(proposal) = self.proposal.as_mut().filter(|proposal| proposal.version == version) {
            proposal.waiting.remove(&node);
        }
    }

    /// A relay hears nothing of its sibling in this view.
    pub fn on_silent(&mut self, now_ns: u64, node: u32, effects: &mut Vec<KeeperEffect>) {
        let Some(relay) = self.relays.get_mut(node as usize).filter(|relay| relay.out.is_none()) else { return };
        if relay.reported_ns.is_none() {
            relay.reported_ns = Some(now_ns);
            effects.push(ping(now_ns, node));
        }
    }

    /// A relay brings nothing to a node `by` below it, in the view of this version. Of other views than that by which packets go nothing
    /// follows.
    pub fn on_mute(&mut self, now_ns: u64, node: u32, by: u32, version: u64) {
        let is_in = self.relays.get(node as usize).is_some_and(|relay| relay.out.is_none());
        let is_below = || self.live.below(node).binary_search(&by).is_ok();
        if !is_in || version != self.live_version || !is_below() {
            return;
        }
        let said = self.mute.range((node, 0)..=(node, u32::MAX)).count();
        if said < WITNESSES_MAX || self.mute.contains_key(&(node, by)) {
            self.mute.insert((node, by), now_ns);
        }
    }

    /// Whether so many nodes below a relay say that it brings nothing as have to.
    fn is_mute(&self, node: u32) -> bool {
        let said = self.mute.range((node, 0)..=(node, u32::MAX)).count();
        let below = self.live.below(node);
        let needed = match below.first() {
            Some(first) if self.live.is_receiver(*first) => below.len().min(RECEIVERS_NEEDED),
            Some(_) => (below.len() / 2 + 1).min(WITNESSES_MAX),
            None => return false,
        };
        said >= needed
    }

    /// What is to be done now.
    pub fn on_timer(&mut self, now_ns: u64, effects: &mut Vec<KeeperEffect>) {
        if now_ns >= self.ping_at_ns {
            self.ping_at_ns = now_ns.saturating_add(self.settings.ping_ns);
            effects.extend((0..self.relays.len() as u32).map(|node| ping(now_ns, node)));
            self.remind(effects);
        }
        self.judge(now_ns);
        self.propose(now_ns, effects);
    }

    /// Says the view by which packets go to all relays in it. Those that know it say so again, which changes nothing.
    fn remind(&self, effects: &mut Vec<KeeperEffect>) {
        let (live, version) = (&self.live, self.live_version);
        let view = |node| KeeperEffect::View { node, version, epoch: live.epoch(), out: live.out().clone() };
        if live.epoch() != 0 {
            effects.extend(live.relays().map(view));
        }
    }

    /// Says who is in.
    fn judge(&mut self, now_ns: u64) {
        let KeeperSettings { confirm_ns, silent_ns, return_ns, .. } = self.settings;
        let Self { mute, relays, .. } = self;
        let is_in = |node: u32| relays.get(node as usize).is_some_and(|relay| relay.out.is_none());
        mute.retain(|(node, _), said_ns| is_in(*node) && now_ns.saturating_sub(*said_ns) < WITNESS_NS);
        let accused: BTreeSet<u32> = mute.keys().map(|(node, _)| *node).collect();
        for node in accused {
            if self.is_mute(node) {
                self.relays[node as usize].leave(now_ns, OutBecause::Mute);
            }
        }
        for relay in &mut self.relays {
            let unheard_ns = now_ns.saturating_sub(relay.heard_ns);
            if relay.out.is_none() {
                let is_reported = relay.reported_ns.is_some_and(|at| now_ns.saturating_sub(at) >= confirm_ns);
                if is_reported || unheard_ns >= silent_ns {
                    relay.leave(now_ns, OutBecause::Silent);
                }
                continue;
            }
            if unheard_ns >= silent_ns {
                relay.back_since_ns = None;
            }
            let wait_ns = return_ns << relay.returns.min(RETURNS_MAX);
            if relay.back_since_ns.is_some_and(|since| now_ns.saturating_sub(since) >= wait_ns) {
                (relay.out, relay.back_since_ns, relay.in_since_ns) = (None, None, now_ns);
                relay.returns = relay.returns.saturating_add(1);
            }
        }
    }

    /// Brings all to a view of those who are in.
    fn propose(&mut self, now_ns: u64, effects: &mut Vec<KeeperEffect>) {
        let KeeperSettings { repeat_ns, agree_ns, .. } = self.settings;
        if self.relays.is_empty() {
            return;
        }
        if let Some(proposal) = self.proposal.as_ref().filter(|proposal| now_ns.saturating_sub(proposal.begun_ns) >= agree_ns) {
            for node in proposal.waiting.clone() {
                let relay = &mut self.relays[node as usize];
                let is_silent = now_ns.saturating_sub(relay.heard_ns) >= agree_ns;
                relay.leave(now_ns, if is_silent { OutBecause::Silent } else { OutBecause::Unaware });
            }
        }
        let out: BTreeSet<u32> = self.out().map(|(node, _)| node).collect();
        if self.proposal.as_ref().is_some_and(|proposal| *proposal.live.out() != out) {
            self.proposal = None;
        }
        if self.proposal.is_none() {
            // The first view tells relays who sends, and whom to watch, also where all are in.
            if out == *self.live.out() && self.live.epoch() != 0 {
                return;
            }
            (self.version, self.epoch) = (self.version + 1, self.epoch.wrapping_add(1).max(1));
            let live = Live::without(&self.tree, self.epoch, &out);
            let waiting: BTreeSet<u32> = live.relays().collect();
            self.proposal = Some(Proposal { live, version: self.version, begun_ns: now_ns, said_ns: None, waiting });
        }
        let Some(proposal) = &mut self.proposal else { return };
        if proposal.waiting.is_empty() {
            (self.live, self.live_version) = (proposal.live.clone(), proposal.version);
            self.proposal = None;
            effects.push(KeeperEffect::Use(self.live.clone()));
        } else if proposal.said_ns.is_none_or(|said_ns| now_ns.saturating_sub(said_ns) >= repeat_ns) {
            proposal.said_ns = Some(now_ns);
            let Proposal { live, version, waiting, .. } = proposal;
            let (version, epoch) = (*version, live.epoch());
            effects.extend(waiting.iter().map(|node| KeeperEffect::View { node: *node, version, epoch, out: out.clone() }));
        }
    }
}

impl Relay {
    fn leave(&mut self, now_ns: u64, why: OutBecause) {
        if now_ns.saturating_sub(self.in_since_ns) >= STEADY_NS {
            self.returns = 0;
        }
        (self.out, self.reported_ns, self.back_since_ns) = (Some(why), None, None);
    }
}

/// Questions have the time in them, in these steps: an answer that comes long after tells nothing.
const TICK_NS: u64 = 250_000_000;

fn tick(now_ns: u64) -> u64 {
    (now_ns / TICK_NS) & u64::from(u32::MAX)
}

fn ping(now_ns: u64, node: u32) -> KeeperEffect {
    KeeperEffect::Ping { node, question: u64::from(node) | tick(now_ns) << 32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A keeper and relays, of which some answer and some do not.
    struct Run {
        keeper: Keeper,
        dead: BTreeSet<u32>,
        /// They answer, and do not know views.
        deaf: BTreeSet<u32>,
        now_ns: u64,
        used: Vec<(u64, Vec<u32>)>,
    }

    impl Run {
        fn new() -> Self {
            let tree = Tree::of_layers(vec![3, 9]).unwrap();
            let keeper = Keeper::new(&tree, KeeperSettings::default(), 0, 1_000);
            let mut run = Self { keeper, dead: BTreeSet::new(), deaf: BTreeSet::new(), now_ns: 0, used: Vec::new() };
            run.run_ms(5);
            assert_eq!(std::mem::take(&mut run.used), [(2, Vec::new())], "the first view has all");
            run
        }

        fn carry_out(&mut self, effects: Vec<KeeperEffect>) {
            for effect in effects {
                match effect {
                    KeeperEffect::Ping { node, question } if !self.dead.contains(&node) => {
                        self.keeper.on_pong(self.now_ns, question)
                    }
                    KeeperEffect::View { node, version, .. } if !self.dead.contains(&node) && !self.deaf.contains(&node) => {
                        self.keeper.on_taken(node, version);
                    }
                    KeeperEffect::Use(live) => self.used.push((self.now_ns / MS, live.out().iter().copied().collect())),
                    KeeperEffect::Ping { .. } | KeeperEffect::View { .. } => {}
                }
            }
        }

        fn run_ms(&mut self, ms: u64) {
            for _ in 0..ms {
                self.now_ns += MS;
                let mut effects = Vec::new();
                self.keeper.on_timer(self.now_ns, &mut effects);
                self.carry_out(effects);
            }
        }

        fn report(&mut self, node: u32) {
            let mut effects = Vec::new();
            self.keeper.on_silent(self.now_ns, node, &mut effects);
            self.carry_out(effects);
        }
    }

    /// Two neighbours are gone when another leader begins. The sibling of the second one is the first.
    #[test]
    fn a_sender_that_knows_who_is_silent_has_its_first_view_at_once() {
        let tree = Tree::of_layers(vec![3, 9]).unwrap();
        let first_view = |answered: &[bool]| {
            let keeper = Keeper::new(&tree, KeeperSettings::default(), 0, 1_000).without_silent(answered);
            let (dead, deaf, used) = (BTreeSet::from([0, 1]), BTreeSet::new(), Vec::new());
            let mut run = Run { keeper, dead, deaf, now_ns: 0, used };
            while run.used.is_empty() {
                run.run_ms(1);
            }
            run
        };
        // Nobody was asked, or nobody but receivers answered.
        for answered in [vec![], vec![false; 12], vec![false, false, false, true]] {
            let (at_ms, _) = first_view(&answered).used[0];
            assert!(at_ms >= KeeperSettings::default().agree_ns / MS, "it waits for both: {at_ms} ms");
        }
        let mut run = first_view(&[false, false, true, false, true]);
        assert_eq!(std::mem::take(&mut run.used), [(2, vec![0, 1])]);
        // They were silent for a moment only.
        run.dead.clear();
        run.run_ms(700);
        assert_eq!(run.used.pop().map(|(_, out)| out), Some(vec![]));
    }

    #[test]
    fn a_reported_relay_is_out_at_once_where_it_is_silent_and_stays_where_the_report_lies() {
        let mut run = Run::new();
        run.run_ms(1_000);
        assert_eq!(run.used, [], "all are in");
        (0..50).for_each(|_| run.report(1));
        run.run_ms(1_000);
        assert_eq!(run.used, [], "it has answered");
        run.dead.insert(1);
        run.report(1);
        run.run_ms(30);
        let [(at_ms, out)] = &run.used[..] else { panic!("{:?}", run.used) };
        assert!(out == &[1] && *at_ms <= 2_025, "{:?}", run.used);
        assert!(run.keeper.live().epoch() > 0);
    }

    #[test]
    fn without_a_report_it_takes_longer_and_one_that_returns_is_taken_in_more_slowly_each_time() {
        let mut run = Run::new();
        run.run_ms(100);
        let mut waits = Vec::new();
        for _ in 0..4 {
            run.dead.insert(2);
            run.run_ms(700);
            assert_eq!(run.used.pop().map(|(_, out)| out), Some(vec![2]));
            run.dead.clear();
            let began = run.now_ns;
            while run.used.is_empty() {
                run.run_ms(1);
            }
            waits.push((run.now_ns - began) / MS / 500);
            assert_eq!(run.used.pop().map(|(_, out)| out), Some(vec![]));
        }
        assert_eq!(waits, [1, 2, 4, 8]);
    }

    /// All answer. Below the three relays there are receivers, of which two have to say that a relay brings nothing.
    #[test]
    fn a_relay_that_brings_nothing_is_out_once_enough_of_those_below_it_say_so_and_is_tried_again_later() {
        let mut run = Run::new();
        let mut waits = Vec::new();
        for _ in 0..3 {
            let version = run.keeper.live_version;
            // One receiver, however often, nodes that are not below it, and what was said of another view.
            for _ in 0..20 {
                for (by, of_version) in
                    [(3, version), (0, version), (1, version), (12, version), (u32::MAX, version), (4, version - 1)]
                {
                    run.keeper.on_mute(run.now_ns, 1, by, of_version);
                }
                run.keeper.on_mute(run.now_ns, 77, 3, version);
                run.run_ms(40);
            }
            assert_eq!((&run.used[..], run.keeper.mute.len()), (&[][..], 1));
            run.keeper.on_mute(run.now_ns, 1, 5, version);
            run.run_ms(10);
            assert_eq!(run.used.pop().map(|(_, out)| out), Some(vec![1]));
            assert_eq!(run.keeper.out().collect::<Vec<_>>(), [(1, OutBecause::Mute)]);
            let began = run.now_ns;
            while run.used.is_empty() {
                run.run_ms(1);
            }
            waits.push((run.now_ns - began) / MS / 490);
            assert_eq!((run.used.pop().map(|(_, out)| out), run.keeper.mute.len()), (Some(vec![]), 0));
        }
        assert_eq!(waits, [1, 2, 4]);
    }

    #[test]
    fn more_than_half_of_the_relays_below_have_to_say_that_a_relay_brings_nothing_and_all_know_why_it_is_out() {
        let tree = Tree::of_layers(vec![2, 4, 9]).unwrap();
        let keeper = Keeper::new(&tree, KeeperSettings::default(), 0, 1_000);
        let (dead, deaf, used) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        let mut run = Run { keeper, dead, deaf, now_ns: 0, used };
        run.run_ms(5);
        let version = run.keeper.live_version;
        for by in [2, 4] {
            run.keeper.on_mute(run.now_ns, 0, by, version);
        }
        run.run_ms(1_100);
        run.keeper.on_mute(run.now_ns, 0, 5, version);
        run.run_ms(300);
        assert_eq!((run.keeper.live().out().len(), run.keeper.mute.len()), (0, 1), "what two said was too long ago");
        for by in [2, 3, 5] {
            run.keeper.on_mute(run.now_ns, 0, by, version);
        }
        run.dead.insert(3);
        run.report(3);
        run.run_ms(40);
        assert_eq!(run.keeper.out().collect::<Vec<_>>(), [(0, OutBecause::Mute), (3, OutBecause::Silent)]);
        assert!(run.keeper.live().out().iter().copied().eq([0, 3]));
    }

    #[test]
    fn one_that_does_not_learn_a_view_is_out_and_holds_nobody_up() {
        let mut run = Run::new();
        run.run_ms(10);
        (run.dead, run.deaf) = (BTreeSet::from([0]), BTreeSet::from([1]));
        run.report(0);
        run.run_ms(300);
        assert_eq!(run.used.last().map(|(_, out)| out.clone()), Some(vec![0, 1]));
        assert_eq!(run.keeper.out().collect::<Vec<_>>(), [(0, OutBecause::Silent), (1, OutBecause::Unaware)]);
        assert!(
            run.used.iter().all(|(_, out)| out.contains(&1)),
            "no packet goes by a view that a relay does not know: {:?}",
            run.used
        );
    }

    #[test]
    fn the_view_is_said_again_to_those_that_are_in_it() {
        let mut run = Run::new();
        run.dead.insert(1);
        run.run_ms(1_000);
        let (mut said, epoch) = (Vec::new(), run.keeper.live().epoch());
        for _ in 0..100 {
            run.now_ns += MS;
            let mut effects = Vec::new();
            run.keeper.on_timer(run.now_ns, &mut effects);
            said.extend(effects.iter().filter_map(|effect| match effect {
                KeeperEffect::View { node, epoch, out, .. } => Some((*node, *epoch, out.clone())),
                KeeperEffect::Ping { .. } | KeeperEffect::Use(_) => None,
            }));
            run.carry_out(effects);
        }
        assert_eq!(said, [0, 2].map(|node| (node, epoch, BTreeSet::from([1]))));
    }

    #[test]
    fn old_answers_do_not_count() {
        let mut run = Run::new();
        run.run_ms(1);
        let KeeperEffect::Ping { question, .. } = ping(run.now_ns, 1) else { unreachable!() };
        run.dead.insert(1);
        for _ in 0..20 {
            run.run_ms(100);
            run.keeper.on_pong(run.now_ns, question);
            run.keeper.on_pong(run.now_ns, u64::MAX);
        }
        assert_eq!(run.keeper.live().out().first(), Some(&1));
    }
}
