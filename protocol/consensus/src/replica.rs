//! The state machine's inputs.

use crate::alone::decide_what_is_durable;
use crate::durable::{Body, HardState, Recovered, SnapshotMeta};
use crate::effect::{Effect, Refused, Role, RoleChange, StartError, StepError};
use crate::fast_fail_over::FastFailOver;
use crate::ids::{ReadToken, ReplicaId, Slot, Term, Ticket};
use crate::members::{MEMBERS_MAX, MemberChange, Members, changes_to_raft};
use crate::pack::{Pack, Packed};
use crate::pump::Pending;
use crate::settings::Settings;
use crate::timeouts::Timeouts;
use crate::window::Window;
use crate::wire;
use raft::eraftpb::{Message, MessageType};
use raft::{Config, ProgressState, RawNode, SnapshotStatus, StateRole};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use walras_types::LogIndex;

/// Maximum number of read requests that may still be answered. Beyond it, the oldest count as lost.
const ASKED_READS_MAX: usize = 4_096;

/// One replica of the log. Every input appends its [`Effect`]s to `effects`.
///
/// Deadlines fire only in [`on_timer`](Self::on_timer). The host passes in waiting messages before it calls the timer, so that a
/// replica that was delayed does not stand for election while the leader's heartbeat is waiting.
pub struct Replica {
    pub(crate) node: RawNode<Window>,
    pub(crate) settings: Settings,
    pub(crate) timeouts: Timeouts,
    /// Term, role and leader for which the timeout was drawn.
    timeout_of: (u64, StateRole, u64),
    /// Set while it may start pre-votes before that timeout.
    pub(crate) fast_fail_over: Option<FastFailOver>,
    /// Ticks up to this moment have passed.
    pub(crate) ticked_ns: u64,
    /// Work that waits to become durable, in order.
    pub(crate) pending: VecDeque<Pending>,
    /// The hard state of the last write.
    pub(crate) promised: HardState,
    pub(crate) last_ticket: Ticket,
    pub(crate) durable: Ticket,
    /// The write that installs a snapshot. Until it is durable, messages are ignored, because the library cannot stand for election
    /// then.
    pub(crate) installing: Option<Ticket>,
    /// The last delivered slot.
    pub(crate) delivered: Slot,
    /// The last delivered entry.
    pub(crate) log_index: LogIndex,
    /// Members since a slot, as far back as a snapshot may still be reported.
    pub(crate) members: BTreeMap<Slot, Members>,
    /// The last log index delivered up to a slot, as far back as a snapshot may still be reported.
    pub(crate) marks: VecDeque<(Slot, LogIndex)>,
    pub(crate) role: Option<RoleChange>,
    pub(crate) leading: Option<Term>,
    /// Distinguishes reads of this incarnation from those of an earlier one.
    incarnation: u64,
    asked_reads: BTreeSet<ReadToken>,
    /// Reads that wait until a slot is delivered.
    pub(crate) waiting_reads: BTreeSet<(Slot, ReadToken)>,
    /// Time of the last message from each member.
    heard_ns: BTreeMap<ReplicaId, u64>,
    /// When this process was first linked with a peer.
    pub(crate) linked_ns: BTreeMap<ReplicaId, u64>,
    /// Whether it led alone at the last check: see `alone.rs`.
    pub(crate) was_alone: bool,
}

impl std::fmt::Debug for Replica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replica").field("id", &self.settings.id).field("status", &self.status()).finish_non_exhaustive()
    }
}

/// A replica's status, for operators and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its term.
    pub term: Term,
    /// Its role in it.
    pub role: Role,
    /// The last slot in its log, durable or not.
    pub last: Slot,
    /// The last slot that it knows to be committed.
    pub committed: Slot,
    /// The last slot that it delivered.
    pub delivered: Slot,
    /// The last entry that it delivered.
    pub log_index: LogIndex,
}

