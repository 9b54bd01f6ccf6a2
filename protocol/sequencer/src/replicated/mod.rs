//! The sequencer of a cluster: every replica applies what the consensus decides; the leader orders and stamps what becomes of it.
//!
//! ```text
//! submit --> collecting --propose--> on their way --decided--> apply, answer          at the leader
//!                                                --decided--> apply                   at every replica
//! ```
//!
//! A command that belongs to a session is known by its ordinal. If the state has it, it is answered from the state. If it is on its
//! way in this term, it is not proposed again. Otherwise it is new, or a retry of one that an earlier leader lost: it is proposed,
//! and the state decides when it is applied. So nothing is applied twice, whatever the leader remembers.

mod agreement;
mod host;
mod introductions;
mod leader_clocks;
mod peer;
mod programs;
mod proposals;
mod release;
mod settings;

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use walras_consensus::{
    Committed, Effect, MemberChange, Members, Recovered, Refused as ConsensusRefused, Replica, ReplicaId, Role, RoleChange,
    SnapshotMeta, StartError, Status, Term, Ticket,
};
use walras_engine::versions::NEWEST;
use walras_engine::{Engine, Standing};
use walras_types::{BatchMarketId, EngineVersion, LogIndex, Ordinal, RejectReason, SessionId, SessionSeq, TimeNs};
use walras_wire::batch::BlockProposal;
use walras_wire::{BatchCommand, Checkpoint, Command, Event, SessionEvent, ShardCommand, VenueCommand};

use crate::batches::{BatchDriver, BatchStep, Solved};
use crate::entry::{Content, Entry, LogGap, SignedBy, decode_entry};
use crate::with_kept_room;
use agreement::{Agreement, Differs};
pub use host::{AppliedEntry, Halt, Host, NotTaken, Unresolved};
use introductions::Greeting;
pub use introductions::{BadStart, DiskId, Introductions, OtherDisk, OtherGenesis};
pub use leader_clocks::LeaderTime;
use leader_clocks::{LeaderClocks, REPORT_EVERY_NS};
use peer::PeerMessage;
pub use peer::is_of_consensus;
use programs::Programs;
pub use programs::VersionRefused;
use proposals::{Collecting, OnTheirWay};
pub use release::{ReceiverCounts, ReceiverSample, ReleaseCounts, ReleaseRules, ReleaseSteering};
pub use settings::ReplicatedSettings;

/// How many entries ahead the name of an entry's order is looked for, then the order: as long as memory takes, about.
const NAMES_AHEAD: usize = 8;
const ORDERS_AHEAD: usize = 4;

/// Cancels of all orders that may wait beyond [`ReplicatedSettings::waiting_max`].
const URGENT_MAX: usize = 4_096;

/// Most checkpoints whose hashes are waited for. A host may leave out a state, and its hash then never comes.
const UNHASHED_MAX: usize = 16;

/// A replica that is not settled asks so often, one that is asks those so often who have not answered yet.
const ASK_EVERY_NS: u64 = 20_000_000;
const ASK_AGAIN_EVERY_NS: u64 = 1_000_000_000;

impl ReplicatedSettings {
    /// 65,536 commands in up to 16 packs, one in 150 us; a snapshot every million entries.
    #[must_use]
    pub fn new(consensus: walras_consensus::Settings) -> Self {
        Self {
            consensus,
            waiting_max: 1 << 16,
            packs_max: 16,
            propose_every_ns: 150_000,
            checkpoint_every: 1_000_000,
            engine_newest: NEWEST,
            engine_at_start: None,
            release: None,
            introductions: None,
            peers: BTreeSet::new(),
        }
    }
}

/// One replica of the venue.
pub struct ReplicatedSequencer<O> {
    replica: Replica,
    engine: Engine,
    settings: ReplicatedSettings,
    role: Role,
    introductions: Option<Introductions>,
    next_greeting_ns: u64,
    /// While it leads and may take commands.
    collecting: Option<Collecting<O>>,
    on_their_way: OnTheirWay<O>,
    /// While something is on its way, nothing is proposed before this.
    next_proposal_ns: u64,
    agreement: Agreement,
    /// Checkpoints of which the host has the state, and the hash is to come.
    unhashed: VecDeque<LogIndex>,
    /// The last slot whose entries are all applied.
    applied: walras_consensus::Slot,
    members: Members,
    events: Vec<Event>,
    effects: Vec<Effect>,
    /// Empty.
    effects_spent: Vec<Effect>,
    /// Those of the pack that is being applied.
    entries: Vec<Entry>,
    driver: BatchDriver,
    steps: Vec<BatchStep>,
    /// When the driver looked last.
    driven_ns: u64,
    /// Clearings that wait for room in a pack.
    clearings: Vec<BlockProposal>,
    /// While it leads.
    release: Option<ReleaseSteering>,
    /// The replicas whose link was lost and is not up again.
    unlinked: BTreeSet<ReplicaId>,
    programs: Programs,
    /// While it leads a log without entries: what its first entry sets.
    first_version: Option<EngineVersion>,
    leader_clocks: LeaderClocks,
    /// When it next reports its clock, where it leads.
    next_clock_report_ns: u64,
    /// Why it takes no commands, while that is so.
    refusal: Option<RejectReason>,
}

