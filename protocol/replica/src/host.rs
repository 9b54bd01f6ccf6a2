//! What surrounds the sequencer inside a replica: what it derives from entries, who hears of them, and what the driver is to do.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Arc;

use walras_consensus::{Members, ReadToken, ReplicaId, Role, RoleChange, SnapshotMeta, Term, Write};
use walras_engine::{Engine, Numbered};
use walras_fair_access::GatewayId;
use walras_fair_access::publications::{Publications, ReleaseTime};
use walras_feed::publisher::Views;
use walras_gateway::session::Reports;
use walras_market_data::AccountDelta;
use walras_sequencer::{
    AppliedEntry, BlockJob, FairAccess, Forwarded, GatewayHost, GatewayTime, Host, NotTaken, RemoteOpening, SolveJob, Timed,
    Unresolved,
};
use walras_types::{AccountId, LogIndex, Ordinal, RejectReason, SessionId, SessionSeq, TimeNs};
use walras_wire::{Command, Event, OpenSession, OrderCommand, OrderEvent, SessionCommand, SessionEvent};

use crate::effect::{Effect, WaiterAnswer};
use crate::entry_names::EntryNames;
use crate::feed::{self, FeedPart, FeedPiece};
use crate::leaf::PublicationMark;
use crate::leaves::{CancelledBy, Leaves};
use crate::numbered::NumberedWaiters;
use crate::order_entry::OrderEntry;
use crate::order_waits::{Came, Decided, OrderWaits};
use crate::outcome::{NoOutcome, Outcome, rejected};
use crate::pending_cancels::{PendingCancels, all_of};
use crate::probe::{Applied, Probe, Publication};
use crate::reads::{ReadBarriers, Reader};
use crate::replica::ReplicaDisk;
use crate::state::{Derived, State};
use crate::transactions::{TransactionFrames, collected};
use crate::{Origin, StreamId};

/// Snapshots that may wait to be written.
pub(crate) const SNAPSHOTS_MAX: usize = 2;

/// What surrounds the sequencer.
pub(crate) struct ReplicaHost<P, D> {
    pub(crate) me: ReplicaId,
    pub(crate) probe: P,
    pub(crate) disk: D,
    pub(crate) effects: Vec<Effect>,
    pub(crate) derived: Derived,
    pub(crate) reports: Reports,
    pub(crate) entry: OrderEntry,
    /// Commands that came in here or, where this replica leads, at any gateway, in the order of their stamps.
    pub(crate) fair: Option<Box<FairAccess<Origin>>>,
    pub(crate) numbered: NumberedWaiters,
    /// Where orders waited that came in here and were held.
    pub(crate) waits: OrderWaits,
    pub(crate) cancels: PendingCancels,
    pub(crate) reads: ReadBarriers,
    /// Gateways below this replica.
    pub(crate) leaves: Leaves,
    /// Where market data is held.
    pub(crate) publishing: Option<Publishing>,
    /// The views of the binary feed that are published, if it is.
    pub(crate) feed: Option<Views>,
    pub(crate) leader: Option<ReplicaId>,
    /// The latest term in which its role changed.
    pub(crate) term: Term,
    /// Where each replica takes binary orders.
    pub(crate) addresses: BTreeMap<ReplicaId, Arc<str>>,
    /// Where the leader does, as far as it is known.
    pub(crate) leader_address: Arc<str>,
    /// Frames of transactions without their results.
    pub(crate) transactions: TransactionFrames,
    /// When the input came.
    pub(crate) at: GatewayTime,
    /// Snapshots that are being written.
    pub(crate) writing: usize,
    /// Threads that share the work of a block.
    pub(crate) threads: NonZero<usize>,
    pub(crate) deltas: Vec<(AccountId, AccountDelta)>,
    /// What the owners of the present entry's orders call them by.
    pub(crate) names: EntryNames,
    /// What it began with has been applied. Entries before that were published before: nobody is there to whom they are new.
    pub(crate) is_live: bool,
}

