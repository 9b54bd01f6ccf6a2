//! A small cluster in one thread, driven by random choices: messages are lost, doubled and reordered, replicas crash and lose what
//! was not synced, clients retry under the same ordinals at any replica. Then everything heals, and everybody must be answered. The
//! whole venue, with disks and clocks, is `tools/sim`'s.

mod batches;
mod clocks;
mod liars;
mod starts;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZero;

use walras_consensus::{
    DurableLog, Members, MemoryLog, ReadToken, ReplicaId, RoleChange, Settings, SnapshotMeta, Term, Ticket, Write,
};
use walras_engine::{Engine, Numbered, snapshot_hash};
use walras_sequencer::{
    AppliedEntry, Auditor, BlockJob, Entry, Halt, Host, NotTaken, ReleaseRules, ReplicatedSequencer, ReplicatedSettings, SolveJob,
    Unresolved,
};
use walras_types::{AccountId, Answer, LogIndex, Ordinal, SessionId, SessionSeq, TimeNs};
use walras_wire::{AccountCommand, Command, Event, OpenSession, SessionCommand, SessionEvent};

const MS: u64 = 1_000_000;
const REPLICAS: usize = 3;
const CLIENTS: usize = 3;
const CHECKPOINT_EVERY: u64 = 20;

/// A fault planted in what surrounds the sequencer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Planted {
    /// Says that writes are durable when they were only taken.
    SkipsSync,
    /// One replica's state is changed behind the log's back.
    FlipsABit,
}

fn id(index: usize) -> ReplicaId {
    ReplicaId::new(index as u64 + 1).unwrap()
}

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// What surrounds one replica.
struct Around {
    log: MemoryLog,
    written: Ticket,
    /// To be told to the sequencer.
    synced: Option<Ticket>,
    out: Vec<(ReplicaId, Vec<u8>, Option<SnapshotMeta>)>,
    /// Being written.
    writing: Vec<(SnapshotMeta, Vec<u8>)>,
    snapshots: BTreeMap<walras_consensus::Slot, Vec<u8>>,
    /// What came of ordinals here, and sessions opened.
    seen: Vec<(LogIndex, Ordinal, Numbered)>,
    opened: Vec<(u64, SessionId)>,
    unresolved: usize,
    restored: bool,
    entries: BTreeMap<LogIndex, Entry>,
    /// How far ahead the clocks were that stamped them.
    aheads: BTreeMap<LogIndex, Option<i64>>,
    jobs: Vec<SolveJob>,
}

impl Host<Option<Ordinal>> for Around {
    fn send(&mut self, to: ReplicaId, bytes: Vec<u8>) {
        self.out.push((to, bytes, None));
    }

    fn persist(&mut self, write: Write) {
        self.written = write.ticket;
        let Ok(()) = self.log.write(write);
    }

    fn applied(&mut self, _: &Engine, applied: AppliedEntry<'_, Option<Ordinal>>) {
        self.entries.insert(applied.entry.log_index, applied.entry.clone());
        self.aheads.insert(applied.entry.log_index, applied.ahead_ns);
        // Whoever is answered is answered for what they sent.
        assert!(applied.origin.is_none_or(|origin| origin == applied.entry.ordinal), "{:?}", applied.origin);
        if let (Some(ordinal), Some(numbered)) = (applied.entry.ordinal, applied.numbered) {
            self.seen.push((applied.entry.log_index, ordinal, numbered));
        }
        for event in applied.events {
            if let Event::Session(SessionEvent::Opened(opened)) = event {
                self.opened.push((opened.token, opened.session));
            }
        }
    }

    fn solve(&mut self, job: SolveJob) {
        self.jobs.push(job);
    }

    fn run(&mut self, job: BlockJob) {
        job.run(NonZero::<usize>::MIN);
    }

    fn unresolved(&mut self, _: Option<Ordinal>, _: Unresolved) {
        self.unresolved += 1;
    }