impl<O> ReplicatedSequencer<O> {
    /// Goes on from what was recovered: `engine` is the state of its snapshot. Entries that are known to be decided are applied at
    /// once. `seed` should differ from start to start.
    pub fn start(
        now_ns: u64,
        settings: ReplicatedSettings,
        recovered: Recovered,
        engine: Engine,
        seed: u64,
        host: &mut impl Host<O>,
    ) -> Result<Self, StartHalt> {
        let SnapshotMeta { slot, log_index, ref members, .. } = recovered.snapshot;
        if engine.last_applied() != log_index {
            return Err(StartHalt::Halt(LogGap { last: engine.last_applied(), found: log_index }.into()));
        }
        let programs = Programs::new(settings.consensus.id, settings.engine_newest);
        check_version(&programs, log_index, engine.version()).map_err(StartHalt::Halt)?;
        let members = members.clone();
        let mut effects = Vec::new();
        let mut settings = settings;
        let introductions = settings.introductions.take();
        let replica = Replica::start(now_ns, settings.consensus.clone(), recovered, seed, &mut effects)?;
        let mut sequencer = Self {
            agreement: Agreement::new(settings.consensus.id),
            unhashed: VecDeque::new(),
            replica,
            engine,
            settings,
            role: Role::Follower { leader: None },
            introductions,
            next_greeting_ns: now_ns,
            collecting: None,
            on_their_way: OnTheirWay::new(),
            next_proposal_ns: now_ns,
            applied: slot,
            members,
            events: Vec::new(),
            effects,
            effects_spent: Vec::new(),
            entries: Vec::new(),
            driver: BatchDriver::new(),
            steps: Vec::new(),
            driven_ns: now_ns,
            clearings: Vec::new(),
            release: None,
            unlinked: BTreeSet::new(),
            programs,
            first_version: None,
            leader_clocks: LeaderClocks::default(),
            next_clock_report_ns: 0,
            refusal: None,
        };
        sequencer.settle(host)?;
        Ok(sequencer)
    }

    /// Takes a command; `now` becomes its time unless an earlier one has a later one. It goes on its way with the next
    /// [`propose`](Self::propose).
    pub fn submit(
        &mut self,
        now: TimeNs,
        ordinal: Option<Ordinal>,
        command: &Command,
        origin: Option<O>,
    ) -> Result<(), (NotTaken, Option<O>)> {
        self.begin_log(now);
        match self.admit(ordinal, command, with_kept_room(self.settings.waiting_max, command)) {
            Ok(collecting) => {
                collecting.push(now, ordinal, &SignedBy::NOBODY, command, origin);
                Ok(())
            }
            Err(why) => Err((why, origin)),
        }
    }

    /// The same for a command of no session, which the log keeps with its nonce and with the operator's API key that gave it.
    ///
    /// # Errors
    /// As [`submit`](Self::submit); or the state knows already that it will refuse the nonce.
    pub fn submit_signed(
        &mut self,
        now: TimeNs,
        signed: &SignedBy,
        command: &Command,
        origin: Option<O>,
    ) -> Result<(), (NotTaken, Option<O>)> {
        self.submit_within(now, signed, command, origin, self.settings.waiting_max)
    }

    /// The same for a cancel of all orders, which is taken before orders are: where as many commands wait as may, some cancels still have room.
    ///
    /// # Errors
    /// As [`submit_signed`](Self::submit_signed).
    pub fn submit_urgent(
        &mut self,
        now: TimeNs,
        signed: &SignedBy,
        command: &Command,
        origin: Option<O>,
    ) -> Result<(), (NotTaken, Option<O>)> {
        self.submit_within(now, signed, command, origin, self.settings.waiting_max.saturating_add(URGENT_MAX))
    }

    fn submit_within(
        &mut self,
        now: TimeNs,
        signed: &SignedBy,
        command: &Command,
        origin: Option<O>,
        waiting_max: usize,
    ) -> Result<(), (NotTaken, Option<O>)> {
        self.begin_log(now);
        let known = signed.nonce.as_deref().map_or(Ok(()), |nonce| self.engine.check_nonce(self.engine.time(), nonce));
        match self.admit(None, command, waiting_max).and_then(|collecting| known.map_err(NotTaken::Refused).map(|()| collecting)) {
            Ok(collecting) => {
                collecting.push(now, None, signed, command, origin);
                Ok(())
            }
            Err(why) => Err((why, origin)),
        }
    }

    /// A new log begins with the version of the engine.
    fn begin_log(&mut self, now: TimeNs) {
        if let Some(collecting) = &mut self.collecting
            && let Some(version) = self.first_version.take()
        {
            let command = Command::Venue(VenueCommand::SetEngineVersion(version));
            collecting.push(now, None, &SignedBy::NOBODY, &command, None);
        }
    }

