//! Fair access: a gateway keeps what its watermarks promise. An order that it sends to a leader for the first time is stamped later
//! than every watermark that it has sent. One that is earlier by more than [`SET_BACK_NS`] counts as stamped by a clock that was
//! set back.
//!
//! A leaf gateway promises the same to the replica above, and that one promises no more than the leaves that stand below it: its
//! watermark is not past any of theirs. An order of a leaf that came to stand below a replica after its last watermark may be earlier.
//!
//! Known from outside: the messages that leave a replica or a leaf, and those of leaves that arrive at a replica, in their order.

use std::collections::{BTreeMap, BTreeSet};

use walras_consensus::ReplicaId;
use walras_fair_access::resequence::Stamp;
use walras_replica::LeafMessage;
use walras_sequencer::GatewayMessage;
use walras_types::Ordinal;

use crate::common::checks::{Checked, Violation};

const CHECK: &str = "watermarks";

/// An order that is before a watermark by more than this has a stamp from a clock that was set back. A gateway makes up for more
/// than this (`walras_sequencer::WAITED_NS_MAX`), so an order that is before a watermark by less is a broken promise.
const SET_BACK_NS: u64 = 40_000_000;

/// What all gateways have promised, leaves too.
#[derive(Debug, Default)]
pub(super) struct Promises {
    gateways: BTreeMap<ReplicaId, Promised>,
    /// Watermarks that were compared with those of leaves.
    judged: u64,
}

#[derive(Debug, Default)]
struct Promised {
    until_ns: u64,
    /// Orders that were sent, with their stamps: these may be sent again.
    sent: BTreeSet<(Ordinal, u64)>,
    /// Leaves that stand below, or are about to.
    below: BTreeMap<ReplicaId, Below>,
    /// Orders that came from leaves that were not below when the last watermark was sent.
    uncovered: BTreeSet<(Ordinal, u64)>,
}

/// A leaf below a replica.
#[derive(Clone, Copy, Debug)]
struct Below {
    /// Of its question.
    epoch: u64,
    /// All that it stamped up to this time has come, as it says.
    until_ns: u64,
    /// Whether it stood there when something happened: not yet in the round that lets it begin.
    stands: bool,
    /// No watermark was sent since it stands there.
    is_new: bool,
}

impl Promises {
    /// Watermarks that were compared with those of leaves.
    pub(super) fn judged_count(&self) -> u64 {
        self.judged
    }

    /// A process begins: it has promised nothing.
    pub(super) fn on_start(&mut self, gateway: ReplicaId) {
        self.gateways.remove(&gateway);
    }

    /// Something happens at a replica: the leaves that it let begin before stand below it.
    pub(super) fn on_input(&mut self, replica: ReplicaId) {
        if let Some(promised) = self.gateways.get_mut(&replica) {
            promised.below.values_mut().for_each(|below| below.stands = true);
        }
    }

    /// A replica sends a message to a leaf.
    pub(super) fn on_sent_to_leaf(&mut self, replica: ReplicaId, leaf: ReplicaId, message: &LeafMessage) {
        let below = &mut self.gateways.entry(replica).or_default().below;
        match *message {
            LeafMessage::Attached { epoch } => {
                below.insert(leaf, Below { epoch, until_ns: 0, stands: false, is_new: true });
            }
            LeafMessage::Detached { .. } => {
                below.remove(&leaf);
            }
            _ => {}
        }
    }

    /// The link of a replica with a leaf is lost.
    pub(super) fn on_leaf_lost(&mut self, replica: ReplicaId, leaf: ReplicaId) {
        if let Some(promised) = self.gateways.get_mut(&replica) {
            promised.below.remove(&leaf);
        }
    }

    /// A message of a leaf arrives at a replica.
    pub(super) fn on_leaf_message(&mut self, replica: ReplicaId, leaf: ReplicaId, message: &LeafMessage) {
        let Some(promised) = self.gateways.get_mut(&replica) else { return };
        if matches!(message, LeafMessage::Attach { .. }) {
            promised.below.remove(&leaf);
        }
        let (Some(below), LeafMessage::Gateway(message)) = (promised.below.get_mut(&leaf), message) else { return };
        match *message {
            GatewayMessage::Watermark { term, until } if term.0 == below.epoch => {
                below.until_ns = if let Stamp::Gateway(until_ns) = until { until_ns } else { u64::MAX };
            }
            GatewayMessage::Order { stamp: Stamp::Gateway(stamp_ns), ordinal, .. }
                if below.is_new && stamp_ns <= promised.until_ns =>
            {
                promised.uncovered.insert((ordinal, stamp_ns));
            }
            _ => {}
        }
    }

