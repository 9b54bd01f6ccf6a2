//! Fair access: clocks that agree, and say how well.
//!
//! *Deliberately absent*: sockets, threads, clocks of the machine, randomness (time, seeds and samples are arguments; what to send
//! and to publish is returned).
//!
//! *Invariants*
//! - What is published, sent or replicated is integers; floats stay inside the estimators of `mesh`.
//!
//! *Start reading* at [`clock`].
#![deny(clippy::float_arithmetic)]

pub mod clock;
pub mod mesh;
