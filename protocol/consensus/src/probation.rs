//! Probation: a process that has just started exchanges no consensus messages at first.
//!
//! An id, its certificate and its data folder can be copied, and two processes be started from them. Neither can detect this: each
//! knows only its own promises. Their peers can detect it, because both processes link under one id ([`crate::Incarnations`]), but
//! not at once. If the second process votes meanwhile or acknowledges a slot, there are two sets of promises under one id: the
//! leader counts on slots that the first process never had, and a term may get two leaders.
//!
//! So for a while after its first link with a peer, a process exchanges no messages with that peer, as if messages were lost, which
//! the consensus tolerates. Until then the peer has met the other process too, if there is one, and has stopped one of them. This
//! happens once for each peer in the life of a process: a link that breaks later costs nothing more, and members that have long
//! been linked elect a leader as fast as ever.

use crate::ids::ReplicaId;
use crate::replica::Replica;
use raft::SnapshotStatus;

impl Replica {
    /// A link with a peer is up. Call it for each link; the first one with each peer counts ([`crate::Settings::probation_ns`]). A
    /// host without links, in which two processes cannot have one id, need not call it.
    pub fn on_linked(&mut self, now_ns: u64, peer: ReplicaId) {
        self.linked_ns.entry(peer).or_insert(now_ns);
    }

    /// Whether this process is on probation with a peer.
    pub(crate) fn is_on_probation_with(&self, peer: ReplicaId, now_ns: u64) -> bool {
        let probation_ns = self.settings.probation_ns;
        self.linked_ns.get(&peer).is_some_and(|since_ns| now_ns < since_ns.saturating_add(probation_ns))
    }

    /// Drops a message to a peer; a snapshot is tried again.
    pub(crate) fn hold_back(&mut self, to: ReplicaId, is_snapshot: bool) {
        if is_snapshot {
            self.node.report_snapshot(to.get(), SnapshotStatus::Failure);
        }
    }
}
