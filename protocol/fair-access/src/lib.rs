//! Fair access: clocks that agree, orders in the order in which they reached the venue's edge, market data to everybody at the same
//! instant.
//!
//! - [`clock`]: what time it is, how far off that may be, and whether it is good enough to stamp orders with: the host's
//!   disciplined clock or the mesh's corrected one, behind one value.
//! - [`mesh`]: the probe mesh that corrects clocks against each other: probes, estimates, the solution over all nodes, bad clocks.
//! - [`resequence`]: the sequencer's hold. An order stamped t at the edge leaves at t + d_s, in the order of stamps.
//! - [`duplicates`]: copies of one order through several gateways; the earliest counts.
//! - [`publications`]: which entries of the log publish market data, from when on it may be known, and by whose clock.
//! - [`release`]: a gateway's hold. Market data made at t is given out at t + d_h.
//! - [`delay`]: what d_s and d_h are: fixed, or steered to a share of unfairness that the operator names.
//! - [`margins`]: what gateways tell of how early market data came, made into samples for d_h.
//! - [`outliers`]: gateways whose stamps do not fit the others', and must not steer a delay.
//!
//! *Deliberately absent*: sockets, threads, clocks of the machine, randomness (time, seeds and samples are arguments; what to send
//! and to publish is returned), UTC, what an order or a publication is (a type parameter), and who may send (the gateway's sessions
//! know that). Nothing here is replicated: the log begins where an order leaves [`resequence::Resequencer`]. Exactly-once is the
//! engine's; [`duplicates`] only spares it copies.
//!
//! *Invariants*
//! - What is published, sent or stamped is integers; floats stay inside the estimators of [`mesh`].
//! - A virtual clock's time never goes back, whatever the mesh says and whatever is done to the host's clock.
//! - A clock without a bound cannot be read, and one whose bound is too wide does not stamp.
//! - An order on time is never released before one with a smaller (stamp, gateway, place in its session) that is held. An order
//!   that comes after a later one has left is released at once, and marked as late.
//! - No publication is given out before its release time, nor before an earlier one, whatever is full and wherever in the log a
//!   replica begins.
//! - Every buffer is bounded, by gateway or session, and each pays for its own excess alone; whatever a peer sends,
//!   nothing panics, and a bad node is named and costs the others no accuracy.
//! - Whatever comes in is counted once: accepted or refused, on time or late.
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
pub mod mesh;
pub mod outliers;
pub mod publications;
pub mod release;
pub mod resequence;
mod sliding;

pub use ids::{GATEWAYS_MAX, GatewayId};
pub use sliding::Sliding;