/// When market data is published and may be known.
#[derive(Debug)]
pub(crate) struct Publishing {
    pub(crate) publications: Publications,
    /// The last entry that published.
    pub(crate) last: LogIndex,
    /// What was published since the last report to the leader: the entry, for how long it is held, and how long ago it was made.
    pub(crate) made: Vec<(LogIndex, u64, Option<i64>)>,
}

impl Publishing {
    /// Goes on from a state, where entries before it were not seen.
    pub(crate) fn begin_from(&mut self, engine: &Engine) {
        self.publications.begin_from(engine.time().0, engine.access_delays().release_ns);
    }
}

impl<P: Probe, D: ReplicaDisk> ReplicaHost<P, D> {
    /// Fair access, and what it needs of this host.
    pub(crate) fn with_fair<R>(&mut self, act: impl FnOnce(&mut FairAccess<Origin>, &mut Participants<'_, P>) -> R) -> Option<R> {
        let Self { fair, entry, leaves, numbered, reports, effects, probe, at, .. } = self;
        let now_ns = at.now_ns;
        let fair = fair.as_deref_mut()?;
        Some(act(fair, &mut Participants { entry, leaves, numbered, reports, effects, probe, now_ns }))
    }

    /// Where replicas take binary orders, from now on.
    pub(crate) fn set_addresses(&mut self, addresses: BTreeMap<ReplicaId, Arc<str>>) {
        self.addresses = addresses;
        self.find_leader();
    }

    fn find_leader(&mut self) {
        let address = self.leader.and_then(|leader| self.addresses.get(&leader));
        self.leader_address = address.map_or_else(|| Arc::from(""), Arc::clone);
    }

    pub(crate) fn answer(&mut self, waiter: crate::WaiterId, outcome: Result<Outcome, NoOutcome>) {
        self.effects.push(Effect::Answer { waiter, answer: WaiterAnswer::Command(outcome) });
    }

    /// An entry of the log answers who sent it to this replica.
    fn answer_origin(&mut self, origin: Origin, engine: &Engine, applied: &AppliedEntry<'_, Origin>) {
        match origin {
            Origin::Waiter(waiter) => {
                let answer = match applied.numbered {
                    Some(Numbered::Refused(reason)) => Err(NoOutcome::Refused(reason)),
                    _ => Ok(outcome(applied, &self.derived)),
                };
                self.answer(waiter, answer);
            }
            Origin::Opens(stream) => self.opened(stream, engine, applied),
            Origin::Transaction { frame, place } => self.settle_transaction(frame, place, collected(applied.events)),
            Origin::OpensElsewhere(opening) => {
                let session = open_outcome(engine, applied).map(|(session, _)| session);
                match &mut self.fair {
                    Some(fair) => fair.on_opened(opening, applied.entry.log_index, session),
                    None => self.opened_for_leaf(opening, session),
                }
            }
        }
    }

    /// What came of a transaction of a frame.
    pub(crate) fn settle_transaction(&mut self, frame: u64, place: u16, result: Result<u64, RejectReason>) {
        if let Some((stream, outcome)) = self.transactions.settle(frame, place, result) {
            self.entry.transactions_done(stream, &outcome);
        }
    }

    fn opened(&mut self, stream: StreamId, engine: &Engine, applied: &AppliedEntry<'_, Origin>) {
        let Self { entry, leaves, reports, effects, at, .. } = self;
        match open_outcome(engine, applied) {
            Ok((session, next)) => {
                if let Some(claim) = entry.terms(stream, session).filter(|terms| !terms.has_copies) {
                    leaves.replaced_before(session, claim.logon_seq, effects);
                }
                entry.opened(stream, at.now_ns, session, next, reports);
            }
            Err(reason) => entry.not_opened(stream, reason),
        }
    }

    /// What the log has of cancels on disconnect need not be requested any more, nor for an account that is back.
    fn follow_cancels(&mut self, applied: &AppliedEntry<'_, Origin>) {
        let is_refused = matches!(applied.numbered, Some(Numbered::Refused(_)));
        let Self { cancels, leaves, effects, .. } = self;
        match applied.entry.content.command() {
            Some(Command::Order(OrderCommand::MassCancel(cancel))) if *cancel == all_of(cancel.account) && is_refused => {
                cancels.on_refused(cancel.account);
            }
            Some(Command::Order(OrderCommand::MassCancel(cancel))) => {
                let fingerprint = applied.entry.nonce.as_ref().map(|nonce| nonce.fingerprint);
                if let Some(fingerprint) = fingerprint {
                    cancels.on_done(cancel.account, fingerprint);
                }
                if applied.entry.ordinal.is_none() {
                    leaves.cancelled(cancel.account, CancelledBy::Request(fingerprint), effects);
                }
            }
            Some(Command::Session(SessionCommand::Open(OpenSession { account: Some(account), .. }))) if !is_refused => {
                cancels.on_back(*account);
                leaves.cancelled(*account, CancelledBy::Return, effects);
            }
            _ => {}
        }
    }

    /// The session of an entry hears of it.
    fn answer_session(&mut self, applied: &AppliedEntry<'_, Origin>) {
        let (Some(ordinal), Some(numbered)) = (applied.entry.ordinal, applied.numbered) else { return };
        self.numbered.applied(ordinal, numbered, || outcome(applied, &self.derived), &mut self.effects);
        let Self { entry, leaves, effects, .. } = self;
        let (answer, time) = match numbered {
            Numbered::Done(answer) => (answer, Some(applied.entry.time)),
            Numbered::Repeated(answer) => (answer, None),
            Numbered::Refused(reason) => {
                leaves.refused(ordinal, reason, effects);
                return entry.refused(ordinal, reason);
            }
        };
        entry.answer(ordinal, answer, time);
        leaves.answer(ordinal, answer, time, effects);
    }

    /// Where an order waited that an entry holds, if it came in here. Without fair access nothing is held.
    fn note_waits(&mut self, applied: &AppliedEntry<'_, Origin>, forwarded: Option<Forwarded>) {
        let came = match (forwarded, applied.origin) {
            (Some(forwarded), _) => Came::by_session(forwarded),
            (None, Some(Origin::Waiter(waiter))) => self.waits.take_request(waiter),
            (None, _) => None,
        };
        let accepted = |event: &Event| if let Event::Order(OrderEvent::Accepted(e)) = event { Some(*e) } else { None };
        if let (Some(came), Some(accepted)) = (came, applied.events.iter().find_map(accepted)) {
            // What this machine's clock stamped needs no report of how it stands.
            let ahead_ns = applied.ahead_ns.filter(|_| self.leader != Some(self.me));
            let decided = Decided { at: self.at, made: applied.entry.time, ahead_ns };
            self.waits.decided(accepted.account, accepted.order_id, came, &decided);
        }
    }

    fn report(&mut self, log_index: LogIndex, time: TimeNs, events: &[Event]) {
        let Self { reports, entry, leaves, effects, names, .. } = self;
        for (event, names) in names.with(events) {
            reports.on_named_event(log_index, time, event, names, |account, report, name| {
                entry.report(account, report, name);
                leaves.report(account, report, name, effects);
            });
            if let Event::Session(SessionEvent::Closed(closed)) = event {
                entry.closed(closed.session);
                leaves.closed(closed.session, effects);
            }
        }
    }

    /// The binary feed of an entry.
    fn publish_feed(&mut self, engine: &Engine, applied: &AppliedEntry<'_, Origin>, release: Option<ReleaseTime>) {
        let Some(publisher) = &mut self.derived.feed else { return };
        match feed::publish(publisher, engine, applied.entry, applied.events) {
            Ok(runs) if runs.is_empty() => {}
            Ok(runs) => {
                let part = if self.leader == Some(self.me) { FeedPart::Sends } else { FeedPart::Keeps };
                let held_ns = release.map_or(0, |release| release.log_ns.saturating_sub(applied.entry.time.0));
                let (log_index, term) = (applied.entry.log_index, self.term);
                let piece = FeedPiece { log_index, term, release, held_ns, part, runs };
                self.probe.feed(engine, &piece);
                // What is replayed at the start was sent before; the driver begins with the state after it.
                if self.is_live {
                    self.effects.push(Effect::Publish(piece));
                }
            }
            Err(error) => {
                self.derived.feed = None;
                self.probe.feed_stopped(error);
            }
        }
    }

    /// Publishes that the binary feed is sent here from now on, or no longer, where that changes between two entries that publish.
    fn turn_feed(&mut self, part: FeedPart) {
        if let Some(publisher) = self.derived.feed.as_ref().filter(|_| self.is_live) {
            let (log_index, term) = (publisher.log_index(), self.term);
            let release = self.publishing.as_ref().map(|publishing| publishing.publications.known_from());
            self.effects.push(Effect::Publish(FeedPiece { log_index, term, release, held_ns: 0, part, runs: Vec::new() }));
        }
    }

    /// Publishes market data, where the entry's time calls for it.
    fn publish(&mut self, engine: &Engine, held_ns: Option<u64>, ahead_ns: Option<i64>) {
        let (Some(publishing), Some(held_ns)) = (&mut self.publishing, held_ns) else { return };
        let log_index = engine.last_applied();
        publishing.last = log_index;
        if !self.is_live {
            return;
        }
        let known_from = publishing.publications.known_from();
        let publication = Publication { engine, market: &mut self.derived.market, ahead_ns, known_from };
        publishing.made.push((log_index, held_ns, self.probe.publish(publication)));
        let release_ns = known_from.venue_ns().unwrap_or(known_from.log_ns);
        self.leaves.published(PublicationMark { log_index, time: engine.time(), release_ns }, &mut self.effects);
    }
}

fn outcome(applied: &AppliedEntry<'_, Origin>, derived: &Derived) -> Outcome {
    let names = derived.names(applied.events);
    Outcome { log_index: applied.entry.log_index, time: applied.entry.time, events: applied.events.to_vec(), names }
}

/// Which session was opened, and what it begins with; or why none was.
fn open_outcome(engine: &Engine, applied: &AppliedEntry<'_, Origin>) -> Result<(SessionId, SessionSeq), RejectReason> {
    if let Some(Numbered::Refused(reason)) = applied.numbered {
        return Err(reason);
    }
    let events = applied.events;
    let opened =
        events.iter().find_map(|event| if let Event::Session(SessionEvent::Opened(opened)) = event { Some(opened) } else { None });
    let start = opened.and_then(|opened| engine.session(opened.session).map(|view| (opened.session, view.next)));
    start.ok_or_else(|| rejected(events).unwrap_or(RejectReason::VenueNotReady))
}

impl<P: Probe, D: ReplicaDisk> Host<Origin> for ReplicaHost<P, D> {
    fn send(&mut self, to: ReplicaId, bytes: Vec<u8>) {
        self.effects.push(Effect::Send { to, bytes });
    }

