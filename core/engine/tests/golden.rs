//! Recorded runs alone: `make test` compiles them once more, as the venue's release is compiled, which the other tests would make slow.
#![allow(clippy::unwrap_used, unreachable_pub)] // Test code, helpers included; nothing of it is exported.
#![allow(dead_code, reason = "the helpers serve the other tests too")]

#[path = "engine/golden.rs"]
mod golden;
#[path = "engine/venue.rs"]
mod venue;
