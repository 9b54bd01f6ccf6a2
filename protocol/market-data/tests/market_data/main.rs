//! What is rebuilt from events equals what those who emitted them know.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod against_engine;
mod model;
mod offers;
mod rebuild;
