//! Fair access in the simulation: how it is set, and what reaches a leader's hold.

use std::cell::RefCell;

use bytes::Bytes;
use walras_consensus::ReplicaId;
use walras_fair_access::delay::{DelayBounds, DelaySettings, Ppm, Tracking};
use walras_fair_access::resequence::Stamp;
use walras_replica::Origin;
use walras_sequencer::{FairAccess, ForwardSettings, GatewayMessage, GatewayTime, IntakeSettings, Pack};

use super::{GATEWAYS, Moment};
use crate::cluster::checks::{Checks, Stamped};
use crate::cluster::mutation::Mutation;
use crate::cluster::places::LEAVES_FROM;
use crate::cluster::places::place_of;

/// Further apart than any clock here: no gateway is an outlier.
const FAR_APART_NS: u64 = u64::MAX >> 2;

/// No order is held for longer.
pub(crate) const DELAY_NS_MAX: u64 = 20_000_000;

/// A gateway sends what is unanswered for so long again.
pub(crate) const RESEND_NS: u64 = 300_000_000;

/// From one watermark to the next.
const WATERMARK_NS: u64 = 1_000_000;

/// A term, a stamp and the kind of a message.
const WATERMARK_BYTES_MAX: usize = 8 + 9 + 1;

/// How far ahead of its orders a gateway's watermarks are, for [`Mutation::WatermarkAhead`].
const AHEAD_NS: u64 = 10_000_000;

/// Small, so that bounds are reached.
pub(super) fn settings(seed: u64, has_outliers: bool, merges: bool) -> (ForwardSettings, IntakeSettings) {
    let bounds = DelayBounds { min_ns: 100_000, max_ns: DELAY_NS_MAX, start_ns: 2_000_000 };
    let delay = DelaySettings::Tracking(Tracking { bounds, target: Ppm(10_000), step_ns: 100_000, level_window: 50 });
    let common = IntakeSettings::new(GATEWAYS, delay, seed);
    let intake = IntakeSettings {
        held_per_gateway_max: 24,
        sessions_max: 4,
        early_per_session_max: 4,
        outlier_apart_max_ns: if has_outliers { common.outlier_apart_max_ns } else { FAR_APART_NS },
        merges,
        ..common
    };
    (forwards(merges), intake)
}

/// Small bounds of what a gateway keeps for the leader.
pub(crate) fn forwards(merges: bool) -> ForwardSettings {
    ForwardSettings { unanswered_max: 40, resend_ns: RESEND_NS, watermark_ns: if merges { WATERMARK_NS } else { 0 } }
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

/// Whether a message between replicas is a watermark.
pub(crate) fn is_watermark(bytes: &[u8]) -> bool {
    let decode = |bytes: &[u8]| GatewayMessage::decode(&Bytes::copy_from_slice(bytes));
    bytes.len() <= WATERMARK_BYTES_MAX
        && GatewayMessage::is_one(bytes)
        && matches!(decode(bytes), Ok(GatewayMessage::Watermark { .. }))
}

/// Up to when all that reached a replica has been read: bytes that come at this very instant may still come.
pub(super) fn taken_in_ns(at: Moment) -> u64 {
    (at.time().time_ns / at.grain_ns * at.grain_ns).saturating_sub(1)
}

/// Shows the checkers what a replica sends to the leader and to leaf gateways, and gives what goes out.
pub(super) fn sent(
    bytes: Vec<u8>,
    (me, to): (ReplicaId, ReplicaId),
    at: Moment,
    checks: &RefCell<Checks>,
    mutation: Option<Mutation>,
) -> Vec<u8> {
    let mut sent = Bytes::from(bytes);
    if place_of(to) >= LEAVES_FROM {
        checks.borrow_mut().on_sent_to_leaf(me, to, &sent);
        return sent.into();
    }
    if !GatewayMessage::is_one(&sent) {
        return sent.into();
    }
    if let Ok(GatewayMessage::Watermark { term, until: Stamp::Gateway(until_ns) }) = GatewayMessage::decode(&sent) {
        let until_ns = match mutation {
            Some(Mutation::WatermarkAhead) => until_ns + AHEAD_NS,
            Some(Mutation::LeavesUnheard) => taken_in_ns(at),
            _ => until_ns,
        };
        sent = GatewayMessage::Watermark { term, until: Stamp::Gateway(until_ns) }.encode().into();
    }
    for message in GatewayMessage::all_of(&sent).filter_map(Result::ok) {
        checks.borrow_mut().on_sent_to_leader(me, &message);
    }
    sent.into()
}

/// Orders that left a leader's hold out of sequence.
pub(super) fn out_of_sequence(fair: &FairAccess<Origin>, mutation: Option<Mutation>) -> u64 {
    if mutation == Some(Mutation::CountNoneLate) {
        return 0;
    }
    fair.sequenced().gateways.iter().map(|figures| figures.hold.out_of_sequence).sum()
}
