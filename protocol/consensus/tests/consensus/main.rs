//! One replica, its log, and whole clusters from seeds.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod absorbed;
mod cluster;
mod replica;
