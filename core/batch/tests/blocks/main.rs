//! Blocks as the crate's invariants say they are.
#![allow(clippy::unwrap_used)]

mod corners;
mod lies;
mod properties;
mod world;
