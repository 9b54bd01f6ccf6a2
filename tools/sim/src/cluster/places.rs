//! Where things stand: places of replicas, and those of leaf gateways behind them, whose ids are no replica's.

use walras_consensus::ReplicaId;

/// Where leaves stand behind machines.
pub(super) const LEAVES_FROM: usize = 40;
pub(super) const LEAVES: usize = 2;

/// Replicas count from 1.
pub(super) fn replica_id(at: usize) -> ReplicaId {
    ReplicaId::new(at as u64 + 1).expect("it is not 0")
}

/// And back.
pub(super) fn place_of(replica: ReplicaId) -> usize {
    usize::try_from(replica.get() - 1).expect("replicas are few")
}

/// Ids of leaves.
pub(super) fn leaf_ids() -> impl Iterator<Item = ReplicaId> {
    (0..LEAVES).map(|leaf| replica_id(LEAVES_FROM + leaf))
}
