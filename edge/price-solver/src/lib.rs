//! Finds the prices of a batch: one valuation per asset at which, of every asset, as much is offered as is wanted.
#![deny(unsafe_code)]

pub mod demand;
pub mod pool;
pub mod solve;

pub mod real_days;
pub mod synthetic;

mod block;
mod bounds;
mod node;
mod random;
mod structure;

pub use block::Demand;
