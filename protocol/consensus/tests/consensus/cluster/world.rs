//! A cluster in one thread: replicas, disks, a network and clients, driven from one seed.

use super::checks::{Checks, commands};
use super::log::Log;
use super::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
#[allow(unused_imports, reason = "a log that stands in for the one in memory may have these methods itself")]
use walras_consensus::DurableLog as _;
use walras_consensus::{
    Effect, MemberChange, Members, Pack, ReadToken, Replica, ReplicaId, Role, Settings, Slot, Status, Term, Ticket,
};

pub(crate) const MS: u64 = 1_000_000;

/// A mistake in the host, planted to see that the checks find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// Says that a write is durable when it was only taken.
    AcknowledgesBeforeSync,
    /// Starts without the vote that it wrote down.
    ForgetsItsVote,
    /// Keeps the slots that a new leader replaced, where both have some.
    KeepsReplacedSlots,
    /// Answers a read without waiting for anything.
    ReadsAtOnce,
}

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) seed: u64,
    pub(crate) voters: u64,
    /// Replicas that belong to nobody in the beginning, for changes of members.
    pub(crate) spares: u64,
    pub(crate) settings: fn(&mut Settings),
    pub(crate) loss_per_mille: u64,
    pub(crate) duplicate_per_mille: u64,
    pub(crate) latency_ns: (u64, u64),
    pub(crate) sync_ns: (u64, u64),
    pub(crate) propose_every_ns: u64,
    pub(crate) pack_max: u64,
    pub(crate) snapshot_every_slots: u64,
    /// A crash of the process alone: what was written is there, synced or not.
    pub(crate) keeps_written: bool,
    /// Every other crash is one of the process alone, whose system closes its links at once.
    pub(crate) closes_links: bool,
    pub(crate) bug: Option<Bug>,
}

impl Options {
    pub(crate) fn new(seed: u64, voters: u64) -> Self {
        Self {
            seed,
            voters,
            spares: 0,
            settings: |_| {},
            loss_per_mille: 20,
            duplicate_per_mille: 20,
            latency_ns: (50_000, 3 * MS),
            sync_ns: (100_000, 4 * MS),
            propose_every_ns: 6 * MS,
            pack_max: 4,
            snapshot_every_slots: 25,
            keeps_written: false,
            closes_links: true,
            bug: None,
        }
    }
}

enum Event {
    Deliver { from: ReplicaId, to: ReplicaId, bytes: Vec<u8>, state: Option<(Slot, State)> },
    SnapshotFate { of: ReplicaId, to: ReplicaId, arrived: Result<(), ()> },
    Timer { at: ReplicaId },
    Synced { at: ReplicaId, life: u64, ticket: Ticket },
    Start { at: ReplicaId },
    LinkLost { at: ReplicaId, peer: ReplicaId },
    Propose,
    Fault,
}

/// Commands applied, in order: a state that shows everything that was ever done to it.
type State = Rc<Vec<u64>>;

struct Node {
    replica: Option<Replica>,
    log: Log,
    life: u64,
    timer_ns: u64,
    is_syncing: bool,
    /// Its disk takes this many times as long.
    slowness: u64,
    written: Ticket,
    applied: Vec<u64>,
    applied_slot: Slot,
    /// The members as far as it handed them out, and those before: a slot may be decided by the majority of either, since it may have
    /// been on its way when the change was decided.
    members: [Members; 2],
    /// Durable ones.
    snapshots: BTreeMap<Slot, State>,
    proposed: BTreeMap<Slot, (Term, Vec<u64>)>,
    /// Reads, and how much of the history they must see.
    reads: BTreeMap<ReadToken, usize>,
}

pub(crate) struct World {
    pub(crate) options: Options,
    pub(crate) now_ns: u64,
    pub(crate) checks: Checks,
    rng: Rng,
    genesis: Members,
    nodes: BTreeMap<ReplicaId, Node>,
    events: BTreeMap<(u64, u64), Event>,
    next_event: u64,
    cut: BTreeSet<(ReplicaId, ReplicaId)>,
    faults_until_ns: u64,
    next_command: u64,
    acknowledged: Vec<u64>,
    /// When a replica was last elected, and when one could last take commands.
    pub(crate) elected_ns: u64,
    pub(crate) leading_ns: u64,
    /// Of all effects, in order.
    pub(crate) trace: u64,
    pub(crate) counts: Counts,
}

