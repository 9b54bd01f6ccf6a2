//! A simulated cloud: orders in and market data out over links with measured delays, with all delay policies on the same traffic.
//! Used by the experiments on `CloudEx` and by the bench.
//!
//! *Deliberately absent*: sockets and real processes; participants' links (a stamp is made at the gateway); books (the engine takes
//! a constant time per order); the published figures (in the experiments).
//!
//! *Invariants*
//! - The hold and the delays are the product's, unchanged: [`walras_fair_access`].
//! - All delay policies get the same orders and the same network.
//! - The same seed and the same data give the same figures everywhere.
//!
//! *Start reading* at [`figure`], then [`inbound`], [`outbound`] and [`network`].

pub mod draw;
pub mod figure;
pub mod frontier;
pub mod inbound;
pub mod merged;
pub mod network;
pub mod outbound;
pub mod policy;
pub mod workload;
