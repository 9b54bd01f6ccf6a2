//! Clients, replicas and messages in flight, and every step that one of them or a fault can take.

use std::collections::BTreeSet;
use std::sync::Arc;

use stateright::{Model, Property};

use crate::properties;
use crate::replica::{Applied, Content, Engine, Entry, Origins, Outcome, Replica, Role, Slot, Snapshot};
use crate::settings::{Bug, PACK_MAX, REPLICAS, Settings};

/// A client, with one session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Client {
    /// The command that each `session_seq` (from 1) was given to.
    pub sent: Vec<u8>,
    /// The answer to each command (from 1).
    pub got: Vec<Option<Outcome>>,
}

impl Client {
    /// The `session_seq` of commands that were sent and not answered, oldest first.
    pub fn waiting(&self) -> impl Iterator<Item = u8> {
        (1..).zip(&self.sent).filter(|(_, command)| self.got[usize::from(**command - 1)].is_none()).map(|(seq, _)| seq)
    }
}

/// An answer in flight; it may arrive late or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Answer {
    /// The client.
    pub client: u8,
    /// The `session_seq` that it answers.
    pub seq: u8,
    /// Which of two commands under that number it answers.
    pub content: Content,
    /// The outcome.
    pub outcome: Outcome,
}

impl Answer {
    fn to(&Entry { client, seq, content, .. }: &Entry, outcome: Outcome) -> Self {
        Self { client, seq, content, outcome }
    }
}

/// The phases of a run: first with faults, then without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Any fault may happen.
    Faults,
    /// No more faults, and timeouts are longer than any message's transit.
    Calm,
    /// In the calm phase: nothing left to do, everything answered.
    Done,
    /// In the calm phase: nothing left to do, but a client waits and its retry changes nothing.
    Stuck,
}

/// The remaining budget of each kind of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Left {
    /// Entries taken by leaders.
    pub entries: u8,
    /// Changes of leader.
    pub elections: u8,
    /// Crashes.
    pub crashes: u8,
    /// Snapshots.
    pub snapshots: u8,
    /// Requests with another command under a used number.
    pub altered: u8,
}

/// The decided slots from a global view that no replica has. Only the properties use it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Truth {
    /// All slots that any replica ever considered decided.
    pub slots: Vec<Slot>,
    /// Their expected result, computed without sessions and windows: the first occurrence of each command, or of another under its
    /// number.
    pub history: Vec<Applied>,
    /// Entries in them.
    pub log_index: u8,
}

impl Truth {
    fn push(&mut self, slot: &Slot) {
        self.slots.push(slot.clone());
        for &Entry { client, command, content, .. } in &slot.pack {
            self.log_index += 1;
            let before = self.history.iter().filter(|applied| applied.client == client).count();
            if usize::from(command) == before + 1 {
                self.history.push(Applied { log_index: self.log_index, client, command, content });
            }
        }
    }
}

/// The global state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Venue {
    /// Faults or calm.
    pub phase: Phase,
    /// The remaining budget.
    pub left: Left,
    /// By number.
    pub clients: Vec<Client>,
    /// Sorted, so that states that differ only in the replicas' names are equal.
    pub replicas: Vec<Arc<Replica>>,
    /// Answers in flight.
    pub answers: BTreeSet<Answer>,
    /// The global view for the properties.
    pub truth: Arc<Truth>,
}

/// A step. Replicas are places in `Venue::replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum Step {
    /// A client gives its next command a number and sends it.
    Issue { client: u8 },
    /// A copy of a sent command arrives at a replica: the first, a retry, or one that the network duplicated or delayed.
    Arrive { client: u8, seq: u8, at: usize },
    /// A client sends another command under a number that it used, to a replica.
    ArriveOther { client: u8, seq: u8, at: usize },
    /// A leader proposes its queue in a slot.
    Propose { at: usize },
    /// A leader sends another replica its missing slots or a snapshot, with the decided index.
    Replicate { from: usize, to: usize },
    /// A leader finds that a majority has its slots.
    Decide { at: usize },
    /// An answer comes to its client.
    Deliver { answer: Answer },
    /// A replica takes the lead with the vote of another.
    Elect { candidate: usize, voter: usize },
    /// A replica loses its memory and restarts. A replica that stays down is one that gets no messages.
    Crash { at: usize },
    /// A replica takes a snapshot and drops its slots.
    Snapshot { at: usize },
    /// The faults end. Answers in flight are lost; other paths cover their delivery.
    Calm,
    /// In the calm phase, a waiting client resends its oldest command and follows redirects.
    Retry { client: u8, at: usize },
    /// In the calm phase, nothing is left to do.
    Finish,
    /// The planted bug: a client gives a command that it sends again a new number.
    Renumber { client: u8, command: u8 },
}