/// What happened, to see that it does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) events: u64,
    pub(crate) crashes: u64,
    pub(crate) lost_writes: u64,
    pub(crate) partitions: u64,
    pub(crate) lost_links: u64,
    pub(crate) elections: u64,
    pub(crate) installed: u64,
    pub(crate) member_changes: u64,
    pub(crate) reads: u64,
    pub(crate) acknowledged: u64,
}

impl World {
    pub(crate) fn new(options: Options) -> Self {
        let id = |id: u64| ReplicaId::new(id).unwrap();
        let genesis = Members::of_voters((1..=options.voters).map(id));
        let mut world = Self {
            rng: Rng::new(options.seed),
            now_ns: 0,
            checks: Checks::default(),
            nodes: BTreeMap::new(),
            events: BTreeMap::new(),
            next_event: 0,
            cut: BTreeSet::new(),
            faults_until_ns: 0,
            next_command: 1,
            acknowledged: Vec::new(),
            elected_ns: 0,
            leading_ns: 0,
            trace: 0xcbf2_9ce4_8422_2325,
            counts: Counts::default(),
            genesis,
            options,
        };
        for at in (1..=world.options.voters + world.options.spares).map(id) {
            let node = Node {
                replica: None,
                log: Log::new(world.genesis.clone()),
                life: 0,
                timer_ns: 0,
                is_syncing: false,
                slowness: 1,
                written: Ticket(0),
                applied: Vec::new(),
                applied_slot: Slot(0),
                members: [world.genesis.clone(), world.genesis.clone()],
                snapshots: BTreeMap::from([(Slot(0), State::default())]),
                proposed: BTreeMap::new(),
                reads: BTreeMap::new(),
            };
            world.nodes.insert(at, node);
            world.schedule(0, Event::Start { at });
        }
        world.schedule(MS, Event::Propose);
        world
    }

    /// Faults until then.
    pub(crate) fn safety_phase(&mut self, until_ns: u64) {
        self.faults_until_ns = until_ns;
        self.schedule(20 * MS, Event::Fault);
        self.run_until(until_ns);
        let logs: Vec<_> = self.nodes.iter().map(|(id, node)| (*id, &node.log)).collect();
        self.checks.log_matching(&logs);
    }

    /// No more faults: everything must come together within the time given.
    pub(crate) fn healing_phase(&mut self, within_ns: u64) {
        self.faults_until_ns = 0;
        self.cut.clear();
        self.nodes.values_mut().for_each(|node| node.slowness = 1);
        (self.options.loss_per_mille, self.options.duplicate_per_mille) = (0, 0);
        let down: Vec<_> = self.nodes.iter().filter(|(_, node)| node.replica.is_none()).map(|(id, _)| *id).collect();
        down.into_iter().for_each(|at| self.schedule(MS, Event::Start { at }));
        let until_ns = self.now_ns + within_ns;
        let (mark, mut quiet_from) = (self.acknowledged.len(), None);
        while self.now_ns < until_ns && self.checks.violation.is_none() {
            self.run_until(self.now_ns + 20 * MS);
            if quiet_from.is_none() && self.acknowledged.len() > mark + 5 {
                // Enough new ones: now see that everybody gets them.
                quiet_from = Some(self.now_ns);
                self.options.propose_every_ns = u64::MAX / 4;
            }
            if quiet_from.is_some() && self.has_converged() {
                self.final_checks();
                return;
            }
        }
        let states: Vec<_> = self.nodes.iter().map(|(id, n)| (id.get(), n.replica.as_ref().map(Replica::status))).collect();
        self.checks.violate(format!("no progress after healing: {states:?}"));
    }

    pub(crate) fn run_until(&mut self, until_ns: u64) {
        while self.checks.violation.is_none()
            && let Some(entry) = self.events.first_entry()
            && entry.key().0 <= until_ns
        {
            self.now_ns = entry.key().0;
            let event = entry.remove();
            self.counts.events += 1;
            self.step(event);
        }
        self.now_ns = self.now_ns.max(until_ns);
    }

