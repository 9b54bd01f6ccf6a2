//! What surrounds the sequencer of a replica: links, disk, participants, market data.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use walras_consensus::{Members, ReadToken, ReplicaId, Role, RoleChange, SnapshotMeta, Term, Write};
use walras_engine::{Engine, Numbered, snapshot_hash};
use walras_gateway::Gateway;
use walras_gateway::session::{ReportSettings, Reports};
use walras_replica::{OrderEntry, Origin, WaiterId};
use walras_sequencer::{AppliedEntry, FairAccess, Host, SolveJob, Unresolved};
use walras_testkit::Listener;
use walras_types::{LogIndex, RejectReason, SessionId, SessionSeq, TimeNs};
use walras_wire::{Event, SessionEvent};

use super::process::{Fate, Out, ReplicaTimer};
use super::releases::Releases;
use super::storage::{LogJob, Storage};
use super::streams::Streams;
use super::{address, fair};
use crate::cluster::checks::Checks;
use crate::cluster::mutation::Mutation;
use crate::common::parts;

/// Everything that follows from the log, as a snapshot holds it.
pub(super) struct State {
    pub(super) engine: Engine,
    pub(super) listener: Listener,
    pub(super) reports: Reports,
}

/// So many of an account are kept.
pub(crate) fn report_settings(per_account_max: u32) -> ReportSettings {
    ReportSettings { per_account_max, ..ReportSettings::default() }
}

impl State {
    pub(super) fn genesis(kept: ReportSettings) -> Self {
        Self { engine: Engine::new(), listener: Listener::default(), reports: Reports::new(kept) }
    }

    fn encode(bytes_expected: usize, engine: &Engine, listener: &Listener, reports: &Reports) -> Vec<u8> {
        parts::join(bytes_expected, &[&|out| engine.snapshot(out), &|out| listener.snapshot(out), &|out| reports.snapshot(out)])
    }

    pub(super) fn engine_hash(bytes: &[u8]) -> Option<[u8; 32]> {
        let [engine, _, _] = parts::split(bytes).ok()?;
        snapshot_hash(engine)
    }

    pub(super) fn decode(bytes: &[u8], kept: ReportSettings) -> Result<Self, String> {
        let [engine, listener, reports] = parts::split(bytes)?;
        let engine = Engine::restore(engine).map_err(|e| e.to_string())?;
        let listener = Listener::restore(listener)?;
        let reports = Reports::restore(reports, kept).map_err(|e| e.to_string())?;
        Ok(Self { engine, listener, reports })
    }
}

pub(super) struct Surroundings {
    pub(super) me: ReplicaId,
    pub(super) storage: Storage,
    pub(super) listener: Listener,
    pub(super) reports: Reports,
    /// Of the last state that was written down.
    pub(super) state_bytes: usize,
    /// Checks logons, and how often a key sends.
    pub(super) gateway: Gateway,
    pub(super) entry: OrderEntry,
    pub(super) streams: Streams,
    pub(super) leader: Option<ReplicaId>,
    /// Where it takes orders; empty where that is not known.
    pub(super) leader_address: Rc<str>,
    /// The last vote that it wrote down.
    pub(super) vote: Option<(Term, ReplicaId)>,
    /// In a box: it is large.
    pub(super) fair: Option<Box<FairAccess<Origin>>>,
    /// Market data that waits for its time, with fair access.
    pub(super) releases: Option<Releases>,
    pub(super) now_ns: u64,
    pub(super) clock_ns: u64,
    /// How long its disk takes, in nanoseconds: a sync, a snapshot.
    pub(super) sync_ns: u64,
    pub(super) snapshot_ns: u64,
    /// How long a search for prices takes.
    pub(super) solve_ns: u64,
    /// Peers to whom a snapshot could not be sent: to be told to the consensus.
    pub(super) not_sent: Vec<ReplicaId>,
    pub(super) installed_count: u64,
    pub(super) out: Vec<Out>,
    pub(super) checks: Rc<RefCell<Checks>>,
    pub(super) mutation: Option<Mutation>,
    /// Closed batches that a solver is at, oldest first.
    pub(super) solving: VecDeque<SolveJob>,
}

