//! FIX clients at a venue of several replicas with one log.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the answer")]

mod client;
mod orders;
mod recovery;
mod world;