    fn admit(&mut self, ordinal: Option<Ordinal>, command: &Command, waiting_max: usize) -> Result<&mut Collecting<O>, NotTaken> {
        let version = match command {
            Command::Venue(VenueCommand::SetEngineVersion(version)) => {
                self.check_engine_version(*version).map_err(|_| RejectReason::EngineVersionInvalid)
            }
            _ if command.since() > self.engine.version() => Err(RejectReason::NeedsLaterVersion),
            _ => Ok(()),
        };
        let (leader, waiting, room, refusal) = (self.leader(), self.waiting(), self.pack_bytes_room(), self.refusal);
        let Some(collecting) = &mut self.collecting else { return Err(NotTaken::NotLeader { leader }) };
        if let Some(ordinal) = ordinal {
            let applied = match self.engine.standing(ordinal) {
                Standing::Next { next } => next,
                Standing::Known(answer) => return Err(NotTaken::Repeated(answer)),
                Standing::TooOld => return Err(NotTaken::Refused(RejectReason::SessionSeqTooOld)),
                Standing::UnknownSession => return Err(NotTaken::Refused(RejectReason::UnknownSession)),
            };
            let next = collecting.next_of(ordinal.session).unwrap_or(applied).max(applied);
            if ordinal.session_seq < next {
                return Err(NotTaken::OnItsWay);
            }
            if refusal.is_none() && ordinal.session_seq > next {
                return Err(NotTaken::Refused(RejectReason::SessionSeqGap));
            }
        }
        if let Some(reason) = refusal {
            return Err(NotTaken::Refused(reason));
        }
        version.map_err(NotTaken::Refused)?;
        if waiting >= waiting_max || collecting.encoded_bytes() >= room {
            return Err(NotTaken::Refused(RejectReason::Overloaded));
        }
        // The borrow above ends with the checks.
        Ok(self.collecting.as_mut().expect("it was there a moment ago"))
    }

    /// What a linked replica's program knows: the newest version of the engine; `None` once the link is gone.
    pub fn note_program(&mut self, peer: ReplicaId, newest: Option<EngineVersion>) {
        self.programs.note(peer, newest);
    }

    /// Whether `SetEngineVersion` would be taken here, as far as the replicas' programs go.
    ///
    /// # Errors
    /// Some replica could not go on, or the version is no later one.
    pub fn check_engine_version(&self, version: EngineVersion) -> Result<(), VersionRefused> {
        self.programs.check(version, self.engine.version(), &self.members)
    }

    /// Refuses commands for this reason from now on, because this replica's log cannot be written; `None` takes them again.
    /// Commands taken before stay on their way.
    pub fn refuse(&mut self, refusal: Option<RejectReason>) {
        self.refusal = refusal;
    }

    /// Answers those who wait here for a command that was taken: this replica's log cannot be written, for this reason. The
    /// commands stay on their way.
    pub fn give_up_waiting(&mut self, reason: RejectReason, host: &mut impl Host<O>) {
        let collecting = self.collecting.as_mut().into_iter().flat_map(Collecting::take_origins);
        let waiting = self.on_their_way.take_origins().chain(collecting);
        waiting.for_each(|origin| host.unresolved(origin, Unresolved::Unwritten(reason)));
    }

    /// Who could lead next soonest, where this replica leads.
    #[must_use]
    pub fn heir(&self) -> Option<ReplicaId> {
        self.replica.heir()
    }

    /// Where it leads: closes batches whose time has come, and hands closed ones to the host's solver. Call it after every input,
    /// before [`propose`](Self::propose). `now` is the time of day, for what is submitted.
    pub fn drive_batches(&mut self, now_ns: u64, now: TimeNs, host: &mut impl Host<O>) {
        if self.collecting.is_none() {
            return;
        }
        self.driven_ns = now_ns;
        self.begin_log(now);
        let mut steps = std::mem::take(&mut self.steps);
        self.driver.drive(now_ns, &self.engine, &mut steps);
        for step in steps.drain(..) {
            match step {
                // Where it is not taken it is submitted again after a while.
                BatchStep::Close(close) => drop(self.submit(now, None, &Command::Batch(BatchCommand::Close(close)), None)),
                BatchStep::Step(step) => drop(self.submit(now, None, &Command::Batch(BatchCommand::Step(step)), None)),
                BatchStep::Solve(job) => host.solve(job),
            }
        }
        self.steps = steps;
        self.collect_clearings(now);
    }

    /// A batch market whose every block was set aside as a whole since this replica leads, for so long that another should.
    pub fn take_idle_market(&mut self) -> Option<BatchMarketId> {
        self.driver.take_idle_market()
    }

    /// This replica has published what an entry changed, to be held so long after the entry was made, and had it so long after
    /// that: `None` where its clock is not good enough to say. Call it for the same entries on every replica.
    pub fn published(&mut self, at: LogIndex, held_ns: u64, transit_ns: Option<i64>, host: &mut impl Host<O>) {
        let (me, cluster_id) = (self.settings.consensus.id, self.settings.consensus.cluster_id);
        if let Some(release) = &mut self.release {
            release.on_made(at, held_ns);
            if let Some(transit_ns) = transit_ns {
                release.on_arrival(me, at, transit_ns);
            }
        } else if let (Some(leader), Some(transit_ns), Some(_)) = (self.leader(), transit_ns, self.settings.release)
            && leader != me
        {
            host.send(leader, peer::arrival(cluster_id, me, at, transit_ns));
        }
    }

    /// Receivers of the relay trees report how late market data came to them; where this replica does not lead it changes nothing.
    pub fn on_receivers(&mut self, now_ns: u64, samples: &[ReceiverSample]) {
        if let Some(release) = &mut self.release {
            release.on_receivers(now_ns, samples);
        }
    }