    fn snapshot(&mut self, engine: &mut Engine, meta: SnapshotMeta) {
        let mut bytes = Vec::new();
        engine.snapshot(&mut bytes);
        self.writing.push((meta, bytes));
    }

    fn let_go(&mut self, meta: SnapshotMeta) {
        let Ok(()) = self.log.let_go(meta);
    }

    fn send_snapshot(&mut self, to: ReplicaId, meta: SnapshotMeta, bytes: Vec<u8>) {
        self.out.push((to, bytes, Some(meta)));
    }

    fn install(&mut self, meta: &SnapshotMeta) -> Result<Engine, String> {
        self.restored = true;
        restore(&self.snapshots, meta)
    }

    fn role(&mut self, _: RoleChange) {}
    fn leading(&mut self, _: Term) {}
    fn members(&mut self, _: &Members) {}
    fn keep_introductions(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn read_ready(&mut self, _: ReadToken) {}
}

fn restore(snapshots: &BTreeMap<walras_consensus::Slot, Vec<u8>>, meta: &SnapshotMeta) -> Result<Engine, String> {
    if meta.slot.0 == 0 {
        return Ok(Engine::new());
    }
    let bytes = snapshots.get(&meta.slot).ok_or("its state is not there")?;
    Engine::restore(bytes).map_err(|e| e.to_string())
}

struct Node {
    around: Around,
    sequencer: Option<ReplicatedSequencer<Option<Ordinal>>>,
    halted: Option<String>,
}

#[derive(Default)]
struct Client {
    session: Option<SessionId>,
    next: u64,
    /// Sent and not answered, in order.
    unanswered: VecDeque<(SessionSeq, Command)>,
    answers: BTreeMap<SessionSeq, Answer>,
}

struct Message {
    from: usize,
    to: usize,
    bytes: Vec<u8>,
    state: Option<(walras_consensus::Slot, Vec<u8>)>,
    announced: Option<(usize, ReplicaId)>,
}

struct World {
    rng: Rng,
    now_ns: u64,
    nodes: Vec<Node>,
    clients: Vec<Client>,
    network: Vec<Message>,
    planted: Option<Planted>,
    /// How long market data is held.
    release: Option<ReleaseRules>,
    /// States wait until somebody finishes them.
    is_slow_to_hash: bool,
    starts: u64,
    account: u32,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    crashes: u64,
    repeated: u64,
    installs: u64,
    answered: u64,
    audited: u64,
}

impl World {
    fn new(seed: u64, planted: Option<Planted>) -> Self {
        let members = Members::of_voters((0..REPLICAS).map(id));
        let around = || Around {
            log: MemoryLog::new(members.clone()),
            written: Ticket(0),
            synced: None,
            out: Vec::new(),
            writing: Vec::new(),
            snapshots: BTreeMap::new(),
            seen: Vec::new(),
            opened: Vec::new(),
            unresolved: 0,
            restored: false,
            entries: BTreeMap::new(),
            aheads: BTreeMap::new(),
            jobs: Vec::new(),
        };
        let nodes = (0..REPLICAS).map(|_| Node { around: around(), sequencer: None, halted: None }).collect();
        let clients = (0..CLIENTS).map(|_| Client::default()).collect();
        let counts = Counts::default();
        Self {
            rng: Rng(seed),
            now_ns: 0,
            nodes,
            clients,
            network: Vec::new(),
            planted,
            release: None,
            is_slow_to_hash: false,
            starts: 0,
            account: 0,
            counts,
        }
    }

