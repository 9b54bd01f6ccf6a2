//! What a strategy in the venue's process needs in Rust: the messages of the market-data feed as values, and the host's commands.
//! `docs/strategies.md` describes the interface.
//!
//! It has no dependencies, no standard library and no allocator. What a strategy does not use is not in its module.
#![no_std]
#![deny(missing_docs)]

pub mod feed;
#[cfg(target_arch = "wasm32")]
pub mod orders;