impl Model for Settings {
    type State = Venue;
    type Action = Step;

    fn init_states(&self) -> Vec<Venue> {
        let mut replicas: Vec<Replica> = ('A'..).take(REPLICAS).map(|name| Replica::new(name, self.clients)).collect();
        replicas[0].role = Role::Leader;
        let client = Client { sent: Vec::new(), got: vec![None; self.commands.into()] };
        let mut venue = Venue {
            phase: Phase::Faults,
            left: Left {
                entries: self.entries(),
                elections: self.elections,
                crashes: self.crashes,
                snapshots: self.snapshots,
                altered: self.altered,
            },
            clients: vec![client; self.clients.into()],
            replicas: replicas.into_iter().map(Arc::new).collect(),
            answers: BTreeSet::new(),
            truth: Arc::default(),
        };
        venue.replicas.sort();
        vec![venue]
    }

    fn actions(&self, venue: &Venue, steps: &mut Vec<Step>) {
        match venue.phase {
            Phase::Faults => {
                venue.work(self, steps);
                venue.faults(self, steps);
            }
            Phase::Calm => {
                venue.work(self, steps);
                if steps.is_empty() {
                    venue.timeouts(self, steps);
                }
            }
            Phase::Done | Phase::Stuck => {}
        }
    }

    fn next_state(&self, before: &Venue, step: Step) -> Option<Venue> {
        let mut venue = before.clone();
        let retried = matches!(step, Step::Retry { .. });
        venue.step(self, step);
        let clients = &venue.clients;
        venue.answers.retain(|answer| {
            let client = &clients[usize::from(answer.client)];
            let got = client.got[usize::from(client.sent[usize::from(answer.seq - 1)] - 1)];
            answer.content == Content::Other || got != Some(answer.outcome)
        });
        venue.replicas.sort();
        if venue != *before {
            return Some(venue);
        }
        venue.phase = Phase::Stuck;
        retried.then_some(venue)
    }

    fn within_boundary(&self, venue: &Venue) -> bool {
        venue.truth.slots.len() <= self.slots_max() + 1
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all(self)
    }
}

impl Venue {
    /// The highest term, and its leader, if there still is one.
    pub fn leader(&self) -> (u8, Option<usize>) {
        let term = self.replicas.iter().map(|replica| replica.term).max().unwrap_or(0);
        (term, (0..REPLICAS).find(|&at| self.replicas[at].term == term && self.replicas[at].role == Role::Leader))
    }

    fn leaders(&self) -> impl Iterator<Item = (usize, &Replica)> {
        self.replicas.iter().map(|replica| &**replica).enumerate().filter(|(_, replica)| replica.role == Role::Leader)
    }

    /// Steps without faults and timeouts.
    fn work(&self, settings: &Settings, steps: &mut Vec<Step>) {
        for (client, it) in (0..).zip(&self.clients) {
            let new = it.sent.len() as u8 + 1;
            let room = match settings.bug {
                Some(Bug::WindowOfCounts) => it.waiting().count() < usize::from(settings.window),
                _ => it.waiting().next().is_none_or(|oldest| new < oldest + settings.window),
            };
            if room && it.sent.iter().max().is_none_or(|&command| command < settings.commands) {
                steps.push(Step::Issue { client });
            }
        }
        for (from, leader) in self.leaders() {
            if !leader.queue.is_empty() {
                steps.push(Step::Propose { at: from });
            }
            if self.majority(from) > leader.decided {
                steps.push(Step::Decide { at: from });
            }
            for (to, follower) in self.replicas.iter().enumerate() {
                let has_all = (follower.last(), follower.decided) == (leader.last(), leader.decided);
                if to != from && (follower.term != leader.term || follower.role == Role::Lost || !has_all) {
                    steps.push(Step::Replicate { from, to });
                }
            }
        }
        // The answer to the other command does not matter: the client waits for the one that it requested.
        let asked = self.answers.iter().filter(|answer| answer.content == Content::Asked);
        steps.extend(asked.map(|&answer| Step::Deliver { answer }));
    }

    fn faults(&self, settings: &Settings, steps: &mut Vec<Step>) {
        for (client, it) in (0..).zip(&self.clients) {
            for (at, leader) in self.leaders() {
                let room = leader.queue.len() < PACK_MAX;
                let sent = || (1..=it.sent.len() as u8).filter(|_| room);
                steps.extend(sent().map(|seq| Step::Arrive { client, seq, at }));
                if self.left.altered > 0 {
                    steps.extend(sent().map(|seq| Step::ArriveOther { client, seq, at }));
                }
            }
            if settings.bug == Some(Bug::RetryRenumbered) && it.sent.len() <= settings.commands.into() {
                steps.extend(it.waiting().map(|seq| Step::Renumber { client, command: it.sent[usize::from(seq - 1)] }));
            }
        }
        if self.left.elections > 0 {
            self.elections(settings, steps);
        }
        for at in 0..REPLICAS {
            if self.left.crashes > 0 {
                steps.push(Step::Crash { at });
            }
            if self.left.snapshots > 0 && self.replicas[at].decided > self.replicas[at].snapshot.slots {
                steps.push(Step::Snapshot { at });
            }
        }
        steps.push(Step::Calm);
    }

