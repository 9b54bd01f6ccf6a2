//! What a leaf gateway has sent of an order goes to each replica above it, under the same number, with the same stamp and content, until
//! what came of it arrives at the leaf; and it is sent again when nothing comes.
//!
//! Known from outside: the messages on the links of a leaf, in their order, and when it stands below another replica.

use std::collections::BTreeMap;

use bytes::Bytes;
use walras_consensus::ReplicaId;
use walras_fair_access::resequence::Stamp;
use walras_replica::LeafMessage;
use walras_sequencer::GatewayMessage;
use walras_types::{Ordinal, RejectReason, SessionSeq};

use crate::cluster::replica::fair::RESEND_NS;
use crate::common::checks::{Checked, Violation};

const CHECK: &str = "leaves";

/// What is unanswered for so long was sent again: a leaf looks twice in the time after which it does so.
const AGAIN_NS: u64 = 2 * RESEND_NS;

/// All leaves.
#[derive(Debug, Default)]
pub(super) struct Leaves {
    leaves: BTreeMap<ReplicaId, Leaf>,
    /// Orders that a leaf sent to another replica than before.
    moved: u64,
}

#[derive(Debug, Default)]
struct Leaf {
    above: Option<ReplicaId>,
    unanswered: BTreeMap<Ordinal, Order>,
}

#[derive(Debug)]
struct Order {
    stamp: Stamp,
    content: Bytes,
    sent_ns: u64,
    /// The replica above does not have it from this leaf.
    is_owed: bool,
}

impl Leaves {
    /// Orders that a leaf sent to another replica than before.
    pub(super) fn moved_count(&self) -> u64 {
        self.moved
    }

    /// A process begins: it has sent nothing.
    pub(super) fn on_start(&mut self, leaf: ReplicaId) {
        self.leaves.insert(leaf, Leaf::default());
    }

    /// A replica is the one above from now on: it has nothing of the leaf.
    pub(super) fn on_attached(&mut self, leaf: ReplicaId, to: ReplicaId) {
        let leaf = self.leaves.entry(leaf).or_default();
        leaf.above = Some(to);
        leaf.unanswered.values_mut().for_each(|order| order.is_owed = true);
    }

    /// No replica is above.
    pub(super) fn on_detached(&mut self, leaf: ReplicaId) {
        self.leaves.entry(leaf).or_default().above = None;
    }

    /// A leaf sends a message to the replica above.
    pub(super) fn on_sent(&mut self, id: ReplicaId, now_ns: u64, message: &GatewayMessage) -> Checked {
        let GatewayMessage::Order { stamp, ordinal, content } = message else { return Ok(()) };
        let leaf = self.leaves.entry(id).or_default();
        let Some(order) = leaf.unanswered.get_mut(ordinal) else {
            let order = Order { stamp: *stamp, content: content.clone(), sent_ns: now_ns, is_owed: false };
            leaf.unanswered.insert(*ordinal, order);
            return Ok(());
        };
        if order.stamp != *stamp {
            let detail = format!("leaf {id} sends {ordinal:?} with {stamp:?}, and sent it with {:?} before", order.stamp);
            return Err(Violation::new(CHECK, detail));
        }
        if order.content != *content {
            return Err(Violation::new(CHECK, format!("leaf {id} sends something else as {ordinal:?} than before")));
        }
        self.moved += u64::from(std::mem::take(&mut order.is_owed));
        order.sent_ns = now_ns;
        Ok(())
    }

    /// A leaf has done what it had to for now.
    pub(super) fn on_settled(&self, id: ReplicaId, now_ns: u64) -> Checked {
        let Some(Leaf { above: Some(above), unanswered }) = self.leaves.get(&id) else { return Ok(()) };
        for (ordinal, order) in unanswered {
            if order.is_owed {
                return Err(Violation::new(CHECK, format!("leaf {id} stands below {above}, and does not send it {ordinal:?}")));
            }
            let since_ns = now_ns.saturating_sub(order.sent_ns);
            if since_ns > AGAIN_NS {
                let detail = format!("leaf {id} has had no answer to {ordinal:?} for {since_ns} ns, and does not send it again");
                return Err(Violation::new(CHECK, detail));
            }
        }
        Ok(())
    }