    fn start(&mut self, n: usize) {
        self.starts += 1;
        let consensus = Settings { retained_slots: 10, ..Settings::new(7, id(n)) };
        let common = ReplicatedSettings::new(consensus);
        let settings = ReplicatedSettings { checkpoint_every: CHECKPOINT_EVERY, packs_max: 3, release: self.release, ..common };
        let seed = self.rng.next() ^ self.starts;
        let node = &mut self.nodes[n];
        let Ok(recovered) = node.around.log.recover();
        let engine = restore(&node.around.snapshots, &recovered.snapshot).unwrap();
        // What it saw before is seen again from the snapshot on.
        node.around.seen.retain(|(index, ..)| *index <= recovered.snapshot.log_index);
        node.sequencer =
            Some(ReplicatedSequencer::start(self.now_ns, settings, recovered, engine, seed, &mut node.around).unwrap());
        self.gather(n);
    }

    /// Whatever a replica wants sent goes into the network.
    fn gather(&mut self, n: usize) {
        for (to, bytes, announced) in std::mem::take(&mut self.nodes[n].around.out) {
            let state = announced.as_ref().map(|meta| (meta.slot, self.nodes[n].around.snapshots[&meta.slot].clone()));
            let announced = announced.map(|_| (n, to));
            self.network.push(Message { from: n, to: to.get() as usize - 1, bytes, state, announced });
        }
        if self.nodes[n].around.restored {
            self.nodes[n].around.restored = false;
            self.counts.installs += 1;
        }
    }

    fn with(&mut self, n: usize, act: impl FnOnce(&mut ReplicatedSequencer<Option<Ordinal>>, &mut Around) -> Result<(), Halt>) {
        let Node { around, sequencer, halted } = &mut self.nodes[n];
        if let Some(running) = sequencer
            && let Err(halt) = act(running, around)
        {
            *halted = Some(halt.to_string());
            *sequencer = None;
        }
        self.gather(n);
    }

    fn crash(&mut self, n: usize) {
        self.counts.crashes += 1;
        let survivors = self.rng.below(self.nodes[n].around.log.unsynced_count() + 1);
        let around = &mut self.nodes[n].around;
        around.log.crash(survivors);
        (around.written, around.synced) = (Ticket(0), None);
        around.writing.clear();
        around.out.clear();
        self.nodes[n].sequencer = None;
    }

    fn sync(&mut self, n: usize) {
        if self.nodes[n].sequencer.is_none() {
            return;
        }
        let ticket = self.nodes[n].around.written;
        if self.planted != Some(Planted::SkipsSync) {
            self.nodes[n].around.log.sync_up_to(ticket);
        }
        self.with(n, |sequencer, around| sequencer.on_persisted(ticket, around));
        if !self.is_slow_to_hash {
            self.finish_states(n);
        }
    }

    /// States that were taken are hashed and durable.
    fn finish_states(&mut self, n: usize) {
        let written = std::mem::take(&mut self.nodes[n].around.writing);
        for (meta, bytes) in written {
            let hash = snapshot_hash(&bytes).unwrap();
            self.with(n, |sequencer, around| sequencer.on_state_hashed(meta.log_index, hash, around));
            self.nodes[n].around.snapshots.insert(meta.slot, bytes);
            self.with(n, |sequencer, around| sequencer.on_snapshot_durable(&meta, around));
        }
    }

    fn deliver(&mut self, message: Message) {
        let Message { from, to, bytes, state, announced } = message;
        if self.nodes[to].sequencer.is_some() {
            if let Some((slot, state)) = state {
                self.nodes[to].around.snapshots.insert(slot, state);
            }
            let now_ns = self.now_ns;
            self.with(to, |sequencer, around| sequencer.on_message(now_ns, id(from), bytes.into(), around));
            self.snapshot_went(announced, Ok(()));
        } else {
            self.snapshot_went(announced, Err(()));
        }
    }

    fn snapshot_went(&mut self, announced: Option<(usize, ReplicaId)>, arrived: Result<(), ()>) {
        if let Some((from, receiver)) = announced {
            self.with(from, |sequencer, around| sequencer.on_snapshot_sent(receiver, arrived, around));
        }
    }

