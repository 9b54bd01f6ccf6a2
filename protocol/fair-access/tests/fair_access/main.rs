//! Holds, delays, duplicates, publications and clocks: next to naive models, in simulated networks, and with input that lies.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_input;
mod delay;
mod duplicates;
mod gateway_delays;
mod matching;
mod mesh_accuracy;
mod mesh_bad_clocks;
mod mesh_bounds;
mod mesh_probes;
mod mesh_reports;
mod publications;
mod release;
mod resequence;
