//! Relay trees on real sockets of the loopback interface.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod burst;
mod late;
mod loopback;
mod mtu;
mod parallel;