    pub(crate) fn leader(&self) -> Option<ReplicaId> {
        let leads = |node: &Node| node.replica.as_ref().map(Replica::status).filter(|s| s.role == Role::Leader).map(|s| s.term);
        self.nodes.iter().filter_map(|(id, node)| leads(node).map(|term| (term, *id))).max().map(|(_, id)| id)
    }

    pub(crate) fn crash(&mut self, at: ReplicaId) {
        let node = self.nodes.get_mut(&at).unwrap();
        let unsynced = node.log.unsynced_count();
        let survivors = match self.options.bug {
            _ if self.options.keeps_written => unsynced,
            Some(Bug::AcknowledgesBeforeSync) => 0,
            _ => self.rng.below(unsynced as u64 + 1) as usize,
        };
        self.counts.crashes += 1;
        self.counts.lost_writes += (unsynced - survivors) as u64;
        node.log.crash(survivors);
        if self.options.bug == Some(Bug::ForgetsItsVote) {
            node.log.hard_state_mut().vote = None;
        }
        node.replica = None;
        node.life += 1;
        node.is_syncing = false;
        node.proposed.clear();
        node.reads.clear();
        // A process that dies has its links closed by its system; a machine that does says nothing.
        if self.options.closes_links && self.rng.one_in(2) {
            let others: Vec<ReplicaId> = self.nodes.keys().copied().filter(|other| *other != at).collect();
            others.into_iter().for_each(|other| self.lose_link(other, at));
        }
    }

    fn lose_link(&mut self, at: ReplicaId, peer: ReplicaId) {
        if !self.cut.contains(&(peer, at)) {
            let (min, max) = self.options.latency_ns;
            let after_ns = self.rng.between(min, max);
            self.schedule(after_ns, Event::LinkLost { at, peer });
        }
    }

    pub(crate) fn change_members(&mut self, at: ReplicaId, changes: &[MemberChange]) -> bool {
        let mut effects = Vec::new();
        let taken = self.replica(at).is_some_and(|replica| replica.change_members(changes, &mut effects).is_ok());
        self.counts.member_changes += u64::from(taken);
        self.perform(at, effects);
        taken
    }

    pub(crate) fn transfer(&mut self, at: ReplicaId, to: ReplicaId) -> bool {
        let (mut effects, now_ns) = (Vec::new(), self.now_ns);
        let taken = self.replica(at).is_some_and(|replica| replica.transfer_to(now_ns, to, &mut effects).is_ok());
        self.perform(at, effects);
        taken
    }

    pub(crate) fn status(&self, at: ReplicaId) -> Option<Status> {
        self.nodes[&at].replica.as_ref().map(Replica::status)
    }

    pub(crate) fn members(&self, at: ReplicaId) -> &Members {
        self.nodes[&at].replica.as_ref().unwrap().members()
    }

    /// Cuts what `from` sends to `to`.
    pub(crate) fn cut(&mut self, from: ReplicaId, to: ReplicaId) {
        self.cut.insert((from, to));
    }

    pub(crate) fn start_later(&mut self, at: ReplicaId, after_ns: u64) {
        self.schedule(after_ns, Event::Start { at });
    }

    fn replica(&mut self, at: ReplicaId) -> Option<&mut Replica> {
        self.nodes.get_mut(&at)?.replica.as_mut()
    }

    fn schedule(&mut self, after_ns: u64, event: Event) {
        self.next_event += 1;
        self.events.insert((self.now_ns.saturating_add(after_ns), self.next_event), event);
    }

