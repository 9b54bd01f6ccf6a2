//! The intake of fair access, and replicated sequencers in a simulated cluster.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod intake;
mod replicated;
