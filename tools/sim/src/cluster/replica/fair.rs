//! Fair access at a replica: the product's, over the network of the simulation.

use std::cell::RefCell;

use bytes::Bytes;
use walras_consensus::ReplicaId;
use walras_fair_access::GatewayId;
use walras_fair_access::clock::ClockStatus;
use walras_fair_access::delay::{DelayBounds, DelaySettings, Ppm, Tracking};
use walras_fair_access::resequence::Stamp;
use walras_gateway::session::Reports;
use walras_replica::{OrderEntry, Origin};
use walras_sequencer::{
    FairAccess, ForwardSettings, GatewayHost, GatewayMessage, GatewayTime, IntakeSettings, NotTaken, Pack, RemoteOpening,
};
use walras_types::{Ordinal, RejectReason, SessionId, SessionSeq, TimeNs};
use walras_wire::OpenSession;

use super::GATEWAYS;
use super::process::Out;
use crate::cluster::checks::Checks;
use crate::cluster::mutation::Mutation;

/// Further apart than any clock here is: nobody strays.
const FAR_APART_NS: u64 = u64::MAX >> 2;

/// Small, so that bounds are reached.
pub(super) fn start(me: ReplicaId, seed: u64, has_strays: bool) -> FairAccess<Origin> {
    let bounds = DelayBounds { min_ns: 100_000, max_ns: 20_000_000, start_ns: 2_000_000 };
    let delay = DelaySettings::Tracking(Tracking { bounds, target: Ppm(10_000), step_ns: 100_000, level_window: 50 });
    let common = IntakeSettings::new(GATEWAYS, delay, seed);
    let intake = IntakeSettings {
        held_per_gateway_max: 24,
        sessions_max: 4,
        early_per_session_max: 4,
        stray_apart_max_ns: if has_strays { common.stray_apart_max_ns } else { FAR_APART_NS },
        ..common
    };
    FairAccess::new(me, ForwardSettings { unanswered_max: 40, resend_ns: 300_000_000 }, intake)
}

/// Every clock says that it is right, those too that are not.
pub(super) fn time(now_ns: u64, clock_ns: u64) -> GatewayTime {
    GatewayTime { now_ns, now: TimeNs(clock_ns), time_ns: clock_ns, status: ClockStatus::Good }
}

/// What is handed over of messages that reach the leader, and what the checkers are told of them.
pub(super) fn heard(
    bytes: Bytes,
    me: ReplicaId,
    at: GatewayTime,
    checks: &RefCell<Checks>,
    mutation: Option<Mutation>,
) -> Option<Bytes> {
    let checks = &mut checks.borrow_mut();
    let mut pack = Pack::default();
    for message in GatewayMessage::all_of(&bytes).filter_map(Result::ok) {
        let handed_over = match message {
            GatewayMessage::Order { stamp, ordinal, content } => {
                let is_first = !checks.knows_order(me, ordinal);
                checks.on_order(me, at, ordinal, stamp);
                let stamp = if mutation == Some(Mutation::OrderByArrival) { Stamp::OnArrival } else { stamp };
                let is_lost = mutation == Some(Mutation::SecondCopyCounts) && is_first;
                (!is_lost).then_some(GatewayMessage::Order { stamp, ordinal, content })
            }
            GatewayMessage::Behind { session, .. } => {
                checks.on_behind(me, at, session);
                Some(message)
            }
            _ => Some(message),
        };
        if mutation.is_some() {
            let full = handed_over.and_then(|message| pack.push(&message));
            assert!(full.is_none(), "a simulated venue has few orders under way");
        }
    }
    if mutation.is_some() { pack.take().map(Bytes::from) } else { Some(bytes) }
}

/// Orders that left a leader's hold out of sequence.
pub(super) fn out_of_sequence(fair: &FairAccess<Origin>, mutation: Option<Mutation>) -> u64 {
    if mutation == Some(Mutation::CountNoneLate) {
        return 0;
    }
    fair.sequenced().gateways.iter().map(|figures| figures.hold.out_of_sequence).sum()
}

/// Other replicas and clients.
pub(super) struct People<'a> {
    pub(super) me: ReplicaId,
    pub(super) checks: &'a RefCell<Checks>,
    pub(super) entry: &'a mut OrderEntry,
    pub(super) out: &'a mut Vec<Out>,
    pub(super) reports: &'a Reports,
    pub(super) now_ns: u64,
}

impl GatewayHost<Origin> for People<'_> {
    fn send(&mut self, to: ReplicaId, bytes: Vec<u8>) {
        for message in GatewayMessage::all_of(&Bytes::copy_from_slice(&bytes)) {
            if let Ok(GatewayMessage::Refused { ordinal, .. }) = message {
                self.checks.borrow_mut().on_order_refused(self.me, ordinal);
            }
        }
        self.out.push(Out::Send { to, bytes });
    }

    fn opens_at(&mut self, opening: RemoteOpening) -> Origin {
        Origin::OpensElsewhere(opening)
    }

    fn opened(&mut self, open: &OpenSession, session: SessionId, next: SessionSeq) {
        self.entry.open_applied(self.now_ns, open, session, next, self.reports);
    }

    fn refused(&mut self, ordinal: Ordinal, reason: RejectReason) {
        let mut checks = self.checks.borrow_mut();
        // By itself, where it leads.
        checks.on_order_refused(self.me, ordinal);
        if reason != RejectReason::SessionSeqGap {
            checks.on_order_taken_back(self.me, ordinal);
        }
        drop(checks);
        self.entry.refused(ordinal, reason);
    }

    fn opening_refused(&mut self, open: &OpenSession, reason: RejectReason) {
        self.entry.opening_refused(open, reason);
    }

    fn late(&mut self, ordinal: Ordinal, late_ns: u64) {
        self.entry.late(ordinal, late_ns);
    }

    fn replaced_before(&mut self, session: SessionId, logged_on_ns: u64) {
        self.entry.replaced_before(session, logged_on_ns);
    }

    fn not_taken(&mut self, _: Origin, _: NotTaken) {
        unreachable!("commands come through sessions here");
    }

    fn differs(&mut self, gateway: GatewayId, ordinal: Ordinal) {
        unreachable!("clients send the same again, and {ordinal:?} came by {gateway} with something else");
    }
}
