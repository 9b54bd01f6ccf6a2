//! What is seen of a replica while it runs: its checkers, a reader of its market data, what it publishes until that is released,
//! and what planted faults act on.

use std::cell::RefCell;
use std::rc::Rc;

use walras_consensus::{ReplicaId, Role, RoleChange};
use walras_engine::Engine;
use walras_fair_access::publications::ReleaseTime;
use walras_feed::publisher::PublishError;
use walras_replica::{Applied, Derived, FeedPiece, PassedOn, Probe, Publication, Route};
use walras_sequencer::{AppliedEntry, GatewayMessage, GatewayTime};
use walras_testkit::Readers;
use walras_types::{ContentDigest, LogIndex, Ordinal, RejectReason, SessionId};

use super::moment::Moment;
use super::releases::Releases;
use super::wrong::{WrongPart, stamped_by};
use super::{fair, feed};
use crate::cluster::checks::{Checks, Proposal};
use crate::cluster::mutation::Mutation;

/// A leader whose clock was moved so shortly before it began to lead may have stamped by what it showed before.
const STEADY_NS: u64 = 1_000_000_000;

/// See the module's documentation.
pub(super) struct Watch {
    pub(super) me: ReplicaId,
    pub(super) checks: Rc<RefCell<Checks>>,
    pub(super) mutation: Option<Mutation>,
    /// When the input came.
    pub(super) at: Moment,
    /// Orders that come count as having come then at the latest, by the clock that stamps them.
    pub(super) arrived_ns: u64,
    /// Since when it leads, or did last, by the true time.
    leads_since_ns: u64,
    /// Readers of what happens; `None` where the state came from a disk that no reader followed.
    pub(super) readers: Option<Readers>,
    /// Market data that waits for its time, with fair access.
    pub(super) releases: Option<Releases>,
    /// What planted faults act on.
    pub(super) taken: Vec<Taken>,
    /// What a planted fault shows in the place of a part of the replica.
    wrong: Option<WrongPart>,
    /// States from other replicas that it went on from.
    pub(super) installed_count: u64,
    /// It began with a state, and not with the first entry.
    has_begun_late: bool,
}

/// A command that a planted fault acts on.
#[derive(Debug)]
pub(super) enum Taken {
    /// It is answered before it is in the log: see [`Mutation::AcknowledgeBeforeCommit`].
    Early(Ordinal, ContentDigest),
    /// It goes into the log a second time: see [`Mutation::CopiesUnnumbered`].
    Unnumbered(Vec<u8>),
}

impl Watch {
    pub(super) fn new(me: ReplicaId, at: Moment, checks: Rc<RefCell<Checks>>, mutation: Option<Mutation>, is_fair: bool) -> Self {
        let releases = is_fair.then(|| Releases::new(me, mutation));
        let (readers, taken, wrong) = (None, Vec::new(), None);
        Self {
            me,
            checks,
            mutation,
            at,
            arrived_ns: u64::MAX,
            leads_since_ns: 0,
            readers,
            releases,
            taken,
            wrong,
            installed_count: 0,
            has_begun_late: false,
        }
    }
}

impl Probe for Watch {
    fn passed_on(&mut self, passed: &PassedOn<'_>) {
        let PassedOn { at, came, ordinal, content, has_copies, route } = *passed;
        match route {
            Route::Stamped { leads } => {
                let stamp = [at.time_ns, self.arrived_ns];
                self.checks.borrow_mut().on_stamped(self.me, came, ordinal, stamp, leads);
                if has_copies && self.mutation == Some(Mutation::CopiesUnnumbered) {
                    self.taken.push(Taken::Unnumbered(content.to_vec()));
                }
            }
            Route::Sequencer if self.mutation == Some(Mutation::AcknowledgeBeforeCommit) => {
                self.taken.push(Taken::Early(ordinal, ContentDigest::of_bytes(content)));
            }
            Route::Sequencer => {}
        }
    }

    fn cancels_behind(&mut self, at: GatewayTime, session: SessionId) {
        self.checks.borrow_mut().on_behind(self.me, at, session);
    }

    fn order_refused(&mut self, ordinal: Ordinal, reason: RejectReason) {
        let mut checks = self.checks.borrow_mut();
        // By itself, where it leads.
        checks.on_order_refused(self.me, ordinal);
        if reason != RejectReason::SessionSeqGap {
            checks.on_order_taken_back(self.me, ordinal);
        }
    }