    /// A client sends what is unanswered, from the first on, to some replica.
    fn send(&mut self, c: usize, n: usize, may_ask: bool) {
        let time = TimeNs(1_000 + self.rng.next() % 1_000);
        if may_ask && self.clients[c].session.is_some() && self.clients[c].unanswered.len() < 4 {
            self.account += 1;
            let client = &mut self.clients[c];
            client.next += 1;
            // Some are refused, since the account exists.
            let command = Command::Account(AccountCommand::Create(AccountId(self.account / 2)));
            client.unanswered.push_back((SessionSeq(client.next), command));
        }
        let client = &mut self.clients[c];
        let mut submissions = Vec::new();
        match client.session {
            None => {
                submissions.push((None, Command::Session(SessionCommand::Open(OpenSession { account: None, token: c as u64 }))))
            }
            Some(session) => {
                for (session_seq, command) in &client.unanswered {
                    submissions.push((Some(Ordinal { session, session_seq: *session_seq }), *command));
                }
            }
        }
        for (ordinal, command) in submissions {
            let mut heard = None;
            self.with(n, |sequencer, _| {
                if let Err((NotTaken::Repeated(answer), _)) = sequencer.submit(time, ordinal, &command, Some(ordinal)) {
                    heard = Some(answer);
                }
                Ok(())
            });
            if let (Some(answer), Some(ordinal)) = (heard, ordinal) {
                self.counts.repeated += 1;
                self.hear(c, ordinal.session_seq, answer);
            }
        }
        let now_ns = self.now_ns;
        self.with(n, |sequencer, around| sequencer.propose(now_ns, around));
    }

    fn hear(&mut self, c: usize, seq: SessionSeq, answer: Answer) {
        let client = &mut self.clients[c];
        let before = client.answers.insert(seq, answer);
        assert!(before.is_none_or(|before| before == answer), "client {c} was told {before:?}, then {answer:?}");
        client.unanswered.retain(|(unanswered, _)| *unanswered != seq);
    }

    /// Clients hear of what a replica applied, if their connection holds.
    fn tell(&mut self, n: usize) {
        for (token, session) in std::mem::take(&mut self.nodes[n].around.opened) {
            let known = &mut self.clients[token as usize].session;
            assert!(known.is_none_or(|known| known == session), "one token, two sessions");
            *known = Some(session);
        }
        let seen: Vec<_> = self.nodes[n].around.seen.iter().rev().take(10).copied().collect();
        for (_, ordinal, numbered) in seen {
            let client = self.clients.iter().position(|client| client.session == Some(ordinal.session));
            if let (Some(c), Numbered::Done(answer) | Numbered::Repeated(answer)) = (client, numbered) {
                self.hear(c, ordinal.session_seq, answer);
            }
        }
    }

    fn step(&mut self) {
        self.now_ns += MS;
        let n = self.rng.below(REPLICAS);
        let now_ns = self.now_ns;
        match self.rng.below(100) {
            0 if self.nodes[n].sequencer.is_some() => self.crash(n),
            1..4 if self.nodes[n].sequencer.is_none() && self.nodes[n].halted.is_none() => self.start(n),
            4..24 => self.with(n, |sequencer, around| sequencer.on_timer(now_ns, around)),
            24..40 => self.sync(n),
            40..48 => {
                let client = self.rng.below(CLIENTS);
                self.send(client, n, true);
            }
            48..54 if self.rng.below(2) == 0 => self.tell(n),
            _ if !self.network.is_empty() => {
                let at = self.rng.below(self.network.len());
                let message = self.network.swap_remove(at);
                match self.rng.below(20) {
                    0 => self.snapshot_went(message.announced, Err(())),
                    1 if message.state.is_none() => {
                        let Message { from, to, .. } = message;
                        let again = Message { from, to, bytes: message.bytes.clone(), state: None, announced: None };
                        self.network.push(again);
                        self.deliver(message);
                    }
                    _ => self.deliver(message),
                }
            }
            _ => {}
        }
    }

