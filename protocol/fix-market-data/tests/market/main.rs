//! Readers of market data by FIX at an engine: what they are sent is the engine's own state.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the answer")]

mod books;
mod orders;
mod requests;
mod world;