    fn sent_to_gateway(&mut self, _: ReplicaId, bytes: &[u8]) {
        for message in GatewayMessage::all_of(&bytes::Bytes::copy_from_slice(bytes)) {
            if let Ok(GatewayMessage::Refused { ordinal, .. }) = message {
                self.checks.borrow_mut().on_order_refused(self.me, ordinal);
            }
        }
    }

    fn released(&mut self, at: GatewayTime, before: LogIndex, after: LogIndex) {
        self.checks.borrow_mut().on_let_go(self.me, at, before, after);
    }

    fn proposed(&mut self, made: LogIndex) {
        let mut checks = self.checks.borrow_mut();
        checks.on_made(self.me, made);
        let Moment { clock_ns, true_ns, clock_moved_ns, .. } = self.at;
        let is_steady = clock_moved_ns + STEADY_NS < self.leads_since_ns;
        checks.on_proposed(made, Proposal { leader: self.me, clock_ns, true_ns, is_steady });
    }

    fn role(&mut self, change: RoleChange) {
        if change.role == Role::Leader {
            self.leads_since_ns = self.at.true_ns;
        }
        self.checks.borrow_mut().on_role(self.me, change);
    }

    fn applied(&mut self, applied: &mut Applied<'_>) {
        let Applied { engine, derived, entry, fair, .. } = applied;
        let (log_index, time) = (entry.entry.log_index, entry.entry.time);
        if let Some(readers) = &mut self.readers {
            // Whether they could follow is for the checkers to see.
            let _ = readers.on_applied(engine, &mut derived.market, log_index, entry.events);
        }
        if let Some(wrong) = &mut self.wrong {
            wrong.on_applied(engine, entry.entry, entry.events);
        }
        let mut checks = self.checks.borrow_mut();
        let (mut shown, mut events, mut market) = (*engine, entry.events.to_vec(), (&derived.market, self.readers.as_ref()));
        match &self.wrong {
            Some(WrongPart::Engine(wrong)) => (shown, events) = (&wrong.engine, wrong.events.clone()),
            Some(WrongPart::Market(listener)) => market = (&listener.market, Some(&listener.readers)),
            None => {}
        }
        if let Some(mutation) = self.mutation {
            mutation.spoil(log_index, &mut events);
        }
        let restamped =
            (self.mutation == Some(Mutation::StampBackwards)).then(|| stamped_by(checks.clock_at_proposal(log_index), entry.entry));
        let AppliedEntry { entry, numbered, origin, ahead_ns, .. } = **entry;
        let entry = restamped.as_ref().unwrap_or(entry);
        let seen = AppliedEntry { entry, numbered, origin, events: &events, ahead_ns };
        checks.on_applied(self.me, shown, market, &seen);
        if let Some(fair) = fair
            && checks.wants_count(self.me)
        {
            checks.on_counted(self.me, fair::out_of_sequence(fair, self.mutation), fair.matching().unfair);
        }
        if let Some(releases) = &mut self.releases {
            releases.on_applied(engine, time, self.at, &mut checks);
        }
    }

    fn feed(&mut self, engine: &Engine, piece: &FeedPiece) {
        let piece = feed::spoiled(self.mutation, self.has_begun_late, piece);
        self.checks.borrow_mut().on_feed(self.me, &piece, engine);
    }

    fn feed_stopped(&mut self, error: PublishError) {
        self.checks.borrow_mut().on_feed_stopped(self.me, error);
    }

    fn publish(&mut self, publication: Publication<'_>) -> Option<i64> {
        let releases = self.releases.as_mut()?;
        let Publication { engine, known_from, ahead_ns, .. } = publication;
        Some(releases.publish(engine, (known_from, ahead_ns), self.at, &mut self.checks.borrow_mut()))
    }

    fn installed(&mut self, engine: &Engine, derived: &Derived, known_from: Option<ReleaseTime>) {
        self.installed_count += 1;
        self.begun(engine, derived, known_from);
    }

    fn begun(&mut self, engine: &Engine, derived: &Derived, _: Option<ReleaseTime>) {
        self.has_begun_late = engine.last_applied() > LogIndex(0);
        self.readers = self.checks.borrow().readers_after(engine.last_applied());
        if self.readers.is_none() && derived.market.log_index() == LogIndex(0) {
            self.readers = Some(Readers::default());
        }
        self.wrong = if engine.last_applied() == LogIndex(0) { WrongPart::of(self.mutation) } else { None };
        if self.releases.is_some() {
            self.checks.borrow_mut().on_begin_from(self.me, engine.time().0);
        }
    }

    fn freezes(&mut self) {
        if let Some(readers) = &self.readers {
            self.checks.borrow_mut().keep_readers(readers);
        }
    }
}