    fn heal(&mut self) -> Result<(), String> {
        for n in 0..REPLICAS {
            if self.nodes[n].sequencer.is_none() && self.nodes[n].halted.is_none() {
                self.start(n);
            }
        }
        for round in 0..4_000_u64 {
            self.now_ns += 5 * MS;
            for n in 0..REPLICAS {
                let now_ns = self.now_ns;
                self.with(n, |sequencer, around| sequencer.on_timer(now_ns, around));
                self.sync(n);
                for c in 0..CLIENTS {
                    if round % 10 == 0 {
                        self.send(c, n, false);
                    }
                }
                self.tell(n);
            }
            for message in std::mem::take(&mut self.network) {
                self.deliver(message);
            }
            let applied: BTreeSet<_> =
                self.nodes.iter().flat_map(|node| &node.sequencer).map(|s| s.engine().last_applied()).collect();
            if self.clients.iter().all(|client| client.session.is_some() && client.unanswered.is_empty()) && applied.len() == 1 {
                return Ok(());
            }
        }
        let replicas: Vec<_> = self
            .nodes
            .iter()
            .map(|node| (node.sequencer.as_ref().map(|s| (s.status(), s.waiting(), s.engine().last_applied())), &node.halted))
            .collect();
        let clients: Vec<_> = self.clients.iter().map(|client| (client.session, client.next, &client.unanswered)).collect();
        Err(format!("not everybody was answered after everything healed: {replicas:?} {clients:?}"))
    }

    /// What all replicas together saw of the log, replayed: the states are those that the leaders had.
    fn audit(&self) -> Result<u64, String> {
        let entries: BTreeMap<_, _> = self.nodes.iter().flat_map(|node| &node.around.entries).collect();
        let mut auditor = Auditor::new(entries.values().filter_map(|entry| Auditor::checkpoint(entry)));
        for entry in entries.values() {
            auditor.apply(entry).map_err(|e| e.to_string())?;
        }
        Ok(auditor.compared())
    }

    fn check(&self) -> Result<(), String> {
        if let Some(halt) = self.nodes.iter().find_map(|node| node.halted.as_ref()) {
            return Err(format!("a replica halted: {halt}"));
        }
        let hashes: BTreeSet<_> = self.nodes.iter().flat_map(|node| &node.sequencer).map(|s| s.engine().state_hash()).collect();
        if hashes.len() != 1 {
            return Err("replicas have different states".to_owned());
        }
        for node in &self.nodes {
            let mut next: BTreeMap<SessionId, SessionSeq> = BTreeMap::new();
            for (index, ordinal, numbered) in &node.around.seen {
                if let Numbered::Done(answer) = numbered {
                    let last = next.insert(ordinal.session, ordinal.session_seq);
                    // A snapshot may have taken the place of some.
                    if last.is_some_and(|last| last >= ordinal.session_seq) || answer.log_index != *index {
                        return Err(format!("{ordinal:?} was done at {index} after {last:?}"));
                    }
                }
            }
        }
        let mut accounts = BTreeMap::new();
        for client in &self.clients {
            for (seq, answer) in &client.answers {
                if let Some(other) = accounts.insert(answer.log_index, seq) {
                    return Err(format!("two commands, {seq:?} and {other:?}, have the answer of entry {}", answer.log_index));
                }
            }
        }
        Ok(())
    }
}

fn run(seed: u64, planted: Option<Planted>) -> Result<Counts, String> {
    let mut world = World::new(seed, planted);
    for n in 0..REPLICAS {
        world.start(n);
    }
    for step in 0..6_000 {
        world.step();
        if planted == Some(Planted::FlipsABit) && step == 3_000 {
            world.flip_a_bit();
        }
    }
    world.heal()?;
    world.check()?;
    let asked: u64 = world.clients.iter().map(|client| client.next).sum();
    let answered: usize = world.clients.iter().map(|client| client.answers.len()).sum();
    assert_eq!(asked, answered as u64);
    world.counts.answered = answered as u64;
    world.counts.audited = world.audit()?;
    Ok(world.counts)
}

impl World {
    /// Changes one replica's state where no entry did: what a faulty memory would do.
    fn flip_a_bit(&mut self) {
        let Some(n) = (0..REPLICAS).find(|n| self.nodes[*n].sequencer.is_some()) else { return };
        self.crash(n);
        // A snapshot at the last slot whose state is not what the log makes of it.
        let around = &mut self.nodes[n].around;
        if let Some((_, bytes)) = around.snapshots.iter_mut().next_back() {
            let mut engine = Engine::restore(bytes).unwrap();
            let index = engine.last_applied();
            let mut other = Engine::new();
            let mut events = Vec::new();
            // As many entries, other accounts.
            for i in 1..=index.0 {
                other.apply(
                    LogIndex(i),
                    engine.time(),
                    &Command::Account(AccountCommand::Create(AccountId(i as u32 - 1))),
                    &mut events,
                );
            }
            engine = other;
            bytes.clear();
            engine.snapshot(bytes);
        }
    }
}

impl World {
    /// Time passes for some replicas, which reach each other and nobody else, until something is so.
    fn live_until(&mut self, replicas: &[usize], what: &str, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..1_000 {
            if is_so(self) {
                return;
            }
            self.now_ns += 5 * MS;
            let now_ns = self.now_ns;
            for &n in replicas {
                self.with(n, |sequencer, around| sequencer.on_timer(now_ns, around));
                self.sync(n);
            }
            for message in std::mem::take(&mut self.network) {
                if replicas.contains(&message.to) {
                    self.deliver(message);
                }
            }
        }
        panic!("not in five seconds: {what}");
    }

