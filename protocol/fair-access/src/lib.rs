//! Fair access: clocks are synchronised, orders are sequenced by when they reached the venue's edge, and market data is released to
//! everyone at the same instant.
//!
//! - [`clock`]: the time, its error bound, and whether that is good enough to stamp orders. Its source is the host's disciplined
//!   clock or the mesh's corrected one.
//! - [`mesh`]: the probe mesh that synchronises clocks: probes, estimates, the solution over all nodes, detection of bad clocks.
//! - [`resequence`]: the sequencer's hold. An order stamped t at the edge leaves at t + d_s, in the order of stamps.
//! - [`watermarks`]: up to which stamp each gateway has sent all. What all have shown leaves the hold before its delay is over.
//! - [`duplicates`]: copies of one order through several gateways; the earliest counts.
//! - [`publications`]: which log entries publish market data, and when it may be released.
//! - [`release`]: a gateway's hold. Market data made at t is released at t + d_h.
//! - [`delay`]: the delays d_s and d_h: fixed, or steered to a share of unfairness that the operator sets.
//! - [`matching`]: whose orders matched before an earlier one of their price came: the share of orders treated unfairly.
//! - [`margins`]: turns the gateways' reports about the arrival of market data into samples for d_h.
//! - [`outliers`]: gateways whose stamps differ from the others' and must not steer the delay.
//!
//! *Deliberately absent*: sockets, threads, the machine's clocks, randomness (time, seeds and samples are arguments; output is
//! returned), UTC, the content of orders and publications (a type parameter), and permissions (the gateway's sessions). Nothing
//! here is replicated: the log begins where an order leaves [`resequence::Resequencer`]. The engine ensures exactly-once;
//! [`duplicates`] only saves it copies.
//!
//! *Invariants*
//! - Everything that is published, sent or stamped is an integer; floats stay inside the estimators of [`mesh`].
//! - A virtual clock never goes back, whatever the mesh reports and whatever happens to the host's clock.
//! - A clock without a bound cannot be read, and one whose bound is too wide does not stamp.
//! - An order on time is never released before a held order with a smaller (stamp, gateway, session number). An order that arrives
//!   after a later one has left is released at once and marked as late.
//! - No publication is released before its release time or before an earlier publication, even if buffers are full and wherever in
//!   the log a replica starts.
//! - Every buffer is bounded per gateway or session, and only the one that exceeds its bound loses data. No input of a peer causes
//!   a panic. A bad node is named and costs the others no accuracy.
//! - Every input is counted once: accepted or refused, on time or late.
//!
//! *Start reading* at [`resequence`], then [`delay`]; for time at [`clock::Clock`], then [`mesh::Coordinator::close_window`].
//!
//! *Sources*: Ghalayini et al., CloudEx: A Fair-Access Financial Exchange in the Cloud, `HotOS` 2021, sections 2 and 3; Geng et al.
//! (Huygens), NSDI 2018.
#![deny(clippy::float_arithmetic)]

pub mod clock;
pub mod delay;
pub mod duplicates;
mod ids;
pub mod margins;
pub mod matching;
pub mod mesh;
pub mod outliers;
pub mod publications;
pub mod release;
pub mod resequence;
mod sliding;
pub mod watermarks;

pub use ids::{GATEWAYS_MAX, GatewayId};
pub use sliding::Sliding;
