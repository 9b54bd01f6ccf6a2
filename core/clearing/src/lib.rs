//! A batch market: offers by pair and limit, and the check of a proposed clearing.
#![deny(clippy::float_arithmetic)]

mod offer;
mod proposal;

pub use offer::*;
pub use proposal::*;
