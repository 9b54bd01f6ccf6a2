//! Batch markets around the engine's thread: finding prices, making the markets that the configuration names.

mod attempts;
mod block_thread;
mod declared;
mod solver;

pub(super) use block_thread::BlockThread;
pub(super) use declared::Declared;
pub(super) use solver::Solver;