    fn persist(&mut self, write: Write) {
        self.effects.push(Effect::Persist(write));
    }

    fn decided(&mut self) {
        self.probe.decided();
    }

    fn applied(&mut self, engine: &Engine, mut applied: AppliedEntry<'_, Origin>) {
        let (log_index, time) = (applied.entry.log_index, applied.entry.time);
        let Self { derived, deltas, names, probe, fair, publishing, .. } = self;
        names.take(engine.version(), &derived.histories, applied.entry.content.command(), applied.events);
        if let Err(error) = derived.on_entry(engine, applied.entry, applied.events, deltas) {
            probe.inconsistent(error);
        }
        let (mut held_ns, mut known_from) = (None, None);
        if let Some(Publishing { publications, .. }) = publishing {
            held_ns = publications.on_entry(engine.time().0, engine.access_delays().release_ns, applied.ahead_ns);
            known_from = Some(publications.known_from());
        }
        probe.applied(&mut Applied { engine, derived, entry: &applied, deltas, fair: fair.as_deref(), known_from });
        self.publish_feed(engine, &applied, known_from);
        self.entry.follow_instruments(engine);
        self.leaves.list_new(applied.events, &mut self.effects);
        self.follow_cancels(&applied);
        self.answer_session(&applied);
        self.report(log_index, time, applied.events);
        let forwarded = self.fair.as_mut().and_then(|fair| fair.on_applied(self.at.now_ns, &applied));
        self.note_waits(&applied, forwarded);
        if let Some(origin) = applied.origin.take() {
            self.answer_origin(origin, engine, &applied);
        }
        self.publish(engine, held_ns, applied.ahead_ns);
    }

