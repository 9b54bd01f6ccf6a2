//! Simulated venues from seeds, and the program that runs them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod batch_cut;
mod cluster;
mod command;
mod shards;
