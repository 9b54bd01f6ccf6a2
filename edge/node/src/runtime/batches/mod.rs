//! Batch markets around the engine's thread: finding prices, making the markets that the configuration names.

mod attempts;
mod declared;
mod solver;

pub(super) use declared::Declared;
pub(super) use solver::Solver;
