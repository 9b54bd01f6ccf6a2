//! FIX clients at a venue of several replicas with one log.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the answer")]
#![allow(clippy::needless_range_loop, clippy::single_match, reason = "a client has the same place in several lists")]

mod client;
mod names;
mod orders;
mod recovery;
mod world;
