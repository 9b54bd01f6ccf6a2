//! Strategies in their host, and what becomes of their arguments.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg(feature = "strategies")]
mod host;
mod interface;