    fn step(&mut self, event: Event) {
        let now_ns = self.now_ns;
        let mut effects = Vec::new();
        let mut has_voted = false;
        let at = match event {
            Event::Fault => return self.fault(),
            Event::Propose => return self.client(),
            Event::Start { at } => return self.start(at),
            Event::LinkLost { at, peer } => {
                let Some(replica) = self.replica(at) else { return };
                replica.on_link_lost(now_ns, peer, &mut effects);
                self.counts.lost_links += 1;
                at
            }
            Event::Timer { at } => {
                let node = self.nodes.get_mut(&at).unwrap();
                if node.timer_ns != now_ns {
                    return;
                }
                node.timer_ns = u64::MAX;
                let Some(replica) = &mut node.replica else { return };
                replica.on_timer(now_ns, &mut effects);
                at
            }
            Event::Synced { at, life, ticket } => {
                let node = self.nodes.get_mut(&at).unwrap();
                if node.life != life {
                    return;
                }
                let voted_before = node.log.hard_state_mut().vote;
                node.log.sync_up_to(ticket);
                has_voted = node.log.hard_state_mut().vote != voted_before;
                node.is_syncing = false;
                if self.options.bug != Some(Bug::AcknowledgesBeforeSync) {
                    node.replica.as_mut().unwrap().on_persisted(ticket, &mut effects);
                }
                self.sync(at);
                at
            }
            Event::SnapshotFate { of, to, arrived } => {
                let Some(replica) = self.replica(of) else { return };
                replica.on_snapshot_sent(to, arrived, &mut effects);
                of
            }
            Event::Deliver { from, to, bytes, state } => {
                let node = self.nodes.get_mut(&to).unwrap();
                let arrived = if node.replica.is_some() { Ok(()) } else { Err(()) };
                if let Some((slot, state)) = state {
                    node.snapshots.insert(slot, state);
                    let after_ns = self.rng.between(50_000, MS);
                    self.schedule(after_ns, Event::SnapshotFate { of: from, to, arrived });
                }
                let Some(replica) = &mut self.nodes.get_mut(&to).unwrap().replica else { return };
                if let Err(error) = replica.on_message(now_ns, bytes.into(), &mut effects) {
                    return self.checks.violate(format!("replica {to}: {error}"));
                }
                to
            }
        };
        self.perform(at, effects);
        // The worst moment for a short crash: a vote has just been sent.
        if has_voted && self.faults_until_ns > 0 && self.rng.one_in(10) {
            self.crash(at);
            let after_ns = self.rng.between(1, 2 * MS);
            self.schedule(after_ns, Event::Start { at });
        }
    }

    fn start(&mut self, at: ReplicaId) {
        let mut settings = Settings {
            heartbeat_ns: 10 * MS,
            election_timeout_min_ns: 40 * MS,
            election_timeout_max_ns: 80 * MS,
            inflight_max: 16,
            message_bytes_max: 200,
            pack_bytes_max: 1 << 16,
            retained_slots: 10,
            ..Settings::new(1, at)
        };
        (self.options.settings)(&mut settings);
        let seed = self.rng.next();
        let node = self.nodes.get_mut(&at).unwrap();
        if node.replica.is_some() {
            return;
        }
        let Ok(recovered) = node.log.recover();
        let slot = recovered.snapshot.slot;
        node.applied = node.snapshots[&slot].to_vec();
        node.members = [recovered.snapshot.members.clone(), recovered.snapshot.members.clone()];
        (node.applied_slot, node.timer_ns, node.written) = (slot, u64::MAX, Ticket(0));
        let mut effects = Vec::new();
        match Replica::start(self.now_ns, settings, recovered, seed, &mut effects) {
            Ok(replica) => node.replica = Some(replica),
            Err(error) => return self.checks.violate(format!("replica {at} does not start: {error}")),
        }
        self.perform(at, effects);
    }