    /// A replica sends a message to a leader, or a leaf to the replica above.
    pub(super) fn on_sent(&mut self, gateway: ReplicaId, message: &GatewayMessage) -> Checked {
        let promised = self.gateways.entry(gateway).or_default();
        match *message {
            GatewayMessage::Watermark { until: Stamp::Gateway(until_ns), .. } => {
                promised.until_ns = until_ns;
                for (leaf, below) in promised.below.iter_mut().filter(|(_, below)| below.stands) {
                    below.is_new = false;
                    self.judged += 1;
                    if below.until_ns < until_ns {
                        let ahead_ns = until_ns - below.until_ns;
                        let detail = format!("replica {gateway} promises {ahead_ns} ns more than leaf {leaf} below it has shown");
                        return Err(Violation::new(CHECK, detail));
                    }
                }
            }
            GatewayMessage::Order { stamp: Stamp::Gateway(stamp_ns), ordinal, .. } => {
                let is_first = promised.sent.insert((ordinal, stamp_ns));
                let is_covered = !promised.uncovered.remove(&(ordinal, stamp_ns));
                let early_ns = promised.until_ns.saturating_sub(stamp_ns);
                if is_first && is_covered && stamp_ns <= promised.until_ns && early_ns <= SET_BACK_NS {
                    let detail = format!("gateway {gateway} sends {ordinal:?}, stamped {early_ns} ns before its last watermark");
                    return Err(Violation::new(CHECK, detail));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use walras_consensus::Term;
    use walras_types::{SessionId, SessionSeq};

    use super::*;

    const BEGIN_NS: u64 = 1_000_000_000;

    fn order(session_seq: u64, stamp_ns: u64) -> GatewayMessage {
        let ordinal = Ordinal { session: SessionId(1), session_seq: SessionSeq(session_seq) };
        GatewayMessage::Order { stamp: Stamp::Gateway(stamp_ns), ordinal, content: Bytes::from_static(&[1]) }
    }

    #[test]
    fn an_order_from_before_its_gateways_watermark_is_found() {
        let gateway = ReplicaId::new(2).unwrap();
        let mut promises = Promises::default();
        let mut sends = |message: &GatewayMessage| promises.on_sent(gateway, message).is_ok();
        let watermark = |until_ns| GatewayMessage::Watermark { term: Term(1), until: Stamp::Gateway(until_ns) };
        assert!(sends(&order(1, BEGIN_NS)) && sends(&watermark(BEGIN_NS)));
        assert!(sends(&order(1, BEGIN_NS)), "it is sent again");
        assert!(sends(&order(2, BEGIN_NS + 1)));
        assert!(!sends(&order(3, BEGIN_NS)));
        assert!(sends(&order(4, BEGIN_NS / 2)), "its clock was set back");
        promises.on_start(gateway);
        assert!(promises.on_sent(gateway, &order(5, BEGIN_NS)).is_ok());
    }

    #[test]
    fn a_replica_that_promises_more_than_a_leaf_below_it_is_found() {
        let [replica, leaf] = [2, 40].map(|n| ReplicaId::new(n).unwrap());
        let mut promises = Promises::default();
        let watermark = |epoch, until_ns| GatewayMessage::Watermark { term: Term(epoch), until: Stamp::Gateway(until_ns) };
        promises.on_sent(replica, &watermark(1, BEGIN_NS)).unwrap();
        promises.on_sent_to_leaf(replica, leaf, &LeafMessage::Attached { epoch: 5 });
        promises.on_sent(replica, &watermark(1, BEGIN_NS)).expect("the leaf has not begun");
        promises.on_input(replica);
        promises.on_leaf_message(replica, leaf, &LeafMessage::Gateway(order(1, BEGIN_NS - 9)));
        promises.on_sent(replica, &order(1, BEGIN_NS - 9)).expect("it was stamped before the leaf stood here");
        assert!(promises.on_sent(replica, &order(2, BEGIN_NS - 8)).is_err(), "it is no order of the leaf");
        for (epoch, until_ns, is_kept) in [(4, 20, false), (5, 19, false), (5, 20, true)] {
            promises.on_leaf_message(replica, leaf, &LeafMessage::Gateway(watermark(epoch, BEGIN_NS + until_ns)));
            let kept = promises.on_sent(replica, &watermark(1, BEGIN_NS + 20));
            assert_eq!(kept.is_ok(), is_kept, "the leaf has shown {until_ns} of epoch {epoch}: {kept:?}");
        }
        promises.on_leaf_message(replica, leaf, &LeafMessage::Gateway(order(3, BEGIN_NS + 20)));
        assert!(promises.on_sent(replica, &order(3, BEGIN_NS + 20)).is_err(), "the leaf stood here when that was promised");
        promises.on_leaf_lost(replica, leaf);
        promises.on_sent(replica, &watermark(1, BEGIN_NS + 99)).expect("no leaf stands below");
    }
}