    /// A replica votes for a candidate whose log is at least as complete as its own.
    fn elections(&self, settings: &Settings, steps: &mut Vec<Step>) {
        for (candidate, replica) in self.replicas.iter().enumerate().filter(|(_, replica)| replica.role != Role::Leader) {
            for (voter, other) in self.replicas.iter().enumerate() {
                let votes = replica.last() >= other.last() || settings.bug == Some(Bug::VoteForAnybody);
                if voter != candidate && votes {
                    steps.push(Step::Elect { candidate, voter });
                }
            }
        }
    }

    /// In the calm phase, timeouts fire only when nothing is in flight.
    fn timeouts(&self, settings: &Settings, steps: &mut Vec<Step>) {
        if self.leader().1.is_none() {
            return self.elections(settings, steps);
        }
        for (client, it) in (0..).zip(&self.clients) {
            if it.waiting().next().is_some() {
                steps.extend((0..REPLICAS).map(|at| Step::Retry { client, at }));
            }
        }
        if steps.is_empty() {
            steps.push(Step::Finish);
        }
    }

    fn step(&mut self, settings: &Settings, step: Step) {
        match step {
            Step::Issue { client } => {
                let sent = &mut self.clients[usize::from(client)].sent;
                sent.push(sent.iter().max().map_or(1, |command| command + 1));
            }
            Step::Renumber { client, command } => self.clients[usize::from(client)].sent.push(command),
            Step::Arrive { client, seq, at } => self.arrive(settings, client, seq, Content::Asked, at),
            Step::ArriveOther { client, seq, at } => {
                self.left.altered -= 1;
                self.arrive(settings, client, seq, Content::Other, at);
            }
            Step::Retry { client, at } => {
                let oldest = self.clients[usize::from(client)].waiting().next().expect("only who waits retries");
                // "Not leader; ask that one": a follower names the leader of its term.
                let term = self.replicas[at].term;
                let named = (0..REPLICAS).find(|&to| self.replicas[to].role == Role::Leader && self.replicas[to].term == term);
                if let Some(leader) = named.filter(|_| self.replicas[at].role != Role::Lost) {
                    self.arrive(settings, client, oldest, Content::Asked, leader);
                }
            }
            Step::Propose { at } => self.propose(settings, at),
            Step::Replicate { from, to } => self.replicate(settings, from, to),
            Step::Decide { at } => self.advance(settings, at, self.majority(at)),
            Step::Deliver { answer } => {
                let client = &mut self.clients[usize::from(answer.client)];
                client.got[usize::from(client.sent[usize::from(answer.seq - 1)] - 1)] = Some(answer.outcome);
                self.answers.remove(&answer);
            }
            Step::Elect { candidate, voter } => {
                let term = self.leader().0 + 1;
                self.left.elections = self.left.elections.saturating_sub(1);
                self.replica(voter).step_down(term, Role::Lost, settings);
                self.replica(candidate).lead(term, settings);
            }
            Step::Crash { at } => {
                self.left.crashes -= 1;
                let replica = self.replica(at);
                replica.step_down(replica.term, Role::Lost, settings);
                replica.memory.fill(0);
                replica.origins.clear();
                replica.restore(replica.snapshot.clone());
            }
            Step::Snapshot { at } => {
                self.left.snapshots -= 1;
                let replica = self.replica(at);
                let slots = replica.decided;
                let term = replica.slot(slots).map_or(replica.snapshot.term, |slot| slot.term);
                let mut engine = replica.engine.clone();
                match settings.bug {
                    Some(Bug::SnapshotWithoutWindow) => engine.sessions.iter_mut().for_each(|session| session.window.clear()),
                    Some(Bug::SnapshotWithoutSessions) => engine.sessions = Engine::new(settings.clients).sessions,
                    _ => {}
                }
                replica.log.drain(..usize::from(slots - replica.snapshot.slots).min(replica.log.len()));
                replica.snapshot = Snapshot { slots, term, engine };
            }
            Step::Calm => {
                self.phase = Phase::Calm;
                self.left = Left { entries: 0, elections: 0, crashes: 0, snapshots: 0, altered: 0 };
                self.answers.clear();
            }
            Step::Finish => self.phase = Phase::Done,
        }
    }

