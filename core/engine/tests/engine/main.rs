//! The engine's tests: scenarios that a trader can read, and random commands compared with a naive engine after every one.
#![allow(clippy::unwrap_used, unreachable_pub)] // Test code, helpers included; nothing of it is exported.

mod against_model;
mod batch_market;
mod cancelling;
mod currencies;
mod document;
mod generate;
mod key_changes;
mod model;
mod scenarios;
mod script;
mod sessions;
mod snapshots;
mod steps;
mod switches;
mod venue;
mod versions;
mod wild;