    /// Does what a replica asks for.
    fn perform(&mut self, at: ReplicaId, effects: Vec<Effect>) {
        let mut more = Vec::new();
        for effect in effects {
            self.note(at, &effect);
            match effect {
                Effect::Send { to, bytes } => self.send(at, to, bytes, None),
                Effect::SendSnapshot { to, snapshot, bytes } => {
                    let state = self.nodes[&at].snapshots[&snapshot.slot].clone();
                    self.send(at, to, bytes, Some((snapshot.slot, state)));
                }
                Effect::Persist(mut write) => {
                    let node = self.nodes.get_mut(&at).unwrap();
                    node.written = write.ticket;
                    if self.options.bug == Some(Bug::KeepsReplacedSlots) {
                        let log = &node.log;
                        write.entries.iter_mut().for_each(|new| {
                            if let Some(old) = log.entries().find(|old| old.slot == new.slot) {
                                *new = old.clone();
                            }
                        });
                    }
                    let ticket = write.ticket;
                    let Ok(()) = node.log.write(write);
                    self.sync(at);
                    if self.options.bug == Some(Bug::AcknowledgesBeforeSync) {
                        self.replica(at).unwrap().on_persisted(ticket, &mut more);
                    }
                }
                Effect::Committed(committed) => self.apply(at, &committed),
                Effect::Install(meta) => {
                    self.counts.installed += 1;
                    let node = self.nodes.get_mut(&at).unwrap();
                    node.applied = node.snapshots[&meta.slot].to_vec();
                    node.applied_slot = meta.slot;
                    if node.applied.len() as u64 != meta.log_index.0 {
                        self.checks.violate(format!("replica {at} installs a state that is not of {:?}", meta.log_index));
                    }
                }
                Effect::Role(change) => {
                    if change.role == Role::Leader {
                        self.counts.elections += 1;
                        self.elected_ns = self.now_ns;
                    }
                    self.checks.role(at, change);
                }
                Effect::SnapshotWanted { slot } => {
                    self.nodes.get_mut(&at).unwrap().applied_slot = slot;
                    self.snapshot(at, &mut more);
                }
                Effect::ReadReady { token } => {
                    let node = self.nodes.get_mut(&at).unwrap();
                    self.counts.reads += 1;
                    let Some(must_see) = node.reads.remove(&token) else {
                        assert_eq!(self.options.bug, Some(Bug::ReadsAtOnce), "an answer to a question, once");
                        continue;
                    };
                    if node.applied.len() < must_see {
                        let seen = node.applied.len();
                        self.checks
                            .violate(format!("a read at replica {at} sees {seen} commands, {must_see} were acknowledged before"));
                    }
                }
                Effect::MembersChanged { members, .. } => {
                    let [now, before] = &mut self.nodes.get_mut(&at).unwrap().members;
                    *before = std::mem::replace(now, members);
                }
                Effect::Leading { .. } => self.leading_ns = self.now_ns,
            }
        }
        let Some(replica) = &self.nodes[&at].replica else { return };
        let due_ns = replica.next_deadline_ns().max(self.now_ns);
        if due_ns < self.nodes[&at].timer_ns {
            self.nodes.get_mut(&at).unwrap().timer_ns = due_ns;
            self.schedule(due_ns - self.now_ns, Event::Timer { at });
        }
        if !more.is_empty() {
            self.perform(at, more);
        }
    }

    fn apply(&mut self, at: ReplicaId, committed: &walras_consensus::Committed) {
        let logs = self.nodes.iter().map(|(id, node)| (*id, &node.log));
        let durability = self.settings_of(at).durability;
        self.checks.committed(at, committed, &self.nodes[&at].members, durability, logs);
        let node = self.nodes.get_mut(&at).unwrap();
        node.applied.extend(commands(committed));
        node.applied_slot = committed.slot;
        if let Some((term, ids)) = node.proposed.remove(&committed.slot)
            && term == committed.term
        {
            self.counts.acknowledged += ids.len() as u64;
            self.acknowledged.extend(ids);
        }
        let due = committed.slot.0 - node.log.snapshot().slot.0 >= self.options.snapshot_every_slots;
        if due && self.rng.one_in(3) {
            let mut effects = Vec::new();
            self.snapshot(at, &mut effects);
            self.perform(at, effects);
        }
    }

    fn settings_of(&self, at: ReplicaId) -> Settings {
        let mut settings = Settings::new(1, at);
        (self.options.settings)(&mut settings);
        settings
    }

    fn snapshot(&mut self, at: ReplicaId, effects: &mut Vec<Effect>) {
        let node = self.nodes.get_mut(&at).unwrap();
        let slot = node.applied_slot;
        node.snapshots.insert(slot, Rc::new(node.applied.clone()));
        if let Some(meta) = node.replica.as_mut().unwrap().on_snapshot_produced(slot, effects) {
            let Ok(()) = node.log.let_go(meta);
        }
        let oldest = node.log.snapshot().slot;
        node.snapshots = node.snapshots.split_off(&oldest);
    }