    fn solve(&mut self, job: SolveJob) {
        self.effects.push(Effect::Solve(job));
    }

    fn run(&mut self, job: BlockJob) {
        self.effects.push(Effect::Run(job));
    }

    fn unresolved(&mut self, origin: Origin, why: Unresolved) {
        match (origin, why) {
            (Origin::Waiter(waiter), Unresolved::Lost { .. }) => {
                self.answer(waiter, Err(NoOutcome::Refused(RejectReason::NotLeader)));
            }
            (Origin::Waiter(waiter), Unresolved::InDoubt) => {
                self.answer(waiter, Err(NoOutcome::InDoubt(RejectReason::NotLeader)));
            }
            (Origin::Waiter(waiter), Unresolved::Unwritten(reason)) => self.answer(waiter, Err(NoOutcome::InDoubt(reason))),
            (Origin::Opens(stream), Unresolved::Unwritten(reason)) => self.entry.not_opened(stream, reason),
            (Origin::Opens(stream), Unresolved::Lost { .. } | Unresolved::InDoubt) => {
                self.entry.sent_away(stream, &self.leader_address)
            }
            // It may be sent again, whatever became of it.
            (Origin::Transaction { frame, place }, Unresolved::Lost { .. } | Unresolved::InDoubt) => {
                self.settle_transaction(frame, place, Err(RejectReason::NotLeader));
            }
            (Origin::Transaction { frame, place }, Unresolved::Unwritten(reason)) => {
                self.settle_transaction(frame, place, Err(reason));
            }
            // Its gateway asks again.
            (Origin::OpensElsewhere(_), _) => {}
        }
    }

