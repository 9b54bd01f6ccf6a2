//! Fair access in the simulation: how it is set, and what reaches a leader's hold.

use std::cell::RefCell;

use bytes::Bytes;
use walras_consensus::ReplicaId;
use walras_fair_access::delay::{DelayBounds, DelaySettings, Ppm, Tracking};
use walras_fair_access::resequence::Stamp;
use walras_replica::Origin;
use walras_sequencer::{FairAccess, ForwardSettings, GatewayMessage, GatewayTime, IntakeSettings, Pack};

use super::GATEWAYS;
use crate::cluster::checks::{Checks, Stamped};
use crate::cluster::mutation::Mutation;

/// Further apart than any clock here: no gateway is an outlier.
const FAR_APART_NS: u64 = u64::MAX >> 2;

/// Small, so that bounds are reached.
pub(super) fn settings(seed: u64, has_outliers: bool) -> (ForwardSettings, IntakeSettings) {
    let bounds = DelayBounds { min_ns: 100_000, max_ns: 20_000_000, start_ns: 2_000_000 };
    let delay = DelaySettings::Tracking(Tracking { bounds, target: Ppm(10_000), step_ns: 100_000, level_window: 50 });
    let common = IntakeSettings::new(GATEWAYS, delay, seed);
    let intake = IntakeSettings {
        held_per_gateway_max: 24,
        sessions_max: 4,
        early_per_session_max: 4,
        outlier_apart_max_ns: if has_outliers { common.outlier_apart_max_ns } else { FAR_APART_NS },
        ..common
    };
    (ForwardSettings { unanswered_max: 40, resend_ns: 300_000_000 }, intake)
}

/// What is handed over of messages that reach the leader, and what the checkers see of them.
pub(super) fn heard(
    bytes: Bytes,
    (me, from): (ReplicaId, ReplicaId),
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
                checks.on_order(me, at, ordinal, Stamped { gateway: from, stamp });
                let stamp = match (mutation, stamp) {
                    (Some(Mutation::OrderByArrival), _) => Stamp::OnArrival,
                    (Some(Mutation::TiesToTheLeader), Stamp::Gateway(stamp_ns)) => Stamp::Gateway(stamp_ns + 1),
                    (_, stamp) => stamp,
                };
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
