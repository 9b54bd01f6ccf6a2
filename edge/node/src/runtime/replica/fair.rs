//! Fair access at a replica of real clocks, links and participants. What it does is [`FairAccess`]'s.

use std::time::Duration;

use bytes::Bytes;
use tracing::warn;
use walras_access::Clock;
use walras_clock_sync::Source;
use walras_config::FairAccessOptions;
use walras_consensus::{ReplicaId, Term};
use walras_fair_access::GatewayId;
use walras_gateway::session::Reports;
use walras_peer_link::Links;
use walras_ports::{FairAccessView, FairTime, NoOutcome};
use walras_replica::{OrderEntry, Origin};
use walras_sequencer::{
    FairAccess, ForwardSettings, GatewayHost, GatewayTime, IntakeSettings, NotTaken, RemoteOpening, ReplicatedSequencer, Timed,
};
use walras_types::{Ordinal, RejectReason, SessionId, SessionSeq};
use walras_wire::{Command, OpenSession};

use super::traces::Traces;
use super::waiters::Waiters;
use crate::runtime::fair_clock::FairClock;
use crate::runtime::numbered::NumberedWaits;

pub(super) struct Fair {
    pub(super) access: FairAccess<Origin>,
    clock: FairClock,
    host: Clock,
}

impl Fair {
    pub(super) fn new(me: ReplicaId, options: FairAccessOptions, configured: Option<Source>, host: Clock) -> Self {
        let intake = IntakeSettings { digest_key: walras_access::random_u64(), ..options.intake };
        let access = FairAccess::new(me, ForwardSettings::default(), intake);
        Self { access, clock: FairClock::new(options.clock, configured, host.clone()), host }
    }

    /// What time it is, by all clocks.
    pub(super) fn at(&mut self, now_ns: u64) -> GatewayTime {
        let FairTime { time_ns, status, .. } = self.clock.now();
        GatewayTime { now_ns, now: self.host.now(), time_ns, status }
    }

    pub(super) fn submit_alone(&mut self, now_ns: u64, command: Command, origin: Option<Origin>) {
        let at = self.at(now_ns);
        self.access.submit_alone(at, command, origin);
    }

    pub(super) fn on_message(
        &mut self,
        now_ns: u64,
        from: ReplicaId,
        bytes: &Bytes,
        sequencer: &mut ReplicatedSequencer<Origin>,
        people: &mut People<'_>,
    ) {
        let at = self.at(now_ns);
        self.access.on_message(at, from, bytes, sequencer, people);
    }

    pub(super) fn settle(&mut self, now_ns: u64, sequencer: &mut ReplicatedSequencer<Origin>, people: &mut People<'_>) {
        let at = self.at(now_ns);
        self.access.settle(at, sequencer, people);
    }

    pub(super) fn on_role(&mut self, term: Term, waiters: &mut Waiters) {
        self.access.on_role(term, |origin| refuse(waiters, origin, RejectReason::NotLeader));
    }

    /// How long nothing is due.
    pub(super) fn wait(&mut self, now_ns: u64) -> Duration {
        let at = self.at(now_ns);
        self.access.wait_ns(at).map_or(Duration::MAX, Duration::from_nanos)
    }

    pub(super) fn view(&mut self) -> FairAccessView {
        FairAccessView {
            clock: self.clock.now(),
            leader: self.access.leader(),
            unanswered: self.access.unanswered(),
            forwards: self.access.forwarded(),
            intake: self.access.sequenced(),
        }
    }
}

/// Links to other replicas, and connections of participants.
pub(super) struct People<'a> {
    pub(super) links: &'a mut Links,
    pub(super) entry: &'a mut OrderEntry,
    pub(super) numbered: &'a mut NumberedWaits,
    pub(super) reports: &'a Reports,
    pub(super) traces: &'a mut Traces,
    pub(super) waiters: &'a mut Waiters,
    pub(super) now_ns: u64,
}

impl GatewayHost<Origin> for People<'_> {
    fn send(&mut self, to: ReplicaId, bytes: Vec<u8>) {
        let _ = self.links.send(to, bytes);
    }

    fn opens_at(&mut self, opening: RemoteOpening) -> Origin {
        Origin::OpensElsewhere(opening)
    }

    fn opened(&mut self, open: &OpenSession, session: SessionId, next: SessionSeq) {
        self.entry.open_applied(self.now_ns, open, session, next, self.reports);
    }

    fn refused(&mut self, ordinal: Ordinal, reason: RejectReason) {
        self.numbered.refused(ordinal, reason);
        self.entry.refused(ordinal, reason);
    }

    fn opening_refused(&mut self, open: &OpenSession, reason: RejectReason) {
        self.entry.opening_refused(open, reason);
    }

    fn late(&mut self, ordinal: Ordinal, late_ns: u64) {
        self.entry.late(ordinal, late_ns);
    }

    fn timed(&mut self, timed: Timed) {
        self.traces.released(timed);
    }

    fn replaced_before(&mut self, session: SessionId, logged_on_ns: u64) {
        self.entry.replaced_before(session, logged_on_ns);
    }

    fn not_taken(&mut self, origin: Origin, why: NotTaken) {
        let reason = match why {
            NotTaken::Refused(reason) => reason,
            NotTaken::NotLeader { .. } | NotTaken::Repeated(_) | NotTaken::OnItsWay => RejectReason::NotLeader,
        };
        refuse(self.waiters, origin, reason);
    }

    fn differs(&mut self, gateway: GatewayId, ordinal: Ordinal) {
        warn!(
            "gateway {gateway}: command {} of session {} came with other content than its first copy, which counts",
            ordinal.session_seq, ordinal.session
        );
    }
}

fn refuse(waiters: &mut Waiters, origin: Origin, reason: RejectReason) {
    match origin {
        Origin::Waiter(waiter) => waiters.answer(waiter, Err(NoOutcome::Refused(reason))),
        // Its gateway asks again.
        Origin::Opens(_) | Origin::OpensElsewhere(_) => {}
    }
}
