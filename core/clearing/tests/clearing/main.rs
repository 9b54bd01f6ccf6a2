//! The clearing beside a naive judge in rationals, its invariants one by one, and its corners.

#![allow(clippy::unwrap_used, clippy::type_complexity, reason = "tests")]

mod corners;
mod generate;
mod greedy;
mod many_pairs;
mod naive;
mod naive_pools;
mod offers;
mod properties;