    fn sync(&mut self, at: ReplicaId) {
        let after_ns = self.rng.between(self.options.sync_ns.0, self.options.sync_ns.1);
        let node = self.nodes.get_mut(&at).unwrap();
        if !node.is_syncing && node.log.unsynced_count() > 0 {
            node.is_syncing = true;
            let (life, ticket) = (node.life, node.written);
            let after_ns = after_ns * node.slowness;
            self.schedule(after_ns, Event::Synced { at, life, ticket });
        }
    }

    fn send(&mut self, from: ReplicaId, to: ReplicaId, bytes: Vec<u8>, state: Option<(Slot, State)>) {
        let lost =
            self.cut.contains(&(from, to)) || self.rng.per_mille(self.options.loss_per_mille) || !self.nodes.contains_key(&to);
        if lost {
            if state.is_some() {
                self.schedule(20 * MS, Event::SnapshotFate { of: from, to, arrived: Err(()) });
            }
            return;
        }
        let copies = if self.rng.per_mille(self.options.duplicate_per_mille) { 2 } else { 1 };
        for _ in 0..copies {
            let (min, max) = self.options.latency_ns;
            let is_late = self.faults_until_ns > 0 && self.rng.per_mille(5);
            let latency_ns = if is_late { self.rng.between(max, 100 * MS) } else { self.rng.between(min, max) };
            let event = Event::Deliver { from, to, bytes: bytes.clone(), state: state.clone() };
            self.schedule(latency_ns, event);
        }
    }

    fn client(&mut self) {
        self.schedule(self.options.propose_every_ns, Event::Propose);
        let up: Vec<ReplicaId> = self.nodes.iter().filter(|(_, node)| node.replica.is_some()).map(|(id, _)| *id).collect();
        // Mostly the leader, sometimes one that was.
        let Some(at) = self.leader().filter(|_| !self.rng.one_in(8)).or_else(|| self.rng.pick(&up)) else { return };
        let (mut effects, mut pack, mut ids) = (Vec::new(), Pack::new(), Vec::new());
        for _ in 0..self.rng.between(1, self.options.pack_max) {
            ids.push(self.next_command);
            pack.push(&self.next_command.to_le_bytes());
            self.next_command += 1;
        }
        let node = self.nodes.get_mut(&at).unwrap();
        if let Ok((slot, term)) = node.replica.as_mut().unwrap().propose(pack, &mut effects) {
            node.proposed.insert(slot, (term, ids));
        }
        self.perform(at, effects);
        if self.rng.one_in(4)
            && let Some(at) = self.rng.pick(&up)
        {
            self.read(at);
        }
    }

    fn read(&mut self, at: ReplicaId) {
        let token = ReadToken(self.next_command);
        self.next_command += 1;
        // Whatever any replica handed out may have been acknowledged.
        let must_see = self.checks.history.len();
        let node = self.nodes.get_mut(&at).unwrap();
        let mut effects = Vec::new();
        if node.replica.as_mut().unwrap().read(token, &mut effects).is_ok() {
            node.reads.insert(token, must_see);
            if self.options.bug == Some(Bug::ReadsAtOnce) {
                effects.push(Effect::ReadReady { token });
            }
        }
        self.perform(at, effects);
    }

