//! Every experiment at its small size.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod blocks;
mod small;
