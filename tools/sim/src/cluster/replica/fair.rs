//! Fair access at a replica: the product's, with the desk and the network of the simulation.

use walras_consensus::ReplicaId;
use walras_fair_access::GatewayId;
use walras_fair_access::clock::ClockStatus;
use walras_fair_access::delay::{DelayBounds, DelaySettings, Ppm, Tracking};
use walras_gateway::session::{Reports, may_submit};
use walras_sequencer::{FairAccess, ForwardSettings, GatewayHost, GatewayTime, IntakeSettings, NotTaken, RemoteOpening};
use walras_types::{Ordinal, RejectReason, SessionId, SessionSeq, TimeNs};
use walras_wire::order_entry::Role;
use walras_wire::{Command, OpenSession};

use super::desk::Desk;
use super::process::Out;
use super::{GATEWAYS, Origin};

/// Small, so that bounds are reached.
pub(super) fn start(me: ReplicaId, seed: u64) -> FairAccess<Origin> {
    let bounds = DelayBounds { min_ns: 100_000, max_ns: 20_000_000, start_ns: 2_000_000 };
    let delay = DelaySettings::Tracking(Tracking { bounds, target: Ppm(10_000), step_ns: 100_000, level_window: 50 });
    let intake = IntakeSettings {
        held_per_gateway_max: 24,
        sessions_max: 4,
        early_per_session_max: 4,
        ..IntakeSettings::new(GATEWAYS, delay, seed)
    };
    FairAccess::new(me, ForwardSettings { unanswered_max: 40, resend_ns: 300_000_000 }, intake)
}

/// Every clock says that it is right, those too that are not.
pub(super) fn time(now_ns: u64, clock_ns: u64) -> GatewayTime {
    GatewayTime { now_ns, now: TimeNs(clock_ns), time_ns: clock_ns, status: ClockStatus::Good }
}

/// Other replicas and clients.
pub(super) struct People<'a> {
    pub(super) desk: &'a mut Desk,
    pub(super) out: &'a mut Vec<Out>,
    pub(super) reports: &'a Reports,
    pub(super) now_ns: u64,
}

impl GatewayHost<Origin> for People<'_> {
    fn send(&mut self, to: ReplicaId, bytes: Vec<u8>) {
        self.out.push(Out::Send { to, bytes });
    }

    fn may_submit(&self, command: &Command) -> bool {
        may_submit(command, Role::Operator)
    }

    fn opens_at(&mut self, opening: RemoteOpening) -> Origin {
        Origin::OpensElsewhere(opening)
    }

    fn opened(&mut self, open: &OpenSession, session: SessionId, next: SessionSeq) {
        self.desk.open_applied(self.now_ns, open, session, next, self.reports);
    }

    fn refused(&mut self, ordinal: Ordinal, reason: RejectReason) {
        self.desk.refused(ordinal, reason);
    }

    fn opening_refused(&mut self, open: &OpenSession, reason: RejectReason) {
        self.desk.opening_refused(open, reason);
    }

    fn late(&mut self, _: Ordinal, _: u64) {}

    fn replaced_before(&mut self, session: SessionId, logged_on_ns: u64) {
        self.desk.replaced_before(session, logged_on_ns);
    }

    fn not_taken(&mut self, _: Origin, _: NotTaken) {
        unreachable!("commands come through sessions here");
    }

    fn differs(&mut self, gateway: GatewayId, ordinal: Ordinal) {
        unreachable!("clients send the same again, and {ordinal:?} came by {gateway} with something else");
    }
}
