//! Fail-over in simulation, and the dissertation's book next to Walras's.

mod failover;
mod heap_book;
