//! Markets read from files, and markets of a few currencies.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod currencies;
mod offers;
