//! What there is to say of a clock, for people and for metrics.

use walras_fair_access::clock::{ClockReading, ClockStatus};
use walras_fair_access::mesh::NodeId;

/// A clock as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockView {
    /// Where its time comes from: `system`, `chrony`, `phc` or `mesh`.
    pub source: &'static str,
    /// Whether it is good enough to stamp with.
    pub status: ClockStatus,
    /// Its time and bound; none while the status is unknown.
    pub reading: Option<ClockReading>,
    /// The widest bound that stamps.
    pub bound_max_ns: u64,
    /// The system's clock less the venue's time.
    pub system_ahead_ns: Option<i64>,
    /// What is wrong, and what to do about it.
    pub trouble: Option<String>,
    /// Of a mesh.
    pub mesh: Option<MeshView>,
}

/// What a node of a mesh knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshView {
    /// Which node this is.
    pub node: NodeId,
    /// Which node joins the reports.
    pub coordinator: NodeId,
    /// Whose clock is the venue's time.
    pub reference: Option<NodeId>,
    /// The last window whose result this node has.
    pub window: Option<u64>,
    /// What an edge leaves open in its loops, as a standard deviation: path asymmetry, mostly.
    pub loop_error_ns: u64,
    /// The same of the change from window to window: noise.
    pub noise_ns: u64,
    /// The other nodes.
    pub peers: Vec<PeerView>,
    /// Nodes whose clocks are bad. Only the coordinator knows them all; another node knows of itself.
    pub excluded: Vec<Excluded>,
    /// Datagrams that were not taken.
    pub refused: Refusals,
}

/// Another node of the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerView {
    /// Which.
    pub node: NodeId,
    /// How long ago anything came from it.
    pub heard_ago_ns: Option<u64>,
    /// The residual of the edge to it in the last window in which that was measured.
    pub residual_ns: Option<i64>,
}

/// A node whose clock is bad.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excluded {
    /// Which.
    pub node: NodeId,
    /// Why, and what to do.
    pub why: String,
}

/// Datagrams that were not taken, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Too short, too long, or not of this version.
    pub malformed: u64,
    /// The tag is not one of this mesh's key.
    pub unauthenticated: u64,
    /// Authentic, but of another incarnation of this node or of the sender, not for this node, or from somebody who may not say
    /// such a thing.
    pub misplaced: u64,
    /// Reports and results of windows that are over.
    pub late: u64,
}

/// What a source reports in addition to its readings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Details {
    pub(crate) trouble: Option<String>,
    pub(crate) mesh: Option<MeshView>,
}
