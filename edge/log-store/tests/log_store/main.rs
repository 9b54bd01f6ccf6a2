//! The log and its snapshots, on simulated and on real disks.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod basics;
mod common;
mod faults;
mod history;
mod model;
mod reuse;
mod snapshots;
mod torn_and_damaged;