    /// Where it leads: proposes `SetAccessDelays` when the release delay should change. Call it after every input, before
    /// [`propose`](Self::propose). `sequencing_ns` is how long orders wait now: the entry has that too.
    pub fn steer_release(&mut self, now_ns: u64, now: TimeNs, sequencing_ns: u64) {
        if let Some(release) = &mut self.release
            && let Some(delays) = release.wanted(now_ns, self.engine.access_delays(), sequencing_ns)
        {
            // Where it is not taken, it is wanted again.
            let _ = self.submit(now, None, &Command::Venue(VenueCommand::SetAccessDelays(delays)), None);
        }
    }

    /// Whether [`report_clock`](Self::report_clock) is due: where it leads and market data is held, from time to time. Ask after
    /// every input, before [`propose`](Self::propose).
    #[must_use]
    pub fn is_clock_wanted(&self, now_ns: u64) -> bool {
        self.release.is_some() && now_ns >= self.next_clock_report_ns
    }

    /// Reports to the other replicas how far this leader's clock, which stamps entries, is ahead of the venue's time. `time` is
    /// `None` while that is not known: then the last report goes on to apply.
    pub fn report_clock(&mut self, now_ns: u64, time: Option<LeaderTime>, host: &mut impl Host<O>) {
        self.next_clock_report_ns = now_ns.saturating_add(REPORT_EVERY_NS);
        let (Some(collecting), Some(time)) = (&self.collecting, time) else { return };
        // Where the log is ahead of this leader's clock, entries are stamped by the log.
        let report = self.leader_clocks.report(collecting.term, LeaderTime { now: time.now.max(collecting.time()), ..time });
        let (me, cluster_id) = (self.settings.consensus.id, self.settings.consensus.cluster_id);
        let said = peer::clock(cluster_id, me, &report);
        let others = self.members.voters.union(&self.members.learners).filter(|id| **id != me);
        others.for_each(|id| host.send(*id, said.clone()));
    }

    /// The bound of the last clock report of this term's leader; `None` where there is none.
    #[must_use]
    pub fn leader_clock_bound_ns(&self) -> Option<u64> {
        self.leader_clocks.bound_ns(self.replica.status().term)
    }

    /// What came of the publications that this leader saw; `None` where it does not lead or nothing is held.
    #[must_use]
    pub fn release_counts(&self) -> Option<ReleaseCounts> {
        let members = || self.members.voters.union(&self.members.learners).copied();
        self.release.as_ref().map(|release| release.counts(members()))
    }

    /// What came of a [`crate::SolveJob`]: what was found collects, if it is still wanted and this replica still leads.
    pub fn on_solved(&mut self, now_ns: u64, now: TimeNs, solved: Solved) {
        if self.collecting.is_some()
            && let Some(block) = self.driver.on_solved(now_ns, solved, &self.engine)
        {
            self.clearings.push(*block);
            self.collect_clearings(now);
        }
    }

    /// Clearings go before commands that come later, however many of those wait: there is one of each market.
    fn collect_clearings(&mut self, now: TimeNs) {
        let room = self.settings.consensus.pack_bytes_max;
        let Some(collecting) = &mut self.collecting else { return };
        self.clearings.retain(|block| match collecting.push_clearing(now, block, room) {
            Ok(is_taken) => !is_taken,
            // One that has no bytes is none; the solver is asked again.
            Err(_) => false,
        });
    }

    /// Sends what has collected on its way, unless enough is, or the last did so a moment ago. Call it after every input.
    pub fn propose(&mut self, now_ns: u64, host: &mut impl Host<O>) -> Result<(), Halt> {
        let packs = self.on_their_way.packs();
        if packs >= self.settings.packs_max || packs > 0 && now_ns < self.next_proposal_ns {
            return Ok(());
        }
        let Some(collecting) = self.collecting.as_mut().filter(|collecting| collecting.len() > 0) else { return Ok(()) };
        if !self.replica.may_propose() {
            return Ok(());
        }
        let (pack, origins) = collecting.take();
        self.next_proposal_ns = now_ns.saturating_add(self.settings.propose_every_ns);
        match self.replica.propose(pack, &mut self.effects) {
            Ok(place) => self.on_their_way.push(place, origins),
            Err(_) => {
                let leader = self.leader();
                origins.into_iter().flatten().for_each(|origin| host.unresolved(origin, Unresolved::Lost { leader }));
                // What was taken is gone, so what follows it in its sessions must not be taken: collect anew.
                if let Some(collecting) = &mut self.collecting {
                    *collecting = Collecting::new(collecting.term, collecting.time());
                }
            }
        }
        self.settle(host)
    }

    /// A message that came by the link of another replica. One that announces a snapshot may be handed over only when the state
    /// itself is durable here ([`announced_snapshot`](Self::announced_snapshot)). What is no message, or says that somebody else
    /// sent it, is dropped.
    pub fn on_message(&mut self, now_ns: u64, from: ReplicaId, bytes: Bytes, host: &mut impl Host<O>) -> Result<(), Halt> {
        match PeerMessage::of(from, bytes) {
            Some(PeerMessage::Greeting(bytes)) => self.on_greeting(now_ns, &bytes, host),
            // What comes before it is settled is sent again.
            Some(_) if !self.is_settled() => Ok(()),
            Some(PeerMessage::Consensus(bytes)) => match self.replica.on_message(now_ns, bytes, &mut self.effects) {
                Ok(()) | Err(walras_consensus::StepError::Message(_)) => self.settle(host),
                Err(halt) => Err(halt.into()),
            },
            Some(PeerMessage::Hash { cluster_id, from, at, hash }) if cluster_id == self.settings.consensus.cluster_id => {
                self.compare(from, at, hash)
            }
            Some(PeerMessage::Arrival { cluster_id, from, at, transit_ns }) if cluster_id == self.settings.consensus.cluster_id => {
                if let Some(release) = &mut self.release {
                    release.on_arrival(from, at, transit_ns);
                }
                Ok(())
            }
            Some(PeerMessage::Clock { cluster_id, from, report }) if cluster_id == self.settings.consensus.cluster_id => {
                // Nobody else stamps entries of this term. Who does not know the leader yet hears it again.
                if report.term == self.replica.status().term && self.leader() == Some(from) {
                    self.leader_clocks.hear(report);
                }
                Ok(())
            }
            Some(PeerMessage::Hash { .. } | PeerMessage::Arrival { .. } | PeerMessage::Clock { .. }) | None => Ok(()),
        }
    }

