//! What more than one test needs: random choices, random commands, and the entry points of the fuzz targets.
//!
//! - [`Choices`]: numbers from a seed (simulation, smoke tests) or from bytes (a fuzzer that learns which bytes lead where).
//! - [`commands`]: commands made of choices, biased to where a venue goes wrong: ids collide, prices cross, balances run out.
//! - [`plain`]: a market in which every number can be worked out by hand, and a batch market.
//! - [`Listener`]: who hears a venue's events, to be held against its engine.
//! - [`published`]: what readers of the binary feed have to have, made of the engine's state.
//! - [`batch`]: a naive judge of a batch market's blocks, and random blocks for it.
//! - [`fuzz`]: one function per fuzz target, from any bytes to nothing or a panic. `tools/fuzz` gives them to a fuzzer; this crate's own
//!   tests give them the seeds in `tools/fuzz/seeds` and thousands of inputs from fixed random numbers, on any compiler ([`smoke`]).
//!
//! *Deliberately absent*: targets of what stands at the edge (`tools/testkit-edge`); anything that only one crate's tests use; clocks, threads and randomness of the machine.
//!
//! *Invariants*
//! - The same seed, or the same bytes, give the same choices on every machine.
//! - Choices from bytes end: see [`Choices::is_spent`].
//!
//! *Start reading* at [`Choices`], then [`fuzz::TARGETS`].

pub mod batch;
pub mod batch_commands;
mod choices;
pub mod commands;
pub mod fuzz;
mod listener;
pub mod plain;
pub mod published;
pub mod shard_commands;
pub mod smoke;

pub use choices::{Choices, Random};
pub use listener::{Listener, Readers};

// The naive book and its driver belong to the tests of `core/order-book`. They are compiled here a second time, at the root, as there.
#[allow(dead_code, reason = "the fuzz target uses a part of it")]
#[path = "../../../core/order-book/tests/driver/mod.rs"]
mod driver;
#[allow(dead_code, reason = "the fuzz target makes operations of its own")]
#[path = "../../../core/order-book/tests/generate/mod.rs"]
mod generate;
#[allow(dead_code, clippy::unwrap_used, reason = "the model of a test")]
#[path = "../../../core/order-book/tests/naive/mod.rs"]
mod naive;
#[path = "../../../core/order-book/tests/tape/mod.rs"]
mod tape;
