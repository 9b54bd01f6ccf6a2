//! The owner of a log.

use walras_consensus::{Members, ReplicaId};

/// The owner of a log. A log of another cluster or replica is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster's id.
    pub cluster_id: u64,
    /// The replica.
    pub replica: ReplicaId,
    /// The cluster's first members. They are recorded when the log is made. A log that still has this record does not open with
    /// others.
    pub genesis: Members,
}
