//! Relay trees over bad links, with relays that die and lie, and with numbers at the edge of what fits.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod edges;
mod keeping;
mod lateness;
mod tree;