    fn snapshot(&mut self, engine: &mut Engine, meta: SnapshotMeta) {
        if self.writing >= SNAPSHOTS_MAX {
            return;
        }
        self.writing += 1;
        self.probe.freezes();
        let state = Box::new(State::freeze(engine, &mut self.derived, &mut self.reports));
        self.probe.frozen();
        self.effects.push(Effect::Snapshot { meta, state });
    }

    fn let_go(&mut self, meta: SnapshotMeta) {
        self.effects.push(Effect::LetGo(meta));
    }

    fn send_snapshot(&mut self, to: ReplicaId, meta: SnapshotMeta, bytes: Vec<u8>) {
        self.effects.push(Effect::SendSnapshot { to, meta, message: bytes });
    }

    fn install(&mut self, meta: &SnapshotMeta) -> Result<Engine, String> {
        let State { mut engine, derived, reports } = State::decode(&self.disk.read_snapshot(meta)?, self.reports.settings())?;
        engine.set_threads(self.threads);
        (self.derived, self.reports) = (derived, reports);
        self.derived.feed = feed::begin(self.feed, self.derived.feed.take(), &engine);
        let known_from = self.publishing.as_mut().map(|publishing| {
            publishing.begin_from(&engine);
            publishing.publications.known_from()
        });
        self.probe.installed(&engine, &self.derived, known_from);
        self.numbered.lose_all(RejectReason::NotLeader, &mut self.effects);
        self.cancels.clear();
        // They begin anew, with the state as it is then.
        self.leaves.detach_all(Some(self.me), &mut self.effects);
        if let Some(fair) = &mut self.fair {
            fair.on_installed(&engine);
            self.entry.fail_all();
        }
        Ok(engine)
    }

    fn role(&mut self, change: RoleChange) {
        let was = self.leader;
        self.term = change.term;
        self.leader = match change.role {
            Role::Leader => Some(self.me),
            Role::Follower { leader } => leader,
            Role::Candidate => None,
        };
        self.find_leader();
        self.probe.role(change);
        self.effects.push(Effect::Role(change));
        if was == Some(self.me) && self.leader != Some(self.me) {
            self.turn_feed(FeedPart::Keeps);
        }
        if change.role != Role::Leader {
            self.numbered.lose_all(RejectReason::NotLeader, &mut self.effects);
        }
        let Self { fair, effects, .. } = self;
        if let Some(fair) = fair {
            fair.on_role(change.term, |origin| refuse(origin, RejectReason::NotLeader, effects));
        } else if was != self.leader && self.leader != Some(self.me) {
            self.entry.not_leader(&self.leader_address);
            self.leaves.detach_all(self.leader, &mut self.effects);
        }
    }