    fn replica(&mut self, at: usize) -> &mut Replica {
        Arc::make_mut(&mut self.replicas[at])
    }

    /// A leader answers applied commands, drops those in flight, and accepts the next one.
    fn arrive(&mut self, settings: &Settings, client: u8, seq: u8, content: Content, at: usize) {
        let leader = Arc::make_mut(&mut self.replicas[at]);
        let session = &leader.engine.sessions[usize::from(client)];
        if seq < session.next {
            let answer = session.answer(seq, content, settings);
            self.answers.extend(answer.map(|outcome| Answer { client, seq, content, outcome }));
            return;
        }
        let taken = leader.memory[usize::from(client)];
        let in_turn = seq == session.next.max(taken + 1) || (seq > taken && settings.bug == Some(Bug::GapsTaken));
        if !in_turn || (self.phase == Phase::Faults && self.left.entries == 0) {
            return;
        }
        self.left.entries = self.left.entries.saturating_sub(1);
        leader.memory[usize::from(client)] = seq;
        let command = self.clients[usize::from(client)].sent[usize::from(seq - 1)];
        leader.queue.push(Entry { client, seq, command, content });
    }

    fn propose(&mut self, settings: &Settings, at: usize) {
        let leader = Arc::make_mut(&mut self.replicas[at]);
        let slot = Slot { term: leader.term, pack: std::mem::take(&mut leader.queue) };
        leader.log.push(slot.clone());
        let (number, term) = (leader.slots(), leader.term);
        if settings.bug == Some(Bug::AcknowledgedBeforeDecided) {
            let mut engine = leader.engine.clone();
            for number in leader.decided + 1..=number {
                for &entry in leader.slot(number).iter().flat_map(|slot| &slot.pack) {
                    let outcome = engine.apply(entry, settings);
                    self.answers.extend(outcome.map(|outcome| Answer::to(&entry, outcome)));
                }
            }
        }
        leader.origins.push(Origins { slot: number, term, pack: slot.pack });
    }

    /// The number of slots that a majority has, which counts only up to a slot of the leader's own term. Acknowledgements are not
    /// modelled as messages: the leader reads the replicas of its term directly. A late acknowledgement is a later step.
    fn majority(&self, at: usize) -> u8 {
        let leader = &self.replicas[at];
        let heard = |replica: &Replica| replica.term == leader.term && replica.role != Role::Lost;
        let mut slots: Vec<u8> = self.replicas.iter().map(|replica| if heard(replica) { replica.slots() } else { 0 }).collect();
        slots.sort_unstable_by(|a, b| b.cmp(a));
        let held = slots[REPLICAS / 2];
        if leader.slot(held).is_some_and(|slot| slot.term == leader.term) { held } else { 0 }
    }

    fn replicate(&mut self, settings: &Settings, from: usize, to: usize) {
        let leader = Arc::clone(&self.replicas[from]);
        let follower = self.replica(to);
        if follower.term > leader.term {
            let term = follower.term;
            return self.replica(from).step_down(term, Role::Lost, settings);
        }
        if (follower.term, follower.role) != (leader.term, Role::Follower) {
            follower.step_down(leader.term, Role::Follower, settings);
        }
        if follower.decided < leader.snapshot.slots {
            follower.log.clear();
            follower.restore(leader.snapshot.clone());
        }
        let kept = leader.snapshot.slots.saturating_sub(follower.snapshot.slots);
        let there = follower.snapshot.slots.saturating_sub(leader.snapshot.slots);
        follower.log.truncate(kept.into());
        follower.log.extend_from_slice(leader.log.get(usize::from(there)..).unwrap_or_default());
        self.advance(settings, to, leader.decided);
    }

    /// Applies decided slots, and answers the clients that asked this replica.
    fn advance(&mut self, settings: &Settings, at: usize, decided: u8) {
        let replica = Arc::make_mut(&mut self.replicas[at]);
        while replica.decided < decided {
            let number = replica.decided + 1;
            let Some(slot) = replica.slot(number).cloned() else { return };
            if self.truth.slots.len() < usize::from(number) {
                Arc::make_mut(&mut self.truth).push(&slot);
            }
            let outcomes: Vec<_> = slot.pack.iter().map(|&entry| replica.engine.apply(entry, settings)).collect();
            let same = |origins: &&Origins| origins.term == slot.term || settings.bug == Some(Bug::OriginBySlotAlone);
            if let Some(origins) = replica.origins.iter().filter(|origins| origins.slot == number).find(same) {
                let answers = origins.pack.iter().zip(outcomes);
                self.answers.extend(answers.filter_map(|(entry, outcome)| Some(Answer::to(entry, outcome?))));
            }
            replica.origins.retain(|origins| origins.slot > number);
            replica.decided = number;
        }
    }
}