    /// A message of a replica arrives at a leaf. What comes from another one than the one above counts for nothing.
    pub(super) fn on_received(&mut self, leaf: ReplicaId, from: ReplicaId, message: &LeafMessage) {
        let Some(leaf) = self.leaves.get_mut(&leaf).filter(|leaf| leaf.above == Some(from)) else { return };
        match message {
            LeafMessage::Answered { ordinal, .. } => {
                leaf.unanswered.retain(|of, _| of.session != ordinal.session || of.session_seq > ordinal.session_seq);
            }
            // Where one before it is missing, it is sent again behind that one.
            LeafMessage::Gateway(GatewayMessage::Refused { ordinal, reason })
                if *reason != RejectReason::SessionSeqGap && leaf.unanswered.contains_key(ordinal) =>
            {
                leaf.forget_from(*ordinal);
            }
            LeafMessage::NotBegun { session, .. } => {
                leaf.forget_from(Ordinal { session: *session, session_seq: SessionSeq(0) });
            }
            _ => {}
        }
    }
}

impl Leaf {
    /// Nothing of a session is waited for from this number on.
    fn forget_from(&mut self, Ordinal { session, session_seq }: Ordinal) {
        self.unanswered.retain(|of, _| of.session != session || of.session_seq < session_seq);
    }
}

#[cfg(test)]
mod tests {
    use walras_types::{Answer, ContentDigest, LogIndex, SessionId};

    use super::*;

    fn id(n: u64) -> ReplicaId {
        ReplicaId::new(n).unwrap()
    }

    fn place(session_seq: u64) -> Ordinal {
        Ordinal { session: SessionId(1), session_seq: SessionSeq(session_seq) }
    }

    fn order(session_seq: u64, stamp_ns: u64) -> GatewayMessage {
        let content = Bytes::from(vec![session_seq as u8]);
        GatewayMessage::Order { stamp: Stamp::Gateway(stamp_ns), ordinal: place(session_seq), content }
    }

    /// A leaf below the first replica that has sent two orders.
    fn begun() -> Leaves {
        let mut leaves = Leaves::default();
        leaves.on_start(id(40));
        leaves.on_attached(id(40), id(1));
        for session_seq in [1, 2] {
            leaves.on_sent(id(40), 0, &order(session_seq, session_seq)).unwrap();
        }
        leaves
    }

    #[test]
    fn what_does_not_go_to_the_next_replica_or_otherwise_than_before_is_found() {
        let mut leaves = begun();
        assert!(leaves.on_sent(id(40), 1, &order(1, 9)).is_err(), "it has another stamp");
        let other = GatewayMessage::Order { stamp: Stamp::Gateway(1), ordinal: place(1), content: Bytes::from_static(&[7]) };
        assert!(leaves.on_sent(id(40), 1, &other).is_err(), "it is another order");
        leaves.on_detached(id(40));
        leaves.on_settled(id(40), 1).unwrap();
        leaves.on_attached(id(40), id(2));
        leaves.on_sent(id(40), 1, &order(1, 1)).unwrap();
        assert!(leaves.on_settled(id(40), 1).is_err(), "the second is missing");
        leaves.on_sent(id(40), 1, &order(2, 2)).unwrap();
        leaves.on_settled(id(40), 1).unwrap();
        assert_eq!(leaves.moved_count(), 2);
        assert!(leaves.on_settled(id(40), AGAIN_NS + 2).is_err(), "nothing comes, and it waits");
    }

    #[test]
    fn what_is_answered_by_the_replica_above_is_not_waited_for() {
        let answer = Answer { log_index: LogIndex(9), rejected: None, content: ContentDigest(0) };
        let answered = |session_seq| LeafMessage::Answered { ordinal: place(session_seq), answer, time: None };
        let refused = |reason| LeafMessage::Gateway(GatewayMessage::Refused { ordinal: place(1), reason });
        for (from, message, is_over) in [
            (2, answered(2), false),
            (1, answered(1), false),
            (1, answered(2), true),
            (1, refused(RejectReason::SessionSeqGap), false),
            (1, refused(RejectReason::Overloaded), true),
            (1, LeafMessage::NotBegun { session: SessionId(1), logon_seq: 1, reason: RejectReason::UnknownSession }, true),
        ] {
            let mut leaves = begun();
            leaves.on_received(id(40), id(from), &message);
            leaves.on_attached(id(40), id(3));
            assert_eq!(leaves.on_settled(id(40), 1).is_ok(), is_over, "{message:?} from {from}");
        }
    }
}