    /// The snapshot whose state must be durable here before a message is handed over; `None` for any other.
    #[must_use]
    pub fn announced_snapshot(&self, bytes: &Bytes) -> Option<SnapshotMeta> {
        match PeerMessage::decode(bytes.clone())? {
            PeerMessage::Consensus(bytes) => self.replica.announced_snapshot(bytes).ok().flatten(),
            PeerMessage::Hash { .. } | PeerMessage::Arrival { .. } | PeerMessage::Clock { .. } | PeerMessage::Greeting(_) => None,
        }
    }

    /// Whether it takes part: no other disk ever did so under its id. One that is not settled asks the others until it is.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.introductions.as_ref().is_none_or(Introductions::is_settled)
    }

    /// A replica introduces itself.
    fn on_greeting(&mut self, now_ns: u64, bytes: &[u8], host: &mut impl Host<O>) -> Result<(), Halt> {
        let cluster_id = self.settings.consensus.cluster_id;
        let was_settled = self.is_settled();
        let Some(introductions) = &mut self.introductions else { return Ok(()) };
        let Some(greeting) = Greeting::decode(bytes, cluster_id) else { return Ok(()) };
        let from = greeting.from();
        introductions.check_genesis(&greeting)?;
        let before = introductions.clone();
        let is_asked = introductions.on_greeting(greeting)?;
        let has_changed = introductions.is_dirty();
        if !self.keep_introductions(host) {
            // What is not durable is neither sent nor acted on. Others greet again.
            self.introductions = Some(before);
            return Ok(());
        }
        if !was_settled && self.is_settled() {
            // Its timeouts count from here.
            self.replica.skip_to(now_ns);
        }
        if is_asked {
            self.greet(from, false, host);
        }
        if has_changed {
            // Others may wait for what is known now.
            self.next_greeting_ns = now_ns;
            self.greet_all(now_ns, host);
        }
        Ok(())
    }

    /// Makes durable what changed of it; whether that is so now.
    fn keep_introductions(&mut self, host: &mut impl Host<O>) -> bool {
        let Some(introductions) = self.introductions.as_mut().filter(|introductions| introductions.is_dirty()) else { return true };
        let is_kept = host.keep_introductions(&introductions.encode()).is_ok();
        if is_kept {
            introductions.note_kept();
        }
        is_kept
    }

    fn greet(&self, to: ReplicaId, asks: bool, host: &mut impl Host<O>) {
        if let Some(introductions) = &self.introductions {
            let cluster_id = self.settings.consensus.cluster_id;
            let greeting = introductions.greeting(cluster_id, asks, self.replica.status().delivered, &self.members.voters);
            host.send(to, peer::greeting(greeting.encode()));
        }
    }

    /// Introduces it to those who have not answered yet, when that is due.
    fn greet_all(&mut self, now_ns: u64, host: &mut impl Host<O>) {
        if now_ns < self.next_greeting_ns {
            return;
        }
        let is_kept = self.keep_introductions(host);
        let Some(introductions) = &self.introductions else { return };
        let unmet: Vec<ReplicaId> = self.settings.peers.iter().copied().filter(|id| !introductions.has_met(*id)).collect();
        self.next_greeting_ns = match introductions.is_settled() {
            // What the disk did not take is written again.
            true if unmet.is_empty() && is_kept => u64::MAX,
            true => now_ns.saturating_add(ASK_AGAIN_EVERY_NS),
            false => now_ns.saturating_add(ASK_EVERY_NS),
        };
        if is_kept {
            unmet.into_iter().for_each(|id| self.greet(id, true, host));
        }
    }

    /// Time has passed.
    pub fn on_timer(&mut self, now_ns: u64, host: &mut impl Host<O>) -> Result<(), Halt> {
        if self.introductions.is_some() {
            self.greet_all(now_ns, host);
        }
        if !self.is_settled() {
            return Ok(());
        }
        self.replica.on_timer(now_ns, &mut self.effects);
        self.settle(host)
    }

    /// When [`on_timer`](Self::on_timer), [`drive_batches`](Self::drive_batches) or [`propose`](Self::propose) has something to do.
    /// Ask again after every input.
    #[must_use]
    pub fn next_deadline_ns(&self) -> u64 {
        let waits = self.collecting.as_ref().is_some_and(|collecting| collecting.len() > 0) && self.replica.may_propose();
        let proposal_ns =
            if waits && self.on_their_way.packs() < self.settings.packs_max { self.next_proposal_ns } else { u64::MAX };
        let batch_ns = if self.collecting.is_some() { self.driver.next_deadline_ns(&self.engine) } else { u64::MAX };
        let greeting_ns = if self.introductions.is_some() { self.next_greeting_ns } else { u64::MAX };
        if !self.is_settled() {
            return greeting_ns;
        }
        self.replica.next_deadline_ns().min(proposal_ns).min(batch_ns).min(greeting_ns)
    }

    /// The write with this ticket, and all before it, are durable.
    pub fn on_persisted(&mut self, ticket: Ticket, host: &mut impl Host<O>) -> Result<(), Halt> {
        self.replica.on_persisted(ticket, &mut self.effects);
        self.settle(host)
    }

    /// The state that [`Host::snapshot`] was to take after this entry has this hash ([`Engine::state_hash`]). ClockReport before
    /// the snapshot is durable, or if it never will be.
    pub fn on_state_hashed(&mut self, at: LogIndex, hash: [u8; 32], host: &mut impl Host<O>) -> Result<(), Halt> {
        while self.unhashed.front().is_some_and(|earlier| *earlier < at) {
            self.unhashed.pop_front();
        }
        if self.unhashed.front() != Some(&at) {
            return Ok(());
        }
        self.unhashed.pop_front();
        let (me, cluster_id) = (self.settings.consensus.id, self.settings.consensus.cluster_id);
        let said = peer::hash(cluster_id, me, at, &hash);
        let voters = self.members.voters.union(&self.members.learners);
        voters.filter(|id| **id != me).for_each(|id| host.send(*id, said.clone()));
        if let Some(collecting) = &mut self.collecting {
            // For those who replay the log one day.
            let time = collecting.time();
            collecting.push(
                time,
                None,
                &SignedBy::NOBODY,
                &Command::Venue(VenueCommand::Checkpoint(Checkpoint { log_index: at, state_hash: hash })),
                None,
            );
        }
        self.compare(me, at, hash)
    }

    /// A snapshot that [`Host::snapshot`] was asked for is durable.
    pub fn on_snapshot_durable(&mut self, meta: &SnapshotMeta, host: &mut impl Host<O>) -> Result<(), Halt> {
        if let Some(meta) = self.replica.on_snapshot_produced(meta.slot, &mut self.effects) {
            host.let_go(meta);
        }
        self.settle(host)
    }

    /// How sending a snapshot ended: whether it is durable there and its message was handed over.
    pub fn on_snapshot_sent(&mut self, to: ReplicaId, arrived: Result<(), ()>, host: &mut impl Host<O>) -> Result<(), Halt> {
        self.replica.on_snapshot_sent(to, arrived, &mut self.effects);
        self.settle(host)
    }

    /// A message could not be delivered.
    pub fn on_unreachable(&mut self, to: ReplicaId, host: &mut impl Host<O>) -> Result<(), Halt> {
        self.replica.on_unreachable(to, &mut self.effects);
        self.settle(host)
    }

    /// A link with another replica is up, again perhaps ([`walras_consensus::Replica::on_linked`]): a leader sends it at once what
    /// it sends to all.
    pub fn on_linked(&mut self, now_ns: u64, peer: ReplicaId) {
        self.next_clock_report_ns = 0;
        self.unlinked.remove(&peer);
        if let Some(release) = &mut self.release {
            release.on_linked(peer);
        }
        self.replica.on_linked(now_ns, peer);
    }

    /// A link was closed from its other end, or broke ([`walras_consensus::Replica::on_link_lost`]).
    pub fn on_link_lost(&mut self, now_ns: u64, peer: ReplicaId, host: &mut impl Host<O>) -> Result<(), Halt> {
        self.unlinked.insert(peer);
        if let Some(release) = &mut self.release {
            release.on_link_lost(peer);
        }
        self.replica.on_link_lost(now_ns, peer, &mut self.effects);
        self.settle(host)
    }

    /// Asks how far the state must have come to answer a read that sees everything acknowledged before now.
    pub fn read(
        &mut self,
        token: walras_consensus::ReadToken,
        host: &mut impl Host<O>,
    ) -> Result<Result<(), ConsensusRefused>, Halt> {
        let asked = self.replica.read(token, &mut self.effects);
        self.settle(host)?;
        Ok(asked)
    }

    /// Changes who belongs to the cluster; [`Host::members`] says when it is done.
    pub fn change_members(
        &mut self,
        changes: &[MemberChange],
        host: &mut impl Host<O>,
    ) -> Result<Result<(), ConsensusRefused>, Halt> {
        let asked = self.replica.change_members(changes, &mut self.effects);
        self.settle(host)?;
        Ok(asked)
    }

    /// These are the other replicas from now on, members or not: it introduces itself to those whom it has not met.
    pub fn set_peers(&mut self, now_ns: u64, peers: BTreeSet<ReplicaId>) {
        self.settings.peers = peers;
        self.next_greeting_ns = now_ns;
    }

    /// Has the host keep the state as it is now, unless as new a one is durable.
    pub fn keep_state(&mut self, host: &mut impl Host<O>) {
        self.snapshot(self.applied, host);
    }

    /// Hands leadership to another voter. What collects meanwhile goes back to its senders when it is done.
    pub fn transfer_to(
        &mut self,
        now_ns: u64,
        to: ReplicaId,
        host: &mut impl Host<O>,
    ) -> Result<Result<(), ConsensusRefused>, Halt> {
        let asked = self.replica.transfer_to(now_ns, to, &mut self.effects);
        self.settle(host)?;
        Ok(asked)
    }

    /// The state after the last entry applied.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// A look at the consensus.
    #[must_use]
    pub fn status(&self) -> Status {
        self.replica.status()
    }

    /// Who belongs to the cluster.
    #[must_use]
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// Whether it takes commands.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        self.collecting.is_some()
    }

    /// Who leads, this replica included, as far as it knows.
    #[must_use]
    pub fn leader(&self) -> Option<ReplicaId> {
        match self.role {
            Role::Leader => Some(self.settings.consensus.id),
            Role::Follower { leader } => leader,
            Role::Candidate => None,
        }
    }

    /// The place that is expected of a session next, after what was taken in this term. `None` when it is not open.
    #[must_use]
    pub fn next_of(&self, session: SessionId) -> Option<SessionSeq> {
        let applied = self.engine.session(session)?.next;
        Some(self.collecting.as_ref().and_then(|collecting| collecting.next_of(session)).map_or(applied, |next| next.max(applied)))
    }

    /// Commands taken that are not decided.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.on_their_way.commands() + self.collecting.as_ref().map_or(0, Collecting::len)
    }

    /// Whether one more command has room, or is refused at once: where another replica leads, or the log can not be written.
    #[must_use]
    pub fn has_room(&self) -> bool {
        let has_room = |collecting: &Collecting<O>| {
            self.waiting() < self.settings.waiting_max && collecting.encoded_bytes() < self.pack_bytes_room()
        };
        self.refusal.is_some() || self.collecting.as_ref().is_none_or(has_room)
    }

    /// Room in a pack, with one entry of any size to spare.
    fn pack_bytes_room(&self) -> usize {
        self.settings.consensus.pack_bytes_max.saturating_sub(2 * walras_types::limits::MESSAGE_BYTES_MAX)
    }

    /// Everything that follows from what just happened.
    fn settle(&mut self, host: &mut impl Host<O>) -> Result<(), Halt> {
        while !self.effects.is_empty() {
            // The two lists change places, so that neither is allocated anew.
            let spent = std::mem::take(&mut self.effects_spent);
            let mut effects = std::mem::replace(&mut self.effects, spent);
            for effect in effects.drain(..) {
                self.follow(effect, host)?;
            }
            self.effects_spent = effects;
        }
        Ok(())
    }

    fn follow(&mut self, effect: Effect, host: &mut impl Host<O>) -> Result<(), Halt> {
        match effect {
            Effect::Send { to, bytes } => host.send(to, peer::consensus(bytes)),
            Effect::Persist(write) => host.persist(write),
            Effect::Committed(committed) => self.apply(&committed, host)?,
            Effect::MembersChanged { members, .. } => {
                self.members = members;
                host.members(&self.members);
            }
            Effect::Role(change) => self.on_role(change, host),
            Effect::Leading { term } => {
                let leader = self.leader();
                self.on_their_way.lose_before(term).for_each(|origin| host.unresolved(origin, Unresolved::Lost { leader }));
                let time = self.engine.time();
                let mut collecting = Collecting::new(term, time);
                self.first_version = self.settings.engine_at_start.filter(|_| self.engine.last_applied() == LogIndex(0));
                if self.engine.shard_place().count > 1 {
                    // Before anything that anybody sends: the state may be older than what other shards saw of it.
                    collecting.push(time, None, &SignedBy::NOBODY, &Command::Shard(ShardCommand::DoubtTransfers), None);
                }
                self.collecting = Some(collecting);
                self.driver.start_over();
                self.clearings.clear();
                let in_force_ns = self.engine.access_delays().release_ns;
                let (members, unlinked) = (&self.members, &self.unlinked);
                let linked = || members.voters.union(&members.learners).filter(|id| !unlinked.contains(id)).copied();
                self.release = self.settings.release.map(|rules| ReleaseSteering::new(rules, in_force_ns, linked()));
                self.next_clock_report_ns = 0;
                host.leading(term);
            }
            Effect::ReadReady { token } => host.read_ready(token),
            Effect::SnapshotWanted { slot } => self.snapshot(slot, host),
            Effect::SendSnapshot { to, snapshot, bytes } => host.send_snapshot(to, snapshot, peer::consensus(bytes)),
            Effect::Install(meta) => self.install(&meta, host)?,
        }
        Ok(())
    }

    fn on_role(&mut self, change: RoleChange, host: &mut impl Host<O>) {
        self.role = change.role;
        if self.collecting.as_ref().is_some_and(|collecting| change.role != Role::Leader || collecting.term != change.term)
            && let Some(collecting) = self.collecting.take()
        {
            // These were never proposed. Those on their way are answered when their slots are decided.
            let leader = self.leader();
            collecting.into_origins().for_each(|origin| host.unresolved(origin, Unresolved::Lost { leader }));
            self.release = None;
        }
        host.role(change);
    }

    fn install(&mut self, meta: &SnapshotMeta, host: &mut impl Host<O>) -> Result<(), Halt> {
        let fault = |detail| Halt::Install { log_index: meta.log_index, detail };
        let engine = host.install(meta).map_err(fault)?;
        if engine.last_applied() != meta.log_index {
            return Err(fault(format!("it is the state after entry {}", engine.last_applied())));
        }
        check_version(&self.programs, meta.log_index, engine.version())?;
        self.engine = engine;
        self.applied = meta.slot;
        self.on_their_way.skip_to(meta.slot).for_each(|origin| host.unresolved(origin, Unresolved::InDoubt));
        Ok(())
    }

    fn apply(&mut self, committed: &Committed, host: &mut impl Host<O>) -> Result<(), Halt> {
        host.decided();
        let decided = self.on_their_way.decide(committed.slot, committed.term);
        let leader = self.leader();
        decided.lost.into_iter().for_each(|origin| host.unresolved(origin, Unresolved::Lost { leader }));
        let mut origins = decided.origins.into_iter();
        let before = self.engine.last_applied();
        // All are read before the first is applied: a copy of what was just written waits for every write before it, and behind the
        // writes of an entry that was just applied, which miss the caches, it waits long.
        let mut entries = std::mem::take(&mut self.entries);
        let unreadable = read_entries(committed, &mut entries).err();
        for (place, entry) in entries.iter().enumerate() {
            self.look_ahead(&entries[place..]);
            self.apply_entry(entry, committed.term, origins.next().flatten(), host)?;
        }
        self.entries = entries;
        if let Some(halt) = unreadable {
            return Err(halt);
        }
        self.applied = committed.slot;
        self.checkpoint(before, host);
        Ok(())
    }

    /// Has the state fetch what the entries after the next will touch.
    fn look_ahead(&self, entries: &[Entry]) {
        if let Some(command) = entries.get(NAMES_AHEAD).and_then(|entry| entry.content.command()) {
            self.engine.expect_name(command);
        }
        if let Some(command) = entries.get(ORDERS_AHEAD).and_then(|entry| entry.content.command()) {
            self.engine.expect_order(command);
        }
    }

    fn apply_entry(&mut self, entry: &Entry, term: Term, origin: Option<O>, host: &mut impl Host<O>) -> Result<(), Halt> {
        let last = self.engine.last_applied();
        if entry.log_index != last.next() || entry.time < self.engine.time() {
            return Err(LogGap { last, found: entry.log_index }.into());
        }
        if let Some(Command::Venue(VenueCommand::SetEngineVersion(version))) = entry.content.command() {
            check_version(&self.programs, entry.log_index, *version)?;
        }
        self.events.clear();
        let numbered = entry.apply(&mut self.engine, &mut self.events);
        if matches!(entry.content, Content::Clearing(_) | Content::Command(Command::Batch(BatchCommand::Step(_)))) {
            self.driver.on_events(self.driven_ns, &self.events);
        }
        self.engine.take_block_jobs().into_iter().for_each(|job| host.run(job));
        if let Some(collecting) = &mut self.collecting {
            for event in &self.events {
                if let Event::Session(SessionEvent::Closed(closed)) = event {
                    collecting.forget(closed.session);
                }
            }
        }
        let ahead_ns = self.leader_clocks.ahead_ns(term, entry.time);
        host.applied(&self.engine, AppliedEntry { entry, numbered, origin, events: &self.events, ahead_ns });
        Ok(())
    }

    /// At the first slot whose entries reach a multiple of `checkpoint_every`, which is the same one everywhere: keep the state,
    /// and compare it once its hash is known. To make that here would stop everything for as long as it takes, on all replicas at
    /// once.
    fn checkpoint(&mut self, before: LogIndex, host: &mut impl Host<O>) {
        let (every, now) = (self.settings.checkpoint_every, self.engine.last_applied());
        if every > 0 && before.0 / every != now.0 / every {
            if self.unhashed.len() == UNHASHED_MAX {
                self.unhashed.pop_front();
            }
            self.unhashed.push_back(now);
            self.snapshot(self.applied, host);
        }
    }

    fn compare(&mut self, from: ReplicaId, at: LogIndex, hash: agreement::StateHash) -> Result<(), Halt> {
        let leader = self.leader().filter(|leader| *leader != self.settings.consensus.id);
        self.agreement
            .on_hash(from, at, hash, &self.members, leader)
            .map_err(|Differs { agreed, log_index, others, voters }| Halt::Diverged { agreed, log_index, others, voters })
    }

    fn snapshot(&mut self, slot: walras_consensus::Slot, host: &mut impl Host<O>) {
        if let Some(meta) = self.replica.snapshot_meta(slot) {
            host.snapshot(&mut self.engine, meta);
        }
    }
}

/// Whether this program can go on under a version of the engine.
fn check_version(programs: &Programs, log_index: LogIndex, version: EngineVersion) -> Result<(), Halt> {
    if programs.knows(version) { Ok(()) } else { Err(Halt::EngineVersion { log_index, version, newest: programs.own() }) }
}

/// The entries of a pack; after an error, those before the one that can not be read.
fn read_entries(committed: &Committed, entries: &mut Vec<Entry>) -> Result<(), Halt> {
    entries.clear();
    for (log_index, bytes) in (committed.first.0..).map(LogIndex).zip(committed.pack.entries()) {
        entries.push(decode_entry(log_index, bytes).map_err(|source| Halt::Entry { log_index, source })?);
    }
    Ok(())
}

/// Why a replica can not start.
#[derive(Debug, thiserror::Error)]
pub enum StartHalt {
    /// What was recovered does not hold together.
    #[error(transparent)]
    Start(#[from] StartError),
    /// What follows the snapshot can not be applied.
    #[error(transparent)]
    Halt(#[from] Halt),
}