impl Replica {
    /// Continues from the recovered state. `seed` should differ at each start: it determines election timeouts and the number that
    /// distinguishes reads of this incarnation from those of an earlier one.
    ///
    /// A new member of a running cluster starts with the cluster's genesis, like its first members.
    pub fn start(
        now_ns: u64,
        settings: Settings,
        recovered: Recovered,
        seed: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<Self, StartError> {
        let ticks = settings.ticks()?;
        let mut recovered = checked(recovered)?;
        decide_what_is_durable(&mut recovered, settings.id);
        let config = Config {
            id: settings.id.get(),
            election_tick: ticks.election_min,
            heartbeat_tick: ticks.heartbeat,
            min_election_tick: ticks.election_min,
            max_election_tick: ticks.election_max + 1,
            applied: recovered.snapshot.slot.0,
            max_size_per_msg: settings.message_bytes_max,
            max_inflight_msgs: settings.inflight_max,
            check_quorum: settings.check_quorum,
            pre_vote: settings.pre_vote,
            max_uncommitted_size: settings.uncommitted_bytes_max,
            ..Config::default()
        };
        let window = Window::new(&recovered);
        let node = RawNode::new(&config, window, &slog::Logger::root(slog::Discard, slog::o!()))
            .map_err(|_| StartError::Log { slot: recovered.snapshot.slot, detail: "the members there make no sense" })?;
        let mut timeouts = Timeouts::new(seed, ticks.election_min, ticks.election_max);
        let SnapshotMeta { slot, log_index, members, .. } = recovered.snapshot;
        let mut replica = Self {
            incarnation: timeouts.next_u64(),
            timeout_of: (node.raft.term, node.raft.state, node.raft.leader_id),
            fast_fail_over: None,
            timeouts,
            node,
            settings,
            ticked_ns: now_ns,
            pending: VecDeque::new(),
            promised: recovered.hard_state,
            last_ticket: Ticket(0),
            durable: Ticket(0),
            installing: None,
            delivered: slot,
            log_index,
            members: BTreeMap::from([(slot, members)]),
            marks: VecDeque::from([(slot, log_index)]),
            role: None,
            leading: None,
            asked_reads: BTreeSet::new(),
            waiting_reads: BTreeSet::new(),
            heard_ns: BTreeMap::new(),
            linked_ns: BTreeMap::new(),
            was_alone: false,
        };
        replica.settle(effects);
        Ok(replica)
    }

    /// Fires the deadlines up to `now_ns`, which counts from any epoch. A time before the last one is ignored.
    pub fn on_timer(&mut self, now_ns: u64, effects: &mut Vec<Effect>) {
        self.forget_time_alone(now_ns);
        let tick_ns = self.settings.tick_ns;
        let passed = now_ns.saturating_sub(self.ticked_ns) / tick_ns;
        self.ticked_ns += passed * tick_ns;
        // After a long pause of the machine, more ticks would change nothing.
        let ticks_max = self.settings.election_timeout_max_ns.div_ceil(tick_ns) + 1;
        for _ in 0..passed.min(ticks_max) {
            self.tick();
        }
        self.settle(effects);
    }

    /// Skips the time until now, in which the replica was not to take part.
    pub fn skip_to(&mut self, now_ns: u64) {
        self.ticked_ns = self.ticked_ns.max(now_ns);
    }

    /// When to call [`on_timer`](Self::on_timer) next. Every input may change it.
    #[must_use]
    pub fn next_deadline_ns(&self) -> u64 {
        self.ticked_ns.saturating_add((self.ticks_left().max(1) as u64).saturating_mul(self.settings.tick_ns))
    }

    /// Takes a message. One that announces a snapshot may be passed in only once the state itself is durable here
    /// ([`announced_snapshot`](Self::announced_snapshot)).
    ///
    /// After a [`StepError::Message`] the replica may continue; after any other error it must stop.
    pub fn on_message(&mut self, now_ns: u64, bytes: bytes::Bytes, effects: &mut Vec<Effect>) -> Result<(), StepError> {
        let message = wire::decode(self.settings.cluster_id, self.settings.id, bytes)?;
        self.pass(now_ns);
        let is_early = ReplicaId::new(message.from).is_some_and(|from| self.is_on_probation_with(from, now_ns));
        if is_early || self.installing.is_some() || self.is_stray(&message) {
            return Ok(());
        }
        self.refuse_what_cannot_be(&message)?;
        if let Some(from) = ReplicaId::new(message.from).filter(|from| self.members().contains(*from)) {
            self.heard_ns.insert(from, now_ns);
        }
        // This fails only for an answer from a replica that is not a member, which can be ignored.
        let _ = self.node.step(message);
        self.settle(effects);
        Ok(())
    }

    /// The snapshot whose state must be durable here before the message is passed in; `None` for any other message.
    pub fn announced_snapshot(&self, bytes: bytes::Bytes) -> Result<Option<SnapshotMeta>, StepError> {
        Ok(wire::announced_snapshot(&wire::decode(self.settings.cluster_id, self.settings.id, bytes)?))
    }

    /// The write with this ticket and all before it are durable.
    pub fn on_persisted(&mut self, ticket: Ticket, effects: &mut Vec<Effect>) {
        assert!(ticket <= self.last_ticket, "a ticket that was never handed out");
        self.durable = self.durable.max(ticket);
        self.settle(effects);
    }

    /// Appends entries to the log; returns the slot and term at which they will be committed, if ever. A [`crate::Committed`] with
    /// this slot and term holds these entries. One with this slot and another term means that they never will be committed.
    pub fn propose(&mut self, pack: Pack, effects: &mut Vec<Effect>) -> Result<(Slot, Term), Refused> {
        self.refuse_unless_leader()?;
        let (bytes, bytes_max) = (pack.encoded_bytes(), self.settings.pack_bytes_max);
        if pack.is_empty() {
            return Err(Refused::Empty);
        }
        if bytes > bytes_max {
            return Err(Refused::TooLarge { bytes, bytes_max });
        }
        self.node.propose(Vec::new(), pack.into_bytes().into()).map_err(|_| Refused::Busy)?;
        let placed = (Slot(self.node.raft.raft_log.last_index()), Term(self.node.raft.term));
        self.settle(effects);
        Ok(placed)
    }

    /// Whether [`propose`](Self::propose) accepts packs now: the replica leads, and leadership is not being transferred.
    #[must_use]
    pub fn may_propose(&self) -> bool {
        self.node.raft.state == StateRole::Leader && self.node.raft.lead_transferee.is_none()
    }

    /// Changes the members: one directly, several through a joint configuration, which ends automatically. The change is complete
    /// with [`Effect::MembersChanged`].
    ///
    /// It is refused if too few of the new voters are reachable and up to date: then nothing could be committed after it, not even
    /// its reversal.
    pub fn change_members(&mut self, changes: &[MemberChange], effects: &mut Vec<Effect>) -> Result<(), Refused> {
        self.refuse_unless_leader()?;
        if self.node.raft.has_pending_conf() || self.members().is_joint() {
            return Err(Refused::MembersChanging);
        }
        let (mut voters, mut all, mut named) = (self.members().voters.clone(), self.members().all(), BTreeSet::new());
        for change in changes {
            let id = match *change {
                MemberChange::AddVoter(id) => {
                    voters.insert(id);
                    id
                }
                MemberChange::AddLearner(id) | MemberChange::Remove(id) => {
                    voters.remove(&id);
                    id
                }
            };
            all.insert(id);
            if !named.insert(id) {
                return Err(Refused::BadChange);
            }
        }
        if changes.is_empty() || voters.is_empty() || all.len() > MEMBERS_MAX {
            return Err(Refused::BadChange);
        }
        let behind: Vec<ReplicaId> = voters.iter().copied().filter(|id| !self.keeps_up(*id)).collect();
        if let Some(&id) = behind.first().filter(|_| behind.len() * 2 >= voters.len()) {
            return Err(Refused::OutOfReach { id });
        }
        self.node.propose_conf_change(Vec::new(), changes_to_raft(changes)).map_err(|_| Refused::Busy)?;
        self.settle(effects);
        Ok(())
    }

    /// Whether a replica answers this leader and is not so far behind that it needs a snapshot.
    fn keeps_up(&self, id: ReplicaId) -> bool {
        let oldest_ns = self.ticked_ns.saturating_sub(self.settings.election_timeout_max_ns);
        let is_heard = self.heard_ns.get(&id).is_some_and(|heard_ns| *heard_ns >= oldest_ns);
        let progress = self.node.raft.prs().get(id.get());
        id == self.settings.id || is_heard && progress.is_some_and(|it| it.matched > 0 && it.state != ProgressState::Snapshot)
    }

    /// The best next leader: of the other voters that keep up with this leader, the one with most of its log.
    #[must_use]
    pub fn heir(&self) -> Option<ReplicaId> {
        if self.node.raft.state != StateRole::Leader {
            return None;
        }
        let others = self.members().voters.iter().copied().filter(|id| *id != self.settings.id && self.keeps_up(*id));
        others.max_by_key(|id| self.node.raft.prs().get(id.get()).map(|progress| progress.matched))
    }

    /// Transfers leadership to another voter as soon as that has the whole log. Proposals are refused meanwhile, for at most
    /// `election_timeout_min_ns`.
    pub fn transfer_to(&mut self, now_ns: u64, to: ReplicaId, effects: &mut Vec<Effect>) -> Result<(), Refused> {
        self.refuse_unless_leader()?;
        if !self.members().voters.contains(&to) {
            return Err(Refused::NoVoter { to });
        }
        self.pass(now_ns);
        self.node.transfer_leader(to.get());
        self.settle(effects);
        Ok(())
    }

    /// Requests a linearizable read, at the leader or a follower: [`Effect::ReadReady`] follows once the state includes everything
    /// acknowledged before now. A request may be lost with a leader; repeat it with another token. A token is used once per
    /// incarnation.
    pub fn read(&mut self, token: ReadToken, effects: &mut Vec<Effect>) -> Result<(), Refused> {
        let raft = &self.node.raft;
        match (raft.state, ReplicaId::new(raft.leader_id)) {
            (StateRole::Leader, _) if !raft.commit_to_current_term() => return Err(Refused::NotYetLeading),
            (StateRole::Leader, _) | (StateRole::Follower, Some(_)) => {}
            (_, leader) => return Err(Refused::NotLeader { leader }),
        }
        self.asked_reads.insert(token);
        if self.asked_reads.len() > ASKED_READS_MAX {
            self.asked_reads.pop_first();
        }
        self.node.read_index([self.settings.id.get(), self.incarnation, token.0].iter().flat_map(|w| w.to_le_bytes()).collect());
        self.settle(effects);
        Ok(())
    }

    /// The metadata of a snapshot of the state after `slot`, which was delivered; `None` if one at least as new is known.
    #[must_use]
    pub fn snapshot_meta(&self, slot: Slot) -> Option<SnapshotMeta> {
        assert!(slot <= self.delivered, "a snapshot of what was not handed out");
        if slot <= self.node.store().snapshot_meta().slot {
            return None;
        }
        let (_, members) = self.members.range(..=slot).next_back().expect("members are known since the snapshot before");
        let at =
            self.marks.partition_point(|(marked, _)| *marked <= slot).checked_sub(1).expect("marked since the snapshot before");
        let term = self.node.raft.raft_log.term(slot.0).expect("slots after the snapshot before are kept");
        Some(SnapshotMeta { slot, term: Term(term), log_index: self.marks[at].1, members: members.clone() })
    }

    /// The state after `slot`, which was delivered, is durable as a snapshot, so the slots before it may be dropped.
    ///
    /// Returns its metadata for [`crate::DurableLog::let_go`]; `None` if a newer one is known.
    pub fn on_snapshot_produced(&mut self, slot: Slot, effects: &mut Vec<Effect>) -> Option<SnapshotMeta> {
        let meta = self.snapshot_meta(slot)?;
        let retained = if meta.members.is_one() { 0 } else { self.settings.retained_slots };
        self.node.mut_store().let_go(meta.clone(), retained);
        self.forget_before(slot);
        self.settle(effects);
        Some(meta)
    }

    /// The transfer of a snapshot to another replica ended. `arrived` is `Ok` if it is durable there and the message was passed in.
    pub fn on_snapshot_sent(&mut self, to: ReplicaId, arrived: Result<(), ()>, effects: &mut Vec<Effect>) {
        let status = if arrived.is_ok() { SnapshotStatus::Finish } else { SnapshotStatus::Failure };
        self.node.report_snapshot(to.get(), status);
        self.settle(effects);
    }

    /// A message to `to` could not be delivered: less is sent there until it answers.
    pub fn on_unreachable(&mut self, to: ReplicaId, effects: &mut Vec<Effect>) {
        self.node.report_unreachable(to.get());
        self.settle(effects);
    }

    /// The replica's status.
    #[must_use]
    pub fn status(&self) -> Status {
        let raft = &self.node.raft;
        let RoleChange { term, role } = self.role_now();
        Status {
            term,
            role,
            last: Slot(raft.raft_log.last_index()),
            committed: Slot(raft.raft_log.committed),
            delivered: self.delivered,
            log_index: self.log_index,
        }
    }

    /// The members after the last delivered slot.
    #[must_use]
    pub fn members(&self) -> &Members {
        self.members.last_key_value().expect("members are known since the last snapshot").1
    }

    pub(crate) fn role_now(&self) -> RoleChange {
        let raft = &self.node.raft;
        let role = match raft.state {
            StateRole::Leader => Role::Leader,
            StateRole::Candidate | StateRole::PreCandidate => Role::Candidate,
            StateRole::Follower => Role::Follower { leader: ReplicaId::new(raft.leader_id) },
        };
        RoleChange { term: Term(raft.term), role }
    }

    /// Records the answer to a read request.
    pub(crate) fn note_read(&mut self, slot: u64, context: &[u8]) {
        let word =
            |at: usize| context.get(at..at + 8).and_then(|bytes| bytes.first_chunk()).map(|bytes| u64::from_le_bytes(*bytes));
        let (id, incarnation, token) = (word(0), word(8), word(16));
        if id == Some(self.settings.id.get())
            && incarnation == Some(self.incarnation)
            && let Some(token) = token.map(ReadToken)
            && self.asked_reads.remove(&token)
        {
            self.waiting_reads.insert((Slot(slot), token));
        }
    }

    /// Drops members and marks before this slot.
    pub(crate) fn forget_before(&mut self, slot: Slot) {
        if let Some((since, _)) = self.members.range(..=slot).next_back() {
            self.members = self.members.split_off(&since.clone());
        }
        let kept = self.marks.partition_point(|(marked, _)| *marked <= slot).saturating_sub(1);
        self.marks.drain(..kept);
    }

    fn refuse_unless_leader(&self) -> Result<(), Refused> {
        match self.node.raft.state {
            StateRole::Leader => Ok(()),
            _ => Err(Refused::NotLeader { leader: ReplicaId::new(self.node.raft.leader_id) }),
        }
    }

    fn tick(&mut self) {
        if self.may_tick() {
            self.stand_at_once();
            self.lose_silent_leader();
            let is_ready = self.node.tick();
            if is_ready && self.node.raft.state != StateRole::Leader {
                self.timeouts.draw();
            }
            self.impose_timeout();
            self.continue_fast_fail_over();
        }
    }

    /// Ticks until a deadline fires.
    fn ticks_left(&self) -> usize {
        let raft = &self.node.raft;
        match raft.state {
            StateRole::Leader if self.leads_alone() => usize::MAX,
            StateRole::Leader => {
                let resign = raft.election_timeout().saturating_sub(raft.election_elapsed);
                raft.heartbeat_timeout().saturating_sub(raft.heartbeat_elapsed()).min(resign)
            }
            StateRole::Follower | StateRole::Candidate | StateRole::PreCandidate if self.stands_alone() => 1,
            StateRole::Follower | StateRole::Candidate | StateRole::PreCandidate => {
                self.silence_ticks().saturating_sub(raft.election_elapsed)
            }
        }
    }

    /// Advances time up to, not including, the next deadline, because the current input may move that deadline.
    pub(crate) fn pass(&mut self, now_ns: u64) {
        self.forget_time_alone(now_ns);
        let passed = now_ns.saturating_sub(self.ticked_ns) / self.settings.tick_ns;
        let quiet = passed.min(self.ticks_left().saturating_sub(1) as u64);
        for _ in 0..quiet {
            self.tick();
        }
        let due = u64::from(quiet < passed);
        self.ticked_ns += (passed - due) * self.settings.tick_ns;
    }

    /// Whether the library may tick. When a sole voter elects itself, the library assumes that all slots are durable and that a
    /// snapshot is applied.
    fn may_tick(&self) -> bool {
        let raft = &self.node.raft;
        let may_elect_itself = raft.state != StateRole::Leader && self.members().voters.len() == 1;
        self.installing.is_none() && (!may_elect_itself || self.pending.is_empty())
    }

    /// Whether a message is of no use and would make the library fail.
    fn is_stray(&self, message: &Message) -> bool {
        match message.get_msg_type() {
            // The library would forward the request in the asker's name, possibly in a circle and back to itself.
            MessageType::MsgReadIndex => self.node.raft.state != StateRole::Leader,
            // The own request still waits for the disk, so this answers one of an earlier incarnation. Counting it would make a
            // leader with slots that are not durable.
            MessageType::MsgRequestVoteResponse | MessageType::MsgRequestPreVoteResponse => !self.pending.is_empty(),
            _ => false,
        }
    }

    /// Detects what can only happen if a disk lost data or a replica forgot its vote. The library would panic or continue wrongly.
    fn refuse_what_cannot_be(&self, message: &Message) -> Result<(), StepError> {
        let (raft, kind) = (&self.node.raft, message.get_msg_type());
        let from_leader = matches!(kind, MessageType::MsgAppend | MessageType::MsgHeartbeat | MessageType::MsgSnapshot);
        if !from_leader || message.term < raft.term {
            return Ok(());
        }
        let term = Term(message.term);
        if message.term == raft.term && raft.state == StateRole::Leader {
            let other = ReplicaId::new(message.from).expect("decoding checked it");
            return Err(StepError::TwoLeaders { term, other });
        }
        let log = &raft.raft_log;
        if kind == MessageType::MsgHeartbeat && message.commit > log.last_index() {
            return Err(StepError::LostSlots { term, slot: Slot(message.commit) });
        }
        // A leader's log cannot differ at slots that are committed here.
        let differs = |slot: u64, term: u64| (log.first_index()..=log.committed).contains(&slot) && !log.match_term(slot, term);
        let announced = (kind == MessageType::MsgAppend && differs(message.index, message.log_term)).then_some(message.index);
        let conflict = announced.or_else(|| message.entries.iter().find(|e| differs(e.index, e.term)).map(|e| e.index));
        conflict.map_or(Ok(()), |slot| Err(StepError::LostSlots { term, slot: Slot(slot) }))
    }

    /// Replaces the random timeout of the library.
    pub(crate) fn impose_timeout(&mut self) {
        let raft = &mut self.node.raft;
        let of = (raft.term, raft.state, raft.leader_id);
        if of != self.timeout_of {
            self.timeout_of = of;
            self.timeouts.draw();
        }
        raft.set_randomized_election_timeout(self.timeouts.current());
    }

    /// Carries out everything that follows from the last input.
    pub(crate) fn settle(&mut self, effects: &mut Vec<Effect>) {
        self.impose_timeout();
        self.pump(effects);
        self.impose_timeout();
        self.was_alone |= self.leads_alone();
    }
}

/// Refuses recovered state on which the library would fail later.
fn checked(mut recovered: Recovered) -> Result<Recovered, StartError> {
    let fault = |slot: Slot, detail| Err(StartError::Log { slot, detail });
    if !recovered.snapshot.members.is_sound() {
        return fault(recovered.snapshot.slot, "the members there make no sense");
    }
    let (mut slot, mut term) = (recovered.snapshot.slot, recovered.snapshot.term);
    for entry in &recovered.entries {
        if entry.slot != slot.next() {
            return fault(entry.slot, "slots do not follow each other");
        }
        if entry.term < term || entry.term > recovered.hard_state.term {
            return fault(entry.slot, "terms are out of order");
        }
        let is_sound = match &entry.body {
            Body::Empty | Body::Members(_) => true,
            Body::Pack(bytes) => Packed::decode(bytes.clone()).is_some(),
        };
        if !is_sound {
            return fault(entry.slot, "its body does not decode");
        }
        (slot, term) = (entry.slot, entry.term);
    }
    let commit = &mut recovered.hard_state.commit;
    if *commit > slot {
        return fault(slot, "slots after it were known to be committed and are missing");
    }
    *commit = (*commit).max(recovered.snapshot.slot);
    // With promises in memory only, the hard state on disk may be older than the snapshot's term.
    recovered.hard_state.term = recovered.hard_state.term.max(recovered.snapshot.term);
    Ok(recovered)
}
