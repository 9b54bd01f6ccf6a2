//! The status of a clock, for operators and metrics.

use walras_fair_access::clock::{ClockReading, ClockStatus};
use walras_fair_access::mesh::NodeId;

/// The status of a clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockView {
    /// Where its time comes from: `system`, `chrony`, `phc` or `mesh`.
    pub source: &'static str,
    /// Whether it is good enough for stamps.
    pub status: ClockStatus,
    /// Its time and bound; none while the status is unknown.
    pub reading: Option<ClockReading>,
    /// The widest bound that stamps.
    pub bound_max_ns: u64,
    /// The system's clock less the venue's time.
    pub system_ahead_ns: Option<i64>,
    /// What is wrong and what to do, if anything.
    pub trouble: Option<String>,
    /// Details of a mesh.
    pub mesh: Option<MeshView>,
}

/// A node's view of the mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshView {
    /// Which node this is.
    pub node: NodeId,
    /// Which node joins the reports.
    pub coordinator: NodeId,
    /// The node whose clock is the venue time.
    pub reference: Option<NodeId>,
    /// The last window whose result this node has.
    pub window: Option<u64>,
    /// Standard deviation of an edge's loop error: mostly path asymmetry.
    pub loop_error_ns: u64,
    /// Standard deviation of its change from window to window: noise.
    pub noise_ns: u64,
    /// The other nodes.
    pub peers: Vec<PeerView>,
    /// Nodes with bad clocks. Only the coordinator knows all of them; another node knows only about itself.
    pub excluded: Vec<Excluded>,
    /// Refused datagrams.
    pub refused: Refusals,
}

/// Another node of the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerView {
    /// The node.
    pub node: NodeId,
    /// Time since its last datagram.
    pub heard_ago_ns: Option<u64>,
    /// The residual of the edge to it in the last window in which that was measured.
    pub residual_ns: Option<i64>,
}

/// A node whose clock is bad.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excluded {
    /// The node.
    pub node: NodeId,
    /// Why, and what to do.
    pub why: String,
}

/// Refused datagrams, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Too short, too long, or not of this version.
    pub malformed: u64,
    /// The tag is not one of this mesh's key.
    pub unauthenticated: u64,
    /// Authentic, but of another incarnation of this node or of the sender, not for this node, or from a node that may not send it.
    pub misplaced: u64,
    /// Reports and results of closed windows, and requests that were answered before or are older than the latest.
    pub late: u64,
}

/// What a source reports in addition to its readings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Details {
    pub(crate) trouble: Option<String>,
    pub(crate) mesh: Option<MeshView>,
}
