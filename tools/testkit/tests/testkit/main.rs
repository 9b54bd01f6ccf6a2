//! Batch markets next to the naive judge, and every fuzz target for a while.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod batch_blocks;
mod batch_judge;
mod batch_refusals;
mod batch_venue;
mod smoke;
