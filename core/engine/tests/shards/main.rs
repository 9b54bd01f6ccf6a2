//! Several shards and what moves between them: rules that can be read, and random trading with a transfer relay that loses,
//! doubles, reorders and delays, counted after every step.
#![allow(clippy::unwrap_used, unreachable_pub)] // Test code, helpers included; nothing of it is exported.
#![allow(dead_code, reason = "the helpers serve the other tests too")]

mod relay;
mod rules;
#[path = "../engine/venue.rs"]
mod venue;
mod world;