    fn sequencer(&self, n: usize) -> &ReplicatedSequencer<Option<Ordinal>> {
        self.nodes[n].sequencer.as_ref().unwrap()
    }

    fn leader_among(&self, replicas: &[usize]) -> Option<usize> {
        replicas.iter().copied().find(|n| self.sequencer(*n).is_leading())
    }

    /// A pack of one command goes on its way, and out of the door.
    fn send_a_pack(&mut self, n: usize) {
        self.account += 1;
        let command = Command::Account(AccountCommand::Create(AccountId(self.account - 1)));
        // Else it would wait for the one before.
        self.now_ns += MS;
        let now_ns = self.now_ns;
        self.with(n, |sequencer, around| {
            sequencer.submit(TimeNs(1), None, &command, Some(None)).unwrap();
            sequencer.propose(now_ns, around)
        });
    }
}

/// Packs of an earlier term beyond the end of the log were counted as on their way, and who had sent them was told nothing.
#[test]
fn who_leads_again_gives_up_what_a_successor_cut() {
    let mut world = World::new(1, None);
    let all = [0, 1, 2];
    all.into_iter().for_each(|n| world.start(n));
    world.live_until(&all, "somebody leads", |world| world.leader_among(&all).is_some());
    let leader = world.leader_among(&all).unwrap();
    world.network.clear();

    // Three packs that reach nobody: the next leader's first slot takes the place of the first, and the log ends there.
    (0..3).for_each(|_| world.send_a_pack(leader));
    world.network.clear();
    assert_eq!((world.sequencer(leader).waiting(), world.nodes[leader].around.unresolved), (3, 0));
    let others: Vec<usize> = all.into_iter().filter(|n| *n != leader).collect();
    world.live_until(&others, "another one leads", |world| world.leader_among(&others).is_some());
    let successor = world.leader_among(&others).unwrap();
    let end = world.sequencer(successor).status().last;
    world.live_until(&all, "the former leader follows", |world| world.sequencer(leader).status().delivered == end);

    let now_ns = world.now_ns;
    world.with(successor, |sequencer, around| {
        sequencer.transfer_to(now_ns, id(leader), around)?.unwrap();
        Ok(())
    });
    world.live_until(&all, "the first one leads again", |world| world.sequencer(leader).is_leading());
    assert_eq!(world.sequencer(leader).status().last, end.next(), "its second pack's place is taken, its third one's is free");
    let after = (world.sequencer(leader).waiting(), world.nodes[leader].around.unresolved);
    assert_eq!(after, (0, 3), "nothing is on its way, and everybody was told");

    // As many packs as may be on their way, before any of them is decided.
    (0..3).for_each(|_| world.send_a_pack(leader));
    assert_eq!(world.sequencer(leader).status().last.0, end.0 + 4);
    world.live_until(&all, "all is applied", |world| all.iter().all(|n| world.sequencer(*n).engine().last_applied().0 == 3));
    assert_eq!(world.nodes[leader].around.unresolved, 3);
}

/// Hashing a large state takes longer than a leader may be silent for.
#[test]
fn nothing_waits_for_the_hash_of_a_state() {
    let mut world = World::new(1, None);
    world.is_slow_to_hash = true;
    let all = [0, 1, 2];
    all.into_iter().for_each(|n| world.start(n));
    world.live_until(&all, "somebody leads", |world| world.leader_among(&all).is_some());
    let leader = world.leader_among(&all).unwrap();
    let last = |world: &World, n: usize| world.sequencer(n).engine().last_applied().0;
    for count in 1..=3 * CHECKPOINT_EVERY {
        world.send_a_pack(leader);
        world.live_until(&all, "it is applied", |world| all.iter().all(|n| last(world, *n) >= count));
    }
    assert_eq!(last(&world, leader), 3 * CHECKPOINT_EVERY, "no checkpoint is in the log before its hash is known");
    assert_eq!(world.audit(), Ok(0));

    // The leader left out the first: it had no room for it.
    let first = |meta: &SnapshotMeta| meta.log_index.0 == CHECKPOINT_EVERY;
    let taken = world.nodes[leader].around.writing.len();
    world.nodes[leader].around.writing.retain(|(meta, _)| !first(meta));
    assert_eq!(world.nodes[leader].around.writing.len() + 1, taken);
    all.into_iter().for_each(|n| world.finish_states(n));
    let now_ns = world.now_ns;
    world.with(leader, |sequencer, around| sequencer.propose(now_ns, around));
    world.live_until(&all, "both are in the log", |world| all.iter().all(|n| last(world, *n) == 3 * CHECKPOINT_EVERY + 2));
    let told: Vec<_> =
        world.nodes[leader].around.entries.values().filter_map(Auditor::checkpoint).map(|it| it.log_index.0).collect();
    assert_eq!(told, [2 * CHECKPOINT_EVERY, 3 * CHECKPOINT_EVERY]);
    assert_eq!(world.audit(), Ok(2));
    world.check().unwrap();
}

const SEEDS: u64 = 60;

#[test]
fn every_command_is_done_once_and_answered_alike_whatever_fails() {
    let (mut crashes, mut repeated, mut installs, mut answered, mut audited) = (0, 0, 0, 0, 0);
    for seed in 0..SEEDS {
        let counts = run(seed, None).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        crashes += counts.crashes;
        repeated += counts.repeated;
        installs += counts.installs;
        answered += counts.answered;
        audited += counts.audited;
    }
    let all_happened = crashes > 0 && repeated > 0 && installs > 0 && audited > 0 && answered > 50 * SEEDS;
    assert!(all_happened, "{crashes} crashes, {repeated} repeats, {installs} snapshots installed, {answered} answers");
}

#[test]
fn planted_faults_are_found() {
    for planted in [Planted::SkipsSync, Planted::FlipsABit] {
        let found = (0..200).any(|seed| std::panic::catch_unwind(|| run(seed, Some(planted))).map_or(true, |run| run.is_err()));
        assert!(found, "{planted:?} was not found in 200 seeds");
    }
}
