//! A process that has just begun: why it neither promises nor asks for anything at first.
//!
//! An id, its certificate and its data folder can be copied, and two processes be started from them. Each remembers, as far as it knows, all that was promised under the id, so
//! neither can tell. Their peers can, since both want to be linked under one id ([`crate::Lives`]), but not at once. If the second one votes meanwhile, or says that it holds a
//! slot, two have promised under one id: the leader counts on slots that the first one never had, and a term may get two leaders.
//!
//! So for a while after its first link with a peer a process hears nothing of what that peer says and says nothing to it, as if messages were lost, which the consensus bears. By
//! then the peer has met the other process too, if there is one, and told one of them to stop. Once for each peer in the life of a process: a link that breaks later costs nothing
//! more, and those who have long been linked elect a leader as fast as ever.

use crate::ids::ReplicaId;
use crate::replica::Replica;
use raft::SnapshotStatus;

impl Replica {
    /// A link with a peer is up, one to which the host has admitted this process. Say it for each link; the first one with each peer counts
    /// ([`crate::Settings::newcomer_quiet_ns`]). A host without links, where there can not be two processes under one id, need not.
    pub fn on_linked(&mut self, now_ns: u64, peer: ReplicaId) {
        self.linked_ns.entry(peer).or_insert(now_ns);
    }

    /// Whether this process has not been linked with a peer for long enough.
    pub(crate) fn is_new_to(&self, peer: ReplicaId, now_ns: u64) -> bool {
        let quiet_ns = self.settings.newcomer_quiet_ns;
        self.linked_ns.get(&peer).is_some_and(|since_ns| now_ns < since_ns.saturating_add(quiet_ns))
    }

    /// A message to a peer is not sent; a snapshot is tried again.
    pub(crate) fn hold_back(&mut self, to: ReplicaId, is_snapshot: bool) {
        if is_snapshot {
            self.node.report_snapshot(to.get(), SnapshotStatus::Failure);
        }
    }
}
