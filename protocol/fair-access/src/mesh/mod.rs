//! The probe mesh: how far each node's clock is from the venue's time, found by packets among the nodes.
//!
//! Every window (a second or two) each node exchanges pairs of probes with 2 K others ([`schedule`]: it probes K and is probed by K,
//! and one of each changes every window). A [`Prober`] collects the stamps; at the window's end it keeps the pairs whose spacing the network
//! did not change ([`samples`]) and fits the line of largest margin between what both directions allow ([`mod@line`]): offset and rate of
//! one clock against another, as an [`EdgeReport`]. The [`Coordinator`] takes all edges of a window, solves for the potentials of the
//! nodes by least squares, so that offsets around every loop add up to nothing, finds out whose clock is bad, and answers each node
//! with a [`Correction`](crate::clock::Correction) for its virtual clock.
//!
//! Beyond the paper: a line is moved from the three stamps that it hangs on to the middle of all that met no queue (`refine`). And the
//! network moves the pairs that are probed, and the coordinator remembers what it found of pairs that are no
//! longer probed, relative to clocks that it has followed since. Path asymmetry is constant for a pair and independent among pairs, so
//! the error falls with all pairs ever probed and not only with the K of one window.
//!
//! *What no mesh can see*: an asymmetry that all paths of a node share (one slow direction of its own link); a clock that is steadily
//! off together with all of its probes' stamps is just a clock, and corrected; a node that stamps orders with another clock than it
//! stamps probes with (the sequencer clamps such stamps).
//!
//! *Deliberately absent*: sockets and hardware stamps (`edge/` brings `tx` and `rx` times), authentication of messages (links are
//! authenticated), changes of membership within a run.
//!
//! *Start reading* at [`Coordinator::close_window`], then [`line::fit`].
//!
//! *Sources*: Geng et al., Exploiting a Natural Network Effect for Scalable, Fine-grained Clock Synchronization (Huygens), NSDI 2018,
//! sections 3 and 4; Andrew, Another efficient algorithm for convex hulls in two dimensions, 1979; Spielman and Srivastava, Graph
//! sparsification by effective resistances, STOC 2008 (variances from a few random right sides); Huber, Robust Estimation of a Location
//! Parameter, 1964.

mod coordinator;
pub mod laplacian;
pub mod line;
mod probe;
mod prober;
mod refine;
pub mod samples;
pub mod schedule;

pub use coordinator::{Coordinator, CoordinatorConfig, EdgeReport, Fault, Quality, ReportError, Residual, Verdict, WindowOutcome};
pub use probe::{Half, PROBE_BYTES, Probe, ProbeError, Stamps};
pub use prober::{Prober, ProberConfig, ProberEffect, SendProbe};
pub use samples::{CodedFilter, EdgeEstimate, EdgeFault, Pair, WindowSamples};
pub use schedule::Schedule;

/// A node of the mesh: its position in the list of nodes that all of them were configured with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

impl NodeId {
    fn index(self) -> usize {
        usize::try_from(self.0).expect("32 bits fit an index on every machine that runs a venue")
    }

    fn of(index: usize) -> Self {
        Self(u32::try_from(index).expect("a mesh has at most NODES_MAX nodes"))
    }
}

/// Nodes of one mesh at most.
pub const NODES_MAX: usize = 4_096;
