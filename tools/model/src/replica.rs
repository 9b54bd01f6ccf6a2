//! One replica: its engine with the sessions' windows, its disk, its memory as a leader.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::settings::{Bug, Settings};

/// Which of two commands a client sends under one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Content {
    /// The one that it gave the number to, and waits for.
    Asked,
    /// Another, by a mistake of the client.
    Other,
}

/// The outcome of an entry or a repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// It was applied as this entry, now or before.
    Applied(u8),
    /// Refused: another command was applied under its number.
    Reused,
}

/// A command in the log: the ordinal (client, session_seq), and which of the client's commands it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// Whose; a client has one session.
    pub client: u8,
    /// The place in its session, from 1.
    pub seq: u8,
    /// The client's command, from 1. Equal to `seq`, unless a planted bug gives a retry a new number.
    pub command: u8,
    /// Whether it is that command.
    pub content: Content,
}

/// What is replicated together. A leader opens its term with an empty pack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// Of the leader that proposed it.
    pub term: u8,
    /// Entries in the order in which they apply.
    pub pack: Vec<Entry>,
}

/// An applied command: the exchange of this model only records its commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Applied {
    /// Counts entries, so it is not the slot.
    pub log_index: u8,
    /// The client.
    pub client: u8,
    /// Which of its commands.
    pub command: u8,
    /// Whether it was that command.
    pub content: Content,
}

/// A session in the replicated state: the place it expects, and the answers to the last W places before that.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session {
    /// The `session_seq` that applies next.
    pub next: u8,
    /// The answers to `next - len .. next`: log index, and what was applied there.
    pub window: Vec<(u8, Content)>,
}

impl Session {
    /// The remembered answer to a command of this content.
    pub fn answer(&self, seq: u8, content: Content, settings: &Settings) -> Option<Outcome> {
        let (log_index, applied) = *self.window.iter().rev().nth(usize::from(self.next.checked_sub(seq + 1)?))?;
        let is_same = applied == content || settings.bug == Some(Bug::AnswerByPlaceAlone);
        Some(if is_same { Outcome::Applied(log_index) } else { Outcome::Reused })
    }
}

/// The replicated state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Engine {
    /// Entries so far, those without effect too.
    pub log_index: u8,
    /// One for each client.
    pub sessions: Vec<Session>,
    /// Stands for balances and books.
    pub history: Vec<Applied>,
}

impl Engine {
    /// Nothing applied yet.
    pub fn new(clients: u8) -> Self {
        Self { log_index: 0, sessions: vec![Session { next: 1, window: Vec::new() }; clients.into()], history: Vec::new() }
    }

    /// Applies an entry unless its ordinal was; its answer, or `None` when it is too old, or after a gap.
    pub fn apply(&mut self, entry: Entry, settings: &Settings) -> Option<Outcome> {
        let Entry { client, seq, command, content } = entry;
        self.log_index += 1;
        let session = &mut self.sessions[usize::from(client)];
        if seq != session.next {
            return session.answer(seq, content, settings);
        }
        session.next += 1;
        session.window.push((self.log_index, content));
        if session.window.len() > usize::from(settings.window) {
            session.window.remove(0);
        }
        self.history.push(Applied { log_index: self.log_index, client, command, content });
        Some(Outcome::Applied(self.log_index))
    }
}

/// The state after so many slots.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Snapshot {
    /// Slots before and in it.
    pub slots: u8,
    /// The term of the last of them.
    pub term: u8,
    /// The state, with the windows.
    pub engine: Engine,
}

/// The clients that wait for the result of a proposal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origins {
    /// Its slot, from 1.
    pub slot: u8,
    /// The term of the leader that put it there.
    pub term: u8,
    /// The clients and their commands.
    pub pack: Vec<Entry>,
}

/// What a replica believes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// It has heard nothing in its term from who leads it.
    Lost,
    /// It follows the leader of its term, and can name it.
    Follower,
    /// It leads its term, or did, and has not heard of a later one.
    Leader,
}

/// A name for the reader of a trace. Replicas are alike, so it is no part of the state: states that differ in names alone are one.
#[derive(Clone, Copy, Debug)]
pub struct Name(pub char);

impl PartialEq for Name {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Name {}
impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Name {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}
impl Hash for Name {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// One of the replicas.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Replica {
    /// For traces.
    pub name: Name,
    /// On disk: the latest term heard of.
    pub term: u8,
    /// On disk: where the log begins.
    pub snapshot: Snapshot,
    /// On disk: slots after the snapshot.
    pub log: Vec<Slot>,
    /// What it believes to be.
    pub role: Role,
    /// Slots known to be decided; all of them are applied.
    pub decided: u8,
    /// The state after them.
    pub engine: Engine,
    /// A leader's: taken, not yet proposed.
    pub queue: Vec<Entry>,
    /// A leader's, per client: the highest `session_seq` that it took in its term.
    pub memory: Vec<u8>,
    /// The clients to answer when a slot is decided.
    pub origins: Vec<Origins>,
}

impl Replica {
    /// One that has heard of nothing.
    pub fn new(name: char, clients: u8) -> Self {
        let engine = Engine::new(clients);
        Self {
            name: Name(name),
            term: 1,
            snapshot: Snapshot { slots: 0, term: 0, engine: engine.clone() },
            log: Vec::new(),
            role: Role::Follower,
            decided: 0,
            engine,
            queue: Vec::new(),
            memory: vec![0; clients.into()],
            origins: Vec::new(),
        }
    }

    /// Slots that it has, those that went into the snapshot too.
    pub fn slots(&self) -> u8 {
        self.snapshot.slots + self.log.len() as u8
    }

    /// The slot of this number, counted from 1, unless the snapshot took its place or the log ends before.
    pub fn slot(&self, number: u8) -> Option<&Slot> {
        self.log.get(usize::from(number.checked_sub(self.snapshot.slots + 1)?))
    }

    /// What votes compare: the term of the last slot, and how many there are.
    pub fn last(&self) -> (u8, u8) {
        (self.log.last().map_or(self.snapshot.term, |slot| slot.term), self.slots())
    }

    /// Stops leading. Clients without an answer ask the next leader; `origins` may stay, because their proposals may still be
    /// decided.
    pub fn step_down(&mut self, term: u8, role: Role, settings: &Settings) {
        self.role = role;
        self.term = term;
        self.queue.clear();
        self.forget(settings);
    }

    /// Begins a term: its empty pack first, so that what former terms left is decided with it.
    pub fn lead(&mut self, term: u8, settings: &Settings) {
        self.role = Role::Leader;
        self.term = term;
        self.log.push(Slot { term, pack: Vec::new() });
        self.forget(settings);
    }

    fn forget(&mut self, settings: &Settings) {
        if settings.bug != Some(Bug::MemoryOutlivesTerm) {
            self.memory.fill(0);
        }
    }

    /// Goes on from a snapshot: its own after a crash, or the leader's.
    pub fn restore(&mut self, snapshot: Snapshot) {
        self.decided = snapshot.slots;
        self.engine = snapshot.engine.clone();
        self.origins.retain(|origins| origins.slot > snapshot.slots);
        self.snapshot = snapshot;
    }
}