impl Surroundings {
    fn opened(&mut self, origin: Origin, engine: &Engine, events: &[Event]) {
        let Self { entry, reports, now_ns, fair, out, .. } = self;
        match (origin, open_outcome(engine, events)) {
            (Origin::Opens(stream), Ok((session, next))) => entry.opened(stream, *now_ns, session, next, reports),
            (Origin::Opens(stream), Err(reason)) => entry.not_opened(stream, reason),
            (Origin::Waiter(WaiterId(number)), _) => out.push(Out::Told(number, Fate::Done(rejected(events)))),
            (Origin::OpensElsewhere(opening), outcome) => {
                if let Some(fair) = fair {
                    fair.on_opened(opening, engine.last_applied(), outcome.map(|(session, _)| session));
                }
            }
        }
    }

    /// What a gateway has passed on and the log now holds.
    fn tell_gateway(&mut self, applied: &AppliedEntry<'_, Origin>) {
        let Some(fair) = &mut self.fair else { return };
        fair.on_applied(applied);
    }

    fn check_fairness(&mut self, engine: &Engine) {
        let Self { fair, releases, checks, me, clock_ns, mutation, .. } = self;
        let checks = &mut checks.borrow_mut();
        if let Some(fair) = fair
            && checks.wants_count(*me)
        {
            checks.on_counted(*me, fair::out_of_sequence(fair, *mutation));
        }
        if let Some(releases) = releases {
            releases.on_applied(*me, engine, *clock_ns, checks, *mutation);
        }
    }

    fn tell_session(&mut self, applied: &AppliedEntry<'_, Origin>) {
        let (Some(ordinal), Some(numbered)) = (applied.entry.ordinal, applied.numbered) else { return };
        match numbered {
            Numbered::Done(mut answer) => {
                if self.mutation == Some(Mutation::AnswerMixedUp) && answer.log_index.0.is_multiple_of(50) {
                    answer.log_index = LogIndex(answer.log_index.0 - 1);
                }
                self.entry.answer(ordinal, answer, Some(applied.entry.time));
            }
            Numbered::Repeated(answer) => self.entry.answer(ordinal, answer, None),
            Numbered::Refused(reason) => self.entry.refused(ordinal, reason),
        }
    }

    fn report(&mut self, log_index: LogIndex, time: TimeNs, events: &[Event]) {
        let Self { reports, entry, mutation, .. } = self;
        for event in events {
            if *mutation == Some(Mutation::LoseReport) && log_index.0.is_multiple_of(50) {
                continue;
            }
            reports.on_event(log_index, time, event, |account, report| entry.report(account, report));
            if let Event::Session(SessionEvent::Closed(closed)) = event {
                entry.closed(closed.session);
            }
        }
    }
}

/// Which session was opened, and what it begins with; or why none was.
fn open_outcome(engine: &Engine, events: &[Event]) -> Result<(SessionId, SessionSeq), RejectReason> {
    let opened =
        events.iter().find_map(|event| if let Event::Session(SessionEvent::Opened(opened)) = event { Some(opened) } else { None });
    let start = opened.and_then(|opened| engine.session(opened.session).map(|view| (opened.session, view.next)));
    start.ok_or_else(|| rejected(events).unwrap_or(RejectReason::VenueNotReady))
}

fn rejected(events: &[Event]) -> Option<RejectReason> {
    events.iter().find_map(|event| if let Event::Rejected(r) = event { Some(r.reason) } else { None })
}

impl Host<Origin> for Surroundings {
    fn send(&mut self, to: ReplicaId, bytes: Vec<u8>) {
        self.out.push(Out::Send { to, bytes });
    }

    fn persist(&mut self, write: Write) {
        let vote = write.hard_state.vote.map(|vote| (write.hard_state.term, vote));
        if vote != self.vote && vote.is_some_and(|(_, vote)| vote != self.me) {
            self.out.push(Out::Voted);
        }
        self.vote = vote;
        self.storage.jobs.push_back(LogJob::Write(write));
    }

