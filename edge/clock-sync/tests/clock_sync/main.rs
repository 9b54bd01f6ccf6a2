//! Clocks from chronyd, and from a mesh of nodes, over real sockets.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chrony;
mod mesh;
