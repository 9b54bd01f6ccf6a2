//! Fair access: clocks that agree, and say how well.
//!
//! - [`clock`]: what time it is, how far off that may be, and whether it is good enough to stamp orders with: the host's disciplined
//!   clock or the mesh's corrected one, behind one value.
//! - [`mesh`]: the probe mesh that corrects clocks against each other: probes, estimates, the solution over all nodes, bad clocks.
//!
//! *Deliberately absent*: sockets, threads, clocks of the machine, randomness (time, seeds and samples are arguments; what to send
//! and to publish is returned), UTC.
//!
//! *Invariants*
//! - What is published, sent or replicated is integers; floats stay inside the estimators of `mesh`.
//! - A virtual clock's time never goes back, whatever the mesh says and whatever is done to the host's clock.
//! - A clock without a bound cannot be read, and one whose bound is too wide does not stamp.
//! - Whatever a peer sends, memory is bounded and nothing panics; a bad node is named, and costs the others no accuracy.
//!
//! *Start reading* at [`clock::Clock`], then [`mesh::Coordinator::close_window`].
//!
//! *Sources*: Ghalayini et al., CloudEx: A Fair-Access Financial Exchange in the Cloud, HotOS 2021; Geng et al. (Huygens), NSDI 2018.
#![deny(clippy::float_arithmetic)]

pub mod clock;
pub mod mesh;
