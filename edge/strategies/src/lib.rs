//! Participants' programs inside a leaf gateway's process, as WebAssembly (trust model 1 of the paper): a program is called with each
//! market-data message at its release time, and its orders go through the gateway's own order entry. `docs/strategies.md` is its
//! authors' manual.
//!
//! - [`interface`]: what a module and its host call of each other, and what becomes of a module's arguments.
//! - [`inbox`]: released packets for each strategy, in bounded queues.
//! - `host`: a module in an engine, metered in fuel and memory.
//! - `runner`: one thread for each strategy, with its session of order entry.
//!
//! The last two need the feature `strategies`. Without it [`Strategies::start`] says how to build a program that has them.
//!
//! *Deliberately absent*: clocks, randomness, files and sockets for modules; a way to the order book besides order entry.
//!
//! *Invariants*
//! - A module is called with packets that were released, and with nothing else of the market.
//! - A module that traps, loops, or asks for more memory than it may have is stopped, with a reason; nobody else is.
//! - A strategy's orders pass the checks of any participant's: key, throttle, numbers, risk.
//! - No queue of a strategy grows beyond its bound.
//!
//! *Start reading* at [`interface`], then [`inbox::Inbox`].
//!
//! *Source*: Haseeb et al. (Jasper), arXiv 2402.09527, section 6, model 1.

#[cfg(feature = "strategies")]
pub mod host;
pub mod inbox;
pub mod interface;
#[cfg(feature = "strategies")]
mod runner;
#[cfg(not(feature = "strategies"))]
mod without;

use std::net::SocketAddr;

#[cfg(feature = "strategies")]
pub use runner::Strategies;
#[cfg(not(feature = "strategies"))]
pub use without::Strategies;

/// Whether this program can run strategies.
pub const ARE_BUILT_IN: bool = cfg!(feature = "strategies");

/// What is said where it cannot.
pub const NOT_BUILT_IN: &str = "this program was built without strategies: build one that has them with \
    `cargo build --release -p walras-node --features strategies`";

/// How much a strategy may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrategyLimits {
    /// Fuel of one call: about one for each instruction of the module.
    pub fuel_per_call: u64,
    /// Bytes of its memory, all together.
    pub memory_bytes: usize,
}

impl Default for StrategyLimits {
    fn default() -> Self {
        Self { fuel_per_call: 1_000_000, memory_bytes: 16 << 20 }
    }
}

/// Where a strategy's orders go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryAddress {
    /// The gateway's own order entry.
    pub address: SocketAddr,
    /// Whether it wants TLS.
    pub has_tls: bool,
}

/// Why strategies were not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Not in this program.
    #[error("[[strategies]]: {NOT_BUILT_IN}")]
    NotBuiltIn,
    /// A strategy cannot be started.
    #[error("[[strategies]] {name:?}: {detail}")]
    Strategy {
        /// Its name.
        name: String,
        /// Why, and what would do.
        detail: String,
    },
}