    fn applied(&mut self, engine: &Engine, applied: AppliedEntry<'_, Origin>) {
        let (log_index, time) = (applied.entry.log_index, applied.entry.time);
        let mut events = Vec::new();
        let mut applied = applied;
        if let Some(mutation) = self.mutation {
            events.extend_from_slice(applied.events);
            mutation.spoil(log_index, &mut events);
            applied = AppliedEntry { events: &events, ..applied };
        }
        // Whether it could follow is for the checkers to see.
        let _ = self.listener.on_applied(engine, log_index, time, applied.events);
        self.checks.borrow_mut().on_applied(self.me, engine, &self.listener, &applied);
        self.check_fairness(engine);
        self.tell_session(&applied);
        self.report(log_index, time, applied.events);
        self.tell_gateway(&applied);
        if let Some(origin) = applied.origin.take() {
            self.opened(origin, engine, applied.events);
        }
    }

    fn solve(&mut self, job: SolveJob) {
        self.solving.push_back(job);
        self.out.push(Out::Timer { after_ns: self.solve_ns, timer: ReplicaTimer::Solved });
    }

    fn unresolved(&mut self, origin: Origin, _: Unresolved) {
        match origin {
            Origin::Opens(stream) => self.entry.sent_away(stream, &self.leader_address),
            Origin::Waiter(WaiterId(number)) => self.out.push(Out::Told(number, Fate::Unknown)),
            Origin::OpensElsewhere(_) => {}
        }
    }

    fn snapshot(&mut self, engine: &Engine, meta: SnapshotMeta) {
        // It grows a little from one to the next.
        let state = State::encode(self.state_bytes + (self.state_bytes >> 3), engine, &self.listener, &self.reports);
        self.state_bytes = state.len();
        if self.storage.take_state(meta, state) {
            self.out.push(Out::Timer { after_ns: self.snapshot_ns, timer: ReplicaTimer::SnapshotWritten });
        }
    }

    fn let_go(&mut self, meta: SnapshotMeta) {
        self.storage.jobs.push_back(LogJob::LetGo(meta));
    }

    fn send_snapshot(&mut self, to: ReplicaId, meta: SnapshotMeta, message: Vec<u8>) {
        let info = self.storage.snapshots.list().into_iter().find(|info| info.meta == meta);
        match (info, self.storage.read(meta.slot)) {
            (Some(info), Ok(state)) => self.out.push(Out::SendSnapshot { to, info, state, message }),
            _ => self.not_sent.push(to),
        }
    }

    fn install(&mut self, meta: &SnapshotMeta) -> Result<Engine, String> {
        let State { engine, listener, reports } = State::decode(&self.storage.read(meta.slot)?, self.reports.settings())?;
        (self.listener, self.reports) = (listener, reports);
        self.installed_count += 1;
        if let Some(releases) = &mut self.releases {
            releases.begin_from(self.me, &engine, &mut self.checks.borrow_mut(), self.mutation);
        }
        if let Some(fair) = &mut self.fair {
            fair.on_installed(&engine);
            self.entry.fail_all();
        }
        Ok(engine)
    }

    fn role(&mut self, change: RoleChange) {
        let was = self.leader;
        self.leader = match change.role {
            Role::Leader => Some(self.me),
            Role::Follower { leader } => leader,
            Role::Candidate => None,
        };
        if was != self.leader {
            self.leader_address = self.leader.map(address).unwrap_or_default().into();
        }
        self.checks.borrow_mut().on_role(self.me, change);
        self.out.push(Out::Role(change));
        if let Some(fair) = &mut self.fair {
            fair.on_role(change.term, drop);
        } else if was != self.leader && self.leader != Some(self.me) {
            self.entry.not_leader(&self.leader_address);
        }
    }

    fn leading(&mut self, term: Term) {
        if let Some(fair) = &mut self.fair {
            fair.on_leading(self.now_ns, term);
        }
    }

    fn members(&mut self, members: &Members) {
        self.out.push(Out::Members(members.clone()));
    }

    fn keep_introductions(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.storage.note.write(bytes).map_err(|e| e.to_string())
    }

    fn read_ready(&mut self, token: ReadToken) {
        self.out.push(Out::ReadReady(token));
    }
}