    fn leading(&mut self, term: Term) {
        self.effects.push(Effect::Leading(term));
        self.turn_feed(FeedPart::Sends);
        if let Some(fair) = &mut self.fair {
            fair.on_leading(self.at.now_ns, term);
        }
    }

    fn members(&mut self, members: &Members) {
        self.effects.push(Effect::Members(members.clone()));
    }

    fn keep_introductions(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.disk.keep_introductions(bytes)
    }

    fn read_ready(&mut self, token: ReadToken) {
        let Self { reads, leaves, effects, .. } = self;
        reads.reached(token, |reader| match reader {
            Reader::Waiter(waiter) => effects.push(Effect::Answer { waiter, answer: WaiterAnswer::Read }),
            Reader::Leaf(leaf, epoch) => leaves.attach(leaf, epoch, effects),
        });
    }
}

/// A command that waits here is not taken.
pub(crate) fn refuse(origin: Origin, reason: RejectReason, effects: &mut Vec<Effect>) {
    match origin {
        Origin::Waiter(waiter) => {
            let answer = WaiterAnswer::Command(Err(NoOutcome::Refused(reason)));
            effects.push(Effect::Answer { waiter, answer });
        }
        // Its gateway asks again. A transaction never waits here: it goes to the sequencer at once.
        Origin::Opens(_) | Origin::OpensElsewhere(_) | Origin::Transaction { .. } => {}
    }
}

/// What fair access needs of a replica: other replicas, and participants here.
pub(crate) struct Participants<'a, P> {
    entry: &'a mut OrderEntry,
    leaves: &'a mut Leaves,
    numbered: &'a mut NumberedWaiters,
    reports: &'a Reports,
    effects: &'a mut Vec<Effect>,
    pub(crate) probe: &'a mut P,
    now_ns: u64,
}

impl<P: Probe> GatewayHost<Origin> for Participants<'_, P> {
    fn send(&mut self, to: ReplicaId, bytes: Vec<u8>) {
        self.probe.sent_to_gateway(to, &bytes);
        self.effects.push(Effect::Send { to, bytes });
    }

    fn opens_at(&mut self, opening: RemoteOpening) -> Origin {
        Origin::OpensElsewhere(opening)
    }

    fn opened(&mut self, open: &OpenSession, session: SessionId, next: SessionSeq) {
        self.entry.open_applied(self.now_ns, open, session, next, self.reports);
        self.leaves.opened(open, Ok(session), self.effects);
    }

    fn refused(&mut self, ordinal: Ordinal, reason: RejectReason) {
        self.probe.order_refused(ordinal, reason);
        self.numbered.refused(ordinal, reason, self.effects);
        self.entry.refused(ordinal, reason);
        self.leaves.refused(ordinal, reason, self.effects);
    }

    fn opening_refused(&mut self, open: &OpenSession, reason: RejectReason) {
        self.entry.opening_refused(open, reason);
        self.leaves.opened(open, Err(reason), self.effects);
    }

    fn late(&mut self, ordinal: Ordinal, late_ns: u64) {
        self.entry.late(ordinal, late_ns);
        self.leaves.late(ordinal, late_ns, self.effects);
    }

    fn timed(&mut self, timed: Timed) {
        self.probe.timed(timed);
    }

    fn replaced_before(&mut self, session: SessionId, logon_seq: u64) {
        self.entry.replaced_before(session, logon_seq);
        self.leaves.replaced_before(session, logon_seq, self.effects);
    }

    fn not_taken(&mut self, origin: Origin, why: NotTaken) {
        let reason = match why {
            NotTaken::Refused(reason) => reason,
            NotTaken::NotLeader { .. } | NotTaken::Repeated(_) | NotTaken::OnItsWay => RejectReason::NotLeader,
        };
        refuse(origin, reason, self.effects);
    }

    fn differs(&mut self, gateway: GatewayId, ordinal: Ordinal) {
        self.effects.push(Effect::CopiesDiffer { gateway, ordinal });
    }
}
