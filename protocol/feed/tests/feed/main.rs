//! The market data feed: by hand, over bad links next to the engine, and its schema as it is written for others.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod against_engine;
mod by_hand;
mod schema;
mod strategy_sdk;
mod world;
mod written;
