//! Batch markets next to the naive judge, every fuzz target for a while, and what readers of events say of brackets.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod batch_blocks;
mod batch_judge;
mod batch_refusals;
mod batch_venue;
mod brackets;
mod smoke;
