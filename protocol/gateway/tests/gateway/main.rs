//! Requests and order-entry sessions, from a participant's first byte to its last.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod authorize;
mod session;
mod signing_vector;
