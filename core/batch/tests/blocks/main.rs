//! Blocks as the crate's invariants say they are.
#![allow(clippy::unwrap_used)]

mod account_fee;
mod corners;
mod currencies;
mod each_lie;
mod every_bit;
mod gone;
mod key_changes;
mod lies;
mod light;
mod light_naive;
mod light_parts;
mod pools;
mod properties;
mod quality;
mod steps;
mod terms;
mod world;