    fn fault(&mut self) {
        if self.now_ns >= self.faults_until_ns {
            return;
        }
        let after_ns = self.rng.between(5, 150) * MS;
        self.schedule(after_ns, Event::Fault);
        let ids: Vec<ReplicaId> = self.nodes.keys().copied().collect();
        let at = self.rng.pick(&ids).unwrap();
        match self.rng.below(if self.options.spares > 0 { 13 } else { 10 }) {
            0 | 1 => {
                let at = if self.rng.one_in(2) { self.leader().unwrap_or(at) } else { at };
                if self.nodes[&at].replica.is_some() {
                    self.crash(at);
                }
                let after_ns = self.rng.between(1, 200) * MS;
                self.schedule(after_ns, Event::Start { at });
            }
            2 => {
                // Two sides that do not hear each other.
                self.counts.partitions += 1;
                let side: BTreeSet<ReplicaId> = ids.iter().copied().filter(|_| self.rng.one_in(2)).collect();
                self.cut = pairs(&ids).filter(|(a, b)| side.contains(a) != side.contains(b)).collect();
            }
            3 => {
                // One that sends and hears nothing, or hears and is not heard.
                self.counts.partitions += 1;
                let is_deaf = self.rng.one_in(2);
                self.cut.extend(pairs(&ids).filter(|(from, to)| if is_deaf { *to == at } else { *from == at }));
            }
            4 => self.cut.extend(pairs(&ids).filter(|_| self.rng.one_in(4))),
            5 | 6 => self.cut.clear(),
            7 => self.nodes.get_mut(&at).unwrap().slowness = if self.rng.one_in(3) { 1 } else { 30 },
            8 => {
                if let Some(leader) = self.leader() {
                    self.transfer(leader, at);
                }
            }
            9 => {
                // A link breaks, and is there again: mostly one of the leader's.
                let other = if self.rng.one_in(4) { self.rng.pick(&ids) } else { self.leader() };
                if let Some(other) = other.filter(|other| *other != at) {
                    self.lose_link(at, other);
                    self.lose_link(other, at);
                }
            }
            _ => {
                let Some(leader) = self.leader() else { return };
                let other = self.rng.pick(&ids).unwrap();
                let mut change = |id| match self.rng.below(3) {
                    0 => MemberChange::AddVoter(id),
                    1 => MemberChange::AddLearner(id),
                    _ => MemberChange::Remove(id),
                };
                let changes = [change(at), change(other)];
                let count = if at == other { 1 } else { self.rng.between(1, 2) as usize };
                self.change_members(leader, &changes[..count]);
            }
        }
    }

    fn has_converged(&self) -> bool {
        let Some(leader) = self.leader() else { return false };
        let members = self.members(leader);
        let all = self.checks.history.len();
        let done = |node: &Node| node.applied.len() == all && node.log.unsynced_count() == 0;
        !members.is_joint() && self.nodes.iter().filter(|(id, _)| members.contains(**id)).all(|(_, node)| done(node))
    }

    fn final_checks(&mut self) {
        let history: BTreeSet<u64> = self.checks.history.iter().copied().collect();
        if history.len() != self.checks.history.len() {
            self.checks.violate("a command stands in the log twice".to_owned());
        }
        if let Some(lost) = self.acknowledged.iter().find(|id| !history.contains(id)) {
            self.checks.violate(format!("command {lost} was acknowledged and is lost"));
        }
        let leader = self.leader().unwrap();
        let members = self.members(leader).clone();
        for (id, node) in self.nodes.iter().filter(|(id, _)| members.contains(**id)) {
            if node.applied != self.checks.history {
                self.checks.violation.get_or_insert(format!("the state of replica {id} is not the history"));
            }
        }
        let logs: Vec<_> = self.nodes.iter().map(|(id, node)| (*id, &node.log)).collect();
        self.checks.log_matching(&logs);
    }

    fn note(&mut self, at: ReplicaId, effect: &Effect) {
        let mut mix = |word: u64| self.trace = (self.trace.rotate_left(5) ^ word).wrapping_mul(0x0100_0000_01b3);
        mix(self.now_ns);
        mix(at.get());
        match effect {
            Effect::Send { to, bytes } | Effect::SendSnapshot { to, bytes, .. } => {
                mix(to.get());
                bytes.iter().for_each(|byte| mix(u64::from(*byte)));
            }
            Effect::Persist(write) => mix(write.ticket.0),
            Effect::Committed(committed) => mix(committed.slot.0),
            Effect::Role(change) => mix(change.term.0),
            Effect::ReadReady { token } => mix(token.0),
            Effect::MembersChanged { slot, .. } => mix(slot.0),
            Effect::Leading { term } => mix(term.0),
            Effect::SnapshotWanted { slot } => mix(slot.0),
            Effect::Install(meta) => mix(meta.slot.0),
        }
    }
}

fn pairs(ids: &[ReplicaId]) -> impl Iterator<Item = (ReplicaId, ReplicaId)> {
    ids.iter().flat_map(|a| ids.iter().map(|b| (*a, *b))).filter(|(a, b)| a != b)
}
