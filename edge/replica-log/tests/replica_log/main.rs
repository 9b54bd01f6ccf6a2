//! A replica's log on simulated disks.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cluster;
mod common;
mod durable_writer;
mod every_byte;
mod model;
mod refused;
mod retained;
