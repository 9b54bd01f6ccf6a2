//! Whose log it is.

use walras_consensus::{Members, ReplicaId};

/// Whose log it is. A log of another cluster or of another replica is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster's number.
    pub cluster_id: u64,
    /// The replica.
    pub replica: ReplicaId,
    /// The members with whom the cluster began. Written down when the log is made, and what is written down counts from then on: a log that still has it
    /// refuses to open with others.
    pub genesis: Members,
}
