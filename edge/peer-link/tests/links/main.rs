//! Links of several replicas over loopback, in one thread.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

mod identity;
mod messages;
mod net;
mod snapshots;
