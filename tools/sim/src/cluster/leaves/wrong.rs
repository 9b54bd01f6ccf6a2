//! Leaf gateways that are wrong: what planted faults do to messages on the links of a leaf.

use std::collections::BTreeSet;

use bytes::Bytes;
use walras_fair_access::resequence::Stamp;
use walras_replica::LeafMessage;
use walras_sequencer::{GatewayMessage, GatewayTime};
use walras_types::Ordinal;

use crate::cluster::fix::planted::without_resent_reports;
use crate::cluster::mutation::Mutation;

/// How far ahead of its orders a leaf's watermarks are, for [`Mutation::LeafWatermarkAhead`].
const AHEAD_NS: u64 = 10_000_000;

/// A leaf's process with a planted fault, or without one.
pub(super) struct WrongLeaf {
    mutation: Option<Mutation>,
    /// Orders that it has sent to some replica.
    sent: BTreeSet<Ordinal>,
    /// Orders that it sends no more.
    dropped: BTreeSet<Ordinal>,
    /// It stands below another replica now than it did at first.
    has_moved: bool,
    is_attached: bool,
}

impl WrongLeaf {
    pub(super) fn new(mutation: Option<Mutation>) -> Self {
        Self { mutation, sent: BTreeSet::new(), dropped: BTreeSet::new(), has_moved: false, is_attached: false }
    }

    /// A replica is the one above from now on.
    pub(super) fn attached(&mut self) {
        self.has_moved |= std::mem::replace(&mut self.is_attached, true);
        if self.mutation == Some(Mutation::LeafDropsUnanswered) {
            self.dropped = std::mem::take(&mut self.sent);
        }
    }

    /// What leaves for a replica in place of a message.
    pub(super) fn sent(&mut self, at: GatewayTime, bytes: Vec<u8>) -> Option<Vec<u8>> {
        let Some(mutation) = self.mutation else { return Some(bytes) };
        let bytes = Bytes::from(bytes);
        let message = match LeafMessage::decode(&bytes) {
            Ok(LeafMessage::Gateway(GatewayMessage::Order { stamp, ordinal, content })) => {
                if self.dropped.contains(&ordinal) {
                    return None;
                }
                let is_again = !self.sent.insert(ordinal);
                let (stamp, ordinal) = match mutation {
                    Mutation::LeafStampsAgain if is_again => (Stamp::Gateway(at.time_ns), ordinal),
                    Mutation::LeafRenumbers if is_again => (stamp, Ordinal { session_seq: ordinal.session_seq.next(), ..ordinal }),
                    _ => (stamp, ordinal),
                };
                GatewayMessage::Order { stamp, ordinal, content }
            }
            Ok(LeafMessage::Gateway(GatewayMessage::Watermark { term, until: Stamp::Gateway(until_ns) }))
                if mutation == Mutation::LeafWatermarkAhead =>
            {
                GatewayMessage::Watermark { term, until: Stamp::Gateway(until_ns + AHEAD_NS) }
            }
            _ => return Some(bytes.into()),
        };
        Some(message.encode())
    }

    /// What is written to a client in place of these bytes.
    pub(super) fn written(&self, bytes: Vec<u8>) -> Vec<u8> {
        let skips = self.mutation == Some(Mutation::LeafFixSkipsResent) && bytes.starts_with(b"8=FIX");
        if skips { without_resent_reports(&bytes) } else { bytes }
    }

    /// Whether a message of a replica reaches the leaf.
    pub(super) fn hears(&mut self, message: &LeafMessage) -> bool {
        let is_lost = self.mutation == Some(Mutation::LeafLosesReport)
            && self.has_moved
            && matches!(message, LeafMessage::Reported { report, .. } if report.report_seq.is_multiple_of(5));
        !is_lost
    }
}
